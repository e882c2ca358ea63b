"""How long a computation takes: here and now, or at its best, on CUDA, MPS or a CPU."""

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def both_ways(action: Callable[[], Tensor], inputs: Sequence[Tensor]) -> Callable[[], object]:
    """Return a function that runs ``action`` forward and backward.

    inputs  what ``action`` reads, and what gets gradients: those of the sum of its result

    >>> x = torch.ones(3, requires_grad=True)
    >>> both_ways(lambda: 2 * x, [x])()
    (tensor([2., 2., 2.]),)
    """

    def run() -> object:
        with torch.enable_grad():
            return torch.autograd.grad(action().sum(), inputs)

    return run


def device_at_hand() -> str:
    """Return "cuda" or "mps" where PyTorch can use one, else "cpu"."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def shortest(
    action: Callable[[], object], device: str = "cpu", seconds: float = 0.0, least: int = 3
) -> float:
    """Return the shortest of several runs of ``action()``, in milliseconds, after one to warm up.

    seconds  run at least so long
    least    and at least so often

    On a CPU it is the time that this process computes, which other programs hardly disturb; it
    is the time on the clock if PyTorch computes on one thread. A GPU is waited for.
    """
    clock = time.process_time if device == "cpu" else time.perf_counter
    spent: list[float] = []
    begin = clock()
    while len(spent) < least + 1 or clock() - begin < seconds:
        start = clock()
        action()
        if device == "cuda":
            torch.cuda.synchronize()
        elif device == "mps":
            torch.mps.synchronize()
        spent.append(clock() - start)
    return 1000 * min(spent[1:])


def in_turns(actions: Sequence[Callable[[], object]], rounds: int = 5) -> list[float]:
    """Return ``shortest`` of each action on a CPU, measured in several rounds over all of them.

    What slows the machine down for a while then meets every action, and the best round is taken.
    """
    measured = [[shortest(action) for action in actions] for _ in range(rounds)]
    return [min(times) for times in zip(*measured, strict=True)]
