"""Which files a release holds: notebooks, the library of the lessons before, checks, data.

What stands in a release by rule: nothing of the library that answers an exercise of a lesson that
is handed out or of a later one, and of the stored mistakes of these only those that are shown in
the open. `secrets` looks whether that holds.
"""

import contextlib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from string import Template

import nbformat

from autograder import ROOT, CourseError, imports, lessons
from autograder.building.lesson import Lesson, find
from autograder.lessons import RELEASED
from autograder.releasing.record import kept_recordings
from autograder.releasing.shown_mistakes import shown_mistakes
from autograder.releasing.solution_leaks import all_lessons
from autograder.sandbox import visible_files
from autograder.settings import COURSE, FILE, USUAL, care
from autograder.term import class_notebooks, course_file
from autograder.term.course_file import LessonChoice

PAGES = Path(__file__).parent / "pages"
ALWAYS = ("LICENSE", "LICENSE-TEXT", "constraints.txt", FILE)
ROOM = "2 GB"  # of an environment with what a release needs
# What a student's copy can run, besides the notebooks; others need what is not there.
STARTS = (
    *("autograder.__main__", "autograder.check", "autograder.validation"),
    "autograder.self_study.status",
    *(f"autograder.commands.{name}" for name in ("cli", "check", "status", "collect")),
)
PROGRAM = re.compile(rf"python -m ({COURSE.library}[\w.]*)")


class ReleaseError(CourseError):
    """These lessons cannot be handed out like this; str() says why, and what to do."""


def contents(names: Iterable[str]) -> dict[str, bytes]:
    """The files of a release of the lessons that ``names`` select: path in the folder → content.

    Raises ReleaseError if one of them builds on another one of them.
    """
    slugs = [path.stem for path in find(list(names))]
    chosen = [lesson for lesson in all_lessons() if lesson.slug in slugs]
    before = [lesson for lesson in all_lessons() if lesson.slug < slugs[0]]
    hidden = visible_files.hidden(ROOT / COURSE.library, chosen[0].slug)
    _refuse_dependent(chosen, hidden)
    modules = _modules([*before, *chosen], hidden)
    stored = [ROOT / "autograder" / "mistakes" / lesson.name for lesson in before]
    modules |= {path.with_suffix(".py") for path in stored}
    packages = {folder / "__init__.py" for path in modules for folder in path.parents}
    modules |= {path for path in packages if path.is_file()}
    paths = [*modules, *_scripts(modules), *(ROOT / name for name in ALWAYS)]
    paths += [path.with_suffix(".md") for path in stored]
    paths += (ROOT / "data").rglob("*")
    files = {one.relative_to(ROOT).as_posix(): one.read_bytes() for one in paths if one.is_file()}
    for lesson in chosen:
        files |= _of_lesson(lesson)
    if (rule := care()) != USUAL:
        switch = "care_everywhere = true\n" * rule.everywhere
        files["course.toml"] = f"care_share = {rule.share:g}\n{switch}".encode()
    return dict(sorted({**files, **_pages(chosen)}.items()))


def _of_lesson(lesson: Lesson) -> dict[str, bytes]:
    """The notebook, twice, the stored mistakes that it shows, and what answers reply."""
    content = _notebook(lesson)
    return {
        f"lessons/{lesson.slug}/{lesson.slug}.ipynb": content,
        f"{RELEASED}/{lesson.slug}/{lesson.slug}.ipynb": content,
        f"autograder/mistakes/{lesson.name}.py": shown_mistakes(lesson).encode(),
        f"autograder/recorded/{lesson.name}.zip": kept_recordings(lesson.name),
    }


def _notebook(lesson: Lesson) -> bytes:
    """The notebook as the class has it: class/course.toml may name other points, or fewer parts."""
    choice, path = _choice(lesson), lessons.notebook(ROOT, "lessons", lesson.slug)
    if not choice.changes:
        return path.read_bytes()
    made = class_notebooks.adapted(nbformat.read(path, 4), choice)
    return f"{nbformat.writes(made)}\n".encode()


def _choice(lesson: Lesson) -> LessonChoice:
    choices = course_file.read(ROOT)
    if lesson.slug not in choices.lessons:
        raise ReleaseError(f"{choices.path} leaves {lesson.slug} out: take it in to hand it out")
    return choices.lessons[lesson.slug]


def _modules(known: list[Lesson], hidden: set[Path]) -> set[Path]:
    """What the notebooks and checks of these lessons import, and the commands that they name."""
    starts, said = list(STARTS), ""
    for lesson in known:
        starts.append(f"autograder.checks.{lesson.name}")
        starts.append(f"{COURSE.library}.{lesson.name}")  # but for those that are hidden
        cells = _cells(lesson)
        starts += _imported(cells)
        said += "".join(f"{cell.source}\n" for cell in cells)
    starts += [f"{name}.__main__" for name in PROGRAM.findall(said)]
    own = COURSE.commands.items()
    starts += [command["module"] for name, command in own if f"autograder {name}" in said]
    packages = (COURSE.library, "autograder")
    return set(imports.modules(starts, ROOT, packages, hidden, by_name=True))


def _scripts(modules: Iterable[Path]) -> list[Path]:
    """The scripts of modules that have some, in a folder of the module's name beside it."""
    return [script for path in modules for script in sorted(path.with_suffix("").glob("*.js"))]


def _cells(lesson: Lesson) -> list[nbformat.NotebookNode]:
    return nbformat.read(lessons.notebook(ROOT, "lessons", lesson.slug), 4).cells


def _imported(cells: list[nbformat.NotebookNode]) -> set[str]:
    found = set[str]()
    for cell in cells:
        if cell.cell_type == "code":
            with contextlib.suppress(SyntaxError):  # a cell with a command of the shell
                found |= imports.imported(cell.source)
    return found


def _refuse_dependent(chosen: list[Lesson], hidden: set[Path]) -> None:
    """A lesson whose notebook imports what another one of the release, or a later one, asks for."""
    names = {path.stem: path for path in hidden if path.parent.name == COURSE.library}
    for lesson in chosen[1:]:
        reached = imports.modules(_imported(_cells(lesson)), ROOT)
        needed = sorted(name for name, path in names.items() if path in reached)
        if needed:
            raise ReleaseError(
                f"{lesson.slug} needs the library's {', '.join(needed)}, which students write in "
                f"{chosen[0].slug} or after it: release {lesson.slug} by itself, when they have"
            )


def _pages(chosen: list[Lesson]) -> dict[str, bytes]:
    """What tells people, assistants and programs what this is: the templates in ``pages/``.

    Those that would be taken for this repository's own have names that end in .txt here.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    words = {
        "library": COURSE.library,
        "name": COURSE.name,
        "title": COURSE.title,
        "about": COURSE.about,
        "collected": COURSE.collected,
        "lessons": ", ".join(f"*{lesson.title}*" for lesson in chosen),
        "first": chosen[0].slug,
        "room": ROOM,
        "version": project["version"],
        "python": project["requires-python"],
        "dependencies": "\n".join(f'    "{one}",' for one in project["dependencies"]),
    }
    paths = [path for path in PAGES.rglob("*") if path.is_file()]
    return {
        path.relative_to(PAGES).as_posix().removesuffix(".txt"): Template(path.read_text("utf-8"))
        .substitute(words)
        .encode()
        for path in paths
    }
