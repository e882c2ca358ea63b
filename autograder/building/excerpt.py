"""Cut a function or class out of the library and mark where the student's part begins and ends."""

import ast
import functools
import re
from pathlib import Path

from autograder.building.source import SourceError, parse

MARKER = re.compile(r"^\s*# exercise: (.+)$")
ALMOST = re.compile(r"^\s*#+\s*exercise\b", re.IGNORECASE)  # a marker, or a misspelt one
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def text_of(path: Path, name: str) -> str:
    """The text of the top-level function or class ``name``, whole, without exercise markers."""
    lines, node = _node(path, name)
    span = lines[first_line(node) - 1 : _last_line(node)]
    return "\n".join(line for line in span if not MARKER.match(line))


def undecorated(path: Path, name: str) -> str:
    """The text of the top-level function ``name`` without its decorators."""
    lines, node = _node(path, name)
    return "\n".join(lines[node.lineno - 1 : _last_line(node)])


def with_solution_marks(path: Path, name: str) -> str:
    """The text of ``name`` with nbgrader's solution marks around each part to be written.

    The opening mark carries the words that the stub repeats:
    ``### BEGIN SOLUTION softmax: write about 3 lines``.
    """
    lines, node = _node(path, name)
    result, number = list[str](), first_line(node)
    for start, end, label in _parts(path, lines, node, name):
        written = next(filter(str.strip, lines[start - 1 :]))
        indent = written[: -len(written.lstrip())]
        body = [line for line in lines[start - 1 : end] if not MARKER.match(line)]
        result += [*lines[number - 1 : start - 1], f"{indent}### BEGIN SOLUTION {label}"]
        result += [*body, f"{indent}### END SOLUTION"]
        number = end + 1
    return "\n".join([*result, *lines[number - 1 : _last_line(node)]])


def solution_lines(path: Path, name: str) -> list[str]:
    """The stripped code lines of the student's part: what must not stand in a lesson."""
    lines, node = _node(path, name)
    found = []
    for start, end, _ in _parts(path, lines, node, name):
        body = (line.strip() for line in lines[start - 1 : end])
        found += [line for line in body if line and not line.startswith("#")]
    return found


def _node(path: Path, name: str) -> tuple[list[str], Definition]:
    lines, tree = _parsed(path, path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, Definition) and node.name == name:
            return lines, node
    raise SourceError(path, 1, f"there is no function or class {name!r} at the top level")


@functools.lru_cache(maxsize=32)
def _parsed(path: Path, text: str) -> tuple[list[str], ast.Module]:
    """The lines of a module and its tree, kept: each of its exercises asks for them."""
    lines, tree = text.split("\n"), parse(path, text)
    _refuse_stray_markers(path, lines, tree)
    return lines, tree


def _refuse_stray_markers(path: Path, lines: list[str], tree: ast.Module) -> None:
    """Every ``# exercise:`` comment is spelled so and stands in a function's or method's body."""
    inside = {
        number
        for top in tree.body
        for function in _functions(top)
        for number in range(function.lineno + 1, _last_line(function) + 1)
    }
    for number, line in enumerate(lines, 1):
        if ALMOST.match(line) and not MARKER.match(line):
            raise SourceError(path, number, "write the marker as '# exercise: about 3 lines'")
        if MARKER.match(line) and number not in inside:
            place = "above the lines to be written, inside a function or method"
            raise SourceError(path, number, f"an '# exercise:' comment stands {place}")


def _functions(node: ast.stmt) -> list[Function]:
    """The function itself, or the methods of a class."""
    if isinstance(node, ast.ClassDef):
        return [item for item in node.body if isinstance(item, Function)]
    return [node] if isinstance(node, Function) else []


def first_line(node: ast.stmt) -> int:
    """The line in which a statement begins, or the first of its decorators."""
    return min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno  # what was parsed has both


def _parts(path: Path, lines: list[str], node: Definition, name: str) -> list[tuple[int, int, str]]:
    """Triples (first line, last line, label) of every part to be written, in order."""
    parts = []
    for function in _functions(node):
        label = name if function is node else f"{name}.{function.name}"
        numbers = range(function.lineno, _last_line(function) + 1)
        marked = [number for number in numbers if MARKER.match(lines[number - 1])]
        if len(marked) > 1:
            raise SourceError(path, marked[1], f"{label} has two '# exercise:' comments; keep one")
        if marked:
            _refuse_inner(path, function, marked[0], label)
            start, amount = marked[0], MARKER.sub(r"\1", lines[marked[0] - 1])
        elif function is node:
            start = _after_docstring(path, lines, function)
            amount = _amount(lines[start - 1 : _last_line(function)])
        else:
            continue
        parts.append((start, _last_line(function), f"{label}: write {amount}"))
    if not parts:
        hint = "put '# exercise: about N lines' into a method"
        raise SourceError(path, node.lineno, f"class {name!r} marks nothing to write; {hint}")
    return parts


def _refuse_inner(path: Path, function: Function, number: int, label: str) -> None:
    """The marked part runs to the end of the function: it cannot begin in a function within."""
    within = [item for item in ast.walk(function) if isinstance(item, Function)]
    if any(item.lineno < number <= _last_line(item) for item in within if item is not function):
        raise SourceError(
            path, number, f"the comment stands in a function within {label}; move it out"
        )


def _after_docstring(path: Path, lines: list[str], function: Function) -> int:
    """The line after the docstring, or the first of the body."""
    first, *others = function.body
    if ast.get_docstring(function) is None:
        start, statement = first.lineno, first
    elif others:
        start, statement = _last_line(first) + 1, others[0]
    else:
        raise SourceError(path, function.lineno, f"{function.name!r} has no body to be written")
    if lines[statement.lineno - 1][: statement.col_offset].strip():
        raise SourceError(
            path, statement.lineno, f"put the body of {function.name!r} on lines of its own"
        )
    return start


def _amount(lines: list[str]) -> str:
    code = [line for line in lines if line.strip() and not line.strip().startswith("#")]
    return f"about {len(code)} line{'s' if len(code) > 1 else ''}"
