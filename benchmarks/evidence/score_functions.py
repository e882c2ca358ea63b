"""Lesson 04: the five score functions in one translator."""

from attention.provided.compared import train_scored
from benchmarks.evidence import Claim, Experiment

KINDS = ("dot", "scaled_dot", "bilinear", "reduced_rank", "additive")
SEEDS = (0, 1, 2)
SHORT = {"kind": "bilinear", "seed": 0, "steps": 20}

EXPERIMENTS = {
    "five score functions": Experiment(
        claim="after 300 steps the seeds differ more than the five score functions",
        control="the score function; encoder, decoder, 64 numbers an annotation, data, seeds kept",
        points=[{"kind": kind, "seed": seed, "steps": 300} for seed in SEEDS for kind in KINDS]
        + [SHORT],
        run=train_scored,
        again=SHORT,
    ),
}
CLAIMS = [
    Claim(
        "reduced rank draws the crossing with r = 2 and not with r = 1; a dot product of vectors "
        "that stay as they are does not",
        control="the score function, or r; queries, keys and 150 steps kept",
        seeds="4, 5, 6",
        where="What each of them can say",
    ),
    Claim(
        "a baseline makes the estimated gradient scatter less",
        control="a baseline of 0 or 11.5; rewards, trials and steps kept",
        seeds="0, 1, 2, 3, 4",
        where="Learning without a gradient",
    ),
]
