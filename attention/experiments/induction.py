"""Lesson 17, a second look: one layer cannot continue what repeats, two layers can, and how.

Random tokens repeat with a period drawn for each row, so a place says nothing: to know the next
token a model must find what came after the same token before. Elhage and colleagues (2021) and
Olsson and colleagues (2022) call a head that does so an induction head.
"""

from collections.abc import Callable
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments import recorded
from attention.experiments.recorded import Experiment, seeded
from attention.provided.figures import plots, seeds
from attention.provided.training_steps import one_thread, take_steps

SEEDS = (0, 1, 2)
VOCABULARY, T, N_HEADS = 32, 32, 4
PERIODS = (4, 14)  # least and most
STEPS, BATCH, RATE = 700, 64, 3e-3
SHOWN = 24  # tokens of the row that is drawn


def repeated(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw rows of tokens that repeat: ids (B, 32), and the period of each row (B, 1)."""
    least, most = PERIODS
    period = torch.randint(least, most + 1, (count, 1), generator=generator)
    block = torch.randint(VOCABULARY, (count, T), generator=generator)
    return block.gather(1, torch.arange(T) % period), period


class AttentionOnly(nn.Module):
    """Causal attention layers, each added to what comes in; no feed-forward network.

    forward(ids)  (B, T) -> logits (B, T, 32) and the weights of each layer, (B, H, T, T)
    """

    def __init__(self, n_layers: int, d_model: int, MultiHeadAttention: Callable[..., nn.Module]):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, d_model), nn.Embedding(T, d_model)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=d_model**-0.5)
        self.layers = nn.ModuleList(MultiHeadAttention(d_model, N_HEADS) for _ in range(n_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(n_layers + 1))
        self.output = nn.Linear(d_model, VOCABULARY)

    def forward(self, ids: Tensor, head_masks: Any = None) -> tuple[Tensor, list[Tensor]]:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]  # (B, T, d_model)
        mask = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
        seen = []
        for number, layer in enumerate(self.layers):
            y, gates = self.norms[number](x), head_masks[number] if head_masks else None
            update, weights = layer(y, y, y, mask, gates, return_weights=True)
            x = x + update
            seen.append(weights)
        return self.output(self.norms[-1](x)), seen


def train_on_repeats(
    n_layers: int,
    seed: int,
    MultiHeadAttention: Callable[..., nn.Module],
    d_model: int = 64,
) -> dict[str, Any]:
    """Train to predict what repeats; measure it whole, and without single heads of layer 0.

    returns  "right": share of the repeated tokens that are predicted; "parameters"; "previous":
             the mean weight of each head on the token before, by layer; "after the same": on the
             token that followed the same one a period ago; "without a head", "without heads":
             the share right without that head of the first layer which is missed most, and without
             all its heads; "tokens", "maps": a row, and where in it one head of each layer looks
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = AttentionOnly(n_layers, d_model, MultiHeadAttention)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 50) * (1 - step / STEPS)
    )

    def loss() -> Tensor:
        ids, period = repeated(BATCH, generator)
        logits, _ = model(ids[:, :-1])
        return F.cross_entropy(logits[_repeats(period)], ids[:, 1:][_repeats(period)])

    with one_thread():
        for _ in take_steps((loss() for _ in range(STEPS)), optimizer):
            schedule.step()
        return {"parameters": sum(p.numel() for p in model.parameters())} | _measured(model)


def _repeats(period: Tensor) -> Tensor:
    """Which of the tokens 1 to 31 repeat a token that the model has seen followed: (B, 31)."""
    return torch.arange(1, T) > period


@torch.no_grad()
def _measured(model: AttentionOnly) -> dict[str, Any]:
    """How often 500 fresh rows are continued, and where the heads look."""
    ids, period = repeated(500, torch.Generator().manual_seed(99))
    here = torch.arange(1, T - 1)
    after = (torch.arange(T - 1) - period + 1).clamp(min=0)  # (B, 31): followed the same token
    known = (torch.arange(T - 1) >= period).float()

    def right(head_masks: Any = None) -> float:
        best = model(ids[:, :-1], head_masks)[0].argmax(dim=-1)
        return round((best == ids[:, 1:])[_repeats(period)].float().mean().item(), 3)

    before, follows = [], []
    for weights in model(ids[:, :-1])[1]:
        before.append(_hundredths(weights[:, :, here, here - 1].mean(dim=(0, 2))))
        index = after[:, None, :, None].expand(-1, N_HEADS, -1, 1)
        there = weights.gather(3, index)[..., 0]  # (B, H, 31)
        follows.append(_hundredths((there * known[:, None]).sum((0, 2)) / known.sum()))
    others = [torch.ones(N_HEADS)] * (len(model.layers) - 1)
    return {
        "right": right(),
        "previous": before,
        "after the same": follows,
        "without a head": min(right([gates, *others]) for gates in 1.0 - torch.eye(N_HEADS)),
        "without heads": right([torch.zeros(N_HEADS), *others]),
        "tokens": ids[0, :SHOWN].tolist(),
        "maps": _maps(model, ids[:1, :SHOWN], before, follows),
    }


def _maps(model: AttentionOnly, ids: Tensor, *looks: list[list[float]]) -> list[dict[str, Any]]:
    """Of each layer the head that looks most at what its layer is for, in hundredths."""
    found = []
    for layer, weights in enumerate(model(ids)[1]):
        shares = looks[min(layer, 1)][layer]
        head = shares.index(max(shares))
        rows = [_hundredths(row) for row in weights[0, head]]
        found.append({"layer": layer, "head": head, "weights": rows})
    return found


def _hundredths(shares: Tensor) -> list[float]:
    return [round(share, 2) for share in shares.tolist()]


def induction_heads() -> list[Axes]:
    """Draw where one head of each layer looks in a row that repeats, and print what is recorded.

    Recorded, three seeds each: one layer, one wider layer with more parameters, two layers; the
    maps are those of two layers, seed 0. Trained anew in half a minute:
    ``train_on_repeats(2, 0, MultiHeadAttention)``, with lesson 07's class or your own.
    """
    rows = recorded.read("induction", "layers")
    print("layers  parameters  continued right  without layer 0's attention")
    for row in rows:
        print(
            f"{row['n_layers']:6d}  {row['parameters']:10,}  {row['right']:15.3f}  "
            f"{row['without heads']:27.3f}"
        )
    (drawn,) = seeds.where(rows, n_layers=2, seed=0)
    axes = [*plots.panels(columns=2, width=4.4, height=4.2)]
    for ax, one in zip(axes, drawn["maps"], strict=True):
        title = f"layer {one['layer']}, head {one['head']}"
        tokens = drawn["tokens"]
        plots.heatmap(one["weights"], ax, title, tokens, tokens, colorbar=ax is axes[-1])
        ax.tick_params(labelsize=7)
        ax.tick_params(axis="x", rotation=90)
    return axes


EXPERIMENTS = {
    "layers": Experiment(
        points=[
            point
            for n_layers, d_model in ((1, 64), (1, 96), (2, 64))
            for point in seeded(SEEDS, n_layers=n_layers, d_model=d_model)
        ],
        run=train_on_repeats,
        again=None,
    ),
}
