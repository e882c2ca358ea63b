"""Wrong and right answers to the exercises of lesson 09."""

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask, combine_masks
from attention.multi_head_attention import Sublayers
from autograder.checking.toolbox.registry import alternative, careless


class _Norm(nn.Module):
    """A right answer in small methods; a mistake overrides what it gets wrong."""

    dim = -1

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def centre(self, x):
        return x - x.mean(self.dim, keepdim=True)

    def variance(self, x):
        return x.var(self.dim, keepdim=True, correction=0)

    def root(self, x):
        return torch.sqrt(self.variance(x) + self.eps)

    def finish(self, normed):
        return normed * self.weight + self.bias

    def forward(self, x):
        return self.finish(self.centre(x) / self.root(x))


@alternative("LayerNorm")
class WithTheKernel(_Norm):
    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


@alternative("LayerNorm")
class WithVarMean(_Norm):
    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return torch.addcmul(self.bias, (x - mean) * (variance + self.eps).rsqrt(), self.weight)


@careless("LayerNorm")
class MakesATensorOfEps(_Norm):
    def root(self, x):
        return torch.sqrt(self.variance(x) + torch.full((1,), self.eps))


@careless("LayerNorm")
class FillsTheVectors(_Norm):
    def forward(self, x):
        result, vectors = torch.zeros(x.shape).view(-1, x.shape[-1]), x.reshape(-1, x.shape[-1])
        for i, vector in enumerate(vectors):
            result[i] = super().forward(vector)
        return result.view(x.shape)


class _Wide(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.p = dropout
        self.dropout = nn.Dropout(dropout)
        self.linear_1, self.linear_2 = self.layers(d_model, d_ff)

    def layers(self, d_model, d_ff):
        return nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear_2(self.dropout(torch.relu(self.linear_1(x))))


@alternative("FeedForward")
class PositionAfterPosition(_Wide):
    def forward(self, x):
        rows = [super(PositionAfterPosition, self).forward(row) for row in x.view(-1, x.shape[-1])]
        return torch.stack(rows).view(x.shape)


@alternative("FeedForward")
class DropsBeforeTheRelu(_Wide):
    """Dropout and ReLU may change places: one scales by a positive number or 0."""

    def forward(self, x):
        hidden = self.dropout(x @ self.linear_1.weight.T + self.linear_1.bias)
        return hidden.clamp(min=0) @ self.linear_2.weight.T + self.linear_2.bias


@careless("FeedForward")
class ComparesWithZeros(_Wide):
    def forward(self, x):
        hidden = self.linear_1(x)
        return self.linear_2(self.dropout(torch.maximum(hidden, torch.zeros(hidden.shape))))


@careless("FeedForward")
class FillsThePositions(_Wide):
    def forward(self, x):
        result, rows = torch.zeros(x.shape).view(-1, x.shape[-1]), x.reshape(-1, x.shape[-1])
        for i, row in enumerate(rows):
            result[i] = super().forward(row)
        return result.view(x.shape)


class _Layer(Sublayers):
    """A right encoder layer in small methods."""

    def drop(self, update):
        return self.dropout(update)

    def look(self, h, mask):
        return self.attention(h, h, h, mask)

    def before(self, number, x):
        return getattr(self, f"norm_{number}")(x)

    def add(self, number, x, update):
        return x + self.drop(update)

    def join(self, number, x, sublayer):
        """Residual and norm around a sublayer."""
        if self.pre_norm:
            return self.add(number, x, sublayer(self.before(number, x)))
        return self.before(number, self.add(number, x, sublayer(x)))

    def forward(self, x, mask=None):
        x = self.join(1, x, lambda h: self.look(h, mask))
        return self.join(2, x, self.feed_forward)


@alternative("EncoderLayer")
class JoinsInOnePlace(_Layer):
    """The right answer from which the mistakes are made."""


@alternative("EncoderLayer")
class ChoosesTheNormAtEveryStep(Sublayers):
    def forward(self, x, mask=None):
        h = self.norm_1(x) if self.pre_norm else x
        x = self.dropout(self.attention(h, h, h, mask)) + x
        x = x if self.pre_norm else self.norm_1(x)
        h = self.norm_2(x) if self.pre_norm else x
        x = self.dropout(self.feed_forward(h)) + x
        return x if self.pre_norm else self.norm_2(x)


@careless("EncoderLayer")
class MakesAMaskOfOnes(_Layer):
    def look(self, h, mask):
        ones = torch.ones(h.shape[1], h.shape[1], dtype=torch.bool)
        return super().look(h, ones if mask is None else mask)


@careless("EncoderLayer")
class CollectsTheStreamOnTheCpu(_Layer):
    def add(self, number, x, update):
        stream = torch.zeros(x.shape, dtype=x.dtype)
        return stream + x + self.drop(update)


class _Decoder(_Layer):
    """A right decoder layer in small methods."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, pre_norm=False, fused=False):
        Sublayers.__init__(self, d_model, n_heads, d_ff, dropout, pre_norm, fused, cross=True)

    def past(self, x, mask):
        return combine_masks(causal_mask(x.shape[1], x.device), mask)

    def masks(self, x, mask, memory_mask):
        return self.past(x, mask), memory_mask

    def cross(self, h, memory, mask):
        return self.cross_attention(h, memory, memory, mask)

    def forward(self, x, memory, mask=None, memory_mask=None):
        mask, memory_mask = self.masks(x, mask, memory_mask)
        x = self.join(1, x, lambda h: self.look(h, mask))
        x = self.join(2, x, lambda h: self.cross(h, memory, memory_mask))
        return self.join(3, x, self.feed_forward)


@alternative("DecoderLayer")
class DecodesInSmallMethods(_Decoder):
    """The right answer from which the mistakes are made."""


@alternative("DecoderLayer")
class DecodesStepByStep(_Decoder):
    def forward(self, x, memory, mask=None, memory_mask=None):
        pre, position = self.pre_norm, torch.arange(x.shape[1], device=x.device)
        seen = position[:, None] >= position
        seen = seen if mask is None else seen & mask
        h = self.norm_1(x) if pre else x
        x = x + self.dropout(self.attention(h, h, h, seen))
        x = x if pre else self.norm_1(x)
        h = self.norm_2(x) if pre else x
        x = x + self.dropout(self.cross_attention(h, memory, memory, memory_mask))
        x = x if pre else self.norm_2(x)
        h = self.norm_3(x) if pre else x
        x = x + self.dropout(self.feed_forward(h))
        return x if pre else self.norm_3(x)


@careless("DecoderLayer")
class HidesTheFutureOnTheCpu(_Decoder):
    def past(self, x, mask):
        return combine_masks(causal_mask(x.shape[1]), mask)


@careless("DecoderLayer")
class CountsPositionsOnTheCpu(_Decoder):
    def past(self, x, mask):
        position = torch.arange(x.shape[1])
        return combine_masks(position[:, None] >= position, mask)


def _run(x, weights, skip, update=None):
    """The last output of the stack."""
    update = update or (lambda h, weight: torch.tanh(h @ weight))
    h = x
    for weight in weights:
        h = h + update(h, weight) if skip else update(h, weight)
    return h


def _gradient(x, weights, skip, loss=None, **options):
    weights = weights.detach().clone().requires_grad_()
    h = _run(x, weights, skip, **options)
    return torch.autograd.grad(h.square().mean() if loss is None else loss(h), weights)[0]


@alternative("gradient_norms")
def with_a_leaf_per_layer(x, weights, skip):
    leaves = [weight.detach().clone().requires_grad_() for weight in weights]
    _run(x, leaves, skip).pow(2).mean().backward()
    return torch.stack([leaf.grad.norm() for leaf in leaves])


@alternative("gradient_norms")
def by_the_chain_rule(x, weights, skip):
    states = [x]
    for weight in weights:
        states.append(_run(states[-1], weight[None], skip))
    back, norms = 2 * states[-1] / x.numel(), []
    for weight, h in zip(reversed(list(weights)), states[-2::-1], strict=True):
        inner = back / torch.cosh(h @ weight) ** 2
        norms.insert(0, torch.linalg.vector_norm(h.T @ inner))
        back = inner @ weight.T + (back if skip else 0)
    return torch.stack(norms)


@careless("gradient_norms")
def fills_the_norms(x, weights, skip):
    norms = torch.zeros(len(weights))
    for layer, gradient in enumerate(_gradient(x, weights, skip)):
        norms[layer] = gradient.norm()
    return norms


@careless("gradient_norms")
def makes_a_tensor_of_numbers(x, weights, skip):
    return torch.tensor([gradient.norm().item() for gradient in _gradient(x, weights, skip)])


EQUIVALENT = {
    "gradient_norms: with one call of `clone` left out: weights = "
    "weights.detach().requires_grad_()": "what is detached is a new tensor, and nothing writes",
    "gradient_norms: with one call of `detach` left out: weights = "
    "weights.clone().requires_grad_()": "a copy has the same gradient, whatever it came from",
    "gradient_norms: whose result is cut off from the gradient: return "
    "gradient.flatten(1).norm(dim=1).detach()": "no graph of the gradients was made",
    "DecoderLayer: with two arguments of one call of `combine_masks` exchanged: mask = "
    "combine_masks(mask, causal_mask(x.shape[1], x.device))": "both must allow, in any order",
    "DecoderLayer: with `memory` once where `x` belongs: mask = combine_masks(causal_mask("
    "x.shape[1], memory.device), mask)": "the target and the memory are on the same device",
}
