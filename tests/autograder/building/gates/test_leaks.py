"""Gates 5 and 6, faults of a lesson itself, and the command."""

import functools
import json
import warnings

import nbformat
import pytest

from autograder.building.build import build
from autograder.building.gates.text import normalised
from autograder.building.gates.verify import verify
from autograder.commands import cli
from autograder.commands import verify as command_module
from tests.autograder.verdicts import AGAIN, CORRECT, DECORATOR, GOOD, add, changes

# gate 5: no solution leaks

LINE = "result = factor * values + zero"


CELLS = [
    f"# %% [markdown]\n# The answer is `{LINE}`.",
    f"# %%\nfactor = values = zero = 1\n{LINE}",
    "# %%\nfactor = values = zero = 1\nresult=(factor)*values+zero\nresult=factor*values+zero",
    f"# %%\n# {LINE}",
    "# %% [markdown]\n# `result = factor * \\\n#     values + zero`",
    "# %% [markdown]\n# Write self.factor=nn.Parameter( torch.tensor( float(start), ), )",
    "# %% [markdown]\n# An `nn.Parameter(torch.tensor(float(start)))` is learned.",
    f"# %% demo=true\nprint('''{LINE}''')",
]


def verified(root):
    """The verdicts of one draw and without mutants, of which nothing is said here."""
    others = {key: GOOD[key] for key in ("seeds", "mutants")}
    return [vars(one) | others for one in verify(root=root, seeds=1, with_mutants=False)]


@pytest.fixture
def verdict(built, client):
    """Build the changed course without a kernel, and verify it; returns the verdict as a dict."""

    def run():
        build(root=built.root)
        (found,) = verified(built.root)
        return found

    return run


def test_a_line_of_a_solution_in_a_lesson(built, verdict):
    next_cell = "# %% [markdown]\n# ## Double"
    built.edit(built.source, next_cell, "\n\n".join([*CELLS, next_cell]))
    found = verdict()
    told = found.pop("failures")
    assert len({failure.split()[1] for failure in told}) == len(CELLS)
    assert all(failure.startswith("cell ") for failure in told)
    assert all(" shows a line of " in failure for failure in told)
    assert changes(found) == {"leaks": len(CELLS)}


def test_what_is_given_anyway_is_no_leak(built, verdict):
    built.edit(
        built.library,
        "return values / 2",
        f"factor, zero = 0.5, 0.0\n    {LINE}\n    return result",
    )
    assert changes(verdict()) == {}


def test_the_name_of_an_exception_is_no_leak():
    assert normalised(["raise ValueError(", "    f'{size} is odd'", ")"]) == {"f'{size}isodd'", ")"}


def test_a_solution_mark_left_in_the_lesson(built, client):
    notebook = nbformat.read(built.lesson, as_version=4)
    notebook.cells[0].source += "\n### END SOLUTION"
    nbformat.write(notebook, built.lesson)
    (verdict,) = verified(built.root)
    identity = notebook.cells[0].id
    assert changes(verdict) == {
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
    (verdict,) = verified(built.root)
    assert changes(verdict) == {
        "failures": [
            f"{path.relative_to(built.root)} differs from its source; run `autograder build`"
        ]
    }


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{}", b"not json"])
def test_a_generated_file_that_cannot_be_read(built, content):
    built.lesson.unlink() if content is None else built.lesson.write_bytes(content)
    (verdict,) = verified(built.root)
    unread, differs = verdict["failures"]
    assert unread.startswith("a generated notebook cannot be read: ")
    assert differs.startswith("lessons/00_mini/00_mini.ipynb differs from its source")


# faults of the lesson itself


def test_bad_source_is_a_failure_and_the_next_lesson_is_verified(built):
    (built.root / "source" / "01_bad.py").write_text("x = 1\n")
    good, bad = verified(built.root)
    assert good == GOOD
    (failure,) = bad["failures"]
    assert failure.endswith("01_bad.py:1: the file must begin with '# %% [markdown]' and the title")


def test_a_check_that_is_not_registered(built):
    built.edit(built.checks, DECORATOR, "")
    (verdict,) = verify(root=built.root)
    assert verdict.failures == ["no check is registered for doubled: is it marked @check?"]


def test_all_failures_are_reported_at_once(built, verdict):
    add(built.mistakes, CORRECT + AGAIN)
    built.edit(built.library, "return self.factor * values", "return self.factor + values")
    built.edit(
        built.source, "# The end.", "# self.factor = nn.Parameter(torch.tensor(float(start)))"
    )
    assert len(verdict()["failures"]) == 5


# the command


@pytest.fixture
def command(built, monkeypatch):
    """Run the command line on the small course; returns the exit status."""
    monkeypatch.setattr(command_module, "verify", functools.partial(verify, root=built.root))
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
        assert command("--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["alternatives"] == 5
    assert err == ""


def test_the_verdict_in_words(built, command, capsys):
    assert command("mini") == 0
    assert capsys.readouterr().out == (
        "00_mini: done\n"
        "  solved 5 of 5 points, blank 0\n"
        "  mistakes 6: 6 rejected, 6 named; alternatives 4: 4 accepted; careless 4; leaks 0\n"
        "  mutants 15: 0 accepted without a reason\n"
    )
    built.lesson.write_bytes(b"")
    assert command() == 1
    out = capsys.readouterr().out
    assert out.startswith("00_mini: not done\n")
    assert "\n  - a generated notebook cannot be read: " in out


def test_without_mutants_the_classes_are_still_asked_for(built, command, capsys):
    built.edit(built.checks, '{"ones": "the factor', '{"onse": "the factor')
    assert command("--no-mutants") == 1
    out = capsys.readouterr().out
    assert "\n  mutants left out\n" in out
    assert "Scale: its check never asks for ones" in out


def test_answers_are_judged_on_as_many_draws_as_wished(built, command, capsys):
    built.edit(built.checks, "def doubled(student, draw):", LATE)
    assert command("--seeds", "3") == 0
    assert command("--seeds", "5", "--json") == 1
    verdict = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (verdict["seeds"], verdict["solved"]) == (5, 3)
    assert command("--seeds", "0") == 1
    assert capsys.readouterr().err == "--seeds 0: every answer needs at least one draw\n"


LATE = """def doubled(student, draw):
    expect.true(draw.seed != 10_001, "it fails", "once", "never")
    _doubled(student, draw)


def _doubled(student, draw):"""
