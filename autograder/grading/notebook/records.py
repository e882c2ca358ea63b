"""What is kept of a graded submission: its notebook and, beside it, the reasons.

``reasons.json`` is written last, in one step: where it is, the grading was complete. It says how
the work was graded, and holds digests of what the result depends on, by which a later run
recognises unchanged work.
"""

import json
from pathlib import Path
from typing import Any

from autograder.files import write_aside
from autograder.grading.notebook.nbgrader_files import make_room
from autograder.grading.notebook.result import Result

REASONS = "reasons.json"
ABOUT = (
    "What the checks gave. Scores that somebody changed by hand, extra points and late penalties "
    "are in nbgrader's gradebook, which is what counts."
)


def save(folder: Path, notebook: dict[str, Any], name: str, result: Result) -> None:
    """Write the graded notebook and the reasons of a Result into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook, ensure_ascii=False) + "\n"
    write_aside(folder / f"{name}.ipynb", text.encode())
    save_reasons(folder, result)


def read_notebook(path: Path | str) -> dict[str, Any]:
    """A notebook of our own making as plain values; nbformat would spend its time validating it."""
    notebook = json.loads(Path(path).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def save_reasons(folder: Path, result: Result) -> None:
    told = {"about": ABOUT, **result.as_dict()}
    write_aside(folder / REASONS, json.dumps(told, indent=1, ensure_ascii=False).encode())


def load(folder: Path) -> Result | None:
    """The Result kept in ``folder``, or None."""
    try:
        return Result.from_dict(json.loads((folder / REASONS).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def forget(folder: Path) -> None:
    """Remove the reasons, also a student's own of that name: what was graded is graded again."""
    make_room(folder / REASONS)
    (folder / REASONS).unlink(missing_ok=True)
