// How a token is drawn, as in attention/decoding.py, with the random numbers of PyTorch.
"use strict";

const STATES = 624, LATER = 397;

/**
 * The random numbers of torch.Generator().manual_seed(seed): each call gives that of torch.rand(1).
 *
 * It is the Mersenne Twister of Matsumoto and Nishimura (1998); of its 32 bits torch.rand takes 24.
 */
function randomNumbers(seed) {
  const state = new Uint32Array(STATES);
  state[0] = seed;
  for (let i = 1; i < STATES; i++) {
    const before = state[i - 1] ^ (state[i - 1] >>> 30);
    state[i] = Math.imul(1812433253, before) + i;
  }
  let next = STATES;
  const twist = () => {
    for (let i = 0; i < STATES; i++) {
      const both = (state[i] & 0x80000000) | (state[(i + 1) % STATES] & 0x7fffffff);
      state[i] = state[(i + LATER) % STATES] ^ (both >>> 1) ^ (both & 1 ? 0x9908b0df : 0);
    }
    next = 0;
  };
  return () => {
    if (next === STATES) twist();
    let bits = state[next++];
    bits ^= bits >>> 11;
    bits ^= (bits << 7) & 0x9d2c5680;
    bits ^= (bits << 15) & 0xefc60000;
    bits ^= bits >>> 18;
    return (bits & 0xffffff) / 2 ** 24;
  };
}

function softmax(scores) {
  const peak = scores.reduce((most, score) => Math.max(most, score), -Infinity);
  const raised = scores.map((score) => Math.exp(score - peak));
  const total = raised.reduce((sum, value) => sum + value, 0);
  return raised.map((value) => value / total);
}

/**
 * What can be drawn: the scores divided by the temperature, and of these the nucleus.
 *
 * Returns the probabilities, the ids from the most probable on, how many of them top-p keeps (the
 * fewest that reach p together), and what share of the probability these have.
 */
function candidatesOf(scores, temperature, p) {
  const probabilities = softmax(scores.map((score) => score / temperature));
  const order = Array.from(probabilities.keys()).sort((one, other) =>
    probabilities[other] - probabilities[one] || one - other);
  let kept = 0, share = 0;
  while (kept < order.length && (p >= 1 || share < p)) share += probabilities[order[kept++]];
  return { probabilities, order, kept, share };
}

/** The first id at which the kept probabilities, added up in the order of the ids, exceed the noise. */
function drawToken({ probabilities, order, kept, share }, noise) {
  const ids = order.slice(0, kept).sort((one, other) => one - other);
  let sum = 0;
  return ids.find((id) => (sum += probabilities[id]) > noise * share) ?? ids.at(-1);
}
