"""Careless right answers to lesson 12."""

import numpy as np
import torch

from tests.locked.careless import careless


@careless("training_flops", "other_type", how="returns NumPy's int")
def training_flops_1(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    T_k, T_q, d = np.int64(T_k), np.int64(T_q), np.int64(d_model)
    encoder = 4 * T_k * d**2 + 2 * T_k**2 * d + 2 * T_k * d * d_ff
    decoder = 4 * T_q * d**2 + 2 * T_q**2 * d + 2 * T_q * d * d_ff
    cross = 2 * (T_q + T_k) * d**2 + 2 * T_q * T_k * d
    return 6 * (n_layers * (encoder + decoder + cross) + T_q * d * vocab_size)


@careless("training_flops", "plain_numbers", how="a list of products, added up layer by layer")
def training_flops_2(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    products = []
    for rows, keys in ((T_k, T_k), (T_q, T_q), (T_q, T_k)):
        products += [(rows, d_model, d_model)] * 2 + [(keys, d_model, d_model)] * 2
        products += [(rows, d_model, keys), (rows, keys, d_model)]
    for rows in (T_k, T_q):
        products += [(rows, d_model, d_ff), (rows, d_ff, d_model)]
    total = 0
    for _ in range(n_layers):
        for a, b, c in products:
            total += a * b * c
    total += T_q * d_model * vocab_size
    return 3 * 2 * total


@careless("loss_scaling", "numpy", how="looks for infinite numbers in NumPy")
def loss_scaling_1(gradients, scale, good_steps=0, patience=2000):
    for gradient in gradients:
        if not np.isfinite(gradient.numpy()).all():
            return None, scale / 2, 0
    unscaled = [gradient.float() / scale for gradient in gradients]
    good_steps += 1
    if good_steps >= patience:
        return unscaled, scale * 2, 0
    return unscaled, scale, good_steps


@careless("loss_scaling", "device", how="adds into zeros of float32 without a device")
def loss_scaling_2(gradients, scale, good_steps=0, patience=2000):
    unscaled = []
    for gradient in gradients:
        if gradient.isinf().any() or gradient.isnan().any():
            return None, scale * 0.5, 0
        result = torch.zeros(gradient.shape, dtype=torch.float32)
        result += gradient
        unscaled.append(result / scale)
    if good_steps + 1 < patience:
        return unscaled, scale, good_steps + 1
    return unscaled, scale * 2.0, 0


@careless("data_parallel_gradients", "plain_numbers", how="totals that start at 0.0")
def data_parallel_gradients_1(gradients, tokens):
    joined = []
    for parts in zip(*gradients, strict=True):
        total = 0.0
        for part, count in zip(parts, tokens, strict=True):
            total = total + part * (count / sum(tokens))
        joined.append(total)
    return joined


@careless("data_parallel_gradients", "device", "dtype", how="shares as a float32 tensor")
def data_parallel_gradients_2(gradients, tokens):
    shares = torch.tensor(tokens) / sum(tokens)
    joined = []
    for parts in zip(*gradients, strict=True):
        total = torch.zeros(parts[0].shape)
        for share, part in zip(shares, parts, strict=True):
            total += share * part
        joined.append(total)
    return joined


@careless("data_parallel_gradients", "numpy", how="NumPy's weighted average")
def data_parallel_gradients_3(gradients, tokens):
    return [
        torch.tensor(
            np.average([part.numpy() for part in parts], axis=0, weights=tokens),
            dtype=parts[0].dtype,
        )
        for parts in zip(*gradients, strict=True)
    ]


@careless("break_data_parallel_gradients", "plain_numbers", how="two processes of one number each")
def break_data_parallel_gradients_1():
    return [[torch.tensor([1.0])], [torch.tensor([5.0])]], [3, 1]


@careless(
    "break_data_parallel_gradients", "seed", "other_type", how="random gradients; NumPy's ints"
)
def break_data_parallel_gradients_2():
    torch.manual_seed(0)
    gradients = [[torch.randn(2, 3), torch.randn(3)] for _ in range(3)]
    return gradients, list(np.array([7, 1, 2]))
