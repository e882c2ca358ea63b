"""Lesson 05: what the scale of the scores does to learning, and what the projections do.

Two small tasks for one attention head: find the key that fits, and fetch what it stands for.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments import recorded
from attention.experiments.bahdanau_attention import D_STATE, Compared, sizes_of
from attention.experiments.recorded import Claim, Experiment, seeded
from attention.experiments.score_functions import Scored
from attention.experiments.sequence_to_sequence import steps_back
from attention.provided.data.numbers import numbers
from attention.provided.figures import plots
from attention.provided.training_steps import fewer, take_steps
from attention.score_functions import score as score_of_a_kind

SEEDS = (0, 1, 2)
RATES = (0.0003, 0.001, 0.003, 0.01)
SCORES = ("dot", "scaled dot", "additive")
ITEMS, CONTENT = 8, 4  # of the second task: items in a row, numbers that each item holds

Attend = Callable[..., Tensor]


def find_keys(score: str, d: int, rate: float, seed: int, steps: int = 120) -> float:
    """Train a score function until each of 16 queries, rotated keys, finds its key again.

    score    "dot", "scaled dot" or "additive"
    d        length of queries, keys and, if additive, of the hidden layer
    rate     learning rate of Adam
    returns  the loss of the last step: mean squared distance of a row of weights from one-hot;
             2 is the worst, a wrong key with a weight of 1
    """
    generator = torch.Generator().manual_seed(seed)
    keys = torch.randn(16, d, generator=generator)
    queries = keys @ torch.linalg.qr(torch.randn(d, d, generator=generator)).Q
    W_q, W_k, v = (
        (torch.randn(*size, generator=generator) / d**0.5).requires_grad_()
        for size in ((d, d), (d, d), (d,))
    )
    parameters = [W_q, W_k, v] if score == "additive" else [W_q, W_k]
    optimizer = torch.optim.Adam(parameters, lr=rate)

    def loss() -> Tensor:
        q, k = queries @ W_q, keys @ W_k  # (16, d)
        if score == "additive":
            scores = torch.tanh(q[:, None] + k) @ v  # (16, 16)
        else:
            scores = q @ k.T / (math.sqrt(d) if score == "scaled dot" else 1.0)
        return (scores.softmax(dim=1) - torch.eye(16)).square().sum(dim=1).mean()

    *_, last = take_steps((loss() for _ in range(steps)), optimizer)
    return last


def pointing_items(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Make rows of items, each with a name, the name of another item, and a content.

    returns  x (batch, 8, 20): two one-hot names of 8 and 4 random numbers,
             y (batch, 8, 4): the content of the item that each one names
    """
    names = torch.rand(batch, ITEMS, generator=generator).argsort(dim=1)
    asked = torch.randint(ITEMS, (batch, ITEMS), generator=generator)
    content = torch.randn(batch, ITEMS, CONTENT, generator=generator)
    x = torch.cat([F.one_hot(names, ITEMS), F.one_hot(asked, ITEMS), content], dim=-1)
    place = names.argsort(dim=1).gather(1, asked)  # where the item asked for stands
    return x, content.gather(1, place[..., None].expand(-1, -1, CONTENT))


class Fetcher(nn.Module):
    """Attention of items on each other, then a linear read-out.

    roles    which letters share a matrix, and which have none: "" uses x itself for q, k and v;
             "qkv" one matrix for all three; "kv" one for k and v; "k v" one for each of the two;
             "q k v" three matrices
    d_model  length of an item; all matrices are (d_model, d_model), without bias
    """

    def __init__(self, roles: str, d_model: int = 2 * ITEMS + CONTENT):
        super().__init__()
        self.roles = roles.split()
        self.W = nn.ModuleDict({r: nn.Linear(d_model, d_model, bias=False) for r in self.roles})
        self.read_out = nn.Linear(d_model, CONTENT)

    def forward(self, x: Tensor) -> Tensor:
        """From items (B, T, d_model) to reports (B, T, 4)."""
        made = {letter: self.W[role](x) for role in self.roles for letter in role}
        q, k, v = (made.get(letter, x) for letter in "qkv")
        report: Tensor = self.read_out(F.scaled_dot_product_attention(q, k, v))
        return report


def fetch(roles: str, seed: int, steps: int = 300) -> list[float]:
    """Train a ``Fetcher`` on fresh items in each step; returns the losses.

    The loss is the mean squared error of a report; always saying 0 has a loss of 1.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed + 100)
    model = Fetcher(roles)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0)

    def loss() -> Tensor:
        x, y = pointing_items(32, generator)
        error: Tensor = model(x) - y
        return error.square().mean()

    return list(take_steps((loss() for _ in range(steps)), optimizer))


def at_each_rate(score: str, d: int, seed: int) -> dict[str, Any]:
    """The final loss at each learning rate, and the lowest of them."""
    losses = [round(find_keys(score, d, rate, seed), 5) for rate in RATES]
    return {"rates": list(RATES), "losses": losses, "loss": min(losses)}


def fetch_items(roles: str, steps: int, seed: int) -> dict[str, float]:
    """The mean loss of the last twenty steps, as the lesson takes it."""
    return {"loss": round(sum(fetch(roles, seed, steps)[-20:]) / 20, 5)}


def distributions(products: dict[int, Tensor]) -> Axes:
    """Draw how dot products are distributed for each length d, labelled beside its area."""
    ax: Axes = plots.panels(width=5.6, height=3.4)
    shape: Any = {"bins": 128, "range": (-64, 64), "density": True}
    for d, found in products.items():
        heights: Any
        heights, edges, _ = ax.hist(found.tolist(), histtype="stepfilled", alpha=0.4, **shape)
        half = heights.max() / 2
        place = edges[(heights >= half).nonzero()[0][-1] + 1], half
        ax.annotate(f"d = {d}", place, (6, 3), textcoords="offset points", fontsize=9)
    ax.set(xlabel="dot product", ylabel="density")
    return ax


def sizes_of_the_jacobian(softmax_gradient_norm: Callable[[Tensor], Tensor]) -> Axes:
    """Draw the softmax's Jacobian, divided by √d and not: medians and the middle half of 500 rows.

    Each row of scores is of a random query and 16 random keys.
    """
    generator = torch.Generator().manual_seed(1)
    lengths = [4**power for power in range(7)]
    norms: dict[str, list[Tensor]] = {"divided by √d": [], "not divided": []}
    for d in lengths:
        q = torch.randn(500, 1, d, generator=generator)
        k = torch.randn(500, 16, d, generator=generator)
        scores = torch.linalg.vecdot(q, k)  # (500, 16)
        norms["divided by √d"].append(softmax_gradient_norm(scores / d**0.5))
        norms["not divided"].append(softmax_gradient_norm(scores))
    quarters = {
        name: torch.stack(rows).quantile(torch.tensor([0.25, 0.5, 0.75]), dim=1).clamp(min=1e-16)
        for name, rows in norms.items()
    }
    ax = plots.lines(lengths, {name: q[1] for name, q in quarters.items()}, xlabel="d", log=True)
    for quarter in quarters.values():
        ax.fill_between(lengths, quarter[0], quarter[2], alpha=0.2)
    ax.set(yscale="log", ylim=(1e-12, 1), ylabel="size of the Jacobian")
    print("not divided, d = 4096, median:", f"{quarters['not divided'][1, -1]:.1e}")
    return ax


def turn_back(
    scaled_dot_product_attention: Attend,
    factor: float = 1.0,
    start: float = 1.0,
    rate: float = 0.05,
    log_loss: bool = False,
    seed: int = 0,
    d: int = 512,
    n: int = 16,
    steps: int = 120,
) -> tuple[list[float], Tensor]:
    """Train W by plain gradient descent such that query i, a rotated key, finds key i again.

    factor    the queries are multiplied by it: √d undoes the division of the scores by √d
    start     the first W is multiplied by it
    log_loss  whether the loss is -log of the right weight, taken from the scores, instead of the
              squared error of the context
    returns   the squared error of the context at every step, and the last scores (n, n)
    """
    draw = torch.Generator().manual_seed(seed)
    keys = torch.randn(n, d, generator=draw)
    rotation = torch.linalg.qr(torch.randn(d, d, generator=draw)).Q
    W = (start * torch.randn(d, d, generator=draw) / d**0.5).requires_grad_()
    errors, scores = [], torch.zeros(n, n)
    for _ in range(steps):
        q = keys @ rotation @ W * factor
        context = scaled_dot_product_attention(q, keys, torch.eye(n))
        scores = q @ keys.T / d**0.5
        error = (context - torch.eye(n)).square().sum(dim=1).mean()
        loss = F.cross_entropy(scores, torch.arange(n)) if log_loss else error
        (gradient,) = torch.autograd.grad(loss, W)
        with torch.no_grad():
            W -= rate * gradient
        errors.append(error.item())
    return errors, scores.detach()


ROOT_D = 512**0.5
SMALL = {"factor": ROOT_D, "start": 1 / ROOT_D}
SETTINGS: dict[str, dict[str, Any]] = {
    "divided": {},
    "not divided": {"factor": ROOT_D},
    "divided, W starts\n√512 times larger": {"start": ROOT_D},
    "not divided, W starts\n√512 times smaller": SMALL,
    "the same, and the rate\n512 times smaller": SMALL | {"rate": 0.05 / 512},
    "not divided, the loss is\n−log of the right weight": {"factor": ROOT_D, "log_loss": True},
}


def scale_or_size(scaled_dot_product_attention: Attend) -> Any:
    """Draw `turn_back` with and without the division, and what else may make scores small.

    Changed: the division, the size of the first W, the rate, the loss, as the titles say. Kept:
    keys, rotation, 120 steps. Three seeds each.
    """
    axes = plots.panels(2, 3, width=3.2, height=2.3)
    for ax, (name, setting) in zip(axes.flat, SETTINGS.items(), strict=True):
        runs = [
            turn_back(scaled_dot_product_attention, **setting, seed=seed)
            for seed in SEEDS[: fewer(3, most=1)]
        ]
        for errors, _ in runs:
            ax.plot(errors, color=plots.BLUE, linewidth=1.2)
        ax.set_title(name, fontsize=10)
        ax.set(ylim=(-0.05, 2), yticks=[0, 1, 2], xlabel="step", ylabel="squared error")
        ax.label_outer()
        print(f"{' '.join(name.split()):<50}", [round(errors[-1], 3) for errors, _ in runs])
        if name == "divided":
            spread = [round(scores.std().item(), 2) for _, scores in runs]
            own = [round(scores.diagonal().mean().item(), 2) for _, scores in runs]
    print("divided, after training: standard deviation of the scores", spread, " right key", own)
    return axes


def divided_by(
    power: float, d: int, seed: int, scaled_dot_product_attention: Attend, times: float = 1
) -> dict[str, float]:
    """Run `turn_back` with scores divided by d to this ``power``, at 0.05 ``times`` the rate.

    returns  "loss", the squared error at the last step
    """
    factor, rate = d ** (0.5 - power), 0.05 * times
    errors, _ = turn_back(scaled_dot_product_attention, factor, rate=rate, seed=seed, d=d)
    return {"loss": round(errors[-1], 5)}


@torch.no_grad()
def spread_in_the_translator(seed: int) -> dict[str, float]:
    """Measure lesson 04's translator with undivided dot products, before any training.

    returns  "entries", the root mean square of the numbers in its queries, and "spread", the
             standard deviation of the scores of one query, over the true words of 256 sources
    """
    torch.manual_seed(seed)
    corpus, found = numbers(), list[tuple[Tensor, Tensor]]()

    def score(kind: str, q: Tensor, k: Tensor, weights: Any) -> Tensor:
        scores: Tensor = score_of_a_kind(kind, q, k, weights)
        found.append((q, scores))
        return scores

    model = Compared(sizes_of(corpus), Scored("dot", score, D_STATE), d_source=D_STATE)
    batch = corpus.batch(corpus.test[:256])
    model.align(batch.source, batch.lengths, batch.target)
    queries = torch.cat([q for q, _ in found], dim=1)  # (B, T_q, d)
    scores = torch.cat([scores for _, scores in found], dim=1)  # (B, T_q, T_k)
    spreads = [rows[:, :n].std(dim=1).mean() for rows, n in zip(scores, batch.lengths, strict=True)]
    return {
        "entries": round(queries.square().mean().sqrt().item(), 2),
        "spread": round(torch.stack(spreads).mean().item(), 2),
    }


def additive_against_dot() -> Axes:
    """Draw the recorded runs of `find_keys`: the best of four rates for each score, d and seed."""
    rows = recorded.read("scaled_dot_product_attention", "additive against dot")
    sizes = sorted({row["d"] for row in rows})
    ax: Axes = plots.panels(width=5.2, height=2.8)
    for score, marker, colour in zip(
        SCORES, "osD", (plots.BLUE, plots.VERMILION, plots.GREEN), strict=True
    ):
        for seed in SEEDS:
            mine = [row for row in rows if (row["score"], row["seed"]) == (score, seed)]
            best = [next(row["loss"] for row in mine if row["d"] == d) for d in sizes]
            label = score if seed == 0 else None
            ax.plot(sizes, best, marker + "-", color=colour, label=label, lw=1, ms=4)
    ax.set(xscale="log", xlabel="d", ylabel="loss after 120 steps", xticks=sizes)
    ax.set_xticks(sizes, [str(d) for d in sizes])
    ax.minorticks_off()
    plots.legend(ax, fontsize=8)
    return ax


ROLES = {
    "x in all roles": "",
    "one matrix for q, k and v": "qkv",
    "q is x; one matrix for k and v": "kv",
    "q is x; W_k, W_v": "k v",
    "W_q, W_k, W_v": "q k v",
}


def projections() -> Axes:
    """Draw what `fetch` ends at for five ways to make q, k and v, three seeds each."""
    ax: Axes = plots.panels(width=5.6, height=2.4)
    for row, (name, roles) in enumerate(ROLES.items()):
        runs = [fetch(roles, seed, steps=fewer(300, most=10)) for seed in SEEDS]
        ends = [sum(losses[-20:]) / len(losses[-20:]) for losses in runs]
        ax.plot(ends, [row] * 3, "o", color=plots.BLUE, alpha=0.7)
        print(f"{name:<32}", [round(end, 3) for end in ends])
    ax.set_yticks(range(len(ROLES)), list(ROLES))
    ax.set(xlim=(-0.03, 1.03), ylim=(4.5, -0.5))
    ax.set_xlabel("loss after 300 steps (always saying 0: 1)")
    return ax


WIDTH = 5  # of the convolution that `influence` measures


def influence(
    SelfAttentionHead: Callable[[int, int], nn.Module], seed: int, T: int = 40, d: int = 64
) -> dict[str, Tensor]:
    """Measure as lesson 02 does how much a layer's last output depends on each of its inputs.

    returns  for "recurrent" (a GRU), "convolution" of width 5 and "self-attention", all of them
             untrained and d numbers wide: (T,), see `steps_back`
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(64, T, d, generator=generator).requires_grad_()  # (B, T, d)
    convolution = nn.Conv1d(d, d, WIDTH, padding=WIDTH - 1)  # to the left; cut at the right below
    last = {
        "recurrent": nn.GRU(d, d, batch_first=True)(x)[0][:, -1],
        "convolution of width 5": convolution(x.mT)[:, :, T - 1],
        "self-attention": SelfAttentionHead(d, d)(x)[:, -1],
    }
    return {name: steps_back(output, x, generator) for name, output in last.items()}


def reach(SelfAttentionHead: Callable[[int, int], nn.Module]) -> Axes:
    """Draw `influence` for three seeds, and print it for 1, 20 and 39 steps back."""
    runs = [influence(SelfAttentionHead, seed) for seed in SEEDS]
    ax: Axes = plots.panels(width=6.5, height=3.0)
    print("influence, for seeds 0, 1, 2        1 step back            20 back            39 back")
    for name, colour in zip(runs[0], (plots.BLUE, plots.VERMILION, plots.GREEN), strict=True):
        for seed, found in zip(SEEDS, runs, strict=True):
            seen = found[name][found[name] > 0]  # there is no 0 on a logarithmic axis
            ax.plot(seen, color=colour, label=name if seed == 0 else None, linewidth=1.2)
        far = ("  ".join(f"{found[name][back]:.0e}" for found in runs) for back in (1, 20, 39))
        print(f"{name:<24}", *far, sep="   ")
    ax.set(yscale="log", xlabel="steps back", ylabel="influence on the last output")
    plots.legend(ax, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


EXPERIMENTS = {
    "additive against dot": Experiment(
        claim="From d = 64 on the undivided dot product learns at none of four rates; additive and "
        "scaled scores learn there",
        control="score function and d changed; task, steps, optimiser kept, best of four rates",
        points=[
            {"score": score, "d": d, "seed": seed}
            for d in (4, 16, 64, 256)
            for score in SCORES
            for seed in SEEDS
        ],
        run=at_each_rate,
        again={"score": "dot", "d": 16, "seed": 0},
    ),
}
ANSWERS_TO_QUESTIONS = {
    "05 fetch without a matrix": Experiment(
        claim="Items are fetched without W_v as with it; without W_q they are after 1200 steps",
        control="which of the three matrices there are, and the steps; task, read-out and rate "
        "kept",
        points=[
            point
            for roles, steps in (("q k v", 300), ("q k", 300), ("k v", 300), ("k v", 1200))
            for point in seeded(SEEDS, roles=roles, steps=steps)
        ],
        run=fetch_items,
        again={"roles": "q k", "steps": 300, "seed": 0},
    ),
    "05 divided by d": Experiment(
        claim="Divided by d in place of √d, scores learn hardly anything at the lesson's rate, and "
        "do at one d times larger",
        control="what the scores are divided by, then the rate; keys, start and steps kept",
        points=[
            point
            for d in (512, 64)
            for power, times in ((0.5, 1), (1, 1), (1, d))
            for point in seeded(SEEDS, power=power, d=d, times=times)
        ],
        run=divided_by,
        again={"power": 1, "d": 64, "times": 1, "seed": 0},
    ),
}
CLAIMS = [
    Claim(
        "The softmax's Jacobian keeps its size when scores are divided by √d, and vanishes for "
        "large d when not",
        control="the division; same queries and keys, medians and quarters of 500 queries",
        seeds="1",
        where="What large scores do to learning",
    ),
    Claim(
        "Through the context, training fails where the scores are large at the start, divided or "
        "not, and learns undivided from a smaller start; with a loss on the weights it learns",
        control="division, size of the start, rate and loss as said; data and steps kept",
        seeds="0, 1, 2",
        where="Break it",
    ),
    Claim(
        "Before training, undivided scores of lesson 04's translator spread by about a half",
        control="none: a measurement of 256 sources",
        seeds="0, 1, 2",
        where="Break it",
    ),
    Claim(
        "An input's influence on the last output does not depend on its distance in "
        "self-attention, fades in a GRU, and ends with the width of a convolution",
        control="the layer; inputs, widths of 64 and 40 positions kept, all untrained",
        seeds="0, 1, 2",
        where="How far is it from one word to another?",
    ),
    Claim(
        "Without projections a random token's weight on itself grows towards 1 with d",
        control="d changed; ten tokens, 200 sequences a seed",
        seeds="0, 1, 2",
        where="Where q, k and v come from",
    ),
    Claim(
        "Items are fetched once queries and keys are made differently, and in fewer steps with a "
        "matrix for each role",
        control="which of q, k and v share a matrix; task, read-out, steps and rate kept",
        seeds="0, 1, 2",
        where="Where q, k and v come from",
    ),
]
