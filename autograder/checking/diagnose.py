"""Why an answer fails: what is true of all its replies, and said only then.

A stored mistake is named if the answer replies as the mistake does, to every question, and no
mistake with another hint does. What no stored mistake explains gets sentences that are true by
construction: how the replies relate to the right ones, where they differ, and a right answer with
one slip that replies in the same way.
"""

import time

from autograder.checking import registry
from autograder.checking.probes import places
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
    pairs = _telling(list(zip(questions, given, wanted, strict=True)))
    questions, given, _ = zip(*pairs, strict=True)
    found = [
        known for known in registry.mistakes(item) if _replies_so(known.target, given, questions)
    ]
    if len({known.hint for known in found}) > 1:
        found = [one for one in found if _replies_so(one.target, given, questions, exactly=True)]
    if found:
        return found[0].hint if len({known.hint for known in found}) == 1 else ""
    said = [_relation(pairs) or _slip(item, given, questions), where(pairs)]
    return " ".join(part for part in said if part)


def _telling(pairs):
    """Without the rehearsal device, where an answer is wrong on the CPU as well.

    A tensor on the wrong device is a fault of its own: with it or without, a mistake is the same.
    """
    here = [pair for pair in pairs if pair[0].probe != "device"]
    return pairs if all(got.agrees(expected) for _, got, expected in here) else here


def _replies_so(target, given, questions, exactly=False):
    """Whether ``target`` replies as given, asked until the first difference."""
    return agree(replies(LocalAnswer(target), questions), given, exactly)


def _relation(pairs):
    """What holds, in the same words but for numbers, of every reply that is wrong."""
    found = []
    for question, got, expected in _wrong(pairs):
        if got.kind != "value" or expected.kind != "value" or same(got.value, expected.value):
            return ""  # it raised, or it did something besides giving the right value
        if question.request == "gradients":
            found.append(_of_gradients(got.value, expected.value, question))
        else:
            found.append(between(got.value, expected.value, question))
    kinds = {_without_numbers(said) for said in found}
    if len(kinds) != 1:
        return ""
    if len(set(found)) == 1:
        return found[0]
    return f"In the first call that is wrong, {found[0][0].lower()}{found[0][1:]}"


def _wrong(pairs):
    """The wrong replies to the check's own calls; where there are none, to all that was asked."""
    wrong = [
        (question, got, expected)
        for question, got, expected in pairs
        if question.request in ("call", "gradients") and not got.agrees(expected)
    ]
    calls = [pair for pair in wrong if pair[0].request == "call"]
    return [pair for pair in calls if not pair[0].probe] or calls or wrong


def _without_numbers(said):
    return "".join(letter for letter in said.partition(" (")[0] if letter not in "0123456789.-e+")


def _of_gradients(got, expected, question):
    """Where no gradient arrives although one should."""
    if not isinstance(got, tuple) or not isinstance(got[0], dict):
        return ""
    names = [name for name, wanted in expected[0].items() if wanted is not None]
    missing = [name for name in names if got[0].get(name) is None]
    if missing:
        return f"No gradient reaches {', '.join(missing)}."
    parts = zip(places(question.details[0]), got[1], expected[1], strict=False)
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
