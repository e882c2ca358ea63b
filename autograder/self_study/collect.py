"""Collect what a student has passed: their own text of each exercise, one module per lesson.

The notebook is run and checked as ``autograder check`` does it. What passes is cut out of the
cells, with the imports, constants and helpers that it uses, and is checked once more in its module:
so nothing is collected that lives on something else in the notebook.
"""

import ast
import builtins
import importlib.util
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from autograder import CourseError, cell_metadata, lessons
from autograder.building.gates.affected import flow
from autograder.check import check_quietly
from autograder.checking.counterexamples import BREAK
from autograder.checking.toolbox import registry
from autograder.files import write_aside
from autograder.pieces import RECORD, MineError, Piece, import_file, read
from autograder.self_study import status
from autograder.self_study.check import Line, check_notebook, read_notebook
from autograder.settings import COURSE
from autograder.temporary import Temporary

HEAD = '''\
"""Your pieces of lesson {number}, collected from {notebook}.

`autograder collect` writes this file anew: work in the notebook.
"""
'''
MARKS = ("### BEGIN SOLUTION", "### END SOLUTION")  # only in a solved notebook
NOT_WRITTEN = "not written yet"


@dataclass(frozen=True)
class Statement:
    """A statement of a notebook at the top of a cell: what it binds and uses, and where it is."""

    text: str
    binds: frozenset[str]
    uses: frozenset[str]
    place: tuple[int, int]
    given: bool = False  # the course's, for it stands in a locked cell


@dataclass
class Collected:
    """One notebook's pieces, and the text of their module, '' if there is none."""

    lesson: str
    pieces: list[Piece]
    text: str = ""


@dataclass
class _Notebook:
    """What is known of a notebook while pieces are cut out of it."""

    lesson: str
    exercises: set[str]
    passed: set[str]
    bound: dict[str, dict[str, Statement]] = field(default_factory=dict)  # as each check found it


class _Missing(Exception):
    """A piece cannot be cut out; str() is a sentence that says why."""


def collect(path: Path | str) -> Collected:
    """Run a notebook, and cut out what passes. Raises NotebookError, as `check_notebook` does."""
    path = Path(path)
    notebook = read_notebook(path)
    slug = str(notebook.metadata.get("autograder", {}).get("lesson") or path.stem)
    lesson = lessons.name_of(slug)
    said = status.read_one(path)
    if said.exercises and all(one.state == status.OPEN for one in said.exercises):
        names = [one.name for one in said.exercises if not one.name.startswith(BREAK)]
        return Collected(lesson, [Piece(name, lesson, path.name, NOT_WRITTEN) for name in names])
    lines = [line for line in check_notebook(path) if not line.name.startswith(BREAK)]
    passed = {line.name for line in lines if line.is_right}
    known = _Notebook(lesson, {line.name for line in lines}, passed)
    _read_statements(notebook, known)
    why = {line.name: _why(line) for line in lines if line.name not in passed}
    return _cut(known, [line.name for line in lines], why, path.name)


def _why(line: Line) -> str:
    """Why an exercise is not the student's, in one line."""
    first, got = (line.parts.get(key, "") for key in ("what", "got"))
    first = (first or line.message).splitlines()[0].removeprefix(f"{line.name}: ").rstrip(".:")
    if first.startswith("nothing here yet"):
        return NOT_WRITTEN
    return f"{first}: {got.splitlines()[0]}" if got and "raised" in first else first


def _read_statements(notebook: Any, known: _Notebook) -> None:
    """Note what each name is bound to when the check of each passed exercise is reached."""
    now: dict[str, Statement] = {}
    for number, cell in enumerate(notebook.cells):
        if cell_metadata.is_check(cell):
            known.bound.setdefault(cell_metadata.exercise(cell), dict(now))
        elif cell.cell_type == "code":
            locked = cell_metadata.is_known(cell) and not cell_metadata.is_solution(cell)
            for one in statements(cell.source, number, locked):
                now |= dict.fromkeys(one.binds, one)
    for name in known.exercises - known.bound.keys():  # the student deleted the check's cell
        known.bound[name] = now


def statements(source: str, cell: int = 0, given: bool = False) -> Iterator[Statement]:
    """The statements of a cell; none of a cell that is not Python."""
    source = TransformerManager().transform_cell(source)
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return
    lines = source.splitlines()
    for number, node in enumerate(body):
        for text in _texts(node, lines):
            uses, binds = flow(text)
            if isinstance(node, ast.Import | ast.ImportFrom):
                binds = frozenset({text.split()[-1].partition(".")[0]})
            yield Statement(text, binds, uses, (cell, number), given)


def _texts(node: ast.stmt, lines: list[str]) -> list[str]:
    """A statement's own lines, with the comments right above it; an import for each name."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        single = (type(node)(**{**vars(node), "names": [alias]}) for alias in node.names)
        return list(map(ast.unparse, single))
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    kept = lines[first - 1 : node.end_lineno]
    return ["\n".join(line for line in kept if not line.strip().startswith(MARKS))]


def _cut(known: _Notebook, names: list[str], why: dict[str, str], notebook: str) -> Collected:
    """Cut out all that passed; without what turns out not to be right by itself, all anew."""
    while True:
        known.passed = {name for name in names if name not in why}
        parts, problems = dict[str, list[Statement]](), dict[str, str]()
        for name in filter(known.passed.__contains__, names):
            try:
                parts[name] = _needed(name, known)
            except _Missing as error:
                problems[name] = str(error)
        text = _module(parts.values(), known.lesson, notebook) if parts else ""
        problems = problems or _alone(text, list(parts), known.lesson)
        if not problems:
            pieces = [Piece(name, known.lesson, notebook, why.get(name, "")) for name in names]
            return Collected(known.lesson, pieces, text)
        why |= problems


def _needed(name: str, known: _Notebook) -> list[Statement]:
    """The statement of a piece and all that it uses; raises _Missing."""
    bound, found, waiting = known.bound[name], set[Statement](), [name]
    seen: set[str] = set()
    while waiting:
        one = waiting.pop()
        if one in seen or hasattr(builtins, one) and one not in bound:
            continue
        seen.add(one)
        statement = bound.get(one)
        foreign = one in known.exercises and one not in known.passed
        if foreign or statement is not None and statement.given:
            imported = _from_library(one, known.lesson)
            if imported is None and foreign:
                raise _Missing(f"it uses {one}, which does not pass")
            statement = imported or statement
        if statement is None:  # made by the notebook itself, such as `display`: the check will say
            continue
        found.add(statement)
        waiting += statement.uses
    return sorted(found, key=lambda one: one.place)


def _from_library(name: str, lesson: str) -> Statement | None:
    """The import of a lesson's name from the library, if that is here."""
    if importlib.util.find_spec(f"{COURSE.library}.{lesson}") is None:
        return None
    text = f"from {COURSE.library}.{lesson} import {name}"
    return Statement(text, frozenset({name}), frozenset(), (-1, 0))


def _module(parts: Iterable[list[Statement]], lesson: str, notebook: str) -> str:
    """The text of the module with these statements, each once, in the notebook's order."""
    every = sorted({one for part in parts for one in part}, key=lambda one: (one.place, one.text))
    text, below_an_import = HEAD.format(number=notebook[:2], notebook=notebook), False
    for number, one in enumerate(every):
        imports = one.text.startswith(("import ", "from "))
        if not (imports and below_an_import):
            text += "\n" if imports or number == 0 else "\n\n"
        text, below_an_import = f"{text}{one.text}\n", imports
    return text


def _alone(text: str, names: list[str], lesson: str) -> dict[str, str]:
    """Which pieces are not right in a module of their own, each with a sentence."""
    if not names:
        return {}
    checks = registry.of_lesson(lesson)
    with Temporary() as folder:
        path = folder / f"{lesson}.py"
        path.write_text(text, encoding="utf-8")
        try:
            module = import_file(path)
        except MineError as error:
            reason = str(error).partition(" cannot be imported: ")[2]
            why = f"what it needs does not run outside the notebook: {reason}"
            return dict.fromkeys(names, why)
        failures = {name: check_quietly(checks[name], getattr(module, name)) for name in names}
    why = "passes in the notebook, but not without its other cells"
    return {
        name: f"{why}: {failure.what.rstrip('.')}"
        for name, failure in failures.items()
        if failure is not None and not failure.is_careless
    }


def write(folder: Path, found: Sequence[Collected]) -> list[Piece]:
    """Write modules and record into the folder; returns all its pieces, those of before included.

    The folder must be one that ``refuse_other`` lets pass.
    """
    anew = {one.lesson for one in found}
    kept = read(folder) if (folder / RECORD).exists() else []
    pieces = [one for one in kept if one.lesson not in anew]
    pieces += [piece for one in found for piece in one.pieces]
    pieces.sort(key=lambda one: one.notebook)  # stable: the exercises of one stay in their order
    folder.mkdir(parents=True, exist_ok=True)
    for one in found:
        path = folder / f"{one.lesson}.py"
        if one.text:
            write_aside(path, one.text.encode())
        else:
            path.unlink(missing_ok=True)
    record = {"pieces": [asdict(piece) for piece in pieces]}
    write_aside(folder / RECORD, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    return pieces


def refuse_other(folder: Path) -> None:
    """Raise CourseError if the folder is there and is not one of collected pieces, nor empty."""
    is_ours = (folder / RECORD).is_file() or folder.is_dir() and not any(folder.iterdir())
    if folder.exists() and not is_ours:
        raise CourseError(f"{folder} holds something else: name another folder with --to")
