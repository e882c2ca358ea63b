"""Wrong answers to lesson 15."""

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask, masked_attention
from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.tokens_and_positions import embed, sinusoidal_positions
from attention.transformer import Encoder
from tests.locked import wrong

# --- language_model_loss ---------------------------------------------------------------------


@wrong("language_model_loss", cause="not shifted: each position predicts its own token")
def language_model_loss_101(logits, tokens, counted=None):
    demand.masks(counted=counted)
    counts = tokens != PAD if counted is None else (tokens != PAD) & counted
    loss = F.cross_entropy(logits.mT, tokens, reduction="none").masked_fill(~counts, 0)
    return loss.sum() / counts.sum().clamp(min=1)


@wrong("language_model_loss", cause="counted concerns the token just read: counted[:, :-1]")
def language_model_loss_102(logits, tokens, counted=None):
    demand.masks(counted=counted)
    target = tokens[:, 1:]
    counts = target != PAD
    if counted is not None:
        counts = counts & counted[:, :-1]
    logp = logits[:, :-1].log_softmax(-1).gather(2, target.unsqueeze(2)).squeeze(2)
    return -logp[counts].sum() / counts.sum().clamp(min=1)


@wrong("language_model_loss", cause="shifted the other way: predicts the token before")
def language_model_loss_103(logits, tokens, counted=None):
    demand.masks(counted=counted)
    target = tokens[:, :-1]
    counts = target != PAD
    if counted is not None:
        counts &= counted[:, :-1]
    logp = torch.log_softmax(logits[:, 1:], dim=-1)
    loss = -logp.gather(-1, target[..., None])[..., 0]
    return torch.where(counts, loss, 0.0).sum() / counts.sum().clamp(min=1)


@wrong("language_model_loss", cause="if counted is given, PAD is not looked at")
def language_model_loss_104(logits, tokens, counted=None):
    demand.masks(counted=counted)
    target = tokens[:, 1:]
    counts = (target != PAD) if counted is None else counted[:, 1:]
    loss = F.cross_entropy(logits[:, :-1].transpose(1, 2), target, reduction="none")
    return loss.masked_fill(~counts, 0.0).sum() / counts.sum().clamp(min=1)


@wrong("language_model_loss", cause="divides by all tokens that are not PAD")
def language_model_loss_105(logits, tokens, counted=None):
    demand.masks(counted=counted)
    target = tokens[:, 1:].clone()
    n = (target != PAD).sum().clamp(min=1)
    if counted is not None:
        target[~counted[:, 1:]] = PAD
    flat = logits[:, :-1].reshape(-1, logits.shape[-1])
    return F.cross_entropy(flat, target.reshape(-1), ignore_index=PAD, reduction="sum") / n


@wrong("language_model_loss", cause="0 times an infinite loss is NaN", kind="extreme")
def language_model_loss_106(logits, tokens, counted=None):
    demand.masks(counted=counted)
    target = tokens[:, 1:]
    weight = (target != PAD).to(logits.dtype)
    if counted is not None:
        weight = weight * counted[:, 1:]
    nll = -logits[:, :-1].log_softmax(2).gather(2, target[:, :, None]).squeeze(2)
    return (nll * weight).sum() / weight.sum().clamp(min=1)


# --- DecoderOnly -----------------------------------------------------------------------------


class _DecoderOnly(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, dropout=0.1):
        super().__init__()
        demand.counts(vocab_size=vocab_size, d_model=d_model)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.stack = Encoder(n_layers, d_model, n_heads, d_ff, dropout)
        self.generator = nn.Linear(d_model, vocab_size, bias=False)
        for table in (self.embedding, self.generator):
            nn.init.normal_(table.weight, std=d_model**-0.5)


@wrong("DecoderOnly", cause="no causal mask")
class DecoderOnly_101(_DecoderOnly):
    def forward(self, tokens):
        x = embed(tokens, self.embedding.weight)
        places = torch.arange(tokens.shape[1], dtype=torch.float32, device=tokens.device)
        return self.generator(self.stack(x + sinusoidal_positions(places, x.shape[-1]).to(x)))


@wrong("DecoderOnly", cause="positions count from 1")
class DecoderOnly_102(_DecoderOnly):
    def forward(self, tokens):
        T = tokens.shape[1]
        x = embed(tokens, self.embedding.weight)
        places = torch.arange(1, T + 1, dtype=torch.float32, device=x.device)
        x = x + sinusoidal_positions(places, x.shape[-1]).to(x.dtype)
        return self.generator(self.stack(x, causal_mask(T, x.device)))


@wrong("DecoderOnly", cause="the embeddings are not scaled by the root of d_model")
class DecoderOnly_103(_DecoderOnly):
    def forward(self, tokens):
        T = tokens.shape[1]
        x = self.embedding(tokens)
        places = torch.arange(T, dtype=torch.float32, device=x.device)
        x = x + sinusoidal_positions(places, x.shape[-1]).to(x.dtype)
        return self.generator(self.stack(x, causal_mask(T, x.device)))


@wrong("DecoderOnly", cause="returns probabilities, not scores")
class DecoderOnly_104(_DecoderOnly):
    def forward(self, tokens):
        T = tokens.shape[1]
        x = embed(tokens, self.embedding.weight)
        places = torch.arange(T, dtype=torch.float32, device=x.device)
        x = x + sinusoidal_positions(places, x.shape[-1]).to(x.dtype)
        return self.generator(self.stack(x, causal_mask(T, x.device))).softmax(dim=-1)


@wrong("DecoderOnly", cause="the embedding table as the generator")
class DecoderOnly_105(_DecoderOnly):
    def forward(self, tokens):
        T = tokens.shape[1]
        x = embed(tokens, self.embedding.weight)
        places = torch.arange(T, dtype=torch.float32, device=x.device)
        x = x + sinusoidal_positions(places, x.shape[-1]).to(x.dtype)
        return self.stack(x, causal_mask(T, x.device)) @ self.embedding.weight.T


@wrong("DecoderOnly", cause="no positions")
class DecoderOnly_106(_DecoderOnly):
    def forward(self, tokens):
        x = embed(tokens, self.embedding.weight)
        return self.generator(self.stack(x, causal_mask(tokens.shape[1], tokens.device)))


# --- local_block_attention -------------------------------------------------------------------


@wrong("local_block_attention", cause="no causal mask in the blocks")
def local_block_attention_101(q, k, v, block):
    demand.counts(block=block)
    parts = zip(q.split(block, -2), k.split(block, -2), v.split(block, -2), strict=True)
    return torch.cat([masked_attention(*part) for part in parts], dim=-2)


@wrong("local_block_attention", cause="what does not fill a block is dropped", kind="size")
def local_block_attention_102(q, k, v, block):
    demand.counts(block=block)
    n = q.shape[-2] // block
    q, k, v = (x[..., : n * block, :].unflatten(-2, (n, block)) for x in (q, k, v))
    return masked_attention(q, k, v, causal_mask(block, q.device)).flatten(-3, -2)


@wrong("local_block_attention", cause="fills up at the beginning: the blocks are moved")
def local_block_attention_103(q, k, v, block):
    demand.counts(block=block)
    T = q.shape[-2]
    extra = -T % block
    q, k, v = (F.pad(x, (0, 0, extra, 0)).unflatten(-2, (-1, block)) for x in (q, k, v))
    out = masked_attention(q, k, v, causal_mask(block, q.device))
    return out.flatten(-3, -2)[..., extra:, :]


@wrong("local_block_attention", cause="unflatten with the sizes exchanged: strided blocks")
def local_block_attention_104(q, k, v, block):
    demand.counts(block=block)
    T = q.shape[-2]
    extra = -T % block
    q, k, v = (
        F.pad(x, (0, 0, 0, extra)).unflatten(-2, (block, -1)).transpose(-3, -2) for x in (q, k, v)
    )
    out = masked_attention(q, k, v, causal_mask(block, q.device))
    return out.transpose(-3, -2).flatten(-3, -2)[..., :T, :]


@wrong("local_block_attention", cause="a strict mask: a position does not see itself")
def local_block_attention_105(q, k, v, block):
    demand.counts(block=block)
    T = q.shape[-2]
    q, k, v = (F.pad(x, (0, 0, 0, -T % block)).unflatten(-2, (-1, block)) for x in (q, k, v))
    mask = torch.ones(block, block, dtype=torch.bool, device=q.device).tril(-1)
    return masked_attention(q, k, v, mask).flatten(-3, -2)[..., :T, :]


# --- memory_compressed_attention -------------------------------------------------------------


@wrong("memory_compressed_attention", cause="a key is seen as soon as its stretch begins")
def memory_compressed_attention_101(q, k, v, stride):
    demand.counts(stride=stride)
    rows = torch.arange(q.shape[-2], device=q.device)[:, None]
    starts = torch.arange(k.shape[-2], device=q.device) * stride
    return masked_attention(q, k, v, starts <= rows)


@wrong("memory_compressed_attention", cause="a key is seen one position too late")
def memory_compressed_attention_102(q, k, v, stride):
    demand.counts(stride=stride)
    i = torch.arange(q.shape[-2], device=q.device).unsqueeze(1)
    j = torch.arange(k.shape[-2], device=q.device).unsqueeze(0)
    return masked_attention(q, k, v, (j + 1) * stride <= i)


@wrong("memory_compressed_attention", cause="compares key numbers with positions: j <= i")
def memory_compressed_attention_103(q, k, v, stride):
    demand.counts(stride=stride)
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
    return masked_attention(q, k, v, mask)


@wrong("memory_compressed_attention", cause="NaN where there is nothing to see", kind="extreme")
def memory_compressed_attention_104(q, k, v, stride):
    demand.counts(stride=stride)
    i = torch.arange(q.shape[-2], device=q.device)[:, None]
    last = torch.arange(1, k.shape[-2] + 1, device=q.device) * stride - 1
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores.masked_fill(last > i, -torch.inf).softmax(-1) @ v


@wrong("memory_compressed_attention", cause="the mean of the keys' values where nothing is seen")
def memory_compressed_attention_105(q, k, v, stride):
    demand.counts(stride=stride)
    i = torch.arange(q.shape[-2], device=q.device)[:, None]
    last = torch.arange(1, k.shape[-2] + 1, device=q.device) * stride - 1
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(last > i, -1e9)
    return torch.softmax(scores, dim=-1) @ v


# --- top_k_gate ------------------------------------------------------------------------------


@wrong("top_k_gate", cause="softmax over all experts first, then cut: sums below 1")
def top_k_gate_101(scores, k):
    demand.counts(1, scores.shape[1], k=k)
    values, index = scores.softmax(dim=1).topk(k, dim=1)
    return torch.zeros_like(scores).scatter(1, index, values)


@wrong("top_k_gate", cause="others get the score 0 before the softmax")
def top_k_gate_102(scores, k):
    demand.counts(1, scores.shape[1], k=k)
    values, index = torch.topk(scores, k, dim=-1)
    return torch.softmax(torch.zeros_like(scores).scatter(-1, index, values), dim=-1)


@wrong("top_k_gate", cause="a bar keeps all that tie with the k-th")
def top_k_gate_103(scores, k):
    demand.counts(1, scores.shape[1], k=k)
    bar = scores.topk(k, dim=1).values[:, -1:]
    return scores.masked_fill(scores < bar, -torch.inf).softmax(dim=1)


@wrong("top_k_gate", cause="equal weights 1 / k for the chosen: no gradient")
def top_k_gate_104(scores, k):
    demand.counts(1, scores.shape[1], k=k)
    index = scores.topk(k, dim=1).indices
    return torch.zeros_like(scores).scatter(1, index, 1.0 / k)


@wrong("top_k_gate", cause="the weights are detached: the router learns nothing", kind="gradient")
def top_k_gate_105(scores, k):
    demand.counts(1, scores.shape[1], k=k)
    values, index = scores.topk(k, dim=1)
    gates = torch.zeros_like(scores)
    gates.scatter_(1, index, values.softmax(dim=1).detach())
    return gates


# --- load_balance_loss -----------------------------------------------------------------------


@wrong("load_balance_loss", cause="shares of tokens, not of choices: k times too large")
def load_balance_loss_101(scores, gates):
    demand.counts(N=len(scores))
    f = (gates > 0).to(scores.dtype).mean(dim=0)
    return scores.shape[1] * (f * scores.softmax(1).mean(0)).sum()


@wrong("load_balance_loss", cause="the mean gate weight in place of the share of choices")
def load_balance_loss_102(scores, gates):
    demand.counts(N=len(scores))
    return scores.shape[1] * (gates.mean(0) * torch.softmax(scores, dim=1).mean(0)).sum()


@wrong("load_balance_loss", cause="E is forgotten, and @ meets two dtypes")
def load_balance_loss_103(scores, gates):
    demand.counts(N=len(scores))
    chosen = gates > 0
    f = chosen.sum(dim=0) / chosen.sum()
    return f @ scores.softmax(dim=-1).mean(dim=0)


@wrong("load_balance_loss", cause="the mean of the gates as the probability")
def load_balance_loss_104(scores, gates):
    demand.counts(N=len(scores))
    chosen = (gates > 0).float()
    f = chosen.sum(0) / chosen.sum()
    return scores.shape[1] * torch.sum(f * gates.mean(dim=0))


@wrong("load_balance_loss", cause="the softmax runs over the tokens")
def load_balance_loss_105(scores, gates):
    demand.counts(N=len(scores))
    chosen = (gates > 0).to(scores.dtype)
    f = chosen.sum(0) / chosen.sum()
    return scores.shape[1] * (f * scores.softmax(dim=0).mean(dim=0)).sum()
