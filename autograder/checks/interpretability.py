"""Checks of lesson 17. Oracles: least squares, tokens that are really cut out, Jacobians, and
gradients by the weights behind the heads."""

import torch

from attention.provided.training_steps import one_thread
from attention.transformer import Encoder, Transformer, masks_from_tokens
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check

F64 = torch.float64
PAD, EOS = 0, 2
SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 20, "dropout": 0.0}
TRANSLATOR = SIZES | {"source_size": 9, "target_size": 11}
NEAR = {"rtol": 1e-5, "atol": 1e-7}  # what goes through a rank, or is cut out, rounds otherwise


def _tensor(*rows):
    return torch.tensor(rows, dtype=F64)


def _low_rank(draw, *shape, rank, faint=0.0):
    """Values of this rank; ``faint``: one more direction, so many times weaker."""
    *front, T, d = shape
    apart = torch.zeros(())  # the values from what the condition on the sum says
    while apart.min() < 0.05:
        whole = torch.linalg.qr(draw.normal(*front, T, T))[0]
        apart = (whole.sum(-2)[..., rank:].square().sum(-1) / T).sqrt() if rank < T else apart + 1
    left = whole[..., : rank + 1]
    right = torch.linalg.qr(draw.normal(*front, d, d))[0][..., : rank + 1]
    strength = torch.cat([draw.uniform(rank, low=1.0, high=3.0), _tensor(faint)])
    strength = strength[: min(left.shape[-1], right.shape[-1])]
    return (left[..., : len(strength)] * strength) @ right[..., : len(strength)].mT


@check(
    without={"gradients": "a null space has no basis that is the right one"},
    rests_on=(
        "the part of it that lies in the null space of `values`",
        "with the largest step at which no weight becomes negative",
        "the sum is 1 and the output the same",
        "Without a null space, or with a direction of 0, the weights as they are",
        "only until the first weight is 0",
    ),
    stages={"the part in the null space": 1, "the step": 1, "where nothing can change": 1},
)
def perturb_attention(student, draw):
    """By hand; then other weights with the sum and output of the old ones, and the step."""
    changes = [
        _change_to_make(draw, scale * _low_rank(draw, T, d, rank=rank))
        for T, d, rank, scale in (
            (7, 3, 3, 1), (9, 5, 5, 100), (40, 32, 32, 1), (8, 6, 2, 1), (5, 7, 3, 1)
        )
    ]  # fmt: skip
    values = _tensor([1], [2], [3])
    with expect.stage("the part in the null space"):
        got = student(_tensor(0.5, 0.1, 0.4), values, _tensor(0, -3, 0))
        expect.shape(got, (3,))
        what = "from (0.5, 0.1, 0.4), values 1, 2, 3, away from the middle: the change is wrong"
        _goes_along(got, _tensor(0.5, 0.1, 0.4), _tensor(1, -2, 1), what)
        for change in changes:
            _check_change(student, draw, *change)
    with expect.stage("the step"):
        _check_steps(student)
        if expect.stands("the part in the null space"):
            _check_ends(student, draw, values, changes)
    with expect.stage("where nothing can change"):
        _check_no_change(student, draw, values)
    with expect.stage("where nothing can change"), expect.care():
        _check_nothing(student, draw, 1, 2)
    with expect.stage("the step"), expect.care():
        if expect.stands("the part in the null space"):
            change = _change_to_make(draw, _low_rank(draw, 6, 1, rank=1))
            _check_change(student, draw, *change)
            _check_end(student, draw, *change)


def _goes_along(got, weights, change, what):
    """However far, and which way: that is the step's."""
    expect.dtype(got, F64)
    got = got.double()
    step = ((got - weights) @ change / change.square().sum()).item()
    moved = (got - weights).abs().max().item()
    expect.true(moved > 1e-4, what, f"none by more than {moved:.3g}", "a step along the change")
    expect.close(got, weights + step * change, what, **NEAR)


def _check_steps(student):
    """Where all values are equal, a direction that sums to 0 is a change as it is."""
    equal, weights = torch.ones(4, 1, dtype=F64), _tensor(0.5, 0, 0.25, 0.25)
    what = "from (0.5, 0, 0.25, 0.25), equal values, direction (-1, -1, 1, 1): a weight that would "
    what += "fall is 0 already, so the step is 0"
    expect.close(student(weights, equal, _tensor(-1, -1, 1, 1)), weights, what, **NEAR)
    what = "from (0.001, 0.199, 0.8), equal values, direction (-0.003, 1, -0.997): the first "
    what += "weight falls slowly, and is the first to be 0"
    _check_slow(student, 1, what)
    for scale in (1e-4, 1e4):
        with expect.care():
            _check_slow(student, scale, f"{what}; here the direction is {scale:g} times as long")
    what = "from (0.1, 0.6, 0.3), equal values, direction (-0.01, -1, 1.01): the larger "
    what += "weight falls faster, and is the first to be 0"
    got = student(_tensor(0.1, 0.6, 0.3), equal[:3], _tensor(-0.01, -1, 1.01))
    expect.close(got, _tensor(0.094, 0, 0.906), what, **NEAR)


def _check_ends(student, draw, values, changes):
    what = "from (0.5, 0.1, 0.4), values 1, 2, 3, towards the middle: wrong"
    got = student(_tensor(0.5, 0.1, 0.4), values, _tensor(0, 1, 0))
    expect.close(got, _tensor(0.1, 0.9, 0.0), what, **NEAR)
    what = "from (0.5, 0.1, 0.4), values 1, 2, 3, away from the middle: wrong"
    got = student(_tensor(0.5, 0.1, 0.4), values, _tensor(0, -3, 0))
    expect.close(got, _tensor(0.55, 0, 0.45), what, **NEAR)
    what = "a weight that is 0 cannot fall: the step is 0"
    weights = _tensor(0.5, 0, 0.5)
    expect.close(student(weights, values, _tensor(0, -1, 0)), weights, what, **NEAR)
    for change in changes:
        _check_end(student, draw, *change)
    values = _low_rank(draw, 8, 3, rank=3)
    weights, direction = draw.uniform(8, low=0.1), draw.normal(8)
    weights[_without_effect(values, direction).argmin()] = 0
    weights = weights / weights.sum()
    what = "with T=8 and d=3 the weight that would fall most is 0 already: the step is 0"
    expect.close(student(weights, values, direction), weights, what, **NEAR)


def _check_slow(student, scale, what):
    weights, values = _tensor(0.001, 0.199, 0.8), torch.ones(3, 1, dtype=F64)
    got = student(weights, values, scale * _tensor(-0.003, 1, -0.997))
    expect.close(got, _tensor(0, 0.199 + 1 / 3, 0.8 - 0.997 / 3), what, **NEAR)


def _check_no_change(student, draw, values):
    weights = _tensor(0.5, 0.1, 0.4)
    got = student(weights, values, _tensor(-1, 2, -1))
    expect.shape(got, (3,))
    what = "from (0.5, 0.1, 0.4), values 1, 2, 3, direction (-1, 2, -1): something can change"
    expect.true((got.double() - weights).abs().max() > 1e-3, what, "the weights as they are")
    equal, weights = torch.ones(4, 1, dtype=F64), _tensor(0.5, 0, 0.25, 0.25)
    what = "there is a null space, but the direction is 0: the weights should stay"
    expect.close(student(weights, equal, torch.zeros(4, dtype=F64)), weights, what, **NEAR)
    for T, d in ((3, 7), (5, 4)):
        _check_nothing(student, draw, T, d)


def _check_nothing(student, draw, T, d):
    weights, values, direction = draw.uniform(T, low=0.1), draw.normal(T, d), draw.normal(T)
    weights, direction[0] = weights / weights.sum(), -1.0  # one could fall
    what = f"with T={T} and d={d} there is no null space: the weights should stay"
    expect.close(student(weights, values, direction), weights, what, **NEAR)


def _change_to_make(draw, values):
    """Weights, values and a direction, and its part without effect."""
    T = len(values)
    direction = draw.normal(T, scale=3)
    change = _without_effect(values, direction)
    weights = draw.uniform(T, low=0.1)
    weights[change.argmax()] = 0  # one that rises may be 0
    return weights / weights.sum(), values, direction, change


def _check_change(student, draw, weights, values, direction, change):
    T, d = values.shape
    weights = (weights + 0.1) / (1 + 0.1 * T)  # none is 0, so that any step is one
    got = student(draw.strided(weights), draw.strided(values), draw.strided(direction))
    where = f"with T={T} and d={d}"
    expect.shape(got, (T,))
    expect.dtype(got, F64)
    got = got.double()
    what = f"{where} the new weights do not sum to 1"
    expect.close(got.sum(), torch.tensor(1.0, dtype=F64), what, **NEAR)
    scale = values.abs().max()
    what = f"{where} the output (divided by the largest value) is another one"
    expect.close(got @ values / scale, weights @ values / scale, what, rtol=1e-6, atol=1e-6)
    _goes_along(got, weights, change, f"{where} the change is wrong")


def _check_end(student, draw, weights, values, direction, change):
    T, d = values.shape
    got = student(draw.strided(weights), draw.strided(values), draw.strided(direction))
    where = f"with T={T} and d={d}"
    lowest = got.double().min().item()
    expect.true(lowest > -1e-7, f"{where} a weight is negative", f"{lowest:.3g}", "0 or more")
    what = f"{where} the weights are not those at the end of the way"
    steps = [w / -c for w, c in zip(weights.tolist(), change.tolist(), strict=True) if c < -1e-9]
    expect.close(got, weights + min(steps) * change, what, **NEAR)


def _without_effect(values, direction):
    """By least squares: what the columns cannot reach of the direction."""
    both = torch.cat([values, torch.ones(len(values), 1, dtype=F64)], dim=1)
    reached = torch.linalg.lstsq(both, direction.unsqueeze(1), driver="gelsd", rcond=1e-6).solution
    return direction - (both @ reached).squeeze(1)


def _translator(draw):
    """A Transformer in float64 with random weights, and the weights by name."""
    return _drawn(draw, Transformer(**TRANSLATOR, n_layers=1), "model.")


def _drawn(draw, model, prefix):
    values, model = {}, model.double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            parameter.copy_(centre + draw.normal(*parameter.shape, scale=0.4))
            values[f"{prefix}{name}"] = parameter.clone()
    return model.requires_grad_(False), values


def _ids(draw, size, lengths):
    ids = draw.integers(1, size, len(lengths), max(lengths))
    return ids.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], PAD)


@check(
    without={
        "float32": "asked in the check itself: what stands in the padding is open",
        "gradients": "effects come out, without a history",
        "large": "ids go in",
    },
    rests_on=(
        "Hide one source token at a time, from encoder and decoder.",
        "log-probability of target token t, less what it is when",
        "The columns of padding are 0",
        "leaves all other tokens at their positions",
    ),
)
@one_thread()
def LeaveOneOut(student, draw):  # noqa: N802
    """Equal to sentences from which the token is really cut out, whose others keep their places."""
    module = student.build(TRANSLATOR | {"n_layers": 1})
    model, values = _translator(draw)
    module.load(values)
    module.eval()
    single = student.build(TRANSLATOR | {"n_layers": 1})
    single.load({name: value.float() for name, value in values.items()})
    single.eval()
    given = (draw, model, module, single)
    _check_effects(*given, [4, 2, 3], [2, 5, 1])
    for sources, targets in (([2], [3]), ([1, 3], [1, 1])):
        with expect.care():
            _check_effects(*given, sources, targets)
    source, target = _ids(draw, 9, [4, 2]), _ids(draw, 11, [3, 3])
    with expect.care():
        whole = module(source, draw.strided(target))
        module.train()
        what = "a model without dropout is the same in training"
        expect.close(module(source, target), whole, what)


def _check_effects(draw, model, module, single, sources, targets):
    source, target = _ids(draw, 9, sources), _ids(draw, 11, targets)
    got = module(draw.strided(source), target)
    B, T_k, T_q = len(source), max(sources), max(targets)
    expect.shape(got, (B, T_q, T_k), axes="B, T_q, T_k")
    expect.dtype(got, F64)
    real = (target != PAD).unsqueeze(2)
    got, expected = _only(real, got), _only(real, _cut_out(model, source, target))
    where = f"for sources of {sources} tokens and targets of {targets}"
    what = f"{where}: to hide what is padding already should change nothing"
    hidden = (source == PAD).unsqueeze(1)
    expect.close(_only(hidden, got), torch.zeros_like(got), what)
    what = f"{where} the effects are not those of hiding the tokens from encoder and decoder"
    expect.close(got, expected, what, **NEAR)
    with expect.care("float32"):
        narrow = single(source, target)
        expect.shape(narrow, (B, T_q, T_k), axes="B, T_q, T_k")
        expect.dtype(narrow, torch.float32)
        what = f"with float32 {where} the effects are wrong"
        expect.close(_only(real, narrow), expected.float(), what, rtol=1e-3, atol=1e-4)


def _only(mask, numbers):
    """The numbers where the mask is True, and 0 elsewhere, where what stands is open."""
    return torch.where(mask, numbers, 0.0)


def _cut_out(model, source, target):
    """One sentence and one token at a time; what is cut out is no longer in any tensor."""
    rows = []
    for ids, wanted in zip(source, target, strict=True):
        length = int((ids != PAD).sum())
        whole = _log_p(model, ids, wanted, range(length))
        row = []
        for j in range(len(ids)):
            kept = [i for i in range(length) if i != j]
            row.append(whole - _log_p(model, ids, wanted, kept))
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows)


def _log_p(model, ids, wanted, kept):
    """log p of each token of a target, from the source tokens that are kept."""
    source, target = ids.unsqueeze(0), wanted.unsqueeze(0)
    x = model.embed(source, model.source_embedding)[:, list(kept)]
    memory = model.encoder(x) if len(kept) else x
    read = torch.cat([torch.ones(1, 1, dtype=torch.int64), target[:, :-1]], dim=1)
    _, mask = masks_from_tokens(source, read)
    if len(kept):
        logits = model.decode(read, memory, mask, None)
    else:  # nothing to look at: one key, which nobody may see
        nothing = torch.zeros(1, 1, 1, dtype=torch.bool)
        logits = model.decode(read, memory.new_zeros(1, 1, memory.shape[2]), mask, nothing)
    return logits.log_softmax(-1)[0, range(len(wanted)), wanted]


@check(
    without={
        "float32": "asked in the check itself: what stands in the padding is open",
        "gradients": "probabilities come out, without a history",
        "large": "ids go in",
    },
    rests_on=(
        "True = the vector at this place is that of `other`",
        "probability of each token of the vocabulary at each place of the target",
        "given the true ones before it",
        "The other sentence goes through the encoder alone, with a mask of its own",
        "what the decoder may look at stays as it was",
    ),
)
@one_thread()
def ActivationPatching(student, draw):  # noqa: N802
    """Nothing and everything replaced, then vectors that are replaced by hand, one by one."""
    sizes = TRANSLATOR | {"n_layers": 1}
    module, single, (model, values) = student.build(sizes), student.build(sizes), _translator(draw)
    module.load(values)
    module.eval()
    single.load({name: value.float() for name, value in values.items()})
    single.eval()
    given = (draw, model, module, single)
    _check_patches(*given, [4, 3, 2], [4, 3, 2], [2, 5, 1], "no")
    _check_patches(*given, [4, 3, 2], [4, 3, 2], [2, 5, 1], "all")
    _check_patches(*given, [4, 4, 4], [4, 4, 4], [5, 5, 5], "some")
    _check_patches(*given, [2, 4, 3], [3, 2, 4], [2, 5, 1], "some")
    for sources, others, targets in (([1], [1], [3]), ([1, 3], [3, 2], [1, 1])):
        with expect.care():
            _check_patches(*given, sources, others, targets, "some")


def _check_patches(draw, model, module, single, sources, others, targets, which):
    longest = max(targets)
    source, other = _ids(draw, 9, sources), _ids(draw, 9, others)
    target = _ids(draw, 11, targets)
    other[:, 0] = (source[:, 0] + 2) % 8 + 1  # another word for certain
    both = (source != PAD) & (other != PAD)
    places = both & {"no": draw.uniform(*both.shape) > 2, "all": both}.get(
        which, draw.uniform(*both.shape) < 0.5
    )
    if which == "some":
        places[:, 0] = torch.arange(len(places)) % 2 == 0
    got = module(draw.strided(source), target, other, draw.strided(places))
    expect.shape(got, (len(source), longest, 11), axes="B, T_q, target_size")
    expect.dtype(got, F64)
    real = (target != PAD).unsqueeze(2)
    where = f"sources of {sources} tokens, the others of {others}, replacing {which} vectors"
    got = _only(real, got)
    what = f"{where}: the probabilities of a letter do not sum to 1"
    expect.close(got.sum(-1, keepdim=True), real.double(), what, **NEAR)
    expected = _only(real, _patched(model, source, target, other, places))
    expect.close(got, expected, f"{where}: the probabilities are wrong", **NEAR)
    with expect.care("float32"):
        narrow = single(source, target, other, places)
        expect.shape(narrow, (len(source), longest, 11), axes="B, T_q, target_size")
        expect.dtype(narrow, torch.float32)
        what = f"with float32, {where}: wrong"
        expect.close(_only(real, narrow), expected.float(), what, rtol=1e-3, atol=1e-4)


def _patched(model, source, target, other, places):
    """One sentence at a time, without padding; vector by vector."""
    rows = []
    for ids, wanted, others, chosen in zip(source, target, other, places.tolist(), strict=True):
        memories = [
            model.encoder(model.embed(one[one != PAD].unsqueeze(0), model.source_embedding))
            for one in (ids, others)
        ]
        length = memories[0].shape[1]
        vectors = [memories[int(chosen[j])][:, j] for j in range(length)]
        read = torch.cat([torch.ones(1, 1, dtype=torch.int64), wanted[None, :-1]], dim=1)
        _, mask = masks_from_tokens(ids.unsqueeze(0), read)
        rows.append(model.decode(read, torch.stack(vectors, dim=1), mask, None)[0].softmax(-1))
    return torch.stack(rows)


@check(
    without={"gradients": "shares come out, without a history"},
    rests_on=(
        "as a share of the sum over all input tokens",
        "the size of the derivative of hidden vector i with respect to input vector j",
        "the root of the sum of their squares",
        "(B, T, T) entry (i, j)",
    ),
)
@one_thread()
def HiddenTokenAttribution(student, draw):  # noqa: N802
    """Equal to norms of the blocks of PyTorch's Jacobian; shares sum to 1."""
    sizes = {"n_layers": 1, "d_model": 6, "n_heads": 3, "d_ff": 10, "dropout": 0.0}
    module = student.build(sizes)
    model, values = _drawn(draw, Encoder(**sizes), "encoder.")
    module.load(values)
    module.eval()
    for B, T in ((2, 3), (3, 2)):
        _check_shares(draw, model, module, B, T)
    with expect.care():
        _check_shares(draw, model, module, 2, 1)


def _check_shares(draw, model, module, B, T):
    x = draw.normal(B, T, 6)
    x[:, 0] *= 60
    got = module(draw.strided(x) if B == 3 else x)
    expect.shape(got, (B, T, T), axes="B, T, T")
    expect.dtype(got, F64)
    expect.rows_sum_to_one(got, what="the shares of a hidden vector do not sum to 1")
    what = f"with B={B} and T={T} the shares are not those of the Jacobian's blocks"
    expect.close(got, _blocks(model, x), what, **NEAR)


def _blocks(model, x):
    rows = []
    for sentence in x:
        whole = torch.autograd.functional.jacobian(lambda y: model(y[None])[0], sentence)
        sizes = whole.square().sum(dim=(1, 3)).sqrt()  # (T, T): out, in
        rows.append(sizes / sizes.sum(1, keepdim=True))
    return torch.stack(rows)


@check(
    without={
        "gradients": "importances come out, without a history",
        "large": "ids go in",
    },
    rests_on=(
        "take the size of the derivative for each sentence, then the mean",
        "the sum of -log p over its real tokens",
        "{name of an attention: (H,)}",
        "with padding in it that must not count",
    ),
)
@one_thread()
def HeadImportance(student, draw):  # noqa: N802
    """Equal to what the gradients of W_o say, one sentence at a time."""
    module = student.build(TRANSLATOR | {"n_layers": 1})
    model, values = _translator(draw)
    module.load(values)
    module.eval()
    model.requires_grad_(True)
    _check_importances(draw, model, module, [5, 3, 5], [2, 6, 4])
    for sources, targets in (([2], [3]), ([1, 4], [3, 1])):
        with expect.care():
            _check_importances(draw, model, module, sources, targets)


def _check_importances(draw, model, module, sources, targets):
    source, target = _ids(draw, 9, sources), _ids(draw, 11, targets)
    target[range(len(target)), [length - 1 for length in targets]] = EOS
    strided = len(source) == 2  # in some calls only: else each fault seems to be of these
    got = module(draw.strided(source) if strided else source, target)
    expected = _by_weights(model, source, target)
    names = sorted(got) if isinstance(got, dict) else expect.describe(got)
    fits = isinstance(got, dict) and {*got} == {*expected}
    what = "the result is not a dict with the names of the attentions"
    expect.true(fits, what, str(names), ", ".join(expected))
    for name, right in expected.items():
        where = f"for sources of {sources} and targets of {targets} tokens"
        expect.shape(got[name], right.shape, axes="H")
        expect.close(got[name], right, f"{where} the importances in {name} are wrong", **NEAR)


def _by_weights(model, source, target):
    """A gate multiplies some columns of W_o: its gradient is theirs, times the columns, added up.

    One sentence at a time, without its padding.
    """
    names = [name for name, _ in model.named_modules() if name.endswith("attention")]
    found = {name: [] for name in names}
    for ids, wanted in zip(source, target, strict=True):
        ids, wanted = ids[ids != PAD].unsqueeze(0), wanted[wanted != PAD].unsqueeze(0)
        weights = [model.get_submodule(name).W_o.weight for name in names]
        with torch.enable_grad():
            log_p = model(ids, wanted).log_softmax(-1)
            loss = -log_p[0, range(wanted.shape[1]), wanted[0]].sum()
            gradients = torch.autograd.grad(loss, weights)
        for name, weight, gradient in zip(names, weights, gradients, strict=True):
            per_head = (weight.detach() * gradient).sum(0).unflatten(0, (3, -1)).sum(1)
            found[name].append(per_head.abs())
    return {name: torch.stack(rows).mean(0) for name, rows in found.items()}


@check(
    without={"large": "ids, and weights from 0 to 1 go in"},
    rests_on=(
        "a query whose token occurred before, once or several times",
        "the sum of its weights on the positions right after these earlier occurrences",
        "the mean over all such queries of all sentences",
    ),
)
def induction_score(student, draw):
    """By hand, then place by place with loops."""
    rows = _tensor([1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.1, 0.7, 0.2, 0], [0.4, 0.3, 0.2, 0.1])
    got = student(rows.view(1, 1, 4, 4), torch.tensor([[5, 8, 5, 9]]))
    expect.shape(got, (1,), axes="H")
    expect.dtype(got, F64)
    what = "tokens 5 8 5 9: only position 2 repeats, 8 followed, and 0.7 of its weight is there"
    expect.close(got, _tensor(0.7), what)
    what = "tokens 5 8 5 5, where position 3 repeats 0 and 2: the mean of 0.7 and 0.3 + 0.1"
    got = student(rows.view(1, 1, 4, 4), torch.tensor([[5, 8, 5, 5]]))
    expect.close(got, _tensor(0.55), what)
    for B, H, T, kinds in ((1, 3, 9, 4), (5, 2, 12, 6)):
        _check_induction(student, draw, B, H, T, kinds)
    with expect.care():
        _check_induction(student, draw, 3, 1, 2, 1)


def _check_induction(student, draw, B, H, T, kinds):
    tokens = draw.integers(0, kinds, B, T)
    # Some repeat, and in one sentence more than in the others.
    tokens[0, : 2 if B == 1 else T] = tokens[0, 1]
    scores = draw.normal(B, H, T, T, scale=2.0)
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(later, -torch.inf).softmax(-1)
    found = []
    for b, row in enumerate(tokens.tolist()):
        for t, token in enumerate(row):
            after = [j + 1 for j in range(t) if row[j] == token]
            if after:
                found.append(weights[b, :, t, after].sum(-1))
    got = student(draw.strided(weights), tokens)
    expect.shape(got, (H,), axes="H")
    what = f"with B={B}, H={H}, T={T} and tokens {_several(tokens)} the scores are wrong"
    expect.close(got, torch.stack(found).mean(0), what, **NEAR)


def _several(tokens):
    return "; ".join(" ".join(map(str, row)) for row in tokens[:2].tolist()) + (
        "; …" if len(tokens) > 2 else ""
    )
