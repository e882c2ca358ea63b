"""Lesson 17, a second look: one layer cannot continue what repeats, two layers can, and how.

Random tokens repeat with a period drawn for each row, so a place says nothing: to know the next
token a model must find what came after the same token before. Elhage and colleagues (2021) and
Olsson and colleagues (2022) call a head that does so an induction head.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments import recorded
from attention.experiments.recorded import Experiment, seeded
from attention.provided.figures import plots, seeds
from attention.provided.training_steps import fewer, one_thread, take_steps

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


def trained(
    n_layers: int,
    seed: int,
    MultiHeadAttention: Callable[..., nn.Module],
    d_model: int = 64,
) -> AttentionOnly:
    """Train to predict what repeats: 700 steps, each on 64 fresh rows."""
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
        repeats = torch.arange(1, T) > period  # (B, 31): the token stood there a period ago
        return F.cross_entropy(logits[repeats], ids[:, 1:][repeats])

    with one_thread():
        for _ in take_steps((loss() for _ in range(fewer(STEPS))), optimizer):
            schedule.step()
    return model.requires_grad_(False)


def continued(model: AttentionOnly, head_masks: Any = None) -> float:
    """The share of the repeated tokens of 500 fresh rows that a model predicts.

    head_masks  for each layer (4,): 1 keeps a head, 0 removes it; None keeps all
    """
    right, repeats, _ = _predicted(model, head_masks)
    return round(right[repeats].float().mean().item(), 3)


def by_successors(model: AttentionOnly) -> list[float]:
    """`continued`, where the last token was always followed by the same token, and elsewhere.

    Elsewhere it stands more than once in the stretch, and was followed by different ones.
    """
    right, repeats, several = _predicted(model)
    parts = (repeats & ~several, repeats & several)
    return [round(right[part].float().mean().item(), 3) for part in parts]


def _predicted(model: AttentionOnly, head_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """Of each token of `fresh`, (500, 31): is it predicted? Does it repeat what stood there a
    period ago? Was the token before it followed by another one so far?"""
    ids, period = fresh()
    last, following = ids[:, :-1], ids[:, 1:]
    right = model(last, head_masks)[0].argmax(dim=-1) == following
    before = (last.unsqueeze(2) == last.unsqueeze(1)).tril(-1)  # (500, 31, 31): the same token
    several = (before & (following.unsqueeze(2) != following.unsqueeze(1))).any(dim=-1)
    return right, torch.arange(1, T) > period, several


def fresh() -> tuple[Tensor, Tensor]:
    """500 rows that no training has seen, and their periods."""
    return repeated(500, torch.Generator().manual_seed(99))


def copied_back() -> float:
    """`continued`, if the token a fixed distance back is copied, whatever the tokens are.

    The distance depends on the place in the row: the one that fits most often in 4000 other rows.
    """
    others = repeated(4000, torch.Generator().manual_seed(97))
    (known, learn), (asked, repeats) = (
        ((ids.unsqueeze(2) == ids.unsqueeze(1)).tril(-1), torch.arange(T) > period)
        for ids, period in (others, fresh())
    )  # (n, 32, 32): the same token stood there; (n, 32)
    best = (known & learn.unsqueeze(2)).sum(dim=0).argmax(dim=1)  # (32,)
    right = asked[:, torch.arange(T), best]
    return round(right[repeats].float().mean().item(), 3)


def chance_rows() -> Tensor:
    """500 rows of random tokens without a period, where a token repeats by chance: (500, 32)."""
    return torch.randint(VOCABULARY, (500, T), generator=torch.Generator().manual_seed(98))


def equal_weights() -> Tensor:
    """What a causal head with equal weights looks like, for 500 rows: (500, 1, 32, 32)."""
    mask = torch.ones(T, T).tril()
    return (mask / mask.sum(dim=1, keepdim=True)).expand(500, 1, T, T)


def train_on_repeats(
    n_layers: int,
    seed: int,
    MultiHeadAttention: Callable[..., nn.Module],
    induction_score: Callable[[Tensor, Tensor], Tensor],
    d_model: int = 64,
) -> dict[str, Any]:
    """Train to predict what repeats; measure it whole, and without heads.

    returns  "right": share of the repeated tokens that are predicted; "by successors": the same, as
             `by_successors` divides them; "parameters"; "previous": the mean weight of each head on
             the token before, by layer; "scores", "by chance": the `induction_score` of each head,
             in rows that repeat and in random ones; "without": the share right without all heads
             of one layer, layer by layer; "tokens", "maps": a row, and where in it one head of
             each layer looks
    """
    model = trained(n_layers, seed, MultiHeadAttention, d_model)
    (ids, _), chance = fresh(), chance_rows()
    layers, here = model(ids)[1], torch.arange(1, T)
    before = [_hundredths(one[:, :, here, here - 1].mean(dim=(0, 2))) for one in layers]
    scores = [_hundredths(induction_score(one, ids)) for one in layers]
    kept = torch.ones(n_layers, n_layers, N_HEADS) - torch.eye(n_layers).unsqueeze(2)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "right": continued(model),
        "by successors": by_successors(model),
        "previous": before,
        "scores": scores,
        "by chance": [_hundredths(induction_score(one, chance)) for one in model(chance)[1]],
        "without": [continued(model, [*masks]) for masks in kept],
        "tokens": ids[0, :SHOWN].tolist(),
        "maps": _maps(model, ids[:1, :SHOWN], before, scores),
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


def print_scores(name: str, layers: Sequence[Tensor]) -> None:
    """Print what each head scores, layer by layer, and last a head with equal weights."""
    for number, scores in enumerate(layers):
        which = f"layer {number}" if number + 1 < len(layers) else "equal weights"
        print(f"{name:<10} {which:<14}", *(f"{score:.2f}" for score in scores.tolist()))


def induction_heads() -> list[Axes]:
    """Draw where one head of each layer looks in a row that repeats, and print what is recorded.

    Recorded, three seeds each: one layer, one wider layer with more parameters, two layers; the
    maps are those of two layers, seed 0.
    """
    rows = recorded.read("induction", "layers")
    print("layers  parameters  continued          one successor      several")
    for _, same in itertools.groupby(rows, key=lambda row: row["parameters"]):
        three = [*same]
        shares = [[row["right"], *row["by successors"]] for row in three]
        told = (" ".join(f"{one:.3f}" for one in column) for column in zip(*shares, strict=True))
        print(f"{three[0]['n_layers']:6d}  {three[0]['parameters']:10,}  {'  '.join(told)}")
    (drawn,) = seeds.where(rows, n_layers=2, seed=0)
    axes = [*plots.panels(columns=2, width=4.4, height=4.2)]
    looks = "at the token before", "right after the same token"
    for ax, one in zip(axes, drawn["maps"], strict=True):
        title = f"layer {one['layer']}, head {one['head']}: {looks[one['layer']]}"
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
