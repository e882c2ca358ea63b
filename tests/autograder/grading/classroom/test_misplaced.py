"""Work in the wrong place is told of; who is not of the roster is graded."""

import os
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI

from autograder import ROOT, CourseError
from autograder.commands import cli
from autograder.grading import nbgrader_steps
from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.misplaced import misplaced
from tests.autograder.small_class import SLUG, grade, hand_in, kept, make_course, scores

NAME = f"{SLUG}.ipynb"


@pytest.fixture
def course(tmp_path):
    return make_course(tmp_path)


@pytest.fixture
def submitted(tmp_path):
    """Write files below class/submitted/; returns what is told of them."""
    course = tmp_path
    (course / "solutions").mkdir()
    (course / "solutions" / SLUG).symlink_to(ROOT / "solutions" / SLUG)

    def write(*names, **filters):
        for name in names:
            path = course / "class" / "submitted" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
        return list(misplaced(Course(course), **filters))

    return write


def test_what_is_in_its_place_is_not_told_of(submitted):
    own = [f"ada/{SLUG}/{NAME}", f"ada/{SLUG}/old.ipynb", f"ben/{SLUG}/{SLUG} (1).ipynb"]
    assert submitted(*own, f"ada/{SLUG}/.ipynb_checkpoints/x.ipynb", "ada/note.txt") == []


@pytest.mark.parametrize(
    "name",
    [
        NAME,
        "all.zip",
        f"ada/{NAME}",
        f"ada/week 1/{NAME}",
        f"ada/{SLUG}/final.ipynb",
        f"ada/{SLUG}/{SLUG}/{NAME}",
        f"{SLUG}/ada/{NAME}",
    ],
)
def test_what_lies_elsewhere_is_told_of(submitted, name):
    (said,) = submitted(name)
    where = "put it into class/submitted/STUDENT/LESSON/LESSON.ipynb, or give the folder to"
    assert said.startswith(f"class/submitted/{name} lies where no work is looked for: {where}")


def test_a_place_is_told_of_once(submitted):
    (said,) = submitted(*(f"ada/{SLUG}/{number}/my.ipynb" for number in range(9)))
    assert said.startswith(f"class/submitted/ada/{SLUG}/0/my.ipynb")


def test_only_those_asked_for(submitted):
    assert submitted(f"ada/{NAME}", f"ben/{NAME}", students=["ben"]) != []
    assert len(submitted(students=["ben"])) == 1
    assert submitted(students=["cleo"]) == []


def test_names_that_are_none_are_told_of(submitted):
    told = submitted(f"\x1bdora/{SLUG}/{NAME}", f".eve/{SLUG}/{NAME}")
    assert sum("is in no student's folder, for it" in one for one in told) == 2
    assert any("holds characters that are no text: rename 'dora'" in one for one in told)
    assert any("begins with a dot" in one for one in told)


def test_the_exit_status_tells_of_work_in_a_wrong_place(course):
    work(course, f"ada/{NAME}")
    hand_in(course, "ben")
    _, told, status = grade(course, check=False)
    assert (status, scores(course)) == (1, {"ben": 5})
    assert f"not graded: class/submitted/ada/{NAME} lies where no work is looked for" in told


@pytest.mark.usefixtures("nbgraders_steps_here")
def test_formgraders_button_gives_who_has_no_notebook_0_and_a_reason(course):
    (course / "class" / "submitted" / "cleo" / SLUG).mkdir(parents=True)
    work(course, f"dora/{SLUG}/final.ipynb", f"eve/{SLUG}/{SLUG}-Copy1.ipynb")
    api = NbGraderAPI(config=Course(course).config)
    for student in ("cleo", "dora", "eve"):
        done = api.autograde(SLUG, student)
        assert done["success"] and "error" not in done, done
    assert scores(course) == {"cleo": 0, "dora": 0, "eve": 5}
    assert "only final.ipynb: it must keep its name" in kept(course, "dora").problem
    for one in kept(course, "cleo").exercises:
        assert one.score == 0 and f"there is no {NAME} in the submission" in one.reason


@pytest.mark.parametrize("kind", ["a file", "a folder"])
def test_a_students_own_reasons_are_not_taken_for_the_graders(course, monkeypatch, kind):
    """nbgrader copies them; were it killed then, they would say that all is graded."""
    hand_in(course, "ada")
    own = course / "class" / "submitted" / "ada" / SLUG / "reasons.json"
    if kind == "a file":
        own.write_text("{}")
    else:
        own.mkdir()
        (own / "more").write_text("")
    seen = []

    def run(step, nb, resources):
        folder = Course(course).autograded(Handed(SLUG, "ada")).parent
        seen.append((folder / "reasons.json").exists())
        raise CourseError("killed")

    monkeypatch.setattr(nbgrader_steps.RunInSandbox, "preprocess", run)
    NbGraderAPI(config=Course(course).config).autograde(SLUG, "ada")
    assert seen == [False]


def test_a_grading_that_fails_leaves_the_environment_as_it_was(course, monkeypatch):
    """formgrader's server hands it on to every notebook, whose trainings would be cut short."""
    hand_in(course, "ada")

    def run(step, nb, resources):
        assert "NBGRADER_EXECUTION" in os.environ
        raise CourseError("killed")

    monkeypatch.setattr(nbgrader_steps.RunInSandbox, "preprocess", run)
    done = NbGraderAPI(config=Course(course).config).autograde(SLUG, "ada")
    assert not done["success"] and "killed" in done["log"]
    assert "NBGRADER_EXECUTION" not in os.environ


@pytest.mark.long
def test_nbgraders_own_command_says_where_nobody_handed_in(course):
    shutil.copy(ROOT / "nbgrader_config.py", course)
    (course / "class" / "gradebook.db").unlink()
    program = Path(sys.executable).with_name("nbgrader")

    def autograde():
        command = [program, "autograde", SLUG]
        done = subprocess.run(command, cwd=course, capture_output=True, text=True)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stderr

    status, said = autograde()
    assert status == 1
    assert f"class/submitted holds no submission of {SLUG} that can be graded" in said
    hand_in(course, "ada")
    assert autograde()[0] == 0
    assert scores(course) == {"ada": 5}  # of a lesson that no other command has registered


def test_a_name_of_several_lines_is_told_in_one(submitted):
    (told,) = submitted(f"ada/{SLUG}/\nnot graded: everybody\x1b[2J.ipynb")
    assert "\n" not in told and "\x1b" not in told


def work(course, *names, lesson=SLUG):
    """Right answers to the lesson, below class/submitted/, as notebooks that say which it is."""
    text = nbformat.writes(sample_class.handed_in(SLUG))
    for name in names:
        path = course / "class" / "submitted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_course_that_is_not_there_is_not_made(tmp_path):
    _, told, status = grade(tmp_path / "typo", check=False)
    assert status == 1 and "there is no folder" in told
    assert not (tmp_path / "typo").exists()


def test_who_is_not_of_the_roster_is_graded_and_told_of(course, tmp_path):
    with Gradebook(Course(course).db_url, "attention") as book:
        for student in ("josé", "zoe"):
            book.update_or_create_student(student, first_name=student)
    hand_in(course, unicodedata.normalize("NFD", "josé"), "\u3000田中 太郎")
    said, told, status = grade(course, check=False)
    assert status == 1 and told.count("graded, but no student of the roster is called") == 2
    assert "probably 'josé' is meant" in told
    assert f"2 of the roster handed in nothing of {SLUG}." in said and "zoe" not in said
    assert len(scores(course)) == 2
    assert cli.main(["report", "--course", str(course)]) == 0
    folder = course / "class" / "report"
    assert "2 of the roster: josé, zoe" in (folder / "class.html").read_text()
