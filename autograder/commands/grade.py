"""``autograder grade``: grade what a class handed in, in a sandbox, on all cores."""

import argparse
import os
import sys
import warnings
from typing import Any

from autograder import CourseError
from autograder.commands import add_shared
from autograder.commands.support.lock import alone
from autograder.inside.limits import NONE, OWN
from autograder.sandbox import cgroup
from autograder.sandbox.bubblewrap import UnprotectedWarning, walls

DESCRIPTION = (
    "Grade the submissions in class/submitted/<student>/<lesson>/: students' code runs in a "
    "sandbox, the checks outside. Scores go into nbgrader's gradebook, graded notebooks and "
    "reasons into class/autograded/. What is graded is skipped until something changes that the "
    "result depends on; a run that was stopped is taken up by the next. The exit status is 0 if "
    "every submission has a score and a reason, and no work in class/submitted/ lies in "
    "a wrong place or is of nobody on the roster. With --preview, it is 0 if "
    "the preview covers every submission."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_shared(parser, "--lesson", "--student", "--section")
    add("--workers", type=int, metavar="N", help="submissions at a time (default: all cores)")
    add("--regrade", action="store_true", help="grade again what is graded and unchanged")
    add("--preview", action="store_true", help="say who would gain and lose points; change nothing")
    add_shared(parser, "--sandbox")
    add("--cluster", metavar="URL", help="send the work to this Dask scheduler, as tcp://host:8786")
    add_shared(parser, "--db-url", "--course")


def run(options: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    if options.course and not os.path.isdir(options.course):
        raise CourseError(f"there is no folder {options.course}: --course names it")
    warnings.showwarning = _warn
    needed = _walls(options)
    with _workers(options) as workers:
        # Slow to import; the workers start meanwhile.
        from autograder.commands.support.grading import take_turn
        from autograder.grading.classroom.folders import Course

        course = Course(options.course, options.db_url)
        with alone(course.root / "class"):
            return take_turn(course, workers, options, needed, _around(options, needed))


def _walls(options: argparse.Namespace) -> str:
    """Behind what a result must have been made to stay; says where there is less than asked for."""
    if options.cluster:  # its machines may have more or less than this one
        return OWN if options.sandbox == "required" else NONE
    return walls(options.sandbox)  # refuses or warns before any work is begun


def _around(options: argparse.Namespace, needed: str) -> str:
    """What stands around students' code, as a sentence; '' where other machines run it."""
    if options.cluster:
        return ""
    where = "without a sandbox" if needed == NONE else "in a sandbox of bubblewrap"
    groups = f"keep the limits of {cgroup.kept()}" if cgroup.kept() else "are not to be had here"
    return f"Students' code runs {where}; control groups {groups}."


def _workers(options: argparse.Namespace) -> Any:
    if options.cluster:
        from autograder.grading.running.cluster import Cluster

        return Cluster(options.cluster)
    from autograder.grading.running.pool import Pool

    return Pool(max(1, options.workers or cores()))


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, UnprotectedWarning):  # the rest is nbgrader's and no one's concern
        print(f"WARNING: {message}", file=sys.stderr, flush=True)
