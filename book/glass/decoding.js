// Greedy and beam search, as in attention/decoding.py, with a cache of keys and values (lesson 13).
"use strict";

/** What the cross-attentions look at: keys and values of the memory, projected once. */
function startDecoder(model, memory) {
  const sources = model.decoder.layers.map(({ cross_attention: layer }) => ({
    k: rowsOf(linear(memory, layer.W_k)), v: rowsOf(linear(memory, layer.W_v)),
  }));
  return { length: 0, sources, past: model.decoder.layers.map(() => ({ k: [], v: [] })) };
}

/** The rows of a matrix as a list. */
function rowsOf(x) {
  return Array.from({ length: x.rows }, (_, t) => x.data.subarray(t * x.cols, (t + 1) * x.cols));
}

/** All heads of one query, (1, d_model), over lists of keys and values: contexts side by side. */
function attendRow(q, keys, values, n_heads) {
  const merged = matrix(1, q.cols), d_head = q.cols / n_heads, scale = Math.sqrt(d_head);
  for (let first = 0; first < q.cols; first += d_head) {
    const scores = keys.map((key) => {
      let sum = 0;
      for (let d = first; d < first + d_head; d++) sum += q.data[d] * key[d];
      return sum / scale;
    });
    const peak = Math.max(...scores), raised = scores.map((score) => Math.exp(score - peak));
    const total = raised.reduce((sum, value) => sum + value, 0);
    values.forEach((value, j) => {
      const weight = raised[j] / total;
      for (let d = first; d < first + d_head; d++) merged.data[d] += weight * value[d];
    });
  }
  return merged;
}

/** Read one token; returns log-probabilities of the next one, and the state after it. */
function step(model, state, token) {
  const n = model.n_heads, past = [];
  let x = embedded([token], model.target_embedding, state.length).x;
  model.decoder.layers.forEach((layer, number) => {
    const normed = layerNorm(x, layer.norm_1), self = layer.attention;
    const k = [...state.past[number].k, linear(normed, self.W_k).data];
    const v = [...state.past[number].v, linear(normed, self.W_v).data];
    past.push({ k, v });
    x = add(x, linear(attendRow(linear(normed, self.W_q), k, v, n), self.W_o));
    const cross = layer.cross_attention, source = state.sources[number];
    const q = linear(layerNorm(x, layer.norm_2), cross.W_q);
    x = add(x, linear(attendRow(q, source.k, source.v, n), cross.W_o));
    x = feedForward(x, layer.norm_3, layer.feed_forward, {}).out;
  });
  const logits = linear(layerNorm(x, model.decoder.norm), model.generator);
  const log_probs = logSoftmax(onlyWords(logits).data);
  return { log_probs, state: { ...state, length: state.length + 1, past } };
}

function logSoftmax(logits) {
  const peak = Math.max(...logits);
  const sum = logits.reduce((total, value) => total + Math.exp(value - peak), 0);
  return Array.from(logits, (value) => value - peak - Math.log(sum));
}

/** Take the most probable next token each time, up to EOS or max_length tokens. */
function greedySearch(model, memory, max_length) {
  let state = startDecoder(model, memory), token = BOS, total = 0;
  const steps = [];
  while (token !== EOS && steps.length < max_length) {
    const next = step(model, state, token);
    token = next.log_probs.indexOf(Math.max(...next.log_probs));
    total += next.log_probs[token];
    steps.push({ token, log_p: next.log_probs[token], total, log_probs: next.log_probs });
    state = next.state;
  }
  return { ids: steps.map((one) => one.token), total, steps };
}

/** The length penalty of Wu et al. (2016): ((5 + length) / 6) ** alpha. */
function lengthPenalty(length, alpha) {
  return ((5 + length) / 6) ** alpha;
}

/** The K best continuations of one beam; a finished beam stays as it is, at no cost. */
function continuations(model, beam, number, K) {
  if (beam.finished) return [{ beam: number, token: PAD, log_p: 0, total: beam.total }];
  const next = step(model, beam.state, beam.ids.at(-1) ?? BOS);
  beam.after = next.state;
  return next.log_probs
    .map((log_p, token) => ({ beam: number, token, log_p, total: beam.total + log_p }))
    .sort((one, other) => other.total - one.total)
    .slice(0, K)
    .filter((one) => one.total > -Infinity);
}

/** A beam with one more token. */
function extended(beam, { token, total, beam: origin }) {
  const ids = beam.finished ? beam.ids : [...beam.ids, token];
  const finished = beam.finished || token === EOS;
  return { ids, total, finished, origin, state: beam.after };
}

/**
 * The best finished hypothesis so far, `kept` or one of these beams, and whether an unfinished beam
 * may still become better. While the kept one is in the beam, it is the beam of the newest step.
 */
function judge(beams, kept, longest, written, alpha) {
  for (const beam of beams) {
    beam.value = beam.total / lengthPenalty(beam.ids.length, alpha);
    // At most: no loss from now on, and the greatest length.
    beam.hope = beam.finished ? -Infinity : beam.total / lengthPenalty(longest, alpha);
  }
  const best = (list) => list.reduce((one, other) => other.value >= one.value ? other : one);
  const ended = [...(kept ? [kept] : []), ...beams.filter((beam) => beam.finished)];
  const hope = Math.max(...beams.map((beam) => beam.hope));
  kept = ended.length ? best(ended) : null;
  const reached = kept ? kept.value : -Infinity;
  return { kept, pick: kept ?? best(beams), hope, reached,
    stays: hope > reached && longest > written };
}

/**
 * Search for the translation with the largest length-normalised log-probability.
 *
 * Returns {ids, total, value, steps}; each step has its candidates, best first (of each beam the K
 * best, all beams together), the K beams that were kept, and the judgement on going on.
 */
function beamSearch(model, memory, K, alpha, max_length) {
  const steps = [];
  let beams = [{ ids: [], total: 0, finished: false, state: startDecoder(model, memory) }];
  let verdict = { kept: null, stays: true };
  while (verdict.stays) {
    const candidates = beams
      .flatMap((beam, number) => continuations(model, beam, number, K))
      .sort((one, other) => other.total - one.total);
    candidates.forEach((one, rank) => { one.kept = rank < K; });
    const old = beams;
    beams = candidates.slice(0, K).map((one) => extended(old[one.beam], one));
    for (const beam of old) beam.state = beam.after = null; // free the cache
    verdict = judge(beams, verdict.kept, max_length, steps.length + 1, alpha);
    steps.push({ candidates, before: old, beams, ...verdict });
  }
  const { ids, total, value } = verdict.pick;
  return { ids, total, value, steps };
}
