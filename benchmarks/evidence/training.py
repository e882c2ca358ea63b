"""Lesson 11: each part of a training, and what happens without it."""

from attention.provided import trainings
from benchmarks.evidence import Claim, Experiment

SEEDS = 0, 1, 2
WHOLE = {
    "order": "shuffled buckets",
    "smoothing": 0.1,
    "max_norm": 1.0,
    "schedule": "noam",
    "steps": 120,
}
CHANGES = [
    {},
    {"smoothing": 0.0},
    {"max_norm": 1e9},
    {"order": "random batches"},
    {"order": "buckets"},
]
SHORT = {"seed": 0, **WHOLE, "steps": 40}  # for the test
PEAKS = {2: (0.002, 0.005, 0.01, 0.02), 6: (0.001, 0.003, 0.008)}
RATES = [
    {"n_layers": n_layers, "schedule": schedule, "peak": peak, "optimizer": "Adam"}
    for n_layers, peaks in PEAKS.items()
    for peak in peaks
    for schedule in ("constant", "noam")
] + [
    {"n_layers": 2, "schedule": "noam", "peak": peak, "optimizer": "SGD"}
    for peak in (0.03, 0.1, 0.3, 1.0)
]
MORE = {"n_pairs": 300, "smoothing": 0.0, "steps": 150}
SHORT_MORE = MORE | {"seed": 0, "steps": 40}
SOON = {"n_layers": 6, "schedule": "noam", "peak": 0.008, "warmup": 5}
SHORT_SOON = SOON | {"seed": 0, "steps": 15}

EXPERIMENTS = {
    "learning rates": Experiment(
        claim="Adam gets further than SGD in 60 steps; a warm-up widens the range of rates that "
        "work, and at 6 + 6 layers it reaches a lower loss than any constant rate tried",
        control="optimiser, schedule, highest rate or depth is changed; model, data and steps are "
        "kept",
        points=[{**rate, "seed": seed} for seed in SEEDS for rate in RATES],
        run=trainings.first_steps,
        again={**RATES[0], "seed": 0},
    ),
    "few sentences": Experiment(
        claim="where a model over-fits, smoothed labels make it less certain of its errors",
        control="smoothing 0 or 0.1; the 60 pairs, the order and the steps are kept",
        points=[
            {"n_pairs": 60, "smoothing": smoothing, "seed": seed, "steps": 150}
            for seed in SEEDS
            for smoothing in (0.0, 0.1)
        ]
        + [{"n_pairs": 60, "smoothing": 0.1, "seed": 0, "steps": 40}],
        run=trainings.few_sentences,
        again={"n_pairs": 60, "smoothing": 0.1, "seed": 0, "steps": 40},
    ),
    "more sentences": Experiment(
        claim="with 300 sentences a model gets much further on held-out ones than with 60",
        control="300 pairs, beside the 60 of “few sentences”; smoothing 0 and steps are kept",
        points=[MORE | {"seed": seed} for seed in SEEDS] + [SHORT_MORE],
        run=trainings.few_sentences,
        again=SHORT_MORE,
    ),
    "a shorter warm-up": Experiment(
        claim="at 6 + 6 layers and a rate of 0.008, 5 steps of warm-up end at a higher loss "
        "than 20",
        control="the steps of warm-up, beside the 20 of “learning rates”; all else is kept",
        points=[SOON | {"seed": seed} for seed in SEEDS] + [SHORT_SOON],
        run=trainings.first_steps,
        again=SHORT_SOON,
    ),
    "a strange batch": Experiment(
        claim="what a strange batch undoes when AdamW trains, clipped and not",
        control="clipping on or off; the strange batch and all others are kept",
        points=[
            {"optimizer": "AdamW", "max_norm": max_norm, "seed": seed, "before": 60}
            for seed in SEEDS
            for max_norm in (1.0, 1e9)
        ]
        + [{"optimizer": "AdamW", "max_norm": 1.0, "seed": 0, "before": 20}],
        run=trainings.strange_batch,
        again={"optimizer": "AdamW", "max_norm": 1.0, "seed": 0, "before": 20},
    ),
    "one part changed": Experiment(
        claim="what each part of the training changes, and the mean of the last checkpoints",
        control="one part changed at a time; everything else is kept",
        points=[{"seed": seed, **WHOLE, **change} for seed in SEEDS for change in CHANGES]
        + [SHORT],
        run=trainings.whole_training,
        again=SHORT,
    ),
}
CLAIMS = [
    Claim(
        "the gradients of single pairs scatter, one of six far from that of 1,000; from 64 pairs "
        "on, the directions hardly differ",
        control="the size of the batch; model and weights are kept",
        seeds="six batches of each size",
        where="One step from many batches",
    ),
    Claim(
        "several batches, each weighted with its tokens, make the step of one big batch",
        control="one batch or three parts of it; weights and data are kept",
        seeds="exact, up to rounding",
        where="Exercise 11.5",
    ),
]
