"""N-gram language models: counts of what followed the last few tokens, and no training.

Interpolated, with the three discounts of modified Kneser-Ney smoothing (Chen and Goodman 1999). An
n-gram that is not stored leaves its probability to the next shorter one. So that a model has the
size that is asked for, those n-grams are stored that would be missed most: by their count times
what they change in log p (Seymore and Rosenfeld 1996).
"""

import torch
from torch import Tensor


class NGrams:
    """A model of all runs of up to ``order`` tokens in a text.

    ids         (T,)  the text to count, int64
    order       tokens of the longest runs
    vocab_size  every id is below
    kept        how many n-grams are stored, None for all; weights for backing off come on top
    continued   count for the shorter n-grams in how many contexts they occur (Kneser-Ney), not how
                often
    """

    def __init__(
        self,
        ids: Tensor,
        order: int,
        vocab_size: int,
        kept: int | None = None,
        continued: bool = True,
    ):
        self.vocab_size, self.keys = vocab_size, list[Tensor]()
        counts, contexts, last, firsts = [], [], list[Tensor](), []
        for n in range(order):
            key = ids if n == 0 else last[-1][:-1] * vocab_size + ids[n:]
            unique, place, count = key.unique(return_inverse=True, return_counts=True)
            first = torch.empty_like(unique).scatter_(0, place, torch.arange(len(place)))
            self.keys.append(unique)
            contexts.append(unique // vocab_size if n else torch.zeros_like(unique))
            counts.append(count)
            last.append(place)
            firsts.append(first)
        shown = list(counts)
        if continued:
            for n in range(order - 1):
                suffix = last[n][1:][firsts[n + 1]]  # of each longer run, what its end is
                shown[n] = torch.bincount(suffix, minlength=len(counts[n])).clamp(min=1)
        self._weigh(shown, contexts, [torch.ones_like(c, dtype=torch.bool) for c in counts])
        self.stored = sum(map(len, counts))
        if kept is not None and kept < self.stored:
            self._weigh(shown, contexts, self._missed_most(ids, counts, firsts, kept))
            self.stored = kept

    def _weigh(self, shown: list[Tensor], contexts: list[Tensor], kept: list[Tensor]) -> None:
        """From counts to the part of each stored n-gram, and what a context leaves to shorter."""
        self.part, self.rest = list[Tensor](), list[Tensor]()
        for count, context, stays in zip(shown, contexts, kept, strict=True):
            total = torch.bincount(context, count.double())
            part = (count - _discounts(count)[count.clamp(max=3)]) / total[context]
            part = part.where(stays, 0.0)
            self.part.append(part)
            self.rest.append(1 - torch.bincount(context, part))

    def _missed_most(
        self, ids: Tensor, counts: list[Tensor], firsts: list[Tensor], kept: int
    ) -> list[Tensor]:
        """Which n-grams to store: all single tokens, and those without which log p falls most."""
        p = self.probabilities(ids)
        loss = [torch.full_like(counts[0], torch.inf, dtype=torch.float64)]
        for n in range(1, len(counts)):
            longer, shorter = (q[firsts[n] + n] for q in (p[n], p[n - 1]))
            loss.append(counts[n] * (longer / shorter).log())
        least = torch.cat(loss).topk(kept).values[-1]
        return [one >= least for one in loss]

    def probabilities(self, ids: Tensor) -> list[Tensor]:
        """Of each token of a text, p by runs of 1, 2, … `order` tokens: each (T,), float64."""
        p, mixed = torch.full((len(ids),), 1 / self.vocab_size, dtype=torch.float64), []
        context = torch.zeros_like(ids)  # of each token, the run before it; -1: never seen
        for n, keys in enumerate(self.keys):
            key = (context * self.vocab_size if n else 0) + ids
            at = torch.searchsorted(keys, key).clamp(max=len(keys) - 1)
            seen = (keys[at] == key) & (context >= 0)
            rest = torch.where(context >= 0, self.rest[n][context.clamp(min=0)], 1.0)
            p = torch.where(seen, self.part[n][at], 0.0) + rest * p
            mixed.append(p)
            context = torch.cat([torch.tensor([-1]), torch.where(seen, at, -1)[:-1]])
        return mixed

    def bits(self, ids: Tensor) -> float:
        """Sum of -log2 p over a text."""
        return -self.probabilities(ids)[-1].log2().sum().item()


def _discounts(counts: Tensor) -> Tensor:
    """What is taken off a count of 0, 1, 2, and 3 or more: (4,), float64."""
    n1, n2, n3, n4 = ((counts == c).sum().item() for c in (1, 2, 3, 4))
    if not (n1 and n2 and n3):
        return torch.tensor([0.0, 0.5, 0.5, 0.5], dtype=torch.float64)
    y = n1 / (n1 + 2 * n2)
    each = [
        c - (c + 1) * y * more / less for c, less, more in ((1, n1, n2), (2, n2, n3), (3, n3, n4))
    ]
    return torch.tensor([0.0, *each], dtype=torch.float64).clamp(min=0.0)
