"""Lesson 07: how many heads, how small, and what is lost without one of them.

In its task each item asks for the contents of two others, and one head is too few.
"""

from collections.abc import Callable
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments import translator_so_far
from attention.experiments.recorded import Experiment, read, seeded
from attention.masked_attention import causal_mask, masked_attention
from attention.provided.figures import plots, seeds
from attention.provided.measuring import memory
from attention.provided.training_steps import fewer, one_thread
from attention.scaled_dot_product_attention import SelfAttentionHead

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
    generator, losses = torch.Generator().manual_seed(seed + 1), list[float]()
    parameters = [*layer.parameters(), *read_out.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.0)
    for _ in range(steps):
        x, y = two_pointers(32, generator)  # (32, 8, 28) and (32, 8, 8)
        loss = (read_out(layer(x, x, x)) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def first_four(output: Tensor) -> Tensor:
    """The first four numbers of each of two heads: the reports of heads that are set by hand."""
    return torch.cat([output[..., :CONTENT], output[..., D_MODEL // 2 :][..., :CONTENT]], dim=-1)


def errors(layer: nn.Module, read_out: Any, gates: Tensor | None = None) -> list[float]:
    """The mean squared error of the first and of the second report, on 200 rows of items.

    gates  None, or a gate per head, (H,)
    """
    x, y = two_pointers(200, torch.Generator().manual_seed(4))
    with torch.no_grad():
        output = layer(x, x, x, head_mask=gates)
        squares = (read_out(output) - y).square().unflatten(-1, (2, CONTENT))
    found: list[float] = squares.mean(dim=(0, 1, 3)).tolist()
    return found


def train_heads(n_heads: int, seed: int, MultiHeadAttention: Layer) -> dict[str, Any]:
    """Train one layer; the mean loss of the last ten steps."""
    torch.manual_seed(seed)
    layer, read_out = MultiHeadAttention(D_MODEL, n_heads), nn.Linear(D_MODEL, 2 * CONTENT)
    losses = train(layer, read_out, seed)
    return {"loss": round(sum(losses[-10:]) / 10, 4)}


def silence_each(n_heads: int, seed: int, MultiHeadAttention: Layer) -> dict[str, Any]:
    """Train one layer; the errors of both reports with all its heads, and without each in turn."""
    torch.manual_seed(seed)
    layer, read_out = MultiHeadAttention(D_MODEL, n_heads), nn.Linear(D_MODEL, 2 * CONTENT)
    train(layer, read_out, seed)
    gates = [torch.ones(n_heads), *(1 - torch.eye(n_heads))]
    every = [[round(error, 3) for error in errors(layer, read_out, gate)] for gate in gates]
    return {"all heads": every[0], "without": every[1:]}


def loop_over_heads(MultiHeadAttention: Layer) -> tuple[Any, Tensor, Tensor]:
    """Compare a layer of three heads with a loop over single heads, and with fused attention.

    The heads of lesson 05 have no biases, so those of the layer are 0. Each single head gets its
    slice of the layer's weights; all see the same causal mask.

    returns  the layer, in evaluation and without gradients; x (2, 5, 12); and the contexts of the
             single heads (2, 3, 5, 4)
    """
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(d_model=12, n_heads=3).eval(), torch.randn(2, 5, 12)
    layer.requires_grad_(requires_grad=False)
    for name in ("W_q", "W_k", "W_v"):
        nn.init.zeros_(getattr(layer, name).bias)
    contexts = []
    for h in range(3):
        head = SelfAttentionHead(d_model=12, d_head=4).requires_grad_(requires_grad=False)
        for name in ("W_q", "W_k", "W_v"):
            getattr(head, name).weight.copy_(getattr(layer, name).weight[4 * h : 4 * h + 4])
        contexts.append(head(x, causal_mask(5)))
    looped = layer.W_o(torch.cat(contexts, dim=-1))
    ours = layer(x, x, x, causal_mask(5))
    layer.fused = True
    fused = layer(x, x, x, causal_mask(5))
    layer.fused = False
    print("equals a loop over heads:", torch.allclose(ours, looped, atol=1e-6))
    print("equals fused attention:  ", torch.allclose(ours, fused, atol=1e-6))
    return layer, x, torch.stack(contexts, dim=1)


def one_two_or_four_heads(MultiHeadAttention: Layer) -> tuple[dict[int, Any], dict[int, float]]:
    """Train one layer with 1, 2 and 4 heads on the two reports; draw the losses.

    The number of heads changes; parameters, items, seed and steps stay the same.

    returns  {heads: (layer, read_out)}, and {heads: the mean loss of the last ten steps}
    """
    trained, ends, curves = {}, {}, {}
    with one_thread():  # as fast for such small matrices
        for n_heads in (1, 2, 4):
            torch.manual_seed(0)
            layer, read_out = MultiHeadAttention(D_MODEL, n_heads), nn.Linear(D_MODEL, 2 * CONTENT)
            losses = train(layer, read_out, seed=0, steps=fewer(240, most=20))
            trained[n_heads], curves[f"heads: {n_heads}"] = (layer, read_out), losses
            ends[n_heads] = sum(losses[-10:]) / 10
            print(f"heads: {n_heads}   loss of the last 10 steps: {ends[n_heads]:.3f}")
    ax = plots.lines(range(len(losses)), curves, xlabel="step", ylabel="loss")
    ax.set_ylim(bottom=0)
    return trained, ends


def how_many_heads() -> Axes:
    """Draw the recorded loss against the number of heads: after 240 steps, of some after more.

    The number of heads and the steps change; parameters, task and rate stay the same. One of them
    is trained by ``train_heads(2, 0, MultiHeadAttention)``.
    """
    rows = read("multi_head_attention", "how many heads")
    longer = read("multi_head_attention", "many small heads for longer")
    ax = plots.panels(width=5.2, height=2.8)
    for steps, colour, marker in ((240, plots.BLUE, "o-"), (960, plots.VERMILION, "s--")):
        some = rows if steps == 240 else seeds.where(longer, steps=steps)
        counts = [n for n in HEADS if seeds.where(some, n_heads=n)]
        for seed in SEEDS:
            losses = [row["loss"] for row in seeds.where(some, seed=seed)]
            label = f"{steps} steps" if seed == 0 else None
            ax.plot(counts, losses, marker, color=colour, linewidth=1, markersize=4, label=label)
    labels = [f"{n}\n{D_MODEL // n}" for n in HEADS]
    ax.set(xscale="log", xticks=HEADS, xticklabels=labels, ylim=(0, None))
    ax.minorticks_off()
    ax.set(xlabel="heads (above) and d_head (below)", ylabel="loss of the last 10 steps")
    plots.legend(ax, fontsize=8)
    for row in (*rows, *longer)[:: len(SEEDS)]:
        n, steps = row["n_heads"], row.get("steps", 240)
        of = seeds.where(longer, steps=steps) if "steps" in row else rows
        losses = [f"{one['loss']:.4f}" for one in seeds.where(of, n_heads=n)]
        print(f"{n:2} heads of {D_MODEL // n:2}, {steps:4} steps   loss, three seeds:", *losses)
    return ax


def where_two_heads_look(layer: Any) -> list[list[float]]:
    """Draw the weights of a trained layer of two heads on one row of items.

    returns  two rows, for the first and the second item asked for: the mean weight that heads 0
             and 1 give to it
    """
    x, _ = two_pointers(1, torch.Generator().manual_seed(3))
    names, first, second = (x[0, :, 8 * i : 8 * i + 8].argmax(dim=1).tolist() for i in range(3))
    with torch.no_grad():
        _, weights = layer(x, x, x, return_weights=True)  # (1, 2, 8, 8)
    asks = [f"asks {a} and {b}" for a, b in zip(first, second, strict=True)]
    for h, ax in enumerate(plots.panels(columns=2, width=3.6, height=3.2)):
        plots.heatmap(weights[0, h], ax, f"head {h}", queries=asks, keys=names, colorbar=h == 1)
        ax.set(xlabel="keys: name of the item", ylabel="")
    hits = []
    for label, wanted in (("first", first), ("second", second)):
        places = [names.index(name) for name in wanted]
        hits.append([weights[0, h, range(ITEMS), places].mean().item() for h in range(2)])
        print(f"mean weight on the {label:<6} item asked for: head 0 {hits[-1][0]:.2f}", end="")
        print(f"   head 1 {hits[-1][1]:.2f}")
    return hits


def silence(layer: Any, read_out: Any) -> None:
    """Print the errors of both reports with both heads, and without each; then of recorded layers.

    Recorded are ten layers of two heads and ten of four: how bad the reports are without one head.
    The gates change; the trained layer and the 200 rows of items stay the same.
    """
    for gates in ([1.0, 1.0], [0.0, 1.0], [1.0, 0.0]):
        reports = errors(layer, read_out, torch.tensor(gates))
        print(f"gates {gates}   error of the two reports:", *(f"{error:.2f}" for error in reports))
    rows = read("multi_head_attention", "a head silenced")
    two, four = ([row["without"] for row in seeds.where(rows, n_heads=n)] for n in (2, 4))
    lost = [max(pair) for one in two for pair in one]
    print(f"\nten layers of 2 heads: the lost report has an error of {min(lost):.2f}", end="")
    print(f" to {max(lost):.2f},")
    print("  the other one at most", *(f"{max(map(min, one)):.2f}" for one in two))
    print("ten layers of 4 heads: error of the worse report")
    for name, pick in (("least", min), ("most", max)):
        worse = (f"{pick(map(max, one)):.2f}" for one in four)
        print(f"  without the head that is missed {name:<5}", *worse)


def memory_of_heads(MultiHeadAttention: Layer) -> float:
    """Print the megabytes that one call allocates with 1 to 16 heads, weights stored or fused.

    The number of heads changes; 512 positions, d_model = 64 and the parameters stay the same.

    returns  how many times as much 16 heads allocate as one, where the weights are stored
    """
    x, counts = torch.randn(1, 512, 64), (1, 2, 4, 8, 16)
    for name, fused in (("fused", True), ("weights stored", False)):
        layers = [MultiHeadAttention(64, n_heads, fused=fused).eval() for n_heads in counts]
        allocated = [memory.megabytes(lambda layer=layer: layer(x, x, x)) for layer in layers]  # type: ignore[misc]
        print(f"{name:<15} MB for 1, 2, 4, 8, 16 heads:", *(f"{mb:5.1f}" for mb in allocated))
    return allocated[-1] / allocated[0]


def four_heads_or_one() -> None:
    """Print the share of six-digit numbers right of twelve recorded translators: four heads or one.

    The number of heads changes; the layer with W_o and biases, data, 300 steps and rate are kept.
    """
    rows = read("multi_head_attention", "four heads or one")
    for stage, name in (("07", "four heads"), ("07 one head", "one head")):
        shares = (f"{share:.2f}" for share in seeds.at_digits(seeds.where(rows, stage=stage), 6))
        print(f"the layer with {name:<10}, six digits, six seeds:", *shares)


def cache_sizes(share_heads: Callable[[Tensor, int], Tensor]) -> dict[str, float]:
    """Print how large the cache of one text is when query heads share keys and values.

    32 layers of 32 query heads of 128 numbers, 8192 tokens, 2 bytes a number, keys and values.

    returns  {kind: MiB}
    """
    layers, n_heads, d_head, T = 32, 32, 128, 8192
    sizes = {}
    for name, H_kv in (("multi-head", 32), ("grouped-query", 8), ("multi-query", 1)):
        sizes[name] = 2 * layers * H_kv * T * d_head * 2 / 2**20
        print(f"{name:<14} {H_kv:2d} heads of keys   {sizes[name]:6,.0f} MiB")
    k = torch.randn(1, 8, T, d_head)
    for name, keys in (("cached", k), ("shared out", share_heads(k, n_heads))):
        print(
            f"{name + ':':<12} keys {tuple(keys.shape)}   {keys.nbytes / 2**20:.0f} MiB at 4 bytes"
        )
    return sizes


def collaborate(collaborative_heads: Callable[..., Tensor]) -> bool:
    """Compare heads that share queries and keys with ordinary ones; print what sharing saves.

    With a mixing vector of 1 on the features of a head and 0 elsewhere the two must agree.

    returns  whether they do
    """
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 5, 12), torch.randn(2, 7, 12), torch.randn(2, 3, 7, 4)
    mixing = torch.kron(torch.eye(3), torch.ones(1, 4))  # (3, 12): each head listens to its part
    parts = zip(q.split(4, dim=-1), k.split(4, dim=-1), v.unbind(1), strict=True)
    apart = torch.stack([masked_attention(*part) for part in parts], dim=1)
    same = torch.allclose(collaborative_heads(q, k, v, mixing, 4), apart, atol=1e-6)
    print(mixing.int(), "equals ordinary heads:", same)
    for shared in (512, 256, 128):
        count = 2 * 512 * shared + 8 * shared
        print(f"queries and keys of 8 heads, shared width {shared:3d}: {count:9,d} parameters")
    return same


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
        points=[{"n_heads": n_heads, "seed": seed} for n_heads in HEADS for seed in SEEDS],
        run=train_heads,
        again={"n_heads": 2, "seed": 0},
    ),
    "a head silenced": Experiment(
        points=[{"n_heads": n_heads, "seed": seed} for n_heads in (2, 4) for seed in range(10)],
        run=silence_each,
        again={"n_heads": 2, "seed": 3},
    ),
    "many small heads for longer": Experiment(
        points=[
            point
            for n_heads, steps in ((14, 960), (28, 960), (28, 2400))
            for point in seeded(SEEDS, n_heads=n_heads, steps=steps)
        ],
        run=train_other,
        again=None,
    ),
    "four heads or one": Experiment(
        points=[
            point
            for stage in ("07", "07 one head")
            for point in seeded(range(6), stage=stage, digits=6)
        ],
        run=translator_so_far.train_stage,
        again=None,
    ),
}
ANSWERS_TO_QUESTIONS = {
    "07 one head for longer": Experiment(
        points=seeded(SEEDS, n_heads=1, steps=960),
        run=train_other,
        again={"n_heads": 1, "steps": 960, "seed": 0},
    ),
    "07 without W_o": Experiment(
        points=seeded(SEEDS, n_heads=2, mixed=False),
        run=train_other,
        again={"n_heads": 2, "mixed": False, "seed": 0},
    ),
}
