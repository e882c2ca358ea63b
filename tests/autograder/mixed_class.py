"""A class in which everything happens: damaged notebooks and answers that go wrong in every way."""

import json
import os
from dataclasses import dataclass

import nbformat

from tests.autograder.attacks.paper import KERNELS, Paper

EVERYTHING = "*"
NAME = "soft_lookup"  # the exercise that goes wrong where only one does


@dataclass(frozen=True)
class Case:
    """A way in which a submission goes wrong: what it loses, and words of the reason."""

    name: str
    build: object
    lost: str = ""
    words: str = ""


CASES: dict[str, Case] = {}


def case(lost="", words=""):
    """Register a builder of a Case; it gets a Paper with right answers."""

    def keep(builder):
        CASES[builder.__name__] = Case(builder.__name__, builder, lost, words)
        return builder

    return keep


def solved_paper(student, traps):
    """The submission of a student who has everything right."""
    paper = Paper(student, KERNELS, traps)
    paper.notebook = paper.solved
    return paper


def text(paper):
    """The notebook as JSON."""
    return nbformat.writes(paper.notebook)


def cell(paper, name=NAME):
    """The cell with this grade_id."""
    return next(
        one for one in paper.cells if one.metadata.get("nbgrader", {}).get("grade_id") == name
    )


def _file(name, words, content):
    """A case in which the notebook file has this content: bytes, or made from the right one."""

    def build(paper):
        paper.raw = content if isinstance(content, bytes) else content(text(paper))

    CASES[name] = Case(name, build, EVERYTHING if words else "", words)


def _edited(**fields):
    return lambda source: json.dumps({**json.loads(source), **fields}).encode()


R = {"kernelspec": {"language": "R", "display_name": "R 4.3", "name": "ir"}}
CONDA = {"kernelspec": {"language": "python", "display_name": "my env", "name": "conda-env-x"}}
_file("empty", "is empty", b"")
_file("blank_lines", "is empty", b"\n \n")
_file("not_json", "not valid JSON", b"Dear instructor, please find attached")
_file("web_page", "not valid JSON", b"<!DOCTYPE html><html>")
_file("cut_off", "not valid JSON", lambda source: source[: len(source) // 2].encode())
_file("noise", "not valid JSON", b"\x93\xff\x00" * 99)
_file("json_list", "not a notebook", b"[1, 2]")
_file("another_json", "not a notebook", b'{"name": "ada"}')
_file("no_list_of_cells", "no list of cells", _edited(cells={"a": 1}))
_file("format_99", "format 99", _edited(nbformat=99))
_file("kernel_of_r", "kernel is R 4.3, not Python", _edited(metadata=R))
_file("kernel_of_conda", "", _edited(metadata=CONDA))
_file("no_metadata", "", _edited(metadata=None))
_file("utf_16", "", lambda source: source.encode("utf-16"))
_file("byte_order_mark", "", lambda source: source.encode("utf-8-sig"))
_file("line_ends_of_windows", "", lambda source: source.replace("\\n", "\\r\\n").encode())


@case(EVERYTHING, "there is no 01_kernel_regression.ipynb in the submission")
def missing(paper):
    paper.special = lambda path: None


@case(EVERYTHING, "it must keep its name")
def renamed(paper):
    paper.files["01_kernel_regression (final).ipynb"] = text(paper).encode()
    paper.special = lambda path: None


@case()
def renamed_by_a_browser(paper):
    paper.files["01_kernel_regression (1).ipynb"] = text(paper).encode()
    paper.special = lambda path: None


@case(EVERYTHING, "is not a plain file")
def a_folder(paper):
    paper.special = os.mkdir


@case(EVERYTHING, "is larger than 50 MiB")
def too_large(paper):
    def make(path):
        path.touch()
        os.truncate(path, 60 * 2**20)

    paper.special = make


@case(EVERYTHING, "the notebook is empty")
def no_cells(paper):
    paper.notebook.cells = []


@case(NAME, "its cell is missing")
def answer_deleted(paper):
    paper.cells.remove(cell(paper))


@case(NAME, "its cell is not a code cell")
def answer_as_text(paper):
    place = paper.cells.index(cell(paper))
    text = nbformat.v4.new_markdown_cell(cell(paper).source, metadata=cell(paper).metadata)
    paper.cells[place] = text


@case()
def test_cell_edited(paper):
    cell(paper, f"check_{NAME}").source = "raise RuntimeError('this test is unfair')"


@case()
def test_cells_deleted(paper):
    for one in paper.tests:
        paper.cells.remove(one)


@case()
def test_cell_copied(paper):
    paper.cells.append(paper.copy_of(cell(paper, f"check_{NAME}")))


@case()
def points_changed(paper):
    for one in paper.tests:
        one.metadata.nbgrader["points"] = 0


@case()
def cells_without_metadata(paper):
    for one in paper.cells:
        one.metadata = {}


@case(EVERYTHING, "save it anew with JupyterLab")
def old_format(paper):
    paper.raw = json.dumps(nbformat.convert(paper.notebook, 3)).encode()


@case()
def own_cells_that_fail(paper):
    for source in ("1 / 0", "def broken(:", "%no_such_magic", "import no_such_module", "!false"):
        paper.first(source)


@case()
def own_cell_that_never_ends(paper):
    paper.first("while True:\n    pass")


@case()
def own_cell_that_kills_the_kernel(paper):
    paper.first("import os\nos.abort()")


@case()
def outputs_of_megabytes(paper):
    cell(paper).outputs = [nbformat.v4.new_output("stream", text="x" * 5_000_000)]


def _answer(name, words, source):
    """A case in which the cell of one exercise has this source."""

    def build(paper):
        right = cell(paper).source
        cell(paper).source = source.replace("RIGHT", right)

    CASES[name] = Case(name, build, NAME if words else "", words)


def _returning(name, words, *lines):
    """A case in which one function, whose right result is ``context``, ends with these lines."""
    body = "".join(f"\n    {line}" for line in lines)
    head = f"def {NAME}(query, keys, values, temperature):\n    "
    call = "context = right(query, keys, values, temperature)"
    source = f"RIGHT\nright = {NAME}\n{head}{call}{body}\n"
    _answer(name, words, source)


_answer("syntax_error", "stops with SyntaxError", f"def {NAME}(query, keys:\n    return query")
_answer("cell_fails", "stops with NameError", f"RIGHT\ndel {NAME}\nundefined")
_answer("another_function", "it is not defined", "def lookup(query, keys):\n    return query")
_answer("imported", "not written in the notebook", f"from torch import lerp as {NAME}")
_answer("no_function", "TypeError", f"{NAME} = 3")
_answer("fewer_arguments", "TypeError", f"def {NAME}(x):\n    return x")
_answer("cell_never_ends", "it took more than", "RIGHT\nwhile True: pass")
_answer("cell_dies", "it ended itself with status 7", "import os\nos._exit(7)")
_returning("wrong_shape", "the shape is wrong", "return context[None]")
_returning("enormous", "far too large", "return torch.zeros(1).expand(10**9)")
_returning("changes_its_inputs", "changes its inputs", "keys.data += 1", "return context")
_returning("raises", "your code raised ValueError", "raise ValueError('no')")
_returning("never_returns", "it took more than", "while True: pass")
_returning("recursion", "RecursionError", f"return {NAME}(query, keys, values, temperature)")
_returning("leaves", "SystemExit", "raise SystemExit")
_returning("dies", "it ended itself with status 3", "import os", "os._exit(3)")
_returning("detached", "no gradient flows back", "return context.detach()")
_returning("prints_a_lot", "", "print('x' * 10**6)", "return context")
_returning(
    "warns",
    "",
    "import sys, warnings",
    "warnings.warn('w')",
    "print(file=sys.stderr)",
    "return context",
)
