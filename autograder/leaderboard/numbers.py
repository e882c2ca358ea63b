"""The board of lesson 11: a Transformer learns to write numbers in German.

Budget: so many sentences to learn from, and so many parameters. What is ranked is the share of
held-out numbers that are translated without any error.
"""

import random
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attention.experiments import training
from attention.provided.data.numbers import Pair, in_words, is_test, numbers
from attention.provided.models import translators
from attention.provided.models.translators import share_right
from attention.provided.training_steps import one_thread
from autograder.leaderboard import limits
from autograder.leaderboard.entries import Kind

SENTENCES, PARAMETERS = 6600, 200_000
MEASURE = "the share of numbers translated without any error, of numbers that nobody has seen"
UNIT, SIZE = "%", "parameters"  # of the score, and what the budget leaves free
BUDGET = f"{SENTENCES} sentences (steps × sentences in a batch) and {PARAMETERS} parameters"
DIGITS, EACH = (4, 5, 6), 100  # of the held-out numbers; of fewer digits too few are held out
APART = 5  # steps between the weights that are averaged

KINDS: dict[str, Kind] = {
    "d_model": (int, 4, 256),
    "n_heads": (int, 1, 64),
    "d_ff": (int, 1, 1024),
    "n_layers": (int, 1, 8),
    "pre_norm": bool,
    "dropout": (float, 0.0, 0.9),
    "steps": (int, 1, SENTENCES),
    "sentences": (int, 1, SENTENCES),
    "schedule": ("noam", "rise", "constant"),
    "rate": (float, 0.0, 1.0),
    "warmup": (int, 1, SENTENCES),
    "smoothing": (float, 0.0, 0.9),
    "max_norm": (float, 1e-6, 1e9),
    "weight_decay": (float, 0.0, 1.0),
    "averaged": (int, 1, 20),
}
# The settings of the lesson itself, in the order of KINDS.
LESSON = (64, 4, 128, 2, True, 0.0, 120, 55, "noam", 0.0073, 40, 0.1, 1.0, 0.0, 1)
USUAL: dict[str, Any] = dict(zip(KINDS, LESSON, strict=True))
SIZES = ("d_model", "n_heads", "d_ff", "n_layers", "pre_norm", "dropout")


def refuse(settings: Mapping[str, Any]) -> int:
    """The number of parameters of these settings. Raises Refused where they are over the budget."""
    return limits.learning(settings, _model, "sentences", SENTENCES, PARAMETERS)


def score(settings: Mapping[str, Any], seed: int, secret: int) -> float:
    """The share of right translations, from 0 to 1, after a training with these settings."""
    with one_thread():
        return right(_trained(settings, seed), secret)


def right(model: nn.Module, secret: int) -> float:
    """The share of the held-out numbers that a model translates without any error."""
    pairs = held_out(secret)
    texts = translators.translations(model, numbers(), pairs)
    return share_right(texts, [pair[2] for pair in pairs])


def held_out(secret: int) -> list[Pair]:
    """Numbers that no training sees and no lesson measures on, as pairs of the corpus."""
    draw, shown = random.Random(secret), {pair[0] for pair in numbers().test}
    found: list[Pair] = []
    for digits in DIGITS:
        drawn = set[int]()
        while len(drawn) < EACH:
            number = draw.randrange(10 ** (digits - 1), 10**digits)
            if is_test(number) and number not in shown:
                drawn.add(number)
        found += [(n, in_words(n, "en"), in_words(n, "de")) for n in sorted(drawn)]
    return found


def _model(settings: Mapping[str, Any], seed: int) -> nn.Module:
    return training.fresh(numbers(), seed, **{name: settings[name] for name in SIZES})


def _trained(settings: Mapping[str, Any], seed: int) -> nn.Module:
    model, steps = _model(settings, seed), settings["steps"]
    adam = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9, settings["weight_decay"])
    kept: list[dict[str, Tensor]] = []
    model.train()
    batches = numbers().batches(settings["sentences"], steps, seed)
    for step, batch in enumerate(batches, start=1):
        rate = (settings["schedule"], settings["rate"], settings["warmup"])
        adam.param_groups[0]["lr"] = training.rate(step, *rate)
        adam.zero_grad()
        training.loss_of(model, batch, settings["smoothing"]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), settings["max_norm"])
        adam.step()
        if (steps - step) % APART == 0 and (steps - step) // APART < settings["averaged"]:
            kept.append({name: value.clone() for name, value in model.state_dict().items()})
    mean = {name: torch.stack([one[name] for one in kept]).mean(0) for name in kept[-1]}
    model.load_state_dict(mean)
    return model.eval()
