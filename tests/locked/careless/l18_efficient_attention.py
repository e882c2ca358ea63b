"""Careless right answers to lesson 18."""

import math

import torch

from attention.efficient_attention import positive_features, tile_scores
from tests.locked.careless import careless


@careless("online_softmax", "device", how="a scalar tensor beside where")
def online_softmax_1(context, total, maximum, scores, v):
    new = torch.maximum(maximum, scores.amax(dim=-1))
    shift = torch.where(new == -math.inf, torch.tensor(0.0), new)
    old, powers = torch.exp(maximum - shift), torch.exp(scores - shift.unsqueeze(-1))
    total = total * old + powers.sum(dim=-1)
    context = context * old.unsqueeze(-1) + powers @ v
    return context, total, new


@careless("online_softmax", "other_order", how="takes in the keys of the block one by one")
def online_softmax_2(context, total, maximum, scores, v):
    for j in range(scores.shape[-1]):
        score = scores[..., j]
        new = torch.maximum(maximum, score)
        shift = new.masked_fill(new == -math.inf, 0.0)
        old, power = (maximum - shift).exp(), (score - shift).exp()
        total = old * total + power
        context = old[..., None] * context + power[..., None] * v[..., j, None, :]
        maximum = new
    return context, total, maximum


@careless("flash_attention", "dtype", how="blocks into zeros of float32")
def flash_attention_1(q, k, v, block, causal=False):
    context = torch.zeros(*q.shape[:-1], v.shape[-1], device=q.device)
    lse = torch.zeros(q.shape[:-1], device=q.device)
    for i in range(0, q.shape[-2], block):
        rows = slice(i, i + block)
        top = torch.full(q[..., rows, 0].shape, -math.inf, device=q.device)
        total = torch.zeros(top.shape, device=q.device)
        summed = torch.zeros(*top.shape, v.shape[-1], device=q.device)
        for j in range(0, k.shape[-2], block):
            scores = tile_scores(q, k, i, j, block, causal)
            new = torch.maximum(top, scores.amax(dim=-1))
            old, powers = torch.exp(top - new), torch.exp(scores - new.unsqueeze(-1))
            total = total * old + powers.sum(dim=-1)
            summed = summed * old.unsqueeze(-1) + powers @ v[..., j : j + block, :]
            top = new
        context[..., rows, :] = summed / total.unsqueeze(-1)
        lse[..., rows] = top + torch.log(total)
    return context, lse


@careless("flash_attention", "plain_numbers", how="sums that start at 0.0, no maximum at first")
def flash_attention_2(q, k, v, block, causal=False):
    contexts, logs = [], []
    for i in range(0, q.shape[-2], block):
        total, summed, top = 0.0, 0.0, None
        for j in range(0, k.shape[-2], block):
            scores = tile_scores(q, k, i, j, block, causal)
            best = scores.amax(dim=-1, keepdim=True)
            new = best if top is None else torch.maximum(top, best)
            old = 0.0 if top is None else torch.exp(top - new)
            powers = torch.exp(scores - new)
            total = total * old + powers.sum(dim=-1, keepdim=True)
            summed = summed * old + powers @ v[..., j : j + block, :]
            top = new
        contexts.append(summed / total)
        logs.append((top + total.log()).squeeze(-1))
    return torch.cat(contexts, dim=-2), torch.cat(logs, dim=-1)


@careless("linear_attention", "dtype", how="a column of ones of float32 for the denominator")
def linear_attention_1(q, k, v):
    ones = torch.ones(*k.shape[:-1], 1, device=k.device)
    sums = positive_features(k).mT @ torch.cat([v, ones], dim=-1)
    both = positive_features(q) @ sums
    return both[..., :-1] / both[..., -1:]


@careless("linear_attention", "plain_numbers", how="feature by feature, from 0.0")
def linear_attention_2(q, k, v):
    q, k = positive_features(q), positive_features(k)
    above, below = 0.0, 0.0
    for f in range(q.shape[-1]):
        feature = k[..., f : f + 1]
        above = above + q[..., f : f + 1] * (feature * v).sum(dim=-2, keepdim=True)
        below = below + q[..., f : f + 1] * feature.sum(dim=-2, keepdim=True)
    return above / below


@careless("linear_attention", "other_order", how="divides the queries' features first")
def linear_attention_3(q, k, v):
    q, k = positive_features(q), positive_features(k)
    q = q / torch.einsum("...td,...d->...t", q, k.sum(dim=-2)).unsqueeze(-1)
    return torch.einsum("...td,...df->...tf", q, torch.einsum("...sd,...sf->...df", k, v))


@careless("linear_attention_step", "in_place", how="adds in place to clones")
def linear_attention_step_1(q, k, v, state, normaliser):
    q, k = positive_features(q), positive_features(k)
    state, normaliser = state.clone(), normaliser.clone()
    state += k.unsqueeze(-1) * v.unsqueeze(-2)
    normaliser += k
    context = (q.unsqueeze(-2) @ state).squeeze(-2)
    return context / (q * normaliser).sum(dim=-1, keepdim=True), state, normaliser


@careless("linear_attention_step", "plain_numbers", how="reads out feature by feature, from 0.0")
def linear_attention_step_2(q, k, v, state, normaliser):
    q, k = positive_features(q), positive_features(k)
    state = state + torch.einsum("...d,...e->...de", k, v)
    normaliser = normaliser + k
    above, below = 0.0, 0.0
    for f in range(q.shape[-1]):
        above = above + q[..., f, None] * state[..., f, :]
        below = below + q[..., f, None] * normaliser[..., f, None]
    return above / below, state, normaliser


@careless("flash_attention_backward", "in_place", how="adds each tile to slices in place")
def flash_attention_backward_1(q, k, v, context, lse, grad_context, block):
    grad_q, grad_k, grad_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    shared, scale = (context * grad_context).sum(dim=-1, keepdim=True), 1 / math.sqrt(q.shape[-1])
    for i in range(0, q.shape[-2], block):
        a = slice(i, i + block)
        for j in range(0, k.shape[-2], block):
            b = slice(j, j + block)
            weights = torch.exp(tile_scores(q, k, i, j, block) - lse[..., a, None])
            grad_v[..., b, :] += weights.mT @ grad_context[..., a, :]
            grad_weights = grad_context[..., a, :] @ v[..., b, :].mT
            grad_scores = weights * (grad_weights - shared[..., a, :]) * scale
            grad_q[..., a, :] += grad_scores @ k[..., b, :]
            grad_k[..., b, :] += grad_scores.mT @ q[..., a, :]
    return grad_q, grad_k, grad_v


@careless("flash_attention_backward", "plain_numbers", "other_order", how="columns first, from 0.0")
def flash_attention_backward_2(q, k, v, context, lse, grad_context, block):
    shared = (context * grad_context).sum(dim=-1)
    rows = range(0, q.shape[-2], block)
    parts_q, parts_k, parts_v = [0.0 for _ in rows], [], []
    for j in range(0, k.shape[-2], block):
        keys, values, part_k, part_v = k[..., j : j + block, :], v[..., j : j + block, :], 0.0, 0.0
        for n, i in enumerate(rows):
            a = slice(i, i + block)
            weights = torch.exp(tile_scores(q, k, i, j, block) - lse[..., a].unsqueeze(-1))
            incoming = grad_context[..., a, :]
            grad = weights * (incoming @ values.mT - shared[..., a].unsqueeze(-1))
            grad = grad / q.shape[-1] ** 0.5
            parts_q[n] = parts_q[n] + grad @ keys
            part_k = part_k + grad.mT @ q[..., a, :]
            part_v = part_v + weights.mT @ incoming
        parts_k.append(part_k)
        parts_v.append(part_v)
    return tuple(torch.cat(parts, dim=-2) for parts in (parts_q, parts_k, parts_v))
