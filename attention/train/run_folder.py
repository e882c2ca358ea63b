"""The folder of one training: what it is, how it goes, and all that is needed to go on.

    config.json           the settings
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
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from attention.provided.files import write_aside
from attention.train.download import DataError

COLUMNS = ("step", "epoch", "learning_rate", "loss", "val_loss", "tokens", "seconds")


class RunFolder:
    """Reads and writes the files of a training in the folder ``path``."""

    def __init__(self, path):
        self.path = Path(path)

    def begin(self, config):
        """Make the folder; DataError if there is a training in it already."""
        if (self.path / "config.json").exists():
            raise DataError(
                f"{self.path} holds a training already: go on with --resume, or choose another "
                "place with --folder"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.path} cannot be made: {error.strerror}") from None
        self.write("config.json", json.dumps(config, indent=1).encode() + b"\n")

    def config(self):
        """Return the settings of the training in the folder; DataError if there is none."""
        path = self.path / "config.json"
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"{self.path} holds no training: leave out --resume") from None
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read: {error}") from None

    def write(self, name, content):
        """Write bytes to a file; DataError, and the old file stays, if it fails."""
        path = self.path / name
        try:
            write_aside(path, content, sync=True)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = "the disk is full" if full else error.strerror
            raise DataError(
                f"{path} cannot be written: {reason}; what was saved before is whole, and "
                "--resume goes on from there"
            ) from None

    def save(self, name, tensors, metadata):
        """Write tensors and a dict for json as a safetensors file."""
        tensors = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
        self.write(name, save(tensors, {"json": json.dumps(metadata)}))

    def load(self, name):
        """Return the tensors and the dict of a safetensors file; DataError if it is not whole."""
        return load(self.path / name)

    def forget(self, names):
        """Remove files."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def write_metrics(self, rows):
        """Write all rows, dicts with the COLUMNS, as CSV."""
        text = io.StringIO(newline="")
        table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        self.write("metrics.csv", text.getvalue().encode())

    def metrics(self, steps):
        """Return the rows of the first ``steps`` steps."""
        try:
            with open(self.path / "metrics.csv", encoding="utf-8", newline="") as file:
                rows = [row for row in csv.DictReader(file) if int(row["step"]) <= steps]
        except (OSError, ValueError, KeyError, TypeError):
            raise DataError(f"{self.path / 'metrics.csv'} is missing or damaged") from None
        return rows

    def draw(self, rows):
        """Draw the learning curves as PNG and SVG."""
        from attention.train.curves import learning_curves

        for kind in ("png", "svg"):
            self.write(f"curves.{kind}", learning_curves(rows, kind))


def load(path):
    """Return the tensors and the dict of a file that `RunFolder.save` wrote.

    Raises DataError if it is missing or damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            return tensors, json.loads((file.metadata() or {})["json"])
    except FileNotFoundError:
        raise DataError(f"{path} is missing") from None
    except (SafetensorError, OSError, KeyError, ValueError):
        raise DataError(f"{path} is damaged, or no file of this program") from None
