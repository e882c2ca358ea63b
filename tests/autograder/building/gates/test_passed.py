"""What has to be verified again: a lesson of which something that the gates read has changed."""

import pytest

from autograder import lessons
from autograder.building.gates import passed
from autograder.commands import cli
from tests.autograder.mini import SLUG


@pytest.fixture
def recorded(built):
    """A course whose lesson has passed all gates."""
    passed.record(SLUG, built.root)
    return built


def test_a_lesson_that_never_passed_is_to_be_verified(built):
    assert passed.changed(root=built.root) == [SLUG]


@pytest.mark.parametrize("kind", ["source", "library", "checks", "mistakes", "solution", "lesson"])
def test_any_file_of_a_lesson_counts(recorded, kind):
    assert passed.changed(root=recorded.root) == []
    path = getattr(recorded, kind)
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert passed.changed(root=recorded.root) == [SLUG]
    passed.record(SLUG, recorded.root)
    assert passed.changed(root=recorded.root) == []


def test_what_checks_are_made_of_counts_and_what_they_are_not_does_not(recorded):
    for name, counts in (("commands/grade.py", False), ("checking/toolbox/expect.py", True)):
        path = recorded.root / "autograder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
        assert passed.changed(root=recorded.root) == [SLUG] * counts


@pytest.mark.parametrize("name", ["data/numbers.json", "constraints.txt"])
def test_what_a_check_may_read_counts_and_so_do_the_versions(recorded, name):
    path = recorded.root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("1\n")
    assert passed.changed(root=recorded.root) == [SLUG]


def test_an_instructor_s_own_lesson_is_noted_where_git_does_not_look(recorded, monkeypatch):
    ours = (recorded.root / passed.RECORD).read_text()
    (recorded.root / "constraints.txt").write_text("1\n")
    monkeypatch.setattr(lessons, "OWN", SLUG)
    passed.record(SLUG, recorded.root)
    assert passed.changed(root=recorded.root) == []
    assert (recorded.root / passed.RECORD).read_text() == ours


def test_where_nothing_has_changed_the_command_says_so(monkeypatch, capsys):
    monkeypatch.setattr(passed, "changed", lambda _: [])
    assert cli.main(["verify", "--changed"]) == 0
    assert capsys.readouterr().out == "All lessons are as they were when they passed all gates.\n"
