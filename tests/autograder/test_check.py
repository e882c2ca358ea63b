"""The checks as a notebook calls them, in this process and in a real kernel."""

import logging
import re
import sys
import warnings

import nbclient
import nbformat
import pytest
import torch

from autograder import check
from autograder.checking.toolbox.expect import CheckFailed
from autograder.settings import Care


def right(scores, dim):
    return torch.softmax(scores, dim)


right.__module__ = "__main__"  # as a cell's functions


def wrong(scores, dim):
    return scores.exp() / scores.exp().sum()


@pytest.fixture(autouse=True)
def seed(monkeypatch):
    monkeypatch.setenv("AUTOGRADER_SEED", "12345")
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


def test_a_right_answer_prints_one_line(capsys):
    assert check.softmax(right) is None
    assert capsys.readouterr() == ("softmax: correct.\n", "")


@pytest.mark.parametrize(("share", "given"), [(0, 1.0), (0.25, 0.75), (1, None)])
def test_stock_nbgrader_gets_the_part_that_is_left(monkeypatch, share, given):
    def careless(scores, dim):
        torch.manual_seed(0)
        return torch.softmax(scores, dim)

    careless.__module__ = "__main__"
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    monkeypatch.setattr(check, "care", lambda: Care(share))
    monkeypatch.setattr(check, "_points", lambda item: 1.0)
    if given is None:
        with pytest.raises(CheckFailed, match="costs     100% of the points"):
            check.softmax(careless)
    else:
        assert check.softmax(careless) == given


def test_a_compiled_answer_is_judged_as_it_was_written(capsys):
    def backend(*_):
        raise AssertionError("it was compiled")

    assert check.softmax(torch.compile(right, backend=backend)) is None
    assert capsys.readouterr().out == "softmax: correct.\n"


def labels(said):
    return [line.split()[0] for line in said[1:] if line[2] != " "]


def test_a_wrong_answer_raises_the_four_lines(capsys):
    with pytest.raises(CheckFailed) as raised:
        check.softmax(wrong)
    said = str(raised.value).split("\n")
    assert said[0] == "softmax: the weights do not sum to 1 along dim=1."
    assert labels(said) == ["got", "expected", "likely", "seed"]
    assert max(map(len, said)) <= 88, "a long hint goes on in the next line"
    assert said[-1] == "  seed      12345"
    assert capsys.readouterr() == ("", "")


def test_a_seed_is_drawn_and_repeats_the_failure(monkeypatch):
    monkeypatch.delenv("AUTOGRADER_SEED")
    failures = []
    for _ in range(5):
        with pytest.raises(CheckFailed) as raised:
            check.softmax(wrong)
        failures.append(raised.value)
    assert len({failure.seed for failure in failures}) > 1
    monkeypatch.setenv("AUTOGRADER_SEED", str(failures[0].seed))
    with pytest.raises(CheckFailed) as raised:
        check.softmax(wrong)
    assert str(raised.value) == str(failures[0])


def test_preview_prints_and_never_raises(capsys):
    assert check.preview("softmax", wrong) is None
    assert capsys.readouterr().out.startswith("softmax: the weights do not sum to 1")
    check.preview("softmax", right)
    check.preview("softmax", None)
    said = capsys.readouterr().out
    assert said.startswith("softmax: correct.\nsoftmax: your code raised TypeError.\n")


def test_an_unknown_exercise_is_named_with_those_there_are():
    with pytest.raises(AttributeError) as raised:
        check.sofmax  # noqa: B018
    assert str(raised.value).startswith("no exercise is called 'sofmax'; there are: ")
    assert "softmax" in str(raised.value)
    with pytest.raises(Exception, match="no exercise is called 'sofmax'"):
        check.preview("sofmax", right)
    assert not hasattr(check, "_private")


def test_what_an_answer_prints_is_limited_and_warnings_are_no_failure(capsys):
    def noisy(scores, dim):
        warnings.warn("careful", stacklevel=1)
        print("to stderr", file=sys.stderr)
        logging.getLogger("student").warning("logged")
        print("x" * 10_000)
        return right(scores, dim)

    check.softmax(noisy)
    out, err = capsys.readouterr()
    first, *_, more, verdict = out.splitlines()
    assert (first, err, verdict) == ("to stderr", "", "softmax: correct.")
    assert len(out) < check.PRINTED_LIMIT + 200
    assert re.fullmatch(r"… \d+ more characters printed by softmax are not shown", more)


def test_in_a_notebook_an_imported_answer_is_refused(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    for answer, module in (
        (torch.softmax, "torch"),
        (torch.nn.Softmax(-1), "torch.nn.modules.activation"),
        (wrong, wrong.__module__),
    ):
        with pytest.raises(CheckFailed) as raised:
            check.softmax(answer)
        assert str(raised.value) == (
            "softmax: this answer was not written in the notebook.\n"
            f"  got       softmax from {module}\n"
            "  expected  a definition in the exercise's own cell"
        )
    check.softmax(right)
    assert capsys.readouterr().out == "softmax: correct.\n"


def test_outside_of_a_notebook_the_source_imports_its_answers(capsys):
    from attention.getting_started import softmax

    check.softmax(softmax)
    assert capsys.readouterr().out == "softmax: correct.\n"


# In a kernel: what each cell shows.
KERNEL = {
    "def softmax(scores, dim):\n    return torch.softmax(scores, dim)": "softmax: correct.",
    "def softmax(scores, dim):\n    return scores.exp() / scores.exp().sum()": (
        "softmax: the weights do not sum to 1 along dim=1."
    ),
    "def softmax(scores, dim):\n    largest = scores.amax(dim)\n    return largest.missing()": (
        "line 3 of its cell, in softmax: return largest.missing()"
    ),
    "def softmax(scores, dim):\n"
    "    import sys, warnings\n    warnings.warn('careful')\n"
    "    print('debugging', file=sys.stderr)\n"
    "    return torch.softmax(scores, dim)": "debugging\nsoftmax: correct.",
    "def softmax(scores, dim):\n    raise SystemExit": "softmax: your code raised SystemExit.",
    "from attention.getting_started import softmax": (
        "  got       softmax from attention.getting_started"
    ),
}


def test_what_is_shown_in_a_kernel():
    """A right answer's line, or the message in lines that are not too wide, and nothing else."""
    cells = [nbformat.v4.new_code_cell(f"{one}\n\ncheck.softmax(softmax)") for one in KERNEL]
    cells.insert(0, nbformat.v4.new_code_cell("import torch\nfrom autograder import check"))
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, kernel_name="python3", allow_errors=True)
    client.coalesce_streams = True
    client.execute()
    for cell, said in zip(notebook.cells[1:], KERNEL.values(), strict=True):
        (output,) = cell.outputs
        if output.output_type == "error":
            assert output.ename == "CheckFailed"
            assert " ".join(output.traceback).split() == output.evalue.split()
            assert max(map(len, output.traceback)) <= 88
            assert said in "\n".join(output.traceback)
        else:
            assert (output.name, set(said.splitlines())) == ("stdout", {*output.text.splitlines()})
