// The encoder and the decoder: a layer's pieces in their order, and a close look at one of them.
"use strict";

const STAGES = [
  ["q", "what each query asks: this head's part of W_q's output (T_q, d_head)"],
  ["k", "what each key offers: this head's part of W_k's output (T_k, d_head)"],
  ["v", "what each key hands over: this head's part of W_v's output (T_k, d_head)"],
  ["scores", "the dot product of each query with each key (T_q, T_k)"],
  ["scaled", "scores / √d_head, so that softmax does not saturate (T_q, T_k)"],
  ["masked", "−∞ where a query may not attend (T_q, T_k)"],
  ["weights", "softmax of each row: its weights sum to 1 (T_q, T_k)"],
  ["context", "for each query, the values averaged with its weights (T_q, d_head)"],
];

/** The pieces of an encoder layer, in the order of the computation. */
function encoderPieces(layer) {
  return [
    { name: "x", what: "what comes in", x: layer.x },
    { name: "norm_1", what: "each row: mean 0, variance 1, then scale and shift", x: layer.normed },
    { name: "self-attention", what: "every word looks at every word", attention: layer.self },
    ...output("", layer.self),
    { name: "x + attention", what: "the residual: what came in, plus the update", x: layer.sum },
    ...fedForward(layer.fed, "norm_2"),
  ];
}

/** The pieces of a decoder layer; cross-attention has keys of its own: the source. */
function decoderPieces(layer) {
  return [
    { name: "x", what: "what comes in", x: layer.x },
    { name: "norm_1", what: "each row: mean 0, variance 1, then scale and shift", x: layer.normed },
    { name: "self-attention", what: "every letter looks at itself and at those before it", attention: layer.self },
    ...output("", layer.self),
    { name: "x + self-attention", what: "the residual: what came in, plus the update", x: layer.sum },
    { name: "norm_2", what: "each row normalised again", x: layer.asking },
    { name: "cross-attention", what: "queries from the letters; keys and values from the memory", attention: layer.cross,
      crosses: true },
    ...output(" (cross)", layer.cross),
    { name: "x + cross-attention", what: "the residual: what came in, plus the update", x: layer.both },
    ...fedForward(layer.fed, "norm_3"),
  ];
}

/** The pieces of a layer of the BERT: post-norm, so that each sum is normalised. */
function readerPieces(layer) {
  const norm = "each row: mean 0, variance 1, then scale and shift";
  return [
    { name: "x", what: "what comes in", x: layer.x },
    { name: "self-attention", what: "every piece looks at every piece", attention: layer.self },
    ...output("", layer.self),
    { name: "x + attention", what: "the residual: what came in, plus the update", x: layer.sum },
    { name: "norm_1", what: norm, x: layer.normed },
    { name: "linear_1, GELU", what: "hidden units, d_ff of them; GELU weighs each one", x: layer.hidden },
    { name: "linear_2", what: "back to d_model features", x: layer.update },
    { name: "x + feed-forward", what: "the residual: norm_1, plus the update", x: layer.both },
    { name: "norm_2", what: `${norm}; this goes out`, x: layer.out },
  ];
}

const PIECES = { encoder: encoderPieces, decoder: decoderPieces, reader: readerPieces };

function output(which, { merged, output: update }) {
  return [
    { name: `merged heads${which}`, what: "the heads' contexts side by side", x: merged },
    { name: `W_o${which}`, what: "W_o of the merged heads: the update", x: update },
  ];
}

function fedForward(fed, norm) {
  return [
    { name: norm, what: "each row normalised again", x: fed.normed },
    { name: "linear_1, ReLU", what: "hidden units, d_ff of them; what is negative becomes 0", x: fed.hidden },
    { name: "linear_2", what: "back to d_model features", x: fed.update },
    { name: "x + feed-forward", what: "the residual: what goes out", x: fed.out },
  ];
}

/** What is chosen to be looked at in a stack. */
function startOfStack(piece, layer, head) {
  return { layer, piece, head, stage: "weights", cell: null, spot: [0, 0] };
}

/**
 * Show one stack of layers.
 *
 * side     "encoder", "decoder" or "reader"
 * layers   what `encode` or `decode` kept of each layer
 * last     {name, x}: the norm after the last layer, or null
 * labels   {rows, keys, source}: names of the positions, as rows and as keys, and of the source's,
 *          which cross-attention sees
 * choice   what is looked at, from `startOfStack`; changed in place
 * again    a function that shows the stack anew after a choice
 */
function showStack(side, layers, last, labels, choice, again) {
  const pieces = PIECES[side](layers[choice.layer]);
  if (last && choice.layer === layers.length - 1) {
    pieces.push({ name: last.name, what: "after the last layer, one more norm", x: last.x });
  }
  const piece = pieces.find((one) => one.name === choice.piece) ?? pieces[2];
  const change = (values) => { Object.assign(choice, values); again(); };
  const layerButtons = layers.map((_, number) => pressed(`${side}-layer-${number}`,
    choice.layer === number, () => change({ layer: number }), `layer ${number}`));
  const list = pieces.map((one) => {
    const { rows, cols } = one.x ?? one.attention.output;
    return el("li", {}, pressed(`${side}-${one.name}`, one === piece,
      () => change({ piece: one.name, cell: null }), one.name,
      el("span", { class: "shape" }, `(${rows}, ${cols})`)));
  });
  const view = piece.attention
    ? attentionPanel(side, piece, labels, choice, change)
    : mapPanel(piece.x, labels.rows, `${side}, layer ${choice.layer}: ${piece.name}`, choice);
  return [
    el("div", { class: "row", role: "group", "aria-label": `layer of the ${side}` }, layerButtons),
    el("div", { class: "layer" },
      el("ol", { class: "pieces", "aria-label": `pieces of the layer` }, list),
      el("div", { class: "panel" }, el("h3", {}, `layer ${choice.layer} · ${piece.name}`),
        el("p", {}, `${capital(piece.what)}.`), view)),
  ];
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

/** A button that is pressed or not; its id brings the focus back when it is made anew. */
function pressed(id, yes, click, ...content) {
  return el("button", { type: "button", id: id.replaceAll(/[^\w-]+/g, "-"), "aria-pressed": yes,
    click }, ...content);
}

/** A place for arithmetic: `say` fills it, and its first line is read aloud when it changes. */
function readout() {
  const line = el("p", { "aria-live": "polite" }), rest = el("div");
  const say = (number, where, steps) => {
    line.replaceChildren(el("strong", {}, number), where);
    rest.replaceChildren(...arithmetic(steps));
  };
  return { box: el("div", { class: "arithmetic" }, line, rest), say };
}

/** A map of features with the arithmetic of the chosen entry below it. */
function mapPanel(x, labels, label, choice) {
  const spot = [Math.min(choice.spot[0], x.rows - 1), Math.min(choice.spot[1], x.cols - 1)];
  const { box, say } = readout();
  const choose = (row, col) => {
    choice.spot = [row, col];
    say(`${x.name}[${row}, ${col}] = ${shown(at(x, row, col))}`,
      ` · position ${row}, “${labels[row]}”, feature ${col}`, explain(x, row, col));
  };
  choose(...spot);
  return [...featureMap(x, labels, `${label}, ${x.rows} positions by ${x.cols} features`, spot,
    choose), box];
}

/** All heads of one attention, the stages of the chosen one, and one of these. */
function attentionPanel(side, piece, labels, choice, change) {
  const { heads } = piece.attention, head = heads[choice.head];
  const keys = piece.crosses ? labels.source : labels.keys;
  const choices = heads.map((one, number) => pressed(`${side}-head-${number}`,
    choice.head === number, () => change({ head: number, cell: null }),
    thumbnail(one.weights), `head ${number}`));
  const stages = STAGES.map(([name]) => pressed(`${side}-stage-${name}`,
    choice.stage === name, () => change({ stage: name }), name));
  const about = STAGES.find(([name]) => name === choice.stage)[1];
  const where = `${side}, layer ${choice.layer}, ${piece.name}, head ${choice.head}`;
  const x = head[choice.stage];
  const names = choice.stage === "k" || choice.stage === "v" ? keys : labels.rows;
  const look = ["q", "k", "v", "context"].includes(choice.stage)
    ? mapPanel(x, names, `${where}: ${x.name}`, choice)
    : weightsPanel(head, x, labels.rows, keys, where, choice);
  return [
    el("div", { class: "heads", role: "group", "aria-label": "head; the picture shows its weights" },
      choices),
    el("div", { class: "row", role: "group", "aria-label": "stage of the head" }, stages),
    el("p", { class: "soft" }, `${capital(about)} = (${x.rows}, ${x.cols}).`),
    ...look,
  ];
}

/** The first query's largest weight: where a look begins. */
function largestOfFirst(weights) {
  const row = Array.from(weights.data.subarray(0, weights.cols));
  return [0, row.indexOf(Math.max(...row))];
}

function weightsPanel(head, x, queries, keys, where, choice) {
  let cell = choice.cell ?? largestOfFirst(head.weights);
  if (cell[0] >= x.rows || cell[1] >= x.cols) cell = largestOfFirst(head.weights);
  const { box, say } = readout();
  const tell = (row, col) => {
    say(`query ${row}, “${queries[row]}”; key ${col}, “${keys[col]}”: weight ` +
      shown(at(head.weights, row, col)), "", explainWeight(head, row, col, keys));
  };
  const choose = (row, col) => {
    choice.cell = [row, col]; // from now on no longer the largest weight
    tell(row, col);
  };
  tell(...cell);
  const isWeight = x.name === "weights", limit = limitOf(x);
  const scale = isWeight
    ? legend("Keys across, queries down.", weightColour, ["0", "0.5", "1"])
    : legend("Keys across, queries down.", (share) => signedColour(share * 2 - 1, 1),
      [-limit, 0, limit].map((value) => brief(value, false)));
  return [weightTable(x, queries, keys, `${x.name}: ${where}`, cell, choose), scale, box];
}

/** An explanation as elements: its lines, and the tables of what was added. */
function arithmetic(steps) {
  return steps.flatMap(({ title, text, terms: sum }) => [
    title ? el("h3", {}, title) : null,
    el("p", {}, text),
    sum ? plainTable(sum.caption, sum.head, sum.rows, "plain terms") : null,
  ]).filter(Boolean);
}

/** A table of texts; the first of each row is its heading. */
function plainTable(caption, head, rows, kind = "plain") {
  return el("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": caption },
    el("table", { class: kind }, el("caption", {}, caption),
      el("thead", {}, el("tr", {}, head.map((text) =>
        el(text === "" ? "td" : "th", { scope: text === "" ? null : "col" }, String(text))))),
      el("tbody", {}, rows.map(([first, ...others]) => el("tr", {},
        el("th", { scope: "row" }, first), others.map((text) => el("td", {}, text)))))));
}
