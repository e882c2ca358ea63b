# %% [markdown]
# # 05 · Why divide by √d?
#
# A dot product is the cheapest way to compare a query with a key. But the more entries *d* the
# vectors have, the larger the scores, until the softmax picks one key and training stops. One
# division prevents this at the start of training. It gives the formula of the Transformer.
#
# **After this lesson** you can
# - say why dot products of long vectors are large, and how large scores block learning,
# - write **scaled dot-product attention** and a **self-attention head**,
# - say what queries, keys and values gain by matrices of their own,
# - compare recurrence, convolution and attention: cost, sequential steps, longest path.
#
# **Time** 78 minutes, ★ 20 more · **Points** 14, of which 4 are for an exercise with a star ·
# **GPU** not needed · **You need** lessons 00 and 04

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.experiments import scaled_dot_product_attention as experiments
from autograder import check

# %% [markdown]
# ## Long vectors, one winner
# Take one query and eight keys, all random. No key is special, so several should get some weight.
# Now make the vectors longer:

# %% demo=true
torch.set_num_threads(1)  # faster for small matrices
largest = experiments.weights_of_random_keys(lengths=(4, 64, 1024))

# %% [markdown]
# At *d* = 1024 nearly all the weight goes to one key. Nothing matches; the vectors are merely long.
#
# ## How large is a dot product?
# How fast do the scores grow with *d*? First measure them.
#
# ### Exercise 5.1 · `dot_product_statistics`
# ●○○ easy · 5 minutes · 1 point
#
# `q` and `k` are `(n, d_k)`. Row *i* of `q` and row *i* of `k` make a pair. Return the mean and the
# variance of the `n` dot products.
#
# <details><summary>Hint 1 · the shapes</summary>
#
# `(n, d_k)` times `(n, d_k)`, entry by entry, is `(n, d_k)`. Sum over one axis: `(n,)`.
# </details>
# <details><summary>Hint 2 · “the variance of the products 3, -1, 6, 4 is wrong”</summary>
#
# `var` divides by *n* − 1 unless told otherwise. Divide by *n*.
# </details>

# %% exercise="dot_product_statistics"
from attention.scaled_dot_product_attention import dot_product_statistics

# %% check="dot_product_statistics" points=1
check.dot_product_statistics(dot_product_statistics)

# %% [markdown]
# Now measure 20 000 pairs of random vectors, with entries of mean 0 and variance 1:

# %% demo=true
variances = experiments.spread_of_dot_products(dot_product_statistics)

# %% [markdown]
# *Their dot products at four lengths: all centred on 0, and each curve twice as
# wide as the one before it, for vectors four times as long.* The variance is *d*. The spread, or
# **standard deviation**, is its square root, √*d*.
#
# ### Why it is exactly *d*
# Let all entries be independent, with mean 0 and variance 1. One term of the dot product has
#
# $$\mathbb{E}[q_i k_i] = \mathbb{E}[q_i]\,\mathbb{E}[k_i] = 0, \qquad
# \operatorname{Var}[q_i k_i] = \mathbb{E}[q_i^2 k_i^2] - 0^2
# = \mathbb{E}[q_i^2]\,\mathbb{E}[k_i^2] = 1 .$$
#
# The terms are independent of each other, so their variances add up:
#
# $$\operatorname{Var}\Big[\sum_{i=1}^{d} q_i k_i\Big] = \sum_{i=1}^{d} 1 = d, \qquad
# \text{standard deviation } \sqrt{d} .$$
#
# Dividing by *c* divides the variance by *c*². With $c = \sqrt{d}$ it is 1 at every length. That is
# why we divide by √*d* and not by *d*.
#
# ### Predict first
# With 1024 entries, the largest of eight weights was 0.97 on average. What is it if the scores are
# divided by √1024? (If all eight were equal, it would be 0.125.)

# %%
from attention.provided.predictions import compare

prediction = None  # a number between 0.125 and 1; None skips this

# %% demo=true
divided = experiments.weights_of_random_keys(lengths=(4, 64, 1024), divided=True)
compare(prediction, divided[1024], "largest weight at d = 1024, divided")

# %% [markdown]
# One of eight random keys still gets about a third of the weight, but now at every length. Change
# *d* yourself, for one query and ten keys cut from the same random numbers:

# %% demo=true
from attention.provided.figures import moving

moving.scale()

# %% [markdown]
# ## What large scores do to learning
# ### Exercise 5.2 · `softmax_gradient_norm`
# ●●○ medium · 10 minutes · 2 points
#
# How much do the weights move when the scores move a little? The answer is the Jacobian of the
# softmax, a matrix for each row of scores. With weights $p$:
#
# $$J_{ij} = \frac{\partial p_i}{\partial s_j} = \begin{cases} p_i\,(1 - p_i) & i = j \\
# -\,p_i\,p_j & i \ne j \end{cases}$$
#
# Compute its size, the Frobenius norm: the root of the sum of all squared entries. `scores` may
# have any number of leading axes: `(..., T_k)` gives `(...)`. What is every entry when one weight
# is 1 and the others are 0?
#
# <details><summary>Hint 1 · the idea</summary>
#
# The two cases are one matrix: a diagonal one, `torch.diag_embed`, minus an outer product.
# `torch.linalg.matrix_norm` knows the norm.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Weights `(..., T_k)`. As a column `(..., T_k, 1)`, as a row `(..., 1, T_k)`; their product is
# `(..., T_k, T_k)`. The norm removes the last two axes.
# </details>

# %% exercise="softmax_gradient_norm"
from attention.scaled_dot_product_attention import softmax_gradient_norm

# %% check="softmax_gradient_norm" points=2
check.softmax_gradient_norm(softmax_gradient_norm)

# %% [markdown]
# Here it is for 500 random queries with 16 keys each:

# %% demo=true
ax = experiments.sizes_of_the_jacobian(softmax_gradient_norm)

# %% [markdown]
# *Size of the softmax's Jacobian against the length of the vectors, both axes logarithmic; lines
# are medians, bands hold the middle half of the queries.* With scores divided by √d it keeps its
# size. Without the division the median falls below 10⁻⁹. Gradients pass from the context to queries
# and keys through this matrix, so for at least half of the queries they nearly vanish, too. Such a
# softmax is **saturated**.
#
# ## Scaled dot-product attention
# The formula of the Transformer divides the scores of queries and keys with *d_k* entries by √*d_k*
# before the softmax:
#
# ![Queries times transposed keys give one score for every pair. The scores are divided by the root
# of d_k, masked if there is a mask, and turned into weights by a softmax along each row. The
# weights average the values.](figures/scaled_dot_product.svg)
#
# $$\text{Attention}(q, k, v) = \text{softmax}\!\left(\frac{q\,k^\top}{\sqrt{d_k}}\right) v$$
#
# | quantity | shape | note |
# |---|---|---|
# | `q` | `(T_q, d_k)` | one row per query |
# | `k` | `(T_k, d_k)` | one row per key, as long as a query |
# | `v` | `(T_k, d_v)` | one row per key; the length is free |
# | `scores`, `weights` | `(T_q, T_k)` | queries down, keys across; each row of weights sums to 1 |
# | `context` | `(T_q, d_v)` | one average per query |
#
# Here it is by hand, for two queries and three keys of length 4, so that √d is 2:

# %%
from attention.provided import demand  # the exercises below use it

q_by_hand = [[2.0, 0.0, 1.0, 0.0], [0.0, 3.0, 0.0, 1.0]]
k_by_hand = [[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]]
v_by_hand = [10.0, 20.0, 30.0]

for query in q_by_hand:
    scores = [sum(a * b for a, b in zip(query, key, strict=True)) / 2 for key in k_by_hand]
    powers = [math.exp(score) for score in scores]
    weights = [power / sum(powers) for power in powers]
    context = sum(weight * value for weight, value in zip(weights, v_by_hand, strict=True))
    print(f"scores {scores}   weights {[round(w, 3) for w in weights]}   context {context:.2f}")

# %% [markdown]
# ### Exercise 5.3 · `scaled_dot_product_attention`
# ●●○ medium · 12 minutes · 3 points
#
# Graded in three parts: without a mask (1), with leading axes (1), with a mask and
# `return_weights` (1).
#
# Write equation 1 of *Attention is all you need*. The leading axes can be anything: nothing, a
# batch, a batch and heads. A `mask` may be given: bool, `True` where the query **may** look at the
# key. A forbidden key must get the weight 0, and the others of its row still sum to 1. With
# `return_weights=True` return the pair `context, weights`. Scores of ±1000 must work, and gradients
# must flow back to `q`, `k` and `v`, as through every part of a network from here on. You may use
# `torch.softmax` now.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Scores, scale, mask, softmax, average, in this order. A score of −∞ becomes the weight exp(−∞) =
# 0, so the mask must come *before* the softmax.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(..., T_q, d_k)` times `(..., d_k, T_k)` is `(..., T_q, T_k)`. `transpose(-2, -1)` (or `.mT`)
# swaps the last two axes; `.T` reverses all of them.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Try the numbers that were worked by hand above: are the contexts 15.79 and 22.71? Then add the
# mask: should `masked_fill` get `mask` or `~mask`?
# </details>

# %% exercise="scaled_dot_product_attention"
from attention.scaled_dot_product_attention import scaled_dot_product_attention

# %% check="scaled_dot_product_attention" points=3
check.scaled_dot_product_attention(scaled_dot_product_attention)

# %% [markdown]
# ### Exercise 5.4 · `break_scaled_dot_product_attention` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate's function passed all of their own tests. It is still wrong.

# %% broken="almost_right"
from autograder.mistakes.scaled_dot_product_attention import almost_right

# %% [markdown]
# Write a function without arguments that returns an input `(q, k, v)`, three tensors, for which
# this answer is wrong. Your input must have shapes that the exercise allows.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Read it line by line. Which number should not depend on this tensor? When does that not matter?
# </details>
# <details><summary>Hint 2 · “here … is right: … gives the same”</summary>
#
# A wrong scale shows only if the scores of a query differ, and the values, too.
# </details>

# %% exercise="break_scaled_dot_product_attention"
from attention.scaled_dot_product_attention import break_scaled_dot_product_attention

# %% check="break_scaled_dot_product_attention" points=1
check.break_scaled_dot_product_attention(break_scaled_dot_product_attention)

# %% [markdown]
# ## Can training repair large scores?
# Large scores come from large vectors, and a matrix can make vectors smaller. So could a model not
# learn to do without the division? Each of 16 queries is a rotated key, and a matrix `W` must learn
# to turn it back, so that query *i* attends to key *i*. Here *d* is 512, and the loss is the
# squared error of the context.
#
# <details><summary>The code that ran</summary>
#
# ```python
# q = keys @ rotation @ W * factor
# context = scaled_dot_product_attention(q, keys, torch.eye(n))
# error = (context - torch.eye(n)).square().sum(dim=1).mean()
# scores = q @ keys.T / d**0.5
# loss = F.cross_entropy(scores, torch.arange(n)) if log_loss else error
# (gradient,) = torch.autograd.grad(loss, W)
# with torch.no_grad():
#     W -= rate * gradient
# ```
# </details>

# %% demo=true
axes = experiments.scale_or_size(scaled_dot_product_attention)

# %% [markdown]
# *Squared error of the context after 10 and after 120 steps, for six settings and three seeds each;
# blue is divided, orange not. The cell prints those after 120.*
# - Divided, the error falls to nearly 0. Not divided, training stops almost at once: most rows give
#   a wrong key the weight 1. Equal weights would be better.
# - Divided, but with `W` started √512 times larger, training **fails as well**.
# - Not divided, but with `W` started √512 times smaller, it gets at least 15 of 16 rows right (a
#   wrong key with the weight 1 adds 2/16). With a rate 512 times smaller, too, it repeats
#   *divided*. So the size of the scores matters, not the division.
# - Not divided, but with −log of the right weight as the loss, it learns within ten steps. The
#   gradient of this loss is large wherever a weight is wrong.
#
# So large scores block learning **where the loss reaches them only through the context**, and so
# through the Jacobian of 5.2. In a Transformer that is the rule: nobody gives the right weights.
#
# Why, then, did the scaled score learn so slowly in lesson 04? Its queries and keys are states of a
# GRU. How large are they before training, and how large are their scores?

# %% demo=true
experiments.spreads_in_the_translator()

# %% [markdown]
# *Entries: the root mean square of a query's numbers. Spread: the standard deviation of one query's
# undivided scores.* The entries are far smaller than 1, so for *d* = 64 the scores spread by about
# a half, not by 8. After the division by 8 all weights are nearly equal. That fits lesson 04, where
# twice the rate made up for it. We did not test this cause alone. Dividing by √d assumes
# independent entries of variance 1. That holds, at best, at the **start** of training; later,
# scores may grow again.
#
# ## Where q, k and v come from
# In **self-attention** a sequence looks at itself: *The animal didn't cross the street because it
# was too tired.* To understand *it*, the model should look at *animal*. The simplest way: each
# word's vector $x_i$ is query, key and value at once. Try ten random ones (entries of variance 1):

# %% demo=true
found = experiments.weight_on_itself(scaled_dot_product_attention)

# %% [markdown]
# Every vector looks mostly at itself: $x_i \cdot x_i$ is about *d*, its product with another only
# about ±√*d*. If the vectors of words were like these, *it* would get next to nothing from
# *animal*. What a word looks for can differ from what it is, so each role gets a matrix of its own:
#
# ![The rows of x, one a word, go through three matrices: q = x W_q is what a word looks for, k = x
# W_k how it is found, v = x W_v what it tells. The query of it and the key of animal give a score,
# which says how much of animal's value goes into the context of it.](figures/query_key_value.svg)
#
# Does this help? Here is a task. Each of eight items carries its own name, four numbers, and a name
# to look up. Its output should be the four numbers of the item with that name.
#
# <details><summary>The code that ran</summary>
#
# ```python
# optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0)
# for _ in range(steps):
#     x, y = pointing_items(32, generator)  # (32, 8, 20) and (32, 8, 4)
#     loss = (model(x) - y).square().mean()
#     optimizer.zero_grad()
#     loss.backward()
#     optimizer.step()
#     losses.append(loss.item())
# ```
# </details>

# %% demo=true
ax = experiments.projections()

# %% [markdown]
# *Loss after 300 steps for six ways to make q, k and v, three seeds each.* Two matrices, one for
# the queries and one for the keys, bring it close to 0. One for the values is not needed here (open
# question 1); lesson 07 needs it, for shorter values. The Transformer gives each role a projection:
#
# $$q = x\,W_q, \qquad k = x\,W_k, \qquad v = x\,W_v$$
#
# `x` is `(B, T, d_model)`, each matrix `(d_model, d_head)`, and q, k, v and the result are `(B, T,
# d_head)`. From here on a matrix stands to the right of *x*. (`nn.Linear` stores the transpose,
# outputs first.)
#
# ### Exercise 5.5 · `SelfAttentionHead`
# ●●○ medium · 10 minutes · 2 points
#
# Write the head: three `nn.Linear` without bias, named `W_q`, `W_k` and `W_v`, and a `forward` that
# attends. `forward` may call your `scaled_dot_product_attention` or PyTorch's own,
# `F.scaled_dot_product_attention`, whose mask is called `attn_mask`.
#
# <details><summary>Hint 1 · the shapes</summary>
#
# `nn.Linear(d_model, d_head)` acts on the last axis: `(B, T, d_model)` becomes `(B, T, d_head)`.
# Both attention functions do the scaling.
# </details>
# <details><summary>Hint 2 · “the module has other parameters”</summary>
#
# The check loads weights by name. `W_k = self.W_q` is one layer with two names, and without
# `bias=False` each layer has a second parameter.
# </details>

# %% exercise="SelfAttentionHead"
from attention.scaled_dot_product_attention import SelfAttentionHead

# %% check="SelfAttentionHead" points=2
check.SelfAttentionHead(SelfAttentionHead)

# %% [markdown]
# ### Looking is not mutual
# The word *it* should look at *animal*. Must *animal* then look at *it*? With one matrix for both,
# the score $x_i W W^\top x_j^\top$ is the same both ways. With two it need not be.

# %% demo=true
torch.manual_seed(5)
head = SelfAttentionHead(d_model=16, d_head=8)
x = 3 * torch.randn(1, 3, 16)  # I am Sam
scores = experiments.scores_both_ways(head, x)

# %% [markdown]
# ### Predict first
# Kernel regression ignores the order of its examples (lesson 01). Now there are three matrices, and
# *I am Sam* becomes *Sam I am*. Does the context of *Sam* change?

# %%
prediction = None  # "same" or "different"; None skips this

# %% demo=true
outcome = experiments.in_another_order(head, x, scaled_dot_product_attention)
compare(prediction, outcome, "context of Sam")

# %% [markdown]
# *The same nine weights in another order: rows and columns are shuffled alike.* *I* gives *Sam* the
# weight 0.53, *Sam* gives *I* only 0.03. The context of *Sam* is the same. This is **permutation
# equivariance**: attention alone does not know the order of the words.
#
# In **cross-attention** the queries come from one sequence, keys and values from another. So in a
# translator the German words look at the English ones.
#
# ## What it costs
# ### Exercise 5.6 · `attention_multiplications`
# ●○○ easy · 4 minutes · 1 point
#
# How many multiplications of numbers are there in the two matrix products of attention, queries
# with keys and weights with values? There are `T_q` queries and `T_k` keys of `d_k` numbers, and
# `T_k` values of `d_v`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A matrix product of `(a, b)` and `(b, c)` has *a* · *c* entries, and each takes *b*
# multiplications.
# </details>

# %% exercise="attention_multiplications"
from attention.scaled_dot_product_attention import attention_multiplications

# %% check="attention_multiplications" points=1
check.attention_multiplications(attention_multiplications)

# %% [markdown]
# At every step a plain RNN multiplies its input by one (*d*, *d*) matrix and its state by another:

# %% given="rnn_multiplications"
from attention.scaled_dot_product_attention import rnn_multiplications

# %% demo=true
experiments.multiplications(attention_multiplications, rnn_multiplications)

# %% [markdown]
# With its three projections attention takes $2\,T^2 d + 3\,T d^2$ multiplications, the RNN
# $2\,T d^2$: fewer at **every** length. So an RNN should always be faster. Is it, by the clock?

# %% demo=true
slower_from = experiments.race(SelfAttentionHead)

# %% [markdown]
# *Time against length, for one sequence and for a batch of 64, projections included. Both axes are
# logarithmic; one core of the machine that built this notebook.* For one short sequence attention
# is faster, although it multiplies more: an RNN makes many small products one after another,
# attention a few large ones. In a batch the RNN's products are large, too, and the advantage is
# gone. Long sequences cost attention more: its work grows with *T*² (lesson 18). One core cannot
# show what parallel units gain (lesson 12).
#
# ## How far is it from one word to another?
# Lesson 02 measured how much a word still counts n steps after it was read. Here is the same for a
# GRU, a convolution and your head, all untrained, on random inputs:

# %% demo=true
ax = experiments.reach(SelfAttentionHead)

# %% [markdown]
# *How much an input influences the last output, against the steps between them; that of the last
# input is 1. The vertical axis is logarithmic, with a line for each of three seeds.* In the GRU it
# falls below one in a hundred million (training can change this: the GRU of lesson 02 held on to
# nine words). The convolution reads five positions and nothing beyond. Attention is **flat**: a
# word 39 places back counts as much as the one before. (Only the last word counts more, because it
# also makes the query.)
#
# ![Eight tokens, and the shortest path from the first to the last. Recurrent network: seven steps
# along a chain. Dilated convolution of width 2: three layers, with steps of 1, 2 and 4 positions.
# Self-attention: one layer.](figures/path_lengths.svg)
#
# For *T* vectors of *d* numbers, up to constant factors and without the projections (Vaswani and
# colleagues, section 4):
#
# | layer | multiplications | sequential steps | longest path |
# |---|---|---|---|
# | recurrent | T · d² | T | T |
# | convolution of width *k* | k · T · d² | 1 | T / k, or log_k T if dilated, as drawn |
# | self-attention | T² · d | 1 | 1 |
#
# ## Your translator so far
# From here to lesson 10 your translator changes step by step, and each step adds a row to a table.
# The task is harder than in lessons 02 and 03: numbers of up to **nine** digits, in German up to
# 101 letters. As before, we train three times on 20 000 numbers, for 300 steps of lesson 02's loop.
#
# In this lesson's row the decoder asks with a query of its own, and the words have keys and values
# of their own: three matrices, as in 5.5.

# %% demo=true
from attention.experiments import translator_so_far

_ = translator_so_far.up_to("05", scaled_dot_product_attention=scaled_dot_product_attention)

# %% [markdown]
# *Share of test numbers of seven, eight and nine digits translated without error: three runs of
# each translator, darker where the middle one is better; this lesson's row is framed.* One run of
# the new row gets at least 0.88 right, the others at most 0.18. (The first 20 steps ran here, with
# your function; the rest is recorded.) Other seeds succeed in other lessons. Do all in lesson 10?
#
# What do the matrices contribute, and the division? In lesson 04, dividing hurt. So we trained this
# translator with and without each, on up to six digits as there. Each matrix always starts from the
# same values.
#
# ### Predict first
# With `W_q` and `W_k` only: does dividing help, or hurt, as it did without matrices?

# %%
prediction = None  # "helps" or "hurts"; None skips this

# %% demo=true
outcome = translator_so_far.matrices_and_division()
compare(prediction, outcome, "with W_q and W_k, dividing")

# %% [markdown]
# *Share of test numbers translated without error, six runs a row; blue is divided, orange not. The
# rows without a matrix are those of lesson 04.* At this learning rate, dividing hurts without
# matrices. With `W_q` and `W_k` it helps: divided, all six runs get at least 0.94 of the five-digit
# numbers right; undivided, they scatter from 0.04 to 0.97. Six runs show no further gain from
# `W_v`. Why does it help? Are the undivided scores too large at the start?

# %% demo=true
experiments.spreads_in_the_translator("qk")

# %% [markdown]
# No: they spread by 0.12 to 0.15 only. But dividing by 8 does two things. The scores start 8 times
# smaller, and each step changes them 8 times less, because Adam's steps do not shrink with the
# gradient (lesson 11). Either could be what helps. To tell them apart, the last row printed above
# has small steps only: undivided, but `W_q` and `W_k` learn at an eighth of the rate. No seed does
# worse than at the full rate, and five of six get at least 0.97 right. So **smaller steps** alone
# seem to do most of what the division does here. With six runs a row this is a hint, not a proof.
#
# ## Something of your own
# Write attention by hand. Choose a sentence of five to ten words and a rule, such as "a pronoun
# finds its noun" or "a verb finds its subject". Give every word a query (what it looks for) and a
# key (what it is), a few numbers each, so that your `scaled_dot_product_attention` follows the
# rule. Show the picture: `plots.heatmap(weights, queries=words, keys=words)`. Where does it fail?

# %%
from attention.provided.figures import plots

# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# A dot product of random vectors with *d* entries of variance 1 has variance *d*. After the
# division by √*d*, scores start at a size at which gradients pass through the softmax. In
# self-attention, queries, keys and values come from one sequence, through a matrix each; in
# cross-attention, keys and values come from another. In the translator, at the rate we used,
# dividing pays only together with matrices for queries and keys, and probably because each step
# then changes the scores less. Attention does not know the order of the words. Any two words are
# one step apart, but the cost grows with T_q · T_k.
#
# **Next** [06 · Who may look at whom?](../06_masked_attention/06_masked_attention.ipynb) There the
# mask decides what each word may see.
#
# ## Open questions
# 1. In the task of the eight items, why does it cost nothing to leave `W_v` out
#    (`experiments.fetch("q k", seed=0)`)?
# 2. Is a matrix for the queries necessary, or only faster
#    (`experiments.fetch("k v", seed=0, steps=1200)`)?
# 3. Divide by *d* instead of √*d*
#    (`experiments.turn_back(scaled_dot_product_attention, factor=512**-0.5)`). Does it learn? At
#    *d* = 64, too?

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# 1. It learns as well: 0.000 for seeds 0 to 2. The read-out is a matrix after the attention, and
#    weighted averages of $x W_v$ are weighted averages of $x$, times $W_v$, so one matrix can do
#    the work of both.
# 2. Only faster, here: after 1200 steps the loss is 0.02 for seeds 0 to 2. $x W_k^\top x^\top$ and
#    $x W_q W_k^\top x^\top$ can be the same numbers when the matrices are as wide as *x*.
# 3. Hardly: 0.93 to 0.94 after 120 steps, at 512 and at 64, for seeds 0 to 2 (divided by √*d*:
#    0.002 at 512, 0.12 to 0.30 at 64). The scores start too small, and so do the gradients. With a
#    rate *d* times larger it learns: 0.002 at 512, 0.04 to 0.08 at 64.
#
# </details>

# %% [markdown]
# ## ★ The backward pass
# ### Exercise 5.7 · `attention_backward` ★
# ●●● hard · 20 minutes · 4 points
#
# Graded in three parts: `grad_v` (1), `grad_q` and `grad_k` with d_k = 1 (2), with any
# d_k and leading axes (1).
#
# Do by hand what autograd does elsewhere: you are given the gradient of a loss with respect to the
# context, and the weights of the forward pass. Find the gradients with respect to `q`, `k` and `v`.
#
# With scores $s = q\,k^\top / \sqrt{d_k}$, weights $p = \text{softmax}(s)$ and context $c = p\,v$,
# and $g_a$ for the gradient with respect to $a$:
#
# - a product $c = p\,v$ sends $g_p = g_c\,v^\top$ to its left factor, and $p^\top g_c$ to its
#   right;
# - the softmax multiplies by its Jacobian of exercise 5.2, row by row. Write out
#   $\sum_j J_{ij}\,g_{p,j}$: what can be taken out of the sum?
#
# <details><summary>Hint 1 · the idea</summary>
#
# Go backwards: context, weights, scores, then queries and keys. The gradient of a score is
# $p_i\,\big(g_{p,i} - \sum_j p_j\,g_{p,j}\big)$. The division by √d_k stands between the scores and
# q, k, so it also appears in their gradients.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# A gradient has the shape of what it belongs to: `grad_v` is `(T_k, d_v)`, made from `(T_q, T_k)`
# and `(T_q, d_v)`. Which factor must be transposed?
# </details>
# <details><summary>Hint 3 · “RuntimeError: The size of tensor a (7) must match …”</summary>
#
# The sum over the keys lost its axis: `(T_q,)` lines up with the keys. Keep it as `(T_q, 1)`.
# </details>

# %% exercise="attention_backward"
from attention.scaled_dot_product_attention import attention_backward

# %% check="attention_backward" points=4
check.attention_backward(attention_backward)

# %% [markdown]
# A score with weight 0 receives no gradient, nor does one with weight 1. That is why training
# stopped above where scores were large.
#
# ## References
# - A. Vaswani et al. (2017). *Attention is all you need*, section 3.2.1 and its footnote on the
#   variance. [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - J. Alammar (2018). *The illustrated Transformer.*
#   [jalammar.github.io](https://jalammar.github.io/illustrated-transformer/)
