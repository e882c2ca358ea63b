"""Lesson 18's experiments against dense forms, and how memory is measured."""

import json
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
    positive_features,
)
from attention.experiments import efficient_attention
from attention.masked_attention import masked_attention
from attention.provided.files import ROOT
from attention.provided.measuring.memory import peak_mib
from attention.scaled_dot_product_attention import attention_multiplications
from benchmarks import efficient_attention as benchmark

STORED = json.loads((ROOT / "data" / "efficient_attention.json").read_text(encoding="utf-8"))


def qkv(T_q, T_k, d_k=6, d_v=5, lead=(2, 3), dtype=torch.float64):
    shapes = (T_q, d_k), (T_k, d_k), (T_k, d_v)
    return [torch.randn(*lead, *shape, dtype=dtype) for shape in shapes]


def test_tiles_multiply_as_often_as_the_table():
    q, k, v = qkv(64, 64, 8, 8, (2,), torch.float32)
    for attention in (masked_attention, lambda *qkv: flash_attention(*qkv, 16)):
        with FlopCounterMode(display=False) as count, torch.no_grad():
            attention(q, k, v)
        assert count.get_total_flops() == 2 * 2 * attention_multiplications(64, 64, 8, 8)


@pytest.mark.parametrize("block", [1, 7, 50, 128])
def test_causal_linear_attention_in_blocks(block):
    q, k, v = qkv(50, 50)
    similarity = (positive_features(q) @ positive_features(k).mT).tril()
    expected = similarity / similarity.sum(-1, keepdim=True) @ v
    found = efficient_attention.causal_linear_attention(positive_features, q, k, v, block)
    torch.testing.assert_close(found, expected)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 12))
def test_the_window_in_blocks_is_the_local_mask(T, window):
    q, k, v = qkv(T, T)
    band = torch.ones(T, T, dtype=torch.bool).triu(-window).tril(window)
    expected = masked_attention(q, k, v, band)
    torch.testing.assert_close(efficient_attention.window_in_blocks(q, k, v, window), expected)


def test_the_cache_is_what_the_tensors_take():
    layers = [torch.zeros(2, 3, 10, 5, dtype=torch.float16) for _ in range(4)]
    assert efficient_attention.kv_cache_bytes(10, 4, 3, 5) == sum(layer.nbytes for layer in layers)


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux counts the peak")


@LINUX
@pytest.mark.parametrize(
    ("asked", "got"), [pytest.param("", 1, marks=pytest.mark.long), ("torch.set_num_threads(4)", 4)]
)
def test_peak_memory_is_that_of_the_tensors_at_one_time(asked, got):
    """In a process of its own, where several threads have computed.

    What asks for threads of its own accord, as compiled code does, gets them, too.
    """
    program = f"""
import signal
import torch
from attention.provided.measuring.memory import peak_mib

def twenty():
    signal.alarm(300)  # the end of a process that waits for ever
    {asked}
    assert torch.get_num_threads() == {got}
    for _ in range(3):
        x = torch.ones(5, 2**20).square_().sum()

torch.set_num_threads(4)
x = torch.ones(500, 500)
(x @ x).softmax(-1)
assert peak_mib(twenty, "mps") is None
print(peak_mib(twenty), torch.get_num_threads(), (x @ x).softmax(-1).sum().item())
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    peak, threads, total = map(float, done.stdout.split())
    assert peak == pytest.approx(20, abs=1.5)
    assert threads == 4 and total == pytest.approx(500)


@LINUX
def test_a_measurement_of_memory_that_fails_says_why():
    with pytest.raises(RuntimeError, match="did not come to its end: IndexError: list index out"):
        peak_mib(lambda: [][0])
    with pytest.raises(RuntimeError, match="did not come to its end: it was stopped"):
        peak_mib(lambda: os.kill(os.getpid(), signal.SIGKILL))


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
