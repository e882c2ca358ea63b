"""The part of the course that a student's process may see, copied into a folder of its own."""

import ast
import functools
import shutil
from collections.abc import Container
from pathlib import Path

from autograder import ROOT, CourseError, imports, lessons
from autograder.settings import COURSE

LIBRARY = ROOT / COURSE.library
# Of ``autograder``: the library uses them, too.
SHARED = ("files.py", "pieces.py", "terminal_output.py")
STUB = '''"""The checks, which run outside this process: here each of them does nothing."""


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return lambda *arguments, **named: None
'''


def prepare(folder: Path | str, lesson: str) -> None:
    """Fill ``folder`` with what the cells of ``lesson`` may import and read.

    That is the library without the modules that `hidden` names, the data, and a
    package ``autograder`` with what the library uses of it, whose checks do nothing. ``lesson`` is
    '01_kernel_regression'.
    """
    folder = Path(folder)
    _copy(LIBRARY, folder / LIBRARY.name, hidden(LIBRARY, lesson))
    if (LIBRARY.parent / "data").is_dir():
        shutil.copytree(LIBRARY.parent / "data", folder / "data")
    grader = folder / "autograder"
    grader.mkdir()
    (grader / "__init__.py").write_text('"""The part of the grader that runs in the sandbox."""\n')
    (grader / "check.py").write_text(STUB)
    _copy(ROOT / "autograder" / "inside", grader / "inside")
    for name in SHARED:
        shutil.copy(ROOT / "autograder" / name, grader)


def imported_first(lesson: str) -> list[str]:
    """Modules that the notebook of ``lesson`` imports, its checks or right answers: once for all.

    They are those of the course that may be seen, and one that takes long.
    """
    source = ROOT / "source" / f"{lesson}.py"
    right = LIBRARY / f"{lessons.name_of(lesson)}.py"
    if not source.is_file() or not right.is_file():
        return []
    seen = {_name(path, LIBRARY) for path in {*LIBRARY.rglob("*.py")} - hidden(LIBRARY, lesson)}
    checks = ROOT / "autograder" / "checks" / right.name
    texts = [path.read_text(encoding="utf-8") for path in (source, checks) if path.is_file()]
    named = {name for text in texts for name in imports.imported(text, at_once=True)}
    uses_optimisers = "torch.optim" in right.read_text(encoding="utf-8")
    # The first optimiser imports it: 1.3 s.
    return sorted(named & seen) + ["torch._dynamo"] * uses_optimisers


def hidden(library: Path, lesson: str) -> set[Path]:
    """The files of the folder ``library`` that would answer exercises of ``lesson``, as paths.

    These are the modules of this lesson and later ones, every module that says at its top, with
    ``ANSWERS = "decoding"``, that it answers exercises of one of them, and whatever imports any of
    these as it is imported itself.
    """
    known, later = _lessons(lesson)
    modules = {_name(path, library): path for path in sorted(library.rglob("*.py"))}
    said = {
        name: _said(path.read_text("utf-8"), name, path.stem == "__init__")
        for name, path in modules.items()
    }
    for name, (answered, _) in said.items():
        if answered is not None and answered not in known:
            raise CourseError(f"{modules[name]}: ANSWERS = {answered!r} names no lesson")
    found = {f"{library.name}.{name}" for name in later}
    found |= {name for name, (answered, _) in said.items() if answered in later}
    size = -1
    while size != len(found):  # who imports a hidden module may be imported too
        size = len(found)
        found |= {name for name, (_, needed) in said.items() if needed & found}
    return {modules[name] for name in found & modules.keys()}


def _lessons(lesson: str) -> tuple[set[str], set[str]]:
    """Names of all lessons; of ``lesson`` and the later ones."""
    slugs = {path.stem for path in (ROOT / "source").glob("[0-9][0-9]_*.py")}
    if not slugs:
        raise CourseError(f"there is no lesson in {ROOT / 'source'}: grade from the repository")
    slugs.add(lesson)
    later = {lessons.name_of(slug) for slug in slugs if slug >= lesson}
    return set(map(lessons.name_of, slugs)), later


def _name(path: Path, library: Path) -> str:
    """The dotted name of a module, as an import has it."""
    parts = path.relative_to(library.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.lru_cache(maxsize=256)
def _said(text: str, name: str, is_package: bool) -> tuple[str | None, frozenset[str]]:
    """What a module of this text answers, and what it imports; kept, for parsing takes its time."""
    package = name if is_package else name.rpartition(".")[0]
    return _answers(text), imports.imported(text, package, at_once=True)


def _answers(text: str) -> str | None:
    """The name of the lesson whose exercises a module says that it answers, or None."""
    for node in ast.parse(text).body if "ANSWERS" in text else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ANSWERS":
            return ast.literal_eval(node.value)
    return None


def _copy(package: Path, target: Path, hidden: Container[Path] = ()) -> None:
    def left_out(folder: str, names: list[str]) -> set[str]:
        return {n for n in names if n == "__pycache__" or Path(folder, n) in hidden}

    shutil.copytree(package, target, ignore=left_out)
