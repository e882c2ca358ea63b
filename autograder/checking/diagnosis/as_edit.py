"""A mutant that replies as an answer does, as the edit of a card (see ``toolbox.cards``)."""

import ast
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence

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
from autograder.checking.toolbox.registry import Answer, Check

SECONDS = 60  # of processor time, for trying all mutants: an instructor waits for it once


def known_as(item: Check, given: Sequence[Replied], seed: int) -> Answer | None:
    """The stored mistake that replies as the answer does, whose replies are ``given``."""
    compared, alike = Comparison(item, seed, care=True), _alike(item, given, seed)
    return next((one for one in mistakes_of(compared) if alike(of_answer(one, compared))), None)


def edit(item: Check, given: Sequence[Replied], seed: int) -> str:
    """The lines of the smallest edit that replies as the answer does, or '' if none is found."""
    compared, alike = Comparison(item, seed, care=True), _alike(item, given, seed)
    if alike(asked(item, seed)[1]):
        return ""  # it is right, but for care
    found, end = list[str](), time.process_time() + SECONDS
    with little_memory():
        for mutant, replies in of_mutants(compared):
            if time.process_time() > end:
                break
            if alike(replies):
                found.append(_written(mutant))
    return min(found, key=len, default="")


def _alike(item: Check, given: Sequence[Replied], seed: int) -> Callable[[Iterable[Replied]], bool]:
    """Whether replies are the answer's to all questions that are no matter of care."""
    questions, wanted = asked(item, seed)
    exchanges = list(zip(questions, given, wanted, strict=False))
    care = {place for place, one in enumerate(questions) if one.is_care}
    return lambda replies: fits(replies, exchanges, agrees, care)


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
