"""How well two orders agree, and how sure a mean is."""

from collections.abc import Sequence

import numpy
from torch import Tensor

from attention.provided import demand


def agreement(a: Tensor, b: Tensor, lengths: Sequence[Sequence[int]]) -> list[float]:
    """Kendall's τ between the rows of two (B, T_q, T_k), mean over the rows of each sentence.

    lengths  for each sentence, how many keys count in each of its rows; rows of fewer than 2, and
             rows in which all are equal, do not count
    """
    found = []
    for x, y, counts in zip(a, b, lengths, strict=True):
        taus = [tau(x[t, :n], y[t, :n]) for t, n in enumerate(counts) if n > 1]
        found.append(float(numpy.nanmean(taus)))
    return found


def tau(x: Tensor, y: Tensor) -> float:
    """Kendall's τ (b, for ties) of two rows (T,): the pairs they agree on, less the others.

    >>> import torch
    >>> tau(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 30.0, 20.0]))
    0.3333333333333333
    """
    one, other = ((row[:, None] - row).sign().double() for row in (x, y))
    length = (one.square().sum() * other.square().sum()).sqrt()
    return ((one * other).sum() / length).item()


def bootstrap(numbers: Sequence[float], draws: int = 2000, seed: int = 0) -> tuple[float, ...]:
    """Mean of some numbers, and the bounds of its 95 % interval: drawn again, with replacement.

    Raises ValueError if there are no numbers, or no draws.
    """
    demand.counts(numbers=len(numbers), draws=draws)
    values = numpy.asarray(numbers)
    places = numpy.random.default_rng(seed).integers(len(values), size=(draws, len(values)))
    low, high = numpy.quantile(values[places].mean(axis=1), (0.025, 0.975))
    return float(values.mean()), float(low), float(high)
