"""Translators that differ in one factor at a time, and what becomes of each: for lessons 03 and 04.

`train_one` and `train_scored` train one of them as lessons 02 and 03 do, and measure it.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention.provided import translators
from attention.provided.additive import attend
from attention.provided.data import BOS, EOS, PAD, Corpus, numbers
from attention.provided.points import measured

ANSWERS = "bahdanau_attention"

Score = Callable[[str, Tensor, Tensor, Mapping[str, Tensor]], Tensor]
D_EMBEDDING, D_STATE = 32, 64


class Additive(nn.Module):
    """The attention of lesson 03: `keys` once per sentence, `forward` once per letter."""

    def __init__(self, d_q: int, d_k: int, d_attention: int = 64):
        super().__init__()
        self.W_q = nn.Linear(d_q, d_attention, bias=False)
        self.W_k = nn.Linear(d_k, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)

    def keys(self, annotations: Tensor) -> Tensor:
        """Project the annotations, (B, T_k, d_k) to (B, T_k, d_attention)."""
        keys: Tensor = self.W_k(annotations)
        return keys

    def forward(self, state: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> Any:
        """Return context (B, T_q, d_v) and weights (B, T_q, T_k) for states (B, T_q, d_q)."""
        return attend(self.W_q(state), keys, self.v.weight[0], values, lengths)


class Scored(nn.Module):
    """Attention by one of the five score functions of lesson 04.

    kind   "dot", "scaled_dot", "bilinear", "reduced_rank" or "additive"
    score  a function like `score` of that lesson
    """

    def __init__(self, kind: str, score: Score, d: int, r: int = 64):
        super().__init__()
        self.kind, self.score = kind, score
        shapes = {
            "bilinear": {"W": (d, d)},
            "reduced_rank": {"V": (r, d), "U": (r, d)},
            "additive": {"W_q": (r, d), "W_k": (r, d), "v": (1, r)},
        }.get(kind, {})
        self.weights = nn.ParameterDict()
        for name, (out, into) in shapes.items():  # begins as nn.Linear does
            self.weights[name] = nn.Linear(into, out, bias=False).weight

    def keys(self, annotations: Tensor) -> Tensor:
        """Return the annotations: the score function projects them itself."""
        return annotations

    def forward(self, state: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> Any:
        """Return context (B, T_q, d_v) and weights (B, T_q, T_k) for states (B, T_q, d)."""
        weights = dict(self.weights.items())
        if "v" in weights:
            weights["v"] = weights["v"][0]
        scores = self.score(self.kind, state, keys, weights)
        beyond = torch.arange(keys.shape[1]).ge(lengths[:, None])  # (B, T_k)
        shares = scores.masked_fill(beyond[:, None], -torch.inf).softmax(dim=-1)
        return torch.bmm(shares, values), shares


class Compared(nn.Module):
    """A translator with a GRU on either side, and one way for the decoder to know the source.

    sizes          sizes of the two vocabularies
    attention      None: at every step the decoder reads the same vector, the state or states in
                   which the encoder ends; or a layer like `Additive`: a context for every letter
    bidirectional  whether the encoder is a forward and a backward RNN of d_source / 2 numbers each
                   or a single forward RNN of d_source
    asks_after     whether the query is the state that has read the previous letter, or, as in
                   lesson 03, the state before that

    forward(source, lengths, target)  (B, T_k), (B,), (B, T_q) -> logits (B, T_q, vocab_size)
    """

    def __init__(
        self,
        sizes: tuple[int, int],
        attention: nn.Module | None,
        bidirectional: bool = True,
        asks_after: bool = False,
        d_source: int = 128,
    ):
        super().__init__()
        self.attention, self.asks_after = attention, asks_after
        self.source_embedding = nn.Embedding(sizes[0], D_EMBEDDING)
        self.encoder = nn.GRU(
            D_EMBEDDING,
            d_source // (1 + bidirectional),
            batch_first=True,
            bidirectional=bidirectional,
        )
        self.first_state = nn.Linear(d_source, D_STATE)
        self.target_embedding = nn.Embedding(sizes[1], D_EMBEDDING)
        self.decoder = nn.GRUCell(D_EMBEDDING + d_source, D_STATE)
        self.output = nn.Linear(D_STATE + d_source, sizes[1])

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the annotations (B, T_k, d_source) and the one vector (B, d_source)."""
        x = self.source_embedding(source)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        annotations, last = self.encoder(packed)
        return pad_packed_sequence(annotations, batch_first=True)[0], torch.cat([*last], dim=1)

    def begin(self, source: Tensor, lengths: Tensor) -> tuple[Any, Tensor, Tensor]:
        """Return what stays for a sentence, the first state, and the context that is read first."""
        annotations, vector = self.encode(source, lengths)
        state = torch.tanh(self.first_state(vector))
        if self.attention is None:
            return None, state, vector
        keys = self.attention.keys(annotations)  # type: ignore[operator]  # not a Tensor
        return (keys, annotations, lengths), state, torch.zeros_like(vector)

    def step(self, tokens: Tensor, state: Tensor, context: Tensor, source: Any) -> Any:
        """Read a token; returns features for the output, the state, the context and the weights."""
        x, weights = self.target_embedding(tokens), None
        if source and not self.asks_after:
            context, weights = self._look(state, source)
        state = self.decoder(torch.cat([x, context], dim=1), state)
        if source and self.asks_after:
            context, weights = self._look(state, source)
        return torch.cat([state, context], dim=1), state, context, weights

    def _look(self, state: Tensor, source: Any) -> tuple[Tensor, Tensor]:
        context, weights = self.attention(state[:, None], *source)  # type: ignore[misc]
        return context[:, 0], weights[:, 0]

    def align(self, source: Tensor, lengths: Tensor, target: Tensor) -> tuple[Tensor, Any]:
        """Return logits (B, T_q, vocab_size) and weights (B, T_q, T_k), by teacher forcing."""
        fixed, state, context = self.begin(source, lengths)
        read = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], dim=1)
        features, alignment = [], []
        for tokens in read.unbind(1):
            made, state, context, weights = self.step(tokens, state, context, fixed)
            features.append(made)
            alignment.append(weights)
        logits = self.output(torch.stack(features, dim=1))
        return logits, None if self.attention is None else torch.stack(alignment, dim=1)

    def forward(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Score every target token, given the true tokens before it."""
        return self.align(source, lengths, target)[0]

    @torch.no_grad()
    def translate(self, source: Tensor, lengths: Tensor, max_length: int = 100) -> Tensor:
        """Return the greedy translation: ids (B, T), filled up with PAD after EOS."""
        fixed, state, context = self.begin(source, lengths)
        tokens = torch.full_like(lengths, BOS)
        written: list[Tensor] = []
        ended = torch.zeros_like(tokens, dtype=torch.bool)
        while len(written) < max_length and not ended.all():
            features, state, context, _ = self.step(tokens, state, context, fixed)
            tokens = self.output(features).argmax(dim=1).masked_fill(ended, PAD)
            written.append(tokens)
            ended = ended | (tokens == EOS)
        return torch.stack(written, dim=1)


def train_one(
    attention: bool,
    bidirectional: bool,
    seed: int,
    steps: int = translators.STEPS,
    asks_after: bool = False,
) -> dict[str, Any]:
    """Train one of the translators that lesson 03 compares; returns what `measured` does."""
    torch.manual_seed(seed)
    corpus = numbers()
    layer = Additive(D_STATE, 2 * D_STATE) if attention else None
    return measured(Compared(_sizes(corpus), layer, bidirectional, asks_after), corpus, seed, steps)


def train_scored(
    kind: str, seed: int, steps: int = translators.STEPS, score: Score | None = None
) -> dict[str, Any]:
    """Train a translator with one of the score functions of lesson 04; see `measured`.

    Two of them need queries as long as keys, so here all annotations have 64 numbers.
    """
    torch.manual_seed(seed)
    corpus = numbers()
    score = score or importlib.import_module("attention.score_functions").score
    assert score is not None
    layer = Scored(kind, score, D_STATE)
    return measured(Compared(_sizes(corpus), layer, d_source=D_STATE), corpus, seed, steps)


def _sizes(corpus: Corpus) -> tuple[int, int]:
    return len(corpus.source_vocabulary), len(corpus.target_vocabulary)
