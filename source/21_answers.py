# %% [markdown]
# # 21 · What makes it answer?
#
# In lesson 20 a published model answered in your layers. Its 134.5 million numbers came out of a
# file of 98 megabytes, and it was trained to continue texts, not to answer. In this lesson you find
# out how the numbers fit, why an answer comes, how to teach the model something new on a laptop,
# and how it writes faster and longer.
#
# **After this lesson** you can
# - read weights of **4 bits**, and say what they cost,
# - turn a question into a text whose continuation is the answer,
# - teach a model with **LoRA**, which trains 2 % as many numbers as it has,
# - write several tokens in one call with a **draft**, and show that the distribution stays the same,
# - say why the first token must stay in the cache (**attention sinks**),
# - read texts longer than those of the training, with another **base**.
#
# **Time** 95 minutes · **Points** 14 · **GPU** not needed · **You need** lessons 08, 13, 15 and 20

# %%
import copy

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided import demand
from attention.provided.data.tokens import PAD
from autograder import check

# %% [markdown]
# ## 98 megabytes
# Four bytes for each of 134.5 million float32 numbers make 538 MB. The file has 98 MB, 5.9 bits a
# number. How?
#
# Take 32 neighbouring weights of a row: a **block**. Between the smallest and the largest of them
# lie 16 evenly spaced values, both ends included. Each weight is rounded to the nearest one, and
# only its number from 0 to 15 is stored, its **code**, which takes 4 bits. Whoever reads the block
# needs two more numbers: the smallest value, and the **scale**, the distance from one value to the
# next:
#
# $$w = \text{scale} \cdot \text{code} + \text{smallest}$$
#
# The format is called Q4_1. A block takes 2 + 2 + 16 = 20 bytes, 5 bits a number. The table of the
# embedding is stored with 8 bits, and the norms in float32.
#
# ### Exercise 21.1 · `unpack_q4`
# ●●○ medium · 12 minutes · 2 points
#
# Turn blocks of 20 bytes into blocks of 32 numbers.
#
# | bytes | hold |
# |---|---|
# | 0 and 1 | the scale, a float16 |
# | 2 and 3 | the smallest value, a float16 |
# | 4 to 19 | the 32 codes, two in each byte |
#
# The low four bits of the first of these 16 bytes are code 0, and its high four bits are code 16.
# The next byte holds the codes 1 and 17, and so on to the codes 15 and 31. The result is float32.
#
# <details><summary>Hint 1 · two bytes as a float16</summary>
#
# `bytes.view(torch.float16)` reads each pair of bytes along the last axis as one number. It needs
# bytes that lie together in memory: `clone()` a slice first.
# </details>
# <details><summary>Hint 2 · half a byte</summary>
#
# `byte & 15` keeps the low four bits, and `byte >> 4` moves the high four down. With 0x21 in the
# byte, that is 1 and 2.
# </details>
# <details><summary>Hint 3 · the shapes</summary>
#
# Scale and smallest value are (n, 1), the low and the high codes (n, 16) each. One behind the other
# they are (n, 32).
# </details>

# %% exercise="unpack_q4"
from attention.answers import unpack_q4

# %% check="unpack_q4" points=2
check.unpack_q4(unpack_q4)

# %% [markdown]
# ### Exercise 21.2 · `quantize`
# ●●○ medium · 12 minutes · 2 points
#
# Now the other direction, for any number of bits. Cut each row of a matrix into blocks, and replace
# each number by the nearest of the 2^bits values that are evenly spaced from the smallest to the
# largest of its block, both ends included. Return the rounded numbers themselves, not their codes.
#
# A block of equal numbers stays as it is. Its scale is 0, so take care not to divide by it.
#
# <details><summary>Hint 1 · how many steps</summary>
#
# Between 4 values there are 3 steps. With b bits, how long is one?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `weight.unflatten(1, (-1, block))` is (n_out, n_in / block, block). `amin` and `amax` along the
# last axis, with `keepdim=True`, are (n_out, n_in / block, 1).
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# scale = (largest − smallest) / number of steps
# code = (number − smallest) / scale, rounded      (scale 0: divide by 1)
# return smallest + scale · code, in the shape of the matrix
# ```
# </details>

# %% exercise="quantize"
from attention.answers import quantize

# %% check="quantize" points=2
check.quantize(quantize)

# %% [markdown]
# ## A text that an answer continues
#
# ## Taught by its answers alone
#
# ### Exercise 21.3 · `answer_loss`
# ●●○ medium · 10 minutes · 2 points
#
# A row of `tokens` holds a question, the answer behind it, and PAD up to the end. `scores[:, t]`
# says what follows token t, as in lesson 15. Take the cross-entropy of the answers alone: the mean
# over all tokens of all answers. The question, which is `asked` tokens long, is read and never
# guessed; PAD does not count either.
#
# <details><summary>Hint 1 · one place further</summary>
#
# The score of the first token of the answer stands at the last token of the question.
# </details>
# <details><summary>Hint 2 · the tools</summary>
#
# `F.cross_entropy(..., reduction="none")` gives one loss for each token; it wants the classes on
# axis 1. A mask (B, T − 1) picks those of the answers.
# </details>

# %% exercise="answer_loss"
from attention.answers import answer_loss

# %% check="answer_loss" points=2
check.answer_loss(answer_loss)

# %% [markdown]
# ### Exercise 21.4 · `LowRank`
# ●●○ medium · 18 minutes · 3 points
#
# Graded in three parts: nothing changes at first (1), the update (1), merged (1).
#
# - **Nothing changes at first.** The layer holds `linear`, whose weight and bias no longer learn, and
#   two matrices that do: `A`, with `rank` rows of d_in random numbers, and `B`, (d_out, rank), all
#   zeros. So a new LowRank computes what `linear` computes.
# - **The update.** What `linear` gives, plus `scale` · B A x.
# - **Merged.** `merged()` returns a new nn.Linear with the weight W + scale · B A and the same bias,
#   if there is one. The layer itself stays as it is.
#
# <details><summary>Hint 1 · numbers that do not learn</summary>
#
# `linear.requires_grad_(False)` freezes all parameters of a module.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# x is (..., d_in), `x @ self.A.T` (..., rank), and that times `self.B.T` is (..., d_out).
# </details>
# <details><summary>Hint 3 · a new layer</summary>
#
# `copy.deepcopy(self.linear)` is a layer of its own with the same weight and bias.
# </details>

# %% exercise="LowRank"
from attention.answers import LowRank

# %% check="LowRank" points=3
check.LowRank(LowRank)

# %% [markdown]
# ## Several tokens in one call
#
# ### Exercise 21.5 · `accept`
# ●●● hard · 18 minutes · 3 points
#
# Graded in three parts: how many are kept (1), after a rejection (1), after a whole draft (1).
#
# - **How many are kept.** The model has read a draft of k tokens in one call. Row i of `p` holds its
#   probabilities at place i of the draft, row i of `q` those from which the draft's token i was
#   drawn. Token x at place i is kept if noise[i] < p[i, x] / q[i, x]. At the first token that is not
#   kept the draft ends.
# - **After a rejection.** The next token is drawn from what p[i] has more than q[i]: subtract, set
#   what is negative to 0, divide by the sum. Return these probabilities.
# - **After a whole draft.** If all tokens are kept, the last row of `p` says what comes after them.
#
# <details><summary>Hint 1 · the loop</summary>
#
# Go through the tokens of the draft one by one, and return at the first that is not kept.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
#
# ```
# for each place i of the draft, with its token x:
#     if noise[i] is not below p[i, x] / q[i, x]:
#         return i, and the part of p[i] above q[i], divided by its sum
# return k, and the last row of p
# ```
# </details>

# %% exercise="accept"
from attention.answers import accept

# %% check="accept" points=3
check.accept(accept)

# %% [markdown]
# ## The first token
#
# ### Exercise 21.6 · `keep_sinks`
# ●○○ easy · 8 minutes · 1 point
#
# Shorten a cache: of its P positions, the first `n_first` and the last `window` stay, in their
# order, in the keys and the values of each layer. Where the two overlap, a position stays once.
#
# <details><summary>Hint 1 · which positions</summary>
#
# Number them from 0 to P − 1. Which numbers are kept? A mask (P,) can index the third axis.
# </details>

# %% exercise="keep_sinks"
from attention.answers import keep_sinks

# %% check="keep_sinks" points=1
check.keep_sinks(keep_sinks)

# %% [markdown]
# ## Longer than in training
#
# ### Exercise 21.7 · `stretched_base`
# ●●○ medium · 6 minutes · 1 point
#
# Pair i of a head's features turns by position / base^(2i / d_head), where i runs from 0 to
# d_head / 2 − 1. Find the base with which the slowest pair turns `factor` times as slowly as before.
#
# <details><summary>Hint 1 · the slowest pair</summary>
#
# It is the last, with 2i = d_head − 2. Write down its speed with the old base and with the new one.
# </details>
# <details><summary>Hint 2 · the equation</summary>
#
# new^((d_head − 2) / d_head) = factor · base^((d_head − 2) / d_head). Solve it for `new`.
# </details>

# %% exercise="stretched_base"
from attention.answers import stretched_base

# %% check="stretched_base" points=1
check.stretched_base(stretched_base)

# %% [markdown]
# ## Summary
#
# ## References
