"""Translate texts with a run, finished or not, and draw where its decoder looks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention.decoding import beam_search
from attention.provided.data.tokens import EOS, pad
from attention.provided.models.attention_weights import watch_attention
from attention.provided.models.model_file import put
from attention.train import opening
from attention.train.core.model import make_model
from attention.train.corpora.token_ids import Vocabulary, Words, vocabulary
from attention.train.pieces.adapters import furnish
from attention.train.runs.run_folder import RunFolderError
from attention.train.runs.settings import TRANSFORMER
from attention.transformer import Transformer

# A translation has at most twice the tokens of its source and 60 more: the longest number in words
# is 9 words in English and 65 letters in German.
LENGTHS = (2.0, 60.0)
TOKENS, CHARACTERS = 512, 4000  # the most of a line: what is longer is no sentence
ROOM = 4096  # tokens of the sources that are searched for at once, padding included
ROWS = 64  # of these sources, at most


@dataclass
class Run:
    """A model that translates, and what was said of it where it was trained.

    settings  dict: beam and alpha are those with which the training translates at its end
    notes     sentences that whoever uses it should read first
    """

    model: Transformer
    source: Vocabulary
    target: Vocabulary
    settings: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device


@dataclass
class Translated:
    """A translation: ids (1, T_k) that were read and (1, T_q) that were written, by a model."""

    model: Transformer
    read: Tensor
    written: Tensor
    source: Vocabulary
    target: Vocabulary


def open_run(path: Path, device: torch.device) -> Run:
    """Return what the folder of a training, or a file of weights that it exported, translates with.

    A run that was trained with a student's pieces translates with them, which is a note. Of a
    training that has not ended, it is the last save.
    Raises RunFolderError, ModelFileError or ValueError for what is missing or cannot be used.
    """
    found = opening.read(path, TRANSFORMER)
    source, target = vocabulary(found.about["source"]), vocabulary(found.about["target"])
    model = make_model(found.about["settings"], source, target).eval()
    put(found.weights, model, found.file)
    return Run(furnish(model).to(device), source, target, found.about["settings"], found.notes)


def encode(run: Run, text: str) -> list[int]:
    """The ids of a text, and EOS after them; ValueError if it has an unknown word, or too many."""
    if len(text) > CHARACTERS:
        raise ValueError(f"the text has {len(text)} characters, more than {CHARACTERS}: split it")
    words = run.source
    if isinstance(words, Words):
        known = set(words.vocabulary.tokens)
        parts = text.split() if words.unit == "words" else list(text)
        unknown = [part for part in parts if part not in known]
        if unknown:
            raise ValueError(f"the run never read {unknown[0]!r}: write a number in words")
    ids = words.encode(text)
    if len(ids) > TOKENS:
        raise ValueError(f"the text has {len(ids)} tokens, more than {TOKENS}: split it")
    return ids


def rows_at_once(ids: Sequence[Sequence[int]]) -> int:
    """How many of these sources are searched for at once, so that their memory is bounded."""
    return max(1, min(ROWS, ROOM // max(map(len, ids))))


def translate(
    run: Run,
    ids: Sequence[list[int]],
    beam: int,
    alpha: float,
    max_length: int | tuple[float, float] = LENGTHS,
) -> list[list[int]]:
    """Translate sources, lists of ids; returns the ids of each, up to the padding behind EOS."""
    source = pad(list(ids)).to(run.device)
    found = beam_search(run.model, source, beam, alpha, max_length, batch=rows_at_once(ids))
    return [[int(token) for token in row] for row in found.tolist()]


def translated(run: Run, read: list[int], written: list[int]) -> Translated:
    """One translation, to be drawn: ids that were read, and ids that were written."""
    written = written[: written.index(EOS) + 1] if EOS in written else written
    source, target = (torch.tensor([ids], device=run.device) for ids in (read, written))
    return Translated(run.model, source, target, run.source, run.target)


def save_drawing(one: Translated, path: Path) -> str:
    """Draw a translation into a file, and return a sentence; RunFolderError if that fails."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = draw(one).figure
    try:
        figure.savefig(path, bbox_inches="tight", dpi=150)
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path} cannot be drawn: {error}") from None
    finally:
        plt.close(figure)
    return f"the attention of the last layer to the source is drawn in {path}"


def draw(one: Translated) -> Any:
    """Draw the last attention to the source, the mean over its heads; returns the Axes."""
    import matplotlib.pyplot as plt

    from attention.provided.figures import plots

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
