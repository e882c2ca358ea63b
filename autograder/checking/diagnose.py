"""Why an answer fails: what is true of all its replies, and said only then.

A stored mistake is named if the answer replies as the mistake does, to every question, and no
mistake with another hint does. What no stored mistake explains gets sentences that are true by
construction: how the replies relate to the right ones, where they differ, and a right answer with
one slip that replies in the same way.
"""

import itertools
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from autograder.checking import loosely, registry
from autograder.checking.questions import (
    SEEDED,
    Question,
    Replied,
    agree,
    asked,
    floating_places,
)
from autograder.checking.refusals import has_gradient
from autograder.checking.relations import between
from autograder.checking.relations_of_items import ALONE
from autograder.checking.remembered import (
    Remembered,
    leading_to,
    mistakes_of,
    of_answer,
    of_answers_at,
    of_slips,
)
from autograder.checking.where import where
from autograder.inside.values import same

SECONDS = 0.8  # of CPU for looking for a slip: feedback should come within two seconds in all


def diagnose(
    item: registry.Check, given: Sequence[Replied], seed: int, lost: Collection[str] = ()
) -> str:
    """What is likely wrong with an answer that gave these replies: one or two sentences, or ''.

    Where some stages are ``lost``, what is said besides a mistake's hint is said of these.
    """
    questions, wanted = asked(item, seed)
    if not questions or len(given) < len(wanted) or agree(given, wanted):
        return ""  # it was lost on the way, or its fault is not in what it replies
    pairs = _telling(list(zip(questions, given, wanted, strict=True)))
    given, device = [reply for _, reply, _ in pairs], len(pairs) == len(questions)
    stored = _alike(item, pairs, seed, device)
    chance = _by_chance(pairs)

    def fits(replies: Iterable[Replied], exactly: bool = False) -> bool:
        return agree(_without(replies, chance), _without(given, chance), exactly)

    found = [(known, replies) for known, replies in stored if fits(replies)]
    found = found or _but_for_refusals(item, pairs, seed, device)
    found = found or _in_another_form(item, pairs, seed, device, chance)
    if len({known.hint for known, _ in found}) > 1:
        found = [pair for pair in found if fits(pair[1], exactly=True)]
    hints = {known.hint for known, _ in found}
    if hints:
        return (hints.pop() or "") if len(hints) == 1 else ""
    pairs = _but_for_care(pairs, lost)
    # Many faults end in the same error: where there are no results, there are none to explain.
    results = any(got.kind == "value" and not got.agrees(right) for _, got, right in pairs)
    # With other parameters than those that were to be loaded, it computes with other numbers.
    loaded = all(got.agrees(right) for one, got, right in pairs if one.request == "load")
    likely = _not_of_pairs(_relation(pairs), pairs) if loaded else ""
    likely = likely or (_slip(item, pairs, seed, device) if results else "")
    return " ".join(part for part in (likely, where(pairs) if loaded else "") if part)


def _but_for_care(
    pairs: list[tuple[Question, Replied, Replied]], lost: Collection[str]
) -> list[tuple[Question, Replied, Replied]]:
    """With the right replies in the stages that stand: what differs there is a matter of care."""
    stand = {one.stage for one, *_ in pairs} - {"", *lost} if lost else set()
    return [(one, right if one.stage in stand else got, right) for one, got, right in pairs]


def _by_chance(pairs: list[tuple[Question, Replied, Replied]]) -> set[int]:
    """The numbers of the replies of objects that could not load the weights they were given.

    They compute with weights drawn at random, in the order in which their layers are made.
    """
    failed: set[int] = set()
    found = set()
    for number, (question, got, _) in enumerate(pairs):
        if question.request == "load" and got.kind == "raised":
            failed.add(question.handle)
        elif question.handle in failed and question.request in SEEDED:
            found.add(number)
    return found


def _without(replies: Iterable[Replied], some: set[int]) -> Iterable[Replied]:
    return (reply for number, reply in enumerate(replies) if number not in some)


def _alike(
    item: registry.Check, pairs: list[tuple[Question, Replied, Replied]], seed: int, device: bool
) -> list[tuple[registry.Answer, Remembered[Replied]]]:
    """The stored mistakes, with their replies, that reply alike where the answer fails first.

    Of a function that is the first question to which its reply is wrong; of an object, all that it
    was asked until then. Most mistakes fall out here, and are asked nothing else.
    """
    mistakes = mistakes_of(item, seed)
    place = next((n for n, (_, got, right) in enumerate(pairs) if not got.agrees(right)), None)
    if place is not None:
        known = of_answers_at(mistakes, item, seed, device, place)
        given = [pairs[n][1] for n in leading_to(place, [question for question, _, _ in pairs])]
        mistakes = tuple(one for one, replies in known if agree(replies, given))
    return [of_answer(one, item, seed, device) for one in mistakes]


def _but_for_refusals(
    item: registry.Check,
    pairs: list[tuple[Question, Replied, Replied]],
    seed: int,
    device: bool,
) -> list[tuple[registry.Answer, Remembered[Replied]]]:
    """Those that refuse where the answer rightly refuses, and reply alike to all else.

    The words of a refusal are free: "too long" and "sentence 3 has 61 tokens" say the same.
    """
    free = [right.refuses() and got.refuses() for _, got, right in pairs]
    wanted = [right for _, _, right in pairs]
    given = [
        right if is_free else got for is_free, (_, got, right) in zip(free, pairs, strict=True)
    ]
    if not any(free) or agree(given, wanted):
        return []
    questions = [question for question, _, _ in pairs]
    stored = _alike(item, list(zip(questions, given, wanted, strict=True)), seed, device)

    def freed(replies: Iterable[Replied]) -> Iterable[Replied]:
        for reply, right, is_free in zip(replies, wanted, free, strict=False):
            yield right if is_free and reply.refuses() else reply

    return [(one, replies) for one, replies in stored if agree(freed(replies), given)]


def _in_another_form(
    item: registry.Check,
    pairs: list[tuple[Question, Replied, Replied]],
    seed: int,
    device: bool,
    chance: set[int],
) -> list[tuple[registry.Answer, Remembered[Replied]]]:
    """Those whose wrong numbers are the answer's, as a float for a tensor or in another precision.

    There are none for an answer whose results are right, but for their form, their gradients or
    their device: a mistake with another form may share that fault, and be known for its form.
    """
    places = range(len(pairs))
    free = chance | _shaped_by_the_form(pairs)
    results = (n for n in places if pairs[n][0].request == "call" and pairs[n][0].probe != "device")
    wrong = (n for n in results if not loosely.replied(*pairs[n][1:], pairs[n][2]))
    place = next((n for n in wrong if n not in free), None)
    if place is None:
        return []

    leading = leading_to(place, [question for question, _, _ in pairs])
    near = [
        one
        for one, replies in of_answers_at(mistakes_of(item, seed), item, seed, device, place)
        if _fit_loosely(replies, pairs, leading, free)
    ]
    stored = [of_answer(one, item, seed, device) for one in near]
    return [pair for pair in stored if _fit_loosely(pair[1], pairs, places, free)]


def _fit_loosely(
    replies: Iterable[Replied],
    pairs: list[tuple[Question, Replied, Replied]],
    places: Iterable[int],
    free: Collection[int] = (),
) -> bool:
    """Whether these are the answer's replies to the questions at ``places``, in whatever form.

    free  the numbers of questions to which any reply fits
    """
    for place, reply in itertools.zip_longest(places, replies):
        if place is None or reply is None:  # one of the two was interrupted
            return False
        if place not in free and not loosely.replied(reply, *pairs[place][1:]):
            return False
    return True


def _shaped_by_the_form(pairs: list[tuple[Question, Replied, Replied]]) -> set[int]:
    """The numbers of the gradients, if results are no tensors where they should be: of a list none
    arrive, or those of its first item."""
    forms = [
        (type(got.value), type(right.value))
        for one, got, right in pairs
        if one.request == "call" and got.kind == right.kind == "value"
    ]
    if all(got is right for got, right in forms):
        return set()
    return {number for number, (one, _, _) in enumerate(pairs) if one.request == "gradients"}


def _telling(
    pairs: list[tuple[Question, Replied, Replied]],
) -> list[tuple[Question, Replied, Replied]]:
    """Without the rehearsal device, where an answer is wrong on the CPU as well.

    A tensor on the wrong device is a fault of its own: with it or without, a mistake is the same.
    """
    here = [pair for pair in pairs if pair[0].probe != "device"]
    return pairs if all(got.agrees(expected) for _, got, expected in here) else here


def _relation(pairs: list[tuple[Question, Replied, Replied]]) -> str:
    """What holds, in the same words but for numbers, of every result that is wrong."""
    wrong = [pair for pair in pairs if _is_wrong("call", *pair)]
    if not wrong:  # else the gradients are wrong because the results are
        wrong = [pair for pair in pairs if _is_wrong("gradients", *pair)]
    if any(got.kind != "value" or same(got.value, right.value) for _, got, right in wrong):
        return ""  # it raised, or it did something besides giving the right value
    found = [_one_relation(*pair) for pair in wrong]
    if len({_without_numbers(said) for said in found}) != 1 or not found[0]:
        return ""
    told = zip(found, wrong, strict=True)
    said = [words for words, (question, _, _) in told if not question.probe] or found
    if len({one.partition(" (")[0] for one in said}) == 1:
        return said[0] if len(set(said)) == 1 else said[0].partition(" (")[0].rstrip(".") + "."
    return f"In one of the calls, {said[0][0].lower()}{said[0][1:]}"  # others, other numbers


def _not_of_pairs(said: str, pairs: list[tuple[Question, Replied, Replied]]) -> str:
    """The sentence that an item should be returned alone, without the calls that ask for more."""
    calls = [
        (one, right.value)
        for one, _, right in pairs
        if one.request == "call" and right.kind == "value"
    ]
    several = [one for one, right in calls if isinstance(right, tuple)]
    if ALONE not in said or not several:
        return said
    alone = [one for one, right in calls if not isinstance(right, tuple)]
    switches = set().union(*map(_switched_on, several)) - set().union(*map(_switched_on, alone))
    unless = f"unless {switches.pop()}=True" if len(switches) == 1 else "where no more is asked for"
    return said.replace(ALONE, f"{ALONE} {unless}")


def _switched_on(question: Question) -> set[str]:
    """The arguments by name that are True."""
    return {name for name, value in question.details[1].items() if value is True}


def _is_wrong(request: str, question: Question, got: Replied, expected: Replied) -> bool:
    asks = question.request == request and expected.kind == "value"
    return asks and not got.agrees(expected)


def _one_relation(question: Question, got: Replied, expected: Replied) -> str:
    related = _of_gradients if question.request == "gradients" else between
    return related(got.value, expected.value, question)


def _without_numbers(said: str) -> str:
    return "".join(letter for letter in said.partition(" (")[0] if letter not in "0123456789.-e+")


def _of_gradients(got: Any, expected: Any, question: Question) -> str:
    """Where no gradient arrives although one should."""
    if not isinstance(got, tuple) or not isinstance(got[0], dict):
        return ""
    names = [name for name, wanted in expected[0].items() if wanted is not None]
    missing = [name for name in names if got[0].get(name) is None]
    if missing:
        return f"No gradient reaches {', '.join(missing)}."
    if len(got[1]) > 1 and all(one is None for one in got[1]):
        return "No gradient reaches any of the arguments."
    parts = zip(floating_places(question), got[1], expected[1], strict=False)
    lost = [place for place, one, other in parts if one is None and has_gradient(other)]
    return f"No gradient reaches argument {lost[0]}." if lost else ""


def _slip(
    item: registry.Check, pairs: list[tuple[Question, Replied, Replied]], seed: int, device: bool
) -> str:
    """A right answer with one slip that gives the same replies throughout."""
    if all(isinstance(right.value, bool) for _, _, right in pairs if right.kind == "value"):
        return ""  # yes and no say too little to tell one slip from another fault
    if all(loosely.replied(got, right, right) for _, got, right in pairs):
        return ""  # its form alone is at fault, and slips that change no number have it, too
    end = time.process_time() + SECONDS
    for slip, replies in of_slips(item, seed, device):
        if time.process_time() > end:
            return ""
        if _fit_loosely(replies, pairs, range(len(pairs))):
            return f"Your results are those of a right answer {slip.words}."
    return ""
