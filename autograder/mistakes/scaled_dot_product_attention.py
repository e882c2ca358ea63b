"""Wrong and right answers to the exercises of lesson 05."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from autograder.checking.toolbox.registry import alternative, careless, mistake


def _pair_statistics(products):
    return products.mean(), products.var(correction=0)


@mistake(
    "dot_product_statistics",
    hint="The second number is the standard deviation. Its square is the variance.",
)
def returns_the_standard_deviation(q, k):
    products = (q * k).sum(1)
    return products.mean(), products.std(correction=0)


@mistake(
    "dot_product_statistics",
    hint="This is the variance divided by n - 1, which torch.var takes by default. Divide by n.",
)
def divides_by_n_minus_one(q, k):
    products = (q * k).sum(1)
    return products.mean(), products.var()


@mistake(
    "dot_product_statistics",
    hint="Every q is multiplied with every k. Only row i with row i makes a pair.",
)
def takes_all_pairs(q, k):
    return _pair_statistics(q @ k.T)


@mistake(
    "dot_product_statistics",
    hint="The sum runs over the n pairs. A dot product sums over the d_k entries of one pair.",
)
def sums_over_the_pairs(q, k):
    return _pair_statistics((q * k).sum(0))


@mistake(
    "dot_product_statistics",
    hint="The entries of a pair are averaged. A dot product adds them up.",
)
def averages_the_entries(q, k):
    return _pair_statistics((q * k).mean(1))


@mistake(
    "dot_product_statistics",
    hint="This is the mean of the squares. The variance measures from the mean, not from 0.",
)
def squares_without_the_mean(q, k):
    products = (q * k).sum(1)
    return products.mean(), products.square().mean()


@alternative("dot_product_statistics")
def with_einsum_and_var(q, k):
    return _pair_statistics(torch.einsum("nd,nd->n", q, k))


@alternative("dot_product_statistics")
def in_a_loop(q, k):
    products = [torch.dot(a, b) for a, b in zip(q, k, strict=True)]
    mean = sum(products) / len(products)
    return mean, sum(x * x for x in products) / len(products) - mean**2


@mistake(
    "dot_product_statistics",
    hint="Both results should stay tensors, of shape (): item() makes plain numbers of them.",
)
def leaves_the_tensors(q, k):
    mean, variance = _pair_statistics((q * k).sum(1))
    return mean.item(), variance.item()


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


def _jacobian(scores, sign=-1):
    p = torch.softmax(scores, -1)
    return torch.diag_embed(p) + sign * p[..., :, None] * p[..., None, :]


@mistake(
    "softmax_gradient_norm",
    hint="The weights always sum to 1, so the gradient of their sum is 0. The Jacobian keeps one "
    "row for each weight.",
)
def differentiates_the_sum(scores):
    with torch.enable_grad():
        leaf = scores.detach().clone().requires_grad_()
        gradient = torch.autograd.grad(torch.softmax(leaf, -1).sum(), leaf)[0]
    return gradient.norm(dim=-1).round(decimals=12)


@mistake(
    "softmax_gradient_norm",
    hint="Only the diagonal, p(1 - p), is counted. Raising one score lowers all other weights.",
)
def keeps_the_diagonal(scores):
    p = torch.softmax(scores, -1)
    return (p * (1 - p)).norm(dim=-1)


@mistake(
    "softmax_gradient_norm",
    hint="The outer product is added. Raising one score lowers the other weights: which sign?",
)
def adds_the_outer_product(scores):
    return torch.linalg.matrix_norm(_jacobian(scores, sign=1))


@mistake(
    "softmax_gradient_norm",
    hint="This is the sum of the squares. The Frobenius norm is its square root.",
)
def forgets_the_root(scores):
    return _jacobian(scores).square().sum((-2, -1))


@mistake(
    "softmax_gradient_norm",
    hint="All rows together give one number. Every row of scores has a Jacobian and a norm.",
)
def gives_one_number(scores):
    return _jacobian(scores).norm()


@mistake(
    "softmax_gradient_norm",
    hint="This is the length of each row of the Jacobian. One more axis belongs to the norm.",
)
def norm_of_every_row(scores):
    return _jacobian(scores).norm(dim=-1)


@mistake(
    "softmax_gradient_norm",
    hint="The softmax runs along the first axis. The keys of a query stand along the last one.",
)
def softmax_along_the_first_axis(scores):
    p = torch.softmax(scores, 0)
    return torch.linalg.matrix_norm(torch.diag_embed(p) - p[..., :, None] * p[..., None, :])


@mistake(
    "softmax_gradient_norm",
    hint="The product of the weights with their transpose adds up over rows of scores. The outer "
    "product of each row with itself is (..., T_k, T_k).",
)
def multiplies_the_rows(scores):
    p = torch.softmax(scores, -1)
    return torch.linalg.matrix_norm(torch.diag_embed(p) - p @ p.mT)


@mistake(
    "softmax_gradient_norm",
    hint="torch.diag takes the diagonal out of a matrix. torch.diag_embed makes a matrix of each "
    "row.",
)
def takes_the_diagonal_out(scores):
    p = torch.softmax(scores, -1)
    return torch.linalg.matrix_norm(torch.diag(p) - p[..., :, None] * p[..., None, :])


@mistake(
    "softmax_gradient_norm",
    hint="The squares are averaged. The Frobenius norm is the root of their sum.",
)
def averages_the_squares(scores):
    return _jacobian(scores).square().mean((-2, -1)).sqrt()


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
    hint="There is no scale. The scores have standard deviation √d_k: what brings it to 1?",
    earns=("with a mask and return_weights",),
)
def no_scale(q, k, v, mask=None, return_weights=False):
    return _attention(q, k, v, mask, return_weights, scale=1)


@mistake(
    "scaled_dot_product_attention",
    hint="The scores are divided by d_k, their variance. The spread is the standard deviation.",
    earns=("with a mask and return_weights",),
)
def scale_by_d(q, k, v, mask=None, return_weights=False):
    return _attention(q, k, v, mask, return_weights, scale=1 / q.shape[-1])


@mistake(
    "scaled_dot_product_attention",
    hint="The scores are divided by √T_k, the number of keys. How many terms has one dot product?",
)
def scale_by_the_number_of_keys(q, k, v, mask=None, return_weights=False):
    return _attention(q, k, v, mask, return_weights, scale=k.shape[-2] ** -0.5)


@mistake(
    "scaled_dot_product_attention",
    hint="The scores are divided by √d_v, the length of a value. How many terms has one dot "
    "product?",
    earns=("with a mask and return_weights",),
)
def divides_by_the_root_of_d_v(q, k, v, mask=None, return_weights=False):
    length = v.size(-1)
    hidden = torch.zeros(()) if mask is None else torch.where(mask, 0.0, -math.inf)
    table = torch.einsum("...id,...jd->...ij", q, k) * length**-0.5 + hidden
    shares = table.softmax(-1)
    result = torch.einsum("...ij,...jd->...id", shares, v)
    return (result, shares) if return_weights else result


@mistake(
    "scaled_dot_product_attention",
    hint="The weights, not the scores, are divided by √d_k: they no longer sum to 1.",
)
def scales_after_softmax(q, k, v, mask=None, return_weights=False):
    context, weights = _attention(q, k, v, mask, True, scale=1)
    root = math.sqrt(q.shape[-1])
    return (context / root, weights / root) if return_weights else context / root


@mistake(
    "scaled_dot_product_attention",
    hint="The softmax runs over the queries: columns sum to 1. Each query shares out its own 1.",
)
def softmax_over_queries(q, k, v, mask=None, return_weights=False):
    return _attention(q, k, v, mask, return_weights, dim=-2)


@mistake(
    "scaled_dot_product_attention",
    hint="The mask is read the wrong way round. True means: may attend.",
    earns=("without a mask", "with leading axes"),
)
def mask_inverted(q, k, v, mask=None, return_weights=False):
    return _attention(q, k, v, None if mask is None else ~mask, return_weights)


@mistake(
    "scaled_dot_product_attention",
    hint="The mask multiplies the weights after the softmax. The forbidden keys have had their "
    "share by then, and what is left does not sum to 1.",
    earns=("without a mask", "with leading axes"),
)
def mask_multiplied_after_softmax(q, k, v, mask=None, return_weights=False):
    _, weights = _attention(q, k, v, None, True)
    weights = weights if mask is None else weights * mask
    return (weights @ v, weights) if return_weights else weights @ v


@mistake(
    "scaled_dot_product_attention",
    hint="Forbidden scores become 0, or nearly 0, where exp is 1: a weight like any other. Which "
    "score gives the weight 0?",
    earns=("without a mask", "with leading axes"),
)
def mask_fills_with_zero(q, k, v, mask=None, return_weights=False):
    return _attention(q, k, v, mask, return_weights, fill=0.0)


@mistake(
    "scaled_dot_product_attention",
    hint="Forbidden scores become a low number, and the others may be lower still. Only -inf is "
    "below all of them.",
    earns=("without a mask", "with leading axes"),
)
def mask_fills_with_minus_thirty(q, k, v, mask=None, return_weights=False):
    return _attention(q, k, v, mask, return_weights, fill=-30.0)


@mistake(
    "scaled_dot_product_attention",
    hint="The mask has no effect at all. (masked_fill returns a new tensor.)",
    earns=("without a mask", "with leading axes"),
)
def mask_ignored(q, k, v, mask=None, return_weights=False):
    return _attention(q, k, v, None, return_weights)


@mistake(
    "scaled_dot_product_attention",
    hint="q cannot be multiplied with k as it stands: the last two axes of k must change places, "
    "and only these. (.T reverses all axes.)",
    earns=("without a mask", "with a mask and return_weights"),
)
def reverses_all_axes(q, k, v, mask=None, return_weights=False):
    scores = q @ k.permute(*reversed(range(k.dim()))) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, -1)
    return (weights @ v, weights) if return_weights else weights @ v


@mistake(
    "scaled_dot_product_attention",
    hint="return_weights is not looked at. If it is True, return context and weights.",
    earns=("without a mask", "with leading axes"),
)
def never_returns_weights(q, k, v, mask=None, return_weights=False):
    return _attention(q, k, v, mask, False)


@mistake(
    "scaled_dot_product_attention",
    hint="The pair is in the wrong order: first the context, then the weights.",
    earns=("without a mask", "with leading axes"),
)
def returns_weights_first(q, k, v, mask=None, return_weights=False):
    result = _attention(q, k, v, mask, return_weights)
    return result[::-1] if return_weights else result


@mistake(
    "scaled_dot_product_attention",
    hint="The second result is made of scores. The weights come behind the softmax.",
)
def returns_the_scores(q, k, v, mask=None, return_weights=False):
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    context = torch.softmax(scores, -1) @ v
    return (context, scores) if return_weights else context


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


@mistake(
    "SelfAttentionHead",
    hint="Queries and keys are made by the same matrix, so the scores are symmetric: A scores B as "
    "B scores A. W_q and W_k are two layers.",
)
class SharesOneProjection(_SelfHead):
    def __init__(self, d_model, d_head):
        super().__init__(d_model, d_head)
        self.W_k = self.W_q


@mistake(
    "SelfAttentionHead",
    hint="W_k exists, but forward makes the keys with W_q.",
)
class UsesOneProjectionTwice(_SelfHead):
    def qkv(self, x):
        return self.W_q(x), self.W_q(x), self.W_v(x)


@mistake("SelfAttentionHead", hint="Queries and keys have changed places.")
class SwapsQueriesAndKeys(_SelfHead):
    def qkv(self, x):
        return self.W_k(x), self.W_q(x), self.W_v(x)


@mistake(
    "SelfAttentionHead",
    hint="The scores are divided by √d_model. A query has d_head entries: so many terms are added.",
)
class ScalesByDModel(_SelfHead):
    def forward(self, x, mask=None):
        q, k, v = self.qkv(x)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=x.shape[-1] ** -0.5)


@mistake("SelfAttentionHead", hint="There is no scale: divide the scores by √d_head.")
class DoesNotScale(_SelfHead):
    def attend(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)


@mistake(
    "SelfAttentionHead",
    hint="The inputs themselves are averaged: the values have not been through W_v.",
)
class ForgetsTheValueProjection(_SelfHead):
    def qkv(self, x):
        return self.W_q(x), self.W_k(x), x


@mistake("SelfAttentionHead", hint="The projections have a bias. Here they are pure matrices.")
class AddsABias(_SelfHead):
    bias = True


@mistake("SelfAttentionHead", hint="The mask is not handed on to the attention.")
class DropsTheMask(_SelfHead):
    def attend(self, q, k, v, mask):
        return super().attend(q, k, v, None)


@mistake("SelfAttentionHead", hint="The mask is read the wrong way round. True means: may attend.")
class InvertsTheMask(_SelfHead):
    def attend(self, q, k, v, mask):
        return super().attend(q, k, v, None if mask is None else ~mask)


@mistake(
    "SelfAttentionHead",
    hint="Forbidden scores become a low number, and the others may be lower still. Only -inf is "
    "below all of them.",
)
class FillsWithMinusThirty(_SelfHead):
    def attend(self, q, k, v, mask):
        return _attention(q, k, v, mask, False, fill=-30.0)


@mistake(
    "SelfAttentionHead",
    hint="The sizes have changed places: nn.Linear takes the length that comes in first, then the "
    "one that goes out.",
)
class SwapsTheSizes(_SelfHead):
    def __init__(self, d_model, d_head):
        super().__init__(d_head, d_model)


@mistake(
    "SelfAttentionHead",
    hint="The weight of nn.Linear is (out, in), transposed. Call the layer, and it multiplies "
    "rightly.",
)
class MultipliesByTheWeight(_SelfHead):
    def qkv(self, x):
        return x @ self.W_q.weight, x @ self.W_k.weight, x @ self.W_v.weight


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


@mistake(
    "attention_multiplications",
    hint="Only the scores are counted. The weights are multiplied with the values, too.",
)
def forgets_the_values(T_q, T_k, d_k, d_v):
    return T_q * T_k * d_k


@mistake(
    "attention_multiplications",
    hint="The two products come one after the other: their costs add up, they do not multiply.",
)
def multiplies_the_costs(T_q, T_k, d_k, d_v):
    return T_q * T_k * d_k * d_v


@mistake(
    "attention_multiplications",
    hint="T_q and T_k may differ. Every query meets every key: T_q · T_k pairs.",
)
def squares_one_length(T_q, T_k, d_k, d_v):
    return T_q * T_q * (d_k + d_v)


@mistake(
    "attention_multiplications",
    hint="The lengths are added. Every query meets every key: that is a product.",
)
def adds_the_lengths(T_q, T_k, d_k, d_v):
    return (T_q + T_k) * (d_k + d_v)


@mistake(
    "attention_multiplications",
    hint="This is twice too many: only multiplications are counted here, no additions.",
)
def counts_additions_too(T_q, T_k, d_k, d_v):
    return 2 * T_q * T_k * (d_k + d_v)


@mistake("attention_multiplications", hint="The count is right, but a count should be an int.")
def counts_in_floats(T_q, T_k, d_k, d_v):
    return float(T_q * T_k * (d_k + d_v))


@mistake(
    "attention_multiplications",
    hint="Every number of the queries and of the values is counted once. A query is multiplied "
    "with every key, and every value is weighted for every query.",
)
def counts_each_number_once(T_q, T_k, d_k, d_v):
    return T_q * d_k + T_k * d_v


@alternative("attention_multiplications")
def pairs_times_widths(T_q, T_k, d_k, d_v):
    return (d_k + d_v) * T_k * T_q


@alternative("attention_multiplications")
def counts_the_shapes(T_q, T_k, d_k, d_v):
    return sum(math.prod(shape) for shape in ((T_q, d_k, T_k), (T_q, T_k, d_v)))


def _costs(kind, T, d, width, **instead):
    """The three counts by kind; a mistake puts another triple in for one of them, or several."""
    right = {
        "recurrent": (2 * T * d * d, T, T - 1),
        "convolution": (width * T * d * d, 1, -(-(T - 1) // (width - 1))),
        "self-attention": (2 * T * T * d, 1, 1),
    }
    return (right | {name.replace("_", "-"): counts for name, counts in instead.items()})[kind]


@mistake(
    "layer_costs",
    hint="A convolution reads width positions, its own among them. How much further back does one "
    "layer reach, and how far away is the first position?",
)
def divides_the_length_by_the_width(kind, T, d, width):
    return _costs(kind, T, d, width, convolution=(width * T * d * d, 1, -(-T // width)))


@mistake(
    "layer_costs",
    hint="The convolution reads width positions, but its own is one of them. So how far back does "
    "one layer reach?",
)
def divides_the_distance_by_the_width(kind, T, d, width):
    path = -(-(T - 1) // width)
    return _costs(kind, T, d, width, convolution=(width * T * d * d, 1, path))


@mistake(
    "layer_costs",
    hint="This is the path of a dilated convolution, whose reach is multiplied by the width in "
    "every layer. Here the convolution is not dilated: every layer reaches equally far.",
)
def dilates_the_convolution(kind, T, d, width):
    path = 0
    while width**path < T:
        path += 1
    return _costs(kind, T, d, width, convolution=(width * T * d * d, 1, path))


@mistake(
    "layer_costs",
    hint="The path of the convolution is rounded down: its last layer, which is not used to the "
    "full, is missing.",
)
def forgets_the_last_layer(kind, T, d, width):
    path = (T - 1) // (width - 1)
    return _costs(kind, T, d, width, convolution=(width * T * d * d, 1, path))


@mistake(
    "layer_costs",
    hint="T states follow one another, but there are only T - 1 steps from the first to the last.",
)
def counts_states_not_steps(kind, T, d, width):
    return _costs(kind, T, d, width, recurrent=(2 * T * d * d, T, T))


@mistake(
    "layer_costs",
    hint="This is one wait too few for the recurrent layer. All T states must be computed, "
    "one after the other.",
)
def waits_for_all_but_the_first(kind, T, d, width):
    return _costs(kind, T, d, width, recurrent=(2 * T * d * d, T - 1, T - 1))


@mistake(
    "layer_costs",
    hint="The convolution waits for its layers here. The waits are those within one layer: what "
    "must be known before its second position can be computed?",
)
def waits_for_every_layer(kind, T, d, width):
    path = -(-(T - 1) // (width - 1))
    return _costs(kind, T, d, width, convolution=(width * T * d * d, path, path))


@mistake(
    "layer_costs",
    hint="The recurrent layer multiplies its state only. The input goes through a matrix as well.",
)
def multiplies_the_state_only(kind, T, d, width):
    return _costs(kind, T, d, width, recurrent=(T * d * d, T, T - 1))


@mistake(
    "layer_costs",
    hint="The convolution multiplies once for each position. It has a matrix for each of the width "
    "positions that it reads.",
)
def has_one_matrix_for_all(kind, T, d, width):
    path = -(-(T - 1) // (width - 1))
    return _costs(kind, T, d, width, convolution=(T * d * d, 1, path))


@mistake(
    "layer_costs",
    hint="Of self-attention only the scores are counted. The weights are multiplied with the "
    "values, too.",
)
def counts_the_scores_only(kind, T, d, width):
    return _costs(kind, T, d, width, self_attention=(T * T * d, 1, 1))


@mistake(
    "layer_costs",
    hint="Self-attention has a (d, d) matrix for every pair here. A pair costs a product of d "
    "numbers for its score, and d more for its value.",
)
def has_a_matrix_for_every_pair(kind, T, d, width):
    return _costs(kind, T, d, width, self_attention=(2 * T * T * d * d, 1, 1))


@mistake("layer_costs", hint="Waits and path have changed places.")
def swaps_waits_and_path(kind, T, d, width):
    multiplications, waits, path = _costs(kind, T, d, width)
    return multiplications, path, waits


@mistake("layer_costs", hint="The path is a float. Steps are counted in whole numbers.")
def does_not_round(kind, T, d, width):
    multiplications, waits, path = _costs(kind, T, d, width)
    return multiplications, waits, float(path)


@alternative("layer_costs")
def from_a_table(kind, T, d, width):
    return _costs(kind, T, d, width)


@alternative("layer_costs")
def stacks_layers_until_the_path_is_there(kind, T, d, width):
    reach = {"recurrent": 1, "convolution": width - 1, "self-attention": T}[kind]
    matrices, layers = {"recurrent": 2, "convolution": width}.get(kind), 0
    while layers * reach < T - 1:
        layers += 1
    per_position = 2 * T * d if matrices is None else matrices * d * d
    return [T * per_position, T if kind == "recurrent" else 1, layers]


def _backward(q, k, v, weights, grad_context, scale=None, shared=True, dim=-1):
    grad_weights = grad_context @ v.mT
    total = (weights * grad_weights).sum(dim, keepdim=True) if shared else 0
    grad_scores = weights * (grad_weights - total)
    grad_scores = grad_scores * (q.shape[-1] ** -0.5 if scale is None else scale)
    return grad_scores @ k, grad_scores.mT @ q, weights.mT @ grad_context


@mistake(
    "attention_backward",
    hint="grad_v is right, grad_k is √d_k times too large: the scale belongs to the way back, too.",
    earns=("grad_v", "grad_q and grad_k with d_k = 1"),
)
def forgets_the_scale(q, k, v, weights, grad_context):
    return _backward(q, k, v, weights, grad_context, scale=1)


@mistake(
    "attention_backward",
    hint="The softmax is treated as if each weight depended on its own score only. The sum in "
    "its denominator depends on all of them.",
    earns=("grad_v",),
)
def softmax_without_its_sum(q, k, v, weights, grad_context):
    return _backward(q, k, v, weights, grad_context, shared=False)


@mistake(
    "attention_backward",
    hint="In the step through softmax the gradients are summed as they are. Each counts with its "
    "weight.",
)
def sums_without_the_weights(q, k, v, weights, grad_context):
    grad_weights = grad_context @ v.mT
    grad_scores = weights * (grad_weights - grad_weights.sum(-1, keepdim=True))
    grad_scores = grad_scores / math.sqrt(q.shape[-1])
    return grad_scores @ k, grad_scores.mT @ q, weights.mT @ grad_context


@mistake(
    "attention_backward",
    hint="In the step through softmax the sum runs over the queries. It belongs to each query.",
)
def sums_over_the_queries(q, k, v, weights, grad_context):
    return _backward(q, k, v, weights, grad_context, dim=-2)


@mistake(
    "attention_backward",
    hint="The step through softmax is missing: this is the gradient of the weights, used as that "
    "of the scores.",
    earns=("grad_v",),
)
def skips_the_softmax(q, k, v, weights, grad_context):
    grad_scores = grad_context @ v.mT / math.sqrt(q.shape[-1])
    return grad_scores @ k, grad_scores.mT @ q, weights.mT @ grad_context


@mistake(
    "attention_backward",
    hint="The gradients are right, but grad_q and grad_k are swapped.",
    earns=("grad_v",),
)
def returns_k_before_q(q, k, v, weights, grad_context):
    grad_q, grad_k, grad_v = _backward(q, k, v, weights, grad_context)
    return grad_k, grad_q, grad_v


@mistake(
    "attention_backward",
    hint="grad_v is the same for every key. Each query passes its gradient on to a key's value, "
    "times the weight it gave: transpose the weights.",
    earns=("grad_q and grad_k with d_k = 1", "with any d_k and leading axes"),
)
def spreads_grad_v_evenly(q, k, v, weights, grad_context):
    grad_q, grad_k, grad_v = _backward(q, k, v, weights, grad_context)
    return grad_q, grad_k, grad_context.mean(-2, keepdim=True).expand_as(v)


@mistake(
    "attention_backward",
    hint="All axes are turned around: with leading axes .T reverses all of them. Swap only the "
    "last two.",
    earns=("grad_v", "grad_q and grad_k with d_k = 1"),
)
def turns_all_axes_around(q, k, v, weights, grad_context):
    def turned(tensor):
        return tensor.permute(*reversed(range(tensor.dim())))

    grad_weights = grad_context @ turned(v)
    total = (weights * grad_weights).sum(-1, keepdim=True)
    grad_scores = weights * (grad_weights - total) / math.sqrt(q.shape[-1])
    return grad_scores @ k, turned(grad_scores) @ q, turned(weights) @ grad_context


@mistake(
    "attention_backward",
    hint="grad_q and grad_k are divided by d_k. The scores were divided by its root.",
)
def divides_by_d_k(q, k, v, weights, grad_context):
    return _backward(q, k, v, weights, grad_context, scale=1 / q.shape[-1])


@mistake(
    "attention_backward",
    hint="In grad_v the weights are not transposed: each key collects from all queries that "
    "attended to it.",
)
def does_not_transpose_the_weights(q, k, v, weights, grad_context):
    grad_q, grad_k, _ = _backward(q, k, v, weights, grad_context)
    return grad_q, grad_k, weights @ grad_context


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
