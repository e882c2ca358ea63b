"""What a student's process keeps of a cell when it has run."""

import gc

import pytest

from autograder.inside import server

CHARS = 1000  # of output
FAILS = """
import weakref
class Large: pass
def take():
    global seen
    kept = Large()
    seen = weakref.ref(kept)
    try:
        raise KeyError
    except KeyError as error:
        {last}
take()
"""


@pytest.mark.parametrize("last", ["raise", "raise ValueError", "raise ValueError from error"])
def test_what_a_failed_cell_held_is_let_go_before_the_next(last):
    answers = server.Server(None, server.shell(), CHARS)
    gc.disable()  # else it depends on when garbage is collected
    try:
        assert "error" in answers._run(FAILS.format(last=last))
        assert answers._run("seen() is None") == {"shown": "True"}
    finally:
        gc.enable()
