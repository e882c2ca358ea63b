# %% [markdown]
# # 09 · What holds a deep stack together?
#
# One attention layer mixes the positions once. A translator needs many such layers, each working on
# what the one before has made. Stacked as they are, they hardly learn. Three simple ideas make the
# stack hold: a way past every layer, vectors that keep their size, and noise that is switched off
# in time.
#
# **After this lesson** you can
# - measure the **gradient** that reaches every layer, and say why it fades,
# - write **residual connections** with dropout, and **LayerNorm**,
# - build the **encoder layer** and the **decoder layer** of the Transformer, equal to PyTorch's,
# - choose between **pre-norm** and **post-norm**, and say what the choice costs.
#
# **Time** 115 minutes · **Points** 21 · **GPU** not needed · **You need** lessons 06 and 07

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided import plots
from attention.masked_attention import causal_mask, combine_masks, padding_mask
from attention.provided.progress import Bar
from attention.provided.sublayers import Sublayers, watch_attention
from autograder import check

torch.set_num_threads(1)  # matrices as small as those of this lesson are faster on one core

# %% [markdown]
# ## What fails without this idea
# A gradient comes back through a stack layer by layer, and each layer multiplies it with its slope.
# Take layers of a single number. How much of a gradient of 1 is left behind 48 of them?

# %%
for slope in (0.7, 0.9, 1.0, 1.1, 1.5):
    print(f"slope {slope}:  after 6 layers {slope**6:8.3f}   after 48 layers {slope**48:.1e}")

# %% [markdown]
# Only a slope very near 1 survives. A layer with random weights has no reason to be there. Now let
# the layer compute an **update**, and add it to what came in:
#
# $$h_{l+1} = h_l + f_l(h_l), \qquad \frac{\partial h_{l+1}}{\partial h_l} = 1 + f_l'(h_l)$$
#
# The slope is 1 plus something. A layer that has learned nothing yet, $f_l \approx 0$, hands on
# everything that it gets, in both directions. This is a **residual connection**: the layer learns
# the difference, the residue, not the whole.
#
# ### Exercise 9.1 · `gradient_norms`
# ●●○ medium · 12 minutes · 3 points
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
# <details><summary>Hint 4 · “you can only change requires_grad flags of leaf variables”</summary>
#
# The flag goes to a tensor that was made by no operation. `detach().clone()` gives you one.
# </details>

# %% exercise="gradient_norms"
from attention.transformer_blocks import gradient_norms

# %% check="gradient_norms" points=3
check.gradient_norms(gradient_norms)

# %% [markdown]
# ### Predict first
# 48 such layers of width 32, with random weights that shrink a vector to about 0.7 of its length.
# By which factor will the gradients with and without the way past differ?

# %% demo=true
torch.manual_seed(0)
x, weights = torch.randn(16, 32), 0.7 * torch.randn(48, 32, 32) / math.sqrt(32)
curves = {
    "with the way past": gradient_norms(x, weights, skip=True),
    "without": gradient_norms(x, weights, skip=False),
}
ax = plots.lines(range(1, 49), curves, xlabel="layer", ylabel="norm of the gradient")
ax.set(yscale="log")
for name, norms in curves.items():
    print(f"{name:<18} first layer {norms[0]:.1e}   last layer {norms[-1]:.1e}")

# %% [markdown]
# *Norm of the gradient in each of 48 layers, on a logarithmic scale: with the way past it lies
# between 6 and 40, without it around 10⁻¹⁶.* Without it the signal has faded on its way up, and
# the gradient again on its way down. No step of any sensible size would change these weights. With
# it, all layers learn from the first step on.
#
# ## The idea
# A Transformer's layer consists of **sublayers**: an attention, then a small network for each
# position. Every one of them computes an update, which is added to the **residual stream**, the
# thick line.
#
# ![Two encoder layers. A thick line leads from x to the output; attention and feed-forward network
# are detours, and their updates, after dropout, are added to the line. Above, post-norm: the two
# norms stand on the line, behind each sum. Below, pre-norm: the norms stand at the beginning of the
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
# ## The way past, with dropout
# **Dropout** sets random entries of the update to 0 while the model trains, each with probability
# $p$. So no layer can rely on a single number of another. When the model is used, nothing is
# dropped. By hand, for $p = 0.25$ and an update of ones:

# %%
noise = [0.61, 0.08, 0.93, 0.30, 0.77, 0.15, 0.52, 0.99]  # an entry below 0.25 is dropped
kept = [0.0 if number < 0.25 else 1.0 for number in noise]
print("kept:          ", kept, "  mean", sum(kept) / 8)
print("divided by 3/4:", [round(k / 0.75, 2) for k in kept], "  mean", sum(kept) / 0.75 / 8)

# %% [markdown]
# Without the division the updates of the trained model would suddenly be a third larger in use than
# in training, in every layer.
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
# <details><summary>Hint 3 · “with the noise 0.1, 0.2, 0.9, 0.19 the sum is wrong”</summary>
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
# A sum of many updates grows. In the stack of the first figure the numbers that come out:

# %% demo=true
stream = x  # of the stack above, whose layers add tanh(h W)
for depth, weight in enumerate(weights, start=1):
    stream = stream + torch.tanh(stream @ weight)
    if depth in (1, 6, 12, 24, 48):
        print(f"after {depth:2d} layers: standard deviation {stream.std():.2f}")

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
# A popular slip is to take mean and variance over the **batch**. It is even a method of its own
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
# A translation would depend on which other sentences are in the batch, and on their padding. And
# a batch of one sentence would become nothing but zeros.
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
# | part | called as | |
# |---|---|---|
# | `self.attention` | `(query, key, value, mask)` | the `MultiHeadAttention` of lesson 07 |
# | `self.feed_forward` | `(x)` | finished, made of PyTorch's parts |
# | `self.norm_1`, `self.norm_2` | `(x)` | one for each sublayer; PyTorch's, in one kernel |
# | `self.dropout` | `(update)` | knows its mode |
# | `self.pre_norm` | True or False | which of the two drawings |
#
# ### Exercise 9.5 · `EncoderLayer`
# ●●○ medium · 15 minutes · 4 points
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
#     return x + dropout of the network of (second norm of x)
# else:
#     x = first norm of (x + dropout of attention(x, x, x, mask))
#     return second norm of (x + dropout of the network of x)
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
# The causal mask is `(T_q, T_q)`. The stream stays `(B, T_q, d_model)`, also behind the
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
# <details><summary>Hint 4 · “RuntimeError: The size of tensor a (7) must match … b (5)”</summary>
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
    plots.heatmap(weights_of[0, 0], ax, name, colorbar=ax is axes[1])

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
# What do the two models of the paper have in common, that a layer need not have?
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
# These are the two sizes of the paper. Two thirds of an encoder layer are its feed-forward network:
# much of what a model knows is stored there. All norms together are less than a thousandth.
#
# ## How deep can we go?
# Now the real layers, from 1 to 48 of them, untrained. We take the parts of your `EncoderLayer`
# apart, so that residual and norm can be switched, and classify random vectors. How large is the
# gradient of the **first** layer's parameters, the one farthest from the loss?


# %% demo=true
def run(layers, x, pre_norm, skip):
    """Send x through the layers, with or without the residual connections."""
    for layer in layers:
        for part, norm in ((layer.attention, layer.norm_1), (layer.feed_forward, layer.norm_2)):
            h = norm(x) if pre_norm else x
            update = part(h, h, h) if part is layer.attention else part(h)
            x = x + update if skip else update
            x = x if pre_norm else norm(x)
    return F.layer_norm(x, x.shape[-1:]) if pre_norm else x


def measure(depth, pre_norm, skip, seed, d_model=32):
    """Return the gradient's norm in every layer, and the cosine between positions at the end."""
    torch.manual_seed(seed)
    layers = [EncoderLayer(d_model, 4, 4 * d_model, 0.0, fused=True) for _ in range(depth)]
    classes, x = nn.Linear(d_model, 10), torch.randn(4, 10, d_model)
    output = run(layers, x, pre_norm, skip)
    F.cross_entropy(classes(output).flatten(0, 1), torch.randint(10, (40,))).backward()
    squares = [sum(p.grad.square().sum() for p in layer.parameters()) for layer in layers]
    unit = F.normalize(output.detach(), dim=-1)  # (B, T, d_model)
    cosines = (unit @ unit.mT)[:, ~torch.eye(10, dtype=torch.bool)]
    return torch.stack(squares).sqrt(), cosines.mean().item()


# %% [markdown]
# ### Predict first
# Four curves: pre-norm and post-norm, each with and without the residual connections. Which fall?
# And with 48 layers, which layer gets the largest gradient, the first or the last?

# %% demo=true
depths, gradients, alike = (1, 2, 4, 8, 16, 32, 48), {}, {}
for name, pre_norm, skip in (
    ("pre-norm", True, True),
    ("post-norm", False, True),
    ("pre-norm, no residual", True, False),
    ("post-norm, no residual", False, False),
):
    gradients[name] = {}
    for depth in depths:
        runs = [measure(depth, pre_norm, skip, seed) for seed in range(3)]
        norms = torch.stack([norms for norms, _ in runs])  # (3, depth)
        gradients[name][depth] = norms.log().mean(dim=0).exp()  # geometric mean, (depth,)
        alike[name, depth] = sum(cosine for _, cosine in runs) / 3

# %% demo=true
axes = plots.panels(columns=2, width=4.1, height=3.0)
of_first = {name: [by[depth][0].item() for depth in depths] for name, by in gradients.items()}
plots.lines(depths, of_first, axes[0], "of the first layer", "number of layers")
of_all = {name: by[48] for name, by in gradients.items()}
plots.lines(range(1, 49), of_all, axes[1], "of every one of 48 layers", "layer")
for ax, place in zip(axes, ((1, 8, 16, 32, 48), (1, 12, 24, 36, 48)), strict=True):
    ax.set(yscale="log")
    ax.set_xticks(place)
axes[0].set(ylabel="norm of the gradient")
axes[0].get_legend().remove()
for line, style in zip([*axes[0].lines, *axes[1].lines], 2 * ["-", "-", "--", ":"], strict=True):
    line.set_linestyle(style)
axes[1].legend(fontsize=8, loc="lower right")
print("norm of the gradient, 48 layers     first    last    cosine between positions")
for name, by in gradients.items():
    print(f"{name:<34} {by[48][0]:6.3f}  {by[48][-1]:6.3f}    {alike[name, 48]:.2f}")

# %% [markdown]
# *Norm of the gradient, mean of three random stacks, on a logarithmic scale. Left: of the first
# layer, against the number of layers. Right: of each of 48 layers.* With residual connections the
# first of 48 layers gets about as large a gradient as a single layer alone. Without them it gets
# about 400 times less than the last. Norms by themselves do not hold the stack.
#
# The last column of the table shows what happens there. Attention averages; averaged again and
# again, all positions become the same vector (cosine 1.00), and what went in is forgotten. The
# residual stream carries it past the averages.
#
# The two norms differ as well. Post-norm has its largest gradients in the last layers, pre-norm in
# the first. And since post-norm shrinks the stream at every sum, the input fades there too: after
# 48 layers the positions are almost alike (0.99).
#
# ### Predict first
# Gradients are only half of the matter. Now train 12 layers to turn a sequence of digits round: 3 1
# 4 1 5 9 becomes 9 5 1 4 1 3. Same layers, same steps, a rather bold learning rate. Three runs:
# pre-norm, post-norm, and post-norm with a **warm-up**: the learning rate rises from 0 during the
# first 60 of the 90 steps. Which ones learn?


# %% demo=true
class Reverser(nn.Module):
    """Twelve encoder layers that should say a sequence of digits backwards."""

    def __init__(self, pre_norm, d_model=32, T=6, n_layers=12):
        super().__init__()
        self.digits, self.read_out = nn.Embedding(10, d_model), nn.Linear(d_model, 10)
        self.positions = nn.Parameter(torch.randn(T, d_model))
        layers = [
            EncoderLayer(d_model, 4, 2 * d_model, 0.0, pre_norm, fused=True)
            for _ in range(n_layers)
        ]
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(d_model) if pre_norm else nn.Identity()

    def forward(self, digits):
        x = self.digits(digits) + self.positions  # (B, T, d_model)
        for layer in self.layers:
            x = layer(x)
        return self.read_out(self.norm(x))  # (B, T, 10)


# %% demo=true
def train(pre_norm, warm_up, label, steps=90, seed=1):
    """Return a trained model and its losses."""
    torch.manual_seed(seed)
    model, losses = Reverser(pre_norm), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.006)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1, (n + 1) / warm_up))
    with Bar(steps, label) as bar:
        for step in range(1, steps + 1):
            digits = torch.randint(10, (16, 6))
            loss = F.cross_entropy(model(digits).flatten(0, 1), digits.flip(1).flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            bar.update(step, losses[-1])
    return model.eval(), torch.tensor(losses)


# %% demo=true
models, curves = {}, {}
for name, pre_norm, warm_up in (
    ("pre-norm", True, 1),
    ("post-norm", False, 1),
    ("post-norm, warm-up", False, 60),
):
    models[name], losses = train(pre_norm, warm_up, name)
    curves[name] = losses.unfold(0, 10, 5).mean(dim=1)
for name, losses in curves.items():
    print(f"{name:<19} loss of the last ten steps {losses[-1]:.2f}")
ax = plots.lines(range(5, 86, 5), curves, xlabel="step", ylabel="loss")
guess = ax.axhline(math.log(10), color=plots.GREY, linestyle="--", linewidth=1.2)
bottom = ax.set_ylim(bottom=0)

# %% [markdown]
# *Loss against training step (means of ten); the dashed line is guessing, log 10.* Pre-norm has
# learned the task after some 60 steps. Post-norm has hardly begun. With a warm-up it learns as
# well, only later. Xiong and others explain it with the large first gradients in the last layers:
# they should meet a small learning rate. (The norms above are no explanation by themselves: Adam
# divides a gradient by its size. And the learning rate is a bold one: see the open questions.) The
# paper's Transformer is post-norm and warms up for 4000
# steps (lesson 11). Most models since are pre-norm, which forgives more.
#
# ### Break it
# Take whole layers out of a trained model, chosen by chance: what they would have added to the
# stream is missing. How many digits are still right without 1 of the 12 layers? Without 6?

# %% demo=true
torch.manual_seed(2)
digits, right = torch.randint(10, (200, 6)), {}
for name in ("pre-norm", "post-norm, warm-up"):
    model, right[name] = models[name], []
    whole = model.layers
    for missing in range(13):
        hits = []
        for _ in range(10):
            kept = torch.randperm(12)[missing:].sort().values
            model.layers = nn.ModuleList(whole[i] for i in kept.tolist())
            with torch.no_grad():
                hits.append(model(digits).argmax(dim=-1) == digits.flip(1))  # (B, T)
        right[name].append(torch.stack(hits).double().mean().item())
    model.layers = whole
ax = plots.lines(range(13), right, xlabel="layers taken out of 12", ylabel="digits right")
ax.set(ylim=(0, 1.05), xticks=range(0, 13, 2))
for name, shares in right.items():
    print(f"{name:<19}", "   ".join(f"without {n}: {shares[n]:.2f}" for n in (0, 1, 3, 6, 12)))

# %% [markdown]
# *Share of digits right against the number of layers taken out, mean of ten choices.* Without one
# layer next to nothing is lost, and without half of them more than 80 % of the digits are still
# right. In a chain every link counts; here the layers are additions to a stream, and the task does
# not need all twelve. In image networks with residual connections Veit and others found the same.
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
# have a way past every layer. LayerNorm gives every vector the same size again, and the
# feed-forward network does at each position what averaging cannot. Post-norm normalises the stream
# itself and needs a careful start; pre-norm leaves the way free and forgives a bold one.
#
# **Next** All parts are ready. In lesson 10 they become a whole Transformer, which learns to
# translate numbers.
#
# ## Open questions
# 1. Post-norm without a warm-up fails at a learning rate of 0.006. Does it at 0.003, and at 0.001?
#    (Change the rate in `train`, and try three seeds.)
# 2. Take the warm-up away from pre-norm and double its rate. When does it fail?

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# 1. With the seeds 1, 2 and 3 the loss of the last ten steps was 2.26, 2.25 and 0.87 at a constant
#    0.006; 0.20, 0.24 and 0.04 at 0.003; and 1.06, 0.94 and 1.01 at 0.001. With 0.006 and the
#    warm-up it was 0.09, 0.04 and 0.02. So a warm-up is not the only way to train post-norm: a rate
#    half as large does it as well, nearly.
# 2. We did not try. Write down what you expect before you run it.
# </details>

# %% [markdown]
# **References**
# - J. L. Ba, J. R. Kiros, G. E. Hinton (2016). *Layer normalization.*
#   [arXiv:1607.06450](https://arxiv.org/abs/1607.06450)
# - K. He, X. Zhang, S. Ren, J. Sun (2016). *Deep residual learning for image recognition.*
#   [arXiv:1512.03385](https://arxiv.org/abs/1512.03385)
# - R. Xiong et al. (2020). *On layer normalization in the Transformer architecture.*
#   [arXiv:2002.04745](https://arxiv.org/abs/2002.04745)
# - A. Vaswani et al. (2017). *Attention is all you need*, sections 3.1, 3.3 and 5.4.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - N. Srivastava et al. (2014). *Dropout: a simple way to prevent neural networks from
#   overfitting.* JMLR 15, 1929–1958.
# - Y. Dong, J.-B. Cordonnier, A. Loukas (2021). *Attention is not all you need: pure attention
#   loses rank doubly exponentially with depth.*
#   [arXiv:2103.03404](https://arxiv.org/abs/2103.03404)
# - A. Veit, M. Wilber, S. Belongie (2016). *Residual networks behave like ensembles of relatively
#   shallow networks.* [arXiv:1605.06431](https://arxiv.org/abs/1605.06431)
