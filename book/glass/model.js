// The Transformer, as in attention/transformer.py: pure functions of matrices.
//
// A matrix is {rows, cols, data, name, from}. `data` holds its numbers row by row. `from` says how
// it was made and out of what, so that explain.js can show where each number comes from.
"use strict";

const PAD = 0, BOS = 1, EOS = 2;
const EPS = 1e-5; // of nn.LayerNorm

function matrix(rows, cols, name, from) {
  return { rows, cols, data: new Float64Array(rows * cols), name, from };
}

function at(x, row, col) {
  return x.data[row * x.cols + col];
}

/** A matrix whose entry (row, col) is f(row, col). */
function tabulate(rows, cols, name, from, f) {
  const out = matrix(rows, cols, name, from);
  for (let row = 0; row < rows; row++) {
    for (let col = 0; col < cols; col++) out.data[row * cols + col] = f(row, col);
  }
  return out;
}

/** Σ over d of x[row, d] · y[other, d]: the dot product of a row of x and a row of y. */
function dot(x, row, y, other) {
  let sum = 0;
  const a = row * x.cols, b = other * y.cols;
  for (let d = 0; d < x.cols; d++) sum += x.data[a + d] * y.data[b + d];
  return sum;
}

// Lesson 08: tokens and positions

/** Rows of the table times √d_model: (T, d_model). */
function embed(ids, table) {
  const scale = Math.sqrt(table.cols);
  const from = { op: "embed", ids, table, scale };
  return tabulate(ids.length, table.cols, "embedding · √d_model", from,
    (t, i) => at(table, ids[t], i) * scale);
}

/** Sines and cosines of the positions first, first + 1, …: (T, d_model). */
function sinusoidalPositions(T, d_model, first = 0) {
  return tabulate(T, d_model, "positions", { op: "positions", first }, (t, i) => {
    const angle = (first + t) / 10000 ** ((i - (i % 2)) / d_model);
    return i % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

// Lesson 09: the parts of a layer

/** x Wᵀ + b: (T, d_in) -> (T, d_out). */
function linear(x, layer, name) {
  const { weight, bias } = layer;
  const out = matrix(x.rows, weight.rows, name, { op: "linear", x, layer });
  for (let t = 0; t < x.rows; t++) { // without `tabulate`: here the page spends most of its time
    for (let i = 0; i < weight.rows; i++) {
      out.data[t * weight.rows + i] = dot(x, t, weight, i) + (bias ? bias.data[i] : 0);
    }
  }
  return out;
}

function relu(x, name) {
  return tabulate(x.rows, x.cols, name, { op: "relu", x }, (t, i) => Math.max(0, at(x, t, i)));
}

function add(x, update, name) {
  return tabulate(x.rows, x.cols, name, { op: "add", x, update },
    (t, i) => at(x, t, i) + at(update, t, i));
}

/** Every row gets mean 0 and variance 1, then a learned scale and shift per feature. */
function layerNorm(x, layer, name, eps = EPS) {
  const means = [], deviations = [];
  for (let t = 0; t < x.rows; t++) {
    const row = x.data.subarray(t * x.cols, (t + 1) * x.cols);
    const mean = row.reduce((sum, value) => sum + value, 0) / x.cols;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.cols;
    means.push(mean);
    deviations.push(Math.sqrt(variance + eps));
  }
  return tabulate(x.rows, x.cols, name, { op: "norm", x, layer, means, deviations, eps }, (t, i) =>
    (at(x, t, i) - means[t]) / deviations[t] * layer.weight.data[i] + layer.bias.data[i]);
}

// Lessons 05 to 07: attention

/** True where a query may attend to a key: not into the future. */
function causalMask(T) {
  return (query, key) => query >= key && key < T;
}

const everything = () => true;

/** The features of one head: columns head · d_head … (head + 1) · d_head - 1. */
function headOf(x, head, d_head, name) {
  return tabulate(x.rows, d_head, name, { op: "head", x, first: head * d_head },
    (t, i) => at(x, t, head * d_head + i));
}

/** Softmax of each row; a score of -∞ gets the weight 0. */
function softmaxRows(scores, name) {
  const peaks = [], sums = [];
  for (let t = 0; t < scores.rows; t++) {
    const row = scores.data.subarray(t * scores.cols, (t + 1) * scores.cols);
    peaks.push(row.reduce((most, value) => Math.max(most, value), -Infinity));
    sums.push(row.reduce((sum, value) => sum + Math.exp(value - peaks[t]), 0));
  }
  return tabulate(scores.rows, scores.cols, name, { op: "softmax", x: scores, peaks, sums },
    (t, i) => Math.exp(at(scores, t, i) - peaks[t]) / sums[t]);
}

/** One head: scores q·k, divided by √d_head, masked, softmax, weighted sum of the values. */
function attendHead(q, k, v, mask) {
  const scale = Math.sqrt(q.cols);
  const scores = tabulate(q.rows, k.rows, "scores", { op: "scores", q, k },
    (i, j) => dot(q, i, k, j));
  const scaled = tabulate(q.rows, k.rows, "scaled", { op: "scale", x: scores, scale },
    (i, j) => at(scores, i, j) / scale);
  const masked = tabulate(q.rows, k.rows, "masked", { op: "mask", x: scaled, mask },
    (i, j) => mask(i, j) ? at(scaled, i, j) : -Infinity);
  const weights = softmaxRows(masked, "weights");
  const context = tabulate(q.rows, v.cols, "context", { op: "average", weights, v }, (i, d) => {
    let sum = 0;
    for (let j = 0; j < v.rows; j++) sum += at(weights, i, j) * at(v, j, d);
    return sum;
  });
  return { q, k, v, scores, scaled, masked, weights, context };
}

/** Project, let every head attend, put the heads' contexts side by side, then W_o. */
function attention(query, memory, layer, mask, n_heads) {
  const [q, k, v] = [[query, layer.W_q, "q"], [memory, layer.W_k, "k"], [memory, layer.W_v, "v"]]
    .map(([x, projection, name]) => linear(x, projection, `${name} of all heads`));
  const d_head = q.cols / n_heads, heads = [];
  for (let h = 0; h < n_heads; h++) {
    const [qh, kh, vh] = [[q, "q"], [k, "k"], [v, "v"]].map(
      ([x, name]) => headOf(x, h, d_head, name));
    heads.push(attendHead(qh, kh, vh, mask));
  }
  const merged = tabulate(q.rows, q.cols, "merged heads", { op: "merge", heads, d_head },
    (t, i) => at(heads[Math.floor(i / d_head)].context, t, i % d_head));
  return { heads, merged, output: linear(merged, layer.W_o, "W_o of the merged heads") };
}

// Lesson 10: layers, stacks, the whole

/** Norm, two linear layers with a ReLU between them, and the residual. */
function feedForward(x, norm, layer, names) {
  const normed = layerNorm(x, norm, names.norm);
  const inner = linear(normed, layer.linear_1, "linear_1");
  const hidden = relu(inner, "ReLU of linear_1");
  const update = linear(hidden, layer.linear_2, "linear_2");
  return { normed, hidden, update, out: add(x, update, names.out) };
}

/** A pre-norm encoder layer: (T, d_model) -> out (T, d_model), with all that is between. */
function encoderLayer(x, layer, n_heads) {
  const normed = layerNorm(x, layer.norm_1, "norm_1(x)");
  const self = attention(normed, normed, layer.attention, everything, n_heads);
  const sum = add(x, self.output, "x + attention");
  const fed = feedForward(sum, layer.norm_2, layer.feed_forward,
    { norm: "norm_2(x)", out: "x + feed-forward" });
  return { x, normed, self, sum, fed, out: fed.out };
}

/** A pre-norm decoder layer, which also attends to the encoder's memory (T_k, d_model). */
function decoderLayer(x, memory, layer, n_heads) {
  const normed = layerNorm(x, layer.norm_1, "norm_1(x)");
  const self = attention(normed, normed, layer.attention, causalMask(x.rows), n_heads);
  const sum = add(x, self.output, "x + self-attention");
  const asking = layerNorm(sum, layer.norm_2, "norm_2(x)");
  const cross = attention(asking, memory, layer.cross_attention, everything, n_heads);
  const both = add(sum, cross.output, "x + cross-attention");
  const fed = feedForward(both, layer.norm_3, layer.feed_forward,
    { norm: "norm_3(x)", out: "x + feed-forward" });
  return { x, normed, self, sum, asking, cross, both, fed, out: fed.out };
}

function embedded(ids, table, first = 0) {
  const scaled = embed(ids, table);
  const positions = sinusoidalPositions(ids.length, table.cols, first);
  return { ids, scaled, positions, x: add(scaled, positions, "x") };
}

/** Describe every source token: ids -> memory (T_k, d_model). There is one source: no padding. */
function encode(model, ids) {
  const start = embedded(ids, model.source_embedding);
  const layers = [];
  let x = start.x;
  for (const layer of model.encoder.layers) {
    layers.push(encoderLayer(x, layer, model.n_heads));
    x = layers.at(-1).out;
  }
  return { ...start, layers, memory: layerNorm(x, model.encoder.norm, "memory") };
}

/** Score what follows each token that the decoder has read: ids from BOS on -> logits (T_q, V). */
function decode(model, ids, memory) {
  const start = embedded(ids, model.target_embedding);
  const layers = [];
  let x = start.x;
  for (const layer of model.decoder.layers) {
    layers.push(decoderLayer(x, memory, layer, model.n_heads));
    x = layers.at(-1).out;
  }
  const output = layerNorm(x, model.decoder.norm, "decoder's output");
  const logits = linear(output, model.generator, "logits");
  return { ...start, layers, output, logits, probabilities: softmaxRows(onlyWords(logits), "p") };
}

/** Logits in which PAD and BOS, which are no part of a sentence, cannot win. */
function onlyWords(logits) {
  return tabulate(logits.rows, logits.cols, "logits of words", { op: "words", x: logits },
    (t, i) => i === PAD || i === BOS ? -Infinity : at(logits, t, i));
}

// The weights, as the page holds them

/** The numbers of a base64 text: little-endian float16 or float32. */
function floats(text, bits) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return bits === 16 ? Float64Array.from(new Uint16Array(bytes.buffer), half)
    : Float64Array.from(new Float32Array(bytes.buffer));
}

/** The float16 whose bits these are: a sign, five of an exponent, ten of a fraction. */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
}

/** Build {encoder: {layers: [{attention: {W_q: {weight, bias}, …}, …}], norm}, …} from the data. */
function unpack(packed) {
  const numbers = floats(packed.numbers, packed.bits), model = { ...packed.settings };
  for (const { name, rows, cols, first } of packed.tensors) {
    const path = name.split("."), last = path.pop();
    let place = model;
    path.forEach((part, depth) => {
      const list = /^\d+$/.test(path[depth + 1] ?? "");
      place = place[part] ??= list ? [] : {};
    });
    place[last] = { rows, cols, name, data: numbers.subarray(first, first + rows * cols) };
  }
  return model;
}

/** The Transformer of lesson 10, with its two embedding tables as matrices. */
function translatorOf(packed) {
  const model = unpack(packed);
  for (const table of ["source_embedding", "target_embedding"]) model[table] = model[table].weight;
  return model;
}
