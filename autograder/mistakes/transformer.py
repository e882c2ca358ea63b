"""Wrong and right answers to the exercises of lesson 10."""

import copy
import functools

import torch
from torch import nn

from attention.sequence_to_sequence import shift_right
from attention.tokens_and_positions import embed, sinusoidal_positions
from attention.transformer_blocks import DecoderLayer, EncoderLayer
from autograder.checking.toolbox.registry import alternative, careless, mistake

PAD, BOS, EOS = 0, 1, 2


def _real(tokens):
    return (tokens != PAD)[:, None]


@alternative("masks_from_tokens")
def compares_positions(source, target):
    T = torch.arange(target.shape[1], device=target.device)
    return source.ne(PAD).unsqueeze(-2), (T[:, None] >= T) & target.ne(PAD).unsqueeze(-2)


@alternative("masks_from_tokens")
def fills_in_loops(source, target):
    B, T = target.shape
    allowed = torch.zeros(B, T, T, dtype=torch.bool, device=target.device)
    for b in range(B):
        for i in range(T):
            allowed[b, i, : i + 1] = target[b, : i + 1] != PAD
    return torch.stack([row != PAD for row in source]).unsqueeze(1), allowed


@careless("masks_from_tokens")
def makes_the_triangle_on_the_cpu(source, target):
    T = target.shape[1]
    return _real(source), _real(target) & torch.ones(T, T).tril().bool()


@careless("masks_from_tokens")
def fills_zeros_on_the_cpu(source, target):
    B, T = target.shape
    allowed = torch.zeros(B, T, T, dtype=torch.bool)
    for b in range(B):
        for i in range(T):
            allowed[b, i, : i + 1] = target[b, : i + 1] != PAD
    return _real(source), allowed


def _counted(places, d_model, like):
    """Sinusoids of some places, counted in float32 or wider, in another tensor's dtype."""
    wide = torch.float64 if like.dtype == torch.float64 else torch.float32
    return sinusoidal_positions(places.to(wide), d_model).to(like.dtype)


class _Front(nn.Module):
    """A right Translator in small methods, some of which others override."""

    def __init__(self, source_size, target_size, d_model, n_heads, d_ff, dropout=0.1, tied="none"):
        super().__init__()
        if tied not in ("none", "target", "all"):
            raise ValueError(f"tied={tied!r} is none of none, target, all")
        if tied == "all" and source_size != target_size:
            raise ValueError(f"tied: source_size={source_size} is not target_size={target_size}")
        self.source_embedding = nn.Embedding(source_size, d_model)
        self.target_embedding = nn.Embedding(target_size, d_model)
        self.generator = nn.Linear(d_model, target_size, bias=False)
        for table in (self.source_embedding, self.target_embedding, self.generator):
            nn.init.normal_(table.weight, std=d_model**-0.5)
        self.encoder = EncoderLayer(d_model, n_heads, d_ff, dropout)
        self.decoder = DecoderLayer(d_model, n_heads, d_ff, dropout)
        self.dropout = nn.Dropout(dropout)
        self.tie(tied)

    def tie(self, tied):
        if tied != "none":
            self.generator.weight = self.target_embedding.weight
        if tied == "all":
            self.source_embedding.weight = self.target_embedding.weight

    def places(self, T, d_model, like):
        return _counted(torch.arange(T, device=like.device), d_model, like)

    def rows(self, tokens, embedding):
        return embed(tokens, embedding.weight)

    def embed(self, tokens, embedding):
        x = self.rows(tokens, embedding)
        return self.dropout(x + self.places(x.shape[1], x.shape[2], x))

    def read(self, target):
        return shift_right(target)

    def encode(self, source, source_mask):
        return self.encoder(self.embed(source, self.source_embedding), source_mask)

    def decode(self, read, memory, target_mask, source_mask):
        y = self.embed(read, self.target_embedding)
        return self.generator(self.decoder(y, memory, target_mask, source_mask))

    def forward(self, source, target, source_mask, target_mask):
        memory = self.encode(source, source_mask)
        return self.decode(self.read(target), memory, target_mask, source_mask)


@alternative("Translator")
class CountsInFloat32First(_Front):
    def places(self, T, d_model, like):
        places = torch.arange(T, dtype=torch.float32, device=like.device)
        return sinusoidal_positions(places, d_model).to(like)


@alternative("Translator")
class CountsInTheDtypeOfTheRows(_Front):
    def places(self, T, d_model, like):
        return sinusoidal_positions(torch.arange(T, dtype=like.dtype, device=like.device), d_model)


@alternative("Translator")
class TiesTheOtherWayRound(_Front):
    def tie(self, tied):
        if tied in ("target", "all"):
            self.target_embedding.weight = self.generator.weight
        if tied == "all":
            self.source_embedding.weight = self.generator.weight


@alternative("Translator")
class WritesAllInForward(_Front):
    def forward(self, source, target, source_mask, target_mask):
        begin = target.new_full((len(target), 1), BOS)
        vectors = []
        pairs = (source, self.source_embedding), (torch.hstack([begin, target]), None)
        for tokens, embedding in pairs:
            tokens = tokens if embedding is not None else tokens[:, :-1]
            table = (embedding or self.target_embedding).weight
            scaled = table[tokens] * table.shape[1] ** 0.5
            place = torch.arange(tokens.shape[1], device=table.device)
            vectors.append(self.dropout(scaled + _counted(place, table.shape[1], table)))
        memory = self.encoder(vectors[0], source_mask)
        y = self.decoder(vectors[1], memory, mask=target_mask, memory_mask=source_mask)
        return y @ self.generator.weight.T


@careless("Translator")
class CountsOnTheCpu(_Front):
    def places(self, T, d_model, like):
        return _counted(torch.arange(T), d_model, like)


@careless("Translator")
class MakesBosOnTheCpu(_Front):
    def read(self, target):
        return torch.cat([torch.full((len(target), 1), BOS), target[:, :-1]], 1)


class _Stack(nn.Module):
    """A right Encoder in small methods."""

    kind = EncoderLayer

    def __init__(self, n_layers, d_model, n_heads, d_ff, dropout=0.1, pre_norm=True, fused=False):
        super().__init__()
        self.pre_norm = pre_norm
        self.layers = self.make(n_layers, (d_model, n_heads, d_ff, dropout, pre_norm, fused))
        self.end(d_model)

    def make(self, n_layers, sizes):
        return nn.ModuleList(self.kind(*sizes) for _ in range(n_layers))

    def end(self, d_model):
        self.norm = nn.LayerNorm(d_model) if self.pre_norm else nn.Identity()

    def forward(self, x, *others):
        for layer in self.layers:
            x = layer(x, *others)
        return self.norm(x)


@alternative("Encoder")
class AppendsLayers(_Stack):
    def make(self, n_layers, sizes):
        layers = nn.ModuleList()
        while len(layers) < n_layers:
            layers.append(self.kind(*sizes))
        return layers

    def end(self, d_model):
        if self.pre_norm:
            self.norm = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        for number in range(len(self.layers)):
            x = self.layers[number](x, mask=mask)
        return self.norm(x) if self.pre_norm else x


@alternative("Encoder")
class CopiesAndReduces(_Stack):
    def make(self, n_layers, sizes):
        first = self.kind(*sizes)
        return nn.ModuleList([copy.deepcopy(first) for _ in range(n_layers)])

    def end(self, d_model):
        self.norm = nn.LayerNorm(d_model) if self.pre_norm else None

    def forward(self, x, mask=None):
        x = functools.reduce(lambda x, layer: layer(x, mask), self.layers, x)
        return x if self.norm is None else self.norm(x)


def _all_of(x):
    """A mask that hides nothing, made on the CPU."""
    return torch.ones(x.shape[0], 1, x.shape[1], dtype=torch.bool)


def _sentence_by_sentence(x):
    """The same numbers, in a tensor that is made on the CPU and in float32."""
    result = torch.zeros(x.shape)
    for b in range(len(x)):
        result[b] = x[b]
    return result


@careless("Encoder")
class MakesAMaskOnTheCpu(_Stack):
    def forward(self, x, mask=None):
        return super().forward(x, _all_of(x) if mask is None else mask)


@careless("Encoder")
class FillsAResultOnTheCpu(_Stack):
    def forward(self, x, mask=None):
        return _sentence_by_sentence(super().forward(x, mask))


def _append(read, token):
    return torch.cat([read, token[:, None]], 1)


def _ended(read):
    return (read[:, -1] == EOS) | (read[:, -1] == PAD)


@mistake(
    "append_best",
    hint="A row that ended with EOS gets one PAD and then goes on. PAD at the end says that it has "
    "ended, too.",
)
def ends_once(read, logits):
    longer = []
    for row, scores in zip(read, logits, strict=True):
        new = PAD if row[-1] == EOS else int(scores[-1].argmax())
        longer.append([*row.tolist(), new])
    return torch.tensor(longer, device=read.device)


@alternative("append_best")
def loops_over_rows(read, logits):
    rows = []
    for row, scores in zip(read.tolist(), logits.tolist(), strict=True):
        last = scores[-1]
        rows.append([*row, PAD if row[-1] in (EOS, PAD) else last.index(max(last))])
    return torch.tensor(rows, device=read.device)


@alternative("append_best")
def looks_for_any_end(read, logits):
    ended = (read == EOS).any(1) | (read == PAD).any(1)
    best = logits[:, -1, :].topk(1).indices
    return torch.hstack([read, torch.where(ended[:, None], PAD, best)])


@careless("append_best")
def builds_the_rows_on_the_cpu(read, logits):
    rows = []
    for row, scores in zip(read.tolist(), logits, strict=True):
        rows.append([*row, PAD if row[-1] in (EOS, PAD) else int(scores[-1].argmax())])
    return torch.tensor(rows)


@careless("append_best")
def writes_into_the_scores(read, logits):
    ended = _ended(read)
    logits[ended, -1] = -torch.inf
    logits[ended, -1, PAD] = 0.0
    return _append(read, logits[:, -1].argmax(1))


EQUIVALENT = {
    "masks_from_tokens: whose result is cut off from the gradient: return (source_mask.detach(), "
    "(target_mask & causal_mask(target.shape[1], target.device)).detach())": "masks are bool",
    "masks_from_tokens: with `source` once where `target` belongs: return (source_mask, "
    "target_mask & causal_mask(target.shape[1], source.device))": "both are on one device",
    "Translator: with the two items of a pair exchanged: if tied in ('all', 'target'): "
    "self.generator.weight = self.target_embedding.weight": "`in` asks for no order",
    "append_best: whose result is cut off from the gradient: return "
    "torch.cat([read, best.unsqueeze(1)], dim=1).detach()": "ids have no gradient",
}
