# %% [markdown]
# # 03 · What if the decoder could look back?
#
# A translator who has to close the book forgets the numbers in it. So leave it open. For every
# letter that it writes, the decoder of this lesson looks at *all* words of the source again, and
# chooses which ones count. This is the attention of Bahdanau, Cho and Bengio (2014), and the
# bottleneck of lesson 02 is gone.
#
# **After this lesson** you can
# - describe every word by a **bidirectional** reading,
# - score queries against keys with **additive attention**, and keep padding out of it,
# - put attention into a decoder, and say what its queries, keys and values are,
# - read an **alignment**, and find in it how German turns numbers around.
#
# **Time** 90 minutes · **Points** 14 · **GPU** not needed · **You need** lessons 01 and 02

# %%
import math

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention.provided import plots, translators
from attention.provided.data import BOS, EOS, PAD
from attention.sequence_to_sequence import (
    decoder_step,
    masked_cross_entropy,
    reverse_source,
    run_gru,
    shift_right,
)
from autograder import check

# %% [markdown]
# ## What fails without this idea
# The model of lesson 02 is loaded by its name, and translates three test numbers:

# %% demo=true
bottleneck, corpus = translators.trained("sequence_to_sequence")
by_digits = corpus.test_by_digits(at_most=1)
for digits in (3, 5, 6):
    (number, english, german), *_ = by_digits[digits]
    print(f"{number}  {english}")
    print(f"   wanted  {german}")
    print(f"   wrote   {translators.translations(bottleneck, corpus, by_digits[digits])[0][:70]}")

# %% [markdown]
# Five digits do not come through its one vector. A longer vector helps for a while, and costs more.
# But why should everything go through *one* vector, when the encoder made one at every word?
#
# ## The idea
# Keep all encoder states. Before each letter, compare the decoder's state with every one of them,
# turn the scores into weights, and average the states under these weights. The result is the
# **context** of this step, and it takes the place of the encoding.
#
# ![Four annotations h₁ to h₄, linked in both directions, stand above the words two, hundred, one
# and EOS. The decoder's state before the step is compared with each. Weights of 0.02, 0.01, 0.90
# and 0.07 average them into the context, from which, with the state, the letter e is
# written.](figures/looking_back.svg)
#
# You know this from lesson 01: it is a soft lookup. Only the words are new.
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
# its state only knows what came before. So read the sentence a second time, from the end to the
# beginning, and put the two states of each word side by side.
#
# ### Exercise 3.1 · `bidirectional_annotations`
# ●●○ medium · 12 minutes · 3 points
#
# Two readings with `run_gru`, one in each direction. The reading back must begin at the last *true*
# word, not in the padding. `run_gru` and `reverse_source` of lesson 02 are imported.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A reading back is a reading ahead of the reversed sequence. Its states then stand in reversed
# order too.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Each reading gives `(B, T, d)`. Side by side along the last axis they are `(B, T, 2d)`.
# `run_gru(x, **weights)` hands over the entries of a dict as named arguments.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# states of the reading ahead
# x reversed, within the true lengths
# states of its reading, with the weights for reading back
# these states reversed again, so that they stand beside their words
# both, side by side
# ```
# </details>
# <details><summary>Hint 4 · “the second half differs from a reading back …”</summary>
#
# Which word does the first of the states belong to, after reading the reversed sequence?
# </details>

# %% exercise="bidirectional_annotations"
from attention.bahdanau_attention import bidirectional_annotations

# %% check="bidirectional_annotations" points=3
check.bidirectional_annotations(bidirectional_annotations)

# %% [markdown]
# ## Scores from a small network
# In lesson 01 keys and queries lived in the same space, and near meant similar. A decoder state and
# an annotation do not even have the same length, and nobody says what "near" should mean. So let it
# be **learnt**: bring both to the same length, add, squash, and weigh the features.
#
# $$e_{ij} = v^\top \tanh(W_q\, q_i + W_k\, k_j)$$
#
# | quantity | shape | note |
# |---|---|---|
# | `q` | `(B, T_q, d_q)` | decoder states; one at a time when decoding |
# | `k` | `(B, T_k, d_k)` | annotations |
# | `W_q`, `W_k` | `(d_attention, d_q)`, `(d_attention, d_k)` | as in `nn.Linear`: outputs first |
# | `v` | `(d_attention,)` | how much each hidden feature counts |
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
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# queries projected, with an axis of length 1 for the keys
# keys projected, with an axis of length 1 for the queries
# hidden = tanh of their sum
# scores = for each pair, the sum over features of hidden times v
# ```
# </details>
# <details><summary>Hint 4 · “RuntimeError: The size of tensor a (5) must match … b (7)”</summary>
#
# Queries and keys are paired in step. Give each an axis of its own before adding.
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
# since exp(−∞) = 0. Your softmax of lesson 00 can do it, and so can `torch.softmax`.
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
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# a position is true if it is smaller than the length of its row
# scores = -inf where the position is not true
# softmax along the keys
# ```
# </details>
# <details><summary>Hint 4 · “the weights of a query do not sum to 1”</summary>
#
# Multiplying by the mask *after* the softmax takes weight away and gives it to nobody.
# </details>

# %% exercise="masked_softmax"
from attention.bahdanau_attention import masked_softmax

# %% check="masked_softmax" points=2
check.masked_softmax(masked_softmax)

# %% [markdown]
# ### Predict first
# One query meets keys from −4 to 4, with a single hidden feature, $v = 3$, and $W_q = W_k = 1$. In
# lesson 01 the weights were a hill around the query. What are they here, for queries −2, 0 and 2?

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
# up many such steps, rising and falling, and can build a hill. What similarity means is learnt.
#
# ### Exercise 3.4 · `AdditiveAttention`
# ●●○ medium · 12 minutes · 3 points
#
# A layer that owns its three matrices: scores, masked softmax, weighted average. It returns the
# context *and* the weights. (Exercises do not depend on each other, so write the two steps here
# again; with `nn.Linear` they are short.)
#
# <details><summary>Hint 1 · the idea</summary>
#
# Make three `nn.Linear` layers without bias, and use each like a function.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `self.v` maps `(B, T_q, T_k, d_attention)` to `(B, T_q, T_k, 1)`; take the last axis away. Weights
# `(B, T_q, T_k)` times values `(B, T_k, d_v)` is `(B, T_q, d_v)`: `@` does this for each sequence.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# in __init__:  W_q from d_q, W_k from d_k, both to d_attention; v from d_attention to 1; no biases
# in forward:   hidden  = tanh of (projected queries + projected keys), for all pairs
#               scores  = v of hidden, -inf where a key is padding
#               weights = softmax along the keys
#               return weights times values, and weights
# ```
# </details>
# <details><summary>Hint 4 · “the module has other parameters”</summary>
#
# `nn.Linear` has a bias unless you say `bias=False`. The attributes are called `W_q`, `W_k`, `v`.
# </details>

# %% exercise="AdditiveAttention"
from attention.bahdanau_attention import AdditiveAttention

# %% check="AdditiveAttention" points=3
check.AdditiveAttention(AdditiveAttention)

# %% [markdown]
# ## A step that looks back
# Now the decoder. Its step of lesson 02 is imported: `decoder_step(read, state, context, weights)`
# reads a letter and a context, and returns logits and the next state. There the context was always
# the same. Here each step makes its own first.
#
# ### Exercise 3.5 · `attention_decoder_step`
# ●●● hard · 15 minutes · 3 points
#
# Attend, then step. There is one query per sequence, so the axis `T_q` is gone. Mind the order: the
# query is the state that comes *in*.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Scores of the state against all annotations, weights, context; then hand the context to
# `decoder_step` and pass on what it returns, with the weights.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The projected state is `(B, d_attention)`; with an axis of length 1 it can be added to the
# projected annotations, `(B, T_k, d_attention)`. Scores and weights are `(B, T_k)`, the context is
# `(B, c)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# hidden    = tanh of (W_q state, for every key, plus W_k annotations)
# scores    = hidden times v, -inf where an annotation is padding
# attention = softmax of the scores along the keys
# context   = sum over keys of attention times annotation
# logits, new state = a decoder step with this context
# return logits, new state, attention
# ```
# </details>
# <details><summary>Hint 4 · the sum of weighted annotations has the shape (B, B, c)</summary>
#
# `(B, T_k) @ (B, T_k, c)` is read as one matrix against B matrices. With an axis added,
# `(B, 1, T_k) @ (B, T_k, c)`, each sequence has its own. `einsum("bk,bkc->bc", …)` says the same.
# </details>

# %% exercise="attention_decoder_step"
from attention.bahdanau_attention import attention_decoder_step

# %% check="attention_decoder_step" points=3
check.attention_decoder_step(attention_decoder_step)

# %% [markdown]
# ## The whole translator
# The same embeddings, the same decoder, the same output as in lesson 02. Only the context is new.
# `nn.GRU(bidirectional=True)` on packed sequences does what your `bidirectional_annotations` does.

# %% given="BahdanauTranslator"
from attention.bahdanau_attention import BahdanauTranslator

# %% [markdown]
# Train it for 40 steps, to see how it begins:

# %% demo=true
torch.manual_seed(translators.SEED)
model = BahdanauTranslator(len(corpus.source_vocabulary), len(corpus.target_vocabulary))
start = translators.train(model, corpus.batches(translators.BATCH, 40, translators.SEED), 40)

# %% [markdown]
# All 300 steps take about a minute. They were taken before, from the same seed and on the same
# batches as in lesson 02; `python -m attention.provided.translators bahdanau_attention` takes them
# again. The weights and the losses are loaded.
#
# ### Predict first
# How will the losses of the two models compare after 50 steps, and at the end? And their accuracy
# on numbers of 2 to 6 digits?

# %% demo=true
losses = {
    "one vector": translators.load(bottleneck, "sequence_to_sequence"),
    "attention": translators.load(model, "bahdanau_attention"),
}
ax = plots.lines(range(1, 301), losses, xlabel="steps", ylabel="nats a letter")
ax.set_yscale("log")

# %% demo=true
models = {
    "one vector": bottleneck,
    "one vector, source reversed": translators.trained("sequence_to_sequence_reversed")[0],
    "one vector of 128 numbers": translators.trained("sequence_to_sequence_128_numbers")[0],
    "attention": model,
}
curves = {label: translators.accuracy_by_digits(one, corpus) for label, one in models.items()}
ax = plots.accuracy(curves)
print(f"{'parameters':>38}", *(f"{digits} digits" for digits in curves["attention"]), sep="  ")
for label, shares in curves.items():
    row = [f"{label:<27}{translators.size(models[label]):>11,}"]
    print(*row, *(f"{share:8.2f}" for share in shares.values()), sep="  ")

# %% [markdown]
# *Above: loss against steps, on a logarithmic scale. Below: share of test numbers translated
# without error against their number of digits. Same data, same 300 steps, same seed.* With
# attention the loss falls to about a twentieth, and accuracy hardly depends on length: a six-digit
# number is nearly as easy as a two-digit one. Is it only that the model has more parameters? No:
# one vector of 128 numbers comes with nearly twice as many, and fails at six digits all the same.
#
# ## Reading an alignment
# The weights show what each letter was written from. Three numbers with a ten and a one; German
# says the one first: *ein-und-dreißig*.
#
# ### Predict first
# Sketch the picture for "seventy four" → "vierundsiebzig": letters down, words across. Where are
# the dark cells?


# %% demo=true
def draw_alignment(pair, parts, ax, colorbar):
    number, english, german = pair
    batch = corpus.batch([pair])
    with torch.no_grad():
        weights = model.align(batch.source, batch.lengths, batch.target)[1][0]  # (T_q, T_k)
    words, letters = [*english.split(), "EOS"], [*german, "EOS"]
    plots.heatmap(weights, ax, f"{number}", letters, words, colorbar=colorbar)
    ax.set(xlabel="", ylabel="")
    for label in ax.get_xticklabels():
        label.set(rotation=60, ha="right", rotation_mode="anchor")
    for part, word in parts.items():
        first, column = german.rindex(part), words.index(word)
        plots.mark(ax, (first, first + len(part) - 1), (column, column))


chosen = (
    (74, {"vierund": "four", "siebzig": "seventy"}),
    (931, {"einund": "one", "dreißig": "thirty"}),
    (4547, {"siebenund": "seven", "vierzig": "forty"}),
)
pairs = {pair[0]: pair for pair in corpus.test}
axes = plots.panels(1, 3, width=3.0, height=6.6, share=False)
for ax, (number, parts) in zip(axes, chosen, strict=True):
    draw_alignment(pairs[number], parts, ax, colorbar=ax is axes[-1])

# %% [markdown]
# *Alignments of three test numbers: letters of the German word down, English words across. Framed:
# the crossing of ones and tens.* Most of it follows the diagonal, word by word. At the end it
# jumps: the ones are written with an eye on the *last* word, then the tens on the word before it.
# Nobody told the model; the weights were learnt from the translations alone.
#
# Not every letter looks where you would. After "drei" in 931, the decoder knows that "ßig" must
# follow, and such letters often look at EOS: a query must put its weight somewhere, and there it
# does no harm. An alignment shows what was looked at, not what was needed.
#
# ## Break it
# Attend to padding: let the attention layer believe that all positions are true. We give it a batch
# of two-digit numbers, and ever longer companions, so that the short ones get more padding.


# %% demo=true
class Careless(AdditiveAttention):
    def forward(self, q, k, values, lengths):
        return super().forward(q, k, values, torch.full_like(lengths, k.shape[1]))


careful, careless = model.attention, Careless(64, 128, 64)
careless.load_state_dict(careful.state_dict())
few = [pair for pair in corpus.test if 20 < pair[0] < 100]
for digits in (2, 4, 6):
    batch = corpus.batch(few + corpus.test_by_digits(1)[digits])
    padding = torch.arange(batch.source.shape[1]) >= batch.lengths[:, None]  # (B, T_k)
    for name, attention in (("masked", careful), ("careless", careless)):
        model.attention = attention
        with torch.no_grad():
            logits, weights = model.align(batch.source, batch.lengths, batch.target)
        loss = masked_cross_entropy(logits[:-1], batch.target[:-1]).item()
        true = batch.target[:-1] != PAD  # (B-1, T_q)
        wasted = (weights[:-1] * padding[:-1, None]).sum(dim=2)[true].mean().item()
        print(f"beside {digits} digits, {name:<8}  on padding {wasted:.2f}  loss {loss:.4f}")
model.attention = careful

# %% [markdown]
# With the mask, a companion changes nothing. Without it, padding takes up to a quarter of the
# weight, and the loss of the very same numbers grows about eightfold. Again there is no error
# message. (It could be worse: packing has set the annotations of padding to 0.)
#
# ## Summary
# Instead of one vector for the whole source, every step of the decoder makes its own context: a
# softmax over scores of its state against all annotations, and the average under these weights.
# Accuracy no longer falls with length, because nothing has to be squeezed through a fixed size. The
# weights can be looked at, and show an alignment, crossings included.
#
# **Next** [04 · Which similarity?](../04_score_functions/04_score_functions.ipynb) The small
# network is one way to score. There are simpler ones, and a faster one.
#
# **References**
# - D. Bahdanau, K. Cho, Y. Bengio (2014). *Neural machine translation by jointly learning to align
#   and translate.* [arXiv:1409.0473](https://arxiv.org/abs/1409.0473)
# - M. Schuster, K. K. Paliwal (1997). *Bidirectional recurrent neural networks.* IEEE Transactions
#   on Signal Processing 45 (11). [doi:10.1109/78.650093](https://doi.org/10.1109/78.650093)
