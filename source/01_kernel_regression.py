# %% [markdown]
# # 01 · How do you predict y at x from examples you have seen?
#
# You know the water level of a river at some moments, and want it at another. You know some books,
# and look for a subject that none of them covers exactly. Both are answered in the same way:
# compare, weigh, average. The method is sixty years old, and it is attention in all but name.
#
# **After this lesson** you can
# - write a **soft lookup**, a dictionary that answers for words it does not hold,
# - predict with **Nadaraya–Watson kernel regression**, in the words query, key and value,
# - say what every attention does and does not do to its values,
# - **learn** the bandwidth by gradient descent instead of guessing it, and say how good it is.
#
# **Time** 105 minutes · **Points** 19 · **GPU** not needed · **You need** lesson 00

# %%
import math

import torch
from torch import nn

from attention.getting_started import softmax, weighted_average
from attention.provided import demand
from attention.provided.figures import faint_weights, plots, sliders
from attention.provided.predictions import compare
from autograder import check

# %% [markdown]
# ## What fails without this idea
# A dictionary answers for the keys it holds, and only for these:

# %%
shelf = {"poems": 2.0, "grammar": 4.0, "counting words": 10.0, "matrices": 18.0}  # metres
for subject in ("grammar", "statistics of language"):
    print(f"{subject:<24}", shelf.get(subject, "not in the dictionary"))

# %% [markdown]
# Yet a librarian would know where to send you: to somewhere near the books that are *similar*.
#
# ## The idea
# Describe each book by numbers, its **key**: how much it is about language, and how much about
# maths. Describe what you look for in the same way: the **query**. The nearer a key is to the
# query, the more its **value**, the place on the shelf, counts in the answer.
#
# ![A search with language 0.7 and maths 0.6 is compared with four books. The scores −2.0, −1.0,
# −0.2 and −4.5 become the weights 0.10, 0.28, 0.61 and 0.01, which average the places 2, 4, 10 and
# 18 metres to 7.6 metres.](figures/soft_lookup.svg)
#
# In one line, for a query $q$, keys $k_j$, values $v_j$ and a **temperature** $\tau > 0$:
#
# $$\text{context} = \sum_{j=1}^{T_k} w_j\, v_j, \qquad
# w = \text{softmax}\!\left(-\frac{\lVert q - k_1\rVert^2}{\tau}, \dots,
# -\frac{\lVert q - k_{T_k}\rVert^2}{\tau}\right)$$
#
# | name | here | shape |
# |---|---|---|
# | `query` | what you look for | `(d_k,)` |
# | `keys` | what each book is about | `(T_k, d_k)` |
# | `values` | where each book stands | `(T_k, d_v)` |
# | `weights` | how much each book counts | `(T_k,)` |
# | `context` | where to go | `(d_v,)` |
#
# The numbers of the drawing, by hand:

# %%
titles = ["Poems Aloud", "Grammar in Use", "Counting Words", "Matrices at Work"]
books = [(0.9, 0.2), (0.8, 0.3), (0.6, 0.7), (0.1, 0.9)]  # (language, maths)
metres = [2.0, 4.0, 10.0, 18.0]
search = (0.7, 0.6)

powers = []
for book in books:
    squared = sum((a - b) ** 2 for a, b in zip(search, book, strict=True))
    powers.append(math.exp(-squared / 0.1))
place = 0.0
for title, power, metre in zip(titles, powers, metres, strict=True):
    place += power / sum(powers) * metre
    print(f"{title:<17} score {math.log(power):5.2f}   weight {power / sum(powers):.2f}")
print(f"go to metre {place:.2f}")

# %% [markdown]
# ### Exercise 1.1 · `soft_lookup`
# ●○○ easy · 8 minutes · 2 points
#
# Write the same with tensors, for keys of any length and values of any length. Finished versions of
# lesson 00's `softmax` and `weighted_average` are imported. (`weighted_average` expects a matrix of
# weights, one row per query.) The test of the temperature is given: here and in later lessons, a
# line such as `demand.positive(…)` above your part refuses, with a ValueError, an argument that
# means nothing.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Three steps: a score per key, a weight per key, the weighted sum of the values. The score is
# *minus* the squared distance over the temperature.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(T_k, d_k)` minus `(d_k,)` subtracts the query from every key. Summing the squares over the
# features gives `(T_k,)`. The weights have one axis, so the softmax runs along `dim=0`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# for every key j:  score[j] = -(sum over features of (key[j] - query)²) / temperature
# weights = softmax of the scores
# context = sum over j of weights[j] · values[j]
# ```
# </details>
# <details><summary>Hint 4 · “IndexError: Dimension out of range”</summary>
#
# `weighted_average` expects weights `(T_q, T_k)` and gives `(T_q, d_v)`. With one query, use the
# matrix product directly, or add an axis of length 1 and take it off again.
# </details>

# %% exercise="soft_lookup"
from attention.kernel_regression import soft_lookup

# %% check="soft_lookup" points=2
check.soft_lookup(soft_lookup)

# %% [markdown]
# ### Predict first
# The drawing used a temperature of 0.1, and *Counting Words*, the nearest book, had a weight of
# 0.61. What happens at 0.001? And what is its weight at 100? To see the weights themselves, we
# look up one-hot values: book *j* answers with a 1 at index *j*.

# %%
prediction = None  # its weight at temperature 100, from 0 to 1; None skips this

# %% demo=true
keys, query = torch.tensor(books), torch.tensor(search)
axes = plots.panels(columns=4, width=2.4, height=2.5)
for ax, temperature in zip(axes, (0.001, 0.1, 1.0, 100.0), strict=True):
    weights = soft_lookup(query, keys, torch.eye(4), temperature)
    place = soft_lookup(query, keys, torch.tensor(metres)[:, None], temperature).item()
    plots.bars(weights, ["Poems", "Gramm.", "Count.", "Matr."], ax)
    ax.set(title=f"temperature {temperature:g}\nanswer {place:.2f} m")
    ax.tick_params(axis="x", labelsize=8)
compare(prediction, weights[2].item(), "weight of the nearest book at temperature 100")

# %% [markdown]
# *Weights of the four books at four temperatures: all on the nearest book at 0.001, equal at 100.*
# A temperature near 0 is a dictionary lookup with the nearest key. A very high one is the plain
# average of lesson 00. Soft lookup is everything in between. The slider goes through it:


# %% demo=true
def at_temperature(temperature):
    weights = soft_lookup(query, keys, torch.eye(4), temperature)
    ax = plots.bars(weights, ["Poems", "Gramm.", "Count.", "Matr."])
    ax.set(title=f"temperature {temperature:.3g}, answer {weights @ torch.tensor(metres):.2f} m")


sliders.slider(at_temperature, temperature=(0.001, 100.0))

# %% [markdown]
# ## From books to numbers
# Now let keys and values be numbers: examples $(x_j, y_j)$, and a query $x$ at which we want to
# know $y$. Take just three examples and ask at $x = 4.25$. First with the plainest score there is,
# minus the distance:

# %%
examples = [(1.36, 1.79), (3.40, -1.77), (6.05, -2.17)]
at = 4.25
powers = [math.exp(-abs(at - x_j)) for x_j, _ in examples]
prediction = 0.0
for power, (x_j, y_j) in zip(powers, examples, strict=True):
    weight = power / sum(powers)
    prediction += weight * y_j
    print(f"x {x_j:.2f}   distance {abs(at - x_j):.2f}   weight {weight:.3f}   y {y_j:5.2f}")
print(f"prediction at {at}: {prediction:.3f}")

# %% [markdown]
# The nearest example, at 3.40, has two thirds of the weight. Nadaraya and Watson proposed such
# averages in 1964, independently of each other. To predict at many points at once, we need the
# distances of all queries from all keys.
#
# ### Exercise 1.2 · `distances`
# ●○○ easy · 4 minutes · 1 point
#
# From queries `(T_q,)` and keys `(T_k,)` make the matrix `(T_q, T_k)` of their absolute
# differences: **queries down, keys across**, as everywhere in this course.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Broadcasting: a column and a row, subtracted, give a table of all pairs.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(T_q, 1)` minus `(1, T_k)` is `(T_q, T_k)`. Indexing with `None` adds an axis of length 1.
# </details>
# <details><summary>Hint 3 · “RuntimeError: The size of tensor a (2) must match … b (3)”</summary>
#
# Both tensors still have a single axis, so PyTorch tries to pair them element by element.
# </details>

# %% exercise="distances"
from attention.kernel_regression import distances

# %% check="distances" points=1
check.distances(distances)

# %% [markdown]
# ### Exercise 1.3 · `nadaraya_watson`
# ●●○ medium · 8 minutes · 3 points
#
# In stages, each earned by itself: for one query (1), for many queries (1), far from all examples
# (1).
#
# The exponential of a score, before the division by the sum, is called a **similarity** or *kernel
# value*. The usual one is the Gaussian kernel, a bell of width $h$, the **bandwidth**. Divide it by
# its sum over the examples, and look at what you get, for query $x_i$ and example
# $x^\text{train}_j$:
#
# $$w_{ij} = \frac{\exp(s_{ij})}{\sum_{m=1}^{T_k} \exp(s_{im})}, \qquad
# s_{ij} = -\frac{\left(x_i - x^\text{train}_j\right)^2}{2h^2}$$
#
# This *is* a softmax, of the scores $s_{ij}$: the soft lookup of 1.1 with $\tau = 2h^2$. Predict
# all queries at once. (Compute the squared differences here again: a mistake in 1.2 then costs
# nothing in 1.3.)
#
# <details><summary>Hint 1 · the idea</summary>
#
# Scores, softmax, matrix product. The Gaussian's `exp` is already in the softmax, which also stays
# finite for a query far from all examples.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Scores and weights are `(T_q, T_k)`, and each query's weights sum to 1. `(T_q, T_k)` times
# `(T_k,)` is `(T_q,)`.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Take two queries and three examples. Which shape must the table of squared differences have, and
# which of its axes does the softmax run along, so that each query's weights sum to 1?
# </details>
# <details><summary>Hint 4 · “… a prediction is wrong”</summary>
#
# In Python `a / 2 * h**2` means `(a / 2) * h**2`. Put the denominator in brackets.
# </details>

# %% exercise="nadaraya_watson"
from attention.kernel_regression import nadaraya_watson

# %% check="nadaraya_watson" points=3
check.nadaraya_watson(nadaraya_watson)

# %% [markdown]
# ### Exercise 1.4 · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate has read Nadaraya's paper and writes 1.3 as it stands there, without a softmax:
# similarities, divided by their sum. It agrees with yours on every example of theirs.

# %% broken="divides_by_the_sum"
from autograder.mistakes.kernel_regression import divides_by_the_sum

# %% [markdown]
# Write a function without arguments that returns an input `(x, x_train, y_train, bandwidth)` for
# which the result is wrong. On paper both are the same formula, so look for numbers on which a
# computer does not follow the paper.
#
# <details><summary>Hint 1 · the idea</summary>
#
# How large is exp(−*u*²/2) for *u* = 10? And for *u* = 100, in a computer's numbers?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `x` is `(T_q,)`, `x_train` and `y_train` are `(T_k,)`, and the bandwidth is a positive number. One
# query and one example are enough.
# </details>

# %% exercise="break_nadaraya_watson"
from attention.kernel_regression import break_nadaraya_watson

# %% check="break_nadaraya_watson" points=1
check.break_nadaraya_watson(break_nadaraya_watson)

# %% [markdown]
# ## A river
# Someone read a river gauge 40 times within six hours, and never between 3.7 h and 4.7 h. The
# readings are rough. The true level is known only to us, because we made it up.


# %%
def true_level(x):
    return torch.sin(x) + 0.5 * torch.sin(3 * x)


def river(seed):
    """Return 40 moments and readings: hours and decimetres, (T_k,) each."""
    generator = torch.Generator().manual_seed(seed)
    moments = (torch.arange(40) + 0.8 * torch.rand(40, generator=generator)) / 8  # 0 to 5, in order
    hours = moments + (moments > 3.7)  # with an hour left out
    return hours, true_level(hours) + 0.3 * torch.randn(40, generator=generator)


x_train, y_train = river(seed=3)
x = torch.linspace(0, 6, 601)  # (T_q,)
print(f"{len(x_train)} examples, {len(x)} queries")

# %% [markdown]
# In the next plot, `nadaraya_watson` predicts with a bandwidth of 0.3 h. Where will it miss the
# true level? Think of the peaks, the gap and the ends.

# %% demo=true


def at_bandwidth(bandwidth):
    fitted = nadaraya_watson(x, x_train, y_train, bandwidth)
    ax = plots.fit(x, fitted, x_train, y_train, true_level(x), xlabel="hours")
    ax.set(ylabel="level (dm)", title=f"bandwidth {bandwidth:.2g} h")


at_bandwidth(0.3)

# %% [markdown]
# *Examples (dots), true level (dashed) and prediction (line).* Peaks come out too low and valleys
# too high: most neighbours of a peak lie below it. The valley in the gap is missed, because nobody
# read there. At the left end all neighbours lie to the right, where the river is higher, and so is
# the prediction. At the right end they lie to the left, where it is lower. With the slider you
# change the bandwidth:

# %% demo=true
sliders.slider(at_bandwidth, bandwidth=(0.02, 3.0))

# %% [markdown]
# ## Other kernels
# The Gaussian is one way to turn a distance into a similarity. A **kernel** is, in this course, any
# such function of the scaled distance $u = (x_i - x^\text{train}_j) / h$ that is largest at 0. The
# exponential is already in it, so that only the division by the sum is left to do.
#
# ### Exercise 1.5 · `kernel_values`
# ●●○ medium · 8 minutes · 2 points
#
# Write four kernels, all of height 1 at $u = 0$, and refuse other names.
#
# | name | value | its reach |
# |---|---|---|
# | `"gaussian"` | $\exp(-u^2/2)$ | everywhere, quickly falling |
# | `"boxcar"` | 1 where $\lvert u\rvert \le 1$, else 0 | one bandwidth |
# | `"epanechnikov"` | $1 - u^2$ where $\lvert u\rvert \le 1$, else 0 | one bandwidth |
# | `"constant"` | 1 | everywhere |
#
# Textbooks put factors in front, such as 3/4. They would cancel in the weights, so we leave them
# out.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Four cases, then an error for all other names. A comparison of tensors gives True and False;
# `.to(u.dtype)` makes numbers of them.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Every case returns a tensor of the shape and dtype of `u`, the constant one too: there is a
# function that makes ones *like* another tensor.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# What is `u.abs() <= 1`, and what does it become as a number? `1 - u**2` is right near 0: where
# does it go wrong, and what does `clamp(min=0)` do there?
# </details>

# %% exercise="kernel_values"
from attention.kernel_regression import kernel_values

# %% check="kernel_values" points=2
check.kernel_values(kernel_values)

# %% [markdown]
# ### Exercise 1.6 · `attention_weights`
# ●●○ medium · 8 minutes · 2 points
#
# Divide each query's similarities by their sum. A boxcar raises a new question: what if **no** key
# is in reach? Then all similarities are 0, and so is their sum. Something must be chosen. We choose
# equal weights, $1/T_k$: who knows nothing about a query answers with the mean of all examples.
# (Lesson 06 chooses zeros, for queries that should stay silent.)
#
# <details><summary>Hint 1 · the idea</summary>
#
# A row of zeros and a row of ones carry the same information: no key is preferred. But ones can be
# divided by their sum.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Sums of the rows with their axis kept: `(T_q, 1)`. This lines up with `(T_q, T_k)`, also in
# `masked_fill` and `torch.where`, which return a new tensor. Leave the one you were given as it is.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# For the rows (0, 2, 2) and (0, 0, 0): what should come out? Which rows are empty, as a column of
# True and False, and with what must an empty row be filled so that the same division serves both?
# </details>
# <details><summary>Hint 4 · “… gets weights that are not numbers”</summary>
#
# 0 / 0 is NaN. Adding a small number everywhere hides this, but it also changes honest rows whose
# similarities are small.
# </details>

# %% exercise="attention_weights"
from attention.kernel_regression import attention_weights

# %% check="attention_weights" points=2
check.attention_weights(attention_weights)

# %% [markdown]
# The pieces fit together. This function is given; it calls yours.

# %% given="kernel_regression"
from attention.kernel_regression import kernel_regression

# %% [markdown]
# Four kernels, three bandwidths. Which kernel ignores the bandwidth? Which gives a line with steps?
# What does the narrow boxcar do in the gap?

# %% demo=true
kernels, bandwidths = ("gaussian", "boxcar", "epanechnikov", "constant"), (0.15, 0.6, 1.5)
axes = plots.panels(4, 3, width=3.0, height=1.75)
for row, kernel in zip(axes, kernels, strict=True):
    for ax, bandwidth in zip(row, bandwidths, strict=True):
        prediction, _ = kernel_regression(x, x_train, y_train, kernel, bandwidth)
        title = f"bandwidth {bandwidth:g} h" if kernel == kernels[0] else ""
        plots.fit(x, prediction, x_train, y_train, true_level(x), ax, title, "hours", legend=False)
    row[0].set(ylabel=kernel)
for kernel in kernels[:3]:  # total variation: how far the line goes up and down
    rivers = [kernel_regression(x, *river(seed), kernel, 0.6)[0] for seed in (0, 1, 2)]
    ways = [round(line.diff().abs().sum().item(), 1) for line in rivers]
    print(f"{kernel:<14} total variation at 0.6 h in dm, three other rivers: {ways}")

# %% [markdown]
# *Fits under four kernels (rows) and three bandwidths (columns), with examples, true level (dashed)
# and prediction (line), all in dm.* A narrow kernel follows the noise, a wide one flattens the
# peaks, and the constant one is the mean of everything at any bandwidth. The boxcar makes steps,
# one whenever an example enters or leaves its reach. In the gap, narrow boxcar and Epanechnikov
# have no example in reach and fall back to the mean. Of the first three, the Gaussian smooths most
# at equal bandwidth, as the printed numbers say: it reaches beyond one bandwidth.
#
# The fits are made of weights. Each row of the next pictures is one query, each column one example.

# %% demo=true
queries = torch.linspace(0.25, 5.75, 12)  # (12,)
axes = plots.panels(1, 3, width=3.4, height=3.0)
for ax, (kernel, bandwidth) in zip(
    axes, (("gaussian", 0.15), ("boxcar", 0.15), ("gaussian", 0.6)), strict=True
):
    _, weights = kernel_regression(queries, x_train, y_train, kernel, bandwidth)
    title = f"{kernel}, bandwidth {bandwidth:g} h"
    faint_weights.heatmap(weights, ax, title, [f"{hour:g} h" for hour in queries])
    ax.set(xlabel="examples in order of time")

# %% [markdown]
# *Weight matrices: 12 queries down, 40 examples across, in the order of time. Each panel has its
# own scale, up to its largest weight.* Near the diagonal, a query attends to the examples of its
# own time. A narrow kernel is sharp, a wide one spreads its weight. In the gap, from 3.75 h to 4.75
# h, the narrow Gaussian still finds a nearest example, however far, and gives it most of the
# weight: dark cells. The boxcar's pale row at 4.25 h is the query with nobody in reach: 1/40 for
# everyone.
#
# ## What every attention has in common
# Kernels, and later dot products, differ in how the weights are made. What happens then is always
# the same: weights that are not negative and sum to 1 average the values. Three properties follow.
#
# **The result lies among the values.** Weights like these can only give points inside the smallest
# convex shape around the values, their *convex hull*. Which of these points are reached depends on
# the keys and the temperature. Let us look up 400 random queries among 7 values in the plane.

# %% demo=true
generator = torch.Generator().manual_seed(3)
keys = torch.randn(7, 2, generator=generator)
values = torch.randn(7, 2, generator=generator)
asked = 2 * torch.randn(400, 2, generator=generator)
axes = plots.panels(1, 2, width=4.4, height=3.6)
for ax, temperature in zip(axes, (0.2, 4.0), strict=True):
    points = torch.stack([soft_lookup(query, keys, values, temperature) for query in asked])
    plots.hull(values, points, ax, f"temperature {temperature:g}", legend=ax is axes[0])

# %% [markdown]
# *Contexts, the results of 400 soft lookups (orange), in the convex hull of seven values (blue), at
# two temperatures; the queries are not drawn.* None leaves the hull, although the queries lie all
# over the plane. At a low temperature one or two
# keys take most of the weight, so the results gather at values and on lines between them. A high
# one keeps them near the middle.
#
# **Order does not matter.** Shuffle the examples, each with its value: the predictions stay.
# Shuffle the queries: the predictions move with them. The first is called *permutation invariance*,
# the second *equivariance*. So attention by itself does not know the order of the words in a
# sentence; lesson 08 gives it positions. Whether a function has this property can be tested without
# knowing how it works. Here are seven ways to predict:

# %% given="candidate"
from attention.kernel_regression import candidate

# %% [markdown]
# ### Exercise 1.7 · `ignores_order`
# ●●○ medium · 10 minutes · 2 points
#
# Write the test for `candidate(name, …)`: True if shuffling the examples changes no prediction and
# shuffling the queries only shuffles the predictions. A sum in another order is rounded
# differently, so compare with `torch.allclose(…, atol=1e-5)`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Predict twice: with everything as it is, and with everything shuffled. Which prediction of the
# second run belongs to the same query as number *i* of the first?
# </details>
# <details><summary>Hint 2 · how to shuffle</summary>
#
# `torch.randperm(n)` is a random order of 0 to n − 1, and `x[order]` brings x into it. Queries and
# examples need one each. A tidy order, such as the reverse, may hide what a random one shows.
# </details>
# <details><summary>Hint 3 · “way A … is accused”</summary>
#
# Has each key kept its value? Have the old predictions been brought into the order of the new ones?
# </details>

# %% exercise="ignores_order"
from attention.kernel_regression import ignores_order

# %% check="ignores_order" points=2
check.ignores_order(ignores_order)

# %% [markdown]
# Read `candidate` again and write down who depends on an order. Then ask your test:

# %% demo=true
for name in "ABCDEFG":
    said = ignores_order(name, queries, x_train, y_train)
    print(f"way {name}:", "ignores the order" if said else "depends on the order")

# %% [markdown]
# **B** mixes each value with the one before it in the list, **C** prefers examples in the middle,
# **D** late ones, and **F** mixes the predictions of neighbouring queries. **E** sorts, and **G**
# needs all predictions at once, but neither looks at a place.
#
# **It is not a fixed linear map.** With the weights held still, the result is linear in the values.
# But a linear layer has one matrix, of one size, for all inputs. Here the matrix is computed from
# the queries and keys, so it changes with the content and fits any number of examples.
#
# ## Break it
# What if the bandwidth goes to 0? What if it goes to infinity? Decide, then look.

# %% demo=true
axes = plots.panels(1, 2, width=4.4, height=2.7)
for ax, bandwidth in zip(axes, (0.001, 100.0), strict=True):
    prediction = nadaraya_watson(x, x_train, y_train, bandwidth)
    title = f"bandwidth {bandwidth:g} h"
    plots.fit(x, prediction, x_train, y_train, true_level(x), ax, title, "hours", ax is axes[0])

# %% [markdown]
# *Left: bandwidth 0.001 h, a staircase through every example. Right: 100 h, a flat line.* The first
# is nearest-neighbour prediction, the hard lookup: it fits all examples without error and repeats
# their noise. The second is the uniform average of lesson 00. The best bandwidth lies between, and
# the error *on the examples themselves* cannot find it: it is smallest on the left.
#
# ## Choosing the bandwidth
# A fair question to an example is: how well would the *others* have predicted you? Leave each
# example out in turn, predict it from the rest, and average the squared errors.
#
# ### Exercise 1.8 · `leave_one_out_loss`
# ●●● hard · 12 minutes · 3 points
#
# In stages, each earned by itself: with ordinary bandwidths (1), with a tiny bandwidth (1), its
# gradient (1).
#
# Compute this mean, with the Gaussian kernel. The queries are the examples themselves, and each
# must be kept from attending to itself. This is a *mask*, the first of many. A gradient must be
# able to flow through the bandwidth.
#
# <details><summary>Hint 1 · the idea</summary>
#
# To take a key out of a softmax, give it a score whose exponential is 0. The score 0 will not do:
# its exponential is 1.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Scores `(T_k, T_k)`: example *i* as query down, example *j* as key across. What must go is the
# diagonal. `torch.eye` with `dtype=torch.bool` and the device of the data marks it, and
# `masked_fill` fills what is marked.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# In 1.3 queries and examples were two things. Which tensor is both now? Write 1.3 with it, look at
# the largest weight of each row, and ask what must happen to its score *before* the softmax.
# </details>
# <details><summary>Hint 4 · the loss falls to 0 as the bandwidth shrinks</summary>
#
# Then each example still sees itself. Remove it *before* the softmax: afterwards, at a small
# bandwidth, the others have no weight left to be scaled up.
# </details>

# %% exercise="leave_one_out_loss"
from attention.kernel_regression import leave_one_out_loss

# %% check="leave_one_out_loss" points=3
check.leave_one_out_loss(leave_one_out_loss)

# %% [markdown]
# ## Learning the bandwidth
# You could try a hundred bandwidths. Or you let the loss say in which direction to go: its
# gradient. This is the step from a method with a knob to a model with a parameter.
#
# ### Exercise 1.9 · `LearnedBandwidth`
# ●●○ medium · 8 minutes · 3 points
#
# In stages, each earned by itself: the parameter (1), the predictions (1), the gradient (1).
#
# Write a module with one parameter, `log_bandwidth`, a scalar: the natural logarithm of the
# bandwidth. Why the logarithm? Gradient descent may step anywhere, also below 0, where a bandwidth
# makes no sense. The exponential of any number is positive. An `nn.Module` has an `__init__`, which
# makes the parameters, and a `forward`, which computes: here it predicts as in 1.3. You need not
# write that a third time: if your `nadaraya_watson` is right, `forward` may call it.
#
# <details><summary>Hint 1 · the idea</summary>
#
# `nn.Parameter` around a tensor tells the module that this tensor is to be learned. `forward` first
# gets the bandwidth back from its logarithm, then does what `nadaraya_watson` does, or calls it.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `torch.tensor(0.5)` has the shape `()`, while `torch.tensor([0.5])` has `(1,)`. A scalar adapts to
# the dtype of the tensors it meets.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# `nn.Parameter(torch.tensor(…))`: what goes in for a bandwidth of 0.5? And in `forward`, which
# method of a tensor undoes a logarithm and stays a tensor?
# </details>
# <details><summary>Hint 4 · “no gradient reaches log_bandwidth”</summary>
#
# `.item()`, `float(…)`, `math.exp(…)` and `.detach()` make plain numbers, which have no gradient.
# Use the tensor's own methods, also in `nadaraya_watson` if you call it.
# </details>

# %% exercise="LearnedBandwidth"
from attention.kernel_regression import LearnedBandwidth

# %% check="LearnedBandwidth" points=3
check.LearnedBandwidth(LearnedBandwidth)

# %% [markdown]
# Train it, from a bandwidth that is far too wide. Each step computes the leave-one-out loss and
# moves the parameter against its gradient (Adam chooses the size of the step). The loss needs only
# the bandwidth; `forward` predicts afterwards, in the plot after the next.


# %% demo=true
def train(bandwidth, x_train, y_train):
    """Return the bandwidth and the loss at every step."""
    model, path = LearnedBandwidth(bandwidth), []
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(121):
        loss = leave_one_out_loss(x_train, y_train, model.log_bandwidth.exp())
        path.append((model.log_bandwidth.exp().item(), loss.item()))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return path


path = train(1.5, x_train, y_train)
for step in range(0, 121, 30):
    print(f"step {step:3}   bandwidth {path[step][0]:.3f} h   loss {path[step][1]:.3f}")

# %% demo=true
grid = torch.logspace(-2, 0.5, 80)
losses = torch.stack([leave_one_out_loss(x_train, y_train, bandwidth) for bandwidth in grid])
ax = plots.lines(
    grid, {"all bandwidths": losses}, xlabel="bandwidth (h)", ylabel="leave-one-out loss", log=True
)
ax.plot(*zip(*path, strict=True), ".", color=plots.VERMILION, label="steps of training")
legend = plots.legend(ax)

# %% [markdown]
# *Leave-one-out loss against the bandwidth (line) and the steps of training (dots).* The loss is
# high on both sides: too narrow repeats noise, too wide flattens. Training starts on the right
# and settles in the valley.

# %% demo=true
fits, images = plots.panels(1, 2, width=4.4, height=2.6), plots.panels(1, 2, width=4.4, height=3.0)
for ax, image, bandwidth in zip(fits, images, (1.5, path[-1][0]), strict=True):
    shown = LearnedBandwidth(bandwidth)
    title = f"bandwidth {bandwidth:.2f} h"
    prediction = shown(x, x_train, y_train)
    plots.fit(x, prediction, x_train, y_train, true_level(x), ax, title, "hours", ax is fits[0])
    weights = shown(x_train, x_train, torch.eye(40))  # one-hot values show the weights
    faint_weights.heatmap(weights, image, title)

# %% [markdown]
# *Before (left) and after training (right): the fit in dm, and the weights of the examples on each
# other, each map on a scale of its own.* Before, no weight is above 0.09: each query listens to
# almost everyone. The learned bandwidth follows the peaks without chasing every dot, and each query
# attends to its near neighbours.
#
# ### Is it the best bandwidth?
# The loss knows only the readings. We also know the true level, and can ask which bandwidth comes
# closest to *it*. Three other rivers with the same true level, and training from three starts:
#
# ### Predict first
# Will the learned bandwidth be the one that is closest to the true level? By how much larger is its
# mean squared distance from the true level than the smallest that any bandwidth has?

# %%
prediction = None  # a factor, from 1 upwards; None skips this

# %% demo=true
axes, factors = plots.panels(1, 3, width=3.4, height=2.8), []
for seed, ax in enumerate(axes):
    xs, ys = river(seed)
    curves = {
        "on the examples": [(nadaraya_watson(xs, xs, ys, h) - ys).square().mean() for h in grid],
        "leave-one-out": [leave_one_out_loss(xs, ys, h) for h in grid],
        "from the true level": [
            (nadaraya_watson(x, xs, ys, h) - true_level(x)).square().mean() for h in grid
        ],
    }
    curves = {name: torch.stack(errors) for name, errors in curves.items()}
    plots.lines(grid, curves, ax, f"river {seed}", xlabel="bandwidth (h)", log=True)
    ax.get_legend().remove()
    ends = [train(start, xs, ys)[-1] for start in (1.5, 0.3, 0.01)]
    ax.plot(*zip(*ends, strict=True), "o", color=plots.VERMILION)
    from_truth = curves["from the true level"]
    learned = (nadaraya_watson(x, xs, ys, ends[0][0]) - true_level(x)).square().mean()
    factors.append((learned / from_truth.min()).item())
    print(f"river {seed}: learned from 1.5, 0.3, 0.01 h:", [f"{h:.3f}" for h, _ in ends], end="   ")
    best, wide = grid[from_truth.argmin()], from_truth[(grid - 1.5).abs().argmin()]
    print(f"closest to the truth: {best:.3f} h; factor {factors[-1]:.2f}", end="   ")
    print(f"at 1.5 h {wide / from_truth.min():.1f}")
axes[0].set(ylabel="mean squared error")
legend = plots.legend(axes[0], fontsize=7, loc="upper left")
stuck = sum(train(0.01, *river(seed))[-1][0] < 0.05 for seed in range(20))
print(f"from 0.01 h training stays below 0.05 h in {stuck} of 20 rivers")
compare(prediction, max(factors), "largest of the three factors")

# %% [markdown]
# *Three errors against the bandwidth, for three rivers; dots are where training ended from three
# starts.* The error on the examples themselves is smallest on the left, where it is of no use. The
# leave-one-out loss has its valley near the bandwidth that is closest to the truth, but not in the
# same place: forty rough readings decide, and others would decide otherwise. And from a start of
# 0.01 h training stays stuck in one of the three, and in 8 of 20 rivers. There each example attends
# to a single neighbour with all its weight, and a softmax that has decided has no gradient.
#
# ## Limits
# A prediction is an average of what was seen: beyond the largest value, or far outside of the
# examples, it cannot go. The score is given, not learned: a feature that does not matter counts
# like one that does. One bandwidth serves peaks and plains alike. And every query is compared with
# every example, so that both the time and the table of weights grow with $T_q \cdot T_k$.
#
# ## Summary
# A soft lookup compares a query with all keys, turns the scores into weights by a softmax, and
# averages the values; kernel regression is this with minus squared distances as scores. The result
# always lies among the values, and does not depend on the order of the examples. How sharp the
# attention is can be learned from the examples alone, though not perfectly, because the Gaussian is
# differentiable.
#
# **Next** [02 · What fits into one
# vector?](../02_sequence_to_sequence/02_sequence_to_sequence.ipynb) A network must press a whole
# sentence into one vector, and fails when the sentence is long. Lesson 03 lets it look back, with
# what you have built here; there the scores, too, are learned.
#
# ## Open questions
# 1. Predict the river at 8, 20 and 1000 hours. What comes out, and why exactly this?
# 2. Give each book of the soft lookup a third feature that has nothing to do with its subject:
#    `spread * torch.randn(4)`, and 0 for the query. How large may `spread` be before the answer at
#    temperature 0.1 is no longer near metre 7.6?

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# 1. With a bandwidth of 0.3 h it is −0.89 at 8 h and −0.88 at 20 h and 1000 h: the reading of the
#    last example, to which nearly all the weight goes. The scores are differences of squares, and
#    far away the nearest key wins by a wide margin. It is the value of a neighbour, not a trend.
# 2. Over 2000 draws, the answer is 7.6 ± 0.3 m (standard deviation) with a spread of 0.1, 7.3 ±
#    1.5 m with 0.3, and 7.0 ± 3.8 m with 1. The real features differ by some tenths, so noise of
#    this size is as loud as they are.
#
# </details>

# %% [markdown]
# ## References
# - E. A. Nadaraya (1964). *On estimating regression.* Theory of Probability and Its Applications
#   9(1), 141–142. [doi:10.1137/1109020](https://doi.org/10.1137/1109020)
# - G. S. Watson (1964). *Smooth regression analysis.* Sankhyā, Series A 26(4), 359–372.
# - D. Bahdanau, K. Cho, Y. Bengio (2014). *Neural machine translation by jointly learning to align
#   and translate.* [arXiv:1409.0473](https://arxiv.org/abs/1409.0473)
# - A. Vaswani et al. (2017). *Attention is all you need.*
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - To read on: A. Zhang, Z. Lipton, M. Li, A. Smola, *Dive into Deep Learning*, chapter
# [Attention Mechanisms and
# Transformers](https://d2l.ai/chapter_attention-mechanisms-and-transformers/)
