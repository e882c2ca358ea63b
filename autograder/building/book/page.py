"""A lesson's page: its solved notebook, told to someone who reads it.

Where a learner's notebook has a gap, the page shows the gap, and folds the solution below it.
"""

import base64
import re
from collections.abc import Callable, Mapping

import nbformat
from nbformat import NotebookNode

from autograder import CourseError, cell_metadata
from autograder.building import alt_text
from autograder.building.notebook import KERNEL

ORIGIN = re.compile(r"<!-- Made by .*?-->\n", re.DOTALL)
DRAWING = re.compile(r"^\[(\w+)\]: data:image/(svg\+xml|png);base64,(\S+)$", re.MULTILINE)
WORDS = re.compile(r"!\[[^\]]*\]")  # for a drawing
LINK = re.compile(r"\[([^\]]*)\]\(\.\./(\w+)/\2\.ipynb\)")
GLASS = re.compile(r"\[([^\]]*)\]\([./]*/book/_build/html/((?:glass|writer)\.html(?:#\w+)?)\)")
MARKS = re.compile(r"^\s*### (?:BEGIN|END) SOLUTION.*\n?", re.MULTILINE)  # nbgrader's
FOLDED = "<details><summary>Show the answer</summary>\n\n{}\n</details>"
PROMPTS = {"code_prompt_show": "Show a solution", "code_prompt_hide": "Hide the solution"}


def page(
    solved: NotebookNode,
    blank: NotebookNode,
    below_the_head: str,
    link: Callable[[str, str], str],
) -> tuple[NotebookNode, dict[str, bytes]]:
    """The page of a lesson, and its drawings by file name.

    solved, blank   the lesson's notebooks in solutions/ and lessons/
    below_the_head  Markdown that is put below the first cell
    link            gives the Markdown that leads, with a text, to the lesson with a slug
    """
    stubs = {cell.id: cell.source for cell in blank.cells if cell_metadata.is_solution(cell)}
    drawings: dict[str, bytes] = {}
    cells: list[NotebookNode] = []
    for index, cell in enumerate(solved.cells):
        if cell.cell_type == "markdown":
            cells.append(_prose(cell, drawings, link))
        elif cell_metadata.is_solution(cell):
            if cell.id not in stubs:
                raise CourseError(
                    f"exercise {cell_metadata.grade_id(cell)!r} is not in lessons/: "
                    "run `autograder build`"
                )
            cells += _exercise(cell, stubs[cell.id])
        else:
            cells.append(_code(cell))
        if index == 0:
            cells.append(nbformat.v4.new_markdown_cell(below_the_head, id="open"))
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata = nbformat.from_dict(
        {"kernelspec": KERNEL, "language_info": {"name": "python"}}  # what Sphinx colours code by
    )
    return made, drawings


def _prose(
    cell: NotebookNode, drawings: dict[str, bytes], link: Callable[[str, str], str]
) -> NotebookNode:
    def put_aside(found: re.Match[str]) -> str:
        name = f"{found[1]}.{'svg' if found[2].startswith('svg') else 'png'}"
        drawings[name] = base64.b64decode(found[3])
        return f"[{found[1]}]: figures/{name}"

    text = ORIGIN.sub("", cell.source)
    text = DRAWING.sub(put_aside, text)
    # MyST leaves out a line's end within these words, and so would join two of them.
    text = WORDS.sub(lambda found: " ".join(found[0].split()), text)
    text = LINK.sub(lambda found: link(found[1], found[2]), text)
    text = GLASS.sub(r'<a href="../\2">\1</a>', text)  # no page of Sphinx's
    if cell_metadata.ANSWER in cell.metadata.get("tags", ()) and not text.startswith("<details>"):
        heading, _, rest = text.partition("\n") if text.startswith("#") else ("", "", text)
        text = "\n\n".join(part for part in (heading, FOLDED.format(rest.strip())) if part)
    return nbformat.v4.new_markdown_cell(text, id=cell.id)


def _exercise(cell: NotebookNode, stub: str) -> list[NotebookNode]:
    """What a learner is given, and below it, folded, what a solution is."""
    given = nbformat.v4.new_code_cell(
        stub, id=f"stub-{cell.id}"[:64], metadata={"tags": ["exercise"]}
    )
    answer = nbformat.v4.new_code_cell(
        MARKS.sub("", cell.source).rstrip(),
        id=cell.id,
        outputs=cell.outputs,
        metadata={"tags": ["solution", "hide-input"], "mystnb": PROMPTS},
    )
    return [given, answer]


def _code(cell: NotebookNode) -> NotebookNode:
    made = nbformat.v4.new_code_cell(cell.source, id=cell.id, outputs=cell.outputs)
    if cell_metadata.is_check(cell):
        made.metadata["tags"] = ["check"]
    if any("image/png" in output.get("data", {}) for output in cell.outputs):
        made.metadata["mystnb"] = {"image": {"alt": alt_text.of(cell)}}
    return made


def to_open(slug: str, repository: str) -> Mapping[str, str]:
    """Ways to open a lesson, by name; without the address of a repository, none beyond one's own.

    repository  'https://github.com/OWNER/NAME', or ''
    """
    if not repository:
        return {}
    path = f"lessons/{slug}/{slug}.ipynb"
    place = repository.removeprefix("https://github.com/")
    return {
        "Colab": f"https://colab.research.google.com/github/{place}/blob/main/{path}",
        "Binder": f"https://mybinder.org/v2/gh/{place}/main?urlpath=lab/tree/{path}",
    }
