"""What a check may expect: each function passes and fails, and says what and where."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from autograder.checking.toolbox import expect
from autograder.checking.toolbox.expect import CheckFailed, close, equal, rows_sum_to_one
from autograder.checking.toolbox.student_answer import Student
from autograder.inside.answer import LocalAnswer
from autograder.inside.messages.values import Foreign
from tests.autograder.values import f64, failure, tensors

F64, F32 = torch.float64, torch.float32
PAIR = "tensor (2, 3) float32, tensor (4, 5, 6, 7) int64"
NAN, INF = math.nan, math.inf
NO_TENSOR, PRECISION = "the result is not a tensor", "should keep the precision of the input"


def test_the_message_has_a_line_for_each_part_that_is_known():
    assert str(CheckFailed("x", "first\nsecond")) == "x.\n  got       first\n            second"
    assert str(CheckFailed("x", 0, 0.0)) == "x.\n  got       0\n  expected  0.0"
    error = CheckFailed("the sum is wrong", "[0, 3] = 0.412", "[0, 3] = 1.000")
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


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None (is there a return?)"),
        (3, "an int: 3"),
        (True, "a bool: True"),
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
    assert failure(equal, other, items, "wrong")[1:] == (
        f"{short}… 33 more]\n[40] = 3",
        f"{short}… 33 more]\n[40] = 40",
    )
    assert failure(equal, items[:49], items, "wrong")[1].endswith("… 32 more]\nno item [49]")
    nested = failure(equal, {"a": [[7] * 30, other]}, {"a": [[7] * 30, items]}, "wrong")
    assert nested[1].endswith("\n['a'][1][40] = 3")
    assert failure(equal, [1, 2], [1, 3], "wrong")[1:] == ("a list: [1, 2]", "a list: [1, 3]")


WEIGHTS = torch.full((2, 3, 4), 0.25, dtype=F64)
EXACT = torch.rand(1000, dtype=F64, generator=torch.Generator().manual_seed(0))
PASSES = [
    (expect.shape, torch.ones(2, 3), (2, 3)),
    (expect.shape, torch.ones(()), ()),
    (expect.shape, torch.ones(0, 3), [0, 3]),
    (expect.dtype, f64(1), F64),
    (expect.finite, torch.ones(0)),
    (expect.finite, torch.tensor([1, 2])),
    (expect.true, torch.tensor(True), "x"),
    (rows_sum_to_one, WEIGHTS),
    (rows_sum_to_one, torch.ones(0, 2)),
    (rows_sum_to_one, f64(1 + 1e-12, -1e-12)),
    *((close, f64(value), f64(value), "x") for value in (NAN, INF, -INF)),
    *((close, value, value, "x") for value in (NAN, INF, 0.5, 2)),
    *((close, torch.tensor(number), number, "x") for number in (0.5, 2)),
    (close, 0.5 + 1e-12, 0.5, "x"),
    (close, 2 + 1e-12, 2, "x"),
    (close, torch.tensor([True, False]), torch.tensor([True, False]), "x"),
    (close, EXACT.float().exp().log(), EXACT.float(), "x"),
    *((equal, one, one, "x") for one in (1.5, "a", None, [1, [2, "b"]], {"a": [torch.ones(2)]})),
]


@pytest.mark.parametrize(("function", "arguments"), [(one, rest) for one, *rest in PASSES])
def test_what_is_as_it_should_be_passes(function, arguments):
    function(*arguments)


FAILS = [  # a call, then what is wrong, what came and what was expected; '…' where it may be more
    (expect.tensor, (None,), NO_TENSOR, "None (is there a return?)", "a tensor"),
    (
        *(expect.shape, (torch.ones(3, 2), (2, 3), "T_q, T_k"), "the shape is wrong"),
        *("shape (3, 2)", "shape (2, 3), that is (T_q, T_k)"),
    ),
    (
        *(expect.shape, ([1.0], (1,), "T_k,"), NO_TENSOR),
        *("a list: [1.0]", "a tensor of shape (1,), that is (T_k,)"),
    ),
    (
        *(expect.dtype, (f64(1).float(), F64), f"the dtype is wrong: the result {PRECISION}"),
        *("torch.float32", "torch.float64"),
    ),
    (expect.dtype, (torch.tensor([1]), torch.bool), "the dtype is wrong", None, None),
    (expect.dtype, (3, F64), NO_TENSOR, None, None),
    *((expect.finite, (f64(1, x), "w"), "w", f"[1] = {x}", "finite numbers") for x in (NAN, -INF)),
    (expect.finite, (torch.tensor(INF),), "the result is not finite", "inf", None),
    (expect.true, (False, "x", "3", "4"), "x", "3", "4"),
    (
        *(rows_sum_to_one, (WEIGHTS, 1), "the weights do not sum to 1"),
        *("a sum of 0.75 in row 0, 0", "a sum of 1"),
    ),
    (rows_sum_to_one, (f64(0.5, 0.2), -1, "y"), "y", "a sum of 0.7", "a sum of 1"),
    (rows_sum_to_one, (f64(0.5, 0.50002), -1, "y"), "y", "a sum of 1.00002", None),
    (rows_sum_to_one, (f64(1.5, -0.5),), "a weight is negative", "[1] = -0.5", None),
    (rows_sum_to_one, (f64(NAN, 1),), "the weights are not finite", None, None),
    (rows_sum_to_one, ([1.0],), NO_TENSOR, None, None),
    (rows_sum_to_one, (torch.ones(2, 0), -1, "y"), "y", "a sum of 0 in row 0", None),
    *(
        (rows_sum_to_one, (torch.eye(3).to(kind),), "the weights are not floating-point numbers")
        + (f"a tensor of shape (3, 3), {str(kind)[6:]}", None)
        for kind in (torch.bool, torch.int64, torch.complex64)
    ),
    (close, (f64([2.0, 1.0]), f64([2.0, -0.0]), "x"), "x", "[0, 1] = 1", "[0, 1] = 0"),
    # the entry that is worst for its size
    (
        *(close, (f64(1e6 + 0.5, 1.1, NAN, INF), f64(1e6, 1.0, NAN, INF), "x")),
        *("x", "[1] = 1.1", "[1] = 1"),
    ),
    (close, (f64(1 + 2e-5), f64(1), "x"), "x", "[0] = 1.00002", "[0] = 1"),
    *(
        (close, (make(got), make(wanted), "x"), "x", f"{place}{got:g}", f"{place}{wanted:g}")
        for got, wanted in ((NAN, 1.0), (1.0, NAN), (INF, 1.0), (-INF, INF), (NAN, INF), (INF, NAN))
        for make, place in ((lambda x: f64(0, x), "[1] = "), (float, ""))
    ),
    (
        *(close, (torch.tensor([5, 10**9]), torch.tensor([5, 10**9 + 1]), "x")),
        *("x", "[1] = 1000000000", "[1] = 1000000001"),
    ),
    (close, (63_082_496, 63_082_497, "x"), "x", "63082496", "63082497"),
    (
        *(close, (torch.tensor([True, False]), torch.tensor([True, True]), "x")),
        *("x", "[1] = False", "[1] = True"),
    ),
    (close, (f64(1), f64(1, 1), "x"), "the shape is wrong", None, None),
    (close, (torch.tensor([1]), f64(1), "x"), "the dtype is wrong", None, None),
    (close, (torch.ones(1, dtype=torch.complex64), f64(1), "x"), "the dtype is wrong", None, None),
    (close, (1.0, f64(1), "x"), NO_TENSOR, None, None),
    (close, (EXACT.float() + 0.001, EXACT.float(), "x"), "x", None, None),
    *((close, (number + 1, number, "x"), "x", None, None) for number in (0.5, 2)),
    *(
        (close, (other, number, "x"), f"the result should be {kind}", expect.describe(other), None)
        for number, kind in ((0.5, "a float"), (2, "an int"))
        for other in (torch.tensor([number]), str(number), None, True, 1j, Foreign("a set"))
    ),
    (close, (10**400, 0.5, "x"), "x", "a number of 1329 bits", None),
    (close, (10**400, 2, "x"), "x", None, "2"),
    *(
        (equal, (got, wanted, "x"), "x", expect.describe(got), expect.describe(wanted))
        for got, wanted in (
            *((1, 2), (1, 1.0), (1, True), ([1], (1,)), ([1, 2], [1]), ([1, True], [1, 1])),
            *(([torch.ones(2)], [1]), ([torch.ones(2)], [torch.zeros(2)])),
            *(([torch.ones(2)], [f64(1, 1)]), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": 2})),
            *((Foreign("a set"), 1), (None, 0), (NAN, 1.0)),
        )
    ),
]


@pytest.mark.parametrize(("function", "arguments", "what", "got", "expected"), FAILS)
def test_what_is_not_is_said_with_its_place(function, arguments, what, got, expected):
    said = failure(function, *arguments)
    assert said == (
        what,
        said[1] if got is None else got,
        said[2] if expected is None else expected,
    )


@given(tensors(dtypes=(F64,), specials=False), st.data())
def test_close_names_the_one_entry_that_is_off(tensor, data):
    assume(tensor.numel())
    index = tuple(data.draw(st.integers(0, size - 1)) for size in tensor.shape)
    wrong = tensor.clone()
    size = max(1.0, abs(tensor[index].item()))
    wrong[index] += size * data.draw(st.sampled_from([0.01, -3.0, NAN, INF, -INF]))
    _, got, expected = failure(close, wrong, tensor, "it is wrong")
    place = f"[{', '.join(map(str, index))}] = " if index else ""
    assert got.startswith(place) and expected.startswith(place) and got != expected
    assert float(got.removeprefix(place)) == pytest.approx(wrong[index].item(), 1e-5, nan_ok=True)


@given(tensors(), tensors())
def test_close_accepts_or_fails_but_never_stumbles(got, expected):
    close(got, got.clone(), "it differs from itself")
    alike = got.shape == expected.shape and got.dtype == expected.dtype
    alike = alike and torch.allclose(got.double(), expected.double(), 1e-4, 1e-6, equal_nan=True)
    try:
        close(got, expected, "it is wrong")
    except CheckFailed:
        assert not (alike and torch.equal(got, expected))
    else:
        assert alike


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from([F64, F32, torch.float16]))
def test_softmax_rows_sum_to_one(rows, columns, dtype):
    scores = torch.arange(rows * columns, dtype=F64).reshape(rows, columns)
    rows_sum_to_one(torch.softmax(scores, 1).to(dtype))
    rows_sum_to_one(torch.softmax(scores, 0).to(dtype), dim=0)


def refuses(x):
    if x < 0:
        raise ValueError(f"x={x} is negative")
    if x == 0:
        raise NotImplementedError("refuses: write about 2 lines")
    return 1 / (x - 1)


def test_raises():
    student = Student(LocalAnswer(refuses))
    assert expect.raises(student, ValueError, -1, what="x") == "x=-1 is negative"
    for x, said in (
        (3, ("x", "it returned a float: 0.5", "a ValueError")),
        (1, ("x", "ZeroDivisionError: division by zero", "a ValueError")),
        (0, ("nothing here yet: write about 2 lines", "", "")),
    ):
        assert failure(expect.raises, student, ValueError, x, what="x") == said


def gradients_of(answer, *args, reference=torch.mul, **kwargs):
    expect.gradients(Student(LocalAnswer(answer)), reference, *args, **kwargs)


def test_gradients_pass():
    gradients_of(torch.mul, f64(1, 2), f64(3, 4), cotangent=f64(5, 6))
    gradients_of(lambda x, n: sum([x] * n), f64(1, 2), 3)
    gradients_of(lambda n, x: x * n, torch.tensor([2, 3]), f64(1, 2))


X, Y = f64(1, 2), f64(3, 4)


@pytest.mark.parametrize(
    ("answer", "arguments", "what", "got"),
    [
        (lambda x, y: x * y.detach(), (X, Y), "no gradient flows back to argument 2", None),
        (
            *(lambda n, x: x.detach() * n, (torch.tensor([2, 3]), X)),
            *("no gradient flows back to argument 2", None),
        ),
        (
            *(lambda x, y: x * y + y.square(), (X, Y)),
            *("the gradient is wrong, that of argument 2", "[1] = 10"),
        ),
        (
            *(lambda x, y: (x * y).tolist(), (X, Y)),
            *("the result is not a tensor, so it has no gradient", "a list"),
        ),
        (lambda x, y: x[:, None, None] @ y, (X, Y), "your code raised RuntimeError", None),
    ],
)
def test_gradients_fail(answer, arguments, what, got):
    said = failure(gradients_of, answer, *arguments)
    assert said[:2] == (what, said[1] if got is None else got)


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
    assert failure(expect.parts, got, "context", "weights")[1:] == (shown, "2: context, weights")
