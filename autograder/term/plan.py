"""Plans to begin a term with, and the term as a table: what is due when, and what it earns."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from string import Template

import nbformat

from autograder import CourseError, cell_metadata, lessons
from autograder.settings import count
from autograder.term import class_notebooks
from autograder.term.adapt import Exercise, exercises, needed_later
from autograder.term.course_file import Choices, there

MORNING, NIGHT = time(8, 0), time(23, 59)


@dataclass(frozen=True)
class Plan:
    """A ready plan: what it is for, the lessons of each week, and lessons that it assumes."""

    title: str
    weeks: tuple[str, ...]
    assumed: tuple[str, ...] = ()


EIGHT = ("00 01", "02 03", "04 05", "06 07", "08", "09", "10", "11")
PLANS = {
    "eight-weeks": Plan(
        "eight weeks, from kernel regression to a Transformer that is trained", EIGHT
    ),
    "fourteen-weeks": Plan(
        "fourteen weeks, on to decoding, language models, vision and looking inside",
        (*EIGHT, "12", "13", "14", "15", "16", "17"),
    ),
    "three-sessions": Plan(
        "three sessions on attention alone, for a course on something else",
        ("01", "05", "06"),
        ("00", "04"),
    ),
}


def text(name: str | None = None, start: date | None = None, timezone: str | None = None) -> str:
    """class/course.toml with its comments.

    name   of a ready plan; None for all lessons as they are, without dates
    start  the day on which the first lesson is handed out; a week's lessons share its days, for a
           lesson's solutions are handed out with the next one

    Raises CourseError where no plan is called ``name``.
    """
    if name and name not in PLANS:
        raise CourseError(f"no plan is called {name!r}; there are: {', '.join(PLANS)}")
    plan = PLANS[name] if name else Plan("all lessons, in their order", ())
    zone = json.dumps(timezone or "Europe/Berlin")  # as TOML would write it, too
    words = {
        "title": plan.title,
        "timezone": f"timezone = {zone}" if timezone else f"# timezone = {zone}",
        "assumed": f"assumed = {list(plan.assumed)}" if plan.assumed else '# assumed = ["00"]',
        "lessons": "\n".join(_lessons(plan, start)),
    }
    template = (Path(__file__).parent / "course.toml.txt").read_text(encoding="utf-8")
    return Template(template).substitute(words).rstrip() + "\n"


def _lessons(plan: Plan, start: date | None) -> Iterator[str]:
    for number, week in enumerate(plan.weeks):
        yield f"\n# Week {number + 1}"
        named = week.split()
        for place, lesson in enumerate(named):
            yield f"[lessons.{lesson}]"
            if start is not None:
                days = [7 * number + 7 * one // len(named) for one in (place, place + 1)]
                first = datetime.combine(start + timedelta(days[0]), MORNING)
                last = datetime.combine(start + timedelta(days[1] - 1), NIGHT)
                yield f'release = "{first:%Y-%m-%d %H:%M}"'
                yield f'due = "{last:%Y-%m-%d %H:%M}"'


@dataclass(frozen=True)
class Row:
    """A lesson of the term; minutes are those of the core path, ``starred`` those beyond it."""

    slug: str
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
    notebooks = {
        slug: nbformat.read(lessons.notebook(root, "solutions", slug), 4)
        for slug in choices.lessons
    }
    class_notebooks.refuse(choices, notebooks, root)
    made, slugs = [], there(root)
    for slug, notebook in notebooks.items():
        cells = class_notebooks.adapted(notebook, choices.lessons[slug])["cells"]
        time, found = cell_metadata.TIME.search(cells[0]["source"]), exercises(cells)
        minutes, starred = (int(part or 0) for part in time.groups()) if time else (0, 0)
        needed = frozenset(name for name in found if needed_later(cells, name))
        needs = class_notebooks.needs(notebook, slugs)
        assumed = tuple(one for one in needs if one not in choices.lessons)
        made.append(Row(slug, minutes, starred, tuple(found.values()), needed, assumed))
    return made


def lines(choices: Choices, found: list[Row], named: bool = False) -> Iterator[str]:
    """The table: a line for each lesson, then what all of it comes to.

    named  whether the exercises of each lesson are listed
    """
    width = max(len(row.slug) for row in found)
    for row in found:
        choice = choices.lessons[row.slug]
        more = f", ★ {row.starred} more" if row.starred else ""
        dates = {"from": choices.shown(choice.release), "due": choices.shown(choice.due)}
        when = ", ".join(f"{what} {date}" for what, date in dates.items() if date)
        yield (
            f"{row.slug:<{width}}  {row.minutes:>4} minutes{more:<14}{len(row.exercises):>3} "
            f"exercises {row.points:>5g} points  {when or 'no due date'}"
        )
        yield from _exercises(row) if named else ()
        for what, names in (("optional", choice.optional), ("without", choice.without)):
            if names:
                yield f"{'':<{width}}  {what}: {', '.join(names)}"
    yield from _totals(found)
    if late := choices.late:
        yield (
            f"Late work loses {late.percent_a_day:g} % of what it earned for each day that has "
            f"begun, {late.most_percent:g} % at most."
        )
    for what, there_are in (("sections", choices.sections), ("groups", choices.groups)):
        if there_are:
            students = sum(map(len, there_are.values()))
            yield f"{what.capitalize()}: {len(there_are)}, with {students} students."


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
    for slug in sorted({slug for row in found for slug in row.assumed}):
        later = ", ".join(row.slug for row in found if slug in row.assumed)
        yield f"Students must have had {slug}, on which others build: {later}."
