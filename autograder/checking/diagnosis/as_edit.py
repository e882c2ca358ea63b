"""A mutant that replies as an answer does, as the edit of a card (see ``toolbox.cards``)."""

import ast
import itertools
import re
import textwrap
import time
from collections.abc import Iterable, Sequence
from typing import Any

from autograder.checking.asking.questions import Replied
from autograder.checking.asking.right_answer import asked
from autograder.checking.diagnosis.mutations import Mutant
from autograder.checking.diagnosis.stored_replies import (
    Comparison,
    little_memory,
    mistakes_of,
    of_answer,
    of_mutants,
)
from autograder.checking.toolbox.cards import without_docstrings
from autograder.checking.toolbox.registry import Answer, Check

SECONDS = 60  # of processor time, for trying all mutants: an instructor waits for it once


def known_as(item: Check, given: Sequence[Replied], seed: int) -> Answer | None:
    """The stored mistake that replies as the answer does, whose replies are ``given``."""
    compared = Comparison(item, seed, care=True)
    for one in mistakes_of(compared):
        if _fits(of_answer(one, compared), item, given, seed):
            return one
    return None


def edit(item: Check, given: Sequence[Replied], seed: int) -> str:
    """The lines of the smallest edit that replies as the answer does, or '' if none is found."""
    compared, end, found = Comparison(item, seed, care=True), time.process_time() + SECONDS, ""
    if _fits(asked(item, seed)[1], item, given, seed):
        return ""  # it is right, but for care
    with little_memory():
        for mutant, replies in of_mutants(compared):
            if time.process_time() > end:
                break
            if _fits(replies, item, given, seed):
                made = _written(mutant)
                found = made if not found or len(made) < len(found) else found
    return found


def _fits(replies: Iterable[Replied], item: Check, given: Sequence[Replied], seed: int) -> bool:
    """Whether these are the answer's replies to all questions that are no matter of care."""
    questions = asked(item, seed)[0]
    for one, got, reply in itertools.zip_longest(questions, given, replies):
        if one is None or got is None or reply is None:
            return False
        if not one.is_care and not reply.agrees(got):
            return False
    return True


def _written(mutant: Mutant) -> str:
    """The lines below the hint of a card that makes this mutant of the right answer."""
    lines, old, new = mutant.source.split("\n"), mutant.old, mutant.new
    first, last = old.lineno - 1, old.end_lineno
    if isinstance(old, ast.If) and new is not None:  # its condition alone is another
        old, new = old.test, new.test
        last = old.end_lineno
    if not isinstance(old, ast.stmt) and last == first + 1:
        found = _part(mutant.source, lines[first], old, new)
        if found:
            return found
    if new is not None and not isinstance(old, ast.stmt):
        changed = "\n".join(lines[first:last])
        start, end = _columns(lines[first], old)[0], _columns(lines[last - 1], old)[1]
        end += len(changed) - len(lines[last - 1])
        after = f"{changed[:start]}({ast.unparse(new)}){changed[end:]}".split("\n")
    else:
        after = textwrap.indent(ast.unparse(new or ast.Pass()), " " * old.col_offset).split("\n")
    marked = [f"- {line}" for line in textwrap.dedent("\n".join(lines[first:last])).split("\n")]
    marked += [f"+ {line}" for line in textwrap.dedent("\n".join(after)).split("\n") if after]
    return "\n".join(["  ```diff", *(f"  {line}" for line in marked), "  ```"])


def _part(source: str, line: str, old: ast.AST, new: ast.AST) -> str:
    """An edit within one line, of as little of it as stands in the answer once; '' if none does."""
    start, end = _columns(line, old)
    plain = ast.unparse(new)
    put = f"({plain})"
    if (
        not isinstance(new, ast.expr)
        or isinstance(new, ast.Slice)
        or _same(line[:start] + put + line[end:], line[:start] + plain + line[end:])
    ):
        put = plain
    start, end, put = _changed(line, line[:start] + put + line[end:])
    text = without_docstrings(source)
    words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", line)]
    left = [one for one, _ in words if one < start][::-1]
    right = [one for _, one in words if one > end]
    begin, stop = start, end
    while text.count(line[begin:stop]) != 1 and (left or right):
        if right:
            stop = right.pop(0)
        if text.count(line[begin:stop]) != 1 and left:
            begin = left.pop(0)
    if text.count(line[begin:stop]) != 1:
        return ""
    after = f"{line[begin:start]}{put}{line[end:stop]}"
    return f"  - `{line[begin:stop]}` →" + (f" `{after}`" if after else "")


def _changed(line: str, other: str) -> tuple[int, int, str]:
    """Where ``line`` differs from ``other``, in whole words, and what ``other`` has there."""
    ours, theirs = (re.findall(r"\w+|\W", text) for text in (line, other))
    same = [one == two for one, two in zip(ours, theirs, strict=False)]
    before = (*same, False).index(False)
    same = [
        one == two for one, two in zip(ours[before:][::-1], theirs[before:][::-1], strict=False)
    ]
    after = (*same, False).index(False)
    start, end = len("".join(ours[:before])), len("".join(ours[: len(ours) - after]))
    return start, end, "".join(theirs[before : len(theirs) - after])


def _columns(line: str, node: Any) -> tuple[int, int]:
    """Where a node begins and ends, in characters: the tree counts bytes."""
    coded = line.encode()
    ends = (node.col_offset, node.end_col_offset or 0)
    first, last = (len(coded[:column].decode(errors="replace")) for column in ends)
    return first, last


def _same(one: str, other: str) -> bool:
    """Whether two lines are the same statement."""
    first, second = (line.strip() + " pass" * line.rstrip().endswith(":") for line in (one, other))
    try:
        return ast.dump(ast.parse(first)) == ast.dump(ast.parse(second))
    except SyntaxError:
        return False
