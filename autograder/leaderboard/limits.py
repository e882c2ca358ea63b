"""What entries must keep to: a budget of examples, of parameters, or of tokens."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from attention.provided.models import translators
from autograder.leaderboard.entries import Refused


def within(said: str, count: int, of: str, most: int) -> int:
    """``count``, as long as it is in the budget; else raises Refused, which names both numbers."""
    if count > most:
        raise Refused(f"{said} {count} {of}, and the budget is {most}")
    return count


def learned_from(settings: Mapping[str, Any], of: str, most: int) -> None:
    """Raise Refused where steps × examples in a batch, the setting ``of``, are more than most."""
    steps, each = settings["steps"], settings[of]
    within(f"{steps} steps of {each} {of} are", steps * each, of, most)


def tokens(count: int, of: str, longest: int, most: int) -> int:
    """The tokens of so many translations, ``of`` in words. Raises Refused if more than ``most``."""
    said = f"{count} {of} of at most {longest} tokens are"
    return within(said, count * longest, "tokens", most)


def built(make: Callable[[], nn.Module], settings: Mapping[str, Any]) -> int:
    """The number of parameters of the model that ``make`` builds of these settings.

    Raises Refused where no model can be built.
    """
    d_model, n_heads = settings["d_model"], settings["n_heads"]
    if d_model % n_heads:
        raise Refused(f"n_heads={n_heads} does not divide d_model={d_model}")
    try:
        return translators.size(make())
    except (ValueError, RuntimeError) as error:
        raise Refused(f"no model can be built of these sizes: {error}") from None
