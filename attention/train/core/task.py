"""What differs between trainings: the seam between the loop and what it trains."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from attention.train.core.step import Batch
from attention.train.corpora.texts import Corpus
from attention.train.runs.settings import Settings
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
