# %% [markdown]
# # 18 · Where does the quadratic go?
#
# Attention compares every position with every other: T² scores for T positions. Twice the length,
# four times the cost. Which part of this cost is necessary, and which is only a way of computing?
# And what does one lose by giving up the comparison itself?
#
# **After this lesson** you can
# - compute a softmax over blocks none of which knows the others, and exact attention with it,
#   without ever storing T² numbers (**flash attention**),
# - turn attention into a **recurrent network** by choosing another similarity,
# - say what linear attention and sliding windows forget, from a task that needs it,
# - share keys and values among heads (**grouped-query**, **multi-query**) and count what a cache
#   then takes,
# - tell apart four costs that are easily confused: operations, bytes moved, bytes held, time.
#
# **Time** 140 minutes, ★ 25 more · **Points** 19, of which 3 are for the exercise with a star ·
# **GPU** not needed, and used if there is one · **You need** lessons 01, 05, 06 and 13

# %%
import functools
import json
import math

import torch
from torch.nn import functional as F

from attention.experiments import efficient_attention as experiments
from attention.masked_attention import masked_attention
from attention.provided import demand
from attention.provided.figures import plots
from attention.provided.files import ROOT
from attention.provided.measuring.memory import peak_mib
from attention.provided.measuring.timing import device_at_hand, shortest
from attention.provided.predictions import compare
from attention.provided.training_steps import fewer
from attention.scaled_dot_product_attention import attention_multiplications
from autograder import check

torch.set_num_threads(1)  # a steady clock
device = device_at_hand()

# %% [markdown]
# ## What fails without this idea
# Four heads with d = 32, one sequence. How much memory does attention need
# beyond its inputs?


# %% demo=true
def qkv(T, heads=4, d=32):
    """Queries, keys and values, (1, heads, T, d) each."""
    torch.manual_seed(0)
    return [torch.randn(1, heads, T, d, device=device) for _ in range(3)]


def mib(number):
    return "not measured on this device" if number is None else f"{number:8.1f} MiB"


for T in (1024, 2048, fewer(4096, 2048)):
    with torch.no_grad():
        peak = peak_mib(functools.partial(masked_attention, *qkv(T)), device)
    print(f"T {T:6,d}   context {4 * T * 32 * 4 / 2**20:6.2f} MiB   peak {mib(peak)}")
for T in (32_768, 1_000_000):
    print(f"T {T:9,d}   one table of scores {4 * T * T * 4 / 2**30:12,.0f} GiB")

# %% [markdown]
# The result has T · d numbers. The scores on the way to it have T · T in each head, and so have the
# weights. A book of a million tokens would need terabytes for numbers that are used once and thrown
# away.
#
# ## The idea
# A weighted average is a ratio of two sums, and a sum can be collected piece by piece:
#
# $$c_i = \frac{\sum_j \mathrm{sim}(q_i, k_j)\, v_j}{\sum_j \mathrm{sim}(q_i, k_j)}$$
#
# This is Nadaraya and Watson's formula of lesson 01, and it is softmax attention when
# sim(q, k) = exp(q · k / √d). There are two ways to use it.
#
# - **Keep the similarity, change the order.** Take the keys block by block and keep only the two
#   sums. The result is exact; there are as many operations as before, but the table never exists.
# - **Change the similarity.** If sim(q, k) = φ(q) · φ(k) for some vectors of features φ, then φ(q)
#   can be taken out of both sums. What is left in them depends on no query: it is summed once, for
#   all. No T² at all, but it is another function.
#
# ![Left: the scores of all queries and all keys are one table in main memory, written and read
# several times. Right: blocks of queries and keys meet in small tiles; only a maximum, a total and
# a weighted sum for each query are kept from tile to tile.](figures/tiles.svg)
#
# | name | shape | what it is |
# |---|---|---|
# | `scores` of a tile | `(..., n_q, n_k)` | at most block · block numbers |
# | `maximum`, `total` | `(..., T_q)` | of a query's scores so far; of their exponentials |
# | `context` | `(..., T_q, d_v)` | weighted sum so far |
# | `lse` | `(..., T_q)` | log of the sum of exponentials, over all keys |
# | `state` | `(..., d_k, d_v)` | of linear attention: sum of φ(key) valueᵀ |
# | `normaliser` | `(..., d_k)` | of linear attention: sum of φ(key) |
#
# ## By hand
# The exponentials of large scores overflow, so a softmax subtracts the largest score first. But
# block by block the largest score is not known yet. The way out (Milakov and Gimelshein, 2018): use
# the largest *so far*, and when a larger one comes, shrink the old sums by exp(old − new).

# %%
scores, values = [1.0, 3.0, 2.0, 5.0], [10.0, 20.0, 30.0, 40.0]
maximum, total, context = -math.inf, 0.0, 0.0
for score, value in zip(scores, values, strict=True):
    larger = max(maximum, score)
    shrink, power = math.exp(maximum - larger), math.exp(score - larger)
    total, context = shrink * total + power, shrink * context + power * value
    maximum = larger
    print(f"score {score}: shrink {shrink:.3f}   total {total:.3f}   context {context:.3f}")
print("context / total     ", round(context / total, 6))
weights = torch.tensor(scores).softmax(0)
print("softmax all at once ", round((weights * torch.tensor(values)).sum().item(), 6))

# %% [markdown]
# ### Exercise 18.1 · `online_softmax`
# ●●○ medium · 15 minutes · 3 points
#
# In stages, each earned by itself: with all keys visible (1), with hidden keys (1), the gradients
# (1).
#
# One step of this loop, for a block of n keys and all queries at once. Context and total stay sums:
# the division comes after the last block. Some keys may be hidden, with a score of −∞. A first
# block may even be hidden as a whole; then the sums stay 0 and the maximum −∞, and nothing is NaN:
# neither a result nor, in training, a gradient.
#
# <details><summary>Hint 1 · the idea</summary>
#
# As above, but the new maximum is that of the old one and the block's n scores, for each query.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `maximum` and `total` are (..., T_q). To meet scores (..., T_q, n) or context (..., T_q, d_v) they
# need one more axis at the end. The powers (..., T_q, n) times v (..., n, d_v) is a matrix product.
# </details>
# <details><summary>Hint 3 · “nan” in a query that has seen nothing</summary>
#
# −∞ − (−∞) is NaN. What is subtracted need not be the maximum itself, if that is −∞: any finite
# number gives exp(−∞) = 0. `masked_fill` makes one of it. The maximum that is returned stays −∞.
# To replace NaN afterwards does not help the gradients, and `clamp` also raises every maximum below
# its bound.
# </details>

# %% exercise="online_softmax"
from attention.efficient_attention import online_softmax

# %% check="online_softmax" points=3
check.online_softmax(online_softmax)

# %% [markdown]
# ### Break it
# 4 096 scores in 16 blocks, with your step, and with plain sums of exponentials that subtract
# nothing.

# %%
torch.manual_seed(0)
noise, v = torch.randn(4096), torch.randn(4096, 1)
for scale in (1, 20, 40):
    scores = scale * noise
    exact = (scores.double().softmax(0) @ v.double()).item()
    state = torch.zeros(1, 1), torch.zeros(1), torch.tensor([-math.inf])
    context, total = 0.0, 0.0
    for block, values in zip(scores.split(256), v.split(256), strict=True):
        state = online_softmax(*state, block[None], values)
        context, total = context + block.exp() @ values, total + block.exp().sum()
    online, plain = (state[0] / state[1]).item(), (context / total).item()
    print(f"scores up to {scores.max():5.1f}   exact {exact:8.5f}", end="   ")
    print(f"online {online:8.5f}   plain {plain:8.5f}")

# %% [markdown]
# exp(89) is more than float32 can hold. The running maximum keeps all powers between 0 and 1,
# whatever comes and in whatever order.
#
# ## Flash attention
# Now for all blocks of queries and all blocks of keys: **tiles**. Rabe and Staats (2021) showed
# that attention needs no memory of T². Dao et al. (2022) made it fast on GPUs, by keeping each tile
# in the small, fast memory next to the arithmetic, and called it *FlashAttention*. A tile's scores
# are given:

# %% given="tile_scores"
from attention.efficient_attention import tile_scores

# %% [markdown]
# ### Exercise 18.2 · `flash_attention`
# ●●● hard · 25 minutes · 4 points
#
# In stages, each earned by itself: the context (1), with shorter last tiles and large scores (1),
# `lse` (1), with `causal=True` (1).
#
# For each block of queries, go over the blocks of keys with the three running numbers; then divide.
# Return the contexts, and beside them the logarithm of each query's sum of exponentials, *lse*. It
# takes T numbers, and the backward pass will need it. With `causal=True` key 0 is in the first tile
# and every query may see it, so after the first tile no query has seen nothing.
#
# The check compares with PyTorch's kernel. What it cannot see is how much memory you use: that is
# measured below it.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Two loops, over `range(0, T_q, block)` and, inside, `range(0, T_k, block)`. The inner one is the
# loop of 18.1. You may call your `online_softmax`, or write its steps once more.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# A block of queries begins with sums of 0 and a maximum of −∞ for its own queries only; the last
# block may be shorter. `q[..., i : i + block, :]` knows how many there are. At the end, the blocks
# are joined along the axis of positions.
# </details>
# <details><summary>Hint 3 · lse from maximum and total</summary>
#
# total = Σ exp(score − maximum). Multiply by exp(maximum) and take the logarithm.
# </details>

# %% exercise="flash_attention"
from attention.efficient_attention import flash_attention

# %% check="flash_attention" points=4
check.flash_attention(flash_attention)

# %% [markdown]
# ### Predict first
# Dense attention, your tiles of 256 · 256, and PyTorch's fused kernel, which works in tiles as
# well, at T = 4 096. Your tiles do the same multiplications as dense attention, and a few more, in
# Python loops. By which factor do they need less memory? And are they slower than dense attention,
# or quicker?

# %%
prediction = None  # the time of your tiles, if that of dense attention is 1; None skips this

# %% demo=true
T = fewer(4096, 1024)
q, k, v = qkv(T)
ways = {
    "dense": lambda: masked_attention(q, k, v),
    "tiles": lambda: flash_attention(q, k, v, 256)[0],
    "fused kernel": lambda: F.scaled_dot_product_attention(q, k, v),
}
clocks = {}
with torch.no_grad():
    expected = ways["fused kernel"]()
    for name, way in ways.items():
        off, clock = (way() - expected).abs().max().item(), shortest(way, device, least=2)
        print(f"{name:<13} {clock:7.1f} ms   peak {mib(peak_mib(way, device))}   off by {off:.0e}")
        clocks[name] = clock
tiles = clocks["tiles"] / clocks["dense"]
compare(prediction, tiles, "time of your tiles, dense attention = 1, here and now")

# %% [markdown]
# The same numbers up to rounding, from a small part of the memory: on a CPU dense attention takes
# thirty to eighty times as much as the tiles, varying from run to run. And in spite of the loops
# the tiles are *quicker*, at about 0.6 of the time in the recorded measurement below. All three
# make each score once and use it once, and the tiles have little more to multiply. So the times
# differ for other reasons. One is where the numbers are kept in between; another, how many calls
# Python makes: the fused kernel is a single one. This measurement does not tell them apart.
#
# ## Operations and bytes
# A processor multiplies faster than its main memory delivers numbers. So two things are to be
# counted. *Operations*: T² · (d_k + d_v) multiplications, as in lesson 05. *Bytes moved*: dense
# attention writes the table of scores, reads it for the softmax, writes the weights, reads them for
# the product: 4 · T² numbers at least. Tiles that stay in fast memory move none of these. They read
# each query once, but all keys and values once per block of queries: 2 · T · d · T / block numbers.


# %% demo=true
def numbers_moved(T, d=32, block=None):
    """To and from main memory, for one head; a tile is taken to stay in fast memory."""
    if block is None:
        return 4 * T * T + 4 * T * d
    return 2 * T * d + 2 * T * d * -(-T // block)


lengths = [2**n for n in range(8, 18)]
counted = {
    "multiplications, dense and tiles": [attention_multiplications(T, T, 32, 32) for T in lengths],
    "bytes moved, dense": [4 * numbers_moved(T) for T in lengths],
    "bytes moved, tiles of 256": [4 * numbers_moved(T, block=256) for T in lengths],
    "bytes held, dense": [4 * 2 * T * T for T in lengths],
    "bytes held, tiles of 256": [4 * (2 * 256 * 256 + T * 32) for T in lengths],
}
ax = plots.lines(lengths, counted, xlabel="T", ylabel="how many, for one head", log=True)
ax.set_yscale("log")
for name, numbers in counted.items():
    print(f"{name:<33} T = 4 096: {numbers[4]:14,d}   T = 131 072: {numbers[-1]:18,d}")

# %% [markdown]
# *Counted, not measured; float32, d = 32, both axes logarithmic.* Tiles leave the operations as
# they are, still quadratic. They move fewer bytes, by a constant factor that grows with the block:
# this is quadratic as well. What is no longer quadratic is what must be *held* at one time, which
# ends up as the context itself.
#
# ### Predict first
# The larger the block, the fewer bytes move, as long as a tile fits into the fast memory. How large
# should it be? And is the best block quicker than dense attention? Here is the time of
# `flash_attention` at T = 2 048 with blocks from 32 to T, from `data/efficient_attention.json`. In
# the course's repository `python -m benchmarks.efficient_attention` writes this file, and
# `make bench-efficient-attention` measures all of it on your machine.

# %%
prediction = None  # the quickest block, from 32 to 2048; None skips this

# %% demo=true
stored = json.loads((ROOT / "data" / "efficient_attention.json").read_text(encoding="utf-8"))
machine, settings = stored["machine"], stored["settings"]
print(f"measured on: {machine['device']}, {machine['name']}, PyTorch {machine['torch']}")
blocks, clock = zip(*stored["blocks"][1:], strict=True)
dense = stored["blocks"][0][1]  # measured in turn with them
shares = {"tiles": [ms / dense for ms in clock]}
ax = plots.lines(blocks, shares, xlabel="block", ylabel="time, dense attention = 1", log=True)
ax.axhline(1, color=plots.GREY, linestyle="--", linewidth=1.2)
ax.set_xticks(blocks, blocks)
ax.minorticks_off()
limits = ax.set_ylim(0)
print(*(f"{block}: {ms / dense:.2f}" for block, ms in stored["blocks"][1:]), sep="   ")
compare(prediction, blocks[clock.index(min(clock))], "quickest block")

# %% [markdown]
# *Time of the same multiplications against the block. Dashed: dense attention.* Small tiles pay for
# many small calls. One tile of T · T is a table again, with more passes over it than dense
# attention makes. The best blocks are 128 and 256, at about 0.63 of the time of dense attention.
# (One machine. Why 512 is slower than 1 024 this measurement does not say. That large tiles are
# slower *because* they leave the cache is not proved by this; it is what the count above would lead
# one to expect.) PyTorch's kernel works in tiles without a call from Python for each.
#
# ## Another similarity
# Exact attention stays quadratic in operations. Katharopoulos et al. (2020) replace the exponential
# by a dot product of features. The features are positive, so that no weight is negative:

# %% given="positive_features"
from attention.efficient_attention import positive_features

# %% [markdown]
# $$c_i = \frac{\sum_j (\varphi(q_i) \cdot \varphi(k_j))\, v_j}
# {\sum_j \varphi(q_i) \cdot \varphi(k_j)} = \frac{\varphi(q_i)^\top \sum_j \varphi(k_j)
# v_j^\top}{\varphi(q_i)^\top \sum_j \varphi(k_j)}$$
#
# This is lesson 01 again: a kernel, and an average weighted by it. But this kernel factorises. The
# first form makes T² similarities, the second none.
#
# ### Exercise 18.3 · `linear_attention`
# ●●○ medium · 12 minutes · 2 points
#
# The second form, for all queries at once. The check calls it with 400 000 positions.
#
# <details><summary>Hint 1 · the idea</summary>
#
# (Q Kᵀ) V = Q (Kᵀ V). Which of the two products has an axis of length T twice?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The sum over j of φ(k_j) v_jᵀ is a matrix product: (..., d_k, T_k) times (..., T_k, d_v). The sum
# of the φ(k_j) is (..., d_k), and its product with φ(q) should be (..., T_q, 1).
# </details>
# <details><summary>Hint 3 · should something be added against 0 / 0?</summary>
#
# Some programs add 1e-6 to the denominator. Where all features are small this changes the average.
# They are positive here: leave it out.
# </details>

# %% exercise="linear_attention"
from attention.efficient_attention import linear_attention

# %% check="linear_attention" points=2
check.linear_attention(linear_attention)

# %% [markdown]
# It is no approximation of softmax attention, but another function. How do its weights differ, for
# the same queries and keys? Here is a *lookup*: 24 keys with 8 numbers each, all equally long as
# vectors, and each query equal to one of the keys, *its own*. No other key has a larger product.

# %% demo=true
torch.manual_seed(1)
k = 7 * F.normalize(torch.randn(24, 8), dim=1)
own = torch.randperm(24)  # the place of each query's own key
q = k[own]
similarity = positive_features(q) @ positive_features(k).T
weights = {
    "softmax": (q @ k.T / math.sqrt(8)).softmax(dim=1),
    "linear": similarity / similarity.sum(dim=1, keepdim=True),
}
axes = plots.panels(columns=2, width=4.4, height=3.6)
for ax, (name, table) in zip(axes, weights.items(), strict=True):
    plots.heatmap(table / table.max(), ax, f"{name}, largest {table.max():.2f}")
    ax.plot(own, range(24), ".", color=plots.VERMILION, markersize=4)
    there = table.gather(1, own[:, None]).mean().item()
    most = (table.argmax(dim=1) == own).sum().item()
    rank = torch.linalg.matrix_rank(table.double(), rtol=1e-6).item()
    print(f"{name:<8} weight on the own key {there:.2f} on average", end="   ")
    print(f"the largest for {most} of 24 queries   rank {rank}")

# %% [markdown]
# *Weights of 24 queries on 24 keys with 8 numbers each, as shares of the largest in each panel;
# dots mark a query's own key.* Here the exponential gives nearly all the weight to that key. The
# dot product of features gives it little, and often another key more: features are not equally
# long, even if the keys are. And the table is a product of a (24, 8) and an (8, 24) matrix, so its
# rank is at most 8. Whatever the values are, the 24 contexts are mixtures of 8 vectors. We will see
# what that costs.
#
# ## Attention as a recurrent network
# With a causal mask, query i uses the sums over j ≤ i. These grow by one term a position. So linear
# attention can be read as a recurrent network: its state is one matrix and one vector, whose size
# does not depend on how much was read.
#
# ### Exercise 18.4 · `linear_attention_step`
# ●●○ medium · 12 minutes · 3 points
#
# In stages, each earned by itself: the new sums (1), the context (1), with axes in front (1).
#
# Take in one position, then read out its context. The sums that came in must not be changed.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Add φ(key) valueᵀ to the state and φ(key) to the normaliser. A position sees itself: add first.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# (..., d_k, 1) times (..., 1, d_v) broadcasts to (..., d_k, d_v). For the context, the query may be
# a row (..., 1, d_k) in front of the state; one axis of the result is then too many.
# </details>
# <details><summary>Hint 3 · “changed by the call”</summary>
#
# `state += …` writes into the tensor that was handed in. `state = state + …` makes a new one.
# </details>

# %% exercise="linear_attention_step"
from attention.efficient_attention import linear_attention_step

# %% check="linear_attention_step" points=3
check.linear_attention_step(linear_attention_step)

# %% [markdown]
# For training, all positions are there at once, and T steps one after the other would be slow. The
# same sums can be made in blocks: within a block by scores, from block to block by the state.

# %% given="causal_linear_attention"
from attention.efficient_attention import causal_linear_attention

# %% demo=true
T = fewer(2048, 256)
q, k, v = (x[0, 0].cpu().double() for x in qkv(T))
similarity = (positive_features(q) @ positive_features(k).T).tril()
dense = similarity / similarity.sum(dim=1, keepdim=True) @ v
for dtype in (torch.float64, torch.float32):
    Q, K, V = (x.to(dtype) for x in (q, k, v))
    state, normaliser, contexts = Q.new_zeros(32, 32), Q.new_zeros(32), []
    for one in zip(Q, K, V, strict=True):
        context, state, normaliser = linear_attention_step(*one, state, normaliser)
        contexts.append(context)
    steps, blocks = torch.stack(contexts), causal_linear_attention(Q, K, V)
    off = [(x.double() - dense).abs().max().item() for x in (steps, blocks)]
    print(f"{dtype}, {T} positions: steps off by {off[0]:.0e}, blocks off by {off[1]:.0e}")

# %% [markdown]
# Three ways, one function. And the price of one more token? From the same file:

# %% demo=true
read = [T for T, _ in stored["step"]["cache"]]
clock = {
    "softmax, keys and values in a cache": [us for _, us in stored["step"]["cache"]],
    "linear, recurrent": [us for _, us in stored["step"]["recurrent"]],
}
ax = plots.lines(read, clock, xlabel="tokens read before", ylabel="µs for one more", log=True)
ax.set_yscale("log")
for T, *both in zip(read, *clock.values(), strict=True):
    print(f"after {T:6,d} tokens: cache {both[0]:8.1f} µs   recurrent {both[1]:5.1f} µs")
for dtype, rows in stored["step"]["error"].items():
    print(f"error in {dtype}:", *(f"{off:.0e} after {T} tokens" for T, off in rows))

# %% [markdown]
# *Time for one more token of one layer of four heads, d = 32, both axes logarithmic.* The recurrent
# form takes the same time however much was read. With a cache every token must look at all before
# it; after 256 tokens that is still the cheaper way.
#
# ## What it costs
# All of it together: time and peak memory of one forward pass. *Window* is lesson 06's sliding
# window with 64 neighbours on each side (Child et al., 2019, and Beltagy et al., 2020, trained
# models with such patterns), computed in blocks: a block of 64 queries meets three blocks of 64
# keys.

# %% given="window_in_blocks"
from attention.efficient_attention import window_in_blocks

# %% [markdown]
# ### Predict first
# Five ways, on doubly logarithmic axes: dense, tiles, fused kernel, window, linear. Which of them
# rise with slope 2 in time, and which in memory? (The others: about 1, or less.)

# %%
prediction = None  # how many of the five have slope 2 in time; None skips this

# %% demo=true
axes, slopes = plots.panels(columns=2, width=4.2, height=3.4, share=False), []
for name, rows in stored["cost"].items():
    lengths, clock, peaks = zip(*rows, strict=True)
    axes[0].plot(lengths, clock, "o-", markersize=3, label=name)
    measured = [(T, peak) for T, peak in zip(lengths, peaks, strict=True) if peak]
    if measured:
        axes[1].plot(*zip(*measured, strict=True), "o-", markersize=3)
    shown = f"{clock[-1]:9.1f} ms   peak {mib(peaks[-1])}"
    power = math.log(clock[-1] / clock[-4], lengths[-1] / lengths[-4])
    print(f"{name:<13} T = {lengths[-1]:6,d} {shown}   last points: time ∝ T^{power:.1f}")
    slopes.append(power)
once, again = (dict(row[:2] for row in stored["cost"][name])[2048] for name in ("tiles", "dense"))
ratios = once / again, dict(stored["blocks"])[256] / dict(stored["blocks"])[0]
print("tiles of 256 ÷ dense at T = 2 048: {:.2f} here, {:.2f} above".format(*ratios))
budget = settings["budget"]
axes[1].axhline(budget, color=plots.GREY, linestyle="--", linewidth=1.2)
axes[1].annotate(f"budget: {budget:,} MiB", (512, budget), (0, 3), textcoords="offset points")
for ax, label in zip(axes, ("milliseconds", "peak MiB"), strict=True):
    ax.set(xscale="log", yscale="log", xlabel="T", ylabel=label)
    ax.set_xticks([512, 2048, 8192, 32768], ["512", "2 048", "8 192", "32 768"])
    ax.minorticks_off()
legend = plots.legend(axes[0], fontsize=8)
compare(prediction, sum(slope > 1.5 for slope in slopes), "ways with slope 2 in time")

# %% [markdown]
# *Four heads, d = 32, float32, forward only. Dashed: the budget; dense attention stops where it
# would exceed it.* In time three are quadratic: dense, tiles and fused kernel. At T = 8 192 the
# tiles take 0.6 of the time of dense attention and the fused kernel a quarter, but these are
# factors, and the slope stays 2. In memory only dense attention is quadratic. Window and linear
# attention are about linear in both. The last line compares your tiles with dense attention in the
# two measurements. The exponents are rough, from two points each, at lengths that differ by a
# factor of 8, and a single point can be off by a factor: dense attention at T = 1 024 lies above
# the line through its neighbours. Another machine moves the lines and their crossings, so measure
# on yours.
#
# ## What is given up
# A window does not see beyond its reach. A state of fixed size cannot hold arbitrarily much.
# Both are obvious; how much does it matter? Here is a task made to need it, **associative recall**.
# A sequence shows 32 pairs of a key and a value, then the 32 keys again, in another order. For
# each, the model is to say the value that stood beside it: one of 16, so chance is 1 in 16.

# %% demo=true
keys, shown, answers = experiments.make(1, 4, torch.Generator().manual_seed(0))
pairs = zip(keys[0].tolist(), shown[0].tolist(), strict=False)
print("shown   ", *(f"key {key} → {value}   " for key, value in pairs))
print("asked   ", *(f"key {key} → ?   " for key in keys[0, 4:].tolist()))
print("answers ", *answers[0].tolist())

# %% [markdown]
# The model is one layer of attention with one head, between embeddings and a linear layer to the 16
# values. Everything is the same but the attention, and the length d_k of its queries and keys.
#
# ### Predict first
# With d_k = 16, 32 pairs and a window of 32 on each side: which share will dense, linear and window
# attention get right? (Chance is 0.06.) Here is one seed of the first two, live, with *your*
# functions:

# %%
prediction = None  # the share that the window gets right, from 0 to 1; None skips this

# %% demo=true
for name, attention in (("dense", masked_attention), ("linear", linear_attention)):
    torch.manual_seed(0)
    model = experiments.Recaller(attention, d_k=16)
    experiments.train(model, steps=300, label=f"{name}, d_k = 16")
    few, many = (experiments.right(model, pairs=pairs)[0] for pairs in (4, 32))
    print(f"{name:<7} right with 4 pairs {few:.3f}, with 32 pairs {many:.3f}")

# %% [markdown]
# With three seeds, more steps and more widths, from the stored file:

# %% demo=true
rows = [row for row in stored["recall"] if row["steps"] == settings["steps"]]
window = [row["right"]["32"] for row in rows if (row["kind"], row["d_k"]) == ("window", 16)]
axes = plots.panels(columns=3, width=3.4, height=3.2, share=False)
colours = {"dense": plots.BLUE, "linear": plots.VERMILION, "window": plots.GREEN}
shapes = {"dense": "o", "linear": "s", "window": "^"}
beside = {"dense": 0.93, "linear": 1.0, "window": 1.07}  # so that no dot hides another
for row in rows:
    kind, d_k, dot = row["kind"], row["d_k"], {"color": colours[row["kind"]], "alpha": 0.6}
    axes[0].plot(d_k * beside[kind], row["right"]["32"], shapes[kind], **dot)
    if d_k == 16:
        counts = [int(pairs) * beside[kind] for pairs in row["right"]]
        axes[1].plot(
            counts, row["right"].values(), shapes[kind] + "-", markersize=4, linewidth=1, **dot
        )
        distance = range(1, len(row["by distance"]) + 1)
        axes[2].plot(distance, row["by distance"], linewidth=1, label=kind, **dot)
titles = ("32 pairs", "d_k = 16", "d_k = 16, 32 pairs")
labels = ("d_k", "pairs shown", "how far back the pair stood")
for ax, title, label in zip(axes, titles, labels, strict=True):
    ax.axhline(1 / settings["values"], color=plots.GREY, linestyle="--", linewidth=1.2)
    ax.set(ylim=(0, 1.05), title=title, xlabel=label)
for ax, ticks in ((axes[0], (8, 16, 32, 64, 128)), (axes[1], (4, 8, 16, 32))):
    ax.set_xscale("log")
    ax.set_xticks(ticks, ticks)
    ax.minorticks_off()
axes[0].set_ylabel("right")
plots.tell_apart(axes[2])
handles = {line.get_label(): line for line in axes[2].lines[:-1]}
legend = axes[0].figure.legend(
    handles.values(), handles, fontsize=8, ncols=3, loc="outside upper center"
)
compare(prediction, sorted(window)[1], "window, d_k = 16, 32 pairs: right, median of three seeds")

# %% demo=true
for kind in colours:
    for d_k in sorted({row["d_k"] for row in rows}):
        found = [row["right"]["32"] for row in rows if (row["kind"], row["d_k"]) == (kind, d_k)]
        print(f"{kind:<7} d_k {d_k:<4} 32 pairs:", *(f"{share:.3f}" for share in found))
longer = [row for row in stored["recall"] if row["steps"] > settings["steps"]]
found = [row["right"]["32"] for row in longer]
steps = longer[0]["steps"], settings["steps"]
print(f"linear, d_k {longer[0]['d_k']}, {steps[0]} steps instead of {steps[1]}:", *found)
window = [row["by distance"] for row in rows if row["kind"] == "window"]
reach = settings["reach"]
near = [sum(shares[:reach]) / reach for shares in window]  # means over the distances
far = [sum(shares[reach:]) / len(shares[reach:]) for shares in window]
print(f"window within its reach: {min(near):.3f} to {max(near):.3f}", end="   ")
print(f"beyond: {min(far):.3f} to {max(far):.3f}   chance: {1 / settings['values']:.3f}")

# %% [markdown]
# *Share of right answers on 500 new sequences; one dot or line for each of three seeds, moved
# a little sideways in the first two panels so that none hides another. Dashed: chance. Left:
# against d_k. Middle: the same models at d_k = 16 with fewer pairs. Right: against the distance
# between a pair and its question.*
#
# With d_k = 16 and 32 pairs dense attention gets 1.00, linear attention 0.70 and the window 0.55.
#
# - **Dense** attention recalls everything at every width that was tried.
# - The **window** is as good as dense up to its reach, and guesses beyond. With up to 16 pairs no
#   question is farther than that from its pair, so all is right. Beyond, training cannot help: the
#   pair is not there. (Several layers would carry it further, by one reach each, as in lesson
#   06.)
# - **Linear** attention sees all distances equally well, and not well enough where the pairs are
#   many for its width. As d_k grows, the one thing that differs between its models, it reaches
#   dense, and at d_k = 16 it does better with fewer pairs. Four times as many steps change little.
#   So it is not the distance, and hardly the training, but room: the state holds a sum of φ(key)
#   valueᵀ, a table of rank d_k at most. Pairs are read out mixed unless their features are nearly
#   orthogonal. No more than d_k vectors can be orthogonal, and positive ones never quite are: they
#   come near only where one is almost 0 wherever the other is not.
#
# This is one task, made to be hard for a small state, with one layer. Schlag et al. (2021) give the
# argument about d_k. Arora et al. (2023) compared language models with and without attention, and
# report that most of the difference between them is recall of this kind.
#
# ## Fewer keys to remember
# With a cache, every new token reads all keys and values of all layers. Shazeer (2019) found that
# this reading, and not arithmetic, sets the pace when tokens are written one by one. A third way to
# save: let several query heads share one head of keys and values. All of them: **multi-query
# attention** (Shazeer). Groups of them: **grouped-query attention** (Ainslie et al., 2023).
#
# ### Exercise 18.5 · `grouped_query_attention`
# ●●○ medium · 12 minutes · 2 points
#
# `masked_attention` of lesson 06 is imported; it broadcasts over axes in front.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Either give every query head a copy of its keys and values, or give the queries an axis for the
# groups and let broadcasting do the rest, without copies.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# q as (B, H_kv, H / H_kv, T_q, d_k) meets k as (B, H_kv, 1, T_k, d_k). At the end two axes become
# one again.
# </details>
# <details><summary>Hint 3 · the right numbers in the wrong heads</summary>
#
# Neighbours share: with 6 heads on 3, heads 0 and 1 share the first. `repeat` copies the row of
# heads as a whole, and `repeat_interleave` each head.
# </details>

# %% exercise="grouped_query_attention"
from attention.efficient_attention import grouped_query_attention

# %% check="grouped_query_attention" points=2
check.grouped_query_attention(grouped_query_attention)

# %% [markdown]
# ### Exercise 18.6 · `break_grouped_query_attention` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# This answer gives the heads of keys and values to the queries in turn. It is right for multi-head
# and for multi-query attention. Find an input for which it is not.
#
# <details><summary>Hint 1 · where to look</summary>
#
# Six heads of queries, three of keys and values. Which of the three does each of the six look at
# here, and which should it?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# Why does this not matter if H_kv is 1, or H? Take the smallest H_kv that is neither. With a single
# key its weight is 1, so the result is its value: then the values alone show who looks where.
# </details>

# %% broken="deals_them_out"
from autograder.mistakes.efficient_attention import deals_them_out

# %% exercise="break_grouped_query_attention"
from attention.efficient_attention import break_grouped_query_attention

# %% check="break_grouped_query_attention" points=1
check.break_grouped_query_attention(break_grouped_query_attention)

# %% [markdown]
# What does one sequence take in the cache?

# %% given="kv_cache_bytes"
from attention.efficient_attention import kv_cache_bytes

# %% [markdown]
# The sizes of Llama 2 70B (Touvron et al., 2023): 80 layers, 64 query heads of d_head = 128. It
# shares keys and values in groups of 8. What if it did not, or if it shared more?

# %% demo=true
names = {64: "multi-head", 8: "grouped-query", 1: "multi-query"}
print(f"{'':<24}{'T = 4 096':>14}{'T = 100 000':>14}")
for heads, name in names.items():
    sizes = [kv_cache_bytes(T, 80, heads, 128) / 2**30 for T in (4096, 100_000)]
    print(f"{name:<14} {heads:3} heads {sizes[0]:10.2f} GiB {sizes[1]:10.2f} GiB")
state = 80 * 64 * (128 * 128 + 128) * 2 / 2**30
print(f"state of linear attention{state:9.2f} GiB {state:10.2f} GiB")

# %% [markdown]
# *One sequence, 2 bytes a number; counted.* The cache shrinks by the factor of sharing, and stays
# proportional to T. What does it cost in quality? Ainslie et al. report that grouped-query models,
# made from a trained multi-head model by training it 5 % longer, come close to its quality at
# nearly the speed of multi-query. (The last line is what a state of this lesson would take at
# these sizes, whatever T is. Such a model was not trained.)
#
# ### Prefill and decode
# A language model answers in two phases. In **prefill** it reads the whole prompt at once: each
# matrix is read once and used for every position. In **decode** it writes one token at a time, and
# for each of them reads all matrices and the whole cache again. Lesson 12 counted operations for
# each byte moved, since a processor that gets too few of them waits for its memory. Count them for
# both phases.
#
# ### Exercise 18.7 · `operations_per_byte`
# ●●○ medium · 10 minutes · 1 point
#
# Both phases are the same count: a prompt of 1 000 tokens has `n_new` = 1 000 and an empty cache,
# the token after it has `n_new` = 1 and `n_cached` = 1 000.
#
# <details><summary>Hint 1 · the idea</summary>
#
# How many numbers do the four matrices have together? Each new position is multiplied by all of
# them, so that is also its number of products there.
# </details>
# <details><summary>Hint 2 · what attention adds</summary>
#
# A score is a product of d_head numbers, in all heads together d_model. As many products add the
# value to the average. Sharing changes neither, only how many keys and values are read.
# </details>
# <details><summary>Hint 3 · what the batch shares</summary>
#
# All sequences use the same matrices, which are read once. Each has a cache of its own.
# </details>

# %% exercise="operations_per_byte"
from attention.efficient_attention import operations_per_byte

# %% check="operations_per_byte" points=1
check.operations_per_byte(operations_per_byte)

# %% [markdown]
# ### Predict first
# Serving more users at once shares the reading of the matrices. With 256 sequences of 4 096 cached
# tokens each (d_model = 8 192, no sharing), how many operations for each byte does decode reach?

# %%
prediction = None  # operations for each byte; None skips this

# %% demo=true
print(f"prefill of 4 096 tokens, one sequence: {operations_per_byte(4096, 0, 1, 8192):,.0f}")
for batch in (1, 16, 256):
    found = {group: operations_per_byte(1, 4096, batch, 8192, group) for group in (1, 8, 64)}
    told = "   ".join(f"{found[group]:5.1f} in groups of {group}" for group in found)
    print(f"decode, {batch:3} sequences: {told}")
compare(prediction, operations_per_byte(1, 4096, 256, 8192), "256 sequences, no sharing")

# %% [markdown]
# Prefill has thousands of operations for each byte, decode has about one. A GPU that can do some
# hundred operations in the time in which it reads a byte computes in prefill and waits in decode. A
# larger batch helps only until the caches outweigh the matrices: they are not shared, and each of
# their numbers is used by one query. In groups of 8 it is used by eight. That is why sharing keys
# and values makes decode faster, and not only the cache smaller.
#
# ## Limits
# - The stored times hold for one machine, one thread of a CPU and float32; nothing in the file was
#   measured on a GPU. The counts hold everywhere.
# - Linear attention was given one feature map. Others come nearer to the exponential, with more
#   features (Choromanski et al., 2021).
# - Recall was tested with one layer that was trained for some hundred steps, on one task.
# - What sharing keys costs in quality is cited here, not measured.
#
# ## Summary
# The quadratic is in three places: in what is held, in what is moved, and in what is computed.
# Tiles with a running maximum remove the first, exactly, and make the second smaller; the third
# goes only if another function is computed, by a window that does not look far or by a state that
# does not hold much. Sharing keys and values among heads leaves all that as it is and makes the
# cache of a decoder smaller.
#
# ## The whole course in a few sentences
# You began with a weighted average of examples, whose weights come from a similarity. Making query,
# key and value three learned views of a token, dividing by √d, hiding what must not be seen and
# doing it several times side by side gave attention; positions, residuals and norms made it a deep
# model; training, decoding and honest measurement made it a translator, a language model and a
# reader of images. Here the average came back, and the question of what may be left out of it.
#
# **Where to go next.** Train something of your own: `python -m attention.train` with your
# sentences, or lesson 15's language model on your texts. Read a paper from the list below beside
# your code. Write the tiles as one kernel, in Triton on a GPU. And whenever a result is claimed,
# ask for what was asked here: next to what, over how many seeds, and what would refute it?
#
# ## Open questions
# No points, no check; the notebook has what is needed.
# 1. With a causal mask nearly half of all tiles are hidden as a whole: skip them in your
#    `flash_attention`, and measure.
# 2. Give linear attention features of your own: squares of these, exponentials, the softmax of a
#    vector, or twice as many. Which recall more of 32 pairs at d_k = 16?
# 3. At which T does the window in blocks overtake the fused kernel? And on your machine?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. At T = 2 048 with blocks of 256, 36 of 64 tiles are left, and those of the upper triangle are
#    skipped: on one core of a CPU it took half of the time.
# 2. Of five others, only twice as many features recalled more. Shares right after 500 steps,
#    seeds 0, 1 and 2: elu(x) + 1 0.70, 0.70, 0.70; its square 0.66, 0.67, 0.67; its fourth
#    power 0.63, 0.65, 0.59; exp(x) 0.56, 0.54, 0.55; the softmax of x 0.52, 0.52, 0.49; exp(x) and
#    exp(−x) side by side, 32 features, 0.78, 0.82, 0.79. A state with more rows has more room, as
#    with a larger d_k.
# 3. In `data/efficient_attention.json` between T = 512, where the window takes 3.6 ms and the fused
#    kernel 2.1, and T = 1 024, where it is 7.1 against 8.2.
#
# </details>

# %% [markdown]
# ## The way back ★
# Training needs gradients. Lesson 05 computed them from the weights: the table again. Flash
# attention computes each tile a second time, from q, k and the T numbers of *lse*, and pays with
# operations for memory.
#
# ### Exercise 18.8 · `flash_attention_backward` ★
# ●●● hard · 25 minutes · 3 points
#
# In stages, each earned by itself: `grad_v` (1), `grad_k` (1), `grad_q` (1).
#
# For each tile: weights = exp(scores − lse), the difference first: scores may be as large as 800,
# and exp(800) overflows. Then as in exercise 5.8. The number that the weights of a row share,
# Σⱼ weightᵢⱼ · grad_weightᵢⱼ, is a sum over *all* tiles of the row, but it equals
# contextᵢ · grad_contextᵢ, which is known beforehand. As in 18.2, the check cannot see how much
# memory you use: one table of everything would pass, and miss the point.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The formulas of lesson 05 for one tile give its part of three gradients. A query gets parts from
# all tiles of its row, a key and its value from all tiles of their column.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# A tile's weights are (..., n_q, n_k). `lse[..., i : i + block, None]` meets them. grad_q of the
# block is (..., n_q, d_k), from (..., n_q, n_k) and the block's keys.
# </details>
# <details><summary>Hint 3 · only the last tile is left</summary>
#
# The gradients begin as zeros, and every tile adds its part to a slice of them.
# </details>

# %% exercise="flash_attention_backward"
from attention.efficient_attention import flash_attention_backward

# %% check="flash_attention_backward" points=3
check.flash_attention_backward(flash_attention_backward)


# %% demo=true
def with_autograd(q, k, v):
    leaves = [x.requires_grad_() for x in (q, k, v)]
    masked_attention(*leaves).sum().backward()


def with_tiles(q, k, v):
    context, lse = flash_attention(q, k, v, 256)
    flash_attention_backward(q, k, v, context, lse, torch.ones_like(context), 256)


for T in (1024, fewer(2048, 1024)):
    back = peak_mib(lambda T=T: with_autograd(*qkv(T)), device)
    with torch.no_grad():
        tiles = peak_mib(lambda T=T: with_tiles(*qkv(T)), device)
    print(f"T {T:5,d}   forward and back: dense {mib(back)}   tiles {mib(tiles)}")

# %% [markdown]
# PyTorch's fused kernels do this for you: `F.scaled_dot_product_attention`, or `fused=True` in
# lesson 07.
#
# ## References
# - M. Milakov, N. Gimelshein (2018). *Online normalizer calculation for softmax.*
#   [arXiv:1805.02867](https://arxiv.org/abs/1805.02867)
# - M. N. Rabe, C. Staats (2021). *Self-attention does not need O(n²) memory.*
#   [arXiv:2112.05682](https://arxiv.org/abs/2112.05682)
# - T. Dao, D. Y. Fu, S. Ermon, A. Rudra, C. Ré (2022). *FlashAttention: fast and memory-efficient
#   exact attention with IO-awareness.* [arXiv:2205.14135](https://arxiv.org/abs/2205.14135)
# - A. Katharopoulos, A. Vyas, N. Pappas, F. Fleuret (2020). *Transformers are RNNs: fast
#   autoregressive Transformers with linear attention.*
#   [arXiv:2006.16236](https://arxiv.org/abs/2006.16236)
# - K. Choromanski et al. (2021). *Rethinking attention with Performers.*
#   [arXiv:2009.14794](https://arxiv.org/abs/2009.14794)
# - I. Schlag, K. Irie, J. Schmidhuber (2021). *Linear Transformers are secretly fast weight
#   programmers.* [arXiv:2102.11174](https://arxiv.org/abs/2102.11174)
# - S. Arora et al. (2023). *Zoology: measuring and improving recall in efficient language models.*
#   [arXiv:2312.04927](https://arxiv.org/abs/2312.04927)
# - R. Child, S. Gray, A. Radford, I. Sutskever (2019). *Generating long sequences with sparse
#   Transformers.* [arXiv:1904.10509](https://arxiv.org/abs/1904.10509)
# - I. Beltagy, M. Peters, A. Cohan (2020). *Longformer: the long-document Transformer.*
#   [arXiv:2004.05150](https://arxiv.org/abs/2004.05150)
# - N. Shazeer (2019). *Fast Transformer decoding: one write-head is all you need.*
#   [arXiv:1911.02150](https://arxiv.org/abs/1911.02150)
# - J. Ainslie et al. (2023). *GQA: training generalized multi-query Transformer models from
#   multi-head checkpoints.* [arXiv:2305.13245](https://arxiv.org/abs/2305.13245)
# - H. Touvron et al. (2023). *Llama 2: open foundation and fine-tuned chat models.*
#   [arXiv:2307.09288](https://arxiv.org/abs/2307.09288)
