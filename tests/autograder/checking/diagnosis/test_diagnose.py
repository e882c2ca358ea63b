"""Why an answer fails: only what is true of all its replies."""

import dataclasses

import pytest
import torch

from autograder.checking.asking.questions import Question, Replied
from autograder.checking.diagnosis.common_cause import where
from autograder.checking.diagnosis.diagnose import diagnose
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import Answer, Check
from autograder.inside.answer import LocalAnswer


def centred(x, scale=1.0):
    """The right answer."""
    return scale * (x - x.mean(dim=-1, keepdim=True))


def check(student, draw):
    """Of values alone."""
    for x in (draw.normal(3, 5), draw.normal(2, 3, 7)):
        for scale in ({}, {"scale": 3.0}):
            torch.testing.assert_close(student(x, **scale), centred(x, **scale))


CENTRED = Check("centred", "nowhere", check, reference=centred)


def likely(answer):
    """What is likely, with the mistakes that are stored."""
    return run_check(CENTRED, LocalAnswer(answer), 7, told={}).likely


def forgets_the_scale(x, scale=1.0):
    return x - x.mean(dim=-1, keepdim=True)


def stored(answer, hint):
    return Answer(hint, "centred", answer, hint)


def test_a_mistake_is_named_only_if_all_its_replies_fit(known):
    known.append(stored(forgets_the_scale, "scale"))
    assert likely(lambda x, scale=1.0: centred(x)) == "scale"
    assert "scale" not in likely(lambda x, scale=1.0: centred(x) + 1e-3).split()
    once = lambda x, scale=1.0: centred(x) if x.dim() == 2 else centred(x, scale)  # noqa: E731
    assert likely(once) != "scale"


@pytest.mark.parametrize("form", [torch.Tensor.tolist, torch.Tensor.float, tuple, list])
def test_a_mistake_in_another_form_is_named_and_a_right_answer_in_it_is_not(known, form):
    known.append(stored(forgets_the_scale, "scale"))
    known.append(stored(lambda x, scale=1.0: centred(x, scale).half(), "half"))
    assert likely(lambda x, scale=1.0: form(centred(x))) == "scale"
    assert likely(lambda x, scale=1.0: form(1.01 * centred(x))) != "scale"
    said = run_check(CENTRED, LocalAnswer(lambda x, scale=1.0: form(centred(x, scale))), 7, told={})
    assert said is None or said.likely not in ("scale", "half")


def test_a_changed_input_tells_two_mistakes_apart(known):
    def in_place(x, scale=1.0):
        x -= x.mean(dim=-1, keepdim=True)
        return x * 1

    known.append(stored(in_place, "in place"))
    assert likely(in_place) == "in place"
    assert likely(forgets_the_scale) != "in place"


def test_what_is_no_mistake_is_nobodys_likeness(known):
    known += [Answer("right", "centred", centred), stored(centred, "wrongly called a mistake")]
    assert likely(lambda x, scale=1.0: 2 * centred(x, scale)).startswith("Every number is 2 times")


def test_rounding_of_float32_does_not_hide_a_mistake(known):
    def asks(student, draw):
        x = draw.normal(50).float()
        expect.close(student(x), x.exp(), "x")

    known.append(stored(lambda x: x * x * 3, "forgotten"))
    exponential = Check("half", "nowhere", asks, reference=torch.exp)
    answer = LocalAnswer(lambda x: 3.0 * x.pow(2.0) + 1e-7 * x)
    assert run_check(exponential, answer, 7, told={}).likely == "forgotten"


def test_a_mistake_known_for_its_form_is_not_named_for_gradients_that_both_lack(known):
    known.append(stored(lambda x, scale=1.0: centred(x, scale).float().detach(), "float32"))
    answer = lambda x, scale=1.0: centred(x, scale).detach()  # noqa: E731
    assert "No gradient reaches argument 1." in likely(answer)


def test_the_words_of_a_refusal_hide_no_mistake(known, monkeypatch):
    def refusing(answer, words):
        def refuses(x, scale=1.0):
            if scale < 0:
                raise ValueError(words)
            return answer(x, scale)

        return refuses

    def asks(student, draw):
        check(student, draw)
        expect.raises(student, ValueError, draw.normal(3, 5), -1.0, what="-1 should be refused")

    item = Check("centred", "nowhere", asks, reference=refusing(centred, "scale=-1.0 is below 0"))
    known.append(stored(refusing(forgets_the_scale, "the scale is -1.0, 0 is the least"), "scale"))
    for words in ("too small", "-1.0 of 7 and 9", "scale=-1.0 is below 0"):
        given = LocalAnswer(refusing(forgets_the_scale, words))
        assert run_check(item, given, 7, told={}).likely == "scale"
    assert run_check(item, LocalAnswer(forgets_the_scale), 7, told={}).likely != "scale"


def test_what_is_a_matter_of_care_hides_no_mistake(known):
    def asks(student, draw):
        check(student, draw)
        with expect.care():
            expect.close(student(torch.ones(1, 1)), torch.zeros(1, 1), "of one number it is 0")

    def of_one(x, scale=1.0):
        return x if x.numel() == 1 else forgets_the_scale(x)

    item = Check("centred", "nowhere", asks, reference=centred)
    known.append(stored(forgets_the_scale, "scale"))
    assert run_check(item, LocalAnswer(of_one), 7, told={}).likely == "scale"

    def careless_of_one(x, scale=1.0):
        return x if x.numel() == 1 else centred(x, scale)

    careless = run_check(item, LocalAnswer(careless_of_one), 7, told={})
    assert careless.is_careless and careless.likely != "scale"


def test_two_hints_for_the_same_replies_give_no_name(known):
    known.append(stored(forgets_the_scale, "one"))
    known.append(stored(lambda x, scale=1.0: centred(x), "two"))
    assert likely(forgets_the_scale) == ""
    known[1] = stored(lambda x, scale=1.0: centred(x), "one")
    assert likely(forgets_the_scale) == "one"


def test_of_two_mistakes_that_differ_in_tiny_numbers_the_exact_one_is_named(known):
    def cut(tiny):
        return lambda x, scale=1.0: torch.where(x < 0, tiny, centred(x, scale))

    known += [stored(cut(0.0), "zero"), stored(cut(1e-12), "tiny")]
    assert likely(cut(0.0)) == "zero"
    assert likely(cut(1e-13)) == "tiny"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            lambda x, scale=1.0: 1.5 * centred(x, scale),
            "Every number is 1.5 times the expected one.",
        ),
        (
            lambda x, scale=1.0: centred(x, scale) * x.shape[-1] ** 0.5,
            "In one of the calls, every number is 2.23607 times the expected one (√5, where 5 is "
            "a size of the arguments).",
        ),
        (
            lambda x, scale=1.0: centred(x, scale).detach(),
            "No gradient reaches argument 1. The results are right, the gradients are not.",
        ),
        (
            lambda x, scale=1.0: centred(x, scale) + (scale > 2) * x.sin(),
            "Of the calls tried, it is wrong only where `scale` is given.",
        ),
        (
            lambda x, scale=1.0: centred(x, scale) + (x.dim() == 3) * x.sin(),
            "Of the calls tried, it is wrong only where argument 1 has 3 axes.",
        ),
        (
            lambda x, scale=1.0: x if x > 0 else x.sin(),
            "`if`, `and`, `or` and `not` need one True or False, and got a tensor of several "
            "elements. Use `&`, `|` and `~` element by element, and `is not None` to ask whether "
            "an argument was given.",
        ),
        (
            lambda x, scale=1.0: print(end="") + x,
            "A value it computes with is None: an argument that was left out or is None, or what "
            "a function returned.",
        ),
        (
            lambda x, scale=1.0: 2 * x.copy_(centred(x, scale)),
            "Every number is 2 times the expected one. The call changes argument 1, for its caller "
            "as well: work on a copy.",
        ),
        (lambda x, scale=1.0: x.sin(), ""),
        (lambda x, scale=1.0: x.sin()[:, :2], ""),
    ],
)
def test_what_no_stored_mistake_explains(known, answer, said):
    assert likely(answer) == said


def test_a_right_answer_and_a_lost_one_get_no_diagnosis(known):
    assert run_check(CENTRED, LocalAnswer(centred), 7, told={}) is None
    assert diagnose(CENTRED, [Replied("value", torch.ones(3, 5))], 7) == ""


# where


def pair(right, *args, request="call", **kwargs):
    wanted = torch.ones(2)
    question = Question(0, request, (list(args), kwargs))
    return question, Replied("value", wanted if right else -wanted), Replied("value", wanted)


ROW, TABLE = torch.ones(4), torch.ones(2, 3)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ((ROW,), (torch.ones(1),), "an axis has size 1"),
        ((ROW,), (ROW * 99,), "an argument holds large numbers"),
        ((TABLE,), (torch.ones(3, 2).T,), "an argument is not contiguous in memory"),
        ((ROW,), (ROW, 2), "argument 2 is given"),
        ((TABLE,), (torch.ones(3, 4).T,), ""),  # it may be the sizes
        ((3, ROW), (3, TABLE), ""),  # argument 1 is no tensor
        ((TABLE,), (ROW,), "argument 1 has 1 axis"),
    ],
)
def test_what_separates_wrong_calls_from_right_ones(right, wrong, said):
    expected = f"Of the calls tried, it is wrong only where {said}." if said else ""
    assert where([pair(True, *right), pair(False, *wrong)]) == expected


def test_what_right_calls_have_too_or_is_rightly_refused_separates_nothing():
    narrow, refusal = torch.ones(1), Replied("raised", ("ValueError", "no"))
    assert where([pair(True, narrow), pair(False, narrow)]) == ""
    assert where([pair(False, narrow), pair(False, narrow)]) == ""
    assert where([(pair(True, ROW)[0], refusal, refusal), pair(False, narrow)]) == ""


def test_gradients_are_blamed_only_if_they_are_wrong():
    said = "The results are right, the gradients are not."
    right, wrong = pair(True, ROW, request="gradients"), pair(False, ROW, request="gradients")
    assert where([pair(True, ROW), wrong]) == said
    assert where([pair(True, ROW), right]) == ""
    assert where([wrong]) == ""


# Modules


class Line(torch.nn.Module):
    """A line through 0, whose weights are called ``name``."""

    def __init__(self, name="map"):
        super().__init__()
        self.add_module(name, torch.nn.Linear(2, 1, bias=False))

    def forward(self, x, shift=0.0):
        (layer,) = self.children()
        return x @ layer.weight.to(x).T + shift


def test_where_weights_cannot_be_loaded_nothing_is_said_of_calls(known):
    def asks(student, draw):
        line = student.build()
        line.load({"map.weight": torch.tensor([[2.0, 3.0]], dtype=torch.float64)})
        x = torch.zeros(1, 2, dtype=torch.float64)
        expect.close(line(x), x[:, :1], "at zero it should be 0")
        expect.close(line(x + 1, 1.0), x[:, :1] + 6, "with a shift it should be 6")

    item = Check("line", "nowhere", asks, reference=Line)
    failure = run_check(item, LocalAnswer(lambda: Line("weights")), 0, told={})
    assert failure.what == "the module has other parameters"
    assert not failure.likely


def product(x, return_weights=False, loud=False):
    weights = torch.softmax(x, -1)
    return (x * weights, weights) if return_weights else x * weights


def asks_for_pairs(student, draw):
    x = draw.normal(3, 5)
    for keywords in ({}, {"loud": True}, {"return_weights": True}):
        expect.equal(student(x, **keywords), product(x, **keywords), "wrong")


def test_what_should_be_returned_alone_is_not_said_of_the_calls_that_ask_for_a_pair(known):
    item = Check("product", "nowhere", asks_for_pairs, reference=product)
    said = run_check(item, LocalAnswer(lambda x, **_: product(x, True)), 7, told={}).likely
    assert said == (
        "The first item of the result is right. It should be returned alone unless "
        "return_weights=True."
    )
    never = Check(
        "product", "nowhere", lambda student, draw: expect.tensor(student(draw.normal(3)))
    )
    never = dataclasses.replace(never, reference=product)
    said = run_check(never, LocalAnswer(lambda x: product(x, True)), 7, told={}).likely
    assert said == "The first item of the result is right. It should be returned alone."


def test_weights_drawn_at_random_hide_no_mistake(known):
    """Whoever makes the wrong layers in another order than the stored mistake draws others."""

    class Right(torch.nn.Module):
        def __init__(self, bias=True, further=0):
            super().__init__()
            for _ in range(further):
                torch.nn.Linear(3, 3)
            self.W = torch.nn.Linear(3, 2, bias=bias)

        def forward(self, x):
            return self.W(x)

    class Hasty(Right):
        def forward(self, x):
            return 2 * self.W(x)

    def asks(student, draw):
        layer = student.build()
        layer.load({"W.weight": draw.normal(2, 3).float(), "W.bias": draw.normal(2).float()})
        for size in (1, 4):
            expect.tensor(layer(draw.normal(size, 3).float()))

    item = Check("layer", "nowhere", asks, reference=Right)
    known.append(Answer("no bias", "layer", lambda: Right(bias=False, further=1), "no bias"))
    known.append(Answer("twice", "layer", Hasty, "twice"))
    for further in (0, 2):
        wrong = LocalAnswer(lambda further=further: Right(bias=False, further=further))
        assert run_check(item, wrong, 7, told={}).likely == "no bias"
    lost = run_check(item, LocalAnswer(torch.nn.Identity), 7, told={})
    assert lost.likely != "no bias"
