"""How long a mutant may take."""

import signal
import time

import pytest

from autograder.building.gates import mutants
from autograder.building.gates.mutations import Mutant
from autograder.checking.toolbox.registry import Check


def slow(x):
    start = time.process_time()
    while time.process_time() < start + 0.4:
        pass


def endless(x):
    while True:
        pass


@pytest.mark.parametrize("target, excused, rejected", [
    (endless, (), True),
    (slow, (), True),  # which might be a machine that is busy with other things,
    (slow, ("key",), False),  # so the time of one with a reason is not looked at
])  # fmt: skip
def test_what_takes_long_is_rejected_unless_it_is_excused(monkeypatch, target, excused, rejected):
    item = Check("answer", "nowhere", lambda student, draw: student(1))
    monkeypatch.setattr(mutants, "SECONDS", 0.2)
    assert mutants._rejected(item, Mutant("", 1, "", target, "key"), 7, excused) == rejected


def test_the_alarm_goes_with_the_mutant():
    item = Check("answer", "nowhere", lambda student, draw: student(1))
    assert not mutants._rejected(item, Mutant("", 1, "", abs, "key"), 7, ())
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
