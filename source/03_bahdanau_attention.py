# %% [markdown]
# # 03 · What if the decoder could look back?
#
# A translator who has to close the book forgets the numbers in it. So leave it open. For every
# letter that it writes, the decoder of this lesson looks at *all* words of the source again, and
# chooses which ones count. This is the attention of Bahdanau, Cho and Bengio (2014), and the
# bottleneck of lesson 02 is gone.
#
# **After this lesson** you can
# - describe every word by a **forward and a backward RNN**,
# - score queries against keys with **additive attention**, and keep padding out of it,
# - put attention into a decoder, and say what its queries, keys and values are,
# - show what attention changes when everything else stays the same,
# - read an **alignment**, and say which state asked for it.
#
# **Time** 80 minutes · **Points** 14 · **GPU** not needed · **You need** lessons 01 and 02

# %%
import math

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention.experiments import recorded
from attention.provided import demand
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.figures import plots, seeds
from attention.provided.models import translators
from attention.provided.models.additive_attention import attend
from attention.provided.predictions import compare
from attention.sequence_to_sequence import (
    decoder_step,
    masked_cross_entropy,
    reverse_source,
    run_gru,
    shift_right,
)
from attention.train import shipped
from autograder import check

# %% [markdown]
# ## What fails without this idea
# The model of lesson 02 is loaded by its name, and translates three test numbers:

# %% demo=true
bottleneck, corpus = shipped.trained("sequence_to_sequence")
by_digits = corpus.test_by_digits(at_most=1)
for digits in (3, 5, 6):
    (number, english, german), *_ = by_digits[digits]
    print(f"{number}  {english}")
    print(f"   wanted  {german}")
    print(f"   wrote   {translators.translations(bottleneck, corpus, by_digits[digits])[0][:70]}")

# %% [markdown]
# After 300 steps, five digits do not come through its one vector. Lesson 02 got more through with a
# wider model or ten times the training. But why should everything go through *one* vector, when
# the encoder made one at every word?
#
# ## The idea
# Keep all encoder states. Before each letter, compare the decoder's state with every one of them,
# turn the scores into weights, and average the states under these weights. The result is the
# **context** of this step, and it takes the place of the encoding.
#
# ![Four annotations h₁ to h₄, linked in both directions, stand above the words two, hundred, one
# and EOS. The decoder's state before the step is compared with each. The scores −0.60, −1.30, 3.20
# and 0.65 become weights of 0.02, 0.01, 0.90 and 0.07, which average the annotations into the
# context. Context, previous letter t and state before make the state after, which writes the letter
# e.](figures/looking_back.svg)
#
# You know this from lesson 01: it is a soft lookup, with new names.
#
# | in the course | Bahdanau and colleagues | here |
# |---|---|---|
# | query | $s_{i-1}$ | the decoder's state *before* it writes letter i |
# | keys and values | $h_1, \dots, h_{T_k}$, "annotations" | the encoder's states, one a word |
# | scores | $e_{ij} = a(s_{i-1}, h_j)$, "alignment model" | how well word j fits letter i |
# | weights | $\alpha_{ij}$ | softmax of the scores over j |
# | context | $c_i = \sum_j \alpha_{ij} h_j$ | what the decoder reads at step i |
#
# ## Better keys
# After "two", the encoder does not know yet whether this will be two *hundred* or two *thousand*:
# its state only knows what came before. So let a second RNN read the sentence from its end to its
# beginning, and put the two states of each word side by side. You will measure below what this is
# worth.
#
# ### Exercise 3.1 · `bidirectional_annotations`
# ●●○ medium · 12 minutes · 3 points
#
# In stages, each earned by itself: the forward half (1), the backward half without
# padding (1), the backward half with padding (1).
#
# Use `run_gru` twice: a forward and a backward RNN. The backward RNN must begin at the last *true*
# word, not in the padding. `run_gru` and `reverse_source` of lesson 02 are imported;
# `reverse_source(x, lengths)` reverses each sequence within its length.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A backward RNN is a forward RNN on the reversed sequence. Its states are then in reversed order
# too.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Each RNN gives `(B, T, d)`. Side by side along the last axis they are `(B, T, 2d)`.
# `run_gru(x, **weights)` passes the entries of a dict as named arguments.
# </details>
# <details><summary>Hint 3 · a smaller question</summary>
#
# The sequence a, b, c and one padding is reversed within its length, and read. Write down the order
# of the states. Which of them belongs to a, and which function brings it to index 0?
# </details>
# <details><summary>Hint 4 · “the second half differs from a backward GRU …”</summary>
#
# Which word does the first state belong to, once the reversed sequence has been read?
# </details>

# %% exercise="bidirectional_annotations"
from attention.bahdanau_attention import bidirectional_annotations

# %% check="bidirectional_annotations" points=3
check.bidirectional_annotations(bidirectional_annotations)

# %% [markdown]
# ## Scores from a small network
# In lesson 01 keys and queries lived in the same space, and near meant similar. A decoder state and
# an annotation do not even have the same length, and nobody says what "near" should mean. So let it
# be **learned**: bring both to the same length, add, squash, and weigh the features.
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
# This is **additive** attention. By hand, with one hidden feature, one query and three keys:

# %%
query, keys, v_by_hand = 0.5, [-2.0, 0.0, 2.0], 3.0
scores_by_hand = [v_by_hand * math.tanh(1.0 * query + 1.0 * key) for key in keys]
total = sum(math.exp(score) for score in scores_by_hand)
for key, score in zip(keys, scores_by_hand, strict=True):
    print(f"key {key:4.1f}   score {score:5.2f}   weight {math.exp(score) / total:.3f}")

# %% [markdown]
# ### Exercise 3.2 · `additive_scores`
# ●●○ medium · 10 minutes · 3 points
#
# In stages, each earned by itself: the formula (2), all pairs in their place (1).
#
# Score all queries against all keys, without a loop.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Project first, then form pairs. A sum of all pairs is the column-and-row trick of lesson 01, with
# one more axis for the features.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(B, T_q, 1, d_attention)` plus `(B, 1, T_k, d_attention)` is `(B, T_q, T_k, d_attention)`. The
# product with `v` removes the last axis.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Take one query and one key, without batch: how do you make the hidden vector, and then the score?
# Then ask which of the two must be repeated along which axis.
# </details>
# <details><summary>Hint 4 · “RuntimeError: The size of tensor a (5) must match … b (7)”</summary>
#
# Queries and keys are paired one to one. Give each an axis of its own before adding.
# </details>

# %% exercise="additive_scores"
from attention.bahdanau_attention import additive_scores

# %% check="additive_scores" points=3
check.additive_scores(additive_scores)

# %% [markdown]
# ### Exercise 3.3 · `masked_softmax`
# ●●○ medium · 8 minutes · 2 points
#
# The keys of a batch are padded, and padding gets a score like everything else. It must get no
# weight: **exactly 0**, whatever its score. The way to do this before the softmax is the score −∞,
# since exp(−∞) = 0. Your softmax of lesson 00 could do it; `torch.softmax` can, too.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Make a mask that says which keys are true. Replace the other scores. Then the softmax.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Positions `(T_k,)` compared with lengths `(B, 1, 1)` give `(B, 1, T_k)`, the same for all queries.
# `masked_fill` takes such a mask, and puts a number where it is True.
# </details>
# <details><summary>Hint 3 · a smaller question</summary>
#
# For `lengths = [2, 3]` and `T_k = 3`, write the mask down as a table of True and False. Which
# comparison of 0, 1, 2 with the lengths gives it?
# </details>
# <details><summary>Hint 4 · “… of which two are true, the weights are wrong”</summary>
#
# Multiplying by the mask *after* the softmax takes weight away and gives it to nobody.
# </details>

# %% exercise="masked_softmax"
from attention.bahdanau_attention import masked_softmax

# %% check="masked_softmax" points=2
check.masked_softmax(masked_softmax)

# %% [markdown]
# ### Exercise 3.4 · `break_masked_softmax` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate takes the softmax first, gives padding the weight 0 afterwards, and divides by the sum
# again. On paper this is the same, and on most inputs it is. Find scores and lengths for which it
# goes wrong.
#
# <details><summary>Hint 1 · where to look</summary>
#
# The first softmax shares the weight among *all* keys. Who could take all of it?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# What is `0.0 / 0.0` in PyTorch, and which exponential is exactly 0?
# </details>

# %% broken="divides_again_after_the_mask"
from autograder.mistakes.bahdanau_attention import divides_again_after_the_mask

# %% exercise="break_masked_softmax"
from attention.bahdanau_attention import break_masked_softmax

# %% check="break_masked_softmax" points=1
check.break_masked_softmax(break_masked_softmax)

# %% [markdown]
# ### What does one hidden feature say?
# One query meets keys from −4 to 4, with a single hidden feature, $v = 3$, and $W_q = W_k = 1$. In
# lesson 01 the weights were a hill around the query. Here:

# %% demo=true
k = torch.linspace(-4, 4, 33).view(1, -1, 1)  # (B=1, T_k, d_k=1)
q = torch.tensor([-2.0, 0.0, 2.0]).view(1, -1, 1)  # (1, T_q, d_q=1)
scores = additive_scores(q, k, torch.ones(1, 1), torch.ones(1, 1), torch.tensor([3.0]))
weights = masked_softmax(scores, torch.tensor([33]))[0]  # (T_q, T_k)
named = {f"query {number:g}": row for number, row in zip(q.flatten(), weights, strict=True)}
ax = plots.lines(k.flatten(), named, xlabel="key", ylabel="weight")

# %% [markdown]
# *Weights on keys from −4 to 4 for three queries: steps, not hills.* One tanh makes a soft step,
# and the query moves it: the score changes its sign where $q + k = 0$. With many features, $v$ adds
# up many such steps, rising and falling, and can build a hill. What similarity means is learned.
#
# ## What stays, and what changes with every letter
# Your two functions, one after the other, and a weighted average: this is all of additive
# attention, and the course has it ready as `attend`, so that nobody has to write it again. It wants
# queries and keys **already projected**, for a reason:
#
# | what is computed | depends on | how often |
# |---|---|---|
# | $W_k\, h_j$, and which keys are padding | the source | once per sentence |
# | $W_q\, s_{i-1}$, tanh, scores, softmax, context | the letter, too | once per letter |
#
# Bahdanau and colleagues say so in their appendix A.1.2. What it saves, counted in multiplications
# for 9 words, 45 letters, annotations of 128 numbers and 64 hidden features:

# %%
T_q, T_k = 45, 9
once, each_letter = T_k * 64 * 128, T_q * (64 * 64 + T_k * 64 + T_k * 128)
print(f"W_k h_j for every letter again  {T_q * once:>9,}   and the rest {each_letter:,}")
print(f"W_k h_j once per sentence       {once:>9,}   and the rest {each_letter:,}")

# %% [markdown]
# ### Exercise 3.5 · `AdditiveAttention`
# ●○○ easy · 6 minutes · 2 points
#
# A layer that owns its three matrices. It returns the context *and* the weights:
# `attend(queries, keys, v, values, lengths)` gives both, from projected queries `(B, T_q,
# d_attention)`, projected keys `(B, T_k, d_attention)` and a vector v.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Make three `nn.Linear` layers without bias, and use two of them like functions.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The weight of an `nn.Linear` has the shape (outputs, inputs). That of `self.v` is
# `(1, d_attention)`, and `attend` wants `(d_attention,)`.
# </details>
# <details><summary>Hint 3 · “the module has other parameters”</summary>
#
# `nn.Linear` has a bias unless you say `bias=False`. The attributes are called `W_q`, `W_k`, `v`.
# </details>

# %% exercise="AdditiveAttention"
from attention.bahdanau_attention import AdditiveAttention

# %% check="AdditiveAttention" points=2
check.AdditiveAttention(AdditiveAttention)

# %% [markdown]
# ## A step that looks back
# Now the decoder. Its step of lesson 02 is imported: `decoder_step(read, state, context, weights)`
# reads a letter and a context, and returns logits and the next state. There the context was always
# the same. Here each step makes its own first.
#
# ### Exercise 3.6 · `attention_decoder_step`
# ●●○ medium · 10 minutes · 3 points
#
# In stages, each earned by itself: the attention weights (1), the context (1), the new state
# and the logits (1).
#
# Attend, then step. There is one query per sequence, so the axis `T_q` is missing, and `attend`
# wants it. Mind the order: the query is the state that comes *in*, and that state has not read the
# previous letter yet. (To keep it short, this step projects the annotations itself. The translator
# below does it once per sentence while it trains.)
#
# <details><summary>Hint 1 · the idea</summary>
#
# Project, attend, hand the context to `decoder_step`, and return what that returns, with the
# weights.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The projected state is `(B, d_attention)`; `attend` wants `(B, 1, d_attention)` and returns
# `(B, 1, c)` and `(B, 1, T_k)`. `decoder_step` wants `(B, c)`.
# </details>
# <details><summary>Hint 3 · a smaller question</summary>
#
# Three results come back, and only one of them is made by `attend`. Which state is the query, and
# which state is returned?
# </details>

# %% exercise="attention_decoder_step"
from attention.bahdanau_attention import attention_decoder_step

# %% check="attention_decoder_step" points=3
check.attention_decoder_step(attention_decoder_step)

# %% [markdown]
# ## The whole translator
# The same embeddings, the same decoder, the same output as in lesson 02. The encoder is new, and so
# is the context. `nn.GRU(bidirectional=True)` does what your `bidirectional_annotations` does, on
# **packed** sequences: stored without their padding, so that no step is spent on it.

# %% given="BahdanauTranslator"
from attention.bahdanau_attention import BahdanauTranslator

# %% [markdown]
# Train it for 40 steps, to see how it begins. All 300 take about a minute; we have run them for
# you, from the same seed and on the same batches as in lesson 02 (`python -m
# attention.train.shipped bahdanau_attention`).

# %% demo=true
torch.manual_seed(translators.SEED)
model = BahdanauTranslator(len(corpus.source_vocabulary), len(corpus.target_vocabulary))
batches = corpus.batches(translators.BATCH, 40, translators.SEED)
start = translators.train(model, batches, 40, masked_cross_entropy)
losses = translators.load(model, "bahdanau_attention")
for name, one in (("one vector", bottleneck), ("attention", model)):
    shares = translators.accuracy_by_digits(one, corpus)
    print(f"{name:<12}", *(f"{digits} digits {share:.2f}" for digits, share in shares.items()))

# %% [markdown]
# ## One factor at a time
# This model differs from lesson 02's in **two** ways: it has attention, and its encoder reads in
# both directions. Which of the two matters? Four translators were trained, with and without either,
# from three seeds each. Everything else is the same: data, 300 steps, the decoder, and 128 numbers
# for each annotation, from two RNNs of 64 or one of 128. Without attention the decoder reads one
# vector of those 128 numbers, the last states, at every step.
#
# ### Predict first
# Attention over a forward RNN *alone*: which share of the six-digit numbers will it translate
# without error, in the median of three seeds?

# %%
prediction = None  # a number from 0 to 1; None skips this

# %% demo=true
rows = seeds.where(recorded.read("bahdanau_attention", "attention x bidirectional"), steps=300)
factors = {
    "attention, both directions": {"attention": True, "bidirectional": True},
    "attention, forward only": {"attention": True, "bidirectional": False},
    "one vector, both directions": {"attention": False, "bidirectional": True},
    "one vector, forward only": {"attention": False, "bidirectional": False},
}
cells = {label: seeds.where(rows, **both) for label, both in factors.items()}
axes = plots.panels(1, 2, width=4.6, height=2.2)
for ax, digits in zip(axes, (5, 6), strict=True):
    at = {label: seeds.at_digits(found, digits) for label, found in cells.items()}
    seeds.dots(at, ax, f"{digits} digits", "translated without error", shares=True)
for label, found in cells.items():
    shown = "   ".join(f"{share:.2f}" for share in seeds.at_digits(found, 6))
    print(f"{label:<28} {found[0]['parameters']:>7,} parameters   six digits: {shown}")
compare(prediction, sorted(seeds.at_digits(cells["attention, forward only"], 6))[1], "forward only")

# %% [markdown]
# *Share of test numbers translated without error, a dot for each of three seeds, a stroke for the
# median.* At five digits attention decides: every run with it translates at least 0.82, no run
# without it more than 0.37. Next to attention the backward RNN decides nothing: the forward RNN
# alone is as good. Without attention it helps, in every seed, but not enough. And six digits show
# why one seed is not enough: with attention 300 steps suffice for some seeds (0.97, 0.98) and not
# for others (0.08, 0.19). Nor is it a matter of parameters: the single vectors have about as many.
#
# Any point can be trained here, in about a minute. Try a seed that nobody has tried:

# %% demo=true
point = None  # for example {"attention": True, "bidirectional": False, "seed": 3}
if point is not None:
    from attention.experiments.bahdanau_attention import train_one

    print(train_one(**point))

# %% [markdown]
# ## Reading an alignment
# The weights show what each letter was written from. Three numbers with a ten and a one; German
# says the one first: *ein-und-dreißig*. Sketch the picture for "seventy four" → "vierundsiebzig",
# letters down, words across: where are the dark cells?

# %% demo=true
from attention.experiments import bahdanau_attention as experiments

axes = experiments.alignments(model, corpus)

# %% [markdown]
# *Alignments of three test numbers: letters of the German word down, English words across, a dot at
# each letter's largest weight. Framed: the crossing of ones and tens.* At first the dots roughly
# follow the diagonal. At the end they jump: the ones begin at the last English word, or at EOS
# after it, and the tens at the word before. Nobody told the model; the weights were learned from
# the translations alone.
#
# But look inside the frames: in "dreißig" of 931, the d and the ß look at *thirty*, the e and the i
# at EOS. So count, in all test numbers whose ones and tens change places. And ask what a letter
# needs: take its word away from one letter at a time, give the weight to the other words, and see
# whether the letter is still right.
#
# ### Predict first
# What share of the later letters, all but the first of each word, looks most at its word?

# %%
prediction = None  # a number from 0 to 1; None skips this

# %% demo=true
found = experiments.with_and_without(model, corpus)
for name, share in found.items():
    print(f"{name}: look most at their word {share['look']:.2f}", end="   ")
    print(f"right {share['with']:.2f}   right without their word {share['without']:.2f}")
compare(prediction, found["later letters"]["look"], "later letters that look at their word")

# %% [markdown]
# First letters look at their word, and mostly fail without it. Most later letters do not need it:
# after "dr" in this place only "dreißig" can follow, and the decoder knows it by heart. Their
# weights are free, and a softmax must put them somewhere: often on EOS. An alignment shows what was
# looked at, not what was needed; lesson 17 comes back to this.
#
# Or do letters look elsewhere because the query comes one letter too early? No: with a query that
# has read the previous letter, no more of them look at their word (recorded: “query after
# reading”). What the backward RNN changes is the first letter of the ones. With a forward RNN alone
# the translation is as good, but that letter looks at its word in at most 0.10 of the numbers,
# instead of 0.85 or more (recorded with “attention x bidirectional”).
#
# ## Break it
# Attend to padding: let `attend` believe that all positions are true. We give it a batch of
# two-digit numbers, and ever longer companions, so that the short ones get more padding.


# %% demo=true
def careless(queries, keys, v, values, lengths):
    return careful(queries, keys, v, values, torch.full_like(lengths, keys.shape[1]))


careful, few = attend, [pair for pair in corpus.test if 20 < pair[0] < 100]
for digits in (2, 4, 6):
    batch = corpus.batch(few + corpus.test_by_digits(1)[digits])
    padding = torch.arange(batch.source.shape[1]) >= batch.lengths[:, None]  # (B, T_k)
    for name, chosen in (("masked", careful), ("careless", careless)):
        attend = chosen
        with torch.no_grad():
            logits, weights = model.align(batch.source, batch.lengths, batch.target)
        loss = masked_cross_entropy(logits[:-1], batch.target[:-1]).item()
        true = batch.target[:-1] != PAD  # (B-1, T_q)
        wasted = (weights[:-1] * padding[:-1, None]).sum(dim=2)[true].mean().item()
        print(f"beside {digits} digits, {name:<8}  on padding {wasted:.2f}  loss {loss:.4f}")
attend = careful

# %% [markdown]
# With the mask, a companion changes nothing. Without it, padding takes up to a quarter of the
# weight of this model, and the loss of the very same numbers grows about eightfold. Again there is
# no error message. (It could be worse: packing has set the annotations of padding to 0.)
#
# ## Limits
# Attention replaces the bottleneck, not the recurrence: encoder and decoder still take one step
# after the other, and a word's neighbours reach its annotation through the RNN alone. Every letter
# is scored against every word, so the work grows with $T_q \cdot T_k$, where one vector costs the
# same for any source. A softmax must put its weight somewhere, so a query that needs nothing still
# looks at something. And a large weight says that a word was read, not that it decided the letter.
#
# ## Summary
# Instead of one vector for the whole source, every step of the decoder makes its own context: a
# softmax over scores of its state against all annotations, and the average under these weights.
# With everything else equal, this translates five digits after 300 steps, and one vector does not,
# with a backward RNN or without. The weights can be looked at, and show an alignment,
# crossings included: of what was read, not of what was needed.
#
# **Next** [04 · Which similarity?](../04_score_functions/04_score_functions.ipynb) The small
# network is one way to score. There are simpler ones, and a faster one.
#
# ## Open questions
# 1. Let every letter look at *one* word, the one with the largest weight: replace the weights
#    inside `attend`, as "Break it" does, by a 1 at the largest and 0 elsewhere. What becomes of the
#    accuracy by length?
# 2. Exchange the annotations of the last two words of "seventy four" before the decoder sees them
#    (write your own `encode`). Will it write *vierundsiebzig* or *siebenundvierzig*?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. The model of this notebook falls from 1.00, 1.00, 1.00, 1.00, 0.98 (2 to 6 digits) to 0.93,
#    0.76, 0.28, 0.31, 0.13. It was trained with soft weights, and most letters need what the small
#    ones bring. (A model that is trained with a single look is another matter: lesson 04.)
# 2. *vierundsiebzig*, as before, and so with all 732 test numbers of this kind. Attention does not
#    know the order of its keys (lesson 01: permuting pairs of keys and values changes nothing).
#    What comes first is written in the annotations themselves, by the RNN.
#
# </details>

# %% [markdown]
# ## References
# - D. Bahdanau, K. Cho, Y. Bengio (2014). *Neural machine translation by jointly learning to align
#   and translate.* [arXiv:1409.0473](https://arxiv.org/abs/1409.0473)
# - M. Schuster, K. K. Paliwal (1997). *Bidirectional recurrent neural networks.* IEEE Transactions
#   on Signal Processing 45 (11). [doi:10.1109/78.650093](https://doi.org/10.1109/78.650093)
