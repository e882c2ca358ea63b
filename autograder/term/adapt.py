"""A lesson's notebook as a class has it: other points, exercises that are optional or left out."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from autograder import cell_metadata
from autograder.settings import count
from autograder.term.course_file import LessonChoice

HEADING = re.compile(r"^### Exercise [^\n]*$", re.MULTILINE)
LABEL = re.compile(r"^(●[^\n]*?)(\d+) minutes · ([\d.]+) points?([^\n]*)$", re.MULTILINE)
STAGES = re.compile(r"^Graded in \w+ parts:(.*?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
OF_STAGE = re.compile(r"\(([\d.]+)\)")
HEAD = re.compile(r"\*\*Points\*\* [\d.]+")
NO_POINTS = "optional: it earns no points in this class"


@dataclass(frozen=True)
class Exercise:
    """An exercise of a solved notebook.

    stages   the points of its stages, as its text names them; () if it has none
    section  the places of its cells, from the text that asks for it to its check
    """

    name: str
    points: float
    minutes: int
    stages: tuple[float, ...]
    section: range


def exercises(cells: list[dict[str, Any]]) -> dict[str, Exercise]:
    """The exercises of a notebook's cells, by name and in order."""
    found, asked = {}, 0
    for place, cell in enumerate(cells):
        if cell["cell_type"] == "markdown" and HEADING.search(cell["source"]):
            asked = place
        elif cell_metadata.is_check(cell):
            name, text = cell_metadata.exercise(cell), _asks(cells[asked])
            label, stages = LABEL.search(text), STAGES.search(text)
            found[name] = Exercise(
                name,
                cell_metadata.points(cell),
                int(label[2]) if label else 0,
                tuple(map(float, OF_STAGE.findall(stages[1]))) if stages else (),
                range(asked, place + 1),
            )
    return found


def adapt(notebook: dict[str, Any], choice: LessonChoice) -> None:
    """Make a lesson's notebook, solved or handed out, what a class has of it."""
    cells, worth = notebook["cells"], dict(choice.points) | dict.fromkeys(choice.optional, 0.0)
    there = exercises(cells)
    for name, points in worth.items():
        _reprice(cells, there[name], points)
    minutes = sum(there[name].minutes for name in choice.without)
    left = [place for name in choice.without for place in there[name].section]
    for name in choice.without:  # what stands above its heading, in the same cell, stays
        first = cells[there[name].section[0]]
        text = first["source"]
        first["source"] = text[: text.rindex(_heading(text))].rstrip()
        if first["source"]:
            left.remove(there[name].section[0])
    cells[:] = [cell for place, cell in enumerate(cells) if place not in set(left)]
    total = sum(one.points for one in exercises(cells).values())
    head = HEAD.sub(f"**Points** {total:g}", cells[0]["source"], count=1)
    if minutes and (time := cell_metadata.TIME.search(head)):
        head = f"{head[: time.start(1)]}{int(time[1]) - minutes}{head[time.end(1) :]}"
    cells[0]["source"] = head


def needed_later(cells: list[dict[str, Any]], name: str) -> bool:
    """Whether code of a solved notebook, below an exercise, calls what it asks for."""
    last = exercises(cells)[name].section[-1]
    later = (cell["source"] for cell in cells[last + 1 :] if cell["cell_type"] == "code")
    word = re.compile(rf"(?<![\w.\"'])(?<!def )(?<!class ){re.escape(name)}\b")
    return any(word.search(source) for source in later)


def _reprice(cells: list[dict[str, Any]], one: Exercise, points: float) -> None:
    """Give an exercise other points, in its check and in its text."""
    check, asks = cells[one.section[-1]], cells[one.section[0]]
    check["metadata"]["nbgrader"]["points"] = int(points) if points == int(points) else points
    text, asked = asks["source"], _asks(asks)
    said = count(points) if points else NO_POINTS
    new = LABEL.sub(lambda old: f"{old[1]}{old[2]} minutes · {said}{old[4]}", asked, count=1)
    if one.stages and points:
        new = STAGES.sub(lambda old: f"{old[0]} {_shares(one.stages, points)}", new, count=1)
    asks["source"] = text.removesuffix(asked) + new


def _shares(stages: Iterable[float], points: float) -> str:
    return (
        f"(These are shares of {sum(stages):g}; in this class all of it earns {points:g} points.)"
    )


def _asks(cell: Mapping[str, Any]) -> str:
    """The part of a cell's text in which an exercise is asked for."""
    text: str = cell["source"]
    return text[text.rindex(_heading(text)) :] if HEADING.search(text) else text


def _heading(text: str) -> str:
    return HEADING.findall(text)[-1]
