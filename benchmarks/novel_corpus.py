"""The novels of lesson 15, taken out of Debian's package r-cran-janeaustenr.

    apt-get download r-cran-janeaustenr
    python -m benchmarks.novel_corpus r-cran-janeaustenr_1.0.0-1_all.deb [--to FILE]

The package holds the texts of Project Gutenberg, line by line, as R keeps data: blocks of zlib with
strings in them. Lines of a paragraph are joined, headings and underscores left out.
"""

import argparse
import gzip
import hashlib
import json
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from attention.provided.data import novels
from autograder.files import write_aside

INSIDE = "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"
STRING = b"\x00\x04\x00\x09"  # R's mark of a string in ASCII; its length stands behind it
HEADING = re.compile(r"(VOLUME|CHAPTER|Chapter) *[IVXL\d]+\.?|(THE END|FINIS|Finis)\.?")


def blocks(packed):
    """The parts of a file of R's data, unpacked: each has its length in front."""
    while packed:
        length = struct.unpack(">I", packed[:4])[0]
        part = zlib.decompressobj()
        yield part.decompress(packed[4:])
        packed = part.unused_data
        assert part.eof, f"a part of {length} bytes is not whole"


def strings(block):
    """The strings of a block, in order."""
    place = block.find(STRING)
    while place >= 0:
        start = place + 8
        end = start + struct.unpack(">i", block[place + 4 : start])[0]
        yield block[start:end].decode()
        place = block.find(STRING, end)


def paragraphs(lines):
    """The paragraphs of a novel from its first chapter on, without notes behind its end."""
    whole = [" ".join(part.split()) for part in re.split(r"\n{2,}", "\n".join(lines))]
    first = next(i for i, part in enumerate(whole) if HEADING.fullmatch(part) and part[-1] in "1I")
    note = next((i for i, part in enumerate(whole) if part.startswith("A NOTE ON THE TEXT")), None)
    kept = [part.replace("_", "") for part in whole[first:note]]
    return [part for part in kept if part.strip("* ") and not HEADING.fullmatch(part)]


def main(arguments=None):
    """Write the file and say what it holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", type=Path)
    parser.add_argument("--to", type=Path, default=novels.PATH)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg", "-x", options.package, folder], check=True)
        packed = (Path(folder) / INSIDE).read_bytes()
    found = {}
    for block in blocks(packed):
        title, *lines = strings(block)
        found[title.title().replace("And", "and")] = "\n".join(paragraphs(lines))
    content = json.dumps({title: found[title] for title in novels.TITLES}).encode()
    write_aside(options.to, gzip.compress(content, mtime=0))
    print({title: len(found[title]) for title in novels.TITLES})
    print(f"{options.to.stat().st_size} bytes, {hashlib.sha256(content).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
