# %% [markdown]
# # 00 · How does this course work?
#
# You will learn attention by writing it. Every lesson is a notebook like this one: some text,
# some pictures, and functions that you complete. A check after each function tells you at once
# whether it is right and, if not, what is likely wrong.
#
# **After this lesson** you can
# - run a notebook, read a check's answer and find the hints,
# - turn scores into weights with a **softmax** that never overflows,
# - average values with **weights**, and say why attention does this instead of a plain average.
#
# **Time** 35 minutes · **Points** 5 · **GPU** not needed · **You need** Python, matrix products,
# and a little PyTorch: tensors, broadcasting, `backward` ([an hour's
# introduction](https://docs.pytorch.org/tutorials/beginner/deep_learning_60min_blitz.html))

# %% [markdown]
# ## Working in the notebook
#
# | I want to … | do this |
# |---|---|
# | run a cell | <kbd>Shift</kbd>+<kbd>Enter</kbd>, from top to bottom: cells build on each other |
# | start over | menu *Kernel → Restart Kernel and Run up to Selected Cell* |
# | write an answer | replace the line `raise NotImplementedError(…)`; it says how much is missing |
# | know if it is right | run the cell below your answer: it prints `correct`, or what is wrong |
# | test the whole notebook | press **Validate** in the toolbar above, or see the line below |
# | see the solution | after trying: the same notebook in `solutions/`, if you have that folder |
#
# In a terminal, this prints a table of all exercises with your points:
# ```
# autograder check lessons/00_getting_started/00_getting_started.ipynb
# ```
# A right answer earns the points of its exercise, a wrong one none; “Right, and careful” below
# says what lies between. No exercise depends on another one of the same lesson, so you may skip one
# and come back. The exception: a “break this answer” exercise needs your own answer to be right.
# The pictures do use your functions: below a skipped exercise some stop with `NotImplementedError`.
# Go on to the next exercise. Stars ★ mark exercises that you may leave out: what a later lesson
# needs of them is imported there.

# %% [markdown]
# The next cell says how far you are in the whole course, and what comes next. It reads your
# notebooks as they were last run and saved. In a terminal: `autograder status`.

# %% demo=true
from autograder.self_study import status

status.show()

# %%
import math

import torch

from attention.provided.figures import plots
from autograder import check

# %% [markdown]
# ### CPU or GPU?
# Every lesson runs on any laptop. A GPU saves hours where a model is trained on real sentences, as
# lessons 12 and 14 offer. This is what PyTorch finds here:

# %%
if torch.cuda.is_available():
    device = torch.device("cuda")
elif torch.backends.mps.is_available():
    device = torch.device("mps")
else:
    device = torch.device("cpu")
print("This notebook can compute on:", device)

# %% [markdown]
# ## What a plain average cannot do
# Three sensors measure temperature (°C) and humidity (%). One stands in your room, one in the
# garden, one in the freezer. How warm is it where you are? Let us average all three.

# %%
values = torch.tensor([[21.0, 40.0], [5.0, 80.0], [-18.0, 30.0]])
places = ["room", "garden", "freezer"]
total = [0.0, 0.0]
for sensor in values.tolist():
    for feature in range(2):
        total[feature] += sensor[feature]
print("average of all three:", [round(entry / 3, 1) for entry in total])

# %% [markdown]
# 2.7 °C is true of no place. A plain average gives the freezer the same importance as your room.
# The same happens when the word vectors of a sentence are averaged: every word counts the same,
# whatever you want to know about the sentence.
#
# **Attention** lets a *query* decide how much each value counts. Suppose you sit near the window,
# and the three sensors get the weights 0.80, 0.15 and 0.05:

# %%
weights_by_hand = [0.80, 0.15, 0.05]
result = [0.0, 0.0]
for weight, sensor in zip(weights_by_hand, values.tolist(), strict=True):
    for feature in range(2):
        result[feature] += weight * sensor[feature]
    print(f"weight {weight:.2f}  times {sensor}  so far {[round(entry, 2) for entry in result]}")

# %% [markdown]
# The result is 16.65 °C and 45.5 % humidity: mostly the room, a little of the rest. Everything in
# this course is about where such weights come from.
#
# ## The words of the course
#
# ![Queries and keys are compared and give scores. A softmax turns the scores into weights whose
# rows sum to 1. The weights average the values into the context, one vector per
# query.](figures/words_of_attention.svg)
#
# | name | what it is |
# |---|---|
# | `q` | queries: what is asked |
# | `k` | keys: what each item is compared by |
# | `v` | values: what each item gives |
# | `scores` | one number per query and key, any size and sign: the larger, the better they match |
# | `weights` | scores turned into numbers from 0 to 1; the weights of one query sum to 1 |
# | `context` | the result: per query, the average of the values under its weights |
#
# Shapes are written as tuples of these letters, in code comments too:
#
# | axis or size | meaning |
# |---|---|
# | `B` | batch: how many examples are computed together |
# | `T_q`, `T_k` | how many queries; how many keys, and so how many values |
# | `H` or `n_heads` | number of attention heads (from lesson 07) |
# | `d_model`, `d_k`, `d_v` | length of a vector: in the model, of a key, of a value |

# %% [markdown]
# ## Reading a check
# Exercise 0.1 asks for the plain average of the rows of `values`. Here is a first try. The next
# cell shows what its check says. Nothing is lost: `preview` only prints.


# %% demo=true
def first_try(values):
    return values.mean()


check.preview("uniform_average", first_try)

# %% [markdown]
# Read it from top to bottom:
# - the first line says **what** is wrong;
# - `got` and `expected` show what differs: here the shapes, elsewhere the place where it is seen
#   best; `[0, 2]` is row 0, column 2, as Python counts;
# - `likely` appears only if your answer does exactly what a known mistake does;
# - `seed` is the number from which the random inputs were drawn. They differ from run to run,
#   and a right answer passes on all of them. To see the same inputs again, run a cell with
#   `%env AUTOGRADER_SEED=` and that number.
#
# ## Right, and careful
# The text of an exercise says what its answer must do. Good code does a little more, and this
# course calls that **care**. It makes new tensors on the device of its inputs, with
# `x.new_zeros(…)` or `device=x.device`, so that it also runs on a GPU. It keeps the dtype that
# comes in. It leaves its arguments, and the random numbers of others, as they were. And it stays
# with tensor operations, without NumPy and `.item()`, so that gradients can flow through it.
#
# A right answer that lacks care keeps three quarters of its points, or what your instructor has
# chosen, however much is missing. Here is one:


# %% demo=true
def on_the_cpu(values):
    total = torch.zeros(values.shape[1], dtype=values.dtype)
    for value in values:
        total += value
    return total / len(values)


check.preview("uniform_average", on_the_cpu)

# %% [markdown]
# The averages are right. But `torch.zeros` makes its tensor on the CPU, and on a GPU the addition
# would stop. No GPU is needed to find that out: every check also calls your answer with tensors
# that only claim to lie elsewhere. With `values.new_zeros(values.shape[1])` nothing is missing.
#
# In the lessons that follow, exercises of three points or more are earned in **stages**. Their text
# names them with their points: without a mask (2), with a mask (1). If your answer is right without
# a mask and wrong with one, it keeps two points, and the check tells you about the third.
#
# Your turn: write the average so that the axis of the features stays.

# %% [markdown]
# ### Exercise 0.1 · `uniform_average`
# ●○○ easy · 3 minutes · 1 point
#
# Average the value vectors, all of them equally important: `(T_k, d_v)` becomes `(d_v,)`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Add the vectors up and divide by how many there are. PyTorch has a function for both steps.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Axis 0 counts the vectors and disappears. Axis 1 holds the features and stays.
# </details>
# <details><summary>Hint 3 · “… got shape ()”</summary>
#
# Without an axis, `mean` averages all the numbers. Tell it along which axis to go (`dim`).
# </details>

# %% exercise="uniform_average"
from attention.getting_started import uniform_average

# %% check="uniform_average" points=1
check.uniform_average(uniform_average)

# %% [markdown]
# ## From scores to weights
# A comparison of a query with the keys gives **scores**: any numbers, such as 2, 1 and −1.
# Weights must not be negative, and must sum to 1. The **softmax** makes them so:
#
# $$\text{weight}_j = \frac{e^{\,\text{score}_j}}{\sum_{m=1}^{T_k} e^{\,\text{score}_m}}$$
#
# | quantity | shape | note |
# |---|---|---|
# | scores | `(T_q, T_k)` | one row per query |
# | softmax along `dim=1` | `(T_q, T_k)` | every row sums to 1 |
#
# The exponential makes everything positive. Dividing by the sum makes the total 1. By hand, for
# one query:

# %%
scores_by_hand = [2.0, 1.0, -1.0]
powers = [math.exp(score) for score in scores_by_hand]
for score, power in zip(scores_by_hand, powers, strict=True):
    print(f"score {score:4.1f}   exp {power:6.3f}   weight {power / sum(powers):.3f}")
print(f"sum of the exponentials {sum(powers):.3f}")

# %% [markdown]
# One trap remains. `exp(1000)` does not fit into a floating-point number: it becomes `inf`, and
# `inf / inf` is `NaN`, "not a number". Scores of that size do occur. The way out is a property of
# the formula: **adding the same number $c$ to all scores changes no weight**. Every exponential is
# multiplied by the same $e^c$, above and below the fraction line, where it cancels. Which number
# must be *subtracted* so that no exponent is above 0?
#
# ### Exercise 0.2 · `softmax`
# ●●○ medium · 8 minutes · 2 points
#
# Write the softmax along the axis `dim`, for scores of any shape. Scores of ±1000 must give finite
# weights, and a score of −∞ the weight 0: a masked position, in later lessons. Of course
# `torch.softmax` exists; write it yourself, this once.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Subtract from every score the largest score of its own slice along `dim`. Then take the
# exponential, then divide by the sum of the slice.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Scores `(2, 5, 7)` with `dim=1` have one maximum per slice: `(2, 7)`, or `(2, 1, 7)` if the axis
# is kept. Only the second lines up with the scores.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# top          = largest score along dim, axis kept
# exponentials = exp of (scores minus top)
# result       = exponentials over their sum along dim, axis kept
# ```
# </details>
# <details><summary>Hint 4 · “RuntimeError: The size of tensor a (3) must match …”</summary>
#
# A reduction (`sum`, `amax`) removed its axis. With `keepdim=True` it stays, with length 1.
# Note that `max(dim=…)` returns two tensors, values and indices; `amax` only the values.
# </details>

# %% exercise="softmax"
from attention.getting_started import softmax

# %% check="softmax" points=2
check.softmax(softmax)

# %% [markdown]
# ### Predict first
# The scores 2, 1 and −1 are multiplied by 0.1, by 1 and by 10. In which case are the weights almost
# equal? In which does one take nearly everything? Decide, then run.

# %% demo=true
axes = plots.panels(columns=3)
for ax, factor in zip(axes, (0.1, 1.0, 10.0), strict=True):
    scores = factor * torch.tensor([2.0, 1.0, -1.0])
    labels = [f"{score:g}" for score in scores.tolist()]
    plots.bars(softmax(scores, dim=0), labels, ax, title=f"scores times {factor:g}")
    ax.set(xlabel="score")

# %% [markdown]
# *Softmax weights of three scores at three scales: nearly equal on the left (0.38, 0.34, 0.28), all
# on the first one on the right.* Only differences between scores count: small differences make an
# average, large ones a choice. Lesson 05 is about keeping scores at the right size.

# %% [markdown]
# ### Break it
# What if the shift is left out? For moderate scores nothing changes. Here is what comes out when
# the scores grow, and what the check says.


# %% demo=true
def softmax_without_shift(scores, dim):
    powers = torch.exp(scores)
    return powers / powers.sum(dim, keepdim=True)


for top in (10.0, 80.0, 90.0):
    scores = torch.tensor([top, top - 1, top - 2])
    print(f"top score {top:g}: {softmax_without_shift(scores, 0).tolist()}")
print()
check.preview("softmax", softmax_without_shift)

# %% [markdown]
# In float32 it takes a score of only 89 to overflow.
#
# ## From weights to context
# Now average the values under the weights, for all queries at once:
#
# $$\text{context}_i = \sum_{j=1}^{T_k} \text{weights}_{ij}\,\text{values}_j$$
#
# | quantity | shape |
# |---|---|
# | weights | `(T_q, T_k)` |
# | values | `(T_k, d_v)` |
# | context | `(T_q, d_v)` |
#
# ### Exercise 0.3 · `weighted_average`
# ●●○ medium · 8 minutes · 2 points
#
# Compute the context. First look at the weights: if a row does not sum to 1 (to within 1e-4), an
# earlier step went wrong. Raise a `ValueError` whose message gives the first such row and its sum.
# An error that says where it happened saves an hour of searching.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A sum over *j* of something with (*i*, *j*) times something with (*j*, feature): you know this
# operation.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(T_q, T_k)` and `(T_k, d_v)` share the axis `T_k`, and it disappears. The sums of the rows are
# `(T_q,)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# for every row and its sum:
#     if the sum is further than 1e-4 from 1:
#         raise ValueError(f"row … sums to …")
# return the matrix product of weights and values
# ```
# </details>
# <details><summary>Hint 4 · “… a context is wrong”</summary>
#
# Row *i* of the weights belongs to query *i*, and row *j* of the values to key *j*. Is something
# transposed that need not be?
# </details>

# %% exercise="weighted_average"
from attention.getting_started import weighted_average

# %% check="weighted_average" points=2
check.weighted_average(weighted_average)

# %% [markdown]
# ### Predict first
# Three people ask for the climate around them: one in the middle of the room, one at the garden
# door, one in the garden. Each has scores for the three sensors. Which row of the picture will be
# spread out the most?

# %% demo=true
people = ["in the room", "at the door", "in the garden"]
scores = torch.tensor([[4.0, 0.0, -2.0], [2.0, 2.0, -2.0], [-1.0, 4.0, -3.0]])  # (T_q, T_k)
weights = softmax(scores, dim=1)  # (T_q, T_k)
context = weighted_average(weights, values)  # (T_q, d_v)
ax = plots.heatmap(weights, queries=people, keys=places, numbers=True)
for person, (temperature, humidity) in zip(people, context.tolist(), strict=True):
    print(f"{person:<14} {temperature:5.1f} °C   {humidity:4.1f} %")

# %% [markdown]
# *Weights of three queries (rows) on three keys (columns), on the colour scale from 0 to 1 that all
# lessons share.* The person at the door listens to room and garden alike, 0.50 and 0.50, and gets
# nearly their mean. No row gives the freezer more than 0.01.
#
# ## Summary
# A plain average treats all values alike. Softmax turns any scores into weights that are not
# negative and sum to 1, and subtracting the largest score keeps it finite. The weights average the
# values: this is the last step of every attention in this course.
#
# **Next** [01 · How do you predict y at x from examples you have
# seen?](../01_kernel_regression/01_kernel_regression.ipynb) There the scores come from distances.
#
# ## References
# - D. Bahdanau, K. Cho, Y. Bengio (2014). *Neural machine translation by jointly learning to align
#   and translate.* [arXiv:1409.0473](https://arxiv.org/abs/1409.0473)
# - A. Vaswani et al. (2017). *Attention is all you need.*
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
