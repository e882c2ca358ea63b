"""The board of lesson 12: a Transformer learns to write numbers in German, on a counted machine.

Budget: so many floating-point operations and so much memory, both by the lesson's own formulas.
What is ranked is what the board of lesson 11 ranks.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from attention.experiments import training
from attention.provided.data.numbers import numbers as numbers_in_words
from attention.provided.training_steps import one_thread
from attention.training import TrainStep
from attention.training_on_gpu import training_flops, training_memory
from autograder.leaderboard import limits, numbers
from autograder.leaderboard.entries import Kind

GFLOPS, KILOBYTES, PASSES = 200, 8000, 500
WORDS, LETTERS = 10, 60  # as long as those of a batch are, EOS and padding included
MEASURE, UNIT, SIZE = numbers.MEASURE, numbers.UNIT, "GFLOPs"
BUDGET = (
    f"{GFLOPS} GFLOPs, {KILOBYTES} kB, and {PASSES} passes through the model (steps × accumulation)"
)

KINDS: dict[str, Kind] = {
    "d_model": (int, 4, 256),
    "n_heads": (int, 1, 64),
    "d_ff": (int, 1, 1024),
    "n_layers": (int, 1, 8),
    "steps": (int, 1, PASSES),
    "sentences": (int, 1, 1000),
    "accumulation": (int, 1, PASSES),
    "precision": ("float32", "bfloat16"),
    "checkpointing": bool,
    "schedule": ("noam", "rise", "constant"),
    "rate": (float, 0.0, 1.0),
    "warmup": (int, 1, PASSES),
}
# As lesson 11 trains, but for fewer steps, each of them in parts; in the order of KINDS.
LESSON = (64, 4, 128, 2, 80, 14, 4, "float32", False, "noam", 0.0073, 40)
USUAL: dict[str, Any] = dict(zip(KINDS, LESSON, strict=True))
SIZES = ("d_model", "n_heads", "d_ff", "n_layers")


def refuse(settings: Mapping[str, Any]) -> int:
    """The GFLOPs of a training with these settings. Raises Refused where it is over the budget."""
    steps, parts, each = (settings[name] for name in ("steps", "accumulation", "sentences"))
    limits.within(f"{steps} steps of {parts} passes are", steps * parts, "passes", PASSES)
    said = f"{steps} steps of {parts} × {each} sentences take"
    operations = limits.within(said, gflops(settings), "GFLOPs", GFLOPS)
    said = f"the model and {each} sentences at a time take"
    limits.within(said, kilobytes(settings), "kB", KILOBYTES)
    limits.built(settings, _model)
    return operations


def gflops(settings: Mapping[str, Any]) -> int:
    """What the whole training computes, by the lesson's count, in GFLOPs, rounded up.

    With checkpointing there are four products in place of three.
    """
    sizes = {name: settings[name] for name in ("d_model", "d_ff", "n_layers")}
    each = training_flops(
        WORDS, LETTERS, **sizes, vocab_size=len(numbers_in_words().target_vocabulary)
    )
    sentences = settings["steps"] * settings["accumulation"] * settings["sentences"]
    return math.ceil(sentences * each * (4 if settings["checkpointing"] else 3) / 3e9)


def kilobytes(settings: Mapping[str, Any]) -> int:
    """What a training step keeps, by the lesson's count, in kB, rounded up.

    Two stacks of layers count, for words and for letters, all fused; the cross-attention does not.
    Autocast leaves norms and residuals in float32, so in bfloat16 three quarters of the activations
    remain. With checkpointing each layer keeps its input alone, and what one layer needs is there
    for a while.
    """
    sentences, n_layers = settings["sentences"], settings["n_layers"]
    sizes = {name: settings[name] for name in SIZES}
    stacks = [training_memory(sentences, T, **sizes, fused=True) for T in (WORDS, LETTERS)]
    activations = [stack.pop("activations") for stack in stacks]
    if settings["checkpointing"]:
        inputs = 4 * sentences * (WORDS + LETTERS) * settings["d_model"] * n_layers
        activations = [inputs, activations[1] // n_layers]
    kept = sum(activations) * (0.75 if _short(settings) else 1)
    return math.ceil((sum(sum(stack.values()) for stack in stacks) + kept) / 1000)


def score(settings: Mapping[str, Any], seed: int, secret: int) -> float:
    """The share of right translations, from 0 to 1, after a training with these settings."""
    with one_thread():
        return numbers.right(_trained(settings, seed), secret)


def _short(settings: Mapping[str, Any]) -> bool:
    return bool(settings["precision"] == "bfloat16")


def _model(settings: Mapping[str, Any], seed: int) -> nn.Module:
    return training.fresh(numbers_in_words(), seed, **{name: settings[name] for name in SIZES})


def _trained(settings: Mapping[str, Any], seed: int) -> nn.Module:
    model, steps, parts = _model(settings, seed), settings["steps"], settings["accumulation"]
    adam = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9, 0.0)
    step = TrainStep(model, adam, dtype=torch.bfloat16 if _short(settings) else None)
    batches = numbers_in_words().batches(settings["sentences"], steps * parts, seed)
    with _checkpointed(model) if settings["checkpointing"] else contextlib.nullcontext():
        for number in range(1, steps + 1):
            rate = (settings["schedule"], settings["rate"], settings["warmup"])
            adam.param_groups[0]["lr"] = training.rate(number, *rate)
            step([(batch.source, batch.target) for batch in islice(batches, parts)])
    return model.eval()


@contextlib.contextmanager
def _checkpointed(model: Any) -> Iterator[None]:
    """Let every layer forget all but its input, and compute the rest again when it is needed."""
    layers = [*model.encoder.layers, *model.decoder.layers]
    for layer in layers:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward
