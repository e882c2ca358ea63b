"""Lines of text from standard input or from files, as many at a time as there are."""

import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from attention.train.corpora.texts import decode

CHUNK = 1 << 16  # bytes of one read, as many as a pipe holds
LONGEST = 1 << 20  # bytes of a line


@dataclass(frozen=True)
class Line:
    """A line without its end.

    number  from 1, over all files
    place   its file, and its number there
    """

    number: int
    place: str
    text: str


def chunks(paths: Sequence[Path]) -> Iterator[list[Line]]:
    """Yield the lines of the files, or of standard input if there are none, in their order.

    Each list is what one read brings: a line that somebody types, or a large part of a file. Only a
    line feed ends a line. Raises ValueError, in one sentence, or OSError for a text that cannot be
    read, when all lines before are out.
    """
    count = 0
    places: list[Path | None] = [*paths] or [None]
    for path in places:
        inside = 0
        for part in _whole_lines(path):
            lines: list[Line] = []
            for raw in part:
                inside, count = inside + 1, count + 1
                name = str(path or "standard input")
                try:
                    text = decode(raw, name, inside).removesuffix("\n")
                    lines.append(Line(count, f"{name}, line {inside}", text))
                except ValueError:
                    yield lines  # those before it are good
                    raise
            yield lines


def _whole_lines(path: Path | None) -> Iterator[list[bytes]]:
    """Yield what each read completes. Nothing is buffered: who types a line waits for its reply."""
    with _opened(path) as file:
        rest = b""
        while chunk := file.read(CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            if lines:
                yield lines
            if len(rest) > LONGEST:
                raise ValueError(
                    f"{path or 'standard input'} has a line of more than {LONGEST} bytes: is it a "
                    "text, with one sentence a line?"
                )
        if rest:
            yield [rest]


def _opened(path: Path | None) -> io.RawIOBase:
    if path is not None:
        return open(path, "rb", buffering=0)
    if sys.stdin is None or sys.stdin.closed:
        raise ValueError("there is no standard input: name a file")
    return io.FileIO(sys.stdin.fileno(), closefd=False)
