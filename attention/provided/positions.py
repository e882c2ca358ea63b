"""Translators that know order in other ways, or not at all: for experiments on positions."""

import functools
from typing import Any

import torch
from torch import Tensor, nn

from attention.provided.data import in_words
from attention.tokens_and_positions import LearnedPositions, rotary, sinusoidal_positions

KINDS = ("sinusoidal", "learned", "rotary", "none")
MOST = 100  # positions that learned tables have


def positioned(base: Any, source: str = "sinusoidal", target: str = "sinusoidal") -> Any:
    """Return a subclass of a Transformer's class with other positions on each side.

    base            the class, whose `embed` is replaced
    source, target  "sinusoidal" or "learned": added to the embedded tokens; "rotary": turns the
                    queries and keys of all self-attentions of that side; "none"

    Raises ValueError for another kind. All else is that of ``base``, its random start included.
    """
    for kind in (source, target):
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")

    class Positioned(base):
        def __init__(self, *sizes: Any, **options: Any):
            super().__init__(*sizes, **options)
            d_model = self.source_embedding.weight.shape[1]
            self.positions = nn.ModuleDict()
            for side, kind in (("source", source), ("target", target)):
                stack = self.encoder if side == "source" else self.decoder
                if kind == "learned":
                    self.positions[side] = LearnedPositions(MOST, d_model)
                elif kind == "rotary":
                    turn_attentions(stack)

        def embed(self, tokens: Tensor, embedding: nn.Embedding) -> Tensor:
            side = "source" if embedding is self.source_embedding else "target"
            x = embedding(tokens) * embedding.weight.shape[1] ** 0.5  # (B, T, d_model)
            if side in self.positions:
                x = self.positions[side](x)
            elif (source if side == "source" else target) == "sinusoidal":
                x = x + sinusoidal_positions(_positions(x), x.shape[2]).to(x.dtype)
            return self.dropout(x)

    return Positioned


def turn_attentions(stack: nn.Module) -> None:
    """Let the queries and keys of every self-attention in a stack of layers be turned."""
    for name, attention in stack.named_modules():
        if name.split(".")[-1] == "attention":
            for projection in (attention.W_q, attention.W_k):
                projection.register_forward_hook(_turning(attention.d_head))


def _turning(d_head: int) -> Any:
    def turn(_: nn.Module, __: Any, x: Tensor) -> Tensor:
        heads = x.unflatten(-1, (-1, d_head)).transpose(1, 2)  # (B, H, T, d_head)
        turned: Tensor = rotary(heads, _positions(x)).transpose(1, 2).flatten(2)
        return turned  # (B, T, d_model)

    return turn


def _positions(x: Tensor) -> Tensor:
    """The positions 0.0, 1.0, … of (B, T, d_model), in float32 or wider."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return torch.arange(x.shape[1], dtype=wide, device=x.device)


def same_words(number: int, german: str) -> bool:
    """Say whether a German text is a number, and its English words those of ``number`` permuted.

    >>> same_words(896, "sechshundertachtundneunzig"), same_words(896, "achthundert")
    (True, False)
    """
    written = number_of(german)
    if written is None:
        return False
    return sorted(in_words(written, "en").split()) == sorted(in_words(number, "en").split())


def number_of(german: str) -> int | None:
    """Read a number below a million in German words; None if the text is none.

    >>> number_of("zweihunderteinunddreißig"), number_of("zweiund")
    (231, None)
    """
    head, thousands, rest = german.rpartition("tausend")
    below, above = _groups()
    if not thousands:
        return below.get(german)
    if head + thousands not in above or (rest and not below.get(rest)):
        return None
    return above[head + thousands] + (below[rest] if rest else 0)


@functools.cache
def _groups() -> tuple[dict[str, int], dict[str, int]]:
    """German words of all numbers below a thousand, and of all whole thousands."""
    below = {in_words(n, "de"): n for n in range(1000)}
    return below, {in_words(1000 * n, "de"): 1000 * n for n in range(1, 1000)}
