"""Gates for a check: enough stored answers, careless ones too, stages, a text to rest it all on."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from nbformat import NotebookNode

from autograder.building.gates.text import normal, solutions, words
from autograder.building.lesson import Lesson
from autograder.checking.diagnosis.stored_replies import Comparison, of_answer
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.inside.answer import LocalAnswer
from autograder.lessons import name_of
from autograder.settings import COURSE

LEAST_MISTAKES, LEAST_ALTERNATIVES = 3, 2
LEAST_CARELESS = 2  # where anything can be forgotten
STAGED = 3  # points from which on an exercise is earned in stages


def gate(
    item: registry.Check, points: int, released: NotebookNode, seeds: Sequence[int]
) -> Iterator[str]:
    """What is wrong with an exercise's stored answers, and with what its check rests on.

    points  what the exercise is worth
    """
    text = words("\n".join(cell.source for cell in released.cells))
    yield from too_few(item)
    yield from careless_answers(item, seeds)
    yield from unsupported(item, text)
    if item.stages:
        yield from stages(item, points, text)
        yield from stage_by_stage(item, seeds)
    elif points >= STAGED and "stages" not in dict(item.without):
        yield f"{item.name} is worth {points} points and has no stages"


def too_few(item: registry.Check) -> Iterator[str]:
    """Whether there are fewer stored answers than a check needs to be trusted."""
    wrong, right = len(registry.mistakes(item)), len(registry.alternatives(item))
    if wrong < LEAST_MISTAKES or right < LEAST_ALTERNATIVES:
        needs = f"it needs at least {LEAST_MISTAKES} and {LEAST_ALTERNATIVES}"
        yield f"{item.name} has {wrong} named mistakes and {right} alternatives; {needs}"


def careless_answers(item: registry.Check, seeds: Sequence[int]) -> Iterator[str]:
    """What is wrong with the stored careless answers: each is right, and told what it lacks."""
    kept = registry.careless_answers(item)
    if len(kept) < LEAST_CARELESS and "care" not in dict(item.without):
        yield f"{item.name} has {len(kept)} careless answers; it needs at least {LEAST_CARELESS}"
    for known in kept:
        for seed in seeds:
            failure = run_check(item, LocalAnswer(known.target), seed, told={})
            if failure is None or not failure.is_careless:
                yield (
                    f"{item.name}: the careless answer {known.name} is not told of its care alone "
                    f"(seed {seed}): {failure or 'nothing is said'}"
                )
                break


def stages(item: registry.Check, points: int, text: str) -> Iterator[str]:
    """What is wrong with the names and points of an exercise's stages."""
    worth = sum(part for _, part in item.stages)
    if worth != points:
        yield f"{item.name} is worth {points} points, its stages {worth:g}"
    for name, part in item.stages:
        if (named := f"{words(name)} ({part:g})") not in text:
            yield f"{item.name} has a stage that the lesson does not name: {named}"


def stage_by_stage(item: registry.Check, seeds: Sequence[int]) -> Iterator[str]:
    """Whether stored mistakes earn the stages that they say, and hollow answers none."""
    told = [(one, set(one.earns)) for one in registry.mistakes(item) if one.earns]
    for name, _ in item.stages:
        if not any(name in earns for _, earns in told):
            yield f"{item.name}: no stored mistake says that it earns the stage {name!r}"
        if all(name in earns for _, earns in told):
            yield f"{item.name}: no stored mistake fails the stage {name!r} and earns more"
    for seed in seeds:
        for known, earns in told:
            if (earned := _earned(item, known.target, seed)) != earns:
                said = f"earns {', '.join(sorted(earned))} (seed {seed}), not what it says"
                yield f"{item.name}: the mistake {known.name} {said}"
        for hollow in HOLLOW:
            if earned := _earned(item, hollow, seed):
                yield f"{item.name}: {hollow.__name__} earns {', '.join(sorted(earned))}"


def _earned(item: registry.Check, answer: Callable[..., Any], seed: int) -> set[str]:
    failure, names = run_check(item, LocalAnswer(answer), seed, explain=False), dict(item.stages)
    if failure is None or failure.is_careless:
        return set(names)
    return names.keys() - set(failure.lost) if failure.lost else set()


def nothing(*args: Any, **kwargs: Any) -> None:
    """Return None, whatever comes."""


def its_first_argument(*args: Any, **kwargs: Any) -> Any:
    """Return what comes first."""
    return args[0] if args else None


def zero(*args: Any, **kwargs: Any) -> Any:
    """Return zeros in the form of the first argument, or 0."""
    given = args[0] if args else 0
    return torch.zeros_like(given) if isinstance(given, torch.Tensor) else 0


def an_error(*args: Any, **kwargs: Any) -> Any:
    """Raise ValueError, whatever comes."""
    raise ValueError("this cannot be")


HOLLOW = (nothing, its_first_argument, zero, an_error)  # answers that nobody has worked for


def unsupported(item: registry.Check, text: str) -> Iterator[str]:
    """The phrases that a check's core rests on and its lesson does not say, a line each."""
    if not item.rests_on:
        yield f"{item.name}: its check does not say on which phrases of the text its core rests"
    taught = [said for lesson, said in COURSE.care.values() if name_of(lesson) == item.lesson]
    for phrase in (*item.rests_on, *dict(item.asks).values(), *taught):
        if words(phrase) not in text:
            yield f"{item.name}: its check rests on {phrase!r}, which the lesson does not say"


def cards(lesson: Lesson, item: registry.Check, seed: int) -> Iterator[str]:
    """Hints of cards that show a line of the solution, and cards that reply alike.

    One hint may stand on several cards, but each of them replies in its own way: one that replies
    as another does recognises nothing that the other does not.
    """
    known = [one for one in registry.mistakes(item) if one.text and not one.name.endswith(")")]
    lines = [line for name, line in solutions(lesson) if name == item.name]
    for one in known:
        shown = [line for line in lines if line in normal(one.hint or "")]
        for line in shown[:1]:
            yield f"{item.name}: the hint of {one.name} shows a line of the solution: {line}"
    asked = Comparison(item, seed, care=True)
    for one, other in itertools.combinations(known, 2):
        pairs = zip(of_answer(one, asked), of_answer(other, asked), strict=False)
        if all(first.agrees(second, exactly=True) for first, second in pairs):
            yield f"{item.name}: {one.name} and {other.name} reply alike; one of them is enough"
