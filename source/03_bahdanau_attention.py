# %% [markdown]
# # 03 · What if the decoder could look back?
#
# A translator who has to close the book forgets the numbers in it. So leave the book open: before
# each letter, let the decoder look at *all* words of the source again and choose which ones count.
# This is the attention of Bahdanau, Cho and Bengio (2014).
#
# **After this lesson** you can
# - score queries against keys with **additive attention**, and keep padding out of it,
# - put attention into a decoder, and show what it changes,
# - read an **alignment**, and test by hiding words what it does not tell you.
#
# **Time** 66 minutes · **Points** 12 · **GPU** not needed · **You need** lessons 01 and 02

# %%
import math

import torch
from torch import nn

from attention.sequence_to_sequence import decoder_step, shift_right, train
from autograder import check

# %% [markdown]
# ## A closed book
# Here is the trained model of lesson 02, translating three test numbers:

# %% demo=true
from attention.experiments import bahdanau_attention as experiments
from attention.train import shipped

bottleneck, corpus = shipped.trained("sequence_to_sequence")
written = experiments.wanted_and_written(bottleneck, corpus)

# %% [markdown]
# After its 300 steps of training, five digits do not get through its one vector. But the encoder
# made a state at *every* word. Why should the decoder see only one of them?
#
# ## An open book
# Keep all encoder states. Before each letter, compare the decoder's state with every one of them,
# turn the scores into weights, and average the states with these weights. This **context** replaces
# the single vector.
#
# ![Four annotations h₁ to h₄, linked in both directions, stand above the words two, hundred, one
# and EOS. The decoder's state before the step is compared with each. The scores −0.60, −1.30, 3.20
# and 0.65 become weights of 0.02, 0.01, 0.90 and 0.07, which average the annotations into the
# context. Context, previous letter t and state before make the state after, which writes the letter
# e.](figures/looking_back.svg)
#
# This is the soft lookup of lesson 01 with new names:
#
# | in the course | Bahdanau and colleagues | here |
# |---|---|---|
# | query | $s_{i-1}$ | the decoder's state *before* letter i |
# | keys and values | annotations $h_1, \dots, h_{T_k}$ | the encoder's states, one per word |
# | scores | $e_{ij} = a(s_{i-1}, h_j)$ | how well word j fits letter i |
# | weights | $\alpha_{ij}$ | softmax of the scores over j |
# | context | $c_i = \sum_j \alpha_{ij} h_j$ | what the decoder reads at step i |
#
# After "two", the encoder cannot know whether this will be two *hundred* or two *thousand*. So a
# second recurrent network (RNN) reads the sentence from its end to its beginning. The states of
# both at a word, side by side, are the word's **annotation**. PyTorch has both networks in one,
# `nn.GRU(bidirectional=True)`.
#
# ## Scores from a small network
# In lesson 01, near meant similar. A decoder state and an annotation do not even have the same
# length. So the similarity is **learned**: bring both to the same length, add them, squash the sum
# with a tanh, and make one number of it, as a weighted sum.
#
# $$e_{ij} = v^\top \tanh(W_q\, q_i + W_k\, k_j)$$
#
# | quantity | shape | note |
# |---|---|---|
# | `q` | `(B, T_q, d_q)` | decoder states; one at a time when decoding |
# | `k` | `(B, T_k, d_k)` | annotations |
# | `W_q`, `W_k` | `(d_attention, d_q)`, `(d_attention, d_k)` | as in `nn.Linear`: outputs first |
# | `v` | `(d_attention,)` | how much each hidden feature counts; not the values |
# | scores | `(B, T_q, T_k)` | any size and sign |
#
# By hand, this **additive** attention with one hidden feature, one query and three keys:

# %%
query, keys, v_by_hand = 0.5, [-2.0, 0.0, 2.0], 3.0
scores_by_hand = [v_by_hand * math.tanh(1.0 * query + 1.0 * key) for key in keys]
total = sum(math.exp(score) for score in scores_by_hand)
for key, score in zip(keys, scores_by_hand, strict=True):
    print(f"key {key:4.1f}   score {score:5.2f}   weight {math.exp(score) / total:.3f}")

# %% [markdown]
# ### Exercise 3.1 · `additive_scores`
# ●●○ medium · 10 minutes · 3 points
#
# Graded in two parts: the formula (2), all pairs in their place (1).
#
# Score all queries against all keys, without a loop.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Project first, then add all pairs: the column-and-row trick of lesson 01, with one more axis for
# the features.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(B, T_q, 1, d_attention)` plus `(B, 1, T_k, d_attention)` is `(B, T_q, T_k, d_attention)`. The
# product with `v` removes the last axis.
# </details>
# <details><summary>Hint 3 · “RuntimeError: The size of tensor a (5) must match … b (7)”</summary>
#
# Queries and keys are paired one to one. Give each an axis of its own before adding.
# </details>

# %% exercise="additive_scores"
from attention.bahdanau_attention import additive_scores

# %% check="additive_scores" points=3
check.additive_scores(additive_scores)

# %% [markdown]
# ### Exercise 3.2 · `masked_softmax`
# ●●○ medium · 8 minutes · 2 points
#
# Padding gets a score like every other key, but its weight must be **exactly 0**, whatever the
# score. So give it the score −∞ before the softmax, since exp(−∞) = 0. `torch.softmax` can handle
# this.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Make a mask of the true keys. Replace all other scores. Then take the softmax.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Positions `(T_k,)` compared with lengths `(B, 1, 1)` give `(B, 1, T_k)`, the same for all queries.
# `masked_fill` takes such a mask and writes a number where it is True.
# </details>
# <details><summary>Hint 3 · “… of which two are true, the weights are wrong”</summary>
#
# If you multiply by the mask *after* the softmax, the weight of the padding is lost: the rest sums
# to less than 1.
# </details>

# %% exercise="masked_softmax"
from attention.bahdanau_attention import masked_softmax

# %% check="masked_softmax" points=2
check.masked_softmax(masked_softmax)

# %% [markdown]
# ### Exercise 3.3 · `break_masked_softmax` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate takes the softmax first, then sets the weights of padding to 0 and divides by the sum.
# On paper this is the same. Find scores and lengths for which it goes wrong.
#
# <details><summary>Hint 1 · where to look</summary>
#
# The first softmax shares the weight among *all* keys. Which key could take all of it?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# What is `0.0 / 0.0`, and for which numbers does `exp` give exactly 0?
# </details>

# %% broken="divides_again_after_the_mask"
from autograder.mistakes.bahdanau_attention import divides_again_after_the_mask

# %% exercise="break_masked_softmax"
from attention.bahdanau_attention import break_masked_softmax

# %% check="break_masked_softmax" points=1
check.break_masked_softmax(break_masked_softmax)

# %% [markdown]
# ### What does one hidden feature say?
# A query meets keys from −4 to 4, with a single hidden feature, $v = 3$, and $W_q = W_k = 1$. In
# lesson 01 the weights formed a hill around the query. What do your functions give?

# %% demo=true
ax = experiments.one_hidden_feature(additive_scores, masked_softmax)

# %% [markdown]
# *Scores and weights on keys from −4 to 4 for three queries: steps, not hills.* One tanh makes a
# soft step, and the query moves it: the score changes sign where $q + k = 0$. With many features,
# $v$ adds up such steps, rising and falling, and can build a hill.
#
# ## A step that looks back
# The step of lesson 02, `decoder_step(read, state, context, weights)`, returns logits and the next
# state. There the context never changed. Here each step first makes its own.
#
# Your two functions and a weighted average are all of additive attention. We provide the three in
# one call, `attend(queries, keys, v, values, lengths)`, which returns the context *and* the
# weights. Its queries and keys are **already projected**. $W_q\,s_{i-1}$ changes with every letter,
# but $W_k\,h_j$ depends on the source alone: it needs to be computed only once per sentence. For 9
# words and 45 letters this would save 3.2 of the attention's 3.6 million multiplications.

# %%
from attention.provided.models.additive_attention import attend

# %% [markdown]
# ### Exercise 3.4 · `attention_decoder_step`
# ●●○ medium · 10 minutes · 3 points
#
# Graded in three parts: the attention weights (1), the context (1), the new state and the logits
# (1).
#
# Attend, then step. Watch the order: the query is the state *before* this step. It has no axis
# `T_q`, and `attend` needs one. To stay short, project the annotations anew for every letter.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Project, attend, and hand the context to `decoder_step`.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The projected state is `(B, d_attention)`; `attend` wants `(B, 1, d_attention)` and returns
# `(B, 1, c)` and `(B, 1, T_k)`, where c is the length of an annotation. `decoder_step` wants
# `(B, c)`.
# </details>

# %% exercise="attention_decoder_step"
from attention.bahdanau_attention import attention_decoder_step

# %% check="attention_decoder_step" points=3
check.attention_decoder_step(attention_decoder_step)

# %% [markdown]
# ## The whole translator
# The encoder reads in both directions; `run_packed` spares it the padding. The decoder is your
# `attention_decoder_step`, letter after letter: in training it reads the true letters
# (`look_back`), and in translating its own (`GreedyTranslator`, the loop of lesson 02, calls
# `write`).

# %%
from attention.provided import demand
from attention.provided.models import translators
from attention.provided.models.recurrent import GreedyTranslator, run_packed

# %% given="BahdanauTranslator"
from attention.bahdanau_attention import BahdanauTranslator

# %% [markdown]
# Train it with the loop of lesson 02, for 40 steps, to see how it begins. All 300 take a minute or
# two, so their result is loaded.

# %% demo=true
torch.set_num_threads(1)  # as fast for small matrices, and much faster beside other programs
torch.manual_seed(0)
model = BahdanauTranslator(len(corpus.source_vocabulary), len(corpus.target_vocabulary))
losses = train(model, corpus.batches(64, steps=40, seed=0), translators.adam(model, steps=40))
print(f"loss {losses[0]:.2f} at step 1, {losses[-1]:.2f} at step 40")

# %% demo=true
translators.load(model, "bahdanau_attention")
for name, one in {"one vector": bottleneck, "attention": model}.items():
    shares = translators.accuracy_by_digits(one, corpus)
    print(f"{name:<12}", *(f"{digits} digits {share:.2f}" for digits, share in shares.items()))

# %% [markdown]
# ## One factor at a time
# That was one run. And this model has attention, *and* its encoder reads in both directions. Which
# of the two matters? We trained all four combinations. Everything else is the same: data, 300
# steps, decoder, and 128 numbers per annotation or in the one vector.
#
# <details><summary>How each of these was trained and measured</summary>
#
# ```python
# torch.manual_seed(seed)
# encoder = nn.GRU(32, 64 if both else 128, batch_first=True, bidirectional=both)
# # In each step of the decoder, if it has attention:
# context, weights = attend(W_q(state), W_k(annotations), v, annotations, lengths)
# # If it has one vector, the same at every step, the last state of each direction:
# context = torch.cat([*last], dim=1)
# # For all of them:
# train(model, corpus.batches(64, 300, seed), translators.adam(model, 300))
# translators.accuracy_by_digits(model, corpus)
# ```
#
# To train one of them, in about a minute, run
# `experiments.train_one(attention=True, bidirectional=False, seed=6)`.
# </details>
#
# ### Predict first
# With attention, in both directions, 3 of 6 runs translate more than half of the six-digit numbers.
# How many of 6 do with attention over a forward RNN *alone*?

# %%
from attention.provided.predictions import compare

prediction = None  # a number from 0 to 6; None skips this

# %% demo=true
runs = experiments.one_factor_at_a_time()
compare(prediction, runs["attention, forward only"], "runs above a half, forward only")

# %% [markdown]
# *Share of test numbers translated without error, a dot for each run: six with attention, three
# without.* At five digits attention decides: every run with it translates at least 0.82, and no run
# without it more than 0.37. The backward RNN adds nothing to accuracy once there is attention. The
# number of parameters does not explain this: the models with one vector have about as many.
#
# Six digits show why one run is not enough: with attention, 300 steps suffice for some seeds and
# not for others.
#
# ## Reading an alignment
# The weights show where each letter looked. German says the ones before the tens:
# *ein-und-dreißig*. Sketch the picture for "seventy four" → "vierundsiebzig", letters down, words
# across. Where are the dark cells?

# %% demo=true
axes = experiments.alignments(model, corpus)

# %% [markdown]
# *Alignments, letters of the German word down, English words across, a dot at each letter's largest
# weight. 74 by this translator; 931 by two of the runs above, whose encoders read in both
# directions and forward only. Framed: the crossing of ones and tens.* The dots stray widely. But
# with both directions the ones begin at the last English word, and the tens at the word before.
# The model learned this from translations alone.
#
# Half of the crossing is owed to the backward RNN. With it, at least 0.85 of the first letters of
# ones look most at their word, in each of six runs; without it at most 0.12, and most look at EOS.
# Read forward only, the state at the last word cannot know that no *hundred* or *thousand* follows.
# The translations are as good.
#
# <details><summary>How this was counted</summary>
#
# ```python
# # The test numbers whose ones and tens change places, and each run's own translator:
# logits, weights = model.look_back(*model.encode(batch.source, batch.lengths), batch.lengths,
#                                   batch.target)  # (B, T_q, T_k), with the true letters read
# best = weights.argmax(dim=2)  # (B, T_q)
# # first: where the German ones begin; the ones are the last word before EOS
# at_word = best[rows, first] == batch.lengths - 2
# at_EOS = best[rows, first] == batch.lengths - 1
# ```
# </details>
#
# Now step through the letters of a number. Stop at the first letter of the ones and at the first of
# the tens: their lines cross. The letters in between look wherever they like.

# %% demo=true
from attention.provided.figures import moving

moving.crossing()

# %% [markdown]
# But in "dreißig", the d and the ß look at *thirty*, the e and the first i at EOS.
#
# ## Does a letter need its word?
# Where a letter looks is one thing, what it needs is another. So intervene: hide one word from one
# letter, leave everything else as it is, and see whether the letter is still right. To hide a word
# is to leave out its annotation: the softmax then shares its weight among the others.
#
# ### Exercise 3.5 · `right_without`
# ●●○ medium · 12 minutes · 3 points
#
# Graded in two parts: a hidden word (1), letter after letter (2).
#
# Hide `words[i]` from letter i, and from no other letter: the state that goes on has seen all
# words.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Each letter takes two steps from the same state: one without the word, which says whether the
# letter is right, and one with all words, whose state goes on.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Annotations are `(1, T_k, c)`. Those before word j are `annotations[:, :j]`, those behind it
# `annotations[:, j + 1 :]`. Put together along axis 1 they are `(1, T_k - 1, c)`, so the length is
# smaller by 1. What letter i reads is `read[:, i]`, of shape `(1,)`.
# </details>

# %% exercise="right_without"
from attention.bahdanau_attention import right_without

# %% check="right_without" points=3
check.right_without(right_without)

# %% [markdown]
# Now ask your function about the translator. Take 150 test numbers whose ones and tens change
# places, and in each the German words for these two digits. How many of their letters look most at
# the English word that they translate? How many are right without it? As a control, hide the
# *other* word that has the most weight.
#
# ### Predict first
# What share of the later letters, all but the first of each German word, look most at their English
# word?

# %%
prediction = None  # a number from 0 to 1; None skips this

# %% demo=true
found = experiments.needed_words(right_without, model, corpus)
compare(prediction, found["later letters"]["look"], "later letters that look at their word")

# %% [markdown]
# First letters look at their word. Most fail without it, and hardly any without another word. Most
# later letters do not need theirs: after "dr", only "dreißig" can follow here, and the decoder
# knows it by heart. The softmax has to put the weight somewhere all the same. (Using the state
# *after* the previous letter as the query does not help: letters look elsewhere at least as often,
# in three runs, `experiments.train_one(True, True, 0, asks_after=True)`.) An alignment shows where
# the model looked, not what it needed. Lesson 17 returns to this.
#
# ## What if padding counts as words?
# Two-digit numbers share a batch with one longer
# companion. The longer it is, the more padding they get.

# %% demo=true
losses = experiments.without_a_mask(model, corpus)

# %% [markdown]
# Without the mask, padding takes up to a quarter of the weight, and the loss of the very same
# numbers grows about eightfold. No error message tells you.
#
# <details><summary>How this was measured</summary>
#
# ```python
# batch = corpus.batch([*two_digits, companion])
# encoded = model.encode(batch.source, batch.lengths)
# everything = torch.full_like(batch.lengths, batch.source.shape[1])  # padding counts as words
# for lengths in (batch.lengths, everything):
#     logits, weights = model.look_back(*encoded, lengths, batch.target)
#     masked_cross_entropy(logits[:-1], batch.target[:-1])  # without the companion
# ```
# </details>
#
# ## The price
# Attention removes the bottleneck, not the recurrence: encoder and decoder still take one step
# after another. Every letter is scored against every word, so the work grows with $T_q \cdot T_k$.
# How long does a batch take, forward and backward?

# %% demo=true
from attention.provided.measuring import timing

batch = corpus.batch(corpus.train[:64])
for name, one in {"one vector": bottleneck, "attention": model}.items():
    spent = timing.shortest(lambda one=one: one(**vars(batch)).sum().backward())
    print(f"{name:<12} {spent:4.0f} ms")

# %% [markdown]
# Part of the difference is the decoder's loop over letters. It now runs in Python; in lesson 02,
# `nn.GRU` ran it in compiled code.
#
# ## Something of your own
# Give the translator something it has never seen: words in the wrong order, a number said twice,
# thousands after ones. What does it write, and where does it look? Draw the most surprising picture
# with `experiments.alignment_of("four seventy", model, corpus)`, and give it a caption.

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# Every step of the decoder makes its own context: a softmax over the scores of its state against
# all annotations, and the average with these weights. With everything else equal, this translates
# five digits after 300 steps where one vector fails, with or without a backward RNN. The weights
# show what was read, not what was needed.
#
# **Next** [04 · Which similarity?](../04_score_functions/04_score_functions.ipynb) A small network
# is one way to score. There are simpler ones, and they are faster.
#
# ## Open questions
# 1. Let every letter look at *one* word: define an `attend` that calls the imported one and puts a
#    1 in place of the largest weight and 0 elsewhere. What happens to the accuracy by length?
# 2. Exchange the annotations of *two* and *three* in "two thousand three hundred" before the
#    decoder sees them (write your own `encode`). Does it write 2300 or 3200? And if you exchange
#    the words?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. The model of this notebook falls from 1.00, 1.00, 1.00, 1.00, 0.98 (2 to 6 digits) to 0.93,
#    0.76, 0.28, 0.31, 0.13. Yet few letters need the small weights: if one letter at a time has a
#    single look, 0.99, 0.98 and 0.99 of the letters of four, five and six digits are right. But a
#    number has dozens of letters, and one is enough to spoil it.
# 2. *zweitausenddreihundert*, as before. It cannot be otherwise: attention does not know the order
#    of its keys (in lesson 01, permuting pairs of keys and values changed nothing). With the
#    *words* exchanged it writes *dreitausendzweihundert*. So the order is in what the RNNs have
#    written into annotations and first state. Not every number needs it: "four seventy" gives
#    *vierundsiebzig*.
#
# </details>

# %% [markdown]
# ## References
# - D. Bahdanau, K. Cho, Y. Bengio (2014). *Neural machine translation by jointly learning to align
#   and translate.* [arXiv:1409.0473](https://arxiv.org/abs/1409.0473)
# - M. Schuster, K. K. Paliwal (1997). *Bidirectional recurrent neural networks.* IEEE Transactions
#   on Signal Processing 45 (11). [doi:10.1109/78.650093](https://doi.org/10.1109/78.650093)
