"""The rehearsal device: what works on a GPU works there, and what CUDA refuses is refused."""

import dataclasses

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from attention.provided.measuring.saved_for_backward import kept_tensors
from autograder.checking.asking.probes import probes_of
from autograder.checking.asking.questions import replies
from autograder.checking.asking.right_answer import asked
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import reference
from autograder.inside.answer import AnswerRaised, LocalAnswer
from autograder.inside.device.rehearsal import (
    DEVICE,
    DeviceMismatch,
    Rehearsed,
    landed,
    rehearsal,
    rehearsed,
)
from autograder.inside.messages.values import leaves, same

X = torch.arange(12.0).reshape(3, 4) / 7
CPU = torch.tensor([1.0, 2.0, 3.0, 4.0])
INDEX = torch.tensor([2, 0])


def on_device(function, *args):
    """What ``function`` gives for tensors of the device, as tensors of the CPU."""
    with rehearsal():
        return landed(function(*map(rehearsed, args)))


def writes(x):
    y = x.clone()
    y[0] = 7.0
    y += 1
    y[:, 1].mul_(2)
    y[INDEX] = y[INDEX] * 3
    return y


WORKS = {
    "product": lambda x: x @ x.T,
    "softmax": lambda x: x.softmax(-1),
    "number": lambda x: 2 * x + 1,
    "no axes": lambda x: x * torch.tensor(3.0),
    "index": lambda x: x[INDEX],
    "mask as an index": lambda x: x[torch.tensor([True, False, True])],
    "mask": lambda x: x.masked_fill(x > 1, 0.0),
    "arange": lambda x: x + torch.arange(4, device=x.device),
    "zeros": lambda x: torch.zeros(3, 4, device=x.device) + x,
    "full_like": lambda x: torch.full_like(x, 2) + x,
    "tensor": lambda x: x * torch.tensor([1.0, 2, 3, 4], device=x.device),
    "as_tensor": lambda x: x * torch.as_tensor([1.0, 2, 3, 4], device=x.device),
    "new_zeros": lambda x: x.new_zeros(3, 4) + x + x.new_full((4,), 2.0),
    "new_tensor": lambda x: x + x.new_tensor([1.0, 2, 3, 4]),
    "moved": lambda x: x + CPU.to(x.device),
    "written": writes,
    "empty": lambda x: torch.empty(3, 4, device=x.device).copy_(x),
    "item": lambda x: x.sum().item(),
    "list": lambda x: x.tolist(),
    "to the CPU": lambda x: x.cpu() + CPU,
    "to numpy": lambda x: torch.from_numpy(x.detach().cpu().numpy()),
    "branch": lambda x: x if x.sum() > 0 else -x,
    "topk": lambda x: x.topk(2).indices,
    "fused": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "layer norm": lambda x: F.layer_norm(x, (4,)),
    "cross entropy": lambda x: F.cross_entropy(x, torch.tensor([1, 0, 2], device=x.device)),
    "one hot": lambda x: F.one_hot(torch.arange(3, device=x.device), 4) + x,
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
}


@pytest.mark.parametrize("name", WORKS)
def test_what_works_on_a_gpu_gives_the_numbers_of_the_cpu(name):
    found, expected = on_device(WORKS[name], X), WORKS[name](X)
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(found, expected)
    else:
        assert found == expected


REFUSED = {
    "sum": lambda x: x + CPU,
    "product": lambda x: x @ torch.ones(4, 2),
    "mask": lambda x: x.masked_fill(torch.ones(3, 4, dtype=torch.bool), 0.0),
    "where": lambda x: torch.where(torch.ones(3, 4, dtype=torch.bool), x, 0.0),
    "joined": lambda x: torch.cat([x, torch.ones(1, 4)]),
    "made": lambda x: torch.arange(4) * x,
    "added to": lambda x: torch.zeros(3, 4).add_(x),
    "one number among many of the CPU": lambda x: CPU * x.sum(),
    "index of the GPU": lambda x: CPU[torch.tensor([1], device=x.device)],
    "gathered": lambda x: x.gather(1, torch.zeros(3, 1, dtype=torch.long)),
    "layer": lambda x: nn.Linear(4, 2)(x),
    "embedded": lambda x: F.embedding(torch.tensor([1]), x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_meets_the_cpu_is_refused_as_by_cuda(name):
    with pytest.raises(DeviceMismatch, match="Expected all tensors to be on the same device"):
        on_device(REFUSED[name], X)


def test_numpy_is_refused():
    with pytest.raises(TypeError, match=r"use \.cpu\(\) first"):
        on_device(lambda x: x.numpy(), X)


def test_gradients_flow_and_stay_on_the_device():
    x = rehearsed(X.clone().requires_grad_())
    with rehearsal():
        x.softmax(-1)[:, 0].sum().backward()
    assert isinstance(x.grad, Rehearsed)
    leaf = X.clone().requires_grad_()
    leaf.softmax(-1)[:, 0].sum().backward()
    torch.testing.assert_close(landed(x.grad), leaf.grad)


@pytest.mark.parametrize(
    "layer",
    [nn.Linear(4, 5), nn.LayerNorm(4), nn.GRU(4, 5, batch_first=True), nn.MultiheadAttention(4, 2)],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_of_pytorch(layer):
    args = (X[None],) * (3 if isinstance(layer, nn.MultiheadAttention) else 1)
    expected = layer(*args)
    moved = rehearsed(layer)
    found = on_device(moved, *args)
    first = [one[0] if isinstance(one, tuple) else one for one in (found, expected)]
    torch.testing.assert_close(*first)
    assert all(isinstance(one, Rehearsed) for one in moved.parameters())


def test_drawing_at_random():
    drawn = on_device(lambda x: torch.multinomial(x + 1, 2) + torch.rand(3, 2, device=x.device), X)
    assert drawn.shape == (3, 2)


def test_tied_weights_stay_tied_and_other_tensors_stay_behind():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = self.two = nn.Parameter(CPU.clone())
            self.register_buffer("kept", CPU.clone())
            self.forgotten = CPU.clone()

    moved = rehearsed(Tied())
    assert moved.one is moved.two
    assert isinstance(moved.kept, Rehearsed)
    assert not isinstance(moved.forgotten, Rehearsed)


class Keeps(nn.Module):
    """Right: a module that keeps what it computed last, as one does for plots."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.last = []

    def forward(self, x):
        result = x * self.weight
        result = result + 0 * self.last[-1] if self.last else result
        self.last.append(result)
        return result


class MadeAtFirst(Keeps):
    """Wrong: a plain tensor of the constructor does not move with the module."""

    def __init__(self):
        super().__init__()
        self.last = [torch.ones(3, 4)]


def test_what_a_call_left_in_a_module_moves_and_what_its_constructor_made_does_not():
    module = LocalAnswer(Keeps).build([], {})
    first = module.call([X], {}).value
    assert module.call([X], {}, device="rehearsal").value.equal(first)
    module = LocalAnswer(MadeAtFirst).build([], {})
    with pytest.raises(AnswerRaised, match="DeviceMismatch"):
        module.call([X], {}, device="rehearsal")


def test_an_answer_is_called_there_and_its_failing_line_is_named():
    assert LocalAnswer(lambda x: x * 2).call([X], {}, device="rehearsal").value.equal(X * 2)
    source = "import torch\ndef answer(x):\n    mask = torch.ones(3, 4)\n    return x * mask\n"
    cell = {}
    exec(compile(source, "<cell>", "exec"), cell)
    with pytest.raises(AnswerRaised) as raised:
        LocalAnswer(cell["answer"]).call([X], {}, device="rehearsal")
    assert raised.value.kind == "DeviceMismatch"
    assert raised.value.where.startswith("line 4 of its cell, in answer")
    assert torch.ones(1, device="meta").device == DEVICE  # nothing of PyTorch is changed for good
    assert not isinstance(torch.ones(1, device="meta"), Rehearsed)


def with_data(x):
    """What an optimiser by hand does: it gives a parameter other numbers, outside of the graph."""
    parameter = nn.Parameter(x.clone())
    parameter.data = 2 * parameter.data
    parameter.data -= 1
    return parameter.detach() + 0


def test_numbers_that_are_put_in_the_place_of_others_are_there():
    torch.testing.assert_close(on_device(with_data, X), 2 * X - 1)
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        on_device(lambda x: setattr(x, "data", CPU), X)


@pytest.mark.parametrize("move", [lambda m: m.to(DEVICE), lambda m: m.to(DEVICE).double()])
def test_a_module_that_is_moved_keeps_its_numbers_and_its_ties(move):
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4, bias=False))
    module[1].weight = module[0].weight
    expected = module(X)
    with rehearsal() as device:
        moved = move(module)
        found = moved(X.to(device, moved[0].weight.dtype))
        assert moved[0].weight is moved[1].weight
    torch.testing.assert_close(landed(found).float(), expected)
    assert isinstance(moved[0].weight, Rehearsed) and moved[0].weight.requires_grad


def test_what_a_forward_pass_keeps_is_counted_there():
    x = X.clone().requires_grad_()
    with rehearsal():
        there = rehearsed(x)
        assert kept_tensors(lambda: (there.exp() * 2).sin()) == [((3, 4), 48)] * 2
    assert kept_tensors(lambda: (x.exp() * 2).sin()) == [((3, 4), 48)] * 2


registry.import_all()
EVERY = [*registry._checks.values()]
EXCUSED = {
    item.name: dict(item.without)["device"] for item in EVERY if "device" in dict(item.without)
}
CHECKS = [item for item in EVERY if item.name not in EXCUSED]


def given_tensors(question):
    """Whether a tensor with axes, or a device, is among the arguments of a call."""
    every = [x for x in leaves(question.details) if isinstance(x, torch.Tensor) and x.dim()]
    return bool(every) or "device" in question.details[1]


# Whole layers and models, each of which takes a second.
LARGE = {
    *("local_block_attention", "TrainStep", "DecoderLayer", "ModernAttention", "BertLayers"),
    *("Translator", "Encoder", "LeaveOneOut", "EncoderClassifier"),
}


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(item, id=item.name, marks=[pytest.mark.long] * (item.name in LARGE))
        for item in CHECKS
    ],
)
def test_every_right_answer_runs_there_with_the_numbers_of_the_cpu(item):
    questions, wanted = asked(item, 11)
    own = [question for question in questions if not question.probe]
    further = [one for one in probes_of(item, own, wanted[: len(own)]) if one.probe == "device"]
    # Whoever is given a tensor is called there.
    called = any(one.request == "call" for one in further)
    assert called == any(one.request == "call" and given_tensors(one) for one in own)
    on_cpu = [dataclasses.replace(one, how=(), details=own[one.origin].details) for one in further]
    found, expected = (
        list(replies(LocalAnswer(reference(item)), [*own, *last]))[len(own) :]
        for last in (further, on_cpu)
    )
    for there, here in zip(found, expected, strict=True):
        assert there.kind == "value", there.value
        assert here.drew or same(there.value, here.value)
