"""Careless right answers to lesson 19."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention.encoders_and_vision import mean_pooling
from attention.provided import demand
from attention.published_model import NAMES, UNUSED, bert_layer
from tests.locked.careless import careless

_known = {}


@careless("gelu", "device", "dtype", how="√2 is a tensor of float32")
def gelu_1(x):
    return 0.5 * x * (1 + torch.erf(x / torch.sqrt(torch.tensor(2.0))))


@careless("gelu", "in_place", how="works on a result of its own")
def gelu_2(x):
    share = torch.erf(x / math.sqrt(2))
    share += 1
    share /= 2
    return share * x


@careless("gelu", "other_order", how="all brackets multiplied out")
def gelu_3(x):
    return x / 2 + x / 2 * torch.erf(0.7071067811865476 * x)


@careless("wordpiece", "slow", how="sorts the whole vocabulary and tries every piece")
def wordpiece_1(word, vocabulary):
    pieces, rest = [], word
    while rest:
        for piece in sorted(vocabulary, key=len, reverse=True):
            letters = piece
            if pieces:
                if not piece.startswith("##"):
                    continue
                letters = piece[2:]
            if letters and rest.startswith(letters):
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        rest = rest[len(letters) :]
    return pieces


@careless("wordpiece", "module_state", how="remembers words in a dict beside it")
def wordpiece_2(word, vocabulary):
    key = (word, tuple(vocabulary))
    if key not in _known:
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if pieces else "") + word[start:end]
                if piece in vocabulary:
                    pieces.append(piece)
                    break
            else:
                pieces = ["[UNK]"]
                break
            start = end
        _known[key] = pieces
    return _known[key]


@careless("wordpiece", "other_type", how="a tuple of pieces")
def wordpiece_3(word, vocabulary):
    pieces, start = (), 0
    while start < len(word):
        ends = range(len(word), start, -1)
        found = [("##" if start else "") + word[start:end] for end in ends]
        known = [piece in vocabulary for piece in found]
        if True not in known:
            return ("[UNK]",)
        pieces += (found[known.index(True)],)
        start = len(word) - known.index(True)
    return pieces


@careless("break_wordpiece", "plain_numbers", how="the word of the hint")
def break_wordpiece_1():
    return "abc", {"ab": 0, "a": 1, "##bc": 2}


@careless("break_wordpiece", "other_type", how="NumPy's ids, all of them the same, and its string")
def break_wordpiece_2():
    return np.str_("aab"), dict.fromkeys(["a", "aa", "##ab"], np.int64(0))


class _Layers(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, n_layers, fused=False):
        super().__init__()
        demand.counts(n_layers=n_layers)
        self.layers = nn.ModuleList(
            [bert_layer(d_model, n_heads, d_ff, fused) for _ in range(n_layers)]
        )


@careless("BertLayers", "device", how="a mask of True without a device if there is none")
class BertLayers_1(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        if mask is None:
            mask = torch.ones(x.shape[0], x.shape[1], dtype=torch.bool)
        hidden = [x]
        for layer in self.layers:
            x = layer(x, mask[:, None, :])
            hidden.append(x)
        return torch.stack(hidden) if return_layers else x


@careless("BertLayers", "device", "dtype", how="into zeros of float32 if all layers are asked for")
class BertLayers_2(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        if mask is not None:
            mask = mask.unsqueeze(1)
        everything = torch.zeros(len(self.layers) + 1, *x.shape)
        everything[0] = x
        for n, layer in enumerate(self.layers):
            x = layer(x, mask)
            everything[n + 1] = x
        return everything if return_layers else x


@careless("BertLayers", "module_state", how="keeps what it sees on the way")
class BertLayers_3(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        keys = mask[:, None] if mask is not None else None
        self.hidden = [x]
        for layer in self.layers:
            self.hidden.append(layer(self.hidden[-1], keys))
        return torch.stack(self.hidden) if return_layers else self.hidden[-1]


@careless("rename_weights", "other_order", how="copies of the tensors, sorted by name")
def rename_weights_1(published, wanted):
    renamed = {}
    for name in sorted(published):
        if name.startswith(UNUSED):
            continue
        place = name
        for theirs, ours in NAMES.items():
            place = place.replace(theirs, ours)
        renamed[place] = published[name].clone()
    for name in sorted(set(renamed) ^ set(wanted)):
        raise ValueError("not in both: " + name)
    return renamed


@careless("rename_weights", "in_place", how="shortens a copy of what is wanted")
def rename_weights_2(published, wanted):
    left, renamed = list(wanted), {}
    for name, weight in published.items():
        if name[:7] == UNUSED[1] or name.startswith(UNUSED[0]):
            continue
        for pair in NAMES.items():
            name = name.replace(*pair)
        left.remove(name) if name in left else _refuse(name)
        renamed[name] = weight
    if left:
        _refuse(left[0])
    return renamed


def _refuse(name):
    raise ValueError(name)


@careless("sentence_vectors", "dtype", how="the mask as float32, in a mean of its own")
def sentence_vectors_1(hidden, mask):
    demand.masks(mask=mask)
    real = mask.float()
    means = (hidden * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True).clamp(min=1)
    return F.normalize(means, dim=-1)


@careless("sentence_vectors", "device", "dtype", how="text by text into zeros of float32")
def sentence_vectors_2(hidden, mask):
    means = mean_pooling(hidden, mask)
    vectors = torch.zeros(means.shape)
    for b in range(len(means)):
        if mask[b].any():
            vectors[b] = means[b] / means[b].norm()
    return vectors


@careless("sentence_vectors", "device", how="a least length that is a tensor without a device")
def sentence_vectors_3(hidden, mask):
    means = mean_pooling(hidden, mask)
    least = torch.full((len(means), 1), 1e-12, dtype=means.dtype)
    return means / torch.maximum(means.norm(dim=1, keepdim=True), least)


@careless("search", "slow", how="all scores at once")
def search_1(queries, passages, k, block=4096):
    demand.counts(k=k, block=block)
    if k > len(passages):
        raise ValueError(f"k={k}, but there are {len(passages)} passages")
    found = (queries @ passages.T).topk(k, dim=1)
    return found.values, found.indices


@careless("search", "device", "dtype", how="begins with -inf of float32, and rows without a device")
def search_2(queries, passages, k, block=4096):
    demand.counts(k=k, block=block)
    if k > len(passages):
        raise ValueError(f"k={k}, but there are {len(passages)} passages")
    best = torch.full((len(queries), k), -math.inf)
    rows = torch.zeros(len(queries), k, dtype=torch.int64)
    for start in range(0, len(passages), block):
        scores = queries @ passages[start : start + block].T
        places = torch.arange(start, start + scores.shape[1]).repeat(len(queries), 1)
        best, columns = torch.cat([best, scores], dim=1).topk(k, dim=1)
        rows = torch.cat([rows, places], dim=1).gather(1, columns)
    return best, rows


@careless("search", "numpy", how="sorts the scores of each block with NumPy, and looks them up")
def search_3(queries, passages, k, block=4096):
    demand.counts(k=k, block=block)
    if k > len(passages):
        raise ValueError(f"k={k}, but there are {len(passages)} passages")
    rows = np.zeros((len(queries), 0), dtype=np.int64)
    for start in range(0, len(passages), block):
        here = np.arange(start, min(start + block, len(passages)))
        rows = np.concatenate([rows, np.tile(here, (len(queries), 1))], axis=1)
        vectors = passages.detach().numpy()[rows]
        scores = np.einsum("qd,qnd->qn", queries.detach().numpy(), vectors)
        order = np.argsort(-scores, axis=1)[:, :k]
        rows = np.take_along_axis(rows, order, axis=1)
    rows = torch.from_numpy(rows)
    return torch.einsum("qd,qkd->qk", queries, passages[rows]), rows


@careless("search", "in_place", "plain_numbers", how="lists of rows, a sort, and scores in place")
def search_4(queries, passages, k, block=4096):
    demand.counts(k=k, block=block)
    if k > len(passages):
        raise ValueError(f"k={k}, but there are {len(passages)} passages")
    best = queries.new_zeros(len(queries), k)
    rows = torch.zeros(len(queries), k, dtype=torch.int64, device=queries.device)
    for q in range(len(queries)):
        found = []
        for start in range(0, len(passages), block):
            scores = (passages[start : start + block] @ queries[q]).tolist()
            found += [(-score, start + n) for n, score in enumerate(scores)]
            found = sorted(found)[:k]
        for j, (_, row) in enumerate(found):
            best[q, j] = queries[q] @ passages[row]
            rows[q, j] = row
    return best, rows
