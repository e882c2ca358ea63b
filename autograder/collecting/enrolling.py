"""Put a roster into nbgrader's gradebook."""

from collections.abc import Collection
from dataclasses import dataclass, field

from nbgrader.api import Gradebook

from autograder import CourseError
from autograder.collecting.roster import Student, of_gradebook
from autograder.grading.classroom.deadline_extensions import who_handed_in


@dataclass
class Changes:
    """Ids of students: new ones, changed ones, and those in the gradebook but not in the roster."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)  # not in the roster, and gone now
    kept: list[str] = field(default_factory=list)  # not in it, and never go: they handed in
    left: list[str] = field(default_factory=list)  # not in it, and might go


def enrol(
    book: Gradebook,
    students: Collection[Student],
    remove: bool = False,
) -> Changes:
    """Add students or update what is known of them; return the Changes.

    remove  take those out who are not in ``students`` and have handed in nothing

    Raises CourseError, and changes nothing, if somebody would be there twice.
    """
    known = {one.id: one for one in of_gradebook(book)}
    changes = Changes()
    handed_in = who_handed_in(book)
    stay = [one for one in known.values() if not remove or one.id in handed_in]
    _refuse_second_ids(students, stay)
    for one in students:
        if one.id not in known:
            changes.new.append(one.id)
        elif one.details().items() <= known[one.id].details().items():
            continue
        else:
            changes.changed.append(one.id)
        book.update_or_create_student(one.id, **one.details())
    missing = known.keys() - {one.id for one in students}
    changes.kept, gone = sorted(missing & handed_in), sorted(missing - handed_in)
    if remove:
        changes.removed = gone
        for student in gone:
            book.remove_student(student)
    else:
        changes.left = gone
    return changes


def _refuse_second_ids(students: Collection[Student], known: Collection[Student]) -> None:
    """Raise CourseError if a student has another id than in the gradebook, as by another column.

    Whoever had two ids would be graded twice, and each half would lack the other's hand-ins.
    """
    listed, there = {one.id for one in students}, {one.id for one in known}
    new = [(one, _keys(one)) for one in students if one.id not in there]
    gone = [(one, _keys(one)) for one in known if one.id not in listed]
    pairs = [
        (one.id, other.id) for one, keys in new for other, others_keys in gone if keys & others_keys
    ]
    if pairs:
        shown = "; ".join(f"{one}, there {other}" for one, other in pairs[:5])
        more = "; …" if len(pairs) > 5 else ""
        count = len({one for one, _ in pairs})
        raise CourseError(
            f"{count} of the file are in the gradebook under another id: {shown}{more}. Nothing is "
            "changed. Give them the id that is there, or name its column with --id. --remove takes "
            "out the old ones without a hand-in."
        )


def _keys(one: Student) -> set[str]:
    """What two rows on one person have in common: address, or the LMS's number."""
    return {one.email.casefold(), one.lms_user_id} - {""}
