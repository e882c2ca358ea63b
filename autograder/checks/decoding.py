"""Checks of lesson 13. The oracles are loops over all candidates, and PyTorch's attention over
whole sequences."""

import itertools
import math

import torch
from torch.nn import functional as F

from attention.provided.stand_ins import Following
from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check
from autograder.inside.stand_ins import STAND_IN

F64 = torch.float64
PAD, BOS, EOS = 0, 1, 2
PROJECTIONS = ("W_q", "W_k", "W_v", "W_o")


def _tensor(rows):
    return torch.tensor(rows, dtype=F64)


def _several(result, number, names):
    fits = isinstance(result, tuple | list) and len(result) == number
    expect.true(fits, f"the result is not {names}", expect.describe(result), names)
    return result


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
        "including the token that reaches p",
        "up to and including the one that reaches p; all others become -inf",
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


SCORES, PLACES = "the new scores", "origins and tokens"


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
        "what MultiHeadAttention would return for this position",
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


ALIVE, ENDS, FALLS = "no sentence ends", "finished beams", "what falls out of the beam"


def _language(draw, V=6, ends=0.0):
    """(V, V, V): log-probabilities of what follows two tokens; PAD and BOS never do."""
    logits = draw.normal(V, V, V, scale=1.5)
    logits[:, :, EOS] += ends
    logits[:, :, [PAD, BOS]] = -math.inf
    return logits.log_softmax(2)


def _said(table, ids):
    """The log-probability of ids without BOS."""
    steps = zip([PAD, BOS, *ids], [BOS, *ids], ids, strict=False)
    return sum(table[step].item() for step in steps)


def _ranked_by(table, sentences):
    return sorted(sentences, key=lambda ids: -_said(table, ids))


def _grown(table, ids):
    """All that may follow: the ids with one more token, or as they are if they have ended."""
    if ids[-1:] == [EOS]:
        return [ids]
    follow = Following(table)([BOS, *ids])
    return [[*ids, v] for v in range(len(table)) if follow[v] > -math.inf]


def _kept_beams(table, K, max_length):
    """The beams after each step; whole sentences are scored anew each time."""
    steps = [[[]]]
    for _step in range(max_length):
        steps.append(
            _ranked_by(table, [new for ids in steps[-1] for new in _grown(table, ids)])[:K]
        )
    return steps[1:]


def _searches(student, table, K, max_length, what):
    """The search finds what loops find that score whole sentences anew at every step."""
    steps = _kept_beams(table, K, max_length)
    ended = [ids for beams in steps for ids in beams if ids[-1] == EOS]
    ended = [ids for place, ids in enumerate(ended) if ids not in ended[:place]]
    going_on = [ids for ids in steps[-1] if ids[-1] != EOS]
    expected = (_ranked_by(table, ended) + going_on)[:K]
    _finds(student, table, K, max_length, expected, what)


def _loses(table, K, max_length):
    """Whether a sentence that has ended leaves the beam in a later step."""
    steps = _kept_beams(table, K, max_length)
    return any(ids[-1] == EOS and ids not in steps[-1] for beams in steps for ids in beams)


def _finds(student, table, K, max_length, expected, what):
    found = student({STAND_IN: "Following", "table": table}, K, max_length)
    pairs = [_pair(one) for one in found] if isinstance(found, list | tuple) else [None]
    told = "the result should be a list of pairs, (log-probability, list of ids), the number first"
    expect.true(None not in pairs, told, expect.describe(found), "[(-1.2, [4, 2]), …]")
    what = f"{what}, with beam={K} and max_length={max_length}"
    ids = [one for _, one in pairs]
    impossible = [one for score, one in pairs if score == -math.inf]
    told = f"{what}, a sentence is found that is impossible: a log-probability in it is -inf"
    expect.true(not impossible, told, f"{impossible[:1]}", f"{expected[:4]}")
    expect.equal(ids, expected, f"{what}, the sentences are wrong")
    scores = _tensor([_said(table, one) for one in expected])
    expect.close(_tensor([score for score, _ in pairs]), scores, f"{what}, the scores are wrong")


def _pair(one):
    """A number and a list of ints, also in tensors; None if it is anything else."""
    if not isinstance(one, list | tuple) or len(one) != 2:
        return None
    score, ids = (_as_numbers(part) for part in one)
    score = score[0] if isinstance(score, list) and len(score) == 1 else score
    fits = isinstance(score, int | float) and isinstance(ids, list)
    return (score, ids) if fits and all(type(v) is int for v in ids) else None


def _as_numbers(part):
    if isinstance(part, torch.Tensor):
        return part.tolist()
    return [_as_numbers(one) for one in part] if isinstance(part, list | tuple) else part


def _two_words(rows):
    """A language in which only the last token counts: {token: {next token: probability}}."""
    table = torch.full((6, 6, 6), -math.inf, dtype=F64)
    for last, nexts in rows.items():
        for token, p in nexts.items():
            table[:, last, token] = math.log(p)
    return table


@check(
    without={
        "float32": "numbers come out, and rounding may change which of two beams is the better one",
        "gradients": "a search is nothing to learn from: numbers come out",
        "unlike": "what goes in is a function: the axes of the table behind it are all tokens",
        "ones": "what goes in is a function, and a language of one token has nothing to search",
        "strided": "what goes in is a function, which hands out numbers of its own",
        "refusals": "what is refused is in the lines that are given",
    },
    rests_on=(
        "Every unfinished beam is continued by each token that is possible",
        "A finished beam is itself a candidate, with its score unchanged",
        "The K best candidates are the new beams",
        "A beam that has just ended is also put on a list, and stays there",
        "the sentences on the list, best first",
        "the unfinished beams follow, best first",
        "-inf: impossible, no candidate",
        "a list from BOS on",
    ),
    stages={ALIVE: 1.5, ENDS: 1.5, FALLS: 1},
)
def plain_beam_search(student, draw):
    """All sentences of small languages, and whole sentences scored anew at every step."""
    with expect.stage(ALIVE):
        rows = {BOS: {3: 0.6, 4: 0.4}, 3: {3: 0.5, 4: 0.3, 5: 0.2}, 4: {3: 0.05, 5: 0.95}}
        what = "where 3 (0.6) or 4 (0.4) come first, 3, 4, 5 (0.5, 0.3, 0.2) follow 3, and 3, 5 "
        what += "(0.05, 0.95) follow 4"
        for K, expected in ((1, [[3, 3]]), (2, [[4, 5], [3, 3]]), (9, None)):
            table = _two_words(rows)
            every = _ranked_by(table, [[3, 3], [3, 4], [3, 5], [4, 3], [4, 5]])
            _finds(student, table, K, 2, expected or every, what)
        for K, most in ((1, 5), (3, 4), (40, 3)):
            what = "in a language that never ends"
            _searches(student, _language(draw, 6, -math.inf), K, most, what)
    with expect.stage(ENDS):
        what = "where 3 (0.6) or 4 (0.4) come first, and all end after them"
        table = _two_words({BOS: {3: 0.6, 4: 0.4}, 3: {EOS: 1.0}, 4: {EOS: 1.0}})
        _finds(student, table, 2, 4, [[3, EOS], [4, EOS]], what)
        what = "where EOS, 3, 4 (0.5, 0.3, 0.2) come first, 3, 4 (0.6, 0.4) after 3, and 5 after 4"
        rows = {BOS: {EOS: 0.5, 3: 0.3, 4: 0.2}, 3: {3: 0.6, 4: 0.4}, 4: {5: 1.0}}
        _searches(student, _two_words(rows), 2, 3, what)
        for K, most in ((1, 6), (2, 3), (4, 4)):
            table = _language(draw, 6, 0.5)
            while _loses(table, K, most):
                table = _language(draw, 6, 0.5)
            _searches(student, table, K, most, "where sentences end and stay in the beam")
        table, most = _language(draw, 5, 0.0), 4
        every = [[]]
        for _ in range(most):
            every = [new for ids in every for new in _grown(table, ids)]
        every.sort(key=lambda ids: (ids[-1] != EOS, -_said(table, ids)))
        what = "with room for all sentences that there are"
        _finds(student, table, len(every), most, every, what)
    with expect.stage(FALLS):
        rows = {BOS: {EOS: 0.25, 3: 0.75}, 3: {EOS: 0.2, 3: 0.42, 4: 0.38}, 4: {3: 0.4, 4: 0.6}}
        what = "where a sentence of probability 0.25 ends at once and two longer ones push it out"
        for most in (2, 3):
            _searches(student, _two_words(rows), 2, most, what)
        for K, most in ((2, 4), (3, 5)) if expect.stands(ENDS) else ():
            table = _language(draw, 6, 0.5)
            while not _loses(table, K, most):
                table = _language(draw, 6, 0.5)
            _searches(student, table, K, most, "where a finished sentence falls out of the beam")
