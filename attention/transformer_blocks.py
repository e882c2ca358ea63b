"""Lesson 09: the layers of a Transformer, and what lets us stack many of them."""

import torch
from torch import nn

from attention.masked_attention import causal_mask, combine_masks
from attention.multi_head_attention import Sublayers
from attention.provided import demand


class LayerNorm(nn.Module):
    """Give every vector mean 0 and variance 1, then a learned scale and shift per feature.

    d_model  length of the vectors
    eps      added to the variance, so that a constant vector does not divide by 0

    A vector far from 0 keeps its digits: its mean is subtracted before anything is squared.
    The parameters `weight` and `bias`, (d_model,) each, begin as ones and zeros. nn.LayerNorm is
    the same in one call; the layers below use it. In float16, where 300² is infinite, it computes
    the squares in float32.
    Refuses an eps below 0.
    Source: Ba, Kiros and Hinton (2016), equations 3 and 4.

    >>> LayerNorm(d_model=4, eps=0.0)(torch.tensor([1.0, 1.0, 5.0, 5.0]))
    tensor([-1., -1.,  1.,  1.], grad_fn=<AddBackward0>)
    """

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        demand.within(0, eps=eps)
        self.eps = eps
        # exercise: about 2 lines
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        """Normalise over the last axis: (..., d_model) to (..., d_model)."""
        # exercise: about 4 lines
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)  # (..., 1)
        normed = centred / torch.sqrt(variance + self.eps)  # (..., d_model)
        return normed * self.weight + self.bias


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between them, applied to every position separately.

    d_model  length of the vectors that come in and go out
    d_ff     number of hidden units, usually 4 · d_model
    dropout  probability that a hidden unit is dropped in training

    Refuses a dropout that is not from 0 to 1.
    Source: Vaswani et al. (2017), section 3.3, equation 2.

    >>> FeedForward(d_model=12, d_ff=48)(torch.zeros(2, 5, 12)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        demand.within(0, 1, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        # exercise: about 2 lines
        self.linear_1 = nn.Linear(d_model, d_ff)
        self.linear_2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        """Work on every position separately: (..., d_model) to (..., d_model)."""
        # exercise: about 2 lines
        hidden = torch.relu(self.linear_1(x))  # (..., d_ff)
        return self.linear_2(self.dropout(hidden))  # (..., d_model)


class EncoderLayer(Sublayers):
    """Self-attention, then a feed-forward network, each with residual and LayerNorm.

    The arguments are d_model, n_heads, d_ff, dropout, pre_norm and fused, as in `Sublayers`.
    Source: Vaswani et al. (2017), section 3.1, for post-norm; Xiong et al. (2020) for pre-norm.

    >>> EncoderLayer(d_model=12, n_heads=3, d_ff=48, pre_norm=True)(torch.zeros(2, 5, 12)).shape
    torch.Size([2, 5, 12])
    """

    def forward(self, x, mask=None):
        """Update every position from what it sees, then from itself.

        x        (B, T, d_model)
        mask     None, or bool that broadcasts to (B, T, T); True = may attend
        returns  (B, T, d_model)
        """
        # exercise: about 6 lines
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


class DecoderLayer(Sublayers):
    """Causal self-attention, attention to the encoder's output, and a feed-forward network.

    The arguments are d_model, n_heads, d_ff, dropout, pre_norm and fused, as in `Sublayers`.
    Source: Vaswani et al. (2017), section 3.1, for post-norm; Xiong et al. (2020) for pre-norm.

    >>> layer = DecoderLayer(d_model=12, n_heads=3, d_ff=48)
    >>> layer(torch.zeros(2, 5, 12), memory=torch.zeros(2, 7, 12)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, pre_norm=False, fused=False):
        super().__init__(d_model, n_heads, d_ff, dropout, pre_norm, fused, cross=True)

    def forward(self, x, memory, mask=None, memory_mask=None):
        """Update every target position from its past, then from the source, then from itself.

        x            (B, T_q, d_model)  the target
        memory       (B, T_k, d_model)  the encoder's output; it is not normalised here
        mask         None, or bool that broadcasts to (B, T_q, T_q): which target positions are
                     real; the causal mask is added here
        memory_mask  None, or bool that broadcasts to (B, T_q, T_k): real source positions
        returns      (B, T_q, d_model)
        """
        # exercise: about 10 lines
        mask = combine_masks(causal_mask(x.shape[1], x.device), mask)  # (..., T_q, T_q)
        if self.pre_norm:
            h = self.norm_1(x)
            x = x + self.dropout(self.attention(h, h, h, mask))
            h = self.norm_2(x)
            x = x + self.dropout(self.cross_attention(h, memory, memory, memory_mask))
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)))
        x = self.norm_2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


def layer_parameters(d_model, d_ff, cross=False):
    """Count the parameters of an encoder layer or, with cross=True, of a decoder layer.

    d_model  length of the vectors
    d_ff     number of hidden units
    cross    whether there is an attention to a second sequence, with a norm of its own
    returns  an int; all linear layers and norms have biases

    Refuses sizes below 1.

    >>> layer_parameters(d_model=512, d_ff=2048)
    3152384
    """
    demand.counts(d_model=d_model, d_ff=d_ff)
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    if cross:
        return 2 * attention + feed_forward + 3 * norm
    return attention + feed_forward + 2 * norm


def gradient_norms(x, weights, skip):
    """Send x through a stack of small layers and measure the gradient that each layer gets.

    x        (B, d_model)                    what goes into the first layer
    weights  (n_layers, d_model, d_model)    layer l turns h into tanh(h @ weights[l])
    skip     whether h is added to that: a residual connection
    returns  (n_layers,)  norm of the gradient of the loss with respect to weights[l]; the loss is
                          the mean of all squared numbers that leave the last layer

    >>> one = torch.ones(1, 1)
    >>> gradient_norms(one, torch.zeros(2, 1, 1), skip=True)  # every layer passes the 1 on
    tensor([2., 2.])
    """
    # exercise: about 8 lines
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        update = torch.tanh(h @ weight)  # (B, d_model)
        h = h + update if skip else update
    loss = h.square().mean()
    (gradient,) = torch.autograd.grad(loss, weights)  # (n_layers, d_model, d_model)
    return gradient.flatten(1).norm(dim=1)
