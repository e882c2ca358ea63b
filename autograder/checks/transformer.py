"""Checks of lesson 10. The oracles are PyTorch's own stacks of layers, with the weights copied."""

import math

import torch

from attention.provided.stand_ins import Tanh
from autograder.checking.toolbox import expect, layer_oracles
from autograder.checking.toolbox.inputs import LONG
from autograder.checking.toolbox.registry import check

F64 = torch.float64
SIZES = (18, 3, 20)  # d_model, n_heads, d_ff
TABLES = ("source_embedding", "target_embedding", "generator")
PAD, BOS, EOS = 0, 1, 2
P = 0.4  # an ordinary probability of dropout


def _ids(*rows):
    return torch.tensor(rows)


@check(
    rests_on=(
        "no query may look at PAD, and no target ahead of itself",
        "target_mask (B, T_q, T_q), bool; True = may attend",
        "one for looking at the source, and one for the target looking at itself",
    )
)
def masks_from_tokens(student, draw):
    """Two small batches by hand, then loops over all pairs of positions."""
    masks = student(_ids([7, 9, 2, 0]), _ids([1, 8, 0]))
    source_mask, target_mask = _two(masks, "source_mask and target_mask")
    expect.shape(source_mask, (1, 1, 4), axes="B, 1, T_k")
    expect.shape(target_mask, (1, 3, 3), axes="B, T_q, T_q")
    expect.dtype(source_mask, torch.bool)
    expect.dtype(target_mask, torch.bool)
    expected = _ids([1, 1, 1, 0]).bool()[None]
    what = "for the source 7 9 EOS PAD the mask is wrong, where True = may attend"
    expect.close(source_mask, expected, what)
    expected = _ids([1, 0, 0], [1, 1, 0], [1, 1, 0]).bool()[None]
    what = "for the target BOS 8 PAD the mask is wrong, where rows look at columns"
    expect.close(target_mask, expected, what)
    _masked(student, draw, 9, 7, 5)
    _masked(student, draw, LONG + 1, LONG, 2)
    for sizes in ((1, 6, 3), (5, 1, 2), (4, 8, 1)):
        with expect.care():
            _masked(student, draw, *sizes)


def _masked(student, draw, T_k, T_q, B):
    source, target = (_filled_up(draw, B, T) for T in (T_k, T_q))
    result = student(draw.strided(source), draw.strided(target))
    source_mask, target_mask = _two(result, "source_mask and target_mask")
    what = f"with T_k={T_k} and T_q={T_q} the source mask differs from source ≠ PAD"
    expect.close(source_mask, (source > 0)[:, None], what)
    what = f"with T_k={T_k} and T_q={T_q} the target mask differs from loops over all pairs"
    expect.close(target_mask, _loops(target), what)


def _filled_up(draw, B, T):
    """Ids from BOS and EOS on; each row but the first ends in PAD from a drawn place on."""
    ids = draw.integers(1, 9, B, T)
    for b, start in enumerate(draw.integers(0, T, B).tolist()[1:], start=1):
        ids[b, start:] = PAD
    ids[-1] = PAD if B > 2 else ids[-1]
    return ids


def _loops(target):
    B, T = target.shape
    pairs = torch.zeros(B, T, T, dtype=torch.bool)
    for b in range(B):
        for i in range(T):
            pairs[b, i, : i + 1] = target[b, : i + 1] != PAD
    return pairs


def _two(result, names):
    fits = isinstance(result, tuple | list) and len(result) == 2
    expect.true(fits, "the result is not a pair", expect.describe(result), names)
    return result


def _stack(draw, n_layers, pre_norm):
    values = {}
    for number in range(n_layers):
        values |= layer_oracles.layer(draw, SIZES, f"layers.{number}.")
    return values | (layer_oracles.norm(draw, "norm", SIZES[0]) if pre_norm else {})


def _pytorch_stack(values, pre_norm):
    """PyTorch's layers with these weights, one after the other, as a function."""
    n_layers = 1 + max(int(name.split(".")[1]) for name in values if name.startswith("layers"))
    made = [
        layer_oracles.pytorch_layer(values, SIZES, f"layers.{number}.", False, pre_norm)
        for number in range(n_layers)
    ]

    def stack(x, **masks):
        for layer in made:
            x = layer(x, **masks)
        return layer_oracles.normed(x, values, "norm") if pre_norm else x

    return stack


def _built(student, values, *sizes, train=False, **options):
    module = student.build(*sizes, **options)
    module.load(values)
    (module.train if train else module.eval)()
    return module


KINDS = {"pre-norm": (3, True), "post-norm": (2, False)}  # how many layers, and pre_norm


def _standing():
    """The kinds of layers whose stage stands: where none does, both."""
    return [kind for kind in KINDS if expect.stands(kind)] or list(KINDS)


@check(
    rests_on=(
        "layers, one after the other, each with weights of its own",
        "if so, one more LayerNorm stands at the end of the stack",
        "The other arguments are those of `EncoderLayer`",
        "Post-norm layers end with a norm already",
        "for the layers, and pass the arguments after x on to each",
    ),
    stages={"pre-norm": 1, "post-norm": 1, "with a mask and dropout": 1},
)
def Encoder(student, draw):  # noqa: N802, the name of the exercise
    """Equal to nn.TransformerEncoder, pre- and post-norm, with padding, in training."""
    known = {kind: _stack(draw, *sizes) for kind, sizes in KINDS.items()}
    x, mask = draw.normal(2, 5, 18), (torch.arange(5) < _ids([5], [3]))[:, None]
    for kind, values in known.items():
        with expect.stage(kind):
            module, stack = _stacked(student, kind, values)
            output = module(x)
            expect.shape(output, (2, 5, 18), axes="B, T, d_model")
            expect.dtype(output, F64)
            _encodes(module, draw, stack, f"{kind} layers", x)
    with expect.stage("pre-norm"):
        fused, stack = _stacked(student, "pre-norm", known["pre-norm"], fused=True)
        _encodes(fused, draw, stack, "fused pre-norm layers", x)
    with expect.stage("with a mask and dropout"):
        _serves_as_a_decoder(student)
        for kind in _standing():
            module, stack = _stacked(student, kind, known[kind])
            _encodes_masked(module, draw, stack, f"{kind} layers", x, mask)
        if expect.stands("pre-norm"):
            fused, stack = _stacked(student, "pre-norm", known["pre-norm"], fused=True)
            _encodes_masked(fused, draw, stack, "fused pre-norm layers", x, mask)
        _drops_everything(student, draw, x, mask)


def _serves_as_a_decoder(student):
    """Something else is called EncoderLayer by now: `kind` is what it was."""
    module = student.build(2, *SIZES, stand_ins={"EncoderLayer": Tanh.__name__})
    what = "the layers are EncoderLayer, whatever `kind` is: the decoder, which is this class with "
    what += "another kind, would be made of them, too"
    expect.true("layers.0.norm_1.weight" in module.parameters(), what)


def _stacked(student, kind, values, fused=False):
    """A module of this kind and its oracle: without dropout, or with it and in evaluation."""
    n_layers, pre_norm = KINDS[kind]
    stack = _pytorch_stack(values, pre_norm)
    if fused:
        return _built(student, values, n_layers, *SIZES, 1.0, pre_norm, fused=True), stack
    if pre_norm:
        return _built(student, values, n_layers, *SIZES, 0.0, train=True), stack
    return _built(student, values, n_layers, *SIZES, 1.0, pre_norm=False), stack


def _encodes(module, draw, stack, kind, x):
    what = f"{kind} without a mask differ from nn.TransformerEncoder"
    expect.close(module(draw.strided(x)), stack(x), what)
    one = draw.normal(1, 1, 18)
    with expect.care():
        expect.close(module(one), stack(one), f"with B=1 and T=1 {kind} differ")


def _encodes_masked(module, draw, stack, kind, x, mask):
    output, other = module(x, mask), x.clone()
    other[1, 3:] = draw.normal(2, 18, scale=3.0)
    what = "other numbers in the padding change what the real positions become"
    expect.close(module(other, mask)[1, :3], output[1, :3], what)
    what = f"{kind} under a mask differ from nn.TransformerEncoder"
    expected = stack(x, src_mask=layer_oracles.forbidden(mask, 3, 2, 5, 5))
    expect.close(output, expected, what)
    loud, causal = x.clone(), torch.ones(5, 5, dtype=torch.bool).tril()
    loud[0, 1] *= 200
    with expect.care():
        what = f"{kind} under a causal mask differ from nn.TransformerEncoder"
        expect.close(module(loud, causal), stack(loud, src_mask=~causal), what)


def _drops_everything(student, draw, x, mask):
    """With a probability of 1 no sublayer adds anything in training, and nothing is random."""
    for kind in _standing():
        pre_norm = KINDS[kind][1]
        values = _stack(draw, 2, pre_norm)
        module = _built(student, values, 2, *SIZES, 1.0, pre_norm, train=True)
        passed = [f"layers.{i}.norm_{k}" for i in range(2) for k in (1, 2)]
        expected = x
        for name in ["norm"] if pre_norm else passed:
            expected = layer_oracles.normed(expected, values, name)
        what = f"in training with dropout=1.0 the {kind} layers add nothing: only norms are left"
        expect.close(module(x, mask), expected, what)


def _tables(draw, source_size, target_size, tied="none"):
    """One table for each name that is not tied to another."""
    sizes = dict(zip(TABLES, (source_size, target_size, target_size), strict=True))
    if tied == "target":
        del sizes["generator"]
    values = {f"{name}.weight": draw.normal(size, SIZES[0]) for name, size in sizes.items()}
    return (
        {"source_embedding.weight": values["source_embedding.weight"]} if tied == "all" else values
    )


def _positions(T, d_model):
    """Sinusoidal positions, number by number."""
    rows = [[t / 10000 ** (2 * (i // 2) / d_model) for i in range(d_model)] for t in range(T)]
    turned = [[(math.cos if i % 2 else math.sin)(a) for i, a in enumerate(row)] for row in rows]
    return torch.tensor(turned, dtype=F64)


class _Oracle:
    """The whole model of two layers, with PyTorch's layers and the tables as leaves."""

    def __init__(self, values, tied="none"):
        names = {"none": TABLES, "target": (*TABLES[:2], TABLES[1]), "all": 3 * TABLES[:1]}[tied]
        tables = {
            name: values[f"{name}.weight"].clone().requires_grad_() for name in dict.fromkeys(names)
        }
        self.leaves = {f"{name}.weight": table for name, table in tables.items()}
        self.source, self.target, self.generator = (tables[name] for name in names)
        self.encoder = layer_oracles.pytorch_layer(values, SIZES, "encoder.")
        self.decoder = layer_oracles.pytorch_layer(values, SIZES, "decoder.", cross=True)

    def __call__(self, source, target, source_mask, target_mask):
        (B, T_k), T_q = source.shape, target.shape[1]
        read = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], 1)
        x, y = self._embed(source, self.source), self._embed(read, self.target)
        memory = self.encoder(x, src_mask=layer_oracles.forbidden(source_mask, 3, B, T_k, T_k))
        past = torch.ones(T_q, T_q, dtype=torch.bool).tril()
        masks = {
            "memory_mask": layer_oracles.forbidden(source_mask, 3, B, T_q, T_k),
            "tgt_mask": layer_oracles.forbidden(target_mask & past, 3, B, T_q, T_q),
        }
        return torch.einsum("btd,vd->btv", self.decoder(y, memory, **masks), self.generator)

    @staticmethod
    def _embed(tokens, table):
        d_model = table.shape[1]
        return table[tokens] * d_model**0.5 + _positions(tokens.shape[1], d_model)


def _batch(draw, T_k, T_q, size=9):
    """Padded ids and their masks."""
    source, target = draw.integers(3, size, 2, T_k), draw.integers(3, size, 2, T_q)
    source[0, T_k - 2 :], target[1, T_q - 1 :] = PAD, PAD
    source_mask = (torch.arange(T_k) < _ids([T_k - 2], [T_k]))[:, None]
    past = torch.ones(T_q, T_q, dtype=torch.bool).tril()
    target_mask = past & (torch.arange(T_q) != 2) | torch.eye(T_q, dtype=torch.bool)
    return source, target, source_mask, target_mask.repeat(2, 1, 1)


def _full_batch(draw, B=2, T=5, size=9):
    """Ids without padding, and masks that hide nothing: the layers hide the future themselves.

    Both sides are equally long, so that an exchanged mask is right as well.
    """
    source, target = draw.integers(3, size, B, T), draw.integers(3, size, B, T)
    ones = torch.ones(B, T, T, dtype=torch.bool)
    return source, target, ones[:, :1], ones


def _front(student, values, *sizes, train=False):
    """The model and its oracle, tied or not as the model is: that is asked for elsewhere."""
    module, tied = student.build(*sizes), "none"
    if "generator.weight" not in module.parameters():
        values, tied = {name: values[name] for name in values if "generator" not in name}, "target"
    module.load(values)
    (module.train if train else module.eval)()
    return module, _Oracle(values, tied)


NEAR = {"rtol": 1e-4, "atol": 1e-5}  # positions may be counted in float32, and converted then


@check(
    without={"large": "only ids and masks go in"},
    rests_on=(
        "√d_model times the tokens' rows, plus sinusoidal positions",
        "vectors that know where they stand; dropout comes last",
        "Score every target token, given the source and the true tokens before it",
        "the generator's weight is the table of the target embedding",
        "then the gradients of both uses meet in it",
        'Raises ValueError for another `tied`, or for tied="all"',
    ),
    stages={
        "without padding": 2,
        "with padding": 1,
        "tied tables": 1,
        "dropout on the embeddings": 1,
    },
)
def Translator(student, draw):  # noqa: N802, the name of the exercise
    """Sees no future and no padding; equal to PyTorch's layers between tables; tied as asked."""
    ends = layer_oracles.layer(draw, SIZES, "encoder.") | layer_oracles.layer(
        draw, SIZES, "decoder.", True
    )
    values, full = ends | _tables(draw, 9, 11), _full_batch(draw)
    module, oracle = _front(student, values, 9, 11, *SIZES, 0.0, train=True)
    with expect.stage("without padding"):
        scores = module(*full)
        expect.shape(scores, (2, 5, 11), axes="B, T_q, target_size")
        expect.dtype(scores, F64)
        _sees_no_future(module, full, scores)
        expected = oracle(*full).detach()
        expect.close(scores, expected, "the scores differ from PyTorch's layers", **NEAR)
        for batch, sizes in ((_full_batch(draw, 1, LONG), (9, 11)), (_full_batch(draw), (9, 9))):
            other = ends | _tables(draw, *sizes)
            given, wanted = _front(student, other, *sizes, *SIZES, 0.0)
            what = f"with T={batch[0].shape[1]} and vocabularies of {sizes[0]} and {sizes[1]} the "
            what += "scores differ from PyTorch's layers"
            expect.close(given(*batch), wanted(*batch).detach(), what, **NEAR)
        with expect.care():
            _stays_in_bfloat16(student, values, full, expected)
        one = _full_batch(draw, B=1, T=1)
        with expect.care():
            what = "with B=1, T_k=1 and T_q=1 the scores differ from PyTorch's layers"
            expect.close(module(*one), oracle(*one).detach(), what, **NEAR)
        with expect.care("gradients"):
            _tables_learn(module, oracle, full, draw)
    with expect.stage("with padding"):
        _hides_padding(module, oracle, draw)
    with expect.stage("tied tables"):
        _is_tied(student, draw, values, ends)
    with expect.stage("dropout on the embeddings"):
        _drops_no_embeddings(student, values, module, full)
        _drops_all_embeddings(student, values, full)
        _drops_some_embeddings(student, draw, ends)


def _stays_in_bfloat16(student, values, batch, expected):
    """A model of that dtype is so throughout: the layers refuse to meet float32."""
    values = {name: value.bfloat16() for name, value in values.items()}
    scores = _front(student, values, 9, 11, *SIZES, 0.0)[0](*batch)
    expect.shape(scores, expected.shape)
    expect.dtype(scores, torch.bfloat16)
    off, size = (scores - expected).abs().max().item(), expected.abs().max().item()
    what = "with weights in bfloat16 the scores are far from those in float64"
    expect.true(off < 0.3 * size, what, f"off by up to {off:.3g}", f"at most {0.3 * size:.3g}")


def _sees_no_future(module, batch, scores):
    source, target, *masks = batch
    for t in (4, 1):
        other = target.clone()
        other[:, t:] = 3 + (other[:, t:] + 1) % 6
        changed = module(source, other, *masks)
        what = f"the scores of target token {t} depend on that token, the one to predict"
        expect.close(changed[:, t], scores[:, t], what)
        what = f"another token {t} changes the scores before it"
        expect.close(changed[:, :t], scores[:, :t], what)


def _hides_padding(module, oracle, draw):
    # Source and target are equally long at first, so that an exchanged mask raises no error.
    batch = source, target, source_mask, target_mask = _batch(draw, 5, 5)
    scores, other = module(*batch), source.clone()
    other[0, 3:] = 7
    what = "other tokens in the source's padding change the scores"
    expect.close(module(other, target, source_mask, target_mask), scores, what)
    what = "under masks the scores differ from PyTorch's layers"
    expect.close(scores, oracle(*batch).detach(), what, **NEAR)
    batch = _batch(draw, 7, 4)
    what = "with T_k=7 and T_q=4 the scores differ from PyTorch's layers"
    expect.close(module(*map(draw.strided, batch)), oracle(*batch).detach(), what, **NEAR)
    with expect.care("gradients"):
        _tables_learn(module, oracle, batch, draw)


def _tables_learn(module, oracle, batch, draw):
    """The gradients of the tables: a shared one hears from all its uses."""
    expected = oracle(*batch)
    cotangent = draw.normal(*expected.shape)
    wanted = torch.autograd.grad((expected * cotangent).sum(), list(oracle.leaves.values()))
    by_name, _ = module.gradients(*batch, cotangent=cotangent)
    for name, gradient in zip(oracle.leaves, wanted, strict=True):
        found = by_name.get(name)
        expect.true(found is not None, f"no gradient reaches {name}", "None", "a gradient")
        what = f"the gradient of {name} is wrong"
        expect.close(found, gradient, what, rtol=1e-3, atol=1e-4)


def _is_tied(student, draw, untied, ends):
    """Three tables, two or one; what is scored with one row scores alike, as long as it is that."""
    _built(student, untied, 9, 11, *SIZES, 0.0)
    batch = _full_batch(draw, size=7)  # nobody reads 7 and 8
    for tied, sizes in (("target", (9, 11)), ("all", (9, 9))):
        values = ends | _tables(draw, *sizes, tied)
        module = _built(student, values, *sizes, *SIZES, 0.0, tied=tied)
        scores = module(*batch)
        expect.shape(scores, (2, 5, sizes[1]), axes="B, T_q, target_size")
        if expect.stands("without padding"):
            oracle = _Oracle(values, tied)
            what = f"with tied={tied!r} the scores are wrong"
            expect.close(scores, oracle(*batch).detach(), what, **NEAR)
            _tables_learn(module, oracle, batch, draw)
        name = "source_embedding.weight" if tied == "all" else "target_embedding.weight"
        values[name][8] = values[name][7]
        module.load(values)
        alike = module(*batch)
        what = f"with tied={tied!r} and equal rows of tokens 7 and 8 their scores differ"
        expect.close(alike[..., 8], alike[..., 7], what)
        apart = (scores[..., 8] != scores[..., 7]).any()
        what = f"with tied={tied!r} the rows of tokens 7 and 8 do not count in their scores"
        expect.true(apart, what, "equal scores", "different ones, for different rows")
    for tied, sizes in (("source", (9, 9)), ("all", (9, 11))):
        what = f"tied={tied!r} with vocabularies of {sizes[0]} and {sizes[1]} should be refused"
        expect.raises(student, ValueError, *sizes, *SIZES, tied=tied, what=what)


def _drops_no_embeddings(student, values, module, batch):
    used, plain = _front(student, values, 9, 11, *SIZES, 1.0)[0], module(*batch)
    expect.tensor(plain)
    what = "with dropout=1.0, after eval(), the scores should be those without dropout"
    expect.close(used(*batch), plain, what)


def _drops_all_embeddings(student, values, batch):
    """With a probability of 1, what the norms make of 0 is left."""
    module, oracle = _front(student, values, 9, 11, *SIZES, 1.0, train=True)
    y = torch.zeros(SIZES[0], dtype=F64)
    for number in (1, 2, 3):
        y = layer_oracles.normed(y, values, f"decoder.norm_{number}")
    scores = module(*batch)
    expect.tensor(scores)
    expected = scores[:1, :1].expand_as(scores)
    if expect.stands("without padding"):
        expected = (oracle.generator.detach() * y).sum(1).expand(2, 5, 11)
    what = "in training with dropout=1.0 nothing of the embeddings should be left"
    expect.close(scores, expected, what)


def _drops_some_embeddings(student, draw, ends):
    """A number that is dropped gets no gradient. Each token occurs once.

    Of the target the inner tokens are looked at, which are read also where the shift is wrong.
    """
    values = ends | _tables(draw, 99, 99)
    module, _ = _front(student, values, 99, 99, *SIZES, P, train=True)
    ids, every = 3 + draw.permutation(96).view(2, 6, 8), torch.ones(6, 8, 8, dtype=torch.bool)
    cotangent = draw.normal(6, 8, 99) * (torch.arange(99) < 3)  # of the scores of what nobody reads
    by_name, _ = module.gradients(*ids, every[:, :1], every, cotangent=cotangent)
    found = [by_name.get(f"{name}.weight") for name in TABLES[:2]]
    gradient = sum(one for one in found if one is not None)
    expect.shape(gradient, (99, SIZES[0]))
    for name, rows in (("source", ids[0]), ("target", ids[1][:, 1:-2])):
        dropped = (gradient[rows] == 0).double()
        what = f"in training with dropout={P} the rows of the {name}'s tokens are not dropped "
        what += "as they should be"
        layer_oracles.by_chance(dropped, torch.ones_like(dropped).bool(), P, what)
    # Of a source of which one token is seen the last bias adds to nothing but its memory.
    seen = torch.arange(8) < torch.ones(1, 1, 1)
    given = ids[0][:1], ids[1][:1], seen, every[:1]
    by_name, _ = module.gradients(*given, cotangent=draw.normal(1, 8, 99))
    gradient = by_name.get("encoder.norm_2.bias")
    expect.shape(gradient, (SIZES[0],))
    lost = int((gradient == 0).sum())
    what = "in training some numbers of the memory are dropped on the way from encoder to decoder"
    expect.true(lost == 0, what, f"{lost} of {SIZES[0]} get no gradient", "all of them arrive")


@check(
    without={
        "gradients": "ids come out, which have no gradient",
        "float32": "ids come out; the check asks with float32 by itself",
    },
    rests_on=(
        "one more token in each row: the most probable one after the last",
        "a row whose last id is EOS or PAD goes on with PAD",
        "(B, T, vocab_size)  scores of what follows each of them",
    ),
)
def append_best(student, draw):
    """Two rows by hand, one of them ended; then loops."""
    read, logits = _ids([1, 5], [1, 2]), torch.zeros(2, 2, 4, dtype=F64)
    logits[0, 0, 1], logits[1, 0, 3], logits[1, 1, 1] = 9, 9, 1
    logits[0, 1] = torch.tensor([0.0, 0.0, -1.0, 1.0])
    longer = student(read, logits)
    expect.shape(longer, (2, 3), axes="B, T + 1")
    expect.dtype(longer, torch.int64)
    what = "what was read should stand before the new token, unchanged"
    expect.close(longer[:, :2], read, what)
    what = "a row that scores token 3 highest after its last token should go on with 3"
    expect.equal(longer[0, 2].item(), 3, what)
    expect.equal(longer[1, 2].item(), PAD, "a row that ended with EOS should go on with PAD")
    read = draw.integers(3, 11, 7, 6)
    read[:, 0], read[1, 5], read[2, 3], read[2, 4:] = BOS, EOS, EOS, PAD
    read[3, 4], read[3, 5] = EOS, PAD
    logits = draw.normal(7, 6, 11, scale=3.0)
    logits[:, :, PAD] -= 20
    logits[5, 5, EOS] = 50
    _appended(student, draw, read, logits)
    far = logits.clone()
    far[4, 5, :] -= 1000.0
    far[6, 5, 10] = 600
    far[0, 5, :8], far[0, 4, 3:] = -torch.inf, -torch.inf
    for rows, scores in ((read, far), (read[:, :1], far[:, :1]), (read[4:5], far[4:5].float())):
        with expect.care():
            _appended(student, draw, rows, scores)


def _appended(student, draw, read, logits):
    B, T = read.shape
    longer = student(draw.strided(read), draw.strided(logits))
    expect.shape(longer, (B, T + 1), axes="B, T + 1")
    new = [row[-1].index(max(row[-1])) for row in logits.tolist()]
    ended = [row[-1] in (EOS, PAD) for row in read.tolist()]
    new = [PAD if over else best for over, best in zip(ended, new, strict=True)]
    for b, last in enumerate(read[:, -1].tolist()):
        if last == PAD:
            what = "a row that ended earlier should go on with PAD"
            expect.equal(longer[b, T].item(), PAD, what)
    what = f"with B={B} and T={T} the tokens differ from loops over the scores"
    expect.close(longer, torch.cat([read, torch.tensor(new)[:, None]], 1), what)
