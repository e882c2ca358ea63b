"""From a roster to grades in Canvas: everything between the LMS and the grading, in one walk."""

import csv
import zipfile

import nbformat

from autograder.commands import cli
from autograder.grading.classroom import sample_class
from tests.autograder.small_class import SLUG, WRONG, grade, make_course, scores

CONFIG = """
from pathlib import Path
from autograder.course import configure

c = configure(get_config(), Path(__file__).resolve().parent)
c.LateSubmissionPlugin.penalty_method = "zero"
"""
CANVAS = (
    'Student,ID,SIS User ID,SIS Login ID,Section,"Getting started (77)"\r\n'
    '"    Points Possible",,,,,5\r\n'
    '"Lovelace, Ada",101,,ada,A,\r\n'
    '"Bauer, Ben",102,,ben,A,\r\n'
    '"Müller, Zoë",103,,zm7,A,\r\n'
    '"Neu, Nina",104,,new,A,\r\n'
)


def test_a_canvas_zip_becomes_grades_in_canvas(tmp_path, capsys):
    course = make_course(tmp_path)
    (course / "nbgrader_config.py").write_text(CONFIG)

    def run(*words, status=0):
        assert cli.main([*words, "--course", str(course)]) == status, capsys.readouterr()
        return capsys.readouterr()

    (course / "canvas.csv").write_text(CANVAS, encoding="utf-8")
    assert "4 new: ada, ben, zm7, new" in run("roster", str(course / "canvas.csv")).out
    right, wrong = (
        nbformat.writes(sample_class.handed_in(SLUG, answers)) for answers in ({}, WRONG)
    )
    files = {
        f"lovelaceada_101_90001_{SLUG}.ipynb": wrong,  # repeated
        f"lovelaceada_101_90004_{SLUG}-2.ipynb": right,
        f"bauerben_LATE_102_90002_{SLUG}.ipynb": right,
        f"müllerzoë_103_90003_{SLUG} (1).ipynb": wrong,  # renamed by a browser
        f"mallorym_999_90005_{SLUG}.ipynb": right,  # of another course
    }
    with zipfile.ZipFile(course / "submissions.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    run("due", "0", "2020-01-01T12:00+00:00")
    received = run("receive", str(course / "submissions.zip"), "--lesson", "0", status=1)
    assert (
        f"{SLUG}: 3 new" in received.out
        and f"Late with {SLUG}, due Wed 1 Jan 2020, 12:00 UTC: ben." in received.out
    )
    assert f"Handed in nothing of {SLUG}: 1 of 4." in received.out
    assert received.err.count("not taken") == 1 and "mallorym" in received.err

    def grades():
        like = ("--form", "canvas", "--like", str(course / "canvas.csv"))
        run("grades", "--to", str(course / "back.csv"), *like)
        with open(course / "back.csv", newline="", encoding="utf-8") as file:
            back = list(csv.reader(file))
        assert [row[:-1] for row in back] == [row[:-1] for row in csv.reader(CANVAS.splitlines())]
        earned = [row[-1] for row in back]
        return earned[2:]

    grade(course)
    assert scores(course) == {"ada": 5, "ben": 5, "zm7": 3}
    assert grades() == ["5", "0", "3", ""]  # Ben's five points are the penalty
    assert "grade --lesson 00_getting_started --regrade" in run("due", "0", "2040-01-01T00:00").out
    grade(course, "--regrade", "--student", "ben")
    assert grades() == ["5", "5", "3", ""]

    where = ("--form", "canvas", "--to", str(course / "back.zip"))
    run("feedback", *where)
    with zipfile.ZipFile(course / "back.zip") as archive:  # Canvas knows whose they are
        names = sorted(archive.namelist())
        page = archive.read(names[1]).decode()
    assert names == [
        f"bauerben_LATE_102_90002_{SLUG}.html",
        f"lovelaceada_101_90004_{SLUG}-2.html",
        f"müllerzoë_103_90003_{SLUG} (1).html",
    ]
    assert "<caption" in page
