"""A board as a page and as a table."""

import csv
import html
import io

from attention.provided.files import write_aside
from autograder.grading.classroom.spreadsheet import harmless
from autograder.grading.feedback import content_policy
from autograder.leaderboard.board import LIBRARY, SEEDS, Board, Row
from autograder.reporting import drawings
from autograder.reporting.layout import STYLE, figure, table


def write(board: Board) -> None:
    """Write LESSON.html and LESSON.csv into the board's folder."""
    board.folder.mkdir(parents=True, exist_ok=True)
    write_aside(board.folder / f"{board.lesson}.html", _page(board).encode())
    write_aside(board.folder / f"{board.lesson}.csv", _table(board).encode())


def _page(board: Board) -> str:
    title = f"Leaderboard · {board.lesson}"
    unit, size = board.task.UNIT, board.task.SIZE
    head = ["place", "entry", "mean", "lowest", "highest", size, "seconds", "what is changed"]
    lines = [_line(head, "th")]
    for place, row in enumerate(board.rows, start=1):
        scores = [row.mean, min(row.scores), max(row.scores)]
        numbers = [f"{100 * score:.1f}{unit}" for score in scores]
        numbers += [f"{row.size}", f"{row.seconds:g}"]
        lines.append(_line([f"{place}", row.name, *numbers, _changed(row, board)]))
    drawn = drawings.ranges(
        [(row.name, row.scores) for row in board.rows], f"Dots: {board.task.MEASURE}.", unit
    )
    refused = "".join(
        f"<li><b>{html.escape(name)}</b>: {html.escape(why)}.</li>" for name, why in board.refused
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8>{content_policy.of_page(STYLE)}"
        f"<title>{title}</title>"
        f"<style>{STYLE}</style><h1>{title}</h1><p>Ranked by {board.task.MEASURE}. "
        f"Budget: {board.task.BUDGET}. Every entry was measured on {len(SEEDS)} seeds.</p>"
        + figure(drawn, "Each dot is a seed. Entries whose dots overlap may be equally good.")
        + table("".join(lines), "Entries, the best first")
        + (f"<h3>Refused</h3><ul>{refused}</ul>" if refused else "")
    )


def _line(cells: list[str], kind: str = "td") -> str:
    row = "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells)
    return f"<tr>{row}</tr>"


def _changed(row: Row, board: Board) -> str:
    usual = board.task.USUAL
    changed = [f"{key} {value}" for key, value in row.settings.items() if value != usual[key]]
    return ", ".join(changed) or ("" if row.name == LIBRARY else "nothing")


def _table(board: Board) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream)
    seeds = [f"seed {seed}" for seed in SEEDS]
    writer.writerow(
        ["place", "entry", "mean", *seeds, board.task.SIZE, "seconds", *board.task.USUAL]
    )
    for place, row in enumerate(board.rows, start=1):
        measured = [round(score, 4) for score in (row.mean, *row.scores)]
        words = [place, harmless(row.name), *measured, row.size, row.seconds]
        writer.writerow([*words, *row.settings.values()])
    return stream.getvalue()
