"""Lesson 12: what 16 bits do to a training."""

from attention.provided import precision
from benchmarks.evidence import Claim, Experiment

SEEDS = 0, 1, 2
FLOAT16 = {"way": "float16 gradients", "dynamic": False}
SCALES = [{**FLOAT16, "log2_scale": scale} for scale in (-16, 0, 8, 24)]
SCALES.append({**FLOAT16, "log2_scale": 24, "dynamic": True})

EXPERIMENTS = {
    "numbers of 16 bits": Experiment(
        claim="products in bfloat16 change little of what is learned",
        control="which numbers have 16 bits; data, steps and rates are kept",
        points=[
            {"way": way, "seed": seed} for seed in SEEDS for way in ("float32", "bfloat16 products")
        ],
        run=precision.train_in,
        again={"way": "float32", "seed": 0},
    ),
    "loss scale": Experiment(
        claim="gradients in float16 need a scale that is not too small nor too large, or adapts",
        control="the scale of the loss; data, steps and rates are kept",
        points=[{**scale, "seed": seed} for seed in SEEDS for scale in SCALES],
        run=precision.train_in,
        again={**SCALES[1], "seed": 0},
    ),
}
CLAIMS = [
    Claim(
        "with all of its state a training resumes to the last digit; with the weights alone it "
        "does not",
        control="what is restored; the steps are kept",
        seeds="exact",
        where="Stop and resume",
    ),
    Claim(
        "shares weighted with their tokens make the step of one process, a plain mean does not",
        control="the weights of the shares; model and batch are kept",
        seeds="exact, up to rounding",
        where="Several processes",
    ),
]
