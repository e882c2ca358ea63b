"""A class that chose: what it has is what is graded, by our command and by nbgrader's."""

import csv
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder import ROOT
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course
from autograder.reporting import results
from tests.autograder.small_class import (
    LINE,
    SLUG,
    WRONG,
    grade,
    hand_in,
    kept,
    make_course,
    scores,
)
from tests.waiting import LONG

CHOSEN = """
timezone = "UTC"
[late]
percent_a_day = 50
[groups]
one = ["ada", "alan"]
[lessons.00]
due = "2026-10-11 23:59"
points = { softmax = 6 }
optional = ["weighted_average"]
"""
WRONG_AVERAGE = {"weighted_average": "def weighted_average(weights, values):\n    return values"}


@pytest.fixture
def course(tmp_path):
    made = make_course(tmp_path)
    (made / "class" / "course.toml").write_text(CHOSEN)
    return made


def stamp(course, student, time):
    (course / "class" / "submitted" / student / SLUG / "timestamp.txt").write_text(time)


def told(capsys, *words):
    status = cli.main([*words])
    out, err = capsys.readouterr()
    return status, out + err


def test_points_that_were_chosen_are_earned_and_optional_ones_are_not(course):
    hand_in(course, "cleo")
    hand_in(course, "ben", answers=WRONG_AVERAGE)
    hand_in(course, "dora", answers=WRONG)
    said, _, _ = grade(course)
    assert scores(course) == {"cleo": 7, "ben": 7, "dora": 1}
    assert "1/7  lost: softmax" in said
    (optional,) = [one for one in kept(course, "ben").exercises if not one.max]
    assert results.kind(asdict(optional)) == results.WRONG  # although it lost no point
    with Gradebook(Course(course).db_url, "attention") as book:
        assert book.find_assignment(SLUG).max_score == 7
        assert str(book.find_assignment(SLUG).duedate) == "2026-10-11 23:59:00"
    assert cli.main(["report", "--course", str(course)]) == 0
    assert cli.main(["feedback", "--course", str(course)]) == 0


def test_other_points_are_a_reason_to_grade_again(course):
    hand_in(course, "ben", answers=WRONG)
    grade(course)
    path = course / "class" / "course.toml"
    path.write_text(CHOSEN.replace("softmax = 6", "softmax = 3"))
    said, _, _ = grade(course)
    assert "the solved notebook or its points changed" in said and "1/4" in said
    path.unlink()
    said, _, _ = grade(course)
    assert "3/5" in said and scores(course) == {"ben": 3}


def test_a_notebook_of_a_group_is_judged_once_for_all_its_members(course):
    hand_in(course, "ada", answers=WRONG)
    said, _, _ = grade(course)
    assert "alan" in said and "(handed in by ada)" in said
    ada, alan = (asdict(kept(course, name)) for name in ("ada", "alan"))
    assert (ada.pop("student"), alan.pop("student")) == ("ada", "alan")
    assert ada == alan  # the seconds, too
    assert scores(course) == {"ada": 1, "alan": 1}


def test_a_lesson_is_graded_without_a_word_on_others(course):
    other = "01_kernel_regression"
    (course / "solutions" / other).symlink_to(ROOT / "solutions" / other)
    (course / "class" / "course.toml").write_text(f"{CHOSEN}[lessons.01]\n")
    sample_class.submit(sample_class.handed_in(other), course, "ada", other)
    hand_in(course, "eve")
    assert "another member" not in grade(course, "--lesson", "00")[0]
    assert (course / "class" / "submitted" / "alan" / other).is_dir()


def test_late_work_costs_what_the_file_says(course):
    for student, time in (("ada", "2026-10-11 23:00:00 UTC"), ("eve", "2026-10-12 10:00:00 UTC")):
        hand_in(course, student)
        stamp(course, student, time)
    said, _, _ = grade(course)
    assert "eve" in said and "counts as 3.5" in said
    with Gradebook(Course(course).db_url, "attention") as book:
        submissions = book.assignment_submissions(SLUG)
        late = {one.student.id: one.late_submission_penalty for one in submissions}
    assert late["eve"] == 3.5 and not late["ada"]
    assert cli.main(["report", "--course", str(course)]) == 0
    with open(course / "class" / "report" / "scores.csv", newline="") as stream:
        (eve, *_) = [row for row in csv.DictReader(stream) if row["student"] == "eve"]
    assert (eve["handed_in"], eve["minutes_late"]) == ("2026-10-12 10:00 UTC", "601")


def test_another_rule_date_or_extension_needs_no_code_run_again(course):
    for student in ("eve", "fay"):
        hand_in(course, student)
        stamp(course, student, "2026-10-12 10:00:00 UTC")
    grade(course)

    def settled(*more):
        preview = grade(course, "--preview")[0]
        said = grade(course)[0]
        assert LINE.findall(said) == [] and "2 of 2 are graded and unchanged: skipped." in said
        for student, before, now in more:
            assert f"{student}, {SLUG}: {before} → {now} of 7" in preview
            assert f"  {SLUG}  {student}: {before} → {now}\n" in said
        signs = [line for line in preview.splitlines() if line.startswith(("gains", "loses"))]
        assert len(signs) == len(more) and ("Other points" in said) == bool(more)

    settled()
    path = course / "class" / "course.toml"
    path.write_text(CHOSEN.replace("= 50", "= 20"))
    settled(("eve", 3.5, 5.6), ("fay", 3.5, 5.6))
    extension = ("due", "00", "2026-10-12T10:00", "--student", "fay", "--course", str(course))
    assert cli.main([*extension]) == 0
    settled(("fay", 5.6, 7))
    path.write_text(CHOSEN.replace("= 50", "= 20").replace("10-11", "10-12"))
    settled(("eve", 5.6, 7))
    path.write_text(CHOSEN.replace("[late]\npercent_a_day = 50", ""))
    settled()


def test_a_date_that_the_file_names_is_changed_there_and_others_are_in_its_zone(course, capsys):
    where = ("--course", str(course))
    status, said = told(capsys, "due", "00", "2026-11-01T10:00", *where)
    assert status == 1 and "course.toml says when 00_getting_started is due, Sun 11 Oct" in said
    assert "Sun 11 Oct 2026, 23:59" in told(capsys, "due", *where)[1]
    (course / "class" / "course.toml").write_text('timezone = "Europe/Berlin"\n')
    assert "Tue 20 Oct 2026, 23:59" in told(capsys, "due", "00", "2026-10-20T23:59", *where)[1]
    with Gradebook(Course(course).db_url, "attention") as book:
        assert str(book.find_assignment(SLUG).duedate) == "2026-10-20 21:59:00"


def test_more_time_for_one_of_a_group_names_the_others(course, capsys):
    with Gradebook(Course(course).db_url, "attention") as book:
        for student in ("ada", "alan"):
            book.add_student(student)
    where = ("00", "2026-10-20T10:00", "--course", str(course))
    said = told(capsys, "due", *where, "--student", "ada")[1]
    assert "Group one hands in together; not changed for: alan." in said
    said = told(capsys, "due", *where, "--student", "ada", "--student", "alan")[1]
    assert "hands in together" not in said


def test_what_is_not_understood_stops_every_command_with_its_sentence(course, capsys):
    (course / "class" / "course.toml").write_text("[lessons.00]\npoints = { softmax = 0 }")
    hand_in(course, "ada")
    for words in (["grade"], ["plan"], ["report"]):
        status, said = told(capsys, *words, "--course", str(course))
        assert status == 1 and "should be greater than 0" in said and "Traceback" not in said
    (course / "nbgrader_config.py").write_bytes((ROOT / "nbgrader_config.py").read_bytes())
    program = Path(sys.executable).parent / "nbgrader"
    words = [str(program), "autograde", SLUG, "--create"]
    done = subprocess.run(words, cwd=course, capture_output=True, text=True, timeout=LONG)
    assert done.returncode != 0 and "should be greater than 0" in done.stderr
    assert "Traceback" not in done.stderr and not (course / "class" / "autograded").exists()


def test_init_writes_a_file_once_and_plan_shows_it(tmp_path, capsys):
    where = ("--course", str(make_course(tmp_path)))
    assert told(capsys, "init", *where)[0] == 0
    assert "1 lessons, 0 h 30 min" in told(capsys, "plan", *where)[1]
    for words, said in (
        (("init",), "is there: change it, or move it away first"),
        (("init", "--start", "2026-10-05"), "name one with --plan"),
        (("init", "--plan", "eight-weeks", "--start", "2026-10-05"), "give their zone"),
        (("init", "--plan", "nine-weeks"), "there are: eight-weeks, fourteen-weeks, three-"),
    ):
        status, out = told(capsys, *words, *where)
        assert status == 1 and said in out


def test_init_writes_into_no_folder_that_is_no_course(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in ((), ("--course", ".")):
        status, said = told(capsys, "init", *words)
        assert status == 1 and f"{tmp_path} is no course" in said and f"--course {ROOT}" in said
    assert not [*tmp_path.iterdir()]


def test_init_fills_in_a_plan_and_its_dates(tmp_path, capsys):
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    where = ("--course", str(tmp_path))
    (tmp_path / "people.csv").write_text("id,last_name,first_name\nada,Lovelace,Ada\n")
    words = ("init", "--plan", "three-sessions", "--start", "2026-10-05", "--timezone", "UTC")
    status, said = told(capsys, *words, "--roster", str(tmp_path / "absent.csv"), *where)
    assert status == 1 and "absent.csv cannot be read" in said  # and nothing is written
    status, said = told(capsys, *words, "--roster", str(tmp_path / "people.csv"), *where)
    assert status == 0 and "1 new: ada" in said
    status, said = told(capsys, "plan", *where)
    assert status == 0
    assert "points  from Mon 5 Oct 2026, 08:00, due Sun 11 Oct 2026, 23:59" in said
    assert "Students must have had 00_getting_started" in said
    written = sorted(path.name for path in (tmp_path / "class" / "source").iterdir())
    assert [name[:2] for name in written] == ["01", "05", "06"]
    status, said = told(capsys, "due", "07", *where)
    assert status == 1 and "no lesson is called '07'" in said


def test_a_section_is_reported_apart(course, capsys):
    path = course / "class" / "course.toml"
    path.write_text(CHOSEN.replace("[groups]", '[sections]\nmonday = ["ada"]\n[groups]'))
    hand_in(course, "ada", "eve")
    grade(course)
    where = ("--course", str(course))
    status, said = told(capsys, "report", "--section", "monday", *where)
    assert status == 0 and said.startswith("1 students, 1 submissions")
    status, said = told(capsys, "feedback", "--section", "monday", *where)
    assert status == 0 and said.startswith("1 pages made")
    out = course / "grades.csv"
    status, said = told(capsys, "grades", "--to", str(out), "--section", "monday", *where)
    assert status == 0 and "1 students" in said and "eve" not in out.read_text()
    (course / "students.csv").write_text("id,first_name\nada,Ada\neve,Eve\nalan,Alan\n")
    told(capsys, "roster", str(course / "students.csv"), *where)
    assert "handed in nothing" not in grade(course, "--section", "monday")[0]
    (course / "class" / "submitted" / "eve" / "lost.ipynb").write_text("{}")
    assert grade(course, "--section", "monday")[1] == ""
    status, said = told(capsys, "report", "--section", "tuesday", *where)
    assert status == 1 and "has no section 'tuesday'; there are: monday" in said


def test_nobody_is_made_by_a_slip_in_a_group(course, capsys):
    hand_in(course, "ada")
    roster = course / "students.csv"
    roster.write_text("id,first_name\nada,Ada\nalan,Alan\n")
    assert told(capsys, "roster", str(roster), "--course", str(course))[0] == 0
    path = course / "class" / "course.toml"
    path.write_text(CHOSEN.replace('"alan"', '"allan"'))
    said, err, status = grade(course, check=False)
    assert status == 1 and "names allan, who is not in the roster; did you mean alan?" in err
    assert not (course / "class" / "submitted" / "allan").exists()
    for words in (["plan"], ["due"], ["roster", str(roster)], ["report"], ["receive", str(course)]):
        status, said = told(capsys, *words, "--course", str(course))
        assert status == 1 and "names allan, who is not in the roster" in said
    path.write_text(CHOSEN)
    said, _, _ = grade(course)
    assert "Handed in by another member of the student's group: 1." in said
    assert scores(course) == {"ada": 7, "alan": 7}
