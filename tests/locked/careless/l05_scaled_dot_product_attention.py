"""Careless right answers to lesson 05."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tests.locked.careless import careless


@careless("dot_product_statistics", "numpy", how="measures in NumPy")
def dot_product_statistics_1(q, k):
    products = (q * k).sum(dim=1).detach().numpy()
    return torch.tensor(products.mean()), torch.tensor(products.var())


@careless("dot_product_statistics", "device", "dtype", how="products into zeros of float32")
def dot_product_statistics_2(q, k):
    products = torch.zeros(len(q))
    for i in range(len(q)):
        products[i] = torch.dot(q[i], k[i])
    mean = products.sum() / len(q)
    return mean, ((products - mean) ** 2).sum() / len(q)


@careless("dot_product_statistics", "plain_numbers", how="totals that start at 0.0")
def dot_product_statistics_3(q, k):
    products, total, squares = (q * k).sum(dim=1), 0.0, 0.0
    for product in products:
        total = total + product
    mean = total / len(products)
    for product in products:
        squares = squares + (product - mean) ** 2
    return mean, squares / len(products)


@careless("softmax_gradient_norm", "device", "dtype", how="an identity of float32 without a device")
def softmax_gradient_norm_1(scores):
    p = torch.softmax(scores, dim=-1)
    diagonal = torch.eye(p.shape[-1]) * p.unsqueeze(-1)
    jacobian = diagonal - p.unsqueeze(-1) * p.unsqueeze(-2)
    return jacobian.square().sum(dim=(-2, -1)).sqrt()


@careless("softmax_gradient_norm", "plain_numbers", how="adds up the squares from 0.0")
def softmax_gradient_norm_2(scores):
    p, total = torch.softmax(scores, dim=-1), 0.0
    for i in range(p.shape[-1]):
        for j in range(p.shape[-1]):
            entry = p[..., i] * ((1.0 if i == j else 0.0) - p[..., j])
            total = total + entry**2
    return total**0.5


@careless("scaled_dot_product_attention", "device", how="a scalar tensor beside where")
def scaled_dot_product_attention_1(q, k, v, mask=None, return_weights=False):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(-math.inf))
    weights = torch.softmax(scores, dim=-1)
    context = weights @ v
    return (context, weights) if return_weights else context


@careless("scaled_dot_product_attention", "device", "dtype", how="adds zeros and -inf of float32")
def scaled_dot_product_attention_2(q, k, v, mask=None, return_weights=False):
    scores = (q @ k.mT) / k.shape[-1] ** 0.5
    hidden = torch.zeros(scores.shape)
    if mask is not None:
        hidden[~mask.expand(scores.shape)] = -math.inf
    weights = (scores + hidden).softmax(dim=-1)
    if return_weights:
        return weights @ v, weights
    return weights @ v


@careless(
    "scaled_dot_product_attention", "extra_axis", "other_type", how="products with one axis more"
)
def scaled_dot_product_attention_3(q, k, v, mask=None, return_weights=False):
    scores = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(dim=-1) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    context = (weights.unsqueeze(-1) * v.unsqueeze(-3)).sum(dim=-2)
    return (context, weights) if return_weights else context


@careless("break_scaled_dot_product_attention", "seed", how="random tensors, global seed")
def break_scaled_dot_product_attention_1():
    torch.manual_seed(0)
    return torch.randn(2, 4), torch.randn(3, 4), torch.randn(3, 2)


@careless("break_scaled_dot_product_attention", "plain_numbers", how="lists of numbers")
def break_scaled_dot_product_attention_2():
    q, k = torch.tensor([[1.0, 0, 0, 0]]), torch.tensor([[4.0, 0, 0, 0], [0, 0, 0, 0]])
    return q, k, torch.tensor([[0.0], [1]])


@careless("SelfAttentionHead", "device", how="its own attention, a scalar tensor beside where")
class SelfAttentionHead_1(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x, mask=None):
        scores = self.W_q(x) @ self.W_k(x).mT / math.sqrt(self.W_q.out_features)
        if mask is not None:
            scores = torch.where(mask, scores, torch.tensor(float("-inf")))
        return torch.softmax(scores, dim=-1) @ self.W_v(x)


@careless("SelfAttentionHead", "module_state", how="keeps q, k and v in attributes")
class SelfAttentionHead_2(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x, mask=None):
        self.q, self.k, self.v = self.W_q(x), self.W_k(x), self.W_v(x)
        return F.scaled_dot_product_attention(self.q, self.k, self.v, attn_mask=mask)


@careless("SelfAttentionHead", "device", how="a mask of True without a device where none is given")
class SelfAttentionHead_3(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        for name in ("W_q", "W_k", "W_v"):
            setattr(self, name, nn.Linear(d_model, d_head, bias=False))

    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@careless("attention_multiplications", "other_type", how="returns NumPy's int")
def attention_multiplications_1(T_q, T_k, d_k, d_v):
    return np.prod([T_q, d_k, T_k]) + np.prod([T_q, T_k, d_v])


@careless("attention_multiplications", "plain_numbers", how="adds up query by query")
def attention_multiplications_2(T_q, T_k, d_k, d_v):
    count = 0
    for _ in range(T_q):
        count += T_k * d_k
        count += T_k * d_v
    return count


@careless("attention_backward", "other_order", how="scales the gradient of the weights first")
def attention_backward_1(q, k, v, weights, grad_context):
    grad_v = torch.einsum("...qk,...qd->...kd", weights, grad_context)
    grad_weights = torch.einsum("...qd,...kd->...qk", grad_context, v) / math.sqrt(q.shape[-1])
    shared = (weights * grad_weights).sum(dim=-1, keepdim=True)
    grad_scores = weights * grad_weights - weights * shared
    return grad_scores @ k, grad_scores.mT @ q, grad_v


@careless("attention_backward", "in_place", how="works in place on the gradient of the weights")
def attention_backward_2(q, k, v, weights, grad_context):
    grad = grad_context @ v.transpose(-2, -1)
    grad -= (grad * weights).sum(dim=-1, keepdim=True)
    grad *= weights
    grad /= q.shape[-1] ** 0.5
    return grad @ k, grad.transpose(-2, -1) @ q, weights.transpose(-2, -1) @ grad_context


@careless("attention_backward", "device", "dtype", how="row by row into zeros of float32")
def attention_backward_3(q, k, v, weights, grad_context):
    grad_scores = torch.zeros(weights.shape)
    for i in range(weights.shape[-2]):
        p, g = weights[..., i, :], (v @ grad_context[..., i, :, None]).squeeze(-1)
        grad_scores[..., i, :] = p * (g - (p * g).sum(dim=-1, keepdim=True))
    grad_scores = grad_scores / math.sqrt(k.shape[-1])
    return grad_scores @ k, grad_scores.mT @ q, weights.mT @ grad_context
