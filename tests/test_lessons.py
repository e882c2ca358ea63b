"""A lesson shows code where it is the idea: its own lines are few."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "source").glob("[0-4][0-9]_*.py"))  # an instructor's own: as they like
CELL = re.compile(r"^# %%(.*)\n((?:(?!# %%).*\n?)*)", re.MULTILINE)
LONGEST_DEMONSTRATION, MOST = 6, 80  # lines of code


def cells(path):
    """Pairs of what is said of a code cell and how many lines of code it has."""
    for about, source in CELL.findall(path.read_text(encoding="utf-8")):
        lines = [line for line in source.splitlines() if line.strip() and line[0] != "#"]
        if "[markdown]" not in about:
            yield about.strip(), len(lines)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_lesson_has_little_code_of_its_own(path):
    own = [(about, lines) for about, lines in cells(path) if "=" not in about or "demo" in about]
    assert sum(lines for _, lines in own) <= MOST
    assert max(lines for about, lines in own if "demo" in about) <= LONGEST_DEMONSTRATION


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_lesson_ends_with_something_of_one_s_own(path):
    text = path.read_text(encoding="utf-8")
    assert 0 < text.find("# ## Something of your own") < text.find("# ## Summary")
