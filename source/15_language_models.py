# %% [markdown]
# # 15 · What if there is only a decoder?
#
# The decoder of a translator says which token comes next, given the source and what it has written
# so far. Put the source in front of what is written, and one decoder can do it all. Such a model
# simply goes on writing: it is a **language model**.
#
# **After this lesson** you can
# - turn a task, such as summarising, into the continuation of a text, and say what is learned,
# - build a **decoder-only** model, train it and let it write,
# - count what encoder-decoder and decoder-only cost for a long text and a short summary,
# - let a decoder read longer texts by **local** and **memory-compressed** attention,
# - share out tokens among **experts**, and measure how evenly that is done,
# - read a table that compares such models, beside trivial baselines,
# - split a corpus so that no near twin of a test text is learned from.
#
# **Time** 145 minutes · **Points** 14 · **GPU** not needed · **You need** lessons 06 to 10 and 13

# %%
import json
import random
import string
import textwrap

import torch
from torch import nn
from torch.nn import functional as F

from attention.decoding import sample_tokens
from attention.masked_attention import causal_mask, masked_attention
from attention.provided import demand
from attention.provided.data import docstrings, keywords
from attention.provided.data.keywords import SEP
from attention.provided.data.numbers import in_words, is_test
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.figures import plots
from attention.provided.files import ROOT
from attention.provided.measuring import timing
from attention.provided.measuring.memory import megabytes
from attention.provided.predictions import compare
from attention.provided.progress import Bar
from attention.provided.training_steps import fewer
from attention.tokens_and_positions import embed, sinusoidal_positions
from attention.transformer import Encoder
from autograder import check

torch.set_num_threads(1)  # matrices as small as those of this lesson are faster on one core

# %% [markdown]
# ## What fails without this idea
# A translation is about as long as its source. A summary is not: M tokens are read and N are
# written, and M is much larger than N. Here is what attention costs a translator then, in scores
# for one head of one layer, with 4 bytes for a score:

# %%
N = 200
print(f"{'M':>6}  {'encoder M²':>12}  {'cross MN':>10}  {'decoder N²':>10}  {'memory of M²':>12}")
for M in (200, 1000, 11000):
    print(f"{M:6}  {M * M:12,}  {M * N:10,}  {N * N:10,}  {4 * M * M / 1e6:9.1f} MB")

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
# A pure language model counts all of these, and so do Liu et al. Here only those after SEP count:
# when the model is used, the text is given, and nobody asks it to invent one. Where the words of a
# text are drawn at random, as further below, there would be little to learn from them, too.
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
# token *that is to be predicted*. Scores may be large: 1000 and more.
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
# ### Exercise 15.3 · `break_language_model_loss` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate goes through the batch sequence by sequence. On many batches this loss is the right
# one. Find one for which it is not.
#
# <details><summary>Hint 1 · where to look</summary>
#
# Which tokens weigh more here than they should, and which less? When do all weigh the same?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# One sequence has three tokens that count, another has one. What share of the mean has that one
# here, and what share should it have? The losses must differ, too.
# </details>

# %% broken="averages_sequences"
from autograder.mistakes.language_models import averages_sequences

# %% exercise="break_language_model_loss"
from attention.language_models import break_language_model_loss

# %% check="break_language_model_loss" points=1
check.break_language_model_loss(break_language_model_loss)

# %% [markdown]
# Now the model. A decoder layer without cross-attention has a self-attention and a feed-forward
# network. That is just an *encoder* layer with a causal mask. So the stack can be the `Encoder` of
# lesson 10. Padding needs no mask: it comes at the end, where no real token sees it.
#
# ### Exercise 15.4 · `DecoderOnly`
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
# number in ten is kept from it. There is no source and no summary here: every letter counts, and no
# SEP is needed here, so its id, 3, stands for the space.

# %% demo=true
LETTERS = " " + string.ascii_lowercase  # the id of a letter is its place here, plus 3


def spelled(rows):
    return ["".join(LETTERS[i - 3] for i in row if i >= 3) for row in rows.tolist()]


def batch_of(texts):
    rows = [[BOS, *(LETTERS.index(c) + 3 for c in text), EOS] for text in texts]
    T = max(map(len, rows))
    return torch.tensor([row + [PAD] * (T - len(row)) for row in rows])


known = [in_words(number, "en") for number in range(10_000) if not is_test(number)]
unseen = {in_words(number, "en") for number in range(10_000) if is_test(number)}
print(len(known), "to learn from,", len(unseen), "kept back")
print(batch_of(known[20:22]))

# %% demo=true
torch.manual_seed(0)
writer = DecoderOnly(30, d_model=64, n_heads=4, d_ff=128, n_layers=2, dropout=0.0)
steps = fewer(300)  # while the notebook is graded
optimizer = torch.optim.AdamW(writer.parameters())
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps)
draw, losses = random.Random(0), []
with Bar(steps, "a speller of numbers") as bar:
    for step in range(1, steps + 1):
        tokens = batch_of(draw.sample(known, 32))
        loss = language_model_loss(writer(tokens), tokens)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        bar.update(step, losses[-1])
_ = writer.eval()
ax = plots.lines(range(1, steps + 1), {"loss": losses}, xlabel="step", ylabel="nats a letter")
_ = ax.set_ylim(0, None)

# %% [markdown]
# *Loss against training step, in nats a letter.* It does not fall to 0, and it cannot: at many
# places more than one letter can come next. Now let it write. Greedily, it goes on from a
# beginning:

# %% demo=true
for begin in ("", "seven hundred", "forty thousand", "nine thousand e", "twenty million"):
    prompt = batch_of([begin])[:, :-1]
    ids = generate(writer, prompt, lambda logits: logits.argmax(dim=1), max_length=50)
    print(f"{begin or '(nothing)':<15} → {begin}{spelled(ids)[0]}")

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
noise, numbers = torch.Generator().manual_seed(0), unseen | set(known)
count = 5 if steps == 5 else 200
for temperature in (0.5, 1.0, 1.5):
    ids = generate(
        writer,
        torch.full((count, 1), BOS),
        lambda logits, t=temperature: sample_tokens(
            logits, torch.rand(len(logits), generator=noise), t
        ),
        max_length=50,
    )
    texts = spelled(ids)
    right, new = sum(text in numbers for text in texts), sum(text in unseen for text in texts)
    print(f"temperature {temperature}: {right} of {count} are numbers, {new} of those kept back")
    print("    e.g.", "; ".join(texts[:3]))
    if temperature == 1:
        at_one = right
compare(prediction, at_one, f"numbers among {count} texts at temperature 1")

# %% [markdown]
# At temperature 1 about seven texts in eight are numbers. Some of them were held out: one number in
# ten was kept back, and about one in eight of the numbers that are written is such a one. So the
# model has learned how numbers are spelled, not a list of those that it has read. (One model, one
# seed.) With a high temperature improbable letters are drawn more often, and a single one spoils
# the text.
#
# ## What does it cost?
# One sequence of M + N tokens takes (M + N)² scores. Encoder, cross-attention and decoder together
# take M² + MN + N². Here they are counted and timed for M = 2 048 and N = 64: forward alone, and
# forward with the backward pass that training needs, beside the fused kernel of PyTorch (lesson
# 18), which computes the same without storing the scores.

# %% demo=true
M, N = 2048, 64
text, summary, both = (torch.randn(1, 2, T, 32, requires_grad=True) for T in (M, N, M + N))
runs = {"encoder M²": (text, text), "cross MN": (summary, text), "decoder N²": (summary, summary)}
runs["decoder only (M + N)²"] = (both, both)
print(f"{'':<22}{'':10}   forward, in ms  with backward, in ms")
print(f"{'':<22}{'scores':>10}{'dense':>9}  {'fused':>6}{'dense':>13}  {'fused':>6}")
for name, (q, k) in runs.items():
    spent = []
    for attend in (masked_attention, F.scaled_dot_product_attention):
        run = lambda attend=attend, q=q, k=k: attend(q, k, k)  # noqa: E731
        with torch.no_grad():
            forward = timing.milliseconds(run, repeats=5)
        inputs = [q] if q is k else [q, k]
        spent.append((forward, timing.milliseconds(timing.both_ways(run, inputs), repeats=5)))
    (dense, dense_both), (fused, fused_both) = spent
    numbers = f"{dense:9.1f}  {fused:6.1f}{dense_both:13.1f}  {fused_both:6.1f}"
    print(f"{name:<22}{q.shape[2] * k.shape[2]:10,}{numbers}")

# %% [markdown]
# Nothing is saved here by leaving out the encoder: for M much larger than N both are about M², in
# scores and in time. What is saved is one of two sets of weights. The fused kernel is quicker in
# both directions, and computes as many scores. So the second question remains. Who has to look at
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
# ### Exercise 15.5 · `local_block_attention`
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
# ### Exercise 15.6 · `compress`
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
# ### Exercise 15.7 · `memory_compressed_attention`
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
# ### Exercise 15.8 · `top_k_gate`
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
# ### Exercise 15.9 · `load_balance_loss`
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
# Each token passes through 2 · 64 hidden units of the 4 · 64 that there are: the work of one
# network with 128, and the weights of two. Before any training the tokens are spread almost evenly,
# and the balance is near 1.
#
# ## One table
# Now all of them on one task that can be checked exactly. A text has 128 words; four of twelve
# topic words are hidden in it, anywhere. The summary is these four, in alphabetical order:

# %%
texts, summaries = keywords.make(1, 128, torch.Generator().manual_seed(3))
print(keywords.text(texts[0]), "\n→", keywords.text(summaries[0]))

# %% [markdown]
# The question is the paper's: with about the same number of scores for a text, who finds more? A
# dense decoder that reads the first 64 words takes 9 800 scores, one that takes turns between local
# blocks of 32 and compression by 4 reads all 128 for 9 542. All models have d_model = 64, learn
# from 600 batches of 16 texts, and are tested on 500 new ones, with three seeds. The
# encoder-decoder has a layer on each side, the others have two layers. Scores are those of one
# head, added up over the layers. All this takes minutes, so a command of the course's repository
# has measured it, and its file is drawn here:
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
found = json.loads((ROOT / "data" / "language_models.json").read_text(encoding="utf-8"))
print(f"{'':<34}{'weights':>7}  reads  scores  CPU s  {'found':<18}  without error")
for name, row in found["models"].items():
    numbers = f"{row['parameters']:7,}  {row['reads']:5}  {row['scores']:6,}"
    seconds = sum(row["seconds"]) / len(row["seconds"])
    shares = ["  ".join(f"{x:.2f}" for x in row[key]) for key in ("found", "exact")]
    print(f"{name:<34}{numbers}  {seconds:5.0f}  {shares[0]:<18}  {shares[1]}")
for name, (share, exact) in found["baselines"].items():
    print(f"{name:<65}{share:<18.2f}  {exact:.2f}")
half = sorted(found["models"]["decoder only, short"]["found"])[1]
compare(prediction, half, "found by the decoder that reads half, median of three seeds")

# %% demo=true
_, ax = plots.plt.subplots(figsize=(7.5, 3.6))
for place, row in enumerate(found["models"].values()):
    ax.plot(row["found"], [place] * len(row["found"]), "o", color=plots.BLUE, alpha=0.7)
for (name, (share, _)), style in zip(found["baselines"].items(), (":", "--"), strict=True):
    ax.axvline(share, color=plots.GREY, linestyle=style, linewidth=1.2, label=name)
ax.set_yticks(range(len(found["models"])), found["models"])
ax.invert_yaxis()
ax.set(xlim=(0, 1.02), xlabel="share of the topic words found")
_ = plots.legend(ax, fontsize=8, loc="upper center", bbox_to_anchor=(0.35, 1.18), ncols=2)

# %% [markdown]
# *A point is one seed: share of the topic words that are found in 500 new texts. Dotted: always the
# same four words. Dashed: a reader without any error of the first 64 words, who guesses the rest.*
# Readers of half a text find about 0.6 of the words and do not get beyond the dashed line, with an
# encoder or without: what they do not see, they can only guess. The dense decoder that reads all
# finds nearly everything, for 3.7 times as many scores. *Local, then compressed* takes no more
# scores than the short decoder, and is above the dashed line with all three seeds: 0.96, 0.99, and
# far behind them 0.80. So on this task, for a decoder with a fixed number of scores, reading all of
# it coarsely beats reading half, which is the paper's argument. (The encoder-decoder takes less
# than half as many scores for the same words. What it would find if it read on for the rest was
# not measured.)
#
# What else does the table show?
# - **Local alone** cannot work, and does not. The block in which the summary is written holds no
#   word of the text.
# - **Compressed alone** does as well as the two in turns, or better. Here a topic word says all by
#   itself; a task in which neighbours matter is needed to see what local layers are for.
# - **Positions** make no clear difference. The order of a text means nothing here, so all models
#   but that one go without. A causal mask already tells a decoder something of where it is
#   (Kazemnejad et al., 2023).
# - **Experts** add a third to the weights, and three seeds show no gain that is clearer than the
#   spread of the seeds. Nothing here asks for more weights: the task is to find twelve words.
# - **Weights are not equal.** The convolutions bring some of their own. It is scores that
#   are compared here, not sizes.
# - **Scores are not seconds.** The short readers take the least time, since all the rest of a layer
#   is also computed for half as many tokens.
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
# Memory decided how much could be read there: 4 000 tokens filled it for the dense decoder, and 256
# experts left room for 7 500 only. Several things change at once from row to row, so the table does
# not say what each of them contributes.
#
# ## Who works?

# %% demo=true
axes = plots.panels(columns=2, width=3.6, height=2.4)
for ax, layer in zip(axes, (0, 1), strict=True):
    for place, name in enumerate(("the same with experts", "experts, not balanced")):
        shares = [seed[layer] for seed in found["models"][name]["largest share"]]
        ax.plot([place] * len(shares), shares, "o", color=plots.BLUE, alpha=0.7)
    ax.axhline(0.25, color=plots.GREY, linestyle="--", linewidth=1.2)
    ax.set(title=f"layer {layer + 1}", ylim=(0, 0.55), xlim=(-0.6, 1.6))
    ax.set_xticks([0, 1], ["with the loss", "without it"])
_ = axes[0].set_ylabel("largest share")

# %% [markdown]
# *The part of all choices that fell on the most chosen of four experts, on the test texts. A point
# is a seed; dashed: an even spread. The titles count the layers from 1.* In the second layer all
# three seeds are more even with the loss (0.28 to 0.33) than without it (0.35 to 0.46). In the
# first layer there is no such difference. With two of four chosen, a share is 0.5 at most: then
# every token takes that expert. Without the loss one comes near, 0.46; what is left for the least
# chosen experts was not recorded. The table above would not have told: a share is one more thing
# to measure.
#
# ## Summaries that people wrote
# The topic words were made up, so that every error could be counted. Here is a corpus that was not
# made for a lesson. The first line of a docstring sums up the rest: that is a convention of Python
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
# What share of those has a near twin in training, if they are drawn at random? (And if no function
# name may be on both sides, is it half as large, or a tenth?)

# %%
prediction = None  # a share from 0 to 1; None skips this

# %% demo=true
pairs = docstrings.twins(rows)
near = {place: set() for place in range(len(rows))}
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
# helps: 8.7 %. Where all but the name was copied, the two rows may still go to different sides.
# Splitting by package, which is here the folder of a module, leaves some. By *component* no row of
# the test has a near twin in training, for rows that are linked by near twins go to one side
# together. That is the split below. What is less alike than half may still be on both sides.
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
# Which of the three is best, and what does it reach? (ROUGE-L is 1 for the same words in the same
# order.)

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
# the same for every function. This is the rule to beat. A model is of use here only if it does
# better than that.
#
# A `DecoderOnly` with three layers and the tokens of a byte-level BPE (lesson 08) is trained on
# these rows. So that it knows no less than the rules, it reads the name, too, and then the
# beginning of the rest; its first line is written greedily. That takes longer than this notebook
# should, so a command of the course's repository has measured it, with three seeds, on 250 of the
# rows for testing:
#
#     python -m benchmarks.docstrings

# %% demo=true
record = json.loads((ROOT / "data" / "docstrings.json").read_text(encoding="utf-8"))
ax = plots.panels(width=8.4, height=3.4)
for point in record["points"]:
    ax.plot(point["seconds"] / 60, point["rouge_l"], "o", color=plots.BLUE, alpha=0.7)
for (name, score), style in zip(
    record["rules"].items(), (":", "-.", (0, (1, 3)), "--", "-", (0, (6, 4))), strict=True
):
    label = f"{score:.3f}  {name}"
    ax.axhline(score, color=plots.GREY, linestyle=style, linewidth=1.2, label=label)
ax.set(xscale="log", xlabel="minutes of training on one core", ylabel="ROUGE-L", ylim=(0, None))
ax.set_xticks([0.1, 1, 3, 10], ["0.1", "1", "3", "10"])
_ = plots.legend(ax, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1), title="rules")

# %% [markdown]
# *ROUGE-L of 250 first lines against the minutes of training. A point is one seed; the lines are
# the rules, on the same rows.* After a minute no seed is above the rule that writes one line for
# all: a minute shows nothing. After six minutes a model does about as well as the first words of
# the rest, which nobody had to train, and no point comes near the name or “Return the” and the
# name. So a small model that learns from five thousand rows for a few minutes does not beat one
# line of Python. Whether more rows, more weights or more hours would change that, these points do
# not say; with `--steps` the command goes on for longer.
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
# First it learns how a first line begins, then words of the text come in. What it says has the
# tone of a docstring, and often little to do with the function. A score alone would not tell
# that: read what a model writes, and put a rule beside its score.
#
# ## Your model writes
# Finally, something of your own. The speller of numbers from above is your `DecoderOnly`, and
# your loss has trained it. Give it beginnings, and let it write. Change the beginnings, the
# temperature and the seed.

# %% demo=true
beginnings, temperature = ["", "six", "eighty", "two thousand"], 0.7
noise = torch.Generator().manual_seed(0)
for begin in beginnings:
    ids = generate(
        writer,
        batch_of([begin])[:, :-1].repeat(2, 1),
        lambda logits: sample_tokens(logits, torch.rand(2, generator=noise), temperature),
        max_length=50,
    )
    print(f"{begin or '(nothing)':<13} →", "; ".join(begin + rest for rest in spelled(ids)))

# %% [markdown]
# That is all there is to a language model: it reads what stands there and draws what comes next.
# What it can say comes from what it has read.
#
# ## Limits
# The topic words are a task in which one word says all by itself: it tells what a reader has seen,
# and little about what it can do with it. The models are small, and so is the number of seeds. A
# key that stands for several positions is a mixture of them, and what is needed word by word may be
# lost in it. Experts add weights that must be stored, wherever they are used. The speller and the
# model of docstrings learn which text comes next, not whether it is true: nothing in the loss asks.
# And a score that counts common words, such as ROUGE-L, does not see what they say.
#
# ## Summary
# A decoder alone can read and write, if text and summary are one sequence and the loss counts what
# is to be written. Local blocks and compressed keys let it read more for the same number of scores;
# a stretch may be seen when it has ended, and not before. A mixture of experts adds weights without
# adding work for a token, and a second loss pushes towards an even spread of the tokens.
#
# **Next** [16 · What else has tokens?](../16_encoders_and_vision/16_encoders_and_vision.ipynb) The
# decoder goes and the encoder stays: it reads documents and images, and decides.
#
# ## Open questions
# No points, no check; the notebook has what is needed.
# 1. Keep every number with “seven hundred” in it from the speller, in place of one number in ten
#    (`known` and `unseen` are made in one cell). Will it write such numbers by itself? And will it
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
