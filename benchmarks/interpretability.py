"""What lesson 17 says of the trained translator of numbers: ``make bench-interpretability``.

    python -m benchmarks.interpretability [--to FILE] [--only PART …] [--sentences 200]

The model is data/checkpoints/numbers.safetensors; nothing is trained but linear probes. All
sentences are held-out ones, drawn with a fixed seed, save those that heads are chosen by. One
thread, float64. Intervals are 95 % bootstrap intervals over sentences. Beside the trained model
stand three of the same sizes with first weights, as a control.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

import numpy
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from attention.interpretability import (
    HeadImportance,
    HiddenTokenAttribution,
    LeaveOneOut,
    effective_attention,
    null_space_dimension,
    perturb_attention,
    token_identifiability,
)
from attention.provided import explanations as measured
from attention.provided import translators
from attention.provided.data import PAD
from attention.provided.files import ROOT

SEEDS, LONG, ROWS, PROBED, CHOSEN, PRUNED = (0, 1, 2), 40, 25, 400, 200, 500
FROM = 40  # rows of the decoder's self-attention that see this many positions, or more


def sentences(pairs, corpus, count, seed=0):
    """So many of the pairs, as a batch."""
    return corpus.batch(random.Random(seed).sample(pairs, min(count, len(pairs))))


def lengths(ids):
    """How many of (B, T) ids are real."""
    return (ids != PAD).sum(dim=1).tolist()


def interval(numbers):
    """Mean and bounds, rounded for the file."""
    return [round(number, 4) for number in measured.bootstrap(numbers)]


def explanation(model, corpus, count):
    """τ of what is said of source tokens with what happens without them."""
    batch = sentences(corpus.test, corpus, count)
    effects = LeaveOneOut(model)(batch.source, batch.target).abs()
    looks = measured.look(model, batch)
    products, norms = measured.gradients(model, batch)
    chance = torch.rand(effects.shape, generator=torch.Generator().manual_seed(0))
    says = {
        "attention, all layers": measured.mean_attention(looks, "cross_attention"),
        "attention, layer 0": measured.mean_attention(looks, "0.cross_attention"),
        "attention, layer 1": measured.mean_attention(looks, "1.cross_attention"),
        "gradient · input": products,
        "length of the gradient": norms,
        "random numbers": chance,
    }
    counts = [
        [keys] * rows
        for keys, rows in zip(lengths(batch.source), lengths(batch.target), strict=True)
    ]
    taus = {name: measured.agreement(said, effects, counts) for name, said in says.items()}
    pairs = zip(taus["attention, all layers"], taus["gradient · input"], strict=True)
    return {name: interval(numbers) for name, numbers in taus.items()} | {
        "attention less gradient · input": interval([one - other for one, other in pairs])
    }


def rearranged(model, corpus, count):
    """What is right under other cross-attention weights: shares of letters and of numbers."""
    pairs = random.Random(0).sample(corpus.test, min(count, len(corpus.test)))
    batch, found = corpus.batch(pairs), {}
    first, inside = (
        measured.aligned_role(pairs, batch, is_first).any(-1) for is_first in (True, False)
    )
    which = {"letters": batch.target != PAD, "first letters": first, "letters inside": inside}
    for name, seeds in (("as they are", (0,)), ("shuffled", SEEDS), ("uniform", (0,))):
        for seed in seeds:
            if name == "as they are":
                right = measured.right_letters(model, batch)
            else:
                with measured.rearranged(model, batch.source, name, seed):
                    right = measured.right_letters(model, batch)
            shares = {part: right[mask] for part, mask in which.items()}
            shares["whole numbers"] = right.all(dim=1)
            row = {part: round(share.double().mean().item(), 4) for part, share in shares.items()}
            found.setdefault(name, []).append(row)
    return found


def long_sentences(corpus, count):
    """The longest of the held-out targets."""
    return corpus.batch(sorted(corpus.test, key=lambda pair: -len(pair[2]))[:count])


def null_space(model, corpus, count):
    """How far the last row of each head of the decoder's self-attention can be moved."""
    batch = long_sentences(corpus, min(count, ROWS))
    looks, rows = measured.look(model, batch), []
    random_directions = torch.Generator().manual_seed(0)
    for name in (name for name in looks if name.startswith("decoder") and "cross" not in name):
        for b, T in enumerate(lengths(batch.target)):
            for head in range(looks[name].weights.shape[1]):
                weights = looks[name].weights[b, head, T - 1, :T]
                values = looks[name].values[b, head, :T]
                other = measured.largest_change(weights, values)
                change = [
                    perturb_attention(
                        weights, values, torch.randn(T, generator=random_directions).double()
                    )
                    for _ in range(20)
                ]
                rows.append(
                    [
                        T,
                        int(null_space_dimension(values)),
                        (other - weights).abs().sum().item() / 2,
                        max((one - weights).abs().sum().item() / 2 for one in change),
                        (other @ values - weights @ values).abs().max().item(),
                    ]
                )
    table = numpy.array(rows)
    share = [n > 33 for n in lengths(corpus.batch(corpus.test).target)]
    return {
        "rows": len(table),
        "sentences": len(batch.target),
        "T": [int(table[:, 0].min()), int(table[:, 0].max())],
        "T less dimension": sorted({int(row[0] - row[1]) for row in rows}),
        "search, mean and largest": [round(x, 4) for x in (table[:, 2].mean(), table[:, 2].max())],
        "random, mean and largest": [round(x, 4) for x in (table[:, 3].mean(), table[:, 3].max())],
        "search": sorted(round(x, 3) for x in table[:, 2].tolist()),
        "random": sorted(round(x, 3) for x in table[:, 3].tolist()),
        "largest error of the output": float(f"{table[:, 4].max():.1e}"),
        "targets of more than 33 tokens": round(sum(share) / len(share), 4),
        "longest source": max(lengths(corpus.batch(corpus.test).source)),
    }


def prefixes(model, corpus, count):
    """τ of raw and effective weights on earlier letters with what happens without these."""
    batch = long_sentences(corpus, min(count, LONG))
    effects = measured.prefix_effects(model, batch).abs()
    looks = measured.look(model, batch)
    chosen = [looks[n] for n in looks if n.startswith("decoder") and "cross" not in n]
    raw = torch.stack([one.weights for one in chosen]).mean(dim=(0, 2))
    effective = torch.stack([_effective_rows(one) for one in chosen])
    mean = effective.mean(dim=(0, 2))
    says = {"raw": raw, "effective": mean, "size of effective": effective.abs().mean(dim=(0, 2))}
    says["random numbers"] = torch.rand(raw.shape, generator=torch.Generator().manual_seed(0))
    # The own position is always seen: the keys are those before it, t of them.
    T = batch.target.shape[1]
    counts = [[t if FROM <= t + 1 <= n else 0 for t in range(T)] for n in lengths(batch.target)]
    taus = {name: measured.agreement(said, effects, counts) for name, said in says.items()}
    there = torch.zeros_like(raw, dtype=torch.bool)  # (B, T_q, T_k)
    for b, row in enumerate(counts):
        for t, n in enumerate(row):
            there[b, t, : t + 1] = n > 0
    negative = effective.transpose(1, 2)[:, :, there] < -1e-12
    result = {name: interval(numbers) for name, numbers in taus.items()}
    for name in ("effective", "size of effective"):
        pairs = zip(taus[name], taus["raw"], strict=True)
        result[f"{name} less raw"] = interval([one - other for one, other in pairs])
    result["negative entries"] = round(negative.double().mean().item(), 4)
    result["rows"] = sum(n > 0 for row in counts for n in row)
    result["sentences"] = len(batch.target)
    return result


def _effective_rows(one):
    """Effective weights row by row: query t sees the positions up to its own."""
    result = torch.zeros_like(one.weights)
    for t in range(one.weights.shape[2]):
        seen = one.weights[:, :, t : t + 1, : t + 1]
        result[:, :, t : t + 1, : t + 1] = effective_attention(seen, one.values[:, :, : t + 1])
    return result


def untrained(model, corpus, seed):
    """A model of the same sizes with first weights."""
    from attention.provided.model_file import load
    from attention.train.model import SIZES
    from attention.transformer import Transformer

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
    """Shares of source tokens whose hidden vectors are nearest to their own input."""
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
        found.setdefault(name, []).append(rows)
    return found


def _with_controls(model, corpus):
    return [("trained", model)] + [("untrained", untrained(model, corpus, s)) for s in SEEDS]


@torch.no_grad()
def probes(model, corpus, count):
    """How often a linear model reads from a hidden vector what stands where."""
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
        first.setdefault(group, greedy[0])
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
        shares.append(round(measured.exact_without(model, batch, order[:n]), 4))
        if shares[-1] == 0:
            break
    return shares


def _greedy(model, batch, heads):
    """An order: each time the head whose loss costs the fewest sentences."""
    order, left = [], list(heads)
    while left:
        costs = {one: measured.exact_without(model, batch, [*order, one]) for one in left}
        best = max(left, key=lambda one: costs[one])
        order.append(best)
        left.remove(best)
        if costs[best] == 0:
            break
    return order + left


PARTS = {
    "explanation": explanation,
    "rearranged": rearranged,
    "null space": null_space,
    "prefixes": prefixes,
    "identifiability": identifiability,
    "probes": probes,
    "attribution": attribution,
    "pruning": pruning,
}


def main(arguments=None):
    """Measure, print, and write the file; parts that are not asked for stay as they were."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=ROOT / "data" / "interpretability.json")
    parser.add_argument("--only", nargs="+", choices=[*PARTS], metavar="PART")
    parser.add_argument("--sentences", type=int, default=200)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    found = json.loads(options.to.read_text(encoding="utf-8")) if options.to.exists() else {}
    for name in options.only or PARTS:
        model, corpus = translators.trained("numbers")
        began = time.process_time()
        found[name] = PARTS[name](model.double(), corpus, options.sentences)
        print(f"{name}: {time.process_time() - began:.0f} s", flush=True)
    found["command"] = "python -m benchmarks.interpretability"
    found["settings"] = {"sentences": options.sentences, "untrained seeds": list(SEEDS)}
    found["settings"] |= {"torch": torch.__version__.split("+")[0], "model": "numbers"}
    ordered = {name: found[name] for name in ("command", "settings", *PARTS) if name in found}
    options.to.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"written to {options.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
