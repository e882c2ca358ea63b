"""A student's wrong answer becomes a stored mistake: it registers, and it is rejected by name."""

import re
import sys
import types

import nbformat
import pytest

from autograder.checking import run_check
from autograder.checking.toolbox import registry
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.grading.execution.assemble import assemble
from autograder.grading.notebook import records
from autograder.grading.notebook.result import Exercise, Result
from autograder.grading.notebook.submission import parse
from autograder.inside.answer import LocalAnswer
from autograder.reporting import mistake_template
from tests.autograder.small_class import SLUG, hand_in, make_course

HELPERS = '''import torch.nn.functional as F
FACTOR = 0.5
def scaled(scores, dim):
    """Uses a constant."""
    total = FACTOR * scores
    return F.softmax(total, dim=dim)
'''
ANSWER = '''def softmax(scores, dim):
    """The lesson's docstring."""
    scaled_once = scaled(scores, dim)
    return scaled_once
'''
HINT = "The scores are halved before the softmax."


def handed_in(text, first=HELPERS):
    """The assembled notebook of a student with this answer, and a cell of their own before."""
    master = sample_class.solved(SLUG)
    notebook = sample_class.handed_in(SLUG, {"softmax": text})
    notebook.cells.insert(1, nbformat.v4.new_code_cell(first))
    return assemble(master, parse(notebook))


def test_the_stub_registers_and_is_rejected_with_its_hint(monkeypatch):
    text = mistake_template.stub(handed_in(ANSWER), SLUG, "softmax")
    assert '@mistake("softmax", hint="…")' in text
    item = registry.of_lesson("getting_started")["softmax"]
    assert registry.mistakes(item), "imported before the registry is replaced"
    answers = {name: list(known) for name, known in registry._answers.items()}
    monkeypatch.setattr(registry, "_answers", answers | {"softmax": []})
    monkeypatch.setattr(registry, "card_files", lambda lesson: [])
    module = types.ModuleType("pasted")
    monkeypatch.setitem(sys.modules, "pasted", module)
    exec(text.replace("…", HINT), vars(module))
    (known,) = registry.mistakes(item)
    assert (known.name, known.hint) == ("softmax_as_handed_in", HINT)
    failure = run_check.run_check(item, LocalAnswer(known.target), seed=987_001)
    assert failure is not None
    assert failure.likely == HINT


def test_names_that_the_module_has_are_changed_and_its_imports_not_repeated():
    stored = (
        "import torch.nn.functional as F\n"
        "from autograder.checking.toolbox.registry import mistake\n"
        "def _scaled(x):\n    return x\n"
        "def softmax_as_handed_in():\n    pass\n"
    )
    text = mistake_template.stub(handed_in(ANSWER), SLUG, "softmax", stored)
    assert "import" not in re.sub("#.*", "", text)
    assert "def _scaled_2(scores, dim):" in text
    assert "def softmax_as_handed_in_2(scores, dim):" in text
    assert "return scaled_once" in text
    assert "The lesson's docstring" not in text
    assert text.index("_FACTOR = 0.5") < text.index("def _scaled_2")


def test_a_local_variable_called_like_a_helper_keeps_its_name():
    answer = "def softmax(scores, dim):\n    scaled = scores\n    return scaled\n"
    assert "scaled = scores" in mistake_template.stub(handed_in(answer), SLUG, "softmax")


@pytest.mark.parametrize("text", ["softmax = max", "def softmax(:", ""])
def test_where_there_is_no_definition_it_says_so(text):
    with pytest.raises(mistake_template.NoAnswer, match="defines no function or class 'softmax'"):
        mistake_template.stub(handed_in(text), SLUG, "softmax")


def test_nothing_reaches_the_terminal_that_it_would_obey():
    answer = "def softmax(scores, dim):\n    return f'\x1b]0;owned\x07\u202e{scores}'\n"
    text = mistake_template.stub(handed_in(answer), SLUG, "softmax")
    assert not set("\x1b\x07\u202e") & set(text)


def test_the_command_prints_it_and_refuses_in_sentences(tmp_path, capsys):
    course = make_course(tmp_path)
    hand_in(course, "zoe", answers={"softmax": "def softmax(scores, dim):\n    return scores"})
    words = ["mistake", "00", "softmax", "--course", str(course), "--from"]
    assert cli.main([*words, "zoe"]) == 0
    out = capsys.readouterr().out
    assert "def softmax_as_handed_in(scores, dim):\n    return scores" in out
    assert "zoe" not in out
    assert cli.main([*words, "nobody"]) == 1
    assert "no student is called 'nobody'" in capsys.readouterr().err
    words[2] = "no_such"
    assert cli.main([*words, "zoe"]) == 1
    assert "no exercise 'no_such'" in capsys.readouterr().err


def test_an_answer_that_earned_its_points_is_printed_with_a_word(tmp_path, capsys):
    course = make_course(tmp_path)
    hand_in(course, "zoe")
    exercises = [
        Exercise("softmax", 2, 2),
        Exercise("uniform_average", 1.5, 2, "x", is_careless=True),
        Exercise("weighted_average", 0, 2, "x"),
    ]
    kept = Result("zoe", SLUG, exercises)
    folder = course / "class/autograded/zoe" / SLUG
    folder.mkdir(parents=True)
    records.save_reasons(folder, kept)
    for exercise, told in (
        ("softmax", "# The check took this answer for right: 2 of 2 points.\n# Read it"),
        (
            "uniform_average",
            "# The check took this answer for right but for care: 1.5 of 2 points.",
        ),
        ("weighted_average", "# Read it before"),
    ):
        assert cli.main(["mistake", "0", exercise, "--course", str(course), "--from", "zoe"]) == 0
        said = capsys.readouterr()
        assert f"def {exercise}_as_handed_in" in said.out and said.out.startswith(told)
        assert said.err == ""


def test_with_a_folder_of_one_s_own_the_mistake_goes_there(tmp_path, capsys, monkeypatch):
    course = make_course(tmp_path)
    hand_in(course, "zoe", answers={"softmax": "def softmax(scores, dim):\n    return scores"})
    words = ["mistake", "00", "softmax", "--course", str(course), "--from", "zoe"]
    monkeypatch.setattr("autograder.commands.mistake.own_folder", lambda: None)
    assert cli.main(words) == 0
    assert "into autograder/mistakes/getting_started.py:" in capsys.readouterr().out
    monkeypatch.setattr("autograder.commands.mistake.own_folder", lambda: tmp_path / "mine")
    assert cli.main(words) == 0
    into = tmp_path / "mine" / "mistakes" / "own_for_getting_started.py"
    text = capsys.readouterr().out
    assert f"into {into}:" in text
    assert "import mistake" in text
    into.parent.mkdir(parents=True)
    into.write_text(text)
    assert cli.main(words) == 0
    assert "def softmax_as_handed_in_2(" in capsys.readouterr().out
