"""Answers to lesson 19 that were written without a look at its checks."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.encoders_and_vision import mean_pooling
from attention.provided import demand
from attention.published_model import NAMES, UNUSED, bert_layer
from tests.locked import right, wrong

# --- gelu ------------------------------------------------------------------------------------


@wrong("gelu", cause="no brackets: erf is added to x / 2, not to 1", kind="value")
def gelu_6(x):
    return x * 0.5 * 1 + torch.erf(x / math.sqrt(2))


@wrong("gelu", cause="math.erf takes one number, not a tensor of many", kind="crash")
def gelu_8(x):
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


@wrong("gelu", cause="number by number through a list, so no gradient flows", kind="gradient")
def gelu_9(x):
    values = [n * 0.5 * (1 + math.erf(n / math.sqrt(2))) for n in x.flatten().tolist()]
    return torch.tensor(values, dtype=x.dtype, device=x.device).reshape(x.shape)


@wrong("gelu", cause="beyond 3 it is a ReLU, as if the share were 0 or 1 there", kind="extreme")
def gelu_10(x):
    inside = x * (0.5 + 0.5 * torch.erf(x / math.sqrt(2)))
    return torch.where(x.abs() > 3, torch.relu(x), inside)


@right("gelu", how="the share from PyTorch's own normal distribution")
def gelu_12(x):
    return x * torch.special.ndtr(x)


@right("gelu", how="erfc, which is 1 - erf")
def gelu_13(x):
    return 0.5 * x * torch.erfc(-x * 2**-0.5)


# --- wordpiece -------------------------------------------------------------------------------


@wrong("wordpiece", cause="looks for later pieces without ## in front", kind="value")
def wordpiece_2(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            if word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(("##" if start else "") + word[start:end])
        start = end
    return pieces


@wrong("wordpiece", cause="returns ids, not pieces", kind="type")
def wordpiece_8(word, vocabulary):
    ids, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        ids.append(vocabulary[prefix + word[start:end]])
        start = end
    return ids


@wrong("wordpiece", cause="strips every # of a piece, so that ### does not stand for a #")
def wordpiece_11(word, vocabulary):
    pieces, rest = [], word
    while rest:
        if pieces:
            known = [piece.lstrip("#") for piece in vocabulary if piece.startswith("##")]
        else:
            known = list(vocabulary)
        fitting = [piece for piece in known if piece and rest.startswith(piece)]
        if not fitting:
            return ["[UNK]"]
        longest = max(fitting, key=len)
        pieces.append("##" + longest if pieces else longest)
        rest = rest[len(longest) :]
    return pieces


@right("wordpiece", how="the longest of the pieces in the vocabulary that fit")
def wordpiece_13(word, vocabulary):
    pieces, rest = [], word
    while rest:
        text = "##" + rest if pieces else rest
        least = 3 if pieces else 1
        fitting = [piece for piece in vocabulary if text.startswith(piece) and len(piece) >= least]
        if not fitting:
            return ["[UNK]"]
        pieces.append(max(fitting, key=len))
        rest = text[len(pieces[-1]) :]
    return pieces


@right("wordpiece", how="two while loops, and a piece that shrinks")
def wordpiece_14(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        end = len(word)
        while end > start:
            piece = word[start:end]
            if start > 0:
                piece = "##" + piece
            if piece in vocabulary:
                break
            end -= 1
        if end == start:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces


# --- BertLayers ------------------------------------------------------------------------------


class _Layers(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, n_layers, fused=False):
        super().__init__()
        demand.counts(n_layers=n_layers)
        self.layers = nn.ModuleList(
            bert_layer(d_model, n_heads, d_ff, fused) for _ in range(n_layers)
        )


@right("BertLayers", how="takes a mask that is not bool for one")
class BertLayers_11(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        if mask is not None:
            mask = mask.bool().unsqueeze(1)
        hidden = [x]
        for layer in self.layers:
            x = layer(x, mask)
            hidden.append(x)
        return torch.stack(hidden) if return_layers else x


@wrong("BertLayers", cause="sets padding to zero in front of every layer, but lets all look at it")
class BertLayers_12(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        demand.masks(mask=mask)
        hidden = [x]
        for layer in self.layers:
            if mask is not None:
                x = x * mask[..., None]
            x = layer(x)
            hidden.append(x)
        return torch.stack(hidden) if return_layers else x


@right("BertLayers", how="a mask for every query, and a cat of what has an axis more")
class BertLayers_13(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        if mask is not None:
            mask = mask[:, None].expand(-1, x.shape[1], -1)
        everything = x[None]
        for layer in self.layers:
            everything = torch.cat([everything, layer(everything[-1], mask)[None]])
        return everything if return_layers else everything[-1]


@right("BertLayers", how="calls itself for the plain result; layers are appended one by one")
class BertLayers_14(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, n_layers, fused=False):
        super().__init__()
        demand.counts(n_layers=n_layers)
        self.layers = nn.ModuleList()
        for _ in range(n_layers):
            self.layers.append(bert_layer(d_model=d_model, n_heads=n_heads, d_ff=d_ff, fused=fused))

    def forward(self, x, mask=None, return_layers=False):
        if not return_layers:
            return self.forward(x, mask, return_layers=True)[-1]
        visible = torch.ones_like(x[..., 0]) > 0 if mask is None else mask
        seen = (x,)
        for layer in self.layers:
            seen += (layer(seen[-1], visible[:, None]),)
        return torch.stack(seen, dim=0)


# --- rename_weights --------------------------------------------------------------------------


def _new(name):
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


@wrong("rename_weights", cause="a missing weight raises a KeyError, not a ValueError", kind="error")
def rename_weights_6(published, wanted):
    renamed = {_new(name): w for name, w in published.items() if not name.startswith(UNUSED)}
    for name in renamed:
        if name not in wanted:
            raise ValueError(name)
    return {name: renamed[name] for name in wanted}


@wrong("rename_weights", cause="takes the names out of the dict that was given", kind="state")
def rename_weights_12(published, wanted):
    for name in list(published):
        weight = published.pop(name)
        if not name.startswith(UNUSED):
            published[_new(name)] = weight
    for name in published:
        if name not in wanted:
            raise ValueError(f"no place for {name}")
    for name in wanted:
        if name not in published:
            raise ValueError(f"no weight for {name}")
    return published


@right("rename_weights", how="in the order of the model, with sets for what is too much or too few")
def rename_weights_13(published, wanted):
    renamed = {_new(name): w for name, w in published.items()}
    renamed = {name: w for name, w in renamed.items() if not name.startswith(UNUSED)}
    if extra := set(renamed) - set(wanted):
        raise ValueError(f"the model has no place for {', '.join(sorted(extra))}")
    if missing := set(wanted) - set(renamed):
        raise ValueError(f"the file has nothing for {', '.join(sorted(missing))}")
    return {name: renamed[name] for name in wanted}


@right("rename_weights", how="an error says the name that the file has, if the model has no place")
def rename_weights_14(published, wanted):
    renamed, places = {}, set(wanted)
    for name, weight in published.items():
        if name.startswith(("embeddings.position_ids", "pooler.")):
            continue
        place = _new(name)
        if place not in places:
            raise ValueError(f"{name!r} of the file has no place in the model")
        renamed[place] = weight
    for place in wanted:
        if place not in renamed:
            raise ValueError(f"the file has no weight for {place!r}")
    return renamed


# --- sentence_vectors ------------------------------------------------------------------------


@wrong("sentence_vectors", cause="the mean is also that of the padding", kind="value")
def sentence_vectors_5(hidden, mask):
    demand.masks(mask=mask)
    return F.normalize(hidden.mean(dim=1), dim=-1) * mask.any(dim=1, keepdim=True)


@wrong("sentence_vectors", cause="a vector shorter than 1 keeps its length", kind="value")
def sentence_vectors_9(hidden, mask):
    means = mean_pooling(hidden, mask)
    return means / means.norm(dim=-1, keepdim=True).clamp(min=1)


@right("sentence_vectors", how="pools by products, and refuses no mask")
def sentence_vectors_12(hidden, mask):
    real = mask.unsqueeze(-1).to(hidden.dtype)
    means = (hidden * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
    return F.normalize(means, dim=1)


@right("sentence_vectors", how="the sum has the direction of the mean")
def sentence_vectors_13(hidden, mask):
    demand.masks(mask=mask)
    total = hidden.masked_fill(~mask[..., None], 0).sum(dim=1)
    return F.normalize(total)


@right("sentence_vectors", how="divides by the root of the squares where there is a real token")
def sentence_vectors_14(hidden, mask):
    means = mean_pooling(hidden, mask)
    squares = torch.einsum("bd,bd->b", means, means)
    lengths = torch.where(mask.any(dim=1), squares, torch.ones_like(squares)).sqrt()
    return means / lengths[:, None]


# --- search ----------------------------------------------------------------------------------


def _demand(passages, k, block):
    demand.counts(k=k, block=block)
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")


@wrong("search", cause="adds start to all columns, also to those of the best so far")
def search_3(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best = queries.new_zeros(len(queries), 0)
    for start in range(0, len(passages), block):
        new = queries @ passages[start : start + block].T
        scores = torch.cat([best, new], dim=1)
        best, columns = scores.topk(min(k, scores.shape[1]), dim=1)
        rows = columns + start
    return best, rows


@wrong("search", cause="puts the k best of each block one after the other and takes the first k")
def search_7(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best, rows = [], []
    for start in range(0, len(passages), block):
        new = queries @ passages[start : start + block].T
        values, columns = new.topk(min(k, new.shape[1]), dim=1)
        best.append(values)
        rows.append(columns + start)
    return torch.cat(best, dim=1)[:, :k], torch.cat(rows, dim=1)[:, :k]


@wrong("search", cause="keeps one table of rows for all queries: those of query 0", kind="value")
def search_10(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best = queries.new_zeros(len(queries), 0)
    rows = torch.zeros(0, dtype=torch.int64, device=queries.device)
    for start in range(0, len(passages), block):
        new = queries @ passages[start : start + block].T
        here = torch.arange(start, start + new.shape[1], device=new.device)
        places = torch.cat([rows, here])
        best, columns = torch.cat([best, new], dim=1).topk(min(k, len(places)), dim=1)
        rows = places[columns[0]]
    return best, rows.expand(len(queries), -1)


@wrong("search", cause="the k best come in no order: sorted=False", kind="value")
def search_11(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best = queries.new_zeros(len(queries), 0)
    rows = torch.zeros(len(queries), 0, dtype=torch.int64, device=queries.device)
    for start in range(0, len(passages), block):
        new = queries @ passages[start : start + block].T
        here = torch.arange(start, start + new.shape[1], device=new.device).expand(new.shape)
        scores, places = torch.cat([best, new], dim=1), torch.cat([rows, here], dim=1)
        best, columns = scores.topk(min(k, scores.shape[1]), dim=1, sorted=False)
        rows = places.gather(1, columns)
    return best, rows


@wrong("search", cause="the rows come as floating numbers", kind="dtype")
def search_12(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best = queries.new_zeros(len(queries), 0)
    rows = queries.new_zeros(len(queries), 0)
    for start in range(0, len(passages), block):
        new = queries @ passages[start : start + block].T
        here = torch.arange(start, start + new.shape[1], device=new.device).expand(new.shape)
        scores, places = torch.cat([best, new], dim=1), torch.cat([rows, here], dim=1)
        best, columns = scores.topk(min(k, scores.shape[1]), dim=1)
        rows = places.gather(1, columns)
    return best, rows


@right("search", how="begins with k scores of -inf, splits, and sorts")
def search_13(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best = torch.full_like(queries[:, :1], -math.inf).repeat(1, k)
    rows = torch.full_like(best, -1, dtype=torch.long)
    start = 0
    for part in passages.split(block):
        scores = torch.cat((best, torch.einsum("qd,nd->qn", queries, part)), dim=1)
        ids = start + torch.arange(len(part), device=part.device)
        ids = torch.cat((rows, ids.repeat(len(queries), 1)), dim=1)
        order = scores.argsort(dim=1, descending=True)[:, :k]
        best, rows = scores.gather(1, order), ids.gather(1, order)
        start += len(part)
    return best, rows


@right("search", how="rows by where: columns of the best so far, or new ones")
def search_14(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best, rows = (queries @ passages[:block].T).topk(min(k, block, len(passages)), dim=1)
    for start in range(block, len(passages), block):
        had = best.shape[1]
        scores = torch.cat([best, queries @ passages[start : start + block].T], dim=1)
        best, columns = scores.topk(min(k, scores.shape[1]), dim=1)
        old = rows.gather(1, columns.clamp(max=had - 1))
        rows = torch.where(columns < had, old, columns - had + start)
    return best, rows


# --- contrastive_loss ------------------------------------------------------------------------


@wrong("contrastive_loss", cause="the mean of both directions: `second` chooses as well")
def contrastive_loss_1(first, second, temperature):
    demand.positive(temperature=temperature)
    scores = F.normalize(first, dim=1) @ F.normalize(second, dim=1).T / temperature
    right = torch.arange(len(first), device=first.device)
    return (F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)) / 2


@wrong("contrastive_loss", cause="brings each feature, not each vector, to length 1")
def contrastive_loss_2(first, second, temperature):
    demand.positive(temperature=temperature)
    first = first / first.norm(dim=0, keepdim=True)
    second = second / second.norm(dim=0, keepdim=True)
    scores = first @ second.T / temperature
    return F.cross_entropy(scores, torch.arange(len(first), device=first.device))


@wrong("contrastive_loss", cause="the partner is left out of the sum below the fraction")
def contrastive_loss_3(first, second, temperature):
    demand.positive(temperature=temperature)
    scores = F.normalize(first, dim=1) @ F.normalize(second, dim=1).T / temperature
    own = torch.eye(len(first), dtype=torch.bool, device=first.device)
    others = scores.masked_fill(own, -math.inf)
    return (others.logsumexp(dim=1) - scores.diagonal()).mean()


@right("contrastive_loss", how="text by text, cosine by cosine")
def contrastive_loss_4(first, second, temperature):
    demand.positive(temperature=temperature)
    total = 0
    for i in range(len(first)):
        scores = []
        for j in range(len(second)):
            cosine = first[i] @ second[j] / (first[i].norm() * second[j].norm())
            scores.append(cosine / temperature)
        total = total - torch.stack(scores).log_softmax(dim=0)[i]
    return total / len(first)


@right("contrastive_loss", how="PyTorch's cosine of all pairs, and the trace of log-probabilities")
def contrastive_loss_5(first, second, temperature):
    demand.positive(temperature=temperature)
    cosines = F.cosine_similarity(first[:, None], second[None], dim=-1)
    log_p = torch.log_softmax(cosines / temperature, dim=1)
    return -log_p.trace() / first.shape[0]
