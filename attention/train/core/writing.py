"""Lesson 20's decoder as a task of the training command: it learns to go on with a text."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attention.language_models import language_model_loss
from attention.modern_decoder import generate_with_cache
from attention.provided.data.tokens import pad
from attention.train.core.model import make_writer
from attention.train.core.sampling import Sampling
from attention.train.core.step import Batch
from attention.train.core.tasks import Task
from attention.training import Evaluation, ModelAndLoss


class NextTokens:
    """The loss of lesson 15, for what trains and what evaluates: `loss` of lesson 11 is another."""

    model: Any
    dtype: torch.dtype | None

    def loss(self, read: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss per token of target (B, T), (): read (B, T + 1) has one before it.

        The model scores what follows the last token, too, which nothing is compared with.
        """
        with torch.autocast(read.device.type, self.dtype, enabled=self.dtype is not None):
            scores, _ = self.model(read)  # (B, T + 1, vocab_size)
        found: Tensor = language_model_loss(scores.float(), read)
        return found


class TextLoss(NextTokens, ModelAndLoss):
    """The loss, called as a module, so that what wraps it sees all of the work."""

    def forward(self, read: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss per token, (): see `NextTokens`."""
        return self.loss(read, target)


class TextEvaluation(NextTokens, Evaluation):
    """The loss on text that is held out."""


class Writing(Task):
    """A ModernDecoder that goes on with a text; a row is a passage, a list of ids.

    A passage begins with the last token of the one before it, so each token is predicted once, from
    what its passage has before it.
    """

    few = 2

    def untrained(self) -> Any:
        """A ModernDecoder of lesson 20."""
        return make_writer(vars(self.settings), self.corpus.pieces)

    def prepare(self, model: Any, device: torch.device) -> Any:
        """Move the model to a device."""
        return model.to(device)

    def stacks(self, model: Any) -> Sequence[nn.Module]:
        """The layers."""
        return list(model.layers)

    def loss(self, model: Any, dtype: torch.dtype | None) -> nn.Module:
        """The cross-entropy of the next tokens."""
        return TextLoss(model, 0.0, dtype)

    def evaluation(self, model: Any, dtype: torch.dtype | None = None) -> Evaluation:
        """The same loss on the text that is held out."""
        return TextEvaluation(model, dtype=dtype)

    def order(self, split: str) -> list[int]:
        """At random, so that a batch has passages from all over the text."""
        order = list(range(len(self.corpus.ids[split])))
        random.Random(self.settings.seed).shuffle(order)
        return order

    def length(self, row: Any) -> int:
        """The tokens that are predicted."""
        return len(row) - 1

    def tokens(self, row: Any) -> int:
        """The tokens that are predicted."""
        return len(row) - 1

    def tensors(self, rows: Sequence[Any]) -> Batch:
        """Passages (B, T + 1), and what is predicted of them (B, T), filled up with PAD."""
        read = pad(list(rows))
        return read, read[:, 1:].contiguous()

    def uses(
        self, model: Any, batch: Batch, rows: int, longest: int
    ) -> dict[str, Callable[[], Any]]:
        """Go on with the beginnings of some passages: the scores of each new token."""
        return {"writing": lambda: written(model, batch[0][:rows, :longest], longest)}


def written(model: Any, begun: Tensor, length: int) -> list[Tensor]:
    """Go on with passages (B, T); returns the scores of each new token, (B, vocab_size)."""
    found: list[Tensor] = []

    def choose(scores: Tensor) -> Tensor:
        found.append(scores)
        return Sampling(temperature=1.0).choose(scores, torch.full((len(scores),), 0.4))

    generate_with_cache(model, begun, choose, length)
    return found
