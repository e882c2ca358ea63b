"""Checks of lesson 11. The oracles are PyTorch's own losses and optimisers, and one big batch."""

import itertools
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.adamw import adamw

from attention.provided.stand_ins import ScoresOfRows
from attention.provided.training_steps import one_thread
from attention.transformer import Transformer
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check
from autograder.inside.stand_ins import STAND_IN

F64 = torch.float64
PAD = 0
SIZES = {"source_size": 9, "target_size": 11, "d_model": 12, "n_heads": 3, "d_ff": 20}


FROM_1 = "steps count from 1, and what is above an answer refuses the others"


@check(
    without={"refusals": FROM_1, "care": "numbers go in, and one number comes out"},
    rests_on=(
        "it rises in a line, then falls with 1 / √step",
        "the step at which the rate is highest, from 1",
        "factor multiplies every rate",
        "a line that rises and a curve that falls",
    ),
)
def noam_learning_rate(student, draw):
    """By hand for d_model=100 and a warm-up of 4; then a line up and 1 / √step down; factor."""
    rates = [student(step, 100, 4) for step in (1, 4, 16)]
    parts = "1", "4, the highest,", "16, which is lower again,"
    for rate, expected, part in zip(rates, (0.0125, 0.05, 0.025), parts, strict=True):
        what = f"with d_model=100, warmup_steps=4 the rate of step {part} is wrong"
        expect.close(rate, expected, what)
    d_model, warmup = draw.integers(10, 1000, 2).tolist()
    steps = 1, warmup // 2, warmup - 1, warmup, warmup + 1, 9 * warmup, 10_000 * warmup
    rates, peak = [student(step, d_model, warmup) for step in steps], (d_model * warmup) ** -0.5
    shares = [min(step / warmup, (warmup / step) ** 0.5) for step in steps]
    for step, rate, share in zip(steps, rates, shares, strict=True):
        what = f"with d_model={d_model}, warmup_steps={warmup} the rate of step {step} is wrong"
        expect.close(rate, share * peak, what)
    rates = [student(step, d_model, warmup, factor=3.0) for step in (1, 4 * warmup)]
    for rate, expected in zip(rates, (3 * peak / warmup, 1.5 * peak), strict=True):
        expect.close(rate, expected, "factor=3.0 should multiply every rate by 3")


@check(
    asks={
        "no token": "0, with a gradient of 0, if no token is real",
    },
    rests_on=(
        "Return the mean of this loss over all real tokens",
        "Where the target is PAD there is no loss, neither from the first part",
        "share of the probability that is spread evenly over the whole vocabulary",
        "0, with a gradient of 0, if no token is real",
    ),
)
def label_smoothed_loss(student, draw):
    """Log 4 by hand; padding has no say; equal to F.cross_entropy, gradients too."""
    target = torch.tensor([[3, 1, PAD]])
    loss = student(torch.zeros(1, 3, 4, dtype=F64), target)
    expect.shape(loss, ())
    expect.dtype(loss, F64)
    what = "a vocabulary of 4 with equal scores: the loss per real token should be log 4"
    expect.close(loss, torch.tensor(math.log(4), dtype=F64), what)
    logits, target = draw.normal(5, 7, 11, scale=3.0), draw.integers(1, 11, 5, 7)
    for b, length in enumerate((7, 2, 5, 1, 4)):
        target[b, length:] = PAD
    loss = student(draw.strided(logits), draw.strided(target))
    other = logits + 5 * draw.normal(5, 7, 11) * (target == PAD).unsqueeze(-1)
    what = "other scores where the target is PAD change the loss"
    expect.close(student(other, target), loss, what)

    def oracle(logits, target, smoothing=0.1):
        options = {"ignore_index": PAD, "label_smoothing": smoothing}
        return F.cross_entropy(logits.flatten(0, 1), target.flatten(), **options)

    for smoothing in (0.0, 0.1, 0.4):
        what = f"with smoothing={smoothing} the loss differs from F.cross_entropy"
        expect.close(student(logits, target, smoothing), oracle(logits, target, smoothing), what)
    what = "the default is not smoothing=0.1"
    expect.close(loss, oracle(logits, target), what)
    one = logits[:1, :1], target[:1, :1]
    with expect.care():
        expect.close(student(*one), oracle(*one), "the loss of a single token is wrong")
    far = 500 * logits
    what = "with scores of ± 1000 the loss differs from F.cross_entropy"
    expect.close(student(far, target), oracle(far, target), what)
    expect.gradients(student, oracle, logits, target, what="the gradient of the scores is wrong")
    nothing, what = torch.zeros(5, 7, dtype=torch.int64), "where no token is real the loss is 0"
    with expect.care("no token"):
        expect.close(student(logits, nothing), torch.zeros((), dtype=F64), what)
    what = "where no token is real the gradient is 0"
    with expect.care("no token"):
        expect.gradients(student, lambda logits, _: 0 * logits.sum(), logits, nothing, what=what)


@check(
    rests_on=(
        "list of lists of indices, every sentence once",
        "(of equal ones, the earlier first), each batch filled as far as it goes",
        "number of sentences × length of the longest",
        "[] if there are none",
        "Raises ValueError for a sentence that is longer than max_tokens",
    ),
    stages={
        "in the order of length": 1,
        "filled as far as it goes": 1.5,
        "a sentence too long, or none": 0.5,
    },
)
def batch_by_tokens(student, draw):
    """The order alone; every sentence once, within the budget, full; what is too long, or none."""
    drawn = draw.integers(1, 25, 90).tolist()
    cases = (([2, 3, 5, 3, 1, 5, 2], 12), ([9, 1], 12), (drawn, 60))
    with expect.stage("in the order of length"):
        for lengths, budget in cases:
            _in_order(student(lengths, budget), lengths)
    with expect.stage("filled as far as it goes"):
        for lengths, budget in cases:
            batches = student(lengths, budget)
            of = f"lengths {lengths}" if len(lengths) < 9 else "90 random lengths"
            _every_sentence_once(batches, len(lengths), of)
            _fills(batches, lengths, budget)
            if expect.stands("in the order of length"):
                what = f"{of} with max_tokens={budget} are batched differently by loops"
                expect.equal(batches, _by_loops(lengths, budget), what)
    with expect.stage("a sentence too long, or none"):
        batches = _not_refused(student, [], 60, "there are no sentences, so none is too long")
        expect.equal(batches, [], "no sentences should give no batches")
        what = "a sentence of 61 tokens does not fit into max_tokens=60: a ValueError should say so"
        expect.raises(student, ValueError, [3, 61, 5], 60, what=what)
        fits = "a sentence of 60 tokens just fits into max_tokens=60"
        several = _not_refused(student, [3, 60, 5], 60, fits)
        batches = _not_refused(student, [3, 9, 2, 5], 9, "all of these fit")
        _lists_of_indices(several, 3, fits)
        _lists_of_indices(batches, 4, "lengths 3, 9, 2, 5")
        if expect.stands("in the order of length") and expect.stands("filled as far as it goes"):
            what = "lengths 3, 9, 2, 5 with max_tokens=9 are batched wrongly"
            expect.equal(batches, [[2, 0], [3], [1]], what)
            expect.equal(several, [[0, 2], [1]], fits)


def _in_order(batches, lengths):
    """From short to long, and of equal ones the earlier first; repeated or missing ones are not."""
    found = _lists_of_indices(batches, len(lengths), "the order")
    indices = list(dict.fromkeys(found))
    enough = 2 * len(indices) >= len(lengths)
    what = "most of the sentences are in no batch"
    expect.true(enough, what, f"{len(indices)} of {len(lengths)}", "each of them once")
    for one, other in zip(indices, indices[1:], strict=False):
        what = "the sentences are not in the order of their lengths, of equal ones the earlier "
        what += "first"
        got = f"{one} of length {lengths[one]} before {other} of length {lengths[other]}"
        ordered = (lengths[one], one) < (lengths[other], other)
        expect.true(ordered, what, got, f"{other} before {one}")


def _fills(batches, lengths, budget):
    """Within the budget when padded, and closed only where one sentence more would be too many."""
    for batch, after in itertools.zip_longest(batches, batches[1:]):
        longest = max(lengths[index] for index in batch)
        what = f"a batch is larger than max_tokens={budget} when it is padded"
        got = f"{len(batch)} sentences padded to {longest}: {len(batch) * longest} tokens"
        expect.true(len(batch) * longest <= budget, what, got, f"at most {budget} tokens")
        if after:
            longest = max(longest, lengths[after[0]])
            padded = (len(batch) + 1) * longest
            what = f"a batch is closed though one sentence more would fit into {budget} tokens"
            got = f"with sentence {after[0]}, {len(batch) + 1} padded to {longest}: {padded} tokens"
            expect.true(padded > budget, what, got, "batches filled as far as it goes")


def _not_refused(student, lengths, max_tokens, what):
    """The batches; says which lengths and which limit, should the answer raise."""
    raised, result = student.outcome(lengths, max_tokens=max_tokens)
    got = f"{raised}: {result}"
    case = f"lengths={lengths}, max_tokens={max_tokens}"
    expect.true(raised is None, f"{case}: {what}", got, "a list of batches")
    return result


def _lists_of_indices(batches, n, of):
    """All indices, in the order in which they stand in lists of some of 0 … n-1."""
    fits = isinstance(batches, list) and all(
        isinstance(batch, list) and all(type(index) is int for index in batch) for batch in batches
    )
    expected = "a list of lists of indices"
    expect.true(fits, "the result is no list of batches", expect.describe(batches), expected)
    found = [index for batch in batches for index in batch]
    strange = [index for index in found if not 0 <= index < n]
    known = f"indices from 0 to {n - 1}"
    expect.true(not strange, f"{of}: a number is no index", f"{strange[:3]}", known)
    expect.true(found, f"{of}: there is no sentence in any batch", "none", "sentences")
    return found


def _every_sentence_once(batches, n, of):
    """Lists of ints, in which each of 0 … n-1 stands once."""
    found = sorted(_lists_of_indices(batches, n, of))
    twice = sorted({index for index in found if found.count(index) > 1})
    expect.true(not twice, f"{of}: a sentence is in two batches", f"{twice[:3]} twice", "each once")
    missing = [index for index in range(n) if index not in found]
    expect.true(not missing, f"{of}: a sentence is in no batch", f"no {missing[:3]}", "each once")
    empty = [batch for batch in batches if not batch]
    expect.true(not empty, f"{of}: a batch is empty", "[]", "at least one sentence in each")


def _by_loops(lengths, max_tokens):
    """Take the shortest sentence that is left, as long as it fits."""
    left, batches = list(range(len(lengths))), []
    while left:
        batch, longest = [], 0
        while left:
            shortest = min(left, key=lambda index: (lengths[index], index))
            longest = max(longest, lengths[shortest])
            if longest * (len(batch) + 1) > max_tokens:
                break
            batch.append(shortest)
            left.remove(shortest)
        batches.append(batch)
    return batches


@check(
    without={"gradients": "gradients go in, after backward: nothing is differentiated again"},
    rests_on=(
        "Undo the loss's scale, then shorten all gradients together",
        "the largest norm that all of them, seen as one long vector, may have",
        "list of tensors of any shapes",
        "list of new tensors, shaped like the gradients",
    ),
)
def clip_gradients(student, draw):
    """Norm 5 by hand; short ones stay; equal to clip_grad_norm_; the scale is undone first."""
    pair = [torch.tensor(numbers, dtype=F64) for numbers in ([2.0, 1.0], [2.0, 4.0])]
    halves = [0.5 * gradient for gradient in pair]
    _gradients(student(pair, max_norm=2.5), halves, "[2, 1] and [2, 4], of norm 5, to 2.5")
    _gradients(student(pair, max_norm=6.0), pair, "[2, 1] and [2, 4], of norm 5, at most 6")
    zeros = [torch.zeros(2, 3, dtype=F64), torch.zeros(4, dtype=F64)]
    _gradients(student(zeros, 1.0), zeros, "gradients that are all 0")
    lone = [torch.tensor(-8.0, dtype=F64)]
    _gradients(student(lone, 2.0), [lone[0] / 4], "one tensor without axes, -8, to 2")
    drawn = [draw.normal(5, 7, scale=2.0), draw.normal(3, scale=9.0), draw.normal(2, 1, 6)]
    for max_norm in (2.0, 0.3, 1e4):
        got = student([draw.strided(gradient) for gradient in drawn], max_norm)
        what = f"three tensors with max_norm={max_norm}"
        _gradients(got, _clipped(drawn, max_norm), what)
    single = [draw.normal(3, 1, scale=500.0)]
    _gradients(student(single, 1.0), _clipped(single, 1.0), "one tensor with max_norm=1.0")
    scaled = [1024 * gradient for gradient in drawn]
    for max_norm in (1e9, 2.0):
        got = student([draw.strided(gradient) for gradient in scaled], max_norm, loss_scale=1024.0)
        _gradients(got, _clipped(drawn, max_norm), f"loss_scale=1024, max_norm={max_norm}")


def _gradients(got, expected, case):
    fits = isinstance(got, list | tuple) and len(got) == len(expected)
    names = f"a list of {len(expected)} tensors"
    expect.true(fits, f"{case}: the result is no such list", expect.describe(got), names)
    for number, (one, wanted) in enumerate(zip(got, expected, strict=True)):
        expect.shape(one, wanted.shape)
        expect.dtype(one, F64)
        expect.finite(one, f"{case}: tensor {number} is not finite")
        expect.close(one, wanted, f"{case}: tensor {number} is wrong", rtol=1e-5)


def _clipped(gradients, max_norm):
    """What torch.nn.utils makes of them."""
    parameters = [nn.Parameter(torch.zeros_like(gradient)) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, max_norm)
    return [parameter.grad for parameter in parameters]


@check(
    without={"gradients": "an optimiser takes its step outside of the graph", "refusals": FROM_1},
    rests_on=(
        "Take one step of Adam with decoupled weight decay",
        "running means of the gradient and of its square, of that shape; zeros",
        "shrinks the weight itself, and passes through neither mean",
        "Both means begin at 0, so at first they are too small",
        "learning_rate, betas, eps, weight_decay as in torch.optim.AdamW",
    ),
)
def adamw_step(student, draw):
    """The first step by hand; no gradient, only decay; then several steps of PyTorch's AdamW."""
    zero = torch.zeros(1, dtype=F64)
    result = student(zero + 1, zero + 5, zero, zero, 1, learning_rate=0.1)
    later = student(zero + 1, zero, zero + 2, zero + 4, 7, learning_rate=0.1)
    parameter, m, v = _three(result)
    what = "the first step should go as far as the learning rate: 1 - 0.1"
    expect.close(parameter, zero + 0.9, what)
    expect.close(m, zero + 0.5, "after a first gradient of 5, m is wrong")
    expect.close(v, zero + 0.5, "after a first gradient of 5, v is wrong")
    _, m, v = _three(later)
    expect.close(m, zero + 1.8, "with m=2 and a gradient of 0, m should be 0.9 · 2")
    expect.close(v, zero + 3.92, "with v=4 and a gradient of 0, v should be 0.98 · 4")
    result = student(zero + 1, zero, zero, zero, 1, learning_rate=0.1, weight_decay=0.5)
    what = "without a gradient, weight_decay=0.5 at learning rate 0.1 should leave 0.95 of 1"
    expect.close(_three(result)[0], zero + 0.95, what)
    for options in (
        {"learning_rate": 0.1},
        {"learning_rate": 0.2, "betas": (0.7, 0.8), "eps": 0.3},
        {"learning_rate": 0.2, "betas": (0.7, 0.8), "eps": 0.3, "weight_decay": 0.4},
    ):
        _steps(student, draw, options)
    with expect.care():
        _late(student, draw)


def _late(student, draw):
    """Step 3000, with gradients of 1000: the corrections have faded, nearly."""
    parameter, gradient, m = (
        draw.normal(2, 3, 1),
        draw.normal(2, 3, 1, scale=1e3),
        draw.normal(2, 3, 1),
    )
    v = draw.uniform(2, 3, 1, low=1.0, high=1e6)
    got = _three(student(parameter, gradient, m, v, 3000, 0.3, betas=(0.9, 0.999)))
    expected_m, expected_v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
    way = 0.3 * expected_m / (expected_v / (1 - 0.999**3000)).sqrt()
    for name, one, wanted in zip(
        ("the parameter", "m", "v"), got, (parameter - way, expected_m, expected_v), strict=True
    ):
        expect.close(one, wanted, f"at step 3000, with gradients of about 1000, {name} is wrong")


def _three(result):
    fits = isinstance(result, tuple | list) and len(result) == 3
    names = "(parameter, m, v)"
    expect.true(fits, "the result is not a triple", expect.describe(result), names)
    return result


def _steps(student, draw, options):
    ours = [draw.normal(5, 3), torch.zeros(5, 3, dtype=F64), torch.zeros(5, 3, dtype=F64)]
    theirs, count = [tensor.clone() for tensor in ours], torch.tensor(0.0)
    settings = {"eps": 1e-9, "weight_decay": 0.0, "betas": (0.9, 0.98)} | options
    beta1, beta2 = settings.pop("betas")
    settings |= {"lr": settings.pop("learning_rate"), "beta1": beta1, "beta2": beta2}
    shown = ", ".join(f"{name}={value}" for name, value in options.items())
    for step in range(1, 5):
        gradient = draw.normal(5, 3, scale=2.0)
        ours = _three(student(ours[0], draw.strided(gradient), *ours[1:], step, **options))
        lists = [[tensor] for tensor in (theirs[0], gradient, *theirs[1:])]
        adamw(*lists, [], [count], foreach=False, amsgrad=False, maximize=False, **settings)
        for name, got, expected in zip(("the parameter", "m", "v"), ours, theirs, strict=True):
            what = f"{shown}: after step {step}, {name} differs from torch.optim.AdamW"
            expect.close(got, expected, what)


def _weights(draw, scale=0.4, **options):
    """A Transformer of one layer in float64 with random weights, and the weights by name."""
    model = Transformer(**SIZES, n_layers=1, **options).double()
    values = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            parameter.copy_(centre + draw.normal(*parameter.shape, scale=scale))
            values[f"model.{name}"] = parameter.clone()
    return model, values


def _batches(draw, *shapes):
    """Padded batches; a shape is (lengths of the sources, lengths of the targets)."""
    pairs = [(_ids(draw, 9, sources), _ids(draw, 11, targets)) for sources, targets in shapes]
    return [(draw.strided(source), draw.strided(target)) for source, target in pairs]


def _ids(draw, size, lengths):
    ids = draw.integers(1, size, len(lengths), max(lengths))
    return ids.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], PAD)


def _one_batch(batches):
    """All pairs in one padded batch."""
    sides = zip(*batches, strict=True)
    rows = [[row for tensor in side for row in tensor] for side in sides]
    return [nn.utils.rnn.pad_sequence(side, batch_first=True) for side in rows]


def _loss(model, batches, smoothing):
    """The mean over all real tokens, each of which counts the same."""
    source, target = _one_batch(batches)
    with torch.enable_grad():
        logits = model(source, target).flatten(0, 1)
        options = {"ignore_index": PAD, "label_smoothing": smoothing}
        return F.cross_entropy(logits, target.flatten(), **options)


def _descend(model, batches, smoothing, max_norm=math.inf, rate=0.1, momentum=0.0, moves=None):
    """One step of gradient descent on one big batch; returns the loss before it.

    ``moves`` are the sums that the momentum adds up, from step to step.
    """
    parameters = list(model.parameters())
    moves = [torch.zeros_like(one) for one in parameters] if moves is None else moves
    loss = _loss(model, batches, smoothing)
    gradients = torch.autograd.grad(loss, parameters)
    norm = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
    with torch.no_grad():
        for parameter, move, gradient in zip(parameters, moves, gradients, strict=True):
            move.mul_(momentum).add_(min(1.0, max_norm / norm) * gradient)
            parameter -= rate * move
    return loss.detach()


# 4 real target tokens, then 12: shares of 16 are exact, in float32 as in float64.
FEW = ([4, 6], [1, 3]), ([3, 1, 2], [4, 3, 5])
SMALL = {"scale": 0.1, "smoothing": 0.9, "max_norm": 1e6}  # gradients shorter than 1


@check(
    without={
        "gradients": "the loss that comes back is detached",
        "again": "every call changes the model",
        "large": "ids go in",
    },
    asks={
        "no token": "0, with gradients of 0, if no token is real",
    },
    rests_on=(
        "as if they were one big batch",
        "Learn from the batches, in one step and in training mode",
        "the loss per real token over all batches, before the step, detached",
        "0, with gradients of 0, if no token is real",
        "the gradients, as one long vector, are shortened to this norm",
    ),
    stages={
        "one batch": 0.5,
        "several batches and steps": 1.5,
        "the loss returned": 0.5,
        "clipping and training mode": 0.5,
    },
)
@one_thread()  # matrices are tiny, and threads wait for each other where a machine is busy
def TrainStep(student, draw):  # noqa: N802, the name of the exercise
    """Equal to gradient descent on one big batch, twice; clipped; in training mode; detached."""
    losses = {}  # by what is to be said of them: those that came, and those that should
    with expect.stage("one batch"):
        _steps_from_one(student, draw, losses)
    with expect.stage("several batches and steps"):
        several, single = _steps_from_several(student, draw)
    stands = expect.stands("several batches and steps")
    losses |= several if stands else {}
    losses |= several if stands else {}
    with expect.stage("clipping and training mode"):
        _clips(student, draw, FEW if stands else FEW[1:], losses)
        _trains_with_dropout(student, draw, losses)
    with expect.stage("the loss returned"):
        _returns_the_loss(student, draw, losses)
        if stands:
            with expect.care():
                what = "a batch of a single token: the loss of the third step is wrong"
                expect.close(*single, what)


def _trained(student, draw, *options, dropout=0.0, scale=0.4, **more):
    """A module with random weights, the model that it should become, and the weights by name."""
    sizes = SIZES | {"n_layers": 1, "dropout": dropout}
    module = student.build(sizes, *options, **more)
    model, values = _weights(draw, scale, dropout=dropout)
    module.load(values)
    return module, model, values


def _steps_from_one(student, draw, losses):
    module, model, values = _trained(student, draw, {"lr": 0.15}, **SMALL)
    batches = _batches(draw, *FEW[1:])
    what = "a batch of 12 tokens: the loss is not the mean over these, before the step"
    losses[what] = module(batches), _descend(model, batches, 0.9, rate=0.15)
    moved = any((module.parameters()[name] != value).any() for name, value in values.items())
    what = "no parameter has moved"
    expect.true(moved, what, "parameters as before", "one step of the optimizer")
    _same_place(module, model, "after a step from one batch")


def _steps_from_several(student, draw):
    """With momentum, which remembers; returns the losses, and that of a single token."""
    options, losses = {"lr": 0.15, "momentum": 0.7}, {}
    module, model, _ = _trained(student, draw, options, **SMALL)
    moves = [torch.zeros_like(one) for one in model.parameters()]
    used = {"smoothing": 0.9, "rate": 0.15, "momentum": 0.7, "moves": moves}
    batches = _batches(draw, *FEW)
    what = "two batches of 4 and 12 tokens: the loss is not the mean over these 16, before the step"
    losses[what] = module(batches), _descend(model, batches, **used)
    _same_place(module, model, "after a step from two batches")
    batches = _batches(draw, ([5, 3], [4, 6]), ([6], [2]), ([2, 2], [1, 3]))
    what = "three other batches: the loss of the second step is wrong"
    losses[what] = module(batches), _descend(model, batches, **used)
    _same_place(module, model, "after a second step, from three other batches")
    batches = _batches(draw, ([3], [1]))
    single = module(batches), _descend(model, batches, **used)
    with expect.care():
        _same_place(module, model, "after a third step, from a batch of a single token")
    return losses, single


def _clips(student, draw, shapes, losses):
    module, model, values = _trained(student, draw, smoothing=0.2, max_norm=0.05)
    batches = _batches(draw, *shapes)
    what = "with max_norm=0.05 the loss is wrong"
    losses[what] = module(batches), _descend(model, batches, 0.2, 0.05)
    after = module.parameters()
    way = math.sqrt(sum((after[name] - values[name]).square().sum().item() for name in values))
    what = "with max_norm=0.05 and a learning rate of 0.1 the step has the wrong length"
    expect.close(way, 0.005, what, rtol=1e-4)
    _same_place(module, model, "after a step with max_norm=0.05")


def _trains_with_dropout(student, draw, losses):
    """With a probability of 1, what dropout does is not random."""
    module, model, _ = _trained(student, draw, smoothing=0.2, max_norm=0.05, dropout=1.0)
    module.eval()
    batches = _batches(draw, *FEW[1:])
    loss, expected = module(batches), _descend(model.train(), batches, 0.2, 0.05)
    what = "called in evaluation mode, where it should train with dropout all the same"
    _same_place(module, model, what)
    losses["with dropout=1.0 the loss is wrong"] = loss, expected


def _returns_the_loss(student, draw, losses):
    expect.true(losses, "no loss comes back")
    for what, (loss, expected) in losses.items():
        expect.shape(loss, ())
        expect.dtype(loss, F64)
        expect.close(loss, expected, what)
    module, model, _ = _trained(student, draw, smoothing=0.2)
    what = "the loss that is returned remembers how it was computed, and holds memory for it"
    batches = _batches(draw, *FEW)
    nothing = [(source, torch.zeros_like(target)) for source, target in batches]
    expect.true(not _remembers(module, batches), what, "a loss with a history", "a detached loss")
    module, model, _ = _trained(student, draw, smoothing=0.2)
    with expect.care("no token"):
        what = "where no token is real the loss should be 0"
        expect.close(module(nothing), torch.zeros((), dtype=F64), what)
        _same_place(
            module, model, "after a step without a real token, which should change nothing,"
        )


def _remembers(module, batches):
    """Whether a gradient could be asked for, even if it went with the step's own `backward`."""
    try:
        by_name, _ = module.gradients(batches)
    except expect.CheckFailed:  # the same call has just worked: backward a second time does not
        return True
    return any(gradient is not None for gradient in by_name.values())


def _same_place(module, model, when):
    after = module.parameters()
    for name, expected in model.named_parameters():
        what = f"{when}, {name} is not where one big batch leads"
        expect.close(after[f"model.{name}"], expected.detach(), what)


@check(
    without={"gradients": "the loss is computed without gradients", "large": "ids go in"},
    asks={
        "no token": "If no token is real, it is 0",
    },
    rests_on=(
        "the loss per real token over all batches, (): without dropout or gradients",
        "on text that it does not learn from",
        "0 gives the plain cross-entropy",
        "If no token is real, it is 0",
    ),
)
@one_thread()
def Evaluation(student, draw):  # noqa: N802, the name of the exercise
    """Without dropout the mean over the tokens of one big batch; no gradients, no changes."""
    module = student.build(SIZES | {"n_layers": 1, "dropout": 1.0}, smoothing=0.2)
    model, values = _weights(draw, dropout=1.0)
    module.load(values)
    model.eval()
    module.train()
    batches = _batches(draw, ([4, 6], [5, 5]))
    loss = module(batches)
    expect.shape(loss, ())
    expect.dtype(loss, F64)
    what = "one batch of 10 tokens, in training mode before: the loss without dropout is wrong"
    expect.close(loss, _loss(model, batches, 0.2).detach(), what)
    batches = _batches(draw, *FEW, ([2, 5], [9, 7]))
    what = "batches of 4, 12 and 16 tokens: the loss is not the mean over these 32"
    expect.close(module(batches), _loss(model, batches, 0.2).detach(), what)
    with expect.care():
        single = [*batches[:2], *_batches(draw, ([1], [1]))]
        what = "batches of 4, 12 and 1 tokens: the loss is not the mean over these 17"
        expect.close(module(single), _loss(model, single, 0.2).detach(), what)
    by_name, _ = module.gradients(batches)
    kept = [name for name, gradient in by_name.items() if gradient is not None]
    what = "the loss remembers how it was computed, which costs memory: nobody learns from it"
    expect.true(not kept, what, f"a gradient for {kept[0]}" if kept else "", "no gradients")
    table = draw.normal(11, 11)
    watchful = student.build({STAND_IN: "ScoresOfRows", "table": table})
    wanted = _loss(ScoresOfRows(table), batches, 0.0).detach()
    what = "PyTorch keeps what it would need for gradients from batch to batch, which costs memory"
    right = torch.allclose(watchful(batches).to(wanted), wanted)  # a lost precision is care
    expect.true(right, what, "the graphs of several batches in memory", "none")
    after = module.parameters()
    for name, value in values.items():
        expect.close(after[name], value, f"evaluation changes {name}")
    module = student.build(SIZES | {"n_layers": 1, "dropout": 1.0})
    module.load(values)
    what = "smoothing is 0 by default: the loss differs"
    expect.close(module(batches), _loss(model, batches, 0.0).detach(), what)
    batches = [(source, torch.zeros_like(target)) for source, target in batches]
    with expect.care("no token"):
        what = "where no token is real the loss should be 0"
        expect.close(module(batches), torch.zeros((), dtype=F64), what)
