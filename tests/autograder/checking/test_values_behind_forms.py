"""Where a result has another form and wrong numbers besides, the numbers are explained."""

import pytest

from autograder.checking.run_check import run_check
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import Answer, Check
from autograder.inside.answer import LocalAnswer

WRONG = "the centre is wrong"


def centred(x, pair=False):
    """The right answer."""
    centre = x.mean(dim=-1, keepdim=True)
    return (x - centre, centre) if pair else x - centre


def check(student, draw):
    """Of the result alone, and of both."""
    for x in (draw.normal(3, 5), draw.normal(2, 3, 7)):
        expect.close(student(x), centred(x), WRONG)
        both = expect.parts(student(x, pair=True), "result", "centre")
        for got, wanted in zip(both, centred(x, True), strict=True):
            expect.close(got, wanted, WRONG)


def judge(answer):
    item = Check("centred", "nowhere", check, reference=centred)
    return run_check(item, LocalAnswer(answer), 7)


def adds(x, pair=False):
    centre = x.mean(dim=-1, keepdim=True)
    return (x + centre, centre) if pair else x + centre


@pytest.fixture
def stored(known):
    known.append(Answer("adds", "centred", adds, "the sign"))


FORMS = {
    "a list": lambda x: list(x),
    "one axis more": lambda x: x.unsqueeze(1),
    "a pair": lambda x: (x, 0),
    "numbers in lists": lambda x: x.tolist(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_form_is_told_and_the_mistake_in_the_numbers_is_named(stored, form):
    failure = judge(lambda x, pair=False: adds(x, True) if pair else form(adds(x)))
    assert failure.is_form and failure.likely == "the sign"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_right_numbers_in_another_form_are_told_for_their_form(stored, form):
    failure = judge(lambda x, pair=False: centred(x, True) if pair else form(centred(x)))
    assert failure.is_form and failure.likely != "the sign"


def test_a_forgotten_result_hides_no_mistake(stored):
    failure = judge(lambda x, pair=False: adds(x))
    assert failure.likely == "the sign"
    failure = judge(lambda x, pair=False: centred(x))
    assert failure.what == "there should be 2 results" and failure.likely != "the sign"


def test_numbers_that_no_mistake_explains_are_compared_in_the_right_form():
    failure = judge(lambda x, pair=False: centred(x, True) if pair else list(2 * centred(x)))
    assert "Every number is 2 times the expected one" in failure.likely


def test_a_failure_of_form_says_which_call_and_which_result_it_means():
    def narrow(x, pair=False):
        result, centre = centred(x, True)
        return (result, centre.squeeze(-1)) if pair else result

    failure = judge(narrow)
    assert failure.what == "the shape of the second result is wrong"
    assert failure.got == "shape (3,)\ncalled with (tensor (3, 5) float64, pair=True)"
