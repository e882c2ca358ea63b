# %% [markdown]
# # 04 · Which similarity?
#
# The small network of lesson 03 is one way to say how well a query and a key match. A dot product
# is another, without any parameters. This lesson lines up the common score functions, shows how
# they are related, puts all of them into the same translator, and counts what they cost. The
# starred part asks a second question: must a query look at *all* keys?
#
# **After this lesson** you can
# - write five **score functions** behind one interface, and turn one into another,
# - say which of them learns to translate most slowly here, and why more cannot be said,
# - derive the dot product from the Gaussian kernel of lesson 01,
# - count parameters and multiplications, and measure time and memory,
# - ★ tell **global**, **local** and **hard** attention apart, and train a choice without a
#   gradient.
#
# **Time** 65 minutes, ★ 45 more · **Points** 18 · **GPU** not needed · **You need** lessons 01, 03

# %%
import math

import torch

from attention.bahdanau_attention import additive_scores
from attention.experiments import score_functions as experiments
from attention.getting_started import softmax
from attention.provided import demand
from attention.provided.figures import plots
from attention.provided.predictions import compare
from autograder import check

# %% [markdown]
# ## What fails without this idea
# In lesson 03 all pairs of letters and words went through a hidden layer: 64 numbers per pair,
# reduced to a single score at the end. For sentences that is fine. For longer texts:

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
# In stages, each earned by itself: `dot` and `scaled_dot` (1), `bilinear` and `reduced_rank` (1),
# `additive` and other kinds, and a single query (1).
#
# Write all five for whole batches: queries `(B, T_q, d_q)`, keys `(B, T_k, d_k)`, scores
# `(B, T_q, T_k)`. Additive scores are imported from lesson 03. Other kinds are refused. Gradients
# flow back to `q`, `k` and the weights, for all of them are learned.
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
# <details><summary>Hint 3 · a smaller step</summary>
#
# Write the dot product first: one line. Which of the other three multiplicative kinds are the same
# line, after one of the two tensors, or both, went through a matrix? For the fifth a function is
# imported, and for a sixth there is an exception.
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
# <details><summary>Hint 3 · a smaller question</summary>
#
# What is $(Vq)^\top$, written without brackets? Now put $Uk$ behind it.
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
# ### Exercise 4.3 · `break_as_bilinear` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate has put U where V belongs, tried it with one matrix for both, and found nothing wrong.
# Find an input for which it is wrong, with queries and keys of the **same length**, so that the
# shape does not give it away.
#
# <details><summary>Hint 1 · where to look</summary>
#
# The answer asks with the keys' matrix: it has exchanged who asks and who is asked. For which W
# does that make no difference?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# With r = 1, V and U are single rows, and W is the table of all products of their entries. When is
# this table not symmetric?
# </details>

# %% broken="swaps_v_and_u"
from autograder.mistakes.score_functions import swaps_v_and_u

# %% exercise="break_as_bilinear"
from attention.score_functions import break_as_bilinear

# %% check="break_as_bilinear" points=1
check.break_as_bilinear(break_as_bilinear)

# %% [markdown]
# ## What each of them can say
# Six queries and six keys of 8 random numbers. Query i should find key 5 − i: a complete crossing.
# Each score function is trained for this on its own weights, by gradient descent; queries and keys
# stay as they are. Which will draw the crossing, and which cannot?


# %% demo=true
def crossing(kind, r, seed, steps=150):
    generator = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(1, 6, 8, generator=generator) for _ in range(2))
    shapes = {"W": (8, 8), "V": (r, 8), "U": (r, 8), "W_q": (16, 8), "W_k": (16, 8), "v": (16,)}
    weights = {
        name: 0.3 * torch.randn(shape, generator=generator) for name, shape in shapes.items()
    }
    optimizer = torch.optim.Adam([w.requires_grad_() for w in weights.values()], lr=0.03)
    wanted = torch.arange(5, -1, -1)
    for _ in range(steps if "dot" not in kind else 0):
        shares = softmax(score(kind, q, k, weights), dim=2)[0]  # (T_q, T_k)
        loss = -shares[torch.arange(6), wanted].log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    shares = softmax(score(kind, q, k, weights), dim=2)[0].detach()
    return shares, shares[torch.arange(6), wanted].mean().item()


# %% demo=true
tried = [("dot", 1), ("scaled_dot", 1), ("bilinear", 1)]
tried += [("reduced_rank", 1), ("reduced_rank", 2), ("additive", 1)]
axes = plots.panels(1, 6, width=1.9, height=2.2)
for ax, (kind, r) in zip(axes, tried, strict=True):
    name = f"reduced rank {r}" if kind == "reduced_rank" else kind.replace("_", " ")
    found = [crossing(kind, r, seed) for seed in (4, 5, 6)]
    plots.heatmap(found[0][0], ax, name, colorbar=ax is axes[-1])
    ax.set(ylabel="queries" if ax is axes[0] else "")
    shown = "  ".join(f"{mean:.2f}" for _, mean in found)
    print(f"{name:<15} mean weight on the wanted key, seeds 4, 5, 6:  {shown}")

# %% [markdown]
# *Weights of six queries on six keys under five score functions, reduced rank with r = 1 and r = 2,
# on the same input.* The two dot products have nothing to learn: they show which vectors happen to
# point the same way, and the scaled one shows it more softly. Bilinear and additive scores learn
# the crossing, and so does reduced rank with r = 2, with every seed; with r = 1 two of six queries
# find their key. With rank 1 each query and each key is a single number, and the score is their
# product: only the keys with the largest and the smallest number can ever have the largest weight.
#
# ## Which one translates best?
# Six vectors are a toy. So put each score function into the translator of lesson 03, and train it
# on the numbers: same encoder, same decoder, same 300 steps and batches, six seeds each. (Two kinds
# need queries as long as keys, so all annotations have 64 numbers here, not 128, and reduced rank
# has r = 64.) The 30 runs are recorded; `python -m attention.experiments score_functions` takes
# them again.
#
# ### Predict first
# Which kind translates the *fewest* five-digit numbers without error, in the median of six seeds?

# %%
prediction = None  # one of KINDS, such as "dot"; None skips this

# %% demo=true
worst = experiments.translators_of_all_kinds()
compare(prediction, worst, "lowest median at five digits")

# %% [markdown]
# *Share of test numbers translated without error: a dot for each of six seeds, a stroke for the
# median.* One thing is sure: the *scaled* dot product is last, with every seed at or below 0.45. It
# differs from the dot product by the division alone. What the division is good for, and why it is
# in the way here, lesson 05 shows. The order of the other four is open: with the dot product one
# seed translates 0.06 and another 0.99 or more, and by seeds 0 to 2 alone its median would be the
# best, by seeds 3 to 5 the additive score's. One seed says nothing, and three are too few.
#
# Train any point here, in less than a minute, with the score function that you wrote:

# %% demo=true
point = None  # for example {"kind": "bilinear", "seed": 6}
if point is not None:
    print(experiments.train_scored(**point, score=score))

# %% [markdown]
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
# length *is* dot-product attention, with its scores divided by $h^2$. For $h^2 = \sqrt{d_k}$ it is
# the scaled one.
#
# ### Exercise 4.4 · `gaussian_scores`
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
# <details><summary>Hint 3 · a smaller question</summary>
#
# Three terms, each with its factor, over the same number. Which of them has one number per query,
# and which one per key? Along which axis must each be repeated?
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
# ### Exercise 4.5 · `score_costs`
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
# <details><summary>Hint 3 · a smaller question</summary>
#
# Of these five, which project nothing, which project one side, and which project both? And how many
# numbers has a query *after* its projection: d, or r?
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
# By these counts no kind costs much more than another once sequences are long. Do they take the
# same time and memory?

# %% demo=true
axes = experiments.time_and_memory(score, score_costs, lengths=(50, 100, 200, 400, 800))

# %% [markdown]
# *Time and memory of three score functions against the length T, both scales logarithmic, on the
# machine that built this notebook.* The count is a bad predictor of the time: at T = 800 the
# additive score multiplies 1.1 times as often as the scaled dot product, and takes more than a
# hundred times as long. What is not counted decides: 41 million tanh, one for each hidden feature
# of each pair, and a hidden layer that is written and read again.
#
# ## Limits
# A score looks at one query and one key, and at nothing else: whether *another* key fits better is
# left to the softmax, and relations of three are out of reach of a single layer. All scores here
# still make a table of $T_q \cdot T_k$ numbers (lessons 06 and 18 shrink it). And the comparison
# above is one task, one size and 300 steps: it says which similarity is learned *fast* here, not
# which is best.
#
# ## Summary
# A score function turns a query and a key into a number. Multiplicative ones are all bilinear, with
# W free, of low rank, or the identity, and the dot product is the Gaussian kernel for keys of equal
# length. In the translator, after 300 steps, the scaled one is last, and of the others the seed
# decides more than the kind. Additive scores keep a hidden layer for each pair and cost far more
# time and memory.
#
# **Next** [05 · Why divide by
# √d?](../05_scaled_dot_product_attention/05_scaled_dot_product_attention.ipynb) The dot
# product is the cheapest, but in long vectors it grows too large.
#
# ## Open questions
# 1. In the crossing, how many pairs can rank 1 hold, and how many rank 2? Change the number of
#    queries and keys in `crossing`, and take more steps.
# 2. The dot product had nothing to learn in the crossing. In a network, learned layers make queries
#    and keys. Let `q` and `k` in `crossing` be learned themselves (`requires_grad_()`, and into the
#    optimizer): will the dot product draw the crossing, and the scaled one?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. Rank 1 holds two, however many there are: of 3 and of 4 pairs two queries find their key, with
#    seeds 0 to 2 and 1000 steps. Rank 2 holds 4 of 4 and 8 of 8 with every seed, and 12, 11 and 12
#    of 12: in a plane, every key can be a corner of the keys' convex hull, and so the farthest in
#    some direction.
# 2. Both do, after the same 150 steps, with all six pairs and seeds 4 to 6 (mean weight on the
#    wanted key at least 0.998 and 0.995). A score without parameters is not a score without
#    learning.
#
# </details>

# %% [markdown]
# ## ★ Must a query look everywhere?
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
#   $p_i = T_k \cdot \sigma(v_p^\top \tanh(W_p s_i))$, and the weights fall off around it. Here the
#   centres are given: this lesson does not learn $W_p$ and $v_p$.
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
# ### Exercise 4.7 · `predictive_local_weights` ★
# ●●○ medium · 10 minutes · 2 points
#
# The weights of local-p: a softmax over the keys inside the window, times a Gaussian around the
# centre with $\sigma = D/2$. Through this factor a gradient reaches the centre, so that $W_p$ and
# $v_p$ could be learned; the window alone gives none. Scores of ±1000 are fine.
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
# <details><summary>Hint 3 · a smaller question</summary>
#
# Take one query at centre 2.5 with D = 1 and five keys. Which keys are inside, and what are their
# two distances? What must the scores of the others be before the softmax?
# </details>

# %% exercise="predictive_local_weights"
from attention.score_functions import predictive_local_weights

# %% check="predictive_local_weights" points=2
check.predictive_local_weights(predictive_local_weights)

# %% [markdown]
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
# ## ★ Hard attention
# A third way is to look at **one** key, chosen at random with the weights as probabilities. Xu and
# colleagues (2015) did this to describe pictures. It is cheap, because only one value is needed,
# and it is a real choice. The lookup of a value, in turn, has no gradient with respect to the
# scores. We come to that.
#
# ### Exercise 4.8 · `hard_attention` ★
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
# <details><summary>Hint 3 · a smaller question</summary>
#
# For the weights 0.25, 0.5, 0.25 the sums are 0.25, 0.75, 1. How many of them are not larger than
# 0.3? Is that the index of the key on which 0.3 falls? And what if rounding leaves the last sum
# below 1?
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
# from all rewards changes nothing on average, because
# $\sum_j w_j\,\partial \log w_j = \partial \sum_j w_j = 0$, but it makes the estimates scatter
# less.
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
# A row for each trial: its derivative, times what its reward was better than the baseline. Then the
# mean over the rows.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# One-hot rows `(N, T_k)` minus weights `(T_k,)`, times `(N, 1)`. The mean over trials is `(T_k,)`.
# Rows of `torch.eye(T_k, device=scores.device)`, picked by `chosen`, are one-hot.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Do it for N = 1 first: the derivative is a vector `(T_k,)`, the reward minus the baseline a
# number. Then: what picks N one-hot rows at once, and over which axis is the mean?
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
# Four keys earn 10, 11, 12 and 13. Follow the gradient for 150 steps from equal scores: the exact
# one, and REINFORCE from four trials a step, without a baseline and with one of 11.5, for five
# seeds each.


# %% demo=true
def follow(baseline, seed):
    generator, scores, expected = torch.Generator().manual_seed(seed), torch.zeros(4), []
    reward_of = torch.tensor([10.0, 11.0, 12.0, 13.0])  # (T_k,)
    for _ in range(150):
        w = softmax(scores, dim=0)  # (T_k,)
        expected.append((w @ reward_of).item())
        if baseline is None:
            gradient = w * (reward_of - w @ reward_of)
        else:
            chosen = torch.multinomial(w, 4, replacement=True, generator=generator)
            gradient = reinforce_gradient(scores, chosen, reward_of[chosen], baseline)
        scores = scores + 0.1 * gradient
    return expected


# %% demo=true
axes = plots.panels(1, 3, width=3.2, height=2.4)
baselines = {"exact": None, "no baseline": 0.0, "baseline 11.5": 11.5}
for ax, (name, b) in zip(axes, baselines.items(), strict=True):
    curves = [follow(b, seed) for seed in range(5)]
    for curve in curves:
        ax.plot(curve, color=plots.BLUE, alpha=0.6, linewidth=1.2)
    ax.set(title=name, xlabel="steps", ylabel="expected reward" if ax is axes[0] else "")
    print(f"{name:<14} after 150 steps:", *(f"{curve[-1]:.2f}" for curve in curves))

# %% [markdown]
# *Expected reward against steps, for the exact gradient and for two estimates of it, a line for
# each of five seeds.* Both estimates are right on average. With the baseline, all five runs come
# close to the exact gradient. Without one every choice looks good, since all rewards are positive:
# whatever happened to be chosen is pushed up, and three of five runs settle on less. Soft attention
# has the exact gradient for free.
#
# ## References
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
