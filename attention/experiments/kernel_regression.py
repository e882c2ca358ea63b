"""Lesson 01: what the notebook shows of bandwidths, each with its control."""

from attention.experiments.recorded import Claim

CLAIMS = [
    Claim(
        "At equal bandwidth the Gaussian kernel smooths more than boxcar and Epanechnikov",
        control="the kernel changed; bandwidth 0.6 h and readings kept",
        seeds="0, 1, 2",
        where="Other kernels",
    ),
    Claim(
        "The error on the examples cannot choose a bandwidth; leave-one-out chooses one near the "
        "best, not the best",
        control="three errors at each bandwidth on the same readings",
        seeds="0, 1, 2",
        where="Is it the best bandwidth?",
    ),
    Claim(
        "Training finds the valley from wide starts; from 0.01 h it stays stuck in 8 of 20 rivers",
        control="the start changed; readings, steps and rate kept",
        seeds="0, 1, 2; from 0.01 h 0 to 19",
        where="Is it the best bandwidth?",
    ),
]
