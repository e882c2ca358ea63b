"""Lesson 06: masks drawn and compared, and what a leak does to a speller of German numbers.

A small model spells letter after letter, under any mask. With a mask that leaks, its loss is
excellent and what it writes is nonsense.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments import translator_so_far
from attention.experiments.recorded import Experiment, read, seeded
from attention.provided.data.numbers import in_words, is_test
from attention.provided.data.tokens import BOS, PAD, Vocabulary
from attention.provided.figures import plots, seeds
from attention.provided.measuring import timing
from attention.provided.training_steps import fewer, one_thread, take_steps

WORDS = [in_words(number, "de") for number in range(1, 1000)]
TRAINED_ON = [word for number, word in enumerate(WORDS, 1) if not is_test(number)]
LETTERS = Vocabulary("".join(WORDS))
LONGEST = 1 + max(map(len, WORDS))
SEEDS = (0, 1, 2)
MASKS = ("causal", "mask after softmax", "0 instead of −∞", "sees one ahead")

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # from q, k and v (B, T, d) to (B, T, d)
Attend4 = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # the same, under a mask (T, T)
Causal = Callable[[int], Tensor]  # from T to a mask (T, T)
Sparse = Callable[..., Tensor]  # like longformer_mask


def steps_to_meet(mask: Tensor) -> int | None:
    """Count the layers until every position can depend on every other; None if it never does.

    mask  (T, T)  bool, the same in every layer
    """
    reach = mask
    for steps in range(1, len(mask) + 1):
        if reach.all():
            return steps
        reach = (reach.float() @ mask.float()) > 0
    return None


def draw_masks(masks: Mapping[str, Tensor], width: float = 2.5) -> dict[str, int | None]:
    """Draw masks side by side; print how much each allows, and after how many layers all meet.

    masks    title → bool (T, T), or (1, 1, T) for a mask that is the same for all queries
    width    of a panel, in inches
    returns  title → the result of `steps_to_meet`
    """
    axes, steps = plots.panels(columns=len(masks), width=width, height=width), {}
    for ax, (name, mask) in zip(getattr(axes, "flat", [axes]), masks.items(), strict=True):
        mask = mask.reshape(-1, mask.shape[-1]).expand(mask.shape[-1], -1)  # (T, T)
        plots.heatmap(mask.float(), ax, title=name, colorbar=False)
        steps[name] = steps_to_meet(mask)
        share, layers = mask.float().mean(), steps[name] or "never"
        print(f"{name:<32} {share:4.0%} True   layers until all meet: {layers}")
    return steps


def wrong_ways_to_mask(masked_attention: Sparse, causal_mask: Causal) -> dict[str, Tensor]:
    """Draw the weights of four causal positions, the first of them padding, masked in four ways.

    The scores and the mask are the same in all panels; how the mask is applied changes.

    returns  title → weights (4, 4)
    """
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(4))
    mask = causal_mask(4) & torch.tensor([False, True, True, True])
    scores = _scores(x, x)
    attempts = {
        "as it should be": masked_attention(x, x, x, mask, return_weights=True)[1],
        "0 instead of −∞": torch.where(mask, scores, 0.0).softmax(dim=1),
        "mask after softmax": scores.softmax(dim=1) * mask,
        "−1e9 instead of −∞": torch.where(mask, scores, -1e9).softmax(dim=1),
    }
    axes = plots.panels(columns=4, width=2.4, height=2.5)
    for ax, (name, weights) in zip(axes, attempts.items(), strict=True):
        plots.heatmap(weights, ax, title=name, numbers=True, colorbar=False)
        forbidden = (weights.masked_fill(mask, 0.0).sum() / weights.sum()).item()
        rows = [round(total, 2) for total in weights.sum(dim=1).tolist()]
        print(
            f"{name:<20} {forbidden:4.0%} of the weight on forbidden keys   sums of the rows {rows}"
        )
    return attempts


def random_blocks(n_blocks: int, seed: int, ends: Sequence[int] = (0, -1)) -> Tensor:
    """Blocks that see themselves, one block on each side, and one drawn from the others.

    ends  global blocks, which see all and are seen by all, as BigBird's are
    """
    block = torch.arange(n_blocks)
    sees = (block[:, None] - block).abs() <= 1
    for end in ends:
        sees[end], sees[:, end] = True, True
    lottery = torch.rand(n_blocks, n_blocks, generator=torch.Generator().manual_seed(seed))
    return sees.scatter(1, lottery.masked_fill(sees, -1.0).argmax(dim=1, keepdim=True), True)


def bigbird() -> Tensor:
    """BigBird's mask of 24 positions, in blocks of two."""
    return random_blocks(12, seed=0).repeat_interleave(2, 0).repeat_interleave(2, 1)


def bigbird_without_its_parts(longformer_mask: Sparse) -> dict[str, list[int | None]]:
    """Draw three sparse masks, and print how many layers 64 blocks need until all have met.

    Each part of BigBird is taken away in turn. Random blocks are drawn 40 times. A block is one
    position here, since all positions of a block see the same.

    returns  {mask: the number of layers in each draw}
    """
    draws = range(40)
    found = {
        "window": [longformer_mask(64, 1, [])],
        "window + 2 global": [longformer_mask(64, 1, [0, 63])],
        "window + 2 global + 1 random (BigBird)": [random_blocks(64, seed) for seed in draws],
        "window + 1 random": [random_blocks(64, seed, ends=()) for seed in draws],
    }
    steps = {name: [steps_to_meet(mask) for mask in masks] for name, masks in found.items()}
    for name, each in steps.items():
        counted = ", ".join(f"{n} ({each.count(n)}x)" for n in sorted(filter(None, {*each})))
        print(f"{name:<38} layers: {counted}")
    shown = {
        "Longformer: window 2, global 0": longformer_mask(24, 2, [0]),
        "BigBird: blocks of 2, 1 random": bigbird(),
        "window and random, none global": random_blocks(24, seed=0, ends=()),
    }
    draw_masks(shown, width=2.9)
    return steps


def time_of_a_window(masked_attention: Sparse, sliding_window_attention: Sparse) -> Axes:
    """Draw the processor time of a window of 8 on each side, masked and computed directly.

    One core, and its own time: other programs hardly change it.
    """
    lengths: list[Any] = [256, 512, 1024, 2048, 4096]
    ways = {
        "dense, then masked": lambda x: masked_attention(x, x, x, _window(len(x), 8)),
        "sliding window": lambda x: sliding_window_attention(x, x, x, 8),
    }
    clock: dict[str, list[float]] = {name: [] for name in ways}
    with one_thread():
        for name, run in ways.items():
            for T in lengths:
                clock[name].append(timing.shortest(partial(run, torch.randn(T, 32))))
    ax = plots.lines(lengths, clock, xlabel="T", ylabel="milliseconds", log=True)
    ax.set(yscale="log")
    ax.set_xticks(lengths, lengths)
    ax.minorticks_off()
    for name, times in clock.items():
        factors = (f"{after / before:.1f}" for before, after in itertools.pairwise(times))
        print(f"{name:<18} times as long after each doubling:", *factors)
    for T in (4096, 1_000_000):
        dense, window = (T * keys * 4 / 2**20 for keys in (T, 17))
        print(f"T {T:9,d}   scores: dense {dense:12,.0f} MiB   window of 8 {window:6.1f} MiB")
    return ax


class Speller(nn.Module):
    """Letters and their positions, one head of attention, then two layers for each position.

    attend  what happens between queries, keys and values, the mask included
    """

    def __init__(self, attend: Attend, d: int = 32):
        super().__init__()
        self.attend = attend
        self.letter, self.place = nn.Embedding(len(LETTERS), d), nn.Embedding(LONGEST, d)
        self.W_q, self.W_k, self.W_v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.hidden, self.out = nn.Linear(2 * d, 2 * d), nn.Linear(2 * d, len(LETTERS))

    def forward(self, letters: Tensor) -> Tensor:
        """Score every next letter: ids (B, T) to (B, T, len(LETTERS))."""
        x = self.letter(letters) + self.place.weight[: letters.shape[1]]
        context = self.attend(self.W_q(x), self.W_k(x), self.W_v(x))
        scores: Tensor = self.out(self.hidden(torch.cat([x, context], dim=-1)).relu())
        return scores


class Report(NamedTuple):
    """What became of a training.

    losses  cross-entropy per letter, one a step, in nats
    known   share of the written words that are German numbers below 1000
    wrote   the first words that it wrote
    """

    losses: list[float]
    known: float
    wrote: list[str]


def least_loss() -> float:
    """Return the lowest expected loss per letter of a model that cannot see the next letter.

    All words are equally likely, so each costs the logarithm of their number, EOS included.
    """
    return math.log(len(TRAINED_ON)) * len(TRAINED_ON) / sum(len(word) + 1 for word in TRAINED_ON)


def train_speller(attend: Attend, seed: int, steps: int = 300) -> Report:
    """Train on the numbers below 1000 that are not test numbers, then let it write 300 words."""
    torch.manual_seed(seed)
    rows = torch.full((len(TRAINED_ON), LONGEST + 1), PAD)
    for row, word in zip(rows, TRAINED_ON, strict=True):
        ids = torch.tensor([BOS, *LETTERS.encode(word)])
        row[: len(ids)] = ids
    model = Speller(attend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def loss() -> Tensor:
        batch = rows[torch.randint(len(rows), (48,))]
        scores = model(batch[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten(), ignore_index=PAD)

    losses = list(take_steps((loss() for _ in range(steps)), optimizer))
    wrote = write(model)
    return Report(losses, sum(word in WORDS for word in wrote) / len(wrote), wrote[:4])


@torch.no_grad()
def write(model: Speller, count: int = 300) -> list[str]:
    """Draw words letter after letter: nothing comes after the last letter that is there."""
    letters = torch.full((count, 1), BOS)
    for _ in range(LONGEST):
        scores = model(letters)[:, -1]
        scores[:, [PAD, BOS]] = -torch.inf
        letters = torch.cat([letters, torch.multinomial(scores.softmax(dim=1), 1)], dim=1)
    return ["".join(LETTERS.decode(row)) for row in letters[:, 1:].tolist()]


def with_mask(masked_attention: Attend4, may_attend: Causal) -> Attend:
    """Attention under the mask that ``may_attend`` makes for a length."""
    return lambda q, k, v: masked_attention(q, k, v, may_attend(q.shape[-2]))


def one_ahead(T: int) -> Tensor:
    """A mask that leaks: every position sees its past, itself and the next one, (T, T)."""
    return torch.ones(T, T, dtype=torch.bool).tril(diagonal=1)


def _window(T: int, reach: int) -> Tensor:
    return torch.ones(T, T, dtype=torch.bool).tril(reach).triu(-reach)


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT / q.shape[-1] ** 0.5


def masks(masked_attention: Attend4, causal_mask: Causal) -> dict[str, Attend]:
    """Attention that is causal, and three ways in which it leaks, by the names of MASKS."""

    def mask_after_softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Weights of what is forbidden become 0, but it has had its share of the denominator."""
        return (_scores(q, k).softmax(dim=-1) * causal_mask(q.shape[-2])) @ v

    def zero_instead(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Forbidden scores become 0, whose exponential is 1."""
        return torch.where(causal_mask(q.shape[-2]), _scores(q, k), 0.0).softmax(dim=-1) @ v

    ways = (
        with_mask(masked_attention, causal_mask),
        mask_after_softmax,
        zero_instead,
        with_mask(masked_attention, one_ahead),
    )
    return dict(zip(MASKS, ways, strict=True))


def train_with(
    mask: str, seed: int, masked_attention: Attend4, causal_mask: Causal
) -> dict[str, float]:
    """Train and write under one of MASKS."""
    return _told(train_speller(masks(masked_attention, causal_mask)[mask], seed))


def train_with_window(
    window: int, seed: int, masked_attention: Attend4, causal_mask: Causal
) -> dict[str, float]:
    """Train and write under a causal window: a letter and ``window`` letters before it."""
    attend = with_mask(masked_attention, lambda T: causal_mask(T) & _window(T, window))
    return _told(train_speller(attend, seed))


def train_with_a_gap(seed: int, masked_attention: Attend4) -> dict[str, float]:
    """Train and write where a position sees all letters but the one that it must predict."""
    seen: Causal = lambda T: ~torch.ones(T, T, dtype=torch.bool).triu(1).tril(1)  # noqa: E731
    return _told(train_speller(with_mask(masked_attention, seen), seed))


def spell_with_a_leak(masked_attention: Attend4, causal_mask: Causal) -> float:
    """Train two spellers, under a causal mask and one that sees one letter ahead; draw the losses.

    Model, data, seed and steps are the same. Dashed: the least loss without a leak.

    returns  the share of German numbers among the 300 words that the leaking one writes
    """
    curves, known = {}, 0.0
    with one_thread():  # as fast for such small matrices
        for name, mask in (("causal", causal_mask), ("sees one ahead", one_ahead)):
            attend = with_mask(masked_attention, mask)
            curves[name], known, wrote = train_speller(attend, seed=0, steps=fewer(300, most=10))
            end = sum(curves[name][-10:]) / 10
            print(f"{name:<15} loss {end:.3f}   German numbers {known:.2f}   {wrote[:3]}")
    ax = plots.lines(range(len(curves[name])), curves, xlabel="step", ylabel="loss per letter")
    ax.axhline(least_loss(), color=plots.GREY, linestyle="--", linewidth=1.2)
    print("the least loss that is possible without a leak:", round(least_loss(), 3))
    return known


def what_leaks_are_worth() -> Axes:
    """Draw what recorded spellers write against their training loss: one causal, three that leak.

    The mask changes; model, data, 300 steps and rate stay the same; three seeds. A single one is
    trained by ``train_with("causal", 0, masked_attention, causal_mask)``.
    """
    ax = plots.panels(width=5.2, height=3.0)
    for name, marker in zip(MASKS, "os^D", strict=True):
        rows = seeds.where(read("masked_attention", "what a leak is worth"), mask=name)
        losses, known = ([row[key] for row in rows] for key in ("loss", "known"))
        ax.plot(losses, known, marker, label=name, alpha=0.8)
        print(f"{name:<20} loss", *(f"{loss:.3f}" for loss in losses), end="   ")
        print("German numbers", *(f"{share:.2f}" for share in known))
    ax.set(xlabel="training loss per letter", ylabel="share of German numbers", ylim=(-0.04, 1.04))
    plots.legend(ax, fontsize=8)
    return ax


def companions() -> float:
    """Draw how many numbers are right without padding, with little and with much of it.

    The batch in which a number is translated changes, and whether padding was hidden; the trained
    translators, three seeds, and the numbers are kept.

    returns  the share of three-digit numbers right beside a long one: padding seen, seed 0
    """
    ways = {
        "no padding": "alone",
        "own digits": "accuracy",
        "beside a long one": "beside a long one",
    }
    rows = read("masked_attention", "companions")
    axes = plots.panels(columns=3, width=2.9, height=2.6)
    lines: dict[str, list[str]] = {}
    for ax, digits in zip(axes, (2, 3, 6), strict=True):
        named = {
            f"{name}, {way}": [row[key][row["digits"].index(digits)] for row in found]
            for name, found in (
                ("hidden", seeds.where(rows, stage="05")),
                ("seen", seeds.where(rows, stage="06 no mask")),
            )
            for way, key in ways.items()
        }
        seeds.dots(named, ax, f"{digits} digits", "right", shares=True, stroke=False)
        for label, shares in named.items():
            said = " ".join(f"{share:.2f}" for share in shares)
            lines.setdefault(label, []).append(f"{digits} digits {said}")
        if digits == 3:
            beside = named["seen, beside a long one"][0]
    for label, some in lines.items():
        print(f"{label:<25}", *some, sep="   ")
    return beside


def _told(report: Report) -> dict[str, float]:
    loss = sum(report.losses[-20:]) / 20
    return {"loss": round(loss, 4), "known": round(report.known, 4)}


WINDOWS = (1, 2, 4, 8, 16)

EXPERIMENTS = {
    "what a leak is worth": Experiment(
        points=[{"mask": mask, "seed": seed} for mask in MASKS for seed in SEEDS],
        run=train_with,
        again={"mask": "causal", "seed": 0},
    ),
    "causal windows": Experiment(
        points=[{"window": window, "seed": seed} for window in WINDOWS for seed in SEEDS],
        run=train_with_window,
        again={"window": 4, "seed": 0},
    ),
    "all but the next": Experiment(
        points=[{"seed": seed} for seed in SEEDS],
        run=train_with_a_gap,
        again={"seed": 0},
    ),
    "companions": Experiment(
        points=[point for stage in ("05", "06 no mask") for point in seeded(SEEDS, stage=stage)],
        run=translator_so_far.train_and_choose_companions,
        again=None,
    ),
}
