"""Lesson 01: predictions far away from all readings, and a feature that is only noise."""

import torch

from attention.experiments.kernel_regression import river
from attention.kernel_regression import nadaraya_watson, soft_lookup

BOOKS = ((0.9, 0.2), (0.8, 0.3), (0.6, 0.7), (0.1, 0.9))  # (language, maths), as in the lesson
METRES, SEARCH, TEMPERATURE = (2.0, 4.0, 10.0, 18.0), (0.7, 0.6), 0.1
DRAWS = 20_000


def far_away(bandwidth=0.3):
    """The lesson's river at hours that nobody has read, and its last reading."""
    hours, levels = river(seed=3)
    asked = torch.tensor([8.0, 20.0, 1000.0])
    found = nadaraya_watson(asked, hours, levels, bandwidth)
    told = {f"at {at:g} h": level for at, level in zip(asked.tolist(), found, strict=True)}
    told["last reading"] = levels[-1]
    return {name: round(level.item(), 2) for name, level in told.items()}


def third_feature():
    """Mean and standard deviation of the answer in metres, by the spread of the noise."""
    noise = torch.randn(DRAWS, len(BOOKS), generator=torch.Generator().manual_seed(0))
    query, found = torch.tensor([*SEARCH, 0.0]), {}
    for spread in (0.1, 0.3, 1.0):
        answers = [
            soft_lookup(
                query,
                torch.cat([torch.tensor(BOOKS), spread * feature[:, None]], dim=1),
                torch.tensor(METRES)[:, None],
                TEMPERATURE,
            )
            for feature in noise
        ]
        told = torch.cat(answers)
        found[f"spread {spread:g}"] = [round(told.mean().item(), 2), round(told.std().item(), 2)]
    return found
