"""Lesson 12: what 16 bits do to a training, what checkpointing keeps, and shares of a batch.

    torchrun --nproc-per-node 2 -m attention.experiments.training_on_gpu

lets two processes train on one batch: see `main`. Timings and counts of the machine at hand come
after the trainings, from `sentences_at_a_time` on.
"""

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, distributed, nn
from torch.utils.checkpoint import checkpoint

from attention.experiments import numbers_training as training
from attention.experiments.recorded import Experiment, read
from attention.provided.data.numbers import Batch, numbers
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots, seeds
from attention.provided.measuring import timing
from attention.provided.measuring.saved_for_backward import kept_bytes
from attention.provided.models import translators
from attention.provided.progress import Bar
from attention.provided.training_steps import fewer, one_thread
from attention.train import shipped
from attention.training import TrainStep, epoch_order, noam_learning_rate
from attention.transformer import Transformer
from attention.transformer_blocks import EncoderLayer

WAYS = "float32", "bfloat16 products", "bfloat16 weights", "float16 gradients"
BASE: dict[str, Any] = {"d_model": 512, "n_heads": 8, "d_ff": 2048}  # a layer of the paper's


def train_in(
    way: str, seed: int, log2_scale: int = 0, dynamic: bool = False, steps: int = 60
) -> dict[str, Any]:
    """Train in one of the WAYS, and measure the held-out loss at the end.

    way      "bfloat16 products" is autocast: weights and sums keep 32 bits; "bfloat16 weights"
             keeps weights and AdamW's moments in 16; of "float16 gradients" those of
             2^log2_scale · loss are rounded to float16, and a step with an infinite one is skipped
    dynamic  halve the scale after each step that is skipped
    returns  loss; lost: share of the gradients that became 0; skipped: steps that were
    """
    corpus, scale = numbers(), 2.0**log2_scale
    lost: list[float] = []
    with one_thread(), Bar(steps, way) as bar:
        model = training.fresh(corpus, seed)
        model.to(torch.bfloat16 if way == "bfloat16 weights" else torch.float32)
        adam = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9, 0.0)
        for step, batch in enumerate(corpus.batches(32, steps, seed), start=1):
            adam.param_groups[0]["lr"] = training.rate(step, "noam", 0.005, 40)
            adam.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=way == "bfloat16 products"):
                loss = training.loss_of(model, batch)
            loss.backward()
            bar.update(step, loss.item())
            share = round_gradients(model, scale) if way == "float16 gradients" else 0.0
            if share is None:
                scale = scale / 2 if dynamic else scale
                continue
            lost.append(share)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
        end = training.evaluate(model, [corpus.batch(corpus.test[::7])])["loss"]
    mean = round(sum(lost) / max(1, len(lost)), 4)
    return {"loss": round(end, 4), "lost": mean, "skipped": steps - len(lost)}


def nonzero_gradients(model: nn.Module, batch: Batch) -> Tensor:
    """All gradients of a batch's mean loss, in one vector; those that are exactly 0 left out."""
    together = torch.cat([one.flatten() for one in training.gradients_of(model, batch)])
    return together[together != 0]


def round_gradients(model: nn.Module, scale: float) -> float | None:
    """Round a model's gradients to what float16 makes of scale · gradient, divided by the scale.

    returns  the share of those that were not 0 and are now; None if one is not finite
    """
    before = after = 0
    for parameter in model.parameters():
        if parameter.grad is not None:
            rounded = (parameter.grad * scale).half().float() / scale
            if not rounded.isfinite().all():
                return None
            before += int((parameter.grad != 0).sum())
            after += int((rounded != 0).sum())
            parameter.grad.copy_(rounded)
    return 1 - after / before


def kept(fused: bool, seed: int, T: int = 256) -> dict[str, int]:
    """Bytes that a layer of the paper's size keeps for a sentence, plain and checkpointed."""
    torch.manual_seed(seed)
    layer = EncoderLayer(**BASE, dropout=0.0, fused=fused)
    x = torch.randn(1, T, 512, requires_grad=True)
    ways: dict[str, Callable[[], Any]] = {
        "plain": partial(layer, x),
        "checkpointed": lambda: checkpoint(layer, x, use_reentrant=False),
    }
    return {name: kept_bytes(action, layer.parameters()) for name, action in ways.items()}


def apart(one: list[Tensor], other: list[Tensor]) -> float:
    """Return the largest difference between two lists of tensors, over the largest number."""
    largest = max(x.abs().max().item() for x in other)
    return max((x - y).abs().max().item() for x, y in zip(one, other, strict=True)) / largest


def main() -> None:
    """Join the gradients of all processes in two ways, and compare both with one process.

    Each process trains on a share of one batch. The first one then takes the whole batch alone, and
    prints how far the gradients are apart. `torchrun` starts them.
    """
    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    corpus = numbers()
    model = training.fresh(corpus)
    pairs = sorted(corpus.train[:10] + corpus.train[-10:], key=lambda pair: len(pair[2]))
    per_process = -(-len(pairs) // world)
    share = corpus.batch(pairs[rank * per_process :][:per_process])
    tokens = (share.target != PAD).sum()
    total = tokens.clone()
    distributed.all_reduce(total)  # the sum over all processes, in place
    own = training.gradients_of(model, share)
    weighted = [gradient * tokens / total for gradient in own]
    plain = [gradient / world for gradient in own]
    for gradient in weighted + plain:
        distributed.all_reduce(gradient)
    # One write, so that the two processes do not write into each other's line.
    print(f"process {rank} of {world}: {tokens} of {total} tokens\n", end="", flush=True)
    distributed.barrier()
    if rank == 0:
        whole = training.gradients_of(model, corpus.batch(pairs))
        print(f"each weighted with its tokens: {apart(weighted, whole):.0e} from one process")
        print(f"plain mean of the processes:   {apart(plain, whole):.0e} from one process")
    distributed.destroy_process_group()


def sentences_at_a_time(sizes: Sequence[int] = (1, 8, 64)) -> dict[int, float]:
    """Print and return from how many tokens per second a step learns, by sentences at a time.

    Only their number changes: the model is the numbers translator, and the step that of lesson 11.
    """
    corpus, device = numbers(), timing.device_at_hand()
    step, found = TrainStep(training.fresh(corpus).to(device)), {}
    for size in sizes:
        batch = corpus.batch(corpus.train[:size]).to(device)
        spent = seconds(partial(step, [(batch.source, batch.target)]))
        found[size] = (batch.target != PAD).sum().item() / spent
        print(f"{size:2d} at a time: {found[size]:8,.0f} tokens/s")
    return found


def seconds(action: Callable[[], object], least: int = 6) -> float:
    """Return the shortest of several runs of ``action()``, on one core or on the GPU."""
    with one_thread():
        return timing.shortest(action, timing.device_at_hand(), least=least) / 1000


def peaks() -> dict[torch.dtype, float]:
    """Measure one large matrix product in float32 and in bfloat16; print and return FLOP/s.

    The control has the same numbers in bfloat16, but multiplies in float32 and converts back.
    """
    device, found = timing.device_at_hand(), {}
    n = 1024 if device == "cpu" else 8192
    for dtype in (torch.float32, torch.bfloat16):
        square = torch.randn(n, n, device=device).to(dtype)
        found[dtype] = 2 * n**3 / seconds(partial(torch.matmul, square, square))
        print(f"two {n} × {n} matrices in {dtype}: {found[dtype] / 1e9:,.0f} GFLOP/s")
    converted = seconds(lambda: (square.float() @ square.float()).bfloat16())
    print(f"the last, converted to float32 and back: {2 * n**3 / converted / 1e9:,.0f} GFLOP/s")
    return found


def roofline(peak: float) -> int:
    """Draw speed against arithmetic intensity: one addition of vectors, products of n × n matrices.

    peak     FLOP/s in float32: the flat roof. The slope is the bandwidth that the addition finds.
    returns  the smallest n that was measured whose product reaches half of the peak
    """
    device = timing.device_at_hand()
    vectors = torch.randn(2, 2**24 if device == "cpu" else 2**27, device=device)
    out = torch.empty_like(vectors[0])
    bandwidth = 12 * out.numel() / seconds(lambda: torch.add(*vectors, out=out))
    found = {n: _speed_of_product(n, device) for n in (16, 32, 64, 128, 256, 512)}
    ax = plots.panels(width=5.6, height=3.2)
    roof = sorted([2.0**-5, peak / bandwidth, 2.0**10])  # both ends, and where it bends
    ax.plot(roof, [min(peak, bandwidth * x) for x in roof], color=plots.GREY, label="roof")
    x, y = [1 / 12, *(n / 6 for n in found)], [bandwidth / 12, *found.values()]
    ax.plot(x, y, "o", color=plots.BLUE, label="measured")
    for at, speed, name in zip(x, y, ("addition", *found), strict=True):
        ax.annotate(name, (at, speed), (6, -10), textcoords="offset points", fontsize=8)
    ax.set(xscale="log", yscale="log", xlabel="FLOPs per byte", ylabel="FLOP/s")
    plots.legend(ax, fontsize=8)
    bend = peak / bandwidth
    print(f"memory {bandwidth / 1e9:.0f} GB/s; the roof is flat from {bend:.1f} FLOPs per byte")
    return min((n for n, speed in found.items() if speed > peak / 2), default=1024)


def _speed_of_product(n: int, device: str) -> float:
    """FLOP/s of products of n × n matrices, several at a time where they are small."""
    square, times = torch.randn(n, n, device=device), max(2, 512 // n)
    return times * 2 * n**3 / seconds(lambda: [square @ square for _ in range(times)])


def memory_by_length(count: Callable[..., dict[str, int]]) -> Axes:
    """Draw the bytes of six layers of the paper's size against the length of 16 sentences.

    count  `training_memory`; dots are what PyTorch keeps for one layer and one sentence, times 96
    """
    lengths = (32, 64, 128, 256, 512, 1024, 2048)
    plain, fused = (
        [count(16, T, **BASE, n_layers=6, fused=kernel) for T in lengths]
        for kernel in (False, True)
    )
    parts = dict.fromkeys(("weights", "moments", "activations"), plain)
    shown = {part: [one[part] / 1e9 for one in of] for part, of in parts.items()}
    shown["activations, fused"] = [one["activations"] / 1e9 for one in fused]
    title = "six layers of the paper's size, 16 sentences"
    ax = plots.lines(lengths, shown, None, title, "T", "GB")
    for kernel, line in zip((False, True), ax.lines[2:4], strict=True):
        measured = [96e-9 * kept(kernel, 0, T)["plain"] for T in lengths[:4]]
        ax.plot(lengths[:4], measured, "o", color=line.get_color(), markersize=5)
    return _logarithmic(ax, lengths)


def _logarithmic(ax: Axes, xs: Sequence[int]) -> Axes:
    """Two logarithmic axes, marked at xs and at 1, 2 and 5 times the powers of ten."""
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(xs, [str(x) for x in xs])
    marks = [first * 10.0**power for power in range(-6, 9) for first in (1, 2, 5)]
    low, high = ax.get_ylim()
    low, high = max(m for m in marks if m <= low), min(m for m in marks if m >= high)
    marks = [mark for mark in marks if low <= mark <= high]
    ax.set_yticks(marks, [f"{mark:g}" for mark in marks])
    ax.set_ylim(low, high)
    ax.minorticks_off()
    return ax


def gradient_sizes() -> Axes:
    """Draw how large the gradients of an untrained and of a trained numbers translator are.

    Printed: the share that becomes 0 in float16, with a loss as it is and with 65 536 times it.
    """
    corpus = numbers()
    batch, ax = corpus.batch(corpus.train[::200]), plots.panels(width=6.0, height=2.8)
    models = {"untrained": training.fresh(corpus), "trained": shipped.trained("transformer")[0]}
    for (label, model), width in zip(models.items(), (1.0, 2.2), strict=True):
        gradients = nonzero_gradients(model, batch)
        style: Any = {"histtype": "step", "linewidth": width, "density": True, "label": label}
        ax.hist(gradients.abs().log2(), bins=range(-50, 1), **style)
        for scale in (1.0, 2.0**16):
            lost = ((gradients * scale).half() == 0).float().mean()
            print(f"{label:<9} scale {scale:7,.0f}: {lost:6.2%} of them become 0 in float16")
    ax.axvline(-24, color=plots.GREY, linestyle="--", label="smallest number in float16")
    ax.set(xlabel="log₂ of the gradient's size", ylabel="share", yticks=[])
    plots.legend(ax, fontsize=8, loc="upper left")
    return ax


def gradients_in_float16(scale: float) -> list[Tensor]:
    """Return the gradients of scale · loss of an untrained numbers translator, in float16."""
    corpus = numbers()
    gradients = nonzero_gradients(training.fresh(corpus), corpus.batch(corpus.train[::200]))
    return [(scale * gradients).half()]


def sixteen_bits() -> list[Axes]:
    """Draw the held-out loss after 60 steps: products in bfloat16, gradients in float16, by scale.

    Recorded with three seeds. Only what has 16 bits, or the scale, changes; data, steps and rates
    are kept. One point live: `train_in("float16 gradients", seed=0, log2_scale=-16)`.
    """
    products = read("training_on_gpu", "numbers of 16 bits")
    ways = {way: [row["loss"] for row in seeds.where(products, way=way)] for way in WAYS[:2]}
    scales: dict[str, list[seeds.Row]] = {}
    for row in read("training_on_gpu", "loss scale"):
        power = str(row["log2_scale"]).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        label = f"2{power}" + ", adapted" * row["dynamic"]
        scales.setdefault(label, []).append(row)
    axes: list[Axes] = [*plots.panels(columns=2, width=4.6, height=2.9, share=False)]
    seeds.dots(ways, axes[0], "products in 16 bits", "held-out loss")
    losses = {label: [row["loss"] for row in rows] for label, rows in scales.items()}
    seeds.dots(losses, axes[1], "gradients in float16, by scale", "held-out loss")
    for label, rows in scales.items():
        lost, skipped = (max(row[what] for row in rows) for what in ("lost", "skipped"))
        print(f"scale {label:<14} up to {lost:5.1%} of the gradients lost, {skipped} steps skipped")
    return axes


LADDER: dict[str, dict[str, Any]] = {  # what each rung changes
    "float32": {},
    "TF32": {"tf32": True},
    "bfloat16": {"dtype": torch.bfloat16},
    "fused attention": {"fused": True},
    "fused AdamW": {"adam": True},
    "torch.compile": {"compiled": True},
}
V_LADDER, T_LADDER = 2000, 256  # tokens of the vocabulary, and of a sentence


def speed_ladder(peak: Mapping[torch.dtype, float], flops: Callable[..., int]) -> dict[str, float]:
    """Time a training step, one thing changed after the other; print and draw tokens per second.

    peak   FLOP/s of one large product, by type, as from `peaks`
    flops  `training_flops`

    A rung that is faster than all before it is kept, any other taken off again.
    """
    device = timing.device_at_hand()
    sizes = dict(zip(("d_model", "n_heads", "d_ff", "n_layers"), (256, 4, 1024, 2), strict=True))
    if device != "cpu":
        sizes = {"d_model": 512, "n_heads": 8, "d_ff": 2048, "n_layers": 6}
    ids = torch.randint(3, V_LADDER, (2 if device == "cpu" else 32, T_LADDER), device=device)
    widths = {name: size for name, size in sizes.items() if name != "n_heads"}
    each = flops(T_LADDER, T_LADDER, **widths, vocab_size=V_LADDER)
    changed: dict[str, Any] = {}
    best, speeds = math.inf, {}
    for name, change in LADDER.items():
        try:
            refuse_rung(name, device)
            step = _step_of(sizes, device, **changed | change)
            spent = seconds(partial(step, [(ids, ids)]), fewer(6, 1))
        except RuntimeError as error:
            print(f"{name:<16} left out: {error}"[:88])
            continue
        verdict = "kept" if spent < best else "taken off"
        changed, best = (changed | change, spent) if spent < best else (changed, best)
        speeds[name] = ids.numel() / spent
        mfu = len(ids) * each / spent / max(peak.values())
        print(f"{name:<16} {speeds[name]:9,.0f} tokens/s   MFU {mfu:4.0%}   {verdict}")
    torch.set_float32_matmul_precision("highest")
    _draw_ladder(speeds, {kind: T_LADDER * one / each for kind, one in peak.items()})
    return speeds


def refuse_rung(name: str, device: str) -> None:
    """Raise RuntimeError where a rung of the ladder cannot be tried on this machine."""
    if name == "TF32" and device != "cuda":
        raise RuntimeError("only NVIDIA's GPUs have it")
    if name == "torch.compile" and device != "cuda":
        raise RuntimeError("used on NVIDIA's GPUs only")
    if name == "torch.compile" and find_spec("triton") is None:
        raise RuntimeError("it needs the package triton")


def _step_of(
    sizes: Mapping[str, int],
    device: str,
    tf32: bool = False,
    dtype: torch.dtype | None = None,
    fused: bool = False,
    adam: bool = False,
    compiled: bool = False,
) -> Callable[..., Tensor]:
    """A training step of a fresh model with these settings."""
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    model = Transformer(V_LADDER, V_LADDER, **sizes, dropout=0.0, fused=fused).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=adam)
    return TrainStep(torch.compile(model) if compiled else model, optimizer, dtype=dtype)


def _draw_ladder(speeds: Mapping[str, float], limits: Mapping[torch.dtype, float]) -> None:
    """Bars of tokens per second, and lines at what the peaks would allow."""
    ax = plots.panels(width=6.5, height=0.9 + 0.36 * len(speeds))
    bars = ax.barh(list(speeds), list(speeds.values()), color=plots.BLUE, height=0.66)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    ax.bar_label(bars, [f"{s:,.0f}" for s in speeds.values()], padding=5, fontsize=8, bbox=box)
    for (kind, limit), style in zip(limits.items(), ("--", ":"), strict=True):
        label = f"large product, {str(kind).removeprefix('torch.')}"
        ax.axvline(limit, color=plots.VERMILION, linestyle=style, linewidth=1.2, label=label)
    ax.invert_yaxis()
    ax.set(xlabel="target tokens/s", title="training on this machine")
    ax.locator_params(axis="x", nbins=5)  # else long numbers run into one another
    plots.legend(ax, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))


def recurrent_or_attention() -> Axes:
    """Draw the time for each token of a GRU and of an encoder layer against the length.

    Forward and backward, 8 sentences, 128 numbers wide; only the length changes along a line.
    """
    lengths, device = (16, 64, 256, 1024)[: fewer(4, 3)], timing.device_at_hand()
    layers = {
        "GRU": nn.GRU(128, 128, batch_first=True),
        "encoder layer": EncoderLayer(128, 4, 512, 0.0, True, False),
        "encoder layer, fused": EncoderLayer(128, 4, 512, 0.0, True, True),
    }
    timed: dict[str, list[float]] = {}
    for name, layer in layers.items():
        layer.to(device)
        for T in lengths:
            x = torch.randn(8, T, 128, device=device)
            first = partial(_first, layer, x)
            spent = seconds(timing.both_ways(first, [*layer.parameters()]), 2)
            timed.setdefault(name, []).append(1e6 * spent / (8 * T))
    title = "forward and backward pass"
    return _logarithmic(plots.lines(lengths, timed, None, title, "T", "µs per token"), lengths)


def _first(layer: nn.Module, x: Tensor) -> Tensor:
    """The output of a layer: a GRU returns its last state besides."""
    y = layer(x)
    return y[0] if isinstance(y, tuple) else y


def interrupted(
    save: Callable[..., None], resume: Callable[..., int], stop: int = 6, steps: int = 10
) -> dict[str, list[float]]:
    """Train without a stop, and stopped and resumed; print and return the losses after the stop.

    save    (path, step, done): writes the state of a TrainStep into a file
    resume  (path, step, parts): reads these parts of it into a fresh one; the number of the next
            step

    Only what is restored changes: model, optimiser, batches, order and schedule are lesson 11's.
    """
    with one_thread(), tempfile.TemporaryDirectory() as folder:
        path, stopped = Path(folder) / "training.pt", _fresh_step()
        found = {"never stopped": [*_losses(_fresh_step(), range(1, steps + 1))][stop:]}
        list(_losses(stopped, range(1, stop + 1)))
        save(path, stopped, stop)
        for label, parts in (
            ("all of the state", ("model", "optimizer")),
            ("weights only", ("model",)),
        ):
            again = _fresh_step()
            found[label] = [*_losses(again, range(resume(path, again, parts), steps + 1))]
    for label, losses in found.items():
        print(f"{label:<16}", *losses)
    return found


def _fresh_step() -> Any:
    model = training.fresh(numbers())
    adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)
    return TrainStep(model, adam)


def _losses(step: Any, steps: Iterable[int]) -> Iterator[float]:
    """Take the steps with these numbers; their losses."""
    corpus = numbers()
    buckets = training.buckets_of(corpus.train)
    for number in steps:
        epoch, position = divmod(number - 1, len(buckets))
        index = epoch_order(len(buckets), translators.SEED, epoch)[position]
        step.optimizer.param_groups[0]["lr"] = noam_learning_rate(number, 64, 5, factor=0.45)
        batch = corpus.batch(buckets[index])
        yield step([(batch.source, batch.target)]).item()


def two_processes() -> None:
    """Start `main` in two processes by torchrun, and print what they say, in order.

    While nbgrader runs the notebook they are left out.
    """
    if os.environ.get("NBGRADER_EXECUTION"):
        print("left out while a notebook is graded")
        return
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "-m", "attention.experiments.training_on_gpu"]
    settings = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120)
    print("\n".join(sorted(done.stdout.split("\n"))).strip() or done.stderr[-500:])


SEEDS = 0, 1, 2
FLOAT16 = {"way": "float16 gradients", "dynamic": False}
SCALES = [{**FLOAT16, "log2_scale": scale} for scale in (-16, 0, 8, 24)]
SCALES.append({**FLOAT16, "log2_scale": 24, "dynamic": True})


EXPERIMENTS = {
    "numbers of 16 bits": Experiment(
        points=[
            {"way": way, "seed": seed} for seed in SEEDS for way in ("float32", "bfloat16 products")
        ],
        run=train_in,
        again={"way": "float32", "seed": 0},
    ),
    "loss scale": Experiment(
        points=[{**scale, "seed": seed} for seed in SEEDS for scale in SCALES],
        run=train_in,
        again={**SCALES[1], "seed": 0},
    ),
    "checkpointing": Experiment(
        points=[{"fused": fused, "seed": seed} for seed in SEEDS for fused in (False, True)],
        run=kept,
        again={"fused": False, "seed": 0},
    ),
}


if __name__ == "__main__":
    main()
