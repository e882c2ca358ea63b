"""``autograder data``: fetch the corpora that the course does not contain."""

import argparse
import functools
from pathlib import Path
from typing import Any

from attention.train.corpora import multi30k
from attention.train.corpora.download import DownloadError, readable
from autograder import CourseError

DESCRIPTION = (
    "Fetch a corpus of real sentences that is not part of the course, or list what there is. "
    "Nothing needs this except the lessons that say so."
)
ORIGIN = """\
Multi30k: English descriptions of photographs and their German translations (Elliott, Frank,
Sima'an and Specia 2016), from https://github.com/multi30k/dataset.
The texts derive from Flickr30k. They are for non-commercial research and education, and not part
of this course: you fetch them on these terms."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    folder: dict[str, Any] = {
        "default": multi30k.FOLDER,
        "type": lambda text: Path(text).expanduser(),
        "metavar": "PATH",
        "help": "where the texts are (default: .cache/multi30k in the course)",
    }
    fetch = what.add_parser(
        "fetch",
        help="download a corpus and verify it",
        description="Download the texts that are not there yet, and verify the SHA-256 of each. "
        "Exit status 1, and a sentence, if that fails.",
    )
    fetch.add_argument("corpus", choices=["multi30k"], help="multi30k: English and German, 8 MB")
    fetch.add_argument(
        "--mirror",
        metavar="URL",
        help="take the files from this address instead: http, https, or file:/// for a folder",
    )
    fetch.add_argument("--data", **folder)
    listing = what.add_parser(
        "list",
        help="say which texts there are, and which are here and whole",
        description="List the texts of each corpus, their sizes, and whether they are here: "
        "whole, missing, altered or unreadable.",
    )
    listing.add_argument("--data", **folder)


def run(options: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    if options.action == "list":
        _list(options.data)
        return 0
    say = functools.partial(print, flush=True)
    say(f"{ORIGIN}\n")
    try:
        multi30k.fetch(options.data, options.mirror, say=say)
    except DownloadError as error:
        raise CourseError(str(error)) from error
    say(f"all {len(multi30k.FILES)} texts are in {options.data}")
    return 0


def _list(folder: Path) -> None:
    states = {name: multi30k.state(name, folder) for name in multi30k.FILES}
    print(f"multi30k, in {folder}:")
    for name, found in states.items():
        print(f"  {name:33}{readable(multi30k.FILES[name].size):>9} bytes  {found}")
    if set(states.values()) != {"whole"}:
        print(f"fetch what is not whole with: {multi30k.command(folder)}")
