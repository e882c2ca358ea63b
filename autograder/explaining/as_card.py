"""A student's wrong answer as a card: the edit of the right answer that replies as it does."""

import ast
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Sequence

from autograder import CourseError
from autograder.checking.asking.questions import Replied
from autograder.checking.asking.right_answer import asked
from autograder.checking.diagnosis.diagnose import agrees, fits
from autograder.checking.diagnosis.mutations import Mutant
from autograder.checking.diagnosis.stored_replies import (
    Comparison,
    little_memory,
    mistakes_of,
    of_answer,
    of_mutants,
)
from autograder.checking.toolbox.cards import span
from autograder.checking.toolbox.registry import Check
from autograder.explaining import replay
from autograder.explaining.replay import ANY_SEED
from autograder.sandbox.sandbox import Sandbox

SECONDS = 60  # of processor time, for trying all mutants: an instructor waits for it once
CARD = """\
Below the heading of the exercise in {into}, once the hint is written:

## {exercise}

- …
{edit}
"""


def text(item: Check, sandbox: Sandbox, cells: Sequence[str], into: str) -> str:
    """A card for an answer, or which stored mistake it is; '' where no small edit replies so.

    cells  of the notebook, up to the answer's check, as from ``replay.sources``
    into   the file in which the card is to stand

    Raises CourseError where the notebook defines no such answer.
    """
    answer = replay.answer(item, sandbox, cells)
    if answer is None:
        raise CourseError(f"the notebook defines no function or class {item.name!r}")
    compared = Comparison(item, ANY_SEED, care=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alike = _alike(item, replay.answers(answer, asked(item, ANY_SEED)[0]))
        for known in mistakes_of(compared):
            if alike(of_answer(known, compared)):
                return f"# This is {known.name} already, which is told: {known.hint}\n"
        edit = _smallest_edit(compared, alike)
    return CARD.format(into=into, exercise=item.name, edit=edit) if edit else ""


def _alike(item: Check, given: Sequence[Replied]) -> Callable[[Iterable[Replied]], bool]:
    """Whether replies are the answer's, ``given``, to all questions that are no matter of care."""
    questions, wanted = asked(item, ANY_SEED)
    exchanges = list(zip(questions, given, wanted, strict=False))
    care = {place for place, one in enumerate(questions) if one.is_care}
    return lambda replies: fits(replies, exchanges, agrees, care)


def _smallest_edit(compared: Comparison, alike: Callable[[Iterable[Replied]], bool]) -> str:
    """The lines of the smallest edit that replies as the answer does, or '' if none is found."""
    if alike(asked(compared.item, compared.seed)[1]):
        return ""  # it is right, but for care
    found, end = list[str](), time.process_time() + SECONDS
    with little_memory():
        for mutant, replies in of_mutants(compared):
            if time.process_time() > end:
                break
            if alike(replies):
                found.append(_written(mutant))
    return min(found, key=len, default="")


def _written(mutant: Mutant) -> str:
    """The lines below the hint of a card that makes this mutant of the right answer."""
    source, old, new = mutant.source, mutant.old, mutant.new
    if isinstance(old, ast.If) and new is not None:  # its condition alone is another
        old, new = old.test, new.test
    before = "\n".join(source.split("\n")[old.lineno - 1 : old.end_lineno])
    if isinstance(old, ast.stmt):
        after = textwrap.indent(ast.unparse(new or ast.Pass()), " " * old.col_offset)
    else:
        start, end = span(source, old)
        put = ast.unparse(new)
        if isinstance(new, ast.Tuple) and any(isinstance(one, ast.Slice) for one in new.elts):
            put = put[1:-1]  # an index
        elif isinstance(new, ast.expr) and not isinstance(new, ast.Slice):
            put = f"({put})"
        first = source.rfind("\n", 0, start) + 1
        after = f"{source[first:start]}{put}{source[end : first + len(before)]}"
    marked = [
        f"  {sign} {line}"
        for sign, text in (("-", before), ("+", after))
        for line in textwrap.dedent(text).split("\n")
    ]
    return "\n".join(["  ```diff", *marked, "  ```"])
