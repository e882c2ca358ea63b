"""A result is made again exactly when something that it depends on has changed."""

import dataclasses
import json
import shutil

import pytest

from autograder import ROOT, cell_metadata, lessons
from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.gradebook import Book
from autograder.grading.execution.task import Graded
from autograder.grading.notebook import records
from autograder.grading.notebook.result import Exercise, Result
from autograder.grading.running import result_dependencies
from autograder.grading.running.batch import Batch
from autograder.inside.limits import DEFAULT, OWN
from autograder.settings import FILE
from tests.autograder.small_class import SLUG

TRANSLATED = "03_bahdanau_attention"  # uses trained models
STUDENTS = ["ada", "ben"]


def full_marks(task, sandbox="bubblewrap"):
    """What a worker gives for right answers, without running them."""
    notebook, exercises = json.loads(task.notebook), []
    for cell in notebook["cells"]:
        if cell_metadata.run(cell) == cell_metadata.OUTSIDE:
            name, points = cell_metadata.exercise(cell), cell_metadata.points(cell)
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "correct"}]
            exercises.append(Exercise(name, points, points))
    result = Result("", task.lesson, exercises, "", 0.1, sandbox, task.limits.as_dict())
    result.care = task.care
    return Graded(json.dumps(notebook), result)


def reasons(course, **options):
    """Who would be graded now, and why."""
    where = Course(course)
    with Book(where) as book:
        made = Batch(where, book, where.submissions(), "auto", **options)
        assert made.waiting.keys() == made.reasons.keys()
        return {(one.lesson, one.student): reason for one, reason in made.reasons.items()}


def grade(course, sandbox="bubblewrap", count=None, **options):
    """Grade the first ``count`` that wait; returns the students."""
    where = Course(course)
    with Book(where) as book:
        made = Batch(where, book, where.submissions(), "auto", **options)
        tasks = list(made.tasks())[:count]
        return [made.keep(one, full_marks(task, sandbox)).student for one, task in tasks]


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory):
    """A graded class of two lessons."""
    course = tmp_path_factory.mktemp("class")
    for slug in (SLUG, TRANSLATED):
        shutil.copytree(ROOT / "solutions" / slug, course / "solutions" / slug)
        for student in STUDENTS:
            sample_class.submit(sample_class.handed_in(slug), course, student, slug)
    assert len(grade(course)) == 4
    return course


@pytest.fixture
def graded(graded_once, tmp_path):
    return shutil.copytree(graded_once, tmp_path / "class")


@pytest.fixture(scope="module")
def copied_once(tmp_path_factory):
    """A copy of the course's own code and data."""
    folder = tmp_path_factory.mktemp("code")
    for kind in ("attention", "autograder"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / kind, folder / kind, ignore=ignored)
    (folder / "data").symlink_to(ROOT / "data")
    shutil.copy(ROOT / FILE, folder)
    return folder


@pytest.fixture
def code(copied_once, monkeypatch):
    """The copy, to be changed by ``touch``, which is undone."""
    monkeypatch.setattr(result_dependencies, "ROOT", copied_once)
    yield copied_once
    while TOUCHED:
        path, text = TOUCHED.popitem()
        path.write_bytes(text)


TOUCHED = {}  # what stood in the files that are changed


def touch(path):
    """Change a file by a comment."""
    TOUCHED.setdefault(path, path.read_bytes())
    with open(path, "a", encoding="utf-8") as stream:
        stream.write("\n# changed\n")


BOTH = {SLUG, TRANSLATED}
CODE = [
    ("autograder/checks/getting_started.py", {SLUG}, "the checks"),
    ("autograder/mistakes/getting_started.py", {SLUG}, "the named mistakes"),
    ("autograder/checks/bahdanau_attention.py", {TRANSLATED}, "the checks"),
    ("autograder/checking/run_check.py", BOTH, "the code that checks"),
    ("autograder/inside/answer.py", BOTH, "the sandbox"),
    ("autograder/sandbox/bubblewrap.py", BOTH, "the sandbox"),
    ("autograder/grading/execution/assemble.py", BOTH, "the code that grades"),
    ("autograder/grading/notebook/submission.py", BOTH, "the code that grades"),
    ("autograder/cell_metadata.py", BOTH, "the code that grades"),
    ("attention/bahdanau_attention.py", {TRANSLATED}, "the library"),
    ("attention/sequence_to_sequence.py", {TRANSLATED}, "the library"),  # of a lesson between both
    ("attention/provided/measuring/summary.py", BOTH, "the library"),  # a cell may import it
    ("autograder/files.py", BOTH, "the code that grades"),
    (FILE, BOTH, "the code that grades"),
    # What no result of these lessons depends on.
    ("attention/transformer.py", set(), ""),  # of a later lesson: it cannot be imported
    ("autograder/checks/kernel_regression.py", set(), ""),
    ("autograder/commands/grade.py", set(), ""),
    ("autograder/grading/running/batch.py", set(), ""),
]


@pytest.mark.parametrize(("path", "regraded", "words"), CODE)
def test_a_change_of_the_code(graded_once, code, path, regraded, words):
    touch(code / path)
    expected = {(slug, one): f"{words} changed" for slug in regraded for one in STUDENTS}
    assert reasons(graded_once) == expected


def test_what_is_graded_again_is_up_to_date(graded, code):
    assert reasons(graded) == {}
    touch(code / "autograder" / "checks" / "getting_started.py")
    assert grade(graded) == STUDENTS
    assert reasons(graded) == {}


def test_a_change_of_the_data_counts(graded_once, code, tmp_path, monkeypatch):
    for kind in ("attention", "autograder", FILE):
        (tmp_path / kind).symlink_to(code / kind)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "weights").write_text("1")
    monkeypatch.setattr(result_dependencies, "ROOT", tmp_path)
    said = reasons(graded_once)
    assert said == {(lesson, one): "the data changed" for lesson in BOTH for one in STUDENTS}


def change_notebook(path, change):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    change(notebook)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def of_master(words):
    def change(course, edit):
        change_notebook(lessons.notebook(course, "solutions", SLUG), edit)

    return change, {(SLUG, one): words for one in STUDENTS} if words else {}


def of_submission(words):
    def change(course, edit):
        change_notebook(lessons.notebook(course, "class/submitted/ada", SLUG), edit)

    return change, {(SLUG, "ada"): words} if words else {}


def add_text(notebook):
    notebook["cells"][0]["source"] = "other words"


def add_output(notebook):
    shown = {"output_type": "stream", "name": "stdout", "text": "seen"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [shown]


def note(notebook):
    notebook["metadata"]["autograder"]["digest"] = "another"


@pytest.mark.parametrize(
    ("where", "edit"),
    [
        (of_master("the solved notebook or its points changed"), add_text),
        (of_master(""), add_output),
        (of_master(""), note),
        (of_submission("the submission changed"), add_text),
        (of_submission(""), add_output),
    ],
)
def test_a_change_of_a_notebook(graded, where, edit):
    change, expected = where
    change(graded, edit)
    assert reasons(graded) == expected


def test_a_change_of_the_time_of_submission(graded):
    folder = lessons.notebook(graded, "class/submitted/ben", SLUG).parent
    (folder / "timestamp.txt").write_text("2031-01-02 03:04:05 UTC")
    assert reasons(graded) == {(SLUG, "ben"): "the submission changed"}


@pytest.mark.parametrize("limit", [one.name for one in dataclasses.fields(DEFAULT)])
def test_a_change_of_the_limits(graded_once, limit):
    other = dataclasses.replace(DEFAULT, **{limit: getattr(DEFAULT, limit) + 1})
    assert set(reasons(graded_once, limits=other).values()) == {"the limits changed"}


def test_several_changes_are_one_reason(graded_once, code):
    touch(code / "autograder" / "checks" / "bahdanau_attention.py")
    touch(code / "attention" / "bahdanau_attention.py")
    assert set(reasons(graded_once).values()) == {"the checks and the library changed"}


def test_less_of_a_sandbox_than_asked_for(graded):
    assert reasons(graded, walls=OWN) == {}  # made in a sandbox, and good for every policy
    grade(graded, sandbox="none", regrade=True)
    assert reasons(graded) == {}
    assert set(reasons(graded, walls=OWN).values()) == {"graded without a sandbox before"}
    assert len(grade(graded, walls=OWN)) == 4
    assert reasons(graded, walls=OWN) == {}


def test_reasons_json_says_how_it_was_graded(graded):
    path = lessons.notebook(graded, "class/autograded/ada", SLUG).parent / records.REASONS
    said = json.loads(path.read_text())
    assert said["sandbox"] == "bubblewrap"
    assert said["limits"] == DEFAULT.as_dict()
    assert said["parts"].keys() == result_dependencies.PARTS.keys()


def test_a_result_of_an_older_version(graded):
    path = lessons.notebook(graded, "class/autograded/ada", SLUG).parent / records.REASONS
    said = json.loads(path.read_text())
    old = {key: said[key] for key in ("student", "lesson", "problem", "seconds", "exercises")}
    path.write_text(json.dumps({**old, "digest": "0123", "score": 5, "max": 5}))
    assert reasons(graded) == {(SLUG, "ada"): "graded by nbgrader or an older version before"}


def test_a_graded_notebook_that_is_gone_is_made_again(graded):
    (graded / "class" / "gradebook.db").unlink()
    lessons.notebook(graded, "class/autograded/ada", SLUG).unlink()
    assert reasons(graded) == {(SLUG, "ada"): "the graded notebook is gone or damaged"}


def test_a_regrading_that_was_stopped_is_ended_by_the_next_run(graded):
    assert len(grade(graded, count=1, regrade=True)) == 1
    assert list(reasons(graded).values()) == ["--regrade asks for it"] * 3
    assert len(grade(graded)) == 3
    assert reasons(graded) == {}
    assert set(reasons(graded, regrade=True).values()) == {"--regrade asks for it"}
