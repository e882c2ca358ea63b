"""What answers replied when a lesson was handed out: the copy that students get holds no answers.

A check asks a right answer first, and compares a failing one with stored mistakes. Where neither is
at hand, what they replied on a few seeds is. The questions themselves are not kept: the check asks
them again, of an answer that gives its replies once more. They lie in
``autograder/recorded/<lesson>.zip``, one entry for an exercise and a seed.

What mistakes replied is kept to recognise it, not to rebuild it: of a tensor of many numbers stay
its shape, its dtype, some of its numbers, and its sums under random signs. Two tensors that differ
by more than rounding in one row, or in one number that is not tiny beside the others, differ in
these.
"""

import functools
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from autograder import ROOT, CourseError
from autograder.checking.asking.questions import SEEDED
from autograder.checking.toolbox.registry import Check
from autograder.inside.answer import AnswerRaised, AnyAnswer, Reply
from autograder.inside.messages.codec import HEADER, pack, unpack
from autograder.inside.messages.values import copied, mapped, same

FOLDER = ROOT / "autograder" / "recorded"
LARGE = 64  # from here on a tensor is shortened
SAMPLES, SUMS = 24, 6
NARROW = (torch.float16, torch.bfloat16, torch.float32, torch.complex64)


class Recording(NamedTuple):
    """Of one exercise and seed: what the right answer and the stored mistakes replied.

    ``right`` are its replies, one after the other: [kind, value, modified, drew]. ``mistakes`` are
    [name, hint, replies]; a reply is None where it is the right answer's, else [kind, the
    fingerprint of the value, modified]. ``rooms`` are those of ``rounding``,
    ``values`` those of ``diagnosis.place``: what a right answer's expressions came to, no code.
    """

    right: list[Any]
    mistakes: list[Any]
    rooms: list[Any]
    values: list[Any]


def unseen(*_: object, **__: object) -> None:
    """Stands for a stored answer of which only the replies are here."""
    raise CourseError("of this answer only its replies are kept")


class Noting:
    """An answer that notes what it replies, in ``events``."""

    def __init__(self, answer: AnyAnswer, events: list[Any]) -> None:
        self._answer, self._events = answer, events

    def __getattr__(self, request: str) -> Any:
        def ask(*details: Any, **how: Any) -> Any:
            try:
                found = getattr(self._answer, request)(*details, **how)
            except AnswerRaised as error:
                self._events.append(["raised", [error.kind, error.message], [], False])
                raise
            if request == "build":
                self._events.append(["value", None, [], False])
                return Noting(found, self._events)
            reply = found if request in SEEDED else Reply(found)
            self._events.append(["value", copied(reply.value), list(reply.modified), reply.drew])
            return found

        return ask


class Replaying:
    """An answer that replies what was noted, in the same order, whatever it is asked."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events

    def __getattr__(self, request: str) -> Any:
        def ask(*_: Any, **__: Any) -> Any:
            kind, value, modified, drew = next(self._events)
            if kind == "raised":
                raise AnswerRaised(*value)
            if request == "build":
                return Replaying(self._events)
            return Reply(value, modified, drew) if request in SEEDED else value

        return ask


def right_answer(item: Check, seed: int) -> AnyAnswer | None:
    """What replies as the right answer did on this seed, or None where nothing was recorded."""
    kept = _recording(item.lesson, item.name, seed)
    return Replaying(iter(kept.right)) if kept else None


def mistakes(item: Check, seed: int) -> dict[str, tuple[str, list[Any]]]:
    """By name of a stored mistake, its hint and its replies on this seed."""
    kept = _recording(item.lesson, item.name, seed)
    return {name: (hint, replies) for name, hint, replies in kept.mistakes} if kept else {}


def rooms(item: Check, seed: int) -> list[Any]:
    """How far rounding may take the right replies to all that is asked on this seed."""
    kept = _recording(item.lesson, item.name, seed)
    return kept.rooms if kept else []


def values(item: Check, seed: int) -> list[Any]:
    """The values of right answers' expressions in what its check asks."""
    kept = _recording(item.lesson, item.name, seed)
    return kept.values if kept else []


def seeds(item: Check) -> list[int]:
    """The seeds on which the exercise was recorded."""
    start = f"{item.name}/"
    entries = [entry for entry in _names(item.lesson) if entry.startswith(start)]
    return sorted(int(entry.removeprefix(start)) for entry in entries)


def write(lesson: str, recordings: dict[tuple[str, int], Recording], stream: Any) -> None:
    """Write the recordings of a lesson, by exercise and seed, into a binary stream."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as archive:
        for (name, seed), one in recordings.items():
            entry = zipfile.ZipInfo(f"{name}/{seed}")  # without a date: the same bytes each time
            entry.compress_type = zipfile.ZIP_LZMA
            archive.writestr(entry, pack(one._asdict()))


@functools.lru_cache(maxsize=4)
def _names(lesson: str) -> tuple[str, ...]:
    path = FOLDER / f"{lesson}.zip"
    if not path.is_file():
        return ()
    with zipfile.ZipFile(path) as archive:
        return tuple(archive.namelist())


@functools.lru_cache(maxsize=16)
def _recording(lesson: str, name: str, seed: int) -> Recording | None:
    if f"{name}/{seed}" not in _names(lesson):
        return None
    with zipfile.ZipFile(FOLDER / f"{lesson}.zip") as archive:
        content = archive.read(f"{name}/{seed}")
    length, _ = HEADER.unpack_from(content)
    text, blob = content[HEADER.size :][:length], content[HEADER.size + length :]
    return Recording(**unpack(text, blob, layouts=True))


def fingerprint(value: Any) -> Any:
    """The plain value with each large tensor replaced by a dict that describes it."""

    def shortened(item: Any) -> Any:
        is_large = isinstance(item, torch.Tensor) and item.numel() > LARGE
        return _of_tensor(item) if is_large else item

    return mapped(shortened, value)


def fits(short: Any, value: Any, exactly: bool = False) -> bool:
    """Whether ``short`` is that of ``value``, up to rounding; ``exactly``: zeros as well."""
    if isinstance(value, torch.Tensor):
        if value.numel() <= LARGE or not isinstance(short, dict):
            return same(short, value) and (not exactly or torch.equal(short == 0, value == 0))
        return _tensors_fit(short, _of_tensor(value), exactly)
    if type(short) is not type(value):
        return False
    if isinstance(value, list | tuple):
        pairs = zip(short, value, strict=False)
        return len(short) == len(value) and all(fits(*pair, exactly) for pair in pairs)
    if isinstance(value, dict):
        named = short.keys() == value.keys()
        return named and all(fits(short[key], value[key], exactly) for key in value)
    return same(short, value)


def _tensors_fit(short: dict[str, Any], other: dict[str, Any], exactly: bool) -> bool:
    if any(short.get(key) != other[key] for key in ("shape", "dtype")):
        return False
    if not same(short["samples"], other["samples"]) or exactly and short["zeros"] != other["zeros"]:
        return False
    rounding = 1e-4 if short["samples"].dtype in NARROW else 1e-7
    scale = max(short["length"], other["length"], 1e-12)
    away = (short["sums"] - other["sums"]).abs().max()
    return bool(away <= 10 * rounding * scale)


def _of_tensor(value: torch.Tensor) -> dict[str, Any]:
    flat = value.detach().reshape(-1)
    wide = torch.view_as_real(flat).sum(-1).double() if flat.is_complex() else flat.double()
    finite = torch.where(wide.isfinite(), wide, 1e3 * wide.sign().nan_to_num(2.0))
    places, signs = _drawn(flat.numel())
    return {
        "shape": list(value.shape),
        "dtype": str(value.dtype),
        "samples": flat[places],
        "sums": signs.to(torch.float64) @ finite,
        "length": float(finite.norm()),
        "zeros": int((wide == 0).sum()),
    }


@functools.lru_cache(maxsize=32)
def _drawn(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pair (places of the samples, signs of the sums) for ``count`` numbers: always the same."""
    drawn = torch.Generator().manual_seed(count)
    places = torch.randint(count, (SAMPLES,), generator=drawn)
    signs = torch.randint(2, (SUMS, count), generator=drawn, dtype=torch.int8) * 2 - 1
    return places, signs
