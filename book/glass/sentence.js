// A sentence is typed, and the small BERT of lesson 19 reads it: its word pieces, its layers, and
// which of a few other sentences is nearest.
"use strict";

const MOST_PIECES = 24; // of a sentence, without [CLS] and [SEP]: a table of weights is read by eye

const bert = bertOf(data.bert);
const pieceIds = new Map(data.bert.pieces.map((piece, id) => [piece, id]));
const others = data.bert.others.map((text) => ({ text, vector: readText(text).vector }));
const readerChoice = startOfStack("self-attention", 0, 0);
let reading = null;

/** The pieces of a text between [CLS] and [SEP], and which of its words have none. */
function cutText(text) {
  const cut = wordsOf(text).map((word) => ({ word, pieces: wordpiece(word, pieceIds) }));
  const unknown = cut.filter(({ pieces }) => pieces[0] === UNKNOWN).map(({ word }) => word);
  return { pieces: ["[CLS]", ...cut.flatMap(({ pieces }) => pieces), "[SEP]"], unknown };
}

/** All that the model computes for a text, and its vector. */
function readText(text) {
  const { pieces, unknown } = cutText(text);
  const encoded = bertEncode(bert, pieces.map((piece) => pieceIds.get(piece)));
  return { text, pieces, unknown, encoded, vector: sentenceVector(encoded.out) };
}

/** What is wrong with a text that cannot be shown, or "". */
function problemOf(text) {
  const count = cutText(text).pieces.length - 2;
  if (!count) return "Type a sentence.";
  return count <= MOST_PIECES ? "" :
    `These are ${count} word pieces: type at most ${MOST_PIECES}.`;
}

/** The other sentences, the nearest first. */
function neighbours(vector) {
  return others.map((one) => ({ text: one.text, cosine: cosine(vector, one.vector) }))
    .sort((one, other) => other.cosine - one.cosine);
}

function quoted(word) {
  return `“${word.length > 30 ? `${word.slice(0, 30)}…` : word}”`;
}

function showPieces() {
  const { pieces, unknown, encoded } = reading;
  put("pieces-body",
    tokenTable(`word pieces, one of ${pieceIds.size} each`, encoded.ids, pieces),
    unknown.length ? el("p", {}, `${UNKNOWN}: the vocabulary has no pieces for ` +
      `${[...new Set(unknown)].map(quoted).join(", ")}.`) : null);
}

function showReader() {
  const { pieces, encoded } = reading;
  put("reader-body", showStack("reader", encoded.layers, null, { rows: pieces, keys: pieces },
    readerChoice, showReader));
}

function showNearest() {
  const sorted = neighbours(reading.vector);
  const bar = (share) => {
    const made = el("span", { class: "bar" });
    made.style.width = `${100 * Math.max(0, share)}%`;
    return made;
  };
  const table = el("table", { class: "plain nearest" },
    el("caption", {}, "other sentences, the nearest first"),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "sentence"),
      el("th", { scope: "col" }, "cosine"), el("td"))),
    el("tbody", {}, sorted.map((one) => el("tr", {}, el("th", { scope: "row" }, one.text),
      el("td", {}, shown(one.cosine)), el("td", { class: "bars" }, bar(one.cosine))))));
  put("nearest-body", el("div", { class: "scroll" }, table));
  put("nearest-said", `${quoted(reading.text.trim())} has ${reading.pieces.length - 2} word pieces. ` +
    `Nearest, of ${sorted.length} sentences: “${sorted[0].text}” (cosine ${shown(sorted[0].cosine, 2)}).`);
}

function showSentence() {
  showPieces();
  showReader();
  showNearest();
}

/** Read the field and show everything, or say below the field what is wrong with it. */
function runSentence() {
  const field = document.getElementById("sentence"), problem = problemOf(field.value);
  field.setAttribute("aria-invalid", Boolean(problem));
  document.getElementById("sentence-problem").textContent = problem;
  document.getElementById("reader").hidden = Boolean(problem) && !reading;
  if (problem) return; // what was shown last stands, and says of which sentence it is
  reading = readText(field.value);
  readerChoice.cell = null;
  showSentence();
}

prefersDark.addEventListener("change", () => reading && showSentence());
listen(document.getElementById("sentence-form"), document.getElementById("sentence"), runSentence);
