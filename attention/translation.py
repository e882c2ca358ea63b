"""Lesson 14: from sentences to a score."""

import math
from collections import Counter

import sacrebleu
import torch


def ngram_matches(hypothesis, reference):
    """Count the n-grams of a sentence, for n = 1 … 4, and how many of them the reference has too.

    hypothesis, reference  lists of tokens: strings of any kind, so a token may hold a space
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
    c, than the references, r; otherwise 1. If no n-gram of some order matches, BLEU is 0.

    Source: Papineni et al. (2002), section 2.3; Post (2018).

    >>> one = torch.tensor([[4, 3, 2, 1]])
    >>> round(bleu(one, one, torch.tensor([4]), torch.tensor([5])), 2)
    77.88
    """
    # exercise: about 5 lines
    matches, totals = matches.sum(dim=0).double(), totals.sum(dim=0).double()  # (4,) each
    if not matches.all():
        return 0.0
    c, r = lengths.sum().item(), reference_lengths.sum().item()
    brevity = min(1.0, math.exp(1 - r / c))
    return 100 * brevity * (matches / totals).log().mean().exp().item()


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


def score_of(matches, totals, lengths, reference_lengths):
    """The BLEU of a test set as sacrebleu computes it, a float, with the arguments of `bleu`.

    It is that of your `bleu`, unless no n-gram of some order matches: sacrebleu then counts half a
    match for the first such order, a quarter for the second, and so on, which it calls smoothing.
    """
    counts = matches.sum(dim=0).tolist(), totals.sum(dim=0).tolist()
    sizes = lengths.sum().item(), reference_lengths.sum().item()
    return sacrebleu.BLEU.compute_bleu(*counts, *sizes, smooth_method="exp").score


def paired_bootstrap(ours, theirs, rows):
    """Compare two systems on test sets that are drawn from the same N sentences.

    ours, theirs  the statistics of each system, tuples (matches (N, 4), totals (N, 4),
                  lengths (N,), reference_lengths (N,)), as `score_of` takes them
    rows          (R, N)  ints: row r says which sentences are in test set r, some more than once
    returns       three numbers: low and high, between which the middle 95 % of the R differences
                  score of ours - score of theirs lie, by `torch.quantile`; and the share of the
                  test sets in which ours has the higher score

    Source: Koehn (2004), sections 3 and 4.

    >>> good, poor = torch.tensor([[4, 3, 2, 1]]), torch.tensor([[2, 1, 0, 0]])
    >>> size = torch.tensor([4])
    >>> rows = torch.zeros(3, 1, dtype=torch.int64)
    >>> low, high, wins = paired_bootstrap((good, good, size, size), (poor, good, size, size), rows)
    >>> print(f"{low:.2f} {high:.2f} {wins:.0f}")
    68.05 68.05 1
    """
    # exercise: about 6 lines
    differences = []
    for drawn in rows:
        scores = [score_of(*(part[drawn] for part in system)) for system in (ours, theirs)]
        differences.append(scores[0] - scores[1])
    differences = torch.tensor(differences)  # (R,)
    low, high = differences.quantile(torch.tensor([0.025, 0.975])).tolist()
    return low, high, (differences > 0).double().mean().item()


# Inputs on which a wrong answer shows


def break_ngram_matches():
    """Return an input for which `glues_the_tokens` counts wrongly.

    returns  a tuple (hypothesis, reference) of two lists of tokens, which are strings
    """
    return ["ab", "c"], ["a", "bc"]
