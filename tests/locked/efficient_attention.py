"""Answers to lesson 18 that were written without a look at its checks."""

import math

import torch
from torch.nn import functional as F

from tests.locked import right, wrong

# --- online_softmax --------------------------------------------------------------------------


@wrong(
    "online_softmax",
    cause="puts -1e9 for -inf, so keys of a block that is hidden as a whole count",
    kind="extreme",
)
def online_softmax_4(context, total, maximum, scores, v):
    scores = scores.clamp(min=-1e9)
    new = torch.maximum(maximum, scores.amax(dim=-1))
    shrink = torch.exp(maximum - new)
    power = torch.exp(scores - new[..., None])
    return shrink[..., None] * context + power @ v, shrink * total + power.sum(-1), new


@wrong(
    "online_softmax",
    cause="takes the maximum of the new block alone and forgets the old one",
    kind="value",
)
def online_softmax_5(context, total, maximum, scores, v):
    new = scores.amax(dim=-1)
    new = torch.where(new == -math.inf, maximum, new)
    safe = new.masked_fill(new == -math.inf, 0)
    shrink = torch.exp(maximum - safe)
    power = torch.exp(scores - safe[..., None])
    return shrink[..., None] * context + power @ v, shrink * total + power.sum(-1), new


@wrong("online_softmax", cause="one maximum for all queries together", kind="value")
def online_softmax_6(context, total, maximum, scores, v):
    new = torch.maximum(maximum, scores.max())
    safe = new.masked_fill(new == -math.inf, 0)
    shrink = torch.exp(maximum - safe)
    power = torch.exp(scores - safe[..., None])
    return shrink[..., None] * context + power @ v, shrink * total + power.sum(-1), new


@wrong("online_softmax", cause="divides the context by the total after each block", kind="value")
def online_softmax_7(context, total, maximum, scores, v):
    new = torch.maximum(maximum, scores.amax(dim=-1))
    safe = new.masked_fill(new == -math.inf, 0)
    old = total * torch.exp(maximum - safe)
    power = torch.exp(scores - safe[..., None])
    total = old + power.sum(dim=-1)
    context = context * old[..., None] + power @ v
    return context / total.masked_fill(total == 0, 1)[..., None], total, new


@wrong(
    "online_softmax",
    cause="takes the keys to lie on axis 1, which holds for two axes only",
    kind="size",
)
def online_softmax_8(context, total, maximum, scores, v):
    new = torch.maximum(maximum, scores.amax(dim=1))
    safe = new.masked_fill(new == -math.inf, 0)
    shrink = torch.exp(maximum - safe)
    power = torch.exp(scores - safe[..., None])
    return shrink[..., None] * context + power @ v, shrink * total + power.sum(dim=1), new


@right("online_softmax", how="the old maximum stands among the scores as one more, then einsum")
def online_softmax_9(context, total, maximum, scores, v):
    new = torch.cat((maximum[..., None], scores), dim=-1).amax(dim=-1)
    seen = new > -math.inf
    finite = torch.where(seen, new, torch.zeros_like(new))
    powers = torch.exp(torch.cat((maximum[..., None], scores), dim=-1) - finite[..., None])
    shrink, power = powers[..., 0], powers[..., 1:]
    context = torch.einsum("...q,...qv->...qv", shrink, context)
    context = context + torch.einsum("...qn,...nv->...qv", power, v)
    return context, shrink * total + power.sum(dim=-1), new


@right("online_softmax", how="a loop that takes in one key after the other")
def online_softmax_10(context, total, maximum, scores, v):
    for n in range(scores.shape[-1]):
        score, value = scores[..., n], v[..., n, :].unsqueeze(-2)
        larger = torch.maximum(maximum, score)
        base = torch.where(larger == -math.inf, 0.0, larger)
        shrink, power = (maximum - base).exp(), (score - base).exp()
        total = shrink * total + power
        context = shrink.unsqueeze(-1) * context + power.unsqueeze(-1) * value
        maximum = larger
    return context, total, maximum


@right("online_softmax", how="the block has its own three numbers, then two triples are merged")
def online_softmax_11(context, total, maximum, scores, v):
    largest = scores.amax(dim=-1)
    low = torch.finfo(scores.dtype).min
    power = torch.exp(scores - largest.clamp(min=low).unsqueeze(-1))
    new = torch.maximum(maximum, largest)
    base = new.clamp(min=low)
    old, fresh = torch.exp(maximum - base), torch.exp(largest - base)
    total = total * old + power.sum(dim=-1) * fresh
    context = context * old.unsqueeze(-1) + (power @ v) * fresh.unsqueeze(-1)
    return context, total, new


# --- flash_attention -------------------------------------------------------------------------


def _tile(q, k, i, j, block, causal=False):
    """What the lesson gives as `tile_scores`."""
    queries, keys = q[..., i : i + block, :], k[..., j : j + block, :]
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if not causal:
        return scores
    query = torch.arange(i, i + scores.shape[-2], device=q.device).unsqueeze(1)
    key = torch.arange(j, j + scores.shape[-1], device=q.device)
    return scores.masked_fill(key > query, -math.inf)


def _step(context, total, maximum, scores, v):
    """One step of `online_softmax`."""
    new = torch.maximum(maximum, scores.amax(dim=-1))
    safe = new.masked_fill(new == -math.inf, 0)
    shrink = torch.exp(maximum - safe)
    power = torch.exp(scores - safe[..., None])
    return shrink[..., None] * context + power @ v, shrink * total + power.sum(-1), new


def _start(q, v, i, block):
    """Sums of 0 and a maximum of -inf for the queries from i on."""
    total = torch.zeros_like(q[..., i : i + block, 0])
    return total[..., None] * v[..., :1, :], total, total - math.inf


@wrong(
    "flash_attention",
    cause="goes over whole blocks only: the shorter last ones are left out",
    kind="size",
)
def flash_attention_4(q, k, v, block, causal=False):
    contexts, lses = [], []
    for i in range(max(1, q.shape[-2] // block)):
        state = _start(q, v, i * block, block)
        for j in range(max(1, k.shape[-2] // block)):
            scores = _tile(q, k, i * block, j * block, block, causal)
            state = _step(*state, scores, v[..., j * block : (j + 1) * block, :])
        contexts.append(state[0] / state[1][..., None])
        lses.append(state[2] + state[1].log())
    return torch.cat(contexts, dim=-2), torch.cat(lses, dim=-1)


@wrong(
    "flash_attention",
    cause="a softmax in each tile, and the plain mean of the tiles' contexts",
    kind="value",
)
def flash_attention_7(q, k, v, block, causal=False):
    contexts, lses = [], []
    for i in range(0, q.shape[-2], block):
        parts, logs = [], []
        for j in range(0, k.shape[-2], block):
            scores = _tile(q, k, i, j, block, causal)
            weights = scores.softmax(dim=-1).nan_to_num(0.0)
            parts.append(weights @ v[..., j : j + block, :])
            logs.append(scores.logsumexp(dim=-1))
        contexts.append(torch.stack(parts).mean(dim=0))
        lses.append(torch.stack(logs).logsumexp(dim=0))
    return torch.cat(contexts, dim=-2), torch.cat(lses, dim=-1)


@wrong(
    "flash_attention",
    cause="one maximum for all queries of a tile: rows far below it vanish, and 0 / 0 is nan",
    kind="extreme",
)
def flash_attention_9(q, k, v, block, causal=False):
    contexts, lses = [], []
    for i in range(0, q.shape[-2], block):
        context, total, maximum = _start(q, v, i, block)
        maximum = q.new_tensor(-math.inf)
        for j in range(0, k.shape[-2], block):
            scores = _tile(q, k, i, j, block, causal)
            larger = torch.maximum(maximum, scores.max())
            shrink, power = (maximum - larger).exp(), (scores - larger).exp()
            total = shrink * total + power.sum(dim=-1)
            context = shrink * context + power @ v[..., j : j + block, :]
            maximum = larger
        contexts.append(context / total[..., None])
        lses.append(maximum + total.log())
    return torch.cat(contexts, dim=-2), torch.cat(lses, dim=-1)


@wrong(
    "flash_attention",
    cause="the results lie in torch.zeros of float32, whatever q is",
    kind="dtype",
)
def flash_attention_10(q, k, v, block, causal=False):
    context, lse = torch.zeros(*q.shape[:-1], v.shape[-1]), torch.zeros(q.shape[:-1])
    for i in range(0, q.shape[-2], block):
        state = _start(q, v, i, block)
        for j in range(0, k.shape[-2], block):
            state = _step(*state, _tile(q, k, i, j, block, causal), v[..., j : j + block, :])
        context[..., i : i + block, :] = state[0] / state[1][..., None]
        lse[..., i : i + block] = state[2] + state[1].log()
    return context, lse


@right("flash_attention", how="merges the tiles by their lse, without a running maximum")
def flash_attention_11(q, k, v, block, causal=False):
    contexts, lses = [], []
    for i in range(0, q.shape[-2], block):
        context = lse = None
        for j in range(0, k.shape[-2], block):
            scores, values = _tile(q, k, i, j, block, causal), v[..., j : j + block, :]
            if causal and j > i:
                break
            part, log = scores.softmax(dim=-1) @ values, scores.logsumexp(dim=-1)
            if lse is None:
                context, lse = part, log
                continue
            both = torch.logaddexp(lse, log)
            old, new = (lse - both).exp().unsqueeze(-1), (log - both).exp().unsqueeze(-1)
            context, lse = old * context + new * part, both
        contexts.append(context)
        lses.append(lse)
    return torch.cat(contexts, dim=-2), torch.cat(lses, dim=-1)


@right("flash_attention", how="twice over the keys: first lse, then the weights exp(score - lse)")
def flash_attention_12(q, k, v, block, causal=False):
    contexts, lses = [], []
    for i in range(0, q.shape[-2], block):
        starts = range(0, k.shape[-2], block)
        logs = [_tile(q, k, i, j, block, causal).logsumexp(dim=-1) for j in starts]
        lse = torch.stack(logs).logsumexp(dim=0)
        parts = []
        for j in starts:
            weights = torch.exp(_tile(q, k, i, j, block, causal) - lse[..., None])
            parts.append(torch.einsum("...qk,...kv->...qv", weights, v[..., j : j + block, :]))
        contexts.append(sum(parts))
        lses.append(lse)
    return torch.cat(contexts, dim=-2), torch.cat(lses, dim=-1)


@right("flash_attention", how="keys outside and queries inside, as in the paper, in scaled queries")
def flash_attention_13(q, k, v, block, causal=False):
    blocks = list((q * q.shape[-1] ** -0.5).split(block, dim=-2))
    states = [_start(q, v, i, block) for i in range(0, q.shape[-2], block)]
    pairs = zip(k.split(block, dim=-2), v.split(block, dim=-2), strict=True)
    for n, (keys, values) in enumerate(pairs):
        for m, queries in enumerate(blocks):
            scores = torch.einsum("...qd,...kd->...qk", queries, keys)
            if causal:
                row = m * block + torch.arange(queries.shape[-2], device=q.device)
                column = n * block + torch.arange(keys.shape[-2], device=q.device)
                scores = torch.where(row[:, None] >= column, scores, -math.inf)
            states[m] = _step(*states[m], scores, values)
    context, total, maximum = (
        torch.cat(parts, dim=axis)
        for parts, axis in zip(zip(*states, strict=True), (-2, -1, -1), strict=True)
    )
    return context / total.unsqueeze(-1), total.log() + maximum


# --- linear_attention ------------------------------------------------------------------------


def _features(x):
    """What the lesson gives as `positive_features`."""
    return F.elu(x) + 1


@wrong(
    "linear_attention",
    cause="the denominator is the product of two sums, not a dot product: right for d_k = 1",
    kind="value",
)
def linear_attention_4(q, k, v):
    q, k = _features(q), _features(k)
    total = q.sum(dim=-1, keepdim=True) * k.sum(dim=(-2, -1), keepdim=True)
    return q @ (k.transpose(-2, -1) @ v) / total


@wrong(
    "linear_attention",
    cause="transposes the axes 0 and 1, which holds for two axes only",
    kind="size",
)
def linear_attention_7(q, k, v):
    q, k = _features(q), _features(k)
    return q @ (k.transpose(0, 1) @ v) / (q @ k.sum(dim=0)[..., None])


@wrong(
    "linear_attention",
    cause="softmax of q over features and of k over positions, in place of the features",
    kind="value",
)
def linear_attention_8(q, k, v):
    q, k = q.softmax(dim=-1), k.softmax(dim=-2)
    return q @ (k.transpose(-2, -1) @ v)


@right("linear_attention", how="a column of ones beside the values gathers the normaliser")
def linear_attention_9(q, k, v):
    values = torch.cat((v, torch.ones_like(v[..., :1])), dim=-1)
    sums = torch.einsum("...kd,...kv->...dv", _features(k), values)
    sums = torch.einsum("...qd,...dv->...qv", _features(q), sums)
    return sums[..., :-1] / sums[..., -1:]


@right("linear_attention", how="features by torch.where, and keys in blocks")
def linear_attention_10(q, k, v):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (q, k))
    state = normaliser = 0
    for keys, values in zip(k.split(4096, dim=-2), v.split(4096, dim=-2), strict=True):
        state = state + keys.mT @ values
        normaliser = normaliser + keys.sum(dim=-2, keepdim=True)
    return q @ state / (q * normaliser).sum(dim=-1, keepdim=True)


@right("linear_attention", how="divides the features of each query before they meet the state")
def linear_attention_11(q, k, v):
    phi_q, phi_k = F.elu(q) + 1, F.elu(k) + 1
    ones = torch.ones_like(k[..., :1])
    share = phi_q / (phi_q @ (phi_k.mT @ ones))
    return share @ (phi_k.mT @ v)


# --- linear_attention_step -------------------------------------------------------------------


@wrong(
    "linear_attention_step",
    cause="reads the context first and adds then: a position does not see itself",
    kind="value",
)
def linear_attention_step_1(q, k, v, state, normaliser):
    q, k = _features(q), _features(k)
    total = (q * normaliser).sum(dim=-1, keepdim=True)
    context = (q[..., None, :] @ state).squeeze(-2) / total.masked_fill(total == 0, 1)
    return context, state + k[..., :, None] * v[..., None, :], normaliser + k


@wrong(
    "linear_attention_step",
    cause="the outer product is value · keyᵀ: the state is (d_v, d_k)",
    kind="shape",
)
def linear_attention_step_3(q, k, v, state, normaliser):
    q, k = _features(q), _features(k)
    state = state + v[..., :, None] * k[..., None, :]
    normaliser = normaliser + k
    context = (state @ q[..., None]).squeeze(-1)
    return context / (q * normaliser).sum(dim=-1, keepdim=True), state, normaliser


@wrong(
    "linear_attention_step",
    cause="hands back the normaliser that came in",
    kind="value",
)
def linear_attention_step_7(q, k, v, state, normaliser):
    q, k = _features(q), _features(k)
    state = state + k[..., :, None] * v[..., None, :]
    total = (q * (normaliser + k)).sum(dim=-1, keepdim=True)
    return (q[..., None, :] @ state).squeeze(-2) / total, state, normaliser


@wrong(
    "linear_attention_step",
    cause="the denominator sums the normaliser without the query: right for d_k = 1 only",
    kind="value",
)
def linear_attention_step_8(q, k, v, state, normaliser):
    q, k = _features(q), _features(k)
    state = state + k[..., :, None] * v[..., None, :]
    normaliser = normaliser + k
    total = q.sum(dim=-1, keepdim=True) * normaliser.sum(dim=-1, keepdim=True)
    return (q[..., None, :] @ state).squeeze(-2) / total, state, normaliser


@right("linear_attention_step", how="einsum for both products")
def linear_attention_step_9(q, k, v, state, normaliser):
    q, k = _features(q), _features(k)
    state = state + torch.einsum("...d,...v->...dv", k, v)
    normaliser = normaliser + k
    total = torch.einsum("...d,...d->...", q, normaliser)
    context = torch.einsum("...d,...dv->...v", q, state)
    return context / total[..., None], state, normaliser


@right("linear_attention_step", how="state and normaliser side by side in one matrix")
def linear_attention_step_10(q, k, v, state, normaliser):
    both = torch.cat((state, normaliser.unsqueeze(-1)), dim=-1)
    value = F.pad(v, (0, 1), value=1.0)
    both = both + _features(k).unsqueeze(-1) @ value.unsqueeze(-2)
    sums = (both * _features(q).unsqueeze(-1)).sum(dim=-2)
    return sums[..., :-1] / sums[..., -1:], both[..., :-1], both[..., -1]


@right("linear_attention_step", how="clones the sums, then writes into the clones")
def linear_attention_step_11(q, k, v, state, normaliser):
    state, normaliser = state.clone(), normaliser.clone()
    q, key = _features(q), _features(k)
    state += key.unsqueeze(-1) * v.unsqueeze(-2)
    normaliser += key
    weights = q / (q.unsqueeze(-2) @ normaliser.unsqueeze(-1)).squeeze(-1)
    return (state.mT @ weights.unsqueeze(-1)).squeeze(-1), state, normaliser


# --- flash_attention_backward ----------------------------------------------------------------


@wrong(
    "flash_attention_backward",
    cause="what a row shares lost its axis and lines up with the keys of a tile",
    kind="value",
)
def flash_attention_backward_7(q, k, v, context, lse, grad_context, block):
    grad_q, grad_k, grad_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    shared = (context * grad_context).sum(dim=-1)
    for i in range(0, q.shape[-2], block):
        rows = slice(i, i + block)
        for j in range(0, k.shape[-2], block):
            columns = slice(j, j + block)
            weights = torch.exp(_tile(q, k, i, j, block) - lse[..., rows, None])
            grad_weights = grad_context[..., rows, :] @ v[..., columns, :].mT
            grad_scores = weights * (grad_weights - shared[..., None, rows])
            grad_scores = grad_scores / math.sqrt(q.shape[-1])
            grad_v[..., columns, :] += weights.mT @ grad_context[..., rows, :]
            grad_q[..., rows, :] += grad_scores @ k[..., columns, :]
            grad_k[..., columns, :] += grad_scores.mT @ q[..., rows, :]
    return grad_q, grad_k, grad_v


@wrong(
    "flash_attention_backward",
    cause="divides the gradient that comes in, in place: the caller's tensor is changed",
    kind="state",
)
def flash_attention_backward_8(q, k, v, context, lse, grad_context, block):
    grad_q, grad_k, grad_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    root = math.sqrt(q.shape[-1])
    grad_context /= root
    shared = (context * grad_context).sum(dim=-1, keepdim=True)
    for i in range(0, q.shape[-2], block):
        rows = slice(i, i + block)
        for j in range(0, k.shape[-2], block):
            columns = slice(j, j + block)
            weights = torch.exp(_tile(q, k, i, j, block) - lse[..., rows, None])
            grad_weights = grad_context[..., rows, :] @ v[..., columns, :].mT
            grad_scores = weights * (grad_weights - shared[..., rows, :])
            grad_v[..., columns, :] += weights.mT @ grad_context[..., rows, :] * root
            grad_q[..., rows, :] += grad_scores @ k[..., columns, :]
            grad_k[..., columns, :] += grad_scores.mT @ q[..., rows, :]
    return grad_q, grad_k, grad_v


@right("flash_attention_backward", how="lists of parts that are summed and joined, keys outside")
def flash_attention_backward_9(q, k, v, context, lse, grad_context, block):
    scale = q.shape[-1] ** -0.5
    shared = torch.einsum("...qv,...qv->...q", context, grad_context)
    of_queries = [0.0] * -(-q.shape[-2] // block)
    of_keys, of_values = [], []
    for j in range(0, k.shape[-2], block):
        keys, values = k[..., j : j + block, :], v[..., j : j + block, :]
        grad_keys, grad_values = torch.zeros_like(keys), torch.zeros_like(values)
        for n, i in enumerate(range(0, q.shape[-2], block)):
            grad = grad_context[..., i : i + block, :]
            weights = (_tile(q, k, i, j, block) - lse[..., i : i + block].unsqueeze(-1)).exp()
            at_weights = torch.einsum("...qv,...kv->...qk", grad, values)
            at_scores = weights * (at_weights - shared[..., i : i + block].unsqueeze(-1)) * scale
            grad_values = grad_values + torch.einsum("...qk,...qv->...kv", weights, grad)
            grad_keys = grad_keys + at_scores.mT @ q[..., i : i + block, :]
            of_queries[n] = of_queries[n] + at_scores @ keys
        of_keys.append(grad_keys)
        of_values.append(grad_values)
    return torch.cat(of_queries, -2), torch.cat(of_keys, -2), torch.cat(of_values, -2)


@right("flash_attention_backward", how="what a row shares by a first walk over its tiles")
def flash_attention_backward_10(q, k, v, context, lse, grad_context, block):
    grad_q, grad_k, grad_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    root = math.sqrt(q.shape[-1])
    for i in range(0, q.shape[-2], block):
        rows = slice(i, i + block)
        grad = grad_context[..., rows, :]
        shared = 0.0
        for j in range(0, k.shape[-2], block):
            weights = torch.exp(_tile(q, k, i, j, block) - lse[..., rows, None])
            products = weights * (grad @ v[..., j : j + block, :].mT)
            shared = shared + products.sum(dim=-1, keepdim=True)
        for j in range(0, k.shape[-2], block):
            columns = slice(j, j + block)
            weights = torch.exp(_tile(q, k, i, j, block) - lse[..., rows, None])
            grad_scores = weights * (grad @ v[..., columns, :].mT - shared)
            grad_v[..., columns, :] += weights.mT @ grad
            grad_q[..., rows, :] += grad_scores @ (k[..., columns, :] / root)
            grad_k[..., columns, :] += grad_scores.mT @ (q[..., rows, :] / root)
    return grad_q, grad_k, grad_v
