"""Wrong and right answers to the exercises of lesson 15."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask, masked_attention
from attention.tokens_and_positions import embed, sinusoidal_positions
from attention.transformer import Encoder
from autograder.checking.toolbox.registry import alternative, careless, mistake

PAD, BOS, EOS, SEP = 0, 1, 2, 3


def _loss(logits, tokens, counted=None, shift=1, use=True, pad=True, mean=None, where=None):
    """The loss, with steps that can be left out."""
    T = tokens.shape[1]
    logits, target = logits[:, : T - shift], tokens[:, shift:]
    counts = target != PAD if pad else torch.ones_like(target, dtype=torch.bool)
    if counted is not None and use:
        counts = counts & (counted[:, shift:] if where is None else where(counted))
    loss = -logits.log_softmax(-1).gather(2, target[:, :, None])[:, :, 0]
    loss = torch.where(counts, loss, 0.0)
    if mean is not None:
        return mean(loss, counts)
    return loss.sum() / counts.sum().clamp(min=1)


@mistake(
    "language_model_loss",
    hint="This is a mean of the sequences' means. One mean over all tokens that count.",
)
def averages_sequences(logits, tokens, counted=None):
    keep = (tokens != PAD) & (True if counted is None else counted)
    means = []
    for scores, ids, those in zip(logits, tokens, keep, strict=True):
        there = those[1:]  # of one sequence: which of its tokens are predicted and count
        if there.any():
            means.append(F.cross_entropy(scores[:-1][there], ids[1:][there]))
    return torch.stack(means).mean() if means else 0 * logits.sum()


@alternative("language_model_loss")
def lets_pytorch_do_it(logits, tokens, counted=None):
    target = tokens[:, 1:]
    if counted is not None:
        target = torch.where(counted[:, 1:], target, PAD)
    logits = logits[:, :-1].flatten(0, 1)
    total = F.cross_entropy(logits, target.flatten(), ignore_index=PAD, reduction="sum")
    return total / max(1, int((target != PAD).sum()))


@alternative("language_model_loss")
def picks_one_by_one(logits, tokens, counted=None):
    losses = []
    for b in range(tokens.shape[0]):
        for t in range(tokens.shape[1] - 1):
            token = tokens[b, t + 1].item()
            if token != PAD and (counted is None or counted[b, t + 1].item()):
                losses.append(torch.logsumexp(logits[b, t], 0) - logits[b, t, token])
    return sum(losses) / len(losses) if losses else 0 * logits.sum()


@alternative("language_model_loss")
def selects_with_a_mask(logits, tokens, counted=None):
    keep = tokens[:, 1:].ne(0)
    if counted is not None:
        keep = keep.logical_and(counted[:, 1:])
    if not keep.any():
        return logits.new_zeros(())
    return F.cross_entropy(logits[:, :-1][keep], tokens[:, 1:][keep])


@careless("language_model_loss")
def computes_in_float32(logits, tokens, counted=None):
    return _loss(logits.float(), tokens, counted)


@careless("language_model_loss")
def fills_losses_in_on_the_cpu(logits, tokens, counted=None):
    B, T = tokens.shape
    losses, n = torch.zeros(B, T), 0
    for b in range(B):
        for t in range(1, T):
            if tokens[b, t] != PAD and (counted is None or counted[b, t]):
                losses[b, t] = -logits[b, t - 1].log_softmax(0)[tokens[b, t]]
                n += 1
    return losses.sum() / max(n, 1)


class _Decoder(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.stack = Encoder(n_layers, d_model, n_heads, d_ff, dropout)
        self.generator = nn.Linear(d_model, vocab_size, bias=False)

    def rows(self, tokens):
        return embed(tokens, self.embedding.weight)

    def places(self, x):
        return sinusoidal_positions(torch.arange(x.shape[1]).to(x), x.shape[2])

    def mask(self, tokens):
        return causal_mask(tokens.shape[1], tokens.device)

    def forward(self, tokens):
        x = self.rows(tokens)
        return self.generator(self.stack(x + self.places(x), self.mask(tokens)))


@alternative("DecoderOnly")
class WritesItOut(_Decoder):
    def forward(self, tokens):
        table = self.embedding.weight
        T, d_model = tokens.shape[1], table.shape[1]
        x = F.embedding(tokens, table) * d_model**0.5
        t = torch.arange(T, device=x.device, dtype=x.dtype)[:, None]
        angles = t / 10000 ** (
            torch.arange(0, d_model, 2, device=x.device, dtype=x.dtype) / d_model
        )
        x = x + torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
        mask = t >= t.T
        for layer in self.stack.layers:
            x = layer(x, mask)
        return self.stack.norm(x) @ self.generator.weight.T


@alternative("DecoderOnly")
class CountsInFloat32(_Decoder):
    def places(self, x):
        positions = torch.arange(float(x.shape[1]), device=x.device)
        return sinusoidal_positions(positions, x.shape[2])


@alternative("DecoderOnly")
class MasksEachRow(_Decoder):
    def mask(self, tokens):
        B, T = tokens.shape
        future = torch.ones(B, T, T, device=tokens.device).triu(1)
        return future == 0


@careless("DecoderOnly")
class CountsOnTheCpu(_Decoder):
    def places(self, x):
        return sinusoidal_positions(torch.arange(float(x.shape[1])), x.shape[2])


@careless("DecoderOnly")
class MasksOnTheCpu(_Decoder):
    def mask(self, tokens):
        T = tokens.shape[1]
        return torch.ones(T, T, dtype=torch.bool).tril()


def _blocks(q, k, v, block, mask=None, pad=None):
    T = q.shape[-2]
    if pad is None:
        q, k, v = (F.pad(x, (0, 0, 0, -T % block)) for x in (q, k, v))
    q, k, v = (x.unflatten(-2, (-1, block)) for x in (q, k, v))
    mask = causal_mask(block, q.device) if mask is None else mask(block, q.device)
    return masked_attention(q, k, v, mask).flatten(-3, -2)[..., :T, :]


@alternative("local_block_attention")
def works_block_by_block(q, k, v, block):
    parts = []
    for begin in range(0, q.shape[-2], block):
        mine = slice(begin, begin + block)
        one = q[..., mine, :]
        mask = causal_mask(one.shape[-2], q.device)
        parts.append(masked_attention(one, k[..., mine, :], v[..., mine, :], mask))
    return torch.cat(parts, dim=-2)


@alternative("local_block_attention")
def goes_through_the_places_of_a_block(q, k, v, block):
    T, n = q.shape[-2], -(-q.shape[-2] // block)
    q, k, v = (F.pad(x, (0, 0, 0, n * block - T)) for x in (q, k, v))
    q, k, v = (x.reshape(*x.shape[:-2], n, block, x.shape[-1]) for x in (q, k, v))
    rows = []
    for place in range(block):
        seen = slice(0, place + 1)
        scores = torch.einsum("...d,...sd->...s", q[..., place, :], k[..., seen, :])
        weights = (scores / math.sqrt(q.shape[-1])).softmax(-1)
        rows.append(torch.einsum("...s,...sd->...d", weights, v[..., seen, :]))
    context = torch.stack(rows, dim=-2)
    return context.reshape(*context.shape[:-3], n * block, -1)[..., :T, :]


@careless("local_block_attention")
def masks_the_blocks_on_the_cpu(q, k, v, block):
    return _blocks(q, k, v, block, lambda block, device: causal_mask(block))


@careless("local_block_attention")
def fills_blocks_in_on_the_cpu(q, k, v, block):
    context = torch.zeros(*q.shape[:-1], v.shape[-1])
    for begin in range(0, q.shape[-2], block):
        one, two, three = (x[..., begin : begin + block, :] for x in (q, k, v))
        mask = causal_mask(one.shape[-2], q.device)
        context[..., begin : begin + block, :] = masked_attention(one, two, three, mask)
    return context


def _compressed(q, k, v, stride, sees):
    t = torch.arange(q.shape[-2], device=q.device)[:, None]
    j = torch.arange(k.shape[-2], device=q.device)
    return masked_attention(q, k, v, sees(t, j, stride))


@alternative("memory_compressed_attention")
def counts_whole_stretches(q, k, v, stride):
    return _compressed(q, k, v, stride, lambda t, j, s: j < (t + 1).div(s, rounding_mode="floor"))


@alternative("memory_compressed_attention")
def goes_from_stretch_to_stretch(q, k, v, stride):
    T, rows = q.shape[-2], []
    for t in range(T):
        n = (t + 1) // stride
        weights = (q[..., t : t + 1, :] @ k[..., :n, :].mT / q.shape[-1] ** 0.5).softmax(-1)
        rows.append(weights @ v[..., :n, :])  # without keys, a sum of nothing
    return torch.cat(rows, dim=-2)


@alternative("memory_compressed_attention")
def thins_a_causal_mask(q, k, v, stride):
    mask = causal_mask(q.shape[-2], q.device)[:, stride - 1 :: stride]
    return masked_attention(q, k, v, mask[:, : k.shape[-2]])


@careless("memory_compressed_attention")
def compares_on_the_cpu(q, k, v, stride):
    t, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])
    return masked_attention(q, k, v, j * stride + stride - 1 <= t)


@careless("memory_compressed_attention")
def fills_positions_in_on_the_cpu(q, k, v, stride):
    context = torch.zeros(*q.shape[:-1], v.shape[-1])
    for t in range(stride - 1, q.shape[-2]):
        n = (t + 1) // stride
        seen = masked_attention(q[..., t : t + 1, :], k[..., :n, :], v[..., :n, :])
        context[..., t, :] = seen[..., 0, :]
    return context


@alternative("top_k_gate")
def hides_the_others(scores, k):
    chosen = scores.sort(dim=1, descending=True).indices[:, :k]
    hidden = torch.full_like(scores, -math.inf).scatter(1, chosen, 0.0)
    return (scores + hidden).softmax(dim=1)


@alternative("top_k_gate")
def gates_in_a_loop(scores, k):
    rows = []
    for row in scores:
        chosen = sorted(range(len(row)), key=lambda e: row[e].item())[-k:]
        others = torch.ones_like(row, dtype=torch.bool)
        others[chosen] = False
        rows.append(torch.where(others, -math.inf, row).softmax(0))
    return torch.stack(rows)


@alternative("top_k_gate")
def divides_what_is_left(scores, k):
    chosen = scores.argsort(dim=1).argsort(dim=1) >= scores.shape[1] - k
    kept = torch.exp(scores - scores.amax(dim=1, keepdim=True)) * chosen
    return kept / kept.sum(dim=1, keepdim=True)


@careless("top_k_gate")
def scatters_into_the_cpu(scores, k):
    best, chosen = scores.topk(k, dim=1)
    return torch.zeros(scores.shape, dtype=scores.dtype).scatter(1, chosen, best.softmax(1))


@careless("top_k_gate")
def fills_gates_in_one_by_one(scores, k):
    gates = torch.zeros(scores.shape)
    for n, row in enumerate(scores):
        best, chosen = row.topk(k)
        for e, weight in zip(chosen.tolist(), best.softmax(0).tolist(), strict=True):
            gates[n, e] = weight
    return gates


def _balance(scores, gates, share=None, probability=None, times=None):
    chosen = (gates > 0).to(scores)
    f = chosen.sum(0) / chosen.sum() if share is None else share(chosen)
    P = scores.softmax(-1).mean(0) if probability is None else probability(scores)
    return (scores.shape[1] if times is None else times) * (f * P).sum()


@alternative("load_balance_loss")
def counts_with_einsum(scores, gates):
    chosen = torch.where(gates != 0, 1.0, 0.0).to(scores.dtype)
    product = torch.einsum("ne,me->", chosen, torch.softmax(scores, 1))
    return product * scores.shape[1] / (chosen.sum() * scores.shape[0])


@alternative("load_balance_loss")
def counts_expert_by_expert(scores, gates):
    probabilities, total = scores.softmax(1), 0.0
    for e in range(scores.shape[1]):
        share = (gates[:, e] > 0).sum() / (gates > 0).sum()
        total = total + share.to(scores.dtype) * probabilities[:, e].mean()
    return total * scores.shape[1]


@careless("load_balance_loss")
def counts_on_the_cpu(scores, gates):
    share = torch.zeros(scores.shape[1])
    for row in gates.tolist():
        share += torch.tensor([float(gate > 0) for gate in row])
    return _balance(scores, gates, share=lambda chosen: share / share.sum())


@careless("load_balance_loss")
def balances_in_float32(scores, gates):
    return _balance(scores.float(), gates)


IN_FLOAT32 = "the check's models are float32"
EQUIVALENT = {
    "DecoderOnly: with one call of `promote_types` left out: wide = x.dtype": IN_FLOAT32,
    "DecoderOnly: with two arguments of one call of `promote_types` exchanged: wide = "
    "torch.promote_types(torch.float32, x.dtype)": "the wider of two dtypes has no order",
    "DecoderOnly: with one call of `to` left out: x = x + sinusoidal_positions(positions, "
    "d_model)": IN_FLOAT32,
    "language_model_loss: with one bound of a slice left out: log_p = "
    "torch.log_softmax(logits[:, :], dim=-1)": ("gather reads as many positions as the target has"),
    "DecoderOnly: without `dtype` in one call of `arange`: positions = torch.arange(T, "
    "device=x.device)": ("whole numbers make positions in float32, which is near enough"),
    "local_block_attention: with `k` once where `q` belongs: T = k.shape[-2]": (
        "all three have T positions"
    ),
    "local_block_attention: with `v` once where `q` belongs: T = v.shape[-2]": (
        "all three have T positions"
    ),
    "local_block_attention: with `k` once where `q` belongs: context = masked_attention(q, "
    "k, v, causal_mask(block, k.device))": ("all three are on one device"),
    "local_block_attention: with `v` once where `q` belongs: context = masked_attention(q, "
    "k, v, causal_mask(block, v.device))": ("all three are on one device"),
    "memory_compressed_attention: with `k` once where `q` belongs: position = "
    "torch.arange(q.shape[-2], device=k.device)": ("all three are on one device"),
    "memory_compressed_attention: with `v` once where `q` belongs: position = "
    "torch.arange(q.shape[-2], device=v.device)": ("all three are on one device"),
    "memory_compressed_attention: with `v` once where `k` belongs: last = "
    "torch.arange(v.shape[-2], device=q.device) * stride + stride - 1": (
        "there are as many values as keys"
    ),
    "memory_compressed_attention: with `k` once where `q` belongs: last = "
    "torch.arange(k.shape[-2], device=k.device) * stride + stride - 1": (
        "all three are on one device"
    ),
    "memory_compressed_attention: with `v` once where `q` belongs: last = "
    "torch.arange(k.shape[-2], device=v.device) * stride + stride - 1": (
        "all three are on one device"
    ),
    "top_k_gate: without `dim` in one call of `topk`: best, chosen = scores.topk(k)": (
        "the last axis is the default"
    ),
    "top_k_gate: with one minus sign left out: best, chosen = scores.topk(k, dim=1)": (
        "of two axes the second is the last"
    ),
    "top_k_gate: with one minus sign left out: weights = torch.softmax(best, dim=1)": (
        "of two axes the second is the last"
    ),
    "top_k_gate: with one minus sign left out: return torch.zeros_like(scores).scatter(1, "
    "chosen, weights)": ("of two axes the second is the last"),
    "load_balance_loss: with one call of `to` left out: chosen = gates > 0": (
        "whole numbers divide to float32, which is near enough"
    ),
    "load_balance_loss: with `gates` once where `scores` belongs: chosen = (gates > "
    "0).to(gates.dtype)": ("both have the same dtype"),
    "load_balance_loss: with one call of `sum` left out: share = chosen / chosen.sum()": (
        "the sum over the tokens is then taken at the end"
    ),
    "load_balance_loss: with one minus sign left out: probability = torch.softmax(scores, "
    "dim=1).mean(dim=0)": ("of two axes the second is the last"),
    "load_balance_loss: with `gates` once where `scores` belongs: return gates.shape[1] * "
    "(share * probability).sum()": ("both have E columns"),
}
