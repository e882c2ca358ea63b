"""A made-up text in place of a learner's own, and a training on it that takes a second."""

import random

from attention.train.core.trainer import Trainer
from attention.train.corpora import texts
from attention.train.runs.run_folder import RunFolder
from attention.train.runs.settings import MODERN, Settings

SIZES = {"d_model": 16, "n_heads": 2, "n_kv_heads": 1, "d_ff": 16, "n_layers": 2, "length": 12}
TINY = Settings(
    corpus="text", model=MODERN, **SIZES, dropout=0.0, smoothing=0.0, merges=20, steps=6,
    max_tokens=60, warmup=2, every=3, average=2,
)  # fmt: skip


def written(path, lines=60):
    """A file of lines, some of them empty, with letters that take two to four bytes."""
    draw = random.Random(0)
    words = ["die", "Straße", "führt", "zum", "Café", "und", "weiter", "日本", "🙂"]
    rows = [" ".join(draw.choices(words, k=draw.randint(0, 8))) for _ in range(lines)]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def trained(folder, device, settings=TINY, lines=60):
    """A trainer that has trained on such a text, in the folder of a run."""
    text = texts.read([str(written(folder.with_suffix(".txt"), lines))], settings, {})
    run = RunFolder(folder)
    run.begin(vars(settings))
    run.keep_vocabularies(text.description())
    made = Trainer(settings, text, run, device)
    made.run()
    return made
