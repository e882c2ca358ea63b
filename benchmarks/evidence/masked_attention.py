"""Lesson 06: what leaks are worth, and what makes the short cuts of a sparse mask."""

import torch

from attention.masked_attention import causal_mask, local_mask, masked_attention
from attention.provided.spelling import train_speller
from benchmarks.evidence import Claim, Experiment

SEEDS = (0, 1, 2)


def with_mask(may_attend):
    """Attention under the mask that ``may_attend`` makes for a length."""
    return lambda q, k, v: masked_attention(q, k, v, may_attend(q.shape[-2]))


def _scores(q, k):
    return q @ k.mT / q.shape[-1] ** 0.5


def mask_after_softmax(q, k, v):
    """Weights of what is forbidden become 0, but it has had its share of the denominator."""
    return (_scores(q, k).softmax(dim=-1) * causal_mask(q.shape[-2])) @ v


def zero_instead(q, k, v):
    """Forbidden scores become 0, whose exponential is 1."""
    return torch.where(causal_mask(q.shape[-2]), _scores(q, k), 0.0).softmax(dim=-1) @ v


MASKS = {
    "causal": with_mask(causal_mask),
    "mask after softmax": mask_after_softmax,
    "0 instead of −∞": zero_instead,
    "sees one ahead": with_mask(lambda T: torch.ones(T, T, dtype=torch.bool).tril(1)),
}
WINDOWS = (1, 2, 4, 8, 16)


def train_with(mask, seed):
    """Train and write under one of MASKS."""
    return _told(train_speller(MASKS[mask], seed))


def train_with_window(window, seed):
    """Train and write under a causal window: a letter and ``window`` letters before it."""
    attend = with_mask(lambda T: causal_mask(T) & local_mask(T, window))
    return _told(train_speller(attend, seed))


def train_with_a_gap(seed):
    """Train and write where a position sees all letters but the one that it must predict."""
    attend = with_mask(lambda T: ~torch.ones(T, T, dtype=torch.bool).triu(1).tril(1))
    return _told(train_speller(attend, seed))


def _told(report):
    loss = sum(report.losses[-20:]) / 20
    return {"loss": round(loss, 4), "known": round(report.known, 4)}


EXPERIMENTS = {
    "what a leak is worth": Experiment(
        claim="Every leak lowers the training loss and ruins what the model writes",
        control="the mask changed; model, data, steps and rate kept",
        points=[{"mask": mask, "seed": seed} for mask in MASKS for seed in SEEDS],
        run=train_with,
        again={"mask": "causal", "seed": 0},
    ),
    "causal windows": Experiment(
        claim="A causal window of two letters before is as good for the speller as the whole past",
        control="the window changed; model, data, steps and rate kept",
        points=[{"window": window, "seed": seed} for window in WINDOWS for seed in SEEDS],
        run=train_with_window,
        again={"window": 4, "seed": 0},
    ),
    "all but the next": Experiment(
        claim="A model that fills gaps has a lower loss than a causal one and cannot write",
        control="the mask changed; compared with the causal one of “what a leak is worth”",
        points=[{"seed": seed} for seed in SEEDS],
        run=train_with_a_gap,
        again={"seed": 0},
    ),
}
CLAIMS = [
    Claim(
        "The share of the weight that goes to padding grows with the padding",
        control="the padded length changed; the same two tokens",
        seeds="0, 1, 2",
        where="What fails without this idea",
    ),
    Claim(
        "On 64 blocks global blocks make all pairs meet in 2 steps, with random ones or without; "
        "without global ones random blocks shorten 63 steps to about 8",
        control="each part of BigBird taken away in turn",
        seeds="0 to 4",
        where="BigBird without its parts",
    ),
]
