"""``autograder leaderboard``: measure and rank the settings that a class chose."""

import argparse

from autograder import lessons
from autograder.commands import add_shared
from autograder.grading.classroom.folders import Course
from autograder.leaderboard import rendering
from autograder.leaderboard.board import TASKS, Board

DESCRIPTION = (
    "Read the dict `leaderboard` in each notebook that was handed in for lesson 11, 12, 13, 14 or "
    "16, train or decode with its settings on three seeds and rank them by what they achieve on "
    "data that were held out. "
    "Nothing of the students' is run: settings are plain data. What is measured is kept, so only "
    "new settings are run. Writes class/leaderboard/LESSON.html and LESSON.csv, with the names "
    "that students gave their entries."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", metavar="LESSON", help="number or name of the lesson")
    add_shared(parser, "--course")


def run(options: argparse.Namespace) -> int:
    """Write the board; exit status 0 also where entries were refused: the page says why."""
    course = Course(options.course)
    (lesson,) = lessons.choose([options.lesson], course.lessons() or TASKS)
    board = Board(course, lesson)
    board.read()
    new = board.measure(lambda done, total: print(f"{done + 1} of {total} is measured", flush=True))
    rendering.write(board)
    entries = len(board.rows) - 1
    if entries or board.refused:
        print(f"{entries} entries, {new} measured now, {len(board.refused)} refused.")
    else:
        print(f"No notebook of {lesson} has an entry yet: the lesson's own settings stand alone.")
    print(f"{board.folder}/{lesson}.html and {lesson}.csv")
    return 0
