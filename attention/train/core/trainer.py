"""The training loop of `python -m attention.train`: on one device, or on several under torchrun."""

import functools
import math
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, distributed

from attention.provided.models.model_file import put, weights_of
from attention.provided.progress import Bar
from attention.train.core.devices import dtype_of_products
from attention.train.core.step import Batch, Step, learning_rate, rank
from attention.train.core.tasks import Task, Translation
from attention.train.corpora.texts import Corpus
from attention.train.pieces import collected
from attention.train.pieces.adapters import furnish
from attention.train.runs.run_folder import STATE, Row, RunFolder, RunFolderError
from attention.train.runs.settings import Settings
from attention.training import average_checkpoints, epoch_order

PROGRESS = ("done", "seconds", "cpu_seconds", "kept")  # what a state holds of a Trainer
READ = 20  # steps between two looks at the loss, for each of which a GPU has to finish


class Diverged(RuntimeError):
    """The loss of a training is no number any more; str() says at which step, and what helps."""


def _mean_loss(rows: Iterable[Row]) -> float:
    return statistics.fmean(float(row["loss"]) for row in rows)


def task_of(settings: Settings, corpus: Corpus) -> Task:
    """The task of a training; ValueError if the lesson that it needs is not in this copy."""
    if settings.model == "transformer":
        return Translation(settings, corpus)
    try:
        from attention.train.core.writing import Writing
    except ModuleNotFoundError as error:  # in a student's copy, the library of lessons to come
        raise ValueError(
            f"--model {settings.model} needs {error.name}, which a later lesson brings"
        ) from None
    return Writing(settings, corpus)


class Trainer:
    """Trains a model by its settings, and keeps everything in a run folder.

    settings  Settings
    corpus    Pairs or Text of attention.train.corpora, whichever `task_of` these settings takes
    folder    RunFolder; only the first of several processes writes
    device    a torch.device
    resume    go on from the folder's state
    """

    def __init__(
        self,
        settings: Settings,
        corpus: Corpus,
        folder: RunFolder,
        device: torch.device,
        resume: bool = False,
    ):
        self.settings, self.corpus, self.folder, self.device = settings, corpus, folder, device
        self.first = rank() == 0
        self.task = task = task_of(settings, corpus)
        torch.manual_seed(settings.seed)
        model = task.untrained()
        own = collected.placed()
        self.model = furnish(model).to(device) if own else task.prepare(model, device)
        if settings.compile:
            for stack in task.stacks(self.model):
                stack.compile(dynamic=True)
        dtype = dtype_of_products(settings.dtype, device)
        self.step = Step(self.model, settings, device, dtype, task.loss(self.model, dtype))
        self.evaluation = task.evaluation(self.model, dtype)
        self.batches, self.held_out = task.cut("train"), task.cut("val")
        self.order = functools.lru_cache(maxsize=1)(epoch_order)  # asked for in every step
        self.done, self.loss = 0, math.nan
        self.rows: list[Row] = []
        self.kept: list[str] = []  # names of the last weights
        self.seconds = self.cpu_seconds = 0.0  # spent on training, also before a stop
        if resume:
            self._restore()

    def _tensors(self, rows: Sequence[Any]) -> Batch:
        """The two tensors of some rows, on the device."""
        made = self.task.tensors(rows)
        if self.device.type == "cuda":  # these are copied while the device still computes
            made = made[0].pin_memory(), made[1].pin_memory()
        read, target = (tensor.to(self.device, non_blocking=True) for tensor in made)
        return read, target

    def _batches_of(self, step: int) -> Iterator[list[Any]]:
        """A step's batches, lists of rows, from step 1: settings and step decide on them."""
        first = (step - 1) * self.settings.accumulate
        for place in range(first, first + self.settings.accumulate):
            epoch, index = divmod(place, len(self.batches))
            order = self.order(len(self.batches), self.settings.seed, epoch)
            yield [self.corpus.ids["train"][row] for row in self.batches[order[index]]]

    def run(self) -> float:
        """Train to the last step; returns the seconds that it took."""
        settings, begin, spent = self.settings, time.perf_counter(), self.seconds
        cpu_spent = self.cpu_seconds - time.process_time()
        self._announce()
        with Bar(settings.steps) as bar:
            bar.begin -= spent  # the time left is judged from all steps, also those before a stop
            while self.done < settings.steps:
                row = self._advance()
                row["seconds"] = round(spent + time.perf_counter() - begin, 3)
                self.rows.append(row)
                if self.done % READ == 1 or math.isnan(self.loss):
                    self._read_losses()
                if self.done % settings.every == 0 or self.done == settings.steps:
                    self._evaluate(row)
                    self.seconds = row["seconds"] = spent + time.perf_counter() - begin
                    self.cpu_seconds = cpu_spent + time.process_time()
                    self._save()
                    self._say()
                if self.first:
                    bar.label = f"training at {self._speed():,.0f} tokens/s"
                    bar.update(self.done, self.loss)
        return self.seconds

    def _advance(self) -> Row:
        """Take the next step; returns its row of the metrics."""
        self.done += 1
        batches = list(self._batches_of(self.done))
        rate = learning_rate(self.done, self.settings)
        for group in self.step.optimizer.param_groups:
            group["lr"] = rate
        # Each step draws its dropout from a seed of its own, so a resumed run draws the same.
        torch.manual_seed(((self.settings.seed << 32) + self.done) * 64 + rank())
        return {
            "step": self.done,
            "epoch": (self.done - 1) * self.settings.accumulate // len(self.batches),
            "learning_rate": f"{rate:.6g}",
            "loss": self.step([self._tensors(batch) for batch in batches]),  # still a tensor
            "val_loss": "",
            "tokens": sum(self.task.tokens(row) for batch in batches for row in batch),
            "seconds": 0.0,
        }

    def _read_losses(self) -> None:
        """Turn the losses of the last steps into numbers. This waits for the device to finish."""
        waiting = [row for row in self.rows[-READ:] if isinstance(row["loss"], Tensor)]
        for row in waiting:
            row["loss"] = row["loss"].item()
            if not math.isfinite(row["loss"]):
                raise Diverged(
                    f"the loss of step {row['step']} is {row['loss']}: the training diverged; try "
                    "a lower --learning-rate or a longer --warmup"
                )
        if waiting:
            self.loss = _mean_loss(waiting)

    def _speed(self) -> float:
        """Real tokens per second, over the last 50 steps."""
        recent = self.rows[-51:]
        spent = float(recent[-1]["seconds"]) - float(recent[0]["seconds"])
        return sum(int(row["tokens"]) for row in recent[1:]) / spent if spent > 0 else 0.0

    def _evaluate(self, row: Row) -> None:
        """Measure the validation loss, on the first process, and tell the others."""
        self._read_losses()
        loss = torch.zeros((), device=self.device)
        if self.first:
            loss = self.held_out_loss()
        if distributed.is_initialized():
            distributed.broadcast(loss, 0)
        row["val_loss"] = loss.item()

    def held_out_loss(self) -> Tensor:
        """The model's loss on the validation split, ()."""
        ids = self.corpus.ids["val"]
        batches = (self._tensors([ids[row] for row in batch]) for batch in self.held_out)
        return self.evaluation(batches).detach().float()

    def _announce(self) -> None:
        """Print what begins, or goes on, and when the next line will follow."""
        if self.first:
            begun = f"resumed after step {self.done} of" if self.done else "training"
            print(
                f"{begun} {self.settings.steps} steps on {self.device.type}; "
                f"a save every {self.settings.every} steps",
                flush=True,
            )

    def _say(self) -> None:
        """Print a line about the steps since the last line where no progress bar can be seen."""
        if self.first and not sys.stderr.isatty():
            last = self.rows[-1]
            recent = self.rows[(self.done - 1) // self.settings.every * self.settings.every :]
            print(
                f"step {self.done} of {self.settings.steps} · loss {_mean_loss(recent):.3f} · "
                f"validation {last['val_loss']:.3f} · {self._speed():,.0f} tokens/s",
                flush=True,
            )

    def _save(self) -> None:
        """Write weights, state, metrics and curves; a kill at any moment leaves the last save."""
        if not self.first:
            return
        weights = weights_of(self.model)
        name = f"weights-{self.done:08}.safetensors"
        self.folder.save(name, weights, {"step": self.done})
        old, self.kept = self.kept, [*self.kept, name][-self.settings.average :]
        tensors = {f"model.{name}": tensor for name, tensor in weights.items()}
        for index, state in self.step.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": value for name, value in state.items()}
        self.folder.write_metrics(self.rows)
        about = {name: getattr(self, name) for name in PROGRESS}
        self.folder.save(STATE, tensors, about)
        self.folder.forget(set(old) - set(self.kept))
        self.folder.draw(self.rows, self.settings.smoothing > 0)  # whether labels are smoothed

    def _restore(self) -> None:
        """Go on from the last save; a training that was stopped before its first begins anew."""
        if not (self.folder.path / STATE).exists():
            return
        tensors, about = self.folder.load(STATE)
        self.__dict__ |= {name: about[name] for name in PROGRESS}
        self.folder.demand(self.kept)
        self.rows = self.folder.metrics(self.done)
        if len(self.rows) < self.done:
            raise RunFolderError(f"{self.folder.path / 'metrics.csv'} lacks steps of the last save")
        states: dict[int, dict[str, Tensor]] = {}
        weights = {}
        for key, tensor in tensors.items():
            kind, _, name = key.partition(".")
            if kind == "model":
                weights[name] = tensor
            else:
                index, _, name = name.partition(".")
                states.setdefault(int(index), {})[name] = tensor
        put(weights, self.model, self.folder.path / STATE)
        state = self.step.optimizer.state_dict()
        self.step.optimizer.load_state_dict(state | {"state": states})

    def finish(self) -> Any:
        """Give the model the average of the last saves, and store it; returns the model.

        Only the first of several processes does so; the others return the model as it is.
        """
        if self.first:
            average = average_checkpoints([self.folder.load(name)[0] for name in self.kept])
            put(average, self.model, self.folder.path)
            about = {"settings": vars(self.settings), **self.corpus.description()}
            self.folder.save("model.safetensors", average, about | {"step": self.done})
        return self.model.eval()
