"""A language model that writes the first line of a docstring, for three seeds: lesson 15.

    python -m benchmarks.docstrings [--to FILE] [--seeds 0 1 2] [--steps 20 200 600 1600]

or ``make bench-docstrings``. The model is lesson 15's, over the tokens of a byte-level BPE
(lesson 08) that is learned from the same training rows. It reads the name and the beginning of the
body. All seeds come to the first number of steps, then all to the second, and so on; the file is
written after each, so a command that was stopped leaves what it has measured. One thread; the
seconds are those of the CPU. The file holds the settings, the trivial rules on the same rows, and
for each model at each number of steps: seconds of training, loss, ROUGE-L and what it wrote.
"""

import argparse
import json
import random
import sys
import time
from itertools import groupby, islice
from pathlib import Path

import torch

from attention.language_models import (
    DecoderOnly,
    generate,
    join_text_and_summary,
    language_model_loss,
)
from attention.provided.data import docstrings
from attention.provided.data.keywords import SEP
from attention.provided.data.tokens import EOS, PAD
from attention.provided.files import ROOT
from attention.provided.progress import Bar
from attention.provided.training_steps import descend
from attention.tokens_and_positions import (
    bpe_decode,
    bpe_encode,
    count_words,
    split_words,
    train_bpe,
)
from autograder.files import write_aside

MERGES, SPECIAL = 1500, SEP + 1  # a token's id is that of lesson 08, plus SPECIAL
READ, WRITTEN = 64, 24  # tokens: of the name and the body that are read, of a line at most
SIZES = {"d_model": 128, "n_heads": 4, "d_ff": 512, "n_layers": 3, "dropout": 0.1}
BATCH, LEARNING_RATE, WARMUP, TEST = 16, 1e-3, 50, 250
SHOWN = 4  # test rows whose lines are kept


class Tokens:
    """The tokeniser of the rows for training: a text to ids from SPECIAL on, and back."""

    def __init__(self, rows):
        texts = [f"{self.text(row)} {row.summary}" for row in rows]
        self.merges, self.known = train_bpe(*count_words(texts), MERGES), {}
        self.size = SPECIAL + 256 + len(self.merges)

    @staticmethod
    def text(row):
        """What the model reads of a row."""
        return f"{docstrings.in_words(row.name)}: {row.body}"

    def encode(self, text):
        """str -> list of ids; each word is encoded once and remembered."""
        ids = []
        for word in split_words(text):
            if word not in self.known:
                self.known[word] = [SPECIAL + i for i in bpe_encode(word, self.merges)]
            ids += self.known[word]
        return ids

    def decode(self, ids):
        """List of ids -> str; special ones are left out."""
        return bpe_decode([i - SPECIAL for i in ids if i >= SPECIAL], self.merges).strip()

    def pair(self, row):
        """(text, summary) as lists of ids, both shortened to what the model reads and writes."""
        return self.encode(self.text(row))[:READ], self.encode(row.summary)[: WRITTEN - 1]


def loss_of(model, pairs):
    """Mean loss of the summaries' tokens of a batch."""
    tokens, counted = join_text_and_summary(*zip(*pairs, strict=True))
    return language_model_loss(model(tokens), tokens, counted)


class Learner:
    """A model of one seed, and how far it has come."""

    def __init__(self, seed, size):
        torch.manual_seed(seed)
        self.model, self.seed = DecoderOnly(size, **SIZES), seed
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=LEARNING_RATE)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / WARMUP)
        )
        self.draw, self.noise = random.Random(seed), torch.get_rng_state()
        self.steps, self.seconds = 0, 0.0

    def learn(self, pairs, steps):
        """Go on until `steps` steps are done in all; dropout is that of this seed's own noise."""
        torch.set_rng_state(self.noise)
        begin = time.process_time()
        losses = (loss_of(self.model, self.draw.sample(pairs, BATCH)) for _ in iter(int, 1))
        with Bar(steps - self.steps, f"seed {self.seed}, to step {steps}") as bar:
            some = islice(losses, steps - self.steps)
            descend(self.model, some, self.optimizer, self.schedule, bar, max_norm=1.0)
        self.seconds += time.process_time() - begin
        self.steps, self.noise = steps, torch.get_rng_state()

    @torch.no_grad()
    def test_loss(self, pairs):
        """Mean loss on the rows for testing, in nats per token."""
        return loss_of(self.model, pairs).item()

    def write(self, pairs, tokens):
        """The line that it writes of each text, greedily."""
        lines, order = {}, sorted(range(len(pairs)), key=lambda place: len(pairs[place][0]))
        for _, group in groupby(order, key=lambda place: len(pairs[place][0])):
            places = list(group)
            prompt = torch.tensor([[*pairs[place][0], SEP] for place in places])
            ids = generate(self.model, prompt, lambda scores: scores.argmax(dim=1), WRITTEN)
            for place, row in zip(places, ids.tolist(), strict=True):
                ended = row.index(EOS) if EOS in row else len(row)
                lines[place] = tokens.decode([i for i in row[:ended] if i != PAD])
        return [lines[place] for place in range(len(pairs))]


def best_constant(rows, candidates=100, others=200):
    """Of some training summaries, the one that is most like others of them."""
    some = random.Random(0).sample(rows, others)
    return max(
        (row.summary for row in some[:candidates]),
        key=lambda line: sum(docstrings.rouge_l([line] * others, some)),
    )


def rules(train, test):
    """Mean ROUGE-L of what needs no learning, and the line that one rule always writes."""
    constant = best_constant(train)
    lines = {name: [rule(row) for row in test] for name, rule in docstrings.RULES.items()}
    lines["one line for all"] = [constant] * len(test)
    return {name: mean(docstrings.rouge_l(texts, test)) for name, texts in lines.items()}, constant


def mean(values):
    """Mean, rounded to four digits."""
    return round(sum(values) / len(values), 4)


def measure(to, seeds, budgets, count=TEST):
    """Write what has been measured after each model and number of steps."""
    rows, held_back = docstrings.split(docstrings.load())
    test = random.Random(0).sample(held_back, count)
    tokens = Tokens(rows)
    train_pairs, test_pairs = ([tokens.pair(row) for row in some] for some in (rows, test))
    learners = [Learner(seed, tokens.size) for seed in seeds]
    settings = {"seeds": list(seeds), "train": len(rows), "test": count, "merges": MERGES}
    settings |= {"read": READ, "written": WRITTEN, "batch": BATCH, "learning_rate": LEARNING_RATE}
    settings |= {"warmup": WARMUP, **SIZES, "torch": torch.__version__.split("+")[0]}
    settings["parameters"] = sum(p.numel() for p in learners[0].model.parameters())
    found = {"command": "python -m benchmarks.docstrings", "settings": settings}
    found["rules"], found["one line for all"] = rules(rows, test)
    found["points"] = []
    found["shown"] = [row._asdict() for row in test[:SHOWN]]
    for steps in budgets:
        for learner in learners:
            learner.learn(train_pairs, steps)
            lines = learner.write(test_pairs, tokens)
            point = {"seed": learner.seed, "steps": steps, "seconds": round(learner.seconds, 1)}
            point |= {"loss": round(learner.test_loss(test_pairs), 4)}
            point |= {"rouge_l": mean(docstrings.rouge_l(lines, test)), "wrote": lines[:SHOWN]}
            found["points"].append(point)
            print(point, flush=True)
            text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
            write_aside(to, text.encode())
    return found


def main(arguments=None):
    """Measure, print, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=ROOT / "data" / "docstrings.json")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, nargs="+", default=[20, 200, 600, 1600])
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    measure(options.to, options.seeds, sorted(options.steps))
    print(f"written to {options.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
