# %% [markdown]
# # 12 · What does the hardware want?
#
# Lesson 11 built the training step. Now it meets a machine. How much work is a step, how much
# memory does it take, how much could the machine do, and what lies between the two? And what if the
# power fails in the middle?
#
# **After this lesson** you can
# - count the **operations** and the **bytes** of a training run, and say what share of a machine it
#   uses,
# - read a **roofline**, and say whether an operation waits for numbers or for products,
# - multiply in **16 bits** where that is safe, and scale a loss whose gradients would vanish,
# - find and mend what fails on a **GPU** without having one,
# - **stop** a training anywhere and **resume** it to the last digit,
# - share a batch among **several processes** without changing the step.
#
# **Time** 105 minutes · **Points** 9 · **GPU** used if there is one, not needed · **You need**
# lessons 02, 10 and 11

# %%
import math
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from attention.experiments import recorded, training
from attention.experiments import training_on_gpu as experiments
from attention.provided import demand
from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots, seeds
from attention.provided.measuring.saved_for_backward import kept_bytes
from attention.provided.models import translators
from attention.provided.predictions import compare
from attention.provided.rehearsal import rehearse
from attention.provided.training_steps import one_thread
from attention.train import shipped
from attention.training import TrainStep, batch_by_tokens, epoch_order, noam_learning_rate
from attention.transformer import Transformer
from attention.transformer_blocks import EncoderLayer, layer_parameters
from autograder import check

SHORT = bool(os.environ.get("NBGRADER_EXECUTION"))  # while nbgrader runs this, few steps will do
device = "cuda" if torch.cuda.is_available() else "cpu"
device = "mps" if torch.backends.mps.is_available() else device

# %% [markdown]
# All timings in this notebook are those of the machine on which it ran last: run it, and they are
# yours. Short timings waver, more so if the machine does something else. Trust large differences
# only.
#
# ## What fails without this idea
# The plainest way to train: take one sentence, make a step, and take the next sentence. How many
# tokens does it learn from in a second, and how many if 8 or 64 sentences are taken at once?


# %% demo=true
def seconds(action, repeats=6):
    """Return the shortest of several runs after a first one; a GPU must have finished, too."""
    spent = []
    # The time that one core works: waiting, because something else runs there, does not count.
    clock = time.process_time if device == "cpu" else time.perf_counter
    with one_thread():
        for _ in range(1 + repeats):
            begin = clock()
            action()
            if device != "cpu":
                getattr(torch, device).synchronize()
            spent.append(clock() - begin)
    return min(spent[1:])


corpus = numbers()
sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
torch.manual_seed(translators.SEED)
step = TrainStep(Transformer(*sizes, **translators.SMALL).to(device))
for size in (1, 8, 64):
    batch = corpus.batch(corpus.train[:size])
    both, tokens = (batch.source.to(device), batch.target.to(device)), (batch.target != PAD).sum()
    speed = tokens / seconds(lambda both=both: step([both]))
    print(f"{size:2d} at a time: {speed:8,.0f} tokens/s")

# %% [markdown]
# The model is the same and each token needs the same products, but one sentence at a time uses
# less of the machine. The machine was busy all the time in all three runs. Being busy is not the
# same as being well used: for that we must count operations.
#
# ## The idea
# A processor multiplies faster than its memory can deliver numbers. It is fastest at large
# products, and, if it has units for them, at those of short numbers. So:
#
# | question | what we do |
# |---|---|
# | how much work is it? | count operations, divide by what the machine could do |
# | does it wait for memory? | count bytes, and compare operations for each byte |
# | does it fit? | count weights, gradients, moments and activations |
# | may numbers be shorter? | products in bfloat16, sums and weights in float32 |
# | may several share the work? | several processes, each with its share of the batch |
# | what if it breaks off? | all of the state in a file |
#
# ## How much work is it?
# A product of `(n, m)` and `(m, k)` takes n·m·k multiplications and as many additions: 2·n·m·k
# **floating-point operations**, FLOPs. Backward there are two such products for each one forward:
# one for the gradient of the inputs, one for that of the weights.
#
# By hand, for (2, 3) and (3, 4):

# %%
n, m, k, multiplications, additions = 2, 3, 4, 0, 0
for _row in range(n):
    for _column in range(k):
        for _inner in range(m):
            multiplications += 1
            additions += 1
print(f"{multiplications} multiplications and {additions} additions; 2·n·m·k = {2 * n * m * k}")

# %% [markdown]
# ### Exercise 12.1 · `training_flops`
# ●●○ medium · 18 minutes · 2 points
#
# Count the matrix products of one sentence pair. In each layer pair there are three attentions,
# each with four projections and two products of its own (scores, and weights times values), and two
# feed-forward networks. The generator comes last. All scores count, also those that a mask hides:
# they are computed too.
#
# <details><summary>Hint 1 · the idea</summary>
#
# For each product ask: how many rows? Positions of the source or of the target. The rest is a size
# of the model.
# </details>
# <details><summary>Hint 2 · the cross-attention</summary>
#
# Queries and outputs belong to target positions, keys and values to source positions. The scores
# are `(T_q, T_k)`.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Set all sizes to 1. How many multiplications does the forward pass make then, part by part? You
# should find 23. Which of them gets a factor T_k, which T_q, which both?
# </details>

# %% exercise="training_flops"
from attention.training_on_gpu import training_flops

# %% check="training_flops" points=2
check.training_flops(training_flops)

# %% [markdown]
# Dividing the FLOPs by the seconds that they took, and by what the machine could do at best, gives
# the **model FLOPs utilisation**, MFU. The paper tells enough to compute that of the original: the
# base model made 100 000 steps in 12 hours on 8 GPUs, each batch had about 25 000 tokens on each
# side, and the authors put each GPU at 9.5 TFLOP/s.

# %% demo=true
pair = training_flops(25, 25, 512, 2048, 6, 37_000)  # sentences of about 25 tokens
needed, could = 100_000 * 1000 * pair, 12 * 3600 * 8 * 9.5e12
print(f"needed {needed:.1e} FLOPs, the GPUs could do {could:.1e}: MFU {needed / could:.0%}")


peaks, n = {}, 1024 if device == "cpu" else 8192
for dtype in (torch.float32, torch.bfloat16):
    square = torch.randn(n, n, device=device).to(dtype)
    peaks[dtype] = 2 * n**3 / seconds(lambda square=square: square @ square)
    print(f"a product of two {n} × {n} matrices in {dtype}: {peaks[dtype] / 1e9:,.0f} GFLOP/s")

# %% [markdown]
# (What the GPUs could do is how the paper's table 2 gets at its “training cost”.)
#
# ## Does it wait for memory?
# Before a processor can multiply two numbers, they have to come from memory. The **arithmetic
# intensity** of an operation is how many FLOPs it does for each byte that it reads or writes. Two
# examples in float32, four bytes a number:
#
# | operation | FLOPs | bytes | FLOPs a byte |
# |---|---|---|---|
# | add two vectors of n numbers | n | 12 n | 1/12 |
# | multiply two n × n matrices | 2 n³ | 12 n² | n/6 |
#
# An operation can be no faster than the processor multiplies, and no faster than memory delivers:
# speed ≤ min(peak, bandwidth · intensity). Drawn against the intensity, on logarithmic axes, this
# is a slope and then a flat line: the **roofline** (Williams et al., 2009).
#
# ### Predict first
# The flat roof is the speed of the product of two 1024 × 1024 matrices (8192 on a GPU). From which
# n on does a product of two n × n matrices reach half of it: 16, 32, 64, 128, 256 or 512?

# %%
prediction = None  # one of these numbers; None skips this

# %% demo=true
vectors = torch.randn(2, 2**24 if device == "cpu" else 2**27, device=device)
out = torch.empty_like(vectors[0])
bandwidth = 12 * out.numel() / seconds(lambda: torch.add(*vectors, out=out))
peak = peaks[torch.float32]
found = {1 / 12: bandwidth / 12}
for n in (16, 32, 64, 128, 256, 512):
    square, times = torch.randn(n, n, device=device), max(2, 512 // n)
    spent = seconds(lambda square=square, times=times: [square @ square for _ in range(times)])
    found[n / 6] = times * 2 * n**3 / spent
ax = plots.panels(width=5.6, height=3.2)
roof = sorted([2.0**-5, peak / bandwidth, 2.0**10])  # the two ends, and where it bends
ax.plot(roof, [min(peak, bandwidth * one) for one in roof], color=plots.GREY, label="roof")
ax.plot(list(found), list(found.values()), "o", color=plots.BLUE, label="measured")
ax.set(xscale="log", yscale="log", xlabel="FLOPs a byte", ylabel="FLOP/s")
plots.legend(ax, fontsize=8)
print(
    f"memory {bandwidth / 1e9:.0f} GB/s; the roof is flat from {peak / bandwidth:.1f} FLOPs a byte"
)
half = [round(6 * one) for one, speed in found.items() if speed > peak / 2]
compare(prediction, min(half, default=1024), "half of the peak from n =")

# %% [markdown]
# *Speed against arithmetic intensity: one addition of vectors (left) and products of n × n
# matrices, n from 16 to 512. Grey: what memory and processor allow.* A point above the roof says
# that the roof was measured in a slower moment, or that the numbers came from a cache, which is
# faster than memory. Points below it have a cost that this picture leaves out: starting an
# operation, which small products hardly repay. The addition lies on the slope by construction. A
# norm, a softmax, a dropout or an optimiser step is much like it: a few operations for each number
# that is read. That is why a *fused* kernel, one program of the device that does several of them
# while it has the numbers at hand, can save so much. A larger batch does not help those, but it
# helps the products with weights: each weight is read once, for all tokens of the batch.
#
# ## Does it fit?
# Four things take memory in training: the weights, a gradient for each of them, AdamW's two
# moments for each, and the **activations**: all that the forward pass computes and the backward
# pass will need. A product needs both of its factors to compute their gradients, so both are kept
# until then.
#
# ### Exercise 12.2 · `training_memory`
# ●●○ medium · 20 minutes · 2 points
#
# Count the bytes of the four parts for a stack of pre-norm encoder layers, in float32. The
# docstring says which operation keeps what; lesson 09's `layer_parameters(d_model, d_ff)` counts a
# layer's parameters. The check compares with what PyTorch really keeps.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Go through the layer in order and make a list: norm, W_q W_k W_v, scores, softmax, context, W_o,
# norm, linear, ReLU, linear. What does each keep that is not on the list yet?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Nearly all of them are `(B, T, something)`, so count for one token first. The exception is the
# table of attention weights, `(B, H, T, T)`: how many numbers is that for one token?
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# With all sizes 1, and one token, 14 numbers are kept: 8 of them are vectors of d_model. Which
# eight? (W_q, W_k and W_v read the same tensor.)
# </details>

# %% exercise="training_memory"
from attention.training_on_gpu import training_memory

# %% check="training_memory" points=2
check.training_memory(training_memory)


# %% demo=true
def logarithmic(ax, xs):
    """Two logarithmic axes, marked at xs and at 1, 2 and 5 times the powers of ten."""
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(xs, xs)
    marks = [first * 10.0**power for power in range(-6, 9) for first in (1, 2, 5)]
    low, high = ax.get_ylim()
    low, high = max(m for m in marks if m <= low), min(m for m in marks if m >= high)
    marks = [mark for mark in marks if low <= mark <= high]
    ax.set_yticks(marks, [f"{mark:g}" for mark in marks])
    ax.set_ylim(low, high)
    ax.minorticks_off()


# %% demo=true
base = {"d_model": 512, "n_heads": 8, "d_ff": 2048}
layers = {fused: EncoderLayer(**base, dropout=0.0, pre_norm=True, fused=fused) for fused in (0, 1)}
lengths, shown = (32, 64, 128, 256, 512, 1024, 2048), {}
counts = [training_memory(16, T, **base, n_layers=6) for T in lengths]
for part in ("weights", "moments", "activations"):
    shown[part] = [count[part] / 1e9 for count in counts]
fused = [training_memory(16, T, **base, n_layers=6, fused=True)["activations"] for T in lengths]
shown["activations, fused"] = [count / 1e9 for count in fused]
ax = plots.lines(lengths, shown, None, "six layers of the paper's size, 16 sentences", "T", "GB")
for is_fused, layer in layers.items():
    x = {T: torch.randn(1, T, 512, requires_grad=True) for T in (32, 64, 128, 256)}
    kept = [96e-9 * kept_bytes(partial(layer, one), layer.parameters()) for one in x.values()]
    colour = ax.lines[2 + is_fused].get_color()
    ax.plot(list(x), kept, "o", color=colour, markersize=5)
logarithmic(ax, lengths)

# %% [markdown]
# *Bytes by your count against the length T of 16 sentences; gradients take as much as the weights.
# Dots: what PyTorch keeps for one layer and one sentence, times 6 · 16.* Weights, gradients and
# moments do not depend on the batch. The activations do, and the plain attention's grow with T²:
# its weights are H · T numbers for each token. The fused kernel does not keep them, but computes
# them again in the backward pass. Does that cost time?

# %% demo=true
timed = {"plain": [], "fused": []}
for T in (64, 256, 1024):
    q, k, v = torch.randn(3, 2, 4, T, 32, device=device, requires_grad=True).unbind()

    def plain(q=q, k=k, v=v):
        weights = (q @ k.transpose(-2, -1) / math.sqrt(32)).softmax(-1)
        (weights @ v).sum().backward()

    def kernel(q=q, k=k, v=v):
        F.scaled_dot_product_attention(q, k, v).sum().backward()

    for name, action in (("plain", plain), ("fused", kernel)):
        timed[name].append(1000 * seconds(action, 2 if SHORT else 5))
ax = plots.lines((64, 256, 1024), timed, None, "forward and backward pass", "T", "milliseconds")
logarithmic(ax, (64, 256, 1024))

# %% [markdown]
# *Time of one attention, forward and backward, against T: 2 sentences, 4 heads of 32.* The kernel
# does more operations, but writes fewer bytes. The figure says which of the two counts for more on
# your machine; lesson 18 builds such a kernel.
#
# ## Numbers with few bits
# Numbers of 16 bits take half the memory, and machines that have units for them multiply them
# faster. (Does yours? Compare the two products measured above.) But 16 bits must be divided between
# *range* and *precision*. There are two ways to do it:

# %% demo=true
print("type       bits  largest  smallest  next after 1")
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    info, name = torch.finfo(dtype), str(dtype).removeprefix("torch.")
    print(
        f"{name:<9} {info.bits:5d} {info.max:8.0e} {info.tiny * info.eps:9.0e}  1 + {info.eps:.0e}"
    )
small = torch.tensor(1e-8)
print("\na gradient of 1e-8 in bfloat16:", f"{small.bfloat16().item():.1e}")
print("a gradient of 1e-8 in float16: ", small.half().item())
print("65536 times it, in float16:    ", f"{(65536 * small).half().item():.1e}")
for dtype in (torch.float32, torch.bfloat16):
    weight = torch.ones((), dtype=dtype)
    for _ in range(100):
        weight += 0.001
    print(f"1 + 100 times 0.001, step by step, in {dtype}: {weight.item():.3f}")

# %% [markdown]
# float16 is more precise than bfloat16, but its range is short: its smallest number is 6e-8, and
# what is below half of that becomes 0; from 65 520 on it is infinite. **bfloat16** has the range of
# float32. But it is coarse: 1 + 0.001 is rounded back to 1. Two remedies follow. In *mixed
# precision* weights, gradients and sums stay in float32, and only the matrix products are done in
# bfloat16: PyTorch's `autocast`, which the `dtype` of lesson 11's step switches on. And gradients
# in float16 are moved into its range by **loss scaling**: multiply the loss by a large number, and
# divide the gradients by it in float32 before anything else is done with them.
#
# How large are gradients? Here are those of the numbers translator, before and after its training:

# %% demo=true
corpus = numbers()
batch = corpus.batch(corpus.train[::200])
ax = plots.panels(width=6.0, height=2.8)
for label, one, width in (
    ("untrained", training.fresh(corpus), 1.0),
    ("trained", shipped.trained("transformer")[0], 2.2),
):
    gradients = experiments.nonzero_gradients(one, batch)
    exponents = gradients.abs().log2()
    style = {"histtype": "step", "linewidth": width}
    ax.hist(exponents, bins=range(-50, 1), density=True, label=label, **style)
    for scale in (1.0, 2.0**16):
        lost = ((gradients * scale).half() == 0).float().mean()
        print(f"{label:<9} scale {scale:7,.0f}: {lost:6.2%} of the gradients become 0 in float16")
ax.axvline(-24, color=plots.GREY, linestyle="--", label="smallest number in float16")
ax.set(xlabel="log₂ of the gradient's size", ylabel="share", yticks=[])
legend = plots.legend(ax, fontsize=8, loc="upper left")

# %% [markdown]
# *How large the gradients are (those that are exactly 0 are left out), and the smallest number
# that float16 can hold.* A scale of 2¹⁶ moves both curves 16 to the right. Too large a scale moves
# some of them beyond 2¹⁶, where they are infinite. One cannot know beforehand, so the scale is
# adapted: a step with an infinite gradient is skipped and the scale halved; after many good steps
# it is doubled.
#
# ### Exercise 12.3 · `loss_scaling`
# ●●○ medium · 15 minutes · 2 points
#
# The unscaled gradients are on the device of those that came in.
#
# <details><summary>Hint 1 · the idea</summary>
#
# First decide whether the step is skipped. If not, unscale. Then decide whether the scale grows.
# </details>
# <details><summary>Hint 2 · which numbers are bad</summary>
#
# Infinite ones of either sign, and NaN. `isfinite` asks each number; a sum in float16 can overflow
# although all its terms are finite.
# </details>
# <details><summary>Hint 3 · “a gradient of 0.001 with scale 65536, …: tensor 0 is wrong”</summary>
#
# In which dtype is 0.001 / 65536 computed? What is the smallest number it has?
# </details>

# %% exercise="loss_scaling"
from attention.training_on_gpu import loss_scaling

# %% check="loss_scaling" points=2
check.loss_scaling(loss_scaling)

# %% demo=true
scale, good_steps = 2.0**24, 0
for step in range(1, 13):
    gradients = experiments.nonzero_gradients(training.fresh(corpus), batch)
    unscaled, new_scale, good_steps = loss_scaling([(scale * gradients).half()], scale, good_steps)
    print(f"step {step:2d}: scale 2^{math.log2(scale):.0f}", "skipped" if unscaled is None else "")
    scale = new_scale

# %% [markdown]
# The scale comes down by itself until nothing overflows. Does it matter for what is learned? Two
# recorded experiments: the numbers translator, 60 steps, three seeds each.

# %% demo=true
rows = recorded.read("training_on_gpu", "numbers of 16 bits")
ways = {way: [r["loss"] for r in rows if r["way"] == way] for way in experiments.WAYS[:2]}
scales = recorded.read("training_on_gpu", "loss scale")
named = {f"2^{row['log2_scale']}" + ", adapted" * row["dynamic"]: [] for row in scales}
for row in scales:
    named[f"2^{row['log2_scale']}" + ", adapted" * row["dynamic"]].append(row)
axes = plots.panels(columns=2, width=4.6, height=2.9, share=False)
seeds.dots(ways, axes[0], "what has 16 bits", "held-out loss")
losses = {name: [row["loss"] for row in group] for name, group in named.items()}
seeds.dots(losses, axes[1], "gradients in float16, by scale", "held-out loss")
for name, group in named.items():
    lost, skipped = (max(row[what] for row in group) for what in ("lost", "skipped"))
    print(f"scale {name:<14} up to {lost:5.1%} of the gradients lost, {skipped} steps skipped")

# %% [markdown]
# *Held-out loss after 60 steps; each dot is a seed. Left: float32, and products alone in bfloat16.
# Right: gradients rounded to float16, by the scale of the loss.* Right: with the loss as it is, or
# 256 times as large, next to nothing is lost and the model learns as in float32: as small a model
# as this needs no scale. With gradients 2¹⁶ times smaller nearly nine of ten become 0, and it
# learns much less. With a scale of 2²⁴ every step overflows and is skipped, unless the scale
# adapts: then seven steps are lost and the rest go as usual. Left: products in bfloat16
# move the loss by about 0.02 at most, and another seed moves it as much.
#
# ## The speed ladder
# The same training step on the machine at hand (of a CPU, one core), with one thing changed after
# the other:
#
# | rung | what changes |
# |---|---|
# | float32 | nothing: PyTorch as it comes |
# | TF32 | products of float32 numbers keep only as many digits as float16 has |
# | bfloat16 | products in 16 bits, by `autocast` |
# | fused attention | one program of the device (a *kernel*) does it all: no scores in memory |
# | fused AdamW | one pass over the weights instead of one for every operation |
# | torch.compile | Python is taken out, and neighbouring operations become one |
#
# The faster of the two products above sets the peak: a step that did nothing but large matrix
# products could come near it. Sentences have 256 tokens here, so that attention is a part of the
# work that counts. A rung that makes the step slower here is shown, and taken off again.

# %% demo=true
gpu, T, V_ladder = device != "cpu", 256, 2000
sizes_of = (512, 8, 2048, 6) if gpu else (256, 4, 1024, 2)
config = dict(zip(("d_model", "n_heads", "d_ff", "n_layers"), sizes_of, strict=True))
ids = torch.randint(3, V_ladder, (32 if gpu else 2, T), device=device)
rungs = {
    "float32": {},
    "TF32": {"tf32": True} if device == "cuda" else "only NVIDIA's GPUs have it",
    "bfloat16": {"dtype": torch.bfloat16},
    "fused attention": {"fused": True},
    "fused AdamW": {"adam": True},
    "torch.compile": {"compiled": True},
}
if device != "cuda":
    rungs["torch.compile"] = "used on NVIDIA's GPUs only"
elif find_spec("triton") is None:
    rungs["torch.compile"] = "it needs the package triton"


def step_of(tf32=False, dtype=None, fused=False, adam=False, compiled=False):
    """A training step of a fresh model with these settings, ready to be called."""
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    model = Transformer(V_ladder, V_ladder, **config, dropout=0.0, fused=fused).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=adam)
    step = TrainStep(torch.compile(model) if compiled else model, optimizer, dtype=dtype)
    return lambda: step([(ids, ids)])


# %% demo=true
kept, best, speeds = {}, math.inf, {}
flops = training_flops(T, T, config["d_model"], config["d_ff"], config["n_layers"], V_ladder)
for name, change in rungs.items():
    if isinstance(change, str):
        print(f"{name:<16} left out: {change}")
        continue
    try:
        spent = seconds(step_of(**kept | change), 1 if SHORT else 6)
    except RuntimeError as error:
        print(f"{name:<16} left out: {error}"[:88])
        continue
    verdict = "kept" if spent < best else "taken off"
    kept, best = (kept | change, spent) if spent < best else (kept, best)
    speeds[name] = ids.numel() / spent
    mfu = len(ids) * flops / spent / max(peaks.values())
    print(f"{name:<16} {speeds[name]:9,.0f} tokens/s   MFU {mfu:4.0%}   {verdict}")
torch.set_float32_matmul_precision("highest")

# %% demo=true
ax = plots.panels(width=6.5, height=0.9 + 0.36 * len(speeds))
bars = ax.barh(list(speeds), list(speeds.values()), color=plots.BLUE, height=0.66)
box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
ax.bar_label(bars, [f"{s:,.0f}" for s in speeds.values()], padding=5, fontsize=8, bbox=box)
for (kind, peak), style in zip(peaks.items(), ("--", ":"), strict=True):
    label = f"peak in {str(kind).removeprefix('torch.')}"
    ax.axvline(T * peak / flops, color=plots.VERMILION, linestyle=style, linewidth=1.2, label=label)
ax.invert_yaxis()
ax.set(xlabel="target tokens/s", title="training on this machine")
ax.locator_params(axis="x", nbins=5)  # else long numbers run into one another
legend = plots.legend(ax, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))

# %% [markdown]
# *Target tokens per second of each rung, on your machine once you have run the cells. Dashed and
# dotted: what the step would reach if all of it ran as fast as one large matrix product.* A bar
# that passes its line says that the step's own products ran faster than that large one. Whether
# bfloat16 helps depends on the machine: one with units for bfloat16 gets faster, others have to
# convert. The two products above tell which yours is. And where bfloat16 is kept on a CPU, fused
# attention may be taken off: there PyTorch's kernel goes back slowly in that type unless sentences
# are long, which is why the training command leaves attention in float32. `make bench-train` climbs
# with more patience, and `docs/training.md` has its figures.
#
# ## Recurrent or attention: the clock
# Lesson 02 said that a recurrent network cannot work on all positions at once, and lesson 10 that a
# Transformer can. What does the clock say? One layer of each, 128 numbers wide, forward and
# backward, on 8 sentences of growing length.

# %% demo=true
lengths = (16, 64, 256) if SHORT else (16, 64, 256, 1024)
layers = {
    "GRU": nn.GRU(128, 128, batch_first=True),
    "encoder layer": EncoderLayer(128, 4, 512, 0.0, True, False),
    "encoder layer, fused": EncoderLayer(128, 4, 512, 0.0, True, True),
}
timed = {name: [] for name in layers}
for name, layer in layers.items():
    layer.to(device)
    for T in lengths:
        x = torch.randn(8, T, 128, device=device)

        def both(layer=layer, x=x):
            y = layer(x)
            (y[0] if isinstance(y, tuple) else y).sum().backward()

        timed[name].append(1e6 * seconds(both, 2) / (8 * T))
ax = plots.lines(lengths, timed, None, "forward and backward pass", "T", "microseconds a token")
logarithmic(ax, lengths)

# %% [markdown]
# *Time for each token against the length of the sentences.* A recurrent layer's time for each token
# hardly depends on T: each is one more step after the others. The plain encoder layer's rises when
# the T² scores begin to outweigh the rest. The fused one keeps no scores, but it computes them all,
# so its time has to rise as well, if later. The two layers do not do the same amount of work, so
# what to compare is how the lines run, not their heights. One core works through everything one
# after the other, so on a CPU “all positions at once” saves the starting of small operations, and
# reads the weights once instead of T times. A machine with thousands of units gains much more; a
# lesson that was only run on a CPU cannot show by how much.
#
# ## A rehearsal for those without a GPU
# A GPU has a memory of its own, and refuses to compute with tensors that lie in the CPU's. Whether
# a program obeys shows only there, unless there is a device that refuses the same things. The
# grader has one: every answer of yours that passed was called on it, too. `rehearse(function,
# …)` calls a function with its arguments moved to that device. Three pieces of code that work on a
# CPU:


# %%
def numbered(x):
    """Add to each vector the number of its position: (B, T, d) -> (B, T, d)."""
    return x + torch.arange(x.shape[1])[:, None]


def largest_weight(scores):
    """The largest weight of a softmax, as a Python number."""
    return scores.softmax(dim=-1).numpy().max()


class Stretch(nn.Module):
    """Multiply each feature by a number that is not learned."""

    def __init__(self, d_model):
        super().__init__()
        self.factors = torch.linspace(0.5, 2.0, d_model)

    def forward(self, x):
        return x * self.factors


# %%
x = torch.randn(2, 5, 4)
for rehearsed in (
    rehearse(numbered, x),
    rehearse(largest_weight, x),
    rehearse(Stretch.forward, Stretch(4), x),
):
    print("  fails" if rehearsed is None else "  works")

# %% [markdown]
# Read the three errors; then mend the three pieces in the cell above, and run both again until all
# of them work. (Not graded. You need one argument, one call and one line.)
#
# <details><summary>Hint</summary>
#
# Where is a new tensor made, unless you say otherwise? What has to happen to a tensor before NumPy
# can read it? `module.to(device)` moves parameters and *buffers*: see `register_buffer`.
# </details>

# %% [markdown] answer=true
# <details><summary>The three pieces, mended</summary>
#
# - `torch.arange(x.shape[1], device=x.device)`: made where x is.
# - `scores.softmax(dim=-1).cpu().numpy().max()`, or without NumPy
#   `scores.softmax(dim=-1).max().item()`.
# - `self.register_buffer("factors", torch.linspace(0.5, 2.0, d_model))`: now it moves with the
#   module, and is stored with it.
#
# </details>

# %% [markdown]
# Two more things differ on a GPU, and raise no error. Operations are only *started*: a clock has to
# wait until they are done (`synchronize`, in `seconds` above). And every `.item()`, `print` of a
# tensor or `if` on one waits, too, so a loop that looks at each loss can be slow.
#
# ## Stop and resume
# Training gets interrupted: the power fails, or others want the machine. To go on *exactly* takes
# more than the weights. The optimiser has a memory, and the position in the data is part of the
# state too. (So is the random generator, where there is dropout.)
#
# The file is written under another name first, and renamed when it is complete. If the power fails
# *while writing*, the old file is still there.
#
# ### Predict first · Break it
# A training stops after 6 steps and is resumed: once with everything, once with the weights alone,
# and a new optimiser. How do the losses of steps 7 to 10 compare with those of a training that
# never stopped? (The steps are those of lesson 11, with its batches, its order and its schedule.)


# %% demo=true
buckets = batch_by_tokens([len(german) + 1 for _, _, german in corpus.train], 2500)


def learn(step, numbers, warmup=5):
    """Take the training's steps with these numbers, from 1 on; yields their losses."""
    for number in numbers:
        epoch, position = divmod(number - 1, len(buckets))
        index = epoch_order(len(buckets), translators.SEED, epoch)[position]
        step.optimizer.param_groups[0]["lr"] = noam_learning_rate(number, 64, warmup, factor=0.45)
        batch = corpus.batch([corpus.train[index] for index in buckets[index]])
        yield step([(batch.source, batch.target)])


def fresh():
    """An untrained model, with its optimiser, in a step."""
    torch.manual_seed(translators.SEED)
    model = Transformer(*sizes, **translators.SMALL)
    adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)
    return TrainStep(model, adam)


# %% demo=true
def save(path, step, done):
    parts = {"model": step.model.state_dict(), "optimizer": step.optimizer.state_dict()}
    aside = path.with_suffix(".tmp")
    torch.save(parts | {"done": done}, aside)
    aside.replace(path)


def resume(path, with_optimizer=True):
    step, stored = fresh(), torch.load(path)
    step.model.load_state_dict(stored["model"])
    if with_optimizer:
        step.optimizer.load_state_dict(stored["optimizer"])
    return step, stored["done"] + 1


with one_thread(), tempfile.TemporaryDirectory() as folder:
    path, step_2 = Path(folder) / "training.pt", fresh()
    never = [loss.item() for loss in learn(fresh(), range(1, 11))]
    before = [loss.item() for loss in learn(step_2, range(1, 7))]
    save(path, step_2, done=6)
    print("never stopped   ", *never[6:])
    for label, everything in (("all of the state", True), ("weights only    ", False)):
        again, first = resume(path, everything)
        print(label, *(loss.item() for loss in learn(again, range(first, 11))))

# %% [markdown]
# With all of the state the losses agree to the last digit. Without the optimiser's memory the first
# loss is right, for it comes from the weights alone. Then the two part: a new AdamW takes its
# first steps at a rate for which the old one was warmed up. Nothing raises an error. Only the
# losses tell, to those who look.
#
# ## Several processes
# Each process takes a share of every batch and computes the gradients of *its* mean loss. Then they
# join their gradients, and all make the same step. That is **data parallelism**. Lesson 11's
# question comes back: what has to be done so that it is the same step as that of one process with
# the whole batch?
#
# ### Exercise 12.4 · `data_parallel_gradients`
# ●○○ easy · 10 minutes · 2 points
#
# The gradients that come out are on the device of those that came in.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The mean over all tokens, from means over shares: weight each with its part of the tokens.
# </details>
# <details><summary>Hint 2 · the lists</summary>
#
# The outer list has an item for each process, the inner one for each parameter. `zip(*gradients)`
# turns them around.
# </details>

# %% exercise="data_parallel_gradients"
from attention.training_on_gpu import data_parallel_gradients

# %% check="data_parallel_gradients" points=2
check.data_parallel_gradients(data_parallel_gradients)

# %% [markdown]
# ### Exercise 12.5 · `break_data_parallel_gradients` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate's answer to the exercise before, and what PyTorch's `DistributedDataParallel` does of
# its own accord. It is right for some batches. Find gradients and numbers of tokens for which it is
# wrong.
#
# <details><summary>Hint 1 · where to look</summary>
#
# Which of the arguments is never used? When does that not matter?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# Two processes with one gradient each: when is their plain mean not the mean over all tokens?
# </details>

# %% broken="averages_the_processes"
from autograder.mistakes.training_on_gpu import averages_the_processes

# %% exercise="break_data_parallel_gradients"
from attention.training_on_gpu import break_data_parallel_gradients

# %% check="break_data_parallel_gradients" points=1
check.break_data_parallel_gradients(break_data_parallel_gradients)

# %% [markdown]
# Now the real thing: two processes on your CPU, started by `torchrun`, which talk to each other
# over the local network (*gloo*; GPUs use *nccl*). One gets the ten shortest of twenty numbers,
# the other the ten longest. They join their gradients in both ways, and the first then takes all
# twenty alone. In a terminal: `torchrun --nproc-per-node 2 -m
# attention.experiments.training_on_gpu`.

# %% demo=true
command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
command += ["-m", "attention.experiments.training_on_gpu"]
if SHORT:
    print("left out while a notebook is graded")
else:
    settings = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120)
    print("\n".join(sorted(done.stdout.split("\n"))).strip() or done.stderr[-500:])

# %% [markdown]
# Weighted with their tokens, the processes agree with one up to the rounding of float32. The plain
# mean is another step. `python -m attention.train numbers` trains from a terminal with the
# functions of lesson 11, `python -m attention.train multi30k` on real sentences; under `torchrun`
# both share each batch as you did. `autograder collect` gathers the pieces that you have passed;
# with `--mine` the training takes them, and says how much slower each is.
#
# ## Limits
# Operations and bytes are counted here on paper or on small models; caches, launch times and the
# links between machines are not in the counts, and on large clusters these may decide. A model that
# does not fit on one device has to be split itself (tensor or pipeline parallelism, sharded
# optimisers): data parallelism copies all of it to each process. The rehearsal device shows what a
# GPU refuses, but not how fast or how exact it is. And what was timed here was timed on your
# machine: none of it says how another one would do.
#
# ## Summary
# Counting comes first: FLOPs say how much of a machine training uses, FLOPs for each byte whether
# it waits for memory, and bytes whether it fits: weights four times over with AdamW in float32, and
# activations that grow with the batch and, in plain attention, with T². Products may have 16 bits
# where weights and sums keep 32; gradients in float16 need a scale that adapts. Weights, optimiser
# and position together are the state of a training run, and processes that share a batch make the
# same step if each counts by its tokens.
#
# **Next** [13 · How do you get a sentence out?](../13_decoding/13_decoding.ipynb) The trained model
# writes: greedily, by chance, and with several beams.
#
# ## Open questions
# 1. The activations of 16 long sentences do not fit. You may forget those of each layer, keep only
#    its input, and compute them again in the backward pass (*checkpointing*,
#    `torch.utils.checkpoint`). How many bytes does `kept_bytes` find then, and how much longer does
#    a step take?
# 2. From which length T on do the T² products of an encoder layer (scores, and weights times
#    values) take more FLOPs than its other products? Count first, for d_ff = 4 d_model; then time.
# 3. Between a scale of 1 and one at which 9 of 10 gradients are lost lies a range. How many may be
#    rounded to 0 before it shows in the loss? (`experiments.train_in("float16 gradients", seed=0,
#    log2_scale=-8)` is a start.)

# %% [markdown] answer=true
# <details><summary>Answers to the open questions</summary>
#
# 1. For one layer of the paper's size, not fused, and one sentence of 256 tokens, `kept_bytes`
#    finds 8 392 704 bytes without checkpointing and 524 288 with it, a sixteenth: the layer's
#    input alone. (`python -m attention.experiments training_on_gpu` counts them again.) Each layer
#    is computed forward twice, so by count a step takes 4 products in place of 3.
# 2. For each token the other products take 12 d_model² multiplications (4 projections, 8 of the
#    network), these 2 · T · d_model. So from T = 6 d_model on: 3 072 for the paper's base.
# 3. Recorded is only the end of the range: with a scale of 2⁻¹⁶ and nearly nine of ten gradients
#    lost, the loss after 60 steps is twice as large.
#
# </details>

# %% [markdown]
# ## Leaderboard ★
# Nothing here earns points. A training of the numbers translator may take 200 GFLOPs and 8 000 kB:
# which settings translate most numbers without any error? Larger layers take operations and memory
# from the sentences that are learned from, and parts of a step that are too large do not fit. Give
# your entry a name, not your own, and change what you like; "" takes no part. If your class has a
# leaderboard, the settings are trained there on three seeds, and measured on numbers that nobody
# has seen. The first ones are those of lesson 11, with fewer steps, each in four parts.

# %%
leaderboard = {
    "name": "",
    "d_model": 64,
    "n_heads": 4,
    "d_ff": 128,
    "n_layers": 2,
    "steps": 80,
    "sentences": 14,  # at a time
    "accumulation": 4,  # so many times, in one step; steps × accumulation is 500 at most
    "precision": "float32",  # or "bfloat16": of the products, by autocast
    "checkpointing": False,  # True: each layer keeps its input alone, and is computed again
    "schedule": "noam",  # or "rise" or "constant"
    "rate": 0.0073,  # the highest
    "warmup": 40,
}

# %% [markdown]
# This is how it is counted. A sentence counts as 10 words and 60 letters, which is about what
# batches are filled up to. `training_memory` counts a stack of fused encoder layers for the words
# and one for the letters; the cross-attention is left out. Under autocast a layer keeps about three
# quarters of the bytes, since norms and residuals stay in float32. With checkpointing, four
# products take the place of three, and the insides of one layer at a time are in memory.


# %% demo=true
def taken(
    d_model=64, n_heads=4, d_ff=128, n_layers=2, steps=80, sentences=14, accumulation=4, **others
):
    """The GFLOPs and the kB of a training, rounded up, as the leaderboard counts them."""
    again, letters = others.get("checkpointing"), len(corpus.target_vocabulary)
    flops = training_flops(10, 60, d_model, d_ff, n_layers, letters) * (4 if again else 3) / 3
    sizes = (d_model, n_heads, d_ff, n_layers)
    stacks = [training_memory(sentences, T, *sizes, fused=True) for T in (10, 60)]
    activations = [stack.pop("activations") for stack in stacks]
    if again:
        inputs = 4 * sentences * (10 + 60) * d_model * n_layers
        activations = [inputs, activations[1] // n_layers]
    kept = sum(activations) * (0.75 if others.get("precision") == "bfloat16" else 1)
    bytes_ = sum(sum(stack.values()) for stack in stacks) + kept
    return math.ceil(steps * accumulation * sentences * flops / 1e9), math.ceil(bytes_ / 1000)


print("{} of 200 GFLOPs, {} of 8000 kB".format(*taken(**leaderboard)))

# %% [markdown]
# ## References
# - A. Vaswani et al. (2017). *Attention is all you need*, sections 5 and 6.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - P. Micikevicius et al. (2018). *Mixed precision training.*
#   [arXiv:1710.03740](https://arxiv.org/abs/1710.03740)
# - S. Williams, A. Waterman, D. Patterson (2009). *Roofline: an insightful visual performance model
#   for multicore architectures.* Communications of the ACM 52(4).
