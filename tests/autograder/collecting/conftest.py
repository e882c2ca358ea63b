"""A course of two lessons whose notebooks are not run: what is collected is not graded here."""

import contextlib
import io
import json

import pytest
from nbgrader.api import Gradebook

from autograder.commands import cli
from autograder.grading.classroom.folders import Course

FIRST, SECOND = "00_mini", "01_more"


def notebook(lesson=FIRST, answer="", said=True):
    """The bytes of a notebook of a lesson, which may or may not say so itself."""
    metadata = {"nbgrader": {"grade_id": f"answer_{lesson}", "grade": False, "solution": True}}
    cell = {"cell_type": "code", "source": answer, "metadata": metadata, "outputs": []}
    own = {"autograder": {"lesson": lesson}} if said else {}
    return json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": own, "cells": [cell]}
    ).encode()


@pytest.fixture(scope="session")
def gradebook(tmp_path_factory):
    """An empty gradebook: making one takes longer than a test."""
    root = tmp_path_factory.mktemp("empty")
    (root / "class").mkdir()
    Gradebook(Course(root).db_url, "attention").close()
    return (root / "class" / "gradebook.db").read_bytes()


@pytest.fixture
def root(tmp_path, gradebook):
    """The folder of the course."""
    made = tmp_path / "course"
    for lesson in (FIRST, SECOND):
        path = made / "solutions" / lesson / f"{lesson}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(notebook(lesson))
    (made / "class").mkdir()
    (made / "class" / "gradebook.db").write_bytes(gradebook)
    return made


@pytest.fixture
def book(root):
    """The course's gradebook."""
    with Gradebook(Course(root).db_url, "attention") as opened:
        yield opened


@pytest.fixture
def run(root):
    """Run a command on the course; returns (exit status, standard output, standard error)."""

    def command(*words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main([*map(str, words), "--course", str(root)])
        return status, out.getvalue(), err.getvalue()

    return command


@pytest.fixture
def came(tmp_path):
    """A folder of files that came back; call it with contents by path."""
    folder = tmp_path / "came"

    def make(files):
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder

    return make


@pytest.fixture
def submitted(root):
    """Contents of what lies in class/submitted/, by path."""

    def look(below="submitted"):
        top = root / "class" / below
        return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*.ipynb")}

    return look
