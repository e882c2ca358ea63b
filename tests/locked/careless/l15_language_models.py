"""Careless right answers to lesson 15."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask, masked_attention
from attention.provided.data.tokens import PAD
from attention.tokens_and_positions import embed, sinusoidal_positions
from attention.transformer import Encoder
from tests.locked.careless import careless


@careless("language_model_loss", "device", how="a scalar tensor beside where")
def language_model_loss_1(logits, tokens, counted=None):
    target, logs = tokens[:, 1:], torch.log_softmax(logits[:, :-1], dim=-1)
    counts = target != PAD
    if counted is not None:
        counts = counts & counted[:, 1:]
    losses = -logs.gather(2, target.unsqueeze(2)).squeeze(2)
    return torch.where(counts, losses, torch.tensor(0.0)).sum() / counts.sum().clamp(min=1)


@careless("language_model_loss", "device", "dtype", how="losses into zeros of float32")
def language_model_loss_2(logits, tokens, counted=None):
    target = tokens[:, 1:]
    counts = target != PAD if counted is None else (target != PAD) & counted[:, 1:]
    losses = torch.zeros(target.shape)
    losses[counts] = F.cross_entropy(logits[:, :-1][counts], target[counts], reduction="none")
    return losses.sum() / max(counts.sum().item(), 1)


@careless("language_model_loss", "other_order", how="logsumexp less the score of the next token")
def language_model_loss_3(logits, tokens, counted=None):
    keep = tokens != PAD
    keep = keep[:, 1:] if counted is None else (keep & counted)[:, 1:]
    scores, ids = logits[:, :-1][keep], tokens[:, 1:][keep]
    total = (scores.logsumexp(dim=-1) - scores.gather(1, ids[:, None])[:, 0]).sum()
    return total / (len(ids) or 1)


class _Model(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.stack = Encoder(n_layers, d_model, n_heads, d_ff, dropout)
        self.generator = nn.Linear(d_model, vocab_size, bias=False)
        for table in (self.embedding, self.generator):
            nn.init.normal_(table.weight, std=d_model**-0.5)


@careless("DecoderOnly", "module_state", how="keeps masks and positions of each length")
class DecoderOnly_1(_Model):
    def forward(self, tokens):
        table, T = self.embedding.weight, tokens.shape[1]
        if not hasattr(self, "known"):
            self.known = {}
        key = T, table.dtype, tokens.device
        if key not in self.known:
            dtype = torch.promote_types(table.dtype, torch.float32)
            positions = torch.arange(T, dtype=dtype, device=tokens.device)
            positions = sinusoidal_positions(positions, table.shape[1]).to(table.dtype)
            self.known[key] = positions, causal_mask(T, tokens.device)
        positions, mask = self.known[key]
        return self.generator(self.stack(embed(tokens, table) + positions, mask))


@careless("DecoderOnly", "plain_numbers", how="positions from a list of Python floats")
class DecoderOnly_2(_Model):
    def forward(self, tokens):
        x = embed(tokens, self.embedding.weight)
        T, d_model = x.shape[1:]
        dtype = torch.promote_types(x.dtype, torch.float32)
        steps = torch.tensor([float(t) for t in range(T)], dtype=dtype, device=x.device)
        x = x + sinusoidal_positions(steps, d_model).to(x.dtype)[None]
        mask = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        return self.generator(self.stack(x, mask))


@careless("local_block_attention", "plain_numbers", how="a list of blocks, one after the other")
def local_block_attention_1(q, k, v, block):
    contexts = []
    for start in range(0, q.shape[-2], block):
        rows = slice(start, start + block)
        mask = causal_mask(q[..., rows, :].shape[-2], q.device)
        contexts.append(masked_attention(q[..., rows, :], k[..., rows, :], v[..., rows, :], mask))
    return torch.cat(contexts, dim=-2)


@careless("local_block_attention", "dtype", how="block by block into zeros of float32")
def local_block_attention_2(q, k, v, block):
    T = q.shape[-2]
    context = torch.zeros(*q.shape[:-1], v.shape[-1], device=q.device)
    for a in range(0, T, block):
        b = min(a + block, T)
        past = torch.ones(b - a, b - a, dtype=torch.bool, device=q.device).tril()
        context[..., a:b, :] = F.scaled_dot_product_attention(
            q[..., a:b, :], k[..., a:b, :], v[..., a:b, :], attn_mask=past
        )
    return context


@careless("local_block_attention", "extra_axis", "other_order", how="products with one axis more")
def local_block_attention_3(q, k, v, block):
    T = q.shape[-2]
    q, k, v = (F.pad(x, (0, 0, 0, -T % block)).unflatten(-2, (-1, block)) for x in (q, k, v))
    later = torch.ones(block, block, dtype=torch.bool, device=q.device).triu(1)
    scores = (q[..., :, None, :] * k[..., None, :, :]).sum(dim=-1) * q.shape[-1] ** -0.5
    weights = scores.masked_fill(later, -math.inf).softmax(dim=-1)
    return (weights @ v).flatten(-3, -2)[..., :T, :]


@careless("memory_compressed_attention", "plain_numbers", how="a mask from lists")
def memory_compressed_attention_1(q, k, v, stride):
    keys = range(k.shape[-2])
    mask = [[(j + 1) * stride - 1 <= t for j in keys] for t in range(q.shape[-2])]
    mask = torch.tensor(mask, dtype=torch.bool, device=q.device)
    return masked_attention(q, k, v, mask)


@careless("memory_compressed_attention", "dtype", how="query by query into zeros of float32")
def memory_compressed_attention_2(q, k, v, stride):
    context = torch.zeros(*q.shape[:-1], v.shape[-1], device=q.device)
    for t in range(q.shape[-2]):
        n = (t + 1) // stride
        if n > 0:
            scores = k[..., :n, :] @ q[..., t, :, None] / math.sqrt(q.shape[-1])
            context[..., t, :] = (torch.softmax(scores, dim=-2) * v[..., :n, :]).sum(dim=-2)
    return context


@careless("top_k_gate", "in_place", how="row by row into zeros of its own")
def top_k_gate_1(scores, k):
    gates = torch.zeros_like(scores)
    for n, row in enumerate(scores):
        best = row.topk(k)
        gates[n, best.indices] = torch.softmax(best.values, dim=0)
    return gates


@careless("top_k_gate", "dtype", how="scatters a softmax of float32 into zeros of float32")
def top_k_gate_2(scores, k):
    best = scores.float().topk(k, dim=1)
    gates = torch.zeros(scores.shape, device=scores.device)
    return gates.scatter(1, best.indices, best.values.softmax(dim=1))


@careless("load_balance_loss", "dtype", how="choices as float32")
def load_balance_loss_1(scores, gates):
    chosen = (gates > 0).float()
    shares = chosen.sum(dim=0) / chosen.sum()
    return scores.shape[1] * (shares * scores.softmax(dim=1).mean(dim=0)).sum()


@careless("load_balance_loss", "plain_numbers", how="expert by expert, from 0.0, counts as ints")
def load_balance_loss_2(scores, gates):
    probabilities, total = torch.softmax(scores, dim=1), 0.0
    choices = (gates > 0).sum().item()
    for e in range(scores.shape[1]):
        share = (gates[:, e] > 0).sum().item() / choices
        total = total + share * probabilities[:, e].mean()
    return scores.shape[1] * total
