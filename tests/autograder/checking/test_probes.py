"""What every answer is asked beyond its check: each fault ends in its own sentence."""

import pytest
import torch
from torch import nn

from autograder.checking import expect
from autograder.checking.registry import Check
from autograder.checking.run_check import run_check
from autograder.inside.answer import LocalAnswer


def squares(x, scale):
    """The right answer: x² / scale."""
    return x * x / scale


def squares_check(student, draw):
    """Of the result's values alone."""
    for shape in ((3, 5), (2, 1)):
        x, scale = draw.normal(*shape), draw.uniform(shape[-1], low=1, high=2)
        expect.close(student(x, scale), x * x / scale, "a square is wrong")
    large = torch.full((2, 3), 1e15, dtype=torch.float64)
    scale = torch.full((3,), 1e10, dtype=torch.float64)
    expect.close(student(large, scale), large * large / scale, "a large square is wrong")


SQUARES = Check("squares", "nowhere", squares_check, reference=squares)


def on_the_cpu(x, scale):
    return x * x / (scale * torch.ones(x.shape[-1]))


def float64_for_float32(x, scale):
    return x.double() * x / scale


def overflows(x, scale):
    return (x * x * 1e10 / scale) / 1e10


def detaches(x, scale):
    return x * x.detach() / scale


def detaches_the_scale(x, scale):
    return x * x / scale.detach()


def seeds(x, scale):
    torch.manual_seed(0)
    return squares(x, scale)


def asks_for_gradients(x, scale):
    return squares(x.requires_grad_(), scale)


def keeps_state():
    seen = []

    def answer(x, scale):
        seen.append(x)
        return squares(x, scale) + (len(seen) > 9)

    return answer


def adds_noise(x, scale):
    return squares(x, scale) + 1e-3 * torch.rand(()) * (torch.initial_seed() == 1)


@pytest.mark.parametrize(
    ("answer", "what", "got"),
    [
        (on_the_cpu, "on a GPU this fails", "DeviceMismatch: Expected all tensors to be on the"),
        (
            float64_for_float32,
            "the dtype is wrong: float32 goes in, something else comes out",
            "torch.float64",
        ),
        (overflows, "with float32 arguments the values are wrong", "6 of 6 numbers are NaN or inf"),
        (detaches, "the gradient of argument 1 is wrong", "off by up to"),
        (detaches_the_scale, "no gradient flows back to argument 2", "no gradient (detached, or"),
        (seeds, "the values are right, but something else is changed", "PyTorch's global random"),
        (
            asks_for_gradients,
            "the values are right, but the function changes its inputs",
            "requires_grad of argument 1 changed by the call",
        ),
        (keeps_state(), "the same call gives another result the second time", "a result that"),
        (adds_noise, "the same call gives another result the second time", "a result that"),
    ],
)
def test_each_fault_is_refused_in_its_own_words(known, answer, what, got):
    failure = run_check(SQUARES, LocalAnswer(answer), 7)
    assert failure is not None
    assert (failure.what, failure.got[: len(got)]) == (what, got)
    assert failure.seed == 7


def test_the_right_answer_passes(known):
    assert run_check(SQUARES, LocalAnswer(squares), 7) is None


@pytest.mark.parametrize(
    ("probe", "answer"),
    [("device", on_the_cpu), ("gradients", detaches), ("again", adds_noise)],
)
def test_a_probe_that_is_excused_is_not_asked(known, probe, answer):
    excused = Check("squares", "nowhere", squares_check, ((probe, "not here"),), squares)
    assert run_check(excused, LocalAnswer(answer), 7) is None


class Noise(nn.Module):
    """The right answer: a module that draws."""

    def forward(self, x):
        """Drop some of x."""
        return nn.functional.dropout(x, 0.5, self.training)


def noise_check(student, draw):
    """Drops something, in training only."""
    module, x = student.build(), draw.normal(40, 50)
    kept = (module(x) != 0).double().mean()
    expect.true(0.4 < kept < 0.6, "about half should be kept", str(kept), "0.5")
    module.eval()
    expect.close(module(x), x, "evaluation should drop nothing")


class OtherNoise(nn.Module):
    """Right as well, but it draws other numbers, and more of them."""

    def forward(self, x):
        """Drop some of x."""
        if not self.training:
            return x
        torch.rand(3)
        return torch.where(torch.rand(x.shape, dtype=x.dtype, device=x.device) < 0.5, 2 * x, 0)


def test_a_right_answer_that_draws_at_random_is_not_refused(known):
    item = Check("noise", "nowhere", noise_check, reference=Noise)
    for answer in (Noise, OtherNoise):
        for seed in range(5):
            assert run_check(item, LocalAnswer(answer), seed) is None


def test_gradients_are_told_by_the_place_of_the_argument(known):
    def picks(places, table):
        return table[places] * 2

    def check(student, draw):
        places, table = draw.integers(0, 3, 4), draw.normal(3, 5)
        expect.close(student(places, table), table[places] * 2, "wrong")

    item = Check("picks", "nowhere", check, reference=picks)
    failure = run_check(item, LocalAnswer(lambda places, table: picks(places, table.detach())), 7)
    assert failure.what == "no gradient flows back to argument 2"
    assert failure.likely.startswith("No gradient reaches argument 2.")
