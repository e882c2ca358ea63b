"""What every answer is asked beyond its check: each fault ends in its own sentence."""

import dataclasses
import random

import pytest
import torch
from torch import nn

from autograder.checking.asking.probe_failures import refuse
from autograder.checking.asking.questions import Question, Replied
from autograder.checking.asking.right_answer import asked
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.failure import CheckFailed
from autograder.checking.toolbox.registry import Check
from autograder.inside.answer import LEFT_BEHIND, LocalAnswer


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


def detaches(x, scale):
    return x * x.detach() / scale


def doing(change):
    """The right answer, which changes something besides."""

    def answer(x, scale):
        change()
        return squares(x, scale)

    return answer


def keeps_state():
    seen = []

    def answer(x, scale):
        seen.append(x)
        return squares(x, scale) + (len(seen) > 6)

    return answer


def adds_noise(x, scale):
    return squares(x, scale) + 1e-3 * torch.rand(()) * (torch.initial_seed() == 1)


CHANGED = "the values are right, but something else is changed"
TWICE = "the same call gives another result the second time"
FAULTS = [
    (on_the_cpu, "on a GPU this fails", "DeviceMismatch: Expected all tensors to be on the"),
    (
        *(
            lambda x, scale: x.double() * x / scale,
            "the dtype is wrong: float32 goes in, something",
        ),
        "torch.float64",
    ),
    (
        *(lambda x, scale: (x * x * 1e10 / scale) / 1e10, "with float32 arguments the values are"),
        "6 of 6 numbers are NaN or inf",
    ),
    (detaches, "the gradient of argument 1 is wrong", "off by up to"),
    (
        *(lambda x, scale: x * x / scale.detach(), "no gradient flows back to argument 2"),
        "no gradient",
    ),
    (
        *(
            lambda x, scale: squares(x.requires_grad_(), scale),
            "the values are right, but the func",
        ),
        "requires_grad of argument 1 changed by the call",
    ),
    (doing(lambda: torch.manual_seed(0)), CHANGED, "PyTorch's global random"),
    (doing(lambda: torch.set_grad_enabled(False)), CHANGED, "torch.is_grad_enabled() changed by"),
    (
        *(doing(lambda: torch.set_default_dtype(torch.float64)), CHANGED),
        "torch.get_default_dtype() changed by the call",
    ),
    (
        *(doing(lambda: torch.autograd.set_detect_anomaly(True)), CHANGED),
        "torch.is_anomaly_enabled() changed by the call",
    ),
    (keeps_state(), TWICE, "a result that"),
    (adds_noise, TWICE, "a result that"),
]


@pytest.mark.parametrize(("answer", "what", "got"), FAULTS)
def test_each_fault_is_refused_in_its_own_words(known, answer, what, got):
    failure = run_check(SQUARES, LocalAnswer(answer), 7, told={})
    assert failure.what.startswith(what) and failure.got.startswith(got)
    assert failure.seed == 7


@pytest.mark.parametrize(("answer", "mend"), [(on_the_cpu, "x.device"), (by_numpy, "numpy's")])
def test_what_fails_on_a_gpu_is_told_how_to_mend_it(answer, mend):
    item = Check("squares", "nowhere", squares_check, (("gradients", "not here"),), squares)
    failure = run_check(item, LocalAnswer(answer), 7, told={})
    assert failure.what == "on a GPU this fails" and mend in failure.expected


@pytest.mark.parametrize(
    ("probe", "answer"),
    [("", squares), ("device", on_the_cpu), ("gradients", detaches), ("again", adds_noise)],
)
def test_a_right_answer_passes_and_a_probe_that_is_excused_is_not_asked(known, probe, answer):
    excused = Check("squares", "nowhere", squares_check, ((probe, "not here"),), squares)
    assert run_check(excused, LocalAnswer(answer), 7, told={}) is None


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
            assert run_check(item, LocalAnswer(answer), seed, told={}) is None


def test_where_the_right_answer_is_rough_in_float32_it_proves_nothing(known):
    def check(student, draw):
        x = draw.normal(3)
        expect.close(student(x), x, "wrong")

    item = Check("same", "nowhere", check, reference=lambda x: (x + 1e8) - 1e8)
    assert run_check(item, LocalAnswer(lambda x: x * 1), 7, told={}) is None


def test_gradients_are_told_by_the_place_of_the_argument(known):
    def picks(places, table):
        return table[places] * 2

    def check(student, draw):
        places, table = draw.integers(0, 3, 4), draw.normal(3, 5)
        expect.close(student(places, table), table[places] * 2, "wrong")

    item = Check("picks", "nowhere", check, reference=picks)
    failure = run_check(
        item, LocalAnswer(lambda places, table: picks(places, table.detach())), 7, told={}
    )
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
    failure = run_check(ADDS, LocalAnswer(answer), 7, told={})
    expected = "used in turn with a second object, an object answers differently than alone"
    assert failure.what == expected
    excused = Check("adds", "nowhere", adds_check, (("turns", "not here"),), Adds)
    assert run_check(excused, LocalAnswer(answer), 7, told={}) is None
    assert run_check(ADDS, LocalAnswer(Adds), 7, told={}) is None


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
    assert run_check(item, LocalAnswer(Adds), 7, told={}) is None
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
    failure = run_check(item, LocalAnswer(LeavesTraining), 7, told={})
    assert failure.what == "the values are right, but something else is changed"
    assert failure.got == "the module's training mode changed by the call"
    other = Check("doubles", "nowhere", check, reference=LeavesTraining)
    assert run_check(other, LocalAnswer(Doubles), 7, told={}) is None


def test_a_plain_number_is_no_tensor(known):
    def check(student, draw):
        x = draw.normal(3)
        expect.close(student(x), x.sum().item(), "the sum is wrong")

    item = Check("total", "nowhere", check, reference=lambda x: x.sum())
    failure = run_check(item, LocalAnswer(lambda x: x.sum().item()), 7, told={})
    assert failure.what == "a number is right, but it is a plain number and no tensor"
    assert failure.expected == "a tensor of shape (), float64"
    number = Check(
        "total", "nowhere", check, (("gradients", "a number"),), lambda x: x.sum().item()
    )
    assert run_check(number, LocalAnswer(lambda x: x.sum()), 7, told={}) is None


def refused(probe, got, wanted, modified=()):
    """What is said of a reply to a probe, '' if nothing."""
    question = Question(0, probe if probe == "gradients" else "call", ((torch.ones(1),),))
    question = dataclasses.replace(question, probe=probe)
    given, right = Replied("value", got, modified), Replied("value", wanted)
    try:
        refuse(question, given, right, given)
    except CheckFailed as error:
        return error.what
    return ""


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        *((one, True) for one in (torch.zeros(3), (1.0, torch.zeros(3)), {"m": torch.ones(1)})),
        ((0.1, 0.9, 1.0), False),  # plain numbers leave nothing anywhere
    ],
)
def test_a_tensor_on_the_cpu_is_refused_where_a_tensor_is_wanted(wanted, said):
    assert ("left on the CPU" in refused("device", torch.zeros(3), wanted, (LEFT_BEHIND,))) is said


SUM, KEYS = ("w", 1e-12, torch.float64), ("bias", 3.0, torch.float32)


@pytest.mark.parametrize(
    ("of", "right", "given", "said"),
    [
        (SUM, 2.0e-9, 2.0006e-9, False),  # terms of size 1000 cancel: their rounding is left
        (SUM, 1.0e-3, 1.0003e-3, True),
        (SUM, 1.0e-3, 1.000001e-3, False),
        (SUM, 2.0e-9, 1.0e-7, True),
        # A bias of the keys changes no weight: in float32 the rounding of the others arrives there.
        (KEYS, 2e-8, 9e-6, False),
        (KEYS, 2e-8, 9e-3, True),
    ],
)
def test_a_gradient_that_is_0_but_for_rounding_may_be_another(of, right, given, said):
    name, beside, dtype = of
    found, wanted = (
        (
            {"weight": torch.tensor([beside], dtype=dtype), name: torch.tensor([one], dtype=dtype)},
            (),
        )
        for one in (given, right)
    )
    assert refused("gradients", found, wanted) == f"the gradient of {name} is wrong" * said
