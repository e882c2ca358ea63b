"""How well `python -m attention.search` finds, beside a search for words: ``make bench-search``.

    python -m benchmarks.search [--small]

The texts are the docstrings of 60 modules of Python's own library, as this machine has them. The
ten questions, and which functions answer them, were written down before anything was searched. For
words, the same passages are ranked by BM25.
"""

import argparse
import importlib
import inspect
import sys
import tempfile
from pathlib import Path

import torch
from sklearn.feature_extraction.text import CountVectorizer

from attention.published_model import search
from attention.search import index as indexes
from attention.search import model as models

MODULES = (
    *("abc", "argparse", "array", "ast", "asyncio", "base64", "bisect", "calendar", "cmath"),
    *("collections", "configparser", "contextlib", "copy", "csv", "dataclasses", "datetime"),
    *("decimal", "difflib", "email", "enum", "fileinput", "fnmatch", "fractions", "functools"),
    *("getpass", "glob", "gzip", "hashlib", "heapq", "html", "inspect", "io", "itertools", "json"),
    *("logging", "math", "mimetypes", "operator", "os", "pathlib", "pickle", "pprint", "queue"),
    *("random", "re", "sched", "secrets", "shutil", "signal", "socket", "sqlite3", "statistics"),
    *("string", "subprocess", "tempfile", "textwrap", "threading", "time", "unittest", "zipfile"),
)
QUESTIONS = {
    "How do I copy a folder with everything in it?": ("shutil.copytree",),
    "break a long paragraph into lines of at most 70 characters": (
        *("textwrap.wrap", "textwrap.fill"),
    ),
    "What is the middle value of a list of numbers?": (
        *("statistics.median", "statistics.median_low", "statistics.median_high"),
    ),
    "remember the results of a function so that they are not computed twice": (
        *("functools.lru_cache", "functools.cache", "functools.cached_property"),
    ),
    "Where does a new item belong in a list that is sorted?": (
        *("bisect.bisect", "bisect.bisect_left", "bisect.bisect_right"),
        *("bisect.insort", "bisect.insort_left", "bisect.insort_right"),
    ),
    "start another program and read what it prints": (
        *("subprocess.run", "subprocess.check_output", "subprocess.getoutput"),
        *("subprocess.getstatusoutput", "subprocess.Popen", "subprocess.Popen.communicate"),
    ),
    "all ways to arrange the letters of a word": ("itertools.permutations",),
    "How do I wait until a thread has finished?": ("threading.Thread.join",),
    "Which words are spelled almost like this one?": ("difflib.get_close_matches",),
    "a temporary directory that is deleted afterwards": ("tempfile.TemporaryDirectory",),
}
K1, B = 1.5, 0.75  # of BM25, as usual


def sections(name):
    """Yield the name and the docstring of a module, and of all that it defines for others."""
    module = importlib.import_module(name)
    yield name, inspect.getdoc(module) or ""
    public = getattr(module, "__all__", [key for key in vars(module) if not key.startswith("_")])
    for key in sorted(public):
        value = getattr(module, key, None)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        yield f"{name}.{key}", inspect.getdoc(value) or ""
        for inner, method in sorted(vars(value).items()) if inspect.isclass(value) else ():
            if not inner.startswith("_") and inspect.isroutine(method):
                yield f"{name}.{key}.{inner}", inspect.getdoc(method) or ""


def write(folder):
    """Write a file of Markdown for each module: a heading with its name above each docstring."""
    for name in MODULES:
        texts = [f"## {one}\n\n{text}\n" for one, text in sections(name) if text]
        (folder / f"{name}.md").write_text("\n".join(texts), encoding="utf-8")


def named(found):
    """The name of the docstring in which each passage of an index stands."""
    for file, passage in found.rows:
        lines = Path(file.path).read_text(encoding="utf-8").split("\n")[: passage.first]
        yield next(line[3:] for line in reversed(lines) if line.startswith("## "))


def bm25(questions, texts):
    """Scores (Q, N) of texts by the words that they share with questions."""
    counter = CountVectorizer(stop_words="english")
    counts = counter.fit_transform(texts).astype(float)  # (N, words)
    share = torch.tensor(counts.sum(axis=1)).float()  # (N, 1)
    share = share / share.mean()
    dense = torch.tensor(counter.transform(questions).toarray() > 0).float()  # (Q, words)
    held = torch.tensor(counts.getnnz(axis=0)).float()
    rare = torch.log1p((len(texts) - held + 0.5) / (held + 0.5))
    scores = []
    for row in dense:
        chosen = row.nonzero().flatten()
        often = torch.tensor(counts[:, chosen.numpy()].toarray()).float()  # (N, chosen)
        weight = often * (K1 + 1) / (often + K1 * (1 - B + B * share))
        scores.append(weight @ rare[chosen])
    return torch.stack(scores)


def rank(order, names, right):
    """At which place, from 1, the first passage of a right name comes."""
    return next(place for place, row in enumerate(order, 1) if names[row] in right)


def quality(small):
    """Print what is found first for each question, and where the first right passage stands."""
    name, file, _ = models.open_file(small=small)
    model = models.make(name, file)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        found = indexes.renewed([Path(folder)], Path(folder) / "index", model, print)
        names = list(named(found))
    texts = [passage.text for _, passage in found.rows]
    asked = list(QUESTIONS)
    _, ours = search(model.vectors(asked), found.vectors, len(names))
    words = bm25(asked, texts).argsort(dim=1, descending=True, stable=True)
    version = sys.version.split()[0]
    print(f"Python {version}, {len(MODULES)} modules, {len(names)} passages; {name}\n")
    print("| question | found first | right at | words find first | right at |")
    print("|---|---|---|---|---|")
    firsts = []
    for question, *orders in zip(asked, ours.tolist(), words.tolist(), strict=True):
        ranks = [rank(order, names, QUESTIONS[question]) for order in orders]
        firsts.append(ranks)
        cells = [f"`{names[o[0]]}` | {r}" for o, r in zip(orders, ranks, strict=True)]
        print(f"| {question} | {' | '.join(cells)} |")
    for whose, ranks in zip((name, "words"), zip(*firsts, strict=True), strict=True):
        first, five = (sum(one <= limit for one in ranks) for limit in (1, 5))
        print(f"\n{whose}: right first {first} of {len(ranks)}, among the first five {five}")


def main(arguments=None):
    """Search, and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="with the small model")
    options = parser.parse_args(arguments)
    quality(options.small)
    return 0


if __name__ == "__main__":
    sys.exit(main())
