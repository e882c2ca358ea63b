"""Reading a lesson's source: what is right is read, what is wrong is refused with file and line."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.building.lesson import UnknownLesson, find, read
from tests.autograder import mini

# right source


def test_a_lesson_is_read(course):
    lesson = course.read()
    assert (lesson.slug, lesson.name) == ("00_mini", "mini")
    assert lesson.title == "00 · How small can a lesson be?"
    assert lesson.exercises == {"doubled": 2, "Scale": 3}
    assert lesson.library == course.library
    assert lesson.checks == course.checks
    assert lesson.mistakes == course.mistakes
    kinds = [(cell.kind, cell.name, cell.points) for cell in lesson.cells]
    assert kinds == [
        ("markdown", "", 0),
        ("code", "", 0),
        ("markdown", "", 0),
        ("exercise", "doubled", 0),
        ("check", "doubled", 2),
        ("given", "halved", 0),
        ("demo", "", 0),
        ("exercise", "Scale", 0),
        ("check", "Scale", 3),
        ("markdown", "", 0),
    ]
    rows = course.source.read_text(encoding="utf-8").split("\n")
    assert all(rows[cell.line - 1].startswith("# %%") for cell in lesson.cells)
    assert lesson.cells[0].source.split("\n")[1] == "Text with `code`, and a drawing:"


PRINTABLE = st.text(st.characters(categories=["L", "N", "P", "S"], include_characters=" "))
ROW = PRINTABLE.map(str.strip).filter(lambda row: row and not row.startswith("%%"))
CELLS = st.lists(
    st.tuples(st.booleans(), st.lists(ROW, min_size=1, max_size=4)), min_size=1, max_size=4
)


@given(CELLS)
def test_code_and_text_arrive_as_they_were_written(tmp_path_factory, cells):
    """Comments that look like magics, and whatever else a comment may hold."""
    course = mini.Course(tmp_path_factory.mktemp("source")).write()
    source, written = ["# %% [markdown]", "# # Title"], []
    for is_text, rows in cells:
        source += ["", "# %% [markdown]" if is_text else "# %%", *(f"# {row}" for row in rows)]
        written.append("\n".join(row if is_text else f"# {row}" for row in rows))
    course.source.write_text("\n".join(source) + "\n", encoding="utf-8")
    assert [cell.source for cell in course.read().cells[1:]] == written


@pytest.mark.parametrize(
    "row", ["# why?", "# %matplotlib inline", "# !ls", "# cat x", "# ?print", "x = 1  # %%", "#%"]
)
def test_comments_are_never_turned_into_magics(course, row):
    course.edit(course.source, "import torch\n", f"import torch\n{row}\n")
    code = course.read().cells[1].source
    assert row in code.split("\n")
    ast.parse(code)


def test_marks_may_be_given_with_either_quotes(course):
    course.edit(course.source, '# %% given="halved"', "# %% given='halved'")
    assert course.read().cells[5].name == "halved"


# finding lessons


@pytest.fixture
def lessons(tmp_path):
    """A course of two lessons, and files that are none."""
    folder = tmp_path / "source"
    folder.mkdir()
    for name in ("01_one.py", "10_ten.py", "notes.py", "1_short.py", "02_two.txt"):
        (folder / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "1",
        "01",
        "one",
        "01_one",
        "01_one.ipynb",
        "source/01_one.py",
        "lessons/01_one/01_one.ipynb",
        "solutions/01_one/",
    ],
)
def test_a_lesson_answers_to_many_names(lessons, name):
    assert [path.stem for path in find([name], lessons)] == ["01_one"]


def test_all_lessons_in_order_and_each_once(lessons):
    assert [path.stem for path in find((), lessons)] == ["01_one", "10_ten"]
    assert [path.stem for path in find(["10", "one", "ten"], lessons)] == ["01_one", "10_ten"]


@pytest.mark.parametrize("name", ["2", "notes", "", "one_", "²", "1_short", "ONE", ".."])
def test_an_unknown_lesson_is_refused(lessons, name):
    with pytest.raises(UnknownLesson) as raised:
        find([name], lessons)
    assert str(raised.value) == f"no lesson is called {name!r}; there are: 01_one, 10_ten"


def test_a_course_without_lessons(tmp_path):
    for names in ((), ("01",)):
        with pytest.raises(UnknownLesson, match="there is no lesson: source/ holds no file like"):
            find(names, tmp_path)


def test_the_lessons_of_this_course_are_read():
    assert all(read(path).exercises for path in find())
