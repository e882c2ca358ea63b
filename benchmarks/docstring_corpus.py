"""Make the docstring corpus of lesson 15 anew, ``data/docstrings.json.gz``.

    python -m benchmarks.docstring_corpus [--to FILE]

It reads the source of the running Python's standard library, of numpy and of PyTorch, and imports
none of it. The stored file is of Python 3.11.7, numpy 2.4.6 and PyTorch 2.13.0; other versions give
another corpus. Takes about a minute.
"""

import argparse
import ast
import gzip
import hashlib
import importlib.util
import json
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from attention.provided.data import docstrings
from attention.provided.data.docstrings import Docstring
from autograder.files import write_aside

# Tests, and what was copied from elsewhere under a licence of its own.
LEFT_OUT = {
    *("_vendor", "_vendored", "ensurepip", "idlelib", "lib2to3", "site-packages", "test"),
    *("testing", "tests", "third_party", "turtledemo", "unification"),
}
OWN_LICENCE = re.compile(r"copyright|licensed under|spdx", re.IGNORECASE)
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def folder(package):
    """Where the source of a package stands; "python" is the standard library."""
    if package == "python":
        return Path(sysconfig.get_paths()["stdlib"])
    return Path(importlib.util.find_spec(package).origin).parent


def documented(package) -> Iterator[tuple[str, str, str, str]]:
    """(module, name, summary, body) of all that is kept, in the order of the files.

    Kept is what has a first line of 3 to 20 words, an empty line, and then at least 10 words, all
    in ASCII. Files that name a copyright or licence of their own are left out.
    """
    root = folder(package)
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).parts):
        place = path.relative_to(root)
        if LEFT_OUT & set(place.parts):
            continue
        source = path.read_text(encoding="utf-8", errors="replace")
        if OWN_LICENCE.search(source):
            continue
        module = "/".join((package, *place.with_suffix("").parts))
        for node in ast.walk(ast.parse(source)):
            text = isinstance(node, DOCUMENTED) and ast.get_docstring(node)
            if not text or not text.isascii():
                continue
            line, *rest = text.strip().split("\n")
            body = " ".join(rest).split()
            if 3 <= len(line.split()) <= 20 and len(body) >= 10 and not rest[0].strip():
                yield (
                    module,
                    node.name,
                    " ".join(line.split()),
                    " ".join(body[: docstrings.WORDS]),
                )


def corpus(packages=("python", "numpy", "torch")):
    """The rows of the file: no summary with the same body comes twice."""
    found = {}
    for package in packages:
        for module, name, summary, body in documented(package):
            found.setdefault((summary, body), Docstring(module, name, summary, body, 0))
    rows = list(found.values())
    numbers = docstrings.components(len(rows), docstrings.twins(rows))
    return [row._replace(component=n) for row, n in zip(rows, numbers, strict=True)]


def main(arguments=None):
    """Make the file, and print its fingerprint."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=docstrings.PATH)
    options = parser.parse_args(arguments)
    rows = corpus()
    content = ("[" + ",\n".join(map(json.dumps, rows)) + "]\n").encode()
    write_aside(options.to, gzip.compress(content, 9, mtime=0))
    print(f"{len(rows)} rows, {len({row.component for row in rows})} components")
    print(f"{options.to.stat().st_size} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
