"""Wrong answers to lesson 13."""

import torch
from torch import nn

from attention.masked_attention import masked_attention
from attention.multi_head_attention import merge_heads, split_heads
from tests.locked import wrong

# --- sample_tokens ---------------------------------------------------------------------------


@wrong("sample_tokens", cause="multiplies by the temperature")
def sample_tokens_101(logits, noise, temperature=1.0):
    ends = torch.softmax(logits * temperature, dim=1).cumsum(1)
    return (ends <= noise[:, None] * ends[:, -1:]).sum(dim=1)


@wrong(
    "sample_tokens",
    cause="the temperature divides the probabilities, to no effect",
)
def sample_tokens_102(logits, noise, temperature=1.0):
    p = logits.softmax(dim=-1) / temperature
    ends = p.cumsum(-1)
    return (ends <= noise.unsqueeze(1) * ends[:, -1:]).sum(-1)


@wrong("sample_tokens", cause="one token too far")
def sample_tokens_103(logits, noise, temperature=1.0):
    ends = torch.cumsum(torch.softmax(logits / temperature, dim=-1), dim=-1)
    index = (ends <= noise[:, None] * ends[:, -1:]).sum(dim=-1) + 1
    return index.clamp(max=logits.shape[1] - 1)


@wrong("sample_tokens", cause="draws from the sorted probabilities: places, not ids")
def sample_tokens_104(logits, noise, temperature=1.0):
    p = torch.softmax(logits / temperature, dim=1).sort(dim=1, descending=True).values
    ends = p.cumsum(dim=1)
    return (ends <= noise[:, None] * ends[:, -1:]).sum(dim=1)


@wrong("sample_tokens", cause="the most probable token, whatever the noise")
def sample_tokens_105(logits, noise, temperature=1.0):
    return torch.argmax(logits / temperature, dim=-1)


@wrong("sample_tokens", cause="exp without a maximum: NaN for scores of 1000", kind="extreme")
def sample_tokens_106(logits, noise, temperature=1.0):
    e = torch.exp(logits / temperature)
    ends = e.cumsum(dim=1)
    return (ends <= noise[:, None] * ends[:, -1:]).sum(dim=1)


# --- top_k_filter ----------------------------------------------------------------------------


@wrong("top_k_filter", cause="drops the k best and keeps the others")
def top_k_filter_101(logits, k):
    k = min(k, logits.shape[1])
    return logits.scatter(1, logits.topk(k, dim=1).indices, -torch.inf)


@wrong("top_k_filter", cause="the bar is the k-th best of the whole batch")
def top_k_filter_102(logits, k):
    k = min(k, logits.shape[1])
    bar = logits.flatten().topk(k).values[-1]
    return logits.masked_fill(logits < bar, -torch.inf)


@wrong("top_k_filter", cause="<= drops the k-th best, too")
def top_k_filter_103(logits, k):
    bar = torch.topk(logits, min(k, logits.size(-1)), dim=-1).values[:, -1, None]
    return torch.where(logits <= bar, -torch.inf, logits)


@wrong("top_k_filter", cause="others become 0 in place of -inf")
def top_k_filter_104(logits, k):
    values, index = logits.topk(min(k, logits.shape[-1]), dim=-1)
    return torch.zeros_like(logits).scatter(-1, index, values)


# --- top_p_filter ----------------------------------------------------------------------------


@wrong("top_p_filter", cause="the token that reaches p is dropped")
def top_p_filter_101(logits, p):
    probs, order = logits.softmax(-1).sort(dim=-1, descending=True)
    drop = probs.cumsum(-1) > p
    return logits.masked_fill(torch.zeros_like(drop).scatter(1, order, drop), -torch.inf)


@wrong("top_p_filter", cause="the mask stays in sorted order")
def top_p_filter_102(logits, p):
    probs = torch.sort(torch.softmax(logits, dim=-1), dim=-1, descending=True).values
    before = probs.cumsum(-1) - probs
    return logits.masked_fill(before >= p, -torch.inf)


@wrong("top_p_filter", cause="gather in place of scatter: the order is applied the wrong way")
def top_p_filter_103(logits, p):
    probs, order = logits.softmax(1).sort(1, descending=True)
    drop = (probs.cumsum(1) - probs) >= p
    return logits.masked_fill(drop.gather(1, order), -torch.inf)


@wrong("top_p_filter", cause="sorts from small to large")
def top_p_filter_104(logits, p):
    probs, order = logits.softmax(-1).sort(dim=-1)
    drop = (probs.cumsum(-1) - probs) >= p
    mask = torch.zeros_like(drop).scatter_(-1, order, drop)
    return torch.where(mask, float("-inf"), logits)


@wrong("top_p_filter", cause="keeps tokens whose own probability reaches 1 - p")
def top_p_filter_105(logits, p):
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < 1 - p, -torch.inf)


@wrong("top_p_filter", cause="one token more than the nucleus")
def top_p_filter_106(logits, p):
    probs, order = torch.softmax(logits, dim=1).sort(dim=1, descending=True)
    reached = probs.cumsum(1) >= p
    drop = torch.zeros_like(reached)
    drop[:, 2:] = reached[:, :-2]
    return logits.masked_fill(torch.zeros_like(drop).scatter(1, order, drop), -torch.inf)


# --- CachedAttention -------------------------------------------------------------------------


class _Cached(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)
        self.keys = self.values = None


@wrong("CachedAttention", cause="only the first key and value are remembered")
class CachedAttention_101(_Cached):
    def forward(self, x):
        q, k, v = (split_heads(W(x), self.n_heads) for W in (self.W_q, self.W_k, self.W_v))
        if self.keys is None:
            self.keys, self.values = k, v
        else:
            k, v = torch.cat([self.keys, k], dim=2), torch.cat([self.values, v], dim=2)
        return self.W_o(merge_heads(masked_attention(q, k, v)))


@wrong("CachedAttention", cause="the new key is put in front, the new value at the end")
class CachedAttention_102(_Cached):
    def forward(self, x):
        q = split_heads(self.W_q(x), self.n_heads)
        k = split_heads(self.W_k(x), self.n_heads)
        v = split_heads(self.W_v(x), self.n_heads)
        if self.keys is not None:
            k = torch.cat((k, self.keys), dim=2)
            v = torch.cat((self.values, v), dim=2)
        self.keys, self.values = k, v
        return self.W_o(merge_heads(masked_attention(q, k, v)))


@wrong("CachedAttention", cause="appends along the axis of the heads")
class CachedAttention_103(_Cached):
    def forward(self, x):
        q, k, v = (split_heads(W(x), self.n_heads) for W in (self.W_q, self.W_k, self.W_v))
        self.keys = k if self.keys is None else torch.cat([self.keys, k], dim=1)
        self.values = v if self.values is None else torch.cat([self.values, v], dim=1)
        return self.W_o(merge_heads(masked_attention(q, self.keys, self.values)))


@wrong("CachedAttention", cause="attends before the new position is appended")
class CachedAttention_104(_Cached):
    def forward(self, x):
        q, k, v = (split_heads(W(x), self.n_heads) for W in (self.W_q, self.W_k, self.W_v))
        old = (k, v) if self.keys is None else (self.keys, self.values)
        context = masked_attention(q, *old)
        if self.keys is not None:
            k, v = torch.cat([self.keys, k], dim=2), torch.cat([self.values, v], dim=2)
        self.keys, self.values = k, v
        return self.W_o(merge_heads(context))


@wrong("CachedAttention", cause="the output projection is missing")
class CachedAttention_105(_Cached):
    def forward(self, x):
        q, k, v = (split_heads(W(x), self.n_heads) for W in (self.W_q, self.W_k, self.W_v))
        if self.keys is not None:
            k, v = torch.cat([self.keys, k], dim=-2), torch.cat([self.values, v], dim=-2)
        self.keys, self.values = k, v
        return merge_heads(masked_attention(q, k, v))


@wrong("CachedAttention", cause="the query is appended in place of the key")
class CachedAttention_106(_Cached):
    def forward(self, x):
        q, k, v = (split_heads(W(x), self.n_heads) for W in (self.W_q, self.W_k, self.W_v))
        if self.keys is not None:
            v = torch.cat([self.values, v], dim=2)
            k = torch.cat([self.keys, q], dim=2)
        self.keys, self.values = k, v
        return self.W_o(merge_heads(masked_attention(q, k, v)))
