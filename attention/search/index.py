"""The index: vectors of passages, kept, so that the next search only makes those of new texts."""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from attention.provided.files import ROOT
from attention.provided.models import model_file
from attention.search.model import Model

FOLDER = ROOT / ".cache" / "search"
PART = 512  # passages that become vectors at once: Ctrl-C loses no more than these
Say = Callable[[str], None]


def path_of(places: Iterable[Path], model: Model) -> Path:
    """Where the index of these files and folders is kept: one for each set of them and model."""
    names = sorted({os.path.abspath(place) for place in places})
    return FOLDER / f"{_digest(model.sum, *names)[:16]}.safetensors"


def _digest(*texts: str) -> str:
    return hashlib.sha256(os.fsencode("\0".join(texts))).hexdigest()


def vectors(
    texts: Sequence[str], path: Path, model: Model, say: Say, progress: Say = lambda said: None
) -> Tensor:
    """Return the vectors of texts, (N, d_model): kept ones, or new ones, which are then kept.

    path      of the index; one that is damaged is made anew
    say       is given a sentence if the index cannot be kept
    progress  is told how many vectors are still to be made
    """
    names = [_digest(model.sum, text) for text in texts]
    known = _load(path)
    before, kept = set(known), known
    new = [(name, text) for name, text in zip(names, texts, strict=True) if name not in known]
    try:
        for begin in range(0, len(new), PART):
            progress(f"{len(new) - begin} new passages become vectors …")
            part = new[begin : begin + PART]
            made = model.vectors([text for _, text in part])
            known.update((name, row) for (name, _), row in zip(part, made, strict=True))
        kept = {name: known[name] for name in names}
    finally:
        if kept.keys() != before:
            _save(path, kept, say)
    return torch.stack([known[name] for name in names])


def _load(path: Path) -> dict[str, Tensor]:
    try:
        weights, about = model_file.load(path)
        return dict(zip(about["names"], weights["vectors"], strict=True))
    except (model_file.ModelFileError, KeyError, TypeError, ValueError):
        return {}


def _save(path: Path, kept: dict[str, Tensor], say: Say) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        model_file.save(path, {"vectors": torch.stack([*kept.values()])}, {"names": [*kept]})
    except OSError as error:
        say(f"the index cannot be kept in {path}: {error.strerror}")
