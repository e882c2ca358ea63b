"""What is in a translator's hidden vectors, beside models of its sizes with first weights.

A part of `benchmarks.interpretability`.
"""

import numpy
import torch
from torch import nn

from attention.interpretability import HiddenTokenAttribution, token_identifiability
from attention.provided.data.tokens import PAD
from attention.provided.models import translators
from attention.provided.models.model_file import load
from attention.train.core.model import SIZES
from attention.transformer import Transformer
from benchmarks.explained import interval, sentences

SEEDS, PROBED = (0, 1, 2), 400


def untrained(model, corpus, seed):
    """A model of the same sizes with first weights."""
    _, about = load(translators.CHECKPOINTS / "numbers.safetensors")
    torch.manual_seed(seed)
    sizes = {name: about["settings"][name] for name in SIZES}
    vocabularies = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
    return Transformer(*vocabularies, **sizes).double().eval()


def layers(model, source):
    """The encoder's input, and what each of its layers returns; then the norm: (B, T, d) each."""
    mask = (source != PAD).unsqueeze(1)
    x = model.embed(source, model.source_embedding)
    found = {"input": x}
    for number, layer in enumerate(model.encoder.layers):
        x = layer(x, mask)
        found[f"layer {number}"] = x
    found["norm"] = model.encoder.norm(x)
    return found


@torch.no_grad()
def identifiability(model, corpus, count):
    """Shares of source tokens whose hidden vectors are nearest to their own input.

    "length of the change": of a layer's output less the first layer's input, as a share of the
    input's length, mean over the tokens.
    """
    batch, found = sentences(corpus.test, corpus, count), {}
    mask = batch.source != PAD
    for name, one in _with_controls(model, corpus):
        hidden = layers(one, batch.source)
        x, rows = hidden["input"], {}
        for layer, vectors in list(hidden.items())[1:]:
            for kind, cosine in (("cosine", True), ("distance", False)):
                own = token_identifiability(vectors, x, mask, cosine)
                rows[f"{layer}, {kind}"] = round(own[mask].double().mean().item(), 4)
            if layer != "norm":
                own = token_identifiability(vectors - x, x, mask)
                rows[f"{layer}, change only"] = round(own[mask].double().mean().item(), 4)
                length = ((vectors - x).norm(dim=-1) / x.norm(dim=-1))[mask].mean().item()
                rows[f"{layer}, length of the change"] = round(length, 4)
        found.setdefault(name, []).append(rows)
    return found


def _with_controls(model, corpus):
    return [("trained", model)] + [("untrained", untrained(model, corpus, s)) for s in SEEDS]


@torch.no_grad()
def probes(model, corpus, count):
    """How often a linear model reads from a hidden vector what stands where."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train = sentences(corpus.train, corpus, PROBED, seed=1)
    test, found = sentences(corpus.test, corpus, count), {}
    for name, one in _with_controls(model, corpus):
        rows = {}
        learn, ask = layers(one, train.source), layers(one, test.source)
        for question, answers in QUESTIONS.items():
            for layer in learn:
                x, y = _examples(learn[layer], answers(train.source), train.source)
                probe = make_pipeline(
                    StandardScaler(), LogisticRegression(C=0.1, max_iter=2000)
                ).fit(x, y)
                x, y = _examples(ask[layer], answers(test.source), test.source)
                rows[f"{question}, {layer}"] = round(probe.score(x, y), 4)
                common = numpy.bincount(y).argmax()
                rows[f"{question}, most frequent"] = round(float((y == common).mean()), 4)
        found.setdefault(name, []).append(rows)
    return found


QUESTIONS = {
    "the token itself": lambda ids: ids,
    "its position": lambda ids: torch.arange(ids.shape[1]).expand_as(ids),
    "the token before": lambda ids: nn.functional.pad(ids, (1, 0), value=PAD)[:, :-1],
}


def _examples(hidden, answers, source):
    """Vectors of the real tokens, and what they should tell."""
    real = source != PAD
    return hidden[real].numpy(), answers[real].numpy()


def attribution(model, corpus, count):
    """Mean share of the own input token in each encoder layer's vectors."""
    eight = [pair for pair in corpus.test if len(pair[1].split()) == 7]  # and EOS
    batch, found = sentences(eight, corpus, min(count, 40)), {}
    for name, one in _with_controls(model, corpus):
        x = one.embed(batch.source, one.source_embedding).detach()
        rows = {}
        for depth in range(1, len(one.encoder.layers) + 1):
            stack = nn.Sequential(*one.encoder.layers[:depth])
            shares = HiddenTokenAttribution(stack)(x)
            own = shares.diagonal(dim1=1, dim2=2)
            largest = shares.argmax(-1) == torch.arange(shares.shape[1])
            rows[f"depth {depth}"] = interval(own.mean(1).tolist())
            rows[f"depth {depth}, own is largest"] = round(largest.double().mean().item(), 4)
        found.setdefault(name, []).append(rows)
    return found | {"sentences": len(batch.source), "T": batch.source.shape[1]}
