"""Files that are hard to read: bombs, pipes, links, damaged and oversized notebooks."""

import json
import os
from pathlib import Path

import nbformat

from autograder.grading.classroom import sample_class

from .paper import BASIC, KERNELS, attack, attacks, register

CELL = '{"cell_type":"code","source":"0","metadata":{},"outputs":[],"execution_count":null},'
TWIN = '[{"cell_type": "code", "source": "pass", "metadata": {}, "outputs": []}]'


def in_metadata(text, more):
    """The notebook's text with ``more`` at the beginning of the first metadata."""
    return text.replace('"metadata": {', '"metadata": {' + more, 1)


def nested(text, levels):
    """The notebook's text with metadata that are nested so deep."""
    return in_metadata(text, '"deep": ' + '{"a":' * levels + "1" + "}" * levels + ",")


def before_cells(text, more):
    """The notebook's text with ``more`` where its list of cells begins."""
    return text.replace('"cells": [', more + '"cells": [', 1)


# What becomes of the notebook's text.
TEXTS = {
    # A notebook of 100 MB, nearly all of it metadata of one cell.
    "metadata_bomb": lambda text: in_metadata(
        text, '"bomb": [' + ",".join(['"' + "x" * 1000 + '"'] * 100_000) + "], "
    ),
    # A hundred thousand cells.
    "cell_bomb": lambda text: text.replace('"cells": [', '"cells": [' + CELL * 100_000, 1),
    # Metadata nested a hundred thousand levels deep.
    "deep_json": lambda text: nested(text, 100_000),
    # Metadata nested just so deep that JSON can be read and nothing else works.
    "moderately_deep_json": lambda text: nested(text, 900),
    # Two lists of cells in one file: readers differ in which they believe.
    "repeated_keys": lambda text: before_cells(text, f'"cells": {TWIN}, '),
}


def changed(change):
    """A builder of the notebook whose text was changed."""

    def build(paper):
        paper.raw = change(nbformat.writes(paper.notebook)).encode()

    return build


for name, change in TEXTS.items():
    register(name, __name__, changed(change))


@attack
def other_encodings(paper):
    """The notebook in UTF-16."""
    paper.raw = nbformat.writes(paper.notebook).encode("utf-16")


@attack
def not_utf8(paper):
    """Bytes that are no text at all inside a cell."""
    paper.first("x = 'MARKER'")
    paper.raw = nbformat.writes(paper.notebook).encode().replace(b"MARKER", b"\xff\xfe\xc3\x28")


@attack
def unwritable_text(paper):
    """Lone surrogates, NUL and byte order marks in the cells' text."""
    for cell in paper.answers:
        cell.source += "  # MARKER"
    paper.cells.insert(1, nbformat.v4.new_markdown_cell("MARKER"))
    text = json.dumps(json.loads(nbformat.writes(paper.notebook)))
    paper.raw = text.replace("MARKER", r"\ud800 \u0000 \udfff \ufeff \u2028").encode()


@attack
def impossible_numbers(paper):
    """Numbers of ten thousand digits, infinities and NaN in the format's own fields."""
    content = json.loads(nbformat.writes(paper.notebook))
    content["nbformat_minor"] = float("inf")
    content["cells"][1]["execution_count"] = float("nan")
    text = json.dumps(content)
    paper.raw = text.replace('"nbformat": 4', '"nbformat": 4, "big": ' + "9" * 10_000).encode()


@attack
def wrong_types_everywhere(paper):
    """Lists where objects belong, numbers where text belongs, null everywhere else."""
    content = json.loads(nbformat.writes(paper.notebook))
    content["metadata"] = ["kernelspec"]
    odd = [None, 7, [], "cell", {"cell_type": ["code"]}, {"cell_type": "code", "source": {"a": 1}}]
    odd += [{"cell_type": "code", "source": [1, None, ["x"]], "metadata": 7, "outputs": "none"}]
    odd += [{"cell_type": "poem", "source": "x", "metadata": {"nbgrader": [1]}}]
    content["cells"] = odd + content["cells"]
    for cell in content["cells"][-4:]:
        cell["metadata"] = {"nbgrader": {"grade_id": {"a": []}, "points": [1], "grade": "yes"}}
    paper.raw = json.dumps(content).encode()


@attack
def kernel_of_half_a_letter(paper):
    """A foreign kernel whose name cannot be written to any file."""
    content = json.loads(nbformat.writes(paper.notebook))
    content["metadata"]["kernelspec"] = {"language": "R", "display_name": "\ud800\x1b[2J\n"}
    paper.raw = json.dumps(content).encode()


@attack(lesson=KERNELS)
def another_lessons_notebook(paper):
    """The solved notebook of an easier lesson under this lesson's name."""
    paper.raw = nbformat.writes(sample_class.solved(BASIC)).encode()


# Cells that are hard to compile, to print or to keep.


@attack
def output_bomb(paper):
    """Nineteen hundred cells, each of which prints as much as is kept."""
    for index in range(1_850):
        code = f"print('{index % 10}' * 30_000)"
        paper.cells.append(nbformat.v4.new_code_cell(code, id=f"loud-{index}"))


@attack
def compiler_bomb(paper):
    """Source that brings down whoever parses it: a hundred thousand brackets, signs and calls."""
    for bomb in ("(" * 100_000, "-" * 200_000 + "1", "a" + ".a" * 100_000, "x" + "()" * 100_000):
        paper.first(bomb)
    paper.first("x = [" + "[" * 90 + "]" * 90 + "] * 10**9")
    for cell in paper.answers:
        cell.source += "\n" + "-" * 200_000 + "1"


@attack
def impossible_module(paper):
    """Imports of names that no file may have, seven hundred magics, and a string of zeros."""
    paper.first("import attention." + "x" * 300)
    paper.first("import attention." + ".".join(["a"] * 5_000))
    paper.first("%time 1\n" * 700)
    paper.first('x = "%' + "0" * 40_000 + '"')


CELLS = {
    # An expression that the compiler itself evaluates, to something enormous.
    "constant_folding_bomb": """
        x = (((((1 << 127) ** 9) ** 9) ** 9) ** 9) ** 9
        y = 'x' * 4096 * 4096 * 4096
        # %% answer
        return 9 ** 9 ** 9 ** 9
    """,
}
attacks(__name__, "first", CELLS)


def enormous(path):
    """A notebook of 20 GiB, all of it a hole."""
    path.write_bytes(b'{"nbformat": 4, "cells": [')
    os.truncate(path, 20 * 2**30)


def nameless(path):
    """Notebooks whose file names are no text and steer the terminal."""
    for name in (b"\xff\xfe.ipynb", b"\x1b[2J\n\x07.ipynb"):
        (path.parent / os.fsdecode(name)).write_bytes(b"{}")


def folder_linked(path, target):
    """The submission's whole folder, a link."""
    path.parent.rmdir()
    path.parent.symlink_to(target)


# What lies in the notebook's place, made by a function of its path and of the solved notebook's.
PLACES = {
    # A named pipe: whoever opens it waits for ever.
    "a_pipe_for_a_notebook": lambda path, solution: os.mkfifo(path),
    "a_folder_for_a_notebook": lambda path, solution: os.mkdir(path),
    "link_to_the_solution": lambda path, solution: path.symlink_to(solution),
    "folder_linked_to_the_solution": lambda path, solution: folder_linked(path, solution.parent),
    "unprintable_names": lambda path, solution: nameless(path),
    # A device that never ends, and a file of 20 GiB.
    "a_device_for_a_notebook": lambda path, solution: path.symlink_to("/dev/zero"),
    "an_enormous_file": lambda path, solution: enormous(path),
}


def placed(make):
    """A builder of what ``make`` puts in the notebook's place."""

    def build(paper):
        solution = Path(paper.traps.course, "solutions", paper.lesson, f"{paper.lesson}.ipynb")
        paper.special = lambda path: make(path, solution)

    return build


for name, make in PLACES.items():
    endless = name in ("a_device_for_a_notebook", "an_enormous_file")
    register(name, __name__, placed(make), stock=not endless)


# What lies beside the notebook.


@attack
def pipes_beside_the_notebook(paper):
    """Named pipes in place of timestamp.txt and data files."""

    def make(path):
        nbformat.write(paper.notebook, path)
        for name in ("timestamp.txt", "data.csv", "helper.py"):
            os.mkfifo(path.parent / name)

    paper.special = make


@attack(stock=False)
def devices_beside_the_notebook(paper):
    """Links to /dev/zero and to the grader's own files beside the notebook."""
    paper.links["timestamp.txt"] = "/dev/zero"
    paper.links["data.csv"] = "/dev/zero"
    paper.links["gradebook.db"] = "@COURSE@/class/gradebook.db"


@attack
def timestamp_of_nonsense(paper):
    """A timestamp that is no time, with control characters and a script."""
    paper.files["timestamp.txt"] = b"\xff\x00 tomorrow <script>\n'; drop table grade; --" * 50


@attack
def another_name(paper):
    """The notebook under another name, beside an innocent file with a right answer in it."""
    text = nbformat.writes(paper.solved)
    for name in ("right.ipynb", "solution.ipynb"):
        paper.files[name] = text.encode()
    paper.files[f".ipynb_checkpoints/{paper.lesson}-checkpoint.ipynb"] = text.encode()
