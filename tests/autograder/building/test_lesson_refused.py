"""What is wrong in a lesson's source is refused with the file, the line and what to do."""

import pytest

from autograder.building.source import SourceError
from tests.autograder import mini_files


def line_of(course, text):
    """Number of the first line of the source that begins with ``text``."""
    rows = course.source.read_text(encoding="utf-8").split("\n")
    return next(number for number, row in enumerate(rows, 1) if row.startswith(text))


def refusal(course):
    """(file, line, words) of the error that reading must give."""
    with pytest.raises(SourceError) as raised:
        course.read()
    place, line, words = str(raised.value).split(":", 2)
    assert "\n" not in words
    return place.replace(str(course.root) + "/", ""), int(line), words.strip()


# wrong source: (what to replace, by what, the line that begins with, words of the refusal)

MARKERS = {
    "misspelt": ('exercise="doubled"', 'exercice="doubled"', "unknown marker 'exercice=\"doubled"),
    "capital": ('exercise="doubled"', 'Exercise="doubled"', "unknown marker 'Exercise="),
    "title": ("demo=true", "demo", "unknown marker 'demo'; write one of: [markdown], [markdown] "),
    "tags": ("demo=true", 'tags=["demo"]', "unknown marker 'tags="),
    "title and marker": ("demo=true", "Plot demo=true", "unknown marker 'Plot demo=true'"),
    "two markers": ('given="halved"', 'given="halved" demo=true', "unknown marker"),
    "another attribute": ('given="halved"', 'given="halved" tags="a"', "unknown marker"),
    "no quotes": ('given="halved"', "given=halved", "unknown marker 'given=halved'"),
    "one quote": ('given="halved"', 'given="halved', "unknown marker"),
    "raw": ("demo=true", "[raw]", "unknown marker '[raw]'"),
    "no such cell": ("demo=true", "[md]", "write only '# %% [markdown]'"),
    "demo=false": ("demo=true", "demo=false", "write demo=true"),
    "demo as text": ("demo=true", 'demo="true"', "write demo=true"),
    "no name": ('given="halved"', 'given=""', 'write given="name" with the name of a function'),
    "no identifier": ('given="halved"', 'given="2 x"', 'write given="name"'),
    "not ascii": ('given="halved"', 'given="halbé"', 'write given="name"'),
    "name=true": ('given="halved"', "given=true", 'write given="name"'),
    "no points": (" points=2", "", 'points=N belongs to a check: check="name" points=2'),
    "zero points": ("points=2", "points=0", "points must be a whole number above 0, not 0"),
    "negative": ("points=2", "points=-1", "points must be a whole number above 0, not -1"),
    "half points": ("points=2", "points=1.5", "points must be a whole number above 0, not 1.5"),
    "text points": ("points=2", 'points="2"', "points must be a whole number above 0, not '2'"),
    "word points": ("points=2", "points=two", "unknown marker"),
    "points=true": ("points=2", "points=true", "points must be a whole number above 0, not True"),
    "comma": ('check="doubled" points', 'check="doubled", points', 'write check="name"'),
    "points of given": ('given="halved"', 'given="halved" points=1', "points=N belongs to a check"),
    "points of code": ("demo=true", "points=1", "points=N belongs to a check"),
    "unknown exercise": (
        'exercise="doubled"',
        'exercise="dubbled"',
        "exercise 'dubbled' is not in attention/mini.py; there are: doubled, halved, Scale",
    ),
    "unknown check": (
        'check="doubled"',
        'check="dubbled"',
        "check 'dubbled' is not in checks/mini.py; there are: doubled, Scale",
    ),
    "unknown mistake": (
        'given="halved"',
        'broken="halved"',
        "broken 'halved' is not in mistakes/mini.py; there are: adds_two, triples, forgets, ",
    ),
    "unknown given": (
        'given="halved"',
        'given="quartered"',
        "given 'quartered' is not in attention/mini.py; there are: doubled, halved, Scale",
    ),
}


@pytest.mark.parametrize("fault", MARKERS)
def test_bad_markers_are_refused(course, fault):
    old, new, words = MARKERS[fault]
    course.edit(course.source, old, new)
    after = course.source.read_text(encoding="utf-8").split("\n")
    pairs = zip(mini_files.SOURCE.split("\n"), after, strict=True)
    changed = next(number for number, (old, new) in enumerate(pairs, 1) if old != new)
    place, line, said = refusal(course)
    assert (place, line) == ("source/00_mini.py", changed)
    assert said.startswith(words)


@pytest.mark.parametrize(
    "row", ['#%% exercise="x"', '# %%exercise="x"', "# %%% part", "    # %%", "# In[3]:", "#  %%"]
)
def test_almost_markers_are_refused(course, row):
    course.edit(course.source, "import torch\n", f"import torch\nif torch:\n    pass\n{row}\n")
    place, line, said = refusal(course)
    assert (place, line) == ("source/00_mini.py", line_of(course, row))
    assert said == f"a cell begins with '# %%' and one space, not with {row!r}"


def test_a_marker_in_a_string_is_refused(course):
    course.edit(course.source, "import torch\n", 'import torch\n\ns = """\n# %% demo=true\n"""\n')
    assert refusal(course)[1:] == (
        line_of(course, "# %% demo=true"),
        "a line of a string looks like a new cell: # %% demo=true; rewrite it",
    )


BROKEN = """# %% broken="adds_two"
from autograder.mistakes.mini import adds_two

"""


def test_a_wrong_answer_that_is_shown_stands_by_itself(course):
    course.edit(course.source, '# %% given="halved"', BROKEN + '# %% given="halved"')
    course.read()
    course.edit(course.mistakes, "return values + 2", "return values + TWO")
    assert refusal(course) == (
        "source/00_mini.py",
        line_of(course, "# %% broken"),
        "adds_two uses TWO, which the notebook does not import; write it out in "
        "autograder/mistakes/mini.py",
    )


@pytest.mark.parametrize("attribute", ["answer=false", 'answer="yes"', "answer=true title=true"])
def test_an_answer_is_marked_in_one_way(course, attribute):
    course.edit(course.source, "# %% [markdown]\n# The end.", f"# %% [markdown] {attribute}\n# The")
    assert "[markdown] answer=true" in refusal(course)[2]


TEXT = "# %% [markdown]\n# Text.\n\n"
CHECK = '# %% check="doubled" points=2\ncheck.doubled(doubled)\n\n'
EXERCISE = '# %% exercise="doubled"\nfrom attention.mini import doubled\n\n'


@pytest.mark.parametrize(
    "again", [EXERCISE + CHECK, '# %% given="doubled"\nfrom attention.mini import doubled\n\n']
)
def test_a_duplicate_name(course, again):
    first = line_of(course, "# %% exercise")
    course.edit(course.source, CHECK, CHECK + again)
    place, line, said = refusal(course)
    assert line > first
    assert said == f"'doubled' is already defined in line {first}; remove one"


@pytest.mark.parametrize(
    ("old", "new", "row", "words"),
    [
        ("by hand", "by\nhand", 'print("by', "syntax error: unterminated string literal"),
        ("import torch\n", "import torch\nx = = 1\n", "x = =", "syntax error: invalid syntax"),
        ("import torch\n", "%load_ext x\n", "%load", "syntax error: invalid syntax"),
        ("# The end.", "The end.", "The end", "syntax error: "),
        ("# The end.", "# The end.\nx = 1", "x = 1", "every line of a text cell begins with '# '"),
        ("# # 00", "# 00", "# %% [markdown]", "the first cell must start with '# NN · title?'"),
        ("# %% [markdown]\n# # 00", "# # 00", "# # 00", "the file must begin with '# %% [markd"),
        ("# %% [markdown]\n# # 00", "# %%\n# # 00", "# %%", "the file must begin with '# %% [ma"),
        ("# %% [markdown]\n# ## D", "# %% [markdown] Title\n# ## D", "# %% [markdown] T", "write"),
        ("figures/boxes.svg", "figures/box.svg", "# %%", "there is no source/figures/box.svg; "),
        ("![two boxes and\n# an arrow]", "![ ]", "# %%", "figures/boxes.svg has no words for"),
        (CHECK, "", "# %% exercise", "exercise 'doubled' has no check right after it; add a cell"),
        (CHECK, TEXT + CHECK, "# %% exercise", "exercise 'doubled' has no check right after it"),
        (EXERCISE, "", "# %% check", "check 'doubled' does not follow its exercise; put it right"),
        ("import doubled", "import halved", "# %% exercise", "the cell of exercise 'doubled' must"),
        ("import halved", "import halved\nx = 1", "# %% given", "the cell of given 'halved' must"),
        ("check.doubled(doubled)", "", "# %% check", "the cell of check 'doubled' must be: check"),
    ],
)
def test_other_faults_of_the_source(course, old, new, row, words):
    course.edit(course.source, old, new)
    place, line, said = refusal(course)
    assert (place, line) == ("source/00_mini.py", line_of(course, row))
    assert said.startswith(words)


@pytest.mark.parametrize("text", [b"", b"\n", b"x = 1\n"])
def test_files_that_are_no_lesson(course, text):
    course.source.write_bytes(text)
    assert refusal(course)[1:] == (1, "the file must begin with '# %% [markdown]' and the title")


def test_a_file_that_is_no_text(course):
    course.source.write_bytes(mini_files.SOURCE.encode() + b"# \xff\n")
    assert refusal(course)[1:] == (
        mini_files.SOURCE.count("\n") + 1,
        "this is not UTF-8 text; save the file as UTF-8",
    )
    course.source.write_bytes(mini_files.SOURCE.encode() + b"# \0\n")
    assert refusal(course)[2].startswith("syntax error: source code ")


@pytest.mark.parametrize("part", ["library", "checks"])
def test_faults_of_the_other_files(course, part):
    path = getattr(course, part)
    name = f"{path.parent.relative_to(course.root)}/mini.py"
    path.write_text(path.read_text() + "def (:\n")
    place, line, said = refusal(course)
    assert (place, line) == (name, path.read_text().count("\n"))
    assert said.startswith("syntax error: ")
    path.unlink()
    assert refusal(course) == (name, 1, "this file does not exist; a lesson needs it")
