"""Make a lesson's solved notebook, without outputs, from its source and the library."""

import base64
import hashlib
import itertools
import json
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder import cell_metadata
from autograder.building import alt_text, svg_as_png
from autograder.building.excerpt import text_of, undecorated, with_solution_marks
from autograder.building.lesson import FIGURE, Lesson
from autograder.building.source import Cell
from autograder.imports import imported, modules
from autograder.settings import COURSE

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def make(lesson: Lesson) -> NotebookNode:
    """Return the solved notebook: all nbgrader metadata, no outputs, stable cell ids."""
    used: set[str] = set()
    cells = [_cell(lesson, cell, index, used) for index, cell in enumerate(lesson.cells)]
    alt_text.describe_cells(cells)
    notebook = nbformat.v4.new_notebook(cells=cells)
    metadata = {"autograder": {"lesson": lesson.slug}, "kernelspec": KERNEL}
    notebook.metadata = nbformat.from_dict(metadata | {"language_info": {"name": "python"}})
    notebook.nbformat_minor = 5
    notebook.metadata.autograder["digest"] = _digest(lesson, notebook)
    return notebook


def _cell(lesson: Lesson, cell: Cell, index: int, used: set[str]) -> NotebookNode:
    if cell.kind == "markdown":
        source = cell.source
        if index == 0:
            source = (
                f"<!-- Made by `autograder build` from source/{lesson.slug}.py and "
                f"{COURSE.library}/{lesson.name}.py: edit those. -->\n{source}"
            )
        made = nbformat.v4.new_markdown_cell(source)
        if cell.answer:
            made.metadata["tags"] = [cell_metadata.ANSWER]
        _embed_figures(lesson, made)
    else:
        made = nbformat.v4.new_code_cell(_code(lesson, cell))
        notes = cell_metadata.metadata(cell.kind, cell.name, cell.points)
        # Without this tag, Run All stops at the first exercise that a student has skipped.
        made.metadata = nbformat.from_dict({**notes, "tags": ["raises-exception"]})
    made["id"] = _identity(lesson, cell, used)
    return made


def _code(lesson: Lesson, cell: Cell) -> str:
    if cell.kind == "exercise":
        return with_solution_marks(lesson.library, cell.name)
    if cell.kind == "given":
        return text_of(lesson.library, cell.name)
    if cell.kind == "broken":
        return undecorated(lesson.mistakes, cell.name)
    return cell.source


def _embed_figures(lesson: Lesson, made: NotebookNode) -> None:
    """Put the drawings into the notebook, so that they travel with it into every copy.

    They are data URIs, listed at the end of the cell: JupyterLab shows no SVG that is attached.
    """
    for _, figure in FIGURE.findall(made.source):
        path = svg_as_png.shown(lesson.path.parent / figure)
        data = base64.b64encode(path.read_bytes()).decode()
        kind = "image/svg+xml" if path.suffix == ".svg" else "image/png"
        made.source = made.source.replace(f"]({figure})", f"][{path.stem}]")
        made.source += f"\n\n[{path.stem}]: data:{kind};base64,{data}"


def _identity(lesson: Lesson, cell: Cell, used: set[str]) -> str:
    """A cell id that stays the same while other cells come and go."""
    if cell.name:
        name = f"{cell.kind}-{cell.name}".replace("_", "-")
    else:
        name = hashlib.sha256(f"{lesson.slug}\n{cell.source}".encode()).hexdigest()[:10]
    names = itertools.chain([name], (f"{name}-{count}" for count in itertools.count(2)))
    identity = next(one for one in names if one not in used)
    used.add(identity)
    return identity


def _data(code: str, folder: Path) -> list[Path]:
    """The recorded measurements that the code reads: "x.json", or evidence.read("x", …)."""
    names = set(re.findall(r'"([\w.]+\.json)"', code))
    names |= {f"evidence/{name}.json" for name in re.findall(r'evidence\.read\(\s*"(\w+)"', code)}
    return [folder / name for name in sorted(names)]


def _digest(lesson: Lesson, notebook: NotebookNode) -> str:
    """A digest of what the outputs depend on: the code in its order, the modules and data it uses.

    Prose, drawings and metadata are left out: a lesson is not run again for them.
    """
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    content = hashlib.sha256(json.dumps(code).encode())
    # As written in the source: there an exercise is the import of its module.
    imports = "\n".join(cell.source for cell in lesson.cells if cell.kind != "markdown")
    used = modules(imported(imports), lesson.root)
    if "check.preview(" in imports:  # elsewhere a check prints the same line as long as it passes
        used += [lesson.checks, lesson.mistakes]
    for path in [*used, *_data(imports, lesson.root / "data")]:
        if path.is_file():
            content.update(path.read_bytes())
    return content.hexdigest()[:16]
