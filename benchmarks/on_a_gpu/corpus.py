"""A small corpus in Multi30k's form, and the training command on it: for a rehearsal.

    python -m benchmarks.on_a_gpu.corpus make FOLDER [--of MULTI30K]
    python -m benchmarks.on_a_gpu.corpus train FOLDER [options of the training command]

The training command reads Multi30k only if every text has the SHA-256 of the original. Here it
takes the texts of a folder for Multi30k: its first lines or, without a folder to take them from,
made-up sentences.
"""

import argparse
import hashlib
import sys
from pathlib import Path

from attention.train import __main__ as train
from attention.train.corpora import multi30k

LINES = {"train": 300, "val": 20, "test_2016_flickr": 20}
LANGUAGES = ("en", "de")
WORDS = {
    "en": ("a dog", "two men", "a girl", "runs", "sleeps", "eats", "outside", "in the snow"),
    "de": ("ein hund", "zwei männer", "ein mädchen", "läuft", "schläft", "isst", "draußen")
    + ("im schnee",),
}


def sentences(language, n):
    """Made-up sentences in a language, as many as asked for; line i is line i of the other's."""
    words = WORDS[language]
    return [f"{words[i % 3]} {words[3 + i // 3 % 3]} {words[6 + i // 9 % 2]} ." for i in range(n)]


def make(folder, origin=None):
    """Write the texts that a training reads: of Multi30k in a folder, or made up."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, n in LINES.items():
        for language in LANGUAGES:
            name = f"{split}.lc.norm.tok.{language}"
            if origin is None:
                lines = sentences(language, n)
            else:
                lines = multi30k.load(split, language, folder=origin)[:n]
            (folder / name).write_bytes("".join(f"{line}\n" for line in lines).encode())


def manifest(folder):
    """The texts in the folder, as if they were those of Multi30k."""
    files = {}
    for path in folder.glob("*.tok.*"):
        content = path.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        files[path.name] = multi30k.File(path.name, path.name, len(content), sha256)
    return files


def main(arguments=None):
    """Make a corpus, or train on it; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("make", "train"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--of", type=Path, help="folder of Multi30k (default: made-up sentences)")
    options, more = parser.parse_known_args(arguments)
    if options.what == "train":
        multi30k.FILES = manifest(options.folder)
        return train.main(["multi30k", "--data", str(options.folder), *more])
    try:
        make(options.folder, options.of)
    except (multi30k.CorpusError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
