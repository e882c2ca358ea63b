# %% [markdown]
# # 09 · What holds a deep stack together?
#
# Stack twelve layers, each an attention and a small network, and train them: after 90 steps they do
# no better than guessing. The Transformer adds a connection that leads past each layer, and a norm
# that keeps vectors at one size. At the end you will know which of the two does what.
#
# **After this lesson** you can
# - measure the **gradient** that reaches every layer, and say why it fades,
# - say what a **residual connection** (skip connection) and **dropout** do, and write **LayerNorm**
#   and the **feed-forward network**,
# - build the **encoder layer** and the **decoder layer** of the Transformer, equal to PyTorch's,
# - choose between **pre-norm** and **post-norm**, and say which learning rates each tolerates.
#
# **Time** 90 minutes · **Points** 16 · **GPU** not needed · **You need** lessons 06 to 08

# %%
import torch
from torch import nn

from attention.experiments import transformer_blocks as experiments
from autograder import check

# %% [markdown]
# ## A gradient on its way down
# A gradient travels back through a stack, and each layer multiplies it by its slope. Suppose that
# each layer is a function of a single number. How much of a gradient of 1 is left after 48 layers?

# %%
for slope in (0.7, 0.9, 1.0, 1.1, 1.5):
    print(f"slope {slope}:  after 6 layers {slope**6:8.3f}   after 48 layers {slope**48:.1e}")

# %% [markdown]
# Below 1 the gradient fades, above 1 it explodes. It keeps its size only if the slope is very near
# 1. So let the layer compute an **update**, which is added to its input:
#
# $$h_{l+1} = h_l + f_l(h_l), \qquad \frac{\partial h_{l+1}}{\partial h_l} = 1 + f_l'(h_l)$$
#
# A layer that has learned nothing yet, $f_l \approx 0$, now passes everything on, forward and back.
# This is a **residual connection**, or **skip connection**. The layer learns only the difference
# between its output and its input, the residual.
#
# ### Exercise 9.1 · `gradient_norms`
# ●●○ medium · 12 minutes · 3 points
#
# Graded in three parts: the profile without skip (1), the profile with skip (1), the exact norms
# (1). (By the *profile* we mean the norms, each divided by that of the last layer.)
#
# Measure the gradient in a stack of layers of many numbers. Layer *l* turns $h$, of shape `(B,
# d_model)`, into $\tanh(h W_l)$; with `skip` it adds $h$ to that. The loss is the mean of all
# squared numbers that leave the stack. Return the norm of the loss's gradient with respect to each
# $W_l$, that is, the root of the sum of all its squared entries: shape `(n_layers,)`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Run the stack on a copy of the weights. `torch.autograd.grad(loss, weights)` returns a tuple of
# one tensor, shaped like the weights.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
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
# <details><summary>Hint 3 · “RuntimeError: element 0 of tensors does not require grad …”</summary>
#
# The loop has to use the detached copy, after its `requires_grad_()`.
# </details>

# %% exercise="gradient_norms"
from attention.transformer_blocks import gradient_norms

# %% check="gradient_norms" points=3
check.gradient_norms(gradient_norms)

# %% [markdown]
# ### Predict first
# Take 48 such layers, whose weights shrink a vector to about 0.7 of its length. How many times
# larger is the first layer's gradient with skip connections?

# %% demo=true
from attention.provided.predictions import compare

torch.set_num_threads(1)  # matrices as small as those of this lesson are faster on one core
prediction = None  # a factor, such as 1e3; None skips this

# %% demo=true
factor = experiments.fading(gradient_norms)
compare(prediction, factor, "first layer, with over without")

# %% [markdown]
# *Norm of the gradient in each of 48 layers, on a logarithmic scale: mean and band of three random
# stacks, for weights of four sizes.* At 0.7, without skips, the signal shrinks on its way up. The
# gradient starts from what is left of it, and shrinks again on its way down: the 3.7e-08 of the
# first table counts twice. The gradient of a layer's weights is a product of the two, so it is tiny
# in **every** layer, not only in the first.
#
# The factor depends on our choice of 0.7. At sizes 1.5 and 2 the plain stack starts well, too: its
# gradient even grows from the last layer to the first. A plain stack loses more than its
# gradient, as you will see below.
#
# ## A stream with detours
# An encoder layer has two **sublayers**: an attention, then a small network for each position. Each
# adds its update to the **residual stream**, the thick line.
#
# ![Two encoder layers. A thick line leads from x to the output; attention and feed-forward network
# are detours whose updates, after dropout, are added to it. Above, post-norm: a norm stands on the
# line after each sum. Below, pre-norm: a norm stands at the start of each detour, and only the sums
# are on the line.](figures/pre_and_post_norm.svg)
#
# Three parts are new: dropout before the sum, the norm, and the feed-forward network.
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
# What if a layer comes to rely on one single number of the stream? In training, **dropout** sets
# each entry of the update to 0 with probability $p$. Here it is by hand, for $p = 0.25$ and an
# update of ones:

# %%
noise = [0.61, 0.08, 0.93, 0.30, 0.77, 0.15, 0.52, 0.99]  # an entry below 0.25 is dropped
kept = [0.0 if number < 0.25 else 1.0 for number in noise]
print("kept:          ", kept, "  mean", sum(kept) / 8)
print("divided by 3/4:", [round(k / 0.75, 2) for k in kept], "  mean", sum(kept) / 0.75 / 8)

# %% [markdown]
# Without the division, updates would be a third larger once training is over and nothing is
# dropped. `nn.Dropout` drops and divides in training, and does nothing after `eval()`. Forget
# `eval()`, and one input gives a new result each time. The next cell adds up 12 updates of 0.1:

# %%
dropout, update = nn.Dropout(0.1), torch.tensor(0.1)
torch.manual_seed(0)
for training in (True, False):
    dropout.train(training)
    sums = [sum(dropout(update).item() for _ in range(12)) for _ in range(4)]
    print("training:  " if training else "evaluation:", [round(one, 2) for one in sums])

# %% [markdown]
# ## Vectors that keep their size
# A sum of many updates grows. Here is its spread in the stacks with skips from above:

# %% demo=true
experiments.growing()

# %% [markdown]
# So a layer deep in the stack meets numbers several times as large as the first does. **LayerNorm
# brings every vector to mean 0 and variance 1**, then applies a learned scale $g$ and shift $b$ to
# each feature:
#
# $$\text{norm}(x) = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} \odot g + b, \qquad
# \mu = \frac{1}{d}\sum_{i=1}^{d} x_i, \qquad \sigma^2 = \frac{1}{d}\sum_{i=1}^{d} (x_i - \mu)^2$$
#
# Mean and variance are those of **one vector**, one position in one sentence; $d$ is d_model. Work
# out by hand what becomes of 1, 1, 5, 5, without $\varepsilon$ and with 5, then compare:

# %%
for eps in (0.0, 5.0):
    normed = nn.functional.layer_norm(torch.tensor([1.0, 1, 5, 5]), (4,), eps=eps)
    print(f"eps {eps}: {[round(number, 3) for number in normed.tolist()]}")

# %% [markdown]
# ### Exercise 9.2 · `LayerNorm`
# ●●○ medium · 12 minutes · 3 points
#
# Graded in three parts: mean 0 (1), variance 1 and eps (1), weight and bias (1).
#
# Write it as a module. `__init__` makes two parameters of shape `(d_model,)`: `weight`, all ones,
# and `bias`, all zeros. `forward` takes x of shape `(..., d_model)` and keeps that shape.
#
# <details><summary>Hint 1 · the idea</summary>
#
# `nn.Parameter(tensor)` makes a tensor part of the module.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Take the mean over the last axis and keep that axis: `(..., 1)` lines up with `(..., d_model)`.
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
# <details><summary>Hint 4 · “1, 1, 5, 5 is normalised wrongly”</summary>
#
# `x.var()` divides by d − 1, not by d. And `eps` stands inside the root.
# </details>

# %%
from attention.provided import demand  # refuses numbers that make no sense

# %% exercise="LayerNorm"
from attention.transformer_blocks import LayerNorm

# %% check="LayerNorm" points=3
check.LayerNorm(LayerNorm)

# %% [markdown]
# ### Break it: a norm over the batch
# A common slip is to take mean and variance over the **batch**, axis 0. (For images this *batch
# normalisation* works well.) By how much can a sentence's numbers then change with its neighbour in
# the batch?

# %% demo=true
for norm in (LayerNorm(8), experiments.norm_over_the_batch):
    change = experiments.another_neighbour(norm)
    print(
        "over the features" if isinstance(norm, nn.Module) else "over the batch", round(change, 2)
    )

# %% [markdown]
# In a batch of two such a norm leaves nothing but a sign: of two numbers the larger becomes 1, the
# smaller −1. With a norm over the batch, a translation would depend on the other sentences and
# their padding.
#
# ## A small network for every position
# Given its weights, attention only averages values. The **feed-forward network** works on each
# average: the same two linear layers at every position, with a ReLU between them.
#
# $$\text{feed-forward}(x) = \max(0,\; x W_1 + b_1)\, W_2 + b_2$$
#
# The middle is wide: d_ff is usually 4 · d_model. Without the ReLU, two linear layers in a row
# would amount to one.
#
# ### Exercise 9.3 · `FeedForward`
# ●○○ easy · 8 minutes · 2 points
#
# First on paper: with d_model = 1 and d_ff = 2, which $W_1$ and $W_2$, without biases, compute
# $|x|$? (Hint 1 has the answer.) Then make the two layers, `linear_1` from d_model to d_ff and
# `linear_2` back, and use them. The dropout is given: it belongs on the **hidden units**.
#
# <details><summary>Hint 1 · the idea</summary>
#
# $W_1 = (1, -1)$ and $W_2 = (1, 1)^\top$: for $x = -3$ the hidden units are 0 and 3. In code: wide,
# ReLU, dropout, narrow.
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
# Below, twelve of your layers will learn to reverse digits. Build one. The class `Sublayers` makes
# its parts:
#
# | part | called as | what it is |
# |---|---|---|
# | `self.attention` | `(query, key, value, mask)` | the `MultiHeadAttention` of lesson 07 |
# | `self.feed_forward` | `(x)` | the network, ready-made |
# | `self.norm_1`, `self.norm_2` | `(x)` | one for each sublayer; PyTorch's own |
# | `self.dropout` | `(update)` | on in training, off after `eval()` |
# | `self.pre_norm` | True or False | which of the two drawings |
#
# ### Exercise 9.4 · `EncoderLayer`
# ●●○ medium · 15 minutes · 4 points
#
# Graded in four parts: post-norm (1), pre-norm (1), with a mask (1), with dropout (1).
#
# Write `forward` for **both** drawings, post-norm and pre-norm; `self.pre_norm` says which the
# layer is. x keeps its shape, `(B, T, d_model)`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Follow the thick line. In the pre-norm layer, what goes into a sublayer has been normalised; the
# stream has not.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
#
# ```
# if pre-norm:
#     x = x + dropout of attention(h, h, h, mask)    (what is h?)
#     the same once more, with the second norm and the network
# else: attention and network get x as it is. What do the norms get?
# ```
# </details>
# <details><summary>Hint 3 · “the pre-norm layer differs …”</summary>
#
# `x = self.norm_1(x)` normalises the stream itself. Give what you normalise another name.
# </details>

# %%
from attention.multi_head_attention import Sublayers

# %% exercise="EncoderLayer"
from attention.transformer_blocks import EncoderLayer

# %% check="EncoderLayer" points=4
check.EncoderLayer(EncoderLayer)

# %% [markdown]
# ## The decoder layer
# To write the next German letter, a model must look at two texts: what it has written, and the
# English. So a decoder layer has a third sublayer between the other two, and attends twice:
# - **self-attention** to the target, up to its own position: this needs a causal mask,
# - **cross-attention** to the source: queries from the stream, keys and values from `memory`.
#
# ![A pre-norm decoder layer. The residual stream runs along the bottom. The first detour is causal
# self-attention with its norm, the second is cross-attention, into which memory enters from above
# as keys and values without passing through the norm, the third is the feed-forward network. Each
# update is added to the stream.](figures/decoder_layer.svg)
#
# Both masks say which positions are not padding. Combine `mask` with the causal mask.
#
# | mask | keys | shape |
# |---|---|---|
# | `mask` | the target | broadcasts to `(B, T_q, T_q)` |
# | `memory_mask` | the source | broadcasts to `(B, T_q, T_k)` |
#
# ### Exercise 9.5 · `DecoderLayer`
# ●●● hard · 20 minutes · 4 points
#
# Graded in four parts: post-norm (1), pre-norm (1), the causal mask and the others (1), with
# dropout (1).
#
# Write `forward` for both norms. x is `(B, T_q, d_model)` and `memory` `(B, T_k, d_model)`. Here
# `norm_2` belongs to `self.cross_attention`, and `norm_3` to the feed-forward network.
# `causal_mask(T, device)` and `combine_masks` are those of lesson 06.
#
# <details><summary>Hint 1 · the idea</summary>
#
# One more detour in the middle. Where do its queries, keys and values come from?
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
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
# <details><summary>Hint 3 · “RuntimeError: The size of tensor a … must match … b …”</summary>
#
# A mask has met the wrong keys. The source has T_k = 7 positions, the target T_q = 5.
# </details>
# <details><summary>Hint 4 · “TypeError: unsupported operand type(s) for &”</summary>
#
# `mask` may be None. `combine_masks` can deal with that.
# </details>

# %%
from attention.masked_attention import causal_mask, combine_masks

# %% exercise="DecoderLayer"
from attention.transformer_blocks import DecoderLayer

# %% check="DecoderLayer" points=4
check.DecoderLayer(DecoderLayer)

# %% [markdown]
# Here are the masks at work. The source has 7 positions, of which the last two are padding:

# %% demo=true
experiments.masks_at_work(DecoderLayer)

# %% [markdown]
# *Weights of an untrained decoder layer. Left, self-attention: 5 queries, 5 keys, nothing above the
# diagonal. Right, cross-attention: 5 queries, 7 keys, nothing in the last two columns.*
#
# ## How large is it?
# Which holds more numbers, the four matrices of an attention or the small network? This counts all
# weights and biases, and the two vectors of each norm:

# %% given="layer_parameters"
from attention.transformer_blocks import layer_parameters

# %% demo=true
for name, d_model, d_ff in (("base", 512, 2048), ("big", 1024, 4096)):
    encoder, decoder = (layer_parameters(d_model, d_ff, cross) for cross in (False, True))
    share = 2 * d_model * d_ff / encoder
    print(f"{name:<4} encoder layer {encoder:10,}, of which W_1 and W_2 {share:.0%};", end=" ")
    print(f"decoder layer {decoder:10,}")

# %% [markdown]
# The small network holds two thirds of an encoder layer, at both sizes.
#
# ## How deep can we go?
# Now stack 1 to 48 real, untrained layers, with or without skip connections, pre-norm or post-norm.
# Measure the gradient of the **first** layer, the farthest from the loss.
#
# <details><summary>The code that ran</summary>
#
# ```python
# layers = [Switched(*sizes, norm=norm, skip=skip) for _ in range(depth)]
# classes, x = nn.Linear(d_model, 10), torch.randn(4, 10, d_model)
# output = nn.Sequential(*layers)(x)
# output = F.layer_norm(output, (d_model,)) if norm == "pre" else output
# F.cross_entropy(classes(output).flatten(0, 1), torch.randint(10, (40,))).backward()
# gradients = [[p.grad for p in layer.parameters() if p.grad is not None] for layer in layers]
# norms = [math.sqrt(sum(one.square().sum().item() for one in some)) for some in gradients]
# ```
#
# `Switched` is your encoder layer with switches for its norms and skip connections.
# </details>
#
# ### Predict first
# Norms keep every vector at one size. Without skip connections, do they keep the first layer's
# gradient from fading, too?

# %% demo=true
experiments.deep_stacks()

# %% [markdown]
# *Norm of the gradient on a logarithmic scale, mean and band of three random stacks. Left: in the
# first layer, against the number of layers. Right: in each of 48 layers. Dashed: without skip
# connections; the dashed lines nearly coincide.* With skip connections the first of 48 layers gets
# about as large a gradient as a single layer alone. Without them its gradient is at least 80 times
# smaller than the last layer's, wherever the norms stand. But look at 12 layers: there the first
# layer still gets more than half as large a gradient without skip connections as with them. A faded
# gradient can hardly be what stops a stack of twelve. What is?
#
# The cosines compare the vectors of different positions after the last layer. Without skip
# connections all positions end with the same vector (cosine 1.00), after four layers already.
# Averaging alone does that: Dong and colleagues (2021) prove this *rank collapse* for attention
# with neither skips nor feed-forward networks. The residual stream carries the input past the
# averages. Where all positions are alike, the digits cannot be told apart. This is probably what
# stops the stack of twelve; that it causes it, we have not shown.
#
# ## Which of them learn?
# Train 12 of your own layers to reverse digits: 3 1 4 1 5 9 becomes 9 5 1 4 1 3. Take 90 steps of
# Adam at a bold rate of 0.006. Do it with pre-norm, with post-norm, and with post-norm and a
# **warm-up**, in which the rate rises from 0 during the first 60 steps.
#
# <details><summary>The code that ran</summary>
#
# ```python
# model = Reverser(make, pre_norm, n_layers)
# optimizer = torch.optim.Adam(model.parameters(), lr=rate)
# schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1, (n + 1) / warm_up))
# losses: list[float] = []
# with Bar(steps, label) as bar:
#     for step in range(steps):
#         digits = torch.randint(10, (16, T))
#         loss = reversal_loss(model, digits)
#         optimizer.zero_grad()
#         (factor * loss).backward()
#         optimizer.step()
#         schedule.step()
#         losses.append(loss.item())
# ```
#
# `make` makes one layer, `factor` is 1, and a constant rate has `warm_up=1`. The model embeds the
# digits, adds learned positions, goes through the layers, and scores ten digits at each place.
# </details>

# %% demo=true
_ = experiments.three_runs(EncoderLayer)

# %% [markdown]
# *Loss against training step (means of ten), one run each; guessing gives ln 10.* Does post-norm
# need a warm-up? One rate and one seed cannot tell, so take four rates and three seeds. These runs
# are recorded; `experiments.train_one("post", seed=4, rate=0.003)` makes a new one.
#
# ### Predict first
# At half the rate, a constant 0.003, what is the loss of post-norm after 90 steps?

# %% demo=true
prediction = None  # a loss from 0 to 2.3; None skips this

# %% demo=true
half = experiments.rates()
compare(prediction, half, "post-norm, constant 0.003, mean of three")

# %% [markdown]
# *Loss of the last ten steps against the learning rate; each point a run, the lines are means.* At
# 0.003 post-norm trains without a warm-up. At 0.006 it fails in two runs of three, and at 0.012 in
# all. With a warm-up, post-norm does best at 0.006. Pre-norm learns at all four rates without
# one. So here post-norm needs a warm-up only for *bold* rates.
#
# The paper's Transformer is post-norm and warms up (lesson 11). Most large models since are
# pre-norm.
#
# Why does post-norm fail at bold rates? Xiong and colleagues (2020) blame large gradients in the
# last layers; above, the last of 48 got 1.7 to 3.6 times as large a gradient as with pre-norm. But
# Adam divides every gradient by a running mean of its size. We made all gradients a hundred times
# smaller or larger, at 0.003, 0.006 and 0.012: the same runs fail, and the others learn about as
# well (“gradients scaled” in the records). So the size of the gradients alone is not the reason.
# Their growth *during* training may be. Or it is how far one step moves the model's output (Liu and
# colleagues, 2020; open question 2).
#
# ### Add & Norm taken apart
# Which does the work, the sum or the norm? Switch each off in turn, at constant rates, and train as
# above:

# %% demo=true
experiments.add_and_norm()

# %% [markdown]
# *Loss of the last ten steps, three runs of each, and their mean where none ends at 4 or more.*
# Without skip connections twelve layers learn nothing at any of the four rates. (One layer learns
# without them; two end at a loss of 1.0 to 1.7, four above 2: “few layers, no skips” in the
# records.) With skips but no norms, twelve layers learn at the two lower rates, at 0.001 even
# faster than with a norm. At each of the two higher rates one run of three ends worse than
# guessing. *Add* lets the stack learn; *Norm*, placed as in pre-norm, lets it learn at bold rates.
#
# ### Break it: layers taken out
# Take layers out of a trained model at random. What share of digits is still right without 1 of the
# 12? Without 6?

# %% demo=true
_ = experiments.layers_taken_out()

# %% [markdown]
# *Share of digits right against the number of layers taken out: means of ten random choices, mean
# and band of three trained models.* Without one layer next to nothing is lost on average. Without
# half of them 75 to 90 % of the digits are right: the stream runs past the gap. Veit and colleagues
# (2016) found much the same in image networks.
#
# ## Your translator so far
# Two of your encoder layers now read the English words, after their embedding and positions.

# %% demo=true
from attention.experiments import translator_so_far
from attention.multi_head_attention import MultiHeadAttention
from attention.tokens_and_positions import sinusoidal_positions

pieces = {"MultiHeadAttention": MultiHeadAttention, "sinusoidal_positions": sinusoidal_positions}
_ = translator_so_far.up_to("09", **pieces, EncoderLayer=EncoderLayer)

# %% [markdown]
# *The table of lessons 05 to 08, with one more row, framed.* In 300 steps the two blocks do not
# help: a recurrent network still writes, and no run gets more than .51 of the seven-digit numbers
# right, while one got .67 without the blocks. They are here for the next lesson, where blocks
# write, too.
#
# ## Limits
# These stacks were small, and trained for 90 steps at most. Which norm is better after long
# training is another question.
#
# ## Something of your own
# Invent a layer: two norms, a learned gate on the update, another activation. Its `forward(x)`
# keeps the shape `(B, T, 32)`. `experiments.train(YourLayer, pre_norm=True)` trains twelve, and
# returns the model and its losses. Draw the losses at two rates. Would you put your layer into a
# translator?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# A residual connection adds a sublayer's update to its input. Without it all positions soon look
# alike, in very deep stacks the gradient fades, and twelve layers learned nothing in 90 steps.
# LayerNorm keeps vectors at one size, and the feed-forward network does what averaging cannot.
# Post-norm normalises the stream itself and needs a small rate or a warm-up. Pre-norm leaves the
# stream alone and forgives a bold rate.
#
# **Next** [10 · How do the pieces make a translator?](../10_transformer/10_transformer.ipynb) They
# become a whole Transformer that writes German.
#
# ## Open questions
# No points, no check; `experiments.train_one(norm, seed, rate=…)` trains one stack in seconds.
# 1. Pre-norm trains at 0.012. Double the rate until it fails. When is that?
# 2. How far does **one** step of Adam move the scores of an untrained stack? Compare the norms by
#    `experiments.first_step(norm, seed, rate)`, at 0.0001 and 0.001.
# 3. At a constant 0.006 post-norm fails with 12 layers. Does it fail with `n_layers=6`, or 3?

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# Seeds 1, 2 and 3 each time.
# 1. The loss of the last ten steps is 0.02, 0.00 and 0.01 at 0.024, 0.07, 0.50 and 0.94 at 0.048,
#    and 2.25, 2.31 and 2.29 at 0.096. There it has learned nothing: guessing has ln 10 = 2.30.
# 2. One step moves the scores by this many standard deviations. At 0.0001: pre-norm 0.03, 0.04,
#    0.04; post-norm 0.05, 0.09, 0.06; no norm 0.06, 0.09, 0.10. At 0.001: pre-norm 0.27, 0.40,
#    0.37; post-norm 0.47, 0.78, 0.62; no norm 0.51, 0.75, 0.84. So a step moves a post-norm stack
#    about 1.6 to 2.2 times as far as a pre-norm one; at 0.006, where post-norm fails, 1.0 to 1.2
#    times. Without norms it moves about as far or farther, and at 0.006 two runs of three learn. So
#    one step does not explain who fails.
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
#   overfitting.* JMLR 15.
# - Y. Dong, J.-B. Cordonnier, A. Loukas (2021). *Attention is not all you need: pure attention
#   loses rank doubly exponentially with depth.*
#   [arXiv:2103.03404](https://arxiv.org/abs/2103.03404)
# - A. Veit, M. Wilber, S. Belongie (2016). *Residual networks behave like ensembles of relatively
#   shallow networks.* [arXiv:1605.06431](https://arxiv.org/abs/1605.06431)
