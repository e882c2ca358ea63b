"""CSV files of an LMS are read, and changed in one place only."""

import pytest

from autograder import CourseError
from autograder.collecting.lms_csv import Table

QUOTED = 'Student,Section,Grade\r\n"Müller, Zoë ""Z""","A,\nB",\r\n\'=cmd,,3\r\n'


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
    made = table(QUOTED)
    made.fill(2, 4, "new")
    again = table(made.bytes()).rows
    assert again == made.rows
    assert again[1][:2] == ['Müller, Zoë "Z"', "A,\nB"] and again[2] == [
        "'=cmd",
        "",
        "3",
        "",
        "new",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no table"),
        (b'Name,Grade\n"Zoe,1\nAda,2\n', "no table: .*: is there a quote without its other one"),
        (b'Name,Grade\nZoe,"' + bytes(200_000), "no table: field larger than"),
        (b"PK\x03\x04\xff a spreadsheet", "save it as CSV UTF-8"),
        ("Name,Grade\nZoë,\n".encode("cp1252"), "save it as CSV UTF-8"),
    ],
)
def test_what_is_no_table_is_a_sentence(table, content, said):
    with pytest.raises(CourseError, match=rf"table\.csv.*{said}"):
        table(content)
