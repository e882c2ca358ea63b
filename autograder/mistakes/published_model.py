"""Wrong and right answers to the exercises of lesson 19."""

import math
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F

from attention.encoders_and_vision import mean_pooling
from attention.provided import demand
from attention.published_model import NAMES, UNUSED, bert_layer
from attention.transformer_blocks import EncoderLayer
from autograder.checking.toolbox.registry import alternative, careless, mistake

TANH = (
    "This is the approximation by a tanh: right to three digits only. The weights were trained "
    "with the formula above."
)


@mistake("gelu", hint=TANH)
def approximates_with_a_tanh(x):
    return F.gelu(x, approximate="tanh")


@mistake(
    "gelu",
    hint="This is x times a sigmoid of 1.702 x, an approximation. The share that lies below x is "
    "given by erf.",
)
def approximates_with_a_sigmoid(x):
    return x * torch.sigmoid(1.702 * x)


@mistake("gelu", hint="This is a SiLU, x times a sigmoid. In place of the sigmoid stands Φ(x).")
def takes_a_sigmoid(x):
    return x * torch.sigmoid(x)


@mistake("gelu", hint="x goes into erf as it is. By what is it divided first?")
def forgets_the_root(x):
    return x * 0.5 * (1 + torch.erf(x))


@mistake("gelu", hint="x is divided by 2 inside erf. The formula divides by the root of 2.")
def divides_by_two(x):
    return x * 0.5 * (1 + torch.erf(x / 2))


@mistake("gelu", hint="x is multiplied by the root of 2 inside erf. It should be divided by it.")
def multiplies_by_the_root(x):
    return x * 0.5 * (1 + torch.erf(x * math.sqrt(2)))


@mistake("gelu", hint="This is the share Φ(x) alone. How much of x is kept?")
def returns_the_share(x):
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))


@mistake("gelu", hint="Everything is twice too large: Φ(x) has a factor of 1/2.")
def forgets_the_half(x):
    return x * (1 + torch.erf(x / math.sqrt(2)))


@mistake("gelu", hint="The 1 is outside the bracket: only the erf is halved, or only the 1.")
def halves_one_term(x):
    return x * (1 + 0.5 * torch.erf(x / math.sqrt(2)))


@mistake("gelu", hint="The 1 is missing: Φ(x) would be negative for a negative x.")
def forgets_the_one(x):
    return x * 0.5 * torch.erf(x / math.sqrt(2))


@mistake(
    "gelu",
    hint="x is multiplied by the density of the normal distribution at x, the bell. Φ(x) is the "
    "share that lies below x.",
)
def takes_the_density(x):
    return x * torch.exp(-x.square() / 2) / math.sqrt(2 * math.pi)


@mistake("gelu", hint="This is a ReLU: a number is kept whole, or dropped.")
def stays_a_relu(x):
    return torch.relu(x)


@mistake("gelu", hint="What erf gives is divided by the root of 2. Which number goes into erf?")
def divides_the_erf(x):
    return x * 0.5 * (1 + torch.erf(x) / math.sqrt(2))


@alternative("gelu")
def asks_pytorch(x):
    return F.gelu(x)


@alternative("gelu")
def asks_a_module(x):
    return nn.GELU()(x)


@alternative("gelu")
def takes_what_lies_above(x):
    return x * torch.special.ndtr(x)


@alternative("gelu")
def takes_the_complement(x):
    return x * torch.erfc(-x * 2**-0.5) / 2


@careless("gelu")
def divides_by_numbers_on_the_cpu(x):
    return x * 0.5 * (1 + torch.erf(x / torch.full(x.shape, math.sqrt(2))))


@careless("gelu")
def goes_through_numpy(x):
    flat = [one * 0.5 * (1 + math.erf(one / math.sqrt(2))) for one in x.flatten().tolist()]
    return torch.tensor(flat, dtype=x.dtype).view(x.shape)


def _walk(word, vocabulary, ends, later="##", unknown=lambda pieces: ["[UNK]"]):
    """Take pieces from left to right; ``ends(start, length)`` are tried in this order."""
    start, pieces = 0, []
    while len(word) > start:
        prefix = later if start else ""
        found = [e for e in ends(start, len(word)) if prefix + word[start:e] in vocabulary]
        if not found:
            return unknown(pieces)
        pieces.append(prefix + word[start : found[0]])
        start = found[0]
    return pieces


def _longest(start, length):
    return range(length, start, -1)


@mistake(
    "wordpiece",
    hint="The shortest piece that fits is taken. Which end of the word should be tried first?",
)
def takes_the_shortest(word, vocabulary):
    return _walk(word, vocabulary, lambda start, length: range(start + 1, length + 1))


@mistake(
    "wordpiece",
    hint="The first piece of the vocabulary that fits is taken. A later one may be longer.",
)
def takes_the_first_of_the_vocabulary(word, vocabulary):
    start, pieces = 0, []
    while len(word) > start:
        for piece in vocabulary:
            letters = piece[2:] if start else piece
            fits = piece.startswith("##") == bool(start) and word.startswith(letters, start)
            if fits and letters:
                pieces.append(piece)
                start += len(letters)
                break
        else:
            return ["[UNK]"]
    return pieces


@mistake(
    "wordpiece",
    hint="Where the longest piece leads nowhere, a shorter one is tried. What is taken stays "
    "taken: such a word is [UNK].",
)
def tries_every_cut(word, vocabulary):
    unknown, ways = ["[UNK]"], [([], word)]  # the pieces so far, and what is left of the word
    while ways:
        pieces, rest = ways.pop()
        if not rest:
            return pieces
        hashes = "##" if pieces else ""
        for end in range(1, len(rest) + 1):  # the longest comes last, and is tried first
            piece = hashes + rest[:end]
            if piece in vocabulary:
                ways.append(([*pieces, piece], rest[end:]))
    return unknown


@mistake(
    "wordpiece",
    hint="The pieces before the unknown part are kept, and [UNK] stands behind them. The whole "
    "word is unknown.",
)
def keeps_what_was_found(word, vocabulary):
    return _walk(word, vocabulary, _longest, unknown=lambda pieces: [*pieces, "[UNK]"])


@mistake(
    "wordpiece",
    hint="Where nothing fits, what was found so far comes back. Then the whole word is [UNK].",
)
def stops_without_a_word(word, vocabulary):
    return _walk(word, vocabulary, _longest, unknown=lambda pieces: pieces)


@mistake(
    "wordpiece",
    hint="A letter that fits nowhere is skipped, or becomes an [UNK] of its own. One such letter "
    "makes the whole word unknown.",
)
def makes_a_letter_unknown(word, vocabulary):
    start, pieces = 0, []
    while len(word) > start:
        prefix = "##" if start else ""
        ends = [e for e in _longest(start, len(word)) if prefix + word[start:e] in vocabulary]
        pieces.append(prefix + word[start : ends[0]] if ends else "[UNK]")
        start = ends[0] if ends else start + 1
    return pieces


@mistake(
    "wordpiece",
    hint="All pieces are looked up without ##. What goes on with a word has it in front.",
)
def forgets_the_hashes(word, vocabulary):
    return _walk(word, vocabulary, _longest, later="")


@mistake(
    "wordpiece",
    hint="The pieces are found with ##, but handed back without it: the ids are those of the "
    "pieces as they stand in the vocabulary.",
)
def drops_the_hashes(word, vocabulary):
    found = _walk(word, vocabulary, _longest)
    return [piece.removeprefix("##") for piece in found]


@mistake(
    "wordpiece",
    hint="A piece without ## goes on with a word where there is one. Only at the start it may.",
)
def goes_on_with_either(word, vocabulary):
    start, pieces = 0, []
    while len(word) > start:
        for end in _longest(start, len(word)):
            piece = word[start:end]
            if start and "##" + piece in vocabulary:
                pieces.append("##" + piece)
                break
            if piece in vocabulary:
                pieces.append(piece)
                break
        else:
            return ["[UNK]"]
        start = end
    return pieces


@mistake(
    "wordpiece",
    hint="The ids are handed back. Return the pieces themselves.",
)
def returns_ids(word, vocabulary):
    found = _walk(word, vocabulary, _longest)
    return [vocabulary.get(piece, 0) for piece in found]


@mistake(
    "wordpiece",
    hint="The piece with the id 0 is taken for one that is not there: 0 counts as False. Ask `in`.",
)
def takes_id_0_for_nothing(word, vocabulary):
    known = {piece for piece, number in vocabulary.items() if number}
    return _walk(word, known, _longest)


@mistake(
    "wordpiece",
    hint="A word that is in the vocabulary as a whole is cut all the same: the last end, "
    "len(word), is never tried, or only after the first piece.",
)
def never_takes_the_whole(word, vocabulary):
    return _walk(word, vocabulary, lambda start, length: range(length - (not start), start, -1))


@mistake(
    "wordpiece",
    hint="[UNK] comes back as a str. It should be a list with one piece, as for any other word.",
)
def returns_a_bare_unk(word, vocabulary):
    return _walk(word, vocabulary, _longest, unknown=lambda pieces: "[UNK]")


@mistake(
    "wordpiece",
    hint="Capital letters are made small. Here they are letters of their own: the tokeniser that "
    "calls you has done that already, where the model wants it.",
)
def writes_in_small_letters(word, vocabulary):
    return _walk(word.lower(), vocabulary, _longest)


@mistake(
    "wordpiece",
    hint="Every word is unknown. Is the end len(word) tried, which range leaves out as its second "
    "number? And does the loop end where nothing is left of the word?",
)
def puts_hashes_before_nothing(word, vocabulary):
    pieces, rest = [], word
    while rest:  # "##" is something, too
        found = [end for end in _longest(0, len(rest)) if rest[:end] in vocabulary]
        if not found:
            return ["[UNK]"]
        pieces.append(rest[: found[0]])
        rest = "##" + rest[found[0] :]
    return pieces


@mistake(
    "wordpiece",
    hint="Every word is unknown. Is the end len(word) tried, which range leaves out as its second "
    "number? And does the loop end where nothing is left of the word?",
)
def never_reaches_the_end(word, vocabulary):
    return _walk(word, vocabulary, lambda start, length: range(length - 1, start, -1))


@mistake(
    "wordpiece",
    hint="A word is cut into two pieces at most. Go on until nothing is left of it.",
)
def cuts_once(word, vocabulary):
    if word in vocabulary:
        return [word]
    for end in range(len(word) - 1, 0, -1):
        if word[:end] in vocabulary and "##" + word[end:] in vocabulary:
            return [word[:end], "##" + word[end:]]
    return ["[UNK]"]


@alternative("wordpiece")
def walks_over_the_ends(word, vocabulary):
    return _walk(word, vocabulary, _longest)


@alternative("wordpiece")
def cuts_by_calling_itself(word, vocabulary):
    def rest_of(rest, prefix):
        for end in range(len(rest), 0, -1):
            if prefix + rest[:end] in vocabulary:
                tail = rest_of(rest[end:], "##") if rest[end:] else []
                return None if tail is None else [prefix + rest[:end]] + tail
        return None

    pieces = rest_of(word, "")
    return ["[UNK]"] if pieces is None else pieces


@alternative("wordpiece")
def looks_through_the_vocabulary(word, vocabulary):
    by_length = sorted(vocabulary, key=len, reverse=True)
    rest, pieces = word, []
    while rest:
        piece = next((one for one in by_length if rest.startswith(one)), None)
        if piece is None:
            return ["[UNK]"]
        pieces.append(piece)
        rest = rest[len(piece) :]
        rest = "##" + rest if rest else ""
    return pieces


@alternative("wordpiece")
def shortens_from_the_end(word, vocabulary):
    pieces, rest = [], word
    while rest:
        candidate = rest
        while candidate and ("##" if pieces else "") + candidate not in vocabulary:
            candidate = candidate[:-1]
        if not candidate:
            return ["[UNK]"]
        pieces.append(("##" if pieces else "") + candidate)
        rest = rest[len(candidate) :]
    return pieces


def _cut_greedily(word, vocabulary):
    return _walk(word, vocabulary, _longest)


@mistake(
    "wordpiece",
    hint="No piece of one letter is ever tried. The shortest piece ends at `start + 1`.",
)
def never_takes_one_letter(word, vocabulary):
    return _walk(word, vocabulary, lambda start, length: range(length, start + 1, -1))


@careless("wordpiece")
def returns_a_tuple(word, vocabulary):
    return tuple(_walk(word, vocabulary, _longest))


@mistake(
    "break_wordpiece",
    hint="The longest pieces lead to the end of this word, so nothing has to be taken back.",
    where=lambda word, vocabulary: _cut_greedily(word, vocabulary) != ["[UNK]"],
)
def a_word_that_is_cut():
    return "playing", {"play": 0, "##ing": 1, "##in": 2, "##g": 3}


def _beginnings(word, vocabulary):
    return [piece for piece in vocabulary if piece and word.startswith(piece)]


@mistake(
    "break_wordpiece",
    hint="No piece of the vocabulary begins this word, so both give up at once.",
    where=lambda word, vocabulary: not _beginnings(word, vocabulary),
)
def a_word_without_a_beginning():
    return "abc", {"##a": 0, "##bc": 1}


@mistake(
    "break_wordpiece",
    hint="Whichever piece is taken first, this word cannot be cut to its end: going back does not "
    "help. One of the shorter pieces must lead to the end.",
    where=lambda word, vocabulary: (
        bool(_beginnings(word, vocabulary)) and tries_every_cut(word, vocabulary) == ["[UNK]"]
    ),
)
def a_word_that_nobody_cuts():
    return "abc", {"ab": 0, "a": 1}


@alternative("break_wordpiece")
def goes_back_in_the_middle():
    return "xabc", {"x": 0, "##ab": 1, "##a": 2, "##bc": 3}


@alternative("break_wordpiece")
def goes_back_to_a_letter():
    return "abc", {"[UNK]": 0, "ab": 7, "a": 3, "##bc": 5}


class _Embeddings(nn.Module):
    """The right answer in small methods, from which the mistakes are made."""

    eps = 1e-12

    def __init__(self, vocab_size, max_length, d_model, n_types=2):
        super().__init__()
        demand.counts(vocab_size=vocab_size, max_length=max_length, d_model=d_model)
        demand.counts(n_types=n_types)
        self.make(vocab_size, max_length, d_model, n_types)

    def make(self, vocab_size, max_length, d_model, n_types):
        self.words = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(max_length, d_model)
        self.types = nn.Embedding(n_types, d_model)
        self.norm = nn.LayerNorm(d_model, eps=self.eps)

    def places(self, ids):
        return torch.arange(ids.shape[1], device=ids.device)

    def total(self, ids):
        return self.words(ids) + self.positions(self.places(ids)) + self.types.weight[0]

    def forward(self, ids):
        return self.norm(self.total(ids))


@mistake(
    "BertEmbeddings",
    hint="The norm has PyTorch's own eps, 1e-5. With which one were the weights trained?",
)
class KeepsTheDefaultEps(_Embeddings):
    eps = 1e-5


@mistake("BertEmbeddings", hint="The sum is returned as it is. Where does it go last?")
class ForgetsTheNorm(_Embeddings):
    def forward(self, ids):
        return self.total(ids)


@mistake("BertEmbeddings", hint="The positions are not added. They are learned here, too.")
class ForgetsThePositions(_Embeddings):
    def total(self, ids):
        return self.words(ids) + self.types.weight[0]


@mistake(
    "BertEmbeddings",
    hint="The row of the type is not added. It is the same for all tokens, but it is not 0.",
)
class ForgetsTheTypes(_Embeddings):
    def total(self, ids):
        return self.words(ids) + self.positions(self.places(ids))


@mistake("BertEmbeddings", hint="The row of type 1 is added. All tokens are of type 0.")
class TakesTypeOne(_Embeddings):
    def total(self, ids):
        return self.words(ids) + self.positions(self.places(ids)) + self.types.weight[1]


@mistake(
    "BertEmbeddings",
    hint="The rows of all types are added up. All tokens are of type 0.",
)
class AddsAllTypes(_Embeddings):
    def total(self, ids):
        return self.words(ids) + self.positions(self.places(ids)) + self.types.weight.sum(0)


@mistake(
    "BertEmbeddings",
    hint="The type is looked up with the place or with the id of the token. All tokens are of type "
    "0.",
)
class LooksTypesUpWithPlaces(_Embeddings):
    def total(self, ids):
        places = self.places(ids)
        return self.words(ids) + self.positions(places) + self.types(places)


@mistake(
    "BertEmbeddings",
    hint="The type is looked up with the place or with the id of the token. All tokens are of type "
    "0.",
)
class LooksTypesUpWithIds(_Embeddings):
    def total(self, ids):
        return self.words(ids) + self.positions(self.places(ids)) + self.types(ids)


@mistake(
    "BertEmbeddings",
    hint="All tokens get the position T, or the last one: one row for the whole text. Each token "
    "has a place of its own.",
)
class PutsAllInOnePlace(_Embeddings):
    def total(self, ids):
        place = torch.tensor(ids.shape[1] - 1, device=ids.device)
        return self.words(ids) + self.positions(place) + self.types.weight[0]


@mistake(
    "BertEmbeddings",
    hint="The positions begin with 1, as in some models. Here the first token is at 0.",
)
class PlacesFromOne(_Embeddings):
    def places(self, ids):
        return super().places(ids) + 1


@mistake(
    "BertEmbeddings",
    hint="The positions are counted along the batch: there are B of them. Each text has T places.",
)
class CountsTheTexts(_Embeddings):
    def places(self, ids):
        return torch.arange(len(ids), device=ids.device)


@mistake(
    "BertEmbeddings",
    hint="The whole table of positions is added. A text of T tokens takes its first T rows.",
)
class AddsTheWholeTable(_Embeddings):
    def total(self, ids):
        return self.words(ids) + self.positions.weight + self.types.weight[0]


@mistake(
    "BertEmbeddings",
    hint="The positions are looked up with the ids of the tokens. A place is a number from 0 to T "
    "− 1, whatever stands there.",
)
class LooksPositionsUpWithIds(_Embeddings):
    def places(self, ids):
        return ids


@mistake(
    "BertEmbeddings",
    hint="The words are multiplied by √d_model, as in lesson 08. BERT adds them as they are.",
)
class ScalesTheWords(_Embeddings):
    def total(self, ids):
        root = math.sqrt(self.words.embedding_dim)
        x = root * self.words(ids) + self.positions(self.places(ids))
        return x + self.types.weight[0]


@mistake(
    "BertEmbeddings",
    hint="Only the words go through the norm. It is the sum of all three rows that does.",
)
class NormsTheWords(_Embeddings):
    def forward(self, ids):
        rest = self.positions(self.places(ids)) + self.types.weight[0]
        return self.norm(self.words(ids)) + rest


@mistake(
    "BertEmbeddings",
    hint="Each of the three rows goes through the norm by itself. Add them first.",
)
class NormsEachRow(_Embeddings):
    def forward(self, ids):
        x = self.norm(self.words(ids)) + self.norm(self.positions(self.places(ids)))
        return x + self.norm(self.types.weight[0])


@mistake("BertEmbeddings", hint="The three rows are joined to one of 3 · d_model. Add them up.")
class JoinsTheRows(_Embeddings):
    def forward(self, ids):
        words = self.words(ids)
        others = self.positions(self.places(ids)), self.types.weight[0]
        return torch.cat([words, *(one.expand_as(words) for one in others)], -1)


@mistake(
    "BertEmbeddings",
    hint="The parts have other names. The published weights find their places by name: words, "
    "positions, types and norm.",
)
class CallsThemOtherwise(_Embeddings):
    def make(self, vocab_size, max_length, d_model, n_types):
        super().make(vocab_size, max_length, d_model, n_types)
        self.layer_norm = self.norm
        del self.norm

    def forward(self, ids):
        return self.layer_norm(self.total(ids))


@mistake(
    "BertEmbeddings",
    hint="The table of positions has as many rows as there are word pieces. It needs max_length.",
)
class MakesTooManyPlaces(_Embeddings):
    def make(self, vocab_size, max_length, d_model, n_types):
        super().make(vocab_size, vocab_size, d_model, n_types)


@mistake(
    "BertEmbeddings",
    hint="There are always two types. How many there are says n_types.",
)
class AlwaysMakesTwoTypes(_Embeddings):
    def make(self, vocab_size, max_length, d_model, n_types):
        super().make(vocab_size, max_length, d_model, 2)


@mistake(
    "BertEmbeddings",
    hint="There is no table of types, although the published file holds one. Its name is types.",
)
class MakesNoTypes(_Embeddings):
    def make(self, vocab_size, max_length, d_model, n_types):
        super().make(vocab_size, max_length, d_model, n_types)
        del self.types

    def total(self, ids):
        return self.words(ids) + self.positions(self.places(ids))


@alternative("BertEmbeddings")
class EmbedsInSmallMethods(_Embeddings):
    """The right answer from which the mistakes are made."""


@alternative("BertEmbeddings")
class LooksAllUp(_Embeddings):
    def total(self, ids):
        types = torch.zeros_like(ids)
        return self.words(ids) + self.positions(self.places(ids))[None] + self.types(types)


@alternative("BertEmbeddings")
class LeavesPaddingWithoutGradients(_Embeddings):
    def make(self, vocab_size, max_length, d_model, n_types):
        super().make(vocab_size, max_length, d_model, n_types)
        self.words = nn.Embedding(vocab_size, d_model, padding_idx=0)


@alternative("BertEmbeddings")
class AddsTheTypeFirst(_Embeddings):
    def forward(self, ids):
        x = self.types(torch.zeros_like(ids)) + self.positions(self.places(ids)) + self.words(ids)
        return F.layer_norm(x, x.shape[-1:], self.norm.weight, self.norm.bias, 1e-12)


@alternative("BertEmbeddings")
class SlicesTheTables(_Embeddings):
    def total(self, ids):
        x = self.words(ids)
        x = x + self.positions.weight[: x.size(1)]
        return x + self.types.weight[:1]


@alternative("BertEmbeddings")
class ExpandsThePlaces(_Embeddings):
    def places(self, ids):
        return torch.ones_like(ids).cumsum(1) - 1


@careless("BertEmbeddings")
class CountsPlacesOnTheCpu(_Embeddings):
    def places(self, ids):
        return torch.arange(ids.shape[1])

    def total(self, ids):
        x = self.words(ids) + self.types.weight[0]
        return x + self.positions(self.places(ids).expand_as(ids))


@careless("BertEmbeddings")
class AddsUpInZeros(_Embeddings):
    def total(self, ids):
        x = torch.zeros(*ids.shape, self.words.embedding_dim, dtype=self.words.weight.dtype)
        x += self.words(ids)
        x += self.positions(self.places(ids)) + self.types.weight[0]
        return x


@mistake(
    "BertEmbeddings",
    hint="The rows are taken from `.data`, or behind a detach(): so the tables could not be "
    "trained any further. The weights themselves can be added.",
)
class AddsWithoutGradients(_Embeddings):
    def total(self, ids):
        rows = self.positions.weight.data[: ids.shape[1]] + self.types.weight.data[0]
        return self.words(ids) + rows


class _Layers(nn.Module):
    """The right answer in small methods, from which the mistakes are made."""

    def __init__(self, d_model, n_heads, d_ff, n_layers, fused=False):
        super().__init__()
        demand.counts(n_layers=n_layers)
        self.layers = self.make(n_layers, (d_model, n_heads, d_ff, fused))

    def make(self, n_layers, options):
        return nn.ModuleList([bert_layer(*options) for _ in range(n_layers)])

    def mask(self, mask, x):
        return None if mask is None else mask.unsqueeze(1)

    def hidden(self, x, mask):
        found = [x]
        for layer in self.layers:
            found.append(layer(found[-1], mask))
        return found

    def join(self, found):
        return torch.stack(found)

    def forward(self, x, mask=None, return_layers=False):
        found = self.hidden(x, self.mask(mask, x))
        return self.join(found) if return_layers else found[-1]


BUT_LAYERS, ALONE = ("every layer's output", "with padding"), ("the layers",)


@mistake(
    "BertLayers",
    hint="These are the layers of lesson 09 as they are, with ReLU and eps=1e-5. `bert_layer` "
    "makes those of a BERT.",
    earns=BUT_LAYERS,
)
class TakesPlainLayers(_Layers):
    def make(self, n_layers, options):
        d_model, n_heads, d_ff, fused = options
        made = [EncoderLayer(d_model, n_heads, d_ff, 0.0, fused=fused) for _ in range(n_layers)]
        return nn.ModuleList(made)


@mistake(
    "BertLayers",
    hint="The layers are pre-norm. `bert_layer` makes those of a BERT, which are post-norm.",
    earns=BUT_LAYERS,
)
class TakesPreNormLayers(_Layers):
    def make(self, n_layers, options):
        made = super().make(n_layers, options)
        for layer in made:
            layer.pre_norm = True
        return made


@mistake(
    "BertLayers",
    hint="The activation is right, but the norms have PyTorch's own eps, 1e-5. `bert_layer` sets "
    "both.",
    earns=BUT_LAYERS,
)
class KeepsTheEpsOfTheLayers(_Layers):
    def make(self, n_layers, options):
        made = super().make(n_layers, options)
        for layer in made:
            layer.norm_1.eps = layer.norm_2.eps = 1e-5
        return made


@mistake(
    "BertLayers",
    hint="The norms are right, but the layers have a ReLU. `bert_layer` puts a GELU in its place.",
    earns=BUT_LAYERS,
)
class KeepsTheRelu(_Layers):
    def make(self, n_layers, options):
        made = super().make(n_layers, options)
        for layer in made:
            layer.feed_forward.relu = nn.ReLU()
        return made


@mistake(
    "BertLayers",
    hint="There are weights for one layer only, however many are asked for: one layer, or one and "
    "the same several times. Call `bert_layer` once for each.",
)
class SharesOneLayer(_Layers):
    def make(self, n_layers, options):
        return nn.ModuleList([bert_layer(*options)] * n_layers)


@mistake(
    "BertLayers",
    hint="The layers are in a plain list, in which PyTorch does not look for weights. An "
    "nn.ModuleList makes them known.",
)
class KeepsAPlainList(_Layers):
    def __init__(self, d_model, n_heads, d_ff, n_layers, fused=False):
        super().__init__(d_model, n_heads, d_ff, n_layers, fused)
        made = list(self.layers)
        del self.layers
        self.layers = made


@mistake(
    "BertLayers",
    hint="Every layer reads x as it came in. Layer 1 should read what layer 0 gives.",
)
class FeedsXToEveryLayer(_Layers):
    def hidden(self, x, mask):
        return [x] + [layer(x, mask) for layer in self.layers]


@mistake(
    "BertLayers",
    hint="The layers are used from the last to the first.",
)
class GoesBackwards(_Layers):
    def hidden(self, x, mask):
        found = [x]
        for layer in reversed(self.layers):
            found.append(layer(found[-1], mask))
        return found


@mistake(
    "BertLayers",
    hint="What goes into a layer is added to what comes out. The layer has done that inside.",
)
class AddsAResidual(_Layers):
    def hidden(self, x, mask):
        found = [x]
        for layer in self.layers:
            found.append(found[-1] + layer(found[-1], mask))
        return found


@mistake(
    "BertLayers",
    hint="There are weights for one layer only, however many are asked for: one layer, or one and "
    "the same several times. Call `bert_layer` once for each.",
)
class MakesOneLayer(_Layers):
    def make(self, n_layers, options):
        return super().make(1, options)


@mistake(
    "BertLayers",
    hint="`x` itself is missing: n_layers tensors come back. What went in stands first.",
    earns=("the layers", "with padding"),
)
class LeavesOutX(_Layers):
    def join(self, found):
        return torch.stack(found[1:])


@mistake(
    "BertLayers",
    hint="The last layer's output is missing: what goes into each layer is collected, but nothing "
    "is collected after the last.",
    earns=("the layers", "with padding"),
)
class LeavesOutTheLast(_Layers):
    def join(self, found):
        return torch.stack(found[:-1])


@mistake(
    "BertLayers",
    hint="A list of tensors comes back. One tensor was asked for, with an axis in front for the "
    "layers: torch.stack.",
    earns=("the layers", "with padding"),
)
class ReturnsAList(_Layers):
    def join(self, found):
        return found


@mistake(
    "BertLayers",
    hint="The outputs are joined along the batch or the tokens: torch.cat makes no new axis. "
    "torch.stack does.",
    earns=("the layers", "with padding"),
)
class JoinsAlongTheBatch(_Layers):
    def join(self, found):
        return torch.cat(found)


@mistake(
    "BertLayers",
    hint="The axis of the layers stands behind that of the texts. It should be the first.",
    earns=("the layers", "with padding"),
)
class StacksBehindTheBatch(_Layers):
    def join(self, found):
        return torch.stack(found, 1)


@mistake(
    "BertLayers",
    hint="All items are the last output.",
    earns=("the layers", "with padding"),
)
class RepeatsTheLast(_Layers):
    def join(self, found):
        return torch.stack(found[-1:] * len(found))


@mistake(
    "BertLayers",
    hint="With return_layers=True the last output comes back alone: return_layers is not used.",
    earns=("the layers", "with padding"),
)
class ForgetsToReturnLayers(_Layers):
    def join(self, found):
        return found[-1]


@mistake(
    "BertLayers",
    hint="A pair comes back with return_layers=True. One tensor was asked for.",
    earns=("the layers", "with padding"),
)
class ReturnsAPair(_Layers):
    def join(self, found):
        return found[-1], torch.stack(found)


@mistake(
    "BertLayers",
    hint="The mask reaches no layer: the tokens look at padding.",
    earns=("the layers", "every layer's output"),
)
class ForgetsTheMask(_Layers):
    def mask(self, mask, x):
        return None


@mistake(
    "BertLayers",
    hint="The mask reaches the first layer only. In every layer padding is to be hidden.",
    earns=("the layers", "every layer's output"),
)
class MasksTheFirstLayer(_Layers):
    def hidden(self, x, mask):
        found = [x]
        for number, layer in enumerate(self.layers):
            found.append(layer(found[-1], None if number else mask))
        return found


@mistake(
    "BertLayers",
    hint="The mask goes into the layers as (B, T), which they read as (T_q, T_k). An axis of "
    "length 1 for the queries is missing.",
    earns=("the layers", "every layer's output"),
)
class ForgetsTheQueryAxis(_Layers):
    def mask(self, mask, x):
        return mask


@mistake(
    "BertLayers",
    hint="The mask's new axis stands behind the tokens: so it says who may ask, and not who may be "
    "seen. The layers take (B, 1, T).",
    earns=("the layers", "every layer's output"),
)
class HidesTheQueries(_Layers):
    def mask(self, mask, x):
        return None if mask is None else mask.unsqueeze(2)


@mistake(
    "BertLayers",
    hint="The mask is turned round: True = may be seen, as in all lessons before.",
    earns=("the layers", "every layer's output"),
)
class TurnsTheMaskRound(_Layers):
    def mask(self, mask, x):
        return None if mask is None else ~mask.unsqueeze(1)


@mistake(
    "BertLayers",
    hint="mask may be None: then there is no padding, and the layers get None, too.",
    earns=("with padding",),
)
class NeedsAMask(_Layers):
    def mask(self, mask, x):
        return mask.unsqueeze(1)


@mistake(
    "BertLayers",
    hint="The padding is set to 0, but it can still be looked at: a vector of zeros gets a weight, "
    "too. Only a mask in the attention hides it.",
    earns=("the layers", "every layer's output"),
)
class SetsPaddingToZero(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        x = x if mask is None else x * mask[..., None]
        return super().forward(x, None, return_layers)


@mistake(
    "BertLayers",
    hint="The mask is causal as well: a token sees only those before it. In a BERT all see all.",
    earns=("the layers", "every layer's output"),
)
class HidesTheFutureUnderAMask(_Layers):
    def mask(self, mask, x):
        return None if mask is None else mask.unsqueeze(1).expand(-1, x.shape[1], -1).tril()


@alternative("BertLayers")
class StacksInSmallMethods(_Layers):
    """The right answer from which the mistakes are made."""


@alternative("BertLayers")
class AppendsLayers(_Layers):
    def make(self, n_layers, options):
        made = nn.ModuleList()
        for _ in range(n_layers):
            made.append(bert_layer(*options[:3], fused=options[3]))
        return made


@mistake(
    "BertLayers",
    hint="Without a mask, too, a token sees only those before it, as in a language model. In a "
    "BERT all see all.",
    earns=("every layer's output",),
)
class HidesTheFuture(_Layers):
    def mask(self, mask, x):
        mask = torch.ones_like(x[..., 0], dtype=torch.bool) if mask is None else mask
        return mask.unsqueeze(1).expand(-1, x.shape[1], -1).tril()


@mistake(
    "BertLayers",
    hint="In your mask a token of the padding may look at nothing. The mask only says who may be "
    "seen: whoever asks, padding too, may look at all real tokens.",
    earns=("the layers", "every layer's output"),
)
class PairsTheMask(_Layers):
    def mask(self, mask, x):
        return None if mask is None else mask[:, None, :] & mask[:, :, None]


@alternative("BertLayers")
class ExpandsTheMask(_Layers):
    def mask(self, mask, x):
        mask = torch.ones_like(x[..., 0], dtype=torch.bool) if mask is None else mask
        return mask[:, None].expand(-1, x.shape[1], -1)


@alternative("BertLayers")
class JoinsWithCat(_Layers):
    def join(self, found):
        return torch.cat([one[None] for one in found], 0)


@mistake(
    "BertLayers",
    hint="What comes out at padding is set to 0. It should stay: a token of the padding looks at "
    "the real ones, and gets a vector like any other.",
    earns=("the layers", "every layer's output"),
)
class BlanksItsPadding(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        result = super().forward(x, mask, return_layers)
        return result if mask is None else result * mask[..., None]


@careless("BertLayers")
class CollectsInZeros(_Layers):
    def join(self, found):
        hidden = torch.zeros(len(found), *found[0].shape)
        for number, one in enumerate(found):
            hidden[number] = one
        return hidden


@careless("BertLayers")
class MasksOnTheCpu(_Layers):
    def mask(self, mask, x):
        every = torch.ones(x.shape[0], x.shape[1], dtype=torch.bool)
        return (every if mask is None else every & mask)[:, None]


def _rename(name, table=NAMES):
    for theirs, ours in table.items():
        name = name.replace(theirs, ours)
    return name


def _renamed(published, rename=_rename, unused=lambda name: name.startswith(UNUSED)):
    return {rename(name): weight for name, weight in published.items() if not unused(name)}


def _compared(renamed, wanted, extra=True, missing=True):
    for name in renamed if extra else ():
        if name not in wanted:
            raise ValueError(f"no place for {name}")
    for name in wanted if missing else ():
        if name not in renamed:
            raise ValueError(f"nothing for {name}")
    return renamed


@mistake(
    "rename_weights",
    hint="Only one part of a name is replaced. A name can hold several: replace one after the "
    "other, each in what the last one made.",
)
def replaces_the_first_part(published, wanted):
    def rename(name):
        found = next((one for one in NAMES if one in name), "")
        return name.replace(found, NAMES[found]) if found else name

    return _compared(_renamed(published, rename), wanted)


@mistake(
    "rename_weights",
    hint="Only one part of a name is replaced. A name can hold several: replace one after the "
    "other, each in what the last one made.",
)
def keeps_the_last_replacement(published, wanted):
    def rename(name):
        new = name
        for theirs, ours in NAMES.items():
            if theirs in name:
                new = name.replace(theirs, ours)
        return new

    return _compared(_renamed(published, rename), wanted)


@mistake(
    "rename_weights",
    hint="The shorter names are replaced first: output.dense also stands in "
    "attention.output.dense. The order of the table is right.",
)
def replaces_short_names_first(published, wanted):
    table = dict(sorted(NAMES.items(), key=lambda pair: len(pair[0])))
    return _compared(_renamed(published, lambda name: _rename(name, table)), wanted)


@mistake(
    "rename_weights",
    hint="What the model does not need is not left out: names that begin as in UNUSED.",
)
def keeps_the_unused(published, wanted):
    return _compared(_renamed(published, unused=lambda name: False), wanted)


@mistake(
    "rename_weights",
    hint="Weights for which the model has no place are handed back, or left out, without a word. A "
    "ValueError should say which one.",
    earns=("the names",),
)
def passes_what_has_no_place(published, wanted):
    return _compared(_renamed(published), wanted, extra=False)


@mistake(
    "rename_weights",
    hint="Weights for which the model has no place are handed back, or left out, without a word. A "
    "ValueError should say which one.",
    earns=("the names",),
)
def drops_what_has_no_place(published, wanted):
    renamed = _compared(_renamed(published), wanted, extra=False)
    return {name: weight for name, weight in renamed.items() if name in wanted}


@mistake(
    "rename_weights",
    hint="A place for which the file has no weight is not noticed: the model would keep what it "
    "began with. A ValueError should say which place.",
    earns=("the names",),
)
def passes_an_empty_place(published, wanted):
    return _compared(_renamed(published), wanted, missing=False)


@mistake(
    "rename_weights",
    hint="A place for which the file has no weight keeps the model's own. A ValueError should say "
    "which place.",
    earns=("the names",),
)
def fills_in_the_models_own(published, wanted):
    return wanted | _compared(_renamed(published), wanted, missing=False)


@mistake(
    "rename_weights",
    hint="Nothing is compared. The new names and those in `wanted` must be the same.",
    earns=("the names",),
)
def compares_nothing(published, wanted):
    return _renamed(published)


@alternative("rename_weights")
def complains_in_their_words(published, wanted):
    for name in published:
        if not name.startswith(UNUSED) and _rename(name) not in wanted:
            raise ValueError(f"no place for {name}")
    return _compared(_renamed(published), wanted)


@mistake(
    "rename_weights",
    hint="The error does not say which name does not fit.",
    earns=("the names",),
)
def complains_without_a_name(published, wanted):
    renamed = _renamed(published)
    if renamed.keys() != wanted.keys():
        raise ValueError("the names do not fit")
    return renamed


@mistake(
    "rename_weights",
    hint="Only how many names there are is compared. One name too many and one too few are as many "
    "as it should be: compare the names themselves.",
    earns=("the names",),
)
def compares_how_many(published, wanted):
    renamed = _renamed(published)
    if len(renamed) != len(wanted):
        raise ValueError(f"these do not fit: {sorted(renamed.keys() ^ wanted.keys())}")
    return renamed


@mistake(
    "rename_weights",
    hint="A name that does not fit raises a KeyError. A ValueError with that name was asked for.",
    earns=("the names",),
)
def raises_a_key_error(published, wanted):
    renamed = _renamed(published)
    for name in renamed:
        wanted[name]
    return {name: renamed[name] for name in wanted}


@mistake(
    "rename_weights",
    hint="The names are right, but the tensors are those of the model. Which ones were published?",
    earns=("the refusal",),
)
def returns_the_models_own(published, wanted):
    return {name: wanted[name] for name in _compared(_renamed(published), wanted)}


@mistake(
    "rename_weights",
    hint="The names of the file stay as they are. Is the table read from the file's names to the "
    "model's, and is what `replace` returns kept?",
)
def renames_the_other_way(published, wanted):
    table = {ours: theirs for theirs, ours in NAMES.items()}
    return _compared(_renamed(published, lambda name: _rename(name, table)), wanted)


@mistake(
    "rename_weights",
    hint="The names of the file stay as they are. Is the table read from the file's names to the "
    "model's, and is what `replace` returns kept?",
)
def forgets_what_replace_returns(published, wanted):
    return _compared(_renamed(published, lambda name: name), wanted)


@mistake(
    "rename_weights",
    hint="Weights are given to places in the order in which they stand, first to first. The file "
    "and the model may have other orders: the names say what belongs together.",
    earns=("the refusal",),
)
def pairs_by_order(published, wanted):
    renamed = _compared(_renamed(published), wanted)
    return dict(zip(wanted, renamed.values(), strict=True))


@mistake(
    "rename_weights",
    hint="The weights stand under the names that they had in the file.",
    earns=("the refusal",),
)
def keeps_their_names(published, wanted):
    _compared(_renamed(published), wanted)
    return {name: weight for name, weight in published.items() if not name.startswith(UNUSED)}


@alternative("rename_weights")
def compares_sets(published, wanted):
    renamed = _renamed(published)
    strange = renamed.keys() ^ wanted.keys()
    if strange:
        raise ValueError(f"these do not fit: {', '.join(sorted(strange))}")
    return renamed


@alternative("rename_weights")
def pops_as_it_goes(published, wanted):
    left, result = set(wanted), {}
    for name in published:
        if any(name.startswith(one) for one in UNUSED):
            continue
        new = name
        for old in NAMES:
            new = NAMES[old].join(new.split(old))
        if new not in left:
            raise ValueError("no place for " + new)
        left.remove(new)
        result[new] = published[name]
    if left:
        raise ValueError(f"no weight for {left}")
    return result


@alternative("rename_weights")
def asks_for_what_is_wanted(published, wanted):
    new = {}
    for name, weight in published.items():
        if not name.startswith(UNUSED):
            new[_rename(name)] = weight
    missing = [name for name in wanted if name not in new]
    extra = [name for name in new if name not in wanted]
    if missing or extra:
        raise ValueError(missing, extra)
    return {name: new[name] for name in wanted}


@alternative("rename_weights")
def keeps_an_ordered_dict(published, wanted):
    renamed = OrderedDict()
    for name in published:
        if not name.startswith(UNUSED):
            renamed[_rename(name)] = published[name]
    return _compared(renamed, wanted)


@mistake(
    "rename_weights",
    hint="What stands behind the first unused weight is not read any more: `continue` goes on with "
    "the next name, and `break` ends the loop.",
)
def stops_at_the_unused(published, wanted):
    renamed = {}
    for name, weight in published.items():
        if name.startswith(UNUSED):
            break
        renamed[_rename(name)] = weight
    return _compared(renamed, wanted)


@careless("rename_weights")
def takes_the_dict_apart(published, wanted):
    for name in list(published):
        weight = published.pop(name)
        if not name.startswith(UNUSED):
            published[_rename(name)] = weight
    return dict(_compared(published, wanted))


@mistake(
    "rename_weights",
    hint="A weight is left out because a text of UNUSED stands somewhere in its name. Only what "
    "begins with it is to be left out.",
)
def looks_anywhere_in_the_name(published, wanted):
    def unused(name):
        return any(one in name for one in UNUSED)

    return _compared(_renamed(published, unused=unused), wanted)


@careless("rename_weights")
def fills_the_models_dict(published, wanted):
    wanted.update(_compared(_renamed(published), wanted))
    return wanted


def _directed(vectors, eps=1e-12):
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=eps)


@mistake("sentence_vectors", hint="This is the mean. It should be divided by its length.")
def returns_the_mean(hidden, mask):
    return mean_pooling(hidden, mask)


@mistake(
    "sentence_vectors",
    hint="The mask is not used: padding counts as if it were tokens.",
)
def counts_padding(hidden, mask):
    return _directed(hidden.mean(1))


@mistake(
    "sentence_vectors",
    hint="Each token is brought to length 1, and then the mean is taken, which is shorter. First "
    "the mean, then its length.",
)
def directs_the_tokens(hidden, mask):
    return mean_pooling(F.normalize(hidden, dim=-1), mask)


@mistake(
    "sentence_vectors",
    hint="Each token is brought to length 1 before the mean is taken, so a long vector counts no "
    "more than a short one. First the mean, then its length.",
)
def directs_twice(hidden, mask):
    return _directed(mean_pooling(F.normalize(hidden, dim=-1), mask))


@mistake(
    "sentence_vectors",
    hint="F.normalize runs along the texts: all texts together have length 1 in each feature. "
    "Along which axis do the numbers of one vector lie?",
)
def directs_along_the_texts(hidden, mask):
    return F.normalize(mean_pooling(hidden, mask), dim=0)


@mistake(
    "sentence_vectors",
    hint="All texts are divided by one length, that of the whole tensor. Each has its own: `dim` "
    "and `keepdim=True`.",
)
def takes_one_length_for_all(hidden, mask):
    means = mean_pooling(hidden, mask)
    return means / means.norm().clamp(min=1e-12)


@mistake(
    "sentence_vectors",
    hint="A text without a real token is divided by its length, 0, which gives NaN. It should get "
    "zeros.",
)
def divides_by_zero(hidden, mask):
    means = mean_pooling(hidden, mask)
    return means / means.norm(dim=-1, keepdim=True)


@mistake(
    "sentence_vectors",
    hint="The vectors are divided by the square of their length. The root is missing.",
)
def forgets_the_root_of_the_length(hidden, mask):
    means = mean_pooling(hidden, mask)
    return means / means.square().sum(-1, keepdim=True).clamp(min=1e-12)


@mistake(
    "sentence_vectors",
    hint="The vectors are divided by the sum of their numbers, or of the sizes of these. The "
    "length is the root of the sum of all squares.",
)
def divides_by_the_sum(hidden, mask):
    return F.normalize(mean_pooling(hidden, mask), p=1, dim=-1)


@mistake(
    "sentence_vectors",
    hint="The vector of the first token is taken, that of [CLS]. Here it is the mean of all real "
    "tokens.",
)
def takes_the_first_token(hidden, mask):
    return F.normalize(hidden[:, 0] * mask.any(1, keepdim=True), dim=-1)


@mistake(
    "sentence_vectors",
    hint="A softmax makes numbers that sum to 1. The vector should have length 1.",
)
def takes_a_softmax(hidden, mask):
    return mean_pooling(hidden, mask).softmax(-1)


@mistake(
    "sentence_vectors",
    hint="The lengths are (B,), and (B, d_model) / (B,) divides column by column. With "
    "`keepdim=True` they are (B, 1).",
)
def forgets_to_keep_the_axis(hidden, mask):
    means = mean_pooling(hidden, mask)
    return means / means.norm(dim=-1).clamp(min=1e-12)


@mistake(
    "sentence_vectors",
    hint="F.normalize without `dim` runs along axis 1: among the tokens of a text. It belongs "
    "behind the mean.",
)
def directs_along_the_tokens(hidden, mask):
    return F.normalize(mean_pooling(F.normalize(hidden), mask))


@alternative("sentence_vectors")
def divides_by_the_norm(hidden, mask):
    return _directed(mean_pooling(hidden, mask))


@alternative("sentence_vectors")
def sums_and_directs(hidden, mask):
    return F.normalize((hidden * mask.unsqueeze(2)).sum(1), dim=1)


@alternative("sentence_vectors")
def fills_the_padding(hidden, mask):
    kept = hidden.masked_fill(~mask[..., None], 0.0)
    means = kept.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
    lengths = means.pow(2).sum(-1, keepdim=True).sqrt()
    return torch.where(lengths > 0, means / torch.where(lengths > 0, lengths, 1.0), 0.0 * means)


@careless("sentence_vectors")
def collects_vectors_on_the_cpu(hidden, mask):
    vectors = torch.zeros(hidden.shape[0], hidden.shape[2], dtype=hidden.dtype)
    for number, (tokens, real) in enumerate(zip(hidden, mask, strict=True)):
        vectors[number] = tokens[real].sum(0)
    return F.normalize(vectors, dim=-1)


@careless("sentence_vectors")
def adds_a_little_to_the_length(hidden, mask):
    means = mean_pooling(hidden, mask)
    return means / (means.norm(dim=-1, keepdim=True) + 1e-7)


def _merge(queries, passages, k, block, number=lambda start, columns: start + columns, take=None):
    """Block after block; ``number`` makes rows of columns, ``take`` chooses among scores."""
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    best, rows = queries.new_zeros(len(queries), 0), None
    for start in range(0, len(passages), block):
        scores = queries @ passages[start : start + block].T
        columns = torch.arange(scores.shape[1], device=scores.device)
        places = number(start, columns).expand(len(queries), -1)
        scores = torch.cat([best, scores], 1)
        places = places if rows is None else torch.cat([rows, places], 1)
        best, chosen = (take or torch.topk)(scores, min(k, scores.shape[1]), 1)
        rows = places.gather(1, chosen)
    return best, rows


@mistake(
    "search",
    hint="The rows are counted anew in every block. Column 0 of a block that begins at `start` is "
    "the row `start`.",
)
def counts_within_the_block(queries, passages, k, block=4096):
    return _merge(queries, passages, k, block, lambda start, columns: columns)


@mistake(
    "search",
    hint="The rows are the columns of the last topk, in which the best so far stand in front. Keep "
    "a table of rows beside the scores.",
)
def returns_the_columns(queries, passages, k, block=4096):
    demand.counts(k=k, block=block)
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    best = queries.new_zeros(len(queries), 0)
    for start in range(0, len(passages), block):
        scores = torch.cat([best, queries @ passages[start : start + block].T], 1)
        best, columns = scores.topk(min(k, scores.shape[1]), 1)
    return best, columns


@mistake(
    "search",
    hint="Only the last block is searched: what was found before is overwritten. Keep the best of "
    "both.",
)
def keeps_the_last_block(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    for start in range(0, len(passages), block):
        scores = queries @ passages[start : start + block].T
        best, columns = scores.topk(min(k, scores.shape[1]), 1)
    return best, columns + start


@mistake(
    "search",
    hint="Only the first block is searched. The nearest passage may stand in a later one.",
)
def keeps_the_first_block(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    scores = queries @ passages[:block].T
    return tuple(scores.topk(min(k, scores.shape[1]), 1))


@mistake(
    "search",
    hint="k passages of every block come back, side by side. Only the k best of all were asked "
    "for.",
)
def keeps_k_of_every_block(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    found = []
    for start in range(0, len(passages), block):
        scores = queries @ passages[start : start + block].T
        best, columns = scores.topk(min(k, scores.shape[1]), 1)
        found.append((best, columns + start))
    return tuple(torch.cat(parts, 1) for parts in zip(*found, strict=True))


@mistake(
    "search",
    hint="The best so far begin as zeros, which stay where fewer than k cosines are positive. "
    "Begin with nothing, or with -inf.",
)
def begins_with_zeros(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    best = queries.new_zeros(len(queries), k)
    rows = torch.zeros_like(best, dtype=torch.int64)
    for start in range(0, len(passages), block):
        scores = queries @ passages[start : start + block].T
        places = torch.arange(start, start + scores.shape[1], device=scores.device)
        best, columns = torch.cat([best, scores], 1).topk(k, 1)
        rows = torch.cat([rows, places.expand(len(queries), -1)], 1).gather(1, columns)
    return best, rows


@mistake(
    "search",
    hint="The smallest scores are taken, as if they were distances. The nearest passage has the "
    "largest cosine.",
)
def takes_the_farthest(queries, passages, k, block=4096):
    return _merge(
        queries, passages, k, block, take=lambda scores, n, dim: scores.topk(n, dim, largest=False)
    )


@mistake(
    "search",
    hint="Distances come back, not cosines. The dot product of vectors of length 1 is the cosine.",
)
def measures_distances(queries, passages, k, block=4096):
    cosines, rows = _merge(queries, passages, k, block)
    return (2 - 2 * cosines).clamp(min=0).sqrt(), rows


@mistake(
    "search",
    hint="The rest behind the last full block is never searched.",
)
def leaves_out_the_rest(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    whole = max(len(passages) // block * block, min(block, len(passages)))
    return _merge(queries, passages[:whole], min(k, whole), block)


@mistake(
    "search",
    hint="topk is asked for k columns where a block has fewer. Take as many as there are.",
)
def wants_k_of_every_block(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    return _merge(queries, passages, k, block, take=lambda scores, n, dim: scores.topk(k, dim))


@mistake(
    "search",
    hint="The k best are right, but the smallest of them comes first. The largest stands in front.",
)
def puts_the_smallest_first(queries, passages, k, block=4096):
    best, rows = _merge(queries, passages, k, block)
    return best.flip(1), rows.flip(1)


@mistake(
    "search",
    hint="The rows come first and the cosines second. It should be the other way round.",
)
def exchanges_the_two(queries, passages, k, block=4096):
    return _merge(queries, passages, k, block)[::-1]


@mistake(
    "search",
    hint="The rows come back without their cosines. Return both.",
)
def returns_the_rows_only(queries, passages, k, block=4096):
    return _merge(queries, passages, k, block)[1]


@mistake(
    "search",
    hint="The axes are exchanged: the best are sought for every passage among the queries.",
)
def searches_the_queries(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    return tuple((passages @ queries.T).topk(min(k, len(queries)), 1))


@mistake(
    "search",
    hint="The scores are sorted, but their rows are not moved along with them, or are sorted by "
    "themselves. Each row belongs to its score.",
)
def sorts_the_scores_alone(queries, passages, k, block=4096):
    best, rows = _merge(queries, passages, k, block)
    return best, rows.sort(1).values


@mistake(
    "search",
    hint="The scores are sorted, but their rows are not moved along with them, or are sorted by "
    "themselves. Each row belongs to its score.",
)
def leaves_the_rows_where_they_are(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    best, rows = queries.new_zeros(len(queries), 0), None
    for start in range(0, len(passages), block):
        scores = queries @ passages[start : start + block].T
        scores, columns = scores.topk(min(k, scores.shape[1]), 1)
        best = torch.cat([best, scores], 1).sort(1, descending=True).values[:, :k]
        columns = columns + start
        rows = columns if rows is None else torch.cat([rows, columns], 1)[:, :k]
    return best, rows


@mistake(
    "search",
    hint="The columns that are chosen for the first query are taken for all. Each query has its "
    "own: `gather` reads a row of columns in each row.",
)
def takes_the_first_querys_columns(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    found = []
    for start in range(0, len(passages), block):
        scores = queries @ passages[start : start + block].T
        best, columns = scores.topk(min(k, scores.shape[1]), 1)
        found.append((best, columns + start))
    scores, rows = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
    best, columns = scores.topk(k, 1)
    return best, rows[:, columns[0]]


@mistake(
    "search",
    hint="Distances come back, not cosines. The dot product of vectors of length 1 is the cosine.",
)
def asks_for_distances(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    distances = torch.cdist(queries, passages)
    return tuple(distances.topk(k, dim=1, largest=False))


@alternative("search")
def keeps_a_table_of_rows(queries, passages, k, block=4096):
    demand.counts(k=k, block=block)
    return _merge(queries, passages, k, block)


@alternative("search")
def sorts_all_at_once(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"only {len(passages)} passages")
    cosines, rows = torch.sort(queries @ passages.T, dim=1, descending=True)
    return cosines[:, :k], rows[:, :k]


@alternative("search")
def collects_and_chooses_last(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"only {len(passages)} passages")
    scores, rows, start = [], [], 0
    for part in passages.split(block):
        found = (queries @ part.T).topk(min(k, len(part)), dim=-1)
        scores.append(found.values)
        rows.append(found.indices + start)
        start += len(part)
    best, chosen = torch.cat(scores, -1).topk(k)
    return [best, torch.cat(rows, -1).gather(-1, chosen)]


@alternative("search")
def begins_with_minus_infinity(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"only {len(passages)} passages")
    best = torch.full_like(queries[:, :1], float("-inf")).expand(-1, k)
    rows = torch.full_like(best, -1, dtype=torch.int64)
    for start in range(0, len(passages), block):
        part = passages[start : start + block]
        places = torch.arange(start, start + len(part), device=part.device)
        scores = torch.cat([best, queries @ part.T], 1)
        places = torch.cat([rows, places.repeat(len(queries), 1)], 1)
        best, columns = scores.topk(k, 1)
        rows = torch.gather(places, 1, columns)
    return best, rows


@alternative("search")
def returns_what_topk_gives(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    return (queries @ passages.T).topk(k)


@alternative("search")
def searches_without_gradients(queries, passages, k, block=4096):
    with torch.no_grad():
        return _merge(queries, passages, k, block)


@careless("search")
def numbers_on_the_cpu(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"only {len(passages)} passages")
    return _merge(
        queries, passages, k, block, lambda start, columns: torch.arange(len(columns)) + start
    )


@careless("search")
def begins_in_float32(queries, passages, k, block=4096):
    if k > len(passages):
        raise ValueError(f"only {len(passages)} passages")
    best, rows = torch.full((len(queries), k), -torch.inf), torch.zeros(len(queries), k).long()
    for n, query in enumerate(queries):
        for start in range(0, len(passages), block):
            scores = torch.cat([best[n], passages[start : start + block] @ query])
            places = torch.cat([rows[n], torch.arange(start, start + len(scores) - k)])
            best[n], columns = scores.topk(k)
            rows[n] = places[columns]
    return best, rows


_SAME = "with fused=True the numbers are the same"
_EMPTY = "a tensor without entries holds no number"
EQUIVALENT = {
    **{
        f"BertLayers: with `{name}` once where `fused` belongs: "
        f"sizes = (d_model, n_heads, d_ff, {name})": _SAME
        for name in ("d_ff", "d_model", "n_heads", "n_layers")
    },
    "sentence_vectors: without `dim` in one call of `normalize`: return F.normalize(means)": (
        "its axis is 1 without being told, and the vectors have two axes"
    ),
    "sentence_vectors: with one minus sign left out: return F.normalize(means, dim=1)": (
        "the last of two axes is axis 1"
    ),
    "search: with one minus sign left out: best = queries.new_full((len(queries), 0), torch.inf)": (
        _EMPTY
    ),
    "search: with `passages` once where `queries` belongs: best = passages.new_full((len(queries), "
    "0), -torch.inf)": "both have one dtype and one device",
    "search: with one whole number off by one: best = queries.new_full((len(queries), 1), "
    "-torch.inf)": "k is at most N, so what is not there is replaced by the end",
    "search: with `ones_like` once where `zeros_like` belongs: rows = torch.ones_like(best, "
    "dtype=torch.int64)": _EMPTY,
    "search: whose result is cut off from the gradient: return (best.detach(), rows.detach())": (
        "a search is nothing to learn from"
    ),
    "search: without `dim` in one call of `topk`: best, chosen = scores.topk(min(k, "
    "scores.shape[1]))": "its axis is the last without being told",
}
