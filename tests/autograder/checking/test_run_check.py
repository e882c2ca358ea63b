"""One check, one answer: every sort of bad answer ends in one clear sentence."""

import textwrap

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from autograder.checking.run_check import run_check
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.failure import LIKELY_WIDTH
from autograder.checking.toolbox.registry import Check
from autograder.inside.answer import AnswerLost, LocalAnswer
from tests.autograder.half import GAIN, HALF, SHAPE, Gain, half, lines, raiser
from tests.autograder.values import NOT_PLAIN, plain_values

# right answers


@given(st.integers(0, 2**31))
def test_a_right_answer_passes_for_every_seed(seed):
    assert run_check(HALF, LocalAnswer(half), seed) is None
    assert run_check(GAIN, LocalAnswer(Gain), seed) is None


def test_a_right_answer_may_do_odd_things(judge, capsys):
    def chatty(x):
        print("x" * 10_000)
        torch.rand(3)
        return half(x)

    assert judge(chatty) is None


# bad answers: what they give, and what the first lines of the message say

BAD_RESULTS = {
    "None": (lambda x: None, "the result is not a tensor.", "None (is there a return?)"),
    "float": (lambda x: 0.5, "the result is not a tensor.", "a float: 0.5"),
    "list": (lambda x: half(x).tolist(), "the result is not a tensor.", "a list: [[1.0, 2.0, 3.5"),
    "ragged": (lambda x: [[1.0], [2.0, 3.5]], "the result is not a tensor.", "a list: [[1.0], [2"),
    "tuple": (lambda x: (half(x), 1), "the result is not a tensor.", "a tuple: (tensor (1, 3) fl"),
    "text": (lambda x: "1 2 3.5", "the result is not a tensor.", "a str: '1 2 3.5'"),
    "shape": (lambda x: half(x).T, "the shape is wrong.", "shape (3, 1)"),
    "empty": (lambda x: half(x)[:0], "the shape is wrong.", "shape (0, 3)"),
    "0-d": (lambda x: half(x).sum(), "the shape is wrong.", "shape ()"),
    "int": (lambda x: half(x).long(), "the dtype is wrong.", "torch.int64"),
    "bool": (lambda x: half(x).bool(), "the dtype is wrong.", "torch.bool"),
    "complex64": (lambda x: half(x).to(torch.complex64), "the dtype is wrong.", "torch.complex64"),
    "nan": (lambda x: half(x) * torch.nan, "the halves are not finite.", "[0, 0] = nan"),
    "one nan": (
        lambda x: half(x).masked_fill(x == 4, torch.nan),
        "the halves are not finite.",
        "[0, 1] = nan",
    ),
    "inf": (lambda x: x / 0, "the halves are not finite.", "[0, 0] = inf"),
    "wrong": (lambda x: x / 3, "half of [2, 4, 7] is wrong.", "[0, 2] = 2.33333"),
    "numpy": (
        lambda x: x.numpy() / 2,
        "the result is not a tensor.",
        "a numpy.ndarray of shape (1",
    ),
    "scalar": (lambda x: numpy.float64(1), "the result is not a tensor.", "a float: 1.0"),
    "parameters": (nn.Parameter, "half of [2, 4, 7] is wrong.", "[0, 2] = 7"),
}
BAD_RESULTS |= {
    name: (lambda x, make=make: make(), "the result is not a tensor.", words)
    for name, (make, words) in NOT_PLAIN.items()
}


# What all replies to the check show of them: relations that hold, each checked by hand.
NOT_FINITE = "All numbers are {} where finite ones belong."
LIKELY = {
    "shape": "The result is right once its axes 0 and 1 are exchanged.",
    "tuple": "The first item of the result is right. It should be returned alone.",
    "list": "The numbers are right, but they stand in lists. torch.stack makes one tensor of a "
    "list of tensors, torch.tensor one of numbers.",
    "nan": NOT_FINITE.format("NaN"),
    "inf": NOT_FINITE.format("infinite"),
    "one nan": "1 of 3 numbers is NaN where a finite one belongs; the rest is right. Of the calls "
    "tried, it is wrong only where an axis has size 1.",
    "wrong": "Every number is 0.666667 times the expected one.",
    "parameters": "Every number is 2 times the expected one.",
}
# What an error means, by its words.
MEANS = {
    "Boolean value of Tensor": "`if`, `and`, `or` and `not` need one True or False, and got a "
    "tensor of several elements. Use `&`, `|` and `~` element by element, and `is not None` to ask "
    "whether an argument was given.",
}
# What is said where the check foresees nothing but the probes do.
PROBED = {
    "empty": "with float32 arguments the result has another form",
    **dict.fromkeys(
        ("int", "bool", "complex64"),
        "the dtype is wrong: float32 goes in, something else comes out",
    ),
    **dict.fromkeys(
        ("nan", "inf", "wrong", "parameters"), "with float32 arguments the values are wrong"
    ),
}


def likely(failure):
    """The lines of a message that say what is likely."""
    said = textwrap.wrap(failure.likely, LIKELY_WIDTH)
    assert all(line in str(failure) for line in said)
    return said


@pytest.mark.parametrize("kind", BAD_RESULTS)
def test_bad_results_end_in_one_clear_sentence(judge, kind):
    answer, sentence, got = BAD_RESULTS[kind]
    said = lines(judge(answer))
    assert said[0].startswith(f"half: {sentence}")
    assert said[1].startswith("  got       ")
    assert got in said[1]
    if judge(answer).is_form:
        assert said.pop(2) == "            called with (tensor (1, 3) float64)"
    assert said[2].startswith("  expected  ")
    assert said[-1] == "  seed      7"
    assert not any(line.startswith("  likely") for line in said[:3])
    failure = judge(answer)
    assert len(said) - len(likely(failure)) == 4
    assert " ".join(likely(failure)) == LIKELY.get(kind, "")
    assert max(map(len, said)) < 160


@pytest.mark.parametrize("kind", BAD_RESULTS)
def test_bad_results_fail_where_nothing_was_foreseen(judge, kind):
    failure = judge(BAD_RESULTS[kind][0], SHAPE)
    if failure is None:  # wrong only where the check of `half` asks and this one does not
        assert kind == "one nan"
    elif kind in PROBED:
        assert failure.what == PROBED[kind]
    elif failure.what != "the sum has the wrong shape":
        assert failure.what == "the check could not use the result"
        assert "\n" in failure.got
        assert len(lines(failure)) - len(likely(failure)) <= 5


@settings(max_examples=100)
@given(plain_values())
def test_any_plain_result_ends_in_a_failure(value):
    for item in (HALF, SHAPE):
        failure = run_check(item, LocalAnswer(lambda *_: value), 7)
        told = () if failure is None else likely(failure)
    assert failure is None or 1 <= len(lines(failure)) - len(told) <= 5
    assert run_check(HALF, LocalAnswer(lambda *_: value), 7) is not None


class Wordless(Exception):
    def __str__(self):
        raise RuntimeError


def endless(x):
    return endless(x)


@pytest.mark.parametrize(
    ("answer", "sentence", "got"),
    [
        (raiser(ArithmeticError("no")), "your code raised ArithmeticError", "no"),
        (raiser(SystemExit(0)), "your code raised SystemExit", "0"),
        (raiser(Wordless()), "your code raised Wordless", "Wordless"),
        (raiser(RuntimeError("first\nsecond\nthird")), "your code raised RuntimeError", "first"),
        (endless, "your code raised RecursionError", "maximum recursion depth exceeded"),
        (lambda: 1, "your code raised TypeError", "takes 0 positional arguments but 1 was given"),
        (None, "your code raised TypeError", "'NoneType' object is not callable"),
        (lambda x: unknown, "your code raised NameError", "name 'unknown' is not defined"),  # noqa: F821
        (lambda x: x.add_(1) and None, "your code raised RuntimeError", "Boolean value of Tensor"),
    ],
)
def test_errors_end_in_one_clear_sentence(judge, answer, sentence, got):
    failure = judge(answer)
    said = lines(failure)
    assert said[0] == f"half: {sentence}."
    assert said[1].startswith("  got       ")
    assert got in said[1]
    assert said.pop(2) == "            called with (tensor (1, 3) float64)"
    assert said.pop() == "  seed      7"
    assert [line[12:] for line in said[2:]] == likely(failure)
    assert failure.likely == MEANS.get(got, "")


def test_the_failing_line_stands_below_the_error(judge, tmp_path):
    path = tmp_path / "ipykernel_4711.py"
    path.write_text("def answer(x):\n    y = x.T\n    return x @ x\n")
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    said = lines(judge(namespace["answer"]))
    assert said[0] == "half: your code raised RuntimeError."
    assert said[2] == "            line 3 of its cell, in answer: return x @ x"


def test_a_stub_has_nothing_yet(judge):
    def stub(x):
        raise NotImplementedError("half: write about 3 lines")

    assert str(judge(stub)) == "half: nothing here yet: write about 3 lines."

    def bare(x):
        raise NotImplementedError

    assert str(judge(bare)) == "half: nothing here yet."


def test_the_stub_of_a_method_is_named(judge):
    class Stub(Gain):
        def forward(self, x):
            raise NotImplementedError("Gain.forward: write about 1 line")

    assert str(judge(Stub, GAIN)) == "gain: nothing here yet: write about 1 line in forward."


@pytest.mark.parametrize("modify", ["args", "kwargs", "gradients"])
def test_an_answer_that_changes_its_inputs(judge, modify):
    def check(student, draw):
        x = draw.normal(3)
        if modify == "gradients":
            expect.gradients(student, torch.mul, x, torch.arange(3))
        elif modify == "args":
            expect.close(student(x, x), x * x, "x")
        else:
            expect.close(student(x, y=x), x * x, "x")
        expect.close(x, x.clone(), "the check's own values are changed")

    def answer(x, y):
        result = x * y.clone()
        y.zero_()
        return result

    failure = judge(answer, Check("half", "nowhere", check))
    assert failure.what == "the values are right, but the function changes its inputs"
    assert failure.got == ("y" if modify == "kwargs" else "argument 2") + " changed by the call"
    assert failure.expected.startswith("inputs as they were")


def test_a_wrong_value_is_said_before_a_changed_input(judge):
    assert judge(lambda x: x.mul_(3)).what == "half of [2, 4, 7] is wrong"


def test_detached_gradients(judge):
    failure = judge(lambda x: half(x).detach())
    assert failure.what == "no gradient flows back to argument 1"


def test_the_check_learns_that_an_error_is_missing(judge):
    failure = judge(lambda x: x / 2)
    assert failure.what == "integers should be refused"
    assert failure.got == "it returned a tensor of shape (4, 5), float32"


def test_a_lost_answer_ends_the_check():
    class Lost(LocalAnswer):
        def call(self, args, kwargs, **how):
            raise AnswerLost("it ended")

    with pytest.raises(AnswerLost, match="it ended"):
        run_check(HALF, Lost(half), 7)


# modules


class OtherName(Gain):
    def __init__(self, start):
        super().__init__(start)
        self.factor = self.gain
        del self.gain

    def forward(self, x):
        return self.factor * x


class OtherShape(Gain):
    def __init__(self, start):
        super().__init__(start)
        self.gain = nn.Parameter(torch.ones(4))


class NoModule:
    def __init__(self, start):
        self.gain = torch.ones(3)


class Detached(Gain):
    def forward(self, x):
        return self.gain.detach() * x


@pytest.mark.parametrize(
    ("answer", "what", "got"),
    [
        (OtherName, "the parameters have other names", "a list: ['factor']"),
        (OtherShape, "a parameter has the wrong shape", "gain has shape (4,)"),
        (NoModule, "the parameters have other names", "a list: []"),
        (Detached, "the result is not a tensor", "None (is there a return?)"),
        (lambda start: None, "the parameters have other names", "a list: []"),
        (lambda: None, "your code raised TypeError", None),
        (nn.Identity, "the parameters have other names", "a list: []"),
    ],
)
def test_modules_that_are_not_as_they_should_be(judge, answer, what, got):
    failure = judge(answer, GAIN)
    assert failure.what == what
    assert got in (None, failure.got)


def test_other_parameters_are_listed(judge):
    def check(student, draw):
        student.build(1.0).load({"gain": torch.ones(3)})

    failure = judge(OtherName, Check("gain", "nowhere", check))
    assert (failure.what, failure.got, failure.expected) == (
        "the module has other parameters",
        "factor",
        "gain",
    )
