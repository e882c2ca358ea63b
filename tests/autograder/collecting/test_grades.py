"""``autograder grades``: what the gradebook holds goes into the LMS's own file, and no more."""

import csv
import io
import re

import pytest

from autograder.grading.notebook.result import harmless
from tests.autograder.collecting.conftest import FIRST, SECOND

ROSTER = """id,first_name,last_name,email,lms_user_id
ada,Ada,Lovelace,ada@uni.example,101
ben,=HYPERLINK(1),Bauer,ben@uni.example,102
zoe,Zoë,Müller,zoe@uni.example,103
new,Nina,Neu,nina@uni.example,104
"""
CANVAS = (
    "Student,ID,SIS Login ID,Section,Notes,Mini (77),Lesson 1: more (78),Final Score\r\n"
    ",,,,,,Manual Posting,\r\n"
    '"    Points Possible",,,,,10,3,(read only)\r\n'
    '"Lovelace, Ada",101,ada,"A, B",=1+1,,2,50\r\n'
    '"Bauer, ""Ben""",102,ben,A,,EX,,\r\n'
    '"Muller, Zoe",,zoe@uni.example,A,,1.5,,\r\n'
    "Niemand,999,nobody,A,,,,\r\n"
    '"Student, Test",1000,77fe,A,,,,\r\n'
)
MOODLE = (
    "\ufeffIdentifier,Full name,Email address,Status,Grade,Maximum Grade,"
    "Last modified (grade),Feedback comments\n"
    'Participant 7001,"Ada Lovelace",ada@uni.example,Submitted,,"10,00",-,\n'
    'Participant 7002,"Ben Bauer",ben@uni.example,Submitted,"1,00","10,00",-,"seen, thanks"\n'
    'Participant 7009,"Zoë Müller",,Submitted,-,"10,00",-,\n'
)


def cells(text):
    """The rows of a CSV text."""
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.fixture
def graded(root, run, book):
    """Ada 8 of 10 by hand, Ben 9.5 less 4 for being late, Zoë 10 and 0.75 extra; Nina nothing."""
    (root / "roster.csv").write_text(ROSTER)
    assert run("roster", root / "roster.csv")[0] == 0
    for lesson, most in ((FIRST, 10), (SECOND, 3)):
        book.add_assignment(lesson, duedate="2030-01-01")
        book.add_notebook(lesson, lesson)
        book.add_grade_cell("check_doubled", lesson, lesson, max_score=most, cell_type="code")
        book.add_solution_cell("doubled", lesson, lesson)
    for student, points in (("ada", 2.0), ("ben", 9.5), ("zoe", 10.0)):
        book.add_submission(FIRST, student, timestamp="2030-01-02")
        grade = book.find_grade("check_doubled", FIRST, FIRST, student)
        grade.auto_score = points
        if student == "ada":
            grade.manual_score = 8.0
        grade.extra_credit = 0.75 if student == "zoe" else None
    book.find_submission_notebook(FIRST, FIRST, "ben").late_submission_penalty = 4.0
    book.db.commit()
    return root


@pytest.fixture
def fill(graded, run):
    """Run the command on a file of the LMS's; returns (status, written, output, errors)."""

    def command(text, *words):
        like, to = graded / "like.csv", graded / "out.csv"
        like.write_bytes(text.encode())
        status, said, err = run("grades", "--to", to, "--like", like, *words)
        return status, to.read_bytes().decode() if to.exists() else None, said, err

    return command


def test_canvas_gets_its_own_file_back_with_grades(fill):
    status, text, said, err = fill(CANVAS, "--form", "canvas")
    expected = CANVAS.replace('"A, B",=1+1,,', '"A, B",=1+1,8,').replace(",1.5,", ",10.75,")
    assert cells(text) == cells(expected)
    assert status == 1 and "2 grades, 1 of them in place of another one." in said
    assert f"{FIRST}: the column 'Mini (77)'" in said and "1 cells say EX" in said
    (stranger,) = err.splitlines()
    assert stranger.startswith("not filled in: row 7: no student of the roster is called Niemand")


def test_zeros_for_those_who_handed_in_nothing(fill):
    more = CANVAS + '"Neu, Nina",104,new,A,,,,\r\n'
    assert '"Neu, Nina",104,new,A,,0,,' in fill(more, "--form", "canvas", "--zeros")[1]
    assert '"Neu, Nina",104,new,A,,,,' in fill(more, "--form", "canvas")[1]


def test_who_is_of_another_section_gets_no_zero(fill, graded):
    (graded / "class" / "course.toml").write_text('[sections]\nmonday = ["ada"]\n')
    more = CANVAS + '"Neu, Nina",104,new,A,,,,\r\n'
    words = ("--form", "canvas", "--zeros", "--section", "monday")
    assert '"Neu, Nina",104,new,A,,,,' in fill(more, *words)[1]


def test_rows_that_are_not_surely_theirs_are_listed_and_not_filled_in(fill):
    status, _, _, err = fill("".join(CANVAS.splitlines(keepends=True)[:4]), "--form", "canvas")
    assert status == 1 and [line.split()[5] for line in err.splitlines()] == ["ben,", "zoe,"]
    other = CANVAS.replace("101,ada", "101,zoe").replace(",zoe@uni.example", ",")
    _, written, _, err = fill(other, "--form", "canvas")
    assert "row 4: it may be ada's or zoe's" in err and '"A, B",=1+1,,2' in written
    twice = CANVAS + '"Lovelace, Ada",101,ada,B,,,,\r\n'
    _, written, _, err = fill(twice, "--form", "canvas")
    assert "row 9: ada has row 4 already" in err
    assert written.endswith('"Lovelace, Ada",101,ada,B,,,,\r\n')


def test_other_points_in_the_lms_are_refused(fill):
    text = CANVAS.replace(",10,3,", ",100,3,")
    status, written, _, err = fill(text, "--form", "canvas")
    assert (status, written) == (1, None)
    assert f"{FIRST} has 10 points here and 100 there" in err


def test_a_column_of_another_name(fill):
    text = CANVAS.replace("Mini (77)", "Homework A (77)")
    status, written, said, err = fill(text, "--form", "canvas")
    assert (status, written) == (1, None) and "no column is called like a lesson" in err
    _, written, _, _ = fill(text, "--form", "canvas", "--lesson", "0", "--column", "Homework A")
    assert '"A, B",=1+1,8,2' in written
    other = text.replace("Homework A (77)", '"Homework, A"').replace("Points Possible", "Punkte")
    words = ("--lesson", "0", "--column", "Homework, A")
    assert ",10.75,," in fill(other, "--form", "canvas", *words)[1]  # its comma is no decimal one
    twice = CANVAS.replace("Final Score", "Mini (79)")
    assert "several columns" in fill(twice, "--form", "canvas")[3]


def test_a_lesson_without_a_column_is_told_with_what_to_do(fill, book, graded, run):
    book.add_submission(SECOND, "ada", timestamp="2030-01-02")
    book.find_grade("check_doubled", SECOND, SECOND, "ada").auto_score = 3.0
    book.db.commit()
    text = CANVAS.replace("Lesson 1: more (78)", "Homework B (78)").replace(
        "Niemand,999,nobody,A,,,,\r\n", ""
    )
    status, written, said, err = fill(text, "--form", "canvas")
    assert status == 1 and "2 grades" in said and f"{SECOND}: the column" not in said
    (told,) = err.splitlines()  # nothing else is left over
    assert told.startswith(f"{SECOND}: ")
    assert "no column is called like it, so none of its grades is written" in told
    assert "name it with --lesson 01 --column 'NAME'" in told
    out, again = graded / "out.csv", graded / "again.csv"
    words = ("--lesson", "01", "--column", "Homework B", "--like", out, "--to", again)
    assert run("grades", "--form", "canvas", *words)[0] == 0
    assert '"A, B",=1+1,8,3' in again.read_text()


def test_moodle_gets_its_own_worksheet_back(fill):
    status, text, _, err = fill(MOODLE, "--form", "moodle", "--lesson", "mini")
    assert (status, err) == (0, "")
    expected = MOODLE.replace('Submitted,,"10,00"', 'Submitted,8,"10,00"')
    expected = expected.replace('"1,00"', '"5,5"').replace("Submitted,-,", 'Submitted,"10,75",')
    assert cells(text) == cells(expected)


def test_a_table_of_our_own_is_in_the_order_of_names_and_holds_no_formula(graded, run):
    for form in ("canvas", "moodle"):
        status, _, err = run("grades", "--to", graded / "new.csv", "--form", form)
        assert (status, err) == (1, f"--form {form} needs --like: the file to be filled in\n")
    assert run("grades", "--to", graded / "new.csv")[0] == 0
    head, *rows = cells((graded / "new.csv").read_text())
    assert head == ["id", "first_name", "last_name", "email", "lms_user_id", FIRST]
    assert rows[0] == ["ben", "'=HYPERLINK(1)", "Bauer", "ben@uni.example", "102", "5.5"]
    assert [row[0] for row in rows] == ["ben", "ada", "zoe", "new"]


def test_the_export_itself_is_not_replaced(graded, run):
    (graded / "like.csv").write_text(CANVAS)
    words = ("--to", graded / "like.csv", "--like", graded / "like.csv", "--form", "canvas")
    status, _, err = run("grades", *words)
    assert status == 1 and "would replace the export" in err
    assert (graded / "like.csv").read_text() == CANVAS.replace("\r\n", "\n")


def test_nothing_graded_is_a_sentence(root, run, book):
    assert "grade first" in run("grades", "--to", root / "x.csv")[2]


@pytest.mark.parametrize("text", ["=1", " =1", "+1", "-1", "@x", "\t=1", "\uff1d1", "\r=1"])
def test_formulas_are_made_harmless(text):
    assert harmless(text).startswith("'") or not harmless(text).startswith(tuple("=+-@\t\r"))
    assert harmless("Ada-Marie") == "Ada-Marie"


@pytest.mark.parametrize("between", [";", "\t", "\n", "; ", "\n  "])
def test_nor_is_a_part_that_a_list_of_another_country_would_begin_a_cell_with(between):
    assert not re.search(r"[;\t\n]\s*=", harmless(f"Ada{between}=1+1"))
    assert harmless("got -1, -2; seed 3\nlikely a-b") == "got -1, -2; seed 3\nlikely a-b"
