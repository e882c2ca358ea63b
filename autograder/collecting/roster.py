"""Who is in the class: from a CSV file into nbgrader's gradebook, and who a name may mean."""

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook

from autograder import CourseError
from autograder.collecting.lms_csv import Table
from autograder.grading.classroom.deadline_extensions import who_handed_in
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


@dataclass(frozen=True)
class Owner:
    """The id of the student who is meant, or '' and why that is not known."""

    id: str
    why: str = ""


def cannot_name_a_folder(student: str) -> bool:
    """Whether an id is none that a folder, a pattern of nbgrader's or its pages could take."""
    return bool(NOT_IN_AN_ID.search(student) or not_an_id(student))


class Roster:
    """The students of a class, and what they may be called.

    ``participants``  ids of students by what Moodle calls them in one assignment
    """

    def __init__(self, students: Iterable[Student] = ()) -> None:
        self.students = {one.id: one for one in students}
        self.participants: Mapping[str, str] = {}
        self._keys: dict[str, set[str]] = {}  # by id, address and number, in small letters
        self._names: dict[str, set[str]] = {}  # by name, without accents
        for one in self.students.values():
            for text in {one.id, one.email, one.lms_user_id} - {""}:
                self._keys.setdefault(_small(text), set()).add(one.id)
            for text in {one.first_name + one.last_name, one.last_name + one.first_name} - {""}:
                for name in {plain(text), plain(_small(text).translate(UMLAUTS))}:
                    self._names.setdefault(name, set()).add(one.id)

    def who(self, text: str) -> set[str]:
        """Ids of those whom ``text`` may mean: id, e-mail address, LMS's number, or name."""
        if text in self.students:  # whatever others are called in small letters, or by their LMS
            return {text}
        return self._keys.get(_small(text)) or self._names.get(plain(text), set())

    def owner(self, texts: Collection[str], number: str = "") -> Owner:
        """Who is meant by ``texts``, all of which have to fit, and by the LMS's ``number``."""
        every = self.students.values()
        numbered = {one.id for one in every if number and one.lms_user_id == number}
        numbered |= {self.participants.get(number, "")} - {""}
        found = [numbered, *map(self.who, texts)]
        certain = {next(iter(ids)) for ids in found if len(ids) == 1}
        doubtful = set[str]().union(*(ids for ids in found if len(ids) > 1))
        if len(certain) == 1 and (not doubtful or certain <= doubtful):
            return Owner(certain.pop())
        if certain or doubtful:
            several = [f"{one}'s" for one in sorted(certain | doubtful)]
            return Owner("", f"it may be {' or '.join(several)}")
        near = self._nearest(texts)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        return Owner("", f"no student of the roster is called {' or '.join([*texts][:2])}{hint}")

    def _nearest(self, texts: Iterable[str]) -> list[str]:
        """Up to three ids of students who are called much like one of ``texts``."""
        known = self._names | self._keys
        found = [difflib.get_close_matches(plain(text)[:60], known, 3) for text in texts]
        ids = [one for keys in found for key in keys for one in sorted(known[key])]
        return list(dict.fromkeys(ids))[:3]


def _small(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()


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
            "or name another column: autograder roster --id COLUMN"
        )
    if not students:
        raise CourseError(f"{table.path}: there is no student in it")
    return list(students.values())


def find_columns(table: Table, wanted: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Place by name of those columns of ``wanted`` that there are: name → what it may be called."""
    heads = [plain(text) for text in table.rows[0]]
    there = {name: [head for head in called if head in heads] for name, called in wanted.items()}
    return {name: heads.index(called[0]) for name, called in there.items() if called}


def _columns(table: Table, id_column: str | None) -> dict[str, int]:
    heads = [plain(text) for text in table.rows[0]]
    canvas = CANVAS & set(heads) and "student" in heads and "id" in heads
    ids = [id_column] if id_column else [one for one in IDS if not (canvas and one == "id")]
    rows = [*student_rows(table)]  # in Moodle's export, nobody may have an ID number
    texts = {head: "".join(table.cell(row, at) for row in rows) for at, head in enumerate(heads)}
    ids.sort(key=lambda one: not texts.get(one))
    columns = find_columns(table, COLUMNS | {"id": [plain(one) for one in ids]})
    if canvas:
        columns["lms_user_id"] = heads.index("id")
        columns.setdefault("id", columns["lms_user_id"])
    if "id" not in columns:
        known = ", ".join(repr(text.strip()) for text in table.rows[0])
        missing = f"called {id_column!r}" if id_column else "with the students' ids"
        raise CourseError(
            f"{table.path}: there is no column {missing} (as id, Username, SIS Login ID or Email "
            f"address); name it: autograder roster --id COLUMN. The columns are: {known}"
        )
    return columns


def _student(table: Table, row: int, columns: Mapping[str, int]) -> Student:
    texts = {name: " ".join(table.cell(row, place).split()) for name, place in columns.items()}
    full = texts.pop("full_name", "")
    if full and not (texts.get("first_name") or texts.get("last_name")):
        last, comma, first = full.partition(",")
        if not comma:
            first, _, last = full.rpartition(" ")
        texts |= {"first_name": first.strip(), "last_name": last.strip()}
    return Student(**texts)


def student_rows(table: Table) -> Iterator[int]:
    """The places of the rows that stand for students.

    Others are empty, or Canvas' own: points, how grades are posted, a test.
    """
    for row in range(1, len(table.rows)):
        texts = [text.strip() for text in table.rows[row]]
        posting = all(not text or re.match(r"(?i)muted|manual posting", text) for text in texts)
        if not posting and "Points Possible" not in texts[0] and texts[0] != TEST_STUDENT:
            yield row


def of_gradebook(book: Gradebook) -> list[Student]:
    """The students in nbgrader's gradebook."""
    names = list(Student.__annotations__)
    return [Student(*(getattr(one, name) or "" for name in names)) for one in book.students]


@dataclass
class Changes:
    """Ids of students: new ones, changed ones, and those in the gradebook but not in the roster."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # not in the roster, with work handed in
    left: list[str] = field(default_factory=list)  # not in the roster, without


def enrol(book: Gradebook, students: Collection[Student]) -> Changes:
    """Add students or update what is known of them; return the Changes.

    Raises CourseError, and changes nothing, if somebody would be there twice.
    """
    known = {one.id: one for one in of_gradebook(book)}
    _refuse_second_ids(students, known.values())
    changes = Changes()
    for one in students:
        if one.id not in known:
            changes.new.append(one.id)
        elif not one.details().items() <= known[one.id].details().items():
            changes.changed.append(one.id)
        book.update_or_create_student(one.id, **one.details())
    missing, handed_in = known.keys() - {one.id for one in students}, who_handed_in(book)
    changes.kept, changes.left = sorted(missing & handed_in), sorted(missing - handed_in)
    return changes


def _refuse_second_ids(students: Collection[Student], known: Collection[Student]) -> None:
    """Raise CourseError if a student has another id than in the gradebook, as by another column.

    Whoever had two ids would be graded twice, and each half would lack the other's hand-ins.
    """
    there, listed = {one.id for one in known}, {one.id for one in students}
    gone: dict[str, list[Student]] = {}
    for one in known:
        for key in _keys(one) if one.id not in listed else ():
            gone.setdefault(key, []).append(one)
    new = [(key, one) for one in students if one.id not in there for key in _keys(one)]
    pairs = {one.id: old.id for key, one in new for old in gone.get(key, ()) if _is_one(one, old)}
    if pairs:
        shown = "; ".join(f"{one}, there {other}" for one, other in [*pairs.items()][:5])
        raise CourseError(
            f"{len(pairs)} of the file are in the gradebook under another id: {shown}"
            f"{'; …' * (len(pairs) > 5)}. Nothing is changed. Give them the id that is there, or "
            "name its column with --id. An old one without a hand-in goes with: nbgrader db "
            "student remove ID"
        )


def _keys(one: Student) -> set[str]:
    """What two rows on one person may have in common: address, the LMS's number, the name."""
    name = "".join(sorted(map(plain, f"{one.first_name} {one.last_name}".split())))
    return {one.email.casefold(), one.lms_user_id, name} - {""}


def _is_one(one: Student, other: Student) -> bool:
    """Whether two of one key are one person: namesakes have other addresses, or other numbers."""
    both = (one.email.casefold(), other.email.casefold()), (one.lms_user_id, other.lms_user_id)
    same = [mine == theirs for mine, theirs in both if mine and theirs]
    return any(same) or not same
