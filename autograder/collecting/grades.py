"""Grades from nbgrader's gradebook in the form that an LMS imports."""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from nbgrader.api import Gradebook, SubmittedAssignment

from autograder import CourseError, lessons
from autograder.collecting.lms_csv import Table
from autograder.collecting.roster import COLUMNS, Roster, Student, find_columns, plain, student_rows
from autograder.grading.classroom.deadline_extensions import handed_in
from autograder.grading.notebook.result import harmless

# Who a row is about, the surest first, as Canvas and Moodle call it.
WHO = {
    "login": ("sisloginid", "username", "anmeldename"),
    "sis": ("sisuserid", "idnumber", "idnummer"),
    "email": COLUMNS["email"],
}
NAMES = {name: COLUMNS[name] for name in ("full_name", "last_name", "first_name")}
MOODLE = {
    "grade": ("grade", "bewertung"),
    "most": ("maximumgrade", "bestwertung", "maximalebewertung"),
}
FIELDS = list(Student.__annotations__)  # the first columns of a table of our own
TITLE = re.compile(r"(.*?)\s*\(\d+\)\s*")
WORDS = r"(?:lesson|lektion|assignment|aufgabe|exercise|homework|hw|week|notebook)?\d*"
LEFT_ALONE = {"EX", "N/A"}  # what Canvas writes for those who are excused or not asked


@dataclass(frozen=True)
class Score:
    """What a student has for a lesson: points with the penalty taken off."""

    points: float
    unfinished: bool = False  # a person has yet to grade some of it


@dataclass
class Lesson:
    """The scores of a lesson: the points there are, and a Score by student."""

    slug: str
    most: float
    scores: dict[str, Score]


@dataclass
class Filled:
    """What was done with the rows of a table; ``columns`` are the places of lessons in it."""

    columns: Mapping[str, int]
    written: int = 0
    changed: int = 0  # of these, how many replaced another grade
    kept: int = 0  # cells left alone: the student is excused
    strangers: list[str] = field(default_factory=list)  # rows that are no student of the gradebook
    without_row: list[str] = field(default_factory=list)  # ids of students with a score and no row
    without_column: list[str] = field(default_factory=list)  # lessons with scores


def of_lesson(book: Gradebook, slug: str) -> Lesson:
    """The scores of a lesson."""
    assignment = book.find_assignment(slug)
    one = SubmittedAssignment
    rows = book.db.query(
        one.student_id, one.score, one.late_submission_penalty, one.needs_manual_grade
    ).filter(one.assignment_id == assignment.id, handed_in())
    scores = {
        student: Score(max(0.0, raw - (late or 0.0)), bool(manual))
        for student, raw, late, manual in rows
    }
    return Lesson(slug, float(assignment.max_score), scores)


def fill(
    table: Table,
    form: str,
    found: Collection[Lesson],
    roster: Roster,
    how: "How",
    column: str | None = None,
) -> Filled:
    """Write scores into what an LMS exported: Canvas' gradebook, or Moodle's grading worksheet.

    form    canvas or moodle; a worksheet of Moodle's is of one lesson
    column  what the only lesson's column is called in Canvas, with or without its number

    Raises CourseError for a table without such columns, or other points than the gradebook's.
    """
    most_column = None
    if form == "moodle":
        named = find_columns(table, MOODLE)
        if "grade" not in named:
            raise CourseError(f"{table.path}: no column is called Grade: is it a worksheet?")
        columns, most_column = {one.slug: named["grade"] for one in found}, named.get("most")
    else:
        columns = _canvas_columns(table, [one.slug for one in found], column)
    done = Filled(columns)
    done.without_column = [one.slug for one in found if one.slug not in columns and one.scores]
    here = [(one, columns[one.slug]) for one in found if one.slug in columns]
    points = next((n for n, row in enumerate(table.rows) if "Points Possible" in "".join(row)), 0)
    for row, student in _rows(table, roster, found, done):
        for lesson, place in here if how.asked(student) else ():
            in_row = most_column is not None
            most = table.cell(row, most_column) if in_row else table.cell(points, place)
            if table.cell(row, place) in LEFT_ALONE:
                done.kept += 1
            else:
                how.check(table, lesson, most)
                _write(table, row, place, how.text(lesson, student, most), done)
    return done


def participants(table: Table, roster: Roster) -> dict[str, str]:
    """By the grading worksheet of an assignment: ids of students, by what Moodle's files call them.

    Raises CourseError for a table that is none.
    """
    named = find_columns(table, {**MOODLE, "number": ("identifier", "id")})
    if not named.keys() >= {"grade", "number"}:
        raise CourseError(f"{table.path}: no columns Identifier and Grade: is it a worksheet?")
    rows = _rows(table, roster, (), Filled({}))
    numbered = ((re.search(r"\d+$", table.cell(row, named["number"])), who) for row, who in rows)
    return {f"{number[0]}_assignsubmission": who for number, who in numbered if number}


def _canvas_columns(table: Table, slugs: list[str], given: str | None) -> dict[str, int]:
    """The column of each lesson in an export of Canvas' gradebook: lesson → place."""
    heads = [text.strip() for text in table.rows[0]]
    titles = [found[1] if (found := TITLE.fullmatch(head)) else head for head in heads]
    columns: dict[str, int] = {}
    for slug in slugs:
        name = re.compile(WORDS + re.escape(plain(lessons.name_of(slug))))
        if given:
            places = [at for at, head in enumerate(heads) if given in (head, titles[at])]
        else:
            places = [at for at, title in enumerate(titles) if name.fullmatch(plain(title))]
        if len(places) > 1 or given and not places:
            there = ", ".join(repr(heads[at]) for at in places) or ", ".join(map(repr, heads))
            which = "several columns may be" if places else f"no column is called {given!r}, to be"
            raise CourseError(
                f"{table.path}: {which} that of {slug}; name it with --column: {there}"
            )
        if places:
            columns[slug] = places[0]
    if not columns:
        raise CourseError(
            f"{table.path}: no column is called like a lesson: make the assignment in Canvas and "
            "export again, or give --lesson and --column"
        )
    return columns


@dataclass(frozen=True)
class How:
    """How a score becomes a text, and of whom."""

    zeros: bool = False  # 0 for those who handed in nothing, whose cell stays as it is otherwise
    asked: Callable[[str], bool] = lambda student: True  # whose cells are filled in

    def check(self, table: Table, lesson: Lesson, most: str) -> None:
        """Raise CourseError where the LMS gives other points for a lesson than the gradebook."""
        number = _number(most)
        if number is not None and number != lesson.most:
            raise CourseError(
                f"{table.path}: {lesson.slug} has {lesson.most:g} points here and {number:g} "
                "there: change the points in the LMS and export again"
            )

    def text(self, lesson: Lesson, student: str, most: str = "") -> str:
        """The score of a student, or '' for none."""
        score = lesson.scores.get(student)
        if score is None:
            return "0" if self.zeros else ""
        text = f"{round(score.points, 2):.10g}"
        return text.replace(".", ",") if _number(most) is not None and "," in most else text


def made_anew(students: Iterable[Student], found: Collection[Lesson], how: How) -> bytes:
    """A table of all students, one column a lesson."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow([*FIELDS, *(lesson.slug for lesson in found)])
    for one in students:
        who = [harmless(getattr(one, name)) for name in FIELDS]
        writer.writerow([*who, *(how.text(lesson, one.id) for lesson in found)])
    return stream.getvalue().encode()


def _rows(
    table: Table, roster: Roster, found: Iterable[Lesson], done: Filled
) -> Iterable[tuple[int, str]]:
    """Pairs (row, its student); other rows, and who has a score and no row, go to ``done``."""
    sure, names = find_columns(table, WHO), find_columns(table, NAMES)
    number = find_columns(table, {"id": ["id"]}).get("id") if "login" in sure else None
    seen: dict[str, int] = {}
    for row in student_rows(table):
        ids = [text for kind in WHO if (text := table.cell(row, sure.get(kind)))]
        whole = " ".join(table.cell(row, names[kind]) for kind in NAMES if kind in names)
        owner = roster.owner(ids, table.cell(row, number))
        if not owner.id and not owner.why.startswith("it may be"):
            owner = roster.owner([whole])
        if not owner.id:
            done.strangers.append(f"row {row + 1}: {owner.why}")
        elif owner.id in seen:
            done.strangers.append(f"row {row + 1}: {owner.id} has row {seen[owner.id] + 1} already")
        else:
            seen[owner.id] = row
            yield row, owner.id
    graded = {student for lesson in found for student in lesson.scores}
    done.without_row = sorted(graded & roster.students.keys() - seen.keys())


def _write(table: Table, row: int, column: int, text: str, done: Filled) -> None:
    before = table.cell(row, column).replace("-", "")  # Moodle's word for no grade
    if text:
        done.written += 1
        done.changed += bool(before) and _number(before) != _number(text)
        if before != text:
            table.fill(row, column, text)


def _number(text: str) -> float | None:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None
