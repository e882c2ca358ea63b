"""Recorded experiments: what the lessons claim about learning, each with its control.

One module a lesson, with EXPERIMENTS that are recorded and CLAIMS that the notebook itself shows.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Experiment:
    """A claim with its control, and what is to be run for it.

    claim    what the lesson says, in a sentence
    control  which factor is changed, and what is kept
    points   settings, each a dict of keyword arguments of ``run``; the seed is one of them
    run      (**point) -> dict of numbers, strings and lists of them
    again    one of the points that takes seconds: a test runs it and compares with the record;
             None where each takes longer, or much like it is run again elsewhere
    """

    claim: str
    control: str
    points: list[dict[str, Any]]
    run: Callable[..., dict[str, Any]]
    again: dict[str, Any] | None

    @property
    def seeds(self) -> str:
        """The seeds of the points."""
        return ", ".join(map(str, sorted({point["seed"] for point in self.points})))


@dataclass(frozen=True)
class Claim:
    """A claim that a notebook shows by itself: ``where`` is the heading of its figure or table."""

    claim: str
    control: str
    seeds: str
    where: str


def seeded(seeds: Iterable[int], **setting: Any) -> list[dict[str, Any]]:
    """A setting's points, one for each seed."""
    return [{**setting, "seed": seed} for seed in seeds]
