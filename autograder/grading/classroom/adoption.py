"""Cells that a lesson gained or lost while a class has it: nbgrader takes no such notebook.

A solved notebook changes with an update of the course, or with what class/course.toml says. As long
as nobody handed in, nbgrader begins anew. Afterwards the gradebook is to be changed cell by cell.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nbgrader.api import (
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    SolutionCell,
    SourceCell,
)

from autograder import cell_metadata

KINDS = (GradeCell, SolutionCell, SourceCell)


@dataclass(frozen=True)
class Difference:
    """Exercises that only the gradebook has, or only the notebook, and whether any cells differ."""

    gone: tuple[str, ...]
    new: tuple[str, ...]
    other_cells: bool
    handed_in: bool  # whether something of the lesson was


def difference(book: Gradebook, lesson: str, cells: list[dict[str, Any]]) -> Difference | None:
    """What the solved notebook and the gradebook do not share; None where they share all.

    That may be anything: nbgrader may be killed between two cells. Raises MissingEntry where the
    gradebook does not know the lesson.
    """
    notebook = book.find_notebook(lesson, lesson)
    old = {(kind, one.name) for kind in KINDS for one in _of(notebook, kind)}
    now = {(kind, name) for kind, name, _ in _wanted(cells)}
    points = {
        name: cell_metadata.points(one) for kind, name, one in _wanted(cells) if kind is GradeCell
    }
    other_points = points != {one.name: one.max_score for one in notebook.grade_cells}
    if old == now and not other_points:
        return None
    gone, new = (_exercises(some) for some in (old - now, now - old))
    return Difference(gone, new, old != now, bool(notebook.submissions))


def adopt(book: Gradebook, lesson: str, cells: list[dict[str, Any]]) -> None:
    """Give the gradebook the cells of the notebook, and every submission a place for a new score.

    Scores and comments of cells that are gone are removed.
    """
    notebook, db = book.find_notebook(lesson, lesson), book.db
    wanted = {(kind, name): cell for kind, name, cell in _wanted(cells)}
    for kind in KINDS:
        for one in _of(notebook, kind):
            if (kind, one.name) in wanted:
                del wanted[kind, one.name]
                continue
            for scores in (Grade, Comment):
                db.query(scores).filter(scores.cell_id == one.id).delete()
            db.delete(one)
    db.flush()
    for (kind, name), cell in wanted.items():
        made = kind(name=name, notebook=notebook, **_facts(kind, cell))
        db.add(made)
        db.flush()
        for submitted in notebook.submissions if kind is not SourceCell else ():
            db.add((Grade if kind is GradeCell else Comment)(cell_id=made.id, notebook=submitted))
    db.commit()
    db.expire_all()


def _wanted(cells: Iterable[dict[str, Any]]) -> Iterable[tuple[type, str, dict[str, Any]]]:
    """(kind, name, cell) of what nbgrader keeps of a notebook."""
    for cell in filter(cell_metadata.is_known, cells):
        name = cell_metadata.grade_id(cell)
        yield SourceCell, name, cell
        if cell_metadata.is_check(cell):
            yield GradeCell, name, cell
        if cell_metadata.is_solution(cell):
            yield SolutionCell, name, cell


def _facts(kind: type, cell: dict[str, Any]) -> dict[str, Any]:
    """What nbgrader notes of a cell; generate_assignment brings the rest up to date."""
    if kind is GradeCell:
        return {"max_score": cell_metadata.points(cell), "cell_type": cell["cell_type"]}
    if kind is SourceCell:
        return {"cell_type": cell["cell_type"], "source": cell["source"]}
    return {}


def _of(notebook: Any, kind: type) -> list[Any]:
    names = {GradeCell: "grade_cells", SolutionCell: "solution_cells", SourceCell: "source_cells"}
    return list(getattr(notebook, names[kind]))


def _exercises(found: Iterable[tuple[type, str]]) -> tuple[str, ...]:
    names = (cell_metadata.exercise_called(name) for kind, name in found if kind is GradeCell)
    return tuple(sorted(names))
