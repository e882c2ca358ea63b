"""Lesson 18's library against PyTorch and dense forms, its task, and what its command measures."""

import json
import math
import os
import signal
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from attention.efficient_attention import (
    flash_attention,
    flash_attention_backward,
    grouped_query_attention,
    linear_attention,
    linear_attention_step,
    online_softmax,
    positive_features,
)
from attention.experiments import efficient_attention
from attention.masked_attention import local_mask, masked_attention
from attention.provided.files import ROOT
from attention.provided.measuring.memory import peak_mib
from attention.provided.measuring.timing import shortest
from attention.scaled_dot_product_attention import attention_multiplications
from benchmarks import efficient_attention as benchmark

STORED = json.loads((ROOT / "data" / "efficient_attention.json").read_text(encoding="utf-8"))


def qkv(T_q, T_k, d_k=6, d_v=5, lead=(2, 3), dtype=torch.float64):
    shapes = (T_q, d_k), (T_k, d_k), (T_k, d_v)
    return [torch.randn(*lead, *shape, dtype=dtype) for shape in shapes]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 14), st.booleans())
def test_tiles_are_exact_whatever_the_block(T_q, T_k, block, causal):
    q, k, v = qkv(T_q, T_k)
    context, lse = flash_attention(q, k, v, block, causal)
    torch.testing.assert_close(
        context, F.scaled_dot_product_attention(q, k, v, is_causal=causal), rtol=1e-9, atol=1e-9
    )
    seen = torch.ones(T_q, T_k).bool().tril() if causal else torch.ones(T_q, T_k).bool()
    scores = (q @ k.mT / math.sqrt(6)).masked_fill(~seen, -math.inf)
    torch.testing.assert_close(lse, scores.logsumexp(-1))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(0, 99))
def test_an_online_softmax_is_a_softmax_in_any_blocks(sizes, seed):
    torch.manual_seed(seed)
    scores, v = 30 * torch.randn(5, sum(sizes)), torch.randn(sum(sizes), 3)
    scores[torch.rand_like(scores) < 0.5] = -math.inf
    state = torch.zeros(5, 3), torch.zeros(5), torch.full((5,), -math.inf)
    for block, values in zip(scores.split(sizes, 1), v.split(sizes), strict=True):
        state = online_softmax(*state, block, values)
    context, total, maximum = state
    assert torch.equal(maximum, scores.amax(1))
    empty = maximum == -math.inf
    assert not context[empty].any() and not total[empty].any()
    expected = scores[~empty].softmax(1) @ v
    torch.testing.assert_close(context[~empty] / total[~empty, None], expected)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 7), st.integers(1, 9), st.integers(1, 10))
def test_the_way_back_is_autograds(T_q, T_k, block):
    leaves = [x.requires_grad_() for x in qkv(T_q, T_k)]
    context, lse = flash_attention(*leaves, block)
    grad = torch.randn_like(context)
    expected = torch.autograd.grad(context, leaves, grad)
    inputs = [x.detach() for x in (*leaves, context, lse)]
    for got, wanted in zip(flash_attention_backward(*inputs, grad, block), expected, strict=True):
        torch.testing.assert_close(got, wanted)


def test_tiles_multiply_as_often_as_the_table():
    q, k, v = qkv(64, 64, 8, 8, (2,), torch.float32)
    for attention in (masked_attention, lambda *qkv: flash_attention(*qkv, 16)):
        with FlopCounterMode(display=False) as count, torch.no_grad():
            attention(q, k, v)
        assert count.get_total_flops() == 2 * 2 * attention_multiplications(64, 64, 8, 8)


def test_linear_attention_in_blocks_in_steps_and_all_at_once():
    q, k, v = qkv(50, 50)
    similarity = (positive_features(q) @ positive_features(k).mT).tril()
    expected = similarity / similarity.sum(-1, keepdim=True) @ v
    for block in (1, 7, 50, 128):
        torch.testing.assert_close(
            efficient_attention.causal_linear_attention(positive_features, q, k, v, block), expected
        )
    state, normaliser = torch.zeros(2, 3, 6, 5).double(), torch.zeros(2, 3, 6).double()
    for t in range(50):
        one = (x[:, :, t] for x in (q, k, v))
        context, state, normaliser = linear_attention_step(*one, state, normaliser)
        torch.testing.assert_close(context, expected[:, :, t])
    last = linear_attention(q[:, :, -1:], k, v)
    torch.testing.assert_close(last, expected[:, :, -1:])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 12))
def test_the_window_in_blocks_is_the_local_mask(T, window):
    q, k, v = qkv(T, T)
    expected = masked_attention(q, k, v, local_mask(T, window))
    torch.testing.assert_close(efficient_attention.window_in_blocks(q, k, v, window), expected)


@pytest.mark.parametrize("H_kv", [1, 2, 3, 6])
def test_grouped_queries_are_pytorchs(H_kv):
    q, k, v = torch.randn(2, 6, 5, 4), torch.randn(2, H_kv, 7, 4), torch.randn(2, H_kv, 7, 3)
    mask = torch.rand(5, 7) < 0.5
    mask[:, 0] = True
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    torch.testing.assert_close(grouped_query_attention(q, k, v, mask), expected)


def test_heads_that_cannot_be_shared_are_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"H_kv=4 does not divide H=6"):
        grouped_query_attention(*(torch.zeros(1, H, 2, 3) for H in (6, 4, 4)))


def test_the_cache_is_what_the_tensors_take():
    layers = [torch.zeros(2, 3, 10, 5, dtype=torch.float16) for _ in range(4)]
    assert efficient_attention.kv_cache_bytes(10, 4, 3, 5) == sum(layer.nbytes for layer in layers)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux counts the peak")
def test_peak_memory_is_that_of_the_tensors_at_one_time():
    # In a process of its own, so that nothing counts which other tests have left behind.
    program = """
import torch
from attention.provided.measuring.memory import peak_mib

def twenty():
    for _ in range(3):
        x = torch.ones(5, 2**20)
        del x

torch.set_num_threads(1)
print(peak_mib(twenty), peak_mib(twenty, "mps"))
"""
    said = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    peak, elsewhere = said.stdout.split()
    assert float(peak) == pytest.approx(20, abs=1.5)
    assert elsewhere == "None"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux counts the peak")
@pytest.mark.parametrize(
    ("asked", "got"), [pytest.param("", 1, marks=pytest.mark.long), ("torch.set_num_threads(4)", 4)]
)
def test_peak_memory_where_several_threads_have_computed(asked, got):
    # What asks for threads of its own accord, as compiled code does, gets them, too.
    program = f"""
import signal
import torch
from attention.provided.measuring.memory import peak_mib

def twenty():
    signal.alarm(300)  # the end of a process that waits for ever
    {asked}
    assert torch.get_num_threads() == {got}
    torch.ones(5, 2**20).square_().sum()

torch.set_num_threads(4)
x = torch.ones(500, 500)
(x @ x).softmax(-1)
print(peak_mib(twenty), torch.get_num_threads(), (x @ x).softmax(-1).sum().item())
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    peak, threads, total = map(float, done.stdout.split())
    assert peak == pytest.approx(20, abs=1.5)
    assert threads == 4 and total == pytest.approx(500)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux counts the peak")
def test_a_measurement_of_memory_that_fails_says_why():
    with pytest.raises(RuntimeError, match="did not come to its end: IndexError: list index out"):
        peak_mib(lambda: [][0])
    with pytest.raises(RuntimeError, match="did not come to its end: it was stopped"):
        peak_mib(lambda: os.kill(os.getpid(), signal.SIGKILL))


def test_the_shortest_run_is_in_milliseconds():
    def work():
        sum(range(100_000))

    assert 0.1 < shortest(work) < 1000


def test_pairs_are_asked_in_another_order_and_have_one_answer():
    keys, shown, answers = efficient_attention.make(20, 7, torch.Generator().manual_seed(3))
    for row, values, wanted in zip(keys.tolist(), shown.tolist(), answers.tolist(), strict=True):
        stored = dict(zip(row[:7], values, strict=True))
        assert len(stored) == 7
        assert [stored[key] for key in row[7:]] == wanted
    assert any(row[:7] != row[7:] for row in keys.tolist())


def test_recall_counts_what_is_right_by_distance():
    class Oracle(torch.nn.Module):
        """Right but for pairs that stand 5 positions back."""

        def forward(self, keys, shown):
            pairs = shown.shape[1]
            same = keys[:, pairs:, None] == keys[:, None, :pairs]
            place = same.int().argmax(dim=2)
            back = torch.arange(pairs, 2 * pairs) - place
            value = shown.gather(1, place)
            return F.one_hot(torch.where(back == 5, (value + 1) % 16, value), 16).float()

    share, distance = efficient_attention.right(Oracle(), 100, 8)
    assert distance[5] == 0 and distance[1:5].min() == 1 and distance[6:].min() == 1
    assert 0.8 < share < 1


def test_the_record_supports_what_the_lesson_says():
    steps, rows = STORED["settings"]["steps"], STORED["recall"]
    found = {(row["kind"], row["d_k"]): [] for row in rows}
    for row in rows:
        if row["steps"] == steps:
            found[row["kind"], row["d_k"]].append(row["right"]["32"])
    assert all(len(shares) == 3 for shares in found.values())
    for d_k in benchmark.D_KS:
        assert min(found["dense", d_k]) > 0.99
    means = [sum(found["linear", d_k]) / 3 for d_k in benchmark.D_KS]
    assert means == sorted(means) and means[0] < 0.5 and means[-1] > 0.99
    longer = [row["right"]["32"] for row in rows if row["steps"] > steps]
    assert max(longer) < 0.8 and len(longer) == 3
    for row in rows:
        if row["kind"] == "window":
            reach = benchmark.REACH
            assert min(row["by distance"][:reach]) > 0.95
            assert max(row["by distance"][reach:-3]) < 0.2
    recurrent = [us for _, us in STORED["step"]["recurrent"]]
    cache = [us for _, us in STORED["step"]["cache"]]
    assert max(recurrent) < 2 * min(recurrent) and cache[-1] > 50 * cache[0]
    dense = {T: peak for T, _, peak in STORED["cost"]["dense"]}
    assert dense[8192] == pytest.approx(4 * dense[4096], rel=0.1)
    assert max(dense) < benchmark.LENGTHS[-1]


@pytest.mark.every
@pytest.mark.long
def test_the_recorded_experiment_is_reproduced(tmp_path, monkeypatch):
    """One width, one seed, two kinds; and one length of the costs."""
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    monkeypatch.setattr(benchmark, "LONGER", (0, 4))
    monkeypatch.setattr(benchmark, "CACHED", (256,))
    monkeypatch.delitem(benchmark.KINDS, "window")
    to = tmp_path / "again.json"
    options = ["--to", str(to), "--seeds", "0", "--d-k", "16", "--lengths", "512", "--seconds", "0"]
    assert benchmark.main([*options, "--device", "cpu"]) == 0
    again = json.loads(to.read_text(encoding="utf-8"))
    for row in again["recall"]:
        same = [
            old
            for old in STORED["recall"]
            if all(old[name] == row[name] for name in ("kind", "d_k", "seed", "steps"))
        ]
        assert row["right"]["32"] == pytest.approx(same[0]["right"]["32"], abs=0.05)
    assert [block for block, _ in again["blocks"]] == [0, 32, 64, 128, 256, 512]
    assert again["cost"].keys() == STORED["cost"].keys()
    assert again["settings"].keys() == STORED["settings"].keys()
