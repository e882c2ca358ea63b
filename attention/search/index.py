"""The index: passages of files and their vectors, kept, and renewed where a file has changed."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention.provided.files import ROOT
from attention.provided.models import model_file
from attention.provided.models.model_file import ModelFileError
from attention.search import reading
from attention.search.model import Model
from attention.search.passages import Passage
from attention.search.reading import ReadingError

FOLDER = ROOT / ".cache" / "search"
VERSION = 3  # of how files are cut and kept: a change here makes every index anew
PART = 512  # passages that become vectors before the next files are read
Say = Callable[[str], None]


@dataclass
class File:
    """A file that was read: its size and time then, what was said of it, and its passages.

    vectors  (N, d_model), one for each passage; None as long as they are not made
    """

    path: str
    stamp: tuple[int, int]  # bytes, and nanoseconds
    note: str
    passages: list[Passage]
    vectors: Tensor | None = None


@dataclass
class Index:
    """The passages of all files in their order, each with its file, and their vectors."""

    rows: list[tuple[File, Passage]]
    vectors: Tensor


def default_path(places: Iterable[Path], model: Model) -> Path:
    """Where the index of these files and folders is kept: one for each set of them and model."""
    names = sorted({os.path.abspath(place) for place in places})
    digest = hashlib.sha256(os.fsencode("\0".join([model.sum, *names]))).hexdigest()
    return FOLDER / f"{digest[:16]}.safetensors"


def load(path: Path, model: Model) -> tuple[dict[str, File], str]:
    """Read a kept index: files by their paths; and why it cannot be used, in a sentence, or ''."""
    if not path.exists():
        return {}, ""
    try:
        tensors, about = model_file.load(path)
        if about["made"] != _made(model):
            return {}, f"{path} was made by another model or version: it is made anew"
        files = [
            File(name, tuple(stamp), note, [Passage(*one) for one in found])
            for name, stamp, note, found in about["files"]
        ]
        parts = tensors["vectors"].split([len(file.passages) for file in files])
    except (ModelFileError, KeyError, TypeError, ValueError, RuntimeError):
        return {}, f"{path} is damaged, or no index: it is made anew"
    for file, part in zip(files, parts, strict=True):
        file.vectors = part
    return {file.path: file for file in files}, ""


def _made(model: Model) -> dict[str, Any]:
    """What an index depends on besides its files."""
    return {"version": VERSION, "model": model.sum, "pieces": model.pieces}


def save(path: Path, files: Iterable[File], model: Model) -> None:
    """Keep those files whose vectors are made; OSError if that fails."""
    done = [file for file in files if file.vectors is not None]
    vectors = [file.vectors for file in done if file.vectors is not None]
    told = [(file.path, file.stamp, file.note, [*map(astuple, file.passages)]) for file in done]
    about = {"made": _made(model), "files": told}
    path.parent.mkdir(parents=True, exist_ok=True)
    model_file.save(path, {"vectors": _joined(vectors, model)}, about)


def _joined(vectors: Sequence[Tensor], model: Model) -> Tensor:
    return torch.cat([torch.empty(0, model.d_model), *vectors])


def renewed(
    places: Sequence[Path], path: Path, model: Model, say: Say, progress: Say = lambda said: None
) -> Index:
    """Return the index of files and folders as they are now, and keep it at a path if it is new.

    say  is given a sentence on whatever is wrong. What is stopped by Ctrl-C keeps what was done.
    """
    old, why = load(path, model)
    if why:
        say(why)
    files: list[File] = []
    try:
        for place, problem in reading.files(places):
            try:
                files.append(_as_it_is(place, problem, old, model))
            except (ReadingError, OSError) as error:
                say(f"{place} {error}")
                continue
            if files[-1].note:
                say(f"{place} {files[-1].note}")
            if files[-1].vectors is None:
                _encode(files, model, progress, least=PART)
        _encode(files, model, progress)
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            save(path, (old | {f.path: f for f in files if f.vectors is not None}).values(), model)
        raise
    if [file.path for file in files] != [*old] or any(old[f.path] is not f for f in files):
        try:
            save(path, files, model)
        except OSError as error:
            say(f"the index cannot be kept in {path}: {error.strerror}")
    rows = [(file, one) for file in files for one in file.passages]
    return Index(rows, _joined([f.vectors for f in files if f.vectors is not None], model))


def _as_it_is(place: Path, problem: str, old: dict[str, File], model: Model) -> File:
    """A file as it is known, if its size and time are what they were, or else as it is read."""
    if problem:
        raise ReadingError(problem)
    name = str(place.absolute())
    known = old.get(name)
    if known is not None and known.stamp == _stamp(place):
        return known
    stamp, content = _stamp(place), reading.contents(place)
    found, note = reading.read(content, reading.kind_of(place), model.pieces, model.count)
    return File(name, stamp, note, found)


def _stamp(place: Path) -> tuple[int, int]:
    with contextlib.suppress(OSError):
        now = place.stat()
        return now.st_size, now.st_mtime_ns
    return -1, -1  # reading it will say why


def _encode(files: Iterable[File], model: Model, progress: Say, least: int = 0) -> None:
    """Make the vectors that are not made, if there are at least so many."""
    waiting = [file for file in files if file.vectors is None]
    texts = [one.text for file in waiting for one in file.passages]
    if len(texts) < least:
        return
    if texts:
        progress(f"{len(texts)} new passages become vectors …")
    vectors = model.vectors(texts).split([len(file.passages) for file in waiting])
    for file, part in zip(waiting, vectors, strict=True):
        file.vectors = part
