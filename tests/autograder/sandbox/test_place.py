"""Where an answer fails is found beside the student's code, which can only be silent about it."""

import pytest

from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.sandbox.clock import Allowance

SEED = 5
ANSWER = """\
import torch

def powers(scores, dim):
    print("noise")
    return torch.exp(scores - scores.amax(dim, keepdim=True))

def softmax(scores, dim):
    return powers(scores, dim) / powers(scores, dim).sum(0, keepdim=True)
"""
LOSES = "from autograder.inside import answer\nanswer.LocalAnswer.places = lambda *_: {}\n"


def judged(box, cell):
    process = box.start(Allowance(60, 10))
    process.run(cell)
    process.allow(10)
    return run_check(registry.find("softmax"), process.resolve("softmax")[0], SEED)


def test_a_place_is_found_beyond_the_wall(box):
    assert "line 8, `0` in `powers(scores, dim).sum(0, keepdim=True)`" in judged(box, ANSWER).place


@pytest.mark.parametrize(
    "does",
    ["exit()", "[[]] * 10**5", "[{'place': [10**9], 'text': '\\x1b[2J' * 10**4}] * 100", "7"],
)
def test_whoever_meddles_with_it_is_told_the_rest(box, does):
    failure, meddled = judged(box, ANSWER), judged(box, ANSWER + LOSES.format(does))
    assert meddled.place == ""
    meddled.place = failure.place
    assert str(meddled) == str(failure)


def test_whoever_takes_for_ever_is_told_the_rest(box, monkeypatch):
    monkeypatch.setattr("autograder.sandbox.process.PLACE_SECONDS", 0.5)
    hangs = "def hang(*_):\n    while True: pass\nanswer.LocalAnswer.places = hang\n"
    assert judged(box, ANSWER + LOSES.partition("answer.L")[0] + hangs).what
