"""Gate 7: the reference, broken in one place in any way, is rejected, or excused with a reason."""

import contextlib
import importlib
import signal
from collections.abc import Collection, Iterable, Iterator

from autograder.building.gates.mutations import Mutant, mutants
from autograder.checking.asking.right_answer import asked
from autograder.checking.input_coverage import CLASSES, coverage, unknown
from autograder.checking.run_check import accepts
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import reference
from autograder.inside.answer import LocalAnswer

# Of CPU: a mutant that takes longer does not end, or might as well not: it is rejected. Those that
# end take a third of it at most, and those that do not are half of a verification of lesson 08.
SECONDS = 2
PATIENCE = 60  # for one that EQUIVALENT names: it ends, and must be heard on the busiest machine


class Endless(KeyboardInterrupt):
    """An answer that does not end: like Ctrl-C, nothing on the way catches it."""


def survivors(
    item: registry.Check, seed: int, excused: Collection[str] = ()
) -> tuple[int, list[Mutant]]:
    """Pair (number of mutants, those that the check accepts); none where many answers are right.

    Those whose key is ``excused`` have PATIENCE, all others SECONDS.
    """
    if not item.has_one_right_answer:
        return 0, []
    asked(item, seed)  # kept for all mutants: made while a mutant runs, it might be cut short
    made = list(mutants(reference(item)))
    return len(made), [mutant for mutant in made if not _rejected(item, mutant, seed, excused)]


def _rejected(item: registry.Check, mutant: Mutant, seed: int, excused: Collection[str]) -> bool:
    try:
        with bounded(PATIENCE if mutant.key in excused else SECONDS):
            return not accepts(item, LocalAnswer(mutant.target), seed)
    except Endless:
        return True


@contextlib.contextmanager
def bounded(seconds: float | None = None) -> Iterator[None]:
    """Raise Endless after so many ``seconds`` of CPU, where the system has such an alarm."""

    def ring(*_: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds or SECONDS, 1)  # again, should it be swallowed
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def equivalents(lesson: str) -> dict[str, str]:
    """{key of a mutant: why it is no mistake}, from EQUIVALENT in the lesson's mistakes."""
    module = importlib.import_module(f"autograder.mistakes.{lesson}")
    return getattr(module, "EQUIVALENT", {})


def gate(
    items: Iterable[registry.Check], lesson: str, seed: int, broken: bool = True
) -> tuple[int, list[str]]:
    """Pair (number of mutants, failures): survivors without a reason, and reasons gone stale.

    Unless the reference is ``broken``, only what the checks ask for is looked at.
    """
    items, excused = list(items), equivalents(lesson)
    # Those that refuse the library are told of by gate 1.
    good = [item for item in items if accepts(item, LocalAnswer(reference(item)), seed)]
    failures = [sentence for item in good for sentence in _uncovered(item, seed)]
    if not broken:
        return 0, failures
    refused = {item.name for item in items} - {item.name for item in good}
    found = [survivors(item, seed, excused) for item in good]
    alive = [mutant for _, survived in found for mutant in survived]
    failures += [
        f"the check accepts a mutant of line {mutant.line}, or a reason is missing in EQUIVALENT: "
        f"{mutant.key!r}"
        for mutant in alive
        if mutant.key not in excused
    ]
    stale = {key for key in excused if key.partition(":")[0] not in refused}
    failures += [
        f"EQUIVALENT holds a mutant that does not survive, or is none: {key!r}"
        for key in sorted(stale - {mutant.key for mutant in alive})
    ]
    return sum(count for count, _ in found), failures


def _uncovered(item: registry.Check, seed: int) -> list[str]:
    found = coverage(item, seed)
    said = [
        f"{item.name}: its check never asks for {name} ({CLASSES[name]}); ask, or say "
        f"@check(without={{{name!r}: reason}})"
        for name, covered in found.items()
        if not covered
    ]
    return said + [f"{item.name}: without={name!r} is no class" for name in unknown(item)]
