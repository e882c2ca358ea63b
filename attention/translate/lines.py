"""Lines of text from standard input or from files, as many at a time as there are."""

import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

CHUNK = 1 << 16  # bytes of one read, as many as a pipe holds
LONGEST = 1 << 20  # bytes of a line


class LinesError(ValueError):
    """A text cannot be read; str() is one sentence that says which, where, and what to do."""


@dataclass(frozen=True)
class Line:
    """A line without its end.

    number  from 1, over all files
    place   its file, and its number there
    """

    number: int
    place: str
    text: str


def chunks(paths: Sequence[Path]) -> Iterator[list[Line] | LinesError]:
    """Yield the lines of the files, or of standard input if there are none, in their order.

    Each list is what one read brings: a line that somebody types, or a large part of a file. What
    is wrong with a text is the last item. Only a line feed ends a line.
    """
    count = 0
    places: list[Path | None] = [*paths] or [None]
    try:
        for path in places:
            inside = 0
            for part in _whole_lines(path):
                lines = []
                for raw in part:
                    inside, count = inside + 1, count + 1
                    place = f"{path or 'standard input'}, line {inside}"
                    try:
                        lines.append(Line(count, place, _decode(raw, inside == 1, place)))
                    except LinesError:
                        yield lines  # those before it are good
                        raise
                yield lines
    except LinesError as error:
        yield error
    except OSError as error:
        yield LinesError(f"{error.filename or 'standard input'} cannot be read: {error.strerror}")


def whole(path: Path) -> list[str]:
    """All lines of a file; LinesError if it cannot be read or has none."""
    found: list[str] = []
    for part in chunks([path]):
        if isinstance(part, LinesError):
            raise part
        found += [line.text for line in part]
    if not found:
        raise LinesError(f"{path} is empty")
    return found


def _whole_lines(path: Path | None) -> Iterator[list[bytes]]:
    """Yield what each read completes. Nothing is buffered: who types a line waits for its reply."""
    with _opened(path) as file:
        rest = b""
        while chunk := file.read(CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            if lines:
                yield lines
            if len(rest) > LONGEST:
                raise LinesError(
                    f"{path or 'standard input'} has a line of more than {LONGEST} bytes: is it a "
                    "text, with one sentence a line?"
                )
        if rest:
            yield [rest]


def _opened(path: Path | None) -> io.RawIOBase:
    if path is not None:
        return open(path, "rb", buffering=0)
    if sys.stdin is None or sys.stdin.closed:
        raise LinesError("there is no standard input: name a file")
    return io.FileIO(sys.stdin.fileno(), closefd=False)


def _decode(raw: bytes, first: bool, place: str) -> str:
    if b"\0" in raw:  # of every second byte, in most languages
        raise LinesError(
            f"{place} is UTF-16, as PowerShell's > writes it: convert the text with "
            "iconv -f UTF-16 -t UTF-8"
        )
    try:
        return raw.removesuffix(b"\r").decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise LinesError(
            f"{place} is not UTF-8 at byte {error.start + 1}: convert the text, for instance with "
            "iconv -f LATIN1 -t UTF-8"
        ) from None
