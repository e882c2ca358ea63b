"""A board as a page and as a table."""

import csv
import io

from attention.provided.files import write_aside
from autograder.grading.classroom.formula_escaping import harmless
from autograder.leaderboard.board import LIBRARY, SEEDS, Board, Row
from autograder.reporting import charts, layout


def write(board: Board) -> None:
    """Write LESSON.html and LESSON.csv into the board's folder."""
    board.folder.mkdir(parents=True, exist_ok=True)
    write_aside(board.folder / f"{board.lesson}.html", _page(board))
    write_aside(board.folder / f"{board.lesson}.csv", _table(board).encode())


def _page(board: Board) -> bytes:
    rows, task = board.rows, board.task
    shares = [(row.name, row.scores) for row in rows]
    return layout.page(
        "leaderboard.html.j2",
        f"Leaderboard · {board.lesson}",
        task=task,
        seeds=len(SEEDS),
        drawn=charts.ranges(shares, f"Dots: {task.MEASURE}.", task.UNIT),
        lines=[[place, *_line(row, board)] for place, row in enumerate(rows, start=1)],
        refused=board.refused,
    )


def _line(row: Row, board: Board) -> list[str]:
    scores = [row.mean, min(row.scores), max(row.scores)]
    shown = [f"{100 * score:.1f}{board.task.UNIT}" for score in scores]
    usual = board.task.USUAL
    changed = [f"{key} {value}" for key, value in row.settings.items() if value != usual[key]]
    words = ", ".join(changed) or ("" if row.name == LIBRARY else "nothing")
    return [row.name, *shown, f"{row.size}", f"{row.seconds:g}", words]


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
