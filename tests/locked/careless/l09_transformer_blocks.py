"""Careless right answers to lesson 09."""

import numpy as np
import torch
from torch import nn

from attention.masked_attention import causal_mask, combine_masks
from attention.multi_head_attention import Sublayers
from tests.locked.careless import careless


def _gradients(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        update = torch.tanh(h @ weight)
        h = h + update if skip else update
    return torch.autograd.grad((h**2).mean(), weights)[0]


@careless("gradient_norms", "device", "dtype", how="norms into zeros of float32")
def gradient_norms_1(x, weights, skip):
    gradients = _gradients(x, weights, skip)
    norms = torch.zeros(len(weights))
    for layer, gradient in enumerate(gradients):
        norms[layer] = gradient.norm()
    return norms


@careless("gradient_norms", "numpy", how="norms in NumPy")
def gradient_norms_2(x, weights, skip):
    gradients = _gradients(x, weights, skip).numpy()
    return torch.from_numpy(np.sqrt((gradients**2).sum(axis=(1, 2))))


@careless("gradient_norms", "plain_numbers", "device", "dtype", how="a list of Python floats")
def gradient_norms_3(x, weights, skip):
    leaves = [weight.detach().clone().requires_grad_() for weight in weights]
    h = x.detach()
    for weight in leaves:
        h = torch.tanh(h @ weight) + (h if skip else 0.0)
    h.square().mean().backward()
    return torch.tensor([leaf.grad.square().sum().item() ** 0.5 for leaf in leaves])


@careless("LayerNorm", "other_order", how="var, and the reciprocal of the root")
class LayerNorm_1(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return (x - mean) * (self.weight * torch.rsqrt(variance + self.eps)) + self.bias


@careless("LayerNorm", "plain_numbers", how="sums over the features that start at 0.0")
class LayerNorm_2(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps, self.d_model = eps, d_model
        self.weight = nn.Parameter(torch.tensor([1.0] * d_model))
        self.bias = nn.Parameter(torch.tensor([0.0] * d_model))

    def forward(self, x):
        total, squares = 0.0, 0.0
        for f in range(self.d_model):
            total = total + x[..., f : f + 1]
        centred = x - total / self.d_model
        for f in range(self.d_model):
            squares = squares + centred[..., f : f + 1] ** 2
        return centred / (squares / self.d_model + self.eps) ** 0.5 * self.weight + self.bias


@careless("LayerNorm", "device", how="eps is a scalar tensor")
class LayerNorm_3(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = torch.tensor(eps)
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = (centred * centred).mean(dim=-1, keepdim=True)
        return centred / torch.sqrt(variance + self.eps) * self.weight + self.bias


@careless("FeedForward", "device", "dtype", how="the larger of the hidden units and zeros")
class FeedForward_1(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear_1 = nn.Linear(d_model, d_ff)
        self.linear_2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        hidden = self.linear_1(x)
        hidden = torch.maximum(hidden, torch.zeros(hidden.shape))
        return self.linear_2(self.dropout(hidden))


@careless("FeedForward", "in_place", "module_state", how="cuts in place; keeps the hidden units")
class FeedForward_2(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear_1 = nn.Linear(d_model, d_ff)
        self.linear_2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        self.hidden = self.linear_1(x)
        self.hidden[self.hidden < 0] = 0
        return self.linear_2(self.dropout(self.hidden))


@careless("EncoderLayer", "device", how="a mask of True without a device where none is given")
class EncoderLayer_1(Sublayers):
    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@careless("EncoderLayer", "module_state", how="keeps what each sublayer has added")
class EncoderLayer_2(Sublayers):
    def forward(self, x, mask=None):
        self.updates = []
        for norm, part in (
            (self.norm_1, lambda h: self.attention(h, h, h, mask)),
            (self.norm_2, self.feed_forward),
        ):
            update = self.dropout(part(norm(x) if self.pre_norm else x))
            self.updates.append(update)
            x = x + update if self.pre_norm else norm(x + update)
        return x


@careless("DecoderLayer", "device", how="a triangle without a device")
class DecoderLayer_1(Sublayers):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, pre_norm=False, fused=False):
        super().__init__(d_model, n_heads, d_ff, dropout, pre_norm, fused, cross=True)

    def forward(self, x, memory, mask=None, memory_mask=None):
        past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        mask = past if mask is None else past & mask
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            h = self.norm_2(x)
            x = x + self.dropout(self.cross_attention(h, memory, memory, memory_mask))
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        x = self.norm_2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


@careless("DecoderLayer", "module_state", how="keeps the mask and the updates in attributes")
class DecoderLayer_2(Sublayers):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, pre_norm=False, fused=False):
        super().__init__(d_model, n_heads, d_ff, dropout, pre_norm, fused, cross=True)

    def forward(self, x, memory, mask=None, memory_mask=None):
        self.mask = combine_masks(causal_mask(x.shape[1], x.device), mask)
        self.updates = []
        for norm, part in (
            (self.norm_1, lambda h: self.attention(h, h, h, self.mask)),
            (self.norm_2, lambda h: self.cross_attention(h, memory, memory, memory_mask)),
            (self.norm_3, self.feed_forward),
        ):
            self.updates.append(self.dropout(part(norm(x) if self.pre_norm else x)))
            x = x + self.updates[-1]
            if not self.pre_norm:
                x = norm(x)
        return x
