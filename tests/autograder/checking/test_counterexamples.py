"""Exercises that ask for an input on which a given wrong answer fails."""

import pytest
import torch

from autograder.building.gates import mutants
from autograder.checking import counterexamples
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.expect import CheckFailed
from autograder.checking.toolbox.student_answer import Student
from autograder.inside.answer import LocalAnswer

ITEM = "break_ngram_matches"


def verdict(returned):
    def answer():
        return returned

    return run_check(registry.find(ITEM), LocalAnswer(answer), seed=1)


@pytest.mark.parametrize(
    "right", [(["ab", "c"], ["a", "bc"]), [["ab", "c"], ["a", "bc"]], (["x", "yz"], ["xy", "z"])]
)
def test_any_input_that_shows_the_fault_is_right(right):
    assert verdict(right) is None


def test_an_input_on_which_the_wrong_answer_is_right_is_told_both_results_and_its_kind():
    failure = verdict((["a", "b"], ["b", "a"]))
    assert "glues_the_tokens is right" in failure.what
    assert "[2, 0, 0, 0]" in failure.got
    assert failure.likely.startswith("Every token is one letter")
    assert failure.seed is None  # nothing was drawn


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "no input of ngram_matches"),
        ((["a"],), "no input of ngram_matches"),
        ((["a"], ["b"], ["c"]), "no input of ngram_matches"),
        (("ab", "c"), "a sentence is a list of tokens"),
        ((["a"] * 20_000, ["a"]), "larger than it needs to be"),
        (([object()], ["a"]), "something that is no argument"),
        ((["a"], [torch.tensor([float("nan")])]), "NaN"),
        ((["a"], [10**9]), "larger than it needs to be"),
    ],
)
def test_what_is_no_input_is_refused_with_a_sentence(returned, said):
    assert said in str(verdict(returned))


def of_regression(*arguments):
    item = registry.find("break_nadaraya_watson")
    return run_check(item, LocalAnswer(lambda: arguments), seed=1)


def test_an_argument_that_should_be_a_tensor_is_named():
    far, keys = torch.tensor([100.0]), torch.tensor([0.0, 1.0])
    assert of_regression(far, keys, keys, 1.0) is None
    failure = of_regression([100.0], keys, keys, 1.0)
    assert (failure.what, failure.got) == ("x is not a tensor", "a list: [100.0]")
    failure = of_regression(far, keys, [0.0, 1.0], 1.0)
    assert failure.what == "y_train is not a tensor"
    failure = of_regression(1, keys, keys, 1.0)
    assert failure.what == "x is not a tensor" and not failure.likely


def test_of_arguments_with_one_shape_the_one_that_does_not_fit_is_named():
    allowed = counterexamples.shaped("T, d", "T")
    fits = torch.zeros(3, 2), torch.zeros(3)
    allowed(*fits)
    for place, wrong in ((0, torch.zeros(3)), (1, torch.zeros(4))):
        with pytest.raises(CheckFailed, match="the result has another form") as raised:
            allowed(*(wrong if n == place else one for n, one in enumerate(fits)))
        assert raised.value.about is wrong


def told(exercise, words):
    """The name of the stored mistake whose hint has these words."""
    known = registry.mistakes(registry.find(exercise))
    return next(one.name for one in known if words in one.hint)


def judged(returned, exercise, wrong):
    student = Student(LocalAnswer(lambda: returned))
    counterexamples.judge(student, exercise, wrong)


def test_an_input_that_the_right_answer_cannot_take_says_with_what_it_was_called():
    values = torch.zeros(3)
    with pytest.raises(CheckFailed, match="cannot take this input") as raised:
        judged((values, values, values, 1.0), "soft_lookup", told("soft_lookup", "not squared"))
    assert "tensor (3,) float64" in raised.value.got


def test_a_refusal_that_the_wrong_answer_forgets_is_a_difference():
    wrong = told("sinusoidal_positions", "odd d_model is not refused")
    judged((torch.arange(2.0), 3), "sinusoidal_positions", wrong)


def test_what_overflows_in_the_precision_of_the_input_shows_a_fault():
    scores, lengths = torch.tensor([[[0.0, 150.0]]]), torch.tensor([1])
    wrong = "divides_again_after_the_mask"  # exp(-150) is 0 in float32, and not in float64
    judged((scores, lengths), "masked_softmax", wrong)
    with pytest.raises(CheckFailed, match="is right"):
        judged((scores.double(), lengths), "masked_softmax", wrong)


def test_numbers_are_compared_in_float64(monkeypatch):
    def right(values):
        return values.sum()

    def in_another_order(values):
        return values.sort().values.sum()

    item = registry.find(ITEM)
    known = registry.Answer("in_another_order", ITEM, in_another_order, "hint")
    monkeypatch.setattr(counterexamples, "reference", lambda item: right)
    monkeypatch.setattr(registry, "mistakes", lambda item: [known])
    monkeypatch.setattr(registry, "find", lambda name: item)
    with pytest.raises(CheckFailed, match="is right"):
        judged(torch.tensor([1e5, 0.1, -1e5, 0.7]), "ngram_matches", "in_another_order")


def test_no_mutant_is_asked_where_many_answers_are_right():
    item = registry.find(ITEM)
    assert not item.has_one_right_answer
    assert mutants.survivors(item, 1) == (0, [])


def test_an_input_that_is_drawn_at_random_may_be_right():
    def answer():
        letter = "xyz"[int(torch.randint(3, ()))]
        return ["ab", letter], ["a", f"b{letter}"]

    assert run_check(registry.find(ITEM), LocalAnswer(answer), seed=1) is None


WRITTEN = """
def break_ngram_matches():
    return INPUT

{own}
"""


def beside_ones_own(own, returned):
    """The verdict where no right answer is at hand but what the student wrote."""
    written = {"INPUT": returned}
    exec(WRITTEN.format(own=own), written)
    return run_check(registry.find(ITEM), LocalAnswer(written["break_ngram_matches"]), seed=1)


def test_in_a_students_copy_their_own_answer_is_compared_once_it_is_right(monkeypatch):
    monkeypatch.setattr(counterexamples, "reference", lambda item: None)
    shows, hides = (["ab", "c"], ["a", "bc"]), (["a", "b"], ["b", "a"])
    own = "from attention.translation import ngram_matches"
    assert beside_ones_own(own, shows) is None
    assert "glues_the_tokens is right" in beside_ones_own(own, hides).what
    wrong = "def ngram_matches(*_):\n    return [0, 0, 0, 0]"
    assert "which is not right yet" in beside_ones_own(wrong, shows).what
    assert "which is not defined" in beside_ones_own("", shows).what
