"""The folder of one training: what it is, how it goes, and all that is needed to go on.

    config.json           the settings
    vocabularies.json     of source and target, or of a text, and which text it is
    metrics.csv           one line per step
    curves.png, .svg      the learning curves
    state.safetensors     weights, optimiser and position: what --resume reads
    weights-….safetensors the last weights, for the average
    model.safetensors     the final weights, with settings and vocabularies
    result.json           what was measured at the end

Every file is written aside and then renamed: a process killed at any moment leaves whole files.
"""

import csv
import errno
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attention.provided.models import model_file
from attention.provided.models.model_file import Weights
from autograder.files import write_aside

COLUMNS = ("step", "epoch", "learning_rate", "loss", "val_loss", "tokens", "seconds")
CONFIG, VOCABULARIES, STATE = "config.json", "vocabularies.json", "state.safetensors"
NEEDED = (CONFIG, VOCABULARIES, "metrics.csv", STATE)  # to go on from a save
LATER = (STATE, "curves.png", "curves.svg", "model.safetensors", "result.json")  # since a save
Row = dict[str, Any]  # of the metrics: a step, by column


class RunFolderError(RuntimeError):
    """A run folder cannot be used as asked; str() is one sentence that says what to do."""


class RunFolder:
    """Reads and writes the files of a training in the folder ``path``."""

    def __init__(self, path: Path):
        self.path = path

    def refuse_second(self) -> None:
        """Raise RunFolderError if there is a training in the folder already."""
        if self._has((CONFIG, *LATER)):
            raise RunFolderError(
                f"{self.path} holds a training already: go on with --resume, or choose another "
                "place with --folder"
            )

    def refuse_incomplete(self) -> None:
        """Raise RunFolderError if a training that has saved lost a file that it goes on from."""
        if self._has(LATER):
            self.demand(NEEDED)

    def demand(self, names: Iterable[str]) -> None:
        """Raise RunFolderError for the first of these files that is missing."""
        for name in names:
            if not self._has((name,)):
                raise RunFolderError(
                    f"{self.path / name} is missing, without which the training cannot go on: put "
                    "it back, or train in another --folder"
                )

    def _has(self, names: Iterable[str]) -> bool:
        """Whether one of these files is there."""
        return any((self.path / name).exists() for name in names)

    def begin(self, config: dict[str, Any]) -> None:
        """Make the folder; RunFolderError if there is a training in it already."""
        self.refuse_second()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"{self.path} cannot be made: {error.strerror}") from None
        self.write(CONFIG, json.dumps(config, indent=1).encode() + b"\n")

    def keep_vocabularies(self, described: dict[str, Any]) -> None:
        """Write the description of a corpus, if it is not there from earlier on.

        A training that has not ended can translate or write with the vocabularies in it.
        """
        if not self._has((VOCABULARIES,)):
            self.write(VOCABULARIES, json.dumps(described).encode() + b"\n")

    def vocabularies(self) -> dict[str, Any]:
        """Return the description that was kept, {} if none was; RunFolderError if it is damaged."""
        path = self.path / VOCABULARIES
        try:
            described: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return described
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise RunFolderError(f"{path} cannot be read: {error}") from None

    def config(self) -> dict[str, Any]:
        """Return the settings of the training in the folder; RunFolderError if there is none."""
        path = self.path / CONFIG
        try:
            config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return config
        except FileNotFoundError:
            raise RunFolderError(f"{self.path} holds no training: leave out --resume") from None
        except (OSError, ValueError) as error:
            raise RunFolderError(f"{path} cannot be read: {error}") from None

    def write(self, name: str, content: bytes) -> None:
        """Write bytes to a file; RunFolderError, and the old file stays, if it fails."""
        with self._writing(name) as path:
            write_aside(path, content, sync=True)

    def save(self, name: str, weights: Weights, about: dict[str, Any]) -> None:
        """Write weights and a dict about them, as `model_file.save` does; errors as in `write`."""
        with self._writing(name) as path:
            model_file.save(path, weights, about)

    def load(self, name: str) -> tuple[Weights, dict[str, Any]]:
        """Return weights and the dict about them; ModelFileError if the file is not whole."""
        return model_file.load(self.path / name)

    @contextmanager
    def _writing(self, name: str) -> Iterator[Path]:
        """Yield the path of a file; whatever the disk says against it becomes one sentence."""
        path = self.path / name
        try:
            yield path
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = "the disk is full" if full else error.strerror
            raise RunFolderError(
                f"{path} cannot be written: {reason}; what was saved before is whole, and "
                "--resume goes on from there"
            ) from None

    def forget(self, names: Iterable[str]) -> None:
        """Remove files."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def write_metrics(self, rows: Sequence[Row]) -> None:
        """Write all rows, dicts with the COLUMNS, as CSV."""
        text = io.StringIO(newline="")
        table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        self.write("metrics.csv", text.getvalue().encode())

    def metrics(self, steps: int) -> list[Row]:
        """Return the rows of the first ``steps`` steps."""
        try:
            with open(self.path / "metrics.csv", encoding="utf-8", newline="") as file:
                return [row for row in csv.DictReader(file) if int(row["step"]) <= steps]
        except (OSError, ValueError, KeyError, TypeError):
            raise RunFolderError(f"{self.path / 'metrics.csv'} is missing or damaged") from None

    def draw(self, rows: Sequence[Row], smoothed: bool = True) -> None:
        """Draw the learning curves as PNG and SVG; smoothed: the labels in training are."""
        from attention.train.runs.curves import learning_curves

        for kind in ("png", "svg"):
            self.write(f"curves.{kind}", learning_curves(rows, kind, smoothed))
