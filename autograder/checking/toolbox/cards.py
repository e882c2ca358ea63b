"""Mistakes written as edits of the right answer, in a Markdown file that people read first.

``autograder/mistakes/<lesson>.md`` has a heading for each exercise and a card for each mistake:
what a learner is told, the stages that it earns all the same, and what stands in the library's
answer instead of what. docs/mistakes.md shows the form.
"""

import ast
import functools
import itertools
import linecache
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder import CourseError

EXERCISE = re.compile(r"## `?(\w+)`?$")
EDIT = re.compile(r"  - (?:in `([^`]+)`: )?`([^`]+)` →(?: `([^`]+)`)?$")
RETURNS = re.compile(r"  - (?:in `([^`]+)`: )?returns `([^`]+)`$")
DIFF = re.compile(r"  ```diff(?: in (\w+))?$")
EARNS = "  Earns: "
AGAIN = re.compile(r"Each again with `([^`]+)` → `([^`]+)`\.$")
SAME = "(the same)"


class CardError(CourseError):
    """A card that cannot be read or applied; str() says where, and why."""


@dataclass(frozen=True)
class Edit:
    """``old``, which must stand in the answer once, becomes ``new``.

    method  where to look for it: the name of a method or of a function inside, or '' for all
    kind    'part' of a line, whole 'lines', or what it 'returns': an expression of ``result``
    """

    kind: str
    method: str
    old: str
    new: str


@dataclass(frozen=True)
class Card:
    """A mistake as it stands in a file, from ``line`` on.

    again  what may be changed besides: learners write the rest in another way, too
    """

    path: Path
    line: int
    exercise: str
    hint: str
    earns: tuple[str, ...]
    edits: tuple[Edit, ...]
    again: tuple[Edit, ...] = ()

    @property
    def name(self) -> str:
        """Where it stands: 'masked_attention.md:12'."""
        return f"{self.path.name}:{self.line}"

    def fault(self, why: str) -> CardError:
        """The error that names this card."""
        return CardError(f"{self.path}:{self.line}: {why}")


@functools.lru_cache(maxsize=64)
def read(path: Path) -> tuple[Card, ...]:
    """The cards of a file, in order; none where there is no file. Raises CardError."""
    if not path.is_file():
        return ()
    cards, exercise, hint, again = list[Card](), "", "", tuple[Edit, ...]()
    for line, text in _blocks(path.read_text(encoding="utf-8").split("\n")):
        if heading := EXERCISE.match(text[0]):
            exercise, hint = heading[1], ""
            said = filter(None, map(AGAIN.match, text[1:]))
            again = tuple(Edit("part", "", one[1], one[2]) for one in said)
        elif text[0].startswith("- "):
            card = _card(path, line, exercise, text, hint)
            hint = card.hint
            cards.append(replace(card, again=again))
    return tuple(cards)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Headings and cards, each with the number of its first line."""
    block, first = list[str](), 0
    for number, line in enumerate([*lines, "## "], start=1):
        if line.startswith(("- ", "#")):
            if block:
                yield first, block
            block, first = [line], number
        elif block and line.strip():
            block.append(line.rstrip())


def _card(path: Path, line: int, exercise: str, text: list[str], above: str) -> Card:
    """One card; ``above`` is the hint of the one before it."""
    words, earns, edits = [text[0].removeprefix("- ")], list[str](), list[Edit]()
    rest = iter(text[1:])
    for one in rest:
        if found := DIFF.match(one):
            shown = textwrap.dedent("\n".join(itertools.takewhile(lambda x: x != "  ```", rest)))
            old, new = (_side(shown, sign) for sign in "-+")
            edits.append(Edit("lines", found[1] or "", old, new))
        elif found := EDIT.match(one):
            edits.append(Edit("part", found[1] or "", found[2], found[3] or ""))
        elif found := RETURNS.match(one):
            edits.append(Edit("returns", found[1] or "", "", found[2]))
        elif one.startswith(EARNS) or earns:
            earns.append(one.removeprefix(EARNS).strip())
        else:
            words.append(one.strip())
    said = " ".join(words)
    stages = tuple(filter(None, (part.strip() for part in " ".join(earns).split(";"))))
    card = Card(path, line, exercise, above if said == SAME else said, stages, tuple(edits))
    if not exercise:
        raise card.fault("a card stands below the heading of an exercise: ## name")
    if not card.hint:
        raise card.fault("the card has no hint: say what happened, and ask")
    if unread := [one for one in words[1:] if one.startswith(("- ", "```"))]:
        raise card.fault(f"this is no edit: {unread[0]!r}; write   - `old` → `new`")
    if not edits:
        raise card.fault("the card changes nothing: add a line like   - `old` → `new`")
    return card


def _side(shown: str, sign: str) -> str:
    """What a diff has before (-) or after (+), its common indentation taken off."""
    lines = [line[2:] for line in shown.split("\n") if line[:1] in (sign, " ", "")]
    return textwrap.dedent("\n".join(lines)).strip("\n")


def ways(card: Card, source: str) -> Iterator[tuple[str, str]]:
    """Pairs (name, text of the answer): as it is, and again with each other edit that fits."""
    text = applied(card, source)
    yield card.name, text
    for number, edit in enumerate(card.again, start=2):
        if text.count(edit.old) == 1:
            yield f"{card.name} ({number})", text.replace(edit.old, edit.new)


def applied(card: Card, source: str) -> str:
    """The text of the right answer, without docstrings, with the card's edits. Raises CardError."""
    text = without_docstrings(source)
    for edit in card.edits:
        start, end = _within(card, text, edit.method)
        before, part, after = text[:start], text[start:end], text[end:]
        if edit.kind == "returns":
            part = _returning(card, part, edit.new)
        elif edit.kind == "lines":
            part = _with_lines(card, part, edit)
        else:
            _refuse_count(card, edit.old, part.count(edit.old))
            part = part.replace(edit.old, edit.new)
        text = before + part + after
    try:
        changed = ast.dump(ast.parse(text))
    except SyntaxError as error:
        raise card.fault(f"what the edits make is no Python: {error.msg}\n{text}") from None
    if changed == ast.dump(ast.parse(without_docstrings(source))):
        raise card.fault("the edits change nothing that counts")
    return text


def _refuse_count(card: Card, old: str, count: int) -> None:
    if count == 0:
        raise card.fault(f"this does not stand in the right answer: {old!r}")
    if count > 1:
        raise card.fault(f"this stands in the right answer {count} times, take more of it: {old!r}")


@functools.lru_cache(maxsize=256)
def without_docstrings(source: str) -> str:
    """The text of a function or class without its docstrings, its own and its methods'."""
    source = textwrap.dedent(source)
    lines, gone = source.split("\n"), set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            first = node.body[0]
            gone |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    kept = (line for number, line in enumerate(lines, start=1) if number not in gone)
    return "\n".join(line for line in kept if not line.strip().startswith("# exercise:"))


def _within(card: Card, text: str, method: str) -> tuple[int, int]:
    """Where the text of a method, or of a function inside, begins and ends."""
    if not method:
        return 0, len(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == method:
            starts = [0, *itertools.accumulate(len(line) + 1 for line in text.split("\n"))]
            return starts[node.lineno - 1], starts[node.end_lineno or node.lineno] - 1
    raise card.fault(f"the right answer has no method {method!r}")


def _with_lines(card: Card, text: str, edit: Edit) -> str:
    """``text`` with whole lines exchanged, wherever they are indented."""
    lines, old = text.split("\n"), edit.old.split("\n")
    places = [
        place
        for place in range(len(lines) - len(old) + 1)
        if _alike(lines[place : place + len(old)], old)
    ]
    _refuse_count(card, edit.old, len(places))
    first = lines[places[0]]
    new = textwrap.indent(edit.new, first[: len(first) - len(first.lstrip())])
    lines[places[0] : places[0] + len(old)] = new.split("\n") if edit.new else []
    return "\n".join(lines)


def _alike(found: Sequence[str], old: Sequence[str]) -> bool:
    """Whether lines are the same but for common indentation and comments behind them."""
    bare = textwrap.dedent("\n".join(line.partition("  #")[0].rstrip() for line in found))
    return bare.split("\n") == [line.partition("  #")[0].rstrip() for line in old]


def _returning(card: Card, text: str, new: str) -> str:
    """``text`` in which each return of the outermost function gives ``new``, of its ``result``."""
    indent = text[: len(text) - len(text.lstrip())]
    text = textwrap.dedent(text)
    function = ast.parse(text).body[0]
    if not isinstance(function, ast.FunctionDef):
        raise card.fault("say which method returns it: in `forward`: returns …")
    for value in sorted(_returned(function), key=lambda one: -one.lineno):
        start, end = span(text, value)
        old = text[start:end]
        old = f"({old})" if isinstance(value, ast.Tuple) else old  # one result, not arguments
        text = f"{text[:start]}(lambda result: {new})({old}){text[end:]}"
    return textwrap.indent(text, indent)


def span(text: str, node: Any) -> tuple[int, int]:
    """Where a node of its tree begins and ends in a text, in characters: the tree counts bytes."""
    lines = text.splitlines(keepends=True)
    ends = ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
    start, end = (
        sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())
        for line, column in ends
    )
    return start, end


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """The values that a function returns, not those of functions inside."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def made(card: Card, text: str, right: Callable[..., Any], module: str) -> Callable[..., Any]:
    """The mistake: what the edited ``text`` defines, in a copy of the right answer's namespace.

    module  the name of the module to which the mistake is to belong
    """
    namespace = {**vars(sys.modules[right.__module__]), "__name__": module}
    label = f"<{card.name} of {len(text)}>"
    linecache.cache[label] = (len(text), None, text.splitlines(keepends=True), label)
    exec(compile(text, label, "exec"), namespace)
    target: Callable[..., Any] = namespace[right.__name__]
    return target
