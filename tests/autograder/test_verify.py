"""The six gates: on a good lesson all are open, and a planted fault closes exactly its own."""

import functools
import json
import warnings

import nbformat
import pytest

from autograder import cli
from autograder import verify as module
from autograder.build import build
from autograder.verify import verify

GOOD = {
    "lesson": "00_mini",
    "points": 5,
    "solved": 5,
    "blank": 0,
    "mistakes": 6,
    "rejected": 6,
    "named": 6,
    "alternatives": 4,
    "accepted": 4,
    "leaks": 0,
    "failures": [],
}


@pytest.fixture
def judge(built, client):
    """Build the changed course without a kernel, and verify it; returns the verdict as a dict."""

    def run():
        build(root=built.root)
        (verdict,) = verify(root=built.root)
        return vars(verdict)

    return run


def add(path, text):
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def changes(verdict):
    """What differs from a good lesson's verdict."""
    return {key: value for key, value in verdict.items() if value != GOOD[key]}


def test_a_good_lesson_passes_all_gates(built):
    (verdict,) = verify(root=built.root)
    assert vars(verdict) == GOOD


# gate 1: the solved notebook earns everything


def test_a_wrong_solution(built, judge):
    built.edit(built.library, "factor = 2.0", "factor = 5.0")
    verdict = judge()
    (failure,) = verdict.pop("failures")
    assert failure.startswith(
        "the solved notebook fails: doubled: the double of [1, 3] is wrong.\n"
        "  got       [1] = 15\n"
        "  expected  [1] = 6\n"
    )
    assert changes({**verdict, "failures": []}) == {"solved": 3}


def test_a_check_that_refuses_for_one_seed(built, judge):
    unlucky = 'expect.true(draw.seed != 222, "this seed is unlucky", "222", "another")\n    '
    built.edit(built.checks, "module = student", unlucky + "module = student")
    verdict = judge()
    assert verdict["solved"] == 2
    assert any(
        said.startswith("the solved notebook fails: Scale: this seed is unlucky.\n")
        for said in verdict["failures"]
    )


# gate 2: the blank notebook earns nothing


def test_a_blank_that_passes(built, judge):
    built.edit(built.library, "zero = 0.0 * values\n", "if factor:\n        return 2 * values\n")
    built.edit(built.library, " + zero", "")
    assert changes(judge()) == {
        "blank": 2,
        "failures": ["the blank notebook passes the check of doubled"],
    }


def test_a_lesson_whose_cells_stop_everything_is_survived(built, judge):
    built.edit(built.source, "import torch\n", "import sys\nsys.exit(3)\nimport torch\n")
    assert changes(judge())["solved"] == 0


# gate 3: mistakes are rejected, by name, and cost only their own exercise

CORRECT = """

@mistake("doubled", hint="This is right.")
def correct(values):
    return 2 * values
"""
AGAIN = """

@mistake("doubled", hint="Another hint.")
def triples_again(values):
    return values + values + values
"""


def test_a_check_that_accepts_a_mistake(built, judge):
    add(built.mistakes, CORRECT)
    assert changes(judge()) == {
        "mistakes": 7,
        "failures": ["doubled: the mistake correct passes the check"],
    }


def test_a_mistake_that_passes_for_one_seed_only(built, judge):
    add(built.mistakes, CORRECT.replace("2 * values", "2 * values + 1"))
    built.edit(built.checks, "@check\ndef doubled(student, draw):", HALF_BLIND)
    verdict = judge()
    assert "doubled: the mistake correct passes the check" in verdict["failures"]
    assert verdict["rejected"] < verdict["mistakes"]


HALF_BLIND = """@check
def doubled(student, draw):
    if draw.seed != 222:
        _doubled(student, draw)


def _doubled(student, draw):"""


def test_a_mistake_with_the_record_of_another(built, judge):
    add(built.mistakes, AGAIN)
    assert changes(judge()) == {
        "mistakes": 7,
        "rejected": 7,
        "failures": [
            "doubled: the mistake triples_again is rejected, but read as 'This is three times the "
            "value.' (seed 11)"
        ],
    }


def test_a_mistake_that_costs_another_exercise(built, judge):
    built.edit(
        built.library, "return self.factor * values", "return self.factor * doubled(values) / 2"
    )
    assert changes(judge()) == {
        "rejected": 3,
        "failures": [
            f"doubled: the mistake {name} also fails Scale, which should not depend on it"
            for name in ("adds_two", "triples", "forgets")
        ],
    }


def test_too_few_mistakes_and_alternatives(built, judge):
    text = built.mistakes.read_text()
    without = text.replace('@mistake("doubled", hint="This is three times the value.")\n', "")
    built.mistakes.write_text(without.replace('@alternative("doubled")\n', "", 1))
    assert changes(judge()) == {
        "mistakes": 5,
        "rejected": 5,
        "named": 5,
        "alternatives": 3,
        "accepted": 3,
        "failures": ["doubled has 2 named mistakes and 1 alternatives; it needs at least 3 and 2"],
    }


def test_a_mistake_in_no_exercise(built, judge):
    add(built.mistakes, CORRECT.replace('"doubled"', '"dubbled"'))
    assert changes(judge()) == {
        "failures": ["correct answers 'dubbled', which is no exercise of this lesson"]
    }


# gate 4: right answers pass


def test_an_alternative_that_is_refused(built, judge):
    add(
        built.mistakes,
        AGAIN.replace('@mistake("doubled", hint="Another hint.")', "@alternative('doubled')"),
    )
    verdict = judge()
    (failure,) = verdict["failures"]
    assert failure.startswith("the right answer triples_again is refused: doubled: the double of")
    assert changes({**verdict, "failures": []}) == {"alternatives": 5}


# gate 5: no solution leaks

LINE = "result = factor * values + zero"


@pytest.mark.parametrize(
    "cell",
    [
        f"# %% [markdown]\n# The answer is `{LINE}`.",
        f"# %%\nfactor = values = zero = 1\n{LINE}",
        "# %%\nfactor = values = zero = 1\nresult=(factor)*values+zero\nresult=factor*values+zero",
        f"# %%\n# {LINE}",
        "# %% [markdown]\n# `result = factor * \\\n#     values + zero`",
        "# %% [markdown]\n# Write self.factor=nn.Parameter( torch.tensor( float(start), ), )",
        "# %% [markdown]\n# An `nn.Parameter(torch.tensor(float(start)))` is learned.",
        f"# %% demo=true\nprint('''{LINE}''')",
    ],
)
def test_a_line_of_a_solution_in_a_lesson(built, judge, cell):
    built.edit(
        built.source, "# %% [markdown]\n# ## Double", f"{cell}\n\n# %% [markdown]\n# ## Double"
    )
    verdict = judge()
    (failure,) = verdict["failures"]
    assert " shows a line of " in failure
    assert failure.startswith("cell ")
    assert changes({**verdict, "failures": []}) == {"leaks": 1}


def test_what_is_given_anyway_is_no_leak(built, judge):
    built.edit(
        built.library,
        "return values / 2",
        f"factor, zero = 0.5, 0.0\n    {LINE}\n    return result",
    )
    assert changes(judge()) == {}


def test_a_solution_mark_left_in_the_lesson(built, client):
    notebook = nbformat.read(built.lesson, as_version=4)
    notebook.cells[0].source += "\n### END SOLUTION"
    nbformat.write(notebook, built.lesson)
    (verdict,) = verify(root=built.root)
    identity = notebook.cells[0].id
    assert changes(vars(verdict)) == {
        "leaks": 1,
        "failures": [
            f"cell {identity} holds a solution mark",
            "lessons/00_mini/00_mini.ipynb differs from its source; run `autograder build`",
        ],
    }


# gate 6: generated files match their source


@pytest.mark.parametrize("kind", ["solution", "lesson"])
def test_a_generated_file_edited_by_hand(built, kind):
    path = getattr(built, kind)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[-1].source += " Really."
    nbformat.write(notebook, path)
    (verdict,) = verify(root=built.root)
    assert changes(vars(verdict)) == {
        "failures": [
            f"{path.relative_to(built.root)} differs from its source; run `autograder build`"
        ]
    }


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{}", b"not json"])
def test_a_generated_file_that_cannot_be_read(built, content):
    built.lesson.unlink() if content is None else built.lesson.write_bytes(content)
    (verdict,) = verify(root=built.root)
    unread, differs = verdict.failures
    assert unread.startswith("a generated notebook cannot be read: ")
    assert differs.startswith("lessons/00_mini/00_mini.ipynb differs from its source")


# faults of the lesson itself


def test_bad_source_is_a_failure_and_the_next_lesson_is_verified(built):
    (built.root / "source" / "01_bad.py").write_text("x = 1\n")
    good, bad = verify(root=built.root)
    assert vars(good) == GOOD
    (failure,) = bad.failures
    assert failure.endswith("01_bad.py:1: the file must begin with '# %% [markdown]' and the title")


def test_a_check_that_is_not_registered(built):
    built.edit(built.checks, "@check\ndef doubled", "def doubled")
    (verdict,) = verify(root=built.root)
    assert verdict.failures == ["no check is registered for doubled: is it marked @check?"]


def test_all_failures_are_reported_at_once(built, judge):
    add(built.mistakes, CORRECT + AGAIN)
    built.edit(built.library, "factor = 2.0", "factor = 5.0")
    built.edit(
        built.source, "# The end.", "# self.factor = nn.Parameter(torch.tensor(float(start)))"
    )
    assert len(judge()["failures"]) == 4


# the command


@pytest.fixture
def command(built, monkeypatch):
    """Run the command line on the small course; returns the exit status."""
    monkeypatch.setattr(module, "verify", functools.partial(verify, root=built.root))
    return lambda *words: cli.main(["verify", *words])


def test_json_is_one_object_a_line_with_the_agreed_keys(command, capsys):
    assert command("--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    verdict = json.loads(line)
    assert list(verdict) == list(GOOD)
    assert verdict == GOOD


NOISY = """

@alternative("doubled")
def noisy(values):
    import sys, warnings
    warnings.warn("careful")
    print("debugging")
    print("debugging", file=sys.stderr)
    return 2 * values
"""


def test_what_answers_print_does_not_mix_with_the_verdict(built, command, capsys):
    add(built.mistakes, NOISY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert command("--json") == 1  # the digest has changed
    out, err = capsys.readouterr()
    assert json.loads(out)["alternatives"] == 5
    assert err == ""


def test_the_verdict_in_words(built, command, capsys):
    assert command("mini") == 0
    assert capsys.readouterr().out == (
        "00_mini: done\n"
        "  solved 5 of 5 points, blank 0\n"
        "  mistakes 6: 6 rejected, 6 named; alternatives 4: 4 accepted; leaks 0\n"
    )
    built.lesson.write_bytes(b"")
    assert command() == 1
    out = capsys.readouterr().out
    assert out.startswith("00_mini: not done\n")
    assert "\n  - a generated notebook cannot be read: " in out


def test_the_seeds_are_several():
    assert len(set(module.SEEDS)) >= 3
