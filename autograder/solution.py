"""Cut a function or class out of the library and mark where the student's part begins and ends."""

import ast
import re

from autograder.lesson import SourceError, parse

MARKER = re.compile(r"^\s*# exercise: (.+)$")


def text_of(path, name):
    """The text of the top-level function or class ``name``, whole, without exercise markers."""
    lines, node = _node(path, name)
    return "\n".join(line for line in _span(lines, node) if not MARKER.match(line))


def with_solution_marks(path, name):
    """The text of ``name`` with nbgrader's solution marks around each part to be written.

    The opening mark carries the words that the stub repeats:
    ``### BEGIN SOLUTION softmax: write about 3 lines``.
    """
    lines, node = _node(path, name)
    first = _first_line(node)
    parts = _parts(path, lines, node, name)
    result, number = [], first
    while number <= node.end_lineno:
        if number in parts:
            start, end, label = parts[number]
            indent = re.match(r"\s*", lines[start - 1]).group()
            body = [line for line in lines[start - 1 : end] if not MARKER.match(line)]
            result += [f"{indent}### BEGIN SOLUTION {label}", *body, f"{indent}### END SOLUTION"]
            number = end + 1
        else:
            result.append(lines[number - 1])
            number += 1
    return "\n".join(result)


def solution_lines(path, name):
    """The stripped code lines of the student's part: what must not stand in a lesson."""
    lines, node = _node(path, name)
    found = []
    for start, end, _ in _parts(path, lines, node, name).values():
        body = (line.strip() for line in lines[start - 1 : end])
        found += [line for line in body if line and not line.startswith("#")]
    return found


def _node(path, name):
    text = path.read_text(encoding="utf-8")
    for node in parse(path, text).body:
        if getattr(node, "name", None) == name:
            return text.split("\n"), node
    raise SourceError(path, 1, f"there is no function or class {name!r} at the top level")


def _first_line(node):
    return min([node.lineno, *(item.lineno for item in node.decorator_list)])


def _span(lines, node):
    return lines[_first_line(node) - 1 : node.end_lineno]


def _parts(path, lines, node, name):
    """Map first line → (first line, last line, label) of every part to be written."""
    functions = [item for item in ast.walk(node) if isinstance(item, ast.FunctionDef)]
    parts = {}
    for function in functions:
        label = name if function is node else f"{name}.{function.name}"
        marked = [
            number
            for number in range(function.lineno, function.end_lineno + 1)
            if MARKER.match(lines[number - 1])
        ]
        if len(marked) > 1:
            raise SourceError(path, marked[1], f"{label} has two '# exercise:' comments; keep one")
        if marked:
            amount = MARKER.match(lines[marked[0] - 1]).group(1)
            parts[marked[0]] = (marked[0], function.end_lineno, f"{label}: write {amount}")
        elif function is node:
            start = _after_docstring(function)
            amount = _amount(lines[start - 1 : function.end_lineno])
            parts[start] = (start, function.end_lineno, f"{label}: write {amount}")
    if not parts:
        raise SourceError(
            path,
            node.lineno,
            f"class {name!r} marks nothing to write; put '# exercise: about N lines' into a method",
        )
    return parts


def _after_docstring(function):
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    if documented and len(function.body) > 1:
        return first.end_lineno + 1
    return first.lineno


def _amount(lines):
    code = [line for line in lines if line.strip() and not line.strip().startswith("#")]
    return f"about {len(code)} line{'s' if len(code) > 1 else ''}"
