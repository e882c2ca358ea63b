"""Begin an own lesson: five files that pass every gate as they are, to be edited from there."""

import itertools
import json
import keyword
import os
from pathlib import Path
from string import Template

from autograder import ROOT, lessons
from autograder.building.own.links import (
    FIRST,
    LIBRARY,
    NAME,
    PLACES,
    SOURCE,
    OwnLessonError,
    link,
    refuse_folder,
)
from autograder.checking.toolbox import registry
from autograder.settings import own_folder

TEMPLATES = Path(__file__).parent / "skeleton"
SETTINGS = Path("class") / "course.toml"


def begin(name: str, to: str = "", root: Path = ROOT) -> list[Path]:
    """Write the files of a lesson ``name`` into the folder ``to``, and link them; their paths.

    Without ``to`` the folder is the one that class/course.toml names; where that names none, it
    names ``to`` from now on. Raises OwnLessonError, before anything is written.
    """
    exercise = name.removeprefix(lessons.OWN)
    lesson = lessons.OWN + exercise
    _refuse_name(lesson)
    folder, is_new = _folder(to, root)
    number = _free_number(folder)
    if keyword.iskeyword(exercise) or registry.is_exercise(exercise):
        raise OwnLessonError(
            f"{exercise!r} is taken, by an exercise or by Python: choose another name"
        )
    files = {
        f"{kind}.py": folder / kind / f"{f'{number}_' * (kind == SOURCE)}{lesson}.py"
        for kind in PLACES
    }
    files["cards.md"] = folder / "mistakes" / f"{lesson}.md"
    there = [str(path) for path in files.values() if path.exists()]
    if there:
        raise OwnLessonError(f"there is {', '.join(there)} already: choose another name")
    words = {"number": str(number), "exercise": exercise, "lesson": lesson, "library": LIBRARY}
    for kind, path in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        template = f"{kind}.txt" if kind != f"{LIBRARY}.py" else "library.py.txt"
        text = Template((TEMPLATES / template).read_text(encoding="utf-8"))
        path.write_text(text.substitute(words), encoding="utf-8")
    if is_new:
        _note(to, root)
    link(root)
    return list(files.values())


def _refuse_name(lesson: str) -> None:
    if not NAME.fullmatch(lesson) or lesson.startswith(lessons.OWN_ANSWERS):
        raise OwnLessonError(
            f"{lesson.removeprefix(lessons.OWN)!r} is no name for a lesson: take small letters, "
            "digits and _, a letter first, as in fourier_features, and do not begin with for_"
        )


def _folder(to: str, root: Path) -> tuple[Path, bool]:
    """The folder of the instructor's lessons, and whether it is new to the course."""
    known = own_folder(root)
    if known is None and not to:
        raise OwnLessonError("say where your own lessons are to lie: --to ../my-lessons")
    folder = Path(to).expanduser().resolve() if to else known
    assert folder is not None
    if known not in (None, folder):
        raise OwnLessonError(
            f"your own lessons lie in {known}, as {SETTINGS.as_posix()} says: leave --to out, or "
            "change it there"
        )
    refuse_folder(folder, root)
    return folder, known is None


def _free_number(folder: Path) -> int:
    names = [path.stem for path in (folder / SOURCE).glob("[0-9][0-9]_*.py")]
    return max([FIRST - 1, *(int(name[:2]) for name in names)]) + 1


def _note(to: str, root: Path) -> None:
    """Name the folder in the settings, below what the file says of itself, and above any table."""
    given = Path(to).expanduser()
    named = given if given.is_absolute() else Path(os.path.relpath(given.resolve(), root))
    path = root / SETTINGS
    path.parent.mkdir(exist_ok=True)
    rest = path.read_text(encoding="utf-8") if path.is_file() else ""
    line = f"own = {json.dumps(named.as_posix(), ensure_ascii=False)}  # your own lessons\n"
    lines = rest.splitlines(keepends=True)
    head = list(itertools.takewhile(lambda one: one.startswith("#"), lines))
    path.write_text("".join([*head, line, *lines[len(head) :]]), encoding="utf-8")
