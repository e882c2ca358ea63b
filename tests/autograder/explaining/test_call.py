"""The call that is shown for stored wrong answers: it tells them from the right one."""

import os
import textwrap

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder import cell_metadata
from autograder.checking.asking.questions import Question, Replied
from autograder.checking.toolbox import expect, registry
from autograder.checking.toolbox.failure import CheckFailed
from autograder.explaining import call, culprit, replay, running
from autograder.explaining.literals import written
from autograder.explaining.noted import Exchange
from autograder.grading.classroom import sample_class
from tests.autograder.explaining.here import Here
from tests.autograder.small_class import stored


def cells(slug, answer):
    """What runs before the check in a notebook with this answer."""
    first = next(cell for cell in sample_class.solved(slug).cells if cell.cell_type == "code")
    library = f"from attention.{slug.partition('_')[2]} import *"
    return [first.source, library, answer]


def shown(slug, exercise, answer):
    """(the cells, the Replay, the Call) of an answer, a text or the name of a stored one."""
    item = registry.find(exercise)
    known = [one.name for one in registry.stored_answers(item)]
    text = sample_class.cell_of(stored(slug, exercise, answer)) if answer in known else answer
    before = cells(slug, textwrap.dedent(text))
    made = replay.replay(item, Here(), before, "  seed      77", 0.25)
    return before, made, call.Caller(item, Here(), before).of(made)


CASES = {
    ("07_multi_head_attention", "split_heads"): "def split_heads(x, n_heads):\n"
    "    return x.reshape(len(x), n_heads, x.shape[1], -1)",
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
    ("01_kernel_regression", "distances"): "def distances(x, x_train):\n"
    "    return (x.as_strided((len(x), 1), (1, 1)) - x_train).abs()",
    ("13_decoding", "top_k_filter"): "def top_k_filter(logits, k):\n"
    "    drop = torch.ones(logits.shape, dtype=torch.bool)\n"
    "    drop = drop.scatter(1, logits.topk(min(k, logits.shape[1])).indices, False)\n"
    "    return logits.masked_fill(drop, -math.inf)",
}


@pytest.mark.parametrize(("slug", "exercise"), CASES)
def test_the_program_tells_the_answer_from_the_right_one(slug, exercise):
    before, made, found = shown(slug, exercise, CASES[slug, exercise])
    assert found.program and "AUTOGRADER_SEED" not in found.program
    assert running.by_student(found.program, Here(), before) == found.prints
    library = cells(slug, "")
    assert running.by_student(found.program, Here(), library) == found.right
    assert running.plain(found.prints) != running.plain(found.right)


def test_a_module_with_other_parameters_is_shown_by_their_shapes():
    key = "05_scaled_dot_product_attention", "SelfAttentionHead"
    *_, found = shown(*key, CASES[key])
    assert "'W_q.bias': (6,)" in found.prints
    assert "bias" not in found.right
    assert len(found.program.splitlines()) < 5


def test_the_parameter_of_which_the_check_speaks_is_shown():
    key = "01_kernel_regression", "LearnedBandwidth"
    _, made, found = shown(*key, CASES[key])
    assert made.question.request == "parameters"
    assert "tensor(0.5000" in found.prints
    assert "tensor(-0.6931" in found.right


def test_a_layout_in_memory_is_part_of_the_program_where_it_matters():
    key = "01_kernel_regression", "distances"
    *_, found = shown(*key, CASES[key])
    assert ".as_strided(" in found.program
    assert " 77.0, " in found.program  # what stands between the numbers


def test_a_call_with_large_arguments_is_replaced_by_a_smaller_one():
    slug, exercise = "07_multi_head_attention", "MultiHeadAttention"
    name = registry.mistakes(registry.find(exercise))[0].name
    _, made, found = shown(slug, exercise, name)
    assert "weights of 3024 numbers, drawn by the check from seed 77" in found.note
    assert "This smaller call of the same check fails, too" in found.note
    assert len(found.program.splitlines()) < 40


def test_without_a_smaller_one_the_check_asks_again(monkeypatch, capsys):
    monkeypatch.setattr(os, "environ", {**os.environ})
    answer = """
        class CachedAttention(nn.Module):
            def __init__(self, d_model, n_heads):
                super().__init__()
                self.n_heads, self.past = n_heads, None
                self.W_q, self.W_k, self.W_v, self.W_o = (
                    nn.Linear(d_model, d_model) for _ in range(4)
                )
            def split(self, x):
                return x.unflatten(2, (self.n_heads, -1)).transpose(1, 2)
            def forward(self, x):
                q, k, v = (self.split(W(x)) for W in (self.W_q, self.W_k, self.W_v))
                if self.past is not None:  # heads, not positions, are put behind each other
                    k, v = (torch.cat(pair, 1) for pair in zip(self.past, (k, v)))
                self.past = k, v
                context = torch.nn.functional.scaled_dot_product_attention(q, k, v)
                return self.W_o(context.transpose(1, 2).flatten(2))
    """
    before, made, found = shown("13_decoding", "CachedAttention", answer)
    assert 'os.environ["AUTOGRADER_SEED"] = "77"' in found.program
    assert running.plain(running.by_student(found.program, Here(), before)).startswith(
        "CachedAttention:yourcoderaisedRuntimeError."
    )
    right = running.by_student(found.program, Here(), cells("13_decoding", ""))
    assert right == found.right


def test_a_program_that_would_print_another_wrong_result_is_not_shown():
    answer = """
        calls = []
        def distances(x, x_train):
            calls.append(x)
            return (x[:, None] - x_train) * len(calls)
    """
    before, made, found = shown("01_kernel_regression", "distances", answer)
    assert made.failure.what == "the distances of (1, 5) from (1, -2, 4) are wrong"
    assert "AUTOGRADER_SEED" in found.program  # alone, this second call would be the first


def test_a_stage_is_told_by_the_call_that_lost_it():
    answer = """
        def nadaraya_watson(x, x_train, y_train, bandwidth):
            weights = torch.exp(-((x[:, None] - x_train) ** 2) / (2 * bandwidth**2))
            return (weights * y_train).sum(1) / weights.sum(1)
    """
    _, made, found = shown("01_kernel_regression", "nadaraya_watson", answer)
    assert made.failure.lost == ("far from all examples",)
    assert "-500.0" in found.program
    assert "nan" in found.prints and "nan" not in found.right


def test_the_call_is_that_of_the_line_that_failed():
    answer = """
        def nadaraya_watson(x, x_train, y_train, bandwidth):
            scores = -(x[:, None] - x_train).abs() / (2 * bandwidth**2)
            return torch.softmax(scores, 1) @ y_train
    """
    _, made, found = shown("01_kernel_regression", "nadaraya_watson", answer)
    assert made.failure.what.startswith("for x = (0,), x_train = (0, 2), y_train = (10, 40)")
    assert made.failure.got == "[0] = 22.4264"  # the first call differs, too, within its bounds
    assert "[10.0, 40.0]" in found.program
    assert (found.prints[8:15], found.right[8:11]) == ("22.4264", "20.")


def test_a_reply_is_known_again_in_another_shape():
    replies = torch.tensor(1.0), torch.tensor(2.0)
    log = [Exchange(Question(0, "call", ([], {})), Replied("value", one)) for one in replies]
    with pytest.raises(CheckFailed) as failed:
        expect.close(replies[1].reshape(1), torch.zeros(1), "it is wrong")
    wanted = [Replied("value", torch.tensor(0.0))] * 2
    assert culprit.exchange(failed.value, log, wanted) is log[1]


def test_of_several_calls_that_differ_the_smallest_is_shown():
    large, small = (Question(0, "call", ([torch.zeros(n)], {})) for n in (9, 2))
    log = [Exchange(one, Replied("value", 0.0)) for one in (large, small)]
    wanted = [Replied("value", 1.0)] * 2
    assert culprit.exchange(CheckFailed("of no line"), log, wanted) is log[1]


SHAPES = st.lists(st.integers(0, 3), max_size=3)


@given(
    SHAPES, st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.bool])
)
def test_a_tensor_is_written_to_its_last_digit(shape, dtype):
    tensor = (torch.randn(shape, dtype=torch.float64) * 100).to(dtype)
    again = eval(written(tensor))
    assert again.dtype == dtype and torch.equal(again, tensor)


@given(st.integers(2, 9), st.integers(2, 9))
def test_a_layout_is_written(rows, columns):
    for tensor in (
        torch.randn(rows, columns, dtype=torch.float64).T,
        torch.randn(columns).expand(rows, columns),
        torch.randn(rows, 2 * columns)[:, ::2],
    ):
        again = eval(written(tensor, layout=True))
        assert again.stride() == tensor.stride() and torch.equal(again, tensor)


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([float("inf"), -float("inf")]),
        [1, "two", None, True, (3.5,)],
        {"stand-in": "Tanh", "rows": torch.arange(600.0).reshape(2, 300)},
        torch.arange(24).reshape(2, 3, 4),
        (torch.ones(40), [torch.zeros(30)] * 3),
    ],
    ids=str,
)
def test_what_is_written_is_the_same_value(value):
    from autograder.inside.messages.values import same

    assert same(eval(written(value)), value)
    assert max(map(len, written(value, indent=4).splitlines())) <= 100


def test_cells_before_a_check_are_those_that_ran():
    notebook = {"cells": []}
    for source, how in (("a", "inside"), ("b", "skip"), ("c", "inside")):
        notebook["cells"].append({"source": source, "metadata": cell_metadata.to_run(how)})
    check = {"metadata": cell_metadata.metadata("check", "x", 1), "source": ""}
    assert replay.sources({"cells": [*notebook["cells"], check]}, "x") == ["a", "c"]
