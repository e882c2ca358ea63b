"""Answers of lesson 05: fetching without one of the matrices, and scores divided by d."""

import torch

from attention.provided.descent import take_steps
from attention.provided.matching import fetch
from attention.scaled_dot_product_attention import scaled_dot_product_attention
from benchmarks.evidence import Experiment, seeded

SEEDS = (0, 1, 2)


def fetch_items(roles, steps, seed):
    """The mean loss of the last twenty steps, as the lesson takes it."""
    return {"loss": round(sum(fetch(roles, seed, steps)[-20:]) / 20, 5)}


def divided_by(power, d, seed, times=1, steps=120, n=16):
    """Train W such that query i finds key i, as the lesson does under "Break it".

    power    scores are divided by d to this power: 0.5 is √d
    times    the rate is 0.05 times this
    returns  the loss of the last step
    """
    draw = torch.Generator().manual_seed(seed)
    keys = torch.randn(n, d, generator=draw)
    rotation = torch.linalg.qr(torch.randn(d, d, generator=draw)).Q
    W = (torch.randn(d, d, generator=draw) / d**0.5).requires_grad_()
    optimizer = torch.optim.SGD([W], lr=0.05 * times)
    undo = d ** (0.5 - power)

    def loss():
        context = scaled_dot_product_attention(keys @ rotation @ W * undo, keys, torch.eye(n))
        return (context - torch.eye(n)).square().sum(dim=1).mean()

    *_, last = take_steps((loss() for _ in range(steps)), optimizer)
    return {"loss": round(last, 5)}


EXPERIMENTS = {
    "05 fetch without a matrix": Experiment(
        claim="Items are fetched without W_v as with it; without W_q they are after 1200 steps",
        control="which of the three matrices there are, and the steps; task, read-out and rate "
        "kept",
        points=[
            point
            for roles, steps in (("q k v", 300), ("q k", 300), ("k v", 300), ("k v", 1200))
            for point in seeded(SEEDS, roles=roles, steps=steps)
        ],
        run=fetch_items,
        again={"roles": "q k", "steps": 300, "seed": 0},
    ),
    "05 divided by d": Experiment(
        claim="Divided by d in place of √d, scores learn hardly anything at the lesson's rate, and "
        "do at one d times larger",
        control="what the scores are divided by, then the rate; keys, start and steps kept",
        points=[
            point
            for d in (512, 64)
            for power, times in ((0.5, 1), (1, 1), (1, d))
            for point in seeded(SEEDS, power=power, d=d, times=times)
        ],
        run=divided_by,
        again={"power": 1, "d": 64, "times": 1, "seed": 0},
    ),
}
