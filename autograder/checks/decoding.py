"""Checks of lesson 13. The oracles are loops over all candidates, and PyTorch's attention over
whole sequences."""

import itertools
import math

import torch
from torch.nn import functional as F

from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check

F64 = torch.float64
PAD, BOS, EOS = 0, 1, 2
PROJECTIONS = ("W_q", "W_k", "W_v", "W_o")
NEAR = {"rtol": 1e-5}  # for what integers are divided for: PyTorch does that in float32


def _tensor(rows):
    return torch.tensor(rows, dtype=F64)


def _several(result, number, names):
    fits = isinstance(result, tuple | list) and len(result) == number
    expect.true(fits, f"the result is not {names}", expect.describe(result), names)
    return result


def _table(draw, V, ends=0.0):
    """Log-probabilities of the next token, given the last; PAD and BOS hardly ever come."""
    logits = draw.normal(V, V, scale=2.0)
    logits[:, [PAD, BOS]] -= 40
    logits[:, EOS] += ends
    return logits.log_softmax(1)


def _greedy(table, max_length):
    ids, total = [BOS], 0.0
    while ids[-1] != EOS and len(ids) <= max_length:
        row = table[ids[-1]].tolist()
        ids.append(row.index(max(row)))
        total += max(row)
    return ids[1:], total


@check(
    without={
        "float32": "asked in the check itself: rounding may change which id comes out",
        "gradients": "ids come out, which have no gradient",
    },
    rests_on=(
        "Draw one token per row from softmax(logits / temperature)",
        "-inf for what must never be drawn",
        "the first token at which the probabilities, added up in the order of the ids",
        "where float32 rounds the last sum to less than 1",
        "so that every draw can be repeated",
    ),
)
def sample_tokens(student, draw):
    """Some draws by hand, then frequencies, then each draw against a loop."""
    # As many rows as tokens, twice: noise compared along the wrong axis shows in the result, not as
    # an error of broadcasting.
    logits = _tensor([[0.1, 0.2, 0.3, 0.4]]).log().repeat(4, 1) + 7
    tokens = student(logits, _tensor([0.05, 0.25, 0.7, 0.35]))
    expect.shape(tokens, (4,), axes="B")
    expect.dtype(tokens, torch.int64)
    flat, noise = draw.normal(12, 12), draw.uniform(12)
    what = "with the same noise it draws other tokens: the noise *is* the draw, look where it falls"
    first, again = (student(flat, noise) for _ in range(2))
    expect.shape(first, (12,), axes="B")
    expect.true(torch.equal(first, again), what, *_first_difference(again, first))
    what = "with probabilities 0.1, 0.2, 0.3, 0.4, noise 0.05, 0.25, 0.7, 0.35 draws wrongly"
    expect.close(tokens, torch.tensor([0, 1, 3, 2]), what)
    two = _tensor([[0.2, 0.8]]).log().repeat(4, 1)
    what = "with probabilities 0.2, 0.8 and temperature=0.5, noise 0.04, 0.1, 0.25, 0.36"
    got = student(two, _tensor([0.04, 0.1, 0.25, 0.36]), 0.5)
    expect.close(got, torch.tensor([0, 1, 1, 1]), f"{what} draws wrongly")
    what = (
        "with probabilities 0.2, 0.8 and temperature=2, noise 0.04, 0.3, 0.32, 0.35 draws wrongly"
    )
    got = student(two, _tensor([0.04, 0.3, 0.32, 0.35]), 2.0)
    expect.close(got, torch.tensor([0, 0, 0, 1]), what)
    blocked = _tensor([[-math.inf, 1.0, 1.0, -math.inf]]).repeat(2, 1)
    got = student(blocked, _tensor([0.0, 1 - 2**-24]))
    what = "a token with the score -inf is drawn, at noise 0 or just below 1"
    expect.close(got, torch.tensor([1, 2]), what)
    what = "with probabilities 1 - 4e-7 and 4e-7, noise 1 - 8e-7 and 1 - 2e-7 draws wrongly"
    got = student(_tensor([[0.0, math.log(4e-7)]] * 2), _tensor([1 - 8e-7, 1 - 2e-7]))
    expect.close(got, torch.tensor([0, 1]), what)

    loud = _tensor([[-1000.0, 1000.0, 999.0], [1000.0, -1000.0, 1000.0], [3.0, 3.0, 3.0]])
    what = "with scores of 1000 and -1000 in one row, and of 3 in another, it draws wrongly"
    got = student(loud, _tensor([0.7, 0.6, 0.5]))
    expect.close(got, torch.tensor([1, 2, 1]), what)

    row, n = draw.normal(7, scale=2.0), 2000
    noise = (draw.permutation(n) + 0.5) / n  # spread evenly: a right answer is off by 1 at most
    for temperature in (1.0, 0.6, 3.0):
        tokens = student(draw.strided(row.repeat(n, 1)), draw.strided(noise.to(F64)), temperature)
        expect.shape(tokens, (n,), axes="B")
        shares = torch.stack([(tokens == v).sum() / n for v in range(7)])
        wanted = (row / temperature).softmax(0).float()
        gap = (shares - wanted).abs()
        v = int(gap.argmax())
        what = f"at temperature={temperature} a token is drawn too often or too rarely"
        shown = [f"token {v}: {100 * one[v]:.1f} % of {n} draws" for one in (shares, wanted)]
        expect.true(gap[v] < 2 / n, what, *shown)
    logits, noise = draw.normal(9, 7, scale=2.0), draw.uniform(9)
    expected = []
    for scores, u in zip(logits.tolist(), noise.tolist(), strict=True):
        sums = list(itertools.accumulate(math.exp(score / 1.5) for score in scores))
        expected.append(sum(part <= u * sums[-1] for part in sums))
    what = "nine rows with noise of their own draw otherwise than a loop"
    expect.close(student(logits, noise, temperature=1.5), torch.tensor(expected), what)

    logits = draw.normal(100, 200)
    logits[:, [0, -1]] = -math.inf
    tokens = student(logits.float(), torch.full((100,), 1 - 2**-24))  # rand knows no larger one
    expect.shape(tokens, (100,), axes="B")
    impossible = ((tokens < 1) | (tokens > 198)).nonzero()
    what = "in float32, at the largest noise, a token is drawn that is -inf or does not exist"
    shown = f"token {tokens[impossible[0]].item()}" if len(impossible) else ""
    expect.true(not len(impossible), what, shown, "one of 1 … 198: 0 and 199 have the score -inf")
    with expect.care():
        got = student(loud[:1], _tensor([0.8]))
        expect.close(got, torch.tensor([2]), "with one row it draws wrongly")
    with expect.care():
        got = student(_tensor([[0.5], [3.0]]), _tensor([0.0, 0.99]))
        expect.close(got, torch.tensor([0, 0]), "with a vocabulary of one token it draws wrongly")
    with expect.care():
        what = "with probabilities 1 - 1e-8 and 1e-8, noise 1 - 2e-8 and 1 - 1e-9 draws wrongly"
        got = student(_tensor([[0.0, math.log(1e-8)]] * 2), _tensor([1 - 2e-8, 1 - 1e-9]))
        expect.close(got, torch.tensor([0, 1]), what)


def _first_difference(got, expected):
    row = int((got != expected).int().argmax())
    return [f"row {row}: token {one[row].item()}" for one in (got, expected)]


def _kept(rows, keep):
    """The rows with -inf where ``keep(row)``, a set of places, does not hold a place."""
    return _tensor(
        [[x if i in keep(row) else -math.inf for i, x in enumerate(row)] for row in rows]
    )


def _ranked(row):
    return sorted(range(len(row)), key=lambda place: -row[place])


@check(
    without={"gradients": "nothing is learned from what is drawn: numbers may come out"},
    rests_on=(
        "Keep the scores of the k best tokens of each row; all others become -inf",
        "k may be larger than V",
        "The k-th best stands exactly at the bar",
    ),
)
def top_k_filter(student, draw):
    """By hand, then sorted lists."""
    logits = draw.normal(3, 7, scale=2.0)
    kept = student(logits, 4)
    expect.shape(kept, (3, 7), axes="B, V")
    expect.dtype(kept, F64)
    left = (kept > -math.inf).sum(1)
    what = "with k=4 not every row keeps four scores above -inf"
    expect.equal(left.tolist(), [4, 4, 4], what)
    got = student(_tensor([[1.0, 4.0, 3.0, 2.0]]), 2)
    expected = _tensor([[-math.inf, 4.0, 3.0, -math.inf]])
    expect.close(got, expected, "for the scores 1, 4, 3, 2 with k=2 it is wrong")
    expected = _kept(logits.tolist(), lambda row: _ranked(row)[:4])
    expect.close(kept, expected, "with k=4 it differs from sorting the rows")
    for k in (1, 6, 7):
        logits = draw.normal(4, 7, scale=3.0) - 5
        expected = _kept(logits.tolist(), lambda row, k=k: _ranked(row)[:k])
        got = student(draw.strided(logits), k)
        expect.close(got, expected, f"with k={k} it differs from sorting the rows")
    expect.close(student(logits, 12), logits, "with k larger than V nothing should change")
    one = draw.normal(5, 1)
    with expect.care():
        expect.close(student(one, 1), one, "with a vocabulary of one token nothing should change")
    loud = _tensor([[-1000.0, 1000.0, 0.0, 5.0, 999.0], [3.0, 2.0, -1000.0, -999.0, -998.0]])
    expected = _kept(loud.tolist(), lambda row: _ranked(row)[:3])
    what = "with k=3 and scores of 1000 and -1000 in one row it is wrong"
    with expect.care():
        expect.close(student(loud, 3), expected, what)
    few = _tensor([[-math.inf, 2.0, -math.inf, 1.0, 3.0], [-math.inf] * 4 + [0.5]])
    what = "with k=3 and no more than three scores above -inf nothing should change"
    with expect.care():
        expect.close(student(few, 3), few, what)


def _nucleus(row, p):
    weights = [math.exp(x - max(row)) for x in row]
    kept, mass = [], 0.0
    for place in _ranked(row):
        if mass < p * sum(weights):
            kept.append(place)
            mass += weights[place]
    return kept


@check(
    without={
        "float32": "asked in the check itself: of equal scores, either may stay",
        "gradients": "nothing is learned from what is drawn: numbers may come out",
    },
    rests_on=(
        "Keep the fewest tokens of each row whose probabilities reach p together",
        "the token that makes the sum reach p included",
        "up to and with the one that reaches p; all others become -inf",
        "p between 0 and 1, both excluded",
    ),
    stages={
        "scores from large to small": 1,
        "scores in any order": 1.5,
        "where p is reached exactly": 0.5,
    },
)
def top_p_filter(student, draw):
    """Sorted rows, equal scores, rows in any order: by hand, then a loop that adds up tokens."""
    with expect.stage("scores from large to small"):
        three = _tensor([[0.6, 0.3, 0.1], [0.88, 0.1, 0.02]]).log()
        got = student(three, 0.8)
        expect.shape(got, (2, 3), axes="B, V")
        expect.dtype(got, F64)
        _keeps_something(got)
        expected = three.masked_fill(torch.tensor([[0, 0, 1], [0, 1, 1]]).bool(), -math.inf)
        what = "for the probabilities 0.6, 0.3, 0.1 and 0.88, 0.1, 0.02 with p=0.8 it is wrong"
        expect.close(got, expected, what)
        for p in (0.7, 0.001, 0.35, 0.9, 0.999):
            logits = draw.normal(5, 8, scale=2.0).sort(1, descending=True).values + 3
            expected = _kept(logits.tolist(), lambda row, p=p: _nucleus(row, p))
            what = f"for sorted scores with p={p} it differs from adding token after token"
            expect.close(student(logits, p), expected, what)
    with expect.stage("where p is reached exactly"):
        for count, p, needed in ((2, 0.5, 1), (4, 0.5, 2), (4, 0.75, 3)):  # whichever of them stay
            left = (student(torch.zeros(1, count, dtype=F64), p) > -math.inf).sum().item()
            what = f"of {count} tokens with probability {1 / count} each, {needed} reach p={p}"
            expect.true(left == needed, what, f"{left} kept", f"{needed} kept")
        exact = _tensor([[0.5, 0.25, 0.125, 0.125]]).log()
        what = "of 0.5, 0.25, 0.125 and 0.125 the first alone reaches p=0.5"
        left = student(exact, 0.5) > -math.inf
        expect.close(left, torch.tensor([[True, False, False, False]]), what)
    with expect.stage("scores in any order"):
        _keeps_the_best(student, draw)
        if expect.stands("scores from large to small"):
            _adds_token_after_token(student, draw)


def _keeps_something(kept):
    what = "a row keeps nothing: the best token should always stay"
    expect.true((kept > -math.inf).any(1).all(), what, "only -inf", "at least one score")


def _keeps_the_best(student, draw):
    """Of each row some, and these the best; one more or less than the three of the nucleus do."""
    logits = torch.stack([draw.permutation(8) for _ in range(5)]).double() / 2 - 4
    kept = student(logits, 0.7)
    expect.shape(kept, (5, 8), axes="B, V")
    expect.dtype(kept, F64)
    _keeps_something(kept)
    for row, scores in zip(kept.tolist(), logits.tolist(), strict=True):
        count = sum(one > -math.inf for one in row)
        best = sorted(_ranked(scores)[:count])
        what = "where the probabilities are 0.40, 0.24, 0.15 … in any order, and p=0.7, it is wrong"
        expect.true(2 <= count <= 4, what, f"{count} of 8 scores kept", "the fewest that reach 0.7")
        left = [place for place, one in enumerate(row) if one > -math.inf]
        what = "the tokens that are kept are not the most probable ones of the row"
        expect.equal(left, best, what)


def _adds_token_after_token(student, draw):
    logits = draw.normal(4, 9, scale=2.0)
    three = _tensor([[0.1, 0.6, 0.3], [0.1, 0.88, 0.02]]).log()
    kept, got = student(logits, 0.7), student(three, 0.8)
    expected = three.masked_fill(torch.tensor([[1, 0, 0], [1, 0, 1]]).bool(), -math.inf)
    what = "for the probabilities 0.1, 0.6, 0.3 and 0.1, 0.88, 0.02 with p=0.8 it is wrong"
    expect.close(got, expected, what)
    expected = _kept(logits.tolist(), lambda row: _nucleus(row, 0.7))
    expect.close(kept, expected, "with p=0.7 it differs from adding token after token")
    for p in (0.001, 0.35, 0.9, 0.999):
        logits = draw.normal(5, 8, scale=2.0) + 3
        expected = _kept(logits.tolist(), lambda row, p=p: _nucleus(row, p))
        got = student(draw.strided(logits), p)
        expect.close(got, expected, f"with p={p} it differs from adding token after token")
    logits, what = draw.permutation(7).repeat(2, 1).double(), "with p=0.9 and"
    logits[1] *= 200
    expected = _kept(logits.tolist(), lambda row: _nucleus(row, 0.9))
    with expect.care():
        expect.close(student(logits, 0.9), expected, f"{what} scores from 0 to 1200 it is wrong")
    with expect.care("float32"):
        narrow = student(logits.float(), 0.9)
        expect.dtype(narrow, torch.float32)
        expect.close(narrow, expected.float(), f"{what} float32 scores from 0 to 1200 it is wrong")
    logits = draw.permutation(7).repeat(2, 1).double()
    logits[0, 2:5] = -math.inf
    expected = _kept(logits.tolist(), lambda row: _nucleus(row, 0.9))
    with expect.care():
        expect.close(student(logits, 0.9), expected, f"{what} three scores of -inf it is wrong")
    one = draw.normal(2, 1)
    with expect.care():
        expect.close(student(one, 0.3), one, "with a vocabulary of one token nothing should change")


def _step(scores, log_probs, finished):
    """The K best of all candidates of each source, in loops."""
    rows = []
    for beams, nexts, ends in zip(
        *(x.tolist() for x in (scores, log_probs, finished)), strict=True
    ):
        candidates = []
        for k, (score, row, end) in enumerate(zip(beams, nexts, ends, strict=True)):
            row = [0.0 if v == PAD else -math.inf for v in range(len(row))] if end else row
            candidates += [(score + log_p, k, v) for v, log_p in enumerate(row)]
        rows.append(sorted(candidates, key=lambda one: -one[0])[: len(beams)])
    return rows


def _three(rows):
    """Lists of (score, origin, token) as three tensors (B, K)."""
    columns = [[[one[i] for one in row] for row in rows] for i in range(3)]
    return _tensor(columns[0]), torch.tensor(columns[1]), torch.tensor(columns[2])


SCORES, PLACES = "the new scores", "origins and tokens"


def _same_step(student, inputs, expected, what, parts):
    """Compare scores, origins and tokens, as far as these ``parts`` are asked for."""
    got = _several(student(*inputs), 3, "new scores, origins and tokens")
    names = {"scores": SCORES, "origins": PLACES, "tokens": PLACES}
    for one, other, name in zip(got, expected, names, strict=True):
        if names[name] in parts:
            expect.shape(one, other.shape, axes="B, K")
            expect.dtype(one, other.dtype)
    if not expect.stands(SCORES):  # these may stand in another order: that is said already
        got, expected = _in_their_order(*got), _in_their_order(*expected)
    for one, other, name in zip(got, expected, names, strict=True):
        if names[name] in parts:
            expect.close(one, other, f"{what} the {name} are wrong")


def _in_their_order(scores, origins, tokens):
    """The same, in the order of the places that they come from."""
    order = (origins * 100 + tokens).argsort(1)
    return scores, origins.gather(1, order), tokens.gather(1, order)


@check(
    without={**counterexamples.WITHOUT, "care": "it makes an input and is given none"},
    rests_on=(
        "For some scores the answer below keeps the right tokens",
        "a tuple (logits, p), as top_p_filter takes them",
    ),
)
def break_top_p_filter(student, draw):
    """An input on which forgets_to_divide is wrong."""
    counterexamples.judge(student, "top_p_filter", "forgets_to_divide", allowed=_scores_and_a_share)


def _scores_and_a_share(logits, p):
    counterexamples.shaped("B, V")(logits)
    expect.finite(logits, "a score is not finite")
    share = isinstance(p, float) and 0 < p < 1
    expect.true(share, "p is no share", expect.describe(p), "a number between 0 and 1")


@check(
    without={"care": "numbers and words are returned: nothing comes in"},
    rests_on=(
        "Take the two steps after it by hand",
        "the probability of the beginning",
        "the number of the old beam that it continues, 0 or 1",
        "the word that was added",
        "best first",
    ),
)
def trace_beam_search(student, draw):
    """All continuations of both beams, sorted by their products."""
    scores, origins, tokens = _several(student(), 3, "three lists: scores, origins and tokens")
    for rows, name in ((scores, "scores"), (origins, "origins"), (tokens, "tokens")):
        fits = isinstance(rows, tuple | list | torch.Tensor) and len(rows) == 2
        fits = fits and all(isinstance(row, tuple | list | torch.Tensor) for row in rows)
        fits = fits and all(len(row) == 2 for row in rows)
        what = f"{name} should be a list with a row of two for each of the two steps"
        listed = "plain lists, [[…, …], […, …]]: `.tolist()` makes them of an array"
        expect.true(fits, what, expect.describe(rows), listed)
    beams = [(0.6, "the"), (0.4, "a")]
    for step, (p, origin, word) in enumerate(zip(scores, origins, tokens, strict=True)):
        when = f"in the {('first', 'second')[step]} of the two steps"
        candidates = [
            (before * share, number, following)
            for number, (before, last) in enumerate(beams)
            for following, share in FOLLOWS[last].items()
        ]
        best = sorted(candidates, reverse=True)[:2]
        what = f"{when} these are not the words of the two most probable beginnings"
        expect.true(list(word) == [w for _, _, w in best], what, f"{list(word)}", "the two best")
        origin, p = (row.tolist() if isinstance(row, torch.Tensor) else row for row in (origin, p))
        what = f"{when} the old beams should be named by their numbers"
        fits = all(isinstance(one, int) for one in origin)
        expect.true(fits, what, f"{list(origin)}", "0 or 1 for each word")
        what = f"{when} a word does not continue the beam that you name"
        fits = all(a == b for a, (_, b, _) in zip(origin, best, strict=True))
        expect.true(fits, what, f"{list(origin)}", f"for each of {list(word)}, the beam before it")
        what = f"{when} a probability is wrong"
        fits = all(isinstance(one, int | float) for one in p)
        fits = fits and all(abs(a - b) < 6e-4 for a, (b, _, _) in zip(p, best, strict=True))
        expect.true(fits, what, f"{list(p)}", "the probabilities of whole beginnings")
        beams = [(share, following) for share, _, following in best]


FOLLOWS = {
    "the": {"old": 0.5, "small": 0.45, "dog": 0.05},
    "a": {"dog": 0.6, "fox": 0.4},
    "old": {"dog": 0.3, "fox": 0.7},
    "small": {"dog": 0.9, "fox": 0.1},
}


@check(
    without={"gradients": "a search is nothing to learn from: numbers may come out"},
    rests_on=(
        "keep the K best of all these for each source",
        "three (B, K), best first: the new scores, the old beam that each comes from",
        "goes on with PAD at a cost of 0, and with nothing else",
        "Two may come from the same old one, and an old one may die out",
    ),
    stages={SCORES: 1, PLACES: 1, "several sources": 1, "finished beams": 1},
)
def beam_step(student, draw):
    """By hand, then all candidates in loops, then whole searches: narrow ones and a wide one."""
    hand = _tensor([[[-9.0, -1.0, -2.0], [-9.0, -3.0, -1.25]]])
    two = _tensor([[-1.0, -1.5]]), hand, torch.tensor([[False, False]])
    chosen = _tensor([[-2.0, -2.75]]), torch.tensor([[0, 1]]), torch.tensor([[1, 2]])
    # The surest token goes on from an improbable beam: sums of probabilities would take it.
    sure = _tensor([[[-9.0, -1.0, -1.5], [-9.0, -4.0, -0.1]]])
    unlikely = _tensor([[-1.0, -3.0]]), sure, two[2]
    from_one = _tensor([[-2.0, -2.5]]), torch.tensor([[0, 0]]), torch.tensor([[1, 2]])
    scores = draw.normal(3, 4).sort(descending=True).values - 2
    log_probs = draw.normal(3, 4, 7, scale=2.0).log_softmax(2)
    nothing = torch.zeros(3, 4, dtype=torch.bool)
    for part in (SCORES, PLACES):
        with expect.stage(part):
            what = "for beams of -1 and -1.5 that go on with (-9, -1, -2) and (-9, -3, -1.25)"
            _same_step(student, two, chosen, what, [part])
            what = "for beams of -1 and -3 that go on with (-9, -1, -1.5) and (-9, -4, -0.1)"
            _same_step(student, unlikely, from_one, what, [part])
            for b in range(3):
                inputs = scores[b : b + 1], log_probs[b : b + 1], nothing[:1]
                what = "with B=1, K=4, V=7 and no beam finished"
                _same_step(student, inputs, _three(_step(*inputs)), what, [part])
    with expect.stage(SCORES), expect.care():
        _one_beam_alive(student, False)
    parts = [part for part in (SCORES, PLACES) if expect.stands(part)] or [SCORES, PLACES]
    with expect.stage("several sources"):
        inputs = scores, log_probs, nothing
        what = "with B=3, K=4, V=7 and no beam finished"
        _same_step(student, inputs, _three(_step(*inputs)), what, parts)
    with expect.stage("finished beams"):
        _goes_on_with_pad(student, hand, scores, log_probs, parts)
        finished = torch.zeros(3, 4, dtype=torch.bool)
        finished[0, 1], finished[1, 2], finished[2, :3] = True, True, True
        inputs = draw.strided(scores), draw.strided(log_probs), draw.strided(finished)
        if expect.stands("several sources"):
            what = "with B=3, K=4, V=7 and some beams finished"
            _same_step(student, inputs, _three(_step(*inputs)), what, parts)
        if len(parts) == 2 and expect.stands("several sources"):
            with expect.care():
                _one_beam_alive(student, True)
            for _ in range(2):
                table, wide = _table(draw, 6), _table(draw, 5)
                with expect.care():
                    _search(student, table, wide)


def _goes_on_with_pad(student, hand, scores, log_probs, parts):
    """One source, by hand and in loops."""
    ended = _tensor([[-2.5, -1.0]]), hand, torch.tensor([[True, False]])
    expected = _tensor([[-2.25, -2.5]]), torch.tensor([[1, 0]]), torch.tensor([[2, PAD]])
    what = "for a finished beam of -2.5 and one of -1 that goes on with (-9, -3, -1.25)"
    _same_step(student, ended, expected, what, parts)
    for b, places in enumerate(([1], [2], [0, 1, 2])):
        finished = torch.tensor([[k in places for k in range(4)]])
        inputs = scores[b : b + 1], log_probs[b : b + 1], finished
        what = "with B=1, K=4, V=7 and some beams finished"
        _same_step(student, inputs, _three(_step(*inputs)), what, parts)


def _search(student, narrow, wide):
    """Whole searches: with one beam, and with more than there are sentences."""
    ids, _ = _searched(student, narrow, 1, 6)
    expect.equal(ids, _greedy(narrow, 6)[0], "a search with one beam is not greedy")
    best, most = _best_of_all(wide, 4)
    ids, total = _searched(student, wide, 40, 4)
    shown = [f"{row} of log-probability {_sum(wide, row):.6f}" for row in (ids, best)]
    missed = _sum(wide, ids) < most - 1e-9  # not by ids: two sentences may have the same steps
    what = "a search with more beams than there are sentences misses the most probable one"
    expect.true(not missed, what, *shown)
    expect.close(total, most, "a wide search finds the best sentence, with a wrong score")


def _one_beam_alive(student, ended):
    """Two of three beams have the score -inf, as at the start of a search."""
    scores, finished = (
        _tensor([[-1.0, -math.inf, -math.inf]]),
        torch.tensor([[ended, False, False]]),
    )
    log_probs = _tensor([[[-0.5, -2.0, -math.inf], [-1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]]])
    got, _, _ = _several(student(scores, log_probs, finished), 3, "a triple")
    expected = [[-1.0, -math.inf, -math.inf]] if ended else [[-1.5, -3.0, -math.inf]]
    first = f"of three beams two have the score -inf and one, {'' if ended else 'not '}finished, -1"
    expect.close(got, _tensor(expected), f"{first}: the scores are wrong")


def _searched(student, table, K, max_length):
    """A beam search with the student's step; returns the best row and its score."""
    scores = torch.full((1, K), -math.inf, dtype=F64)
    scores[0, 0] = 0.0
    rows, finished = [[BOS] for _ in range(K)], torch.zeros(1, K, dtype=torch.bool)
    for _ in range(max_length):
        log_probs = table[[max(row[-1], 0) for row in rows]][None].clone()
        log_probs[:, :, [PAD, BOS]] = -math.inf
        scores, origin, tokens = _several(student(scores, log_probs, finished), 3, "a triple")
        for one in (scores, origin, tokens):
            expect.shape(one, (1, K), axes="B, K")
        pairs = list(zip(origin[0].tolist(), tokens[0].tolist(), strict=True))
        fits = all(0 <= k < K and 0 <= v < len(table) for k, v in pairs)
        expect.true(fits, "an origin or a token does not exist", str(pairs[:3]), "0 … K - 1")
        rows = [[*rows[k], v] for k, v in pairs]
        finished = torch.tensor([[EOS in row for row in rows]])
    ids = [v for v in rows[0][1:] if v != PAD]
    return ids, scores[0, 0].item()


def _best_of_all(table, max_length):
    """The most probable of all rows that end, or have ``max_length`` tokens."""
    best = ([], -math.inf)
    for length in range(1, max_length + 1):
        for middle in itertools.product(range(3, len(table)), repeat=length - 1):
            last = [EOS] if length < max_length else range(EOS, len(table))
            for v in last:
                ids = [*middle, v]
                best = max(best, (ids, _sum(table, ids)), key=lambda one: one[1])
    return best


def _sum(table, ids):
    return sum(table[a, b].item() for a, b in zip([BOS, *ids], ids, strict=False))


def _best_of(best, kept, values, written, ended):
    """The N best of those that are kept and those that have just ended, in loops."""
    worth, rows = [], []
    for b, (old, new, ends) in enumerate(
        zip(*(x.tolist() for x in (best, values, ended)), strict=True)
    ):
        pool = list(zip(old, kept[b].tolist(), strict=True))
        beams = zip(new, written[b].tolist(), ends, strict=True)
        pool += [(value, ids) for value, ids, end in beams if end]
        pool.sort(key=lambda one: -one[0])
        worth.append([value for value, _ in pool[: len(old)]])
        rows.append([ids for _, ids in pool[: len(old)]])
    return _tensor(worth), torch.tensor(rows)


def _keeps(student, inputs, what):
    """The student's values and ids are those of a loop; where a value is -inf, any ids will do."""
    got = _several(student(*inputs), 2, "the best values and their ids")
    for one, other, axes in zip(got, (inputs[0], inputs[1]), ("B, N", "B, N, T"), strict=True):
        expect.shape(one, other.shape, axes=axes)
        expect.dtype(one, other.dtype)
    best, kept = _best_of(*inputs)
    expect.close(got[0], best, f"{what} the values are wrong")
    nothing = (best == -math.inf).unsqueeze(2)
    rows, expected = (one.masked_fill(nothing, PAD) for one in (got[1], kept))
    expect.close(rows, expected, f"{what} the ids are wrong")


def _beams(draw, B, N, K, T, ended):
    """Inputs of keep_best; as many beams of a source as ``ended`` says have just ended."""
    values = -(draw.permutation(B * (N + K)).double().view(B, N + K) + 1) / 4  # all are different
    best, values = values[:, :N].sort(1, descending=True).values, values[:, N:]
    kept, written = draw.integers(3, 90, B, N, T), draw.integers(3, 90, B, K, T)
    places = torch.stack([draw.permutation(K) for _ in range(B)])
    return best, kept, values, written, places < torch.tensor(ended)[:, None]


@check(
    without={"gradients": "a search is nothing to learn from: numbers may come out"},
    rests_on=(
        "the N best finished hypotheses of each source",
        "the beams that have just ended compete with this list for its N places; unfinished beams "
        "do not take part",
        "values of those that were kept before, best first; -inf: none there yet",
        "best and kept as they are now; where best is -inf, any ids may stand in kept",
    ),
)
def keep_best(student, draw):
    """One source by hand, then loops: many sources, some with nothing kept or nothing ended."""
    best, kept = _tensor([[-1.5, -4.0]]), torch.tensor([[[5, 2, 0], [2, 0, 0]]])
    written = torch.tensor([[[6, 7, 2], [6, 2, 0], [7, 7, 2], [8, 2, 0]]])
    beams = _tensor([[-0.5, -3.0, -1.25, -6.0]]), written
    for ended, told in (
        ([False] * 4, "no beam has ended"),
        ([False, False, False, True], "one beam, of -6, has ended"),
        ([False, True, False, False], "one beam, of -3, has ended"),
        ([False, True, True, False], "two beams, of -3 and -1.25, have ended"),
        ([True, False, True, False], "two beams, of -0.5 and -1.25, have ended"),
    ):
        what = f"where -1.5 and -4 are kept and {told}"
        _keeps(student, (best, kept, *beams, torch.tensor([ended])), what)
    for N, ended in ((1, [2, 0, 4]), (2, [1, 3, 2]), (3, [4, 0, 3])):
        inputs = _beams(draw, 3, N, 4, 6, ended)
        what = f"with B=3, N={N}, K=4, T=6 and {ended} beams that have just ended"
        _keeps(student, [draw.strided(one) for one in inputs], what)
    best, kept, *beams = _beams(draw, 3, 2, 4, 6, [0, 1, 3])
    best = best.index_fill(0, torch.tensor([0, 1]), -math.inf)
    best[2, 1] = -math.inf
    what = "where nothing is kept yet, with B=3, N=2, K=4, T=6"
    _keeps(student, (best, kept, *beams), f"{what} and [0, 1, 3] beams that have just ended")
    for sizes in ((1, 1, 3, 5), (2, 1, 1, 5), (2, 2, 3, 1), (2, 4, 3, 5)):
        what = "with B={}, N={}, K={}, T={} and one beam that has just ended".format(*sizes)
        with expect.care():
            _keeps(student, _beams(draw, *sizes, [1] * sizes[0]), what)
    best, kept, values, written, ended = _beams(draw, 2, 2, 4, 3, [3, 2])
    with expect.care():
        what = "with log-probabilities down to -1e7, and a beam of -inf that goes on,"
        values = (1e6 * values).masked_fill(~ended, -math.inf)
        _keeps(student, (1e6 * best, kept, values, written, ended), what)


def _projections(draw, d_model):
    """Weights that keep the size of what passes through, by parameter."""
    values = {}
    for name in PROJECTIONS:
        values[f"{name}.weight"] = draw.normal(d_model, d_model, scale=1 / math.sqrt(d_model))
        values[f"{name}.bias"] = draw.normal(d_model, scale=0.5)
    return values


def _projected(values, name, x):
    return x @ values[f"{name}.weight"].T + values[f"{name}.bias"]


def _causal(values, x, n_heads, old=None):
    """PyTorch's attention over the whole sequence; ``old`` projects all keys but the last."""
    q, k, v = (_projected(values, name, x) for name in PROJECTIONS[:3])
    if old is not None:
        k = torch.cat([_projected(old, "W_k", x)[:, :-1], k[:, -1:]], 1)
        v = torch.cat([_projected(old, "W_v", x)[:, :-1], v[:, -1:]], 1)
    q, k, v = (one.unflatten(2, (n_heads, -1)).transpose(1, 2) for one in (q, k, v))
    context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return _projected(values, "W_o", context.transpose(1, 2).flatten(2))


@check(
    without={
        "again": "it remembers what it has read",
        "gradients": "asked in the check itself: what is remembered may be cut off from the graph",
        "unlike": "one position at a time: an axis of 1 is what it is about",
    },
    rests_on=(
        "Read the next position of each sequence, and let it look at itself and all before",
        "what MultiHeadAttention would say for this position",
        "had it read the whole sequence under a causal mask",
        "What is remembered are keys and values, after their projections",
    ),
    stages={
        "the first position": 1,
        "all further positions": 2,
        "keys and values are remembered": 1,
    },
)
def CachedAttention(student, draw):  # noqa: N802, the name of the exercise
    """Position by position equal to PyTorch's attention over the whole sequence."""
    values, other = _projections(draw, 18), _projections(draw, 18)
    plain, changed = _without_output(values), _without_output(other)
    with expect.stage("the first position"):
        for B in (3, 2):
            _reads_on(student.build(18, 3), values, draw.normal(B, 1, 18), draw)
    with expect.stage("all further positions"):
        _reads_on(student.build(18, 3), plain, draw.normal(2, 5, 18), draw)
        if expect.stands("the first position"):
            for B, T in ((3, 4), (2, 5)):
                _reads_on(student.build(18, 3), values, draw.normal(B, T, 18), draw)
            for B, T, scale in ((1, 3, 1.0), (5, 2, 60.0)):
                with expect.care():
                    _reads_on(
                        student.build(18, 3), values, draw.normal(B, T, 18, scale=scale), draw
                    )
            _begins_anew(student, values, draw)
    with expect.stage("keys and values are remembered"):
        even = {name: value * ("W_q" not in name) for name, value in changed.items()}
        _keeps_what_was_read(student, plain, even, draw)  # all positions weigh the same
        if expect.stands("all further positions"):
            _keeps_what_was_read(student, plain, changed, draw)


def _keeps_what_was_read(student, first, then, draw):
    module, x = student.build(18, 3), draw.normal(2, 6, 18)
    module.load(first)
    for t in range(5):
        module(x[:, t : t + 1])
    module.load(then)
    what = "after new weights are loaded, what was read earlier should keep its keys and values"
    expect.close(module(x[:, 5:]), _causal(then, x, 3, old=first)[:, 5:], what)


def _without_output(values):
    """The same weights, but the last projection changes nothing."""
    changes = {"W_o.weight": torch.eye(18, dtype=F64), "W_o.bias": torch.zeros(18, dtype=F64)}
    return values | changes


def _begins_anew(student, values, draw):
    """A new module has read nothing, and its gradients flow."""
    fresh, x = student.build(18, 3), draw.normal(2, 2, 18)
    fresh.load(values)
    with expect.care("again"):
        what = "a new module knows what another one has read"
        expect.close(fresh(x[:, :1]), _causal(values, x[:, :1], 3), what)
    leaf, cotangent = x[:, 1:].clone().requires_grad_(), draw.normal(2, 1, 18)
    with torch.enable_grad():
        whole = _causal(values, torch.cat([x[:, :1], leaf], 1), 3)[:, 1:]
        (wanted,) = torch.autograd.grad((whole * cotangent).sum(), leaf)
    with expect.care("gradients"):
        _, (found,) = fresh.gradients(x[:, 1:], cotangent=cotangent)
        expect.true(found is not None, "no gradient reaches x", "None", "a gradient")
        expect.close(found, wanted, "the gradient of x is wrong")


def _reads_on(module, values, x, draw):
    """With these weights it reads ``x`` position by position, and is right at each."""
    module.load(values)
    expected = _causal(values, x, 3)
    for t in range(x.shape[1]):
        output = module(draw.strided(x[:, t : t + 1]))
        expect.shape(output, (len(x), 1, 18), axes="B, 1, d_model")
        expect.dtype(output, F64)
        places = "the first position" if t == 0 else f"position {t}, with {t} before it,"
        what = f"{places} differs from attention over the whole sequence"
        expect.close(output, expected[:, t : t + 1], what)


@check(
    without={"gradients": "a search is nothing to learn from: numbers may come out"},
    asks={"device": "Make new tensors on origin's device"},
    rests_on=(
        "each takes over that of the beam it comes from",
        "row b · K + j belongs to beam j of source b",
        "the K beams of source 0, then those of source 1",
        "which beam of the same source each new beam comes from",
    ),
)
def follow_beams(student, draw):
    """A column of numbers by hand, then loops over sources and beams."""
    # As split_heads makes it: axes exchanged, which no view can join.
    cache, origin = draw.normal(12, 5, 2, 3).transpose(1, 2), draw.integers(0, 4, 3, 4)
    origin[1] = torch.tensor([3, 3, 0, 1])
    moved = student(cache, origin)
    expect.shape(moved, (12, 2, 5, 3), axes="B · K, H, T, d_head")
    expect.dtype(moved, F64)
    got = student(_tensor([10, 11, 12, 20, 21, 22]), torch.tensor([[0, 0, 1], [2, 0, 1]]))
    what = "for rows 10, 11, 12, 20, 21, 22 and origins (0, 0, 1), (2, 0, 1) it is wrong"
    expect.close(got, _tensor([10, 10, 11, 22, 20, 21]), what)
    got = student(_tensor([10, 11, 12, 20, 21, 22]), torch.tensor([[1, 0, 1], [0, 0, 1]]))
    what = "for rows 10, 11, 12, 20, 21, 22 and origins (1, 0, 1), (0, 0, 1) it is wrong"
    expect.close(got, _tensor([11, 10, 11, 20, 20, 21]), what)
    same = student(cache, torch.arange(4).repeat(3, 1))
    expect.close(same, cache, "where every beam goes on from itself nothing should change")
    for one in (cache, draw.normal(10, 3, 1, 4), draw.integers(0, 90, 6, 8)):
        B, K = {12: (3, 4), 10: (2, 5), 6: (3, 2)}[len(one)]
        places = origin if one is cache else draw.integers(0, K, B, K)
        rows = [one[b * K + places[b, j].item()] for b in range(B) for j in range(K)]
        got = moved if one is cache else student(draw.strided(one), draw.strided(places))
        what = f"with B={B}, K={K} it differs from a loop over all beams"
        expect.close(got, torch.stack(rows), what)
    for shape in ((5, 1), (1, 5)):
        column, places = draw.normal(5, 3, scale=1000.0), torch.zeros(shape, dtype=torch.int64)
        wanted = column if shape == (5, 1) else column[:1].expand(5, 3)
        what = f"with B={shape[0]}, K={shape[1]} and origins of 0 it is wrong"
        with expect.care():
            expect.close(student(column, places), wanted, what)
