"""Judge a graded answer once more, in the sandbox, on the same inputs, noting what is asked."""

import re
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from autograder import CourseError, cell_metadata
from autograder.checking.asking.questions import Question, Replied, replies
from autograder.checking.asking.right_answer import asked
from autograder.checking.run_check import run_check
from autograder.checking.toolbox.failure import CheckFailed
from autograder.checking.toolbox.inputs import Draw
from autograder.checking.toolbox.registry import Check, reference
from autograder.checking.toolbox.student_answer import Student
from autograder.explaining import culprit
from autograder.explaining.culprit import Line
from autograder.explaining.noted import Exchange, Noted
from autograder.grading.execution.check_limits import OutOfOwnTime, OwnTime, Waiting, own_memory
from autograder.inside.answer import AnyAnswer, LocalAnswer
from autograder.inside.limits import out_of_memory
from autograder.sandbox.clock import Allowance
from autograder.sandbox.process import StudentLost, StudentProcess
from autograder.sandbox.sandbox import Sandbox

SEED = re.compile(r"^  seed +(\d+)$", re.MULTILINE)
ANY_SEED = 1  # where none is on record
Tried = tuple[Question, Replied, Replied]  # a question, the answer's reply and the right one


@dataclass
class Replay:
    """What came of it: ``failure`` is None where the answer passes today.

    history   what was asked, up to the end
    question  over which it failed, with its ``reply`` and the ``right`` one, as far as known
    others    further calls that a right answer replies to otherwise
    is_as_right  whether it replied to all that it was asked as the library does, but for rounding
    refused   what the check says of the library's own answer, where it refuses that, too
    of_library  what it prints of the library's own answer, '' where there is none
    """

    seed: int
    failure: CheckFailed | None = None
    line: Line | None = None
    history: list[Question] = field(default_factory=list)
    question: Question | None = None
    reply: Replied | None = None
    right: Replied | None = None
    others: list[Tried] = field(default_factory=list)
    is_as_right: bool = False
    stopped: str = ""  # why the process had to be stopped, if it had
    refused: CheckFailed | None = None
    of_library: str = ""


def sources(notebook: dict[str, Any], exercise: str) -> list[str]:
    """The cells of an assembled notebook that run before the check of ``exercise``."""
    found: list[str] = []
    for cell in notebook["cells"]:
        if cell_metadata.is_check(cell) and cell_metadata.exercise(cell) == exercise:
            return found
        if cell_metadata.run(cell) == cell_metadata.INSIDE:
            found.append(cell["source"])
    raise CourseError(f"the graded notebook has no exercise {exercise!r}: grade it again")


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


def replay(
    item: Check, sandbox: Sandbox, cells: Sequence[str], reason: str, care_share: float
) -> Replay | None:
    """Judge the answer to the exercise of ``item`` as the grading did, with the seed in ``reason``.

    None where the notebook defines no such answer.
    """
    given = answer(item, sandbox, cells)
    if given is None:
        return None
    seed = SEED.search(reason)
    made = Replay(int(seed[1]) if seed else ANY_SEED)
    log: list[Exchange] = []
    try:
        _judge(made, item, given, log, sandbox, care_share)
    except StudentLost as lost:
        made.stopped = str(lost)
        made.history = [one.question for one in log]
        made.question = log[-1].question if log else None
    except OutOfOwnTime:
        made.stopped = "the check takes too long over the results"
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        made.stopped = "the check takes too much memory over the results"
    if made.failure is not None or made.stopped:
        _judge_library(made, item, care_share)
    return made


def _judge_library(made: Replay, item: Check, care_share: float) -> None:
    """Ask the library's own answer on the same inputs: a check that refuses it is wrong."""
    target = reference(item)
    if target is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.refused = run_check(item, LocalAnswer(target), made.seed, care_share=care_share)
    made.of_library = str(made.refused or f"{item.name}: correct.")


def _judge(
    made: Replay,
    item: Check,
    answer: AnyAnswer,
    log: list[Exchange],
    sandbox: Sandbox,
    care_share: float,
) -> None:
    asked(item, made.seed)  # what the right answer replies takes no room of this one's
    limits = sandbox.limits
    with warnings.catch_warnings(), own_memory(limits.own_bytes), OwnTime(limits.own_seconds) as t:
        warnings.simplefilter("ignore")
        waiting = Waiting(answer, t)
        made.failure = run_check(item, Noted(waiting, log), made.seed, care_share=care_share)
        if made.failure is not None:
            made.line = culprit.line(made.failure)
            made.line = made.line or _plain_line(item, waiting, made.failure, made.seed)
    if made.failure is not None:
        _place(made, made.failure, item, log)


def _place(made: Replay, failure: CheckFailed, item: Check, log: Sequence[Exchange]) -> None:
    """Find the question over which the answer failed, and what a right answer replies to it."""
    questions, wanted = asked(item, made.seed)
    probed = culprit.probe(failure, questions, wanted)
    if probed is not None:
        place, made.reply = probed
        made.history, made.question, made.right = list(questions), questions[place], wanted[place]
        return
    made.history = [one.question for one in log]
    target = reference(item)
    right = list(replies(LocalAnswer(target), made.history)) if target is not None else []
    # Exactly: that a number is 0, as that of a padded place, is no matter of rounding.
    made.is_as_right = bool(right) and all(
        one.reply is not None and one.reply.agrees(other, exactly=True)
        for one, other in zip(log, right, strict=False)
    )
    found = culprit.exchange(failure, log, right)
    for one, other in zip(log, right, strict=False):
        if one is found:
            made.right = other
        elif one.question.request == "call" and one.reply and not one.reply.agrees(other):
            made.others.append((one.question, one.reply, other))
    if found is not None:
        made.question, made.reply = found.question, found.reply


def _plain_line(item: Check, answer: AnyAnswer, failure: CheckFailed, seed: int) -> Line | None:
    """The line that a failure came from which was noted and not raised: the check went on there.

    Where nobody takes notes, the first failure is raised.
    """
    try:
        item.run(Student(answer), Draw(seed))
    except CheckFailed as error:
        return culprit.line(error) if error.what == failure.what else None
    except (Exception, StudentLost) as error:  # a result that no expectation foresaw
        return culprit.line(error)
    return None
