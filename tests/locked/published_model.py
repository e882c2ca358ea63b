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


@wrong("gelu", cause="the approximation by a tanh", kind="value")
def gelu_1(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@wrong("gelu", cause="erf of x itself: the division by √2 is missing", kind="value")
def gelu_2(x):
    return x * 0.5 * (1 + torch.erf(x))


@wrong("gelu", cause="the approximation by a sigmoid", kind="value")
def gelu_3(x):
    return x * torch.sigmoid(1.702 * x)


@wrong("gelu", cause="returns the share Φ(x) alone, not x times it", kind="value")
def gelu_4(x):
    return (1 + torch.erf(x / math.sqrt(2))) / 2


@wrong("gelu", cause="the half is missing: numbers far above 0 are doubled", kind="value")
def gelu_5(x):
    return x * (1 + torch.erf(x / math.sqrt(2)))


@wrong("gelu", cause="no brackets: erf is added to x / 2, not to 1", kind="value")
def gelu_6(x):
    return x * 0.5 * 1 + torch.erf(x / math.sqrt(2))


@wrong("gelu", cause="takes the density of the normal distribution for its share", kind="value")
def gelu_7(x):
    return x * torch.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


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


@wrong("gelu", cause="divides by 2, not by the root of 2", kind="value")
def gelu_11(x):
    return 0.5 * x * (1 + torch.erf(x / 2))


@right("gelu", how="the share from PyTorch's own normal distribution")
def gelu_12(x):
    return x * torch.special.ndtr(x)


@right("gelu", how="erfc, which is 1 - erf")
def gelu_13(x):
    return 0.5 * x * torch.erfc(-x * 2**-0.5)


# --- wordpiece -------------------------------------------------------------------------------


@wrong("wordpiece", cause="tries the ends from the first one up: the shortest piece", kind="value")
def wordpiece_1(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        for end in range(start + 1, len(word) + 1):
            piece = word[start:end] if start == 0 else "##" + word[start:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces


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


@wrong("wordpiece", cause="returns the pieces without the ## that they have", kind="value")
def wordpiece_3(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                pieces.append(word[start:end])
                start = end
                break
        else:
            return ["[UNK]"]
    return pieces


@wrong("wordpiece", cause="keeps the pieces in front of what is unknown", kind="value")
def wordpiece_4(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return pieces + ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


@wrong("wordpiece", cause="makes the word's letters small first", kind="value")
def wordpiece_5(word, vocabulary):
    pieces, rest = [], word.lower()
    while rest:
        prefix = "##" if pieces else ""
        for end in range(len(rest), 0, -1):
            if prefix + rest[:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + rest[:end])
        rest = rest[end:]
    return pieces


@wrong("wordpiece", cause="gives a piece back where the rest cannot be cut", kind="value")
def wordpiece_6(word, vocabulary):
    def cut(start):
        if start == len(word):
            return []
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                rest = cut(end)
                if rest is not None:
                    return [piece] + rest
        return None

    found = cut(0)
    return ["[UNK]"] if found is None else found


@wrong("wordpiece", cause="a letter that nothing fits becomes [UNK], and the word goes on")
def wordpiece_7(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                pieces.append(prefix + word[start:end])
                break
        else:
            pieces.append("[UNK]")
            end = start + 1
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


@wrong("wordpiece", cause="the range ends too early: no piece of a single letter", kind="value")
def wordpiece_9(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start + 1, -1):
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


@wrong("wordpiece", cause="asks whether the id is true, so that the piece with id 0 is unknown")
def wordpiece_10(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if vocabulary.get(prefix + word[start:end]):
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


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


@wrong("wordpiece", cause="an unknown word is the string [UNK], not a list with it", kind="type")
def wordpiece_12(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return "[UNK]"
        pieces.append(prefix + word[start:end])
        start = end
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


# --- BertEmbeddings --------------------------------------------------------------------------


class _Embeddings(nn.Module):
    def __init__(self, vocab_size, max_length, d_model, n_types=2):
        super().__init__()
        demand.counts(vocab_size=vocab_size, max_length=max_length, d_model=d_model)
        demand.counts(n_types=n_types)
        self.words = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(max_length, d_model)
        self.types = nn.Embedding(n_types, d_model)
        self.norm = nn.LayerNorm(d_model, eps=1e-12)


@wrong("BertEmbeddings", cause="multiplies the words' rows by √d_model, as lesson 08 did")
class BertEmbeddings_1(_Embeddings):
    def forward(self, ids):
        T = ids.shape[1]
        words = self.words(ids) * math.sqrt(self.words.embedding_dim)
        places = torch.arange(T, device=ids.device)
        return self.norm(words + self.positions(places) + self.types.weight[0])


@wrong("BertEmbeddings", cause="the norm keeps its usual eps of 1e-5")
class BertEmbeddings_2(nn.Module):
    def __init__(self, vocab_size, max_length, d_model, n_types=2):
        super().__init__()
        demand.counts(vocab_size=vocab_size, max_length=max_length, d_model=d_model)
        demand.counts(n_types=n_types)
        self.words = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(max_length, d_model)
        self.types = nn.Embedding(n_types, d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.norm(self.words(ids) + self.positions(places) + self.types.weight[0])


@wrong("BertEmbeddings", cause="the rows of the types are not added")
class BertEmbeddings_3(_Embeddings):
    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.norm(self.words(ids) + self.positions(places))


@wrong("BertEmbeddings", cause="all tokens are of type 1")
class BertEmbeddings_4(_Embeddings):
    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        types = self.types(torch.ones_like(ids).clamp(max=self.types.num_embeddings - 1))
        return self.norm(self.words(ids) + self.positions(places) + types)


@wrong("BertEmbeddings", cause="counts places from 1, which leaves the table for the longest text")
class BertEmbeddings_5(_Embeddings):
    def forward(self, ids):
        places = torch.arange(1, ids.shape[1] + 1, device=ids.device)
        return self.norm(self.words(ids) + self.positions(places) + self.types.weight[0])


@wrong("BertEmbeddings", cause="normalises the words' rows alone, before the sum")
class BertEmbeddings_6(_Embeddings):
    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.norm(self.words(ids)) + self.positions(places) + self.types.weight[0]


@wrong("BertEmbeddings", cause="counts the texts, not the tokens, for the places", kind="shape")
class BertEmbeddings_7(_Embeddings):
    def forward(self, ids):
        places = torch.arange(ids.shape[0], device=ids.device)
        return self.norm(self.words(ids) + self.positions(places) + self.types.weight[0])


@wrong("BertEmbeddings", cause="returns the sum without the norm")
class BertEmbeddings_8(_Embeddings):
    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.words(ids) + self.positions(places) + self.types.weight[0]


@wrong("BertEmbeddings", cause="adds all rows of the types' table, not that of type 0 alone")
class BertEmbeddings_9(_Embeddings):
    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        types = self.types.weight.sum(dim=0)
        return self.norm(self.words(ids) + self.positions(places) + types)


@wrong("BertEmbeddings", cause="looks the ids up in the table of places", kind="crash")
class BertEmbeddings_10(_Embeddings):
    def forward(self, ids):
        x = self.words(ids) + self.positions(ids) + self.types(torch.zeros_like(ids))
        return self.norm(x)


@wrong("BertEmbeddings", cause="the tables are parameters, not nn.Embedding", kind="state")
class BertEmbeddings_11(nn.Module):
    def __init__(self, vocab_size, max_length, d_model, n_types=2):
        super().__init__()
        demand.counts(vocab_size=vocab_size, max_length=max_length, d_model=d_model)
        demand.counts(n_types=n_types)
        self.words = nn.Parameter(torch.randn(vocab_size, d_model))
        self.positions = nn.Parameter(torch.randn(max_length, d_model))
        self.types = nn.Parameter(torch.randn(n_types, d_model))
        self.norm = nn.LayerNorm(d_model, eps=1e-12)

    def forward(self, ids):
        return self.norm(self.words[ids] + self.positions[: ids.shape[1]] + self.types[0])


@right("BertEmbeddings", how="all rows by an id, with types of zeros and places for every text")
class BertEmbeddings_12(_Embeddings):
    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        parts = (self.words(ids), self.positions(places), self.types(torch.zeros_like(ids)))
        return self.norm(sum(parts))


@right("BertEmbeddings", how="slices of the tables, and the norm by its function")
class BertEmbeddings_13(_Embeddings):
    def forward(self, ids):
        fixed = self.positions.weight[: ids.shape[1]] + self.types.weight[:1]
        x = F.embedding(ids, self.words.weight) + fixed[None]
        return F.layer_norm(x, x.shape[-1:], self.norm.weight, self.norm.bias, self.norm.eps)


# --- BertLayers ------------------------------------------------------------------------------


class _Layers(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, n_layers, fused=False):
        super().__init__()
        demand.counts(n_layers=n_layers)
        self.layers = nn.ModuleList(
            bert_layer(d_model, n_heads, d_ff, fused) for _ in range(n_layers)
        )


@wrong("BertLayers", cause="one layer, n_layers times: all share their weights", kind="state")
class BertLayers_1(_Layers):
    def __init__(self, d_model, n_heads, d_ff, n_layers, fused=False):
        nn.Module.__init__(self)
        demand.counts(n_layers=n_layers)
        self.layers = nn.ModuleList([bert_layer(d_model, n_heads, d_ff, fused)] * n_layers)

    def forward(self, x, mask=None, return_layers=False):
        mask = mask[:, None, :] if mask is not None else None
        hidden = [x]
        for layer in self.layers:
            hidden.append(layer(hidden[-1], mask))
        return torch.stack(hidden) if return_layers else hidden[-1]


@wrong("BertLayers", cause="the new axis of the mask stands behind: it hides queries, and no keys")
class BertLayers_2(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        if mask is not None:
            mask = mask.unsqueeze(-1)
        hidden = [x]
        for layer in self.layers:
            x = layer(x, mask)
            hidden.append(x)
        if return_layers:
            return torch.stack(hidden)
        return x


@wrong("BertLayers", cause="only the first layer gets the mask")
class BertLayers_3(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        keys = None if mask is None else mask.unsqueeze(1)
        hidden = [x, self.layers[0](x, keys)]
        for layer in self.layers[1:]:
            hidden.append(layer(hidden[-1]))
        return torch.stack(hidden) if return_layers else hidden[-1]


@wrong("BertLayers", cause="x itself is missing in front of what the layers give", kind="shape")
class BertLayers_4(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        keys = None if mask is None else mask.unsqueeze(1)
        outputs = []
        for layer in self.layers:
            x = layer(x, keys)
            outputs.append(x)
        return torch.stack(outputs) if return_layers else x


@wrong("BertLayers", cause="every layer reads x itself, not what the layer before it gives")
class BertLayers_5(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        keys = None if mask is None else mask.unsqueeze(1)
        outputs = [x]
        for layer in self.layers:
            outputs.append(layer(x, keys))
        return torch.stack(outputs) if return_layers else outputs[-1]


@wrong("BertLayers", cause="the layers are a plain list, so the model has no weights", kind="state")
class BertLayers_6(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, n_layers, fused=False):
        super().__init__()
        demand.counts(n_layers=n_layers)
        self.layers = [bert_layer(d_model, n_heads, d_ff, fused) for _ in range(n_layers)]

    def forward(self, x, mask=None, return_layers=False):
        keys = None if mask is None else mask.unsqueeze(1)
        hidden = [x]
        for layer in self.layers:
            x = layer(x, keys)
            hidden.append(x)
        return torch.stack(hidden) if return_layers else x


@wrong("BertLayers", cause="hands the layers back as a list, not as one tensor", kind="type")
class BertLayers_7(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        keys = None if mask is None else mask.unsqueeze(1)
        hidden = [x]
        for layer in self.layers:
            x = layer(x, keys)
            hidden.append(x)
        return hidden if return_layers else x


@wrong("BertLayers", cause="the padding may look at nothing: queries are masked, too")
class BertLayers_8(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        if mask is not None:
            mask = mask[:, None, :] & mask[:, :, None]
        hidden = [x]
        for layer in self.layers:
            hidden.append(layer(hidden[-1], mask))
        return torch.stack(hidden) if return_layers else hidden[-1]


@wrong("BertLayers", cause="the axis of the layers comes second, behind the texts", kind="shape")
class BertLayers_9(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        keys = None if mask is None else mask.unsqueeze(1)
        hidden = [x]
        for layer in self.layers:
            x = layer(x, keys)
            hidden.append(x)
        return torch.stack(hidden, dim=1) if return_layers else x


@wrong("BertLayers", cause="passes the mask on as (B, T), whose axes are read as queries and keys")
class BertLayers_10(_Layers):
    def forward(self, x, mask=None, return_layers=False):
        hidden = [x]
        for layer in self.layers:
            x = layer(x, mask)
            hidden.append(x)
        return torch.stack(hidden) if return_layers else x


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


@wrong("rename_weights", cause="stops at the first part that a name has", kind="value")
def rename_weights_1(published, wanted):
    renamed = {}
    for name, weight in published.items():
        if name.startswith(UNUSED):
            continue
        for theirs, ours in NAMES.items():
            if theirs in name:
                name = name.replace(theirs, ours)
                break
        renamed[name] = weight
    for name in [*renamed, *wanted]:
        if (name in renamed) != (name in wanted):
            raise ValueError(f"{name} is not in both")
    return renamed


@wrong("rename_weights", cause="replaces the shorter names first", kind="value")
def rename_weights_2(published, wanted):
    renamed = {}
    for name, weight in published.items():
        if name.startswith(UNUSED):
            continue
        for theirs in sorted(NAMES, key=len):
            name = name.replace(theirs, NAMES[theirs])
        renamed[name] = weight
    for name in sorted(renamed.keys() ^ wanted.keys()):
        raise ValueError(f"{name} is not in both")
    return renamed


@wrong("rename_weights", cause="leaves nothing out: UNUSED is forgotten", kind="crash")
def rename_weights_3(published, wanted):
    renamed = {_new(name): weight for name, weight in published.items()}
    for name in renamed:
        if name not in wanted:
            raise ValueError(f"no place for {name}")
    for name in wanted:
        if name not in renamed:
            raise ValueError(f"no weight for {name}")
    return renamed


@wrong("rename_weights", cause="a weight without a place is dropped without a word", kind="error")
def rename_weights_4(published, wanted):
    renamed = {}
    for name, weight in published.items():
        if not name.startswith(UNUSED):
            renamed[_new(name)] = weight
    result = {}
    for name in wanted:
        if name not in renamed:
            raise ValueError(f"no weight for {name}")
        result[name] = renamed[name]
    return result


@wrong("rename_weights", cause="a place without a weight passes unnoticed", kind="error")
def rename_weights_5(published, wanted):
    renamed = {}
    for name, weight in published.items():
        if name.startswith(UNUSED):
            continue
        name = _new(name)
        if name not in wanted:
            raise ValueError(f"no place for {name}")
        renamed[name] = weight
    return renamed


@wrong("rename_weights", cause="a missing weight raises a KeyError, not a ValueError", kind="error")
def rename_weights_6(published, wanted):
    renamed = {_new(name): w for name, w in published.items() if not name.startswith(UNUSED)}
    for name in renamed:
        if name not in wanted:
            raise ValueError(name)
    return {name: renamed[name] for name in wanted}


@wrong("rename_weights", cause="the ValueError does not say which name", kind="error")
def rename_weights_7(published, wanted):
    renamed = {_new(name): w for name, w in published.items() if not name.startswith(UNUSED)}
    if set(renamed) != set(wanted):
        raise ValueError("the names in the file and in the model are not the same")
    return renamed


@wrong("rename_weights", cause="compares only how many names there are", kind="error")
def rename_weights_8(published, wanted):
    renamed = {_new(name): w for name, w in published.items() if not name.startswith(UNUSED)}
    if len(renamed) > len(wanted):
        raise ValueError(f"too many: {sorted(renamed.keys() - wanted.keys())}")
    if len(renamed) < len(wanted):
        raise ValueError(f"too few: {sorted(wanted.keys() - renamed.keys())}")
    return renamed


@wrong("rename_weights", cause="leaves out what has a part of UNUSED anywhere in its name")
def rename_weights_9(published, wanted):
    renamed = {}
    for name, weight in published.items():
        if any(unused in name for unused in UNUSED):
            continue
        renamed[_new(name)] = weight
    for name in renamed:
        if name not in wanted:
            raise ValueError(f"no place for {name}")
    for name in wanted:
        if name not in renamed:
            raise ValueError(f"no weight for {name}")
    return renamed


@wrong("rename_weights", cause="gives the model's own tensors back, not those of the file")
def rename_weights_10(published, wanted):
    renamed = {_new(name): w for name, w in published.items() if not name.startswith(UNUSED)}
    for name in [*renamed, *wanted]:
        if name not in wanted or name not in renamed:
            raise ValueError(name)
    return {name: wanted[name] for name in renamed}


@wrong("rename_weights", cause="keeps the model's own weight where the file has none", kind="error")
def rename_weights_11(published, wanted):
    result = dict(wanted)
    for name, weight in published.items():
        if name.startswith(UNUSED):
            continue
        name = _new(name)
        if name not in wanted:
            raise ValueError(f"{name} has no place in the model")
        result[name] = weight
    return result


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


@wrong("sentence_vectors", cause="normalises along the texts, not along each vector", kind="value")
def sentence_vectors_1(hidden, mask):
    return F.normalize(mean_pooling(hidden, mask), dim=0)


@wrong("sentence_vectors", cause="tokens get length 1, their mean does not", kind="value")
def sentence_vectors_2(hidden, mask):
    return mean_pooling(F.normalize(hidden, dim=-1), mask)


@wrong("sentence_vectors", cause="tokens get length 1 before the mean, too", kind="value")
def sentence_vectors_3(hidden, mask):
    return F.normalize(mean_pooling(F.normalize(hidden, dim=-1), mask), dim=-1)


@wrong("sentence_vectors", cause="divides 0 by 0 for a text without a real token", kind="extreme")
def sentence_vectors_4(hidden, mask):
    means = mean_pooling(hidden, mask)
    return means / means.norm(dim=-1, keepdim=True)


@wrong("sentence_vectors", cause="the mean is also that of the padding", kind="value")
def sentence_vectors_5(hidden, mask):
    demand.masks(mask=mask)
    return F.normalize(hidden.mean(dim=1), dim=-1) * mask.any(dim=1, keepdim=True)


@wrong("sentence_vectors", cause="takes the first token's vector, not the mean", kind="value")
def sentence_vectors_6(hidden, mask):
    demand.masks(mask=mask)
    return F.normalize(hidden[:, 0], dim=-1) * mask.any(dim=1, keepdim=True)


@wrong("sentence_vectors", cause="divides by the sum of the squares, without the root")
def sentence_vectors_7(hidden, mask):
    means = mean_pooling(hidden, mask)
    squares = (means**2).sum(dim=-1, keepdim=True)
    return means / squares.clamp(min=1e-12)


@wrong("sentence_vectors", cause="the axis that was summed is gone: (B, d) by (B,)", kind="crash")
def sentence_vectors_8(hidden, mask):
    means = mean_pooling(hidden, mask)
    return means / means.square().sum(dim=-1).sqrt().clamp(min=1e-12)


@wrong("sentence_vectors", cause="a vector shorter than 1 keeps its length", kind="value")
def sentence_vectors_9(hidden, mask):
    means = mean_pooling(hidden, mask)
    return means / means.norm(dim=-1, keepdim=True).clamp(min=1)


@wrong("sentence_vectors", cause="divides by the sum of absolute values", kind="value")
def sentence_vectors_10(hidden, mask):
    return F.normalize(mean_pooling(hidden, mask), p=1, dim=-1)


@wrong("sentence_vectors", cause="divides by the length of all texts together", kind="value")
def sentence_vectors_11(hidden, mask):
    means = mean_pooling(hidden, mask)
    return means / means.norm().clamp(min=1e-12)


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


@wrong("search", cause="rows count from the beginning of their block", kind="value")
def search_1(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best = queries.new_zeros(len(queries), 0)
    rows = torch.zeros(len(queries), 0, dtype=torch.int64, device=queries.device)
    for start in range(0, len(passages), block):
        new = queries @ passages[start : start + block].T
        here = torch.arange(new.shape[1], device=new.device).expand(new.shape)
        scores, places = torch.cat([best, new], dim=1), torch.cat([rows, here], dim=1)
        best, columns = scores.topk(min(k, scores.shape[1]), dim=1)
        rows = places.gather(1, columns)
    return best, rows


@wrong("search", cause="takes the columns of the last topk for rows of passages", kind="value")
def search_2(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best = queries.new_zeros(len(queries), 0)
    for start in range(0, len(passages), block):
        scores = torch.cat([best, queries @ passages[start : start + block].T], dim=1)
        best, rows = scores.topk(min(k, scores.shape[1]), dim=1)
    return best, rows


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


@wrong("search", cause="topk(k) of a first block that has fewer passages than k", kind="crash")
def search_4(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best = queries.new_zeros(len(queries), 0)
    rows = torch.zeros(len(queries), 0, dtype=torch.int64, device=queries.device)
    for start in range(0, len(passages), block):
        new = queries @ passages[start : start + block].T
        here = torch.arange(start, start + new.shape[1], device=new.device).expand(new.shape)
        best, columns = torch.cat([best, new], dim=1).topk(k, dim=1)
        rows = torch.cat([rows, here], dim=1).gather(1, columns)
    return best, rows


@wrong("search", cause="begins with scores of 0 at row 0, which negative cosines never replace")
def search_5(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best = queries.new_zeros(len(queries), k)
    rows = torch.zeros(len(queries), k, dtype=torch.int64, device=queries.device)
    for start in range(0, len(passages), block):
        new = queries @ passages[start : start + block].T
        here = torch.arange(start, start + new.shape[1], device=new.device).expand(new.shape)
        best, columns = torch.cat([best, new], dim=1).topk(k, dim=1)
        rows = torch.cat([rows, here], dim=1).gather(1, columns)
    return best, rows


@wrong("search", cause="leaves out the last block if it is shorter than the others", kind="value")
def search_6(queries, passages, k, block=4096):
    _demand(passages, k, block)
    block = min(block, len(passages))
    best = queries.new_zeros(len(queries), 0)
    rows = torch.zeros(len(queries), 0, dtype=torch.int64, device=queries.device)
    for n in range(len(passages) // block):
        new = queries @ passages[n * block : (n + 1) * block].T
        here = torch.arange(n * block, (n + 1) * block, device=new.device).expand(new.shape)
        scores, places = torch.cat([best, new], dim=1), torch.cat([rows, here], dim=1)
        best, columns = scores.topk(min(k, scores.shape[1]), dim=1)
        rows = places.gather(1, columns)
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


@wrong("search", cause="finds the passages that are farthest away", kind="value")
def search_8(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best = queries.new_zeros(len(queries), 0)
    rows = torch.zeros(len(queries), 0, dtype=torch.int64, device=queries.device)
    for start in range(0, len(passages), block):
        new = queries @ passages[start : start + block].T
        here = torch.arange(start, start + new.shape[1], device=new.device).expand(new.shape)
        scores, places = torch.cat([best, new], dim=1), torch.cat([rows, here], dim=1)
        best, columns = scores.topk(min(k, scores.shape[1]), dim=1, largest=False)
        rows = places.gather(1, columns)
    return best, rows


@wrong("search", cause="returns distances, the smallest first, not cosines", kind="value")
def search_9(queries, passages, k, block=4096):
    _demand(passages, k, block)
    best = queries.new_zeros(len(queries), 0)
    rows = torch.zeros(len(queries), 0, dtype=torch.int64, device=queries.device)
    for start in range(0, len(passages), block):
        new = torch.cdist(queries, passages[start : start + block])
        here = torch.arange(start, start + new.shape[1], device=new.device).expand(new.shape)
        scores, places = torch.cat([best, new], dim=1), torch.cat([rows, here], dim=1)
        best, columns = scores.topk(min(k, scores.shape[1]), dim=1, largest=False)
        rows = places.gather(1, columns)
    return best, rows


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
