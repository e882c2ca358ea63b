"""`--dry-run`: what a training will take, from a few of its own steps; its folder is not touched.

Tokens and operations are counted over all batches of an epoch. Weights, gradients and AdamW's two
moments are four float32 numbers for each parameter. Activations are the tensors that the forward
pass of the largest batch keeps for the backward pass, found by asking autograd: lesson 12's formula
counts the same bytes for a stack of encoder layers, but knows no decoder, dropout or loss. Times
are those of real steps on real batches, of an evaluation and of a save into a temporary folder.

On a GPU each measured batch is read twice: for tensors of a new shape PyTorch first prepares its
kernels, which took ten times as long as the step itself on an H200.
"""

import dataclasses
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from attention.provided.measuring.saved_for_backward import kept_bytes
from attention.train.core.devices import describe
from attention.train.core.step import Batch
from attention.train.core.trainer import Trainer
from attention.train.corpora.texts import Corpus
from attention.train.runs.run_folder import RunFolder
from attention.train.runs.settings import MODERN, Settings
from autograder.terminal_output import readable

SECONDS = 20.0  # for which steps are measured
STEPS = (5, 50)  # how many at least and, however quick they are, at most


@dataclasses.dataclass
class Forecast:
    """What a training will take.

    parameters          how many; 16 bytes of memory each
    batches             of an epoch
    tokens, places      of a step, on the average: real tokens, and with padding
    flops               of a step: matrix products, forward and backward, padding included
    activations         bytes
    peak                bytes that the process, or the GPU's allocator, held at most; 0: unknown
    measured            seconds of each measured step
    step                seconds of a step of as many tokens as the mean
    first               seconds more that a batch takes on a GPU when it is read for the first time
    save                seconds of an evaluation and a save, and how many there will be: saves
    seconds             of the whole training, without the translations at its end
    cpu_seconds         likewise, of this process on all its cores: what a busy machine leaves alone
    """

    parameters: int
    batches: int
    tokens: float
    places: float
    flops: float
    activations: int
    peak: int
    measured: list[float]
    step: float
    first: float
    save: float
    saves: int
    seconds: float
    cpu_seconds: float


class Rehearsal(Trainer):
    """A Trainer that takes some of its steps only to measure them."""

    def forecast(self) -> Forecast:
        """Take a few steps, an evaluation and two saves; returns what the whole will take."""
        chosen, counted = self.settings, self._count()
        largest = self._largest()
        self.model.train()
        activations = kept_bytes(
            lambda: self.step.fast_loss(*largest), list(self.model.parameters())
        )
        measured, first, tokens, cpu = self._measure(largest)
        share = counted["tokens"] / tokens  # of a mean step in those that were measured
        step = sum(measured) * share
        saves = math.ceil(chosen.steps / chosen.every)
        earlier, save = (
            self._time_of_a_save(),
            self._time_of_a_save(),
        )  # the first imports what draws
        new = first * min(chosen.steps * chosen.accumulate, len(self.batches))
        return Forecast(
            parameters=sum(parameter.numel() for parameter in self.model.parameters()),
            batches=len(self.batches),
            **counted,
            activations=activations,
            peak=peak_memory(self.device),
            measured=measured,
            step=step,
            first=first,
            save=save[0],
            saves=saves,
            seconds=chosen.steps * step + new + earlier[0] + (saves - 1) * save[0],
            cpu_seconds=chosen.steps * cpu * share + new + earlier[1] + (saves - 1) * save[1],
        )

    def _count(self) -> dict[str, float]:
        """Tokens, places and operations of a step: the mean over an epoch."""
        total = {"tokens": 0.0, "places": 0.0, "flops": 0.0}
        for rows in map(self._rows, self.batches):
            places, flops = self.task.costs(rows)
            total["tokens"] += sum(map(self.task.tokens, rows))
            total["places"] += places
            total["flops"] += flops
        share = self.settings.accumulate / len(self.batches)
        return {name: share * number for name, number in total.items()}

    def _largest(self) -> Batch:
        """The batch with the most places, padding included."""
        batches = map(self._rows, self.batches)
        return self._tensors(max(batches, key=lambda rows: self.task.costs(rows)[0]))

    def _rows(self, batch: list[int]) -> list[Any]:
        return [self.corpus.ids["train"][index] for index in batch]

    def _measure(self, largest: Batch) -> tuple[list[float], float, int, float]:
        """Take steps as the training will.

        Returns the seconds of each that is measured, what a batch takes more when it is new, and
        the tokens and processor seconds of all that are measured.
        """
        self.step([largest] * self.settings.accumulate)
        self._take_a_step()
        begin = time.perf_counter()
        measured: list[float] = []
        new: list[float] = []
        tokens, cpu = 0, 0.0
        while len(measured) < STEPS[1]:
            if len(measured) >= STEPS[0] and self._is_late(begin):
                break
            if self.device.type != "cpu":
                new.append(self._take_a_step()[0])
                self.done -= 1  # the same batches once more
            seconds, used = self._take_a_step()
            measured.append(seconds)
            tokens, cpu = tokens + int(self.rows[-1]["tokens"]), cpu + used
        more = max(0.0, sum(new) - sum(measured)) / len(measured) if new else 0.0
        return measured, more / self.settings.accumulate, tokens, cpu

    def _is_late(self, begin: float) -> bool:
        """Whether the first process has measured for long enough: a step needs all of them."""
        late = torch.tensor(float(time.perf_counter() - begin > SECONDS), device=self.device)
        if distributed.is_initialized():
            distributed.broadcast(late, 0)
        return bool(late)

    def _take_a_step(self) -> tuple[float, float]:
        """Take a step; returns its seconds, by the clock and of the processor."""
        start, cpu = time.perf_counter(), time.process_time()
        self.rows.append(self._advance())
        self._read_losses()  # waits for the device
        return time.perf_counter() - start, time.process_time() - cpu

    def _time_of_a_save(self) -> tuple[float, float]:
        """Seconds, by the clock and of the processor, of an evaluation and a save."""
        start, cpu = time.perf_counter(), time.process_time()
        self._evaluate(self.rows[-1])
        self._save()
        return time.perf_counter() - start, time.process_time() - cpu


def peak_memory(device: torch.device) -> int:
    """The most bytes that a GPU's allocator or, on a CPU, this process ever held; 0: unknown."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ImportError:  # on Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def rehearse(settings: Settings, corpus: Corpus, device: torch.device) -> Forecast:
    """Measure a few steps of a training; whatever is written is in a folder that is removed."""
    with tempfile.TemporaryDirectory() as place:
        return Rehearsal(settings, corpus, RunFolder(Path(place)), device).forecast()


def show(found: Forecast, settings: Settings, corpus: Corpus, device: torch.device) -> None:
    """Print a forecast."""
    steps, quickest, slowest = settings.steps, min(found.measured), max(found.measured)
    epochs = steps * settings.accumulate / found.batches
    weights = 4 * found.parameters
    memory = 4 * weights + found.activations
    lines = {
        "device": describe(device),
        "parameters": readable(found.parameters),
        "steps": f"{readable(steps)}: {epochs:.1f} epochs of {readable(found.batches)} batches",
        "tokens": f"{readable(round(found.tokens))} a step, {found.tokens * steps:.3g} in all; "
        f"padding fills {1 - found.tokens / found.places:.0%} of the places",
        "operations": f"{found.flops:.3g} FLOP a step, {found.flops * steps:.3g} in all: matrix "
        "products, padding included",
        "memory": f"{_mb(memory)}: weights {_mb(weights)}, gradients {_mb(weights)}, AdamW "
        f"{_mb(2 * weights)}, activations of the largest batch {_mb(found.activations)}",
        "peak": f"{_mb(found.peak)}, measured, of all that runs" if found.peak else "not measured",
        "a step": f"{found.step:.3g} s, of {len(found.measured)} measured: {quickest:.3g} to "
        f"{slowest:.3g} s; {found.tokens / found.step:,.0f} tokens/s, "
        f"{found.flops / found.step:.3g} FLOP/s",
        "a new batch": f"{found.first:.3g} s more, once for each",
        "a save": f"{found.save:.3g} s with its evaluation; {found.saves} of them",
        "time": f"{duration(found.seconds)}, {duration(found.cpu_seconds)} of it the processor's; "
        f"then {judged(settings, corpus)} to judge it",
    }
    if found.first == 0:
        del lines["a new batch"]
    for name, value in lines.items():
        print(f"{name:>12}  {value}")


def judged(settings: Settings, corpus: Corpus) -> str:
    """What is done when a training has ended, to see what it can."""
    if settings.model == MODERN:
        return "an evaluation and a sample"
    several = (len(corpus.ids[split][: settings.judged or None]) for split in ("val", "test"))
    return f"{readable(sum(several))} translations"


def _mb(number: float) -> str:
    return f"{number / 1e6:.3g} MB" if number < 1e9 else f"{number / 1e9:.3g} GB"


def duration(seconds: float) -> str:
    """A time for people, in its two largest units.

    >>> duration(41.4), duration(201), duration(7260)
    ('41 s', '3 min 21 s', '2 h 1 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min {rest} s"
