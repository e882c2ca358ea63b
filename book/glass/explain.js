// Where a number comes from: an entry of a matrix, as sentences and a table of its terms.
//
// An explanation is a list of {text, terms}. `text` is one line of arithmetic with the real
// numbers. `terms`, if it is there, are the products that were added: {caption, head, rows}.
"use strict";

const SHOWN = 8; // the largest products of a long sum; the others are added up in one line

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A number as the page shows it: four decimals, fewer where it is large, more where it is small. */
function shown(value, decimals = 4) {
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 0.00005) return value.toFixed(size >= 1000 ? 2 : decimals).replace("-", "−");
  const [digits, power] = value.toExponential(1).split("e-");
  return `${digits.replace("-", "−")}·10⁻${[...power].map((digit) => RAISED[digit]).join("")}`;
}

/** The same in parentheses if it is negative, to stand behind an operator. */
function inner(value) {
  return value < 0 ? `(${shown(value)})` : shown(value);
}

function entry(x, row, col) {
  return `${x.name}[${row}, ${col}]`;
}

const EXPLAIN = {
  embed(x, row, col) {
    const { ids, table, scale } = x.from, value = at(table, ids[row], col);
    return [{ text: `embedding: row ${ids[row]} of the table, feature ${col}: ${shown(value)}; times ` +
      `√${table.cols}: ${shown(value)} · ${shown(scale)} = ${shown(at(x, row, col))}` }];
  },
  rows(x, row, col) {
    const parts = x.from.rows.map(({ name, table, row: of }) =>
      `row ${of(row)} of ${name}: ${shown(at(table, of(row), col))}`);
    return [{ text: `feature ${col} of ${parts.join("; ")}; their sum = ${shown(at(x, row, col))}` }];
  },
  positions(x, row, col) {
    const wave = col % 2 ? "cos" : "sin", exponent = `${col - (col % 2)}/${x.cols}`;
    return [{ text: `position: ${wave}(${x.from.first + row} / 10000^(${exponent})) = ` +
      shown(at(x, row, col)) }];
  },
  add(x, row, col) {
    const { x: left, update } = x.from;
    const [a, b] = [at(left, row, col), at(update, row, col)];
    const sum = { text: `${left.name} + ${update.name}: ${shown(a)} + ${inner(b)} = ` +
      shown(at(x, row, col)) };
    const first = left.from.op === "embed" ? [left, update] : []; // where the model begins
    return [sum, ...first.flatMap((one) => explain(one, row, col))];
  },
  norm(x, row, col) {
    const { x: before, layer, means, deviations, eps } = x.from;
    const [value, mean, deviation] = [at(before, row, col), means[row], deviations[row]];
    const [scale, shift] = [layer.weight.data[col], layer.bias.data[col]];
    return [
      { text: `mean of this row of ${before.name}: ${shown(mean)}; standard deviation, ` +
        `√(variance + ${eps.toFixed(12).replace(/0+$/, "")}): ${shown(deviation)}` },
      { text: `(${shown(value)} − ${inner(mean)}) / ${shown(deviation)} = ` +
        shown((value - mean) / deviation) },
      { text: `times its weight ${inner(scale)}, plus its bias ${inner(shift)} = ` +
        shown(at(x, row, col)) },
      ...(before.from.op === "rows" ? explain(before, row, col) : []), // where the model begins
    ];
  },
  linear(x, row, col) {
    const { x: before, layer } = x.from;
    const products = Array.from({ length: before.cols }, (_, d) => ({
      name: `feature ${d}`, left: at(before, row, d), right: at(layer.weight, col, d),
    }));
    const bias = layer.bias ? layer.bias.data[col] : null;
    const sum = at(x, row, col) - (bias ?? 0);
    const weight = layer.weight.name.split(".").at(-2);
    const text = `row ${row} of ${before.name} · row ${col} of ${weight}` + (bias === null
      ? ` = ${shown(sum)}`
      : `, plus the bias: ${shown(sum)} + ${inner(bias)} = ${shown(at(x, row, col))}`);
    return [{ text, terms: terms(products, [before.name, weight]) }];
  },
  relu(x, row, col) {
    const before = at(x.from.x, row, col);
    return [
      { text: `max(0, ${shown(before)}) = ${shown(at(x, row, col))}` },
      ...explain(x.from.x, row, col),
    ];
  },
  gelu(x, row, col) {
    const before = at(x.from.x, row, col);
    return [
      { text: `x · Φ(x), Φ the share of a normal distribution below x: ${shown(before)} · ` +
        `${shown(shareBelow(before))} = ${shown(at(x, row, col))}` },
      ...explain(x.from.x, row, col),
    ];
  },
  head(x, row, col) {
    const { x: whole, first } = x.from;
    return [
      { text: `this head has features ${first} to ${first + x.cols - 1} of ${whole.name}: ` +
        `feature ${col} of the head is ${entry(whole, row, first + col)}` },
      ...explain(whole, row, first + col),
    ];
  },
  average(x, row, col) {
    const { weights, v } = x.from;
    const products = Array.from({ length: v.rows }, (_, j) => ({
      name: `key ${j}`, left: at(weights, row, j), right: at(v, j, col),
    }));
    return [{
      text: `Σ over the keys of weight · v = ${shown(at(x, row, col))}`,
      terms: terms(products, ["weight", `v[key, ${col}]`]),
    }];
  },
  merge(x, row, col) {
    const { heads, d_head } = x.from, head = Math.floor(col / d_head);
    return [
      { text: `the heads' contexts side by side: feature ${col} is feature ${col % d_head} of ` +
        `head ${head}` },
      ...explain(heads[head].context, row, col % d_head),
    ];
  },
};

function explain(x, row, col) {
  return EXPLAIN[x.from.op](x, row, col);
}

/** The table of a sum of products: the largest ones, and the others in one row. */
function terms(products, names) {
  const sorted = products
    .map((one) => ({ ...one, product: one.left * one.right }))
    .sort((one, other) => Math.abs(other.product) - Math.abs(one.product));
  const few = sorted.length <= SHOWN + 2 ? sorted : sorted.slice(0, SHOWN);
  const rows = few.map(({ name, left, right, product }) =>
    [name, shown(left), shown(right), shown(product)]);
  const others = sorted.slice(few.length).reduce((sum, { product }) => sum + product, 0);
  const left = sorted.length - few.length;
  if (left) rows.push([`the ${left} others`, "", "", shown(others)]);
  const total = sorted.reduce((sum, { product }) => sum + product, 0);
  rows.push(["sum", "", "", shown(total)]);
  const caption = left ? `the ${few.length} largest of ${sorted.length} products` : "all products";
  return { caption, head: ["", ...names, "product"], rows };
}

/** The arithmetic of one cell of an attention matrix: four steps to its weight, and what it adds. */
function explainWeight(head, row, col, keys) {
  const { q, k, v, scores, scaled, masked, weights } = head;
  const { mask } = masked.from, { peaks, sums } = weights.from;
  const may = mask(row, col), raised = Math.exp(at(masked, row, col) - peaks[row]);
  const columns = Array.from({ length: q.cols }, (_, d) => d);
  const wide = (name, f) => [name, ...columns.map((d) => shown(f(d), 3))];
  return [
    {
      title: "1 · score: q · k",
      text: `the sum of these ${q.cols} products is ${shown(at(scores, row, col))}`,
      terms: {
        caption: "query, key and their product, feature by feature",
        head: ["feature", ...columns],
        rows: [wide(`q[${row}]`, (d) => at(q, row, d)), wide(`k[${col}]`, (d) => at(k, col, d)),
          wide("product", (d) => at(q, row, d) * at(k, col, d))],
      },
    },
    {
      title: "2 · scaled: divided by √d_head",
      text: `${shown(at(scores, row, col))} / √${q.cols} = ${shown(at(scaled, row, col))}`,
    },
    {
      title: "3 · mask",
      text: may ? `query ${row} may attend to key ${col}: the score stays`
        : `key ${col} is in the future of query ${row}: the score becomes −∞`,
    },
    {
      title: "4 · weight: softmax over the keys",
      text: `exp(${shown(at(masked, row, col))} − ${inner(peaks[row])}) / Σ = ` +
        `${shown(raised)} / ${shown(sums[row])} = ${shown(at(weights, row, col))}` +
        `; ${shown(peaks[row])} is the largest score of the row, Σ the sum over all keys`,
      terms: rowOfWeights(head, row, col, keys),
    },
    {
      title: "5 · what it adds to the context",
      text: `weight · v: ${shown(at(weights, row, col))} times each feature of v[${col}]; the sum ` +
        `over all keys is the context of query ${row}`,
      terms: {
        caption: "the value, what this key adds, and the whole context of the query",
        head: ["feature", ...columns],
        rows: [wide(`v[${col}]`, (d) => at(v, col, d)),
          wide("weight · v", (d) => at(weights, row, col) * at(v, col, d)),
          wide("context", (d) => at(head.context, row, d))],
      },
    },
  ];
}

/** The softmax of a query's row: every key, or the chosen one and those with the largest weights. */
function rowOfWeights({ masked, weights }, row, chosen, labels) {
  const { peaks } = weights.from;
  const sorted = Array.from({ length: weights.cols }, (_, j) => j)
    .sort((one, other) => at(weights, row, other) - at(weights, row, one));
  const few = sorted.length <= SHOWN + 4 ? sorted.length : SHOWN;
  const keys = sorted.filter((j, rank) => rank < few || j === chosen);
  const rest = sorted.filter((j) => !keys.includes(j));
  const sum = (list, f) => list.reduce((total, j) => total + f(j), 0);
  const raised = (j) => Math.exp(at(masked, row, j) - peaks[row]);
  const weight = (j) => at(weights, row, j);
  const rows = keys.map((j) => [`${j}, ${labels[j]}${j === chosen ? " (chosen)" : ""}`,
    shown(at(masked, row, j)), shown(raised(j)), shown(weight(j))]);
  if (rest.length) {
    rows.push([`the ${rest.length} others`, "", shown(sum(rest, raised)), shown(sum(rest, weight))]);
  }
  rows.push(["Σ", "", shown(sum(sorted, raised)), shown(sum(sorted, weight))]);
  return { caption: "the row's keys, the largest weights first",
    head: ["key", "score", "exp(score − max)", "weight"], rows };
}
