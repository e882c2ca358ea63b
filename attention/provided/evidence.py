"""Experiments that take longer than a notebook's minute: their recorded results."""

import json
from pathlib import Path
from typing import Any

from attention.provided.files import ROOT

FOLDER = ROOT / "data" / "evidence"


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
        raise KeyError(
            f"data/evidence/{lesson}.json holds no experiment {experiment!r}; it holds "
            f"{', '.join(experiments) or 'none'}; record it: python -m benchmarks.evidence {lesson}"
        )
    return [{**row["point"], **row["result"]} for row in experiments[experiment]]
