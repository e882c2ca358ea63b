"""Answers to lesson 07 that were written without a look at its checks."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from attention.multi_head_attention import attend
from tests.locked import right, wrong


class _Given(nn.Module):
    """What the notebook gives, and four right projections."""

    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.dropout, self.fused = dropout, fused
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def cut(self, x):
        return x.view(x.shape[0], x.shape[1], self.n_heads, self.d_head).transpose(1, 2)


@wrong(
    "MultiHeadAttention",
    cause="lines up only a head_mask of (H,); one of (B, H) fails",
    kind="crash",
)
class MultiHeadAttention_5(_Given):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        if mask is not None:
            mask = mask.unsqueeze(-3)
        fused = self.fused and not return_weights
        q, k, v = self.cut(self.W_q(query)), self.cut(self.W_k(key)), self.cut(self.W_v(value))
        p = self.dropout if self.training else 0.0
        context, weights = attend(q, k, v, mask, p, fused)
        if head_mask is not None:
            context = context * head_mask.view(1, self.n_heads, 1, 1)
        output = self.W_o(context.transpose(1, 2).flatten(2))
        return (output, weights) if return_weights else output


@wrong(
    "MultiHeadAttention", cause="returns the pair also when no weights were asked for", kind="type"
)
class MultiHeadAttention_6(_Given):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        if mask is not None:
            mask = mask.unsqueeze(-3)
        fused = self.fused and not return_weights
        q, k, v = self.cut(self.W_q(query)), self.cut(self.W_k(key)), self.cut(self.W_v(value))
        p = self.dropout if self.training else 0.0
        context, weights = attend(q, k, v, mask, p, fused)
        if head_mask is not None:
            context = context * head_mask[..., None, None]
        return self.W_o(context.transpose(1, 2).flatten(2)), weights


@right("MultiHeadAttention", how="one head after the other in a loop, projections in another order")
class MultiHeadAttention_13(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.dropout, self.fused = dropout, fused
        for name in ("W_o", "W_v", "W_k", "W_q"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=True))

    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        if mask is not None:
            mask = mask.unsqueeze(-3)
        fused = self.fused and not return_weights
        p = self.dropout if self.training else 0.0
        q, k, v = self.W_q(query), self.W_k(key), self.W_v(value)
        contexts, all_weights = [], []
        for h in range(self.n_heads):
            part = slice(h * self.d_head, (h + 1) * self.d_head)
            one = (x[:, None, :, part] for x in (q, k, v))  # (B, 1, T, d_head)
            context, weights = attend(*one, mask, p, fused)
            context = context[:, 0]
            if head_mask is not None:
                context = context * head_mask[..., h].reshape(-1, 1, 1)
            contexts.append(context)
            all_weights.append(weights)
        output = self.W_o(torch.cat(contexts, dim=-1))
        if return_weights:
            return output, torch.cat(all_weights, dim=1)
        return output


@right("MultiHeadAttention", how="einops-like view and permute, the gate multiplied after merging")
class MultiHeadAttention_14(_Given):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        if mask is not None:
            mask = mask.unsqueeze(-3)
        fused = self.fused and not return_weights
        heads = (self.n_heads, self.d_head)

        def project(layer, x):
            return layer(x).reshape(*x.shape[:2], *heads).permute(0, 2, 1, 3).contiguous()

        p = float(self.training) * self.dropout
        context, weights = attend(
            project(self.W_q, query),
            project(self.W_k, key),
            project(self.W_v, value),
            mask,
            p,
            fused,
        )
        merged = context.permute(0, 2, 1, 3)  # (B, T_q, H, d_head)
        if head_mask is not None:
            gates = head_mask if head_mask.dim() == 2 else head_mask[None]
            merged = merged * gates[:, None, :, None]
        output = self.W_o(merged.reshape(*query.shape[:2], -1))
        if not return_weights:
            return output
        return output, weights


@wrong(
    "collaborative_heads",
    cause="multiplies q with mixing without an axis for the heads, which does not fit",
    kind="crash",
)
def collaborative_heads_6(q, k, v, mixing, d_head):
    scores = (q * mixing) @ k.transpose(1, 2) / math.sqrt(d_head)
    return torch.softmax(scores, dim=-1).unsqueeze(1) @ v


@wrong(
    "collaborative_heads",
    cause="takes exp of the raw scores, which overflows for large ones",
    kind="extreme",
)
def collaborative_heads_7(q, k, v, mixing, d_head):
    e = torch.exp(torch.einsum("bid,hd,bjd->bhij", q, mixing, k) / math.sqrt(d_head))
    return e / e.sum(dim=-1, keepdim=True) @ v


@right("collaborative_heads", how="a loop over the heads with a diagonal matrix")
def collaborative_heads_8(q, k, v, mixing, d_head):
    contexts = []
    for h, m in enumerate(mixing):
        scores = q @ torch.diag(m) @ k.mT * d_head**-0.5
        contexts.append(F.softmax(scores, dim=-1) @ v[:, h])
    return torch.stack(contexts, dim=1)


@right("collaborative_heads", how="masked_attention of mixed queries, rescaled to d_head")
def collaborative_heads_9(q, k, v, mixing, d_head):
    mixed = q.unsqueeze(1) * mixing[:, None, :]  # (B, H, T_q, d_shared)
    return masked_attention(mixed * math.sqrt(q.shape[-1] / d_head), k.unsqueeze(1), v)


# --- head_updates ----------------------------------------------------------------------------


@wrong("head_updates", cause="transposes W_o, as if it were PyTorch's weight", kind="value")
def head_updates_1(heads, W_o):
    H, d_head = heads.shape[1], heads.shape[3]
    return heads @ W_o.T.reshape(H, d_head, -1)


@wrong("head_updates", cause="cuts W_o into columns, not into rows", kind="shape")
def head_updates_3(heads, W_o):
    H = heads.shape[1]
    parts = W_o.chunk(H, dim=1)
    merged = heads.transpose(1, 2).flatten(2)
    return torch.stack([merged @ part for part in parts], dim=1)


@wrong(
    "head_updates", cause="head h gets d_head rows from row h on, not from h · d_head", kind="value"
)
def head_updates_6(heads, W_o):
    d_head = heads.shape[-1]
    updates = [heads[:, h] @ W_o[h : h + d_head] for h in range(heads.shape[1])]
    return torch.stack(updates, dim=1)


@wrong(
    "head_updates",
    cause="silences all heads but one, and merges without moving the heads behind the positions",
    kind="value",
)
def head_updates_8(heads, W_o):
    B, H, T, d_head = heads.shape
    updates = []
    for h in range(H):
        alone = torch.zeros_like(heads)
        alone[:, h] = heads[:, h]
        updates.append(alone.reshape(B, T, H * d_head) @ W_o)
    return torch.stack(updates, dim=1)


@wrong("head_updates", cause="divides by the number of heads, as for a mean", kind="value")
def head_updates_9(heads, W_o):
    H, d_head = heads.shape[1], heads.shape[3]
    return heads @ W_o.unflatten(0, (H, d_head)) / H


@right("head_updates", how="merges the contexts with all heads but one silenced")
def head_updates_10(heads, W_o):
    gates = torch.eye(heads.shape[1], dtype=heads.dtype, device=heads.device)
    alone = heads.unsqueeze(1) * gates[None, :, :, None, None]  # (B, H, H, T, d_head)
    return alone.transpose(2, 3).flatten(3) @ W_o


# --- heads_by_hand -------------------------------------------------------------------------------


@wrong("heads_by_hand", cause="forgets the division by √14")
def heads_by_hand_1(strength):
    W_q, W_k, W_v = torch.zeros(3, 28, 28)
    for head in range(2):
        at = 14 * head
        W_q[8 + 8 * head : 16 + 8 * head, at : at + 8] = strength * torch.eye(8)
        W_k[0:8, at : at + 8] = torch.eye(8)
        W_v[24:28, at : at + 4] = torch.eye(4)
    return W_q, W_k, W_v


@wrong("heads_by_hand", cause="takes the root of 28 numbers, not of the 14 of a head")
def heads_by_hand_2(strength):
    W_q, W_k, W_v = torch.zeros(28, 28), torch.zeros(28, 28), torch.zeros(28, 28)
    factor = strength * math.sqrt(28)
    W_q[8:16, 0:8] = factor * torch.eye(8)
    W_q[16:24, 14:22] = factor * torch.eye(8)
    W_k[0:8, 0:8] = torch.eye(8)
    W_k[0:8, 14:22] = torch.eye(8)
    W_v[24:28, 0:4] = torch.eye(4)
    W_v[24:28, 14:18] = torch.eye(4)
    return W_q, W_k, W_v


@wrong("heads_by_hand", cause="the matrices lie as in nn.Linear, outputs first")
def heads_by_hand_3(strength):
    W_q, W_k, W_v = torch.zeros(28, 28), torch.zeros(28, 28), torch.zeros(28, 28)
    factor = strength * math.sqrt(14)
    W_q[0:8, 8:16] = factor * torch.eye(8)
    W_q[14:22, 16:24] = factor * torch.eye(8)
    W_k[0:8, 0:8] = torch.eye(8)
    W_k[14:22, 0:8] = torch.eye(8)
    W_v[0:4, 24:28] = torch.eye(4)
    W_v[14:18, 24:28] = torch.eye(4)
    return W_q, W_k, W_v


@wrong("heads_by_hand", cause="head 1's values stand right behind head 0's, in head 0's columns")
def heads_by_hand_4(strength):
    W_q, W_k, W_v = torch.zeros(28, 28), torch.zeros(28, 28), torch.zeros(28, 28)
    factor = strength * math.sqrt(14)
    W_q[8:16, 0:8] = factor * torch.eye(8)
    W_q[16:24, 14:22] = factor * torch.eye(8)
    W_k[0:8, 0:8] = torch.eye(8)
    W_k[0:8, 14:22] = torch.eye(8)
    W_v[24:28, 0:4] = torch.eye(4)
    W_v[24:28, 4:8] = torch.eye(4)
    return W_q, W_k, W_v


@wrong("heads_by_hand", cause="the factor on queries and on keys, so the scores are too large")
def heads_by_hand_5(strength):
    W_q, W_k, W_v = torch.zeros(28, 28), torch.zeros(28, 28), torch.zeros(28, 28)
    factor = strength * math.sqrt(14)
    for start, name in ((0, 8), (14, 16)):
        W_q[name : name + 8, start : start + 8] = factor * torch.eye(8)
        W_k[0:8, start : start + 8] = factor * torch.eye(8)
        W_v[24:28, start : start + 4] = torch.eye(4)
    return W_q, W_k, W_v


@right("heads_by_hand", how="number by number")
def heads_by_hand_6(strength):
    W_q, W_k, W_v = (torch.zeros(28, 28) for _ in range(3))
    for name in range(8):
        W_q[8 + name, name] = W_q[16 + name, 14 + name] = strength * 14**0.5
        W_k[name, name] = W_k[name, 14 + name] = 1
    for number in range(4):
        W_v[24 + number, number] = W_v[24 + number, 14 + number] = 1
    return W_q, W_k, W_v


@right("heads_by_hand", how="rows of a large identity matrix, padded and put side by side")
def heads_by_hand_7(strength):
    numbers = torch.eye(28)

    def copied(first, second, size):
        halves = (numbers[:, start : start + size] for start in (first, second))
        return torch.cat([F.pad(half, (0, 14 - size)) for half in halves], dim=1)

    return copied(8, 16, 8) * (strength * math.sqrt(14)), copied(0, 0, 8), copied(24, 24, 4)
