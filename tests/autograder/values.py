"""Results that a learner's function may give, and strategies for plain values."""

import numpy
import pytest
import torch
from hypothesis import strategies as st

from autograder.checking.toolbox.expect import CheckFailed

DTYPES = [torch.float64, torch.float32, torch.int64, torch.bool]


class Agreeable:
    """Equal to everything."""

    __hash__ = None

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False


class Subclass(torch.Tensor):
    """A tensor that claims that every comparison holds."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return torch.ones((), dtype=torch.bool)


class Liar:
    """Claims to be a tensor."""

    __class__ = torch.Tensor
    shape = (3,)


class FalseName:
    """An object whose class cannot be described."""


FalseName.__module__ = "numpy"
FalseName.__name__ = ""


def endless():
    """A list that holds itself, many times."""
    items = []
    items.extend([items] * 50)
    return items


# What it is → (a function that makes it, words that describe it in a message).
NOT_PLAIN = {
    "numpy array": (lambda: numpy.ones((2, 3)), "a numpy.ndarray of shape (2, 3)"),
    "numpy half": (lambda: numpy.float16(0.5), "a numpy.float16"),
    "agreeable": (Agreeable, "a tests.autograder.values.Agreeable"),
    "subclass": (lambda: torch.ones(3).as_subclass(Subclass), "values.Subclass, not a plain"),
    "liar": (Liar, "values.Liar"),
    "false name": (FalseName, "an object"),
    "complex": (lambda: 1j, "a complex"),
    "generator": (lambda: (x for x in (1, 2)), "a generator"),
    "set": (lambda: {1, 2}, "a set"),
    "function": (lambda: len, "a builtin_function_or_method"),
    "class": (lambda: torch.nn.Linear, "a type"),
    "int keys": (lambda: {1: 2.0}, "a dict with keys that are not strings"),
    "sparse": (lambda: torch.eye(3).to_sparse(), "a tensor of layout sparse_coo on cpu"),
    "meta": (lambda: torch.ones(3, device="meta"), "a tensor of layout strided on meta"),
    "complex tensor": (lambda: torch.ones(3, dtype=torch.complex128), "dtype complex128"),
    "exotic dtype": (lambda: torch.ones(3).to(torch.float8_e4m3fn), "dtype float8_e4m3fn"),
    "huge": (lambda: torch.zeros(()).expand(10**6, 10**6), "far too large"),
    "large": (lambda: torch.zeros(2**23, dtype=torch.bool), "(8388608,), far too large"),
    "many rows of nothing": (lambda: torch.zeros(2**26, 0), "(67108864, 0), far too large"),
    "nothing in long rows": (lambda: torch.zeros(0, 2**26), "(0, 67108864), far too large"),
    "empty square": (lambda: torch.zeros(2**14, 2**14, 0), "(16384, 16384, 0), far too large"),
    "long list": (lambda: [0] * 10**6, "a list with far too many items"),
}


def tensors(dtypes=tuple(DTYPES), max_dims=3, specials=True):
    """Small tensors, empty ones too, with NaN and infinities among the floats."""
    shapes = st.lists(st.integers(0, 4), max_size=max_dims)
    return st.builds(_tensor, st.sampled_from(dtypes), shapes, st.data(), st.just(specials))


def _tensor(dtype, shape, data, specials):
    size = int(numpy.prod(shape)) if shape else 1
    if dtype.is_floating_point:
        one = st.floats(width=32, allow_nan=specials, allow_infinity=specials)
        if not specials:
            one = st.floats(-1e3, 1e3, width=32)
    else:
        one = st.booleans() if dtype == torch.bool else st.integers(-(10**6), 10**6)
    numbers = data.draw(st.lists(one, min_size=size, max_size=size))
    return torch.tensor(numbers, dtype=dtype).reshape(shape)


def plain_values():
    """Whatever may pass between a check and an answer."""
    leaves = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), tensors()
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(st.text(max_size=3), inner, max_size=3),
        ),
        max_leaves=8,
    )


def f64(*values):
    """A float64 vector."""
    return torch.tensor(values, dtype=torch.float64)


def failure(function, *args, **kwargs):
    """(what, got, expected) of the failure that must come."""
    with pytest.raises(CheckFailed) as raised:
        function(*args, **kwargs)
    return raised.value.what, raised.value.got, raised.value.expected
