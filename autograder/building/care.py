"""Gates for a check: enough stored answers, careless ones too, and a text to rest its core on."""

import re
from collections.abc import Sequence

from nbformat import NotebookNode

from autograder.checking import registry
from autograder.checking.run_check import run_check
from autograder.inside.answer import LocalAnswer

LEAST_MISTAKES, LEAST_ALTERNATIVES = 3, 2
LEAST_CARELESS = 2  # where anything can be forgotten


def gate(item: registry.Check, released: NotebookNode, seeds: Sequence[int]) -> list[str]:
    """What is wrong with an exercise's stored answers, and with what its check rests on."""
    return [*too_few(item), *careless_answers(item, seeds), *unsupported(item, released)]


def too_few(item: registry.Check) -> list[str]:
    """Whether there are fewer stored answers than a check needs to be trusted."""
    wrong, right = len(registry.mistakes(item)), len(registry.alternatives(item))
    if wrong >= LEAST_MISTAKES and right >= LEAST_ALTERNATIVES:
        return []
    needs = f"it needs at least {LEAST_MISTAKES} and {LEAST_ALTERNATIVES}"
    return [f"{item.name} has {wrong} named mistakes and {right} alternatives; {needs}"]


def careless_answers(item: registry.Check, seeds: Sequence[int]) -> list[str]:
    """What is wrong with the stored careless answers: each loses the care share, and no more."""
    kept, found = registry.careless_answers(item), []
    if len(kept) < LEAST_CARELESS and "care" not in dict(item.without):
        found.append(
            f"{item.name} has {len(kept)} careless answers; it needs at least {LEAST_CARELESS}"
        )
    for known in kept:
        tries = ((seed, run_check(item, LocalAnswer(known.target), seed)) for seed in seeds)
        wrong = [(seed, one) for seed, one in tries if one is None or not one.is_careless]
        for seed, failure in wrong[:1]:
            found.append(
                f"{item.name}: the careless answer {known.name} does not lose the care share "
                f"(seed {seed}): {failure or 'it earns everything'}"
            )
    return found


def unsupported(item: registry.Check, released: NotebookNode) -> list[str]:
    """The phrases that a check's core rests on and its lesson does not say, a line each."""
    text = _words("\n".join(cell.source for cell in released.cells))
    if not item.rests_on:
        return [f"{item.name}: its check does not say on which phrases of the text its core rests"]
    return [
        f"{item.name}: its check rests on {phrase!r}, which the lesson does not say"
        for phrase in item.rests_on
        if _words(phrase) not in text
    ]


def _words(text: str) -> str:
    """A text without comment signs, stars, backticks and line ends: phrases go across them."""
    return " ".join(re.sub(r"[#*`]", " ", text).split())
