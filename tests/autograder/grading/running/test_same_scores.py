"""On honest submissions nbgrader's own way of executing gives the same scores to the point."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder import ROOT, cell_metadata
from autograder.checking.toolbox import registry
from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course
from tests.autograder.small_class import configure, grade

STOCK = "del c['Autograde']  # its own steps: clean, Execute in a kernel, save"
NBGRADER = str(Path(sys.executable).with_name("nbgrader"))


def honest(slug):
    """Pairs (student, notebook): right, right in other ways, partly wrong, and blank."""
    checks = registry.of_lesson(slug.partition("_")[2])
    other = [
        {name: registry.alternatives(item)[n] for name, item in checks.items()} for n in (0, 1)
    ]
    wrong = {name: registry.mistakes(item)[-1] for name, item in list(checks.items())[::2]}
    staged = {name: partly for name, item in checks.items() if (partly := in_stages(item))}
    careless = {
        name: found[0]
        for name, item in checks.items()
        if (found := registry.careless_answers(item))
    }
    yield "right", sample_class.handed_in(slug)
    yield "another_way", sample_class.handed_in(slug, other[0])
    yield "a_third_way", sample_class.handed_in(slug, other[1])
    yield "partly_wrong", sample_class.handed_in(slug, wrong)
    yield "in_stages", sample_class.handed_in(slug, wrong | staged)
    yield "careless", sample_class.handed_in(slug, careless)
    yield "blank", sample_class.blank(slug)


def in_stages(item):
    """A stored mistake that earns some of the exercise's stages."""
    return next((one for one in registry.mistakes(item) if one.earns), None)


def scores(course, slug):
    """Score by student and exercise."""
    with Gradebook(Course(course).db_url, "attention") as book:
        return {
            (one.student.id, grade.name): grade.score
            for one in book.assignment_submissions(slug)
            for grade in one.notebooks[0].grades
        }


@pytest.mark.long
@pytest.mark.parametrize(
    "slug", ["00_getting_started", pytest.param("01_kernel_regression", marks=pytest.mark.every)]
)
def test_stock_nbgrader_and_this_grading_agree(tmp_path, slug):
    shutil.copytree(ROOT / "solutions" / slug, tmp_path / "solutions" / slug)
    students = dict(honest(slug))
    for student, notebook in students.items():
        # Stock nbgrader runs all that is there: a minute of figures that no check looks at.
        notebook.cells = [cell for cell in notebook.cells if not cell_metadata.is_demo(cell)]
        sample_class.submit(notebook, tmp_path, student, slug)
    configure(tmp_path)
    grade(tmp_path)
    ours = scores(tmp_path, slug)
    assert {student for student, _ in ours} == set(students)
    assert len(set(ours.values())) > 1
    assert any(score % 1 for score in ours.values()), ours

    (tmp_path / "class" / "gradebook.db").unlink()
    shutil.rmtree(tmp_path / "class" / "autograded")
    configure(tmp_path, STOCK)
    for command in (["generate_assignment", slug], ["autograde", slug]):
        done = subprocess.run([NBGRADER, *command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        assert "SAWarning" not in done.stderr
    assert "Executing notebook" in done.stderr or "kernel" in done.stderr, done.stderr[-2000:]
    assert scores(tmp_path, slug) == ours
