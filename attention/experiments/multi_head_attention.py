"""Lesson 07: how many heads, how small, and whether they ask the same questions.

In its task each item asks for the contents of two others, and one head is too few.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Claim, Experiment, seeded
from attention.provided.training_steps import take_steps

Layer = Callable[..., Any]  # a class like MultiHeadAttention

SEEDS = (0, 1, 2)
HEADS = (1, 2, 4, 7, 14, 28)
ITEMS, CONTENT = 8, 4
D_MODEL = 3 * ITEMS + CONTENT  # 28: three names, one-hot, and the content


def two_pointers(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Make rows of items, each with a name, the names of two items, and a content of 4 numbers.

    returns  x (batch, 8, 28), y (batch, 8, 8): the contents of the first and of the second item
    """
    names = torch.rand(batch, ITEMS, generator=generator).argsort(dim=1)
    first, second = torch.randint(ITEMS, (2, batch, ITEMS), generator=generator)
    content = torch.randn(batch, ITEMS, CONTENT, generator=generator)
    place = names.argsort(dim=1)  # where each name stands
    x = torch.cat([*(F.one_hot(n, ITEMS) for n in (names, first, second)), content], dim=-1)
    found = [
        content.gather(1, place.gather(1, n)[..., None].expand(-1, -1, CONTENT))
        for n in (first, second)
    ]
    return x, torch.cat(found, dim=-1)


def train(layer: nn.Module, read_out: nn.Module, seed: int, steps: int = 240) -> list[float]:
    """Train a layer of self-attention and a linear read-out on fresh items; returns the losses.

    The loss is the mean squared error of the reports; always saying 0 has a loss of 1.
    """
    generator = torch.Generator().manual_seed(seed + 1)
    parameters = [*layer.parameters(), *read_out.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.0)

    def loss() -> Tensor:
        x, y = two_pointers(32, generator)
        error: Tensor = read_out(layer(x, x, x)) - y
        return error.square().mean()

    return list(take_steps((loss() for _ in range(steps)), optimizer))


def errors(layer: nn.Module, read_out: nn.Module, gates: Tensor | None = None) -> list[float]:
    """The mean squared error of the first and of the second report, on 200 rows of items.

    gates  None, or a gate per head, (H,)
    """
    x, y = two_pointers(200, torch.Generator().manual_seed(4))
    with torch.no_grad():
        output = layer(x, x, x, head_mask=gates)
        squares = (read_out(output) - y).square().unflatten(-1, (2, CONTENT))
    found: list[float] = squares.mean(dim=(0, 1, 3)).tolist()
    return found


def _strongest(layer: Any, captured_variance: Callable[[Tensor], Tensor]) -> float:
    """Share of the captured variance in 7 directions of the concatenated W_q and W_k."""
    with torch.no_grad():
        return round(captured_variance(layer.W_q.weight.T @ layer.W_k.weight)[6].item(), 4)


def train_heads(
    n_heads: int,
    seed: int,
    MultiHeadAttention: Layer,
    captured_variance: Callable[[Tensor], Tensor],
) -> dict[str, Any]:
    """Train one layer; the loss at the end, and the directions before and after training."""
    torch.manual_seed(seed)
    layer, read_out = MultiHeadAttention(D_MODEL, n_heads), nn.Linear(D_MODEL, 2 * CONTENT)
    before = _strongest(layer, captured_variance)
    losses = train(layer, read_out, seed)
    return {
        "loss": round(sum(losses[-10:]) / 10, 4),
        "before": before,
        "after": _strongest(layer, captured_variance),
    }


def silence_each(n_heads: int, seed: int, MultiHeadAttention: Layer) -> dict[str, Any]:
    """Train one layer; the errors of both reports with all its heads, and without each in turn."""
    torch.manual_seed(seed)
    layer, read_out = MultiHeadAttention(D_MODEL, n_heads), nn.Linear(D_MODEL, 2 * CONTENT)
    train(layer, read_out, seed)
    gates = [torch.ones(n_heads), *(1 - torch.eye(n_heads))]
    every = [[round(error, 3) for error in errors(layer, read_out, gate)] for gate in gates]
    return {"all heads": every[0], "without": every[1:]}


def show_silenced(rows: list[dict[str, Any]]) -> None:
    """Print what ten layers of two heads lose without one of them, and ten layers of four.

    rows  those of the experiment “a head silenced”
    """
    layers = {n: [row["without"] for row in rows if row["n_heads"] == n] for n in (2, 4)}
    lost = [max(pair) for layer in layers[2] for pair in layer]
    kept = [max(min(pair) for pair in layer) for layer in layers[2]]
    print(
        f"2 heads, one silent: error of the report it fetched {min(lost):.2f} to {max(lost):.2f};"
    )
    print("  of the other one, whichever head is silent, at most", *(f"{x:.2f}" for x in kept))
    print("4 heads, one silent: error of the worse report")
    for name, pick in (("missed least", min), ("missed most", max)):
        worse = (f"{pick(map(max, layer)):.2f}" for layer in layers[4])
        print(f"  if it is the head {name:<12}", *worse)


def train_other(
    n_heads: int, seed: int, MultiHeadAttention: Layer, steps: int = 240, mixed: bool = True
) -> dict[str, float]:
    """Train one layer, for longer or without W_o; the mean loss of the last ten steps.

    mixed  whether W_o is learned; if not, it is the identity, without a bias
    """
    torch.manual_seed(seed)
    layer, read_out = MultiHeadAttention(D_MODEL, n_heads), nn.Linear(D_MODEL, 2 * CONTENT)
    if not mixed:
        layer.W_o.weight.data = torch.eye(D_MODEL)
        layer.W_o.requires_grad_(requires_grad=False)
    losses = train(layer, read_out, seed, steps)
    return {"loss": round(sum(losses[-10:]) / 10, 4)}


EXPERIMENTS = {
    "how many heads": Experiment(
        claim="One head stops at nearly half of the variance; two to seven heads solve the task; "
        "heads of one or two dimensions do worse; trained layers of 1, 2 or 4 heads all use few "
        "directions, untrained ones do not",
        control="the number of heads changed; parameters, task, steps and rate kept",
        points=[{"n_heads": n_heads, "seed": seed} for n_heads in HEADS for seed in SEEDS],
        run=train_heads,
        again={"n_heads": 2, "seed": 0},
    ),
    "a head silenced": Experiment(
        claim="Without one of two heads its report is lost and the other hardly suffers, but for "
        "one seed of ten; of four heads some can go",
        control="a gate of 0 for one head; the trained layer and the items kept",
        points=[{"n_heads": n_heads, "seed": seed} for n_heads in (2, 4) for seed in range(10)],
        run=silence_each,
        again={"n_heads": 2, "seed": 3},
    ),
}
ANSWERS_TO_QUESTIONS = {
    "07 one head for longer": Experiment(
        claim="One head still stops at nearly half of the variance after four times as many steps",
        control="the steps; compared with one head of lesson 07's “how many heads”",
        points=seeded(SEEDS, n_heads=1, steps=960),
        run=train_other,
        again={"n_heads": 1, "steps": 960, "seed": 0},
    ),
    "07 without W_o": Experiment(
        claim="Where a linear read-out follows, two heads solve the task without W_o",
        control="W_o learned, or the identity; compared with two heads of lesson 07's “how many "
        "heads”",
        points=seeded(SEEDS, n_heads=2, mixed=False),
        run=train_other,
        again={"n_heads": 2, "mixed": False, "seed": 0},
    ),
}
CLAIMS = [
    Claim(
        "With more heads of smaller size the parameters stay and the score tables grow",
        control="the number of heads changed; d_model and T kept; counted, not timed",
        seeds="none: a count",
        where="How large is it?",
    ),
]
