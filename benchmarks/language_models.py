"""What lesson 15 says of readers of long texts, for three seeds: ``make bench-language-models``.

    python -m benchmarks.language_models [--to FILE] [--seeds 0 1 2] [--only NAME …] [--steps 600]
                                         [--jobs 2]

Every model sees as many batches of texts of 128 words and writes the topic words in them; each is
tested on the same 500 new texts. A seed draws first weights and training texts. One thread
a job; the seconds are those of the CPU, so that other work on the machine counts little. The file
holds the settings and, for each model: parameters, attention scores for one text in a training
step, seconds of training, share of the topic words found, share of summaries without error and, of
mixtures, the part of all choices that fell on the most chosen expert of each layer.
"""

import argparse
import json
import multiprocessing
import sys
from pathlib import Path

import torch

from attention.provided import keywords, summarisers
from attention.provided.files import ROOT
from attention.provided.summarisers import LONG, SHORT

LOCAL_COMPRESSED = "local, then compressed"
# name: how the model is made, how many words it reads, factor of the loss that balances experts
MODELS = {
    "encoder-decoder, short": (summarisers.encoder_decoder, SHORT, 0.0),
    "decoder only, short": (lambda: summarisers.decoder_only("dense", "dense"), SHORT, 0.0),
    "decoder only, long": (lambda: summarisers.decoder_only("dense", "dense"), LONG, 0.0),
    LOCAL_COMPRESSED: (lambda: summarisers.decoder_only("local", "compressed"), LONG, 0.0),
    "the same with positions": (
        lambda: summarisers.decoder_only("local", "compressed", positions=True),
        LONG,
        0.0,
    ),
    "the same with experts": (
        lambda: summarisers.decoder_only("local", "compressed", experts=True),
        LONG,
        summarisers.BALANCE,
    ),
    "experts, not balanced": (
        lambda: summarisers.decoder_only("local", "compressed", experts=True),
        LONG,
        0.0,
    ),
    "compressed only": (lambda: summarisers.decoder_only("compressed", "compressed"), LONG, 0.0),
    "local only": (lambda: summarisers.decoder_only("local", "local"), LONG, 0.0),
}


def attention_scores(name):
    """How many scores the attentions of a model compute for one text and its summary."""
    _, read, _ = MODELS[name]
    N, T = summarisers.WRITTEN, read + 1 + summarisers.WRITTEN
    if name.startswith("encoder-decoder"):
        return read * read + N * N + N * read
    blocks = -(-T // summarisers.BLOCK)
    of = {
        "dense": T * T,
        "local": blocks * summarisers.BLOCK**2,
        "compressed": T * (T // summarisers.STRIDE),
    }
    kinds = {"decoder": ("dense", "dense"), "compressed": ("compressed", "compressed")}
    kinds["local"] = ("local", "local") if name == "local only" else ("local", "compressed")
    return sum(of[kind] for kind in kinds.get(name.split()[0], ("local", "compressed")))


def measured(job):
    """One model, one seed: (name, parameters, seconds, found, exact, largest shares)."""
    name, seed, steps, count = job
    torch.set_num_threads(1)
    make, read, balance = MODELS[name]
    torch.manual_seed(seed)
    model = make()
    _, seconds = summarisers.train(model, steps, seed, LONG, read, balance, f"{name}, seed {seed}")
    found, exact = summarisers.test(model, LONG, read, count)
    shares = [round(part.shares.max().item(), 3) for part in summarisers.mixtures(model)]
    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"{name:<24} seed {seed}: found {found:.3f}, exact {exact:.3f}, {seconds:.0f} s", flush=True
    )
    return name, parameters, seconds, found, exact, shares


def baselines(count=500):
    """Found and exact without learning: always the same words; a perfect reader of a short text.

    The reader writes the topic words among the first SHORT words, and guesses the others.
    """
    draw = torch.Generator().manual_seed(1_000_000)
    texts, summaries = keywords.make(count, LONG, draw)
    first = keywords.FIRST_TOPIC
    last = first + len(keywords.TOPICS)
    always = torch.arange(first, first + keywords.KEYS).expand(count, -1)
    topics = torch.arange(first, last)
    seen = (texts[:, :SHORT, None] == topics).any(dim=1)  # (B, topics)
    luck = torch.rand(seen.shape, generator=draw) + seen
    reader = luck.topk(keywords.KEYS, dim=1).indices.sort(dim=1).values + first
    end = summaries[:, -1:]
    both = {"always the same words": always, "perfect reader of the short text": reader}
    return {
        name: [round(x, 4) for x in keywords.scores(torch.cat([rows, end], dim=1), summaries)]
        for name, rows in both.items()
    }


def measure(names, seeds, steps, jobs=1, count=500):
    """Everything that the file holds, as a dict."""
    rows, work = {}, [(name, seed, steps, count) for name in names for seed in seeds]
    if jobs > 1:
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            results = pool.map(measured, work, chunksize=1)
    else:
        results = list(map(measured, work))
    for name, parameters, seconds, found, exact, shares in results:
        start = {"parameters": parameters, "reads": MODELS[name][1]}
        start |= {"scores": attention_scores(name), "seconds": [], "found": [], "exact": []}
        row = rows.setdefault(name, start)
        row["seconds"].append(round(seconds, 1))
        row["found"].append(round(found, 4))
        row["exact"].append(round(exact, 4))
        if shares:
            row.setdefault("largest share", []).append(shares)
    settings = {"seeds": list(seeds), "steps": steps, "words": LONG, "topics": keywords.KEYS}
    settings |= {"of topics": len(keywords.TOPICS), "test": count, "batch": summarisers.BATCH}
    settings |= {"learning_rate": summarisers.LEARNING_RATE, "balance": summarisers.BALANCE}
    settings |= {"d_model": summarisers.D_MODEL, "n_heads": summarisers.N_HEADS}
    settings |= {"d_ff": summarisers.D_FF, "block": summarisers.BLOCK}
    settings |= {"stride": summarisers.STRIDE, "experts": summarisers.EXPERTS}
    settings |= {"chosen": summarisers.CHOSEN, "torch": torch.__version__.split("+")[0]}
    command = "python -m benchmarks.language_models"
    return {"command": command, "settings": settings, "models": rows, "baselines": baselines()}


def main(arguments=None):
    """Measure, print, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=ROOT / "data" / "language_models.json")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--only", nargs="+", choices=[*MODELS], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    found = measure(options.only or MODELS, options.seeds, options.steps, options.jobs)
    options.to.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {options.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
