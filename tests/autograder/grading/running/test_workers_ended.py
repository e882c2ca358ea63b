"""Workers that are killed: nobody else loses anything, and nobody is blamed for it."""

import csv
import json
import pickle

import pytest

from autograder import CourseError
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.execution.assemble import assemble
from autograder.grading.execution.task import Task
from autograder.grading.nbgrader_steps import RunInSandbox
from autograder.grading.notebook.submission import parse
from autograder.grading.running.pool import Pool, WorkerLost, WorkFailed
from tests.autograder.small_class import (
    SLUG,
    Here,
    grade,
    hand_in,
    kept,
    make_course,
    run,
    scores,
)

KILL = "__import__('os').kill(__import__('os').getpid(), 9)"


class Deadly(str):
    """A notebook that kills the worker that receives it."""

    def __reduce__(self):
        return eval, (KILL,)


def task(notebook=None):
    """The task of grading right answers, or that notebook."""
    if notebook is None:
        solved = sample_class.solved(SLUG)
        notebook = json.dumps(assemble(solved, parse(sample_class.handed_in(SLUG))))
    return Task(SLUG, notebook, "auto")


def points(graded):
    return sum(one.score for one in graded.result.exercises)


@pytest.mark.long
def test_a_worker_has_its_next_task_while_the_last_outcome_is_written_down():
    drawn = []

    def tasks():
        for name in ("ada", "ben", "cleo", "dan", "eva"):
            drawn.append(name)
            yield name, task()

    with Pool(1) as workers:
        outcomes = workers.map(tasks())
        assert next(outcomes)[0] == "ada"
        assert workers._busy() == 1
        assert len(drawn) <= 3  # one that was graded, one that is, and one that is prepared
        assert [name for name, _ in outcomes] == ["ben", "cleo", "dan", "eva"]
        assert workers._busy() == 0


@pytest.mark.long
def test_nbgrader_autograde_outlives_its_worker_too():
    step = RunInSandbox(sandbox="auto")
    try:
        with pytest.raises(CourseError, match="could not be graded: its worker was ended"):
            step._graded(task(Deadly()))
        assert points(step._graded(task())) == 5
    finally:
        RunInSandbox._pools.pop().__exit__()


def test_nobody_is_blamed_for_a_worker_that_was_killed(tmp_path, monkeypatch):
    course = make_course(tmp_path)
    hand_in(course, "ada", "ben")

    def lose_ben(self, tasks):
        for key, one in tasks:
            lost = key.student == "ben"
            yield key, WorkerLost("its worker was ended by SIGKILL") if lost else run(one)

    with monkeypatch.context() as patch:
        patch.setattr(Here, "map", lose_ben)
        _, told, status = grade(course, check=False)
    assert status == 1
    assert "not graded: ben" in told
    assert scores(course) == {"ada": 5, "ben": 0}
    reason = kept(course, "ben").problem
    assert reason == "this could not be graded: its worker was ended by SIGKILL"
    to = str(tmp_path / "grades.csv")
    assert cli.main(["feedback", "--course", str(course)]) == 0
    assert [Course(course).feedback(Handed(SLUG, name)).is_file() for name in ("ada", "ben")] == [
        True,
        False,
    ]
    assert cli.main(["grades", "--course", str(course), "--to", to]) == 1
    with open(to, newline="") as stream:
        rows = {row[0]: row[-1] for row in csv.reader(stream)}
    assert (rows["ada"], rows["ben"]) == ("5", "")
    grade(course)  # and the next run tries again
    assert scores(course) == {"ada": 5, "ben": 5}


def test_the_graders_own_failure_is_one_line_and_its_trace_is_kept(tmp_path, monkeypatch):
    course = make_course(tmp_path)
    hand_in(course, "ada")

    def fail(self, tasks):
        for key, _ in tasks:
            try:
                json.loads("?\n" * 3)
            except ValueError as error:
                yield key, pickle.loads(pickle.dumps(WorkFailed.by(error)))

    with monkeypatch.context() as patch:
        patch.setattr(Here, "map", fail)
        told, _, _ = grade(course, check=False)
    sentence = (
        "this could not be graded, and the grader is to blame: json.decoder.JSONDecodeError: "
        "Expecting value: line 1 column 1 (char 0) (decoder.py, line "
    )
    assert f"0/5  {sentence}" in told
    result = kept(course, "ada")
    assert all(one.reason.startswith(sentence) for one in result.exercises)
    first, second, *_ = result.problem.splitlines()
    assert first.startswith(sentence) and second == "Traceback (most recent call last):"
    assert '"?\\n" * 3' in result.problem


def test_a_check_that_raises_is_named_with_its_line():
    code = compile("\n\n1 / 0", "autograder/checks/my_lesson.py", "exec")
    with pytest.raises(ZeroDivisionError) as raised:
        exec(code)
    assert str(WorkFailed.by(raised.value)).endswith("zero (checks/my_lesson.py, line 3)")
