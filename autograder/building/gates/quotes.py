"""What the title of a hint quotes, the check says to somebody: a part of gate 3.

A student finds a hint by what the check has told them, so a quoted sentence must be one that it
still says. Python's and PyTorch's own errors are quoted with the name of their class and are left
out: few stored mistakes raise them.
"""

import re
from collections.abc import Collection

from autograder.building.lesson import Lesson
from autograder.building.source import Cell

TITLE = re.compile(r"<summary>(Hint [^<]*“([^”]*)”[^<]*)</summary>")
RAISED = re.compile(r"\w*(Error|Warning): ")


def unsaid(lesson: Lesson, name: str, told: Collection[str]) -> list[str]:
    """A sentence for each title of the exercise's hints that quotes what nobody is told.

    told  what the check of the exercise ``name`` said to each stored mistake
    """
    place = next(i for i, cell in enumerate(lesson.cells) if _asks(cell, name))
    said = [" ".join(text.split()) for text in told]
    return [
        f"{name}: “{title}” quotes what no stored mistake is told; quote the check's own words"
        for title, quote in TITLE.findall(lesson.cells[place - 1].source)
        if not RAISED.match(quote) and not any(_holds(text, quote) for text in said)
    ]


def _asks(cell: Cell, name: str) -> bool:
    return cell.kind == "exercise" and cell.name == name


def _holds(text: str, quote: str) -> bool:
    """Whether the text has the quote, of which “…” leaves something out."""
    return all(part.strip() in text for part in quote.split("…"))
