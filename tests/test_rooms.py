"""Imports run one way, from the commands down to what the sandbox sees, and pieces stay small."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("attention", "autograder")
FLAT = ("autograder.checks", "autograder.mistakes")  # many small pieces, one after the other
ONE_A_LESSON = ("attention", "attention.experiments", *FLAT)
ONE_A_COMMAND = ("autograder.commands",)
LONGEST_FILE, LONGEST_FUNCTION, FULL = 300, 40, 12  # lines, lines, files
EXPERIMENTS = 600  # lines of a module of these: small pieces, one after the other
# A lesson is one module, whatever it teaches: what these may have.
LONGER = {
    "attention.decoding": 350,
    "attention.efficient_attention": 325,
    "attention.experiments.efficient_attention": 610,
    "attention.modern_decoder": 380,
    "attention.published_model": 325,
    "attention.training": 325,
}
CHECKING = ("checking", "checking.diagnosis", "checking.asking", "checking.toolbox")
INSIDE = ("inside", "inside.device", "inside.messages")
GRADING = (
    "grading",
    "grading.feedback",
    "grading.running",
    "grading.classroom",
    "grading.execution",
    "grading.notebook",
)
BUILDING = ("building.book", "building.gates", "building")
PROVIDED = (
    "provided.models.bert",
    "provided.models.decoders",
    "provided.models",
    "provided.measuring",
    "provided.figures",
    "provided.data",
    "provided",
)
LESSON = ("lesson", *PROVIDED)
TRAIN = (
    "train",
    "train.mine",
    "train.core",
    "train.speed",
    "train.corpora",
    "train.pieces",
    "train.runs",
)

# What each room may import, besides itself and rooms below it in its own list.
MAY_IMPORT = {
    "commands.support": ("term", *GRADING),
    "commands": (
        "commands.support",
        *("collecting", "releasing", "explaining", "reporting", "self_study"),
        *("course", "term"),
        *(*BUILDING, *GRADING, *CHECKING, "sandbox", *INSIDE),
    ),
    "releasing": ("term", *BUILDING, *GRADING, *CHECKING, "sandbox", *INSIDE),
    "collecting": ("term", *GRADING),
    "explaining": ("reporting", "sandbox", *GRADING, *CHECKING, *INSIDE),
    "reporting": ("term", *GRADING, *CHECKING),
    "self_study": ("check", "building.gates", *GRADING, *CHECKING, *INSIDE),
    "check": ("notebook_kernel", *CHECKING, *INSIDE),
    "notebook_kernel": (*CHECKING, *INSIDE),
    "course": ("term", "validation"),
    "term": ("grading.notebook",),
    "validation": (),
    **dict.fromkeys(GRADING, ("course", "term", "sandbox", *CHECKING, *INSIDE)),
    **dict.fromkeys(BUILDING, ("course", "sandbox", *CHECKING, *INSIDE)),
    "sandbox": INSIDE,
    "mistakes": (*CHECKING, *LESSON),
    "checks": (*CHECKING, *INSIDE, *LESSON),
    **dict.fromkeys(CHECKING, INSIDE),
    **dict.fromkeys(INSIDE, ()),
    "own commands": ("pages", *TRAIN, *LESSON),
    "pages": ("building", *TRAIN, *LESSON),
    "search": (*TRAIN, *LESSON),
    "translate": (*TRAIN, *LESSON),
    "chat": (*TRAIN, *LESSON),
    "teach": (*TRAIN, *LESSON),
    "write": (*TRAIN, *LESSON),
    "experiments": (*TRAIN, *LESSON),
    **dict.fromkeys(TRAIN, LESSON),
    "lesson": PROVIDED,
    **dict.fromkeys(PROVIDED, INSIDE),  # the device to rehearse on; how something stands in
}
STACKS = (GRADING, CHECKING, BUILDING, INSIDE, PROVIDED, TRAIN)  # from above to below
# Of autograder/, for all.
COMMON = (
    *("cell_metadata", "files", "imports", "lessons", "pieces", "settings", "temporary"),
    "terminal_output",
)


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
    """The room of a module, without the package: 'grading.notebook', 'lesson', '' for all's."""
    package, *rest = name.split(".")
    if (package, rest[:1]) == ("attention", ["commands"]):  # the grader has a room of this name
        return "own commands"
    if MODULES[name].name != "__init__.py":
        rest = rest[:-1] or rest
    elif not rest:
        return ""
    if rest == ["__main__"]:
        return "commands"
    if len(name.split(".")) == 2 and MODULES[name].name != "__init__.py":
        return "lesson" if package == "attention" else "" if rest[0] in COMMON else rest[0]
    return ".".join(rest)


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


IMPORTED = {name: {*imported(path)} - {name} for name, path in MODULES.items()}


def may_import(own):
    """The rooms that a room may import."""
    below = [stack[stack.index(own) :] for stack in STACKS if own in stack]
    return {"", own, *MAY_IMPORT.get(own, ()), *(one for stack in below for one in stack)}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_from_rooms_below(name):
    allowed = may_import(room(name))
    assert {other for other in IMPORTED[name] if room(other) not in allowed} == set()


def is_engine(name):
    """Whether a module is the grader's, which knows no course: its checks and answers are one's."""
    return name.startswith("autograder") and not name.startswith(FLAT)


def test_the_grader_imports_nothing_of_the_course():
    engine = [name for name in MODULES if is_engine(name)]
    found = {name: {one for one in IMPORTED[name] if not is_engine(one)} for name in engine}
    # Both rooms are packages that every course has.
    assert {name: others - {*FLAT} for name, others in found.items() if others - {*FLAT}} == {}


LIBRARY = re.compile(r"^attention$|\battention[./]")
# There a part of a layer is called so.
NAMING = [
    name
    for name in MODULES
    if is_engine(name) and name != "autograder.checking.toolbox.layer_oracles"
]


@pytest.mark.parametrize("name", NAMING)
def test_the_grader_does_not_name_the_course(name):
    """The library's name stands in autograder.toml only: another course has another one."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    texts = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)]
    found = [one for one in texts if isinstance(one, str) and LIBRARY.search(one)]
    assert found == []


def circle(graph):
    """The names that can be reached from themselves."""
    reached = {name: set(others) for name, others in graph.items()}
    size = -1
    while size != (size := sum(map(len, reached.values()))):
        for others in reached.values():
            others |= {far for near in others for far in reached.get(near, ())}
    return sorted(name for name, others in reached.items() if name in others)


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c"]


def test_no_circle_of_files():
    assert circle(IMPORTED) == []


def test_no_circle_of_rooms():
    graph = {}
    for name, others in IMPORTED.items():
        if room(name):
            outside = {room(other) for other in others} - {"", room(name)}
            graph.setdefault(room(name), set()).update(outside)
    assert circle(graph) == []


ORDER = [path.stem[3:] for path in sorted((ROOT / "source").glob("[0-9][0-9]_*.py"))]
EXPERIMENTED = [name for name in ORDER if f"attention.experiments.{name}" in MODULES]


@pytest.mark.parametrize("lesson", EXPERIMENTED)
def test_experiments_import_earlier_lessons_only(lesson):
    """What a release of the lesson may hold answers none of its exercises."""
    named = {name.rpartition(".")[2] for name in IMPORTED[f"attention.experiments.{lesson}"]}
    assert named & {*ORDER[ORDER.index(lesson) :]} == set()


def test_a_room_has_a_dozen_files_at_most():
    files = {}
    for name, path in MODULES.items():
        if path.name not in ("__init__.py", "__main__.py"):
            files.setdefault(name.rpartition(".")[0], []).append(path.stem)
    full = {one: len(names) for one, names in files.items() if len(names) > FULL}
    assert [one for one in full if one not in (*ONE_A_LESSON, *ONE_A_COMMAND)] == []


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
        name: path for name, path in {**MODULES, **benchmarks}.items() if not name.startswith(FLAT)
    }


@pytest.mark.parametrize("name", product())
def test_files_and_functions_are_short(name):
    text = product()[name].read_text(encoding="utf-8")
    most = EXPERIMENTS if name.startswith("attention.experiments.") else LONGEST_FILE
    count, most = len(text.splitlines()), LONGER.get(name, most)
    assert count <= most, f"{count} lines, and {most} are the most: move a part into another file"
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    long = {one.name: lines_of(one) for one in functions if lines_of(one) > LONGEST_FUNCTION}
    assert long == {}


def room_of(path):
    """The row of the table of lines in which a file of Python counts, or ''."""
    parts = path.relative_to(ROOT).parts
    inner = f"{parts[0]}/{parts[1]}"
    if parts[0] == "autograder" and inner not in ("autograder/checks", "autograder/mistakes"):
        return "the grader"
    return inner if parts[0] == "autograder" else parts[0]


BUDGETS = re.findall(
    r"^\| `?([\w/ ]+?)`? \| (\d+ \d+) \|",
    (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize(("name", "most"), BUDGETS)
def test_a_room_has_the_lines_that_it_may_have(name, most):
    tops = {"the grader": "autograder"}.get(name, name)
    paths = [path for path in (ROOT / tops).rglob("*.py") if room_of(path) == name]
    count = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
    assert 0 < count <= int(most.replace(" ", "")), f"{name} has {count} lines: take something out"


def test_every_room_has_its_lines():
    assert len(BUDGETS) == 7
