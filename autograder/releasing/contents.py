"""Which files a release holds: notebooks, the library of the lessons before, checks, data.

What stands in a release by rule: nothing of `attention/` that answers an exercise of a lesson that
is handed out or of a later one, and of the stored mistakes of these only those that are shown in
the open. `secrets` looks whether that holds.
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from string import Template

import nbformat

from autograder import ROOT, CourseError, imports, lessons
from autograder.building.lesson import Lesson, find
from autograder.lessons import RELEASED
from autograder.releasing.excerpts import shown_mistakes
from autograder.releasing.record import kept_recordings
from autograder.releasing.secrets import all_lessons
from autograder.sandbox import visible_files
from autograder.settings import CARE_SHARE, care_share

PAGES = Path(__file__).parent / "pages"
ALWAYS = ("LICENSE", "LICENSE-TEXT", "constraints.txt")
ROOM = "2 GB"  # `make bench-install` says how much it was
# What a student's copy can run, besides the notebooks; others need what is not there.
STARTS = (
    *("autograder.check", "autograder.self_study.status"),
    *(f"autograder.commands.{name}" for name in ("cli", "check", "status", "collect")),
)
COMMANDS = ("data",)
PROGRAM = re.compile(r"python -m (attention[\w.]*)")
PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "attention-course-lessons"
version = "{version}"
description = "Lessons of a graded Jupyter course on attention and Transformers"
requires-python = "{python}"
dependencies = [
{dependencies}
]

[project.scripts]
autograder = "autograder.commands.cli:main"

[tool.setuptools]
package-dir = {{ "" = "." }}

[tool.setuptools.packages.find]
include = ["attention*", "autograder*"]
"""
ENVIRONMENT = """\
# conda env create -f environment.yml, then: conda activate attention
name: attention
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
      - -c constraints.txt
      - -e .
"""
NBGRADER = '''\
"""nbgrader's settings for this folder: Validate waits, where this computer has much else to do."""

c = get_config()  # noqa: F821  (nbgrader provides it)
c.Execute.timeout = c.Execute.iopub_timeout = 300  # seconds, for a cell and for what it prints
c.Execute.startup_timeout = 600
'''


class ReleaseError(CourseError):
    """These lessons cannot be handed out like this; str() says why, and what to do."""


def contents(names: Iterable[str]) -> dict[str, bytes]:
    """The files of a release of the lessons that ``names`` select: path in the folder → content.

    Raises ReleaseError if one of them builds on another one of them.
    """
    slugs = [path.stem for path in find(list(names))]
    chosen = [lesson for lesson in all_lessons(ROOT) if lesson.slug in slugs]
    before = [lesson for lesson in all_lessons(ROOT) if lesson.slug < slugs[0]]
    hidden = visible_files.hidden(ROOT / "attention", chosen[0].slug)
    _refuse_dependent(chosen, hidden)
    modules = _modules([*before, *chosen], hidden)
    modules |= {lesson.mistakes for lesson in before}
    modules |= {folder / "__init__.py" for path in modules for folder in _packages(path)}
    paths = [*modules, *(ROOT / name for name in ALWAYS), *_data()]
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}
    for lesson in chosen:
        files |= _of_lesson(lesson)
    if (share := care_share()) != CARE_SHARE:
        files["course.toml"] = f"care_share = {share:g}\n".encode()
    return dict(sorted({**files, **_pages(chosen)}.items()))


def _of_lesson(lesson: Lesson) -> dict[str, bytes]:
    """The notebook, twice, the stored mistakes that it shows, and what answers reply."""
    content = lessons.notebook(ROOT, "lessons", lesson.slug).read_bytes()
    return {
        f"lessons/{lesson.slug}/{lesson.slug}.ipynb": content,
        f"{RELEASED}/{lesson.slug}/{lesson.slug}.ipynb": content,
        f"autograder/mistakes/{lesson.name}.py": shown_mistakes(lesson).encode(),
        f"autograder/recorded/{lesson.name}.zip": kept_recordings(lesson.name),
    }


def _modules(known: list[Lesson], hidden: set[Path]) -> set[Path]:
    """What the notebooks and checks of these lessons import, and the commands that they name."""
    starts, said = list(STARTS), ""
    for lesson in known:
        starts.append(f"autograder.checks.{lesson.name}")
        starts.append(f"attention.{lesson.name}")  # but for those that are hidden
        for cell in nbformat.read(lessons.notebook(ROOT, "lessons", lesson.slug), 4).cells:
            said += f"{cell.source}\n"
            if cell.cell_type == "code":
                starts += _imported(cell.source)
    starts += [f"{name}.__main__" for name in PROGRAM.findall(said)]
    starts += [f"autograder.commands.{name}" for name in COMMANDS if f"autograder {name}" in said]
    packages = ("attention", "autograder")
    return set(imports.modules(starts, ROOT, packages, hidden, by_name=True))


def _imported(source: str) -> frozenset[str]:
    try:
        return imports.imported(source)
    except SyntaxError:  # a cell with a command of the shell
        return frozenset()


def _packages(path: Path) -> list[Path]:
    """The folders of a module that are packages."""
    return [folder for folder in path.parents if (folder / "__init__.py").is_file()]


def _refuse_dependent(chosen: list[Lesson], hidden: set[Path]) -> None:
    """A lesson whose notebook imports what another one of the release, or a later one, asks for."""
    names = {path.stem: path for path in hidden if path.parent.name == "attention"}
    for lesson in chosen[1:]:
        cells = nbformat.read(lessons.notebook(ROOT, "lessons", lesson.slug), 4).cells
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        used = {name for source in code for name in _imported(source)}
        reached = imports.modules(used, ROOT)
        needed = sorted(name for name, path in names.items() if path in reached)
        if needed:
            raise ReleaseError(
                f"{lesson.slug} uses the solutions of {', '.join(needed)}, which "
                f"{chosen[0].slug} or a lesson after it asks for: hand out {lesson.slug} in a "
                "release of its own, when these are over"
            )


def _data() -> list[Path]:
    return [path for path in sorted((ROOT / "data").rglob("*")) if path.is_file()]


def _pages(chosen: list[Lesson]) -> dict[str, bytes]:
    """What tells people, assistants and pip what this is."""
    titles = ", ".join(f"*{lesson.title}*" for lesson in chosen)
    words = {"lessons": titles, "first": chosen[0].slug, "room": ROOM}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pyproject = PYPROJECT.format(
        version=project["version"],
        python=project["requires-python"],
        dependencies="\n".join(f'    "{one}",' for one in project["dependencies"]),
    )
    readme = Template((PAGES / "README.md").read_text(encoding="utf-8")).substitute(words)
    return {
        "README.md": readme.encode(),
        "AGENTS.md": (PAGES / "AGENTS.md").read_bytes(),
        "nbgrader_config.py": NBGRADER.encode(),
        "pyproject.toml": pyproject.encode(),
        "environment.yml": ENVIRONMENT.encode(),
    }
