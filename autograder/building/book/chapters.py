"""The lessons as the book's chapters: what each asks, how long it takes and which ones it needs.

Nothing of this is kept for the book: it is read from the solved notebooks, whose heads state
questions, minutes and needs, and from the imports of source/ and the library.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder import CourseError
from autograder.cell_metadata import TIME
from autograder.imports import imported
from autograder.lessons import name_of, notebook
from autograder.settings import COURSE

TITLE = re.compile(r"^# (\d\d) · (.+)$", re.MULTILINE)
# In a lesson's head: **You need** lessons 02 and 05 to 09
NEED = re.compile(r"\*\*You need\*\*\s+lessons? ([^·\n]*(?:\n[^·\n]+)*)")
SPAN = re.compile(r"(\d\d)(?:\s+to\s+(\d\d))?")


@dataclass(frozen=True)
class Chapter:
    """A lesson in the book.

    question  its title, without the number
    minutes   of its core path; ``starred`` are those beyond it
    builds    numbers of the lessons whose code it or its module imports
    stated    numbers of the lessons that its head says a learner needs
    """

    slug: str
    question: str
    minutes: int
    starred: int
    builds: frozenset[int]
    stated: frozenset[int]

    @property
    def number(self) -> int:
        """The lesson's number, 5 for '05_scaled_dot_product_attention'."""
        return int(self.slug[:2])

    @property
    def title(self) -> str:
        """Number and question, as they stand above the lesson."""
        return f"{self.number:02} · {self.question}"

    @property
    def name(self) -> str:
        """The lesson's name in words, 'Scaled dot product attention'."""
        first, *words = name_of(self.slug).split("_")
        said = " ".join([first.title(), *(COURSE.words.get(word, word) for word in words)])
        for apart, joined in COURSE.joined.items():
            said = said.replace(apart, joined)
        return said

    @property
    def entry(self) -> str:
        """Number, name and question, as a list of all lessons shows them."""
        return f"{self.number:02} · {self.name}: {self.question}"


def read(root: Path, slugs: Iterable[str]) -> dict[int, Chapter]:
    """The chapters by number; raises CourseError where a notebook or what it must state lacks."""
    slugs = sorted(slugs)
    numbers = {name_of(slug): int(slug[:2]) for slug in slugs}
    return {int(slug[:2]): _chapter(root, slug, numbers) for slug in slugs}


def solved(root: Path, slug: str, kind: str = "solutions") -> NotebookNode:
    """The notebook of a lesson; raises CourseError if it is missing or no notebook."""
    path = notebook(root, kind, slug)
    try:
        return nbformat.reader.reads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # NotJSONError is one of these
        raise CourseError(f"{path} cannot be read: run `autograder build {slug[:2]}`") from error


def _chapter(root: Path, slug: str, numbers: Mapping[str, int]) -> Chapter:
    cells = solved(root, slug).cells
    head = cells[0].source if cells else ""
    title, time, own = TITLE.search(head), TIME.search(head), int(slug[:2])
    if title is None or time is None:
        raise CourseError(
            f"the first cell of solutions/{slug} states no title or no time; begin it with "
            f"'# {slug[:2]} · A question?' and give it '**Time** 90 minutes'"
        )
    names: set[str] = set()
    for path in (root / "source" / f"{slug}.py", root / COURSE.library / f"{name_of(slug)}.py"):
        names |= imported(path.read_text(encoding="utf-8")) if path.is_file() else set()
    parts = [name.split(".")[:2] for name in names]
    lessons = {part[1] for part in parts if len(part) == 2 and part[0] == COURSE.library}
    builds = frozenset(numbers[one] for one in lessons & numbers.keys()) - {own}
    stated = frozenset(_stated(head))
    late = {one for one in stated | builds if one >= own}
    if late:
        wrong = ", ".join(f"{one:02}" for one in sorted(late))
        raise CourseError(f"lesson {slug[:2]} needs lesson {wrong}, which does not come before it")
    question, minutes, starred = title[2].strip(), int(time[1]), int(time[2] or 0)
    return Chapter(slug, question, minutes, starred, builds, stated)


def _stated(head: str) -> Iterable[int]:
    """The numbers in '**You need** lessons 02 and 05 to 09'."""
    found = NEED.search(head)
    for first, last in SPAN.findall(found[1] if found else ""):
        yield from range(int(first), int(last or first) + 1)


def everything(needs: Mapping[int, Collection[int]], number: int) -> set[int]:
    """All that a lesson needs, directly or through another."""
    found: set[int] = set()
    waiting = list(needs[number])
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += needs.get(one, ())
    return found


def reduced(needs: Mapping[int, Collection[int]]) -> dict[int, set[int]]:
    """The needs without those that follow from others: the transitive reduction."""
    return {
        number: {
            one
            for one in direct
            if not any(one in everything(needs, other) for other in direct if other in needs)
        }
        for number, direct in needs.items()
    }


def needs(chapters: Mapping[int, Chapter]) -> dict[int, set[int]]:
    """What each lesson needs by its code or by what its head says, as the book draws it."""
    return reduced({number: set(one.builds | one.stated) for number, one in chapters.items()})
