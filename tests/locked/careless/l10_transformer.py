"""Careless right answers to lesson 10."""

import math

import numpy as np
import torch
from torch import nn

from attention.masked_attention import causal_mask
from attention.provided.data.tokens import EOS, PAD
from attention.sequence_to_sequence import shift_right
from attention.tokens_and_positions import sinusoidal_positions
from attention.transformer import TIED
from attention.transformer_blocks import DecoderLayer, EncoderLayer
from tests.locked.careless import careless


@careless("masks_from_tokens", "device", how="a triangle without a device")
def masks_from_tokens_1(source, target):
    past = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril()
    return (source != PAD).unsqueeze(1), (target != PAD).unsqueeze(1) & past


@careless("masks_from_tokens", "device", "plain_numbers", how="lists of True and False")
def masks_from_tokens_2(source, target):
    T = target.shape[1]
    source_mask = torch.tensor([[[token != PAD for token in row]] for row in source.tolist()])
    rows = [
        [[j <= i and row[j] != PAD for j in range(T)] for i in range(T)] for row in target.tolist()
    ]
    return source_mask, torch.tensor(rows)


@careless("masks_from_tokens", "numpy", how="comparisons in NumPy")
def masks_from_tokens_3(source, target):
    past = np.tri(target.shape[1], dtype=bool)
    source_mask = source.numpy()[:, None, :] != PAD
    target_mask = (target.numpy()[:, None, :] != PAD) & past
    return torch.from_numpy(source_mask), torch.from_numpy(target_mask)


class _Tables(nn.Module):
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
        if tied != "none":
            self.generator.weight = self.target_embedding.weight
        if tied == "all":
            self.source_embedding.weight = self.target_embedding.weight

    def encode(self, source, source_mask):
        return self.encoder(self.embed(source, self.source_embedding), source_mask)

    def decode(self, read, memory, target_mask, source_mask):
        x = self.embed(read, self.target_embedding)
        return self.generator(self.decoder(x, memory, target_mask, source_mask))

    def forward(self, source, target, source_mask, target_mask):
        memory = self.encode(source, source_mask)
        return self.decode(shift_right(target), memory, target_mask, source_mask)


@careless("Translator", "device", how="positions without a device")
class Translator_1(_Tables):
    def embed(self, tokens, embedding):
        rows = embedding(tokens)
        dtype = torch.promote_types(rows.dtype, torch.float32)
        positions = sinusoidal_positions(torch.arange(tokens.shape[1], dtype=dtype), rows.shape[-1])
        return self.dropout(math.sqrt(rows.shape[-1]) * rows + positions.to(rows.dtype))


@careless(
    "Translator", "module_state", "device", how="keeps the positions of each length and dtype"
)
class Translator_2(_Tables):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.known = {}

    def embed(self, tokens, embedding):
        rows = embedding(tokens)
        T, d_model = rows.shape[1:]
        if (T, rows.dtype) not in self.known:
            dtype = torch.promote_types(rows.dtype, torch.float32)
            positions = torch.tensor([float(t) for t in range(T)], dtype=dtype)
            self.known[T, rows.dtype] = sinusoidal_positions(positions, d_model).to(rows.dtype)
        return self.dropout(rows * d_model**0.5 + self.known[T, rows.dtype])


@careless("Encoder", "module_state", how="keeps what comes out of each layer")
class Encoder_1(nn.Module):
    def __init__(self, n_layers, d_model, n_heads, d_ff, dropout=0.1, pre_norm=True, fused=False):
        super().__init__()
        sizes = (d_model, n_heads, d_ff, dropout, pre_norm, fused)
        self.layers = nn.ModuleList([EncoderLayer(*sizes) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model) if pre_norm else nn.Identity()

    def forward(self, x, mask=None):
        self.outputs = []
        for layer in self.layers:
            x = layer(x, mask)
            self.outputs.append(x)
        return self.norm(x)


@careless("Encoder", "device", how="a mask of True without a device where none is given")
class Encoder_2(nn.Module):
    def __init__(self, n_layers, d_model, n_heads, d_ff, dropout=0.1, pre_norm=True, fused=False):
        super().__init__()
        layers = [
            EncoderLayer(d_model, n_heads, d_ff, dropout, pre_norm, fused) for _ in range(n_layers)
        ]
        self.layers = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(d_model) if pre_norm else nn.Identity()

    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.ones(1, x.shape[1], x.shape[1], dtype=torch.bool)
        for number in range(len(self.layers)):
            x = self.layers[number](x, mask)
        return self.norm(x)


@careless("append_best", "device", how="PAD as a scalar tensor beside where")
def append_best_1(read, logits):
    ended = (read[:, -1] == EOS) | (read[:, -1] == PAD)
    best = torch.where(ended, torch.tensor(PAD), logits[:, -1].argmax(dim=1))
    return torch.cat([read, best[:, None]], dim=1)


@careless("append_best", "device", "plain_numbers", how="lists of Python ints")
def append_best_2(read, logits):
    rows = []
    for row, scores in zip(read.tolist(), logits, strict=True):
        new = PAD if row[-1] in (EOS, PAD) else scores[-1].argmax().item()
        rows.append([*row, new])
    return torch.tensor(rows)


@careless("append_best", "numpy", how="joins in NumPy")
def append_best_3(read, logits):
    best, ids = logits[:, -1].detach().numpy().argmax(axis=1), read.numpy()
    best[np.isin(ids[:, -1], [EOS, PAD])] = PAD
    return torch.from_numpy(np.concatenate([ids, best[:, None]], axis=1))


@careless("masks_from_tokens", "extra_axis", how="the target's padding as a table of all queries")
def masks_from_tokens_4(source, target):
    real = (target != PAD)[:, None, :].expand(-1, target.shape[1], -1)
    past = causal_mask(target.shape[1], target.device)[None, :, :]
    return (source != PAD)[:, None, :], real * past
