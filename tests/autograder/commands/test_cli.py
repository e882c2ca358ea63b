"""The command line: whatever goes wrong reaches the user as one clear sentence."""

import re
import runpy

import pytest

from autograder import settings
from autograder.building import lesson
from autograder.commands import build as build_command
from autograder.commands import check, cli


@pytest.fixture
def says(capsys):
    """Run the command line; returns the exit status and what it said, on stderr only."""

    def run(*words):
        status = cli.main(words)
        out, err = capsys.readouterr()
        assert out == ""
        return status, err

    return run


COMMANDS = [["build"], ["build", "--check"], ["verify"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_lesson(says, command):
    names = ", ".join(path.stem for path in lesson.find())
    assert says(*command, "7777") == (1, f"no lesson is called '7777'; there are: {names}\n")


def test_an_interrupt(says, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(build_command, "build", interrupted)
    assert says("build", "--check") == (130, "stopped\n")


def test_a_file_that_an_error_names_commands_no_terminal(says, monkeypatch):
    def fail(options):
        raise PermissionError(13, "no", "a\x1b[2J\u202eb.ipynb")

    monkeypatch.setattr(check, "run", fail)
    status, said = says("check", "x.ipynb")
    assert status == 1 and said.startswith("a[2Jb.ipynb: you may not read or change this")


def test_a_folder_with_a_course_of_its_own_is_not_worked_on_by_another(says, tmp_path, monkeypatch):
    path = tmp_path / "autograder" / "commands" / "cli.py"
    path.parent.mkdir(parents=True)
    path.write_text("")
    monkeypatch.chdir(tmp_path)
    status, said = says("plan")
    assert status == 1 and f"{tmp_path} has a course of its own" in said
    path.unlink()
    assert cli.main(["plan"]) == 0


def test_a_damaged_autograder_toml_is_a_sentence(tmp_path, monkeypatch):
    (tmp_path / settings.FILE).write_text("library = [")
    monkeypatch.setattr("autograder.ROOT", tmp_path)
    with pytest.raises(SystemExit, match=r"autograder.toml does not say what course this is \("):
        runpy.run_path(settings.__file__)


def test_the_list_of_commands_begins_with_those_of_a_term(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    out = capsys.readouterr().out
    assert all(f"\n  {name}" in out for name in cli.MODULES)
    assert re.findall(r"^  (\w+)  ", out.partition("A term")[2], re.MULTILINE)[:6] == [
        *("init", "release", "receive", "grade", "feedback", "grades")
    ]
