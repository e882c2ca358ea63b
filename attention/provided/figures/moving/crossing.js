// Lesson 03: recorded alignments. data: a list of {words, letters, weights in thousandths}.
const number = choice("number", data.map(({ words, letters }) =>
  `${words.slice(0, -1).join(" ")} → ${letters.slice(0, -1).join("")}`), () =>
  step.refill(range(1, count()), half()));
const count = () => data[number.index()].letters.length, half = () => Math.ceil(count() / 2);
const step = slider("letters written", range(1, count()), half());

figure(() => {
  const { words: source, letters, weights } = data[number.index()], now = step() - 1;
  const rows = weights.map((row) => row.map((one) => one / 1000));
  const on = sheet("Read above, written below; the thicker a line, the larger the weight", 150);
  const place = (i, of) => (i + 0.5) * Math.min(on.width / of, 90);
  const best = (row) => row.indexOf(Math.max(...row));
  const join = (i, j, kind, width) => on.rule(place(j, source.length), 22,
    place(i, letters.length), 120, `stroke-${kind}`, { "stroke-width": width });
  for (let i = 0; i < now; i++) join(i, best(rows[i]), "soft", 1);
  rows[now].forEach((weight, j) => { if (weight > 0.01) join(now, j, "b", 1 + 7 * weight); });
  const middle = { "text-anchor": "middle" };
  source.forEach((word, j) => on.text(place(j, source.length), 14, word, middle));
  letters.slice(0, step()).forEach((letter, i) => on.text(place(i, letters.length), 138, letter,
    i === now ? { ...middle, class: "title fill-b" } : middle));
  heat({ title: "All weights so far: letters down, words across", down: letters.slice(0, step()),
    across: source, rows: rows.slice(0, step()), marked: now });
  const order = rows[now].map((weight, j) => [weight, j]).sort((a, b) => b[0] - a[0]);
  const looks = order.filter(([weight], n) => !n || weight >= 0.1)
    .map(([weight, j]) => `“${source[j]}” ${weight.toFixed(2)}`);
  return [`Letter ${step()} of ${letters.length}, “${letters[now]}”, looks at `
    + `${looks.join(", ")}. Thin lines: where each earlier letter looked most.`,
    { letters: letters.slice(0, step()), source, weights: rows[now] }];
});
