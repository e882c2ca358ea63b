"""Lesson 11: each part of a training, and what happens without it.

The numbers translator is trained with one thing changed. The first half holds the trainings: each
function trains from a seed on one core and returns plain numbers. It uses PyTorch's own version of
everything that a learner writes in the lesson. The second half, from `two_rates` on, draws what the
lesson shows.
"""

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.numbers_training import (
    MAX_TOKENS,
    batches_in,
    entropy,
    evaluate,
    fresh,
    held_out_batches,
    loss_of,
    padded_share,
    rate,
    strange,
    update,
)
from attention.experiments.numbers_training import copy_of as copy_of
from attention.experiments.numbers_training import held_out as held_out
from attention.experiments.numbers_training import numbered_batches as numbered_batches
from attention.experiments.recorded import Experiment, read, seeded
from attention.provided.data import docstrings
from attention.provided.data.numbers import Corpus, Pair, numbers
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots, seeds
from attention.provided.models import translators
from attention.provided.progress import Bar
from attention.provided.training_steps import fewer, one_thread
from attention.sequence_to_sequence import masked_cross_entropy

ANSWERS = "training"  # batches by tokens, the mean of checkpoints: hidden in its grading

WARMUP, PEAK = 40, 0.0073  # of the lesson's training
SIZES = (1, 4, 16, 64, 256)  # of batches whose gradients are compared
KEPT = 5  # checkpoints for the mean
DIVERGED = 99.0  # stands for a loss that is no number any more


def first_steps(
    n_layers: int,
    schedule: str,
    peak: float,
    seed: int,
    optimizer: str = "Adam",
    steps: int = 60,
    warmup: int = 20,
) -> dict[str, Any]:
    """Train a post-norm Transformer on batches of 32; returns the mean loss of the last 5 steps.

    optimizer  "Adam" or "SGD", with a momentum of 0.9
    """
    rates = [rate(step, schedule, peak, warmup) for step in range(1, steps + 1)]
    last = statistics.fmean(losses_at(rates, n_layers, seed, optimizer)[-5:])
    return {"loss": round(last, 3) if math.isfinite(last) else DIVERGED}


def losses_at(
    rates: Sequence[float],
    n_layers: int = 2,
    seed: int = 0,
    optimizer: str = "Adam",
    label: str = "training",
) -> list[float]:
    """Train a fresh post-norm Transformer with these learning rates; the losses, one a step.

    n_layers   on each side
    optimizer  "Adam" or "SGD", with a momentum of 0.9
    """
    corpus = numbers()
    losses: list[float] = []
    with one_thread(), Bar(len(rates), label) as bar:
        model = fresh(corpus, seed, n_layers=n_layers, pre_norm=False)
        used: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), 0.0, momentum=0.9)
        if optimizer == "Adam":
            used = torch.optim.Adam(model.parameters(), 0.0, betas=(0.9, 0.98), eps=1e-9)
        batches = corpus.batches(32, len(rates), seed)
        for now, batch in zip(rates, batches, strict=True):
            used.param_groups[0]["lr"] = now
            losses.append(update(model, used, loss_of(model, batch)))
            bar.update(len(losses), losses[-1])
    return losses


def whole_training(
    seed: int,
    order: str = "shuffled buckets",
    smoothing: float = 0.1,
    max_norm: float = 1.0,
    schedule: str = "noam",
    steps: int = 120,
    every: int = 10,
) -> dict[str, Any]:
    """Train as lesson 11 does, or with one thing changed.

    order      "shuffled buckets", "buckets": the shortest first, or "random batches"
    smoothing, max_norm, schedule  of labels, gradients and learning rate
    returns    loss_of_N and right_of_N: held-out loss, not smoothed, and share of right letters,
               with the mean of the last N checkpoints, 1, 3 and 5; there is one every so many steps
    """
    corpus = numbers()
    kept: list[dict[str, Tensor]] = []
    with one_thread(), Bar(steps) as bar:
        model = fresh(corpus, seed)
        adam = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9, 0.0)
        for step, batch in zip(range(1, steps + 1), batches_in(corpus, order, seed), strict=False):
            adam.param_groups[0]["lr"] = rate(step, schedule, PEAK, WARMUP)
            loss = update(model, adam, loss_of(model, batch, smoothing), max_norm)
            bar.update(step, loss)
            if step % every == 0 and step > steps - KEPT * every:
                kept.append({name: x.clone() for name, x in model.state_dict().items()})
        result: dict[str, Any] = {}
        for count in (1, 3, KEPT):
            model.load_state_dict(_mean(kept[-count:]))
            outside = evaluate(model, held_out_batches(corpus))
            result[f"loss_of_{count}"] = round(outside["loss"], 4)
            result[f"right_of_{count}"] = round(outside["right"], 4)
    return result


def few_sentences(
    n_pairs: int, smoothing: float, seed: int, steps: int = 150, every: int = 10
) -> dict[str, Any]:
    """Train on few pairs, again and again; returns losses on them and on held-out pairs.

    returns  lists with a number every ``every`` steps: train and held_out (loss, not smoothed),
             right (share of held-out letters), sure (mean probability of the model's own letter
             where it is wrong)
    """
    corpus = numbers()
    pairs = random.Random(seed).sample(corpus.train, n_pairs)
    own, held_out = [corpus.batch(pairs[:200])], held_out_batches(corpus)
    found: dict[str, list[float]] = {"train": [], "held_out": [], "right": [], "sure": []}
    draw = random.Random(seed)
    with one_thread(), Bar(steps) as bar:
        model = fresh(corpus, seed)
        adam = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9, 0.0)
        for step in range(1, steps + 1):
            adam.param_groups[0]["lr"] = rate(step, "rise", 0.003, 40)
            batch = corpus.batch(draw.sample(pairs, 32))
            bar.update(step, update(model, adam, loss_of(model, batch, smoothing), 1.0))
            if step % every == 0:
                outside = evaluate(model, held_out)
                row = {"train": evaluate(model, own)["loss"], "held_out": outside.pop("loss")}
                for name, value in (row | outside).items():
                    found[name].append(round(value, 4))
    return dict(found)


def strange_batch(
    optimizer: str, max_norm: float, seed: int, before: int = 60, after: int = 21
) -> dict[str, Any]:
    """Train, then learn from one batch of wrong letters, then go on as before.

    optimizer  "AdamW" or "SGD"
    returns    held_out: the loss before the strange batch, after it, and then every 10 steps;
               norm: length of the strange batch's gradient over that of the batch before it
    """
    corpus = numbers()
    held_out, found = held_out_batches(corpus, 100), []
    with one_thread(), Bar(before + after) as bar:
        model = fresh(corpus, seed)
        adam = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9, 0.0)
        sgd = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        norms: list[float] = []
        for step, batch in enumerate(corpus.batches(32, before + after, seed), start=1):
            used = adam if optimizer == "AdamW" or step <= before // 2 else sgd
            adam.param_groups[0]["lr"] = rate(step, "rise", 0.005, 40)
            if step == before + 1:
                found.append(evaluate(model, held_out)["loss"])
                batch = strange(batch, len(corpus.target_vocabulary), seed)
            bar.update(step, update(model, used, loss_of(model, batch), max_norm, norms))
            if step > before and step % 10 == 1:
                found.append(evaluate(model, held_out)["loss"])
    ratio = norms[before] / statistics.fmean(norms[before - 10 : before])
    return {"held_out": [round(loss, 4) for loss in found], "norm": round(ratio, 1)}


def gradient_noise(seed: int, steps: int, reference: int = 4000) -> dict[str, Any]:
    """Train as lesson 10 does and stop after so many steps; how alike are gradients of batches?

    steps      of 300, with the learning rates of all 300
    reference  pairs whose gradient stands for that of all
    returns    "angles of N": degrees between the gradient of a batch of N pairs and the reference,
               for six batches; and loss, on the pairs of the reference
    """
    corpus, draw = numbers(), random.Random(seed)
    model = fresh(corpus, seed)
    if steps:
        batches = corpus.batches(translators.BATCH, steps, seed)
        translators.train(model, batches, translators.STEPS, masked_cross_entropy)
    with one_thread():
        loss, whole = _gradient(model, corpus, draw.sample(corpus.train, reference))
        found: dict[str, Any] = {"loss": round(loss, 4)}
        for size in SIZES:
            parts = [_gradient(model, corpus, draw.sample(corpus.train, size))[1] for _ in range(6)]
            likeness = F.cosine_similarity(torch.stack(parts), whole, dim=1).clamp(-1, 1)
            found[f"angles of {size}"] = [round(x, 1) for x in likeness.acos().rad2deg().tolist()]
    return found


def _gradient(model: nn.Module, corpus: Corpus, pairs: Sequence[Pair]) -> tuple[float, Tensor]:
    """The mean loss per letter of pairs, and its gradient as one long vector."""
    loss, letters = 0.0, sum(len(pair[2]) + 1 for pair in pairs)
    model.zero_grad()
    for begin in range(0, len(pairs), 250):
        batch = corpus.batch(pairs[begin : begin + 250])
        part = loss_of(model, batch) * (batch.target != PAD).sum() / letters
        part.backward()
        loss += part.item()
    gradients = (one.grad for one in model.parameters() if one.grad is not None)
    return loss, nn.utils.parameters_to_vector(gradients)


def _mean(checkpoints: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    names = checkpoints[0]
    return {name: torch.stack([each[name] for each in checkpoints]).mean(0) for name in names}


def two_rates(rates: Sequence[float] = (0.003, 1.0), steps: int = 30) -> dict[float, float]:
    """Train by gradient descent with two rates; print and return the loss of the last step.

    Only the rate differs: model (post-norm, 2 + 2 layers), momentum 0.9, batches and seed are kept.
    Beside them stands `entropy`, the loss of a model that knows only how frequent each letter is.
    """
    ends = {}
    for each in rates:
        run = [each] * fewer(steps, 3)
        ends[each] = losses_at(run, optimizer="SGD", label=f"rate {each}")[-1]
        print(f"rate {each:<6g} loss after {len(run)} steps {ends[each]:.2f}")
    print(f"entropy of how frequent the letters are: {entropy():.2f}")
    return ends


def optimizers() -> Axes:
    """Draw the loss after 60 steps against the highest rate, for SGD and for Adam; a cross is NaN.

    Recorded with three seeds. Optimiser and rate change; model (post-norm, 2 + 2 layers), warm-up
    of 20 steps and batches are kept. One point live: `first_steps(2, "noam", 0.1, 0, "SGD")`.
    """
    rows = seeds.where(read("training", "learning rates"), n_layers=2, schedule="noam")
    named = {name: seeds.where(rows, optimizer=name) for name in ("SGD", "Adam")}
    ax = _sweeps(named, plots.panels(width=7.0, height=3.0))
    lost = [row["peak"] for row in rows if row["loss"] == DIVERGED]
    ax.plot(lost, [4] * len(lost), "x", color=plots.BLACK, ms=9, mew=2, clip_on=False)
    ax.axhline(entropy(), color=plots.GREY, linestyle="--", lw=1, label="entropy of the letters")
    ax.set(ylabel="loss, last 5 of 60 steps", ylim=(0, 4))
    ax.tick_params(axis="x", rotation=60)
    plots.legend(ax, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def _sweeps(named: Mapping[str, Sequence[seeds.Row]], ax: Axes) -> Axes:
    """Loss against the highest rate, one line for each label."""
    for number, (label, rows) in enumerate(named.items()):
        seeds.sweep(rows, "peak", "loss", ax, label, number=number)
    ax.set(xlabel="highest learning rate")
    return ax


def warm_up(schedule: Callable[..., float], steps: int = 30) -> dict[str, float]:
    """Draw a schedule with three warm-ups, and three trainings; print their mean last losses.

    schedule  `noam_learning_rate`
    returns   mean loss of the last 5 steps at two constant rates and with the schedule, whose peak
              is the higher of the two; model, batches and seed are kept
    """
    count, times = fewer(steps, 3), range(1, 40_001, 100)
    warm = [schedule(step, 64, 20, factor=0.72) for step in range(1, count + 1)]
    rates = {"0.005": [0.005] * count, "0.02": [0.02] * count, "warm-up": warm}
    runs = {name: losses_at(rate, label=name) for name, rate in rates.items()}
    shapes = {f"{n:,} steps": [schedule(t, 512, n) for t in times] for n in (1000, 4000, 16_000)}
    left, right = plots.panels(columns=2, width=4.4, height=3.0, share=False)
    plots.lines(times, shapes, left, "learning rate", "step").set_xticks((0, 16_000, 32_000))
    plots.lines(range(1, count + 1), runs, right, "loss, nats per letter", "step")
    for ax in (left, right):
        plots.legend(ax, fontsize=8)
    ends = {name: statistics.fmean(losses[-5:]) for name, losses in runs.items()}
    for name, end in ends.items():
        print(f"{name:<8} mean loss of the last 5 steps {end:.2f}")
    return ends


def warm_up_by_depth() -> list[Axes]:
    """Draw the loss after 60 steps against the highest rate, constant or warmed up, at two depths.

    Recorded with three seeds. Schedule, rate and depth change; Adam, width, post-norm and batches
    are kept. One point live: `first_steps(6, "constant", 0.003, seed=0)`.
    """
    rows = seeds.where(read("training", "learning rates"), optimizer="Adam")
    axes: list[Axes] = [*plots.panels(columns=2, width=4.2, height=3.0)]
    for ax, n_layers in zip(axes, PEAKS, strict=True):
        labels = {"constant rate": "constant", "20 steps of warm-up": "noam"}
        of = seeds.where(rows, n_layers=n_layers)
        _sweeps({label: seeds.where(of, schedule=name) for label, name in labels.items()}, ax)
        ax.set(title=f"{n_layers} + {n_layers} layers, post-norm")
    axes[0].set(ylabel="loss, last 5 of 60 steps", ylim=(0, 3.2))
    plots.legend(axes[0], fontsize=8)
    return axes


def certainty(
    loss: Callable[..., Tensor], shares: Sequence[float] = (0.0, 0.1, 0.2), V: int = 24
) -> dict[float, float]:
    """Draw the loss against the probability of the right token; print and return the smallest.

    loss     `label_smoothed_loss`
    shares   of smoothing
    V        tokens of the vocabulary: those that are wrong share the rest of the probability
    returns  {share of smoothing: smallest loss}
    """
    right, target = torch.linspace(0.5, 0.9999, 400, dtype=torch.float64), torch.tensor([[PAD + 1]])
    curves, smallest = {}, {}
    for share in shares:
        losses = []
        for p in right:
            logits = ((1 - p) / (V - 1)).expand(1, 1, V).clone()
            logits[..., PAD + 1] = p
            losses.append(loss(logits.log(), target, share).item())
        curves[f"ε = {share}"], smallest[share] = losses, min(losses)
        best = right[losses.index(smallest[share])]
        print(f"ε = {share}: smallest loss {smallest[share]:.3f} at p = {best:.3f}")
    title = "loss against the probability of the right token"
    plots.lines(right, curves, None, title, "probability of the right token", "loss")
    return smallest


def overfitting() -> list[Axes]:
    """Draw losses of trainings on 60 numbers, with smoothed labels and without; print the ends.

    Recorded with three seeds. Only the smoothing changes; pairs, order and steps are kept. One
    point live: `few_sentences(60, 0.1, seed=0)`.
    """
    rows = seeds.where(read("training", "few sentences"), steps=150)
    runs = {f"ε = {share}": seeds.where(rows, smoothing=share) for share in (0.0, 0.1)}
    axes: list[Axes] = [*plots.panels(columns=3, width=3.1, height=2.8, share=False)]
    for ax, name, title in zip(
        axes,
        ("train", "held_out", "sure"),
        ("loss on the 60 numbers", "loss on held-out numbers", "certainty where it is wrong"),
        strict=True,
    ):
        of = {label: [row[name] for row in group] for label, group in runs.items()}
        seeds.curves(of, range(10, 151, 10), ax, title).set(xlabel="step")
    axes[1].set(xlim=(55, 155), ylim=(0.4, 1.2))
    plots.legend(axes[0], fontsize=8)
    for label, group in runs.items():
        ends = {name: [row[name][-1] for row in group] for name in ("held_out", "right")}
        print(f"{label}, at the end: held-out loss {ends['held_out']}, right {ends['right']}")
    return axes


def padding(max_tokens: int = MAX_TOKENS) -> dict[str, tuple[float, float]]:
    """Print and return the share of PAD in batches, drawn at random and sorted by length.

    max_tokens  of a batch, padding included
    """
    corpus = numbers()
    texts = {
        "numbers, letters": [len(pair[2]) + 1 for pair in corpus.train],  # with EOS
        "docstrings, words": [len(row.summary.split()) + 1 for row in docstrings.load()],
    }
    found = {}
    for name, lengths in texts.items():
        order = random.Random(0).sample(lengths, len(lengths))
        drawn, by_length = (padded_share(one, max_tokens) for one in (order, sorted(order)))
        found[name] = drawn, by_length
        print("{:<18} PAD in random batches {:.1%}, by length {:.1%}".format(name, *found[name]))
    return found


def clipping() -> list[Axes]:
    """Draw the held-out loss around one strange batch, clipped and not clipped.

    Recorded with three seeds. `max_norm` and the optimiser change; all batches are kept, the
    strange one too. One point live: `strange_batch("AdamW", 1.0, seed=0)`.
    """
    rows = seeds.where(read("training", "a strange batch"), before=60)
    limits = {"not clipped": 1e9, "clipped to norm 1": 1.0}
    axes: list[Axes] = [*plots.panels(columns=2, width=4.4, height=2.8)]
    for ax, name in zip(axes, ("AdamW", "SGD"), strict=True):
        named = {
            label: [row["held_out"] for row in seeds.where(rows, optimizer=name, max_norm=limit)]
            for label, limit in limits.items()
        }
        seeds.curves(named, [0, 1, 11, 21], ax, name).set(xlabel="steps from the strange batch on")
    axes[0].set_ylabel("held-out loss")
    plots.legend(axes[0], fontsize=8)
    ratios = [row["norm"] for row in rows]
    print(f"the strange batch's gradient is {min(ratios)} to {max(ratios)} times as long as usual")
    return axes


def angles() -> list[Axes]:
    """Draw how far gradients of batches point from that of 4,000 pairs; print the medians.

    Recorded with three seeds. The size of the batch and the steps of training change; model and
    data are kept. One point live: `gradient_noise(seed=0, steps=60)`.
    """
    rows = seeds.where(read("training", "gradient noise"), reference=None)
    times = sorted({row["steps"] for row in rows})
    axes: list[Axes] = [*plots.panels(columns=len(times), width=3.4, height=2.5)]
    for ax, steps in zip(axes, times, strict=True):
        of = seeds.where(rows, steps=steps)
        named = {str(size): [x for row in of for x in row[f"angles of {size}"]] for size in SIZES}
        medians = "  ".join(f"{label}: {statistics.median(x):.0f}°" for label, x in named.items())
        print(f"after {steps:3d} steps, loss {of[0]['loss']:.3f} with seed 0, pairs {medians}")
        seeds.dots(named, ax, f"after {steps} steps", "degrees")
        ax.set(xlim=(-3, 120), xticks=[0, 30, 60, 90])
    axes[0].set_ylabel("pairs in a batch")
    return axes


def one_step_or_three_parts(TrainStep: Callable[..., Any]) -> float:  # noqa: N803
    """Make one step from a batch, and the same step from three parts of it; print both.

    returns  the largest difference between the weights after the two steps
    """
    corpus = numbers()
    pairs = [pair for digits in (6, 2, 1) for pair in corpus.test_by_digits(9)[digits]]
    batches = [corpus.batch(some) for some in (pairs, pairs[:4], pairs[4:9], pairs[9:])]
    whole, *parts = [(batch.source, batch.target) for batch in batches]
    model, twin, third = (fresh(corpus) for _ in range(3))
    with one_thread():
        one, many = TrainStep(model)([whole]), TrainStep(twin)(parts)
        means = [TrainStep(third).loss(*part).item() for part in parts]
    both = zip(model.parameters(), twin.parameters(), strict=True)
    apart = max((left - right).abs().max().item() for left, right in both)
    print("real tokens in the parts:", *((target != PAD).sum().item() for _, target in parts))
    print(f"loss of one batch {one:.6f}, of three {many:.6f}; mean of means {sum(means) / 3:.6f}")
    print(f"largest difference between the weights after the step: {apart:.0e}")
    return apart


def learning_curve(losses: Sequence[float], outside: Mapping[int, float]) -> Axes:
    """Draw the smoothed loss of every step and the held-out loss of some; print the last ones.

    outside  {number of a step: held-out loss, not smoothed}

    Dashed: both losses of a model that says just what targets smoothed with 0.1 ask for.
    """
    p, rest = 0.9 + 0.1 / 24, 0.1 / 24
    floor = -p * math.log(p) - 23 * rest * math.log(rest)
    x = range(1, len(losses) + 1)
    ax = plots.lines(x, {"training, smoothed": losses}, xlabel="step", ylabel="loss")
    ax.plot(list(outside), list(outside.values()), "o-", label="held out, not smoothed")
    for level, colour, label in (
        (floor, plots.BLUE, "smallest, smoothed"),
        (-math.log(p), plots.VERMILION, "the same, unsmoothed"),
    ):
        ax.axhline(level, color=colour, linestyle="--", linewidth=1.2, label=label)
    plots.legend(ax, fontsize=9)
    print(f"smallest possible, smoothed: {floor:.3f}   last loss in training: {losses[-1]:.3f}")
    print(f"held-out perplexity: {math.exp(outside[max(outside)]):.3f}")
    return ax


PARTS: dict[str, dict[str, Any]] = {  # what is changed, of WHOLE
    "all parts": {},
    "no smoothing": {"smoothing": 0.0},
    "no clipping": {"max_norm": 1e9},
    "random batches": {"order": "random batches"},
}
EPOCH = {"buckets, shuffled": "shuffled buckets", "buckets, shortest first": "buckets"}


def parts_changed() -> list[Axes]:
    """Draw held-out loss and accuracy of trainings with one part changed; each dot is a seed.

    Recorded with three seeds, 120 steps; all but the part named is kept. Printed: two orders after
    a whole epoch. One point live: `whole_training(seed=0, order="random batches")`.
    """
    rows = read("training", "one part changed")
    axes: list[Axes] = [*plots.panels(columns=3, width=3.4, height=2.8, share=False)]
    for ax, name, title in zip(
        axes,
        ("loss_of_1", "right_of_1", "right_of_3"),
        ("held-out loss", "letters right", "letters right, mean of 3 checkpoints"),
        strict=True,
    ):
        named = {
            label: [row[name] for row in seeds.where(rows, **WHOLE | change)]
            for label, change in PARTS.items()
        }
        seeds.dots(named, ax, title)
    for ax in axes[1:]:
        ax.set(yticklabels=[], xlim=(0.94, 1.0))
    for label, order in EPOCH.items():
        epoch = seeds.where(read("training", "a whole epoch"), order=order)
        print(f"{label}, after a whole epoch: letters right", *(row["right_of_1"] for row in epoch))
    return axes


SEEDS = 0, 1, 2
WHOLE: dict[str, Any] = {
    "order": "shuffled buckets",
    "smoothing": 0.1,
    "max_norm": 1.0,
    "schedule": "noam",
    "steps": 120,
}
SHORT = {"seed": 0, **WHOLE, "steps": 40}  # for the test
PEAKS = {2: (0.002, 0.005, 0.01, 0.02), 6: (0.001, 0.003, 0.008)}
RATES = [
    {"n_layers": n_layers, "schedule": schedule, "peak": peak, "optimizer": "Adam"}
    for n_layers, peaks in PEAKS.items()
    for peak in peaks
    for schedule in ("constant", "noam")
] + [
    {"n_layers": 2, "schedule": "noam", "peak": peak, "optimizer": "SGD"}
    for peak in (0.03, 0.1, 0.3, 1.0)
]
FEW = {"n_pairs": 60, "steps": 150}
SHORT_FEW = FEW | {"smoothing": 0.1, "seed": 0, "steps": 40}
ODD = [
    {"optimizer": name, "max_norm": norm, "before": 60}
    for name in ("AdamW", "SGD")
    for norm in (1.0, 1e9)
]
SHORT_ODD = ODD[0] | {"seed": 0, "before": 20}
MORE = {"n_pairs": 300, "smoothing": 0.0, "steps": 150}
SHORT_MORE = MORE | {"seed": 0, "steps": 40}
SOON = {"n_layers": 6, "schedule": "noam", "peak": 0.008, "warmup": 5}
SHORT_SOON = SOON | {"seed": 0, "steps": 15}
SHORT_NOISE = {"seed": 0, "steps": 3, "reference": 200}

EXPERIMENTS = {
    "learning rates": Experiment(
        points=[{**rate, "seed": seed} for seed in SEEDS for rate in RATES],
        run=first_steps,
        again={**RATES[0], "seed": 0},
    ),
    "few sentences": Experiment(
        points=[FEW | {"smoothing": eps, "seed": seed} for seed in SEEDS for eps in (0.0, 0.1)]
        + [SHORT_FEW],
        run=few_sentences,
        again=SHORT_FEW,
    ),
    "more sentences": Experiment(
        points=[*seeded(SEEDS, **MORE), SHORT_MORE],
        run=few_sentences,
        again=SHORT_MORE,
    ),
    "a shorter warm-up": Experiment(
        points=[*seeded(SEEDS, **SOON), SHORT_SOON],
        run=first_steps,
        again=SHORT_SOON,
    ),
    "a strange batch": Experiment(
        points=[one | {"seed": seed} for seed in SEEDS for one in ODD] + [SHORT_ODD],
        run=strange_batch,
        again=SHORT_ODD,
    ),
    "gradient noise": Experiment(
        points=[{"seed": seed, "steps": steps} for steps in (0, 60, 300) for seed in SEEDS]
        + [SHORT_NOISE],
        run=gradient_noise,
        again=SHORT_NOISE,
    ),
    "one part changed": Experiment(
        points=[{"seed": seed, **WHOLE, **change} for seed in SEEDS for change in PARTS.values()]
        + [SHORT],
        run=whole_training,
        again=SHORT,
    ),
    "a whole epoch": Experiment(
        points=[
            {"seed": seed, **WHOLE, "order": order, "steps": 343}
            for seed in SEEDS
            for order in EPOCH.values()
        ],
        run=whole_training,
        again=None,
    ),
}
