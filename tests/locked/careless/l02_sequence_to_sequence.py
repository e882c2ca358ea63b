"""Careless right answers to lesson 02."""

import numpy as np
import torch

from attention.provided.data.tokens import BOS, EOS, PAD
from attention.sequence_to_sequence import decoder_step
from tests.locked.careless import careless


@careless("gru_step", "device", "dtype", how="each sequence into a row of zeros of float32")
def gru_step_1(x, h, W_x, W_h, b_x, b_h):
    d = h.shape[1]
    new = torch.zeros(len(x), d)
    for b in range(len(x)):
        gx, gh = W_x @ x[b] + b_x, W_h @ h[b] + b_h
        r = torch.sigmoid(gx[:d] + gh[:d])
        z = torch.sigmoid(gx[d : 2 * d] + gh[d : 2 * d])
        n = torch.tanh(gx[2 * d :] + r * gh[2 * d :])
        new[b] = (1 - z) * n + z * h[b]
    return new


@careless("gru_step", "other_order", how="the candidate plus z times what is missing to the state")
def gru_step_2(x, h, W_x, W_h, b_x, b_h):
    x_r, x_z, x_n = (x @ W_x.T + b_x).chunk(3, dim=1)
    h_r, h_z, h_n = (h @ W_h.T + b_h).chunk(3, dim=1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return n + z * (h - n)


@careless("break_masked_cross_entropy", "seed", how="random logits, global seed")
def break_masked_cross_entropy_1():
    torch.manual_seed(0)
    return torch.randn(2, 3, 5), torch.tensor([[3, 4, 1], [2, 0, 0]])


@careless("break_masked_cross_entropy", "plain_numbers", how="lists of numbers")
def break_masked_cross_entropy_2():
    logits = [[[0.0, 0, 0], [0, 0, 0]], [[0, 0, 5], [0, 0, 0]]]
    return torch.tensor(logits), torch.tensor([[1, 1], [2, 0]])


@careless("greedy_decode", "device", how="PAD as a scalar tensor beside where")
def greedy_decode_1(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while len(written) < max_length and not ended.all():
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = torch.where(ended, torch.tensor(PAD), logits.argmax(dim=1))
        written.append(tokens)
        ended = ended | (tokens == EOS)
    return torch.stack(written, dim=1)


@careless("greedy_decode", "device", "plain_numbers", how="lists of ids, a new tensor at each step")
def greedy_decode_2(state, context, weights, max_length):
    B = state.shape[0]
    tokens = torch.tensor([BOS] * B)
    ended = [False] * B
    rows = [[] for _ in range(B)]
    for _ in range(max_length):
        logits, state = decoder_step(tokens, state, context, weights)
        for b, best in enumerate(logits.argmax(dim=1).tolist()):
            rows[b].append(PAD if ended[b] else best)
            ended[b] = ended[b] or best == EOS
        tokens = torch.tensor([row[-1] for row in rows])
        if all(ended):
            break
    return torch.tensor(rows)


@careless("greedy_decode", "numpy", how="keeps what is written in NumPy")
def greedy_decode_3(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    for _ in range(max_length):
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1).masked_fill(ended, PAD)
        written.append(tokens.numpy())
        ended = ended | (tokens == EOS)
        if ended.numpy().all():
            break
    return torch.from_numpy(np.stack(written, axis=1))


@careless("reverse_source", "device", how="zeros without a device")
def reverse_source_1(source, lengths):
    result = torch.zeros(source.shape, dtype=source.dtype)
    for b, n in enumerate(lengths):
        result[b, :n] = source[b, :n].flip(0)
        result[b, n:] = source[b, n:]
    return result


@careless("reverse_source", "in_place", "plain_numbers", how="writes into a clone")
def reverse_source_2(source, lengths):
    result = source.clone()
    for b, n in enumerate(lengths.tolist()):
        result[b, :n] = source[b, :n].flip(0)
    return result


@careless("reverse_source", "device", how="a table of indices from arange without a device")
def reverse_source_3(source, lengths):
    step, n = torch.arange(source.shape[1]), lengths[:, None]
    index = torch.where(step < n, n - 1 - step, step)
    return source[torch.arange(len(source))[:, None], index]
