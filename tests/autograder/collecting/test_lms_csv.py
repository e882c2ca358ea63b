"""CSV files of an LMS: read as the standard library reads them, and changed in one place only."""

import csv
import io

import pytest

from autograder import CourseError
from autograder.collecting.lms_csv import Table

CANVAS = (
    'Student,ID,SIS Login ID,Section,"00 mini (77)"\r\n'
    '"    Points Possible",,,,"10"\r\n'
    '"Müller, Zoë ""Z""",101,zm,"A, B",\r\n'
    "'=cmd,102,x,,3\r\n"
)


@pytest.fixture
def table(tmp_path):
    def make(content):
        path = tmp_path / "table.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return Table(path)

    return make


@pytest.mark.parametrize(
    "text",
    [
        CANVAS,
        CANVAS.replace("\r\n", "\n").rstrip("\n"),
        'a,b\n"x\ny",2\n\n,\n"",""\n',
        'a,b\n1,"say ""hi"", twice"\n"1"\n1,2,3\n',
    ],
)
def test_rows_are_those_of_the_standard_library_and_bytes_come_back(table, text):
    made = table(text)
    expected = list(csv.reader(io.StringIO(text, newline="")))
    assert [row if row != [""] else [] for row in made.rows] == expected
    assert made.bytes() == text.encode()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_encodings_and_delimiters_are_kept(table, encoding, delimiter):
    text = delimiter.join(["Name", "Grade"]) + "\r\n" + delimiter.join(["Zoë", ""]) + "\r\n"
    made = table(text.encode(encoding))
    assert made.rows == [["Name", "Grade"], ["Zoë", ""]]
    made.fill(1, 1, "7,5")
    expected = '"7,5"' if delimiter == "," else "7,5"
    assert made.bytes() == text.replace("Zoë" + delimiter, "Zoë" + delimiter + expected).encode(
        encoding
    )


def test_only_the_filled_cell_changes(table):
    made = table(CANVAS)
    made.fill(2, 4, "9.5")
    assert made.bytes().decode() == CANVAS.replace('"A, B",\r', '"A, B",9.5\r')
    made.fill(2, 4, 'a "b", c')
    assert list(csv.reader(io.StringIO(made.bytes().decode())))[2][4] == 'a "b", c'


def test_an_unclosed_quote_loses_nothing(table):
    text = 'a,b\n"x,1\ny,2\n"q"r,3\n'
    assert table(text).bytes() == text.encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no table"),
        (b"one line", "no table"),
        (b"PK\x03\x04 a spreadsheet", "save the table as CSV UTF-8"),
        ("Name,Grade\nZoë,\n".encode("cp1252"), "save it as CSV UTF-8"),
        ("Name,Grade\nZoë,\n".encode("utf-16"), "save it as CSV UTF-8"),
    ],
)
def test_what_is_no_table_is_a_sentence(table, content, said):
    with pytest.raises(CourseError, match=rf"table\.csv.*{said}"):
        table(content)
