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
    hint="The matches are not clipped: a hypothesis that repeats one right word gets full marks. "
    "An n-gram matches at most as often as it stands in the reference.",
)
def does_not_clip(hypothesis, reference):
    return _count(hypothesis, reference, lambda ours, theirs: sum(g in theirs for g in ours))


@mistake(
    "ngram_matches",
    hint="Of the two counts of an n-gram that stands in both, the larger one is taken. It is the "
    "smaller one.",
)
def takes_the_larger_count(hypothesis, reference):
    def larger(ours, theirs):
        return sum(max(ours.count(g), theirs.count(g)) for g in set(ours) & set(theirs))

    return _count(hypothesis, reference, larger)


@mistake(
    "ngram_matches",
    hint="Each n-gram counts once, however often it stands in both. Count occurrences, not kinds.",
)
def counts_kinds(hypothesis, reference):
    return _count(hypothesis, reference, lambda ours, theirs: len(set(ours) & set(theirs)))


@mistake(
    "ngram_matches",
    hint="Matches and totals both count each n-gram once. Count occurrences, not kinds.",
)
def counts_kinds_only(hypothesis, reference):
    kinds = lambda ours, theirs: len(set(ours) & set(theirs))  # noqa: E731
    return _count(hypothesis, reference, kinds, lambda ours: len(set(ours)))


@mistake(
    "ngram_matches",
    hint="Only n-grams at the same place count. They match wherever they stand in the reference.",
)
def compares_places(hypothesis, reference):
    def equal(ours, theirs):
        return sum(a == b for a, b in zip(ours, theirs, strict=False))

    return _count(hypothesis, reference, equal)


@mistake(
    "ngram_matches",
    hint="The totals are those of the reference. BLEU asks for precision: what share of the "
    "*hypothesis* is right.",
)
def counts_the_references_totals(hypothesis, reference):
    matches, _ = _count(hypothesis, reference, _clipped)
    return matches, _count(reference, hypothesis, _clipped)[1]


@mistake(
    "ngram_matches",
    hint="Only three orders are counted: range(1, 4) ends before 4.",
)
def stops_at_three(hypothesis, reference):
    return _count(hypothesis, reference, _clipped, orders=(1, 2, 3))


@mistake(
    "ngram_matches",
    hint="The n-grams do not overlap: “a b c” has two bigrams, (a, b) and (b, c).",
)
def jumps(hypothesis, reference):
    def apart(tokens, n):
        return _grams(tokens, n)[::n]

    return _count(hypothesis, reference, _clipped, grams=apart)


@mistake(
    "ngram_matches",
    hint="At the end there are n-grams of fewer than n tokens. A sentence of T tokens has T - n + "
    "1 n-grams, or none.",
)
def runs_over_the_end(hypothesis, reference):
    def ragged(tokens, n):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens))]

    return _count(hypothesis, reference, _clipped, grams=ragged)


@mistake(
    "ngram_matches",
    hint="The last n-gram is missing: range stops before its end. Of T tokens the last begins at "
    "T - n.",
)
def misses_the_last(hypothesis, reference):
    def short(tokens, n):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n)]

    return _count(hypothesis, reference, _clipped, grams=short)


@mistake(
    "ngram_matches",
    hint="The order within an n-gram is lost: “a b” and “b a” are two bigrams.",
)
def forgets_the_order(hypothesis, reference):
    def sorted_grams(tokens, n):
        return [tuple(sorted(gram)) for gram in _grams(tokens, n)]

    return _count(hypothesis, reference, _clipped, grams=sorted_grams)


@mistake(
    "ngram_matches",
    hint="Joined by a space, the tokens “a b” + “c” and “a” + “b c” are the same n-gram. A token "
    "may hold a space: keep the tokens apart, in a tuple.",
)
def joins_by_a_space(hypothesis, reference):
    def joined(tokens, n):
        return [" ".join(gram) for gram in _grams(tokens, n)]

    return _count(hypothesis, reference, _clipped, grams=joined)


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


@mistake(
    "ngram_matches",
    hint="A list cannot be counted: a Counter takes only values that never change. Make a "
    "tuple of each n-gram.",
)
def counts_lists(hypothesis, reference):
    def lists(tokens, n):
        return [tokens[i : i + n] for i in range(len(tokens) - n + 1)]

    return _count(hypothesis, reference, _clipped, grams=lists)


@mistake(
    "ngram_matches",
    hint="A sentence of fewer than n tokens has no n-grams: 0 of them, not a negative number.",
)
def goes_below_zero(hypothesis, reference):
    matches, _ = _count(hypothesis, reference, _clipped)
    return matches, [len(hypothesis) - n + 1 for n in range(1, 5)]


@mistake(
    "ngram_matches",
    hint="Capitals are turned into small letters first. Tokens are compared as they are.",
)
def forgets_capitals(hypothesis, reference):
    small = [[token.lower() for token in tokens] for tokens in (hypothesis, reference)]
    return _count(*small, _clipped)


@mistake(
    "ngram_matches",
    hint="Totals and matches are exchanged: matches first.",
)
def exchanges_the_lists(hypothesis, reference):
    return _count(hypothesis, reference, _clipped)[::-1]


@mistake(
    "ngram_matches",
    hint="These are precisions. Return both counts: over a corpus they are added up before "
    "anything is divided.",
)
def divides_at_once(hypothesis, reference):
    matches, totals = _count(hypothesis, reference, _clipped)
    return [m / max(t, 1) for m, t in zip(matches, totals, strict=True)], totals


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


def _exp_smoothed(matches, totals, start=2.0, factor=2.0, always=False):
    """The precisions of a corpus from two lists of four, or None if BLEU is 0."""
    if not (any(matches) or always) or not all(totals):
        return None
    precisions = []
    for m, t in zip(matches, totals, strict=True):
        if m == 0:
            m, start = 1 / start, start * factor
        precisions.append(m / t)
    return precisions


def _mean_log(precisions):
    return 0.0 if precisions is None else math.exp(sum(map(math.log, precisions)) / 4)


def _pooled(matches, totals, lengths, reference_lengths):
    sums = matches.sum(0).tolist(), totals.sum(0).tolist()
    return *sums, lengths.sum().item(), reference_lengths.sum().item()


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
    hint="The brevity penalty is inverted: it punishes hypotheses that are too long. Precision "
    "does that by itself; brevity is for those with fewer tokens than the references.",
)
def inverts_the_brevity(*statistics):
    m, t, c, r = _pooled(*statistics)
    return 100 * _brevity(r, c) * _mean_log(_exp_smoothed(m, t))


@mistake(
    "bleu",
    hint="Brevity goes above 1 where the hypotheses are longer than the references. It "
    "does not reward length: there it is 1.",
)
def rewards_length(*statistics):
    m, t, c, r = _pooled(*statistics)
    return 100 * (math.exp(1 - r / c) if c else 0.0) * _mean_log(_exp_smoothed(m, t))


@mistake(
    "bleu",
    hint="The brevity penalty is missing.",
    earns=(
        "precisions and their mean",
        "smoothing and the two cases of 0",
    ),
)
def forgets_the_brevity(*statistics):
    m, t, _, _ = _pooled(*statistics)
    return 100 * _mean_log(_exp_smoothed(m, t))


@mistake(
    "bleu",
    hint="Brevity is c / r. It should be exp(1 - r / c).",
)
def takes_the_ratio(*statistics):
    m, t, c, r = _pooled(*statistics)
    return 100 * min(1.0, c / max(r, 1)) * _mean_log(_exp_smoothed(m, t))


@mistake(
    "bleu",
    hint="This is the mean of the sentences' BLEU. Add the statistics of all sentences first, and "
    "compute one BLEU of the sums.",
    earns=("brevity",),
)
def averages_sentences(matches, totals, lengths, reference_lengths):
    scores = [
        _brevity(c, r) * _mean_log(_exp_smoothed(m, t))
        for m, t, c, r in zip(
            matches.tolist(), totals.tolist(), lengths.tolist(), reference_lengths.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    return 100 * sum(scores) / len(scores)


@mistake(
    "bleu",
    hint="The precisions are pooled, but the brevity penalty is an average over sentences. It "
    "compares all tokens of the hypotheses with all of the references.",
)
def averages_brevity(matches, totals, lengths, reference_lengths):
    m, t, _, _ = _pooled(matches, totals, lengths, reference_lengths)
    pairs = zip(lengths.tolist(), reference_lengths.tolist(), strict=True)
    brevity = sum(_brevity(c, r) for c, r in pairs) / len(lengths)
    return 100 * brevity * _mean_log(_exp_smoothed(m, t))


@mistake(
    "bleu",
    hint="The precisions of the sentences are averaged. Add up matches and totals first, then "
    "divide: long sentences count for more.",
)
def averages_precisions(matches, totals, lengths, reference_lengths):
    m, t, c, r = _pooled(matches, totals, lengths, reference_lengths)
    if _exp_smoothed(m, t) is None:
        return 0.0
    precisions = (matches / totals.clamp(min=1)).mean(0).clamp(min=1e-9)
    return 100 * _brevity(c, r) * precisions.log().mean().exp().item()


@mistake(
    "bleu",
    hint="The four precisions are averaged as numbers. It is their geometric mean: the mean of "
    "their logarithms.",
    earns=(
        "brevity",
        "smoothing and the two cases of 0",
    ),
)
def takes_the_arithmetic_mean(*statistics):
    m, t, c, r = _pooled(*statistics)
    precisions = _exp_smoothed(m, t) or [0.0] * 4
    return 100 * _brevity(c, r) * sum(precisions) / 4


@mistake(
    "bleu",
    hint="This is the product of the four precisions. The geometric mean is its fourth root.",
)
def forgets_the_root(*statistics):
    m, t, c, r = _pooled(*statistics)
    return 100 * _brevity(c, r) * _mean_log(_exp_smoothed(m, t)) ** 4


@mistake(
    "bleu",
    hint="The result lies between 0 and 1. BLEU is given from 0 to 100.",
    earns=(
        "brevity",
        "smoothing and the two cases of 0",
    ),
)
def ends_at_one(*statistics):
    m, t, c, r = _pooled(*statistics)
    return _brevity(c, r) * _mean_log(_exp_smoothed(m, t))


@mistake(
    "bleu",
    hint="An order without any match makes the whole score 0. Smoothing gives it a small precision "
    "instead: 1 / (2 · totals) for the first such order.",
    earns=(
        "precisions and their mean",
        "brevity",
    ),
)
def does_not_smooth(*statistics):
    m, t, c, r = _pooled(*statistics)
    return 100 * _brevity(c, r) * (_mean_log(_exp_smoothed(m, t)) if all(m) else 0.0)


@mistake(
    "bleu",
    hint="The first order without a match counts as 1 / totals. It is 1 / (2 · totals).",
)
def smooths_too_little(*statistics):
    m, t, c, r = _pooled(*statistics)
    return 100 * _brevity(c, r) * _mean_log(_exp_smoothed(m, t, start=1.0))


@mistake(
    "bleu",
    hint="Every order without a match counts as 1 / (2 · totals). Each further one is halved "
    "again.",
)
def does_not_halve_again(*statistics):
    m, t, c, r = _pooled(*statistics)
    return 100 * _brevity(c, r) * _mean_log(_exp_smoothed(m, t, factor=1.0))


@mistake(
    "bleu",
    hint="One is added to all matches and totals. That is another smoothing; here orders that have "
    "a match stay as they are.",
)
def adds_one(*statistics):
    m, t, c, r = _pooled(*statistics)
    added = [x + 1 for x in m], [x + 1 for x in t]
    return 100 * _brevity(c, r) * _mean_log(_exp_smoothed(*added))


@mistake(
    "bleu",
    hint="Where nothing matches at all, smoothing still gives points. Then BLEU is 0.",
)
def smooths_nothing_at_all(*statistics):
    m, t, c, r = _pooled(*statistics)
    return 100 * _brevity(c, r) * _mean_log(_exp_smoothed(m, t, always=True))


@mistake(
    "bleu",
    hint="Orders without n-grams are left out of the mean. Here they make BLEU 0, as sacrebleu "
    "does for a corpus.",
)
def leaves_short_orders_out(*statistics):
    m, t, c, r = _pooled(*statistics)
    if not any(m):
        return 0.0
    pairs = [(one, two) for one, two in zip(m, t, strict=True) if two]
    start, logs = 2.0, []
    for one, two in pairs:
        if one == 0:
            one, start = 1 / start, 2 * start
        logs.append(math.log(one / two))
    return 100 * _brevity(c, r) * math.exp(sum(logs) / len(logs))


@mistake(
    "bleu",
    hint="Some order has no n-grams. Return 0 before dividing.",
)
def divides_by_no_ngrams(*statistics):
    m, t, c, r = _pooled(*statistics)
    if not any(m):
        return 0.0
    misses, product = 0, 1.0
    for one, total in zip(m, t, strict=True):
        misses += one == 0
        product *= (one or 0.5**misses) / total
    return 100 * _brevity(c, r) * product**0.25


@mistake(
    "bleu",
    hint="Some order has no n-grams, and in tensors 1 / 0 is inf. Return 0 before dividing.",
)
def lets_inf_through(*statistics):
    m, t, c, r = _pooled(*statistics)
    if not any(m):
        return 0.0
    m, t = torch.tensor(m).double(), torch.tensor(t)
    precisions = torch.where(m > 0, m, 0.5 ** (m == 0).cumsum(0)) / t
    return 100 * _brevity(c, r) * precisions.log().mean().exp().item()


@mistake(
    "bleu",
    hint="Without any token c is 0. Return 0 before dividing by it.",
    earns=(
        "precisions and their mean",
        "brevity",
    ),
)
def divides_by_no_tokens(*statistics):
    m, t, c, r = _pooled(*statistics)
    brevity = min(1.0, math.exp(1 - r / c))
    return 100 * brevity * _mean_log(_exp_smoothed(m, t))


@mistake(
    "bleu",
    hint="This is the harmonic mean of the precisions. It should be the geometric one: the fourth "
    "root of their product.",
)
def takes_the_harmonic_mean(*statistics):
    m, t, c, r = _pooled(*statistics)
    if not any(m) or not all(t):
        return 0.0
    return 100 * _brevity(c, r) * 4 / sum(1 / one for one in _exp_smoothed(m, t))


@alternative("bleu")
def works_with_logarithms(matches, totals, lengths, reference_lengths):
    c, r = int(lengths.sum()), int(reference_lengths.sum())
    log_score, halved = min(0.0, 1 - r / c) if c else 0.0, 0
    if int(matches.sum()) == 0:
        return 0.0
    for m, t in zip(matches.sum(0).tolist(), totals.sum(0).tolist(), strict=True):
        if t == 0:
            return 0.0
        halved += m == 0
        log_score += (math.log(m) if m else -halved * math.log(2)) / 4 - math.log(t) / 4
    return 100 * math.exp(log_score)


@alternative("bleu")
def stays_in_tensors(matches, totals, lengths, reference_lengths):
    m, t = matches.sum(0).double(), totals.sum(0).double()
    c, r = lengths.sum().double(), reference_lengths.sum().double()
    smoothed = m + (m == 0) * 2.0 ** -(m == 0).cumsum(0)
    score = (smoothed / t).prod() ** 0.25 * (1 - r / c).clamp(max=0).exp()
    return torch.where(m.any() & t.all(), 100 * score, torch.zeros_like(score))


@careless("bleu")
def adds_up_on_the_cpu(matches, totals, lengths, reference_lengths):
    m, t = torch.zeros(4, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)
    for one, other in zip(matches, totals, strict=True):
        m += one
        t += other
    found = _mean_log(_exp_smoothed(m.tolist(), t.tolist()))
    return 100 * _brevity(int(lengths.sum()), int(reference_lengths.sum())) * found


@careless("bleu")
def adds_up_in_numpy(*statistics):
    m, t, c, r = (part.numpy().sum(0).tolist() for part in statistics)
    return 100 * _brevity(c, r) * _mean_log(_exp_smoothed(m, t))


def _scores(system, rows):
    return torch.tensor([score_of(*(part[row] for part in system)) for row in rows]).double()


def _ends(values, share=0.025):
    """The two quantiles that leave out ``share`` at each end."""
    return values.quantile(torch.tensor([share, 1 - share]).double()).tolist()


def _told(differences, share=0.025):
    return *_ends(differences, share), (differences > 0).double().mean().item()


@mistake(
    "paired_bootstrap",
    hint="The two systems are scored on different test sets. Draw the same sentences for both: "
    "then the luck that they share drops out of the difference.",
)
def draws_for_each(ours, theirs, rows):
    return _told(_scores(ours, rows) - _scores(theirs, rows.roll(1, 0)))


@mistake(
    "paired_bootstrap",
    hint="These are differences of the two systems' ranges. Subtract on each test set first, then "
    "look for the range of the differences.",
)
def subtracts_the_ends(ours, theirs, rows):
    one, other = _scores(ours, rows), _scores(theirs, rows)
    low, high = (a - b for a, b in zip(_ends(one), _ends(other), strict=True))
    return low, high, (one > other).double().mean()


@mistake(
    "paired_bootstrap",
    hint="The differences have the wrong sign: subtract theirs from ours.",
)
def exchanges_the_systems(ours, theirs, rows):
    return _told(_scores(theirs, rows) - _scores(ours, rows))


@mistake(
    "paired_bootstrap",
    hint="5 % are left out at each end, so only 90 % are between them. The middle 95 % leave out "
    "2.5 % at each end.",
)
def leaves_out_a_tenth(ours, theirs, rows):
    return _told(_scores(ours, rows) - _scores(theirs, rows), 0.05)


@mistake(
    "paired_bootstrap",
    hint="These are the smallest and the largest difference. The middle 95 % leave out 2.5 % at "
    "each end.",
)
def takes_the_extremes(ours, theirs, rows):
    differences = _scores(ours, rows) - _scores(theirs, rows)
    return differences.min(), differences.max(), (differences > 0).double().mean()


@mistake(
    "paired_bootstrap",
    hint="Test sets on which both have the same score are counted as won. Ours has to be higher.",
)
def wins_the_ties(ours, theirs, rows):
    differences = _scores(ours, rows) - _scores(theirs, rows)
    return *_ends(differences), (differences >= 0).double().mean()


@mistake(
    "paired_bootstrap",
    hint="Each test set's score is the mean of its sentences' scores. Let `score_of` add up the "
    "whole test set.",
)
def averages_the_sentences(ours, theirs, rows):
    single = [torch.arange(len(rows[0])).unsqueeze(1)] * 2
    one, other = (_scores(*both) for both in zip((ours, theirs), single, strict=True))
    return _told((one - other)[rows].mean(dim=1))


@mistake(
    "paired_bootstrap",
    hint="A sentence that is drawn twice counts once. It should count twice.",
)
def forgets_repetitions(ours, theirs, rows):
    rows = [row.unique() for row in rows]
    return _told(_scores(ours, rows) - _scores(theirs, rows))


@mistake(
    "paired_bootstrap",
    hint="The third number is in percent. It is a share, from 0 to 1.",
)
def counts_in_percent(ours, theirs, rows):
    low, high, share = _told(_scores(ours, rows) - _scores(theirs, rows))
    return low, high, 100 * share


@mistake(
    "paired_bootstrap",
    hint="The third number is how many test sets ours wins. Divide it by their number.",
)
def counts_the_wins(ours, theirs, rows):
    low, high, share = _told(_scores(ours, rows) - _scores(theirs, rows))
    return low, high, share * len(rows)


@mistake(
    "paired_bootstrap",
    hint="A test set on which both have the same score counts as half a win. It is no win: "
    "ours has to be higher.",
)
def halves_the_ties(ours, theirs, rows):
    differences = _scores(ours, rows) - _scores(theirs, rows)
    return *_ends(differences), ((differences > 0).double() + (differences >= 0)).mean() / 2


@mistake(
    "paired_bootstrap",
    hint="The third number is the share of test sets that theirs wins. It should be the "
    "share that ours wins.",
)
def counts_the_wins_of_theirs(ours, theirs, rows):
    differences = _scores(ours, rows) - _scores(theirs, rows)
    return *_ends(differences), (differences < 0).double().mean()


@mistake(
    "paired_bootstrap",
    hint="Low and high are 1.96 standard deviations from the mean, as if the differences were "
    "normally distributed. Take their quantiles.",
)
def assumes_a_normal_distribution(ours, theirs, rows):
    differences = _scores(ours, rows) - _scores(theirs, rows)
    away = 1.96 * differences.std()
    centre = differences.mean()
    return centre - away, centre + away, (differences > 0).double().mean()


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
    "bleu: with another axis in one place: misses = (matches == 0).cumsum(dim=-1)": (
        "the four sums have one axis, the first and the last"
    ),
    "bleu: with one whole number off by one: misses = (matches == 0).cumsum(dim=-1)": (
        "the four sums have one axis, the first and the last"
    ),
    "bleu: with one whole number off by one: precisions = torch.where(matches > 1, matches, 0.5 ** "
    "misses) / totals": "an n-gram that matches has shorter ones that match, so 0.5 ** 0 = 1",
    "bleu: with one call of `item` left out: return 100 * brevity * "
    "precisions.log().mean().exp()": "the text allows a tensor",
    "paired_bootstrap: with one call of `tolist` left out: low, high = differences.quantile("
    "torch.tensor([0.025, 0.975]))": "a tensor of one number is as good as a number",
    "paired_bootstrap: with one call of `item` left out: return (low, high, (differences > 0)"
    ".double().mean())": "a tensor of one number is as good as a number",
}
