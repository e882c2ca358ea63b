"""Search one's own notes: `python -m attention.search "question" FILES…`.

Texts, Markdown, reStructuredText, Python, notebooks and PDFs are cut into passages. A published
Transformer, in the layers of the lessons, turns each passage and the question into a vector, and
those passages are shown whose vectors are nearest to the question's. Vectors are kept in an index:
the next search in the same files only reads what has changed.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attention import published_model
from attention.provided.models.bert import minilm
from attention.search import index as indexes
from attention.search import mine, reading
from attention.search import model as models
from attention.search.index import File, Index
from attention.search.model import Model
from attention.search.passages import Passage
from attention.train.command import status_of
from attention.train.pieces import collected
from attention.train.runs.settings import Parser
from autograder.terminal_output import printable, replace_what_cannot_be_shown

PROGRAM = "python -m attention.search"
NOTHING_FOUND = 3
STOPPED = "stopped; what was read so far is kept in the index"
EXCERPT = 300  # characters of a passage that are shown
Found = tuple[float, list[int]]  # the cosine of a text, and the rows of an index that have it


def parser() -> Parser:
    """The argument parser of the command."""
    made = Parser(
        prog=PROGRAM,
        description="Search texts, Markdown, reStructuredText, Python, notebooks and PDFs for what "
        "answers a question. Exit status: 0 if passages are shown, 1 if something is wrong, "
        f"{NOTHING_FOUND} if the files hold no passage.",
    )
    made.add_argument("question", help="what you want to know, or words of it")
    made.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a file, or a folder")
    made.add_argument("--top", type=int, default=5, metavar="K", help="passages to show (5)")
    made.add_argument("--json", action="store_true", help="print a list of passages as JSON")
    made.add_argument(
        "--index", type=Path, metavar="INDEX", help="keep the index here (default: .cache/search)"
    )
    made.add_argument(
        "--small", action="store_true", help="search with the small model that the course contains"
    )
    made.add_argument(
        "--data", type=Path, default=minilm.FOLDER, metavar="PATH", help="folder of the model"
    )
    made.add_argument(
        "--mine",
        type=Path,
        nargs="?",
        const=Path(collected.FOLDER),
        metavar="FOLDER",
        help="search with your own pieces, from `autograder collect` (default folder: mine)",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Search; returns the exit status."""
    replace_what_cannot_be_shown()
    options = parser().parse_args(arguments)
    try:
        return status_of(PROGRAM, run, options, STOPPED, "search again")
    finally:
        collected.take_back()


def run(options: argparse.Namespace) -> int:
    """Search with parsed options; returns the exit status."""
    if not options.question.strip():
        raise ValueError('there is no question: put one in quotes before the files, as "who am I?"')
    if options.top < 1:
        raise ValueError(f"--top must be at least 1, not {options.top}")
    if options.files and not any(place.exists() for place in options.files):
        raise ValueError(f"there is no {' and no '.join(map(str, options.files))}")
    if options.index and options.index.suffix.lower() in reading.KINDS:
        raise ValueError(f"--index {options.index} would overwrite a text: give it another ending")
    model = open_model(options)
    path = options.index or indexes.default_path(options.files, model)
    found = indexes.renewed(options.files, path, model, note, progress)
    rows = nearest(options.question, found, model, options.top)
    if options.json:
        shown = json.dumps(list(described(rows, found)), indent=1, ensure_ascii=False)
        print(printable(shown))
    elif rows:
        show(rows, found)
    else:
        note("no passage was found to search")
    return 0 if rows else NOTHING_FOUND


def open_model(options: argparse.Namespace) -> Model:
    """The model that searches: the library's, or one of the learner's pieces."""
    collected.take_back()
    name, file, said = models.open_file(options.data, options.small)
    if said:
        note(said)
    if options.mine is not None:
        print(f"trying your pieces in {options.mine} …", file=sys.stderr, flush=True)
        return mine.use(options.mine, name, file)
    return models.make(name, file)


def note(sentence: str) -> None:
    """Say something on what is searched, or on how."""
    print(printable(sentence), file=sys.stderr, flush=True)


def progress(sentence: str) -> None:
    """Say how far it is, to a person."""
    if sys.stderr.isatty():
        note(sentence)


def nearest(question: str, found: Index, model: Model, top: int) -> list[Found]:
    """The passages that are nearest to a question, the nearest first.

    Returns the cosine of each text, and the rows in which it stands, of equal ones all.
    """
    places: dict[str, list[int]] = {}
    for row, (_, one) in enumerate(found.rows):
        places.setdefault(" ".join(one.text.split()), []).append(row)
    if not places:
        return []
    if (pieces := model.count(question)) > (most := model.max_length - 2):
        note(f"the question has {pieces} word pieces: only the first {most} of them are read")
    asked, every = model.vectors([question]), [*places.values()]  # (1, d_model)
    vectors = found.vectors[[rows[0] for rows in every]]
    cosines, best = published_model.search(asked, vectors, min(top, len(every)))  # (1, k) each
    rows = [every[place] for place in best[0].tolist()]
    return list(zip(cosines[0].tolist(), rows, strict=True))


def described(rows: Iterable[Found], found: Index) -> Iterable[dict[str, Any]]:
    """Passages as dicts; a place has a unit: line, cell or page; and the same text has others."""
    for cosine, (row, *others) in rows:
        also = [place_of(*found.rows[other]) for other in others]
        text = found.rows[row][1].text
        yield {**place_of(*found.rows[row]), "cosine": round(cosine, 4), "also": also, "text": text}


def place_of(file: File, one: Passage) -> dict[str, Any]:
    """Where a passage is."""
    unit = reading.UNITS.get(reading.kind_of(Path(file.path)), "line")
    return {"file": shown_path(file.path), "unit": unit, "first": one.first, "last": one.last}


def shown_path(path: str) -> str:
    """A path as it is best read: from the folder where one is, if the file is in it."""
    inside = os.path.relpath(path) if os.path.splitdrive(path)[0] == "" else path
    return path if inside.startswith(os.pardir) else inside


def show(rows: Iterable[Found], found: Index) -> None:
    """Print passages for people."""
    for rank, one in enumerate(described(rows, found), 1):
        first, last, unit = one["first"], one["last"], one["unit"]
        place = f"{unit} {first}" if first == last else f"{unit}s {first} to {last}"
        more = f" · the same in {len(one['also'])} more" if one["also"] else ""
        print(printable(f"{rank}. {one['file']}, {place} · cosine {one['cosine']:.2f}{more}"))
        text = " ".join(one["text"].split())
        print(printable(f"   {text if len(text) <= EXCERPT else text[:EXCERPT] + ' …'}"))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
