"""Gates 1 to 4: on a good lesson all are open, and a planted fault closes exactly its own."""

import pytest

from autograder.building.build import build
from autograder.building.gates import stored_answers
from autograder.building.gates.text import unsaid_quotes
from autograder.building.gates.verify import SEEDS, verify
from autograder.checking.toolbox import expect, registry
from tests.autograder.verdicts import AGAIN, CORRECT, GOOD, add, changes


def test_the_seeds_are_several():
    assert len(set(SEEDS)) >= 3


def test_a_good_lesson_passes_all_gates(built):
    (verdict,) = verify(root=built.root)
    assert vars(verdict) == GOOD


# gate 1: the solved notebook earns everything


def test_a_wrong_solution(built, verdict):
    built.edit(built.library, "factor = 2.0", "factor = 5.0")
    found = verdict()
    (failure,) = found.pop("failures")
    assert failure.startswith(
        "the solved notebook fails: doubled: the double of [1, 3] is wrong.\n"
        "  got       [1] = 15\n"
        "  expected  [1] = 6\n"
    )
    # Without a right answer, nothing else of this exercise can be judged.
    assert changes({**found, "failures": []}) == {"solved": 3, "named": 3, "mutants": 8}


def test_a_check_that_refuses_for_one_seed(built, verdict):
    unlucky = 'expect.true(draw.seed != 222, "this seed is unlucky", "222", "another")\n    '
    built.edit(built.checks, "module = student", unlucky + "module = student")
    found = verdict()
    assert found["solved"] == 2
    assert any(
        said.startswith("the solved notebook fails: Scale: this seed is unlucky.\n")
        for said in found["failures"]
    )


# gate 2: the blank notebook earns nothing


def test_a_blank_that_passes(built, verdict):
    built.edit(built.library, "zero = 0.0 * values\n", "if factor:\n        return 2 * values\n")
    built.edit(built.library, " + zero", "")
    built.mistakes.write_text(built.mistakes.read_text().replace("EQUIVALENT", "UNUSED"))
    found = verdict()
    found["failures"] = [said for said in found["failures"] if " mutant " not in said]
    assert changes(found) == {
        "mutants": 12,
        "alive": 4,
        "blank": 2,
        "failures": ["the blank notebook passes the check of doubled"],
    }


def test_a_lesson_whose_cells_stop_everything_is_survived(built, verdict):
    built.edit(built.source, "import torch\n", "import sys\nsys.exit(3)\nimport torch\n")
    assert changes(verdict())["solved"] == 0


# gate 3: mistakes are rejected, by name, and cost only their own exercise


def test_a_check_that_accepts_a_mistake(built, verdict):
    add(built.mistakes, CORRECT)
    assert changes(verdict()) == {
        "mistakes": 7,
        "failures": ["doubled: the mistake correct passes the check (seed 11)"],
    }


def test_a_mistake_that_passes_for_one_seed_only(built, verdict):
    add(built.mistakes, CORRECT.replace("2 * values", "2 * values + 1"))
    built.edit(built.checks, "def doubled(student, draw):", HALF_BLIND)
    found = verdict()
    assert "doubled: the mistake correct passes the check (seed 222)" in found["failures"]
    assert found["rejected"] < found["mistakes"]


HALF_BLIND = """def doubled(student, draw):
    if draw.seed != 222:
        _doubled(student, draw)


def _doubled(student, draw):"""


def test_a_hint_that_quotes_what_nobody_is_told(built, verdict):
    _with_hint(built, "the double is wrong")
    (failure,) = verdict()["failures"]
    assert failure == (
        "doubled: “Hint 1 · “the double is wrong”” quotes what no stored mistake is told; "
        "quote the check's own words"
    )


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
def test_what_counts_as_said(course, quote, said):
    _with_hint(course, quote)
    told = ["doubled: the double of [1, 3] is wrong.\n  got       [1] = 15"]
    assert bool(unsaid_quotes(course.read(), "doubled", told)) is not said


def _with_hint(course, quote):
    """Put a hint with this title before the first exercise."""
    hint = f"# <details><summary>Hint 1 · “{quote}”</summary>\n#\n# Twice.\n# </details>\n\n"
    course.edit(course.source, '# %% exercise="doubled"', hint + '# %% exercise="doubled"')


def test_a_mistake_with_the_record_of_another(built, verdict):
    add(built.mistakes, AGAIN)
    assert changes(verdict()) == {
        "mistakes": 7,
        "rejected": 7,
        "named": 5,
        "failures": [
            f"doubled: the mistake {name} is rejected, but read as 'nothing known' (seed 11)"
            for name in ("triples", "triples_again")
        ],
    }


def test_a_mistake_that_costs_another_exercise(built, verdict):
    built.edit(
        built.library, "return self.factor * values", "return self.factor * doubled(values) / 2"
    )
    assert changes(verdict()) == {
        "rejected": 3,
        "mutants": 22,
        "failures": [
            f"doubled: the mistake {name} also fails Scale, which should not depend on it"
            for name in ("adds_two", "triples", "forgets")
        ],
    }


def test_too_few_mistakes_and_alternatives(built, verdict):
    text = built.mistakes.read_text()
    without = text.replace('@mistake("doubled", hint="This is three times the value.")\n', "")
    built.mistakes.write_text(without.replace('@alternative("doubled")\n', "", 1))
    assert changes(verdict()) == {
        "mistakes": 5,
        "rejected": 5,
        "named": 5,
        "alternatives": 3,
        "accepted": 3,
        "failures": ["doubled has 2 named mistakes and 1 alternatives; it needs at least 3 and 2"],
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"its start": 1}', '"its start": 2}', "Scale is worth 3 points, its stages 4"),
        (
            '"its start"',
            '"the start"',
            "Scale has a stage that the lesson does not name: the start (1)",
        ),
        ('stages={"the factor": 2, "its start": 1},', "", "Scale is worth 3 points and has no"),
    ],
)
def test_stages_are_named_in_the_text_and_add_up(built, client, old, new, said):
    text = built.checks.read_text()
    text = text.replace(old, new)
    if not new:
        text = text.replace("with expect.stage(", "with contextlib.nullcontext(")
        text = text.replace("import torch", "import contextlib\nimport torch", 1)
    built.checks.write_text(text)
    build(root=built.root)
    (verdict,) = verify(root=built.root, seeds=1, with_mutants=False)
    assert any(failure.startswith(said) for failure in verdict.failures)


def test_a_mistake_earns_the_stages_that_it_says(built, verdict):
    built.edit(built.mistakes, 'earns=("its start",)', 'earns=("the factor",)')
    (missing, lost, *others) = verdict()["failures"]
    assert lost == "Scale: no stored mistake says that it earns the stage 'its start'"
    assert missing == "Scale: no stored mistake fails the stage 'the factor' and earns more"
    assert others == [
        f"Scale: the mistake Adds earns its start (seed {seed}), not what it says"
        for seed in (11, 222, 3333)
    ]


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


def test_a_mistake_in_no_exercise(built, verdict):
    add(built.mistakes, CORRECT.replace('"doubled"', '"dubbled"'))
    assert changes(verdict()) == {
        "failures": ["correct answers 'dubbled', which is no exercise of this lesson"]
    }


# gate 4: right answers pass


def test_an_alternative_that_is_refused(built, verdict):
    add(
        built.mistakes,
        AGAIN.replace('@mistake("doubled", hint="Another hint.")', "@alternative('doubled')"),
    )
    found = verdict()
    (failure,) = found["failures"]
    assert failure.startswith("the right answer triples_again is refused: doubled: the double of")
    assert changes({**found, "failures": []}) == {"alternatives": 5}
