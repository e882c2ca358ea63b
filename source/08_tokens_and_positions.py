# %% [markdown]
# # 08 · What are the rows of X?
#
# Attention takes a matrix with one row per word, and so far the rows were simply there. A text is a
# string. Which pieces of it get a row? Which numbers stand in the row? And since attention does not
# care about order: what tells it that “dog bites man” is not “man bites dog”?
#
# **After this lesson** you can
# - learn a **byte-level BPE** tokeniser, encode any text with it, and get the text back,
# - say why it never meets an unknown word, and what its cuts depend on,
# - turn ids into rows by **embedding**, and say what the factor √d_model is for,
# - tell rows their place by **sinusoidal** and **learned positions** (★ and **rotary** ones), and
#   say up to which length each of them worked.
#
# **Time** 120 minutes, ★ 15 more · **Points** 21 · **GPU** not needed · **You need** lessons 00
# and 05

# %%
import heapq
import inspect
import math
import re
from collections import Counter, defaultdict
from itertools import pairwise

import numpy
import torch
from torch import nn

from attention.experiments import recorded
from attention.provided import demand
from attention.provided.figures import plots, seeds
from attention.provided.predictions import compare
from autograder import check

# A word for split_words: letters, digits or other signs, each with a space before; or spaces.
WORD = re.compile(r" ?[^\W\d]+| ?\d+| ?[^\w\s]+|\s+(?!\S)|\s+")

# %% [markdown]
# ## What fails without this idea
# The simplest way is one id per word. Let us number the words of a sentence, and read another one:

# %%
seen = "a dog bites a man and the man bites back"
vocabulary = {word: i for i, word in enumerate(sorted(set(seen.split())))}
for sentence in ("the man bites a dog", "the man bit two dogs"):
    print([vocabulary.get(word, "unknown") for word in sentence.split()])

# %% [markdown]
# “bit” and “dogs” are as foreign as “two”, although “bites” and “dog” are known. German makes new
# words out of old ones every day; no list holds them all. The other extreme, one id per letter,
# knows every word, but the sequences get long, and the cost of attention grows with the square of
# their length.
#
# ## The idea
# Start from **bytes**: every text is a sequence of bytes in UTF-8, and there are only 256 of them.
# Then **merge**. Find the pair of neighbouring tokens that is most frequent, make it a new token,
# and repeat. Frequent words become single tokens, rare ones stay in pieces. This is **byte-pair
# encoding** (BPE), invented to compress data.
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
# And on a **tie** the smaller pair of ids goes first: compare the left ids, then the right ones.
# By hand, the first two counts of the drawing:

# %%
words_by_hand = {"drei": 4, "zwei": 3, "dreißig": 2}
tokens_by_hand = {word: list(word.encode("utf-8")) for word in words_by_hand}
for merge in (None, (101, 105)):
    totals = {}
    for word, ids in tokens_by_hand.items():
        if merge:
            place = ids.index(merge[0])  # each of the three words holds it once
            ids[place : place + 2] = [256]
        for pair in zip(ids, ids[1:], strict=False):
            totals[pair] = totals.get(pair, 0) + words_by_hand[word]
    print("after", merge, "the top is", sorted(totals.items(), key=lambda item: -item[1])[:3])

# %% [markdown]
# 101 and 105 are the bytes of *e* and *i*. After the merge, (100, 114) and (114, 256) both occur 6
# times, and the smaller one, *dr*, is next.
#
# ## Words first
# Merges should not glue “dog” to the full stop or to the next word. So the text is cut into words
# beforehand: letters, digits, or other signs, each with the space in front, if there is one. Then
# only the words and their counts matter, which also makes training fast. The two functions are
# given.

# %% given="split_words"
from attention.tokens_and_positions import split_words

# %% given="count_words"
from attention.tokens_and_positions import count_words

# %%
print(split_words("Der Hund (3 Jahre alt) beißt."))
print(count_words(["ß", "🙂 🙂"]))  # two bytes; four bytes, without and with a space before
try:
    split_words("half a smile: \ud83d")
except ValueError as error:
    print("refused:", error)

# %% [markdown]
# The last text cannot be encoded at all: `\ud83d` is half of a pair that only together means a
# character, as UTF-16 writes it. Alone it has no bytes, so it is refused, clearly and early.
#
# ### Exercise 8.1 · `count_pairs`
# ●○○ easy · 8 minutes · 2 points
#
# Count all pairs of neighbours, and return them sorted: the one to be merged next comes first.
#
# <details><summary>Hint 1 · the idea</summary>
#
# One counter for all words. A word that occurs 5 times adds 5 for each of its pairs.
# </details>
# <details><summary>Hint 2 · the functions</summary>
#
# `pairwise([1, 2, 3])` gives (1, 2) and (2, 3), and nothing for a word of one token. Both
# `pairwise` and `Counter` are imported.
# </details>
# <details><summary>Hint 3 · the order</summary>
#
# `sorted(…, key=…)` runs upwards. You want the counts to run downwards and the pairs upwards: what
# can you do to numbers to reverse their order? A key may be a tuple.
# </details>

# %% exercise="count_pairs"
from attention.tokens_and_positions import count_pairs

# %% check="count_pairs" points=2
check.count_pairs(count_pairs)

# %% [markdown]
# ### Exercise 8.2 · `merge_pair`
# ●●○ medium · 8 minutes · 2 points
#
# Replace a pair by its new id, from left to right. A token can be used once: *aaa* becomes [*aa*,
# *a*].
#
# <details><summary>Hint 1 · the idea</summary>
#
# Walk through the list with an index. At each index, either the pair stands there, or it does not.
# </details>
# <details><summary>Hint 2 · a while loop</summary>
#
# The step is 2 after a merge and 1 otherwise, so a `for` over all places will not do. The last
# token has no right neighbour: a slice `ids[place : place + 2]` is then just shorter, without an
# error.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
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
# ### Exercise 8.3 · `break_merge_pair` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# This answer goes through the list from its end. It is right for most lists. Find one for which it
# is not.
#
# <details><summary>Hint 1 · where to look</summary>
#
# When does it matter on which side one begins? Only if merging in one place takes a token away that
# another place would need.
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# Of which pairs can two occurrences share a token? Write the shortest list in which two do.
# </details>

# %% broken="merges_from_the_right"
from autograder.mistakes.tokens_and_positions import merges_from_the_right

# %% exercise="break_merge_pair"
from attention.tokens_and_positions import break_merge_pair

# %% check="break_merge_pair" points=1
check.break_merge_pair(break_merge_pair)

# %% [markdown]
# ## Learning the merges
# Count, merge the best pair, repeat. Done like this, every merge counts all words again, although
# it has changed only those that hold the pair. So keep the totals, and for each pair the places of
# its words. `PairIndex` does the bookkeeping. Its heap finds the best pair without looking at all
# of them; outdated entries are only noticed, and corrected, when they come to the top.

# %% given="PairIndex"
from attention.tokens_and_positions import PairIndex

# %% [markdown]
# ### Exercise 8.4 · `train_bpe`
# ●●● hard · 20 minutes · 4 points
#
# In stages, each earned by itself: the first merge (1), the merges after it (2), when to stop (1).
#
# Learn the merges. The index is made for you, from lists of its own, so you may change
# `index.words`. Keep it true: before a word changes, its old pairs must go, and afterwards its new
# ones must come in. (Exercises do not depend on each other: write the merging within a word again.)
#
# <details><summary>Hint 1 · the idea</summary>
#
# Ask the index for the best pair and for the words that hold it. Change these, and no others.
# </details>
# <details><summary>Hint 2 · when to stop</summary>
#
# After `n_merges`, or when `most_frequent()` is `None`: then every word is a single token.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# while there are fewer than n_merges and there is a best pair:
#     for each place where it stands:
#         take the word's pairs out of the index
#         replace the pair in index.words[place] by the new id
#         put the word's pairs into the index
#     append the pair to the merges
# ```
# </details>
# <details><summary>Hint 4 · the new id</summary>
#
# Merge number 0 makes 256. How many merges are in the list while you are at it?
# </details>

# %% exercise="train_bpe"
from attention.tokens_and_positions import train_bpe

# %% check="train_bpe" points=4
check.train_bpe(train_bpe)

# %% [markdown]
# Now a real text. Every machine with this course on it has one: the docstrings of PyTorch and
# NumPy. The first fifty are kept aside. (If your trainer counts everything again for each merge, it
# is right as well, but it needs minutes for this cell.)

# %% given="docstrings"
from attention.tokens_and_positions import docstrings

# %% demo=true
texts = docstrings(torch, nn, nn.functional, numpy)
held_out, words, counts = "\n".join(texts[:50]), *count_words(texts[50:])
merges = train_bpe(words, counts, n_merges=2000)
print(f"{sum(counts):,} words, {len(words):,} different ones")
print("the first merges:", *merges[:6])

# %% [markdown]
# 32 is the space: docstrings are indented, so two spaces are the most frequent pair.
#
# ### Exercise 8.5 · `bpe_encode`
# ●●○ medium · 12 minutes · 3 points
#
# In stages, each earned by itself: one word of letters (2), any text (1).
#
# Cut a new text into tokens. Within each word, replay the merges: among all pairs that stand in the
# word, the one that was **learned first** is merged, then the next, until no pair is left that was
# ever learned. `ranks` tells the place of a pair among the merges.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Start from the bytes of the word. While there are known pairs in it: find the one of lowest rank
# and replace it by its id.
# </details>
# <details><summary>Hint 2 · the functions</summary>
#
# `min` of a list of tuples (rank, place) compares the ranks first. Assigning to a slice of two
# shortens a list: `word[i : i + 2] = […]`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# for each piece of split_words(text):
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
# ### Exercise 8.6 · `bpe_decode`
# ●●○ medium · 8 minutes · 2 points
#
# And back: bytes of the tokens, joined, read as UTF-8. Mind that a token may end within a
# character, and that a model may produce bytes that are no text at all. These become U+FFFD, �.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Build a table of the bytes of every token. Merge *r* joins two tokens that are in the table
# already.
# </details>
# <details><summary>Hint 2 · the functions</summary>
#
# `bytes([98])` is the byte 98 (`bytes(98)` is 98 zeros). `b"".join(…)` joins. `.decode("utf-8",
# errors=…)` reads, and `errors` says what happens to bytes that are no text.
# </details>
# <details><summary>Hint 3 · a character comes out as “��”</summary>
#
# Then each token was read by itself. First join all bytes, then read.
# </details>

# %% exercise="bpe_decode"
from attention.tokens_and_positions import bpe_decode

# %% check="bpe_decode" points=2
check.bpe_decode(bpe_decode)

# %% [markdown]
# ### Predict first
# How many bytes does a token stand for, on average? Without merges, exactly one. And after 2000
# merges, for docstrings that were kept aside? For a German text?

# %% demo=true
prediction = None  # bytes per token, docstrings, after 2000 merges; None skips this

# %% demo=true
german = """Ein guter Zerleger kennt die häufigen Wörter und baut die seltenen aus Stücken zusammen.
Wer nur englische Texte gesehen hat, hält jeden deutschen Satz für eine lange Folge von Silben und
Buchstaben. Übrigens geht dabei nichts verloren, auch kein ß und kein Umlaut."""
used = [0, 10, 30, 100, 200, 500, 1000, 1500, 2000]
curves = {"docstrings, kept aside": held_out, "German": german}
for first in (0, 100, 1990):
    print(f"merge {first:4} on:", *(repr(bpe_decode([256 + first + r], merges)) for r in range(9)))
for name, text in curves.items():
    sizes = [len(bpe_encode(text, merges[:n])) for n in used]
    curves[name] = [len(text.encode("utf-8")) / size for size in sizes]
    assert bpe_decode(bpe_encode(text, merges), merges) == text
    print(f"{name:<23} {curves[name][-1]:.2f} bytes per token after {used[-1]} merges")
ax = plots.lines(used, curves, xlabel="merges", ylabel="bytes per token")
compare(prediction, curves["docstrings, kept aside"][-1], "bytes per token, docstrings")

# %% [markdown]
# *Bytes per token against the number of merges: steep at first, then flatter.* The first tokens are
# spaces and pairs of common letters; whole words follow, most with their space in front. The pairs
# that are merged get rarer and rarer, so merges help less and less. The German text gains little.
# Is that German, or is it the tokeniser? Exchange the text that it learns from: docstrings, German
# numbers in words, or both, 2000 merges each, and three draws of what is kept aside.

# %% demo=true
results = recorded.read("tokens_and_positions", "whose merges")
print(f"{'bytes per token of':>35}{'docstrings':>22}{'|':>4}{'German numbers':>22}")
for kind in ("docstrings", "numbers", "both"):
    found = seeds.where(results, learns_from=kind)
    cells = ("   ".join(f"{row[of]:5.2f}" for row in found) for of in ("docstrings", "numbers"))
    print(f"merges learned from {kind:<12}", "   |".join(cells), sep="   ")

# %% [markdown]
# Each tokeniser is good at the text that it was made for. Numbers in words repeat a few long parts,
# so their gain is huge; but a tokeniser of docstrings cuts them into pieces of less than two bytes,
# and the tokeniser of numbers cuts English into letters. One that learns from both divides its
# merges between them. Every text comes back, but costs more
# tokens in a language that the tokeniser was not made for.
#
# ## A German compound
# German writes its numbers as one word: 231 is *zweihunderteinunddreißig*. Two more tokenisers
# learn from the numbers 1 to 999 in words, each once: one of them 28 merges, the other 60.


# %% demo=true
def in_german(n):
    """Write 1 to 999 in German words."""
    units = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]
    stems = ("drei", "vier", "fünf", "sech", "sieb", "acht", "neun")
    units += ["zehn", "elf", "zwölf", *(stem + "zehn" for stem in stems)]
    tens = ["zwanzig", "dreißig", *(stem + "zig" for stem in stems[1:])]
    if n >= 100:
        return units[n // 100 - 1] + "hundert" + (in_german(n % 100) if n % 100 else "")
    if n >= 20:
        return (units[n % 10 - 1] + "und" if n % 10 else "") + tens[n // 10 - 2]
    return "eins" if n == 1 else units[n - 1]


words, counts = count_words(in_german(n) for n in range(1, 1000))
learned = {f"numbers, {n}": train_bpe(words, counts, n_merges=n) for n in (28, 60)}
learned["docstrings, 2000"] = merges
axes = plots.panels(rows=3, width=9, height=1.5, share=False)
for ax, word in zip(axes, (in_german(231), in_german(717), "Donaudampfschifffahrt"), strict=True):
    rows = {}
    for name, known in learned.items():
        ids = bpe_encode(word, known)
        rows[f"{name} merges: {len(ids)} tokens"] = [bpe_decode([i], known) for i in ids]
    plots.tokens(rows, ax).set(title=word)

# %% [markdown]
# *Three words, cut by three tokenisers; � is a token that is half of a character.* Nobody told the
# first one what *hundert*, *und* or *drei* is; it found them, because they are frequent. But the
# cuts follow frequency, not meaning: with 60 merges *zweihundert* is one token, and *siebzehn* ends
# in *zeh* and *n*. To the tokeniser of docstrings German is little more than letters, and to the
# other two so is a word that is unlike any number.
#
# Lesson 14 cuts real sentences with such a tokeniser, English and German by one list of merges, and
# lesson 15 docstrings. A model also needs ids for what is no text, such as the end of a sentence:
# **special tokens**, to which no text is encoded. GPT-2 has 256 bytes, 50 000 merges and one
# special token, 50 257 ids in all.
#
# ## From ids to rows
# An id is a name, not a quantity: 301 is not more than 300. So each id gets a vector of its own, a
# row of a table that is learned.
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
# Why the root? The paper does not say. The usual answer: it uses the table twice, here and to score
# the next token at the end, and for the latter its numbers should start small, with a standard
# deviation of about $1/\sqrt{d_\text{model}}$. As rows of *X* they would drown in the positions,
# whose numbers go up to 1. The factor brings them to size 1.
#
# ### Exercise 8.7 · `embed`
# ●○○ easy · 3 minutes · 1 point
#
# Look the rows up and scale them.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A tensor of ids as an index picks a row for each of them.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `table[ids]` has the shape of `ids` followed by an axis of `d_model`. Which axis of the table
# has the length `d_model`?
# </details>

# %% exercise="embed"
from attention.tokens_and_positions import embed

# %% check="embed" points=1
check.embed(embed)

# %% [markdown]
# ## Order
# Attention does not know in which order the rows come. Two sentences of the same words, and an
# attention of five lines with random weights:


# %% demo=true
def self_attention(x, W_q, W_k):
    """Attention of a sequence on itself, with the rows as values."""
    scores = (x @ W_q) @ (x @ W_k).T / math.sqrt(x.shape[1])  # (T, T)
    weights = scores.softmax(dim=1)
    return weights @ x, weights


sentences = ["dog bites man", "man bites dog"]
number = {"dog": 0, "bites": 1, "man": 2}
for seed in range(3):
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(3, 16, generator=generator) / 4  # (vocab_size, d_model), of size 1/√d_model
    W_q, W_k = torch.randn(2, 16, 16, generator=generator) / 4
    rows = {s: embed(torch.tensor([number[word] for word in s.split()]), table) for s in sentences}
    contexts = {s: self_attention(x, W_q, W_k)[0] for s, x in rows.items()}
    gaps = [contexts[sentences[0]][i] - contexts[sentences[1]][2 - i] for i in range(3)]
    print(f"weights {seed}: each word the same in both:", all(g.abs().max() < 1e-5 for g in gaps))

# %% [markdown]
# Who bites whom makes no difference, whatever the weights are (lesson 05). The rows must say where
# they stand.
#
# ### Exercise 8.8 · `sinusoidal_positions`
# ●●○ medium · 12 minutes · 2 points
#
# The idea of the Transformer's authors: describe a position like a time, by the hands of clocks
# that turn at different speeds. Each pair of columns is one clock, the sine and the cosine of its
# angle.
#
# ![Four clocks at the positions 0, 1, 2, 3, 10 and 100. The first hand turns by one radian per
# step, the second by a tenth, the third by a hundredth, the fourth by a
# thousandth.](figures/position_clocks.svg)
#
# $$P_{t,\,2i} = \sin\frac{t}{10000^{2i/d_\text{model}}}, \qquad
# P_{t,\,2i+1} = \cos\frac{t}{10000^{2i/d_\text{model}}}$$
#
# The drawing has $d_\text{model} = 8$. Mind that sines and cosines **take turns**. (Some programs
# put all sines first. That is as good, but a model trained with one cannot be run with the other.)
#
# <details><summary>Hint 1 · the idea</summary>
#
# First the matrix of angles, one per position and clock. Then both functions of it, interleaved.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Positions `(T, 1)` times speeds `(d_model / 2,)` are angles `(T, d_model / 2)`.
# `torch.arange(0, d_model, 2)` counts 0, 2, 4, …; give it the dtype of the positions.
# </details>
# <details><summary>Hint 3 · interleaving</summary>
#
# `torch.stack` with `dim=-1` puts two `(T, n)` into `(T, n, 2)`, where the two that belong together
# are neighbours. `flatten(start_dim=1)` makes one axis of the last two.
# </details>
# <details><summary>Hint 4 · “position 0 should be 0, 1, 0, 1”</summary>
#
# You have 0, 0, …, 1, 1: `torch.cat` has put one half after the other.
# </details>

# %% exercise="sinusoidal_positions"
from attention.tokens_and_positions import sinusoidal_positions

# %% check="sinusoidal_positions" points=2
check.sinusoidal_positions(sinusoidal_positions)

# %% [markdown]
# ### Predict first
# The matrix for 64 positions and 64 columns: where do the colours change from row to row, and where
# do they hardly change at all? And take the dot product of the row of one position with those
# around it: does the curve depend on the position?

# %% demo=true
P = sinusoidal_positions(torch.arange(200.0), 64)  # (T, d_model)
left, right = plots.panels(columns=2, width=4.6, height=3.2, share=False)
plots.signed(P[:64], left, "the positions", "column", "position")
shifts = torch.arange(-30, 31)
for t in (40, 80, 120):
    dots = P[t + shifts] @ P[t]  # (61,)
    right.plot(shifts, dots, label=f"t = {t}", linewidth=7 - t / 20)
right.set(title="dot product of rows t and t + shift", xlabel="shift")
legend = plots.legend(right)

# %% [markdown]
# *Left: rows are positions; the first columns change at every step, the last hardly at all. Right:
# three curves, one on top of the other.* The dot product of two positions depends on their
# distance only: it is largest at 0, where it is 32, one for each clock.
#
# ## A shift is a rotation
# Move every position by the same number, and each hand turns by the same angle, wherever it stood.
# A rotation is a matrix. So **one** matrix, made from the shift alone, leads from any position to
# the one that many steps ahead. A head that looks “three tokens back” could use that matrix.

# %% demo=true
shift, d_model = 5.0, 8
R = torch.zeros(d_model, d_model)
for i in range(0, d_model, 2):
    angle = shift / 10000 ** (i / d_model)
    R[i : i + 2, i : i + 2] = torch.tensor(
        [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    )
positions = torch.arange(50.0)
now, later = (sinusoidal_positions(positions + s, d_model) for s in (0.0, shift))
gap = (now @ R - later).abs().max().item()
print("50 rows, one matrix, largest difference below 1e-5:", gap < 1e-5)

# %% [markdown]
# ### Exercise 8.9 · `LearnedPositions`
# ●●○ medium · 8 minutes · 2 points
#
# Why not learn the positions, like the embeddings? BERT and GPT-2 do. Write a module with one
# parameter, `table`, whose first *T* rows are added to the sequences. Every sequence of the batch
# gets the same. There is no row for position `max_length`, so a longer sequence is refused.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Time is axis 1 of x, not axis 0: that is the batch.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(B, T, d_model)` plus `(T, d_model)` adds the same matrix to every sequence.
# </details>
# <details><summary>Hint 3 · the parameter</summary>
#
# `nn.Parameter` around a tensor. Small random numbers do as a start, such as `torch.randn(…)` times
# 0.02.
# </details>

# %% exercise="LearnedPositions"
from attention.tokens_and_positions import LearnedPositions

# %% check="LearnedPositions" points=2
check.LearnedPositions(LearnedPositions)

# %% [markdown]
# ## Three tokens back
# Do models make use of positions? One attention layer with one head and a read-out reads random
# tokens of 16 kinds and should say, at each from the fourth on, the token three before. There are
# four kinds of positions: none, learned, sinusoidal, and one that you have not met yet. **Rotary
# positions** add nothing to the rows. They turn each query and each key by angles that grow with
# its position, as the hands of the clocks do. Any query and key that stand equally far apart are
# then turned against each other by the same angles, so their score depends on the two contents and
# the distance. (You can write this yourself at the end, ★.)
#
# A run takes 300 steps on sequences of 24 tokens, or of 96; then comes a test at four lengths. The
# runs are recorded; `python -m attention.experiments tokens_and_positions` makes them again.
#
# ### Predict first
# Trained on 24 tokens with sinusoidal positions, what share is right in sequences of 96?

# %% demo=true
prediction = None  # a share, 0 to 1; None skips this

# %% demo=true
results = recorded.read("tokens_and_positions", "three back")
axes = plots.panels(columns=2, width=4.2, height=3.0)
for ax, length in zip(axes, (24, 96), strict=True):
    for number, kind in enumerate(("none", "learned", "sinusoidal", "rotary")):
        of = seeds.where(results, kind=kind, length=length)
        mean = torch.tensor([row["right"] for row in of]).mean(dim=0)  # over the seeds, (4,)
        (line,) = ax.plot(of[0]["lengths"], mean, label=kind)
        for row in of:
            x = [T * 1.04 ** (number - 1.5) for T in row["lengths"]]
            ax.plot(x, row["right"], "o", color=line.get_color(), markersize=4)
    ax.set(
        title=f"trained on {length} tokens",
        xlabel="tokens in the test",
        ylim=(-0.04, 1.06),
        xscale="log",
    )
    ax.set_xticks(row["lengths"], row["lengths"])
    ax.minorticks_off()
axes[0].set_ylabel("share right")
plots.legend(axes[1], fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
measured = [row["right"][-1] for row in seeds.where(results, kind="sinusoidal", length=24)]
compare(prediction, sum(measured) / 3, "sinusoidal, 24 tokens in training, 96 in the test")

# %% [markdown]
# *Share of tokens right against the length of the test, on a logarithmic scale. Dots: single runs,
# three of each, moved apart a little; lines: their mean.* Without positions the layer knows at best
# which tokens there are. With any of the three it does the lengths of its training; only the
# learned ones are not there yet after 300 steps, for 96 places.
#
# Beyond 24 places the rows of a learned table have never been trained. Sinusoids exist for every
# position, and one matrix would work for all of them, but training on 24 places did not find it.
# (The right panel is the control: nothing is wrong with 96 places.) With rotary positions a score
# depends on contents and distance only, so what is learned at one place holds at every other. This
# is one task for one layer. Lesson 10 gives the same four kinds to a translator, and there the
# sinusoidal ones are a little ahead.
#
# Try a seed that nobody has tried:

# %% demo=true
point = None  # for example {"kind": "sinusoidal", "length": 24, "seed": 3}
if point is not None:
    from attention.experiments.tokens_and_positions import train_one

    print(train_one(**point)["right"], "of sequences of 12, 24, 48 and 96 tokens")

# %% [markdown]
# ## Order matters now
# The two sentences again, with positions added. The words, the table and the weights are as before.

# %% demo=true
axes = plots.panels(rows=2, columns=2, width=3.4, height=2.3, share=False)
for row, scale in zip(axes, (0.0, 1.0), strict=True):
    contexts = {}
    for ax, s in zip(row, sentences, strict=True):
        x = rows[s] + scale * sinusoidal_positions(torch.arange(3.0), 16)
        contexts[s], weights = self_attention(x, W_q, W_k)
        title = f"{s}, {'with' if scale else 'without'} positions"
        plots.heatmap(weights, ax, title, s.split(), s.split(), numbers=True, colorbar=False)
        ax.set(xlabel="", ylabel="")
    one, other = (contexts[s][s.split().index("dog")] for s in sentences)
    gap = (one - other).abs().max().item()
    print(f"{'with' if scale else 'without':<7} positions, dog differs by up to {gap:.2f}")

# %% [markdown]
# *Weights of the words on each other. Above, without positions, the right matrix is the left one
# with its words in another order. Below, with positions, the weights differ.* The dog that bites
# and the dog that is bitten are two different rows at last.
#
# ### Break it
# Leave the root out. The sentence is “a rose is a rose is a rose”, and we look at the cosine of the
# angle between any two rows of *X*. What should two rows of the same word have in common? What is
# left of it without √d_model?

# %% demo=true
rose = ["a", "rose", "is", "a", "rose", "is", "a", "rose"]
ids = torch.tensor([["a", "rose", "is"].index(word) for word in rose])
d_model = 256
table = torch.randn(3, d_model, generator=torch.Generator().manual_seed(0)) / math.sqrt(d_model)
P = sinusoidal_positions(torch.arange(8.0), d_model)
axes = plots.panels(columns=2, width=3.9, height=3.3)
for ax, (name, x) in zip(
    axes, (("with √d_model", embed(ids, table)), ("without", table[ids])), strict=True
):
    rows_of_x = nn.functional.normalize(x + P, dim=1)
    plots.signed(rows_of_x @ rows_of_x.T, ax, name)
    ax.set_xticks(range(8), rose, rotation=60)
    ax.set_yticks(range(8), rose)
    print(
        f"{name:<14} size of a number: token {x.std():.2f}, position {P.square().mean() ** 0.5:.2f}"
    )

# %% [markdown]
# *Cosines between the rows of X. Left, the same words stand out wherever they are, on a background
# of nearness. Right, without the root, all rows are alike, and only the distance is left to see.*
# No error, no NaN. But does it do any harm? The task of three back again, sinusoidal positions:
# with the root and without, and a table that starts small, at $1/\sqrt{d_\text{model}}$, or at 1.

# %% demo=true
named = {}
for row in recorded.read("tokens_and_positions", "root"):
    size = row["start"] * 8 ** row["root"]  # d_model is 64
    label = f"table {row['start']:g}, {'root' if row['root'] else 'no root'}: rows {size:g}"
    named.setdefault(label, []).append(row["losses"])
ax = seeds.curves(named, range(5, 300, 10), plots.panels(width=6.0, height=3.0))
ax.set(xlabel="step", ylabel="nats a token")
legend = plots.legend(ax, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))

# %% [markdown]
# *Loss against step: means of ten steps; bands from the least to the largest of three seeds.* Small
# rows start more slowly, as feared, but they end a little ahead. It is rows of size 8 that learn
# nothing in 300 steps. And a table that starts at 1 needs no root. So here the size of the rows at
# the start decides, not the factor; mind it when you multiply an `nn.Embedding`, which starts at 1.
#
# ## Limits
# The merges are those of one training text. A text of another kind or language falls into more, and
# smaller, pieces. What often stands together is merged, whether it means something or not.
# Learned positions end with their table. Sinusoidal and rotary ones can be computed for any length,
# but that a value exists does not mean that a model can use it. And one layer that counts to three
# says little about large models at lengths that they have never seen.
#
# ## Summary
# Byte-pair encoding merges the most frequent pair of tokens, again and again, so that frequent
# words become one token and no text is ever unknown; its cuts are those of the text it learned
# from. Each id chooses a row of a learned table, times √d_model, and positions are added to the
# row or turned into the queries and keys. Without positions attention cannot know the order; with
# clocks as positions a shift is a rotation.
#
# **Next** [09 · What holds a deep stack
# together?](../09_transformer_blocks/09_transformer_blocks.ipynb) The rows of *X* go through many
# layers.
#
# ## Open questions
# No points, no check; the notebook has what is needed.
# 1. Let every training batch begin at a random position: `train_one(kind, seed=0,
#    random_start=True)`, imported as in “Three tokens back”. Do 24 tokens now teach 96 places to
#    sinusoidal positions? And to learned ones, after 300 steps, or after 900 (`steps=900`)?
# 2. Replace 10000 by 10, then by 1 in your `sinusoidal_positions`. Which rows, more than 20 away,
#    are most like row 40? (Take the dot products with 400 rows of 64 columns.)
# 3. Is farther away harder? Set `BACK` in the module `attention.experiments.tokens_and_positions`
#    to 1, then to 10, and call its `train_one`.

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. With sinusoidal positions, yes: .976, .967 and .982 are right at 96 places (seeds 0, 1, 2).
#    With learned ones after 300 steps .298, .180 and .191; after 900 steps .856, .852 and .860
#    (“random start” of `python -m attention.experiments tokens_and_positions`).
# 2. At 10000, rows 15 and 65, with 20.1 of 32: all rows are somewhat alike, since the slow clocks
#    have hardly moved. At 10, no row so far away gets more than 5.6: a sharper place, and still no
#    other row is taken for it. At 1 all clocks are one: row 84 gets 31.99, for in 44 steps a hand
#    makes almost exactly seven turns, and others get as much. So the clocks must differ; for 400
#    places the slowest need not be that slow.
# 3. No. Sinusoidal positions take 80 to 100 steps until the loss is below 0.5, for 1, 3 or 10 back;
#    rotary ones 40 to 50; learned ones 200 to 220 (seeds 0, 1, 2; at least .997 right at 24
#    tokens). To this layer no place is farther than another.
#
# </details>

# %% [markdown]
# ## ★ Rotary positions
# ### Exercise 8.10 · `rotary` ★
# ●●○ medium · 12 minutes · 2 points
#
# If a shift is a rotation, why add anything? **Rotary positions** turn the queries and keys
# themselves: each pair of features $(x_{2i}, x_{2i+1})$ by the angle of the *i*-th clock. Many
# large language models of today do it like this.
#
# $$\begin{pmatrix} x'_{2i} \\ x'_{2i+1} \end{pmatrix} =
# \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}
# \begin{pmatrix} x_{2i} \\ x_{2i+1} \end{pmatrix}, \qquad
# \theta = \frac{t}{10000^{2i/d_\text{head}}}$$
#
# Turn a query by *m* steps and a key by *n*: their dot product sees only the angle between them,
# so it depends on *m* − *n*. The lengths of the vectors stay as they are.
#
# Models often compute in bfloat16, which keeps 8 binary digits of a number: after 256 comes 258. So
# x may be bfloat16, but the positions are float32 or float64, and so are the angles. Only the
# result is rounded to x's dtype.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Angles as in exercise 8.8. Take the first and the second feature of all pairs apart, apply the
# matrix, interleave again.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `x[..., 0::2]` and `x[..., 1::2]` are `(..., T, d_head / 2)`. Angles `(T, d_head / 2)` broadcast
# against them, whatever axes stand before.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# angles        = position over 10000^(2i / d_head), for each position and pair
# first, second = even and odd features of x
# new first     = first times cos minus second times sin
# new second    = first times sin plus second times cos
# interleave the two along the last axis
# ```
# </details>
# <details><summary>Hint 4 · “for (1, 0, 2, 0) at position π/2 the result is wrong”</summary>
#
# Here neighbours are pairs. Some libraries pair feature *i* with *i* + d_head / 2 instead. Both are
# rotary positions, but a model trained with one cannot be run with the other.
# </details>
# <details><summary>Hint 5 · x in bfloat16</summary>
#
# `torch.arange(0, d_head, 2)` takes a `dtype`: that of the positions. A product of bfloat16 and
# float32 is float32; `.to(x.dtype)` at the end rounds it.
# </details>

# %% exercise="rotary"
from attention.tokens_and_positions import rotary

# %% check="rotary" points=2
check.rotary(rotary)

# %% [markdown]
# ### Predict first
# A query and a key, random, are put at all positions *m* and *n* from 0 to 31. Along which
# lines of the matrix of dot products will the colour be constant? And if sinusoids are *added* to
# the query and the key instead?

# %% demo=true
T, d_head = 32, 64
positions = torch.arange(float(T))
P = sinusoidal_positions(positions, d_head)
axes = plots.panels(columns=2, width=4.0, height=3.3)
for seed in range(3):
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 1, d_head, generator=generator)  # (1, d_head) each
    turned = rotary(q.expand(T, -1), positions) @ rotary(k.expand(T, -1), positions).T  # (T, T)
    for ax, name, scores in zip(
        axes, ("rotary", "added"), (turned, (q + P) @ (k + P).T), strict=True
    ):
        if seed == 1:
            plots.signed(scores, ax, name, "position n of the key", "position m of the query", 40.0)
        diagonals = [scores.diagonal(offset).std().item() for offset in range(-20, 21)]
        print(f"{name:<7} pair {seed}: spread along a diagonal {max(diagonals):.3f} at most")

# %% [markdown]
# *Dot products of a query at m (down) and a key at n (across). Left, rotary: constant along each
# diagonal. Right, added sinusoids: a diagonal band on top of stripes. The pair is number 1 of
# three.* Only on the left does the score depend on *m* − *n* alone. Added positions also multiply
# with the content.
#
# ## References
# - P. Gage (1994). *A new algorithm for data compression.* The C Users Journal 12(2), 23–38.
# - R. Sennrich, B. Haddow, A. Birch (2016). *Neural machine translation of rare words with subword
#   units.* [arXiv:1508.07909](https://arxiv.org/abs/1508.07909)
# - A. Radford et al. (2019). *Language models are unsupervised multitask learners.* (GPT-2: BPE on
#   bytes.)
# - A. Vaswani et al. (2017). *Attention is all you need*, sections 3.4 and 3.5.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - J. Su et al. (2021). *RoFormer: enhanced Transformer with rotary position embedding.*
#   [arXiv:2104.09864](https://arxiv.org/abs/2104.09864)
# - To use: the [tokenizers](https://github.com/huggingface/tokenizers) package learns the same
#   merges from the same words, once its bytes are numbered like ours.
