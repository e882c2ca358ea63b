"""Arguments that mean nothing are refused in a sentence, never obeyed: those of every exercise.

An ordinary call of an exercise is one that its check makes. What a number may be is a matter of
`attention.provided.demand`; here it is that each exercise demands it.
"""

import inspect
import math

import numpy as np
import pytest
import torch

from attention.encoders_and_vision import attention_pooling
from attention.language_models import compress, join_text_and_summary, load_balance_loss
from attention.provided import demand
from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import pad
from attention.published_model import sentence_vectors
from attention.sequence_to_sequence import greedy_decode
from attention.training import (
    adamw_step,
    average_checkpoints,
    batch_by_tokens,
    clip_gradients,
    label_smoothed_loss,
)
from attention.training_on_gpu import data_parallel_gradients
from autograder.building.lesson import find
from autograder.checking.asking.right_answer import asked
from autograder.checking.toolbox import registry
from autograder.inside.stand_ins import standing_in

SEED = 7
# Lesson 13 has tests of its own for this.
SLUGS = [path.stem for path in find() if path.stem != "13_decoding"]
IDS = {"dim", "new_id", "mask_id", "seed", "shift"}  # of PyTorch, or names: any number does
ANY_SIGN = {"baseline", "scale"}
# Python's and PyTorch's own words do here: a size below 0, or none at all, is refused by them.
BUILT = {
    *("as_bilinear", "SelfAttentionHead", "LayerNorm"),
    "FeedForward",
}


@pytest.mark.parametrize(
    ("ask", "refused", "taken"),
    [
        (demand.counts, (0, -1, 2.5, math.nan, math.inf, "3", True, np.int64(0)), (1, np.int32(2))),
        (lambda **one: demand.counts(2, 4, **one), (1, 5, np.int64(5)), (2, 4)),
        (demand.positive, (0, -0.5, math.nan, math.inf, "3", np.float64(0)), (1, np.float32(0.5))),
        (lambda **one: demand.within(0, 1, **one), (-0.1, 1.1, math.nan, math.inf, "3"), (0, 1.0)),
        (demand.share, (-0.1, 1, math.nan, "3"), (0, 0.5, np.float64(0.9))),
    ],
)
def test_a_number_is_demanded(ask, refused, taken):
    for number in refused:
        plain = number.item() if isinstance(number, np.generic) else number
        with pytest.raises(ValueError, match=f"^n={plain!r} is no .*number"):
            ask(n=number)
    for number in taken:
        ask(n=number)


def calls(slug):
    """Of each number and mask of an exercise the first call that has one: (name, argument, …)."""
    for item in registry.of_lesson(slug.partition("_")[2]).values():
        function, seen = registry.reference(item), set()
        signature = inspect.signature(function)
        for question in asked(item, SEED)[0]:
            if question.probe or question.handle or question.request not in ("call", "build"):
                continue
            given, named = question.details
            if "stand_ins" in named:
                continue
            with standing_in(function, given, named) as (made, options):
                bound = signature.bind(*made, **options)
            bound.apply_defaults()
            for argument, value in bound.arguments.items():
                if argument not in seen and (is_number(value) or is_mask(value)):
                    seen.add(argument)
                    yield item.name, argument, function, bound


def is_number(value):
    return isinstance(value, int | float) and type(value) is not bool


def is_mask(value):
    return isinstance(value, torch.Tensor) and value.dtype == torch.bool


def instead(function, bound, argument, value):
    """What a call says against another value of an argument; 'obeyed' if nothing."""
    arguments = inspect.BoundArguments(bound.signature, bound.arguments | {argument: value})
    try:
        with torch.no_grad():
            function(*arguments.args, **arguments.kwargs)
    except (ValueError, TypeError, RuntimeError) as error:
        return error
    return "obeyed"


@pytest.mark.parametrize("slug", SLUGS)
def test_an_exercise_refuses_numbers_that_mean_nothing_and_masks_that_are_not_bool(slug):
    faults = []
    for name, argument, function, bound in calls(slug):
        value = bound.arguments[argument]
        if is_mask(value):
            wrong = {
                value.float(): f"{argument} is of torch.float32, not of torch.bool: True = may"
            }
        else:
            few = () if argument in IDS else (math.nan,) if argument in ANY_SIGN else (math.nan, -1)
            wrong = {number: f"{argument}={number} is no " for number in few}
        for number, words in wrong.items():
            said = instead(function, bound, argument, number)
            by_pytorch = name in BUILT and isinstance(said, TypeError | RuntimeError)
            if not by_pytorch and not (isinstance(said, ValueError) and words in str(said)):
                faults.append(f"{name}({argument}={number}): {said!r}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("function", [attention_pooling, sentence_vectors])
def test_a_mask_is_refused_by_lines_that_are_given_however_the_rest_is_written(function):
    given = inspect.getsource(function).split("# exercise")[0] + "return 'no refusal'"
    exec(given, written := dict(function.__globals__))
    numbers = {name: torch.ones(2, 3, dtype=torch.int64) for name in ("x", "hidden", "mask")}
    wanted = {name: numbers.get(name) for name in inspect.signature(function).parameters}
    with pytest.raises(ValueError, match=r"not of torch\.bool"):
        written[function.__name__](**wanted)


NOTHING = torch.zeros(0, 3)


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("B=0", lambda: join_text_and_summary([], [])),
        ("stride=0", lambda: compress(torch.zeros(5, 2), torch.zeros(0, 2, 2))),
        ("N=0", lambda: load_balance_loss(NOTHING, NOTHING)),
        ("checkpoints=0", lambda: average_checkpoints([])),
        ("gradients=0", lambda: clip_gradients([], 1.0)),
        ("B=0", lambda: greedy_decode(NOTHING, NOTHING, {}, 4)),
        ("tokens=-1", lambda: data_parallel_gradients([[torch.ones(1)]] * 2, tokens=[2, -1])),
        ("beta_1=1.0", lambda: adamw_step(*torch.zeros(4, 1), 1, 0.1, betas=(1.0, 0.98))),
        ("B=0", lambda: pad([])),
        ("pairs=0", lambda: numbers(3, 2, digits=1).batch([])),
    ],
)
def test_where_there_is_nothing_to_work_on_it_says_so(said, call):
    with pytest.raises(ValueError, match=said):
        call()


def test_a_batch_of_nothing_gives_nothing():
    assert batch_by_tokens([], max_tokens=9) == []
    assert label_smoothed_loss(torch.zeros(0, 3, 9), NOTHING.long()) == 0
