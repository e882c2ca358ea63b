# %% [markdown]
# # 06 · Who may look at whom?
#
# Attention looks everywhere: at the padding behind a short sentence, at the word that it should
# predict, at ten thousand positions where a hundred would do. A **mask** says what it may see. It
# is the smallest part of a Transformer and the one that goes wrong most often, because a wrong mask
# raises no error. The numbers are just a little too good.
#
# **After this lesson** you can
# - write **padding, causal, local, Longformer and BigBird** masks, and combine them,
# - apply a mask so that a query with nothing to see gives zeros and finite gradients,
# - write a **leak test** that finds a layer which looks into the future,
# - say why −1e9 in float16, 0 instead of −∞, and masking after the softmax fail.
#
# **Time** 100 minutes · **Points** 18 · **GPU** not needed · **You need** lesson 05

# %%
import math

import torch
from torch.nn import functional as F

from attention.provided import measure, plots
from attention.scaled_dot_product_attention import scaled_dot_product_attention
from autograder import check

# %% [markdown]
# ## What fails without this idea
# Two numbers in words, of 2 and 10 tokens, stand in one batch. The shorter one is filled up with
# padding, all of it the same vector. How much of its attention goes to nothing?

# %%
generator = torch.Generator().manual_seed(0)
x = 0.6 * torch.randn(2, 10, 16, generator=generator)  # (B, T, d_model)
x[0, 2:] = 0.0  # the padding of the first sequence
_, weights = scaled_dot_product_attention(x, x, x, return_weights=True)
for position in range(2):
    wasted = 100 * weights[0, position, 2:].sum().item()
    print(f"token {position} of 'nine hundred' gives the padding {wasted:.0f} % of its weight")

# %% [markdown]
# The more padding, the more is lost, so the result for one sentence depends on the longest sentence
# that happens to stand beside it. In a language model it is worse: a position that sees the next
# word need not learn to predict it. Its training loss is splendid, and it is useless.
#
# ## The idea
# A mask is a table of yes and no for every pair of a query and a key. In this course it is bool,
# and **True means: may attend**. A forbidden score becomes −∞ before the softmax, since exp(−∞) =
# 0.
#
# ![Scores of the words two, hundred, thirty, one on each other. The mask puts minus infinity above
# the diagonal. After the softmax the weights above the diagonal are 0, and each row still sums to
# 1.](figures/causal_mask.svg)
#
# $$\text{weights} = \text{softmax}(s'), \qquad s'_{ij} = \begin{cases} s_{ij} & \text{mask}_{ij}
# \text{ is True} \\ -\infty & \text{otherwise} \end{cases}$$
#
# | mask | shape | the same for all … |
# |---|---|---|
# | causal, local, Longformer, BigBird | `(T, T)` | sequences of the batch |
# | padding | `(B, 1, T)` | queries of a sequence |
# | combined | `(B, T, T)` | — |
#
# `F.scaled_dot_product_attention` reads a mask in the same way. One warning, once:
# **`nn.MultiheadAttention` and the Transformer layers of PyTorch use the opposite**, True = may
# *not* attend. Who mixes them up trains a model that sees only the future and the padding.
#
# By hand, the second row of the drawing:

# %%
scores_by_hand = [0.5, 1.6, 0.2, 0.7]
allowed_by_hand = [True, True, False, False]
masked = [s if ok else -math.inf for s, ok in zip(scores_by_hand, allowed_by_hand, strict=True)]
powers = [math.exp(score) for score in masked]
for score, power in zip(masked, powers, strict=True):
    print(f"score {score:4.1f}   exp {power:.3f}   weight {power / sum(powers):.2f}")

# %% [markdown]
# ## Five masks
# ### Exercise 6.1 · `padding_mask`
# ●○○ easy · 6 minutes · 2 points
#
# From the true lengths of the sequences, make the mask that hides the padding: `(B, 1, T)`. The
# axis of length 1 stands for the queries. (What a padded *query* computes does not matter; nobody
# reads it.)
#
# <details><summary>Hint 1 · the idea</summary>
#
# Key *j* of a sequence is real if *j* is smaller than the sequence's length.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Positions `(T,)` compared with lengths `(B, 1)` give `(B, T)`. Then an axis in the middle.
# </details>
# <details><summary>Hint 3 · “The size of tensor a (5) must match …”</summary>
#
# `(T,)` and `(B,)` do not line up. `lengths[:, None]` is `(B, 1)`.
# </details>

# %% exercise="padding_mask"
from attention.masked_attention import padding_mask

# %% check="padding_mask" points=2
check.padding_mask(padding_mask)

# %% [markdown]
# ### Exercise 6.2 · `causal_mask`
# ●○○ easy · 4 minutes · 1 point
#
# Every position sees itself and what came before it. Off by one in one direction, and it sees the
# answer; in the other, and the first position sees nothing.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Query *i* (row) may see key *j* (column) if *j* ≤ *i*: the lower triangle with its diagonal.
# </details>
# <details><summary>Hint 2 · the functions</summary>
#
# Either compare positions, as a column and as a row, or start from a matrix of True
# (`torch.ones` with `dtype=torch.bool`) and cut its upper part off. `triu` keeps the upper part;
# which one keeps the lower?
# </details>

# %% exercise="causal_mask"
from attention.masked_attention import causal_mask

# %% check="causal_mask" points=1
check.causal_mask(causal_mask)

# %% [markdown]
# ### Exercise 6.3 · `local_mask`
# ●○○ easy · 5 minutes · 1 point
#
# Sometimes the neighbourhood is enough: every position sees itself and `window` neighbours on each
# side.
#
# <details><summary>Hint 1 · the idea</summary>
#
# It depends on the distance |*i* − *j*| only.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Positions as a column `(T, 1)` minus positions as a row `(1, T)` is `(T, T)`.
# </details>

# %% exercise="local_mask"
from attention.masked_attention import local_mask

# %% check="local_mask" points=1
check.local_mask(local_mask)

# %% [markdown]
# ### Exercise 6.4 · `longformer_mask`
# ●●○ medium · 7 minutes · 2 points
#
# With a window only, news travels slowly. The **Longformer** adds a few *global* positions, such as
# the first token or those of a question: they see all positions, and all positions see them.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Start with the window. “Sees all” is a whole row. “Is seen by all” is a whole column.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# A list of positions as an index picks several rows at once: `mask[[0, 5], :]` is `(2, T)`, and can
# be assigned to. (`mask[[0, 5], [0, 5]]` picks two single entries.)
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# mask = window, as in exercise 6.3
# rows of the global positions    = True
# columns of the global positions = True
# ```
# </details>

# %% exercise="longformer_mask"
from attention.masked_attention import longformer_mask

# %% check="longformer_mask" points=2
check.longformer_mask(longformer_mask)

# %% [markdown]
# ### Exercise 6.5 · `bigbird_mask`
# ●●● hard · 15 minutes · 3 points
#
# **BigBird** works with blocks of positions, because hardware reads blocks, and adds *random* ones:
# short cuts through the sequence. A block sees
# - itself and the block on each side,
# - the first and the last block, which are global in both directions,
# - the `n_random` winners of a lottery among the blocks that it does not see yet.
#
# The lottery is given, made from `seed`, so that the pattern is the same in every training step and
# after loading the model tomorrow.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Do everything on the small matrix of blocks, `(n_blocks, n_blocks)`. Widen it to positions at the
# very end.
# </details>
# <details><summary>Hint 2 · the functions</summary>
#
# `topk(n, dim=1).indices` are the columns of the largest numbers of each row.
# `mask.scatter(1, columns, True)` switches these on, and returns a new tensor. `repeat_interleave`
# repeats each row (or column) where it stands.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# sees = window of one block, on blocks
# rows and columns of the first and the last block = True
# take what is already seen out of the lottery: give it a number below all others
# winners = columns of the n_random largest numbers in each row
# switch the winners on
# repeat every row and every column block_size times, in place
# ```
# </details>
# <details><summary>Hint 4 · “the mask is wrong” only for n_random=4</summary>
#
# With few blocks there are fewer than `n_random` left to draw. Drawing a seen one does no harm.
# </details>

# %% exercise="bigbird_mask"
from attention.masked_attention import bigbird_mask

# %% check="bigbird_mask" points=3
check.bigbird_mask(bigbird_mask)

# %% [markdown]
# ### Exercise 6.6 · `combine_masks`
# ●○○ easy · 5 minutes · 1 point
#
# A decoder needs two masks at once: causal, and no padding. A key must be allowed by **all** masks.
# `None` stands for no restriction; with no mask at all the result is `None`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# For bool tensors, `&` is the logical *and*. It broadcasts.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(T, T)` and `(B, 1, T)` become `(B, T, T)`. `&=` cannot do that, since it writes into the first
# one; and it would change the caller's mask.
# </details>

# %% exercise="combine_masks"
from attention.masked_attention import combine_masks

# %% check="combine_masks" points=1
check.combine_masks(combine_masks)

# %% [markdown]
# ### Predict first
# Six masks for 24 positions. Which one has the fewest True entries? In which can news get from any
# position to any other in two steps, and in which does it take more than ten?

# %% demo=true
T = 24
patterns = {
    "padding: 18 real keys": padding_mask(torch.tensor([18]), T)[0].expand(T, T),
    "causal": causal_mask(T),
    "causal and padding": combine_masks(causal_mask(T), padding_mask(torch.tensor([18]), T))[0],
    "local: window 2": local_mask(T, 2),
    "Longformer: window 2, global 0": longformer_mask(T, 2, [0]),
    "BigBird: blocks of 2, 1 random": bigbird_mask(12, 2, n_random=1, seed=0),
}
axes = plots.panels(rows=2, columns=3, width=2.7, height=2.7)
for ax, (name, mask) in zip(axes.flat, patterns.items(), strict=True):
    plots.heatmap(mask.float(), ax, title=name, colorbar=False)
    reach, steps = mask, 1
    while not reach.all() and steps < 24:
        reach, steps = (reach.float() @ mask.float()) > 0, steps + 1
    meets = f"all pairs met after {steps} steps" if reach.all() else "some pairs never meet"
    print(f"{name:<32} {mask.float().mean():4.0%} True   {meets}")

# %% [markdown]
# *Six masks of 24 queries (down) and 24 keys (across), dark where attention is allowed.* The window
# needs a dozen steps (layers, later) from one end to the other. One global position makes it two.
# BigBird's random blocks have no plan, and that is their use: short cuts between any regions.
#
# ### Predict first
# A dense mask has *T*² True entries. How does the number grow for the others? On axes that are both
# logarithmic, *T*² is a line of slope 2.

# %% demo=true
lengths = [64, 128, 256, 512, 1024, 2048]
work = {name: [] for name in ("dense", "causal", "BigBird", "Longformer", "local")}
for T in lengths:
    work["dense"].append(T * T)
    work["causal"].append(causal_mask(T).sum())
    work["BigBird"].append(bigbird_mask(T // 16, 16, n_random=1, seed=0).sum())
    work["Longformer"].append(longformer_mask(T, 16, [0, 1]).sum())
    work["local"].append(local_mask(T, 16).sum())
ax = plots.lines(lengths, work, xlabel="T", ylabel="pairs that are allowed", log=True)
ax.set(yscale="log")
print({name: int(counts[-1]) for name, counts in work.items()}, "at T = 2048")

# %% [markdown]
# *Allowed pairs against length, both axes logarithmic: dense and causal have slope 2, the three
# sparse patterns, in the end, slope 1.* Causal is half of dense. The sparse ones grow with *T*
# alone. But mind: a mask forbids, it does not save. As long as the whole matrix is computed and
# then masked, the work is *T*² for all of them. The last exercise does better.

# %% [markdown]
# ## A query with nothing to see
# Combine a causal mask with padding at the *front* (as when several texts of unequal length are
# continued together), and the first query may see nothing at all. Its row is −∞ everywhere, softmax
# divides 0 by 0, and one `NaN` spoils the whole model in the next step. What should come out is a
# choice; ours, and that of PyTorch's kernel, is **zeros**, with gradients of zero.
#
# ### Exercise 6.7 · `masked_attention`
# ●●○ medium · 15 minutes · 3 points
#
# Write attention under a mask. The scores are given. Rows with at least one key are as in lesson
# 05; a row without gives weights 0 and context 0, and no gradient is ever `NaN`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Never let the NaN arise. A row that is empty needs some finite scores to go through the softmax;
# its weights can be erased afterwards.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `mask.any(dim=-1, keepdim=True)` is True for queries that have something to see: `(..., T_q, 1)`.
# It broadcasts against the mask.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# if there is a mask:
#     hidden  = not allowed, in a row where something is allowed
#     weights = softmax over the keys, with -inf where hidden
#     erase the weights of all that is not allowed
# else: the plain softmax
# context = weights times v
# ```
# </details>
# <details><summary>Hint 4 · “the gradient of q is not finite”</summary>
#
# `nan_to_num` repairs the value. On the way back the gradient still meets NaN · 0, which is NaN.
# (It ends where `masked_fill` had replaced the scores, but not where −∞ was added to them.)
# </details>

# %% exercise="masked_attention"
from attention.masked_attention import masked_attention

# %% check="masked_attention" points=3
check.masked_attention(masked_attention)

# %% [markdown]
# PyTorch's kernel makes the same choice, up to rounding:

# %% demo=true
x = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(3))
mask = combine_masks(causal_mask(6), padding_mask(torch.tensor([6, 0]), 6))  # (B, T, T)
context = masked_attention(x, x, x, mask)
gap = (context - F.scaled_dot_product_attention(x, x, x, attn_mask=mask)).abs().max().item()
print("largest difference below 1e-6:", gap < 1e-6)
print("context of the sequence of length 0:", context[1].abs().max().item())

# %% [markdown]
# ### Break it
# Four positions, causal, the first of them padding. On the left the right result, then
# three popular ways to get it wrong.


# %% demo=true
def filled_with(number, scores, mask):
    return torch.where(mask, scores, number).softmax(dim=1)


generator = torch.Generator().manual_seed(4)
x = torch.randn(4, 8, generator=generator)
scores = x @ x.T / 8**0.5
front = torch.tensor([False, True, True, True])  # position 0 is padding
mask = combine_masks(causal_mask(4), front)
attempts = {
    "as it should be": masked_attention(x, x, x, mask, return_weights=True)[1],
    "0 instead of −∞": filled_with(0.0, scores, mask),
    "mask after softmax": scores.softmax(dim=1) * mask,
    "−1e9 instead of −∞": filled_with(-1e9, scores, mask),
}
axes = plots.panels(columns=4, width=2.4, height=2.5)
for ax, (name, weights) in zip(axes, attempts.items(), strict=True):
    plots.heatmap(weights, ax, title=name, numbers=True, colorbar=False)
    forbidden = weights.masked_fill(mask, 0.0).sum().item()
    rows = [round(total, 2) for total in weights.sum(dim=1).tolist()]
    print(f"{name:<20} weight on forbidden keys {forbidden:.2f}   sums of the rows {rows}")

# %% [markdown]
# *Weights of four queries under a causal mask whose first key is padding. Only the first panel is
# zero wherever it must be, with rows that sum to 1 or to 0.*
# - **0 instead of −∞**: exp(0) = 1, so forbidden keys take part like any key with score 0.
# - **mask after softmax**: nothing forbidden is read, but the rows no longer sum to 1. What is
#   missing depends on the forbidden scores: the future has leaked through the denominator.
# - **−1e9**: fine, except for the row with nothing to see. All its scores are equal, so it looks at
#   everything evenly, also at the padding and the future.
#
# And in **float16**, as used on GPUs, the number −1e9 does not exist:

# %% demo=true
half = scores.half()
print("-1e9 in float16 is", torch.tensor(-1e9).half().item(), "and the lowest number is -65504")
try:
    half.masked_fill(~mask, -1e9)
except RuntimeError as error:
    print("masked_fill:", error)
penalty = torch.where(mask, 0, 1).half() * torch.tensor(-1e9).half()  # a popular trick: 0 or -1e9
print("added as a penalty:", (half + penalty)[1].tolist())

# %% [markdown]
# 0 · (−∞) is NaN: the trick that multiplies a 0/1 mask by −1e9 destroys also what is allowed. A
# bool mask and −∞ say what is meant at every precision.

# %% [markdown]
# ## Is there a leak?
# Reading code is not enough; a shifted index is easily overlooked. But a leak can be *tested*, for
# any layer, without knowing how it works: **change the future, and the past must not change.**
#
# Here are seven layers which all claim to be causal:

# %% given="suspect"
from attention.masked_attention import suspect

# %% demo=true
x = torch.randn(8, 4, generator=torch.Generator().manual_seed(8))
for name in "ABCDEFG":
    first = suspect(name, x)[0].tolist()
    print(f"layer {name}: context of position 0", [round(entry, 2) for entry in first])

# %% [markdown]
# The contexts of position 0 differ, but which of them know what comes later?
#
# ### Exercise 6.8 · `leaks`
# ●●○ medium · 12 minutes · 3 points
#
# Write the test. Run the layer on `x`, and on a copy whose positions after `t` are others. Does any
# output at or before `t` differ?
#
# <details><summary>Hint 1 · the idea</summary>
#
# Everything up to and including `t` stays the same in the input. Then everything up to and
# including `t` must stay the same in the output.
# </details>
# <details><summary>Hint 2 · what to change it to</summary>
#
# Into something that is certainly different: zeros are no change if there were zeros before. Add
# something, and not the same to all features.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# other = copy of x, with something added to all positions after t
# compare the outputs for x and for other, positions 0 … t, with torch.allclose
# return True if they are not close
# ```
# </details>
# <details><summary>Hint 4 · “layer A … is accused”</summary>
#
# The future begins at `t + 1`, in the input as in the output: `x[: t + 1]` ends with position `t`.
# </details>

# %% exercise="leaks"
from attention.masked_attention import leaks

# %% check="leaks" points=3
check.leaks(leaks)

# %% [markdown]
# ### Predict first
# Read the code of `suspect` once more and write down who leaks. Then ask your test.

# %% demo=true
found = {name: [t for t in range(8) if leaks(name, x, t)] for name in "ABCDEFG"}
for name, positions in found.items():
    print(f"layer {name}:", f"looks ahead of {positions}" if positions else "causal")

# %% [markdown]
# Five of seven leak. **B** is shifted by one. **C** masks after the softmax, and the denominator
# tells. **D** subtracts the mean over all positions: a mask in the right place does not help if
# something else mixes the times. **F** has a global position, good in an encoder, fatal in a
# decoder. **G** fills with 0. **E**, with −1e9, happens to be fine here, since no row is empty. You
# will run this test on whole models from lesson 10 on.

# %% [markdown]
# ## Without the matrix ★
# ### Exercise 6.9 · `sliding_window_attention` ★
# ●●● hard · 25 minutes · 2 points
#
# For a local window of *w* neighbours on each side, only 2*w* + 1 scores a query are needed.
# Compute attention with a local mask without ever making a `(T, T)` tensor, neither of scores nor
# of bools. The check calls it with a sequence of half a million.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Go over the offsets −*w* … *w*, not over the positions: shift the keys by the offset, and all
# queries meet their neighbour at that distance in one multiplication.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Pad keys and values by *w* rows on both ends: `(..., T + 2w, d)`. Rows `c` to `c + T` of it are
# the neighbours at offset *c* − *w*. One offset gives `(..., T)` scores; stacked,
# `(..., T, 2w + 1)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# pad k and v with window rows of zeros at both ends of the axis of positions
# for each column c:  scores[..., c] = sum over features of q · (rows c … c + T of k)
# divide by the root of d_k
# put -inf where row i, column c lies outside of the sequence
# weights = softmax over the columns
# context = sum over c of weights[..., c] times (rows c … c + T of v)
# ```
# </details>
# <details><summary>Hint 4 · how to pad</summary>
#
# `F.pad(k, (0, 0, a, b))` leaves the last axis alone and adds `a` rows before and `b` rows after on
# the last but one. A padded row has score 0, not −∞: it must be hidden.
# </details>

# %% exercise="sliding_window_attention"
from attention.masked_attention import sliding_window_attention

# %% check="sliding_window_attention" points=2
check.sliding_window_attention(sliding_window_attention)


# %% demo=true
lengths = [256, 512, 1024, 2048, 4096]
clock = {"dense, then masked": [], "sliding window": []}
threads = torch.get_num_threads()
torch.set_num_threads(1)  # one core: the steadiest clock
for T in lengths:
    x = torch.randn(T, 32)
    runs = {
        "dense, then masked": lambda x=x, T=T: masked_attention(x, x, x, local_mask(T, 8)),
        "sliding window": lambda x=x: sliding_window_attention(x, x, x, 8),
    }
    for name, run in runs.items():
        clock[name].append(measure.milliseconds(run, repeats=4))
torch.set_num_threads(threads)

# %% demo=true
ax = plots.lines(lengths, clock, xlabel="T", ylabel="milliseconds", log=True)
ax.set(yscale="log")
ax.set_xticks(lengths, lengths)
ax.minorticks_off()
for T in (4096, 1_000_000):
    print(f"T {T:9,d}   scores: dense {T * T * 4 / 2**20:12,.0f} MiB", end="   ")
    print(f"window of 8 {T * 17 * 4 / 2**20:6.1f} MiB")

# %% [markdown]
# *Time against length with a window of 8 on each side, both axes logarithmic, on the machine that
# built this notebook.* With twice the length the dense way takes four times as long, or more where
# its tables outgrow the caches; the window, once overheads no longer count, about twice. In memory
# it is the difference between possible and impossible.
#
# ## Summary
# A mask is a bool table, True where a query may see a key; forbidden scores become −∞ before the
# softmax, and a row with nothing to see gives zeros. Padding, causal and sparse patterns are
# combined with *and*. That a layer does not look ahead is shown by changing the future, and a
# sparse pattern saves work only if the matrix is never made.
#
# **Next** [07 · Why several at once?](../07_multi_head_attention/07_multi_head_attention.ipynb) One
# head makes one average. A Transformer makes several.
#
# **References**
# - A. Vaswani et al. (2017). *Attention is all you need*, section 3.2.3.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - I. Beltagy, M. Peters, A. Cohan (2020). *Longformer: the long-document Transformer.*
#   [arXiv:2004.05150](https://arxiv.org/abs/2004.05150)
# - M. Zaheer et al. (2020). *Big Bird: Transformers for longer sequences.*
#   [arXiv:2007.14062](https://arxiv.org/abs/2007.14062)
# - L. Weng (2023). *The Transformer family, version 2.0.*
#   [lilianweng.github.io](https://lilianweng.github.io/posts/2023-01-27-the-transformer-family-v2/)
