"""Tasks that examples set: how a published decoder goes on with them (lesson 15).

`python -m benchmarks.prompts` takes minutes and writes data/prompts.json; it needs the file that
`autograder data fetch smollm2` fetches.
"""

import json
import random

import torch

from attention.modern_decoder import ModernDecoder
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


def pairs_of(task: str, seed: int) -> tuple[str, list[list[str]]]:
    """A text of three examples, drawn by the seed; and the other pairs, to be asked."""
    words = TASKS[task].split()
    pairs = [words[i : i + 2] for i in range(0, len(words), 2)]
    random.Random(seed).shuffle(pairs)
    return "".join(f"{asked}: {answer}\n" for asked, answer in pairs[:3]), pairs[3:]


def main() -> None:
    """Count how many of ten next tokens begin the right answer, by what stands before, and task."""
    file = smollm2.read()
    model, tokens = smollm2.load(ModernDecoder, file), smollm2.Tokens(file, bpe_encode)
    names, found = [*TASKS], {kind: {task: list[int]() for task in TASKS} for kind in KINDS}
    for seed in SEEDS:
        for task, another in zip(names, names[1:] + names[:1], strict=True):
            (own, pairs), (other, _) = pairs_of(task, seed), pairs_of(another, seed)
            for kind, begin in zip(KINDS, ("", other, own), strict=True):
                right = 0
                for asked, answer in pairs:
                    ids = torch.tensor([tokens.encode(f"{begin}{asked}:")])
                    with torch.no_grad():
                        scores = model(ids)[0][0, -1]
                    right += int(scores.argmax()) == tokens.encode(f" {answer}")[0]
                found[kind][task].append(right)
        print(seed, found, flush=True)
    examples, pairs = pairs_of("opposites", 0)
    stored = {"prompt": f"{examples}{pairs[0][0]}:", "asked": len(pairs), "right": found}
    PATH.write_text(json.dumps(stored) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
