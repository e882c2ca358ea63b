"""Tasks that examples set: how a published decoder goes on with them (lessons 15 and 21).

`python -m benchmarks.prompts` takes minutes and writes data/prompts.json; it needs the file that
`autograder data fetch smollm2` fetches.
"""

import json
import random
import re
from typing import Any

import torch

from attention.modern_decoder import ModernDecoder, generate_with_cache
from attention.provided.files import ROOT
from attention.provided.models.decoders import smollm2
from attention.tokens_and_positions import bpe_encode

PATH = ROOT / "data" / "prompts.json"
SEEDS = (0, 1, 2)
TASKS = {
    "capitals": "France Paris Japan Tokyo Egypt Cairo Italy Rome Spain Madrid Russia Moscow "
    "China Beijing Greece Athens Germany Berlin England London Austria Vienna Ireland Dublin "
    "Cuba Havana",
    "opposites": "hot cold big small early late full empty rich poor fast slow left right "
    "open closed wet dry young old strong weak up down good bad",
    "past tense": "go went see saw take took eat ate write wrote run ran give gave come came "
    "know knew fall fell think thought sing sang buy bought",
}
KINDS = ("nothing", "three examples of another task", "three examples of this task")
EXCHANGED, ASKED = "examples with exchanged answers", "asked as a question"  # lesson 21's
QUESTIONS = {
    "capitals": "What is the capital of {}?",
    "opposites": "What is the opposite of {}?",
    "past tense": "What is the past tense of {}?",
}


def pairs_of(task: str, seed: int, moved: int = 0) -> tuple[str, list[list[str]]]:
    """A text of three examples, drawn by the seed; and the other pairs, to be asked.

    moved  by how many examples their answers are moved on
    """
    words = TASKS[task].split()
    pairs = [words[i : i + 2] for i in range(0, len(words), 2)]
    random.Random(seed).shuffle(pairs)
    answers = [pairs[(number + moved) % 3][1] for number in range(3)]
    text = "".join(f"{one[0]}: {answer}\n" for one, answer in zip(pairs, answers, strict=False))
    return text, pairs[3:]


def prompts(task: str, seed: int) -> dict[str, str]:
    """By its kind, what the model reads; {} is the word that is asked for."""
    names = [*TASKS]
    another = names[(names.index(task) + 1) % len(names)]
    texts = ("", pairs_of(another, seed)[0], pairs_of(task, seed)[0], pairs_of(task, seed, 1)[0])
    found = {kind: f"{text}{{}}:" for kind, text in zip((*KINDS, EXCHANGED), texts, strict=True)}
    return found | {ASKED: QUESTIONS[task]}


class Model:
    """The published model: what it says, as a set, and what of that would be a word."""

    def __init__(self) -> None:
        self.model, self.tokens = smollm2.opened(ModernDecoder, bpe_encode)

    def says(self, kind: str, text: str) -> set[Any]:
        """The best next token of a text; of a question, the words that begin the answer."""
        text = smollm2.prompt([("user", text)]) if kind == ASKED else text
        ids = torch.tensor([self.tokens.encode(text)])
        length = 16 if kind == ASKED else 1
        new = generate_with_cache(self.model, ids, lambda scores: scores.argmax(dim=1), length)[0]
        if kind == ASKED:
            return {*re.findall(r"\w+", self.tokens.decode(new.tolist()).lower())}
        return {*new.tolist()}

    def as_said(self, kind: str, word: str) -> Any:
        """What `says` holds if the word is said: its first token, or the word itself."""
        return word.lower() if kind == ASKED else self.tokens.encode(f" {word}")[0]


def main() -> None:
    """Count how many of ten answers are right, by what stands before, and task.

    And how many are answers of the task at all, right or wrong.
    """
    model = Model()
    found: dict[str, dict[str, dict[str, list[int]]]] = {
        count: {kind: {task: [] for task in TASKS} for kind in (*KINDS, EXCHANGED, ASKED)}
        for count in ("right", "of the task")
    }
    for seed in SEEDS:
        for task, words in TASKS.items():
            pairs = pairs_of(task, seed)[1]
            for kind, text in prompts(task, seed).items():
                said = [model.says(kind, text.format(asked)) for asked, _ in pairs]
                right = [model.as_said(kind, own) for _, own in pairs]
                every = {model.as_said(kind, answer) for answer in words.split()[1::2]}
                found["right"][kind][task].append(
                    sum(own in one for own, one in zip(right, said, strict=True))
                )
                found["of the task"][kind][task].append(sum(bool(every & one) for one in said))
        print(seed, found, flush=True)
    examples, pairs = pairs_of("opposites", 0)
    lesson_21 = {kind: found["right"].pop(kind) for kind in (EXCHANGED, ASKED)}
    stored = {"prompt": f"{examples}{pairs[0][0]}:", "asked": len(pairs), **found}
    PATH.write_text(json.dumps(stored | {"right too": lesson_21}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
