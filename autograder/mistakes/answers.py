"""Right answers to the exercises of lesson 21, written differently."""

import copy
import struct

import torch
from torch import nn
from torch.nn import functional as F

from attention.answers import LowRank
from attention.provided.data.tokens import PAD
from autograder.checking.toolbox.registry import alternative, careless


@alternative("unpack_q4")
def reads_with_struct(blocks):
    rows = []
    for block in blocks.tolist():
        scale, smallest = struct.unpack("<2e", bytes(block[:4]))
        low = [scale * (byte % 16) + smallest for byte in block[4:]]
        rows.append(low + [scale * (byte // 16) + smallest for byte in block[4:]])
    return torch.tensor(rows, dtype=torch.float32, device=blocks.device)


@alternative("unpack_q4")
def reads_both_halves_at_once(blocks):
    halves = blocks[:, :4].contiguous().view(torch.float16).to(torch.float32)
    codes = blocks.new_empty(len(blocks), 32)
    codes[:, :16] = blocks[:, 4:].remainder(16)
    codes[:, 16:] = blocks[:, 4:].div(16, rounding_mode="floor")
    return torch.addcmul(halves[:, 1:], halves[:, :1], codes.float())


@alternative("unpack_q4")
def shifts_by_a_row_of_shifts(blocks):
    shifts = torch.tensor([0, 4], device=blocks.device).view(2, 1)
    codes = (blocks[:, None, 4:].int() >> shifts) & 0xF
    scale, smallest = blocks[:, :4].clone().view(torch.float16).float().unbind(1)
    return codes.flatten(1) * scale[:, None] + smallest[:, None]


@careless("unpack_q4")
def views_bytes_where_they_lie(blocks):
    scale = blocks[:, :2].view(torch.float16).float()
    smallest = blocks[:, 2:4].view(torch.float16).float()
    return scale * torch.cat([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], 1) + smallest


@careless("unpack_q4")
def fills_numbers_on_the_cpu(blocks):
    numbers = torch.empty(len(blocks), 32)
    scale = blocks[:, :2].clone().view(torch.float16).float()
    numbers[:, :16] = scale * (blocks[:, 4:] & 15)
    numbers[:, 16:] = scale * (blocks[:, 4:] >> 4)
    return numbers + blocks[:, 2:4].clone().view(torch.float16).float()


@careless("unpack_q4")
def stays_in_float64(blocks):
    scale, smallest = blocks[:, :4].clone().view(torch.float16).double().split(1, dim=1)
    return scale * torch.cat([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], 1) + smallest


@careless("unpack_q4")
def shifts_in_place(blocks):
    halves, low = blocks[:, :4].clone().view(torch.float16).float(), blocks[:, 4:] & 15
    blocks[:, 4:] >>= 4
    return halves[:, :1] * torch.cat([low, blocks[:, 4:]], 1) + halves[:, 1:]


def _divides(weight, bits, block):
    if weight.shape[1] % block:
        raise ValueError(f"block={block} does not divide n_in={weight.shape[1]}")


@alternative("quantize")
def looks_for_the_nearest(weight, bits, block):
    _divides(weight, bits, block)
    result = torch.empty_like(weight)
    for i in range(len(weight)):
        for start in range(0, weight.shape[1], block):
            part = weight[i, start : start + block]
            low, high = part.min(), part.max()
            steps = torch.arange(2**bits, device=weight.device, dtype=weight.dtype)
            values = low + (high - low) * steps / (2**bits - 1)
            nearest = (part[:, None] - values).abs().argmin(1)
            result[i, start : start + block] = values[nearest]
    return result


@alternative("quantize")
def adds_a_half_and_floors(weight, bits, block):
    _divides(weight, bits, block)
    blocks = weight.reshape(-1, block)
    low, high = blocks.min(1, keepdim=True).values, blocks.max(1, keepdim=True).values
    share = ((blocks - low) / (high - low)).nan_to_num(0.0)
    codes = torch.floor(share * (2**bits - 1) + 0.5)
    return torch.lerp(low, high, codes / (2**bits - 1)).reshape(weight.shape)


@alternative("quantize")
def keeps_the_scale_above_0(weight, bits, block):
    _divides(weight, bits, block)
    parts = []
    for part in weight.split(block, dim=1):
        low = part.amin(1, keepdim=True)
        scale = ((part.amax(1, keepdim=True) - low) / (2**bits - 1)).clamp(min=1e-12)
        parts.append(low + torch.round((part - low) / scale) * scale)
    return torch.cat(parts, dim=1)


@careless("quantize")
def rounds_on_the_cpu(weight, bits, block):
    _divides(weight, bits, block)
    rounded = torch.zeros(weight.shape, dtype=weight.dtype)
    rounded[:] = keeps_the_scale_above_0(weight, bits, block)
    return rounded


@careless("quantize")
def rounds_in_place(weight, bits, block):
    _divides(weight, bits, block)
    weight[:] = keeps_the_scale_above_0(weight, bits, block)
    return weight


@alternative("answer_loss")
def goes_token_by_token(scores, tokens, asked):
    losses = []
    for b in range(len(tokens)):
        for t in range(int(asked[b]), tokens.shape[1]):
            if tokens[b, t] != PAD:
                losses.append(-scores[b, t - 1].log_softmax(0)[tokens[b, t]])
    return torch.stack(losses).mean()


@alternative("answer_loss")
def ignores_what_is_marked(scores, tokens, asked):
    place = torch.arange(tokens.shape[1], device=tokens.device)
    wanted = tokens.masked_fill((place < asked[:, None]) | (tokens == PAD), -100)
    return F.cross_entropy(scores[:, :-1].flatten(0, 1), wanted[:, 1:].flatten())


@alternative("answer_loss")
def gathers_log_probabilities(scores, tokens, asked):
    B, T = tokens.shape
    log_p = scores[:, : T - 1].log_softmax(-1).gather(2, tokens[:, 1:, None]).squeeze(2)
    place = torch.arange(1, T, device=tokens.device).expand(B, -1)
    counts = (place >= asked.view(B, 1)).logical_and(tokens[:, 1:].ne(PAD)).to(scores.dtype)
    return -(log_p * counts).sum() / counts.sum()


@careless("answer_loss")
def marks_in_its_argument(scores, tokens, asked):
    for row, n in zip(tokens, asked.tolist(), strict=True):
        row[:n] = PAD
    wanted = tokens[:, 1:].flatten()
    return F.cross_entropy(scores[:, :-1].flatten(0, 1), wanted, ignore_index=PAD)


@careless("answer_loss")
def counts_places_on_the_cpu(scores, tokens, asked):
    place = torch.arange(tokens.shape[1])
    answers = (place >= asked[:, None]) & (tokens != PAD)
    losses = F.cross_entropy(scores[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    return losses[answers[:, 1:]].mean()


@careless("answer_loss")
def divides_exponentials(scores, tokens, asked):
    place = torch.arange(tokens.shape[1], device=tokens.device)
    answers = (place >= asked[:, None]) & (tokens != PAD)
    p = scores.exp() / scores.exp().sum(2, keepdim=True)
    p = p[:, :-1].gather(2, tokens[:, 1:, None])[:, :, 0]
    return -p[answers[:, 1:]].log().mean()


class _Begun(nn.Module):
    """The parts of a LowRank, begun otherwise."""

    def __init__(self, linear, rank, scale=1.0):
        super().__init__()
        self.scale, self.linear = scale, linear
        for parameter in linear.parameters():
            parameter.requires_grad = False
        self.A = nn.Parameter(torch.empty(rank, linear.weight.shape[1]))
        nn.init.kaiming_uniform_(self.A, a=5**0.5)
        self.B = nn.Parameter(torch.zeros(linear.weight.shape[0], rank))

    def forward(self, x):
        update = F.linear(F.linear(x, self.A), self.B)
        return self.linear(x) + update * self.scale

    def merged(self):
        weight = self.linear.weight + self.scale * (self.B @ self.A)
        d_out, d_in = weight.shape
        bias = self.linear.bias
        layer = nn.Linear(d_in, d_out, bias=bias is not None)
        layer.weight = nn.Parameter(weight.detach())
        if bias is not None:
            layer.bias = nn.Parameter(bias.detach().clone())
        return layer


@alternative("LowRank")
class FillsANewLayer(_Begun):
    pass


@alternative("LowRank")
class AddsToTheWeight(_Begun):
    def forward(self, x):
        weight = self.linear.weight + self.scale * torch.einsum("or,ri->oi", self.B, self.A)
        return F.linear(x, weight, self.linear.bias)

    def merged(self):
        new = copy.deepcopy(self.linear)
        new.weight.data = (self.linear.weight + self.scale * self.B @ self.A).data
        return new


@alternative("LowRank")
class DetachesWhatIsFrozen(LowRank):
    def __init__(self, linear, rank, scale=1.0):
        super().__init__(linear, rank, scale)
        self.A.data = 0.01 * torch.rand(rank, linear.in_features)
        self.linear.requires_grad_(True)

    def forward(self, x):
        bias = self.linear.bias
        still = F.linear(x, self.linear.weight.detach(), None if bias is None else bias.detach())
        return still + self.scale * (self.B @ (self.A @ x.unsqueeze(-1))).squeeze(-1)


@alternative("LowRank")
class MergesIntoALayerOfItsOwn(LowRank):
    @torch.no_grad()
    def merged(self):
        d_out, d_in = self.linear.weight.shape
        layer = nn.Linear(d_in, d_out, bias=self.linear.bias is not None)
        layer.load_state_dict(self.linear.state_dict())
        layer.weight += self.scale * self.B @ self.A
        return layer


@careless("LowRank")
class AddsUpOnTheCpu(LowRank):
    def forward(self, x):
        total = torch.zeros(*x.shape[:-1], len(self.B), dtype=x.dtype)
        return total + self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)


@careless("LowRank")
class ScalesItsArgument(LowRank):
    def forward(self, x):
        y = self.linear(x)
        x *= self.scale
        return y + x @ self.A.T @ self.B.T


@careless("LowRank")
class CutsTheGradientOfX(LowRank):
    def forward(self, x):
        return self.linear(x) + self.scale * (x.detach() @ self.A.T @ self.B.T)


@alternative("accept")
def multiplies_up(p, q, drafted, noise):
    k = len(drafted)
    place = torch.arange(k, device=p.device)
    ratio = p[place, drafted] / q[place, drafted]
    kept = (noise < ratio).long().cumprod(0).sum()
    if kept == k:
        return kept, p[k]
    rest = torch.relu(p[kept] - q[kept])
    return kept, rest / rest.sum()


@alternative("accept")
def counts_while_they_are_kept(p, q, drafted, noise):
    n = 0
    while n < len(drafted) and noise[n] < p[n, drafted[n]] / q[n, drafted[n]]:
        n += 1
    if n == len(drafted):
        return n, p[n]
    rest = p[n] - torch.minimum(p[n], q[n])
    return n, F.normalize(rest, p=1, dim=0)


@alternative("accept")
def puts_zeros_behind_q(p, q, drafted, noise):
    ratio = p[:-1].gather(1, drafted[:, None])[:, 0] / q.gather(1, drafted[:, None])[:, 0]
    refused = (noise >= ratio).nonzero().flatten().tolist()
    n = min([*refused, len(drafted)])
    rest = (p - torch.cat([q, torch.zeros_like(p[-1:])])).clamp_min(0)[n]
    return n, rest / rest.sum()


@careless("accept")
def fills_the_rest_on_the_cpu(p, q, drafted, noise):
    for i, token in enumerate(drafted.tolist()):
        if noise[i] >= p[i, token] / q[i, token]:
            rest = torch.zeros(p.shape[1], dtype=p.dtype)
            rest[:] = (p[i] - q[i]).clamp(min=0)
            return i, rest / rest.sum()
    return len(drafted), p[-1]


@careless("accept")
def subtracts_in_its_argument(p, q, drafted, noise):
    for i, token in enumerate(drafted.tolist()):
        if noise[i] >= p[i, token] / q[i, token]:
            p[i] -= q[i]
            rest = p[i].clamp(min=0)
            return i, rest / rest.sum()
    return len(drafted), p[-1]


@careless("accept")
def keeps_at_equality(p, q, drafted, noise):
    for i, token in enumerate(drafted.tolist()):
        if noise[i] > p[i, token] / q[i, token]:
            rest = (p[i] - q[i]).clamp(min=0)
            return i, rest / rest.sum()
    return len(drafted), p[-1]


@alternative("keep_sinks")
def lists_the_places(past, n_first, window):
    P = past[0][0].shape[2]
    places = [place for place in range(P) if place < n_first or place >= P - window]
    return [(keys[:, :, places], values[:, :, places]) for keys, values in past]


@alternative("keep_sinks")
def joins_two_slices(past, n_first, window):
    shortened = []
    for pair in past:
        new = []
        for tensor in pair:
            P = tensor.size(2)
            n = min(n_first, P)
            begin = max(n, P - window)
            new.append(torch.cat([tensor[:, :, :n], tensor[:, :, begin:]], dim=2))
        shortened.append(tuple(new))
    return shortened


@alternative("keep_sinks")
def takes_unique_numbers(past, n_first, window):
    def cut(x):
        numbers = torch.arange(x.shape[-2], device=x.device)
        last = numbers[max(0, len(numbers) - window) :]
        return x.index_select(2, torch.cat([numbers[:n_first], last]).unique())

    return [[cut(keys), cut(values)] for keys, values in past]


@careless("keep_sinks")
def puts_pairs_into_the_past(past, n_first, window):
    for number, pair in enumerate(joins_two_slices(past, n_first, window)):
        past[number] = pair
    return past


@careless("keep_sinks")
def copies_to_the_cpu(past, n_first, window):
    shortened = []
    for keys, values in joins_two_slices(past, n_first, window):
        new = torch.empty(2, *keys.shape, dtype=keys.dtype)
        new[0], new[1] = keys, values
        shortened.append((new[0], new[1]))
    return shortened


@alternative("stretched_base")
def solves_for_the_speed(base, d_head, factor):
    share = (d_head - 2) / d_head  # the exponent of the slowest pair
    return (factor * base**share) ** (1 / share)


@alternative("stretched_base")
def counts_pairs(base, d_head, factor):
    pairs = d_head // 2
    speed = base ** (-(pairs - 1) / pairs) / factor
    return speed ** (-pairs / (pairs - 1))


_DRAWN, _PER_ROOT = "torch.randn(rank, linear.in_features)", "linear.in_features ** 0.5"
_BEGINS = {
    "with `*` once where `/` belongs": f"{_DRAWN} * {_PER_ROOT}",
    "with the two sides of one `/` exchanged": f"{_PER_ROOT} / {_DRAWN}",
    "with one division left out": _DRAWN,
    "with `*` once where `**` belongs": f"{_DRAWN} / (linear.in_features * 0.5)",
    "with the two sides of one `**` exchanged": f"{_DRAWN} / 0.5 ** linear.in_features",
    "with one constant twice as large": f"{_DRAWN} / linear.in_features ** 1.0",
}
_LEFT_OUT = ("linear.in_features", "0.5")  # of the power
_PLACES = "place = torch.arange(P, device=past[{}].device)"

EQUIVALENT = {
    **{
        f"LowRank: {how}: self.A = nn.Parameter({drawn})": "A may begin with any random numbers"
        for how, drawn in (
            *_BEGINS.items(),
            *(("with one power left out", f"{_DRAWN} / {one}") for one in _LEFT_OUT),
        )
    },
    **{
        f"keep_sinks: with one whole number off by one: {text}": "all keys and values are alike"
        for where in ("0][1", "0][-1", "-1][0")
        for text in (f"P = past[{where}].shape[2]", _PLACES.format(where))
    },
    **{
        f"accept: with `{name}` once where `drafted` belongs: return (len({name}), p[-1])": (
            "there is a noise, and a row of q, for each token of the draft"
        )
        for name in ("noise", "q")
    },
    **{
        f"answer_loss: with `{name}` once where `tokens` belongs: place = torch.arange({place})": (
            "the arguments have one length and lie on one device"
        )
        for name, place in (
            ("scores", "scores.shape[1], device=tokens.device"),
            ("asked", "tokens.shape[1], device=asked.device"),
            ("scores", "tokens.shape[1], device=scores.device"),
        )
    },
    **{
        f"quantize: with another axis in one place: low, high = ({low}, {high})": (
            "of three axes, 2 is the last"
        )
        for low, high in (
            ("blocks.amin(dim=-1, keepdim=True)", "blocks.amax(dim=2, keepdim=True)"),
            ("blocks.amin(dim=2, keepdim=True)", "blocks.amax(dim=-1, keepdim=True)"),
        )
    },
    "accept: with one call of `tolist` left out: for i, token in enumerate(drafted): if noise[i] * "
    "q[i, token] >= p[i, token]: rest = (p[i] - q[i]).clamp(min=0) return …": (
        "a tensor of one token is an index, too"
    ),
    "keep_sinks: without `device` in one call of `arange`: place = torch.arange(P)": (
        "a mask on the CPU may be an index on a GPU"
    ),
    "quantize: with one constant twice as large: codes = ((blocks - low) / scale.where(scale > 0, "
    "2.0)).round()": "0 is divided by it",
    "quantize: whose result is cut off from the gradient: return (low + scale * codes).flatten(1)."
    "detach()": "rounding has no gradient",
    "unpack_q4: with one call of `float` left out: smallest = blocks[:, 2:4].clone().view("
    "torch.float16)": "the sum with a float32 is in float32",
    "unpack_q4: whose result is cut off from the gradient: return (scale * codes + smallest)."
    "detach()": "bytes have no gradient",
}
