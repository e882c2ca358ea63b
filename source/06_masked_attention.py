# %% [markdown]
# # 06 · Who may look at whom?
#
# Attention looks everywhere: at the padding after a short sentence, at the word it should predict.
# A **mask** says what it may see. A wrong mask raises no error. Where the future leaks, the loss is
# too good to be true. Where padding is seen, a result depends on what else is in the batch.
#
# **After this lesson** you can
# - write the **mask** of a batch: the past, documents side by side, padding (★ also Longformer's),
# - handle a query that has nothing to see,
# - write two tests that need no look inside a model: one changes the **future**, one the **batch**,
# - explain why −1e9 in float16, 0 instead of −∞, and masking after the softmax fail.
#
# **Time** 80 minutes, ★ 35 more · **Points** 16 · **GPU** not needed · **You need** lesson 05

# %%
import math

import torch
from torch.nn import functional as F

from attention.experiments import masked_attention as experiments
from autograder import check

# %% [markdown]
# ## Attention on nothing
# To fit into one batch, short texts are filled up with padding, always the same vector. Here are
# three texts of two tokens, each filled up to T positions. How much of their attention goes to the
# padding?

# %% demo=true
from attention.scaled_dot_product_attention import scaled_dot_product_attention

for T in (2, 4, 10, 20):
    x = torch.zeros(3, T, 16)  # (B, T, d_model): the padding is a vector of zeros
    x[:, :2] = 0.6 * torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(0))
    _, weights = scaled_dot_product_attention(x, x, x, return_weights=True)
    lost = weights[:, :2, 2:].sum(dim=2).mean(dim=1)  # (B,)
    print(f"padded to {T:2}: weight on padding", *(f"{share:4.0%}" for share in lost))

# %% [markdown]
# The more padding, the more attention is lost: the result for one sentence depends on the longest
# sentence in its batch. (These tokens are small. Where their own scores are far above the padding's
# 0, hardly any is lost.) A language model has a worse problem: a position that can see the next
# letter need not learn to predict it.
#
# ## A table of True and False
# A mask is a table with one entry for every pair of a query and a key. In this course it is bool,
# and **True means: may attend**. A forbidden score becomes −∞ before the softmax, because exp(−∞) =
# 0.
#
# ![Scores of the words two, hundred, thirty, one on each other. The mask puts minus infinity above
# the diagonal. After the softmax the weights above the diagonal are 0, and each row still sums to
# 1.](figures/causal_mask.svg)
#
# $$\text{weights} = \text{softmax}(s'), \qquad s'_{ij} = \begin{cases} s_{ij} & \text{mask}_{ij}
# \text{ is True} \\ -\infty & \text{otherwise} \end{cases}$$
#
# `F.scaled_dot_product_attention` reads masks in the same way. **`nn.MultiheadAttention` and
# PyTorch's Transformer layers do the opposite**: there, True = may *not* attend.
#
# By hand, the second row of the drawing:

# %%
scores = [0.5, 1.6, 0.2, 0.7]
allowed = [True, True, False, False]
masked = [s if ok else -math.inf for s, ok in zip(scores, allowed, strict=True)]
for score in masked:
    weight = math.exp(score) / sum(math.exp(s) for s in masked)
    print(f"score {score:4.1f}   exp {math.exp(score):.3f}   weight {weight:.2f}")

# %% [markdown]
# Most masks compare positions: those of the keys in a row, `(T_k,)`, with those of the queries in a
# column, `(T_q, 1)`. A key must pass **all** tests, so masks are joined by `&`, which broadcasts.
#
# | mask | shape | the same for all … |
# |---|---|---|
# | causal, local | `(T, T)` | sequences of the batch |
# | padding | `(B, 1, T)` | queries of a sequence |
# | both | `(B, T, T)` | — |
#
# Stack layers, and information travels on: what a position has heard in one layer, it passes on in
# the next. After how many layers can every position have heard from every other?

# %% demo=true
key = torch.arange(24)
query = key[:, None]
padding = (key < torch.tensor([18])[:, None])[:, None]  # (B=1, 1, T): 18 of 24 keys are real
masks = {"padding": padding, "causal": key <= query, "local: 2": (key - query).abs() <= 2}
masks["causal and padding"] = masks["causal"] & padding  # (1, T, T)
layers = experiments.draw_masks(masks)

# %% [markdown]
# *Four masks of 24 queries (down) and 24 keys (across), dark where attention is allowed.* No
# position ever hears from the padding, and under a causal mask none hears from its future. With a
# window of 2, a message needs a dozen layers from one end to the other.
#
# Move the window, and add layers until every position can have heard from every other. Then try the
# other masks: which never get there, and which need two layers however long the text is?
# (Longformer and BigBird come at the end of this lesson.)

# %% demo=true
from attention.provided.figures import moving

moving.masks()

# %% [markdown]
# ### Exercise 6.1 · `packed_mask`
# ●●○ medium · 15 minutes · 3 points
#
# Graded in three parts: the past (1), documents (1), padding (1).
#
# Language models are trained on rows that are packed full: several documents share a row, and the
# rest is padding. `document` says which document each position belongs to, and 0 is padding. A
# query sees a key if the key is **not later** than the query, belongs to the same **document**, and
# is no **padding**. Padding sees nothing.
#
# While a model writes, only the newest positions ask, and they look back at all that is there. So
# the queries are the **last** `T_q` of the `T_k` positions. In training `T_q = T_k`.
#
# | position (key) | 0 | 1 | 2 | 3 | 4 |
# |---|---|---|---|---|---|
# | `document` | 1 | 1 | 2 | 2 | 0 |
# | query at position 2 sees | | | ✓ | | |
# | query at position 3 sees | | | ✓ | ✓ | |
# | query at position 4 sees | | | | | |
#
# <details><summary>Hint 1 · the idea</summary>
#
# Three masks joined by `&`: one from positions, two from `document`. Which positions do the queries
# have?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Positions: keys `(T_k,)` against queries `(T_q, 1)` give `(T_q, T_k)`. Documents: queries
# `(B, T_q, 1)` against keys `(B, 1, T_k)` give `(B, T_q, T_k)`. The queries are the end of the
# positions 0 to `T_k - 1`, and of each row of `document`.
# </details>
# <details><summary>Hint 3 · padding sees padding</summary>
#
# Two positions of padding have the same number, 0, as if they were one document.
# </details>

# %%
from attention.provided import demand

# %% exercise="packed_mask"
from attention.masked_attention import packed_mask

# %% check="packed_mask" points=3
check.packed_mask(packed_mask)

# %% [markdown]
# (PyTorch's `F.scaled_dot_product_attention(…, is_causal=True)` takes the queries for the *first*
# `T_q` positions. Use it only where `T_q = T_k`.)
#
# Later lessons have one sequence in each row. They use two smaller functions, which are given:

# %% given="causal_mask"
from attention.masked_attention import causal_mask

# %% given="combine_masks"
from attention.masked_attention import combine_masks

# %% [markdown]
# ## A query with nothing to see
# In your packed rows, padding sees nothing at all. Its scores are all −∞, the softmax divides 0 by
# 0, and one `NaN` soon spoils the whole model. We return **zeros** instead, with gradients of zero,
# as PyTorch's fused attention does.
#
# ### Exercise 6.2 · `masked_attention`
# ●●○ medium · 15 minutes · 3 points
#
# Graded in three parts: with a key for every query (1), with a query that sees nothing (1), its
# gradients (1).
#
# Write attention under a mask. The line that makes the scores is given. Rows with at least one key
# are as in lesson 05; a row without any gives weights 0 and context 0, and no gradient is ever
# `NaN`. It must also work for scores of ±1000.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Avoid the NaN instead of repairing it. An empty row needs finite scores to go through the softmax;
# you can erase its weights afterwards.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `mask.any(dim=-1, keepdim=True)`, `(..., T_q, 1)`, is True for queries that have something to see.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Fill with −∞ what is forbidden, except in a row without any True. After the softmax, which rows
# are wrong, and what does `masked_fill` do to their weights?
# </details>
# <details><summary>Hint 4 · “the gradient of q is not finite”</summary>
#
# `nan_to_num` repairs the value only. In the backward pass NaN · 0 is still NaN.
# </details>

# %% exercise="masked_attention"
from attention.masked_attention import masked_attention

# %% check="masked_attention" points=3
check.masked_attention(masked_attention)

# %% [markdown]
# PyTorch makes the same choice:

# %% demo=true
x = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(3))
mask = packed_mask(torch.tensor([[1, 1, 1, 2, 2, 2], [0] * 6]), T_q=6)  # (B, T, T)
ours, theirs = masked_attention(x, x, x, mask), F.scaled_dot_product_attention(x, x, x, mask)
print("the same as PyTorch's:", torch.allclose(ours, theirs, atol=1e-6))
print("largest context of the row of padding:", ours[1].abs().max().item())

# %% [markdown]
# ### Break it
# Four positions, causal, the first of them padding: the right result, and three popular mistakes.

# %% demo=true
weights = experiments.wrong_ways_to_mask(masked_attention, causal_mask)

# %% [markdown]
# *Weights of four queries under a causal mask whose first key is padding. In the first panel alone
# all forbidden weights are 0 and all rows sum to 1, or to 0 where there is nothing to see.*
# - **0 instead of −∞**, `torch.where(mask, scores, 0.0).softmax(-1)`: exp(0) = 1, so forbidden keys
#   take part.
# - **mask after softmax**, `scores.softmax(-1) * mask`: the rows no longer sum to 1. How much is
#   missing depends on the forbidden scores: the future leaks through the denominator.
# - **−1e9 instead of −∞** fails in the row with nothing to see. Its scores are all equal, so it
#   looks at everything evenly, at the padding and the future too.
#
# In **float16**, which GPUs often use, −1e9 does not even exist:

# %%
half = torch.tensor(-1e9).half()
print("-1e9 in float16:", half.item(), "  times 0, where attention is allowed:", (0 * half).item())

# %% [markdown]
# A 0/1 mask multiplied by −1e9 therefore destroys what is allowed, too. A bool mask and −∞ work at
# every precision.
#
# ## Is there a leak?
# A shifted index is easy to overlook. But you can *test* any layer, without knowing how it works:
# **change the future, and the past must not change.**
#
# Here are seven layers, all meant to be causal:

# %% given="suspect"
from attention.masked_attention import suspect

# %% [markdown]
# ### Exercise 6.3 · `leaks`
# ●●○ medium · 12 minutes · 3 points
#
# Graded in three parts: where a leak shows at `t` (1), where it shows only before `t` (1), where
# the future is all zeros or all alike (1).
#
# Write the test. Run the layer on `x`, and on a copy whose positions after `t` hold other vectors
# of similar size. Does any output at or before `t` differ? Return a plain `True` or `False`, not a
# tensor.
#
# <details><summary>Hint 1 · the idea</summary>
#
# If the input stays the same up to and including `t`, so must the output. `torch.allclose`
# compares.
# </details>
# <details><summary>Hint 2 · what to change it to</summary>
#
# Into something that is certainly different, whatever `x` was. Do not add the same number to all
# features: a layer may look at differences only. And change them by a few units only: a key whose
# score falls to −1000 gets the weight 0, and the leak does not show.
# </details>
# <details><summary>Hint 3 · “layer A … is accused”</summary>
#
# The future begins at `t + 1`, in the input as in the output: `x[: t + 1]` ends with position `t`.
# </details>

# %% exercise="leaks"
from attention.masked_attention import leaks

# %% check="leaks" points=3
check.leaks(leaks)

# %% [markdown]
# Read the code of `suspect` and write down who leaks. Then ask your test.

# %% demo=true
x = torch.randn(8, 4, generator=torch.Generator().manual_seed(8))
for name in "ABCDEFG":
    positions = [t for t in range(8) if leaks(name, x, t)]
    print(f"layer {name}:", f"sees the future of {positions}" if positions else "causal")

# %% [markdown]
# Five of seven leak. **B** is shifted by one. **C** masks after the softmax. **D** subtracts the
# mean over all positions: a correct mask cannot help there. **F** has a global position. **G**
# fills with 0. **E**, with −1e9, is fine here, because no row is empty. From lesson 10 on you will
# run this test on whole models.
#
# ### Exercise 6.4 · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate's test finds the same five leaks. On some sequences it misses one.

# %% broken="silences_the_future"
from autograder.mistakes.masked_attention import silences_the_future

# %% [markdown]
# Write a function without arguments that returns an input `(name, x, t)` for which this test gives
# the wrong verdict.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The test is meant to change the future. For which `x` does it change nothing? You also need a
# layer that leaks, and a future after `t`.
# </details>

# %% exercise="break_leaks"
from attention.masked_attention import break_leaks

# %% check="break_leaks" points=1
check.break_leaks(break_leaks)

# %% [markdown]
# ## What a leak is worth
# A small model with one head of attention learns to spell German numbers, letter by letter. The
# loss is the cross-entropy of the next letter. Then the model **writes** 300 words of its own.
# While it writes, there is no next letter to look at.
#
# <details><summary>The code that ran</summary>
#
# ```python
# model = Speller(attend)
# optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
#
# def loss() -> Tensor:
#     batch = rows[torch.randint(len(rows), (48,))]
#     scores = model(batch[:, :-1])
#     return F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten(), ignore_index=PAD)
#
# losses = list(take_steps((loss() for _ in range(steps)), optimizer))
# wrote = write(model)
# ```
# A row is BOS, the letters of a word, EOS and padding. `take_steps` is the loop of lesson 02.
# </details>
#
# ### Predict first
# One model has the causal mask. In the other, each position also sees the **next** one, and so the
# letter that it must predict. Its loss will be lower. What share of its 300 words will be German
# numbers?

# %%
prediction = None  # a number from 0 to 1; None skips this

# %% demo=true
from attention.provided.predictions import compare

known = experiments.spell_with_a_leak(masked_attention, causal_mask)
compare(prediction, known, "share of German numbers")

# %% [markdown]
# *Loss against training step: the leaking model's falls to 0, the causal one's stays above the
# dashed line.* No honest model can come below that line in the mean, because all words are equally
# likely and nobody can know which one comes. A loss that stays below it is a sign of a leak.
#
# With three seeds, and with two subtler leaks, **C** and **G** of the suspects:

# %% demo=true
ax = experiments.what_leaks_are_worth()

# %% [markdown]
# *Share of German numbers among 300 written words against the training loss, one marker for each of
# three seeds (recorded; 300 steps).* Every leak lowers the loss and ruins the model. Even the
# denominator of a softmax is enough: training finds it.
#
# ## Does the company matter?
# Padding is easy to overlook, too, and again there is a test that needs no look inside: **translate
# a text alone and in company, and the translation must not change.**
#
# ### Exercise 6.5 · `companions_that_matter`
# ●○○ easy · 8 minutes · 2 points
#
# Write the test. `translate` takes a list of texts, makes one batch of them, and returns the list
# of their translations. Try the companions one at a time, each in a batch with the text, and return
# those beside which the text's translation is not what it is alone.
#
# <details><summary>Hint 1 · the idea</summary>
#
# What is the translation if the list holds nothing but the text? Compare with that.
# </details>
# <details><summary>Hint 2 · a batch of one</summary>
#
# A batch of one text is a list, too: `[text]`. Its translation is the only item of the result.
# </details>

# %% exercise="companions_that_matter"
from attention.masked_attention import companions_that_matter

# %% check="companions_that_matter" points=2
check.companions_that_matter(companions_that_matter)

# %% [markdown]
# ## Your translator, with its padding seen
# Now train the translator of lesson 05 by the loop of lesson 02, with one change: the padding is
# **not hidden**. Numbers of different lengths share a batch, and the short ones are filled up. Try
# the test on it.

# %% demo=true
from attention.experiments import translator_so_far
from attention.provided.data.numbers import numbers
from attention.provided.models import translators
from attention.sequence_to_sequence import train

torch.set_num_threads(1)  # as fast for small matrices, and much faster beside other programs
torch.manual_seed(0)
corpus = numbers()
model = translator_so_far.build("06 no mask", corpus, masked_attention)
losses = train(model, corpus.batches(64, steps=300), translators.adam(model, steps=300))
print(f"loss {losses[0]:.2f} to {losses[-1]:.4f}")


# %% [markdown]
# ### Predict first
# The translator reads *nine hundred thirty one*: alone, beside *seven*, beside *four hundred fifty
# six*, which is as long, and beside *two hundred six thousand one hundred eighty one*. In a batch
# with the last one there is padding after *nine hundred thirty one*; in the others there is none.
# Where will the translation be right?

# %%
prediction = None  # "with padding" or "without padding"; None skips this


# %% demo=true
def translate(texts):
    return translators.translations(model, corpus, [(0, text, "null") for text in texts])


text, equal = "nine hundred thirty one", "four hundred fifty six"
longer = "two hundred six thousand one hundred eighty one"
alone, beside = translate([text])[0], translate([text, longer])[0]
print("alone:           ", alone)
print("beside a long one:", beside)
print("companions that matter:", companions_that_matter(translate, text, ["seven", equal, longer]))
right = [name for name, said in (("without", alone), ("with", beside)) if said.endswith("dreißig")]
compare(prediction, " and ".join(right) + " padding", "right")

# %% [markdown]
# Only the long number matters, and beside it the translation is right. Alone, without any padding,
# it is nonsense. (Another processor rounds differently: your translator may stumble over another
# number.)
#
# Is it only this number, or this training? Here are up to 100 numbers of each length, and three
# trainings each with the padding seen and with it hidden.
#
# <details><summary>The code that ran</summary>
#
# ```python
# alone.append(_right(model, [(some, some) for some in equal]))
# beside.append(_right(model, [([*pairs, longest], pairs)]))
# ```
#
# `_right` makes one batch of the first list, and says what share of the second one is translated
# without any error.
# </details>

# %% demo=true
beside = experiments.companions()

# %% [markdown]
# *Share right, three runs of each (recorded; the first is yours). The same numbers are translated
# in batches without any padding, in batches of one number of digits, and beside a long number.*
# With the *most* padding all numbers of two and three digits are right, and without padding the
# fewest. In training, short numbers had the most padding, since longer ones shared their batch. So
# the padding does not disturb this model: it has learned to lean on it, and fails where it is
# missing. When padding is hidden, as in lesson 05, company changes nothing. (The run that gets .03
# of the six-digit numbers right does so in any company; hidden, the same seed gets .55.)
#
# ## Limits
# A mask cannot stop what mixes positions outside the attention. It saves no work, because forbidden
# scores are computed and thrown away. And neither test proves anything about inputs that you have
# not tried.
#
# ## Something of your own
# Design a mask for 24 positions. Who should see whom on a chess board read row by row, or in a
# family tree? Draw yours beside a window that allows about as many pairs:
# `experiments.draw_masks({"mine": …, "window": …})`. In which of the two has every position
# heard from every other after fewer layers? How sparse can a mask be if two layers must be enough?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# A mask is a bool table, True where a query may see a key. Forbidden scores become −∞ before the
# softmax, and a row with nothing to see gives zeros. A leak lowers the training loss and ruins what
# the model writes: to find it, change the future and compare the past. Padding that is seen makes a
# result depend on its companions: to find it, change the batch.
#
# **Next** [07 · Why several at once?](../07_multi_head_attention/07_multi_head_attention.ipynb) One
# head makes one average. A Transformer makes several.
#
# ## Open questions
# 1. Train the speller under a causal *window* of *w* letters with `experiments.train_with_window(w,
#    0, masked_attention, causal_mask)`. How many letters must it see?
# 2. Let every position see all letters except the one that it must predict:
#    `experiments.train_with_a_gap(0, masked_attention)`. Is this a leak? What could such a model be
#    good for?

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# Both are recorded, for seeds 0 to 2, in `data/evidence/masked_attention.json`.
# 1. Seeing the two letters before its own is enough here, for 300 steps. With *w* = 1 the loss is
#    0.36 and 40 to 54 % of the words are numbers, with *w* = 2 it is 0.32 to 0.33 and 74 to 87 %,
#    with *w* = 16 no better. The model is also told each letter's place in the word.
# 2. It is a leak for writing: the loss is 0.03 to 0.08, and 0 to 23 % of the words are numbers. A
#    letter between known letters is easy to guess, but while the model writes, the letters after it
#    do not exist. Such a model can fill gaps in a text that is there. Lesson 16 trains one to read.
#
# </details>

# %% [markdown]
# ## ★ Sparse patterns
# ### Exercise 6.6 · `longformer_mask` ★
# ●○○ easy · 5 minutes · 2 points
#
# The **Longformer** adds a few *global* positions to a window: they see all positions, and all
# positions see them. The window is given.
#
# <details><summary>Hint 1 · the idea</summary>
#
# “Sees all” is a whole row, “is seen by all” a whole column. A list as an index picks several rows:
# you can assign to `mask[[0, 5], :]`.
# </details>

# %% exercise="longformer_mask"
from attention.masked_attention import longformer_mask

# %% check="longformer_mask" points=2
check.longformer_mask(longformer_mask)

# %% [markdown]
# ### BigBird, and BigBird without its parts
# **BigBird** works with blocks of positions and adds *random* shortcuts. A block sees itself and
# the block on each side, and one or more blocks drawn at random. The first and the last block are
# global: they see all, and all see them. Which part makes the difference?

# %% demo=true
layers = experiments.bigbird_without_its_parts(longformer_mask)

# %% [markdown]
# *Three sparse masks of 24 positions; above, the number of layers on 64 blocks, in 40 draws of the
# random ones.* With global blocks all pairs meet in two layers, with random blocks or without.
# Without global blocks, random ones shorten 63 layers to between 7 and 12: they are shortcuts, and
# no single position has to pass everything on.
#
# In all three, the number of allowed pairs grows with *T*, not with *T*². But as long as the whole
# matrix is computed and then masked, the work is *T*² all the same. The last exercise does better.
#
# ### Without the matrix
# ### Exercise 6.7 · `sliding_window_attention` ★
# ●●● hard · 25 minutes · 2 points
#
# For a local window of *w* neighbours on each side, each query needs only 2*w* + 1 scores. Compute
# attention with a local mask without ever making a `(T, T)` tensor, neither of scores nor of bools.
# The check calls it with a sequence of half a million. It must also work for scores of ±1000.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Loop over the offsets −*w* … *w*, not over the positions: shift the keys by the offset, and all
# queries meet their neighbour at that distance in one multiplication.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Pad keys and values by *w* rows on both ends, `F.pad(k, (0, 0, w, w))`: `(..., T + 2w, d)`. Rows
# `c` to `c + T` of it are the neighbours at offset *c* − *w*. One offset gives `(..., T)` scores;
# stacked, `(..., T, 2w + 1)`. A padded row has score 0, not −∞: it must be hidden.
# </details>


# %% exercise="sliding_window_attention"
from attention.masked_attention import sliding_window_attention

# %% check="sliding_window_attention" points=2
check.sliding_window_attention(sliding_window_attention)

# %% demo=true
ax = experiments.time_of_a_window(masked_attention, sliding_window_attention)

# %% [markdown]
# *Processor time against length with a window of 8 on each side, both axes logarithmic, on the
# machine that built this notebook.* When the length doubles, the dense way needs four times as many
# multiplications, the window twice as many. The count is not the time: the printed factors of each
# doubling are not always 4 and 2.
#
# ## References
# - A. Vaswani et al. (2017). *Attention is all you need*, section 3.2.3.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - I. Beltagy, M. Peters, A. Cohan (2020). *Longformer: the long-document Transformer.*
#   [arXiv:2004.05150](https://arxiv.org/abs/2004.05150)
# - M. Zaheer et al. (2020). *Big Bird: Transformers for longer sequences.*
#   [arXiv:2007.14062](https://arxiv.org/abs/2007.14062)
