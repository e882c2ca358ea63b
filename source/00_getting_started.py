# %% [markdown]
# # 00 · What will you build, and how?
#
# By lesson 10 you will have built a Transformer that reads a number in English and writes it in
# German, letter by letter. Nobody gives it a rule: it learns from examples. Run the next two cells
# with <kbd>Shift</kbd>+<kbd>Enter</kbd>, then type a number of your own and run the second again.
#
# **After this lesson** you can
# - run a notebook, read what a check says and find the hints,
# - turn scores into weights with a **softmax** that never overflows,
# - average values with **weights**, and say what a plain average cannot do.
#
# **Time** 30 minutes · **Points** 5 · **GPU** not needed · **You need** Python, matrix products,
# and a little PyTorch: tensors, broadcasting, `backward` ([an hour's
# introduction](https://docs.pytorch.org/tutorials/beginner/deep_learning_60min_blitz.html))

# %%
import math

import torch

from attention.experiments import getting_started as experiments
from autograder import check

# %% demo=true
number = 731  # your number, from 1 to 999999
ax = experiments.translation(number)

# %% [markdown]
# *Where the trained translator looks: German letters down, in the order it writes them, English
# words across. The darker a cell, the more weight that word has for that letter; a dot marks the
# largest weight of each row; in pale rows it is hardly larger than the next. Each row sums to 1 and
# is the mean of eight heads (lesson 07).* German says *one-and-thirty*, so for 731 the dark cells
# cross: *ein* looks at *one*, then all but one letter of *dreißig* go back to *thirty*. Nobody told
# the model where to look. These weights are its **attention**.
#
# **Now watch it fail.** It gets the next number wrong. Compare its German with the right one: which
# word is missing? Find another that fails; numbers that end in 000 are a good place to look.

# %% demo=true
ax = experiments.translation(700_610)

# %% [markdown]
# *The same map for 700610, with a frame around the first wrong letter.* Here *tausend* should
# begin. *thousand* has a weight of 0.54, *six* has 0.24, yet the model writes *sechs*. So the
# largest weight need not tell what comes next, at least in this mean of eight heads (lesson 17).
#
# ## Working in the notebook
#
# | I want to … | do this |
# |---|---|
# | start over, or get rid of a NameError | *Kernel → Restart Kernel and Run up to Selected Cell* |
# | write an answer | replace the line `raise NotImplementedError(…)`, and run the cell |
# | know if it is right | run the cell below it |
# | test the whole notebook | press **Validate** in the toolbar (or behind its **…** button) |
# | skip something | a star ★ marks what no later lesson needs |
# | see the solution | after trying: the same notebook in `solutions/`, if you have it |
#
# You may skip an exercise and come back; a figure that depends on it prints one line saying so.
# Just read on.

# %% [markdown]
# ## What a plain average cannot do
# Three sensors measure temperature (°C) and humidity (%): one in your room, one in the garden, one
# in the freezer. How warm is it where you are? Let us average all three.

# %%
values = torch.tensor([[21.0, 40.0], [5.0, 80.0], [-18.0, 30.0]])
places = ["room", "garden", "freezer"]
average = [round(sum(column) / 3, 1) for column in values.T.tolist()]
print("average of all three:", average)

# %% [markdown]
# None of the places is at 2.7 °C. A plain average gives the freezer as much say as your room. Write
# it all the same: everything that follows replaces its equal weights with better ones.
#
# ### Exercise 0.1 · `uniform_average`
# ●○○ easy · 3 minutes · 1 point
#
# Average the value vectors, all of them equally important: `(T_k, d_v)` becomes `(d_v,)`. Here
# `T_k` counts the vectors and `d_v` their features: `(3, 2)` for the sensors.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Add the vectors up and divide by how many there are. One function of PyTorch does both.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Axis 0 counts the vectors and disappears. Axis 1 holds the features and stays. Without an axis,
# `mean` averages all the numbers.
# </details>

# %% exercise="uniform_average"
from attention.getting_started import uniform_average

# %% check="uniform_average" points=1
check.uniform_average(uniform_average)

# %% [markdown]
# ### Reading a check
# What is wrong with this attempt? Say it before the check does. (`preview` costs no points.)


# %% demo=true
def first_try(values):
    return values.sum(dim=0) / values.shape[1]


check.preview("uniform_average", first_try)

# %% [markdown]
# - The first line says **what** is wrong; `got` and `expected` show the difference.
# - `likely` names a known mistake that gives exactly these results.
# - `place` is the part of the code to look at: put the right value there, and all results are
#   right.
# - `seed` is the seed of the random inputs. To get the same inputs again, run a cell that says
#   `%env AUTOGRADER_SEED=` and that number.
#
# Besides doing what the text asks, your answer must be right in float32, PyTorch's default
# precision. It must give the same result when it is called again, and change nothing outside
# itself, not even its arguments. This course calls that **care**: a right answer that lacks it
# keeps three quarters of its points.
#
# ## Weights
# **Attention** lets a *query* decide how much each value counts. The query here is where you are:
# in the room, but near the open garden door. Nobody measures there, so mix: 0.80 room, 0.20 garden
# and no freezer.

# %%
warmth, humidity = 0.0, 0.0
for weight, (degrees, percent) in zip([0.8, 0.2, 0.0], values.tolist(), strict=True):
    warmth, humidity = warmth + weight * degrees, humidity + weight * percent
    print(f"weight {weight:.2f}   so far {warmth:5.2f} °C and {humidity:5.2f} %")

# %% [markdown]
# Warmer than the garden, cooler than the room. Each row of the maps above holds such weights.
#
# ## Where do the weights come from?
# The 0.80 was a guess. Attention computes it: it compares your place, the query, with the places of
# the sensors, the keys. Here is the whole way, with the names that every lesson uses.
#
# ![Queries and keys are compared and give scores. A softmax turns the scores into weights whose
# rows sum to 1. The weights average the values into the context, one vector per
# query.](figures/words_of_attention.svg)
#
# | name | what it is |
# |---|---|
# | `q` | queries: what is looked for |
# | `k` | keys: what a query is compared with, one for each item |
# | `v` | values: what is averaged, one for each item |
# | `scores` | one number per query and key, any size and sign: the larger, the better they match |
# | `weights` | scores turned into numbers from 0 to 1; the weights of one query sum to 1 |
# | `context` | the result: for each query, the values averaged with its weights |
#
# `T_q` is the number of queries; `T_k` is the number of keys, which is also the number of values.
# `d_k` is the length of a query and of a key, `d_v` that of a value.

# %% [markdown]
# ## From scores to weights
# Comparing a query with the keys gives **scores**: any numbers, such as 2, 1 and −1. Weights must
# not be negative, and must sum to 1. The **softmax** turns scores into weights:
#
# $$\text{weight}_j = \frac{e^{\,\text{score}_j}}{\sum_{m=1}^{T_k} e^{\,\text{score}_m}}$$
#
# Here is one query, by hand:

# %%
scores_by_hand = [2.0, 1.0, -1.0]
powers = [math.exp(score) for score in scores_by_hand]
for score, power in zip(scores_by_hand, powers, strict=True):
    print(f"score {score:4.1f}   exp {power:6.3f}   weight {power / sum(powers):.3f}")

# %% [markdown]
# There is one trap. In PyTorch `exp(1000)` is `inf`, and `inf / inf` is `NaN`, "not a number". But
# **adding the same number $c$ to all scores changes no weight**: every exponential is multiplied by
# $e^c$, which cancels in the fraction. Which *c* saves you?
#
# ### Exercise 0.2 · `softmax`
# ●●○ medium · 8 minutes · 2 points
#
# Graded in two parts: ordinary scores (1), scores of ±1000 and −∞ (1).
#
# Write the softmax along the axis `dim`, for scores of any shape. Scores of ±1000 must give finite
# weights, and a score of −∞ the weight 0; later lessons use −∞ to hide a position. `torch.softmax`
# does the same; you learn more by writing it once.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Subtract from every score the largest score of its own slice along `dim`. Then take the
# exponential, then divide by the sum of the slice.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
#
# ```
# top          = largest score along dim, axis kept
# exponentials = exp of (scores minus top)
# result       = exponentials over their sum along dim, axis kept
# ```
# </details>
# <details><summary>Hint 3 · “RuntimeError: The size of tensor a (3) must match …”</summary>
#
# A reduction (`sum`, `amax`) removed its axis: `(2, 5, 7)` became `(2, 7)`. With `keepdim=True` it
# stays, as `(2, 1, 7)`.
# `max(dim=…)` returns two tensors, values and indices; `amax` returns the values only.
# </details>

# %% exercise="softmax"
from attention.getting_started import softmax

# %% check="softmax" points=2
check.softmax(softmax)

# %% [markdown]
# ### Predict first
# The scores 2, 1 and −1 gave the weights 0.705, 0.259 and 0.035. What becomes of the largest weight
# if all three scores are multiplied by 10? And by 0.1? Decide, then run.

# %% demo=true
axes = experiments.scales(softmax)

# %% [markdown]
# *Softmax weights of three scores at three scales: closer together on the left (0.38, 0.34, 0.28),
# all on the first one on the right.* Only the differences between scores count: small ones make an
# average, large ones a choice. Lesson 05 is about keeping scores at the right size.

# %% [markdown]
# ### Break it
# How large may a score be if you leave the subtraction out? Guess, then run.


# %% demo=true
def softmax_without_shift(scores, dim):
    powers = torch.exp(scores)
    return powers / powers.sum(dim, keepdim=True)


top = 10.0
while softmax_without_shift(torch.tensor([top, top - 1]), dim=0).isfinite().all():
    top += 1
print(f"the first whole score that overflows: {top:g}")
check.preview("softmax", softmax_without_shift)

# %% [markdown]
# In float32, a score of 89 is enough to overflow: e⁸⁹ is larger than its maximum, 3.4 · 10³⁸.
#
# ## From weights to context
# Now average the values with these weights, for all queries at once:
#
# $$\text{context}_i = \sum_{j=1}^{T_k} \text{weights}_{ij}\,\text{values}_j$$
#
# ### Exercise 0.3 · `weighted_average`
# ●○○ easy · 3 minutes · 2 points
#
# Compute the context of all queries, without a loop: weights `(T_q, T_k)` and values `(T_k, d_v)`
# become `(T_q, d_v)`. This one line is the last step of every attention in this course.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A sum over *j* of something with (*i*, *j*) times something with (*j*, feature): you know this
# operation from linear algebra.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(T_q, T_k)` times `(T_k, d_v)` is `(T_q, d_v)`: a matrix product, which Python writes `@`. The
# sign `*` would multiply entry by entry.
# </details>
# <details><summary>Hint 3 · “… a context is wrong”</summary>
#
# Row *i* of the weights belongs to query *i*, and row *j* of the values to key *j*. Did you
# transpose something that should stay as it is?
# </details>

# %% exercise="weighted_average"
from attention.getting_started import weighted_average

# %% check="weighted_average" points=2
check.weighted_average(weighted_average)

# %% [markdown]
# ### Predict first
# Three people ask how warm and humid it is around them: one in the room, one at the garden door,
# one in the garden. Read their scores for the three sensors in the cell. How warm will it be at the
# door, to within a degree?

# %% demo=true
from attention.provided.figures import plots

people = ["in the room", "at the door", "in the garden"]
scores = torch.tensor([[4.0, 0.0, -2.0], [2.0, 2.0, -2.0], [-1.0, 4.0, -3.0]])  # (T_q, T_k)
weights = softmax(scores, dim=1)  # (T_q, T_k)
print(weighted_average(weights, values))  # (T_q, d_v): °C and % for each person
ax = plots.heatmap(weights, queries=people, keys=places, numbers=True)

# %% [markdown]
# *Weights of three queries (rows) on three keys (columns), on a colour scale from 0 to 1.* The
# person at the door listens to room and garden alike, and gets 12.7 °C: their mean, 13 °C, less
# what the freezer's 0.01 takes away. No row gives the freezer more.
#
# ## Something of your own
# Choose four things, each described by two numbers: cities by sunshine and rent, songs by tempo and
# year. Put the numbers into `values`. Think of two people who want different things, and give each
# a row of scores. What do your `softmax` and `weighted_average` tell them? Draw the weights as
# above and show the picture to a friend: can they guess who asked?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## How far you are
# The next cell counts the checks that your notebooks showed as passed when you last **saved** them:
# run your checks and save first. `autograder check` runs them anew, so it may count more.

# %% demo=true
from autograder.self_study import status

status.show()

# %% [markdown]
# ## Summary
# A plain average treats all values alike. Softmax turns any scores into weights that are not
# negative and sum to 1, and subtracting the largest score keeps it finite. A weighted average of
# the values then gives the context.
#
# **Next** [01 · How do you predict y at x from examples you have
# seen?](../01_kernel_regression/01_kernel_regression.ipynb) There the scores come from distances.
#
# ## References
# - D. Bahdanau, K. Cho, Y. Bengio (2014). *Neural machine translation by jointly learning to align
#   and translate.* [arXiv:1409.0473](https://arxiv.org/abs/1409.0473)
# - A. Vaswani et al. (2017). *Attention is all you need.*
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
