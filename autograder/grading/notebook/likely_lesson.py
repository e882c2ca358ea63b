"""Which lesson a file is probably of: what the notebook holds, and what it is called."""

import difflib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder import lessons
from autograder.grading.notebook.filenames import is_notebook, original, plain
from autograder.grading.notebook.lesson_by_content import Contents
from autograder.grading.notebook.submission import read

ALIKE = 0.75  # of 1, by difflib: a name with a slip or two


@dataclass(frozen=True)
class Guess:
    """A lesson or '', and whether nothing speaks for another one."""

    lesson: str = ""
    sure: bool = False


def lesson(
    names: Iterable[str],
    known: Collection[str],
    notebook: Path | None = None,
    contents: Contents | None = None,
) -> Guess:
    """The lesson that a notebook is of by its ``contents``, else the one that its ``names`` name.

    It is sure where the contents say so and no name contradicts them.
    """
    names = list(names)
    exact = {slug for name in names if (slug := exactly(name, known))}
    near = next((slug for name in names if (slug := _nearly(name, known))), "")
    if notebook and contents:
        submission = read(notebook)
        if held := contents.lesson(submission, [submission.lesson, *exact]):
            return Guess(held, exact <= {held})
    return Guess(exact.pop() if len(exact) == 1 else near)


def exactly(name: str, known: Collection[str], numbers: bool = True) -> str:
    """The lesson that is called so but for capitals, blanks and signs, or that has this number."""
    stem = _stem(name)
    count = int(stem) if numbers and re.fullmatch(r"\s*[0-9]{1,3}\s*", stem) else None
    for slug in known:
        if plain(stem) and plain(stem) in (plain(slug), plain(lessons.name_of(slug))):
            return slug
        number = slug.partition("_")[0]
        if number.isdecimal() and int(number) == count:
            return slug
    return ""


def _stem(name: str) -> str:
    return original(name)[0] if is_notebook(name) else re.sub(r"(?i)\.zip$", "", name)


def _nearly(name: str, known: Collection[str]) -> str:
    """The lesson that is called nearly so."""
    stem = plain(_stem(name))
    called = {plain(called): slug for slug in known for called in (slug, lessons.name_of(slug))}
    holding = [one for one in sorted(called, key=len) if one in stem]
    found = holding[-1:] or difflib.get_close_matches(stem[:80], called, 1, ALIKE)
    return called[found[0]] if found else ""
