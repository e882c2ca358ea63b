"""A build that fails: the file and line, and everything as it was."""

import errno
import os

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.building import build as module
from autograder.building.build import BuildError, build
from autograder.building.generate_assignment import ReleaseError
from autograder.building.source import SourceError
from tests.waiting import LONG


def broken_replace(*_):
    raise OSError(errno.ENOSPC, "no space left on device")


def stderr(cell):
    cell.outputs.append(nbformat.v4.new_output("stream", name="stderr", text="Warning: x\n"))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            lambda made: made.edit(made.source, "demo=true", "demo"),
            SourceError,
            "source/00_mini.py:27: unknown marker 'demo'",
        ),
        (
            lambda made: made.edit(made.library, "    # exercise: about 2", "    # Exercise: 2"),
            SourceError,
            "attention/mini.py:19: write the marker as",
        ),
        (
            lambda made: made.edit(made.library, "# Multiplying", "### BEGIN SOLUTION"),
            ReleaseError,
            "00_mini: nbgrader could not release it: encountered nested begin solution statements",
        ),
    ],
)
def test_a_failing_build_leaves_everything_as_it_was(built, client, change, error, words):
    change(built)
    before = built.generated()
    with pytest.raises(error) as raised:
        build(root=built.root)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert built.generated() == before


def test_a_cell_that_fails_leaves_everything_as_it_was(built, client):
    built.edit(built.source, "by hand", "with care")
    before = built.generated()
    for fault, words in ((stderr, "writes to stderr"), (lambda cell: 1 / 0, "kernel stopped")):
        client.fault = staticmethod(fault)
        with pytest.raises(BuildError, match=words):
            build(root=built.root)
        assert built.generated() == before


def test_a_disk_that_is_full_leaves_everything_as_it_was(built, client, monkeypatch):
    built.edit(built.source, "by hand", "with care")
    before = built.generated()
    monkeypatch.setattr(os, "replace", broken_replace)
    with pytest.raises(OSError, match="no space left"):
        build(root=built.root)
    assert built.generated() == before


def test_lessons_are_read_before_any_is_built(two, client):
    two.edit(two.source, "The end.", "The very end.")
    (two.root / "source" / "01_more.py").write_text("")
    before = two.generated()
    with pytest.raises(SourceError, match="01_more.py:1: the file must begin"):
        build(root=two.root)
    assert client.started == []
    assert two.generated() == before


# cells that fail in a real kernel

FAULTS = {
    "raises": ("x = 1\n1 / 0", "the cell raises ZeroDivisionError: division by zero"),
    "stderr": (
        "import sys\nprint('careful', file=sys.stderr)",
        "the cell writes to stderr, which nbgrader scores as 0: careful",
    ),
    "warns": ("import warnings\nwarnings.warn('old')", "the cell writes to stderr, which nbgrade"),
    "shows": (
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    get_ipython().showtraceback()",
        "the cell shows an error, which nbgrader scores as 0: ZeroDivisionError: division by zero",
    ),
    "dies": ("import os\nos._exit(1)", "the kernel stopped: "),
    "hangs": ("import time\ntime.sleep(1_000_000)", "the cell takes more than 2 s"),
}


class Patient(NotebookClient):
    """Waits for all but the cell that hangs: for a kernel, too, which has as long as a cell."""

    def __init__(self, notebook, timeout, **settings):
        def seconds(cell):
            return timeout if "sleep" in cell.source else LONG

        patient = {"startup_timeout": LONG, "iopub_timeout": LONG, "timeout_func": seconds}
        super().__init__(notebook, **{**settings, **patient})


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=[pytest.mark.long] * (fault in ("warns", "shows", "hangs")))
        for fault in FAULTS
    ],
)
def test_a_cell_that_fails_names_file_and_line(course, fault, monkeypatch):
    code, words = FAULTS[fault]
    text = f"# %% [markdown]\n# # 00 · Title?\n\n# %%\nprint('fine')\n\n# %%\n{code}\n"
    text += "\n# %%\nprint('not reached')\n"
    course.source.write_text(text)
    if fault == "hangs":
        monkeypatch.setattr(module, "CELL_TIMEOUT", 2)
        monkeypatch.setattr(module.nbclient, "NotebookClient", Patient)
    with pytest.raises(BuildError) as raised:
        build(root=course.root)
    assert str(raised.value).startswith(f"source/00_mini.py:7: {words}")
    assert course.generated() == {}
