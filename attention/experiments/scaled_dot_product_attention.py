"""Lesson 05: what the scale of the scores does to learning, and what the projections do.

Two small tasks for one attention head: find the key that fits, and fetch what it stands for. The
translator with some of its matrices, divided and not, is in translator_so_far.py.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.bahdanau_attention import D_STATE, Compared, sizes_of
from attention.experiments.recorded import Experiment, seeded
from attention.experiments.sequence_to_sequence import steps_back
from attention.experiments.translator_so_far import Looks, train_with
from attention.provided.data.numbers import numbers
from attention.provided.figures import plots, seeds
from attention.provided.measuring import timing
from attention.provided.training_steps import fewer, one_thread

SEEDS = (0, 1, 2)
ABLATED: tuple[dict[str, Any], ...] = (  # which have a matrix, whether scores are divided
    {"matrices": "qk", "divided": False},
    {"matrices": "qk", "divided": True},
    {"matrices": "qkv", "divided": False},
    {"matrices": "qkv", "divided": True},
    {"matrices": "qk", "divided": False, "rate": 0.125},  # steps as small as divided ones
)
ITEMS, CONTENT = 8, 4  # of the second task: items in a row, numbers that each item holds

Attend = Callable[..., Tensor]


def pointing_items(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Make rows of items, each with a name, a name to look up, and a content.

    returns  x (batch, 8, 20): two one-hot names of 8 and 4 random numbers,
             y (batch, 8, 4): the content of the item that has the second name
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
    generator, losses = torch.Generator().manual_seed(seed + 100), list[float]()
    model = Fetcher(roles)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0)
    for _ in range(steps):
        x, y = pointing_items(32, generator)  # (32, 8, 20) and (32, 8, 4)
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fetch_items(roles: str, steps: int, seed: int) -> dict[str, float]:
    """The mean loss of the last twenty steps, as the lesson takes it."""
    return {"loss": round(sum(fetch(roles, seed, steps)[-20:]) / 20, 5)}


def weights_of_random_keys(
    lengths: Sequence[int] = (4, 64, 1024), divided: bool = False
) -> dict[int, float]:
    """Print the weights of a random query on eight random keys, for vectors of several lengths.

    divided  whether the scores are divided by √d
    returns  length d → largest weight, the mean of 1000 such draws
    """
    generator, largest = torch.Generator().manual_seed(5), {}
    print(
        "           eight weights, largest first                      largest, mean of 1000 draws"
    )
    for d in lengths:
        by = d**0.5 if divided else 1
        query = torch.randn(d, generator=generator)
        keys = torch.randn(8, d, generator=generator)
        shares = (keys @ query / by).softmax(dim=0).sort(descending=True).values.tolist()
        queries = torch.randn(1000, 1, d, generator=generator)
        scores = (queries * torch.randn(1000, 8, d, generator=generator)).sum(dim=2) / by
        largest[d] = scores.softmax(dim=1).amax(dim=1).mean().item()
        print(f"d = {d:4d}  ", *(f"{share:.3f}" for share in shares), f"  {largest[d]:.2f}")
    return largest


def spread_of_dot_products(dot_product_statistics: Callable[..., Any]) -> dict[int, float]:
    """Draw and measure the dot products of 20 000 pairs of random vectors of each length d.

    returns  d → variance
    """
    generator, variances = torch.Generator().manual_seed(0), {}
    ax: Axes = plots.panels(width=5.6, height=3.4)
    shape: Any = {"bins": 128, "range": (-64, 64), "density": True}
    for d in (4, 16, 64, 256):
        q, k = torch.randn(2, 20_000, d, generator=generator)
        mean, variance = (found.item() for found in dot_product_statistics(q, k))
        variances[d] = variance
        print(
            f"d {d:4d}   mean {mean:6.2f}   variance {variance:7.2f}   spread {variance**0.5:6.2f}"
        )
        heights: Any
        products = torch.linalg.vecdot(q, k).tolist()
        heights, edges, _ = ax.hist(products, histtype="step", linewidth=1.5, **shape)
        half = heights.max() / 2
        place = edges[(heights >= half).nonzero()[0][-1] + 1], half
        ax.annotate(
            f"d = {d}",
            place,
            (6, 3),
            textcoords="offset points",
            fontsize=9,
            color=ax.patches[-1].get_edgecolor(),
        )
    ax.set(xlabel="dot product", ylabel="density")
    return variances


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
) -> list[float]:
    """Train W by plain gradient descent such that query i, a rotated key, finds key i again.

    factor    the queries are multiplied by it: √d undoes the division of the scores by √d
    start     the first W is multiplied by it
    log_loss  whether the loss is -log of the right weight, taken from the scores, instead of the
              squared error of the context
    returns   the squared error of the context at every step
    """
    draw = torch.Generator().manual_seed(seed)
    keys = torch.randn(n, d, generator=draw)
    rotation = torch.linalg.qr(torch.randn(d, d, generator=draw)).Q
    W = (start * torch.randn(d, d, generator=draw) / d**0.5).requires_grad_()
    errors = []
    for _ in range(steps):
        q = keys @ rotation @ W * factor
        context = scaled_dot_product_attention(q, keys, torch.eye(n))
        error = (context - torch.eye(n)).square().sum(dim=1).mean()
        scores = q @ keys.T / d**0.5
        loss = F.cross_entropy(scores, torch.arange(n)) if log_loss else error
        (gradient,) = torch.autograd.grad(loss, W)
        with torch.no_grad():
            W -= rate * gradient
        errors.append(error.item())
    return errors


ROOT_D = 512**0.5
EQUAL = 15 / 16  # the squared error of 16 equal weights
SMALL = {"factor": ROOT_D, "start": 1 / ROOT_D}
SETTINGS: dict[str, dict[str, Any]] = {
    "divided": {},
    "not divided": {"factor": ROOT_D},
    "divided, W starts √512 times larger": {"start": ROOT_D},
    "not divided, W starts √512 times smaller": SMALL,
    "not divided, W √512 and rate 512 times smaller": SMALL | {"rate": 0.05 / 512},
    "not divided, loss: −log of the right weight": {"factor": ROOT_D, "log_loss": True},
}


def scale_or_size(scaled_dot_product_attention: Attend) -> Any:
    """Draw the errors of `turn_back` for three seeds each, and print those after 120 steps.

    Changed: the division, the first W, the rate, the loss. Kept: keys, rotation, 120 steps.
    """
    runs = {
        name: [
            turn_back(scaled_dot_product_attention, **setting, seed=seed)
            for seed in SEEDS[: fewer(3, most=1)]
        ]
        for name, setting in SETTINGS.items()
    }
    axes = plots.panels(1, 2, width=3.8, height=2.8)
    for ax, step in zip(axes, (10, 120), strict=True):
        found = {name: [errors[step - 1] for errors in some] for name, some in runs.items()}
        seeds.dots(found, ax, f"after {step} steps", "squared error", stroke=False)
        for line, setting in zip(ax.lines, SETTINGS.values(), strict=True):
            line.set_color(plots.VERMILION if setting.get("factor") else plots.BLUE)
        ax.axvline(EQUAL, color=plots.GREY, linestyle="--", linewidth=1)
        ax.text(EQUAL + 0.05, 0, "equal weights", va="center", fontsize=9)
    for name, errors in found.items():
        print(f"{name:<46}", *(f"{error:6.3f}" for error in errors))
    return axes


def divided_by(
    power: float, d: int, seed: int, scaled_dot_product_attention: Attend, times: float = 1
) -> dict[str, float]:
    """Run `turn_back` with scores divided by d to this ``power``, at 0.05 ``times`` the rate.

    returns  "loss", the squared error at the last step
    """
    factor, rate = d ** (0.5 - power), 0.05 * times
    errors = turn_back(scaled_dot_product_attention, factor, rate=rate, seed=seed, d=d)
    return {"loss": round(errors[-1], 5)}


@torch.no_grad()
def spread_in_the_translator(seed: int, matrices: str = "") -> dict[str, float]:
    """Measure undivided dot products in the translator of this lesson, before any training.

    matrices  which of "q", "k" and "v" have one; with none it is lesson 04's
    returns   "entries", the root mean square of the numbers in its queries, and "spread", the
              standard deviation of the scores of one query, over the true words of 256 sources
    """
    torch.manual_seed(seed)
    corpus, found = numbers(), list[tuple[Tensor, Tensor]]()

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        found.append((q, q @ k.mT))
        return F.scaled_dot_product_attention(q, k, v, mask)

    model = Compared(sizes_of(corpus), Looks(attend, of=matrices), d_source=D_STATE)
    batch = corpus.batch(corpus.test[:256])
    model(batch.source, batch.lengths, batch.target)
    queries, scores = (torch.cat(some, dim=1) for some in zip(*found, strict=True))  # (B, T_q, …)
    spreads = [rows[:, :n].std(dim=1).mean() for rows, n in zip(scores, batch.lengths, strict=True)]
    return {
        "entries": round(queries.square().mean().sqrt().item(), 2),
        "spread": round(torch.stack(spreads).mean().item(), 2),
    }


def spreads_in_the_translator(matrices: str = "") -> None:
    """Print `spread_in_the_translator` for three seeds."""
    for seed in SEEDS:
        found = spread_in_the_translator(seed, matrices)
        told = "   ".join(f"{name} {number:.2f}" for name, number in found.items())
        print(f"{f'matrices for {matrices}' if matrices else 'no matrices'}, seed {seed}:  {told}")


def weight_on_itself(attend: Attend) -> dict[int, list[float]]:
    """Print the mean weight of a random vector on itself, among ten, without any projections.

    attend   `scaled_dot_product_attention`
    returns  length d of the vectors → mean of 200 sequences, for seeds 0 to 2
    """
    found: dict[int, list[float]] = {}
    for d in (16, 64, 256):
        found[d] = []
        for seed in SEEDS:
            x = torch.randn(200, 10, d, generator=torch.Generator().manual_seed(seed))
            _, weights = attend(x, x, x, return_weights=True)
            found[d].append(round(weights.diagonal(dim1=1, dim2=2).mean().item(), 3))
        print(f"d {d:3d}   weight of a vector on itself, among ten, seeds 0 to 2: {found[d]}")
    return found


ROLES = {
    "x in all roles": "",
    "one matrix for q, k and v": "qkv",
    "q is x; one matrix for k and v": "kv",
    "q is x; W_k, W_v": "k v",
    "W_q, W_k; v is x": "q k",
    "W_q, W_k, W_v": "q k v",
}


def projections() -> Axes:
    """Draw what `fetch` ends at for six ways to make q, k and v, three seeds each."""
    ends = {}
    for name, roles in ROLES.items():
        runs = [fetch(roles, seed, steps=fewer(300, most=10)) for seed in SEEDS]
        ends[name] = [sum(losses[-20:]) / len(losses[-20:]) for losses in runs]
    return seeds.dots(ends, xlabel="loss after 300 steps (1: always answering 0)", stroke=False)


@torch.no_grad()
def scores_both_ways(head: Any, x: Tensor) -> tuple[float, float]:
    """Print and return the scores of the first token on the last and of the last on the first.

    head  a `SelfAttentionHead`; beside it the scores if W_q made the keys as well
    x     (1, T, d_model)
    """
    for name, keys in (("W_q for both", head.W_q), ("W_q and W_k", head.W_k)):
        scores = head.W_q(x)[0] @ keys(x)[0].T  # (T, T)
        there, back = scores[0, -1].item(), scores[-1, 0].item()
        print(f"{name:<13} score of I on Sam {there:6.2f}   of Sam on I {back:6.2f}")
    return there, back


@torch.no_grad()
def in_another_order(head: Any, x: Tensor, attend: Attend) -> str:
    """Draw the weights of "I am Sam" and of "Sam I am", and print the context of Sam in both.

    head, x  a `SelfAttentionHead` and three tokens (1, 3, d_model)
    attend   `scaled_dot_product_attention`
    returns  "same" if shuffling the input shuffles the output and nothing else, or "different"
    """
    words, order = ["I", "am", "Sam"], [2, 0, 1]
    axes = plots.panels(columns=2, width=3.2, height=2.6, share=False)
    for ax, chosen in zip(axes, ([0, 1, 2], order), strict=True):
        z, names = x[:, chosen], [words[i] for i in chosen]
        context, weights = attend(head.W_q(z), head.W_k(z), head.W_v(z), return_weights=True)
        last = ax is axes[-1]
        plots.heatmap(weights[0], ax, " ".join(names), names, names, numbers=True, colorbar=last)
        print("context of Sam:", [round(c, 3) for c in context[0, chosen.index(2), :4].tolist()])
    same = torch.allclose(head(x[:, order]), head(x)[:, order], atol=1e-6)
    print("shuffling the input shuffles the output, and nothing else:", same)
    return "same" if same else "different"


def multiplications(
    attention_multiplications: Callable[..., int], rnn_multiplications: Callable[..., int]
) -> None:
    """Print how often self-attention and a plain RNN multiply, for T vectors of 64 numbers."""
    print("   T    attention      + projections          RNN   RNN, state only")
    for T in (1, 16, 32, 64, 256, 1024):
        ours, theirs = attention_multiplications(T, T, 64, 64), rnn_multiplications(T, 64)
        each = T * 64 * 64  # multiplications of one (64, 64) matrix at every step
        print(f"{T:4d} {ours:12,d} {ours + 3 * each:18,d} {theirs:12,d} {theirs - each:17,d}")


def race(SelfAttentionHead: Callable[[int, int], nn.Module], d: int = 64) -> int | None:
    """Draw the time that an RNN and a head take on one core, alone and in a batch.

    returns  the first length at which attention takes longer for one sequence, or None
    """
    layers = {"attention": SelfAttentionHead(d, d), "RNN": nn.RNN(d, d, batch_first=True)}
    axes, slower = plots.panels(1, 2, width=3.9, height=2.8, share=False), []
    for ax, (B, longest) in zip(axes, ((1, 12), (64, 9)), strict=True):
        lengths = [2**power for power in range(4, longest + 1)]
        inputs = [torch.randn(B, T, d) for T in lengths]
        with torch.no_grad(), one_thread():
            clock = {
                name: timing.in_turns([partial(layer, x) for x in inputs], rounds=3)
                for name, layer in layers.items()
            }
        title = "one sequence" if B == 1 else f"a batch of {B}"
        plots.lines(lengths, clock, ax, title, "T", "milliseconds", log=True)
        ax.set(yscale="log")
        ax.minorticks_off()
        ax.set_xticks(lengths[::2], [str(T) for T in lengths[::2]])
        ax.get_legend().remove()
        pairs = zip(lengths, *clock.values(), strict=True)
        slower.append(next((int(T) for T, ours, theirs in pairs if ours > theirs), None))
        print(f"{title}: attention takes longer from T =", slower[-1] or f"> {lengths[-1]}")
    plots.legend(axes[0], fontsize=8, loc="upper left")
    return slower[0]


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
    """Draw `influence` for three seeds."""
    runs = [influence(SelfAttentionHead, seed) for seed in SEEDS]
    ax: Axes = plots.panels(width=6.5, height=3.0)
    for name, colour in zip(runs[0], (plots.BLUE, plots.VERMILION, plots.GREEN), strict=True):
        for found in runs:
            seen = found[name][found[name] > 0]  # there is no 0 on a logarithmic axis
            ax.plot(seen, color=colour, linewidth=1.2)
        ax.text(len(seen), seen[-1].item(), name, color=colour)
    ax.set(yscale="log", xlabel="steps back", ylabel="influence on the last output")
    return ax


ONCE = {"matrices": "qk", "divided": True, "seed": 0, "steps": 20}

EXPERIMENTS = {
    "matrices and division": Experiment(
        points=[point for setting in ABLATED for point in seeded(range(6), **setting)] + [ONCE],
        run=train_with,
        again=ONCE,
    ),
}
ANSWERS_TO_QUESTIONS = {
    "05 fetch without a matrix": Experiment(
        points=[
            point
            for roles, steps in (("q k v", 300), ("q k", 300), ("k v", 300), ("k v", 1200))
            for point in seeded(SEEDS, roles=roles, steps=steps)
        ],
        run=fetch_items,
        again={"roles": "q k", "steps": 300, "seed": 0},
    ),
    "05 divided by d": Experiment(
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
