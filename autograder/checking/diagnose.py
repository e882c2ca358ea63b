"""Why an answer fails: what is true of all its replies, and said only then.

A stored mistake is named if the answer replies as the mistake does, to every question, and no
mistake with another hint does. What no stored mistake explains gets sentences that are true by
construction: how the replies relate to the right ones, where they differ, and a right answer with
one slip that replies in the same way.
"""

import time

from autograder.checking import registry
from autograder.checking.questions import agree, asked, reference, replies
from autograder.checking.relations import between
from autograder.checking.slips import slips_of
from autograder.checking.where import where
from autograder.inside.answer import LocalAnswer
from autograder.inside.values import same

SECONDS = 1.0  # for looking for a slip: feedback should come within two seconds in all


def diagnose(item, given, seed):
    """What is likely wrong with an answer that gave these replies: one or two sentences, or ''."""
    questions, wanted = asked(item, seed)
    if not questions or len(given) < len(wanted) or agree(given, wanted):
        return ""  # it was lost on the way, or its fault is not in what it replies
    found = [
        known for known in registry.mistakes(item) if _replies_so(known.target, given, questions)
    ]
    if len({known.hint for known in found}) > 1:
        found = [one for one in found if _replies_so(one.target, given, questions, exactly=True)]
    if found:
        return found[0].hint if len({known.hint for known in found}) == 1 else ""
    pairs = list(zip(questions, given, wanted, strict=True))
    said = [_relation(pairs) or _slip(item, given, questions), where(pairs)]
    return " ".join(part for part in said if part)


def _replies_so(target, given, questions, exactly=False):
    """Whether ``target`` replies as given, asked until the first difference."""
    return agree(replies(LocalAnswer(target), questions), given, exactly)


def _relation(pairs):
    """What holds, in the same words but for numbers, of every reply that is wrong."""
    found = []
    for question, got, expected in pairs:
        if got.agrees(expected) or question.request not in ("call", "gradients"):
            continue
        if got.kind != "value" or expected.kind != "value" or same(got.value, expected.value):
            return ""
        if question.request == "gradients":
            found.append(_of_gradients(got.value, expected.value))
        else:
            found.append(between(got.value, expected.value, question))
    kinds = {_without_numbers(said) for said in found}
    return found[0] if len(kinds) == 1 else ""


def _without_numbers(said):
    return "".join(letter for letter in said.partition(" (")[0] if letter not in "0123456789.-e+")


def _of_gradients(got, expected):
    """Where no gradient arrives although one should."""
    if not isinstance(got, tuple) or not isinstance(got[0], dict):
        return ""
    names = [name for name, wanted in expected[0].items() if wanted is not None]
    missing = [name for name in names if got[0].get(name) is None]
    if missing:
        return f"No gradient reaches {', '.join(missing)}."
    places = range(1, len(expected[1]) + 1)
    parts = zip(places, got[1], expected[1], strict=False)
    lost = [place for place, one, other in parts if one is None and other is not None]
    return f"No gradient reaches argument {lost[0]}." if lost else ""


def _slip(item, given, questions):
    """A right answer with one slip that gives the same replies throughout."""
    end = time.monotonic() + SECONDS
    for slip in slips_of(reference(item)):
        if time.monotonic() > end:
            return ""
        if _replies_so(slip.target, given, questions):
            return f"Your results are those of a right answer {slip.words}."
    return ""
