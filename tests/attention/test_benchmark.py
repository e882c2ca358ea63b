"""The benchmarks of attention, of searches and of training: rows agree, tables are complete."""

import re

import pytest
import torch

from benchmarks import attention_kernels, decoding, training


@pytest.mark.parametrize("make", [attention_kernels.kernels, attention_kernels.tables])
def test_all_rows_compute_the_same(make):
    inputs, named = make(16, "cpu")
    assert attention_kernels.agree(list(named.values()), inputs) < 1e-5


def test_peak_memory_counts_what_is_held_at_once():
    def run():
        kept = torch.ones(2**18)  # 1 MiB
        for _ in range(3):  # 2 MiB, three times one after the other
            del_me = torch.ones(2**19)
            del del_me
        return kept

    assert 3 <= attention_kernels.peak_mib(run, "cpu") < 3.1


def test_each_block_has_a_row_for_each_way(capsys):
    attention_kernels.main(["--quick", "--lengths", "16", "--devices", "cpu"])
    shown = capsys.readouterr().out
    assert shown.count("F.scaled_dot_product_attention") == shown.count("loop over heads") == 2
    assert shown.count("fused, bfloat16") == 2 and shown.count("plain, kept tables") == 1


def test_searches_with_and_without_a_cache_are_compared(capsys, monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    decoding.main(["--sentences", "10", "--beam", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6 and "2,567,168 parameters, 10 sentences" in lines[0]
    assert sum("with a cache" in line for line in lines) == 2
    assert float(lines[-1].removeprefix("ratio: ")) > 0


@pytest.mark.long
def test_all_rungs_of_the_ladder_are_printed_and_the_last_is_compared(capsys, monkeypatch):
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1, "vocab_size": 40}
    monkeypatch.setitem(training.SIZES, "tiny", sizes)
    monkeypatch.setattr(training, "peak_flops", lambda device, dtype: 1e9)
    training.main(["--size", "tiny", "--device", "cpu", "--tokens", "64", "--quick"])
    lines = capsys.readouterr().out.splitlines()
    wanted = [name for name, _ in training.rungs(torch.device("cpu"), compiled=False)]
    shown = [name for name in wanted if any(line.startswith(f"  {name} ") for line in lines)]
    assert shown == wanted and len(wanted) == 5
    assert float(re.search(r"what helped: ([\d.]+)$", lines[-1])[1]) > 0
