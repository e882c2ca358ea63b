"""Answers of lesson 09: bolder rates for pre-norm, and post-norm with fewer layers."""

from unittest import mock

from attention.provided import reversal
from attention.provided.reversal import train_one
from benchmarks.evidence import Experiment, seeded

SEEDS = (1, 2, 3)


def shallower(n_layers, seed):
    """Train a post-norm stack of fewer layers at a constant 0.006; see `train_one`."""
    with mock.patch.object(reversal, "N_LAYERS", n_layers):
        return {"last": train_one("post", seed)["last"]}


EXPERIMENTS = {
    "09 bolder rates": Experiment(
        claim="Twelve pre-norm layers train at 0.024, worse at 0.048, and not at 0.096",
        control="the rate; compared with the constant rates of lesson 09's “rates x warm-up”",
        points=[
            point
            for rate in (0.024, 0.048, 0.096)
            for point in seeded(SEEDS, norm="pre", rate=rate)
        ],
        run=train_one,
        again=None,
    ),
    "09 fewer layers": Experiment(
        claim="At a constant 0.006 post-norm trains with 6 layers and with 3",
        control="the number of layers; compared with twelve of lesson 09's “rates x warm-up”",
        points=[point for n_layers in (6, 3) for point in seeded(SEEDS, n_layers=n_layers)],
        run=shallower,
        again={"n_layers": 3, "seed": 1},
    ),
}
