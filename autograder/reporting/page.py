"""One page on a class, to be read or printed: what it earned and why points were lost.

And a table for programs, with the same columns of each hand-in.
"""

import csv
import html
import re
import shlex
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from autograder.files import write_aside
from autograder.grading.feedback import content_policy
from autograder.grading.notebook.result import harmless
from autograder.reporting import results
from autograder.reporting.faults import Fault
from autograder.reporting.results import Row

FAULTS = 20  # the most that are shown
HALF = 0.5  # who has less than this share of the points is listed
PAGES = Path(__file__).parent / "pages"


class Column(NamedTuple):
    """A column: what it is called, what it says of a hand-in, and its class in the style sheet."""

    head: str
    cell: Callable[[Row], str]
    kind: Callable[[Row], str] = lambda row: ""


# What is said of each hand-in, on the page and in the table: whatever else shall be is a line here.
HAND_IN = (
    Column("student", lambda row: row.student),
    Column("handed in", lambda row: f"{row.handed_in:%Y-%m-%d %H:%M %Z}" if row.handed_in else ""),
    Column("minutes late", lambda row: f"{row.minutes_late or ''}"),
)
STYLE = (PAGES / "style.css").read_text(encoding="utf-8")


def write_html(
    rows: Iterable[Row],
    path: Path,
    faults: Mapping[str, Sequence[Fault]],
    absent: Mapping[str, Sequence[str]],
) -> None:
    """Write the page of ``rows`` (see ``results``).

    ``faults`` and ``absent``, who of the roster handed in nothing, are by lesson.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGES),
        autoescape=True,  # all text of students'
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    shown = []
    for lesson, every in results.by_lesson(rows).items():
        usual, others = results.of_one_version(every)
        about = {"faults": faults.get(lesson, ()), "absent": absent.get(lesson, ())}
        shown.append({"name": lesson, "others": others, **about, **_of_rows(usual)})
    made = environment.get_template("class.html.j2").render(
        style=STYLE,
        policy=content_policy.of_page(STYLE),
        lessons=shown,
        kinds=results.KINDS,
        most_faults=FAULTS,
        median=statistics.median,
        command=_command,
        earned=_earned,
    )
    write_aside(path, made.encode())


def _of_rows(rows: list[Row]) -> dict[str, Any]:
    most, counts = rows[0].most, results.spread(rows)
    limits = [f"{most * place / len(counts):g}" for place in range(len(counts) + 1)]
    few = [row for row in rows if row.score < HALF * row.most]
    places = range(len(rows[0].exercises))
    return {
        "rows": rows,
        "most": most,
        "scores": [row.score for row in rows],
        "spread": list(zip(limits, limits[1:], counts, strict=False)),
        "exercises": [_exercise(rows, place) for place in places],
        "in_need": sorted(few, key=lambda row: (row.score, row.student)),
        "columns": [
            *HAND_IN,
            *(_points(rows[0].exercises[place]["name"], place) for place in places),
            Column("total", _earned, lambda row: "number"),
        ],
        "lost": [one for one in table(rows) if one["score"] < one["max"]],
    }


def table(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """A line for each student and exercise: what its check said, and the columns of HAND_IN.

    A late penalty has a line of its own, so that the scores sum up to what counts.
    """
    for row in rows:
        late = {"name": "late penalty", "score": -round(row.penalty, 4), "max": 0, "automatic": 0}
        late_too = [late | {"reason": "handed in late"}] * bool(row.penalty)
        for part in [*row.exercises, *late_too]:
            line = {"student": row.student, "lesson": row.lesson, "exercise": part["name"]}
            line |= {name: part[name] for name in ("score", "max", "reason")}
            line["automatic"] = part.get("automatic", part["score"])
            yield line | {one.head.replace(" ", "_"): one.cell(row) for one in HAND_IN}


def write_csv(rows: Iterable[Row], path: Path) -> None:
    """Write the table of some rows; what a student wrote in it is no formula."""
    lines = [*table(rows)]
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, lines[0])
        writer.writeheader()
        for line in lines:
            cells = line.items()
            writer.writerow({one: harmless(x) if isinstance(x, str) else x for one, x in cells})


def _exercise(rows: Sequence[Row], place: int) -> dict[str, Any]:
    """What became of an exercise: how many are right, right in part and so on, how hard it was."""
    parts = [row.exercises[place] for row in rows]
    kinds = [results.kind(one) for one in parts]
    return {
        "name": parts[0]["name"],
        "counts": [kinds.count(kind) or "–" for kind in results.KINDS],
        "stages": results.lost_stages(parts).most_common(),
        "share": results.share_earned(rows, place),
    }


def _points(name: str, place: int) -> Column:
    """The points of points of an exercise, with a star where they were changed by hand."""

    def told(row: Row) -> tuple[str, str]:
        part = row.exercises[place]
        score, most = part["score"], part["max"]
        kind = "full" if score >= most else "none" if score == 0 else "part"
        return f"{score:g} / {most:g}" + "*" * ("automatic" in part), f"number {kind}"

    return Column(name, lambda row: told(row)[0], lambda row: told(row)[1])


def _earned(row: Row) -> str:
    """Points of points of a student's lesson, with a star where it was late."""
    return f"{row.score:g} / {row.most:g}" + "*" * bool(row.penalty)


def _command(lesson: str, one: Fault) -> str:
    """The command that explains an answer."""
    number = lesson.partition("_")[0]
    return shlex.join(["autograder", "explain", number, one.exercise, "--student", one.of])


def _breakable(name: str) -> str:
    """A name as HTML that may be broken between its words, so that its column stays narrow."""
    return re.sub(r"(?<=_)(?=.)|(?<=[a-z])(?=[A-Z])", "<wbr>", html.escape(name))
