"""A published model that turns texts into vectors: all-MiniLM-L6-v2, or its small stand-in."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention import published_model
from attention.provided.data.tokens import PAD, pad
from attention.provided.models.bert import files as bert_files
from attention.provided.models.bert import minilm
from attention.provided.models.bert.files import BertFile
from attention.provided.models.bert.tokenizer import Cut, WordPieceTokenizer
from attention.provided.models.model_file import fingerprint
from attention.search import passages

LONGEST = 256  # pieces of a text that the published model was trained to read
TOKENS = 2048  # of a batch, padding included


@dataclass
class Model:
    """What turns texts into vectors.

    name        as people call it
    sum         a SHA-256 of the weights, the vocabulary and whatever else decides a vector
    tokenizer   a WordPieceTokenizer
    encode      ids (B, T), with PAD, to vectors (B, d_model) of length 1
    d_model     length of a vector
    max_length  of a text's ids
    """

    name: str
    sum: str
    tokenizer: Any
    encode: Callable[[Tensor], Tensor]
    d_model: int
    max_length: int
    counted: dict[str, int] = field(default_factory=dict, init=False)  # words come again

    @property
    def pieces(self) -> int:
        """How many word pieces a passage may have."""
        return min(passages.PIECES, self.max_length - 2)

    def count(self, text: str) -> int:
        """How many word pieces a text has."""
        if text not in self.counted:
            self.counted[text] = len(self.tokenizer.pieces(text))
        return self.counted[text]

    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Return the vectors of texts, (N, d_model), in their order."""
        ids = [self.tokenizer.encode(text, self.max_length) for text in texts]
        made = torch.empty(len(texts), self.d_model)
        for rows in batches([len(row) for row in ids]):
            made[rows] = self.encode(pad([ids[row] for row in rows]))
        return made


def batches(lengths: Sequence[int], tokens: int = TOKENS) -> Iterator[list[int]]:
    """Put texts of like lengths together, so that there is little padding; yields their places.

    >>> list(batches([3, 9, 4, 8], tokens=20))
    [[0, 2], [3, 1]]
    """
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Texts that differ by more than an eighth would be padding for the most part of a batch.
        wide = batch and lengths[place] > 1.125 * lengths[batch[0]] + 1
        if batch and (wide or lengths[place] * (len(batch) + 1) > tokens):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def open_file(folder: Path = minilm.FOLDER, small: bool = False) -> tuple[str, BertFile, str]:
    """Read the published model, or the small one that the course ships if it is not there.

    Returns its name, its file, and a note for whoever searches, or ''. Raises ModelFileError.
    """
    if not small and minilm.available(folder):
        return "all-MiniLM-L6-v2", bert_files.published(folder), ""
    again = minilm.SOURCE.command(folder)
    note = f"a small model searches, and finds little: fetch the published one with `{again}`"
    return "the small model", bert_files.small(), "" if small else note


def encoder(file: BertFile, fused: bool = True) -> Any:
    """Build a PublishedEncoder with published weights.

    Its class, and what renames the weights, are those in use: the library's, or a learner's.
    """
    parts = published_model.PublishedEncoder, published_model.rename_weights
    return bert_files.loaded(file, *parts, fused=fused)


def make(name: str, file: BertFile) -> Model:
    """Make a model of what a file holds, with the parts in use: the library's, or a learner's."""
    told = hashlib.sha256("\n".join([*file.vocabulary, fingerprint(file.weights, "")]).encode())
    return Model(name, told.hexdigest(), tokenizer(file), by_pieces(encoder(file)), **limits(file))


def limits(file: BertFile) -> dict[str, int]:
    """How long the vectors and the texts of a model are."""
    sizes = file.sizes
    return {"d_model": sizes["d_model"], "max_length": min(sizes["max_length"], LONGEST)}


def tokenizer(file: BertFile) -> WordPieceTokenizer:
    """What makes ids of texts, with the function in use that cuts words."""
    return WordPieceTokenizer(file.vocabulary, remembered(published_model.wordpiece))


def by_pieces(model: Any) -> Callable[[Tensor], Tensor]:
    """A PublishedEncoder as a function of ids (B, T), which gives vectors (B, d_model)."""

    @torch.inference_mode()
    def encode(ids: Tensor) -> Tensor:
        made: Tensor = published_model.sentence_vectors(model(ids), ids != PAD)
        return made

    return encode


def remembered(cut: Cut) -> Cut:
    """A function that cuts words, and cuts each only once: most words come again."""
    known: dict[str, Sequence[str]] = {}

    def look(word: str, vocabulary: dict[str, int]) -> Sequence[str]:
        if word not in known:
            known[word] = cut(word, vocabulary)
        return known[word]

    return look
