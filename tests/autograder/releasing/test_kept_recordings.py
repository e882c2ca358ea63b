"""What answers reply is recorded once, and again when something changes that it depends on."""

import pytest
import torch

from autograder import CourseError
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import Check
from autograder.releasing import record
from tests.autograder.half import half


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The recordings that were made: names of lessons, in a course of one module."""
    made = []

    def recordings(lesson):
        made.append(lesson)
        return f"{lesson} {len(made)}".encode()

    (tmp_path / "data").mkdir()
    (tmp_path / "module.py").write_text("first = 1\n")
    monkeypatch.setattr(record, "recordings", recordings)
    monkeypatch.setattr(record, "ROOT", tmp_path)
    monkeypatch.setattr(record.imports, "modules", lambda *_, **__: [tmp_path / "module.py"])
    return made


def test_nothing_is_recorded_twice(made):
    assert record.kept_recordings("tokens") == record.kept_recordings("tokens") == b"tokens 1"
    assert record.kept_recordings("decoding") == b"decoding 2"


@pytest.mark.parametrize("name", ["module.py", "data/words.txt"])
def test_what_changed_is_recorded_again_and_replaces_the_old(made, tmp_path, name):
    record.kept_recordings("tokens")
    (tmp_path / name).write_text("second = 2\n")
    assert record.kept_recordings("tokens") == b"tokens 2"
    assert len(list((tmp_path / ".cache" / "recorded").iterdir())) == 1


def test_another_pytorch_may_reply_otherwise(made, monkeypatch):
    record.kept_recordings("tokens")
    monkeypatch.setattr(record.torch, "__version__", "9.9")
    assert record.kept_recordings("tokens") == b"tokens 2"


def test_of_a_mistake_the_replies_are_kept_that_are_not_a_right_answers():
    item = registry.of_lesson("getting_started")["softmax"]
    kept = record.recording(item, 1).mistakes
    assert [name for name, _, _ in kept] == [one.name for one in registry.mistakes(item)]
    assert all(any(replies) for _, _, replies in kept)
    assert any(None in replies for _, _, replies in kept)


def test_a_check_that_asks_otherwise_each_time_cannot_be_recorded():
    calls = iter((2, 1))  # as if it drew how many from elsewhere

    def check(student, draw):
        for _ in range(next(calls)):
            student(draw.normal(2, 3))

    with pytest.raises(CourseError, match="half asks something else when the same replies come"):
        record.recording(Check("half", "nowhere", check, reference=half), 1)


def test_an_answer_that_draws_is_recorded_as_one_that_draws(known):
    def noisy(x):
        return x + torch.rand_like(x)

    def check(student, draw):
        student(draw.normal(2, 3))

    item = Check("half", "nowhere", check, reference=noisy)
    ((kind, _, _, drew), *_) = record.recording(item, 1).right
    assert (kind, drew) == ("value", True)
