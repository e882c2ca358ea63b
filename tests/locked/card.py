"""The truth card: what the grading says of answers that it has never seen.

python -m tests.locked [LESSON …] [--every N] [--details FILE] [--check]
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
import warnings
import zlib
from pathlib import Path

from autograder.building.lesson import find

FOLDER = Path(__file__).parent
CARD, JUDGED = FOLDER / "card.json", FOLDER / "judged.json"
SEED = 11
COLUMNS = ("wrong", "rejected", "told", "named", "false", "unjudged", "right", "accepted")


def measure(lesson, every=1):
    """Pair (row of the card, details of each answer) for one lesson."""
    import torch

    from autograder.checking import registry
    from tests.locked import of_exercise

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    judged = json.loads(JUDGED.read_text(encoding="utf-8")) if JUDGED.is_file() else {}
    row, details = dict.fromkeys(COLUMNS, 0), []
    for name, item in registry.of_lesson(lesson).items():
        for answer in of_exercise(name):
            if zlib.crc32(answer.name.encode()) % every:
                continue
            found = _one(item, answer, judged)
            details.append(found)
            for column in COLUMNS:
                row[column] += found.get(column, 0)
    return row, details


def _one(item, answer, judged):
    """What the grading says of one answer."""
    from autograder.building.mutants import Endless, bounded
    from autograder.checking import registry
    from autograder.checking.expect import CheckFailed
    from autograder.checking.run_check import run_check
    from autograder.inside.answer import LocalAnswer

    start = time.monotonic()
    try:
        with bounded():
            failure = run_check(item, LocalAnswer(answer.target), SEED)
    except Endless:
        failure = CheckFailed("it does not end")
    except Exception as error:
        failure = CheckFailed(f"THE GRADER RAISED {error!r}")
    found = {"answer": answer.name, "about": answer.about, "kind": answer.kind}
    found["seconds"] = round(time.monotonic() - start, 2)
    found["said"] = "" if failure is None else str(failure)
    if answer.is_right:
        return {**found, "right": 1, "accepted": int(failure is None)}
    likely = "" if failure is None else failure.likely
    names = [known.name for known in registry.mistakes(item) if known.hint == likely]
    verdict = judged.get(answer.name, {}).get(likely) if likely else True
    return {
        **found,
        "mistake": names[0] if names else "",
        "likely": likely,
        "wrong": 1,
        "rejected": int(failure is not None),
        "told": int(bool(likely)),
        "named": int(bool(names)),
        "false": int(verdict is False),
        "unjudged": int(verdict is None),
    }


def table(rows):
    """The card as lines of a Markdown table."""
    lines = ["| lesson | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for lesson, row in rows.items():
        lines.append(f"| {lesson} | " + " | ".join(str(row[name]) for name in COLUMNS) + " |")
    return lines


def fallen(rows, kept):
    """What is worse than the card that is kept."""
    worse = []
    for lesson, row in rows.items():
        before = kept.get(lesson, row)
        for name, sign in (("rejected", 1), ("told", 1), ("accepted", 1), ("false", -1)):
            if sign * (row[name] - before[name]) < 0:
                worse.append(f"{lesson}: {name} {before[name]} before, {row[name]} now")
    return worse


def main(arguments=None):
    """Print the card; exit status 1 if with --check something is worse than the one kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.locked", description=__doc__)
    parser.add_argument("lessons", nargs="*", help="names of modules (default: all)")
    parser.add_argument("--every", type=int, default=1, help="one answer in so many")
    parser.add_argument("--details", help="write what was said of each answer to this file")
    parser.add_argument("--check", action="store_true", help="fail if it is worse than card.json")
    parser.add_argument("--keep", action="store_true", help="write card.json")
    options = parser.parse_args(arguments)
    lessons = options.lessons or [path.stem.partition("_")[2] for path in find()]
    with multiprocessing.get_context("spawn").Pool(min(len(lessons), os.cpu_count())) as pool:
        found = pool.starmap(measure, [(lesson, options.every) for lesson in lessons], 1)
    rows = {lesson: row for lesson, (row, _) in zip(lessons, found, strict=True)}
    rows["all"] = {name: sum(row[name] for row in rows.values()) for name in COLUMNS}
    print("\n".join(table(rows)))
    if options.details:
        every = {lesson: details for lesson, (_, details) in zip(lessons, found, strict=True)}
        Path(options.details).write_text(json.dumps(every, indent=1, ensure_ascii=False))
    kept = json.loads(CARD.read_text(encoding="utf-8")) if CARD.is_file() else {}
    key = str(options.every)
    if options.keep:
        kept[key] = {**kept.get(key, {}), **rows}
        CARD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    worse = fallen(rows, kept.get(key, {})) if options.check else []
    print("\n".join(worse), file=sys.stderr, end="\n" * bool(worse))
    return int(bool(worse))
