"""The page that a student reads after grading: nbgrader's own, with a table at its top.

``nbgrader generate_feedback``, the formgrader's button and ``autograder feedback`` all make it, by
two settings of nbgrader's GenerateFeedback: its exporter, and the step that fetches the grades.
``Pages`` are those of a course, made as nbgrader makes them.
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import GetGrades

from autograder.files import write_aside
from autograder.grading.classroom.database import usable
from autograder.grading.classroom.deadline_extensions import due_for
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.classroom.gradebook import Book
from autograder.grading.classroom.hand_in_failure import DISKS, failure
from autograder.grading.feedback.score_table import STYLE, summary
from autograder.grading.notebook import records
from autograder.term import course_file

LOG = logging.getLogger("autograder.feedback")
LOG.addHandler(logging.NullHandler())  # nbgrader logs names; what fails is said in words
# nbgrader's template names a list of "Test cell"s where this one has the table. What stands in its
# block `body` around the notebook is kept; super.super() is the notebook itself.
TEMPLATE = """
{%- extends 'index.html.j2' -%}
{%- block header -%}
{{ super() | held | replace('<html>', '<html lang="en">', 1)
           | replace('</head>', resources.summary.head ~ '</head>', 1) }}
{%- endblock header -%}
{% block body %}
<body>
  <a name="top"></a>
  <div class="container">
    <div class="panel panel-default">
      <div class="panel-heading">{{ resources.summary.table }}</div>
      <div class="panel-body">
        <div id="notebook" class="border-box-sizing">
          <div class="container" id="notebook-container">{{ super.super() }}</div>
        </div>
      </div>
    </div>
  </div>
</body>
{%- endblock body %}
"""


class Grades(GetGrades):
    """nbgrader's step that fetches scores and comments; it then makes the table of them."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Put the table into ``resources``."""
        nb, resources = super().preprocess(nb, resources)
        names = resources["nbgrader"]
        names["came"] = self._came(names)
        resources["summary"] = {
            "head": '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{STYLE}</style>",
            "table": summary(nb, names),
        }
        return nb, resources

    def _came(self, names: Mapping[str, str]) -> str:
        """When it was handed in, and by how much too late, in the class's zone; '' if unknown."""
        with Gradebook(names["db_url"]) as book:
            one = book.find_submission(names["assignment"], names["student"])
            when, due = one.timestamp, due_for(one.assignment.duedate, one.extension)
        if when is None:
            return ""
        shown = course_file.read(self.config.CourseDirectory.root).shown
        if due is None or when <= due:
            return f"Handed in {shown(when)}"
        late = course_file.late_by((when - due).total_seconds())
        return f"Handed in {shown(when)}, {late} (due {shown(due)})"


class FeedbackExporter(HTMLExporter):
    """nbconvert's exporter with nbgrader's template, the list at its top replaced by the table."""

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        """The page as its template gives it.

        nbconvert would parse it again, for images without a description: two thirds of the time.
        """
        _, resources = super().from_notebook_node(nb, resources, **more)
        return self._page, resources

    @property
    def template(self) -> Any:
        """What nbconvert asks to render the page: this exporter, which keeps it."""
        return self

    def render(self, **names: Any) -> str:
        """Render the page and keep it; there is nothing in it to read again."""
        self._page = self.environment.from_string(TEMPLATE).render(**names)
        return ""


class Pages:
    """The pages of feedback of a course."""

    def __init__(self, course: Course, handed: Collection[Handed]) -> None:
        self._course = course
        self.waiting: list[Handed] = []  # graded: their pages are to be made
        self.made: list[Handed] = []
        self.failed: dict[Handed, str] = {}  # why no page could be made
        self.ungraded = 0  # how many are not graded
        self.unsettled: list[Handed] = []  # those to be looked at again in the formgrader
        with Book(course) as book:
            counted = {lesson: book.counted(lesson) for lesson in {one.lesson for one in handed}}
        for one in handed:
            kept, found = course.kept(one), counted[one.lesson].get(one.student)
            if not course.autograded(one).is_file() or kept and kept.ungraded:
                self.ungraded += 1
            elif found is None:
                self.failed[one] = "it is not in the gradebook: run autograder grade"
            else:
                self.waiting.append(one)
                self.unsettled += [one] * found.unsettled

    def make(self) -> Iterator[int]:
        """Make the pages; yield how many are done by then.

        A page that cannot be made costs no other; an old one in its place is removed. Raises what
        is everyone's, as OSError where the disk is full; what was made is in its place.
        """
        exporter = _exporter(self._course)
        with usable(self._course):
            for done, one in enumerate(self.waiting, start=1):
                try:
                    _make(self._course, exporter, one)
                except Exception as error:
                    if isinstance(error, OSError) and error.errno in DISKS:
                        top = self._course.feedback(one).parents[3]
                        raise OSError(error.errno, error.strerror, str(top)) from error
                    self.failed[one] = failure("making it", error)
                else:
                    self.made.append(one)
                yield done
        for one in self.failed:
            self._course.feedback(one).unlink(missing_ok=True)


def _exporter(course: Course) -> Any:
    """What nbgrader's own command makes pages with."""
    config = course.config
    step = GenerateFeedback(coursedir=CourseDirectory(config=config), config=config, log=LOG)
    exporter = step.exporter_class(parent=step, config=step.config)
    for preprocessor in step.preprocessors:
        exporter.register_preprocessor(preprocessor)
    return exporter


def _make(course: Course, exporter: Any, one: Handed) -> None:
    """Make a page; beside it lie the two files that nbgrader needs there, and no other."""
    notebook, page = course.autograded(one), course.feedback(one)
    names = {"student": one.student, "assignment": one.lesson, "notebook": one.lesson}
    resources = {"unique_key": one.lesson, "nbgrader": {**names, "db_url": course.db_url}}
    html, _ = exporter.from_filename(str(notebook), resources)
    beside = [(notebook.parent / name).read_bytes() for name in records.NAMES]
    page.parent.mkdir(parents=True, exist_ok=True)
    for name, content in zip(records.NAMES, beside, strict=True):
        write_aside(page.parent / name, content)
    write_aside(page, html.encode())
