"""The solved notebooks that a class is graded by, in class/source/, where they differ."""

import copy
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat

from autograder import lessons
from autograder.files import write_aside
from autograder.term import fit
from autograder.term.adapt import adapt
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
    notebooks = {slug: _read(root, slug) for slug in choices.lessons}
    refuse(choices, notebooks, root)
    for slug, notebook in notebooks.items():
        made = adapted(notebook, choices.lessons[slug])
        _write(lessons.notebook(root, FOLDER, slug), made)
    for path in (root / FOLDER).glob("*/"):
        if path.name not in choices.lessons:
            shutil.rmtree(path)
    return FOLDER


def refuse(choices: Choices, notebooks: Mapping[str, Any], root: Path) -> None:
    """Raise CourseError for what does not go together."""
    fit.refuse(choices, {slug: notebook["cells"] for slug, notebook in notebooks.items()})
    if choices.chosen:
        slugs = there(root)
        fit.unmet(choices, {slug: needs(notebooks[slug], slugs) for slug in choices.lessons})


def needs(notebook: Mapping[str, Any], slugs: list[str]) -> tuple[str, ...]:
    """The lessons, of ``slugs``, that the head of a lesson's notebook says one needs."""
    said = NEEDS.search(notebook["cells"][0]["source"])
    numbers = set[int]()
    for first, last in NUMBERS.findall(said[1]) if said else ():
        numbers |= {*range(int(first), int(last or first) + 1)}
    return tuple(slug for slug in slugs if int(slug[:2]) in numbers)


def adapted(notebook: Any, choice: LessonChoice) -> Any:
    """A copy of a notebook as the class has it."""
    made = copy.deepcopy(notebook)
    if choice.changes:
        adapt(made, choice)
    return made


def _read(root: Path, slug: str) -> Any:
    return nbformat.read(lessons.notebook(root, "solutions", slug), 4)


def _write(path: Path, notebook: Any) -> None:
    """Write it where it is another: what is the same keeps its time."""
    content = f"{nbformat.writes(notebook)}\n".encode()
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_aside(path, content)
