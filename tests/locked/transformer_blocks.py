"""Answers to lesson 09 that were written without a look at its checks."""

from functools import partial

import torch
from torch import nn

from attention.masked_attention import causal_mask, combine_masks
from attention.multi_head_attention import Sublayers
from tests.locked import right, wrong


@wrong("gradient_norms", cause="adds h inside of the tanh", kind="value")
def gradient_norms_4(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        h = torch.tanh(h @ weight + h) if skip else torch.tanh(h @ weight)
    (gradient,) = torch.autograd.grad(h.square().mean(), weights)
    return gradient.flatten(1).norm(dim=1)


@wrong(
    "gradient_norms",
    cause="switches gradients on in the given weights and leaves them a .grad",
    kind="state",
)
def gradient_norms_7(x, weights, skip):
    weights.requires_grad_()
    h = x
    for weight in weights:
        update = torch.tanh(h @ weight)
        h = h + update if skip else update
    h.square().mean().backward()
    return weights.grad.flatten(1).norm(dim=1)


@wrong("gradient_norms", cause="returns a list of floats, not a tensor", kind="type")
def gradient_norms_8(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        update = torch.tanh(h @ weight)
        h = h + update if skip else update
    h.square().mean().backward()
    return [gradient.norm().item() for gradient in weights.grad]


@right("gradient_norms", how="one leaf per layer, backward, and a list of norms stacked")
def gradient_norms_10(x, weights, skip):
    layers = [weight.detach().clone().requires_grad_(True) for weight in weights]
    h = x.detach()
    for layer in layers:
        h = torch.tanh(h.matmul(layer)) + (h if skip else 0)
    (h**2).mean().backward()
    return torch.stack([torch.linalg.matrix_norm(layer.grad) for layer in layers])


@right("gradient_norms", how="backpropagation by hand")
def gradient_norms_11(x, weights, skip):
    with torch.no_grad():
        inputs, updates, h = [], [], x
        for weight in weights:
            inputs.append(h)
            updates.append(torch.tanh(h @ weight))
            h = updates[-1] + h if skip else updates[-1]
        back, norms = 2 * h / h.numel(), []
        for weight, h, update in zip(
            reversed(list(weights)), reversed(inputs), reversed(updates), strict=True
        ):
            inner = back * (1 - update**2)
            norms.append((h.mT @ inner).norm())
            back = inner @ weight.mT + (back if skip else 0)
        return torch.stack(norms[::-1])


@right("LayerNorm", how="var_mean, rsqrt and addcmul, bias made before weight")
class LayerNorm_12(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return torch.addcmul(self.bias, (x - mean) * torch.rsqrt(variance + self.eps), self.weight)


@right("FeedForward", how="dropout before the ReLU, which is the same; clamp as ReLU")
class FeedForward_9(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear_2 = nn.Linear(d_ff, d_model)
        self.linear_1 = nn.Linear(d_model, d_ff)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.linear_2(self.dropout(self.linear_1(x)).clamp(min=0))


@wrong("EncoderLayer", cause="post-norm without the residual connections", kind="value")
class EncoderLayer_3(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(self.dropout(self.feed_forward(x)))


@wrong(
    "EncoderLayer",
    cause="pre-norm adds to x in place and so changes the caller's tensor",
    kind="state",
)
class EncoderLayer_11(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            h = self.norm_1(x)
            x += self.dropout(self.attention(h, h, h, mask))
            x += self.dropout(self.feed_forward(self.norm_2(x)))
            return x
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@right("EncoderLayer", how="a loop over the two sublayers with one rule for both norms")
class EncoderLayer_12(Sublayers):
    def forward(self, x, mask=None):
        def attend_to_itself(h):
            return self.attention(h, h, h, mask)

        for norm, part in ((self.norm_1, attend_to_itself), (self.norm_2, self.feed_forward)):
            if self.pre_norm:
                x = x + self.dropout(part(norm(x)))
            else:
                x = norm(x + self.dropout(part(x)))
        return x


class _Three(Sublayers):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, pre_norm=False, fused=False):
        super().__init__(d_model, n_heads, d_ff, dropout, pre_norm, fused, cross=True)


def _decode(self, x, memory, mask, memory_mask):
    """The right order of the parts, for answers that are wrong in their masks only."""
    if self.pre_norm:
        h = self.norm_1(x)
        x = x + self.dropout(self.attention(h, h, h, mask))
        h = self.norm_2(x)
        x = x + self.dropout(self.cross_attention(h, memory, memory, memory_mask))
        return x + self.dropout(self.feed_forward(self.norm_3(x)))
    x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
    x = self.norm_2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)))
    return self.norm_3(x + self.dropout(self.feed_forward(x)))


@wrong("DecoderLayer", cause="fails without a mask: None cannot be joined with &", kind="crash")
class DecoderLayer_4(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = mask & causal_mask(x.shape[1], x.device)
        return _decode(self, x, memory, mask, memory_mask)


@wrong("DecoderLayer", cause="the causal mask is made on the CPU, wherever x is", kind="device")
class DecoderLayer_6(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.shape[1]), mask)
        return _decode(self, x, memory, mask, memory_mask)


@wrong(
    "DecoderLayer",
    cause="in the cross-attention the memory asks and the target answers",
    kind="shape",
)
class DecoderLayer_10(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.shape[1], x.device), mask)
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            h = self.norm_2(x)
            x = x + self.dropout(self.cross_attention(memory, h, h, memory_mask))
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        x = self.norm_2(x + self.dropout(self.cross_attention(memory, x, x, memory_mask)))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


@wrong("DecoderLayer", cause="the cross-attention gets the target's mask", kind="crash")
class DecoderLayer_11(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.shape[1], x.device), mask)
        return _decode(self, x, memory, mask, mask)


@right("DecoderLayer", how="three partial functions and one rule, the causal mask by comparison")
class DecoderLayer_14(_Three):
    def _add(self, x, norm, part):
        if self.pre_norm:
            return x + self.dropout(part(norm(x)))
        return norm(x + self.dropout(part(x)))

    def _look(self, attention, memory, mask, h):
        source = h if memory is None else memory
        return attention(h, source, source, mask)

    def forward(self, x, memory, mask=None, memory_mask=None):
        t = torch.arange(x.shape[1], device=x.device)
        causal = t[None, :] <= t[:, None]
        mask = causal if mask is None else torch.logical_and(causal, mask)
        x = self._add(x, self.norm_1, partial(self._look, self.attention, None, mask))
        look = partial(self._look, self.cross_attention, memory, memory_mask)
        x = self._add(x, self.norm_2, look)
        return self._add(x, self.norm_3, self.feed_forward)
