"""The Transformer of lessons 05 to 10 on one page: the same weights, the same scores."""

import torch
from torch import nn

PAD, BOS, EOS = 0, 1, 2


def attention(q, k, v, mask):  # lessons 05 and 06
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, float("-inf"))
    nobody = ~mask.any(dim=-1, keepdim=True)  # a query with nothing to look at gets zeros
    return scores.masked_fill(nobody, 0.0).softmax(dim=-1).masked_fill(nobody, 0.0) @ v


class MultiHeadAttention(nn.Module):  # lesson 07
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads = (n_heads, d_model // n_heads)
        self.W_q, self.W_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_v, self.W_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask):
        parts = self.W_q(x), self.W_k(memory), self.W_v(memory)  # (B, T, d_model) each
        q, k, v = (part.unflatten(-1, self.heads).transpose(1, 2) for part in parts)
        context = attention(q, k, v, mask.unsqueeze(1))  # (B, H, T_q, d_head)
        return self.W_o(context.transpose(1, 2).flatten(2))  # (B, T_q, d_model)


def sinusoidal_positions(x):  # lesson 08; bfloat16 itself cannot count beyond 256
    count = torch.arange(max(x.shape)).to(x.device, torch.promote_types(x.dtype, torch.float32))
    angles = count[: x.shape[1], None] / 10000 ** (count[: x.shape[2] : 2] / x.shape[2])
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).to(x.dtype)  # (T, d_model)


class LayerNorm(nn.Module):  # lesson 09, and all of the next three
    def __init__(self, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centred, variance = x - x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        return centred / (variance + 1e-5) ** 0.5 * self.weight + self.bias


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear_2(self.linear_1(x).relu())


class Layer(nn.Module):  # an encoder layer; with cross=True a decoder layer; pre-norm
    def __init__(self, d_model, n_heads, d_ff, dropout, cross=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        if cross:
            self.cross_attention = MultiHeadAttention(d_model, n_heads)
            self.norm_3 = LayerNorm(d_model)
        self.feed_forward, self.dropout = FeedForward(d_model, d_ff), nn.Dropout(dropout)

    def forward(self, x, mask, memory=None, memory_mask=None):
        h, last_norm = self.norm_1(x), self.norm_2
        x = x + self.dropout(self.attention(h, h, mask))
        if memory is not None:
            h, last_norm = self.norm_2(x), self.norm_3
            x = x + self.dropout(self.cross_attention(h, memory, memory_mask))
        return x + self.dropout(self.feed_forward(last_norm(x)))


class Stack(nn.Module):  # lesson 10, and all that follows
    def __init__(self, n_layers, d_model, *sizes, cross=False):
        super().__init__()
        layers = [Layer(d_model, *sizes, cross=cross) for _ in range(n_layers)]
        self.layers, self.norm = nn.ModuleList(layers), LayerNorm(d_model)

    def forward(self, x, *others):
        for layer in self.layers:
            x = layer(x, *others)
        return self.norm(x)


class Transformer(nn.Module):
    def __init__(self, source_size, target_size, d_model, n_heads, d_ff, n_layers, dropout=0.1):
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, d_model)
        self.target_embedding = nn.Embedding(target_size, d_model)
        self.generator = nn.Linear(d_model, target_size, bias=False)
        self.encoder = Stack(n_layers, d_model, n_heads, d_ff, dropout)
        self.decoder = Stack(n_layers, d_model, n_heads, d_ff, dropout, cross=True)
        self.dropout = nn.Dropout(dropout)

    def embed(self, tokens, embedding):
        x = embedding(tokens) * embedding.embedding_dim**0.5  # (B, T, d_model)
        return self.dropout(x + sinusoidal_positions(x))

    def encode(self, source):
        x, mask = self.embed(source, self.source_embedding), (source != PAD).unsqueeze(1)
        return self.encoder(x, mask)  # the memory: (B, T_k, d_model)

    def decode(self, read, memory, source):
        past = read.new_ones(read.shape[1], read.shape[1]).tril().bool()  # lesson 06
        mask, memory_mask = (read != PAD).unsqueeze(1) & past, (source != PAD).unsqueeze(1)
        y = self.decoder(self.embed(read, self.target_embedding), mask, memory, memory_mask)
        return self.generator(y)  # (B, T_q, target_size)

    def forward(self, source, target):
        shifted = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], dim=1)
        return self.decode(shifted, self.encode(source), source)  # (B, T_q, target_size)

    @torch.no_grad()
    def translate(self, source, max_length=100):
        read, memory = torch.full_like(source[:, :1], BOS), self.encode(source)
        while read.shape[1] <= max_length and not (ended := (read == EOS).any(dim=1)).all():
            best = self.decode(read, memory, source)[:, -1].argmax(dim=1)  # (B,)
            read = torch.cat([read, best.masked_fill(ended, PAD).unsqueeze(1)], dim=1)
        return read[:, 1:]
