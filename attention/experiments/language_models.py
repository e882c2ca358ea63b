"""Lesson 15: a speller that never saw “seven hundred”, for its first open question.

`make bench-language-models` and `bench-docstrings` measure what the claims say.
"""

import functools
import random
import string
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from attention.decoding import sample_tokens
from attention.experiments.recorded import Claim, Experiment
from attention.provided.data.numbers import in_words
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.training_steps import take_steps

SEEDS = (0, 1, 2)
STEPS, WRITTEN, LONGEST = 300, 400, 50
LETTERS = " " + string.ascii_lowercase  # the id of a letter is its place here, plus 3
KEPT_BACK = "seven hundred"
BEGINNINGS = (KEPT_BACK, "two thousand seven hundred")


@functools.cache
def _numbers() -> tuple[str, ...]:
    """All numbers below ten thousand, in words."""
    return tuple(in_words(number, "en") for number in range(10_000))


def _batch_of(texts: Sequence[str]) -> Tensor:
    """Ids (B, T) of texts, with BOS and EOS."""
    rows = [[BOS, *(LETTERS.index(c) + 3 for c in text), EOS] for text in texts]
    T = max(map(len, rows))
    return torch.tensor([row + [PAD] * (T - len(row)) for row in rows])


def _speller(
    DecoderOnly: Callable[..., Any],
    language_model_loss: Callable[..., Tensor],
    known: Sequence[str],
    seed: int,
    steps: int,
) -> tuple[Any, float]:
    """The lesson's speller, trained on some numbers; its loss over the last 20 steps."""
    torch.manual_seed(seed)
    model = DecoderOnly(30, d_model=64, n_heads=4, d_ff=128, n_layers=2, dropout=0.0)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps)
    draw, values = random.Random(seed), []
    batches = (_batch_of(draw.sample(known, 32)) for _ in range(steps))
    losses = (language_model_loss(model(tokens), tokens) for tokens in batches)
    for value in take_steps(losses, optimizer):
        schedule.step()
        values.append(value)
    return model.eval(), sum(values[-20:]) / len(values[-20:])


def keep_back(
    seed: int,
    DecoderOnly: Callable[..., Any],
    language_model_loss: Callable[..., Tensor],
    generate: Callable[..., Tensor],
    steps: int = STEPS,
    written: int = WRITTEN,
) -> dict[str, float]:
    """Train without any number with KEPT_BACK in it; how many of the texts written are numbers.

    By itself the model writes so many texts, and half as many from each beginning on.
    """
    every = set(_numbers())
    kept = {text for text in every if KEPT_BACK in text}
    known = [text for text in _numbers() if text not in kept]
    model, loss = _speller(DecoderOnly, language_model_loss, known, seed, steps)
    noise = torch.Generator().manual_seed(seed)

    def choose(logits: Tensor) -> Tensor:
        return sample_tokens(logits, torch.rand(len(logits), generator=noise), 1.0)

    def write(prompt: Tensor) -> list[str]:
        rows = generate(model, prompt, choose, LONGEST)
        return ["".join(LETTERS[i - 3] for i in row if i >= 3) for row in rows.tolist()]

    texts = write(torch.full((written, 1), BOS))
    found = {"loss": round(loss, 4), "right": sum(text in every for text in texts)}
    found["kept back"] = sum(text in kept for text in texts)
    for begin in BEGINNINGS:
        ends = write(_batch_of([begin])[:, :-1].repeat(written // 2, 1))
        found[begin] = sum(begin + end in every for end in ends)
    return found


SHORT = {"seed": 0, "steps": 30, "written": 10}

EXPERIMENTS = {
    "seven hundred": Experiment(
        claim="A speller that never saw “seven hundred” hardly ever writes it by itself, but goes "
        "on rightly from it most of the time",
        control="what is given to it: nothing, “seven hundred”, or “two thousand seven hundred”; "
        "the model is kept",
        points=[*({"seed": seed} for seed in SEEDS), SHORT],
        run=keep_back,
        again=SHORT,
    ),
}

CLAIMS = [
    Claim(
        claim="With a fixed number of scores, a decoder that reads more coarsely finds more"
        " of the topic words than one that reads half",
        control="the model; texts, steps and optimiser kept; scores counted beside",
        seeds="0, 1, 2",
        where="One table",
    ),
    Claim(
        claim="Positions and experts make no difference on this task that is clearer than "
        "the spread of the seeds",
        control="positions or experts added to “local, then compressed”",
        seeds="0, 1, 2",
        where="One table",
    ),
    Claim(
        claim="The balancing loss makes the shares of the experts more even in the second "
        "layer, not in the first",
        control="the loss on or off; the model kept",
        seeds="0, 1, 2",
        where="Who works?",
    ),
    Claim(
        claim="After a few minutes a small model does not beat a rule of one line at first "
        "lines of docstrings",
        control="rules that nobody trains, on the same rows; the steps of training",
        seeds="0, 1, 2",
        where="How good is a first line?",
    ),
]
