"""Careless right answers to lesson 13."""

import math

import numpy as np
import torch
from torch import nn

from attention.masked_attention import masked_attention
from attention.multi_head_attention import merge_heads, split_heads
from tests.locked.careless import careless


@careless("sample_tokens", "device", how="ids one by one into zeros without a device")
def sample_tokens_1(logits, noise, temperature=1.0):
    ids = torch.zeros(len(logits), dtype=torch.long)
    for b in range(len(logits)):
        ends = torch.softmax(logits[b] / temperature, dim=0).cumsum(dim=0)
        ids[b] = (ends > noise[b] * ends[-1]).nonzero()[0, 0]
    return ids


@careless("sample_tokens", "numpy", how="sums and comparisons in NumPy")
def sample_tokens_2(logits, noise, temperature=1.0):
    probabilities = torch.softmax(logits / temperature, dim=1).detach().numpy()
    ends = np.cumsum(probabilities, axis=1)
    place = noise.numpy()[:, None] * ends[:, -1:]
    return torch.from_numpy((ends > place).argmax(axis=1))


@careless("sample_tokens", "plain_numbers", "device", how="walks along each row, a list of ints")
def sample_tokens_3(logits, noise, temperature=1.0):
    drawn = []
    for scores, chance in zip(logits, noise, strict=True):
        ends = (scores / temperature).softmax(0).cumsum(0)
        bar, place = chance * ends[-1], 0
        while ends[place] <= bar:
            place += 1
        drawn.append(place)
    return torch.tensor(drawn)


@careless("top_k_filter", "device", how="a mask of zeros without a device")
def top_k_filter_1(logits, k):
    keep = torch.zeros(logits.shape, dtype=torch.bool)
    for b, row in enumerate(logits):
        keep[b, row.topk(min(k, len(row))).indices] = True
    return logits.masked_fill(~keep, -math.inf)


@careless("top_k_filter", "in_place", "plain_numbers", how="sorts lists, writes into a clone")
def top_k_filter_2(logits, k):
    result = logits.clone()
    for b, row in enumerate(logits.tolist()):
        order = sorted(range(len(row)), key=lambda token: -row[token])
        result[b, order[k:]] = -math.inf
    return result


@careless("top_k_filter", "device", "dtype", how="scatters into -inf of float32")
def top_k_filter_3(logits, k):
    best = logits.topk(min(k, logits.shape[1]), dim=1)
    return torch.full(logits.shape, -math.inf).scatter(1, best.indices, best.values)


@careless("top_p_filter", "device", how="walks along each row; a mask without a device")
def top_p_filter_1(logits, p):
    keep = torch.zeros(logits.shape, dtype=torch.bool)
    for b, row in enumerate(logits):
        probabilities, order = row.softmax(dim=0).sort(descending=True)
        before = torch.tensor(0.0)
        for probability, token in zip(probabilities, order, strict=True):
            if before >= p:
                break
            keep[b, token] = True
            before = before + probability
    return torch.where(keep, logits, torch.tensor(-math.inf))


@careless("top_p_filter", "numpy", how="the mask, which has no gradient, in NumPy")
def top_p_filter_2(logits, p):
    probabilities = logits.detach().softmax(dim=1).numpy()
    order = np.argsort(-probabilities, axis=1, kind="stable")
    inside = np.take_along_axis(probabilities, order, axis=1)
    before = np.cumsum(inside, axis=1) - inside
    dropped = np.zeros(probabilities.shape, dtype=bool)
    np.put_along_axis(dropped, order, before >= p, axis=1)
    return logits.masked_fill(torch.from_numpy(dropped), -math.inf)


@careless("break_top_p_filter", "plain_numbers", how="three equal scores")
def break_top_p_filter_1():
    return torch.tensor([[0.0, 0.0, 0.0]]), 0.5


@careless("break_top_p_filter", "seed", how="random scores above 0, global seed")
def break_top_p_filter_2():
    torch.manual_seed(0)
    return torch.randn(2, 6) + 3, 0.9


class _Cached(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)
        self.keys = self.values = None


@careless("CachedAttention", "device", "dtype", how="begins with empty float32 tensors")
class CachedAttention_1(_Cached):
    def forward(self, x):
        q, k, v = (split_heads(W(x), self.n_heads) for W in (self.W_q, self.W_k, self.W_v))
        if self.keys is None:
            self.keys = torch.zeros(k.shape[0], k.shape[1], 0, k.shape[3])
            self.values = torch.zeros(k.shape[0], k.shape[1], 0, k.shape[3])
        self.keys = torch.cat([self.keys, k], dim=2)
        self.values = torch.cat([self.values, v], dim=2)
        return self.W_o(merge_heads(masked_attention(q, self.keys, self.values)))


@careless(
    "CachedAttention", "module_state", "plain_numbers", how="keeps lists of positions as well"
)
class CachedAttention_2(_Cached):
    def forward(self, x):
        if self.keys is None:
            self.past = []
        k, v = split_heads(self.W_k(x), self.n_heads), split_heads(self.W_v(x), self.n_heads)
        self.past.append((k, v))
        self.keys = torch.cat([key for key, _ in self.past], dim=2)
        self.values = torch.cat([value for _, value in self.past], dim=2)
        q = split_heads(self.W_q(x), self.n_heads)
        scores = q @ self.keys.mT / math.sqrt(q.shape[-1])
        return self.W_o(merge_heads(scores.softmax(dim=-1) @ self.values))


@careless("trace_beam_search", "numpy", "other_type", how="arrays, of numbers and of words")
def trace_beam_search_1():
    first = 0.6 * np.array([0.5, 0.45])
    scores = np.stack([first, (first * np.array([0.7, 0.9]))[::-1]])
    return scores, np.array([[0, 0], [1, 0]]), np.array([["old", "small"], ["dog", "fox"]])


@careless("trace_beam_search", "other_type", how="tensors of float32, and tuples of words")
def trace_beam_search_2():
    scores = torch.tensor([[0.3, 0.27], [0.243, 0.21]])
    return scores, torch.tensor([[0, 0], [1, 0]]), (("old", "small"), ("dog", "fox"))
