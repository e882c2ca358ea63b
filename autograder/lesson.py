"""Read a lesson's source: ``source/NN_name.py``, jupytext percent format with four markers.

``read`` refuses bad source with SourceError, which names the file, the line and what to do.
"""

import ast
import io
import re
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

import jupytext

from autograder import ROOT, CourseError

MARKERS = ("exercise", "check", "given", "demo")
FORMAT = {"extension": ".py", "format_name": "percent", "comment_magics": False}
CELL = re.compile(r"\s*#\s*(%%|<codecell>|In\[[0-9 ]*\])")  # what jupytext takes for a new cell
FIGURE = re.compile(r"!\[([^\]]*)\]\((figures/[^)]+)\)")


class SourceError(CourseError):
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
    def mistakes(self):
        """Path of the module that holds the lesson's stored answers."""
        return self.path.parent.parent / "autograder" / "mistakes" / f"{self.name}.py"

    @property
    def title(self):
        """The first heading."""
        return self.cells[0].source.splitlines()[0].lstrip("# ")

    @property
    def exercises(self):
        """Points by exercise name, in the lesson's order."""
        return {cell.name: cell.points for cell in self.cells if cell.kind == "check"}


class UnknownLesson(CourseError):
    """No lesson answers to the name given."""


def find(names=(), root=ROOT):
    """Return the paths of the sources that ``names`` select, all if empty.

    A lesson answers to its number ('01' or '1'), name, slug, or the path of any of its notebooks.
    """
    paths = sorted((root / "source").glob("[0-9][0-9]_*.py"))
    if not paths:
        raise UnknownLesson("there is no lesson: source/ holds no file like 00_name.py")
    return sorted({_one(name, paths) for name in names}) if names else paths


def _one(name, paths):
    key = Path(str(name)).stem
    for path in paths:
        number, _, rest = path.stem.partition("_")
        if key in (path.stem, rest) or (key.isdecimal() and int(key) == int(number)):
            return path
    known = ", ".join(path.stem for path in paths)
    raise UnknownLesson(f"no lesson is called {str(name)!r}; there are: {known}")


def read(path):
    """Read one source file and return its Lesson; raises SourceError."""
    path = Path(path)
    text = read_text(path)
    parse(path, text)
    rows = text.split("\n")
    if rows[0] != "# %% [markdown]":
        raise SourceError(path, 1, "the file must begin with '# %% [markdown]' and the title")
    lines = _first_lines(path, text)
    found = jupytext.reads(text, fmt=FORMAT).cells
    cells = [
        _cell(path, cell, rows[first - 1 : after - 1], first)
        for cell, first, after in zip(found, lines, [*lines[1:], len(rows) + 1], strict=True)
    ]
    lesson = Lesson(path, path.stem, cells)
    if not cells[0].source.startswith("# "):
        raise SourceError(path, lines[0], "the first cell must start with the title: '# NN · …?'")
    _refuse_bad_order(lesson)
    _refuse_unknown_names(lesson)
    return lesson


def read_text(path):
    """The text of a source file; a SourceError if it cannot be read as UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise SourceError(path, line, "this is not UTF-8 text; save the file as UTF-8") from None


def parse(path, text):
    """``ast.parse`` with a SourceError that gives file and line."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise SourceError(path, error.lineno or 1, f"syntax error: {error.msg}") from None
    except ValueError as error:  # a null byte, in Python 3.11
        raise SourceError(path, 1, f"syntax error: {error}") from None


def _first_lines(path, text):
    """Numbers of the lines that begin a cell: '# %%' and, after a space, the marker if any."""
    comments = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    lines = [number for number, row in enumerate(text.split("\n"), 1) if CELL.match(row)]
    for number in lines:
        row = text.split("\n")[number - 1]
        if number not in comments:
            raise SourceError(
                path, number, f"a line of a string looks like a new cell: {row.strip()}; rewrite it"
            )
        if row != "# %%" and not row.startswith("# %% "):
            raise SourceError(
                path, number, f"a cell begins with '# %%' and one space, not with {row!r}"
            )
    return lines


def _cell(path, cell, rows, line):
    attributes = {key: value for key, value in cell.metadata.items() if key != "lines_to_next_cell"}
    if cell.cell_type == "markdown":
        _refuse_code_in_markdown(path, attributes, rows, line)
        return Cell("markdown", cell.source, line)
    points = attributes.pop("points", None)
    unknown = [key for key in attributes if key not in MARKERS]
    if unknown or len(attributes) > 1 or cell.cell_type != "code":
        raise SourceError(
            path,
            line,
            f"unknown marker {rows[0].removeprefix('# %% ')!r}; write one of: [markdown], "
            'exercise="name", check="name" points=N, given="name", demo=true',
        )
    kind = next(iter(attributes), "code")
    name = attributes.get(kind, "")
    if kind == "demo":
        if name is not True:
            raise SourceError(path, line, "write demo=true")
        name = ""
    elif kind != "code" and not _is_name(name):
        raise SourceError(path, line, f'write {kind}="name" with the name of a function or class')
    if (kind == "check") != (points is not None):
        raise SourceError(path, line, 'points=N belongs to a check: check="name" points=2')
    if points is not None and not (type(points) is int and points > 0):
        raise SourceError(path, line, f"points must be a whole number above 0, not {points!r}")
    return Cell(kind, cell.source, line, name, points or 0)


def _is_name(name):
    return isinstance(name, str) and name.isidentifier() and name.isascii() and len(name) <= 50


def _refuse_code_in_markdown(path, attributes, rows, line):
    if attributes:
        raise SourceError(path, line, f"write only '# %% [markdown]', not {rows[0]!r}")
    for number, row in enumerate(rows, line):
        if row and not row.startswith("#"):
            raise SourceError(
                path, number, "every line of a text cell begins with '# '; start code with '# %%'"
            )


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
            _refuse_bad_figures(lesson, cell)


def _refuse_bad_figures(lesson, cell):
    for words, figure in FIGURE.findall(cell.source):
        if not (lesson.path.parent / figure).is_file():
            problem = f"there is no source/{figure}; draw it or fix the path"
        elif not words.strip():
            problem = (
                f"{figure} has no words for those who cannot see it: ![what it shows]({figure})"
            )
        else:
            continue
        raise SourceError(lesson.path, cell.line, problem)


def _top_level(path):
    if not path.is_file():
        raise SourceError(path, 1, "this file does not exist; a lesson needs it")
    tree = parse(path, read_text(path))
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
