"""Answers to lesson 10 that were written without a look at its checks."""

import functools
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.sequence_to_sequence import shift_right
from attention.tokens_and_positions import sinusoidal_positions
from attention.transformer_blocks import DecoderLayer, EncoderLayer
from tests.locked import right, wrong

TIED = ("none", "target", "all")


@wrong("masks_from_tokens", cause="the masks are integers, not bool", kind="dtype")
def masks_from_tokens_5(source, target):
    target_mask = (target != PAD).unsqueeze(1) & causal_mask(target.shape[1], target.device)
    return (source != PAD).unsqueeze(1).long(), target_mask.long()


@wrong(
    "masks_from_tokens",
    cause="the causal mask is made on the CPU, wherever the ids are",
    kind="device",
)
def masks_from_tokens_7(source, target):
    target_mask = (target != PAD).unsqueeze(1) & causal_mask(target.shape[1])
    return (source != PAD).unsqueeze(1), target_mask


@wrong("masks_from_tokens", cause="takes BOS for padding as well", kind="value")
def masks_from_tokens_8(source, target):
    target_mask = (target > 1).unsqueeze(1) & causal_mask(target.shape[1], target.device)
    return (source > 1).unsqueeze(1), target_mask


@wrong("masks_from_tokens", cause="adds an axis for the heads: (B, 1, 1, T_k)", kind="shape")
def masks_from_tokens_9(source, target):
    causal = causal_mask(target.shape[1], target.device)
    return (source != PAD)[:, None, None, :], (target != PAD)[:, None, None, :] & causal


@right("masks_from_tokens", how="positions compared with each other, logical_and")
def masks_from_tokens_10(source, target):
    t = torch.arange(target.shape[1], device=target.device)
    past = t.view(1, -1, 1) >= t.view(1, 1, -1)
    return source.ne(PAD)[:, None, :], torch.logical_and(past, target.ne(PAD)[:, None, :])


class _Parts(nn.Module):
    """What the notebook gives, then `tie`; the other methods are right."""

    def __init__(self, source_size, target_size, d_model, n_heads, d_ff, dropout=0.1, tied="none"):
        super().__init__()
        if tied not in TIED:
            raise ValueError(f"tied={tied!r} is none of {', '.join(TIED)}")
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

    def embed(self, tokens, embedding):
        x = embedding(tokens)
        positions = torch.arange(x.shape[1], dtype=x.dtype, device=x.device)
        x = x * math.sqrt(x.shape[2]) + sinusoidal_positions(positions, x.shape[2])
        return self.dropout(x)

    def encode(self, source, source_mask):
        return self.encoder(self.embed(source, self.source_embedding), source_mask)

    def decode(self, read, memory, target_mask, source_mask):
        y = self.embed(read, self.target_embedding)
        return self.generator(self.decoder(y, memory, target_mask, source_mask))

    def forward(self, source, target, source_mask, target_mask):
        memory = self.encode(source, source_mask)
        return self.decode(shift_right(target), memory, target_mask, source_mask)


@wrong("Translator", cause='with tied="all" the generator keeps a table of its own', kind="value")
class Translator_2(_Parts):
    def tie(self, tied):
        if tied == "target":
            self.generator.weight = self.target_embedding.weight
        elif tied == "all":
            self.source_embedding.weight = self.target_embedding.weight


@wrong(
    "Translator", cause="the positions are made on the CPU, wherever the model is", kind="device"
)
class Translator_9(_Parts):
    def embed(self, tokens, embedding):
        x = embedding(tokens)
        positions = torch.arange(x.shape[1], dtype=x.dtype)
        return self.dropout(x * math.sqrt(x.shape[2]) + sinusoidal_positions(positions, x.shape[2]))


@right("Translator", how="ties towards the generator's weight; positions converted afterwards")
class Translator_17(_Parts):
    def tie(self, tied):
        shared = {"none": [], "target": [self.target_embedding]}.get(
            tied, [self.target_embedding, self.source_embedding]
        )
        for table in shared:
            table.weight = self.generator.weight

    def embed(self, tokens, embedding):
        rows = F.embedding(tokens, embedding.weight)
        T, d_model = rows.shape[-2:]
        places = torch.arange(T, device=tokens.device).to(rows.dtype)
        return self.dropout(d_model**0.5 * rows + sinusoidal_positions(places, d_model))


@wrong("Encoder", cause="dropout, pre_norm and fused are not handed on to the layers", kind="value")
class Encoder_7(nn.Module):
    def __init__(self, n_layers, d_model, n_heads, d_ff, dropout=0.1, pre_norm=True, fused=False):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model) if pre_norm else nn.Identity()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


@right("Encoder", how="nn.Sequential as the list, reduced; the norm made first")
class Encoder_10(nn.Module):
    def __init__(self, n_layers, d_model, n_heads, d_ff, dropout=0.1, pre_norm=True, fused=False):
        super().__init__()
        build = functools.partial(EncoderLayer, d_model, n_heads, d_ff, dropout, pre_norm, fused)
        self.norm = nn.LayerNorm(d_model) if pre_norm else nn.Identity()
        self.layers = nn.Sequential(*[build() for _ in range(n_layers)])

    def forward(self, x, mask=None):
        return self.norm(functools.reduce(lambda h, layer: layer(h, mask), self.layers, x))


@wrong("append_best", cause="as soon as one row has ended, all rows get PAD", kind="value")
def append_best_5(read, logits):
    best = logits[:, -1].argmax(dim=-1)
    if ((read[:, -1] == EOS) | (read[:, -1] == PAD)).any():
        best = torch.full_like(best, PAD)
    return torch.cat([read, best[:, None]], dim=1)


@wrong("append_best", cause="writes -inf into the given logits of ended rows", kind="state")
def append_best_7(read, logits):
    ended = (read[:, -1] == EOS) | (read[:, -1] == PAD)
    last = logits[:, -1]
    last[ended] = -math.inf
    last[ended, PAD] = 0.0
    return torch.cat([read, last.argmax(dim=-1, keepdim=True)], dim=1)


@wrong("append_best", cause="the row of PADs is made on the CPU, wherever read is", kind="device")
def append_best_8(read, logits):
    ended = (read[:, -1] == EOS) | (read[:, -1] == PAD)
    pads = torch.full((len(read),), PAD)
    best = torch.where(ended, pads, logits[:, -1].argmax(dim=-1))
    return torch.cat([read, best[:, None]], dim=1)


@right("append_best", how="multiplied by what goes on, since PAD is 0; hstack")
def append_best_9(read, logits):
    goes_on = torch.ones_like(read[:, -1:])
    for token in (PAD, EOS):
        goes_on = goes_on * (read[:, -1:] != token)
    best = logits[:, -1, :].topk(1).indices
    return torch.hstack([read, torch.where(goes_on.bool(), best, PAD)])


@right("append_best", how="a loop over the rows with lists")
def append_best_10(read, logits):
    rows = []
    for row, scores in zip(read.tolist(), logits, strict=True):
        best = PAD if row[-1] in (EOS, PAD) else scores[-1].argmax().item()
        rows.append([*row, best])
    return torch.tensor(rows, dtype=read.dtype, device=read.device)


@wrong(
    "append_best",
    cause="the range of the argmax leaves out the last id of the vocabulary",
    kind="value",
)
def append_best_11(read, logits):
    best = logits[:, -1, :-1].argmax(dim=-1)
    best = torch.where((read[:, -1] == EOS) | (read[:, -1] == PAD), PAD, best)
    return torch.cat([read, best.unsqueeze(1)], dim=1)


BEGIN = BOS  # the decoder reads it first


@right("Translator", how="the shift by hand, memory and scores in one expression")
class Translator_18(_Parts):
    def forward(self, source, target, source_mask, target_mask):
        read = torch.roll(target, shifts=1, dims=1)
        read[:, 0] = BEGIN
        return self.decode(read, self.encode(source, source_mask), target_mask, source_mask)
