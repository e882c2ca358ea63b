"""The two BERTs of lesson 19: the published one, where it was fetched, and the small stand-in."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attention.provided.data.tokens import PAD
from attention.provided.files import ROOT
from attention.provided.models import model_file
from attention.provided.models.bert import minilm
from attention.provided.models.bert.tokenizer import WordPieceTokenizer

Piece = Callable[..., Any]  # a class or a function of the lesson
PUBLISHED, SMALL, UNTRAINED = "published", "stand-in", "untrained"
UNTRAINED_SMALL = "stand-in, untrained"
STAND_IN, N_HEADS = ROOT / "data" / "small_bert.safetensors", 4  # and its heads
LENGTH = 64  # pieces of a text that are read; the stand-in has no more places
MODELS = (PUBLISHED, UNTRAINED, SMALL, UNTRAINED_SMALL)


class BertFile(NamedTuple):
    """What a published BERT consists of: weights by its own names, word pieces, and heads.

    The shapes of the weights do not say how many heads there are.
    """

    weights: dict[str, Tensor]
    vocabulary: list[str]
    n_heads: int

    @property
    def sizes(self) -> dict[str, int]:
        """The arguments of a `PublishedEncoder` that these weights fit."""
        words = self.weights["embeddings.word_embeddings.weight"]
        hidden = self.weights["encoder.layer.0.intermediate.dense.weight"]
        layers = {name.split(".")[2] for name in self.weights if name.startswith("encoder.layer.")}
        return {
            "vocab_size": len(words),
            "max_length": len(self.weights["embeddings.position_embeddings.weight"]),
            "d_model": words.shape[1],
            "n_heads": self.n_heads,
            "d_ff": len(hidden),
            "n_layers": len(layers),
        }


@functools.cache
def published(folder: Path = minilm.FOLDER) -> BertFile:
    """all-MiniLM-L6-v2; ModelFileError, with the command that fetches it, where it is not whole."""
    return BertFile(minilm.read_weights(folder), minilm.read_vocabulary(folder), n_heads=12)


@functools.cache
def small() -> BertFile:
    """The stand-in that ships; ModelFileError if its file is damaged.

    `python -m benchmarks.small_bert` trained it on the docstrings of lesson 15.
    """
    stored, about = model_file.load(STAND_IN)
    weights = {name: weight.float() for name, weight in stored.items()}  # stored with 16 bits
    return BertFile(weights, list(about["vocabulary"]), N_HEADS)


def loaded(file: BertFile, encoder: Piece, rename: Piece, **options: Any) -> Any:
    """Build an encoder that a file fits, and give it the file's weights.

    encoder, rename  lesson 19's PublishedEncoder and rename_weights
    options          further arguments of the encoder
    """
    model = encoder(**file.sizes, **options)
    model.load_state_dict(rename(file.weights, model.state_dict()))
    return model.eval()


class Bert(NamedTuple):
    """A model and what makes texts into its ids."""

    model: Any
    tokenizer: WordPieceTokenizer


def build(name: str, seed: int, encoder: Piece, rename: Piece, cut: Piece) -> Bert:
    """Build one of MODELS; an untrained one has the sizes of the other, and numbers of a seed.

    encoder, rename, cut  the lesson's PublishedEncoder, rename_weights and wordpiece

    Raises ModelFileError, with the command that fetches it, if the published model is wanted and
    not there.
    """
    of_small = name in (SMALL, UNTRAINED_SMALL)
    file = small() if of_small else published()
    tokenizer = WordPieceTokenizer(file.vocabulary, cut)
    if name in (PUBLISHED, SMALL):
        return Bert(loaded(file, encoder, rename), tokenizer)
    torch.manual_seed(seed)
    model = encoder(**file.sizes).eval()
    for part in model.modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):  # as a BERT begins
            nn.init.normal_(part.weight, std=0.02)
        if isinstance(part, nn.Linear):
            nn.init.zeros_(part.bias)
    return Bert(model, tokenizer)


@torch.inference_mode()
def vectors(bert: Bert, texts: Sequence[str], pool: Piece, lower: bool = True) -> Tensor:
    """Vectors of texts, (N, d_model), by the lesson's sentence_vectors; 32 texts at a time."""
    found = []
    for start in range(0, len(texts), 32):
        ids = bert.tokenizer.batch(texts[start : start + 32], LENGTH, lower)
        found.append(pool(bert.model(ids), ids != PAD))
    return torch.cat(found)
