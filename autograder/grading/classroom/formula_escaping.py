"""Tables that a spreadsheet may open: a student's name or answer in them is never a formula."""

import csv
import re
from typing import Any

from nbgrader.api import Assignment, Gradebook, SubmittedAssignment
from nbgrader.plugins import CsvExportPlugin
from sqlalchemy import select

from autograder.grading.notebook.result import clean

# Where a list is separated by semicolons, a spreadsheet opens our tables so: a cell then begins
# after each of them, and after the end of a line within quotes.
FORMULA = re.compile(r"(^|[;\t\n])(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20])|^(?=\t)")
NBGRADERS = [
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
]


def harmless(text: str | None) -> str:
    """``text`` with a quote before what a spreadsheet would take for a formula.

    >>> harmless("=1+1"), harmless("Zoë"), harmless("Zoë;=1+1")
    ("'=1+1", 'Zoë', "Zoë;'=1+1")
    """
    return FORMULA.sub(lambda found: f"{found[1] or ''}'", clean(text or ""))


class HarmlessCsv(CsvExportPlugin):
    """nbgrader's export with its columns, in which names are quoted and no formulas."""

    def export(self, gradebook: Gradebook) -> None:
        students, assignments = set(map(str, self.student)), set(map(str, self.assignment))
        with open(self.to or "grades.csv", "w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(NBGRADERS)
            for assignment in gradebook.assignments:
                if assignments and assignment.name not in assignments:
                    continue
                scores = _scores(gradebook, assignment)
                for one in gradebook.students:
                    if not students or one.id in students:
                        names = (one.id, one.last_name, one.first_name, one.email)
                        time, raw, penalty = scores.get(one.id, ("", 0.0, 0.0))
                        start = [assignment.name, assignment.duedate or "", time or ""]
                        end = [raw, penalty, max(0.0, raw - penalty), assignment.max_score]
                        points = [round(number, 4) for number in end]  # sums of parts of points
                        writer.writerow([*start, *map(harmless, names), *points])


def _scores(gradebook: Gradebook, assignment: Assignment) -> dict[str, tuple[Any, float, float]]:
    """By student: when it was handed in, points, and the penalty for being late."""
    one = SubmittedAssignment
    chosen = select(one.student_id, one.timestamp, one.score, one.late_submission_penalty)
    rows = gradebook.db.execute(chosen.where(one.assignment_id == assignment.id))
    return {student: (time, raw, penalty or 0.0) for student, time, raw, penalty in rows}
