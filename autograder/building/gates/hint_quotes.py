"""What the title of a hint quotes, the check says to somebody: a part of gate 3.

A student finds a hint by what the check has told them, so a quoted sentence must be one that it
still says. Python's and PyTorch's own errors are quoted with the name of their class and are left
out: few stored mistakes raise them.
"""

import re
from collections.abc import Collection

from autograder.building.lesson import Lesson

TITLE = re.compile(r"<summary>(Hint [^<]*“([^”]*)”[^<]*)</summary>")
RAISED = re.compile(r"\w*(Error|Warning): ")


def unsaid(lesson: Lesson, name: str, told: Collection[str]) -> list[str]:
    """A sentence for each title of the exercise's hints that quotes what nobody is told.

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
