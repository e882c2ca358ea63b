"""The benchmark of attention: rows agree, the table is complete."""

import functools

import pytest
import torch

from benchmarks import attention_kernels

MAKES = [attention_kernels.kernels, attention_kernels.tables] + [
    functools.partial(attention_kernels.layers, name=name)
    for name in attention_kernels.masks(16, "cpu")
]


@pytest.mark.parametrize("make", MAKES)
def test_all_rows_compute_the_same(make):
    inputs, named = make(16, "cpu")
    assert attention_kernels.agree([function for function, _ in named.values()], inputs) < 1e-5


def test_peak_memory_counts_what_is_held_at_once():
    def run():
        kept = torch.ones(2**18)  # 1 MiB
        for _ in range(3):  # 2 MiB, three times one after the other
            del_me = torch.ones(2**19)
            del del_me
        return kept

    assert 3 <= attention_kernels.peak_mib(run, "cpu") < 3.1


def test_the_table_ends_with_the_fused_layer(capsys):
    attention_kernels.main(["--quick", "--lengths", "16", "--devices", "cpu"])
    shown = capsys.readouterr().out
    assert shown.count("F.scaled_dot_product_attention") == 2
    assert shown.count("loop over heads") == 2
    assert shown.split("need_weights=False):")[1].count("  cpu   T=16") == 6
    assert shown.count("layer, causal mask (T, T), cpu, T=16, forward") == 2


def test_the_kernel_in_bfloat16_gives_the_same_but_for_rounding():
    inputs, named = attention_kernels.types(16, "cpu")
    assert 0 < attention_kernels.agree([function for function, _ in named.values()], inputs) < 0.05
