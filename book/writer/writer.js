// The page: reads a beginning, writes on, and shows what was possible at every place.
"use strict";

const MOST = 256, MOST_TYPED = 64; // tokens
const WAIT = 150; // milliseconds after the last key
const BUSY = 40; // milliseconds that it writes, where it may write as fast as it can

const data = JSON.parse(document.getElementById("data").textContent);
const model = unpack(data), tokenizer = tokenizerOf(data.merges);
const part = (id) => document.getElementById(id);

// after[t] is what the model gives once ids[t] is read; drawn[t] is how ids[t] was drawn, if it was.
let text = { ids: [], after: [], drawn: [], cache: emptyCache(model), typed: 0 };
let random = null; // where it is in its random numbers
let writing = null; // {timer, first, until} while it writes
let chosen = 0; // a place in the text; behind its end: what comes next
let following = true; // the newest place is chosen
const look = { layer: 0, head: 0 };

function settings() {
  const number = (id) => Number(part(id).value);
  return { temperature: number("temperature"), p: number("top-p"), seed: number("seed"),
    count: number("count"), pace: number("pace") };
}

const nameOf = (id) => tokenText(id, tokenizer);

// The text grows

function readNext(id, drawn) {
  text.ids.push(id);
  text.drawn.push(drawn);
  text.after.push(readToken(model, text.cache, id));
}

/** Begin anew: read these ids. */
function beginWith(ids) {
  text = { ids: [], after: [], drawn: [], cache: emptyCache(model), typed: ids.length };
  for (const id of ids) readNext(id);
  random = null;
}

/** Draw one token and read it; the random numbers go on from those before. */
function writeOne({ temperature, p, seed }) {
  random ??= randomNumbers(seed);
  const noise = random(), { scores } = text.after.at(-1);
  readNext(drawToken(candidatesOf(scores, temperature, p), noise), { temperature, p, noise });
}

// It writes, and stops

function say(...content) {
  part("said").replaceChildren(...content);
}

function stop() {
  if (!writing) return;
  clearTimeout(writing.timer);
  const { first } = writing, count = text.ids.length - first;
  writing = null;
  part("write").textContent = "Write";
  showText(false);
  const full = text.ids.length >= MOST ? `, up to ${MOST}, which is the most` : "";
  say(`${count} ${count === 1 ? "token" : "tokens"} written${full}.`,
    el("span", { class: "unseen" }, ` ${decodeText(text.ids.slice(first), tokenizer)}`));
}

function go() {
  const { pace, ...chances } = settings(), end = performance.now() + BUSY;
  do writeOne(chances);
  while (!pace && text.ids.length < writing.until && performance.now() < end);
  if (text.ids.length >= writing.until) return stop();
  showText(false);
  writing.timer = setTimeout(go, pace ? 1000 / pace : 0);
}

function start(anew) {
  if (anew && !readBeginning()) return;
  const first = text.ids.length;
  writing = { first, until: Math.min(MOST, first + settings().count) };
  following = true;
  part("write").textContent = "Stop";
  say("Writing… Press Stop or Escape to end it.");
  writing.timer = setTimeout(go, 0);
}

/** Read what is typed, or say below the field what is wrong with it; returns whether it could be read. */
function readBeginning() {
  stop();
  const ids = encodeText(part("begin").value, tokenizer);
  const problem = !ids.length ? "Type a beginning." : ids.length <= MOST_TYPED ? ""
    : `These are ${ids.length} tokens: type at most ${MOST_TYPED}.`;
  const seed = part("seed"), wrong = seed.value === "" || !seed.validity.valid;
  part("begin").setAttribute("aria-invalid", Boolean(problem));
  seed.setAttribute("aria-invalid", wrong);
  part("problem").textContent = problem || (wrong ? "The seed is a whole number from 0 to 999999." : "");
  if (problem || wrong) return false; // what was shown last stands
  beginWith(ids);
  following = true;
  say("");
  showText(true);
  return true;
}

function showSettings() {
  for (const one of document.querySelectorAll("output")) one.value = part(one.htmlFor.value).value;
}

/** How long it takes to read the last token with the cache, and all tokens without. */
function measure() {
  const timed = (read) => {
    const begun = performance.now();
    read();
    return performance.now() - begun;
  };
  const cache = emptyCache(model), last = text.ids.length - 1;
  const all = timed(() => text.ids.forEach((id) => readToken(model, cache, id)));
  const again = Array.from({ length: 5 }, () => {
    for (const layer of cache.layers) { layer.keys.length = last; layer.values.length = last; }
    cache.length = last;
    return timed(() => readToken(model, cache, text.ids[last]));
  }).sort((one, other) => one - other)[2];
  part("measured").textContent = `On this machine: ${again.toFixed(1)} ms for the last token with the ` +
    `cache, and ${all.toFixed(1)} ms for all ${last + 1} tokens, one by one, without what was kept.`;
}

// What the reader does

part("text").addEventListener("click", ({ target }) =>
  target.place !== undefined && choose(target.place, true));
part("text").addEventListener("keydown", (event) => {
  const lines = event.key === "ArrowUp" || event.key === "ArrowDown";
  if (!lines && !(event.key in ARROW) || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  choose(lines ? onOtherLine(event.key === "ArrowDown") : chosen + ARROW[event.key], true);
});
document.addEventListener("keydown", ({ key }) => key === "Escape" && stop());
part("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (writing) stop(); else start(true);
});
part("write-on").addEventListener("click", () => {
  if (!writing && text.ids.length && text.ids.length < MOST) start(false);
});
part("measure").addEventListener("click", () => { stop(); measure(); });
let waiting = 0;
part("begin").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(readBeginning, WAIT);
});
for (const button of document.querySelectorAll(".examples button")) {
  button.addEventListener("click", () => {
    part("begin").value = button.textContent;
    readBeginning();
  });
}
for (const id of ["temperature", "top-p"]) {
  part(id).addEventListener("input", () => { showSettings(); showPlace(); });
}
prefersDark.addEventListener("change", showPlace);
// A link may choose by the fields' ids: writer.html?begin=Emma&seed=3
for (const [id, value] of new URLSearchParams(location.search)) {
  if (["begin", "temperature", "top-p", "seed", "count", "pace"].includes(id)) part(id).value = value;
}
showSettings();
showChoice();
readBeginning();
