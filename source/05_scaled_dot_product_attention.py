# %% [markdown]
# # 05 · Why divide by √d?
#
# A dot product is the cheapest way to compare a query with a key: one matrix product compares all
# of them at once. It has a flaw that grows with the length of the vectors, and the cure is a single
# division. With it, you write the formula on which every Transformer rests.
#
# **After this lesson** you can
# - say why dot products of long vectors are large, and what that does to a softmax and its
#   gradient,
# - write **scaled dot-product attention** for queries and keys of different number,
# - turn it into a **self-attention head** and a **cross-attention head**,
# - count its cost, and measure from where on an RNN would be cheaper.
#
# **Time** 90 minutes · **Points** 15 · **GPU** not needed · **You need** lessons 00 and 04

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided import measure, plots
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

# %% [markdown]
# At *d* = 1024 one key takes nine tenths. Nothing was learned and nothing matches. The vectors are
# merely long. A softmax that has already decided cannot be taught either, as you will see.
#
# ## The idea
# Bring the scores to one and the same spread, whatever the length of the vectors, before the
# softmax sees them.
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
# <details><summary>Hint 3 · “the variance of the products is wrong”, but only slightly</summary>
#
# `var` divides by *n* − 1 unless told otherwise. Here it is *n*.
# </details>

# %% exercise="dot_product_statistics"
from attention.scaled_dot_product_attention import dot_product_statistics

# %% check="dot_product_statistics" points=1
check.dot_product_statistics(dot_product_statistics)

# %% [markdown]
# ### Predict first
# The entries of `q` and `k` are drawn from a normal distribution with mean 0 and variance 1. What
# happens to the **mean** of the dot product when *d* grows from 4 to 256? And to the **variance**:
# does it stay, does it grow like √*d*, or like *d*?

# %% demo=true
generator = torch.Generator().manual_seed(0)
products = {}
for d in (4, 16, 64, 256):
    q, k = torch.randn(2, 20_000, d, generator=generator)
    mean, variance = dot_product_statistics(q, k)
    products[f"d = {d}"] = torch.linalg.vecdot(q, k)
    print(f"d {d:4d}   mean {mean:6.2f}   variance {variance:7.2f}   spread {variance**0.5:6.2f}")
ax = plots.histograms(products, xlabel="dot product", span=(-50, 50))

# %% [markdown]
# *Dot products of 20 000 random pairs at four lengths: all centred on 0, and each curve twice as
# wide as the one before it, for vectors four times as long.* The variance is *d*, so the spread,
# the **standard deviation**, is √*d*. The two are easily confused: what is divided by is √*d*.
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
# every length. Nothing in the argument needs a normal distribution, only the two moments.

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
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# p = softmax of the scores along the last axis
# J = matrix with p on its diagonal, minus (p as a column) times (p as a row)
# result = Frobenius norm of J over the last two axes
# ```
# `torch.diag_embed` puts vectors on diagonals; `torch.linalg.matrix_norm` knows the norm.
# </details>
# <details><summary>Hint 4 · my result is 0 everywhere</summary>
#
# The gradient of `weights.sum()` is 0, since the sum is always 1. Every weight needs its own row.
# </details>

# %% exercise="softmax_gradient_norm"
from attention.scaled_dot_product_attention import softmax_gradient_norm

# %% check="softmax_gradient_norm" points=2
check.softmax_gradient_norm(softmax_gradient_norm)

# %% [markdown]
# ### Predict first
# The median of this norm over 500 random queries with 16 keys, for *d* from 1 to 4096. Draw both
# curves in your mind: with the division by √*d*, and without.

# %% demo=true
generator = torch.Generator().manual_seed(1)
lengths = [4**power for power in range(7)]
norms = {"divided by √d": [], "not divided": []}
for d in lengths:
    q, k = torch.randn(500, 1, d, generator=generator), torch.randn(500, 16, d, generator=generator)
    scores = torch.linalg.vecdot(q, k)  # (500, 16)
    norms["divided by √d"].append(softmax_gradient_norm(scores / d**0.5).median())
    norms["not divided"].append(softmax_gradient_norm(scores).median())
ax = plots.lines(lengths, norms, xlabel="d", ylabel="size of the Jacobian", log=True)
ax.set(yscale="log", ylim=(1e-12, 1))
print("not divided, d = 4096:", f"{norms['not divided'][-1]:.1e}")

# %% [markdown]
# *Size of the softmax's Jacobian against the length of the vectors, both axes logarithmic: flat
# when the scores are divided by √d, falling by many powers of ten when not.* Every gradient on
# its way from the loss to the queries and keys is multiplied by this matrix. This is what
# "saturated" means: the softmax has decided, and no error can change its mind.

# %% [markdown]
# ## The formula
# ### Exercise 5.3 · `scaled_dot_product_attention`
# ●●○ medium · 12 minutes · 3 points
#
# Write equation 1 of *Attention is all you need*. The leading axes can be anything: nothing, a
# batch, a batch and heads. A `mask` may come with it: bool, `True` where the query **may** look at
# the key. A forbidden key must get the weight 0, and the others of its row still sum to 1. With
# `return_weights=True` return the pair `context, weights`.
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
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# scores  = (q times k with its last two axes swapped) over the root of the length of a query
# if there is a mask: put -inf where it is False
# weights = softmax over the keys
# context = weights times v
# return the context, or the pair
# ```
# </details>
# <details><summary>Hint 4 · “RuntimeError: bitwise_not … only on integer and Boolean”</summary>
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
# ### Break it
# Ten queries and ten keys of length 512, all random. On the left the formula, on the right the same
# without the scale (the queries are multiplied by √512, which undoes the division).

# %% demo=true
generator = torch.Generator().manual_seed(2)
q, k = torch.randn(2, 10, 512, generator=generator)
_, scaled = scaled_dot_product_attention(q, k, k, return_weights=True)
_, unscaled = scaled_dot_product_attention(q * 512**0.5, k, k, return_weights=True)
axes = plots.panels(columns=2, width=3.2, height=2.8)
plots.heatmap(scaled, axes[0], title="divided by √512", colorbar=False)
plots.heatmap(unscaled, axes[1], title="not divided")
for name, weights in (("divided", scaled), ("not divided", unscaled)):
    print(f"{name:<12} largest weight of a row, on average: {weights.amax(1).mean():.2f}")

# %% [markdown]
# *Weights of ten random queries on ten random keys of length 512, on the same colour scale. Left:
# shades, nearly every key is heard. Right: every row but one has a single dark cell and no shades.*
#
# Does it matter, if training can repair it? Let us train. Each of 16 queries is a rotated key. A
# matrix `W` must learn to turn it back, so that query *i* attends to key *i*. The loss is the
# squared error of the context, and the optimiser is plain gradient descent.


# %% demo=true
def train(divide, d=512, n=16, steps=120, rate=0.05):
    """Learn W such that query i finds key i; return the loss at every step."""
    generator = torch.Generator().manual_seed(3)
    keys = torch.randn(n, d, generator=generator)
    rotation = torch.linalg.qr(torch.randn(d, d, generator=generator)).Q
    W = (torch.randn(d, d, generator=generator) / d**0.5).requires_grad_()
    undo = 1.0 if divide else d**0.5
    losses = []
    for _ in range(steps):
        context = scaled_dot_product_attention(keys @ rotation @ W * undo, keys, torch.eye(n))
        loss = (context - torch.eye(n)).square().sum(dim=1).mean()
        loss.backward()
        with torch.no_grad():
            W -= rate * W.grad
        W.grad = None
        losses.append(loss.item())
    return losses


curves = {"divided by √d": train(divide=True), "not divided": train(divide=False)}
ax = plots.lines(range(120), curves, xlabel="step", ylabel="loss")
ax.set(ylim=(0, 2))
print({name: round(losses[-1], 3) for name, losses in curves.items()})

# %% [markdown]
# *Loss against training step: with the division it falls to nearly 0, without it stops almost at
# once at a high value.* Same data, same start, same step size. Without the scale most rows choose
# a wrong key with a weight of 1 in the first step, and from there no gradient comes back.

# %% [markdown]
# ## Where q, k and v come from
# In a Transformer all three are **projections**: the same vectors, seen through three learned
# matrices. In **self-attention** they are made from one sequence $x$:
#
# $$q = x\,W_q, \qquad k = x\,W_k, \qquad v = x\,W_v$$
#
# | quantity | shape |
# |---|---|
# | `x` | `(B, T, d_model)` |
# | `q`, `k`, `v` | `(B, T, d_head)` each |
# | result | `(B, T, d_head)` |
#
# All positions are computed in one matrix product: nothing waits for the position before it.
#
# The two classes below use PyTorch's own `F.scaled_dot_product_attention`. It takes q, k and v and,
# under the name `attn_mask`, the mask; it computes what you have just written (the check has
# compared them). So a mistake up there costs nothing down here.
#
# ### Exercise 5.4 · `SelfAttentionHead`
# ●●○ medium · 10 minutes · 2 points
#
# Write the head: three `nn.Linear` without bias, named `W_q`, `W_k` and `W_v`, and a `forward` that
# attends.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Three projections of the same `x`, then attention between them. The kernel divides by the root of
# the length of its queries by itself.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `nn.Linear(d_model, d_head)` acts on the last axis, whatever stands before it: `(B, T, d_model)`
# becomes `(B, T, d_head)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# in __init__: self.W_q, self.W_k, self.W_v = three linear layers d_model → d_head, bias=False
# in forward:  project x three times; attend with the mask
# ```
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
# symmetric. With two matrices it is not: what *it* needs from *animal* is not what *animal* needs
# from *it*.

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

# %% [markdown]
# *Two weight matrices with the same numbers in other places: rows and columns are shuffled alike.*
# The context of *Sam* is the same. This is **permutation equivariance**: attention alone does not
# know the order of the words. Lesson 08 adds positions to the vectors.

# %% [markdown]
# ### Exercise 5.5 · `CrossAttentionHead`
# ●○○ easy · 6 minutes · 2 points
#
# In a translator, the German words look at the English ones: `x` asks, `memory` answers. It is the
# same call with two sequences, which may differ in length and width.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Which of q, k and v say what is looked for? They come from `x`. What is looked through and read
# comes from `memory`.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `x` is `(B, T_q, d_model)`, `memory` is `(B, T_k, d_memory)`. After the projections all have the
# length `d_head`, and the result has one row per query: `(B, T_q, d_head)`.
# </details>
# <details><summary>Hint 3 · “mat1 and mat2 shapes cannot be multiplied (14x10 and 12x4)”</summary>
#
# A layer built for `d_model` = 12 received vectors of length `d_memory` = 10.
# </details>

# %% exercise="CrossAttentionHead"
from attention.scaled_dot_product_attention import CrossAttentionHead

# %% check="CrossAttentionHead" points=2
check.CrossAttentionHead(CrossAttentionHead)

# %% demo=true
torch.manual_seed(7)
cross = CrossAttentionHead(d_model=16, d_memory=16, d_head=8)
cross.load_state_dict(head.state_dict())  # the same three matrices as above
with torch.no_grad():
    print("attending to itself equals self-attention:", torch.allclose(cross(x, x), head(x)))
    memory = torch.randn(1, 5, 16)
    print("3 queries, 5 keys:", tuple(cross(x, memory).shape))
    print("3 queries, 500 keys:", tuple(cross(x, torch.randn(1, 500, 16)).shape))

# %% [markdown]
# The number of results is the number of queries, however long the memory is.
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
# A plain RNN multiplies its input and its state with a (*d*, *d*) matrix each, at every step:

# %% given="rnn_multiplications"
from attention.scaled_dot_product_attention import rnn_multiplications

# %% demo=true
d = 64
print("   T    attention          RNN")
for T in (16, 64, 256, 1024):
    print(f"{T:4d} {attention_multiplications(T, T, d, d):12,d} {rnn_multiplications(T, d):12,d}")

# %% [markdown]
# With $d_k = d_v = d$ it is $2\,T^2 d$ against $2\,T d^2$: equal at $T = d$. Attention grows with
# the square of the length, an RNN does not.
#
# ### Predict first
# So at *d* = 64 an RNN should be the faster one from *T* = 64 on. Do you expect that of a clock,
# too?


# %% demo=true
rnn = nn.RNN(d, d, batch_first=True)
lengths = [2**power for power in range(4, 13)]
clock = {"attention": [], "RNN": []}
threads = torch.get_num_threads()
torch.set_num_threads(1)  # one core: the fairest race, and the steadiest clock
with torch.no_grad():
    for T in lengths:
        x = torch.randn(1, 1, T, d)
        runs = {
            "attention": lambda x=x: F.scaled_dot_product_attention(x, x, x),
            "RNN": lambda x=x: rnn(x[0]),
        }
        for name, run in runs.items():
            clock[name].append(measure.milliseconds(run, repeats=7))
torch.set_num_threads(threads)

# %% demo=true
ax = plots.lines(lengths, clock, xlabel="T", ylabel="milliseconds", log=True)
ax.set(yscale="log")
ax.axvline(d, color=plots.GREY, linestyle="--", linewidth=1.2)
place = {"xytext": (4, 4), "textcoords": "offset points", "fontsize": 8}
ax.annotate("equal count", (d, 0), xycoords=("data", "axes fraction"), **place)
slower = [T for T, ours, theirs in zip(lengths, *clock.values(), strict=True) if ours > theirs]
print("equal count of multiplications: T =", d)
print("attention takes longer, here:   T =", slower[0] if slower else f"> {lengths[-1]}")

# %% [markdown]
# *Time against length on one core, both axes logarithmic, on the machine that built this notebook;
# run the cell to see your own.* The lines cross far to the right of the dashed one. An RNN must
# finish one step before it begins the next, many small products in a row; attention has two large
# ones, and hardware likes that. Very long sequences remain a problem: lesson 18 is about them.

# %% [markdown]
# ## The way back ★
# ### Exercise 5.7 · `attention_backward` ★
# ●●● hard · 20 minutes · 4 points
#
# Autograd does this for you everywhere else. Write it once by hand: from the gradient of a loss
# with respect to the context, find those with respect to `q`, `k` and `v`. The weights of the way
# forward are handed to you.
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
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# grad_v       = weightsᵀ times grad_context
# grad_weights = grad_context times vᵀ
# shared       = sum over the keys of weights · grad_weights, axis kept
# grad_scores  = weights · (grad_weights minus shared), over √d_k
# grad_q       = grad_scores times k
# grad_k       = grad_scoresᵀ times q
# ```
# </details>
# <details><summary>Hint 4 · “The size of tensor a (7) must match …”</summary>
#
# The sum over the keys lost its axis: `(T_q,)` lines up with the keys. Keep it as `(T_q, 1)`.
# </details>

# %% exercise="attention_backward"
from attention.scaled_dot_product_attention import attention_backward

# %% check="attention_backward" points=4
check.attention_backward(attention_backward)

# %% [markdown]
# Look at the factor $p_i$ in front of the softmax's gradient. A key with weight 0 receives none,
# and if one weight is 1, the bracket is 0 as well. That is the flat line of the training above.
#
# ## Summary
# A dot product of random vectors of length *d* has mean 0 and variance *d*, so scores are divided
# by the standard deviation √*d*, and the softmax stays where it can learn. Attention is two matrix
# products with a softmax between them; self-attention takes all three inputs from one sequence,
# cross-attention the keys and values from another. It is not symmetric, it does not know the order,
# and its cost grows with T_q · T_k, all of it in parallel.
#
# **Next** [06 · Who may look at whom?](../06_masked_attention/06_masked_attention.ipynb) There the
# mask gets its lesson.
#
# **References**
# - A. Vaswani et al. (2017). *Attention is all you need*, section 3.2.1 and its footnote on the
#   variance. [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - T. Luong, H. Pham, C. Manning (2015). *Effective approaches to attention-based neural machine
#   translation.* [arXiv:1508.04025](https://arxiv.org/abs/1508.04025)
# - J. Alammar (2018). *The illustrated Transformer.*
#   [jalammar.github.io](https://jalammar.github.io/illustrated-transformer/)
