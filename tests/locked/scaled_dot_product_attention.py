"""Answers to lesson 05 that were written without a look at its checks."""

import math
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from tests.locked import right, wrong

# --- dot_product_statistics ------------------------------------------------------------------


@wrong("dot_product_statistics", cause="returns (variance, mean): swapped", kind="value")
def dot_product_statistics_5(q, k):
    products = (q * k).sum(dim=1)
    return torch.var_mean(products, correction=0)


@right("dot_product_statistics", how="einsum, and var with correction=0")
def dot_product_statistics_8(q, k):
    products = torch.einsum("nd,nd->n", q, k)
    return products.mean(), products.var(correction=0)


# --- softmax_gradient_norm -------------------------------------------------------------------


@wrong(
    "softmax_gradient_norm", cause="the spectral norm instead of the Frobenius norm", kind="value"
)
def softmax_gradient_norm_5(scores):
    p = torch.softmax(scores, dim=-1)
    J = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
    return torch.linalg.matrix_norm(J, ord=2)


@wrong("softmax_gradient_norm", cause="works only for scores with exactly two axes", kind="size")
def softmax_gradient_norm_7(scores):
    norms = []
    for row in scores:
        p = torch.softmax(row, dim=0)
        norms.append(torch.linalg.matrix_norm(torch.diag(p) - torch.outer(p, p)))
    return torch.stack(norms)


@wrong(
    "softmax_gradient_norm",
    cause="exponentials without a shift: NaN for large scores",
    kind="extreme",
)
def softmax_gradient_norm_8(scores):
    powers = torch.exp(scores)
    p = powers / powers.sum(dim=-1, keepdim=True)
    J = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
    return torch.linalg.matrix_norm(J)


@right("softmax_gradient_norm", how="the two cases of the Jacobian chosen by where")
def softmax_gradient_norm_9(scores):
    p = F.softmax(scores, -1)
    same = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
    J = torch.where(same, (p * (1 - p))[..., None], -p[..., :, None] * p[..., None, :])
    return torch.linalg.vector_norm(J, dim=(-2, -1))


@right("softmax_gradient_norm", how="torch.func.jacrev for every row")
def softmax_gradient_norm_10(scores):
    rows = scores.reshape(-1, scores.shape[-1])
    J = torch.func.vmap(torch.func.jacrev(lambda row: row.softmax(0)))(rows)
    return torch.linalg.matrix_norm(J, ord="fro").reshape(scores.shape[:-1])


# --- scaled_dot_product_attention ------------------------------------------------------------


@wrong(
    "scaled_dot_product_attention",
    cause="always returns the pair, also without return_weights",
    kind="type",
)
def scaled_dot_product_attention_9(q, k, v, mask=None, return_weights=False):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@wrong("scaled_dot_product_attention", cause="divides the caller's q in place", kind="state")
def scaled_dot_product_attention_10(q, k, v, mask=None, return_weights=False):
    q /= math.sqrt(q.shape[-1])
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    context = weights @ v
    return (context, weights) if return_weights else context


@wrong(
    "scaled_dot_product_attention",
    cause="`if mask:` asks a whole tensor for one truth value, which raises",
    kind="crash",
)
def scaled_dot_product_attention_11(q, k, v, mask=None, return_weights=False):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    context = weights @ v
    return (context, weights) if return_weights else context


@right("scaled_dot_product_attention", how="einsum, scaled queries, where")
def scaled_dot_product_attention_12(q, k, v, mask=None, return_weights=False):
    scores = torch.einsum("...qd,...kd->...qk", q * k.shape[-1] ** -0.5, k)
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    weights = F.softmax(scores, -1)
    context = torch.einsum("...qk,...kd->...qd", weights, v)
    if return_weights:
        return context, weights
    return context


@right(
    "scaled_dot_product_attention", how="divides at the end: exponentials, average, then the sum"
)
def scaled_dot_product_attention_13(q, k, v, mask=None, return_weights=False):
    root = q.shape[-1] ** 0.25
    scores = (q / root) @ (k / root).mT
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    total = powers.sum(dim=-1, keepdim=True)
    context = (powers @ v) / total
    if not return_weights:
        return context
    return [context, powers / total]


# --- SelfAttentionHead -----------------------------------------------------------------------


@wrong("SelfAttentionHead", cause="scales twice: by hand and inside the function", kind="value")
class SelfAttentionHead_6(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x, mask=None):
        q = self.W_q(x) / math.sqrt(self.W_q.out_features)
        return F.scaled_dot_product_attention(q, self.W_k(x), self.W_v(x), attn_mask=mask)


@right("SelfAttentionHead", how="partial for the layers, attention by hand")
class SelfAttentionHead_9(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        layer = partial(nn.Linear, d_model, d_head, bias=False)
        self.W_v, self.W_k, self.W_q = layer(), layer(), layer()

    def forward(self, x, mask=None):
        q, k, v = (layer(x) for layer in (self.W_q, self.W_k, self.W_v))
        scores = torch.einsum("bqd,bkd->bqk", q, k) / k.shape[-1] ** 0.5
        if mask is not None:
            scores = torch.where(mask, scores, -math.inf)
        return torch.softmax(scores, dim=-1) @ v


# --- attention_multiplications ---------------------------------------------------------------


@wrong("attention_multiplications", cause="takes d_v to be d_k", kind="size")
def attention_multiplications_3(T_q, T_k, d_k, d_v):
    return 2 * T_q * T_k * d_k


@wrong(
    "attention_multiplications",
    cause="forgets the sum over the keys in the second product",
    kind="value",
)
def attention_multiplications_4(T_q, T_k, d_k, d_v):
    return T_q * T_k * d_k + T_q * d_v


@wrong("attention_multiplications", cause="adds the divisions of the scale", kind="value")
def attention_multiplications_5(T_q, T_k, d_k, d_v):
    return T_q * T_k * (d_k + d_v) + T_q * T_k


@right("attention_multiplications", how="a helper that counts one matrix product, summed over both")
def attention_multiplications_6(T_q, T_k, d_k, d_v):
    return sum(math.prod(sizes) for sizes in ((T_q, d_k, T_k), (T_q, T_k, d_v)))


# --- attention_backward ----------------------------------------------------------------------


@wrong(
    "attention_backward",
    cause="only the diagonal of the softmax's Jacobian: p (1 − p)",
    kind="value",
)
def attention_backward_4(q, k, v, weights, grad_context):
    grad_v = weights.mT @ grad_context
    grad_weights = grad_context @ v.mT
    grad_scores = weights * (1 - weights) * grad_weights / math.sqrt(q.shape[-1])
    return grad_scores @ k, grad_scores.mT @ q, grad_v


@wrong("attention_backward", cause="the sum over the keys loses its axis", kind="crash")
def attention_backward_5(q, k, v, weights, grad_context):
    grad_v = weights.mT @ grad_context
    grad_weights = grad_context @ v.mT
    shared = (weights * grad_weights).sum(dim=-1)
    grad_scores = weights * (grad_weights - shared) / math.sqrt(q.shape[-1])
    return grad_scores @ k, grad_scores.mT @ q, grad_v


@wrong("attention_backward", cause=".T works for matrices only, not with leading axes", kind="size")
def attention_backward_7(q, k, v, weights, grad_context):
    grad_v = weights.T @ grad_context
    grad_weights = grad_context @ v.T
    shared = (weights * grad_weights).sum(dim=-1, keepdim=True)
    grad_scores = weights * (grad_weights - shared) / math.sqrt(q.shape[-1])
    return grad_scores @ k, grad_scores.T @ q, grad_v


@right("attention_backward", how="the whole Jacobian of every row, and einsum")
def attention_backward_9(q, k, v, weights, grad_context):
    J = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    grad_weights = torch.einsum("...qd,...kd->...qk", grad_context, v)
    grad_scores = torch.einsum("...qij,...qj->...qi", J, grad_weights) * k.shape[-1] ** -0.5
    return (
        torch.einsum("...qk,...kd->...qd", grad_scores, k),
        torch.einsum("...qk,...qd->...kd", grad_scores, q),
        torch.einsum("...qk,...qd->...kd", weights, grad_context),
    )


@right("attention_backward", how="subtracts the product of gradient and context, scales q and k")
def attention_backward_10(q, k, v, weights, grad_context):
    scale = math.sqrt(q.size(-1))
    context = weights @ v
    shared = (grad_context * context).sum(-1).unsqueeze(-1)
    grad_scores = weights * (grad_context @ v.transpose(-1, -2) - shared)
    grad_q = grad_scores @ (k / scale)
    grad_k = grad_scores.transpose(-1, -2) @ (q / scale)
    return [grad_q, grad_k, weights.transpose(-1, -2) @ grad_context]


# Those who ask for it refuse what the given lines of the exercise refuse.
