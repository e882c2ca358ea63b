"""What a cell of a notebook is: the one place that reads and writes the metadata that say so.

A cell is a dict, or nbformat's. What a student handed in may hold anything in place of metadata:
every question about it has an answer.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

CHECK = "check_"  # before the exercise's name in the grade_id of its check
ANSWER = "answer"  # the tag of a text that only the solved notebook holds
# In the text of a lesson's first cell: core minutes, and those of what is marked with a star.
TIME = re.compile(r"\*\*Time\*\* (\d+) minutes(?:,\s+★ (\d+) more)?")
# Names of functions and classes in the source of a cell.
DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
# Where a part of an answer is still to be written; not in a comment.
STUB = re.compile(r"^\s*raise NotImplementedError\(", re.MULTILINE)
MAGIC = re.compile(r"^[ \t]*(%%\w+)", re.MULTILINE)  # of a cell
RUNS_AS_IT_IS = ("%%time", "%%capture", "%%prun")  # below these, a cell defines what it would
MISSING = "its cell is missing"
INSIDE, OUTSIDE, SKIP = "inside", "outside", "skip"  # how the grader treats a code cell


def grade_id(cell: Mapping[str, Any]) -> str:
    """The name under which nbgrader knows a cell, or ''."""
    return _words(cell, "nbgrader", "grade_id")


def is_check(cell: Mapping[str, Any]) -> bool:
    """Whether the cell earns points."""
    return bool(notes(cell, "nbgrader").get("grade"))


def is_solution(cell: Mapping[str, Any]) -> bool:
    """Whether the cell is the student's to fill in."""
    return bool(notes(cell, "nbgrader").get("solution"))


def is_known(cell: Mapping[str, Any]) -> bool:
    """Whether the cell has its own place in the graded notebook: a check, a solution, or locked."""
    return is_check(cell) or is_solution(cell) or bool(notes(cell, "nbgrader").get("locked"))


def is_demo(cell: Mapping[str, Any]) -> bool:
    """Whether the cell only shows something, so that it need not be run for a score."""
    return bool(notes(cell, "autograder").get("demo"))


def points(cell: Mapping[str, Any]) -> float:
    """The points that a check is worth."""
    return float(notes(cell, "nbgrader").get("points") or 0)


def exercise(cell: Mapping[str, Any]) -> str:
    """The name of the exercise that a cell is the solution or the check of, or ''."""
    return exercise_called(grade_id(cell))


def exercise_called(name: str) -> str:
    """The name of the exercise whose solution or check has the grade_id ``name``."""
    return name.removeprefix(CHECK)


def early_checks(names: Sequence[str]) -> set[int]:
    """The places of checks that stand above the answer that they judge.

    names  the grade_id of each cell of a notebook, or ''
    """
    first: dict[str, int] = {}
    for place, name in enumerate(names):
        first.setdefault(name, place)
    return {n for n, name in enumerate(names) if first.get(exercise_called(name), n) > n}


def blank_copies(names: Sequence[str], sources: Sequence[str]) -> set[int]:
    """The places of cells that hold less of an answer than another of the same grade_id.

    names, sources  the grade_id of each cell of a notebook that may hold an answer, or '', and its
                    text
    """
    left = [len(STUB.findall(source)) if source.strip() else 99 for source in sources]
    least: dict[str, int] = {}
    for name, count in zip(names, left, strict=True):
        least[name] = min(count, least.get(name, count))
    return {n for n, name in enumerate(names) if name and left[n] > least[name]}


def title(cell: Mapping[str, Any]) -> str:
    """The heading under which the exercise of an assembled notebook's check stands, or ''."""
    return _words(cell, "autograder", "title")


def run(cell: Mapping[str, Any]) -> str:
    """INSIDE, OUTSIDE or SKIP for a code cell of an assembled notebook, else ''."""
    return notes(cell, "autograder").get("run", "")


def missing(cell: Mapping[str, Any]) -> str:
    """Why an assembled notebook has no answer in this cell, or ''."""
    return _words(cell, "autograder", "missing")


def why_missing(name: str, kinds: Iterable[tuple[str, str]]) -> str:
    """Why a notebook defines nothing of the name of an exercise, where no cell stops.

    kinds  the grade_id and the type of each of its cells
    """
    types = [kind for one, kind in kinds if one == name]
    if "code" in types:
        return defines_another(name)
    return "its cell is not a code cell: select it and press Y" if types else MISSING


def defines_another(name: str) -> str:
    """What is said of an exercise's cell that runs and does not define what it should."""
    return f"its cell defines no {name}"


def magic(source: str) -> str:
    """Which line that begins with %% keeps a cell from defining anything, and why, or ''."""
    found = MAGIC.search(source)
    if found is None:
        return ""
    if found[1] not in RUNS_AS_IT_IS:
        return f"its cell defines nothing below {found[1]}: remove that line"
    misplaced = source[: found.start(1)].strip("\n")
    return f"{found[1]} must be the first line of its cell, or go" if misplaced else ""


def to_run(how: str, **more: object) -> dict[str, Any]:
    """The metadata of a code cell that the grader treats like this."""
    return {"autograder": {"run": how, **more}}


def metadata(kind: str, name: str = "", worth: float = 0) -> dict[str, Any]:
    """The metadata of a code cell of a solved notebook.

    kind  'exercise', 'check', 'given', 'broken', 'demo' or 'code'
    """
    if kind == "demo":
        return {"autograder": {"demo": True}}
    if kind == "code":
        return {}
    graded = {
        "cell_type": "code",
        "grade": kind == "check",
        "grade_id": f"{CHECK}{name}" if kind == "check" else name,
        "locked": kind != "exercise",
        "schema_version": 3,
        "solution": kind == "exercise",
        "task": False,
    }
    if kind == "check":
        graded["points"] = worth
    return {"nbgrader": graded}


def _words(cell: Mapping[str, Any], owner: str, key: str) -> str:
    found = notes(cell, owner).get(key)
    return found if isinstance(found, str) else ""


def notes(cell: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """What ``owner`` keeps in the metadata of a cell, or of a whole notebook."""
    metadata = cell.get("metadata")
    found = metadata.get(owner) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
