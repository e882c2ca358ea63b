# %% [markdown]
# # 01 · How do you predict y at x from examples you have seen?
#
# You know a river's level at some moments and need it at another. You know where some books stand
# on a shelf, and look for one whose subject lies between theirs. In both cases you can compare,
# weigh and average. The method is sixty years old, and it is attention in all but name.
#
# **After this lesson** you can
# - write a **soft lookup**, a dictionary that also answers for keys it does not hold,
# - predict with **Nadaraya–Watson kernel regression**, and name its queries, keys and values,
# - name three properties of attention without masks or positions,
# - **learn** the bandwidth by gradient descent, and judge how good it is.
#
# **Time** 95 minutes · **Points** 16 · **GPU** not needed · **You need** lesson 00

# %%
import math

import torch
from torch import nn

from attention.experiments import kernel_regression as experiments
from attention.getting_started import softmax
from autograder import check

# %% [markdown]
# ## A dictionary that gives up
# A dictionary answers for the keys it holds, and for no others:

# %%
shelf = {"poems": 2.0, "grammar": 4.0, "counting words": 10.0, "matrices": 18.0}  # metres
for subject in ("grammar", "statistics of language"):
    print(f"{subject:<24}", shelf.get(subject, "not in the dictionary"))

# %% [markdown]
# A librarian could still help you, with books that are *similar*.
#
# ## A lookup that mixes
# The shelf is sorted by subject, so a place between the best matches is a good place to look.
# Describe each book by two numbers, its **key**: how much it is about language, and about maths.
# Your search is the **query**: *statistics of language* is (0.7, 0.6). A book's place on the shelf
# is its **value**. The nearer a key is to the query, the more its value counts in the answer.
#
# ![A search with language 0.7 and maths 0.6 is compared with four books. The scores −2.0, −1.0,
# −0.2 and −4.5 become the weights 0.10, 0.28, 0.61 and 0.01, which average the places 2, 4, 10 and
# 18 metres to 7.6 metres.](figures/soft_lookup.svg)
#
# In one formula, for a query $q$, keys $k_j$, values $v_j$ and a **temperature** $\tau > 0$:
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
# Here are the drawing's numbers, worked by hand:

# %%
books = [(0.9, 0.2), (0.8, 0.3), (0.6, 0.7), (0.1, 0.9)]  # (language, maths)
metres = [2.0, 4.0, 10.0, 18.0]
search = (0.7, 0.6)

squares = [sum((a - b) ** 2 for a, b in zip(search, book, strict=True)) for book in books]
powers = [math.exp(-square / 0.1) for square in squares]
for square, power in zip(squares, powers, strict=True):
    print(f"score {-square / 0.1:5.2f}   weight {power / sum(powers):.2f}")
place = sum(power * metre for power, metre in zip(powers, metres, strict=True)) / sum(powers)
print(f"go to metre {place:.2f}")

# %% [markdown]
# Some exercises begin with a line like this, already given. It refuses a temperature of 0 or less.

# %%
from attention.provided import demand

demand.positive(temperature=0.1)

# %% [markdown]
# ### Exercise 1.1 · `soft_lookup`
# ●○○ easy · 5 minutes · 2 points
#
# Write this lookup with tensors, with lesson 00's `softmax`: query `(d_k,)`, keys `(T_k, d_k)` and
# values `(T_k, d_v)` give `(d_v,)`, for any lengths.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A score per key, a weight per key, the weighted sum of the values. The score is *minus* the
# squared distance over the temperature.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(T_k, d_k)` minus `(d_k,)` subtracts the query from every key. Summing the squares over the
# features gives `(T_k,)`, so the softmax runs along `dim=0`.
# </details>

# %% exercise="soft_lookup"
from attention.kernel_regression import soft_lookup

# %% check="soft_lookup" points=2
check.soft_lookup(soft_lookup)

# %% [markdown]
# ### Predict first
# Near temperature 0 only the nearest book counts: metre 10. At the drawing's 0.1 the lookup sends
# you to metre 7.6. Does the answer go on falling as the temperature rises? Where is it at 100?

# %%
from attention.provided.predictions import compare

prediction = None  # the metre at temperature 100; None skips this

# %% demo=true
at = experiments.Shelf(books, metres, search)
answer = experiments.temperatures(soft_lookup, at)
compare(prediction, answer, "metre at temperature 100")

# %% [markdown]
# *Weights of the four books at four temperatures: all on the nearest book at 0.001, equal at 100.*
# As the temperature falls to 0, the answer becomes the value of the nearest key. As it rises, the
# answer becomes the plain average of lesson 00, here 8.5 m. On the way it need not lie between the
# two: at 0.1, the books at 2 and 4 m pull it down to 7.60 m.
#
# ## An hour without readings
# Someone read a river gauge 40 times within six hours, but never between 3.7 h and 4.7 h. The
# readings are rough. How high was the river at 4.25 h?

# %%
x_train, y_train = experiments.river(seed=3)  # hours and decimetres, (T_k,) each
ax = experiments.readings(x_train, y_train, 4.25)

# %% [markdown]
# *Forty readings of a river's level (dots), and the moment in question (dashed).* Now keys and
# values are single numbers: we have examples $(x_j, y_j)$, and want $y$ at a query $x$. Take three
# of the readings, and minus the squared distance as the score.

# %%
examples = [(2.22, 1.55), (3.64, -0.86), (4.78, -0.92)]  # hours, decimetres
powers = [math.exp(-((4.25 - x_j) ** 2)) for x_j, _ in examples]
predicted = 0.0
for power, (x_j, y_j) in zip(powers, examples, strict=True):
    predicted += power / sum(powers) * y_j
    print(f"x {x_j:.2f}   score {-((4.25 - x_j) ** 2):5.2f}   weight {power / sum(powers):.3f}")
print(f"prediction at 4.25: {predicted:.3f}")

# %% [markdown]
# The readings on both sides of the gap share nearly all the weight. Nadaraya and Watson proposed
# such weighted averages in 1964.
#
# To predict at many points at once, compare all queries with all keys: **queries down, keys
# across**, as everywhere in this course. A column minus a row gives such a table. Indexing with
# `None` adds an axis of length 1:

# %%
asked, keys = torch.tensor([4.25, 5.0]), torch.tensor([2.22, 3.64, 4.78])  # (T_q,), (T_k,)
print(asked[:, None] - keys[None, :])  # (T_q, 1) minus (1, T_k) is (T_q, T_k)

# %% [markdown]
# The exponential of a score is called a **similarity**, and the function that turns a distance into
# a similarity is a **kernel**. A common kernel is the Gaussian, a bell curve of width $h$, the
# **bandwidth**.
#
# ### Exercise 1.2 · `nadaraya_watson`
# ●●○ medium · 10 minutes · 3 points
#
# Graded in three parts: for one query (1), for many queries (1), far from all examples (1).
#
# Predict $y$ for all queries at once: queries `(T_q,)`, keys `(T_k,)` and values `(T_k,)` become
# predictions `(T_q,)`. The weights of query $x_i$ are its Gaussian similarities, divided by their
# sum:
#
# $$w_{ij} = \frac{\exp(s_{ij})}{\sum_{m=1}^{T_k} \exp(s_{im})}, \qquad
# s_{ij} = -\frac{\left(x_i - x^\text{train}_j\right)^2}{2h^2}$$
#
# For which temperature are these the weights of 1.1?
#
# <details><summary>Hint 1 · the idea</summary>
#
# Scores, softmax, matrix product, as in 1.1. The Gaussian's `exp` is already in the
# softmax.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Scores and weights are `(T_q, T_k)`. `(T_q, T_k)` times `(T_k,)` is `(T_q,)`.
# </details>
# <details><summary>Hint 3 · “… a prediction is wrong”</summary>
#
# In Python `a / 2 * h**2` means `(a / 2) * h**2`. Put the denominator in brackets.
# </details>

# %% exercise="nadaraya_watson"
from attention.kernel_regression import nadaraya_watson

# %% check="nadaraya_watson" points=3
check.nadaraya_watson(nadaraya_watson)

# %% [markdown]
# With τ = 2h² these are the weights of 1.1: a small temperature is a narrow kernel.
#
# We know the river's true level, because we made it up. Where will your `nadaraya_watson` miss it,
# with a bandwidth of 0.3 h? Think of the peaks, the gap and the ends.

# %% demo=true
ax = experiments.fit(nadaraya_watson, 0.3)

# %% [markdown]
# *Examples (dots), true level (dashed) and prediction (line).* Peaks come out too low, because most
# of their neighbours lie below them, and valleys too high. The valley in the gap is missed. At the
# left end all neighbours lie to the right, where the river is higher, so the prediction is too
# high; at the right end it is too low.
#
# ### Exercise 1.3 · `break_nadaraya_watson` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate writes 1.2 as in Nadaraya's paper: similarities divided by their sum, without a
# softmax. On all their examples it agrees with yours.

# %% broken="divides_by_the_sum"
from autograder.mistakes.kernel_regression import divides_by_the_sum

# %% [markdown]
# Write a function without arguments that returns an input `(x, x_train, y_train, bandwidth)` for
# which the result is wrong. On paper the two formulas are equal. Look for numbers for which a
# computer's arithmetic makes them differ.
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
# ## Other kernels
# Must it be a bell curve? Any function of the scaled distance $u = (x_i - x^\text{train}_j) / h$
# will do, as long as it is never negative and nowhere larger than at 0. Here are four kernels, all
# of height 1 at $u = 0$. Factors that textbooks put in front, such as 3/4, cancel in the weights.

# %% given="kernel_values"
from attention.kernel_regression import kernel_values

# %% [markdown]
# ### Exercise 1.4 · `attention_weights`
# ●●○ medium · 8 minutes · 2 points
#
# Divide each query's similarities by their sum: `(T_q, T_k)` stays `(T_q, T_k)`. But what if **no**
# key is in reach, as with a narrow boxcar? The sum is then 0: give this query weights of $1/T_k$.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A row of ones prefers no key either, and it can be divided by its sum.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Sums of the rows with their axis kept are `(T_q, 1)`, which lines up with `(T_q, T_k)`, also in
# `masked_fill` and `torch.where`. Leave the tensor that you were given as it is.
# </details>
# <details><summary>Hint 3 · “… gets weights that are not numbers”</summary>
#
# 0 / 0 is NaN. Adding a small number everywhere hides this, but it also changes honest rows whose
# similarities are small.
# </details>

# %% exercise="attention_weights"
from attention.kernel_regression import attention_weights

# %% check="attention_weights" points=2
check.attention_weights(attention_weights)

# %% [markdown]
# A given function puts your pieces together:

# %% given="kernel_regression"
from attention.kernel_regression import kernel_regression

# %% [markdown]
# ### Predict first
# Which costs more: a boxcar in place of the Gaussian, each with its best bandwidth, or a Gaussian
# that is three times too wide? And which kernels will bridge the gap at 0.15 h?

# %%
prediction = None  # "boxcar" or "bandwidth"; None skips this

# %% demo=true
dearer = experiments.kernels(kernel_regression)
compare(prediction, dearer, "costs more")

# %% [markdown]
# *What three kernels (columns) predict for river 3, with a bandwidth of 0.15 h (top) and with the
# one best for the true level (bottom). Dotted: the constant kernel, which predicts the mean. The
# table is of rivers 0 to 2.* The boxcar's line steps whenever an example enters or leaves the box.
# With 0.15 h, the boxcar and Epanechnikov kernels reach no example in the gap and fall back to the
# mean; only the Gaussian, which has no edge, bridges it. With its best bandwidth Epanechnikov does,
# too; the boxcar with 0.55 h reaches none between 4.19 and 4.23 h: hence the spike. But bridging is
# not knowing: all three miss the valley.
#
# The table shows mean squared errors, from the true level. The constant kernel is far behind. Of
# the other three, each with its own best bandwidth, the Gaussian has the smallest error. Yet three
# times as wide, its error is larger than that of the boxcar at its best; a third as wide, in one
# river of three. Here are the weights themselves:

# %% demo=true
axes = experiments.kernel_weights(kernel_regression)

# %% [markdown]
# *Weights of 12 queries (rows) on 40 examples (columns, by the time of the reading; the gap is
# white).* A query attends to examples near its own time. In the gap (rows 3.75 h and 4.25 h) the
# narrow Gaussian gives most of the weight to the nearest example, even if, at 4.25 h, it is half an
# hour away. At 4.25 h the boxcar reaches no example, and gives a pale 1/40 to each.
# Choose kernel, bandwidth and query yourself. How wide must the boxcar be to bridge the gap?

# %% demo=true
from attention.provided.figures import moving

moving.bandwidth()

# %% [markdown]
# ## Three properties of attention
# Kernels, and later dot products, differ in how they make the weights. The rest is the same: the
# weights are not negative, sum to 1, and average the values. They come from queries and keys alone,
# not from places in a list. Lessons 06 (masks of what comes later) and 08 (positions) change this.
#
# **The result lies among the values.** Such an average cannot leave the smallest convex shape
# around the values, their *convex hull*. Here are 400 random queries among 7 values.

# %% demo=true
axes = experiments.contexts(soft_lookup)

# %% [markdown]
# *Contexts, the results of 400 soft lookups (orange), in the convex hull of seven values (blue), at
# two temperatures; the queries are not drawn.* No context leaves the hull, however far a query lies
# from the keys. At the low temperature the contexts gather at values and on lines between two
# values, at the high one near the middle.
#
# **Order does not matter.** Shuffle the examples, each key with its value, and the predictions stay
# the same: *permutation invariance*. Shuffle the queries, and the predictions move with them:
# *equivariance*. So attention alone does not know the order of the words in a sentence; lesson 08
# adds positions for that. Which of these seven ways to predict ignore the order?

# %% given="candidate"
from attention.kernel_regression import candidate

# %% [markdown]
# ### Exercise 1.5 · `ignores_order`
# ●●○ medium · 10 minutes · 2 points
#
# Write the test for `candidate(name, …)`, with queries `(T_q,)` and examples `(T_k,)`: True if
# shuffling the examples changes no prediction and shuffling the queries only shuffles the
# predictions. A sum in another order is rounded differently, so compare with `torch.allclose(…,
# atol=1e-5)`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Predict twice: with everything as it is, and with everything shuffled. `torch.randperm(n)` is a
# random order of 0 to n − 1, and `x[order]` brings x into it. Queries and examples need one each.
# </details>
# <details><summary>Hint 2 · “way A … the test says it does not”</summary>
#
# Has each key kept its value? Have you brought the old predictions into the order of the new ones?
# </details>

# %% exercise="ignores_order"
from attention.kernel_regression import ignores_order

# %% check="ignores_order" points=2
check.ignores_order(ignores_order)

# %% [markdown]
# Read `candidate` again and write down which ways depend on the order. Then ask your test:

# %% demo=true
for name in "ABCDEFG":
    ignores = ignores_order(name, torch.linspace(0.25, 5.75, 12), x_train, y_train)
    print(f"way {name}:", "ignores the order" if ignores else "depends on the order")

# %% [markdown]
# **A** is plain kernel regression. **B** mixes each value with the one before it in the list, **C**
# prefers examples in the middle of the list, **D** those at its end, and **F** mixes each
# prediction with the one before it. **E** sorts, and **G** needs all predictions at once, but
# neither depends on a place in the list.
#
# **Attention is not a fixed linear map.** A linear layer has one matrix, of one size, for all
# inputs. Here the matrix of weights (each panel of the weights above is one) is computed from
# queries and keys, so it changes with the content and fits any number of examples.
#
# ## A bandwidth without errors
# Some bandwidths predict all forty readings without any error. What does such a prediction look
# like *between* two readings? Sketch it, then look.

# %% demo=true
axes = experiments.extremes(nadaraya_watson)

# %% [markdown]
# *Left: bandwidth 0.001 h, a staircase through every example. Right: 100 h, a flat line.* The first
# is nearest-neighbour prediction, the second the uniform average of lesson 00. The best bandwidth
# lies in between, but the error *on the examples themselves* cannot find it: this error is 0 on the
# left, where each example predicts itself, mistakes of the reading included.
#
# ## Choosing the bandwidth
# The fair question about each example is how well the *others* would have predicted it. This is
# *leave-one-out cross-validation*.
#
# ### Exercise 1.6 · `leave_one_out_loss`
# ●●● hard · 12 minutes · 3 points
#
# Graded in three parts: with ordinary bandwidths (1), with a tiny bandwidth (1), its gradient (1).
#
# Leave each example out in turn, predict it from the rest, and average the squared errors, all with
# the Gaussian kernel: examples `(T_k,)` and `(T_k,)` give a scalar. Each example is a query that
# must not attend to itself. A *mask*, the first of many, hides it. A gradient must be able to flow
# through the bandwidth.
#
# <details><summary>Hint 1 · the idea</summary>
#
# To take a key out of a softmax, give it a score whose exponential is 0. The score 0 will not do:
# its exponential is 1.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Scores `(T_k, T_k)`: example *i* as query down, example *j* as key across. The diagonal must go.
# `torch.eye` with `dtype=torch.bool` and the device of the data marks it, and `masked_fill` fills
# what is marked.
# </details>
# <details><summary>Hint 3 · the loss falls to 0 as the bandwidth shrinks</summary>
#
# Then each example still sees itself. Remove it *before* the softmax: afterwards, at a small
# bandwidth, the others have no weight left to scale up.
# </details>

# %% exercise="leave_one_out_loss"
from attention.kernel_regression import leave_one_out_loss

# %% check="leave_one_out_loss" points=3
check.leave_one_out_loss(leave_one_out_loss)

# %% [markdown]
# ## Learning the bandwidth
# You could try a hundred bandwidths. But a Transformer has millions of parameters, and for those
# you need the gradient to say which way to go. Try that here, on a single parameter.
#
# ### Exercise 1.7 · `LearnedBandwidth`
# ●●○ medium · 12 minutes · 3 points
#
# Graded in three parts: the parameter (1), the predictions (1), the gradient (1).
#
# Write a module with one parameter, `log_bandwidth`, a scalar: the natural logarithm of the
# bandwidth. A bandwidth must be positive, and gradient descent may step below 0; but the
# exponential of any number is positive. An `nn.Module` has an `__init__`, which makes the
# parameters, and a `forward`, which computes: here it predicts as in 1.2, from `x` `(T_q,)`,
# `x_train` and `y_train` `(T_k,)`, one line if you call your `nadaraya_watson`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# `nn.Parameter` around a tensor tells the module that this tensor is to be learned. `forward` first
# gets the bandwidth back from its logarithm: which method of a tensor does that?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `torch.tensor(0.5)` has the shape `()`, while `torch.tensor([0.5])` has `(1,)`. A scalar adapts to
# the dtype of the tensors it meets.
# </details>
# <details><summary>Hint 3 · “no gradient reaches log_bandwidth”</summary>
#
# `.item()`, `float(…)`, `math.exp(…)` and `.detach()` make plain numbers, which have no gradient.
# Use the tensor's own methods, also in `nadaraya_watson` if you call it.
# </details>

# %% exercise="LearnedBandwidth"
from attention.kernel_regression import LearnedBandwidth

# %% check="LearnedBandwidth" points=3
check.LearnedBandwidth(LearnedBandwidth)

# %% [markdown]
# Now train it. The optimiser, Adam, moves the parameter against the gradient of the leave-one-out
# loss. Every training in this course has such a loop: compute the loss, set the old gradients to
# zero, compute new ones with `backward`, take a step.

# %% given="learn_bandwidth"
from attention.kernel_regression import learn_bandwidth

# %% [markdown]
# Start from a bandwidth that is far too wide:

# %% demo=true
model, path = learn_bandwidth(1.5, x_train, y_train)
ax = experiments.valley(path, leave_one_out_loss)

# %% [markdown]
# *Leave-one-out loss (line). Training (dots) starts at 1.5 h, overshoots to 0.198 h, and returns.*

# %% demo=true
axes = experiments.before_and_after(LearnedBandwidth(1.5), model)
experiments.in_the_gap(learn_bandwidth)

# %% [markdown]
# *The prediction before training (left) and after it (right).* With the learned bandwidth, the line
# follows the peaks without chasing every dot. And the level at 4.25 h? The model says −0.84 dm, the
# truth is −0.80. That is luck. At 3.9 h, in the same gap, this model misses by 0.4 dm. Those of
# rivers 0 to 2 do the opposite: at 3.9 h they come within 0.1 dm, at 4.25 h they miss by 0.15 to
# 0.42. In the gap, the average passes on the readings at the edges, errors included.
#
# ### Is it the best bandwidth?
# The loss knows only the readings. We also know the true level, and can ask which bandwidth
# predicts *it* best. Take rivers 0 to 2 again, and train on each from 1.5, 0.3 and 0.01 h.
#
# ### Predict first
# Measure the mean squared error from the true level at two bandwidths: the one learned from 1.5 h,
# and the one where this error is smallest. How many times larger is the first error, in the worst
# of the three rivers?
#
# <details><summary>The code that ran</summary>
#
# ```python
# learned = (predict(HOURS, x_train, y_train, bandwidth) - true_level(HOURS)).square().mean()
# factor = learned / curves["from the true level"].min()
# ```
#
# </details>

# %%
prediction = None  # a factor, from 1 upwards; None skips this

# %% demo=true
factor = experiments.three_rivers(nadaraya_watson, leave_one_out_loss, learn_bandwidth)
compare(prediction, factor, "largest of the three factors")

# %% [markdown]
# *Three errors against the bandwidth, for three rivers. Black dots show where training ended from
# three starts (in rivers 1 and 2 all at one place), a hollow dot its error from the true level, a
# star the smallest one. The vertical axis is logarithmic: equal heights are equal factors.* The
# error on the examples leaves the picture on the left, on its way to 0, so it cannot choose a
# bandwidth. The leave-one-out loss has its valley near the bandwidth that is best for the true
# level, but in all three rivers at a narrower one. (In the river of the other figures it is wider:
# 0.23 h instead of 0.14 h.) It is an estimate from forty rough readings.
#
# From 0.01 h, training gets stuck in one of these three rivers, and in 8 of the first 20. With so
# narrow a kernel, nearly every example sees a single neighbour. Only the few that see more tell the
# gradient anything, and it may point the wrong way or into a dip.
#
# ## Limits
# A prediction never leaves the range of the examples' values. Only the bandwidth is learned, so a
# feature that does not matter counts as much as one that does. Steep and flat stretches share one
# bandwidth. Time and memory grow with $T_q \cdot T_k$.
#
# ## Something of your own
# Take data of your own with one $x$ and one $y$, such as the temperature of your town by day, or
# the price of a used car against its age. Twenty points are enough. Learn a bandwidth, and draw the
# fit with `attention.provided.figures.plots.fit`. Does the curve show anything that you did not see
# in the dots? Which single new example changes it most?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# A soft lookup compares a query with all keys, turns the scores into weights by a softmax, and
# averages the values. Gaussian kernel regression is such a lookup among examples. Its bandwidth,
# which sets how sharp the attention is, can be learned, though not perfectly.
#
# **Next** [02 · What fits into one
# vector?](../02_sequence_to_sequence/02_sequence_to_sequence.ipynb) A network must press a whole
# sentence into one vector, and fails when the sentence is long. Lesson 03 then lets it look back,
# with what you have built here.
#
# ## Open questions
# 1. What do you predict for the river at 8, 20 and 1000 hours, and why?
# 2. Give each book a third feature that has nothing to do with its subject,
#    `spread * torch.randn(4)`, and give the query 0 there. How large may `spread` be before the
#    answer at temperature 0.1 is no longer near metre 7.6?

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# 1. With a bandwidth of 0.3 h it is −0.89 at 8 h and −0.88 at 20 h and 1000 h: the reading of the
#    last example. The farther away the query, the more the scores of two keys differ, so the
#    nearest key gets nearly all the weight. You get the value of a neighbour, not a trend.
# 2. Over 20 000 draws, the answer is 7.6 ± 0.3 m (standard deviation) with a spread of 0.1, 7.3 ±
#    1.4 m with 0.3, and 7.1 ± 3.8 m with 1. The real features differ by some tenths, so noise of
#    that size drowns them.
#
# </details>

# %% [markdown]
# ## References
# - E. A. Nadaraya (1964). *On estimating regression.* Theory of Probability and Its Applications
#   9(1), 141–142. [doi:10.1137/1109020](https://doi.org/10.1137/1109020)
# - G. S. Watson (1964). *Smooth regression analysis.* Sankhyā, Series A 26(4), 359–372.
# - To read on: A. Zhang, Z. Lipton, M. Li, A. Smola, *Dive into Deep Learning*, chapter [Attention
#   Mechanisms and Transformers](https://d2l.ai/chapter_attention-mechanisms-and-transformers/)
