// Tables of the writer's page: what could stand at a place, where a head looked, what is kept.
"use strict";

const BEST = 8; // candidates that are shown
const BEST_OF_ALL = "probabilities of the best tokens, before and after top-p";
const NEAR = 6; // weights that are shown

/** A number with its thousands apart, and a share with four decimals. */
function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u00a0");
}

function shareText(value) {
  if (value > 0 && value < 0.00005) return "< 0.0001";
  return value.toFixed(4);
}

/** “ was”, “↵”: one token's text, in quotation marks. */
function quoted(text) {
  return `“${text.replaceAll("\n", "")}”`;
}

function bar(share) {
  const made = el("span", { class: "bar" });
  made.style.width = `${100 * Math.min(1, share)}%`;
  return made;
}

/** A table that keeps its height: rows are lists of cells, the first of which names the row. */
function fixedTable(kind, caption, head, rows, count) {
  const filled = [...rows, ...Array.from({ length: Math.max(0, count - rows.length) }, () => ({
    cells: ["\u00a0", ...head.slice(1).map(() => "")],
  }))];
  const cellsOf = ({ cells, share, kind: of }) => el("tr", { class: of ?? "" },
    cells.map((cell, n) => n ? el("td", {}, cell) : el("th", { scope: "row", class: "token" }, cell)),
    el("td", { class: "bars" }, share === undefined ? "" : bar(share)));
  return el("table", { class: `plain fixed ${kind}` }, el("caption", {}, caption),
    el("colgroup", {}, [...head, ""].map(() => el("col"))),
    el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)), el("td"))),
    el("tbody", {}, filled.map(cellsOf)));
}

function tick(taken) {
  return taken ? [el("span", { "aria-hidden": true }, "✓"), el("span", { class: "unseen" }, taken)] : "";
}

/** The best candidates for a place, and the one that stands there, with those that top-p cut. */
function candidateTable(found, id, taken, nameOf) {
  const head = ["token", el("span", { class: "unseen" }, "taken"), "before", "after"];
  if (!found) return fixedTable("candidates", BEST_OF_ALL, head, [], BEST + 2);
  const { probabilities, order, kept, share } = found, rank = order.indexOf(id);
  const ranks = Array.from({ length: BEST }, (_, n) => n);
  if (rank >= BEST) ranks[BEST - 1] = rank;
  const rows = ranks.map((n) => {
    const p = probabilities[order[n]], stays = n < kept;
    return { share: p, kind: `${stays ? "" : "dropped"} ${n === rank ? "taken" : ""}`.trim(), cells: [
      quoted(nameOf(order[n])), tick(n === rank ? taken : ""), shareText(p),
      stays ? shareText(p / share) : "cut"] };
  });
  const others = (from, to, name, kind) => {
    const hidden = order.slice(from, to).filter((_, n) => !ranks.includes(from + n));
    const sum = hidden.reduce((total, one) => total + probabilities[one], 0);
    return { share: sum, kind, cells: [`${grouped(hidden.length)} others`, "", shareText(sum),
      name ?? shareText(sum / share)] };
  };
  return fixedTable("candidates", BEST_OF_ALL, head, [...rows,
    others(0, kept), others(kept, order.length, "cut", "dropped")], BEST + 2);
}

/** The largest weights of one head, of a query that is the last of the tokens. */
function lookTable(weights, namesOf) {
  const last = weights.length - 1;
  const order = Array.from(weights.keys()).sort((one, other) => weights[other] - weights[one]);
  const rows = order.slice(0, NEAR).map((j) => ({ share: weights[j], cells: [
    quoted(namesOf(j)), j === last ? "itself" : `${last - j} before`, shareText(weights[j])] }));
  const rest = order.slice(NEAR).reduce((sum, j) => sum + weights[j], 0);
  if (order.length > NEAR) {
    rows.push({ share: rest, kind: "dropped",
      cells: [`${order.length - NEAR} others`, "", shareText(rest)] });
  }
  return fixedTable("looks", "the largest weights", ["token", "where", "weight"], rows, NEAR + 1);
}

/** How large the cache is, and what the model would have to keep or to do otherwise. */
function cacheTables(model, cache, typed, most) {
  const T = cache.length, bytes = cacheBytes(cache);
  const { n_layers, n_heads, n_kv_heads, d_model } = model, d_head = d_model / n_heads;
  const each = 2 * n_layers * n_kv_heads * d_head * Float32Array.BYTES_PER_ELEMENT;
  let again = 0;
  for (let t = typed; t <= T; t++) again += t;
  const full = each * most * n_heads / n_kv_heads;
  const size = (name, number, share) => ({ share, cells: [name, grouped(number)] });
  return [
    el("p", { class: "sum" }, `A key and a value (2) · ${n_layers} layers · ${n_kv_heads} heads · ` +
      `${d_head} numbers · 4 bytes = ${grouped(each)} bytes for each token; for ${T} tokens `,
      el("strong", {}, `${grouped(bytes)} bytes`), "."),
    fixedTable("kept", `bytes kept; a full bar is ${most} tokens`, ["keys and values", "bytes"], [
      size(`${n_kv_heads} heads, shared by ${n_heads} query heads`, bytes, bytes / full),
      size(`if each of the ${n_heads} query heads had its own`, bytes * n_heads / n_kv_heads,
        bytes * n_heads / n_kv_heads / full)], 2),
    fixedTable("kept", "tokens that had to pass through the layers", ["way", "tokens"], [
      size("with the cache: each of them once", T, T / Math.max(1, again)),
      size("without: the whole text for each new one", again, Math.min(1, again))], 2),
  ];
}
