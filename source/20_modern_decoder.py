# %% [markdown]
# # 20 · What changed since 2017?
#
# Change one number in the settings of SmolLM2, a chat model that anybody can download, and it
# answers in broken French. Here you learn to read these settings, build the decoder that they
# describe, let the model answer in it, and see which of eight changes since 2017 lower the loss.
#
# **After this lesson** you can
# - explain the settings of a published language model, line by line,
# - build **RMSNorm**, **SwiGLU**, and attention with **rotary positions**, **grouped queries**,
#   **query-key norm** and a **sliding window**,
# - show that your decoder computes what the code of Llama 3, Mistral and Qwen 3 computes, on tiny
#   models,
# - run a published chat model in your own layers, with a **cache** whose bytes you can count,
# - say which changes lowered the loss of a small model, and for which three seeds cannot tell.
#
# **Time** 110 minutes · **Points** 13 · **GPU** not needed · **You need** lessons 06, 07, 08, 09,
# 13 and 15

# %%
import torch
from torch import nn
from torch.nn import functional as F

from attention.experiments import modern_decoder as experiments
from autograder import check

torch.set_num_threads(1)  # these models are faster on one core

# %% [markdown]
# ## A file of settings
# SmolLM2-135M-Instruct (Allal et al., 2025) is published as a file of weights and a file of
# settings, in which you find these lines:
#
# ```
# "vocab_size": 49152, "hidden_size": 576, "num_hidden_layers": 30,
# "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536,
# "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 100000,
# "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": true
# ```
#
# Ask the model for the capital of France, and it answers “The capital of France is Paris.” Now
# change one number: let `rope_theta` be 10 000, as in lesson 08. All weights still load, nothing
# complains, and the answer is “La femme au pays: Paris, la capital de la femme au pays. Paris, la
# capital …”. Your own decoder will give both answers in this lesson. To run a published model you
# have to know what each line means, because a wrong one need not raise an error.
#
# ## Eight changes
# The plan is still that of 2017: attention and a feed-forward network, each with a residual
# connection around it. Most parts inside were replaced:
#
# | change (and lesson) | its line in the file | 2017 | reason given |
# |---|---|---|---|
# | pre-norm (09) | none | a norm after each sum | deep stacks train more easily |
# | RMSNorm | `rms_norm_eps` | LayerNorm | as good, and less to compute |
# | no biases | `attention_bias`, `mlp_bias` | biases | large models train more stably |
# | SwiGLU | `hidden_act` | ReLU | lower loss with as many parameters |
# | rotary positions (08) | `rope_theta` | sines, added | scores depend on distances |
# | grouped queries (07, 18) | `num_key_value_heads` | as many heads of keys | a smaller cache |
# | query-key norm | none; Qwen 3 has it | nothing | scores do not grow with W_q and W_k |
# | sliding window (06) | none; Mistral 7B has it | all earlier tokens | a bounded cost per token |
#
# The last column gives the authors' reason: for pre-norm that of Wang et al. (2019), for no biases
# that of Chowdhery et al. (2022); the references name the others. Whether a change lowers the loss,
# you will measure: one at a time, everything else kept, three seeds.
#
# With these changes, a layer computes
#
# $$x \leftarrow x + \mathrm{Attention}(\mathrm{RMSNorm}(x)) \qquad
# x \leftarrow x + \mathrm{SwiGLU}(\mathrm{RMSNorm}(x))$$
#
# ## RMSNorm subtracts no mean
# What do a LayerNorm and an RMSNorm make of the vector (1, 2, 3, 6)?

# %%
x = [1.0, 2.0, 3.0, 6.0]
mean = sum(x) / 4
deviation = (sum((a - mean) ** 2 for a in x) / 4) ** 0.5
root_mean_square = (sum(a * a for a in x) / 4) ** 0.5
print("LayerNorm", [round((a - mean) / deviation, 2) for a in x])
print("RMSNorm  ", [round(a / root_mean_square, 2) for a in x])

# %% [markdown]
# A LayerNorm subtracts the mean, 3, and divides by the standard deviation, 1.87. An RMSNorm only
# divides, by the root of the mean square, 3.54.
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
# <details><summary>Hint 1 · pseudocode</summary>
#
# ```
# mean_square = mean of x · x along the last axis, which stays with length 1 (keepdim)
# divide x by the root of (mean_square + eps), multiply by weight
# ```
# </details>

# %%
from attention.provided import demand  # refuses sizes that make no sense

# %% exercise="rms_norm"
from attention.modern_decoder import rms_norm

# %% check="rms_norm" points=1
check.rms_norm(rms_norm)

# %% demo=true
experiments.draw_norms(rms_norm)

# %% [markdown]
# *What the norms make of (1, 2, 3, 6), the vector above, when a number is added to all features.* A
# LayerNorm removes what all features have in common. RMSNorm keeps it: the farther from 0, the
# nearer all features come to 1 or −1, and the smaller their differences get. Both norms give the
# same result for a vector ten times as long, apart from ε. Zhang and Sennrich (2019) argued that
# this is what helps; their models did as well without subtracting the mean.
#
# ## SwiGLU: a second matrix as a gate
# SmolLM2's file says `"hidden_act": "silu"` and an `intermediate_size` of 1536. Why not 4 · 576 =
# 2304, as in 2017? In a network with ReLU, a hidden unit switches itself off. In a **gated** one, a
# second matrix decides how far the unit opens. That makes three matrices instead of two. To have as
# many parameters, the network gets 2/3 as many hidden units: 2/3 · 2304 = 1536. Shazeer (2020)
# tried several functions for the gate, and each lowered the loss. He does not explain why: “we
# attribute their success, as all else, to divine benevolence”.
#
# ### Exercise 20.2 · `SwiGLU`
# ●○○ easy · 5 minutes · 1 point
#
# Two linear layers read the same vector. The output of `W_gate` goes through a silu, silu(z) = z ·
# sigmoid(z), and is multiplied, number by number, by the output of `W_up`. `W_down` brings the
# product back to d_model numbers:
#
# $$\mathrm{SwiGLU}(x) =
# W_\text{down}\big(\mathrm{silu}(W_\text{gate}\,x) \cdot W_\text{up}\,x\big)$$
#
# All three are linear layers without bias, and have these names, so that published weights can be
# loaded.
#
# <details><summary>Hint 1 · functions and shapes</summary>
#
# `nn.Linear(features_in, features_out, bias=False)`, and `F.silu`. (..., d_model) becomes (...,
# d_ff) twice. The product of the two is (..., d_ff) again.
# </details>

# %% exercise="SwiGLU"
from attention.modern_decoder import SwiGLU

# %% check="SwiGLU" points=1
check.SwiGLU(SwiGLU)

# %% demo=true
experiments.draw_gate(SwiGLU)

# %% [markdown]
# *One hidden unit of your SwiGLU against the output of `W_gate`, for three outputs of `W_up`.*
# Dashed: ReLU, max(0, z). On the left the gate is nearly shut. On the right the unit is nearly the
# product of the two outputs. A product of two functions of x is something that one layer with ReLU
# cannot compute exactly.
#
# ## Attention: fewer keys, normalised queries, a window
# **Grouped queries.** In lesson 13 you kept keys and values in a cache, to write faster. For Llama
# 3.1 with 8 billion parameters, the cache of the longest text that it can read takes about as much
# memory as its weights. It would take far more if each head of queries had keys and values of its
# own. So several heads of queries share one head of keys and values.
#
# **Query-key norm.** Little keeps the numbers in W_q and W_k from growing during training. If they
# grow, so do the scores: the softmax picks one key, and its gradient vanishes (lesson 05). With an
# RMSNorm on each query and each key, the scores depend only on their directions and on the learned
# scales of the two norms, one for each feature.
#
# **A sliding window.** Even with shared keys the cache grows with every token. Mistral 7B keeps
# only the last 4 096: a position sees only the last w positions. Each of these has seen w positions
# in the layer below, so two layers reach twice as far.
#
# All this is done with **rotary positions** and a **cache**. With rotary positions a score depends
# only on the difference of two positions. So it does not matter where you begin to count: when a
# window has dropped the oldest keys, count from the oldest one left.
#
# ### Exercise 20.3 · `ModernAttention`
# ●●● hard · 35 minutes · 4 points
#
# Graded in four parts: shared heads, turned (1), norms of queries and keys (1), a window (1), a
# past and padding (1). Begin with the first, run the check, and go on from there.
#
# - **Rotary positions, shared heads.** Make the four matrices in `__init__`. x is (B, T, d_model),
#   and so is the output. There are `n_heads` heads of queries and `n_kv_heads` of keys and values,
#   each of d_head numbers. Neighbouring query heads share one: with 6 and 2 heads, query heads 0, 1
#   and 2 use head 0 of keys and values. Queries and keys are turned by their positions, with
#   `rotary` of lesson 08, which wants positions in float32 or float64, whatever x is. Hand
#   `self.base` on to `rotary`; values are not turned. Each position looks at itself and at what
#   came before it, never at what comes later.
# - **Norms of queries and keys.** With `qk_norm=True` each query and each key, head by head, goes
#   through `norm_q` or `norm_k` before it is turned. (Without it, both are `nn.Identity`.)
# - **A window.** With a `window`, a position sees only the last `window` positions, itself
#   included.
# - **A past and padding.** `past` is the pair of keys and values of P earlier positions, (B,
#   n_kv_heads, P, d_head) each, or None. The first new position is number P and sees all P before
#   it. Return the output and the pair for the next call, which holds the past and the new
#   positions; with a window, only the last `window` positions of both. Keys are kept as they are
#   *before* they are turned, but after their norm.
#
#   `real`, bool, has a column for each token so far, the new ones included. It is False at padding,
#   and no query may look at padding. (In 20.7 shorter prompts get padding in front, so that all of
#   them end in the same column.) The output at padding does not matter, as long as it is a number:
#   NaN would spread to the next layer. If a window has cut off the past, the oldest columns of
#   `real` belong to positions that are gone.
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
# Number all P + T positions. Key j lies i − j places before query i. The query sees the key if this
# is at least 0 and, with a window, below `window`. With P = 3, T = 2 and a window of 3, query 3
# sees the keys 1 to 3, and query 4 the keys 2 to 4.
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

# %%
from attention.masked_attention import masked_attention
from attention.multi_head_attention import merge_heads, share_heads, split_heads
from attention.tokens_and_positions import rotary

# %% exercise="ModernAttention"
from attention.modern_decoder import ModernAttention

# %% check="ModernAttention" points=4
check.ModernAttention(ModernAttention)

# %% [markdown]
# ### Predict first
# Multiply both W_q and W_k of an untrained attention by 8. A query sees 33 to 64 keys. Without
# query-key norm, how large is a query's largest weight, on average?

# %%
prediction = None  # from 0 to 1; None skips this

# %% demo=true
from attention.provided.predictions import compare

largest = experiments.show_loud(ModernAttention)
compare(prediction, largest, "the largest weight, without query-key norm")

# %% [markdown]
# *The largest weight of a query, the mean over queries and heads.* With both matrices multiplied by
# 8, the scores grow 64 times, and nearly all weight lies on one key. With the norms nothing changes
# at all. (There the scores are larger to begin with: the norms give every query and key the length
# √d_head.) Henry et al. (2020) proposed such norms for translation with little data. Dehghani et
# al. (2023) used them for a vision Transformer with 22 billion parameters: in large models without
# them, the scores grew until the training diverged.
#
# ## The layer and the model
# Does a decoder made of your own parts learn? Put them together, with a past for each layer.
#
# ### Exercise 20.4 · `ModernDecoderLayer`
# ●○○ easy · 5 minutes · 1 point
#
# A layer is pre-norm, as in lesson 09. The attention reads the output of `norm_1`, and its own
# output is added to x. The feed-forward network reads `norm_2` of this sum, and its output is added
# to the sum. Pass `past` and `real` to the attention, and return the pair that it returns beside
# the result, which is (B, T, d_model) like x.
#
# The check replaces your attention and your SwiGLU by parts of its own, so that a mistake in them
# costs nothing here.
#
# <details><summary>Hint 1 · the idea</summary>
#
# It is lesson 09's pre-norm layer; only the past is new. What is passed on, what returned?
# </details>

# %% exercise="ModernDecoderLayer"
from attention.modern_decoder import ModernDecoderLayer

# %% check="ModernDecoderLayer" points=1
check.ModernDecoderLayer(ModernDecoderLayer)

# %% [markdown]
# ### Exercise 20.5 · `ModernDecoder`
# ●●○ medium · 8 minutes · 3 points
#
# Graded in three parts: scores (1), with a past (1), padding (1).
#
# - **Scores.** Each token becomes its row of the table `embedding`, as it is: nothing is multiplied
#   by √d_model, and no positions are added. The layers follow one another, then `norm`. The score
#   of a token is the dot product of the result with that token's row of the same table. Scores are
#   (B, T, vocab_size). If the model has an `output` of its own, a linear layer in place of None,
#   that layer gives the scores instead.
# - **With a past.** `past` is a list with one pair for each layer, in their order. Return the
#   scores and the list of the pairs that the layers return.
# - **Padding.** Every layer is told which tokens are `real`.
#
# The check replaces your layers by its own, so that a mistake in them costs nothing here.
#
# <details><summary>Hint 1 · pseudocode</summary>
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
# Your decoder reads 120 batches from three novels by Jane Austen, each with 8 passages of 128
# tokens, cut as in lesson 15.

# %% demo=true
import math

from attention.provided.figures import plots

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
shown = {"your decoder": losses, "guessing evenly": [math.log(1024)] * 120}
_ = plots.lines(range(1, 121), shown, xlabel="step", ylabel="loss, nats per token")

# %% [markdown]
# *Loss of your ModernDecoder in its first training steps, and that of guessing evenly among 1 024
# tokens.* The decoder begins above it: random scores are worse than even ones.
#
# ## The same numbers as Llama
# Your decoder learns, but a falling loss does not show that it is the decoder of the published
# models. So give it the same weights as one of them, and compare the scores. One thing stands in
# the way.
#
# ### Exercise 20.6 · `pair_up`
# ●●○ medium · 5 minutes · 1 point
#
# Lesson 08 turns neighbouring features together: 0 and 1, 2 and 3, and so on. The code of many
# published models turns feature i of a head together with feature i + d_head / 2. A model can be
# trained either way, but its weights then fit only that way. `weight` is a published matrix W_q or
# W_k, (H · d_head, d_model). Put its rows into lesson 08's order, in each head separately: the rows
# 0, d_head / 2, 1, d_head / 2 + 1, and so on.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Cut the rows into heads, and each head into two halves: (H · d_head, d_model) → (H, 2, d_head / 2,
# d_model). Which of these axes have to change places before you flatten them?
# </details>

# %% exercise="pair_up"
from attention.modern_decoder import pair_up

# %% check="pair_up" points=1
check.pair_up(pair_up)

# %% [markdown]
# The library transformers holds the code of the published models. Four tiny models with random
# weights were made with it, each with the settings of a published one, and their scores for 11
# tokens were stored. Your decoder gets the same weights twice: with rows reordered by your
# `pair_up`, and with rows as published.
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
# ## Writing with a cache
# A chat model writes its answer token by token. Lesson 15's `generate` reads the whole text again
# for each one. Your decoder returns its keys and values, so reading each token once is enough.
#
# ### Exercise 20.7 · `generate_with_cache`
# ●●○ medium · 12 minutes · 2 points
#
# Let a model continue a text. It is called as `model(tokens, past, real)`, with tokens of shape (B,
# T), and returns the scores of what follows each of these tokens, (B, T, vocab_size), and the past
# for the next call. Read each token once: first the whole prompt, then only what was just written,
# each time with the past.
#
# Prompts may have different lengths; the shorter ones are padded with PAD *in front*, so that all
# of them end in the same column. `real` has a column for every token so far, those of this call
# included, and is False at this padding. All tokens that are written count as real.
#
# A row ends with its EOS, which is kept; after it there is only PAD. Stop when every row has ended,
# or after `max_length` new tokens. `choose` gets the scores after the last token, (B, vocab_size),
# and returns a token for each row. Return the new tokens only. The check brings a small model of
# its own. It complains if a token is read a second time.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Keep five things: the tokens to be read next, the past, `real`, the tokens written so far, and
# which rows have ended. Which of them change in a step?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `scores[:, -1]` is (B, vocab_size), and what is chosen (B,). As the next tokens to be read it is
# (B, 1). `real` grows by one column at each step.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# read the prompt; no past; no row has ended
# while there is room, and not every row has ended:
#     scores, past = model of what is to be read, the past, real
#     choose by the scores after the last token; PAD in rows that have ended
#     keep it; a row with an EOS has ended
#     read next: what was chosen; real gets one more column
# return what was chosen, column by column
# ```
# </details>

# %%
from attention.provided.data.tokens import EOS, PAD

# %% exercise="generate_with_cache"
from attention.modern_decoder import generate_with_cache

# %% check="generate_with_cache" points=2
check.generate_with_cache(generate_with_cache)

# %% demo=true
from attention.language_models import generate

_ = experiments.time_writing(ModernDecoder, generate, generate_with_cache)

# %% [markdown]
# *Processor time for the same tokens: with lesson 15's `generate`, and with your cache.* Without
# the cache, each new token costs another reading of all the text before it.
#
# The course comes with a larger decoder of this kind, with 3 layers, trained for 3 000 steps on the
# three novels. In your own decoder it continues a text:

# %% demo=true
experiments.write_on("It is a truth", ModernDecoder, generate_with_cache)

# %% [markdown]
# In a clone of the course, `make glass` makes [a page](../../book/_build/html/writer.html) on which
# you can watch it write, and see the tokens that it might have chosen instead.
#
# ## It answers
# Now back to the model of the beginning. The 134.5 million numbers of **SmolLM2** lie in a file of
# 98 MB, most of them in 4 bits, and become float32 when they are read. The file is not part of the
# course; `autograder data fetch smollm2` fetches it.
#
# The model was trained to continue texts in which user and assistant take turns. So a question
# becomes such a text. `<|im_end|>` is the EOS at which your `generate_with_cache` stops:
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
# Attention, gates, layers and cache are yours; the norms are `nn.RMSNorm`, which computes what your
# `rms_norm` does. The model is small: it knows the spider and the capital, but gets the product
# wrong, in confident words (17 · 23 is 391). In a clone of the course you can talk with it: `python
# -m attention.chat`.
#
# ### Predict first
# Now a single line of the settings is wrong: first the base, as at the beginning of this lesson,
# then one of two others.
# - A: `rms_norm_eps` is 0.01, a thousand times too large.
# - B: there is a `sliding_window` of 36. The prompt has 37 tokens, so its last token sees all but
#   the very first, `<|im_start|>`. Each new token loses sight of one more.
#
# Which of the two still gets the answer “The capital of France is Paris.”?

# %%
prediction = None  # "A", "B", "both" or "neither"; None skips this

# %% demo=true
right = experiments.ask_with_wrong_settings(ModernDecoder, generate_with_cache)
compare(prediction, right, "the answer survives")

# %% [markdown]
# Nothing raised an error. A window that is one token too short is enough, and the model recites its
# system prompt. Yet if the first token is hidden from the beginning on (not shown here), it is not
# missed: the model names Paris. Lesson 21 finds out what is special about the first token.
#
# ## What the cache takes
# How many chats of 131 072 tokens fit on a GPU of 80 GB? That depends on the cache: each layer
# keeps a key and a value of d_head numbers for each position, in each of the `n_kv_heads` heads.


# %%
def cache_bytes(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    kept = T if window is None else min(T, window)
    return 2 * n_layers * n_kv_heads * d_head * kept * bytes_per_number


# %% demo=true
experiments.draw_caches(cache_bytes)

# %% [markdown]
# *Size of the cache of one text against its length, in 16 bits, with the published sizes, as if all
# could read 131 072 tokens (Llama 3.1 can, Llama 3 reads 8 192).* Llama 2 keeps half a mebibyte for
# each token. Llama 3, with a quarter of the heads of keys and values, keeps a quarter of that.
# Mistral's line lies on that of Llama 3 up to its window of 4 096 tokens, then stays at half a
# gibibyte. GPT-3, with 96 layers and a head of keys for each of its 96 heads of queries, would keep
# 36 GiB for 8 192 tokens. So beside the weights of Llama 3.1 (16 GB), three chats of 131 072 tokens
# fit on the GPU. With as many heads of keys as Llama 2, not one would. Grouped queries and windows
# are not meant to lower the loss: they let more texts fit at once.
#
# ## Which changes lower the loss?
# SmolLM2 has six of the eight changes; query-key norm and the window are missing. What does each
# change do for the loss? SmolLM2 is too large to be trained again for each, so ask a decoder that
# trains in about a minute. Start from that of 2017: post-norm, with LayerNorms and biases, ReLU,
# added sines, four heads and tied tables. It has 2 layers and d_model = 128, as in lesson 15. Make
# one change at a time, then all of them except the window (of 32 positions). All decoders share:
# - the data: 600 steps, each on 8 passages of 128 tokens from three novels; with the same seed, the
#   same passages in the same order;
# - the number of parameters: where a change adds or removes some, the feed-forward network gets
#   narrower or wider, so that all have 0.53 million, within 0.2 %;
# - the test: *Persuasion*, a novel for which nothing was chosen;
# - the search for a learning rate: each change gets the best of three, by the loss on another novel
#   (*Northanger Abbey*) with one seed. Where the smallest or the largest was best, one more beyond
#   it was tried. It was never better.
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
# Each of the eight changes is made alone, with three seeds. For how many of them is even the
# *worst* seed better than the *best* seed of the decoder of 2017, after the same number of steps?

# %%
prediction = None  # a number from 0 to 8; None skips this

# %% demo=true
better = experiments.draw_changes()
compare(prediction, better, "changes whose worst seed beats the best of 2017")

# %% [markdown]
# *Bits per character of* Persuasion: *a dot for each seed, orange if all three lie below the
# decoder of 2017, whose range is the grey band; a stroke for the median. “Small start”, at 3.02
# bits, lies outside. “Same time” stops after 2017's processor time. Gap: the best run of 2017 minus
# the worst of the row; above 0, all three beat all of 2017.*
#
# With two of the eight every seed is better than all three of 2017: **rotary positions** and
# pre-norm. Luck alone can do that: shuffle six equal runs, and in one shuffle of twenty the three
# new ones are the best three. Of eight changes that do nothing, 0.4 would pass on average. So look
# at the gap. For rotary positions it is more than twice the spread of the three runs of 2017; for
# pre-norm it is small, and may be luck. And is it the turning that helps, or that the sines are
# gone? *No positions* only takes the sines away, and the loss stays as before (in lesson 08 the
# causal mask let some of the order through). Within 600 steps the added sines gained nothing.
# Turning did.
#
# The other six overlap with 2017. SwiGLU looks worse, but it hardly learned at 0.004, so it was
# trained at 0.002, where the decoder of 2017 does about as well. Shazeer (2020) found it better in
# a model of 220 million parameters. With pre-norm a rate of 0.008 works, at which the decoder of
# 2017 hardly learns. That is not why pre-norm is better: at 0.004 it does as well. (All but the
# chosen rates were tried with one seed.) All changes but the window together save 0.21 bits in the
# median, more than any one of them. A step took about 1.2 times as long, and in the same time they
# still save 0.15.
#
# ### How the table begins
# One line of SmolLM2's file is still missing: `"initializer_range": 0.041666…`, the standard
# deviation with which weights begin. This is 1/√576, or 1/√d_model. The table of our decoder of
# 2017 begins with 1/√d_model, too, here 0.09, and is multiplied by √d_model. In *small start* it
# begins with 0.02, as in GPT-2 and Llama, and is not multiplied. For that of 2017 this makes the
# entries 50 times smaller, for *all*, whose table is never multiplied, 4.4 times. The decoder of
# 2017 then gets stuck at the frequencies of the tokens, with 3.02 bits instead of 2.17. The one
# with all changes learns, but needs 2.23 bits instead of 1.96. In a comparison of two models, ask
# how both begin.
#
# ### Longer than in training
# All models learned from passages of 128 tokens. With rotary positions scores depend only on
# differences. Does that help in longer texts?
#
# ### Predict first
# Now the texts have 512 tokens. How many bits per token more does the decoder with rotary positions
# need at places 257 to 512 than at places 65 to 128?

# %%
prediction = None  # bits per token, below 0 if later places need less; None skips this

# %% demo=true
rise = experiments.draw_long()
compare(prediction, rise, "rotary: bits per token more at places 257 to 512")

# %% [markdown]
# *Bits per token at three stretches of texts of 512 tokens: the median of three seeds, which are
# the small dots.* Later tokens have more text before them, and yet no model predicts them better.
# With rotary positions alone the loss begins lower than in 2017, but rises most. Without any
# positions it stays nearly the same.
#
# Why does the loss rise with rotary positions? In 512 tokens the features that turn slowly reach
# angles that they never had in 128. The second table tries this, on three trainings repeated from
# the same seeds. Let only the slow features turn four times as slowly: the first places lose at
# most 0.05 bits, the last gain 0.3 to 0.7, and little is left of the rise. The fast ones are no
# clean control: slowing them costs 0.4 to 0.5 bits already at the first places, and helps the last
# with one seed only. So the slow features have a part in the rise; whether the fast ones have one
# stays open. (In the repeated trainings only rounding differs from the first ones, and yet seed 1
# rises by 0.8 bits instead of 0.5. Three runs do not tell how large a rise can be.)
#
# ## Limits
# - The decoders compared have half a million parameters, and were trained for about a minute. A
#   change may do something else at 7 billion, and the reasons given for it often concern size:
#   stability in long trainings, and memory.
# - The changes were made alone and all together, not in pairs. Their effects need not add up.
# - Only tiny random models were compared with the library's code.
# - Rates were chosen with one seed; wrong settings were tried with one model and one question.
#
# ## Something of your own
# Look up the settings of a language model that was published this year, in its `config.json`, and
# explain them line by line: which do you know, which are new? Or train a ModernDecoder on a text of
# your own, and let it write (in a clone of the course):
#
# ```sh
# python -m attention.train text notes.md
# python -m attention.write runs/text --prompt "In the beginning"
# ```
#
# Show what it writes at two temperatures, and one change that made it better.

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# Today's decoder keeps the plan of 2017 and replaces most of its parts. A settings file names them,
# and a wrong line may spoil the answer without an error. At half a million parameters, only rotary
# positions clearly lowered the loss on their own; all changes but the window together lowered it
# most. How the table began made a larger difference than any single change. Grouped queries and
# windows save bytes in the cache, and query-key norms keep scores from growing with the weights.
#
# **Next** [21 · What makes it answer?](../21_answers/21_answers.ipynb) You will take apart what
# makes SmolLM2 answer: its 4 bits, its prompt, its training, and its speed.
#
# ## Open questions
# No points, no check.
# 1. Padding in front moves the first token of a shorter prompt to another position. Why does this
#    not matter here, when it would with added sines?
# 2. With a window of 32 and 2 layers, how far back can a token influence what is written?
# 3. You reordered the rows of W_q and W_k. Why can W_v and W_o stay as they were published?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. A score depends on the difference of two positions, and padding in front moves all tokens of
#    a text alike.
# 2. 62 places: in each layer information moves on by up to 31.
# 3. Only queries and keys are turned. Their features meet in a dot product, where the order does
#    not count as long as both have the same one.
#
# </details>

# %% [markdown]
# ## References
# - Q. Wang et al. (2019). *Learning deep Transformer models for machine translation.*
#   [arXiv:1906.01787](https://arxiv.org/abs/1906.01787)
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
# - A. Chowdhery et al. (2022). *PaLM: scaling language modeling with pathways.*
#   [arXiv:2204.02311](https://arxiv.org/abs/2204.02311)
# - A. Jiang et al. (2023). *Mistral 7B.* [arXiv:2310.06825](https://arxiv.org/abs/2310.06825)
# - L. B. Allal et al. (2025). *SmolLM2: when Smol goes big.*
#   [arXiv:2502.02737](https://arxiv.org/abs/2502.02737)
# - H. Touvron et al. (2023). *LLaMA: open and efficient foundation language models.*
#   [arXiv:2302.13971](https://arxiv.org/abs/2302.13971)
