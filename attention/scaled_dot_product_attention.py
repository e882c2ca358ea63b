"""Lesson 05: attention as in the Transformer: dot products at a scale where softmax can learn."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided import demand


def dot_product_statistics(q, k):
    """Measure mean and variance of the dot products of pairs of vectors.

    q, k     (n, d_k)          row i of q is paired with row i of k
    returns  (mean, variance)  two tensors of shape (), over the n products; the variance is the
                               mean squared distance from the mean (divided by n, not n - 1)

    >>> q, k = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    >>> dot_product_statistics(q, k)  # of the products 3 and -1
    (tensor(1.), tensor(4.))
    """
    # exercise: about 3 lines
    products = (q * k).sum(dim=1)  # (n,)
    mean = products.mean()
    return mean, (products - mean).square().mean()


def softmax_gradient_norm(scores):
    """Measure how strongly the softmax weights react to their scores.

    scores   (..., T_k)  one row of scores per query
    returns  (...)       Frobenius norm of each row's Jacobian, J[i, j] = d weights[i] / d scores[j]

    >>> softmax_gradient_norm(torch.tensor([[0.0, 0.0], [0.0, math.log(3)]]))
    tensor([0.5000, 0.3750])
    """
    # exercise: about 3 lines
    weights = torch.softmax(scores, dim=-1)  # (..., T_k)
    outer = weights.unsqueeze(-1) * weights.unsqueeze(-2)  # (..., T_k, T_k)
    return torch.linalg.matrix_norm(torch.diag_embed(weights) - outer)  # (...)


def scaled_dot_product_attention(q, k, v, mask=None, return_weights=False):
    """Average the values for every query, weighted by how well each key matches it.

    q        (..., T_q, d_k)
    k        (..., T_k, d_k)
    v        (..., T_k, d_v)
    mask     None, or bool that broadcasts to (..., T_q, T_k); True = this query may attend to
             this key. Every query needs a key to attend to (lesson 06 lifts this)
    returns  context (..., T_q, d_v); with return_weights=True the pair context, weights, where
             the weights are (..., T_q, T_k)

    Refuses a mask that is not bool.
    Source: Vaswani et al. (2017), equation 1: softmax(q kᵀ / √d_k) v.

    >>> q, k = torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> scaled_dot_product_attention(q, k, v=torch.tensor([[10.0], [30.0]]))
    tensor([[20.]])
    """
    demand.masks(mask=mask)
    # exercise: about 6 lines
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T_q, T_k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)  # (..., T_q, T_k), rows sum to 1
    context = weights @ v  # (..., T_q, d_v)
    return (context, weights) if return_weights else context


class SelfAttentionHead(nn.Module):
    """One attention head: queries, keys and values are three views of the same sequence.

    d_model  length of the input vectors
    d_head   length of queries, keys and values

    The projections W_q, W_k and W_v are linear layers without bias.
    """

    def __init__(self, d_model, d_head):
        super().__init__()
        # exercise: about 3 lines
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x, mask=None):
        """Let every position of x look at every position: (B, T, d_model) -> (B, T, d_head).

        mask  None, or bool that broadcasts to (B, T, T); True = may attend

        Refuses a mask that is not bool.
        """
        demand.masks(mask=mask)
        # exercise: about 2 lines
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)  # (B, T, d_head) each
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (B, T, d_head)


def attention_multiplications(T_q, T_k, d_k, d_v):
    """Count the multiplications of numbers in attention's two matrix products.

    T_q, T_k  how many queries, how many keys and values
    d_k, d_v  length of a query or key, length of a value
    returns   an int; the scale, the softmax and the projections are left out

    Refuses numbers below 0.

    >>> attention_multiplications(T_q=2, T_k=3, d_k=10, d_v=100)
    660
    """
    demand.counts(0, T_q=T_q, T_k=T_k, d_k=d_k, d_v=d_v)
    # exercise: about 1 line
    return T_q * T_k * d_k + T_q * T_k * d_v


def rnn_multiplications(T, d):
    """Count the multiplications of a plain RNN: two (d, d) matrices at each of T steps."""
    demand.counts(0, T=T, d=d)
    return T * 2 * d * d


def attention_backward(q, k, v, weights, grad_context):
    """Carry a gradient back through scaled dot-product attention, without autograd.

    q             (..., T_q, d_k)
    k             (..., T_k, d_k)
    v             (..., T_k, d_v)
    weights       (..., T_q, T_k)  softmax of the scaled scores, kept from the forward pass
    grad_context  (..., T_q, d_v)  gradient of a loss with respect to the context
    returns       (grad_q, grad_k, grad_v), shaped like q, k and v
    """
    # exercise: about 6 lines
    grad_v = weights.transpose(-2, -1) @ grad_context  # (..., T_k, d_v)
    grad_weights = grad_context @ v.transpose(-2, -1)  # (..., T_q, T_k)
    # A row of weights sums to 1, so a change that all its scores share has no effect.
    shared = (weights * grad_weights).sum(dim=-1, keepdim=True)  # (..., T_q, 1)
    grad_scores = weights * (grad_weights - shared) / math.sqrt(q.shape[-1])  # (..., T_q, T_k)
    return grad_scores @ k, grad_scores.transpose(-2, -1) @ q, grad_v


# Inputs on which a wrong answer shows


def break_scaled_dot_product_attention():
    """Return an input (q, k, v) on which `almost_right` is wrong."""
    # exercise: about 3 lines
    q, k = torch.tensor([[1.0, 0.0]]), torch.tensor([[4.0, 0.0], [0.0, 4.0]])
    v = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # d_v = 3, d_k = 2
    return q, k, v
