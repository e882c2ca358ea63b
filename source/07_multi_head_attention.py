# %% [markdown]
# # 07 · Why several at once?
#
# An attention head makes one average per position. If a word needs two things at once, say its
# subject and its verb, the head adds them up in the same places. Several smaller heads can each
# look somewhere else, with no more parameters than one large head.
#
# **After this lesson** you can
# - write **multi-head attention** that equals PyTorch's layer,
# - say what each head **adds** to the output, and what more heads cost,
# - **set two heads by hand** so that they fetch two things at once, and say what one head cannot,
# - say how heads **share** keys (★ and let heads **collaborate**).
#
# **Time** 70 minutes, ★ 17 more · **Points** 12 · **GPU** not needed · **You need** lessons 05 and
# 06

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.experiments import multi_head_attention as experiments
from autograder import check

# %% [markdown]
# ## One average, two contents
# A query should fetch **two** values, those of keys 0 and 3. The best weights are half and half:

# %%
values = torch.tensor([[4.0, 0.0], [9.0, 9.0], [7.0, 1.0], [0.0, 6.0]])
one_head = 0.5 * values[0] + 0.5 * values[3]
print("one head:", one_head.tolist(), "- could as well be half of (1, 5) and half of (3, 1)")
print("two heads, side by side:", torch.cat([values[0], values[3]]).tolist())
placed = torch.eye(4)[:, :, None] * values  # (4, 4, 2): each key writes in a row of its own
print("one head, each key in a row of its own:", (0.5 * placed[0] + 0.5 * placed[3]).tolist())

# %% [markdown]
# An average mixes what stands in the same place, and one head has one $W_v$: all contents come in
# the same places. (In the last line they do not, but that takes a place for each key.) Two heads
# put two contents in two places. That is twice as many numbers, unless each head is half as large.
#
# ## Several heads
# Run several attentions in parallel, each with its own projections, and put their contexts side by
# side. To keep the number of parameters, each head works in $d_\text{head} = d_\text{model} / H$
# dimensions. A last projection, $W_o$, turns every context into an **update** of full length. The
# output is the sum of the updates.
#
# ![Query, key and value pass through W_q, W_k and W_v and are split into three heads. Each head
# attends by itself, and its context times its own rows of W_o is its update. The three updates are
# added up.](figures/multi_head.svg)
#
# $$\text{MultiHead}(q, k, v) = \text{Concat}(\text{head}_1, \dots, \text{head}_H)\,W_o
# = \sum_{h=1}^{H} \text{head}_h\, W_o^h, \qquad
# \text{head}_h = \text{Attention}(q W_q^h,\; k W_k^h,\; v W_v^h)$$
#
# $W_o^h$ are the d_head rows of $W_o$ that multiply head *h*. Heads of one layer cannot read each
# other; only the next layer reads their sum.
#
# | quantity | shape | in the paper's base model |
# |---|---|---|
# | `query`; `key`, `value` | `(B, T_q, d_model)`; `(B, T_k, d_model)` | d_model = 512 |
# | projected and split | `(B, H, T, d_head)` | 8 heads of 64 |
# | weights | `(B, H, T_q, T_k)` | 8 tables for each sequence |
# | merged | `(B, T_q, H · d_head)` | 8 · 64 = 512 |
# | output | `(B, T_q, d_model)` | 512 |
#
# No loop over heads is needed: all $W_q^h$ stand side by side in one matrix, and the heads are one
# more axis.
#
# ## Splitting and merging
# Head *h* (counted from 0) gets the features *h* · d_head to (*h* + 1) · d_head − 1 of **every**
# position.
#
# ![Left: four positions with six features. Middle: three heads, each with two features of all four
# positions. Right: a view alone has the same shape, but each "head" holds neighbouring numbers of
# two positions.](figures/split_heads.svg)

# %%
from attention.masked_attention import causal_mask, masked_attention
from attention.provided import demand  # refuses sizes that make no sense

# %% given="split_heads"
from attention.multi_head_attention import split_heads

# %% given="merge_heads"
from attention.multi_head_attention import merge_heads

# %% [markdown]
# The common mistake forgets the transpose. It has the right shape and trains without an error. Each
# position below holds its own number in all six features:

# %%
x = torch.arange(4.0)[:, None].expand(1, 4, 6)  # (B, T, d_model)
print("head 0, split:      ", split_heads(x, 3)[0, 0].tolist())
print("head 0, only a view:", x.reshape(1, 3, 4, 2)[0, 0].tolist())

# %% [markdown]
# With the view, each “head” attends *within* a few positions. After merging, position 0 holds
# numbers of later positions: in a causal model that is a leak.
#
# ## The layer
# Inside, the heads attend as in lesson 06, with dropout on the weights. `fused=True` calls
# PyTorch's fused attention instead. It computes the same result without storing the `(T_q, T_k)`
# table, so it cannot return the weights. Train with it, and switch it off to look at the weights.

# %% given="attend"
from attention.multi_head_attention import attend

# %% [markdown]
# ### Exercise 7.1 · `MultiHeadAttention`
# ●●● hard · 25 minutes · 5 points
#
# Graded in four parts: without a mask (2), with a mask (1), with `head_mask` (1), with dropout,
# `fused` and `return_weights` (1).
#
# Write the projections and `forward`. Three points need care:
# - **splitting and merging**: call `split_heads` and `merge_heads`, or write a line for each:
#   `unflatten(-1, heads)` splits an axis in two, `flatten(2)` joins all axes from 2 on;
# - **dropout** belongs to training: `self.training` is False after `eval()`, but `attend` is a
#   plain function and cannot see it;
# - **`head_mask`** is a gate for each head: its context is multiplied by this number, so that 1
#   keeps the head and 0 silences it.
#
# The layer is trained below, so a gradient must reach every weight.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Project, split, attend, gate, merge, project: the figure from left to right.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# After `unflatten(-1, heads)`: `(B, T, H, d_head)`; the heads must come before the positions. The
# context is `(B, H, T_q, d_head)`. A `head_mask` of `(H,)` or `(B, H)` needs two more axes at the
# end.
# </details>
# <details><summary>Hint 3 · “the module has other parameters”</summary>
#
# Four layers `nn.Linear` from d_model to d_model, with bias, named `W_q`, `W_k`, `W_v` and `W_o`.
# </details>

# %% exercise="MultiHeadAttention"
from attention.multi_head_attention import MultiHeadAttention

# %% check="MultiHeadAttention" points=5
check.MultiHeadAttention(MultiHeadAttention)

# %% [markdown]
# The check has compared it with `nn.MultiheadAttention`. It also equals a **loop over single
# heads** of lesson 05, each with its slice of the weights:

# %% demo=true
torch.set_num_threads(1)  # faster for small matrices
layer, x, contexts = experiments.loop_over_heads(MultiHeadAttention)

# %% [markdown]
# ## What each head adds
# ### Exercise 7.2 · `head_updates`
# ●●○ medium · 8 minutes · 2 points
#
# Take the sum apart. From the heads' contexts and $W_o$, compute the update of every head:
# `(B, H, T, d_model)`. $W_o$ is as in the formula, with a row for each merged feature.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Which rows of $W_o$ does head *h* meet in the product? Cut into heads, $W_o$ is
# `(H, d_head, d_model)`, and a product of `(B, H, T, d_head)` with it pairs head with head.
# </details>

# %% exercise="head_updates"
from attention.multi_head_attention import head_updates

# %% check="head_updates" points=2
check.head_updates(head_updates)

# %% demo=true
updates = head_updates(contexts, layer.W_o.weight.T)  # (2, 3, 5, 12)
whole = layer(x, x, x, causal_mask(5))
print("sum and bias: ", torch.allclose(updates.sum(dim=1) + layer.W_o.bias, whole, atol=1e-6))
without = layer(x, x, x, causal_mask(5), head_mask=torch.tensor([1.0, 0.0, 1.0]))
print("without head 1:", torch.allclose(whole - without, updates[:, 1], atol=1e-6))

# %% [markdown]
# A gate of 0 takes one update out of the sum and leaves the others as they are. (PyTorch keeps
# $W_o$ transposed, hence the `.T`.)
#
# ## Two heads by hand
# Now a task that needs two. Eight items stand in a row. Each has a *name*, a *content* of four
# numbers, and the names of **two items** whose contents it must report. An item is a row of 28
# numbers:
#
# | numbers | what stands there |
# |---|---|
# | 0 to 7 | its own name, one-hot |
# | 8 to 15 | the name of the first item that it asks for, one-hot |
# | 16 to 23 | the name of the second item, one-hot; it may be the same |
# | 24 to 27 | its content |
#
# ### Exercise 7.3 · `heads_by_hand`
# ●●○ medium · 15 minutes · 2 points
#
# No training is needed: set the three matrices yourself. Let head 0 look at the first item that is
# asked for, and head 1 at the second. Return `W_q`, `W_k` and `W_v`, each (28, 28) and to the right
# of *x*, as in $q = x\,W_q$. Columns 0 to 13 make the queries, keys and values of head 0, columns
# 14 to 27 those of head 1. In each head:
# - The first eight numbers of a key are the item's own name.
# - The first eight numbers of a query are the name that is asked for, times a factor: after the
#   division by √14, the score of the item that is asked for must be `strength`, and that of every
#   other item 0.
# - The first four numbers of a value are the content.
#
# All other entries are 0.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A block of an identity matrix copies numbers: `W[8:16, 0:8] = torch.eye(8)` brings the numbers 8
# to 15 of *x* to the columns 0 to 7. The product of two one-hot names is 1 if they are the same
# name, and 0 otherwise.
# </details>
# <details><summary>Hint 2 · “its scores are not strength and 0”</summary>
#
# The product of query and key is divided by √14. Which factor in the query leaves `strength`?
# </details>

# %% exercise="heads_by_hand"
from attention.multi_head_attention import heads_by_hand

# %% check="heads_by_hand" points=2
check.heads_by_hand(heads_by_hand)

# %% [markdown]
# Now put your matrices into your layer:


# %%
def layer_with(W_q, W_k, W_v):
    layer = MultiHeadAttention(28, n_heads=2)
    for name, W in {"W_q": W_q, "W_k": W_k, "W_v": W_v, "W_o": torch.eye(28)}.items():
        layer.get_submodule(name).weight.data = W.T  # nn.Linear keeps its matrix transposed
        layer.get_submodule(name).bias.data = torch.zeros(28)
    return layer


# %% demo=true
for strength in (1.0, 3.0, 10.0):
    errors = experiments.errors(layer_with(*heads_by_hand(strength)), experiments.first_four)
    print(f"strength {strength:4.1f}   error of the two reports:", *(f"{e:.3f}" for e in errors))

# %% [markdown]
# *Mean squared error of each report; always saying 0 has an error of about 1.* Two heads solve the
# task without a step of training, once their scores are large enough to outweigh seven others.
#
# ### Predict first
# Take head 1 away. What is the error of the second report then?

# %%
from attention.provided.predictions import compare

prediction = None  # an error, 0 if nothing is lost; None skips this

# %% demo=true
layer = layer_with(*heads_by_hand(10.0))
for gates in ([0.0, 1.0], [1.0, 0.0]):
    errors = experiments.errors(layer, experiments.first_four, torch.tensor(gates))
    print(f"gates {gates}   error of the two reports:", *(f"{error:.2f}" for error in errors))
compare(prediction, errors[1], "error of the second report without head 1")

# %% [markdown]
# Its context is 0, so its report is 0 as well, and its error is the variance of the contents. The
# other report does not change at all.
#
# Could **one** head ask both questions? Add the two queries up: then both items that are asked for
# get the same score.

# %% demo=true
W_q, W_k, W_v = heads_by_hand(10.0)
W_q[:, :14] += W_q[:, 14:]  # head 0 asks for both
errors = experiments.errors(layer_with(W_q, W_k, W_v), experiments.first_four)
print(f"error of the first report, if head 0 asks for both items: {errors[0]:.2f}")

# %% [markdown]
# It reports the mean of the two contents. The mean of two numbers of variance 1 is half of the
# variance away from each. In one case of eight both items are the same, and nothing is lost:
# 7/8 · 1/2 = 0.44.
#
# ## And by training?
# ### Predict first
# We train one layer with 1, 2 and 4 heads on this task, all with the same number of parameters. The
# loss is the mean squared error of both reports. At what loss will one head level off?
#
# <details><summary>The code that ran</summary>
#
# ```python
# optimizer = torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.0)
# for _ in range(steps):
#     x, y = two_pointers(32, generator)  # (32, 8, 28) and (32, 8, 8)
#     loss = (read_out(layer(x, x, x)) - y).square().mean()
#     optimizer.zero_grad()
#     loss.backward()
#     optimizer.step()
#     losses.append(loss.item())
# ```
# </details>

# %%
prediction = None  # the loss of one head, from 0 to 1; None skips this

# %% demo=true
trained, losses = experiments.one_two_or_four_heads(MultiHeadAttention)
compare(prediction, losses[1], "loss of one head")

# %% [markdown]
# *Loss against training step for 1, 2 and 4 heads: one head stops near 0.44, two and four come near
# 0.* Training finds nothing better for one head than the mean that you have just seen. Two heads
# fetch both.
#
# Are more heads always better?

# %% demo=true
ax = experiments.how_many_heads()

# %% [markdown]
# *Loss against the number of heads, one line for each of three seeds (recorded): solid after 240
# steps, dashed after 960.* Two to seven heads solve the task in 240 steps. Smaller heads learn more
# slowly: 14 heads of two dimensions need more steps, and 28 heads of one dimension are not done
# after 2400.
#
# Where do the two heads look?

# %% demo=true
weights = experiments.where_two_heads_look(trained[2][0])

# %% [markdown]
# *Weights of the two heads on one sequence: in each row, one head looks at the first item asked for
# and the other at the second.*
#
# Silence each head of the trained layer in turn:

# %% demo=true
experiments.silence(*trained[2])

# %% [markdown]
# With two heads, training found what you set by hand: the report that the silent head fetched is
# lost. The error of the other report stays below 0.05, except in one layer of ten, where it rises
# to 0.17. Each four-head layer has one head that can be removed almost without loss. Voita and
# colleagues (2019) found both kinds in trained translators: heads with a task, and many that can be
# removed at little cost (lesson 17).
#
# ## What more heads cost
# At the paper's base size, the four projections of this layer have 4 · (512² + 512) = 1 050 624
# parameters, whatever the number of heads.
#
# ### Predict first
# Memory is another matter: each head has its own table of weights. How many times as much memory
# does the layer allocate with 16 heads as with one, for 512 positions and *d*_model = 64?

# %%
prediction = None  # a factor; None skips this

# %% demo=true
factor = experiments.memory_of_heads(MultiHeadAttention)
compare(prediction, factor, "factor")

# %% [markdown]
# *Megabytes that one call allocates, all its tensors added up.* The tables hold *H* · T_q · T_k
# numbers, and with 16 heads they are nearly all of it. Fused attention does not store them.
#
# ## Fewer keys to remember
# A model that writes a text keeps the keys and values of all tokens so far in the *KV cache*. For
# long texts this cache can take more memory than the model itself. In **grouped-query attention**,
# groups of query heads share one head of keys and values; in **multi-query attention**, all of them
# share a single one.
#
# To attend, the `H_kv` heads of keys are handed out to `n_heads` query heads. Neighbours share: of
# 3 heads of keys, 6 query heads get 0, 0, 1, 1, 2, 2.

# %% given="share_heads"
from attention.multi_head_attention import share_heads

# %% [markdown]
# The cache of a model of 32 layers, each with 32 query heads of 128 numbers, for 8192 tokens:

# %% demo=true
sizes = experiments.cache_sizes(share_heads)

# %% [markdown]
# Only the small tensor is cached. With `F.scaled_dot_product_attention(…, enable_gqa=True)` you
# need not build the large one either.
#
# ## Your translator so far
# Four heads now look at the English words, where lesson 05 had one head of the same total size.

# %% demo=true
from attention.experiments import translator_so_far

_ = translator_so_far.up_to("07", MultiHeadAttention=MultiHeadAttention)

# %% [markdown]
# *The same table; this lesson is framed.* Two of three runs with four heads get most numbers right,
# against one with the single head of lesson 05. But this row also has $W_o$ and biases, and three
# runs are few. A control, with six seeds and six digits, is the same layer with **one** head:

# %% demo=true
experiments.four_heads_or_one()

# %% [markdown]
# There, four heads are worse than one: with each of the six seeds they get fewer numbers right, and
# at most .14 of them in four runs, against one such run with one head. So heads do not earn their
# row in this translator; perhaps one head is enough where each letter needs one word. They are here
# because other tasks need them, as yours above did, and because the Transformer has them.
#
# ## Limits
# How many heads are needed depends on the task. Heads *may* look at different things, but nothing
# forces them to.
#
# ## Something of your own
# Invent a task for several heads: perhaps each item reports the *difference* of two contents, or
# three contents, or its neighbours'. `experiments.two_pointers??` shows how such items are made.
# Train one layer with 1, 2 and 4 heads, draw the losses, and show the weights of a head that does
# something you can name. How many heads does your task need?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# One head makes one average per position. Several heads fetch several things at once, with as many
# parameters but a table of weights each. The output is the sum of their updates: silence a head,
# and its update is missing. Heads can share keys and values, which makes the cache smaller.
#
# **Next** [08 · What are the rows of X?](../08_tokens_and_positions/08_tokens_and_positions.ipynb)
# They become tokens with positions: attention alone does not know the order of the words.
#
# ## Open questions
# 1. Does one head only need more time? Train it four times as long: `experiments.train_other(1, 0,
#    MultiHeadAttention, steps=960)`.
# 2. Is `W_o` needed here, where a read-out follows? Replace it by the identity:
#    `experiments.train_other(2, 0, MultiHeadAttention, mixed=False)`.

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# 1. No: after 960 steps its loss is 0.44 for seeds 0 to 2; after 240 it was 0.43 to 0.45.
#    Whatever it looks at, both contents come in the same places.
# 2. Not here: two heads end at a loss below 0.002 for seeds 0 to 2, without it and with it. The
#    read-out is a matrix over all heads as well, and two linear maps in a row are one. In a
#    Transformer the sum goes back to the residual stream (lesson 09): there `W_o` says where in it
#    each head writes.
#
# </details>

# %% [markdown]
# ## ★ Let them collaborate
# ### Exercise 7.4 · `collaborative_heads` ★
# ●●● hard · 15 minutes · 3 points
#
# Graded in three parts: one head (1), several heads (1), the scale (1).
#
# Let all heads **share** the same queries $x\,\tilde W_q$ and keys $y\,\tilde W_k$ (*y* is the
# sequence looked at), and give each head a *mixing vector* $m_h$ that says how much each shared
# feature counts in its scores:
#
# $$\text{score}_h = \frac{(x\,\tilde W_q)\,\text{diag}(m_h)\,(y\,\tilde
# W_k)^\top}{\sqrt{d_\text{head}}}$$
#
# With $m_h$ = 1 on the features of head *h* and 0 elsewhere this is ordinary multi-head attention.
# But the shared width can also be smaller: the paper reports equal accuracy with a quarter of it.
#
# <details><summary>Hint 1 · the idea</summary>
#
# For each head: weigh the features of the queries, then multiply with the keys as usual. `einsum`
# says it in one line: `(B, T_q, D)`, `(H, D)` and `(B, T_k, D)` become `(B, H, T_q, T_k)`, and D is
# summed away.
# </details>

# %% exercise="collaborative_heads"
from attention.multi_head_attention import collaborative_heads

# %% check="collaborative_heads" points=3
check.collaborative_heads(collaborative_heads)

# %% [markdown]
# Compare it with ordinary heads, and count what sharing saves:

# %% demo=true
same = experiments.collaborate(collaborative_heads)

# %% [markdown]
# ## References
# - A. Vaswani et al. (2017). *Attention is all you need*, section 3.2.2.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - J.-B. Cordonnier, A. Loukas, M. Jaggi (2020). *Multi-head attention: collaborate instead of
#   concatenate.* [arXiv:2006.16362](https://arxiv.org/abs/2006.16362)
# - N. Elhage et al. (2021). *A mathematical framework for Transformer circuits.*
#   [transformer-circuits.pub](https://transformer-circuits.pub/2021/framework/index.html)
# - E. Voita et al. (2019). *Analyzing multi-head self-attention: specialized heads do the heavy
#   lifting, the rest can be pruned.* [arXiv:1905.09418](https://arxiv.org/abs/1905.09418)
# - N. Shazeer (2019). *Fast Transformer decoding: one write-head is all you need.*
#   [arXiv:1911.02150](https://arxiv.org/abs/1911.02150)
# - J. Ainslie et al. (2023). *GQA: training generalized multi-query Transformer models from
#   multi-head checkpoints.* [arXiv:2305.13245](https://arxiv.org/abs/2305.13245)
