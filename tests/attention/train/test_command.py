"""How every command that reads a run ends: with a sentence and a status."""

import argparse

import pytest

from attention.train.command import NOBODY_READS, status_of
from attention.train.runs.run_folder import RunFolderError


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (None, 3, ""),
        (RunFolderError("nothing here"), 1, "p: nothing here\n"),
        (ValueError("--beam 0\x1b[2J"), 1, "p: --beam 0[2J\n"),
        (FileNotFoundError(2, "No such file", "a.txt"), 1, "p: a.txt: No such file\n"),
        (BrokenPipeError(), NOBODY_READS, ""),
        (KeyboardInterrupt(), 130, "stopped for now\n"),
    ],
)
def test_an_end_is_a_status_and_at_most_a_sentence(capsys, error, status, said):
    def run(options):
        if error is not None:
            raise error
        return 3

    assert status_of("p", run, argparse.Namespace(), stopped="stopped for now") == status
    assert capsys.readouterr() == ("", said)


def test_a_fault_of_the_program_is_shown_whole():
    def run(options):
        raise IndexError("a bug")

    with pytest.raises(IndexError, match="a bug"):
        status_of("p", run, argparse.Namespace())
