"""Every step that reads a hand-in's texts either works or says in a sentence what is wrong."""

import contextlib
import json
import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autograder import ROOT, CourseError
from autograder.grading.classroom import misplaced
from autograder.grading.classroom.sample_class import solved
from autograder.grading.execution.assemble import assemble
from autograder.grading.notebook import (
    filenames,
    records,
    submission,
)
from autograder.grading.notebook.submission import Cell, Submission
from autograder.reporting import faults
from autograder.reporting.results import Row
from autograder.terminal_output import printable
from tests.autograder.small_class import SLUG

MASTER = solved(SLUG)
PIECES = [
    *("import attention.", "from attention import ", "a", ".", "attention", "\n", "\0", "\ud800"),
    *("(", ")", "[", "{", "-", "not ", "lambda: ", ".a", "()", "def f():\n ", "if 1:", "'''", '"'),
    *("%time ", "%%time\n", "!ls\n", "f?\n", ", f x\n", "x = %time\n", ">>> ", "\\\n", "9", "1e9"),
    *("\u202e", "\u2028", "\u00a0", "e\u0301", "\U0001f600", "  got       ", "…, …, ", "\t", "#"),
]
ANYTHING = st.characters(categories=["L", "M", "N", "P", "S", "Z", "Cc", "Cf", "Co", "Cn", "Cs"])
RUNS = st.builds(
    lambda piece, count: piece * count, st.sampled_from(PIECES), st.sampled_from([1, 2, 99, 3000])
)
TEXTS = st.lists(RUNS | st.text(ANYTHING, max_size=20), max_size=5).map("".join)
NONSENSE = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


def as_answer(text):
    """A notebook in which ``text`` stands above an answer, below it, and in its names."""
    answer = Cell("code", f"def softmax(scores, dim):\n    return f(scores)\n{text}", "softmax")
    own = [Cell(kind, text, text) for kind in ("code", "markdown")]
    return assemble(MASTER, Submission([*own, answer, *own]))


def examples(text):
    wrong = {"name": "softmax", "score": 0, "max": 1, "reason": text}
    rows = [Row(text[:128], SLUG, [wrong])] * 2
    return faults.faults(rows, {text[:128]: {"softmax": text}}, {})


STEPS = {
    "definitions": lambda text: submission.defined(Submission([Cell("code", text)])),
    "assembling": lambda text: json.dumps(as_answer(text)),
    "an answer": lambda text: printable(faults.bare(text)),
    "an example": faults.example,
    "a reason": examples,
    "a student's name": lambda text: (filenames.plain(text), filenames.not_an_id(text)),
    "who is meant": lambda text: list(misplaced.strangers({"ada": True}, [HANDED(text)])),
    "a file's name": filenames.original,
}


def HANDED(text):  # noqa: N802
    return type("Named", (), {"student": text})


@pytest.mark.parametrize("step", STEPS)
@given(text=TEXTS)
@example(text="%time\n" * 700)
@example(text="def f():\n    return x" + ".a" * 3000)
@example(text="(" * 5000)
def test_a_text_of_any_kind_is_read_or_refused(step, text):
    text = text.encode("utf-8", "replace").decode() if "name" not in step else text
    with contextlib.suppress(CourseError):
        STEPS[step](text)


DEEP = ["[" * 100_000, '{"a":' * 3000 + "1" + "}" * 3000, "[" * 900 + "]" * 900, "9" * 9999, ""]


@given(value=NONSENSE, text=TEXTS | st.sampled_from(DEEP))
def test_metadata_and_files_of_any_kind_are_read_or_refused(tmp_path_factory, value, text):
    cell = {"cell_type": "code", "source": value, "metadata": value}
    named = {"cell_type": "code", "source": "", "metadata": {"nbgrader": {"grade_id": value}}}
    about = {"kernelspec": value, "autograder": {"lesson": value}}
    cells = [cell, named, value]
    for notebook in (
        value,
        {"nbformat": 4, "cells": cells, "metadata": about},
        {"nbformat": value},
    ):
        json.dumps(assemble(MASTER, submission.parse(notebook)))
    folder = tmp_path_factory.mktemp("hand-in")
    kept = {"student": "ada", "lesson": SLUG, "exercises": [], "problem": value, "parts": value}
    odd = {
        **kept,
        "problem": "",
        "parts": {},
        "exercises": [{"name": value, "score": value}, value],
    }
    for content in (text, json.dumps(value), json.dumps(kept), json.dumps(odd)):
        for name in (f"{SLUG}.ipynb", "timestamp.txt", records.REASONS):
            (folder / name).write_bytes(content.encode("utf-8", "surrogatepass"))
        submission.read(folder / f"{SLUG}.ipynb")
        records.moment(folder)
        found = records.load(folder)
        assert found is None or isinstance(found.problem, str) and isinstance(found.parts, dict)


def test_a_link_to_no_possible_path_is_no_submission(tmp_path):
    from autograder.grading.classroom.folders import Course

    (tmp_path / "class" / "submitted" / "ada" / SLUG).mkdir(parents=True)
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    for place in (tmp_path / "class" / "submitted" / "eve", tmp_path / "class" / "submitted/ada/x"):
        os.symlink("a" * 300, place)
    assert [one.student for one in Course(tmp_path).submissions()] == ["ada"]
