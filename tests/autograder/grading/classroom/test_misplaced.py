"""Work in the wrong place is told of; a copy that a browser renamed is graded as what it is."""

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
from autograder.grading.classroom.misplaced import fix, misplaced
from autograder.grading.classroom.unexpected_names import strangers
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
    ("name", "words"),
    [
        (NAME, f"probably {SLUG} is meant: put it into class/submitted/STUDENT/LESSON/"),
        ("all.zip", "lies in no student's folder"),
        (f"ada/{NAME}", "lies in no lesson's folder"),
        ("ada/homework.zip", "lies in no lesson's folder"),
        (f"ada/week 1/{NAME}", "holds work, but no lesson is called so"),
        (f"ada/{SLUG}/final.ipynb", f"holds final.ipynb, but no {NAME}: rename it"),
        (f"ada/{SLUG}/{SLUG}.zip", f"holds {SLUG}.zip, but no {NAME}"),
    ],
)
def test_what_lies_elsewhere_is_told_of(submitted, name, words):
    (said,) = submitted(name)
    assert said.startswith("class/submitted/") and words in said


def test_only_those_asked_for(submitted):
    assert submitted(f"ada/{NAME}", f"ben/{NAME}", students=["ben"]) != []
    assert len(submitted(students=["ben"])) == 1
    assert submitted(students=["cleo"]) == []


def test_two_copies_are_no_choice(submitted):
    (said,) = submitted(f"ada/{SLUG}/{SLUG} (1).ipynb", f"ada/{SLUG}/{SLUG} (2).ipynb")
    assert f"{SLUG} (1).ipynb, {SLUG} (2).ipynb" in said


def rename(course, student, name):
    path = sample_class.submit(sample_class.handed_in(SLUG), course, student, SLUG)
    return path.rename(path.with_name(name))


def test_a_renamed_copy_is_graded_and_the_exit_status_tells_of_the_rest(course):
    rename(course, "ada", f"{SLUG} (1).ipynb")
    said, told, status = grade(course, check=False)
    assert (status, told.count("not graded")) == (0, 0)
    assert scores(course) == {"ada": 5}
    (course / "class" / "submitted" / "ben").mkdir()
    rename(course, "ben", NAME).rename(course / "class" / "submitted" / "ben" / NAME)
    (course / "class" / "submitted" / "ben" / SLUG).rmdir()
    said, told, status = grade(course, check=False)
    assert status == 1 and f"not graded: class/submitted/ben/{NAME} lies in no lesson's" in told


@pytest.mark.usefixtures("nbgraders_steps_here")
def test_nbgraders_own_autograde_lets_it_through(course):
    copied = rename(course, "ada", f"{SLUG}-Copy1.ipynb")
    rename(course, "ben", "final.ipynb")
    (course / "class" / "submitted" / "cleo" / SLUG).mkdir(parents=True)
    api = NbGraderAPI(config=Course(course).config)
    done = api.autograde(SLUG, "*")
    assert done["success"], done
    assert scores(course) == {"ada": 5, "ben": 0, "cleo": 0} and copied.exists()
    assert Course(course).autograded(Handed(SLUG, "ada")).exists()
    assert "only final.ipynb: it must keep its name" in kept(course, "ben").problem
    assert f"there is no {NAME}" in kept(course, "cleo").problem
    assert "ben/00_getting_started/ holds final.ipynb" in done["log"]


@pytest.mark.usefixtures("nbgraders_steps_here")
def test_formgraders_button_gives_who_has_no_notebook_0_and_a_reason(course):
    (course / "class" / "submitted" / "cleo" / SLUG).mkdir(parents=True)
    work(course, f"dora/{SLUG}/final.ipynb")
    api = NbGraderAPI(config=Course(course).config)
    for student in ("cleo", "dora"):
        done = api.autograde(SLUG, student)
        assert done["success"] and "error" not in done, done
        assert (f"{SLUG}/ holds final.ipynb, but" in done["log"]) == (student == "dora")
    assert scores(course) == {"cleo": 0, "dora": 0}
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
def test_nbgraders_own_command_says_the_same_and_fails(course):
    shutil.copy(ROOT / "nbgrader_config.py", course)
    (course / "class" / "gradebook.db").unlink()
    program = Path(sys.executable).with_name("nbgrader")

    def autograde():
        command = [program, "autograde", SLUG]
        done = subprocess.run(command, cwd=course, capture_output=True, text=True)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stderr

    work(course, f"ada/{NAME}")
    status, said = autograde()
    (told,) = misplaced(Course(course))
    assert status == 1 and f"not graded: {told}" in said
    assert f"class/submitted holds no submission of {SLUG} that can be graded" in said
    list(fix(Course(course)))
    assert autograde()[0] == 0
    assert scores(course) == {"ada": 5}  # of a lesson that no other command has registered
    work(course, f"ben/{NAME}")
    status, said = autograde()
    (told,) = misplaced(Course(course))
    assert status == 1 and said.rstrip().endswith(f"not graded: {told}")


def test_a_name_of_several_lines_is_told_in_one(submitted):
    (told,) = submitted(f"ada/{SLUG}/\nnot graded: everybody\x1b[2J.ipynb")
    assert "\n" not in told and "\x1b" not in told
    assert told.endswith("rename it, and grade again")


def work(course, *names, lesson=SLUG):
    """Right answers to the lesson, below class/submitted/, as notebooks that say which it is."""
    text = nbformat.writes(sample_class.handed_in(SLUG))
    for name in names:
        path = course / "class" / "submitted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


CERTAIN = [
    f"ada/{NAME}",
    f"ada/{SLUG.upper()}/{NAME}",
    f"ada/{SLUG} /{NAME}",
    f"ada/00/{NAME}",
    f"ada/homework/{NAME}",
    "ada/0_geting_startd/solution.ipynb",
    f"ada/{SLUG}/final.ipynb",
    f"ada/{SLUG}/{SLUG}/{NAME}",
    f"ada/{SLUG}/a/b/mine.ipynb",
]


@pytest.mark.parametrize("name", CERTAIN)
def test_what_is_certain_is_moved_once(course, name):
    work(course, name)
    one, target = Course(course), course / "class" / "submitted" / "ada" / SLUG / NAME
    (told,) = misplaced(one)
    assert f"surely is class/submitted/ada/{SLUG}/{NAME}, and autograder grade --fix" in told
    content = (course / "class" / "submitted" / name).read_bytes()
    (moved,) = fix(one)
    assert moved.endswith(f"is now class/submitted/ada/{SLUG}/{NAME}")
    assert target.read_bytes() == content
    assert list(misplaced(one)) == list(fix(one)) == []


def test_notes_that_are_called_like_the_lesson_stay_where_they_are(course):
    path = course / "class" / "submitted" / "ada" / "Getting started.ipynb"
    path.parent.mkdir(parents=True)
    notes = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell('print("my notes")')])
    nbformat.write(notes, path)
    (told,) = misplaced(Course(course))
    assert f"probably {SLUG} is meant" in told and "surely" not in told
    assert list(fix(Course(course))) == []
    assert path.exists()


def test_a_swapped_folder_is_moved_to_a_student_who_is_there(course):
    work(course, f"{SLUG}/ada/{NAME}", f"{SLUG}/ben/{NAME}", f"ben/01_other/{NAME}")
    shutil.rmtree(course / "class" / "submitted" / "ben" / "01_other")
    (told_ada, _), (moved,) = sorted(misplaced(Course(course)))[:2], fix(Course(course))
    assert "has the lesson's folder outside and the student's inside; probably" in told_ada
    assert moved.endswith(f"class/submitted/ben/{SLUG}/{NAME}")


DOUBTFUL = {
    "two notebooks": ([f"ada/{SLUG}/a.ipynb", f"ada/{SLUG}/b.ipynb"], "holds a.ipynb, b.ipynb"),
    "two folders": ([f"ada/x/{NAME}", f"ada/y/{NAME}"], "no lesson is called so"),
    "its place is taken": ([f"ada/{NAME}", f"ada/{SLUG}/{NAME}"], "lies in no lesson's folder"),
    "another lesson": ([f"ada/01_other/{NAME}"], f"probably {SLUG} is meant"),
    "a checkpoint": ([f"ada/{SLUG}/.ipynb_checkpoints/{SLUG}-checkpoint.ipynb"], "may be older"),
    "nobody's": ([NAME], f"probably {SLUG} is meant"),
}


@pytest.mark.parametrize("names, words", DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_is_not_certain_is_told_of_and_stays(course, names, words):
    (course / "solutions" / "01_other").mkdir()
    (course / "solutions" / "01_other" / "01_other.ipynb").write_text('{"cells": []}')
    work(course, *names)
    told = list(misplaced(Course(course)))
    assert told and all(words in one for one in told), told
    assert list(fix(Course(course))) == []
    assert all((course / "class" / "submitted" / name).exists() for name in names)


def test_links_empty_folders_and_names_that_are_none_are_told_of(course):
    top = course / "class" / "submitted"
    (top / "ada").mkdir(parents=True)
    (top / "ada" / SLUG).symlink_to("nowhere")
    (top / "ben").mkdir()
    (top / "cleo").mkdir()
    (top / "cleo" / "homework.pdf").write_text("")
    work(course, f"\x1bdora/{SLUG}/{NAME}", f".eve/{SLUG}/{NAME}")
    told = "\n".join(misplaced(Course(course)))
    assert f"ada/{SLUG} is a link that leads nowhere" in told
    assert "ben/ holds nothing: ask" in told and "cleo/ holds no notebook: ask" in told
    assert "dora/ cannot be a student's folder: it holds characters" in told
    assert ".eve/ cannot be a student's folder: it begins with a dot" in told
    assert len(told.splitlines()) == 5


def test_grade_moves_only_when_asked_and_then_grades(course):
    work(course, f"ada/{NAME}")
    hand_in(course, "ben")
    _, told, status = grade(course, check=False)
    assert (status, scores(course)) == (1, {"ben": 5}) and "--fix moves it there" in told
    said, _, status = grade(course, "--fix")
    assert f"moved: class/submitted/ada/{NAME} is now" in said
    assert scores(course) == {"ada": 5, "ben": 5}


def test_what_cannot_be_moved_costs_nobody_else(course, monkeypatch):
    work(course, f"ada/{NAME}", f"ben/{NAME}")
    rename = os.rename

    def refuse_ada(source, target):
        if "ada" in str(source):
            raise PermissionError(13, "Permission denied", str(source))
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse_ada)
    assert sorted(fix(Course(course))) == [
        f"moved: class/submitted/ben/{NAME} is now class/submitted/ben/{SLUG}/{NAME}",
        f"not moved: class/submitted/ada/{NAME}: Permission denied",
    ]


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
    assert "2 of the roster: <b>josé</b>, <b>zoe</b>" in (folder / "class.html").read_text()
    assert cli.main(["report", "--course", str(course), "--anonymous"]) == 0
    assert "zoe" not in (folder / "anonymous.html").read_text()


def test_two_folders_of_one_name_are_told_of_without_a_roster():
    pair = [Handed(SLUG, "Zoe"), Handed(SLUG, "zoe "), Handed(SLUG, "ben")]
    (told,) = strangers({}, pair)
    assert told == "'Zoe' and 'zoe ' look like one student: is it one?"
