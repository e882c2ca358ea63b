"""Lesson 07: how many heads, how small, and whether they ask the same questions.

In its task each item asks for the contents of two others, and one head is too few.
"""

from collections.abc import Callable
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Claim, Experiment, read, seeded
from attention.masked_attention import causal_mask, masked_attention
from attention.provided.figures import plots, seeds
from attention.provided.measuring import memory
from attention.provided.training_steps import fewer, one_thread, take_steps
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
    """Draw the recorded loss after 240 steps against the number of heads, a line for each seed.

    The number of heads changes; parameters, task, steps and rate stay the same. One of them is
    trained by ``train_heads(2, 0, MultiHeadAttention, captured_variance)``.
    """
    rows = read("multi_head_attention", "how many heads")
    ax = plots.panels(width=5.2, height=2.6)
    for seed in SEEDS:
        losses = [row["loss"] for row in seeds.where(rows, seed=seed)]
        ax.plot(HEADS, losses, "o-", color=plots.BLUE, linewidth=1, markersize=4)
    labels = [f"{n}\n{D_MODEL // n}" for n in HEADS]
    ax.set(xscale="log", xticks=HEADS, xticklabels=labels, ylim=(0, None))
    ax.minorticks_off()
    ax.set(xlabel="heads (above) and d_head (below)", ylabel="loss of the last 10 steps")
    for n in HEADS:
        losses = [f"{row['loss']:.3f}" for row in seeds.where(rows, n_heads=n)]
        print(f"{n:2} heads of {D_MODEL // n:2}   loss, three seeds:", *losses)
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
    """Draw the megabytes that one call allocates with 1 to 16 heads, weights stored or fused.

    The number of heads changes; 512 positions, d_model = 64 and the parameters stay the same.

    returns  how many times as much 16 heads allocate as one, where the weights are stored
    """
    x, counts = torch.randn(1, 512, 64), (1, 2, 4, 8, 16)
    allocated: dict[str, list[float]] = {}
    for name, fused in (("weights stored", False), ("fused", True)):
        layers = [MultiHeadAttention(64, n_heads, fused=fused).eval() for n_heads in counts]
        allocated[name] = [memory.megabytes(lambda layer=layer: layer(x, x, x)) for layer in layers]  # type: ignore[misc]
        print(f"{name:<15} MB for 1 to 16 heads:", *(f"{mb:5.1f}" for mb in allocated[name]))
    ax = plots.lines(counts, allocated, xlabel="heads", ylabel="MB allocated")
    ax.set_xticks(counts)
    ax.set_ylim(bottom=0)
    stored = allocated["weights stored"]
    return stored[-1] / stored[0]


def directions(
    layer: Any, MultiHeadAttention: Layer, captured_variance: Callable[[Tensor], Tensor]
) -> Any:
    """Draw in how many directions four heads ask, trained and not; print it for 1, 2 and 4 heads.

    layer    trained, of four heads; the one before training is made from the same seed
    returns  an array of two Axes: each head by itself, and all heads together
    """
    torch.manual_seed(0)
    axes = plots.panels(columns=2, width=3.6, height=2.8, share=False)
    for name, one in (("trained", layer), ("before training", MultiHeadAttention(D_MODEL, 4))):
        W_q, W_k = one.W_q.weight.detach(), one.W_k.weight.detach()  # (28, 28)
        each = captured_variance(W_q.view(4, 7, 28).mT @ W_k.view(4, 7, 28))[:, :7]  # (4, 7)
        axes[0].plot(range(1, 8), each.mean(dim=0), label=name)
        axes[1].plot(range(1, 29), captured_variance(W_q.T @ W_k), label=name)
    axes[0].set(title="each head: 7 at most (mean)", ylabel="captured variance", ylim=(0, 1.05))
    axes[1].set(title="all heads together: 28 at most", ylim=(0, 1.05))
    axes[1].axvline(7, color=plots.GREY, linestyle="--", linewidth=1.2)
    plots.legend(axes[1], fontsize=8, loc="lower right")
    print("share in the 7 strongest directions of all heads together (recorded, three seeds):")
    for n_heads in (1, 2, 4):
        rows = seeds.where(read("multi_head_attention", "how many heads"), n_heads=n_heads)
        before, after = (" ".join(f"{row[k]:.3f}" for row in rows) for k in ("before", "after"))
        print(f"  heads: {n_heads}   before training {before}   after {after}")
    return axes


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
