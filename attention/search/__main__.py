"""Search one's own notes: `python -m attention.search "question" FILES…`.

Texts, Markdown, Python and notebooks are cut into passages. A published Transformer, in the layers
of the lessons, turns each passage and the question into a vector, and those passages are shown
whose vectors are nearest to the question's. Vectors are kept in an index: the next search in the
same files only makes those of new passages.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from attention import published_model
from attention.provided.models.bert import minilm
from attention.search import index, mine, reading
from attention.search import model as models
from attention.search.model import Model
from attention.search.passages import Passage
from attention.train.command import status_of
from attention.train.pieces import collected
from attention.train.runs.settings import Parser
from autograder.terminal_output import printable, replace_what_cannot_be_shown

PROGRAM = "python -m attention.search"
STOPPED = "stopped; what was read so far is kept in the index"
EXCERPT = 300  # characters of a passage that are shown
Place = tuple[Path, Passage]


def parser() -> Parser:
    """The argument parser of the command."""
    made = Parser(
        prog=PROGRAM,
        description="Search texts, Markdown, Python and notebooks for what answers a question.",
    )
    made.add_argument("question", help="what you want to know, or words of it")
    made.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a file, or a folder")
    made.add_argument("--top", type=int, default=5, metavar="K", help="passages to show (5)")
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
    model = open_model(options)
    found: dict[str, list[Place]] = {}  # of equal passages all
    for path, one in passages(options.files, model):
        found.setdefault(" ".join(one.text.split()), []).append((path, one))
    if not found:
        raise ValueError("no passage was found to search")
    if (pieces := model.count(options.question)) > (most := model.max_length - 2):
        note(f"the question has {pieces} word pieces: only the first {most} of them are read")
    asked = model.vectors([options.question])  # (1, d_model)
    texts, places = [*found], [*found.values()]
    made = index.vectors(texts, index.path_of(options.files, model), model, note, progress)
    cosines, best = published_model.search(asked, made, min(options.top, len(texts)))  # (1, k) each
    for rank, (cosine, row) in enumerate(zip(cosines[0].tolist(), best[0].tolist(), strict=True)):
        show(rank + 1, cosine, places[row])
    return 0


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


def passages(files: Sequence[Path], model: Model) -> Iterator[Place]:
    """The passages of files and folders; whatever is wrong with one is said."""
    for path, problem in reading.files(files):
        try:
            if problem:
                raise reading.ReadingError(problem)
            content, kind = reading.contents(path), reading.kind_of(path)
            found, said = reading.read(content, kind, model.pieces, model.count)
        except reading.ReadingError as error:
            found, said = [], str(error)
        if said:
            note(f"{path} {said}")
        yield from ((path, one) for one in found)


def show(rank: int, cosine: float, places: Sequence[Place]) -> None:
    """Print a passage: the first place where it stands, how near it is, and its beginning."""
    (path, one), *others = places
    unit = "cell" if reading.kind_of(path) == "notebook" else "line"
    place = f"{unit} {one.first}" if one.first == one.last else f"{unit}s {one.first} to {one.last}"
    more = f" · the same in {len(others)} more" if others else ""
    print(printable(f"{rank}. {shown_path(path)}, {place} · cosine {cosine:.2f}{more}"))
    text = " ".join(one.text.split())
    print(printable(f"   {text if len(text) <= EXCERPT else text[:EXCERPT] + ' …'}"), flush=True)


def shown_path(path: Path) -> str:
    """A path as it is best read: from the folder where one is, if the file is in it."""
    inside = os.path.relpath(path) if path.drive == "" else str(path)
    return str(path) if inside.startswith(os.pardir) else inside


if __name__ == "__main__":
    sys.exit(main())
