# %% [markdown]
# # 18 · Where does the quadratic go?
#
# Attention compares every position with every other: T² scores for T positions. Which part of this
# cost is necessary, and which comes only from the way it is computed?
#
# **After this lesson** you can
# - compute exact attention without ever storing T² numbers (**flash attention**),
# - turn attention into a **recurrent network** by choosing another similarity,
# - say what linear attention and sliding windows forget,
# - say what sharing keys and values among heads saves (**grouped-query**, **multi-query**
#   attention),
# - tell four costs apart: operations, bytes moved, bytes held, time.
#
# **Time** 90 minutes, ★ 30 more · **Points** 15, of which 3 are for exercises with a star ·
# **GPU** not needed, and used if there is one · **You need** lessons 01, 05, 06 and 13

# %%
import math

import torch
from torch.nn import functional as F

from attention.experiments import efficient_attention as experiments
from autograder import check

torch.set_num_threads(1)  # a steady clock

# %% [markdown]
# ## A table that is used once
# How much memory does attention need beyond its inputs, with four heads of d = 32 and one sequence?

# %% demo=true
experiments.dense_memory()

# %% [markdown]
# The result has T · d numbers in each head, but the table of scores has T · T. For a book of a
# million tokens it would take terabytes, only to be used once.
#
# ## A ratio of two sums
# A weighted average is a ratio of two sums, and a sum can be collected piece by piece:
#
# $$c_i = \frac{\sum_j \mathrm{sim}(q_i, k_j)\, v_j}{\sum_j \mathrm{sim}(q_i, k_j)}$$
#
# This is the formula of lesson 01; with sim(q, k) = exp(q · k / √d) it is softmax attention. There
# are two ways to use it.
#
# - **Keep the similarity, change the order.** Take the keys block by block and keep only the two
#   sums. A block of queries against a block of keys is a **tile**; only one tile of the table
#   exists at a time. The result is exact, and takes as many operations.
# - **Change the similarity.** If sim(q, k) = φ(q) · φ(k) for some features φ, then φ(q) can be
#   taken out of both sums, and the rest is summed once for all queries. There is no T² any more,
#   but this is another function.
#
# ![Left: the scores of all queries and all keys are one table in main memory, written and read
# several times. Right: blocks of queries and keys meet in small tiles; only a maximum, a total and
# a weighted sum for each query are kept from tile to tile.](figures/tiles.svg)
#
# | name | shape | what it is |
# |---|---|---|
# | `scores` of a tile | `(..., n_q, n_k)` | at most block · block numbers |
# | `maximum` | `(..., T_q)` | a query's largest score so far |
# | `total` | `(..., T_q)` | sum of exp(score − maximum) over its keys so far |
# | `context` | `(..., T_q, d_v)` | weighted sum so far |
# | `lse` | `(..., T_q)` | log of the sum of exponentials over all keys |
# | `state` | `(..., d_k, d_v)` | of linear attention: sum of φ(key) valueᵀ |
# | `normaliser` | `(..., d_k)` | of linear attention: sum of φ(key) |
#
# ## A softmax, score by score
# The exponentials of large scores overflow, so a softmax subtracts the largest score first. Block
# by block, we can only subtract the largest *so far* (Milakov and Gimelshein, 2018), and when a
# larger one comes, multiply the old sums by exp(old − new).

# %%
maximum, total, context = -math.inf, 0.0, 0.0
for score, value in ((1.0, 10.0), (3.0, 20.0), (2.0, 30.0), (5.0, 40.0)):
    larger = max(maximum, score)
    shrink, power = math.exp(maximum - larger), math.exp(score - larger)
    total, context = shrink * total + power, shrink * context + power * value
    maximum = larger
    print(f"score {score}: shrink {shrink:.3f}   total {total:.3f}   context {context:.3f}")
at_once = torch.tensor([1.0, 3.0, 2.0, 5.0]).softmax(0) @ torch.tensor([10.0, 20.0, 30.0, 40.0])
print(f"context / total {context / total:.5f}   softmax all at once {at_once:.5f}")

# %% [markdown]
# ### Exercise 18.1 · `online_softmax`
# ●●○ medium · 15 minutes · 3 points
#
# Graded in three parts: with all keys visible (1), with hidden keys (1), the gradients (1).
#
# Write one step of this loop, for a block of n keys and all queries at once. Context and total stay
# sums; they are divided after the last block. Hidden keys have scores of −∞. If a whole first block
# is hidden, the sums stay 0 and the maximum −∞, and nothing is NaN: neither a result nor, in
# training, a gradient.
#
# <details><summary>Hint 1 · the idea</summary>
#
# For each query, the new maximum is the largest of the old one and the block's n scores.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `maximum` and `total`, (..., T_q), need one more axis at the end to meet scores (..., T_q, n) or
# context (..., T_q, d_v). Powers (..., T_q, n) times v (..., n, d_v) is a matrix product.
# </details>
# <details><summary>Hint 3 · “nan” in a query that has seen nothing</summary>
#
# −∞ − (−∞) is NaN. While the maximum is −∞, subtract any finite number instead (`masked_fill`), but
# return −∞. Replacing NaN afterwards does not help the gradients, and `clamp` also raises every
# maximum below its bound.
# </details>

# %% exercise="online_softmax"
from attention.efficient_attention import online_softmax

# %% check="online_softmax" points=3
check.online_softmax(online_softmax)

# %% [markdown]
# Step through the tiles of one query, block of keys after block, and watch the weights so far:
# whenever a larger score comes, all earlier bars shrink together. The size of a tile changes the
# steps, not the result.

# %% demo=true
from attention.provided.figures import moving

moving.tiles()

# %% [markdown]
# ### Break it
# On 4 096 scores in 16 blocks, compare your step with plain sums of exponentials, without any
# maximum.

# %% demo=true
experiments.large_scores(online_softmax)

# %% [markdown]
# exp(89) is too large for float32. The running maximum keeps all powers between 0 and 1, in
# whatever order the scores come.
#
# ## Flash attention
# Now cut the queries into blocks, too. Rabe and Staats (2021) showed that attention needs no memory
# of T². Dao et al. (2022) made this fast, as *FlashAttention*, by keeping each tile in a GPU's
# small, fast memory. The scores of a tile are given:

# %%
from attention.provided import demand  # refuses numbers that make no sense

# %% given="tile_scores"
from attention.efficient_attention import tile_scores

# %% [markdown]
# ### Exercise 18.2 · `flash_attention`
# ●●● hard · 25 minutes · 4 points
#
# Graded in four parts: the context (1), with shorter last tiles and large scores (1), `lse` (1),
# with `causal=True` (1).
#
# For each block of queries, go over the blocks of keys with a running maximum, total and context,
# then divide. Return the contexts and *lse*, the logarithm of each query's sum of exponentials,
# which the backward pass needs. With `causal=True`, every query sees at least key 0, in its first
# tile. The check compares with PyTorch's kernel. It cannot see how much memory you use; we measure
# this below.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Write two loops, over `range(0, T_q, block)` and, inside, `range(0, T_k, block)`. The inner one is
# the loop of 18.1: you may call your `online_softmax`.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Each block of queries begins with sums of 0 and a maximum of −∞; the last block may be shorter, so
# take its size from `q[..., i : i + block, :]`. Join the blocks along the axis of positions.
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
# At T = 4 096, your tiles of 256 · 256 do the same multiplications as dense attention, in Python
# loops. Are they slower than dense attention, or quicker? (*Dense, kept* is the control: the same
# table, allocated once beforehand. The fused kernel is PyTorch's; it also works in tiles.)
#
# <details><summary>The code that ran</summary>
#
# ```python
# def kept() -> Tensor:
#     torch.matmul(q / math.sqrt(q.shape[-1]), k.mT, out=table)
#     return torch.softmax(table, dim=-1, out=table) @ v
#
# ways: dict[str, Callable[[], Tensor]] = {
#     "dense": lambda: masked_attention(q, k, v),
#     "dense, kept": kept,
#     "tiles": lambda: flash_attention(q, k, v, 256)[0],
#     "fused kernel": lambda: F.scaled_dot_product_attention(q, k, v),
# }
# ```
# </details>

# %%
prediction = None  # the time of your tiles, if that of dense attention is 1; None skips this

# %% demo=true
from attention.provided.predictions import compare

tiles = experiments.time_and_memory(flash_attention)
compare(prediction, tiles, "time of your tiles, dense attention = 1, here and now")

# %% [markdown]
# The results agree up to rounding. On a CPU, dense attention takes at least twenty times as much
# memory as the tiles. In spite of the loops the tiles are *quicker*: in the measurement recorded
# below they take about 0.6 of the time. But where numbers are kept is not the reason here: *dense,
# kept* writes all T² scores and weights, too, and takes no longer than the tiles. On this CPU, what
# costs is to ask for two new tables in every call.
#
# ## Operations and bytes
# A processor multiplies numbers faster than its main memory delivers them, so we count two things.
# *Operations*: T² · (d_k + d_v) multiplications, as in lesson 05. *Bytes moved*: dense attention
# writes and reads the scores, then the weights, at least 4 · T² numbers. Tiles that stay in fast
# memory move none of these. They read all keys and values once per block of queries: 2 · T · d · T
# / block numbers.

# %% demo=true
_ = experiments.counted_costs()

# %% [markdown]
# *Counted, not measured; float32, d = 32, both axes logarithmic.* With tiles, operations and bytes
# moved stay quadratic, but the bytes are fewer by a factor that grows with the block. Only the
# memory *held* at one time is no longer quadratic.
#
# ### Predict first
# The larger the block, the fewer bytes move, as long as a tile fits into the fast memory. Which
# block is the quickest? (Recorded by `python -m benchmarks.efficient_attention`.)

# %%
prediction = None  # the quickest block, from 32 to 2048; None skips this

# %% demo=true
compare(prediction, experiments.block_sizes(), "quickest block")

# %% [markdown]
# *Time of the same multiplications against the block, the fastest of eight rounds at T = 2 048 on
# one machine. Dashed: dense attention.* Small tiles need many small calls, and one tile of T · T is
# a table again. The best blocks, about 256, take about 0.6 of the time of dense attention. This
# measurement does not show why large tiles are slower.
#
# ## Another similarity
# Exact attention stays quadratic in operations. Katharopoulos et al. (2020) replace the exponential
# by a dot product of features, which are positive so that no weight is negative:

# %% given="positive_features"
from attention.efficient_attention import positive_features

# %% [markdown]
# $$c_i = \frac{\sum_j (\varphi(q_i) \cdot \varphi(k_j))\, v_j}
# {\sum_j \varphi(q_i) \cdot \varphi(k_j)} = \frac{\varphi(q_i)^\top \sum_j \varphi(k_j)
# v_j^\top}{\varphi(q_i)^\top \sum_j \varphi(k_j)}$$
#
# This is a kernel as in lesson 01, but one that splits into a factor for the query and one for the
# key. The first form computes T² similarities, the second none.
#
# ### Exercise 18.3 · `linear_attention`
# ●●○ medium · 12 minutes · 2 points
#
# Compute the second form, for all queries at once. The check calls it with 400 000 positions.
#
# <details><summary>Hint 1 · the idea</summary>
#
# (Q Kᵀ) V = Q (Kᵀ V). Which order makes a product with two axes of length T?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The sum of φ(k_j) v_jᵀ is a matrix product, (..., d_k, T_k) times (..., T_k, d_v). The sum of the
# φ(k_j) is (..., d_k); its product with φ(q) should be (..., T_q, 1).
# </details>
# <details><summary>Hint 3 · should something be added against 0 / 0?</summary>
#
# Some programs add 1e-6 to the denominator. Where all features are small this changes the average.
# The features are positive here, so the denominator is not 0: leave it out.
# </details>

# %% exercise="linear_attention"
from attention.efficient_attention import linear_attention

# %% check="linear_attention" points=2
check.linear_attention(linear_attention)

# %% [markdown]
# Linear attention does not approximate softmax attention. How do its weights differ? Here is a
# *lookup*: 24 keys of norm 7, and 24 queries, each equal to one of the keys, *its own*.
#
# <details><summary>The code that ran</summary>
#
# ```python
# k, own = norm * F.normalize(torch.randn(24, 8), dim=1), torch.randperm(24)
# similarity = features(k[own]) @ features(k).T
# return own, {
#     "softmax": (k[own] @ k.T / math.sqrt(8)).softmax(dim=1),
#     "linear": similarity / similarity.sum(dim=1, keepdim=True),
# }
# ```
# </details>

# %% demo=true
experiments.lookup(positive_features)

# %% [markdown]
# *Weights of 24 queries on 24 keys with 8 numbers each, one draw of twenty, as shares of the
# largest in each panel; dots mark a query's own key.* The exponential gives nearly all the weight
# to that key, because the keys are long: with the norm √8 of a standard normal vector it gives a
# third. The dot product of features gives it little at either norm, and often gives another key
# more. Its table has rank 8 at most, so the 24 contexts are mixtures of 8 vectors.
#
# ## Attention as a recurrent network
# With a causal mask, query i uses the sums over j ≤ i, which gain one term per position. So linear
# attention is a recurrent network. Its state, one matrix and one vector, has the same size however
# much was read.
#
# ### Exercise 18.4 · `linear_attention_step`
# ●●○ medium · 12 minutes · 3 points
#
# Graded in three parts: the new sums (1), the context (1), with axes in front (1).
#
# Take in one position, then read out its context. The sums that came in must not be changed.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Add φ(key) valueᵀ to the state and φ(key) to the normaliser. A position sees itself, so add first.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# (..., d_k, 1) times (..., 1, d_v) broadcasts to (..., d_k, d_v). For the context, put the query as
# a row (..., 1, d_k) in front of the state; then remove the extra axis.
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
# In training, T steps one after the other would be slow. The contexts can also be computed in
# blocks, with scores within a block and the state from block to block. Both ways agree:

# %%
q, k, v = torch.randn(3, 500, 32).double()
state, normaliser, contexts = q.new_zeros(32, 32), q.new_zeros(32), []
for position in zip(q, k, v, strict=True):
    context, state, normaliser = linear_attention_step(*position, state, normaliser)
    contexts.append(context)
blocks = experiments.causal_linear_attention(positive_features, q, k, v)
print("largest difference:", (torch.stack(contexts) - blocks).abs().max().item())

# %% [markdown]
# What does one more token cost? These times were recorded:

# %% demo=true
experiments.one_more_token()

# %% [markdown]
# *One layer of four heads, d = 32; both axes logarithmic.* The recurrent form takes the same time
# however much was read. With a cache, every token must look at all before it; after 256 tokens this
# is still cheaper.
#
# ## Five ways, timed
# Now we compare time and peak memory of one forward pass for all ways together. *Window* is lesson
# 06's sliding window with 64 neighbours on each side (Beltagy et al., 2020), computed in blocks: 64
# queries meet three blocks of 64 keys.
#
# <details><summary>The code that ran</summary>
#
# ```python
# torch.manual_seed(0)
# q, k, v = (torch.randn(1, HEADS, T, D_HEAD, device=device) for _ in range(3))
#
# def run(attention=attention, q=q, k=k, v=v):
#     attention(q, k, v)
#
# peak = peak_mib(run, device)
# clock = shortest(run, device, seconds)
# ```
# </details>
#
# ### Predict first
# Both axes are logarithmic. How many of the five, dense, tiles, fused kernel, window and linear,
# rise with slope 2 in time? And how many in memory?

# %%
prediction = None  # how many of the five have slope 2 in time; None skips this

# %% demo=true
compare(prediction, experiments.five_ways(), "ways with slope 2 in time")

# %% [markdown]
# *Four heads, d = 32, float32, forward only, one machine. Dashed: the budget; dense attention stops
# where it would exceed it.* In time three are quadratic: dense, tiles and fused kernel. At T = 8
# 192 the tiles take 0.6 of the time of dense attention and the fused kernel a quarter, but these
# are factors, and the slope stays 2. In memory only dense attention is quadratic. Window and linear
# attention are about linear in both.
#
# ## What is given up
# A window does not see beyond its reach, and a state of fixed size cannot hold everything. How much
# does this matter? In **associative recall**, a sequence shows 32 pairs of a key and a value, then
# the 32 keys again, in another order. For each key the model must give the value that stood beside
# it. There are 16 values, so chance is 0.06.

# %% demo=true
experiments.show_recall()

# %% [markdown]
# The model is one layer of attention with one head, between embeddings and a linear layer to the 16
# values. We change only the kind of attention and the length d_k of its queries and keys.
#
# The model:
#
# <details><summary>The code that ran</summary>
#
# ```python
# def forward(self, keys: Tensor, shown: Tensor) -> Tensor:
#     """Score the values: keys (B, 2 · pairs) and shown (B, pairs) to (B, pairs, VALUES)."""
#     pairs = shown.shape[1]
#     x = self.keys(keys) + F.pad(self.values(shown), (0, 0, 0, pairs))  # (B, 2 · pairs, d)
#     context = self.attention(self.W_q(x), self.W_k(x), self.W_v(x))
#     scores: Tensor = self.head(context[:, pairs:])
#     return scores
# ```
# </details>
#
# Its training, on fresh sequences in every step:
#
# <details><summary>The code that ran</summary>
#
# ```python
# steps, draw = fewer(steps), torch.Generator().manual_seed(seed)
# optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.0)
# schedule = torch.optim.lr_scheduler.OneCycleLR(
#     optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.1
# )
#
# def loss(step: int) -> Tensor:
#     pairs = min(PAIRS, 4 + round((PAIRS - 4) * 2 * step / steps))
#     keys, shown, answers = make(BATCH, pairs, draw)
#     return F.cross_entropy(model(keys, shown).flatten(0, 1), answers.flatten())
#
# with Bar(steps, label) as bar:
#     descend(model, map(loss, range(steps)), optimizer, schedule, bar)
# ```
# </details>
#
# ### Predict first
# With d_k = 16, 32 pairs and a window of 32 on each side, what share of the answers will the window
# get right? First, dense attention and *your* linear attention are trained here, with one seed
# each:

# %%
prediction = None  # the share that the window gets right, from 0 to 1; None skips this

# %% demo=true
from attention.masked_attention import masked_attention

_ = experiments.recall_live(dense=masked_attention, linear=linear_attention)

# %% demo=true
window = experiments.recall_by_width_pairs_and_distance()
compare(prediction, window, "window, d_k = 16, 32 pairs: right, median of three seeds")

# %% [markdown]
# *Share of right answers on 500 new sequences, recorded after 500 steps; one dot or line for each
# of three seeds, moved a little sideways. Dashed: chance. Left: against d_k. Middle: with fewer
# pairs. Right: against the distance between a pair and its question.* **Signed** is the control:
# linear attention with q · k itself as similarity, without features and without the division.
#
# With d_k = 16 and 32 pairs, dense attention gets 1.00, linear attention 0.70 and the window 0.55.
#
# - **Dense** attention recalls everything at every width we tried.
# - The **window** is as good as dense up to its reach, and guesses beyond.
# - **Linear** attention sees all distances equally well. With a larger d_k it becomes as good as
#   dense, and with fewer pairs it does better; four times as many steps change little.
# - **Signed** has a state of the same size and gets 0.92 right, with d_k = 8 0.66 in place of 0.39.
#   So a state of 16 rows holds more than linear attention finds in it. The sign helps, not the
#   missing division: undivided, elu(x) + 1 gets 0.26 to 0.28, and elu(x), which may be negative,
#   0.91. Two vectors of positive numbers cannot be orthogonal, so each question brings back
#   something of every pair (Schlag et al., 2021). Room is a limit as well: with 8 rows signed
#   misses a third.
#
# This task was made to be hard for a small state. But Arora et al. (2023) report that recall of
# this kind accounts for most of the difference between language models with and without attention.
#
# ## Fewer keys to remember
# With a cache, every new token reads the keys and values of all layers, which limits the speed of
# writing. A third way to save is to let query heads share a head of keys and values, as
# `share_heads` of lesson 07 does. If all of them share one, this is **multi-query attention**
# (Shazeer, 2019); if each group of neighbours shares one, **grouped-query attention** (Ainslie et
# al., 2023). In lesson 20 your decoder will work in groups.
#
# How large is the cache of one sequence? T tokens take 2 · T · layers · heads · d_head numbers.
# Llama 2 70B (Touvron et al., 2023) has 80 layers and 64 query heads of d_head = 128, and shares
# keys and values in groups of 8. What would it need if it did not share, or shared more?

# %% demo=true
experiments.cache_sizes()

# %% [markdown]
# *One sequence, 2 bytes per number; counted.* Sharing divides the cache by the size of a group, but
# leaves it proportional to T. Ainslie et al. made grouped-query models from trained multi-head
# ones, and report nearly the quality of these at nearly the speed of multi-query attention.
#
# ## Limits
# - The stored times hold for one machine, one thread of a CPU and float32.
# - Linear attention had one feature map; others come nearer to the exponential.
#   Later forms let the state forget, by a gate, or overwrite what a key held before, by the *delta
#   rule* (Yang et al., 2024). State-space models (Gu and Dao, 2023) are recurrent as well.
# - A cache can also hold one short vector per token, from which all heads compute their keys and
#   values (*latent attention*: DeepSeek-AI, 2024), or be stored in pages, so that no memory is
#   reserved for tokens that never come (Kwon et al., 2023).
# - We tested recall with a single layer on a single task.
#
# ## Something of your own
# Invent an attention, and let it take the memory test: `experiments.recall_live(mine=my_attention)`
# takes a function of q, k and v, (B, T, d) each. It could be linear attention with other features,
# or softmax over every second key. Can you beat linear attention without a (T, T) table? Show a
# table of what you tried.

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# Three costs are quadratic: memory held, bytes moved and operations. Tiles with a running maximum
# remove the first, without any approximation, and make the second smaller. The third goes only if
# you compute another function: a window that does not look far, or a state of fixed size.
# Sharing keys and values among heads makes the cache of a decoder smaller.
#
# **Next** [19 · Can you run a published model?](../19_published_model/19_published_model.ipynb) You
# will run weights that others have trained, in your own layers.
#
# ## Open questions
# No points, no check.
# 1. With a causal mask nearly half of all tiles are hidden as a whole. Skip them in your
#    `flash_attention`, and measure.
# 2. Give linear attention other features: squares of these, exponentials, the softmax of a vector,
#    or twice as many. Which recall more of 32 pairs at d_k = 16?
# 3. At which T does the window in blocks overtake the fused kernel?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. At T = 2 048 with blocks of 256, 36 of 64 tiles are left: on one core of a CPU it took half of
#    the time.
# 2. Of five others, only twice as many features recalled more. Shares right after 500 steps,
#    seeds 0, 1 and 2: elu(x) + 1 0.70, 0.70, 0.70; its square 0.66, 0.67, 0.67; its fourth
#    power 0.63, 0.65, 0.59; exp(x) 0.56, 0.54, 0.55; the softmax of x 0.52, 0.52, 0.49; exp(x) and
#    exp(−x) side by side, 32 features, 0.78, 0.82, 0.79. All of these are positive.
# 3. In `data/efficient_attention.json` between T = 512, where the window takes 3.6 ms and the fused
#    kernel 2.1, and T = 1 024, where it is 7.1 against 8.2.
#
# </details>

# %% [markdown]
# ## ★ Prefill and decode
# A language model answers in two phases. In **prefill** it reads the whole prompt at once: each
# matrix is read once and used for every position. In **decode** it writes one token at a time, and
# for each token reads all matrices and the whole cache again. With too few operations for each
# byte, a processor waits for its memory (lesson 12).
#
# One function counts for both phases: a prompt of 1 000 tokens has `n_new` = 1 000 and an empty
# cache, the token after it has `n_new` = 1 and `n_cached` = 1 000.

# %% given="operations_per_byte"
from attention.efficient_attention import operations_per_byte

# %% [markdown]
# ### Predict first
# With 256 sequences of 4 096 cached tokens each (d_model = 8 192, no sharing), how many operations
# for each byte does decode reach?

# %%
prediction = None  # operations for each byte; None skips this

# %% demo=true
found = experiments.prefill_and_decode(operations_per_byte)
compare(prediction, found, "256 sequences, no sharing")

# %% [markdown]
# Prefill has thousands of operations for each byte, decode of one sequence about one: so a GPU
# computes in prefill and waits for its memory in decode. A larger batch helps only until the caches
# outweigh the matrices, because each number of a cache serves one query. In groups of 8 it serves
# eight, so sharing can also make decode faster.
#
# ## ★ The way back
# Lesson 05 computed gradients from the weights, which are a T · T table again. Flash attention
# instead computes each tile a second time, from q, k and *lse*.
#
# ### Exercise 18.5 · `flash_attention_backward` ★
# ●●● hard · 25 minutes · 3 points
#
# Graded in three parts: `grad_v` (1), `grad_k` (1), `grad_q` (1).
#
# Nothing is masked here. For each tile, weights = exp(scores − lse). Subtract first, because
# exp(800) overflows. Then go on as in exercise 5.7. The number that the weights of a row share,
# Σⱼ weightᵢⱼ · grad_weightᵢⱼ, is a sum over *all* tiles of the row, but it equals
# contextᵢ · grad_contextᵢ, which you already have. The check cannot see how much memory you use.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The formulas of lesson 05 give one tile's part of the three gradients. A query gets parts from all
# tiles of its row, a key and its value from all tiles of their column.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `lse[..., i : i + block, None]` meets a tile's weights, (..., n_q, n_k). grad_q of the block,
# (..., n_q, d_k), comes from these and the block's keys.
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
experiments.backward_memory(flash_attention, flash_attention_backward)

# %% [markdown]
# `F.scaled_dot_product_attention` does this for you, and so does `fused=True` in lesson 07.
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
# - I. Schlag, K. Irie, J. Schmidhuber (2021). *Linear Transformers are secretly fast weight
#   programmers.* [arXiv:2102.11174](https://arxiv.org/abs/2102.11174)
# - S. Yang, J. Kautz, A. Hatamizadeh (2024). *Gated delta networks: improving Mamba2 with delta
#   rule.* [arXiv:2412.06464](https://arxiv.org/abs/2412.06464)
# - A. Gu, T. Dao (2023). *Mamba: linear-time sequence modeling with selective state spaces.*
#   [arXiv:2312.00752](https://arxiv.org/abs/2312.00752)
# - DeepSeek-AI (2024). *DeepSeek-V2: a strong, economical, and efficient mixture-of-experts
#   language model.* [arXiv:2405.04434](https://arxiv.org/abs/2405.04434)
# - W. Kwon et al. (2023). *Efficient memory management for large language model serving with
#   PagedAttention.* [arXiv:2309.06180](https://arxiv.org/abs/2309.06180)
# - S. Arora et al. (2023). *Zoology: measuring and improving recall in efficient language models.*
#   [arXiv:2312.04927](https://arxiv.org/abs/2312.04927)
# - I. Beltagy, M. Peters, A. Cohan (2020). *Longformer: the long-document Transformer.*
#   [arXiv:2004.05150](https://arxiv.org/abs/2004.05150)
# - N. Shazeer (2019). *Fast Transformer decoding: one write-head is all you need.*
#   [arXiv:1911.02150](https://arxiv.org/abs/1911.02150)
# - J. Ainslie et al. (2023). *GQA: training generalized multi-query Transformer models from
#   multi-head checkpoints.* [arXiv:2305.13245](https://arxiv.org/abs/2305.13245)
# - H. Touvron et al. (2023). *Llama 2: open foundation and fine-tuned chat models.*
#   [arXiv:2307.09288](https://arxiv.org/abs/2307.09288)
