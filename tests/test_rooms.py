"""Imports run one way, from the commands down to what the sandbox sees, and pieces stay small."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("attention", "autograder")
FLAT = ("autograder.checks", "autograder.mistakes")  # many small pieces, one after the other
LONGEST_FILE, LONGEST_FUNCTION = 300, 40
# A lesson is one module, whatever it teaches: what these may have.
LONGER = {
    "attention.decoding": 385,
    "attention.tokens_and_positions": 350,
    "attention.training": 325,
}
LESSON, FACE = "lesson", "face"  # attention's own modules, and autograder/check.py and course.py

# What each room may import, besides itself. The top of a list is the room nearest to the user.
MAY_IMPORT = {
    "autograder.commands": {
        "collecting",
        "releasing",
        "reporting",
        "leaderboard",
        "building",
        "grading",
        "checking",
        "sandbox",
        "inside",
        FACE,
        "train",
        "provided",
    },
    "autograder.releasing": {"building", "grading", "checking", "sandbox", "inside", "provided"},
    "autograder.collecting": {"grading", "provided"},
    "autograder.leaderboard": {"reporting", "grading", "checking", LESSON, "provided"},
    "autograder.reporting": {"grading", "checking", "provided"},
    FACE: {"grading", "checking", "inside", "top"},
    "autograder.grading": {"building", "sandbox", "checking", "inside", FACE, "provided"},
    "autograder.building": {"checking", "inside", FACE, "provided"},
    "autograder.sandbox": {"inside"},
    "autograder.mistakes": {"checking", LESSON, "provided"},
    "autograder.checks": {"checking", "inside", LESSON, "provided"},
    "autograder.checking": {"inside"},
    "autograder.inside": set(),
    "attention.translate": {"train", "provided", LESSON},
    "attention.train": {"provided", LESSON},
    LESSON: {"provided"},
    "attention.provided": {LESSON, "train", "inside"},  # the device to rehearse on
}


def modules():
    """Every module of the two packages, as {dotted name: path}."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


MODULES = modules()


def room(name):
    """The room of a module: 'autograder.checking', LESSON, FACE or 'top' for the package itself."""
    package, *rest = name.split(".")
    if (ROOT / package / (rest[0] if rest else "")).is_dir() and rest:
        return f"{package}.{rest[0]}"
    if rest == ["__main__"]:
        return f"{package}.commands"
    if not rest or rest[0] in ("marks", "lessons", "imports", "settings", "temporary"):
        return "top"
    return LESSON if package == "attention" else FACE


def imported(path):
    """Names of modules of the two packages that a file imports, inside functions as well."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            dotted = [f"{node.module}.{alias.name}" for alias in node.names]
            dotted = [name if name in MODULES else node.module for name in dotted]
        else:
            continue
        yield from (name for name in dotted if name in MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_from_rooms_below(name):
    own = room(name)
    allowed = MAY_IMPORT.get(own, set())
    climbing = {
        other
        for other in imported(MODULES[name])
        if room(other) not in (own, "top") and room(other).rpartition(".")[2] not in allowed
    }
    assert climbing == set()


def lines_of(function):
    """How many lines a function has, without its docstring."""
    count = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is None:
        return count
    docstring = function.body[0]
    return count - (docstring.end_lineno - docstring.lineno + 1)


def product():
    """Every product file by name: the two packages' modules and the benchmarks."""
    benchmarks = {f"benchmarks.{path.stem}": path for path in (ROOT / "benchmarks").glob("*.py")}
    return {
        name: path for name, path in {**MODULES, **benchmarks}.items() if room(name) not in FLAT
    }


@pytest.mark.parametrize("name", product())
def test_files_and_functions_are_short(name):
    text = product()[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGER.get(name, LONGEST_FILE)
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    long = {one.name: lines_of(one) for one in functions if lines_of(one) > LONGEST_FUNCTION}
    assert long == {}
