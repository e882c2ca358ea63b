# %% [markdown]
# # 04 · Which similarity?
#
# The small network of lesson 03 is one way to say how well a query and a key match. A dot product
# is another, without any parameters. This lesson lines up the common score functions, shows how
# they are related, and counts what they cost. Then it asks a second question: must a query look at
# *all* keys?
#
# **After this lesson** you can
# - write five **score functions** behind one interface, and turn one into another,
# - derive the dot product from the Gaussian kernel of lesson 01,
# - count parameters and multiplications, and say why dot products won,
# - tell **global**, **local** and **hard** attention apart, and train a choice without a gradient.
#
# **Time** 100 minutes · **Points** 17 · **GPU** not needed · **You need** lessons 01 and 03

# %%
import math

import torch

from attention.provided import measure, plots, translators
from attention.bahdanau_attention import additive_scores
from attention.getting_started import softmax
from autograder import check

# %% [markdown]
# ## What fails without this idea
# In lesson 03 all pairs of letters and words went through a hidden layer: `(T_q, T_k, d_attention)`
# numbers, of which the score keeps one in 64. For sentences that is fine. For longer texts:

# %%
for T in (50, 1_000, 20_000):
    gigabytes = T * T * 4 / 1e9
    print(f"T_q = T_k = {T:>6}   hidden layer {64 * gigabytes:9.4f} GB   scores {gigabytes:.4f} GB")

# %% [markdown]
# ## The idea
# A score function takes a query and a key and returns one number. Everything else, softmax and
# weighted average, stays as it is. So put them all behind one interface, and choose.
#
# | kind | score of $q$ and $k$ | learns | from |
# |---|---|---|---|
# | dot | $q \cdot k$ | nothing | Luong et al. 2015 |
# | scaled dot | $q \cdot k \,/ \sqrt{d_k}$ | nothing | Vaswani et al. 2017 |
# | bilinear, "general" | $q^\top W k$ | $W$ `(d_q, d_k)` | Luong et al. 2015 |
# | reduced rank | $(V q) \cdot (U k)$ | $V$ `(r, d_q)`, $U$ `(r, d_k)` | |
# | additive | $v^\top \tanh(W_q q + W_k k)$ | `W_q`, `W_k`, `v` | Bahdanau et al. 2014 |
#
# The first four are called **multiplicative**. By hand, for one query and one key:

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
# Write all five for whole batches: queries `(B, T_q, d_q)`, keys `(B, T_k, d_k)`, scores
# `(B, T_q, T_k)`. Additive scores are imported from lesson 03. Other kinds are refused.
#
# <details><summary>Hint 1 · the idea</summary>
#
# All dot products of rows of one matrix with rows of another are a matrix product with the second
# one transposed. Bilinear and reduced rank project first.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `k.mT` swaps the last two axes: `(B, d, T_k)`. Then `(B, T_q, d) @ (B, d, T_k)` is
# `(B, T_q, T_k)`. `q @ W` is `(B, T_q, d_k)`; `q` projected by V is `(B, T_q, r)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# dot           queries times transposed keys
# scaled_dot    the same over the root of the length of a key
# bilinear      queries times W, times transposed keys
# reduced_rank  queries projected by V, times the transpose of keys projected by U
# additive      imported
# anything else ValueError with the name given and the five that exist
# ```
# </details>
# <details><summary>Hint 4 · “RuntimeError: The size of tensor a (2) must match … b (4)”</summary>
#
# `.T` on a tensor with three axes turns all of them around. Use `.mT`.
# </details>

# %% exercise="score"
from attention.score_functions import score

# %% check="score" points=3
check.score(score)

# %% [markdown]
# ## They are relatives
# Three of the multiplicative kinds are special cases of the fourth: there is a $W$ for which the
# bilinear score equals theirs, for every query and key.
#
# ### Exercise 4.2 · `as_bilinear`
# ●●○ medium · 8 minutes · 2 points
#
# Find it, for `"dot"`, `"scaled_dot"` and `"reduced_rank"`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Which matrix leaves every vector as it is? And for the reduced rank: a dot product $a \cdot b$ can
# be written $a^\top b$; put in what a and b are, and see what stands between $q^\top$ and $k$.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(d, d)` for the first two. From V `(r, d_q)` and U `(r, d_k)` to `(d_q, d_k)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# dot           the identity
# scaled_dot    the identity, divided like the score
# reduced_rank  V and U multiplied, one of them transposed
# ```
# </details>

# %% exercise="as_bilinear"
from attention.score_functions import as_bilinear

# %% check="as_bilinear" points=2
check.as_bilinear(as_bilinear)

# %% [markdown]
# So "reduced rank" is a bilinear score whose W has rank r at most: fewer parameters, fewer
# similarities to choose from. Keep it in mind. In lesson 07 every attention head is one of these,
# with $V$ called $W_q$ and $U$ called $W_k$.
#
# ### Predict first
# Six queries and six keys of 8 random numbers. Query i should find key 5 − i: a complete crossing.
# Each score function is trained for this on its own weights, by gradient descent; queries and keys
# stay as they are. Which will draw the crossing, and which cannot?

# %% demo=true
generator = torch.Generator().manual_seed(4)
q, k = (torch.randn(1, 6, 8, generator=generator) for _ in range(2))
shapes = {"W": (8, 8), "V": (1, 8), "U": (1, 8), "W_q": (16, 8), "W_k": (16, 8), "v": (16,)}
wanted = torch.arange(5, -1, -1)
panels, titles = {}, {"reduced_rank": "reduced rank, r = 1", "scaled_dot": "scaled dot"}
for kind in KINDS:
    weights = {
        name: (0.3 * torch.randn(shape, generator=generator)).requires_grad_()
        for name, shape in shapes.items()
    }
    optimizer = torch.optim.Adam(weights.values(), lr=0.03)
    for _ in range(150 if "dot" not in kind else 0):
        shares = softmax(score(kind, q, k, weights), dim=2)[0]  # (T_q, T_k)
        loss = -shares[torch.arange(6), wanted].log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    panels[kind] = softmax(score(kind, q, k, weights), dim=2)[0]

# %% demo=true
axes = plots.panels(1, 5, width=2.1, height=2.3)
for ax, (kind, shares) in zip(axes, panels.items(), strict=True):
    plots.heatmap(shares, ax, titles.get(kind, kind), colorbar=ax is axes[-1])
    ax.set(ylabel="queries" if ax is axes[0] else "")

# %% [markdown]
# *Weights of six queries on six keys under five score functions, on the same input.* The two dot
# products have nothing to learn: they show which vectors happen to point the same way, and the
# scaled one shows it more softly. Bilinear and additive scores learn the crossing. With rank 1 each
# query and each key is a single number, and the score is their product: only the keys with the
# largest and the smallest number can ever win. With `r = 2`, six pairs fit. Try it.
#
# ## Where the dot product comes from
# Lesson 01 scored by distance. Expand the square:
#
# $$-\frac{\lVert q - k \rVert^2}{2h^2}
# = \frac{q \cdot k}{h^2} - \frac{\lVert q \rVert^2}{2h^2} - \frac{\lVert k \rVert^2}{2h^2}$$
#
# Now take the softmax over the keys. The term with $\lVert q \rVert^2$ is the same for all keys of
# a query, so it **cancels** (lesson 00: adding a number to all scores changes no weight). The term
# with $\lVert k \rVert^2$ differs from key to key, unless all keys have **the same length**; then
# it cancels too. What is left is $q \cdot k / h^2$: Gaussian kernel regression with keys of equal
# length *is* dot-product attention, with $h^2$ as the temperature. For $h^2 = \sqrt{d_k}$ it is the
# scaled one.
#
# ### Exercise 4.3 · `gaussian_scores`
# ●●○ medium · 8 minutes · 2 points
#
# Compute the Gaussian's scores by the right-hand side, for batches of vectors. Lesson 01 subtracted
# every key from every query; for long vectors that needs a tensor `(B, T_q, T_k, d)`. This does
# not.
#
# <details><summary>Hint 1 · the idea</summary>
#
# One matrix product, and two kinds of squared lengths that are spread over rows and columns.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Products `(B, T_q, T_k)`. Squared lengths of queries `(B, T_q, 1)`, of keys `(B, 1, T_k)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# squared lengths of the queries, as a column
# squared lengths of the keys, as a row
# (products - half of the column - half of the row) over the squared bandwidth
# ```
# </details>

# %% exercise="gaussian_scores"
from attention.score_functions import gaussian_scores

# %% check="gaussian_scores" points=2
check.gaussian_scores(gaussian_scores)

# %% [markdown]
# ### Break it
# Keys on a circle have equal lengths. Then one of them is made three times as long. What will the
# Gaussian say about it, and what the dot product?

# %% demo=true
angles = torch.linspace(0, 2 * math.pi, 9)[:8]
circle = torch.stack([angles.cos(), angles.sin()], dim=1)[None]  # (1, T_k, 2)
longer = circle.clone()
longer[0, 2] *= 3
axes = plots.panels(2, 2, width=3.4, height=2.2)
for row, keys, name in ((axes[0], circle, "equal lengths"), (axes[1], longer, "key 2 is longer")):
    gaussian, dots = gaussian_scores(circle, keys, 0.7), score("dot", circle, keys, {}) / 0.7**2
    plots.heatmap(softmax(gaussian, dim=2)[0], row[0], f"Gaussian, {name}", colorbar=False)
    plots.heatmap(softmax(dots, dim=2)[0], row[1], f"dot product, {name}")

# %% [markdown]
# *Weights of eight queries on eight keys on a circle. Above, keys of equal length: both pictures
# are the same. Below, key 2 is three times as long.* For the Gaussian key 2 is now far from
# everyone, and gets no weight. For the dot product it is the loudest of its neighbourhood and takes
# nearly all of it. A dot product rewards length as well as direction.
#
# ## What it costs
# ### Exercise 4.4 · `score_costs`
# ●●○ medium · 12 minutes · 2 points
#
# Count parameters and multiplications. Queries and keys have d numbers each; r is the rank, or the
# number of hidden features of the additive score. Project each query and key once, then form pairs.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A matrix `(a, b)` times a vector takes a · b multiplications, a dot product of n numbers takes n.
# First the projections, then something for each of the T_q · T_k pairs.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# W is `(d, d)`; V, U, W_q and W_k are `(r, d)`; v is `(r,)`. What is compared has d numbers for dot
# and bilinear scores, and r for the other two.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# dot           no parameters; d for each pair
# scaled_dot    one more for each pair
# bilinear      W; one projection for each query, then d for each pair
# reduced_rank  V and U; one projection for each query and each key, then r for each pair
# additive      the same with W_q and W_k, and v
# ```
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
# ### Predict first
# By these counts, additive and reduced-rank scores of the same r cost the same. Will they take the
# same time, and the same memory?

# %% demo=true
sizes = (50, 100, 200, 400, 800)
weights = {name: torch.randn(64, 64) for name in ("V", "U", "W_q", "W_k")} | {"v": torch.randn(64)}
names = {"additive": "additive", "reduced_rank": "reduced rank", "scaled_dot": "scaled dot"}
times, memory = {name: [] for name in names.values()}, {name: [] for name in names.values()}
with torch.no_grad(), translators.one_thread():
    for T in sizes:
        x = torch.randn(1, T, 64)
        for kind, name in names.items():
            run = lambda kind=kind, x=x: score(kind, x, x, weights)  # noqa: E731
            times[name].append(measure.milliseconds(run, repeats=5))
            memory[name].append(measure.megabytes(run))
axes = plots.panels(1, 2, width=4.6, height=3.0, share=False)
plots.lines(sizes, times, axes[0], "time (ms), one core", "T_q = T_k", log=True)
plots.lines(sizes, memory, axes[1], "memory asked for (MB)", "T_q = T_k", log=True)
for ax in axes:
    ax.set_yscale("log")
    ax.minorticks_off()
    ax.set_xticks(sizes, sizes)

# %% [markdown]
# *Time and memory of three score functions against the length T, both scales logarithmic, on the
# machine that built this notebook.* In the end all grow with T², but at T = 800 the additive score
# asks for 65 times the memory of the scaled dot product, because it keeps d_attention numbers for
# each pair, and it is slower still, because a tanh must be taken of every one. Dot products keep
# only the score, and a matrix product is what computers do best. That is why they won, once lesson
# 05 has mended a weakness of theirs.

# %% [markdown]
# ## Must a query look everywhere?
# ![Bars over nine keys, four times. Global attention has weight on all of them. Local-m has weight
# on five keys around a centre, local-p has weight that falls off from the centre, and hard
# attention has one bar.](figures/where_to_look.svg)
#
# So far attention was **global** and **soft**: every key gets some weight. Luong and colleagues
# (2015) proposed **local** attention: choose a centre $p$ in the source for each query, and look
# only D positions to either side.
#
# - **local-m** (monotonic): the centre moves along with the output, $p_i = i$;
# - **local-p** (predictive): the model predicts it,
#   $p_i = T_k \cdot \sigma(v_p^\top \tanh(W_p s_i))$, and the weights fall off around it.
#
# ### Exercise 4.5 · `local_window`
# ●○○ easy · 5 minutes · 1 point
#
# Make the mask of local-m: True where a key lies within D of the query's centre. At the borders of
# the source the window is simply cut.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The table of all distances between positions and centres, as in lesson 01, and a comparison.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Centres `(T_q, 1)` against positions `(T_k,)` give `(T_q, T_k)`, queries down.
# </details>
# <details><summary>Hint 3 · how many keys are in a window?</summary>
#
# D to the left, D to the right, and the one in the middle. A distance of exactly D is inside.
# </details>

# %% exercise="local_window"
from attention.score_functions import local_window

# %% check="local_window" points=1
check.local_window(local_window)

# %% [markdown]
# ### Exercise 4.6 · `predictive_local_weights`
# ●●○ medium · 10 minutes · 2 points
#
# The weights of local-p: a softmax over the keys inside the window, times a Gaussian around the
# centre with $\sigma = D/2$. The factor lets a gradient reach the centre, so that $W_p$ and $v_p$
# can be learnt; the window alone would not.
#
# $$w_{ij} = \text{softmax}_{\,j \text{ in window}}(\text{scores}_{ij})
# \cdot \exp\!\left(-\frac{(j - p_i)^2}{2\sigma^2}\right)$$
#
# <details><summary>Hint 1 · the idea</summary>
#
# Scores outside the window become −∞ before the softmax. The Gaussian comes afterwards, and nothing
# is divided again.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Distances, window, softmax and Gaussian are all `(T_q, T_k)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# distances = positions minus centres, for all pairs
# aligned   = softmax along the keys, of scores with -inf where |distance| > D
# return aligned times the Gaussian of the distances, with sigma = D / 2
# ```
# </details>

# %% exercise="predictive_local_weights"
from attention.score_functions import predictive_local_weights

# %% check="predictive_local_weights" points=2
check.predictive_local_weights(predictive_local_weights)

# %% [markdown]
# ### Predict first
# Which of these three pictures needs the fewest scores? In which do rows not sum to 1?

# %% demo=true
scores = 2 * torch.randn(12, 20, generator=torch.Generator().manual_seed(1))  # (T_q, T_k)
centres = 19 / 11 * torch.arange(12.0)  # (T_q,): along the diagonal
window = local_window(centres, 20, 3)  # (T_q, T_k)
shown = {
    "global": softmax(scores, dim=1),
    "local-m, D = 3": softmax(scores.masked_fill(~window, -torch.inf), dim=1),
    "local-p, D = 3": predictive_local_weights(scores, centres, 3),
}
axes = plots.panels(1, 3, width=3.1, height=2.7)
for ax, (name, shares) in zip(axes, shown.items(), strict=True):
    plots.heatmap(shares, ax, name, colorbar=ax is axes[-1])
    print(f"{name:<15} rows sum to {shares.sum(1).min():.2f} … {shares.sum(1).max():.2f}")

# %% [markdown]
# *Weights of twelve queries on twenty keys: global, local-m and local-p, with the same scores.* The
# local ones need at most seven scores a query, however long the source is. Rows of local-p sum to
# less than 1: a query that prefers keys far from its centre is turned down altogether.
#
# ## Hard attention
# A third way is to look at **one** key, chosen at random with the weights as probabilities. Xu and
# colleagues (2015) did this to describe pictures. It is cheap, because only one value is needed,
# and it is a real choice. The lookup of a value, in turn, has no gradient with respect to the
# scores. We come to that.
#
# ### Exercise 4.7 · `hard_attention`
# ●●○ medium · 8 minutes · 2 points
#
# Turn a random number between 0 and 1 into a choice. Lay the weights end to end on a line from 0 to
# 1; the number falls on one of them. Chance comes in from outside as `uniform`, so that the
# function can be checked.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Add the weights up from the left. The chosen key is the first whose sum is larger than the number:
# count how many sums are *not* larger.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Sums `(T_q, T_k)` against numbers `(T_q, 1)`. Counting along the keys gives indices `(T_q,)`, and
# `values[indices]` is `(T_q, d_v)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# sums    = running sums of the weights, along the keys
# indices = for each query, how many sums are at most its number (never more than T_k - 1)
# return the values at these indices
# ```
# </details>

# %% exercise="hard_attention"
from attention.score_functions import hard_attention

# %% check="hard_attention" points=2
check.hard_attention(hard_attention)

# %% demo=true
weights, values = torch.tensor([[0.5, 0.3, 0.15, 0.05]]), torch.eye(4)
generator = torch.Generator().manual_seed(0)
axes = plots.panels(1, 4, width=2.3, height=2.4)
for ax, n in zip(axes, (1, 10, 1000), strict=False):
    numbers = torch.rand(n, generator=generator)
    chosen = hard_attention(weights.expand(n, 4), values, numbers)  # (n, 4)
    plots.bars(chosen.mean(dim=0), "0123", ax, f"mean of {n} choice{'s' * (n > 1)}")
ax = plots.bars((weights @ values)[0], "0123", axes[3], "soft attention")

# %% [markdown]
# *Mean result of 1, 10 and 1000 hard choices among four one-hot values, and soft attention.* On
# average hard attention gives what soft attention gives. Soft attention is its expectation.
#
# ## ★ Learning without a gradient
# Suppose each choice earns a reward, say how well the next word came out. We want the scores to
# change so that the expected reward grows:
#
# $$\frac{\partial}{\partial\,\text{scores}} \sum_j w_j R_j
# = \sum_j w_j \, R_j \,\frac{\partial \log w_j}{\partial\,\text{scores}}$$
#
# since $\partial w = w\,\partial \log w$. The right-hand side is an *expectation* under the
# weights: sample positions, and average $R \cdot \partial \log w$. This is **REINFORCE** (Williams,
# 1992). It never asks for the reward of a key that was not chosen. Subtracting a **baseline** $b$
# from all rewards changes nothing on average, because $\sum_j w_j\,\partial \log w_j = \partial
# \sum_j w_j = 0$, but it makes the estimates scatter less.
#
# ### Exercise 4.8 · `reinforce_gradient` ★
# ●●● hard · 15 minutes · 3 points
#
# Estimate the gradient from N trials. The derivative of $\log \text{softmax}(\text{scores})_c$ is
# known: one-hot of c, minus the softmax.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A row for each trial: its derivative, times what its reward was better than the baseline. Then the
# mean over the rows.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# One-hot rows `(N, T_k)` minus weights `(T_k,)`, times `(N, 1)`. The mean over trials is `(T_k,)`.
# Rows of `torch.eye(T_k)`, picked by `chosen`, are one-hot.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# weights   = softmax of the scores
# gradients = one-hot rows of the choices, minus the weights
# return the mean over trials of (reward minus baseline) times gradients
# ```
# </details>
# <details><summary>Hint 4 · the result is zero</summary>
#
# Differentiating *through* the choice gives 0: moving the scores a little does not change which key
# was chosen. The chance of the choice is what changes.
# </details>

# %% exercise="reinforce_gradient"
from attention.score_functions import reinforce_gradient

# %% check="reinforce_gradient" points=3
check.reinforce_gradient(reinforce_gradient)

# %% [markdown]
# ### Predict first
# Four keys earn 10, 11, 12 and 13. We follow the gradient for 150 steps, each estimated from four
# trials, from equal scores. How do the exact gradient, REINFORCE, and REINFORCE with a baseline of
# 11.5 compare?

# %% demo=true
reward_of = torch.tensor([10.0, 11.0, 12.0, 13.0])  # (T_k,)
curves = {}
for name, baseline in (("exact gradient", None), ("no baseline", 0.0), ("baseline 11.5", 11.5)):
    generator, scores = torch.Generator().manual_seed(2), torch.zeros(4)
    curves[name] = []
    for _ in range(150):
        w = softmax(scores, dim=0)  # (T_k,)
        curves[name].append((w @ reward_of).item())
        if baseline is None:
            gradient = w * (reward_of - w @ reward_of)
        else:
            chosen = torch.multinomial(w, 4, replacement=True, generator=generator)
            gradient = reinforce_gradient(scores, chosen, reward_of[chosen], baseline)
        scores = scores + 0.1 * gradient
ax = plots.lines(range(150), curves, xlabel="steps", ylabel="expected reward")

# %% [markdown]
# *Expected reward against steps, for the exact gradient and for two estimates of it; the exact one
# lies under that with a baseline.* Both estimates are right on average. Without a baseline every
# choice looks good, since all rewards are positive: whatever happened to be chosen is pushed up,
# and here luck settled on the second best key. Soft attention has the exact gradient for free,
# which is why nearly everyone uses it.
#
# ## Summary
# A score function turns a query and a key into a number. Multiplicative ones are all bilinear, with
# W free, of low rank, or the identity, and the dot product is the Gaussian kernel for keys of equal
# length; additive ones keep a hidden layer for each pair and cost far more memory. Attention can be
# limited to a window, or to a single random key, and then its gradient has to be estimated.
#
# **Next** [05 · Why divide by
# √d?](../05_scaled_dot_product_attention/05_scaled_dot_product_attention.ipynb) The dot product has
# won, but in long vectors it grows too large.
#
# **References**
# - M.-T. Luong, H. Pham, C. D. Manning (2015). *Effective approaches to attention-based neural
#   machine translation.* [arXiv:1508.04025](https://arxiv.org/abs/1508.04025)
# - K. Xu et al. (2015). *Show, attend and tell: neural image caption generation with visual
#   attention.* [arXiv:1502.03044](https://arxiv.org/abs/1502.03044)
# - R. J. Williams (1992). *Simple statistical gradient-following algorithms for connectionist
#   reinforcement learning.* Machine Learning 8.
#   [doi:10.1007/BF00992696](https://doi.org/10.1007/BF00992696)
# - D. Britz, A. Goldie, M.-T. Luong, Q. Le (2017). *Massive exploration of neural machine
#   translation architectures* (additive and multiplicative scores compared).
#   [arXiv:1703.03906](https://arxiv.org/abs/1703.03906)
