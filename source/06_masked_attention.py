# %% [markdown]
# # 06 · Who may look at whom?
#
# Attention looks everywhere: at the padding after a short sentence, at the word that it should
# predict, at ten thousand positions where a hundred would do. A **mask** says what it may see. It
# is a small part of a Transformer, and easy to get wrong, because a wrong mask raises no error. The
# numbers are just a little too good.
#
# **After this lesson** you can
# - write **padding, causal and local** masks, and combine them (★ also Longformer and BigBird),
# - apply a mask so that a query with nothing to see gives zeros and finite gradients,
# - write a **leak test** that finds a layer which looks into the future, and say what a leaking
#   model is worth,
# - say why −1e9 in float16, 0 instead of −∞, and masking after the softmax fail.
#
# **Time** 75 minutes, ★ 50 more · **Points** 19 · **GPU** not needed · **You need** lesson 05

# %%
import math

import torch
from torch.nn import functional as F

from attention.experiments import recorded
from attention.experiments.masked_attention import least_loss, train_speller
from attention.provided import demand
from attention.provided.figures import plots, sliders
from attention.provided.measuring import timing
from attention.provided.predictions import compare
from attention.provided.training_steps import fewer
from attention.scaled_dot_product_attention import scaled_dot_product_attention
from autograder import check

# %% [markdown]
# ## What fails without this idea
# Two numbers in words, of 2 and 10 tokens, stand in one batch. The shorter one is filled up with
# padding, all of it the same vector. How much of its attention goes to nothing?

# %%
for T in (2, 4, 10, 20):
    wasted = []
    for seed in (0, 1, 2):
        x = torch.zeros(1, T, 16)  # (B, T, d_model)
        x[0, :2] = 0.6 * torch.randn(2, 16, generator=torch.Generator().manual_seed(seed))
        _, weights = scaled_dot_product_attention(x, x, x, return_weights=True)
        wasted.append(round(100 * weights[0, :2, 2:].sum(dim=1).mean().item()))
    print(f"'nine hundred' padded to {T:2d}: % of its weight on padding, seeds 0 to 2: {wasted}")

# %% [markdown]
# The more padding, the more is lost, so the result for one sentence depends on the longest sentence
# that happens to stand beside it. In a language model it is worse: a position that sees the next
# letter need not learn to predict it. You will train such a model below.
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
# | causal, local | `(T, T)` | sequences of the batch |
# | padding | `(B, 1, T)` | queries of a sequence |
# | combined | `(B, T, T)` | — |
#
# `F.scaled_dot_product_attention` reads a mask in the same way. One warning, once:
# **`nn.MultiheadAttention` and the Transformer layers of PyTorch use the opposite**, True = may
# *not* attend. Mix them up, and the model sees only the future and the padding.
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
# ## Who may look at whom
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
# <details><summary>Hint 3 · “RuntimeError: The size of tensor a (5) must match …”</summary>
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
# Either compare positions, as a column and as a row, or start from a matrix of True (`torch.ones`
# with `dtype=torch.bool`, `device=device`) and cut its upper part off. `triu` keeps the upper part;
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
# ### Exercise 6.4 · `combine_masks`
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
# Four masks for 24 positions. If one layer of attention follows another, information can travel in
# several steps: after how many has it come from every position to every other?


# %% demo=true
def steps_to_meet(mask):
    """Count the layers until every position can depend on every other; None if it never does."""
    reach = mask
    for steps in range(1, len(mask) + 1):
        if reach.all():
            return steps
        reach = (reach.float() @ mask.float()) > 0
    return None


def draw_masks(masks, width=2.5):
    """Draw masks side by side, and print how much each allows."""
    axes = plots.panels(columns=len(masks), width=width, height=width)
    for ax, (name, mask) in zip(getattr(axes, "flat", [axes]), masks.items(), strict=True):
        plots.heatmap(mask.float(), ax, title=name, colorbar=False)
        print(f"{name:<32} {mask.float().mean():4.0%} True   all meet after: {steps_to_meet(mask)}")


T, padding = 24, padding_mask(torch.tensor([18]), 24)
draw_masks(
    {
        "padding: 18 real keys": padding[0].expand(T, T),
        "causal": causal_mask(T),
        "causal and padding": combine_masks(causal_mask(T), padding)[0],
        "local: window 2": local_mask(T, 2),
    }
)

# %% [markdown]
# *Four masks of 24 queries (down) and 24 keys (across), dark where attention is allowed.* No
# position ever receives information from the padding, and under a causal mask none from its future.
# A window of 2 needs a dozen steps from one end to the other. Move the window:

# %% demo=true
sliders.slider(
    lambda window: draw_masks({f"window {round(window)}": local_mask(T, round(window))}),
    window=(0, 23),
)

# %% [markdown]
# ## A query with nothing to see
# Combine a causal mask with padding at the *front* (as when several texts of unequal length are
# continued together), and the first query may see nothing at all. Its row is −∞ everywhere, softmax
# divides 0 by 0, and one `NaN` spoils the whole model in the next step. What should come out is a
# choice; ours, and that of PyTorch's fused attention, is **zeros**, with gradients of zero.
#
# ### Exercise 6.5 · `masked_attention`
# ●●○ medium · 15 minutes · 3 points
#
# In stages, each earned by itself: with a key for every query (1), with a query that sees nothing
# (1), its gradients (1).
#
# Write attention under a mask. The scores are given. Rows with at least one key are as in lesson
# 05; a row without gives weights 0 and context 0, and no gradient is ever `NaN`. Scores of ±1000
# are fine.
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
# <details><summary>Hint 3 · a smaller step</summary>
#
# First the mask of what is filled with −∞: all that is forbidden, but nothing in a row without any
# True. Then a softmax. Which rows are now wrong, and what does `masked_fill` do to their weights?
# </details>
# <details><summary>Hint 4 · “the gradient of q is not finite”</summary>
#
# `nan_to_num` repairs the value. In the backward pass the gradient still meets NaN · 0, which is
# NaN. (It ends where `masked_fill` had replaced the scores, but not where −∞ was added to them.)
# </details>

# %% exercise="masked_attention"
from attention.masked_attention import masked_attention

# %% check="masked_attention" points=3
check.masked_attention(masked_attention)

# %% [markdown]
# PyTorch makes the same choice, up to rounding:

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
# 0 · (−∞) is NaN: the trick that multiplies a 0/1 mask by −1e9 destroys what is allowed, too. A
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
# ### Exercise 6.6 · `leaks`
# ●●○ medium · 12 minutes · 3 points
#
# In stages, each earned by itself: where a leak shows at `t` (1), where it shows only before `t`
# (1), where the future is all zeros or all alike (1).
#
# Write the test. Run the layer on `x`, and on a copy whose positions after `t` hold other vectors
# of a like size. Does any output at or before `t` differ?
#
# <details><summary>Hint 1 · the idea</summary>
#
# Everything up to and including `t` stays the same in the input. Then everything up to and
# including `t` must stay the same in the output.
# </details>
# <details><summary>Hint 2 · what to change it to</summary>
#
# Into something that is certainly different, whatever `x` was. Not by the same number for all
# features: a layer may look at differences only. And not by much: a key whose score falls to
# −1000 gets the weight 0, and the leak does not show.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# By hand first: make `other` for `t` = 3 and run layer A on it and on `x`. Which rows of the two
# results must be equal, and does `torch.allclose` say so? Then the other layers.
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
#
# ### Exercise 6.7 · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate's test finds the five leaks above, like yours. On some sequences it misses one.

# %% broken="silences_the_future"
from autograder.mistakes.masked_attention import silences_the_future

# %% [markdown]
# Write a function without arguments that returns an input `(name, x, t)` for which this test gives
# the wrong verdict.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The test changes the future into something else, it hopes. For which `x` is nothing changed?
# </details>
# <details><summary>Hint 2 · “here … is right: … gives the same”</summary>
#
# Is there a leak to be missed? It takes a layer that leaks, and a future after `t`.
# </details>

# %% exercise="break_leaks"
from attention.masked_attention import break_leaks

# %% check="break_leaks" points=1
check.break_leaks(break_leaks)

# %% [markdown]
# ## What a leak is worth
# Now train with one. A small model spells German numbers letter by letter: embedded letters, one
# head of attention, two layers after it. The loss is the cross-entropy of the next letter. Then the
# model **writes** 300 words of its own, each letter drawn from its predictions. When it writes,
# there is no next letter that it could look at.
#
# ### Predict first
# One model has the causal mask. In the other, each position also sees the **next** one, and so the
# letter that it must predict. Its loss will be lower. Which share of its 300 words will be German
# numbers?

# %%
prediction = None  # a number from 0 to 1; None skips this


# %% demo=true
def with_mask(may_attend):
    return lambda q, k, v: masked_attention(q, k, v, may_attend(q.shape[-2]))


def one_ahead(T):
    return torch.ones(T, T, dtype=torch.bool).tril(diagonal=1)


threads = torch.get_num_threads()
torch.set_num_threads(1)  # such small matrices are faster on one core
curves, reports = {}, {}
for name, may_attend in (("causal", causal_mask), ("sees one ahead", one_ahead)):
    report = train_speller(with_mask(may_attend), seed=0, steps=fewer(300, most=10))
    curves[name], reports[name] = report.losses, report
    end = sum(report.losses[-10:]) / 10
    print(f"{name:<15} loss {end:.3f}   German numbers {report.known:.2f}   {report.wrote[:3]}")
torch.set_num_threads(threads)
ax = plots.lines(range(len(curves["causal"])), curves, xlabel="step", ylabel="loss per letter")
line = ax.axhline(least_loss(), color=plots.GREY, linestyle="--", linewidth=1.2)
print("the least loss that is possible without a leak:", round(least_loss(), 3))
compare(prediction, reports["sees one ahead"].known, "share of German numbers")

# %% [markdown]
# *Loss against training step: the leaking model's falls to 0, the causal one's stays above the
# dashed line.* Nobody can honestly come below that line: there are many words to choose from, all
# equally likely, and the logarithm of their number is shared among their letters. A loss below it
# is a sign of a leak. The same for two leaks that are harder to see, **C** and **G** of the
# suspects:

# %% demo=true
rows = recorded.read("masked_attention", "what a leak is worth")
ax = plots.panels(width=5.2, height=3.0)
names = ("causal", "mask after softmax", "0 instead of −∞", "sees one ahead")
for name, marker in zip(names, "os^D", strict=True):
    mine = [row for row in rows if row["mask"] == name]
    ax.plot([r["loss"] for r in mine], [r["known"] for r in mine], marker, label=name, alpha=0.8)
    print(f"{name:<20}", [(round(row["loss"], 3), round(row["known"], 2)) for row in mine])
ax.set(xlabel="training loss per letter", ylabel="share of German numbers", ylim=(-0.04, 1.04))
legend = plots.legend(ax, fontsize=8)

# %% [markdown]
# *Share of German numbers among 300 written words against the training loss, one dot for each of
# three seeds (recorded; 300 steps).* Every leak lowers the loss and ruins the model. Even the
# denominator of a softmax is enough: training finds it.
#
# ## Limits
# A mask says who *may* be looked at, not who is. It hides keys, and nothing else: what mixes
# positions outside of the attention, such as a mean over time, it cannot stop. It saves no work by
# itself, because forbidden scores are computed and thrown away. And the leak test is an experiment:
# it finds leaks on the sequences that you try, and proves nothing for others.
#
# ## Summary
# A mask is a bool table, True where a query may see a key; forbidden scores become −∞ before the
# softmax, and a row with nothing to see gives zeros. Masks are combined with *and*. A leak lowers
# the training loss and ruins what the model writes; that a layer does not look ahead is tested by
# changing the future.
#
# **Next** [07 · Why several at once?](../07_multi_head_attention/07_multi_head_attention.ipynb) One
# head makes one average. A Transformer makes several.
#
# ## Open questions
# 1. Train the speller under a causal *window*:
#    `with_mask(lambda T: causal_mask(T) & local_mask(T, w))`. How many letters must it see?
# 2. Let every position see all letters but the one that it must predict: `with_mask(lambda T:
#    ~torch.ones(T, T, dtype=torch.bool).triu(1).tril(1))`. Is this a leak? What happens to the loss
#    and to the words, and what could such a model be good for?

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# Both are recorded, for seeds 0 to 2, in `data/evidence/masked_attention.json`.
# 1. Two letters before its own are enough, here: with *w* = 1 the loss is 0.36 and 40 to 54 % of
#    the words are numbers, with *w* = 2 it is 0.32 to 0.33 and 74 to 87 %, with *w* = 16 no better.
#    The embedded positions tell the rest. (What one head and 300 steps do not use may still be of
#    use.)
# 2. It is one for writing: the loss is 0.03 to 0.08, and 0 to 23 % of the words are numbers. A
#    letter between known letters is easy, but when the model writes, the letters after it do not
#    exist. It can fill gaps in a text that is there. Models that read are trained so (lesson 16).
#
# </details>

# %% [markdown]
# ## ★ Sparse patterns
# ### Exercise 6.8 · `longformer_mask` ★
# ●○○ easy · 5 minutes · 2 points
#
# With a window only, information travels slowly. The **Longformer** adds a few *global* positions,
# such as the first token or those of a question: they see all positions, and all positions see
# them. The window is given.
#
# <details><summary>Hint 1 · the idea</summary>
#
# “Sees all” is a whole row. “Is seen by all” is a whole column.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# A list of positions as an index picks several rows at once: `mask[[0, 5], :]` is `(2, T)`, and can
# be assigned to. (`mask[[0, 5], [0, 5]]` picks two single entries.)
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# With a single global position *g*: which row of the mask becomes True, and which column? Now for a
# list of them.
# </details>

# %% exercise="longformer_mask"
from attention.masked_attention import longformer_mask

# %% check="longformer_mask" points=2
check.longformer_mask(longformer_mask)

# %% [markdown]
# ### Exercise 6.9 · `bigbird_mask` ★
# ●●● hard · 15 minutes · 3 points
#
# In stages, each earned by itself: neighbours and global blocks (1), the winners of the lottery
# (1), blocks of several positions (1).
#
# **BigBird** works with blocks of positions, because hardware reads blocks, and adds *random* ones:
# short cuts through the sequence. A block sees
# - itself and the block on each side,
# - the first and the last block, which are global in both directions,
# - the `n_random` winners of a lottery among the blocks that it does not see yet.
#
# `n_random` may be 0, and a block a single position.
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
# <details><summary>Hint 3 · a smaller step</summary>
#
# Three questions, in this order. Which blocks see each other before the lottery? How do you keep a
# block that is seen already from winning? And which repetition keeps the copies of a block
# together?
# </details>
# <details><summary>Hint 4 · “the mask for … is wrong”, only with n_random=4</summary>
#
# With few blocks there are fewer than `n_random` left to draw. Drawing a seen one does no harm.
# </details>

# %% exercise="bigbird_mask"
from attention.masked_attention import bigbird_mask

# %% check="bigbird_mask" points=3
check.bigbird_mask(bigbird_mask)

# %% [markdown]
# ### BigBird without its parts
# Are BigBird's random blocks short cuts? On 64 blocks, with each part taken away in turn. A block
# of one position is enough, since all positions of a block see the same.


# %% demo=true
def random_window(n_blocks, seed):
    """A window of one block on each side and one random block, none of them global."""
    window = local_mask(n_blocks, 1)
    lottery = torch.rand(n_blocks, n_blocks, generator=torch.Generator().manual_seed(seed))
    return window.scatter(1, lottery.masked_fill(window, -1.0).argmax(dim=1, keepdim=True), True)


for name, masks in {
    "window": [local_mask(64, 1)],
    "window + 2 global": [longformer_mask(64, 1, [0, 63])],
    "window + 2 global + 1 random (BigBird)": [bigbird_mask(64, 1, 1, seed) for seed in range(40)],
    "window + 1 random": [random_window(64, seed) for seed in range(40)],
}.items():
    steps = [steps_to_meet(mask) for mask in masks]
    counted = ", ".join(f"{n} steps {steps.count(n)}x" for n in sorted(set(steps)))
    print(f"{name:<40} all meet after {counted}")

draw_masks(
    {
        "Longformer: window 2, global 0": longformer_mask(T, 2, [0]),
        "BigBird: blocks of 2, 1 random": bigbird_mask(12, 2, n_random=1, seed=0),
        "window and random, none global": random_window(T, seed=0),
    },
    width=2.9,
)

# %% [markdown]
# *Three sparse masks of 24 positions; above, the number of steps on 64 blocks, in 40 draws of the
# random ones.* In BigBird the global blocks make all pairs meet in two steps, with random blocks or
# without. What random blocks can do shows without the global ones: 63 steps become 7 to 12. So they
# are short cuts, and leave no position as the one through which everything must pass.
#
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
# alone. But a mask saves no work. As long as the whole matrix is computed and then masked, the work
# is *T*² for all of them. The last exercise does better.

# %% [markdown]
# ### Without the matrix
# ### Exercise 6.10 · `sliding_window_attention` ★
# ●●● hard · 25 minutes · 2 points
#
# For a local window of *w* neighbours on each side, each query needs only 2*w* + 1 scores.
# Compute attention with a local mask without ever making a `(T, T)` tensor, neither of scores nor
# of bools. The check calls it with a sequence of half a million. Scores of ±1000 are fine.
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
# <details><summary>Hint 3 · a smaller step</summary>
#
# Write it for `window=1` with three shifted copies, and compare with `masked_attention` under
# `local_mask(T, 1)`. Which entries of the three columns lie outside of the sequence, and what must
# their scores be? Then replace the three copies by a loop over 2*w* + 1 columns.
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
torch.set_num_threads(1)  # one core: its own time, whatever else the machine does
for T in lengths:
    x = torch.randn(T, 32)
    runs = {
        "dense, then masked": lambda x=x, T=T: masked_attention(x, x, x, local_mask(T, 8)),
        "sliding window": lambda x=x: sliding_window_attention(x, x, x, 8),
    }
    for name, run in runs.items():
        clock[name].append(timing.shortest(run))  # of the processor
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
# *Processor time against length with a window of 8 on each side, both axes logarithmic, on the
# machine that built this notebook.* With twice the length the dense way has four times as many
# multiplications, and takes longer where its tables outgrow the caches. The window has twice
# as many, and takes about twice as long once overheads no longer count.
#
# ## References
# - A. Vaswani et al. (2017). *Attention is all you need*, section 3.2.3.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - I. Beltagy, M. Peters, A. Cohan (2020). *Longformer: the long-document Transformer.*
#   [arXiv:2004.05150](https://arxiv.org/abs/2004.05150)
# - M. Zaheer et al. (2020). *Big Bird: Transformers for longer sequences.*
#   [arXiv:2007.14062](https://arxiv.org/abs/2007.14062)
# - L. Weng (2023). *The Transformer family, version 2.0.*
#   [lilianweng.github.io](https://lilianweng.github.io/posts/2023-01-27-the-transformer-family-v2/)
