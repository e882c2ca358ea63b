"""How long a lesson takes: its text and code at a reader's pace, and its exercises' minutes.

The minutes of an exercise are those that its label gives a learner.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.building.excerpt import docstring_of, text_of
from autograder.building.lesson import Lesson
from autograder.building.source import Cell
from autograder.cell_metadata import TIME

PACE = 150  # words a minute, of a text that is to be understood
LABEL = re.compile(r"^●.*?(\d+) minutes", re.MULTILINE)
HEADING = re.compile(r"^(#{1,3}) (.*)$", re.MULTILINE)
# What is not read from beginning to end: folded hints, drawings, addresses, drawn rules of tables.
LEFT_OUT = re.compile(r"<details>.*?</details>|!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|<[^>]*>", re.DOTALL)
WORD = re.compile(r"[^\W_][\w'’-]*")


@dataclass(frozen=True)
class Minutes:
    """What a lesson states and what is counted, in minutes. ``starred`` is beyond the core path."""

    lesson: str
    stated: int
    stated_starred: int
    reading: float
    exercises: int
    starred: float

    @property
    def core(self) -> float:
        """The minutes of everything without a star."""
        return self.reading + self.exercises


def count(lesson: Lesson) -> Minutes:
    """Count the minutes of a lesson; raises SourceError where its head states none."""
    stated = TIME.search(lesson.cells[0].source)
    if stated is None:
        hint = "write: **Time** 90 minutes, or: **Time** 90 minutes, ★ 20 more"
        raise lesson.fault(lesson.cells[0], f"the first cell states no time; {hint}")
    core, starred = list[str](), list[str]()
    for cell, star in _with_stars(lesson.cells):
        if not cell.answer:
            (starred if star else core).append(_read(lesson, cell))
    return Minutes(
        lesson.slug,
        int(stated[1]),
        int(stated[2] or 0),
        _reading(core),
        _exercises(core),
        _reading(starred) + _exercises(starred),
    )


def _with_stars(cells: Sequence[Cell]) -> list[tuple[Cell, bool]]:
    """The cells, and whether they stand under a heading with a star."""
    found, starred = [], [False] * 4  # by the level of the heading
    for cell in cells:
        if cell.kind == "markdown":
            for marks, title in HEADING.findall(cell.source):
                level = len(marks)
                starred[level:] = ["★" in title] * (4 - level)
        found.append((cell, any(starred)))
    return found


def _read(lesson: Lesson, cell: Cell) -> str:
    """What is read of a cell: of an exercise what it says, not what is to be written."""
    if cell.kind == "exercise":
        return docstring_of(lesson.library, cell.name)
    return text_of(lesson.library, cell.name) if cell.kind == "given" else cell.source


def _reading(texts: Sequence[str]) -> float:
    return sum(len(WORD.findall(LEFT_OUT.sub(" ", text))) for text in texts) / PACE


def _exercises(texts: Sequence[str]) -> int:
    return sum(int(minutes) for text in texts for minutes in LABEL.findall(text))
