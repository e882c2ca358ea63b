"""Plain values that no check expects: huge, odd, almost right. Each is made from the right one."""

import torch

INF, NAN = float("inf"), float("nan")
ODD_FLOATS = [NAN, INF, -INF, -0.0, 5e-324, 1e308, -1e308, 1e-308]
ODD_TEXT = "\x00\x1b[2J\r\x9b\u202e\u2066\u2028\u200f\ufeff\ud800 <b>|"


def _like(right, made):
    """``made(tensor)`` in the place of each tensor, and of each number, of the right value."""
    if isinstance(right, torch.Tensor):
        return made(right)
    if type(right) in (list, tuple):
        return type(right)(_like(item, made) for item in right)
    if type(right) is dict:
        return {name: _like(item, made) for name, item in right.items()}
    if type(right) in (int, float, bool):
        return made(torch.tensor(right)).flatten()[:1].tolist() or right
    return right


def _spoilt(number):
    """Odd numbers in all places."""

    def made(tensor):
        if not tensor.is_floating_point():
            return tensor
        odd = torch.tensor(ODD_FLOATS if number is None else [number], dtype=tensor.dtype)
        return odd.repeat(tensor.numel() // len(odd) + 1)[: tensor.numel()].reshape(tensor.shape)

    return lambda right: _like(right, made)


def _as(dtype):
    return lambda right: _like(right, lambda tensor: torch.nan_to_num(tensor.double()).to(dtype))


def _full(*shape, dtype=torch.float64):
    return lambda right: torch.rand(shape).to(dtype)


def _grown(right):
    """The right shape, with the last axis as long as the bounds allow, in each place."""

    def made(tensor):
        before = max(1, tensor.shape[:-1].numel()) if tensor.dim() else 1
        wide = max(1, min(2**20, 2**21 // before))
        return tensor.flatten()[:1].expand(*tensor.shape[:-1], wide).contiguous()

    return _like(right, made)


def _nested(right):
    value = right
    for _ in range(7):
        value = [value]
    return value


def _ragged(right):
    return [[1.0], [], [2.0, [3.0]], None, "4"]


def _one_more(right):
    if isinstance(right, torch.Tensor):
        return torch.cat([right, right[-1:]]) if right.dim() else right.reshape(1)
    if type(right) in (list, tuple) and right:
        return type(right)([*right, right[-1]])
    if type(right) is dict:
        return {**right, "more": 1}
    return (right, right)


def _one_less(right):
    if isinstance(right, torch.Tensor):
        return right[:-1] if right.dim() else right.reshape(1)[:0]
    if type(right) in (list, tuple):
        return right[:-1]
    return dict(list(right.items())[1:]) if type(right) is dict else None


def _slightly(right):
    return _like(right, lambda t: t + 1 if t.dtype != torch.bool else ~t)


# Of what a call is right to return, something else.
VALUES = {
    "numbers_at_the_bound": _full(2**22),
    "a_square_at_the_bound": _full(2**11, 2**11),
    "weights_at_the_bound": lambda right: _full(2**11, 2**11)(right).softmax(-1),
    "an_axis_at_the_bound": _full(2**20, 1),
    "rows_of_nothing": _full(2**20, 0),
    "nothing_of_rows": _full(0, 2**20),
    "eight_axes": _full(8, 8, 8, 8, 8, 8, 8, 2),
    "eight_empty_axes": _full(1, 2**10, 1, 2**10, 0, 2, 2, 1),
    "pair_at_the_bound": lambda right: (_full(2**22)(right), _full(2**11, 2**11)(right)),
    "many_tensors": lambda right: [torch.ones(1) for _ in range(10_000)],
    "right_but_grown": _grown,
    "complex": _as(torch.complex64),
    "truth": _as(torch.bool),
    "bytes": _as(torch.uint8),
    "bfloat16": _as(torch.bfloat16),
    "float16": _as(torch.float16),
    "whole": _as(torch.int64),
    "complex_at_the_bound": _full(2**11, 2**11, dtype=torch.complex64),
    "bfloat16_at_the_bound": _full(2**11, 2**11, dtype=torch.bfloat16),
    "odd_numbers": _spoilt(None),
    "all_nan": _spoilt(NAN),
    "all_infinite": _spoilt(-INF),
    "all_huge": _spoilt(1e308),
    "denormal": _spoilt(5e-324),
    "one_odd_number": lambda right: NAN,
    "an_infinite_number": lambda right: -INF,
    "a_truth": lambda right: True,
    "a_huge_integer": lambda right: 10**4299,
    "a_huger_integer": lambda right: 10**20_000,
    "a_list_of_huge_integers": lambda right: [10**4000] * 900,
    "a_huge_integer_in_place": lambda right: _like(right, lambda t: t) and [10**4200, -(10**4200)],
    "long_list": lambda right: list(range(99_990)),
    "long_list_of_lists": lambda right: [[] for _ in range(99_990)],
    "long_list_of_tuples": lambda right: [(n, n) for n in range(33_000)],
    "long_list_of_odd_floats": lambda right: ODD_FLOATS * 12_000,
    "long_dict": lambda right: {str(n): n for n in range(99_990)},
    "long_text": lambda right: "9" * (4 * 2**20 - 200),
    "odd_text": lambda right: ODD_TEXT * 1000,
    "odd_texts": lambda right: [ODD_TEXT, {ODD_TEXT: ODD_TEXT}],
    "empty_list": lambda right: [],
    "empty_tuple": lambda right: (),
    "empty_dict": lambda right: {},
    "empty_tensor": lambda right: torch.zeros(0),
    "nothing": lambda right: None,
    "nested": _nested,
    "ragged": _ragged,
    "flattened": lambda right: _like(right, torch.flatten),
    "turned": lambda right: _like(right, lambda t: t.mT.contiguous() if t.dim() > 1 else t),
    "with_an_axis_more": lambda right: _like(right, lambda t: t[None]),
    "as_lists": lambda right: _like(
        right, lambda t: torch.view_as_real(t).tolist() if t.is_complex() else t.tolist()
    ),
    "one_more": _one_more,
    "one_less": _one_less,
    "slightly_wrong": _slightly,
    "wrapped": lambda right: (right,),
}

BIG = torch.zeros(2**21)
# Of what a request for gradients is right to return.
GRADIENTS = {
    "gradients_in_one_tensor": lambda right: ({}, torch.zeros(2**22, 0)[: 2**20]),
    "gradients_of_huge_shape": lambda right: (
        {name: torch.zeros(2**11, 2**11) for name in right[0]},
        [torch.zeros(2**11, 2**11) for _ in right[1]][:1],
    ),
    "gradients_of_other_names": lambda right: ({ODD_TEXT * 100: torch.ones(2)}, right[1]),
    "gradients_of_other_shape": lambda right: (
        {name: torch.zeros(2, 0, 3) for name in right[0]},
        [torch.zeros(1) for _ in right[1]],
    ),
    "gradients_complex": lambda right: (
        {k: v if v is None else v.to(torch.complex64) for k, v in right[0].items()},
        [v if v is None else v.to(torch.complex64) for v in right[1]],
    ),
    "gradients_too_few": lambda right: (right[0], right[1][:-1]),
    "gradients_no_names": lambda right: ({}, right[1]),
    "gradients_none": lambda right: (dict.fromkeys(right[0]), [None for _ in right[1]]),
    "gradients_numbers": lambda right: ([1.0], [1.0]),
}
# Of a module's parameters.
PARAMETERS = {
    "many_parameters": lambda right: {f"w{n}": torch.ones(1) for n in range(10_000)},
    "parameters_with_odd_names": lambda right: {ODD_TEXT * 1000: torch.ones(2), **right},
    "parameters_with_long_names": lambda right: {"w" * 10**6: torch.ones(2), **right},
    "parameters_of_huge_shape": lambda right: dict.fromkeys(list(right)[:7], BIG),
    "no_parameters": lambda right: {},
    "parameters_complex": lambda right: {k: v.to(torch.complex64) for k, v in right.items()},
}
# What is raised instead.
RAISED = {
    "raises_long": ("ValueError", "9e9999 " * 100_000),
    "raises_odd": ("E" * 10_000 + ODD_TEXT, ODD_TEXT * 10_000),
    "raises_lines": ("RuntimeError", "\n" * 10_000),
    "raises_other_parameters": ("ParameterNames", ", expected " * 10_000),
    "raises_nothing": ("", ""),
}
# Of functions these say nothing wrong: the gradients of their arguments are there, and right.
HARMLESS = ("gradients_of_other_names", "gradients_no_names", "gradients_complex")
HARMLESS += ("turned",)  # which changes nothing of one axis, or of what is symmetric
KINDS = [*VALUES, *GRADIENTS, *PARAMETERS, *RAISED]
