"""Who is in the class: from a CSV file or nbgrader's gradebook, and who a name may mean."""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from nbgrader.api import Gradebook

from autograder import CourseError
from autograder.collecting.lms_csv import Table
from autograder.grading.notebook.filenames import not_an_id, plain

# What the columns of a roster are called, in nbgrader, Canvas, Moodle and by hand: without blanks
# and marks. Of several that may hold the id, the first counts.
IDS = (
    *("id", "studentid", "username", "sisloginid", "loginid", "sisuserid", "idnumber"),
    *("anmeldename", "idnummer", "matrikelnummer", "emailaddress", "email", "emailadresse"),
)
COLUMNS = {
    "first_name": ("firstname", "givenname", "vorname"),
    "last_name": ("lastname", "surname", "familyname", "nachname"),
    "full_name": ("student", "fullname", "name", "vollstandigername", "studentname"),
    "email": ("emailaddress", "email", "emailadresse", "mail"),
    "lms_user_id": ("lmsuserid", "canvasid", "canvasuserid", "lmsid"),
}
CANVAS = {"sisloginid", "section"}  # beside these, ID is the number that Canvas gives to a user
TEST_STUDENT = "Student, Test"  # of Canvas' own making, in every course
NOT_IN_AN_ID = re.compile(r"[/\\*?\[\]]|^\s|\s$|^$")  # beside what not_an_id knows
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


@dataclass(frozen=True)
class Student:
    """One row of a roster; ``id`` is the name of the student's folder."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""

    def details(self) -> dict[str, str]:
        """All but the id, where there is something, for the gradebook."""
        return {name: text for name, text in asdict(self).items() if text and name != "id"}


def cannot_name_a_folder(student: str) -> bool:
    """Whether an id is none that a folder, a pattern of nbgrader's or its pages could take."""
    return bool(NOT_IN_AN_ID.search(student) or not_an_id(student))


class Roster:
    """The students of a class, and what they may be called. Empty where nobody is known."""

    def __init__(self, students: Iterable[Student] = ()) -> None:
        self.students = {one.id: one for one in students}
        # An id or an address as it is spelt, then in small letters; a name, without its accents.
        self._called: list[dict[str, set[str]]] = [{} for _ in range(3)]
        for one in self.students.values():
            names = {one.first_name + one.last_name, one.last_name + one.first_name} - {""}
            aliases = (
                {_composed(one.id), _composed(one.email)},
                {_composed(text).lower() for text in (one.id, one.email, one.lms_user_id)},
                {made for text in names for made in (plain(text), plain(_umlauts(text)))},
            )
            for called, texts in zip(self._called, aliases, strict=True):
                for text in texts - {""}:
                    called.setdefault(text, set()).add(one.id)

    def who(self, text: str) -> set[str]:
        """Ids of those whom ``text`` may mean: id, e-mail address, LMS's number, or name."""
        keys = (_composed(text), _composed(text).lower(), plain(text))
        for called, key in zip(self._called, keys, strict=True):
            if key in called:
                return called[key]
        return set()

    def numbered(self, number: str) -> set[str]:
        """Ids of those to whom the LMS gives this number."""
        return {one.id for one in self.students.values() if number and one.lms_user_id == number}

    def nearest(self, texts: Iterable[str]) -> list[str]:
        """Up to three ids of students who are called much like one of ``texts``."""
        known = {key: ids for called in self._called[1:] for key, ids in called.items()}
        found = [difflib.get_close_matches(plain(text)[:60], known, 3) for text in texts]
        ids = [one for keys in found for key in keys for one in sorted(known[key])]
        return list(dict.fromkeys(ids))[:3]


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _umlauts(text: str) -> str:
    return _composed(text).lower().translate(UMLAUTS)


def from_csv(path: Path | str, id_column: str | None = None) -> list[Student]:
    """The students of a CSV file, in its order.

    id_column  the column with the ids; by default the first of IDS that there is

    Raises CourseError where a row has no id, an id that cannot name a folder or another row's.
    """
    table = Table(path)
    columns = _columns(table, id_column)
    students: dict[str, Student] = {}
    faults = []
    for row in student_rows(table):
        one = _student(table, row, columns)
        if cannot_name_a_folder(one.id):
            fault = f"{one.id!r} cannot name a folder" if one.id else "there is no id"
            faults.append(f"row {row + 1}: {fault}")
        elif one.id.casefold() in map(str.casefold, students):
            faults.append(f"row {row + 1}: the id {one.id!r} is another row's")
        else:
            students[one.id] = one
    if faults:
        shown = "; ".join(faults[:5]) + ("; …" if len(faults) > 5 else "")
        named = table.rows[0][columns["id"]].strip()
        raise CourseError(
            f"{table.path}: the column {named!r} is taken for the ids, but {shown}. Mend the rows, "
            "or name another column with --id"
        )
    if not students:
        raise CourseError(f"{table.path}: there is no student in it")
    return list(students.values())


def of_gradebook(book: Gradebook) -> list[Student]:
    """The students in nbgrader's gradebook."""
    names = list(Student.__annotations__)
    return [Student(*(getattr(one, name) or "" for name in names)) for one in book.students]


def find_columns(table: Table, wanted: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Place by name of those columns of ``wanted`` that there are: name → what it may be called."""
    heads = [plain(text) for text in table.rows[0]]
    there = {name: [head for head in called if head in heads] for name, called in wanted.items()}
    return {name: heads.index(called[0]) for name, called in there.items() if called}


def _columns(table: Table, id_column: str | None) -> dict[str, int]:
    heads = [plain(text) for text in table.rows[0]]
    canvas = CANVAS & set(heads) and "student" in heads and "id" in heads
    ids = [id_column] if id_column else [one for one in IDS if not (canvas and one == "id")]
    columns = find_columns(table, COLUMNS | {"id": [plain(one) for one in ids]})
    if canvas:
        columns["lms_user_id"] = heads.index("id")
        columns.setdefault("id", columns["lms_user_id"])
    if "id" not in columns:
        known = ", ".join(repr(text.strip()) for text in table.rows[0])
        missing = f"called {id_column!r}" if id_column else "with the students' ids"
        raise CourseError(
            f"{table.path}: there is no column {missing} (as id, Username, SIS Login ID or Email "
            f"address); name it with --id. The columns are: {known}"
        )
    return columns


def _student(table: Table, row: int, columns: Mapping[str, int]) -> Student:
    texts = {name: _harmful_undone(table.cell(row, place)) for name, place in columns.items()}
    full = texts.pop("full_name", "")
    if full and not (texts.get("first_name") or texts.get("last_name")):
        last, comma, first = full.partition(",")
        if not comma:
            first, _, last = full.rpartition(" ")
        texts |= {"first_name": first.strip(), "last_name": last.strip()}
    return Student(**{name: text[:128] if name != "id" else text for name, text in texts.items()})


def _harmful_undone(text: str) -> str:
    """What Canvas makes of a name that would be a formula, ="…", undone."""
    found = re.fullmatch(r'="(.*)"', text)
    return " ".join((found[1] if found else text).split())


def _is_no_student(table: Table, row: int) -> bool:
    """Whether a row is empty or one of Canvas' own: points, how grades are posted, a test."""
    texts = [text.strip() for text in table.rows[row]]
    first = texts[0] if texts else ""
    posting = all(not text or re.match(r"(?i)muted|manual posting", text) for text in texts)
    return posting or "Points Possible" in first or first == TEST_STUDENT


def student_rows(table: Table) -> Iterator[int]:
    """The places of the rows that stand for students."""
    return (row for row in range(1, len(table.rows)) if not _is_no_student(table, row))
