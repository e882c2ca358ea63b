"""Lesson 09: what warm-up, skip connections and norms do for a stack of twelve layers."""

from attention.provided.reversal import NORMS, first_step, train_and_thin, train_one
from benchmarks.evidence import Claim, Experiment, seeded

SEEDS = (1, 2, 3)
RATES = (0.001, 0.003, 0.006, 0.012)


EXPERIMENTS = {
    "rates x warm-up": Experiment(
        claim="At constant rates post-norm trains at 0.003, fails in two runs of three at 0.006 "
        "and in all at 0.012; with a warm-up 0.006 is its best rate; pre-norm trains at all four "
        "rates without one",
        control="the norm, the rate, and a constant rate or a warm-up of 60 of the 90 steps; "
        "layers, task, batches and seeds kept",
        points=[
            point
            for norm in ("pre", "post")
            for warm_up in (1, 60)
            for rate in RATES
            for point in seeded(SEEDS, norm=norm, warm_up=warm_up, rate=rate)
        ],
        run=train_one,
        again={"norm": "pre", "warm_up": 1, "rate": 0.003, "seed": 1},
    ),
    "add and norm apart": Experiment(
        claim="Without skip connections twelve layers do not learn, whatever the norm and the "
        "rate; with them and without norms they do at the two lower rates of four",
        control="skip connections or none, the norm, four constant rates; compared with the "
        "constant rates of “rates x warm-up”",
        points=[
            point
            for norm, skip in (("none", True), *((norm, False) for norm in NORMS))
            for rate in RATES
            for point in seeded(SEEDS, norm=norm, skip=skip, rate=rate)
        ],
        run=train_one,
        again={"norm": "none", "skip": True, "rate": 0.003, "seed": 1},
    ),
    "gradients scaled": Experiment(
        claim="Adam trains post-norm alike with gradients a hundred times smaller or larger",
        control="a factor on the loss; post-norm, a constant 0.003, batches and seeds kept",
        points=[
            point
            for factor in (0.01, 1.0, 100.0)
            for point in seeded(SEEDS, norm="post", rate=0.003, factor=factor)
        ],
        run=train_one,
        again={"norm": "post", "rate": 0.003, "factor": 100.0, "seed": 1},
    ),
    "one step": Experiment(
        claim="One step of Adam moves the scores of an untrained post-norm stack about twice as "
        "far as those of a pre-norm stack at small rates",
        control="the norm and the rate; layers, batch and seeds kept",
        points=[
            point
            for norm in NORMS
            for rate in (0.0001, 0.001, 0.006)
            for point in seeded(SEEDS, norm=norm, rate=rate)
        ],
        run=first_step,
        again={"norm": "post", "rate": 0.001, "seed": 1},
    ),
    "layers taken out": Experiment(
        claim="A trained stack of twelve layers with skip connections loses next to nothing "
        "without one of them",
        control="how many layers are missing, mean of ten choices; pre-norm, and post-norm with a "
        "warm-up",
        points=[*seeded(SEEDS, norm="pre", warm_up=1), *seeded(SEEDS, norm="post", warm_up=60)],
        run=train_and_thin,
        again={"norm": "pre", "warm_up": 1, "seed": 1},
    ),
}
CLAIMS = [
    Claim(
        "Without skip connections the gradient fades in 48 layers, with them it does not",
        control="skip connections; the same input and weights",
        seeds="0, 1, 2",
        where="What fails without this idea",
    ),
    Claim(
        "In a stack with skip connections and no norms the numbers grow with the depth",
        control="the depth; the stacks of the claim above",
        seeds="0, 1, 2",
        where="Vectors that keep their size",
    ),
    Claim(
        "With norms over the batch a sentence changes with its neighbour, with LayerNorm not",
        control="the norm, and the other sentence of the batch",
        seeds="1 (three random sentences)",
        where="Vectors that keep their size",
    ),
    Claim(
        "In untrained stacks of 48 layers the first layer's gradient is kept by skip connections, "
        "not by norms; without them all positions become one vector",
        control="skip connections, and the norm before or after; input and start kept",
        seeds="0, 1, 2",
        where="How deep can we go?",
    ),
    Claim(
        "At a rate of 0.006 pre-norm learns, post-norm only with a warm-up",
        control="the norm, then the warm-up; one run each, the whole sweep: “rates x warm-up”",
        seeds="1",
        where="Which of them learn?",
    ),
]
