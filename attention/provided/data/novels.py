"""Five novels of Jane Austen: three to learn from, one to choose by, one to test on.

The card in data/README.md says where they come from and what was left out.
"""

from functools import cache
from pathlib import Path

from attention.provided.data.stored import read_stored
from attention.provided.files import ROOT

PATH = ROOT / "data" / "novels.json.gz"
SHA256 = "67741b7b1ee8f358866dcc8cae2c72720d8c7da195a08ea94c1aebdcd78935c7"
LEARN = ("Pride and Prejudice", "Sense and Sensibility", "Emma")
CHOOSE, TEST = "Northanger Abbey", "Persuasion"
TITLES = (*LEARN, CHOOSE, TEST)


@cache
def load(path: Path = PATH) -> dict[str, str]:
    """Return {title: text}: plain ASCII, one paragraph a line, without headings.

    Raises ValueError if the file is not the one that belongs to the course.
    """
    texts: dict[str, str] = read_stored(path, SHA256)
    return texts


def split() -> tuple[str, str, str]:
    """Return the texts to learn from, as one; the one to choose by; the one to test on."""
    texts = load()
    return "\n".join(texts[title] for title in LEARN), texts[CHOOSE], texts[TEST]
