# %% [markdown]
# # 15 · What if there is only a decoder?
#
# The decoder of a translator says which token comes next, given the source and what it has written
# so far. Put the source in front of what is written, and one decoder can do it all. Such a model
# simply goes on writing: it is a **language model**.
#
# **After this lesson** you can
# - turn a task, such as summarising, into the continuation of a text, and say what is learned,
# - build a **decoder-only** model, train it and let it write, numbers and then English, and judge
#   that in bits a character,
# - count what encoder-decoder and decoder-only cost for a long text and a short summary,
# - let a decoder read longer texts by **local** and **memory-compressed** attention,
# - share out tokens among **experts**, and measure how evenly that is done,
# - read a table that compares such models, beside trivial baselines.
#
# **Time** 135 minutes, ★ 10 more · **Points** 13 · **GPU** not needed ·
# **You need** lessons 06 to 10 and 13

# %%
import textwrap
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional as F

from attention.experiments import language_models as experiments
from attention.masked_attention import causal_mask, masked_attention
from attention.provided import demand
from attention.provided.data import docstrings, keywords, novels
from attention.provided.data.keywords import SEP
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.figures import plots
from attention.provided.measuring import timing
from attention.provided.measuring.memory import megabytes
from attention.provided.predictions import compare
from attention.provided.training_steps import fewer
from attention.tokens_and_positions import bpe_decode, bpe_encode, embed, sinusoidal_positions
from attention.transformer import Encoder
from autograder import check

torch.set_num_threads(1)  # matrices as small as those of this lesson are faster on one core

# %% [markdown]
# ## What fails without this idea
# A translation is about as long as its source. A summary is not: M tokens are read and N are
# written, and M is much larger than N. Here is what attention costs a translator then, in scores
# of one head of one layer that may be seen, with 4 bytes for a score:

# %%
N = 200
print(f"{'M':>6}  {'encoder M²':>12}  {'cross MN':>10}  {'decoder N²/2':>12}  {'memory of M²':>12}")
for M in (200, 1000, 11000):
    print(f"{M:6}  {M * M:12,}  {M * N:10,}  {N * N // 2:12,}  {4 * M * M / 1e6:9.1f} MB")

# %% [markdown]
# For a long text nearly all is spent on the encoder, which is a second set of weights beside the
# decoder's, and it spends M² on reading. Two questions follow. Is the encoder needed at all? And
# does everybody have to look at everybody?
#
# Both were asked by Liu et al. (2018), who let models write the first section of Wikipedia articles
# from the pages that these cite and from search results: up to 11 000 tokens are read to write one.
#
# ## The idea
# Write text and summary one after the other, with a separator between them, and train a decoder on
# that:
#
# $$\text{text}\quad \texttt{SEP}\quad \text{summary}\quad \texttt{EOS}$$
#
# $$p(\text{summary} \mid \text{text}) =
# \prod_t p(w_t \mid \text{text},\ \texttt{SEP},\ w_1 \dots w_{t-1})$$
#
# A causal mask is all that the decoder needs. There is no encoder and no cross-attention; the
# summary looks back at the text as it looks back at itself.
#
# | name | shape | what it is |
# |---|---|---|
# | `tokens` | `(B, T)` | text, SEP, summary, EOS; then padding |
# | `counted` | `(B, T)` | True = a token that is to be learned |
# | `logits` | `(B, T, vocab_size)` | at position t, scores of the token at t + 1 |
#
# ## By hand
# What is read, and what is to be said, at each position:

# %%
row = ["rain", "fell", "all", "day", "SEP", "rain", "EOS"]
print(f"{'t':>2}  {'has read':<30} is asked for   counts")
for t in range(len(row) - 1):
    asked, counts = row[t + 1], t + 1 > row.index("SEP")
    print(f"{t:2}  {' '.join(row[: t + 1]):<30} {asked:<14} {'yes' if counts else ''}")

# %% [markdown]
# A pure language model counts all of these, and so do Liu et al. Here only those after SEP count.
# In use, the text is given and only the summary is written. And in the task below the text is
# random, so there is nothing to learn from it.
#
# ### Exercise 15.1 · `join_text_and_summary`
# ●○○ easy · 10 minutes · 1 point
#
# Make the batch: lists of different lengths become two tensors.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Make the rows as lists first. The longest one says how wide the tensors are. Then fill a tensor of
# PAD row by row.
# </details>
# <details><summary>Hint 2 · what counts</summary>
#
# The text has `len(text)` tokens, so SEP stands at index `len(text)` and the summary begins one
# later. EOS counts: the model should learn to stop. The padding does not.
# </details>
# <details><summary>Hint 3 · the dtypes</summary>
#
# `torch.full((B, T), PAD)` makes int64. `torch.zeros(B, T, dtype=torch.bool)` is False everywhere.
# </details>

# %% exercise="join_text_and_summary"
from attention.language_models import join_text_and_summary

# %% check="join_text_and_summary" points=1
check.join_text_and_summary(join_text_and_summary)

# %% [markdown]
# ### Exercise 15.2 · `language_model_loss`
# ●●○ medium · 15 minutes · 2 points
#
# The tokens are input and target at once, shifted by one. Whether a token counts depends on the
# token *that is to be predicted*. Every token that counts weighs the same, whether its sequence is
# short or long. Scores may be large: 1000 and more.
#
# <details><summary>Hint 1 · the idea</summary>
#
# After the last token nothing is asked for, and nothing asks for the first token. So drop the last
# position of one tensor and the first position of the other.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `logits[:, :-1]` is (B, T - 1, vocab_size), `tokens[:, 1:]` is (B, T - 1). `gather` along the last
# axis, or `F.cross_entropy` on flattened tensors with `reduction="none"`, picks what belongs
# together.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# target: tokens without the first
# counts: target is not PAD, and, if given, counted without its first
# loss of each position; 0 where it does not count
# sum, divided by how many count, but at least by 1
# ```
# </details>
# <details><summary>Hint 4 · NaN</summary>
#
# If no token counts, sum and number are both 0. `clamp(min=1)` keeps the divisor above 0. And where
# a score is -inf, so is a log-probability: 0 times it is NaN. `masked_fill` or `torch.where` put a
# 0 there, whatever stood there before.
# </details>

# %% exercise="language_model_loss"
from attention.language_models import language_model_loss

# %% check="language_model_loss" points=2
check.language_model_loss(language_model_loss)

# %% [markdown]
# Now the model. A decoder layer without cross-attention has a self-attention and a feed-forward
# network. That is just an *encoder* layer with a causal mask. So the stack can be the `Encoder` of
# lesson 10. Padding needs no mask: it comes at the end, where no real token sees it.
#
# ### Exercise 15.3 · `DecoderOnly`
# ●●○ medium · 12 minutes · 2 points
#
# Write `forward`. `embed` and `sinusoidal_positions` of lesson 08 and `causal_mask` of lesson 06
# are imported.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Tokens → vectors → plus positions → the stack, under a mask → scores.
# </details>
# <details><summary>Hint 2 · the pieces</summary>
#
# `embed(ids, table)` wants the table itself, `self.embedding.weight`, and scales by √d_model.
# `sinusoidal_positions(positions, d_model)` wants the positions in floating point: 0.0, 1.0, …
# In bfloat16 257 would be 256; `torch.promote_types` finds the wider of two dtypes (lesson 10).
# </details>
# <details><summary>Hint 3 · tensors on two devices</summary>
#
# `torch.arange` and `causal_mask` take a `device`. Which one is right?
# </details>

# %% exercise="DecoderOnly"
from attention.language_models import DecoderOnly

# %% check="DecoderOnly" points=2
check.DecoderOnly(DecoderOnly)

# %% given="generate"
from attention.language_models import generate

# %% [markdown]
# ## A model of your own
# It learns to spell numbers in English, letter by letter, from examples below ten thousand. One
# number in ten is kept from it. Every letter counts.

# %% demo=true
known, unseen = experiments.known_and_unseen()
print(len(known), "to learn from,", len(unseen), "kept back:", known[20:22])
speller, losses = experiments.learn_numbers(
    DecoderOnly, language_model_loss, known, steps=fewer(300)
)
_ = plots.lines(range(1, len(losses) + 1), {"loss": losses}, xlabel="step", ylabel="nats a letter")

# %% [markdown]
# *Loss against training step, in nats a letter.* It does not fall to 0, and it cannot: at many
# places more than one letter can come next. Now let it write. Greedily, it goes on from a
# beginning:

# %% demo=true
for begin in ("", "seven hundred", "forty thousand", "nine thousand e", "twenty million"):
    prompt = experiments.batch_of([begin])[:, :-1]
    ids = generate(speller, prompt, lambda logits: logits.argmax(dim=1), max_length=50)
    print(f"{begin or '(nothing)':<15} → {begin}{experiments.spelled(ids)[0]}")

# %% [markdown]
# A number below ten thousand cannot begin like the third and the fifth. A language model goes on
# anyway: nothing in what it writes says that the beginning is wrong.
#
# ### Predict first
# Now it draws each letter at random from its probabilities, sharpened or flattened by a temperature
# (lesson 13). Of 200 texts at temperature 1, how many are numbers, spelled correctly to the last
# letter? (And how many of those were kept from it: none, or about one in ten?)

# %%
prediction = None  # a number from 0 to 200; None skips this

# %% demo=true
right, count = {}, fewer(200)
for t in (0.5, 1.0, 1.5):
    ids = generate(speller, torch.full((count, 1), BOS), experiments.sampler(t), max_length=50)
    texts = experiments.spelled(ids)
    new, right[t] = (sum(text in some for text in texts) for some in (unseen, {*unseen, *known}))
    print(f"temperature {t}: {right[t]} of {count} are numbers, {new} kept back, as in", texts[:2])
compare(prediction, right[1.0], f"numbers among {count} texts at temperature 1")

# %% [markdown]
# At temperature 1 four texts in five are numbers: 161 of 200 here, 166 and 164 with two other
# seeds. Of these 13, 15 and 26 were held out, about one in ten, as many as were kept back. So the
# model has learned how numbers are spelled, not a list of those that it has read. With a high
# temperature improbable letters are drawn more often, and a single one spoils the text.
#
# ## It writes English
# Numbers are a small language. Now your class reads three novels by Jane Austen, *Pride and
# Prejudice*, *Sense and Sensibility* and *Emma*: 2.2 million characters that come with the course.
# It reads the tokens of lesson 08: 768 merges, learned from the three novels, make 1 024 ids. Two
# more novels are kept back.

# %%
learn, choose, test = novels.split()
merges = experiments.merges()
ids = bpe_encode(learn[:117], merges)
print(len(ids), "tokens:", "|".join(bpe_decode([i], merges) for i in ids))

# %% [markdown]
# A batch is eight passages of 129 tokens from anywhere in the novels. Every token counts, so the
# same function gives the loss. Sixty steps of training:

# %% demo=true
torch.manual_seed(0)
novice = DecoderOnly(256 + len(merges), **experiments.SIZES)
losses = experiments.learn_novels(novice, language_model_loss, fewer(60))
_ = plots.lines(range(1, len(losses) + 1), {"loss": losses}, xlabel="step", ylabel="nats a token")
print(experiments.go_on(novice, generate, "It is a truth", temperature=1.0))

# %% [markdown]
# *Loss against training step, in nats a token.* By now the model knows which tokens are frequent,
# and little else. After 3 000 steps, some five minutes on one core, the weights were stored. They
# fit into your class:

# %% demo=true
author = experiments.novelist(DecoderOnly)
for temperature in (0.5, 0.8, 1.0):
    text = experiments.go_on(author, generate, "It is a truth", temperature)
    print(f"temperature {temperature}\n{text}\n")

# %% [markdown]
# Nobody told it of words or full stops. It writes mostly English words, sentences that begin and
# end, and people of the novels; beyond a few words it makes no sense. At 0.5 it repeats itself, at
# 1 it invents words. (Seed 0, not chosen.) That is all there is to a language model: it reads what
# stands there and draws what comes next.
#
# ### How good is it?
# Nats a token depend on how long the tokens are. **Bits a character** do not: divide the loss by
# ln 2, then multiply by the tokens and divide by the characters of a text. Ours is *Persuasion*,
# which was not read in training.
#
# The control learns nothing. It counts what came after the last few tokens, or characters, in the
# same three novels: an *n-gram model*, with the smoothing of Kneser and Ney. It may keep as many
# counts as your model has weights.
#
# ### Predict first
# If all characters were as likely, each would cost 6.2 bits. How many bits does your decoder need
# after 3 000 steps? (And does it need fewer than the counts, or more?)

# %%
prediction = None  # bits a character, from 0 to 6.2; None skips this

# %% demo=true
bits = experiments.judged_on_persuasion()
compare(prediction, sorted(bits)[1], "bits a character of your decoder, median of three seeds")

# %% [markdown]
# About 1.8 bits are less than a third of 6.2. But a table of as many counts is still a hair better,
# 1.78 against 1.79, with all three seeds. After 700 steps, less than one reading of the novels, it
# was far ahead. The counts have nothing more to learn from these novels, and what the decoder would
# gain from more steps, or from more novels, was not measured.
#
# ## What does it cost?
# One sequence of M + N tokens has (M + N)² scores, of which a causal mask leaves about half to be
# seen: (M + N)²/2. Encoder, cross-attention and decoder have M² + MN + N²/2. Here they are counted
# and timed for M = 2 048 and N = 64: forward, and with the backward pass that training needs. The
# fused kernel of PyTorch (lesson 18) computes the same, stores no scores, and leaves hidden ones
# out.

# %% demo=true
spent = experiments.what_it_costs(M=2048, N=64)

# %% [markdown]
# For M much larger than N, a decoder alone has half as many scores to compute as an encoder, since
# each token of the text sees only those before it. Whether that saves time depends on the code.
# Dense attention computes all of them and hides half, and hiding is work as well: it takes twice
# the encoder's time or more. The fused kernel takes less than the encoder's: in five runs 0.65 to
# 0.85 of it forward, and two thirds with the backward pass. Also saved is one of two sets of
# weights. The price is that the text is read in one direction.
#
# But half a square still grows with the square. So the second question remains. Who has to look at
# whom?
#
# Liu et al. take turns between two kinds of layers:
# - **local**: the sequence is cut into blocks, and attention stays within a block;
# - **memory-compressed**: a convolution makes one key and one value of every few neighbours. All
#   queries stay, and see every stretch of neighbours that has ended, in a compressed form.

# %%
T, block, stride = 24, 6, 3
t = torch.arange(T)
masks = {
    "dense": causal_mask(T),
    f"local, block = {block}": causal_mask(T) & (t[:, None] // block == t // block),
    f"compressed, stride = {stride}": t[stride - 1 :: stride] <= t[:, None],
}
axes = plots.panels(columns=3, width=3.0, height=2.9, share=False)
for ax, (name, mask) in zip(axes, masks.items(), strict=True):
    plots.heatmap(mask.double(), ax, f"{name}: {int(mask.sum())}", colorbar=False)

# %% [markdown]
# *Who may look at whom among 24 positions, and in the titles how many such pairs there are. Queries
# down, keys across; compressed, only 8 keys are left.* In a local layer nobody sees beyond the edge
# of the block. In a compressed layer two positions in three do not see the latest ones, not even
# themselves: these still lack a neighbour to be compressed with. One makes up for what the other
# lacks.
#
# ### Exercise 15.4 · `local_block_attention`
# ●●○ medium · 15 minutes · 2 points
#
# Do not make a (T, T) mask and hide most of it: then nothing would be saved. Make the blocks an
# axis of their own. `masked_attention` of lesson 06 takes any number of axes in front. The check
# asks for half a million positions, too: a loop over blocks is quick enough; one over positions is
# not, and the grading of a class stops it. From here on a tensor that you make belongs on the
# device of the arguments, `q.device`.
#
# <details><summary>Hint 1 · the idea</summary>
#
# (..., T, d) becomes (..., n_blocks, block, d). Then it is ordinary causal attention over `block`
# positions, many times side by side.
# </details>
# <details><summary>Hint 2 · the rest</summary>
#
# T need not be a multiple of block. `F.pad(x, (0, 0, 0, extra))` adds rows of zeros at the end of
# the second-to-last axis; `-T % block` says how many are missing. Can a real position see them?
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# fill up q, k and v at the end
# unflatten the axis of the positions into (blocks, block)
# masked attention with a causal mask of (block, block)
# flatten both axes again, and keep the first T positions
# ```
# </details>

# %% exercise="local_block_attention"
from attention.language_models import local_block_attention

# %% check="local_block_attention" points=2
check.local_block_attention(local_block_attention)

# %% [markdown]
# ### Exercise 15.5 · `compress`
# ●●○ medium · 10 minutes · 1 point
#
# A convolution whose kernel moves by its own width. Every place in the kernel has a matrix of its
# own: $y_j = \sum_s x_{j \cdot \mathrm{stride} + s}\, W_s$.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Cut the sequence into stretches of `stride` neighbours. Multiply each vector with the matrix of
# its place, and add up within the stretch.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# (..., n, stride, d_in) with (stride, d_in, d_out): two axes are summed over. `einsum` says that
# directly. Or flatten both of them into one, in both tensors, and it is one matrix product.
# </details>

# %% exercise="compress"
from attention.language_models import compress

# %% check="compress" points=1
check.compress(compress)

# %% [markdown]
# ### Exercise 15.6 · `memory_compressed_attention`
# ●●● hard · 15 minutes · 2 points
#
# The keys and values are compressed already. What is left is the question who may see what: the
# mask has T rows, but only T // stride columns. And at the beginning there is nothing to see.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Key j holds tokens from several positions. If one of them is still to come, the key would tell
# about the future. Which of its positions is the last?
# </details>
# <details><summary>Hint 2 · the mask</summary>
#
# One column of query positions, one row with the last position of each key: a comparison broadcasts
# to (T, T // stride).
# </details>
# <details><summary>Hint 3 · NaN in the first rows</summary>
#
# `masked_attention` gives zeros to a query that may attend to nothing. With a softmax of your own,
# you have to take care of that.
# </details>

# %% exercise="memory_compressed_attention"
from attention.language_models import memory_compressed_attention

# %% check="memory_compressed_attention" points=2
check.memory_compressed_attention(memory_compressed_attention)

# %% [markdown]
# ### Break it
# Suppose the mask let a position see the key of its own stretch: it asks where a stretch *begins*,
# not where it ends. Change one token, and look where the output changes.

# %%
torch.manual_seed(0)
x, weight = torch.randn(12, 8), torch.randn(3, 8, 8)
other = x.clone()
other[7] += 1.0
t, j = torch.arange(12)[:, None], torch.arange(4)


def leaky(q, k, v, stride):
    return masked_attention(q, k, v, j * stride <= t)


for name, attend in (("whole stretches", memory_compressed_attention), ("leaky", leaky)):
    before, after = (
        attend(torch.ones(12, 8), *[compress(one, weight)] * 2, 3) for one in (x, other)
    )
    changed = (before - after).abs().amax(dim=1) > 1e-6
    print(f"{name:<16} token 7 changes the output at", changed.nonzero().flatten().tolist())

# %% [markdown]
# The leaky layer shows token 7 at position 6. In training such a model would read answers off, and
# its loss would be too good. When it writes, the answers are not there.
#
# ## Time and memory
# 2 heads of 32 numbers, for texts of growing length: forward alone, and forward and backward as in
# training. The fused kernel of PyTorch does the same as the dense one.

# %% demo=true
lengths = (256, 512, 1024, 2048)
forward, training, memory = {}, {}, {}
for T in lengths:
    q, k, v = (torch.randn(1, 2, T, 32, requires_grad=True) for _ in range(3))
    weight, mask = torch.randn(3, 32, 32), causal_mask(T)
    runs = {
        "dense": lambda q=q, k=k, v=v, mask=mask: masked_attention(q, k, v, mask),
        "compressed by 3": lambda q=q, k=k, v=v, w=weight: memory_compressed_attention(
            q, compress(k, w), compress(v, w), 3
        ),
        "local, 256": lambda q=q, k=k, v=v: local_block_attention(q, k, v, 256),
        "fused": lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    }
    for name, run in runs.items():
        both = timing.both_ways(run, (q, k, v))
        with torch.no_grad():
            forward.setdefault(name, []).append(timing.milliseconds(run, repeats=3))
        training.setdefault(name, []).append(timing.milliseconds(both, repeats=3))
        memory.setdefault(name, []).append(megabytes(both))

# %% demo=true
axes = plots.panels(columns=3, width=3.3, height=3.0, share=False)
plots.lines(lengths, forward, axes[0], "time, forward", "T", "milliseconds", log=True)
plots.lines(lengths, training, axes[1], "time, forward and backward", "T", log=True)
plots.lines(lengths, memory, axes[2], "memory, forward and backward", "T", "megabytes", log=True)
for ax in axes:
    ax.set_yscale("log")
    ax.set_xticks(lengths, lengths)
    ax.minorticks_off()
low, high = axes[0].get_ylim()[0], axes[1].get_ylim()[1]
for ax in axes[:2]:
    ax.set_ylim(low, high)
    ax.get_legend().remove()

# %% [markdown]
# *Time and memory asked for against length, all axes logarithmic. The times are those of one run
# on one machine, and jump where it had other things to do; the memory is counted, that of every
# tensor that is made.* Compressed by 3, the curve of the memory lies lower than the dense one, and
# is nearly as steep: a third of T² still is quadratic. The local curve is less steep. And the
# fused kernel, which computes the dense result without ever storing its scores (lesson 18), asks
# for the least memory by far, backward as well. In 2018 there was no such kernel. Beside it,
# compression saves no memory; it still computes fewer scores.
#
# ## More weights, not more work
# The last idea of the paper is a **mixture of experts** (Shazeer et al., 2017): instead of one
# feed-forward network there are E of them, and a small linear layer, the router, picks k for each
# token. The parameters grow with E, the work for a token only with k.
#
# $$y = \sum_{e\ \in\ \text{top } k} g_e \cdot \mathrm{FFN}_e(x)
# \qquad g = \mathrm{softmax}\big(\text{the } k \text{ best of } x W_r\big)$$
#
# ### Exercise 15.7 · `top_k_gate`
# ●●○ medium · 10 minutes · 2 points
#
# From the scores of E experts for each token, make the weights $g$: k of them sum to 1, the others
# are 0. The router learns through these weights.
#
# <details><summary>Hint 1 · the idea</summary>
#
# First choose, then softmax over the chosen ones, then put the weights back to their places.
# </details>
# <details><summary>Hint 2 · the functions</summary>
#
# `topk` gives values and indices, (N, k) each. `scatter` writes numbers to the places that indices
# name. Or: hide all but the k chosen places with -inf, and take the softmax of what is left. Where
# the k-th best score is a tie, k are chosen all the same.
# </details>

# %% exercise="top_k_gate"
from attention.language_models import top_k_gate

# %% check="top_k_gate" points=2
check.top_k_gate(top_k_gate)

# %% [markdown]
# Nothing keeps the router from sending all tokens to the same experts: an expert that is chosen
# learns, and may be chosen the more often. So a second loss is added, with a small factor. For the
# share
# $f_e$ of choices that fell on expert e and its mean probability $P_e$ (Fedus et al., 2022):
#
# $$L_\text{balance} = E \sum_e f_e\, P_e$$
#
# Counts have no gradient, probabilities do: pressing the sum down lowers the probability of the
# experts that are chosen too often.
#
# ### Exercise 15.8 · `load_balance_loss`
# ●●○ medium · 10 minutes · 1 point
#
# If all experts get equally many tokens, with the same probabilities, it is 1; if the same k of
# them get all tokens and all of the probability, it is E / k.
#
# <details><summary>Hint 1 · the shares</summary>
#
# `gates > 0` marks the choices. Count them for each expert, and divide by how many there are in
# all, so that the shares add up to 1 also for k > 1.
# </details>
# <details><summary>Hint 2 · the probabilities</summary>
#
# From the softmax of *all* scores of a token, then the mean over the tokens. The gates will not do:
# they are 0 for whoever was not chosen.
# </details>

# %% exercise="load_balance_loss"
from attention.language_models import load_balance_loss

# %% check="load_balance_loss" points=1
check.load_balance_loss(load_balance_loss)

# %% given="MixtureOfExperts"
from attention.language_models import MixtureOfExperts

# %%
torch.manual_seed(0)
mixture = MixtureOfExperts(d_model=64, d_ff=64, n_experts=4, k=2)
y = mixture(torch.randn(2, 50, 64))
print("parameters:", sum(p.numel() for p in mixture.parameters()))
print("shares:", [round(share, 2) for share in mixture.shares.tolist()])
print(f"balance: {mixture.balance.item():.3f}")

# %% [markdown]
# Each token passes through 2 · 64 hidden units of the 4 · 64 that there are. It costs as much as
# one network with 128 hidden units, and stores twice as many weights. Before any training the
# tokens are spread almost evenly, and the balance is near 1.
#
# ## One table
# Now all of them on one task that can be checked exactly. A text has 128 words; four of twelve
# topic words are hidden in it, anywhere. The summary is these four, in alphabetical order:

# %%
texts, summaries = keywords.make(1, 128, torch.Generator().manual_seed(3))
print(keywords.text(texts[0]), "\n→", keywords.text(summaries[0]))

# %% [markdown]
# The question is the paper's: with about the same number of scores for a text, who finds more? A
# dense decoder that reads the first 64 words sees 4 970 scores, one that takes turns between local
# blocks of 32 and compression by 4 reads all 128 for 4 344. All models have d_model = 64, learn
# from 600 batches of 16 texts, and are tested on 500 new ones, with three seeds. The
# encoder-decoder has a layer on each side, the others have two layers. Scores are those that one
# head may see, added up over the layers. All this takes minutes, so a command of the course's
# repository has measured it, and its file is drawn here:
#
#     python -m benchmarks.language_models --jobs 2
#
# ### Predict first
# Which share of the topic words does a model find that reads only half of each text? (Whoever says
# the same four words every time finds 0.34.) And does a decoder that reads all the text coarsely
# find more than that, or less?

# %%
prediction = None  # share of topic words from half of each text, from 0 to 1; None skips this

# %% demo=true
found = experiments.readers()
half = sorted(found["models"]["decoder only, short"]["found"])[1]
compare(prediction, half, "found by the decoder that reads half, median of three seeds")

# %% [markdown]
# *A point is one seed: share of the topic words that are found in 500 new texts. Dotted: always the
# same four words. Dashed: a reader without any error of the first 64 words, who guesses the rest.*
# Readers of half a text find about 0.6 of the words and do not get beyond the dashed line, with an
# encoder or without: what they do not see, they can only guess. The dense decoder that reads all
# finds nearly everything, for 3.6 times as many scores. *Local, then compressed* takes no more
# scores than the short decoder, and is above the dashed line with all three seeds: 0.96, 0.99, and
# far behind them 0.80. So on this task, for a decoder with a fixed number of scores, reading all of
# it coarsely beats reading half, which is the paper's argument.
#
# What else does the table show?
# - **Local alone** cannot work, and does not. The block in which the summary is written holds no
#   word of the text.
# - **Compressed alone** does as well as the two in turns, or better. Here a topic word says all by
#   itself; a task in which neighbours matter is needed to see what local layers are for.
# - **Positions** make no clear difference. Word order does not matter in this task, so every other
#   model was trained without positions. A causal mask already tells a decoder something of where it
#   is (Kazemnejad et al., 2023).
# - **Experts** add a third to the weights, and three seeds show no gain that is clearer than the
#   spread of the seeds. Nothing here asks for more weights: the task is to find twelve words.
# - **Weights are not equal.** The convolutions bring some of their own. It is scores that
#   are compared here, not sizes.
#
# The same table for Wikipedia (Liu et al., 2018, table 4), where ROUGE-L measures how much of the
# reference comes back in the right order:
#
# | model | tokens read | log-perplexity | ROUGE-L |
# |---|---|---|---|
# | recurrent, with attention | 500 | 5.05 | 12.7 |
# | encoder-decoder | 500 | 2.47 | 34.2 |
# | decoder only | 4 000 | 2.22 | 33.6 |
# | local and compressed, in turns | 11 000 | 2.05 | 36.2 |
# | the same, 128 experts | 11 000 | 1.93 | 37.9 |
# | the same, 256 experts | 7 500 | 1.90 | 38.8 |
#
# Several things change at once from row to row, so the table does not say what each of them
# contributes.
#
# ## Who works?

# %% demo=true
experiments.shares_of_experts(found)

# %% [markdown]
# *The part of all choices that fell on the most chosen of four experts, on the test texts. A point
# is a seed; dashed: an even spread.* In layer 1 all three seeds are more even with the loss (0.28
# to 0.33) than without it (0.35 to 0.46). In layer 0 there is no such difference. With two of four
# chosen, a share is 0.5 at most: then every token takes that expert. The table above hides this:
# accuracy looks the same. Log the load of each expert as well.
#
# ## Limits
# The topic words are a task in which one word says all by itself: it tells what a reader has seen,
# and little about what it can do with it. A key that stands for several positions is a mixture of
# them, and what is needed word by word may be lost in it. Experts add weights that must be stored,
# wherever they are used. A language model learns which text comes next, not whether it is true:
# nothing in the loss asks.
#
# ## Summary
# A decoder alone can read and write, if text and summary are one sequence and the loss counts what
# is to be written; after three novels it writes English. Local blocks and compressed keys let it
# read more for the same number of scores; a stretch may be seen when it has ended. A mixture of
# experts adds weights without adding work for a token, and a second loss pushes towards an even
# spread of the tokens.
#
# **Next** [16 · What else has tokens?](../16_encoders_and_vision/16_encoders_and_vision.ipynb) The
# decoder goes and the encoder stays: it reads documents and images, and decides.
#
# ## Open questions
# No points, no check; the notebook has what is needed.
# 1. Keep every number with “seven hundred” in it from the speller, in place of one number in ten
#    (leave them out of `known`, and train anew). Will it write such numbers by itself? And will it
#    go on correctly when “seven hundred” is given to it?
# 2. In the pictures of who may look at whom, with 24 positions: which earlier positions can reach a
#    position through two local layers, through two compressed ones, or through one of each? Does it
#    matter which comes first?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. By itself hardly ever: of 400 texts at temperature 1 a single one, with each of the seeds 0, 1
#    and 2 (311 to 322 of the 400 were numbers). But given “seven hundred” it wrote a number in 142
#    to 157 cases of 200, and given “two thousand seven hundred” in 172 to 185. It has learned that
#    *hundred* does not follow *seven*, since it never did; what follows *hundred* it knows from the
#    other hundreds.
# 2. Of the 300 pairs of a position and an earlier one, or itself, two local layers connect 84: the
#    blocks stay apart. Two compressed layers connect 292: what is missing is the position just
#    before, in the same stretch. One of each connects all 300, in either order. (Residuals count as
#    a way from a position to itself.)
#
# </details>

# %% [markdown]
# ## ★ Summaries that people wrote
# The first line of a docstring sums up the rest: that is a convention of Python
# (PEP 257). So the rest is a text, and the first line its summary. The course comes with such pairs
# from Python's standard library, numpy and PyTorch, the same for every machine; data/README.md says
# how they were chosen, and which licences they are under.

# %%
rows = docstrings.load()
print(len(rows), "docstrings, each with the first", docstrings.WORDS, "words of the rest\n")
for row in (next(row for row in rows if row.name == name) for name in ("merge", "cumsum")):
    print(f"{row.name} in {row.module}")
    print(textwrap.fill(row.body, 96, initial_indent="    ", subsequent_indent="    "))
    print("→", row.summary, "\n")

# %% [markdown]
# ### Predict first
# Functions are copied and changed a little, and their docstrings with them. Two rows are *near
# twins* if they share at least half of their runs of five words. One row in ten is kept for tests.
# What share of those has a near twin in training, if they are drawn at random?

# %%
prediction = None  # a share from 0 to 1; None skips this

# %% demo=true
pairs = docstrings.twins(rows)
near = defaultdict(set)
for i, j in pairs:
    near[i].add(j)
    near[j].add(i)
print(f"{'split':<14}  test rows  with a near twin in training")
for how, key in docstrings.SPLITS.items():
    test_places = {i for i, row in enumerate(rows) if docstrings.is_test(key(row))}
    leaked = sum(bool(near[i] - test_places) for i in test_places)
    print(f"{how:<14}  {len(test_places):9}  {leaked / len(test_places):.1%}")
    if how == "at random":
        at_random = leaked / len(test_places)
compare(prediction, at_random, "share with a near twin in training, drawn at random")

# %% [markdown]
# Of the rows drawn at random 9.1 % have a near twin in training, and splitting by name hardly
# helps: 8.7 %. Splitting by package, which is here the folder of a module, leaves some. By
# *component* no row of the test has a near twin in training, for rows that are linked by near twins
# go to one side together. That is the split below.
#
# ### How good is a first line?
# There are many right ones, so counting errors will not do. **ROUGE-L** (Lin, 2004) takes the
# *longest common subsequence*, the most words that both lines have in the same order, gaps allowed.
# It divides its length by that of each line, and gives the harmonic mean F1 of the two shares.
# Google's library `rouge-score` computes it:

# %% demo=true
row = rows[0]._replace(summary="Return the mean of a tensor.")
for written in ("Return the tensor.", "Return the mean of a tensor.", "Tensor mean."):
    print(f"{docstrings.rouge_l([written], [row])[0]:.3f}  {written}")

# %% [markdown]
# The first has 3 words of 3, and 3 of 6: F1 is 2 · 1 · 0.5 / 1.5. The last says much the same as
# the summary, and gets least: ROUGE counts words and their order, not meanings.
#
# ### Predict first
# Before anything is trained: what do rules reach that learn nothing? One takes the first words of
# the rest; one the name of the function, cut into words; one writes “Return the” before that name.
# Which of the three is best, and what does it reach?

# %%
prediction = None  # ROUGE-L of the best rule, from 0 to 1; None skips this

# %% demo=true
learn, test = docstrings.split(rows)
print(f"{len(learn)} rows to learn from, {len(test)} to test\n")
draw, reached = torch.Generator().manual_seed(0), []
for name, rule in docstrings.RULES.items():
    scores = torch.tensor(docstrings.rouge_l([rule(row) for row in test], test))
    again = scores[torch.randint(len(test), (1000, len(test)), generator=draw)].mean(dim=1)
    low, high = again.quantile(torch.tensor([0.025, 0.975])).tolist()
    print(f"{name:<28} {scores.mean():.3f}   95 %: {low:.3f} to {high:.3f}")
    reached.append(scores.mean().item())
compare(prediction, max(reached), "ROUGE-L of the best rule")

# %% [markdown]
# “Return the” and the name is best, with 0.244, 0.03 above the name alone, for two words that are
# the same for every function. This is the rule to beat.
#
# A `DecoderOnly` with three layers and the tokens of a byte-level BPE (lesson 08) is trained on
# these rows. So that it knows no less than the rules, it reads the name, too, and then the
# beginning of the rest; its first line is written greedily. That takes longer than this notebook
# should, so a command of the course's repository has measured it, with three seeds, on 250 of the
# rows for testing:
#
#     python -m benchmarks.docstrings

# %% demo=true
record = experiments.first_lines()

# %% [markdown]
# *ROUGE-L of 250 first lines against the minutes of training. A point is one seed; the lines are
# the rules, on the same rows.* After a minute no seed is above the rule that writes one line for
# all: a minute shows nothing. After six minutes a model does about as well as the first words of
# the rest, which nobody had to train, and no point comes near the name or “Return the” and the
# name. So a small model that learns from five thousand rows for a few minutes does not beat one
# line of Python.
#
# What does it write?

# %% demo=true
for place, row in enumerate(record["shown"]):
    print(f"{row['name']}: {textwrap.shorten(row['body'], 80)}\n       wanted  {row['summary']}")
    for point in record["points"]:
        if point["seed"] == 0:
            print(f"{point['steps']:7} steps  {point['wrote'][place]}")
    print()

# %% [markdown]
# What it says has the tone of a docstring, and often little to do with the function. A score alone
# would not tell that.

# %% [markdown]
# ## References
# - P. J. Liu et al. (2018). *Generating Wikipedia by summarizing long sequences.*
#   [arXiv:1801.10198](https://arxiv.org/abs/1801.10198)
# - N. Shazeer et al. (2017). *Outrageously large neural networks: the sparsely-gated
#   mixture-of-experts layer.* [arXiv:1701.06538](https://arxiv.org/abs/1701.06538)
# - W. Fedus, B. Zoph and N. Shazeer (2022). *Switch Transformers: scaling to trillion parameter
#   models with simple and efficient sparsity.* [arXiv:2101.03961](https://arxiv.org/abs/2101.03961)
# - A. Kazemnejad et al. (2023). *The impact of positional encoding on length generalization in
#   Transformers.* [arXiv:2305.19466](https://arxiv.org/abs/2305.19466)
# - C.-Y. Lin (2004). *ROUGE: a package for automatic evaluation of summaries.*
#   [aclanthology.org/W04-1013](https://aclanthology.org/W04-1013)
