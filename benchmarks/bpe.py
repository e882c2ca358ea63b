"""How fast lesson 08 learns 10 000 merges: ``make bench-bpe``, or with ``CORPUS=folder``.

The corpus is given as files, or as a folder whose train.*.gz or train.* are taken, on the command
line or in the variable CORPUS; without it, the docstrings of installed packages are used. The
course's trainers, the lesson's and the fast one of attention.train.corpora.bpe, and that of the
tokenizers package read the same lines on one core, each in a process of its own. Time is processor
time, to which other programs that run beside add little. Then the corpus is encoded as the training
command does it. The last line is ``ratio: R``, the time of the fast trainer over the package's.
"""

import argparse
import gzip
import json
import multiprocessing
import os
import resource
import sys
import time
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = "1"  # before tokenizers is imported
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers  # noqa: E402

# The words of the course, in the terms of another engine: there \w holds combining marks as well.
PATTERN = r" ?[\p{L}\p{Nl}\p{No}_]+| ?\p{Nd}+| ?[^\s\p{L}\p{N}_]+|\s+(?!\S)|\s+"


def byte_names():
    """The character by which the tokenizers package shows each byte, in the order of the bytes."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte if byte in shown else 256 + hidden.index(byte)) for byte in range(256)]


def byte_level(cut=True):
    """What cuts a text into words and turns them to bytes; without ``cut`` it is one word."""
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if not cut:
        return to_bytes
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERN), "isolated"), to_bytes])


def package_merges(texts, n_merges, cut=True):
    """Train the tokenizers package; return its merges as pairs of the course's ids."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = byte_level(cut)
    # Named first, the bytes get the ids 0 to 255: on a tie the smallest pair of ids is merged.
    settings = {"special_tokens": byte_names(), "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=256 + n_merges, **settings)
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return [(model["vocab"][left], model["vocab"][right]) for left, right in model["merges"]]


def lesson_merges(texts, n_merges):
    """Train with the code of lesson 08."""
    from attention.tokens_and_positions import count_words, train_bpe

    return train_bpe(*count_words(texts), n_merges)


def fast_merges(texts, n_merges):
    """Train with the fast code, which gives the same merges."""
    from attention.tokens_and_positions import count_words
    from attention.train.corpora.bpe import train_bpe

    return train_bpe(*count_words(texts), n_merges)


def encoded(texts, merges):
    """Encode the texts as the training command does: how many ids, and seconds of processor."""
    from attention.tokens_and_positions import split_words
    from attention.train.corpora.token_ids import Pieces

    begin, pieces = time.process_time(), Pieces(merges)
    pieces.learn(word for text in texts for word in split_words(text))
    count = sum(len(pieces.encode(text)) for text in texts)
    return count, time.process_time() - begin


def read(paths):
    """The lines of the corpus, and where they come from."""
    files = []
    for path in map(Path, paths):
        inside = sorted(path.glob("train.??.gz")) or sorted(path.glob("train.??"))
        files += inside if path.is_dir() else [path]
    if not files:
        return docstring_lines(), "docstrings of installed packages"
    lines = []
    for path in files:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        lines += data.decode("utf-8").splitlines()
    return lines, ", ".join(path.name for path in files)


def docstring_lines():
    """Text that every machine has."""
    import numpy
    import torch

    from attention.tokens_and_positions import docstrings

    modules = [torch, torch.nn, torch.nn.functional, torch.linalg, numpy, numpy.linalg]
    modules += [argparse, gzip, json, multiprocessing, os]
    return [line for text in docstrings(*modules) for line in text.splitlines()]


def measured(train, lines, n_merges):
    """Run in a process of its own: merges, seconds, and the peak of memory in MiB."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    start = time.process_time()
    merges = train(lines, n_merges)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB; bytes on a Mac
    return merges, seconds, peak / (2**20 if sys.platform == "darwin" else 2**10)


TRAINERS = {
    "lesson 08": lesson_merges,
    "attention.train.corpora.bpe": fast_merges,
    "tokenizers": package_merges,
}


def main():
    """Train all and print the comparison; exit status 1 if their merges differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", nargs="*", default=os.environ.get("CORPUS", "").split())
    parser.add_argument("--merges", type=int, default=10_000)
    options = parser.parse_args()
    lines, source = read(options.corpus)
    characters = sum(map(len, lines))
    print(f"corpus: {source}; {len(lines):,} lines, {characters:,} characters", flush=True)
    results = []
    for name, train in TRAINERS.items():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            merges, seconds, peak = pool.apply(measured, (train, lines, options.merges))
        print(f"{name:<20} {len(merges):6,} merges  {seconds:6.2f} s  {peak:6.0f} MiB", flush=True)
        results.append((merges, seconds))
    (lesson, slow), (ours, quick), (theirs, fast) = results
    count, seconds = encoded(lines, ours)
    print(f"encoded: {count:,} ids in {seconds:.2f} s, {count / seconds:,.0f} ids/s")
    same = lesson == ours == theirs
    print(f"identical merges: {'yes' if same else 'no'}")
    print(f"ratio of the lesson: {slow / fast:.2f}")
    print(f"ratio: {quick / fast:.2f}")
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
