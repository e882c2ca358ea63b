// Lesson 18: a softmax that sees its keys a tile at a time.
const SCORES = [1, 3, 2, 5, 0.5, 4, 6, 2.5, 1.5, 7, 3.5, 5.5];
const VALUES = [10, 20, 30, 40, 15, 25, 35, 5, 45, 30, 20, 10], T = SCORES.length;
const block = slider("keys in a tile", [1, 2, 3, 4, 6, 12], 3, (n) => String(n));
const seen = slider("tiles seen", range(0, 4), 1, (n) => String(n));

// Take in the next tile: what was summed up shrinks where the maximum has grown.
const take = ({ maximum, total, context }, from, to) => {
  const largest = Math.max(maximum, ...SCORES.slice(from, to));
  const shrink = Math.exp(maximum - largest);
  const powers = SCORES.slice(from, to).map((one) => Math.exp(one - largest));
  return { maximum: largest, shrink, total: shrink * total + sum(powers),
    context: shrink * context + sum(powers.map((one, j) => one * VALUES[from + j])) };
};
const restart = () => seen.refill(range(0, T / block()), Math.min(seen(), T / block()));

let before = block();
figure(() => {
  if (block() !== before) restart();
  before = block();
  let now = { maximum: -Infinity, total: 0, context: 0, shrink: 1 };
  const steps = range(1, seen()).map((n) => (now = take(now, (n - 1) * block(), n * block())));
  const end = seen() * block(), start = Math.max(0, end - block());
  const names = range(1, T).map(String), full = softmax(SCORES);
  const whole = sum(full.map((weight, j) => weight * VALUES[j]));
  const scores = panel({ title: "Scores, tile by tile; dashed: the maximum so far", y: [0, 8],
    names, across: "key", parts: 2 });
  SCORES.forEach((one, j) => scores.bar(j, one, j >= end ? "soft" : j >= start ? "b" : "a", 0.7,
    { "fill-opacity": j >= end ? 0.25 : 1 }));
  if (seen()) scores.rule(scores.X(-0.5), scores.Y(now.maximum), scores.X(T - 0.5),
    scores.Y(now.maximum), "stroke-b dashed");
  const weights = panel({ title: "exp(score − maximum) / sum, so far; outlined: the end",
    y: [0, 1], names, across: "key", parts: 2 });
  const shares = SCORES.map((one, j) => j < end ? Math.exp(one - now.maximum) / now.total : 0);
  shares.forEach((one, j) => {
    weights.bar(j, one, j >= start ? "b" : "a");
    weights.bar(j, full[j], "none", 0.7, { class: "stroke-soft" });
  });
  const output = seen() ? now.context / now.total : null, done = end === T;
  const shrank = seen() > 1 ? `The old sums were multiplied by ${now.shrink.toFixed(4)}. ` : "";
  return [seen() ? `After ${end} of ${T} keys: maximum ${now.maximum}, sum `
    + `${now.total.toFixed(4)}, weighted sum ${now.context.toFixed(4)}, output `
    + `${output.toFixed(4)}. ${shrank}${done ? "The softmax of all keys at once gives"
      : "In the end it will be"} ${whole.toFixed(4)}.` : "No key has been seen: both sums are 0.",
    { scores: SCORES, values: VALUES, block: block(), steps, shares, output, whole }];
});
