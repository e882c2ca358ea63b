"""What stands in for the parts that an answer uses: pieces of earlier exercises, a model.

A check hands over plain values only. A dict {STAND_IN: name, …} among the arguments becomes an
object of that name. The keyword argument ``stand_ins``, {"ModernAttention": "RunningMean"}, never
reaches the answer: what the answer calls by the first name is the second for as long as it is built
or called, so that a mistake in a learner's other exercise costs nothing here. None of these is a
right answer to anything.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

STAND_IN = "stand-in"  # in a dict that becomes an object
KEYWORD = "stand_ins"  # of a construction or a call
MISSING = object()


class RunningMean(nn.Module):
    """In the place of an attention: each position gets the mean of what is real up to it."""

    def __init__(self, d_model: int, *_: Any, **options: Any) -> None:
        super().__init__()
        self.W = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Any, past: Any = None, real: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """Like an attention's, with one head: x in the place of keys, W(x) in that of values."""
        keys, values = x.unsqueeze(1), self.W(x).unsqueeze(1)  # (B, 1, T, d_model)
        if past is not None:
            keys, values = (torch.cat(both, 2) for both in zip(past, (keys, values), strict=True))
        seen = torch.ones_like(keys[..., :1])
        if real is not None:
            _refuse_columns(real, values.shape[2])
            seen = seen * real[:, None, :, None]
        mean = (values * seen).cumsum(2) / seen.cumsum(2).clamp(min=1)
        return mean[:, 0, -x.shape[1] :] + x * x, (keys, values)


class Residual(RunningMean):
    """In the place of a layer: the same, added to what goes in."""

    def forward(self, x: Any, past: Any = None, real: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """As of a layer."""
        update, pair = super().forward(x, past, real)
        return x + torch.tanh(update), pair


class Tanh(nn.Module):
    """In the place of a feed-forward network: one matrix, and a tanh behind it."""

    def __init__(self, d_model: int, *_: Any, **options: Any) -> None:
        super().__init__()
        self.W = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Any) -> Any:
        """(..., d_model) -> (..., d_model)."""
        return torch.tanh(self.W(x))


class Fading(nn.Module):
    """A language model without attention: a sum of the tokens' rows, in which older ones fade.

    rows, columns  (vocab_size, d) each: what a token adds to the sum, and how the sum scores it

    Once it was called, it wants a past, and ``real`` for all tokens so far.
    """

    def __init__(self, rows: torch.Tensor, columns: torch.Tensor) -> None:
        super().__init__()
        self.rows, self.columns, self.has_read = rows, columns, False

    def forward(self, tokens: Any, past: Any = None, real: Any = None) -> tuple[Any, list[Any]]:
        """(B, T) ids -> scores (B, T, vocab_size), and the past: the tokens so far.

        As an attention does, it asks ``real`` about the past as well, at every call.
        """
        if past is None and self.has_read:
            raise RuntimeError("without a past, tokens are read a second time")
        self.has_read = True
        T = tokens.shape[1]
        tokens = tokens if past is None else torch.cat([past[0], tokens], 1)
        if real is not None:
            _refuse_columns(real, tokens.shape[1])
        sums = [torch.zeros_like(self.rows[tokens[:, 0]])]
        for t in range(tokens.shape[1]):
            new = sums[-1] * 0.6 + self.rows[tokens[:, t]]
            sums.append(new if real is None else torch.where(real[:, t, None], new, sums[-1]))
        return torch.stack(sums[-T:], 1) @ self.columns.T, [tokens]


def _refuse_columns(real: Any, wanted: int) -> None:
    if real.dim() != 2 or real.shape[1] != wanted:
        raise ValueError(f"real of shape {tuple(real.shape)}, but there are {wanted} tokens so far")


class Ranked:
    """A function that chooses the token with the largest score of each row, or the next one."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __call__(self, scores: Any) -> Any:
        """(B, vocab_size) -> (B,)."""
        if scores.dim() != 2:
            raise ValueError(f"choose wants scores (B, vocab_size), and got {tuple(scores.shape)}")
        return scores.argsort(dim=1, descending=True)[:, self.rank]


def squashed(matrix: Any, steps: int = 5) -> Any:
    """In the place of a function of a matrix: every number for itself, between -1 and 1."""
    return torch.tanh(matrix) * (steps / 5)


KNOWN: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (RunningMean, Residual, Tanh, Fading, Ranked, squashed)
}


@contextlib.contextmanager
def standing_in(
    target: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield the arguments with objects for what describes them; within, names are replaced."""
    kept = {name: _made(item) for name, item in kwargs.items() if name != KEYWORD}
    with contextlib.ExitStack() as stack:
        for names in _globals(target) if KEYWORD in kwargs else ():
            stack.enter_context(_replaced(names, kwargs[KEYWORD]))
        yield list(map(_made, args)), kept


def _made(item: Any) -> Any:
    if type(item) is not dict or STAND_IN not in item:
        return item
    return KNOWN[item[STAND_IN]](**{name: item[name] for name in item if name != STAND_IN})


def _globals(target: Any) -> list[dict[str, Any]]:
    """The namespaces in which the answer looks up what it calls."""
    if inspect.isclass(target):
        found = [vars(one).get("__init__") for one in target.__mro__]
    else:
        found = [inspect.unwrap(target)] if callable(target) else []
    spaces = [getattr(one, "__globals__", None) for one in found]
    own = [one for one in spaces if one is not None and one is not vars(nn.modules.module)]
    return [one for place, one in enumerate(own) if all(one is not other for other in own[:place])]


@contextlib.contextmanager
def _replaced(names: dict[str, Any], stand_ins: dict[str, str]) -> Iterator[None]:
    before = {name: names.get(name, MISSING) for name in stand_ins}
    names.update({name: KNOWN[stand_in] for name, stand_in in stand_ins.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is MISSING:
                names.pop(name, None)
            else:
                names[name] = value
