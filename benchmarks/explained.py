"""What the measurements of lesson 17 share: sentences, and what the trained translator is asked."""

import random

import torch

from attention.provided.data.tokens import PAD
from attention.provided.measuring.rank_agreement import bootstrap
from attention.provided.models.attention_weights import attentions, watch_attention
from attention.sequence_to_sequence import shift_right
from attention.transformer import masks_from_tokens


def sentences(pairs, corpus, count, seed=0):
    """So many of the pairs, as a batch."""
    return corpus.batch(random.Random(seed).sample(pairs, min(count, len(pairs))))


def interval(numbers):
    """Mean and bounds, rounded for the file."""
    return [round(number, 4) for number in bootstrap(numbers)]


def mean_attention(looks, ending):
    """Mean over layers and heads of the weights whose name ends so: (B, T_q, T_k)."""
    chosen = [one.weights for name, one in looks.items() if name.endswith(ending)]
    return torch.stack(chosen).mean(dim=(0, 2))


@torch.no_grad()
def right_letters(model, batch):
    """Which target tokens have the largest score, given the true ones before: bool (B, T_q)."""
    return (model(batch.source, batch.target).argmax(-1) == batch.target) | (batch.target == PAD)


def gradients(model, batch):
    """Derivatives of each target token's log-probability by each source token's vector.

    returns  two (B, T_q, T_k): |gradient · vector|, and the gradient's length
    """
    seen, read_mask = masks_from_tokens(batch.source, shift_right(batch.target))
    x = model.embed(batch.source, model.source_embedding).detach().requires_grad_()
    memory = model.encoder(x, seen)
    logits = model.decode(shift_right(batch.target), memory, read_mask, seen)
    log_p = logits.log_softmax(-1).gather(2, batch.target.unsqueeze(2)).squeeze(2)
    products, norms = [], []
    for one in log_p.unbind(dim=1):  # a sentence depends on itself alone
        (gradient,) = torch.autograd.grad(one.sum(), x, retain_graph=True)
        products.append((gradient * x).sum(-1).abs())
        norms.append(gradient.norm(dim=-1))
    return torch.stack(products, 1).detach(), torch.stack(norms, 1)


def exact_without(model, batch, off):
    """Share of sentences of which every token is right, given the true ones before, without heads.

    Greedy translation gives the same sentence exactly where this is so.
    """
    parts = attentions(model)
    gates = {name: torch.ones(part.n_heads) for name, part in parts.items()}
    for name, head in off:
        gates[name][head] = 0.0
    with watch_attention(model, gates):
        right = right_letters(model, batch)
    return right.all(dim=1).double().mean().item()
