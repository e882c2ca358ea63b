"""`expect.close`: what it accepts, and the entry that it shows when it does not."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from autograder.checking.toolbox import expect
from autograder.checking.toolbox.expect import CheckFailed
from autograder.inside.messages.values import Foreign
from tests.autograder.values import f64, failure, tensors

F64 = torch.float64
NAN, INF = math.nan, math.inf


@given(tensors())
def test_close_accepts_what_is_equal(tensor):
    expect.close(tensor, tensor.clone(), "it differs from itself")


def test_a_zero_is_shown_without_a_sign():
    _, got, expected = failure(expect.close, f64([2.0, 1.0]), f64([2.0, -0.0]), "it is wrong")
    assert (got, expected) == ("[0, 1] = 1", "[0, 1] = 0")


@given(tensors(dtypes=(F64,), specials=False), st.data())
def test_close_names_the_one_entry_that_is_off(tensor, data):
    assume(tensor.numel())
    index = tuple(data.draw(st.integers(0, size - 1)) for size in tensor.shape)
    wrong = tensor.clone()
    size = max(1.0, abs(tensor[index].item()))
    wrong[index] += size * data.draw(st.sampled_from([0.01, -3.0, NAN, INF, -INF]))
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
    got = failure(expect.close, f64(1 + 2e-5), f64(1), "x")
    assert got == ("x", "[0] = 1.00002", "[0] = 1")


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
        assert what == f"the result should be {'an int' if number == 2 else 'a float'}"
        assert got == expect.describe(other)


def test_close_survives_integers_of_any_size():
    what, got, _ = failure(expect.close, 10**400, 0.5, "x")
    assert (what, got) == ("x", "a number of 1329 bits")
    assert failure(expect.close, 10**400, 2, "x")[2] == "2"
