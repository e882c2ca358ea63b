"""Lesson 15: models with only a decoder, for texts and for long texts with short summaries."""

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask, masked_attention
from attention.provided import demand
from attention.provided.data.keywords import SEP
from attention.provided.data.tokens import EOS, PAD
from attention.tokens_and_positions import embed, sinusoidal_positions
from attention.transformer import Encoder


def join_text_and_summary(texts, summaries):
    """Make one sequence of each pair: the text, SEP, the summary, EOS.

    texts, summaries  lists of B lists of ids
    returns           a pair of (B, T) tensors: tokens, int64, filled up with PAD at the end; and
                      counted, bool, True at the tokens of the summary and at their EOS

    T is the length of the longest sequence of the batch. Refuses a batch of no text.
    Source: Liu et al. (2018), section 4.2.3.

    >>> tokens, counted = join_text_and_summary([[7, 8, 9], [7]], [[8], [9]])
    >>> tokens
    tensor([[7, 8, 9, 3, 8, 2],
            [7, 3, 9, 2, 0, 0]])
    >>> counted.int()
    tensor([[0, 0, 0, 0, 1, 1],
            [0, 0, 1, 1, 0, 0]], dtype=torch.int32)
    """
    demand.counts(B=len(texts))
    rows = [[*text, SEP, *summary, EOS] for text, summary in zip(texts, summaries, strict=True)]
    tokens = torch.full((len(rows), max(map(len, rows))), PAD)  # (B, T)
    counted = torch.zeros_like(tokens, dtype=torch.bool)  # (B, T)
    for b, (row, text) in enumerate(zip(rows, texts, strict=True)):
        tokens[b, : len(row)] = torch.tensor(row)
        counted[b, len(text) + 1 : len(row)] = True
    return tokens, counted


def language_model_loss(logits, tokens, counted=None):
    """Average -log p(next token) over all tokens that were to be predicted.

    logits   (B, T, vocab_size)  at each position, scores of the token that comes *after* it
    tokens   (B, T)              ids, filled up with PAD
    counted  None, or bool (B, T): only tokens with True count
    returns  ()                  one mean over the batch, in nats

    The first token is not predicted by anything, and PAD never counts. What does not count may have
    an infinite loss. If no token counts, the loss is 0.
    Refuses a `counted` that is not bool.

    >>> logits = torch.zeros(1, 4, 8)
    >>> logits[0, 1, 5] = 100.0  # after the second token it is sure of a 5
    >>> tokens = torch.tensor([[7, 6, 5, PAD]])
    >>> language_model_loss(logits, tokens)  # log 8 for the 6, 0 for the 5
    tensor(1.0397)
    """
    demand.masks(counted=counted)
    # exercise: about 6 lines
    target = tokens[:, 1:]  # (B, T - 1)
    counts = target != PAD  # (B, T - 1)
    if counted is not None:
        counts = counts & counted[:, 1:]
    log_p = torch.log_softmax(logits[:, :-1], dim=-1)  # (B, T - 1, vocab_size)
    loss = -log_p.gather(2, target.unsqueeze(2)).squeeze(2)  # (B, T - 1)
    return loss.masked_fill(~counts, 0.0).sum() / counts.sum().clamp(min=1)


class DecoderOnly(nn.Module):
    """A language model: from tokens to the scores of the next ones.

    vocab_size                    size of the vocabulary
    d_model, n_heads, d_ff        sizes of the layers
    n_layers                      how many layers there are
    dropout                       probability of dropout in the layers in training

    The parts are `embedding`, an nn.Embedding; `stack`, a pre-norm `Encoder` of lesson 10, which
    with a causal mask does all that a decoder needs; and `generator`, a linear layer without bias.
    Refuses a size below 1.
    Source: Liu et al. (2018), section 4.2.3.

    >>> DecoderOnly(11, d_model=6, n_heads=2, d_ff=8, n_layers=1)(torch.zeros(2, 5).long()).shape
    torch.Size([2, 5, 11])
    """

    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, dropout=0.1):
        super().__init__()
        demand.counts(vocab_size=vocab_size, d_model=d_model)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.stack = Encoder(n_layers, d_model, n_heads, d_ff, dropout)
        self.generator = nn.Linear(d_model, vocab_size, bias=False)
        for table in (self.embedding, self.generator):
            nn.init.normal_(table.weight, std=d_model**-0.5)

    def forward(self, tokens):
        """Score what follows each token: (B, T) ids -> (B, T, vocab_size).

        What goes into the layers is √d_model times the rows of the table, plus sinusoidal
        positions, which count from 0.
        """
        # exercise: about 6 lines
        x = embed(tokens, self.embedding.weight)  # (B, T, d_model)
        T, d_model = x.shape[1:]
        wide = torch.promote_types(x.dtype, torch.float32)  # bfloat16 cannot count beyond 256
        positions = torch.arange(T, dtype=wide, device=x.device)
        x = x + sinusoidal_positions(positions, d_model).to(x.dtype)
        x = self.stack(x, causal_mask(T, x.device))  # (B, T, d_model)
        return self.generator(x)


@torch.no_grad()
def generate(model, tokens, choose, max_length):
    """Let a language model go on writing, token by token.

    model       from ids (B, T) to scores (B, T, vocab_size)
    tokens      (B, T)  what stands there already, the same number of tokens in each row
    choose      a function that picks a token for each row of scores: (B, vocab_size) -> (B,)
    max_length  the largest number of new tokens
    returns     (B, at most max_length)  the new tokens, filled up with PAD after EOS

    Raises ValueError for a max_length below 0.
    """
    demand.counts(0, max_length=max_length)
    first, ended = tokens.shape[1], torch.zeros_like(tokens[:, 0], dtype=torch.bool)  # (B,)
    while tokens.shape[1] < first + max_length and not ended.all():
        chosen = choose(model(tokens)[:, -1]).masked_fill(ended, PAD)  # (B,)
        tokens = torch.cat([tokens, chosen.unsqueeze(1)], dim=1)
        ended = ended | (chosen == EOS)
    return tokens[:, first:]


def local_block_attention(q, k, v, block):
    """Causal attention within blocks: a position sees itself and what its block has before it.

    q, k     (..., T, d_k)
    v        (..., T, d_v)
    block    how many positions a block has; the last block may have fewer
    returns  (..., T, d_v)

    The scores take about T · block numbers, never T · T: half a million positions are no trouble.
    Refuses a block below 1.
    Source: Liu et al. (2018), section 4.2.4.

    >>> x = torch.tensor([[1.0], [3.0], [5.0], [7.0], [9.0]])
    >>> local_block_attention(torch.zeros(5, 1), torch.zeros(5, 1), x, block=2).flatten()
    tensor([1., 2., 5., 6., 9.])
    """
    demand.counts(block=block)
    # exercise: about 5 lines
    T = q.shape[-2]
    q, k, v = (F.pad(x, (0, 0, 0, -T % block)) for x in (q, k, v))  # (..., n_blocks · block, d)
    q, k, v = (x.unflatten(-2, (-1, block)) for x in (q, k, v))  # (..., n_blocks, block, d)
    context = masked_attention(q, k, v, causal_mask(block, q.device))
    return context.flatten(-3, -2)[..., :T, :]


def compress(x, weight):
    """Make one vector of every `stride` neighbours: a convolution that moves by its own width.

    x        (..., T, d_in)
    weight   (stride, d_in, d_out)  weight[s] is multiplied with the vector at place s of a stretch
    returns  (..., T // stride, d_out)  what is left at the end, fewer than stride, is dropped;
                                        where T is less than stride, nothing remains

    Refuses a weight without a stride.
    Source: Liu et al. (2018), section 4.2.4, with kernel and stride 3.

    >>> x = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> compress(x, torch.tensor([[[1.0]], [[10.0]]])).flatten()
    tensor([21., 43.])
    """
    demand.counts(stride=len(weight))
    stride, n = len(weight), x.shape[-2] // len(weight)
    stretches = x[..., : n * stride, :].unflatten(-2, (n, stride))  # (..., n, stride, d_in)
    return torch.einsum("...nsd,sde->...ne", stretches, weight)


def memory_compressed_attention(q, k, v, stride):
    """Causal attention to keys and values of which each stands for `stride` positions.

    q        (..., T, d_k)
    k        (..., T // stride, d_k)  key j: positions j · stride … (j + 1) · stride - 1
    v        (..., T // stride, d_v)
    returns  (..., T, d_v)  zeros where there is nothing to see yet

    A position sees a key if none of the positions that it stands for comes later.
    Refuses a stride below 1.
    Source: Liu et al. (2018), section 4.2.4.

    >>> v = torch.tensor([[1.0], [3.0]])
    >>> memory_compressed_attention(torch.zeros(5, 1), torch.zeros(2, 1), v, stride=2).flatten()
    tensor([0., 1., 1., 2., 2.])
    """
    demand.counts(stride=stride)
    # exercise: about 4 lines
    position = torch.arange(q.shape[-2], device=q.device)
    last = torch.arange(k.shape[-2], device=q.device) * stride + stride - 1
    return masked_attention(q, k, v, last <= position[:, None])


def top_k_gate(scores, k):
    """Choose the k experts with the best scores for each token, and weigh them.

    scores   (N, E)  how well each of E experts suits each of N tokens
    k        from 1 to E
    returns  (N, E)  for the chosen ones the softmax of their scores, 0 for all others; on a tie it
                     does not matter who is chosen

    Refuses any other k.
    Source: Shazeer et al. (2017), equations 3 and 5, without their noise.

    >>> top_k_gate(torch.tensor([[0.0, 2.0, 2.0, 1.0]]), k=2)
    tensor([[0.0000, 0.5000, 0.5000, 0.0000]])
    """
    demand.counts(1, scores.shape[1], k=k)
    # exercise: about 3 lines
    best, chosen = scores.topk(k, dim=-1)  # (N, k) each
    weights = torch.softmax(best, dim=-1)  # (N, k)
    return torch.zeros_like(scores).scatter(-1, chosen, weights)  # (N, E)


def load_balance_loss(scores, gates):
    """Measure how unevenly tokens are spread: 1 if all shares, or all probabilities, are equal.

    scores   (N, E)  from which the gates were computed
    gates    (N, E)  from `top_k_gate`: 0 where an expert was not chosen
    returns  ()      E · the sum over the experts of share · mean probability

    An expert's share is the part of all choices that fell on it. Its probability for a token comes
    from the softmax of all scores of that token.
    Refuses a batch of no token.
    Source: Fedus, Zoph and Shazeer (2022), equations 4 to 6, for any number of choices per token.

    >>> gates = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> load_balance_loss(torch.zeros(2, 2), gates)  # shares 1 and 0, probabilities 1/2
    tensor(1.)
    """
    demand.counts(N=len(scores))
    # exercise: about 4 lines
    chosen = (gates > 0).to(scores.dtype)  # (N, E)
    share = chosen.sum(dim=0) / chosen.sum()  # (E,)
    probability = torch.softmax(scores, dim=-1).mean(dim=0)  # (E,)
    return scores.shape[1] * (share * probability).sum()


class MixtureOfExperts(nn.Module):
    """E feed-forward networks, of which k work on each token.

    d_model    length of the vectors that come in and go out
    d_ff       number of hidden units of each expert
    n_experts  how many experts there are: E
    k          how many of them work on a token

    After a call, `balance` is the load_balance_loss of its tokens, and `shares`, (E,), the parts of
    all choices that fell on each expert.
    Raises ValueError for less than one expert, or for a k that is not from 1 to n_experts.
    """

    def __init__(self, d_model, d_ff, n_experts, k):
        super().__init__()
        demand.counts(n_experts=n_experts)
        demand.counts(1, n_experts, k=k)
        self.k, self.balance, self.shares = k, 0.0, None
        self.router = nn.Linear(d_model, n_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
            for _ in range(n_experts)
        )

    def forward(self, x):
        """(..., d_model) -> (..., d_model): each expert sees only the tokens that chose it."""
        tokens = x.flatten(0, -2)  # (N, d_model)
        scores = self.router(tokens)  # (N, E)
        gates = top_k_gate(scores, self.k)  # (N, E)
        self.balance = load_balance_loss(scores, gates)
        self.shares = (gates > 0).sum(dim=0) / (gates > 0).sum()
        output = torch.zeros_like(tokens)
        for gate, expert in zip(gates.unbind(dim=1), self.experts, strict=True):
            rows = gate.nonzero().squeeze(1)
            output = output.index_add(0, rows, gate[rows, None] * expert(tokens[rows]))
        return output.view_as(x)
