"""One hand-in, one failure: whatever one holds, everyone else's is graded, shown and reported."""

import contextlib
import io
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


def command(course, *words):
    """Run a command; returns (exit status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main([*words, "--course", str(course)])
    return status, out.getvalue(), err.getvalue()


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
