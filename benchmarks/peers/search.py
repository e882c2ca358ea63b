"""Passages to vectors: the course's encoder as the search has it, and BertModel of transformers.

Both have the same random weights, of the sizes of all-MiniLM-L6-v2, and read the same batches: of
passages as they come, with padding, and of passages of like lengths. A vector is the direction of
the mean of a passage's tokens. The third side is the lesson's parts, called one after the other.
"""

import torch
from torch.nn import functional as F

from attention.provided.data.tokens import PAD, pad
from attention.published_model import PublishedEncoder, rename_weights
from attention.search import model as models
from attention.search.fast import FastEncoder
from benchmarks.peers.racing import Contestant
from benchmarks.transformers_outputs import bert_model

SIZE = {"vocab_size": 30522, "max_length": 512, "d_model": 384, "n_heads": 12, "d_ff": 1536}
SIZE |= {"n_layers": 6}
PASSAGES, BATCH, SHORTEST, LONGEST = 128, 16, 16, 128
CLOSE = 1e-5  # of vectors of length 1


def passages(ordered):
    """Batches of ids (B, T): of the passages as they come, or ordered as the search does it."""
    draw = torch.Generator().manual_seed(0)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (PASSAGES,), generator=draw).tolist()
    ids = [torch.randint(5, 30522, (length,), generator=draw).tolist() for length in lengths]
    if ordered:
        return [pad([ids[row] for row in rows]) for rows in models.batches(lengths)]
    return [pad(ids[start : start + BATCH]) for start in range(0, PASSAGES, BATCH)]


def padding(batches):
    """Which share of all places is padding."""
    places = sum(ids.numel() for ids in batches)
    return 1 - sum((ids != PAD).sum().item() for ids in batches) / places


def course():
    """The lesson's encoder with random weights, norms and biases included."""
    torch.manual_seed(0)
    model = PublishedEncoder(**SIZE, fused=True).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(float("norm" in name and "weight" in name), 0.05)
    return model


def bert(model):
    """A BertModel of transformers with the weights of the course's encoder."""
    peer, weights = bert_model(SIZE), model.state_dict()
    with torch.no_grad():
        for name, theirs in rename_weights(peer.state_dict(), weights).items():
            theirs.copy_(weights[name])
    return peer


def encoder(name):
    """A contestant as a function of ids (B, T); it returns vectors (B, d_model)."""
    model = course()
    if name == "course":
        return FastEncoder(model)
    if name == "the lesson's parts":
        return models.by_pieces(model)
    peer = bert(model)

    @torch.inference_mode()
    def encode(ids):
        real = ids != PAD
        hidden = peer(input_ids=ids, attention_mask=real.long()).last_hidden_state
        real = real.unsqueeze(-1)
        return F.normalize((hidden * real).sum(1) / real.sum(1), dim=-1)

    return encode


def make(name, ordered):
    """The vectors of all passages as one unit of work."""
    encode, batches = encoder(name), passages(ordered)
    return lambda: sum(len(encode(ids)) for ids in batches)


def difference(name, ordered):
    """The largest difference of a number of a vector from the course's."""
    encode, other = encoder("course"), encoder(name)
    return max((encode(ids) - other(ids)).abs().max().item() for ids in passages(ordered)[:2])


CONTESTANTS = [
    Contestant("course", make),
    Contestant("the lesson's parts", make),
    Contestant("transformers, BertModel", make, "transformers"),
]
