"""``autograder feedback``: pages where they are stale, and back in the form that is asked for."""

import json
import os
import shutil
import zipfile
from datetime import datetime, timedelta

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI

from autograder import ROOT
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book
from autograder.grading.execution.assemble import assemble
from autograder.grading.feedback.return_format import hand_back
from autograder.grading.notebook import records
from autograder.grading.notebook.result import Result
from autograder.grading.notebook.submission import parse
from tests.autograder.small_class import SLUG, make_course

CLASS = ("ada", "ben", "cleo")


def keep(course, student, notebook):
    """Keep a notebook as graded that no check has seen: its pages need no sandbox."""
    where, one = Course(course), Handed(SLUG, student)
    sample_class.submit(notebook, course, student, SLUG)
    made = assemble(records.read_notebook(where.master(SLUG)), parse(notebook))
    where.write_companions(one)
    records.save(where.autograded(one).parent, made, SLUG, Result(student, SLUG))
    with Book(where) as book:
        book.register(SLUG)
        book.store(one, made)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A course in which three students' work is graded and has pages."""
    course = make_course(tmp_path_factory.mktemp("course"))
    (course / "nbgrader_config.py").write_bytes((ROOT / "nbgrader_config.py").read_bytes())
    for student in CLASS:
        keep(course, student, sample_class.handed_in(SLUG))
    assert cli.main(["feedback", "--course", str(course)]) == 0
    return course


@pytest.fixture
def course(kept, tmp_path):
    made = shutil.copytree(kept, tmp_path / "course", symlinks=True)
    (made / "class" / "exchange").mkdir(exist_ok=True)
    return made


@pytest.fixture
def feedback(course, capsys):
    """Runs the command; returns (status, standard output, standard error)."""

    def run(*words):
        status = cli.main(["feedback", "--course", str(course), *map(str, words)])
        return status, *capsys.readouterr()

    return run


def page(course, student):
    return Course(course).feedback(Handed(SLUG, student))


def change(course, how):
    with Gradebook(Course(course).db_url, "attention") as book:
        how(book)
        book.db.commit()


def score(book):
    book.find_grade("check_softmax", SLUG, SLUG, "ben").manual_score = 1.5


def comment(book):
    book.find_comment("softmax", SLUG, SLUG, "ben").manual_comment = "Well tried."


def penalty(book):
    book.find_submission_notebook(SLUG, SLUG, "ben").late_submission_penalty = 0.25


@pytest.mark.parametrize("how", [score, comment, penalty])
def test_what_was_changed_by_hand_is_on_the_page(course, feedback, how):
    change(course, how)
    assert feedback()[0] == 0
    shown = {score: "1.5 / 2", comment: "Well tried.", penalty: "−0.25"}[how]
    assert shown in page(course, "ben").read_text()


def test_new_work_replaces_the_page_and_is_what_the_exchange_gives_back(course, feedback):
    api = NbGraderAPI(config=Course(course).config)
    assert api.release_feedback(SLUG)["success"]
    keep(course, "ben", sample_class.handed_in(SLUG, {"softmax": "softmax = 'new work'"}))
    assert feedback()[0] == 0
    assert api.release_feedback(SLUG)["success"]
    released = [
        path.read_text() for path in course.glob("class/exchange/attention/feedback/*.html")
    ]
    assert len(released) == 3
    assert sum("new work" in text for text in released) == 1


def test_a_late_page_says_when_it_was_due_for_the_student(course, feedback):
    (course / "class" / "course.toml").write_text('timezone = "Europe/Berlin"\n')

    came = datetime(2026, 11, 22, 23, 30)

    def late(book):
        penalty(book)
        book.update_or_create_assignment(SLUG, duedate=datetime(2026, 11, 20, 22, 59))
        book.update_or_create_submission(SLUG, "ben", extension=timedelta(days=2), timestamp=came)

    change(course, late)
    assert NbGraderAPI(config=Course(course).config).generate_feedback(SLUG)["success"]
    assert (
        "Handed in Mon 23 Nov 2026, 00:30, 31 min late (due Sun 22 Nov"
        in page(course, "ben").read_text()
    )
    change(course, lambda book: book.update_or_create_submission(SLUG, "ben", extension=None))
    assert feedback()[0] == 0
    assert "(due Fri 20 Nov 2026, 23:59)" in page(course, "ben").read_text()


def test_a_broken_notebook_costs_no_one_else_a_page_and_leaves_no_stale_one(
    course, feedback, tmp_path
):
    assert feedback("--form", "mail", "--to", tmp_path / "out")[0] == 0
    Course(course).autograded(Handed(SLUG, "ada")).write_text("{}")
    change(course, score)
    status, out, err = feedback("--form", "mail", "--to", tmp_path / "out")
    assert status == 1 and "2 pages made" in out
    assert err.startswith(f"no page for ada, {SLUG}: ") and len(err.splitlines()) == 1
    assert not page(course, "ada").exists()
    assert sorted(os.listdir(tmp_path / "out")) == [f"{name}_{SLUG}.html" for name in CLASS[1:]]
    assert "1.5 / 2" in (tmp_path / "out" / f"ben_{SLUG}.html").read_text()


def test_what_is_not_graded_or_not_settled_is_said(course, feedback):
    keep(course, "a[b]*", sample_class.handed_in(SLUG))  # a name is no pattern
    (course / "class/autograded/a[b]*" / SLUG / "big.bin").symlink_to("/dev/zero")
    sample_class.submit(sample_class.blank(SLUG), course, "dan", SLUG)
    change(course, lambda book: setattr(
        book.find_grade("check_softmax", SLUG, SLUG, "ben"), "needs_manual_grade", True
    ))  # fmt: skip
    status, out, _ = feedback()
    assert status == 0
    assert "1 are not graded yet" in out and "grade says: ben, 00_getting_started." in out
    beside = sorted(path.name for path in page(course, "a[b]*").parent.iterdir())
    assert beside == [f"{SLUG}.html", "submission_secret.txt", "timestamp.txt"]
    assert feedback("--student", "dan")[0] == 1


def test_nothing_graded_and_places_that_cannot_be_written_are_sentences(course, feedback, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.zip").mkdir()
    for words, said in [
        (["--form", "moodle"], "--form moodle needs --to"),
        (["--to", tmp_path / "no" / "x.zip"], "there is no folder"),
        (["--to", tmp_path / "file"], "is a file; name a folder"),
        (["--to", tmp_path / "folder.zip"], "is a folder; name a file"),
    ]:
        status, out, err = feedback(*words)
        assert (status, out) == (1, "") and said in err
    shutil.rmtree(course / "class" / "autograded")
    assert "Nothing is graded" in feedback()[2]
    assert f"Nothing of {SLUG} is graded" in feedback("--lesson", SLUG)[2]


MOODLE = "Ada Love_17_assignsubmission_file_"


@pytest.mark.parametrize(
    ("form", "received", "expected"),
    [
        ("moodle", f"{MOODLE}/my work.ipynb", f"{MOODLE}/{SLUG}.html"),
        ("moodle", f"{MOODLE[:-1]}/my work.ipynb", f"{MOODLE}/{SLUG}.html"),
        ("moodle", f"all.zip/{MOODLE}{SLUG}.ipynb", f"{MOODLE}/{SLUG}.html"),
        ("moodle", f"..\\..\\{MOODLE}\\x", f"{MOODLE}/{SLUG}.html"),
        ("canvas", "loveada_17_4711_work-1.ipynb", "loveada_17_4711_work-1.html"),
        ("canvas", "loveada_LATE_17_4711_w.zip/x.ipynb", "loveada_LATE_17_4711_w.html"),
        ("canvas", "../love:\x1bada_17_4711_../../w.ipynb", f"ada_{SLUG}.html"),
        ("canvas", "work.ipynb", f"ada_{SLUG}.html"),
        ("canvas", 17, f"ada_{SLUG}.html"),
        ("canvas", None, f"ada_{SLUG}.html"),
        ("pages", "work.ipynb", f"ada/{SLUG}.html"),
        ("mail", "work.ipynb", f"ada_{SLUG}.html"),
    ],
)
def test_each_form_names_the_page_as_its_reader_expects(course, tmp_path, form, received, expected):
    if received is not None:
        told = course / "class/submitted/ada" / SLUG / "received.json"
        told.write_text(json.dumps({"from": received}))
    target = tmp_path / "back.zip"
    unknown = hand_back(Course(course), form, target, [Handed(SLUG, "ada")], [])
    with zipfile.ZipFile(target) as archive:
        assert archive.namelist() == [expected]
        assert archive.read(expected) == page(course, "ada").read_bytes()
    is_unknown = form in ("canvas", "moodle") and expected == f"ada_{SLUG}.html"
    assert unknown == ["ada"] * is_unknown


def test_a_name_that_two_claim_is_given_to_neither(course, tmp_path):
    for student, name in zip(
        CLASS, ("x_1_2_a.ipynb", "X_1_2_A.ipynb", "y_3_4_a.ipynb"), strict=True
    ):
        told = course / "class/submitted" / student / SLUG / "received.json"
        told.write_text(json.dumps({"from": name}))
    handed = [Handed(SLUG, student) for student in CLASS]
    assert hand_back(Course(course), "canvas", tmp_path / "back", handed, []) == ["ada", "ben"]
    expected = [f"ada_{SLUG}.html", f"ben_{SLUG}.html", "y_3_4_a.html"]
    assert sorted(os.listdir(tmp_path / "back")) == expected
    for student in ("a:b", "A*b"):  # alike where a file is called so
        shutil.copytree(page(course, "ada").parent, page(course, student).parent)
    handed = [Handed(SLUG, student) for student in ("a:b", "A*b")]
    hand_back(Course(course), "mail", tmp_path / "mail", handed, [])
    assert len(os.listdir(tmp_path / "mail")) == 2


def test_whose_page_the_lms_would_not_know_is_said_with_what_to_do(course, feedback, tmp_path):
    told = course / "class/submitted/ada" / SLUG / "received.json"
    told.write_text(json.dumps({"from": f"{MOODLE}/work.ipynb"}))
    words = ("--form", "moodle", "--to", tmp_path / "back.zip")
    status, out, _ = feedback(*words)
    assert status == 0 and "Moodle cannot tell whose these pages are: ben, cleo.\n" in out
    assert "Send each of them the page yourself" in out
    assert "cannot tell" not in feedback(*words, "--student", "ada")[1]


def test_an_lms_takes_one_lesson_at_a_time(course, feedback, tmp_path):
    other = "01_kernel_regression"
    (course / "solutions" / other).symlink_to(ROOT / "solutions" / other)
    folder = course / "class/autograded/ada" / other
    folder.mkdir()
    (folder / f"{other}.ipynb").write_text("{}")
    (course / "class/submitted/ada" / other).mkdir()
    status, _, err = feedback("--form", "canvas", "--to", tmp_path / "back.zip")
    assert status == 1 and "choose one with --lesson" in err
    assert feedback("--form", "canvas", "--to", tmp_path / "back.zip", "--lesson", "00")[0] == 0
