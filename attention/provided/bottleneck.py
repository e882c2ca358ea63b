"""Lesson 02's translator in several sizes, trained for longer or shorter, from several seeds."""

import importlib
from typing import Any

import torch
from torch import nn

from attention.provided.data import numbers
from attention.provided.points import measured

FAR = 20  # steps back


def train_one(d_state: int, steps: int, seed: int, reverse: bool = False) -> dict[str, Any]:
    """Train the translator of lesson 02; returns what `points.measured` does, and its reach.

    d_state  how many numbers the one vector has, and every state
    returns  also "before" and "after" training: the influence on the encoding of a word that was
             read 20 steps before the last one, as a share of the last one's
    """
    kind = importlib.import_module("attention.sequence_to_sequence").Seq2Seq
    torch.manual_seed(seed)
    corpus = numbers()
    sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
    model = kind(*sizes, d_state=d_state, reverse=reverse)
    before = influence(model, seed)
    found = measured(model, corpus, seed, steps)
    return {**found, "before": before, "after": influence(model, seed)}


def influence(model: nn.Module, seed: int, steps: int = 40) -> float:
    """How much a word that was read 20 steps ago changes the encoding; the last word's is 1."""
    generator = torch.Generator().manual_seed(seed)
    embedding: Any = model.source_embedding
    words = torch.randint(3, embedding.num_embeddings, (64, steps), generator=generator)
    x = embedding(words).detach().requires_grad_()  # (B, T, d_embedding)
    encodings = model.encoder(x)[0][:, -1]  # type: ignore[operator]  # (B, d_state)
    directions = torch.randn(encodings.shape, generator=generator)
    (gradient,) = torch.autograd.grad((encodings * directions).sum(), x)
    by_step = gradient.norm(dim=2).mean(dim=0)  # (T,)
    return round((by_step[-1 - FAR] / by_step[-1]).item(), 5)
