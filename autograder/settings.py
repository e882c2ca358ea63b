"""What is set in files: the course in autograder.toml, for a class what course.toml says.

A class has its course.toml in class/, a student's copy at its top.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder import ROOT, CourseError

NAMES = ("class/course.toml", "course.toml")
FILE = "autograder.toml"


@dataclass(frozen=True)
class Care:
    """What a class takes of a right answer's points, where the answer lacks care.

    share       of the points; 0 makes care a matter of advice
    everywhere  whether care costs also where no text has asked for it
    """

    share: float = 0.25
    everywhere: bool = False


USUAL = Care()


@dataclass(frozen=True)
class CourseFacts:
    """What the grader knows of the course that it grades; ``autograder.toml`` explains it.

    library    the package whose modules are the solutions
    name       of the course in nbgrader, and of what students get
    about      how the README of a release begins
    collected  what a folder of collected pieces is good for, in a sentence
    pages      a module that the book asks for more than lessons, or ''
    words      parts of lessons' names that are written otherwise: {"gpu": "GPU"}
    joined     the same of several words: {"Multi head": "Multi-head"}
    idioms     lines of solutions that may stand in a release
    commands   the course's own: {name: {"module": …, "help": …}}
    care       for kinds of care, the lesson from which on they cost and its words that ask for
               them: {"device": ["15_language_models", "…"]}
    """

    library: str
    name: str
    title: str
    about: str = ""
    collected: str = ""
    pages: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    joined: Mapping[str, str] = field(default_factory=dict)
    idioms: Sequence[str] = ()
    commands: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    care: Mapping[str, Sequence[str]] = field(default_factory=dict)


def facts(path: Path) -> CourseFacts:
    """What the file says; raises CourseError where something is missing or not understood."""
    try:
        return CourseFacts(**tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise CourseError(f"{path} does not say what course this is ({error})") from None


try:
    COURSE = facts(ROOT / FILE)
except CourseError as error:  # whatever asks for the course ends here, with a sentence
    raise SystemExit(str(error)) from None


def care(root: Path | str = ROOT) -> Care:
    """What the class whose course is in the folder ``root`` takes for a lack of care.

    Raises CourseError for a file that is no TOML, a share that is not from 0 to 1, or a switch that
    is neither true nor false.
    """
    path, settings = _read(Path(root))
    share = settings.get("care_share", USUAL.share)
    if type(share) not in (int, float) or not 0 <= share <= 1:
        raise CourseError(f"{path}: care_share = {share!r} is no number from 0 to 1")
    everywhere = settings.get("care_everywhere", USUAL.everywhere)
    if type(everywhere) is not bool:
        raise CourseError(f"{path}: care_everywhere = {everywhere!r} is neither true nor false")
    return Care(float(share), everywhere)


def _read(root: Path) -> tuple[Path, dict[str, Any]]:
    """The file with the settings, and what it says: nothing where there is none."""
    paths = [root / name for name in NAMES]
    path = next((one for one in paths if one.is_file()), paths[0])
    try:
        return path, tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{path}: this is no TOML ({error})") from None


def earned(points: float, cost: float) -> float:
    """What is left of an exercise's points, in decimals that a gradebook gives back as they are.

    >>> earned(5, 0.8), earned(3, 1 / 3)
    (1.0, 2.0)
    """
    return round((1 - cost) * points, 4)


def count(points: float) -> str:
    """So many points, in words: '1 point', '2.5 points'."""
    return f"{points:g} point" + "s" * (points != 1)
