"""Notebooks whose graded cells, points and metadata were changed by hand."""

import nbformat
from nbgrader.utils import compute_checksum

from .paper import attack, register


def turned_into(cell, kind, said):
    """A code cell that becomes one of another kind, and says which it is."""
    del cell["outputs"], cell["execution_count"]
    cell.cell_type, cell.metadata.nbgrader.cell_type = kind, said


def renamed(cell):
    """A cell with another grade_id, and a checksum that fits."""
    cell.source = "pass"
    cell.metadata.nbgrader.grade_id += "_bonus"
    cell.metadata.nbgrader.checksum = compute_checksum(cell)


# What becomes of every test cell.
TESTS = {
    "tests_edited": lambda cell, paper: cell.update(source="pass"),
    "tests_deleted": lambda cell, paper: paper.cells.remove(cell),
    "tests_as_markdown": lambda cell, paper: turned_into(cell, "markdown", "markdown"),
    # To the top, before the functions exist.
    "tests_reordered": lambda cell, paper: paper.cells.insert(
        0, paper.cells.pop(paper.cells.index(cell))
    ),
    # A passing twin behind each, or before anything else.
    "tests_duplicated": lambda cell, paper: paper.cells.insert(
        paper.cells.index(cell) + 1, paper.copy_of(cell, source="pass")
    ),
    "tests_unmarked": lambda cell, paper: cell.metadata.pop("nbgrader"),
    "tests_renamed": lambda cell, paper: renamed(cell),
    "points_raised": lambda cell, paper: cell.metadata.nbgrader.update(points=1000),
    # The tag that makes nbclient leave a cell out.
    "skip_execution_tag": lambda cell, paper: cell.metadata.update(tags=["skip-execution"]),
}


def edited(change):
    """A builder that changes every test cell."""

    def build(paper):
        for cell in paper.tests:
            change(cell, paper)

    return build


for name, change in TESTS.items():
    register(name, __name__, edited(change))


@attack
def extra_tests(paper):
    """Graded cells of the student's own that pass and are worth a hundred points each."""
    for number in range(3):
        cell = nbformat.v4.new_code_cell("print('correct.')")
        about = {**paper.tests[0].metadata.nbgrader, "grade_id": f"bonus{number}", "points": 100}
        cell.metadata["nbgrader"] = about
        paper.cells.append(cell)


@attack
def answers_duplicated(paper):
    """Two cells with the same exercise's name: a wrong one, and one that replaces the check."""
    for cell in list(paper.answers):
        source = "class check:\n    pass\nfor name in dir():\n    pass"
        paper.cells.insert(paper.cells.index(cell), paper.copy_of(cell, source=source))


@attack
def script_in_the_feedback(paper):
    """HTML and scripts in prose, outputs, attachments, names and errors, for who reads feedback."""
    script = f"<script>document.title='{paper.mark}'</script><img src=x onerror=alert(1)>"
    paper.cells.insert(1, nbformat.v4.new_markdown_cell(f"Hello\n\n{script}\n\n[x](javascript:1)"))
    raw = nbformat.v4.new_raw_cell(script)
    raw.metadata["raw_mimetype"] = "text/html"
    paper.cells.append(raw)
    paper.first(f"""
        from IPython.display import HTML, Javascript, display
        display(HTML({script!r}), Javascript("document.title = '@MARK@'"))
        print({script!r})
        raise type({script!r}, (Exception,), {{}})({script!r})
    """)
    paper.answer(f"raise ValueError({script!r})")
    for cell in paper.cells:
        if cell.cell_type == "markdown":
            cell.source += f"\n\n{script}"
