"""Wrong and right answers to the exercises of lesson 19."""

import math
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F

from attention.encoders_and_vision import mean_pooling
from attention.provided import demand
from attention.published_model import NAMES, UNUSED, bert_layer
from autograder.checking.toolbox.registry import alternative, careless, mistake


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


UNKNOWN = ("[UNK]",)


def _walk(word, vocabulary):
    """Take the longest pieces from left to right."""
    start, pieces = 0, []
    while len(word) > start:
        hashes = "##" if start else ""
        ends = range(len(word), start, -1)
        found = [end for end in ends if hashes + word[start:end] in vocabulary]
        if not found:
            return list(UNKNOWN)
        pieces.append(hashes + word[start : found[0]])
        start = found[0]
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
    hint="A word is cut into two pieces at most. Go on until nothing is left of it.",
)
def cuts_once(word, vocabulary):
    if word in vocabulary:
        return [word]
    for end in range(len(word) - 1, 0, -1):
        if word[:end] in vocabulary and "##" + word[end:] in vocabulary:
            return [word[:end], "##" + word[end:]]
    return list(UNKNOWN)


@alternative("wordpiece")
def walks_over_the_ends(word, vocabulary):
    return _walk(word, vocabulary)


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


@careless("wordpiece")
def returns_a_tuple(word, vocabulary):
    return tuple(_walk(word, vocabulary))


@mistake(
    "break_wordpiece",
    hint="The longest pieces lead to the end of this word, so nothing has to be taken back.",
    where=lambda word, vocabulary: tries_every_cut(word, vocabulary) != ["[UNK]"],
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


class _Layers(nn.Module):
    """A right answer in small methods; others override what they do in another way."""

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


@alternative("BertLayers")
class StacksInSmallMethods(_Layers):
    """The right answer as it is."""


@alternative("BertLayers")
class AppendsLayers(_Layers):
    def make(self, n_layers, options):
        made = nn.ModuleList()
        for _ in range(n_layers):
            made.append(bert_layer(*options[:3], fused=options[3]))
        return made


@alternative("BertLayers")
class ExpandsTheMask(_Layers):
    def mask(self, mask, x):
        mask = torch.ones_like(x[..., 0], dtype=torch.bool) if mask is None else mask
        return mask[:, None].expand(-1, x.shape[1], -1)


@alternative("BertLayers")
class JoinsWithCat(_Layers):
    def join(self, found):
        return torch.cat([one[None] for one in found], 0)


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


def _rename(name):
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


def _renamed(published):
    used = {name: one for name, one in published.items() if not name.startswith(UNUSED)}
    return {_rename(name): weight for name, weight in used.items()}


def _compared(renamed, wanted):
    for name in renamed:
        if name not in wanted:
            raise ValueError(f"no place for {name}")
    for name in wanted:
        if name not in renamed:
            raise ValueError(f"nothing for {name}")
    return renamed


@alternative("rename_weights")
def complains_in_their_words(published, wanted):
    for name in published:
        if not name.startswith(UNUSED) and _rename(name) not in wanted:
            raise ValueError(f"no place for {name}")
    return _compared(_renamed(published), wanted)


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


@careless("rename_weights")
def takes_the_dict_apart(published, wanted):
    for name in list(published):
        weight = published.pop(name)
        if not name.startswith(UNUSED):
            published[_rename(name)] = weight
    return dict(_compared(published, wanted))


@careless("rename_weights")
def fills_the_models_dict(published, wanted):
    wanted.update(_compared(_renamed(published), wanted))
    return wanted


def _directed(vectors):
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=1e-12)


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


@alternative("contrastive_loss")
def takes_the_diagonal(first, second, temperature):
    cosines = _directed(first) @ _directed(second).mT
    return -(cosines / temperature).log_softmax(dim=1).diagonal().mean()


@alternative("contrastive_loss")
def compares_all_with_all(first, second, temperature):
    scores = F.cosine_similarity(first[:, None], second, dim=-1) / temperature
    return (scores.logsumexp(dim=1) - scores.diagonal()).mean()


@alternative("contrastive_loss")
def asks_text_by_text(first, second, temperature):
    losses = []
    for i, one in enumerate(first):
        scores = F.cosine_similarity(one[None], second) / temperature
        losses.append(scores.logsumexp(0) - scores[i])
    return torch.stack(losses).mean()


@careless("contrastive_loss")
def exponentials_as_they_are(first, second, temperature):
    powers = torch.exp(_directed(first) @ _directed(second).T / temperature)
    return -(powers.diagonal() / powers.sum(dim=1)).log().mean()


@careless("contrastive_loss")
def counts_partners_on_the_cpu(first, second, temperature):
    scores = _directed(first) @ _directed(second).T / temperature
    return F.cross_entropy(scores, torch.arange(len(scores)))


def _merge(queries, passages, k, block, number=lambda start, columns: start + columns):
    """Block after block; ``number`` makes rows of columns."""
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    best, rows = queries.new_zeros(len(queries), 0), None
    for start in range(0, len(passages), block):
        scores = queries @ passages[start : start + block].T
        columns = torch.arange(scores.shape[1], device=scores.device)
        places = number(start, columns).expand(len(queries), -1)
        scores = torch.cat([best, scores], 1)
        places = places if rows is None else torch.cat([rows, places], 1)
        best, chosen = scores.topk(min(k, scores.shape[1]), 1)
        rows = places.gather(1, chosen)
    return best, rows


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
_LAST = "the last of two axes is axis 1, which normalize takes without being told"
EQUIVALENT = {
    **{
        f"contrastive_loss: {how}: first, second = ({pair})": _LAST
        for how, axis in (
            ("without `dim` in one call of `normalize`", ""),
            ("with one minus sign left out", ", dim=1"),
        )
        for pair in (
            f"F.normalize(first{axis}), F.normalize(second, dim=-1)",
            f"F.normalize(first, dim=-1), F.normalize(second{axis})",
        )
    },
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
