"""Lesson 07: several heads at once, each with a question of its own."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from attention.provided import demand


def split_heads(x, n_heads):
    """Cut every vector into n_heads equal pieces, one for each head.

    x        (B, T, d_model)
    returns  (B, H, T, d_head)  head h holds features h · d_head … (h + 1) · d_head - 1

    Raises ValueError if n_heads does not divide d_model.
    Also for less than one head.

    >>> split_heads(torch.tensor([[[1, 2, 3, 4], [5, 6, 7, 8]]]), n_heads=2)
    tensor([[[[1, 2],
              [5, 6]],
    <BLANKLINE>
             [[3, 4],
              [7, 8]]]])
    """
    demand.counts(n_heads=n_heads)
    B, T, d_model = x.shape
    if d_model % n_heads:
        raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
    x = x.reshape(B, T, n_heads, d_model // n_heads)  # (B, T, H, d_head)
    return x.transpose(1, 2)  # (B, H, T, d_head)


def merge_heads(x):
    """Put the pieces of all heads side by side again: the inverse of split_heads.

    x        (B, H, T, d_head)
    returns  (B, T, H · d_head)

    >>> x = torch.arange(24).view(1, 3, 8)
    >>> torch.equal(merge_heads(split_heads(x, n_heads=4)), x)
    True
    """
    B, H, T, d_head = x.shape
    return x.transpose(1, 2).reshape(B, T, H * d_head)  # (B, T, H · d_head)


def attend(q, k, v, mask=None, dropout=0.0, fused=False):
    """Masked attention with dropout on the weights; returns context and weights.

    q, k, v  (B, H, T_q, d_head), (B, H, T_k, d_head), (B, H, T_k, d_head)
    mask     None, or bool that broadcasts to (B, H, T_q, T_k); True = may attend
    dropout  probability that a weight is dropped in this call
    fused    use PyTorch's fused attention, often faster; it returns no weights: they are None

    Raises ValueError if there are more or fewer keys than values, for a mask that is not bool, and
    for a dropout that is not from 0 to 1.
    """
    demand.masks(mask=mask)
    demand.within(0, 1, dropout=dropout)
    if k.shape[-2] != v.shape[-2]:  # fused, it would read what lies behind the shorter one
        raise ValueError(f"each key needs a value: {k.shape[-2]} keys, {v.shape[-2]} values")
    if fused:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout), None
    context, weights = masked_attention(q, k, v, mask, return_weights=True)
    if dropout:
        context = F.dropout(weights, dropout) @ v
    return context, weights


class MultiHeadAttention(nn.Module):
    """Attention by several heads in parallel, each in its own part of the vectors.

    d_model  length of the vectors that come in and go out
    n_heads  number of heads; each works with d_head = d_model / n_heads features
    dropout  probability that a weight is dropped in training
    fused    use PyTorch's fused attention whenever the weights are not asked for

    The projections W_q, W_k, W_v and W_o are linear layers with bias, (d_model, d_model) each.
    Raises ValueError if n_heads does not divide d_model.
    Also for a size below 1, a dropout that is not from 0 to 1, and a mask that is not bool.

    Source: Vaswani et al. (2017), section 3.2.2.

    >>> attention = MultiHeadAttention(d_model=12, n_heads=3)
    >>> x, memory = torch.zeros(2, 5, 12), torch.zeros(2, 7, 12)
    >>> attention(x, memory, memory).shape
    torch.Size([2, 5, 12])
    """

    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__()
        demand.counts(d_model=d_model, n_heads=n_heads)
        demand.within(0, 1, dropout=dropout)
        if d_model % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.dropout, self.fused = dropout, fused
        # exercise: about 4 lines
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        """Let every position of query look at every position of key, once per head.

        query       (B, T_q, d_model)
        key, value  (B, T_k, d_model) each; for self-attention, pass the same x three times
        mask        None, or bool that broadcasts to (B, T_q, T_k); True = may attend
        head_mask   None, or a gate per head, (H,) or (B, H): its context is multiplied by it
        returns     (B, T_q, d_model); with return_weights=True also weights (B, H, T_q, T_k)
        """
        if mask is not None and mask.dim() == 3:  # (T_q, T_k) fits as it is, and runs faster
            mask = mask.unsqueeze(1)  # (B, 1, T_q, T_k): the same for all heads
        fused = self.fused and not return_weights
        heads = (self.n_heads, self.d_head)
        # exercise: about 8 lines
        q = self.W_q(query).unflatten(-1, heads).transpose(1, 2)  # (B, H, T_q, d_head)
        k = self.W_k(key).unflatten(-1, heads).transpose(1, 2)  # (B, H, T_k, d_head)
        v = self.W_v(value).unflatten(-1, heads).transpose(1, 2)  # (B, H, T_k, d_head)
        dropout = self.dropout if self.training else 0.0
        context, weights = attend(q, k, v, mask, dropout, fused)  # (B, H, T_q, d_head)
        if head_mask is not None:
            context = context * head_mask[..., None, None]
        output = self.W_o(context.transpose(1, 2).flatten(2))  # (B, T_q, d_model)
        return (output, weights) if return_weights else output


def head_updates(heads, W_o):
    """Compute what each head adds to the output of multi-head attention.

    heads    (B, H, T, d_head)      the heads' contexts, before they are merged
    W_o      (H · d_head, d_model)  the last projection: the first d_head rows belong to head 0,
                                    the next d_head to head 1, and so on
    returns  (B, H, T, d_model)     added up over the heads, it is the merged contexts times W_o

    Source: Elhage et al. (2021), "Attention heads are independent and additive".

    >>> heads = torch.tensor([2.0, 3.0]).view(1, 2, 1, 1)
    >>> head_updates(heads, torch.tensor([[1.0, 10.0], [0.0, 100.0]])).view(2, 2)
    tensor([[  2.,  20.],
            [  0., 300.]])
    """
    # exercise: about 2 lines
    parts = W_o.unflatten(0, (heads.shape[1], heads.shape[3]))  # (H, d_head, d_model)
    return heads @ parts  # (B, H, T, d_model)


def heads_by_hand(strength):
    """Set the matrices of two heads so that each item looks at the two items that it asks for.

    An item is a row of 28 numbers: 0 to 7 its own name (one-hot), 8 to 15 the name of the first
    item that it asks for, 16 to 23 that of the second, 24 to 27 its content.

    strength  the score of the item that a head looks for; every other item gets 0
    returns   W_q, W_k and W_v, (28, 28) each, for q = x W_q and so on. Columns 0 to 13 belong to
              head 0, which fetches the first item, columns 14 to 27 to head 1, which fetches the
              second. In each head the first eight numbers of a key are the item's own name, those
              of a query the name asked for, times a factor; the first four of a value are the
              content. All else is 0.

    Refuses a strength below 0.
    """
    demand.within(0, strength=strength)
    # exercise: about 7 lines
    W_q, W_k, W_v = torch.zeros(3, 28, 28)
    for h in range(2):
        names, asked = slice(14 * h, 14 * h + 8), slice(8 + 8 * h, 16 + 8 * h)
        W_q[asked, names] = strength * math.sqrt(14) * torch.eye(8)
        W_k[:8, names] = torch.eye(8)
        W_v[24:, 14 * h : 14 * h + 4] = torch.eye(4)
    return W_q, W_k, W_v


def share_heads(x, n_heads):
    """Let groups of query heads share keys or values: grouped-query attention.

    x        (B, H_kv, T, d_head)     keys or values, of fewer heads than there are queries
    n_heads  number of query heads, a multiple of H_kv
    returns  (B, n_heads, T, d_head)  the first n_heads / H_kv heads are copies of head 0, and so on

    Raises ValueError if H_kv does not divide n_heads.
    Also for less than one head.
    Source: Ainslie et al. (2023); with H_kv = 1 it is the multi-query attention of Shazeer (2019).

    >>> share_heads(torch.tensor([10, 20]).view(1, 2, 1, 1), n_heads=4).flatten()
    tensor([10, 10, 20, 20])
    """
    demand.counts(n_heads=n_heads)
    if n_heads % x.shape[1]:
        raise ValueError(f"H_kv={x.shape[1]} does not divide n_heads={n_heads}")
    return x.repeat_interleave(n_heads // x.shape[1], dim=1)  # (B, n_heads, T, d_head)


def collaborative_heads(q, k, v, mixing, d_head):
    """Attend with heads that share their queries and keys, each in a mixture of its own.

    q        (B, T_q, d_shared)    queries, one per position for all heads
    k        (B, T_k, d_shared)    keys, likewise
    v        (B, H, T_k, d_v)      values, one per head
    mixing   (H, d_shared)         how much each head listens to each shared feature
    d_head   the scores are divided by its root
    returns  (B, H, T_q, d_v)

    The score of head h is the sum over the shared features d of q[d] · mixing[h, d] · k[d].
    Refuses a d_head below 1.
    Source: Cordonnier et al. (2020), section 3.
    """
    demand.counts(d_head=d_head)
    # exercise: about 3 lines
    scores = torch.einsum("bqd,hd,bkd->bhqk", q, mixing, k) / math.sqrt(d_head)
    weights = torch.softmax(scores, dim=-1)  # (B, H, T_q, T_k)
    return weights @ v  # (B, H, T_q, d_v)


class Sublayers(nn.Module):
    """The parts of lesson 09's layers, each of which decides in `forward` how to join them.

    d_model   length of the vectors that come in and go out
    n_heads   number of heads
    d_ff      number of hidden units of the feed-forward network
    dropout   probability of dropout on weights, hidden units and updates in training
    pre_norm  True: normalise what goes into a sublayer; False: normalise the sum behind it
    fused     use PyTorch's fused attention
    cross     whether there is an attention to a second sequence

    attention, cross_attention and feed_forward are the sublayers; norm_1 to norm_3 belong to them
    in the order of use. An attention is only ever called as attention(query, key, value, mask):
    a module with the same call, such as one with a cache, can take its place.

    Raises ValueError for a size below 1, or for a dropout that is not from 0 to 1.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        pre_norm: bool = False,
        fused: bool = False,
        cross: bool = False,
    ):
        super().__init__()
        demand.counts(d_ff=d_ff)
        self.pre_norm = pre_norm
        self.attention = MultiHeadAttention(d_model, n_heads, dropout, fused)
        if cross:
            self.cross_attention = MultiHeadAttention(d_model, n_heads, dropout, fused)
            self.norm_3 = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential()
        self.feed_forward.linear_1 = nn.Linear(d_model, d_ff)
        self.feed_forward.relu = nn.ReLU()
        self.feed_forward.dropout = nn.Dropout(dropout)
        self.feed_forward.linear_2 = nn.Linear(d_ff, d_model)
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
