"""A small graded class with wrong answers, and the command that explains them."""

import contextlib
import io
import json
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
    "another-value": WRONG,
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
    "helper": {"softmax": "def softmax(scores, dim):\n    return uniform_average(scores)"},
}
LOST = {  # the exercise that each of them lost
    name: next(iter(given)) for name, given in ANSWERS.items() if name != "another-value"
}


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


@pytest.fixture
def run(course, sandbox):
    """Run the command; returns (exit status, standard output, standard error)."""

    def command(student, exercise, *options, lesson="00", folder=course):
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.object(
                sandboxes, "Sandbox", lambda *_, **__: contextlib.nullcontext(sandbox)
            ),
        ):
            words = ["explain", lesson, exercise, "--student", student, "--course", str(folder)]
            status = cli.main([*words, *options])
        return status, out.getvalue(), err.getvalue()

    return command


@pytest.fixture(scope="package")
def known():
    """What the command said as JSON of the course, which no test changes."""
    return {}


@pytest.fixture
def told(run, known):
    """What the command says as JSON."""

    def command(student, *options):
        if (student, *options) not in known:
            status, out, err = run(student, LOST[student], "--json", *options)
            assert status == 0, err
            known[student, *options] = out
        return json.loads(known[student, *options])

    return command


@pytest.fixture
def changed(course, tmp_path):
    """A copy of the course that a test may change."""
    return shutil.copytree(course, tmp_path / "course", symlinks=True)
