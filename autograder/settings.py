"""What is set in files: the course in autograder.toml, for a class what course.toml says.

A class has its course.toml in class/, a student's copy at its top.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder import ROOT, CourseError

CARE_SHARE = 0.25  # of an exercise's points, where the answer is right and lacks care
NAMES = ("class/course.toml", "course.toml")
FILE = "autograder.toml"


@dataclass(frozen=True)
class Command:
    """A command of the course: its module, and what it says of itself in the list of all."""

    module: str
    help: str


@dataclass(frozen=True)
class CourseFacts:
    """What the grader knows of the course that it grades; ``autograder.toml`` explains it.

    library    the package whose modules are the solutions
    name       of the course in nbgrader, and of what a release names
    commands   the course's own, by name
    pages      a module that the book asks for more than lessons, or ''
    words      parts of lessons' names that are written otherwise: {"gpu": "GPU"}
    joined     the same of several words: {"Multi head": "Multi-head"}
    idioms     lines of solutions that may stand in a release
    collected  what a folder of collected pieces is good for, in a sentence
    """

    library: str
    name: str
    title: str
    about: str
    subject: str
    collected: str
    commands: Mapping[str, Command]
    pages: str
    words: Mapping[str, str]
    joined: Mapping[str, str]
    idioms: tuple[str, ...]


def facts(path: Path) -> CourseFacts:
    """What the file says; raises CourseError where it is missing, or not understood."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
        book, library = said.get("book", {}), said["library"]
        return CourseFacts(
            library,
            name=said.get("name", library),
            title=said["title"],
            about=said.get("about", ""),
            subject=said.get("subject", said["title"]),
            collected=said.get("collected", ""),
            commands={name: Command(**one) for name, one in said.get("commands", {}).items()},
            pages=book.get("pages", ""),
            words=book.get("words", {}),
            joined=book.get("joined", {}),
            idioms=tuple(said.get("release", {}).get("idioms", ())),
        )
    except KeyError as error:
        raise CourseError(f"{path} does not say {error}, which every course has") from None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise CourseError(f"{path} cannot be read as the course's settings ({error})") from None


COURSE = facts(ROOT / FILE)


def care_share(root: Path | str = ROOT) -> float:
    """The share of an exercise's points that a right answer loses which lacks care.

    ``root`` is the folder of the course; 0 makes care a matter of advice. Raises CourseError for a
    file that is no TOML, or a share that is not from 0 to 1.
    """
    path, settings = _read(Path(root))
    found = settings.get("care_share", CARE_SHARE)
    if type(found) not in (int, float) or not 0 <= found <= 1:
        raise CourseError(f"{path}: care_share = {found!r} is no number from 0 to 1")
    return float(found)


def own_folder(root: Path | str = ROOT) -> Path | None:
    """The folder of the instructor's own lessons, be it there or not; None where none is named.

    A relative one starts at ``root``, the folder of the course. Raises CourseError for a file that
    is no TOML, or a name that is none.
    """
    path, settings = _read(Path(root))
    found = settings.get("own")
    if found is None:
        return None
    if not isinstance(found, str) or not found.strip():
        raise CourseError(f'{path}: own = {found!r} names no folder; write own = "../my-lessons"')
    return (Path(root) / Path(found).expanduser()).resolve()


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
