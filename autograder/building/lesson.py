"""Find and read lessons: ``source/NN_name.py`` and what belongs to it.

``read`` refuses bad source with SourceError, which names the file, the line and what to do.
"""

import ast
import builtins
import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from autograder import ROOT
from autograder.building import svg_as_png
from autograder.building.source import Cell, SourceError, parse, read_text, split
from autograder.lessons import UnknownLesson, choose, name_of
from autograder.settings import COURSE

FIGURE = re.compile(r"!\[([^\]]*)\]\((figures/[^)]+)\)")


@dataclass(frozen=True)
class Lesson:
    """A lesson's source. ``slug`` is '01_kernel_regression', ``name`` 'kernel_regression'."""

    path: Path
    slug: str
    cells: list[Cell] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The lesson's name without its number: that of its module in the library."""
        return name_of(self.slug)

    @property
    def root(self) -> Path:
        """The folder of the course."""
        return self.path.parent.parent

    @property
    def library(self) -> Path:
        """Path of the module that holds the lesson's solutions."""
        return self.root / COURSE.library / f"{self.name}.py"

    @property
    def checks(self) -> Path:
        """Path of the module that holds the lesson's checks."""
        return self.root / "autograder" / "checks" / f"{self.name}.py"

    @property
    def mistakes(self) -> Path:
        """Path of the module that holds the lesson's stored answers."""
        return self.root / "autograder" / "mistakes" / f"{self.name}.py"

    @property
    def title(self) -> str:
        """The first heading."""
        return self.cells[0].source.splitlines()[0].lstrip("# ")

    @property
    def exercises(self) -> dict[str, int]:
        """Points by exercise name, in the lesson's order."""
        return {cell.name: cell.points for cell in self.cells if cell.kind == "check"}

    def fault(self, cell: Cell, message: str) -> SourceError:
        """The error that says what is wrong with a cell."""
        return SourceError(self.path, cell.line, message)


def find(names: Collection[str] = (), root: Path = ROOT) -> list[Path]:
    """Return the paths of the sources that ``names`` select (see ``choose``), all if empty."""
    paths = {path.stem: path for path in (root / "source").glob("[0-9][0-9]_*.py")}
    if not paths:
        raise UnknownLesson("there is no lesson: source/ holds no file like 00_name.py")
    return [paths[slug] for slug in choose(names, paths)]


def read(path: Path) -> Lesson:
    """Read one source file and return its Lesson; raises SourceError."""
    path = Path(path)
    lesson = Lesson(path, path.stem, split(path))
    first = lesson.cells[0]
    if not first.source.startswith("# "):
        raise lesson.fault(first, "the first cell must start with '# NN · title?'")
    _refuse_unknown_names(lesson)
    _refuse_bad_order(lesson)
    return lesson


def _refuse_bad_order(lesson: Lesson) -> None:
    """Every exercise is followed at once by its check, and no name comes twice."""
    defined: dict[str, int] = {}
    for before, cell in itertools.pairwise([None, *lesson.cells, None]):
        asked = before if before and before.kind == "exercise" else None
        if cell and cell.kind == "check":
            if asked is None or asked.name != cell.name:
                raise lesson.fault(
                    cell,
                    f"check {cell.name!r} does not follow its exercise; put it right after the "
                    f'cell marked exercise="{cell.name}"',
                )
        elif asked:
            raise lesson.fault(
                asked,
                f"exercise {asked.name!r} has no check right after it; add a cell "
                f'# %% check="{asked.name}" points=2',
            )
        elif cell and cell.kind in ("exercise", "given", "broken"):
            line = defined.setdefault(cell.name, cell.line)
            if line != cell.line:
                twice = f"{cell.name!r} is already defined in line {line}; remove one"
                raise lesson.fault(cell, twice)


def _refuse_unknown_names(lesson: Lesson) -> None:
    """Names exist in the library and the checks, and each marked cell has the body it must have."""
    defined = {lesson.library: _top_level(lesson.library)}
    if lesson.exercises:
        defined[lesson.checks] = _top_level(lesson.checks)
    from_library = lesson.library, f"from {COURSE.library}.{{lesson}} import {{name}}"
    kinds = {
        "exercise": from_library,
        "given": from_library,
        "check": (lesson.checks, "check.{name}({name})"),
        "broken": (lesson.mistakes, "from autograder.mistakes.{lesson} import {name}"),
    }
    for cell in lesson.cells:
        if cell.kind == "markdown":
            _refuse_bad_figures(lesson, cell)
        elif cell.kind in kinds:
            path, body = kinds[cell.kind]
            if path not in defined:
                defined[path] = _top_level(path)
            if cell.name not in defined[path]:
                names = ", ".join(one for one in defined[path] if not one.startswith("_"))
                where = f"{path.parent.name}/{path.name}; there are: {names}"
                raise lesson.fault(cell, f"{cell.kind} {cell.name!r} is not in {where}")
            expected = body.format(lesson=lesson.name, name=cell.name)
            if cell.source.strip() != expected:
                must = f"the cell of {cell.kind} {cell.name!r} must be: {expected}"
                raise lesson.fault(cell, must)
            if cell.kind == "broken":
                _refuse_strangers(lesson, cell, defined[path][cell.name])


def _refuse_bad_figures(lesson: Lesson, cell: Cell) -> None:
    for words, figure in FIGURE.findall(cell.source):
        path = lesson.path.parent / figure
        if not path.is_file():
            raise lesson.fault(cell, f"there is no source/{figure}; draw it or fix the path")
        if not words.strip():
            hint = f"![what it shows]({figure})"
            raise lesson.fault(cell, f"{figure} has no words for those who cannot see it: {hint}")
        if not svg_as_png.is_current(path):
            changed = f"{figure} has changed since its PNG was made: {svg_as_png.COMMAND}"
            raise lesson.fault(cell, changed)


def _refuse_strangers(lesson: Lesson, cell: Cell, node: ast.stmt) -> None:
    """A wrong answer that is shown uses nothing that its own module defines or imports for it."""
    decorators = [part for one in getattr(node, "decorator_list", []) for part in ast.walk(one)]
    code = "\n".join(one.source for one in lesson.cells if one.kind != "markdown")
    bound = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    for part in (*ast.walk(node), *ast.walk(ast.parse(code))):
        if isinstance(part, ast.Import | ast.ImportFrom):
            bound |= {(one.asname or one.name).partition(".")[0] for one in part.names}
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            bound.add(part.id)
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name) and one not in decorators]
    for one in names:
        if one.id not in bound and not hasattr(builtins, one.id):
            raise lesson.fault(
                cell,
                f"{cell.name} uses {one.id}, which the notebook does not import; write it out in "
                f"autograder/mistakes/{lesson.name}.py",
            )


def _top_level(path: Path) -> dict[str, ast.stmt]:
    if not path.is_file():
        raise SourceError(path, 1, "this file does not exist; a lesson needs it")
    body = parse(path, read_text(path)).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
