"""Put a roster into nbgrader's gradebook."""

from collections.abc import Collection
from dataclasses import dataclass, field

from nbgrader.api import Gradebook, SubmittedAssignment

from autograder.collecting.roster import Student, of_gradebook


@dataclass
class Changes:
    """Ids of students: new ones, changed ones, and those in the gradebook but not in the roster.

    Of the latter, ``removed`` are gone now and ``handed_in`` may never go: they have a submission.
    """

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    handed_in: set[str] = field(default_factory=set)


def enrol(book: Gradebook, students: Collection[Student], remove: bool = False) -> Changes:
    """Add students or update what is known of them; return the Changes.

    remove  take those out who are not in ``students`` and have handed in nothing
    """
    known = {one.id: one for one in of_gradebook(book)}
    changes = Changes()
    for one in students:
        if one.id not in known:
            changes.new.append(one.id)
        elif one.details().items() <= known[one.id].details().items():
            continue
        else:
            changes.changed.append(one.id)
        book.update_or_create_student(one.id, **one.details())
    changes.missing = sorted(known.keys() - {one.id for one in students})
    rows = book.db.query(SubmittedAssignment.student_id).distinct()
    changes.handed_in = {student for (student,) in rows} & set(changes.missing)
    if remove:
        changes.removed = [one for one in changes.missing if one not in changes.handed_in]
        for student in changes.removed:
            book.remove_student(student)
    return changes
