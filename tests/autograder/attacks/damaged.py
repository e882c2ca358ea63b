"""Files that are hard to read: bombs, pipes, links, damaged and oversized notebooks."""

import os
from pathlib import Path

import nbformat

from .paper import attack, attacks, register

CELL = '{"cell_type":"code","source":"0","metadata":{},"outputs":[],"execution_count":null},'
TWIN = '[{"cell_type": "code", "source": "pass", "metadata": {}, "outputs": []}]'


def before_cells(text, more):
    """The notebook's text with ``more`` where its list of cells begins."""
    return text.replace('"cells": [', more + '"cells": [', 1)


# What becomes of the notebook's text.
TEXTS = {
    # A hundred thousand cells.
    "cell_bomb": lambda text: text.replace('"cells": [', '"cells": [' + CELL * 100_000, 1),
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


# Cells that are hard to compile, to print or to keep.


@attack
def compiler_bomb(paper):
    """Source that brings down whoever parses it: a hundred thousand brackets, signs and calls."""
    for bomb in ("(" * 100_000, "-" * 200_000 + "1", "a" + ".a" * 100_000, "x" + "()" * 100_000):
        paper.first(bomb)
    paper.first("x = [" + "[" * 90 + "]" * 90 + "] * 10**9")
    for cell in paper.answers:
        cell.source += "\n" + "-" * 200_000 + "1"


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
    "folder_linked_to_the_solution": lambda path, solution: folder_linked(path, solution.parent),
    "unprintable_names": lambda path, solution: nameless(path),
}


def placed(make):
    """A builder of what ``make`` puts in the notebook's place."""

    def build(paper):
        solution = Path(paper.traps.course, "solutions", paper.lesson, f"{paper.lesson}.ipynb")
        paper.special = lambda path: make(path, solution)

    return build


for name, make in PLACES.items():
    register(name, __name__, placed(make))


# What lies beside the notebook.


@attack
def pipes_beside_the_notebook(paper):
    """Named pipes in place of timestamp.txt and data files."""

    def make(path):
        nbformat.write(paper.notebook, path)
        for name in ("timestamp.txt", "data.csv", "helper.py"):
            os.mkfifo(path.parent / name)

    paper.special = make


@attack
def devices_beside_the_notebook(paper):
    """Links to /dev/zero and to the grader's own files beside the notebook."""
    paper.links["timestamp.txt"] = "/dev/zero"
    paper.links["data.csv"] = "/dev/zero"
    paper.links["gradebook.db"] = "@COURSE@/class/gradebook.db"
