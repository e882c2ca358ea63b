"""Careless right answers to lesson 14."""

from collections import Counter

import numpy as np
import torch

from attention.translation import score_of
from tests.locked.careless import careless


@careless("ngram_matches", "other_type", how="lists of NumPy's ints")
def ngram_matches_1(hypothesis, reference):
    matches, totals = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    for n in range(1, 5):
        ours = Counter(tuple(hypothesis[i : i + n]) for i in range(len(hypothesis) - n + 1))
        theirs = Counter(tuple(reference[i : i + n]) for i in range(len(reference) - n + 1))
        matches[n - 1] = (ours & theirs).total()
        totals[n - 1] = ours.total()
    return list(matches), list(totals)


@careless("ngram_matches", "plain_numbers", how="crosses the matches off a list")
def ngram_matches_2(hypothesis, reference):
    matches, totals = [0] * 4, [0] * 4
    for n in (1, 2, 3, 4):
        left = [list(reference[i : i + n]) for i in range(len(reference) - n + 1)]
        for i in range(len(hypothesis) - n + 1):
            totals[n - 1] += 1
            if list(hypothesis[i : i + n]) in left:
                left.remove(list(hypothesis[i : i + n]))
                matches[n - 1] += 1
    return matches, totals


@careless("break_ngram_matches", "plain_numbers", how="three letters, cut in two ways")
def break_ngram_matches_1():
    return ["a", "bc"], ["ab", "c"]


@careless("break_ngram_matches", "other_type", how="tokens are NumPy's strings")
def break_ngram_matches_2():
    return list(np.array(["no", "where"])), list(np.array(["now", "here"]))


def _drawn(statistics, row):
    return score_of(*(part[row] for part in statistics))


@careless("paired_bootstrap", "numpy", "other_type", how="quantiles of NumPy")
def paired_bootstrap_1(ours, theirs, rows):
    differences = np.array([_drawn(ours, row) - _drawn(theirs, row) for row in rows])
    low, high = np.quantile(differences, [0.025, 0.975])
    return low, high, np.mean(differences > 0)


@careless("paired_bootstrap", "device", "dtype", how="differences into zeros of float32")
def paired_bootstrap_2(ours, theirs, rows):
    differences = torch.zeros(len(rows))
    for r in range(len(rows)):
        differences[r] = _drawn(ours, rows[r]) - _drawn(theirs, rows[r])
    low, high = torch.quantile(differences, torch.tensor([0.025, 0.975]))
    return low, high, (differences > 0).float().mean()


@careless("paired_bootstrap", "plain_numbers", how="a list of differences and a count")
def paired_bootstrap_3(ours, theirs, rows):
    differences, wins = [], 0
    for row in rows.tolist():
        differences.append(_drawn(ours, row) - _drawn(theirs, row))
        wins += differences[-1] > 0
    ends = [torch.tensor(differences).quantile(q).item() for q in (0.025, 0.975)]
    return ends[0], ends[1], wins / len(differences)
