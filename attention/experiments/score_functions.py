"""Lesson 04: the five score functions in one translator, and what they can say of a few pairs."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attention.experiments import recorded
from attention.experiments.bahdanau_attention import (
    D_STATE,
    Compared,
    measured_with_frames,
    sizes_of,
)
from attention.experiments.recorded import Experiment, seeded
from attention.provided.data.numbers import numbers
from attention.provided.figures import plots, seeds
from attention.provided.measuring import timing
from attention.provided.measuring.memory import megabytes
from attention.provided.models import translators
from attention.provided.training_steps import one_thread

KINDS = ("dot", "scaled_dot", "bilinear", "reduced_rank", "additive")
SEEDS = (0, 1, 2)
OF_TRANSLATORS = (0, 1, 2, 3, 4, 5)
TWICE = 0.012
SHORT = {"kind": "bilinear", "seed": 0, "steps": 20}

CROSSINGS = (4, 5, 6)  # seeds of the lesson's own
D = 8  # length of their queries and keys

Score = Callable[[str, Tensor, Tensor, Mapping[str, Tensor]], Tensor]
Learn = Callable[[str, Tensor, Tensor, Mapping[str, Tensor], int], Tensor]


class Scored(nn.Module):
    """Attention by one of the five score functions of lesson 04.

    kind   "dot", "scaled_dot", "bilinear", "reduced_rank" or "additive"
    score  a function like `score` of that lesson
    """

    def __init__(self, kind: str, score: Score, d: int, r: int = 64):
        super().__init__()
        self.kind, self.score = kind, score
        shapes = {
            "bilinear": {"W": (d, d)},
            "reduced_rank": {"V": (r, d), "U": (r, d)},
            "additive": {"W_q": (r, d), "W_k": (r, d), "v": (1, r)},
        }.get(kind, {})
        self.weights = nn.ParameterDict()
        for name, (out, into) in shapes.items():  # begins as nn.Linear does
            self.weights[name] = nn.Linear(into, out, bias=False).weight

    def keys(self, annotations: Tensor) -> Tensor:
        """Return the annotations: the score function projects them itself."""
        return annotations

    def forward(self, state: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> Any:
        """Return context (B, T_q, d_v) and weights (B, T_q, T_k) for states (B, T_q, d)."""
        weights = dict(self.weights.items())
        if "v" in weights:
            weights["v"] = weights["v"][0]
        scores = self.score(self.kind, state, keys, weights)
        beyond = torch.arange(keys.shape[1]).ge(lengths[:, None])  # (B, T_k)
        shares = scores.masked_fill(beyond[:, None], -torch.inf).softmax(dim=-1)
        return torch.bmm(shares, values), shares


def train_scored(
    kind: str,
    seed: int,
    score: Score,
    steps: int = translators.STEPS,
    rate: float = translators.LEARNING_RATE,
) -> dict[str, Any]:
    """Train a translator with one of the score functions; see `measured_with_frames`.

    Two of them need queries as long as keys, so here all annotations have 64 numbers.
    """
    torch.manual_seed(seed)
    corpus = numbers()
    layer = Scored(kind, score, D_STATE)
    model = Compared(sizes_of(corpus), layer, d_source=D_STATE)
    return measured_with_frames(model, corpus, seed, steps, rate)


def crossing(
    kind: str,
    pairs: int,
    seed: int,
    learn_crossing: Learn,
    r: int = 1,
    steps: int = 150,
    learned: bool = False,
) -> dict[str, Any]:
    """Train scores such that query i finds key pairs - 1 - i; queries and keys have 8 numbers.

    learn_crossing  of the lesson
    learned         whether queries and keys are learned as well
    returns         "found", how many queries have their largest weight on the wanted key, and
                    "weight", the mean weight there
    """
    shares = _crossed(learn_crossing, kind, pairs, seed, r, steps, learned)
    return {"found": _found(shares), "weight": round(_on_wanted(shares), 4)}


def _crossed(
    learn_crossing: Learn,
    kind: str,
    pairs: int,
    seed: int,
    r: int,
    steps: int = 150,
    learned: bool = False,
) -> Tensor:
    """The weights (T_q, T_k) after the training of `crossing`."""
    draw = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(1, pairs, D, generator=draw) for _ in range(2))
    shapes = {"W": (D, D), "V": (r, D), "U": (r, D), "W_q": (16, D), "W_k": (16, D), "v": (16,)}
    weights = {name: 0.3 * torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    for one in (*weights.values(), *((q, k) if learned else ())):
        one.requires_grad_()
    nothing_to_learn = "dot" in kind and not learned
    return learn_crossing(kind, q, k, weights, 0 if nothing_to_learn else steps)


def _found(shares: Tensor) -> int:
    """How many queries have their largest weight on the wanted key."""
    return int((shares.fliplr().argmax(dim=1) == torch.arange(len(shares))).sum())


def _on_wanted(shares: Tensor) -> float:
    return shares.fliplr().diagonal().mean().item()


def crossings(learn_crossing: Learn) -> int:
    """Draw the weights that five score functions learn for a crossing of six queries and keys.

    Changed: the score function, and the rank. Kept: queries, keys, 150 steps of Adam.
    returns  how many queries find their key by a score of rank 1, with seed 4
    """
    tried = [(kind, 1) for kind in KINDS[:3]] + [("reduced_rank", 1), ("reduced_rank", 2)]
    axes, of_rank_1 = plots.panels(1, 6, width=1.9, height=2.2), 0
    for ax, (kind, r) in zip(axes, [*tried, ("additive", 1)], strict=True):
        name = f"reduced rank {r}" if kind == "reduced_rank" else kind.replace("_", " ")
        runs = [_crossed(learn_crossing, kind, 6, seed, r) for seed in CROSSINGS]
        plots.heatmap(runs[0], ax, name, colorbar=ax is axes[-1])
        ax.set(ylabel="queries" if ax is axes[0] else "")
        means = "  ".join(f"{_on_wanted(shares):.2f}" for shares in runs)
        found = "  ".join(f"{_found(shares)}" for shares in runs)
        print(f"{name:<15} mean weight on the wanted key, seeds 4, 5, 6:  {means}   found: {found}")
        if name == "reduced rank 1":
            of_rank_1 = _found(runs[0])
    return of_rank_1


def translators_of_all_kinds() -> str:
    """Draw what the recorded translators of all kinds get right, and print it for five digits.

    returns  the kind with the fewest runs that get more than half of the five-digit numbers right
    """
    rows = seeds.where(recorded.read("score_functions", "five score functions"), steps=300)
    runs = {kind: seeds.where(rows, kind=kind) for kind in KINDS}
    named = {kind.replace("_", " "): found for kind, found in runs.items()}
    for ax, digits in zip(plots.panels(1, 3, width=3.2, height=2.4), (4, 5, 6), strict=True):
        seeds.dots_at_digits(named, digits, ax)
    five = {kind: seeds.at_digits(found, 5) for kind, found in runs.items()}
    above = {kind: sum(share > 0.5 for share in found) for kind, found in five.items()}
    print(" " * 35 + "five digits, seeds 0 to 5       above a half")
    for kind, found in five.items():
        shown = "  ".join(f"{share:.2f}" for share in found)
        parameters = f"{runs[kind][0]['parameters']:,} parameters"
        print(f"{kind.replace('_', ' '):<14}{parameters}   {shown}   {above[kind]} of {len(found)}")
    faster = recorded.read("score_functions", "twice the rate")
    for kind in ("scaled_dot", "dot"):
        shares = seeds.at_digits(seeds.where(faster, kind=kind), 5)
        name = f"{kind.replace('_', ' ')}, twice the rate"
        print(f"{name:<34}", *(f"{share:.2f} " for share in shares))
    return min(above, key=lambda kind: above[kind])


def time_and_memory(score: Score, lengths: Sequence[int]) -> Any:
    """Draw time and memory of three score functions on one core, for T_q = T_k = T, d = r = 64.

    Prints how many times the scaled dot product's the additive score's are at the last length, and
    its multiplications.
    """
    weights = {name: torch.randn(64, 64) for name in ("V", "U", "W_q", "W_k")}
    weights["v"] = torch.randn(64)
    names = {"additive": "additive", "reduced_rank": "reduced rank", "scaled_dot": "scaled dot"}
    inputs = [torch.randn(1, T, 64) for T in lengths]
    times, memory = {}, {}
    with torch.no_grad(), one_thread():
        for kind, name in names.items():
            runs = [partial(score, kind, x, x, weights) for x in inputs]
            times[name] = timing.in_turns(runs, rounds=3)
            memory[name] = [megabytes(run) for run in runs]
    axes = plots.panels(1, 2, width=4.6, height=3.0, share=False)
    plots.lines(lengths, times, axes[0], "time (ms), one core", "T_q = T_k", log=True)
    plots.lines(lengths, memory, axes[1], "memory allocated (MB)", "T_q = T_k", log=True)
    for ax in axes:
        ax.set_yscale("log")
        ax.minorticks_off()
        ax.set_xticks(lengths, [str(T) for T in lengths])
    T = lengths[-1]
    counted = (2 * T * 64 * 64 + T * T * 64, T * T * 65)
    print(f"T = {T}, additive against scaled dot:")
    for what, (ours, theirs) in (
        ("multiplications", counted),
        ("time", (times["additive"][-1], times["scaled dot"][-1])),
        ("memory", (memory["additive"][-1], memory["scaled dot"][-1])),
    ):
        print(f"{what:<16} {ours / theirs:6.3g} times")
    return axes


def a_longer_key(gaussian_scores: Callable[..., Tensor], score: Score) -> Any:
    """Draw weights by both scores for keys on a circle, then with key 2 made three times as long.

    gaussian_scores, score  the functions of the lesson; bandwidth 0.7 for both
    """
    angles = torch.linspace(0, 2 * math.pi, 9)[:8]
    circle = torch.stack((torch.cos(angles), torch.sin(angles)), 1)[None]  # (B=1, T_k, 2)
    longer = circle.clone()
    longer[0, 2] *= 3
    axes = plots.panels(2, 2, width=3.4, height=2.2)
    named = {"equal lengths": circle, "key 2 is longer": longer}
    for row, (name, keys) in zip(axes, named.items(), strict=True):
        gaussian = gaussian_scores(circle, keys, 0.7).softmax(dim=2)[0]
        dots = (score("dot", circle, keys, {}) / 0.7**2).softmax(dim=2)[0]
        plots.heatmap(gaussian, row[0], f"Gaussian, {name}", colorbar=False)
        plots.heatmap(dots, row[1], f"dot product, {name}")
    return axes


REWARDS = (10.0, 11.0, 12.0, 13.0)


def follow(
    reinforce_gradient: Callable[..., Tensor], baseline: float | None, seed: int, steps: int = 150
) -> list[float]:
    """Follow the gradient of the expected reward of four keys, from equal scores.

    baseline  of `reinforce_gradient`, with four trials a step; None takes the exact gradient
    returns   the expected reward at every step
    """
    generator, scores, expected = torch.Generator().manual_seed(seed), torch.zeros(4), []
    reward_of = torch.tensor(REWARDS)  # (T_k,)
    for _ in range(steps):
        w = scores.softmax(dim=0)  # (T_k,)
        expected.append((w @ reward_of).item())
        if baseline is None:
            gradient = w * (reward_of - w @ reward_of)
        else:
            chosen = torch.multinomial(w, 4, replacement=True, generator=generator)
            gradient = reinforce_gradient(scores, chosen, reward_of[chosen], baseline)
        scores = scores + 0.1 * gradient
    return expected


def rewards_with_a_baseline(reinforce_gradient: Callable[..., Tensor]) -> dict[str, list[float]]:
    """Draw `follow` for the exact gradient, and for REINFORCE with a baseline of 0 and of 11.5.

    returns  name → expected reward after 150 steps, for seeds 0 to 4
    """
    axes, ends = plots.panels(1, 3, width=3.2, height=2.4), {}
    baselines = {"exact": None, "no baseline": 0.0, "baseline 11.5": 11.5}
    for ax, (name, baseline) in zip(axes, baselines.items(), strict=True):
        curves = [follow(reinforce_gradient, baseline, seed) for seed in range(5)]
        for curve in curves:
            ax.plot(curve, color=plots.BLUE, alpha=0.6, linewidth=1.2)
        ax.set(title=name, xlabel="steps", ylabel="expected reward" if ax is axes[0] else "")
        ends[name] = [curve[-1] for curve in curves]
        print(f"{name:<14} after 150 steps:", *(f"{end:.2f}" for end in ends[name]))
    return ends


EXPERIMENTS = {
    "five score functions": Experiment(
        points=[
            {"kind": kind, "seed": seed, "steps": 300} for seed in OF_TRANSLATORS for kind in KINDS
        ]
        + [SHORT],
        run=train_scored,
        again=SHORT,
    ),
    "twice the rate": Experiment(
        points=[
            {"kind": kind, "seed": seed, "rate": TWICE}
            for kind in ("scaled_dot", "dot")
            for seed in SEEDS
        ],
        run=train_scored,
        again=None,
    ),
}
ANSWERS_TO_QUESTIONS = {
    "04 pairs that a rank holds": Experiment(
        points=[
            point
            for r, pairs in ((1, 3), (1, 4), (2, 4), (2, 8), (2, 12))
            for point in seeded(SEEDS, kind="reduced_rank", r=r, pairs=pairs, steps=1000)
        ],
        run=crossing,
        again={"kind": "reduced_rank", "r": 1, "pairs": 3, "steps": 1000, "seed": 0},
    ),
    "04 learned queries and keys": Experiment(
        points=[
            point
            for kind in ("dot", "scaled_dot")
            for point in seeded(CROSSINGS, kind=kind, pairs=6, learned=True)
        ],
        run=crossing,
        again={"kind": "dot", "pairs": 6, "learned": True, "seed": 4},
    ),
}
