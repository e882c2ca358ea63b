"""A lesson's board: whose settings are known, what they achieved, and in which order."""

import hashlib
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from attention.provided.files import write_aside
from autograder import CourseError
from autograder.grading.classroom.folders import Course
from autograder.leaderboard import decoders, hardware, numbers, searches, vision
from autograder.leaderboard.entries import Refused, find

# Each says what its settings may be and are (KINDS, USUAL), and in words what is ranked, how much
# may be spent, and in what a score and a size are given (MEASURE, BUDGET, UNIT, SIZE). ``refuse``
# returns the size of settings or raises Refused. ``score`` takes settings, a seed, and the secret
# of a class, by which data are drawn that nobody has seen.
TASKS: dict[str, ModuleType] = {
    "11_training": numbers,
    "12_training_on_gpu": hardware,
    "13_decoding": decoders,
    "14_translation": searches,
    "16_encoders_and_vision": vision,
}
SEEDS = (0, 1, 2)
LIBRARY = "as in the lesson"


@dataclass
class Row:
    """One entry, its size as the task counts it, and what it achieved: scores, seconds of all."""

    name: str
    settings: dict[str, Any]
    size: int
    scores: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        """The mean score of all seeds."""
        return statistics.fmean(self.scores)


class Board:
    """The board of one lesson of a course; what was measured is kept in ``folder``.

    ``rows`` are the entries, ranked; ``refused`` pairs of a name and a sentence. Nothing on the
    board says whose an entry is but the name that its author chose.
    """

    def __init__(self, course: Course, lesson: str) -> None:
        if lesson not in TASKS:
            raise CourseError(f"{lesson} has no leaderboard; there are: {', '.join(TASKS)}")
        self.lesson, self.task = lesson, TASKS[lesson]
        self.folder = course.root / "class" / "leaderboard"
        usual = dict(self.task.USUAL)
        self.rows: list[Row] = [Row(LIBRARY, usual, self.task.refuse(usual))]
        self.refused: list[tuple[str, str]] = []
        self._course = course
        self._file = self.folder / f"{lesson}.json"
        self._kept = self._load()
        self._outcomes: dict[str, dict[str, Any]] = self._kept["outcomes"]

    def read(self) -> None:
        """Find the entries in what was handed in; those over the budget are refused."""
        for handed in self._course.submissions([self.lesson]):
            cells = self._course.read(handed).cells
            name = ""
            try:
                entry = find(cells, self.task.KINDS, self.task.USUAL)
                if entry is not None:
                    name = self._free(entry.name)
                    size = self.task.refuse(entry.settings)
                    self.rows.append(Row(name, entry.settings, size))
            except Refused as why:
                self.refused.append((name or "without a name", str(why)))

    def _free(self, name: str) -> str:
        """``name``, with a number where somebody has it."""
        taken = {row.name for row in self.rows} | {one for one, _ in self.refused}
        name = name or "entry"
        names = itertools.chain([name], (f"{name} ({number})" for number in itertools.count(2)))
        return next(one for one in names if one not in taken)

    def measure(self, told: Callable[[int, int], None] = lambda done, total: None) -> int:
        """Measure what is not known yet; returns how many entries that were.

        ``told`` is called with (entries measured, entries to measure). Every outcome is kept at
        once, so that a run that was stopped goes on where it was.
        """
        unknown = {self._key(row): row for row in self.rows if self._key(row) not in self._outcomes}
        for number, (key, row) in enumerate(unknown.items()):
            told(number, len(unknown))
            start = time.monotonic()
            scores = [self.task.score(row.settings, seed, self._kept["secret"]) for seed in SEEDS]
            seconds = round(time.monotonic() - start, 1)
            self._outcomes[key] = {"scores": scores, "seconds": seconds}
            self._save()
        for row in self.rows:
            known = self._outcomes[self._key(row)]
            row.scores, row.seconds = known["scores"], known["seconds"]
        self.rows.sort(key=lambda row: (-row.mean, row.name))
        return len(unknown)

    def _key(self, row: Row) -> str:
        """The same for the same settings and budget, whoever chose them."""
        said = json.dumps([row.settings, self.task.BUDGET, SEEDS], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    def _load(self) -> dict[str, Any]:
        if not self._file.exists():
            return {"secret": random.SystemRandom().randrange(2**62), "outcomes": {}}
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            return {"secret": int(kept["secret"]), "outcomes": dict(kept["outcomes"])}
        except (OSError, ValueError, KeyError, TypeError):
            raise CourseError(
                f"{self._file} is damaged: restore it, or move it away to measure all anew"
            ) from None

    def _save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_aside(self._file, json.dumps(self._kept, indent=1).encode())
