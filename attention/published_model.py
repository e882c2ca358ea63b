"""Lesson 19: a published model, all-MiniLM-L6-v2, in layers that were built before."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.encoders_and_vision import mean_pooling
from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.transformer_blocks import EncoderLayer

# What a part is called in the published file, and what in the layers of lessons 07 and 09. The
# longer names come first, since "output.dense" also stands in "attention.output.dense".
NAMES = {
    "embeddings.word_embeddings": "embeddings.words",
    "embeddings.position_embeddings": "embeddings.positions",
    "embeddings.token_type_embeddings": "embeddings.types",
    "embeddings.LayerNorm": "embeddings.norm",
    "encoder.layer": "encoder.layers",
    "attention.self.query": "attention.W_q",
    "attention.self.key": "attention.W_k",
    "attention.self.value": "attention.W_v",
    "attention.output.dense": "attention.W_o",
    "attention.output.LayerNorm": "norm_1",
    "intermediate.dense": "feed_forward.linear_1",
    "output.dense": "feed_forward.linear_2",
    "output.LayerNorm": "norm_2",
}
UNUSED = ("embeddings.position_ids", "pooler.")  # a list 0, 1, 2 …; a layer for another task


def gelu(x):
    """Weigh every number by the share of a normal distribution that lies below it.

    x        any shape
    returns  the same shape: x · Φ(x), where Φ(x) = (1 + erf(x / √2)) / 2

    Source: Hendrycks and Gimpel (2016), equation 1.

    >>> gelu(torch.tensor([-9.0, -1.0, 0.0, 1.0, 9.0]))
    tensor([-0.0000, -0.1587,  0.0000,  0.8413,  9.0000])
    """
    # exercise: about 1 line
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def wordpiece(word, vocabulary):
    """Cut a word into the longest pieces that the vocabulary has, from left to right.

    word        a str without spaces, not empty
    vocabulary  {piece: id}; a piece that continues a word begins with "##"
    returns     a list of pieces; ["[UNK]"] if the word cannot be cut in this way

    Source: Wu et al. (2016), section 4.1; Devlin et al. (2019), section 3.

    >>> wordpiece("playing", {"play": 0, "##ing": 1, "##in": 2, "##g": 3})
    ['play', '##ing']
    """
    # exercise: about 10 lines
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def break_wordpiece():
    """An input on which `tries_every_cut` and `wordpiece` give different pieces.

    returns  a tuple (word, vocabulary), as `wordpiece` takes them
    """
    return "undone", {"un": 0, "und": 1, "##done": 2}


class BertEmbeddings(nn.Module):
    """Turn ids into vectors: a row for the word piece, one for its place, one for its sentence.

    vocab_size  number of word pieces
    max_length  number of places
    d_model     length of the vectors
    n_types     number of kinds of sentences that can be told apart

    The parts are `words`, `positions` and `types`, an nn.Embedding each, and `norm`, a LayerNorm
    with eps = 1e-12.
    Refuses a size below 1.
    Source: Devlin et al. (2019), figure 2.

    >>> BertEmbeddings(vocab_size=50, max_length=8, d_model=12)(torch.tensor([[5, 7, 3]])).shape
    torch.Size([1, 3, 12])
    """

    def __init__(self, vocab_size, max_length, d_model, n_types=2):
        super().__init__()
        demand.counts(vocab_size=vocab_size, max_length=max_length, d_model=d_model)
        demand.counts(n_types=n_types)
        self.words = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(max_length, d_model)
        self.types = nn.Embedding(n_types, d_model)
        self.norm = nn.LayerNorm(d_model, eps=1e-12)

    def forward(self, ids):
        """Add the three rows and normalise: ids (B, T) -> (B, T, d_model).

        All tokens are of sentence type 0. T is at most max_length.
        """
        places = torch.arange(ids.shape[1], device=ids.device)  # (T,)
        x = self.words(ids) + self.positions(places) + self.types.weight[0]  # (B, T, d_model)
        return self.norm(x)


def rename_weights(published, wanted):
    """Give published weights the names that a model of this course has for them.

    published  {name in the file: tensor}
    wanted     {name in the model: tensor}, as its `state_dict()` says
    returns    {name in the model: tensor of the file}; what begins as in UNUSED is left out

    Raises ValueError, with the name, if a weight of the file has no place in the model, or if the
    file has none for a place.

    >>> file = {"pooler.dense.bias": torch.zeros(2), "embeddings.LayerNorm.bias": torch.ones(2)}
    >>> rename_weights(file, {"embeddings.norm.bias": torch.zeros(2)})
    {'embeddings.norm.bias': tensor([1., 1.])}
    """
    # exercise: about 10 lines
    renamed = {}
    for name, weight in published.items():
        if not name.startswith(UNUSED):
            for theirs, ours in NAMES.items():
                name = name.replace(theirs, ours)
            renamed[name] = weight
    for name in renamed:
        if name not in wanted:
            raise ValueError(f"the model has no place for {name}")
    for name in wanted:
        if name not in renamed:
            raise ValueError(f"the file has no {name}")
    return renamed


def bert_layer(d_model, n_heads, d_ff, fused=False):
    """Build a layer of lesson 09, post-norm, with what is different in a BERT.

    d_model, n_heads, d_ff, fused  as in `EncoderLayer`
    """
    layer = EncoderLayer(d_model, n_heads, d_ff, dropout=0.0, fused=fused)
    layer.feed_forward.relu = nn.GELU()  # in place of ReLU
    layer.norm_1.eps = layer.norm_2.eps = 1e-12  # in place of 1e-5
    return layer


class BertLayers(nn.Module):
    """The layers of a BERT, one after the other: in each, all tokens look at all real ones.

    d_model, n_heads, d_ff  sizes of each layer; fused too, as in `bert_layer`
    n_layers                how many there are

    The only part is `layers`, an nn.ModuleList of what `bert_layer` builds.
    Refuses a size below 1, and a mask that is not bool: the layers see to that.
    Source: Devlin et al. (2019), section 3.

    >>> layers = BertLayers(d_model=12, n_heads=3, d_ff=20, n_layers=2)
    >>> layers(torch.zeros(1, 4, 12), return_layers=True).shape
    torch.Size([3, 1, 4, 12])
    """

    def __init__(self, d_model, n_heads, d_ff, n_layers, fused=False):
        super().__init__()
        demand.counts(n_layers=n_layers)
        # exercise: about 2 lines
        sizes = (d_model, n_heads, d_ff, fused)
        self.layers = nn.ModuleList(bert_layer(*sizes) for _ in range(n_layers))

    def forward(self, x, mask=None, return_layers=False):
        """Send x through all layers.

        x        (B, T, d_model)
        mask     None, or bool (B, T); True = a real token. Every text has at least one
        returns  (B, T, d_model); with return_layers=True (n_layers + 1, B, T, d_model): x, then
                 what each layer gives
        """
        # exercise: about 6 lines
        keys = mask if mask is None else mask[:, None]  # (B, 1, T)
        hidden = [x]
        for layer in self.layers:
            x = layer(x, keys)  # (B, T, d_model)
            hidden.append(x)
        return torch.stack(hidden) if return_layers else x


class Activation(nn.Module):
    """A function of numbers as a part of a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        """Apply the function: any shape to the same shape."""
        return self.function(x)


class PublishedEncoder(nn.Module):
    """A BERT: ids to vectors, then layers, with the `gelu` of this lesson.

    vocab_size, max_length  of the `BertEmbeddings`
    the others              of the `BertLayers`

    The parts are `embeddings` and `encoder`.
    Refuses a size below 1.
    Source: Devlin et al. (2019), section 3.

    >>> model = PublishedEncoder(50, 8, d_model=12, n_heads=3, d_ff=20, n_layers=2)
    >>> model(torch.tensor([[5, 7, 3]])).shape
    torch.Size([1, 3, 12])
    """

    def __init__(self, vocab_size, max_length, d_model, n_heads, d_ff, n_layers, fused=False):
        super().__init__()
        self.embeddings = BertEmbeddings(vocab_size, max_length, d_model)
        self.encoder = BertLayers(d_model, n_heads, d_ff, n_layers, fused)
        for layer in self.encoder.layers:
            layer.feed_forward.relu = Activation(gelu)

    def forward(self, ids, return_layers=False):
        """Turn ids into vectors.

        ids      (B, T)  int64, filled up with PAD, which nobody may look at
        returns  (B, T, d_model); with return_layers=True (n_layers + 1, B, T, d_model): what the
                 embeddings give, then what each layer gives
        """
        return self.encoder(self.embeddings(ids), ids != PAD, return_layers)


def sentence_vectors(hidden, mask):
    """Turn each text into one vector of length 1: the direction of the mean of its real tokens.

    hidden   (B, T, d_model)
    mask     bool (B, T)  True = a real token
    returns  (B, d_model)  each of length 1; zeros for a text without a real token

    Refuses a mask that is not bool.
    Source: Reimers and Gurevych (2019), section 3.

    >>> hidden, mask = torch.tensor([[[2.0, 0.0], [4.0, 8.0]]]), torch.tensor([[True, True]])
    >>> sentence_vectors(hidden, mask)
    tensor([[0.6000, 0.8000]])
    """
    demand.masks(mask=mask)
    # exercise: about 2 lines
    means = mean_pooling(hidden, mask)  # (B, d_model)
    return F.normalize(means, dim=-1)


def contrastive_loss(first, second, temperature):
    """Ask of each text which of the batch's texts belongs to it: the mean cross-entropy.

    first        (B, d)  vectors of any length
    second       (B, d)  row i belongs to row i of `first`; the other rows are the wrong answers
    temperature  a number above 0, by which the cosines are divided
    returns      a scalar

    Refuses a temperature that is not above 0.
    Source: van den Oord et al. (2018), equation 4; Reimers and Gurevych (2019).

    >>> first, second = torch.tensor([[3.0, 0.0], [0.0, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, 5]])
    >>> contrastive_loss(first, second, temperature=1.0)  # cosines 1 and 0 in each row
    tensor(0.3133)
    """
    demand.positive(temperature=temperature)
    # exercise: about 4 lines
    first, second = F.normalize(first, dim=-1), F.normalize(second, dim=-1)
    scores = first @ second.T / temperature  # (B, B)
    own = torch.arange(len(scores), device=scores.device)  # (B,)
    return F.cross_entropy(scores, own)


def search(queries, passages, k, block=4096):
    """Find for each query the k passages whose vectors are nearest, one block after the other.

    queries   (Q, d)  vectors of length 1
    passages  (N, d)  vectors of length 1
    k         how many to find, at most N
    block     how many passages are compared at a time; there are never more than
              (Q, k + block) scores at once
    returns   a pair, each (Q, k): cosines, the largest first; and int64, the rows of `passages`

    Raises ValueError if k is more than N.
    Refuses a k or a block below 1.

    >>> search(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0], [0.6, 0.8], [1.0, 0.0]]), k=2)
    (tensor([[1.0000, 0.6000]]), tensor([[2, 1]]))
    """
    demand.counts(k=k, block=block)
    if k > len(passages):
        raise ValueError(f"k={k} is more than the {len(passages)} passages")
    # exercise: about 9 lines
    best = queries.new_full((len(queries), 0), -torch.inf)  # (Q, 0): nothing found so far
    rows = torch.zeros_like(best, dtype=torch.int64)
    for start in range(0, len(passages), block):
        scores = queries @ passages[start : start + block].T  # (Q, up to block)
        places = torch.arange(start, start + scores.shape[1], device=scores.device)
        scores = torch.cat([best, scores], dim=1)
        places = torch.cat([rows, places.expand(len(queries), -1)], dim=1)
        best, chosen = scores.topk(min(k, scores.shape[1]), dim=1)  # (Q, k)
        rows = places.gather(1, chosen)
    return best, rows
