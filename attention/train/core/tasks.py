"""What differs between trainings, which the loop does not know: their task.

Translation is here; writing is beside it, where lesson 20 is there.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from attention.decoding import beam_search
from attention.provided.data.tokens import pad
from attention.train.core.model import make_model
from attention.train.core.step import Batch, fast_loss
from attention.train.corpora.texts import Corpus
from attention.train.runs.settings import Settings
from attention.train.speed.acceleration import prepare
from attention.training import Evaluation, batch_by_tokens


class Task:
    """All that the loop does not know: which model, its batches, its loss, what is counted.

    corpus  Pairs or Text of attention.train.corpora: a row is an example of its ids
    """

    few = 16  # rows on which a learner's pieces are tried

    def __init__(self, settings: Settings, corpus: Corpus):
        self.settings, self.corpus = settings, corpus

    def untrained(self) -> Any:
        """The model, untrained, on the CPU: torch's global generator draws its weights."""
        raise NotImplementedError

    def prepare(self, model: Any, device: torch.device) -> Any:
        """Move the model to a device, and make it train fast there; returns it."""
        raise NotImplementedError

    def stacks(self, model: Any) -> Sequence[nn.Module]:
        """The parts of the model that --compile compiles."""
        raise NotImplementedError

    def loss(self, model: Any, dtype: torch.dtype | None) -> nn.Module:
        """What the training lowers: a module from a batch to the mean per real token, ()."""
        raise NotImplementedError

    def evaluation(self, model: Any, dtype: torch.dtype | None = None) -> Evaluation:
        """What measures the loss on the text that is held out."""
        raise NotImplementedError

    def order(self, split: str) -> list[int]:
        """The rows of a split in the order in which they are put into batches."""
        raise NotImplementedError

    def length(self, row: Any) -> int:
        """The places that a row takes in its batch, to compare with --max-tokens."""
        raise NotImplementedError

    def tokens(self, row: Any) -> int:
        """The real tokens of a row that are counted."""
        raise NotImplementedError

    def tensors(self, rows: Sequence[Any]) -> Batch:
        """Two tensors of ids, on the CPU: what is read (B, T_k), and what is predicted (B, T_q)."""
        raise NotImplementedError

    def uses(
        self, model: Any, batch: Batch, rows: int, longest: int
    ) -> dict[str, Callable[[], Any]]:
        """What is done with a trained model, by name, here with a few rows of a batch."""
        raise NotImplementedError

    def cut(self, split: str) -> list[list[int]]:
        """Batches of a split, lists of indices of rows."""
        ids, order = self.corpus.ids[split], self.order(split)
        lengths = [self.length(ids[index]) for index in order]
        batches = batch_by_tokens(lengths, self.settings.max_tokens)
        return [[order[place] for place in batch] for batch in batches]


class Translation(Task):
    """A Transformer that translates; a row is a pair of lists of ids, EOS at the end of each."""

    def untrained(self) -> Any:
        """A Transformer of lesson 10."""
        return make_model(vars(self.settings), self.corpus.source, self.corpus.target)

    def prepare(self, model: Any, device: torch.device) -> Any:
        """Move the model to a device, and make it train fast there; returns it."""
        return prepare(model, device)

    def stacks(self, model: Any) -> Sequence[nn.Module]:
        """Encoder and decoder."""
        return model.encoder, model.decoder

    def loss(self, model: Any, dtype: torch.dtype | None) -> nn.Module:
        """The label-smoothed loss of the targets."""
        return fast_loss(model, self.settings.smoothing, dtype)

    def evaluation(self, model: Any, dtype: torch.dtype | None = None) -> Evaluation:
        """The plain cross-entropy of the targets."""
        return Evaluation(model, dtype=dtype)

    def order(self, split: str) -> list[int]:
        """By the length of the source: in a batch, both sides are of similar length."""
        ids = self.corpus.ids[split]
        return sorted(range(len(ids)), key=lambda index: len(ids[index][0]))

    def length(self, row: Any) -> int:
        """The tokens of the longer side."""
        return max(map(len, row))

    def tokens(self, row: Any) -> int:
        """The tokens of both sides."""
        return sum(map(len, row))

    def tensors(self, rows: Sequence[Any]) -> Batch:
        """Sources and targets, filled up with PAD."""
        source, target = (pad(list(side)) for side in zip(*rows, strict=True))
        return source, target

    def uses(
        self, model: Any, batch: Batch, rows: int, longest: int
    ) -> dict[str, Callable[[], Any]]:
        """Translate by beam search."""
        beam, alpha = self.settings.beam, self.settings.alpha
        length = {"max_length": longest, "return_scores": True}
        return {
            "translation": lambda: beam_search(model, batch[0][:rows], beam, alpha, **length)[1]
        }
