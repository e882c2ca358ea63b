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
from autograder.inside.messages.values import plain
from tests.autograder.half import GAIN, HALF, SHAPE, Gain, half, lines, raiser
from tests.autograder.values import NOT_PLAIN, plain_values


@given(st.integers(0, 2**31))
def test_a_right_answer_passes_for_every_seed(seed):
    assert run_check(HALF, LocalAnswer(half), seed, told={}) is None
    assert run_check(GAIN, LocalAnswer(Gain), seed, told={}) is None


def test_a_right_answer_may_do_odd_things(judge, capsys):
    def chatty(x):
        print("x" * 10_000)
        torch.rand(3)
        return half(x)

    assert judge(chatty) is None


NO_TENSOR, NOT_FINITE = "the result is not a tensor.", "the halves are not finite."
WRONG, NARROW = "half of [2, 4, 7] is wrong.", "with float32 arguments the values are wrong"
OTHER_DTYPE = "the dtype is wrong: float32 goes in, something else comes out"
ALL = "All numbers are {} where finite ones belong."
# What an answer returns, what is said of it and shown; what is likely, for relations that hold; and
# what a probe says of it where the check foresees nothing.
BAD_RESULTS = {
    "None": (lambda x: None, NO_TENSOR, "None (is there a return?)", "", ""),
    "float": (lambda x: 0.5, NO_TENSOR, "a float: 0.5", "", ""),
    "list": (
        *(lambda x: half(x).tolist(), NO_TENSOR, "a list: [[1.0, 2.0, 3.5"),
        "The numbers are right, but they stand in lists. torch.stack makes one tensor of a list of "
        "tensors, torch.tensor one of numbers.",
        "",
    ),
    "ragged": (lambda x: [[1.0], [2.0, 3.5]], NO_TENSOR, "a list: [[1.0], [2", "", ""),
    "tuple": (
        *(lambda x: (half(x), 1), NO_TENSOR, "a tuple: (tensor (1, 3) fl"),
        *("The first item of the result is right. It should be returned alone.", ""),
    ),
    "shape": (
        *(lambda x: half(x).T, "the shape is wrong.", "shape (3, 1)"),
        *("", ""),
    ),
    "empty": (
        *(lambda x: half(x)[:0], "the shape is wrong.", "shape (0, 3)"),
        *("", "with float32 arguments the result has another form"),
    ),
    "0-d": (lambda x: half(x).sum(), "the shape is wrong.", "shape ()", "", ""),
    "int": (lambda x: half(x).long(), "the dtype is wrong.", "torch.int64", "", OTHER_DTYPE),
    "complex64": (
        *(lambda x: half(x).to(torch.complex64), "the dtype is wrong.", "torch.complex64"),
        *("", OTHER_DTYPE),
    ),
    "nan": (
        *(lambda x: half(x) * torch.nan, NOT_FINITE, "[0, 0] = nan", ALL.format("NaN"), NARROW),
    ),
    "one nan": (
        *(lambda x: half(x).masked_fill(x == 4, torch.nan), NOT_FINITE, "[0, 1] = nan"),
        "1 of 3 numbers is NaN where a finite one belongs; the rest is right. Of the calls tried, "
        "it is wrong only where an axis has size 1.",
        None,  # wrong only where the check of `half` asks
    ),
    "inf": (lambda x: x / 0, NOT_FINITE, "[0, 0] = inf", ALL.format("infinite"), NARROW),
    "wrong": (
        *(lambda x: x / 3, WRONG, "[0, 2] = 2.33333"),
        *("Every number is 0.666667 times the expected one.", NARROW),
    ),
    "numpy": (lambda x: x.numpy() / 2, NO_TENSOR, "a numpy.ndarray of shape (1", "", ""),
    "scalar": (lambda x: numpy.float64(1), NO_TENSOR, "a float: 1.0", "", ""),
    "parameters": (
        *(nn.Parameter, WRONG, "[0, 2] = 7", "Every number is 2 times the expected one.", NARROW),
    ),
}
BAD_RESULTS |= {
    name: (lambda x, make=make: make(), NO_TENSOR, words, "", "")
    for name, (make, words) in NOT_PLAIN.items()
}
# What an error means, by its words.
MEANS = {
    "Boolean value of Tensor": "`if`, `and`, `or` and `not` need one True or False, and got a "
    "tensor of several elements. Use `&`, `|` and `~` element by element, and `is not None` to ask "
    "whether an argument was given.",
}


def likely(failure):
    """The lines of a message that say what is likely."""
    said = textwrap.wrap(failure.likely, LIKELY_WIDTH)
    assert all(line in str(failure) for line in said)
    return said


@pytest.mark.parametrize(
    ("answer", "sentence", "got", "relation", "probed"), BAD_RESULTS.values(), ids=BAD_RESULTS
)
def test_bad_results_end_in_one_clear_sentence(judge, answer, sentence, got, relation, probed):
    failure = judge(answer)
    said = lines(failure)
    assert said[0].startswith(f"half: {sentence}")
    assert said[1].startswith("  got       ") and got in said[1]
    if failure.is_form:
        assert said.pop(2) == "            called with (tensor (1, 3) float64)"
    assert said[2].startswith("  expected  ")
    assert said[-1] == "  seed      7"
    assert len(said) - len(likely(failure)) == 4
    assert " ".join(likely(failure)) == relation
    assert max(map(len, said)) < 160
    unforeseen = judge(answer, SHAPE)  # a check that says nothing of values
    if unforeseen is None or probed:
        assert probed == (unforeseen and unforeseen.what)
    elif unforeseen.what != "the sum has the wrong shape":
        assert unforeseen.what == "the check could not use the result" and "\n" in unforeseen.got


@settings(max_examples=100)
@given(plain_values())
def test_any_plain_result_ends_in_a_failure(value):
    for item in (HALF, SHAPE):
        failure = run_check(item, LocalAnswer(lambda *_: value), 7, told={})
        told = () if failure is None else likely(failure)
    assert failure is None or 1 <= len(lines(failure)) - len(told) <= 5
    assert run_check(HALF, LocalAnswer(lambda *_: value), 7, told={}) is not None


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
    class Stub(Gain):
        def forward(self, x):
            raise NotImplementedError("Gain.forward: write about 1 line")

    written = raiser(NotImplementedError("half: write about 3 lines"))
    assert str(judge(written)) == "half: nothing here yet: write about 3 lines."
    assert str(judge(raiser(NotImplementedError()))) == "half: nothing here yet."
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


@pytest.mark.parametrize(
    ("answer", "what", "got"),
    [
        (lambda x: x.mul_(3), "half of [2, 4, 7] is wrong", ""),  # said before a changed input
        (lambda x: half(x).detach(), "no gradient flows back to argument 1", ""),
        (
            *(lambda x: x / 2, "integers should be refused"),
            "it returned a tensor of shape (4, 5), float32",
        ),
    ],
)
def test_what_fails_behind_the_first_value(judge, answer, what, got):
    failure = judge(answer)
    assert failure.what == what and got in failure.got


def test_a_lost_answer_ends_the_check():
    class Lost(LocalAnswer):
        def call(self, args, kwargs, **how):
            raise AnswerLost("it ended")

    with pytest.raises(AnswerLost, match="it ended"):
        run_check(HALF, Lost(half), 7, told={})


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


class Detached(Gain):
    def forward(self, x):
        return self.gain.detach() * x


OTHER_NAMES = "the parameters have other names"


@pytest.mark.parametrize(
    ("answer", "what", "got"),
    [
        (OtherName, OTHER_NAMES, "a list: ['factor']"),
        (OtherShape, "a parameter has the wrong shape", "gain has shape (4,)"),
        (Detached, "the result is not a tensor", "None (is there a return?)"),
        (lambda start: None, OTHER_NAMES, "a list: []"),
        (nn.Identity, OTHER_NAMES, "a list: []"),
        (lambda: None, "your code raised TypeError", None),
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
    assert failure.what == "the module has other parameters"
    assert (failure.got, failure.expected) == ("factor", "gain")


def test_numpys_numbers_are_numbers():
    given = [numpy.int64(3), (numpy.float64(0.5), numpy.bool_(True)), numpy.str_("word")]
    assert repr(plain(given)) == "[3, (0.5, True), 'word']"
