# %% [markdown]
# # 04 · Which similarity?
#
# The small network of lesson 03 is one way to say how well a query and a key match. A dot product
# is another, without any parameters. This lesson relates the common score functions to each other,
# and tries them all in one translator.
#
# **After this lesson** you can
# - turn one **score function** into another, and say what each of them can express,
# - derive the dot product from the Gaussian kernel of lesson 01,
# - explain why the number of multiplications does not predict the time,
# - ★ tell **local** from **hard** attention, and train a choice without a gradient.
#
# **Time** 50 minutes, ★ 20 more · **Points** 10 · **GPU** not needed · **You need** lessons 01, 03

# %%
import math

import torch

from attention.bahdanau_attention import additive_scores
from attention.experiments import score_functions as experiments
from autograder import check

# %% [markdown]
# ## A hidden layer for every pair
# Additive attention keeps a hidden layer of 64 numbers for every pair of query and key. With 50
# queries and 50 keys, nobody notices. With 20 000 of each, the hidden layer takes 102 GB, and the
# scores only 1.6 GB.
#
# ## Five score functions, one interface
# A score function takes a query and a key and returns one number. Softmax and weighted average stay
# as they are, so all score functions fit behind one interface.
#
# | kind | score of $q$ and $k$ | learns | from |
# |---|---|---|---|
# | dot | $q \cdot k$ | nothing | Luong et al. 2015 |
# | scaled dot | $q \cdot k \,/ \sqrt{d_k}$ | nothing | Vaswani et al. 2017 |
# | bilinear, "general" | $q^\top W k$ | $W$ `(d_q, d_k)` | Luong et al. 2015 |
# | reduced rank | $(V q) \cdot (U k)$ | $V$ `(r, d_q)`, $U$ `(r, d_k)` | |
# | additive | $v^\top \tanh(W_q q + W_k k)$ | `W_q`, `W_k`, `v` | Bahdanau et al. 2014 |
#
# The first four are called **multiplicative**, and $r$ is ours to choose. By hand, for one query
# and one key:

# %%
query, key = [1.0, 2.0], [3.0, -1.0]
W = [[0.0, 1.0], [1.0, 0.0]]  # swaps the two numbers of the key
dot = sum(a * b for a, b in zip(query, key, strict=True))
swapped = [sum(w * b for w, b in zip(row, key, strict=True)) for row in W]
bilinear = sum(a * b for a, b in zip(query, swapped, strict=True))
print(f"dot {dot:.2f}   scaled dot {dot / math.sqrt(2):.2f}   bilinear {bilinear:.2f}")

KINDS = ("dot", "scaled_dot", "bilinear", "reduced_rank", "additive")

# %% [markdown]
# All five for whole batches. `k.mT` swaps the last two axes of `k`, so that `q @ k.mT` holds the
# dot product of every query with every key.

# %% given="score"
from attention.score_functions import score

# %% [markdown]
# ## They are relatives
# The other three multiplicative kinds are special cases of the bilinear one: there is a $W$ for
# which the bilinear score equals theirs, for every query and key.
#
# ### Exercise 4.1 · `as_bilinear`
# ●●○ medium · 8 minutes · 2 points
#
# Find this W for `"dot"`, `"scaled_dot"` and `"reduced_rank"`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Which matrix leaves every vector as it is? For the reduced rank, write the dot product as
# $(Vq)^\top (Uk)$, without brackets, and see what stands between $q^\top$ and $k$.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(d, d)` for the first two. From V `(r, d_q)` and U `(r, d_k)` to `(d_q, d_k)`.
# </details>


# %% exercise="as_bilinear"
from attention.score_functions import as_bilinear

# %% check="as_bilinear" points=2
check.as_bilinear(as_bilinear)

# %% [markdown]
# So a reduced-rank score is a bilinear score whose W has rank r at most. In lesson 07 every
# attention head is one of these, with $V$ called $W_q$ and $U$ called $W_k$.
#
# ### Exercise 4.2 · `break_as_bilinear` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate has exchanged V and U, and has tested this only with one matrix for both. Find an
# input for which it is wrong, with queries and keys of the **same length**, so that the shape does
# not give it away.
#
# <details><summary>Hint 1 · where to look</summary>
#
# This answer exchanges query and key. For which W does that make no difference?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# With r = 1, W is the table of all products of the entries of V and U. When is it not symmetric?
# </details>

# %% broken="swaps_v_and_u"
from autograder.mistakes.score_functions import swaps_v_and_u

# %% exercise="break_as_bilinear"
from attention.score_functions import break_as_bilinear

# %% check="break_as_bilinear" points=1
check.break_as_bilinear(break_as_bilinear)

# %% [markdown]
# ## What each of them can say
# Take six queries and six keys of 8 random numbers. Query 0 should find key 5, query 1 key 4, and
# so on: a complete crossing. Queries and keys stay as they are; the parameters of the score
# function are trained. The loss is the cross-entropy of lesson 02, with the keys in place of
# letters: minus the logarithm of the weight on the wanted key.

# %% given="learn_crossing"
from attention.score_functions import learn_crossing

# %% [markdown]
# ### Predict first
# Which of the five can learn the crossing? And how many of the six queries find their key if
# the score is of reduced rank with r = 1?

# %%
prediction = None  # a whole number; None skips this

# %% demo=true
from attention.provided.predictions import compare

found = experiments.crossings(learn_crossing)
compare(prediction, found, "queries that find their key, r = 1")

# %% [markdown]
# *Weights of six queries on six keys under five score functions, reduced rank with r = 1 and r = 2,
# on the same input.* The two dot products have nothing to learn: they show which vectors happen to
# point the same way. Bilinear and additive scores learn the crossing, and so does reduced rank with
# r = 2.
#
# With r = 1 only two queries find their key, with every seed. Queries and keys are then single
# numbers, and only the largest and the smallest key can ever win. With r = 2 they are points in a
# plane, and a key can win if it is the farthest in some direction: a corner of the keys' convex
# hull. How many keys can be corners?
#
# ### Exercise 4.3 · `crossing_in_a_plane`
# ●●○ medium · 8 minutes · 2 points
#
# Place six pairs, or sixty, by hand, without any training. All **keys** stand on a circle of radius
# 1, so that each is the farthest in its own direction. Each **query** points at its key: query 0 at
# the last key, query 1 at the last but one, and so on. How long must a query be so that the score
# of its key is larger than those of the two keys next to it by exactly `lead`?
#
# <details><summary>Hint 1 · the idea</summary>
#
# A query of length 1 has the score cos φ with a key at an angle φ from it. What is φ for its own
# key, and what for the next one?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Angles `(pairs,)`. Their cosines and sines, stacked, are the keys `(pairs, 2)`. The queries are
# the keys in the opposite order, times one number.
# </details>

# %%
from attention.provided import demand

# %% exercise="crossing_in_a_plane"
from attention.score_functions import crossing_in_a_plane

# %% check="crossing_in_a_plane" points=2
check.crossing_in_a_plane(crossing_in_a_plane)

# %% demo=true
queries, keys = crossing_in_a_plane(60, lead=5.0)
shares = (queries @ keys.T).softmax(dim=1)  # (T_q, T_k)
print(f"60 pairs: weight on the wanted key at least {shares.fliplr().diagonal().min():.3f}")

# %% [markdown]
# So a score of rank 2 can hold any number of pairs. Whether training finds them is another
# question, the first of the open ones below.
#
# ## Which one translates best?
# Now put each score function into the same translator, and keep encoder, decoder, batches and 300
# steps. It is the translator of lesson 03, but its encoder's RNNs have 32 numbers each instead of
# 64: a dot product needs keys as long as the queries, which have 64. The rank r is 64, too.
#
# <details><summary>The code that ran</summary>
#
# ```python
# torch.manual_seed(seed)
# corpus = numbers()
# layer = Scored(kind, score, D_STATE)
# model = Compared(sizes_of(corpus), layer, d_source=D_STATE)
# return measured_with_frames(model, corpus, seed, steps, rate)
# ```
#
# `measured_with_frames` trains by the loop of lesson 02, and counts the test numbers that are
# translated without any error.
# </details>
#
# ### Predict first
# Each kind was trained with six seeds. Which has the *fewest* runs that translate more than half of
# the five-digit numbers?

# %%
prediction = None  # one of KINDS, such as "dot"; None skips this

# %% demo=true
worst = experiments.translators_of_all_kinds()
compare(prediction, worst, "fewest runs above a half")

# %% [markdown]
# *Share of test numbers translated without error, a dot for each of six seeds.* With five digits,
# no run of the *scaled* dot product gets more than 0.45 right, and each other kind has runs that
# get more than 0.85. Is this the score, or the learning rate, which is the same for all? With twice
# the rate (the last lines) all three runs of the scaled score get at least 0.92: it is slower here,
# not worse. Lesson 05 says why, and what the division is good for. Six seeds do not separate the
# others: with the dot product one run gets 0.06 right, and another all.
#
# ## Where the dot product comes from
# Lesson 01 scored by distance. Expand the square:
#
# $$-\frac{\lVert q - k \rVert^2}{2h^2}
# = \frac{q \cdot k}{h^2} - \frac{\lVert q \rVert^2}{2h^2} - \frac{\lVert k \rVert^2}{2h^2}$$
#
# Now take the softmax over the keys. The term with $\lVert q \rVert^2$ is the same for all keys of
# a query, so it **cancels** (lesson 00: adding a number to all scores changes no weight). The term
# with $\lVert k \rVert^2$ cancels only if all keys have **the same length** $\lVert k \rVert$
# (their norm, not their dimension). Then $q \cdot k / h^2$ is left: Gaussian kernel regression with
# keys of equal length *is* dot-product attention, with its scores divided by $h^2$.
#
# ### Exercise 4.4 · `gaussian_scores`
# ●●○ medium · 8 minutes · 2 points
#
# Compute the Gaussian's scores by the right-hand side, for batches of vectors. The left-hand side
# would need a tensor `(B, T_q, T_k, d)` of differences.
#
# <details><summary>Hint 1 · the shapes</summary>
#
# Products `(B, T_q, T_k)`. Squared lengths of queries `(B, T_q, 1)`, of keys `(B, 1, T_k)`.
# </details>

# %% exercise="gaussian_scores"
from attention.score_functions import gaussian_scores

# %% check="gaussian_scores" points=2
check.gaussian_scores(gaussian_scores)

# %% [markdown]
# ### Break it
# Keys on a circle have equal lengths. Now make one of them three times as long. How much weight
# will it get from the Gaussian, and how much from the dot product?
#
# <details><summary>The code that ran</summary>
#
# ```python
# gaussian = gaussian_scores(circle, keys, 0.7).softmax(dim=2)[0]
# dots = (score("dot", circle, keys, {}) / 0.7**2).softmax(dim=2)[0]
# ```
# </details>

# %% demo=true
axes = experiments.a_longer_key(gaussian_scores, score)

# %% [markdown]
# *Weights of eight queries on eight keys on a circle. Above, keys of equal length: both pictures
# are the same. Below, key 2 is three times as long.* For the Gaussian, key 2 is now far from every
# query and gets almost no weight. For the dot product it outscores its neighbours, because length
# counts as well as direction.
#
# ## What it costs
# Project each query and each key once, then score all pairs. For queries and keys of length d:
#
# | kind | parameters | multiplications |
# |---|---|---|
# | dot | 0 | $T_q T_k d$ |
# | scaled dot | 0 | $T_q T_k (d + 1)$ |
# | bilinear | $d^2$ | $T_q d^2 + T_q T_k d$ |
# | reduced rank | $2rd$ | $(T_q + T_k)\, r d + T_q T_k r$ |
# | additive | $2rd + r$ | $(T_q + T_k)\, r d + T_q T_k r$ |
#
# With r = d, the longer the sequences, the closer these counts come together. Do time and memory
# converge as well?
#
# <details><summary>The code that ran</summary>
#
# ```python
# for kind, name in names.items():
#     runs = [partial(score, kind, x, x, weights) for x in inputs]
#     times[name] = timing.in_turns(runs, rounds=3)
#     memory[name] = [megabytes(run) for run in runs]
# ```
# </details>

# %% demo=true
axes = experiments.time_and_memory(score, lengths=(50, 100, 200, 400, 800))

# %% [markdown]
# *Time and memory of three score functions against the length T, both scales logarithmic, on the
# machine that built this notebook.* At T = 800 the additive score needs 1.1 times as many
# multiplications as the scaled dot product and takes more than a hundred times as long. The count
# leaves out its 41 million tanh, and the hidden layer that is written to memory and read again.
#
# ## Limits
# All scores here make a table of $T_q \cdot T_k$ numbers. And our comparison is one task, one size
# and 300 steps: it says which similarity is learned *fast* here, not which is best.
#
# ## Something of your own
# Invent a score function: cosine similarity, minus the distance, a mixture of two. Write it as
# `my_score(kind, q, k, weights)` and train the translator with it, in less than a minute:
# `experiments.train_scored("dot", seed=0, score=my_score)`. (The kind `"bilinear"` gives you a
# learned `W`, `"dot"` no weights.) Does it beat the five above? Show a table of three seeds.

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# Multiplicative scores are all bilinear: their W is free, of low rank, or a multiple of the
# identity. With keys of equal length, a dot product weighs like a Gaussian kernel. In the
# translator the scaled dot product learns slowly, and twice the learning rate makes up for it;
# of the others, the seed matters more than the kind. Additive scores cost far more time and memory.
#
# **Next** [05 · Why divide by
# √d?](../05_scaled_dot_product_attention/05_scaled_dot_product_attention.ipynb) The dot product is
# the cheapest score, but for long vectors it grows too large.
#
# ## Open questions
# 1. A score of rank 2 can hold any number of pairs. How many does it learn? Try
#    `experiments.crossing("reduced_rank", 12, seed=0, learn_crossing=learn_crossing, r=2,
#    steps=1000)`.
# 2. In a network, queries and keys come from learned layers. If they are learned as well
#    (`learned=True`), will the dot product learn the crossing? And the scaled one?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. Of 3 and of 4 pairs, rank 1 holds two, with seeds 0 to 2 and 1000 steps. Rank 2 holds 4 of 4
#    and 8 of 8 with every seed, and 12, 11 and 12 of 12.
# 2. Both do, after the same 150 steps, with all six pairs and seeds 4 to 6 (mean weight on the
#    wanted key at least 0.998 and 0.995). A score without parameters can still be learned, through
#    its queries and keys.
#
# </details>

# %% [markdown]
# ## ★ Must a query look everywhere?
# ![Bars over nine keys, four times. Global attention has weight on all of them. Local-m has weight
# on five keys around a centre, local-p has weight that falls off from the centre, and hard
# attention has one bar.](figures/where_to_look.svg)
#
# So far attention was **global** and **soft**: every key gets some weight. **Local** attention
# (Luong and colleagues, 2015) chooses a centre $p_i$ for each query, and looks only D positions to
# either side: 2D + 1 scores, however long the source is.
#
# - **local-m** (monotonic): the centre moves along with the output, $p_i = i$. A softmax over the
#   window gives the weights.
# - **local-p** (predictive): the model predicts the centre from the decoder's state,
#   $p_i = T_k \cdot \sigma(v_p^\top \tanh(W_p s_i))$. The weights of the window are then multiplied
#   by $\exp(-(j - p_i)^2 / 2\sigma^2)$ with $\sigma = D/2$. Through this factor a gradient reaches
#   the centre. The window alone gives none.
#
# **Hard** attention (Xu and colleagues, 2015) looks at **one** key, drawn with the weights as
# probabilities: `torch.multinomial(weights, 1)`. Only one value is needed, and on average the
# result is that of soft attention. But the choice has no gradient with respect to the scores.
#
# ## ★ Learning without a gradient
# Suppose that choosing key $j$ earns a reward $R_j$, say for how well the next word came out. The
# scores should change so that the expected reward grows:
#
# $$\frac{\partial}{\partial\,\text{scores}} \sum_j w_j R_j
# = \sum_j w_j \, R_j \,\frac{\partial \log w_j}{\partial\,\text{scores}}$$
#
# since $\partial w = w\,\partial \log w$. The right-hand side is an *expectation* under the
# weights: sample positions, and average $R \cdot \partial \log w$. This is **REINFORCE** (Williams,
# 1992). It needs the rewards of the chosen keys only. Subtracting a **baseline** $b$ from all
# rewards can make the estimates scatter less, and changes nothing on average, because
# $\sum_j w_j\,\partial \log w_j = \partial \sum_j w_j = 0$.
#
# ### Exercise 4.5 · `reinforce_gradient` ★
# ●●● hard · 15 minutes · 3 points
#
# Graded in three parts: one trial (1), many trials (1), with a baseline (1).
#
# Estimate the gradient from N trials. The derivative of $\log \text{softmax}(\text{scores})_c$ is
# known: one-hot of c, minus the softmax.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Start with N = 1: the derivative, times the reward minus the baseline. Then the mean over the
# trials.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# One-hot rows `(N, T_k)` minus weights `(T_k,)`, times `(N, 1)`. The mean over trials is `(T_k,)`.
# Rows of `torch.eye(T_k, device=scores.device)`, picked by `chosen`, are one-hot.
# </details>
# <details><summary>Hint 3 · the result is zero</summary>
#
# Differentiating *through* the choice gives 0: moving the scores a little does not change which key
# was chosen. It changes how likely that choice was.
# </details>

# %% exercise="reinforce_gradient"
from attention.score_functions import reinforce_gradient

# %% check="reinforce_gradient" points=3
check.reinforce_gradient(reinforce_gradient)

# %% [markdown]
# Four keys earn 10, 11, 12 and 13. From equal scores, follow the gradient for 150 steps: the exact
# one, and REINFORCE with four trials a step, without a baseline and with one of 11.5.
#
# <details><summary>The code that ran</summary>
#
# ```python
# if baseline is None:
#     gradient = w * (reward_of - w @ reward_of)
# else:
#     chosen = torch.multinomial(w, 4, replacement=True, generator=generator)
#     gradient = reinforce_gradient(scores, chosen, reward_of[chosen], baseline)
# scores = scores + 0.1 * gradient
# ```
# </details>

# %% demo=true
ends = experiments.rewards_with_a_baseline(reinforce_gradient)

# %% [markdown]
# *Expected reward against steps, for the exact gradient and for two estimates of it, a line for
# each of five seeds.* Both estimates are right on average. With the baseline, all five runs come
# close to the exact gradient. Without one, all rewards are positive, so every key that is drawn
# becomes likelier, and the runs scatter: three end lower, and two, by luck, a little higher.
#
# ## References
# - M.-T. Luong, H. Pham, C. D. Manning (2015). *Effective approaches to attention-based neural
#   machine translation.* [arXiv:1508.04025](https://arxiv.org/abs/1508.04025)
# - K. Xu et al. (2015). *Show, attend and tell: neural image caption generation with visual
#   attention.* [arXiv:1502.03044](https://arxiv.org/abs/1502.03044)
# - R. J. Williams (1992). *Simple statistical gradient-following algorithms for connectionist
#   reinforcement learning.* Machine Learning 8.
#   [doi:10.1007/BF00992696](https://doi.org/10.1007/BF00992696)
