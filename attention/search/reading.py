"""Files of several kinds become passages; what cannot be read becomes a sentence."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from attention.provided.files import utf_8
from attention.search.passages import DATA, PIECES, Count, Passage, passages

# What is read in a folder, by how its name ends. A file that is named by itself may be called
# anything: it is read as text.
KINDS = {
    ".txt": "text",
    ".md": "markdown",
    ".py": "python",
    ".ipynb": "notebook",
}
LEFT_OUT = ("__pycache__", "node_modules", "site-packages")  # folders, and hidden ones
BIGGEST = 1 << 28  # bytes


class ReadingError(ValueError):
    """A file cannot be searched; str() is the end of a sentence that begins with its name."""


def kind_of(path: Path) -> str:
    """Which kind of file it is by its name: one of KINDS, text if it says nothing."""
    return KINDS.get(path.suffix.lower(), "text")


def files(places: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the files to search, each once, and what is wrong with it, or ''.

    places  files, and folders, in which every file of KINDS is meant, also further down
    """
    seen: set[Path] = set()
    for place in places:
        found: Iterable[tuple[Path, str]] = _inside(place) if place.is_dir() else [(place, "")]
        for path, problem in found:
            if (real := Path(os.path.abspath(path))) not in seen:
                seen.add(real)
                yield path, problem


def _inside(folder: Path) -> Iterator[tuple[Path, str]]:
    problems: list[tuple[Path, str]] = []
    count = 0

    def note(error: OSError) -> None:
        problems.append((Path(error.filename or folder), f"cannot be read: {error.strerror}"))

    for here, inner, names in os.walk(folder, onerror=note):
        inner[:] = sorted(one for one in inner if not one.startswith(".") and one not in LEFT_OUT)
        for name in sorted(names):
            if Path(name).suffix.lower() in KINDS and not name.startswith("."):
                count += 1
                yield Path(here, name), ""
    yield from problems
    if not count and not problems:
        yield folder, f"holds no file to search: their names end in {', '.join(KINDS)}"


def contents(path: Path) -> bytes:
    """The bytes of a file; ReadingError if there are none, or too many."""
    try:
        if not path.is_file():
            why = "is no file" if path.exists() else "is not there"
            raise ReadingError(why)
        if path.stat().st_size > BIGGEST:
            raise ReadingError(f"is left out: it has more than {BIGGEST >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise ReadingError(f"cannot be read: {error.strerror}") from None


def read(
    content: bytes, kind: str, pieces: int = PIECES, count: Count = len
) -> tuple[list[Passage], str]:
    """Cut the content of a file into passages; with a note for whoever searches, or ''.

    pieces, count  as `passages` takes them
    Raises ReadingError if there is nothing to read in it.
    """
    if not content.strip():
        return [], "is empty"
    text = _decoded(content)
    parts = list(_cells(text)) if kind == "notebook" else [(text, kind)]
    found = []
    for number, (text, part) in enumerate(parts, 1):
        for one in passages(text, part, pieces, count):
            found.append(replace(one, first=number, last=number) if kind == "notebook" else one)
    data = sum(len(DATA.findall(text)) for text, _ in parts)
    if data and found:
        return found, f"has {data} × 300 or more characters without a space: they are left out"
    return found, "" if found or kind == "notebook" and not data else "holds no words, only data"


def _decoded(content: bytes) -> str:
    """A text in UTF-8; ReadingError if it is none."""
    if b"\0" in content:
        raise ReadingError("is left out: it is no text in UTF-8")
    try:
        return utf_8(content).replace("\r\n", "\n").replace("\r", "\n")
    except ValueError as error:
        raise ReadingError(f"is left out: it is not UTF-8: {error}") from None


def _cells(text: str) -> Iterator[tuple[str, str]]:
    """The cells of a notebook, without what they print: what stands in each, and its kind."""
    import nbformat

    try:
        cells = nbformat.reads(text, as_version=4).cells
        sources = [(str(cell.source), cell.cell_type) for cell in cells]
    except Exception:  # whatever nbformat meets in what somebody else has written
        raise ReadingError("is left out: it is no notebook, or a broken one") from None
    for source, cell_type in sources:
        # JSON may hold halves of characters, which UTF-8 does not.
        whole = source.encode("utf-8", "replace").decode()
        yield whole, "python" if cell_type == "code" else "markdown"
