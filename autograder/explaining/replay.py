"""Judge a graded answer once more, in the sandbox, on the same inputs, and compare its replies."""

import contextlib
import re
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from autograder import CourseError, cell_metadata
from autograder.checking.asking.questions import Question, Replied, replies
from autograder.checking.asking.right_answer import asked
from autograder.checking.run_check import OutOfOwnTime, run_check
from autograder.checking.toolbox.failure import CheckFailed
from autograder.checking.toolbox.registry import Check, reference
from autograder.grading.execution.check_limits import OwnTime, Waiting, own_memory
from autograder.inside.answer import AnyAnswer, LocalAnswer
from autograder.inside.limits import Limits, out_of_memory
from autograder.sandbox.clock import Allowance
from autograder.sandbox.process import StudentLost, StudentProcess
from autograder.sandbox.sandbox import Sandbox
from autograder.settings import Care

SEED = re.compile(r"^  seed +(\d+)$", re.MULTILINE)
ANY_SEED = 1  # where none is on record


@dataclass
class Replay:
    """What came of it: ``failure`` is None where the answer passes today.

    questions  all that a check and its probes ask; () where they refuse the course's own answer
    apart      those of them to which it does not reply as the course's own, with its replies
    is_as_right  whether it replied to all as the course's own does, but for rounding
    lost       the one over which its process was lost
    stopped    why it had to be stopped, if it had
    refused    what the check says of the course's own answer, where it refuses that, too
    """

    seed: int
    failure: CheckFailed | None = None
    questions: Sequence[Question] = ()
    apart: list[tuple[Question, Replied]] = field(default_factory=list)
    is_as_right: bool = False
    lost: Question | None = None
    stopped: str = ""
    refused: CheckFailed | None = None

    @property
    def passes(self) -> bool:
        """Whether nothing is wrong today."""
        return self.failure is None and not self.stopped


def sources(notebook: dict[str, Any], exercise: str) -> list[str]:
    """The cells of an assembled notebook that run before the check of ``exercise``."""
    found: list[str] = []
    for cell in notebook["cells"]:
        if cell_metadata.is_check(cell) and cell_metadata.exercise(cell) == exercise:
            return found
        if cell_metadata.run(cell) == cell_metadata.INSIDE:
            found.append(cell["source"])
    raise CourseError(f"the lesson has no exercise {exercise!r} in this notebook")


def ready(sandbox: Sandbox, cells: Sequence[str]) -> StudentProcess:
    """A student's process that has run ``cells``, save those that end it.

    Raises CourseError where they take more than a notebook may.
    """
    left = Allowance(sandbox.limits.notebook_seconds, sandbox.limits.patience)
    process, waiting, done = sandbox.start(left), deque(cells), list[str]()
    while waiting:
        source = waiting.popleft()
        try:
            process.run(source)
            done.append(source)
        except StudentLost as lost:
            if left.spent:
                raise CourseError(f"the notebook's cells had to be stopped: {lost}") from None
            process, waiting, done = sandbox.start(left), deque([*done, *waiting]), []
    return process


def answer(item: Check, sandbox: Sandbox, cells: Sequence[str]) -> AnyAnswer | None:
    """A student's answer to an exercise; None where ``cells`` define none."""
    process = ready(sandbox, cells)
    process.allow(sandbox.limits.check_seconds)
    found = process.resolve(item.name)
    return found[0] if found is not None and found[1] == "__main__" else None


def answers(given: AnyAnswer, questions: Sequence[Question]) -> list[Replied]:
    """What an answer replies, up to the question over which its process is lost."""
    found = list[Replied]()
    with contextlib.suppress(StudentLost):
        for reply in replies(given, questions):
            found.append(reply)
    return found


def replay(
    item: Check, sandbox: Sandbox, cells: Sequence[str], reason: str, rule: Care
) -> Replay | None:
    """Judge the answer to the exercise of ``item`` as the grading did, with the seed in ``reason``.

    None where the notebook defines no such answer.
    """
    given = answer(item, sandbox, cells)
    if given is None:
        return None
    seed = SEED.search(reason)
    made = Replay(int(seed[1]) if seed else ANY_SEED)
    made.questions, right = asked(item, made.seed)
    try:
        try:
            with _bounds(sandbox.limits) as time:
                made.failure = run_check(item, Waiting(given, time), made.seed, True, rule)
        except StudentLost as lost:
            made.stopped = str(lost)
        if made.passes:
            return made
        again = answer(item, sandbox, cells)  # as it is before it was called
        with _bounds(sandbox.limits) as time:
            given_again = answers(Waiting(again, time), made.questions) if again else []
            _compare(made, given_again, right)
    except OutOfOwnTime:
        made.stopped = "the check takes too long over the results"
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        made.stopped = "the check takes too much memory over the results"
    made.refused = _of_library(made, item, rule)
    return made


@contextlib.contextmanager
def _bounds(limits: Limits) -> Iterator[OwnTime]:
    """What the grading allows itself to work on the replies."""
    with warnings.catch_warnings(), own_memory(limits.own_bytes), OwnTime(limits.own_seconds) as t:
        warnings.simplefilter("ignore")
        yield t


def _compare(made: Replay, given: Sequence[Replied], right: Sequence[Replied]) -> None:
    three = list(zip(made.questions, given, right, strict=False))
    # Exactly: that a number is 0, as that of a padded place, is no matter of rounding.
    made.is_as_right = bool(three) and all(got.agrees(want, True) for _, got, want in three)
    values = [(one, replace(got, modified=want.modified), want) for one, got, want in three]
    made.apart = [(one, got) for one, got, want in values if not got.agrees(want, exactly=True)]
    if made.stopped and len(given) < len(made.questions):
        made.lost = made.questions[len(given)]


def _of_library(made: Replay, item: Check, rule: Care) -> CheckFailed | None:
    """Ask the course's own answer on the same inputs: a check that refuses it is wrong."""
    target = reference(item)
    if target is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_check(item, LocalAnswer(target), made.seed, rule=rule)
