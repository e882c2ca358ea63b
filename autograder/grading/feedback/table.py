"""The table at the top of a page of feedback: exercise, points, reason.

It is made of a graded notebook in which nbgrader's GetGrades has put the scores that count and the
comments. Everything in it is escaped, and MathJax is told to leave it alone: a reason may hold a
student's own words.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from nbgrader.utils import determine_grade, is_grade, is_solution, is_task

from autograder import marks
from autograder.grading.classroom.item_analysis import said

LOG = logging.getLogger("autograder.feedback")
NO_RESPONSE = "No response."  # nbgrader's own comment on a cell that was left as it was
STUB = "nothing here yet"  # how a check's message on an untouched function begins
CAPTION = "Points for each exercise, and why a point was lost"
STYLE = """
.summary { width: 100%; margin: .5em 0 1em; background: #fff; color: #1b1f24 }
.summary caption { color: #1b1f24; text-align: left; padding: .3em 0; font-size: 1.1em }
.summary th, .summary td { border: 1px solid #b8c0c8; padding: .4em .5em; text-align: left;
  vertical-align: top; font-weight: normal; overflow-wrap: anywhere }
.summary thead th, .summary tfoot th, .summary tfoot td { background: #f0f3f6; font-weight: bold }
.summary .points { text-align: right; white-space: nowrap; overflow-wrap: normal }
.summary .full .points { background: #e3f1e8 } .summary .part .points { background: #fdf3d3 }
.summary .none .points { background: #fbe5e1 }
.summary code { color: inherit; background: none; padding: 0; white-space: normal }
.summary a { color: #0b5394; text-decoration: underline; text-underline-offset: .25em }
.summary p { margin: 0 0 .4em } .summary p:last-child { margin: 0 }
.summary .comment { white-space: pre-line; width: auto; margin-top: 0 }
.rendered_html img { max-width: 100%; height: auto }
.problem { border-left: 4px solid #b3261e; padding: .4em .8em; margin: .5em 0 }
@media (max-width: 600px) {
  .container, .panel-body, .panel-heading, div#notebook { padding-left: 4px; padding-right: 4px }
  div#notebook { overflow-x: auto } div.prompt { display: none }
  .summary th, .summary td { padding: .3em }
}
@media print { .summary tr { page-break-inside: avoid } .summary a { color: inherit } }
"""


class Row(NamedTuple):
    """One exercise. ``automatic`` is what its check gave; ``score`` is what counts."""

    title: str
    name: str
    answer: str  # where in the page the answer stands
    check: str  # where the whole reason stands
    score: float
    most: float
    automatic: float | None
    reason: str
    skipped: bool
    comment: str


def summary(notebook: Any, grades: Mapping[str, Any]) -> str:
    """The table as HTML.

    notebook  graded, with scores and comments
    grades    nbgrader's resources: ``score`` and ``max_score`` of the notebook, ``late_penalty``
    """
    about = notebook.metadata.get("autograder", {})
    problem = about.get("problem", "")
    lines = [_line(row, problem) for row in rows(notebook.cells)]
    heading = escape(str(grades["notebook"]))
    score = f"{_points(grades['score'])} / {_points(grades['max_score'])}"
    told = f'<p class="problem"><b>Not graded:</b> {escape(problem)}.</p>' if problem else ""
    return (
        f'<div class="tex2jax_ignore mathjax_ignore"><h1 class="h4">{heading} (Score: {score})</h1>'
        f'{told}<table class="summary"><caption>{CAPTION}</caption>'
        '<thead><tr><th scope="col">Exercise</th><th scope="col" class="points">Points</th>'
        f'<th scope="col">Reason</th></tr></thead><tbody>{"".join(lines)}</tbody>'
        f"<tfoot>{_foot(grades, score)}</tfoot></table></div>"
    )


def rows(cells: Sequence[Any]) -> list[Row]:
    """The exercises of a graded notebook in order."""
    answers = {marks.grade_id(cell): cell for cell in cells if is_solution(cell)}
    return [_row(cell, answers) for cell in cells if is_grade(cell) or is_task(cell)]


def _row(cell: Any, answers: Mapping[str, Any]) -> Row:
    check, name = marks.grade_id(cell), marks.exercise(cell)
    own = answers.get(check) or answers.get(name) or cell
    notes = cell.metadata.nbgrader
    comment = own.metadata.nbgrader.get("comment") or ""
    told = _reason(cell, name)
    reason = said(told)
    untouched = reason.what.removeprefix(f"{name}: ").startswith(STUB)
    return Row(
        title=marks.title(cell),
        name=name,
        answer=f"comment-{marks.grade_id(own)}" if own is not cell else check,
        check=check,
        score=notes["score"],
        most=notes["points"],
        automatic=determine_grade(cell, LOG)[0],
        reason=told,
        # Of a class, one method may be written and the next not: 'write about 1 line in forward'.
        skipped=comment == NO_RESPONSE
        or marks.is_missing(own)
        or untouched
        and " in " not in reason.what,
        comment="" if comment == NO_RESPONSE else comment,
    )


def _reason(cell: Any, name: str) -> str:
    """What the check said, or '': the lines that it left as an error, or, of an answer that earned
    a part of the points, what it printed, below what the answer itself may have printed."""
    outputs = cell.get("outputs", ())
    errors = [one for one in outputs if one.get("output_type") == "error"]
    if errors:
        return "\n".join(errors[0].get("traceback", []))
    printed = "".join(one.get("text", "") for one in outputs if one.get("name") == "stdout")
    said_by = re.split(rf"^(?={re.escape(name)}: )", printed.rstrip(), flags=re.MULTILINE)[1:]
    return said_by[-1] if said_by and said_by[-1] != f"{name}: correct." else ""


def _line(row: Row, problem: str) -> str:
    kind = "full" if row.score >= row.most else "none" if row.score <= 0 else "part"
    points = f"{_points(row.score)} / {_points(row.most)}"
    return (
        f'<tr class="{kind}"><th scope="row"><a href="#{escape(row.answer)}">{_heading(row)}</a>'
        f'</th><td class="points">{points}</td><td>{"".join(_why(row, problem))}</td></tr>'
    )


def _heading(row: Row) -> str:
    """The heading of its section, which names the function or is followed by its name."""
    name, title = _code(row.name), escape(row.title)
    title = re.sub(r"`([^`]*)`", lambda found: _code(found[1], escaped=True), title)
    if f"`{row.name}`" in row.title:
        return title
    return f"{title} · {name}" if title else name


def _code(name: str, escaped: bool = False) -> str:
    """A name that may break after each underscore, so that its column can be narrow."""
    return "<code>" + (name if escaped else escape(name)).replace("_", "_<wbr>") + "</code>"


def _why(row: Row, problem: str) -> list[str]:
    """Paragraphs: what the check said, the hint, a change by hand, a comment."""
    parts = []
    if row.automatic is not None and row.automatic < row.most:
        parts += ["not graded"] if problem else ["not attempted"] if row.skipped else _told(row)
    elif row.automatic is not None and row.score >= row.most:
        parts += _told(row) if row.reason else ["correct"]
    if row.automatic is not None and row.score != row.automatic:
        was = f"{_points(row.automatic)} of {_points(row.most)}"
        parts.append(f"<b>Changed by your instructor:</b> the check gave {was}.")
    made = [f"<p>{part}</p>" for part in parts]
    if row.comment:
        made.append(f'<p class="comment"><b>Comment:</b> {escape(row.comment)}</p>')
    return made


def _told(row: Row) -> list[str]:
    reason = said(row.reason)
    what = escape(reason.what.removeprefix(f"{row.name}: "))
    link = f'<a href="#{escape(row.check)}">the whole reason</a>'
    more = {"Likely": reason.likely, "Costs": reason.costs}
    named = [f"<b>{label}:</b> {escape(text)}" for label, text in more.items() if text]
    return [f"{what} ({link})", *named]


def _foot(grades: Mapping[str, Any], score: str) -> str:
    penalty = grades.get("late_penalty") or 0
    lines = {"Handed in late": f"−{_points(penalty)}"} if penalty else {}
    return "".join(
        f'<tr><th scope="row">{name}</th><td class="points">{points}</td><td></td></tr>'
        for name, points in {**lines, "Total": score}.items()
    )


def _points(number: float) -> str:
    """A number of points with at most two decimals."""
    return f"{round(float(number), 2):g}"
