"""The call that is shown tells a wrong answer from the right one, or the check asks again."""

import os
import textwrap

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder import ROOT
from autograder.checking.toolbox import registry
from autograder.explaining import explanation, program, replay
from autograder.grading.classroom import sample_class
from autograder.inside.messages.values import same
from autograder.settings import USUAL
from tests.autograder.explaining.conftest import sections
from tests.autograder.explaining.here import Here

FIRST = ("01_kernel_regression", "nadaraya_watson")
CHECKS = ROOT / "autograder" / "checks" / "getting_started.py"


def cells(slug, answer):
    """What runs before the check in a notebook with this answer."""
    first = next(cell for cell in sample_class.solved(slug).cells if cell.cell_type == "code")
    library = f"from attention.{slug.partition('_')[2]} import *"
    return [first.source, library, answer]


def shown(slug, exercise, answer):
    """(the cells, the Replay, the sections of the call) of an answer to an exercise."""
    item, before = registry.find(exercise), cells(slug, textwrap.dedent(answer))
    made = replay.replay(item, Here(), before, "  seed      77", USUAL)
    said = explanation._call(made, item, Here(), before)
    return before, made, sections(f"── The call ──\n{said}")


CASES = {
    ("07_multi_head_attention", "head_updates"): "def head_updates(heads, W_o):\n"
    "    return heads @ W_o.reshape(heads.shape[3], heads.shape[1], -1).transpose(0, 1)",
    ("01_kernel_regression", "LearnedBandwidth"): """
        class LearnedBandwidth(nn.Module):
            def __init__(self, bandwidth):
                super().__init__()
                self.log_bandwidth = nn.Parameter(torch.tensor(float(bandwidth)))
            def forward(self, x, x_train, y_train):
                return nadaraya_watson(x, x_train, y_train, self.log_bandwidth)
    """,
    ("05_scaled_dot_product_attention", "SelfAttentionHead"): """
        class SelfAttentionHead(nn.Module):
            def __init__(self, d_model, d_k):
                super().__init__()
                self.W_q, self.W_k, self.W_v = (nn.Linear(d_model, d_k) for _ in range(3))
            def forward(self, x, mask=None):
                return scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)
    """,
    FIRST: """
        def nadaraya_watson(x, x_train, y_train, bandwidth):
            scores = -(x[:, None] - x_train).abs() / (2 * bandwidth**2)
            return torch.softmax(scores, 1) @ y_train
    """,
}


@pytest.mark.parametrize(("slug", "exercise"), CASES)
def test_the_program_tells_the_answer_from_the_right_one(slug, exercise):
    before, _, found = shown(slug, exercise, CASES[slug, exercise])
    assert "AUTOGRADER_SEED" not in found["program"]
    prints = [program.by_student(found["program"], Here(), one) for one in (before, before[:2])]
    assert prints == found["shown"]
    assert program.plain(prints[0]) != program.plain(prints[1])
    assert len(found["program"].splitlines()) < 40


def test_the_program_says_where_the_answer_fails():
    *_, found = shown(*FIRST, CASES[FIRST])
    assert found["program"].startswith("# line 3, `x[:, None] - x_train`\n")


def test_a_module_with_other_parameters_is_shown_by_their_shapes():
    key = "05_scaled_dot_product_attention", "SelfAttentionHead"
    *_, found = shown(*key, CASES[key])
    prints, right = found["shown"]
    assert "'W_q.bias'" in prints and "bias" not in right


def test_a_stage_is_told_by_a_call_of_its_own():
    answer = """
        def nadaraya_watson(x, x_train, y_train, bandwidth):
            weights = torch.exp(-((x[:, None] - x_train) ** 2) / (2 * bandwidth**2))
            return (weights * y_train).sum(1) / weights.sum(1)
    """
    _, made, found = shown(*FIRST, answer)
    assert made.failure.lost == ("far from all examples",)
    prints, right = found["shown"]
    assert "nan" in prints and "nan" not in right


def test_what_depends_on_earlier_calls_is_asked_by_the_check(monkeypatch):
    monkeypatch.setattr(os, "environ", {**os.environ})
    answer = """
        calls = []
        def attention_weights(similarity):
            calls.append(similarity)
            similarity = similarity + (similarity.sum(dim=1, keepdim=True) == 0)
            return similarity / similarity.sum(dim=1, keepdim=True) / (1 + (len(calls) > 1))
    """
    before, _, found = shown("01_kernel_regression", "attention_weights", answer)
    assert 'os.environ["AUTOGRADER_SEED"] = "77"' in found["program"]
    told = program.by_student(found["program"], Here(), before)
    assert program.plain(told).startswith("attention_weights:")
    assert found["shown"][1] == "attention_weights: correct."


def test_where_four_digits_hide_the_difference_more_are_printed():
    answer = "def softmax(scores, dim):\n    return torch.softmax(scores * {}, dim)"
    for factor, is_hidden in ((1.00003, True), (2, False)):
        *_, found = shown("00_getting_started", "softmax", answer.format(factor))
        assert ("set_printoptions(precision=12)" in found["program"]) == is_hidden


def changed(monkeypatch, before, after):
    """The check of uniform_average with another text at one place."""
    text = CHECKS.read_text(encoding="utf-8")
    mended = text.replace(before, after, 1)
    assert mended != text
    names = {"__name__": "autograder.checks.getting_started"}
    monkeypatch.setattr(registry, "_checks", {**registry._checks})
    exec(compile(mended, str(CHECKS), "exec"), names)
    return registry.find("uniform_average")


def test_a_check_that_refuses_the_courses_own_answer_is_said_to_be_wrong(monkeypatch):
    item = changed(monkeypatch, "torch.tensor([3.0, 1.0]", "torch.tensor([3.0, 1.5]")
    right = "def uniform_average(values):\n    return values.sum(0) / len(values)"
    _, made, found = shown("00_getting_started", item.name, right)
    said = explanation._wrong(made, item, "00_getting_started")
    assert said.startswith("The course's own answer fails this check, too: the check is wrong.")
    assert "expected  [1] = 1.5" in said and "`autograder verify 00`" in said
    lines = CHECKS.read_text(encoding="utf-8").splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "expect.close(student(by_hand)" in line)
    assert f"Mend autograder/checks/getting_started.py:{number}" in said
    prints, own = found["shown"]
    assert prints == own
    monkeypatch.undo()
    _, made, _ = shown(
        "00_getting_started", item.name, "def uniform_average(values):\n    return 1"
    )
    assert explanation._wrong(made, item, "00_getting_started") == ""


def test_a_check_that_refuses_rounding_is_said_to_be_too_strict(monkeypatch):
    close = "expect.close(average, expected, what, atol=NEAR)"
    item = changed(monkeypatch, close, "expect.true(torch.equal(average, values.mean(0)), what)")
    rounded = "def uniform_average(values):\n    return (values / len(values)).sum(0)"
    assert (
        "the check may be too strict" in shown("00_getting_started", item.name, rounded)[2]["note"]
    )
    other = "def uniform_average(values):\n    return values.mean(0)[None]"
    assert "too strict" not in shown("00_getting_started", item.name, other)[2]["note"]


DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.bool]


@given(st.lists(st.integers(0, 3), max_size=3), st.sampled_from(DTYPES))
def test_what_is_written_is_the_same_value(shape, dtype):
    tensor = (torch.randn(shape, dtype=torch.float64) * 100).to(dtype)
    odd = [1, "two", None, True, (3.5,), float("nan"), {"rows": torch.tensor([float("-inf")])}]
    for value in (tensor, odd):
        assert same(eval(program.written(value)), value)
