"""Grading on a Dask cluster of real processes, one of which is killed in the middle."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from autograder import ROOT
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.grading.execution.task import Graded, WorkerLost
from autograder.grading.notebook.result import Result
from autograder.grading.running.cluster import _outcome
from tests.autograder.local_cluster import local_cluster
from tests.needs import needs

pytestmark = needs("distributed")
SLUG, STUDENTS = "00_getting_started", 12


@pytest.fixture
def course(tmp_path):
    """A course with the submissions of a dozen students, every third with a named mistake."""
    (tmp_path / "autograder").mkdir()
    shutil.copytree(ROOT / "solutions" / SLUG, tmp_path / "solutions" / SLUG)
    wrong = sample_class.wrong("softmax")
    for number in range(STUDENTS):
        answers = {"softmax": wrong} if number % 3 == 0 else {}
        notebook = sample_class.handed_in(SLUG, answers)
        sample_class.submit(notebook, tmp_path, f"student-{number:02}", SLUG)
    return tmp_path


@pytest.fixture
def cluster():
    """Address of a scheduler with two workers, and the workers' processes."""
    with local_cluster(workers=2) as found:
        yield found


class Again:
    """A future that had ended; its worker was lost before it told, and another does the work."""

    status = "lost"

    def exception(self):
        return None  # it waits until there is a result

    def result(self):
        return Graded("{}", Result("", "01"))


def test_what_was_lost_with_a_worker_is_waited_for_again():
    assert _outcome(Again()) == Graded("{}", Result("", "01"))


class Killed:
    """A future whose workers were ended, one after the other."""

    def result(self):
        from distributed.scheduler import KilledWorker  # slow to import

        raise KilledWorker("grade", None, 3)


def test_nobody_is_blamed_where_each_worker_was_killed():
    assert isinstance(_outcome(Killed()), WorkerLost)


def _reasons(course):
    found = (course / "class" / "autograded").glob(f"*/{SLUG}/reasons.json")
    return [json.loads(path.read_text()) for path in found]


def kill(worker):
    os.kill(worker, signal.SIGKILL)


def stand_still(worker):
    """As on a machine that sleeps."""
    os.kill(worker, signal.SIGSTOP)
    time.sleep(10)
    os.kill(worker, signal.SIGCONT)


@pytest.mark.serial
@pytest.mark.long
@pytest.mark.parametrize("disturb", [kill, stand_still])
def test_every_score_arrives_whatever_happens_to_one_of_two_workers(course, cluster, disturb):
    address, workers = cluster
    command = [sys.executable, "-m", "autograder.commands.cli", "grade"]
    command += ["--course", course, "--cluster", address]
    grading = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    while grading.poll() is None and not _reasons(course):
        time.sleep(0.05)
    disturb(workers[0].pid)
    said = grading.communicate(timeout=3600)[0]
    assert grading.returncode == 0, said
    expected = {f"student-{number:02}": 3 if number % 3 == 0 else 5 for number in range(STUDENTS)}
    assert {one["student"]: one["score"] for one in _reasons(course)} == expected


def test_a_scheduler_that_does_not_answer_is_one_clear_sentence(course, monkeypatch, capsys):
    """Nothing listens on port 1: the command says so and grades nothing."""
    monkeypatch.setattr("autograder.grading.running.cluster.CONNECT_SECONDS", 1)
    assert cli.main(["grade", "--course", str(course), "--cluster", "tcp://127.0.0.1:1"]) != 0
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in capsys.readouterr().err
    assert not _reasons(course)
