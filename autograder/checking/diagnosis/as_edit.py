"""A mutant that replies as an answer does, as the edit of a card (see ``toolbox.cards``)."""

import ast
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

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
    lines, old, new = mutant.source.split("\n"), mutant.old, mutant.new
    if isinstance(old, ast.If) and new is not None:  # its condition alone is another
        old, new = old.test, new.test
    before = "\n".join(lines[old.lineno - 1 : old.end_lineno])
    if isinstance(old, ast.stmt):
        after = textwrap.indent(ast.unparse(new or ast.Pass()), " " * old.col_offset)
    else:
        start, end = _columns(lines[old.lineno - 1], lines[old.end_lineno - 1], old)
        end += len(before) - len(lines[old.end_lineno - 1])
        put = ast.unparse(new)
        put = f"({put})" if isinstance(new, ast.expr) and not isinstance(new, ast.Slice) else put
        after = f"{before[:start]}{put}{before[end:]}"
    marked = [
        f"  {sign} {line}"
        for sign, text in (("-", before), ("+", after))
        for line in textwrap.dedent(text).split("\n")
    ]
    return "\n".join(["  ```diff", *marked, "  ```"])


def _columns(first: str, last: str, node: Any) -> tuple[int, int]:
    """Where a node begins and ends in its lines, in characters: the tree counts bytes."""
    ends = ((first, node.col_offset), (last, node.end_col_offset))
    start, end = (len(line.encode()[:column].decode()) for line, column in ends)
    return start, end
