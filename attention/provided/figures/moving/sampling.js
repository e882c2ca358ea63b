// Lesson 13: what may be drawn. data: tokens, scores (recorded), before (what is written so far).
const V = data.tokens.length, SHOWN = 12;
const temperature = slider("temperature", range(1, 30).map((n) => n / 10), 1,
  (one) => one.toFixed(1));
const k = slider("top-k", range(1, V), V, (n) => n < V ? String(n) : "off");
const p = slider("top-p", range(1, 20).map((n) => n / 20), 1,
  (one) => one < 1 ? one.toFixed(2) : "off");

// The scores of the k best; then those of the nucleus, which reaches p together.
const best = (scores) => {
  const last = [...scores].sort((a, b) => b - a)[k() - 1];
  return scores.map((one) => one >= last ? one : -Infinity);
};
const nucleus = (scores) => {
  const shares = softmax(scores), order = range(0, V - 1).sort((a, b) => shares[b] - shares[a]);
  const kept = scores.map(() => -Infinity);
  let before = 0;
  for (const i of order) {
    if (before < p()) kept[i] = scores[i];
    before += shares[i];
  }
  return kept;
};

figure(() => {
  const hot = data.scores.map((one) => one / temperature()), few = k() < V ? best(hot) : hot;
  const kept = p() < 1 ? nucleus(few) : few, shares = softmax(kept), all = softmax(hot);
  const recorded = softmax(data.scores);
  const order = range(0, V - 1).sort((a, b) => data.scores[b] - data.scores[a]);
  const shown = order.slice(0, SHOWN), names = shown.map((i) => data.tokens[i]);
  const on = panel({ title: `What may follow “${data.before}”`, y: [0, 1], height: 240, names,
    across: `next token: the ${SHOWN} most probable of ${V}` });
  shown.forEach((i, at) => {
    on.bar(at, shares[i], "a");
    on.bar(at, all[i], "none", 0.7, { class: "stroke-soft" });
  });
  const left = order.filter((i) => kept[i] > -Infinity);
  const named = left.slice(0, 5).map((i) => `“${data.tokens[i]}” ${shares[i].toFixed(2)}`);
  return [`${left.length} of ${V} tokens can be drawn: ${named.join(", ")}`
    + `${left.length > 5 ? ", …" : ""}. Before the filters (outlined) they have `
    + `${sum(left.map((i) => all[i])).toFixed(2)} of the probability.`,
    { temperature: temperature(), k: k(), p: p(), shares, recorded }];
});
