"""Begin a lesson: five files that pass every gate as they are, to be edited from there."""

import keyword
import re
from pathlib import Path
from string import Template

from autograder import ROOT, CourseError
from autograder.checking.toolbox import registry
from autograder.lessons import OWN
from autograder.settings import COURSE

TEMPLATES = Path(__file__).parent / "skeleton"
NAME = re.compile(r"[a-z][a-z0-9_]*")
TAKEN = "{} is taken: choose another name"


def begin(name: str, root: Path = ROOT) -> list[Path]:
    """Write the files of a lesson ``name`` into the course; returns their paths.

    Raises CourseError, before anything is written, if the name cannot be.
    """
    if not NAME.fullmatch(name):
        raise CourseError(
            f"{name!r} is no name for a lesson: take small letters, digits and _, a letter first, "
            "as in fourier_features"
        )
    if keyword.iskeyword(name) or registry.is_exercise(name):
        raise CourseError(TAKEN.format(f"{name!r}, by an exercise or by Python,"))
    numbers = [int(path.name[:2]) for path in (root / "source").glob("[0-9][0-9]_*.py")]
    number, library = max([int(OWN) - 1, *numbers]) + 1, COURSE.library
    files = {
        "source.py.txt": root / "source" / f"{number}_{name}.py",
        "library.py.txt": root / library / f"{name}.py",
        "checks.py.txt": root / "autograder" / "checks" / f"{name}.py",
        "mistakes.py.txt": root / "autograder" / "mistakes" / f"{name}.py",
        "cards.md.txt": root / "autograder" / "mistakes" / f"{name}.md",
    }
    there = [str(path) for path in files.values() if path.exists()]
    if there:
        raise CourseError(TAKEN.format(f"{name!r}, by {', '.join(there)},"))
    words = {"number": str(number), "exercise": name, "lesson": name, "library": library}
    for template, path in files.items():
        text = Template((TEMPLATES / template).read_text(encoding="utf-8"))
        path.write_text(text.substitute(words), encoding="utf-8")
    return list(files.values())
