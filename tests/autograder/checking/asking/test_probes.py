"""What every answer is asked beyond its check: each fault ends in its own sentence."""

import random

import pytest
import torch
from torch import nn

from autograder.checking.asking.right_answer import asked
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import Check
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


def by_numpy(x, scale):
    return torch.from_numpy(x.numpy() ** 2 / scale.numpy())


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


def leaves_gradients_off(x, scale):
    torch.set_grad_enabled(False)
    return squares(x, scale)


def leaves_another_dtype(x, scale):
    torch.set_default_dtype(torch.float64)
    return squares(x, scale)


def looks_for_anomalies(x, scale):
    torch.autograd.set_detect_anomaly(True)
    return squares(x, scale)


def keeps_state():
    seen = []

    def answer(x, scale):
        seen.append(x)
        return squares(x, scale) + (len(seen) > 6)

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
        (
            leaves_gradients_off,
            "the values are right, but something else is changed",
            "torch.is_grad_enabled() changed by the call",
        ),
        (
            leaves_another_dtype,
            "the values are right, but something else is changed",
            "torch.get_default_dtype() changed by the call",
        ),
        (
            looks_for_anomalies,
            "the values are right, but something else is changed",
            "torch.is_anomaly_enabled() changed by the call",
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


@pytest.mark.parametrize(("answer", "mend"), [(on_the_cpu, "x.device"), (by_numpy, "numpy's")])
def test_what_fails_on_a_gpu_is_told_how_to_mend_it(answer, mend):
    failure = run_check(SQUARES, LocalAnswer(answer), 7)
    assert failure.what == "on a GPU this fails" and mend in failure.expected


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


class Adds(nn.Module):
    """The right answer: a running sum, and what every object adds to it."""

    def __init__(self, more):
        super().__init__()
        self.more, self.sum = more, 0.0

    def forward(self, x):
        """Add x, and more."""
        self.sum = self.sum + x + self.more
        return self.sum


def adds_check(student, draw):
    """Two objects, one after the other."""
    for more in (1.0, 3.0):
        adds, x = student.build(more), draw.normal(2, 3)
        expect.close(adds(x), x + more, "the first sum is wrong")
        expect.close(adds(x), 2 * x + 2 * more, "the second sum is wrong")


ADDS = Check("adds", "nowhere", adds_check, reference=Adds)


class SharesTheSum(Adds):
    """One memory, which the constructor empties."""

    def __init__(self, more):
        super().__init__(more)
        SharesTheSum.kept = 0.0

    def forward(self, x):
        """Add to what the class holds."""
        SharesTheSum.kept = SharesTheSum.kept + x + self.more
        return SharesTheSum.kept


class SharesTheSize(Adds):
    """The last object that was built decides for all."""

    def __init__(self, more):
        super().__init__(more)
        SharesTheSize.size = more

    def forward(self, x):
        """Add what the class holds."""
        self.sum = self.sum + x + SharesTheSize.size
        return self.sum


@pytest.mark.parametrize("answer", [SharesTheSum, SharesTheSize])
def test_objects_that_share_something_are_refused(known, answer):
    failure = run_check(ADDS, LocalAnswer(answer), 7)
    expected = "used in turn with a second object, an object answers differently than alone"
    assert failure.what == expected
    excused = Check("adds", "nowhere", adds_check, (("turns", "not here"),), Adds)
    assert run_check(excused, LocalAnswer(answer), 7) is None


def test_objects_that_share_nothing_pass(known):
    assert run_check(ADDS, LocalAnswer(Adds), 7) is None


def test_an_object_is_asked_in_turn_all_that_it_was_asked_alone_or_nothing(known):
    class Once(Adds):
        """Right as well; the first of all calls here changes something, as a thread may."""

        def forward(self, x):
            """Add x, and more."""
            if not seen:
                seen.append(True)
                random.random()
            return super().forward(x)

    seen = []
    item = Check("adds", "nowhere", adds_check, reference=Once)
    assert run_check(item, LocalAnswer(Adds), 7) is None
    first, *_ = (reply for reply in asked(item, 7)[1] if reply.value is not None)
    assert first.modified == ("Python's global random generator",)


class LeavesTraining(nn.Module):
    """Wrong: the module is left in evaluation."""

    def forward(self, x):
        """Return x."""
        self.eval()
        return 2 * x


class Doubles(nn.Module):
    """The right answer."""

    def forward(self, x):
        """Return x twice."""
        return 2 * x


def test_a_module_that_is_left_in_another_mode_is_refused(known):
    def check(student, draw):
        x = draw.normal(2, 3)
        expect.close(student.build()(x), 2 * x, "wrong")

    item = Check("doubles", "nowhere", check, reference=Doubles)
    failure = run_check(item, LocalAnswer(LeavesTraining), 7)
    assert failure.what == "the values are right, but something else is changed"
    assert failure.got == "the module's training mode changed by the call"
    other = Check("doubles", "nowhere", check, reference=LeavesTraining)
    assert run_check(other, LocalAnswer(Doubles), 7) is None


def test_a_plain_number_is_no_tensor(known):
    def check(student, draw):
        x = draw.normal(3)
        expect.close(student(x), x.sum().item(), "the sum is wrong")

    item = Check("total", "nowhere", check, reference=lambda x: x.sum())
    failure = run_check(item, LocalAnswer(lambda x: x.sum().item()), 7)
    assert failure.what == "a number is right, but it is a plain number and no tensor"
    assert failure.expected == "a tensor of shape (), float64"
    number = Check(
        "total", "nowhere", check, (("gradients", "a number"),), lambda x: x.sum().item()
    )
    assert run_check(number, LocalAnswer(lambda x: x.sum()), 7) is None
