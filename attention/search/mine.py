"""`--mine`: search with what a learner has built, and say what is theirs."""

import hashlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention import published_model
from attention.provided.data.tokens import pad
from attention.provided.models.bert.files import BertFile
from attention.search import model as models
from attention.search.model import Model
from attention.train.mine.trial import Trial
from attention.train.mine.using import choose, report
from attention.train.pieces import collected
from attention.train.pieces.adapters import furnish
from attention.train.pieces.collected import Pieces

# What a search calls, by the order of the lessons.
NEEDED = (
    *("masked_attention", "MultiHeadAttention", "LayerNorm", "EncoderLayer"),
    *("gelu", "wordpiece", "rename_weights", "BertLayers", "sentence_vectors", "search"),
)
UNFIT = ("FeedForward",)  # a BERT has GELU in it, lesson 09's has ReLU
TEXTS = (
    "A training that was stopped goes on from its last save, with the same settings as before.",
    "How does a decoder know where it is? Positions are added to the embeddings of the tokens.",
    "Masks hide the future: a token attends to itself, and to whatever came before it.",
    "Beam search keeps the best few hypotheses, and follows each of them with one more token.",
    "def softmax(scores): return scores.exp() / scores.exp().sum(dim=-1, keepdim=True)",
    "Café, naïveté and 1,234 unbelievably-hyphenated words",
    "Yes.",
)
ENCODER = "encoder"  # the part that most pieces are in


class SearchTrial(Trial):
    """The parts of a search, on a few texts; most of them by what `Trial` says."""

    tolerance = 1e-3

    def __init__(self, file: BertFile, pieces: Pieces):
        self.file, self.pieces, self.device = file, pieces, torch.device("cpu")
        tokens = models.tokenizer(file)
        self.length = models.limits(file)["max_length"]
        self.ids = pad([tokens.encode(text, self.length) for text in TEXTS])  # (B, T)
        draw = torch.Generator().manual_seed(0)
        made = torch.randn(1000, file.sizes["d_model"], generator=draw)
        self.vectors = torch.nn.functional.normalize(made, dim=-1)

    def parts(self) -> dict[str, Callable[[], Any]]:
        """What is to be run, by name; the model is made here."""
        encode = models.by_pieces(built(self.file))
        with torch.device("meta"):
            wanted = published_model.PublishedEncoder(**self.file.sizes).state_dict()
        read, vectors = models.tokenizer(self.file), self.vectors
        rename, find = published_model.rename_weights, published_model.search
        return {
            "tokeniser": lambda: [read.encode(text, self.length) for text in TEXTS],
            "renaming": lambda: _summary(rename(self.file.weights, wanted)),
            ENCODER: lambda: encode(self.ids),
            "search": lambda: find(vectors[:3], vectors, k=5, block=300),
        }


def _summary(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """A part of each weight, which tells it from the others."""
    return {name: weight.flatten()[:64] for name, weight in weights.items()}


def built(file: BertFile) -> Any:
    """A PublishedEncoder with the weights of a file, made of the pieces in use."""
    made: Any = furnish(models.encoder(file))
    return made


def use(folder: Path, name: str, file: BertFile) -> Model:
    """Put a learner's pieces in use, as far as they are right, and print whose is what.

    Returns the model that they make. Raises MineError, a ValueError, if there are none.
    """
    pieces = collected.load(folder)
    for one in pieces.own.keys() & {*UNFIT}:
        del pieces.own[one], pieces.library[one]
    library = models.make(name, file)
    used = choose(SearchTrial(file, pieces))
    print(report(pieces, used, NEEDED, "a search"), file=sys.stderr)
    return Model(
        name=f"{name}, with yours",
        sum=_sum(library.sum, pieces, used),
        tokenizer=models.tokenizer(file),
        encode=models.by_pieces(built(file)),
        **models.limits(file),
    )


def _sum(library: str, pieces: Pieces, used: Sequence[str]) -> str:
    """A SHA-256 of all that decides a vector: the published model, and the pieces' files."""
    total = hashlib.sha256(library.encode())
    for path in sorted({pieces.file(name) for name in used}):
        total.update(path.read_bytes())
    total.update(" ".join(used).encode())
    return total.hexdigest()
