"""One hand-in, one failure: whatever one holds, everyone else's is graded, shown and reported."""

import contextlib
import io
import json
import re
import shutil
from unittest import mock

import pytest
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory

from autograder.commands import cli
from autograder.explaining import explanation
from autograder.grading import nbgrader_steps
from autograder.grading.classroom import gradebook
from autograder.grading.classroom.folders import Course
from autograder.grading.feedback import exporter
from autograder.grading.notebook import records
from autograder.grading.running import batch
from tests.autograder.small_class import SLUG, WRONG, grade, hand_in, kept, make_course, scores

RIGHT = ["ada", "zoe"]
MOST = 5
WORSE = "def softmax(scores, dim):\n    return scores"
# What stands in a first cell of a student's own, and in the cell of softmax.
CELLS = {
    "long-import": ("import attention." + "a" * 300, WORSE),
    "many-imports": ("import attention.a, attention.attention\n" * 5000, WORSE),
    "magics": ("%time\n" * 700, WORSE),
    "magics-within": ("", f"{WORSE}\n" + "%time 1\n" * 700),
    "deep": ("x = " + "(" * 5000, f"{WORSE}\ny = " + "-" * 50_000 + "1"),
    "attributes": ("", "def softmax(scores, dim):\n    return scores" + ".T" * 2000),
    "no-text": ("\0\ud800\u2028\x1b[2J", f"{WORSE}  # \ud800\x1b[2J\u202e"),
    "one-line": ('x = "%' + "0" * 40_000 + '"', WORSE),
    "raises": ("", "def softmax(scores, dim):\n    raise ValueError('\\ud800\\x1b[2J\\0' * 999)"),
    "ends": ("import os\nos._exit(3)", WORSE),
}
METADATA = {
    "kernel": {"kernelspec": {"display_name": ["\ud800"] * 99, "language": "python"}},
    "lesson": {"autograder": {"lesson": "\x1b" * 9999}},
    "deep-metadata": {"deep": json.loads("[" * 900 + "]" * 900)},
}
HOSTILE = [*CELLS, *METADATA, "odd-cells", "damaged", "its-own-reasons"]


def write(course, student, answer, first="", **more):
    """Hand in a notebook with this text in softmax's cell and, above all, a cell of its own."""
    hand_in(course, student, answers={"softmax": "MARKER"})
    path = Course(course).handed_in / student / SLUG / f"{SLUG}.ipynb"
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        if "".join(cell["source"]) == "MARKER":
            cell["source"] = answer
    own = {"cell_type": "code", "source": first, "metadata": {}, "outputs": [], "id": "own"}
    notebook["cells"].insert(0, {**own, "execution_count": None})
    notebook["metadata"] |= more
    path.write_text(json.dumps(notebook))
    return path


@pytest.fixture(scope="module")
def hostile_once(tmp_path_factory):
    course = make_course(tmp_path_factory.mktemp("hostile"))
    hand_in(course, *RIGHT)
    for student, (first, answer) in CELLS.items():
        write(course, student, answer, first)
    for student, metadata in METADATA.items():
        write(course, student, WORSE, **metadata)
    path = write(course, "odd-cells", WORSE)
    notebook = json.loads(path.read_text())
    names = [7, [], {"a": []}, "x" * 9999, "\ud800", "check_softmax\0"]
    odd = [{"cell_type": "code", "metadata": {"nbgrader": {"grade_id": one}}} for one in names]
    notebook["cells"] += [*odd, None, 7, [], "cell", {"source": [1, None]}]
    path.write_text(json.dumps(notebook))
    write(course, "damaged", WORSE).write_bytes(b"[" * 100_000)
    path = write(course, "its-own-reasons", WORSE)
    path.with_name("timestamp.txt").write_bytes(b"\xff\0 99999-99-99" * 50)
    reasons = course / "class" / "autograded" / "its-own-reasons" / SLUG / records.REASONS
    reasons.parent.mkdir(parents=True)
    exercises = [{"name": [], "score": "5", "max": None}]
    told = {"student": "ada", "lesson": "99_none", "exercises": exercises, "parts": {"a": 1}}
    reasons.write_text(json.dumps(told))
    grade_said = grade(course, "--preview", check=False), grade(course, check=False)
    return course, grade_said


@pytest.fixture
def hostile(hostile_once):
    return hostile_once[0]


def command(course, *words):
    """Run a command; returns (exit status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main([*words, "--course", str(course)])
    return status, out.getvalue(), err.getvalue()


@pytest.mark.long
def test_a_class_with_hostile_texts_is_graded_and_previewed(hostile_once):
    course, (preview, graded) = hostile_once
    assert (preview[2], graded[2]) == (0, 0), preview[1] + graded[1]
    assert f"{len(RIGHT) + len(HOSTILE)} would be graded for the first time." in preview[0]
    found = scores(course)
    assert {one: found[one] for one in RIGHT} == dict.fromkeys(RIGHT, MOST)
    assert found.keys() == {*RIGHT, *HOSTILE}
    assert all(found[one] < MOST for one in HOSTILE)
    assert all(kept(course, one).complete for one in HOSTILE)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", preview[0] + graded[0])


@pytest.mark.long
def test_everyone_of_it_has_a_page_and_a_place_in_the_report_and_the_grades(hostile, tmp_path):
    assert command(hostile, "feedback")[::2] == (0, "")
    for student in (*RIGHT, *HOSTILE):
        page = hostile / "class" / "feedback" / student / SLUG / f"{SLUG}.html"
        assert "Score: " in page.read_text()
    status, out, err = command(hostile, "report", "--to", str(tmp_path))
    assert (status, err) == (0, "") and f"{len(RIGHT) + len(HOSTILE)} students" in out
    assert command(hostile, "grades", "--to", str(tmp_path / "grades.csv"))[::2] == (0, "")
    assert all(one in (tmp_path / "grades.csv").read_text() for one in (*RIGHT, *HOSTILE))


@pytest.mark.long
@pytest.mark.parametrize("student", HOSTILE)
def test_each_of_it_is_explained_or_one_sentence_says_why_not(hostile, student):
    status, out, err = command(hostile, "explain", "00", "softmax", "--student", student)
    assert (bool(out), len(err.splitlines())) in ((True, 0), (False, 1))
    assert status == bool(err) and "report it" not in err
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", out + err)


# ---- whatever the grader did not foresee --------------------------------------------------------


@pytest.fixture(scope="module")
def fine_once(tmp_path_factory):
    course = make_course(tmp_path_factory.mktemp("fine"))
    hand_in(course, "ada", "eve", "zoe", answers=WRONG)
    return course


@pytest.fixture(scope="module")
def graded_once(fine_once, tmp_path_factory):
    course = shutil.copytree(fine_once, tmp_path_factory.mktemp("graded") / "c", symlinks=True)
    grade(course)
    return course


@pytest.fixture
def fine(fine_once, tmp_path):
    return shutil.copytree(fine_once, tmp_path / "course", symlinks=True)


@pytest.fixture
def graded(graded_once, tmp_path):
    return shutil.copytree(graded_once, tmp_path / "course", symlinks=True)


def trips(monkeypatch, holder, name, error=None):
    """Let a function raise where eve's hand-in is what it is given."""
    before = getattr(holder, name)

    def raising(*given, **named):
        if any(getattr(one, "student", "") == "eve" for one in given):
            raise error or ValueError("odd")
        return before(*given, **named)

    monkeypatch.setattr(holder, name, raising)


READING = [(batch.Dependencies, "of"), (Course, "read")]
WRITING = [(Course, "write_companions"), (gradebook.Book, "store")]


@pytest.mark.parametrize(("holder", "name"), [*READING, *WRITING])
def test_where_the_grader_trips_over_one_the_others_are_graded(fine, monkeypatch, holder, name):
    trips(monkeypatch, holder, name)
    for options in (["--preview"], []):
        out, err, status = grade(fine, *options, check=False)
        assert status == 1 and "ValueError: odd" in out + err
        assert [line for line in err.splitlines() if "eve" in line] == err.splitlines() != []
    assert kept(fine, "ada").complete and kept(fine, "zoe").complete
    monkeypatch.undo()
    assert "eve" in grade(fine)[0]  # and nobody else again
    assert len(set(scores(fine).values())) == 1


def test_a_score_that_is_half_stored_is_forgotten(fine, monkeypatch):
    store, checksum, whose = gradebook.Book.store, gradebook.utils.compute_checksum, []

    def noting(book, handed, notebook):
        whose.append(handed.student)
        return store(book, handed, notebook)

    def tripping(cell):
        if whose[-1:] == ["eve"]:
            raise ValueError("odd")
        return checksum(cell)

    monkeypatch.setattr(gradebook.Book, "store", noting)
    monkeypatch.setattr(gradebook.utils, "compute_checksum", tripping)
    assert grade(fine, check=False)[2] == 1
    assert scores(fine)["eve"] == 0 < scores(fine)["zoe"]


def test_where_it_trips_over_what_is_kept_that_one_is_graded_again(graded, monkeypatch):
    trips(monkeypatch, Course, "kept")
    out, err, status = grade(graded, check=False)
    assert status == 0 and "1 of 3 graded again: looking at what is kept of it: ValueError" in out
    assert "2 of 3 are graded and unchanged" in out


def test_a_page_that_cannot_be_made_costs_no_other(graded, monkeypatch):
    trips(monkeypatch, exporter, "_make")
    status, out, err = command(graded, "feedback")
    assert status == 1 and "2 pages made" in out
    assert err.startswith(f"no page for eve, {SLUG}: making it: ValueError: odd (")
    assert err.rstrip().endswith("please report it") and len(err.splitlines()) == 1


def test_a_command_on_one_hand_in_says_what_it_trips_over(graded, monkeypatch):
    monkeypatch.setattr(explanation, "explain", mock.Mock(side_effect=ValueError("odd")))
    status, out, err = command(graded, "explain", "00", "softmax", "--student", "eve")
    assert (status, out) == (1, "") and "softmax of eve: ValueError: odd" in err
    assert len(err.splitlines()) == 1


def test_a_damaged_grading_is_named_in_the_report(graded, tmp_path):
    path = graded / "class" / "autograded" / "eve" / SLUG / records.REASONS
    path.write_text(path.read_text().replace('"score": ', '"score": []or'))
    status, out, err = command(graded, "report", "--to", str(tmp_path))
    assert status == 1 and "2 students" in out and f"left out: eve, {SLUG}: " in err


def test_nbgrader_grades_the_others(fine, monkeypatch, nbgraders_steps_here):
    trips(monkeypatch, nbgrader_steps.Course, "read")
    config = Course(fine).config
    config.CourseDirectory.assignment_id = SLUG
    step = Autograde(coursedir=CourseDirectory(config=config), config=config)
    with pytest.raises(Exception, match="errors on the above failures"):
        step.start()
    assert scores(fine)["ada"] == scores(fine)["zoe"] > 0
    assert kept(fine, "ada") and kept(fine, "zoe") and not kept(fine, "eve")


@pytest.mark.parametrize("error", [MemoryError("full"), OSError(28, "no room", "a file")])
def test_what_is_everyones_stops_everything(fine, monkeypatch, error):
    trips(monkeypatch, batch.Dependencies, "of", error)
    if isinstance(error, MemoryError):
        with pytest.raises(MemoryError):
            grade(fine, check=False)
    else:
        assert "the disk is full" in grade(fine, check=False)[1]
    assert not kept(fine, "zoe")


def test_a_page_asks_the_gradebook_and_says_what_that_refuses(graded, monkeypatch):
    from sqlalchemy.exc import OperationalError

    error = OperationalError("", {}, Exception("database is locked"))
    monkeypatch.setattr(exporter, "_make", mock.Mock(side_effect=error))
    status, _, err = command(graded, "feedback")
    assert status == 1 and "cannot be used: database is locked; something else is writing" in err
    assert len(err.splitlines()) == 1
