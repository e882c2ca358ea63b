"""The part of the course that a student's process may see, copied into a folder of its own."""

import importlib.util
import shutil
from pathlib import Path

from autograder import ROOT, CourseError

STUB = '''"""The checks, which run outside this process: here each of them does nothing."""


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return lambda *arguments, **named: None
'''


def prepare(folder, lesson):
    """Fill ``folder`` with what the cells of ``lesson`` may import and read.

    That is the package ``attention`` without the modules of this lesson and later ones, the data,
    and a package ``autograder`` whose checks do nothing. ``lesson`` is '01_kernel_regression'.
    """
    folder = Path(folder)
    library = Path(importlib.util.find_spec("attention").origin).parent
    hidden = {f"{name}.py" for name in not_before(lesson)}
    _copy(library, folder / "attention", hidden)
    if (library.parent / "data").is_dir():
        shutil.copytree(library.parent / "data", folder / "data")
    grader = folder / "autograder"
    grader.mkdir()
    (grader / "__init__.py").write_text('"""The part of the grader that runs in the sandbox."""\n')
    (grader / "check.py").write_text(STUB)
    _copy(ROOT / "autograder" / "inside", grader / "inside", hidden=())


def not_before(lesson):
    """Names of this lesson and of all later ones, whose modules a student's process lacks."""
    slugs = {path.stem for path in (ROOT / "source").glob("[0-9][0-9]_*.py")}
    if not slugs:
        raise CourseError(f"there is no lesson in {ROOT / 'source'}: grade from the repository")
    return {slug.partition("_")[2] for slug in {*slugs, lesson} if slug >= lesson}


def _copy(package, target, hidden):
    shutil.copytree(
        package,
        target,
        ignore=lambda _, names: {name for name in names if name in hidden or name == "__pycache__"},
    )
