"""Lesson 17: agreement of first letters alone, and how far equal weights can be moved."""

import math
import random

import torch

from attention.experiments import interpretability as measured
from attention.interpretability import LeaveOneOut, perturb_attention
from attention.provided.data.tokens import PAD
from attention.provided.measuring import rank_agreement
from attention.train import shipped
from benchmarks.explained import gradients, interval, mean_attention
from benchmarks.interpretability import ROWS, lengths, long_sentences

TRIES = 20  # random directions for each row


def agreement(count=200):
    """τ with leave-one-out: of all letters, and of first letters of words alone."""
    model, corpus = shipped.trained("numbers")
    model = model.double().requires_grad_(False)
    pairs = random.Random(0).sample(corpus.test, min(count, len(corpus.test)))
    batch = corpus.batch(pairs)
    effects = LeaveOneOut(model)(batch.source, batch.target).abs()
    attention = mean_attention(measured.look(model, batch), "cross_attention")
    products, norms = gradients(model, batch)
    says = {
        "attention": attention,
        "gradient · input": products,
        "length of the gradient": norms,
    }
    first = measured.aligned_role(pairs, batch, True).any(-1)
    found = {}
    for which, mask in (("all letters", batch.target != PAD), ("first letters", first)):
        keys = zip(lengths(batch.source), mask.tolist(), strict=True)
        counts = [[n if counted else 0 for counted in row] for n, row in keys]
        for name, said in says.items():
            taus = [
                tau
                for tau in rank_agreement.agreement(said, effects, counts)
                if not math.isnan(tau)
            ]
            found[f"{name}, {which}"] = interval(taus)
    return found


def moved(count=ROWS):
    """Of how much of the weight the best of TRIES random directions gets, mean of the rows.

    The rows are the last of each head of the decoder's self-attentions, as in the histogram.
    """
    model, corpus = shipped.trained("numbers")
    batch = long_sentences(corpus, count)
    looks = measured.look(model.double().requires_grad_(False), batch)
    draw, found = torch.Generator().manual_seed(0), {"the model's": [], "equal": []}

    def best(weights, values):
        directions = (torch.randn(len(weights), generator=draw).double() for _ in range(TRIES))
        other = (perturb_attention(weights, values, direction) for direction in directions)
        return max((one - weights).abs().sum().item() / 2 for one in other)

    for name in (name for name in looks if name.startswith("decoder") and "cross" not in name):
        for b, T in enumerate(lengths(batch.target)):
            for head in range(looks[name].weights.shape[1]):
                weights = looks[name].weights[b, head, T - 1, :T]
                values = looks[name].values[b, head, :T]
                found["the model's"].append(best(weights, values))
                found["equal"].append(best(torch.full_like(weights, 1 / T), values))
    rows = len(found["equal"])
    return {f"{name} weights": round(sum(all_) / rows, 4) for name, all_ in found.items()} | {
        "rows": rows
    }
