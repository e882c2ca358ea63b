"""What lesson 15 says of readers of long texts, for three seeds: ``make bench-language-models``.

    python -m benchmarks.language_models [--to FILE] [--seeds 0 1 2] [--only NAME …] [--steps 600]
                                         [--jobs 2]

Every model sees as many batches of texts of 128 words and writes the topic words in them; each is
tested on the same 500 new texts. A seed draws first weights and training texts. One thread
a job; the seconds are those of the CPU, so that other work on the machine counts little. The file
holds the settings and, for each model: parameters, the scores of a text that one head may see,
seconds of training, share of the topic words found, share of summaries without error and, of
mixtures, the part of all choices that fell on the most chosen expert of each layer.
"""

import argparse
import json
import multiprocessing
import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch

from attention.provided.data import keywords
from attention.provided.files import ROOT
from benchmarks import summarisers
from benchmarks.summarisers import LONG, SHORT


@dataclass(frozen=True)
class Row:
    """A model of the table."""

    reads: int  # words of each text
    attentions: tuple[str, ...] = ()  # of the layers of a decoder; none: an encoder-decoder
    balance: float = 0.0  # factor of the loss that balances experts
    options: dict[str, bool] = field(default_factory=dict)  # of `summarisers.decoder_only`

    def make(self):
        """The model, with the weights that it begins with."""
        if not self.attentions:
            return summarisers.encoder_decoder()
        return summarisers.decoder_only(*self.attentions, **self.options)

    def scores(self):
        """How many scores its attentions may see for one text and its summary."""
        M, N, block = self.reads, summarisers.WRITTEN, summarisers.BLOCK
        if not self.attentions:
            return M * M + N * M + N * (N + 1) // 2
        T = M + 1 + N
        of = {
            "dense": T * (T + 1) // 2,
            "local": sum(t % block + 1 for t in range(T)),
            "compressed": sum((t + 1) // summarisers.STRIDE for t in range(T)),
        }
        return sum(of[kind] for kind in self.attentions)


DENSE, TURNS = ("dense", "dense"), ("local", "compressed")
MODELS = {
    "encoder-decoder, short": Row(SHORT),
    "decoder only, short": Row(SHORT, DENSE),
    "decoder only, long": Row(LONG, DENSE),
    "local, then compressed": Row(LONG, TURNS),
    "the same with positions": Row(LONG, TURNS, options={"positions": True}),
    "the same with experts": Row(LONG, TURNS, summarisers.BALANCE, {"experts": True}),
    "experts, not balanced": Row(LONG, TURNS, options={"experts": True}),
    "compressed only": Row(LONG, ("compressed", "compressed")),
    "local only": Row(LONG, ("local", "local")),
}


def measured(job):
    """One model, one seed: (name, parameters, seconds, found, exact, largest shares)."""
    name, seed, steps, count = job
    torch.set_num_threads(1)
    row, label = MODELS[name], f"{name}, seed {seed}"
    torch.manual_seed(seed)
    model = row.make()
    _, seconds = summarisers.train(model, steps, seed, LONG, row.reads, row.balance, label)
    found, exact = summarisers.test(model, LONG, row.reads, count)
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
        start = {"parameters": parameters, "reads": MODELS[name].reads}
        start |= {"scores": MODELS[name].scores(), "seconds": [], "found": [], "exact": []}
        row = rows.setdefault(name, start)
        row["seconds"].append(round(seconds, 1))
        row["found"].append(round(found, 4))
        row["exact"].append(round(exact, 4))
        if shares:
            row.setdefault("largest share", []).append(shares)
    settings = {"seeds": list(seeds), "steps": steps, "words": LONG, "topics": keywords.KEYS}
    named = ("batch", "learning_rate", "balance", "d_model", "n_heads", "d_ff", "block", "stride")
    settings |= {"of topics": len(keywords.TOPICS), "test": count}
    settings |= {name: getattr(summarisers, name.upper()) for name in (*named, "experts", "chosen")}
    settings["torch"] = torch.__version__.split("+")[0]
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
