"""Stock nbgrader, as commands in a copy of the course."""

import os
import shutil
import sys

import nbformat
import pytest
from traitlets.config import Config

from autograder.building.generate_assignment import release
from autograder.course import configure
from tests.autograder import mini


@pytest.mark.long
def test_generate_assignment_makes_the_same_bytes(built, nbgrader):
    expected = built.lesson.read_bytes()
    shutil.rmtree(built.lesson.parent)
    said = nbgrader("generate_assignment", "00_mini", "--create")
    assert "ERROR" not in said
    assert built.lesson.read_bytes() == expected


@pytest.mark.long
def test_validate_passes_the_solution_and_fails_every_check_of_the_lesson(built, nbgrader):
    solution, lesson = nbgrader("validate", built.solution, built.lesson).split("VALIDATION FAILED")
    assert "Success! Your notebook passes all the tests." in solution
    assert lesson.startswith(" ON 2 CELL(S)")
    assert "doubled: nothing here yet: write about 2 lines." in lesson
    assert "Scale: nothing here yet: write about 1 line in __init__." in lesson


def test_a_solution_edited_by_an_instructor_is_released(built_once):
    notebook = nbformat.read(built_once.solution, as_version=4)
    signature = "def doubled(x):\n    "
    notebook.cells[3].source = signature + "### BEGIN SOLUTION\n    return x\n    ### END SOLUTION"
    released = release(notebook, mini.SLUG)
    assert released.cells[3].source == signature + "raise NotImplementedError()"


def test_everything_but_lessons_and_solutions_goes_below_class(tmp_path):
    c = configure(Config(), tmp_path)
    assert c.CourseDirectory.source_directory == "solutions"
    assert c.CourseDirectory.release_directory == "lessons"
    below = ("submitted", "autograded", "feedback", "solution")
    for name in below:
        assert c.CourseDirectory[f"{name}_directory"] == f"class/{name}"
    assert c.CourseDirectory.db_url == f"sqlite:///{tmp_path}/class/gradebook.db"
    assert c.Exchange.root == str(tmp_path / "class" / "exchange")


def test_alembic_is_found_where_the_environment_is_not_active(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    configure(Config(), tmp_path)
    configure(Config(), tmp_path)
    programs = os.path.dirname(sys.executable)
    assert os.environ["PATH"] == f"{programs}{os.pathsep}/nowhere"
