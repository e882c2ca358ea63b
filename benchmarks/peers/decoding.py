"""Beam search: the course's, and `generate` of transformers with a MarianMT model.

Both have the same weights, norms behind the sublayers, and keep keys and values. The weights are
random, so that EOS is rare: a translation ends after a given number of tokens, and there is no
length penalty. What they write has to agree.
"""

import torch

from attention.decoding import beam_search
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.train.speed import onednn_products
from benchmarks.decoding import random_sources
from benchmarks.peers.racing import Contestant
from benchmarks.peers.training import course

BEAM, LENGTH, SPREAD = 5, 16, 4.0


def model_of(size):
    """A Transformer with post-norm, and outputs so far apart that rounding decides nothing."""
    model = course(size, pre_norm=False, dropout=0.0).eval()
    with torch.no_grad():
        model.decoder.layers[-1].norm_3.weight.mul_(SPREAD)
    return model


def make(name, size, sentences, beam=BEAM, device="cpu"):
    """The search of one batch as a function; returns its ids as lists without PAD and EOS."""
    source = random_sources(sentences, size["vocab_size"], device)
    model = model_of(size).to(device)
    if name == "course":
        if device == "cpu":
            onednn_products.quicken(model)  # as `python -m attention.translate` does
        return lambda: words(beam_search(model, source, beam, alpha=0.0, max_length=LENGTH))
    from benchmarks.peers.marian import Marian

    marian = Marian(**size).to(device)
    marian.take(model)
    inner = marian.inner.eval()
    options = {
        "num_beams": beam,
        "max_new_tokens": LENGTH,
        "length_penalty": 0.0,
        "do_sample": False,
        "suppress_tokens": [PAD, BOS],
        "attention_mask": source != PAD,
    }

    def run():
        with torch.no_grad():
            return words(inner.generate(source, **options))

    return run


def words(ids):
    """Rows of ids (B, T) as lists: without BOS, PAD and EOS."""
    return [[i for i in row if i not in (PAD, BOS, EOS)] for row in ids.tolist()]


CONTESTANTS = [
    Contestant("course", make),
    Contestant("transformers, generate", make, "transformers"),
]
