"""Answers to lesson 16 that were written without a look at its checks."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.tokens_and_positions import LearnedPositions
from attention.transformer import Encoder
from tests.locked import right, wrong

IGNORED = -100


# --- attention_pooling -----------------------------------------------------------------------


@wrong(
    "attention_pooling",
    cause="multiplies the scores by the mask: hidden tokens score 0, and keep weight",
    kind="value",
)
def attention_pooling_3(x, query, mask=None):
    scores = x @ query / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores * mask
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights * mask.any(dim=-1, keepdim=True)
    return (weights.unsqueeze(-2) @ x).squeeze(-2), weights


@wrong(
    "attention_pooling",
    cause="the softmax runs along axis 1, which is T only for (B, T, d_model)",
    kind="size",
)
def attention_pooling_6(x, query, mask=None):
    scores = x @ query / math.sqrt(query.shape[0])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=1).nan_to_num(0.0)
    return (weights[..., None] * x).sum(dim=-2), weights


@wrong("attention_pooling", cause="works for three axes only: (B, T, d_model)", kind="size")
def attention_pooling_7(x, query, mask=None):
    B, T, d_model = x.shape
    q = query.view(1, 1, d_model).expand(B, 1, d_model)
    mask = None if mask is None else mask.view(B, 1, T)
    context, weights = masked_attention(q, x, x, mask, return_weights=True)
    return context.view(B, d_model), weights.view(B, T)


@right("attention_pooling", how="a softmax of its own from exponentials, by einsum")
def attention_pooling_8(x, query, mask=None):
    scores = torch.einsum("...td,d->...t", x, query) * query.numel() ** -0.5
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    exps = (scores - scores.amax(dim=-1, keepdim=True)).exp() * mask
    total = exps.sum(dim=-1, keepdim=True)
    weights = exps / torch.where(total == 0, 1.0, total)
    return torch.einsum("...td,...t->...d", x, weights), weights


@right("attention_pooling", how="a loop over all sequences, each with its real tokens only")
def attention_pooling_9(x, query, mask=None):
    *front, T, d_model = x.shape
    rows = x.reshape(-1, T, d_model)
    masks = torch.ones_like(rows[..., 0]) > 0 if mask is None else mask.reshape(-1, T)
    contexts, weights = [], []
    for row, real in zip(rows, masks, strict=True):
        w = x.new_zeros(T)
        if real.any():
            w[real] = F.softmax(row[real] @ query / math.sqrt(d_model), dim=0)
        weights.append(w)
        contexts.append(w @ row)
    return torch.stack(contexts).view(*front, d_model), torch.stack(weights).view(*front, T)


# --- HierarchicalAttention -------------------------------------------------------------------


def _pool(x, query, mask=None):
    mask = None if mask is None else mask[..., None, :]
    context, weights = masked_attention(query[None], x, x, mask, return_weights=True)
    return context.squeeze(-2), weights.squeeze(-2)


class _Levels(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.word_query = nn.Parameter(torch.zeros(d_model))
        self.sentence_query = nn.Parameter(torch.zeros(d_model))


@wrong(
    "HierarchicalAttention",
    cause="the document is the plain mean of the real sentences, without their weights",
    kind="value",
)
class HierarchicalAttention_4(_Levels):
    def forward(self, x, mask=None):
        sentences, word_weights = _pool(x, self.word_query, mask)
        real = None if mask is None else mask.any(dim=-1)
        _, sentence_weights = _pool(sentences, self.sentence_query, real)
        if real is None:
            return sentences.mean(dim=1), sentence_weights, word_weights
        count = real.sum(dim=1, keepdim=True).clamp(min=1)
        return sentences.sum(dim=1) / count, sentence_weights, word_weights


@wrong(
    "HierarchicalAttention",
    cause="squeeze() without an axis: wrong for one document or one sentence",
    kind="size",
)
class HierarchicalAttention_5(_Levels):
    def forward(self, x, mask=None):
        words = sentences = None
        if mask is not None:
            words, sentences = mask.unsqueeze(2), mask.any(dim=2).unsqueeze(1)
        s, a = masked_attention(self.word_query[None], x, x, words, return_weights=True)
        s, a = s.squeeze(), a.squeeze()
        d, b = masked_attention(self.sentence_query[None], s, s, sentences, return_weights=True)
        return d.squeeze(), b.squeeze(), a


@wrong(
    "HierarchicalAttention",
    cause="the weights of the sentences keep the axis of the one query: (B, 1, S)",
    kind="shape",
)
class HierarchicalAttention_7(_Levels):
    def forward(self, x, mask=None):
        sentences, word_weights = _pool(x, self.word_query, mask)
        real = None if mask is None else mask.any(dim=-1)[:, None, :]
        document, sentence_weights = masked_attention(
            self.sentence_query[None], sentences, sentences, real, return_weights=True
        )
        return document[:, 0], sentence_weights, word_weights


@right("HierarchicalAttention", how="loops over documents and sentences")
class HierarchicalAttention_8(_Levels):
    def forward(self, x, mask=None):
        B, S = x.shape[:2]
        if mask is None:
            mask = torch.ones_like(x[..., 0]) > 0
        documents, of_sentences, of_words = [], [], []
        for b in range(B):
            pairs = [_pool(x[b, s], self.word_query, mask[b, s]) for s in range(S)]
            sentences = torch.stack([pair[0] for pair in pairs])
            real = torch.stack([mask[b, s].any() for s in range(S)])
            document, weights = _pool(sentences, self.sentence_query, real)
            documents.append(document)
            of_sentences.append(weights)
            of_words.append(torch.stack([pair[1] for pair in pairs]))
        return torch.stack(documents), torch.stack(of_sentences), torch.stack(of_words)


@right("HierarchicalAttention", how="real sentences are those whose word weights do not sum to 0")
class HierarchicalAttention_9(_Levels):
    def forward(self, x, mask=None):
        sentences, word_weights = _pool(x.flatten(0, 1), self.word_query, self._rows(mask))
        word_weights = word_weights.unflatten(0, x.shape[:2])
        real = word_weights.detach().sum(dim=2) > 0.5
        document, sentence_weights = _pool(
            sentences.unflatten(0, x.shape[:2]), self.sentence_query, real
        )
        return document, sentence_weights, word_weights

    def _rows(self, mask):
        return None if mask is None else mask.flatten(0, 1)


# --- EncoderClassifier -----------------------------------------------------------------------


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


@wrong(
    "EncoderClassifier",
    cause="a column of floating ones makes the mask floating, which ~ cannot turn round",
    kind="crash",
)
class EncoderClassifier_5(_Classifier):
    def encode(self, x, mask=None):
        B = x.shape[0]
        x = torch.cat((self.cls.repeat(B, 1, 1), x), dim=1)
        if mask is not None:
            mask = torch.cat((torch.ones(B, 1), mask), dim=1).unsqueeze(1)
        return self.encoder(self.positions(x), mask)


@wrong(
    "EncoderClassifier",
    cause="`cls` takes the place of the first token, which is lost",
    kind="shape",
)
class EncoderClassifier_6(_Classifier):
    def encode(self, x, mask=None):
        x = x.clone()
        x[:, 0] = self.cls
        x = self.positions(x)
        if mask is not None:
            mask = mask.clone()
            mask[:, 0] = True
            mask = mask[:, None, :]
        return self.encoder(x, mask)


@wrong(
    "EncoderClassifier",
    cause="adds positions before and after `cls` is put in front",
    kind="value",
)
class EncoderClassifier_7(_Classifier):
    def encode(self, x, mask=None):
        x = self.positions(x)
        x = self.positions(torch.cat((self.cls.expand(len(x), 1, -1), x), dim=1))
        if mask is not None:
            mask = F.pad(mask, (1, 0), value=True).unsqueeze(1)
        return self.encoder(x, mask)


@right("EncoderClassifier", how="pads x with zeros and adds `cls` at the first place")
class EncoderClassifier_8(_Classifier):
    def encode(self, x, mask=None):
        x = F.pad(x, (0, 0, 1, 0))
        first = F.one_hot(torch.tensor(0, device=x.device), x.shape[1]).to(x.dtype)
        x = self.positions(x + first[:, None] * self.cls)
        allowed = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        if mask is not None:
            allowed[:, 1:] = mask
        return self.encoder(x, allowed[:, None, :])


@right("EncoderClassifier", how="positions by hand, and a mask for every query")
class EncoderClassifier_9(_Classifier):
    def encode(self, x, mask=None):
        B, T, d_model = x.shape
        table = self.positions.table
        front = (self.cls + table[0]).view(1, 1, d_model).repeat(B, 1, 1)
        x = torch.cat((front, x + table[1 : 1 + T]), dim=1)
        if mask is not None:
            mask = torch.cat((mask.new_ones(B, 1), mask), dim=1)
            mask = mask[:, None, :].repeat(1, 1 + T, 1)
        return self.encoder(x, mask)

    def forward(self, x, mask=None):
        first = self.encode(x, mask).select(1, 0)
        return F.linear(first, self.head.weight, self.head.bias)


# --- patchify --------------------------------------------------------------------------------


def _demand(height, width, size):
    if height % size or width % size:
        raise ValueError(f"size={size} does not divide an image of {height} × {width}")


@wrong("patchify", cause="height and width change places in the reshape", kind="value")
def patchify_1(images, size):
    B, C, height, width = images.shape
    _demand(height, width, size)
    x = images.reshape(B, C, width // size, size, height // size, size)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * size * size)


@wrong("patchify", cause="the loops stop before the last row and column of patches", kind="shape")
def patchify_4(images, size):
    B, C, height, width = images.shape
    _demand(height, width, size)
    patches = []
    for top in range(0, height - size, size):
        for left in range(0, width - size, size):
            patches.append(images[:, :, top : top + size, left : left + size].flatten(1))
    if not patches:
        return images.new_zeros(B, 0, C * size * size)
    return torch.stack(patches, dim=1)


@right("patchify", how="F.unfold, transposed")
def patchify_8(images, size):
    _demand(*images.shape[2:], size)
    return F.unfold(images, (size, size), stride=(size, size)).mT


@right("patchify", how="chunks of rows, then of columns")
def patchify_9(images, size):
    _demand(*images.shape[2:], size)
    vectors = []
    for band in images.split(size, dim=-2):
        vectors += [patch.reshape(len(images), 1, -1) for patch in band.split(size, dim=-1)]
    return torch.cat(vectors, dim=1)


@right("patchify", how="an einsum that only sorts the axes")
def patchify_10(images, size):
    _demand(*images.shape[2:], size)
    x = images.unflatten(3, (-1, size)).unflatten(2, (-1, size))
    return torch.einsum("bcrpsq->brscpq", x).flatten(3).flatten(1, 2)


# --- mask_tokens -----------------------------------------------------------------------------


@wrong("mask_tokens", cause="hides where the noise is above the share")
def mask_tokens_5(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    hidden = (noise > share) & (tokens != PAD)
    return tokens.masked_fill(hidden, mask_id), tokens.masked_fill(~hidden, IGNORED)


@wrong("mask_tokens", cause="draws random numbers of its own; the given noise has no effect")
def mask_tokens_8(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    hidden = (torch.rand(tokens.shape, device=tokens.device) < share) & (tokens != PAD)
    return tokens.masked_fill(hidden, mask_id), tokens.masked_fill(~hidden, IGNORED)


@wrong("mask_tokens", cause="hides the same number in every text, those with the least noise")
def mask_tokens_9(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    n_hidden = round(share * tokens.shape[1])
    places = noise.topk(n_hidden, dim=1, largest=False).indices
    hidden = torch.zeros_like(tokens, dtype=torch.bool).scatter(1, places, True)
    hidden &= tokens != PAD
    return tokens.masked_fill(hidden, mask_id), tokens.masked_fill(~hidden, IGNORED)


@wrong("mask_tokens", cause="the two results are the other way round")
def mask_tokens_10(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    hidden = (noise < share) & (tokens != PAD)
    return tokens.masked_fill(~hidden, IGNORED), tokens.masked_fill(hidden, mask_id)


@wrong(
    "mask_tokens",
    cause="takes every mask_id it reads for a hidden token, also where the text has this id itself",
)
def mask_tokens_11(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    read = torch.where((noise < share) & (tokens != PAD), mask_id, tokens)
    return read, torch.where(read == mask_id, tokens, IGNORED)


@wrong(
    "mask_tokens", cause="returns the hidden tokens alone, as one list for all texts", kind="shape"
)
def mask_tokens_13(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    hidden = (noise < share) & (tokens != PAD)
    return tokens.masked_fill(hidden, mask_id), tokens[hidden]


@right("mask_tokens", how="torch.where twice")
def mask_tokens_14(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    hidden = torch.logical_and(noise < share, tokens.ne(PAD))
    return torch.where(hidden, mask_id, tokens), torch.where(hidden, tokens, IGNORED)


@right("mask_tokens", how="assigns to a copy and to a tensor that is full of IGNORED")
def mask_tokens_15(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    hidden = (tokens != PAD) & (noise < share)
    read, wanted = tokens.clone(), torch.full_like(tokens, IGNORED)
    read[hidden] = mask_id
    wanted[hidden] = tokens[hidden]
    return read, wanted


@right("mask_tokens", how="one token after the other")
def mask_tokens_16(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    read, wanted = tokens.clone(), torch.full_like(tokens, IGNORED)
    for b in range(tokens.shape[0]):
        for t in range(tokens.shape[1]):
            if tokens[b, t] == PAD or noise[b, t] >= share:
                continue
            read[b, t], wanted[b, t] = mask_id, tokens[b, t]
    return read, wanted


@right("mask_tokens", how="multiplies by 0 and 1")
def mask_tokens_17(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    hidden = ((noise < share) & (tokens != PAD)).long()
    return tokens * (1 - hidden) + mask_id * hidden, tokens * hidden + IGNORED * (1 - hidden)


@right("mask_tokens", how="gives padding a noise that is never below the share")
def mask_tokens_18(tokens, noise, share, mask_id):
    demand.within(0, 1, share=share)
    kept = noise.masked_fill(tokens == PAD, 2.0) >= share
    return tokens.masked_fill(~kept, mask_id), tokens.masked_fill(kept, IGNORED)
