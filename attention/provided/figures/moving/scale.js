// Lesson 05: dot products of random vectors, and what a softmax makes of them.
const KEYS = 10, MOST = 1024;
// Fixed draws: Marsaglia's xorshift, and normal numbers by Box and Muller.
let state = 20170612;
const uniform = () => {
  state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
  return ((state >>> 0) + 0.5) / 2 ** 32;
};
const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
const draw = () => Array.from({ length: MOST }, normal);
const q = draw(), keys = Array.from({ length: KEYS }, draw);

const size = slider("d", range(0, 10).map((power) => 2 ** power), 64);
const scaled = choice("scores", ["divided by √d", "not divided"]);

figure(() => {
  const d = size(), divided = scaled.index() === 0;
  const products = keys.map((k) => sum(q.slice(0, d).map((one, i) => one * k[i])));
  const scores = products.map((one) => divided ? one / Math.sqrt(d) : one);
  const weights = softmax(scores), most = Math.max(...weights);
  const spread = Math.sqrt(sum(scores.map((one) => one * one)) / KEYS);
  const names = range(1, KEYS).map(String), across = "key", reach = divided ? 4 : 100;
  const left = panel({ title: "Scores of one query", y: [-reach, reach], names, across, parts: 2 });
  scores.forEach((one, j) => left.bar(j, Math.max(-reach, Math.min(reach, one)), "b"));
  const right = panel({ title: "Weights: their softmax", y: [0, 1], names, across, parts: 2 });
  weights.forEach((one, j) => right.bar(j, one, "a"));
  return [`d = ${d}, ${scaled()}: the scores are ${spread.toFixed(1)} from 0 on average (root mean `
    + `square; √d is ${Math.sqrt(d).toFixed(1)}). The largest weight is ${most.toFixed(3)}, and `
    + `${many(weights.filter((one) => one > 0.01).length, "key has", "keys have")} a weight above `
    + "0.01.", { d, divided, q: q.slice(0, d), keys: keys.map((k) => k.slice(0, d)), scores,
    weights }];
});
