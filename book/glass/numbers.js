// Numbers in words, as attention/provided/data/numbers.py writes them: the corpus of the course.
"use strict";

const LARGEST = 999999;

const ENGLISH = {
  small: ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen " +
    "fifteen sixteen seventeen eighteen nineteen").split(" "),
  tens: "- - twenty thirty forty fifty sixty seventy eighty ninety".split(" "),
};
const GERMAN = {
  small: ("null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn " +
    "fünfzehn sechzehn siebzehn achtzehn neunzehn").split(" "),
  tens: "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split(" "),
};

/** Join the words of 0 … 999 999: thousands, then what is left of them. */
function inWords(number, group, thousand, between) {
  const thousands = Math.floor(number / 1000), rest = number % 1000;
  const parts = [];
  if (thousands) parts.push(thousand(thousands));
  if (rest || !thousands) parts.push(group(rest));
  return parts.join(between);
}

function inEnglish(number) {
  const { small, tens } = ENGLISH;
  const group = (n) => {
    if (n >= 100) return `${small[Math.floor(n / 100)]} hundred${n % 100 ? ` ${group(n % 100)}` : ""}`;
    if (n >= 20) return tens[Math.floor(n / 10)] + (n % 10 ? ` ${small[n % 10]}` : "");
    return small[n];
  };
  return inWords(number, group, (n) => `${group(n)} thousand`, " ");
}

function inGerman(number) {
  const { small, tens } = GERMAN;
  const one = (n) => n === 1 ? "ein" : small[n];
  const group = (n) => {
    if (n >= 100) return `${one(Math.floor(n / 100))}hundert${n % 100 ? group(n % 100) : ""}`;
    if (n >= 20) return (n % 10 ? `${one(n % 10)}und` : "") + tens[Math.floor(n / 10)];
    return small[n];
  };
  return inWords(number, group, (n) => `${n === 1 ? "ein" : group(n)}tausend`, "");
}

const MOST_WORDS = 12;

/**
 * Read what was typed: a number in digits, or English words.
 *
 * Returns {words, number} (number is null for words), or {problem}: one sentence to show.
 */
function readInput(text, vocabulary) {
  const typed = text.trim().toLowerCase();
  if (!typed) return { problem: `Type a number from 1 to ${LARGEST}, or its English words.` };
  const joined = /^\d{1,3}([\s,.'’]\d{3})+$/.test(typed) ? typed.replace(/\D/g, "") : typed;
  if (/^\d+$/.test(joined)) {
    const digits = joined.replace(/^0+(?=\d)/, "");
    if (digits === "0") return { problem: `The model has never seen zero: type a number from 1 on.` };
    if (digits.length <= 6) {
      return { number: Number(digits), words: inEnglish(Number(digits)).split(" ") };
    }
    return { problem: `This number has ${digits.length} digits, and the model has only seen ` +
      `numbers of 1 to 6 digits: type one from 1 to ${LARGEST}.` };
  }
  const words = typed.split(/\s+/);
  const unknown = words.find((word) => vocabulary.indexOf(word) <= EOS);
  if (unknown !== undefined) return { problem: notKnown(unknown) };
  if (words.length > MOST_WORDS) {
    return { problem: `These are ${words.length} words: type at most ${MOST_WORDS}.` };
  }
  return { number: null, words };
}

function notKnown(word) {
  const odd = [...word].find((letter) => !/[a-z0-9]/.test(letter));
  const shown = word.length > 30 ? `${word.slice(0, 30)}…` : word;
  const why = odd ? `: the character “${odd}” stands in no word of it` : "";
  return `“${shown}” is not in the model's vocabulary${why}. ` +
    `Type digits alone, as in 231, or English words, as in “two hundred thirty one”.`;
}
