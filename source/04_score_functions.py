# %% [markdown]
# # 04 · Which similarity?
#
# The small network of lesson 03 is one way to say how well a query and a key match. A dot product
# is another, without any parameters. This lesson relates the common score functions to each other,
# and tries them all in one translator.
#
# **After this lesson** you can
# - write five **score functions** behind one interface, and turn one into another,
# - derive the dot product from the Gaussian kernel of lesson 01,
# - count parameters and multiplications, and say why they do not predict the time,
# - ★ tell **local** from **hard** attention, and train a choice without a gradient.
#
# **Time** 65 minutes, ★ 45 more · **Points** 18 · **GPU** not needed · **You need** lessons 01, 03

# %%
import math

import torch

from attention.bahdanau_attention import additive_scores
from attention.experiments import score_functions as experiments
from attention.experiments import translator_so_far
from attention.getting_started import softmax
from attention.provided import demand
from attention.provided.predictions import compare
from autograder import check

torch.set_num_threads(1)  # as fast for small matrices, and much faster beside other programs

# %% [markdown]
# ## What fails without this idea
# Additive attention keeps a hidden layer of 64 numbers for every pair of query and key. With 50
# queries and 50 keys, nobody notices. With 20 000 of each, the hidden layer takes 102 GB, and the
# scores only 1.6 GB.
#
# ## The idea
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
# ### Exercise 4.1 · `score`
# ●●○ medium · 15 minutes · 3 points
#
# In stages, each earned by itself: `dot` and `scaled_dot` (1), `bilinear` and `reduced_rank` (1),
# `additive` and other kinds, and a single query (1).
#
# Write all five for whole batches: queries `(B, T_q, d_q)`, keys `(B, T_k, d_k)`, scores
# `(B, T_q, T_k)`. Additive scores are imported from lesson 03. Refuse other kinds. Gradients flow
# back to `q`, `k` and the weights, since all of them can be learned.
#
# <details><summary>Hint 1 · the idea</summary>
#
# All dot products of the rows of two matrices are one matrix product. Bilinear and reduced-rank
# scores are the same product after a projection.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `k.mT` swaps the last two axes: `(B, d, T_k)`. Then `(B, T_q, d) @ (B, d, T_k)` is
# `(B, T_q, T_k)`. `q @ W` is `(B, T_q, d_k)`; `q` projected by V is `(B, T_q, r)`.
# </details>
# <details><summary>Hint 3 · “RuntimeError: The size of tensor a (2) must match … b (4)”</summary>
#
# `.T` on a tensor with three axes reverses all of them. Use `.mT`.
# </details>

# %% exercise="score"
from attention.score_functions import score

# %% check="score" points=3
check.score(score)

# %% [markdown]
# ## They are relatives
# The other three multiplicative kinds are special cases of the bilinear one: there is a $W$ for
# which the bilinear score equals theirs, for every query and key.
#
# ### Exercise 4.2 · `as_bilinear`
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
# ### Exercise 4.3 · `break_as_bilinear` · Break this answer
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
# so on: a complete crossing. The parameters of each score function are trained for this; queries
# and keys stay as they are. Which functions can learn the crossing?

# %% demo=true
found = experiments.crossings(score)

# %% [markdown]
# *Weights of six queries on six keys under five score functions, reduced rank with r = 1 and r = 2,
# on the same input.* The two dot products have nothing to learn: they show which vectors happen to
# point the same way. Bilinear and additive scores learn the crossing, and so does reduced rank with
# r = 2. With r = 1 only two of six queries find their key: queries and keys are then single
# numbers, and only the largest and the smallest key can ever win.
#
# ## Which one translates best?
# Now put each score function into one translator, and keep encoder, decoder, batches and 300 steps.
# It is that of lesson 03, but its encoder's RNNs have 32 numbers each in place of 64: a dot product
# wants keys as long as queries, which have 64. Also r is 64.
#
# ### Predict first
# Which kind has the *fewest* of six runs that translate more than half of the five-digit numbers?

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
# not worse. Lesson 05 says why, and what the division is good for. Between the others six seeds do
# not decide: with the dot product one run gets 0.06 right, and another all.
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

# %% demo=true
axes = experiments.a_longer_key(gaussian_scores, score)

# %% [markdown]
# *Weights of eight queries on eight keys on a circle. Above, keys of equal length: both pictures
# are the same. Below, key 2 is three times as long.* For the Gaussian, key 2 is now far from every
# query and gets almost no weight. For the dot product it outscores its neighbours, because length
# counts as well as direction.
#
# ## What it costs
# ### Exercise 4.5 · `score_costs`
# ●●○ medium · 12 minutes · 2 points
#
# Count parameters and multiplications. Project each query and each key once, then form pairs.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A matrix `(a, b)` times a vector takes a · b multiplications, a dot product of n numbers takes n.
# Count the projections first, then the work for each of the T_q · T_k pairs.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# W is `(d, d)`; V, U, W_q and W_k are `(r, d)`; v is `(r,)`. Each pair then costs d multiplications
# for dot and bilinear scores, and r for the other two.
# </details>

# %% exercise="score_costs"
from attention.score_functions import score_costs

# %% check="score_costs" points=2
check.score_costs(score_costs)

# %% demo=true
print("T_q = T_k = 100, d = 64, r = 64     parameters   multiplications")
for kind in KINDS:
    parameters, multiplications = score_costs(kind, 100, 100, 64, 64)
    print(f"{kind:<36}{parameters:>10,}{multiplications:>18,}")

# %% [markdown]
# The longer the sequences, the closer these counts come together. Do time and memory converge as
# well?

# %% demo=true
axes = experiments.time_and_memory(score, score_costs, lengths=(50, 100, 200, 400, 800))

# %% [markdown]
# *Time and memory of three score functions against the length T, both scales logarithmic, on the
# machine that built this notebook.* At T = 800 the additive score needs 1.1 times as many
# multiplications as the scaled dot product and takes more than a hundred times as long. We did not
# count its 41 million tanh, nor the hidden layer that is written to memory and read again.
#
# ## Your translator so far
# From here to lesson 10, each lesson changes the translator of numbers and trains it again, with
# the same data, 300 steps and three seeds. A row's name says all that is not as in the row above.

# %% demo=true
_ = translator_so_far.up_to("04")

# %% [markdown]
# *Share of test numbers translated without error: three runs of each translator, those of this
# lesson in blue.* With five digits, the scaled dot product does worse than the additive score in
# every run, at this rate. (From 02 to 03 two things change, attention and the encoder; lesson 03
# took them apart.)
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
# 1. In the crossing, how many pairs can rank 1 hold, and how many rank 2? Try
#    `experiments.crossing("reduced_rank", pairs=4, r=2, steps=1000, seed=0, score=score)`.
# 2. In a network, queries and keys come from learned layers. If they are learned (`learned=True`),
#    will the dot product learn the crossing? And the scaled one?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. Rank 1 holds two, however many there are: of 3 and of 4 pairs, two queries find their key, with
#    seeds 0 to 2 and 1000 steps. Rank 2 holds 4 of 4 and 8 of 8 with every seed, and 12, 11 and 12
#    of 12. In a plane, every key can be a corner of the keys' convex hull, and then it is the
#    farthest key in some direction.
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
# (Luong and colleagues, 2015) chooses a centre $p$ for each query, and looks only D positions to
# either side.
#
# - **local-m** (monotonic): the centre moves along with the output, $p_i = i$;
# - **local-p** (predictive): the model predicts it from the decoder's state $s_i$,
#   $p_i = T_k \cdot \sigma(v_p^\top \tanh(W_p s_i))$, and the weights fall off around it. Here the
#   centres are given.
#
# ### Exercise 4.6 · `local_window` ★
# ●○○ easy · 5 minutes · 1 point
#
# Make the mask of local-m: True where a key lies within D of the query's centre. At the borders of
# the source the window is simply cut.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The table of all distances between positions and centres, as in lesson 01, and a comparison.
# Centres `(T_q, 1)` against positions `(T_k,)` give `(T_q, T_k)`.
# </details>

# %% exercise="local_window"
from attention.score_functions import local_window

# %% check="local_window" points=1
check.local_window(local_window)

# %% [markdown]
# ### Exercise 4.7 · `predictive_local_weights` ★
# ●●○ medium · 10 minutes · 2 points
#
# The weights of local-p: a softmax over the keys inside the window, times a Gaussian around the
# centre with $\sigma = D/2$. Through this factor a gradient reaches the centre, so that the model
# can learn to predict it; the window alone gives none. Scores of ±1000 are fine.
#
# $$w_{ij} = \text{softmax}_{\,j \text{ in window}}(\text{scores}_{ij})
# \cdot \exp\!\left(-\frac{(j - p_i)^2}{2\sigma^2}\right)$$
#
# <details><summary>Hint 1 · the idea</summary>
#
# Set scores outside the window to −∞ before the softmax. The Gaussian comes afterwards, and nothing
# is divided again. All of these are `(T_q, T_k)`.
# </details>

# %% exercise="predictive_local_weights"
from attention.score_functions import predictive_local_weights

# %% check="predictive_local_weights" points=2
check.predictive_local_weights(predictive_local_weights)

# %% [markdown]
# Of global, local-m and local-p, which needs the most scores? In which do rows not sum to 1?

# %% demo=true
axes = experiments.where_to_look(local_window, predictive_local_weights)

# %% [markdown]
# *Weights of twelve queries on twenty keys: global, local-m and local-p, with the same scores.* The
# local kinds need at most seven scores per query, however long the source is. Rows of local-p sum
# to less than 1: a query that prefers keys far from its centre gets less weight in all.
#
# ## ★ Hard attention
# A third way is to look at **one** key, chosen at random with the weights as probabilities (Xu and
# colleagues, 2015). Only one value is needed, but the choice has no gradient with respect to the
# scores.
#
# ### Exercise 4.8 · `hard_attention` ★
# ●●○ medium · 8 minutes · 2 points
#
# Turn a random number between 0 and 1 into a choice. Lay the weights end to end on a line from 0 to
# 1; the number falls on one of them.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Add the weights up from the left. The chosen key is the first whose sum is larger than the number:
# count how many sums are *not* larger. What if rounding leaves the last sum below 1?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Sums `(T_q, T_k)` against numbers `(T_q, 1)`. Counting along the keys gives indices `(T_q,)`, and
# `values[indices]` is `(T_q, d_v)`.
# </details>

# %% exercise="hard_attention"
from attention.score_functions import hard_attention

# %% check="hard_attention" points=2
check.hard_attention(hard_attention)

# %% demo=true
axes = experiments.mean_of_choices(hard_attention)

# %% [markdown]
# *Mean result of 1, 10 and 1000 hard choices among four one-hot values, and soft attention.* On
# average, hard attention gives the result of soft attention, which is its expectation.
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
# ### Exercise 4.9 · `reinforce_gradient` ★
# ●●● hard · 15 minutes · 3 points
#
# In stages, each earned by itself: one trial (1), many trials (1), with a baseline (1).
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
