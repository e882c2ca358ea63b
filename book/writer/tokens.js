// Byte-level BPE, as in attention/tokens_and_positions.py, with the words of attention/provided/data/words.py.
"use strict";

// Python's \s and \w are not those of JavaScript.
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const LETTER = "\\p{L}\\p{Nl}\\p{No}_";
const WORD = new RegExp(` ?[${LETTER}]+| ?\\p{Nd}+| ?[^${LETTER}\\p{Nd}${SPACE}]+` +
  `|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]+`, "gu");

/** Letters, digits or other signs, with the space before them. */
function splitWords(text) {
  return text.match(WORD) ?? [];
}

/** The rank of each pair, and the bytes of each id: all of a tokeniser, out of its merges. */
function tokenizerOf(merges) {
  const ranks = new Map(merges.map(([left, right], rank) => [`${left},${right}`, rank]));
  const bytes = Array.from({ length: 256 }, (_, byte) => [byte]);
  for (const [left, right] of merges) bytes.push([...bytes[left], ...bytes[right]]);
  return { ranks, bytes };
}

/** The ids of a text: within each word, the pair that was learned first is merged first. */
function encodeText(text, { ranks }) {
  return splitWords(text).flatMap((word) => {
    const ids = [...new TextEncoder().encode(word)];
    for (;;) {
      let best = Infinity, place = -1;
      for (let i = 0; i + 1 < ids.length; i++) {
        const rank = ranks.get(`${ids[i]},${ids[i + 1]}`) ?? Infinity;
        if (rank < best) [best, place] = [rank, i];
      }
      if (place < 0) return ids;
      ids.splice(place, 2, 256 + best);
    }
  });
}

/** The text of ids; bytes that are no UTF-8, as in half a character, become U+FFFD. */
function decodeText(ids, { bytes }) {
  const all = Uint8Array.from(ids.flatMap((id) => bytes[id]));
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(all);
}

/** One token by itself: what cannot be seen gets a sign, and half a character its bytes. */
function tokenText(id, tokenizer) {
  const text = decodeText([id], tokenizer);
  if (!/[\ufffd\x00-\x09\x0b-\x1f\x7f]/.test(text)) return text.replaceAll("\n", "↵\n");
  return tokenizer.bytes[id].map((byte) => `⟨${byte.toString(16).padStart(2, "0")}⟩`).join("");
}
