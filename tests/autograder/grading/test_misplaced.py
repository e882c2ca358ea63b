"""Work in the wrong place is told of; a copy that a browser renamed is graded as what it is."""

import pytest
from nbgrader.apps import NbGraderAPI

from autograder import ROOT
from autograder.grading import classroom
from autograder.grading.folders import Course, Handed
from autograder.grading.gradebook import Book
from autograder.grading.misplaced import misplaced
from tests.autograder.small_class import SLUG, grade, make_course, scores

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
        (NAME, "lies in no student's folder: put it into class/submitted/STUDENT/LESSON/"),
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
    path = classroom.submit(classroom.handed_in(SLUG), course, student, SLUG)
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


def test_nbgraders_own_autograde_lets_it_through(course):
    copied = rename(course, "ada", f"{SLUG}-Copy1.ipynb")
    rename(course, "ben", "final.ipynb")
    api = NbGraderAPI(config=Course(course).config)
    with Book(Course(course)) as book:
        book.register(SLUG)
    done = api.autograde(SLUG, "ada")
    assert done["success"], done
    assert scores(course) == {"ada": 5} and copied.exists()
    assert Course(course).autograded(Handed(SLUG, "ada")).exists()
    assert not api.autograde(SLUG, "ben")["success"]


def test_a_name_of_several_lines_is_told_in_one(submitted):
    (told,) = submitted(f"ada/{SLUG}/\nnot graded: everybody\x1b[2J.ipynb")
    assert "\n" not in told and "\x1b" not in told
    assert told.endswith("rename it, and grade again")
