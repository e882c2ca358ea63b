"""The truth card: what the grading says of answers that it has never seen.

python -m tests.locked [LESSON …] [--every N] [--keep | --check]
python -m tests.locked [LESSON …] --second [--keep]   what the second set is told, with stored
                                                      mistakes and, in `alone`, without any
"""

import argparse
import ast
import datetime
import inspect
import json
import linecache
import multiprocessing
import os
import sys
import textwrap
import time
import warnings
import zlib
from pathlib import Path
from unittest import mock

from autograder import ROOT
from autograder.building.lesson import find

FOLDER = Path(__file__).parent
CARD, JUDGED = FOLDER / "card.json", FOLDER / "judged.json"
FIRST = FOLDER / "first_reading.json"  # which sentences were false before they were mended, and why
PAGE = ROOT / "docs" / "truth.md"
SEED = 11
LONG = 30  # seconds of CPU after which an answer is said not to end: none comes near
COLUMNS = (
    *("wrong", "rejected", "told", "named", "placed", "either", "false", "unjudged"),
    *("right", "accepted", "careless", "careful", "proportionate"),
)
# alone: told without stored mistakes; either: told or placed
SECOND = ("wrong", "rejected", "told", "named", "alone", "placed", "either")


def measure(lesson, every=1):
    """Pair (row of the card, details of each answer) for one lesson."""
    import torch

    from autograder.checking.toolbox import registry
    from tests.locked import careless, of_exercise

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
        for answer in careless.of_exercise(name):
            if not zlib.crc32(answer.name.encode()) % every:
                details.append(_careless(item, answer))
                for column in COLUMNS[-3:]:
                    row[column] += details[-1][column]
    return row, details


def measure_second(lesson, every=1):
    """`measure` of the second set: there only wrong answers are, and nobody has read the verdicts.

    Each is judged twice, with the stored mistakes and without any.
    """
    import torch

    from autograder.checking.diagnosis import diagnose
    from autograder.checking.toolbox import registry
    from tests.locked import of_exercise

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    row, details = dict.fromkeys(SECOND, 0), []
    for name, item in registry.of_lesson(lesson).items():
        for answer in of_exercise(name, "tests.locked.second")[::every]:
            found = _one(item, answer, {})
            with mock.patch.object(diagnose, "mistakes_of", return_value=()):
                found["alone"] = _one(item, answer, {})["told"]
            details.append(found)
            for column in SECOND:
                row[column] += found[column]
    return row, details


def asked_of(lesson):
    """{exercise: what its check looks for, by class: True, or why not}."""
    from autograder.checking.input_coverage import coverage
    from autograder.checking.toolbox import registry

    return {name: coverage(item, SEED) for name, item in registry.of_lesson(lesson).items()}


def classes(covered):
    """The lines of a table of checks and classes, and of the reasons below it."""
    from autograder.checking.input_coverage import CLASSES

    lines = ["| check | " + " | ".join(CLASSES) + " |", "|---" * (len(CLASSES) + 1) + "|"]
    all_said = [said for found in covered.values() for said in found.values()]
    reasons = list(dict.fromkeys(said or "nobody asks" for said in all_said if said is not True))
    for name, found in covered.items():
        marks = (
            "yes" if said is True else str(reasons.index(said or "nobody asks") + 1)
            for said in found.values()
        )
        lines.append(f"| {name} | " + " | ".join(marks) + " |")
    numbered = [f"{number}. {reason}" for number, reason in enumerate(reasons, start=1)]
    return [*lines, "", "Does not apply, because", "", *numbered]


def _one(item, answer, judged):
    """What the grading says of one answer."""
    from autograder.checking.toolbox import registry

    start = time.monotonic()
    # Of a wrong answer a note counts, too: it says what is wrong, though it costs nothing there.
    failure = _failure(item, answer, None if answer.is_right else {})
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
        "place": "" if failure is None else failure.place,
        "placed": int(failure is not None and bool(failure.place)),
        "either": int(failure is not None and bool(likely or failure.place)),
        "named": int(bool(names)),
        "false": int(verdict is False),
        "unjudged": int(verdict is None),
    }


def _careless(item, answer):
    """What a right answer that was written without care loses."""
    failure = _failure(item, answer)
    cost = 0.0 if failure is None else failure.cost
    found = {"answer": answer.name, "about": answer.about, "kind": "/".join(answer.kinds)}
    found["said"] = "" if failure is None else str(failure)
    return {**found, "careless": 1, "careful": int(cost == 0), "proportionate": int(cost < 1)}


def _failure(item, answer, told=None):
    """The CheckFailed that an answer gets, or None; a note where it is asked for, ``told`` {}."""
    from autograder.building.gates.mutants import Endless, bounded
    from autograder.checking.run_check import run_check
    from autograder.checking.toolbox.failure import CheckFailed
    from autograder.inside.answer import LocalAnswer

    try:
        with bounded(LONG):
            return run_check(item, LocalAnswer(as_cell(answer.target)), SEED, told=told)
    except Endless:
        return CheckFailed("it does not end")
    except Exception as error:
        return CheckFailed(f"THE GRADER RAISED {error!r}")


def as_cell(target):
    """The same answer as a notebook's cell has it: a text of its own, which nothing decorates."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(target)))
    except (OSError, TypeError, SyntaxError):
        return target
    tree.body[0].decorator_list = []
    text, label = ast.unparse(tree), f"<{target.__name__}>"
    linecache.cache[label] = (len(text), None, text.splitlines(keepends=True), label)
    namespace = dict(vars(sys.modules[target.__module__]))
    exec(compile(text, label, "exec"), namespace)
    return namespace[target.__name__]


def table(rows):
    """The card as lines of a Markdown table."""
    columns = [name for name in dict.fromkeys(COLUMNS + SECOND) if name in rows["all"]]
    lines = ["| lesson | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for lesson, row in rows.items():
        lines.append(f"| {lesson} | " + " | ".join(str(row[name]) for name in columns) + " |")
    return lines


def page(rows, second, covered):
    """docs/truth.md: what the columns mean, the tables, their date and command."""
    from autograder.checking.input_coverage import CLASSES

    everything, lines = rows["all"], "\n".join(table(rows))
    new, new_lines = second["all"], "\n".join(table(second))
    meanings = "\n".join(f"- **{name}**: {meaning}" for name, meaning in CLASSES.items())
    looked = "\n".join(classes(covered))
    told, wrong = everything["told"], everything["wrong"]
    placed, either = everything["placed"], everything["either"]
    first = json.loads(FIRST.read_text(encoding="utf-8"))
    untrue, unsure, repeated = len(first["false"]), len(first["unsure"]), first["repeated"]
    bare = ", ".join(name for name, row in rows.items() if not row["wrong"])
    without = f" None is left of {bare}." if bare else ""
    return f"""# How true the grading is

Measured {datetime.date.today()} by `python -m tests.locked --keep`, which writes this page. The
answers in `tests/locked/` were written from the lessons' texts alone, and whoever writes checks,
named mistakes or diagnoses does not read them. At first {first["passed"]} wrong answers
passed and {first["refused"]} right ones were refused. Whoever mended that was told the kind of
fault, not the answer, and for those this set is no longer new.{without}
Of {repeated["of"]} wrong answers {repeated["named"]} replied as a stored mistake does. They were
taken out: they said nothing of a check that the mistake does not say. So the wrong answers here are
those that no stored mistake named at that time, and how many of a class's answers are told more is
not measured. What shapes and errors mean was written after somebody had read the messages, not the
answers, of all that were told nothing more: that raises **told**.

- **wrong**, **rejected**: wrong answers, and how many of them the check fails.
- **told**: failing answers that are told more than got and expected: **named** ones are told of a
  stored mistake, the others how got and expected relate, or what an error means.
  Here {told} of {wrong}, {told / wrong:.0%}.
- **placed**: failing answers that are told where: the first expression of theirs in which a
  value of a right answer makes all their results right, {placed} of {wrong}. **either**: told or
  placed, {either} of {wrong}, {either / wrong:.0%}.
- **false**: sentences told that are not true of the answer. Each was read beside the code by a
  reader who had written neither (`tests/locked/judged.json`); **unjudged** were not read yet. At
  the first reading {untrue} of {first["read"]} were false, and of {unsure} the reader was unsure,
  which counts as true (`tests/locked/first_reading.json`). The false ones were mended since, so for
  them this set is no longer new. Where a sentence now claims less, the verdict on the one that
  claimed more stands.
- **right**, **accepted**: right answers written in other ways, and how many pass.
- **careless**: right answers as somebody without a GPU writes them, `tests/locked/careless/`.
  **careful** are those that lose nothing; **proportionate** are these and those that lose the care
  share, and not more. At first {first["careless"]["all"]} of {first["careless"]["of"]} lost all.

{lines}

## Wrong answers that nothing was learned from

`python -m tests.locked --second --keep` measured {new["wrong"]} more, of lessons drawn by lot,
written from the texts alone after all stored mistakes. {new["rejected"]} are rejected.
{new["told"]} are told more than got and expected, {new["told"] / new["wrong"]:.0%};
{new["named"]} of them are told of a stored mistake. Without any stored mistake (**alone**)
{new["alone"]} would be, {new["alone"] / new["wrong"]:.0%}. {new["placed"]} are placed, and
{new["either"]} told or placed, {new["either"] / new["wrong"]:.0%}. Whoever wrote them knew the
hints in the texts, which warn of many of these faults: a class may write others. None of them ever
becomes a stored mistake.

{new_lines}

## What every check looks for

{meanings}

`autograder verify` fails where a check neither looks for a class nor says why not.

{looked}
"""


def fallen(rows, kept):
    """What is worse than the card that is kept."""
    worse = []
    for lesson, row in rows.items():
        before = {**row, **kept.get(lesson, {})}  # with columns that are new
        for name, sign in (
            ("rejected", 1),
            ("either", 1),
            ("accepted", 1),
            ("proportionate", 1),
            ("false", -1),
        ):
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
    parser.add_argument("--keep", action="store_true", help="write card.json and docs/truth.md")
    parser.add_argument("--second", action="store_true", help="the second set, and only that")
    options = parser.parse_args(arguments)
    lessons = options.lessons or [path.stem.partition("_")[2] for path in find()]
    if options.second:
        if options.check:
            parser.error("--second is measured by itself")
        lessons = [name for name in lessons if (FOLDER / "second" / f"{name}.py").is_file()]
    measured = measure_second if options.second else measure
    with multiprocessing.get_context("spawn").Pool(min(len(lessons), os.cpu_count())) as pool:
        found = pool.starmap(measured, [(lesson, options.every) for lesson in lessons], 1)
        covered = pool.map(asked_of, lessons, 1) if options.keep and not options.second else []
    rows = {lesson: row for lesson, (row, _) in zip(lessons, found, strict=True)}
    columns = next(iter(rows.values()))
    rows["all"] = {name: sum(row[name] for row in rows.values()) for name in columns}
    print("\n".join(table(rows)))
    if options.details:
        every = {lesson: details for lesson, (_, details) in zip(lessons, found, strict=True)}
        Path(options.details).write_text(json.dumps(every, indent=1, ensure_ascii=False))
    kept = json.loads(CARD.read_text(encoding="utf-8")) if CARD.is_file() else {}
    key = "second" if options.second else str(options.every)
    if options.keep:
        kept[key] = {**kept.get(key, {}), **rows}
        CARD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        if key == "1" and not options.lessons:
            every = {name: found for one in covered for name, found in one.items()}
            PAGE.write_text(page(rows, kept["second"], every), encoding="utf-8")
    worse = fallen(rows, kept.get(key, {})) if options.check else []
    print("\n".join(worse), file=sys.stderr, end="\n" * bool(worse))
    return int(bool(worse))
