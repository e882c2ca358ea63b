"""The solved notebooks that a class is graded by, in class/source/, where they differ."""

import copy
import re
import shutil
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import nbformat

from autograder import CourseError, lessons
from autograder.files import write_aside
from autograder.term.adapt import adapt, exercises, needed_later
from autograder.term.course_file import Choices, LessonChoice, there

FOLDER = "class/source"
NEEDS = re.compile(r"\*\*You need\*\*\s+lessons?\s+([^;]*)")
NUMBERS = re.compile(r"(\d\d)(?:\s+to\s+(\d\d))?")


def source_folder(choices: Choices, root: Path) -> str:
    """The folder of the solved notebooks below ``root``: those of the class are written first.

    Raises CourseError for choices that do not fit together.
    """
    if not choices.adapts:
        return "solutions"
    notebooks = {
        slug: nbformat.read(lessons.notebook(root, "solutions", slug), 4)
        for slug in choices.lessons
    }
    refuse(choices, notebooks, root)
    for slug, notebook in notebooks.items():
        path = lessons.notebook(root, FOLDER, slug)
        made = adapted(notebook, choices.lessons[slug])
        content = f"{nbformat.writes(made)}\n".encode()
        if not path.is_file() or path.read_bytes() != content:  # what is the same keeps its time
            path.parent.mkdir(parents=True, exist_ok=True)
            write_aside(path, content)
    for path in (root / FOLDER).glob("*/"):
        if path.name not in choices.lessons:
            shutil.rmtree(path)
    return FOLDER


def adapted(notebook: Any, choice: LessonChoice) -> Any:
    """A copy of a notebook as the class has it."""
    made = copy.deepcopy(notebook)
    if choice.changes:
        adapt(made, choice)
    return made


def needs(notebook: Mapping[str, Any], slugs: list[str]) -> tuple[str, ...]:
    """The lessons, of ``slugs``, that the head of a lesson's notebook says one needs."""
    said = NEEDS.search(notebook["cells"][0]["source"])
    numbers = set[int]()
    for first, last in NUMBERS.findall(said[1]) if said else ():
        numbers |= {*range(int(first), int(last or first) + 1)}
    return tuple(slug for slug in slugs if int(slug[:2]) in numbers)


def refuse(choices: Choices, notebooks: Mapping[str, Any], root: Path) -> None:
    """Raise CourseError, in a sentence, for the first thing that does not go together."""
    slugs = there(root)
    for slug, choice in choices.lessons.items():
        if choice.changes:
            for sentence in _faults(choice, notebooks[slug]["cells"]):
                raise CourseError(f"{choices.path}: lesson {slug}: {sentence}")
        had = {*choices.assumed, *(one for one in choices.lessons if one < slug)}
        missing = [one for one in needs(notebooks[slug], slugs) if one not in had]
        if choices.chosen and missing:
            numbers = ", ".join(f'"{one[:2]}"' for one in missing)
            raise CourseError(
                f"{choices.path}: lesson {slug} builds on {', '.join(missing)}, which the class "
                f"does not have: take it in, or write assumed = [{numbers}] if your students know "
                "it; its library is given to them in any case"
            )


def _faults(choice: LessonChoice, cells: list[dict[str, Any]]) -> Iterator[str]:
    known = exercises(cells)
    named = [*choice.points, *choice.optional, *choice.without]
    for name in named:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
            yield f"{name} is no exercise of it; {hint}"
        elif named.count(name) > 1:
            yield f"{name} stands in two of points, optional and without; one of them is to go"
    for name, points in choice.points.items():
        stages = len(known[name].stages)
        if points < stages:  # what one of them earns could hardly be seen
            yield (
                f"{name} has {stages} stages, each earned by itself, so it needs at least {stages} "
                f"points, not {points:g}"
            )
    for name in choice.without:
        if needed_later(cells, name):
            yield (
                f"{name} is called further down in the notebook, so it cannot be left out; as one "
                "of optional it stays and earns nothing"
            )
    if not any(name not in (*choice.optional, *choice.without) for name in known):
        yield "no exercise is left that earns points; leave the whole lesson out"
