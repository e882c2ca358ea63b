"""The grader's own time for one check: it ends, the student's is not counted, the rest goes on."""

import threading
import time

import pytest

from autograder.checking.run_check import OutOfOwnTime, run_check
from autograder.grading.classroom import sample_class
from autograder.grading.execution.check_limits import OwnTime, Waiting
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


def here(work):
    """What ``work`` gives or raises."""
    try:
        return work()
    except BaseException as error:
        return error


def on_a_thread(work):
    """The same on another thread, as in a Dask worker."""
    found = []
    thread = threading.Thread(target=lambda: found.append(here(work)))
    thread.start()
    thread.join()
    return found[0]


anywhere = pytest.mark.parametrize("where", [here, on_a_thread])


@anywhere
@pytest.mark.parametrize("swallowed", [False, True])
def test_own_work_is_ended_and_again_where_the_exception_is_swallowed(where, swallowed):
    def work():
        with OwnTime(0.2):
            try:
                busy(10)
            except BaseException:
                if not swallowed:
                    raise
                busy(10)

    start = time.process_time()
    assert isinstance(where(work), OutOfOwnTime)
    assert time.process_time() - start < 8


@anywhere
def test_the_time_of_an_answer_does_not_count_and_nothing_is_bounded_behind(where):
    def work():
        with OwnTime(0.3) as clock:
            answer = Waiting(Slow(), clock)
            called = answer.build([], {}).call(0.5), answer.call(0.5)
        busy(0.5)
        return called

    assert where(work) == ("called", "called")


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
