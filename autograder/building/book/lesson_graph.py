"""The drawing of which lesson needs which: a list with arcs, as SVG that a page contains.

It takes its colours from the page, light or dark, and its text is as large as the page's own.
"""

from collections.abc import Callable, Collection, Mapping
from html import escape

from autograder.building.book.chapters import Chapter

ROW, LEFT, WIDTH = 32, 104, 352  # in px: height of a lesson's line, room for arcs, all of it
REACH, NEAREST = 15, 5  # how far an arc bends out for each line between its ends, and at least


def arcs(
    chapters: Mapping[int, Chapter],
    needs: Mapping[int, Collection[int]],
    address: Callable[[int], str],
) -> str:
    """SVG of the lessons below each other, and an arc from each to every one that needs it.

    needs    the numbers that a lesson needs, by its number
    address  where the page of a lesson is, or '' if it is not in the book

    An arc is dashed where the lesson's head says so, but its code does not build on the other's.
    """
    rows = {number: index for index, number in enumerate(sorted(chapters))}
    height = ROW * len(rows)
    lines = [
        f'<svg class="path" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' role="group" aria-label="Which lesson needs which: the table below says the same">'
    ]
    for number in rows:
        for one in sorted(needs[number]):
            kind = "built" if one in chapters[number].builds else "stated"
            lines.append(_arc(rows[one], rows[number], kind))
    lines += [_label(chapters[number], rows[number], address(number)) for number in rows]
    return "\n".join([*lines, "</svg>"])


def _arc(first: int, last: int, kind: str) -> str:
    start, end = (ROW * row + ROW / 2 for row in (first, last))
    out = LEFT - NEAREST - REACH * (last - first)
    path = f"M {LEFT} {start:g} C {out} {start:g} {out} {end:g} {LEFT} {end:g}"
    return f'<path class="{kind}" d="{path}"/>'


def _label(chapter: Chapter, row: int, address: str) -> str:
    middle, words = ROW * row + ROW / 2, f"{chapter.number:02} {escape(chapter.name)}"
    words = f'<text x="{LEFT + 14}" y="{middle + 5:g}">{words}</text>'
    if address:
        words = f'<a href="{escape(address)}">{words}</a>'
    return f'<circle cx="{LEFT}" cy="{middle:g}" r="4.5"/>{words}'
