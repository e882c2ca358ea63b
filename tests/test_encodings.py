"""Every command prints in every encoding that a terminal or a pipe may have."""

import contextlib
import io
import json
import os
import subprocess
import sys

import pytest

import attention.search.__main__
import attention.train.__main__
import attention.translate.__main__
import attention.write.__main__
from autograder.commands import cli
from autograder.grading.classroom import sample_class

SLUG = "05_scaled_dot_product_attention"
WRONG = """\
def scaled_dot_product_attention(q, k, v):
    raise ValueError("√d_k … ● 注意")
"""
encodings = pytest.mark.parametrize("encoding", ("cp1252", "cp437", "cp850", "cp932", "ascii"))


def run(encoding, main, *words):
    """The exit status of a program and what it printed, read back from the bytes."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding, "strict")
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        try:
            status = main(list(words))
        except SystemExit as ended:
            status = ended.code
    stream.flush()
    return status, stream.buffer.getvalue().decode(encoding)


OTHERS = (
    attention.search.__main__,
    attention.train.__main__,
    attention.translate.__main__,
    attention.write.__main__,
)


@encodings
@pytest.mark.parametrize(
    ("main", "words"),
    [*((cli.main, [name]) for name in cli.MODULES), *((other.main, []) for other in OTHERS)],
)
def test_the_help_of_every_program(encoding, main, words):
    status, said = run(encoding, main, *words, "--help")
    assert status == 0 and f"usage: {' '.join(['autograder', *words]) if words else ''}" in said


@encodings
def test_reasons_and_errors_with_signs_of_every_kind(encoding, tmp_path):
    path = tmp_path / SLUG / f"{SLUG}.ipynb"
    path.parent.mkdir()
    notebook = sample_class.handed_in(SLUG, {"scaled_dot_product_attention": WRONG})
    path.write_text(json.dumps(notebook), encoding="utf-8")
    status, said = run(encoding, cli.main, "check", str(path))
    assert status == 1 and "your code raised ValueError" in said
    status, said = run(encoding, cli.main, "check", str(tmp_path / "√注.ipynb"))
    assert status == 1 and "there is no such file" in said


def test_status_through_a_pipe():
    command = [sys.executable, "-m", "autograder", "status"]
    environment = {**os.environ, "PYTHONIOENCODING": "cp437"}
    done = subprocess.run(command, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode("cp437")
