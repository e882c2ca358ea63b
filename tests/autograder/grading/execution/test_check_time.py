"""The grader's own time for one check: it ends, the student's is not counted, the rest goes on."""

import threading
import time

import pytest

from autograder.checking.run_check import run_check
from autograder.grading.classroom import sample_class
from autograder.grading.execution.check_limits import OutOfOwnTime, OwnTime, Waiting
from autograder.grading.notebook.submission import parse
from autograder.inside.limits import Limits
from autograder.sandbox.sandbox import Sandbox
from tests.autograder.one import grade_submission

SLUG = "00_getting_started"


def busy(seconds):
    """Use the CPU for so long."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


class Slow:
    """An answer that keeps this process busy."""

    def call(self, seconds, **how):
        busy(seconds)
        return "called"

    def build(self, args, kwargs, **how):
        return self


def test_own_work_is_ended():
    start = time.process_time()
    with pytest.raises(OutOfOwnTime), OwnTime(0.2):
        busy(10)
    assert time.process_time() - start < 5


def test_where_the_exception_is_swallowed_it_comes_again():
    with pytest.raises(OutOfOwnTime), OwnTime(0.1):
        try:
            busy(10)
        except BaseException:
            busy(10)


def test_the_time_of_an_answer_does_not_count():
    with OwnTime(0.3) as clock:
        answer = Waiting(Slow(), clock)
        assert answer.build([], {}).call(0.5) == "called"
        assert answer.call(0.5) == "called"
        with pytest.raises(OutOfOwnTime):
            busy(10)


def on_a_thread(work):
    """What ``work`` gives or raises on another thread, as in a Dask worker."""
    found = []

    def run():
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_another_thread_is_ended_as_well():
    def work():
        with OwnTime(0.2):
            busy(10)

    start = time.process_time()
    assert isinstance(on_a_thread(work), OutOfOwnTime)
    assert time.process_time() - start < 5


def test_on_another_thread_too_the_time_of_an_answer_does_not_count():
    def work():
        with OwnTime(0.3) as clock:
            called = Waiting(Slow(), clock).call(0.6)
        busy(0.5)  # behind it, nothing is bounded
        return called

    assert on_a_thread(work) == "called"


def test_where_a_thread_swallows_the_exception_it_comes_again():
    def work():
        with OwnTime(0.1):
            try:
                busy(10)
            except BaseException:
                busy(10)

    start = time.process_time()
    assert isinstance(on_a_thread(work), OutOfOwnTime)
    assert time.process_time() - start < 8


def test_a_check_that_takes_too_long_costs_its_exercise_and_no_other(monkeypatch):
    def slowly(item, *rest, **how):
        return busy(30) if item.name == "softmax" else run_check(item, *rest, **how)

    monkeypatch.setattr("autograder.grading.execution.execute.run_check", slowly)
    with Sandbox(SLUG, "auto", Limits(own_seconds=2.0)) as box:
        submission = parse(sample_class.handed_in(SLUG))
        result = grade_submission(sample_class.solved(SLUG), submission, box)[1]
    assert [one.score for one in result.exercises] == [1, 0, 2]
    reason = result.exercises[1].reason
    assert reason.startswith("softmax: the check takes too long over your results")
    assert "more than 2 s" in reason
