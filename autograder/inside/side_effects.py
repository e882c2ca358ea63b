"""What a call may change around it: seen, named, and put back.

PyTorch's switches hold for the whole process. Whoever leaves one changed breaks what comes next:
the next cell of the notebook, the next exercise, the check itself.
"""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

SEEDED = "PyTorch's global random generator"
DRAWN_FROM = "Python's global random generator"
MODE = "the module's training mode"
DRAWING = ("random", "getrandbits")  # all other methods draw by these two
SETTING = ("seed", "setstate")
SWITCHES: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "torch.is_grad_enabled()": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch.get_default_dtype()": (torch.get_default_dtype, torch.set_default_dtype),
    "torch.is_anomaly_enabled()": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    "torch.are_deterministic_algorithms_enabled()": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
}


@contextlib.contextmanager
def watched(seed: int | None = None, target: Any = None) -> Iterator[list[str]]:
    """Watch a call; yields a list that says, behind the call, what it changed around it.

    With ``seed`` what is drawn at random is drawn from there, and it counts as a change to seed, to
    draw from Python's own generator, or to leave a module in another mode than it was in.
    """
    changed: list[str] = []
    before = {name: read() for name, (read, _) in SWITCHES.items()}
    try:
        with _drawing(seed, changed):
            modes = _modes(target)
            yield changed
            if seed is not None and _modes(target) != modes:
                changed.append(MODE)
    finally:
        for name, (read, write) in SWITCHES.items():
            if read() != before[name]:
                changed.append(name)
                write(before[name])


@contextlib.contextmanager
def _drawing(seed: int | None, changed: list[str]) -> Iterator[None]:
    if seed is None:
        yield
        return
    before = random.getstate()
    with torch.random.fork_rng(devices=[]), _noting_draws() as drew:
        # Not torch.manual_seed: without a GPU it keeps a stack trace per call, and grows for ever.
        torch.default_generator.manual_seed(seed)
        yield
        if torch.initial_seed() != seed:
            changed.append(SEEDED)
    # A notebook's kernel and a worker of a cluster have threads that draw, too, whenever they like.
    if random.getstate() != before and (drew or threading.active_count() == 1):
        changed.append(DRAWN_FROM)
        random.setstate(before)


@contextlib.contextmanager
def _noting_draws() -> Iterator[list[str]]:
    """Note what this thread draws from Python's own generator, or sets it to.

    What was imported by its own name before, as in ``from random import random``, goes unnoticed.
    """
    module, generator = vars(random), vars(random._inst)  # whose methods the module's functions are
    drew: list[str] = []
    before = {name: module[name] for name in DRAWING + SETTING}
    noted = {name: _noting(method, name, drew) for name, method in before.items()}
    own = {name: generator[name] for name in DRAWING if name in generator}  # in a call within one
    module.update(noted)
    generator.update({name: noted[name] for name in DRAWING})
    try:
        yield drew
    finally:
        module.update(before)
        for name in DRAWING:
            generator.pop(name, None)
        generator.update(own)


def _noting(method: Callable[..., Any], name: str, drew: list[str]) -> Callable[..., Any]:
    """The same method, which adds its name to ``drew`` where the thread that is here calls it."""
    here = threading.get_ident()

    def noted(*args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == here:
            drew.append(name)
        return method(*args, **kwargs)

    return noted


def _modes(target: Any) -> list[Any]:
    """Of all parts of a module whether they are in training mode; of itself where it has none.

    Whoever puts itself into a mode before each call, and its parts back behind it, does no harm.
    """
    if not isinstance(target, torch.nn.Module):
        return []
    try:
        modes = [part.training for part in target.modules()]
    except Exception:  # its constructor never called that of Module
        return []
    return modes[1:] or modes
