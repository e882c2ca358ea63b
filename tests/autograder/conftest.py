"""Fixtures of the grading's tests: a small course to build, verify and break."""

import pytest
from hypothesis import settings

from autograder.build import build
from tests.autograder import mini

settings.register_profile("course", deadline=None, max_examples=40)  # machines differ in speed
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
