"""What a lesson's text must not show, its solutions; and what it must say, for others quote it."""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from nbformat import NotebookNode

from autograder.building.excerpt import solution_lines, text_of
from autograder.building.lesson import Lesson

LEAST_LINE, LEAST_EXPRESSION = 12, 24  # characters without spaces that make a leak
OPENED = re.compile(r"raise\w+\(")  # an exception whose message stands in the lines below
EVIDENCE = Path("docs") / "evidence.md"
TITLE = re.compile(r"<summary>(Hint [^<]*“([^”]*)”[^<]*)</summary>")
RAISED = re.compile(r"\w*(Error|Warning): ")


def leaks(lesson: Lesson, released: NotebookNode) -> list[str]:
    """What of a solution stands in the lesson, in code or prose, and solution marks: sentences."""
    said, shown = [], given(lesson)
    secret = {text: name for name, text in solutions(lesson) if text not in shown}
    for cell in released.cells:
        if "BEGIN SOLUTION" in cell.source or "END SOLUTION" in cell.source:
            said.append(f"cell {cell.id} holds a solution mark")
        content = normal(cell.source)
        found = [text for text in secret if text in content]
        for text in found:
            if not any(text in longer for longer in found if longer != text):
                where = f"cell {cell.id} shows a line of {secret[text]}'s solution"
                said.append(f"{where}: {text}")
    return said


def given(lesson: Lesson) -> set[str]:
    """The lines of the library that the lesson itself shows, normalised."""
    names = [cell.name for cell in lesson.cells if cell.kind == "given"]
    return normalised(line for name in names for line in text_of(lesson.library, name).split("\n"))


def solutions(lesson: Lesson) -> Iterator[tuple[str, str]]:
    """Pairs (exercise, normalised line) of all lines of its solutions that are long enough."""
    for name in lesson.exercises:
        for line in normalised(solution_lines(lesson.library, name)):
            if len(line) > LEAST_LINE:
                yield name, line


def normalised(lines: Iterable[str]) -> set[str]:
    """Lines without comments, and the longer expressions among them on their own."""
    code = {normal(line.partition("  #")[0]) for line in lines}
    code = {line for line in code if not OPENED.fullmatch(line)}
    expressions = {re.sub(r"^(return|[\w.,]+=(?!=))", "", line) for line in code}
    return code | {text for text in expressions if len(text) > LEAST_EXPRESSION}


def normal(text: str) -> str:
    """Without spaces, in one sort of quotes, no last commas: a reformatted leak is still one."""
    joined = re.sub(r"\\\n|\s", "", text).replace('"', "'")
    return re.sub(r",(?=[)\]}])", "", joined)


def unsaid_claims(name: str, text: str, root: Path) -> Iterator[str]:
    """The claims of a lesson in docs/evidence.md that its ``text`` does not say word for word.

    So whoever changes such a sentence meets its control.
    """
    text = words(text)
    for row in evidence(name, root):
        for part in row[2:].partition(" | ")[0].split(" … "):
            if words(part) not in text:
                yield f"{EVIDENCE} has a claim that the lesson does not say: {part!r}"


def evidence(name: str, root: Path) -> Iterator[str]:
    """The rows of a lesson's table in docs/evidence.md, but for its head."""
    path = root / EVIDENCE
    said = path.read_text(encoding="utf-8") if path.is_file() else ""
    section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", said, re.MULTILINE | re.DOTALL)
    for row in section[1].splitlines() if section else ():
        if row.startswith("| ") and not row.startswith("| claim | "):
            yield row


def unsaid_quotes(lesson: Lesson, name: str, told: Collection[str]) -> list[str]:
    """A sentence for each title of the exercise's hints that quotes what nobody is told.

    A student finds a hint by what the check has told them, so it must still say what is quoted.
    Python's and PyTorch's own errors are quoted with the name of their class and are left out: few
    stored mistakes raise them.

    told  what the check of the exercise ``name`` said to each stored mistake
    """
    asked = [(cell.kind, cell.name) for cell in lesson.cells]
    text = lesson.cells[asked.index(("exercise", name)) - 1].source
    said = [" ".join(text.split()) for text in told]
    return [
        f"{name}: “{title}” quotes what no stored mistake is told; quote the check's own words"
        for title, quote in TITLE.findall(text)
        if not RAISED.match(quote) and not any(_holds(text, quote) for text in said)
    ]


def _holds(text: str, quote: str) -> bool:
    """Whether the text has the quote, of which “…” leaves something out."""
    return all(part.strip() in text for part in quote.split("…"))


def words(text: str) -> str:
    """A text without comment signs, stars, backticks and line ends: phrases go across them."""
    return " ".join(re.sub(r"[#*]", " ", text.replace("`", "")).split())
