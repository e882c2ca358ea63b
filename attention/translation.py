"""Lesson 14: from sentences to a score."""

import math
from collections import Counter

import torch


def ngram_matches(hypothesis, reference):
    """Count the n-grams of a sentence, for n = 1 … 4, and how many of them the reference has too.

    hypothesis, reference  lists of tokens
    returns                two lists of four ints: matches and totals. An n-gram matches at most as
                           often as it stands in the reference.

    Source: Papineni et al. (2002), section 2.1.

    >>> ngram_matches("the the the cat".split(), "the cat sat".split())
    ([2, 1, 0, 0], [4, 3, 2, 1])
    """
    # exercise: about 6 lines
    matches, totals = [], []
    for n in range(1, 5):
        ours = Counter(zip(*(hypothesis[i:] for i in range(n)), strict=False))
        theirs = Counter(zip(*(reference[i:] for i in range(n)), strict=False))
        matches.append((ours & theirs).total())
        totals.append(ours.total())
    return matches, totals


def bleu(matches, totals, lengths, reference_lengths):
    """The BLEU of a corpus, from 0 to 100, from the statistics of its N sentences.

    matches, totals             (N, 4)  ints, for each sentence as from `ngram_matches`
    lengths, reference_lengths  (N,)    ints, the numbers of tokens
    returns                     a float, or a tensor of one number

    All are added up over the corpus first. Then it is 100 · brevity · the geometric mean of the
    four precisions matches / totals. Brevity is exp(1 - r / c) if the hypotheses have fewer tokens,
    c, than the references, r; otherwise 1. Where an order has totals but no match, the first such
    precision counts as 1 / (2 · totals), the second as 1 / (4 · totals), and so on: sacrebleu's
    smoothing "exp". Without any match, or without n-grams of some order, BLEU is 0.

    Source: Papineni et al. (2002), section 2.3; Post (2018).

    >>> one = torch.tensor([[4, 3, 2, 1]])
    >>> round(bleu(one, one, torch.tensor([4]), torch.tensor([5])), 2)
    77.88
    """
    # exercise: about 8 lines
    matches, totals = matches.sum(dim=0).double(), totals.sum(dim=0).double()  # (4,) each
    if not matches.any() or not totals.all():
        return 0.0
    c, r = lengths.sum().item(), reference_lengths.sum().item()
    misses = (matches == 0).cumsum(dim=0)  # (4,): 1 at the first order without a match
    precisions = torch.where(matches > 0, matches, 0.5**misses) / totals  # (4,)
    brevity = min(1.0, math.exp(1 - r / c))
    return 100 * brevity * precisions.log().mean().exp().item()


def corpus_statistics(hypotheses, references):
    """Collect what `bleu` adds up, once: matches and totals (N, 4), and two lengths (N,).

    hypotheses, references  N strings each, with spaces between the tokens, or N lists of tokens
    """
    pairs = [
        [text.split() if isinstance(text, str) else text for text in pair]
        for pair in zip(hypotheses, references, strict=True)
    ]
    counts = [ngram_matches(hypothesis, reference) for hypothesis, reference in pairs]
    counts = torch.tensor(counts, dtype=torch.int64).view(-1, 2, 4)  # (N, 2, 4)
    lengths = torch.tensor([list(map(len, pair)) for pair in pairs], dtype=torch.int64).view(-1, 2)
    return counts[:, 0], counts[:, 1], lengths[:, 0], lengths[:, 1]


def corpus_bleu(hypotheses, references):
    """The BLEU, 0 to 100, of N hypotheses against one reference each: strings or lists of tokens.

    It is that of `sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none")`.

    >>> round(corpus_bleu(["a b c d e"], ["a b c d f"]), 2)
    66.87
    """
    return bleu(*corpus_statistics(hypotheses, references))


# Inputs on which a wrong answer shows


def break_ngram_matches():
    """An input on which `glues_the_tokens` counts other matches than `ngram_matches`.

    returns  a tuple (hypothesis, reference) of two lists of tokens, which are strings
    """
    return ["ab", "c"], ["a", "bc"]
