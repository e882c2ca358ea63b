"""Right answers that lack care lose the care share once, where a text has asked for it."""

import dataclasses

import pytest
import torch
from torch import nn

from autograder.checking import run_check as run_check_of
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.failure import CheckFailed, noting
from autograder.checking.toolbox.registry import Check
from autograder.inside.answer import LocalAnswer
from autograder.settings import COURSE, Care

F64 = torch.float64


def totals_check(student, draw):
    """The core is the sum of each row; that an empty row has 0 is care."""
    x = draw.normal(2, 5)
    expect.close(student(x), x.sum(1), "the totals are wrong")
    with expect.care("empty"):
        expect.close(student(x[:, :0]), torch.zeros(2, dtype=F64), "an empty row has another total")
    with expect.care("gradients"):
        expect.gradients(student, lambda x: x.sum(1), x)
    with expect.care("empty"):
        torch.as_tensor(student(x[:0])).sum()
    expect.raises(student, ValueError, x[0], what="a vector should be refused")


def totals(x):
    """The right answer."""
    if x.dim() != 2:
        raise ValueError("no matrix")
    return x.sum(1)


KINDS = ("again", "changes", "device", "dtype", "empty", "float32", "gradients", "learning")
ASKS = tuple((kind, f"words that ask for {kind}") for kind in KINDS)
TOTALS = Check("totals", "care", totals_check, reference=totals, asks=ASKS)


def judged(answer, item=TOTALS, **how):
    return run_check(item, LocalAnswer(answer), 7, **how)


def in_a_loop(x):
    """Rows that are added up on the CPU, in float32."""
    found = torch.zeros(len(totals(x)))
    for place, row in enumerate(x):
        found[place] = row.sum()
    return found


def through_numpy(x):
    totals(x)
    return torch.tensor(x.detach().numpy().sum(1))


def seeded(x):
    torch.manual_seed(0)
    return totals(x)


def in_place(x):
    found = totals(x)
    return x.zero_().sum(1) + found


def with_float32_alone(x):
    ones = torch.ones(x.shape[-1] if x.dim() == 2 else totals(x))
    return x @ ones


def without_empty_rows(x):
    return torch.ones(len(x), dtype=x.dtype) if not x.shape[-1] else totals(x)


def ragged_without_rows(x):  # which no expectation foresees
    return totals(x) if len(x) else [[0.0], [0.0, 0.0]]


class Doubles(nn.Module):
    """The right answer of an exercise in which a weight is learned."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(2.0, dtype=F64))

    def forward(self, x):
        return self.factor * (x + 1)


class InPlace(Doubles):
    def forward(self, x):
        return self.factor * x.add_(1)


class Detached(Doubles):
    def forward(self, x):
        return self.factor.detach() * (x + 1) + 0 * self.factor


def doubles_check(student, draw):
    module, x = student.build(), draw.normal(2, 3)
    expect.close(module(x), 2 * (x + 1), "the values are wrong")


DOUBLES = Check("doubles", "care", doubles_check, reference=Doubles, asks=ASKS)
CARELESS = {
    in_a_loop: "the dtype is wrong: the result should keep the precision of the input",
    through_numpy: "no gradient flows back to argument 1",
    seeded: "the values are right, but something else is changed",
    in_place: "the values are right, but the function changes its inputs",
    with_float32_alone: "your code raised RuntimeError",
    without_empty_rows: "an empty row has another total",
    ragged_without_rows: "the check could not use the result",
    InPlace: "the values are right, but the function changes its inputs",
}


@pytest.mark.parametrize("answer", CARELESS)
def test_a_right_answer_without_care_loses_the_share_and_reads_why(answer):
    item = DOUBLES if answer is InPlace else TOTALS
    failure = judged(answer, item)
    assert (failure.is_careless, failure.cost) == (True, 0.25)
    assert str(failure).startswith(f"{item.name}: right. One thing to mend: {CARELESS[answer]}")
    assert str(failure).splitlines()[-1] == "  costs     ¼ of the points"


def unasked(item, kind=None):
    """The check of an exercise whose text does not ask for one kind of care, or for none."""
    return dataclasses.replace(item, asks=tuple(one for one in ASKS if kind and one[0] != kind))


@pytest.mark.parametrize("answer", CARELESS)
def test_what_no_text_has_asked_for_costs_nothing(answer):
    item = unasked(DOUBLES if answer is InPlace else TOTALS)
    assert judged(answer, item) is None
    failure = judged(answer, item, told={})
    assert (failure.is_careless, failure.is_note, failure.cost) == (True, True, 0)
    assert str(failure).startswith(f"{item.name}: right. A note: {CARELESS[answer]}")
    assert str(failure).splitlines()[-1] == "  costs     nothing"


@pytest.mark.parametrize("answer", CARELESS)
def test_a_class_may_have_all_care_cost(answer):
    item = unasked(DOUBLES if answer is InPlace else TOTALS)
    failure = judged(answer, item, rule=Care(0.5, everywhere=True))
    assert (failure.is_careless, failure.is_note, failure.cost) == (True, False, 0.5)
    assert str(failure).startswith(f"{item.name}: right. One thing to mend: {CARELESS[answer]}")


def test_of_what_is_missing_that_which_costs_is_said():
    def both(x):  # in place, and wrong for empty rows
        return in_place(x) if x.shape[-1] else without_empty_rows(x)

    for kind, what in (("empty", CARELESS[in_place]), ("changes", CARELESS[without_empty_rows])):
        failure = judged(both, unasked(TOTALS, kind))
        assert (failure.cost, failure.what) == (0.25, what)


def test_what_is_a_note_in_float64_costs_nothing_in_float32():
    item = dataclasses.replace(TOTALS, asks=(("float32", "right in float32"),))
    assert judged(without_empty_rows, item) is None
    assert judged(without_empty_rows, item, told={}).what == CARELESS[without_empty_rows]


def test_a_note_is_said_beside_one_exercise():
    told, other = {}, dataclasses.replace(unasked(TOTALS), name="sums")
    for _ in range(2):  # who mends it and runs the check again reads it again
        assert judged(seeded, unasked(TOTALS), told=told).care == "changes"
    assert judged(seeded, other, told=told) is None
    assert judged(through_numpy, other, told=told).care == "gradients"


def test_an_earlier_lesson_may_have_asked(monkeypatch):
    asked = {"changes": ("05_scaled_dot_product_attention", "leave all as it was")}
    monkeypatch.setattr(run_check_of, "COURSE", dataclasses.replace(COURSE, care=asked))
    for lesson, cost in (("score_functions", None), ("masked_attention", 0.25), ("care", None)):
        failure = judged(seeded, dataclasses.replace(unasked(TOTALS), lesson=lesson))
        assert (failure and failure.cost) == cost


def test_who_writes_for_float32_alone_reads_what_the_error_means():
    assert "float32 meets one of float64" in judged(with_float32_alone).likely
    assert judged(with_float32_alone, explain=False).likely == ""


def test_a_careful_answer_loses_nothing():
    assert judged(totals) is judged(Doubles, DOUBLES) is None


def refuses_nothing(x):
    return torch.ones(len(x), dtype=x.dtype) if not x.shape[-1] else x.sum(-1)


@pytest.mark.parametrize(
    ("answer", "item", "what"),
    [
        (lambda x: in_a_loop(x) + 1, TOTALS, "the totals are wrong"),
        (refuses_nothing, TOTALS, "a vector should be refused"),  # asked behind what is care
        (Detached, DOUBLES, "no gradient flows back to factor"),  # its text says that it learns
    ],
)
def test_an_answer_that_is_wrong_besides_loses_all(answer, item, what):
    failure = judged(answer, item)
    assert (failure.is_careless, failure.cost, failure.what) == (False, 1.0, what)


class CutOff(Doubles):
    """Its weight learns, and what comes before it could not."""

    def forward(self, x):
        return self.factor * (x.detach() + 1) + 0 * x


@pytest.mark.parametrize("answer", [CutOff, Detached])
def test_a_gradient_is_care_in_a_module_as_in_a_function(answer):
    item = unasked(DOUBLES, "learning") if answer is Detached else DOUBLES
    failure = judged(answer, item)
    assert (failure.is_careless, failure.care, failure.cost) == (True, "gradients", 0.25)
    assert judged(answer, unasked(DOUBLES)) is None


class Frozen(Doubles):
    def __init__(self):
        super().__init__()
        self.factor.requires_grad_(False)


@pytest.mark.parametrize("answer", [Frozen, Detached])
def test_of_a_gradient_that_is_missing_no_cause_is_named_that_was_not_tried(answer):
    failure = judged(answer, DOUBLES)
    assert (failure.what, failure.got) == ("no gradient flows back to factor", "no gradient")


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "nothing"), (0.5, "½ of the points"), (0.3, "30% of the points")],
)
def test_the_share_is_a_courses_to_choose(share, words):
    failure = judged(seeded, rule=Care(share))
    assert failure.cost == share
    assert f"costs     {words}" in str(failure)


def test_a_stub_within_care_is_still_a_stub():
    def stub(x):
        if x.shape[-1]:
            return totals(x)
        raise NotImplementedError("totals: write about 1 line")

    assert (judged(stub).is_stub, judged(stub).is_careless) == (True, False)


def test_what_a_check_declares_as_its_core_is_no_matter_of_care():
    def on_the_cpu(x):
        return totals(x) + torch.zeros(len(x))

    item = dataclasses.replace(TOTALS, core=("device", "inputs"))
    assert judged(on_the_cpu).is_careless
    for answer, what in ((on_the_cpu, "on a GPU this fails"), (in_place, CARELESS[in_place])):
        failure = judged(answer, item)
        assert (failure.is_careless, failure.what) == (False, what)


def test_float32_in_the_place_of_float64_is_compared_as_float32():
    wanted = torch.tensor([1.0, 1 / 3], dtype=F64)
    with noting() as notes:
        expect.close(wanted.float(), wanted, "wrong")
    assert [one.what.partition(":")[0] for one in notes.careless] == ["the dtype is wrong"]
    with pytest.raises(CheckFailed, match="wrong"), noting():
        expect.close(wanted.float() + 1e-3, wanted, "wrong")
    with pytest.raises(CheckFailed, match="the dtype is wrong"):
        expect.close(wanted.half(), wanted, "wrong")
