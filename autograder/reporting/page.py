"""One page on a class, to be read or printed: what it earned and why points were lost."""

import html
import re
import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from autograder.files import write_aside
from autograder.grading.feedback import content_policy
from autograder.reporting import results
from autograder.reporting.faults import Fault
from autograder.reporting.results import Row, total

FAULTS = 20  # the most that are shown
HALF = 0.5  # who has less than this share of the points is listed
PAGES = Path(__file__).parent / "pages"
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
        points=_points,
        earned=_earned,
    )
    write_aside(path, made.encode())


def _of_rows(rows: list[Row]) -> dict[str, Any]:
    most, counts = total(rows[0])[1], results.spread(rows)
    limits = [f"{most * place / len(counts):g}" for place in range(len(counts) + 1)]
    few = [row for row in rows if total(row)[0] < HALF * total(row)[1]]
    return {
        "rows": rows,
        "most": most,
        "scores": [total(row)[0] for row in rows],
        "spread": list(zip(limits, limits[1:], counts, strict=False)),
        "exercises": [_exercise(rows, place) for place in range(len(rows[0]["exercises"]))],
        "in_need": sorted(few, key=lambda row: (total(row)[0], row["student"])),
        "lost": [one for one in results.table(rows) if one["score"] < one["max"]],
    }


def _exercise(rows: Sequence[Row], place: int) -> dict[str, Any]:
    """What became of an exercise: how many are right, right in part and so on, how hard it was."""
    parts = [row["exercises"][place] for row in rows]
    kinds = [results.kind(one) for one in parts]
    return {
        "name": parts[0]["name"],
        "counts": [kinds.count(kind) or "–" for kind in results.KINDS],
        "stages": results.lost_stages(parts).most_common(),
        "share": results.share_earned(rows, place),
    }


def _points(part: Row) -> str:
    """Points of points of an exercise, with a star where they were changed by hand."""
    return f"{part['score']:g} / {part['max']:g}" + "*" * ("automatic" in part)


def _earned(row: Row) -> str:
    """Points of points of a student's lesson, with a star where it was late."""
    score, most = total(row)
    return f"{score:g} / {most:g}" + "*" * bool(row.get("penalty"))


def _command(lesson: str, one: Fault) -> str:
    """The command that explains an answer."""
    number = lesson.partition("_")[0]
    return shlex.join(["autograder", "explain", number, one.exercise, "--student", one.of])


def _breakable(name: str) -> str:
    """A name as HTML that may be broken between its words, so that its column stays narrow."""
    return re.sub(r"(?<=_)(?=.)|(?<=[a-z])(?=[A-Z])", "<wbr>", html.escape(name))
