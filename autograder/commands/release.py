"""``autograder release``: what students get, as a folder or a zip."""

import argparse

from autograder.lessons import OWN
from autograder.releasing.write import release

DESCRIPTION = (
    "Write a folder, or a zip if the name ends in .zip, with the notebooks of the lessons, the "
    "library of the lessons before them, the checks, the data and a page for students, and search "
    "all of it for lines of solutions. In a folder that holds an earlier release, notebooks that "
    "somebody worked in stay as they are."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "number or name, as in 01 or kernel_regression"
    parser.add_argument("lessons", nargs="+", metavar="LESSON", help=words)
    parser.add_argument("--to", required=True, metavar="FOLDER|ZIP", help="what to write")
    words = "also where it holds solutions of lessons that are not due yet"
    parser.add_argument("--early", action="store_true", help=words)


def run(options: argparse.Namespace) -> int:
    """Write; exit status 0."""
    print("Recording what answers reply, and searching for lines of solutions …", flush=True)
    done = release(options.lessons, options.to, options.early)
    size = f"{done.count} files, {done.size / 2**20:.1f} MiB"
    print(f"{options.to}: {', '.join(done.lessons)}; {size}")
    print(f"Searched for {done.secrets} lines of solutions: none is there.")
    for slug in done.lessons:
        if slug >= OWN:
            print(
                f"{slug} comes after all lessons of the course, so this holds the library that "
                "solves them: hand it out when those that you grade are over."
            )
    for path in done.kept:
        print(f"{path} was worked in and stays as it is")
    return 0
