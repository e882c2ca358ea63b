"""The registry of checks, named mistakes and alternative answers.

A lesson's checks live in ``autograder/checks/<lesson>.py`` and register themselves with ``@check``;
its mistakes live in ``autograder/mistakes/<lesson>.md`` as cards, and what is no edit of the right
answer, and all right answers written otherwise, in ``<lesson>.py`` beside it, where they register
with ``@mistake``, ``@alternative`` and ``@careless``. An instructor's own ones lie in
``own_for_<lesson>``. The function's name is the name of the exercise, or of the mistake.
"""

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from autograder import CourseError
from autograder.checking.toolbox import cards
from autograder.settings import COURSE

Run = Callable[..., None]  # a check: run(student, draw)
ONE_RIGHT_ANSWER = "one right answer"  # what an exercise is ``without`` where many are right
T = TypeVar("T", bound=Callable[..., Any])


@dataclass(frozen=True)
class Check:
    """One exercise's check: ``run(student, draw)`` raises CheckFailed when the answer is wrong.

    ``@check`` says what the others are. ``reference`` is the right answer where it is not the
    library's.
    """

    name: str
    lesson: str
    run: Run
    without: tuple[tuple[str, str], ...] = ()
    reference: Callable[..., Any] | None = None
    core: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()
    asks: tuple[tuple[str, str], ...] = ()
    stages: tuple[tuple[str, float], ...] = ()

    @property
    def has_one_right_answer(self) -> bool:
        """Whether right answers agree in what they return, so that others can be compared."""
        return ONE_RIGHT_ANSWER not in dict(self.without)


@dataclass(frozen=True)
class Answer:
    """A stored answer to an exercise. ``hint`` is None for a right answer written differently.

    ``is_careless`` is whether a right one lacks the care that costs the care share. ``mistake``
    says what ``where`` and ``earns`` are.
    """

    name: str
    exercise: str
    target: Callable[..., Any]
    hint: str | None = None
    where: Callable[..., Any] | None = None
    is_careless: bool = False
    earns: tuple[str, ...] | None = None
    text: str = ""  # of a card: what a student would have written


_checks: dict[str, Check] = {}
_answers: dict[str, list[Answer]] = {}


class RegistryError(CourseError):
    """Two checks or two mistakes share a name, or an exercise has no check."""


def check(
    *,
    without: dict[str, str] | None = None,
    core: tuple[str, ...] = (),
    rests_on: tuple[str, ...] = (),
    asks: dict[str, str] | None = None,
    stages: dict[str, float] | None = None,
) -> Callable[[Run], Run]:
    """Register a function of (student, draw) as the check of the exercise of the same name.

    ``without`` says which of the probes that every answer goes through are not for this exercise,
    and why: {"gradients": "the text asks for plain numbers"}. ``core`` names those that ask for
    what the exercise's text is about: an answer that fails one of them is wrong, and not careless.
    It may also name the "inputs", which are to stay as they are.
    ``rests_on`` quotes, from what a learner reads before writing, the phrases on which the other
    core assertions rest: what none of them says stands under ``expect.care()``. ``asks`` quotes for
    kinds of care the phrase that asks for them: {"dtype": "of the same dtype"}. They cost the care
    share; what neither this text nor, by ``autograder.toml``, an earlier lesson has asked for is a
    note. Where "learning" is asked for, a weight that no gradient reaches is a wrong answer.
    ``stages`` are the names of the parts that are earned one by one, each under
    ``expect.stage(name)``, with their points.
    """

    def keep(function: Run) -> Run:
        name, lesson = function.__name__, function.__module__.rpartition(".")[2]
        earlier = _checks.get(name)
        if earlier is not None and earlier.lesson != lesson:
            raise RegistryError(
                f"two checks are called {name!r}: one in autograder/checks/{earlier.lesson}.py, "
                f"one in autograder/checks/{lesson}.py; rename one exercise"
            )
        _checks[name] = Check(
            name,
            lesson,
            function,
            without=tuple((without or {}).items()),
            core=core,
            rests_on=rests_on,
            asks=tuple((asks or {}).items()),
            stages=tuple((stages or {}).items()),
        )
        return function

    return keep


def _register(exercise: str, **about: Any) -> Callable[[T], T]:
    def keep(target: T) -> T:
        kept = _answers.setdefault(exercise, [])
        if any(answer.name == target.__name__ for answer in kept):
            raise RegistryError(
                f"two stored answers to {exercise!r} are called {target.__name__!r}; rename one"
            )
        kept.append(Answer(target.__name__, exercise, target, **about))
        return target

    return keep


def mistake(
    exercise: str,
    *,
    hint: str,
    where: Callable[..., Any] | None = None,
    earns: tuple[str, ...] | None = None,
) -> Callable[[T], T]:
    """Register a wrong answer to ``exercise`` with the hint that a learner who gives it reads.

    Where an exercise asks for an input, ``where(*arguments)`` says of which the hint is true. Where
    it has stages, ``earns`` may name those that the answer earns in spite of it.
    """
    return _register(exercise, hint=hint, where=where, earns=earns)


def alternative(exercise: str) -> Callable[[T], T]:
    """Register a right answer to ``exercise`` that is written differently from the library's."""
    return _register(exercise)


def careless(exercise: str) -> Callable[[T], T]:
    """Register a right answer to ``exercise`` that is to lose the care share, and no more."""
    return _register(exercise, is_careless=True)


def find(name: str) -> Check:
    """Return the Check called ``name``, importing the check modules as needed.

    Raises RegistryError, with the names there are, when no lesson has such an exercise.
    """
    for holding in (f"\ndef {name}(student", ""):  # to import all of them takes a while
        if name not in _checks:
            import_all(holding)
    if name not in _checks:
        raise RegistryError(f"no exercise is called {name!r}; there are: {', '.join(_checks)}")
    return _checks[name]


def is_exercise(name: str) -> bool:
    """Whether a lesson has an exercise of this name; imports nothing."""
    return name in _checks or bool(_texts(f"\ndef {name}(student"))


def import_all(holding: str = "") -> None:
    """Import every module of autograder.checks whose text holds this: its checks are registered."""
    for file in _texts(holding):
        importlib.import_module(f"autograder.checks.{file.stem}")


def _texts(holding: str) -> list[Path]:
    """The files of autograder.checks whose text holds this."""
    package = importlib.import_module("autograder.checks")
    files = sorted(file for folder in package.__path__ for file in Path(folder).glob("*.py"))
    return [
        file
        for file in files
        if file.stem != "__init__" and holding in file.read_text(encoding="utf-8")
    ]


def of_lesson(lesson: str) -> dict[str, Check]:
    """Return the checks of one lesson, by exercise name, in the order they are written."""
    importlib.import_module(f"autograder.checks.{lesson}")
    return {name: item for name, item in _checks.items() if item.lesson == lesson}


def reference(item: Check) -> Callable[..., Any] | None:
    """The library's own answer to an exercise, or None where there is none."""
    if item.reference is not None:
        return item.reference
    try:
        return getattr(importlib.import_module(f"{COURSE.library}.{item.lesson}"), item.name, None)
    except ImportError:
        return None


def stored_answers(item: Check) -> list[Answer]:
    """Return the stored answers to a Check's exercise: mistakes and alternatives together."""
    _import_answers(item.lesson)
    known = _answers.setdefault(item.name, [])
    for path in card_files(item.lesson):
        if not any(one.name.startswith(f"{path.name}:") for one in known):
            known += _from_cards(item, path)
    return list(known)


def card_files(lesson: str) -> list[Path]:
    """Where the cards of a lesson are; not all need be there."""
    folders = importlib.import_module("autograder.mistakes").__path__
    return [Path(folder) / f"{lesson}.md" for folder in folders]


def _from_cards(item: Check, path: Path) -> Iterator[Answer]:
    """The mistakes of an exercise that a file of cards holds."""
    wanted = [card for card in cards.read(path) if card.exercise == item.name]
    right = reference(item) if wanted else None
    if right is None:
        return
    source, module = inspect.getsource(right), f"autograder.mistakes.{path.stem}"
    for card in wanted:
        for name, text in cards.ways(card, source):
            target = cards.made(card, text, right, module)
            earns = card.earns or None if name == card.name else None
            yield Answer(name, item.name, target, card.hint, earns=earns, text=text)


def _import_answers(lesson: str) -> None:
    module = f"autograder.mistakes.{lesson}"
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise


def strays(lesson: str) -> list[Answer]:
    """Return the stored answers of a lesson whose exercise is not one of the lesson's."""
    _import_answers(lesson)
    known, module = of_lesson(lesson), f"autograder.mistakes.{lesson}"
    stored = [
        answer
        for answers in _answers.values()
        for answer in answers
        if answer.target.__module__ == module and answer.exercise not in known
    ]
    found = [card for path in card_files(lesson) for card in cards.read(path)]
    lost = [card for card in found if card.exercise not in known]
    return [*stored, *(Answer(card.name, card.exercise, cards.read, card.hint) for card in lost)]


def mistakes(item: Check) -> list[Answer]:
    """Return the named mistakes of a Check's exercise."""
    return [answer for answer in stored_answers(item) if answer.hint is not None]


def alternatives(item: Check) -> list[Answer]:
    """Return the right answers written differently of a Check's exercise."""
    return [one for one in stored_answers(item) if one.hint is None and not one.is_careless]


def careless_answers(item: Check) -> list[Answer]:
    """Return the right answers of a Check's exercise that lack some care."""
    return [answer for answer in stored_answers(item) if answer.is_careless]
