"""How long lessons take: what they state is what is counted."""

import pytest

from autograder.building import minutes
from autograder.building.lesson import find, read
from autograder.building.source import SourceError

TEXT = """# %% [markdown]
# # 00 · How small can a lesson be?
# **Time** 10 minutes, ★ 5 more · **Points** 2
"""


@pytest.mark.parametrize("path", find(), ids=lambda path: path.stem)
def test_what_is_stated_is_what_is_counted(path):
    one = minutes.count(read(path))
    assert abs(one.stated - one.core) <= 8, f"{one.core:.0f} minutes are counted"
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
    one = minutes.count(course.read())
    assert (one.stated, one.stated_starred, one.exercises) == (10, 5, 6)
    assert one.reading == pytest.approx(4, abs=0.3)
    assert one.starred == pytest.approx(4 + 2, abs=0.3)


def test_a_lesson_without_its_time_is_refused(course):
    with pytest.raises(SourceError, match=r"states no time; write: \*\*Time\*\* 90 minutes"):
        minutes.count(course.read())
