"""Checks of lesson 12. The oracles count what a real model multiplies and keeps, and train one."""

import math

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from attention.transformer import Transformer
from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.describe_values import two_numbers
from autograder.checking.toolbox.registry import check

F16, F32, F64 = torch.float16, torch.float32, torch.float64


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


@check(
    without={"care": "whole numbers go in, and one comes out"},
    rests_on=(
        "Count the floating-point operations of the matrix products",
        "returns an int: two operations for each product of two numbers",
        "once forward and twice backward",
        "Scores that a mask hides are computed, and count",
    ),
)
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


GRADIENTS_APART = {
    "gradients": "gradients go in, after backward: nothing is differentiated again",
}


def _scaled(draw, scale, *shapes):
    """Gradients times the scale, in float16, and the exact gradients that they stand for."""
    scaled = [draw.normal(*shape, scale=scale).to(F16) for shape in shapes]
    return scaled, [gradient.to(F32) / scale for gradient in scaled]


ON_A_GPU = "find and fix what fails on a GPU"  # what the lesson is about


@check(
    without=GRADIENTS_APART | {"float32": "what comes in is float16"},
    core=("device",),
    rests_on=(
        ON_A_GPU,
        "the gradients of the loss, a list of float32 tensors, or None if a number",
        "is infinite or NaN, and the step must be skipped",
        "A step that is skipped halves the scale",
        "after so many the scale is doubled",
        "The unscaled gradients are on the device of those that came in.",
    ),
)
def loss_scaling(student, draw):
    """By hand; underflow; inf and NaN anywhere skip; the scale grows; many steps of GradScaler."""
    got = student([torch.tensor([8.0], dtype=F16)], 1024.0, 5)
    _one_step(got, [torch.tensor([8.0 / 1024])], 1024.0, 6, "a gradient of 8 with scale 1024")
    tiny = torch.tensor([1e-3, -2e-3], dtype=F16)
    got = student([tiny], 65536.0, 0)
    what = "a gradient of 0.001 with scale 65536, which is 0 in float16"
    _one_step(got, [tiny.to(F32) / 65536], 65536.0, 1, what)
    thirds = torch.tensor([1.0, 100.0, 1000.0], dtype=F16)
    got = student([thirds], 3.0, 0)
    _one_step(got, [thirds.to(F32) / 3], 3.0, 1, "gradients of 1, 100 and 1000 with scale 3")
    scaled, exact = _scaled(draw, 8.0, (5, 3), (7,), (2, 6))
    got = student([draw.strided(gradient) for gradient in scaled], 8.0, 11, patience=13)
    _one_step(got, exact, 8.0, 12, "three tensors, good_steps=11, patience=13")
    got = student(scaled, 8.0, 12, patience=13)
    _one_step(got, exact, 16.0, 0, "good_steps=12, patience=13: this step is the 13th")
    got = student(scaled, 8.0, 1998)
    _one_step(got, exact, 8.0, 1999, "good_steps=1998 and the usual patience of 2000")
    got = student(scaled, 8.0, 1999)
    _one_step(got, exact, 16.0, 0, "good_steps=1999 and the usual patience of 2000")
    for place in (0, 1, 2):
        for bad in (math.inf, -math.inf, math.nan):
            broken = [gradient.clone() for gradient in scaled]
            broken[place].flatten()[-1:].fill_(bad)
            got = student(broken, 8.0, 12, patience=13)
            _one_step(got, None, 4.0, 0, f"one {bad} in tensor {place} of three")
    got = student([torch.tensor([math.inf], dtype=F16)], 1.0, 0)
    _one_step(got, None, 0.5, 0, "one inf with a scale of 1")
    both = torch.tensor([math.inf, -math.inf], dtype=F16)
    _one_step(student([scaled[0], both], 8.0, 3), None, 4.0, 0, "inf and -inf in one tensor")
    large = torch.full((40,), 60_000.0, dtype=F16)  # each is finite, their sum in float16 is not
    got = student([large], 2.0, 3)
    what = "40 gradients of 60000, all of them finite"
    _one_step(got, [large.to(F32) / 2], 2.0, 4, what)
    _many_steps(student, draw)
    scaled, exact = _scaled(draw, 8.0, (), (1, 3))
    with expect.care():
        _one_step(student(scaled, 8.0, 1), exact, 8.0, 2, "a tensor without axes, and another")


def _one_step(got, gradients, scale, good_steps, case):
    found, new_scale, count = expect.parts(got, "unscaled", "scale", "good_steps")
    if gradients is None:
        what = f"{case}: the step should be skipped, and unscaled is wrong"
        expect.true(found is None, what, expect.describe(found), "None")
    else:
        fits = isinstance(found, list | tuple) and len(found) == len(gradients)
        expected = f"a list of {len(gradients)} tensors"
        expect.true(fits, f"{case}: unscaled is wrong", expect.describe(found), expected)
        for number, (one, wanted) in enumerate(zip(found, gradients, strict=True)):
            expect.shape(one, wanted.shape)
            kind = str(one.dtype)
            what = f"{case}: the gradients of the loss should be float32"
            expect.true(one.dtype == F32, what, kind, str(F32))
            _same_size(one.double(), wanted.double(), f"{case}: tensor {number} is wrong")
    expect.close(new_scale, scale, f"{case}: the scale of the next step is wrong")
    expect.close(count, good_steps, f"{case}: good_steps is wrong")


def _same_size(one, wanted, what):
    """Equal up to rounding in shares of each number: 1e-8 is not near 0."""
    off = (~((one - wanted).abs() <= 1e-4 * wanted.abs())).nonzero().tolist()
    if off:
        index = tuple(off[0])
        shown = two_numbers(one[index].item(), wanted[index].item())
        place = f"{list(index)} = " if index else ""
        expect.true(False, what, *(place + number for number in shown))


def _many_steps(student, draw):
    """A run of steps, some of which overflow, beside PyTorch's own GradScaler."""
    weight = nn.Parameter(torch.zeros(3))
    sgd = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)
    scaler.scale(torch.ones(()))  # it makes its scale when it is first used
    scale, good_steps = 64.0, 0
    overflows = [False, False, True, True, *(draw.choice([False, False, True]) for _ in range(12))]
    for step, overflow in enumerate(overflows, start=1):
        gradient = draw.normal(3, scale=scale).to(F16)
        gradient[1] = math.inf if overflow else gradient[1]
        got = student([gradient], scale, good_steps, patience=3)
        before, weight.grad = weight.detach().clone(), gradient.to(F32)
        scaler.step(sgd)
        scaler.update()
        taken = None if overflow else [before - weight.detach()]
        case = f"step {step} of many, patience=3"
        found, new_scale, good_steps = expect.parts(got, "unscaled", "scale", "good_steps")
        expect.true((found is None) == overflow, f"{case}: a step is skipped, or is not")
        if taken is not None:
            expect.close(found[0], taken[0], f"{case}: the gradient is wrong", rtol=1e-3, atol=1e-5)
        scale = scaler.get_scale()
        expect.close(new_scale, scale, f"{case}: the scale differs from GradScaler's")


@check(
    without=GRADIENTS_APART,
    core=("device",),
    asks={
        "no token": "If no share has one, all are 0.",
    },
    rests_on=(
        ON_A_GPU,
        "those of the mean loss over the real tokens of its own share",
        "the gradients of the mean over all real tokens, which one process",
        "A process whose share has no token has gradients of 0",
        "If no share has one, all are 0.",
        "The gradients that come out are on the device of those that came in.",
    ),
)
def data_parallel_gradients(student, draw):
    """By hand; empty shares; then real gradients: shares of a batch against the whole batch."""
    two = [[torch.tensor([1.0, 2.0], dtype=F64)], [torch.tensor([5.0, 2.0], dtype=F64)]]
    case = "gradients [1, 2] and [5, 2] of 3 tokens and 1"
    _joined(student(two, [3, 1]), [torch.tensor([2.0, 2.0], dtype=F64)], case)
    empty = [two[0], [torch.zeros(2, dtype=F64)]]
    _joined(student(empty, [4, 0]), two[0], "gradients of 4 tokens and of none")
    with expect.care("no token"):
        _joined(student([empty[1]] * 2, [0, 0]), empty[1], "two shares without a token")
    with expect.care():
        _joined(student(two[:1], [7]), two[0], "one process")
    large = [[torch.tensor([[4e3], [0.0]], dtype=F64)], [torch.tensor([[0.0], [-8e3]], dtype=F64)]]
    expected = [torch.tensor([[1e3], [-6e3]], dtype=F64)]
    with expect.care():
        _joined(student(large, [1, 3]), expected, "gradients of thousands, of 1 token and of 3")
    x, y = draw.normal(20, 5), draw.normal(20)
    weight, bias = draw.normal(5), draw.normal()
    for tokens in ([3, 17], [4, 1, 9, 6], [5, 5, 10]):
        ends = [sum(tokens[: place + 1]) for place in range(len(tokens))]
        shares = [slice(end - count, end) for end, count in zip(ends, tokens, strict=True)]
        gradients = [_gradients_of(weight, bias, x[share], y[share]) for share in shares]
        given = [[draw.strided(one) for one in process] for process in gradients]
        expected = _gradients_of(weight, bias, x, y)
        case = f"shares of {tokens} tokens: one process with all {sum(tokens)} has other gradients"
        _joined(student(given, tokens), expected, case)


def _gradients_of(weight, bias, x, y):
    """Gradients of a mean over tokens."""
    leaves = [weight.clone().requires_grad_(), bias.clone().requires_grad_()]
    with torch.enable_grad():
        loss = (torch.tanh(x @ leaves[0] + leaves[1]) - y).square().mean()
    return list(torch.autograd.grad(loss, leaves))


def _joined(got, expected, case):
    fits = isinstance(got, list | tuple) and len(got) == len(expected)
    names = f"a list of {len(expected)} tensors, one for each parameter"
    expect.true(fits, f"{case}: the result is no such list", expect.describe(got), names)
    for number, (one, wanted) in enumerate(zip(got, expected, strict=True)):
        expect.shape(one, wanted.shape)
        expect.dtype(one, wanted.dtype)
        expect.close(one, wanted, f"{case}: tensor {number} is wrong")


def _shares(gradients, tokens):
    """For each process a list of tensors of the same shapes, and a number of tokens."""
    lists = isinstance(gradients, list | tuple) and isinstance(tokens, list | tuple)
    what = "gradients and tokens are two lists with an item for each process"
    shown = f"{expect.describe(gradients)}, {expect.describe(tokens)}"
    alike = lists and len(gradients) == len(tokens) > 0
    expect.true(alike, what, shown, "as in [[tensor], [tensor]], [3, 1]")
    counts = all(type(count) is int and count >= 0 for count in tokens) and sum(tokens) > 0
    what = "tokens are whole numbers from 0, not all of them 0"
    expect.true(counts, what, expect.describe(tokens), "as in [3, 1]")
    first = gradients[0]
    for process in gradients:
        fits = isinstance(process, list | tuple) and 0 < len(process) == len(first)
        fits = fits and all(map(torch.is_tensor, process))
        expected = "a list of tensors, as many for each process"
        what = "the gradients of a process are a list of tensors"
        expect.true(fits, what, expect.describe(process), expected)
        for one, other in zip(process, first, strict=True):
            expect.shape(one, other.shape)
            what, shown = "a gradient is no floating-point tensor", expect.describe(one)
            expect.true(one.is_floating_point(), what, shown, "as in torch.tensor([1.0])")
            expect.finite(one, "a gradient is not finite")
    for process, count in zip(gradients, tokens, strict=True):
        zero = count > 0 or not any(one.any() for one in process)
        expect.true(zero, "a share without tokens has gradients of 0", "others", "zeros")


@check(
    without=counterexamples.WITHOUT
    | {"care": "any input on which the answer is wrong will do, however it is made"},
    rests_on=(
        "Return an input for which `averages_the_processes` gives wrong gradients",
        "a tuple (gradients, tokens) as `data_parallel_gradients` takes them",
    ),
)
def break_data_parallel_gradients(student, draw):
    """An input on which averages_the_processes is wrong."""
    counterexamples.judge(
        student, "data_parallel_gradients", "averages_the_processes", allowed=_shares
    )
