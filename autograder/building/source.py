"""Split a lesson's source into its cells: jupytext percent format with markers.

Whatever is not exactly as it should be is refused with SourceError, which names the file, the line
and what to do.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jupytext

from autograder import ROOT, CourseError

MARKERS = ("exercise", "check", "given", "broken", "demo")
FORMAT = {"extension": ".py", "format_name": "percent", "comment_magics": False}
CELL = re.compile(r"\s*#\s*(%%|<codecell>|In\[[0-9 ]*\])")  # what jupytext takes for a new cell


class SourceError(CourseError):
    """A source file breaks a rule. str() is 'file:line: what is wrong; what to do'."""

    def __init__(self, path: Path | str, line: int, message: str) -> None:
        place = Path(path)
        place = place.relative_to(ROOT) if place.is_relative_to(ROOT) else place
        super().__init__(f"{place}:{line}: {message}")


@dataclass(frozen=True)
class Cell:
    """One cell of a source file. ``kind`` is a marker, 'code' or 'markdown'.

    A text that is an ``answer`` stands in the solved notebook only.
    """

    kind: str
    source: str
    line: int
    name: str = ""
    points: int = 0
    answer: bool = False


def split(path: Path) -> list[Cell]:
    """The cells of the source file ``path``; raises SourceError."""
    text = read_text(path)
    parse(path, text)
    rows = text.split("\n")
    if rows[0] != "# %% [markdown]":
        raise SourceError(path, 1, "the file must begin with '# %% [markdown]' and the title")
    lines = _first_lines(path, text)
    found = _jupytext_cells(path, text, rows, lines)
    return [
        _cell(partial(SourceError, path), cell, rows[first - 1 : after - 1], first)
        for cell, first, after in zip(found, lines, [*lines[1:], len(rows) + 1], strict=True)
    ]


def read_text(path: Path) -> str:
    """The text of a source file; a SourceError if it cannot be read as UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise SourceError(path, line, "this is not UTF-8 text; save the file as UTF-8") from None


def parse(path: Path, text: str) -> ast.Module:
    """``ast.parse`` with a SourceError that gives file and line."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise SourceError(path, error.lineno or 1, f"syntax error: {error.msg}") from None
    except ValueError as error:  # a null byte, in Python 3.11
        raise SourceError(path, 1, f"syntax error: {error}") from None


def _first_lines(path: Path, text: str) -> list[int]:
    """Numbers of the lines that begin a cell: '# %%' and, after a space, the marker if any."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    rows = enumerate(text.split("\n"), 1)
    lines = {number: row for number, row in rows if CELL.match(row)}
    for number, row in lines.items():
        if number not in comments:
            fault = f"a line of a string looks like a new cell: {row.strip()}; rewrite it"
            raise SourceError(path, number, fault)
        if row != "# %%" and not row.startswith("# %% "):
            fault = f"a cell begins with '# %%' and one space, not with {row!r}"
            raise SourceError(path, number, fault)
    return list(lines)


def _jupytext_cells(path: Path, text: str, rows: list[str], lines: list[int]) -> list[Any]:
    try:
        return jupytext.reads(text, fmt=FORMAT).cells
    except Exception:  # it refuses some attributes with errors of its own: find out which
        for line in lines:
            try:
                jupytext.reads(rows[line - 1], fmt=FORMAT)
            except Exception:
                raise SourceError(path, line, _unknown(rows[line - 1])) from None
        raise


def _unknown(row: str) -> str:
    return (
        f"unknown marker {row.removeprefix('# %% ')!r}; write one of: [markdown], "
        '[markdown] answer=true, exercise="name", check="name" points=N, given="name", '
        'broken="name", demo=true'
    )


def _cell(fault: Callable[[int, str], SourceError], cell: Any, rows: list[str], line: int) -> Cell:
    attributes = {key: value for key, value in cell.metadata.items() if key != "lines_to_next_cell"}
    if cell.cell_type == "markdown":
        answer = attributes.get("answer") is True
        if attributes and not (answer and len(attributes) == 1):
            wanted = "'# %% [markdown]' or '# %% [markdown] answer=true'"
            raise fault(line, f"write only {wanted}, not {rows[0]!r}")
        for number, row in enumerate(rows, line):
            if row and not row.startswith("#"):
                begins = "every line of a text cell begins with '# '"
                raise fault(number, f"{begins}; start code with '# %%'")
        return Cell("markdown", cell.source, line, answer=answer)
    points = attributes.pop("points", None)
    unknown = [key for key in attributes if key not in MARKERS]
    if unknown or len(attributes) > 1 or cell.cell_type != "code":
        raise fault(line, _unknown(rows[0]))
    kind, name = next(iter(attributes.items()), ("code", ""))
    if kind == "demo" and name is not True:
        raise fault(line, "write demo=true")
    if kind in ("demo", "code"):
        name = ""
    elif not _is_name(name):
        raise fault(line, f'write {kind}="name" with the name of a function or class')
    if (kind == "check") != (points is not None):
        raise fault(line, 'points=N belongs to a check: check="name" points=2')
    if points is not None and not (type(points) is int and points > 0):
        raise fault(line, f"points must be a whole number above 0, not {points!r}")
    return Cell(kind, cell.source, line, name, points or 0)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name.isascii() and len(name) <= 50
