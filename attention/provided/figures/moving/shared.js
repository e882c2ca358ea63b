// What all moving figures share: controls, panels to draw in, and the words below them. The file
// of one figure follows in the same scope and ends with `figure(draw)`. Nothing moves by itself.
const root = document.currentScript ? document.currentScript.parentElement
  : [...document.querySelectorAll("div.moving")].pop();
const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);

const STYLE = `
.moving { --ink: #222; --soft: #595959; --rule: #d8d8d8; --paper: #fff; --a: #0072b2; --b: #c44f00;
  --c: #007a58; font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  padding: 8px; max-width: 720px; box-sizing: border-box; }
.moving[data-dark] { --ink: #e6e6e6; --soft: #b0b0b0; --rule: #3d434b; --paper: #15181d;
  --a: #56b4e9; --b: #f59b57; --c: #4cc9a0; color-scheme: dark; }
.moving .controls, .moving .stage { display: flex; flex-wrap: wrap; gap: 4px 20px; }
.moving label { display: flex; gap: 8px; align-items: center; margin: 0; max-width: 100%; }
.moving label:has([type=text]) { width: 100%; }
.moving input, .moving select { font: inherit; min-width: 0; min-height: 26px; margin: 0; }
.moving label span { white-space: nowrap; }
.moving input[type=range] { width: 150px; accent-color: var(--a); }
.moving input[type=text] { flex: 1; }
.moving :focus-visible { outline: 2px solid var(--a); outline-offset: 2px; }
.moving .value { min-width: 4.5em; font-variant-numeric: tabular-nums; }
.moving output { display: block; margin-top: 4px; }
.moving svg { display: block; overflow: visible; }
.moving svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.moving .title { font-weight: 600; font-size: 13px; }
.moving svg .soft { fill: var(--soft); }
.moving svg .line { fill: none; stroke-width: 2; }
.moving svg .rule { stroke: var(--rule); stroke-width: 1; }
.moving svg .dashed { stroke-dasharray: 5 4; }
` + ["a", "b", "c", "ink", "soft"].map((kind) => `
.moving svg .fill-${kind} { fill: var(--${kind}); }
.moving svg .stroke-${kind} { stroke: var(--${kind}); fill: none; }`).join("");

const maker = (space) => (name, attributes = {}, ...children) => {
  const made = document.createElementNS(space, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.append(...children);
  return made;
};
const html = maker("http://www.w3.org/1999/xhtml"), svg = maker("http://www.w3.org/2000/svg");
const controls = html("div", { class: "controls" }), stage = html("div", { class: "stage" });
const words = html("output", { "aria-live": "polite" });
let update = () => {}, room = 640; // pixels across

const range = (first, last, step = 1) =>
  Array.from({ length: Math.round((last - first) / step) + 1 }, (_, i) => first + i * step);
const evenly = (low, high, count) => // in the logarithm
  range(0, count - 1).map((i) => low * (high / low) ** (i / (count - 1)));
const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);
const softmax = (scores) => {
  const largest = Math.max(...scores), powers = scores.map((one) => Math.exp(one - largest));
  const total = sum(powers);
  return powers.map((one) => one / total);
};
const many = (count, one, others = one + "s") => `${count} ${count === 1 ? one : others}`;

// Controls. Each is a function that returns its value; they stand in the order of their making.
const labelled = (label, input, ...more) => {
  input.setAttribute("aria-label", label);
  controls.append(html("label", {}, html("span", {}, label), input, ...more));
};
const slider = (label, options, start, show = String) => {
  const input = html("input", { type: "range", min: 0, step: 1 });
  const shown = html("span", { class: "value", "aria-hidden": "true" });
  const value = () => options[+input.value];
  const print = () => {
    shown.textContent = show(value());
    input.setAttribute("aria-valuetext", show(value()));
  };
  value.choose = (wanted) => {
    const off = options.map((one) => Math.abs(one - wanted));
    input.value = off.indexOf(Math.min(...off));
    print();
  };
  value.refill = (others, wanted) => {
    options = others;
    input.max = options.length - 1;
    value.choose(wanted);
  };
  value.enable = (yes) => { input.disabled = !yes; };
  value.refill(options, start);
  input.addEventListener("input", () => { print(); update(); });
  labelled(label, input, shown);
  return value;
};
const choice = (label, names, changed = () => {}) => {
  const input = html("select", {}, ...names.map((name) => html("option", {}, name)));
  const value = () => names[input.selectedIndex];
  value.index = () => input.selectedIndex;
  input.addEventListener("change", () => { changed(); update(); });
  labelled(label, input);
  return value;
};
const field = (label, start) => {
  const input = html("input", { type: "text", spellcheck: "false", maxlength: 200 });
  const value = () => input.value;
  value.set = (text) => { input.value = text; };
  value.set(start);
  input.addEventListener("input", () => update());
  labelled(label, input);
  return value;
};

// A sheet to draw on, `parts` of which stand side by side where there is room.
const sheet = (title, height, parts = 1) => {
  const width = Math.floor(room < 520 ? room : (room - 20 * (parts - 1)) / parts);
  const drawn = svg("svg", { width, height, role: "img", "aria-label": title });
  const above = html("div", { class: "title", "aria-hidden": "true" }, title);
  const put = (name, attributes, ...children) => drawn.append(svg(name, attributes, ...children));
  const text = (x, y, content, attributes = {}) => put("text", { x, y, ...attributes }, content);
  const rule = (x1, y1, x2, y2, kind = "rule", attributes = {}) =>
    put("line", { x1, y1, x2, y2, class: kind, ...attributes });
  stage.append(html("div", { style: `width: ${width}px` }, above, drawn));
  return { width, height, put, text, rule };
};

const tell = (number) => number.toLocaleString("en", { maximumSignificantDigits: 4 });
const ticks = ([low, high]) => {
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return range(first, last).map((one) => Number((one * step).toPrecision(6)));
};

// A sheet with axes. names: what stands below the places 0, 1, 2, … instead of numbers.
const panel = ({ title, x, y, across = "", names, height = 180, parts = 1 }) => {
  const on = sheet(title, height, parts), left = 46, top = 10, bottom = height - 34;
  if (names) x = [-0.5, names.length - 0.5];
  const right = on.width - 20, X = (at) => left + (at - x[0]) / (x[1] - x[0]) * (right - left);
  const Y = (at) => bottom - (at - y[0]) / (y[1] - y[0]) * (bottom - top);
  for (const at of ticks(y)) {
    on.rule(left, Y(at), right, Y(at));
    on.text(left - 5, Y(at) + 4, tell(at), { "text-anchor": "end", class: "soft" });
  }
  const middle = { "text-anchor": "middle", class: "soft" };
  if (names) names.forEach((name, at) => on.text(X(at), bottom + 14, name, middle));
  else ticks(x).forEach((at) => on.text(X(at), bottom + 14, tell(at), middle));
  on.text((left + right) / 2, bottom + 30, across, middle);
  const path = (points) => points.map(([at, up]) => `${X(at).toFixed(1)},${Y(up).toFixed(1)}`);
  return {
    ...on, X, Y,
    line: (points, kind, more = "") => on.put("polyline",
      { points: path(points).join(" "), class: `line stroke-${kind} ${more}` }),
    dots: (points, kind, r = 3) => points.forEach(([at, up]) => on.put("circle",
      { cx: X(at), cy: Y(up), r, class: `fill-${kind}` })),
    bar: (at, up, kind, wide = 0.7, attributes = {}) => {
      const from = Math.min(Y(0), Y(up)), half = Math.max(1, (X(wide) - X(0)) / 2);
      on.put("rect", { x: X(at) - half, y: from, width: 2 * half,
        height: Math.abs(Y(up) - Y(0)), class: `fill-${kind}`, ...attributes });
    },
    upright: (at, kind = "soft") => on.rule(X(at), top, X(at), bottom, `stroke-${kind} dashed`),
  };
};

// A heat map: rows of numbers from 0 to 1, with a name for each row and column, or without names.
const heat = ({ title, rows, down = [], across = [], marked = -1, kind = "a", parts = 1,
  largest = 24 }) => {
  const longest = (names) => Math.max(0, ...names.map((name) => String(name).length));
  const left = 8 + 7 * longest(down), top = 6 + 7 * longest(across);
  const width = room < 520 ? room : (room - 20 * (parts - 1)) / parts;
  const cell = Math.max(4, Math.min(largest, (width - left - 4) / rows[0].length));
  const on = sheet(title, top + cell * rows.length + 6, parts);
  const Y = (i) => top + cell * i, X = (j) => left + cell * j;
  down.forEach((name, i) =>
    on.text(left - 5, Y(i + 0.5) + 4, name, { "text-anchor": "end" }));
  across.forEach((name, j) => on.text(0, 0, name,
    { transform: `translate(${X(j + 0.5) + 4} ${top - 5}) rotate(-90)` }));
  rows.forEach((row, i) => row.forEach((weight, j) => on.put("rect", { x: X(j), y: Y(i),
    width: cell - 1, height: cell - 1, class: `fill-${weight ? kind : "soft"}`,
    "fill-opacity": weight ? Math.max(0.04, weight).toFixed(3) : 0.08 })));
  if (marked >= 0) on.put("rect", { x: left - 1.5, y: Y(marked) - 1.5, height: cell + 2,
    width: cell * rows[marked].length + 2, class: "stroke-b", "stroke-width": 2 });
  return { ...on, X, Y, cell };
};

// `draw` fills the stage and returns the words below, and the numbers that it has shown.
const figure = (draw) => {
  const dark = () => {
    const lab = document.body.dataset.jpThemeLight, book = document.documentElement.dataset.theme;
    return lab ? lab === "false" : book ? book === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const dress = () => root.toggleAttribute("data-dark", dark());
  update = () => {
    room = stage.clientWidth || room;
    stage.replaceChildren();
    [words.textContent, root.numbers] = draw();
  };
  root.querySelector(".without").remove();
  root.addEventListener("keydown", (event) => { // JupyterLab would move to another cell
    const theirs = event.ctrlKey || event.metaKey || event.altKey
      || ["Enter", "Escape"].includes(event.key);
    if (!theirs) event.stopPropagation();
  });
  root.append(html("style", {}, STYLE), controls, stage, words);
  for (const place of [document.documentElement, document.body])
    new MutationObserver(dress).observe(place, { attributeFilter: ["data-theme",
      "data-jp-theme-light"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
  new ResizeObserver(() => { if (stage.clientWidth !== room) update(); }).observe(stage);
  dress();
  update();
};
