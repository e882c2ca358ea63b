"""Lesson 21: what makes a language model answer, and what it takes to run one."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided import demand
from attention.provided.data.tokens import PAD


def unpack_q4(blocks):
    """Read weights that were stored in 4 bits each.

    blocks   (n, 20) uint8, one row per block of 32 numbers: the scale, a float16 of two bytes; the
             smallest number, another; then 16 bytes with two codes each. The low four bits of
             byte i are code i, its high four bits are code i + 16
    returns  (n, 32) float32: scale · code + smallest number

    Source: Q4_1 in ggml, the library under llama.cpp.

    >>> block = torch.tensor([[0, 60, 0, 0, 0x21, *[0] * 15]], dtype=torch.uint8)  # scale 1, 0
    >>> unpack_q4(block)[0, [0, 16]]
    tensor([1., 2.])
    """
    # exercise: about 4 lines
    scale = blocks[:, :2].clone().view(torch.float16).float()  # (n, 1)
    smallest = blocks[:, 2:4].clone().view(torch.float16).float()  # (n, 1)
    codes = torch.cat([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], dim=1)  # (n, 32)
    return scale * codes + smallest


def quantize(weight, bits, block):
    """Round weights to 2**bits values, evenly spaced from the smallest to the largest of a block.

    weight   (n_out, n_in)
    bits     per code, from 1 to 16
    block    how many numbers of a row share a smallest and a largest; it divides n_in
    returns  (n_out, n_in)  each number replaced by the nearest of its block's values, the ends
             included; a block of equal numbers stays as it is

    Raises ValueError if block does not divide n_in.
    Also for bits that are not from 1 to 16, and for a block below 1.

    >>> quantize(torch.tensor([[0.0, 0.4, 0.9, 3.0]]), bits=2, block=4)
    tensor([[0., 0., 1., 3.]])
    """
    demand.counts(1, 16, bits=bits)
    demand.counts(block=block)
    if weight.shape[1] % block:
        raise ValueError(f"block={block} does not divide n_in={weight.shape[1]}")
    # exercise: about 5 lines
    blocks = weight.unflatten(1, (-1, block))  # (n_out, n_in / block, block)
    low, high = blocks.amin(dim=2, keepdim=True), blocks.amax(dim=2, keepdim=True)
    scale = (high - low) / (2**bits - 1)
    codes = ((blocks - low) / scale.where(scale > 0, 1.0)).round()
    return (low + scale * codes).flatten(1)


def answer_loss(scores, tokens, asked):
    """Cross-entropy of the answers alone: the loss with which a model is taught.

    scores   (B, T, vocab_size)  of what follows each token
    tokens   (B, T)  a question and its answer in each row, filled up with PAD at the end
    asked    (B,)  how many tokens at the beginning of each row are the question, at least 1
    returns  ()  the mean over all tokens of answers, in nats

    Source: Ouyang et al. (2022).

    >>> scores = torch.zeros(2, 5, 8)  # each of 8 tokens is as likely
    >>> answer_loss(scores, torch.tensor([[5, 6, 7, 2, 0], [5, 5, 5, 6, 2]]), torch.tensor([1, 3]))
    tensor(2.0794)
    """
    # exercise: about 4 lines
    place = torch.arange(tokens.shape[1], device=tokens.device)  # (T,)
    answers = (place >= asked[:, None]) & (tokens != PAD)  # (B, T)
    losses = F.cross_entropy(scores[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    return losses[answers[:, 1:]].mean()


class LowRank(nn.Module):
    """A linear layer that stays as it is, and beside it a small one that learns: LoRA.

    linear  an nn.Linear, whose numbers no longer learn
    rank    rows of A and columns of B
    scale   factor of the update

    The parts are `linear`; `A`, (rank, d_in), an nn.Parameter that begins random; and `B`,
    (d_out, rank), one that begins with zeros, so that at first nothing changes.
    Refuses a rank below 1, and a scale that is not a number.
    Source: Hu et al. (2022), equation 3.

    >>> layer = LowRank(nn.Linear(6, 4), rank=2)
    >>> [name for name, weight in layer.named_parameters() if weight.requires_grad]
    ['A', 'B']
    """

    def __init__(self, linear, rank, scale=1.0):
        super().__init__()
        demand.counts(rank=rank)
        demand.within(-torch.inf, scale=scale)
        self.linear, self.scale = linear, scale
        # exercise: about 3 lines
        linear.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        """(..., d_in) -> (..., d_out): linear(x) plus scale · B A x."""
        # exercise: about 1 line
        return self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)

    @torch.no_grad()
    def merged(self):
        """A new nn.Linear that computes the same alone: its weight is W + scale · B A."""
        # exercise: about 3 lines
        merged = copy.deepcopy(self.linear)
        merged.weight += self.scale * self.B @ self.A
        return merged


def accept(p, q, drafted, noise):
    """Decide how much of a draft to keep, and from what the token after it is drawn.

    p        (k + 1, vocab_size)  the model's probabilities at each place of the draft, and after it
    q        (k, vocab_size)  the probabilities that the draft's tokens were drawn from
    drafted  (k,)  these tokens
    noise    (k,)  random numbers, at least 0 and below 1
    returns  how many of the first tokens are kept, and the probabilities (vocab_size,) of the next

    The token x at place i is kept if noise[i] < p[i, x] / q[i, x] and all before it are kept. At
    the first that is not, the next token is drawn from the positive part of p[i] − q[i], divided
    by its sum; if all are kept, from the last row of p.
    Source: Leviathan et al. (2023), algorithm 1.

    >>> p = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    >>> accept(p, torch.tensor([[0.0, 1.0, 0.0]]), torch.tensor([1]), torch.tensor([0.7]))
    (0, tensor([1., 0., 0.]))
    """
    # exercise: about 6 lines
    for i, token in enumerate(drafted.tolist()):
        if noise[i] * q[i, token] >= p[i, token]:
            rest = (p[i] - q[i]).clamp(min=0)  # (vocab_size,)
            return i, rest / rest.sum()
    return len(drafted), p[-1]


def keep_sinks(past, n_first, window):
    """Shorten a cache: its first positions and its last ones stay.

    past     a list with one pair of keys and values per layer, (B, H_kv, P, d_head) each
    n_first  how many positions stay at the beginning; 0 is allowed
    window   how many stay at the end; 0 is allowed
    returns  such a list, (B, H_kv, at most n_first + window, d_head); no position is in it twice

    Refuses numbers below 0.
    Source: Xiao et al. (2024), section 3.2.

    >>> keys = torch.arange(6.0).view(1, 1, 6, 1)
    >>> keep_sinks([(keys, keys)], n_first=1, window=2)[0][0].flatten()
    tensor([0., 4., 5.])
    """
    demand.counts(0, n_first=n_first, window=window)
    # exercise: about 5 lines
    P = past[0][0].shape[2]
    place = torch.arange(P, device=past[0][0].device)
    kept = (place < n_first) | (place >= P - window)  # (P,)
    return [(keys[:, :, kept], values[:, :, kept]) for keys, values in past]


def stretched_base(base, d_head, factor):
    """Find the base with which the slowest pair of features turns `factor` times as slowly.

    base     of the angles, as in `rotary`: pair i turns by position / base^(2i / d_head)
    d_head   features of a head, even, at least 4
    factor   how many times as long the texts are
    returns  another base; the fastest pair turns as before

    Raises ValueError for an odd d_head or one below 4.
    Also for a base or a factor below 0.
    Source: Peng et al. (2024), section 3.1: "NTK-aware" scaling.

    >>> round(stretched_base(10_000.0, d_head=32, factor=4))
    43873
    """
    demand.within(0, base=base, factor=factor)
    demand.counts(4, d_head=d_head)
    if d_head % 2:
        raise ValueError(f"d_head={d_head} should be even")
    # exercise: about 1 line
    return base * factor ** (d_head / (d_head - 2))
