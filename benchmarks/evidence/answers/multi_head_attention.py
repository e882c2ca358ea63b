"""Answers of lesson 07: one head with more time, and two heads without W_o."""

import torch
from torch import nn

from attention.multi_head_attention import MultiHeadAttention
from attention.provided.two_pointers import CONTENT, D_MODEL, train
from benchmarks.evidence import Experiment, seeded

SEEDS = (0, 1, 2)


def train_other(n_heads, seed, steps=240, mixed=True):
    """Train one layer, for longer or without W_o; the mean loss of the last ten steps.

    mixed  whether W_o is learned; if not, it is the identity, without a bias
    """
    torch.manual_seed(seed)
    layer, read_out = MultiHeadAttention(D_MODEL, n_heads), nn.Linear(D_MODEL, 2 * CONTENT)
    if not mixed:
        layer.W_o.weight.data = torch.eye(D_MODEL)
        layer.W_o.requires_grad_(requires_grad=False)
    losses = train(layer, read_out, seed, steps)
    return {"loss": round(sum(losses[-10:]) / 10, 4)}


EXPERIMENTS = {
    "07 one head for longer": Experiment(
        claim="One head still stops at nearly half of the variance after four times as many steps",
        control="the steps; compared with one head of lesson 07's “how many heads”",
        points=seeded(SEEDS, n_heads=1, steps=960),
        run=train_other,
        again={"n_heads": 1, "steps": 960, "seed": 0},
    ),
    "07 without W_o": Experiment(
        claim="Where a linear read-out follows, two heads solve the task without W_o",
        control="W_o learned, or the identity; compared with two heads of lesson 07's “how many "
        "heads”",
        points=seeded(SEEDS, n_heads=2, mixed=False),
        run=train_other,
        again={"n_heads": 2, "mixed": False, "seed": 0},
    ),
}
