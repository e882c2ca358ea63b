# %% [markdown]
# # 07 · Why several at once?
#
# A head makes one average per position. A word that needs two things at once, its subject and its
# verb, gets a mixture of both. Several smaller heads side by side cost the same, and each may look
# somewhere else.
#
# **After this lesson** you can
# - **split** vectors into heads and **merge** them again, and see why a `view` is not enough,
# - write **multi-head attention**, equal to PyTorch's layer for self- and cross-attention,
# - count its parameters, and the memory that sharing keys among heads saves,
# - show that trained heads overlap, and let them **collaborate** instead.
#
# **Time** 100 minutes · **Points** 17 · **GPU** not needed · **You need** lessons 05 and 06

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided import plots
from attention.masked_attention import causal_mask, masked_attention
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
# by side. To keep the cost, each works in fewer dimensions: with *H* heads, $d_\text{head} =
# d_\text{model} / H$. A last projection, $W_o$, lets the heads speak to each other.
#
# ![Query, key and value pass through W_q, W_k and W_v, are split into three heads, attended to by
# each head separately, merged, and passed through W_o.](figures/multi_head.svg)
#
# $$\text{MultiHead}(q, k, v) = \text{Concat}(\text{head}_1, \dots, \text{head}_H)\,W_o, \qquad
# \text{head}_h = \text{Attention}(q W_q^h,\; k W_k^h,\; v W_v^h)$$
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
# By hand, one vector with two heads. Each head scores its own half of the features:

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
# positions. Right: a view alone has the same shape, but each "head" holds all features of one or
# two positions.](figures/split_heads.svg)
#
# <details><summary>Hint 1 · the idea</summary>
#
# The last axis is what is cut. Cut it first, then bring the axes into order. A reshape never moves
# a number in memory; only a transpose changes which numbers are neighbours.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(B, T, d_model)` → `(B, T, H, d_head)` → `(B, H, T, d_head)`
# </details>
# <details><summary>Hint 3 · “RuntimeError: view size is not compatible …”</summary>
#
# `view` needs numbers that lie one after the other in memory. `reshape` copies if it must.
# </details>

# %% exercise="split_heads"
from attention.multi_head_attention import split_heads

# %% check="split_heads" points=2
check.split_heads(split_heads)

# %% [markdown]
# ### Break it
# The popular mistake has the right shape and trains without any error message. What does the check
# say?


# %% demo=true
def only_a_view(x, n_heads):
    B, T, d_model = x.shape
    if d_model % n_heads:
        raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
    return x.reshape(B, n_heads, T, d_model // n_heads)


check.preview("split_heads", only_a_view)

# %% [markdown]
# A model with it does learn a little: every “head” is then attention *within* a few positions. And
# once the heads are merged, position 0 holds numbers of later positions: in a causal model that is
# a leak, as the test of lesson 06 would show.
#
# ### Exercise 7.2 · `merge_heads`
# ●○○ easy · 5 minutes · 1 point
#
# The way back: `(B, H, T, d_head)` becomes `(B, T, H · d_head)`.
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
# weights. With `fused=True` PyTorch's kernel does it: it computes the same in tiles, and never
# stores a `(T_q, T_k)` table. Train with it, and use the other one to look at the weights.

# %% given="attend"
from attention.multi_head_attention import attend

# %% [markdown]
# ### Exercise 7.3 · `MultiHeadAttention`
# ●●● hard · 25 minutes · 5 points
#
# Write the projections and `forward`. The sizes, the mask's axis for the heads and the choice of
# the kernel are given. Three points to mind:
# - **split and merge inside `forward`**, one line each, rather than with your functions from above:
#   so a mistake there is not paid for twice. `unflatten(-1, heads)` splits an axis in two,
#   `flatten(2)` joins all axes from 2 on;
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
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# q, k, v = each input through its own projection, split, heads before positions
# probability = self.dropout in training, else 0
# context, weights = attend(q, k, v, mask, probability, fused)
# if there is a head_mask: multiply the context by it, lined up with the heads
# output = W_o of the merged context
# return the output, or the pair
# ```
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
# heads** of lesson 05, each with its slice of the weights, and PyTorch's kernel:

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
print("equals the fused kernel: ", torch.allclose(ours, fused, atol=1e-6))

# %% [markdown]
# ### Predict first
# Now the problem of the beginning, learned. Eight items stand in a row. Each has a *name*, a
# *content* of four numbers, and the names of **two other items**, whose contents it must report. We
# train one layer with 1, 2 and 4 heads. All have the same number of parameters. Which will do it?


# %% demo=true
def pointers(batch, generator, T=8):
    """Return items (B, T, 28) and the contents (B, T, 8) of the two items that each points at."""
    names = torch.rand(batch, T, generator=generator).argsort(dim=1)
    first, second = torch.randint(T, (2, batch, T), generator=generator)
    content = torch.randn(batch, T, 4, generator=generator)
    place = names.argsort(dim=1)  # where each name stands
    x = torch.cat([*(F.one_hot(n, T) for n in (names, first, second)), content], dim=-1)
    found = [place.gather(1, n)[..., None].expand(-1, -1, 4) for n in (first, second)]
    return x, torch.cat([content.gather(1, n) for n in found], dim=-1)


def train(n_heads, steps=240):
    """Train one layer and a linear read-out; return both, and the losses."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    layer, read_out = MultiHeadAttention(28, n_heads), nn.Linear(28, 8)
    parameters = [*layer.parameters(), *read_out.parameters()]
    optimizer, losses = torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.0), []
    for _ in range(steps):
        x, y = pointers(32, generator)
        loss = (read_out(layer(x, x, x)) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return layer, read_out, losses


# %% demo=true
threads = torch.get_num_threads()
torch.set_num_threads(1)  # such small matrices are faster on one core
trained, curves = {}, {}
for n_heads in (1, 2, 4):
    *trained[n_heads], losses = train(n_heads)
    curves[f"{n_heads} head" + "s" * (n_heads > 1)] = torch.tensor(losses).unfold(0, 10, 5).mean(1)
    print(f"heads: {n_heads}   loss of the last 10 steps: {sum(losses[-10:]) / 10:.3f}")
torch.set_num_threads(threads)
ax = plots.lines(range(5, 236, 5), curves, xlabel="step", ylabel="loss")
bottom = ax.set_ylim(bottom=0)

# %% [markdown]
# *Loss against training step (means of ten) for 1, 2 and 4 heads: one head stops at nearly half of
# the variance, two and four reach 0.* One head with 28 dimensions can fetch one content, or the
# average of two. Two heads with 14 dimensions fetch both.
#
# Where do the two heads look?

# %% demo=true
x, _ = pointers(1, torch.Generator().manual_seed(3))
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
# and the other at the second.* Nobody told them to share the work.
#
# ### Break it
# Silence one of the two heads with a gate of 0. Which of the two reports will suffer, and how much?

# %% demo=true
layer, read_out = trained[2]
x, y = pointers(200, torch.Generator().manual_seed(4))
for gates in ([1.0, 1.0], [0.0, 1.0], [1.0, 0.0]):
    with torch.no_grad():
        output = layer(x, x, x, head_mask=torch.tensor(gates))
        errors = (read_out(output) - y).square().unflatten(-1, (2, 4)).mean(dim=(0, 1, 3))
    print(f"gates {gates}   error of the two reports:", [round(e, 2) for e in errors.tolist()])

# %% [markdown]
# The report that the silent head had fetched is lost (an error of 1 is that of always saying 0),
# and the other stays nearly as good as it was. In trained language models one also finds heads
# with a task, for the previous token, for syntax, for rare words, and many whose silence hardly
# shows (lesson 17).
#
# ## How large is it?
# ### Exercise 7.4 · `attention_parameters`
# ●○○ easy · 6 minutes · 2 points
#
# Count the parameters of the layer. In general `n_heads · d_head` need not be `d_model`: then the
# first three projections lead from one to the other, and `W_o` leads back.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A linear layer from *a* to *b* has *a* · *b* weights and *b* biases.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `W_q`, `W_k`, `W_v`: from `d_model` to `n_heads · d_head`. `W_o`: from there to `d_model`. Which
# of them has a bias of which length?
# </details>

# %% exercise="attention_parameters"
from attention.multi_head_attention import attention_parameters

# %% check="attention_parameters" points=2
check.attention_parameters(attention_parameters)

# %% demo=true
for n_heads, d_head in ((1, 512), (8, 64), (64, 8)):
    count = attention_parameters(512, n_heads, d_head)
    print(f"{n_heads:2d} · {d_head:3d}: {count:,} parameters")
print(f"without biases, as in the paper: {attention_parameters(512, 8, 64, bias=False):,}")

# %% [markdown]
# Heads are free: one large head has as many parameters as 64 small ones. (Too small they must not
# be: in 8 dimensions few keys can be told apart.)
#
# ## Do the heads ask different questions?
# The scores of head *h* are $x\,W_q^h W_k^{h\top} x^\top$. The matrix $W_q^h W_k^{h\top}$ is
# (d_model, d_model), but of rank d_head at most. All heads together have d_model directions. Do
# they use them?
#
# ### Exercise 7.5 · `captured_variance`
# ●●○ medium · 8 minutes · 2 points
#
# A matrix acts more strongly in some directions than in others: these strengths are its singular
# values. Return, for every *i*, the share of the sum of all squared singular values that the *i* +
# 1 largest have. If the curve reaches 1 early, the matrix has few directions that count.
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
# ### Predict first
# The trained layer with 4 heads of 7 dimensions has 28 directions in all. The items have names out
# of 8. How many directions does each head use of its 7, and how many do all heads use of the 28?

# %% demo=true
with torch.no_grad():
    W_q, W_k = (getattr(trained[4][0], name).weight for name in ("W_q", "W_k"))  # (28, 28)
    each = captured_variance(W_q.view(4, 7, 28).mT @ W_k.view(4, 7, 28))[:, :7]  # (4, 7)
    together = captured_variance(W_q.T @ W_k)  # (28,)
axes = plots.panels(columns=2, width=3.6, height=2.8, share=False)
plots.lines(range(1, 8), {f"head {h}": each[h] for h in range(4)}, axes[0], xlabel="directions")
plots.lines(range(1, 29), {"all heads": together}, axes[1], xlabel="directions")
axes[0].set(title="each head: 7 at most", ylabel="captured variance", ylim=(0, 1.05))
axes[1].set(title="all heads together: 28 at most", ylim=(0, 1.05))
line = axes[1].axvline(7, color=plots.GREY, linestyle="--", linewidth=1.2)
axes[0].legend(fontsize=8, loc="lower right")
print("share of the 7 strongest directions of all heads together:", round(together[6].item(), 3))

# %% [markdown]
# *Captured variance against the number of directions. Left: the single heads, each of which spreads
# over several of its 7. Right: all heads together, whose curve reaches 1 at 7 of 28 (dashed).*
# Single heads have a high rank, concatenated heads a low one: they ask with the same few features.
# Eight names need seven directions, for the eighth is what remains. Cordonnier and others found the
# same picture in BERT, a large trained model: no head has a low rank by itself, but the product of
# the concatenated projections has.
#
# ## Let them collaborate ★
# ### Exercise 7.6 · `collaborative_heads` ★
# ●●● hard · 15 minutes · 3 points
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
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# scores[b, h, i, j] = sum over d of q[b, i, d] · mixing[h, d] · k[b, j, d], over the root of d_head
# weights = softmax over the keys
# context = weights times v, head by head
# ```
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
# ## Fewer keys to remember
# When a model writes a text, it keeps the keys and values of all tokens so far: the *KV cache*.
# For long texts it outgrows the model itself. **Grouped-query attention** lets groups of query
# heads share one head of keys and values; **multi-query attention** has a single one for all.
#
# ### Exercise 7.7 · `share_heads`
# ●○○ easy · 5 minutes · 2 points
#
# Hand out the `H_kv` heads of keys (or values) to `n_heads` query heads. Neighbours share: with 6
# and 3 it is 0, 0, 1, 1, 2, 2.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Each head is repeated n_heads / H_kv times, where it stands.
# </details>
# <details><summary>Hint 2 · the functions</summary>
#
# `repeat` puts the whole tensor behind itself: 0, 1, 2, 0, 1, 2. There is another one, which
# repeats each entry of an axis in place; lesson 06 used it for BigBird's blocks.
# </details>

# %% exercise="share_heads"
from attention.multi_head_attention import share_heads

# %% check="share_heads" points=2
check.share_heads(share_heads)

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
# Only the small tensor is cached. A kernel made for it need not even make the large one: PyTorch
# leaves it the choice with `F.scaled_dot_product_attention(…, enable_gqa=True)`.
#
# ## Summary
# One head makes one average per position; several, side by side, fetch several things at once, at
# the same cost. Splitting cuts the features and then moves the heads before the positions, merging
# is the reverse, and $W_o$ lets the heads meet. Trained heads ask with overlapping features, so
# they can share queries and keys, or only the keys and values.
#
# **Next** In lesson 08 the rows of *x* become tokens with positions: attention alone does not know
# the order of the words.
#
# **References**
# - A. Vaswani et al. (2017). *Attention is all you need*, section 3.2.2.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - J.-B. Cordonnier, A. Loukas, M. Jaggi (2020). *Multi-head attention: collaborate instead of
#   concatenate.* [arXiv:2006.16362](https://arxiv.org/abs/2006.16362)
# - E. Voita et al. (2019). *Analyzing multi-head self-attention: specialized heads do the heavy
#   lifting, the rest can be pruned.* [arXiv:1905.09418](https://arxiv.org/abs/1905.09418)
# - N. Shazeer (2019). *Fast Transformer decoding: one write-head is all you need.*
#   [arXiv:1911.02150](https://arxiv.org/abs/1911.02150)
# - J. Ainslie et al. (2023). *GQA: training generalized multi-query Transformer models from
#   multi-head checkpoints.* [arXiv:2305.13245](https://arxiv.org/abs/2305.13245)
