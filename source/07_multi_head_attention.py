# %% [markdown]
# # 07 · Why several at once?
#
# A head makes one average per position. A word that needs two things at once, its subject and its
# verb, gets a mixture of both. Several smaller heads side by side have as many parameters as one
# large head, and each may look somewhere else.
#
# **After this lesson** you can
# - **split** vectors into heads and **merge** them again, and see why a `view` is not enough,
# - write **multi-head attention**, equal to PyTorch's layer for self- and cross-attention,
# - say what each head **adds** to the output, and what more heads cost,
# - **share** keys among heads, for a smaller cache,
# - show how few directions trained heads use (★ and let them **collaborate**).
#
# **Time** 90 minutes, ★ 20 more · **Points** 18 · **GPU** not needed · **You need** lessons 05 and
# 06

# %%
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.experiments import multi_head_attention as experiments
from attention.experiments import recorded
from attention.masked_attention import causal_mask, masked_attention
from attention.provided import demand
from attention.provided.figures import plots
from attention.provided.measuring import memory
from attention.provided.predictions import compare
from attention.provided.training_steps import fewer
from attention.scaled_dot_product_attention import SelfAttentionHead
from autograder import check

# %% [markdown]
# ## What fails without this idea
# One query should fetch **two** values: those of keys 0 and 3. Give it the best weights that there
# are, half and half:

# %%
values = torch.tensor([[4.0, 0.0], [9.0, 9.0], [7.0, 1.0], [0.0, 6.0]])
one_head = 0.5 * values[0] + 0.5 * values[3]
print("one head:", one_head.tolist(), "- could as well be half of (1, 5) and half of (3, 1)")
two_heads = torch.cat([values[0], values[3]])
print("two heads, side by side:", two_heads.tolist())

# %% [markdown]
# An average forgets what it was made of. No choice of weights helps: the context is one point in
# the convex hull of the values (lesson 01).
#
# ## The idea
# Run several attentions in parallel, each with projections of its own, and put their contexts side
# by side. To keep the number of parameters, each works in fewer dimensions: with *H* heads,
# $d_\text{head} = d_\text{model} / H$. A last projection, $W_o$, turns every context into an
# **update** of full length, and the output is the sum of the updates.
#
# ![Query, key and value pass through W_q, W_k and W_v and are split into three heads. Each head
# attends by itself, and its context times its own rows of W_o is its update. The three updates are
# added up.](figures/multi_head.svg)
#
# $$\text{MultiHead}(q, k, v) = \text{Concat}(\text{head}_1, \dots, \text{head}_H)\,W_o
# = \sum_{h=1}^{H} \text{head}_h\, W_o^h, \qquad
# \text{head}_h = \text{Attention}(q W_q^h,\; k W_k^h,\; v W_v^h)$$
#
# $W_o^h$ are the rows of $W_o$ that head *h* meets: d_head of them. So inside a layer no head
# learns what another has found; only the next layer reads the sum.
#
# | quantity | shape | in the paper's base model |
# |---|---|---|
# | `query`; `key`, `value` | `(B, T_q, d_model)`; `(B, T_k, d_model)` | d_model = 512 |
# | projected and split | `(B, H, T, d_head)` | 8 heads of 64 |
# | weights | `(B, H, T_q, T_k)` | 8 tables for each sequence |
# | merged | `(B, T_q, H · d_head)` | 8 · 64 = 512 |
# | output | `(B, T_q, d_model)` | 512 |
#
# No loop over heads is needed: all $W_q^h$ stand side by side in one matrix, and the heads are an
# axis like the batch.
#
# By hand, one query and one key with two heads. Each head scores its own half of the features:

# %%
q_by_hand, k_by_hand = [1.0, 2.0, 0.0, 3.0], [2.0, 1.0, 5.0, 1.0]
for h in range(2):
    part = slice(2 * h, 2 * h + 2)
    score = sum(a * b for a, b in zip(q_by_hand[part], k_by_hand[part], strict=True)) / math.sqrt(2)
    print(f"head {h}: q {q_by_hand[part]} · k {k_by_hand[part]} / √2 = {score:.2f}")

# %% [markdown]
# ## Splitting and merging
# ### Exercise 7.1 · `split_heads`
# ●●○ medium · 8 minutes · 2 points
#
# `(B, T, d_model)` becomes `(B, H, T, d_head)`. Head *h* gets the features *h* · d_head to
# (*h* + 1) · d_head − 1 of **every** position. The test of the sizes is given.
#
# ![Left: four positions with six features. Middle: three heads, each with two features of all four
# positions. Right: a view alone has the same shape, but each "head" holds neighbouring numbers of
# two positions.](figures/split_heads.svg)
#
# <details><summary>Hint 1 · the idea</summary>
#
# The last axis is what is cut. Cut it first, then bring the axes into order. A reshape keeps the
# order in which the numbers are read; only a transpose changes it.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(B, T, d_model)` → `(B, T, H, d_head)` → `(B, H, T, d_head)`
# </details>
# <details><summary>Hint 3 · “RuntimeError: view size is not compatible …”</summary>
#
# A `view` that only splits the last axis never fails. Yours does something else; `reshape` would
# silence the error, and the values would stand in the wrong places.
# </details>

# %% exercise="split_heads"
from attention.multi_head_attention import split_heads

# %% check="split_heads" points=2
check.split_heads(split_heads)

# %% [markdown]
# ### Break it
# The common mistake has the right shape and trains without any error message. What does the check
# say?


# %% demo=true
def only_a_view(x, n_heads):
    B, T, d_model = x.shape
    if d_model % n_heads:
        raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
    return x.reshape(B, n_heads, T, d_model // n_heads)


check.preview("split_heads", only_a_view)

# %% [markdown]
# With it every “head” is attention *within* a few positions. And once the heads are merged,
# position 0 holds numbers of later positions: in a causal model that is a leak, as the test of
# lesson 06 would show.
#
# ### Exercise 7.2 · `merge_heads`
# ●○○ easy · 5 minutes · 1 point
#
# The inverse: `(B, H, T, d_head)` becomes `(B, T, H · d_head)`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The same two steps in reverse. Before heads and features can be joined, they must be neighbours.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(B, H, T, d_head)` → `(B, T, H, d_head)` → `(B, T, H · d_head)`
# </details>

# %% exercise="merge_heads"
from attention.multi_head_attention import merge_heads

# %% check="merge_heads" points=1
check.merge_heads(merge_heads)

# %% [markdown]
# ## The layer
# The attention between the heads' queries and keys is that of lesson 06, with dropout on the
# weights. With `fused=True` it is PyTorch's fused attention, which computes the same in tiles and
# stores no `(T_q, T_k)` table (but for dropout in training on a CPU). Train with it, and use the
# other one to look at the weights.

# %% given="attend"
from attention.multi_head_attention import attend

# %% [markdown]
# ### Exercise 7.3 · `MultiHeadAttention`
# ●●● hard · 25 minutes · 5 points
#
# In stages, each earned by itself: without a mask (2), with a mask (1), with `head_mask` (1), with
# dropout, `fused` and `return_weights` (1).
#
# Write the projections and `forward`. The sizes, the mask's axis for the heads and the choice of
# the way are given. Three points to mind:
# - **splitting and merging**: if your `split_heads` and `merge_heads` are right, `forward` may call
#   them. Or write a line for each: `unflatten(-1, heads)` splits an axis in two, `flatten(2)` joins
#   all axes from 2 on;
# - **dropout** belongs to training: `self.training` is False after `eval()`, but `attend` cannot
#   know;
# - **`head_mask`** multiplies each head's context by a number: 1 keeps the head, 0 silences it.
#   Lesson 17 uses it to find out which heads matter.
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
# <details><summary>Hint 3 · a smaller step</summary>
#
# Write it for one head first: project three times, `attend`, `W_o`. Then: where must each
# projection be split, and where the context merged? What does a gate of shape `(H,)` have to become
# to line up with `(B, H, T_q, d_head)`?
# </details>
# <details><summary>Hint 4 · “the module has other parameters”</summary>
#
# Four layers `nn.Linear` from d_model to d_model, with bias, named `W_q`, `W_k`, `W_v` and `W_o`.
# `self.dropout` is a number, not a layer.
# </details>

# %% exercise="MultiHeadAttention"
from attention.multi_head_attention import MultiHeadAttention

# %% check="MultiHeadAttention" points=5
check.MultiHeadAttention(MultiHeadAttention)

# %% [markdown]
# The check has compared it with `nn.MultiheadAttention`. It also equals a **loop over single
# heads** of lesson 05, each with its slice of the weights, and PyTorch's fused attention:

# %% demo=true
torch.manual_seed(0)
layer, x = MultiHeadAttention(d_model=12, n_heads=3).eval(), torch.randn(2, 5, 12)
for name in ("W_q", "W_k", "W_v"):
    nn.init.zeros_(getattr(layer, name).bias)  # the heads of lesson 05 have none
contexts = []
with torch.no_grad():
    for h in range(3):
        head = SelfAttentionHead(d_model=12, d_head=4)
        for name in ("W_q", "W_k", "W_v"):
            getattr(head, name).weight.copy_(getattr(layer, name).weight[4 * h : 4 * h + 4])
        contexts.append(head(x, causal_mask(5)))
    looped = layer.W_o(torch.cat(contexts, dim=-1))
    ours = layer(x, x, x, causal_mask(5))
    layer.fused = True
    fused = layer(x, x, x, causal_mask(5))
print("equals a loop over heads:", torch.allclose(ours, looped, atol=1e-6))
print("equals fused attention:  ", torch.allclose(ours, fused, atol=1e-6))

# %% [markdown]
# ## What each head adds
# ### Exercise 7.4 · `head_updates`
# ●●○ medium · 8 minutes · 2 points
#
# Take the sum apart. Compute, from the heads' contexts and $W_o$, the update of every head:
# `(B, H, T, d_model)`. $W_o$ is as in the formula, with a row for each merged feature.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Merged, the contexts of a position are H · d_head numbers. Which rows of $W_o$ do those of head
# *h* meet in the product?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Cut into heads, $W_o$ is `(H, d_head, d_model)`. A product of `(B, H, T, d_head)` with it pairs
# head with head.
# </details>

# %% exercise="head_updates"
from attention.multi_head_attention import head_updates

# %% check="head_updates" points=2
check.head_updates(head_updates)

# %% demo=true
with torch.no_grad():
    updates = head_updates(torch.stack(contexts, dim=1), layer.W_o.weight.T)  # (2, 3, 5, 12)
    print("sum and bias: ", torch.allclose(updates.sum(dim=1) + layer.W_o.bias, ours, atol=1e-6))
    without = layer(x, x, x, causal_mask(5), head_mask=torch.tensor([1.0, 0.0, 1.0]))
print("without head 1:", torch.allclose(ours - without, updates[:, 1], atol=1e-6))

# %% [markdown]
# A gate of 0 takes one update out of the sum and leaves the others as they are. (PyTorch keeps
# $W_o$ transposed, hence the `.T`.)
#
# ### Predict first
# Now the problem of the beginning, learned. Eight items stand in a row. Each has a *name*, a
# *content* of four numbers, and the names of **two items**, whose contents it must report (drawn at
# random: in one of eight cases both are the same). We train one layer with 1, 2 and 4 heads. All
# have the same number of parameters. Always saying 0 has a loss of 1; where will one head end?

# %%
prediction = None  # the loss of one head, from 0 to 1; None skips this

# %% demo=true
threads = torch.get_num_threads()
torch.set_num_threads(1)  # such small matrices are faster on one core
trained, curves = {}, {}
for n_heads in (1, 2, 4):
    torch.manual_seed(0)
    layer, read_out = MultiHeadAttention(28, n_heads), nn.Linear(28, 8)
    at_first = copy.deepcopy(layer)
    losses = experiments.train(layer, read_out, seed=0, steps=fewer(240, most=20))
    trained[n_heads] = layer, read_out
    curves[f"heads: {n_heads}"] = losses
    print(f"heads: {n_heads}   loss of the last 10 steps: {sum(losses[-10:]) / 10:.3f}")
torch.set_num_threads(threads)
ax = plots.lines(range(len(losses)), curves, xlabel="step", ylabel="loss")
bottom = ax.set_ylim(bottom=0)
compare(prediction, sum(curves["heads: 1"][-10:]) / 10, "loss of one head")

# %% [markdown]
# *Loss against training step for 1, 2 and 4 heads: one head stops at nearly half of the variance,
# two and four come near 0.* One head with 28 dimensions can fetch one content, or a weighted sum of
# two. The mean of two explains half of their variance, and all of it where both are the same, so
# that 7/16 = 0.44 remains. Two heads with 14 dimensions fetch both. Then the more the better? Three
# seeds, up to 28 heads of one dimension:

# %% demo=true
rows = recorded.read("multi_head_attention", "how many heads")
counts = sorted({row["n_heads"] for row in rows})
ax = plots.panels(width=5.2, height=2.6)
for seed in (0, 1, 2):
    losses = [row["loss"] for row in rows if row["seed"] == seed]
    ax.plot(counts, losses, "o-", color=plots.BLUE, linewidth=1, markersize=4)
ax.set(xscale="log", xticks=counts, xticklabels=[f"{n}\n{28 // n}" for n in counts], ylim=(0, None))
ax.minorticks_off()
label = ax.set(xlabel="heads (above) and d_head (below)", ylabel="loss of the last 10 steps")
print({n: [row["loss"] for row in rows if row["n_heads"] == n] for n in counts})

# %% [markdown]
# *Loss after 240 steps against the number of heads, one line for each of three seeds (recorded).*
# From two to seven heads the task is solved. With 14 heads of two dimensions a loss of 0.04 to 0.07
# remains, with 28 heads of one dimension 0.31 to 0.39.
#
# Where do the two heads look?

# %% demo=true
x, _ = experiments.two_pointers(1, torch.Generator().manual_seed(3))
names, first, second = (x[0, :, 8 * i : 8 * i + 8].argmax(dim=1).tolist() for i in range(3))
with torch.no_grad():
    _, weights = trained[2][0](x, x, x, return_weights=True)  # (1, 2, 8, 8)
axes = plots.panels(columns=2, width=3.6, height=3.2)
for h, ax in enumerate(axes):
    asks = [f"asks {a} and {b}" for a, b in zip(first, second, strict=True)]
    plots.heatmap(weights[0, h], ax, f"head {h}", queries=asks, keys=names, colorbar=h == 1)
    ax.set(xlabel="keys: name of the item", ylabel="")
hits = {}
for label, wanted in (("first", first), ("second", second)):
    where = torch.tensor([names.index(name) for name in wanted])
    hits[label] = [round(weights[0, h, range(8), where].mean().item(), 2) for h in range(2)]
print("mean weight of heads 0 and 1 on the item asked for:", hits)

# %% [markdown]
# *Weights of the two heads on one sequence: in each row, one head looks at the first item asked for
# and the other at the second.*
#
# ### Break it
# Silence one of the heads: its update is gone. Which of the two reports will suffer, and how much?

# %% demo=true
for gates in ([1.0, 1.0], [0.0, 1.0], [1.0, 0.0]):
    two_reports = experiments.errors(*trained[2], torch.tensor(gates))
    print(f"gates {gates}   error of the two reports:", [round(e, 2) for e in two_reports])
experiments.show_silenced(recorded.read("multi_head_attention", "a head silenced"))

# %% [markdown]
# Above, the layer trained here; below, ten of each kind (recorded). With two heads, the report that
# the silent one fetched is lost (always saying 0 has an error of 1). The error of the other stays
# below 0.05, but in one layer of ten it rises to 0.17. With four heads, each of the ten layers has
# one that is hardly missed. Voita and colleagues (2019) found both in trained translators: heads
# with a task, for the neighbouring token, for syntax, for rare words, and many that can be removed
# at little cost (lesson 17).
#
# ## How large is it?
# Four linear layers from 512 to 512, as in the paper's base model, have 1 048 576 weights and 2048
# biases, whatever the number of heads: in parameters heads are free.
#
# ### Predict first
# And in megabytes? Each head has its own table of weights. How many times as many does the layer
# allocate with 16 heads as with one, for 512 positions and *d*_model = 64?

# %%
prediction = None  # a factor; None skips this

# %% demo=true
x, allocated = torch.randn(1, 512, 64), {"weights stored": [], "fused": []}
for name, fused in (("weights stored", False), ("fused", True)):
    for n_heads in (1, 2, 4, 8, 16):
        layer = MultiHeadAttention(64, n_heads, fused=fused).eval()
        allocated[name].append(memory.megabytes(lambda layer=layer: layer(x, x, x)))
ax = plots.lines((1, 2, 4, 8, 16), allocated, xlabel="heads", ylabel="MB allocated")
ax.set_xticks((1, 2, 4, 8, 16))
bottom = ax.set_ylim(bottom=0)
for name, megabytes in allocated.items():
    print(f"{name:<15} MB for 1 to 16 heads:", [round(mb, 1) for mb in megabytes])
compare(prediction, allocated["weights stored"][-1] / allocated["weights stored"][0], "factor")

# %% [markdown]
# *Megabytes that one call allocates, all its tensors added, against the number of heads; the
# parameters are the same at each.* The tables are *H* · T_q · T_k numbers, and soon they are nearly
# all there is. Fused attention does not store them here, so there heads cost no space either.
#
# ## Do the heads ask different questions?
# The scores of head *h*, scale and biases aside, are $x\,W_q^h W_k^{h\top} x^\top$. The matrix
# $W_q^h W_k^{h\top}$ is (d_model, d_model), but of rank d_head at most. All heads together have
# d_model directions. Do they use them?
#
# ### Exercise 7.5 · `captured_variance`
# ●●○ medium · 8 minutes · 2 points
#
# A matrix acts more strongly in some directions than in others: these strengths are its singular
# values. Return, for every *i*, the share of the sum of all squared singular values that the *i* +
# 1 largest have.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Squares, running sum, divided by the total. `torch.linalg.svdvals` returns the singular values,
# largest first.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# For `(..., m, n)` there are `min(m, n)` singular values. The total needs its axis kept, so that
# every matrix is divided by its own.
# </details>

# %% exercise="captured_variance"
from attention.multi_head_attention import captured_variance

# %% check="captured_variance" points=2
check.captured_variance(captured_variance)

# %% [markdown]
# How many of its 7 directions does each of the four trained heads use, and how many of the 28 do
# they use together? As a control, the layer before its training:

# %% demo=true
with torch.no_grad():
    curves = {}
    for name, layer in (("trained", trained[4][0]), ("before training", at_first)):
        W_q, W_k = layer.W_q.weight, layer.W_k.weight  # (28, 28)
        each = captured_variance(W_q.view(4, 7, 28).mT @ W_k.view(4, 7, 28))[:, :7]  # (4, 7)
        curves[name] = each.mean(dim=0), captured_variance(W_q.T @ W_k)
axes = plots.panels(columns=2, width=3.6, height=2.8, share=False)
for name, (each, together) in curves.items():
    axes[0].plot(range(1, 8), each, label=name)
    axes[1].plot(range(1, 29), together, label=name)
axes[0].set(title="each head: 7 at most (mean)", ylabel="captured variance", ylim=(0, 1.05))
axes[1].set(title="all heads together: 28 at most", ylim=(0, 1.05))
line = axes[1].axvline(7, color=plots.GREY, linestyle="--", linewidth=1.2)
plots.legend(axes[1], fontsize=8, loc="lower right")
print("share of the 7 strongest directions of all heads together (recorded, seeds 0 to 2):")
for n_heads in (1, 2, 4):
    mine = [(row["before"], row["after"]) for row in rows if row["n_heads"] == n_heads]
    print(f"heads: {n_heads}   before and after training:", mine)

# %% [markdown]
# *Captured variance against the number of directions. Left: the single heads, which spread over
# several of their 7. Right: all heads together, whose curve reaches 1 at 7 of 28 (dashed) after
# training, and only near 20 before it.* Together they use few directions, but so does one head
# alone, as the printed numbers show: the **task** needs no more. Eight names need seven directions,
# because a number added to all scores of a row changes no weight. Cordonnier and colleagues report
# the like of BERT: no head has a low rank by itself, but all together have.

# %% [markdown]
# ## Fewer keys to remember
# When a model writes a text, it keeps the keys and values of all tokens so far: the *KV cache*.
# For long texts it can outgrow the model itself. **Grouped-query attention** lets groups of query
# heads share one head of keys and values; **multi-query attention** has a single one for all.
#
# ### Exercise 7.6 · `share_heads`
# ●○○ easy · 5 minutes · 2 points
#
# Hand out the `H_kv` heads of keys (or values) to `n_heads` query heads. Neighbours share: of 3
# heads of keys, 6 query heads get 0, 0, 1, 1, 2, 2.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Each head is repeated n_heads / H_kv times, where it stands.
# </details>
# <details><summary>Hint 2 · the functions</summary>
#
# `repeat` puts copies of the whole tensor one after the other: 0, 1, 2, 0, 1, 2. There is another
# one, which repeats each entry of an axis in place; lesson 06 used it for BigBird's blocks.
# </details>

# %% exercise="share_heads"
from attention.multi_head_attention import share_heads

# %% check="share_heads" points=2
check.share_heads(share_heads)

# %% [markdown]
# ### Exercise 7.7 · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate has tried this with one head of keys for all, and with as many as there are query
# heads. Both results were right.

# %% broken="repeats_the_whole"
from autograder.mistakes.multi_head_attention import repeats_the_whole

# %% [markdown]
# Write a function without arguments that returns an input `(x, n_heads)` on which it is wrong.
#
# <details><summary>Hint 1 · the idea</summary>
#
# For 2 heads of keys and 4 of queries, write down by hand which query head gets which keys, in your
# function and in this one.
# </details>
# <details><summary>Hint 2 · “here … is right: … gives the same”</summary>
#
# An exchange shows only if what is exchanged differs: are the heads of your `x` different?
# </details>

# %% exercise="break_share_heads"
from attention.multi_head_attention import break_share_heads

# %% check="break_share_heads" points=1
check.break_share_heads(break_share_heads)

# %% demo=true
layers, n_heads, d_head, T = 32, 32, 128, 8192
print(f"{layers} layers, {n_heads} query heads of {d_head}, {T} tokens, 2 bytes a number:")
for name, H_kv in (("multi-head", 32), ("grouped-query", 8), ("multi-query", 1)):
    kept = 2 * layers * H_kv * T * d_head * 2  # keys and values
    print(f"  {name:<14} {H_kv:2d} heads of keys   {kept / 2**20:6,.0f} MiB for one text")
k = torch.randn(1, 8, T, d_head)
shared = share_heads(k, n_heads)
for name, keys in (("cached:", k), ("handed out:", shared)):
    print(f"  {name:<12}keys {tuple(keys.shape)}   {keys.nbytes / 2**20:.0f} MiB at 4 bytes")

# %% [markdown]
# Only the small tensor is cached, and the large one need not be built either:
# `F.scaled_dot_product_attention(…, enable_gqa=True)` takes keys and values of fewer heads.
#
# ## Limits
# Several heads fetch several things, but each still makes an average. How many are needed depends
# on the task. That they *may* look at different things does not mean that they do. And what a head
# looks at is not yet what the model does with it (lesson 17).
#
# ## Summary
# One head makes one average per position; several, side by side, fetch several things at once, with
# the same number of parameters but a table of weights for each. The output is the sum of one update
# for each head, its context times its rows of $W_o$.
# Groups of heads can share their keys and values, which makes the cache smaller.
#
# **Next** [08 · What are the rows of X?](../08_tokens_and_positions/08_tokens_and_positions.ipynb)
# They become tokens with positions: attention alone does not know the order of the words.
#
# ## Open questions
# 1. One head stops at nearly half of the variance. Is it a matter of time? Train it four times as
#    long: `experiments.train(layer, read_out, seed=0, steps=960)`.
# 2. Replace `W_o` by the identity (`layer.W_o.weight.data = torch.eye(28)`, and keep it out of the
#    training with `requires_grad_(False)`). Is it needed here, where a read-out follows?

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# 1. No: after 960 steps its loss is 0.44 for seeds 0 to 2; after 240 it was 0.43 to 0.45. A
#    weighted sum of two contents cannot be taken apart again.
# 2. Not here: two heads end at a loss below 0.002 for seeds 0 to 2, without it and with it. The
#    read-out is a matrix over all heads as well, and two linear maps in a row are one. In a
#    Transformer the sum goes back to the residual stream (lesson 09): there `W_o` says where in it
#    each head writes.
#
# </details>

# %% [markdown]
# ## ★ Let them collaborate
# ### Exercise 7.8 · `collaborative_heads` ★
# ●●● hard · 15 minutes · 3 points
#
# In stages, each earned by itself: one head (1), several heads (1), the scale (1).
#
# If the heads need the same features, let them **share** queries and keys of a smaller width, and
# give each head a *mixing vector* $m_h$ that says how much it listens to each shared feature:
#
# $$\text{score}_h = \frac{(x\,\tilde W_q)\,\text{diag}(m_h)\,(y\,\tilde
# W_k)^\top}{\sqrt{d_\text{head}}}$$
#
# With $m_h$ = 1 on the features of head *h* and 0 elsewhere this is ordinary multi-head attention.
# So it is a generalisation, and it can be narrower: the paper reports queries and keys of a quarter
# of the size at equal accuracy.
#
# <details><summary>Hint 1 · the idea</summary>
#
# For each head: weigh the features of the queries, then the usual product with the keys. `einsum`
# says it in one line: a sum over the shared feature of three factors.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(B, T_q, D)`, `(H, D)` and `(B, T_k, D)` become `(B, H, T_q, T_k)`: D is summed away. The values
# `(B, H, T_k, d_v)` have one table per head already.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Which letters has `einsum` on its left side, which of them does the result keep, and which is
# summed away?
# </details>

# %% exercise="collaborative_heads"
from attention.multi_head_attention import collaborative_heads

# %% check="collaborative_heads" points=3
check.collaborative_heads(collaborative_heads)

# %% demo=true
torch.manual_seed(1)
q, k, v = torch.randn(2, 5, 12), torch.randn(2, 7, 12), torch.randn(2, 3, 7, 4)
blocks = torch.kron(torch.eye(3), torch.ones(1, 4))  # (H, d_model): head h listens to its own part
print(blocks.int())
apart = [
    masked_attention(q[..., 4 * h : 4 * h + 4], k[..., 4 * h : 4 * h + 4], v[:, h])
    for h in range(3)
]
same = torch.allclose(collaborative_heads(q, k, v, blocks, 4), torch.stack(apart, 1), atol=1e-6)
print("equals ordinary heads:", same)
for shared in (512, 256, 128):
    count = 2 * 512 * shared + 8 * shared
    print(f"queries and keys of 8 heads, shared width {shared:3d}: {count:9,d} parameters")

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
