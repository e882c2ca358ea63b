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
    monkeypatch.setattr(check, "care_share", lambda: share)
    monkeypatch.setattr(check, "_points", lambda item: 1.0)
    if given is None:
        with pytest.raises(CheckFailed, match="costs     100% of the points"):
            check.softmax(careless)
    else:
        assert check.softmax(careless) == given


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


def test_warnings_and_stderr_are_no_failure(capsys):
    def noisy(scores, dim):
        warnings.warn("careful", stacklevel=1)
        print("to stderr", file=sys.stderr)
        logging.getLogger("student").warning("logged")
        return right(scores, dim)

    check.softmax(noisy)
    out, err = capsys.readouterr()
    assert err == ""
    assert "to stderr" in out
    assert out.endswith("\nsoftmax: correct.\n")


def test_what_an_answer_prints_is_limited(capsys):
    def chatty(scores, dim):
        print("x" * 10_000)
        return right(scores, dim)

    check.softmax(chatty)
    out, err = capsys.readouterr()
    printed, more, verdict = out.splitlines()
    assert printed == "x" * check.PRINTED_LIMIT
    assert re.fullmatch(r"… \d+ more characters printed by softmax are not shown", more)
    assert verdict == "softmax: correct."
    assert err == ""


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


# In a kernel. One runs all cells; each test reads the outputs of one.

CELLS = {
    "import": "import torch\nfrom autograder import check",
    "right": "def softmax(scores, dim):\n"
    "    return torch.softmax(scores, dim)\n\ncheck.softmax(softmax)",
    "wrong": "def softmax(scores, dim):\n"
    "    return scores.exp() / scores.exp().sum()\n\ncheck.softmax(softmax)",
    "raises": "def softmax(scores, dim):\n"
    "    largest = scores.amax(dim)\n"
    "    return (scores - largest).no_such_method()\n\ncheck.softmax(softmax)",
    "stub": "def softmax(scores, dim):\n"
    "    raise NotImplementedError('softmax: write about 3 lines')\n\ncheck.softmax(softmax)",
    "noisy": "import sys, warnings\n"
    "def softmax(scores, dim):\n"
    "    warnings.warn('careful')\n"
    "    print('debugging', file=sys.stderr)\n"
    "    return torch.softmax(scores, dim)\n\ncheck.softmax(softmax)",
    "interrupts": "def softmax(scores, dim):\n    raise SystemExit\n\ncheck.softmax(softmax)",
    "preview": "check.preview('softmax', lambda scores, dim: scores)",
    "imported": "from attention.getting_started import softmax\n\ncheck.softmax(softmax)",
    "unknown": "check.sofmax(softmax)",
}


@pytest.fixture(scope="module")
def kernel():
    """Outputs of every cell, by name, as one kernel gave them."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, kernel_name="python3", allow_errors=True)
    client.coalesce_streams = True
    client.execute()
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}


def error_of(outputs):
    (output,) = outputs
    assert output.output_type == "error"
    assert output.ename == "CheckFailed"
    # The message, in lines that are not too wide, and nothing else.
    assert " ".join(output.traceback).split() == output.evalue.split()
    return output.traceback


def text_of(outputs):
    (output,) = outputs
    assert (output.output_type, output.name) == ("stream", "stdout")
    return output.text


def test_kernel_right(kernel):
    assert text_of(kernel["right"]) == "softmax: correct.\n"


def test_kernel_wrong_shows_exactly_the_message(kernel):
    said = error_of(kernel["wrong"])
    assert said[0] == "softmax: the weights do not sum to 1 along dim=1."
    assert labels(said) == ["got", "expected", "likely", "seed"]


def test_kernel_error_names_the_line(kernel):
    said = error_of(kernel["raises"])
    assert said[0].startswith("softmax: your code raised ")
    where = "line 3 of its cell, in softmax: return (scores - largest).no_such_method()"
    assert " " * 12 + where in said


def test_kernel_stub(kernel):
    assert error_of(kernel["stub"]) == ["softmax: nothing here yet: write about 3 lines."]


def test_kernel_noise_is_no_stderr(kernel):
    said = text_of(kernel["noisy"])
    assert said.startswith("debugging\n")
    assert said.endswith("softmax: correct.\n")


@pytest.mark.long
def test_kernel_survives_an_exit(kernel):
    assert error_of(kernel["interrupts"])[0] == "softmax: your code raised SystemExit."


def test_kernel_preview(kernel):
    said = text_of(kernel["preview"]).split("\n")
    assert said[0].startswith("softmax: ")
    assert said[1].startswith("  got       ")


@pytest.mark.long
def test_kernel_refuses_an_import(kernel):
    said = error_of(kernel["imported"])
    assert said[0] == "softmax: this answer was not written in the notebook."
    assert said[1] == "  got       softmax from attention.getting_started"


def test_kernel_unknown_exercise(kernel):
    (output,) = kernel["unknown"]
    assert output.evalue.startswith("no exercise is called 'sofmax'; there are: ")
