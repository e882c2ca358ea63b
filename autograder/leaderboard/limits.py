"""What entries must keep to: a budget of examples, of parameters, or of tokens."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from attention.provided import translators
from autograder.leaderboard.entries import Refused


def learned_from(settings: Mapping[str, Any], of: str, most: int) -> None:
    """Raise Refused where steps × examples in a batch, the setting ``of``, are more than most."""
    steps, each = settings["steps"], settings[of]
    if steps * each > most:
        raise Refused(
            f"{steps} steps of {each} {of} are {steps * each} {of}, and the budget is {most}"
        )


def built(make: Callable[[], nn.Module], settings: Mapping[str, Any]) -> int:
    """The number of parameters of the model that ``make`` builds of these settings.

    Raises Refused where no model can be built.
    """
    if settings["d_model"] % settings["n_heads"]:
        raise Refused(
            f"n_heads={settings['n_heads']} does not divide d_model={settings['d_model']}"
        )
    try:
        return translators.size(make())
    except (ValueError, RuntimeError) as error:
        raise Refused(f"no model can be built of these sizes: {error}") from None


def parameters(make: Callable[[], nn.Module], settings: Mapping[str, Any], most: int) -> int:
    """``built``, and Refused is raised, too, where there are more than ``most`` parameters."""
    size = built(make, settings)
    if size > most:
        raise Refused(f"the model has {size} parameters, and the budget is {most}")
    return size


def tokens(count: int, of: str, longest: int, most: int) -> int:
    """The tokens of so many translations, ``of`` in words. Raises Refused if more than ``most``."""
    if count * longest > most:
        raise Refused(
            f"{count} {of} of at most {longest} tokens are {count * longest} tokens, and the "
            f"budget is {most}"
        )
    return count * longest
