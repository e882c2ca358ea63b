"""Right answers that lack care lose the care share once, however much is missing."""

import numpy
import pytest
import torch
from torch import nn

from autograder.checking.run_check import run_check
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.failure import CheckFailed, noting
from autograder.checking.toolbox.registry import Check
from autograder.inside.answer import LocalAnswer
from autograder.inside.messages.values import plain

F64 = torch.float64


def totals_check(student, draw):
    """The core is the sum of each row; that an empty row has 0 is care."""
    x = draw.normal(2, 5)
    expect.close(student(x), x.sum(1), "the totals are wrong")
    with expect.care():
        expect.close(student(x[:, :0]), torch.zeros(2, dtype=F64), "an empty row has another total")
    with expect.care():
        expect.gradients(student, lambda x: x.sum(1), x)
    expect.raises(student, ValueError, x[0], what="a vector should be refused")


def totals(x):
    """The right answer."""
    if x.dim() != 2:
        raise ValueError("no matrix")
    return x.sum(1)


TOTALS = Check("totals", "care", totals_check, reference=totals)


def judged(answer, **how):
    return run_check(TOTALS, LocalAnswer(answer), 7, **how)


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
    if x.numel() == 0:
        return torch.ones(len(x), dtype=x.dtype)
    return totals(x)


CARELESS = {
    in_a_loop: "the dtype is wrong: the result should keep the precision of the input",
    through_numpy: "no gradient flows back to argument 1",
    seeded: "the values are right, but something else is changed",
    in_place: "the values are right, but the function changes its inputs",
    with_float32_alone: "your code raised RuntimeError",
    without_empty_rows: "an empty row has another total",
}


@pytest.mark.parametrize("answer", CARELESS)
def test_a_right_answer_without_care_loses_the_share_and_reads_why(answer):
    failure = judged(answer)
    assert (failure.is_careless, failure.cost) == (True, 0.25)
    assert str(failure).startswith(f"totals: right. One thing to mend: {CARELESS[answer]}")
    assert str(failure).splitlines()[-1] == "  costs     ¼ of the points"


def test_who_writes_for_float32_alone_reads_what_the_error_means():
    assert "float32 meets one of float64" in judged(with_float32_alone).likely
    assert judged(with_float32_alone, explain=False).likely == ""


def test_a_result_that_no_expectation_foresaw_costs_what_stands_around_it():
    def ragged(x):
        return [[0.0], [0.0, 0.0]] if x.numel() == 0 else totals(x)

    def uses(student, draw):
        totals_check(student, draw)
        with expect.care():
            torch.as_tensor(student(draw.normal(2, 0))).sum()

    item = Check("totals", "care", uses, reference=totals)
    failure = run_check(item, LocalAnswer(ragged), 7)
    assert (failure.is_careless, failure.cost) == (True, 0.25)


def test_a_careful_answer_loses_nothing():
    assert judged(totals) is None


def test_a_wrong_answer_that_lacks_care_as_well_loses_all():
    failure = judged(lambda x: in_a_loop(x) + 1)
    assert (failure.is_careless, failure.cost) == (False, 1.0)
    assert failure.what == "the totals are wrong"


def test_the_core_is_asked_behind_what_is_care():
    def refuses_nothing(x):
        return torch.ones(len(x), dtype=x.dtype) if x.numel() == 0 else x.sum(-1)

    failure = judged(refuses_nothing)
    assert (failure.what, failure.cost) == ("a vector should be refused", 1.0)


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "nothing"), (0.5, "½ of the points"), (0.3, "30% of the points")],
)
def test_the_share_is_a_courses_to_choose(share, words):
    failure = judged(seeded, care_share=share)
    assert failure.cost == share
    assert f"costs     {words}" in str(failure)


def test_a_stub_within_care_is_still_a_stub():
    def stub(x):
        raise NotImplementedError("totals: write about 1 line")

    assert judged(stub).is_stub


class Doubled(nn.Module):
    """The right answer of an exercise in which a weight is learned."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.weight * x


class Detached(Doubled):
    def forward(self, x):
        return self.weight.detach() * x + 0 * self.weight.sum().detach()


def doubled_check(student, draw):
    module = student.build()
    module.load({"weight": draw.normal(3)})
    x = draw.normal(4, 3)
    expect.close(module(x) / module(torch.ones(3, dtype=F64)), x, "a product is wrong")


def test_a_weight_that_cannot_learn_is_no_matter_of_care():
    item = Check("Doubled", "care", doubled_check, reference=Doubled)
    assert run_check(item, LocalAnswer(Doubled), 7) is None
    failure = run_check(item, LocalAnswer(Detached), 7)
    assert failure.cost == 1.0


def test_what_a_check_declares_as_its_core_is_no_matter_of_care():
    item = Check("totals", "care", totals_check, reference=totals, core=("device",))

    def on_the_cpu(x):
        return totals(x) + torch.zeros(len(x))

    assert judged(on_the_cpu).is_careless
    failure = run_check(item, LocalAnswer(on_the_cpu), 7)
    assert (failure.is_careless, failure.what) == (False, "on a GPU this fails")


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (numpy.int64(3), 3),
        (numpy.float64(0.5), 0.5),
        (numpy.bool_(True), True),
        (numpy.str_("word"), "word"),
        ([numpy.int64(1), (numpy.int64(2),)], [1, (2,)]),
    ],
)
def test_numpys_numbers_are_numbers(value, same):
    found = plain(value)
    assert found == same
    assert type(found) is type(same)


def test_float32_in_the_place_of_float64_is_compared_as_float32():
    wanted = torch.tensor([1.0, 1 / 3], dtype=F64)
    with noting() as notes:
        expect.close(wanted.float(), wanted, "wrong")
    assert [one.what.partition(":")[0] for one in notes.careless] == ["the dtype is wrong"]
    with pytest.raises(CheckFailed, match="wrong"), noting():
        expect.close(wanted.float() + 1e-3, wanted, "wrong")
    with pytest.raises(CheckFailed, match="the dtype is wrong"):
        expect.close(wanted.half(), wanted, "wrong")


class Doubles(nn.Module):
    """A module with a weight; the right answer."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(2.0, dtype=F64))

    def forward(self, x):
        return self.factor * (x + 1)


class DoublesInPlace(Doubles):
    def forward(self, x):
        return self.factor * x.add_(1)


def doubles_check(student, draw):
    module, x = student.build(), draw.normal(2, 3)
    expect.close(module(x), 2 * (x + 1), "the values are wrong")
    by_name, (found,) = module.gradients(x)
    expect.close(found, torch.full_like(x, 2.0), "the gradient is wrong")
    expect.close(by_name["factor"], (x + 1).sum(), "the gradient of the factor is wrong")


def test_a_module_that_changes_its_argument_in_place_is_right_but_careless():
    failure = run_check(
        Check("Doubles", "care", doubles_check, reference=Doubles), LocalAnswer(DoublesInPlace), 7
    )
    assert (failure.is_careless, failure.cost) == (True, 0.25)
    assert "the function changes its inputs" in failure.what
