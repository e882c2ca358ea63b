"""Gate 7: a mutant that survives needs a reason, and a reason a mutant that survives."""

import signal
import time

import pytest

from autograder.building.gates import mutants
from autograder.building.gates.verify import verify
from autograder.checking.diagnosis.mutations import Mutant
from autograder.checking.toolbox.registry import Check
from tests.autograder.verdicts import changes

KEY = '"doubled: with one term left out: result = factor * values": "zero is 0",\n'


def test_a_survivor_without_a_reason_fails(built):
    built.edit(built.mistakes, KEY, "")
    (verdict,) = verify(root=built.root)
    (failure,) = changes(vars(verdict)).pop("failures")
    assert failure == (
        "the check accepts a mutant of line 21, or a reason is missing in EQUIVALENT: "
        "'doubled: with one term left out: result = factor * values'"
    )
    assert verdict.alive == 1


def test_a_reason_gone_stale_fails(built):
    built.edit(built.mistakes, KEY, KEY + '    "doubled: gone: return 1": "why",\n')
    (verdict,) = verify(root=built.root)
    assert changes(vars(verdict)) == {
        "failures": [
            "EQUIVALENT holds a mutant that does not survive, or is none: 'doubled: gone: return 1'"
        ]
    }


def test_a_class_that_is_never_asked_for_and_a_misspelt_excuse_fail(built):
    built.edit(built.checks, '{"ones": "the factor', '{"onse": "the factor')
    (verdict,) = verify(root=built.root)
    first, second = verdict.failures
    assert first.startswith("Scale: its check never asks for ones (in one call an axis has size 1)")
    assert second == "Scale: without='onse' is no class"


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
    assert (
        mutants._rejected(item, Mutant("", 1, "", target, "key", "", None, None), 7, excused)
        == rejected
    )


def test_the_alarm_goes_with_the_mutant():
    item = Check("answer", "nowhere", lambda student, draw: student(1))
    assert not mutants._rejected(item, Mutant("", 1, "", abs, "key", "", None, None), 7, ())
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
