"""The task of lesson 09: a deep stack of layers says a sequence of digits backwards."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.provided.descent import descend
from attention.provided.progress import Bar
from attention.provided.sublayers import Sublayers

D_MODEL, N_HEADS, T, N_LAYERS = 32, 4, 6, 12
SIZES = (D_MODEL, N_HEADS, 2 * D_MODEL, 0.0)  # of a layer; nothing is dropped
NORMS = ("pre", "post", "none")


class Switched(Sublayers):
    """An encoder layer whose skip connections and norms can be switched off.

    norm  "pre", "post" or "none"
    skip  whether what comes in is added to the updates

    The other arguments are those of `Sublayers`. Raises ValueError for another norm.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm: str = "post",
        skip: bool = True,
    ):
        super().__init__(d_model, n_heads, d_ff, dropout, norm == "pre", fused=True)
        if norm not in NORMS:
            raise ValueError(f"{norm!r} is none of {', '.join(NORMS)}")
        self.norm, self.skip = norm, skip

    def forward(self, x: Tensor) -> Tensor:
        """Attend, then work on every position: (B, T, d_model) to (B, T, d_model)."""
        for sublayer, norm in ((self.attention, self.norm_1), (self.feed_forward, self.norm_2)):
            h = norm(x) if self.norm == "pre" else x
            update = sublayer(h, h, h) if sublayer is self.attention else sublayer(h)
            x = x + update if self.skip else update
            x = norm(x) if self.norm == "post" else x
        return x


class Reverser(nn.Module):
    """Digits and their positions, twelve layers, and scores of the ten digits at each position.

    make      makes one layer
    pre_norm  whether a final norm stands after the last layer
    """

    def __init__(self, make: Callable[[], nn.Module], pre_norm: bool):
        super().__init__()
        self.digits, self.read_out = nn.Embedding(10, D_MODEL), nn.Linear(D_MODEL, 10)
        self.positions = nn.Parameter(torch.randn(T, D_MODEL))
        self.layers = nn.ModuleList(make() for _ in range(N_LAYERS))
        self.norm = nn.LayerNorm(D_MODEL) if pre_norm else nn.Identity()

    def forward(self, digits: Tensor) -> Tensor:
        """Score the digits in reverse: (B, T) to (B, T, 10)."""
        x = self.digits(digits) + self.positions  # (B, T, d_model)
        for layer in self.layers:
            x = layer(x)
        scores: Tensor = self.read_out(self.norm(x))
        return scores


def train(
    make: Callable[[], nn.Module],
    pre_norm: bool,
    rate: float = 0.006,
    warm_up: int = 1,
    seed: int = 1,
    steps: int = 90,
    label: str = "training",
    factor: float = 1.0,
) -> tuple[Reverser, list[float]]:
    """Return a trained `Reverser` and its losses, in nats a digit.

    warm_up  number of steps during which the learning rate rises from 0 to ``rate``
    factor   what the loss is multiplied with before its gradient is taken
    """
    torch.manual_seed(seed)
    model = Reverser(make, pre_norm)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1, (n + 1) / warm_up))
    batches = (torch.randint(10, (16, T)) for _ in range(steps))
    scaled = (factor * reversal_loss(model, digits) for digits in batches)
    with Bar(steps, label) as bar:
        losses = descend(model, scaled, optimizer, schedule, bar)
    return model, [loss / factor for loss in losses]


def reversal_loss(model: nn.Module, digits: Tensor) -> Tensor:
    """The mean cross-entropy of the reversed digits, (B, T)."""
    return F.cross_entropy(model(digits).flatten(0, 1), digits.flip(1).flatten())


def train_one(
    norm: str,
    seed: int,
    rate: float = 0.006,
    warm_up: int = 1,
    skip: bool = True,
    factor: float = 1.0,
    steps: int = 90,
) -> dict[str, Any]:
    """Train twelve `Switched` layers; returns "last", the mean loss of the last ten steps, and
    "losses", means of ten steps."""
    losses = train(
        lambda: Switched(*SIZES, norm=norm, skip=skip),
        norm == "pre",
        rate,
        warm_up,
        seed,
        steps,
        factor=factor,
    )[1]
    means = [round(sum(losses[i : i + 10]) / 10, 3) for i in range(0, steps, 10)]
    return {"last": means[-1], "losses": means}


@torch.no_grad()
def without_layers(model: Reverser, choices: int = 10) -> list[float]:
    """The share of digits right without 0, 1, … all of the layers, chosen at random.

    choices  how often layers are chosen; the shares are means
    """
    draw = torch.Generator().manual_seed(2)
    digits, whole = torch.randint(10, (200, T), generator=draw), model.layers
    shares = []
    for missing in range(len(whole) + 1):
        hits = []
        for _ in range(choices):
            kept = torch.randperm(len(whole), generator=draw)[missing:].sort().values
            model.layers = nn.ModuleList(whole[i] for i in kept.tolist())
            hits.append(model(digits).argmax(dim=-1) == digits.flip(1))  # (B, T)
        shares.append(round(torch.stack(hits).double().mean().item(), 3))
    model.layers = whole
    return shares


def train_and_thin(norm: str, seed: int, warm_up: int = 1) -> dict[str, Any]:
    """Train twelve `Switched` layers; returns "right", what `without_layers` gives."""
    model, _ = train(lambda: Switched(*SIZES, norm=norm), norm == "pre", 0.006, warm_up, seed)
    return {"right": without_layers(model)}


def first_step(norm: str, seed: int, rate: float = 0.006) -> dict[str, float]:
    """Say how far one step of Adam moves an untrained `Reverser`.

    returns  "gradient", the norm of all gradients; "moved", the mean change of a score for the ten
             digits, in standard deviations of the scores before the step
    """
    torch.manual_seed(seed)
    model = Reverser(lambda: Switched(*SIZES, norm=norm), norm == "pre")
    digits = torch.randint(10, (16, T))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    before = model(digits).detach()
    reversal_loss(model, digits).backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    optimizer.step()
    moved = (model(digits).detach() - before).abs().mean() / before.std()
    return {"gradient": round(gradient.norm().item(), 3), "moved": round(moved.item(), 3)}
