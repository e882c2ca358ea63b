"""Why an answer fails: what is true of all its replies, and said only then.

A stored mistake is named if the answer replies as the mistake does, to every question, and no
mistake with another hint does. What no stored mistake explains gets sentences that are true by
construction: how the replies relate to the right ones, where they differ, and a right answer with
one slip that replies in the same way.
"""

import itertools
import time
from collections.abc import Collection, Iterable, Sequence

from autograder.checking.asking.questions import SEEDED, Question, Replied, agree
from autograder.checking.asking.right_answer import asked
from autograder.checking.diagnosis import other_forms
from autograder.checking.diagnosis.common_cause import relation, where
from autograder.checking.diagnosis.error_meanings import meaning
from autograder.checking.diagnosis.relations_of_shapes import of_sizes
from autograder.checking.diagnosis.stored_replies import (
    Remembered,
    leading_to,
    mistakes_of,
    of_answer,
    of_answers_at,
    of_slips,
)
from autograder.checking.toolbox import registry

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
    everything = list(zip(questions, given, wanted, strict=True))
    pairs = _telling(everything)
    given, care = [reply for _, reply, _ in pairs], len(pairs) == len(questions)
    stored = _alike(item, pairs, seed, care)
    chance = _by_chance(pairs)

    def fits(replies: Iterable[Replied], exactly: bool = False) -> bool:
        return agree(_without(replies, chance), _without(given, chance), exactly)

    found = [(known, replies) for known, replies in stored if fits(replies)]
    found = found or _but_for_refusals(item, pairs, seed, care)
    found = found or _in_another_form(item, pairs, seed, care, chance)
    if len({known.hint for known, _ in found}) > 1:
        found = [pair for pair in found if fits(pair[1], exactly=True)]
    hints = {known.hint for known, _ in found}
    if hints:
        return (hints.pop() or "") if len(hints) == 1 else ""
    calls = _but_for_care([one for one in everything if care or one[0].probe != "device"], lost)
    # With other parameters than those that were to be loaded, it computes with other numbers.
    loaded = all(got.agrees(right) for one, got, right in calls if one.request == "load")
    likely = relation(calls) if loaded else ""
    likely = likely or _of_the_first(item, calls, seed, care)
    return " ".join(part for part in (likely, where(calls) if loaded else "") if part)


def _of_the_first(
    item: registry.Check, pairs: list[tuple[Question, Replied, Replied]], seed: int, care: bool
) -> str:
    """A slip, if a wrong value is what fails first; what the error means, if an error does."""
    for one, got, right in pairs:
        if got.agrees(right):
            continue
        if got.kind == "raised":
            return meaning(*got.value)
        sizes = of_sizes(got.value, right.value) if one.request == "call" else ""
        return _slip(item, pairs, seed, care) or sizes
    return ""


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
    item: registry.Check, pairs: list[tuple[Question, Replied, Replied]], seed: int, care: bool
) -> list[tuple[registry.Answer, Remembered[Replied]]]:
    """The stored mistakes, with their replies, that reply alike where the answer fails first.

    Of a function that is the first question to which its reply is wrong; of an object, all that it
    was asked until then. Most mistakes fall out here, and are asked nothing else.
    """
    mistakes = mistakes_of(item, seed)
    place = next((n for n, (_, got, right) in enumerate(pairs) if not got.agrees(right)), None)
    if place is not None:
        known = of_answers_at(mistakes, item, seed, care, place)
        given = [pairs[n][1] for n in leading_to(place, [question for question, _, _ in pairs])]
        mistakes = tuple(one for one, replies in known if agree(replies, given))
    return [of_answer(one, item, seed, care) for one in mistakes]


def _but_for_refusals(
    item: registry.Check,
    pairs: list[tuple[Question, Replied, Replied]],
    seed: int,
    care: bool,
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
    stored = _alike(item, list(zip(questions, given, wanted, strict=True)), seed, care)

    def freed(replies: Iterable[Replied]) -> Iterable[Replied]:
        for reply, right, is_free in zip(replies, wanted, free, strict=False):
            yield right if is_free and reply.refuses() else reply

    return [(one, replies) for one, replies in stored if agree(freed(replies), given)]


def _in_another_form(
    item: registry.Check,
    pairs: list[tuple[Question, Replied, Replied]],
    seed: int,
    care: bool,
    chance: set[int],
) -> list[tuple[registry.Answer, Remembered[Replied]]]:
    """Those whose wrong numbers are the answer's, as a float for a tensor or in another precision.

    There are none for an answer whose results are right, but for their form, their gradients or
    their device: a mistake with another form may share that fault, and be known for its form.
    """
    places = range(len(pairs))
    free = chance | _shaped_by_the_form(pairs)
    results = (n for n in places if pairs[n][0].request == "call" and pairs[n][0].probe != "device")
    wrong = (n for n in results if not other_forms.replied(*pairs[n][1:], pairs[n][2]))
    place = next((n for n in wrong if n not in free), None)
    if place is None:
        return []

    leading = leading_to(place, [question for question, _, _ in pairs])
    near = [
        one
        for one, replies in of_answers_at(mistakes_of(item, seed), item, seed, care, place)
        if _fit_loosely(replies, pairs, leading, free)
    ]
    stored = [of_answer(one, item, seed, care) for one in near]
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
        if place not in free and not other_forms.replied(reply, *pairs[place][1:]):
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
    """Without what is a matter of care, where an answer is wrong besides.

    A tensor on the wrong device is a fault of its own: with it or without, a mistake is the same.
    """
    core = [pair for pair in pairs if not pair[0].is_care]
    return pairs if all(got.agrees(expected) for _, got, expected in core) else core


def _slip(
    item: registry.Check, pairs: list[tuple[Question, Replied, Replied]], seed: int, care: bool
) -> str:
    """A right answer with one slip that gives the same replies throughout."""
    if all(isinstance(right.value, bool) for _, _, right in pairs if right.kind == "value"):
        return ""  # yes and no say too little to tell one slip from another fault
    if all(other_forms.replied(got, right, right) for _, got, right in pairs):
        return ""  # its form alone is at fault, and slips that change no number have it, too
    end = time.process_time() + SECONDS
    for slip, replies in of_slips(item, seed, care):
        if time.process_time() > end:
            return ""
        if _fit_loosely(replies, pairs, range(len(pairs))):
            return f"Your results are those of a right answer {slip.words}."
    return ""
