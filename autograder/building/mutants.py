"""Gate 7: the reference, broken in one place in any way, is rejected, or excused with a reason."""

import contextlib
import importlib
import signal

from autograder.checking.coverage import CLASSES, coverage, unknown
from autograder.checking.questions import reference
from autograder.checking.run_check import run_check
from autograder.checking.slips import slips
from autograder.inside.answer import LocalAnswer

SECONDS = 10  # a mutant that takes longer does not end, or might as well not: it is rejected


class _Endless(BaseException):
    """A mutant that does not end."""


def survivors(item, seed):
    """Pair (number of mutants, those that the check accepts)."""
    made = slips(reference(item))
    return len(made), [slip for slip in made if not _rejected(item, slip, seed)]


def _rejected(item, slip, seed):
    try:
        with _alarm():
            return run_check(item, LocalAnswer(slip.target), seed, explain=False) is not None
    except _Endless:
        return True


@contextlib.contextmanager
def _alarm():
    """Raise _Endless after SECONDS, where the system has such an alarm."""

    def ring(*_):
        raise _Endless

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def equivalents(lesson):
    """{key of a mutant: why it is no mistake}, from EQUIVALENT in the lesson's mistakes."""
    module = importlib.import_module(f"autograder.mistakes.{lesson}")
    return getattr(module, "EQUIVALENT", {})


def gate(items, lesson, seed):
    """Pair (number of mutants, failures): survivors without a reason, and reasons gone stale."""
    excused, total, failures, used = equivalents(lesson), 0, [], set()
    for item in items:
        if run_check(item, LocalAnswer(reference(item)), seed, explain=False) is not None:
            used |= {key for key in excused if key.startswith(f"{item.name}: ")}
            continue  # gate 1 says so; of what the check accepts beside it nothing is known
        count, alive = survivors(item, seed)
        total += count
        for slip in alive:
            used.add(slip.key)
            if slip.key not in excused:
                failures.append(
                    f"the check accepts a mutant of line {slip.line}, or a reason is missing in "
                    f"EQUIVALENT: {slip.key!r}"
                )
        failures += _uncovered(item, seed)
    failures += [
        f"EQUIVALENT holds a mutant that does not survive, or is none: {key!r}"
        for key in excused.keys() - used
    ]
    return total, failures


def _uncovered(item, seed):
    """The classes of faults that a check neither looks for nor excuses."""
    found = coverage(item, seed)
    said = [
        f"{item.name}: its check never asks for {name} ({CLASSES[name]}); ask, or say "
        f"@check(without={{{name!r}: reason}})"
        for name, covered in found.items()
        if not covered
    ]
    return said + [f"{item.name}: without={name!r} is no class" for name in unknown(item)]
