"""What stands in for the parts that an answer uses: pieces of earlier exercises, a model.

A check hands over plain values only. A dict {STAND_IN: name, …} among the arguments becomes an
object of that name. The keyword argument ``stand_ins``, {"ModernAttention": "RunningMean"}, never
reaches the answer: what the answer calls by the first name is the second for as long as it is built
or called, so that a mistake in a learner's other exercise costs nothing here. The names are those
that a module of the library, which the check imports, has given with ``@stands_in``.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from torch import nn

STAND_IN = "stand-in"  # in a dict that becomes an object
KEYWORD = "stand_ins"  # of a construction or a call
METHOD = "method"  # of a construction: the name of a method of an object, which makes the new one
MISSING = object()
KNOWN: dict[str, Callable[..., Any]] = {}  # and no other: such a dict may be a student's
T = TypeVar("T", bound=Callable[..., Any])


def stands_in(one: T) -> T:
    """Let a class or a function stand in, by its name. It must be no right answer to anything."""
    KNOWN[one.__name__] = one
    return one


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
