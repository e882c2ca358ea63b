"""A training in small, to try a student's pieces on: which parts use them, and what they give.

Each part of a training is run on a few pairs with given weights and without dropout, so that right
pieces give the library's results. Nothing here decides what is used: `own` does.
"""

import dataclasses
import inspect
import math
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from attention import training
from attention.train.core import step as steps
from attention.train.core.trainer import task_of
from attention.train.corpora.texts import Corpus
from attention.train.pieces import collected
from attention.train.pieces.adapters import furnish
from attention.train.pieces.collected import Pieces
from attention.train.runs.settings import Settings

TRANSLATED = 4  # rows of a small batch, at most LONGEST tokens each
LONGEST = 16
STEP = "training step"


@dataclass
class Outcome:
    """What came of the parts: results by part, and which of the student's pieces ran in it."""

    results: dict[str, Any] = field(default_factory=dict)
    ran: dict[str, set[str]] = field(default_factory=dict)


class Trial:
    """The parts of a training on a few rows.

    settings, corpus, device of the training; its dropout is left out
    pieces                   Pieces, to say which of them ran
    """

    tolerance = 1e-2  # share of a result's norm by which it may differ from the library's

    def __init__(self, settings: Settings, corpus: Corpus, device: torch.device, pieces: Pieces):
        self.settings = dataclasses.replace(settings, dropout=0.0, compile=False)
        self.corpus, self.device, self.pieces = corpus, device, pieces
        self.task = task_of(self.settings, corpus)
        torch.manual_seed(settings.seed)
        self.weights = self._untrained().state_dict()
        self.batch = self.tensors(corpus.ids["train"][: self.task.few])

    def tensors(self, rows: Sequence[Any]) -> tuple[Tensor, Tensor]:
        """The two tensors of some rows, on the device."""
        read, target = self.task.tensors(rows)
        return read.to(self.device), target.to(self.device)

    def model(self) -> Any:
        """A new model with the given weights."""
        made = self._untrained()
        made.load_state_dict(self.weights)
        return made

    def _untrained(self) -> Any:
        return furnish(self.task.untrained()).to(self.device)

    def parts(self) -> dict[str, Callable[[], Any]]:
        """What is to be run, by name; the models are made here, for nothing to be timed but use."""
        model = self.model()
        lengths = [self.task.length(row) for row in self.corpus.ids["train"][:500]]
        settings = self.settings
        return {
            STEP: self.learn,
            "evaluation": lambda: self.task.evaluation(model)([self.batch]),
            **self.task.uses(model, self.batch, TRANSLATED, LONGEST),
            "batches": lambda: training.batch_by_tokens(lengths, settings.max_tokens),
            "learning rate": lambda: float(steps.learning_rate(3, settings)),
        }

    def _step(self) -> tuple[Any, steps.Step]:
        """A new model with the given weights, and what takes steps with it."""
        model = self.model()
        loss = self.task.loss(model, None)
        step = steps.Step(model, self.settings, self.device, None, loss)
        for group in step.optimizer.param_groups:
            group["lr"] = 1e-3
        return model, step

    def learn(self) -> Any:
        """Take two steps; returns their losses and the gradients of the first."""
        model, step = self._step()
        gradients: list[Tensor] = []
        step.optimizer.register_step_pre_hook(
            lambda *_: gradients.append(_flat(model)) if not gradients else None
        )
        return [step([self.batch]).item() for _ in range(2)], gradients

    def stepper(self, batch: tuple[Tensor, Tensor]) -> Callable[[], Any]:
        """A function that takes one training step on a batch."""
        _, step = self._step()
        return lambda: step([batch]).item()

    def run(self, names: Collection[str], only: str = "") -> Outcome:
        """Run all parts, or only one, with the student's pieces of these names.

        What a piece raises, or a part with it, is raised as it is.
        """
        collected.put(self.pieces, names)
        found = Outcome()
        codes = {code: name for name in names for code in codes_of(self.pieces.own[name])}
        for part, work in self.parts().items():
            if only not in ("", part):
                continue
            with watched(codes) as ran:
                found.results[part] = work()
            found.ran[part] = ran
        return found


def clocked(work: Callable[[], Any]) -> float:
    """How many seconds one call takes."""
    begin = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def _flat(model: torch.nn.Module) -> Tensor:
    """All gradients of a model as one vector."""
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def codes_of(piece: Any) -> Iterator[CodeType]:
    """The code of a function, or of all methods of a class."""
    if isinstance(piece, type):
        for value in vars(piece).values():
            if callable(value) and not isinstance(value, type):
                yield from codes_of(value)
    else:
        code = getattr(inspect.unwrap(piece), "__code__", None)
        if code is not None:
            yield code


@contextmanager
def watched(codes: dict[CodeType, str]) -> Iterator[set[str]]:
    """Yield a set that is filled with the names of the pieces whose code runs meanwhile."""
    ran: set[str] = set()

    def see(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code in codes:
            ran.add(codes[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        yield ran
    finally:
        sys.setprofile(before if callable(before) else None)


def difference(right: Outcome, other: Outcome, tolerance: float = 1e-2) -> str:
    """The first part whose results are not the library's, in words; '' if all are."""
    for part, result in right.results.items():
        if not alike(result, other.results[part], tolerance):
            got, expected = _said(other.results[part]), _said(result)
            told = f": {got}, and {expected} with the library's" if got and expected else ""
            furthest = distance(result, other.results[part])
            if not told and furthest == furthest:
                told = f", up to {furthest:.2g} away"
            return f"with it, the {part} gives other results{told}"
    return ""


def distance(a: Any, b: Any) -> float:
    """The largest difference of two tensors' numbers; NaN if they are no tensors of one shape."""
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape and a.numel():
        return (a.detach().double() - b.detach().double()).abs().max().item()
    return math.nan


def _said(result: Any) -> str:
    """Losses or a single number for people, or ''."""
    if isinstance(result, tuple) and result and isinstance(result[0], list):
        return "losses " + " and ".join(f"{loss:.4g}" for loss in result[0])
    if isinstance(result, Tensor) and result.numel() == 1:
        return f"{result.item():.4g}"
    return ""


def alike(a: Any, b: Any, tolerance: float = 1e-2) -> bool:
    """Whether two results are the same but for rounding; tolerance: a share of a tensor's norm."""
    if isinstance(a, Tensor):
        if not isinstance(b, Tensor) or a.shape != b.shape:
            return False
        a, b = a.detach().double(), b.detach().double()
        return bool((a - b).norm() <= tolerance * a.norm() + 1e-6)  # False for NaN, too
    if isinstance(a, dict):
        return (
            isinstance(b, dict)
            and a.keys() == b.keys()
            and all(alike(a[k], b[k], tolerance) for k in a)
        )
    if isinstance(a, list | tuple):
        return (
            isinstance(b, list | tuple)
            and len(a) == len(b)
            and all(alike(x, y, tolerance) for x, y in zip(a, b, strict=True))
        )
    if isinstance(a, float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-3)
    return bool(a == b)


def place(error: BaseException, pieces: Pieces) -> tuple[str, int] | None:
    """The module and line of the student's code in which an error arose, if it did there."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).parent == pieces.folder and frame.lineno is not None:
            return Path(frame.filename).stem, frame.lineno
    return None


def culprit(error: BaseException, pieces: Pieces) -> str | None:
    """The student's piece in which an error arose, or None if it arose elsewhere."""
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        if Path(frame.f_code.co_filename).parent == pieces.folder:
            for name, piece in pieces.own.items():
                if frame.f_code in codes_of(piece):
                    return name
    return None
