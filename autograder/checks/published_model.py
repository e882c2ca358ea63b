"""Checks of lesson 19. Oracles: F.gelu, cuts by definition, PyTorch's layers, loops, full sorts."""

import math

import torch
from torch.nn import functional as F

from autograder.checking import counterexamples
from autograder.checking.toolbox import expect, layer_oracles
from autograder.checking.toolbox.registry import check

F64 = torch.float64
UNKNOWN = ("[UNK]",)  # the pieces of a word that cannot be cut
SIZES = (18, 3, 20)  # d_model, n_heads, d_ff
TINY = 1e-5  # of numbers with a variance that 1e-12 changes visibly, and 1e-5 altogether
LAYERS, OUTPUTS, PADDING = "the layers", "every layer's output", "with padding"
EMBEDDINGS = {
    "embeddings.word_embeddings.weight": "embeddings.words.weight",
    "embeddings.position_embeddings.weight": "embeddings.positions.weight",
    "embeddings.token_type_embeddings.weight": "embeddings.types.weight",
    "embeddings.LayerNorm.weight": "embeddings.norm.weight",
    "embeddings.LayerNorm.bias": "embeddings.norm.bias",
}
OF_A_LAYER = (  # in the file, in the model
    ("attention.self.query", "attention.W_q"),
    ("attention.self.key", "attention.W_k"),
    ("attention.self.value", "attention.W_v"),
    ("attention.output.dense", "attention.W_o"),
    ("attention.output.LayerNorm", "norm_1"),
    ("intermediate.dense", "feed_forward.linear_1"),
    ("output.dense", "feed_forward.linear_2"),
    ("output.LayerNorm", "norm_2"),
)


def _tensor(*numbers):
    return torch.tensor(numbers, dtype=F64)


@check(
    rests_on=(
        "the share Φ(x) of a normal distribution, with mean 0 and variance 1, that lies below x",
        "Write it for a tensor of any shape.",
        "not the approximation by a tanh",
    )
)
def gelu(student, draw):
    """Three numbers by hand, then F.gelu, for all shapes."""
    values = student(_tensor(-1, 0, 1))
    expect.shape(values, (3,))
    share = 0.8413447460685429  # of a normal distribution below 1
    expected = _tensor(share - 1, 0, share)
    expect.close(values, expected, "for -1, 0 and 1, where Φ is 0.159, 0.5 and 0.841, it is wrong")
    for shape in ((2, 5, 7), (7,), (3, 2, 5, 6), ()):
        x = 2 * draw.normal(*shape)
        what = f"for a tensor of shape {shape} it differs from x times Φ(x)"
        expect.close(student(draw.strided(x) if shape else x), F.gelu(x), what)
    with expect.care():
        x = 300 * draw.normal(3, 1)
        expect.close(student(x), F.gelu(x), "for large numbers it is wrong")


def _same(got, expected, what):
    """Equal lists; a tuple in place of one is a matter of care."""
    with expect.care():
        said = "the pieces come back in a tuple, and not in a list"
        expect.true(not isinstance(got, tuple), said, expect.describe(got), "a list of pieces")
    got = list(got) if isinstance(got, tuple) else got
    expect.true(isinstance(got, list), what, expect.describe(got), "a list of pieces")
    expect.equal(got, expected, what)


def _vocabulary(*pieces):
    return {piece: number for number, piece in enumerate(pieces)}


def _cut(word, vocabulary):
    """By definition: of all pieces that fit, the longest."""
    pieces, done = [], 0
    while done < len(word):
        fitting = [
            piece
            for piece in vocabulary
            if (not done or piece.startswith("##"))
            and len(letters := piece.removeprefix("##") if done else piece)
            and word[done:].startswith(letters)
        ]
        if not fitting:
            return list(UNKNOWN)
        pieces.append(max(fitting, key=len))
        done += len(pieces[-1]) - 2 * (done > 0)
    return pieces


@check(
    without={"care": "a word and a dict go in: no device, no dtype and no gradient"},
    rests_on=(
        "the longest piece that fits",
        "with `##` in front and the rest of the word begins with it",
        "A piece once taken is kept.",
        'If nothing fits the rest, the whole word becomes `["[UNK]"]`',
        "Capital and small letters are different letters.",
        '{piece: id}; a piece that continues a word begins with "##"',
    ),
)
def wordpiece(student, draw):
    """Words by hand, each for one rule; then random words, cut by definition."""
    some = _vocabulary("play", "##ing", "##in", "##g", "##ed", "playe", "p")
    _same(student("playing", some), ["play", "##ing"], "playing should become play and ##ing")
    _same(student("play", some), ["play"], "a word that is in the vocabulary is one piece")
    known = _vocabulary("u", "##n", "un", "##a", "##ff", "##aff", "##able", "##ab", "##le")
    what = "unaffable is not cut into the longest pieces"
    _same(student("unaffable", known), ["un", "##aff", "##able"], what)
    # Each pair differs in one piece, which may not be taken: so the sentence is true of the second.
    what = "playing, with play, ##in and ##g, should become these three"
    _same(student("playing", _vocabulary("play", "##in", "##g")), ["play", "##in", "##g"], what)
    what = "a piece without ## cannot go on with a word: playing, with play, ing, ##in and ##g,"
    pieces = _vocabulary("play", "ing", "##in", "##g")
    _same(student("playing", pieces), ["play", "##in", "##g"], f"{what} is cut wrongly")
    what = "ing, with i and ##ng, should become these two"
    _same(student("ing", _vocabulary("i", "##ng")), ["i", "##ng"], what)
    what = "a piece with ## cannot begin a word: ing, with ##ing, i and ##ng, is cut wrongly"
    _same(student("ing", _vocabulary("##ing", "i", "##ng")), ["i", "##ng"], what)
    for word in ("played", "gplay", "player", "plaing", "Playing", "q"):
        what = f"{word}, with play, ##ing, ##in, ##g, ##ed, playe and p, should be unknown"
        _same(student(word, some), ["[UNK]"], what)
    what = "aaaaaaa, with aa, ##aa and ##a, should become aa, ##aa, ##aa and ##a"
    got = student("aaaaaaa", _vocabulary("aa", "##aa", "##a"))
    _same(got, ["aa", "##aa", "##aa", "##a"], what)
    what = "straße, with stra, ##ß and ##e, is cut wrongly"
    _same(student("straße", _vocabulary("stra", "##ß", "##e")), ["stra", "##ß", "##e"], what)
    for n in range(24):
        word, vocabulary = _word_and_pieces(draw, n)
        what = f"with the pieces {' '.join(vocabulary)} the word {word} is cut wrongly"
        _same(student(word, vocabulary), _cut(word, vocabulary), what)


def _word_and_pieces(draw, n):
    """A word of few letters, and pieces of it, of which the shortest are often missing."""
    letters = "abc"[: 2 + n % 2]
    word = "".join(draw.choice(letters) for _ in range(n // 2 + 1))
    pieces = []
    for _ in range(8):
        start, size = (draw.integers(0, end, 1).item() for end in (len(word), 4))
        start = start if draw.uniform(1).item() < 0.7 else 0
        pieces.append("##" * (start > 0) + word[start : start + size + 1])
    singles = [prefix + one for one in letters for prefix in ("", "##")]
    pieces += [one for one in singles if draw.uniform(1).item() < 0.8]
    order = draw.permutation(len(pieces)).tolist()
    return word, _vocabulary(*dict.fromkeys(pieces[place] for place in order))


@check(
    without={**counterexamples.WITHOUT, "care": "an example is asked for: there is none to take"},
    rests_on=(
        "An input on which tries_every_cut and wordpiece give different pieces",
        "returns a tuple (word, vocabulary), as wordpiece takes them",
    ),
)
def break_wordpiece(student, draw):
    """An input on which tries_every_cut is wrong."""
    counterexamples.judge(student, "wordpiece", "tries_every_cut", allowed=_word_and_vocabulary)


def _word_and_vocabulary(word, vocabulary):
    is_word = isinstance(word, str) and len(word.split()) == 1 and word == word.strip()
    expect.true(is_word, "this is no word", expect.describe(word), "a str without spaces")
    is_known = isinstance(vocabulary, dict) and all(type(n) is int for n in vocabulary.values())
    what = "this is no vocabulary"
    expect.true(is_known, what, expect.describe(vocabulary), "a dict {piece: id}")


def _stack(draw, n_layers, sizes=SIZES):
    values = {}
    for number in range(n_layers):
        values |= layer_oracles.layer(draw, sizes, f"layers.{number}.")
    return values


def _built(student, values, n_layers, sizes=SIZES, **options):
    module = student.build(*sizes, n_layers, **options)
    module.load({name: value for name, value in values.items() if _number(name) < n_layers})
    return module


def _number(name):
    return int(name.split(".")[1])


def _outputs(values, n_layers, x, mask=None, sizes=SIZES):
    """x and what each of PyTorch's layers gives, with GELU and BERT's eps."""
    B, T, _ = x.shape
    hidden = None
    if mask is not None:
        hidden = layer_oracles.forbidden(mask[:, None], sizes[1], B, T, T)
    outputs = [x]
    for number in range(n_layers):
        made = layer_oracles.pytorch_layer(values, sizes, f"layers.{number}.")
        made.activation, made.activation_relu_or_gelu = F.gelu, 2
        made.norm1.eps = made.norm2.eps = 1e-12
        outputs.append(made(outputs[-1], src_mask=hidden))
    return torch.stack(outputs)


@check(
    rests_on=(
        "stack `n_layers` of them",
        "each layer has weights of its own and reads what the layer before it gives",
        "with what `bert_layer` changes",
        "return all intermediate results, stacked in one tensor: `x` itself, then what each layer",
        "No token may look at padding, in any layer.",
        "`mask=None` means that all tokens are real.",
        "A token of the padding may look at the real ones, like any other.",
    ),
    stages={LAYERS: 1, OUTPUTS: 1, PADDING: 1},
)
def BertLayers(student, draw):  # noqa: N802, the name of the exercise
    """Equal to PyTorch's layers with GELU and eps=1e-12, one by one, and under a mask."""
    values, x = _stack(draw, 3), draw.normal(2, 5, 18)
    with expect.stage(LAYERS):
        module = _built(student, values, 3)
        output = module(x)
        expect.shape(output, (2, 5, 18), axes="B, T, d_model")
        expect.dtype(output, F64)
        what = "three layers differ from nn.TransformerEncoderLayer with GELU and eps=1e-12"
        expect.close(output, _outputs(values, 3, x)[-1], what)
        _sees_tiny_numbers(student, draw)
        _compare_stacks(student, draw, values)
    with expect.stage(OUTPUTS):
        _collects(student, draw, values, x)
        if expect.stands(LAYERS):
            hidden = _built(student, values, 3)(x, return_layers=True)
            what = "one of the outputs differs from that of PyTorch's layer"
            expect.close(hidden, _outputs(values, 3, x), what)
    with expect.stage(PADDING):
        _hides_padding(student, draw, values)
        if expect.stands(LAYERS):
            for fused in (False, True):
                _compare_masked(student, draw, values, fused)


def _sees_tiny_numbers(student, draw):
    """What a norm divides by shows where its numbers are as small as the root of eps."""
    values = _stack(draw, 1)
    quiet = ("W_o.weight", "W_o.bias", "norm_1.weight", "norm_1.bias", "linear_2.weight")
    for name in values:
        if name.endswith((*quiet, "linear_2.bias")):
            values[name] = TINY * values[name]
    x = TINY * draw.normal(2, 7, 18)
    what = "for tiny numbers, where the eps of the norms shows, one layer is wrong"
    expect.close(_built(student, values, 1)(x), _outputs(values, 1, x)[-1], what)


def _compare_stacks(student, draw, values):
    for sizes, n_layers, B, T in (((6, 2, 5), 2, 3, 4), ((4, 1, 7), 1, 2, 3)):
        other, x = _stack(draw, n_layers, sizes), draw.normal(B, T, sizes[0])
        what = f"with d_model, n_heads, d_ff = {sizes} and n_layers={n_layers} it is wrong"
        expected = _outputs(other, n_layers, x, sizes=sizes)[-1]
        expect.close(_built(student, other, n_layers, sizes)(x), expected, what)
    fused, x = _built(student, values, 2, fused=True), draw.normal(3, 5, 18)
    expect.close(fused(x), _outputs(values, 2, x)[-1], "with fused=True it is wrong")
    for B, T in ((1, 1), (4, 1), (1, 6)):
        with expect.care():
            x = draw.normal(B, T, 18)
            x[0, 0] *= 200
            what = f"with B={B}, T={T} and large numbers it is wrong"
            expected = _outputs(values, 2, x)[-1]
            expect.close(_built(student, values, 2)(draw.strided(x)), expected, what)


def _collects(student, draw, values, x):
    """Item i is what a stack of i layers gives, whatever a layer does."""
    module = _built(student, values, 3)
    hidden, output = module(x, return_layers=True), module(x)
    expect.shape(hidden, (4, 2, 5, 18), axes="n_layers + 1, B, T, d_model")
    expect.close(hidden[0], x, "with return_layers=True, item 0 should be x itself")
    for number in (1, 2):
        before = _built(student, values, number)(x)
        what = f"with return_layers=True, item {number} is not what layer {number - 1} gives"
        expect.close(hidden[number], before, what)
    what = "with return_layers=True, the last item is not what comes without it"
    expect.close(hidden[3], output, what)
    far = (hidden[1:] - hidden[:-1]).abs().amax((1, 2, 3))
    expect.true(bool((far > 1e-3).all()), "a layer changes nothing: its output is what goes in")


def _masks(draw, B, T):
    """With gaps; the first text has padding at its end, the last has none."""
    mask = draw.uniform(B, T) < 0.6
    mask[:, 1] = True
    mask[0] = torch.arange(T) < 3
    mask[-1] = True
    return mask


def _hides_padding(student, draw, values):
    """Padding changes nothing that is real; each real token changes something."""
    module, x, mask = _built(student, values, 2), draw.normal(3, 6, 18), _masks(draw, 3, 6)
    mask[1] = torch.tensor([0, 1, 1, 0, 1, 0]).bool()
    output = module(x, mask)
    expect.shape(output, (3, 6, 18), axes="B, T, d_model")
    other = torch.where(mask[..., None], x, draw.normal(3, 6, 18, scale=3.0))
    what = "other numbers in the padding change what comes out at real tokens"
    expect.close(module(other, mask)[mask], output[mask], what)
    other = x.clone()
    other[0, 0], other[1, 4] = draw.normal(18, scale=3.0), draw.normal(18, scale=3.0)
    moved = (module(other, mask) - output)[:2].abs().amax(-1)
    seen = bool(moved[0, 2] > 1e-6) and bool(moved[1, 1] > 1e-6)
    expect.true(seen, "under a mask, a real token is not seen by another one")


def _compare_masked(student, draw, values, fused):
    module = _built(student, values, 3, fused=fused)
    what = f"under a mask{', with fused=True,' * fused} it differs from PyTorch's layers"
    for B, T in ((2, 5), (4, 6)):
        x, mask = draw.normal(B, T, 18), _masks(draw, B, T)
        x[~mask] *= 30
        expected = _outputs(values, 3, x, mask)
        output = module(draw.strided(x), draw.strided(mask))
        expect.shape(output, x.shape, axes="B, T, d_model")
        expect.close(output[mask], expected[-1][mask], what)
        expect.close(output, expected[-1], "under a mask, the output at padding is wrong")
        if expect.stands(OUTPUTS):
            hidden = module(x, mask, return_layers=True)
            expect.shape(hidden, expected.shape, axes="n_layers + 1, B, T, d_model")
            expect.close(hidden, expected, f"{what}: one of the outputs is another one")


def _file(draw, numbers):
    """Pairs of dicts: a file with the layers of these numbers, and what becomes of it."""
    pairs = list(EMBEDDINGS.items())
    for number in numbers:
        for theirs, ours in OF_A_LAYER:
            for part in ("weight", "bias"):
                names = (
                    f"encoder.layer.{number}.{theirs}.{part}",
                    f"encoder.layers.{number}.{ours}.{part}",
                )
                pairs.append(names)
    file = {theirs: draw.normal(2, 3) for theirs, _ in pairs}
    return file, {ours: file[theirs] for theirs, ours in pairs}


def _random(draw, expected):
    """What a model has for these names before they are loaded, in an order of its own."""
    names = list(expected)
    order = [names[place] for place in draw.permutation(len(names)).tolist()]
    return {name: draw.normal(*expected[name].shape) for name in order}


def _renamed(got, expected, what):
    """A dict of the same names, with the same tensors."""
    expect.true(isinstance(got, dict), what, expect.describe(got), "a dict {name: tensor}")
    missing, extra = expected.keys() - got.keys(), got.keys() - expected.keys()
    found = f"also {min(extra)}" if extra else f"no {min(missing, default='')}"
    wanted = min(missing) if missing else f"no {min(extra, default='')}"
    expect.true(not missing and not extra, f"{what}: the names are wrong", found, wanted)
    for name, weight in expected.items():
        expect.close(got[name], weight, f"{what}: {name} is not the tensor of the file")


@check(
    without={
        "gradients": "a dict comes out: its tensors are those of the file",
        "large": "no number is computed",
        "strided": "no number is computed",
    },
    rests_on=(
        "Give every weight of the file its new name.",
        "Each part that stands in `NAMES` is replaced, in the order of the table",
        "Leave out every name that begins with one of `UNUSED`.",
        "A weight that has no place in the model, or a place for which the file has no weight, "
        "raises a ValueError in which that name stands",
        "{name in the model: tensor of the file}",
    ),
    stages={"the names": 1, "the refusal": 1},
)
def rename_weights(student, draw):
    """A few names by hand, all names of a file, and what does not fit."""
    with expect.stage("the names"):
        _gives_new_names(student, draw)
    with expect.stage("the refusal"):
        _refuses(student, draw)


def _gives_new_names(student, draw):
    first = {"embeddings.LayerNorm.bias": draw.normal(3)}
    wanted = {"embeddings.norm.bias": draw.normal(3)}
    got = student(first, wanted)
    what = "embeddings.LayerNorm.bias should become embeddings.norm.bias"
    _renamed(got, {"embeddings.norm.bias": first["embeddings.LayerNorm.bias"]}, what)
    names = {
        "encoder.layer.3.attention.self.query.weight": "encoder.layers.3.attention.W_q.weight",
        "encoder.layer.3.attention.output.dense.weight": "encoder.layers.3.attention.W_o.weight",
        "encoder.layer.3.output.dense.weight": "encoder.layers.3.feed_forward.linear_2.weight",
        "encoder.layer.11.output.LayerNorm.bias": "encoder.layers.11.norm_2.bias",
    }
    for theirs, ours in names.items():
        weight = draw.normal(2, 3)
        got = student({theirs: weight}, {ours: draw.normal(2, 3)})
        _renamed(got, {ours: weight}, f"a file with {theirs} alone")
    unused = {"pooler.dense.bias": draw.normal(3), "pooler.dense.weight": draw.normal(3, 3)}
    unused["embeddings.position_ids"] = torch.arange(7).view(1, 7)
    got = student(unused | first, wanted)
    _renamed(got, {"embeddings.norm.bias": [*first.values()][0]}, "a file with unused weights")
    for numbers in ((0,), (0, 1, 2, 10, 11)):
        file, expected = _file(draw, numbers)
        what = f"a file with embeddings and the layers {', '.join(map(str, numbers))}"
        half = dict([*file.items()][: len(file) // 2])
        _renamed(student(half | unused | file, _random(draw, expected)), expected, what)
    for begins, of_layer in (
        ("pooler.", "pooler.weight"),
        ("embeddings.position_ids", "embeddings.position_ids"),
    ):
        theirs, ours = f"encoder.layer.0.{of_layer}", f"encoder.layers.0.{of_layer}"
        weight = draw.normal(1, 3)
        what = f"{theirs} does not begin with {begins}, so it should get its new name and stay"
        raised, got = student.outcome({theirs: weight}, {ours: draw.normal(1, 3)})
        expect.true(raised is None, what, f"{raised}: {got}", ours)
        _renamed(got, {ours: weight}, what)


def _refuses(student, draw):
    """One name too many, one too few; the message names it, as the model calls it or the file."""
    file, expected = _file(draw, (0, 1))
    theirs, ours = (
        "encoder.layer.1.attention.output.dense.bias",
        "encoder.layers.1.attention.W_o.bias",
    )
    expected = _random(draw, expected)
    raised, got = student.outcome(file, expected)
    what = "a file in which nothing is missing and nothing too much is refused"
    expect.true(raised is None, what, f"{raised}: {got}", "the weights under their new names")
    fewer = {name: weight for name, weight in expected.items() if name != ours}
    without = {name: weight for name, weight in file.items() if name != theirs}
    bias, norm, head = "classifier.bias", "encoder.layers.0.norm_1.bias", "head.bias"
    for wrong, wanted, names, what in (
        (file, fewer, (ours, theirs), f"the model has no {ours}, but the file has"),
        (without, expected, (ours, theirs), f"the file has nothing for {ours}"),
        (file | {bias: draw.normal(2)}, expected, (bias,), f"the model has no place for {bias}"),
        ({}, {norm: draw.normal(3)}, (norm,), f"an empty file has nothing for {norm}"),
        (
            without | {bias: draw.normal(2)},
            expected,
            (ours, theirs, bias),
            f"the file has nothing for {ours}, and the model no place for {bias}",
        ),
        (
            file,
            fewer | {head: draw.normal(2)},
            (head, ours, theirs),
            f"the model has no {ours}, and the file nothing for {head}",
        ),
    ):
        what = f"{what}: a ValueError should say so"
        message = expect.raises(student, ValueError, wrong, wanted, what=what)
        said = any(name in message for name in names)
        expect.true(said, "the error does not say the name", message, names[0])


@check(
    rests_on=(
        "the mean of its real tokens, divided by its own length",
        "every vector has length 1",
        "A text without a real token gets zeros.",
    )
)
def sentence_vectors(student, draw):
    """By hand, then loops; padding, a text without tokens."""
    hidden = _tensor(2, 0, 4, 8, 90, -700).view(1, 3, 2)
    mask = torch.tensor([[True, True, False]])
    got = student(hidden, mask)
    expect.shape(got, (1, 2), axes="B, d_model")
    expect.dtype(got, F64)
    what = "for (2, 0) and (4, 8), with padding at the end, it should be (3, 4) divided by 5"
    expect.close(got, _tensor(0.6, 0.8).view(1, 2), what)
    for B, T, d_model in ((3, 5, 7), (7, 6, 3), (5, 2, 6)):
        _compare_vectors(student, draw, B, T, d_model)
    got = student(hidden[:, :2], torch.tensor([[False, False]]))
    expect.close(got, torch.zeros(1, 2, dtype=F64), "a text without a real token should get zeros")
    for B, T, d_model in ((4, 1, 3), (1, 6, 2), (5, 3, 1)):
        with expect.care():
            _compare_vectors(student, draw, B, T, d_model)
    with expect.care():
        for size in (1e-3, 1e4):
            what = f"for vectors of length {size:g} or so it is wrong"
            _compare_vectors(student, draw, 3, 5, 7, size, what)


def _compare_vectors(student, draw, B, T, d_model, scale=1.0, what=""):
    hidden, mask = scale * draw.normal(B, T, d_model), draw.uniform(B, T) < 0.6
    mask[0], mask[-1, -1:] = True, True
    mask[1:2] = torch.arange(T) > T // 2
    mask[:, 0] |= ~mask.any(1)
    hidden[~mask] *= 300
    what = what or f"with B={B}, T={T} and d_model={d_model} it differs from loops"
    expected = torch.stack([_direction(*one) for one in zip(hidden, mask, strict=True)])
    expect.close(student(draw.strided(hidden), draw.strided(mask)), expected, what)


def _direction(vectors, real):
    total = torch.zeros(vectors.shape[1], dtype=F64)
    for vector, counts in zip(vectors, real.tolist(), strict=True):
        total = total + counts * vector
    length = math.sqrt(sum(number**2 for number in total.tolist()))
    return total / (length or 1)


@check(
    without={
        "gradients": "a search is nothing to learn from: numbers may come out",
        "large": "all vectors have length 1",
    },
    rests_on=(
        "the nearest passage is the one with the largest dot product",
        "compare one block of passages after the other, and keep only the k best so far",
        "their scores, and their rows in `passages`",
        "The last block may be shorter than the others",
        "a block may have fewer than `k` passages",
        "cosines, the largest first; and int64, the rows of `passages`",
        "Raises ValueError if k is more than N.",
    ),
)
def search(student, draw):
    """Four passages by hand, then a full sort, for blocks of all sizes."""
    passages = _tensor(0.6, 0.8, -1, 0, 0.8, -0.6, 0, 1).view(4, 2)
    queries = _tensor(1, 0, 0, -1).view(2, 2)
    got = student(queries, passages, 2)
    cosines, rows = expect.parts(got, "cosines", "rows")
    expect.shape(cosines, (2, 2), axes="Q, k")
    expect.shape(rows, (2, 2), axes="Q, k")
    expect.dtype(rows, torch.int64)
    what = "for the passages (0.6, 0.8), (-1, 0), (0.8, -0.6), (0, 1)"
    said = "and the query (1, 0), the two best"
    expect.close(rows[0], torch.tensor([2, 0]), f"{what} {said} are others")
    expect.close(cosines[0], _tensor(0.8, 0.6), f"{what} {said} have other cosines")
    said = "and the second query, (0, -1), the two best"
    expect.close(rows[1], torch.tensor([2, 1]), f"{what} {said} are others")
    expect.close(cosines[1], _tensor(0.6, 0), f"{what} {said} have other cosines")
    got = student(queries, passages, 4, 3)
    what = f"{what} all four, in blocks of 3,"
    cosines = _tensor(0.8, 0.6, 0, -1, 0.6, 0, -0.8, -1).view(2, 4)
    _found(got, cosines, [[2, 0, 3, 1], [2, 1, 0, 3]], what)
    for Q, N, d, k, block in (
        (2, 11, 5, 3, 4096),
        (3, 11, 5, 4, 11),
        (4, 12, 6, 3, 4),
        (3, 11, 5, 2, 4),
        (2, 13, 6, 5, 2),
        (5, 7, 3, 7, 3),
    ):
        _searches(student, draw, Q, N, d, k, block)
    for sizes in ((1, 9, 5, 1, 4), (3, 8, 6, 3, 1), (2, 1, 5, 1, 6), (3, 7, 2, 1, 7)):
        with expect.care():
            _searches(student, draw, *sizes)
    what = "there are only 4 passages: a ValueError should say that k=5 are too many"
    expect.raises(student, ValueError, queries, passages, 5, what=what)


@check(
    rests_on=(
        "Row i of `first` and row i of `second` are the vectors of a pair.",
        "They may have any length",
        "their **cosine, divided by the temperature**",
        "Text i of `first` chooses among all texts of `second` by a softmax over its scores",
        "its loss is minus the logarithm of the probability of its own partner",
        "Return the mean of these losses over the batch.",
    )
)
def contrastive_loss(student, draw):
    """Two pairs by hand, then the softmax in loops."""
    first, second = _tensor(3, 0, 0, 2).view(2, 2), _tensor(1, 0, 0, 5).view(2, 2)
    loss = student(first, second, 1.0)
    expect.shape(loss, ())
    expect.dtype(loss, F64)
    by_hand = math.log(1 + math.exp(-1))
    what = "with cosines of 1 on the diagonal, 0 beside it, and temperature=1 the loss is wrong"
    expect.close(loss, by_hand, what)
    what = "with these cosines and temperature=0.5 the loss is wrong"
    expect.close(student(first, second, 0.5), math.log(1 + math.exp(-2)), what)
    what = "with these cosines and the partners exchanged the loss is wrong"
    expect.close(student(first, second.flip(0), 1.0), 1 + by_hand, what)
    for B, d, temperature in ((5, 7, 0.3), (6, 3, 0.05), (4, 2, 2.0)):
        first, second = draw.normal(B, d), draw.normal(B, d, scale=300.0)
        what = f"with vectors of shape {(B, d)} and temperature={temperature} the loss is wrong"
        expected = _contrast(first, second, temperature)
        expect.close(
            student(draw.strided(first), draw.strided(second), temperature), expected, what
        )
    with expect.care():
        what = "with a single pair there is no other choice: the loss should be 0"
        expect.close(student(first[:1], second[:1], 0.1), 0.0, what)
        what = "with d=1 the loss is wrong"
        expected = _contrast(first[:, :1], second[:, :1], 0.5)
        expect.close(student(first[:, :1], second[:, :1], 0.5), expected, what)
        what = "with temperature=0.001, where exp(1 / temperature) overflows, the loss is wrong"
        expect.close(student(first, second, 0.001), _contrast(first, second, 0.001), what)


def _contrast(first, second, temperature):
    """The mean over the rows of minus the log of the own text's share."""
    losses = []
    for i, one in enumerate(first.tolist()):
        scores = [
            sum(x * y for x, y in zip(one, other, strict=True))
            / (math.hypot(*one) * math.hypot(*other) * temperature)
            for other in second.tolist()
        ]
        total = sum(math.exp(score - max(scores)) for score in scores)
        losses.append(math.log(total) + max(scores) - scores[i])
    return sum(losses) / len(losses)


def _unit(draw, *shape):
    return F.normalize(draw.normal(*shape), dim=-1)


def _searches(student, draw, Q, N, d, k, block):
    near = True
    while near:  # no two scores are so near each other that float32 could exchange them
        queries, passages = _unit(draw, Q, d), _unit(draw, N, d)
        cosines, rows = (queries @ passages.T).sort(dim=1, descending=True)
        near = bool((cosines[:, :-1] - cosines[:, 1:] < 1e-4).any())
    what = f"with {Q} queries, {N} passages, k={k} and block={block}"
    got = student(draw.strided(queries), draw.strided(passages), k, block=block)
    _found(got, cosines[:, :k], rows[:, :k].tolist(), what)


def _found(got, cosines, rows, what):
    found = expect.parts(got, "cosines", "rows")
    for one in found:
        expect.shape(one, cosines.shape, axes="Q, k")
    expect.close(found[1], torch.tensor(rows), f"{what} the rows are wrong")
    expect.close(found[0], cosines, f"{what} the cosines are wrong")
