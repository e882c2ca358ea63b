"""The registry of checks and stored answers."""

import importlib
import sys
import types

import pytest

from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import RegistryError, alternative, check, mistake


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    """An empty registry."""
    monkeypatch.setattr(registry, "_checks", {})
    monkeypatch.setattr(registry, "_answers", {})


def function(name, module):
    made = types.FunctionType((lambda *_: None).__code__, {})
    made.__name__, made.__module__ = name, module
    return made


def test_a_check_is_registered_under_its_name_and_lesson():
    target = function("softmax", "autograder.checks.getting_started")
    assert check()(target) is target
    item = registry.find("softmax")
    assert (item.name, item.lesson, item.run) == ("softmax", "getting_started", target)


def test_two_lessons_cannot_check_the_same_name():
    check()(function("softmax", "autograder.checks.one"))
    check()(function("softmax", "autograder.checks.one"))  # the module is loaded again
    with pytest.raises(RegistryError) as raised:
        check()(function("softmax", "autograder.checks.two"))
    assert str(raised.value) == (
        "two checks are called 'softmax': one in autograder/checks/one.py, one in "
        "autograder/checks/two.py; rename one exercise"
    )


def test_two_stored_answers_cannot_have_the_same_name():
    mistake("softmax", hint="x")(function("wrong", "autograder.mistakes.one"))
    alternative("other")(function("wrong", "autograder.mistakes.one"))
    with pytest.raises(RegistryError, match="two stored answers to 'softmax' are called 'wrong'"):
        alternative("softmax")(function("wrong", "autograder.mistakes.one"))


def test_an_unknown_exercise_is_refused_with_those_there_are(monkeypatch):
    monkeypatch.setattr(registry, "import_all", lambda *_: None)
    check()(function("softmax", "autograder.checks.one"))
    with pytest.raises(RegistryError, match="no exercise is called 'sofmax'; there are: softmax"):
        registry.find("sofmax")


def test_mistakes_and_alternatives_are_told_apart():
    check()(function("softmax", "autograder.checks.one"))
    mistake("softmax", hint="so")(function("wrong", "autograder.mistakes.one"))
    alternative("softmax")(function("right", "autograder.mistakes.one"))
    item = registry.find("softmax")
    assert [(known.name, known.hint) for known in registry.mistakes(item)] == [("wrong", "so")]
    assert [(known.name, known.hint) for known in registry.alternatives(item)] == [("right", None)]


def test_a_lesson_without_mistakes_is_no_error_but_a_broken_one_is(monkeypatch):
    item = registry.Check("softmax", "no_such_lesson", None)
    assert registry.mistakes(item) == []

    def broken(name):
        raise ModuleNotFoundError("No module named 'nunpy'", name="nunpy")

    monkeypatch.setattr(registry.importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="nunpy"):
        registry.mistakes(item)


def test_an_answer_to_no_exercise_of_its_lesson_is_a_stray(monkeypatch, tmp_path):
    folder = tmp_path / "mistakes"
    folder.mkdir()
    text = """from autograder.checking.toolbox.registry import mistake
mistake("{}", hint="x")(type("{}", (), dict(__module__=__name__)))
"""
    made = text.format("softmax", "ours") + text.format("sofmax", "lost")
    (folder / "one.py").write_text(made)
    mistake("sofmax", hint="x")(function("elsewhere", "autograder.mistakes.two"))
    mistakes = importlib.import_module("autograder.mistakes")
    monkeypatch.setattr(mistakes, "__path__", [str(folder)])
    checks = "autograder.checks.one"
    monkeypatch.setitem(sys.modules, checks, types.ModuleType(checks))
    check()(function("softmax", checks))
    try:
        item = registry.find("softmax")
        assert [known.name for known in registry.mistakes(item)] == ["ours"]
        assert [known.name for known in registry.strays("one")] == ["lost"]
    finally:
        sys.modules.pop("autograder.mistakes.one", None)
        vars(mistakes).pop("one", None)
