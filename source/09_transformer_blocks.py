# %% [markdown]
# # 09 · What holds a deep stack together?
#
# One attention layer mixes the positions once. A translator needs many such layers, each working on
# what the one before has made. Stacked as they are, they hardly learn. Two simple ideas make the
# stack hold: a connection that skips every layer, and vectors that keep their size. Two more parts
# complete the layer: dropout, used only in training, and a small network applied at every position.
#
# **After this lesson** you can
# - measure the **gradient** that reaches every layer, and say why it fades,
# - write **residual connections** (skip connections) with dropout, and **LayerNorm**,
# - build the **encoder layer** and the **decoder layer** of the Transformer, equal to PyTorch's,
# - choose between **pre-norm** and **post-norm**, and say up to which learning rate each trained.
#
# **Time** 120 minutes · **Points** 21 · **GPU** not needed · **You need** lessons 06 and 07

# %%
import math
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from attention.experiments import recorded
from attention.experiments import transformer_blocks as experiments
from attention.masked_attention import causal_mask, combine_masks, padding_mask
from attention.multi_head_attention import Sublayers
from attention.provided import demand
from attention.provided.figures import plots, seeds
from attention.provided.models.attention_weights import watch_attention
from attention.provided.predictions import compare
from autograder import check

torch.set_num_threads(1)  # matrices as small as those of this lesson are faster on one core

# %% [markdown]
# ## What fails without this idea
# A gradient comes back through a stack layer by layer, and each layer multiplies it by its slope.
# Take layers of a single number. How much of a gradient of 1 is left after 48 of them?

# %%
for slope in (0.7, 0.9, 1.0, 1.1, 1.5):
    print(f"slope {slope}:  after 6 layers {slope**6:8.3f}   after 48 layers {slope**48:.1e}")

# %% [markdown]
# The gradient survives only if the slope is very near 1. A layer with random weights has no reason
# to have such a slope. Now let the layer compute an **update**, and add it to what came in:
#
# $$h_{l+1} = h_l + f_l(h_l), \qquad \frac{\partial h_{l+1}}{\partial h_l} = 1 + f_l'(h_l)$$
#
# The slope is 1 plus something. A layer that has learned nothing yet, $f_l \approx 0$, hands on
# everything that it gets, in both directions. This is a **residual connection**, or **skip
# connection**: the layer learns the difference, the residual, not the whole.
#
# ### Exercise 9.1 · `gradient_norms`
# ●●○ medium · 12 minutes · 3 points
#
# In stages, each earned by itself: the course without skip (1), the course with skip (1), the exact
# norms (1). (The course: all norms divided by that of the last layer.)
#
# Measure it in a real stack. Layer *l* turns $h$, of shape `(B, d_model)`, into $\tanh(h W_l)$, and
# with `skip` it adds $h$ to that. The loss is the mean of all squared numbers that leave the stack.
# Return, for every layer, the norm of the loss's gradient with respect to $W_l$.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Run the stack on a copy of the weights that records gradients, then ask
# `torch.autograd.grad(loss, weights)`. It returns a tuple with one tensor, as large as the weights.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The gradient is `(n_layers, d_model, d_model)`, and the norm of a layer's part is the root of the
# sum of its squares: one number for each layer, `(n_layers,)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# weights = a detached copy that requires a gradient
# h = x
# for each weight:
#     update = tanh of h times weight
#     h = the update, plus h if skip
# loss = mean of h squared
# gradient of the loss with respect to the weights
# return its norm, layer by layer
# ```
# </details>
# <details><summary>Hint 4 · “RuntimeError: element 0 of tensors does not require grad …”</summary>
#
# The stack was run on weights that record nothing. `requires_grad_()` makes a detached copy record;
# the loop has to use this copy.
# </details>

# %% exercise="gradient_norms"
from attention.transformer_blocks import gradient_norms

# %% check="gradient_norms" points=3
check.gradient_norms(gradient_norms)

# %% [markdown]
# ### Predict first
# 48 such layers of width 32, with random weights that shrink a vector to about 0.7 of its length.
# By which factor will the first layer's gradients with and without skip connections differ?

# %% demo=true
prediction = None  # a factor, such as 1e3; None skips this

# %% demo=true
stacks = []
for seed in range(3):
    torch.manual_seed(seed)
    stacks.append((torch.randn(16, 32), 0.7 * torch.randn(48, 32, 32) / math.sqrt(32)))
curves = {
    name: [gradient_norms(x, weights, skip).tolist() for x, weights in stacks]
    for name, skip in (("with skip connections", True), ("without", False))
}
ax = seeds.curves(curves, range(1, 49), plots.panels(width=6.5, height=3.0))
ax.set(xlabel="layer", ylabel="norm of the gradient", yscale="log")
plots.legend(ax, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
for name, runs in curves.items():
    print(f"{name:<22} first layer", *(f"{run[0]:.0e}" for run in runs), end="")
    print("   last layer", *(f"{run[-1]:.0e}" for run in runs))
with_skip, without = (sum(run[0] for run in runs) / 3 for runs in curves.values())
compare(prediction, with_skip / without, "first layer, with over without")

# %% [markdown]
# *Norm of the gradient in each of 48 layers, on a logarithmic scale: mean and band of three random
# stacks. With skip connections it lies between 5 and 50, without them below 10⁻¹³.* Without them
# the signal has faded on its way up, and the gradient again on its way down. With
# them, a gradient arrives at every layer.
#
# ## The idea
# A Transformer's layer consists of **sublayers**: an attention, then a small network for each
# position. Every one of them computes an update, which is added to the **residual stream**, the
# thick line. (That of an attention is itself the sum of its heads' updates, lesson 07.)
#
# ![Two encoder layers. A thick line leads from x to the output; attention and feed-forward network
# are detours, and their updates, after dropout, are added to the line. Above, post-norm: the two
# norms stand on the line, after each sum. Below, pre-norm: the norms stand at the beginning of the
# detours, and nothing but the sums is on the line.](figures/pre_and_post_norm.svg)
#
# The picture has three new parts: dropout before the sum, the norm, and the feed-forward network.
#
# $$\text{post-norm:}\quad x \leftarrow \text{norm}\big(x + \text{dropout}(f(x))\big)
# \qquad\qquad
# \text{pre-norm:}\quad x \leftarrow x + \text{dropout}\big(f(\text{norm}(x))\big)$$
#
# | name | what | shape | paper's base |
# |---|---|---|---|
# | `x` | the residual stream | `(B, T, d_model)` | d_model = 512 |
# | `update` | what a sublayer adds, $f(\cdot)$ | `(B, T, d_model)` | |
# | hidden units | inside the feed-forward network | `(B, T, d_ff)` | d_ff = 2048 |
# | `memory` | the encoder's output, for the decoder | `(B, T_k, d_model)` | |
#
# ## The skip connection, with dropout
# **Dropout** sets random entries of the update to 0 while the model trains, each with probability
# $p$. So no layer can rely on a single number of another. When the model is used, nothing is
# dropped. By hand, for $p = 0.25$ and an update of ones:

# %%
noise = [0.61, 0.08, 0.93, 0.30, 0.77, 0.15, 0.52, 0.99]  # an entry below 0.25 is dropped
kept = [0.0 if number < 0.25 else 1.0 for number in noise]
print("kept:          ", kept, "  mean", sum(kept) / 8)
print("divided by 3/4:", [round(k / 0.75, 2) for k in kept], "  mean", sum(kept) / 0.75 / 8)

# %% [markdown]
# Without the division the updates of the trained model would on average be a third larger in use
# than in training, in every layer.
#
# ### Exercise 9.2 · `Residual`
# ●○○ easy · 8 minutes · 2 points
#
# Return `x` plus the update: in training with dropout on the **update**, and what is kept divided
# by $1 - p$; after `eval()` a plain sum. The noise is an argument, so that nothing in the check is
# random.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The module knows its mode: `self.training` is True until someone calls `eval()`.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `noise >= self.p` is a table of True and False, as large as the update. Multiplied with numbers
# they count as 1 and 0.
# </details>
# <details><summary>Hint 3 · “… the noise 0.1, 0.2, 0.9, 0.19 the sum is wrong”</summary>
#
# `F.dropout` and `nn.Dropout` draw noise of their own. Here the noise is given: compare it with
# `self.p`.
# </details>
# <details><summary>Hint 4 · “the function changes its inputs”</summary>
#
# `update *= …` and `x += …` write into the tensors that you were given. Make new ones.
# </details>

# %% exercise="Residual"
from attention.transformer_blocks import Residual

# %% check="Residual" points=2
check.Residual(Residual)

# %% [markdown]
# ### Break it
# Forget `eval()`, and the model rolls dice while it is used. A stack of 12 updates, the same input
# four times:

# %% demo=true
residual, update = Residual(dropout=0.1), torch.full((6,), 0.1)
for mode in (True, False):
    residual.train(mode)
    torch.manual_seed(0)
    runs = []
    for _ in range(4):
        stream = torch.zeros(6)
        for _ in range(12):
            stream = residual(stream, update)
        runs.append(round(stream[0].item(), 2))
    print("training:  " if mode else "evaluation:", runs)

# %% [markdown]
# ## Vectors that keep their size
# A sum of many updates grows. Here are the sizes of the numbers in the stacks of the first figure:

# %% demo=true
for seed, (stream, weights) in enumerate(stacks):  # those above, whose layers add tanh(h W)
    sizes = []
    for matrix in weights:
        stream = stream + torch.tanh(stream @ matrix)
        sizes.append(stream.std().item())
    shown = "   ".join(f"{depth} layers {sizes[depth - 1]:.2f}" for depth in (1, 6, 12, 24, 48))
    print(f"stack {seed}, standard deviation after {shown}")

# %% [markdown]
# The deeper, the larger, and at every depth another scale: a layer can hardly be ready for that.
# **LayerNorm** brings every vector to mean 0 and variance 1, then gives the model a learned scale
# $g$ and shift $b$ for each feature, to be used as it likes:
#
# $$\text{norm}(x) = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} \odot g + b, \qquad
# \mu = \frac{1}{d}\sum_{i=1}^{d} x_i, \qquad \sigma^2 = \frac{1}{d}\sum_{i=1}^{d} (x_i - \mu)^2$$
#
# Here $d$ is d_model. Mean and variance belong to **one vector**: one position of one sentence. By
# hand:

# %%
vector = [1.0, 1.0, 5.0, 5.0]
mean = sum(vector) / 4
variance = sum((number - mean) ** 2 for number in vector) / 4
print(f"mean {mean}, variance {variance}")
for eps in (0.0, 5.0):
    normed = [(number - mean) / math.sqrt(variance + eps) for number in vector]
    print(f"eps {eps}: {[round(number, 3) for number in normed]}")

# %% [markdown]
# ### Exercise 9.3 · `LayerNorm`
# ●●○ medium · 12 minutes · 3 points
#
# In stages, each earned by itself: mean 0 (1), variance 1 and eps (1), weight and bias (1).
#
# Write it as a module, without PyTorch's own. `__init__` makes the parameters `weight` and `bias`,
# `(d_model,)` each, of ones and of zeros.
#
# <details><summary>Hint 1 · the idea</summary>
#
# `nn.Parameter(tensor)` makes a tensor part of the module. In `forward`: centre, variance, divide,
# scale and shift.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The mean over the last axis, with the axis kept: `(..., 1)`. It lines up with `(..., d_model)`,
# however many axes stand before.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# centred  = x minus its mean over the features
# variance = mean of the squares of centred
# normed   = centred over the root of (variance plus eps)
# return normed times weight plus bias
# ```
# </details>
# <details><summary>Hint 4 · “1, 1, 5, 5 is not normalised rightly”</summary>
#
# `x.var()` divides by d − 1, not by d. And `eps` stands inside the root.
# </details>

# %% exercise="LayerNorm"
from attention.transformer_blocks import LayerNorm

# %% check="LayerNorm" points=3
check.LayerNorm(LayerNorm)

# %% [markdown]
# ### Break it
# A common slip is to take mean and variance over the **batch**. It is even a method of its own
# (batch normalisation, good with images). What does it do to a sentence whose neighbour changes?


# %% demo=true
class NormOverTheBatch(nn.Module):
    def forward(self, x):
        return (x - x.mean(dim=0)) / torch.sqrt(x.var(dim=0, unbiased=False) + 1e-5)


torch.manual_seed(1)
sentence, one, other = torch.randn(3, 1, 4, 8)  # three batches of one sentence, T = 4
for name, norm in (("over the features", LayerNorm(8)), ("over the batch", NormOverTheBatch())):
    first, second = (norm(torch.cat([sentence, beside]))[0] for beside in (one, other))
    print(f"{name:<18} the sentence changes by up to {(first - second).abs().max().item():.2f}")

# %% [markdown]
# A translation would depend on which other sentences are in the batch, and on their padding.
#
# ## A small network for every position
# Attention only averages values. What is *done* with an average is left to the **feed-forward
# network**: the same two linear layers at every position, with a ReLU between them.
#
# $$\text{feed-forward}(x) = \max(0,\; x W_1 + b_1)\, W_2 + b_2$$
#
# The middle is wide: d_ff is usually 4 · d_model. With one feature, two hidden units,
# $W_1 = (1, -1)$ and $W_2 = (1, 1)^\top$ it is the function $|x|$: for $x = -3$ the hidden units
# are 0 and 3, and their sum is 3. Without the ReLU it would be $x - x = 0$. Two linear layers in a
# row are one linear layer, however wide the middle.
#
# ### Exercise 9.4 · `FeedForward`
# ●○○ easy · 8 minutes · 2 points
#
# Make the two layers, and use them. The dropout is given: it belongs on the **hidden units**.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Wide, ReLU, dropout, narrow. `self.dropout` is a module: it knows by itself whether it is on.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(B, T, d_model)` → `(B, T, d_ff)` → `(B, T, d_model)`. `nn.Linear(a, b)` leads from a to b.
# </details>
# <details><summary>Hint 3 · “the module has other parameters”</summary>
#
# The layers are called `linear_1` and `linear_2`, and both have a bias.
# </details>

# %% exercise="FeedForward"
from attention.transformer_blocks import FeedForward

# %% check="FeedForward" points=2
check.FeedForward(FeedForward)

# %% [markdown]
# ## The encoder layer
# Now join the parts. A class called `Sublayers` makes them, so that what you write is the drawing:
# the order of the parts, and nothing else.
#
# | part | called as | what it is |
# |---|---|---|
# | `self.attention` | `(query, key, value, mask)` | the `MultiHeadAttention` of lesson 07 |
# | `self.feed_forward` | `(x)` | finished, made of PyTorch's parts |
# | `self.norm_1`, `self.norm_2` | `(x)` | one for each sublayer; PyTorch's own |
# | `self.dropout` | `(update)` | knows its mode |
# | `self.pre_norm` | True or False | which of the two drawings |
#
# ### Exercise 9.5 · `EncoderLayer`
# ●●○ medium · 15 minutes · 4 points
#
# In stages, each earned by itself: post-norm (1), pre-norm (1), with a mask (1), with dropout (1).
#
# Write `forward` for **both** drawings.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Follow the thick line from left to right. In the pre-norm layer, what goes into a sublayer has
# been normalised, and what the update is added to has not.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Everything on an arrow is `(B, T, d_model)`. In self-attention the same tensor is query, key and
# value.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# if pre-norm:
#     h = first norm of x
#     x = x + dropout of attention(h, h, h, mask)
#     the same once more, with the second norm and the network
# else: attention and network get x as it is. What do the norms get?
# ```
# </details>
# <details><summary>Hint 4 · “the pre-norm layer differs …”</summary>
#
# If you wrote `x = self.norm_1(x)`, the stream itself has been normalised: the sum begins with
# another x than the one that came in. Give what you normalise another name.
# </details>

# %% exercise="EncoderLayer"
from attention.transformer_blocks import EncoderLayer

# %% check="EncoderLayer" points=4
check.EncoderLayer(EncoderLayer)

# %% [markdown]
# ## The decoder layer
# The decoder has a third sublayer, between the two others. So it looks twice:
# - **self-attention**, at the target words up to its own: a causal mask,
# - **cross-attention**, at the source: queries from the stream, keys and values from `memory`.
#
# ![A pre-norm decoder layer. The residual stream runs along the bottom. The first detour is causal
# self-attention with its norm, the second is cross-attention, into which memory enters from above
# as keys and values without passing through the norm, the third is the feed-forward network. Each
# update is added to the stream.](figures/decoder_layer.svg)
#
# There are two masks. `mask` says which target positions are real, and you combine it with the
# causal one. `memory_mask` says which source positions are real. Which axis has which length?
#
# | mask | keys | shape |
# |---|---|---|
# | `mask` | the target | broadcasts to `(B, T_q, T_q)` |
# | `memory_mask` | the source | broadcasts to `(B, T_q, T_k)` |
#
# ### Exercise 9.6 · `DecoderLayer`
# ●●● hard · 20 minutes · 4 points
#
# In stages, each earned by itself: post-norm (1), pre-norm (1), the causal mask and the others (1),
# with dropout (1).
#
# Write `forward` for both norms. Here `norm_2` and `self.cross_attention` belong together, and
# `norm_3` is that of the feed-forward network. `causal_mask(T, device)` and `combine_masks` of
# lesson 06 are imported.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The encoder layer with one more detour in the middle. The decoder asks and the source answers:
# where do queries come from, where keys and values?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The causal mask is `(T_q, T_q)`. The stream stays `(B, T_q, d_model)`, also after the
# cross-attention, whose weights are `(B, H, T_q, T_k)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# mask = causal mask and target mask combined
# pre-norm:
#     self-attention of h = norm 1 of x, with mask: its update is added to x
#     cross-attention of h = norm 2 of x with memory, memory, memory_mask: added
#     network of norm 3 of x: added
# post-norm: three times the norm of (x + update)
# ```
# </details>
# <details><summary>Hint 4 · “RuntimeError: The size of tensor a … must match … b …”</summary>
#
# A mask has met the wrong keys. The source has T_k = 7 positions, the target T_q = 5.
# </details>
# <details><summary>Hint 5 · “TypeError: unsupported operand type(s) for &”</summary>
#
# `mask` may be None. `combine_masks` knows what to do then.
# </details>

# %% exercise="DecoderLayer"
from attention.transformer_blocks import DecoderLayer

# %% check="DecoderLayer" points=4
check.DecoderLayer(DecoderLayer)

# %% [markdown]
# The masks at work. `watch_attention` collects the weights of every attention inside a model while
# it runs. The source has 7 positions, of which the last two are padding:

# %% demo=true
torch.manual_seed(0)
layer = DecoderLayer(d_model=16, n_heads=1, d_ff=64, pre_norm=True).eval()
target, memory = 2 * torch.randn(1, 5, 16), 2 * torch.randn(1, 7, 16)
with watch_attention(layer) as seen, torch.no_grad():
    output = layer(target, memory, memory_mask=padding_mask(torch.tensor([5]), 7))
axes = plots.panels(columns=2, width=3.8, height=2.8, share=False)
for ax, (name, weights_of) in zip(axes, seen.items(), strict=True):
    title = {"attention": "self-attention", "cross_attention": "cross-attention"}[name]
    plots.heatmap(weights_of[0, 0], ax, title, colorbar=ax is axes[1])

# %% [markdown]
# *Weights of an untrained decoder layer. Left, self-attention: 5 queries, 5 keys, nothing above the
# diagonal. Right, cross-attention: 5 queries, 7 keys, nothing in the last two columns.*
#
# ## How large is it?
# ### Exercise 9.7 · `layer_parameters`
# ●○○ easy · 8 minutes · 2 points
#
# Count the parameters of a layer. All linear layers and norms have biases.
#
# <details><summary>Hint 1 · the idea</summary>
#
# An attention is four linear layers from d_model to d_model. The network is two. A norm has a
# weight and a bias. How many norms are there?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# A linear layer from *a* to *b* has *a* · *b* weights and *b* biases. With `cross=True` there are
# one attention and one norm more.
# </details>

# %% exercise="layer_parameters"
from attention.transformer_blocks import layer_parameters

# %% check="layer_parameters" points=2
check.layer_parameters(layer_parameters)

# %% [markdown]
# ### Exercise 9.8 · `break_layer_parameters` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# This count is right for the base model of the paper and for the big one. Find a layer for which it
# is not.
#
# <details><summary>Hint 1 · where to look</summary>
#
# Which of its arguments does this function not use?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# What do the two models of the paper have in common that a layer need not have?
# </details>

# %% broken="takes_four_times_d_model"
from autograder.mistakes.transformer_blocks import takes_four_times_d_model

# %% exercise="break_layer_parameters"
from attention.transformer_blocks import break_layer_parameters

# %% check="break_layer_parameters" points=1
check.break_layer_parameters(break_layer_parameters)

# %% demo=true
for name, d_model, d_ff in (("base", 512, 2048), ("big", 1024, 4096)):
    encoder, decoder = layer_parameters(d_model, d_ff), layer_parameters(d_model, d_ff, cross=True)
    print(f"{name:<5} encoder layer {encoder:11,}   decoder layer {decoder:11,}")
    share = (2 * d_model * d_ff + d_ff + d_model) / encoder
    print(f"      of the encoder layer the feed-forward network has {share:.0%}")

# %% [markdown]
# Two thirds of an encoder layer's parameters are in its feed-forward network, less than a
# thousandth in its norms.
#
# ## How deep can we go?
# Now the real layers, from 1 to 48 of them, untrained. `reversal.Switched` is an encoder layer with
# two switches: its skip connections can be off, and its norms "pre", "post" or "none". It
# classifies random vectors. How large is the gradient of the **first** layer's parameters, the one
# farthest from the loss?


# %% demo=true
def measure(depth, norm, skip, seed, d_model=32):
    """Return the gradient's norm in every layer, and the cosine between positions at the end."""
    torch.manual_seed(seed)
    sizes = (d_model, 4, 4 * d_model)
    layers = [experiments.Switched(*sizes, norm=norm, skip=skip) for _ in range(depth)]
    classes, x = nn.Linear(d_model, 10), torch.randn(4, 10, d_model)
    output = nn.Sequential(*layers)(x)
    output = F.layer_norm(output, (d_model,)) if norm == "pre" else output
    F.cross_entropy(classes(output).flatten(0, 1), torch.randint(10, (40,))).backward()
    squares = [sum(p.grad.square().sum() for p in layer.parameters()) for layer in layers]
    unit = F.normalize(output.detach(), dim=-1)  # (B, T, d_model)
    cosines = (unit @ unit.mT)[:, ~torch.eye(10, dtype=torch.bool)]
    return torch.stack(squares).sqrt().tolist(), cosines.mean().item()


# %% [markdown]
# ### Predict first
# Skip connections on or off, norms "pre" or "post". Which of the four curves fall? And with 48
# layers, which layer gets the largest gradient, the first or the last?

# %% demo=true
depths, first, every, alike = (1, 2, 4, 8, 16, 32, 48), {}, {}, {}
for skip in (True, False):
    for norm in ("pre", "post"):
        name = f"{norm}-norm" + ("" if skip else ", no skip")
        runs = {d: [measure(d, norm, skip, seed) for seed in range(3)] for d in depths}
        first[name] = [[runs[depth][seed][0][0] for depth in depths] for seed in range(3)]
        every[name] = [norms for norms, _ in runs[48]]
        alike[name] = [cosine for _, cosine in runs[48]]

# %% demo=true
axes = plots.panels(columns=2, width=4.1, height=3.0)
seeds.curves(first, depths, axes[0], "of the first layer")
seeds.curves(every, range(1, 49), axes[1], "of every one of 48 layers")
for ax, label in zip(axes, ("number of layers", "layer"), strict=True):
    ax.set(yscale="log", xlabel=label, xticks=(1, 12, 24, 36, 48))
axes[0].set(ylabel="norm of the gradient")
plots.legend(axes[1], fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
print("48 layers, three stacks:  first layer's gradient      last layer's                cosines")
for name, runs in every.items():
    ends = ("  ".join(f"{run[layer]:6.3f}" for run in runs) for layer in (0, -1))
    print(f"{name:<20}", *ends, "  ".join(f"{cosine:.2f}" for cosine in alike[name]), sep="    ")

# %% [markdown]
# *Norm of the gradient, mean and band of three random stacks, on a logarithmic scale. Left: of the
# first layer, against the number of layers. Right: of each of 48 layers.* With skip connections the
# first of 48 layers gets about as large a gradient as a single layer alone. Without them it gets 80
# to 2600 times less than the last. Norms by themselves do not hold the stack.
#
# The cosines show what happens there. Attention averages; averaged again and again, all positions
# become the same vector (cosine 1.00), and what went in is forgotten. Dong and colleagues (2021)
# prove it for attention alone: *rank collapse*. The residual stream carries the input past the
# averages. Post-norm shrinks the stream at every sum, so the input fades there too:
# after 48 layers the positions are almost alike.
#
# ## Which of them learn?
# Now train 12 layers to reverse a sequence of digits: 3 1 4 1 5 9 becomes 9 5 1 4 1 3. Your own
# layers, 90 steps of Adam, a rather bold learning rate of 0.006. Three runs: pre-norm, post-norm,
# and post-norm with a **warm-up**: the rate rises from 0 during the first 60 steps. Which ones
# learn?

# %% demo=true
curves = {}
for name, pre_norm, warm_up in (
    ("pre-norm", True, 1),
    ("post-norm", False, 1),
    ("post-norm, warm-up", False, 60),
):
    make = partial(EncoderLayer, *experiments.SIZES, pre_norm, fused=True)
    _, losses = experiments.train(make, pre_norm, warm_up=warm_up, label=name)
    curves[name] = torch.tensor(losses).unfold(0, 10, 5).mean(dim=1)
    print(f"{name:<19} loss of the last ten steps {curves[name][-1]:.2f}")
ax = plots.lines(range(5, 86, 5), curves, xlabel="step", ylabel="loss")
guess = ax.axhline(math.log(10), color=plots.GREY, linestyle="--", linewidth=1.2)
bottom = ax.set_ylim(bottom=0)

# %% [markdown]
# *Loss against training step (means of ten), one run each; the dashed line is guessing, log 10.*
# So post-norm needs a warm-up? One rate and one seed do not say so. Change the rate, and take three
# seeds. (Recorded; `python -m attention.experiments transformer_blocks` makes them again.)
#
# ### Predict first
# Half the rate, 0.003, constant. What is the loss of post-norm after 90 steps?

# %% demo=true
prediction = None  # a loss from 0 to 2.3; None skips this

# %% demo=true
swept = recorded.read("transformer_blocks", "rates x warm-up")
axes = plots.panels(columns=2, width=4.0, height=3.0)
for ax, norm in zip(axes, ("post", "pre"), strict=True):
    for number, (name, warm_up) in enumerate({"constant rate": 1, "warm-up": 60}.items()):
        found = seeds.where(swept, norm=norm, warm_up=warm_up)
        seeds.sweep(found, "rate", "last", ax, name, number=number)
    ax.axhline(math.log(10), color=plots.GREY, linestyle="--", linewidth=1.2)
    ax.set(title=f"{norm}-norm", xlabel="learning rate")
axes[0].set(ylabel="loss at the end", ylim=(-0.05, 2.6))
plots.legend(axes[1], fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
half = [row["last"] for row in seeds.where(swept, norm="post", warm_up=1, rate=0.003)]
compare(prediction, sum(half) / 3, "post-norm, constant 0.003, mean of three")

# %% [markdown]
# *Loss of the last ten steps against the learning rate; each point a run, the lines are means.*
# Post-norm does train without a warm-up, at 0.003. At 0.006 it fails in two runs of three, at 0.012
# in all. With a warm-up 0.006 is its best rate, and 0.012 still learns, badly; at 0.001 the warm-up
# merely slows training. Pre-norm trains at all four rates without it. So in this stack a warm-up
# is what a *bold* rate needs in post-norm. The paper's Transformer is post-norm and warms up for
# 4000 steps (lesson 11). Most large models since are pre-norm, which forgives more.
#
# Are the gradients the reason? Xiong and colleagues point to the large ones in post-norm's last
# layers. But Adam divides every gradient by its own size. Make them all a hundred times smaller or
# larger:

# %% demo=true
scaled = recorded.read("transformer_blocks", "gradients scaled")
for factor in (0.01, 1.0, 100.0):
    shown = "  ".join(f"{row['last']:.2f}" for row in seeds.where(scaled, factor=factor))
    print(f"post-norm, constant 0.003, gradients times {factor:<6g}  loss at the end {shown}")

# %% [markdown]
# Hardly anything changes. So the norm of a gradient says whether a signal arrives; with Adam its
# size alone cannot say which step is too large. (How far a step moves the *scores* may: see Liu and
# colleagues (2020), and open question 2.)
#
# ### Add & Norm taken apart
# Which of the two does the work? The same task with each switched off, at constant rates:

# %% demo=true
apart = [{"skip": True} | row for row in seeds.where(swept, warm_up=1)]
apart += recorded.read("transformer_blocks", "add and norm apart")
axes = plots.panels(columns=2, width=4.0, height=3.0)
for ax, skip in zip(axes, (True, False), strict=True):
    for number, norm in enumerate(("pre", "post", "none")):
        label = "no norm" if norm == "none" else f"{norm}-norm"
        found = seeds.where(apart, skip=skip, norm=norm)
        seeds.sweep(found, "rate", "last", ax, label, number=number)
    ax.set(
        title="with skip connections" if skip else "without skip connections",
        xlabel="learning rate",
    )
axes[0].set(ylabel="loss at the end, at most 4", ylim=(-0.05, 4.1))
legend = plots.legend(axes[1], fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))

# %% [markdown]
# *Loss of the last ten steps, three runs of each; 2.3 is guessing.* Without skip connections
# nothing is learned, whatever the norm, at any of these rates. With them, and without norms, twelve
# layers do learn at the two lower rates; at the higher ones some runs blow up. *Add* makes the
# stack learn; *Norm*, placed as in pre-norm, makes it learn at bold rates.
#
# ### Break it
# Take whole layers out of a trained model, chosen at random: what they would have added to the
# stream is missing. How many digits are still right without 1 of the 12 layers? Without 6?

# %% demo=true
named = {}
for row in recorded.read("transformer_blocks", "layers taken out"):
    name = {"pre": "pre-norm", "post": "post-norm, warm-up"}[row["norm"]]
    named.setdefault(name, []).append(row["right"])
ax = seeds.curves(named, range(13), plots.panels(width=6.0, height=3.0))
ax.set(xlabel="layers taken out of 12", ylabel="digits right", ylim=(0, 1.05))
plots.legend(ax, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
for name, runs in named.items():
    shown = (f"without {n}: " + " ".join(f"{run[n]:.2f}" for run in runs) for n in (1, 3, 6))
    print(f"{name:<19}", *shown, sep="   ")

# %% [markdown]
# *Share of digits right against the number of layers taken out, mean of ten choices; bands of three
# trained models.* Without one layer next to nothing is lost, and without half of them at least
# three in four digits are still right. Here the layers are additions to a stream, and the task does
# not need all twelve. In image networks with skip connections Veit and colleagues found much the
# same.
#
# ## Limits
# Everything here was seen in small stacks, at the start or after 90 steps; which norm is better at
# the end of a long training is another question. The norm of a gradient says how a signal arrives,
# not what an optimiser makes of it. A residual connection fixes the width: every sublayer must
# return as many numbers as it takes. And LayerNorm forgets two numbers of every vector, its mean
# and its size.
#
# ## Summary
# A residual connection adds what a sublayer computes to what came in, so that signal and gradient
# can skip every layer; without it, a stack of twelve layers learned nothing. LayerNorm gives every
# vector the same size again, and the feed-forward network does at each position what averaging
# cannot. Post-norm normalises the stream itself and needs a small rate or a warm-up; pre-norm
# leaves the stream alone and forgives a bold rate.
#
# **Next** [10 · How do the pieces make a translator?](../10_transformer/10_transformer.ipynb) They
# become a whole Transformer, which learns to write numbers in German.
#
# ## Open questions
# No points, no check; `experiments.train_one(norm, seed, rate=…)` trains one stack in seconds.
# 1. Pre-norm trains at 0.012. Double the rate until it fails.
# 2. How far does **one** step of Adam move the scores of an untrained stack?
#    `experiments.first_step(norm, seed, rate)` says it. Compare the norms at 0.0001 and 0.001.
# 3. At a constant 0.006 post-norm fails in two runs of three with 12 layers. Does it with 6, or 3?
#    (Set `reversal.N_LAYERS`.)

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# Seeds 1, 2 and 3 each time.
# 1. The loss of the last ten steps is 0.02, 0.00 and 0.01 at 0.024, 0.07, 0.50 and 0.94 at 0.048,
#    and 2.25, 2.31 and 2.29 at 0.096. There it has learned nothing: guessing has ln 10 = 2.30.
# 2. In standard deviations of the scores: at 0.0001 pre-norm 0.03, 0.04 and 0.04, post-norm 0.05,
#    0.09 and 0.06, no norm 0.06, 0.09 and 0.10; at 0.001 0.27, 0.40, 0.37 against 0.47, 0.78, 0.62
#    and 0.51, 0.75, 0.84. So these rates move a post-norm stack about 1.6 to 2.2 times as far as a
#    pre-norm one, and a stack without norms about as far as post-norm, or farther. That agrees with
#    which of them fails first, but one step is no proof. Liu and colleagues (2020) take this as the
#    reason: small changes of all layers add up to more in post-norm.
# 3. No: below 0.01 in all runs, with 6 layers and with 3. How bold a rate is depends on the depth.
#
# </details>

# %% [markdown]
# ## References
# - J. L. Ba, J. R. Kiros, G. E. Hinton (2016). *Layer normalization.*
#   [arXiv:1607.06450](https://arxiv.org/abs/1607.06450)
# - K. He, X. Zhang, S. Ren, J. Sun (2016). *Deep residual learning for image recognition.*
#   [arXiv:1512.03385](https://arxiv.org/abs/1512.03385)
# - R. Xiong et al. (2020). *On layer normalization in the Transformer architecture.*
#   [arXiv:2002.04745](https://arxiv.org/abs/2002.04745)
# - L. Liu, X. Liu, J. Gao, W. Chen, J. Han (2020). *Understanding the difficulty of training
#   Transformers.* [arXiv:2004.08249](https://arxiv.org/abs/2004.08249)
# - A. Vaswani et al. (2017). *Attention is all you need*, sections 3.1, 3.3 and 5.4.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - N. Srivastava et al. (2014). *Dropout: a simple way to prevent neural networks from
#   overfitting.* JMLR 15, 1929–1958.
# - Y. Dong, J.-B. Cordonnier, A. Loukas (2021). *Attention is not all you need: pure attention
#   loses rank doubly exponentially with depth.*
#   [arXiv:2103.03404](https://arxiv.org/abs/2103.03404)
# - A. Veit, M. Wilber, S. Belongie (2016). *Residual networks behave like ensembles of relatively
#   shallow networks.* [arXiv:1605.06431](https://arxiv.org/abs/1605.06431)
