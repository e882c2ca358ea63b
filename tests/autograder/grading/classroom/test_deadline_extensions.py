"""More time for single students: given before or after they hand in, and no score until then."""

import csv
import shutil

import pytest
from nbgrader.api import Gradebook, SubmittedAssignment

from autograder.commands import cli
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.gradebook import Book
from tests.autograder.small_class import SLUG, configure, grade, hand_in, make_course


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory):
    """Cleo handed in a day late, which costs all points; Dora is enrolled and has not handed in."""
    course = make_course(tmp_path_factory.mktemp("course"))
    configure(course, 'c.LateSubmissionPlugin.penalty_method = "zero"')
    run(course, "due", SLUG, "2020-01-01T00:00+00:00")
    enrol(course, "cleo", "dora")
    late(course, "cleo")
    grade(course)
    return course


@pytest.fixture
def course(graded_once, tmp_path):
    return shutil.copytree(graded_once, tmp_path / "course", symlinks=True)


def run(course, *words):
    return cli.main([*words, "--course", str(course)])


def enrol(course, *students):
    with Gradebook(Course(course).db_url, "attention") as book:
        for student in students:
            book.update_or_create_student(student, first_name=student.title())


def late(course, student):
    hand_in(course, student)
    path = course / "class/submitted" / student / SLUG / "timestamp.txt"
    path.write_text("2020-01-02 12:00:00 UTC")


def counts(course):
    """The points that count, by student."""
    with Book(Course(course)) as book:
        return {student: one.score for student, one in book.counted(SLUG).items()}


def rows(course):
    """Students of whom the gradebook holds a submission, an empty one included."""
    with Gradebook(Course(course).db_url, "attention") as book:
        return {student for (student,) in book.db.query(SubmittedAssignment.student_id)}


@pytest.mark.long
def test_more_time_after_the_hand_in_takes_the_penalty_back(course, capsys):
    assert counts(course) == {"cleo": 0}
    assert run(course, "due", SLUG, "2020-01-03T12:00+00:00", "--student", "cleo") == 0
    said = capsys.readouterr().out
    assert "Wed 1 Jan 2020, 00:00 UTC" in said and "1 in the gradebook already" in said
    assert f"  {'cleo':<32}Fri 3 Jan 2020, 12:00 UTC\n" in said
    grade(course, "--regrade")
    assert counts(course) == {"cleo": 5}
    assert run(course, "due", SLUG, "usual", "--student", "cleo") == 0
    grade(course, "--regrade")
    assert counts(course) == {"cleo": 0}


def test_more_time_before_the_hand_in_is_nobodys_score(course, tmp_path, capsys):
    assert run(course, "due", SLUG, "2020-01-03T12:00+00:00", "--student", "dora") == 0
    assert "in the gradebook already" not in capsys.readouterr().out
    assert rows(course) == {"cleo", "dora"} and set(counts(course)) == {"cleo"}
    table = tmp_path / "grades.csv"
    assert run(course, "grades", "--zeros", "--to", str(table)) == 0
    with open(table, newline="", encoding="utf-8") as stream:
        assert {row["id"]: row[SLUG] for row in csv.DictReader(stream)} == {
            "cleo": "0",
            "dora": "0",
        }
    assert run(course, "grades", "--to", str(table)) == 0
    with open(table, newline="", encoding="utf-8") as stream:
        assert {row["id"]: row[SLUG] for row in csv.DictReader(stream)} == {"cleo": "0", "dora": ""}
    assert run(course, "report", "--to", str(tmp_path / "report")) == 0
    assert "dora" not in (tmp_path / "report" / "scores.csv").read_text(encoding="utf-8")


def test_who_hands_in_within_the_extension_loses_nothing(course):
    assert run(course, "due", SLUG, "2020-01-03T12:00+00:00", "--student", "dora") == 0
    late(course, "dora")
    grade(course)
    assert counts(course) == {"cleo": 0, "dora": 5}


def test_an_extension_taken_back_before_the_hand_in_leaves_nothing(course):
    assert run(course, "due", SLUG, "2020-01-03T12:00+00:00", "--student", "dora") == 0
    assert run(course, "due", SLUG, "usual", "--student", "dora") == 0
    assert rows(course) == {"cleo"}
    assert run(course, "due", SLUG, "usual", "--student", "dora") == 0  # nothing to take back


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["2020-01-03T12:00Z", "--student", "cloe"], "called 'cloe': probably 'cleo' is meant"),
        (["2020-01-03T12:00Z", "--student", "xyz"], "called 'xyz': enrol with autograder roster"),
        (["2019-12-01T12:00Z", "--student", "dora"], "is not after"),
        (["--student", "dora"], "--student needs a lesson and a time"),
        (["never", "--student", "dora"], "'never' is no time"),
    ],
)
def test_what_cannot_be_an_extension_is_one_sentence(course, capsys, words, said):
    assert run(course, "due", SLUG, *words, "--student", "cleo") == 1
    assert said in capsys.readouterr().err
    with Gradebook(Course(course).db_url, "attention") as book:
        assert book.find_submission(SLUG, "cleo").extension is None
    assert rows(course) == {"cleo"}


@pytest.mark.parametrize("called", ["Ada Lovelace", "Lovelace, Ada", "al@uni.example"])
def test_who_is_called_by_name_is_told_by_id(course, capsys, called):
    with Gradebook(Course(course).db_url, "attention") as book:
        names = {"first_name": "Ada", "last_name": "Lovelace", "email": "al@uni.example"}
        book.update_or_create_student("x17", **names)
    assert run(course, "due", SLUG, "2020-01-03T12:00Z", "--student", called) == 1
    assert f"called {called!r}: probably 'x17' is meant" in capsys.readouterr().err


def test_a_lesson_without_a_due_date_has_nothing_to_extend(course, capsys):
    assert run(course, "due", SLUG, "never") == 0
    assert run(course, "due", SLUG, "2020-01-03T12:00Z", "--student", "dora") == 1
    assert "has no due date to extend" in capsys.readouterr().err
