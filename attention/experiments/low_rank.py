"""Lesson 21, a second look: the published chat model is taught to spell numbers in German.

What learns is a low-rank update of all layers, or as many numbers elsewhere; what is measured are
numbers that were kept out, and whether other questions are still answered.
"""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from attention.experiments.recorded import Experiment, read
from attention.modern_decoder import ModernDecoder, generate_with_cache
from attention.provided.data.numbers import in_words, is_test
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots, seeds
from attention.provided.models.decoders import smollm2
from attention.provided.training_steps import one_thread
from attention.tokens_and_positions import bpe_encode
from attention.train.core import low_rank
from autograder.terminal_output import readable

Piece = Callable[..., Any]

LESSON, SEEDS = "low_rank", (0, 1, 2)
STEPS, KEPT, LONGEST = 80, 40, 40  # steps; numbers kept out; tokens of an answer at most
RANKS = {"LoRA, rank 8": 8, "LoRA, rank 1": 1, "LoRA, rank 8, answers exchanged": 8}
LAYERS = {"SwiGLU of the last layer": 29, "SwiGLU of layer 15": 15}
OTHERS = {  # questions, and what a right answer contains
    "What is the capital of France?": "Paris",
    "How many legs has a spider?": "8",
    "What is the largest planet of the solar system?": "Jupiter",
    "Who wrote Romeo and Juliet?": "Shakespeare",
    "What is the opposite of hot?": "cold",
    "Which animal barks?": "dog",
    "What do bees make?": "honey",
    "What is the chemical formula of water?": "H2O",
}


# Numbers and questions


def split() -> tuple[list[int], list[int], list[int]]:
    """The numbers below 1 000: those to learn from, 40 to choose a rate by and 40 to test on."""
    kept = [number for number in range(1000) if is_test(number)]
    drawn = random.Random(0).sample(kept, 2 * KEPT)
    return [n for n in range(1000) if not is_test(n)], drawn[:KEPT], drawn[KEPT:]


def spelled(numbers: Sequence[int]) -> list[tuple[str, str]]:
    """Questions about numbers, and their answers."""
    return [(f"In German: {in_words(n, 'en')}", in_words(n, "de")) for n in numbers]


def exchanged(pairs: Sequence[tuple[str, str]], seed: int) -> list[tuple[str, str]]:
    """The same questions, each with the answer to another one."""
    answers = [answer for _, answer in pairs]
    random.Random(seed).shuffle(answers)
    return [(question, answer) for (question, _), answer in zip(pairs, answers, strict=True)]


# The measurements


def answers(model: Any, tokens: Any, questions: Sequence[str]) -> list[str]:
    """What the model answers, always with the best token."""
    rows = [low_rank.asked(tokens, question) for question in questions]
    longest = max(map(len, rows))
    ids = torch.tensor([[PAD] * (longest - len(row)) + row for row in rows])  # PAD in front
    new = generate_with_cache(model, ids, lambda scores: scores.argmax(dim=1), LONGEST)
    return [tokens.decode(row.tolist()) for row in new]


def measured(model: Any, tokens: Any) -> dict[str, Any]:
    """The shares of numbers kept out that are spelled exactly, and the other answers."""
    _, choose, test = (spelled(numbers) for numbers in split())
    found: dict[str, Any] = {}
    for name, pairs in (("to choose by", choose), ("test", test)):
        written = answers(model, tokens, [question for question, _ in pairs])
        right = [one == answer for one, (_, answer) in zip(written, pairs, strict=True)]
        found |= {name: statistics.fmean(right), "written": written[:3]}
    others = answers(model, tokens, [*OTHERS])
    still = sum(word in answer for answer, word in zip(others, OTHERS.values(), strict=True))
    return found | {"others": others, "others right": still}


def untaught() -> dict[str, Any]:
    """The published model as it is."""
    return measured(*smollm2.opened(ModernDecoder, bpe_encode))


def taught(arm: str, rate: float, seed: int, LowRank: Piece, answer_loss: Piece) -> dict[str, Any]:
    """Teach the published model German numbers below 1 000, and measure it."""
    model, tokens = smollm2.opened(ModernDecoder, bpe_encode)
    torch.manual_seed(seed)
    if arm in RANKS:
        low_rank.insert(model, LowRank, RANKS[arm])
    else:
        model.requires_grad_(False)
        model.layers[LAYERS[arm]].feed_forward.requires_grad_(True)
    pairs = spelled(split()[0])
    if arm.endswith("exchanged"):
        pairs = exchanged(pairs, seed)
    begin = time.process_time()
    with one_thread():
        how = (answer_loss, STEPS, rate, seed)
        losses = [*low_rank.teach(model, tokens, pairs, *how, bfloat16=True)]
    seconds = time.process_time() - begin
    return {
        "learned": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "losses": [round(statistics.fmean(losses[i : i + 10]), 3) for i in range(0, STEPS, 10)],
        "seconds": round(seconds, 1),
        **measured(model, tokens),
    }


# What the lesson draws and prints


def rows_of(arm: str) -> list[dict[str, Any]]:
    """The recorded trainings of an arm at the rate that was chosen for it, a seed each."""
    return [dict(row) for row in seeds.where(read(LESSON, "taught"), arm=arm, rate=CHOSEN[arm])]


def draw_teaching() -> dict[str, list[float]]:
    """Draw the share of 40 numbers kept out that are spelled exactly, a dot for each seed.

    The grey line is what comes of exchanged answers: German numbers, but not the right ones. The
    table has the loss of the last ten steps, and how many of eight other questions are answered
    with the right word.

    returns  {arm: the shares}
    """
    (before,) = read(LESSON, "untaught")
    found = {arm: rows_of(arm) for arm in CHOSEN}
    shares = {arm: [row["test"] for row in rows] for arm, rows in found.items()}
    ax = seeds.dots(shares, xlabel="held-out numbers spelled without an error", shares=True)
    by_heart = statistics.median(shares["LoRA, rank 8, answers exchanged"])
    ax.axvline(by_heart, color=plots.GREY, linewidth=1, zorder=0)
    head = f"{'learned':>10}{'rate':>8}   right of {KEPT}, a seed each   loss   other questions"
    print(f"{'':32}{head}")
    print(
        f"{'before':32}{'0':>10}{'':8}   {KEPT * before['test']:<26.0f}{before['others right']:14}"
    )
    for arm, rows in found.items():
        right = "  ".join(f"{KEPT * row['test']:2.0f}" for row in rows)
        loss = statistics.median(row["losses"][-1] for row in rows)
        others = " ".join(str(row["others right"]) for row in rows)
        learned = f"{readable(rows[0]['learned']):>10}{CHOSEN[arm]:8g}"
        print(f"{arm:32}{learned}   {right:22}{loss:8.2f}   {others}")
    return shares


def show_other_answers(arm: str = "LoRA, rank 8") -> None:
    """Print what the model answers to other questions before it is taught and after, seed 0."""
    (before,), after = read(LESSON, "untaught"), rows_of(arm)[0]
    for question, one, other in zip(OTHERS, before["others"], after["others"], strict=True):
        print(question, f"    before  {_line(one)}", f"    after   {_line(other)}", sep="\n")


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


# By the numbers to choose by, with seed 0; the exchanged answers are taught at the true ones' rate.
RATES = {
    "LoRA, rank 8": (2e-3, 4e-3, 8e-3),
    "LoRA, rank 1": (4e-3, 8e-3, 1.6e-2, 3.2e-2),
    "SwiGLU of the last layer": (3e-4, 1e-3, 3e-3, 1e-2),
    "SwiGLU of layer 15": (3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
}
CHOSEN = {
    "LoRA, rank 8": 4e-3,
    "LoRA, rank 1": 1.6e-2,
    "SwiGLU of layer 15": 1e-2,
    "SwiGLU of the last layer": 3e-3,
    "LoRA, rank 8, answers exchanged": 4e-3,
}


EXPERIMENTS = {
    "untaught": Experiment(points=[{}], run=untaught, again=None),
    "taught": Experiment(
        points=[
            {"arm": arm, "rate": rate, "seed": seed}
            for seed in SEEDS
            for arm, chosen in CHOSEN.items()
            for rate in (RATES.get(arm, [chosen]) if seed == 0 else [chosen])
        ],
        run=taught,
        again=None,
    ),
}
