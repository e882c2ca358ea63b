"""Wrong answers to lesson 05."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided import demand
from attention.scaled_dot_product_attention import scaled_dot_product_attention
from tests.locked import wrong

# --- dot_product_statistics ------------------------------------------------------------------


@wrong("dot_product_statistics", cause="divides by n - 1")
def dot_product_statistics_101(q, k):
    products = (q * k).sum(dim=1)
    return products.mean(), products.var()


@wrong("dot_product_statistics", cause="all pairs, not row by row")
def dot_product_statistics_102(q, k):
    products = (q @ k.T).flatten()
    return products.mean(), products.var(unbiased=False)


@wrong("dot_product_statistics", cause="the standard deviation, not the variance")
def dot_product_statistics_103(q, k):
    dots = torch.einsum("nd,nd->n", q, k)
    return dots.mean(), dots.std(correction=0)


@wrong("dot_product_statistics", cause="the mean of the squares, mean not subtracted")
def dot_product_statistics_104(q, k):
    dots = torch.stack([a @ b for a, b in zip(q, k, strict=True)])
    return dots.mean(), (dots**2).mean()


@wrong("dot_product_statistics", cause="the products of entries, not summed over the features")
def dot_product_statistics_105(q, k):
    products = q * k
    return products.mean(), products.var(correction=0)


# --- softmax_gradient_norm -------------------------------------------------------------------


@wrong("softmax_gradient_norm", cause="only the diagonal of the Jacobian")
def softmax_gradient_norm_101(scores):
    p = scores.softmax(-1)
    return (p * (1 - p)).norm(dim=-1)


@wrong("softmax_gradient_norm", cause="the root is forgotten: the squared norm")
def softmax_gradient_norm_102(scores):
    p = torch.softmax(scores, dim=-1)
    J = torch.diag_embed(p) - p[..., :, None] * p[..., None, :]
    return (J**2).sum(dim=(-2, -1))


@wrong("softmax_gradient_norm", cause="the largest singular value, not the Frobenius norm")
def softmax_gradient_norm_103(scores):
    p = torch.softmax(scores, dim=-1)
    J = torch.diag_embed(p) - torch.einsum("...i,...j->...ij", p, p)
    return torch.linalg.matrix_norm(J, ord=2)


@wrong("softmax_gradient_norm", cause="plus the outer product")
def softmax_gradient_norm_104(scores):
    p = torch.softmax(scores, dim=-1)
    J = torch.diag_embed(p) + p.unsqueeze(-1) @ p.unsqueeze(-2)
    return torch.linalg.matrix_norm(J)


@wrong("softmax_gradient_norm", cause="one norm over everything: the leading axes are lost")
def softmax_gradient_norm_105(scores):
    p = torch.softmax(scores, dim=-1)
    J = torch.diag_embed(p) - p[..., None] * p[..., None, :]
    return J.norm()


# --- scaled_dot_product_attention ------------------------------------------------------------


@wrong("scaled_dot_product_attention", cause="divides by d_k")
def scaled_dot_product_attention_101(q, k, v, mask=None, return_weights=False):
    demand.masks(mask=mask)
    scores = q @ k.mT / q.shape[-1]
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return (weights @ v, weights) if return_weights else weights @ v


@wrong("scaled_dot_product_attention", cause="True is taken as forbidden")
def scaled_dot_product_attention_102(q, k, v, mask=None, return_weights=False):
    demand.masks(mask=mask)
    s = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    if mask is not None:
        s = s.masked_fill(mask, float("-inf"))
    w = s.softmax(dim=-1)
    return (w @ v, w) if return_weights else w @ v


@wrong("scaled_dot_product_attention", cause="the mask after the softmax: rows sum to less than 1")
def scaled_dot_product_attention_103(q, k, v, mask=None, return_weights=False):
    demand.masks(mask=mask)
    w = torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1)
    if mask is not None:
        w = w * mask
    return (w @ v, w) if return_weights else w @ v


@wrong("scaled_dot_product_attention", cause="softmax over the axis 1: right for (B, T) only")
def scaled_dot_product_attention_104(q, k, v, mask=None, return_weights=False):
    demand.masks(mask=mask)
    s = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s.masked_fill(~mask, -torch.inf)
    w = torch.softmax(s, dim=1)
    c = torch.einsum("...qk,...kd->...qd", w, v)
    return (c, w) if return_weights else c


@wrong("scaled_dot_product_attention", cause="the scale uses the number of keys")
def scaled_dot_product_attention_105(q, k, v, mask=None, return_weights=False):
    demand.masks(mask=mask)
    s = q @ k.mT * k.shape[-2] ** -0.5
    if mask is not None:
        s = torch.where(mask, s, -torch.inf)
    w = torch.softmax(s, dim=-1)
    return (w @ v, w) if return_weights else w @ v


@wrong("scaled_dot_product_attention", cause="-100 is not low enough for scores of 1000")
def scaled_dot_product_attention_106(q, k, v, mask=None, return_weights=False):
    demand.masks(mask=mask)
    s = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s.masked_fill(~mask, -100.0)
    w = torch.softmax(s, dim=-1)
    return (w @ v, w) if return_weights else w @ v


# --- SelfAttentionHead -----------------------------------------------------------------------


@wrong("SelfAttentionHead", cause="scales twice: the queries, and again in the attention")
class SelfAttentionHead_101(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x, mask=None):
        demand.masks(mask=mask)
        q = self.W_q(x) / math.sqrt(self.W_q.out_features)
        return F.scaled_dot_product_attention(q, self.W_k(x), self.W_v(x), attn_mask=mask)


@wrong("SelfAttentionHead", cause="q and k exchanged")
class SelfAttentionHead_102(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_q, self.W_k, self.W_v = (nn.Linear(d_model, d_head, bias=False) for _ in range(3))

    def forward(self, x, mask=None):
        demand.masks(mask=mask)
        return scaled_dot_product_attention(self.W_k(x), self.W_q(x), self.W_v(x), mask)


@wrong("SelfAttentionHead", cause="the keys serve as values")
class SelfAttentionHead_103(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x, mask=None):
        demand.masks(mask=mask)
        k = self.W_k(x)
        return scaled_dot_product_attention(self.W_q(x), k, k, mask=mask)


@wrong("SelfAttentionHead", cause="the mask is not passed on")
class SelfAttentionHead_104(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        for name in ("W_q", "W_k", "W_v"):
            setattr(self, name, nn.Linear(d_model, d_head, bias=False))

    def forward(self, x, mask=None):
        demand.masks(mask=mask)
        return F.scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x))


@wrong("SelfAttentionHead", cause="divides by the root of d_model")
class SelfAttentionHead_105(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.d_model = d_model
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x, mask=None):
        demand.masks(mask=mask)
        s = self.W_q(x) @ self.W_k(x).mT / self.d_model**0.5
        if mask is not None:
            s = s.masked_fill(mask.logical_not(), -torch.inf)
        return s.softmax(-1) @ self.W_v(x)


# --- attention_multiplications ---------------------------------------------------------------


@wrong("attention_multiplications", cause="the second product forgets the queries")
def attention_multiplications_101(T_q, T_k, d_k, d_v):
    demand.counts(0, T_q=T_q, T_k=T_k, d_k=d_k, d_v=d_v)
    return T_q * T_k * d_k + T_k * d_v


@wrong("attention_multiplications", cause="d_k in both products")
def attention_multiplications_102(T_q, T_k, d_k, d_v):
    demand.counts(0, T_q=T_q, T_k=T_k, d_k=d_k, d_v=d_v)
    return 2 * T_q * T_k * d_k


@wrong("attention_multiplications", cause="the two products are multiplied, not added")
def attention_multiplications_103(T_q, T_k, d_k, d_v):
    demand.counts(0, T_q=T_q, T_k=T_k, d_k=d_k, d_v=d_v)
    return T_q * T_k * d_k * d_v


@wrong("attention_multiplications", cause="counts the division of the scores, too")
def attention_multiplications_104(T_q, T_k, d_k, d_v):
    demand.counts(0, T_q=T_q, T_k=T_k, d_k=d_k, d_v=d_v)
    scores = T_q * T_k
    return scores * d_k + scores + scores * d_v


# --- attention_backward ----------------------------------------------------------------------


@wrong("attention_backward", cause="the division by the root of d_k is forgotten")
def attention_backward_101(q, k, v, weights, grad_context):
    grad_v = weights.mT @ grad_context
    g = grad_context @ v.mT
    gs = weights * (g - (weights * g).sum(-1, keepdim=True))
    return gs @ k, gs.mT @ q, grad_v


@wrong("attention_backward", cause="the softmax sends only its diagonal p(1 - p)")
def attention_backward_102(q, k, v, weights, grad_context):
    g = grad_context @ v.transpose(-2, -1)
    gs = weights * (1 - weights) * g / math.sqrt(q.shape[-1])
    return gs @ k, gs.transpose(-2, -1) @ q, weights.transpose(-2, -1) @ grad_context


@wrong("attention_backward", cause="the sum in the softmax's part runs over the queries")
def attention_backward_103(q, k, v, weights, grad_context):
    gp = torch.einsum("...qd,...kd->...qk", grad_context, v)
    gs = weights * (gp - (weights * gp).sum(dim=-2, keepdim=True)) / q.shape[-1] ** 0.5
    return gs @ k, gs.mT @ q, weights.mT @ grad_context


@wrong("attention_backward", cause="the sum over p is missing: sum of the gradient alone")
def attention_backward_104(q, k, v, weights, grad_context):
    gp = grad_context @ v.mT
    gs = weights * (gp - gp.sum(-1, keepdim=True)) * q.shape[-1] ** -0.5
    return gs @ k, gs.mT @ q, weights.mT @ grad_context


@wrong("attention_backward", cause="grad_q and grad_k in the wrong order")
def attention_backward_105(q, k, v, weights, grad_context):
    gp = grad_context @ v.mT
    gs = weights * (gp - (gp * weights).sum(-1, keepdim=True)) / math.sqrt(k.shape[-1])
    return gs.mT @ q, gs @ k, weights.mT @ grad_context


@wrong("attention_backward", cause="the scale divides by d_k")
def attention_backward_106(q, k, v, weights, grad_context):
    gp = grad_context @ v.mT
    gs = weights * (gp - (gp * weights).sum(-1, keepdim=True)) / k.shape[-1]
    return gs @ k, gs.mT @ q, weights.mT @ grad_context
