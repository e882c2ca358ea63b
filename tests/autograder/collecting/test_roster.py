"""``autograder roster``: students from every kind of CSV, and nobody is lost from the gradebook."""

import pytest
from nbgrader.api import Gradebook

from autograder.collecting.roster import Student, from_csv
from tests.autograder.collecting.conftest import FIRST

ADA = Student("ada", "Ada", "Lovelace", "ada@uni.example", "101")
ZOE = Student("zm7", "Zoë", "Müller", "zoe@uni.example", "102")
NBGRADER = """id,first_name,last_name,email,lms_user_id
ada,Ada,Lovelace,ada@uni.example,101
zm7,Zoë,Müller,zoe@uni.example,102
"""
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Email,00 mini (5)
,,,,,,Manual Posting
"    Points Possible",,,,,,10
"Lovelace, Ada",101,S1,ada,"A",ada@uni.example,
"Müller, Zoë",102,S2,zm7,"A",zoe@uni.example,3
"Student, Test",999,,77abc,"A",,
"""
MOODLE = """Vorname;Nachname;Anmeldename;E-Mail-Adresse;Canvas ID
Ada;Lovelace;ada;ada@uni.example;101
Zoë;Müller;zm7;zoe@uni.example;102
"""


@pytest.fixture
def write(tmp_path):
    def to_file(text, encoding="utf-8"):
        (tmp_path / "roster.csv").write_bytes(text.encode(encoding))
        return tmp_path / "roster.csv"

    return to_file


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("text", [NBGRADER, CANVAS, MOODLE])
def test_every_kind_of_file_is_understood(write, text, encoding):
    assert from_csv(write(text, encoding)) == [ADA, ZOE]


def test_another_column_for_the_ids(write):
    assert [one.id for one in from_csv(write(CANVAS), "SIS User ID")] == ["S1", "S2"]
    found = from_csv(write("Full name,Email address\nZoë A. Müller,zoe@uni.example\n"))
    assert found == [Student("zoe@uni.example", "Zoë A.", "Müller", "zoe@uni.example")]
    without = "First name,Last name,ID number,Email address\nZoë,Müller,,zoe@uni.example\n"
    assert [one.id for one in from_csv(write(without))] == ["zoe@uni.example"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Name,Points\nAda,3\n", "there is no column with the students' ids"),
        ("id,first_name\n,Ada\n", "row 2: there is no id"),
        ("id,first_name\nada,Ada\nADA,Ada\n", "row 3: the id 'ADA' is another row's"),
        ("id,first_name\n../x,Ada\n", "row 2: '../x' cannot name a folder"),
        ("id,first_name\na\x1b[2J,Ada\n", "cannot name a folder"),
        ("id,first_name\n<img src=x onerror=alert(1)>,Ada\n", "cannot name a folder"),
        ("id,first_name\na\u202eda,Ada\n", "cannot name a folder"),
        ("id,first_name\n,\n", "there is no student in it"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(write, run, text, words):
    status, said, err = run("roster", write(text))
    assert (status, said) == (1, "") and words in err
    assert err.isprintable() or err.rstrip("\n").isprintable()


def test_new_changed_and_missing_students(root, run, write):
    assert "2 new: ada, zm7" in run("roster", write(NBGRADER))[1]
    _, said, _ = run("roster", write(NBGRADER))
    assert said.splitlines()[1:] == []
    later = NBGRADER.replace("Lovelace", "King").replace("zm7,", "yan,").replace("102", "")
    later = later.replace("zoe@", "yan@").replace("Zoë", "Yan")
    _, said, _ = run("roster", write(later))
    assert "1 new: yan" in said and "1 changed: ada" in said
    assert "1 in the gradebook only; who is to go: nbgrader db student remove ID: zm7" in said
    for one in ("ada2", "ada3"):
        row = f"{one},Ada,Lovelace,{one}@uni.example"
        namesake = write(f"id,first_name,last_name,email\n{row}\n")
        assert f"1 new: {one}" in run("roster", namesake)[1]
    with Gradebook(f"sqlite:///{root}/class/gradebook.db") as book:
        assert {one.id: one.last_name for one in book.students} == {
            "ada": "King",
            "yan": "Müller",
            "zm7": "Müller",
            "ada2": "Lovelace",
            "ada3": "Lovelace",
        }


@pytest.mark.parametrize(
    "text",
    [
        "Username,Email\nADA@UNI,Ada@uni.example\n",
        "Username,Canvas ID\nADA@UNI,101\n",
        "Identifier,Full name,Email address\nParticipant 1,Ada Lovelace,ada@uni.example\n",
    ],
)
def test_nobody_is_there_twice_under_two_ids(run, write, book, text):
    book.update_or_create_student("ada", first_name="Ada", last_name="Lovelace", lms_user_id="101")
    if "Email\n" in text:
        book.update_or_create_student("ada", email="ada@uni.example")
    status, said, err = run("roster", write(text))
    assert (status, said) == (1, "") and "1 of the file are in the gradebook under another" in err
    book.db.expire_all()
    assert [one.id for one in book.students] == ["ada"]


def test_a_roster_that_is_not_there_is_a_sentence(run):
    assert run("roster", "gone.csv")[2].startswith("gone.csv cannot be read: No such file")


def test_due_dates_are_set_shown_and_forgotten(run, book):
    status, said, _ = run("due", "mini", "2126-12-01T23:59+01:00")
    assert status == 0 and "Sun 1 Dec 2126, 22:59 UTC" in said
    assert str(book.find_assignment(FIRST).duedate) == "2126-12-01 22:59:00"
    assert "no due date" in run("due")[1]  # of the other lesson
    assert "has passed" not in said
    assert "UTC  (has passed)" in run("due", "mini", "2020-12-01T23:59+01:00")[1]
    run("due", "mini", "never")
    book.db.expire_all()
    assert book.find_assignment(FIRST).duedate is None
    assert "no time" in run("due", "mini", "soon")[2]
    assert "write it as 2026-12-01T23:59" in run("due", "mini", "2026-12-01")[2]
    assert run("due", "mini", "20261201")[0] == 1
