"""What entries must keep to: a budget of examples, of parameters, or of tokens."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from attention.provided.models import translators
from autograder.leaderboard.entries import Refused

Make = Callable[[Mapping[str, Any], int], nn.Module]  # a model of settings and a seed


def within(said: str, count: int, of: str, most: int) -> int:
    """``count``, as long as it is in the budget; else raises Refused, which names both numbers."""
    if count > most:
        raise Refused(f"{said} {count} {of}, and the budget is {most}")
    return count


def learning(
    settings: Mapping[str, Any], make: Make, of: str, examples: int, parameters: int
) -> int:
    """The number of parameters of a model that learns from ``of``, the setting for a batch.

    Raises Refused where it learns from more than ``examples`` or has more than ``parameters``.
    """
    steps, each = settings["steps"], settings[of]
    within(f"{steps} steps of {each} {of} are", steps * each, of, examples)
    return within("the model has", built(settings, make), "parameters", parameters)


def tokens(count: int, of: str, longest: int, most: int) -> int:
    """The tokens of so many translations, ``of`` in words. Raises Refused if more than ``most``."""
    said = f"{count} {of} of at most {longest} tokens are"
    return within(said, count * longest, "tokens", most)


def built(settings: Mapping[str, Any], make: Make) -> int:
    """The number of parameters of the model. Raises Refused where it cannot be built."""
    d_model, n_heads = settings["d_model"], settings["n_heads"]
    if d_model % n_heads:
        raise Refused(f"n_heads={n_heads} does not divide d_model={d_model}")
    try:
        return translators.size(make(settings, 0))
    except (ValueError, RuntimeError) as error:
        raise Refused(f"no model can be built of these sizes: {error}") from None
