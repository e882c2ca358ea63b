"""Lesson 07: how many heads, how small, and whether they ask the same questions."""

import torch
from torch import nn

from attention.multi_head_attention import MultiHeadAttention, captured_variance
from attention.provided.two_pointers import CONTENT, D_MODEL, errors, train
from benchmarks.evidence import Claim, Experiment

SEEDS = (0, 1, 2)
HEADS = (1, 2, 4, 7, 14, 28)


def _strongest(layer):
    """Share of the captured variance in 7 directions of the concatenated W_q and W_k."""
    with torch.no_grad():
        return round(captured_variance(layer.W_q.weight.T @ layer.W_k.weight)[6].item(), 4)


def train_heads(n_heads, seed):
    """Train one layer; the loss at the end, and the directions before and after training."""
    torch.manual_seed(seed)
    layer, read_out = MultiHeadAttention(D_MODEL, n_heads), nn.Linear(D_MODEL, 2 * CONTENT)
    before = _strongest(layer)
    losses = train(layer, read_out, seed)
    gates = torch.eye(n_heads)[0] * -1 + 1  # head 0 is silent
    return {
        "loss": round(sum(losses[-10:]) / 10, 4),
        "before": before,
        "after": _strongest(layer),
        "without head 0": [round(error, 3) for error in errors(layer, read_out, gates)],
    }


EXPERIMENTS = {
    "how many heads": Experiment(
        claim="One head stops at nearly half of the variance; two to seven heads solve the task; "
        "heads of one or two dimensions do worse; trained layers of 1, 2 or 4 heads all use few "
        "directions, untrained ones do not",
        control="the number of heads changed; parameters, task, steps and rate kept",
        points=[{"n_heads": n_heads, "seed": seed} for n_heads in HEADS for seed in SEEDS],
        run=train_heads,
        again={"n_heads": 2, "seed": 0},
    ),
}
CLAIMS = [
    Claim(
        "With more heads of smaller size the parameters stay and the score tables grow",
        control="the number of heads changed; d_model and T kept; counted, not timed",
        seeds="none: a count",
        where="How large is it?",
    ),
]
