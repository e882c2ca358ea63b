"""What errors mean: those that PyTorch and Python really raise, and nothing of any other."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from autograder.checking.diagnosis.error_meanings import meaning

X = torch.ones(2, 3, 5)
ROWS = torch.ones(2, 3)
DOUBLE = ROWS.double()
RAISING = {
    "product": (lambda: ROWS @ ROWS, "is 3 beside 2"),
    "batched product": (lambda: X @ X, "is 5 beside 3"),
    "element by element": (lambda: torch.ones(4, 5) + torch.ones(4, 7), "5 numbers meet 7"),
    "product of two batches": (lambda: X @ torch.ones(4, 5, 3), "2 numbers meet 4"),
    "one truth": (lambda: 1 if ROWS > 0 else 0, "`if`, `and`"),
    "one number": (lambda: math.exp(ROWS), "such as `torch.exp`"),
    "axis": (lambda: ROWS.sum(2), "no axis 2 here, only -2 to 1"),
    "place": (lambda: ROWS[torch.tensor([2])], "on axis 0 the last of 2 is 1"),
    "view": (lambda: X.transpose(0, 1).view(-1), "`reshape` copies"),
    "sizes": (lambda: X.reshape(2, 4, 5), "make 40 numbers, and the tensor has 30"),
    "axes joined": (lambda: torch.cat([X, ROWS]), "one has 3, one 2"),
    "lengths joined": (lambda: torch.cat([ROWS, torch.ones(2, 4)]), "along axis 0"),
    "backwards": (lambda: ROWS[::-1], "`flip(0)` turns"),
    "half a size": (lambda: ROWS.reshape(3, 4 / 2), "`//` a whole number"),
    "half an index": (lambda: [1, 2, 3][: 4 / 2], "`//` a whole number"),
    "half a count": (lambda: ROWS.repeat_interleave(4 / 2, 1), "with (float, int). `/` always"),
    "list": (lambda: [ROWS, ROWS].mean(), "torch.stack makes"),
    "list as tensor": (lambda: functional.relu([1.0]), "torch.stack makes"),
    "unpacked": (lambda: [0 for a, b, c in [ROWS]], "3 names before the `=`, and 2 values"),
    "classes": (lambda: functional.cross_entropy(X, torch.ones(2, 3).long()), "on axis 1"),
    "mask of numbers": (lambda: ROWS.masked_fill(ROWS, 0.0), "True and False"),
    "precisions in a product": (lambda: ROWS @ DOUBLE.T, "float32 meets one of float64"),
    "precisions in a batched product": (
        lambda: torch.einsum("ij,kj->ik", ROWS, DOUBLE),
        "float32 meets one of float64",
    ),
    "precisions with a vector": (lambda: ROWS @ DOUBLE[0], "float64 meets one of float32"),
    "precisions of two vectors": (lambda: ROWS[0] @ DOUBLE[0], "float32 meets one of float64"),
    "precisions in a linear layer": (lambda: nn.Linear(3, 2)(DOUBLE), "`dtype=x.dtype`"),
    "precisions in a norm": (lambda: nn.LayerNorm(3)(DOUBLE), "than the layer's weights"),
    "a norm of float64": (lambda: nn.LayerNorm(3).double()(ROWS), "than the layer's weights"),
    "whole numbers in a product": (lambda: ROWS.long() @ DOUBLE.T, "int64 meets one of float64"),
    "truths in a product": (lambda: (ROWS > 0) @ DOUBLE.T, "bool meets one of float64"),
    "rows by floats": (lambda: nn.Embedding(3, 2)(ROWS), "by whole numbers"),
    "rows that are not there": (lambda: nn.Embedding(3, 2)(torch.tensor(3)), "count from 0"),
    "None": (lambda: ROWS + None, "is None"),
}


def raised(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)
    raise AssertionError("it raised nothing")


@pytest.mark.parametrize(("call", "words"), RAISING.values(), ids=RAISING)
def test_an_error_that_is_raised_is_put_in_words(call, words):
    assert words in meaning(*raised(call))


def test_of_other_errors_nothing_is_said():
    for call in (
        lambda: {}["W_q"],
        lambda: 1 / 0,
        lambda: torch.ones(2, 3).reshape(4, -1),
        lambda: functional.nll_loss(ROWS, torch.ones(2)),  # "expected … Long but found Float"
    ):
        assert meaning(*raised(call)) == ""
