"""The command line: whatever goes wrong reaches the user as one clear sentence."""

import functools
import subprocess
import sys

import pytest

from autograder import CourseError
from autograder.building import build as build_module
from autograder.building import lesson
from autograder.building.build import build
from autograder.building.gates.verify import verify
from autograder.building.generate_assignment import ReleaseError
from autograder.commands import build as build_command
from autograder.commands import check, cli
from autograder.commands import verify as verify_command


@pytest.fixture
def at(monkeypatch):
    """Let ``build`` and ``verify`` work in another folder."""

    def move(root):
        monkeypatch.setattr(build_command, "build", functools.partial(build, root=root))
        monkeypatch.setattr(verify_command, "verify", functools.partial(verify, root=root))

    return move


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


@pytest.mark.parametrize("command", COMMANDS)
def test_no_lesson_at_all(says, command, at, tmp_path):
    at(tmp_path)
    assert says(*command) == (1, "there is no lesson: source/ holds no file like 00_name.py\n")


def test_bad_source(says, at, course):
    at(course.root)
    course.edit(course.source, "points=2", "points=0")
    status, said = says("build")
    assert status == 1
    assert said.endswith("00_mini.py:21: points must be a whole number above 0, not 0\n")
    assert said.count("\n") == 1


def test_what_nbgrader_refuses(says, at, built, monkeypatch):
    def refuse(*_):
        raise ReleaseError("00_mini: nbgrader could not release it: no points")

    at(built.root)
    monkeypatch.setattr(build_module, "release", refuse)
    sentence = "00_mini: nbgrader could not release it: no points"
    assert says("build", "--check") == (1, f"{sentence}\n")
    (verdict,) = verify(root=built.root)
    assert verdict.failures == [sentence]


def test_an_interrupt(says, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(build_command, "build", interrupted)
    assert says("build", "--check") == (130, "stopped\n")


@pytest.mark.parametrize("words", [[], ["bild"], ["build", "--chek"], ["verify", "--jsn"]])
def test_other_words_are_refused_with_the_usage(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("usage: autograder")
    assert "error: " in said.splitlines()[-1]


def test_the_module_is_the_command_and_builds_no_grammar_for_addresses_that_no_notebook_has():
    code = """
import runpy, sys
sys.argv = ["autograder", "build", "7777"]
try:
    runpy.run_module("autograder.commands.cli", run_name="__main__", alter_sys=True)
except SystemExit as ended:
    status = ended.code
import nbformat
assert "jsonschema" in sys.modules and "lark" not in sys.modules
assert sys.modules.get("rfc3987_syntax", "") is not None  # who wants it, may import it
sys.exit(status)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("no lesson is called '7777'; there are: ")
    assert "Traceback" not in done.stderr


def test_a_file_that_an_error_names_commands_no_terminal(says, monkeypatch):
    def fail(options):
        raise PermissionError(13, "no", "a\x1b[2J\u202eb.ipynb")

    monkeypatch.setattr(check, "run", fail)
    status, said = says("check", "x.ipynb")
    assert status == 1 and said.startswith("a[2Jb.ipynb: you may not read or change this")


def test_what_an_error_names_commands_no_terminal(says, monkeypatch):
    def fail(options):
        raise CourseError("a\x1b[2J\u202eb.ipynb: no notebook")

    monkeypatch.setattr(check, "run", fail)
    assert says("check", "x.ipynb") == (1, "a?[2J?b.ipynb: no notebook\n")


def test_a_folder_with_a_course_of_its_own_is_not_worked_on_by_another(says, tmp_path, monkeypatch):
    path = tmp_path / "autograder" / "commands" / "cli.py"
    path.parent.mkdir(parents=True)
    path.write_text("")
    monkeypatch.chdir(tmp_path)
    status, said = says("plan")
    assert status == 1 and f"{tmp_path} has a course of its own" in said
    path.unlink()
    assert cli.main(["plan"]) == 0
