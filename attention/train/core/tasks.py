"""The task of a training: translation is here, writing beside it, where lesson 20 is there."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from attention.decoding import beam_search
from attention.provided.data.tokens import pad
from attention.train.core.model import make_model
from attention.train.core.step import Batch, fast_loss
from attention.train.core.task import Task
from attention.train.corpora.texts import Corpus
from attention.train.runs.settings import Settings
from attention.train.speed.acceleration import prepare
from attention.training import Evaluation


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


def task_of(settings: Settings, corpus: Corpus) -> Task:
    """The task of a training; ValueError if the lesson that it needs is not in this copy."""
    if settings.model == "transformer":
        return Translation(settings, corpus)
    try:
        from attention.train.core.writing import Writing
    except ModuleNotFoundError as error:  # in a student's copy, the library of lessons to come
        raise ValueError(
            f"--model {settings.model} needs {error.name}, which a later lesson brings"
        ) from None
    return Writing(settings, corpus)
