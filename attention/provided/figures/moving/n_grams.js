// Lesson 14: which n-grams count, and the score that comes of them. data: pairs of sentences.
const given = choice("pair", data.map(({ name }) => name), () => {
  hypothesis.set(data[given.index()].hypothesis);
  reference.set(data[given.index()].reference);
});
const order = slider("n", [1, 2, 3, 4], 1);
const hypothesis = field("hypothesis", data[0].hypothesis);
const reference = field("reference", data[0].reference);

const split = (text) => text.split(/\s+/).filter(Boolean);
const grams = (tokens, n) => tokens.slice(n - 1).map((_, i) => tokens.slice(i, i + n).join(" "));
// For each n-gram whether it counts: as often as the reference has it, the first ones do.
const counting = (ours, theirs) => {
  const left = new Map();
  for (const one of theirs) left.set(one, (left.get(one) || 0) + 1);
  return ours.map((one) => {
    const there = left.get(one) || 0;
    left.set(one, there - 1);
    return there > 0;
  });
};
const bleu = (matches, totals, c, r) => {
  if (!sum(matches) || totals.includes(0)) return 0;
  let misses = 0; // smoothed: the first order without a match counts as a half, the next a quarter
  const logs = matches.map((one, i) => Math.log((one || 0.5 ** ++misses) / totals[i]));
  return 100 * Math.min(1, Math.exp(1 - r / c)) * Math.exp(sum(logs) / 4);
};

figure(() => {
  const ours = split(hypothesis()), theirs = split(reference()), n = order();
  const hits = [1, 2, 3, 4].map((size) => counting(grams(ours, size), grams(theirs, size)));
  const matches = hits.map((one) => sum(one.map(Number))), totals = hits.map((one) => one.length);
  const score = bleu(matches, totals, ours.length, theirs.length);
  const brevity = ours.length ? Math.min(1, Math.exp(1 - theirs.length / ours.length)) : 0;
  const chips = grams(ours, n).map((gram, i) => html("li", { style: "padding: 1px 7px; "
    + `border: 2px solid var(--${hits[n - 1][i] ? "c" : "rule"})` },
    `${hits[n - 1][i] ? "✓" : "✗"} ${gram}`));
  stage.append(html("ul", { "aria-label": `${n}-grams of the hypothesis`, style: "display: flex; "
    + "flex-wrap: wrap; gap: 6px; list-style: none; padding: 0; margin: 8px 0; width: 100%" },
    ...chips));
  const on = panel({ title: "Precision: n-grams that count, of all", y: [0, 1.1], across: "n",
    names: ["1", "2", "3", "4"] });
  matches.forEach((one, i) => {
    on.bar(i, totals[i] ? one / totals[i] : 0, i === n - 1 ? "b" : "a");
    on.text(on.X(i), on.Y(totals[i] ? one / totals[i] : 0) - 5, `${one}/${totals[i]}`,
      { "text-anchor": "middle" });
  });
  return [`${matches[n - 1]} of ${many(totals[n - 1], `${n}-gram`)} count. Tokens: `
    + `${ours.length}, in the reference ${theirs.length}; brevity penalty ${brevity.toFixed(3)}. `
    + `BLEU of this one sentence: ${score.toFixed(2)}.`,
    { hypothesis: ours, reference: theirs, matches, totals, brevity, bleu: score }];
});
