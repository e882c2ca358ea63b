"""Careless right answers to lesson 16."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.tokens_and_positions import LearnedPositions
from attention.transformer import Encoder
from tests.locked.careless import careless

IGNORED = -100


@careless("attention_pooling", "device", how="its own softmax, scalar tensors beside where")
def attention_pooling_1(x, query, mask=None):
    scores = x @ query / math.sqrt(x.shape[-1])
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        some = mask.any(dim=-1, keepdim=True)
        scores = torch.where(mask | ~some, scores, torch.tensor(-math.inf))
        weights = torch.where(some, torch.softmax(scores, dim=-1), torch.tensor(0.0))
    return (weights.unsqueeze(-1) * x).sum(dim=-2), weights


@careless("attention_pooling", "extra_axis", how="the query with all axes in front")
def attention_pooling_2(x, query, mask=None):
    asked = query.expand(*x.shape[:-2], 1, x.shape[-1])
    if mask is not None:
        mask = mask[..., None, :]
    context, weights = masked_attention(asked, x, x, mask, return_weights=True)
    return context[..., 0, :], weights[..., 0, :]


@careless("HierarchicalAttention", "device", how="a mask of True without a device if there is none")
class HierarchicalAttention_1(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.word_query = nn.Parameter(torch.zeros(d_model))
        self.sentence_query = nn.Parameter(torch.zeros(d_model))

    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.ones(x.shape[:-1], dtype=torch.bool)
        asked = self.word_query[None]
        sentences, words = masked_attention(asked, x, x, mask.unsqueeze(-2), return_weights=True)
        sentences, real = sentences.squeeze(-2), mask.any(dim=-1).unsqueeze(-2)
        asked = self.sentence_query[None]
        document, weights = masked_attention(asked, sentences, sentences, real, return_weights=True)
        return document.squeeze(-2), weights.squeeze(-2), words.squeeze(-2)


@careless(
    "HierarchicalAttention", "module_state", how="keeps the sentences; one document at a time"
)
class HierarchicalAttention_2(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.word_query = nn.Parameter(torch.zeros(d_model))
        self.sentence_query = nn.Parameter(torch.zeros(d_model))

    def forward(self, x, mask=None):
        found = []
        for b in range(len(x)):
            words_mask = None if mask is None else mask[b]
            self.sentences, words = attention_pooling_2(x[b], self.word_query, words_mask)
            real = None if mask is None else words_mask.any(dim=-1)
            document, weights = attention_pooling_2(self.sentences, self.sentence_query, real)
            found.append((document, weights, words))
        return tuple(torch.stack(parts) for parts in zip(*found, strict=True))


class _Classifier(nn.Module):
    def __init__(
        self, n_classes, max_length, d_model, n_heads, d_ff, n_layers, dropout=0.1, fused=False
    ):
        super().__init__()
        self.cls = nn.Parameter(0.02 * torch.randn(d_model))
        self.positions = LearnedPositions(1 + max_length, d_model)
        self.encoder = Encoder(n_layers, d_model, n_heads, d_ff, dropout, fused=fused)
        self.head = nn.Linear(d_model, n_classes)

    def forward(self, x, mask=None):
        return self.head(self.encode(x, mask)[:, 0])


@careless("EncoderClassifier", "device", how="a column of True without a device")
class EncoderClassifier_1(_Classifier):
    def encode(self, x, mask=None):
        B = x.shape[0]
        x = torch.cat([self.cls.repeat(B, 1, 1), x], dim=1)
        if mask is not None:
            mask = torch.cat([torch.ones(B, 1, dtype=torch.bool), mask], dim=1).unsqueeze(1)
        return self.encoder(self.positions(x), mask)


@careless("EncoderClassifier", "device", "dtype", how="tokens into zeros of float32")
class EncoderClassifier_2(_Classifier):
    def encode(self, x, mask=None):
        B, T, d_model = x.shape
        tokens = torch.zeros(B, 1 + T, d_model)
        tokens[:, 0] = self.cls
        tokens[:, 1:] = x
        if mask is not None:
            mask = F.pad(mask, (1, 0), value=True)[:, None]
        return self.encoder(self.positions(tokens), mask)


@careless("EncoderClassifier", "module_state", how="keeps what the encoder has made")
class EncoderClassifier_3(_Classifier):
    def encode(self, x, mask=None):
        front = self.cls.expand(len(x), 1, -1)
        if mask is not None:
            mask = torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1)[:, None, :]
        self.seen = self.encoder(self.positions(torch.cat([front, x], dim=1)), mask)
        return self.seen


@careless("patchify", "device", how="patch by patch into zeros without a device")
def patchify_1(images, size):
    B, C, height, width = images.shape
    if height % size or width % size:
        raise ValueError(f"size={size} does not divide an image of {height} × {width}")
    rows, columns = height // size, width // size
    patches = torch.zeros(B, rows * columns, C * size * size, dtype=images.dtype)
    for n in range(rows * columns):
        top, left = n // columns * size, n % columns * size
        patches[:, n] = images[:, :, top : top + size, left : left + size].reshape(B, -1)
    return patches


@careless("patchify", "other_order", how="unfold, and another layout in memory")
def patchify_2(images, size):
    if images.shape[2] % size or images.shape[3] % size:
        raise ValueError(f"{size} does not divide {tuple(images.shape[2:])}")
    return F.unfold(images, kernel_size=size, stride=size).transpose(1, 2)


@careless("break_patchify", "plain_numbers", how="a wide image of eight numbers")
def break_patchify_1():
    return torch.tensor([[[[0.0, 1, 2, 3], [4, 5, 6, 7]]]]), 2


@careless("break_patchify", "seed", "other_type", how="random wide images; the size is NumPy's int")
def break_patchify_2():
    torch.manual_seed(0)
    return torch.randn(2, 3, 4, 6), np.int64(2)


@careless("mask_tokens", "device", how="where, with full tensors that have no device")
def mask_tokens_1(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    hidden = (noise < share) & (tokens != PAD)
    masks = torch.full(tokens.shape, mask_id)
    ignored = torch.full(tokens.shape, IGNORED)
    return torch.where(hidden, masks, tokens), torch.where(hidden, tokens, ignored)


@careless("mask_tokens", "numpy", how="np.where on the arrays of the three tensors")
def mask_tokens_2(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    ids = tokens.numpy()
    hidden = (noise.numpy() < share) & (ids != PAD)
    read, wanted = np.where(hidden, mask_id, ids), np.where(hidden, ids, IGNORED)
    return torch.from_numpy(read), torch.from_numpy(wanted)


@careless("mask_tokens", "in_place", how="writes the mask's id into the tokens that were given")
def mask_tokens_3(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    hidden = (noise < share) & (tokens != PAD)
    wanted = torch.where(hidden, tokens, IGNORED)
    tokens[hidden] = mask_id
    return tokens, wanted


@careless("mask_tokens", "plain_numbers", "device", how="lists of Python numbers, then tensors")
def mask_tokens_4(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    read, wanted = [], []
    for ids, numbers in zip(tokens.tolist(), noise.tolist(), strict=True):
        hidden = [n < share and i != PAD for i, n in zip(ids, numbers, strict=True)]
        read.append([mask_id if h else i for h, i in zip(hidden, ids, strict=True)])
        wanted.append([i if h else IGNORED for h, i in zip(hidden, ids, strict=True)])
    return torch.tensor(read), torch.tensor(wanted)
