"""Wrong answers to lesson 09."""

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask, combine_masks
from attention.multi_head_attention import Sublayers
from attention.provided import demand
from tests.locked import wrong

# --- gradient_norms --------------------------------------------------------------------------


@wrong("gradient_norms", cause="the loss is the sum of the squares, not the mean")
def gradient_norms_101(x, weights, skip):
    W = weights.detach().clone().requires_grad_()
    h = x
    for w in W:
        h = torch.tanh(h @ w) + (h if skip else 0)
    (g,) = torch.autograd.grad((h**2).sum(), W)
    return g.flatten(1).norm(dim=1)


@wrong("gradient_norms", cause="skip adds the stack's input x at every layer, not h")
def gradient_norms_102(x, weights, skip):
    W = weights.detach().clone().requires_grad_()
    h = x
    for w in W:
        update = (h @ w).tanh()
        h = update + x if skip else update
    (g,) = torch.autograd.grad(h.square().mean(), W)
    return torch.linalg.matrix_norm(g)


@wrong("gradient_norms", cause="h is added before the tanh")
def gradient_norms_103(x, weights, skip):
    layers = [w.detach().clone().requires_grad_() for w in weights]
    h = x
    for w in layers:
        h = torch.tanh(h @ w + h) if skip else torch.tanh(h @ w)
    grads = torch.autograd.grad(h.pow(2).mean(), layers)
    return torch.stack([g.norm() for g in grads])


@wrong("gradient_norms", cause="the squared norms: the root is forgotten")
def gradient_norms_104(x, weights, skip):
    W = weights.detach().clone().requires_grad_()
    h = x
    for i in range(len(W)):
        u = torch.tanh(h @ W[i])
        h = h + u if skip else u
    g = torch.autograd.grad(torch.mean(h * h), W)[0]
    return (g**2).sum(dim=(1, 2))


@wrong("gradient_norms", cause="the largest singular value, not the root of the sum of squares")
def gradient_norms_105(x, weights, skip):
    W = weights.detach().clone().requires_grad_()
    h = x
    for w in W:
        h = (h if skip else 0) + torch.tanh(h @ w)
    g = torch.autograd.grad((h**2).mean(), W)[0]
    return torch.linalg.matrix_norm(g, ord=2)


@wrong("gradient_norms", cause="gradients of the states, not of the weights")
def gradient_norms_106(x, weights, skip):
    h = x.detach().clone().requires_grad_()
    states = []
    for w in weights:
        u = torch.tanh(h @ w)
        h = h + u if skip else u
        states.append(h)
    return torch.stack([g.norm() for g in torch.autograd.grad((h**2).mean(), states)])


# --- LayerNorm -------------------------------------------------------------------------------


class _LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        demand.within(0, eps=eps)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))


@wrong("LayerNorm", cause="var() divides by d - 1")
class LayerNorm_101(_LayerNorm):
    def forward(self, x):
        m, v = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
        return (x - m) / torch.sqrt(v + self.eps) * self.weight + self.bias


@wrong("LayerNorm", cause="eps outside the root")
class LayerNorm_102(_LayerNorm):
    def forward(self, x):
        c = x - x.mean(dim=-1, keepdim=True)
        return self.weight * c / (c.pow(2).mean(-1, keepdim=True).sqrt() + self.eps) + self.bias


@wrong("LayerNorm", cause="normalises over the first axis")
class LayerNorm_103(_LayerNorm):
    def forward(self, x):
        c = x - x.mean(dim=0, keepdim=True)
        var = (c**2).mean(dim=0, keepdim=True)
        return c / (var + self.eps).sqrt() * self.weight + self.bias


@wrong("LayerNorm", cause="divides by the variance, not its root")
class LayerNorm_104(_LayerNorm):
    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred / (variance + self.eps) * self.weight + self.bias


@wrong("LayerNorm", cause="E[x²] - E[x]²: digits are lost far from 0", kind="extreme")
class LayerNorm_105(_LayerNorm):
    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        var = (x * x).mean(-1, keepdim=True) - m * m
        return (x - m) * torch.rsqrt(var + self.eps) * self.weight + self.bias


@wrong("LayerNorm", cause="the bias is added before the scale")
class LayerNorm_106(_LayerNorm):
    def forward(self, x):
        return (F.layer_norm(x, x.shape[-1:], eps=self.eps) + self.bias) * self.weight


# --- FeedForward -----------------------------------------------------------------------------


class _FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        demand.within(0, 1, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)


@wrong("FeedForward", cause="GELU in place of ReLU")
class FeedForward_101(_FeedForward):
    def forward(self, x):
        return self.linear_2(self.dropout(F.gelu(self.linear_1(x))))


@wrong("FeedForward", cause="dropout on the result, not on the hidden units", kind="state")
class FeedForward_102(_FeedForward):
    def forward(self, x):
        return self.dropout(self.linear_2(torch.relu(self.linear_1(x))))


@wrong("FeedForward", cause="a second ReLU at the end")
class FeedForward_103(_FeedForward):
    def forward(self, x):
        hidden = self.dropout(self.linear_1(x).clamp(min=0))
        return self.linear_2(hidden).clamp(min=0)


@wrong("FeedForward", cause="a residual connection inside the network")
class FeedForward_104(_FeedForward):
    def forward(self, x):
        return x + self.linear_2(self.dropout(F.relu(self.linear_1(x))))


@wrong("FeedForward", cause="F.dropout without training=: drops after eval(), too", kind="state")
class FeedForward_105(_FeedForward):
    def forward(self, x):
        return self.linear_2(F.dropout(F.relu(self.linear_1(x)), self.dropout.p))


# --- EncoderLayer ----------------------------------------------------------------------------


@wrong("EncoderLayer", cause="pre-norm: the stream itself is normalised")
class EncoderLayer_101(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            x = self.norm_1(x)
            x = x + self.dropout(self.attention(x, x, x, mask))
            x = self.norm_2(x)
            return x + self.dropout(self.feed_forward(x))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@wrong("EncoderLayer", cause="pre-norm: only the queries are normalised, not keys and values")
class EncoderLayer_102(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            x = x + self.dropout(self.attention(self.norm_1(x), x, x, mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@wrong("EncoderLayer", cause="post-norm: the update is normalised before it is added")
class EncoderLayer_103(Sublayers):
    def forward(self, x, mask=None):
        if not self.pre_norm:
            x = x + self.norm_1(self.dropout(self.attention(x, x, x, mask)))
            return x + self.norm_2(self.dropout(self.feed_forward(x)))
        h = self.norm_1(x)
        x = x + self.dropout(self.attention(h, h, h, mask))
        return x + self.dropout(self.feed_forward(self.norm_2(x)))


@wrong("EncoderLayer", cause="the network's residual starts from the layer's input")
class EncoderLayer_104(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            h = self.norm_1(x)
            y = x + self.dropout(self.attention(h, h, h, mask))
            return x + self.dropout(self.feed_forward(self.norm_2(y)))
        y = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(y)))


@wrong("EncoderLayer", cause="norm_1 is used twice")
class EncoderLayer_105(Sublayers):
    def forward(self, x, mask=None):
        for sublayer in (lambda h: self.attention(h, h, h, mask), self.feed_forward):
            if self.pre_norm:
                x = x + self.dropout(sublayer(self.norm_1(x)))
            else:
                x = self.norm_1(x + self.dropout(sublayer(x)))
        return x


@wrong("EncoderLayer", cause="dropout on the sum in the post-norm layer", kind="state")
class EncoderLayer_106(Sublayers):
    def forward(self, x, mask=None):
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(self.dropout(x + self.attention(x, x, x, mask)))
        return self.norm_2(self.dropout(x + self.feed_forward(x)))


# --- DecoderLayer ----------------------------------------------------------------------------


class _Decoder(Sublayers):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, pre_norm=False, fused=False):
        super().__init__(d_model, n_heads, d_ff, dropout, pre_norm, fused, cross=True)


@wrong("DecoderLayer", cause="pre-norm: memory passes through the norm as well")
class DecoderLayer_101(_Decoder):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.shape[1], x.device), mask)
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            h, m = self.norm_2(x), self.norm_2(memory)
            x = x + self.dropout(self.cross_attention(h, m, m, memory_mask))
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        x = self.norm_2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


@wrong("DecoderLayer", cause="no causal mask if a target mask is given")
class DecoderLayer_102(_Decoder):
    def forward(self, x, memory, mask=None, memory_mask=None):
        if mask is None:
            mask = causal_mask(x.shape[1], x.device)
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            x = x + self.dropout(self.cross_attention(self.norm_2(x), memory, memory, memory_mask))
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        x = self.norm_2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


@wrong("DecoderLayer", cause="keys from memory, but values from the stream", kind="crash")
class DecoderLayer_103(_Decoder):
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


@wrong("DecoderLayer", cause="memory_mask is not passed on")
class DecoderLayer_104(_Decoder):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(mask, causal_mask(x.shape[1], x.device))
        steps = (
            (self.norm_1, lambda h: self.attention(h, h, h, mask)),
            (self.norm_2, lambda h: self.cross_attention(h, memory, memory)),
            (self.norm_3, self.feed_forward),
        )
        for norm, run in steps:
            x = x + self.dropout(run(norm(x))) if self.pre_norm else norm(x + self.dropout(run(x)))
        return x


@wrong("DecoderLayer", cause="cross-attention with norm_3, the network with norm_2")
class DecoderLayer_105(_Decoder):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.size(1), x.device), mask)
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            x = x + self.dropout(self.cross_attention(self.norm_3(x), memory, memory, memory_mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        x = self.norm_3(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@wrong("DecoderLayer", cause="self-attention's keys come from what is not normalised (pre-norm)")
class DecoderLayer_106(_Decoder):
    def forward(self, x, memory, mask=None, memory_mask=None):
        mask = combine_masks(causal_mask(x.size(1), x.device), mask)
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, x, h, mask))
            x = x + self.dropout(self.cross_attention(self.norm_2(x), memory, memory, memory_mask))
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        x = self.norm_2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))
