"""A small graded class with wrong answers, and the command that explains them."""

import contextlib
import io
import re
import shutil
from unittest import mock

import pytest

from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.sandbox import sandbox as sandboxes
from autograder.sandbox.sandbox import Sandbox
from tests.autograder.small_class import SLUG, WRONG, grade, hand_in, make_course

ANSWERS = {
    "value": WRONG,
    "shape": {"uniform_average": "def uniform_average(values):\n    return values.mean(0)[None]"},
    "raises": {
        "weighted_average": "def weighted_average(weights, values):\n    return values @ weights"
    },
    "care": {"uniform_average": "def uniform_average(values):\n    return values.mean(0).float()"},
    "inputs": {
        "uniform_average": "def uniform_average(values):\n    values /= len(values)\n"
        "    return values.sum(0)"
    },
    "precision": {
        "softmax": "def softmax(scores, dim):\n    return torch.softmax(scores * 1.00003, dim)"
    },
    "ends": {"softmax": "def softmax(scores, dim):\n    import os\n    os._exit(3)"},
    "syntax": {"softmax": "def softmax(scores, dim:\n    return"},
}
LOST = {name: next(iter(given)) for name, given in ANSWERS.items()}  # the exercise of each


@pytest.fixture(scope="package")
def course(tmp_path_factory):
    made = make_course(tmp_path_factory.mktemp("complaints"))
    for student, answers in ANSWERS.items():
        hand_in(made, student, answers=answers)
    hand_in(made, "right")
    sample_class.submit(sample_class.blank(SLUG), made, "blank", SLUG)
    sample_class.submit(sample_class.blank(SLUG), made, "damaged", SLUG).write_text("{")
    grade(made)
    hand_in(made, "late")
    return made


@pytest.fixture(scope="package")
def sandbox():
    with Sandbox(SLUG, "auto") as made:
        yield made


@pytest.fixture(scope="package")
def run(course, sandbox):
    """Run the command; returns (exit status, standard output, standard error)."""

    def command(student, exercise, lesson="00", folder=course):
        out, err = io.StringIO(), io.StringIO()
        here = contextlib.nullcontext(sandbox)
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.object(sandboxes, "Sandbox", lambda *_, **__: here),
        ):
            words = ["explain", lesson, exercise, "--student", student, "--course", str(folder)]
            status = cli.main(words)
        return status, out.getvalue(), err.getvalue()

    return command


@pytest.fixture(scope="package")
def told(run):
    """What the command says, of the course that no test changes: by title."""
    known = {}

    def command(student):
        if student not in known:
            status, out, err = run(student, LOST[student])
            assert status == 0, err
            known[student] = sections(out)
        return known[student]

    return command


def sections(out):
    """What is printed, by title; of the call also its "program", what it "prints", and "right"."""
    head, *parts = re.split(r"^── (.*) ──\n", out, flags=re.MULTILINE)
    found = {"head": head.strip(), **dict(zip(parts[::2], parts[1::2], strict=True))}
    note, _, rest = found["The call"].partition("\n\n")
    program, *shown = re.split(r"^(?:It|With the course's answer it) prints\n", rest, flags=re.M)
    indented = [re.sub("^    ", "", text, flags=re.M).strip() for text in shown]
    return found | {"note": " ".join(note.split()), "program": program, "shown": indented}


@pytest.fixture
def changed(course, tmp_path):
    """A copy of the course that a test may change."""
    return shutil.copytree(course, tmp_path / "course", symlinks=True)
