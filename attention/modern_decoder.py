"""Lesson 20: the decoder that language models use today, piece by piece."""

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from attention.multi_head_attention import merge_heads, share_heads, split_heads
from attention.provided import demand
from attention.provided.data.tokens import EOS, PAD
from attention.tokens_and_positions import rotary


def rms_norm(x, weight, eps=1e-6):
    """Divide every vector by the root of the mean of its squares, then scale each feature.

    x        (..., d_model)
    weight   (d_model,)
    returns  (..., d_model)  x / √(mean of x² + eps) · weight

    Refuses an eps below 0.
    Source: Zhang and Sennrich (2019), equation 4.

    >>> rms_norm(torch.tensor([[3.0, 4.0, 0.0, 0.0]]), torch.ones(4))
    tensor([[1.2000, 1.6000, 0.0000, 0.0000]])
    """
    demand.within(0, eps=eps)
    # exercise: about 2 lines
    mean_square = x.square().mean(dim=-1, keepdim=True)  # (..., 1)
    return x * torch.rsqrt(mean_square + eps) * weight


class SwiGLU(nn.Module):
    """A feed-forward network in which one set of hidden units opens and closes another.

    d_model  length of the vectors that come in and go out
    d_ff     number of hidden units

    The parts are `W_gate` and `W_up`, from d_model to d_ff, and `W_down`, back: linear layers
    without bias.
    Refuses a size below 1.
    Source: Shazeer (2020), equation 6.

    >>> SwiGLU(d_model=12, d_ff=20)(torch.zeros(2, 5, 12)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(self, d_model, d_ff):
        super().__init__()
        demand.counts(d_model=d_model, d_ff=d_ff)
        # exercise: about 3 lines
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        """(..., d_model) -> (..., d_model): W_down(silu(W_gate(x)) · W_up(x)), F.silu's silu."""
        # exercise: about 1 line
        return self.W_down(F.silu(self.W_gate(x)) * self.W_up(x))


class ModernAttention(nn.Module):
    """Causal self-attention with rotary positions and heads that share keys and values.

    d_model     length of the vectors that come in and go out
    n_heads     number of query heads
    n_kv_heads  number of heads of keys and values, which groups of query heads share
    qk_norm     normalise each query and key over its d_head features, before it is turned
    window      None, or how many positions a query sees: itself and window - 1 before it
    d_head      features of a head; None: d_model / n_heads
    base        of the angles by which `rotary` turns
    eps         of the norms

    The parts are `W_q`, `W_k`, `W_v` and `W_o`, linear layers without bias, and with qk_norm
    `norm_q` and `norm_k`, nn.RMSNorm.
    Raises ValueError if n_heads does not divide d_model and d_head is None, or if n_kv_heads does
    not divide n_heads.
    Refuses a size below 1, and a base or an eps below 0.
    Source: Su et al. (2021); Ainslie et al. (2023); Henry et al. (2020); Jiang et al. (2023).

    >>> attention = ModernAttention(d_model=24, n_heads=4, n_kv_heads=2)
    >>> output, (keys, values) = attention(torch.zeros(2, 5, 24))
    >>> output.shape, keys.shape
    (torch.Size([2, 5, 24]), torch.Size([2, 2, 5, 6]))
    """

    def __init__(
        self,
        d_model,
        n_heads,
        n_kv_heads,
        qk_norm=False,
        window=None,
        d_head=None,
        base=10_000.0,
        eps=1e-6,
    ):
        super().__init__()
        demand.counts(d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads)
        demand.counts(window=1 if window is None else window, d_head=d_head or 1)
        demand.within(0, base=base, eps=eps)
        if d_head is None and d_model % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        if n_heads % n_kv_heads:
            raise ValueError(f"n_kv_heads={n_kv_heads} does not divide n_heads={n_heads}")
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.window, self.base = window, base
        d_head = d_head or d_model // n_heads
        self.norm_q = nn.RMSNorm(d_head, eps=eps) if qk_norm else nn.Identity()
        self.norm_k = nn.RMSNorm(d_head, eps=eps) if qk_norm else nn.Identity()
        # exercise: about 4 lines
        self.W_q = nn.Linear(d_model, n_heads * d_head, bias=False)
        self.W_k = nn.Linear(d_model, n_kv_heads * d_head, bias=False)
        self.W_v = nn.Linear(d_model, n_kv_heads * d_head, bias=False)
        self.W_o = nn.Linear(n_heads * d_head, d_model, bias=False)

    def forward(self, x, past=None, real=None):
        """Let each new position look at itself and at what came before it.

        x        (B, T, d_model)  the new positions
        past     None, or a pair of keys and values, (B, H_kv, P, d_head) each, of the P positions
                 before them: keys as they are before they are turned
        real     None, or bool, a column for each token so far: False = padding, which nobody may
                 look at; with a window the P + T last columns belong to the keys that are left
        returns  (B, T, d_model), and the pair for the next call: keys and values of the past and of
                 x; with a window only the last `window` positions of them

        Positions are counted from the first key that is there: only differences matter.
        """
        # exercise: about 14 lines
        q = self.norm_q(split_heads(self.W_q(x), self.n_heads))  # (B, H, T, d_head)
        k = self.norm_k(split_heads(self.W_k(x), self.n_kv_heads))  # (B, H_kv, T, d_head)
        v = split_heads(self.W_v(x), self.n_kv_heads)  # (B, H_kv, T, d_head)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        T, n = q.shape[2], k.shape[2]  # n = P + T
        wide = torch.promote_types(x.dtype, torch.float32)
        position = torch.arange(n, dtype=wide, device=x.device)
        before = position[-T:, None] - position  # (T, n): how far the key lies before the query
        mask = before >= 0
        if self.window is not None:
            mask = mask & (before < self.window)
        if real is not None:
            mask = mask & real[:, None, None, -n:]  # (B, 1, T, n)
        q, turned = rotary(q, position[-T:], self.base), rotary(k, position, self.base)
        keys, values = share_heads(turned, self.n_heads), share_heads(v, self.n_heads)
        output = self.W_o(merge_heads(masked_attention(q, keys, values, mask)))
        kept = slice(-self.window if self.window else None, None)
        return output, (k[:, :, kept], v[:, :, kept])


class ModernDecoderLayer(nn.Module):
    """One layer of today's decoders: pre-norm, and without a single bias.

    d_ff        number of hidden units
    eps         of all norms
    the others  as in `ModernAttention`: options are qk_norm, window, d_head and base

    The parts are `attention`, a ModernAttention, `feed_forward`, a SwiGLU, and `norm_1` and
    `norm_2`, nn.RMSNorm, in front of them.
    Refuses a size below 1, and what `ModernAttention` refuses.
    Source: Touvron et al. (2023), section 2.2.

    >>> layer = ModernDecoderLayer(d_model=24, n_heads=4, n_kv_heads=2, d_ff=20)
    >>> layer(torch.zeros(2, 5, 24))[0].shape
    torch.Size([2, 5, 24])
    """

    def __init__(self, d_model, n_heads, n_kv_heads, d_ff, eps=1e-6, **options):
        super().__init__()
        self.attention = ModernAttention(d_model, n_heads, n_kv_heads, eps=eps, **options)
        self.feed_forward = SwiGLU(d_model, d_ff)
        self.norm_1 = nn.RMSNorm(d_model, eps=eps)
        self.norm_2 = nn.RMSNorm(d_model, eps=eps)

    def forward(self, x, past=None, real=None):
        """Send x, (B, T, d_model), through the layer: arguments and results of its attention."""
        # exercise: about 4 lines
        update, past = self.attention(self.norm_1(x), past, real)
        x = x + update  # (B, T, d_model)
        x = x + self.feed_forward(self.norm_2(x))
        return x, past


class ModernDecoder(nn.Module):
    """A language model of today: from tokens to the scores of the next ones.

    vocab_size  size of the vocabulary
    n_layers    how many layers there are
    tied        whether the table of the embedding scores the next tokens, too
    the others  as in `ModernDecoderLayer`

    The parts are `embedding`, an nn.Embedding; `layers`, an nn.ModuleList of ModernDecoderLayers;
    `norm`, nn.RMSNorm, after the last; and `output`, without tied tables an nn.Linear without bias
    from d_model to vocab_size, else None.
    Refuses a size below 1, and what `ModernAttention` refuses.
    Source: Touvron et al. (2023), section 2.2.

    >>> sizes = {"d_model": 24, "n_heads": 4, "n_kv_heads": 2, "d_ff": 20, "n_layers": 3}
    >>> scores, past = ModernDecoder(11, **sizes)(torch.ones(2, 5).long())
    >>> scores.shape, len(past)
    (torch.Size([2, 5, 11]), 3)
    """

    def __init__(
        self,
        vocab_size,
        d_model,
        n_heads,
        n_kv_heads,
        d_ff,
        n_layers,
        tied=True,
        eps=1e-6,
        **options,
    ):
        super().__init__()
        demand.counts(vocab_size=vocab_size, d_model=d_model, n_layers=n_layers)
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.layers = nn.ModuleList(
            ModernDecoderLayer(d_model, n_heads, n_kv_heads, d_ff, eps, **options)
            for _ in range(n_layers)
        )
        self.norm = nn.RMSNorm(d_model, eps=eps)
        self.output = None if tied else nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, tokens, past=None, real=None):
        """Score what follows each token.

        tokens   (B, T)  ids of the new tokens
        past     None, or what the last call gave: a list with a pair of keys and values a layer
        real     None, or bool, a column for each token so far, these included: False = padding
        returns  (B, T, vocab_size), and the list for the next call
        """
        # exercise: about 8 lines
        x = self.embedding(tokens)  # (B, T, d_model)
        kept = []
        pasts = past if past is not None else [None] * len(self.layers)
        for layer, before in zip(self.layers, pasts, strict=True):
            x, pair = layer(x, before, real)
            kept.append(pair)
        table = self.embedding if self.output is None else self.output
        return self.norm(x) @ table.weight.T, kept


@torch.no_grad()
def generate_with_cache(model, tokens, choose, max_length):
    """Let a language model go on writing, reading each token once.

    model       a `ModernDecoder`
    tokens      (B, T)  what stands there already; shorter rows are filled up with PAD in front
    choose      a function that picks a token for each row of scores: (B, vocab_size) -> (B,)
    max_length  the largest number of new tokens
    returns     (B, at most max_length)  the new tokens, filled up with PAD after EOS

    Raises ValueError for a max_length below 0.

    >>> model = ModernDecoder(7, d_model=8, n_heads=2, n_kv_heads=1, d_ff=6, n_layers=1)
    >>> generate_with_cache(model, torch.tensor([[5, 6]]), lambda scores: torch.tensor([4]), 3)
    tensor([[4, 4, 4]])
    """
    demand.counts(0, max_length=max_length)
    # exercise: about 10 lines
    real, past, read, new = tokens != PAD, None, tokens, []
    ended = torch.zeros_like(tokens[:, 0], dtype=torch.bool)  # (B,)
    while len(new) < max_length and not ended.all():
        scores, past = model(read, past, real)
        chosen = choose(scores[:, -1]).masked_fill(ended, PAD)  # (B,)
        new.append(chosen)
        ended = ended | (chosen == EOS)
        read = chosen[:, None]  # all that the cache does not know yet
        real = torch.cat([real, ~torch.zeros_like(read, dtype=torch.bool)], dim=1)
    return torch.stack(new, dim=1) if new else tokens[:, :0]


def pair_up(weight, n_heads):
    """Bring the rows of a published projection into the order that lesson 08's `rotary` turns.

    weight   (H · d_head, d_model)  of queries or keys: the published code turns feature i of a head
                                    together with feature i + d_head / 2
    n_heads  number of heads in the weight: H
    returns  (H · d_head, d_model)  in each head the rows 0, d_head / 2, 1, d_head / 2 + 1, …

    Raises ValueError if the rows cannot be cut into heads of an even number of features.
    Refuses less than one head.

    >>> pair_up(torch.tensor([[0], [1], [2], [3]]), n_heads=1).flatten()
    tensor([0, 2, 1, 3])
    """
    demand.counts(n_heads=n_heads)
    if len(weight) % (2 * n_heads):
        raise ValueError(f"{len(weight)} rows are no {n_heads} heads of an even number of features")
    # exercise: about 2 lines
    halves = weight.unflatten(0, (n_heads, 2, -1))  # (H, 2, d_head / 2, d_model)
    return halves.transpose(1, 2).flatten(0, 2)  # (H · d_head, d_model)
