"""Write Sphinx's sources of the book, and run Sphinx over them."""

import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from autograder import ROOT, CourseError
from autograder.building.book import chapters as course
from autograder.building.book.chapters import Chapter
from autograder.building.book.page import page, to_open
from autograder.lessons import choose
from autograder.settings import COURSE

NEEDED = ("sphinx", "myst_nb", "sphinx_book_theme", "mathjax")
MADE = ("source", "html", "doctrees", "jupyter_execute")  # a book's folders; the last: MyST-NB's
LESSON_PAGE = "{lesson}/{lesson}.html"
NUMBER = re.compile(r"\d\d")  # of a lesson
WHERE = "Repository"  # the key in pyproject.toml's [project.urls]


def build(names: Collection[str], to: Path, root: Path = ROOT, repository: str = "") -> Path:
    """Build the book of the lessons that ``names`` select, all if empty; returns its first page.

    to          folder for source/ and html/, which are made anew
    repository  'https://github.com/OWNER/NAME', or '' for a book without links to it

    Raises CourseError where something is missing or Sphinx finds fault, be it a warning.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise CourseError(
            f"the book needs {', '.join(missing)}: "
            "pip install -c constraints.txt -e '.[book]' in the course's folder"
        )
    if to.exists() and {path.name for path in to.iterdir()} - set(MADE):
        raise CourseError(f"{to} holds other things than a book: give an empty folder")
    for folder in MADE:
        shutil.rmtree(to / folder, ignore_errors=True)
    write(names, to / "source", root, repository)
    folders = [str(to / "source"), str(to / "html")]
    options = ["-W", "--keep-going", "-q", "-j", "auto", "-d", str(to / "doctrees")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-c", str(root / "book"), *options, *folders],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise CourseError(f"Sphinx does not accept the book:\n{done.stderr.strip()}")
    # Where lessons are left out, the page names them all and links none.
    links, home = (None, "") if names else (LESSON_PAGE, "index.html")
    if COURSE.pages:
        importlib.import_module(COURSE.pages).write(to / "html", links, home)
    return to / "html" / "index.html"


def repository_in(pyproject: Path) -> str:
    """The repository's address as pyproject.toml states it, or '' if it states none.

    Raises CourseError for one that Colab and Binder cannot open.
    """
    project = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("project", {})
    address = str(project.get("urls", {}).get(WHERE, "")).removesuffix("/").removesuffix(".git")
    if address and not address.startswith("https://github.com/"):
        raise CourseError(
            f"{pyproject.name} states the {WHERE} {address}; Colab and Binder open what is at "
            "https://github.com/OWNER/NAME: give that, or leave it out"
        )
    return address


def write(names: Collection[str], to: Path, root: Path = ROOT, repository: str = "") -> None:
    """Write the sources into the folder ``to``: a notebook a lesson, and the pages of book/."""
    slugs = sorted(path.stem for path in (root / "source").glob("[0-9][0-9]_*.py"))
    chosen = {int(slug[:2]) for slug in choose(names, slugs)}
    book = Book(course.read(root, slugs), chosen, repository)
    for number in sorted(chosen):
        book.write_lesson(root, number, to)
    pages = importlib.import_module(COURSE.pages) if COURSE.pages else None
    templates = Environment(
        loader=FileSystemLoader(root / "book"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for path in sorted((root / "book").glob("*.md")):
        try:
            text = templates.get_template(path.name).render(book=book, course=pages)
        except TemplateError as error:
            raise CourseError(f"book/{path.name} cannot be filled in: {error}") from error
        (to / path.name).write_text(text + "\n", encoding="utf-8")


class Book:
    """What the pages of book/ may ask of the course: they are filled in with jinja2.

    chapters    all lessons by number
    chosen      the numbers of those that are in this book
    repository  the repository's address, or ''
    """

    def __init__(
        self, chapters: Mapping[int, Chapter], chosen: Collection[int], repository: str
    ) -> None:
        self.chapters, self.chosen, self.repository = chapters, chosen, repository
        self.needs = course.needs(chapters)
        self._numbers = {one.slug: number for number, one in chapters.items()}

    def write_lesson(self, root: Path, number: int, to: Path) -> None:
        """Write a lesson's page and its drawings."""
        slug = self.chapters[number].slug
        solved, blank = (course.solved(root, slug, kind) for kind in ("solutions", "lessons"))
        how = (root / "book" / "open.md").is_file()
        made, drawings = page(solved, blank, self._below_the_head(number, how), self._between)
        made.cells[0].source = self._with_links(made.cells[0].source)
        folder = to / slug
        (folder / "figures").mkdir(parents=True)
        for name, content in drawings.items():
            (folder / "figures" / name).write_bytes(content)
        nbformat.write(made, folder / f"{slug}.ipynb")

    def link(self, number: int, text: str = "", start: str = "") -> str:
        """Markdown that leads to a lesson, or its text where the lesson is not in this book."""
        one = self.chapters[number]
        text = text or one.title
        return f"[{text}]({start}{one.slug}/{one.slug}.ipynb)" if number in self.chosen else text

    def address(self, number: int) -> str:
        """Where a lesson's page is, or '' if it has none."""
        slug = self.chapters[number].slug
        return LESSON_PAGE.format(lesson=slug) if number in self.chosen else ""

    def needed(self, number: int) -> str:
        """Links to what a lesson needs, by their numbers."""
        return ", ".join(self.link(one, f"{one:02}") for one in sorted(self.needs[number])) or "–"

    def minutes(self, numbers: Iterable[int]) -> int:
        """What the lessons take together, without what is marked with a star."""
        return sum(self.chapters[number].minutes for number in numbers)

    def way(self, numbers: Collection[int]) -> list[int]:
        """The lessons with these numbers, in order, as a way through the course.

        Raises CourseError if the code of one of them builds on a lesson that is not among them.
        """
        builds = {number: one.builds for number, one in self.chapters.items()}
        for number in sorted(numbers):
            for one in sorted(course.everything(builds, number) - set(numbers)):
                raise CourseError(
                    f"a way in book/path.md has lesson {number:02} without lesson {one:02}, on "
                    "whose code it builds: add that one"
                )
        return sorted(numbers)

    @staticmethod
    def hours(minutes: int) -> str:
        """'6 h 20 min'."""
        return f"{minutes // 60} h {minutes % 60:02} min"

    def _between(self, text: str, slug: str) -> str:
        return self.link(self._numbers[slug], text, "../")

    def _with_links(self, head: str) -> str:
        """A lesson's head, in which the numbers of the lessons that it needs lead to them."""
        return course.NEED.sub(
            lambda needs: NUMBER.sub(lambda one: self.link(int(one[0]), one[0], "../"), needs[0]),
            head,
        )

    def _below_the_head(self, number: int, how: bool) -> str:
        """How to open the lesson, below its head; ``how``: whether book/open.md says more of it."""
        one = self.chapters[number]
        ways = to_open(one.slug, self.repository)
        elsewhere = "".join(f", or on [{name}]({address})" for name, address in ways.items())
        return (
            f"**Open it** {'[on your machine](../open.md)' if how else 'on your machine'} with "
            f"`jupyter lab lessons/{one.slug}/{one.slug}.ipynb`{elsewhere}"
        )
