# %% [markdown]
# # 13 · How do you get a sentence out?
#
# A trained translator does not say sentences. It says, after each token, how probable every next
# one is. Which sentence do we take? And how do we get it quickly?
#
# **After this lesson** you can
# - write **greedily**, and show a case where that misses the most probable sentence,
# - **sample** with a temperature, top-k and top-p, and say what each does to the odds,
# - search with a **beam**, and explain why the search needs a **length penalty**,
# - keep **keys and values**, so that a token costs almost the same early and late in the
#   sentence.
#
# **Time** 125 minutes · **Points** 18 · **GPU** not needed · **You need** lessons 05, 06, 07 and 10

# %%
import math
import time

import torch
from torch import nn

from attention.masked_attention import masked_attention
from attention.multi_head_attention import merge_heads, split_heads
from attention.provided import plots, translators
from attention.provided.data import BOS, EOS, PAD
from attention.provided.sublayers import watch_attention
from attention.transformer import Transformer
from autograder import check

torch.set_num_threads(1)  # matrices as small as those of this lesson are faster on one core
SHARP = "numbers"  # the name of the trained translator that is looked at

# %% demo=true
# What is ready-made here answers exercise 13.8, so it is not there while this lesson is graded.
from attention.provided.key_value_cache import CachedDecoder, RepeatingDecoder, evaluation, limits

# %% [markdown]
# ## What fails without this idea
# In lesson 10 the translator took the most probable letter each time. That sounds like the way to
# the most probable sentence. Look at a language of five words, in which only the last word decides
# what may follow:

# %%
words = ["PAD", "BOS", "EOS", "the", "a", "dog", "cat", "fox"]
follows = {
    "BOS": {"the": 0.55, "a": 0.45},
    "the": {"dog": 0.4, "cat": 0.35, "fox": 0.25},
    "a": {"dog": 0.1, "cat": 0.1, "fox": 0.8},
    "dog": {"EOS": 1.0},
    "cat": {"EOS": 1.0},
    "fox": {"EOS": 1.0},
}
for first, p in follows["BOS"].items():
    for second, q in follows[first].items():
        print(f"{first:>4} {second}   {p} · {q} = {p * q:.3f}")

# %% [markdown]
# *the* is the better first word, *dog* the best word after it, and together they have 0.22. But
# “a fox” has 0.36. Whoever decides word by word cannot know that a good start leads nowhere good.
#
# ![A tree. From BOS two words follow: the with 0.55, a with 0.45. Behind the: dog 0.4, cat 0.35,
# fox 0.25. Behind a: dog 0.1, cat 0.1, fox 0.8. Greedy search follows the dog and ends with 0.22. A
# beam of two keeps both words, and finds a fox, 0.36.](figures/beam_tree.svg)
#
# ## The idea
# The model gives the probability of a sentence $y$ for a source $x$ as a product, step by step:
#
# $$\log p(y \mid x) = \sum_{t=1}^{T} \log p(y_t \mid y_1 \dots y_{t-1}, x)$$
#
# There are as many sentences as paths in a tree that splits into V = `vocab_size` branches at every
# token. Nobody can try them all. These are the ways through:
#
# | way | what it takes | good for |
# |---|---|---|
# | greedy | the best next token | speed |
# | sampling | a random one, drawn by its probability | variety: stories, dialogue |
# | beam search | the K best beginnings, side by side | translation, summaries |
#
# | name | shape | what it is |
# |---|---|---|
# | `logits` | `(B, V)` | scores of the next token, before the softmax |
# | `scores` | `(B, K)` | log-probability of each beam so far |
# | `log_probs` | `(B, K, V)` | of the next token, for each beam |
# | `keys`, `values` | `(B · K, H, T, d_head)` | what an attention remembers |
#
# ## Greedy
# ### Exercise 13.1 · `greedy_path`
# ●○○ easy · 6 minutes · 1 point
#
# Write one sentence in a language like the one above. It comes as a table of log-probabilities: row
# i says what follows token i. Return the ids behind BOS, and the log-probability of the sentence.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Begin with BOS. Look into its row, take the best, write it down, look into the row of that one.
# EOS is written too, and then it is over, or when `max_length` tokens are written.
# </details>
# <details><summary>Hint 2 · from tensors to numbers</summary>
#
# `row.max(dim=0)` gives the largest entry and its place. `.item()` makes a plain number of each.
# </details>

# %% exercise="greedy_path"
from attention.decoding import greedy_path

# %% check="greedy_path" points=1
check.greedy_path(greedy_path)

# %% demo=true
table = torch.full((8, 8), -math.inf)
for word, nexts in follows.items():
    for following, p in nexts.items():
        table[words.index(word), words.index(following)] = math.log(p)
ids, log_p = greedy_path(table, max_length=5)
print(*(words[i] for i in ids), f"  log-probability {log_p:.3f}, probability {math.exp(log_p):.2f}")

# %% [markdown]
# ## A translator in doubt
# A perfect translator leaves nothing to choose: nearly all probability is on one letter. So let us
# train the small Transformer of lesson 10 for 60 steps instead of 300, and leave it in its doubts.
# We call it the *early* translator. The *sharp* one ships with the course. It is another model,
# about four times as large and trained for longer: they differ in more than the time of training.

# %% demo=true
sharp, corpus = translators.trained(SHARP)
torch.manual_seed(translators.SEED)
sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
early = Transformer(*sizes, **translators.SMALL)
losses = translators.train(early, corpus.batches(translators.BATCH, 60, translators.SEED), 60)
print(f"loss after {len(losses)} steps: {losses[-1]:.2f}")
letters = corpus.target_vocabulary.tokens
pair_of = {pair[0]: pair for pair in corpus.train + corpus.test}
for number in (40, 382, 816):
    one = corpus.batch([pair_of[number]])
    text = "".join(corpus.target_vocabulary.decode(early.translate(one.source)[0]))
    print(f"{number}  wanted {pair_of[number][2]:<24} written {text}")

# %% [markdown]
# It has learned what German numbers look like, and often says the wrong one. What does it think may
# follow “achthundert” in 816, *achthundertsechzehn*?

# %% demo=true
one = corpus.batch([pair_of[816]])
read = torch.tensor([[BOS, *(letters.index(letter) for letter in "achthundert")]])
with evaluation(early):
    mask = (one.source != PAD).unsqueeze(1)
    logits = early.decode(read, early.encode(one.source, mask), None, mask)[:, -1]  # (1, V)
shown = logits[0].topk(7).indices
names = [letters[i] for i in shown]
axes = plots.panels(columns=3, width=3.1, height=2.2)
for ax, temperature in zip(axes, (0.5, 1.0, 2.0), strict=True):
    shares = torch.softmax(logits[0] / temperature, dim=0)[shown]
    plots.bars(shares, names, ax, title=f"temperature {temperature}")
    ax.set_ylabel("probability" if temperature == 0.5 else "")

# %% [markdown]
# *Probability of the seven best next letters after “achthundert”, at three temperatures.* “s” is
# right, for *sechzehn*; “z” would begin *zehn*, which is not far from right. A low temperature
# sharpens the choice, a high one flattens it, as it did with the kernel of lesson 01.
#
# ## Sampling
# To draw from these probabilities, lay them side by side on a line from 0 to 1, in the order of
# their ids. A uniform random number, the *noise*, falls on one of them, and hits a wide piece more
# often than a narrow one:

# %%
shares, place = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}, 0.0
for letter, share in shares.items():
    print(f"{letter}: from {place:.1f} to {place + share:.1f}")
    place += share
print("so noise 0.05 draws a, 0.25 draws b, 0.7 draws d")

# %% [markdown]
# ### Exercise 13.2 · `sample_tokens`
# ●●○ medium · 12 minutes · 2 points
#
# Do this for a batch, without a loop over rows. The noise is given, so that every draw can be
# repeated.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Where does each piece of the line end? Those are sums: of the first probability, of the first two,
# and so on. How many pieces end before the noise, or just where it falls?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The ends are `(B, V)`; `cumsum` along the right axis makes them. Compare them with the noise as
# `(B, 1)`, and count along the vocabulary: `(B,)`.
# </details>
# <details><summary>Hint 3 · the temperature</summary>
#
# It acts on the scores, before the softmax. At 0.5 the scores are twice as far apart.
# </details>
# <details><summary>Hint 4 · “in float32, at the largest noise”</summary>
#
# Rounded sums may end at 0.9999998, below the noise. Multiply the noise by the row's last sum
# before comparing: it is then always below it.
# </details>

# %% exercise="sample_tokens"
from attention.decoding import sample_tokens

# %% check="sample_tokens" points=2
check.sample_tokens(sample_tokens)

# %% [markdown]
# ## Cutting the tail
# Twenty letters with 1 % each are together as probable as one with 20 %. So now and then one of
# them is drawn, and the rest of the sentence has to live with it. Two filters cut this tail off.
# Both turn scores into scores: what is dropped becomes -inf, and the softmax then makes the others
# sum to 1 again.
#
# ### Exercise 13.3 · `top_k_filter`
# ●○○ easy · 6 minutes · 1 point
#
# Keep the k best of each row.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The k-th best score of a row is a bar. Whoever is below it drops out. `topk` returns the best in
# order, and refuses to return more than there are.
# </details>
# <details><summary>Hint 2 · “only k - 1 are left”</summary>
#
# The k-th best stands exactly at the bar. It is not below it.
# </details>

# %% exercise="top_k_filter"
from attention.decoding import top_k_filter

# %% check="top_k_filter" points=1
check.top_k_filter(top_k_filter)

# %% [markdown]
# Three letters may be far too many where one is certain, and too few where ten are possible. The
# **nucleus** of Holtzman and colleagues (2020) follows the doubt: the fewest tokens that have a
# share p of the probability *together*. For 0.5, 0.1, 0.4 and p = 0.8 these are the first and the
# third: 0.5 alone is not enough, and 0.9 is.
#
# ### Exercise 13.4 · `top_p_filter`
# ●●● hard · 18 minutes · 3 points
#
# Keep each row's nucleus, the token that makes the sum reach p included.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Go from the most probable token to the least. Each looks at the sum of those *before* it: if they
# have p already, it is not needed.
# </details>
# <details><summary>Hint 2 · there and back</summary>
#
# Sorting gives values and `order`, which says where each came from. A mask made in sorted order has
# to go back: `scatter(1, order, mask)` puts entry j of a row where `order[j]` says.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# probabilities, from large to small, and the order
# sum of all before each: the running sum, less the token's own
# dropped, in sorted order: where that sum has reached p
# bring dropped back to the order of the ids; the scores there become -inf
# ```
# </details>

# %% exercise="top_p_filter"
from attention.decoding import top_p_filter

# %% check="top_p_filter" points=3
check.top_p_filter(top_p_filter)

# %% [markdown]
# ### Exercise 13.5 · `break_top_p_filter` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# This answer keeps the right tokens of some scores. Find scores and a p for which it keeps others
# than it should.
#
# <details><summary>Hint 1 · where to look</summary>
#
# What is added up here, and what should be added up? For which scores are the two the same?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# Four tokens, all with a score of 0. How many of them are needed for p = 0.9, and how many does
# this answer keep?
# </details>

# %% broken="forgets_to_divide"
from autograder.mistakes.decoding import forgets_to_divide

# %% exercise="break_top_p_filter"
from attention.decoding import break_top_p_filter

# %% check="break_top_p_filter" points=1
check.break_top_p_filter(break_top_p_filter)

# %% demo=true
hot = logits / 2
axes = plots.panels(columns=3, width=3.1, height=2.2)
for ax, title, kept in (
    (axes[0], "temperature 2, all letters", hot),
    (axes[1], "the 3 best", top_k_filter(hot, 3)),
    (axes[2], "nucleus, p = 0.8", top_p_filter(hot, 0.8)),
):
    plots.bars(torch.softmax(kept[0], dim=0)[shown], names, ax, title=title)
    ax.set_ylabel("probability" if ax is axes[0] else "")
    print(f"{title}: {(kept > -math.inf).sum().item()} of {kept.shape[1]} tokens can be drawn")

# %% [markdown]
# *The same letters at temperature 2: all, the three best, and the nucleus.* What is dropped gives
# its probability to the others. Whole sentences are drawn further below, when writing is fast.
#
# ## Beam search
# A **beam** keeps the K best beginnings, not one. Every step asks all of them what may follow. That
# makes K · V candidates, and the K best of these are the new beginnings. Two may come from the same
# old one, and an old one may die out. Sutskever and colleagues (2014) found that a beam of 2 brings
# most of the gain in translation: narrow beams are enough.
#
# ### Exercise 13.6 · `beam_step`
# ●●● hard · 20 minutes · 4 points
#
# One step for B sources with K beams each. A beam that has written EOS is **finished**: it stays in
# the race with the score that it has. That is easy to arrange: it may go on with PAD at a cost of
# 0, and with nothing else.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Replace the rows of finished beams. Add each beam's score to all its tokens. Then a single `topk`
# chooses among the tokens of *all* beams of a source.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `scores` is `(B, K)`. To be added to `(B, K, V)`, it needs a third axis of length 1. For the
# `topk` let the last two axes become one, of length K · V.
# </details>
# <details><summary>Hint 3 · whose token is it?</summary>
#
# In K rows of V, laid end to end, place 0 … V - 1 is beam 0, the next V are beam 1. Which division
# gives the beam, and what gives the token?
# </details>
# <details><summary>Hint 4 · pseudocode</summary>
#
# ```
# a tensor like log_probs, full of -inf, with 0 in the column of PAD
# where a beam is finished take its row, elsewhere that of log_probs
# totals = score so far + log-probability, flat: (B, K · V)
# the K best totals and their places; the beam and the token of each place
# ```
# </details>

# %% exercise="beam_step"
from attention.decoding import beam_step

# %% check="beam_step" points=4
check.beam_step(beam_step)

# %% demo=true
K = 2
scores, finished = torch.tensor([[0.0, -math.inf]]), torch.zeros(1, K, dtype=torch.bool)
written = [["BOS"] for _ in range(K)]
for step in range(3):
    log_probs = table[[words.index(row[-1]) for row in written]].unsqueeze(0)  # (1, K, V)
    scores, origin, tokens = beam_step(scores, log_probs, finished)
    pairs = zip(origin[0].tolist(), tokens[0].tolist(), strict=True)
    written = [[*written[k], words[v]] for k, v in pairs]
    finished = torch.tensor([[row[-1] in ("EOS", "PAD") for row in written]])
    print(f"step {step + 1}, from beams {origin[0].tolist()}:", end="  ")
    for row, p in zip(written, scores[0].exp(), strict=True):
        print(f"{' '.join(row[1:])} {p:.2f}", end="   ")
    print()

# %% [markdown]
# “a fox” wins. The search began with the scores 0 and -inf: two equal beams would stay equal
# forever, so at first only one of them counts.
#
# ## Long sentences are improbable
# Every token multiplies the probability by a number below 1. So of two sentences the shorter is
# more probable, more or less whatever it says, and a search that is good at its job finds short
# ones. Wu and colleagues (2016) divide the log-probability by a penalty that grows with the length:
#
# $$s(y) = \frac{\log p(y \mid x)}{\left(\frac{5 + |y|}{6}\right)^{\alpha}}$$
#
# ### Exercise 13.7 · `length_normalised`
# ●○○ easy · 5 minutes · 1 point
#
# Write this formula. Log-probabilities are negative: dividing by more brings them nearer to 0.
#
# <details><summary>Hint 1 · the idea</summary>
#
# One penalty for each entry of `lengths`. With alpha = 0 it is 1.
# </details>
# <details><summary>Hint 2 · by hand</summary>
#
# A length of 7 and alpha = 1 give (5 + 7) / 6 = 2: a log-probability of -6 becomes -3.
# </details>

# %% exercise="length_normalised"
from attention.decoding import length_normalised

# %% check="length_normalised" points=1
check.length_normalised(length_normalised)

# %% [markdown]
# ## What is computed twice
# To write token t, the decoder of lesson 10 reads all t tokens again, in every layer. But an old
# token does not see the new one: the mask forbids it. So nothing that was computed for it changes.
# All that the new token needs of the old ones are their **keys and values**. Keep them:
#
# ![At step four only the new token x₄ passes through W_k, W_v and W_q. Its key and its value are
# put behind the three that are kept from before, and its query looks at all
# four.](figures/key_value_cache.svg)
#
# ### Exercise 13.8 · `CachedAttention`
# ●●○ medium · 12 minutes · 4 points
#
# Causal self-attention of one position at a time. `split_heads(x, n_heads)`, `merge_heads(x)` and
# `masked_attention(q, k, v, mask=None)`, which returns the context alone, are those of lessons 06
# and 07, and imported. What it returns must be what `MultiHeadAttention` would say for this
# position, had it read the whole sequence under a causal mask. Is a mask needed here?
#
# <details><summary>Hint 1 · the idea</summary>
#
# Project the new position only. Put its key and value behind those in `self.keys` and
# `self.values`, and store the result there. Then attend, with one query.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# After `split_heads` a key is `(B, H, 1, d_head)`, and what is kept is `(B, H, T, d_head)`. Time is
# the third axis.
# </details>
# <details><summary>Hint 3 · the first call</summary>
#
# Then nothing is kept yet: `self.keys` is None, and there is nothing to join.
# </details>
# <details><summary>Hint 4 · pseudocode</summary>
#
# ```
# query, key and value of x, in heads
# if there are old keys: old and new keys side by side in time; values likewise
# keep both
# attend, without a mask; merge the heads; the output projection
# ```
# </details>

# %% exercise="CachedAttention"
from attention.decoding import CachedAttention

# %% check="CachedAttention" points=4
check.CachedAttention(CachedAttention)

# %% [markdown]
# No mask was needed: what is not yet read is not there.
#
# In a beam search the beams change places after every step: new beam 0 may go on from old beam 1.
# What is remembered must go with it, or a beam continues its sentence with another's past.
#
# ### Exercise 13.9 · `follow_beams`
# ●●○ medium · 8 minutes · 1 point
#
# A cache has a row for each beam of each source, all along one axis: the K beams of source 0, then
# those of source 1. `origin` says which beam *of the same source* each new beam comes from.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A tensor of row numbers as an index picks rows, in any order, and some more than once. Which row
# is beam j of source b?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The first rows of the sources, as `(B, 1)`, and `origin`, `(B, K)`, add up to the row numbers.
# Make them flat: `(B · K,)`. A new tensor should be on `origin`'s device.
# </details>

# %% exercise="follow_beams"
from attention.decoding import follow_beams

# %% check="follow_beams" points=1
check.follow_beams(follow_beams)

# %% [markdown]
# ## Writing
# `CachedDecoder` puts such attentions in the places of the model's own, in all layers, and computes
# the keys and values of the source once. `step` reads a token for each row and returns the scores
# of the next. PAD and BOS get the score -inf, since no sentence contains them. `RepeatingDecoder`
# has the same methods, and computes everything anew. With either:

# %% given="write"
from attention.decoding import write

# %% given="sample"
from attention.decoding import sample

# %% [markdown]
# The search does your step for many sources at once. Only the K best tokens of a beam can be among
# the K best of all, so the search hands only each beam's K best tokens to `beam_step`, which then
# returns their *places* among these; `ids` translates them back. For a finished beam every place
# means PAD. A source leaves as soon as none of its unfinished beams can become better than its best
# finished one, and the others go on in a smaller batch. Sources of similar length are searched for
# together.

# %% given="judge"
from attention.decoding import judge

# %% given="search"
from attention.decoding import search

# %% given="beam_search"
from attention.decoding import beam_search

# %% demo=true
each = 20 if len(losses) == 60 else 2  # while the notebook is graded, training is cut short
groups = corpus.test_by_digits(each)
pairs = [pair for digits, some in groups.items() if digits > 2 for pair in some]
source, wanted = corpus.batch(pairs).source, [pair[2] for pair in pairs]


def texts_of(ids):
    return ["".join(corpus.target_vocabulary.decode(row)) for row in ids]


def best(logits):
    return logits.argmax(dim=1)


begin = time.perf_counter()
kept = write(sharp, source, best)
between = time.perf_counter()
anew = write(sharp, source, best, cache=False)
seconds = between - begin, time.perf_counter() - between
print(f"{len(source)} numbers, the same with and without a cache: {torch.equal(kept, anew)}")
print(f"without it, greedy took {seconds[1] / seconds[0]:.0f} times as long")
print("a beam of 1 writes the same:", torch.equal(beam_search(sharp, source, beam=1), kept))

# %% [markdown]
# ### Predict first
# How does the time of *one* token grow with the number of tokens before it, without a cache and
# with one? Here is an untrained model with four layers of d_model = 256. It writes one sentence.

# %% demo=true
torch.manual_seed(0)
larger = Transformer(50, 50, 256, 8, 1024, 4, fused=True)
length, every = 160, 10
one = torch.randint(3, 50, (1, 20))
curves = {}
for label, kind in (("all anew", RepeatingDecoder), ("with a cache", CachedDecoder)):
    with evaluation(larger):
        decoder, spent = kind(larger, one), []
        for _ in range(length):
            begin = time.perf_counter()
            decoder.step(torch.tensor([7]))
            spent.append(1000 * (time.perf_counter() - begin))
    curves[label] = torch.tensor(spent).view(-1, every).median(dim=1).values  # the odd pause aside
    first, last = curves[label][0], curves[label][-1]
    print(f"{label:<13} {first:5.1f} ms a token at first, {last:5.1f} ms at the end", end="   ")
    print(f"all {length}: {sum(spent) / 1000:.2f} s")
speed_up = curves["all anew"].sum() / curves["with a cache"].sum()
print(f"speed-up over {length} tokens: {speed_up:.1f}")
ax = plots.lines(range(every, length + 1, every), curves, xlabel="tokens", ylabel="ms a token")
_ = ax.set_ylim(bottom=0)

# %% [markdown]
# *Milliseconds for a token against its place in the sentence, medians of 10 tokens.* Without a
# cache the cost of a token grows with what is already there, and that of a sentence with the square
# of its length. With a cache the cost of a token hardly changes, and that of a sentence grows with
# its length. (The new token does look at all keys, but in a sentence this short the matrices of the
# layers cost far more.) What a cache costs is memory: two vectors of d_model for each written
# token, layer and beam, and as much for the source, once.
#
# ## Break it
# Let the beams change places, but leave what they remember where it was. A search adds up the
# log-probabilities that it meets. The model can be asked again afterwards, without any cache: is
# that what it thinks of the sentence?


# %% demo=true
def log_probability(model, source, target):
    """What the model says of whole sentences, read at once: (B,)."""
    with evaluation(model):
        scores = model(source, target)  # (B, T, V)
    scores[:, :, [PAD, BOS]] = -math.inf  # nobody writes these
    log_p = scores.log_softmax(dim=2).gather(2, target.unsqueeze(2)).squeeze(2)  # (B, T)
    return log_p.masked_fill(target == PAD, 0).sum(dim=1)


whole, options = follow_beams, {"beam": 5, "alpha": 1.0, "max_length": 80}
try:
    for label in ("the cache follows its beams", "the cache stays"):
        if label == "the cache stays":
            follow_beams = lambda rows, origin: rows  # noqa: E731
        ids, added = beam_search(early, source, **options, return_scores=True)
        asked = log_probability(early, source, ids)
        print(f"{label:<28} the search says {added.mean():6.2f}, the model {asked.mean():6.2f}")
        print(f"{'':<28} {texts_of(ids)[-1]}")
finally:
    follow_beams = whole
print(f"{'wanted':<28} {wanted[-1]}")

# %% [markdown]
# No error and no warning: the broken search writes words, and is content with them. Its scores
# belong to sentences that nobody wrote. A comparison like this one, or one with `cache=False`,
# finds the error at once.
#
# ## Sampled sentences
# ### Predict first
# At which temperature will the sharp translator begin to make errors? And which filter will save
# more at temperature 2: the three best, or the nucleus of 0.9?

# %% demo=true
temperatures = (0.5, 1.0, 1.5, 2.0)
filters = {"all letters": {}, "the 3 best": {"top_k": 3}, "nucleus of 0.9": {"top_p": 0.9}}
shares = {label: [] for label in filters}
for label, options in filters.items():
    for temperature in temperatures:
        found = texts_of(sample(sharp, source, temperature, max_length=70, **options))
        right = sum(one == two for one, two in zip(found, wanted, strict=True))
        shares[label].append(right / len(found))
        if label == "all letters":
            print(f"temperature {temperature}: {found[-1]}")
print(f"{'wanted':<15}: {wanted[-1]}")
ax = plots.lines(temperatures, shares, xlabel="temperature", ylabel="share without error")
_ = ax.set(ylim=(0, 1.05), xticks=temperatures)

# %% [markdown]
# *Share of 80 numbers without any error, against the temperature, for three ways of sampling.* A
# sentence of fifty letters is right only if no draw goes wrong. This translator learned from
# smoothed labels (lesson 11), so it keeps a tenth of the probability for letters that it knows to
# be wrong. At temperature 1 one draw in ten or so hits one of them. The nucleus cuts exactly this
# tail off. Three letters are two too many where the model is sure, but from temperature 1.5 on
# they are fewer than the nucleus holds: then the wrong letters have more than the tenth that it
# drops. For a translation, where one answer is right, sampling is the wrong tool in any case. It is
# the right one where there are many good answers, as in lesson 15.
#
# ## Translations with their attention
# The sharp translator again, with a beam of 5. Each translation is read once more by the whole
# model, and `watch_attention` collects the weights.

# %% demo=true
chosen = [pair_of[number] for number in (816, 382)]
batch = corpus.batch(chosen)
ids = beam_search(sharp, batch.source, beam=5)
with watch_attention(sharp) as weights, torch.no_grad():
    sharp(batch.source, ids)
axes = plots.panels(columns=2, width=4.2, height=6.0, share=False)
for row, (ax, pair) in enumerate(zip(axes, chosen, strict=True)):
    queries, keys = [*texts_of(ids)[row], "EOS"], [*pair[1].split(), "EOS"]
    average = weights["decoder.layers.1.cross_attention"][row].mean(dim=0)  # (T_q, T_k)
    shown = average[: len(queries), : len(keys)]
    plots.heatmap(shown, ax, f"{pair[0]}\n", queries, keys, colorbar=row == 1)
    ax.set(xlabel="", ylabel="")
    ax.tick_params(axis="x", rotation=60)

# %% [markdown]
# *Cross-attention of the last layer, averaged over the heads, for two translations: letters written
# down, words read across.* The search does not change how the model reads. A part looks at its word
# most where it begins, and in 382 *zwei* and *achtzig* cross, as they did in lessons 03 and 10. In
# the middle of a part, where the letters before say enough, the weight rests on EOS.
#
# ## Limits
# No search is better than its model: a beam finds what the model thinks probable, right or wrong.
# The length penalty has a parameter that must be chosen on other sentences than those that are
# judged. Beams are often near copies of each other. A cache makes a token cheap, but tokens still
# come one after the other.
#
# ## Summary
# Greedy takes the best next token, sampling a random one, and a beam keeps several beginnings.
# Whoever searches for the most probable sentence finds short ones, so they need a handicap. Keys
# and values of what was written never change, so they are kept, and a token costs almost the same
# early and late.
#
# **Next** [14 · Is it good?](../14_translation/14_translation.ipynb) Beams of every width write
# translations, and a score compares them with what was wanted.
#
# **References**
# - I. Sutskever, O. Vinyals, Q. Le (2014). *Sequence to sequence learning with neural networks.*
#   [arXiv:1409.3215](https://arxiv.org/abs/1409.3215)
# - Y. Wu et al. (2016). *Google's neural machine translation system.*
#   [arXiv:1609.08144](https://arxiv.org/abs/1609.08144)
# - A. Holtzman et al. (2020). *The curious case of neural text degeneration.*
#   [arXiv:1904.09751](https://arxiv.org/abs/1904.09751)
