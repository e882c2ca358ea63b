# %% [markdown]
# # 12 · What does the hardware want?
#
# Lesson 11 built the training step. Now it meets a machine. How much work is a step, how much could
# the machine do, and what lies between the two? And what if the power fails in the middle?
#
# **After this lesson** you can
# - count the **operations** of a training, and say which share of a machine it uses,
# - multiply in **16 bits** where that is safe, and say why weights and sums stay in 32,
# - climb the **speed ladder** of your own machine, one change at a time,
# - **stop** a training anywhere and **resume** it to the last digit,
# - train in **several processes**, from a terminal.
#
# **Time** 60 minutes · **Points** 2 · **GPU** used if there is one, not needed · **You need**
# lessons 10 and 11

# %%
import math
import os
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import torch

from attention.provided import plots, translators
from attention.provided.data import PAD
from attention.training import TrainStep, batch_by_tokens, epoch_order, noam_learning_rate
from attention.transformer import Transformer
from autograder import check

SHORT = bool(os.environ.get("NBGRADER_EXECUTION"))  # while nbgrader runs this, few steps will do
device = "cuda" if torch.cuda.is_available() else "cpu"
device = "mps" if torch.backends.mps.is_available() else device

# %% [markdown]
# ## What fails without this idea
# The plainest training takes one sentence, makes a step, and takes the next sentence. How many
# tokens does it learn from in a second, and how many if 8 or 64 sentences are taken at once?


# %% demo=true
def seconds(action, repeats=6):
    """Return the shortest of several runs after a first one; a GPU must have finished, too."""
    spent = []
    # The time that one core works: waiting, because something else runs there, does not count.
    clock = time.process_time if device == "cpu" else time.perf_counter
    with translators.one_thread():
        for _ in range(1 + repeats):
            begin = clock()
            action()
            if device != "cpu":
                getattr(torch, device).synchronize()
            spent.append(clock() - begin)
    return min(spent[1:])


corpus = translators.data.numbers()
sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
torch.manual_seed(translators.SEED)
step = TrainStep(Transformer(*sizes, **translators.SMALL).to(device))
for size in (1, 8, 64):
    batch = corpus.batch(corpus.train[:size])
    both, tokens = (batch.source.to(device), batch.target.to(device)), (batch.target != PAD).sum()
    speed = tokens / seconds(lambda both=both: step([both]))
    print(f"{size:2d} at a time: {speed:8,.0f} tokens/s")

# %% [markdown]
# The model is the same, each token needs the same products, and the machine was busy all the time.
# With what? With starting small products one after the other. “Busy” says nothing: a machine can
# work all night and do a small part of what it could. To see that, one has to count.
#
# ## The idea
# A machine is good at large products of short numbers, and bad at almost everything else. So:
#
# | what the hardware wants | what we do |
# |---|---|
# | to be measured | count operations, divide by what it could do |
# | to multiply short numbers | products in bfloat16, sums and weights in float32 |
# | a few large products | big batches, operations that are joined into one |
# | company | several processes, each with its share of the batch |
# | to break off now and then | all of the state in a file |
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
# ●●○ medium · 15 minutes · 2 points
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
# <details><summary>Hint 3 · all sizes 1</summary>
#
# 12 projections, 6 products of attentions, 4 of feed-forward networks, 1 generator: 23
# multiplications forward.
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
    print(f"a product of two {n} × {n} matrices in {dtype}: {peaks[dtype] / 1e12:.2f} TFLOP/s")

# %% [markdown]
# (What the GPUs could do is how the paper's table 2 gets at its “training cost”. The big model,
# trained for three times as many steps (3.5 days), reached 28.4 BLEU on English–German and 41.8 on
# English–French: better than anything before it, at a fraction of the cost. BLEU is for lesson 14.)
#
# ## Numbers with few bits
# A GPU multiplies 16-bit numbers several times as fast as those of 32 bits. But 16 bits must be
# divided between *range* and *precision*. There are two ways to do it:

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
# float16 is precise, but its range is short: small gradients become 0. The remedy is to multiply
# the loss by a large number, and to divide the gradients by it before anything else is done with
# them. **bfloat16** has the range of float32, and needs no such thing. But it is coarse: 1 + 0.001
# is rounded back to 1. So weights, gradients and sums stay in float32, and only the matrix products
# are done in bfloat16. This is called *mixed precision*, and PyTorch's name for it is `autocast`:
# the `dtype` of lesson 11's step switches it on.
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
# products could come near it. A rung that makes the step slower here is shown, and taken off again.
#
# ### Predict first
# Which rung will help most? On a CPU, will bfloat16 help at all?

# %% demo=true
gpu, T, V_ladder = device != "cpu", 32, 2000
sizes_of = (512, 8, 2048, 6) if gpu else (256, 4, 1024, 2)
config = dict(zip(("d_model", "n_heads", "d_ff", "n_layers"), sizes_of, strict=True))
ids = torch.randint(3, V_ladder, (256 if gpu else 16, T), device=device)
rungs = {
    "float32": {},
    "TF32": {"tf32": True} if device == "cuda" else "only NVIDIA's GPUs have it",
    "bfloat16": {"dtype": torch.bfloat16},
    "fused attention": {"fused": True},
    "fused AdamW": {"adam": True},
    "torch.compile": {"compiled": True},
}
if device != "cuda":
    rungs["torch.compile"] = "compiling takes longer here than all the rest of the ladder"
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
legend = ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))

# %% [markdown]
# *Target tokens per second of each rung, on your machine once you have run the cells. Dashed and
# dotted: what the step would reach if all of it ran as fast as one large matrix product.* Timings
# of so few steps waver, more so if the machine does something else: trust large differences only.
# Whether bfloat16 helps a CPU depends on it: one with units for bfloat16 gets faster, others have
# to convert, and mostly get slower. The two products above tell which yours is. On a GPU the ladder
# is higher. Its matrix units want short numbers, and its memory is slow beside them, so whatever
# moves less is faster. `make bench-train` climbs with more patience.
#
# ## Stop and resume
# Trainings break off: power fails, machines are wanted by others. To go on *exactly* takes more
# than the weights. The optimiser has a memory, and the position in the data is part of the state
# too. (So is the random generator, where there is dropout.)
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


with translators.one_thread(), tempfile.TemporaryDirectory() as folder:
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
# loss is right, for it comes from the weights alone. Then the ways part: a new AdamW takes its
# first steps at a rate for which the old one was warmed up. Nothing raises an error. Only the
# losses tell, to those who look.
#
# ## Several processes, and the real thing
# `python -m attention.train numbers` trains from a terminal with the functions of lesson 11, and
# `python -m attention.train multi30k` does so on real sentences. Started with `torchrun`, it uses
# several GPUs: each takes a share of every batch, and they add up their gradients.
#
# ## Summary
# A step that makes large products of short numbers uses a machine; counting operations tells how
# well. Products may have 16 bits where weights and sums keep 32, and the other rungs of the ladder
# move less memory or start fewer programs. Weights, optimiser and position together are
# the state of a training: what is stored whole can be resumed exactly.
#
# **Next** [13 · How do you get a sentence out?](../13_decoding/13_decoding.ipynb) The trained model
# writes: greedily, by chance, and with several beams.
#
# **References**
# - A. Vaswani et al. (2017). *Attention is all you need*, sections 5 and 6.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - P. Micikevicius et al. (2018). *Mixed precision training.*
#   [arXiv:1710.03740](https://arxiv.org/abs/1710.03740)
