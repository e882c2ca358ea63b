"""How far a learner is: read from the notebooks in ``lessons/``, of which nothing is run.

An exercise is done where the saved output of its check says so, and the check was run after the
answer. ``autograder check`` runs the checks again, and does not believe what was saved.
"""

import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from autograder import ROOT, CourseError, cell_metadata
from autograder.settings import care, earned

OPEN, BEGUN, DONE = "open", "begun", "done"
SIGNS = {OPEN: "○", BEGUN: "◐", DONE: "●"}
WIDTH = 92
COSTS = re.compile(r"^  costs +([\d.]+) of ([1-9][\d.]*) points?", re.MULTILINE)  # some stages
# An exercise's heading, and the line below it: ●○○ easy · 8 minutes · 2 points
HEADING = re.compile(r"^### Exercise (\S+) · .*?\n+[●○]+ .*?(\d+) minutes?", re.MULTILINE)


@dataclass(frozen=True)
class Exercise:
    """One exercise of a notebook: state is OPEN, BEGUN or DONE; minutes as its heading says."""

    name: str
    number: str
    state: str
    points: float
    minutes: int
    earned: float = 0.0

    @property
    def share_left(self) -> float:
        """How much of it is to be done: where it has stages, by the points that are missing."""
        return 0.0 if self.state == DONE else 1 - self.earned / (self.points or 1)


@dataclass(frozen=True)
class Lesson:
    """A notebook: the minutes that its head gives it, and what is wrong with the file, if it is."""

    slug: str
    minutes: int = 0
    exercises: Sequence[Exercise] = ()
    problem: str = ""

    @property
    def done(self) -> list[Exercise]:
        """The exercises that are done."""
        return [one for one in self.exercises if one.state == DONE]

    @property
    def minutes_left(self) -> float:
        """The lesson's minutes, by the share of its exercises' minutes that is not done."""
        every = sum(one.minutes for one in self.exercises)
        left = sum(one.minutes * one.share_left for one in self.exercises)
        return self.minutes * left / every if every else 0.0


def read(folder: Path | str | None = None) -> list[Lesson]:
    """The lessons in ``folder``, which is the course's own ``lessons/`` if none is given.

    Raises CourseError if there is none.
    """
    folder = Path(folder) if folder else ROOT / "lessons"
    found = [replace(read_one(path), slug=path.parent.name) for path in notebooks(folder)[0]]
    if not found:
        raise CourseError(
            f"{folder} holds no lesson: give the folder in which 00_getting_started/ lies"
        )
    return found


def notebooks(folder: Path) -> tuple[list[Path], list[Path]]:
    """The notebooks below ``folder`` that count, one for each lesson, and those that do not.

    It is the one that is called as its folder, or the only one there is, whatever its name.
    """
    counted, left = list[Path](), list[Path]()
    for lesson in sorted(folder.glob("[0-9][0-9]_*/")):
        there = sorted(lesson.glob("*.ipynb"), key=lambda path: path.stem != lesson.name)
        named = there[:1] if len(there) == 1 or lesson / f"{lesson.name}.ipynb" in there else []
        counted += named
        left += there[len(named) :]
    return counted, left


def not_counted(left: Iterable[Path]) -> str:
    """A line for each notebook of `notebooks` that does not count."""
    return "".join(
        f"Not counted: {path.parent.name}/{path.name}. To count, it must be the only notebook "
        f"there, or be called {path.parent.name}.ipynb.\n"
        for path in left
    )


def show() -> None:
    """Print, in a notebook, the table of the lessons that lie beside it; no solved ones."""
    here = Path.cwd()  # in a notebook, the folder in which it lies
    if here.parent.name == "solutions" or not (here / f"{here.name}.ipynb").is_file():
        print("In lessons/, this cell says how far you are.")
    else:
        print(table(read(here.parent)))


def table(lessons: Iterable[Lesson]) -> str:
    """The lessons in a table, and below it what is next."""
    rows, every = Table("lesson", "exercises", box=None, pad_edge=False), list(lessons)
    for title in ("points", "minutes left"):
        rows.add_column(title, justify="right")
    for one in every:
        signs = "".join(SIGNS[exercise.state] for exercise in one.exercises)
        rows.add_row(one.slug, one.problem or signs, _points([one]), f"{one.minutes_left:.0f}")
    stream = io.StringIO()
    Console(file=stream, width=WIDTH, force_jupyter=False, color_system=None).print(rows)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return "\n".join([*lines, "", *_below(every)])


def _points(lessons: Iterable[Lesson]) -> str:
    every = [one for lesson in lessons for one in lesson.exercises]
    return f"{sum(one.earned for one in every):g} of {sum(one.points for one in every):g}"


def _below(lessons: list[Lesson]) -> list[str]:
    every = [(lesson, one) for lesson in lessons for one in lesson.exercises]
    left = [(lesson, one) for lesson, one in every if one.state != DONE]
    hours, minutes = divmod(round(sum(lesson.minutes_left for lesson in lessons)), 60)
    total = f"{len(every) - len(left)} of {len(every)} exercises, {_points(lessons)} points; "
    lines = [f"{total}{hours} h {minutes:02} min left.   ● done   ◐ begun   ○ open"]
    if left:
        lesson, one = left[0]
        lines.append(f"Next: {one.number} {one.name} in {lesson.slug}, {one.minutes} minutes.")
    return lines


def read_one(path: Path) -> Lesson:
    """What one notebook says."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if isinstance(cell, dict)]
    except (OSError, ValueError, TypeError, KeyError):
        return Lesson(path.stem, problem="this file is no notebook")
    answers, exercises = dict[str, dict[str, Any]](), dict[str, Exercise]()
    sources = [_text(cell.get("source")) for cell in cells]
    names = [cell_metadata.grade_id(cell) * cell_metadata.is_solution(cell) for cell in cells]
    blank = cell_metadata.blank_copies(names, sources)
    cells = [cell for place, cell in enumerate(cells) if place not in blank]
    number, length, minutes = "", 0, 0  # of the exercise above, and of the lesson
    for cell in cells:
        text, name = _text(cell.get("source")), cell_metadata.exercise(cell)
        if cell.get("cell_type") == "markdown":
            if headings := HEADING.findall(text):
                number, length = headings[-1][0], int(headings[-1][1])
            if (time := cell_metadata.TIME.search(text)) and not minutes:
                minutes = sum(int(part or 0) for part in time.groups())
        elif cell_metadata.is_solution(cell):
            answers[name] = cell
        elif cell_metadata.is_check(cell) and name not in exercises:  # a copy says nothing new
            state, cost = _state(name, answers.get(name), cell)
            points = cell_metadata.points(cell)
            worth = earned(points, cost)
            exercises[name] = Exercise(name, number, state, points, length, worth)
    return Lesson(path.stem, minutes, list(exercises.values()))


def _state(name: str, answer: dict[str, Any] | None, check: dict[str, Any]) -> tuple[str, float]:
    """How far an exercise is, and the share of its points that its check took."""
    if answer is None or cell_metadata.STUB.search(_text(answer.get("source"))):
        return OPEN, 1.0
    written, checked = answer.get("execution_count"), check.get("execution_count")
    if isinstance(written, int) and isinstance(checked, int) and checked < written:
        return BEGUN, 1.0  # the answer was run again after its check
    outputs = [one for one in check.get("outputs") or () if isinstance(one, dict)]
    lines = [line for one in outputs for line in _text(one.get("text")).splitlines()]
    if f"{name}: correct." in lines:
        return DONE, 0.0
    if right := [line for line in lines if line.startswith(f"{name}: right.")]:
        return DONE, 0.0 if right[0].startswith(f"{name}: right. A note:") else care().share
    told = [one["traceback"] for one in outputs if isinstance(one.get("traceback"), list)]
    lost = COSTS.search("\n".join(_text(line) for lines in told for line in lines))
    return BEGUN, float(lost[1]) / float(lost[2]) if lost else 1.0


def _text(value: Any) -> str:
    """A notebook's text, which may stand in lines."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""
