"""The solved notebook that is made of a source and the library."""

import base64
import re

import pytest

from autograder.building.generate_assignment import release
from autograder.building.notebook import make
from tests.autograder import mini_files


def by_id(notebook):
    return {cell.id: cell for cell in notebook.cells}


def test_cells_are_marked_for_nbgrader(course):
    cells = by_id(make(course.read()))
    common = {"cell_type": "code", "schema_version": 3, "task": False}
    assert cells["exercise-doubled"].metadata.nbgrader == {
        **common,
        "grade": False,
        "grade_id": "doubled",
        "locked": False,
        "solution": True,
    }
    assert cells["check-doubled"].metadata.nbgrader == {
        **common,
        "grade": True,
        "grade_id": "check_doubled",
        "locked": True,
        "points": 2,
        "solution": False,
    }
    assert cells["given-halved"].metadata.nbgrader == {
        **common,
        "grade": False,
        "grade_id": "halved",
        "locked": True,
        "solution": False,
    }
    unmarked = [cell.metadata for cell in cells.values() if "nbgrader" not in cell.metadata]
    demos = [metadata.autograder for metadata in unmarked if "autograder" in metadata]
    assert demos == [{"demo": True}]


def test_code_comes_from_the_library(course):
    cells = by_id(make(course.read()))
    assert cells["exercise-doubled"].source.startswith("@torch.enable_grad()\ndef doubled(values):")
    assert "### BEGIN SOLUTION doubled: write about 2 lines" in cells["exercise-doubled"].source
    assert "SOLUTION" not in cells["given-halved"].source
    assert cells["given-halved"].source.startswith("def halved(values):")
    assert cells["check-doubled"].source == "check.doubled(doubled)"
    assert "import doubled" not in "".join(cell.source for cell in cells.values())


def test_drawings_travel_within_the_notebook(course):
    first = make(course.read()).cells[0]
    assert "![two boxes and\nan arrow][boxes]" in first.source
    found = re.search(r"^\[boxes\]: data:image/svg\+xml;base64,(\S+)$", first.source, re.MULTILINE)
    assert base64.b64decode(found[1]).decode() == mini_files.FIGURE


# cell ids


def identities(course):
    return {cell.source: cell.id for cell in make(course.read()).cells}


def test_long_names_keep_their_ids_apart(course):
    name = "d" * 50
    for path in (course.source, course.library, course.checks):
        path.write_text(path.read_text().replace("doubled", name))
    ids = [cell.id for cell in make(course.read()).cells]
    assert len(set(ids)) == len(ids)
    assert max(map(len, ids)) <= 64


@pytest.mark.parametrize("text", ["# %%\nx = 1\n\n", "# %% [markdown]\n# Words.\n\n"])
def test_adding_a_cell_keeps_the_ids_of_the_others(course, text):
    before = identities(course)
    course.edit(course.source, "# %% [markdown]\n# ## D", f"{text}# %% [markdown]\n# ## D")
    after = identities(course)
    assert len(after) == len(before) + 1
    assert {source: after[source] for source in before} == before


# the digest: when must the outputs be made anew?


def digest(course):
    return make(course.read()).metadata.autograder.digest


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("source", "by hand", "with care"),
        ("library", "factor = 2.0", "factor = 4.0 / 2.0"),
        ("library", "values / 2", "values * 0.5"),
    ],
)
def test_the_digest_changes_with_all_that_outputs_depend_on(course, part, old, new):
    before = digest(course)
    assert digest(course) == before
    course.edit(getattr(course, part), old, new)
    assert digest(course) != before


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("checks", "some values are not", "a value is not"),
        ("mistakes", "Two is added", "Two was added"),
    ],
)
@pytest.mark.parametrize("shown", [True, False])
def test_outputs_depend_on_checks_only_where_they_show_what_one_says(course, part, old, new, shown):
    if shown:
        course.edit(
            course.source, "print(halved(", "check.preview('doubled', halved)\nprint(halved("
        )
    before = digest(course)
    course.edit(getattr(course, part), old, new)
    assert (digest(course) != before) == shown


@pytest.mark.parametrize(
    "statement",
    [
        "from attention import helper",
        "from attention.helper import x",
        "import attention.helper",
        "import math, attention.helper as h",
        "from attention.bridge import y",
    ],
)
def test_the_digest_follows_imports(course, statement):
    (course.root / "attention" / "helper.py").write_text("x = 1\n")
    (course.root / "attention" / "bridge.py").write_text(
        "from attention.helper import x\n\ny = x\n"
    )
    (course.root / "attention" / "other.py").write_text("z = 1\n")
    course.edit(course.source, "import torch\n", f"{statement}\nimport torch\n")
    before = digest(course)
    (course.root / "attention" / "other.py").write_text("z = 2\n")
    assert digest(course) == before
    (course.root / "attention" / "helper.py").write_text("x = 2\n")
    assert digest(course) != before


def test_the_digest_knows_the_order_of_cells(course):
    one, other = "# %%\nprint(1)\n\n", "# %%\nprint(2)\n\n"
    course.edit(course.source, "# %% [markdown]\n# ## D", f"{one}{other}# %% [markdown]\n# ## D")
    before = digest(course)
    course.edit(course.source, one + other, other + one)
    assert digest(course) != before


def test_a_wrong_answer_is_shown_without_its_hint_and_cannot_be_edited(course):
    marker = '# %% broken="adds_two"\nfrom autograder.mistakes.mini import adds_two\n\n'
    course.edit(course.source, '# %% given="halved"', f'{marker}# %% given="halved"')
    shown = by_id(make(course.read()))["broken-adds-two"]
    assert shown.source == "def adds_two(values):\n    return values + 2"
    assert shown.metadata.nbgrader.locked
    assert not shown.metadata.nbgrader.grade


def test_an_answer_stands_in_the_solved_notebook_only(course):
    course.edit(course.source, "# %% [markdown]\n# The end.", "# %% [markdown] answer=true\n# Yes.")
    solved = make(course.read())
    assert [cell.source for cell in solved.cells][-1] == "Yes."
    released = release(solved, mini_files.SLUG)
    assert "Yes." not in [cell.source for cell in released.cells]
    assert len(released.cells) == len(solved.cells) - 1
