"""What a lesson is called, and where its notebooks lie."""

from collections.abc import Collection, Iterable
from pathlib import Path

from autograder import ROOT, CourseError

OWN = "50"  # an instructor's own lessons have numbers from here on: none of ours will
RELEASED = "autograder/released"  # in a student's own copy: the notebooks as they were handed out


class UnknownLesson(CourseError):
    """No lesson answers to the name given."""


def name_of(slug: str) -> str:
    """'kernel_regression' of '01_kernel_regression': what the lesson's modules are called."""
    return slug.partition("_")[2]


def slug_of(name: str, root: Path = ROOT) -> str:
    """'01_kernel_regression' of 'kernel_regression'; '' where no such notebook was handed out."""
    found = (path.name for path in handed_out(root).glob(f"[0-9]*_{name}"))
    return next((slug for slug in found if name_of(slug) == name), "")


def choose(names: Collection[str], slugs: Iterable[str]) -> list[str]:
    """Those of ``slugs`` that ``names`` select, in order and each once; all if there is no name.

    A lesson answers to its number ('01' or '1'), its name, both, or the path of any of its
    notebooks. Raises UnknownLesson for a name to which none answers.
    """
    slugs = sorted(slugs)
    return sorted({_one(name, slugs) for name in names}) if names else slugs


def _one(name: str, slugs: list[str]) -> str:
    key = Path(str(name)).stem
    for slug in slugs:
        number = slug.partition("_")[0]
        same = key.isdecimal() and number.isdecimal() and int(key) == int(number)
        if same or key and key in (slug, name_of(slug)):
            return slug
    known = ", ".join(slugs) or "none"
    raise UnknownLesson(f"no lesson is called {str(name)!r}; there are: {known}")


def notebook(root: Path | str, kind: str, slug: str) -> Path:
    """Path of a lesson's notebook in the folder ``kind``: 'solutions', 'lessons' or another."""
    return Path(root) / kind / slug / f"{slug}.ipynb"


def handed_out(root: Path) -> Path:
    """The folder of the notebooks as they were handed out.

    In a student's own copy lessons/ holds their work, and RELEASED what it was.
    """
    return root / (RELEASED if (root / RELEASED).is_dir() else "lessons")
