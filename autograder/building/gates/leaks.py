"""What of a solution stands in what a learner is given."""

import re
from collections.abc import Iterable, Iterator

from nbformat import NotebookNode

from autograder.building.excerpt import solution_lines, text_of
from autograder.building.lesson import Lesson

LEAST_LINE, LEAST_EXPRESSION = 12, 24  # characters without spaces that make a leak
OPENED = re.compile(r"raise\w+\(")  # an exception whose message stands in the lines below


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
