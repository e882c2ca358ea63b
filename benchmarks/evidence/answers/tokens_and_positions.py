"""Answers of lesson 08: a token that is farther back."""

from unittest import mock

from attention.provided import looking_back
from attention.provided.looking_back import train_one
from benchmarks.evidence import Experiment, seeded

SEEDS = (0, 1, 2)


def farther(kind, back, seed, steps=300):
    """Train to say the token so many places back; what is right, and when the loss is below 0.5.

    returns  "right", at 24 tokens, and "steps", the first ten steps with such a mean loss, by
             their last one; 0 if there are none
    """
    with mock.patch.object(looking_back, "BACK", back):
        found = train_one(kind, seed, steps=steps)
    below = [10 * (i + 1) for i, loss in enumerate(found["losses"]) if loss < 0.5]
    right = found["right"][found["lengths"].index(24)]
    return {"right": right, "steps": below[0] if below else 0}


EXPERIMENTS = {
    "08 farther back": Experiment(
        claim="The token ten places back takes as many steps as the token one place back",
        control="how many places back, for three kinds of positions; task, layer, 300 steps and "
        "rate kept",
        points=[
            point
            for kind in ("learned", "sinusoidal", "rotary")
            for back in (1, 3, 10)
            for point in seeded(SEEDS, kind=kind, back=back)
        ],
        run=farther,
        again={"kind": "rotary", "back": 10, "seed": 0},
    ),
}
