# %% [markdown]
# # 20 · What changed since 2017?
#
# The decoder of lesson 15 is much like those of 2018 to 2020. A language model of today has other
# parts. In this lesson you build them into the decoder that most open models share, let a chat
# model answer in it, and find out which of eight changes help at all.
#
# **After this lesson** you can
# - read the settings of a published language model, line by line,
# - build **RMSNorm**, **SwiGLU**, and attention with **rotary positions**, **grouped queries**,
#   **query-key norm** and a **sliding window**,
# - show that your decoder computes what the code of Llama 3, Mistral and Qwen 3 computes, on tiny
#   models,
# - let a published chat model answer, in your own layers,
# - write with a **cache**, and say how many bytes it takes,
# - say which changes lowered the loss at a small size, and which did not.
#
# **Time** 97 minutes · **Points** 13 · **GPU** not needed · **You need** lessons 06, 07, 08, 09, 13
# and 15

# %%
import torch
from torch import nn
from torch.nn import functional as F

from attention.experiments import modern_decoder as experiments
from attention.language_models import generate
from attention.masked_attention import masked_attention
from attention.multi_head_attention import merge_heads, share_heads, split_heads
from attention.provided import demand
from attention.provided.data.tokens import EOS, PAD
from attention.provided.figures import plots
from attention.provided.predictions import compare
from attention.tokens_and_positions import rotary
from autograder import check

torch.set_num_threads(1)  # these models are faster on one core

# %% [markdown]
# ## A file of settings
# A published model comes with a file of settings. Here are lines from that of Mistral, with 7
# billion parameters (Jiang et al., 2023), beside the Transformer of 2017:
#
# | setting | Mistral, 2023 | Transformer, 2017 |
# |---|---|---|
# | `hidden_size` | 4096 | d_model = 512 |
# | `num_hidden_layers` | 32 | 6 |
# | `num_attention_heads` | 32 | 8 |
# | `num_key_value_heads` | 8 | as many as heads of queries |
# | `intermediate_size` | 14336 | d_ff = 2048 |
# | `hidden_act` | silu | ReLU |
# | `rms_norm_eps` | 1e-05 | LayerNorm, after the sublayers |
# | `rope_theta` | 10000.0 | sines, added to the embeddings |
# | `sliding_window` | 4096 | none |
#
# The first three lines and `intermediate_size` are sizes. Each of the others names something that
# neither the paper of 2017 nor the layers of lesson 15 have.
#
# ## The idea
# The plan of the decoder stayed: attention and a feed-forward network, each with a residual around
# it. Most parts inside were replaced:
#
# | change | what was there | the reason that was given |
# |---|---|---|
# | pre-norm (lesson 09) | a norm after each sum | deep stacks train more easily |
# | RMSNorm | LayerNorm | as good, and less to compute |
# | no biases | a bias in every linear layer | more stable training of large models |
# | SwiGLU | ReLU | lower loss with the same number of parameters |
# | rotary positions (lesson 08) | added sines | scores depend on distances |
# | grouped queries (lessons 07, 18) | a head of keys for each head of queries | a smaller cache |
# | query-key norm | nothing | scores cannot grow without bound |
# | sliding window (lesson 06) | attention to all before | each token costs no more in long texts |
#
# Such lists are common. What they rarely have is a control: one change made, all else kept, and
# more than one seed. You will see such a control for each line.
#
# With all changes a layer is
#
# $$x \leftarrow x + \mathrm{Attention}(\mathrm{RMSNorm}(x)) \qquad
# x \leftarrow x + \mathrm{SwiGLU}(\mathrm{RMSNorm}(x))$$
#
# | what | shape |
# |---|---|
# | `x` | (B, T, d_model) |
# | queries | (B, H, T, d_head), d_head = d_model / H |
# | keys, values | (B, H_kv, T, d_head), where H_kv divides H |
# | hidden units of SwiGLU | (B, T, d_ff), twice |
#
# ## By hand
# What do the two norms make of the vector (1, 2, 3, 6)?

# %%
x = [1.0, 2.0, 3.0, 6.0]
mean = sum(x) / 4
deviation = (sum((a - mean) ** 2 for a in x) / 4) ** 0.5
root_mean_square = (sum(a * a for a in x) / 4) ** 0.5
print("LayerNorm", [round((a - mean) / deviation, 2) for a in x])
print("RMSNorm  ", [round(a / root_mean_square, 2) for a in x])

# %% [markdown]
# A LayerNorm subtracts the mean, 3, and divides by the standard deviation. RMSNorm divides by the
# root of the mean square, 3.54, and that is all.
#
# ### Exercise 20.1 · `rms_norm`
# ●○○ easy · 5 minutes · 1 point
#
# **RMSNorm** leaves out a LayerNorm's mean and shift. It divides each vector by its *root mean
# square*, then scales each feature:
#
# $$\mathrm{rms\_norm}(x)_i = \frac{x_i}{\sqrt{\frac{1}{d} \sum_{j} x_j^2 + \varepsilon}}\; w_i$$
#
# A vector lies along the last axis, however many axes stand in front of it.
#
# <details><summary>Hint 1 · the shapes</summary>
#
# There is one root for each vector: `keepdim=True` leaves it an axis of length 1, so that
# (..., d_model) divided by (..., 1) broadcasts.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
#
# ```
# mean_square = mean of x · x along the last axis, which stays
# divide x by the root of (mean_square + eps), multiply by weight
# ```
# </details>

# %% exercise="rms_norm"
from attention.modern_decoder import rms_norm

# %% check="rms_norm" points=1
check.rms_norm(rms_norm)

# %% demo=true
experiments.draw_norms(rms_norm)

# %% [markdown]
# *What the norms make of (1, 2, 3, 6) when the same number is added to all four features.* A
# LayerNorm never sees what is common to all features. RMSNorm keeps it: far from 0, all features
# come near 1 or −1, and their differences fade. With either norm, a vector may become ten times as
# long, and the layer after the norm notices nothing. Zhang and Sennrich (2019) argued that this
# indifference to length is what helps; without the mean, their models did as well.
#
# ## A gate
# In a network with ReLU, a hidden unit switches itself off. In a **gated** one, a second matrix
# decides how far the unit opens. Shazeer (2020) tried several functions for the gate, and each
# lowered the loss. He does not explain why: “we attribute their success, as all else, to divine
# benevolence”. Three matrices have as many numbers as two had before if there are 2/3 as many
# hidden units, often rounded up to a multiple of 256 for the hardware: LLaMA 7B has 11 008, where
# four times d_model would be 16 384.
#
# ### Exercise 20.2 · `SwiGLU`
# ●○○ easy · 5 minutes · 1 point
#
# Two linear layers read the same vector. What `W_gate` gives goes through a silu,
# silu(z) = z · sigmoid(z), and is multiplied, number by number, with what `W_up` gives. `W_down`
# brings the product back to d_model numbers:
#
# $$\mathrm{SwiGLU}(x) =
# W_\text{down}\big(\mathrm{silu}(W_\text{gate}\,x) \cdot W_\text{up}\,x\big)$$
#
# All three are linear layers without bias, and have these names, since published weights have a
# place for each.
#
# <details><summary>Hint 1 · the functions</summary>
#
# `nn.Linear(features_in, features_out, bias=False)`, and `F.silu`.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# (..., d_model) becomes (..., d_ff) twice. The product of the two is (..., d_ff) again.
# </details>

# %% exercise="SwiGLU"
from attention.modern_decoder import SwiGLU

# %% check="SwiGLU" points=1
check.SwiGLU(SwiGLU)

# %% demo=true
experiments.draw_gate(SwiGLU)

# %% [markdown]
# *One hidden unit of your SwiGLU against what its gate reads, where `W_up` gives 2, 1 or −1.* On
# the left the gate is nearly shut. On the right the unit gives what `W_up` gives, times what the
# gate reads: this is a product of two functions of x, which no layer with ReLU computes.
#
# ## Attention
# Three changes concern attention.
#
# **Grouped queries.** In lesson 13 you kept keys and values to write faster. For long texts this
# cache becomes larger than the model. So several heads of queries share one head of keys and
# values.
#
# **Query-key norm.** Little keeps the weights of W_q and W_k from growing during training. If they
# grow, so do the scores: the softmax picks one key, and its gradient vanishes (lesson 05).
# Therefore each query and each key goes through an RMSNorm. Then the score depends only on their
# directions, and on one learned scale for each feature.
#
# **A sliding window.** A position sees only the last w positions. In the next layer it sees
# positions that have themselves seen w positions, so what lies further back can still arrive.
#
# A **cache** and **rotary positions** go well together. With rotary positions a score depends only
# on the difference of two positions. So it does not matter where you begin to count: if a window
# has dropped the oldest keys, count positions from the oldest one left.
#
# ### Exercise 20.3 · `ModernAttention`
# ●●● hard · 25 minutes · 4 points
#
# Graded in four parts: shared heads, turned (1), norms of queries and keys (1), a window (1), a
# past and padding (1). Begin with the first, run the check, and go on from there.
#
# - **Shared heads, turned.** There are `n_heads` heads of queries and `n_kv_heads` of keys and
#   values, each of d_head numbers. Neighbouring query heads share one: with 6 and 2 heads, the
#   query heads 0, 1 and 2 use head 0 of keys and values. So `W_k` and `W_v` give n_kv_heads ·
#   d_head numbers. Queries and keys are turned by their positions, with `rotary` of lesson 08,
#   which wants positions in float32 or float64, whatever x is. The angles have the attention's
#   `base`; values are not turned. Each position looks at itself and at what came before it, never
#   at what comes later.
# - **Norms of queries and keys.** With `qk_norm=True` each query and each key, head by head, goes
#   through `norm_q` or `norm_k` before it is turned. (Without it, both are `nn.Identity`.)
# - **A window.** With a `window`, a position sees only the last `window` positions, itself
#   included.
# - **A past and padding.** `past` holds the keys and values of P earlier positions. The new ones
#   come after them: the first new position is number P, sees all P before it, and the pair that you
#   return holds both; with a window, only the last `window` positions of both, since no later query
#   sees more. Keys are kept as they are *before* they are turned, but after their norm. Keep
#   `n_kv_heads` heads, not the shared ones.
#
#   `real` says which tokens so far are not padding, the new ones included; nobody may look at
#   padding. What comes out at padding does not matter, as long as it is a number: NaN would spread
#   to the next layer. If a window has cut off the past, the oldest columns of `real` belong to
#   positions that are gone.
#
# <details><summary>Hint 1 · the tools</summary>
#
# `split_heads`, `share_heads` and `merge_heads` of lesson 07, `rotary` of lesson 08,
# `masked_attention` of lesson 06. In which order do you need them?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Queries are (B, H, T, d_head), keys and values (B, H_kv, P + T, d_head), both (B, H, P + T,
# d_head) once they are shared. The mask is (T, P + T): the queries are the last T positions. With
# `real` it is (B, 1, T, P + T).
# </details>
# <details><summary>Hint 3 · the mask</summary>
#
# Number all P + T positions. How far does key j lie before query i? That is i − j. The query sees
# the key if this is not below 0 and, with a window, below `window`.
# </details>
# <details><summary>Hint 4 · pseudocode</summary>
#
# ```
# q, k, v = project x, split into heads; norm q and k
# if there is a past: put it in front of k and of v, along the axis of positions
# turn q by the last T positions, k by all of them, under a new name
# share keys and values, attend under the mask, merge, W_o
# return this, and the pair of k as it was before it was turned, and v
# ```
# </details>
# <details><summary>Hint 5 · I get “RuntimeError: The size of tensor a … must match”</summary>
#
# With a past there are more keys than queries: T queries, P + T keys. A mask made for T × T does
# not fit, and `rotary` wants as many positions as there are vectors.
# </details>

# %% exercise="ModernAttention"
from attention.modern_decoder import ModernAttention

# %% check="ModernAttention" points=4
check.ModernAttention(ModernAttention)

# %% [markdown]
# ### Predict first
# Multiply W_q and W_k of an untrained attention by 8 each. A query sees 33 to 64 keys. Without
# query-key norm, how large is a query's largest weight then, on average?

# %%
prediction = None  # from 0 to 1; None skips this

# %% demo=true
largest = experiments.show_loud(ModernAttention)
compare(prediction, largest, "the largest weight, without query-key norm")

# %% [markdown]
# *The largest weight of a query, the mean over queries and heads.* Multiplied by 8 each, the
# scores grow 64 times, and nearly all weight lies on one key. With the norms nothing changes at
# all, though the scores begin larger: the norms give every query and key the length √d_head.
# Henry et al. (2020) proposed this for translation with little data. Dehghani et al. (2023)
# needed it for a vision Transformer with 22 billion parameters: without it, the scores grew until
# the training diverged.
#
# ## The layer and the model
#
# ### Exercise 20.4 · `ModernDecoderLayer`
# ●○○ easy · 5 minutes · 1 point
#
# A layer is pre-norm, as in lesson 09. The attention reads what `norm_1` makes of x, and what it
# gives is added to x. The feed-forward network reads what `norm_2` makes of the sum, and what it
# gives is added to the sum. `past` and `real` are for the attention, and the pair that it returns
# is returned with the result.
#
# The check puts other parts in the places of your attention and your SwiGLU, so that a mistake in
# them costs nothing here.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The attention gives two things: an update of x, and the pair. Only the update is added.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
#
# ```
# update, pair = attention of norm_1 of x, with past and real
# x = x + update
# x = x + feed-forward of norm_2 of x
# return x, pair
# ```
# </details>
# <details><summary>Hint 3 · I get “TypeError: unsupported operand type(s) for +”</summary>
#
# The attention returns a tuple of two. Take it apart before you add.
# </details>

# %% exercise="ModernDecoderLayer"
from attention.modern_decoder import ModernDecoderLayer

# %% check="ModernDecoderLayer" points=1
check.ModernDecoderLayer(ModernDecoderLayer)

# %% [markdown]
# ### Exercise 20.5 · `ModernDecoder`
# ●●○ medium · 10 minutes · 3 points
#
# Graded in three parts: scores (1), with a past (1), padding (1).
#
# - **Scores.** Each token becomes its row of the table `embedding`, as it is: nothing is
#   multiplied by √d_model, and no positions are added. The layers follow one another, then
#   `norm`. The score of a token is the dot product of the result with that token's row of the
#   same table. Only where the model has an `output` of its own, which is a linear layer and not
#   None, this layer gives the scores.
# - **With a past.** Each layer has a past of its own: the list holds one pair for each layer, in
#   their order. Return the list of the pairs that the layers give.
# - **Padding.** Every layer is told which tokens are `real`.
#
# The check puts other layers in the places of yours, so that a mistake in them costs nothing
# here.
#
# <details><summary>Hint 1 · the shapes</summary>
#
# `self.embedding.weight` is (vocab_size, d_model), the vectors after the norm are (B, T, d_model),
# and the scores should be (B, T, vocab_size).
# </details>
# <details><summary>Hint 2 · one past for each layer</summary>
#
# `enumerate(self.layers)` also gives a layer's number. Without a past, each layer gets None.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# x = rows of the tokens
# for each layer, with its number:
#     x, pair = layer of x, with its own pair of the past, if there is any, and real
#     keep the pair in a list
# return norm of x times the table, and the list
# ```
# </details>

# %% exercise="ModernDecoder"
from attention.modern_decoder import ModernDecoder

# %% check="ModernDecoder" points=3
check.ModernDecoder(ModernDecoder)

# %% [markdown]
# Does it learn? Your decoder reads three novels by Jane Austen, in the tokens of lesson 15: 120
# batches of 8 passages with 128 tokens each.

# %% demo=true
torch.manual_seed(0)
model = ModernDecoder(1024, **experiments.SIZES)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
losses = []
for tokens in experiments.passages(seed=0, steps=120):  # (8, 129) each
    optimizer.zero_grad()
    scores, _ = model(tokens[:, :-1])
    loss = F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
_ = plots.lines(range(1, 121), {"loss": losses}, xlabel="step", ylabel="nats per token")

# %% [markdown]
# *Loss of your ModernDecoder in its first training steps, in nats per token; guessing evenly among
# 1 024 tokens costs 6.93.* It begins above that, since random scores are worse than even ones.
#
# ## The same numbers as Llama
# Is this what the code of the published models computes? You can find out: give your model the same
# weights, and compare the scores. One thing stands in the way.
#
# ### Exercise 20.6 · `pair_up`
# ●●○ medium · 5 minutes · 1 point
#
# Lesson 08 turns neighbours together: features 0 and 1, 2 and 3, and so on. The code that many
# models are published with turns feature i of a head together with feature i + d_head / 2. Either
# works for a model that is trained with it, but published weights were trained with the second.
# Bring their rows into the first order, in each head separately: the rows 0, d_head / 2, 1, d_head
# / 2 + 1, and so on.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Cut the rows into heads, and each head into two halves. Then exchange two axes, as in
# `split_heads`, and put all rows below one another again.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# (H · d_head, d_model) → (H, 2, d_head / 2, d_model) → (H, d_head / 2, 2, d_model) → (H · d_head,
# d_model)
# </details>

# %% exercise="pair_up"
from attention.modern_decoder import pair_up

# %% check="pair_up" points=1
check.pair_up(pair_up)

# %% [markdown]
# Now take four tiny models of the library transformers, with random weights and the settings of
# four published ones. The scores that transformers computes for 11 tokens are stored. Your decoder
# gets the same weights, once with the rows in the order of your `pair_up`, and once as published.
#
# | model | options that your decoder gets |
# |---|---|
# | LLaMA 7B | `tied=False`: a matrix of its own scores the tokens |
# | Llama 3 8B | the same, `base=500_000` and `eps=1e-5` |
# | Mistral 7B | `tied=False`, `eps=1e-5` and a `window`, here of 4 tokens |
# | Qwen 3 0.6B | `qk_norm=True`, `base=1_000_000`, and a `d_head` above d_model / H: 128, here 8 |

# %% demo=true
_ = experiments.compare_with_transformers(ModernDecoder, pair_up)

# %% [markdown]
# In the right order your decoder agrees to the last digits of float32. In the published order the
# weights load without an error, every shape fits, and the scores are wrong.
#
# ## What does each change bring?
# Now comes the experiment that such lists leave out. We start from the decoder of 2017: post-norm,
# with LayerNorms and biases, ReLU, added sines, four heads and tied tables. It has 2 layers and
# d_model = 128, as in lesson 15. We make one change at a time, then all of them except the window
# (of 32 positions). All decoders share:
# - the data: 600 steps, each on 8 passages of 128 tokens from three novels, the same in the same
#   order;
# - the number of parameters: where a change adds or removes some, the feed-forward network gets
#   narrower or wider, so that all have 0.53 million, to 0.2 %;
# - the search for a learning rate: each change gets the best of three, by the loss on another novel
#   (*Northanger Abbey*) with one seed. Where the smallest or the largest was best, a fourth,
#   half or twice as large, was tried, and was no better.
#
# The results are measured on *Persuasion*, a novel for which nothing was chosen.
#
# <details><summary>The code that ran</summary>
#
# ```python
# torch.manual_seed(seed)
# model = Decoder(CHANGES[change])
# return model, *learn(model, adamw(model.parameters(), rate), rate, seed, steps)
# ```
# </details>
#
# ### Predict first
# Eight changes are made alone, with three seeds each. For how many is even the *worst* seed better
# than the *best* of the decoder of 2017, after the same number of steps?

# %%
prediction = None  # a number from 0 to 8; None skips this

# %% demo=true
better = experiments.draw_changes()
compare(prediction, better, "changes whose worst seed beats the best of 2017")

# %% [markdown]
# *Bits per character of* Persuasion: *a dot for each seed, a stroke for the median; the grey line
# is the decoder of 2017. Left: after 600 steps; “small start”, at 3.02 bits, lies outside. Right:
# three of them, each stopped after the processor time that 2017 needs for 600 steps.*
#
# With two of the eight every seed is better than all three of 2017: rotary positions and pre-norm.
# But a change that does nothing passes this test one time in twenty: that is how often, of six
# equal runs, a given three are the best. Of eight such changes, 0.4 would pass on average. So look
# at the gap between the worst run with the change and the best without it. For **rotary positions**
# it is 0.11 bits, more than twice the spread of the three runs of 2017. For pre-norm it is 0.02,
# and may be luck.
#
# The other six overlap with 2017. SwiGLU's median is worse, while Shazeer (2020) found it better in
# a model of 220 million parameters. All changes but the window together save 0.21 bits in the
# median, more than any one of them. As pre-norm alone does, they make a rate of 0.008 possible; at
# it the decoder of 2017 hardly learned (2.93 bits, one seed). “All” differs in one thing more: its
# table is not multiplied by √d_model.
#
# Is it the turning that helps, or the absence of the sines? The row *no positions* leaves the
# sines out and puts nothing in their place: the loss is as before. So the sines bring nothing in
# 600 steps, and turning does. (Without positions the order is not lost: as in lesson 08, the causal
# mask lets some of it through.)
#
# One thing is missing in all such lists: how the weights begin. The table of 2017 begins with a
# standard deviation of 1/√d_model, here 0.09, and is multiplied by √d_model. In *small start* it
# begins with 0.02, as in GPT-2 and Llama, and is not multiplied. Then the decoder of 2017 gets
# stuck at the frequencies of the tokens, with 3.02 bits instead of 2.17. The one with all changes
# learns, but needs 2.23 bits instead of 1.96. (With d_model = 4096, 1/√d_model is 0.016, and 0.02
# is not small.) Whoever compares two models has to ask how both of them begin.
#
# What do the changes cost? With all of them a step takes 1.2 times as long on the processor on
# which this was measured. In the same time the decoder takes 494 steps instead of 600, and still
# needs 0.15 bits less than that of 2017.
#
# ### Longer than in training
# All models learned from passages of 128 tokens. What happens at positions where they have never
# been?

# %% demo=true
_ = experiments.draw_long()

# %% [markdown]
# *Bits per token at three stretches of texts of 512 tokens: the median of three seeds, which are
# the small dots.* Later tokens have more text before them, and yet no model predicts them better.
# Without any positions the loss stays nearly the same, 0.06 to 0.08 bits more at the end. With
# rotary positions alone it begins lower, but rises most: by 0.38 to 0.48, and in the second table,
# trained anew, by up to 0.83. Why? In 512 tokens the features that turn slowly reach angles that
# they never had in 128. Let these alone turn four times as slowly, and the last places need 0.27 to
# 0.72 bits less. Let the others do so, and the last places gain 0.07 at most, while the first lose
# 0.39 to 0.47. With all changes but the window it rises by about 0.2. None of these decoders was
# trained on longer texts; published models are.
#
# ## Writing with a cache
#
# ### Exercise 20.7 · `generate_with_cache`
# ●●○ medium · 12 minutes · 2 points
#
# Let a model go on writing. It is called as `model(tokens, past, real)` and returns the scores of
# what follows each of these tokens, and the past for the next call. Read each token once: first
# the whole prompt, then only what was just written, each time with the past.
#
# Prompts may have different lengths; the shorter ones are filled up with PAD *in front*, so that
# all of them end in the same column. `real` is True where a token is no padding, for all tokens
# so far, those of this call included. What is written counts as real, whatever it is.
#
# A row ends with its EOS, which is kept; after it there is only PAD. Stop when every row has
# ended, or after `max_length` new tokens. `choose` gets the scores after the last token, one row
# for each text.
#
# The check brings a small model of its own. It complains if a token is read a second time.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Keep five things: what is to be read next, the past, `real`, the tokens written so far, and
# which rows have ended. Which of them does a step change?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `scores[:, -1]` is (B, vocab_size), and what is chosen (B,). As the next tokens to be read it is
# (B, 1). `real` grows by one column at each step.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# read the prompt; no past; nobody has ended
# while there is room, and not everybody has ended:
#     scores, past = model of what is to be read, the past, real
#     choose by the scores after the last token; PAD for those who have ended
#     keep it; whoever has chosen EOS has ended
#     read next: what was chosen; real gets one more column
# return what was chosen, column by column
# ```
# </details>

# %% exercise="generate_with_cache"
from attention.modern_decoder import generate_with_cache

# %% check="generate_with_cache" points=2
check.generate_with_cache(generate_with_cache)

# %% demo=true
_ = experiments.time_writing(ModernDecoder, generate, generate_with_cache)

# %% [markdown]
# *Processor time for the same tokens: with lesson 15's `generate`, which reads the whole text again
# for each token, and with your cache.* Without the cache, each new token costs another reading of
# all the text before it.
#
# A larger decoder ships with the course: 3 layers, trained for 3 000 steps on the three novels. Run
# by the parts that you wrote, it continues a text:

# %% demo=true
experiments.write_on("It is a truth", ModernDecoder, generate_with_cache)

# %% [markdown]
# In a clone of the course, `make glass` writes [a page](../../book/_build/html/writer.html) in
# which it writes before your eyes, and shows for each token what else it might have written.
#
# ## It answers
# Now run a model that others trained. **SmolLM2-135M-Instruct** is a Llama of 30 layers: d_model =
# 576, 9 heads over 3 of keys and values, d_ff = 1 536, a base of 100 000, one table of 49 152
# tokens. Its 134.5 million numbers lie in a file of 98 MB, 4 bits for most of them, and become
# float32 when they are read. The file is not part of the course; `autograder data fetch smollm2`
# fetches it.
#
# It was trained to continue texts in which user and assistant take turns, so a question becomes
# such a text. `<|im_start|>` and `<|im_end|>` are tokens of their own, and the second is the EOS at
# which your `generate_with_cache` stops:
#
# ```
# <|im_start|>system
# You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
# <|im_start|>user
# What is the capital of France?<|im_end|>
# <|im_start|>assistant
# ```

# %% demo=true
experiments.ask(ModernDecoder, generate_with_cache)

# %% [markdown]
# Attention, norms, gates and cache are yours. The model is small: it knows the spider and the
# capital, and makes up a product (17 · 23 is 391). What does one number of its settings do? Here
# the base is 10 000, as in lesson 08, and all else is kept:

# %% demo=true
experiments.ask(ModernDecoder, generate_with_cache, experiments.QUESTIONS[:1], base=10_000.0)

# %% [markdown]
# All weights load without an error, and the model rambles in French. In a clone of the course,
# `python -m attention.chat` lets you talk with it.
#
# ## What the cache takes
# For each position that is kept, each layer holds a key and a value in each of the `n_kv_heads`
# heads, of d_head numbers each:


# %%
def cache_bytes(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    kept = T if window is None else min(T, window)
    return 2 * n_layers * n_kv_heads * d_head * kept * bytes_per_number


# %% demo=true
experiments.draw_caches(cache_bytes)

# %% [markdown]
# *Size of the cache of one text against its length, in 16 bits, with the published sizes.* Llama 2
# keeps half a mebibyte for each token. Llama 3, with a quarter of the heads of keys and values,
# keeps a quarter of that. Mistral's line lies on that of Llama 3 up to its window of 4 096 tokens,
# and never gets above half a gibibyte. GPT-3, with 96 layers and a head of keys for each of its 96
# heads of queries, would keep 36 GiB for 8 192 tokens. That is the reason for grouped queries and
# windows: not a lower loss, but how many texts fit on a GPU at once.
#
# ## Limits
# - The decoders compared were trained for a minute, at half a million parameters. What a change
#   brings at 7 billion need not be what it brings here, and the reasons given for it often concern
#   size: stability in long trainings, and memory.
# - The changes were made alone and all together, not in pairs. Two changes that each help
#   alone need not add up.
# - Only tiny random models were compared with transformers. The published ones differ from them in
#   their sizes and weights.
# - Rates were chosen from three or four, with one seed; everything else about the training is the
#   same for all.
#
# ## Something of your own
# Look up the settings of a language model that was published this year, in its `config.json`.
# Make the table of this lesson's beginning for it: which line do you know, which is new? Or train
# a ModernDecoder on a text of your own, and let it write (in a clone of the course):
#
# ```sh
# python -m attention.train text notes.md
# python -m attention.write runs/text --prompt "In the beginning"
# ```
#
# Show what it writes at two temperatures, and the smallest change that made it better.

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# Today's decoder has the plan of 2017 and other parts in it. At half a million parameters, only
# rotary positions clearly lowered the loss on their own; all changes but the window together
# lowered it most. Grouped queries and windows have their reason elsewhere, in the bytes of the
# cache, and query-key norms in long trainings of large models. How the table began made a larger
# difference than any single change.
#
# **Next** [21 · What makes it answer?](../21_answers/21_answers.ipynb) You will take apart what
# made SmolLM2 answer: its 4 bits, its prompt, its training, and its speed.
#
# ## Open questions
# No points, no check.
# 1. Padding stands in front of the shorter prompts, so their first token has another place than
#    that of the others. Why does this not matter here, when it would with added sines?
# 2. With a window of 32 and 2 layers, how far back can a token influence what is written?
# 3. A Llama file gives a head's features in halves; you turn them in pairs. Why can W_v and
#    W_o stay in their order?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. A score depends on the difference of two positions, and padding in front moves all tokens of
#    a text alike.
# 2. By 62 places: each layer brings what lies up to 31 places before.
# 3. Only queries and keys are turned. Their features meet in a dot product, where the order does
#    not count as long as both have the same one.
#
# </details>

# %% [markdown]
# ## References
# - B. Zhang, R. Sennrich (2019). *Root mean square layer normalization.*
#   [arXiv:1910.07467](https://arxiv.org/abs/1910.07467)
# - N. Shazeer (2020). *GLU variants improve Transformer.*
#   [arXiv:2002.05202](https://arxiv.org/abs/2002.05202)
# - J. Su et al. (2021). *RoFormer: enhanced Transformer with rotary position embedding.*
#   [arXiv:2104.09864](https://arxiv.org/abs/2104.09864)
# - J. Ainslie et al. (2023). *GQA: training generalized multi-query Transformer models.*
#   [arXiv:2305.13245](https://arxiv.org/abs/2305.13245)
# - A. Henry et al. (2020). *Query-key normalization for Transformers.*
#   [arXiv:2010.04245](https://arxiv.org/abs/2010.04245)
# - M. Dehghani et al. (2023). *Scaling vision Transformers to 22 billion parameters.*
#   [arXiv:2302.05442](https://arxiv.org/abs/2302.05442)
# - A. Jiang et al. (2023). *Mistral 7B.* [arXiv:2310.06825](https://arxiv.org/abs/2310.06825)
# - L. B. Allal et al. (2025). *SmolLM2: when Smol goes big.*
#   [arXiv:2502.02737](https://arxiv.org/abs/2502.02737)
# - H. Touvron et al. (2023). *LLaMA: open and efficient foundation language models.*
#   [arXiv:2302.13971](https://arxiv.org/abs/2302.13971)
