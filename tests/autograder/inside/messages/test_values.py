"""Plain values: what crosses the door between a check and an answer."""

import math
from collections import OrderedDict

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.inside.messages.values import Foreign, copied, plain, same
from tests.autograder.values import NOT_PLAIN, endless, plain_values, tensors


@given(plain_values())
def test_plain_values_pass_unchanged(value):
    assert same(plain(value), value)
    assert same(value, copied(value))


@given(plain_values(), plain_values())
def test_same_is_symmetric(left, right):
    assert same(left, right) == same(right, left)


@pytest.mark.parametrize(
    ("dtype", "off", "alike"),
    [
        (torch.bfloat16, 0.01, True),  # of the largest number: after a few steps of 8 binary digits
        (torch.bfloat16, 0.04, False),
        (torch.float16, 0.001, True),
        (torch.float16, 0.01, False),
        (torch.float32, 0.001, False),
    ],
)
def test_half_precision_is_compared_as_such(dtype, off, alike):
    one = torch.tensor([2.0, 0.25, -1.0])
    other = one + torch.tensor([0.0, 2 * off, 0.0])
    one, other = one.to(dtype), other.to(dtype)
    assert same(one, other) is same(other, one) is alike


@pytest.mark.parametrize("kind", NOT_PLAIN)
def test_anything_else_is_only_described(kind):
    make, words = NOT_PLAIN[kind]
    value = plain(make())
    assert type(value) is Foreign
    assert words in value.description
    assert len(value.description) < 120


@pytest.mark.parametrize("shape", [(10**6, 1), (1000, 1000), (0, 10**6), (2, 0, 3), ()])
def test_what_right_answers_need_is_not_too_large(shape):
    assert plain(torch.zeros(shape)).shape == shape


def deep():
    value = []
    for _ in range(10_000):
        value = [value]
    return value


class Text(str):
    pass


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: [1, {"a": (1j,)}], "[1, {'a': (Foreign(description='a complex'),)}]"),
        (endless, "far too many items"),
        (deep, "nested too deeply"),
        (lambda: Text("a"), "Foreign"),
    ],
)
def test_what_is_not_plain_is_replaced_wherever_it_is(make, words):
    assert words in repr(plain(make()))


class Rows(list):
    def __iter__(self):
        raise AssertionError("code of the answer's own is run")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (torch.arange(3.0).topk(2), tuple),
        (torch.ones(2, 3).shape, tuple),
        (OrderedDict(a=1.0), dict),
        (Rows([1.0]), list),
    ],
    ids=["topk", "shape", "ordered", "rows"],
)
def test_containers_that_know_more_are_plain_ones(value, kind):
    assert type(plain(value)) is kind
    assert len(plain(value)) == len(value)


def test_tensors_are_copied_and_detached():
    parameter = torch.nn.Parameter(torch.ones(3))
    value = plain(parameter)
    assert type(value) is torch.Tensor
    assert not value.requires_grad
    value += 1
    assert torch.equal(parameter, torch.ones(3))


def test_lazy_conjugates_and_negatives_are_resolved():
    values = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64)
    assert not plain(values.conj()).is_conj()
    assert not plain(values.conj().imag).is_neg()
    assert plain(values.conj().imag).tolist() == [-2.0, 1.0]


# copied


@given(tensors(), st.randoms())
def test_a_copy_keeps_layout_and_shares_nothing(tensor, chance):
    order = list(range(tensor.dim()))
    chance.shuffle(order)
    view = torch.stack([torch.zeros_like(tensor), tensor], dim=-1)[..., 1].permute(order)
    other = copied(view)
    assert other.stride() == view.stride()
    assert same(other, view)
    other.zero_()
    assert same(view, tensor.permute(order))


def test_an_expanded_tensor_stays_expanded():
    assert copied(torch.ones(1, 3).expand(5, 3)).stride() == (0, 1)


def test_containers_are_copied():
    inner = [1, torch.ones(2)]
    value = {"a": inner, "b": (inner,)}
    other = copied(value)
    other["a"].append(2)
    other["b"][0][1].zero_()
    assert len(inner) == 2
    assert torch.equal(inner[1], torch.ones(2))


# same

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        (NAN, NAN, True),
        (NAN, 3.0, False),
        (3.0, NAN, False),
        (INF, INF, True),
        (INF, -INF, False),
        (3.0, INF, False),
        (INF, 3.0, False),
        (1.0, 1.0 + 1e-9, True),
        (1.0, 1.001, False),
        (0.0, 1e-12, True),
        (1, 1.0, False),
        (1, True, False),
        (None, 0, False),
        ("a", "a", True),
        ([1], (1,), False),
        ([1], [1, 2], False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (Foreign("a set"), Foreign("a set"), True),
        (Foreign("a set"), Foreign("a map"), False),
    ],
)
def test_same(left, right, verdict):
    assert same(left, right) is verdict
    assert same([left], [right]) is verdict


def test_same_tensors_have_shape_dtype_and_values_in_common():
    ones = torch.ones(2, 3, dtype=torch.float64)
    assert same(ones, ones + 1e-12)
    assert not same(ones, ones + 1e-5)
    assert not same(ones, ones.float())
    assert not same(ones, ones[:1])
    assert not same(ones, ones.tolist())
    assert same(ones.float(), ones.float() + 1e-6)
    assert same(ones * NAN, ones * NAN)
    assert not same(ones * NAN, ones)
    assert not same(ones * INF, ones)
    assert same(ones.bool(), ones.bool())
    assert not same(torch.tensor(7), torch.tensor(8))
