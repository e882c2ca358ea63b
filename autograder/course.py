"""The nbgrader configuration of the course, for nbgrader_config.py and for our own commands."""

import contextlib
import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from nbconvert.preprocessors import TagRemovePreprocessor
from nbformat import NotebookNode
from nbgrader import preprocessors as steps
from nbgrader.preprocessors import ClearSolutions, NbGraderPreprocessor
from traitlets.config import Config

from autograder import CourseError, cell_metadata, validation
from autograder.settings import COURSE
from autograder.term import class_notebooks, course_file

# The grading reads this configuration, so what nbgrader is to call of it is named, not imported.
GRADING = "autograder.grading"
FEEDBACK = f"{GRADING}.feedback"
TEMPLATE = Path(__file__).parent / "grading" / "feedback" / "templates" / "submission.html.j2"
STUB = "raise NotImplementedError"


class StubSolutions(ClearSolutions):
    """nbgrader's ClearSolutions, with a stub that says what to write.

    The words come from the opening mark: ``### BEGIN SOLUTION softmax: write about 3 lines``.
    """

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        labels = re.findall(rf"{self.begin_solution_delimeter} ?(.*)", cell.source)
        replaced = super()._replace_solution_region(cell, language)
        if replaced and language == "python":
            words = (json.dumps(label, ensure_ascii=False) if label else "" for label in labels)
            stub = re.escape(self.code_stub[language])
            cell.source = re.sub(stub, lambda _: f"{STUB}({next(words)})", cell.source)
        return bool(replaced)


class ForgetBuild(NbGraderPreprocessor):
    """Drop what `autograder build` notes in a solved notebook to know whether to run it again."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Keep of the build's metadata only which lesson this is."""
        for note in ("digest", "outputs"):
            nb.metadata.get("autograder", {}).pop(note, None)
        return nb, resources


GENERATE = [
    steps.IncludeHeaderFooter,
    TagRemovePreprocessor,
    steps.LockCells,
    StubSolutions,
    ForgetBuild,
    steps.ClearOutput,
    steps.CheckCellMetadata,
    steps.ComputeChecksums,
    steps.SaveCells,
    steps.ClearHiddenTests,
    steps.ClearMarkScheme,
    steps.ComputeChecksums,
    steps.CheckCellMetadata,
]


def configure(c: Config, root: Path | str) -> Config:
    """Set up nbgrader's configuration ``c`` for the course whose folder is ``root``.

    Raises SystemExit where class/course.toml is not understood: of any other error nbgrader would
    only tell, and grade without this configuration.
    """
    _find_alembic()
    try:
        choices = course_file.read(root)
        source = class_notebooks.source_folder(choices, Path(root))
    except CourseError as error:
        raise SystemExit(str(error)) from None
    # The answers to open questions stand in solutions/ only.
    c.TagRemovePreprocessor.enabled = True
    c.TagRemovePreprocessor.remove_cell_tags = {cell_metadata.ANSWER}
    c.CourseDirectory.course_id = COURSE.name
    c.CourseDirectory.root = str(root)
    c.CourseDirectory.source_directory = source
    c.CourseDirectory.release_directory = "lessons"
    c.CourseDirectory.submitted_directory = "class/submitted"
    c.CourseDirectory.autograded_directory = "class/autograded"
    c.CourseDirectory.feedback_directory = "class/feedback"
    c.CourseDirectory.solution_directory = "class/solution"
    c.CourseDirectory.db_url = f"sqlite:///{root}/class/gradebook.db"
    exchange = Path(root) / "class" / "exchange"
    with contextlib.suppress(OSError):  # nbgrader would go on without this configuration
        exchange.mkdir(parents=True, exist_ok=True)  # formgrader warns where it is missing
    c.Exchange.root = str(exchange)
    c.ClearSolutions.code_stub = {"python": f"{STUB}()"}
    c.GenerateAssignment.preprocessors = GENERATE
    c.GenerateFeedback.exporter_class = f"{FEEDBACK}.exporter.FeedbackExporter"
    c.GenerateFeedback.preprocessors = [
        f"{FEEDBACK}.exporter.Grades",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    # nbgrader sees new work, but not a score or a comment that a person changed in the gradebook.
    c.GenerateFeedback.force = True
    if choices.late is not None:
        c.AssignLatePenalties.plugin_class = "autograder.term.late_rule.LateRule"
    validation.configure(c)
    _grade_in_sandbox(c)
    _hold_students_html(c)
    c.NbGraderAPI.timezone = "UTC"
    return c


def _grade_in_sandbox(c: Config) -> None:
    """Make ``nbgrader autograde`` and the formgrader's button grade as `autograder grade` does."""
    c.Autograde.exporter_class = f"{GRADING}.nbgrader_steps.TolerantExporter"
    c.Autograde.sanitize_preprocessors = [
        f"{GRADING}.nbgrader_steps.Assemble",
        "nbgrader.preprocessors.OverwriteCells",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.Autograde.autograde_preprocessors = [
        f"{GRADING}.nbgrader_steps.RunInSandbox",
        "nbgrader.preprocessors.LimitOutput",
        "nbgrader.preprocessors.SaveAutoGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    # nbgrader's own gradebook makes SQLAlchemy warn of objects that are added a line later.
    warnings.filterwarnings("ignore", "Object of type <Submitted.*> not in session")


def _hold_students_html(c: Config) -> None:
    """A student's prose and names are text wherever nbgrader makes HTML, in formgrader as well."""
    c.HTMLExporter.template_file = TEMPLATE.name
    c.HTMLExporter.extra_template_paths = [str(TEMPLATE.parent)]
    c.HTMLExporter.filters = {
        "markdown2html": f"{GRADING}.notebook.student_text.markdown_to_html",
        "highlight_code": f"{GRADING}.notebook.student_text.code_to_html",
        "held": f"{FEEDBACK}.content_policy.held",
    }
    c.HTMLExporter.preprocessors = [f"{FEEDBACK}.content_policy.EscapeNames"]


def _find_alembic() -> None:
    """nbgrader runs ``alembic`` by name: find it also where the environment is not activated."""
    programs = str(Path(sys.executable).parent)
    if programs not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([programs, os.environ.get("PATH", "")])
