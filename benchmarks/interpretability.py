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

from attention.experiments import interpretability as measured
from attention.interpretability import (
    LeaveOneOut,
    null_space_dimension,
    perturb_attention,
)
from attention.provided.data.tokens import PAD
from attention.provided.files import ROOT
from attention.provided.measuring import rank_agreement
from attention.provided.measuring.other_weights import largest_change
from attention.provided.models import rearranged_attention
from attention.train import shipped
from benchmarks.explained import (
    gradients,
    interval,
    mean_attention,
    right_letters,
    sentences,
)
from benchmarks.hidden_vectors import SEEDS, attribution, identifiability, probes
from benchmarks.pruning import pruning

ROWS = 25  # of the longest sentences


def lengths(ids):
    """How many of (B, T) ids are real."""
    return (ids != PAD).sum(dim=1).tolist()


def explanation(model, corpus, count):
    """τ of what is said of source tokens with what happens without them."""
    batch = sentences(corpus.test, corpus, count)
    effects = LeaveOneOut(model)(batch.source, batch.target).abs()
    looks = measured.look(model, batch)
    products, norms = gradients(model, batch)
    chance = torch.rand(effects.shape, generator=torch.Generator().manual_seed(0))
    says = {
        "attention, all layers": mean_attention(looks, "cross_attention"),
        "attention, layer 0": mean_attention(looks, "0.cross_attention"),
        "attention, layer 1": mean_attention(looks, "1.cross_attention"),
        "gradient · input": products,
        "length of the gradient": norms,
        "random numbers": chance,
    }
    counts = [
        [keys] * rows
        for keys, rows in zip(lengths(batch.source), lengths(batch.target), strict=True)
    ]
    taus = {name: rank_agreement.agreement(said, effects, counts) for name, said in says.items()}
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
                right = right_letters(model, batch)
            else:
                with rearranged_attention.rearranged(model, batch.source, name, seed):
                    right = right_letters(model, batch)
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
                other = largest_change(weights, values)
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


PARTS = {
    "explanation": explanation,
    "rearranged": rearranged,
    "null space": null_space,
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
        model, corpus = shipped.trained("numbers")
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
