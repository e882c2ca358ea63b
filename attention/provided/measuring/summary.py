"""A table of a model's modules: what comes out of each, and how many parameters it has."""

from typing import Any

import torch
from torch import nn

Row = tuple[str, str, str, str]
Shapes = dict[nn.Module, str]  # of each module's output


def summary(model: nn.Module, *inputs: Any, depth: int = 2) -> str:
    """Run a model once, and describe its modules in a table.

    model    any module
    inputs   what it is called with
    depth    how many levels of modules within modules are shown
    returns  a str: one line per module with its class, the shape of its output and the number of
             its parameters. A table that two modules share is counted where it comes first.

    >>> print(summary(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.ones(2, 3)))
    module      class   output  parameters
    0           Linear  (2, 4)          16
    1           ReLU    (2, 4)           0
    Sequential          (2, 4)          16
    """
    shapes = _shapes(model, inputs)
    total = sum(parameter.numel() for parameter in model.parameters())
    rows = [("module", "class", "output", "parameters")]
    rows += _rows(model, shapes, depth, seen=set())
    rows.append((type(model).__name__, "", shapes.get(model, ""), f"{total:,}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if place == 3 else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def _shapes(model: nn.Module, inputs: tuple[Any, ...]) -> Shapes:
    """The shape of each module's output, as text, by module."""
    shapes: Shapes = {}

    def note(module: nn.Module, _: object, output: Any) -> None:
        output = output[0] if isinstance(output, tuple) else output
        shapes[module] = str(tuple(output.shape))

    hooks = [module.register_forward_hook(note) for module in model.modules()]
    try:
        with torch.no_grad():
            model(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return shapes


def _rows(
    module: nn.Module,
    shapes: Shapes,
    depth: int,
    seen: set[nn.Parameter],
    prefix: str = "",
    level: int = 0,
) -> list[Row]:
    """One row per module inside; a list of modules shows only what is in it."""
    rows: list[Row] = []
    for name, child in module.named_children():
        if isinstance(child, nn.ModuleList):
            rows += _rows(child, shapes, depth, seen, f"{name}.", level)
            continue
        new = {parameter for parameter in child.parameters() if parameter not in seen}
        count = f"{sum(parameter.numel() for parameter in new):,}"
        label = "  " * level + prefix + name
        rows.append((label, type(child).__name__, shapes.get(child, ""), count))
        if level + 1 < depth:
            rows += _rows(child, shapes, depth, seen, level=level + 1)
        seen |= new
    return rows
