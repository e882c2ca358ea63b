"""What a check may expect: each function passes and fails, and says what and where."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from autograder import expect
from autograder.answer import LocalAnswer
from autograder.expect import CheckFailed
from autograder.plain import Foreign
from autograder.student import Student
from tests.autograder.values import tensors

F64, F32 = torch.float64, torch.float32
NAN, INF = math.nan, math.inf


def f64(*values):
    return torch.tensor(values, dtype=F64)


def failure(function, *args, **kwargs):
    """(what, got, expected) of the failure that must come."""
    with pytest.raises(CheckFailed) as raised:
        function(*args, **kwargs)
    return raised.value.what, raised.value.got, raised.value.expected


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
        ((1,), "a tuple: (1)"),
        ({"a": 1}, "a dict: {'a': 1}"),
        (torch.ones(2, 3), "a tensor of shape (2, 3), float32"),
        (Foreign("a set"), "a set"),
        ([torch.ones(2)], "a list: [a tensor of shape (2,), float32]"),
        ([Foreign("a set")], "a list: [a set]"),
        (10**999, "an int: a number of 3319 bits"),
        ([0] * 10**5, "a list: [" + 19 * "0, " + "0…"),
    ],
)
def test_values_are_described_in_a_few_words(value, words):
    assert expect.describe(value) == words


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


# close


@given(tensors())
def test_close_accepts_what_is_equal(tensor):
    expect.close(tensor, tensor.clone(), "it differs from itself")


@given(tensors(dtypes=(F64,), specials=False), st.data())
def test_close_names_the_one_entry_that_is_off(tensor, data):
    assume(tensor.numel())
    index = tuple(data.draw(st.integers(0, size - 1)) for size in tensor.shape)
    wrong = tensor.clone()
    wrong[index] += data.draw(st.sampled_from([0.01, -3.0, NAN, INF, -INF]))
    what, got, expected = failure(expect.close, wrong, tensor, "it is wrong")
    place = f"[{', '.join(map(str, index))}] = " if index else ""
    assert what == "it is wrong"
    assert got.startswith(place)
    assert expected.startswith(place)
    assert float(got.removeprefix(place)) == pytest.approx(wrong[index].item(), 1e-5, nan_ok=True)
    assert got != expected


@given(tensors(), tensors())
def test_close_accepts_or_fails_but_never_stumbles(got, expected):
    equal = got.shape == expected.shape and got.dtype == expected.dtype
    equal = equal and torch.allclose(got.double(), expected.double(), 1e-4, 1e-6, equal_nan=True)
    try:
        expect.close(got, expected, "it is wrong")
    except CheckFailed:
        assert not (equal and torch.equal(got, expected))
    else:
        assert equal


def test_close_shows_the_entry_that_is_worst_for_its_size():
    expected = f64(1e6, 1.0, NAN, INF)
    got = f64(1e6 + 0.5, 1.1, NAN, INF)
    assert failure(expect.close, got, expected, "x") == ("x", "[1] = 1.1", "[1] = 1")


def test_close_shows_as_many_digits_as_it_takes():
    got = failure(expect.close, f64(1 + 2e-6), f64(1), "x")
    assert got == ("x", "[0] = 1.000002", "[0] = 1")


@pytest.mark.parametrize(
    ("got", "expected"),
    [(NAN, 1.0), (1.0, NAN), (INF, 1.0), (1.0, INF), (-INF, INF), (NAN, INF), (INF, NAN)],
)
def test_close_tells_special_numbers_apart(got, expected):
    assert failure(expect.close, f64(0, got), f64(0, expected), "x") == (
        "x",
        f"[1] = {got:g}",
        f"[1] = {expected:g}",
    )
    assert failure(expect.close, got, expected, "x") == ("x", f"{got:g}", f"{expected:g}")


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_close_accepts_special_numbers_that_are_expected(value):
    expect.close(f64(value), f64(value), "x")
    expect.close(value, value, "x")


def test_close_compares_integers_exactly():
    expect.close(torch.tensor([10**9]), torch.tensor([10**9]), "x")
    assert failure(expect.close, torch.tensor([5, 10**9]), torch.tensor([5, 10**9 + 1]), "x") == (
        "x",
        "[1] = 1000000000",
        "[1] = 1000000001",
    )
    assert failure(expect.close, 63_082_496, 63_082_497, "the number of parameters is wrong") == (
        "the number of parameters is wrong",
        "63082496",
        "63082497",
    )


def test_close_compares_booleans():
    expect.close(torch.tensor([True, False]), torch.tensor([True, False]), "x")
    got = failure(expect.close, torch.tensor([True, False]), torch.tensor([True, True]), "x")
    assert got == ("x", "[1] = False", "[1] = True")


def test_close_wants_shape_and_dtype():
    assert failure(expect.close, f64(1), f64(1, 1), "x")[0] == "the shape is wrong"
    assert failure(expect.close, f64(1).reshape(1, 1), f64(1), "x")[0] == "the shape is wrong"
    assert "precision" in failure(expect.close, f64(1).float(), f64(1), "x")[0]
    assert failure(expect.close, torch.tensor([1]), f64(1), "x")[0] == "the dtype is wrong"
    assert failure(expect.close, 1.0, f64(1), "x")[0] == "the result is not a tensor"
    complex64 = torch.ones(1, dtype=torch.complex64)
    assert failure(expect.close, complex64, f64(1), "x")[0] == "the dtype is wrong"


def test_close_allows_for_the_precision_of_float32():
    exact = torch.rand(1000, dtype=F64, generator=torch.Generator().manual_seed(0))
    expect.close(exact.float().exp().log(), exact.float(), "x")
    assert failure(expect.close, exact.float() + 0.001, exact.float(), "x")[0] == "x"


@pytest.mark.parametrize("number", [0.5, 2])
def test_close_takes_a_number_or_a_scalar_tensor(number):
    expect.close(number, number, "x")
    expect.close(torch.tensor(number), number, "x")
    expect.close(number + 1e-12, number, "x")
    assert failure(expect.close, number + 1, number, "x")[0] == "x"
    for other in (torch.tensor([number]), str(number), None, True, 1j, Foreign("a set")):
        what, got, _ = failure(expect.close, other, number, "x")
        assert what == "x: the result is not a number"
        assert got == expect.describe(other)


def test_close_survives_integers_of_any_size():
    what, got, _ = failure(expect.close, 10**400, 0.5, "x")
    assert (what, got) == ("x", "a number of 1329 bits")
    assert failure(expect.close, 10**400, 2, "x")[2] == "2"


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
    assert failure(expect.rows_sum_to_one, f64(0.5, 0.500002))[1] == "a sum of 1.000002"


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
