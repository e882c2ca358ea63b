"""Translate texts with a finished run, and draw where its decoder looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention.decoding import beam_search
from attention.provided.data import EOS
from attention.provided.sublayers import watch_attention
from attention.train import own
from attention.train.corpora import Vocabulary, Words
from attention.train.fittings import furnish
from attention.train.model import load_model
from attention.train.run_folder import RunFolderError
from attention.transformer import Transformer

BEAM, ALPHA = 5, 1.0  # as a training translates at its end


@dataclass
class Translated:
    """A translation: ids (1, T_k) that were read and (1, T_q) that were written, by a model."""

    model: Transformer
    read: Tensor
    written: Tensor
    source: Vocabulary
    target: Vocabulary


def translate_with(folder: Path, texts: Sequence[str], device: torch.device) -> list[Translated]:
    """Print the translation of each text by a finished run, and return them.

    A run that was trained with a student's pieces translates with them, and that is said first.
    Raises RunFolderError, ModelFileError or ValueError for what is missing or unknown.
    """
    if not (folder / "model.safetensors").exists():
        raise RunFolderError(f"{folder} holds no finished training: train there first")
    kept = own.use_kept(folder)
    if kept:
        print(f"with yours: {', '.join(piece.name for piece in kept)}")
    model, source, target = load_model(folder / "model.safetensors")
    furnish(model).to(device)
    found = []
    for text in texts:
        read = torch.tensor([_encode(source, text)], device=device)  # (1, T_k)
        written = beam_search(model, read, BEAM, ALPHA)  # (1, T_q)
        print(f"{text} -> {target.decode(written[0].tolist())}")
        found.append(Translated(model, read, written, source, target))
    return found


def save_drawing(one: Translated, path: Path) -> None:
    """Draw a translation into a file; RunFolderError if it cannot be written."""
    import matplotlib

    matplotlib.use("Agg")
    figure = draw(one).figure
    try:
        figure.savefig(path, bbox_inches="tight", dpi=150)
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path} cannot be drawn: {error}") from None
    print(f"the attention of the last layer to the source is drawn in {path}")


def _encode(vocabulary: Vocabulary, text: str) -> list[int]:
    if isinstance(vocabulary, Words):
        known = set(vocabulary.vocabulary.tokens)
        parts = text.split() if vocabulary.unit == "words" else list(text)
        unknown = [part for part in parts if part not in known]
        if unknown:
            raise ValueError(f"the run never read {unknown[0]!r}: write a number in words")
    return vocabulary.encode(text)


def draw(one: Translated) -> Any:
    """Draw the last attention to the source, the mean over its heads; returns the Axes."""
    import matplotlib.pyplot as plt

    from attention.provided import plots

    with torch.no_grad(), watch_attention(one.model) as weights:
        one.model(one.read, one.written)
    last = [name for name in weights if name.endswith("cross_attention")][-1]
    mean = weights[last][0].mean(dim=0)  # (T_q, T_k)
    queries, keys = _labels(one.target, one.written), _labels(one.source, one.read)
    _, ax = plt.subplots(figsize=(5.2, min(1.5 + 0.2 * len(queries), 20.0)))
    axes = plots.heatmap(mean, ax, queries=queries, keys=keys)
    axes.tick_params(axis="x", rotation=60)
    return axes


def _labels(vocabulary: Vocabulary, ids: Tensor) -> list[str]:
    return [
        "EOS" if index == EOS else vocabulary.decode([index]) or "·" for index in ids[0].tolist()
    ]
