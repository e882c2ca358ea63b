"""The term of a class as a table: what is due when, how long it takes, and what it earns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat

from autograder import cell_metadata, lessons
from autograder.settings import count
from autograder.term import class_notebooks
from autograder.term.adapt import Exercise, exercises, needed_later
from autograder.term.course_file import Choices, there


@dataclass(frozen=True)
class Row:
    """A lesson of the term; minutes are those of the core path, ``starred`` those beyond it."""

    slug: str
    due: datetime | None
    minutes: int
    starred: int
    exercises: tuple[Exercise, ...]
    needed: frozenset[str]  # those that the notebook calls further down
    assumed: tuple[str, ...]  # lessons that it builds on and the class does not have

    @property
    def points(self) -> float:
        """The points that there are."""
        return sum(one.points for one in self.exercises)


def rows(choices: Choices, root: Path) -> list[Row]:
    """A Row for each lesson of the class; raises CourseError for what does not go together."""
    slugs = there(root)
    notebooks = {
        slug: nbformat.read(lessons.notebook(root, "solutions", slug), 4)
        for slug in choices.lessons
    }
    class_notebooks.refuse(choices, notebooks, root)
    return [_row(choices, slug, notebook, slugs) for slug, notebook in notebooks.items()]


def _row(choices: Choices, slug: str, notebook: Any, slugs: list[str]) -> Row:
    choice = choices.lessons[slug]
    cells = class_notebooks.adapted(notebook, choice)["cells"]
    time, found = cell_metadata.TIME.search(cells[0]["source"]), exercises(cells)
    needs = class_notebooks.needs(notebook, slugs)
    return Row(
        slug,
        choice.due,
        int(time[1]) if time else 0,
        int(time[2] or 0) if time else 0,
        tuple(found.values()),
        frozenset(name for name in found if needed_later(cells, name)),
        tuple(one for one in needs if one not in choices.lessons),
    )


def lines(
    choices: Choices, found: list[Row], weeks: Mapping[str, str], named: bool = False
) -> Iterator[str]:
    """The table: a block for each time at which something is due, or for each of ``weeks``.

    weeks  {slug: what its block is called, where it has no due date}
    named  whether the exercises of each lesson are listed
    """
    width = max(len(row.slug) for row in found)
    headings = {
        row.slug: choices.shown(row.due) or weeks.get(row.slug, "no due date") for row in found
    }
    for heading, block in groupby(found, key=lambda row: headings[row.slug]):
        rows = list(block)
        released = choices.shown(choices.lessons[rows[0].slug].release)
        start = f"from {released}, " if released else ""
        yield f"{start}due {heading}" if rows[0].due else heading
        for row in rows:
            choice = choices.lessons[row.slug]
            more = f", ★ {row.starred} more" if row.starred else ""
            yield (
                f"  {row.slug:<{width}}  {row.minutes:>4} minutes{more:<14}"
                f"{len(row.exercises):>3} exercises {row.points:>5g} points"
            )
            yield from _exercises(row) if named else ()
            for what, names in (("optional", choice.optional), ("without", choice.without)):
                if names:
                    yield f"  {'':<{width}}  {what}: {', '.join(names)}"
        if len(rows) > 1:
            yield f"  {'together':<{width}}  {sum(row.minutes for row in rows):>4} minutes"
    yield from _totals(found)
    if late := choices.late:
        yield (
            f"Late work loses {late.percent_a_day:g} % of what it earned for each day that has "
            f"begun, {late.most_percent:g} % at most."
        )
    for what, there_are in (("sections", choices.sections), ("groups", choices.groups)):
        if there_are:
            yield f"{len(there_are)} {what}, {sum(map(len, there_are.values()))} students."


def _exercises(row: Row) -> Iterator[str]:
    width = max(len(one.name) for one in row.exercises)
    for one in row.exercises:
        stages = f", {len(one.stages)} stages" if one.stages else ""
        stays = "" if one.name in row.needed else ", can be left out"
        worth = f"{one.minutes:>3} minutes, {count(one.points)}"
        yield f"      {one.name:<{width}}  {worth}{stages}{stays}"


def _totals(found: list[Row]) -> Iterator[str]:
    minutes, points = (sum(getattr(row, name) for row in found) for name in ("minutes", "points"))
    hours = f"{minutes // 60} h {minutes % 60} min"
    yield f"{len(found)} lessons, {hours} without what has a star, {points:g} points."
    before: Mapping[str, list[str]] = {
        slug: [row.slug for row in found if slug in row.assumed]
        for row in found
        for slug in row.assumed
    }
    for slug, later in sorted(before.items()):
        builds = "builds" if len(later) == 1 else "build"
        yield f"Students must have had {slug}: {', '.join(later)} {builds} on it."
