"""Wrong and right answers to the exercises of lesson 14."""

import math
from collections import Counter

import numpy as np
import torch

from attention.translation import score_of
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _grams(tokens, n):
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def _count(hypothesis, reference, matched, total=len, orders=(1, 2, 3, 4), grams=_grams):
    """Matches and totals for each n, with functions of the n-grams of both."""
    pairs = [(grams(hypothesis, n), grams(reference, n)) for n in orders]
    return [matched(*pair) for pair in pairs], [total(pair[0]) for pair in pairs]


def _clipped(ours, theirs):
    return sum(min(n, theirs.count(gram)) for gram, n in Counter(ours).items())


@mistake(
    "ngram_matches",
    hint="Glued together, ab + c and a + bc are the same. Keep the tokens apart, in a tuple.",
)
def glues_the_tokens(hypothesis, reference):
    hits, counted = [0, 0, 0, 0], [0, 0, 0, 0]
    for n in (1, 2, 3, 4):
        left = ["".join(reference[i : i + n]) for i in range(len(reference) - n + 1)]
        for i in range(len(hypothesis) - n + 1):
            counted[n - 1] += 1
            gram = "".join(hypothesis[i : i + n])
            if gram in left:
                left.remove(gram)  # it may match only once
                hits[n - 1] += 1
    return hits, counted


@alternative("ngram_matches")
def crosses_them_off(hypothesis, reference):
    matches, totals = [], []
    for n in (1, 2, 3, 4):
        left = [tuple(reference[i : i + n]) for i in range(len(reference) - n + 1)]
        found = 0
        for i in range(len(hypothesis) - n + 1):
            gram = tuple(hypothesis[i : i + n])
            if gram in left:
                left.remove(gram)
                found += 1
        matches.append(found)
        totals.append(max(len(hypothesis) - n + 1, 0))
    return matches, totals


@alternative("ngram_matches")
def counts_in_a_dict(hypothesis, reference):
    result = []
    for n in range(1, 5):
        counts = {}
        for tokens, sign in ((hypothesis, 0), (reference, 1)):
            for i in range(len(tokens) - n + 1):
                counts.setdefault("\t".join(tokens[i : i + n]), [0, 0])[sign] += 1
        result.append((sum(min(pair) for pair in counts.values()), max(0, len(hypothesis) + 1 - n)))
    return tuple(list(column) for column in zip(*result, strict=True))


@careless("ngram_matches")
def takes_the_hypothesis_apart(hypothesis, reference):
    left = [Counter(_grams(reference, n)) for n in (1, 2, 3, 4)]
    matches, totals = [0] * 4, [0] * 4
    while hypothesis:
        for n in range(min(4, len(hypothesis))):
            gram = tuple(hypothesis[: n + 1])
            totals[n] += 1
            matches[n] += left[n][gram] > 0
            left[n][gram] -= 1
        hypothesis.pop(0)
    return matches, totals


@careless("ngram_matches")
def marks_the_end_in_both_lists(hypothesis, reference):
    def within(tokens, n):
        return [gram for gram in _grams(tokens, n) if None not in gram]

    hypothesis += [None] * 3
    reference += [None] * 3
    return _count(hypothesis, reference, _clipped, grams=within)


def _brevity(c, r):
    return 1.0 if c >= r else (math.exp(1 - r / c) if c else 0.0)


def _mean(matches, totals):
    """The geometric mean of the precisions, from two lists of four."""
    if not all(matches):
        return 0.0
    return math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / 4)


@mistake(
    "break_ngram_matches",
    hint="Every token is one letter, so glued together they can still be told apart. Which two "
    "lists of longer tokens spell the same?",
    where=lambda hypothesis, reference: (
        len(hypothesis) > 1
        and len(reference) > 1
        and all(len(token) == 1 for token in hypothesis + reference)
    ),
)
def letters_only():
    return list("abca"), list("abcb")


@mistake(
    "break_ngram_matches",
    hint="Both sentences are the same, so everything matches, glued or not.",
    where=lambda hypothesis, reference: hypothesis == reference,
)
def the_same_sentence():
    return ["ein", "und", "zwanzig"], ["ein", "und", "zwanzig"]


@mistake(
    "break_ngram_matches",
    hint="One of the sentences has fewer than two tokens: there is nothing to glue.",
    where=lambda hypothesis, reference: min(len(hypothesis), len(reference)) < 2,
)
def too_short():
    return ["einund", "zwanzig"], ["zwanzig"]


@mistake(
    "break_ngram_matches",
    hint="The two sentences spell nothing in common: a false match needs runs of as many tokens "
    "that spell the same.",
    where=lambda hypothesis, reference: not set("".join(hypothesis)) & set("".join(reference)),
)
def nothing_in_common():
    return ["ab", "cd"], ["ef", "gh"]


@alternative("break_ngram_matches")
def two_letters_and_one():
    return ["ab", "c"], ["a", "bc"]


@alternative("break_ngram_matches")
def within_longer_sentences():
    return ["so", "he", "at", "e", "it"], ["so", "heat", "e", "", "it", "he", "ate"]


@mistake(
    "bleu",
    hint="This is the mean of the sentences' BLEU. Add the statistics of all sentences first, and "
    "compute one BLEU of the sums.",
    earns=("brevity", "no match"),
)
def averages_sentences(matches, totals, lengths, reference_lengths):
    scores = [
        _brevity(c, r) * _mean(m, t)
        for m, t, c, r in zip(
            matches.tolist(), totals.tolist(), lengths.tolist(), reference_lengths.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    return 100 * sum(scores) / len(scores)


@alternative("bleu")
def works_with_logarithms(matches, totals, lengths, reference_lengths):
    c, r = int(lengths.sum()), int(reference_lengths.sum())
    log_score = min(0.0, 1 - r / c) if c else 0.0
    for m, t in zip(matches.sum(0).tolist(), totals.sum(0).tolist(), strict=True):
        if m == 0:
            return 0.0
        log_score += (math.log(m) - math.log(t)) / 4
    return 100 * math.exp(log_score)


@alternative("bleu")
def stays_in_tensors(matches, totals, lengths, reference_lengths):
    m, t = matches.sum(0).double(), totals.sum(0).double()
    c, r = lengths.sum().double(), reference_lengths.sum().double()
    score = (m / t).prod() ** 0.25 * (1 - r / c).clamp(max=0).exp()
    return torch.where(m.all(), 100 * score, torch.zeros_like(score))


@careless("bleu")
def adds_up_on_the_cpu(matches, totals, lengths, reference_lengths):
    m, t = torch.zeros(4, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)
    for one, other in zip(matches, totals, strict=True):
        m += one
        t += other
    found = _mean(m.tolist(), t.tolist())
    return 100 * _brevity(int(lengths.sum()), int(reference_lengths.sum())) * found


@careless("bleu")
def adds_up_in_numpy(*statistics):
    m, t, c, r = (part.numpy().sum(0).tolist() for part in statistics)
    return 100 * _brevity(c, r) * _mean(m, t)


def _scores(system, rows):
    return torch.tensor([score_of(*(part[row] for part in system)) for row in rows]).double()


def _ends(values, share=0.025):
    """The two quantiles that leave out ``share`` at each end."""
    return values.quantile(torch.tensor([share, 1 - share]).double()).tolist()


def _told(differences, share=0.025):
    return *_ends(differences, share), (differences > 0).double().mean().item()


@alternative("paired_bootstrap")
def counts_how_often(ours, theirs, rows):
    N = len(ours[0])
    weights = torch.stack([torch.bincount(row, minlength=N) for row in rows])  # (R, N)
    scores = []
    for system in (ours, theirs):
        pooled = [(weights @ part.reshape(N, -1).to(weights.dtype)) for part in system]
        rows_of = zip(*pooled, strict=True)
        scores.append([score_of(*(part.unsqueeze(0) for part in one)) for one in rows_of])
    return _told(torch.tensor(scores[0]).double() - torch.tensor(scores[1]).double())


@alternative("paired_bootstrap")
def sorts_by_hand(ours, theirs, rows):
    found, wins = [], 0
    for row in rows.tolist():
        one = score_of(*(part[row] for part in ours))
        other = score_of(*(part[row] for part in theirs))
        found.append(one - other)
        wins += one > other
    found.sort()
    ends = []
    for share in (0.025, 0.975):
        at = share * (len(found) - 1)
        below = math.floor(at)
        above = min(below + 1, len(found) - 1)
        ends.append(found[below] + (at - below) * (found[above] - found[below]))
    return [*ends, wins / len(found)]


@alternative("paired_bootstrap")
def with_numpy(ours, theirs, rows):
    differences = [
        score_of(*(part[row] for part in ours)) - score_of(*(part[row] for part in theirs))
        for row in rows
    ]
    ends = np.percentile(differences, [2.5, 97.5])
    return float(ends[0]), float(ends[1]), float(np.mean(np.array(differences) > 0))


@careless("paired_bootstrap")
def counts_the_draws_on_the_cpu(ours, theirs, rows):
    times = torch.zeros(len(rows), len(ours[0]), dtype=torch.int64)
    for r, row in enumerate(rows):
        for sentence in row.tolist():
            times[r, sentence] += 1
    scores = [
        [score_of(*((part.transpose(0, -1) * n).transpose(0, -1) for part in one)) for n in times]
        for one in (ours, theirs)
    ]
    return _told(torch.tensor(scores[0]).double() - torch.tensor(scores[1]).double())


@careless("paired_bootstrap")
def picks_in_numpy(ours, theirs, rows):
    picks = rows.numpy()
    return _told(_scores(ours, picks) - _scores(theirs, picks))


EQUIVALENT = {
    "ngram_matches: with the two items of a pair exchanged: matches, totals = ([], [])": (
        "both are empty lists"
    ),
    "ngram_matches: without `strict` in one call of `zip`: ours = Counter(zip(*(hypothesis[i:] for "
    "i in range(n))))": "False is the default",
    "ngram_matches: without `strict` in one call of `zip`: theirs = Counter(zip(*(reference[i:] "
    "for i in range(n))))": "False is the default",
    "bleu: with one call of `double` left out: matches, totals = (matches.sum(dim=0), "
    "totals.sum(dim=0).double())": "one double makes doubles of both",
    "bleu: with one call of `double` left out: matches, totals = (matches.sum(dim=0).double(), "
    "totals.sum(dim=0))": "one double makes doubles of both",
    "bleu: with one call of `item` left out: c, r = (lengths.sum(), "
    "reference_lengths.sum().item())": "a tensor without axes is as good as a number",
    "bleu: with one call of `item` left out: c, r = (lengths.sum().item(), "
    "reference_lengths.sum())": "a tensor without axes is as good as a number",
    "bleu: with `totals` once where `matches` belongs: if not totals.all(): return 0.0": (
        "the logarithm of 0 is -inf, and exp of that 0: this is the other way to write it"
    ),
    "bleu: with one call of `item` left out: return 100 * brevity * (matches / "
    "totals).log().mean().exp()": "the text allows a tensor",
    "paired_bootstrap: with one call of `tolist` left out: low, high = differences.quantile("
    "torch.tensor([0.025, 0.975]))": "a tensor of one number is as good as a number",
    "paired_bootstrap: with one call of `item` left out: return (low, high, (differences > 0)"
    ".double().mean())": "a tensor of one number is as good as a number",
}
