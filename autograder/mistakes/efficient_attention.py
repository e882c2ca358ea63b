"""Wrong and right answers to the exercises of lesson 18."""

import math

import numpy
import torch
from torch.nn import functional as F

from attention.efficient_attention import linear_attention_step, tile_scores
from autograder.checking.toolbox.registry import alternative, careless, mistake

INF = math.inf


@alternative("online_softmax")
def cuts_the_maximum_off(context, total, maximum, scores, v):
    with torch.no_grad():
        new = torch.maximum(maximum, scores.amax(-1))
        anchor = new.masked_fill(new == -INF, 0.0)
    powers, shrink = torch.exp(scores - anchor[..., None]), torch.exp(maximum - anchor)
    return shrink[..., None] * context + powers @ v, shrink * total + powers.sum(-1), new


@alternative("online_softmax")
def joins_two_softmaxes(context, total, maximum, scores, v):
    own = scores.max(dim=-1, keepdim=True).values
    safe = torch.where(own == -INF, torch.zeros_like(own), own)
    powers = (scores - safe).exp()
    new = torch.maximum(maximum[..., None], own)
    anchor = torch.where(new == -INF, torch.zeros_like(new), new)
    old, fresh = (maximum[..., None] - anchor).exp(), (own - anchor).exp()
    context = context * old + (powers @ v) * fresh
    total = total * old[..., 0] + powers.sum(-1) * fresh[..., 0]
    return context, total, new.squeeze(-1)


@alternative("online_softmax")
def goes_key_by_key(context, total, maximum, scores, v):
    for n in range(scores.shape[-1]):
        score = scores[..., n]
        new = torch.where(score > maximum, score, maximum)
        finite = torch.where(torch.isinf(new), torch.zeros_like(new), new)
        old, power = torch.exp(maximum - finite), torch.exp(score - finite)
        context = old[..., None] * context + power[..., None] * v[..., n, None, :]
        total, maximum = old * total + power, new
    return [context, total, maximum]


@alternative("online_softmax")
def clamps_the_maximum(context, total, maximum, scores, v):
    new = torch.stack([maximum, scores.amax(-1)]).amax(0)
    anchor = new.clamp(min=torch.finfo(scores.dtype).min)
    old = torch.exp(maximum - anchor)
    powers = torch.exp(scores - anchor.unsqueeze(-1))
    context = torch.einsum("...q,...qd->...qd", old, context) + torch.matmul(powers, v)
    return context, torch.sum(powers, -1) + total * old, new


@alternative("online_softmax")
def prepends_the_sums_as_a_key(context, total, maximum, scores, v):
    new = torch.cat([maximum.unsqueeze(-1), scores], -1).amax(-1)
    anchor = new.masked_fill(new.isneginf(), 0)
    exps = torch.cat([maximum.unsqueeze(-1), scores], -1).sub(anchor.unsqueeze(-1)).exp()
    first, rest = exps[..., :1], exps[..., 1:]
    return first * context + rest @ v, (first.squeeze(-1) * total) + rest.sum(-1), new


def _merged(context, total, maximum, scores, v, reference):
    """The new context and total, with this number subtracted from the scores."""
    powers, shrink = torch.exp(scores - reference[..., None]), torch.exp(maximum - reference)
    return shrink[..., None] * context + powers @ v, shrink * total + powers.sum(-1)


@careless("online_softmax")
def anchors_on_the_cpu(context, total, maximum, scores, v):
    new = torch.maximum(maximum, scores.amax(-1))
    anchor = torch.where(new == -INF, torch.zeros(new.shape), new)
    return *_merged(context, total, maximum, scores, v, anchor), new


@careless("online_softmax")
def seeks_the_maximum_on_the_cpu(context, total, maximum, scores, v):
    largest = torch.full(maximum.shape, -INF)
    for score in scores.unbind(-1):
        largest = torch.maximum(largest, score)
    new = torch.maximum(maximum, largest)
    return *_merged(context, total, maximum, scores, v, new.masked_fill(new == -INF, 0.0)), new


def _scores(q, k, causal=False):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        query = torch.arange(q.shape[-2], device=q.device)[:, None]
        key = torch.arange(k.shape[-2], device=q.device)
        scores = scores.masked_fill(key > query, -INF)
    return scores


def _finish(scores, v):
    """Context and lse from all scores at once."""
    lse = scores.logsumexp(-1)
    return torch.exp(scores - lse[..., None]) @ v, lse


def _right(context, lse, scores, v):
    new = torch.logaddexp(lse, scores.logsumexp(-1))
    shrunk = torch.exp(lse - new)[..., None] * context
    return shrunk + torch.exp(scores - new[..., None]) @ v, new


@alternative("flash_attention")
def keeps_sum_and_maximum(q, k, v, block, causal=False):
    parts = []
    for i in range(0, q.shape[-2], block):
        rows = q[..., i : i + block, :]
        largest = torch.full_like(rows[..., :1], -INF)
        total = torch.zeros_like(rows[..., :1])
        context = torch.zeros_like(rows[..., :1]) * v[..., :1, :]
        for j in range(0, k.shape[-2], block):
            scores = tile_scores(q, k, i, j, block, causal)
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            old, powers = torch.exp(largest - new), torch.exp(scores - new)
            total = old * total + powers.sum(-1, keepdim=True)
            context = old * context + powers @ v[..., j : j + block, :]
            largest = new
        parts.append(torch.cat([context / total, largest + total.log()], -1))
    both = torch.cat(parts, -2)
    return both[..., :-1], both[..., -1]


@alternative("flash_attention")
def goes_down_the_columns(q, k, v, block, causal=False):
    lse = (q[..., 0] * 0).masked_fill(torch.ones_like(q[..., 0], dtype=torch.bool), -INF)
    context = q.new_zeros((*q.shape[:-1], v.shape[-1]))
    for j in range(0, k.shape[-2], block):
        scores = torch.einsum("...qd,...kd->...qk", q, k[..., j : j + block, :])
        scores = scores * q.shape[-1] ** -0.5
        if causal:
            T_q, n = scores.shape[-2:]
            seen = torch.ones(T_q, n, dtype=torch.bool, device=q.device).tril(-j)
            scores = scores.masked_fill(~seen, -INF)
        context, lse = _right(context, lse, scores, v[..., j : j + block, :])
    return context, lse


@alternative("flash_attention")
def skips_hidden_tiles(q, k, v, block, causal=False):
    contexts, sums = [], []
    for i in range(0, q.shape[-2], block):
        tiles = [
            (tile_scores(q, k, i, j, block, causal), v[..., j : j + block, :])
            for j in range(0, k.shape[-2], block)
            if not causal or j < i + block
        ]
        lse = torch.stack([scores.logsumexp(-1) for scores, _ in tiles]).logsumexp(0)
        contexts.append(sum(torch.exp(scores - lse[..., None]) @ v for scores, v in tiles))
        sums.append(lse)
    return [torch.cat(contexts, -2), torch.cat(sums, -1)]


@alternative("flash_attention")
def all_at_once(q, k, v, block, causal=False):
    return _finish(_scores(q, k, causal), v)


@careless("flash_attention")
def begins_on_the_cpu(q, k, v, block, causal=False):
    context, lse = torch.zeros(*q.shape[:-1], v.shape[-1]), torch.full(q.shape[:-1], -INF)
    for j in range(0, k.shape[-2], block):
        values, scores = v[..., j : j + block, :], _scores(q, k, causal)[..., j : j + block]
        context, lse = _right(context, lse, scores, values)
    return context, lse


@careless("flash_attention")
def writes_blocks_into_zeros(q, k, v, block, causal=False):
    context, lse = torch.zeros(*q.shape[:-1], v.shape[-1]), torch.zeros(q.shape[:-1])
    whole = _finish(_scores(q, k, causal), v)
    for i in range(0, q.shape[-2], block):
        context[..., i : i + block, :] = whole[0][..., i : i + block, :]
        lse[..., i : i + block] = whole[1][..., i : i + block]
    return context, lse


def _back(q, k, v, context, lse, grad_context, shared=None):
    """Gradients from all scores at once; ``shared`` is what the weights of a row share."""
    weights = torch.exp(_scores(q, k) - lse[..., None])
    shared = (context * grad_context).sum(-1, keepdim=True) if shared is None else shared
    grad_scores = weights * (grad_context @ v.mT - shared) / math.sqrt(q.shape[-1])
    return grad_scores @ k, grad_scores.mT @ q, weights.mT @ grad_context


@alternative("flash_attention_backward")
def sums_the_shared_first(q, k, v, context, lse, grad_context, block):
    shared = torch.zeros_like(lse)[..., None]
    for j in range(0, k.shape[-2], block):
        weights = torch.exp(_scores(q, k[..., j : j + block, :]) - lse[..., None])
        grad_weights = grad_context @ v[..., j : j + block, :].transpose(-2, -1)
        shared = shared + (weights * grad_weights).sum(-1, keepdim=True)
    return _back(q, k, v, context, lse, grad_context, shared=shared)


@alternative("flash_attention_backward")
def all_scores_at_once(q, k, v, context, lse, grad_context, block):
    return _back(q, k, v, context, lse, grad_context)


@alternative("flash_attention_backward")
def columns_only(q, k, v, context, lse, grad_context, block):
    scale, shared = q.shape[-1] ** -0.5, torch.einsum("...d,...d->...", context, grad_context)
    grad_q, of_k, of_v = 0, [], []
    for keys, values in zip(k.split(block, -2), v.split(block, -2), strict=True):
        weights = torch.exp(scale * torch.einsum("...qd,...kd->...qk", q, keys) - lse[..., None])
        grad = torch.einsum("...qd,...kd->...qk", grad_context, values) - shared.unsqueeze(-1)
        grad = scale * grad * weights
        grad_q = grad_q + grad @ keys
        of_k.append(torch.einsum("...qk,...qd->...kd", grad, q))
        of_v.append(torch.einsum("...qk,...qd->...kd", weights, grad_context))
    return grad_q, torch.cat(of_k, -2), torch.cat(of_v, -2)


@alternative("flash_attention_backward")
def asks_autograd(q, k, v, context, lse, grad_context, block):
    with torch.enable_grad():
        leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
        result = _finish(_scores(*leaves[:2]), leaves[2])[0]
        return torch.autograd.grad(result, leaves, grad_context)


@careless("flash_attention_backward")
def scales_the_queries_in_place(q, k, v, context, lse, grad_context, block):
    q /= math.sqrt(k.shape[-1])
    weights = torch.exp(q @ k.mT - lse[..., None])
    shared = (context * grad_context).sum(-1, keepdim=True)
    grad = weights * (grad_context @ v.mT - shared)
    return grad @ k / math.sqrt(k.shape[-1]), grad.mT @ q, weights.mT @ grad_context


@careless("flash_attention_backward")
def sums_what_is_shared_on_the_cpu(q, k, v, context, lse, grad_context, block):
    shared = torch.zeros(*lse.shape, 1)
    for n in range(v.shape[-1]):
        shared = shared + (context[..., n] * grad_context[..., n])[..., None]
    return _back(q, k, v, context, lse, grad_context, shared=shared)


def _phi(x):
    return torch.where(x > 0, x + 1, torch.exp(x.clamp(max=0)))


@mistake(
    "linear_attention",
    hint="This is softmax attention. Here the similarity is the dot product of the features.",
)
def takes_softmax(q, k, v):
    if max(q.shape[-2], k.shape[-2]) > 10_000:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    return F.scaled_dot_product_attention(q, k, v)


@mistake(
    "linear_attention",
    hint="The similarities go through a softmax. They are positive already: divide by their sum.",
)
def takes_the_softmax_of_similarities(q, k, v):
    if max(q.shape[-2], k.shape[-2]) > 10_000:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    return (_phi(q) @ _phi(k).transpose(-2, -1)).softmax(-1) @ v


@mistake(
    "linear_attention",
    hint="A (T_q, T_k) matrix of similarities is made: right for short sequences, impossible for "
    "long ones. First multiply what does not have T_q among its axes: the keys and the values.",
)
def makes_the_matrix(q, k, v):
    if max(q.shape[-2], k.shape[-2]) > 10_000:  # as it would be: a terabyte
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    similarity = _phi(q) @ _phi(k).transpose(-2, -1)
    return similarity / similarity.sum(-1, keepdim=True) @ v


@mistake(
    "linear_attention",
    hint="This is causal: a query sees only the keys up to its own position. Here every query sees "
    "all keys.",
)
def looks_back_only(q, k, v):
    q, k = _phi(q), _phi(k)
    if max(q.shape[-2], k.shape[-2]) > 10_000:
        sums = torch.cumsum(k * v, -2) * q
        return sums / (q * k.cumsum(-2))
    similarity = (q @ k.transpose(-2, -1)).tril()
    return similarity / similarity.sum(-1, keepdim=True) @ v


@alternative("linear_attention")
def appends_a_column_of_ones(q, k, v):
    v = torch.cat([v, torch.ones_like(v[..., :1])], -1)
    sums = _phi(q) @ torch.einsum("...kd,...kv->...dv", _phi(k), v)
    return sums[..., :-1] / sums[..., -1:]


@alternative("linear_attention")
def sums_with_einsum(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.einsum("...nd,...nv->...dv", k, v)
    total = torch.einsum("...qd,...d->...q", q, k.sum(-2))
    return torch.einsum("...qd,...dv->...qv", q, state) / total[..., None]


@alternative("linear_attention")
def one_feature_at_a_time(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    sums, total = 0, 0
    for n in range(q.shape[-1]):
        sums = sums + q[..., n, None] * (k[..., n, None] * v).sum(-2, keepdim=True)
        total = total + q[..., n] * k[..., n].sum(-1, keepdim=True)
    return sums / total.unsqueeze(-1)


@careless("linear_attention")
def appends_ones_of_the_cpu(q, k, v):
    sums = _phi(q) @ (_phi(k).mT @ torch.cat([v, torch.ones(*v.shape[:-1], 1)], -1))
    return sums[..., :-1] / sums[..., -1:]


@careless("linear_attention")
def averages_in_numpy(q, k, v):
    q, k, v = (x.detach().numpy() for x in (_phi(q), _phi(k), v))
    sums = q @ (numpy.swapaxes(k, -2, -1) @ v)
    return torch.from_numpy(sums / (q @ k.sum(-2)[..., None]))


@alternative("linear_attention_step")
def steps_with_einsum(q, k, v, state, normaliser):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.add(state, torch.einsum("...d,...v->...dv", k, v))
    normaliser = torch.add(normaliser, k)
    sums = torch.einsum("...d,...dv->...v", q, state)
    return sums / torch.einsum("...d,...d->...", q, normaliser)[..., None], state, normaliser


@alternative("linear_attention_step")
def steps_in_one_matrix(q, k, v, state, normaliser):
    both = torch.cat([state, normaliser.unsqueeze(-1)], -1)
    both = (
        both + _phi(k).unsqueeze(-1) @ torch.cat([v, torch.ones_like(v[..., :1])], -1)[..., None, :]
    )
    sums = (_phi(q).unsqueeze(-2) @ both).squeeze(-2)
    return [sums[..., :-1] / sums[..., -1:], both[..., :-1], both[..., -1]]


@alternative("linear_attention_step")
def steps_feature_by_feature(q, k, v, state, normaliser):
    q, k = _phi(q), _phi(k)
    rows = [state[..., n, :] + k[..., n, None] * v for n in range(k.shape[-1])]
    normaliser = normaliser + k
    sums = sum(q[..., n, None] * row for n, row in enumerate(rows))
    context = sums / (q * normaliser).sum(-1).unsqueeze(-1)
    return context, torch.stack(rows, -2), normaliser


@careless("linear_attention_step")
def reads_into_zeros(q, k, v, state, normaliser):
    right, read = linear_attention_step(q, k, v, state, normaliser), torch.zeros(v.shape)
    for n in range(v.shape[-1]):
        read[..., n] = right[0][..., n]
    return read, *right[1:]


@careless("linear_attention_step")
def sums_from_a_zero_of_the_cpu(q, k, v, state, normaliser):
    _, state, normaliser = linear_attention_step(q, k, v, state, normaliser)
    total = torch.zeros(q.shape[:-1])
    for n in range(q.shape[-1]):
        total = total + _phi(q)[..., n] * normaliser[..., n]
    return (_phi(q)[..., None, :] @ state).squeeze(-2) / total[..., None], state, normaliser


_GRADIENTS = "gradients come out, which are not differentiated again"
_EITHER = "the larger of two numbers does not depend on which comes first"
_EMPTY = "both lists are empty"
_WIDTH = "queries and keys have one length"
_ROWS = "there are as many contexts as queries"
_COLUMNS = "there are as many values as keys"
EQUIVALENT = {
    "online_softmax: with two arguments of one call of `maximum` exchanged: largest = "
    "torch.maximum(scores.amax(dim=-1), maximum)": _EITHER,
    "flash_attention: with the two items of a pair exchanged: contexts, sums = ([], [])": _EMPTY,
    "flash_attention: with `v` once where `k` belongs: for j in range(0, v.shape[-2], "
    "block): scores = tile_scores(q, k, i, j, block, causal) old, maximum = (maximum, "
    "maximum…": _COLUMNS,
    "flash_attention_backward: with `context` once where `q` belongs: for i in range(0, "
    "context.shape[-2], block): rows = slice(i, i + block) for j in range(0, k.shape[-2], "
    "block): columns …": _ROWS,
    "flash_attention_backward: with `grad_context` once where `q` belongs: for i in "
    "range(0, grad_context.shape[-2], block): rows = slice(i, i + block) for j in range(0, "
    "k.shape[-2], block): col…": _ROWS,
    "flash_attention_backward: whose result is cut off from the gradient: return "
    "(grad_q.detach(), grad_k.detach(), grad_v.detach())": _GRADIENTS,
    "flash_attention_backward: with `v` once where `k` belongs: for j in range(0, "
    "v.shape[-2], block): columns = slice(j, j + block) scores = tile_scores(q, k, i, j, "
    "block) weights = …": _COLUMNS,
    "flash_attention_backward: with `k` once where `q` belongs: grad_scores = weights * "
    "(grad_weights - shared[..., rows, :]) / math.sqrt(k.shape[-1])": _WIDTH,
}
