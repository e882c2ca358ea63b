"""The page that a student reads after grading: nbgrader's own, with a table at its top.

``nbgrader generate_feedback``, the formgrader's button and ``autograder feedback`` all make it, by
two settings of nbgrader's GenerateFeedback: its exporter, and the step that fetches the grades.
"""

import hashlib
import importlib.metadata
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import GetGrades
from nbgrader.utils import is_grade, is_solution, is_task

from autograder import cell_metadata
from autograder.grading.classroom.deadline_extensions import due_for
from autograder.grading.feedback.score_table import STYLE, summary
from autograder.grading.notebook import nbgrader_files
from autograder.grading.notebook.submission import read_bytes
from autograder.term import course_file

# nbgrader's template names a list of "Test cell"s where this one has the table. What stands in its
# block `body` around the notebook is kept; super.super() is the notebook itself.
TEMPLATE = """
{%- extends 'index.html.j2' -%}
{%- block header -%}
{{ super() | held | replace('<html>', '<html lang="en">', 1)
           | replace('<head>', '<head>' ~ resources.autograder.first, 1)
           | replace('</head>', resources.autograder.last ~ '</head>', 1) }}
{%- endblock header -%}
{% block body %}
<body>
  <a name="top"></a>
  <div class="container">
    <div class="panel panel-default">
      <div class="panel-heading">{{ resources.autograder.table }}</div>
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
MADE_OF = re.compile(r"made-of:([0-9a-f]{64})")
START = 2000  # characters of a page in which it says what it was made of
MAX_PAGE = 200 * 2**20
PARTS = (
    *(f"feedback/{name}" for name in ("content_policy", "exporter", "score_table")),
    "notebook/student_text",
    "classroom/item_analysis",
)


class Grades(GetGrades):
    """nbgrader's step that fetches scores and comments; it then makes the table of them."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Put the table and what the page is made of into ``resources``."""
        nb, resources = super().preprocess(nb, resources)
        names = resources["nbgrader"]
        names["due"] = self._due(names) if names["late_penalty"] else ""
        late = names["late_penalty"], names["due"]
        found = fingerprint(resources["autograder"]["files"], *_said(nb), *late)
        resources["autograder"] |= {
            "first": f'<meta name="generator" content="made-of:{found}">',
            "last": '<meta name="viewport" content="width=device-width, initial-scale=1">'
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

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        """Convert the file; what it holds now is what the page says that it was made of."""
        resources = {**(resources or {}), "autograder": {"files": files(Path(filename))}}
        return super().from_filename(filename, resources, **more)

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


def files(notebook: Path) -> str:
    """A digest of a graded notebook and of its companions."""
    texts = [notebook.read_bytes(), *beside(notebook.parent)]
    return hashlib.sha256(b"".join(hashlib.sha256(text).digest() for text in texts)).hexdigest()


def beside(folder: Path) -> list[bytes]:
    """What lies beside a graded notebook and its page for nbgrader: see ``nbgrader_files``."""
    return [
        read_bytes(folder / name, nbgrader_files.MAX_BYTES) or b"" for name in nbgrader_files.NAMES
    ]


def fingerprint(
    files: str,
    scores: Mapping[str, tuple[float, float]],
    comments: Mapping[str, str | None],
    penalty: float,
    due: str,
) -> str:
    """The name of all that a page is made of: the same exactly where it would be made the same.

    files      see ``files``
    scores     by cell: points that count, and points there are
    comments   by cell
    due        when it was due, as the page says it beside a penalty
    """
    points = {name: [float(number) for number in pair] for name, pair in scores.items()}
    texts = {name: text or "" for name, text in comments.items()}
    parts = [files, points, texts, float(penalty), due, _makers()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _said(notebook: NotebookNode) -> tuple[dict[str, tuple[float, float]], dict[str, str | None]]:
    """Scores and comments of a notebook, as GetGrades put them in."""
    scores, comments = {}, {}
    for cell in notebook.cells:
        notes, name = cell.metadata.get("nbgrader", {}), cell_metadata.grade_id(cell)
        if is_grade(cell) or is_task(cell):
            scores[name] = (notes["score"], notes["points"])
        if is_solution(cell) or is_task(cell):
            comments[name] = notes.get("comment")
    return scores, comments


def made_of(page: Path) -> str:
    """The fingerprint that a page says, or ''."""
    text = (read_bytes(page, MAX_PAGE) or b"")[:START].decode(errors="replace")
    found = MADE_OF.search(text)
    return found[1] if found else ""


@cache
def _makers() -> list[str]:
    """What makes the page: our own files, and nbgrader and nbconvert by their versions."""
    grading = Path(__file__).parent.parent
    own = b"".join((grading / f"{name}.py").read_bytes() for name in PARTS)
    versions = [importlib.metadata.version(name) for name in ("nbgrader", "nbconvert")]
    return [hashlib.sha256(own).hexdigest(), *versions]
