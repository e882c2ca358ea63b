"""On a good lesson all gates are open, and a planted fault closes exactly its own; the command."""

import functools
import warnings

import nbformat
import pytest

from autograder.building.gates import stored_answers
from autograder.building.gates.text import normalised, unsaid_quotes
from autograder.building.gates.verify import SEEDS, verify
from autograder.checking.toolbox import expect, registry
from autograder.commands import cli
from autograder.commands import verify as command_module
from tests.autograder.verdicts import AGAIN, CORRECT, DECORATOR, GOOD, add, changes


def test_a_good_lesson_passes_all_gates_on_several_draws(built):
    (verdict,) = verify(root=built.root)
    assert vars(verdict) == GOOD
    assert len(set(SEEDS)) >= 3


KEY = '"doubled: with one term left out: result = factor * values": "zero is 0",\n'
THREE = '@mistake("doubled", hint="This is three times the value.")\n'
ALSO_FAILS = "doubled: the mistake {} also fails Scale, which should not depend on it"
UNKNOWN = "doubled: the mistake {} is rejected, but read as 'nothing known' (seed 11)"
BLIND = """def doubled(student, draw):
    if draw.seed != 222:
        _doubled(student, draw)


def _doubled(student, draw):"""
# The file that is changed, and how ('' for at its end); what differs, and how the failures begin.
FAULTS = {
    "a wrong solution": (
        *("library", "factor = 2.0", "factor = 5.0"),
        {"solved": 3, "named": 3, "mutants": 8},  # of this exercise nothing else can be judged
        [
            "the solved notebook fails: doubled: the double of [1, 3] is wrong.\n"
            "  got       [1] = 15\n  expected  [1] = 6\n"
        ],
    ),
    "a mistake that passes": (
        *("mistakes", "", CORRECT, {"mistakes": 7}),
        ["doubled: the mistake correct passes the check (seed 11)"],
    ),
    "a mistake with the record of another": (
        *("mistakes", "", AGAIN, {"mistakes": 7, "rejected": 7, "named": 5}),
        [UNKNOWN.format("triples"), UNKNOWN.format("triples_again")],
    ),
    "a mistake that costs another exercise": (
        *("library", "return self.factor * values", "return self.factor * doubled(values) / 2"),
        {"rejected": 3, "mutants": 22},
        [ALSO_FAILS.format(name) for name in ("adds_two", "triples", "forgets")],
    ),
    "a mistake in no exercise": (
        *("mistakes", "", CORRECT.replace('"doubled"', '"dubbled"'), {}),
        ["correct answers 'dubbled', which is no exercise of this lesson"],
    ),
    "too few": (
        *("mistakes", THREE, "", {"mistakes": 5, "rejected": 5, "named": 5}),
        ["doubled has 2 named mistakes and 2 alternatives; it needs at least 3 and 2"],
    ),
    "a right answer that is refused": (
        *(
            "mistakes",
            "",
            AGAIN.replace('@mistake("doubled", hint="A', '@alternative("doubled") # '),
        ),
        {"alternatives": 5},
        ["the right answer triples_again is refused: doubled: the double of"],
    ),
    "a mutant that survives": (
        *("mistakes", KEY, "", {"alive": 1}),
        [
            "the check accepts a mutant of line 21, or a reason is missing in EQUIVALENT: "
            "'doubled: with one term left out: result = factor * values'"
        ],
    ),
    "a reason gone stale": (
        *("mistakes", KEY, KEY + '    "doubled: gone: return 1": "why",\n', {}),
        ["EQUIVALENT holds a mutant that does not survive, or is none: 'doubled: gone: return 1'"],
    ),
    "a class that is never asked for": (
        *("checks", '{"ones": "the factor', '{"onse": "the factor', {}),
        [
            "Scale: its check never asks for ones (in one call an axis has size 1)",
            "Scale: without='onse' is no class",
        ],
    ),
    "stages that do not add up": (
        *("checks", '"its start": 1}', '"its start": 2}', {}),
        [
            "Scale is worth 3 points, its stages 4",
            "Scale has a stage that the lesson does not name",
        ],
    ),
    "a stage that is earned otherwise": (
        *("mistakes", 'earns=("its start",)', 'earns=("the factor",)', {}),
        [
            "Scale: no stored mistake fails the stage 'the factor' and earns more",
            "Scale: no stored mistake says that it earns the stage 'its start'",
            *(f"Scale: the mistake Adds earns its start (seed {seed}), not what" for seed in SEEDS),
        ],
    ),
    "what its core rests on": (
        *("checks", '"the same shape"', '"the same size"', {}),
        ["doubled: its check rests on 'the same size', which the lesson does not say"],
    ),
    "a check that is not registered": (
        *("checks", DECORATOR, "", dict.fromkeys([*GOOD][3:-2], 0)),
        ["no check is registered for doubled: is it marked @check?"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_closes_exactly_its_gate(built, verdict, fault):
    where, old, new, counts, said = FAULTS[fault]
    path = getattr(built, where)
    built.edit(path, old, new) if old else add(path, new)
    found = verdict()
    failures = found.pop("failures")
    assert changes(found) == {key: value for key, value in counts.items() if GOOD[key] != value}
    assert len(failures) == len(said), failures
    assert [
        told for told, begins in zip(failures, said, strict=True) if begins not in told[:200]
    ] == []


def test_a_check_that_refuses_or_accepts_for_one_seed_only(built, verdict):
    unlucky = 'expect.true(draw.seed != 222, "this seed is unlucky", "222", "another")\n    '
    built.edit(built.checks, "module = student", unlucky + "module = student")
    built.edit(built.checks, "def doubled(student, draw):", BLIND)
    add(built.mistakes, CORRECT.replace("2 * values", "2 * values + 1"))
    found = verdict()
    assert found["solved"] == 2 and found["rejected"] < found["mistakes"]
    told = "\n".join(found["failures"])
    assert "the solved notebook fails: Scale: this seed is unlucky.\n" in told
    assert "doubled: the mistake correct passes the check (seed 222)" in told


def test_a_blank_that_passes(built, verdict):
    built.edit(built.library, "zero = 0.0 * values\n", "if factor:\n        return 2 * values\n")
    built.edit(built.library, " + zero", "")
    found = verdict()
    assert found["blank"] == 2
    assert "the blank notebook passes the check of doubled" in found["failures"]


def test_a_lesson_whose_cells_stop_everything_is_survived(built, verdict):
    built.edit(built.source, "import torch\n", "import sys\nsys.exit(3)\nimport torch\n")
    assert changes(verdict())["solved"] == 0


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("the double of [1, 3] is wrong", True),
        ("the double … got [1]", True),  # a longer gap, over the end of a line
        ("the double of [1, 3] is right", False),
        ("the double … expected", False),
        ("RuntimeError: what no stored mistake raises", True),
    ],
)
def test_the_title_of_a_hint_quotes_what_is_said_to_somebody(built, quote, said):
    hint = f"# <details><summary>Hint 1 · “{quote}”</summary>\n#\n# Twice.\n# </details>\n\n"
    built.edit(built.source, '# %% exercise="doubled"', hint + '# %% exercise="doubled"')
    told = ["doubled: the double of [1, 3] is wrong.\n  got       [1] = 15"]
    assert bool(unsaid_quotes(built.read(), "doubled", told)) is not said
    if "is right" in quote:
        failures = verified(built.root)[0]["failures"]
        assert any("quotes what no stored mistake is told" in one for one in failures)


def test_a_stage_that_nobody_works_for():
    def sums(student, draw):
        x = draw.normal(2, 3)
        with expect.stage("a tensor"):
            expect.tensor(student(x))
        with expect.stage("sums"):
            expect.close(student(x), x.sum(1), "the sums are wrong")

    stages = (("a tensor", 1), ("sums", 2))
    item = registry.Check("sums", "mini", sums, reference=lambda x: x.sum(1), stages=stages)
    found = list(stored_answers.stage_by_stage(item, (11,)))
    assert "sums: its_first_argument earns a tensor" in found
    assert "sums: zero earns a tensor" in found
    assert not any(failure.startswith(("sums: nothing", "sums: an_error")) for failure in found)


# Solutions in a lesson, and files that do not match.

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


def test_a_line_of_a_solution_in_a_lesson(built, verdict):
    next_cell = "# %% [markdown]\n# ## Double"
    built.edit(built.source, next_cell, "\n\n".join([*CELLS, next_cell]))
    found = verdict()
    told = found.pop("failures")
    assert len({failure.split()[1] for failure in told}) == len(CELLS)
    assert all(" shows a line of " in failure for failure in told)
    assert changes(found) == {"leaks": len(CELLS)}


def test_what_is_given_anyway_is_no_leak_nor_is_the_name_of_an_exception(built, verdict):
    shown = f"factor, zero = 0.5, 0.0\n    {LINE}\n    return result"
    built.edit(built.library, "return values / 2", shown)
    assert changes(verdict()) == {}
    assert normalised(["raise ValueError(", "    f'{size} is odd'", ")"]) == {"f'{size}isodd'", ")"}


@pytest.mark.parametrize(
    ("kind", "text", "leaks"), [("lesson", "\n### END SOLUTION", 1), ("solution", " Really.", 0)]
)
def test_a_generated_file_edited_by_hand(built, kind, text, leaks):
    path = getattr(built, kind)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source += text
    nbformat.write(notebook, path)
    (verdict,) = verified(built.root)
    *marks, differs = verdict["failures"]
    assert verdict["leaks"] == leaks
    assert marks == [f"cell {notebook.cells[0].id} holds a solution mark"] * leaks
    name = path.relative_to(built.root)
    assert differs == f"{name} differs from its source; run `autograder build`"


@pytest.mark.parametrize("content", [None, b"", b"{}"])
def test_a_generated_file_that_cannot_be_read(built, content):
    built.lesson.unlink() if content is None else built.lesson.write_bytes(content)
    (verdict,) = verified(built.root)
    unread, differs = verdict["failures"]
    assert unread.startswith("a generated notebook cannot be read: ")
    assert differs.startswith("lessons/00_mini/00_mini.ipynb differs from its source")


def test_bad_source_is_a_failure_and_the_next_lesson_is_verified(built):
    (built.root / "source" / "01_bad.py").write_text("x = 1\n")
    good, bad = verified(built.root)
    assert good == GOOD
    (failure,) = bad["failures"]
    assert failure.endswith("01_bad.py:1: the file must begin with '# %% [markdown]' and the title")


@pytest.fixture
def command(built, monkeypatch):
    """Run the command line on the small course; returns the exit status."""
    monkeypatch.setattr(command_module, "verify", functools.partial(verify, root=built.root))
    return lambda *words: cli.main(["verify", *words])


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
        assert command() == 0
    out, err = capsys.readouterr()
    assert "alternatives 5: 5 accepted" in out and "debugging" not in out
    assert err == ""


def test_without_mutants_the_classes_are_still_asked_for(built, command, capsys):
    built.edit(built.checks, '{"ones": "the factor', '{"onse": "the factor')
    assert command("--no-mutants") == 1
    out = capsys.readouterr().out
    assert "\n  mutants left out\n  - Scale: its check never asks for ones" in out


def test_answers_are_judged_on_as_many_draws_as_wished(built, command, capsys):
    late = BLIND.replace("draw.seed != 222", "draw.seed != 10_001 or expect.equal(1, 2, 'late')")
    built.edit(built.checks, "def doubled(student, draw):", late)
    assert command("--seeds", "3") == 0
    assert command("--seeds", "5") == 1
    assert "solved 3 of 5 points" in capsys.readouterr().out
    assert command("--seeds", "0") == 1
    assert capsys.readouterr().err == "--seeds 0: every answer needs at least one draw\n"
