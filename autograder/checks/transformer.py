"""Checks of lesson 10. The oracles are PyTorch's own stacks of layers, with the weights copied."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from autograder.checking import expect
from autograder.checking.registry import check

F64 = torch.float64
SIZES = (12, 3, 20)  # d_model, n_heads, d_ff
TABLES = ("source_embedding", "target_embedding", "generator")
ATTENTIONS = {"attention": "self_attn", "cross_attention": "multihead_attn"}
PAD, BOS, EOS = 0, 1, 2


def _ids(*rows):
    return torch.tensor(rows)


@check
def masks_from_tokens(student, draw):
    """Two small batches by hand, then loops over all pairs of positions."""
    masks = student(_ids([7, 9, 2, 0]), _ids([1, 8, 0]))
    source_mask, target_mask = _pair(masks, "source_mask and target_mask")
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

    source, target = draw.integers(1, 9, 5, 9), draw.integers(1, 9, 5, 7)
    for ids, longest in ((source, 9), (target, 7)):
        for b, length in enumerate(draw.integers(1, longest + 1, 5).tolist()):
            ids[b, length:] = PAD
    source_mask, target_mask = student(draw.strided(source), draw.strided(target))
    expect.close(source_mask, (source > 0)[:, None], "the source mask differs from source ≠ PAD")
    pairs = torch.zeros(5, 7, 7, dtype=torch.bool)
    for b, i, j in torch.cartesian_prod(torch.arange(5), torch.arange(7), torch.arange(7)).tolist():
        pairs[b, i, j] = j <= i and target[b, j].item() != PAD
    expect.close(target_mask, pairs, "the target mask differs from loops over all pairs")


def _pair(result, names):
    fits = isinstance(result, tuple | list) and len(result) == 2
    expect.true(fits, "the result is not a pair", expect.describe(result), names)
    return result


def _linear(draw, prefix, features_in, features_out):
    """Weights that keep the size of what passes through, so that every part counts."""
    weight = draw.normal(features_out, features_in, scale=1.5 / math.sqrt(features_in))
    return {f"{prefix}.weight": weight, f"{prefix}.bias": draw.normal(features_out, scale=0.5)}


def _norm(draw, prefix, d_model):
    return {
        f"{prefix}.weight": 1 + draw.normal(d_model, scale=0.3),
        f"{prefix}.bias": draw.normal(d_model, scale=0.5),
    }


def _layer(draw, prefix, cross):
    """Parameters of an EncoderLayer or DecoderLayer by name."""
    d_model, _, d_ff = SIZES
    values = {}
    for attention in ("attention", "cross_attention")[: 1 + cross]:
        for name in ("W_q", "W_k", "W_v", "W_o"):
            values |= _linear(draw, f"{prefix}{attention}.{name}", d_model, d_model)
    values |= _linear(draw, f"{prefix}feed_forward.linear_1", d_model, d_ff)
    values |= _linear(draw, f"{prefix}feed_forward.linear_2", d_ff, d_model)
    for number in range(1, 3 + cross):
        values |= _norm(draw, f"{prefix}norm_{number}", d_model)
    return values


def _stack(draw, n_layers, cross, pre_norm):
    values = {}
    for number in range(n_layers):
        values |= _layer(draw, f"layers.{number}.", cross)
    return values | (_norm(draw, "norm", SIZES[0]) if pre_norm else {})


def _pytorch_layer(values, prefix, cross, pre_norm):
    """PyTorch's layer with these weights."""
    kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
    d_model, n_heads, d_ff = SIZES
    layer = kind(
        d_model, n_heads, d_ff, dropout=0.0, batch_first=True, norm_first=pre_norm, dtype=F64
    )
    state = {}
    for part in ("weight", "bias"):
        for ours, theirs in list(ATTENTIONS.items())[: 1 + cross]:
            three = [values[f"{prefix}{ours}.{name}.{part}"] for name in ("W_q", "W_k", "W_v")]
            state[f"{theirs}.in_proj_{part}"] = torch.cat(three)
            state[f"{theirs}.out_proj.{part}"] = values[f"{prefix}{ours}.W_o.{part}"]
        for number in (1, 2):
            state[f"linear{number}.{part}"] = values[f"{prefix}feed_forward.linear_{number}.{part}"]
        for number in range(1, 3 + cross):
            state[f"norm{number}.{part}"] = values[f"{prefix}norm_{number}.{part}"]
    layer.load_state_dict(state)
    return layer


def _pytorch_stack(values, cross, pre_norm):
    """nn.TransformerEncoder or nn.TransformerDecoder with these weights, as a function."""
    n_layers = 1 + max(int(name.split(".")[1]) for name in values if name.startswith("layers"))
    layers = [_pytorch_layer(values, f"layers.{i}.", cross, pre_norm) for i in range(n_layers)]
    norm = None
    if pre_norm:
        norm = nn.LayerNorm(SIZES[0], dtype=F64)
        norm.load_state_dict({part: values[f"norm.{part}"] for part in ("weight", "bias")})
    if cross:
        stack = nn.TransformerDecoder(layers[0], n_layers, norm)
    else:
        stack = nn.TransformerEncoder(layers[0], n_layers, norm, enable_nested_tensor=False)
    stack.layers = nn.ModuleList(layers)
    return stack


def _forbidden(mask):
    """A mask as PyTorch's layers read it: True is forbidden, once per head."""
    return None if mask is None else ~mask.repeat_interleave(SIZES[1], 0)


def _load(module, values):
    """Load the weights; a failure names only the parameters that differ."""
    try:
        module.load(values)
    except expect.CheckFailed as failure:
        if failure.what == "the module has other parameters":
            got, expected = (set(text.split(", ")) for text in (failure.got, failure.expected))
            failure.got = _some("without ", expected - got) or _some("also ", got - expected)
            failure.expected = _some("also ", expected - got) or _some("without ", got - expected)
        raise


def _some(word, names):
    if not names:
        return ""
    first = ", ".join(sorted(names)[:2])
    return f"{word}{first}" + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _silent(values):
    """The same weights, but no sublayer adds anything: its last map is 0."""
    last = ("W_o.weight", "W_o.bias", "linear_2.weight", "linear_2.bias")
    return {name: 0 * v if name.endswith(last) else v for name, v in values.items()}


def _all_move(module, *inputs, cotangent):
    """Every parameter gets a gradient; returns both kinds of gradients."""
    by_name, of_inputs = module.gradients(*inputs, cotangent=cotangent)
    for name, gradient in by_name.items():
        expect.true(gradient is not None, f"no gradient reaches {name}", "None", "a gradient")
    return by_name, of_inputs


def _same_gradients(module, oracle, inputs, masks, cotangent):
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    with torch.enable_grad():
        wanted = torch.autograd.grad((oracle(*leaves) * cotangent).sum(), leaves)
    _, found = _all_move(module, *inputs, *masks, cotangent=cotangent)
    for got, expected, name in zip(found, wanted, ("x", "memory"), strict=False):
        expect.true(got is not None, f"no gradient reaches {name}", "None", "a gradient")
        expect.close(got, expected, f"the gradient of {name} is wrong")


@check
def Encoder(student, draw):  # noqa: N802, the name of the exercise
    """Equal to nn.TransformerEncoder, pre- and post-norm, with padding, in training."""
    module, values = student.build(3, *SIZES, 0.0), _stack(draw, 3, False, True)
    _load(module, values)
    x, mask = draw.normal(2, 5, 12), (torch.arange(5) < _ids([5], [3]))[:, None]
    output = module(x, mask)
    expect.shape(output, (2, 5, 12), axes="B, T, d_model")
    expect.dtype(output, F64)
    other = x.clone()
    other[1, 3:] = draw.normal(2, 12, scale=3.0)
    what = "other numbers in the padding change what the real positions become"
    expect.close(module(other, mask)[1, :3], output[1, :3], what)

    def oracle(x, mask=mask):
        forbidden = None if mask is None else _forbidden(mask.expand(2, 5, 5))
        return stack(x, mask=forbidden)

    stack = _pytorch_stack(values, False, True)
    what = "three pre-norm layers under a mask differ from nn.TransformerEncoder"
    expect.close(output, oracle(x).detach(), what)
    what = "three pre-norm layers without a mask differ from nn.TransformerEncoder"
    expect.close(module(draw.strided(x)), oracle(x, None).detach(), what)
    _same_gradients(module, oracle, [x], [mask], draw.normal(2, 5, 12))

    module, values = student.build(2, *SIZES, 0.0, pre_norm=False), _stack(draw, 2, False, False)
    _load(module, values)
    stack = _pytorch_stack(values, False, False)
    what = "two post-norm layers differ from nn.TransformerEncoder"
    expect.close(module(x, mask), oracle(x).detach(), what)
    _drops_everything(student, draw, False, (x, mask))


def _drops_everything(student, draw, cross, inputs):
    """With a probability of 1 no sublayer adds anything in training, and nothing is random."""
    module, values = student.build(2, *SIZES, 1.0), _stack(draw, 2, cross, True)
    _load(module, values)
    module.train()
    expected = F.layer_norm(inputs[0], (12,), values["norm.weight"], values["norm.bias"])
    what = "in training with dropout=1.0 no layer adds anything: only the last norm is left"
    expect.close(module(*inputs), expected, what)
    module.eval()
    silent = {"norm.weight": torch.ones(12, dtype=F64), "norm.bias": torch.zeros(12, dtype=F64)}
    _load(module, _silent(values) | silent)
    ones = torch.tensor([-1.0, 1.0], dtype=F64).repeat(6).expand(inputs[0].shape)
    what = "where no layer adds anything, the final norm should turn -100, 100, … into -1, 1, …"
    expect.close(module(100 * ones, *inputs[1:]), ones, what)


@check
def Decoder(student, draw):  # noqa: N802, the name of the exercise
    """Equal to nn.TransformerDecoder, pre- and post-norm, with padding on both sides."""
    module, values = student.build(3, *SIZES, 0.0), _stack(draw, 3, True, True)
    _load(module, values)
    # Source and target are equally long at first, so that an exchanged mask raises no error.
    x, memory = draw.normal(2, 5, 12), draw.normal(2, 5, 12)
    mask, memory_mask = (
        _ids([1, 0, 1, 1, 1], [1, 1, 0, 1, 1]).bool()[:, None],
        (torch.arange(5) < _ids([2], [4]))[:, None],
    )
    output = module(x, memory, mask, memory_mask)
    expect.shape(output, (2, 5, 12), axes="B, T_q, d_model")
    expect.dtype(output, F64)
    other = memory.clone()
    other[0, 2:] = draw.normal(3, 12, scale=3.0)
    what = "other numbers in the source's padding change the target"
    expect.close(module(x, other, mask, memory_mask), output, what)

    def oracle(x, memory, mask=mask, memory_mask=memory_mask):
        T_q = x.shape[1]
        mask = mask.expand(2, T_q, T_q) & torch.ones(T_q, T_q, dtype=torch.bool).tril()
        memory_mask = memory_mask.expand(2, T_q, memory.shape[1])
        masks = {"tgt_mask": _forbidden(mask), "memory_mask": _forbidden(memory_mask)}
        return stack(x, memory, **masks)

    stack = _pytorch_stack(values, True, True)
    what = "three pre-norm layers differ from nn.TransformerDecoder"
    expect.close(output, oracle(x, memory).detach(), what)

    memory, memory_mask = draw.normal(2, 7, 12), (torch.arange(7) < _ids([6], [4]))[:, None]
    inputs = draw.strided(x), draw.strided(memory), mask, memory_mask
    expected = oracle(x, memory, mask, memory_mask).detach()
    what = "with T_q=5 and T_k=7 it differs from nn.TransformerDecoder"
    expect.close(module(*inputs), expected, what)
    masks = mask, memory_mask
    _same_gradients(
        module, lambda x, m: oracle(x, m, *masks), [x, memory], masks, draw.normal(2, 5, 12)
    )

    module, values = student.build(2, *SIZES, 0.0, pre_norm=False), _stack(draw, 2, True, False)
    _load(module, values)
    stack = _pytorch_stack(values, True, False)
    what = "two post-norm layers differ from nn.TransformerDecoder"
    expect.close(module(x, memory, *masks), oracle(x, memory, *masks).detach(), what)
    _drops_everything(student, draw, True, (x, memory, *masks))


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
        tables = {name: values[f"{name}.weight"].clone().requires_grad_() for name in set(names)}
        self.leaves = {f"{name}.weight": table for name, table in tables.items()}
        self.source, self.target, self.generator = (tables[name] for name in names)
        self.encoder = _pytorch_layer(values, "encoder.", False, False)
        self.decoder = _pytorch_layer(values, "decoder.", True, False)

    def __call__(self, source, target, source_mask, target_mask):
        begin = torch.full_like(target[:, :1], BOS)
        read = torch.cat([begin, target[:, :-1]], 1)
        x, y = self._embed(source, self.source), self._embed(read, self.target)
        # (Handing over a key_padding_mask makes PyTorch import sympy, which takes seconds.)
        T_q, T_k = target.shape[1], source.shape[1]
        memory = self.encoder(x, src_mask=_forbidden(source_mask.expand(2, T_k, T_k)))
        of_source = _forbidden(source_mask.expand(2, T_q, T_k))
        masks = {"memory_mask": of_source, "tgt_mask": _forbidden(target_mask)}
        return torch.einsum("btd,vd->btv", self.decoder(y, memory, **masks), self.generator)

    @staticmethod
    def _embed(tokens, table):
        return table[tokens] * 12**0.5 + _positions(tokens.shape[1], 12)


def _batch(draw, T_k, T_q, size=9):
    """Padded ids and their masks."""
    source, target = draw.integers(3, size, 2, T_k), draw.integers(3, size, 2, T_q)
    source[0, T_k - 2 :], target[1, T_q - 1 :] = PAD, PAD
    source_mask = (torch.arange(T_k) < _ids([T_k - 2], [T_k]))[:, None]
    past = torch.ones(T_q, T_q, dtype=torch.bool).tril()
    target_mask = past & (torch.arange(T_q) != 2) | torch.eye(T_q, dtype=torch.bool)
    return source, target, source_mask, target_mask.repeat(2, 1, 1)


@check
def Translator(student, draw):  # noqa: N802, the name of the exercise
    """Sees no future and no padding; equal to PyTorch's layers between tables; tied as asked."""
    layers = _layer(draw, "encoder.", False) | _layer(draw, "decoder.", True)
    module, values = student.build(9, 11, *SIZES, 0.0), layers | _tables(draw, 9, 11)
    _load(module, values)
    # Source and target are equally long at first, so that an exchanged mask raises no error.
    batch = source, target, source_mask, target_mask = _batch(draw, 5, 5)
    scores = module(*batch)
    expect.shape(scores, (2, 5, 11), axes="B, T_q, target_size")
    expect.dtype(scores, F64)
    _sees_no_future(module, batch, scores)
    other = source.clone()
    other[0, 3:] = 7
    what = "other tokens in the source's padding change the scores"
    expect.close(module(other, target, source_mask, target_mask), scores, what)

    oracle = _Oracle(values)
    expect.close(scores, oracle(*batch).detach(), "the scores differ from PyTorch's layers")
    batch = _batch(draw, 7, 4)
    what = "with T_k=7 and T_q=4 the scores differ from PyTorch's layers"
    expect.close(module(*batch), oracle(*batch).detach(), what)
    _tables_learn(module, oracle, batch, draw)
    for tied, sizes in (("target", (9, 11)), ("all", (9, 9))):
        module = student.build(*sizes, *SIZES, 0.0, tied=tied)
        values = layers | _tables(draw, *sizes, tied)
        _load(module, values)
        oracle = _Oracle(values, tied)
        what = f"with tied={tied!r} the scores are wrong"
        expect.close(module(*batch), oracle(*batch).detach(), what)
        _tables_learn(module, oracle, batch, draw)
    _drops_embeddings(student, values, batch)
    _learns_a_batch(module, values, batch)


def _sees_no_future(module, batch, scores):
    source, target, *masks = batch
    for t in (4, 1):
        other = target.clone()
        other[:, t:] = 3 + (other[:, t:] + 1) % 6
        changed = module(source, other, *masks)
        what = f"the scores of target token {t} depend on that token: it sees what it should say"
        expect.close(changed[:, t], scores[:, t], what)
        what = f"another token {t} changes the scores before it"
        expect.close(changed[:, :t], scores[:, :t], what)


def _tables_learn(module, oracle, batch, draw):
    """The gradients of the tables: a shared one hears from all its uses."""
    expected = oracle(*batch)
    cotangent = draw.normal(*expected.shape)
    wanted = torch.autograd.grad((expected * cotangent).sum(), list(oracle.leaves.values()))
    by_name, _ = _all_move(module, *batch, cotangent=cotangent)
    for name, gradient in zip(oracle.leaves, wanted, strict=True):
        expect.close(by_name[name], gradient, f"the gradient of {name} is wrong")


def _drops_embeddings(student, values, batch):
    """With a probability of 1, what the norms make of 0 is left."""
    module = student.build(9, 9, *SIZES, 1.0, tied="all")
    _load(module, values)
    module.train()
    y = torch.zeros(12, dtype=F64)
    for norm in ("norm_1", "norm_2", "norm_3"):
        scale, shift = (values[f"decoder.{norm}.{part}"] for part in ("weight", "bias"))
        y = F.layer_norm(y, (12,), scale, shift)
    expected = (values["source_embedding.weight"] * y).sum(1).expand(2, batch[1].shape[1], 9)
    what = "in training with dropout=1.0 nothing of the embeddings should be left"
    expect.close(module(*batch), expected, what)


def _learns_a_batch(module, values, batch, steps=16):
    """A few steps along the signs of the gradients that the module gives: the loss must fall."""
    values, losses = dict(values), []
    for step in range(steps):
        logits = module(*batch).requires_grad_()
        with torch.enable_grad():
            loss = F.cross_entropy(logits.flatten(0, 1), batch[1].flatten())
        (cotangent,) = torch.autograd.grad(loss, logits)
        by_name, _ = module.gradients(*batch, cotangent=cotangent)
        size = 0.04 * (1 - step / steps)
        values = {name: value - size * by_name[name].sign() for name, value in values.items()}
        module.load(values)
        losses.append(loss.item())
    fell = losses[-1] < 0.5 * losses[0]
    got = f"from {losses[0]:.2f} to {losses[-1]:.2f}"
    expect.true(fell, f"{steps} steps on one batch hardly lower the loss", got, "less than half")


@check
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
    read = draw.integers(3, 11, 4, 6)
    read[:, 0], read[1, 5], read[2, 3], read[2, 4:] = BOS, EOS, EOS, PAD
    logits = draw.normal(4, 6, 11, scale=3.0)
    logits[:, :, PAD] -= 20
    longer = student(draw.strided(read), draw.strided(logits))
    expect.shape(longer, (4, 7), axes="B, T + 1")
    expect.equal(longer[2, 6].item(), PAD, "a row that ended earlier should go on with PAD")
    best = [row[-1].index(max(row[-1])) for row in logits.tolist()]
    expected = _ids([best[0]], [PAD], [PAD], [best[3]])
    what = "the tokens differ from loops over the scores"
    expect.close(longer, torch.cat([read, expected], 1), what)


@check
def transformer_parameters(student, draw):
    """Worked by hand for a tiny model, then against real layers, then the sizes of the paper."""
    count = student(5, 7, d_model=2, d_ff=3, n_layers=1, pre_norm=False)
    # Attention 4 · (4 + 2) = 24, three times; feed-forward 2 · 6 + 3 + 2 = 17, twice; norms 5 · 4;
    # tables (5 + 7 + 7) · 2.
    what = "with 5 and 7 tokens, d_model=2, d_ff=3, one post-norm layer each, the count is wrong"
    expect.close(count, 72 + 34 + 20 + 38, what)
    expect.equal(count, 164, "the count should be an int")
    what = "with pre_norm=True there is one more norm behind each stack"
    expect.close(student(5, 7, 2, 3, 1), 164 + 8, what)
    expect.close(student(5, 7, 2, 3, 1, tied="target"), 172 - 14, 'tied="target" is counted wrong')
    expect.close(student(7, 7, 2, 3, 1, tied="all"), 172 - 38 + 14, 'tied="all" is counted wrong')
    source_size, target_size, d_model, d_ff, n_layers = draw.integers(2, 9, 5).tolist()
    with torch.device("meta"):
        kinds = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
        parts = [kind(d_model, 1, d_ff) for kind in kinds for _ in range(n_layers)]
        parts += [nn.LayerNorm(d_model), nn.LayerNorm(d_model)]
    inside = sum(parameter.numel() for part in parts for parameter in part.parameters())
    tables = (source_size + 2 * target_size) * d_model
    what = (
        f"with n_layers={n_layers}, d_model={d_model}, d_ff={d_ff} it differs from PyTorch's layers"
    )
    sizes = (source_size, target_size, d_model, d_ff, n_layers)
    expect.close(student(*sizes), inside + tables, what)
    for d_model, d_ff, expected in ((512, 2048, 63_082_496), (1024, 4096, 214_245_376)):
        count = student(37000, 37000, d_model, d_ff, 6, pre_norm=False, tied="all")
        expect.close(count, expected, f"the paper's model with d_model={d_model} is counted wrong")
