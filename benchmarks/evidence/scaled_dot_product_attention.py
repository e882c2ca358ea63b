"""Lesson 05: what the scale of the scores does to learning, and what the projections do."""

from attention.provided.matching import SCORES, find_keys
from benchmarks.evidence import Claim, Experiment

SEEDS = (0, 1, 2)
RATES = (0.0003, 0.001, 0.003, 0.01)


def at_each_rate(score, d, seed):
    """The final loss at each learning rate, and the lowest of them."""
    losses = [round(find_keys(score, d, rate, seed), 5) for rate in RATES]
    return {"rates": list(RATES), "losses": losses, "loss": min(losses)}


EXPERIMENTS = {
    "additive against dot": Experiment(
        claim="From d = 64 on the undivided dot product learns at none of four rates; additive and "
        "scaled scores learn there",
        control="score function and d changed; task, steps, optimiser kept, best of four rates",
        points=[
            {"score": score, "d": d, "seed": seed}
            for d in (4, 16, 64, 256)
            for score in SCORES
            for seed in SEEDS
        ],
        run=at_each_rate,
        again={"score": "dot", "d": 16, "seed": 0},
    ),
}
CLAIMS = [
    Claim(
        "The softmax's Jacobian keeps its size when scores are divided by √d, and vanishes for "
        "large d when not",
        control="the division; same queries and keys, medians and quarters of 500 queries",
        seeds="1",
        where="What large scores do to learning",
    ),
    Claim(
        "Training fails where the scores are large at the start, divided or not, and learns "
        "undivided from a smaller start",
        control="division, size of the start and rate changed one at a time; data and steps kept",
        seeds="0, 1, 2",
        where="Break it",
    ),
    Claim(
        "Without projections a random token's weight on itself grows towards 1 with d",
        control="d changed; ten tokens, 200 sequences a seed",
        seeds="0, 1, 2",
        where="Where q, k and v come from",
    ),
    Claim(
        "Items are fetched once queries and keys are made differently, and in fewer steps with a "
        "matrix for each role",
        control="which of q, k and v share a matrix; task, read-out, steps and rate kept",
        seeds="0, 1, 2",
        where="Where q, k and v come from",
    ),
]
