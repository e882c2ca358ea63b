"""A check that takes long says so once, on stdout."""

import contextlib
import io
import sys
import threading

import pytest
import torch

from autograder import check
from autograder.checking import waiting_notice
from tests.waiting import LONG


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


def test_what_is_quick_says_nothing_and_leaves_no_thread(stdout):
    before = threading.active_count()
    with (
        contextlib.redirect_stdout(stdout),
        pytest.raises(KeyboardInterrupt),
        waiting_notice.word_after(LONG, "f"),
    ):
        raise KeyboardInterrupt
    assert not stdout.getvalue()
    assert threading.active_count() == before


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
    assert said[:-1] == ["softmax: the check still runs after 0.01 s."] * read
    assert said[-1] == "softmax: correct."
    assert not stderr.getvalue()
