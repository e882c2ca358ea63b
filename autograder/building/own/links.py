"""Link an instructor's own lessons into the course, from a folder of theirs outside of it.

`own` in class/course.toml names the folder. It holds source/, checks/, mistakes/
and a folder of the library's name,
and each file in them has a symbolic link of the same name in the course. So all that reads a
lesson, Python included, finds it where lessons are, there is one copy of each file, and git, which
ignores the links, does nothing to it.

The names begin with own_ and the numbers with 50: no lesson of the course will have the same.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from autograder import ROOT, CourseError, lessons
from autograder.settings import COURSE, own_folder

SOURCE, LIBRARY = "source", COURSE.library
PLACES = {  # of the folder's files, in the course
    SOURCE: SOURCE,
    LIBRARY: LIBRARY,
    "checks": "autograder/checks",
    "mistakes": "autograder/mistakes",
}
ENDINGS = (".py", ".md")  # of cards, too
FIRST, LAST = 50, 99
NAME = re.compile(rf"{lessons.OWN}[a-z][a-z0-9_]*")
SLUG = re.compile(rf"[5-9][0-9]_(?!{lessons.OWN_ANSWERS}){NAME.pattern}")


class OwnLessonError(CourseError):
    """An own lesson cannot be linked; str() says which file is in the way, and what to do."""


def link(root: Path = ROOT) -> None:
    """Make the links to all files of the instructor's folder, and remove those to other files.

    Raises OwnLessonError, before anything is changed, for what does not fit.
    """
    folder = own_folder(root)
    wanted = _wanted(folder, root) if folder else {}
    for place in wanted:
        if place.exists() and not place.is_symlink():
            raise OwnLessonError(
                f"{place} is a file of its own, where the link to {wanted[place]} belongs: move it "
                "there if it is the newer one, else delete it"
            )
    for place in _linked(root):
        if place.resolve() != wanted.get(place):
            place.unlink(missing_ok=True)
    for place, path in wanted.items():
        if not place.is_symlink():
            with contextlib.suppress(FileExistsError):  # another command was faster
                place.symlink_to(path)


def _linked(root: Path) -> Iterator[Path]:
    """The links that are there."""
    for kind, where in PLACES.items():
        start = "[5-9][0-9]_" if kind == SOURCE else ""
        for ending in ENDINGS:
            found = (root / where).glob(f"{start}{lessons.OWN}*{ending}")
            yield from [path for path in found if path.is_symlink()]


def _wanted(folder: Path, root: Path) -> dict[Path, Path]:
    """The file to which each link is to lead, by the link's place."""
    refuse_folder(folder, root)
    if not folder.is_dir():
        raise OwnLessonError(
            f'class/course.toml says own = "…", but there is no folder {folder}: bring it back, '
            "write where it is now, or take the line out"
        )
    files = {  # but for what editors and systems leave beside a file: ._own_name.py
        kind: {path.stem: path.resolve() for path in sorted((folder / kind).glob("[!._]*.py"))}
        for kind in PLACES
    }
    _refuse_names(files, folder, root)
    found = {
        root / where / f"{name}.py": path
        for kind, where in PLACES.items()
        for name, path in files[kind].items()
    }
    cards = [path.resolve() for path in (folder / "mistakes").glob(f"{lessons.OWN}*.md")]
    return found | {root / PLACES["mistakes"] / path.name: path for path in cards}


def refuse_folder(folder: Path, root: Path) -> None:
    """Raises OwnLessonError for a folder within the course, or around it."""
    folder, root = folder.resolve(), root.resolve()
    if folder == root or root in folder.parents or folder in root.parents:
        raise OwnLessonError(
            f"{folder} cannot hold own lessons, for the course is in it or it is in the course, "
            f"{root}: name a folder beside the course"
        )


def _refuse_names(files: dict[str, dict[str, Path]], folder: Path, root: Path) -> None:
    """Each file's name is one that the course leaves free, and no two lessons share a number."""
    for kind, named in files.items():
        pattern, like = (SLUG, "50_own_name.py") if kind == SOURCE else (NAME, "own_name.py")
        for name in named:
            if not pattern.fullmatch(name):
                raise OwnLessonError(
                    f"{folder / kind / name}.py is not called like {like}: rename it (own lessons "
                    f"have numbers from {FIRST} to {LAST} and names that begin with {lessons.OWN})"
                )
    numbers: dict[str, str] = {}
    for slug in files[SOURCE]:
        other = numbers.setdefault(slug[:2], slug)
        if other != slug:
            raise OwnLessonError(
                f"two lessons in {folder / SOURCE} have the number {slug[:2]}: {other}.py and "
                f"{slug}.py; give one another number, in its title, too"
            )
    ours = {lessons.name_of(path.stem) for path in (root / SOURCE).glob("[0-4][0-9]_*.py")}
    for name in files["mistakes"]:
        if name.startswith(lessons.OWN_ANSWERS):
            lesson = name.removeprefix(lessons.OWN_ANSWERS)
            if lesson not in ours:
                raise OwnLessonError(
                    f"{folder / 'mistakes' / name}.py: the course has no lesson {lesson!r}; "
                    f"{lessons.OWN_ANSWERS} is followed by one of {', '.join(sorted(ours))}"
                )
