"""Attention weights with the same output as given ones: their space, the farthest, the shortest."""

import numpy
import torch
from torch import Tensor

from attention.provided import demand

TOLERANCE = 1e-5  # singular values below this share of the largest one count as 0


def null_space(values: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """Return the changes of weights with neither sum nor output: orthonormal columns, (T, n).

    values     (T, d)
    tolerance  a singular value below this share of the largest one counts as 0

    Raises ValueError for a tolerance that is not from 0 to 1.
    """
    demand.within(0, 1, tolerance=tolerance)
    both = torch.cat([values, torch.ones_like(values[:, :1])], dim=1)  # (T, d + 1)
    columns, strength, _ = torch.linalg.svd(both, full_matrices=True)  # (T, T), largest first
    rank = int((strength > tolerance * strength[0]).sum())
    return columns[:, rank:]


def effective_attention(weights: Tensor, values: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """Remove from the weights what makes no difference to the output.

    weights    (..., T_q, T)
    values     (..., T, d)
    tolerance  a singular value of `values` below this share of the largest one counts as 0
    returns    (..., T_q, T)  the shortest rows with the same output: the weights, projected to the
                              space that the columns of `values` span. Rows need not sum to 1, and
                              entries may be negative
    Raises ValueError for a tolerance that is not from 0 to 1.
    Source: Brunner et al. (2020), section 3.

    >>> effective_attention(torch.tensor([[0.9, 0.1]]), torch.tensor([[2.0], [2.0]]))
    tensor([[0.5000, 0.5000]])
    """
    demand.within(0, 1, tolerance=tolerance)
    context = weights @ values  # (..., T_q, d)
    shortest: Tensor = context @ torch.linalg.pinv(values, rtol=tolerance)  # (..., T_q, T)
    return shortest


def largest_change(
    weights: Tensor, values: Tensor, starts: int = 4, rounds: int = 8, seed: int = 0
) -> Tensor:
    """Search for the weights farthest from some, with the same output and sum, none negative.

    weights  (T,) float64
    values   (T, d)
    returns  (T,)  the best found; to find the best of all takes much longer

    From a random direction on: a linear programme finds the weights farthest in a direction, and
    the next direction is the signs of their change. Each round gets at least as far as the last.
    """
    from scipy.optimize import linprog  # slow to import

    both = torch.cat([values, torch.ones_like(values[:, :1])], dim=1).numpy()
    old, best = weights.numpy(), weights.numpy()
    random = numpy.random.default_rng(seed)
    for _ in range(starts):
        direction = random.choice([-1.0, 1.0], size=len(old))
        for _ in range(rounds):
            found = linprog(-direction, A_eq=both.T, b_eq=old @ both, bounds=(0, 1))
            if not found.success:
                break
            if abs(found.x - old).sum() > abs(best - old).sum():
                best = found.x
            signs = numpy.where(found.x >= old, 1.0, -1.0)
            if (signs == direction).all():
                break
            direction = signs
    return torch.from_numpy(numpy.ascontiguousarray(best))
