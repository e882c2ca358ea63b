"""Stand-ins for models and their parts, which a check hands to what a learner builds upon such.

What PyTorch has in one call, as `token_loss`, may be a right answer to an exercise; the others are
none to any. `autograder/inside/stand_ins.py` says how they are used.
"""

import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from torch import nn

from autograder.inside.stand_ins import stands_in

PAD, BOS = 0, 1  # as in data/tokens.py, which stands on this room


@stands_in
class RunningMean(nn.Module):
    """In the place of an attention: each position gets the mean of what is real up to it."""

    def __init__(self, d_model: int, *_: Any, **options: Any) -> None:
        super().__init__()
        self.W = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Any, past: Any = None, real: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """Like an attention's, with one head: x in the place of keys, W(x) in that of values."""
        keys, values = x.unsqueeze(1), self.W(x).unsqueeze(1)  # (B, 1, T, d_model)
        if past is not None:
            keys, values = (torch.cat(both, 2) for both in zip(past, (keys, values), strict=True))
        seen = torch.ones_like(keys[..., :1])
        if real is not None:
            _refuse_columns(real, values.shape[2])
            seen = seen * real[:, None, :, None]
        mean = (values * seen).cumsum(2) / seen.cumsum(2).clamp(min=1)
        return mean[:, 0, -x.shape[1] :] + x * x, (keys, values)


@stands_in
class Residual(RunningMean):
    """In the place of a layer: the same, added to what goes in."""

    def forward(self, x: Any, past: Any = None, real: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """As of a layer."""
        update, pair = super().forward(x, past, real)
        return x + torch.tanh(update), pair


@stands_in
class Tanh(nn.Module):
    """In the place of a feed-forward network: one matrix, and a tanh behind it."""

    def __init__(self, d_model: int, *_: Any, **options: Any) -> None:
        super().__init__()
        self.W = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Any) -> Any:
        """(..., d_model) -> (..., d_model)."""
        return torch.tanh(self.W(x))


@stands_in
class Fading(nn.Module):
    """A language model without attention: a sum of the tokens' rows, in which older ones fade.

    rows, columns  (vocab_size, d) each: what a token adds to the sum, and how the sum scores it

    Once it was called, it wants a past, and ``real`` for all tokens so far.
    """

    def __init__(self, rows: torch.Tensor, columns: torch.Tensor) -> None:
        super().__init__()
        self.rows, self.columns, self.has_read = rows, columns, False

    def forward(self, tokens: Any, past: Any = None, real: Any = None) -> tuple[Any, list[Any]]:
        """(B, T) ids -> scores (B, T, vocab_size), and the past: the tokens so far.

        As an attention does, it asks ``real`` about the past as well, at every call.
        """
        if past is None and self.has_read:
            raise RuntimeError("without a past, tokens are read a second time")
        self.has_read = True
        T = tokens.shape[1]
        tokens = tokens if past is None else torch.cat([past[0], tokens], 1)
        if real is not None:
            _refuse_columns(real, tokens.shape[1])
        sums = [torch.zeros_like(self.rows[tokens[:, 0]])]
        for t in range(tokens.shape[1]):
            new = sums[-1] * 0.6 + self.rows[tokens[:, t]]
            sums.append(new if real is None else torch.where(real[:, t, None], new, sums[-1]))
        return torch.stack(sums[-T:], 1) @ self.columns.T, [tokens]


def _refuse_columns(real: Any, wanted: int) -> None:
    if real.dim() != 2 or real.shape[1] != wanted:
        raise ValueError(f"real of shape {tuple(real.shape)}, but there are {wanted} tokens so far")


@stands_in
class ScoresOfRows(nn.Module):
    """In the place of a Transformer: it scores each token by the squares of its row in a table.

    It doubles them while two graphs of earlier calls are in memory: a loop needs one at most.
    """

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.table, self.earlier = nn.Parameter(table.clone()), list[weakref.ref[torch.Tensor]]()

    def forward(self, source: Any, target: Any) -> Any:
        """(B, T_k), (B, T_q) ids -> (B, T_q, vocab_size)."""
        rows = self.table[target]
        kept = sum(one() is not None for one in self.earlier)
        if rows.requires_grad:
            self.earlier.append(weakref.ref(rows))
        return rows * rows * (2 if kept > 1 else 1)  # which its graph needs the rows for


@stands_in
def linear_layer(weight: torch.Tensor, bias: torch.Tensor | None = None) -> nn.Linear:
    """An nn.Linear with these numbers, (d_out, d_in) and (d_out,), and without a bias for None."""
    rows, columns = weight.shape
    layer = nn.Linear(columns, rows, bias=bias is not None, dtype=weight.dtype)
    numbers = {"weight": weight, "bias": bias}
    layer.load_state_dict({name: one for name, one in numbers.items() if one is not None})
    return layer


@stands_in
class Ranked:
    """A function that chooses the token with the largest score of each row, or the next one."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __call__(self, scores: Any) -> Any:
        """(B, vocab_size) -> (B,)."""
        if scores.dim() != 2:
            raise ValueError(f"choose wants scores (B, vocab_size), and got {tuple(scores.shape)}")
        return scores.argsort(dim=1, descending=True)[:, self.rank]


@stands_in
class AddsWords(nn.Module):
    """A translator without recurrence: it adds the rows of a source's words to that of a letter.

    source, target, columns  (vocab_size, d) each: rows of the words, of the letters, and how the
                             sum scores the next letter
    """

    latest: ClassVar["AddsWords"]  # whose parameters `Descent` takes

    def __init__(self, source: torch.Tensor, target: torch.Tensor, columns: torch.Tensor) -> None:
        super().__init__()
        self.source, self.target = nn.Parameter(source.clone()), nn.Parameter(target.clone())
        self.columns = nn.Parameter(columns.clone())
        AddsWords.latest = self

    def forward(self, source: Any, lengths: Any, target: Any) -> Any:
        """As a translator of lesson 02."""
        inside = torch.arange(source.shape[1], device=lengths.device) < lengths[:, None]
        words = (self.source[source] * inside.unsqueeze(2)).sum(1, keepdim=True)
        read = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], 1)
        return torch.tanh(words + self.target[read]) @ self.columns.T


@stands_in
class Descent(torch.optim.SGD):
    """Gradient descent for the `AddsWords` before it: arguments are made from left to right."""

    def __init__(self, lr: float) -> None:
        super().__init__(AddsWords.latest.parameters(), lr=lr)


@stands_in
def read_once(batches: Any) -> Iterator[SimpleNamespace]:
    """Batches from triples of tensors; as those of the course, they can be read a single time."""
    for source, lengths, target in batches:
        yield SimpleNamespace(source=source, lengths=lengths, target=target)


@stands_in
def token_loss(logits: Any, target: Any) -> Any:
    """The mean loss per letter, in the place of the one of lesson 02."""
    return nn.functional.cross_entropy(logits.transpose(1, 2), target, ignore_index=PAD)


@stands_in
class Following:
    """A function that tells what follows the ids so far: the last two of them decide.

    table  (V, V, V)  log-probabilities of the next token, after the last but one and the last
    """

    def __init__(self, table: torch.Tensor) -> None:
        self.table = table

    def __call__(self, ids: Any) -> Any:
        """Ids from BOS on -> (V,)."""
        shown = ids.tolist() if isinstance(ids, torch.Tensor) else ids
        if not isinstance(shown, list | tuple) or list(shown[:1]) != [BOS]:
            raise ValueError(f"next_log_probs wants all ids so far, from BOS = {BOS} on, not {ids}")
        return self.table[[PAD, *ids][-2], ids[-1]].clone()


@stands_in
class InCompany:
    """A translator that spells texts backwards, each by itself or led by the others of its batch.

    led_by  "nobody", "longer" (texts beside it), "number" (of texts in the batch)
    """

    def __init__(self, led_by: str) -> None:
        self.led_by = led_by

    def __call__(self, texts: Any) -> list[str]:
        """A list of texts to the list of their translations."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"translate takes a list of texts, and got {texts!r}")
        longest = max(map(len, texts))
        ends = {
            "nobody": lambda text: "",
            "longer": lambda text: "." * min(2, longest - len(text)),
            "number": lambda text: str(len(texts)),
        }
        return [text[::-1] + ends[self.led_by](text) for text in texts]


@stands_in
class LooksBack:
    """A translator that looks back at the words of its source, without matrices.

    words, letters, columns  (vocab_size, d) each: rows of words, of letters, and how letters score
    """

    def __init__(self, words: torch.Tensor, letters: torch.Tensor, columns: torch.Tensor) -> None:
        self.words, self.letters, self.columns = words, letters, columns

    def encode(self, source: Any, lengths: Any) -> tuple[Any, Any]:
        """Annotations that know the word before, and the first state."""
        annotations = self.words[source] + 0.8 * self.words[source].roll(1, dims=1)
        return annotations, torch.tanh(annotations.mean(1))

    def write(self, tokens: Any, state: Any, annotations: Any, lengths: Any) -> tuple[Any, ...]:
        """As that of lesson 03."""
        beyond = torch.arange(annotations.shape[1], device=lengths.device) >= lengths[:, None]
        shares = (annotations @ state.unsqueeze(2)).squeeze(2).masked_fill(beyond, -torch.inf)
        context = (shares.softmax(1).unsqueeze(1) @ annotations).squeeze(1)
        state = torch.tanh(0.7 * state + self.letters[tokens] + context)
        return (state + context) @ self.columns.T, state, shares.softmax(1)


@stands_in
class Whole:
    """A function that cuts a text into words, and leaves it whole: all of it is one word."""

    def __call__(self, text: Any) -> list[Any]:
        """The text, in a list."""
        return [text]
