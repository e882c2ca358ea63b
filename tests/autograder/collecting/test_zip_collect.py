"""What nbgrader's own zip_collect took from an LMS's archive is graded as it lies."""

import subprocess
import sys
import zipfile

import nbformat
import pytest

from autograder.grading.classroom import sample_class
from benchmarks.grading import CONFIG
from tests.autograder.small_class import SLUG, WRONG, grade, make_course, scores

# As nbgrader's own documentation has it.
RULE = r".*_(?P<student_id>\w+)_attempt_(?P<timestamp>[0-9\-]+)_(?P<file_id>\w+)"
NAME = "{slug}_{student}_attempt_2026-01-30-15-30-10_{slug}.ipynb"


@pytest.mark.long
def test_an_archive_that_nbgrader_collected_is_graded(tmp_path):
    course = make_course(tmp_path)
    (course / "nbgrader_config.py").write_text(CONFIG)
    archive = course / "downloaded" / SLUG / "archive"
    archive.mkdir(parents=True)
    with zipfile.ZipFile(archive / "download.zip", "w") as file:
        for student, answers in {"ada": None, "ben": WRONG}.items():
            name = NAME.format(slug=SLUG, student=student)
            file.writestr(name, nbformat.writes(sample_class.handed_in(SLUG, answers)))
    program = [sys.executable, "-m", "nbgrader", "zip_collect", SLUG]
    program += [f"--FileNameCollectorPlugin.named_regexp={RULE}"]
    done = subprocess.run(program, cwd=course, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    grade(course)
    assert scores(course) == {"ada": 5, "ben": 3}
