// Matrices to look at: colours, a table of scores or weights, a map of features, thumbnails.
"use strict";

// matplotlib's YlGnBu, the course's map of weights, from 0 to 1; and PuOr for numbers of both signs.
const WEIGHTS = ["ffffd9", "edf8b1", "c7e9b4", "7fcdbb", "41b6c4", "1d91c0", "225ea8", "253494",
  "081d58"];
const SIGNED = ["7f3b08", "b35806", "e08214", "fdb863", "fee0b6", "f7f7f7", "d8daeb", "b2abd2",
  "8073ac", "542788", "2d004b"];
const SIGNED_DARK = ["fee0b6", "fdb863", "e08214", "b35806", "7f3b08", "1c1c22", "432a75", "5e4a9c",
  "8073ac", "b2abd2", "d8daeb"];

const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

function rgb(hex) {
  return [0, 2, 4].map((place) => parseInt(hex.slice(place, place + 2), 16));
}

/** The colour at a share from 0 to 1 of a list of colours: [r, g, b]. */
function between(colours, share) {
  const place = Math.min(1, Math.max(0, share)) * (colours.length - 1);
  const low = Math.min(Math.floor(place), colours.length - 2), part = place - low;
  const [one, other] = [rgb(colours[low]), rgb(colours[low + 1])];
  return one.map((value, channel) => Math.round(value + part * (other[channel] - value)));
}

/** On a dark page the map runs backwards, so that 0 is the page's own darkness. */
function weightColour(weight) {
  return between(WEIGHTS, prefersDark.matches ? 1 - weight : weight);
}

function signedColour(value, limit) {
  return between(prefersDark.matches ? SIGNED_DARK : SIGNED, 0.5 + value / limit / 2);
}

/** Black or white, whichever is easier to read on a colour. */
function inkOn(colour) {
  const [r, g, b] = colour.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

function css([r, g, b]) {
  return `rgb(${r} ${g} ${b})`;
}

/** The largest absolute value of a matrix, without -∞; at least a little above 0. */
function limitOf(x) {
  return x.data.reduce((most, value) =>
    Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most, 1e-9);
}

/** An element: attributes by name, functions as listeners, then its children. */
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** A cell's number in a few characters: .83 of a weight, −3.2 of a score. */
function brief(value, isWeight) {
  if (value === -Infinity) return "−∞";
  if (!isWeight) return value.toFixed(1).replace(/^-0\.0$/, "0.0").replace("-", "−");
  if (value < 0.005) return "0";
  return value >= 0.995 ? "1" : value.toFixed(2).slice(1);
}

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** The cell that a key moves to from (row, col), or null for another key. */
function moved(event, row, col, x) {
  const jumps = { Home: [row, 0], End: [row, x.cols - 1], PageUp: [0, col],
    PageDown: [x.rows - 1, col] };
  const arrow = ARROWS[event.key];
  if (!arrow && !jumps[event.key]) return null;
  event.preventDefault();
  const [r, c] = arrow ? [row + arrow[0], col + arrow[1]] : jumps[event.key];
  return [Math.min(x.rows - 1, Math.max(0, r)), Math.min(x.cols - 1, Math.max(0, c))];
}

/**
 * A table of scores or weights, queries down and keys across; one cell is chosen.
 *
 * choose(row, col) is called when a click or an arrow key chooses another cell.
 */
function weightTable(x, queries, keys, label, chosen, choose) {
  const isWeight = x.name === "weights", limit = limitOf(x), cells = [];
  const select = (row, col, focus) => {
    mark(cells, chosen, false);
    chosen = [row, col];
    mark(cells, chosen, true);
    if (focus) cells[row][col].focus();
    choose(row, col);
  };
  const cell = (row, col) => {
    const value = at(x, row, col);
    const colour = isWeight ? weightColour(value) : value === -Infinity ? null
      : signedColour(value, limit);
    const made = el("td", { role: "gridcell", tabindex: -1, title:
      `query ${queries[row]}, key ${keys[col]}: ${shown(value)}` }, brief(value, isWeight));
    if (colour) Object.assign(made.style, { background: css(colour), color: inkOn(colour) });
    else made.classList.add("masked");
    Object.assign(made, { place: [row, col] });
    return made;
  };
  const head = el("tr", { role: "row" }, el("th", { scope: "col", class: "corner" }, "query ↓ key →"),
    keys.map((key) => el("th", { scope: "col", role: "columnheader" }, el("span", {}, key))));
  const body = queries.map((query, row) => {
    cells.push(keys.map((_, col) => cell(row, col)));
    return el("tr", { role: "row" }, el("th", { scope: "row", role: "rowheader" }, query),
      cells[row]);
  });
  const long = keys.length > 7 && keys.some((key) => key.length > 4); // then they stand upright
  const table = el("table", {
    role: "grid", "aria-label": label,
    class: `weights${keys.length > 12 ? " many" : ""}${long ? " long" : ""}`,
    click: ({ target }) => target.place && select(...target.place, true),
    keydown: (event) => {
      const to = event.target.place && moved(event, ...event.target.place, x);
      if (to) select(...to, true);
    },
  }, el("thead", {}, head), el("tbody", {}, body));
  mark(cells, chosen, true);
  return el("div", { class: "scroll tall" }, table);
}

function mark(cells, [row, col], yes) {
  const one = cells[row][col];
  one.classList.toggle("chosen", yes);
  one.tabIndex = yes ? 0 : -1;
  one.setAttribute("aria-selected", yes);
}

/** Draw a matrix on a canvas, a rectangle per number. */
function paint(canvas, x, width, height, colour) {
  const ratio = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: x.cols * width * ratio, height: x.rows * height * ratio });
  Object.assign(canvas.style, { width: `${x.cols * width}px`, height: `${x.rows * height}px` });
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  for (let row = 0; row < x.rows; row++) {
    for (let col = 0; col < x.cols; col++) {
      pen.fillStyle = css(colour(at(x, row, col)));
      pen.fillRect(col * width, row * height, width, height);
    }
  }
  return pen;
}

/** A small picture of weights, on the same scale from 0 to 1 as the table. */
function thumbnail(weights) {
  const [width, height] = [weights.cols, weights.rows].map((n) => Math.max(1, Math.floor(66 / n)));
  const canvas = el("canvas", { "aria-hidden": true });
  paint(canvas, weights, width, height, weightColour);
  return canvas;
}

/**
 * A map of features: a row per position, a column per feature; one entry is chosen.
 *
 * choose(row, col) is called when a click or an arrow key chooses another entry.
 */
function featureMap(x, labels, label, chosen, choose) {
  const few = x.cols <= 24, width = few ? 38 : x.cols <= 64 ? 11 : 6, height = 20;
  const limit = limitOf(x);
  const canvas = el("canvas", { tabindex: 0, role: "application", "aria-label":
    `${label}. Arrow keys choose an entry; its number and where it comes from stand below.` });
  const draw = () => {
    const pen = paint(canvas, x, width, height, (value) => signedColour(value, limit));
    if (few) write(pen, x, width, height, limit);
    const [row, col] = chosen;
    for (const [colour, line] of [["#fff", 4], ["#000", 2]]) {
      Object.assign(pen, { strokeStyle: colour, lineWidth: line });
      pen.strokeRect(col * width + 1, row * height + 1, width - 2, height - 2);
    }
  };
  const select = (row, col) => {
    chosen = [row, col];
    draw();
    choose(row, col);
  };
  canvas.addEventListener("click", (event) => {
    const row = Math.floor(event.offsetY / height), col = Math.floor(event.offsetX / width);
    select(Math.min(x.rows - 1, row), Math.min(x.cols - 1, col));
  });
  canvas.addEventListener("keydown", (event) => {
    const to = moved(event, ...chosen, x);
    if (to) select(...to);
  });
  canvas.addEventListener("mousemove", (event) => {
    const row = Math.floor(event.offsetY / height), col = Math.floor(event.offsetX / width);
    if (row < x.rows && col < x.cols) canvas.title = `[${row}, ${col}] = ${shown(at(x, row, col))}`;
  });
  draw();
  const names = el("div", { class: "names", "aria-hidden": true },
    labels.map((text) => el("span", {}, text)));
  return [
    el("div", { class: "scroll tall" }, el("div", { class: "map" }, names,
      el("div", {}, canvas, axis(x.cols, width, few ? 1 : 8)))),
    legend("Features across, positions down.", (share) => signedColour(share * 2 - 1, 1),
      [-limit, 0, limit].map((value) => brief(value, false))),
  ];
}

/** Write each number of a matrix into its rectangle. */
function write(pen, x, width, height, limit) {
  Object.assign(pen, { font: "11px system-ui, sans-serif", textAlign: "center",
    textBaseline: "middle" });
  for (let row = 0; row < x.rows; row++) {
    for (let col = 0; col < x.cols; col++) {
      pen.fillStyle = inkOn(signedColour(at(x, row, col), limit));
      pen.fillText(brief(at(x, row, col), false), (col + 0.5) * width, (row + 0.5) * height);
    }
  }
}

/** The numbers of the features, every so many, below a map. */
function axis(count, width, every) {
  const made = el("div", { class: "axis", "aria-hidden": true });
  for (let feature = 0; feature < count; feature += every) {
    const tick = el("span", {}, String(feature));
    tick.style.width = `${every * width}px`;
    made.append(tick);
  }
  if (every === 1) made.classList.add("centred");
  return made;
}

/** A colour scale with its numbers. */
function legend(text, colour, numbers) {
  const bar = el("canvas", { "aria-hidden": true });
  const steps = matrix(1, 60, "");
  steps.data.forEach((_, place) => { steps.data[place] = place / 59; });
  paint(bar, steps, 2, 10, colour);
  const scale = el("span", { class: "ticks" }, numbers.map((number) => el("span", {}, number)));
  return el("p", { class: "legend" }, text, " ", el("span", { class: "scale" }, bar, scale));
}
