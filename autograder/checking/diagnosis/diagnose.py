"""Why an answer fails: what is true of all its replies, and said only then.

A stored mistake is named if the answer replies as the mistake does, to every question, and no
mistake with another hint does. What no stored mistake explains gets sentences that are true by
construction: how the replies relate to the right ones, and where they differ. ``place`` says where
in the code.
"""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from autograder.checking.asking.questions import SEEDED, Exchange, Question, Replied, agree
from autograder.checking.asking.right_answer import asked
from autograder.checking.diagnosis.common_cause import relation, where
from autograder.checking.diagnosis.error_meanings import meaning
from autograder.checking.diagnosis.forms import UNSAID, mended, same_numbers
from autograder.checking.diagnosis.stored_replies import Comparison, mistakes_of, of_answer
from autograder.checking.toolbox import registry

Alike = Callable[[Replied, Replied, Replied], bool]  # of a mistake's reply, the answer's, the right


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
    telling = _telling(everything)
    comparison = Comparison(item, seed, care=len(telling) == len(questions))
    hints = _hints(comparison, telling)
    if hints:
        return hints.pop() if len(hints) == 1 else ""
    behind = _behind_the_form(comparison, everything)
    if behind:
        return behind
    calls = _but_for_care(
        [one for one in everything if comparison.care or one[0].probe != "device"], lost
    )
    changed = _changed(calls)
    calls = [(one, replace(got, modified=right.modified), right) for one, got, right in calls]
    # With other parameters than those that were to be loaded, it computes with other numbers.
    loaded = all(got.agrees(right) for one, got, right in calls if one.request == "load")
    likely = relation(calls) if loaded else ""
    likely = likely or _of_the_first(calls)
    wrong = any(not got.agrees(right) for _, got, right in calls)
    parts = likely, where(calls) if loaded else "", changed if wrong else ""
    return " ".join(filter(None, parts))


def _changed(calls: Sequence[Exchange]) -> str:
    """That the caller finds an argument changed."""
    found = {name for one, got, due in calls for name in {*got.modified} - {*due.modified}}
    names = " and ".join(sorted(name for name in found if name.startswith("argument")))
    return names and f"The call changes {names}, for its caller as well: work on a copy."


def _behind_the_form(comparison: Comparison, everything: Sequence[Exchange]) -> str:
    """What is wrong with the numbers of an answer whose results have another form besides."""
    filled, open_ = list(mended(everything)), list(mended(everything, lambda _: UNSAID))
    calls = [one for one in filled if one[0].request == "call" and not one[0].probe]
    same_form = all(one[1] is other[1] for one, other in zip(filled, everything, strict=True))
    if same_form or all(same_numbers(got, right, right) for _, got, right in calls):
        return ""
    telling = _telling(open_)
    chance = _by_chance(telling)
    if comparison.care != (len(telling) == len(everything)):
        return ""
    free = chance | {n for n, (one, *_) in enumerate(telling) if _of_another_form(one)}
    results = [n for n, (one, *_) in enumerate(telling) if one.request == "call"]
    found = _mistakes(comparison, telling, same_numbers, results, free)
    hints = {known.hint or "" for known in found}
    if hints:
        return hints.pop() if len(hints) == 1 else ""
    if not all(got.agrees(right) for one, got, right in everything if one.request == "load"):
        return ""
    return " ".join(part for part in (relation(calls), where(calls)) if part)


def _of_another_form(question: Question) -> bool:
    """Whether the reply to a question depends on the form of results: a list has no gradient."""
    return question.request == "gradients" or question.probe == "device"


def _hints(comparison: Comparison, telling: Sequence[Exchange]) -> set[str]:
    """The hints of the stored mistakes that reply as the answer does: one, if it is clear which."""
    chance, everywhere = _by_chance(telling), range(len(telling))
    results = [
        n for n, (one, *_) in enumerate(telling) if one.request == "call" and one.probe != "device"
    ]
    shaped = chance | _shaped_by_the_form(telling)
    found = (
        _mistakes(comparison, telling, agrees, everywhere, chance)
        or _mistakes(comparison, telling, _agrees_or_refuses, everywhere, chance)
        # None for an answer whose results are right, but for their form, their gradients or their
        # device: a mistake with another form may share that fault, and be known for its form.
        or _mistakes(comparison, telling, same_numbers, results, shaped)
    )
    hints = {known.hint or "" for known in found}
    if len(hints) < 2:
        return hints
    return {
        known.hint or ""
        for known in found
        if fits(of_answer(known, comparison), telling, _agrees_exactly, chance)
    }


def agrees(reply: Replied, got: Replied, right: Replied) -> bool:
    """Whether a reply is the one that came, whatever is right: what ``fits`` asks of all."""
    return reply.agrees(got)


def _agrees_exactly(reply: Replied, got: Replied, right: Replied) -> bool:
    return reply.agrees(got, exactly=True)


def _agrees_or_refuses(reply: Replied, got: Replied, right: Replied) -> bool:
    """The words of a refusal are free: "too long" and "sentence 3 has 61 tokens" say the same."""
    return reply.refuses() if got.refuses() and right.refuses() else reply.agrees(got)


def _mistakes(
    comparison: Comparison,
    exchanges: Sequence[Exchange],
    alike: Alike,
    places: Iterable[int],
    free: Collection[int],
) -> list[registry.Answer]:
    """The stored mistakes whose replies are all ``alike`` those of the answer, but at ``free``.

    There are none where nothing is wrong at ``places``.
    """

    def is_right(place: int) -> bool:
        _, got, right = exchanges[place]
        return alike(got, right, right)

    if all(place in free or is_right(place) for place in places):
        return []
    known = mistakes_of(comparison)
    return [one for one in known if fits(of_answer(one, comparison), exchanges, alike, free)]


def fits(
    replies: Iterable[Replied],
    exchanges: Sequence[Exchange],
    alike: Alike,
    free: Collection[int] = (),
) -> bool:
    """Whether these are ``alike`` the answer's replies, at all places that are not ``free``."""
    for place, (exchange, reply) in enumerate(itertools.zip_longest(exchanges, replies)):
        if exchange is None or reply is None:  # one of the two was interrupted
            return False
        if place not in free and not alike(reply, *exchange[1:]):
            return False
    return True


def _of_the_first(exchanges: list[Exchange]) -> str:
    """What the error means, if one is what fails first."""
    first = next((got for _, got, right in exchanges if not got.agrees(right)), None)
    return meaning(*first.value) if first is not None and first.kind == "raised" else ""


def _but_for_care(exchanges: list[Exchange], lost: Collection[str]) -> list[Exchange]:
    """With the right replies in the stages that stand: what differs there is a matter of care."""
    stand = {one.stage for one, *_ in exchanges} - {"", *lost} if lost else set()
    return [(one, right if one.stage in stand else got, right) for one, got, right in exchanges]


def _by_chance(exchanges: Sequence[Exchange]) -> set[int]:
    """The numbers of the replies of objects that could not load the weights they were given.

    They compute with weights drawn at random, in the order in which their layers are made.
    """
    failed: set[int] = set()
    found = set()
    for number, (question, got, _) in enumerate(exchanges):
        if question.request == "load" and got.kind == "raised":
            failed.add(question.handle)
        elif question.handle in failed and question.request in SEEDED:
            found.add(number)
    return found


def _shaped_by_the_form(exchanges: Sequence[Exchange]) -> set[int]:
    """The numbers of the gradients, if results are no tensors where they should be: of a list none
    arrive, or those of its first item."""
    forms = [
        (type(got.value), type(right.value))
        for one, got, right in exchanges
        if one.request == "call" and got.kind == right.kind == "value"
    ]
    if all(got is right for got, right in forms):
        return set()
    return {number for number, (one, _, _) in enumerate(exchanges) if one.request == "gradients"}


def _telling(exchanges: list[Exchange]) -> list[Exchange]:
    """Without what is a matter of care, where an answer is wrong besides.

    A tensor on the wrong device is a fault of its own: with it or without, a mistake is the same.
    """
    core = [one for one in exchanges if not one[0].is_care]
    return exchanges if all(got.agrees(right) for _, got, right in core) else core
