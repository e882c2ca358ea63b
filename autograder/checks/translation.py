"""Checks of lesson 14. The oracle is sacrebleu."""

import math

import sacrebleu
import torch

from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check

NEAR = {"rtol": 1e-5}  # for what integers are divided for: PyTorch does that in float32


def _several(result, number, names):
    fits = isinstance(result, tuple | list) and len(result) == number
    expect.true(fits, f"the result is not {names}", expect.describe(result), names)
    return result


def _sentence(draw, low, high):
    size = int(draw.integers(low, high, 1))
    return [draw.choice("abcd") for _ in range(size)]


def _counted(hypothesis, reference):
    """sacrebleu's matches and totals of one sentence."""
    texts = [" ".join(hypothesis)], [[" ".join(reference)]]
    found = sacrebleu.corpus_bleu(*texts, tokenize="none", force=True)
    return list(found.counts), list(found.totals)


@check(
    rests_on=(
        "two lists of four ints: matches and totals",
        "An n-gram matches at most as often as it stands in the reference",
        "strings of any kind, so a token may hold a space",
        "none if there are fewer than two tokens",
    )
)
def ngram_matches(student, draw):
    """By hand, then sacrebleu's counts, sentences shorter than an n-gram among them."""
    pair = "two lists of four numbers"
    hypothesis = ["the", "cat", "the", "cat", "on", "the", "mat"]
    reference = ["the", "cat", "is", "on", "the", "mat"]
    matches, totals = _several(student(hypothesis, reference), 2, pair)
    what = 'for "the cat the cat on the mat" there are 7, 6, 5 and 4 n-grams'
    expect.equal(totals, [7, 6, 5, 4], what)
    what = 'the matches of "the cat the cat on the mat" in "the cat is on the mat" are wrong'
    expect.equal(matches, [5, 3, 1, 0], what)
    matches, totals = _several(student(["a"] * 5, ["a", "a"]), 2, pair)
    expect.equal(matches, [2, 1, 0, 0], 'the matches of "a a a a a" in "a a" are wrong')
    matches, totals = _several(student(["ab", "c"], ["a", "bc"]), 2, pair)
    what = "the tokens ab, c and a, bc have no n-gram in common, but the matches are not 0"
    expect.equal(matches, [0, 0, 0, 0], what)
    matches, totals = _several(student(["a b", "c"], ["a", "b c"]), 2, pair)
    what = 'the tokens "a b", "c" and "a", "b c" have no n-gram in common: a token may hold a space'
    expect.equal(matches, [0, 0, 0, 0], what)
    matches, totals = _several(student(["The", "the"], ["the", "THE", "The"]), 2, pair)
    what = 'the matches of "The the" in "the THE The" are wrong: capitals are letters of their own'
    expect.equal(matches, [2, 0, 0, 0], what)
    matches, totals = _several(student(["a", "b"], list("abab")), 2, pair)
    expect.equal(totals, [2, 1, 0, 0], 'the totals of "a b" are wrong')
    expect.equal(matches, [2, 1, 0, 0], 'the matches of "a b" in "a b a b" are wrong')
    for low, high in ((1, 4), (5, 9), (9, 20), (20, 40)):
        hypothesis, reference = _sentence(draw, low, high), _sentence(draw, low, high)
        matches, totals = _several(student(hypothesis, reference), 2, pair)
        shown = f'"{" ".join(hypothesis[:9])}{" …" * (len(hypothesis) > 9)}"'
        expected = _counted(hypothesis, reference)
        expect.equal(totals, expected[1], f"the totals of {shown} differ from sacrebleu's")
        expect.equal(matches, expected[0], f"the matches of {shown} differ from sacrebleu's")
    with expect.care():
        got = _several(student([], ["a", "b"]), 2, pair)
        expect.equal(list(got), [[0] * 4] * 2, "an empty hypothesis has no n-grams")
    with expect.care():
        got = _several(student(list("abcde"), []), 2, pair)
        expect.equal(list(got), [[0] * 4, [5, 4, 3, 2]], "in an empty reference nothing matches")


def _statistics(pairs):
    """What bleu is called with, for (hypothesis, reference) pairs of token lists."""
    counts = torch.tensor([_counted(*pair) for pair in pairs])
    lengths = torch.tensor([list(map(len, pair)) for pair in pairs])
    return counts[:, 0], counts[:, 1], lengths[:, 0], lengths[:, 1]


def _score(pairs):
    texts = [[" ".join(side) for side in one] for one in zip(*pairs, strict=True)]
    return sacrebleu.corpus_bleu(texts[0], texts[1:], tokenize="none", force=True).score


def _one(result):
    """The number in a tensor of one number, whatever its axes."""
    lone = isinstance(result, torch.Tensor) and result.numel() == 1
    return result.item() if lone else result


def _two_sentences(*sentences):
    for tokens in sentences:
        fits = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
        what = "a sentence is a list of tokens, and a token a string"
        expect.true(fits, what, expect.describe(tokens), "a list of strings")


@check(
    without={**counterexamples.WITHOUT, "care": "it makes an input and is given none"},
    rests_on=(
        "Find a hypothesis and a reference for which it counts wrong",
        "a tuple (hypothesis, reference) of two lists of tokens, which are strings",
    ),
)
def break_ngram_matches(student, draw):
    """An input on which glues_the_tokens is wrong."""
    counterexamples.judge(student, "ngram_matches", "glues_the_tokens", allowed=_two_sentences)


@check(
    rests_on=(
        "100 · brevity · the geometric mean of the four precisions matches / totals",
        "Brevity is exp(1 - r / c) if the hypotheses have fewer tokens",
        "If no n-gram of some order matches, BLEU is 0",
        "if all are empty, c is 0 too",
    ),
    stages={
        "precisions and their mean": 1,
        "brevity": 0.5,
        "no match": 0.5,
    },
)
def bleu(student, draw):
    """Each part where the others are 1; worked by hand, then sacrebleu on random corpora."""
    top = _averages_precisions(student, draw)
    _is_brief(student, top)
    _is_zero(student)
    with expect.stage("brevity"):
        if expect.stands("precisions and their mean"):
            _does_both(student, draw)


def _averages_precisions(student, draw):
    """As many tokens as in the references. Returns the answer's score of a perfect translation."""
    top = 100.0
    with expect.stage("precisions and their mean"):
        whole = torch.tensor([[6, 5, 4, 3]])
        got = _one(student(whole, whole, torch.tensor([6]), torch.tensor([6])))
        if isinstance(got, int | float) and 0 < got < math.inf:
            top = got  # whoever forgets the 100 loses this stage alone
        expect.close(got, 100.0, "a perfect translation should get 100", **NEAR)
        matches = torch.tensor([[3, 2, 1, 1], [4, 2, 2, 1]])
        totals = torch.tensor([[5, 4, 3, 2]] * 2)
        got = _one(student(matches, totals, torch.tensor([5, 5]), torch.tensor([5, 5])))
        expected = 100 * (7 / 10 * 4 / 8 * 3 / 6 * 2 / 4) ** 0.25
        what = "for precisions of 7/10, 4/8, 3/6 and 2/4 and hypotheses that are long enough"
        expect.close(got, expected, f"{what} it is wrong", **NEAR)
        for n in (3, 8):
            pairs = _corpus(draw, n, alike=True)
            statistics = [draw.strided(one) for one in _statistics(pairs)]
            what = f"for a corpus of {n + 1} sentences as long as theirs it differs from sacrebleu"
            expect.close(_one(student(*statistics)), _score(pairs), what, **NEAR)
    return top


def _corpus(draw, n, alike=False):
    """Random pairs; with ``alike`` a hypothesis is as long as its reference."""
    pairs = [(_sentence(draw, 6, 15), _sentence(draw, 6, 15)) for _ in range(n)]
    if alike:
        pairs = [(one, [draw.choice("abcd") for _ in one]) for one, _ in pairs]
    return [*pairs, (list("abcabdc"), list("abcabdd"))]  # so that all orders match somewhere


def _is_brief(student, top):
    """One sentence of which all n-grams match: brevity alone is left, whatever mean is taken."""
    whole = torch.tensor([[6, 5, 4, 3]])
    with expect.stage("brevity"):
        for r, share in ((9, math.exp(1 - 9 / 6)), (4, 1.0)):
            got = _one(student(whole, whole, torch.tensor([6]), torch.tensor([r])))
            what = f"where all n-grams match, with 6 tokens and {r} in the reference, it is wrong"
            expect.close(got, top * share, what, **NEAR)


def _is_zero(student):
    with expect.stage("no match"):
        for what, pair in {
            "where no n-gram matches": ("vwxyz", "abcde"),
            "where no 4-gram matches": ("abcxabd", "abcabd"),
            "where the hypothesis is empty": ("", "abcd"),
            "where the hypothesis has fewer than four tokens": ("abc", "abc"),
        }.items():
            got = _one(student(*_statistics([tuple(map(list, pair))])))
            expect.true(got == 0, f"{what} BLEU should be 0", expect.describe(got), "0")


def _does_both(student, draw):
    """Precisions and brevity together."""
    matches, totals = torch.tensor([[3, 2, 1, 1], [4, 2, 2, 1]]), torch.tensor([[5, 4, 3, 2]] * 2)
    mean = 100 * (7 / 10 * 4 / 8 * 3 / 6 * 2 / 4) ** 0.25
    got = _one(student(matches, totals, torch.tensor([5, 5]), torch.tensor([6, 3])))
    what = "for precisions of 7/10, 4/8, 3/6 and 2/4, 10 tokens in the hypotheses and"
    expect.close(got, mean, f"{what} 9 in the references it is wrong", **NEAR)
    got = _one(student(matches, totals, torch.tensor([5, 5]), torch.tensor([6, 9])))
    expected = mean * math.exp(1 - 15 / 10)
    expect.close(got, expected, f"{what} 15 in the references it is wrong", **NEAR)
    for n in (3, 8):
        pairs = _corpus(draw, n)
        statistics = [draw.strided(one) for one in _statistics(pairs)]
        what = f"for a corpus of {n + 1} random sentences it differs from sacrebleu"
        expect.close(_one(student(*statistics)), _score(pairs), what, **NEAR)


def _numbers(result):
    """Three numbers, also where they come in a tensor."""
    if isinstance(result, torch.Tensor) and result.numel() == 3:
        result = result.flatten().tolist()
    return [_one(item) for item in _several(result, 3, "three numbers: low, high and the share")]


def _compared(found, differences, what):
    """``found`` is right for these differences, floats, one for each test set."""
    low, high, share = found
    exact = torch.tensor(differences, dtype=torch.float64)
    ends = torch.quantile(exact, torch.tensor([0.025, 0.975], dtype=torch.float64))
    for name, got, expected in (("low", low, ends[0]), ("high", high, ends[1])):
        expect.close(got, expected.item(), f"{what} {name} is wrong", rtol=1e-5, atol=1e-4)
    expected = sum(one > 0 for one in differences) / len(differences)
    expect.close(share, expected, f"{what} the share of test sets that ours wins is wrong", **NEAR)


def _two_systems(draw, n):
    """References with a better and a worse hypothesis for each, lists of tokens."""
    references = [_sentence(draw, 6, 15) for _ in range(n)]
    better = [[*one[:-1], "x"] if len(one) % 3 else one[:-2] for one in references]
    worse = [[*one[:4], *_sentence(draw, 2, 8)] for one in references]
    return references, better, worse


def _test_sets(draw, n, R):
    """Test sets of two systems, and their differences by sacrebleu: none is near 0."""
    for _ in range(50):
        references, ours, theirs = _two_systems(draw, n)
        if draw.choice("ab") == "a":
            ours, theirs = theirs, ours
        rows = draw.integers(0, n, R, n)
        systems = [list(zip(one, references, strict=True)) for one in (ours, theirs)]
        scores = [[_score([pairs[i] for i in row]) for row in rows.tolist()] for pairs in systems]
        differences = [a - b for a, b in zip(*scores, strict=True)]
        if min(map(abs, differences)) > 1e-2:
            break
    return [_statistics(pairs) for pairs in systems], rows, differences


@check(
    rests_on=(
        "row r says which sentences are in test set r, some more than once",
        "between which the middle 95 % of the R differences",
        "score of ours - score of theirs lie, by torch.quantile",
        "the share of the test sets in which ours has the higher score",
        "A system that is compared with itself",
    )
)
def paired_bootstrap(student, draw):
    """By hand with a tie, a system against itself, then sacrebleu's scores of the drawn texts."""
    whole, nothing = [4, 3, 2, 1], [0, 0, 0, 0]
    sizes = torch.tensor([[4, 3, 2, 1]] * 2), torch.tensor([4, 4]), torch.tensor([4, 4])
    ours = torch.tensor([whole, nothing]), *sizes
    theirs = torch.tensor([nothing, whole]), *sizes
    rows = torch.tensor([[0, 0], [0, 1], [1, 1], [0, 0], [1, 0]])
    found = _numbers(student(ours, theirs, rows))
    what = "where ours has only the first of two sentences right, and theirs only the second,"
    _compared(found, [100.0, 0.0, -100.0, 100.0, 0.0], what)
    sizes = torch.tensor([[99, 98, 97, 96]]), torch.tensor([99]), torch.tensor([99])
    near = [(torch.tensor([[80, 60, 40, last]]), *sizes) for last in (21, 20)]
    found = _numbers(student(*near, torch.zeros(3, 1, dtype=torch.int64)))
    scores = [100 * (80 * 60 * 40 * last / (99 * 98 * 97 * 96)) ** 0.25 for last in (21, 20)]
    _compared(found, [scores[0] - scores[1]] * 3, "where ours is better by less than 1 everywhere,")
    found = _numbers(student(ours, ours, rows))
    _compared(found, [0.0] * 5, "for a system that is compared with itself")
    for n, R in ((5, 7), (6, 40)):
        _drawn_sets(student, draw, n, R)
    for n, R in ((1, 1), (3, 1), (1, 3)):
        with expect.care():
            _drawn_sets(student, draw, n, R)


def _drawn_sets(student, draw, n, R):
    systems, rows, differences = _test_sets(draw, n, R)
    strided = [tuple(draw.strided(part) for part in one) for one in systems]
    found = _numbers(student(*strided, draw.strided(rows)))
    _compared(found, differences, f"for {R} test sets of {n} sentences")
