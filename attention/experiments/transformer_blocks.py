"""Lesson 09: what warm-up, skip connections and norms do for a stack of twelve layers.

Its task is to say a sequence of digits backwards.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Experiment, read, seeded
from attention.multi_head_attention import Sublayers
from attention.provided.figures import plots, seeds
from attention.provided.models.attention_weights import watch_attention
from attention.provided.progress import Bar

SEEDS = (1, 2, 3)
RATES = (0.001, 0.003, 0.006, 0.012)
D_MODEL, N_HEADS, T, N_LAYERS = 32, 4, 6, 12
SIZES = (D_MODEL, N_HEADS, 2 * D_MODEL, 0.0)  # of a layer; nothing is dropped
NORMS = ("pre", "post", "none")
SCHEDULES = {"constant rate": 1, "warm-up": 60}  # steps until the rate is reached


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
    """Digits and their positions, layers, and scores of the ten digits at each position.

    make      makes one layer
    pre_norm  whether a final norm stands after the last layer
    n_layers  how many there are
    """

    def __init__(self, make: Callable[[], nn.Module], pre_norm: bool, n_layers: int = N_LAYERS):
        super().__init__()
        self.digits, self.read_out = nn.Embedding(10, D_MODEL), nn.Linear(D_MODEL, 10)
        self.positions = nn.Parameter(torch.randn(T, D_MODEL))
        self.layers = nn.ModuleList(make() for _ in range(n_layers))
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
    n_layers: int = N_LAYERS,
) -> tuple[Reverser, list[float]]:
    """Return a trained `Reverser` and its losses, in nats a digit.

    warm_up  number of steps during which the learning rate rises from 0 to ``rate``
    factor   what the loss is multiplied with before its gradient is taken
    """
    torch.manual_seed(seed)
    model = Reverser(make, pre_norm, n_layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1, (n + 1) / warm_up))
    losses: list[float] = []
    with Bar(steps, label) as bar:
        for step in range(steps):
            digits = torch.randint(10, (16, T))
            loss = reversal_loss(model, digits)
            optimizer.zero_grad()
            (factor * loss).backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            bar.update(step + 1, losses[-1])
    return model.eval(), losses


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
    n_layers: int = N_LAYERS,
) -> dict[str, Any]:
    """Train `Switched` layers, twelve if nothing else is said.

    returns  "last", the mean loss of the last ten steps, and "losses", means of ten steps
    """
    losses = train(
        lambda: Switched(*SIZES, norm=norm, skip=skip),
        norm == "pre",
        rate,
        warm_up,
        seed,
        steps,
        factor=factor,
        n_layers=n_layers,
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


def shallower(n_layers: int, seed: int) -> dict[str, float]:
    """Train a post-norm stack of fewer layers at a constant 0.006; see `train_one`."""
    return {"last": train_one("post", seed, n_layers=n_layers)["last"]}


Stack = tuple[Tensor, Tensor]  # x (16, 32) and the weights (48, 32, 32) of a stack of small layers
GUESSING = math.log(10)  # the loss, in nats a digit, if all ten digits are equally probable
DEPTHS = (1, 6, 12, 24, 48)


def stacks(gain: float = 0.7) -> list[Stack]:
    """Three random stacks: layer l is h -> tanh(h W), and h W is about ``gain`` times as long."""
    found = []
    for seed in range(3):
        torch.manual_seed(seed)
        found.append((torch.randn(16, 32), gain * torch.randn(48, 32, 32) / math.sqrt(32)))
    return found


def fading(gradient_norms: Callable[[Tensor, Tensor, bool], Tensor]) -> float:
    """Draw the gradient of each of 48 layers, with skips and without, for weights of four sizes.

    The input, `stacks`, is kept, and the weights but for their size; three stacks each.
    returns  at 0.7, how many times larger the first layer's norm is with skips, mean over mean
    """
    factors = []
    gains = (0.7, 1.0, 1.5, 2.0)
    axes = plots.panels(columns=len(gains), width=2.3, height=2.9)
    for gain, ax in zip(gains, axes, strict=True):
        with_skips, without = (
            [gradient_norms(x, weights, skip).tolist() for x, weights in stacks(gain)]
            for skip in (True, False)
        )
        named = {"with skips": with_skips, "without skips": without}
        seeds.curves(named, range(1, 49), ax, f"W of size {gain:g}")
        ax.set(yscale="log", xlabel="layer", xticks=(1, 24, 48))
        factors.append(sum(run[0] for run in with_skips) / sum(run[0] for run in without))
        print(f"size {gain}: first layer's gradient, with over without: {factors[-1]:.0e}")
    axes[0].set(ylabel="norm of the gradient")
    plots.legend(axes[-1], fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return factors[0]


def growing() -> None:
    """Print how large the numbers are after 1 to 48 layers with skip connections, of `stacks`."""
    print("layers:    ", *(f"{depth:9}" for depth in DEPTHS), "  (standard deviation)")
    for seed, (stream, weights) in enumerate(stacks()):
        sizes = []
        for matrix in weights:
            stream = stream + torch.tanh(stream @ matrix)
            sizes.append(stream.std().item())
        print(f"stack {seed}:  ", *(f"{sizes[depth - 1]:9.2f}" for depth in DEPTHS))


def norm_over_the_batch(x: Tensor) -> Tensor:
    """Give each number of (B, T, d_model) mean 0 and variance 1 over the batch."""
    return (x - x.mean(dim=0)) / torch.sqrt(x.var(dim=0, unbiased=False) + 1e-5)


def another_neighbour(norm: Callable[[Tensor], Tensor]) -> float:
    """How much a normalised sentence changes, at most, if the other sentence of its batch does.

    norm  a function of (B, T, 8); the three sentences, T = 4, are random and the same each time
    """
    torch.manual_seed(1)
    sentence, one, other = torch.randn(3, 1, 4, 8)
    first, second = (norm(torch.cat([sentence, beside]))[0] for beside in (one, other))
    return (first - second).abs().max().item()


def masks_at_work(DecoderLayer: Callable[..., Any]) -> None:
    """Draw the weights of an untrained decoder layer; of 7 source positions two are padding."""
    torch.manual_seed(0)
    layer = DecoderLayer(d_model=16, n_heads=1, d_ff=64, pre_norm=True).eval()
    target, memory = 2 * torch.randn(1, 5, 16), 2 * torch.randn(1, 7, 16)
    with watch_attention(layer) as seen, torch.no_grad():
        layer(target, memory, memory_mask=(torch.arange(7) < 5).view(1, 1, 7))
    axes = plots.panels(columns=2, width=3.8, height=2.8, share=False)
    for ax, (name, weights) in zip(axes, seen.items(), strict=True):
        title = {"attention": "self-attention", "cross_attention": "cross-attention"}[name]
        plots.heatmap(weights[0, 0], ax, title, colorbar=ax is axes[1])


def _gradients(depth: int, norm: str, skip: bool, seed: int) -> tuple[list[float], float]:
    """The gradient's norm in every layer, and the mean cosine between positions at the end."""
    d_model = 32
    torch.manual_seed(seed)
    sizes = (d_model, 4, 4 * d_model)
    layers = [Switched(*sizes, norm=norm, skip=skip) for _ in range(depth)]
    classes, x = nn.Linear(d_model, 10), torch.randn(4, 10, d_model)
    output = nn.Sequential(*layers)(x)
    output = F.layer_norm(output, (d_model,)) if norm == "pre" else output
    F.cross_entropy(classes(output).flatten(0, 1), torch.randint(10, (40,))).backward()
    gradients = [[p.grad for p in layer.parameters() if p.grad is not None] for layer in layers]
    norms = [math.sqrt(sum(one.square().sum().item() for one in some)) for some in gradients]
    unit = F.normalize(output.detach(), dim=-1)  # (B, T, d_model)
    cosines = (unit @ unit.mT)[:, ~torch.eye(10, dtype=torch.bool)]
    return norms, cosines.mean().item()


def _print_ends(runs: dict[str, dict[int, list[tuple[list[float], float]]]]) -> None:
    """Print gradients of the first and last layer, and cosines between positions, by name."""
    print("gradient, 3 stacks:  first of 12 layers     first of 48            last of 48")
    for name, of in runs.items():
        ends = [
            [norms[end] for norms, _ in of[depth]] for depth, end in ((12, 0), (48, 0), (48, -1))
        ]
        print(f"{name:<21}" + "   ".join("  ".join(f"{one:.3f}" for one in some) for some in ends))
    print("\ncosine, 3 stacks:    after 4 layers         after 12               after 48")
    for name, of in runs.items():
        alike = [[f" {cosine:.2f}" for _, cosine in of[depth]] for depth in (4, 12, 48)]
        print(f"{name:<20}", "   ".join("  ".join(some) for some in alike))


def deep_stacks() -> None:
    """Draw the gradients of untrained stacks of 1 to 48 encoder layers, which classify noise.

    Varied: skip connections on or off, norms before or after. Input and start are kept; three
    seeds. Printed: gradients of the first and last layer, and the cosines between positions.
    """
    depths, runs = (1, 2, 4, 8, 12, 16, 32, 48), {}
    for skip in (True, False):
        for norm in ("pre", "post"):
            runs[f"{norm}-norm" + ("" if skip else ", no skip")] = {
                depth: [_gradients(depth, norm, skip, seed) for seed in range(3)]
                for depth in depths
            }
    _print_ends(runs)
    first = {
        name: [[of[depth][seed][0][0] for depth in depths] for seed in range(3)]
        for name, of in runs.items()
    }
    every = {name: [norms for norms, _ in of[48]] for name, of in runs.items()}
    axes = plots.panels(columns=2, width=4.1, height=3.0)
    seeds.curves(first, depths, axes[0], "gradient of the first layer")
    seeds.curves(every, range(1, 49), axes[1], "gradient of each of 48 layers")
    for ax, label in zip(axes, ("number of layers", "layer"), strict=True):
        ax.set(yscale="log", xlabel=label, xticks=(1, 12, 24, 36, 48))
        for line, band, like in zip(ax.lines[2:], ax.collections[2:], ax.lines, strict=False):
            line.set(color=like.get_color(), linestyle="--")
            band.set_color(like.get_color())
    axes[0].set(ylabel="norm of the gradient")
    axes[0].axvline(12, color=plots.GREY, linewidth=1)
    axes[0].annotate("trained below", (12, 5e-3), (4, 0), textcoords="offset points", fontsize=8)
    plots.legend(axes[1], fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))


def _guessing(ax: Axes) -> None:
    ax.axhline(GUESSING, color=plots.GREY, linestyle="--", linewidth=1.2)
    ax.annotate(
        "guessing",
        (0.12, GUESSING),
        (0, 5),
        ax.get_yaxis_transform(),
        "offset points",
        color=plots.GREY,
        fontsize=9,
    )


def three_runs(EncoderLayer: Callable[..., nn.Module]) -> Axes:
    """Train 12 of these layers at a rate of 0.006: pre-norm, post-norm, post-norm with a warm-up.

    Task, sizes, seed and 90 steps are kept; one run each. The whole sweep: `rates`.
    """
    curves: dict[str, Tensor] = {}
    for name, pre_norm, warm_up in (
        ("pre-norm", True, 1),
        ("post-norm", False, 1),
        ("post-norm, warm-up", False, 60),
    ):
        make = functools.partial(EncoderLayer, *SIZES, pre_norm, fused=True)
        _, losses = train(make, pre_norm, warm_up=warm_up, label=name)
        curves[name] = torch.tensor(losses).unfold(0, 10, 5).mean(dim=1)
    for name, means in curves.items():
        print(f"{name:<19} loss of the last ten steps {means[-1]:.2f}")
    ax = plots.lines(range(5, 86, 5), curves, xlabel="step", ylabel="loss, nats per digit")
    _guessing(ax)
    ax.set_ylim(bottom=0)
    return ax


def rates() -> float:
    """Draw the loss at the end against the learning rate: both norms, constant rate or warm-up.

    Layers, task, batches and 90 steps are kept; three seeds. Recorded; `train_one` runs one point.
    returns  the mean loss of post-norm at a constant 0.003
    """
    swept = read("transformer_blocks", "rates x warm-up")
    axes = plots.panels(columns=2, width=4.0, height=3.0)
    for ax, (title, warm_up) in zip(axes, SCHEDULES.items(), strict=True):
        for number, norm in enumerate(("pre", "post")):
            found = seeds.where(swept, norm=norm, warm_up=warm_up)
            seeds.sweep(found, "rate", "last", ax, f"{norm}-norm", number=number)
        _guessing(ax)
        ax.set(title=title, xlabel="learning rate")
    axes[0].set(ylabel="loss at the end, nats per digit", ylim=(-0.05, 2.6))
    plots.legend(axes[1], fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    half: Sequence[Any] = seeds.where(swept, norm="post", warm_up=1, rate=0.003)
    return float(sum(row["last"] for row in half) / len(half))


def add_and_norm() -> None:
    """Draw the loss at the end against constant rates, with skip connections or norms switched off.

    Layers, task, batches and 90 steps are kept; three seeds. Recorded; `train_one` runs one point.
    """
    constant = seeds.where(read("transformer_blocks", "rates x warm-up"), warm_up=1)
    apart = [{"skip": True, **row} for row in constant]
    apart += read("transformer_blocks", "add and norm apart")
    axes = plots.panels(columns=2, width=4.0, height=3.0)
    for ax, name, skip in zip(axes, ("with", "without"), (True, False), strict=True):
        for number, norm in enumerate(NORMS):
            label = "no norm" if norm == "none" else f"{norm}-norm"
            found = seeds.where(apart, skip=skip, norm=norm)
            means: Any = seeds.sweep(found, "rate", "last", ax, label, number=number).lines[-1]
            cut = {row["rate"] for row in found if row["last"] >= 4}  # a mean of them says nothing
            kept = [math.nan if x in cut else y for x, y in zip(*means.get_data(), strict=True)]
            means.set_ydata(kept)
        _guessing(ax)
        ax.set(title=f"{name} skip connections", xlabel="learning rate")
    axes[0].set(ylabel="loss at the end, nats per digit", ylim=(-0.05, 4.1))
    axes[0].set_yticks(range(5), ["0", "1", "2", "3", "≥ 4"])
    plots.legend(axes[1], fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))


def layers_taken_out() -> Axes:
    """Draw the share of digits right when 0 to 12 of a trained stack's layers are missing.

    Means of ten choices; three trained models of each norm. Recorded.
    """
    named: dict[str, list[list[float]]] = {"pre-norm": [], "post-norm, warm-up": []}
    for row in read("transformer_blocks", "layers taken out"):
        named["pre-norm" if row["norm"] == "pre" else "post-norm, warm-up"].append(row["right"])
    ax = seeds.curves(named, range(13), plots.panels(width=6.0, height=3.0))
    ax.axhline(0.1, color=plots.GREY, linestyle="--", linewidth=1.2, label="guessing")
    ax.set(xlabel="layers taken out of 12", ylabel="share of digits right", ylim=(0, 1.05))
    plots.legend(ax, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    for name, runs in named.items():
        shown = (f"without {n}: " + " ".join(f"{run[n]:.2f}" for run in runs) for n in (1, 3, 6))
        print(f"{name:<19}", *shown, sep="   ")
    return ax


EXPERIMENTS = {
    "rates x warm-up": Experiment(
        points=[
            point
            for norm in ("pre", "post")
            for warm_up in (1, 60)
            for rate in RATES
            for point in seeded(SEEDS, norm=norm, warm_up=warm_up, rate=rate)
        ],
        run=train_one,
        again={"norm": "pre", "warm_up": 1, "rate": 0.003, "seed": 1},
    ),
    "add and norm apart": Experiment(
        points=[
            point
            for norm, skip in (("none", True), *((norm, False) for norm in NORMS))
            for rate in RATES
            for point in seeded(SEEDS, norm=norm, skip=skip, rate=rate)
        ],
        run=train_one,
        again={"norm": "none", "skip": True, "rate": 0.003, "seed": 1},
    ),
    "few layers, no skips": Experiment(
        points=[
            point
            for norm in ("pre", "post")
            for n_layers in (1, 2, 4)
            for point in seeded(SEEDS, norm=norm, skip=False, rate=0.003, n_layers=n_layers)
        ],
        run=train_one,
        again={"norm": "pre", "skip": False, "rate": 0.003, "n_layers": 1, "seed": 1},
    ),
    "gradients scaled": Experiment(
        points=[
            point
            for rate in (0.003, 0.006, 0.012)
            for factor in (0.01, 1.0, 100.0)
            for point in seeded(SEEDS, norm="post", rate=rate, factor=factor)
        ],
        run=train_one,
        again={"norm": "post", "rate": 0.003, "factor": 100.0, "seed": 1},
    ),
    "one step": Experiment(
        points=[
            point
            for norm in NORMS
            for rate in (0.0001, 0.001, 0.006)
            for point in seeded(SEEDS, norm=norm, rate=rate)
        ],
        run=first_step,
        again={"norm": "post", "rate": 0.001, "seed": 1},
    ),
    "layers taken out": Experiment(
        points=[*seeded(SEEDS, norm="pre", warm_up=1), *seeded(SEEDS, norm="post", warm_up=60)],
        run=train_and_thin,
        again={"norm": "pre", "warm_up": 1, "seed": 1},
    ),
}
ANSWERS_TO_QUESTIONS = {
    "09 bolder rates": Experiment(
        points=[
            point
            for rate in (0.024, 0.048, 0.096)
            for point in seeded(SEEDS, norm="pre", rate=rate)
        ],
        run=train_one,
        again=None,
    ),
    "09 fewer layers": Experiment(
        points=[point for n_layers in (6, 3) for point in seeded(SEEDS, n_layers=n_layers)],
        run=shallower,
        again={"n_layers": 3, "seed": 1},
    ),
}
