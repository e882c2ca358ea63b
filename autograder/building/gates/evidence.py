"""A gate for what a lesson claims: its sentences in docs/evidence.md are those that it says."""

import re
from collections.abc import Iterator
from pathlib import Path

from autograder.building.gates.care import words

TABLE = Path("docs") / "evidence.md"
LEFT_OUT = " … "


def unsaid(name: str, text: str, root: Path) -> Iterator[str]:
    """The claims of a lesson in docs/evidence.md that its ``text`` does not say word for word.

    So whoever changes such a sentence meets its control.
    """
    text = words(text)
    for claim in claims(name, root):
        for part in claim.split(LEFT_OUT):
            if words(part) not in text:
                yield f"{TABLE} has a claim that the lesson does not say: {part!r}"


def claims(name: str, root: Path) -> Iterator[str]:
    """The first column of a lesson's table in docs/evidence.md."""
    for row in rows(name, root):
        yield row[2:].partition(" | ")[0]


def rows(name: str, root: Path) -> Iterator[str]:
    """The rows of a lesson's table in docs/evidence.md, but for its head."""
    path = root / TABLE
    said = path.read_text(encoding="utf-8") if path.is_file() else ""
    section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", said, re.MULTILINE | re.DOTALL)
    for row in section[1].splitlines() if section else ():
        if row.startswith("| ") and not row.startswith("| claim | "):
            yield row
