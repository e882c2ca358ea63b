// The decoder of lesson 20, as in attention/modern_decoder.py: one token at a time, with a cache.
"use strict";

const RMS_EPS = 1e-6;

/** Every row divided by the root of the mean of its squares, times a weight for each feature. */
function rmsNorm(x, { weight }) {
  const roots = Array.from({ length: x.rows }, (_, t) => Math.sqrt(dot(x, t, x, t) / x.cols + RMS_EPS));
  return tabulate(x.rows, x.cols, "", null, (t, i) => at(x, t, i) / roots[t] * weight.data[i]);
}

/** The same numbers in rows of another length: one row for each head. */
function inRows(x, cols) {
  return { ...x, rows: x.rows * x.cols / cols, cols };
}

/** Turn each pair of features of every row by the angles of one position. */
function turned(x, position) {
  const out = matrix(x.rows, x.cols);
  for (let i = 0; i < x.cols; i += 2) {
    const angle = position / 10000 ** (i / x.cols), cos = Math.cos(angle), sin = Math.sin(angle);
    for (let t = 0; t < x.rows; t++) {
      const first = at(x, t, i), second = at(x, t, i + 1);
      out.data[t * x.cols + i] = first * cos - second * sin;
      out.data[t * x.cols + i + 1] = first * sin + second * cos;
    }
  }
  return out;
}

/** No token read yet: for each layer a list of keys and one of values, a row for each token. */
function emptyCache(model) {
  return { length: 0, layers: model.layers.map(() => ({ keys: [], values: [] })) };
}

/** The bytes of all the rows that are kept. */
function cacheBytes(cache) {
  return cache.layers.flatMap(({ keys, values }) => [...keys, ...values])
    .reduce((sum, row) => sum + row.byteLength, 0);
}

/** The weights of one query over the keys, and their sum of the values: both from `first` on. */
function lookBack(q, head, { keys, values }, first) {
  const d_head = q.cols, scale = Math.sqrt(d_head), context = new Float64Array(d_head);
  const weights = softmax(Float64Array.from(keys, (key) => {
    let sum = 0;
    for (let d = 0; d < d_head; d++) sum += at(q, head, d) * key[first + d];
    return sum / scale;
  }));
  values.forEach((value, j) => {
    for (let d = 0; d < d_head; d++) context[d] += weights[j] * value[first + d];
  });
  return { weights, context };
}

/** Let a new token look at itself and all before it; its key, turned, and its value are kept. */
function attendBack(x, layer, kept, position, { n_heads, n_kv_heads }) {
  const d_head = layer.W_q.weight.rows / n_heads;
  const q = turned(rmsNorm(inRows(linear(x, layer.W_q), d_head), layer.norm_q), position);
  const k = turned(rmsNorm(inRows(linear(x, layer.W_k), d_head), layer.norm_k), position);
  kept.keys.push(Float32Array.from(k.data));
  kept.values.push(Float32Array.from(linear(x, layer.W_v).data));
  const merged = matrix(1, q.rows * d_head), weights = [];
  for (let head = 0; head < n_heads; head++) {
    const group = Math.floor(head * n_kv_heads / n_heads);
    const looked = lookBack(q, head, kept, group * d_head);
    merged.data.set(looked.context, head * d_head);
    weights.push(looked.weights);
  }
  return { output: linear(merged, layer.W_o), weights };
}

/** W_down(silu(W_gate(x)) · W_up(x)) */
function swiGLU(x, { W_gate, W_up, W_down }) {
  const gate = linear(x, W_gate), up = linear(x, W_up);
  return linear(tabulate(1, gate.cols, "", null, (_, i) =>
    gate.data[i] / (1 + Math.exp(-gate.data[i])) * up.data[i]), W_down);
}

/**
 * Read one token, behind those in the cache, which grows.
 *
 * Returns the scores of what comes next, and looks[layer][head]: weights over the tokens so far.
 */
function readToken(model, cache, id) {
  const table = model.embedding, d_model = table.weight.cols, looks = [];
  let x = matrix(1, d_model);
  x.data.set(table.weight.data.subarray(id * d_model, (id + 1) * d_model));
  model.layers.forEach((layer, number) => {
    const { output, weights } = attendBack(rmsNorm(x, layer.norm_1), layer.attention,
      cache.layers[number], cache.length, model);
    looks.push(weights);
    x = add(x, output);
    x = add(x, swiGLU(rmsNorm(x, layer.norm_2), layer.feed_forward));
  });
  cache.length++;
  return { scores: linear(rmsNorm(x, model.norm), table).data, looks };
}
