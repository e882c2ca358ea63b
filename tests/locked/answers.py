"""Answers to lesson 21 that were written without a look at its checks."""

import copy

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention.provided import demand
from attention.provided.data.tokens import PAD
from tests.locked import right, wrong

# --- unpack_q4 -------------------------------------------------------------------------------


def _ends(blocks):
    scale = blocks[:, 0:2].clone().view(torch.float16).float()
    return scale, blocks[:, 2:4].clone().view(torch.float16).float()


@wrong("unpack_q4", cause="the codes of a byte stand side by side, not 16 places apart")
def unpack_q4_1(blocks):
    scale, smallest = _ends(blocks)
    codes = torch.stack([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], dim=-1).flatten(1)
    return scale * codes + smallest


@wrong("unpack_q4", cause="exchanges the scale and the smallest value")
def unpack_q4_2(blocks):
    smallest, scale = _ends(blocks)
    codes = torch.cat([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], dim=1)
    return scale * codes + smallest


@wrong("unpack_q4", cause="8 is taken from each code, as in another format")
def unpack_q4_3(blocks):
    scale, smallest = _ends(blocks)
    codes = torch.cat([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], dim=1).float() - 8
    return scale * codes + smallest


@wrong("unpack_q4", cause="computes and returns float16", kind="dtype")
def unpack_q4_4(blocks):
    scale = blocks[:, 0:2].clone().view(torch.float16)
    smallest = blocks[:, 2:4].clone().view(torch.float16)
    codes = torch.cat([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], dim=1)
    return scale * codes + smallest


@right("unpack_q4", how="NumPy, and remainders in place of bits")
def unpack_q4_5(blocks):
    bytes_ = np.ascontiguousarray(blocks.cpu().numpy())
    ends = bytes_[:, :4].copy().view(np.float16).astype(np.float32)
    high, low = np.divmod(bytes_[:, 4:], 16)
    codes = np.hstack([low, high]).astype(np.float32)
    return torch.from_numpy(ends[:, :1] * codes + ends[:, 1:]).to(blocks.device)


@right("unpack_q4", how="number by number into a table")
def unpack_q4_6(blocks):
    scale, smallest = _ends(blocks)
    result = torch.empty(len(blocks), 32, dtype=torch.float32, device=blocks.device)
    for i in range(16):
        byte = blocks[:, 4 + i]
        result[:, i] = scale[:, 0] * (byte % 16) + smallest[:, 0]
        result[:, i + 16] = scale[:, 0] * (byte // 16) + smallest[:, 0]
    return result


# --- quantize --------------------------------------------------------------------------------


def _blocks(weight, bits, block):
    demand.counts(1, 16, bits=bits)
    demand.counts(block=block)
    if weight.shape[1] % block:
        raise ValueError(f"block={block} does not divide n_in={weight.shape[1]}")
    cut = weight.unflatten(1, (-1, block))
    return cut, cut.amin(-1, keepdim=True), cut.amax(-1, keepdim=True)


@wrong("quantize", cause="2**bits steps in place of 2**bits values")
def quantize_1(weight, bits, block):
    cut, low, high = _blocks(weight, bits, block)
    scale = (high - low) / 2**bits
    scale = torch.where(scale == 0, 1.0, scale)
    return (low + scale * ((cut - low) / scale).round()).reshape(weight.shape)


@wrong("quantize", cause="rounds down, not to the nearest value")
def quantize_2(weight, bits, block):
    cut, low, high = _blocks(weight, bits, block)
    scale = (high - low) / (2**bits - 1)
    scale = torch.where(scale == 0, 1.0, scale)
    return (low + scale * ((cut - low) / scale).floor()).reshape(weight.shape)


@wrong(
    "quantize", cause="divides by the scale of a block of equal numbers, which is 0", kind="value"
)
def quantize_3(weight, bits, block):
    cut, low, high = _blocks(weight, bits, block)
    scale = (high - low) / (2**bits - 1)
    return (low + scale * ((cut - low) / scale).round()).reshape(weight.shape)


@wrong("quantize", cause="values around 0 up to the largest size, not from smallest to largest")
def quantize_4(weight, bits, block):
    cut, _, _ = _blocks(weight, bits, block)
    most = cut.abs().amax(-1, keepdim=True)
    scale = 2 * most / (2**bits - 1)
    scale = torch.where(scale == 0, 1.0, scale)
    codes = ((cut + most) / scale).round()
    return (codes * scale - most).reshape(weight.shape)


@right("quantize", how="block after block, and a block of equal numbers left alone")
def quantize_5(weight, bits, block):
    _blocks(weight, bits, block)
    result = weight.clone()
    for row in range(weight.shape[0]):
        for at in range(0, weight.shape[1], block):
            part = weight[row, at : at + block]
            low, high = part.min(), part.max()
            if low == high:
                continue
            step = (high - low) / (2**bits - 1)
            result[row, at : at + block] = low + step * torch.round((part - low) / step)
    return result


@right("quantize", how="0 divided by 0 becomes code 0, and all blocks as rows of one matrix")
def quantize_6(weight, bits, block):
    _blocks(weight, bits, block)
    rows = weight.reshape(-1, block)
    low = rows.min(dim=1, keepdim=True).values
    step = (rows.max(dim=1, keepdim=True).values - low) / (2**bits - 1)
    codes = torch.round((rows - low) / step).nan_to_num(0.0)
    return torch.addcmul(low, step, codes).view_as(weight)


# --- answer_loss -----------------------------------------------------------------------------


def _losses(scores, tokens):
    return F.cross_entropy(scores[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")


def _places(tokens):
    return torch.arange(1, tokens.shape[1], device=tokens.device)


@wrong("answer_loss", cause="leaves the first token of each answer out")
def answer_loss_1(scores, tokens, asked):
    mask = (_places(tokens) > asked[:, None]) & (tokens[:, 1:] != PAD)
    return _losses(scores, tokens)[mask].mean()


@wrong("answer_loss", cause="counts PAD behind the answers")
def answer_loss_2(scores, tokens, asked):
    mask = _places(tokens) >= asked[:, None]
    return _losses(scores, tokens)[mask].mean()


@wrong("answer_loss", cause="a mean for each answer, then the mean of these")
def answer_loss_3(scores, tokens, asked):
    mask = (_places(tokens) >= asked[:, None]) & (tokens[:, 1:] != PAD)
    losses = _losses(scores, tokens) * mask
    return (losses.sum(dim=1) / mask.sum(dim=1)).mean()


@wrong("answer_loss", cause="compares the scores at a place with the token at this place")
def answer_loss_4(scores, tokens, asked):
    losses = F.cross_entropy(scores.transpose(1, 2), tokens, reduction="none")
    place = torch.arange(tokens.shape[1], device=tokens.device)
    mask = (place >= asked[:, None]) & (tokens != PAD)
    return losses[mask].mean()


@right("answer_loss", how="answer after answer, all scores together, one cross-entropy")
def answer_loss_5(scores, tokens, asked):
    given, wanted = [], []
    for row, ids, n in zip(scores, tokens, asked.tolist(), strict=True):
        end = int((ids != PAD).nonzero().max()) + 1
        given.append(row[n - 1 : end - 1])
        wanted.append(ids[n:end])
    return F.cross_entropy(torch.cat(given), torch.cat(wanted))


@right("answer_loss", how="what does not count becomes the index that cross-entropy ignores")
def answer_loss_6(scores, tokens, asked):
    place = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    out = (place < asked.unsqueeze(1)) | tokens.eq(PAD)
    wanted = tokens.masked_fill(out, -100)[:, 1:]
    return F.cross_entropy(scores[:, :-1].flatten(0, 1), wanted.flatten(), ignore_index=-100)


# --- LowRank ---------------------------------------------------------------------------------


class _LowRank(nn.Module):
    def __init__(self, linear, rank, scale=1.0):
        super().__init__()
        demand.counts(rank=rank)
        demand.within(-torch.inf, scale=scale)
        self.linear, self.scale = linear, scale
        linear.requires_grad_(False)
        like = {"dtype": linear.weight.dtype, "device": linear.weight.device}
        self.A = nn.Parameter(torch.randn(rank, linear.in_features, **like) * 0.1)
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank, **like))

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)

    @torch.no_grad()
    def merged(self):
        layer = copy.deepcopy(self.linear)
        layer.weight += self.scale * self.B @ self.A
        return layer


@wrong("LowRank", cause="the bias of the layer goes on learning", kind="gradient")
class LowRank_1(_LowRank):
    def __init__(self, linear, rank, scale=1.0):
        super().__init__(linear, rank, scale)
        if linear.bias is not None:
            linear.bias.requires_grad_(True)


@wrong("LowRank", cause="A is no parameter, so it never learns", kind="gradient")
class LowRank_2(_LowRank):
    def __init__(self, linear, rank, scale=1.0):
        super().__init__(linear, rank, scale)
        fixed = self.A.detach()
        del self.A
        self.A = fixed


@wrong("LowRank", cause="merged writes into the layer itself", kind="state")
class LowRank_3(_LowRank):
    @torch.no_grad()
    def merged(self):
        self.linear.weight += self.scale * self.B @ self.A
        return self.linear


@wrong("LowRank", cause="merged leaves the scale out")
class LowRank_4(_LowRank):
    @torch.no_grad()
    def merged(self):
        layer = copy.deepcopy(self.linear)
        layer.weight += self.B @ self.A
        return layer


@right("LowRank", how="F.linear twice, and a new layer that is filled by copy_")
class LowRank_5(_LowRank):
    def forward(self, x):
        return self.linear(x).add(F.linear(F.linear(x, self.A), self.B), alpha=self.scale)

    @torch.no_grad()
    def merged(self):
        old = self.linear
        new = nn.Linear(old.in_features, old.out_features, bias=old.bias is not None)
        new = new.to(old.weight)
        new.weight.copy_(torch.addmm(old.weight, self.B, self.A, alpha=self.scale))
        if old.bias is not None:
            new.bias.copy_(old.bias)
        return new


@right("LowRank", how="Kaiming's random numbers for A, einsum, and merged by a new nn.Parameter")
class LowRank_6(_LowRank):
    def __init__(self, linear, rank, scale=1.0):
        super().__init__(linear, rank, scale)
        nn.init.kaiming_uniform_(self.A, a=5**0.5)
        for numbers in linear.parameters():
            numbers.requires_grad = False

    def forward(self, x):
        update = torch.einsum("or,ri,...i->...o", self.B, self.A, x)
        return update * self.scale + self.linear(x)

    def merged(self):
        layer = copy.deepcopy(self.linear)
        layer.weight = nn.Parameter((self.linear.weight + self.scale * self.B @ self.A).detach())
        return layer


# --- accept ----------------------------------------------------------------------------------


def _rest(p, q):
    rest = (p - q).clamp(min=0)
    return rest / rest.sum()


@wrong("accept", cause="goes on behind the first token that is not kept")
def accept_1(p, q, drafted, noise):
    k = len(drafted)
    place = torch.arange(k)
    kept = noise < p[place, drafted] / q[place, drafted]
    n = int(kept.sum())
    return n, p[-1] if n == k else _rest(p[n], q[n])


@wrong("accept", cause="after a rejection from p without the token that was rejected")
def accept_2(p, q, drafted, noise):
    for i, x in enumerate(drafted.tolist()):
        if noise[i] >= p[i, x] / q[i, x]:
            rest = p[i].clone()
            rest[x] = 0
            return i, rest / rest.sum()
    return len(drafted), p[-1]


@wrong("accept", cause="does not divide the rest by its sum")
def accept_3(p, q, drafted, noise):
    for i, x in enumerate(drafted.tolist()):
        if noise[i] >= p[i, x] / q[i, x]:
            return i, (p[i] - q[i]).clamp(min=0)
    return len(drafted), p[-1]


@wrong("accept", cause="keeps a token where the model finds it at least as likely, without noise")
def accept_4(p, q, drafted, noise):
    for i, x in enumerate(drafted.tolist()):
        if p[i, x] < q[i, x]:
            return i, _rest(p[i], q[i])
    return len(drafted), p[-1]


@right("accept", how="all tokens at once, and a product that is 0 behind the first rejected")
def accept_5(p, q, drafted, noise):
    column = drafted.unsqueeze(1)
    wanted, likely = p[:-1].gather(1, column)[:, 0], q.gather(1, column)[:, 0]
    n = int((noise * likely < wanted).long().cumprod(dim=0).sum())
    if n == drafted.shape[0]:
        return n, p[n]
    return n, F.normalize(F.relu(p[n] - q[n]), p=1, dim=0)


@right("accept", how="a row of zeros below q, so that both cases are one")
def accept_6(p, q, drafted, noise):
    n = 0
    while n < len(drafted) and noise[n] < p[n, drafted[n]] / q[n, drafted[n]]:
        n += 1
    below = torch.cat([q, torch.zeros_like(p[:1])])
    rest = torch.maximum(p[n] - below[n], torch.zeros_like(p[n]))
    return n, rest / rest.sum()


# --- keep_sinks ------------------------------------------------------------------------------


@wrong("keep_sinks", cause="positions in both parts are in the result twice")
def keep_sinks_1(past, n_first, window):
    demand.counts(0, n_first=n_first, window=window)
    P = past[0][0].shape[2]
    start = max(P - window, 0)
    return [
        tuple(torch.cat([one[:, :, :n_first], one[:, :, start:]], dim=2) for one in pair)
        for pair in past
    ]


@wrong("keep_sinks", cause="a window of 0 keeps all positions, by -0", kind="extreme")
def keep_sinks_2(past, n_first, window):
    demand.counts(0, n_first=n_first, window=window)
    if past[0][0].shape[2] <= n_first + window:
        return past
    return [
        tuple(torch.cat([one[:, :, :n_first], one[:, :, -window:]], dim=2) for one in pair)
        for pair in past
    ]


@wrong("keep_sinks", cause="shortens the keys and leaves the values", kind="shape")
def keep_sinks_3(past, n_first, window):
    demand.counts(0, n_first=n_first, window=window)
    place = torch.arange(past[0][0].shape[2])
    mask = (place < n_first) | (place >= len(place) - window)
    return [(keys[:, :, mask], values) for keys, values in past]


@wrong("keep_sinks", cause="the first ones count as part of the window, which gets shorter")
def keep_sinks_4(past, n_first, window):
    demand.counts(0, n_first=n_first, window=window)
    place = torch.arange(past[0][0].shape[2])
    mask = (place < n_first) | (place >= len(place) - max(window - n_first, 0))
    return [(keys[:, :, mask], values[:, :, mask]) for keys, values in past]


@right("keep_sinks", how="two slices, of which the second begins behind the first")
def keep_sinks_5(past, n_first, window):
    demand.counts(0, n_first=n_first, window=window)
    new = []
    for keys, values in past:
        start = max(n_first, keys.shape[2] - window)
        new.append(
            (
                torch.cat([keys[:, :, :n_first], keys[:, :, start:]], dim=2),
                torch.cat([values[:, :, :n_first], values[:, :, start:]], dim=2),
            )
        )
    return new


@right("keep_sinks", how="a sorted set of places, and index_select")
def keep_sinks_6(past, n_first, window):
    demand.counts(0, n_first=n_first, window=window)
    every = list(range(past[0][0].size(2)))
    places = sorted({*every[:n_first], *every[max(len(every) - window, 0) :]})
    chosen = torch.tensor(places, dtype=torch.long, device=past[0][0].device)
    return [tuple(one.index_select(2, chosen) for one in pair) for pair in past]


# --- stretched_base --------------------------------------------------------------------------


def _demand(base, d_head, factor):
    demand.within(0, base=base, factor=factor)
    demand.counts(4, d_head=d_head)
    if d_head % 2:
        raise ValueError(f"d_head={d_head} should be even")


@wrong("stretched_base", cause="multiplies the base by the factor")
def stretched_base_1(base, d_head, factor):
    _demand(base, d_head, factor)
    return base * factor


@wrong("stretched_base", cause="the exponent upside down")
def stretched_base_2(base, d_head, factor):
    _demand(base, d_head, factor)
    return base * factor ** ((d_head - 2) / d_head)


@wrong("stretched_base", cause="takes i of the last pair for 2i: an exponent twice as large")
def stretched_base_3(base, d_head, factor):
    _demand(base, d_head, factor)
    return base * factor ** (d_head / (d_head / 2 - 1))


@wrong("stretched_base", cause="turns the slowest pair faster by the factor, not more slowly")
def stretched_base_4(base, d_head, factor):
    _demand(base, d_head, factor)
    return base / factor ** (d_head / (d_head - 2))


@right("stretched_base", how="solves for the new base, as the hint has the equation")
def stretched_base_5(base, d_head, factor):
    _demand(base, d_head, factor)
    exponent = (d_head - 2) / d_head
    return (factor * base**exponent) ** (1 / exponent)


@right("stretched_base", how="in logarithms, by NumPy")
def stretched_base_6(base, d_head, factor):
    _demand(base, d_head, factor)
    with np.errstate(divide="ignore"):
        more = d_head / (d_head - 2) * np.log(np.float64(factor))
        return float(np.exp(np.log(np.float64(base)) + more))
