"""Answers to lesson 09 that were written without a look at its checks."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask, combine_masks
from attention.multi_head_attention import Sublayers
from tests.locked import right, wrong


@wrong("gradient_norms", cause="the loss is the sum of the squares, not their mean", kind="value")
def gradient_norms_1(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        update = torch.tanh(h @ weight)
        h = h + update if skip else update
    (gradient,) = torch.autograd.grad(h.square().sum(), weights)
    return gradient.flatten(1).norm(dim=1)


@wrong("gradient_norms", cause="adds h whether skip is set or not", kind="value")
def gradient_norms_2(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        h = h + torch.tanh(h @ weight)
    (gradient,) = torch.autograd.grad(h.square().mean(), weights)
    return gradient.flatten(1).norm(dim=1)


@wrong(
    "gradient_norms",
    cause="takes one norm per row of each matrix: (n_layers, d_model)",
    kind="shape",
)
def gradient_norms_3(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        update = torch.tanh(h @ weight)
        h = h + update if skip else update
    (gradient,) = torch.autograd.grad(h.square().mean(), weights)
    return gradient.norm(dim=-1)


@wrong("gradient_norms", cause="adds h inside of the tanh", kind="value")
def gradient_norms_4(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        h = torch.tanh(h @ weight + h) if skip else torch.tanh(h @ weight)
    (gradient,) = torch.autograd.grad(h.square().mean(), weights)
    return gradient.flatten(1).norm(dim=1)


@wrong("gradient_norms", cause="returns squared norms: the root is missing", kind="value")
def gradient_norms_5(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        update = torch.tanh(h @ weight)
        h = h + update if skip else update
    (gradient,) = torch.autograd.grad(h.square().mean(), weights)
    return gradient.square().sum(dim=(1, 2))


@wrong(
    "gradient_norms",
    cause="multiplies with the transposed weights, as nn.Linear does",
    kind="value",
)
def gradient_norms_6(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        update = torch.tanh(F.linear(h, weight))
        h = h + update if skip else update
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


@wrong(
    "gradient_norms", cause="gives the norm of the weights, not of their gradients", kind="value"
)
def gradient_norms_9(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        update = torch.tanh(h @ weight)
        h = h + update if skip else update
    h.square().mean().backward()
    return weights.detach().flatten(1).norm(dim=1)


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


class _Noisy(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.p = dropout


@wrong("Residual", cause="does not divide what is kept by 1 - p", kind="value")
class Residual_1(_Noisy):
    def forward(self, x, update, noise=None):
        if noise is None:
            noise = torch.rand_like(update)
        if self.training:
            update = update * (noise >= self.p)
        return x + update


@wrong("Residual", cause="drops entries of the sum, and so of x as well", kind="value")
class Residual_2(_Noisy):
    def forward(self, x, update, noise=None):
        if noise is None:
            noise = torch.rand_like(update)
        total = x + update
        if self.training:
            total = total * (noise >= self.p) / (1 - self.p)
        return total


@wrong("Residual", cause="keeps what should be dropped, and drops the rest", kind="value")
class Residual_3(_Noisy):
    def forward(self, x, update, noise=None):
        if noise is None:
            noise = torch.rand_like(update)
        if self.training:
            update = update * (noise < self.p) / (1 - self.p)
        return x + update


@wrong("Residual", cause="drops after eval() as well", kind="state")
class Residual_4(_Noisy):
    def forward(self, x, update, noise=None):
        if noise is None:
            noise = torch.rand_like(update)
        return x + torch.where(noise < self.p, 0.0, update / (1 - self.p))


@wrong(
    "Residual",
    cause="draws noise of its own with F.dropout and ignores the given one",
    kind="value",
)
class Residual_5(_Noisy):
    def forward(self, x, update, noise=None):
        if noise is None:
            noise = torch.rand_like(update)
        return x + F.dropout(update, self.p, self.training)


@wrong("Residual", cause="writes into the given update", kind="state")
class Residual_6(_Noisy):
    def forward(self, x, update, noise=None):
        if noise is None:
            noise = torch.rand_like(update)
        if self.training:
            update[noise < self.p] = 0
            update /= 1 - self.p
        return x + update


@wrong("Residual", cause="divides by p instead of 1 - p", kind="value")
class Residual_7(_Noisy):
    def forward(self, x, update, noise=None):
        if noise is None:
            noise = torch.rand_like(update)
        if self.training:
            update = update * (noise >= self.p) / self.p
        return x + update


@wrong(
    "Residual", cause="scales by 1 - p after eval() instead of dividing in training", kind="value"
)
class Residual_8(_Noisy):
    def forward(self, x, update, noise=None):
        if noise is None:
            noise = torch.rand_like(update)
        if self.training:
            return x + update * (noise >= self.p)
        return x + update * (1 - self.p)


@wrong("Residual", cause="also drops entries whose noise is exactly p", kind="extreme")
class Residual_9(_Noisy):
    def forward(self, x, update, noise=None):
        if noise is None:
            noise = torch.rand_like(update)
        if self.training:
            update = update * (noise > self.p) / (1 - self.p)
        return x + update


@right("Residual", how="masked_fill, and an early return after eval()")
class Residual_10(_Noisy):
    def forward(self, x, update, noise=None):
        if not self.training:
            return torch.add(x, update)
        if noise is None:
            noise = torch.rand_like(update)
        return x + (update / (1 - self.p)).masked_fill(noise < self.p, 0)


@wrong("LayerNorm", cause="x.var divides by d - 1", kind="value")
class LayerNorm_1(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias


@wrong("LayerNorm", cause="adds eps to the root instead of to the variance", kind="value")
class LayerNorm_2(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        root = centred.square().mean(-1, keepdim=True).sqrt()
        return centred / (root + self.eps) * self.weight + self.bias


@wrong("LayerNorm", cause="takes mean and variance over the first axis", kind="value")
class LayerNorm_3(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centred = x - x.mean(dim=0, keepdim=True)
        variance = centred.square().mean(dim=0, keepdim=True)
        return centred / torch.sqrt(variance + self.eps) * self.weight + self.bias


@wrong("LayerNorm", cause="one mean and variance for the whole tensor", kind="value")
class LayerNorm_4(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centred = x - x.mean()
        return centred / torch.sqrt(centred.square().mean() + self.eps) * self.weight + self.bias


@wrong("LayerNorm", cause="leaves out eps, so a constant vector becomes NaN", kind="extreme")
class LayerNorm_5(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred / torch.sqrt(variance) * self.weight + self.bias


@wrong(
    "LayerNorm",
    cause="mean of squares less square of the mean loses all digits where the mean is large",
    kind="extreme",
)
class LayerNorm_6(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x * x).mean(-1, keepdim=True) - mean * mean
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias


@wrong("LayerNorm", cause="uses 1e-5 whatever eps was given", kind="value")
class LayerNorm_7(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + 1e-5) * self.weight + self.bias


@wrong("LayerNorm", cause="adds the bias before the weight multiplies", kind="value")
class LayerNorm_8(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return (centred / torch.sqrt(variance + self.eps) + self.bias) * self.weight


@wrong(
    "LayerNorm",
    cause="mean and variance are detached, so the gradient of x is wrong",
    kind="gradient",
)
class LayerNorm_9(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        with torch.no_grad():
            mean = x.mean(-1, keepdim=True)
            variance = x.var(-1, unbiased=False, keepdim=True)
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias


@wrong("LayerNorm", cause="weight and bias are plain tensors, no parameters", kind="type")
class LayerNorm_10(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = torch.ones(d_model)
        self.bias = torch.zeros(d_model)

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + self.eps) * self.weight + self.bias


@wrong("LayerNorm", cause="centres x in place", kind="state")
class LayerNorm_11(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        x -= x.mean(-1, keepdim=True)
        variance = x.square().mean(-1, keepdim=True)
        return x / torch.sqrt(variance + self.eps) * self.weight + self.bias


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


class _Wide(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear_1 = nn.Linear(d_model, d_ff)
        self.linear_2 = nn.Linear(d_ff, d_model)


@wrong("FeedForward", cause="the ReLU is missing", kind="value")
class FeedForward_1(_Wide):
    def forward(self, x):
        return self.linear_2(self.dropout(self.linear_1(x)))


@wrong("FeedForward", cause="drops entries of the output, not hidden units", kind="value")
class FeedForward_2(_Wide):
    def forward(self, x):
        return self.dropout(self.linear_2(torch.relu(self.linear_1(x))))


@wrong("FeedForward", cause="the ReLU stands behind the second layer", kind="value")
class FeedForward_3(_Wide):
    def forward(self, x):
        return torch.relu(self.linear_2(self.dropout(self.linear_1(x))))


@wrong("FeedForward", cause="uses GELU instead of ReLU", kind="value")
class FeedForward_4(_Wide):
    def forward(self, x):
        return self.linear_2(self.dropout(F.gelu(self.linear_1(x))))


@wrong("FeedForward", cause="forgets the dropout", kind="value")
class FeedForward_5(_Wide):
    def forward(self, x):
        return self.linear_2(F.relu(self.linear_1(x)))


@wrong("FeedForward", cause="F.dropout is on by default, also after eval()", kind="state")
class FeedForward_6(_Wide):
    def forward(self, x):
        return self.linear_2(F.dropout(F.relu(self.linear_1(x)), self.dropout.p))


@wrong("FeedForward", cause="the layers have no bias", kind="value")
class FeedForward_7(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear_1 = nn.Linear(d_model, d_ff, bias=False)
        self.linear_2 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.linear_2(self.dropout(torch.relu(self.linear_1(x))))


@wrong("FeedForward", cause="the sizes of both layers are swapped", kind="crash")
class FeedForward_8(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear_1 = nn.Linear(d_ff, d_model)
        self.linear_2 = nn.Linear(d_model, d_ff)

    def forward(self, x):
        return self.linear_2(self.dropout(torch.relu(self.linear_1(x))))


@right("FeedForward", how="dropout before the ReLU, which is the same; clamp as ReLU")
class FeedForward_9(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear_2 = nn.Linear(d_ff, d_model)
        self.linear_1 = nn.Linear(d_model, d_ff)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.linear_2(self.dropout(self.linear_1(x)).clamp(min=0))


@wrong("EncoderLayer", cause="pre-norm: the stream itself is normalised", kind="value")
class EncoderLayer_1(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            x = self.norm_1(x)
            x = x + self.dropout(self.attention(x, x, x, mask))
            x = self.norm_2(x)
            return x + self.dropout(self.feed_forward(x))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@wrong("EncoderLayer", cause="is always post-norm: pre_norm is ignored", kind="value")
class EncoderLayer_2(Sublayers):
    def forward(self, x, mask=None):
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@wrong("EncoderLayer", cause="post-norm without the residual connections", kind="value")
class EncoderLayer_3(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(self.dropout(self.feed_forward(x)))


@wrong("EncoderLayer", cause="the mask is not passed to the attention", kind="value")
class EncoderLayer_4(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@wrong("EncoderLayer", cause="uses norm_1 for both sublayers", kind="value")
class EncoderLayer_5(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            return x + self.dropout(self.feed_forward(self.norm_1(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_1(x + self.dropout(self.feed_forward(x)))


@wrong("EncoderLayer", cause="there is no dropout on the updates", kind="value")
class EncoderLayer_6(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.attention(h, h, h, mask)
            return x + self.feed_forward(self.norm_2(x))
        x = self.norm_1(x + self.attention(x, x, x, mask))
        return self.norm_2(x + self.feed_forward(x))


@wrong(
    "EncoderLayer",
    cause="pre-norm: only the query is normalised, keys and values are not",
    kind="value",
)
class EncoderLayer_7(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            x = x + self.dropout(self.attention(self.norm_1(x), x, x, mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@wrong("EncoderLayer", cause="pre_norm is taken the other way round", kind="value")
class EncoderLayer_8(Sublayers):
    def forward(self, x, mask=None):
        if not self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@wrong(
    "EncoderLayer",
    cause="the network reads the layer's input, not what the attention left",
    kind="value",
)
class EncoderLayer_9(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            h = self.norm_1(x)
            update = self.dropout(self.attention(h, h, h, mask))
            return x + update + self.dropout(self.feed_forward(self.norm_2(x)))
        h = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(h + self.dropout(self.feed_forward(x)))


@wrong("EncoderLayer", cause="post-norm normalises the update instead of the sum", kind="value")
class EncoderLayer_10(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = x + self.norm_1(self.dropout(self.attention(x, x, x, mask)))
        return x + self.norm_2(self.dropout(self.feed_forward(x)))


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


@wrong("DecoderLayer", cause="there is no causal mask", kind="value")
class DecoderLayer_1(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        return _decode(self, x, memory, mask, memory_mask)


@wrong(
    "DecoderLayer", cause="a given mask replaces the causal one instead of joining it", kind="value"
)
class DecoderLayer_2(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        if mask is None:
            mask = causal_mask(x.shape[1], x.device)
        return _decode(self, x, memory, mask, memory_mask)


@wrong("DecoderLayer", cause="the given target mask is ignored", kind="value")
class DecoderLayer_3(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        return _decode(self, x, memory, causal_mask(x.shape[1], x.device), memory_mask)


@wrong("DecoderLayer", cause="fails without a mask: None cannot be joined with &", kind="crash")
class DecoderLayer_4(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = mask & causal_mask(x.shape[1], x.device)
        return _decode(self, x, memory, mask, memory_mask)


@wrong("DecoderLayer", cause="the memory mask is not used", kind="value")
class DecoderLayer_5(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.shape[1], x.device), mask)
        return _decode(self, x, memory, mask, None)


@wrong("DecoderLayer", cause="the causal mask is made on the CPU, wherever x is", kind="device")
class DecoderLayer_6(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.shape[1]), mask)
        return _decode(self, x, memory, mask, memory_mask)


@wrong("DecoderLayer", cause="pre-norm normalises the memory as well", kind="value")
class DecoderLayer_7(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.pre_norm:
            memory = self.norm_2(memory)
        mask = combine_masks(causal_mask(x.shape[1], x.device), mask)
        return _decode(self, x, memory, mask, memory_mask)


@wrong("DecoderLayer", cause="looks at the source before the target looks at itself", kind="value")
class DecoderLayer_8(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.shape[1], x.device), mask)
        if self.pre_norm:
            h = self.norm_2(x)
            x = x + self.dropout(self.cross_attention(h, memory, memory, memory_mask))
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


@wrong("DecoderLayer", cause="norm_2 and norm_3 are swapped", kind="value")
class DecoderLayer_9(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.shape[1], x.device), mask)
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            h = self.norm_3(x)
            x = x + self.dropout(self.cross_attention(h, memory, memory, memory_mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        x = self.norm_3(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


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


@wrong("DecoderLayer", cause="the cross-attention takes its values from the target", kind="crash")
class DecoderLayer_12(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.shape[1], x.device), mask)
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            h = self.norm_2(x)
            x = x + self.dropout(self.cross_attention(h, memory, h, memory_mask))
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        x = self.norm_2(x + self.dropout(self.cross_attention(x, memory, x, memory_mask)))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


@wrong("DecoderLayer", cause="is always post-norm: pre_norm is ignored", kind="value")
class DecoderLayer_13(_Three):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.shape[1], x.device), mask)
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        x = self.norm_2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


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


@wrong("layer_parameters", cause="leaves out the biases of the attention", kind="value")
def layer_parameters_1(d_model, d_ff, cross=False):
    attention, norm = 4 * d_model**2, 2 * d_model
    ff = 2 * d_model * d_ff + d_ff + d_model
    return attention * (1 + cross) + ff + norm * (2 + cross)


@wrong(
    "layer_parameters", cause="counts one vector per norm instead of weight and bias", kind="value"
)
def layer_parameters_2(d_model, d_ff, cross=False):
    attention = 4 * (d_model**2 + d_model)
    ff = 2 * d_model * d_ff + d_ff + d_model
    return attention * (1 + cross) + ff + d_model * (2 + cross)


@wrong("layer_parameters", cause="forgets the third norm of a decoder layer", kind="value")
def layer_parameters_3(d_model, d_ff, cross=False):
    attention = 4 * (d_model**2 + d_model)
    ff = 2 * d_model * d_ff + d_ff + d_model
    return attention * (1 + cross) + ff + 4 * d_model


@wrong("layer_parameters", cause="ignores cross", kind="value")
def layer_parameters_4(d_model, d_ff, cross=False):
    return 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model


@wrong("layer_parameters", cause="takes d_ff to be 4 times d_model", kind="size")
def layer_parameters_5(d_model, d_ff, cross=False):
    attention = 4 * d_model * (d_model + 1)
    ff = 8 * d_model**2 + 5 * d_model
    return attention + ff + 4 * d_model + (attention + 2 * d_model if cross else 0)


@wrong(
    "layer_parameters", cause="gives both layers of the network a bias of length d_ff", kind="value"
)
def layer_parameters_6(d_model, d_ff, cross=False):
    attention = 4 * (d_model**2 + d_model)
    ff = 2 * (d_model * d_ff + d_ff)
    return attention * (1 + cross) + ff + 2 * d_model * (2 + cross)


@right("layer_parameters", how="builds the layer without memory and counts")
def layer_parameters_7(d_model, d_ff, cross=False):
    with torch.device("meta"):
        layer = Sublayers(d_model, 1, d_ff, cross=cross)
    return sum(parameter.numel() for parameter in layer.parameters())
