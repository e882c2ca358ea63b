// The end of the page: the next letter's probabilities, greedy search, and beams.
"use strict";

const LONGEST_SHOWN = 20; // letters of a beam

/** The letters that the decoder read, as buttons, and what it says comes after the chosen one. */
function showLetters(decoded, vocabulary, labels, choice, again) {
  const row = Math.min(choice.row, labels.length - 1), { logits, probabilities } = decoded;
  const buttons = labels.map((label, number) => pressed(`letter-${number}`, number === row,
    () => { choice.row = number; again(); }, label));
  const order = vocabulary.map((_, id) => id)
    .sort((one, other) => at(probabilities, row, other) - at(probabilities, row, one));
  const top = at(logits, row, order[0]);
  const sum = order.reduce((total, id) =>
    total + (id === PAD || id === BOS ? 0 : Math.exp(at(logits, row, id) - top)), 0);
  const read = labels.slice(0, row + 1).join(" ");
  const { box, say } = readout();
  const chosen = vocabulary[choice.id] === undefined ? order[0] : choice.id;
  explainLetter(say, decoded, vocabulary, row, chosen, { top, sum });
  const rows = order.map((id) => el("tr", { class: id === order[0] ? "kept" : "" },
    el("th", { scope: "row", class: "letter" }, pressed(`token-${id}`, id === chosen,
      () => { choice.id = id; again(); }, tokenName(vocabulary[id]))),
    el("td", {}, String(id)), el("td", {}, shown(at(logits, row, id))),
    el("td", {}, shown(at(probabilities, row, id))),
    el("td", { class: "bars" }, bar(at(probabilities, row, id)))));
  return [
    el("p", {}, "The decoder has read, up to the chosen letter:"),
    el("div", { class: "row", role: "group", "aria-label": "position" }, buttons),
    el("div", { class: "two" },
      el("div", { class: "scroll" }, el("table", { class: "plain dense" },
        el("caption", {}, `what comes after ${read}: all ${vocabulary.length} tokens`),
        el("thead", {}, el("tr", {}, ["token", "id", "logit", "probability", "0 to 1"].map((text) =>
          el("th", { scope: "col" }, text)))),
        el("tbody", {}, rows))),
      box),
  ];
}

function explainLetter(say, decoded, vocabulary, row, id, { top, sum }) {
  const { logits, probabilities } = decoded;
  const outside = id === PAD || id === BOS, logit = at(logits, row, id);
  const softmax = outside ? "no part of a sentence: its logit becomes −∞, its probability 0"
    : `exp(${shown(logit)} − ${inner(top)}) / Σ = ${shown(Math.exp(logit - top))} / ` +
      `${shown(sum)} = ${shown(at(probabilities, row, id))}`;
  say(`${tokenName(vocabulary[id])}: logit ${shown(logit)}, ` +
    `probability ${shown(at(probabilities, row, id))}`, "",
  [...explain(logits, row, id), { text: `softmax: ${softmax}` }]);
}

function bar(share) {
  const made = el("span", { class: "bar", "aria-hidden": true });
  made.style.width = `${100 * share}%`;
  return made;
}

/** Greedy search, a row per letter. */
function showGreedy(found, vocabulary) {
  const rows = found.steps.map(({ token, log_p, total }, number) =>
    [String(number), tokenName(vocabulary[token]), shown(Math.exp(log_p)), shown(log_p),
      shown(total)]);
  return plainTable(`${rows.length} steps`, ["step", "letter", "probability", "log-probability",
    "sum so far"], rows);
}

/** Beam search: its settings, the tree of beams, and one step with all its candidates. */
function showBeams(found, vocabulary, choice, verdict, settle, again) {
  choice.step = Math.min(choice.step, found.steps.length - 1);
  const move = (step) => { choice.step = step; again(); };
  return [
    el("div", { class: "row controls" },
      picker("beam-K", "beams K", [1, 2, 3, 4, 5, 8], choice.K, (K) => settle({ K })),
      picker("beam-alpha", "length penalty α", [0, 0.3, 0.6, 1], choice.alpha,
        (alpha) => settle({ alpha }))),
    el("p", {}, el("strong", {}, textOf(found.ids, vocabulary)), ` · log-probability ` +
      `${shown(found.total)}, divided by the penalty of ${found.ids.length} tokens ` +
      `${shown(lengthPenalty(found.ids.length, choice.alpha))}: ${shown(found.value)}. `,
    verdict),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "tree of beams" },
      tree(found, vocabulary, choice.step, move)),
    el("p", { class: "soft" }, "A column per step, the best beam at the top; the thick line leads " +
      "to the translation. A dot is a beam that has ended. Choose a column to see its step."),
    stepControls(found, choice.step, move),
    ...showStep(found, vocabulary, choice),
  ];
}

function picker(id, label, values, chosen, choose) {
  const options = values.map((value) => el("option", { value, selected: value === chosen &&
    "selected" }, String(value)));
  return el("label", { for: id }, label, el("select", { id,
    change: ({ target }) => choose(Number(target.value)) }, options));
}

function stepControls(found, step, move) {
  const last = found.steps.length - 1;
  const go = (to) => () => move(Math.min(last, Math.max(0, to)));
  return el("div", { class: "row" },
    el("button", { type: "button", id: "step-back", click: go(step - 1) }, "‹ back"),
    el("label", { for: "step" }, `step ${step} of 0 to ${last}`),
    el("input", { id: "step", type: "range", min: 0, max: last, value: step,
      input: ({ target }) => move(Number(target.value)) }),
    el("button", { type: "button", id: "step-on", click: go(step + 1) }, "on ›"));
}

/** One step: the candidates, what is kept, and why the search goes on or stops. */
function showStep(found, vocabulary, choice) {
  const { candidates, before, beams, kept, hope, reached, stays } = found.steps[choice.step];
  const rows = candidates.map((one, rank) => el("tr", { class: one.kept ? "kept" : "dropped" },
    el("th", { scope: "row" }, String(rank)),
    beamCell(textOf(before[one.beam].ids, vocabulary) || "BOS"),
    el("td", { class: "letter" }, before[one.beam].finished ? "ended" : tokenName(vocabulary[one.token])),
    el("td", {}, shown(before[one.beam].total)), el("td", {}, shown(one.log_p)),
    el("td", {}, shown(one.total)), el("td", {}, one.kept ? "kept" : "dropped")));
  const heads = ["rank", "beam", "goes on with", "its score", "+ log p", "= score", ""];
  const out = kept && !beams.includes(kept) ? [kept] : []; // it fell out of the beam
  const ended = [...out, ...beams.filter((beam) => beam.finished)].map((beam) => el("li", {},
    `${textOf(beam.ids, vocabulary)}, ${beam.ids.length} tokens: ${shown(beam.total)} / ` +
    `((5 + ${beam.ids.length}) / 6)^${choice.alpha} = ${shown(beam.value)}`));
  return [
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "candidates" },
      el("table", { class: "plain" },
        el("caption", {}, `step ${choice.step}: of each beam the ${choice.K} best continuations; ` +
          "a score is a log-probability"),
        el("thead", {}, el("tr", {}, heads.map((text) => el(text ? "th" : "td",
          { scope: text ? "col" : null, class: text === "beam" ? "text" : null }, text)))),
        el("tbody", {}, rows))),
    ended.length ? el("p", {}, "Finished, divided by the length penalty:") : null,
    ended.length ? el("ul", {}, ended) : null,
    el("p", {}, judgement(ended.length, hope, reached, stays)),
  ];
}

/** What a beam has written: its end, where it is long. */
function beamCell(text) {
  const end = text.length > LONGEST_SHOWN ? `…${text.slice(-LONGEST_SHOWN)}` : text;
  return el("td", { class: "text", title: text }, end);
}

function judgement(ended, hope, reached, stays) {
  if (!ended) return stays ? "No beam has ended: the search goes on." : "The search is at its limit.";
  if (hope === -Infinity) return "All beams have ended: the search stops.";
  return `An unfinished beam can still reach ${shown(hope)} at most; the best finished one has ` +
    `${shown(reached)}: the search ${stays ? "goes on" : "stops"}.`;
}

/** The rank of the winner's ancestor at each step, up to the last at which it is in the beam. */
function pathOf(found) {
  const path = [];
  const { pick } = found.steps.at(-1); // which may have fallen out of the beam before the end
  const last = found.steps.findLastIndex(({ beams }) => beams.includes(pick));
  let rank = found.steps[last].beams.indexOf(pick);
  for (const { beams } of found.steps.slice(0, last + 1).toReversed()) {
    path.unshift(rank);
    rank = beams[rank].origin;
  }
  return path;
}

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

/** The tree of beams: a column per step, a line from each beam to the one that it goes on from. */
function tree(found, vocabulary, now, choose) {
  const K = Math.max(...found.steps.map(({ beams }) => beams.length)), path = pathOf(found);
  const x = (step) => 40 + 34 * step, y = (rank) => 18 + 32 * rank;
  const [width, height] = [x(found.steps.length), y(K) + 6];
  const drawing = svg("svg", { class: "tree", width, height, role: "img", "aria-label":
    `Tree of ${K} beams over ${found.steps.length} steps; the table below has its numbers.` });
  drawing.append(svg("rect", { class: "now", x: x(now) - 17, y: 0, width: 34, height }));
  const lines = [], nodes = [];
  found.steps.forEach(({ beams, before }, step) => beams.forEach((beam, rank) => {
    const best = path[step] === rank ? "best" : "";
    if (step) lines.push(svg("line", { class: best, x1: x(step - 1), y1: y(beam.origin),
      x2: x(step), y2: y(rank) }));
    nodes.push(svg("circle", { class: best, cx: x(step), cy: y(rank), r: 12 }));
    const letter = step && before[beam.origin].finished ? "·" : tokenName(vocabulary[beam.ids.at(-1)]);
    nodes.push(svg("text", { x: x(step), y: y(rank) + 4.5,
      ...(letter.length > 1 && { class: "ends" }) }, letter));
  }));
  const numbers = found.steps.map((_, step) => svg("text", { class: "ranks", x: x(step),
    y: height - 4 }, String(step)));
  drawing.addEventListener("click", ({ clientX }) => {
    const step = Math.round((clientX - drawing.getBoundingClientRect().left - x(0)) / 34);
    choose(Math.min(found.steps.length - 1, Math.max(0, step)));
  });
  drawing.append(...lines.sort((one) => one.getAttribute("class") ? 1 : -1), ...nodes, ...numbers);
  return drawing;
}
