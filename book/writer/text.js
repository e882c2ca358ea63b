// The text as a list of tokens, of which one is chosen, and what the page shows of that one.
"use strict";

/** The place that is looked at: what could stand there, and how what stands there came to it. */
function placeOf(t) {
  const before = text.after[t - 1], id = text.ids[t], drawn = text.drawn[t];
  const { temperature, p } = drawn ?? settings();
  return { before, id, drawn, temperature, p,
    found: before && candidatesOf(before.scores, temperature, p) };
}

/** The same in sentences. */
function placeText({ found, id, drawn, temperature, p }) {
  if (!found) return "Nothing stands before the first token, so nothing was expected here.";
  const { probabilities, order, kept, share } = found;
  const filter = `At temperature ${temperature}, top-p ${p} keeps ${grouped(kept)} of ` +
    `${grouped(order.length)} tokens, which have ${shareText(share)} of the probability.`;
  if (id === undefined) return `What comes next? ${filter}`;
  const rank = `${shareText(probabilities[id])}, rank ${grouped(order.indexOf(id) + 1)}`;
  return drawn ? `Place ${chosen}: ${quoted(nameOf(id))} was drawn, by the random number ` +
    `${drawn.noise.toFixed(4)}. Its probability was ${rank}. ${filter}`
    : `Place ${chosen}: you typed ${quoted(nameOf(id))}. Its probability was ${rank}. ${filter}`;
}

function showPlace() {
  const place = placeOf(chosen);
  part("place-said").setAttribute("aria-live", writing ? "off" : "polite");
  part("place-said").textContent = placeText(place);
  part("place").replaceChildren(candidateTable(place.found, place.id,
    place.drawn ? "written" : "typed", nameOf));
  showLooks(place);
}

/** Where the chosen head looked: in a table, and as colours of the text. */
function showLooks({ before }) {
  const weights = before ? before.looks[look.layer][look.head] : new Float64Array(0);
  const last = weights.length - 1;
  part("looks").replaceChildren(
    el("p", {}, before ? `Layer ${look.layer}, head ${look.head}, place ${last}: where ` +
      `${quoted(nameOf(text.ids[last]))} looks, from which place ${chosen} is chosen.`
      : "Nothing stands before the first token."),
    lookTable(weights, (j) => nameOf(text.ids[j])),
    legend("Colours of the weights in the text", weightColour, ["0", "0.5", "1"]));
  Array.from(part("text").children).forEach((option, t) => {
    const seen = t <= last && weights[t] >= 0.01, colour = seen ? weightColour(weights[t]) : null;
    option.style.background = colour ? css(colour) : "";
    option.style.color = colour ? inkOn(colour) : "";
    option.classList.toggle("asks", t === last);
  });
}

function showChoice() {
  const button = (kind, value) => el("button", { type: "button", id: `${kind}-${value}`,
    "aria-pressed": String(look[kind] === value), click: () => {
      look[kind] = value;
      showChoice();
      part(`${kind}-${value}`).focus();
      showLooks(placeOf(chosen));
    } }, String(value));
  const group = (kind, count) => el("div", { class: "row dense", role: "group", "aria-label": kind },
    el("span", { class: "what" }, kind), Array.from({ length: count }, (_, n) => button(kind, n)));
  part("looks-choice").replaceChildren(group("layer", model.n_layers), group("head", model.n_heads));
}

function option(t) {
  const id = text.ids[t], shown = id === undefined ? "▁" : nameOf(id);
  const name = id === undefined ? "what comes next" : shown === "↵\n" ? "new line" : null;
  const made = el("span", { role: "option", tabindex: -1, "aria-selected": "false",
    "aria-label": name, class: t < text.typed ? "typed" : "" }, shown);
  made.place = t;
  return made;
}

/** Choose a place; `focus` where the keyboard or the mouse did. */
function choose(t, focus) {
  const options = part("text").children;
  for (const one of part("text").querySelectorAll(".chosen")) {
    one.classList.remove("chosen");
    one.setAttribute("aria-selected", "false");
    one.tabIndex = -1;
  }
  chosen = Math.max(0, Math.min(options.length - 1, t));
  const now = options[chosen];
  now.classList.add("chosen");
  now.setAttribute("aria-selected", "true");
  now.tabIndex = 0;
  if (focus) {
    following = false;
    now.focus({ preventScroll: true });
  }
  intoView(now);
  showPlace();
}

/** Scroll the text, and never the page. */
function intoView(one) {
  const box = part("text"), above = one.offsetTop - box.scrollTop;
  if (above < 0) box.scrollTop = one.offsetTop - 8;
  const below = one.offsetTop + one.offsetHeight - box.clientHeight;
  if (box.scrollTop < below) box.scrollTop = below + 8;
}

/** Show what has come to the text since it was shown last, or all of it. */
function showText(anew) {
  const box = part("text");
  const focused = box.contains(document.activeElement);
  const shownSoFar = anew ? 0 : box.children.length - 1;
  while (box.children.length > shownSoFar) box.lastChild.remove();
  for (let t = shownSoFar; t <= text.ids.length; t++) box.append(option(t));
  part("write-on").setAttribute("aria-disabled", String(Boolean(writing) || text.ids.length >= MOST));
  part("cache").replaceChildren(...cacheTables(model, text.cache, text.typed, MOST));
  // Drawn at the end of the text is the newest token; what comes after it is not there to be seen.
  choose(following ? writing ? text.ids.length - 1 : text.ids.length : chosen, false);
  if (focused && !box.contains(document.activeElement)) box.children[chosen].focus();
}

const ARROW = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };

/** The place nearest below or above, on another line. */
function onOtherLine(down) {
  const options = Array.from(part("text").children), middle = (box) => (box.left + box.right) / 2;
  const here = options[chosen].getClientRects()[0];
  const boxes = options.map((one, t) => ({ t, box: one.getClientRects()[0] }))
    .filter(({ box }) => down ? box.top > here.top + 4 : box.top < here.top - 4);
  const line = Math[down ? "min" : "max"](...boxes.map(({ box }) => box.top));
  const near = boxes.filter(({ box }) => Math.abs(box.top - line) < 4).sort((one, other) =>
    Math.abs(middle(one.box) - middle(here)) - Math.abs(middle(other.box) - middle(here)));
  return near[0]?.t ?? chosen;
}
