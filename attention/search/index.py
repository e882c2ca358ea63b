"""The index: vectors and passages of files, kept, and renewed where a file has changed."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention.provided.files import ROOT
from attention.provided.models import model_file
from attention.provided.models.model_file import ModelFileError
from attention.search import passages, reading
from attention.search.model import Model
from attention.search.reading import ReadingError

FOLDER = ROOT / ".cache" / "search"
VERSION = 1  # of how files are cut: a change here makes every index anew
PART = 512  # passages that become vectors before the next are read
Say = Callable[[str], None]


@dataclass
class File:
    """A file that was read: what it was, and how many passages it has; note as of `reading`."""

    path: str
    size: int
    mtime: int  # nanoseconds
    sha256: str
    kind: str
    count: int
    note: str = ""


@dataclass
class Table:
    """Passages: vectors (N, d), first and last place (N, 2), texts one behind the other.

    text  uint8, the UTF-8 of all texts
    ends  (N,)  where each text ends in it
    """

    vectors: Tensor
    places: Tensor
    text: Tensor
    ends: Tensor

    def __len__(self) -> int:
        return len(self.ends)

    def rows(self, begin: int, end: int) -> "Table":
        """The passages from begin on, and before end."""
        start = int(self.ends[begin - 1]) if begin else 0
        stop = int(self.ends[end - 1]) if end else 0
        ends = self.ends[begin:end] - start
        return Table(self.vectors[begin:end], self.places[begin:end], self.text[start:stop], ends)

    def text_of(self, row: int) -> str:
        """The text of one passage."""
        start = int(self.ends[row - 1]) if row else 0
        return bytes(self.text[start : int(self.ends[row])].tolist()).decode()


def table(found: Sequence[passages.Passage], vectors: Tensor) -> Table:
    """Put passages and their vectors into a table."""
    texts = [one.text.encode() for one in found]
    places = torch.tensor([(one.first, one.last) for one in found], dtype=torch.int32)
    lengths = torch.tensor([len(text) for text in texts], dtype=torch.int64)
    text = torch.frombuffer(bytearray(b"".join(texts)), dtype=torch.uint8) if texts else lengths
    return Table(vectors, places.view(-1, 2), text.to(torch.uint8), lengths.cumsum(0))


def joined(tables: Sequence[Table], d_model: int) -> Table:
    """One table of several, in their order."""
    tables = tables or [table([], torch.empty(0, d_model))]
    sizes = torch.tensor([len(one.text) for one in tables])
    before = (sizes.cumsum(0) - sizes).tolist()
    ends = [one.ends + start for one, start in zip(tables, before, strict=True)]
    parts = ([getattr(one, name) for one in tables] for name in ("vectors", "places", "text"))
    vectors, places, text = (torch.cat(part) for part in parts)
    return Table(vectors, places, text, torch.cat(ends))


@dataclass
class Index:
    """Files in their order, and the passages of all of them."""

    files: list[File]
    passages: Table
    fresh: int = 0  # how many passages were encoded for it
    problems: list[str] = field(default_factory=list)  # sentences on files

    def file_of(self, row: int) -> File:
        """The file in which a passage stands."""
        for file in self.files:
            if row < file.count:
                return file
            row -= file.count
        raise IndexError(row)


def default_path(places: Iterable[Path], model: Model) -> Path:
    """Where the index of these files and folders is kept: one for each set of them and model."""
    names = sorted({os.path.abspath(place) for place in places})
    digest = hashlib.sha256(os.fsencode("\0".join([model.sum, *names]))).hexdigest()
    return FOLDER / f"{digest[:16]}.safetensors"


def load(path: Path, model: Model) -> tuple[Index | None, str]:
    """Read a kept index; None if it cannot be used, and why in a sentence, '' if there is none."""
    if not path.exists():
        return None, ""
    try:
        tensors, about = model_file.load(path)
        if about["made"] != _made(model):
            return None, f"{path} was made by another model or version: it is made anew"
        files = [File(**one) for one in about["files"]]
        kept = Index(files, Table(**tensors))
        if sum(file.count for file in files) != len(kept.passages):
            raise KeyError("count")
    except (ModelFileError, KeyError, TypeError):
        return None, f"{path} is damaged, or no index: it is made anew"
    return kept, ""


def _made(model: Model) -> dict[str, Any]:
    """What an index depends on besides its files."""
    return {"version": VERSION, "model": model.sum, "pieces": model.pieces}


def save(path: Path, index: Index, model: Model) -> None:
    """Keep an index; OSError if that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    said = {"made": _made(model), "files": [asdict(file) for file in index.files]}
    model_file.save(path, vars(index.passages), said)


class Renewal:
    """Makes the index of files as they are now; what has not changed is taken from the old one."""

    def __init__(self, model: Model, old: Index | None, progress: Say = lambda said: None):
        self.model, self.progress = model, progress
        self.files: list[File] = []
        self.tables: list[Table | None] = []  # None: waits for its vectors
        self.waiting: list[tuple[int, list[passages.Passage]]] = []
        self.problems: list[str] = []
        self.fresh = 0
        self.old: dict[tuple[str, str], Table] = {}  # by SHA-256 and kind
        self.known: dict[str, File] = {}
        begin = 0
        for file in old.files if old else []:
            end = begin + file.count
            self.known[file.path] = file
            assert old is not None
            self.old[file.sha256, file.kind] = old.passages.rows(begin, end)
            begin = end

    def add(self, path: Path) -> None:
        """Add a file as it is now."""
        try:
            file = self._unchanged(path) or self._read(path)
        except (ReadingError, OSError) as error:
            self.problems.append(f"{path} {error}")
            return
        if file.note:
            self.problems.append(f"{path} {file.note}")
        if sum(len(found) for _, found in self.waiting) >= PART:
            self.encode()

    def _unchanged(self, path: Path) -> File | None:
        """The file as it is known, if its size and time are what they were."""
        known = self.known.get(str(path.absolute()))
        if known is None:
            return None
        now = path.stat()
        if (now.st_size, now.st_mtime_ns, reading.kind_of(path)) != (
            *(known.size, known.mtime),
            known.kind,
        ):
            return None
        return self._take(known, self.old[known.sha256, known.kind])

    def _take(self, file: File, of: Table | None) -> File:
        self.files.append(file)
        self.tables.append(of)
        return file

    def _read(self, path: Path) -> File:
        """Read a file; its passages wait for vectors, unless a file of this content is known."""
        content = reading.contents(path)
        kind, digest = reading.kind_of(path), hashlib.sha256(content).hexdigest()
        now = path.stat()
        file = File(str(path.absolute()), now.st_size, now.st_mtime_ns, digest, kind, 0)
        same = next((one for one in self.known.values() if one.sha256 == digest), None)
        if same is not None and (digest, kind) in self.old:
            file.count, file.note = same.count, same.note
            return self._take(file, self.old[digest, kind])
        found, file.note = reading.read(content, kind, self.model.pieces)
        file.count = len(found)
        self.waiting.append((len(self.files), found))
        return self._take(file, None)

    def encode(self) -> None:
        """Make the vectors of all passages that wait."""
        every = [one for _, found in self.waiting for one in found]
        if every:
            self.progress(f"{self.fresh + len(every)} new passages become vectors …")
        vectors = self.model.vectors([one.text for one in every])
        for number, found in self.waiting:
            self.tables[number] = table(found, vectors[: len(found)])
            vectors = vectors[len(found) :]
        self.fresh += len(every)
        self.waiting.clear()

    def keep_old(self) -> None:
        """Add all files that were known and have not been reached."""
        reached = {file.path for file in self.files}
        for file in self.known.values():
            if file.path not in reached:
                self._take(file, self.old[file.sha256, file.kind])

    def index(self) -> Index:
        """The index of all files whose vectors are made."""
        done = [pair for pair in zip(self.files, self.tables, strict=True) if pair[1] is not None]
        tables = [one for _, one in done if one is not None]
        whole = joined(tables, self.model.d_model)
        return Index([file for file, _ in done], whole, self.fresh, self.problems)


def renewed(
    places: Sequence[Path], path: Path, model: Model, say: Say, progress: Say = lambda said: None
) -> Index:
    """Return the index of files and folders as they are now, and keep it at a path if it is new.

    say  is given a sentence on whatever is wrong. What is stopped by Ctrl-C keeps what was done.
    """
    old, why = load(path, model)
    if why:
        say(why)
    renewal = Renewal(model, old, progress)
    try:
        for file, problem in reading.files(places):
            if problem:
                renewal.problems.append(f"{file} {problem}")
            else:
                renewal.add(file)
        renewal.encode()
    except KeyboardInterrupt:
        if renewal.fresh:
            renewal.keep_old()
            with contextlib.suppress(OSError):
                save(path, renewal.index(), model)
        raise
    index = renewal.index()
    for sentence in index.problems:
        say(sentence)
    if old is None or index.files != old.files:
        try:
            save(path, index, model)
        except OSError as error:
            say(f"the index cannot be kept in {path}: {error.strerror}")
    return index
