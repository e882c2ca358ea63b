"""What a lesson's students can import is tried as an answer to each of its exercises."""

import subprocess
import sys

import pytest
import torch

from attention.provided.data.numbers import Corpus
from autograder import ROOT
from autograder.building.lesson import find
from autograder.checking.toolbox import registry
from tests.autograder.building.gates import in_sight

SLUG = "02_sequence_to_sequence"


@pytest.fixture
def loss():
    return registry.of_lesson("sequence_to_sequence")["masked_cross_entropy"]


def token_loss(logits, target):
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), target, ignore_index=0)


def leaves(*args):
    raise SystemExit


def never_ends(*args):
    while True:
        pass


def told(monkeypatch, item, seen, given=None):
    monkeypatch.setattr(in_sight, "GIVEN", {item.name: given or {}})
    return list(in_sight.gate([item], seen, seed=11))


def test_what_earns_a_part_is_told_unless_there_is_a_reason(monkeypatch, loss):
    seen = {"a.token_loss": token_loss, "a.leaves": leaves, "a.endless": never_ends}
    monkeypatch.setattr(in_sight, "SECONDS", 0.2)
    told_of = "masked_cross_entropy: a.token_loss is in sight of its students, and earns points"
    assert told(monkeypatch, loss, seen) == [told_of]
    assert told(monkeypatch, loss, seen, {"a.token_loss": "its text names it"}) == []
    (stale,) = told(monkeypatch, loss, {}, {"a.token_loss": "its text names it"})
    assert "GIVEN names a.token_loss" in stale


def test_in_sight_is_what_the_grading_shows():
    seen = in_sight.in_sight(SLUG)
    modules = {one.__module__ for one in seen.values()}
    assert "attention.experiments.sequence_to_sequence" in modules
    assert "attention.kernel_regression" in modules  # its students wrote it
    assert "attention.sequence_to_sequence" not in modules
    assert Corpus in seen.values() and Corpus.batch in seen.values()


@pytest.mark.long
@pytest.mark.every
@pytest.mark.parametrize("slug", [path.stem for path in find()])
def test_nothing_that_students_see_answers_an_exercise(slug, tmp_path):
    told = tmp_path / "told"
    command = [sys.executable, "-m", in_sight.__name__, slug, str(told)]
    subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True)
    assert told.read_text(encoding="utf-8") == "done"
