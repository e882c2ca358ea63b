# %% [markdown]
# # 05 · Why divide by √d?
#
# A dot product is the cheapest way to compare a query with a key: one matrix product compares all
# of them at once. It has a flaw that grows with the length of the vectors. One division fixes it,
# and gives you the formula at the heart of every Transformer.
#
# **After this lesson** you can
# - say why dot products of long vectors are large, and what that does to a softmax and its
#   gradient,
# - tell what fails, the size of the scores, from one cure, the division,
# - write **scaled dot-product attention** for queries and keys of different number,
# - say what queries, keys and values of their own are for, and write a **self-attention head**,
# - compare recurrence, convolution and attention: cost, steps in a row, longest path.
#
# **Time** 85 minutes, ★ 20 more · **Points** 16 · **GPU** not needed · **You need** lessons 00 and
# 04

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.experiments import scaled_dot_product_attention as experiments
from attention.provided import demand
from attention.provided.figures import plots, sliders
from attention.provided.measuring import timing
from attention.provided.predictions import compare
from autograder import check

# %% [markdown]
# ## What fails without this idea
# One query, eight keys, all of them random. No key is special, so the weights should be spread over
# several keys. The same experiment with longer and longer vectors:

# %%
generator = torch.Generator().manual_seed(5)
for d in (4, 64, 1024):
    query = torch.randn(d, generator=generator)
    keys = torch.randn(8, d, generator=generator)
    shares = torch.softmax(keys @ query, dim=0).sort(descending=True).values
    print(f"d = {d:4d}   weights, largest first:", [f"{share:.3f}" for share in shares.tolist()])
    many = torch.randn(1000, 1, d, generator=generator) * torch.randn(
        1000, 8, d, generator=generator
    )
    largest = torch.softmax(many.sum(dim=2), dim=1).amax(dim=1).mean()
    print(f"           largest weight, mean of 1000 such draws: {largest:.2f}")

# %% [markdown]
# At *d* = 1024 nearly all the weight goes to one key. Nothing was learned and nothing matches: the
# vectors are merely long.
#
# ## The idea
# Bring the scores to the same spread, whatever the length of the vectors, before the softmax.
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
# | `v` | `(T_k, d_v)` | as many as keys; the length is free |
# | `scores`, `weights` | `(T_q, T_k)` | queries down, keys across; each row of weights sums to 1 |
# | `context` | `(T_q, d_v)` | one average per query |
#
# By hand, with two queries and three keys of length 4, so that √d is 2:

# %%
q_by_hand = [[2.0, 0.0, 1.0, 0.0], [0.0, 3.0, 0.0, 1.0]]
k_by_hand = [[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]]
v_by_hand = [10.0, 20.0, 30.0]

for i, query in enumerate(q_by_hand):
    powers = []
    for key in k_by_hand:
        score = sum(a * b for a, b in zip(query, key, strict=True)) / 2
        powers.append(math.exp(score))
        print(f"query {i}   score {score:.1f}   exp {powers[-1]:.3f}")
    context = sum(p * value for p, value in zip(powers, v_by_hand, strict=True)) / sum(powers)
    print(f"query {i}   weights {[round(p / sum(powers), 3) for p in powers]}   {context:.2f}")

# %% [markdown]
# ## How large is a dot product?
# ### Exercise 5.1 · `dot_product_statistics`
# ●○○ easy · 5 minutes · 1 point
#
# Measure it first. Row *i* of `q` and row *i* of `k` make a pair. Return the mean and the variance
# of the `n` dot products.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A dot product is a sum of products of entries. The variance is the mean squared distance from the
# mean.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(n, d_k)` times `(n, d_k)`, entry by entry, is `(n, d_k)`. One axis is summed away: `(n,)`. Mean
# and variance of these have the shape `()`.
# </details>
# <details><summary>Hint 3 · “the variance of the products 3, -1, 6, 4 is wrong”</summary>
#
# `var` divides by *n* − 1 unless told otherwise, which gives 8.66667 here. It should be *n*.
# </details>

# %% exercise="dot_product_statistics"
from attention.scaled_dot_product_attention import dot_product_statistics

# %% check="dot_product_statistics" points=1
check.dot_product_statistics(dot_product_statistics)

# %% [markdown]
# ### Predict first
# The entries of `q` and `k` are drawn from a normal distribution with mean 0 and variance 1. When
# *d* grows from 4 to 256, it becomes 64 times as large. By which factor does the **variance** of
# the dot product grow?

# %%
prediction = None  # a number, 1 if it stays as it is; None skips this

# %% demo=true
generator = torch.Generator().manual_seed(0)
products, variances = {}, {}
for d in (4, 16, 64, 256):
    q, k = torch.randn(2, 20_000, d, generator=generator)
    mean, variance = dot_product_statistics(q, k)
    products[d], variances[d] = torch.linalg.vecdot(q, k), variance.item()
    print(f"d {d:4d}   mean {mean:6.2f}   variance {variance:7.2f}   spread {variance**0.5:6.2f}")
ax = experiments.distributions(products)
compare(prediction, variances[256] / variances[4], "growth of the variance")

# %% [markdown]
# *Dot products of 20 000 random pairs at four lengths: all centred on 0, and each curve twice as
# wide as the one before it, for vectors four times as long.* The variance is *d*, so the spread,
# the **standard deviation**, is √*d*. We divide by √*d*, not by *d*.
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
# Dividing a number by *c* divides its variance by *c*². With $c = \sqrt{d}$ the variance is 1 at
# every length.

# %% [markdown]
# ## What large scores do to learning
# ### Exercise 5.2 · `softmax_gradient_norm`
# ●●○ medium · 10 minutes · 2 points
#
# How much do the weights move when the scores move a little? The answer is the Jacobian of the
# softmax, a matrix per row of scores. With weights $p$:
#
# $$J_{ij} = \frac{\partial p_i}{\partial s_j} = \begin{cases} p_i\,(1 - p_i) & i = j \\
# -\,p_i\,p_j & i \ne j \end{cases}$$
#
# Compute its size, the Frobenius norm: the root of the sum of all squared entries. `scores` may
# have any number of leading axes.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The two cases are one matrix: a diagonal one minus an outer product. When one weight is 1 and the
# others are 0, every entry vanishes.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Weights `(..., T_k)`. As a column `(..., T_k, 1)`, as a row `(..., 1, T_k)`; their product is
# `(..., T_k, T_k)`. The norm takes the last two axes away.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# By hand for *p* = (¾, ¼): which matrix stands in front of the minus, and which is subtracted? The
# first takes one call of `torch.diag_embed`, and `torch.linalg.matrix_norm` knows the norm.
# </details>

# %% exercise="softmax_gradient_norm"
from attention.scaled_dot_product_attention import softmax_gradient_norm

# %% check="softmax_gradient_norm" points=2
check.softmax_gradient_norm(softmax_gradient_norm)

# %% [markdown]
# Now this norm for 500 random queries with 16 keys each, for *d* from 1 to 4096, with the division
# by √*d* and without.

# %% demo=true
ax = experiments.sizes_of_the_jacobian(softmax_gradient_norm)

# %% [markdown]
# *Size of the softmax's Jacobian against the length of the vectors, both axes logarithmic; lines
# are medians, bands hold the middle half of the queries.* Divided by √d it stays where it is;
# undivided it falls by many powers of ten, and with it every gradient on its way from the context
# to queries and keys. Such a softmax is called **saturated**: it has decided, and an error hardly
# changes its mind.

# %% [markdown]
# ## The formula
# ### Exercise 5.3 · `scaled_dot_product_attention`
# ●●○ medium · 12 minutes · 3 points
#
# In stages, each earned by itself: without a mask (1), with leading axes (1), with a mask and
# `return_weights` (1).
#
# Write equation 1 of *Attention is all you need*. The leading axes can be anything: nothing, a
# batch, a batch and heads. A `mask` may come with it: bool, `True` where the query **may** look at
# the key. A forbidden key must get the weight 0, and the others of its row still sum to 1. With
# `return_weights=True` return the pair `context, weights`. Scores of ±1000 are fine, and gradients
# flow back to `q`, `k` and `v`.
#
# You wrote softmax yourself in lesson 00. From now on `torch.softmax` may do it.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Scores, scale, mask, softmax, average, in this order. A score of −∞ becomes the weight
# exp(−∞) = 0, so the mask must come *before* the softmax.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(..., T_q, d_k)` times `(..., d_k, T_k)` is `(..., T_q, T_k)`: the last two axes of `k` must
# change places, whatever stands before them. The softmax runs over the keys, the last axis.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Begin without a mask and try the numbers that were worked by hand above: contexts 15.79 and 22.71?
# Then the mask: which of your lines must it change, and is it `mask` or `~mask` that `masked_fill`
# should fill?
# </details>
# <details><summary>Hint 4 · “TypeError: ~ (operator.invert) is only implemented on …”</summary>
#
# `~` turns bools around. Is your mask already a tensor of numbers?
# </details>
# <details><summary>Hint 5 · <code>k.T</code> warns, or gives the shape (4, 7, 3, 2)</summary>
#
# `.T` reverses all axes. `transpose(-2, -1)` (or `.mT`) swaps the last two.
# </details>

# %% exercise="scaled_dot_product_attention"
from attention.scaled_dot_product_attention import scaled_dot_product_attention

# %% check="scaled_dot_product_attention" points=3
check.scaled_dot_product_attention(scaled_dot_product_attention)

# %% [markdown]
# ### Exercise 5.4 · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate's function passes every test that they have tried. It is wrong all the same.

# %% broken="divides_by_the_root_of_d_v"
from autograder.mistakes.scaled_dot_product_attention import divides_by_the_root_of_d_v

# %% [markdown]
# Write a function without arguments that returns an input `(q, k, v)`, three tensors, for which the
# answer is wrong. Your input must have shapes that the exercise allows.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Compare line by line with the formula. Which size is taken from the wrong tensor, and when does
# that make no difference?
# </details>
# <details><summary>Hint 2 · “here … is right: … gives the same”</summary>
#
# Another scale shows only if the scores of a query differ, and the values, too.
# </details>

# %% exercise="break_scaled_dot_product_attention"
from attention.scaled_dot_product_attention import break_scaled_dot_product_attention

# %% check="break_scaled_dot_product_attention" points=1
check.break_scaled_dot_product_attention(break_scaled_dot_product_attention)

# %% [markdown]
# ## Break it
# Ten random queries and keys of length 512. On the left the formula, on the right the same without
# the scale (multiplying the queries by √512 undoes the division).


# %% demo=true
def both_scales(d):
    """Draw weights with and without the division, for random queries and keys of length d."""
    d = round(d)
    q, k = torch.randn(2, 10, d, generator=torch.Generator().manual_seed(2))
    axes = plots.panels(columns=2, width=3.2, height=2.8)
    for ax, undo, name in zip(axes, (1.0, d**0.5), ("divided by √d", "not divided"), strict=True):
        _, weights = scaled_dot_product_attention(undo * q, k, k, return_weights=True)
        plots.heatmap(weights, ax, title=f"{name}, d = {d}", colorbar=False)
        print(f"{name:<14} largest weight of a row, on average: {weights.amax(1).mean():.2f}")


both_scales(512)

# %% [markdown]
# *Weights of ten random queries on ten random keys of length 512, on the same colour scale. Left:
# shades. Right: nearly every row has one dark cell and no shades.* Now change *d*:

# %% demo=true
sliders.slider(both_scales, d=(1, 1024))

# %% [markdown]
# Can training repair it? Each of 16 queries is a rotated key, and a matrix `W` must learn to turn
# it back, so that query *i* attends to key *i*. The loss is the squared error of the context, the
# optimiser plain gradient descent. What is changed stands above each panel.

# %% demo=true
axes = experiments.scale_or_size(scaled_dot_product_attention)

# %% [markdown]
# *Squared error of the context against training step for six settings, one line for each of three
# seeds; printed is the error after 120 steps.*
# - Divided, it falls to nearly 0. Undivided it stops almost at once: most rows choose a wrong key
#   with a weight of 1, and from there hardly any gradient comes back.
# - Divided, but started √512 times larger, it **fails as well**. Undivided, but started √512 times
#   smaller, it learns: at most one of the 16 queries keeps a wrong key (which costs 2/16). With the
#   rate made smaller, too, its curve is that of the first panel. So what matters is the size of the
#   scores, not the division.
# - Undivided, but with −log of the right weight for a loss, as in lesson 04's crossing, it learns
#   within ten steps. The gradient of this loss at the scores is *p* − *y*, the weights minus the
#   right ones: large wherever a weight is wrong, however large the scores.
#
# So large scores stop learning **where the loss reaches them through the context only**, and thus
# through the Jacobian of 5.2. In a Transformer it always does: nobody says which weights are right.
#
# Lesson 04's translator learned through the context, too, and *better* undivided. Its queries and
# keys are states of a GRU. How large are they, and their scores, before training?

# %% demo=true
for seed in (0, 1, 2):
    print(f"lesson 04, seed {seed}:", experiments.spread_in_the_translator(seed))

# %% [markdown]
# *Root mean square of a query's entries, and spread of the undivided scores of one query.* The
# entries are far smaller than 1, so for *d* = 64 the scores spread by about a half, not by 8;
# divided by 8, all weights are nearly equal. The division is made for entries of variance 1, and
# there it works for any *d*.
#
# It does so **for the start only**. The proof assumes independent queries and keys; training makes
# them dependent. In the last line under the six panels the spread is no longer 1, and the right key
# scores far above the rest.
#
# ### And without dot products?
# Vaswani and colleagues write, citing Britz and colleagues (2017), that for large *d* the additive
# score of lesson 03 beats the undivided dot product. The same task, all matrices learned with Adam:

# %% demo=true
ax = experiments.additive_against_dot()
print("one run, now:", round(experiments.find_keys("additive", 64, rate=0.003, seed=0), 4))

# %% [markdown]
# *Loss after 120 steps against the length of the vectors, for three scores and three seeds, each at
# its best learning rate of four (recorded).* From 64 on the undivided dot product fails at every
# rate tried, and the other two learn.

# %% [markdown]
# ## Where q, k and v come from
# In **self-attention** a sequence looks at itself: *The animal didn't cross the street because it
# was too tired.* To understand *it*, the model should look at *animal*. The simplest way: every
# token's vector $x_i$ is query, key and value at once.

# %% demo=true
for d in (16, 64, 256):
    own = []
    for seed in (0, 1, 2):
        x = torch.randn(200, 10, d, generator=torch.Generator().manual_seed(seed))
        _, weights = scaled_dot_product_attention(x, x, x, return_weights=True)
        own.append(round(weights.diagonal(dim1=1, dim2=2).mean().item(), 3))
    print(f"d {d:3d}   weight of a random token on itself, among ten, seeds 0 to 2: {own}")

# %% [markdown]
# Every token looks at itself: $x_i \cdot x_i$ is about *d*, and other products are about √*d*. Then
# *it* learns nothing from *animal*. There is a second problem: the same numbers would have to say
# how a word is found and what it tells you once found.
#
# So each role gets a matrix of its own:
#
# ![The rows of x, one a word, go through three matrices: q = x W_q is what a word looks for,
# k = x W_k how it is found, v = x W_v what it tells. The query of it and the key of animal make a
# score: so much of the value of animal goes into the context of it.](figures/query_key_value.svg)
#
# In this task the roles differ: each of eight items has a name, **asks** for the name of another,
# holds four numbers, and must report the numbers of the item it asks for.

# %% demo=true
ax = experiments.projections()

# %% [markdown]
# *Loss after 300 steps for five ways to make q, k and v, three seeds each.* With *x* in all roles,
# or one matrix for all, little is fetched. As soon as queries and keys are made differently, most
# of it is. (Each matrix speeds learning up here; whether it is *needed* is an open question below.)
# So the Transformer gives each role a projection:
#
# $$q = x\,W_q, \qquad k = x\,W_k, \qquad v = x\,W_v$$
#
# | quantity | shape |
# |---|---|
# | `x` | `(B, T, d_model)` |
# | `W_q`, `W_k`, `W_v` | `(d_model, d_head)` each |
# | `q`, `k`, `v` | `(B, T, d_head)` each |
# | result | `(B, T, d_head)` |
#
# From here on a matrix stands to the right of *x*. (`nn.Linear` keeps its transpose, outputs
# first, as the formulas of lessons 03 and 04 had it.)
#
# ### Exercise 5.5 · `SelfAttentionHead`
# ●●○ medium · 10 minutes · 2 points
#
# Write the head: three `nn.Linear` without bias, named `W_q`, `W_k` and `W_v`, and a `forward` that
# attends. If your `scaled_dot_product_attention` is right, `forward` may call it; PyTorch's own,
# `F.scaled_dot_product_attention`, computes the same, with the mask under the name `attn_mask`.
# Scores may be in the hundreds.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Three projections of the same `x`, then attention between them. Both functions divide by the root
# of the length of their queries by themselves.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `nn.Linear(d_model, d_head)` acts on the last axis, whatever stands before it: `(B, T, d_model)`
# becomes `(B, T, d_head)`.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# How many layers does `__init__` make, from which length to which? And if `forward` holds `q`, `k`
# and `v`, what is left to do?
# </details>
# <details><summary>Hint 4 · “the module has other parameters”</summary>
#
# The names count: the check loads its weights by name. `W_k = self.W_q` is one layer with two
# names, and without `bias=False` each layer has a second parameter.
# </details>

# %% exercise="SelfAttentionHead"
from attention.scaled_dot_product_attention import SelfAttentionHead

# %% check="SelfAttentionHead" points=2
check.SelfAttentionHead(SelfAttentionHead)

# %% [markdown]
# ### Who looks at whom is not mutual
# The scores of self-attention are $x\,W_q W_k^\top x^\top$. With $W_q = W_k$ this would be
# symmetric. With two matrices it need not be: what *it* needs from *animal* is not what *animal*
# needs from *it*.

# %% demo=true
torch.manual_seed(6)
head = SelfAttentionHead(d_model=16, d_head=8)
words = ["I", "am", "Sam"]
x = 3 * torch.randn(1, 3, 16)
with torch.no_grad():
    scores = head.W_q(x)[0] @ head.W_k(x)[0].T
    print("score of I on Sam", round(scores[0, 2].item(), 2))
    print("score of Sam on I", round(scores[2, 0].item(), 2))
    alike = head.W_q(x)[0] @ head.W_q(x)[0].T  # one projection for both
    both = [round(alike[i, j].item(), 2) for i, j in ((0, 2), (2, 0))]
    print("both with one projection:", both)

# %% [markdown]
# ### Predict first
# *I am Sam* becomes *Sam I am*: the same three vectors in another order. Will the context of *Sam*
# be another one?

# %%
prediction = None  # "same" or "another"; None skips this

# %% demo=true
order = [2, 0, 1]
axes = plots.panels(columns=2, width=3.2, height=2.6, share=False)
with torch.no_grad():
    for ax, chosen in zip(axes, ([0, 1, 2], order), strict=True):
        z = x[:, chosen]
        names = [words[i] for i in chosen]
        context, weights = scaled_dot_product_attention(
            head.W_q(z), head.W_k(z), head.W_v(z), return_weights=True
        )
        last = ax is axes[-1]
        plots.heatmap(weights[0], ax, " ".join(names), names, names, numbers=True, colorbar=last)
        print("context of Sam:", [round(c, 3) for c in context[0, chosen.index(2), :4].tolist()])
    same = torch.allclose(head(x[:, order]), head(x)[:, order], atol=1e-6)
print("shuffling the input shuffles the output, and nothing else:", same)
compare(prediction, "same" if same else "another", "context of Sam")

# %% [markdown]
# *Two weight matrices with the same numbers in other places: rows and columns are shuffled alike.*
# The context of *Sam* is the same. This is **permutation equivariance**: attention alone does not
# know the order of the words.

# %% [markdown]
# ### Cross-attention
# In a translator, the German words look at the English ones: `x` asks, `memory` answers. It is the
# same call with two sequences, which may differ in length:

# %% demo=true
for T_k in (5, 500):
    memory = torch.randn(1, T_k, 16)
    q, k, v = head.W_q(x), head.W_k(memory), head.W_v(memory)
    context = scaled_dot_product_attention(q, k, v)
    print(f"{x.shape[1]} queries, {T_k:3d} keys: a context of shape", tuple(context.shape))

# %% [markdown]
# The number of results is the number of queries, however long the memory is. Its vectors may also
# be wider or narrower than those of `x`: then `W_k` and `W_v` have another number of inputs.
#
# ## What it costs
# ### Exercise 5.6 · `attention_multiplications`
# ●○○ easy · 4 minutes · 1 point
#
# Count the multiplications of numbers in the two matrix products of attention: queries with keys,
# and weights with values.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A matrix product of `(a, b)` and `(b, c)` has *a* · *c* entries, and each takes *b*
# multiplications.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# First product: `(T_q, d_k)` and `(d_k, T_k)`. Second product: `(T_q, T_k)` and `(T_k, d_v)`.
# </details>

# %% exercise="attention_multiplications"
from attention.scaled_dot_product_attention import attention_multiplications

# %% check="attention_multiplications" points=1
check.attention_multiplications(attention_multiplications)

# %% [markdown]
# A plain RNN multiplies its input and its state with a (*d*, *d*) matrix each, at every step.
# Attention has three projections. A fair count includes them on both sides:

# %% given="rnn_multiplications"
from attention.scaled_dot_product_attention import rnn_multiplications

# %% demo=true
d = 64
print("   T    attention      + projections          RNN    its input left out")
for T in (1, 16, 32, 64, 256, 1024):
    ours, theirs = attention_multiplications(T, T, d, d), rnn_multiplications(T, d)
    print(f"{T:4d} {ours:12,d} {ours + 3 * T * d * d:18,d} {theirs:12,d} {theirs - T * d * d:21,d}")

# %% [markdown]
# With projections it is $2\,T^2 d + 3\,T d^2$ against $2\,T d^2$: attention needs more at **every**
# length. (Without them, $2\,T^2 d$ against $T d^2$, it needs fewer below $T = d/2$.) So an RNN
# should always be the faster one. Is it, by the clock?


# %% demo=true
rnn, head = nn.RNN(d, d, batch_first=True), SelfAttentionHead(d, d)
lengths = [2**power for power in range(4, 13)]
clock = {"attention": [], "RNN": []}
threads = torch.get_num_threads()
torch.set_num_threads(1)  # one core: the fairest race, and the steadiest clock
with torch.no_grad():
    for T in lengths:
        x = torch.randn(1, 1, T, d)
        runs = {
            "attention": lambda x=x: head(x[0]),
            "RNN": lambda x=x: rnn(x[0]),
        }
        for name, run in runs.items():
            clock[name].append(timing.milliseconds(run, repeats=7))
torch.set_num_threads(threads)

# %% demo=true
ax = plots.lines(lengths, clock, xlabel="T", ylabel="milliseconds", log=True)
ax.set(yscale="log")
slower = [T for T, ours, theirs in zip(lengths, *clock.values(), strict=True) if ours > theirs]
print("attention takes longer, here: T =", slower[0] if slower else f"> {lengths[-1]}")

# %% [markdown]
# *Time against length on one core, projections included, both axes logarithmic, on the machine that
# built this notebook.* For short sequences attention is the faster one, although it multiplies
# more: an RNN takes many small products one after the other, attention a few large ones. For very
# long sequences the square wins: lesson 18 is about them.

# %% [markdown]
# ## How far is it from one word to another?
# Lesson 02 measured how a word's influence fades from step to step. The same measurement for a GRU,
# a convolution and your head, all of them untrained:

# %% demo=true
ax = experiments.reach(SelfAttentionHead)

# %% [markdown]
# *Influence of an input on the last output against the steps between them, the last input's own
# being 1; vertical scale logarithmic, a line for each of three seeds.* The GRU's falls below one in
# a hundred million. The convolution reads five positions alike and nothing beyond: that takes more
# layers. Attention is **flat**: a word 39 places back counts as much as the one before. (The last
# word itself counts most, because it also asks.)
#
# ![Eight tokens, and the shortest path from the first to the last. Recurrent network: seven steps
# along a chain. Dilated convolution of width 2: three layers, with steps of 1, 2 and 4 positions.
# Self-attention: one layer.](figures/path_lengths.svg)
#
# Up to constant factors, for *T* vectors of *d* numbers (Vaswani and colleagues, table 1):
#
# | layer | multiplications | waits: steps in a row | longest path |
# |---|---|---|---|
# | recurrent | T · d² | T | T |
# | convolution of width *k* | k · T · d² | 1 | T / k, or log_k T if dilated, as drawn |
# | self-attention | T² · d | 1 | 1 |
#
# ### Exercise 5.7 · `layer_costs`
# ●●○ medium · 8 minutes · 2 points
#
# Return such a row exactly. The recurrent layer and attention multiply as often as counted above,
# without attention's projections. The convolution is not dilated: it reads its own position and
# `width` − 1 before it.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Multiplications: two of the three have a function above. Path: mark the first position. How far to
# the right does the mark reach after one layer, after two?
# </details>
# <details><summary>Hint 2 · by hand</summary>
#
# For T = 8 the recurrent path has seven steps. A convolution of width 3 reaches position 2, then 4,
# then 6, and needs a fourth layer for position 7.
# </details>
# <details><summary>Hint 3 · “the counts should be integers”</summary>
#
# `/` gives floats, and there is no half layer: `math.ceil` rounds up.
# </details>

# %% exercise="layer_costs"
from attention.scaled_dot_product_attention import layer_costs

# %% check="layer_costs" points=2
check.layer_costs(layer_costs)

# %% demo=true
for kind in ("recurrent", "convolution", "self-attention"):
    for T in (40, 4000):
        multiplications, waits, path = layer_costs(kind, T, d=64, width=5)
        print(f"{kind:<15} T {T:4d}  {multiplications:>13,d}   waits {waits:4d}   path {path:4d}")

# %% [markdown]
# ## Limits
# Scores of a trained model may become large again. Attention compares pairs: no score depends on
# three positions at once, and every pair costs a score.
#
# ## Summary
# A dot product of random vectors of length *d* has mean 0 and variance *d*. Divided by the standard
# deviation √*d*, the scores start at a size at which a gradient passes the softmax. In
# self-attention one sequence is queries, keys and values, each by a matrix of its own; in
# cross-attention the keys and values come from another. It is not symmetric and does not know the
# order. Any two words are one step apart and nothing waits; the price grows with T_q · T_k.
#
# **Next** [06 · Who may look at whom?](../06_masked_attention/06_masked_attention.ipynb) There the
# mask gets its lesson.
#
# ## Open questions
# 1. In the task of the eight items, leave `W_v` out and keep `W_q` and `W_k`
#    (`experiments.fetch("q k", seed=0)`). What do you expect, and what is `W_v` for, then?
# 2. The row “q is x; W_k, W_v” is at a loss above 0.2 after 300 steps. Is a matrix for the
#    queries necessary, or only faster? (`steps=1200`)
# 3. Divide by *d* instead of √*d*
#    (`experiments.turn_back(scaled_dot_product_attention, factor=512**-0.5)`). Does it learn? At
#    *d* = 64, too?

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# 1. It learns as well: 0.000 for seeds 0 to 2. The read-out is a matrix after the attention, and
#    weighted averages of $x W_v$ are weighted averages of $x$, times $W_v$: one matrix can do the
#    work of both. `W_v` pays where it makes the values *shorter*, as in the heads of lesson 07.
# 2. Only faster, here: after 1200 steps the loss is 0.02 for seeds 0 to 2. $x W_k^\top x^\top$ and
#    $x W_q W_k^\top x^\top$ can be the same numbers when the matrices are as wide as *x*.
# 3. Hardly: 0.93 to 0.94 after 120 steps, at 512 and at 64, for seeds 0 to 2 (divided by √*d*:
#    0.002 at 512, 0.12 to 0.30 at 64). The scores start too small, and so do the gradients. With a
#    rate *d* times larger it learns: 0.002 at 512, 0.04 to 0.08 at 64.
#
# </details>

# %% [markdown]
# ## ★ The backward pass
# ### Exercise 5.8 · `attention_backward` ★
# ●●● hard · 20 minutes · 4 points
#
# In stages, each earned by itself: `grad_v` (1), `grad_q` and `grad_k` with d_k = 1 (2), with any
# d_k and leading axes (1).
#
# Autograd does this elsewhere; do it once by hand: from the gradient of a loss with respect to the
# context, find those with respect to `q`, `k` and `v`. The weights of the
# forward pass are given.
#
# With scores $s = q\,k^\top / \sqrt{d_k}$, weights $p = \text{softmax}(s)$ and context $c = p\,v$,
# and $g_a$ for the gradient with respect to $a$:
#
# - a product $c = p\,v$ sends $g_p = g_c\,v^\top$ to its left factor, and $p^\top g_c$ to its
#   right;
# - the softmax sends its Jacobian of exercise 5.2, row by row:
#   $g_{s,i} = p_i\,\big(g_{p,i} - \sum_j p_j\,g_{p,j}\big)$.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Go backwards: context, weights, scores, then queries and keys. The division by √d_k stands between
# the scores and q, k, so it also stands in their gradients.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# A gradient has the shape of what it belongs to. For each product only one order fits, and one
# factor must be transposed: `grad_v` is `(T_k, d_v)`, made from `(T_q, T_k)` and `(T_q, d_v)`.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Begin with the two products: one rule gives `grad_v` and the gradient of the weights. Which sum
# over the keys does the softmax's rule need, and which of the two factors 1/√d_k and the softmax
# did the forward pass apply last?
# </details>
# <details><summary>Hint 4 · “RuntimeError: The size of tensor a (7) must match …”</summary>
#
# The sum over the keys lost its axis: `(T_q,)` lines up with the keys. Keep it as `(T_q, 1)`.
# </details>

# %% exercise="attention_backward"
from attention.scaled_dot_product_attention import attention_backward

# %% check="attention_backward" points=4
check.attention_backward(attention_backward)

# %% [markdown]
# Because of the factor $p_i$, a key with weight 0 receives no gradient; if one weight is 1, the
# bracket is 0 as well. Those are the flat lines of the training above.
#
# ## References
# - A. Vaswani et al. (2017). *Attention is all you need*, section 3.2.1 and its footnote on the
#   variance. [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - D. Britz, A. Goldie, M.-T. Luong, Q. Le (2017). *Massive exploration of neural machine
#   translation architectures.* [arXiv:1703.03906](https://arxiv.org/abs/1703.03906)
# - J. Alammar (2018). *The illustrated Transformer.*
#   [jalammar.github.io](https://jalammar.github.io/illustrated-transformer/)
