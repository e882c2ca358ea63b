"""The page that a student reads after grading: nbgrader's own, with a table at its top.

``nbgrader generate_feedback``, the formgrader's button and ``autograder feedback`` all make it, by
two settings of nbgrader's GenerateFeedback: its exporter, and the step that fetches the grades.
"""

from collections.abc import Mapping
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import GetGrades

from autograder.grading.classroom.deadline_extensions import due_for
from autograder.grading.feedback.score_table import STYLE, summary
from autograder.term import course_file

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
        names["due"] = self._due(names) if names["late_penalty"] else ""
        resources["summary"] = {
            "head": '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{STYLE}</style>",
            "table": summary(nb, names),
        }
        return nb, resources

    def _due(self, names: Mapping[str, str]) -> str:
        """When the lesson was due for the student, in the class's zone and language, or ''."""
        with Gradebook(names["db_url"]) as book:
            one = book.find_submission(names["assignment"], names["student"])
            due = due_for(one.assignment.duedate, one.extension)
        return course_file.read(self.config.CourseDirectory.root).shown(due)


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
