"""What a learner predicts before a demonstration, beside what it shows. Never graded."""

import math
from numbers import Real
from typing import Any


def compare(prediction: Any, shown: Any, what: str) -> None:
    """Print one line: what was predicted of ``what``, and what the demonstration shows.

    Both are numbers, or both words (a choice such as "A"). A prediction of None is one that the
    learner skipped; one that is of another kind is said to be so, and nothing is raised.
    """
    told = f"{what}: {_words(shown)}"
    if prediction is None:
        print(f"{told}. (No prediction was made.)")
    elif _is_number(shown) and not _is_number(prediction):
        print(f"{told}. Your prediction is no number: {prediction!r}")
    elif _is_number(shown):
        print(f"{told}. You predicted {_words(prediction)}.{_how_far(prediction, shown)}")
    else:
        alike = str(prediction).strip().casefold() == str(shown).strip().casefold()
        print(f"{told}. {'So you predicted.' if alike else f'You predicted {prediction}.'}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _words(value: Any) -> str:
    return f"{float(value):.3g}" if _is_number(value) else str(value)


def _how_far(prediction: Real, shown: Real) -> str:
    one, other = float(prediction), float(shown)
    if not math.isfinite(one) or not math.isfinite(other) or one * other <= 0:
        return ""
    ratio = max(one / other, other / one)
    return f" That is {ratio:.1f} times {'too much' if one > other else 'too little'}." * (
        ratio > 2
    )
