"""What a check may expect: each function passes and fails, and says what and where."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.checking.toolbox import expect
from autograder.checking.toolbox.expect import CheckFailed
from autograder.checking.toolbox.student_answer import Student
from autograder.inside.answer import LocalAnswer
from autograder.inside.messages.values import Foreign
from tests.autograder.values import f64, failure

F64, F32 = torch.float64, torch.float32
PAIR = "tensor (2, 3) float32, tensor (4, 5, 6, 7) int64"
NAN, INF = math.nan, math.inf


# the message


def test_the_message_has_a_line_for_each_part_that_is_known():
    error = CheckFailed("the sum is wrong", "[0, 3] = 0.412", "[0, 3] = 1.000")
    assert str(error) == (
        "the sum is wrong.\n  got       [0, 3] = 0.412\n  expected  [0, 3] = 1.000"
    )
    error.exercise, error.likely, error.seed = "softmax", "which axis?", 12345
    lines = [
        "softmax: the sum is wrong.",
        "  got       [0, 3] = 0.412",
        "  expected  [0, 3] = 1.000",
        "  likely    which axis?",
        "  seed      12345",
    ]
    assert str(error) == "\n".join(lines)
    assert error._render_traceback_() == lines


def test_a_part_of_several_lines_is_aligned():
    assert str(CheckFailed("x", "first\nsecond")) == "x.\n  got       first\n            second"


def test_zero_is_worth_saying():
    assert str(CheckFailed("x", 0, 0.0)) == "x.\n  got       0\n  expected  0.0"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None (is there a return?)"),
        (3, "an int: 3"),
        (0.5, "a float: 0.5"),
        (True, "a bool: True"),
        ("a", "a str: 'a'"),
        ([1, 2], "a list: [1, 2]"),
        ((1,), "a tuple: (1,)"),
        ({"a": 1}, "a dict: {'a': 1}"),
        (torch.ones(2, 3), "a tensor of shape (2, 3), float32"),
        (Foreign("a set"), "a set"),
        ([torch.ones(2)], "a list: [tensor (2,) float32]"),
        ([Foreign("a set")], "a list: [a set]"),
        (10**999, "an int: a number of 3319 bits"),
        ([0] * 10**5, "a list: [" + 20 * "0, " + "… 99980 more]"),
        ([[1.5, 2.5]] * 9, "a list: [" + 5 * "[1.5, 2.5], " + "… 4 more]"),
        ("ab" * 99, "a str: '" + 29 * "ab" + "a'… 139 more characters"),
        ((torch.ones(2, 3), torch.ones(4, 5, 6, 7).long()), "a tuple: (" + PAIR + ")"),
        (
            ([0.25] * 99, torch.ones(2, 3), torch.ones(4, 5, 6, 7).long(), {"a": 1}),
            "a tuple: ([" + 5 * "0.25, " + "… 94 more], " + PAIR + ", {'a': 1})",
        ),
        ((1,) * 99, "a tuple: (" + 20 * "1, " + "… 79 more)"),
    ],
)
def test_values_are_described_in_a_few_words(value, words):
    assert expect.describe(value) == words


def test_where_the_first_items_are_alike_the_one_that_differs_is_shown():
    items = list(range(50))
    short = "a list: [" + "".join(f"{n}, " for n in items[:17])
    other = [*items[:40], 3, *items[41:]]
    assert failure(expect.equal, other, items, "wrong")[1:] == (
        f"{short}… 33 more]\n[40] = 3",
        f"{short}… 33 more]\n[40] = 40",
    )
    assert failure(expect.equal, items[:49], items, "wrong")[1:] == (
        f"{short}… 32 more]\nno item [49]",
        f"{short}… 33 more]\n[49] = 49",
    )
    nested = failure(expect.equal, {"a": [[7] * 30, other]}, {"a": [[7] * 30, items]}, "wrong")
    assert nested[1].endswith("\n['a'][1][40] = 3")
    assert failure(expect.equal, [1, 2], [1, 3], "wrong")[1:] == (
        "a list: [1, 2]",
        "a list: [1, 3]",
    )


# tensor, shape, dtype, finite


def test_tensor():
    expect.tensor(f64(1))
    assert failure(expect.tensor, None) == (
        "the result is not a tensor",
        "None (is there a return?)",
        "a tensor",
    )


def test_shape():
    expect.shape(torch.ones(2, 3), (2, 3))
    expect.shape(torch.ones(()), ())
    expect.shape(torch.ones(0, 3), [0, 3])
    assert failure(expect.shape, torch.ones(3, 2), (2, 3), axes="T_q, T_k") == (
        "the shape is wrong",
        "shape (3, 2)",
        "shape (2, 3), that is (T_q, T_k)",
    )
    assert failure(expect.shape, [1.0], (1,), "T_k,") == (
        "the result is not a tensor",
        "a list: [1.0]",
        "a tensor of shape (1,), that is (T_k,)",
    )


def test_dtype():
    expect.dtype(f64(1), F64)
    what, got, expected = failure(expect.dtype, f64(1).float(), F64)
    assert what == "the dtype is wrong: the result should keep the precision of the input"
    assert (got, expected) == ("torch.float32", "torch.float64")
    assert failure(expect.dtype, torch.tensor([1]), torch.bool)[0] == "the dtype is wrong"
    assert failure(expect.dtype, 3, F64)[0] == "the result is not a tensor"


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_finite(bad):
    expect.finite(f64(1, 2))
    expect.finite(torch.ones(0))
    expect.finite(torch.tensor([1, 2]))
    got = failure(expect.finite, f64(1, bad), "the loss is not finite")
    assert got == ("the loss is not finite", f"[1] = {bad}", "finite numbers")
    assert failure(expect.finite, torch.tensor(bad))[1] == str(bad)


# rows_sum_to_one


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from([F64, F32, torch.float16]))
def test_softmax_rows_sum_to_one(rows, columns, dtype):
    scores = torch.arange(rows * columns, dtype=F64).reshape(rows, columns)
    expect.rows_sum_to_one(torch.softmax(scores, 1).to(dtype))
    expect.rows_sum_to_one(torch.softmax(scores, 0).to(dtype), dim=0)


def test_rows_that_do_not_sum_to_one():
    weights = torch.full((2, 3, 4), 0.25, dtype=F64)
    expect.rows_sum_to_one(weights)
    assert failure(expect.rows_sum_to_one, weights, 1) == (
        "the weights do not sum to 1",
        "a sum of 0.75 in row 0, 0",
        "a sum of 1",
    )
    weights[1, 2, 3] = 0.2
    assert failure(expect.rows_sum_to_one, weights, what="y") == (
        "y",
        "a sum of 0.95 in row 1, 2",
        "a sum of 1",
    )
    assert failure(expect.rows_sum_to_one, f64(0.5, 0.2))[1] == "a sum of 0.7"
    assert failure(expect.rows_sum_to_one, f64(0.5, 0.50002))[1] == "a sum of 1.00002"


def test_rows_with_other_faults():
    assert failure(expect.rows_sum_to_one, f64(1.5, -0.5)) == (
        "a weight is negative",
        "[1] = -0.5",
        "weights from 0 to 1",
    )
    assert failure(expect.rows_sum_to_one, f64(NAN, 1))[0] == "the weights are not finite"
    assert failure(expect.rows_sum_to_one, [1.0])[0] == "the result is not a tensor"
    for dtype in (torch.bool, torch.int64, torch.complex64):
        weights = torch.eye(3).to(dtype)
        what, got, _ = failure(expect.rows_sum_to_one, weights)
        assert what == "the weights are not floating-point numbers"
        assert got == expect.describe(weights)
    assert failure(expect.rows_sum_to_one, torch.ones(2, 0))[1] == "a sum of 0 in row 0"
    expect.rows_sum_to_one(torch.ones(0, 2))
    expect.rows_sum_to_one(f64(1 + 1e-12, -1e-12))


# equal, true, raises


@pytest.mark.parametrize(
    "value", [1, 1.5, "a", True, None, [1, [2, "b"]], (1, 2), {"a": [torch.ones(2)]}]
)
def test_equal_values(value):
    expect.equal(value, value, "x")


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        ([1], (1,)),
        ([1, 2], [1]),
        ([1, True], [1, 1]),
        ([torch.ones(2)], [1]),
        ([torch.ones(2)], [torch.zeros(2)]),
        ([torch.ones(2)], [torch.ones(2, dtype=F64)]),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 2}),
        (Foreign("a set"), 1),
        (None, 0),
        (NAN, 1.0),
    ],
)
def test_unequal_values(got, expected):
    assert failure(expect.equal, got, expected, "x") == (
        "x",
        expect.describe(got),
        expect.describe(expected),
    )


def test_true():
    expect.true(True, "x")
    expect.true(torch.tensor(True), "x")
    assert failure(expect.true, False, "x", "3", "4") == ("x", "3", "4")


def refuses(x):
    if x < 0:
        raise ValueError(f"x={x} is negative")
    if x == 0:
        raise NotImplementedError("refuses: write about 2 lines")
    return 1 / (x - 1)


def test_raises():
    student = Student(LocalAnswer(refuses))
    assert expect.raises(student, ValueError, -1, what="x") == "x=-1 is negative"
    assert failure(expect.raises, student, ValueError, 3, what="3 should be refused") == (
        "3 should be refused",
        "it returned a float: 0.5",
        "a ValueError",
    )
    assert failure(expect.raises, student, ValueError, 1, what="x") == (
        "x",
        "ZeroDivisionError: division by zero",
        "a ValueError",
    )
    assert failure(expect.raises, student, ValueError, 0, what="x") == (
        "nothing here yet: write about 2 lines",
        "",
        "",
    )


# gradients


def gradients_of(answer, *args, reference=torch.mul, **kwargs):
    expect.gradients(Student(LocalAnswer(answer)), reference, *args, **kwargs)


def test_gradients_pass():
    gradients_of(torch.mul, f64(1, 2), f64(3, 4), cotangent=f64(5, 6))
    gradients_of(lambda x, n: sum([x] * n), f64(1, 2), 3)
    gradients_of(lambda n, x: x * n, torch.tensor([2, 3]), f64(1, 2))


def test_gradients_fail():
    x, y = f64(1, 2), f64(3, 4)
    assert failure(gradients_of, lambda x, y: x * y.detach(), x, y) == (
        "no gradient flows back to argument 2",
        "no gradient (detached, or rebuilt from plain numbers)",
        "a gradient: every step stays a tensor operation",
    )
    assert failure(gradients_of, lambda n, x: x.detach() * n, torch.tensor([2, 3]), x)[0] == (
        "no gradient flows back to argument 2"
    )
    assert failure(gradients_of, lambda x, y: x * y + y.square(), x, y) == (
        "the gradient is wrong, that of argument 2",
        "[1] = 10",
        "[1] = 2",
    )
    assert failure(gradients_of, lambda x: x**3, x, reference=torch.square, what="y") == (
        "y",
        "[1] = 12",
        "[1] = 4",
    )
    assert failure(gradients_of, lambda x, y: (x * y).tolist(), x, y) == (
        "the result is not a tensor, so it has no gradient",
        "a list",
        "a tensor",
    )
    assert failure(gradients_of, lambda x, y: x[:, None, None] @ y, x, y)[0] == (
        "your code raised RuntimeError"
    )


# several results


@pytest.mark.parametrize("pair", [(1, 2), [1, 2]])
def test_a_list_is_as_good_as_a_tuple(pair):
    assert expect.parts(pair, "context", "weights") is pair


@pytest.mark.parametrize(
    ("got", "shown"),
    [
        (torch.ones(2), "a tensor of shape (2,), float32"),
        ((1, 2, 3), "3 results"),
        (None, "None (is there a return?)"),
    ],
)
def test_another_number_of_results(got, shown):
    with pytest.raises(CheckFailed) as caught:
        expect.parts(got, "context", "weights")
    assert caught.value.got == shown
    assert caught.value.expected == "2: context, weights"
