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


@careless("encode", "device", "dtype", how="each state into a row of zeros of float32")
def encode_1(states, lengths):
    result = torch.zeros(states.shape[0], states.shape[2])
    for b, n in enumerate(lengths):
        result[b] = states[b, n - 1]
    return result


@careless("encode", "device", how="numbers of rows without a device")
def encode_2(states, lengths):
    return states[torch.arange(len(states)), lengths - 1]


@careless("encode", "plain_numbers", how="Python ints as indices")
def encode_3(states, lengths):
    return torch.stack([states[b, n - 1] for b, n in enumerate(lengths.tolist())])


@careless("shift_right", "device", how="a column of BOS without a device")
def shift_right_1(target):
    return torch.cat([torch.full((len(target), 1), BOS), target[:, :-1]], dim=1)


@careless("shift_right", "in_place", how="writes into a clone")
def shift_right_2(target):
    read = target.clone()
    read[:, 1:] = target[:, :-1]
    read[:, 0] = BOS
    return read


@careless("shift_right", "numpy", how="rolls in NumPy and overwrites the first column")
def shift_right_3(target):
    read = np.roll(target.numpy(), 1, axis=1)
    read[:, 0] = BOS
    return torch.from_numpy(read)


@careless("shift_right", "plain_numbers", "device", how="lists of Python ints")
def shift_right_4(target):
    return torch.tensor([[BOS, *row[:-1]] for row in target.tolist()])


@careless("masked_cross_entropy", "plain_numbers", how="a total from 0.0 and a count from 0")
def masked_cross_entropy_1(logits, target):
    logs = torch.log_softmax(logits, dim=-1)
    total, count = 0.0, 0
    for b, row in enumerate(target.tolist()):
        for t, token in enumerate(row):
            if token != PAD:
                total = total - logs[b, t, token]
                count += 1
    return total / count


@careless("masked_cross_entropy", "device", "dtype", how="losses into zeros of float32")
def masked_cross_entropy_2(logits, target):
    losses = torch.zeros(target.shape)
    for b in range(target.shape[0]):
        for t in range(target.shape[1]):
            if target[b, t] != PAD:
                losses[b, t] = -torch.log_softmax(logits[b, t], dim=0)[target[b, t]]
    return losses.sum() / (target != PAD).sum()


@careless("masked_cross_entropy", "other_order", how="logsumexp less the score of the true token")
def masked_cross_entropy_3(logits, target):
    picked = logits.gather(2, target.unsqueeze(2)).squeeze(2)
    return (torch.logsumexp(logits, dim=2) - picked)[target != PAD].mean()


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
