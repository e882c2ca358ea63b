"""What became of each exercise in a class: one table of its report."""

import html
from collections.abc import Sequence
from typing import Any

from autograder.grading.classroom import item_analysis
from autograder.reporting import layout

NOTE = (
    "<p>“Right, without care” would fail on a GPU, say. “In part”: some stages of the exercise are "
    "earned; beside it stands how often each was lost. “Not attempted”: nothing, or not all, is "
    "written, or the notebook cannot be read. “Goes with the rest” is the correlation of an "
    "exercise’s points with all others’: near 0, look at the exercise.</p>"
)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """How many are right, careless, right in part and so on, how hard it was, what it goes with."""
    heads = [*item_analysis.KINDS, "stages lost", "share of its points", "goes with the rest"]
    lines = [layout.line("exercise", heads, "th")]
    for place, part in enumerate(rows[0]["exercises"]):
        own = [row["exercises"][place] for row in rows]
        kinds = [item_analysis.kind(one) for one in own]
        counts = [f"<td>{kinds.count(kind) or '–'}</td>" for kind in item_analysis.KINDS]
        apart = item_analysis.discrimination(rows, place)
        ends = (
            f"{item_analysis.share_earned(rows, place):.2f}",
            "–" if apart is None else f"{apart:+.2f}",
        )
        cells = [
            f"<td>{layout.breakable(part['name'])}</td>",
            *counts,
            f"<td class=said>{_stages(own)}</td>",
            *(f"<td>{end}</td>" for end in ends),
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return layout.table("".join(lines), "What became of each exercise") + NOTE


def _stages(parts: Sequence[dict[str, Any]]) -> str:
    """The stages that were lost, each with how often, the most frequent first."""
    found = item_analysis.lost_stages(parts).most_common()
    return "<br>".join(f"{html.escape(name)}: {count}" for name, count in found) or "–"
