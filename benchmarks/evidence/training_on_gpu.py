"""Lesson 12: what 16 bits do to a training, and what checkpointing keeps."""

from functools import partial

import torch
from torch.utils.checkpoint import checkpoint

from attention.provided import precision
from attention.provided.kept import kept_bytes
from attention.transformer_blocks import EncoderLayer
from benchmarks.evidence import Claim, Experiment

SEEDS = 0, 1, 2
FLOAT16 = {"way": "float16 gradients", "dynamic": False}
SCALES = [{**FLOAT16, "log2_scale": scale} for scale in (-16, 0, 8, 24)]
SCALES.append({**FLOAT16, "log2_scale": 24, "dynamic": True})


def kept(fused, seed, T=256):
    """Bytes that a layer of the paper's size keeps for a sentence, plain and checkpointed."""
    torch.manual_seed(seed)
    layer = EncoderLayer(512, 8, 2048, dropout=0.0, fused=fused)
    x = torch.randn(1, T, 512, requires_grad=True)
    ways = {
        "plain": partial(layer, x),
        "checkpointed": lambda: checkpoint(layer, x, use_reentrant=False),
    }
    return {name: kept_bytes(action, layer.parameters()) for name, action in ways.items()}


EXPERIMENTS = {
    "numbers of 16 bits": Experiment(
        claim="products in bfloat16 change little of what is learned",
        control="which numbers have 16 bits; data, steps and rates are kept",
        points=[
            {"way": way, "seed": seed} for seed in SEEDS for way in ("float32", "bfloat16 products")
        ],
        run=precision.train_in,
        again={"way": "float32", "seed": 0},
    ),
    "loss scale": Experiment(
        claim="gradients in float16 need a scale that is not too small nor too large, or adapts",
        control="the scale of the loss; data, steps and rates are kept",
        points=[{**scale, "seed": seed} for seed in SEEDS for scale in SCALES],
        run=precision.train_in,
        again={**SCALES[1], "seed": 0},
    ),
    "checkpointing": Experiment(
        claim="with checkpointing a layer keeps its input alone: a sixteenth of what it kept, or, "
        "fused, a twelfth",
        control="with checkpointing or without, in the same call; layer and sentence are kept",
        points=[{"fused": fused, "seed": seed} for seed in SEEDS for fused in (False, True)],
        run=kept,
        again={"fused": False, "seed": 0},
    ),
}
CLAIMS = [
    Claim(
        "with all of its state a training resumes to the last digit; with the weights alone it "
        "does not",
        control="what is restored; the steps are kept",
        seeds="exact",
        where="Stop and resume",
    ),
    Claim(
        "shares weighted with their tokens make the step of one process, a plain mean does not",
        control="the weights of the shares; model and batch are kept",
        seeds="exact, up to rounding",
        where="Several processes",
    ),
]
