"""Files of several kinds become passages; what cannot be read becomes a sentence."""

import io
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from attention.search.passages import DATA, LONGEST_LINE, PIECES, Passage, passages

# What is read in a folder, by how its name ends. A file that is named by itself may be called
# anything: it is read as text.
KINDS = {
    **dict.fromkeys((".txt", ".text"), "text"),
    **dict.fromkeys((".md", ".markdown"), "markdown"),
    ".rst": "rst",
    ".py": "python",
    ".ipynb": "notebook",
    ".pdf": "pdf",
}
UNITS = {"notebook": "cell", "pdf": "page"}  # what a place counts; else lines
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


def read(content: bytes, kind: str, pieces: int = PIECES) -> tuple[list[Passage], str]:
    """Cut the content of a file into passages; with a note for whoever searches, or ''.

    Raises ReadingError if there is nothing to read in it.
    """
    if not content.strip():
        return [], "is empty"
    if kind == "pdf":
        found, note = list(_of_pdf(content, pieces)), ""
        return found, note if found else "has no text: it may be a scan"
    text, note = _decoded(content), ""
    if kind == "notebook":
        return list(_of_notebook(text, pieces)), note
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = DATA.sub("…", text).split("\n")
    long = [number for number, line in enumerate(lines, 1) if len(line) > LONGEST_LINE]
    if long:
        cut = f"has more than {LONGEST_LINE:,} characters in line {long[0]}"
        cut += f" and {len(long) - 1} more" if long[1:] else ""
        note = f"{cut}: only the first of them are searched"
    found = list(passages(text, kind, pieces))
    return found, note if found or note else "holds no words, only data"


def _decoded(content: bytes) -> str:
    """A text in UTF-8; ReadingError if it is none."""
    if b"\0" in content:
        raise ReadingError("is left out: it is no text in UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReadingError(
            f"is left out: it is not UTF-8 at byte {error.start + 1}; convert it, for instance "
            "with iconv -f LATIN1 -t UTF-8"
        ) from None


def _of_notebook(text: str, pieces: int) -> Iterator[Passage]:
    """The passages of a notebook's cells, without what they print; places are cells, from 1."""
    import nbformat

    try:
        cells = nbformat.reads(text, as_version=4).cells
        sources = [(str(cell.source), cell.cell_type) for cell in cells]
    except Exception:  # whatever nbformat meets in what somebody else has written
        raise ReadingError("is left out: it is no notebook, or a broken one") from None
    for number, (source, cell_type) in enumerate(sources, 1):
        kind = "python" if cell_type == "code" else "markdown"
        for one in passages(_whole(source), kind, pieces):
            yield Passage(number, number, one.text)


def _of_pdf(content: bytes, pieces: int) -> Iterator[Passage]:
    """The passages of a PDF; places are pages, from 1."""
    import pypdf
    import pypdf.errors

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of what it mends
    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise ReadingError("is left out: it is encrypted")
        texts = [page.extract_text() for page in reader.pages]
    except ReadingError:
        raise
    except pypdf.errors.DependencyError:  # AES, even without a password, is for `cryptography`
        raise ReadingError("is left out: it is encrypted") from None
    except Exception:  # a broken file raises what it likes
        raise ReadingError("is left out: it is no PDF, or a broken one") from None
    for number, text in enumerate(texts, 1):
        for one in passages(_whole(text), pieces=pieces):
            yield Passage(number, number, one.text)


def _whole(text: str) -> str:
    """A text without halves of characters, which JSON and PDFs may hold and UTF-8 does not."""
    return text.encode("utf-8", "replace").decode()
