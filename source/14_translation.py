# %% [markdown]
# # 14 · Is it good?
#
# In lesson 13 a translator learned to write, in several ways. Which of them is best? To say that,
# one has to compare what was written with what was wanted, and to know how far luck reaches.
#
# **After this lesson** you can
# - count matching **n-grams**, and say why the counts are clipped,
# - compute **BLEU** from counts, equal to sacrebleu, and say what it does and does not measure,
# - say how far the score is **noise**, and compare two systems by a **paired bootstrap**,
# - show when a wider beam writes better, and when only more probable, translations.
#
# **Time** 55 minutes · **Points** 6 · **GPU** not needed · **You need** lessons 10 and 13

# %%
import math
import re
from collections import Counter

import sacrebleu
import torch

from attention.decoding import beam_search, greedy
from attention.provided import plots, translators
from attention.transformer import Transformer
from autograder import check

torch.set_num_threads(1)  # matrices as small as those of this lesson are faster on one core
SHARP = "numbers"  # the name of the trained translator that is looked at

# %% [markdown]
# ## What fails without this idea
# So far a number was translated without error, or not:

# %%
wanted = "zweihunderteinunddreißig"
for written in ("zweihunderteinunddreisig", "zweihundertdreißig", "vierzig", ""):
    print(f"{written or '(nothing)':<26} without error: {written == wanted}")

# %% [markdown]
# Four errors, and all of them count the same: a slip of the pen, a lost word, another number,
# silence. So a translator that gets better and better may stay at 0 for a long time. For sentences
# it is worse: there is more than one good translation of most of them, and hardly any is exactly
# the one that was written down.
#
# ## The idea
# **BLEU** counts pieces: which **n-grams**, runs of n tokens for n = 1 … 4, of the translation, the
# *hypothesis*, stand in the *reference* too? More common pieces, and longer ones, mean a better
# translation.
#
# | name | shape | what it is |
# |---|---|---|
# | `matches`, `totals` | `(N, 4)` | n-grams of each hypothesis that match, and all of them |
# | `lengths` | `(N,)` | tokens of each hypothesis |
# | `reference_lengths` | `(N,)` | tokens of each reference |
#
# ## Pieces that match, by hand

# %%
hypothesis = ["the", "cat", "the", "cat", "on", "the", "mat"]
reference = ["the", "cat", "is", "on", "the", "mat"]
for word in ("the", "cat", "on", "mat"):
    print(f"{word}: {hypothesis.count(word)} times, in the reference {reference.count(word)} times")

# %% [markdown]
# “the” stands three times in the hypothesis and twice in the reference, so two of them count. This
# is **clipping**. Without it, every word of “the the the” would count as right. Here 5 of the 7
# words match.
#
# ### Exercise 14.1 · `ngram_matches`
# ●●○ medium · 12 minutes · 2 points
#
# Count, for n = 1 to 4, the n-grams of the hypothesis, and how many of them match.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A `Counter` of all n-grams of each side. For each n-gram, the smaller of the two counts matches.
# </details>
# <details><summary>Hint 2 · all runs of n</summary>
#
# An n-gram as a tuple can be counted. For bigrams, `zip(tokens, tokens[1:])` yields them all, and
# none if there are fewer than two tokens. n lists are zipped with `zip(*lists)`. Or take
# `tuple(tokens[i:i + n])` for every start i: where is the last one?
# </details>
# <details><summary>Hint 3 · two Counters</summary>
#
# `&` of two Counters takes the smaller count of each, and `total()` adds all counts up.
# </details>

# %% exercise="ngram_matches"
from attention.translation import ngram_matches

# %% check="ngram_matches" points=2
check.ngram_matches(ngram_matches)

# %% [markdown]
# ### Exercise 14.2 · `break_ngram_matches` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# Below is a classmate's answer to the exercise before. It is right on the cat and the mat, and on
# many other sentences. Find a hypothesis and a reference for which it counts wrong.
#
# <details><summary>Hint 1 · where to look</summary>
#
# What becomes of an n-gram here, and what becomes of it in your answer? Which of the two forgets
# something?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# Two bigrams are different, yet come out as the same string. What could they be?
# </details>

# %% broken="glues_the_tokens"
from autograder.mistakes.translation import glues_the_tokens

# %% exercise="break_ngram_matches"
from attention.translation import break_ngram_matches

# %% check="break_ngram_matches" points=1
check.break_ngram_matches(break_ngram_matches)

# %% [markdown]
# For each n, matches divided by totals is the **precision**. From the counts to a score, there are
# four decisions:
# - **Pool**: add matches and totals over the whole corpus, then divide. Not the mean of sentences.
# - **Geometric mean** of the four precisions: a poor one cannot be made up for by a good one.
# - **Brevity penalty**: precision alone would reward saying only what is certain. If the hypotheses
#   have fewer tokens in all, $c$, than the references, $r$, multiply by $\exp(1 - r/c)$.
# - **Smoothing**, where no n-gram of some order matches: the mean would be 0. sacrebleu's default,
#   “exp”, gives the first such order half a match, the second a quarter, and so on.
#
# $$\mathrm{BLEU} = 100 \cdot \min\left(1,\ e^{1 - r/c}\right) \cdot
# \left(\prod_{n=1}^{4} \frac{m_n}{t_n}\right)^{1/4}$$
#
# $m_n$ and $t_n$ are the matches and totals of order n, added over the corpus; where $m_n$ is 0,
# the smoothed value stands for it.
#
# ### Exercise 14.3 · `bleu`
# ●●● hard · 20 minutes · 3 points
#
# The statistics of N sentences come as tensors, so pooling is one sum. Two cases give 0: nothing
# matches at all, and some order has no n-grams, since all hypotheses are too short.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Pool first, then deal with the two cases, then precisions, brevity and mean. A geometric mean is
# exp of the mean of the logarithms.
# </details>
# <details><summary>Hint 2 · the halvings</summary>
#
# Walk through the four orders and remember how many had no match so far. With matches (5, 2, 0, 0)
# the numerators are 5, 2, 1/2, 1/4.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# sums of matches and totals over the sentences, and of both lengths
# return 0 in the two cases
# for each order: matches, or the next halving; divided by totals
# brevity: 1, or less if c is less than r
# 100 · brevity · geometric mean
# ```
# </details>
# <details><summary>Hint 4 · ZeroDivisionError</summary>
#
# If every hypothesis has fewer than four tokens, totals of some order are 0; if all are empty, c is
# 0 too. Which case should come before any division?
# </details>

# %% exercise="bleu"
from attention.translation import bleu

# %% check="bleu" points=3
check.bleu(bleu)

# %% given="corpus_statistics"
from attention.translation import corpus_statistics

# %% [markdown]
# What are the tokens of a German number? Words would be too long, since a number is one word;
# letters would be too short. Let us cut at the parts that numbers are made of. BLEU depends on this
# choice. That is why sacrebleu prints a **signature** with every score: scores that are compared
# must have the same signature (Post, 2018). Ours says `tok:none`, since we cut ourselves: so we
# must also say how.

# %%
parts = "zwanzig dreißig hundert tausend sieben sechs zwölf eins fünf vier drei zwei acht neun zehn"
parts += " null sech sieb ein elf und zig"
PIECE = re.compile("|".join([*parts.split(), "."]))


def statistics_of(texts, references):
    return corpus_statistics(
        *([PIECE.findall(text) for text in one] for one in (texts, references))
    )


print(*PIECE.findall("zweihunderteinunddreißig"))
print(*PIECE.findall("zweihunderteinunddreizig"))

# %% [markdown]
# The translators are those of lesson 13: an *early* one, trained for 60 steps and often in doubt,
# and the *sharp* one, which ships with the course. Here is what the early one writes greedily, and
# its score.

# %% demo=true
sharp, corpus = translators.trained(SHARP)
torch.manual_seed(translators.SEED)
sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
early = Transformer(*sizes, **translators.SMALL)
losses = translators.train(early, corpus.batches(translators.BATCH, 60, translators.SEED), 60)
each = 20 if len(losses) == 60 else 2  # while the notebook is graded, training is cut short
groups = corpus.test_by_digits(each)
pairs = [pair for digits, some in groups.items() if digits > 2 for pair in some]
source, wanted = corpus.batch(pairs).source, [pair[2] for pair in pairs]


def texts_of(ids):
    return ["".join(corpus.target_vocabulary.decode(row)) for row in ids]


found = texts_of(greedy(early, source, max_length=80))
for row in (0, len(pairs) // 2):
    print(f"wanted  {wanted[row]}\nwritten {found[row]}")

# %% demo=true
statistics = statistics_of(found, wanted)
ours = bleu(*statistics)
metric = sacrebleu.metrics.BLEU(tokenize="none")
spaced = [[" ".join(PIECE.findall(text)) for text in one] for one in (found, wanted)]
theirs = metric.corpus_score(spaced[0], [spaced[1]]).score
print(f"early translator, greedy: {ours:.10f}")
print(f"sacrebleu:                {theirs:.10f}   difference {abs(ours - theirs):.0e}")
print("signature:", metric.get_signature())
draw = torch.Generator().manual_seed(0)
again = [torch.randint(len(pairs), (len(pairs),), generator=draw) for _ in range(500)]
scores = torch.tensor([bleu(*(part[rows] for part in statistics)) for rows in again])
low, high = scores.quantile(torch.tensor([0.025, 0.975])).tolist()
print(f"500 times {len(pairs)} sentences drawn from these: 95 % between {low:.1f} and {high:.1f}")

# %% [markdown]
# The last line is the noise of the measurement, by the **bootstrap**: had the test set been another
# one of the same size, the score could as well be anywhere in that range. The statistics of a
# sentence are counted once, so 500 such scores take no time. This is the range for *one* system.
# Two systems on the same sentences share much of this luck, so a smaller difference can be real:
# draw the same rows for both, and look at the range of the difference. So we do below.
#
# ## A better search
# Now the early translator, with wider and wider beams. A wider beam finds more probable sentences.
#
# ### Predict first
# Will they also be better ones? Does the length penalty matter?

# %% demo=true
widths = (1, 2, 4, 8, 16, 32)
alphas = (0.0, 0.6, 1.0)
quality, sizes_found, counted = {}, {}, {}
print(f"{'beam':>4}  {'alpha':>5}  {'log-prob.':>9}  {'letters':>7}  {'BLEU':>5}")
for alpha in alphas:
    label = f"alpha = {alpha}"
    quality[label], sizes_found[label] = [], []
    for K in widths:
        ids, totals = beam_search(early, source, K, alpha, max_length=80, return_scores=True)
        size = sum(map(len, texts_of(ids))) / len(ids)
        counted[alpha, K] = statistics_of(texts_of(ids), wanted)
        quality[label].append(bleu(*counted[alpha, K]))
        sizes_found[label].append(size)
        row = f"{totals.mean():9.2f}  {size:7.1f}  {quality[label][-1]:5.1f}"
        print(f"{K:4}  {alpha:5}  {row}")
for narrow, wide in ((1, 4), (4, 32)):
    both = [[bleu(*(x[rows] for x in counted[1.0, K])) for rows in again] for K in (narrow, wide)]
    gain = torch.tensor(both[1]) - torch.tensor(both[0])
    low, high = gain.quantile(torch.tensor([0.025, 0.975])).tolist()
    print(f"alpha 1.0, beam {wide} less beam {narrow}: 95 % between {low:+.1f} and {high:+.1f}")
axes = plots.panels(columns=2, width=4.4, height=3.0, share=False)
plots.lines(widths, quality, axes[0], title="BLEU", xlabel="beam", log=True)
plots.lines(widths, sizes_found, axes[1], title="letters written", xlabel="beam", log=True)
axes[1].axhline(sum(map(len, wanted)) / len(wanted), color=plots.GREY, linestyle="--")
axes[0].get_legend().remove()
for ax in axes:
    ax.set_xticks(widths, widths)
    ax.minorticks_off()

# %% [markdown]
# *Left: BLEU against the width of the beam, for three length penalties. Right: the mean number of
# letters written; dashed, that of the references.* The first steps, from 1 to 4, help a lot. Then
# without a penalty BLEU falls, although the search does what it was asked to do: each row of the
# table with alpha = 0 is more probable than the one above it. The sentences become shorter and
# shorter. So the errors of a narrow beam *hide* an error of the model, which thinks too well of
# short sentences. The penalty mends the symptom: with alpha = 1 a wide beam does no harm. The last
# two lines draw the same sentences for both widths, 500 times. From 1 to 4 the whole range of the
# difference lies above 0; from 4 to 32 it has 0 inside, so no gain is shown.
#
# Does the same hold for the sharp model, and for long and short numbers?

# %% demo=true
for name, model in (("early", early), ("sharp", sharp)):
    for K in (1, 5):
        found = texts_of(beam_search(model, source, K, alpha=1.0, max_length=80))
        share = sum(one == two for one, two in zip(found, wanted, strict=True)) / len(found)
        score = bleu(*statistics_of(found, wanted))
        print(f"{name}, beam {K}: BLEU {score:5.1f}   without error {share:.2f}")
by_length = {"greedy": [], "beam of 5": []}
for some in list(groups.values())[2:]:
    inputs, truth = corpus.batch(some).source, [pair[2] for pair in some]
    for label, K in (("greedy", 1), ("beam of 5", 5)):
        found = texts_of(beam_search(early, inputs, K, alpha=1.0, max_length=80))
        by_length[label].append(bleu(*statistics_of(found, truth)))
ax = plots.lines(list(groups)[2:], by_length, xlabel="digits of the number", ylabel="BLEU")
_ = ax.set(ylim=(0, 100), xticks=list(groups)[2:])

# %% [markdown]
# *BLEU of the early translator against the number of digits, greedy and with a beam of 5.* Longer
# numbers are translated much worse, and there the search helps more: there are more places where a
# greedy choice can go wrong. Numbers of one or two digits are left out. With fewer than four pieces
# they have no 4-grams, and BLEU would be 0 however good they are: it is a measure for whole
# corpora, not for short sentences. The sharp translator is certain, and leaves a search nothing to
# do.
#
# Look at the other measure, too. With the beam the early translator has a much better BLEU, and
# *fewer* numbers without error. Two measures need not agree, so say before the experiment which
# one counts. BLEU does not know what matters: *siebenhundert* for *neunhundert* is one wrong piece,
# while a typing error that breaks a piece into letters costs several. Yet if the number is a sum of
# money, the first error is the worse one. Numbers can be checked exactly; for most texts, BLEU or a
# measure like it is what there is. The Transformer of 2017 had 28.4 for English to German and 41.8
# for English to French on the news of WMT 2014, with a beam of 4 and alpha = 0.6 (the large model;
# computed without sacrebleu).
#
# ## Summary
# BLEU pools clipped n-gram counts over a corpus; it is useful, and no more than a count. A score
# has noise, and two systems on the same sentences are compared by drawing the same sentences for
# both. What is most probable is not always best: a wide beam without a length penalty finds more
# probable translations, and worse ones.
#
# **Next** In lesson 15 the encoder goes: a model that only continues texts, and what it can do.
#
# **References**
# - K. Papineni et al. (2002). *BLEU: a method for automatic evaluation of machine translation.*
#   [aclanthology.org/P02-1040](https://aclanthology.org/P02-1040/)
# - M. Post (2018). *A call for clarity in reporting BLEU scores.*
#   [arXiv:1804.08771](https://arxiv.org/abs/1804.08771)
# - A. Vaswani et al. (2017). *Attention is all you need.*
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
