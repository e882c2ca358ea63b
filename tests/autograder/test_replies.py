"""What a reply can cost the grader: a sample of `python -m tests.autograder.replies`."""

import sys
from dataclasses import replace

import pytest

from autograder.checking import counterexamples
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.expect import CheckFailed
from autograder.inside.limits import DEFAULT, MIB
from tests.autograder.replies import harness, hostile
from tests.autograder.replies.__main__ import MOST_MIB, MOST_SECONDS

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the memory of a process is bounded on Linux only"
)

SAMPLE = [
    ("softmax", "odd_numbers", 0),
    ("softmax", "complex", 0),
    ("softmax", "eight_empty_axes", 0),
    ("softmax", "raises_odd", 0),
    ("softmax", "rows_of_nothing", 1),
    ("softmax", "a_huger_integer", 0),
    ("weighted_average", "pair_at_the_bound", 2),
    ("weighted_average", "long_dict", 0),
    ("weighted_average", "odd_texts", 0),
    ("SelfAttentionHead", "gradients_too_few", 0),
    ("LearnedBandwidth", "parameters_with_long_names", 0),
    ("LearnedBandwidth", "gradients_of_huge_shape", 0),
]


@pytest.mark.parametrize(("name", "kind", "after"), SAMPLE)
def test_a_reply_costs_the_grader_only_what_the_limits_allow(name, kind, after):
    outcome = harness.judge(registry.find(name), kind, after)
    assert outcome.hostile
    assert outcome.faults(MOST_MIB, MOST_SECONDS) == []


def test_a_right_answer_is_accepted_through_the_same_harness():
    outcome = harness.judge(registry.find("softmax"), "", 0)
    assert (outcome.verdict, outcome.hostile) == ("accepted", False)


@pytest.mark.parametrize(
    ("name", "kind"), [("bpe_decode", "bytes"), ("longformer_mask", "truth"), ("softmax", "turned")]
)
def test_what_comes_out_as_it_went_in_is_not_hostile(name, kind):
    outcome = harness.judge(registry.find(name), kind, 0)
    assert outcome.hostile == (name == "softmax")
    assert outcome.faults(MOST_MIB, MOST_SECONDS) == []


def test_all_that_one_check_is_told_is_bounded():
    """Each reply is small enough, but there are many of them."""
    limits = replace(DEFAULT, replies_bytes=MIB, frame_bytes=MIB)
    outcome = harness.judge(registry.find("softmax"), "odd_text", 0, limits)
    assert "had to be stopped" in outcome.reason
    assert "its results took more than 1 MiB in one check" in outcome.reason


def test_a_check_that_takes_too_much_memory_costs_its_exercise(monkeypatch):
    large = "autograder.grading.execution.execute.run_check"
    monkeypatch.setattr(large, lambda *_, **__: bytearray(512 * MIB))
    limits = replace(DEFAULT, own_bytes=256 * MIB)
    outcome = harness.judge(registry.find("softmax"), "", 0, limits)
    assert outcome.verdict == "refused"
    assert "takes too much memory over your results" in outcome.reason
    assert "more than 256 MiB" in outcome.reason


def test_an_input_for_which_there_is_too_little_memory_breaks_nothing():
    def short_of_memory(*_):
        raise MemoryError

    with pytest.raises(CheckFailed, match="larger than it needs to be"):
        counterexamples._outcome(short_of_memory, [1])


def test_every_kind_of_reply_can_be_drawn():
    assert len(set(hostile.KINDS)) == len(hostile.KINDS) > 60
