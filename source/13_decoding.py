# %% [markdown]
# # 13 · How do you get a sentence out?
#
# A trained translator rates every possible next token. But the best next token may lead away from
# the best sentence, and a better search may find a worse sentence. How do you get a good sentence
# out, and quickly?
#
# **After this lesson** you can
# - show a case where writing **greedily** misses the most probable sentence,
# - **sample** with a temperature, top-k and top-p, and say how each changes the probabilities,
# - write a **beam search** that loses no finished sentence, and explain why it needs a **length
#   penalty**,
# - keep **keys and values**, so that late tokens cost almost as little as early ones.
#
# **Time** 105 minutes, ★ 10 more · **Points** 16 · **GPU** not needed · **You need** lessons 05,
# 06, 07 and 10

# %%
import torch

from attention.experiments import decoding as experiments
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.demand import counts, positive, within  # refuse what makes no sense
from autograder import check

torch.set_num_threads(1)  # matrices as small as those of this lesson are faster on one core

# %% [markdown]
# ## A good start, a bad end
# In lesson 10 the translator always wrote the most probable next letter. This is **greedy search**.
# In the small language below, it misses the most probable sentence:

# %%
words = ["PAD", "BOS", "EOS", "the", "a", "dog", "cat", "fox"]
follows = {
    "BOS": {"the": 0.55, "a": 0.45},
    "the": {"dog": 0.4, "cat": 0.35, "fox": 0.25},
    "a": {"dog": 0.1, "cat": 0.1, "fox": 0.8},
}
for first, p in follows["BOS"].items():
    for second, q in follows[first].items():
        print(f"{first:>4} {second}   {p} · {q} = {p * q:.3f}")

# %% [markdown]
# *the* is the more probable first word, and *dog* the most probable word after it. Together they
# have probability 0.22, but “a fox” has 0.36. If you choose word by word, you cannot know whether a
# good start has a good end.
#
# ![A tree. From BOS two words follow: the with 0.55, a with 0.45. After the: dog 0.4, cat 0.35, fox
# 0.25. After a: dog 0.1, cat 0.1, fox 0.8. Greedy search writes “the dog”, with 0.22. A beam of two
# keeps both first words and finds “a fox”, with 0.36.](figures/beam_tree.svg)
#
# ## Far too many sentences
# The probability of a sentence $y$ for a source $x$ is a product over its tokens, so its logarithm
# is a sum:
#
# $$\log p(y \mid x) = \sum_{t=1}^{T} \log p(y_t \mid y_1 \dots y_{t-1}, x)$$
#
# Each token can be followed by any of V = `vocab_size` tokens, so there are Vᵀ sequences of T
# tokens. For 19 letters and the 24 tokens of the translator below, these are about 10²⁶: too many
# to try. Three ways to get one sentence out:
#
# | method | what it takes | good for |
# |---|---|---|
# | greedy | the best next token | speed |
# | sampling | a random token, drawn with its probability | variety: stories, dialogue |
# | beam search | the K best beginnings, side by side | translation, summaries |
#
# ## A translator in doubt
# A translator that is certain leaves nothing to choose. So we train the small Transformer of lesson
# 10 for 60 steps instead of 300: the *early* translator. The *sharp* one comes with the course:
# about four times the parameters, and longer training.
#
# <details><summary>The code that ran</summary>
#
# ```python
# model = fresh(corpus, seed)
# batches = corpus.batches(translators.BATCH, steps, seed)
# losses = translators.train(model, batches, steps, masked_cross_entropy)
# ```
# `translators.train` is the loop of lesson 02.
# </details>

# %% demo=true
sharp, early, corpus = experiments.two_translators()

# %% [markdown]
# The early translator gets all three wrong. What does it predict after “achthundert” in 816,
# *achthundertsechzehn*? Before the softmax, we divide its scores by a **temperature**:

# %% demo=true
logits = experiments.next_letter(early, corpus, 816, "achthundert")  # (1, V)
hot = {f"temperature {t}": logits / t for t in (0.5, 1.0, 2.0)}
_ = experiments.next_letters(hot, corpus)

# %% [markdown]
# *Probability of the twelve best next letters after “achthundert”, at three temperatures.* “s” is
# right, for *sechzehn*; “z” would begin *zehn*. A low temperature sharpens the distribution and a
# high one flattens it.
#
# ## Drawing a token
# At temperature 1, “s” has 0.45 and “z” 0.37. How do you draw “z” in 37 of 100 cases, with a random
# number from 0 to 1? Lay the probabilities side by side on a line, in the order of the ids. The
# random number, the *noise*, falls on one piece. With probabilities 0.1, 0.2, 0.3 and 0.4 for a, b,
# c and d, the pieces end at 0.1, 0.3, 0.6 and 1. So noise 0.05 draws a, and 0.25 draws b.
#
# ### Exercise 13.1 · `sample_tokens`
# ●●○ medium · 12 minutes · 2 points
#
# Draw one token in this way for each row of `logits`, `(B, V)`, at a given temperature, without a
# loop. The `noise`, `(B,)`, is given, so that every draw can be repeated. Scores may be 1000 or
# more, where exp overflows.
#
# <details><summary>Hint 1 · the idea</summary>
#
# How many pieces of the line end before the noise, or exactly at it?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `cumsum` along the right axis makes the ends, `(B, V)`. Compare them with the noise as `(B, 1)`,
# and count along the vocabulary: `(B,)`.
# </details>
# <details><summary>Hint 3 · “in float32, at the largest noise”</summary>
#
# Rounded sums may end at 0.9999998, below the noise. Multiply the noise by the row's last sum
# before you compare.
# </details>

# %% exercise="sample_tokens"
from attention.decoding import sample_tokens

# %% check="sample_tokens" points=2
check.sample_tokens(sample_tokens)

# %% [markdown]
# ## Cutting the tail
# At temperature 2, “s” and “z” have 0.48 together. Every other token is improbable, yet more than
# half of the draws take one of them. Two filters cut off this **tail**: its scores become -inf, and
# a softmax makes the other probabilities sum to 1 again.
#
# ### Exercise 13.2 · `top_k_filter`
# ●○○ easy · 6 minutes · 1 point
#
# Keep the k best scores of each row of `logits`, `(B, V)`; the others become −∞ (Fan et al., 2018).
# Some may already be −∞.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The k-th best score of a row is a bar, and scores below it drop out. `topk` refuses to return more
# than there are.
# </details>
# <details><summary>Hint 2 · “with k=4 not every row keeps four scores … [3, 3, 3]”</summary>
#
# The k-th best stands exactly at the bar. It is not below it.
# </details>

# %%
import math

# %% exercise="top_k_filter"
from attention.decoding import top_k_filter

# %% check="top_k_filter" points=1
check.top_k_filter(top_k_filter)

# %% [markdown]
# Three letters may be too many where the model is certain, and too few where ten are possible. The
# **nucleus** (Holtzman et al., 2020) adapts: it is the smallest set of most probable tokens that
# *together* reach the probability p. For 0.5, 0.1, 0.4 and p = 0.8 it holds the first and the third
# token, with 0.9 together.
#
# ### Exercise 13.3 · `top_p_filter`
# ●●● hard · 18 minutes · 3 points
#
# Graded in three parts: scores from large to small (1), scores in any order (1.5), where p is
# reached exactly (0.5).
#
# Keep the nucleus of each row of `logits`, `(B, V)`, including the token that reaches p; the other
# scores become −∞. Some may already be −∞.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Go from the most probable token to the least. A token is not needed if those *before* it already
# reach p.
# </details>
# <details><summary>Hint 2 · there and back</summary>
#
# Sorting gives values and `order`, which says where each came from. A mask made in sorted order has
# to go back: `scatter(1, order, mask)` puts entry j of a row at place `order[j]`.
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

# %% demo=true
warm = logits / 2
kept = {"temperature 2": warm, "the 3 best": top_k_filter(warm, 3)}
kept["nucleus of 0.8"] = top_p_filter(warm, 0.8)
_ = experiments.next_letters(kept, corpus)

# %% [markdown]
# *The same letters at temperature 2: all, the three best, and the nucleus of 0.8. A dash: this
# letter cannot be drawn.* Try the filters together below. For which of them does the temperature
# change which tokens are kept?

# %% demo=true
from attention.provided.figures import moving

moving.sampling()

# %% [markdown]
# ### Exercise 13.4 · `break_top_p_filter` · Break this answer ★
# ●○○ easy · 5 minutes · 1 point
#
# For some scores the answer below keeps the right tokens. Return scores, `(B, V)`, and a p, as
# `(logits, p)`, for which it does not.
#
# <details><summary>Hint 1 · where to look</summary>
#
# For which scores is exp(score) already the probability? Take others.
# </details>

# %% broken="forgets_to_divide"
from autograder.mistakes.decoding import forgets_to_divide

# %% exercise="break_top_p_filter"
from attention.decoding import break_top_p_filter

# %% check="break_top_p_filter" points=1
check.break_top_p_filter(break_top_p_filter)

# %% [markdown]
# ## From a letter to a sentence
# What sentences do your functions draw? `write` repeats one step until all rows have ended:
# `decoder.step` reads a token for each row and returns the scores of the next one, `(B, V)`, and
# `choose` picks it. PAD and BOS have −∞, so they are never written. In `sample` your functions
# choose. What the `cache` does comes later.

# %% demo=true
from attention.provided.models.beam_search import followed, in_batches
from attention.provided.models.key_value_cache import CachedDecoder, RepeatingDecoder, limits
from attention.provided.models.translators import long_numbers
from attention.provided.training_steps import evaluation

# %% given="write"
from attention.decoding import write

# %% given="sample"
from attention.decoding import sample

# %% demo=true
source, _ = long_numbers(corpus)  # 80 held-out numbers; the first is 816
ways = {"all letters": {}, "the 3 best": {"top_k": 3}, "nucleus of 0.8": {"top_p": 0.8}}
for name, options in ways.items():
    ids = sample(early, source[[0]].repeat(4, 1), max_length=60, **options)
    print(name, *experiments.texts_of(corpus, ids), sep="\n    ")
experiments.greedy_or_sampled({"early": early, "sharp": sharp}, corpus, write, sample)

# %% [markdown]
# None of the twelve is right. Greedy search was wrong, too: the early translator is in doubt. The
# sharp one gets all 80 numbers right greedily, and only 6 to 10 when it may draw any letter: each
# letter is another chance to draw an improbable one, and its training taught it to leave those some
# probability (the ★ at the end). A story (lesson 15) can go on in many good ways, but a number has
# one translation, so now we search for it.
#
# ## Several beginnings at once
# Greedy search missed “a fox” because it had dropped *a*. A **beam search** keeps the K best
# beginnings, the *beams*, instead of one. In every step each beam is continued by each of the V
# tokens. The K best of these K · V candidates are the new beams. Two may continue the same old
# beam; another is then dropped.
#
# ### Exercise 13.5 · `trace_beam_search`
# ●○○ easy · 5 minutes · 1 point
#
# A search with K = 2 has taken its first step, and holds two beams. Beam 0 is *the*, with
# probability 0.6, and beam 1 is *a*, with 0.4. Take the two steps after it by hand. The language:
#
# | after | next words |
# |---|---|
# | *the* | old 0.5 · small 0.45 · dog 0.05 |
# | *a* | dog 0.6 · fox 0.4 |
# | *old* | dog 0.3 · fox 0.7 |
# | *small* | dog 0.9 · fox 0.1 |
# | *dog*, *fox* | EOS 1 |
#
# Return three lists, `scores`, `origins` and `tokens`, each with one row of two for each step, best
# beam first: the probability of the beginning (not rounded; you may let Python multiply), the
# number of the old beam that it continues, and the word that was added.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The first of the two steps has five candidates: three continue *the*, two *a*. Multiply each by
# the probability of its beginning. The two largest become beams 0 and 1.
# </details>
# <details><summary>Hint 2 · can one beam have both?</summary>
#
# Yes. Then both origins are its number.
# </details>

# %% exercise="trace_beam_search"
from attention.decoding import trace_beam_search

# %% check="trace_beam_search" points=1
check.trace_beam_search(trace_beam_search)

# %% [markdown]
# ### What falls out of the beam
# A beam that has written EOS is **finished**: its score no longer changes. But beams that go on can
# push it out. In this language the most probable sentence of all loses its place:

# %%
nexts = {BOS: [0.25, 0.75, 0], 3: [0.2, 0.4, 0.4], 4: [0, 0.5, 0.5]}  # probability of EOS, 3, 4
for ids in ([EOS], [3], [3, 3], [3, 4], [3, EOS], [3, 4, 4], [3, 4, 4, 4], [3, 4, 4, 3, EOS]):
    p = math.prod(nexts[a][b - EOS] for a, b in zip([BOS, *ids], ids, strict=False))
    print(f"{p:.3f}  ", *("EOS" if token == EOS else token for token in ids))

# %% [markdown]
# With a beam of 2 the first step leaves [3] and [EOS]. In the second step [3, 3] and [3, 4] have
# 0.3 each and push [EOS] out. But every further token makes them less probable: after four, the
# best has 0.075. So the search also keeps a list of the sentences that have ended in a beam.
#
# ### Exercise 13.6 · `plain_beam_search`
# ●●● hard · 25 minutes · 4 points
#
# Graded in three parts: no sentence ends (1.5), finished beams (1.5), what falls out of the beam
# (1).
#
# Write the search for one source, with lists and loops. Repeat two steps `max_length` times:
#
# 1. Collect the candidates. Every unfinished beam is continued by each token that is possible;
#    `next_log_probs(ids)` returns the log-probabilities of all tokens, `(V,)`. A finished beam is
#    itself a candidate, with its score unchanged.
# 2. The K best candidates are the new beams. A beam that has just ended is also put on a list, and
#    stays there, even if it later falls out of the beam.
#
# Return at most K pairs, `(log-probability, ids after BOS)`: the sentences on the list, best first;
# if these are too few, the unfinished beams follow, best first. Equal scores may come in any order.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A beam is a pair: its score, and its ids from BOS on. What is the only beam before the first step?
# Which score does a longer one have?
# </details>
# <details><summary>Hint 2 · sorting pairs</summary>
#
# `pairs.sort(key=lambda pair: pair[0], reverse=True)` puts the largest first number in front.
# `enumerate(log_probs.tolist())` gives pairs of a token and its log-probability.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# beams = [a beam of BOS alone]; ended = []
# max_length times:
#     candidates: each beam that ends with EOS as it is, and each other one with each possible token
#     beams = the K best candidates
#     those of them that end with EOS and are not in ended yet go there
# ended, sorted; then the beams that do not end with EOS; the first K of all, without BOS
# ```
# </details>

# %% exercise="plain_beam_search"
from attention.decoding import plain_beam_search

# %% check="plain_beam_search" points=4
check.plain_beam_search(plain_beam_search)

# %% demo=true
table = experiments.as_table(words, follows)  # (V, V); after a word without an entry comes EOS
for K in (1, 2, 6):
    found = plain_beam_search(lambda ids: table[ids[-1]], K, max_length=3)
    shown = [f"{words[a]} {words[b]} {math.exp(log_p):.3f}" for log_p, (a, b, _) in found]
    print(f"beam of {K}:", *shown, sep="   ")

# %% [markdown]
# A beam of 1 is greedy and finds “the dog”. A beam of 2 finds “a fox”. A beam of 6 sees all six
# sentences: this is **exhaustive search**.
#
# ### Many sources at once
# Lists and loops search for one source at a time. `beam_step` takes a step for B sources with one
# `topk`, so every source must have K · V candidates. A finished beam therefore goes on, with PAD
# only, at no cost. And at the start, where there is only BOS, the other K − 1 beams have the score
# −∞. `beam_search` repeats the step.

# %% given="beam_step"
from attention.decoding import beam_step

# %% given="beam_search"
from attention.decoding import beam_search

# %% [markdown]
# Five sources: first one by one with your search, then all at once.

# %% demo=true
_ = experiments.one_by_one(early, corpus, plain_beam_search, beam_search)

# %% [markdown]
# Both find the same sentences, but what sentences! For 816 the best is *acht*, eight; the right
# number comes second. After five steps, ending with *acht* has only −2.69, and going on −0.36. But
# *acht* is finished and pays no more, while the right number pays for every further letter, and by
# step 18 it has fallen behind.
#
# ## Long sentences are improbable
# Every further token costs, so short sentences tend to be more probable. Wu et al. (2016) divide
# the log-probability by a **length penalty**, which grows with |y|, the number of tokens, EOS
# included:
#
# $$s(y) = \frac{\log p(y \mid x)}{\left(\frac{5 + |y|}{6}\right)^{\alpha}}$$
#
# With α = 0 there is no penalty. How does α = 1 rate the two best for 816?

# %%
for text, log_p in (("acht", -2.69), ("achthundertsechzehn", -4.08)):
    length = len(text) + 1  # EOS counts
    print(f"{text:<20} {log_p} / {(5 + length) / 6:.2f} = {log_p / ((5 + length) / 6):.2f}")

# %% [markdown]
# Now the right number wins. What do wider beams write? Early translators from three seeds searched
# for 80 numbers, with a penalty and without:

# %% demo=true
_ = experiments.wider_beams()

# %% [markdown]
# *Mean log-probability and mean number of letters of 80 translations, against the width of the
# beam; a line for each of three seeds.* The wider the beam, the more probable the translations, and
# without a penalty the shorter: a beam of 32 writes 12 to 18 letters where 37 are wanted. With α =
# 1 they keep 29 to 32 letters from a width of 4 on.
#
# ### Predict first
# Does such a beam get more numbers right than greedy search? Translators trained for 60 to 150
# steps, from in doubt to sure, wrote all held-out numbers of three to six digits. Which of them
# does a beam of 4 with α = 1 help most: (A) the first, (B) one in between, (C) the last?
#
# <details><summary>The code that ran</summary>
#
# ```python
# texts = texts_of(corpus, beam_search(model, source, beam, alpha, max_length=80))
# return {i for i, text in enumerate(texts) if text == wanted[i]}
# ```
# </details>

# %%
from attention.provided.predictions import compare

prediction = None  # "A", "B" or "C"; None skips this

# %% demo=true
compare(prediction, experiments.beams_against_greedy(), "helped most")

# %% [markdown]
# *Numbers without error, of 985: a beam of 4 minus greedy search, against the steps of training; a
# line for each of three seeds.* With α = 1 the beam gets more right than greedy search in all
# fifteen trainings (a gain of 1 or 3 may be luck: lesson 14 tests this), most of all after 80
# steps: 52 to 67 more, which is 5 to 7 % of all. After 60 steps of training, the beam without a
# penalty gets fewer right than greedy search. A translator that is sure leaves little to correct:
# after 150 steps the beam gets 1 to 17 more right.
#
# ## What is computed twice
# To write token t, the decoder of lesson 10 reads all t tokens again. But the mask hides the new
# token from the old ones, so nothing changes for them. The new token needs only their **keys and
# values**, so we keep these: a **key-value cache**.
#
# ![At step four only the new token x₄ passes through W_k, W_v and W_q. Its key and its value are
# put after the three that are kept from before, and its query looks at all
# four.](figures/key_value_cache.svg)

# %%
from torch import nn

from attention.masked_attention import masked_attention
from attention.multi_head_attention import merge_heads, split_heads

# %% [markdown]
# ### Exercise 13.7 · `CachedAttention`
# ●●○ medium · 12 minutes · 4 points
#
# Graded in three parts: the first position (1), all further positions (2), keys and values are
# remembered (1).
#
# Write causal self-attention that reads one position at a time. It must return what
# `MultiHeadAttention` would return for this position, had it read the whole sequence under a causal
# mask. Use `split_heads(x, n_heads)`, `merge_heads(x)` and `masked_attention(q, k, v, mask=None)`,
# which returns only the context. Do you need a mask here?
#
# <details><summary>Hint 1 · the idea</summary>
#
# Project the new position only. Append its key and value to `self.keys` and `self.values`. Then
# attend, with one query.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# After `split_heads` a key is `(B, H, 1, d_head)`, and the kept keys are `(B, H, T, d_head)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
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
# You need no mask, because later positions have not been read yet.
#
# `CachedDecoder` has such an attention in every layer. It also computes the keys and values of the
# source once, for they never change. `RepeatingDecoder` computes the whole decoder again at each
# step. Do both write the same? And is a beam of 1 greedy?

# %% demo=true
source, _ = long_numbers(corpus)
kept, again = (write(sharp, source, lambda row: row.argmax(dim=1), cache=c) for c in (True, False))
print(f"{len(source)} numbers, the same with and without a cache: {torch.equal(kept, again)}")
print("a beam of 1 writes the same:", torch.equal(beam_search(sharp, source, beam=1), kept))

# %% [markdown]
# ## What does a token cost?
# ### Predict first
# An untrained model with four layers of d_model = 256 writes 120 tokens. Without a cache, how many
# times as long as the first ten tokens will the last ten take?
#
# <details><summary>The code that ran</summary>
#
# ```python
# begin = time.process_time()
# decoder.step(torch.tensor([7]))
# spent.append(1000 * (time.process_time() - begin))
# ```
# </details>

# %%
prediction = None  # a number: time of the last ten / time of the first ten; None skips this

# %% demo=true
growth = experiments.cost_of_a_token(RepeatingDecoder, CachedDecoder)
compare(prediction, growth, "without a cache, last ten / first ten")

# %% [markdown]
# *Milliseconds of computing per token, against its place in the sentence: the mean of each ten, in
# the fastest of five runs.* Without a cache the cost grows nearly in a straight line: all tokens so
# far are read again. With a cache the cost hardly changes over 120 tokens, because attending to all
# keys costs little beside the rest of a step. The price is memory: in each layer two vectors of
# length d_model for each token of each beam, and for each token of the source.
#
# ## A cache that stays behind
# In a beam search the new beam 0 may continue the old beam 1. Then the keys and values of the old
# beam 1 must move with it. `followed` says which row of the cache each new beam takes over. What if
# each beam kept its own row? To find out, we let the model read the 80 sentences that were found,
# without a cache, and score them again. Does it agree with the search?
#
# <details><summary>The code that ran</summary>
#
# ```python
# with evaluation(model):
#     logits = model(source, target)  # (B, T, V)
# logits[:, :, [PAD, BOS]] = -math.inf
# log_p = logits.log_softmax(2).gather(2, target.unsqueeze(2)).squeeze(2)
# return log_p.masked_fill(target == PAD, 0).sum(1)
# ```
# </details>


# %% demo=true
def stays(origin):  # (B, K) -> (B, K)
    return followed(torch.arange(origin.shape[1]).expand_as(origin))


experiments.cache_that_stays(early, corpus, beam_search, stays)

# %% [markdown]
# There is no warning, but with all three models the search reports scores that its sentences do not
# have. So test a cache like this: score the finished sentences again, without it.
#
# ## Limits
# A beam finds what the model considers probable, right or wrong. Choose width, penalty and filters
# on sentences that you do not test on. Even with a cache, tokens are written one by one.
#
# ## Something of your own
# Let the early translator write one number in many ways: `source[[0]].repeat(20, 1)` makes twenty
# rows of the first, for `sample` with settings of your choice. `experiments.texts_of(corpus, ids)`
# turns ids into text, and `experiments.log_probability(early, rows, ids)` says how probable they
# are. Make a table or a tree of the sentences and how often each comes out. Where in it is the one
# that your beam finds?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# Greedy search takes the best next token, sampling draws one, and a beam keeps several beginnings.
# A penalty favours longer sentences, since the most probable one may be too short. Keys and values
# are kept, so late tokens cost almost as little as early ones.
#
# **Next** [14 · Is it good?](../14_translation/14_translation.ipynb) Beams of every width write
# translations, and a score compares them with references.
#
# ## Open questions
# No points, no check; the notebook has what is needed.
# 1. `sample` divides by the temperature first and filters afterwards. Swap the order: how many of
#    80 numbers does the sharp translator then get right at temperature 2, with each filter?
# 2. Draw eight samples at temperature 1 and take the most probable one
#    (`experiments.log_probability`). Is it as probable as what a beam of 8 finds?
# 3. Which differ more, the five beams of a source or five samples?

# %% [markdown] answer=true
# <details><summary>What we found</summary>
#
# Recorded by `python -m attention.experiments decoding`, with three seeds each.
#
# 1. For the three best it makes no difference: a division does not change which are the best. For
#    the nucleus it does. At temperature 2, filtered after the division as in `sample`, the sharp
#    translator gets none of 80 numbers right with any seed. Filtered before it, 76 to 79 are right:
#    the nucleus is that of the model itself, without the tail that the temperature has raised.
# 2. No. With the early translators the mean log-probability is -22 to -23 for one sample, -11.0 to
#    -11.6 for the best of eight, and -5.8 to -6.2 for the beam of 8. Greedy search gets -8.1 to
#    -9.2.
# 3. On four numbers, two beams of a source have 71 to 78 % of their letters in common (`ratio` of
#    Python's `difflib`), two samples 51 to 55 %.
#
# </details>

# %% [markdown]
# ## ★ Smoothed labels, sampled
# Smoothed labels (lesson 11) teach a translator to leave a tenth of the probability to other
# letters; the sharp one was trained with them. Does sampling draw from this tenth? We trained the
# small translator for 300 steps with smoothed labels and without.
#
# <details><summary>The code that ran</summary>
#
# ```python
# def loss(logits: Tensor, target: Tensor) -> Tensor:
#     scores = logits.transpose(1, 2)
#     return F.cross_entropy(scores, target, ignore_index=PAD, label_smoothing=smoothing)
#
# batches = corpus.batches(translators.BATCH, steps, seed)
# translators.train(model, batches, steps, loss)
# ```
# </details>
#
# ### Predict first
# With smoothed labels, which filter gets more numbers right at temperature 1: (A) the three best,
# or (B) the nucleus of 0.9? And at 1.5?

# %%
prediction = None  # "A" or "B", at temperature 1; None skips this

# %% demo=true
right = experiments.sampled_sentences()
better = "A" if right["the 3 best"] > right["nucleus of 0.9"] else "B"
compare(prediction, better, "smoothed labels, temperature 1")

# %% [markdown]
# *Share of 80 numbers without any error, against the temperature, for three ways of sampling; a
# line for each of three seeds.* Sampling from all letters at temperature 1, the model trained
# without smoothing gets nearly every number right; the one trained with smoothing hardly any.
# Without smoothing all letters but the best have 0.1 % together, with it 9 %: sampling does draw
# from this tenth. The nucleus cuts off most of it and keeps 1.3 letters on average. At 1.5 this
# tail has grown to more than a third; the nucleus holds 15 letters, and the three best do better,
# though not well.
#
# ## References
# - Y. Wu et al. (2016). *Google's neural machine translation system.*
#   [arXiv:1609.08144](https://arxiv.org/abs/1609.08144)
# - A. Fan, M. Lewis, Y. Dauphin (2018). *Hierarchical neural story generation.*
#   [arXiv:1805.04833](https://arxiv.org/abs/1805.04833)
# - A. Holtzman et al. (2020). *The curious case of neural text degeneration.*
#   [arXiv:1904.09751](https://arxiv.org/abs/1904.09751)
