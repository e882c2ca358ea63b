"""A CSV file as an LMS or a spreadsheet writes it: read, and written with what was filled in."""

import csv
import io
from pathlib import Path

from autograder import CourseError

DELIMITERS = ",;\t"
MARK = "\ufeff"  # of UTF-8, which spreadsheets write first


class Table:
    """Rows of texts; ``rows[0]`` is the header. Raises CourseError for what is no table."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        text = self._text()
        self._mark = MARK if text.startswith(MARK) else ""
        first, _, _ = text.removeprefix(MARK).partition("\n")
        self.delimiter = max(DELIMITERS, key=first.count)
        self._line_end = "\r\n" if first.endswith("\r") else "\n"
        stream = io.StringIO(text.removeprefix(MARK), newline="")
        try:
            self.rows = list(csv.reader(stream, delimiter=self.delimiter, strict=True))
        except csv.Error as error:  # where it is not strict, an open quote swallows all rows below
            raise CourseError(
                f"{self.path}: no table: {error}: is there a quote without its other one?"
            ) from None
        if len(self.rows) < 2:
            raise CourseError(
                f"{self.path}: no table: it needs a line of names of columns and rows"
            )

    def _text(self) -> str:
        try:
            return self.path.read_bytes().decode()
        except OSError as error:
            raise CourseError(f"{self.path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise CourseError(f"{self.path}: its text is not UTF-8: save it as CSV UTF-8") from None

    def cell(self, row: int, column: int | None) -> str:
        """A cell's text without outer blanks; '' where there is none, or no ``column``."""
        cells = self.rows[row]
        return cells[column].strip() if column is not None and column < len(cells) else ""

    def fill(self, row: int, column: int, text: str) -> None:
        """Write a cell."""
        cells = self.rows[row]
        cells += [""] * (column + 1 - len(cells))
        cells[column] = text

    def bytes(self) -> bytes:
        """The file as it is now, with the delimiter and the line ends that it had."""
        stream = io.StringIO()
        writer = csv.writer(stream, delimiter=self.delimiter, lineterminator=self._line_end)
        writer.writerows(self.rows)
        return (self._mark + stream.getvalue()).encode()
