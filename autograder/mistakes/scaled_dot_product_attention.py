"""Wrong and right answers to the exercises of lesson 05."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from autograder.checking.toolbox.registry import alternative, careless, mistake


def _pair_statistics(products):
    return products.mean(), products.var(correction=0)


@alternative("dot_product_statistics")
def with_einsum_and_var(q, k):
    return _pair_statistics(torch.einsum("nd,nd->n", q, k))


@alternative("dot_product_statistics")
def in_a_loop(q, k):
    products = [torch.dot(a, b) for a, b in zip(q, k, strict=True)]
    mean = sum(products) / len(products)
    return mean, sum(x * x for x in products) / len(products) - mean**2


@careless("dot_product_statistics")
def collects_in_a_new_tensor(q, k):
    products = torch.zeros(len(q))
    for i in range(len(q)):
        products[i] = q[i] @ k[i]
    return _pair_statistics(products)


@careless("dot_product_statistics")
def in_single_precision(q, k):
    return _pair_statistics((q.float() * k.float()).sum(1))


@careless("dot_product_statistics")
def multiplies_in_place(q, k):
    q *= k
    return _pair_statistics(q.sum(1))


@alternative("softmax_gradient_norm")
def in_closed_form(scores):
    p = torch.softmax(scores, -1)
    squares = p.square().sum(-1)
    return (squares - 2 * p.pow(3).sum(-1) + squares.square()).clamp(min=0).sqrt()


@alternative("softmax_gradient_norm")
def row_after_row_with_autograd(scores):
    rows = scores.reshape(-1, scores.shape[-1])
    soft = [
        torch.autograd.functional.jacobian(lambda row: torch.softmax(row, 0), row).norm()
        for row in rows
    ]
    return torch.stack(soft).reshape(scores.shape[:-1])


@careless("softmax_gradient_norm")
def row_after_row(scores):
    rows = scores.reshape(-1, scores.shape[-1])
    norms = torch.zeros(len(rows))
    for i, p in enumerate(rows.softmax(-1)):
        norms[i] = (torch.diag(p) - torch.outer(p, p)).norm()
    return norms.reshape(scores.shape[:-1])


@careless("softmax_gradient_norm")
def multiplies_an_identity(scores):
    p = torch.softmax(scores, -1)
    diagonal = torch.eye(scores.shape[-1]) * p[..., None]
    return torch.linalg.matrix_norm(diagonal - p[..., :, None] * p[..., None, :])


def _attention(q, k, v, mask, return_weights, scale=None, dim=-1, fill=-math.inf):
    scores = torch.einsum("...qd,...kd->...qk", q, k)
    scores = scores * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, fill)
    weights = torch.softmax(scores, dim)
    return (weights @ v, weights) if return_weights else weights @ v


@mistake(
    "scaled_dot_product_attention",
    hint="The scores are divided by √d_v, the length of a value. How many terms has one dot "
    "product?",
    earns=("with a mask and return_weights",),
)
def almost_right(q, k, v, mask=None, return_weights=False):
    length = v.size(-1)
    hidden = torch.zeros(()) if mask is None else torch.where(mask, 0.0, -math.inf)
    table = torch.einsum("...id,...jd->...ij", q, k) * length**-0.5 + hidden
    shares = table.softmax(-1)
    result = torch.einsum("...ij,...jd->...id", shares, v)
    return (result, shares) if return_weights else result


@alternative("scaled_dot_product_attention")
def scales_the_queries(q, k, v, mask=None, return_weights=False):
    scores = torch.matmul(q / q.shape[-1] ** 0.5, k.mT)
    if mask is not None:
        scores = torch.where(mask, scores, torch.full_like(scores, -math.inf))
    weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
    context = torch.einsum("...qk,...kd->...qd", weights, v)
    return [context, weights] if return_weights else context


@alternative("scaled_dot_product_attention")
def with_an_added_mask(q, k, v, mask=None, return_weights=False):
    scores = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / math.sqrt(k.size(-1))
    if mask is not None:
        forbidden = mask.logical_not()
        scores = scores + q.new_zeros(mask.shape).masked_fill(forbidden, -math.inf)
    exponentials = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = exponentials / exponentials.sum(-1, keepdim=True)
    return (weights @ v, weights) if return_weights else weights @ v


@alternative("scaled_dot_product_attention")
def asks_pytorch(q, k, v, mask=None, return_weights=False):
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return (context, _attention(q, k, v, mask, True)[1]) if return_weights else context


@careless("scaled_dot_product_attention")
def fills_on_the_cpu(q, k, v, mask=None, return_weights=False):
    if mask is not None:
        forbidden = torch.zeros(mask.shape)
        forbidden[~mask] = -math.inf
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores if mask is None else scores + forbidden, -1)
    return (weights @ v, weights) if return_weights else weights @ v


@careless("scaled_dot_product_attention")
def in_half_the_precision(q, k, v, mask=None, return_weights=False):
    return _attention(q.float(), k.float(), v.float(), mask, return_weights)


@careless("scaled_dot_product_attention")
def attends_in_numpy(q, k, v, mask=None, return_weights=False):
    q, k, v = (torch.from_numpy(tensor.numpy()) for tensor in (q, k, v))
    return _attention(q, k, v, mask, return_weights)


@careless("scaled_dot_product_attention")
def scales_the_queries_in_place(q, k, v, mask=None, return_weights=False):
    with torch.no_grad():
        q /= math.sqrt(q.shape[-1])
    return _attention(q, k, v, mask, return_weights, scale=1)


class _SelfHead(nn.Module):
    """A right head; a mistake overrides what it gets wrong."""

    bias = False

    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head, bias=self.bias)
        self.W_k = nn.Linear(d_model, d_head, bias=self.bias)
        self.W_v = nn.Linear(d_model, d_head, bias=self.bias)

    def qkv(self, x):
        return self.W_q(x), self.W_k(x), self.W_v(x)

    def attend(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def forward(self, x, mask=None):
        return self.attend(*self.qkv(x), mask)


@alternative("SelfAttentionHead")
class WritesTheEquation(_SelfHead):
    def attend(self, q, k, v, mask):
        return _attention(q, k, v, mask, False)


@alternative("SelfAttentionHead")
class PositionAfterPosition(_SelfHead):
    def forward(self, x, mask=None):
        q, k, v = self.qkv(x)
        rows = []
        for i in range(x.shape[1]):
            scores = (k * q[:, i : i + 1]).sum(-1) / q.shape[-1] ** 0.5
            if mask is not None:
                allowed = mask.expand(x.shape[0], -1, -1)[:, i]
                scores = scores.masked_fill(~allowed, -math.inf)
            rows.append((torch.softmax(scores, -1).unsqueeze(-1) * v).sum(1))
        return torch.stack(rows, 1)


def _query_by_query(q, k, v, mask):
    """The context in a tensor that is made on the CPU, whatever the device of the queries."""
    context = torch.zeros(q.shape, dtype=q.dtype)
    mask = None if mask is None else mask.expand(*q.shape[:2], k.shape[1])
    for i in range(q.shape[1]):
        seen = None if mask is None else mask[:, i : i + 1]
        context[:, i : i + 1] = F.scaled_dot_product_attention(q[:, i : i + 1], k, v, seen)
    return context


def _with_a_table_on_the_cpu(q, k, v, mask):
    added = torch.zeros(q.shape[1], k.shape[1])
    added = added if mask is None else torch.where(mask, added, -math.inf)
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]) + added, -1) @ v


@careless("SelfAttentionHead")
class AttendsQueryByQuery(_SelfHead):
    def attend(self, q, k, v, mask):
        return _query_by_query(q, k, v, mask)


@careless("SelfAttentionHead")
class AddsATable(_SelfHead):
    def attend(self, q, k, v, mask):
        return _with_a_table_on_the_cpu(q, k, v, mask)


@alternative("attention_multiplications")
def pairs_times_widths(T_q, T_k, d_k, d_v):
    return (d_k + d_v) * T_k * T_q


@alternative("attention_multiplications")
def counts_the_shapes(T_q, T_k, d_k, d_v):
    return sum(math.prod(shape) for shape in ((T_q, d_k, T_k), (T_q, T_k, d_v)))


def _backward(q, k, v, weights, grad_context, scale=None, shared=True, dim=-1):
    grad_weights = grad_context @ v.mT
    total = (weights * grad_weights).sum(dim, keepdim=True) if shared else 0
    grad_scores = weights * (grad_weights - total)
    grad_scores = grad_scores * (q.shape[-1] ** -0.5 if scale is None else scale)
    return grad_scores @ k, grad_scores.mT @ q, weights.mT @ grad_context


@alternative("attention_backward")
def lets_autograd_do_it(q, k, v, weights, grad_context):
    with torch.enable_grad():
        leaves = [tensor.detach().clone().requires_grad_() for tensor in (q, k, v)]
        return torch.autograd.grad(F.scaled_dot_product_attention(*leaves), leaves, grad_context)


@alternative("attention_backward")
def through_the_jacobian(q, k, v, weights, grad_context):
    jacobian = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)
    grad_weights = torch.einsum("...qv,...kv->...qk", grad_context, v)
    grad_scores = torch.einsum("...qij,...qj->...qi", jacobian, grad_weights)
    grad_scores = grad_scores / math.sqrt(k.shape[-1])
    grad_k = torch.einsum("...qk,...qd->...kd", grad_scores, q)
    grad_v = torch.einsum("...qk,...qv->...kv", weights, grad_context)
    return [grad_scores @ k, grad_k, grad_v]


@careless("attention_backward")
def fills_new_gradients(q, k, v, weights, grad_context):
    grads = torch.zeros(q.shape), torch.zeros(k.shape), torch.zeros(v.shape)
    for grad, right in zip(grads, _backward(q, k, v, weights, grad_context), strict=True):
        grad += right
    return grads


@careless("attention_backward")
def backward_in_place(q, k, v, weights, grad_context):
    grad_v = weights.mT @ grad_context
    grad_weights = grad_context @ v.mT
    grad_weights -= (weights * grad_weights).sum(-1, keepdim=True)
    weights *= grad_weights / math.sqrt(q.shape[-1])
    return weights @ k, weights.mT @ q, grad_v


_EVEN = "a square, or a norm, has no sign"
_READ = "the numbers are read, not trained: nothing is differentiated"
_ONE_LENGTH = "queries and keys have one length, or there is no dot product"
EQUIVALENT = {
    "dot_product_statistics: whose result is cut off from the gradient: "
    "return (mean.detach(), (products - mean).square().mean().detach())": _READ,
    "dot_product_statistics: with the two sides of one `-` exchanged: "
    "return (mean, (mean - products).square().mean())": _EVEN,
    "softmax_gradient_norm: whose result is cut off from the gradient: "
    "return torch.linalg.matrix_norm(torch.diag_embed(weights) - outer).detach()": _READ,
    "softmax_gradient_norm: with the two sides of one `-` exchanged: "
    "return torch.linalg.matrix_norm(outer - torch.diag_embed(weights))": _EVEN,
    "scaled_dot_product_attention: with `k` once where `q` belongs: "
    "scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])": _ONE_LENGTH,
    "attention_backward: with `k` once where `q` belongs: "
    "grad_scores = weights * (grad_weights - shared) / math.sqrt(k.shape[-1])": _ONE_LENGTH,
    "attention_backward: whose result is cut off from the gradient: return ((grad_scores @ k)"
    ".detach(), (grad_scores.transpose(-2, -1) @ q).detach(), grad_v.detach())": (
        "the results are gradients already, and are not differentiated again"
    ),
}


@mistake(
    "break_scaled_dot_product_attention",
    hint="The values are as long as the queries here, so √d_v is √d_k.",
    where=lambda q, k, v, *rest: q.shape[-1] == v.shape[-1],
)
def with_all_vectors_equally_long():
    return torch.randn(5, 6), torch.randn(7, 6), torch.randn(7, 6)


@mistake(
    "break_scaled_dot_product_attention",
    hint="With one key its weight is 1, whatever the score.",
    where=lambda q, k, v, *rest: k.shape[-2] == 1,
)
def with_one_key():
    return torch.randn(5, 6), torch.randn(1, 6), torch.randn(1, 4)


@mistake(
    "break_scaled_dot_product_attention",
    hint="All scores of a query are equal here, and stay equal whatever they are divided by.",
    where=lambda q, k, v, *rest: (q @ k.mT == (q @ k.mT)[..., :1]).all().item(),
)
def with_equal_scores():
    return torch.randn(5, 6), torch.ones(7, 6), torch.randn(7, 4)


@mistake(
    "break_scaled_dot_product_attention",
    hint="All keys have the same value here, so every average is this value.",
    where=lambda q, k, v, *rest: (v == v[..., :1, :]).all().item(),
)
def with_equal_values():
    return torch.randn(5, 6), torch.randn(7, 6), torch.ones(7, 4)


@mistake(
    "break_scaled_dot_product_attention",
    hint="The best score of each query is so far ahead that its weight is 1 with either scale.",
    where=lambda q, k, v, *rest: _saturated(q, k, q.shape[-1]) and _saturated(q, k, v.shape[-1]),
)
def with_saturated_scores():
    return torch.eye(5) * 1e4, torch.eye(5), torch.randn(5, 3)


def _saturated(q, k, d):
    largest = (q @ k.mT / math.sqrt(d)).softmax(-1).amax(-1)
    return (1 - largest < 1e-6).all().item()


@alternative("break_scaled_dot_product_attention")
def with_short_values_and_heads():
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 2, 3, 5, 16, generator=generator)
    return 2 * q, 2 * k, torch.randn(2, 3, 5, 1, generator=generator)


@alternative("break_scaled_dot_product_attention")
def with_long_values_in_float64():
    k = torch.arange(8.0, dtype=torch.float64).view(4, 2)
    return k[:1] + 1, k, torch.eye(4, 50, dtype=torch.float64)
