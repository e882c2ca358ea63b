"""The convex hull of points in the plane, for a figure."""

from collections.abc import Sequence

import torch

Point = tuple[float, float]


def convex_hull(points: torch.Tensor) -> torch.Tensor:
    """Return the corners of the convex hull of 2-D points, counter-clockwise.

    points   (n, 2)
    returns  (corners, 2)

    Source: Andrew's monotone chain (1979).

    >>> convex_hull(torch.tensor([[0.0, 0], [2, 0], [1, 0.5], [2, 2], [0, 2]])).tolist()
    [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]
    """
    ordered = sorted(set(map(tuple, points.tolist())))
    if len(ordered) < 3:
        return torch.tensor(ordered, dtype=points.dtype)
    lower, upper = _chain(ordered), _chain(ordered[::-1])
    return torch.tensor(lower[:-1] + upper[:-1], dtype=points.dtype)


def _chain(ordered: Sequence[Point]) -> list[Point]:
    """Half of a hull: drop the last corner for as long as it does not turn left."""
    chain: list[Point] = []
    for point in ordered:
        while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    return chain


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
