"""Arguments that mean nothing are refused in a sentence, never obeyed: every public function's.

A name means one thing in the whole course, so NUMBERS says once what each may be. CALLS holds one
ordinary call of each function that takes a number or a mask; one argument at a time is replaced.
"""

import importlib
import inspect
import math
import pkgutil
import warnings
from typing import NamedTuple

import numpy as np
import pytest
import torch

import attention
from attention.language_models import compress, join_text_and_summary, load_balance_loss
from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import pad
from attention.training import (
    adamw_step,
    average_checkpoints,
    batch_by_tokens,
    label_smoothed_loss,
)
from attention.training_on_gpu import data_parallel_gradients
from autograder.building.gates.mutants import Endless, bounded
from tests.attention.ordinary_calls import CALLS, MASKS, NUMBERS, OTHERS, SPECIAL

# Lesson 13 has tests of its own for this.
LESSONS = [
    module.name
    for module in pkgutil.iter_modules(attention.__path__, "attention.")
    if not module.ispkg and module.name != "attention.decoding"
]


class Nonsense(NamedTuple):
    """What an argument must not be, and what ought to be taken though it looks unusual."""

    refused: list
    taken: list


def nonsense(kind, low, high, ordinary):
    """The Nonsense for a number of one kind, "whole" or "real", between two limits."""
    refused = [math.nan, "3"]
    if kind == "whole":
        refused += [low - 1, low - 7, low + 0.5, math.inf, np.int64(low - 1), np.float64(math.nan)]
        refused += [high + 1] if high < math.inf else []
        return Nonsense(refused, [np.int64(ordinary), np.int32(ordinary), low])
    refused += [-math.inf, -1.0] if low >= 0 else [-math.inf]
    refused += [0, 0.0, np.float64(0.0)] if kind.startswith("above") else []
    refused += [high, high + 0.5] if kind == "below" else []
    refused += [math.inf] if kind != "above, or infinite" else []
    refused += [high + 0.5] if high < math.inf else []
    return Nonsense(refused, [np.float64(ordinary), np.float32(ordinary)])


def outcome(call, name, value):
    """Call with one argument replaced: (result, None) or (None, error)."""
    function, arguments = call()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with bounded():
                return function(**(arguments | {name: value})), None
        except (Exception, Endless) as error:  # which one is the question
            return None, error


def fault(label, name, value, result, error):
    """What is wrong with the outcome of nonsense; None if it was refused as it should be."""
    shown = f"{label}({name}={value!r})"
    if error is None:
        empty = [x for x in leaves(result) if isinstance(x, torch.Tensor) and x.numel() == 0]
        return None if empty and value == 0 and (label, name) in SPECIAL else f"{shown}: obeyed"
    said = str(error)
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(error, ValueError) and name in said and (str(plain) in said):
        return None
    if (label, name) in SPECIAL and not isinstance(error, ZeroDivisionError | IndexError):
        # PyTorch's own words will do where they tell the number or its type.
        told = str(plain) in said or type(plain).__name__ in said
        return None if told else f"{shown}: {type(error).__name__}: {said}"
    return f"{shown}: {type(error).__name__}: {said}"


def leaves(result):
    """All that a result holds: of a module, its parameters."""
    if isinstance(result, torch.nn.Module):
        return list(result.parameters())
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [leaf for item in result for leaf in leaves(item)]
    return [result]


def shown(result):
    """What can be compared: values, and of a module the shapes."""
    if isinstance(result, torch.nn.Module):
        return [parameter.shape for parameter in result.parameters()]
    return str(result)


def numbers_of():
    """All (function, argument) that NUMBERS or MASKS speaks of."""
    for label, call in CALLS.items():
        function, arguments = call()
        for name in {*inspect.signature(function).parameters, *arguments}:
            yield label, name


PAIRS = sorted(numbers_of())
NUMBERED = [pair for pair in PAIRS if pair[1] in NUMBERS or pair in NUMBERS]
MASKED = [pair for pair in PAIRS if pair[1] in MASKS]


def rule(label, name):
    """(kind, low, high) of an argument."""
    return NUMBERS.get((label, name)) or NUMBERS[name]


@pytest.mark.parametrize(("label", "name"), NUMBERED)
def test_a_number_that_means_nothing_is_refused_with_its_bound(label, name):
    function, arguments = CALLS[label]()
    default = inspect.signature(function).parameters.get(name)
    ordinary = arguments.get(name, default.default if default else None)
    kind, low, high = rule(label, name)
    found = nonsense(kind, low, high, ordinary)
    faults = [
        fault(label, name, value, *outcome(CALLS[label], name, value)) for value in found.refused
    ]
    for value in found.taken:
        _, error = outcome(CALLS[label], name, value)
        if error is not None:
            faults.append(f"{label}({name}={value!r}), which means something: {error!r}")
    faults = [one for one in faults if one]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(("label", "name"), NUMBERED)
def test_true_is_the_number_1_or_is_refused(label, name):
    kind, _, _ = rule(label, name)
    if kind != "whole":
        return
    result, error = outcome(CALLS[label], name, True)
    if error is not None:
        assert isinstance(error, ValueError | TypeError), f"{label}({name}=True): {error!r}"
        return
    one, _ = outcome(CALLS[label], name, 1)
    assert shown(result) == shown(one), f"{label}({name}=True) is not {label}({name}=1)"


@pytest.mark.parametrize(("label", "name"), MASKED)
def test_a_mask_that_is_not_bool_is_refused(label, name):
    _, arguments = CALLS[label]()
    right = arguments[name]
    assert right.dtype is torch.bool
    wrong = {
        "0 and 1": right.float(),
        "whole 0 and 1": right.long(),
        "bytes": right.byte(),
        "0 and -inf": torch.zeros(right.shape).masked_fill(~right, -math.inf),
    }
    faults = []
    for kind, mask in wrong.items():
        _, error = outcome(CALLS[label], name, mask)
        said = "obeyed" if error is None else f"{type(error).__name__}: {error}"
        if "True = may attend" not in said or str(mask.dtype) not in said:
            faults.append(f"{label}({name}: {kind}): {said}")
    assert not faults, "\n".join(faults)


def public():
    """(label, function) of all public functions, classes and methods of the lessons."""
    for module in map(importlib.import_module, LESSONS):
        for name, value in vars(module).items():
            if name[0] == "_" or getattr(value, "__module__", "") != module.__name__:
                continue
            if callable(value):
                yield name, value
            if inspect.isclass(value):
                for inner, method in vars(value).items():
                    if inner[0] != "_" and inspect.isfunction(method):
                        yield f"{name}.{inner}", method


def test_no_function_with_numbers_or_masks_is_missing():
    known = NUMBERS.keys() | MASKS | OTHERS
    missing = []
    for label, function in public():
        for name in inspect.signature(function).parameters:
            if name not in known:
                missing.append(f"{label}({name}): what may it be?")
            numbered = name in NUMBERS
            if (numbered or name in MASKS) and (label, name) not in PAIRS:
                missing.append(f"{label}({name}) is never called")
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("label", CALLS)
def test_the_ordinary_calls_are_right(label):
    function, arguments = CALLS[label]()
    for leaf in leaves(function(**arguments)):
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
            assert not leaf.isnan().any()


NOTHING = {
    "greedy_decode": {"state": torch.zeros(0, 3), "context": torch.zeros(0, 3)},
    "BahdanauTranslator.translate": {"source": torch.zeros(0, 3).long()},
    "leave_one_out_loss": {"x_train": torch.zeros(1), "y_train": torch.zeros(1)},
    "reinforce_gradient": {"chosen": torch.zeros(0).long(), "rewards": torch.zeros(0)},
    "clip_gradients": {"gradients": []},
    "bootstrap": {"numbers": []},
}


@pytest.mark.parametrize("label", NOTHING)
def test_where_there_is_nothing_to_work_on_it_says_so(label):
    function, arguments = CALLS[label]()
    with pytest.raises(ValueError, match="=[01] is no whole number from [12] on"):
        function(**(arguments | NOTHING[label]))


def test_what_has_no_number_says_so_too():
    with pytest.raises(ValueError, match="B=0"):
        join_text_and_summary([], [])
    with pytest.raises(ValueError, match="stride=0"):
        compress(torch.zeros(5, 2), torch.zeros(0, 2, 2))
    with pytest.raises(ValueError, match="N=0"):
        load_balance_loss(torch.zeros(0, 3), torch.zeros(0, 3))
    with pytest.raises(ValueError, match="checkpoints=0"):
        average_checkpoints([])
    with pytest.raises(ValueError, match="tokens=-1"):
        data_parallel_gradients([[torch.ones(1)], [torch.ones(1)]], tokens=[2, -1])
    with pytest.raises(ValueError, match="beta_1=1.0"):
        adamw_step(*torch.zeros(4, 1), 1, 0.1, betas=(1.0, 0.98))
    with pytest.raises(ValueError, match="B=0"):
        pad([])
    with pytest.raises(ValueError, match="pairs=0"):
        numbers(3, 2, digits=1).batch([])


def test_a_batch_of_nothing_gives_nothing():
    empty = torch.zeros(0, 3, dtype=torch.int64)
    function, arguments = CALLS["Transformer.translate"]()
    assert function(**(arguments | {"source": empty})).shape == (0, 0)
    function, arguments = CALLS["generate"]()
    assert function(**(arguments | {"tokens": empty})).shape == (0, 0)
    assert batch_by_tokens([], max_tokens=9) == []
    assert label_smoothed_loss(torch.zeros(0, 3, 9), empty) == 0


def test_a_given_function_names_its_own_argument():
    function, arguments = CALLS["Explained.log_p"]()
    with pytest.raises(ValueError, match="^source_mask is of torch.float32, not of torch.bool"):
        function(**(arguments | {"source_mask": arguments["source_mask"].float()}))
