"""A check that takes long says so once, on stdout, and which call it waits for."""

import contextlib
import io
import sys
import threading

import pytest
import torch
from torch import nn

from autograder import check
from autograder.checking import waiting_notice
from autograder.inside.answer import LocalAnswer
from tests.waiting import LONG

X = torch.zeros(2, 3)


class Stdout(io.StringIO):
    """An output that tells when something is written to it."""

    def __init__(self):
        super().__init__()
        self.said = threading.Event()

    def flush(self):
        self.said.set()


@pytest.fixture
def stdout():
    return Stdout()


class Alarm(threading.Timer):
    """A timer whose time is over when a test says so."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.over = threading.Event()

    def run(self):
        self.over.wait(LONG)
        if not self.finished.is_set():
            self.function(*self.args)

    def cancel(self):
        super().cancel()
        self.over.set()


@pytest.fixture
def late(monkeypatch, stdout):
    """A function that lets the time of the word be over, and waits until something was said."""
    alarms = []

    def make(*arguments):
        alarms.append(Alarm(*arguments))
        return alarms[-1]

    monkeypatch.setattr(waiting_notice.threading, "Timer", make)

    def over():
        alarms[-1].over.set()
        assert stdout.said.wait(LONG)

    return over


@contextlib.contextmanager
def word(stdout, seconds, target):
    """What is asked in the place of an answer."""
    with (
        contextlib.redirect_stdout(stdout),
        waiting_notice.word_after(seconds, "f", LocalAnswer(target)) as asked,
    ):
        yield asked


def test_the_call_is_named_once(stdout, late):
    def answer(x, scale=1.0):
        late()
        return x * scale

    with word(stdout, 6.0, answer) as asked:
        for _ in range(2):
            assert torch.equal(asked.call([X], {"scale": 2.0}).value, X)
    assert stdout.getvalue() == (
        "f: the check still runs after 6 s. It waits for your code, called with "
        "(tensor (2, 3) float32, scale=2.0).\n"
    )


def test_gradients_and_built_objects_are_named_too(stdout, late):
    class Waits(nn.Module):
        def forward(self, x):
            late()
            return x

    with word(stdout, 6.0, Waits) as asked:
        asked.build([], {}).gradients([X], {}, None)
    assert "waits for the gradients of your code, called with (tensor" in stdout.getvalue()


def test_no_call_is_named_that_has_returned(stdout, late):
    with word(stdout, 6.0, lambda x: x) as asked:
        asked.call([X], {})
        late()
    assert stdout.getvalue() == "f: the check still runs after 6 s.\n"


def test_what_is_quick_says_nothing_and_leaves_no_thread(stdout):
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt), word(stdout, LONG, abs) as asked:
        asked.call([X], {})
        raise KeyboardInterrupt
    assert not stdout.getvalue()
    assert threading.active_count() == before


def test_the_answer_behind_it_is_the_same(stdout):
    with word(stdout, LONG, abs) as asked:
        assert asked.target is abs


@pytest.mark.parametrize("variable", ["NBGRADER_EXECUTION", "AUTOGRADER_SEED"])
def test_only_in_a_notebook_that_somebody_reads(monkeypatch, variable):
    for name in ("NBGRADER_EXECUTION", "AUTOGRADER_SEED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert not waiting_notice.somebody_waits()
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert waiting_notice.somebody_waits()
    monkeypatch.setenv(variable, "1")
    assert not waiting_notice.somebody_waits()


@pytest.mark.parametrize("read", [True, False])
def test_a_check_in_a_notebook_says_it_before_the_verdict(monkeypatch, stdout, read):
    def softmax(scores, dim):
        if read:
            assert stdout.said.wait(LONG)
        return torch.softmax(scores, dim)

    softmax.__module__ = "__main__"
    monkeypatch.setattr(check, "somebody_waits", lambda: read)
    monkeypatch.setattr(check, "SECONDS", 0.01)
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(io.StringIO()) as stderr:
        check.softmax(softmax)
    said = stdout.getvalue().splitlines()
    assert len(said) == 1 + read
    assert said[-1] == "softmax: correct."
    assert not stderr.getvalue()
