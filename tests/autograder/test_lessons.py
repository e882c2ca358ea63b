"""What a lesson is called: the same for every command."""

import subprocess
import sys

import pytest

from autograder import lessons

SLUGS = ["10_ten", "01_one", "extra"]


@pytest.mark.parametrize("name", ["1", "01", "one", "01_one", "lessons/01_one/01_one.ipynb", "a/1"])
def test_a_lesson_answers_to_many_names(name):
    assert lessons.choose([name], SLUGS) == ["01_one"]


def test_all_in_order_and_each_once():
    assert lessons.choose([], SLUGS) == ["01_one", "10_ten", "extra"]
    assert lessons.choose(["ten", "1", "10", "extra"], SLUGS) == ["01_one", "10_ten", "extra"]


@pytest.mark.parametrize("name", ["2", "", "²", "one_", "ONE", "..", "-1"])
def test_one_unknown_name_among_others_is_refused(name):
    with pytest.raises(lessons.UnknownLesson) as raised:
        lessons.choose(["1", name], SLUGS)
    known = "01_one, 10_ten, extra"
    assert str(raised.value) == f"no lesson is called {name!r}; there are: {known}"


def test_where_a_notebook_lies(tmp_path):
    path = tmp_path / "lessons" / "01_one" / "01_one.ipynb"
    assert lessons.notebook(tmp_path, "lessons", "01_one") == path


@pytest.mark.parametrize("name", ["99", "²"])
@pytest.mark.parametrize("words", ["build 0", "verify 0", "demo 0", "grade --lesson 0 --lesson"])
def test_every_command_refuses_an_unknown_lesson_in_one_sentence(words, name, capsys, monkeypatch):
    from autograder.commands import cli, demo

    monkeypatch.setattr(demo, "_prepare", lambda *_: pytest.fail("work was begun"))
    assert cli.main([*words.split(), name]) == 1
    said = capsys.readouterr()
    assert "graded" not in said.out
    assert said.err.splitlines()[-1].startswith(f"no lesson is called {name!r}; there are: 00_")


def test_names_are_known_without_anything_heavy():
    imports = "import sys, autograder.lessons, autograder.cell_metadata"
    code = f"{imports}; assert 'nbformat' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
