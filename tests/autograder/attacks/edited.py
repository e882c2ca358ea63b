"""Notebooks whose graded cells, points and metadata were changed by hand."""

import json

import nbformat

from .paper import KERNELS, attack


@attack
def tests_edited(paper):
    """Every test cell replaced by `pass`."""
    for cell in paper.tests:
        cell.source = "pass"


@attack
def tests_deleted(paper):
    """Every test cell deleted."""
    for cell in paper.tests:
        paper.cells.remove(cell)


@attack
def one_test_deleted(paper):
    """The last test cell deleted."""
    paper.cells.remove(paper.tests[-1])


@attack
def tests_duplicated(paper):
    """Every test cell twice, the second with `pass`."""
    for cell in paper.tests:
        twin = paper.copy_of(cell)
        twin.source = "pass"
        paper.cells.insert(paper.cells.index(cell) + 1, twin)


@attack
def tests_duplicated_before(paper):
    """A passing copy of every test cell before anything else."""
    for cell in paper.tests:
        twin = paper.copy_of(cell)
        twin.source = "pass"
        paper.cells.insert(0, twin)


@attack
def tests_as_markdown(paper):
    """Test cells turned into prose."""
    for cell in paper.tests:
        cell.cell_type = "markdown"
        cell.metadata.nbgrader.cell_type = "markdown"
        del cell["outputs"], cell["execution_count"]


@attack
def tests_as_raw(paper):
    """Test cells turned into raw cells."""
    for cell in paper.tests:
        cell.cell_type = "raw"
        del cell["outputs"], cell["execution_count"]


@attack
def tests_reordered(paper):
    """Test cells moved to the top, before the functions exist."""
    for cell in paper.tests:
        paper.cells.remove(cell)
        paper.cells.insert(0, cell)


@attack
def tests_exchanged(paper):
    """The names of test cells exchanged, so that each is checked by another's test."""
    names = [cell.metadata.nbgrader.grade_id for cell in paper.tests]
    for cell, name in zip(paper.tests, names[1:] + names[:1], strict=True):
        cell.metadata.nbgrader.grade_id = name


@attack
def tests_not_graded(paper):
    """Test cells that say they are solutions, tasks, unlocked or not graded."""
    marks = ({"grade": False}, {"solution": True, "locked": False}, {"task": True, "grade": False})
    for cell, mark in zip(paper.tests, marks * 9, strict=False):
        cell.metadata.nbgrader.update(mark)


@attack
def tests_unmarked(paper):
    """Test cells that lost nbgrader's metadata."""
    for cell in paper.tests:
        del cell.metadata["nbgrader"]


@attack
def tests_renamed(paper):
    """Test cells with another grade_id, and checksums that fit."""
    from nbgrader.utils import compute_checksum

    for cell in paper.tests:
        cell.source = "pass"
        cell.metadata.nbgrader.grade_id += "_bonus"
        cell.metadata.nbgrader.checksum = compute_checksum(cell)


@attack
def tests_in_one_cell(paper):
    """All tests joined in one cell that begins with `if False:`."""
    first, *others = paper.tests
    first.source = "if False:\n" + "\n".join("    " + cell.source for cell in paper.tests)
    for cell in others:
        paper.cells.remove(cell)


@attack
def points_raised(paper):
    """A thousand points for every test."""
    for cell in paper.tests:
        cell.metadata.nbgrader.points = 1000


@attack
def points_of_every_kind(paper):
    """Points that are negative, not a number, infinite, text or nothing."""
    for cell, points in zip(paper.tests, (-5, float("nan"), "100") * 9, strict=False):
        cell.metadata.nbgrader.points = points


@attack
def extra_tests(paper):
    """Graded cells of the student's own that pass and are worth a hundred points each."""
    for number in range(3):
        cell = nbformat.v4.new_code_cell("print('correct.')")
        cell.metadata["nbgrader"] = {
            **paper.tests[0].metadata.nbgrader,
            "grade_id": f"bonus{number}",
            "points": 100,
        }
        paper.cells.append(cell)


@attack
def answers_graded_by_hand(paper):
    """Exercise cells that say they are worth points and were graded by hand."""
    for cell in paper.answers:
        cell.metadata.nbgrader.update(grade=True, points=50)
        cell.metadata["autograder"] = {"demo": True, "run": "skip", "score": 50, "missing": False}
    for cell in paper.tests:
        cell.metadata["autograder"] = {"demo": True, "run": "skip"}


@attack
def grade_ids_shared(paper):
    """Exercise and test cells that share one grade_id."""
    for cell in [*paper.answers, *paper.tests]:
        cell.metadata.nbgrader.grade_id = paper.tests[0].metadata.nbgrader.grade_id


@attack
def answers_duplicated(paper):
    """Two cells with the same exercise's name: a wrong one, and one that replaces the check."""
    for cell in list(paper.answers):
        twin = paper.copy_of(cell)
        twin.source = "class check:\n    pass\nfor name in dir():\n    pass"
        paper.cells.insert(paper.cells.index(cell), twin)


@attack
def answer_in_the_locked_cells(paper):
    """Locked cells given to everybody rewritten to replace the checks."""
    from .replaced import FAKE

    paper.before_tests(FAKE + "\ncheck = Fake()")
    paper.cells[paper.cells.index(paper.tests[0]) - 1].metadata["nbgrader"] = {
        "grade": False,
        "grade_id": "given",
        "locked": True,
        "schema_version": 3,
        "solution": False,
        "task": False,
        "cell_type": "code",
    }


@attack(lesson=KERNELS)
def metadata_of_another_lesson(paper):
    """Metadata that name an easier lesson, and one outside the course."""
    paper.notebook.metadata["autograder"] = {
        "lesson": "00_getting_started",
        "master": "../../submitted/somebody/own/own.ipynb",
        "problem": "",
        "digest": "0" * 16,
    }
    paper.notebook.metadata["nbgrader"] = {"assignment": "../solutions", "max_score": 1000}


@attack
def metadata_of_another_kernel(paper):
    """A kernel whose command would be the student's own."""
    paper.notebook.metadata["kernelspec"] = {
        "name": "../../../@x",
        "display_name": "Own",
        "language": "python",
        "argv": ["touch", f"/tmp/{paper.mark}"],
    }
    paper.files["kernels/own/kernel.json"] = json.dumps(
        {"argv": ["touch", f"/tmp/{paper.mark}"], "display_name": "Own", "language": "python"}
    ).encode()


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
