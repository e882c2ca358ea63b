"""A CSV file as an LMS or a spreadsheet writes it: read, and filled in without any other change."""

import re
from pathlib import Path

from autograder import CourseError

DELIMITERS = ",;\t"
MARK = b"\xef\xbb\xbf"  # of UTF-8, which spreadsheets write first
LINE_END = re.compile(r"\r\n|\n|\r|\Z")


class Table:
    """Rows of texts. ``rows[0]`` is the header; what ``fill`` does not touch stays byte by byte.

    The standard library's csv forgets which fields were quoted, so they are kept as they were.

    Raises CourseError for what is no table.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        text = self._decoded(_content(self.path))
        first = text[: LINE_END.search(text).start()]  # type: ignore[union-attr]  # \Z always fits
        self.delimiter = max(DELIMITERS, key=first.count)
        self._raw, self._ends = _fields(text, self.delimiter)
        self.rows = [[_plain(field) for field in row] for row in self._raw]
        if len(self.rows) < 2 or len(self.rows[0]) < 2:
            raise CourseError(
                f"{self.path}: no table: it needs a line of names of columns and rows"
            )

    def _decoded(self, content: bytes) -> str:
        self._mark = MARK if content.startswith(MARK) else b""
        try:
            return content.removeprefix(MARK).decode()
        except UnicodeDecodeError:
            raise CourseError(f"{self.path}: its text is not UTF-8: save it as CSV UTF-8") from None

    def cell(self, row: int, column: int | None) -> str:
        """A cell's text without outer blanks; '' where there is none, or no ``column``."""
        cells = self.rows[row]
        return cells[column].strip() if column is not None and column < len(cells) else ""

    def fill(self, row: int, column: int, text: str) -> None:
        for cells in (self.rows[row], self._raw[row]):
            cells += [""] * (column + 1 - len(cells))
        self.rows[row][column] = text
        special = any(mark in text for mark in f'"\r\n{self.delimiter}')
        doubled = text.replace('"', '""')
        self._raw[row][column] = f'"{doubled}"' if special else text

    def bytes(self) -> bytes:
        """The file as it is now."""
        lines = zip(self._raw, self._ends, strict=True)
        text = "".join(self.delimiter.join(cells) + end for cells, end in lines)
        return self._mark + text.encode()


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}") from None
    if content.startswith(b"PK"):  # a spreadsheet's own form
        raise CourseError(f"{path} is no CSV file: save the table as CSV UTF-8")
    return content


def _fields(text: str, delimiter: str) -> tuple[list[list[str]], list[str]]:
    """Pair (rows of fields with their quotes, the line end of each row)."""
    # What follows a closed quote in the same field is part of it, as in "a"b
    one = rf'("[^"]*(?:""[^"]*)*"|[^{delimiter}\r\n]*)({delimiter}|\r\n|\n|\r|\Z)'
    rows, ends, row = list[list[str]](), list[str](), list[str]()
    for found in re.finditer(one, text):
        if found.start() == len(text) and not row:  # after the end of the last line
            break
        row.append(found[1])
        if found[2] != delimiter:
            rows.append(row)
            ends.append(found[2])
            row = []
    return rows, ends


def _plain(field: str) -> str:
    quoted = len(field) > 1 and field[0] == field[-1] == '"'
    return field[1:-1].replace('""', '"') if quoted else field
