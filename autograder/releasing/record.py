"""Record what right and wrong answers reply, for checks that students run without either."""

import io
import itertools
import sys
import warnings
from typing import Any

import torch
from rich.progress import track

from autograder import ROOT, CourseError, imports
from autograder.checking.asking import recordings as recorded
from autograder.checking.asking.questions import agree, replies, until_lost
from autograder.checking.asking.recordings import Noting, Recording, Replaying, fingerprint
from autograder.checking.asking.right_answer import asked, asked_of
from autograder.checking.asking.rounding import nearest, rooms_of
from autograder.checking.diagnosis.place import right_values
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import reference
from autograder.files import write_aside
from autograder.inside.answer import LocalAnswer
from autograder.inside.messages.codec import pack

ASKING = ("questions", "recordings", "right_answer", "rounding")  # what this module uses
RECORDING = [f"autograder.checking.asking.{name}" for name in ASKING]
RECORDING += [__name__, "autograder.checking.diagnosis.place", "autograder.inside.expressions"]
MOST_BYTES = 500_000  # of these values, before they are compressed to a tenth
SEEDS = (1, 2, 3)  # a student's check draws one of them; grading draws from a million


def kept_recordings(lesson: str) -> bytes:
    """What ``recordings`` gives, kept in ``.cache/`` until something changes that it depends on."""
    path = ROOT / ".cache" / "recorded" / f"{lesson}-{_depends(lesson)}.zip"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob(f"{lesson}-*.zip"):
            old.unlink()
        write_aside(path, recordings(lesson))
    return path.read_bytes()


def _depends(lesson: str) -> str:
    """A name for the modules, the data and the PyTorch that a lesson's recordings are made from."""
    found = imports.of_lesson(lesson, ROOT, RECORDING, by_name=True)
    made_from = imports.digest_of([*found, *(ROOT / "data").rglob("*")], ROOT)
    return f"{made_from}-{torch.__version__}"


def recordings(lesson: str) -> bytes:
    """The content of ``autograder/recorded/<lesson>.zip``; ``lesson`` is 'masked_attention'."""
    # Where many answers are right, one of them would stand there.
    items = [one for one in registry.of_lesson(lesson).values() if one.has_one_right_answer]
    asked = list(itertools.product(items, SEEDS))
    bar = track(asked, lesson, transient=True, disable=not sys.stdout.isatty())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a wrong answer's are not worth reading
        found = {(item.name, seed): recording(item, seed) for item, seed in bar}
    stream = io.BytesIO()
    recorded.write(lesson, found, stream)
    return stream.getvalue()


def recording(item: registry.Check, seed: int) -> Recording:
    """What the library's answer to an exercise, and its stored mistakes, reply on ``seed``."""
    right, events = reference(item), list[Any]()
    if right is None:
        raise CourseError(f"there is no right answer to {item.name}, so none can be recorded")
    questions, wanted = asked_of(Noting(LocalAnswer(right), events), item, seed)
    again = asked_of(Replaying(iter(events)), item, seed)[1]
    if not agree(wanted, again):
        raise CourseError(
            f"{item.name} asks something else when the same replies come once more; its check must "
            "draw from ``draw`` alone"
        )
    mistakes = [[one.name, one.hint, _unlike(one, item, seed)] for one in registry.mistakes(item)]
    return Recording(events, mistakes, rooms_of(right, questions, wanted), _values(item, seed))


def _values(item: registry.Check, seed: int) -> list[Any]:
    """What a student's copy puts in the place of theirs: of right answers' values the smaller."""
    values = sorted(right_values(item, seed), key=_size)
    held = itertools.accumulate(map(_size, values))
    return [one for one, size in zip(values, held, strict=True) if size <= MOST_BYTES]


def _size(value: Any) -> int:
    return len(pack({"": value}))


def _unlike(one: registry.Answer, item: registry.Check, seed: int) -> list[Any]:
    """The replies of a stored mistake; None where it replies what a right answer does."""
    questions, wanted = asked(item, seed)
    given = until_lost(replies(LocalAnswer(one.target), questions))
    near = [nearest(item, seed, number, questions[number], got) for number, got in enumerate(given)]
    return [
        None
        if got.agrees(right, exactly=True)
        else [got.kind, fingerprint(got.value), list(got.modified)]
        for got, right in zip(near, wanted, strict=False)
    ]
