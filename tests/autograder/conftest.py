"""Fixtures of the grading's tests: a small course to build, verify and break."""

import functools
import os
import shutil
import subprocess
import sys

import nbgrader.api
import pytest
from hypothesis import settings

from autograder import ROOT
from autograder.building import build as build_module
from autograder.building.build import build
from autograder.building.gates.verify import verify
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.grading.nbgrader_steps import RunInSandbox
from autograder.inside.answer import LocalAnswer
from tests.autograder import mini
from tests.autograder.half import HALF
from tests.autograder.mini_files import FILES
from tests.autograder.small_class import Here
from tests.waiting import LONG

# For every new gradebook nbgrader runs a program that prints the version of its tables: three
# seconds, a hundred times, for what never changes.
nbgrader.api.get_alembic_version = functools.cache(nbgrader.api.get_alembic_version)

settings.register_profile("course", settings.get_profile("unhurried"), max_examples=40)
settings.load_profile("course")


@pytest.fixture
def course(tmp_path):
    """The hand-written files of a small course; nothing is built."""
    return mini.Course(tmp_path / "course").write()


@pytest.fixture(scope="session")
def built_once(tmp_path_factory):
    """The small course, built with a real kernel. Shared: copy it before changing anything."""
    made = mini.Course(tmp_path_factory.mktemp("built") / "course").write()
    with pytest.MonkeyPatch.context() as patch:
        mini.install(made, patch)
        made.report = build(root=made.root)
    mini.uninstall()
    return made


@pytest.fixture
def built(built_once, tmp_path, monkeypatch):
    """A built small course of the test's own, whose checks and mistakes can be imported."""
    made = built_once.copy(tmp_path / "course")
    mini.install(made, monkeypatch)
    yield made
    mini.uninstall()


@pytest.fixture
def client(monkeypatch):
    """Run cells without a kernel; the list of lessons run, and ``fault`` to break a cell."""
    monkeypatch.setattr(build_module.nbclient, "NotebookClient", mini.Client)
    monkeypatch.setattr(mini.Client, "started", [])
    monkeypatch.setattr(mini.Client, "fault", None)
    return mini.Client


@pytest.fixture
def verdict(built, client):
    """Build the changed course without a kernel, and verify it; returns the verdict as a dict."""

    def run():
        build(root=built.root)
        (found,) = verify(root=built.root)
        return vars(found)

    return run


@pytest.fixture
def known(monkeypatch):
    """The list of stored answers to ``half``, empty; no module is imported for them."""
    answers = []
    monkeypatch.setattr(registry, "stored_answers", lambda item: answers)
    return answers


@pytest.fixture
def judge(known):
    """Run the check of ``half`` on an answer; returns the CheckFailed, or None."""

    def run(answer, item=HALF, seed=7):
        return run_check(item, LocalAnswer(answer), seed, told={})

    return run


@pytest.fixture
def two(course, client):
    """A course of two lessons, built."""
    for name, text in FILES.items():
        if "mini" in name:
            path = course.root / name.replace("00_mini", "01_more").replace("mini", "more")
            path.write_text(text.replace("mini", "more"), encoding="utf-8")
    build(root=course.root)
    assert client.started == ["00_mini", "01_more"]
    client.started.clear()
    return course


@pytest.fixture
def nbgraders_steps_here(monkeypatch):
    """Let nbgrader's autograde, called in this process, grade in it instead of in a worker."""
    monkeypatch.setattr(RunInSandbox, "_pools", [Here(1)])


@pytest.fixture
def nbgrader(built):
    """Run an nbgrader command in the small course; returns what it said."""
    shutil.copy(ROOT / "nbgrader_config.py", built.root)

    def run(*words):
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *words],
            cwd=built.root,
            env={**os.environ, "JUPYTER_PREFER_ENV_PATH": "1"},
            capture_output=True,
            text=True,
            timeout=LONG,
        )
        return done.stdout + done.stderr

    return run
