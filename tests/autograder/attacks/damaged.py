"""Files that are hard to read: bombs, pipes, links, damaged and oversized notebooks."""

import json
import os

import nbformat

from .paper import KERNELS, attack


@attack
def metadata_bomb(paper):
    """A notebook of 100 MB, nearly all of it metadata of one cell."""
    bomb = '{"bomb": [' + ",".join(['"' + "x" * 1000 + '"'] * 100_000) + "], "
    text = nbformat.writes(paper.notebook)
    paper.raw = text.replace('"metadata": {', f'"metadata": {bomb}', 1).encode()


@attack
def cell_bomb(paper):
    """A hundred thousand cells."""
    cell = '{"cell_type":"code","source":"0","metadata":{},"outputs":[],"execution_count":null},'
    text = nbformat.writes(paper.notebook)
    paper.raw = text.replace('"cells": [', '"cells": [' + cell * 100_000, 1).encode()


@attack
def small_object_bomb(paper):
    """45 MB of the smallest JSON objects."""
    text = nbformat.writes(paper.notebook).rstrip()
    assert text.endswith("}")
    paper.raw = text[:-1].encode() + b',"bomb": [' + b",".join([b"{}"] * 15_000_000) + b"]}"


@attack
def output_bomb(paper):
    """Nineteen hundred cells, each of which prints as much as is kept."""
    for index in range(1_850):
        code = f"print('{index % 10}' * 30_000)"
        paper.cells.append(nbformat.v4.new_code_cell(code, id=f"loud-{index}"))


@attack
def deep_json(paper):
    """Metadata nested a hundred thousand levels deep."""
    text = nbformat.writes(paper.notebook)
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    paper.raw = text.replace('"metadata": {', f'"metadata": {{"deep": {deep},', 1).encode()


@attack
def moderately_deep_json(paper):
    """Metadata nested just so deep that JSON can be read and nothing else works."""
    text = nbformat.writes(paper.notebook)
    deep = '{"a":' * 900 + "1" + "}" * 900
    paper.raw = text.replace('"metadata": {', f'"metadata": {{"deep": {deep},', 1).encode()


@attack
def impossible_numbers(paper):
    """Numbers of ten thousand digits, infinities and NaN in the format's own fields."""
    content = json.loads(nbformat.writes(paper.notebook))
    content["nbformat_minor"] = float("inf")
    content["cells"][1]["execution_count"] = float("nan")
    text = json.dumps(content)
    paper.raw = text.replace('"nbformat": 4', '"nbformat": 4, "big": ' + "9" * 10_000).encode()


@attack
def repeated_keys(paper):
    """Two lists of cells in one file: readers differ in which they believe."""
    text = nbformat.writes(paper.notebook)
    twin = json.dumps([{"cell_type": "code", "source": "pass", "metadata": {}, "outputs": []}])
    paper.raw = text.replace('"cells": [', f'"cells": {twin}, "cells": [', 1).encode()


@attack
def compiler_bomb(paper):
    """Source that brings down whoever parses it: a hundred thousand brackets, signs and calls."""
    for bomb in ("(" * 100_000, "-" * 200_000 + "1", "a" + ".a" * 100_000, "x" + "()" * 100_000):
        paper.first(bomb)
    paper.first("x = [" + "[" * 90 + "]" * 90 + "] * 10**9")
    for cell in paper.answers:
        cell.source += "\n" + "-" * 200_000 + "1"


@attack
def constant_folding_bomb(paper):
    """An expression that the compiler itself evaluates, to something enormous."""
    paper.first("x = (((((1 << 127) ** 9) ** 9) ** 9) ** 9) ** 9\ny = 'x' * 4096 * 4096 * 4096")
    paper.answer("return 9 ** 9 ** 9 ** 9")


@attack
def impossible_module(paper):
    """Imports of names that no file may have, seven hundred magics, and a string of zeros."""
    paper.first("import attention." + "x" * 300)
    paper.first("import attention." + ".".join(["a"] * 5_000))
    paper.first("%time 1\n" * 700)
    paper.first('x = "%' + "0" * 40_000 + '"')


@attack
def unwritable_text(paper):
    """Lone surrogates, NUL and byte order marks in the cells' text."""
    for cell in paper.answers:
        cell.source += "  # MARKER"
    paper.cells.insert(1, nbformat.v4.new_markdown_cell("MARKER"))
    text = json.dumps(json.loads(nbformat.writes(paper.notebook)))
    paper.raw = text.replace("MARKER", r"\ud800 \u0000 \udfff \ufeff \u2028").encode()


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
def unknown_formats(paper):
    """A notebook of the old format 3, with hostile worksheets."""
    content = json.loads(nbformat.writes(paper.notebook))
    worksheets = [{"cells": [{"cell_type": "code", "input": 7, "outputs": [{"output_type": "x"}]}]}]
    paper.raw = json.dumps(
        {"nbformat": 3, "nbformat_minor": "x", "worksheets": worksheets, "metadata": content}
    ).encode()


@attack
def a_pipe_for_a_notebook(paper):
    """A named pipe in the notebook's place: whoever opens it waits for ever."""
    paper.special = os.mkfifo


@attack
def a_folder_for_a_notebook(paper):
    """A folder in the notebook's place."""
    paper.special = os.mkdir


@attack(stock=False)
def a_device_for_a_notebook(paper):
    """A link to /dev/zero in the notebook's place: it never ends."""
    paper.special = lambda path: path.symlink_to("/dev/zero")


@attack(stock=False)
def an_enormous_file(paper):
    """A notebook of 20 GiB, all of it a hole."""

    def make(path):
        path.write_bytes(b'{"nbformat": 4, "cells": [')
        os.truncate(path, 20 * 2**30)

    paper.special = make


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
def link_to_the_solution(paper):
    """A symbolic link to the solved notebook in the notebook's place."""
    target = f"{paper.traps.course}/solutions/{paper.lesson}/{paper.lesson}.ipynb"
    paper.special = lambda path: path.symlink_to(target)


@attack
def folder_linked_to_the_solution(paper):
    """The submission's whole folder a symbolic link to the folder of the solved notebook."""
    target = f"{paper.traps.course}/solutions/{paper.lesson}"

    def make(path):
        path.parent.rmdir()
        path.parent.symlink_to(target)

    paper.special = make


@attack
def another_name(paper):
    """The notebook under another name, beside an innocent file with a right answer in it."""
    text = nbformat.writes(paper.solved)
    paper.files["right.ipynb"] = text.encode()
    paper.files["solution.ipynb"] = text.encode()
    paper.files[".ipynb_checkpoints/" + paper.lesson + "-checkpoint.ipynb"] = text.encode()


@attack(lesson=KERNELS)
def another_lessons_notebook(paper):
    """The solved notebook of an easier lesson under this lesson's name."""
    from autograder.grading.classroom import sample_class

    paper.raw = nbformat.writes(sample_class.solved("00_getting_started")).encode()


@attack
def unprintable_names(paper):
    """In place of the notebook, one whose file name is no text and steers the terminal."""

    def make(path):
        for name in (b"\xff\xfe.ipynb", b"\x1b[2J\n\x07.ipynb"):
            (path.parent / os.fsdecode(name)).write_bytes(b"{}")

    paper.special = make


@attack
def kernel_of_half_a_letter(paper):
    """A foreign kernel whose name cannot be written to any file."""
    content = json.loads(nbformat.writes(paper.notebook))
    content["metadata"]["kernelspec"] = {"language": "R", "display_name": "\ud800\x1b[2J\n"}
    paper.raw = json.dumps(content).encode()


@attack
def megabytes_of_source(paper):
    """Forty megabytes of text in one cell, to be kept and shown by everyone after."""
    paper.first("#" + "x" * 40_000_000)
