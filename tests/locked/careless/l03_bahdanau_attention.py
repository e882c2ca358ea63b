"""Careless right answers to lesson 03."""

import torch

from attention.provided.models.additive_attention import attend
from attention.sequence_to_sequence import decoder_step
from tests.locked.careless import careless


@careless("additive_scores", "device", "dtype", how="pair by pair into zeros of float32")
def additive_scores_1(q, k, W_q, W_k, v):
    scores = torch.zeros(q.shape[0], q.shape[1], k.shape[1])
    for i in range(q.shape[1]):
        for j in range(k.shape[1]):
            scores[:, i, j] = torch.tanh(q[:, i] @ W_q.T + k[:, j] @ W_k.T) @ v
    return scores


@careless("additive_scores", "extra_axis", how="v with three axes in front, then a sum")
def additive_scores_2(q, k, W_q, W_k, v):
    hidden = torch.tanh((q @ W_q.T)[:, :, None, :] + (k @ W_k.T)[:, None, :, :])
    return (hidden * v[None, None, None, :]).sum(dim=-1)


@careless("additive_scores", "plain_numbers", how="feature by feature, from 0.0")
def additive_scores_3(q, k, W_q, W_k, v):
    asked, offered, total = q @ W_q.T, k @ W_k.T, 0.0
    for f in range(len(v)):
        total = total + v[f] * torch.tanh(asked[:, :, f, None] + offered[:, None, :, f])
    return total


@careless("masked_softmax", "dtype", how="writes the true keys' shares into zeros of float32")
def masked_softmax_1(scores, lengths):
    weights = torch.zeros(scores.shape, device=scores.device)
    for b, n in enumerate(lengths):
        weights[b, :, :n] = torch.softmax(scores[b, :, :n], dim=-1)
    return weights


@careless("masked_softmax", "plain_numbers", how="a mask from lists of True and False")
def masked_softmax_2(scores, lengths):
    mask = [[[j < n for j in range(scores.shape[2])]] for n in lengths.tolist()]
    hidden = ~torch.tensor(mask, device=scores.device)
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=2)


@careless("masked_softmax", "in_place", how="writes -inf into a clone")
def masked_softmax_3(scores, lengths):
    scores = scores.clone()
    for b in range(len(lengths)):
        scores[b, :, lengths[b] :] = -torch.inf
    return scores.softmax(-1)


@careless("break_masked_softmax", "plain_numbers", how="lists of numbers")
def break_masked_softmax_1():
    return torch.tensor([[[0.0, 1000]]]), torch.tensor([1])


@careless("break_masked_softmax", "seed", how="random scores, global seed, large padding")
def break_masked_softmax_2():
    torch.manual_seed(0)
    scores = torch.randn(2, 2, 4)
    scores[:, :, 3] = 500.0
    return scores, torch.tensor([3, 2])


@careless("attention_decoder_step", "extra_axis", how="an axis more for the query, and away again")
def attention_decoder_step_1(tokens, state, annotations, lengths, weights):
    asked = state[:, None, :] @ weights["W_q"].T[None]
    offered = annotations @ weights["W_k"].T[None]
    context, shares = attend(asked, offered, weights["v"], annotations, lengths)
    logits, new = decoder_step(tokens, state, context[:, 0, :], weights)
    return logits, new, shares[:, 0, :]


@careless("attention_decoder_step", "device", "dtype", how="its own softmax, in zeros of float32")
def attention_decoder_step_2(tokens, state, annotations, lengths, weights):
    B, T_k, c = annotations.shape
    shares, context = torch.zeros(B, T_k), torch.zeros(B, c)
    for b in range(B):
        n = int(lengths[b])
        hidden = torch.tanh(weights["W_q"] @ state[b] + annotations[b, :n] @ weights["W_k"].T)
        row = torch.softmax(hidden @ weights["v"], dim=0)
        shares[b, :n] = row
        context[b] = row @ annotations[b, :n]
    logits, new = decoder_step(tokens, state, context, weights)
    return logits, new, shares
