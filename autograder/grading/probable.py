"""Which lesson a file is probably of: what the notebook itself says, and what it is called."""

import difflib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder import lessons
from autograder.grading.filenames import is_notebook, original, plain
from autograder.grading.submission import MAX_BYTES, Unreadable, content, parse, read_bytes

ALIKE = 0.75  # of 1, by difflib: a name with a slip or two


@dataclass(frozen=True)
class Guess:
    """A lesson or '', and whether nothing speaks for another one."""

    lesson: str = ""
    sure: bool = False


def lesson(names: Iterable[str], known: Collection[str], notebook: Path | None = None) -> Guess:
    """The lesson that a notebook says it is of, else the one that its ``names`` name.

    It is sure where the notebook can be read, and no name contradicts what it says.
    """
    exact = {slug for name in names if (slug := exactly(name, known))}
    near = next((slug for name in names if (slug := _nearly(name, known))), "")
    said, readable = _said(notebook, known) if notebook else ("", False)
    if said:
        return Guess(said, exact <= {said})
    if len(exact) == 1:
        return Guess(exact.pop(), readable)
    return Guess(near)


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


def _said(path: Path, known: Collection[str]) -> tuple[str, bool]:
    """Pair (the lesson that is noted in the notebook or '', whether it can be read)."""
    try:
        notebook: Any = content(read_bytes(path, MAX_BYTES) or b"", path.name)
    except Unreadable:
        return "", False
    metadata = notebook.get("metadata") if isinstance(notebook, dict) else None
    own = metadata.get("autograder") if isinstance(metadata, dict) else None
    said = own.get("lesson") if isinstance(own, dict) else None
    readable = not parse(notebook).problem
    return (said if readable and isinstance(said, str) and said in known else ""), readable
