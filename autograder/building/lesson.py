"""Find and read lessons: ``source/NN_name.py`` and what belongs to it.

``read`` refuses bad source with SourceError, which names the file, the line and what to do.
"""

import ast
import builtins
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from autograder import ROOT
from autograder.building import pictures
from autograder.building.source import Cell, SourceError, parse, read_text, split
from autograder.lessons import UnknownLesson, choose, name_of

FIGURE = re.compile(r"!\[([^\]]*)\]\((figures/[^)]+)\)")


@dataclass(frozen=True)
class Lesson:
    """A lesson's source. ``slug`` is '01_kernel_regression', ``name`` 'kernel_regression'."""

    path: Path
    slug: str
    cells: list[Cell] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The lesson's name without its number: that of its module in attention/."""
        return name_of(self.slug)

    @property
    def library(self) -> Path:
        """Path of the module that holds the lesson's solutions."""
        return self.path.parent.parent / "attention" / f"{self.name}.py"

    @property
    def checks(self) -> Path:
        """Path of the module that holds the lesson's checks."""
        return self.path.parent.parent / "autograder" / "checks" / f"{self.name}.py"

    @property
    def mistakes(self) -> Path:
        """Path of the module that holds the lesson's stored answers."""
        return self.path.parent.parent / "autograder" / "mistakes" / f"{self.name}.py"

    @property
    def title(self) -> str:
        """The first heading."""
        return self.cells[0].source.splitlines()[0].lstrip("# ")

    @property
    def exercises(self) -> dict[str, int]:
        """Points by exercise name, in the lesson's order."""
        return {cell.name: cell.points for cell in self.cells if cell.kind == "check"}


def find(names: Collection[str] = (), root: Path = ROOT) -> list[Path]:
    """Return the paths of the sources that ``names`` select (see ``choose``), all if empty."""
    paths = {path.stem: path for path in (root / "source").glob("[0-9][0-9]_*.py")}
    if not paths:
        raise UnknownLesson("there is no lesson: source/ holds no file like 00_name.py")
    return [paths[slug] for slug in choose(names, paths)]


def read(path: Path) -> Lesson:
    """Read one source file and return its Lesson; raises SourceError."""
    path = Path(path)
    cells = split(path)
    lesson = Lesson(path, path.stem, cells)
    if not cells[0].source.startswith("# "):
        raise SourceError(path, cells[0].line, "the first cell must start with '# NN · title?'")
    _refuse_unknown_names(lesson)
    _refuse_bad_order(lesson)
    return lesson


def _refuse_bad_order(lesson: Lesson) -> None:
    """Every exercise is followed at once by its check, and no name comes twice."""
    seen: dict[str, int] = {}
    waiting = None
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
        elif cell.kind in ("exercise", "given", "broken"):
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


def _refuse_unknown_names(lesson: Lesson) -> None:
    """Names exist in the library and the checks, and each marked cell has the body it must have."""
    library = _top_level(lesson.library)
    checks = _top_level(lesson.checks) if lesson.exercises else {}
    mistakes: dict[str, ast.stmt] = {}  # parsed where they are asked for
    for cell in lesson.cells:
        if cell.kind in ("exercise", "given"):
            _refuse_unknown(lesson, cell, library, lesson.library)
            _refuse_body(lesson, cell, f"from attention.{lesson.name} import {cell.name}")
        elif cell.kind == "check":
            _refuse_unknown(lesson, cell, checks, lesson.checks)
            _refuse_body(lesson, cell, f"check.{cell.name}({cell.name})")
        elif cell.kind == "broken":
            mistakes = mistakes or _top_level(lesson.mistakes)
            _refuse_unknown(lesson, cell, mistakes, lesson.mistakes)
            _refuse_body(lesson, cell, f"from autograder.mistakes.{lesson.name} import {cell.name}")
            _refuse_strangers(lesson, cell, mistakes[cell.name])
        elif cell.kind == "markdown":
            _refuse_bad_figures(lesson, cell)


def _refuse_bad_figures(lesson: Lesson, cell: Cell) -> None:
    for words, figure in FIGURE.findall(cell.source):
        if not (lesson.path.parent / figure).is_file():
            problem = f"there is no source/{figure}; draw it or fix the path"
        elif not words.strip():
            problem = (
                f"{figure} has no words for those who cannot see it: ![what it shows]({figure})"
            )
        elif not pictures.is_current(lesson.path.parent / figure):
            problem = f"{figure} has changed since its PNG was made: {pictures.COMMAND}"
        else:
            continue
        raise SourceError(lesson.path, cell.line, problem)


def _refuse_strangers(lesson: Lesson, cell: Cell, node: ast.stmt) -> None:
    """A wrong answer that is shown uses nothing that its own module defines or imports for it."""
    bound = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    decorators = {
        one for decorator in getattr(node, "decorator_list", []) for one in ast.walk(decorator)
    }
    bound |= {one.id for one in names if isinstance(one.ctx, ast.Store)}
    before = [one.source for one in lesson.cells if one.kind != "markdown"]
    for statement in ast.walk(ast.parse("\n".join(before))):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            bound |= {(one.asname or one.name).partition(".")[0] for one in statement.names}
        elif isinstance(statement, ast.Name) and isinstance(statement.ctx, ast.Store):
            bound.add(statement.id)
    for one in names:
        if one in decorators or one.id in bound or hasattr(builtins, one.id):
            continue
        raise SourceError(
            lesson.path,
            cell.line,
            f"{cell.name} uses {one.id}, which the notebook does not import; write it out in "
            f"autograder/mistakes/{lesson.name}.py",
        )


def _top_level(path: Path) -> dict[str, ast.stmt]:
    if not path.is_file():
        raise SourceError(path, 1, "this file does not exist; a lesson needs it")
    tree = parse(path, read_text(path))
    return {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def _refuse_unknown(lesson: Lesson, cell: Cell, names: Iterable[str], path: Path) -> None:
    if cell.name not in names:
        raise SourceError(
            lesson.path,
            cell.line,
            f"{cell.kind} {cell.name!r} is not in {path.parent.name}/{path.name}; "
            f"there are: {', '.join(name for name in names if not name.startswith('_'))}",
        )


def _refuse_body(lesson: Lesson, cell: Cell, expected: str) -> None:
    if cell.source.strip() != expected:
        raise SourceError(
            lesson.path, cell.line, f"the cell of {cell.kind} {cell.name!r} must be: {expected}"
        )
