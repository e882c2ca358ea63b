"""Recorded experiments: what is run for a claim, and the results that are stored."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attention.provided.files import ROOT

FOLDER = ROOT / "data" / "evidence"


@dataclass(frozen=True)
class Experiment:
    """What is to be run for a claim: docs/evidence.md says which, with its control.

    points   settings, each a dict of keyword arguments of ``run``; the seed is one of them, unless
             nothing is drawn
    run      (**point) -> dict of numbers, strings and lists of them; what it asks for besides are
             pieces of its lesson, by their names
    again    one of the points that takes seconds: a test runs it and compares with the record;
             None where each takes longer, or much like it is run again elsewhere
    """

    points: list[dict[str, Any]]
    run: Callable[..., dict[str, Any]]
    again: dict[str, Any] | None

    @property
    def seeds(self) -> str:
        """The seeds of the points."""
        found = sorted({point["seed"] for point in self.points if "seed" in point})
        return ", ".join(map(str, found)) or "none needed: nothing is drawn"


def seeded(seeds: Iterable[int], **setting: Any) -> list[dict[str, Any]]:
    """A setting's points, one for each seed."""
    return [{**setting, "seed": seed} for seed in seeds]


def path_of(lesson: str) -> Path:
    """Where the recorded experiments of a lesson are, by the name of its module."""
    return FOLDER / f"{lesson}.json"


def read(lesson: str, experiment: str) -> list[dict[str, Any]]:
    """The recorded points of one experiment: dicts of its settings and results in one.

    lesson  name of the lesson's module, as in "bahdanau_attention"

    Raises KeyError, with the names there are and the command that records, for an unknown one.
    """
    path = path_of(lesson)
    recorded = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    experiments = recorded.get("experiments", {})
    if experiment not in experiments:
        there = ", ".join(experiments) or "none"
        raise KeyError(
            f"data/evidence/{lesson}.json holds no experiment {experiment!r}; it holds {there}; "
            f"record it: python -m attention.experiments {lesson}"
        )
    return [{**row["point"], **row["result"]} for row in experiments[experiment]]
