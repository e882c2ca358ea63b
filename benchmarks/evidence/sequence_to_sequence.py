"""Lesson 02: how much fits into one vector, and how long it takes to learn that."""

from attention.provided.bottleneck import train_one
from benchmarks.evidence import Claim, Experiment

SEEDS = (0, 1, 2)
SHORT = {"d_state": 64, "steps": 60, "seed": 0}

EXPERIMENTS = {
    "size x steps": Experiment(
        claim="a wider model, or longer training, moves the fall of accuracy to longer numbers",
        control="the width of the model, or the number of steps; data, seeds and the rest kept",
        points=[
            {"d_state": d_state, "steps": steps, "seed": seed}
            for d_state, steps in ((32, 300), (64, 300), (128, 300), (64, 1000))
            for seed in SEEDS
        ]
        + [SHORT],
        run=train_one,
        again=SHORT,
    ),
    "reversed source": Experiment(
        claim="reading the source backwards helps at four digits, after 300 steps",
        control="the order in which the source is read; the rest as above, 64 numbers",
        points=[{"d_state": 64, "steps": 300, "seed": seed, "reverse": True} for seed in SEEDS]
        + [SHORT | {"reverse": True}],
        run=train_one,
        again=SHORT | {"reverse": True},
    ),
}
CLAIMS = [
    Claim(
        "an update gate below 1 forgets: half of a state is gone after 1, 7 and 69 steps",
        control="the update gate at 0.5, 0.9 and 0.99; inputs and candidate are 0",
        seeds="none needed: nothing is drawn",
        where="A state that forgets on purpose",
    ),
    Claim(
        "a recurrent layer waits for every step, a linear layer does not",
        control="layers with as many multiplications, one core, 25 to 800 positions",
        seeds="none: shortest of 20 runs",
        where="And a slow one",
    ),
]
