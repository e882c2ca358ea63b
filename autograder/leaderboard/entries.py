"""Read a student's entry: settings written as a plain dict. Nothing of it is run."""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from autograder.checking.toolbox.describe_values import short
from autograder.grading.notebook.result import clean
from autograder.grading.notebook.submission import Cell

NAME = "leaderboard"  # of the variable in the notebook
ASSIGNED = re.compile(rf"^{NAME}\s*=", re.MULTILINE)
MAX_CHARS, NAME_CHARS = 5000, 24
Kind = tuple[str, ...] | type[bool] | tuple[type, float, float]  # words, yes or no, a range


class Refused(Exception):
    """An entry that does not count; str() is the sentence that its author reads."""


@dataclass(frozen=True)
class Entry:
    """The pseudonym, or '', and the settings, those that were left out as the lesson has them."""

    name: str
    settings: dict[str, Any]


def find(
    cells: Iterable[Cell], kinds: Mapping[str, Kind], usual: Mapping[str, Any]
) -> Entry | None:
    """The entry in a notebook's cells, the last one if there are several; None without a name.

    ``kinds`` says what each setting may be. Raises Refused.
    """
    value: Any = None
    for cell in cells:
        if cell.kind == "code" and ASSIGNED.search(cell.source):
            value = _assigned(cell.source, value)
    if value is None or isinstance(value, dict) and value.get("name", "") == "":
        return None
    if not isinstance(value, dict):
        raise Refused(f"{NAME} is no dict of settings")
    settings = dict(usual)
    for key, given in value.items():
        if key == "name":
            continue
        if key not in kinds:
            raise Refused(f"{_shown(key)} is no setting; there are: {', '.join(kinds)}")
        settings[key] = _checked(key, given, kinds[key])
    return Entry(_name(value["name"]), settings)


def _assigned(source: str, before: Any) -> Any:
    """What a cell assigns to the name, read as plain data, else ``before``."""
    if len(source) > MAX_CHARS:
        raise Refused(f"the cell of {NAME} has {len(source)} characters, at most {MAX_CHARS} count")
    try:
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == NAME:
                before = ast.literal_eval(node.value)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise Refused(f"{NAME} must be a dict of plain numbers and words, nothing else") from None
    return before


def _name(given: Any) -> str:
    if not isinstance(given, str):
        raise Refused("the name of an entry is a text")
    return " ".join("".join(one for one in clean(given) if one.isprintable()).split())[:NAME_CHARS]


def _checked(key: str, given: Any, kind: Kind) -> Any:
    if kind is bool:
        if not isinstance(given, bool):
            raise Refused(f"{key}={_shown(given)} is neither True nor False")
        return given
    assert isinstance(kind, tuple)
    if isinstance(kind[0], str):
        if given not in kind:
            raise Refused(f"{key}={_shown(given)} is none of {', '.join(map(str, kind))}")
        return given
    number, low, high = kind
    allowed = (int,) if number is int else (int, float)
    if type(given) not in allowed:
        words = "a whole number" if number is int else "a number"
        raise Refused(f"{key}={_shown(given)} is not {words}")
    if not low <= given <= high:
        raise Refused(f"{key}={_shown(given)} is not between {low:g} and {high:g}")
    return number(given)


def _shown(value: Any) -> str:
    """A student's value in a sentence, however long it is and whatever is in it."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {value.bit_length()} bits"
    return clean(short(repr(value)))
