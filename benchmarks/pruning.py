"""What is left of a translator when heads are silenced, in several orders.

A part of `benchmarks.interpretability`.
"""

import random

from attention.interpretability import HeadImportance
from benchmarks.explained import exact_without, sentences

CHOSEN, PRUNED = 200, 500  # sentences that heads are chosen by, and that are tested

GROUPS = {
    "encoder": lambda name: name.startswith("encoder"),
    "decoder": lambda name: name.startswith("decoder") and "cross" not in name,
    "cross": lambda name: "cross" in name,
    "all": lambda name: True,
}


def pruning(model, corpus, count):
    """Curves of exact sentences as heads are silenced: least important first, at random, greedy."""
    model = model.float()
    learn = sentences(corpus.train, corpus, min(count, CHOSEN), seed=2)
    test = sentences(corpus.test, corpus, min(PRUNED, 5 * count), seed=3)
    importance = HeadImportance(model)(learn.source, learn.target)
    curves, first = {}, {}
    for group, belongs in GROUPS.items():
        heads = [
            (name, head)
            for name, sizes in importance.items()
            if belongs(name)
            for head in range(len(sizes))
        ]
        order = sorted(heads, key=lambda one: importance[one[0]][one[1]].item())
        greedy = _greedy(model, learn, heads)
        first[group] = greedy[0]
        curves[group] = {
            "least important first": [_curve(model, test, order)],
            "at random": [_curve(model, test, _shuffled(heads, seed)) for seed in range(5)],
            "greedy": [_curve(model, test, greedy)],
        }
        print(group, {name: rows[0][:9] for name, rows in curves[group].items()}, flush=True)
    named = {n: [round(x, 5) for x in sizes.tolist()] for n, sizes in importance.items()}
    return {
        "curves": curves,
        "importance": named,
        "first off": first["decoder"],
        "sentences": len(test.source),
    }


def _shuffled(heads, seed):
    return random.Random(seed).sample(heads, len(heads))


def _curve(model, batch, order):
    """Shares with none, one, two … heads of an order off, until nothing is right any more."""
    shares = []
    for n in range(len(order) + 1):
        shares.append(round(exact_without(model, batch, order[:n]), 4))
        if shares[-1] == 0:
            break
    return shares


def _greedy(model, batch, heads):
    """An order: each time the head whose loss costs the fewest sentences."""
    order, left = [], list(heads)
    while left:
        costs = {one: exact_without(model, batch, [*order, one]) for one in left}
        best = max(left, key=lambda one: costs[one])
        order.append(best)
        left.remove(best)
        if costs[best] == 0:
            break
    return order + left
