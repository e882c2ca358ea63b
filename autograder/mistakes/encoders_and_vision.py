"""Wrong and right answers to the exercises of lesson 16."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.encoders_and_vision import IGNORED
from attention.masked_attention import masked_attention
from attention.provided.data.tokens import PAD
from attention.tokens_and_positions import LearnedPositions
from attention.transformer import Encoder
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _everything(x):
    return torch.ones(x.shape[:-1], dtype=torch.bool, device=x.device)


def _weigh(x, query, mask, empty=0.0):
    """The weights of one query."""
    scores = (x @ query) / math.sqrt(len(query))
    mask = _everything(x) if mask is None else mask
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask, 0.0)
    return weights if empty is None else weights.nan_to_num(empty)


def _sum(weights, x):
    return (weights.unsqueeze(-1) * x).sum(-2), weights


@alternative("attention_pooling")
def with_the_kernel(x, query, mask=None):
    weights = _weigh(x, query, mask, empty=None)
    weights = torch.where(weights.isnan(), torch.zeros_like(weights), weights)
    return torch.einsum("...t,...td->...d", weights, x), weights


@alternative("attention_pooling")
def pools_in_a_loop(x, query, mask=None):
    if x.dim() > 2:
        masks = [None] * len(x) if mask is None else mask
        pairs = [pools_in_a_loop(one, query, some) for one, some in zip(x, masks, strict=True)]
        return torch.stack([pair[0] for pair in pairs]), torch.stack([pair[1] for pair in pairs])
    scores = (x * query).sum(-1) / len(query) ** 0.5
    kept = torch.ones_like(scores).bool() if mask is None else mask
    exps = torch.where(kept, (scores - scores.detach().max()).clamp(max=0).exp(), 0 * scores)
    if bool(kept.any()):
        top = scores.detach()[kept].max()
        exps = torch.where(kept, (scores - top).clamp(max=0).exp(), 0 * scores)
    weights = exps / exps.sum().clamp(min=1e-30)
    return weights @ x, weights


@alternative("attention_pooling")
def attends_with_the_last_axis_cut(x, query, mask=None):
    hidden = None if mask is None else mask[..., None, :]
    context, weights = masked_attention(query[None, :], x, x, hidden, True)
    return [context[..., 0, :], weights[..., 0, :]]


@careless("attention_pooling")
def allows_all_on_the_cpu(x, query, mask=None):
    mask = torch.ones(x.shape[:-1], dtype=torch.bool) if mask is None else mask
    weights = _weigh(x, query, mask)
    return _sum(weights, x)


@careless("attention_pooling")
def exponentiates_large_scores(x, query, mask=None):
    exps = torch.exp(x @ query / math.sqrt(len(query)))
    exps = exps if mask is None else exps.masked_fill(~mask, 0.0)
    return _sum(exps / exps.sum(-1, keepdim=True).clamp(min=1e-30), x)


@careless("attention_pooling")
def pools_in_float32(x, query, mask=None):
    return _sum(_weigh(x.float(), query.float(), mask), x.float())


class _Hierarchy(nn.Module):
    """A right answer in small methods; others override what they do in another way."""

    def __init__(self, d_model):
        super().__init__()
        self.word_query = nn.Parameter(torch.zeros(d_model))
        self.sentence_query = nn.Parameter(torch.zeros(d_model))

    def pool(self, x, query, mask):
        return _sum(_weigh(x, query, mask), x)

    def words(self, x, mask):
        return self.pool(x, self.word_query, mask)

    def real(self, mask):
        return None if mask is None else mask.any(-1)

    def sentences(self, x, real):
        return self.pool(x, self.sentence_query, real)

    def forward(self, x, mask=None):
        sentences, word_weights = self.words(x, mask)
        document, weights = self.sentences(sentences, self.real(mask))
        return document, weights, word_weights


@alternative("HierarchicalAttention")
class PoolsInSmallMethods(_Hierarchy):
    """The right answer as it is."""


@alternative("HierarchicalAttention")
class ReadsSentenceBySentence(_Hierarchy):
    def forward(self, x, mask=None):
        mask = _everything(x) if mask is None else mask
        pairs = [self.words(x[:, s], mask[:, s]) for s in range(x.shape[1])]
        sentences = torch.stack([pair[0] for pair in pairs], 1)
        document, weights = self.sentences(sentences, mask.sum(2) > 0)
        return [document, weights, torch.stack([pair[1] for pair in pairs], 1)]


@alternative("HierarchicalAttention")
class SeesRealSentencesByTheirWeights(_Hierarchy):
    def forward(self, x, mask=None):
        sentences, word_weights = self.words(x, mask)
        return *self.sentences(sentences, word_weights.detach().sum(-1) > 0), word_weights


@careless("HierarchicalAttention")
class CollectsSentencesInZeros(_Hierarchy):
    def words(self, x, mask):
        sentences, weights = torch.zeros(x[:, :, 0].shape).to(x.dtype), []
        for s in range(x.shape[1]):
            pair = self.pool(x[:, s], self.word_query, None if mask is None else mask[:, s])
            sentences[:, s] = pair[0]
            weights.append(pair[1])
        return sentences, torch.stack(weights, 1)


@careless("HierarchicalAttention")
class TakesAllWordsForRealOnTheCpu(_Hierarchy):
    def forward(self, x, mask=None):
        mask = torch.ones(x.shape[:3]).bool() if mask is None else mask
        return super().forward(x, mask)


class _Classifier(nn.Module):
    """A right answer in small methods; others override what they do in another way."""

    def __init__(
        self, n_classes, max_length, d_model, n_heads, d_ff, n_layers, dropout=0.1, fused=False
    ):
        super().__init__()
        self.cls = nn.Parameter(0.02 * torch.randn(d_model))
        self.positions = LearnedPositions(1 + max_length, d_model)
        self.encoder = Encoder(n_layers, d_model, n_heads, d_ff, dropout, fused=fused)
        self.head = nn.Linear(d_model, n_classes)

    def prepend(self, x):
        return torch.cat([self.cls.expand(len(x), 1, -1), x], 1)

    def place(self, x):
        return self.positions(self.prepend(x))

    def mask(self, x, mask):
        return None if mask is None else F.pad(mask, (1, 0), value=True).unsqueeze(1)

    def encode(self, x, mask=None):
        return self.encoder(self.place(x), self.mask(x, mask))

    def read(self, encoded, mask):
        return encoded[:, 0]

    def forward(self, x, mask=None):
        return self.head(self.read(self.encode(x, mask), mask))


@alternative("EncoderClassifier")
class ClassifiesInSmallMethods(_Classifier):
    """The right answer as it is."""


@alternative("EncoderClassifier")
class WithAMaskAlways(_Classifier):
    def mask(self, x, mask):
        seen = x.new_ones(len(x), 1 + x.shape[1], dtype=torch.bool)
        if mask is not None:
            seen[:, 1:] = mask
        return seen[:, None, :]


@alternative("EncoderClassifier")
class WithRepeat(_Classifier):
    def prepend(self, x):
        first = self.cls.view(1, 1, -1).repeat(x.shape[0], 1, 1)
        return torch.cat((first, x), dim=-2)

    def mask(self, x, mask):
        if mask is not None:
            mask = torch.cat([torch.ones_like(mask[:, :1]), mask], 1)
            return mask[:, None].expand(-1, mask.shape[1], -1)
        return None


@alternative("EncoderClassifier")
class ClassifiesAllAndReadsOne(_Classifier):
    def forward(self, x, mask=None):
        return self.head(self.encode(x, mask)).select(1, 0)


@alternative("EncoderClassifier")
class RefusesInItsOwnWords(_Classifier):
    def place(self, x):
        T, max_length = x.shape[1], len(self.positions.table) - 1
        if max_length < T:
            raise ValueError(f"{T} tokens, at most {max_length} fit")
        return self.prepend(x) + self.positions.table[: 1 + T]


@alternative("EncoderClassifier")
class DoesAllInForward(_Classifier):
    def encode(self, x, mask=None):
        raise NotImplementedError

    def forward(self, x, mask=None):
        x = self.positions(torch.hstack([self.cls.repeat(len(x), 1, 1), x]))
        return self.head(self.encoder(x, self.mask(x, mask))[:, 0])


@careless("EncoderClassifier")
class LengthensTheMaskOnTheCpu(_Classifier):
    def mask(self, x, mask):
        if mask is None:
            return None
        return torch.cat([torch.ones(len(x), 1, dtype=torch.bool), mask], 1)[:, None]


@careless("EncoderClassifier")
class WritesIntoZeros(_Classifier):
    def prepend(self, x):
        longer = torch.zeros(x.shape[0], 1 + x.shape[1], x.shape[2], dtype=x.dtype)
        longer[:, 0], longer[:, 1:] = self.cls, x
        return longer


def _cut(images, size):
    """Patches, cut along six axes: (B, C, rows, P, columns, P)."""
    B, C, height, width = images.shape
    if height % size or width % size:
        raise ValueError(f"size={size} does not divide an image of {height} × {width}")
    x = images.reshape(B, C, height // size, size, width // size, size)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, height // size * (width // size), C * size * size)


@alternative("mask_tokens")
def masks_with_where(tokens, noise, share, mask_id):
    hidden = torch.where(tokens == PAD, 1.0, noise) < share
    ignored = torch.full_like(tokens, IGNORED)
    return torch.where(hidden, mask_id, tokens), torch.where(hidden, tokens, ignored)


@alternative("mask_tokens")
def masks_by_index(tokens, noise, share, mask_id):
    read, wanted = tokens.clone(), torch.full_like(tokens, IGNORED)
    rows, columns = ((noise < share) & (tokens != PAD)).nonzero(as_tuple=True)
    wanted[rows, columns] = tokens[rows, columns]
    read[rows, columns] = mask_id
    return [read, wanted]


@careless("mask_tokens")
def masks_in_its_argument(tokens, noise, share, mask_id):
    hidden = (noise < share) & (tokens != PAD)
    wanted = tokens.masked_fill(~hidden, IGNORED)
    tokens[hidden] = mask_id
    return tokens, wanted


@careless("mask_tokens")
def masks_on_the_cpu(tokens, noise, share, mask_id):
    wanted = torch.full(tokens.shape, IGNORED)
    read = torch.zeros(tokens.shape, dtype=torch.int64)
    for b, row in enumerate(tokens.tolist()):
        for t, token in enumerate(row):
            hidden = noise[b, t] < share and token != PAD
            read[b, t] = mask_id if hidden else token
            wanted[b, t] = token if hidden else IGNORED
    return read, wanted


@mistake(
    "patchify",
    hint="The number of patches side by side is taken from the height. The width decides it: there "
    "are height / P rows of width / P patches.",
)
def cuts_by_the_height(images, size):
    side, found = images.shape[2] // size, []
    for number in range(side * side):
        top, left = number // side * size, number % side * size
        found.append(images[:, :, top : top + size, left : left + size].flatten(1))
    return torch.stack(found, dim=1)


@mistake(
    "break_patchify",
    hint="The only patch is the whole image, and so the image is a square.",
    where=lambda images, size: images.shape[2] == images.shape[3] == size,
)
def one_patch():
    return torch.rand(2, 3, 4, 4), 4


@mistake(
    "break_patchify",
    hint="Every patch is a single pixel, and the image is still a square.",
    where=lambda images, size: size == 1 and images.shape[2] == images.shape[3],
)
def single_pixels():
    return torch.rand(2, 1, 3, 3), 1


@mistake(
    "break_patchify",
    hint="The image is a square: height and width say the same.",
    where=lambda images, size: images.shape[2] == images.shape[3],
)
def a_square():
    return torch.rand(1, 3, 4, 4), 2


@alternative("break_patchify")
def taller_than_wide():
    return torch.rand(2, 3, 6, 4), 2


@alternative("break_patchify")
def cannot_be_cut():
    return torch.rand(1, 1, 5, 5), 2


@alternative("patchify")
def cuts_in_loops(images, size):
    height, width = images.shape[2:]
    if height % size or width % size:
        raise ValueError(f"size={size}, but the image has {height} × {width}")
    patches = [
        images[:, :, top : top + size, left : left + size].flatten(1)
        for top in range(0, height, size)
        for left in range(0, width, size)
    ]
    return torch.stack(patches, 1)


@alternative("patchify")
def cuts_with_unfold(images, size):
    height, width = images.shape[2:]
    if height % size or width % size:
        raise ValueError(f"{height} × {width} is no multiple of {size}")
    windows = images.unfold(2, size, size).unfold(3, size, size)
    windows = windows.permute(0, 2, 3, 1, 4, 5)
    return windows.reshape(len(images), -1, images.shape[1] * size**2)


@alternative("patchify")
def cuts_with_split(images, size):
    if images.shape[2] % size or images.shape[3] % size:
        raise ValueError(f"P = {size}: {tuple(images.shape)}")
    rows = [piece for band in images.split(size, 2) for piece in band.split(size, 3)]
    return torch.cat([piece.reshape(len(images), 1, -1) for piece in rows], dim=1)


@careless("patchify")
def cuts_into_zeros(images, size):
    cut = _cut(images, size)
    patches = torch.zeros(cut.shape)
    for n in range(cut.shape[1]):
        patches[:, n] = cut[:, n]
    return patches


@careless("patchify")
def cuts_in_numpy(images, size):
    return torch.tensor(_cut(images.detach(), size).numpy())


EQUIVALENT = {
    "mask_tokens: whose result is cut off from the gradient: return (tokens.masked_fill(hidden, "
    "mask_id).detach(), tokens.masked_fill(~hidden, IGNORED).detach())": "ids have no gradient",
}
