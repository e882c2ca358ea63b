"""A machine without time or memory: what it fails is tried again, alone, and costs no points."""

import dataclasses
import json
import signal
import time

import nbformat
import pytest
from traitlets.config import Config

from autograder.course import configure
from autograder.grading.classroom import sample_class
from autograder.grading.execution.assemble import assemble
from autograder.grading.execution.task import Graded, Task, Tries, WorkerLost
from autograder.grading.notebook.result import Result
from autograder.grading.notebook.submission import parse
from autograder.grading.running.pool import Pool
from autograder.inside.limits import DEFAULT
from autograder.self_study import check
from tests.autograder.small_class import SLUG, Here, grade, hand_in, kept, make_course, run, scores

BUSY = "it was not done after 100 s, in which this machine gave it 0.5 s of processor time"


def outcome(doubt=""):
    return Graded("{}", Result("", SLUG, doubt=doubt))


class TestTries:
    def test_what_went_well_stands(self):
        tries = Tries()
        assert tries.stands("ada", Task(SLUG, "{}"), outcome()) == outcome()
        assert not tries.again

    @pytest.mark.parametrize("first", [outcome(BUSY), WorkerLost(BUSY)])
    def test_what_may_be_the_machines_doing_is_tried_again_and_said(self, first):
        tries, task = Tries(), Task(SLUG, "{}")
        assert tries.stands("ada", task, first) is None
        assert tries.again == [("ada", task)]
        assert tries.stands("ada", task, outcome()) == outcome(doubt=BUSY)

    def test_a_machine_that_fails_it_twice_leaves_it_ungraded(self):
        tries, task = Tries(), Task(SLUG, "{}")
        tries.stands("ada", task, outcome(BUSY))
        found = tries.stands("ada", task, outcome(BUSY))
        assert isinstance(found, WorkerLost)
        assert f"twice: {BUSY}; grade it again when less runs here" in str(found)


@pytest.mark.long
@pytest.mark.busy
def test_what_is_tried_again_is_so_when_all_else_is_done(monkeypatch):
    """Two tasks in doubt: the pool yields the others first, then these, one at a time."""
    seen, real = [], Pool._round

    def round_of(self, waiting, count, tries):
        waiting = list(waiting)
        seen.append((count, [key for key, _ in waiting]))
        yield from real(self, iter(waiting), count, tries)

    monkeypatch.setattr(Pool, "_round", round_of)
    hopeless = dataclasses.replace(DEFAULT, patience=1e-9)  # the first look round is too late

    def task(softmax, limits):
        notebook = sample_class.handed_in(SLUG, {"softmax": softmax} if softmax else {})
        text = json.dumps(assemble(sample_class.solved(SLUG), parse(notebook)))
        return Task(SLUG, text, "auto", limits)

    slow = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    with Pool(2) as workers:
        given = [("slow", task(slow, hopeless)), ("ada", task("", DEFAULT))]
        found = list(workers.map(given))
    assert seen == [(2, ["slow", "ada"]), (1, ["slow"])]
    assert [key for key, _ in found] == ["ada", "slow"]
    assert sum(one.score for one in found[0][1].result.exercises) == 5
    assert "this machine had too little time or memory for it, twice" in str(found[1][1])


def test_the_line_of_whoever_was_graded_again_says_so(tmp_path, monkeypatch):
    course = make_course(tmp_path)
    hand_in(course, "ada")

    def in_doubt(self, tasks):
        for key, one in tasks:
            graded = run(one)
            graded.result.doubt = BUSY
            yield key, graded

    monkeypatch.setattr(Here, "map", in_doubt)
    said, _, _ = grade(course)
    assert f"graded again, alone: {BUSY}" in said
    assert (scores(course), kept(course, "ada").doubt) == ({"ada": 5}, BUSY)


@pytest.mark.busy
class TestOwnComputer:
    """`autograder check` and Validate on a student's own computer, which does other things, too."""

    def lines(self, tmp_path, monkeypatch, source, **limits):
        for name, seconds in limits.items():
            monkeypatch.setattr(check, name, seconds)
        path = tmp_path / f"{SLUG}.ipynb"
        nbformat.write(sample_class.handed_in(SLUG, {"softmax": source}), path)
        return {line.name: line for line in check.check_notebook(path)}

    def test_an_endless_loop_is_stopped_after_its_processor_time(self, tmp_path, monkeypatch):
        found = self.lines(tmp_path, monkeypatch, "while True: pass", CELL_SECONDS=1)
        assert "it took more than 1 s of processor time" in found["softmax"].message
        assert found["weighted_average"].earned == 2

    @pytest.mark.long
    def test_who_waits_for_ever_is_asked_for_what(self, tmp_path, monkeypatch):
        source = "import time\nwhile True: time.sleep(1000)"
        found = self.lines(tmp_path, monkeypatch, source, PATIENCE=2)
        assert "it was not done after 2 s: does it wait for something?" in found["softmax"].message

    @pytest.mark.long
    def test_who_is_given_little_time_is_waited_for(self, tmp_path, monkeypatch):
        """Two seconds pass, half a second of processor time is allowed, a tenth of it is used."""
        right = sample_class.solved(SLUG)
        (source,) = (
            cell.source
            for cell in right.cells
            if cell.metadata.get("nbgrader", {}).get("grade_id") == "softmax"
        )
        found = self.lines(
            tmp_path, monkeypatch, f"import time\ntime.sleep(2)\n{source}", CELL_SECONDS=1.5
        )
        assert found["softmax"].earned == found["softmax"].points

    def test_validate_waits_ten_times_as_long_as_nbgrader_alone(self, tmp_path):
        c = configure(Config(), tmp_path)
        assert (c.Execute.timeout, c.Execute.iopub_timeout) == (300, 300)


@pytest.mark.busy
def test_signals_of_the_time_limit_leave_nothing_behind():
    before = signal.getsignal(signal.SIGALRM)
    with check._time_limit():
        time.sleep(0.01)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
