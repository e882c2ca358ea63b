// The small BERT of lesson 19, as in attention/published_model.py, and how it reads a text, as in
// attention/provided/models/bert/tokenizer.py. Its matrices are those of model.js.
"use strict";

const UNKNOWN = "[UNK]";
const LONGEST_WORD = 100; // letters; a longer word is unknown as a whole
const BERT_EPS = 1e-12;

// From a text to ids

function isChinese(letter) {
  const code = letter.codePointAt(0);
  return [[0x4e00, 0x9fff], [0x3400, 0x4dbf], [0x20000, 0x2a6df], [0x2a700, 0x2b81f],
    [0x2b820, 0x2ceaf], [0xf900, 0xfaff], [0x2f800, 0x2fa1f]]
    .some(([low, high]) => low <= code && code <= high);
}

/** Cut a text at spaces and around punctuation marks, in lower case and without accents. */
function wordsOf(text) {
  const kept = Array.from(text, (letter) => {
    if (/[\t\n\r\p{Zs}]/u.test(letter)) return " ";
    if (/[\ufffd\p{Cc}\p{Cf}\p{Co}\p{Cs}]/u.test(letter)) return "";
    return isChinese(letter) ? ` ${letter} ` : letter;
  }).join("");
  return kept.toLowerCase().normalize("NFD").replace(/\p{Mn}/gu, "")
    .replace(/[!-/:-@[-`{-~\p{P}]/gu, " $& ").split(/\s+/).filter(Boolean);
}

/** The longest pieces that the vocabulary, a Map, has for a word, from left to right. */
function wordpiece(word, vocabulary) {
  const letters = Array.from(word), found = [];
  if (letters.length > LONGEST_WORD) return [UNKNOWN];
  for (let start = 0; start < letters.length;) {
    let end = letters.length, piece = "";
    for (; end > start; end--) {
      piece = (start ? "##" : "") + letters.slice(start, end).join("");
      if (vocabulary.has(piece)) break;
    }
    if (end === start) return [UNKNOWN];
    found.push(piece);
    start = end;
  }
  return found;
}

// The model

/** The rows of three tables, added: of the word piece, of its place, of the first sentence. */
function bertRows(ids, tables) {
  const rows = tables.map(({ name, table, row }) => ({ name, table, row: (t) => row(ids[t], t) }));
  return tabulate(ids.length, tables[0].table.cols, "sum of the rows", { op: "rows", rows },
    (t, i) => rows.reduce((sum, { table, row }) => sum + at(table, row(t), i), 0));
}

/** The integral 2/√π · ∫ exp(-t²) dt from 0 to x, by its series, all of whose terms have one sign. */
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x, sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= 2 * x * x / (2 * n + 1);
    sum += term;
  }
  return 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
}

/** The share of a normal distribution, mean 0 and variance 1, that lies below x. */
function shareBelow(x) {
  return (1 + erf(x / Math.SQRT2)) / 2;
}

function gelu(x, name) {
  return tabulate(x.rows, x.cols, name, { op: "gelu", x },
    (t, i) => at(x, t, i) * shareBelow(at(x, t, i)));
}

/** A post-norm layer: each sum is normalised, and that is what goes on. */
function bertLayer(x, layer, n_heads) {
  const self = attention(x, x, layer.attention, everything, n_heads);
  const sum = add(x, self.output, "x + attention");
  const normed = layerNorm(sum, layer.norm_1, "norm_1(x)", BERT_EPS);
  const hidden = gelu(linear(normed, layer.linear_1, "linear_1"), "GELU of linear_1");
  const update = linear(hidden, layer.linear_2, "linear_2");
  const both = add(normed, update, "x + feed-forward");
  return { x, self, sum, normed, hidden, update, both,
    out: layerNorm(both, layer.norm_2, "norm_2(x)", BERT_EPS) };
}

/** Read one text, without padding: ids -> out (T, d_model) of the last layer, and all before it. */
function bertEncode(bert, ids) {
  const start = bertRows(ids, bert.tables), layers = [];
  let x = layerNorm(start, bert.norm, "normed sum of the rows", BERT_EPS);
  const embedded = x;
  for (const layer of bert.layers) {
    layers.push(bertLayer(x, layer, bert.n_heads));
    x = layers.at(-1).out;
  }
  return { ids, start, embedded, layers, out: x };
}

/** The mean of all rows, divided by its length. */
function sentenceVector(x) {
  const sums = Array.from({ length: x.cols }, (_, i) =>
    Array.from({ length: x.rows }, (_, t) => at(x, t, i)).reduce((sum, value) => sum + value, 0));
  const length = Math.hypot(...sums);
  return sums.map((value) => value / length);
}

function cosine(one, other) {
  return one.reduce((sum, value, i) => sum + value * other[i], 0);
}

/** The published names of the weights become the course's, as `rename_weights` has it. */
function bertOf(packed) {
  const { embeddings, encoder, n_heads } = unpack(packed);
  const called = (part, name) => ({ bias: part.bias,
    weight: { ...part.weight, name: `${name}.weight` } });
  const layers = encoder.layer.map(({ attention: { self, output: merged }, intermediate, output }) => ({
    attention: { W_q: called(self.query, "W_q"), W_k: called(self.key, "W_k"),
      W_v: called(self.value, "W_v"), W_o: called(merged.dense, "W_o") },
    norm_1: merged.LayerNorm,
    linear_1: called(intermediate.dense, "linear_1"),
    linear_2: called(output.dense, "linear_2"),
    norm_2: output.LayerNorm,
  }));
  const tables = [
    { name: "words", table: embeddings.word_embeddings.weight, row: (id) => id },
    { name: "positions", table: embeddings.position_embeddings.weight, row: (_, t) => t },
    { name: "types", table: embeddings.token_type_embeddings.weight, row: () => 0 },
  ];
  return { n_heads, layers, tables, norm: embeddings.LayerNorm };
}
