"""Models that learn to write the topic words of a text, and a way to train and test them all."""

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from attention.language_models import (
    DecoderOnly,
    MixtureOfExperts,
    compress,
    generate,
    join_text_and_summary,
    language_model_loss,
    local_block_attention,
    memory_compressed_attention,
)
from attention.masked_attention import causal_mask
from attention.multi_head_attention import MultiHeadAttention, merge_heads, split_heads
from attention.provided.data import keywords
from attention.provided.progress import Bar
from attention.provided.training_steps import descend
from attention.sequence_to_sequence import masked_cross_entropy
from attention.tokens_and_positions import embed
from attention.transformer import Transformer

D_MODEL, N_HEADS, D_FF, N_LAYERS = 64, 2, 128, 2
BLOCK, STRIDE, EXPERTS, CHOSEN = 32, 4, 4, 2
BATCH, LEARNING_RATE, BALANCE = 16, 2.5e-3, 0.01
SHORT, LONG = 64, 128  # words: what a short reader sees of a text, and all of it
WRITTEN = keywords.KEYS + 1  # words of a summary, EOS included


class LocalAttention(MultiHeadAttention):
    """Multi-head attention within blocks, in place of the causal one: the mask is not used.

    block  how many positions a block has; all else is as in `MultiHeadAttention`
    """

    def __init__(self, d_model: int, n_heads: int, block: int):
        super().__init__(d_model, n_heads)
        self.block = block

    def forward(  # type: ignore[override]  # it has no weights to return
        self, query: Tensor, key: Tensor, value: Tensor, mask: object = None
    ) -> Tensor:
        """(B, T, d_model) three times -> (B, T, d_model)."""
        q = split_heads(self.W_q(query), self.n_heads)  # (B, H, T, d_head)
        k = split_heads(self.W_k(key), self.n_heads)  # (B, H, T, d_head)
        v = split_heads(self.W_v(value), self.n_heads)  # (B, H, T, d_head)
        return self.W_o(merge_heads(local_block_attention(q, k, v, self.block)))


class CompressedAttention(MultiHeadAttention):
    """Multi-head attention to compressed keys and values, in place of the causal one.

    stride  how many positions become one; all else is as in `MultiHeadAttention`

    The convolutions are the parameters `compress_k` and `compress_v`, (stride, d_model, d_model).
    They begin as the sum.
    """

    def __init__(self, d_model: int, n_heads: int, stride: int):
        super().__init__(d_model, n_heads)
        total = torch.eye(d_model).repeat(stride, 1, 1)
        self.compress_k, self.compress_v = nn.Parameter(total), nn.Parameter(total.clone())

    def forward(  # type: ignore[override]  # it has no weights to return
        self, query: Tensor, key: Tensor, value: Tensor, mask: object = None
    ) -> Tensor:
        """(B, T, d_model) three times -> (B, T, d_model)."""
        q = split_heads(self.W_q(query), self.n_heads)  # (B, H, T, d_head)
        k = compress(self.W_k(key), self.compress_k)  # (B, T // stride, d_model)
        v = compress(self.W_v(value), self.compress_v)  # (B, T // stride, d_model)
        k, v = split_heads(k, self.n_heads), split_heads(v, self.n_heads)
        context = memory_compressed_attention(q, k, v, len(self.compress_k))
        return self.W_o(merge_heads(context))


class _Orderless(DecoderOnly):
    """A DecoderOnly without positions: the task needs no order."""

    def forward(self, tokens: Tensor) -> Tensor:
        """Score what follows each token: (B, T) ids -> (B, T, vocab_size)."""
        x = embed(tokens, self.embedding.weight)
        return self.generator(self.stack(x, causal_mask(x.shape[1], x.device)))


class _OrderlessTranslator(Transformer):
    """A Transformer without positions."""

    def embed(self, tokens: Tensor, embedding: nn.Embedding) -> Tensor:
        """Turn tokens into vectors that do not know where they stand."""
        return embed(tokens, embedding.weight)


def encoder_decoder() -> nn.Module:
    """One layer on each side: lesson 10's Transformer, without positions."""
    size = len(keywords.WORDS)
    return _OrderlessTranslator(size, size, D_MODEL, N_HEADS, D_FF, n_layers=1, dropout=0.0)


def decoder_only(*attentions: str, experts: bool = False, positions: bool = False) -> nn.Module:
    """Two layers; ``attentions`` says what stands in each: "dense", "local" or "compressed".

    With ``experts`` the feed-forward networks are mixtures that do the same work for each token.
    """
    make = DecoderOnly if positions else _Orderless
    model = make(len(keywords.WORDS), D_MODEL, N_HEADS, D_FF, N_LAYERS, dropout=0.0)
    for layer, kind in zip(model.stack.layers, attentions, strict=True):
        if kind == "local":
            layer.attention = LocalAttention(D_MODEL, N_HEADS, BLOCK)
        if kind == "compressed":
            layer.attention = CompressedAttention(D_MODEL, N_HEADS, STRIDE)
        if experts:
            layer.feed_forward = MixtureOfExperts(D_MODEL, D_FF // CHOSEN, EXPERTS, CHOSEN)
    return model


def mixtures(model: nn.Module) -> list[MixtureOfExperts]:
    """Return the mixtures in a model."""
    return [module for module in model.modules() if isinstance(module, MixtureOfExperts)]


def loss_of(model: nn.Module, texts: Tensor, summaries: Tensor) -> Tensor:
    """Return the mean loss of the summaries' tokens."""
    if isinstance(model, Transformer):
        return masked_cross_entropy(model(texts, summaries), summaries)
    tokens, counted = join_text_and_summary(texts.tolist(), summaries[:, :-1].tolist())
    return language_model_loss(model(tokens), tokens, counted)


def train(
    model: nn.Module,
    steps: int,
    seed: int,
    words: int = LONG,
    read: int | None = None,
    balance: float = BALANCE,
    label: str = "training",
) -> tuple[list[float], float]:
    """Train with AdamW on new texts in every step; returns the losses and the CPU's seconds.

    words    of a text
    read     how many of them the model sees, from the first on; None: all
    balance  factor of the loss that spreads tokens over experts

    The learning rate rises for a fifth of the steps, then falls to 0 as half a wave of the cosine.
    """
    draw = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.2
    )
    experts, begin = mixtures(model), time.process_time()

    def value() -> Tensor:
        texts, summaries = keywords.make(BATCH, words, draw)
        loss = loss_of(model, texts[:, :read], summaries)
        return loss + balance * sum(torch.as_tensor(mixture.balance) for mixture in experts)

    with Bar(steps, label) as bar:
        values = (value() for _ in range(steps))
        losses = descend(model, values, optimizer, schedule, bar, max_norm=1.0)
    return losses, time.process_time() - begin


@torch.no_grad()
def write(model: nn.Module, texts: Tensor) -> Tensor:
    """Write a summary of each text, greedily: (B, M) ids to (B, at most WRITTEN) ids."""
    if isinstance(model, Transformer):
        return model.translate(texts, max_length=WRITTEN)
    sep = torch.full_like(texts[:, :1], keywords.SEP)
    choose: Callable[[Tensor], Tensor] = lambda logits: logits.argmax(dim=1)  # noqa: E731
    return generate(model, torch.cat([texts, sep], dim=1), choose, WRITTEN)


def test(
    model: nn.Module, words: int = LONG, read: int | None = None, count: int = 500
) -> tuple[float, float]:
    """Return the share of topic words found and of summaries without error, on new texts."""
    texts, summaries = keywords.make(count, words, torch.Generator().manual_seed(1_000_000))
    return keywords.scores(write(model, texts[:, :read]), summaries)
