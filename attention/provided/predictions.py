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
        print(f"{told}. Your prediction is not a number: {prediction!r}")
    elif _is_number(shown):
        print(f"{told}. You predicted {_words(prediction)}.{_how_far(prediction, shown)}")
    else:
        alike = str(prediction).strip().casefold() == str(shown).strip().casefold()
        print(f"{told}. {'As you predicted.' if alike else f'You predicted {prediction}.'}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _words(value: Any) -> str:
    if not _is_number(value):
        return str(value)
    number = float(value)
    whole = number.is_integer() and abs(number) < 1e15
    return f"{number:,.0f}" if whole else f"{number:.3g}"


def _how_far(prediction: Real, shown: Real) -> str:
    one, other = float(prediction), float(shown)
    if not math.isfinite(one) or not math.isfinite(other) or one * other <= 0:
        return ""
    ratio = max(one / other, other / one)
    if ratio <= 2:
        return ""
    return f" That is too {'large' if one > other else 'small'} by a factor of {ratio:.1f}."
