"""Judge a training of `python -m attention.train multi30k`, and write it down for lesson 14.

    autograder data fetch multi30k
    OMP_NUM_THREADS=1 python -m attention.train multi30k --merges 4000 --n-layers 2 \\
        --steps 600 --warmup 100 --every 50 --average 3 --dropout 0.1 --drop-hidden
    python -m benchmarks.multi30k

The recorded training was stopped (Ctrl-C) after the save of step 300.

The file holds numbers, and a few sentences of the test set with their translations: no corpus.
"""

import argparse
import csv
import json
import random
import re
from pathlib import Path

import torch

from attention.decoding import beam_search
from attention.experiments.recorded import path_of
from attention.provided.data.tokens import pad
from attention.train.core.model import load_model
from attention.train.core.trainer import Trainer
from attention.train.corpora import multi30k, token_ids
from attention.train.runs.run_folder import RunFolder
from attention.train.runs.settings import stored
from attention.translation import bleu, corpus_statistics, paired_bootstrap
from autograder.files import write_aside

COMMAND = (
    "OMP_NUM_THREADS=1 python -m attention.train multi30k --merges 4000 --n-layers 2 --steps 600 "
    "--warmup 100 --every 50 --average 3 --dropout 0.1 --drop-hidden"
)
SEARCHES = ((5, 1.0), (1, 1.0))  # beam and alpha
SENTENCES = 200  # of the test set, the first
SHOWN = 12  # test sentences that are stored, with their translations
EVERY = 10  # steps of the stored curve
PATTERNS = {  # what is looked for in the English training sentences, as whole words
    "a man": r"a man",
    "is or are": r"is|are",
    "was or were": r"was|were",
    "not": r"not|\S*n &apos;t|\S*n&apos;t",
    "i": r"i",
    "you": r"you",
    "because": r"because",
    "a question mark": r"\?",
}


def judge(folder, corpus):
    """What is stored of the training in ``folder``: {name: rows of a point and a result}."""
    finish(folder, corpus)
    english, wanted = (
        multi30k.load("test_2016_flickr", side, True, corpus)[:SENTENCES] for side in ("en", "de")
    )
    found, scores = translate_all(folder, english)
    counted = {search: corpus_statistics(one, wanted) for search, one in found.items()}
    draw = torch.Generator().manual_seed(0)
    rows = torch.randint(len(wanted), (500, len(wanted)), generator=draw)
    return {
        "training": [{"point": {"command": COMMAND}, "result": about(folder)}],
        "curve": curve(folder),
        "beam": beams(found, scores, counted, rows),
        "baselines": baselines(english, wanted),
        "samples": samples(english, wanted, found[5, 1.0], folder),
        "corpus": occurrences(multi30k.load("train", "en", True, corpus)),
    }


def translate_all(folder, english):
    """Translations and mean log-probabilities, by beam and alpha."""
    model, source, target = load_model(folder / "model.safetensors")
    ids = pad([source.encode(text) for text in english])
    found, scores = {}, {}
    for search in SEARCHES:
        written, totals = beam_search(model, ids, *search, max_length=80, return_scores=True)
        found[search] = [target.decode(row) for row in written.tolist()]
        scores[search] = totals.mean().item()
        print(f"beam {search[0]}, alpha {search[1]}: {totals.mean():.2f}", flush=True)
    return found, scores


def about(folder):
    """How far the training went, and how large the model is."""
    rows, (model, _, _) = metrics(folder), load_model(folder / "model.safetensors")
    return {
        "steps": len(rows),
        "tokens": sum(int(row["tokens"]) for row in rows),
        "parameters": sum(one.numel() for one in model.parameters()),
        "cpu_seconds": round(RunFolder(folder).load("state.safetensors")[1]["cpu_seconds"]),
        "sentences": SENTENCES,
    }


def finish(folder, corpus):
    """Make model.safetensors, the mean of the last saves, of a training that was stopped."""
    if (folder / "model.safetensors").exists():
        return
    run = RunFolder(folder)
    settings = stored(run.config())
    pairs = token_ids.translations(settings.merges, corpus)
    Trainer(settings, pairs, run, torch.device("cpu"), resume=True).finish()


def metrics(folder):
    """The rows of a training's metrics."""
    with open(folder / "metrics.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def curve(folder):
    """The mean loss of every few steps, and the loss on the validation sentences."""
    rows, told = metrics(folder), []
    for end in range(EVERY, len(rows) + 1, EVERY):
        part = rows[end - EVERY : end]
        result = {"loss": round(sum(float(row["loss"]) for row in part) / EVERY, 3)}
        if part[-1]["val_loss"]:
            result["val_loss"] = round(float(part[-1]["val_loss"]), 3)
        told.append({"point": {"step": end}, "result": result})
    return told


def beams(found, scores, counted, rows):
    """BLEU, words and log-probability of each search, and its gain over the greedy one."""
    told = []
    for beam, alpha in sorted(SEARCHES):
        texts = found[beam, alpha]
        low, high, wins = paired_bootstrap(counted[beam, alpha], counted[1, 1.0], rows)
        result = {
            "bleu": round(bleu(*counted[beam, alpha]), 2),
            "words": round(sum(len(text.split()) for text in texts) / len(texts), 2),
            "log_probability": round(scores[beam, alpha], 2),
            "gain": [round(low, 2), round(high, 2)],
            "wins": wins,
        }
        told.append({"point": {"beam": beam, "alpha": alpha}, "result": result})
    return told


def baselines(english, wanted):
    """BLEU of what needs no translator."""
    shuffled = wanted.copy()
    random.Random(0).shuffle(shuffled)
    made = {
        "the English sentence itself": english,
        "another sentence's translation": shuffled,
    }
    return [
        {"point": {"text": name}, "result": {"bleu": bleu(*corpus_statistics(texts, wanted))}}
        for name, texts in made.items()
    ]


def samples(english, wanted, found, folder):
    """Some test sentences, drawn once and for all, their translations, and the pieces of these."""
    _, _, target = load_model(folder / "model.safetensors")
    lines = sorted(random.Random(0).sample(range(len(english)), SHOWN))
    return [
        {
            "point": {"line": line},
            "result": {
                "english": english[line],
                "wanted": wanted[line],
                "written": found[line],
                "pieces": [target.decode([piece]) for piece in target.encode(found[line])[:-1]],
            },
        }
        for line in lines
    ]


def occurrences(sentences):
    """In how many sentences each pattern stands."""
    return [
        {
            "point": {"pattern": name},
            "result": {
                "sentences": sum(
                    re.search(rf"(?<!\S)({pattern})(?!\S)", text) is not None for text in sentences
                ),
                "of": len(sentences),
            },
        }
        for name, pattern in PATTERNS.items()
    ]


def main(arguments=None):
    """Judge and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/multi30k"))
    parser.add_argument("--data", type=Path, default=multi30k.FOLDER)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    told = judge(options.folder, options.data)
    lines = {
        name: ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        for name, rows in told.items()
    }
    parts = ",\n".join(f"{json.dumps(name)}: [\n{text}\n]" for name, text in lines.items())
    head = json.dumps({"command": "python -m benchmarks.multi30k", "torch": torch.__version__})
    text = f'{head[:-1]}, "experiments": {{\n{parts}\n}}}}\n'
    json.loads(text)
    write_aside(path_of("multi30k"), text.encode())


if __name__ == "__main__":
    main()
