"""Which classes of faults a check looks for."""

import pytest
import torch

from autograder.building.gates import mutants
from autograder.checking.input_coverage import CLASSES, coverage, unknown
from autograder.checking.toolbox.registry import Check
from tests.autograder.half import half


def asking(*tensors):
    """A check of ``half`` that asks for these tensors."""

    def check(student, draw):
        for tensor in tensors:
            student.outcome(tensor)

    return Check("half", "nowhere", check, reference=half)


FULL = (
    torch.ones(2, 3).double(),
    torch.ones(1, 3).double(),
    torch.full((2, 3), -200.0).double(),
    torch.ones(3, 2).double().T,
    torch.ones(2).long(),
)


def test_a_check_that_asks_for_all_is_told_so():
    assert coverage(asking(*FULL), 7) == dict.fromkeys(CLASSES, True) | {
        "turns": "no object is built",
        "offset": "no spread is measured",
    }


@pytest.mark.parametrize(
    ("place", "missing"), [(1, "ones"), (2, "large"), (3, "strided"), (4, "refusals")]
)
def test_what_is_never_asked_for_is_reported(place, missing):
    item = asking(*FULL[:place], *FULL[place + 1 :])
    assert [name for name, found in coverage(item, 7).items() if not found] == [missing]
    (failure,) = mutants._uncovered(item, 7)
    assert failure.startswith(f"half: its check never asks for {missing} ")


def test_a_square_shows_no_swapped_axis():
    found = coverage(asking(torch.ones(3, 3).double(), torch.ones(1).double()), 7)
    assert found["unlike"] is False


def test_an_excuse_is_its_reason_and_a_misspelt_one_excuses_nothing():
    check = asking(FULL[0])
    excused = Check("half", "nowhere", check.run, (("ones", "why"), ("lagre", "why")), half)
    found = coverage(excused, 7)
    assert (found["ones"], found["large"]) == ("why", False)
    assert unknown(excused) == ["lagre"]


def test_where_no_tensor_goes_in_nothing_is_missing():
    item = Check("count", "nowhere", lambda student, draw: student([1, 2]), reference=len)
    assert all(coverage(item, 7).values())


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_where_a_spread_is_measured_numbers_far_from_0_are_asked_for(offset):
    def check(student, draw):
        student(draw.normal(2, 3) + offset)

    item = Check("spread", "nowhere", check, reference=lambda x: x.var(dim=-1))
    assert coverage(item, 7)["offset"] is (offset > 0)


def refuses_in_words(text):
    """Cut a text; a lone surrogate is refused with a ValueError."""
    return list(text.encode("utf-8"))


@pytest.mark.parametrize(("text", "covered"), [("a", False), ("\ud800", True)])
def test_an_exception_that_only_the_docstring_names_is_asked_for(text, covered):
    def check(student, draw):
        student.outcome(text)

    item = Check("cuts", "nowhere", check, reference=refuses_in_words)
    # A UnicodeEncodeError is a ValueError.
    assert coverage(item, 7)["refusals"] is covered
