"""What counts is in nbgrader's gradebook: reports, console and kept reasons agree with it."""

import csv
import shutil
import sys

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI

from autograder.commands import cli
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.gradebook import Book
from tests.autograder.small_class import SLUG, WRONG, configure, grade, hand_in, kept, make_course

PENALTIES = """
from nbgrader.plugins import BasePlugin

class TenPercentADay(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return 0.1 * score * (1 + total_seconds_late // 86400)
"""


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory):
    """A course in which ada is right, ben wrong in softmax and cleo right but a day late."""
    course = make_course(tmp_path_factory.mktemp("course"))
    configure(course, 'c.AssignLatePenalties.plugin_class = "penalties.TenPercentADay"')
    (course / "penalties.py").write_text(PENALTIES)
    with Book(Course(course)) as book:
        book.register(SLUG)
    change(course, lambda book: book.update_or_create_assignment(SLUG, duedate="2020-01-01"))
    hand_in(course, "ada", "cleo")
    hand_in(course, "ben", answers=WRONG)
    (course / "class/submitted/cleo" / SLUG / "timestamp.txt").write_text("2020-01-02 12:00:00 UTC")
    course.joinpath("said.txt").write_text(grade(course)[0])
    return course


@pytest.fixture
def course(graded_once, tmp_path):
    return shutil.copytree(graded_once, tmp_path / "course", symlinks=True)


@pytest.fixture(autouse=True)
def other_plugins():
    """The next course's module of penalties is another one."""
    yield
    forget_module()


def forget_module():
    sys.modules.pop("penalties", None)


def change(course, how):
    with Gradebook(Course(course).db_url, "attention") as book:
        how(book)
        book.db.commit()


def by_hand(book):
    """What an instructor may do in the formgrader."""
    wrong = book.find_grade("check_softmax", SLUG, SLUG, "ben")
    wrong.manual_score, wrong.extra_credit, wrong.needs_manual_grade = 1.5, 0.25, False
    book.find_comment("softmax", SLUG, SLUG, "ben").manual_comment = "Half of it is right."
    book.find_grade("check_weighted_average", SLUG, SLUG, "ada").manual_score = 0


def totals(course):
    """What the gradebook says: points that count, by student."""
    with Gradebook(Course(course).db_url, "attention") as book:
        found = [book.find_submission_notebook(SLUG, SLUG, name) for name in ("ada", "ben", "cleo")]
        return {one.student.id: one.score - (one.late_submission_penalty or 0) for one in found}


def test_the_plugin_beside_the_configuration_takes_points_from_who_is_late(course):
    assert totals(course) == {"ada": 5, "ben": 3, "cleo": 4}
    said = (course / "said.txt").read_text()
    assert "cleo                 5/5  counts as 4\n" in said
    assert "ben                  3/5  lost: softmax\n" in said


def test_report_and_gradebook_agree_after_changes_by_hand(course, tmp_path):
    change(course, by_hand)
    assert totals(course) == {"ada": 3, "ben": 4.75, "cleo": 4}
    assert cli.main(["report", "--course", str(course), "--to", str(tmp_path)]) == 0
    with open(tmp_path / "scores.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for name, total in totals(course).items():
        assert sum(float(row["score"]) for row in rows if row["student"] == name) == total
    (ben,) = (row for row in rows if (row["student"], row["exercise"]) == ("ben", "softmax"))
    assert (ben["score"], ben["automatic"]) == ("1.75", "0.0")
    page = (tmp_path / "class.html").read_text(encoding="utf-8")
    assert "1.75 / 2*" in page and ">4 / 5*</td>" in page
    assert "weighted_average: changed by hand, from 2 to 0." in page


@pytest.mark.usefixtures("nbgraders_steps_here")
@pytest.mark.parametrize("way", ["autograder grade", "nbgrader autograde"])
def test_what_was_done_by_hand_survives_a_regrade_and_a_new_hand_in(course, way, monkeypatch):
    change(course, by_hand)
    monkeypatch.syspath_prepend(course)  # as nbgrader's commands do
    api = NbGraderAPI(config=Course(course).config)

    def again():
        if way == "autograder grade":
            return grade(course, "--regrade")[0]
        assert api.autograde(SLUG, "ben", force=True, create=False)["success"]
        return ""

    said = again()
    assert totals(course) == {"ada": 3, "ben": 4.75, "cleo": 4}
    assert not said or "ben                  3/5  counts as 4.75; lost: softmax" in said
    hand_in(course, "ben")
    again()
    with Gradebook(Course(course).db_url, "attention") as book:
        changed = book.find_grade("check_softmax", SLUG, SLUG, "ben")
        assert (changed.auto_score, changed.score, changed.extra_credit) == (2, 1.75, 0.25)
        assert changed.needs_manual_grade  # nbgrader's own rule
        assert not book.find_grade("check_weighted_average", SLUG, SLUG, "ben").needs_manual_grade
        comment = book.find_comment("softmax", SLUG, SLUG, "ben")
        assert comment.comment == "Half of it is right."


def test_a_plugin_that_fails_stops_with_a_sentence_and_the_next_run_goes_on(course):
    (course / "penalties.py").write_text(PENALTIES.replace("return", "raise ValueError('oh')  #"))
    forget_module()
    _, said, status = grade(course, "--regrade", check=False)
    assert status == 1
    assert "the late penalty of cleo cannot be worked out (ValueError: oh)" in said
    assert "plugin_class in nbgrader_config.py" in said
    assert kept(course, "ada") and kept(course, "cleo") is None
    (course / "penalties.py").write_text(PENALTIES.replace("0.1", "0.2"))
    forget_module()
    grade(course)
    assert totals(course)["cleo"] == 3
