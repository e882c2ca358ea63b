"""A figure with a slider, where a kernel runs and somebody looks at it."""

import os
from collections.abc import Callable

import matplotlib.pyplot as plt

STEPS = 50  # of a slider over real numbers, evenly spaced in the logarithm if both ends are above 0


def slider(draw: Callable[..., object], **ranges: tuple[float, float]) -> None:
    """Show what ``draw(**values)`` draws, with a slider for each value.

    draw    draws with matplotlib, into a figure of its own
    ranges  name=(least, most): whole numbers if both ends are, else real ones

    While a notebook is built or graded nobody can move a slider: then only a line is printed, and
    the figure above it stands for this one.
    """
    if "NBGRADER_EXECUTION" in os.environ or "AUTOGRADER_SEED" in os.environ:
        print(f"Run this cell in JupyterLab to move {' and '.join(ranges)} by a slider.")
        return
    import ipywidgets

    def show(**values: float) -> None:
        draw(**values)
        plt.show()

    ipywidgets.interact(show, **{name: _slider(*ends) for name, ends in ranges.items()})


def _slider(least: float, most: float) -> object:
    import math

    import ipywidgets

    common = {"continuous_update": False}
    if isinstance(least, int) and isinstance(most, int):
        return ipywidgets.IntSlider(min=least, max=most, value=(least + most) // 2, **common)
    if least > 0:
        low, high = math.log10(least), math.log10(most)
        return ipywidgets.FloatLogSlider(
            min=low, max=high, step=(high - low) / STEPS, value=10 ** ((low + high) / 2), **common
        )
    step, middle = (most - least) / STEPS, (least + most) / 2
    return ipywidgets.FloatSlider(min=least, max=most, step=step, value=middle, **common)
