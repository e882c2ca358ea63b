"""How long lessons take: what they state is what is counted.

That is text and code at a reader's pace, and the minutes that exercises' labels give a learner.
"""

import ast
import re
from typing import NamedTuple

import pytest

from autograder.building.excerpt import text_of
from autograder.building.lesson import find, read
from autograder.cell_metadata import TIME

PACE = 150  # words a minute, of a text that is to be understood
LABEL = re.compile(r"^●.*?(\d+) minutes", re.MULTILINE)
HEADING = re.compile(r"^(#{1,3}) (.*)$", re.MULTILINE)
# What is not read from beginning to end: folded hints, drawings, addresses, drawn rules of tables.
LEFT_OUT = re.compile(r"<details>.*?</details>|!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|<[^>]*>", re.DOTALL)
WORD = re.compile(r"[^\W_][\w'’-]*")


class Minutes(NamedTuple):
    """What a lesson states and what is counted; ``starred`` is beyond the core path."""

    stated: int
    stated_starred: int
    reading: float
    exercises: int
    starred: float


def count(lesson):
    """The Minutes of a lesson."""
    stated = TIME.search(lesson.cells[0].source)
    assert stated, "the head states no time; write: **Time** 90 minutes, ★ 20 more"
    core, beyond = [], []
    starred = [False] * 4  # by the level of the heading
    for cell in lesson.cells:
        if cell.kind == "markdown":
            for marks, title in HEADING.findall(cell.source):
                starred[len(marks) :] = ["★" in title] * (4 - len(marks))
        if not cell.answer:
            (beyond if any(starred) else core).append(what_is_read(lesson, cell))
    more = reading(beyond) + exercises(beyond)
    return Minutes(int(stated[1]), int(stated[2] or 0), reading(core), exercises(core), more)


def what_is_read(lesson, cell):
    """Of an exercise what it says, not what is to be written."""
    if cell.kind == "exercise":
        definition = ast.parse(text_of(lesson.library, cell.name)).body[0]
        return ast.get_docstring(definition) or ""
    return text_of(lesson.library, cell.name) if cell.kind == "given" else cell.source


def reading(texts):
    return sum(len(WORD.findall(LEFT_OUT.sub(" ", text))) for text in texts) / PACE


def exercises(texts):
    return sum(int(minutes) for text in texts for minutes in LABEL.findall(text))


TEXT = """# %% [markdown]
# # 00 · How small can a lesson be?
# **Time** 10 minutes, ★ 5 more · **Points** 2
"""


@pytest.mark.parametrize("path", find(), ids=lambda path: path.stem)
def test_what_is_stated_is_what_is_counted(path):
    one = count(read(path))
    core = one.reading + one.exercises
    assert abs(one.stated - core) <= 8, f"{core:.0f} minutes are counted"
    assert abs(one.stated_starred - one.starred) <= 8, f"{one.starred:.0f} are beyond the core"


def test_reading_and_labels_are_counted_and_stars_apart(course):
    words = "# " + "word " * 300
    hidden = f"# <details><summary>Hint</summary>\n{words}\n# </details>"
    course.source.write_text(
        f"{TEXT}\n# %% [markdown]\n# ## One\n# ●○○ easy · 6 minutes · 2 points\n{words}\n{hidden}\n"
        f"\n# %% [markdown] answer=true\n{words}\n"
        f"\n# %% [markdown]\n# ## Two ★\n# ●●○ medium · 4 minutes · 1 point\n\n# %%\nx = 1\n"
        f"\n# %% [markdown]\n# ### Within two\n{words}\n"
        f"\n# %% [markdown]\n# ## Three\n{words}\n"
    )
    one = count(course.read())
    assert (one.stated, one.stated_starred, one.exercises) == (10, 5, 6)
    assert one.reading == pytest.approx(4, abs=0.3)
    assert one.starred == pytest.approx(4 + 2, abs=0.3)
