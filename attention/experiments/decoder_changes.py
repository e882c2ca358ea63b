"""What was changed in the decoder since 2017, one switch for each change, trained on three novels.

`Decoder` is the decoder of 2017 where no switch is set, and lesson 20's ModernDecoder where those
of `MODERN` are. Its attention is PyTorch's fused kernel, so that a second of training counts what a
change costs and not how plainly it was written.

What is taken from the lesson itself is imported where it is used: the notebook imports this
module, and while it is graded the answers are hidden.
"""

import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.language_models import tokens_of
from attention.provided.data import novels
from attention.provided.progress import Bar
from attention.provided.training_steps import take_steps
from attention.tokens_and_positions import sinusoidal_positions

VOCABULARY, D_MODEL, N_HEADS, D_FF, N_LAYERS = 1024, 128, 4, 512, 2
READ, PASSAGES, STEPS = 128, 8, 600  # tokens of a passage, passages of a step, steps


@dataclass(frozen=True)
class Switches:
    """What is changed; the default is the decoder of 2017."""

    pre_norm: bool = False
    rms: bool = False
    gated: bool = False
    positions: str = "added"  # sines; or "rotary", or "none"
    n_kv_heads: int = N_HEADS
    qk_norm: bool = False
    bias: bool = True
    window: int | None = None
    scaled: bool = True  # the rows of the table are multiplied by √d
    small: bool = False  # the table begins with a deviation of 0.02, not of 1/√d


MODERN = Switches(
    pre_norm=True,
    rms=True,
    gated=True,
    positions="rotary",
    n_kv_heads=2,
    qk_norm=True,
    bias=False,
    scaled=False,
)
WINDOW = 32
CHANGES = {
    "2017": Switches(),
    "pre-norm": Switches(pre_norm=True),
    "RMSNorm": Switches(rms=True),
    "no biases": Switches(bias=False),
    "SwiGLU": Switches(gated=True),
    "rotary": Switches(positions="rotary"),
    "grouped queries": Switches(n_kv_heads=2),
    "query-key norm": Switches(qk_norm=True),
    "window": Switches(window=WINDOW),
    "small start": Switches(small=True, scaled=False),
    "all": MODERN,
    "all, small start": replace(MODERN, small=True),
    "no positions": Switches(positions="none"),  # the control of rotary
}
RATES = (2e-3, 4e-3, 8e-3)


def norm(width: int, rms: bool) -> nn.Module:
    """RMSNorm or LayerNorm."""
    return nn.RMSNorm(width, eps=1e-6) if rms else nn.LayerNorm(width)


class Attention(nn.Module):
    """Causal self-attention with the switches that concern it."""

    def __init__(self, on: Switches):
        super().__init__()
        self.on, self.d_head = on, D_MODEL // N_HEADS
        shared = on.n_kv_heads * self.d_head
        self.W_q, self.W_o = (nn.Linear(D_MODEL, D_MODEL, bias=on.bias) for _ in range(2))
        self.W_k, self.W_v = (nn.Linear(D_MODEL, shared, bias=on.bias) for _ in range(2))
        if on.qk_norm:
            self.norm_q, self.norm_k = norm(self.d_head, on.rms), norm(self.d_head, on.rms)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d_model) -> (B, T, d_model)."""
        heads = (-1, self.d_head)
        q = self.W_q(x).unflatten(2, heads).transpose(1, 2)  # (B, H, T, d_head)
        k = self.W_k(x).unflatten(2, heads).transpose(1, 2)  # (B, H_kv, T, d_head)
        v = self.W_v(x).unflatten(2, heads).transpose(1, 2)
        if self.on.qk_norm:
            q, k = self.norm_q(q), self.norm_k(k)
        if self.on.positions == "rotary":
            q, k = turn(q), turn(k)
        if self.on.n_kv_heads < N_HEADS:
            k, v = (y.repeat_interleave(N_HEADS // self.on.n_kv_heads, dim=1) for y in (k, v))
        if self.on.window is None:
            context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            context = F.scaled_dot_product_attention(q, k, v, band(x.shape[1], self.on.window))
        output: Tensor = self.W_o(context.transpose(1, 2).flatten(2))
        return output


@functools.lru_cache(maxsize=8)
def angles(T: int, d_head: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of lesson 08, (T, d_head / 2) each."""
    exponents = torch.arange(0, d_head, 2) / d_head
    found = torch.arange(T)[:, None] / 10000**exponents
    return found.cos(), found.sin()


def turn(x: Tensor) -> Tensor:
    """Rotary positions, where feature i belongs to feature i + d_head / 2: `pair_up` says how."""
    first, second = x.chunk(2, dim=-1)
    cos, sin = angles(x.shape[2], x.shape[3])
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


@functools.lru_cache(maxsize=8)
def band(T: int, window: int) -> Tensor:
    """Who sees whom: itself and window - 1 positions before it, (T, T) bool."""
    every = torch.ones(T, T, dtype=torch.bool)
    return every.tril() & every.triu(1 - window)


class Layer(nn.Module):
    """One layer: attention and a feed-forward network, each with its norm."""

    def __init__(self, on: Switches, d_ff: int):
        super().__init__()
        self.on, self.attention = on, Attention(on)
        self.norm_1, self.norm_2 = norm(D_MODEL, on.rms), norm(D_MODEL, on.rms)
        if on.gated:
            from attention.modern_decoder import SwiGLU

            self.feed_forward: nn.Module = SwiGLU(D_MODEL, d_ff)
        else:
            wide, back = nn.Linear(D_MODEL, d_ff, on.bias), nn.Linear(d_ff, D_MODEL, on.bias)
            self.feed_forward = nn.Sequential(wide, nn.ReLU(), back)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d_model) -> (B, T, d_model)."""
        if self.on.pre_norm:
            x = x + self.attention(self.norm_1(x))
            read = self.norm_2(x)
            return x + self.feed_forward(read)
        x = self.norm_1(x + self.attention(x))
        result: Tensor = self.norm_2(x + self.feed_forward(x))
        return result


class Decoder(nn.Module):
    """A language model with some of the changes, and as many parameters as that of 2017.

    d_ff  hidden units of its feed-forward networks; None: as many as make the parameters equal
    """

    def __init__(self, on: Switches, d_ff: int | None = None):
        super().__init__()
        self.on = on
        self.embedding = nn.Embedding(VOCABULARY, D_MODEL)
        nn.init.normal_(self.embedding.weight, std=0.02 if on.small else D_MODEL**-0.5)
        d_ff = d_ff or units(on)
        self.layers = nn.ModuleList(Layer(on, d_ff) for _ in range(N_LAYERS))
        self.norm = norm(D_MODEL, on.rms) if on.pre_norm else nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        """Ids (B, T) -> scores of what follows, (B, T, vocab_size)."""
        x = self.embedding(tokens)
        if self.on.scaled:
            x = x * D_MODEL**0.5
        if self.on.positions == "added":
            x = x + sinusoids(tokens.shape[1])
        for layer in self.layers:
            x = layer(x)
        scores: Tensor = self.norm(x) @ self.embedding.weight.T
        return scores


@functools.lru_cache(maxsize=8)
def sinusoids(T: int) -> Tensor:
    """Lesson 08's positions, (T, d_model)."""
    found: Tensor = sinusoidal_positions(torch.arange(T, dtype=torch.float32), D_MODEL)
    return found


def parameters(model: nn.Module) -> int:
    """How many numbers are learned."""
    return sum(weight.numel() for weight in model.parameters())


@functools.cache
def units(on: Switches) -> int:
    """Hidden units with which a decoder comes nearest to the parameters of that of 2017."""
    wanted = parameters(Decoder(Switches(), D_FF))
    few, more = (parameters(Decoder(on, d_ff)) for d_ff in (8, 9))
    return 8 + round((wanted - few) / (more - few))


def passages(seed: int, steps: int) -> Iterator[Tensor]:
    """Ids (PASSAGES, READ + 1) of three novels, a batch for each step."""
    ids = learned_from()
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        begin = torch.randint(len(ids) - READ, (PASSAGES, 1), generator=draw)
        yield ids[begin + torch.arange(READ + 1)]


@functools.cache
def learned_from() -> Tensor:
    """The ids of the three novels to learn from."""
    return tokens_of(novels.split()[0])


def next_token_loss(model: Any, tokens: Tensor) -> Tensor:
    """Mean −log p of each token but the first."""
    scores = model(tokens[:, :-1])
    return F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())


def learn(
    model: nn.Module, optimizer: torch.optim.Optimizer, rate: float, seed: int, steps: int
) -> tuple[list[float], float]:
    """Train at a rate that rises for a tenth of the steps and then falls along a cosine to 0.

    returns  the losses, in nats per token, and the seconds of processor time that it took
    """
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=steps, pct_start=max(0.1, 2 / steps), cycle_momentum=False
    )
    learned_from()  # not a part of the time
    begin, losses = time.process_time(), []
    model.train()
    batches = (next_token_loss(model, tokens) for tokens in passages(seed, steps))
    with Bar(steps, "passages") as bar:
        for value in take_steps(batches, optimizer, max_norm=1.0):
            schedule.step()
            losses.append(value)
            bar.update(len(losses), value)
    model.eval()
    return losses, time.process_time() - begin


def adamw(weights: Any, rate: float) -> torch.optim.Optimizer:
    """AdamW as lesson 15 uses it."""
    return torch.optim.AdamW(weights, lr=rate, betas=(0.9, 0.98))
