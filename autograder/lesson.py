"""Read a lesson's source: ``source/NN_name.py``, jupytext percent format with four markers.

``read`` refuses bad source with SourceError, which names the file, the line and what to do.
"""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

import jupytext

from autograder import ROOT

MARKERS = ("exercise", "check", "given", "demo")
FIGURE = re.compile(r"!\[([^\]]*)\]\((figures/[^)]+)\)")


class SourceError(ValueError):
    """A source file breaks a rule. str() is 'file:line: what is wrong; what to do'."""

    def __init__(self, path, line, message):
        place = Path(path)
        place = place.relative_to(ROOT) if place.is_relative_to(ROOT) else place
        super().__init__(f"{place}:{line}: {message}")


@dataclass(frozen=True)
class Cell:
    """One cell of a source file. ``kind`` is a marker, 'code' or 'markdown'."""

    kind: str
    source: str
    line: int
    name: str = ""
    points: int = 0


@dataclass(frozen=True)
class Lesson:
    """A lesson's source. ``slug`` is '01_kernel_regression', ``name`` 'kernel_regression'."""

    path: Path
    slug: str
    cells: list[Cell] = field(default_factory=list)

    @property
    def name(self):
        """The lesson's name without its number: that of its module in attention/."""
        return self.slug.partition("_")[2]

    @property
    def library(self):
        """Path of the module that holds the lesson's solutions."""
        return self.path.parent.parent / "attention" / f"{self.name}.py"

    @property
    def checks(self):
        """Path of the module that holds the lesson's checks."""
        return self.path.parent.parent / "autograder" / "checks" / f"{self.name}.py"

    @property
    def title(self):
        """The first heading."""
        return self.cells[0].source.splitlines()[0].lstrip("# ")

    @property
    def exercises(self):
        """Points by exercise name, in the lesson's order."""
        return {cell.name: cell.points for cell in self.cells if cell.kind == "check"}


class UnknownLesson(ValueError):
    """No lesson answers to the name given."""


def find(names=(), root=ROOT):
    """Return the paths of the sources that ``names`` select, all if empty.

    A lesson answers to its number ('01' or '1'), name, slug, or the path of any of its notebooks.
    """
    paths = sorted((root / "source").glob("[0-9][0-9]_*.py"))
    if not names:
        return paths
    found = [path for name in names for path in [_one(name, paths)]]
    return sorted(set(found))


def _one(name, paths):
    key = Path(str(name)).stem
    for path in paths:
        number, _, rest = path.stem.partition("_")
        if key in (path.stem, rest) or (key.isdigit() and int(key) == int(number)):
            return path
    known = ", ".join(path.stem for path in paths) or "none in source/"
    raise UnknownLesson(f"no lesson is called {str(name)!r}; there are: {known}")


def read(path):
    """Read one source file and return its Lesson; raises SourceError."""
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    parse(path, text)
    lines = [number for number, row in enumerate(text.split("\n"), 1) if row.startswith("# %%")]
    if not lines or text.split("\n")[0] != "# %% [markdown]":
        raise SourceError(path, 1, "the file must begin with '# %% [markdown]' and the title")
    notebook = jupytext.reads(text, fmt="py:percent")
    cells = [_cell(path, *pair) for pair in zip(notebook.cells, lines, strict=True)]
    lesson = Lesson(path, path.stem, cells)
    if not cells[0].source.startswith("# "):
        raise SourceError(path, lines[0], "the first cell must start with the title: '# NN · …?'")
    _refuse_bad_order(lesson)
    _refuse_unknown_names(lesson)
    return lesson


def parse(path, text):
    """``ast.parse`` with a SourceError that gives file and line."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise SourceError(path, error.lineno, f"syntax error: {error.msg}") from None


def _cell(path, cell, line):
    attributes = {key: value for key, value in cell.metadata.items() if key != "lines_to_next_cell"}
    if cell.cell_type == "markdown":
        if attributes:
            raise SourceError(path, line, f"a markdown cell takes no attribute: {attributes}")
        return Cell("markdown", cell.source, line)
    points = attributes.pop("points", None)
    unknown = [key for key in attributes if key not in MARKERS]
    if unknown or len(attributes) > 1:
        shown = attributes.get("title", ", ".join(map(str, attributes)))
        raise SourceError(
            path,
            line,
            f'unknown marker {shown!r}; write one of: exercise="name", '
            'check="name" points=N, given="name", demo=true',
        )
    kind = next(iter(attributes), "code")
    name = attributes.get(kind, "")
    if kind == "demo":
        if name is not True:
            raise SourceError(path, line, "write demo=true")
        name = ""
    elif kind != "code" and not (isinstance(name, str) and name.isidentifier()):
        raise SourceError(path, line, f'write {kind}="name" with the name of a function or class')
    if (kind == "check") != (points is not None):
        raise SourceError(path, line, 'points=N belongs to a check: check="name" points=2')
    if points is not None and not (type(points) is int and points > 0):
        raise SourceError(path, line, f"points must be a whole number above 0, not {points!r}")
    return Cell(kind, cell.source, line, name, points or 0)


def _refuse_bad_order(lesson):
    """Every exercise is followed at once by its check, and no name comes twice."""
    seen, waiting = {}, None
    for cell in lesson.cells:
        if cell.kind == "check":
            if waiting is None or waiting.name != cell.name:
                raise SourceError(
                    lesson.path,
                    cell.line,
                    f"check {cell.name!r} does not follow its exercise; put it right after the "
                    f'cell marked exercise="{cell.name}"',
                )
            waiting = None
        elif waiting is not None:
            break
        elif cell.kind in ("exercise", "given"):
            if cell.name in seen:
                raise SourceError(
                    lesson.path,
                    cell.line,
                    f"{cell.name!r} is already defined in line {seen[cell.name]}; remove one",
                )
            seen[cell.name] = cell.line
            waiting = cell if cell.kind == "exercise" else None
    if waiting is not None:
        raise SourceError(
            lesson.path,
            waiting.line,
            f"exercise {waiting.name!r} has no check right after it; add a cell "
            f'# %% check="{waiting.name}" points=2',
        )


def _refuse_unknown_names(lesson):
    """Names exist in the library and the checks, and each marked cell has the body it must have."""
    library = _top_level(lesson.library)
    checks = _top_level(lesson.checks) if lesson.exercises else {}
    for cell in lesson.cells:
        if cell.kind in ("exercise", "given"):
            _refuse_unknown(lesson, cell, library, lesson.library)
            _refuse_body(lesson, cell, f"from attention.{lesson.name} import {cell.name}")
        elif cell.kind == "check":
            _refuse_unknown(lesson, cell, checks, lesson.checks)
            _refuse_body(lesson, cell, f"check.{cell.name}({cell.name})")
        elif cell.kind == "markdown":
            for _, figure in FIGURE.findall(cell.source):
                if not (lesson.path.parent / figure).is_file():
                    raise SourceError(
                        lesson.path,
                        cell.line,
                        f"there is no source/{figure}; draw it or fix the path",
                    )


def _top_level(path):
    if not path.is_file():
        raise SourceError(path, 1, "this file does not exist; a lesson needs it")
    tree = parse(path, path.read_text(encoding="utf-8"))
    return {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def _refuse_unknown(lesson, cell, names, path):
    if cell.name not in names:
        raise SourceError(
            lesson.path,
            cell.line,
            f"{cell.kind} {cell.name!r} is not in {path.parent.name}/{path.name}; "
            f"there are: {', '.join(name for name in names if not name.startswith('_'))}",
        )


def _refuse_body(lesson, cell, expected):
    if cell.source.strip() != expected:
        raise SourceError(
            lesson.path, cell.line, f"the cell of {cell.kind} {cell.name!r} must be: {expected}"
        )
