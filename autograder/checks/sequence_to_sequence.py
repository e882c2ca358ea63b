"""Checks of lesson 02. The oracles are PyTorch's GRU, with the weights copied, and plain loops."""

import math

import torch
from torch import nn
from torch.nn import functional

from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.stand_ins import AddsWords, Descent, read_once, token_loss
from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check
from autograder.inside.stand_ins import STAND_IN

F64 = torch.float64


def _tensor(rows):
    return torch.tensor(rows, dtype=F64)


def _gru_weights(draw, d_x, d, scale=1.0):
    """W_x, W_h, b_x, b_h of a GRU."""
    return (
        draw.normal(3 * d, d_x, scale=scale),
        draw.normal(3 * d, d, scale=scale),
        draw.normal(3 * d, scale=scale),
        draw.normal(3 * d, scale=scale),
    )


def _gru_by_hand(x, h, W_x, W_h, b_x, b_h):
    """One GRU step for one example, number by number."""
    d = len(h)

    def dot(weights, vector):
        return math.fsum(w * v for w, v in zip(weights, vector, strict=True))

    gate = [[dot(W_x[g * d + i], x) + b_x[g * d + i] for i in range(d)] for g in range(3)]
    back = [[dot(W_h[g * d + i], h) + b_h[g * d + i] for i in range(d)] for g in range(3)]
    new = []
    for i in range(d):
        r = 1 / (1 + math.exp(-gate[0][i] - back[0][i]))
        z = 1 / (1 + math.exp(-gate[1][i] - back[1][i]))
        n = math.tanh(gate[2][i] + r * back[2][i])
        new.append((1 - z) * n + z * h[i])
    return new


@check(
    rests_on=(
        "Write one step for a whole batch.",
        "rows 0..d-1 make the reset gate r, the next d rows the update",
        "n = tanh(W_xn x + b_xn + r · (W_hn h + b_hn))",
        "next state = (1 - z) · n + z · h",
        "in the form and the order of gates of torch.nn.GRUCell",
    ),
    stages={"the update gate": 1, "the reset gate": 1, "the biases": 1},
)
def gru_step(student, draw):
    """Gate by gate, then all of it against nn.GRUCell with the weights copied, and by hand."""
    x, h = draw.normal(2, 3), draw.normal(2, 6)
    weights = _gru_weights(draw, 3, 6)
    with expect.stage("the update gate"):
        _is_between(student(x, h, *weights), h)
        _keeps_and_replaces(student, draw)
    with expect.stage("the reset gate"):
        _resets_the_past(student, draw)
    with expect.stage("the biases"):
        _adds_the_biases(student, draw)
        if expect.stands("the update gate") and expect.stands("the reset gate"):
            _mixes_by_hand(student)
            _is_a_gru(student, draw, x, h, weights)


def _is_between(state, h):
    """A state of floating-point numbers, each between -1 and 1 or near the old one."""
    expect.shape(state, (2, 6), axes="B, d")
    expect.dtype(state, F64)
    low, high = h.clamp(max=-1.0), h.clamp(min=1.0)
    outside = (~((state >= low - 1e-6) & (state <= high + 1e-6))).nonzero().tolist()
    for row, i in outside[:1]:
        shown = f"[{row}, {i}] = {state[row, i]:.6g}, and the old state there is {h[row, i]:.6g}"
        what = "a number of the new state lies neither between -1 and 1 nor near the old one"
        expect.true(False, what, shown, f"from {low[row, i]:.6g} to {high[row, i]:.6g}")


def _without_biases(student, x, h, W_x, W_h, what):
    """A step whose biases are 0, next to PyTorch's."""
    none = torch.zeros(len(W_x), dtype=F64)
    expected = torch.gru_cell(x, h, W_x, W_h, none, none)
    expect.close(student(x, h, W_x, W_h, none, none), expected, what)


def _keeps_and_replaces(student, draw):
    """Only z has weights for h, and r is 1: whatever r multiplies stays as it is."""
    W_x, W_h = draw.normal(12, 3), draw.normal(12, 4)
    W_x[:4], W_h[:4], W_h[8:] = 100.0, 0.0, 0.0
    what = "with r = 1 and no biases the mixture of n and h, by z, is wrong"
    _without_biases(student, draw.uniform(2, 3, low=0.2), draw.normal(2, 4), W_x, W_h, what)


def _resets_the_past(student, draw):
    """No weights for z: it is 1/2, and the mixture the same either way round."""
    W_x, W_h = draw.normal(12, 3), draw.normal(12, 4)
    W_x[4:8], W_h[4:8] = 0.0, 0.0
    what = "with z = 1/2 and no biases the candidate n, with its reset gate r, is wrong"
    _without_biases(student, draw.normal(2, 3), draw.normal(2, 4), W_x, W_h, what)


def _adds_the_biases(student, draw):
    """W_x and W_h are 0, both biases of a gate cancel, so r = z = 1/2, and n is 1 by its bias."""
    nothing, h, biases = torch.zeros(12, 2, dtype=F64), draw.normal(2, 4), draw.normal(12)
    of_h = -biases
    biases[8:], of_h[8:] = 60.0, 0.0
    state = student(nothing[:2], h, nothing, torch.zeros(12, 4, dtype=F64), biases, of_h)
    what = "with biases b_x and b_h that make r = z = 1/2 and n = 1 the state is wrong"
    expect.close(state, (1 + h) / 2, what)


def _mixes_by_hand(student):
    """W and x are 0: only the biases count. z = sigmoid(log 3) = 3/4, r = 1/2, n = tanh(b)."""
    zeros = torch.zeros(6, 2, dtype=F64)
    b_x = _tensor([0.0, 0.0, math.log(3), math.log(3), 0.5, -0.2])
    by_hand = student(zeros[:1], _tensor([[2.0, -4.0]]), zeros, zeros, b_x, torch.zeros(6).to(F64))
    expected = _tensor([[0.25 * math.tanh(0.5) + 1.5, 0.25 * math.tanh(-0.2) - 3.0]])
    expect.close(by_hand, expected, "with z = 3/4 everywhere the mixture of n and h is wrong")


def _is_a_gru(student, draw, x, h, weights):
    lists = [item.tolist() for item in weights]
    rows = zip(x.tolist(), h.tolist(), strict=True)
    expected = _tensor([_gru_by_hand(*row, *lists) for row in rows])
    what = "the state differs from a step worked out number by number"
    expect.close(student(x, h, *weights), expected, what)

    cell = nn.GRUCell(3, 5, dtype=F64)
    weights = _gru_weights(draw, 3, 5)
    x, h = draw.normal(7, 3), draw.normal(7, 5)
    with torch.no_grad():
        for parameter, value in zip(cell.parameters(), weights, strict=True):
            parameter.copy_(value)
        state = student(draw.strided(x), draw.strided(h), *map(draw.strided, weights))
        expect.close(state, cell(x, h), "the state differs from nn.GRUCell with the same weights")
    with expect.care(), torch.no_grad():
        loud = student(300 * x, h, *weights)
        what = "with inputs in the hundreds, where every gate is open or shut, the state is wrong"
        expect.close(loud, cell(300 * x, h), what)
    with expect.care():
        one = x[:1, :1], h[:1, :1], *(item[:3, :1] for item in weights[:2])
        biases = [item[:3] for item in weights[2:]]  # of a state of one number
        what = "with B=1, d_x=1 and d=1 the state is wrong"
        expect.close(student(*one, *biases), torch.gru_cell(*one, *biases), what)


@check(
    asks={
        "dtype": "same shape and dtype as source",
    },
    rests_on=(
        "Reverse each sequence within its true length, and leave the padding after it.",
        "ids or vectors, filled up after the true end",
        "same shape and dtype as source",
    ),
)
def reverse_source(student, draw):
    """Every sequence reversed within its true length."""
    by_hand = student(torch.tensor([[5, 6, 7, 2], [8, 2, PAD, PAD]]), torch.tensor([4, 2]))
    expect.shape(by_hand, (2, 4), axes="B, T")
    expect.dtype(by_hand, torch.int64)
    expected = torch.tensor([[2, 7, 6, 5], [2, 8, PAD, PAD]])
    expect.close(by_hand, expected, "5 6 7 2 and 8 2 (and padding) are reversed wrongly")

    lengths = torch.tensor([3, 7, 1, 5, 6])
    rows = [draw.integers(3, 40, length).tolist() for length in lengths]
    tokens = torch.tensor([row + [PAD] * (7 - len(row)) for row in rows])
    expected = torch.tensor([row[::-1] + [PAD] * (7 - len(row)) for row in rows])
    turned = student(draw.strided(tokens), lengths)
    expect.close(turned, expected, "the sequences differ from lists reversed one by one")
    expect.close(student(turned, lengths), tokens, "reversing twice changes the sequences")
    vectors = tokens[:, :, None] * _tensor([1.0, -0.5, 2.0])
    what = "vectors (B, T, d) are reversed differently from ids (B, T)"
    expect.close(student(vectors, lengths), expected[:, :, None] * _tensor([1.0, -0.5, 2.0]), what)
    order = draw.permutation(5)
    what = "shuffling the batch changes the sequences"
    expect.close(student(tokens[order], lengths[order]), expected[order], what)
    with expect.care():
        filled = torch.where(tokens == PAD, 9, tokens)
        filled[:, 0] = PAD  # the lengths say what is padding, not the ids
        what = "with ids that are PAD within the length, and others after it, the result is wrong"
        expect.close(student(filled, lengths), _turned(filled, lengths), what)
    with expect.care():
        noisy = draw.normal(5, 7, 3, scale=200.0)  # padding that is not 0, and numbers that are
        noisy[0, 1] = 0.0
        what = "vectors with other numbers than 0 after the end are reversed wrongly"
        expect.close(student(noisy, lengths), _turned(noisy, lengths), what)
    for rows, steps in ((1, 3), (2, 1)):
        with expect.care():
            what = f"with B={rows} and T={steps} the sequences are reversed wrongly"
            turned = student(tokens[:rows, :steps], lengths[:rows].clamp(max=steps))
            expect.close(turned, tokens[:rows, :steps].flip(1), what)


def _turned(source, lengths):
    """Every row reversed within its length, whatever stands behind it."""
    rows = zip(source, lengths.tolist(), strict=True)
    return torch.stack([torch.cat([row[:n].flip(0), row[n:]]) for row, n in rows])


@check(
    rests_on=(
        "neither over padding, nor sequence by sequence",
        "scores of any size, before the softmax",
        "positions with PAD do not count",
        "one mean over all true tokens of the batch, in nats",
        "one token of four: log 4",
    ),
)
def masked_cross_entropy(student, draw):
    """Mean of -log p over true tokens; the oracles are a loop over numbers, and PyTorch's."""
    _averages_by_hand(student)
    logits, target = draw.normal(4, 7, 6, scale=5.0), draw.integers(1, 6, 4, 7)
    full = torch.where(target <= EOS, target + 2, target)
    loss = student(draw.strided(logits), full)
    expect.shape(loss, ())
    expect.true(bool(loss >= 0), "the loss is negative", f"{loss.item():.4g}", "at least 0")
    what = "of four sequences without padding the loss differs from a loop over all tokens"
    expect.close(loss, _over_tokens(logits, full), what)
    for row, length in enumerate((7, 2, 5, 3)):
        target[row, length:] = PAD
    target[3, :3] = torch.tensor([EOS, BOS, BOS])  # tokens like others
    target[0, 2], target[2] = PAD, PAD  # in the middle, and a row without any token
    _leaves_padding_out(student, draw, logits, target)
    loud = 600 * logits
    loss = student(loud, target)
    expect.finite(loss, "with logits in the thousands the loss is not a number")
    what = "with logits in the thousands the loss is wrong"
    expect.close(loss, _with_pytorch(loud, target), what)
    for rows, steps in ((1, 2), (2, 1)):
        one = logits[:rows, :steps], target[:rows, :steps]
        with expect.care():
            what = f"with B={rows} and T={steps} the loss is wrong"
            expect.close(student(*one), _with_pytorch(*one), what)


def _averages_by_hand(student):
    """p(true) is 1/2 for the only token of row 0, 1/4 and 1/8 for the two of row 1."""
    logits = torch.zeros(2, 3, 5, dtype=F64)
    logits[0, 0, 3], logits[1, 0, 4] = math.log(4), math.log(4 / 3)
    logits[1, 1, 3] = math.log(4 / 7)
    logits[0, 1:, PAD], logits[1, 2, PAD] = 3.0, -2.0
    loss = student(logits, torch.tensor([[3, PAD, PAD], [4, 3, PAD]]))
    expect.shape(loss, ())
    expect.dtype(loss, F64)
    what = "with p(true token) = 1/2, 1/4 and 1/8 the loss is not the mean of log 2, log 4, log 8"
    expect.close(loss, _tensor(2 * math.log(2)), what)


def _over_tokens(logits, target):
    """The mean in a loop over numbers."""
    total = [
        math.log(math.fsum(map(math.exp, scores))) - scores[token]
        for row, tokens in zip(logits.tolist(), target.tolist(), strict=True)
        for scores, token in zip(row, tokens, strict=True)
        if token != PAD
    ]
    return _tensor(math.fsum(total) / len(total))


def _with_pytorch(logits, target):
    return functional.cross_entropy(logits.transpose(1, 2), target, ignore_index=PAD)


def _leaves_padding_out(student, draw, logits, target):
    loss = student(draw.strided(logits), draw.strided(target))
    expected = _over_tokens(logits, target)
    expect.close(loss, expected, "the loss differs from a loop over the true tokens")
    longer = functional.pad(logits, (0, 0, 0, 3), value=1.0), functional.pad(target, (0, 3))
    expect.close(student(*longer), expected, "three more columns of padding change the loss")
    what = "for a single token, with four equal scores, the loss is not log 4"
    one = torch.zeros(1, 2, 4, dtype=F64), torch.tensor([[3, PAD]])
    expect.close(student(*one), _tensor(math.log(4)), what)
    with expect.care():
        one = torch.zeros(1, 1, 4, dtype=F64), torch.tensor([[3]])
        expect.close(student(*one), _tensor(math.log(4)), what)


@check(
    without={
        "float32": "the losses are Python's floats, whatever the model computes in",
        "gradients": "floats have none",
        **dict.fromkeys(
            ("device", "ones", "large", "strided"), "the model and its batches are there already"
        ),
    },
    rests_on=(
        "Take one step of training for each batch, and return the loss of every batch.",
        "the loss of each batch, before the step taken on it",
        "a list of floats",
        "can be read only once",
    ),
    stages={"the losses": 1, "the steps": 2},
)
def train(student, draw):
    """Against gradient descent written out, and a loss that adds up number by number."""
    weights = draw.normal(9, 3), draw.normal(7, 3), draw.normal(7, 3, scale=2.0)
    batches = [_pairs(draw, B, T_k, T_q) for B, T_k, T_q in ((2, 3, 4), (4, 2, 5), (3, 4, 3))]
    with expect.stage("the losses"):
        losses = _trained(student, weights, batches, 0.0)
        fits = all(type(loss) is float for loss in losses)
        what = "a loss is no float: loss.item() is, and lets go of all that the batch computed"
        expect.true(fits, what, expect.describe(losses), "a list of floats")
        what = "with a learning rate of 0 the losses of three batches are wrong"
        expect.close(_tensor(losses), _descent(weights, batches, 0.0), what)
    with expect.stage("the steps"):
        for what, some in (
            ("after a step on the first batch the loss of the second is wrong", batches[:2]),
            ("from the third time on the loss of one and the same batch is wrong", batches[:1] * 5),
            ("of six batches the later losses are wrong", batches * 2),
        ):
            losses = _tensor(list(map(float, _trained(student, weights, some, 0.3))))
            expect.close(losses[1:], _descent(weights, some, 0.3)[1:], what)
        with expect.care():
            none = _trained(student, weights, [], 0.3)
            expect.true(len(none) == 0, "without a batch there is a loss", len(none), "none")


def _pairs(draw, B, T_k, T_q):
    """Source, lengths and target of a batch, with padding on either side."""
    source, target = draw.integers(3, 9, B, T_k), draw.integers(3, 7, B, T_q)
    source[0, T_k - 1 :], target[1, T_q - 2 :] = PAD, PAD
    target[0, T_q - 1], target[1, T_q - 3] = EOS, EOS
    lengths = torch.full((B,), T_k)
    lengths[0] -= 1
    return source, lengths, target


def _trained(student, weights, batches, rate):
    """The list of losses that a student's loop returns."""
    named = dict(zip(("source", "target", "columns"), weights, strict=True))
    losses = student(
        {STAND_IN: AddsWords.__name__, **named},
        {STAND_IN: read_once.__name__, "batches": batches},
        {STAND_IN: Descent.__name__, "lr": rate},
        stand_ins={"masked_cross_entropy": token_loss.__name__},
    )
    fits = isinstance(losses, list | tuple) and len(losses) == len(batches)
    fits = fits and all(map(_is_number, losses))
    wanted = f"a list of {len(batches)} floats, a loss for each batch"
    expect.true(fits, "there is not one loss for each batch", expect.describe(losses), wanted)
    return losses


def _is_number(loss):
    return type(loss) is float or isinstance(loss, torch.Tensor) and loss.numel() == 1


def _descent(weights, batches, rate):
    """Every loss added up letter by letter, its gradient subtracted."""
    losses, weights = [], [one.clone().requires_grad_() for one in weights]
    for source, lengths, target in batches:
        words, letters, columns = weights
        logs = []
        for ids, length, wanted in zip(source, lengths, target, strict=True):
            known, before = words[ids[:length]].sum(0), BOS
            for letter in wanted[wanted != PAD].tolist():
                scores = columns @ torch.tanh(known + letters[before])
                logs.append(scores.logsumexp(0) - scores[letter])
                before = letter
        losses.append(torch.stack(logs).mean())
        slopes = torch.autograd.grad(losses[-1], weights)
        weights = [
            (one - rate * slope).detach().requires_grad_()
            for one, slope in zip(weights, slopes, strict=True)
        ]
    return torch.stack(losses).detach() if losses else _tensor([])


def _decoder(draw, d, d_context, vocab_size):
    """Random decoder weights."""
    W_x, W_h, b_x, b_h = _gru_weights(draw, 3 + d_context, d, scale=1.5)
    return {
        "embedding": draw.normal(vocab_size, 3, scale=2.0),
        "W_x": W_x,
        "W_h": W_h,
        "b_x": b_x,
        "b_h": b_h,
        "W_out": draw.normal(vocab_size, d + d_context, scale=3.0),
        "b_out": draw.normal(vocab_size),
    }


def _counting_decoder(also=()):
    """A decoder that writes 3 4 5 6 EOS from any state: after token t comes t + 1.

    After BOS and the tokens in ``also`` comes 3, after all others PAD.
    """
    weights = {name: torch.zeros(21, dtype=F64) for name in ("b_x", "b_h")}
    weights |= {"W_x": torch.zeros(21, 9, dtype=F64), "W_h": torch.zeros(21, 7, dtype=F64)}
    weights |= {"W_out": torch.zeros(7, 9, dtype=F64), "b_out": torch.zeros(7, dtype=F64)}
    weights["embedding"] = torch.eye(7, dtype=F64)
    weights["b_x"][7:14] = -50.0  # z = 0: the new state is n, whatever the old one was
    weights["W_x"][14:, :7] = 5 * torch.eye(7, dtype=F64)  # n is 1 where the token is, else 0
    weights["b_out"][PAD] = 0.5
    starts = [(token, 3) for token in (BOS, *also)]
    for token, after in (*starts, (3, 4), (4, 5), (5, 6), (6, EOS)):
        weights["W_out"][after, token] = 1.0
    return weights


def _write(states, contexts, weights, max_length, carry=True):
    """Greedy decoding of sequences that never wait for one another: a list of ids for each.

    It ends with EOS or at max_length. Without ``carry`` every step begins at the first state.
    """
    tokens, columns, state = torch.full((len(states),), BOS), [], states
    gates = [weights[name] for name in ("W_x", "W_h", "b_x", "b_h")]
    for _step in range(max_length):
        x = torch.cat([weights["embedding"][tokens], contexts], dim=1)
        new = torch.gru_cell(x, state, *gates)
        scores = torch.cat([new, contexts], dim=1) @ weights["W_out"].T + weights["b_out"]
        tokens = scores.argmax(1)
        state = new if carry else states
        columns.append(tokens)
    rows = torch.stack(columns, dim=1).tolist()
    return [row[: row.index(EOS) + 1] if EOS in row else row for row in rows]


def _translations(draw, max_length):
    """A decoder, 3 states and contexts, and what it writes: rows of three different lengths.

    The rows would be others without the state that is carried from step to step.
    """
    while True:
        weights = _decoder(draw, 4, 2, 7)
        states, contexts = draw.normal(12, 4, scale=2.0), draw.normal(12, 2)
        rows = {}
        with_state = _write(states, contexts, weights, max_length)
        without = _write(states, contexts, weights, max_length, carry=False)
        for state, context, row, other in zip(states, contexts, with_state, without, strict=True):
            if PAD not in row and row != other:
                rows[len(row)] = state, context, row
        # All of them end before max_length, so that whoever goes on is seen.
        lengths = sorted(length for length in rows if length < max_length)
        if len(lengths) >= 3 and lengths[1] > 1:
            shortest, middle, *_, longest = lengths
            states, contexts, written = zip(
                *(rows[n] for n in (middle, longest, shortest)), strict=True
            )
            return weights, torch.stack(states), torch.stack(contexts), list(written)


def _scored(logits, target):
    fits = isinstance(logits, torch.Tensor) and logits.dim() == 3 and logits.numel() > 0
    fits = fits and logits.is_floating_point()
    what = "logits should be a tensor of floating-point numbers, (B, T, vocab_size)"
    expect.true(fits, what, expect.describe(logits), "a tensor (B, T, vocab_size)")
    expect.finite(logits, "a logit is not a finite number")
    fits = isinstance(target, torch.Tensor) and target.dtype == torch.int64
    fits = fits and target.shape == logits.shape[:2]
    what = "target should be a tensor of whole numbers, (B, T)"
    expect.true(fits, what, expect.describe(target), f"a tensor {tuple(logits.shape[:2])} of int64")
    inside = bool(((target >= 0) & (target < logits.shape[2])).all())
    what = "a target is no id of the vocabulary"
    expect.true(inside, what, str(target.tolist()), f"from 0 to {logits.shape[2] - 1}")
    is_token = (target != PAD).int()
    ended = bool((is_token[:, 0] == 1).all() and (is_token.diff(dim=1) <= 0).all())
    what = "every sequence should have at least one token, and padding only after its tokens"
    expect.true(ended, what, str(target.tolist()), f"PAD ({PAD}) at the end of a row alone")


@check(
    without=counterexamples.WITHOUT | {"care": "an input is asked for, and no code that takes one"},
    rests_on=(
        "Find logits and targets for which it is not.",
        "finite floating-point numbers",
        "in every row at least one token, padding only after them",
    ),
)
def break_masked_cross_entropy(student, draw):
    """An input on which averages_each_sequence_first is wrong."""
    counterexamples.judge(
        student, "masked_cross_entropy", "averages_each_sequence_first", allowed=_scored
    )


@check(
    without={
        "float32": "rounded logits may choose another id: the check counts in float32 instead",
        "gradients": "ids have none",
    },
    rests_on=(
        "take the most probable letter at every step, and read it at the next",
        "a row that has ended with EOS goes on with PAD",
        "T is the number of steps until all rows have ended, at most max_length",
        "The first token read is BOS.",
    ),
    stages={
        "rows that end together": 1,
        "rows that end one by one": 1,
        "the number of steps": 1,
    },
)
def greedy_decode(student, draw):
    """Against a decoder that writes each sequence alone, without padding."""
    # Whatever the first state and the context are, it counts.
    start = draw.normal(2, 7, scale=300.0), draw.normal(2, 2), _counting_decoder()
    weights, states, contexts, rows = _translations(draw, 12)
    with expect.stage("rows that end together"):
        _counts(student, *start, 5)
        for place, row in enumerate(rows):
            twice = torch.tensor([place, place])
            written = student(states[twice], contexts[twice], weights, len(row)).tolist()
            what = f"one sequence, twice in the batch, is written wrongly, max_length={len(row)}"
            expect.true(written == [row, row], what, _rows(written), _rows([row, row]))
    with expect.stage("rows that end one by one"):
        _waits_for_the_other(student, draw)
        if expect.stands("rows that end together"):
            _translates(student, draw, weights, states, contexts, rows, max(map(len, rows)))
    with expect.stage("the number of steps"):
        _stops_in_time(student, *start[:2], _counting_decoder(also=(PAD,)))
        if expect.stands("rows that end together") and expect.stands("rows that end one by one"):
            longest = max(map(len, rows))
            for most in (12, longest - 1):
                _translates(student, draw, weights, states, contexts, rows, most)
            with expect.care():
                written = student(draw.strided(states)[:1], contexts[:1], weights, 12).tolist()
                what = "one sequence alone is written wrongly"
                expect.true(written == [rows[0]], what, _rows(written), _rows([rows[0]]))
    with expect.stage("rows that end together"), expect.care("float32"):
        single = {name: weight.float() for name, weight in start[2].items()}
        written = student(start[0].float(), start[1].float(), single, 5).tolist()
        what, counted = "in float32 a decoder that counts does not write 3 4 5 6 EOS", [3, 4, 5, 6]
        expect.true(written == [[*counted, EOS]] * 2, what, written, [[*counted, EOS]] * 2)


def _counts(student, state, context, weights, most):
    written = student(state, context, weights, most)
    expect.tensor(written)
    expect.dtype(written, torch.int64)
    expected = [[3, 4, 5, 6, EOS]] * 2
    what = "a decoder that counts from BOS up to 6 should write 3 4 5 6 EOS"
    expect.true(written.tolist() == expected, what, written.tolist(), expected)


def _waits_for_the_other(student, draw):
    """One row counts up to 6; the other writes EOS at once, and would go on doing so."""
    weights = _counting_decoder(also=(PAD,))
    weights["W_out"][EOS, 7] = 10.0  # where the context is 1
    context = _tensor([[0.0, 0.0], [1.0, 0.0]])
    written = _in_form(student(draw.normal(2, 7), context, weights, 5))
    expected = [[3, 4, 5, 6, EOS], [EOS, PAD, PAD, PAD, PAD]]
    what = "a row that writes 3 4 5 6 EOS, beside one that ends at once, is written wrongly"
    expect.true(written.tolist() == expected, what, written.tolist(), expected)


def _in_form(written):
    """Two rows, without BOS before them: that is asked where rows end together, and only there."""
    expect.tensor(written)
    if written.dim() != 2 or len(written) > 20:
        return written
    written = written.T if len(written) > 2 and written.shape[1] == 2 else written
    return written[:, 1:] if bool((written[:, :1] == BOS).all()) else written


def _stops_in_time(student, state, context, weights):
    """At max_length, or when all rows have ended: what is written is asked behind the rest."""
    for most, steps in ((9, 5), (3, 3)):
        written = _in_form(student(state, context, weights, most))
        what = f"with max_length={most} a decoder that counts 3 4 5 6 EOS takes other steps"
        expect.true(written.shape == (2, steps), what, *_steps(written, steps))
        if expect.stands("rows that end together"):
            wanted = [[3, 4, 5, 6, EOS][:steps]] * 2
            expect.true(written.tolist() == wanted, what, written.tolist(), wanted)


def _steps(written, steps):
    return f"a result of shape {tuple(written.shape)}", f"shape (2, {steps}): {steps} steps"


def _translates(student, draw, weights, states, contexts, rows, most):
    longest = max(map(len, rows))
    expected = [(row + [PAD] * (longest - len(row)))[:most] for row in rows]
    written = student(draw.strided(states), contexts, weights, most).tolist()
    what = f"three sequences, which end after {', '.join(map(str, map(len, rows)))} steps, are "
    what += f"written wrongly with max_length={most}"
    expect.true(written == expected, what, _rows(written), _rows(expected))


def _rows(written):
    return "\n".join(map(str, written))
