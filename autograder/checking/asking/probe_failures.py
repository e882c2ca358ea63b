"""What is refused of a reply to a probe: each with a sentence of its own."""

from collections.abc import Sequence
from typing import Any

import torch

from autograder.checking.asking.questions import Question, Replied, floating_places
from autograder.checking.toolbox.describe_values import describe
from autograder.checking.toolbox.failure import LEARNING, CheckFailed, no_gradient
from autograder.checking.toolbox.same_tensors import tensors_of
from autograder.inside.answer import LEFT_BEHIND
from autograder.inside.device.rehearsal import Unrehearsable
from autograder.inside.messages.values import leaves

ROOM = 2e-3  # how far float32 may be from float64, in shares of the largest number
EXACTLY = 1e-5  # and gradients in float64 from those of the right answer
NOTHING = 1e-9  # a gradient below this is 0 but for rounding: of a bias of the keys, say
SMALL = 1e-6  # what is left where terms cancel: its rounding is that of the terms, so this counts
FAINT = 1e-2  # of the largest gradient: a smaller one in float32 counts as so large
SUMMED = 1e-5  # rounding of float32 in a sum, in shares of the largest number that goes in
ON_ITS_DEVICE = (
    "tensors made on the device of an argument x: pass device=x.device, or use x.new_zeros(…)"
)
OF_TORCH = "PyTorch's own functions in place of numpy's: they compute where their arguments are"
WELL = 1e-4  # where the right answer itself is farther than this from float64, it proves nothing


def refuse(question: Question, got: Replied, wanted: Replied, earlier: Replied) -> None:
    """Raise CheckFailed if the reply to a probe is not that of the right answer, or near it.

    ``earlier`` is the answer's own reply to the question that the probe is made from.
    """
    if question.probe == "device":
        _refuse_device(got, wanted)
    elif question.probe == "float32":
        _refuse_float32(got, wanted, question)
    elif question.probe == "gradients":
        _refuse_gradients(got, wanted, floating_places(question))
    elif question.probe == "turns":
        _refuse_turns(got, earlier)
    elif not got.agrees(earlier):
        raise CheckFailed(
            "the same call gives another result the second time",
            "a result that depends on the calls before, or on chance",
            "the same result for the same arguments",
        )


def refuse_numbers(got: Replied, wanted: Replied) -> None:
    """Raise CheckFailed where the right answer gives a tensor and this one a plain number."""
    for one, other in _paired(got.value, wanted.value):
        if isinstance(other, torch.Tensor) and isinstance(one, int | float):
            what = "a number is right, but it is a plain number and no tensor"
            raise CheckFailed(what, describe(one), describe(other))


def refuse_changes(changed: Sequence[str]) -> None:
    """Raise CheckFailed if a call ``changed`` anything around it: names from ``side_effects``."""
    if changed:
        raise CheckFailed(
            "the values are right, but something else is changed",
            f"{', '.join(changed)} changed by the call",
            "everything outside of the function as it was",
        )


def _refuse_device(got: Replied, wanted: Replied) -> None:
    # A right answer that returns plain numbers leaves nothing anywhere, and a tensor of these
    # numbers, where a check allows one, does no harm on the CPU.
    behind = LEFT_BEHIND in got.modified and LEFT_BEHIND not in wanted.modified
    if behind and any(isinstance(item, torch.Tensor) for item in leaves(wanted.value)):
        raise CheckFailed(
            "on a GPU the result would be left on the CPU",
            LEFT_BEHIND,
            "a result on the device of the arguments, or on the one that is asked for",
        )
    if got.kind != "raised":
        return
    kind, message, where = (*got.value, "")[:3]
    if "inference tensor" in message or kind == Unrehearsable.__name__:
        return  # the rehearsal cannot go into inference_mode, say; a GPU can
    reason = f"{kind}: {message.splitlines()[0] if message else ''}"
    raise CheckFailed(
        "on a GPU this fails",
        "\n".join(part for part in (reason, where) if part),
        OF_TORCH if "to numpy" in message else ON_ITS_DEVICE,
    )


def _refuse_float32(got: Replied, wanted: Replied, question: Question) -> None:
    if got.kind == "raised":
        raise CheckFailed(
            "with float32 arguments your code raises an exception",
            ": ".join(got.value[:2]),
            "a result in float32",
        )
    for one, other in _paired(got.value, wanted.value):
        if not isinstance(other, torch.Tensor) or isinstance(one, float):
            continue
        if not isinstance(one, torch.Tensor) or one.shape != other.shape:
            raise CheckFailed("with float32 arguments the result has another form")
        if one.dtype != other.dtype:
            what = "the dtype is wrong: float32 goes in, something else comes out"
            failure = CheckFailed(what, str(one.dtype), str(other.dtype))
            failure.care = "dtype"
            raise failure
        if not other.is_floating_point():
            continue
        if not _near(one, other, ROOM) and not _cancels(one, other, question):
            raise CheckFailed(
                "with float32 arguments the values are wrong",
                _worst(one, other),
                "the values of float64, up to rounding",
            )


def _cancels(one: Any, other: Any, question: Question) -> bool:
    """Whether terms cancel to 0 in the right answer, and to their rounding in this one."""
    if other.any():
        return False
    scale = max((_largest(item) for item in tensors_of(question)), default=0.0)
    return bool((one.abs() <= SUMMED * scale).all())


def _largest(tensor: torch.Tensor) -> float:
    finite = tensor[torch.isfinite(tensor)].abs()
    return float(finite.max()) if finite.numel() else 0.0


def _worst(one: Any, other: Any) -> str:
    broken = int((~torch.isfinite(one) & torch.isfinite(other)).sum())
    if broken:
        return f"{broken} of {one.numel()} numbers are NaN or infinite"
    return f"off by up to {(one - other).abs().nan_to_num().max().item():.3g}"


def _refuse_turns(got: Replied, alone: Replied) -> None:
    if got.agrees(alone):
        return
    shown = ": ".join(got.value[:2]) if got.kind == "raised" else "another result"
    raise CheckFailed(
        "used in turn with a second object, an object answers differently than alone",
        f"{shown}, from the same calls",
        "objects that share nothing: what one remembers belongs to its self",
    )


def _refuse_gradients(got: Replied, wanted: Replied, places: list[int]) -> None:
    if got.kind == "raised":
        raise CheckFailed("asked for gradients, your code raises", ": ".join(got.value[:2]))
    if not isinstance(got.value, tuple):
        raise CheckFailed("the result is not a tensor, so it has no gradient")
    # In float32 a gradient that is 0 but for rounding, such as a key's bias has, is as large as
    # rounding makes it of the others.
    others = [*wanted.value[0].values(), *wanted.value[1]]
    least = FAINT * max((_largest(one) for one in others if one is not None), default=0.0)
    for name, other in wanted.value[0].items():
        if has_gradient(other) and not has_gradient(got.value[0].get(name)):
            failure = no_gradient(name)
            failure.care = LEARNING
            raise failure
    for name, other in wanted.value[0].items():
        _refuse_gradient(got.value[0].get(name), other, name, least)
    for place, one, other in zip(places, got.value[1], wanted.value[1], strict=False):
        _refuse_gradient(one, other, f"argument {place}", least)


def has_gradient(right: Any) -> bool:
    """Whether a gradient of the right answer is more than 0 and its rounding."""
    return right is not None and bool((right.abs() > NOTHING).any())


def _refuse_gradient(one: Any, other: Any, name: str, least: float) -> None:
    if not has_gradient(other):
        return
    if one is None:
        raise no_gradient(name)
    room, least = (EXACTLY, SMALL) if other.dtype == torch.float64 else (ROOM, max(SMALL, least))
    if one.shape != other.shape or not _near(one, other, room, least):
        raise CheckFailed(f"the gradient of {name} is wrong", _worst(one, other), "autograd's")


def _near(one: Any, other: Any, room: float, least: float = 1e-30) -> bool:
    """Whether two tensors are equal up to ``room`` times the largest number in the right one.

    least  a largest number below this counts as this
    """
    atol = room * max(least, _largest(other))
    one, other = one.double(), other.double()
    return bool(torch.isclose(one, other, rtol=0, atol=atol, equal_nan=True).all())


def _paired(one: Any, other: Any) -> list[tuple[Any, Any]]:
    """Pairs of items of two values of the same build; a lone value is one pair."""
    if isinstance(other, list | tuple) and isinstance(one, list | tuple):
        return list(zip(one, other, strict=False))
    if isinstance(other, dict) and isinstance(one, dict):
        return [(one.get(name), item) for name, item in other.items()]
    return [(one, other)]


def proves(in_float32: Any, in_float64: Any) -> bool:
    """Whether a right answer's reply in float32 is near that in float64: else it proves nothing."""
    pairs = [
        (narrow.double(), wide)
        for narrow, wide in _paired(in_float32, in_float64)
        if isinstance(wide, torch.Tensor)
        and isinstance(narrow, torch.Tensor)
        and wide.dtype in (torch.float64, torch.float32)
        and narrow.shape == wide.shape
    ]
    return bool(pairs) and all(_near(*pair, WELL) for pair in pairs)
