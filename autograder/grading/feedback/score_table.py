"""The table at the top of a page of feedback: exercise, points, reason.

It is made of a graded notebook in which nbgrader's GetGrades has put the scores that count and the
comments. Everything in it is escaped, and MathJax is told to leave it alone: a reason may hold a
student's own words.
"""

import logging
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from nbgrader.utils import determine_grade, is_grade, is_solution, is_task

from autograder import cell_metadata
from autograder.grading.notebook.result import said

LOG = logging.getLogger("autograder.feedback")
NO_RESPONSE = "No response."  # nbgrader's own comment on a cell that was left as it was
STUB = "nothing here yet"  # how a check's message on an untouched function begins
NOT_DEFINED = "it is not defined."  # a check's message where the cell made nothing of this name
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
.anchor-link { display: none } #notebook a { color: #0b5394; text-decoration: underline }
#notebook a[href="#top"] { color: #fff } .highlight pre { background: #fff }
#notebook pre { white-space: pre-wrap; overflow-wrap: anywhere }
.rendered_html img { max-width: 100%; height: auto }
.problem { border-left: 4px solid #b3261e; padding: .4em .8em; margin: .5em 0 }
@media (max-width: 600px) {
  .container, .panel-body, .panel-heading, div#notebook { padding-left: 4px; padding-right: 4px }
  div#notebook { overflow-x: auto } div.prompt { display: none }
  .summary th, .summary td { padding: .3em }
}
@media print { .summary tr { page-break-inside: avoid } .summary a { color: inherit } }
"""


def summary(notebook: Any, grades: Mapping[str, Any]) -> str:
    """The table as HTML.

    notebook  graded, with scores and comments
    grades    nbgrader's resources: ``score`` and ``max_score`` of the notebook, ``late_penalty``,
              and ``came``, when it was handed in, in words, or ''
    """
    problem = cell_metadata.notes(notebook, "autograder").get("problem", "")
    answers = {cell_metadata.grade_id(cell): cell for cell in notebook.cells if is_solution(cell)}
    graded = [cell for cell in notebook.cells if is_grade(cell) or is_task(cell)]
    lines = [_line(cell, answers, problem) for cell in graded]
    heading = escape(str(grades["notebook"]))
    score = f"{_points(grades['score'])} / {_points(grades['max_score'])}"
    told = f'<p class="problem"><b>Not graded:</b> {escape(problem)}.</p>' if problem else ""
    return (
        '<header class="tex2jax_ignore mathjax_ignore">'
        f'<h1 class="h4">{heading} (Score: {score})</h1>'
        f'{told}<table class="summary"><caption>{CAPTION}</caption>'
        '<thead><tr><th scope="col">Exercise</th><th scope="col" class="points">Points</th>'
        f'<th scope="col">Reason</th></tr></thead><tbody>{"".join(lines)}</tbody>'
        f"<tfoot>{_foot(grades, score)}</tfoot></table></header>"
    )


def _line(cell: Any, answers: Mapping[str, Any], problem: str) -> str:
    """The row of one exercise; ``answers`` are the cells of solutions by their names."""
    check, name = cell_metadata.grade_id(cell), cell_metadata.exercise(cell)
    own = answers.get(check) or answers.get(name) or cell
    place = check if own is cell else f"comment-{cell_metadata.grade_id(own)}"
    score, most = cell.metadata.nbgrader["score"], cell.metadata.nbgrader["points"]
    kind = "full" if score >= most else "none" if score <= 0 else "part"
    return (
        f'<tr class="{kind}"><th scope="row"><a href="#{escape(place)}">'
        f"{_heading(cell_metadata.title(cell), name)}</a></th>"
        f'<td class="points">{_points(score)} / {_points(most)}</td>'
        f"<td>{''.join(_why(cell, own, problem))}</td></tr>"
    )


def _reason(cell: Any) -> str:
    """What the check said, or '': the lines that it left as an error, or, of an answer that earned
    a part of the points, what it printed, below what the answer itself may have printed."""
    outputs, name = cell.get("outputs", ()), cell_metadata.exercise(cell)
    errors = [one for one in outputs if one.get("output_type") == "error"]
    if errors:
        return "\n".join(errors[0].get("traceback", []))
    printed = "".join(one.get("text", "") for one in outputs if one.get("name") == "stdout")
    said_by = re.split(rf"^(?={re.escape(name)}: )", printed.rstrip(), flags=re.MULTILINE)[1:]
    return said_by[-1] if said_by and said_by[-1] != f"{name}: correct." else ""


def _heading(title: str, name: str) -> str:
    """The heading of its section, which names the function or is followed by its name."""
    shown = re.sub(r"`([^`]*)`", lambda found: _code(found[1]), escape(title))
    if f"`{name}`" in title:
        return shown
    return f"{shown} · {_code(escape(name))}" if title else _code(escape(name))


def _code(escaped: str) -> str:
    """A name that may break after each underscore, so that its column can be narrow."""
    return f"<code>{escaped.replace('_', '_<wbr>')}</code>"


def _why(cell: Any, own: Any, problem: str) -> list[str]:
    """Paragraphs: what the check said, the hint, a change by hand, a comment on the answer."""
    automatic = determine_grade(cell, LOG)[0]  # what the check gave
    score, most = cell.metadata.nbgrader["score"], cell.metadata.nbgrader["points"]
    parts, told = [], _reason(cell)
    if automatic is not None and automatic < most:
        skipped = _is_skipped(own, told, cell_metadata.exercise(cell))
        parts += ["not graded"] if problem else ["not attempted"] if skipped else _told(cell, told)
    elif automatic is not None and score >= most:
        parts += _told(cell, told) if told else ["correct"]
    if automatic is not None and score != automatic:
        was = f"{_points(automatic)} of {_points(most)}"
        parts.append(f"<b>Changed by your instructor:</b> the check gave {was}.")
    made = [f"<p>{part}</p>" for part in parts]
    comment = own.metadata.nbgrader.get("comment")
    if comment and comment != NO_RESPONSE:
        made.append(f'<p class="comment"><b>Comment:</b> {escape(comment)}</p>')
    return made


def _is_skipped(own: Any, told: str, name: str) -> bool:
    """Whether nothing is written yet, in none of a class's methods: a stub names its method."""
    what = said(told).what.removeprefix(f"{name}: ")
    untouched = what.startswith(STUB) and " in " not in what
    return (
        untouched
        or bool(cell_metadata.missing(own))
        or own.metadata.nbgrader.get("comment") == NO_RESPONSE
    )


def _told(cell: Any, told: str) -> list[str]:
    reason = said(told)
    text = reason.what.removeprefix(f"{cell_metadata.exercise(cell)}: ")
    if text == NOT_DEFINED and reason.got:  # that alone says what is to be mended: a syntax error
        text = f"{text.rstrip('.')}: {reason.got}"
    what = escape(text)
    link = f'<a href="#{escape(cell_metadata.grade_id(cell))}">the whole reason</a>'
    more = {"Likely": reason.likely, "Place": reason.place, "Costs": reason.costs}
    named = [f"<b>{label}:</b> {escape(text)}" for label, text in more.items() if text]
    return [f"{what} ({link})", *named]


def _foot(grades: Mapping[str, Any], score: str) -> str:
    penalty = grades.get("late_penalty") or 0
    came = escape(grades.get("came", "")) or ("Handed in late" if penalty else "")
    lines = {came: f"−{_points(penalty)}" if penalty else ""} if came else {}
    return "".join(
        f'<tr><th scope="row">{name}</th><td class="points">{points}</td><td></td></tr>'
        for name, points in {**lines, "Total": score}.items()
    )


def _points(number: float) -> str:
    """A number of points with at most two decimals."""
    return f"{round(float(number), 2):g}"
