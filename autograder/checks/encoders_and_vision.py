"""Checks of lesson 16. Oracles: loops, PyTorch's attention, its layers, and F.unfold."""

import math

import torch
from torch.nn import functional as F

from autograder.checking import counterexamples
from autograder.checking.asking.probes import LARGE
from autograder.checking.toolbox import expect, layer_oracles
from autograder.checking.toolbox.registry import check

F64 = torch.float64
SIZES = (18, 3, 20)  # d_model, n_heads, d_ff
MANY = LARGE // (5 * SIZES[0]) + 1  # sequences of 5 tokens: gradients are not asked of so many


def _tensor(*numbers):
    return torch.tensor(numbers, dtype=F64)


def _bools(*rows):
    return torch.tensor(rows).bool()


def _gappy(draw, *shape):
    """A mask with gaps: its first row allows some, its second nothing, its last everything."""
    mask = draw.uniform(*shape) < 0.6
    rows = mask.view(-1, shape[-1])
    rows[1:2] = False
    rows[2:][-1:] = True
    rows[0, 0], rows[0, 1:2], rows[0, 2:][-1:] = shape[-1] == 1, True, False
    return mask


def _with_a_zero(x):
    """Zeros for a token of the first sequence that `_gappy` takes for real: what is padding only
    the mask says."""
    x.view(-1, *x.shape[-2:])[0, :2][-1] = 0
    return x


def _pooled(x, query, mask=None):
    """PyTorch's attention with one query, and its weights; zeros where nothing may be seen."""
    mask = torch.ones(x.shape[:-1], dtype=torch.bool) if mask is None else mask
    scores = torch.einsum("...td,d->...t", x, query) / math.sqrt(len(query))
    scores = scores.masked_fill(~mask, -1e300)
    exps = torch.exp(scores - scores.amax(-1, keepdim=True)) * mask
    weights = torch.nan_to_num(exps / exps.sum(-1, keepdim=True))
    safe = mask | ~mask.any(-1, keepdim=True)
    asked = query.expand(*x.shape[:-2], 1, -1)
    context = F.scaled_dot_product_attention(asked, x, x, safe.unsqueeze(-2)).squeeze(-2)
    return context * mask.any(-1, keepdim=True), weights


@check(
    rests_on=(
        "The scores are divided by √d_model.",
        "a sequence that may attend to nothing both are zeros",
        "Attention with one query, for any number of axes in front",
        "the same for all sequences; usually learned",
        "a shape that is wrong for B = 1 only",
    ),
)
def attention_pooling(student, draw):
    """Weights by hand, then PyTorch's attention: gaps, nothing at all, more axes in front."""
    # √9 = 3: scores of 0 and log 3, so weights of 1/4 and 3/4.
    x = torch.zeros(1, 2, 9, dtype=F64)
    x[0, 0, 1], x[0, 1, 0], x[0, 1, 1] = 4, 1, 8
    query = torch.zeros(9, dtype=F64)
    query[0] = 3 * math.log(3)
    context, weights = expect.parts(student(x, query), "context", "weights")
    expect.shape(context, (1, 9), axes="B, d_model")
    expect.shape(weights, (1, 2), axes="B, T")
    what = "for scores of 0 and log 3 the weights should be 1/4 and 3/4"
    expect.close(weights, _tensor(0.25, 0.75).view(1, 2), what)
    expect.close(context[:, 1], _tensor(7), "with weights of 1/4 and 3/4 the context is wrong")
    for shape in ((3, 5, 7), (2, 3, 5, 6), (5, 6), (1, 6, 2)):
        _compare_drawn(student, draw, *shape)
    for shape in ((4, 1, 3), (3, 2, 1)):
        with expect.care():
            _compare_drawn(student, draw, *shape)
    # √9 = 3 again, so that the scores are the first features, whole numbers also in float32.
    x, query = draw.integers(-9, 9, 3, 4, 9).double(), torch.zeros(9, dtype=F64)
    x[:, :, 0] = torch.tensor([[-30000, -30001, -50, 7], [2001, 2000, 9, 1999], [800, -3000, 1, 1]])
    query[0] = 3
    mask = _bools([1, 1, 0, 0], [1, 0, 0, 1], [1, 1, 1, 1])
    with expect.care():
        _compare(student, draw, x, query, mask, "with large scores")


def _compare_drawn(student, draw, *shape):
    x, query = _with_a_zero(draw.normal(*shape)), 2 * draw.normal(shape[-1])
    _compare(student, draw, x, query, _gappy(draw, *shape[:-1]), f"for x of shape {shape}")


def _compare(student, draw, x, query, mask, where):
    result = student(draw.strided(x), draw.strided(query), draw.strided(mask))
    context, weights = expect.parts(result, "context", "weights")
    expected = _pooled(x, query, mask)
    expect.shape(weights, expected[1].shape, axes="..., T")
    empty = ~mask.any(-1)
    what = f"{where}, a sequence that may attend to nothing should have weights of 0"
    expect.close(weights[empty], expected[1][empty], what)
    what = f"{where}, under a mask, the weights are wrong"
    expect.close(weights, expected[1], what)
    expect.close(context, expected[0], f"{where}, under a mask, the context is wrong")
    context, weights = expect.parts(student(x, query), "context", "weights")
    expected = _pooled(x, query)
    expect.close(weights, expected[1], f"{where} and without a mask the weights are wrong")
    expect.close(context, expected[0], f"{where} and without a mask the context is wrong")


@check(
    asks={
        "learning": "a gradient must reach every weight",
    },
    rests_on=(
        "begin as zeros: every weight is the same at first",
        "Each level is what you wrote in 16.1",
        "A real sentence may have a vector of zeros",
        "three tensors: documents (B, d_model), sentence_weights (B, S)",
        "a sentence without a real word has weight 0",
    ),
    stages={"without a mask": 1, "with padded words": 1, "with empty sentences": 1},
)
def HierarchicalAttention(student, draw):  # noqa: N802
    """It begins with means; then loops over documents and sentences, padding at both levels."""
    module = student.build(3)
    named = module.parameters()
    got = ", ".join(named) or "none"
    wanted = "word_query and sentence_query, as parameters"
    fits = {*named} == {"word_query", "sentence_query"}
    expect.true(fits, "the parameters are other ones", got, wanted)
    sizes = 2, 4, 5, 7
    with expect.stage("without a mask"):
        for name in named:
            start = torch.zeros(3, dtype=F64)
            expect.close(named[name].double(), start, f"{name} should begin with zeros")
        _compare_documents(student, draw, sizes, None)
    with expect.stage("with padded words"):
        _compare_documents(student, draw, sizes, _padded_words(draw, *sizes[:3]))
    with expect.stage("with empty sentences"):
        _compare_documents(student, draw, sizes, _empty_sentences(draw, *sizes[:3]), alone=True)
        if expect.stands("with padded words"):
            _compare_documents(student, draw, sizes, _both_paddings(draw, *sizes[:3]))
    for sizes in ((3, 1, 2, 6), (1, 3, 1, 2), (2, 5, 3, 1)):
        with expect.stage("without a mask"), expect.care():
            _compare_documents(student, draw, sizes, None)
        with expect.stage("with empty sentences"), expect.care():
            if expect.stands("with padded words"):
                _compare_documents(student, draw, sizes, _both_paddings(draw, *sizes[:3]))


def _padded_words(draw, B, S, T):
    """Each sentence has a real word."""
    mask = _gappy(draw, B, S, T)
    mask[..., 1] |= ~mask.any(-1)
    return mask


def _empty_sentences(draw, B, S, T):
    """Of each sentence all words are real, or none."""
    real = _gappy(draw, B, S)
    real[0, -1] = True
    return real.unsqueeze(-1).repeat(1, 1, T)


def _both_paddings(draw, B, S, T):
    mask = _gappy(draw, B, S, T)
    mask[0, 1:2] = False  # a sentence without a word
    mask[1:] = mask[1:] & (B != 2)  # a document without a word
    mask[0, -1, 0] = True
    return mask


def _compare_documents(student, draw, sizes, mask, alone=False):
    """``alone``: what an empty sentence does to its own words is not asked."""
    B, S, T, d_model = sizes
    module = student.build(d_model)
    names = ("word_query", "sentence_query")
    values = {name: draw.normal(d_model, scale=0.4 if T == 5 else 2) for name in names}
    module.load(values)
    x, kept = draw.normal(B, S, T, d_model), torch.ones(B, S, T, dtype=torch.bool)
    if mask is None or not mask.any(-1).all():
        x[0, -1] = 0  # a sentence with words, whose vector is zero
    where = f"with B={B}, S={S}, T={T} and d_model={d_model}"
    if mask is None:
        result = module(draw.strided(x))
        _three(result, _documents(values, x, kept), f"{where} and no mask", kept.any(-1))
        return
    x[~mask] *= 100
    result, seen = module(draw.strided(x), draw.strided(mask)), mask.any(-1) | (not alone)
    _three(result, _documents(values, x, mask), f"{where}, under a mask,", seen)


def _three(result, expected, where, seen):
    """``seen`` (B, S): where the weights of the words are looked at."""
    names = ("documents", "sentence_weights", "word_weights")
    result = expect.parts(result, *names)
    for name, got, right, axes in zip(
        names, result, expected, ("B, d_model", "B, S", "B, S, T"), strict=True
    ):
        expect.shape(got, right.shape, axes=axes)
        if name == "sentence_weights":
            empty = ~expected[2].any(-1)
            what = f"{where} a sentence without a real word should have weight 0"
            expect.close(got[empty], right[empty], what)
    expect.close(result[2][seen], expected[2][seen], f"{where} the word_weights are wrong")
    for name, got, right in list(zip(names, result, expected, strict=True))[1::-1]:
        expect.close(got, right, f"{where} the {name} are wrong")


def _documents(values, x, mask):
    """One document and one sentence at a time."""
    documents, of_sentences, of_words = [], [], []
    for document, kept in zip(x, mask, strict=True):
        pairs = [
            _pooled(sentence, values["word_query"], words)
            for sentence, words in zip(document, kept, strict=True)
        ]
        sentences = torch.stack([pair[0] for pair in pairs])
        of_words.append(torch.stack([pair[1] for pair in pairs]))
        context, weights = _pooled(sentences, values["sentence_query"], kept.any(-1))
        documents.append(context)
        of_sentences.append(weights)
    return torch.stack(documents), torch.stack(of_sentences), torch.stack(of_words)


def _encoder(draw, n_layers, n_classes, max_length):
    """Weights of an EncoderClassifier."""
    d_model = SIZES[0]
    values = {
        "cls": draw.normal(d_model),
        "positions.table": draw.normal(1 + max_length, d_model),
    }
    for number in range(n_layers):
        values |= layer_oracles.layer(draw, SIZES, f"encoder.layers.{number}.")
    values |= layer_oracles.norm(draw, "encoder.norm", d_model)
    return values | layer_oracles.linear(draw, "head", d_model, n_classes)


def _classified(values, x, mask=None):
    """What PyTorch's layers say with these weights, vector by vector at both ends."""
    B, T, _ = x.shape
    rows = [values["cls"].repeat(B, 1)] + [x[:, t] for t in range(T)]
    table = values["positions.table"]
    x = torch.stack([row + table[place] for place, row in enumerate(rows)], dim=1)
    seen = torch.ones(B, 1 + T, dtype=torch.bool)
    if mask is not None:
        seen[:, 1:] = mask
    hidden = layer_oracles.forbidden(seen[:, None], SIZES[1], B, 1 + T, 1 + T)
    for number in range(sum(name.endswith("W_q.bias") for name in values)):
        made = layer_oracles.pytorch_layer(
            values, SIZES, f"encoder.layers.{number}.", pre_norm=True
        )
        x = made(x, src_mask=hidden)
    read = layer_oracles.normed(x[:, 0], values, "encoder.norm")
    return F.linear(read, values["head.weight"], values["head.bias"])


@check(
    asks={
        "learning": "a gradient must reach every weight",
    },
    rests_on=(
        "nothing is hidden but the padding",
        "In front of every sequence of the batch stands the same vector",
        "Score every class, from what the encoder makes of `cls`.",
        "are sizes and options of the `Encoder`",
        "`cls` may be attended to, too",
    ),
    stages={"cls in front": 1, "the positions": 1, "with a mask": 1},
)
def EncoderClassifier(student, draw):  # noqa: N802
    """Equal to PyTorch's layers behind an extra token, under masks; dropout as the encoder has."""
    values = _encoder(draw, 2, 11, 7)
    module = _loaded(student, values, (11, 7, *SIZES, 2, 0.0))
    without = values | {"positions.table": torch.zeros(8, SIZES[0], dtype=F64)}
    unplaced = _loaded(student, without, (11, 7, *SIZES, 2, 0.0))
    for one in (module, unplaced):
        one.eval()
    with expect.stage("cls in front"):  # its gradients would be those of the positions, too
        x = draw.normal(MANY, 5, 18)
        scores = unplaced(x)
        expect.shape(scores, (MANY, 11), axes="B, n_classes")
        expect.dtype(scores, F64)
        what = f"with B={MANY}, T=5, positions of 0 and no mask the scores are wrong"
        expect.close(scores, _classified(without, x), what)
    with expect.stage("the positions"):
        for B, T in ((2, 5), (3, 7)):
            _compare_scores(module, draw, values, B, T)
        for B, T in ((1, 1), (4, 1), (1, 6)):
            with expect.care():
                _compare_scores(module, draw, values, B, T)
        _drops_all(student, draw)
    with expect.stage("with a mask"):
        _hides_padding(unplaced, draw, without, MANY)
        if expect.stands("the positions"):
            _hides_padding(module, draw, values, 2)
            _hides_fused(student, draw)


def _hides_padding(module, draw, values, B):
    x, mask = draw.normal(B, 5, 18), draw.uniform(B, 5) < 0.6
    mask[:2] = _bools([1, 0, 1, 1, 0], [1, 1, 1, 1, 1])
    x[1, 2] = 0  # real all the same
    scores = module(x, mask)
    expect.shape(scores, (B, 11), axes="B, n_classes")
    other = x.clone()
    other[0, 4] = draw.normal(18, scale=3.0)
    what = "other numbers in the padding change the scores"
    expect.close(module(other, mask), scores, what)
    also = " and positions of 0" if B == MANY else ""
    what = f"under a mask{also} the scores differ from PyTorch's layers"
    expect.close(scores, _classified(values, x, mask), what)
    if also:
        return
    nothing = torch.zeros(3, 4, dtype=torch.bool)
    x = draw.normal(3, 4, 18)
    with expect.care():
        what = "with no real token the extra token sees only itself"
        expect.close(module(x, mask=nothing), _classified(values, x, nothing), what)


def _drops_all(student, draw):
    values = _encoder(draw, 1, 2, 3)
    module = _loaded(student, values, (2, 3, *SIZES, 1), dropout=1.0, fused=True)
    module.train()
    x = draw.normal(4, 3, 18)
    read = layer_oracles.normed(
        values["cls"] + values["positions.table"][0], values, "encoder.norm"
    )
    expected = F.linear(read, values["head.weight"], values["head.bias"]).expand(4, 2)
    what = "in training with dropout=1.0 only the extra token, its position and the norm are left"
    expect.close(module(x), expected, what)


def _hides_fused(student, draw):
    values = _encoder(draw, 1, 2, 3)
    module = _loaded(student, values, (2, 3, *SIZES, 1), dropout=1.0, fused=True)
    module.eval()
    x, mask = draw.normal(4, 2, 18), _bools([1, 0], [0, 1], [1, 1], [1, 0])
    what = "with fused=True, after eval(), the scores differ from PyTorch's layers"
    expect.close(module(x, mask), _classified(values, x, mask), what)


def _compare_scores(module, draw, values, B, T):
    x = draw.normal(B, T, 18)
    x[0, 0] *= 200
    x[0, 1:2] = 0
    what = f"with B={B}, T={T} and no mask the scores differ from PyTorch's layers"
    expect.close(module(draw.strided(x)), _classified(values, x), what)


def _loaded(student, values, sizes, **options):
    module = student.build(*sizes, **options)
    module.load(values)
    return module


@check(
    without={
        "float32": "ids come out, however the noise is stored",
        "gradients": "ids come out, which have no gradient",
        "large": "ids go in",
    },
    rests_on=(
        "a real token is hidden where its own is below share",
        "what the encoder reads",
        "the true id where a token is hidden",
        "IGNORED, which F.cross_entropy leaves out, elsewhere",
        "Padding is never hidden",
    ),
)
def mask_tokens(student, draw):
    """By hand; then tokens one by one, and the loss that PyTorch makes of what is wanted."""
    tokens = torch.tensor([[7, 5, 9, 4], [3, 8, 0, 0]])
    noise = torch.tensor([[0.1, 0.9, 0.3, 0.29], [0.5, 0.2, 0.0, 0.1]], dtype=F64)
    read, wanted = _two(student(tokens, noise, 0.3, mask_id=1), tokens.shape)
    what = "ids (7, 5, 9, 4), noise (0.1, 0.9, 0.3, 0.29), share 0.3, mask_id=1: it reads wrongly"
    expect.close(read[0], torch.tensor([1, 5, 9, 1]), what)
    what = f"{what.rpartition(':')[0]}: it guesses wrongly"
    expect.close(wanted[0], torch.tensor([7, -100, -100, 4]), what)
    what = "ids (3, 8, PAD, PAD), noise (0.5, 0.2, 0.0, 0.1), share 0.3: it reads wrongly"
    expect.close(read[1], torch.tensor([3, 1, 0, 0]), what)
    what = f"{what.rpartition(':')[0]}: it guesses wrongly"
    expect.close(wanted[1], torch.tensor([-100, 8, -100, -100]), what)
    for share, mask_id in ((0.15, 1), (0.6, 31), (1.0, 2), (0.0, 1)):
        _check_masked(student, draw, 3, 7, share, mask_id)
    for B, T in ((1, 5), (6, 1)):
        with expect.care():
            _check_masked(student, draw, B, T, 0.5, 1)


def _two(got, shape):
    fits = isinstance(got, tuple | list) and len(got) == 2
    expect.true(fits, "two tensors should come out", expect.describe(got), "a pair")
    for one in got:
        expect.shape(one, shape, axes="B, T")
        expect.dtype(one, torch.int64)
    return got


def _check_masked(student, draw, B, T, share, mask_id):
    tokens, noise = draw.integers(3, 30, B, T), draw.uniform(B, T)
    tokens[:, T // 2 + 1 :][draw.uniform(B, T - T // 2 - 1) < 0.5] = 0  # padding, with gaps
    if share < 1:
        noise[0, 0] = share  # not below it
    got = student(draw.strided(tokens), draw.strided(noise), share, mask_id)
    read, wanted = _two(got, (B, T))
    where = f"with B={B}, T={T}, share={share}, mask_id={mask_id}"
    expected_read, expected = tokens.clone(), torch.full((B, T), -100)
    for b, t in torch.cartesian_prod(torch.arange(B), torch.arange(T)).tolist():
        if noise[b, t] < share and tokens[b, t] != 0:
            expected_read[b, t], expected[b, t] = mask_id, tokens[b, t]
    expect.close(read, expected_read, f"{where}: what is read is wrong")
    expect.close(wanted, expected, f"{where}: what is to be guessed is wrong")
    if (expected >= 0).any():
        scores = draw.normal(B * T, 32)
        loss = F.cross_entropy(scores, wanted.flatten())
        hidden = [n for n, token in enumerate(expected.flatten().tolist()) if token >= 0]
        log_p = [scores[n].log_softmax(0)[expected.flatten()[n]] for n in hidden]
        what = f"{where}: the loss is not the mean over the hidden tokens"
        expect.close(loss, -torch.stack(log_p).mean(), what)


@check(
    rests_on=(
        "The patches are counted as one reads, from the top left.",
        "N = height / P · width / P patches, row by row",
        "channel by channel, each row by row",
        "Raises ValueError if P does not divide height and width.",
    )
)
def patchify(student, draw):
    """Patches of small images by hand, then F.unfold."""
    image = torch.arange(24, dtype=F64).view(1, 1, 4, 6)
    patches = student(image, 2)
    expect.shape(patches, (1, 6, 4), axes="B, N, C · P · P")
    for number, first in ((0, 0), (1, 2), (3, 12)):
        expected = _tensor(first, first + 1, first + 6, first + 7)
        what = f"for an image of 4 × 6 that counts from 0, patch {number} is wrong"
        expect.close(patches[0, number], expected, what)
    images = torch.arange(32, dtype=F64).view(2, 2, 2, 4)
    patches = student(images, 2)
    expect.shape(patches, (2, 2, 8), axes="B, N, C · P · P")
    what = "of an image of 2 × 2 × 4 that counts from 0, patch 0 is not channel by channel"
    expect.close(patches[0, 0], _tensor(0, 1, 4, 5, 8, 9, 12, 13), what)
    what = "of a second image of 2 × 2 × 4 that counts from 16, patch 0 is wrong"
    expect.close(patches[1, 0], _tensor(16, 17, 20, 21, 24, 25, 28, 29), what)
    for sizes in ((2, 3, 8, 12, 4), (3, 2, 9, 6, 3)):
        _compare_patches(student, draw, *sizes)
    for sizes in ((1, 1, 5, 7, 1), (2, 5, 3, 3, 3), (1, 4, 2, 10, 2), (5, 1, 6, 3, 3)):
        with expect.care():
            _compare_patches(student, draw, *sizes)
    for height, width in ((5, 6), (6, 4)):
        message = expect.raises(
            student,
            ValueError,
            draw.normal(1, 1, height, width),
            3,
            what=f"P=3 does not divide {height} × {width}: a ValueError should say so",
        )
        with expect.care():
            expect.true("3" in message, "the error does not name the size", message)


def _compare_patches(student, draw, B, C, height, width, size):
    images = draw.normal(B, C, height, width, scale=100)
    got = student(draw.strided(images), size)
    shape = (B, height // size * (width // size), C * size * size)
    expect.shape(got, shape, axes="B, N, C · P · P")
    what = f"for {B} images of {C} × {height} × {width} and P={size} a patch is wrong"
    expect.close(got, F.unfold(images, size, stride=size).mT, what)


@check(
    without=counterexamples.WITHOUT | {"care": "only the input that is returned is looked at"},
    rests_on=(
        "Find images for which it does not.",
        "Return an input for which `cuts_by_the_height` gives wrong patches.",
        "a tuple (images, size), as `patchify` takes them",
    ),
)
def break_patchify(student, draw):
    """An input on which cuts_by_the_height is wrong."""
    counterexamples.judge(student, "patchify", "cuts_by_the_height", allowed=_images_to_cut)


def _images_to_cut(images, size):
    counterexamples.shaped("B, C, height, width")(images)
    whole = type(size) is int and size > 0
    expect.true(whole, "a patch has no such side", expect.describe(size), "a whole number from 1")
