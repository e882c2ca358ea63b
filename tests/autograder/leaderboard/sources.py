"""What a lesson's source says of its board, and a board with one entry."""

import csv

import nbformat

from autograder import ROOT
from autograder.commands import cli
from autograder.grading.notebook.submission import Cell
from autograder.leaderboard import entries


def in_source(slug, task):
    """The settings in the cell with which a lesson ends, as the board of ``task`` reads them.

    All of them stand there: none is filled in.
    """
    text = (ROOT / "source" / f"{slug}.py").read_text(encoding="utf-8")
    cell = text[text.index("leaderboard = {") :].replace('"name": ""', '"name": "a"')
    found = entries.find([Cell("code", cell)], task.KINDS, {})
    assert found.name == "a"
    return found.settings


def ranked(tmp_path, slug, source):
    """Hand in a cell and run the command: the rows of the table by entry, and the page."""
    folder = tmp_path / "class" / "submitted" / "zoe" / slug
    folder.mkdir(parents=True)
    cell = nbformat.v4.new_code_cell(source)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / f"{slug}.ipynb")
    (tmp_path / "solutions" / slug).mkdir(parents=True)
    (tmp_path / "solutions" / slug / f"{slug}.ipynb").write_text("{}")
    assert cli.main(["leaderboard", slug[:2], "--course", str(tmp_path)]) == 0
    table = tmp_path / "class" / "leaderboard" / f"{slug}.csv"
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    return {row["entry"]: row for row in rows}, table.with_suffix(".html").read_text("utf-8")
