// The page: reads what is typed, runs the model, and shows every part of it.
"use strict";

const MOST_LETTERS = 100; // as in Transformer.translate
const WAIT = 150; // milliseconds after the last key

const data = JSON.parse(document.getElementById("data").textContent);
const model = translatorOf(data);

const choices = {
  encoder: startOfStack("self-attention", 0, 0),
  decoder: startOfStack("cross-attention", 1, 3),
  vectors: { side: "source", stage: "x", spot: [0, 0] },
  letters: { row: 0, id: null },
  beams: { K: 3, alpha: 0.6, step: 0 },
};
let result = null;

/** All that the model computes for a list of source words. */
function translate(words, K, alpha) {
  const ids = [...words.map((word) => data.source.indexOf(word)), EOS];
  const encoded = encode(model, ids);
  const greedy = greedySearch(model, encoded.memory, MOST_LETTERS);
  const ended = greedy.ids.at(-1) === EOS;
  const read = [BOS, ...(ended ? greedy.ids.slice(0, -1) : greedy.ids.slice(0, MOST_LETTERS - 1))];
  const decoded = decode(model, read, encoded.memory);
  const beams = beamSearch(model, encoded.memory, K, alpha, MOST_LETTERS);
  return { words, encoded, greedy, decoded, beams };
}

/** <eos> as EOS, a letter as it is. */
function tokenName(token) {
  return token.replace(/^<(\w+)>$/, (_, name) => name.toUpperCase());
}

/** The text of ids, up to EOS. */
function textOf(ids, vocabulary) {
  return ids.filter((id) => id > EOS).map((id) => vocabulary[id]).join("");
}

const names = (ids, vocabulary) => ids.map((id) => tokenName(vocabulary[id]));

/** Put new elements into one of the page's parts; what had the focus gets it back. */
function put(id, ...content) {
  const place = document.getElementById(id), active = document.activeElement;
  const back = place.contains(active) ? active.id : "";
  const scrolled = (box) => [box.scrollLeft, box.scrollTop];
  const before = [...place.querySelectorAll(".scroll, .pieces")].map(scrolled);
  place.replaceChildren(...content.flat().filter(Boolean));
  const boxes = place.querySelectorAll(".scroll, .pieces");
  if (boxes.length === before.length) boxes.forEach((box, n) => box.scrollTo(...before[n]));
  const chosen = place.querySelector(".pieces [aria-pressed=true]"); // on a telephone they are a strip
  if (chosen && before.length === 0) chosen.closest(".pieces").scrollLeft = chosen.offsetLeft - 24;
  if (back) document.getElementById(back)?.focus({ preventScroll: true });
}

// The parts of the page

function showSaid(german) {
  const words = result.words.join(" ");
  put("said",
    el("p", {}, `${words} → by greedy search:`),
    el("p", { class: "german", lang: "de" }, german || "(nothing)"),
    el("p", {}, judged(german)));
}

/** Whether a translation of the number is right, in words and with a sign. */
function judged(german) {
  if (result.number === null) return el("span", { class: "soft" }, "Words are not judged.");
  const right = inGerman(result.number);
  return german === right ? el("span", { class: "good" }, "✓ Right.")
    : el("span", { class: "bad" }, `✗ Wrong: it should be ${right}.`);
}

/** A table of tokens: their positions, what they are called, and their ids. */
function tokenTable(caption, ids, called) {
  const row = (name, cells) => el("tr", {}, el("th", { scope: "row" }, name),
    cells.map((cell) => el("td", {}, cell)));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", { class: "tokens" }, el("caption", {}, caption), el("tbody", {},
      row("position", ids.map((_, t) => String(t))),
      row("token", called.map((name) => el("strong", {}, name))),
      row("id", ids.map(String)))));
}

function showTokens() {
  const table = (caption, ids, vocabulary) => tokenTable(
    `${caption}, one of ${vocabulary.length} tokens each`, ids, names(ids, vocabulary));
  put("tokens-body", table("source", result.encoded.ids, data.source),
    table("what the decoder reads", result.decoded.ids, data.target));
}

function showVectors() {
  const choice = choices.vectors, side = choice.side === "source" ? result.encoded : result.decoded;
  const button = (kind, value, text) => pressed(`vectors-${value}`, choice[kind] === value, () => {
    choice[kind] = value;
    showVectors();
  }, text);
  const labels = names(side.ids, data[choice.side]);
  put("vectors-body",
    el("div", { class: "row", role: "group", "aria-label": "side" },
      button("side", "source", "source"), button("side", "target", "target")),
    el("div", { class: "row", role: "group", "aria-label": "summand" },
      button("stage", "scaled", "embedding · √d_model"), "+",
      button("stage", "positions", "positions"), "=", button("stage", "x", "x")),
    mapPanel(side[choice.stage], labels, `${choice.side}: ${choice.stage}`, choice));
}

function showEncoder() {
  const { layers, memory, ids } = result.encoded, rows = names(ids, data.source);
  put("encoder-body", showStack("encoder", layers, { name: "norm: memory", x: memory },
    { rows, keys: rows, source: rows }, choices.encoder, showEncoder));
}

function showDecoder() {
  const { layers, output, ids } = result.decoded;
  const keys = names(ids, data.target), next = names(result.greedy.ids, data.target);
  const rows = keys.map((key, t) => `${key} → ${next[t]}`); // what it has read, what it writes
  const labels = { rows, keys, source: names(result.encoded.ids, data.source) };
  put("decoder-body", showStack("decoder", layers, { name: "norm: decoder's output", x: output },
    labels, choices.decoder, showDecoder));
}

function showNext() {
  put("letters-body", showLetters(result.decoded, data.target,
    names(result.decoded.ids, data.target), choices.letters, showNext));
}

function showSearch() {
  const settle = (values) => {
    const { K, alpha } = Object.assign(choices.beams, values);
    result.beams = beamSearch(model, result.encoded.memory, K, alpha, MOST_LETTERS);
    showSearch();
  };
  put("beams-body", showBeams(result.beams, data.target, choices.beams,
    judged(textOf(result.beams.ids, data.target)), settle, showSearch));
  const now = document.querySelector(".tree .now"), box = document.querySelector(".tree").parentElement;
  const place = Number(now.getAttribute("x"));
  if (place < box.scrollLeft || place + 34 > box.scrollLeft + box.clientWidth) {
    box.scrollLeft = place - box.clientWidth / 2;
  }
}

function showAll() {
  for (const show of [showTokens, showVectors, showEncoder, showDecoder, showNext, showSearch]) {
    show();
  }
  put("greedy-body", showGreedy(result.greedy, data.target));
}

/** Read the field, run the model and show everything, or say below the field what is wrong with it. */
function run() {
  const field = document.getElementById("number");
  const { problem, words, number } = readInput(field.value, data.source);
  field.setAttribute("aria-invalid", Boolean(problem));
  document.getElementById("problem").textContent = problem ?? "";
  document.getElementById("machine").hidden = Boolean(problem) && !result;
  if (problem) return; // what was shown last stands, and says of which number it is
  result = { number, ...translate(words, choices.beams.K, choices.beams.alpha) };
  showSaid(textOf(result.greedy.ids, data.target));
  showAll();
}

/**
 * Call `read` at once, and whenever something else is typed into a form or chosen of its examples.
 *
 * A link may choose it, by the field's id: glass.html?number=931
 */
function listen(form, field, read) {
  let waiting = 0;
  const now = () => { clearTimeout(waiting); read(); };
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(read, WAIT);
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); now(); });
  for (const button of form.querySelectorAll(".examples button")) {
    button.addEventListener("click", () => { field.value = button.textContent; now(); });
  }
  const asked = new URLSearchParams(location.search).get(field.id);
  if (asked !== null) field.value = asked;
  read();
}

prefersDark.addEventListener("change", () => result && showAll());
listen(document.getElementById("form"), document.getElementById("number"), run);
