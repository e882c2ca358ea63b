"""CSV files of an LMS are read, and changed in one place only."""

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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_is_filled_in_is_all_that_changes(table, encoding, delimiter, end):
    text = end.join([f"Name{delimiter}Grade", f"Zoë{delimiter}", ""])
    made = table(text.encode(encoding))
    assert made.rows == [["Name", "Grade"], ["Zoë", ""]]
    made.fill(1, 1, "7,5")
    filled = '"7,5"' if delimiter == "," else "7,5"
    assert made.bytes() == text.replace(f"Zoë{delimiter}", f"Zoë{delimiter}{filled}").encode(
        encoding
    )


def test_quotes_and_line_ends_in_a_cell_stay(table):
    made = table(CANVAS.replace("A, B", "A,\nB"))
    made.fill(3, 6, "new")
    again = table(made.bytes()).rows
    assert again == made.rows and again[2][3] == "A,\nB" and again[3][5:] == ["", "new"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no table"),
        (b"one line", "no table"),
        (b"PK\x03\x04\xff a spreadsheet", "save it as CSV UTF-8"),
        ("Name,Grade\nZoë,\n".encode("cp1252"), "save it as CSV UTF-8"),
        ("Name,Grade\nZoë,\n".encode("utf-16"), "save it as CSV UTF-8"),
    ],
)
def test_what_is_no_table_is_a_sentence(table, content, said):
    with pytest.raises(CourseError, match=rf"table\.csv.*{said}"):
        table(content)
