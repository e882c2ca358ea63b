"""A device to rehearse on: it refuses what a GPU refuses, and needs none.

The grader calls every answer there once; here is the door through which a notebook may use it.
"""

from collections.abc import Callable
from typing import Any

from autograder.inside.device.rehearsal import Unrehearsable, landed, rehearsal, rehearsed


def rehearse(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function with its arguments on the rehearsal device; the result, back on the CPU.

    args     tensors, modules, numbers, and lists of these; they are copied to the device
    returns  what the function returns, or None if it raised: then the error is printed, as a GPU
             would have raised it

    A module's parameters and buffers are moved, as by ``module.to(device)``. What it holds besides
    these stays on the CPU.
    """
    name = getattr(function, "__name__", type(function).__name__)
    try:
        with rehearsal():
            result = function(*[rehearsed(argument) for argument in args])
            return landed(result)
    except Unrehearsable as error:
        print(f"{name}: this cannot be rehearsed: {error}")
    except (RuntimeError, TypeError) as error:
        kind = "TypeError" if isinstance(error, TypeError) else "RuntimeError"
        print(f"{name}: {kind}: {error}")
    return None
