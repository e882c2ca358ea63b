# %% [markdown]
# # 12 · What does the hardware want?
#
# Lesson 11 built the training step. Now it meets a machine. How much work and memory does a step
# take, and how close does it come to what the machine could do? And what if the power fails in the
# middle?
#
# **After this lesson** you can
# - count the **operations** and the **bytes** of a training run, and say what share of a machine it
#   uses,
# - read a **roofline**, and say whether an operation waits for memory,
# - multiply in **16 bits** where that is safe, and scale a loss whose gradients would vanish,
# - find and fix what fails on a **GPU** without having one,
# - **stop** a training anywhere and **resume** it to the last digit,
# - share a batch among **several processes** without changing the step.
#
# **Time** 75 minutes · **Points** 7 · **GPU** used if there is one, not needed · **You need**
# lessons 02, 10 and 11

# %%
import torch

from attention.experiments import training_on_gpu as experiments
from autograder import check

torch.set_num_threads(1)  # as fast for small matrices, and much faster beside other programs

# %% [markdown]
# Until you run this notebook, its timings are those of another machine. They vary, so trust only
# large differences.
#
# ## One sentence at a time
# The simplest way to train is to take one sentence, make a step, and take the next sentence. How
# many tokens per second does the model learn from, and how many if a step takes 8 or 64 sentences?
#
# <details><summary>The code that ran</summary>
#
# ```python
# for size in sizes:
#     batch = corpus.batch(corpus.train[:size]).to(device)
#     spent = seconds(partial(step, [(batch.source, batch.target)]))
#     found[size] = (batch.target != PAD).sum().item() / spent
# ```
# `step` is lesson 11's `TrainStep`, and `seconds` takes the shortest of several runs.
# </details>

# %% demo=true
speeds = experiments.sentences_at_a_time()

# %% [markdown]
# Each token needs the same products in all three runs, and the machine was always busy. But being
# busy is not the same as being well used. To see the difference we must count operations.
#
# ## Count, then measure
# A processor multiplies faster than its memory can deliver numbers. It is fastest at large
# products and, if it has units for them, at products of numbers with few bits. So:
#
# | question | what we do |
# |---|---|
# | How much work is it? | count operations, divide by what the machine could do |
# | Does it wait for memory? | compare operations with bytes |
# | Does it fit? | count weights, gradients, moments and activations |
# | May numbers have fewer bits? | products in bfloat16, sums and weights in float32 |
# | What if it stops? | all of the state in a file |
# | May several share the work? | several processes, each with its share of the batch |
#
# ## How much work is it?
# A product of `(n, m)` and `(m, k)` takes n·m·k multiplications and as many additions: 2·n·m·k
# **floating-point operations**, FLOPs. Going backward takes two such products for each one forward:
# one for the gradient of the inputs, one for that of the weights.
#
# By hand, for (2, 3) and (3, 4):

# %%
from attention.provided import demand  # refuses numbers that make no sense

n, m, k, operations = 2, 3, 4, 0
for _row in range(n):
    for _column in range(k):
        for _inner in range(m):
            operations += 2  # a multiplication and an addition
print(f"{operations} operations; 2·n·m·k = {2 * n * m * k}")

# %% [markdown]
# ### Exercise 12.1 · `training_flops`
# ●●○ medium · 18 minutes · 2 points
#
# Count the operations that all matrix products take in training on one sentence pair, forward and
# backward. One layer on each side makes three attentions, each with four projections and two
# products of its own (scores, and weights times values), and two feed-forward networks. The
# generator comes last.
#
# <details><summary>Hint 1 · the idea</summary>
#
# For each product ask how many rows it has: the positions of the source or of the target? The rest
# is a size of the model.
# </details>
# <details><summary>Hint 2 · the cross-attention</summary>
#
# Queries and outputs belong to target positions, keys and values to source positions. The scores
# are `(T_q, T_k)`.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# With all sizes 1, the forward pass makes 23 multiplications. Which of them get a factor T_k, which
# T_q, which both?
# </details>

# %% exercise="training_flops"
from attention.training_on_gpu import training_flops

# %% check="training_flops" points=2
check.training_flops(training_flops)

# %% [markdown]
# The **model FLOPs utilisation**, MFU, is the FLOPs that were needed over those that the machine
# could have done in that time. The paper's base model made 100 000 steps of about 25 000 tokens on
# each side in 12 hours on 8 GPUs, and the authors put each GPU at 9.5 TFLOP/s.

# %% demo=true
pair = training_flops(25, 25, 512, 2048, 6, 37_000)  # sentences of about 25 tokens
needed, could = 100_000 * 1000 * pair, 12 * 3600 * 8 * 9.5e12
print(f"needed {needed:.1e} FLOPs, the GPUs could do {could:.1e}: MFU {needed / could:.0%}")

# %% [markdown]
# What could your machine do? One large matrix product tells:
#
# <details><summary>The code that ran</summary>
#
# ```python
# for dtype in (torch.float32, torch.bfloat16):
#     square = torch.randn(n, n, device=device).to(dtype)
#     found[dtype] = 2 * n**3 / seconds(partial(torch.matmul, square, square))
# ```
# </details>

# %% demo=true
peaks = experiments.peaks()

# %% [markdown]
# ## Does it wait for memory?
# Before a processor can multiply two numbers, they have to come from memory. The **arithmetic
# intensity** of an operation is its number of FLOPs for each byte that it reads or writes. Two
# examples in float32, four bytes per number:
#
# | operation | FLOPs | bytes | FLOPs per byte |
# |---|---|---|---|
# | add two vectors of n numbers | n | 12 n | 1/12 |
# | multiply two n × n matrices | 2 n³ | 12 n² | n/6 |
#
# The processor sets one limit and memory another: speed ≤ min(peak, bandwidth · intensity). On
# logarithmic axes this is a slope and then a flat line: the **roofline** (Williams et al., 2009).
#
# ### Predict first
# The flat roof is the speed of the large product in float32. From which n on does a product of two
# n × n matrices reach half of it: 16, 32, 64, 128, 256 or 512?

# %%
from attention.provided.predictions import compare

prediction = None  # one of these numbers; None skips this

# %% demo=true
half = experiments.roofline(peaks[torch.float32])
compare(prediction, half, "half of the peak from n =")

# %% [markdown]
# *Speed against arithmetic intensity: one addition of vectors (left) and products of n × n
# matrices, by their n. Grey: what memory and processor allow.* A point above the roof comes from a
# quieter moment, or its numbers came from a cache, which is faster than memory. Small products lie
# below the roof because starting an operation also takes time.
#
# A norm, a softmax or an optimiser step is much like the addition: a few operations for each number
# that is read. So a *fused* kernel, one program that does several of them while it has the numbers
# at hand, can save much. A larger batch helps the products: each weight is read once for all
# tokens.
#
# ## Does it fit?
# Four things take memory in training: the weights, a gradient for each of them, AdamW's two moments
# for each (lesson 11's *m* and *v*), and the **activations**, which the forward pass keeps for the
# backward pass. A product needs both of its factors to compute their gradients, so it keeps both.
#
# For one pre-norm encoder layer and one token, the forward pass keeps eight vectors of length
# d_model: what the first norm was applied to, its result (W_q, W_k and W_v read the same one),
# query, key, value, the context, and what the second norm was applied to, and its result. To these
# come two numbers for each norm, d_ff hidden units, and a row of T attention weights for each head.

# %% given="training_memory"
from attention.training_on_gpu import training_memory

# %%
for B, T in ((1, 128), (16, 128), (16, 512)):
    parts = training_memory(B, T, d_model=512, n_heads=8, d_ff=2048, n_layers=6)
    shown = [f"{part} {size / 2**20:.0f} MiB" for part, size in parts.items()]
    print(f"B = {B:2d}, T = {T}:", *shown, sep="   ")

# %% demo=true
ax = experiments.memory_by_length(training_memory)

# %% [markdown]
# *Bytes by this count against the length T of 16 sentences; gradients take as much as the weights.
# Dots: what PyTorch keeps for one layer and one sentence, times 6 · 16.* Only the activations
# depend on the batch. Those of the plain attention grow with T², since it keeps H · T weights for
# each token. The fused kernel computes them again in the backward pass instead; lesson 18 builds
# such a kernel.
#
# ## Numbers with few bits
# Numbers of 16 bits take half the memory, and machines that have units for them multiply them
# faster. (Does yours? Compare your two products above.) There are two ways to divide 16 bits
# between *range* and *precision*:
#
# | type | bits | largest | smallest | next after 1 |
# |---|---|---|---|---|
# | float32 | 32 | 3 · 10³⁸ | 1 · 10⁻⁴⁵ | 1 + 1 · 10⁻⁷ |
# | bfloat16 | 16 | 3 · 10³⁸ | 9 · 10⁻⁴¹ | 1 + 8 · 10⁻³ |
# | float16 | 16 | 65 504 | 6 · 10⁻⁸ | 1 + 1 · 10⁻³ |

# %%
small, one = torch.tensor(1e-8), torch.tensor(1.0)
print("1e-8 in bfloat16: ", f"{small.bfloat16().item():.1e}", "  in float16:", small.half().item())
print("65536 · 1e-8 in float16: ", f"{(65536 * small).half().item():.1e}")
print("1 + 0.001 in bfloat16: ", (one.bfloat16() + 0.001).item())

# %% [markdown]
# In float16 a small number becomes 0. **bfloat16** has the range of float32, but it is coarse:
# 1 + 0.001 is rounded back to 1. There are two remedies.
#
# - **Mixed precision.** Only the matrix products are done in bfloat16; weights, gradients and sums
#   stay in float32. The `dtype` of lesson 11's step switches it on: PyTorch's `autocast`.
# - **Loss scaling** for float16. Multiply the loss by a large number, which moves the gradients
#   into the range of float16, and divide them by it, in float32, before they are used.
#
# How large are the gradients of the numbers translator, before and after its training?

# %% demo=true
ax = experiments.gradient_sizes()

# %% [markdown]
# *How large the gradients are (those that are exactly 0 are left out), and the smallest number
# that float16 can hold.* A scale of 2¹⁶ moves both curves 16 to the right. Too large a scale makes
# some gradients infinite. The right scale is not known beforehand, so it adapts: a step with an
# infinite gradient is skipped and the scale halved, and after many good steps it is doubled.
#
# ### Exercise 12.2 · `loss_scaling`
# ●●○ medium · 15 minutes · 2 points
#
# Undo the scale and choose the next one, as the docstring says. The unscaled gradients are on the
# device of those that came in.
#
# <details><summary>Hint 1 · the idea</summary>
#
# First decide whether the step is skipped. If not, unscale. Then decide whether the scale grows.
# </details>
# <details><summary>Hint 2 · which numbers are bad</summary>
#
# `isfinite` asks each number; a sum in float16 can overflow although all its terms are finite.
# </details>
# <details><summary>Hint 3 · “a gradient of 0.001 with scale 65536, …: tensor 0 is wrong”</summary>
#
# In which dtype is 0.001 / 65536 computed? What is the smallest number that it can hold?
# </details>

# %% exercise="loss_scaling"
from attention.training_on_gpu import loss_scaling

# %% check="loss_scaling" points=2
check.loss_scaling(loss_scaling)

# %% demo=true
import math

scale, good_steps = 2.0**24, 0
for step in range(1, 9):
    gradients = experiments.gradients_in_float16(scale)
    print(f"step {step}: scale 2^{math.log2(scale):.0f}", end=" ")
    found, scale, good_steps = loss_scaling(gradients, scale, good_steps)
    print("skipped" if found is None else "taken")

# %% [markdown]
# The scale is halved until nothing overflows. Does it matter for what is learned? Two experiments
# were recorded with the numbers translator, 60 steps, three seeds each:
#
# <details><summary>The code that ran</summary>
#
# ```python
# with torch.autocast("cpu", torch.bfloat16, enabled=way == "bfloat16 products"):
#     loss = training.loss_of(model, batch)
# loss.backward()
# bar.update(step, loss.item())
# share = round_gradients(model, scale) if way == "float16 gradients" else 0.0
# if share is None:
#     scale = scale / 2 if dynamic else scale
#     continue
# lost.append(share)
# nn.utils.clip_grad_norm_(model.parameters(), 1.0)
# adam.step()
# ```
# `round_gradients` is None if a gradient is infinite: then the step is skipped.
# </details>

# %% demo=true
axes = experiments.sixteen_bits()

# %% [markdown]
# *Held-out loss after 60 steps; each dot is a seed. Left: float32, and products alone in bfloat16.
# Right: gradients rounded to float16, by the scale of the loss.* Products in bfloat16 change the
# loss no more than another seed does. So small a model needs no scale: with 1 or 2⁸ hardly any
# gradient becomes 0. At 2⁻¹⁶ nearly nine in ten gradients become 0, and it learns much less. At 2²⁴
# every step overflows and is skipped, unless the scale adapts: then only seven steps are lost.
#
# ## The speed ladder
# Here the same training step runs on your machine (on one core of a CPU), with one change after
# another. A rung that makes it slower is taken off again.
#
# | rung | what changes |
# |---|---|
# | float32 | nothing: PyTorch as it comes |
# | TF32 | products of float32 numbers keep only as many digits as float16 has |
# | bfloat16 | products in 16 bits, by `autocast` |
# | fused attention | one kernel does it all: no scores in memory |
# | fused AdamW | one pass over the weights instead of one for every operation |
# | torch.compile | Python is taken out, and neighbouring operations become one |
#
# <details><summary>The code that ran</summary>
#
# ```python
# step = _step_of(sizes, device, **changed | change)
# spent = seconds(partial(step, [(ids, ids)]), fewer(6, 1))
# ```
# `_step_of` makes lesson 11's `TrainStep` with the changes of this rung and of those that were
# kept.
# </details>

# %% demo=true
speeds = experiments.speed_ladder(peaks, training_flops)

# %% [markdown]
# *Target tokens per second of each rung, on your machine once you have run the cells. Dashed and
# dotted: what the step would reach if all of it ran as fast as one large matrix product.* Whether
# bfloat16 helps depends on the machine: the large products above tell what yours is good at. If
# bfloat16 is slower there than the third product, which converts to float32 and back, then the
# conversion is not what makes it slow. `make bench-train` measures with more patience, and
# `docs/training.md` has its figures.
#
# ## Recurrent or attention: the clock
# A recurrent network cannot work on all positions at once (lesson 02); a Transformer can. What does
# the clock say? Here is one layer of each, forward and backward, on sentences of growing length.
#
# <details><summary>The code that ran</summary>
#
# ```python
# for T in lengths:
#     x = torch.randn(8, T, 128, device=device)
#     first = partial(_first, layer, x)
#     spent = seconds(timing.both_ways(first, [*layer.parameters()]), 2)
#     timed.setdefault(name, []).append(1e6 * spent / (8 * T))
# ```
# </details>

# %% demo=true
ax = experiments.recurrent_or_attention()

# %% [markdown]
# *Time for each token against the length of the sentences.* Compare the shapes of the lines, not
# their heights, since the layers do different amounts of work. The recurrent layer's time per token
# hardly grows with T. From T = 64 on, the plain encoder layer's does, and the fused one's less. One
# core does everything one after the other, so it cannot show what a machine with thousands of units
# gains from “all positions at once”.
#
# ## A rehearsal for those without a GPU
# A GPU has a memory of its own, and cannot compute with tensors that lie in the CPU's. The grader
# has a simulated device that fails in the same cases, and calls your answers on it.
# `rehearse(function, …)` calls a function with its arguments moved there. Here are three pieces of
# code that work on a CPU:


# %%
def numbered(x):  # adds to each vector the number of its position: (B, T, d) -> (B, T, d)
    return x + torch.arange(x.shape[1])[:, None]


def largest_weight(scores):  # the largest weight of a softmax, as a Python number
    return scores.softmax(dim=-1).numpy().max()


class Stretch(torch.nn.Module):  # multiplies each feature by a number that is not learned
    def __init__(self, d_model):
        super().__init__()
        self.factors = torch.linspace(0.5, 2.0, d_model)

    def forward(self, x):
        return x * self.factors


# %%
from attention.provided.rehearsal import rehearse

x = torch.randn(2, 5, 4)
for call in ((numbered, x), (largest_weight, x), (Stretch.forward, Stretch(4), x)):
    print("  fails" if rehearse(*call) is None else "  works")

# %% [markdown]
# Read the three errors, fix the three pieces, and run both cells again. (Not graded. You need one
# argument, one call and one line.)
#
# <details><summary>Hint</summary>
#
# Where is a new tensor made, unless you say otherwise? What has to happen to a tensor before NumPy
# can read it? `module.to(device)` moves parameters and *buffers*: see `register_buffer`.
# </details>

# %% [markdown] answer=true
# <details><summary>The three pieces, fixed</summary>
#
# - `torch.arange(x.shape[1], device=x.device)`: made where x is.
# - `scores.softmax(dim=-1).cpu().numpy().max()`, or without NumPy
#   `scores.softmax(dim=-1).max().item()`.
# - `self.register_buffer("factors", torch.linspace(0.5, 2.0, d_model))`: now it moves with the
#   module, and is stored with it.
#
# </details>

# %% [markdown]
# Two more things differ on a GPU, and raise no error. Operations are only *started*, so a clock has
# to wait until they are done (`torch.cuda.synchronize`). And every `.item()` waits too, so a loop
# that looks at each loss can be slow.
#
# ## Stop and resume
# Training gets interrupted. To go on *exactly* you need more than the weights: the optimiser has a
# memory, and the position in the data is part of the state too. (Where there is dropout, so is the
# state of the random generator.) Here the order of the batches is drawn from the number of the
# epoch, so the number of steps done is enough to find the next batch.


# %%
def save(path, step, done):
    state = {"model": step.model.state_dict(), "optimizer": step.optimizer.state_dict()}
    torch.save(state | {"done": done}, path.with_suffix(".tmp"))
    path.with_suffix(".tmp").replace(path)  # if writing fails, the old file is still there


def resume(path, step, parts=("model", "optimizer")):
    state = torch.load(path)
    for part in parts:
        getattr(step, part).load_state_dict(state[part])
    return state["done"] + 1


# %% [markdown]
# ### Predict first · Break it
# A training with lesson 11's steps stops after step 6 and is resumed: once with everything, and
# once with the weights alone and a new optimiser. How do the losses of steps 7 to 10 compare with
# those of a training that never stopped?
#
# <details><summary>The code that ran</summary>
#
# ```python
# for number in steps:
#     epoch, position = divmod(number - 1, len(buckets))
#     index = epoch_order(len(buckets), translators.SEED, epoch)[position]
#     step.optimizer.param_groups[0]["lr"] = noam_learning_rate(number, 64, 5, factor=0.45)
#     batch = corpus.batch(buckets[index])
#     yield step([(batch.source, batch.target)]).item()
# ```
# </details>

# %% demo=true
losses = experiments.interrupted(save, resume)

# %% [markdown]
# With all of the state the losses agree to the last digit. Without the optimiser's memory only the
# first loss is right, since it comes from the weights alone. A new AdamW takes its first steps at a
# rate for which the old one was warmed up. Nothing raises an error; only the losses show it.
#
# ## Several processes
# In **data parallelism** each process takes a share of every batch and computes the gradients of
# *its* mean loss. Then they join their gradients, and all make the same step. What has to be done
# so that it is the step that one process would make with the whole batch?
#
# ### Exercise 12.3 · `data_parallel_gradients`
# ●○○ easy · 10 minutes · 2 points
#
# Join the gradients as the docstring says. The gradients that come out are on the device of those
# that came in.
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
# ### Exercise 12.4 · `break_data_parallel_gradients` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# Here is a classmate's answer to the exercise before; PyTorch's `DistributedDataParallel` does the
# same unless told otherwise. It is right for some batches. Find gradients and numbers of tokens for
# which it is wrong.
#
# <details><summary>Hint · where to look</summary>
#
# Which of the arguments is never used? When does that not matter?
# </details>

# %% broken="averages_the_processes"
from autograder.mistakes.training_on_gpu import averages_the_processes

# %% exercise="break_data_parallel_gradients"
from attention.training_on_gpu import break_data_parallel_gradients

# %% check="break_data_parallel_gradients" points=1
check.break_data_parallel_gradients(break_data_parallel_gradients)

# %% [markdown]
# Now the real thing: `torchrun` starts two processes on your CPU, which talk over the local network
# (*gloo*; GPUs use *nccl*). One gets the ten shortest of twenty numbers, the other the ten longest.
# They join their gradients in both ways, and then one process takes all twenty alone.
#
# <details><summary>The code that ran</summary>
#
# ```python
# tokens = (share.target != PAD).sum()
# total = tokens.clone()
# distributed.all_reduce(total)  # the sum over all processes, in place
# own = training.gradients_of(model, share)
# weighted = [gradient * tokens / total for gradient in own]
# plain = [gradient / world for gradient in own]
# for gradient in weighted + plain:
#     distributed.all_reduce(gradient)
# ```
# </details>

# %% demo=true
experiments.two_processes()

# %% [markdown]
# Weighted with their tokens, the two processes take the step of the single one, up to rounding. The
# plain mean gives another step. Under `torchrun`, `python -m attention.train numbers` shares each
# batch as you did.
#
# ## Limits
# Caches, launch times and the links between machines are not in these counts, and on large clusters
# they may decide. A model that does not fit on one device has to be split itself: data parallelism
# copies all of it to each process.
#
# ## Something of your own
# Plan a training that your machine could finish in one night. For three models of different sizes,
# count FLOPs and bytes with these two functions, and predict from the ladder how many sentence
# pairs each could learn from. Show the plan as a table. Which one would you start?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# Count first: FLOPs say how much of a machine training uses, FLOPs for each byte whether it waits
# for memory, and bytes whether it fits. Products may have 16 bits where weights and sums keep 32.
# Weights, optimiser and position together are the state of a training run, and processes that share
# a batch make the same step if each counts by its tokens.
#
# **Next** [13 · How do you get a sentence out?](../13_decoding/13_decoding.ipynb) The trained model
# writes: greedily, by chance, and with several beams.
#
# ## Open questions
# 1. With `torch.utils.checkpoint` a layer keeps only its input, and computes the rest again in the
#    backward pass. How many bytes are kept then (`experiments.kept(fused=False, seed=0)`), and how
#    much longer does a step take?
# 2. From which length T on do the T² products of an encoder layer (scores, and weights times
#    values) take more FLOPs than its other products, if d_ff = 4 d_model?
# 3. How many gradients may be rounded to 0 before it shows in the loss?
#    (`experiments.train_in("float16 gradients", seed=0, log2_scale=-8)` is a start.)

# %% [markdown] answer=true
# <details><summary>Answers to the open questions</summary>
#
# 1. For one layer of the paper's size, not fused, and one sentence of 256 tokens, PyTorch keeps
#    8 392 704 bytes without checkpointing and 524 288 with it, a sixteenth: the layer's input
#    alone. (`python -m attention.experiments training_on_gpu` counts them again.) Each layer is
#    computed forward twice, so by count a step takes 4 products in place of 3.
# 2. For each token the other products take 12 d_model² multiplications (4 projections, 8 of the
#    network), these 2 · T · d_model. So from T = 6 d_model on: 3 072 for the paper's base.
# 3. Only the end of the range is recorded: with a scale of 2⁻¹⁶ and nearly nine in ten gradients
#    lost, the loss after 60 steps is twice as large.
#
# </details>

# %% [markdown]
# ## References
# - A. Vaswani et al. (2017). *Attention is all you need*, sections 5 and 6.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - P. Micikevicius et al. (2018). *Mixed precision training.*
#   [arXiv:1710.03740](https://arxiv.org/abs/1710.03740)
# - S. Williams, A. Waterman, D. Patterson (2009). *Roofline: an insightful visual performance model
#   for multicore architectures.* Communications of the ACM 52(4).
