# %% [markdown]
# # 08 · What are the rows of X?
#
# Attention takes a matrix with one row for each word. But a text is a string. Which pieces of it
# get a row, and which numbers stand there? And since attention ignores order, what tells “dog bites
# man” from “man bites dog”?
#
# **Part one** (50 minutes) is about the numbers and the order; lessons 09 and 10 need it. **Part
# two** (60 minutes) cuts texts into pieces; nothing needs it before lesson 14, so you can go on to
# lesson 09 after part one and come back.
#
# **After this lesson** you can
# - turn ids into rows by **embedding**, and say what the factor √d_model is for,
# - mark places by **sinusoidal**, **learned** and **rotary positions**, and say up to which length
#   each worked,
# - build a head that looks three tokens back **without training**,
# - learn a **byte-level BPE** tokeniser, encode any text with it, and get the text back,
# - say why it never meets an unknown word, and what its cuts depend on.
#
# **Time** 110 minutes · **Points** 19 · **GPU** not needed · **You need** lessons 00 and 07

# %%
import math

import torch
from torch import nn

from autograder import check

# %% [markdown]
# ## Who bites whom?
# Let one attention layer with random weights read two sentences made of the same three words:

# %% demo=true
from attention.experiments import tokens_and_positions as experiments

torch.set_num_threads(1)  # as fast for small matrices, and much faster beside other programs
_ = experiments.word_order()

# %% [markdown]
# Who bites whom makes no difference (lesson 05). So each row must say where it stands.
#
# ## Part one · What stands in a row?
# A **token** is a piece of a text; until part two, think of a word. Each token has a number, its
# **id**. An id is a name, not a quantity: word 301 is not more than word 300. So each id gets a
# vector, its **embedding**, which is one row of a learned table.
#
# ![Five tokens, zwei, hundert, ein, und, dreißig, become ids. Each id chooses a row of the table,
# scaled by the root of d_model. A row of positions is added to each, and the sums are the rows of
# X.](figures/rows_of_x.svg)
#
# $$X_t = \sqrt{d_\text{model}}\; E[\text{id}_t] + P_t$$
#
# | name | shape |
# |---|---|
# | `ids` | `(B, T)`, int64 |
# | `table` *E* | `(vocab_size, d_model)` |
# | `positions` *P* | `(T, d_model)` |
# | *X* | `(B, T, d_model)` |
#
# Why the root? The paper does not say. The usual answer begins at the other end of the model, where
# the same table scores the next token. For scores of size 1 its numbers must start at about
# $1/\sqrt{d_\text{model}}$. Such small rows would drown in the positions, whose numbers reach 1, so
# the factor brings them to size 1.

# %% given="embed"
from attention.tokens_and_positions import embed

# %% [markdown]
# ## Positions like clocks
# ### Exercise 8.1 · `sinusoidal_positions`
# ●●○ medium · 12 minutes · 2 points
#
# Think of a position as a time. Several clocks with one hand each turn at different speeds, and
# together the hands tell the time. In the Transformer each clock is a pair of columns: the sine and
# the cosine of its hand's angle.
#
# ![Four clocks at the positions 0, 1, 2, 3, 10 and 100. The first hand turns by one radian per
# step, the second by a tenth, the third by a hundredth, the fourth by a
# thousandth.](figures/position_clocks.svg)
#
# $$P_{t,\,2i} = \sin\frac{t}{10000^{2i/d_\text{model}}}, \qquad
# P_{t,\,2i+1} = \cos\frac{t}{10000^{2i/d_\text{model}}}$$
#
# In the drawing $d_\text{model} = 8$. Note that sines and cosines **take turns**.
#
# <details><summary>Hint 1 · the idea</summary>
#
# First the matrix of angles, one for each position and clock. Then interleave its sines and
# cosines.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Positions `(T, 1)` times speeds `(d_model / 2,)` give angles `(T, d_model / 2)`.
# `torch.arange(0, d_model, 2)` counts 0, 2, 4, …; give it the dtype of the positions.
# </details>
# <details><summary>Hint 3 · interleaving</summary>
#
# `torch.stack` with `dim=-1` joins two `(T, n)` to `(T, n, 2)`. `flatten(start_dim=1)` merges the
# last two axes.
# </details>

# %%
from attention.provided import demand  # refuses sizes that make no sense

# %% exercise="sinusoidal_positions"
from attention.tokens_and_positions import sinusoidal_positions

# %% check="sinusoidal_positions" points=2
check.sinusoidal_positions(sinusoidal_positions)

# %% [markdown]
# ### Predict first
# Take the dot products of one position's row with the rows around it, and draw them as a curve.
# Will the curve look different for another position?

# %% demo=true
_ = experiments.position_table(sinusoidal_positions)

# %% [markdown]
# *Left: the first 32 of 64 columns, one row per position. The farther right, the more slowly a
# column changes. Right: three curves, one on top of the other.* The dot product depends on the
# distance only. It is largest at 0: 32, one for each clock.
#
# ## A shift is a rotation
# Move every position by the same number, and each hand turns by the same angle, wherever it stood.
# So **one** matrix leads from any position to the one that many steps ahead.
#
# ### Exercise 8.2 · `rotation`
# ●●○ medium · 8 minutes · 2 points
#
# Write this matrix *R*: the row of position *t*, times *R*, is the row of position *t* + shift.
# Each clock has two columns of the row, so it needs a block of two rows and two columns on the
# diagonal of *R*. All other entries are 0.
#
# <details><summary>Hint 1 · one clock</summary>
#
# If a hand stands at the angle *a* and turns by *s*, the pair (sin *a*, cos *a*) becomes
# (sin(*a* + *s*), cos(*a* + *s*)). Write both with sin *a*, cos *a*, sin *s* and cos *s*. The
# factors of sin *a* are the first row of the block, those of cos *a* the second.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
#
# ```
# R = zeros, d_model by d_model
# for each clock, whose first column is j = 0, 2, 4, …:
#     s = shift over 10000^(j / d_model)
#     block of R at j = the two rows of hint 1
# ```
#
# `R[j : j + 2, j : j + 2] = torch.tensor([[…, …], […, …]])` fills a block.
# </details>

# %% exercise="rotation"
from attention.tokens_and_positions import rotation

# %% check="rotation" points=2
check.rotation(rotation)

# %% [markdown]
# ## A head that looks three tokens back
# With this matrix you can build such a head by hand, without training. Its queries are the
# positions turned three steps back, and its keys are the positions themselves. Its values are the
# tokens, here random ids from 0 to 15. A factor in $W_q$ makes the softmax sharper.

# %% demo=true
from attention.provided.figures import plots

torch.manual_seed(0)
ids, P = torch.randint(16, (1000,)), sinusoidal_positions(torch.arange(1000.0), 64)
for factor in (1, 10):
    W_q = factor * rotation(-3, 64).float()  # W_k is the identity
    weights = (P @ W_q @ P.T / math.sqrt(64)).softmax(dim=1)
    read = (weights @ nn.functional.one_hot(ids, 16).float()).argmax(dim=1)
    right = (read[3:] == ids[:-3]).float().mean().item()
    print(f"factor {factor:2}: {right:.3f} of the tokens three back are right")
_ = plots.heatmap(weights[:16, :16], title="the head with the factor 10")

# %% [markdown]
# *Weights of the first 16 of 1000 positions, queries down, keys across: each query looks three
# places back; the first three find nothing there and look at position 0.* With the factor 10 every
# token from position 3 on is right, with one matrix of 64 × 64 numbers for all 1000 positions. Will
# training find this head? You will see below.
#
# ## Order matters now
# The two sentences again, with your positions added to the same rows:

# %% demo=true
_ = experiments.word_order_with(sinusoidal_positions)

# %% [markdown]
# *Weights of the words on each other. Above, without positions, the right matrix is the left one
# with its words in another order. Below, with positions, the weights differ.* The dog that bites
# and the dog that is bitten now get different contexts.
#
# Positions can also be learned, like the embeddings, as in BERT and GPT-2. The table has one row
# for each position up to a largest one, and the same rows are added to every sequence of a batch:

# %% given="LearnedPositions"
from attention.tokens_and_positions import LearnedPositions

# %% [markdown]
# ## Turn instead of adding
# If a shift is a rotation, why add anything? **Rotary positions** turn the queries and keys
# themselves: each pair of features $(x_{2i}, x_{2i+1})$ by the angle of clock *i*. Most large
# language models do this, and so will yours in lesson 20.
#
# ### Exercise 8.3 · `rotary`
# ●●○ medium · 12 minutes · 2 points
#
# $$\begin{pmatrix} x'_{2i} \\ x'_{2i+1} \end{pmatrix} =
# \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}
# \begin{pmatrix} x_{2i} \\ x_{2i+1} \end{pmatrix}, \qquad
# \theta = \frac{t}{\text{base}^{2i/d_\text{head}}}$$
#
# The base is 10000, as for the clocks, unless the caller gives another one. Models for long texts
# use a larger base.
#
# If you turn a query by *m* steps and a key by *n*, their dot product sees only the angle between
# them, so it depends on *m* − *n*. The lengths of the vectors stay as they are.
#
# Models often compute in bfloat16, in which the next number after 256 is 258. So x may be bfloat16,
# but the positions are float32 or float64, and so are the angles. Only the result is rounded to x's
# dtype.
#
# <details><summary>Hint 1 · the shapes</summary>
#
# The angles are those of exercise 8.1. Neighbours form a pair: `x[..., 0::2]` and `x[..., 1::2]`
# are `(..., T, d_head / 2)`, and so the angles `(T, d_head / 2)` broadcast.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
#
# ```
# angles        = position over base^(2i / d_head), for each position and pair
# first, second = even and odd features of x
# new first     = first times cos minus second times sin
# new second    = first times sin plus second times cos
# interleave the two along the last axis
# ```
# </details>
# <details><summary>Hint 3 · x in bfloat16</summary>
#
# Give `torch.arange` the dtype of the positions, and end with `.to(x.dtype)`.
# </details>

# %% exercise="rotary"
from attention.tokens_and_positions import rotary

# %% check="rotary" points=2
check.rotary(rotary)

# %% [markdown]
# ### Predict first
# Put a random query and key at all positions *m* and *n* from 0 to 31. Along which lines is the
# matrix of scores constant? What if sinusoids are *added* instead?

# %% demo=true
_ = experiments.scores_by_position(rotary, sinusoidal_positions)

# %% [markdown]
# *Dot products of a query at m (down) and a key at n (across). Left, rotary: constant along each
# diagonal. Right, added sinusoids: a diagonal band on top of stripes. Query and key are number 1 of
# the three printed.* The stripes are products of one vector's content with the other's position.
#
# Here are one query and one key of eight features: four pairs, drawn as arrows. Move both vectors
# by the same number of positions. The arrows turn, the first pair fastest, and the dot product does
# not change. Then choose the sinusoidal encodings: their dot product, too, depends only on the
# distance.

# %% demo=true
from attention.provided.figures import moving

moving.rotation()

# %% [markdown]
# ## Does training find that head?
# One attention layer with one head reads random tokens of 16 kinds and predicts the token three
# places back. It gets no positions, or learned, sinusoidal or rotary ones. It is trained for 300
# steps, on sequences of 24 or of 96 tokens, and tested at four lengths. The runs are recorded;
# `experiments.train_one("sinusoidal", seed=3, length=24)` makes a new one in seconds.
#
# <details><summary>The code that ran</summary>
#
# ```python
# optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.003), []
# for _ in range(steps):
#     ids = torch.randint(TOKENS, (32, length))
#     first = int(torch.randint(MOST - length + 1, ())) if random_start else 0
#     scores = model(ids, first)  # (32, length, TOKENS)
#     loss = F.cross_entropy(scores[:, back:].mT, ids[:, :-back])
#     optimizer.zero_grad()
#     loss.backward()
#     optimizer.step()
#     losses.append(loss.item())
# ```
#
# Here `back` is 3, and `first`, the position of the first token, is 0.
# </details>
#
# ### Predict first
# Trained on 24 tokens with sinusoidal positions, what share is right in sequences of 96?

# %% demo=true
from attention.provided.predictions import compare

prediction = None  # a share, 0 to 1; None skips this

# %% demo=true
right = experiments.three_back()
compare(prediction, right["sinusoidal"], "sinusoidal, 24 tokens in training, 96 in the test")

# %% [markdown]
# *Share of tokens right against the length of the test, on a logarithmic scale. Dots: single runs,
# three of each, moved apart a little; lines: their mean.* Without positions the layer can know only
# which tokens occur. With any of the three it solves the task at the lengths of its training,
# except that 300 steps are too few to learn a table of 96 rows.
#
# Beyond place 24 the rows of a learned table were never trained. For sinusoids one matrix would
# work everywhere, but training on 24 places did not find it. You built it in exercise 8.2. (The
# right panel is the control: 96 places are no problem in themselves.) With rotary positions, what
# the layer learns at one place holds at every other. But this is one task for one layer: in the
# translator of lesson 10 sinusoidal positions are slightly ahead.
#
# (A causal mask lets some order through: without positions, two layers under it get .34 to .36
# right after 600 steps, one layer .22, and two layers without it .16.)
#
# ## Without the root
# Leave out √d_model. What do two rows of the same word have in common now? The figure shows the
# cosine between any two rows of *X* for “a rose is a rose is a rose”.

# %% demo=true
experiments.same_word_elsewhere(embed, sinusoidal_positions)

# %% [markdown]
# *Cosines between the rows of X. Left, with the root, equal words have nearly equal rows, wherever
# they stand. Right, without it, all rows are alike, and only the distance is left to see.*
# Does it do harm? Here is the training of the last section again, with sinusoidal positions, with
# and without the root, for a table that starts at $1/\sqrt{d_\text{model}}$ or at 1:

# %% demo=true
_ = experiments.size_of_the_rows()

# %% [markdown]
# *Loss against step on a logarithmic scale: means of ten steps; bands from the least to the largest
# of three seeds.* Rows of size 8 learn nothing in 300 steps, whether the factor or the table makes
# them so large. Smaller rows all learn. At equal size 1, the runs without the factor end lower, at
# 0.0009 to 0.0013 against 0.0032 to 0.0057. So what counts is the size of the rows at the start.
# The factor is no advantage in itself: an `nn.Embedding`, which starts at 1, needs none.
#
# ## Your translator so far
# The recurrent network that read the English words goes. An annotation is now a row of the table,
# of 64 numbers instead of 32, times √64, plus its position, and the decoder starts from their mean.

# %% demo=true
from attention.experiments import translator_so_far
from attention.multi_head_attention import MultiHeadAttention

pieces = {"MultiHeadAttention": MultiHeadAttention, "sinusoidal_positions": sinusoidal_positions}
_ = translator_so_far.up_to("08", **pieces)

# %% [markdown]
# *The same table; this lesson is framed.* The share right **falls**: with every seed it is lower
# than in lesson 07, or both are near 0. Something else is gained: no English word waits for another
# any more. Lessons 09 and 10 say when that pays. (Without positions, *two hundred three* and *three
# hundred two* would be the same to this translator.)
#
# ## Part two · Which pieces get a row?
# The simplest way is one id for each word. Number the words of one sentence, then read two others:

# %%
seen = "a dog bites a man and the man bites back"
vocabulary = {word: i for i, word in enumerate(sorted(set(seen.split())))}
for sentence in ("the man bites a dog", "the man bit two dogs"):
    print([vocabulary.get(word, "unknown") for word in sentence.split()])

# %% [markdown]
# “bit” and “dogs” are as unknown as “two”, and no list holds all words. With one id for each letter
# nothing is unknown. But then a text is a long sequence, and the cost of attention grows with the
# square of the length.
#
# ## Byte-pair encoding
# Start from **bytes**: in UTF-8 every text is a sequence of bytes, and there are only 256 of them.
# Then **merge**: make the most frequent pair of neighbouring tokens a new token, and repeat.
# Frequent words become single tokens, rare ones stay in pieces. This is **byte-pair encoding**
# (BPE).
#
# ![Three words, drei 4 times, zwei 3 times and dreißig 2 times, as bytes. The pair e, i occurs 9
# times and becomes token 256. Then d, r, 6 times, becomes 257, and dr, ei, 6 times, becomes 258,
# the word drei. The letter ß is the two bytes C3 and 9F.](figures/byte_pair_merges.svg)
#
# | name | what it is |
# |---|---|
# | `ids` | list of int: tokens 0 to 255 are the bytes, and 256 + *r* is what merge *r* makes |
# | `pair` | `(left, right)`, two ids side by side |
# | `merges` | list of pairs, in the order in which they were learned: the whole tokeniser |
# | `words`, `counts` | the words of a text as lists of ids, and how often each occurs |
#
# Two rules make the result unique. Pairs are counted **at every place**, so *aaa* holds *aa* twice.
# On a **tie** the smaller pair goes first: compare the left ids, then the right ones. Here is the
# drawing's first count by hand:

# %%
words_by_hand = {"drei": 4, "zwei": 3, "dreißig": 2}
for pair in ("ei", "dr", "re", "zw"):
    print(pair, list(pair.encode()), sum(n for word, n in words_by_hand.items() if pair in word))

# %% [markdown]
# The pair *ei*, (101, 105), becomes token 256. Then two pairs occur 6 times: *d* and *r*, (100,
# 114), and *r* and the new token, (114, 256). The smaller one, *dr*, is next.
#
# A merge should not glue “dog” to the full stop. So two ready-made functions first cut the text
# into words, each with the space in front of it if there is one, and count them:

# %%
from attention.provided.data.words import PairIndex, count_words, docstrings, split_words

print(split_words("Der Hund (3 Jahre alt) beißt."))
print(count_words(["ß", "🙂 🙂"]))  # two bytes; four; four and a space

# %% [markdown]
# ### Exercise 8.4 · `count_pairs`
# ●○○ easy · 8 minutes · 2 points
#
# Count all pairs of neighbours, and return them sorted: the one to be merged next comes first.
#
# <details><summary>Hint 1 · the idea</summary>
#
# One `Counter` for all words. A word that occurs 5 times adds 5 for each pair in it, and
# `pairwise([1, 2, 3])` gives (1, 2) and (2, 3).
# </details>
# <details><summary>Hint 2 · the order</summary>
#
# `sorted(…, key=…)` sorts upwards, but the counts should run downwards. What reverses the order of
# numbers? A key may be a tuple.
# </details>

# %%
from collections import Counter
from itertools import pairwise

# %% exercise="count_pairs"
from attention.tokens_and_positions import count_pairs

# %% check="count_pairs" points=2
check.count_pairs(count_pairs)

# %% [markdown]
# ### Exercise 8.5 · `merge_pair`
# ●●○ medium · 8 minutes · 2 points
#
# Replace a pair by its new id, from left to right. A token can be used once: *aaa* becomes [*aa*,
# *a*].
#
# <details><summary>Hint 1 · the idea</summary>
#
# Walk through the list with an index, in a `while` loop: the step is 2 after a merge and 1
# otherwise. At the last token the slice `ids[place : place + 2]` is just shorter.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
#
# ```
# while there are tokens left:
#     if this one and the next are the pair: append new_id, go on after both
#     else:                                  append this one, go on after it
# ```
# </details>

# %% exercise="merge_pair"
from attention.tokens_and_positions import merge_pair

# %% check="merge_pair" points=2
check.merge_pair(merge_pair)

# %% [markdown]
# ### Exercise 8.6 · `break_merge_pair` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# The answer below goes through the list from its end. Return arguments `(ids, pair, new_id)` for
# which it is wrong.
#
# <details><summary>Hint 1 · where to look</summary>
#
# It matters on which side you begin only if one merge uses up a token that another needs.
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# Which pairs can share a token with their next occurrence?
# </details>

# %% broken="merges_from_the_right"
from autograder.mistakes.tokens_and_positions import merges_from_the_right

# %% exercise="break_merge_pair"
from attention.tokens_and_positions import break_merge_pair

# %% check="break_merge_pair" points=1
check.break_merge_pair(break_merge_pair)

# %% [markdown]
# ## Learning the merges
# Counting all words again after every merge is slow, since only the words that hold the pair
# change. The ready-made `PairIndex(words, counts)` keeps the totals, and knows in which words a
# pair stands:
#
# | of an index | what it is |
# |---|---|
# | `most_frequent()` | the pair to be merged next, or None if no pair is left |
# | `merge(pair, new_id)` | merges it in every word, as in 8.5, and counts these words again |
#
# ### Exercise 8.7 · `train_bpe`
# ●●○ medium · 10 minutes · 3 points
#
# Graded in three parts: the first merge (1), the merges after it (1), when to stop (1).
#
# Learn the merges. The index is made for you.
#
# <details><summary>Hint 1 · pseudocode</summary>
#
# ```
# while there are fewer than n_merges and there is a best pair:
#     merge it in the index, into the next new id
#     append the pair to the merges
# ```
# </details>
# <details><summary>Hint 2 · the new id</summary>
#
# Merge number 0 makes 256. How many merges are in the list while you make the next one?
# </details>

# %% exercise="train_bpe"
from attention.tokens_and_positions import train_bpe

# %% check="train_bpe" points=3
check.train_bpe(train_bpe)

# %% [markdown]
# Now take a real text that is already on your computer: the docstrings of PyTorch and NumPy. The
# first fifty are kept aside.

# %% demo=true
import numpy

texts = docstrings(torch, nn, nn.functional, numpy)
held_out, (words, counts) = "\n".join(texts[:50]), count_words(texts[50:])
merges = train_bpe(words, counts, n_merges=2000)
print(f"{sum(counts):,} words, {len(words):,} different ones; first merges:", *merges[:6])

# %% [markdown]
# 32 is the space. Docstrings are indented, so two spaces are the first merge.
#
# ### Exercise 8.8 · `bpe_encode`
# ●●○ medium · 12 minutes · 3 points
#
# Graded in two parts: one word of letters (2), any text (1).
#
# Cut a new text into tokens. Within each word, replay the merges: of all pairs in the word, merge
# the one that was **learned first**, until no pair is left that was ever learned. `ranks` gives a
# pair's place among the merges. The words come from `split`, since each published tokeniser cuts
# texts by a rule of its own.
#
# <details><summary>Hint 1 · the functions</summary>
#
# `min` of a list of tuples (rank, place) compares the ranks first. Assigning to a slice of two
# shortens a list: `word[i : i + 2] = […]`.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
#
# ```
# for each piece of split(text):
#     word = list of its bytes
#     while any pair of the word has a rank:
#         rank, place = the lowest rank, and where it stands first
#         put the id of that merge in the place of both tokens
#     add the word's ids to ids
# return ids
# ```
# </details>

# %% exercise="bpe_encode"
from attention.tokens_and_positions import bpe_encode

# %% check="bpe_encode" points=3
check.bpe_encode(bpe_encode)

# %% [markdown]
# ### Exercise 8.9 · `bpe_decode`
# ●●○ medium · 8 minutes · 2 points
#
# Now the way back: join the bytes of the tokens, and read them as UTF-8. Note that a token may end
# within a character, and that a model may write bytes that are no text. These become U+FFFD, �.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Build a table of the bytes of every token. Merge *r* joins two tokens that are already in it.
# </details>
# <details><summary>Hint 2 · the functions</summary>
#
# `bytes([98])` is the byte 98. `b"".join(…)` joins. `.decode("utf-8", errors=…)` reads, and
# `errors` says what to do with bytes that are no text.
# </details>
# <details><summary>Hint 3 · a character comes out as “��”</summary>
#
# Each token was read separately. First join all bytes, then read.
# </details>

# %% exercise="bpe_decode"
from attention.tokens_and_positions import bpe_decode

# %% check="bpe_decode" points=2
check.bpe_decode(bpe_decode)

# %% [markdown]
# ### Predict first
# Without merges a token stands for one byte. For how many bytes does it stand after 2000 merges, in
# the docstrings that were kept aside? And in a German text?

# %% demo=true
prediction = None  # bytes per token, docstrings, after 2000 merges; None skips this

# %% demo=true
found = experiments.bytes_per_token(held_out, merges, bpe_encode, bpe_decode)
compare(prediction, found["docstrings, kept aside"], "bytes per token, docstrings")
print("the text comes back:", bpe_decode(bpe_encode(held_out, merges), merges) == held_out)

# %% [markdown]
# *Bytes per token against the number of merges: steep at first, then flatter.* Later merges join
# rarer pairs and help less. The German text gains less. Is that due to German, or to the tokeniser?
# Here 2000 merges are learned from docstrings, from German numbers in words, or from both:
#
# <details><summary>The code that ran</summary>
#
# ```python
# learned = train_bpe(*count_words(rest[learns_from]), n_merges=merges)
# result = {}
# for kind, of in kept.items():
#     text = "\n".join(of)
#     result[kind] = round(len(text.encode()) / len(bpe_encode(text, learned)), 3)
# return result
# ```
# </details>

# %% demo=true
experiments.whose_merges()

# %% [markdown]
# Each figure is for a different random choice of held-out texts. Each tokeniser is good at the kind
# of text that it was made for. Other text survives the round trip too, but takes more tokens.
#
# ## A German compound
# German writes 231 as one word, *zweihunderteinunddreißig*. Two more tokenisers learn 28 and 60
# merges from the numbers 1 to 999.

# %% demo=true
experiments.german_compounds(merges, train_bpe, bpe_encode, bpe_decode)

# %% [markdown]
# *Three words, cut by three tokenisers; � is a token that is half of a character.* The first
# tokeniser found *hundert*, *und* and *drei*. But cuts follow frequency, not meaning: with 60
# merges *zweihundert* is one token, and *siebzehn* ends in *zeh* and *n*.
#
# A model also needs ids for what is not text. These **special tokens** never come from encoding a
# text. In the translator of lesson 14 PAD, BOS and EOS are 0, 1 and 2, and all learned tokens move
# up by three: byte *b* is 3 + *b*, and merge *r* makes 259 + *r*.
#
# ## Limits
# Sinusoidal and rotary positions can be computed for any length, but that does not mean that a
# model can use them there. One layer that counts to three says little about large models. A third
# way to mark places is to subtract from each score a number that grows with the distance (ALiBi:
# Press et al., 2022). Merges are those of one text: what often stands together is merged, whether
# it means something or not.
#
# ## Something of your own
# Train a tokeniser on a text that you know well: a novel, your notes, code, another language. Draw
# a sentence cut by it and by the tokeniser of docstrings:
# `tokens({"mine": […], "docstrings": […]})` of `attention.provided.figures.plots` takes lists of
# strings. Could a friend guess your text from its longest tokens?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# Each id chooses a row of a learned table, times √d_model. Positions are added to the row, or turn
# the queries and keys. Without them, attention that sees every place cannot know the order. A shift
# by three places is one matrix, so a head can look three tokens back. Byte-pair encoding merges the
# most frequent pair of tokens again and again. Frequent words become one token, and no text is
# unknown. Its cuts are those of the text it learned from.
#
# **Next** [09 · What holds a deep stack
# together?](../09_transformer_blocks/09_transformer_blocks.ipynb) The rows of *X* go through many
# layers.
#
# ## Open questions
# No points, no check.
# 1. Let every batch begin at a random position:
#    `experiments.train_one(kind, seed=0, random_start=True)`. Does a layer trained on 24 tokens now
#    work at 96, with sinusoidal positions? And with learned ones, after 300 or 900 `steps`?
# 2. Replace 10000 by 10, then by 1 in your `sinusoidal_positions`. For d_model = 64, which of 400
#    rows, more than 20 away, has the largest dot product with row 40?
# 3. Is a token farther away harder to find? Give `experiments.train_one` the argument `back=1`,
#    then `back=10`.

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. With sinusoidal positions, yes: .976, .967 and .982 are right at 96 places (seeds 0, 1, 2).
#    With learned ones .298, .180 and .191 after 300 steps, and .856, .852 and .860 after 900
#    (“random start” of `python -m attention.experiments tokens_and_positions`).
# 2. At 10000, rows 15 and 65, with 20.1 of 32: all rows are somewhat alike, since the slow clocks
#    have hardly moved. At 10 no row so far away gets more than 5.6, so the place is sharper, and
#    still no other row is mistaken for it. At 1 all clocks are the same: row 84 gets 31.99 and row
#    373 even 32.00, because in 333 steps a hand makes almost exactly 53 turns. So the clocks must
#    differ, but for 400 places the slowest need not be that slow.
# 3. No. With sinusoidal positions it takes 80 to 100 steps until the loss is below 0.5, for 1, 3 or
#    10 back; with rotary ones 40 to 50, with learned ones 200 to 220 (seeds 0, 1, 2; at least .997
#    right at 24 tokens). For this layer, distance makes no difference.
#
# </details>

# %% [markdown]
# ## References
# - A. Vaswani et al. (2017). *Attention is all you need*, sections 3.4 and 3.5.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - J. Su et al. (2021). *RoFormer: enhanced Transformer with rotary position embedding.*
#   [arXiv:2104.09864](https://arxiv.org/abs/2104.09864)
# - O. Press, N. A. Smith, M. Lewis (2022). *Train short, test long: attention with linear biases
#   enables input length extrapolation.* [arXiv:2108.12409](https://arxiv.org/abs/2108.12409)
# - R. Sennrich, B. Haddow, A. Birch (2016). *Neural machine translation of rare words with subword
#   units.* [arXiv:1508.07909](https://arxiv.org/abs/1508.07909)
# - A. Radford et al. (2019). *Language models are unsupervised multitask learners.* (GPT-2: BPE on
#   bytes.)
