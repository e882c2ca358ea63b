"""Where an answer fails: the first expression in which a right value makes every reply right.

Right answers are run with all their expressions noted. Beside the student's code it is tried which
of these values, put in the place of one of theirs, makes the calls right that fail; what is found
there is asked again from here, all that the check asks. What comes back is true by construction.
"""

import contextlib
import functools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from autograder.checking.asking import recordings
from autograder.checking.asking.questions import (
    KEPT,
    Question,
    Replied,
    how_asked,
    replies_of,
    until_lost,
)
from autograder.checking.asking.right_answer import asked
from autograder.checking.diagnosis.stored_replies import little_memory
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.describe_values import number, two_numbers
from autograder.checking.toolbox.registry import Check, reference
from autograder.checking.toolbox.student_answer import brief, called_with
from autograder.inside.answer import AnyAnswer, LocalAnswer
from autograder.inside.expressions import Program, Watch
from autograder.inside.messages.codec import pack
from autograder.inside.messages.values import leaves, same
from autograder.inside.server import Limited

RUNS = ("build", "call")  # requests in which an answer's code runs
ASKED = (*RUNS, "load", "train")
LINES, MOST_LETTERS = range(10**6), 80  # of a cell; of an expression's text
WRITTEN = 8  # numbers of a value that are written out
ROOM = 2**28  # bytes
MOST_FOUND = 6  # places of which one is told
WRONG, RIGHT = 4, 3  # calls of each kind that are tried before all are asked

Values = list[list[Any] | None]  # of one expression: its passes in each request that runs


def where_it_fails(
    item: Check, answer: AnyAnswer, given: Sequence[Replied], seed: int, short: bool
) -> str:
    """Where ``answer``, which gave these replies, fails, in a few words or in full; or ''.

    What the answer prints meanwhile goes nowhere.
    """
    try:
        silent = contextlib.redirect_stdout(Limited(0)), contextlib.redirect_stderr(Limited(0))
        with silent[0], silent[1], little_memory(ROOM):  # what is put may be taken for a size
            found = _place(item, answer, given, seed)
    except Exception:  # its text is not there, or it gives what it may not: nothing is known then
        return ""
    return "" if found is None else found[not short]


def _place(
    item: Check, answer: AnyAnswer, given: Sequence[Replied], seed: int
) -> tuple[str, str] | None:
    questions, wanted = asked(item, seed)
    three = [one for one in zip(questions, given, wanted, strict=False) if _is_core(one[0])]
    wrong = [n for n, one in enumerate(three) if one[0].request == "call" and not _agree(*one[1:])]
    values = right_values(item, seed) if wrong and len(given) == len(wanted) else ()
    if not values:
        return None
    core, right = [one for one, _, _ in three], [want for _, _, want in three]
    stage = core[wrong[0]].stage
    others = {n for n in wrong if core[n].stage != stage} if stage else set[int]()
    for left in (set[int](), others) if others else (set[int](),):
        calls = [n for n, one in enumerate(core) if one.request == "call" and n not in left]
        calls.sort(key=lambda n: _size(_life(core, n)))
        tried = [n for n in calls if n in wrong][:WRONG]
        tried += [n for n in calls if n not in wrong][:RIGHT]
        trials = [_trial(core, n, right[n], values) for n in tried]
        for found in answer.places(trials)[:MOST_FOUND]:
            other = answer.exchanged(found["place"], values[found["right"]])
            replies = until_lost(replies_of({0: other}, core))
            agree = all(n in left or _agree(got, right[n]) for n, got in enumerate(replies))
            if agree and len(replies) == len(core):
                return _told(found, core[tried[0]], trials[0], stage if left else "")
    return None


def _is_core(question: Question) -> bool:
    """Whether the check itself asks for a result, not for care; of gradients a number has none."""
    return not question.probe and not question.is_care and question.request in ASKED


def _agree(got: Replied, right: Replied) -> bool:
    return Replied(got.kind, got.value).agrees(Replied(right.kind, right.value))


def _life(core: Sequence[Question], number: int) -> list[Question]:
    """A call with all that was asked of its object before."""
    call = core[number]
    before = [one for one in core[:number] if call.handle in (one.handle, one.built)]
    return [*before, call] if call.handle else [call]


def _size(life: Sequence[Question]) -> int:
    held = leaves([list(one.details) for one in life])
    return sum(one.numel() if isinstance(one, torch.Tensor) else 1 for one in held)


def _trial(
    core: Sequence[Question], number: int, right: Replied, values: Sequence[Values]
) -> list[Any]:
    """A call as ``inside.places`` tries it."""
    life = _life(core, number)
    kept = {id(one) for one in life}
    ran = [n for n, one in enumerate(one for one in core if one.request in RUNS) if id(one) in kept]
    requests = [
        [one.handle, one.request, list(one.details), one.built, how_asked(one)] for one in life
    ]
    return [requests, (right.kind, right.value), [[passes[n] for n in ran] for passes in values]]


@functools.lru_cache(maxsize=KEPT)
def right_values(item: Check, seed: int) -> Sequence[Values]:
    """The values that right answers have in the questions of the check, each once.

    Those of the whole result are left out: where only these help, nothing is known.
    """
    questions, wanted = asked(item, seed)
    core = [one for one in questions if _is_core(one)]
    right = [reply for one, reply in zip(questions, wanted, strict=True) if _is_core(one)]
    first = reference(item)
    if first is None:
        return recordings.values(item, seed)
    targets = [first, *(one.target for one in registry.alternatives(item))]
    found = (values for target in targets for values in _noted(target, core, right))
    return list({pack({"": values}): values for values in found}.values())


def _noted(target: Any, core: Sequence[Question], right: Sequence[Replied]) -> Iterator[Values]:
    """The values of each expression of a right answer."""
    watch = Watch(notes=True)
    try:
        program = Program(target)
        answer = LocalAnswer(program.made(watch), watch)
    except ValueError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        replies = list(replies_of({0: answer}, core))
    if not all(map(_agree, replies, right)):
        return
    noted, ran = watch.values(), [n for n, one in enumerate(core) if one.request in RUNS]
    whole = [right[n].value if core[n].request == "call" else None for n in ran]
    objects = [core[n].built or core[n].handle for n in ran]
    is_name = [one.text.isidentifier() for one in program.expressions]
    found = {place for one in noted for place in one}
    for place in sorted(found, key=lambda one: (not is_name[one], one)):  # names are tried first
        passes = [one.get(place) for one in noted]
        pairs = [pair for pair in zip(passes, whole, strict=True) if pair[0] is not None]
        if all(same(*map(_numbers, pair)) for pair in pairs):
            continue  # these are all the numbers of the results, be it in pieces or reshaped
        # What a call does not compute was computed as its object was built, or the other way round.
        both = list(zip(objects, passes, strict=True))
        first = dict(reversed([one for one in both if all(one)]))
        yield [own or first.get(name) for name, own in both]


def _numbers(value: Any) -> Any:
    """All numbers of a value in a row; its items where a text is among them."""
    found = [one for one in leaves(value) if one is not None]
    if not found or any(isinstance(one, str) for one in found):
        return found
    return torch.cat([torch.as_tensor(one).double().flatten() for one in found])


def _told(found: dict[str, Any], call: Question, trial: Any, stage: str) -> tuple[str, str]:
    """A place in a few words, and in full."""
    lines, texts, around = zip(*found["expressions"][:4], strict=True)
    numbers = [str(LINES[line]) for line in sorted(set(lines))]
    short = f"line{'s' * (len(numbers) > 1)} {' and '.join(numbers)}, `{_printable(texts[0])}`"
    if len(lines) == 1 and around[0]:
        short += f" in `{_printable(around[0])}`"
    values = _both(found["passes"], trial[2][found["right"]][found["at"]])
    right_then = f"all results of “{stage}”" if stage else "all your results"
    said = f"In {short}: with the value of a right answer there, {right_then} are right."
    return short, f"{said} For {_called(call)} {values}."


def _both(mine: Any, right: list[Any]) -> str:
    """The learner's value and the right one, in the first pass in which they differ."""
    if mine is None:
        return f"a right answer has {_written(right[0])}"
    turn, pair = next(one for one in enumerate(zip(mine, right, strict=False)) if not same(*one[1]))
    while all(isinstance(one, list | tuple) for one in pair) and len({*map(len, pair)}) == 1:
        pair = next(items for items in zip(*pair, strict=True) if not same(*items))
    one, other = _written(pair[0]), _written(pair[1])
    if one == other and isinstance(pair[0], torch.Tensor) and pair[0].shape == pair[1].shape:
        furthest = (pair[0].double() - pair[1].double()).abs().argmax()
        one, other = two_numbers(*(value.flatten()[furthest] for value in pair))
        one += f" at {[int(n) for n in torch.unravel_index(furthest, pair[0].shape)]}"
    where = f" in pass {turn + 1}" if len(mine) > 1 else ""
    return f"yours is {one}{where}, a right answer has {other}"


def _called(call: Question) -> str:
    args, kwargs = call.details[:2]
    if _size([call]) > WRITTEN:
        return called_with(args, kwargs)
    words = [*map(_written, args), *(f"{name}={_written(one)}" for name, one in kwargs.items())]
    return words[0] if len(words) == 1 else f"({', '.join(words)})"


def _written(value: Any) -> str:
    """A value as it is where it is short, else in a few words."""
    if isinstance(value, torch.Tensor) and value.numel() <= WRITTEN:
        value = value.tolist()
    if isinstance(value, list) and sum(1 for _ in leaves(value)) <= WRITTEN**2:
        items = [_written(one) for one in value[:WRITTEN]]
        return f"[{', '.join(items + ['…'] * (len(value) > WRITTEN))}]"
    return number(value, 4) if isinstance(value, float) else brief(value)


def _printable(text: str) -> str:
    text = "".join(one if one.isprintable() else " " for one in text[: MOST_LETTERS + 1])
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
