"""The figures in answers to open questions that nothing is trained for, lesson by lesson.

    python -m benchmarks.answers [LESSON …]

A count of lesson 15, the agreement and the null space of lesson 17 (minutes, on one thread), the
tiles of lesson 18 and the crossing in its recorded times. The figures of trainings are recorded:
``python -m benchmarks.evidence``.
"""

import argparse
import json
import math
import random
import sys
import time

import torch

from attention.efficient_attention import flash_attention, online_softmax, tile_scores
from attention.interpretability import LeaveOneOut, perturb_attention
from attention.provided import explanations as measured
from attention.provided import roles, translators
from attention.provided.data import PAD
from attention.provided.files import ROOT
from benchmarks.drawn import interval
from benchmarks.interpretability import ROWS, lengths, long_sentences

LENGTH, BLOCK, STRIDE = 24, 6, 3  # of the pictures of lesson 15
TRIES = 20  # random directions for each row


def reached():
    """How many pairs of a position and an earlier one, or itself, two layers connect, by kinds.

    What a layer does not show to a position still comes through: residuals lead to itself.
    """
    t = torch.arange(LENGTH)
    earlier, own = t <= t[:, None], torch.eye(LENGTH, dtype=torch.bool)
    layers = {
        "local": earlier & (t[:, None] // BLOCK == t // BLOCK),
        "compressed": t // STRIDE * STRIDE + STRIDE - 1 <= t[:, None],  # its stretch has ended
    }
    layers = {name: (mask | own).double() for name, mask in layers.items()}
    pairs = {
        f"{one}, then {other}": int((layers[other] @ layers[one] > 0).sum())
        for one in layers
        for other in layers
    }
    return pairs | {"all pairs": int(earlier.sum())}


def agreement(count=200):
    """τ with leave-one-out: of all letters, and of first letters of words alone."""
    model, corpus = translators.trained("numbers")
    model = model.double().requires_grad_(False)
    pairs = random.Random(0).sample(corpus.test, min(count, len(corpus.test)))
    batch = corpus.batch(pairs)
    effects = LeaveOneOut(model)(batch.source, batch.target).abs()
    attention = measured.mean_attention(measured.look(model, batch), "cross_attention")
    products, norms = measured.gradients(model, batch)
    says = {
        "attention": attention,
        "gradient · input": products,
        "length of the gradient": norms,
    }
    first = roles.aligned_role(pairs, batch, True).any(-1)
    found = {}
    for which, mask in (("all letters", batch.target != PAD), ("first letters", first)):
        keys = zip(lengths(batch.source), mask.tolist(), strict=True)
        counts = [[n if counted else 0 for counted in row] for n, row in keys]
        for name, said in says.items():
            taus = [tau for tau in measured.agreement(said, effects, counts) if not math.isnan(tau)]
            found[f"{name}, {which}"] = interval(taus)
    return found


def moved(count=ROWS):
    """Of how much of the weight the best of TRIES random directions gets, mean of the rows.

    The rows are the last of each head of the decoder's self-attentions, as in the histogram.
    """
    model, corpus = translators.trained("numbers")
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


def skipping(q, k, v, block):
    """Causal attention in tiles, without those that the mask hides as a whole; and their number."""
    contexts, tiles = [], 0
    for i in range(0, q.shape[-2], block):
        rows = q[..., i : i + block, 0]
        context, total = v.new_zeros(*rows.shape, v.shape[-1]), torch.zeros_like(rows)
        largest = torch.full_like(rows, -math.inf)
        for j in range(0, i + 1, block):
            scores = tile_scores(q, k, i, j, block, True)
            context, total, largest = online_softmax(
                context, total, largest, scores, v[..., j : j + block, :]
            )
            tiles += 1
        contexts.append(context / total.unsqueeze(-1))
    return torch.cat(contexts, dim=-2), tiles


@torch.no_grad()
def skipped(T=2048, block=256, rounds=7):
    """Tiles that are left and the time they take, as a share of that of all: the shortest runs."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 4, T, 32) for _ in range(3))
    context, left = skipping(q, k, v, block)
    torch.testing.assert_close(context, flash_attention(q, k, v, block, True)[0])
    clock = {flash_attention: math.inf, skipping: math.inf}
    for _ in range(rounds):
        for run, arguments in ((flash_attention, (block, True)), (skipping, (block,))):
            began = time.process_time()
            run(q, k, v, *arguments)
            clock[run] = min(clock[run], time.process_time() - began)
    share = round(clock[skipping] / clock[flash_attention], 2)
    return {"tiles": (-(-T // block)) ** 2, "left": left, "share of the time": share}


def overtaken():
    """The recorded milliseconds of window and fused kernel beside the length where they cross."""
    cost = json.loads((ROOT / "data" / "efficient_attention.json").read_text("utf-8"))["cost"]
    rows = [
        {"T": T, "window": round(window, 1), "fused kernel": round(fused, 1)}
        for (T, window, _), (_, fused, _) in zip(cost["window"], cost["fused kernel"], strict=False)
    ]
    quicker = [row["window"] < row["fused kernel"] for row in rows]
    first = quicker.index(True)
    return {"before": rows[first - 1], "after": rows[first]}


ANSWERS = {
    "15": {"2 · two layers": reached},
    "17": {"1 · agreement": agreement, "2 · random directions": moved},
    "18": {"1 · tiles skipped": skipped, "3 · window against kernel": overtaken},
}


def main(arguments=None):
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lesson", nargs="*", help="numbers of lessons; all if none")
    options = parser.parse_args(arguments)
    unknown = [lesson for lesson in options.lesson if lesson not in ANSWERS]
    if unknown:
        there = ", ".join(ANSWERS)
        print(f"nothing to measure for {', '.join(unknown)}; there are: {there}", file=sys.stderr)
        return 1
    torch.set_num_threads(1)
    for lesson in options.lesson or ANSWERS:
        for name, measure in ANSWERS[lesson].items():
            print(f"lesson {lesson}, {name}", flush=True)
            for what, figures in measure().items():
                print(f"    {what}: {figures}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
