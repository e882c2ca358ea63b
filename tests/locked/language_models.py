"""Answers to lesson 15 that were written without a look at its checks."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask, masked_attention
from attention.provided.data.tokens import PAD
from attention.tokens_and_positions import embed, sinusoidal_positions
from attention.transformer import Encoder
from tests.locked import right, wrong

# --- language_model_loss ---------------------------------------------------------------------


@wrong("language_model_loss", cause="makes a number of it, so no gradient flows", kind="gradient")
def language_model_loss_8(logits, tokens, counted=None):
    total, number = 0.0, 0
    log_p = logits.log_softmax(dim=-1)
    for b in range(tokens.shape[0]):
        for t in range(1, tokens.shape[1]):
            if tokens[b, t] != PAD and (counted is None or counted[b, t]):
                total -= log_p[b, t - 1, tokens[b, t]].item()
                number += 1
    return torch.tensor(total / max(number, 1), dtype=logits.dtype)


@wrong(
    "language_model_loss",
    cause="what does not count becomes the token 0, and is learned",
    kind="value",
)
def language_model_loss_10(logits, tokens, counted=None):
    counts = tokens[:, 1:] != PAD
    if counted is not None:
        counts = counts & counted[:, 1:]
    target = tokens[:, 1:] * counts
    total = F.cross_entropy(logits[:, :-1].flatten(0, 1), target.flatten(), reduction="sum")
    return total / counts.sum().clamp(min=1)


@right("language_model_loss", how="cross_entropy with ignore_index, added up")
def language_model_loss_11(logits, tokens, counted=None):
    target = tokens if counted is None else torch.where(counted, tokens, PAD)
    target = target[:, 1:].reshape(-1)
    scores = logits[:, :-1].flatten(0, 1)
    total = F.cross_entropy(scores, target, ignore_index=PAD, reduction="sum")
    return total / max(int((target != PAD).sum()), 1)


@right("language_model_loss", how="logsumexp minus the score, for the chosen positions only")
def language_model_loss_12(logits, tokens, counted=None):
    counts = tokens.ne(PAD) if counted is None else tokens.ne(PAD) & counted
    b, t = counts[:, 1:].nonzero(as_tuple=True)
    if len(b) == 0:
        return logits[:, :0].sum()
    scores = logits[b, t]
    own = scores[torch.arange(len(b)), tokens[b, t + 1]]
    return (scores.logsumexp(dim=-1) - own).mean()


# --- DecoderOnly -----------------------------------------------------------------------------


class _Decoder(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.stack = Encoder(n_layers, d_model, n_heads, d_ff, dropout)
        self.generator = nn.Linear(d_model, vocab_size, bias=False)
        for table in (self.embedding, self.generator):
            nn.init.normal_(table.weight, std=d_model**-0.5)

    def _places(self, T, device=None, first=0.0):
        places = torch.arange(T, dtype=self.embedding.weight.dtype, device=device) + first
        return sinusoidal_positions(places, self.embedding.embedding_dim)


@wrong("DecoderOnly", cause="F.dropout of the input, which also acts after eval()", kind="state")
class DecoderOnly_7(_Decoder):
    def forward(self, tokens):
        T = tokens.shape[1]
        x = embed(tokens, self.embedding.weight) + self._places(T, tokens.device)
        x = self.stack(F.dropout(x, 0.1), causal_mask(T, tokens.device))
        return self.generator(x)


@right("DecoderOnly", how="rows picked by index, mask by <=, and a matrix product at the end")
class DecoderOnly_11(_Decoder):
    def forward(self, tokens):
        table = self.embedding.weight
        t = torch.arange(tokens.size(1), device=tokens.device)
        x = table[tokens] * table.shape[1] ** 0.5
        x = x + sinusoidal_positions(t.to(table.dtype), table.shape[1]).unsqueeze(0)
        return self.stack(x, (t[None, :] <= t[:, None])[None]) @ self.generator.weight.mT


@right("DecoderOnly", how="one call for each layer, and the norm at the end")
class DecoderOnly_12(_Decoder):
    def forward(self, tokens):
        B, T = tokens.shape
        x = self.embedding(tokens).mul(math.sqrt(self.embedding.weight.size(1)))
        x = x + self._places(T, tokens.device).expand(B, T, -1)
        mask = causal_mask(T, tokens.device).expand(B, T, T)
        for layer in self.stack.layers:
            x = layer(x, mask)
        return self.generator(self.stack.norm(x))


# --- local_block_attention -------------------------------------------------------------------


@wrong("local_block_attention", cause="no causal mask: a block sees all of itself", kind="value")
def local_block_attention_2(q, k, v, block):
    T, extra = q.shape[-2], -q.shape[-2] % block
    real = torch.arange(T + extra, device=q.device).view(-1, 1, block) < T
    q, k, v = (F.pad(x, (0, 0, 0, extra)).unflatten(-2, (-1, block)) for x in (q, k, v))
    return masked_attention(q, k, v, real).flatten(-3, -2)[..., :T, :]


@wrong(
    "local_block_attention",
    cause="pads in front, so it is the first block that has fewer positions",
    kind="value",
)
def local_block_attention_3(q, k, v, block):
    extra = -q.shape[-2] % block
    q, k, v = (F.pad(x, (0, 0, extra, 0)).unflatten(-2, (-1, block)) for x in (q, k, v))
    place = torch.arange(q.shape[-3] * block, device=q.device).view(-1, 1, block)
    mask = causal_mask(block, q.device) & (place >= extra)
    return masked_attention(q, k, v, mask).flatten(-3, -2)[..., extra:, :]


@wrong("local_block_attention", cause="leaves out the last, shorter block", kind="shape")
def local_block_attention_4(q, k, v, block):
    n = q.shape[-2] // block
    q, k, v = (x[..., : n * block, :].unflatten(-2, (n, block)) for x in (q, k, v))
    return masked_attention(q, k, v, causal_mask(block, q.device)).flatten(-3, -2)


@wrong("local_block_attention", cause="works for three axes only: (B, T, d)", kind="size")
def local_block_attention_5(q, k, v, block):
    B, T, _ = q.shape
    n = math.ceil(T / block)
    q, k, v = (
        F.pad(x, (0, 0, 0, n * block - T)).reshape(B, n, block, x.shape[2]) for x in (q, k, v)
    )
    context = masked_attention(q, k, v, causal_mask(block, q.device))
    return context.reshape(B, n * block, -1)[:, :T]


@wrong(
    "local_block_attention",
    cause="every n-th position is in the same block: the axes of blocks and places are swapped",
    kind="value",
)
def local_block_attention_6(q, k, v, block):
    T = q.shape[-2]
    q, k, v = (
        F.pad(x, (0, 0, 0, -T % block)).unflatten(-2, (block, -1)).transpose(-3, -2)
        for x in (q, k, v)
    )
    context = masked_attention(q, k, v, causal_mask(block, q.device))
    return context.transpose(-3, -2).flatten(-3, -2)[..., :T, :]


@wrong("local_block_attention", cause="takes d_v to be d_k", kind="size")
def local_block_attention_10(q, k, v, block):
    T, extra = q.shape[-2], -q.shape[-2] % block
    size = (*q.shape[:-2], -1, block, q.shape[-1])
    q, k, v = (F.pad(x, (0, 0, 0, extra)).reshape(size) for x in (q, k, v))
    context = masked_attention(q, k, v, causal_mask(block, q.device))
    return context.flatten(-3, -2)[..., :T, :]


@right("local_block_attention", how="a loop over blocks, the last one as short as it is")
def local_block_attention_11(q, k, v, block):
    parts = zip(*(x.split(block, dim=-2) for x in (q, k, v)), strict=True)
    return torch.cat(
        [masked_attention(a, b, c, causal_mask(a.shape[-2], a.device)) for a, b, c in parts],
        dim=-2,
    )


@right("local_block_attention", how="one block more than needed, and a softmax of its own")
def local_block_attention_12(q, k, v, block):
    T = q.shape[-2]
    n = T // block + 1
    q, k, v = (
        torch.cat([x, x.new_zeros(*x.shape[:-2], n * block - T, x.shape[-1])], dim=-2).reshape(
            *x.shape[:-2], n, block, x.shape[-1]
        )
        for x in (q, k, v)
    )
    scores = torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(q.shape[-1])
    later = torch.ones(block, block, dtype=torch.bool, device=q.device).triu(diagonal=1)
    weights = scores.masked_fill(later, -math.inf).softmax(dim=-1)
    context = weights @ v
    return context.reshape(*context.shape[:-3], n * block, -1)[..., :T, :]


# --- memory_compressed_attention -------------------------------------------------------------


def _last(q, k, stride):
    """The query positions as a column, and the last position of each key."""
    t = torch.arange(q.shape[-2], device=q.device)[:, None]
    return t, torch.arange(1, k.shape[-2] + 1, device=q.device) * stride - 1


@wrong(
    "memory_compressed_attention",
    cause="the last key is taken to reach up to the end of the text",
    kind="value",
)
def memory_compressed_attention_6(q, k, v, stride):
    t, last = _last(q, k, stride)
    last[-1:] = q.shape[-2] - 1
    return masked_attention(q, k, v, last <= t)


@wrong(
    "memory_compressed_attention",
    cause="adds -inf and erases the NaN afterwards: they come back in the gradients",
    kind="gradient",
)
def memory_compressed_attention_7(q, k, v, stride):
    t, last = _last(q, k, stride)
    bias = torch.zeros(len(t), len(last), dtype=q.dtype, device=q.device)
    bias[last > t] = -math.inf
    weights = (q @ k.mT / math.sqrt(q.shape[-1]) + bias).softmax(dim=-1)
    return weights.nan_to_num(0.0) @ v


@wrong(
    "memory_compressed_attention",
    cause="repeats keys and values to T positions: part of its own stretch is seen",
    kind="value",
)
def memory_compressed_attention_8(q, k, v, stride):
    T = q.shape[-2]
    k, v = (x.repeat_interleave(stride, dim=-2) for x in (k, v))
    return masked_attention(q, k, v, causal_mask(T, q.device)[:, : k.shape[-2]])


@wrong("memory_compressed_attention", cause="works only if stride divides T", kind="size")
def memory_compressed_attention_10(q, k, v, stride):
    n = k.shape[-2]
    before = torch.ones(n, n, dtype=torch.bool, device=q.device).tril(diagonal=-1)
    mask = before.repeat_interleave(stride, dim=0)
    mask[stride - 1 :: stride] |= torch.eye(n, dtype=torch.bool, device=q.device)
    return masked_attention(q, k, v, mask)


@right("memory_compressed_attention", how="every stride-th column of a causal mask")
def memory_compressed_attention_11(q, k, v, stride):
    mask = causal_mask(q.shape[-2], q.device)[:, stride - 1 :: stride]
    return masked_attention(q, k, v, mask)


@right("memory_compressed_attention", how="a loop over positions: the first (t + 1) // stride keys")
def memory_compressed_attention_12(q, k, v, stride):
    rows = []
    for t in range(q.shape[-2]):
        seen = (t + 1) // stride
        scores = torch.einsum("...d,...jd->...j", q[..., t, :], k[..., :seen, :])
        weights = torch.softmax(scores / math.sqrt(q.shape[-1]), dim=-1)
        rows.append(torch.einsum("...j,...jd->...d", weights, v[..., :seen, :]))
    return torch.stack(rows, dim=-2)


# --- top_k_gate ------------------------------------------------------------------------------


@wrong("top_k_gate", cause="the same weight for all chosen ones: 1 / k", kind="value")
def top_k_gate_5(scores, k):
    indices = scores.argsort(dim=-1, descending=True)[:, :k]
    return torch.zeros_like(scores).scatter(-1, indices, 1.0 / k)


@wrong("top_k_gate", cause="writes -inf into the given scores", kind="state")
def top_k_gate_6(scores, k):
    others = scores.argsort(dim=-1, descending=True)[:, k:]
    return scores.scatter_(-1, others, -math.inf).softmax(dim=-1)


@wrong("top_k_gate", cause="the result is float32, whatever the scores are", kind="dtype")
def top_k_gate_7(scores, k):
    values, indices = scores.topk(k)
    gates = torch.zeros(scores.shape)
    gates[torch.arange(len(scores))[:, None], indices] = values.softmax(dim=-1).float()
    return gates


@wrong("top_k_gate", cause="divides the scores themselves by their sum", kind="value")
def top_k_gate_10(scores, k):
    values, indices = scores.topk(k, dim=-1)
    return torch.zeros_like(scores).scatter(-1, indices, values / values.sum(dim=-1, keepdim=True))


@right("top_k_gate", how="k times the largest one that is left, then a softmax over what is not")
def top_k_gate_11(scores, k):
    chosen = torch.zeros_like(scores, dtype=torch.bool)
    rows = torch.arange(len(scores), device=scores.device)
    for _ in range(k):
        best = scores.detach().masked_fill(chosen, -math.inf).argmax(dim=-1)
        chosen[rows, best] = True
    return torch.where(chosen, scores, -math.inf).softmax(dim=-1)


@right("top_k_gate", how="the softmax of all, and the chosen ones divided by their sum")
def top_k_gate_12(scores, k):
    order = scores.argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    p = scores.softmax(dim=1) * (rank < k)
    return p / p.sum(dim=1, keepdim=True)


# --- load_balance_loss -----------------------------------------------------------------------


@right("load_balance_loss", how="counts the columns of the choices, dot product")
def load_balance_loss_11(scores, gates):
    N, E = scores.shape
    _, columns = gates.nonzero(as_tuple=True)
    counts = columns.bincount(minlength=E).to(scores.dtype)
    return torch.dot(counts, scores.softmax(dim=1).sum(dim=0)) * E / (N * len(columns))


@right("load_balance_loss", how="a loop over the experts")
def load_balance_loss_12(scores, gates):
    log_p, loss = scores.log_softmax(dim=-1), 0.0
    choices = int((gates > 0).sum())
    for e in range(scores.shape[1]):
        share = int((gates[:, e] > 0).sum()) / choices
        loss = loss + share * log_p[:, e].exp().mean()
    return loss * scores.shape[1]
