"""Checks of lesson 12. The oracle counts the products of a real Transformer."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from attention.transformer import Transformer
from autograder.checking import expect
from autograder.checking.registry import check


class _Products(TorchDispatchMode):
    """Counts the multiplications of every matrix product."""

    def __init__(self):
        super().__init__()
        self.multiplications = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if name in ("mm", "bmm", "addmm", "baddbmm"):
            left = args[1 if "add" in name else 0]
            self.multiplications += result.numel() * left.shape[-1]
        return result


def _measured(T_k, T_q, source_size, **sizes):
    """Floating-point operations of a forward and a backward pass of a real Transformer."""
    model = Transformer(source_size, n_heads=1, dropout=0.0, **sizes)
    ids = torch.ones(1, T_k, dtype=torch.int64), torch.ones(1, T_q, dtype=torch.int64)
    with torch.enable_grad(), _Products() as products:
        model(*ids).sum().backward()
    return 2 * products.multiplications


@check
def training_flops(student, draw):
    """All sizes 1 by hand; each size alone; then what a real Transformer does, counted."""
    ones = {"T_k": 1, "T_q": 1, "d_model": 1, "d_ff": 1, "n_layers": 1, "vocab_size": 1}
    count, by_name = student(**ones), {name: student(**ones | {name: 2}) for name in ones}
    # Projections 3 · 4, scores and contexts 3 · 2, feed-forward 2 · 2, generator 1: 23, each
    # multiplied and added, once forward and twice backward.
    expect.close(count, 138, "one token on each side and all sizes 1: the count is wrong")
    expect.equal(count, 138, "the count should be an int")
    by_hand = {"vocab_size": 24, "n_layers": 45, "d_ff": 27, "T_q": 40, "T_k": 39, "d_model": 70}
    for name, per_pass in by_hand.items():
        what = f"{name}=2 and all other sizes 1: the count is wrong"
        expect.close(by_name[name], 6 * per_pass, what)
    T_k, T_q, d_model, d_ff, vocab_size = (2 * draw.integers(2, 12, 5)).tolist()
    n_layers = draw.choice([2, 3])
    sizes = {"d_model": d_model, "d_ff": d_ff, "n_layers": n_layers}
    expected = _measured(T_k, T_q, 5, target_size=vocab_size, **sizes)
    what = f"T_k={T_k}, T_q={T_q}, {sizes}, vocab_size={vocab_size}: a real Transformer does other"
    expect.close(student(T_k, T_q, **sizes, vocab_size=vocab_size), expected, what)
