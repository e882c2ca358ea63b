"""The benchmarks of lesson 07's layer and of products: rows agree, tables are complete."""

import functools

import pytest
import torch
from torch.nn import functional as F

from attention.train.speed.onednn_products import by_onednn, onednn
from benchmarks import attention_kernels, products

MAKES = [attention_kernels.kernels, attention_kernels.shapes, attention_kernels.tables] + [
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
    over_pytorch, over_no_mask = shown.split("need_weights=False):")[1].split("over without:")
    assert over_pytorch.count("  cpu   T=16") == 6
    assert over_no_mask.count("  cpu   T=16") == 6
    assert over_no_mask.count("mask (T, T)") == 2
    assert shown.count("layer, causal mask (T, T), cpu, T=16, forward") == 2


def test_the_kernel_in_bfloat16_gives_the_same_but_for_rounding():
    inputs, named = attention_kernels.types(16, "cpu")
    assert 0 < attention_kernels.agree([function for function, _ in named.values()], inputs) < 0.05


@pytest.mark.skipif(onednn() is None, reason="this PyTorch has no product of oneDNN's")
def test_the_products_are_those_of_a_linear_layer():
    made = products.kinds(5, 3, 4)
    x, weight = (factor.requires_grad_() for factor in made["result"])
    result = F.linear(x, weight)
    gradients = torch.autograd.grad(result, [x, weight], made["to x"][0])
    for wanted, (left, right) in zip([result, *gradients], made.values(), strict=True):
        torch.testing.assert_close(left @ right.T, wanted)
        torch.testing.assert_close(by_onednn(left.detach(), right.detach()), wanted)


@pytest.mark.skipif(onednn() is None, reason="this PyTorch has no product of oneDNN's")
def test_the_table_of_products_has_a_row_for_each_layer(capsys):
    threads = torch.get_num_threads()
    products.main(["--sizes", "mini", "--rows", "5", "--seconds", "0"])
    torch.set_num_threads(threads)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 4 and "(16 -> 48)" in shown[1]
