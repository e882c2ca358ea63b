"""What a check draws decides: results of another grading are refused, whatever the exercise."""

import importlib

import pytest

from autograder.building.lesson import find
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from tests.autograder.attacks.guesses import Replayed, recorded

LESSONS = [path.stem.partition("_")[2] for path in find()]
BY_HAND = {"trace_beam_search"}  # numbers are asked for, and nothing is drawn
CHECKS = [
    item
    for lesson in LESSONS
    for item in registry.of_lesson(lesson).values()
    if item.has_one_right_answer  # else nothing is drawn: any input that shows a fault is right
    and item.name not in BY_HAND
]
# One stage of each is judged by what the answer's own replies say of one another.
RELATIONAL = {"EncoderLayer", "DecoderLayer", "batch_by_tokens"}
FIRST = {item.lesson: item for item in reversed(CHECKS)}  # those that CI asks


@pytest.mark.long
@pytest.mark.parametrize(
    "item",
    [
        pytest.param(item, id=item.name, marks=[pytest.mark.every] * (item not in FIRST.values()))
        for item in CHECKS
    ],
)
def test_results_of_another_grading_are_refused(item):
    right = getattr(importlib.import_module(f"attention.{item.lesson}"), item.name)
    earlier = recorded(item, right, seed=1)
    assert run_check(item, Replayed(iter(earlier)), 1) is None  # the replay itself is faithful
    for seed in (2, 3, 4):
        failure = run_check(item, Replayed(iter(earlier)), seed, explain=False)
        assert failure.cost == 1 or failure.lost and item.name in RELATIONAL, failure.costs
