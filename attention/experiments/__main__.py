"""Run the recorded experiments of lessons: docs/evidence.md has their claims and controls.

    python -m attention.experiments LESSON… [--only NAME] [--seeds 0 1 2] [--to FILE] [--jobs 2]

Points that are recorded are not run again; those for which the experiment no longer asks are
dropped. The file is written after each point, so a command that was stopped goes on. One thread for
each job.
"""

import argparse
import json
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch

from attention.experiments.recorded import Experiment, path_of
from attention.experiments.runner import as_stored, lessons, run_point
from autograder.files import write_aside

Recorded = dict[str, list[dict[str, Any]]]  # of each experiment its points, with results


def read(path: Path) -> Recorded:
    """The recorded experiments of a file: {experiment: rows}."""
    if not path.is_file():
        return {}
    recorded: Recorded = json.loads(path.read_text(encoding="utf-8"))["experiments"]
    return recorded


def write(path: Path, lesson: str, recorded: Recorded) -> None:
    """Write a lesson's file: one line for each point."""
    rows = {
        name: ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        for name, rows in recorded.items()
    }
    parts = ",\n".join(f"{json.dumps(name)}: [\n{text}\n]" for name, text in rows.items())
    head = {"command": f"python -m attention.experiments {lesson}", "torch": torch.__version__}
    opening = json.dumps(head)[:-1]
    text = f'{opening}, "experiments": {{\n{parts}\n}}}}\n'
    json.loads(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_aside(path, text.encode())


def record(lesson: str, experiments: Mapping[str, Experiment], options: argparse.Namespace) -> None:
    """Run what is missing of a lesson's experiments and write its file after each point."""
    path = options.to or path_of(lesson)
    recorded, missing = read(path), list[tuple[str, Any]]()
    for name, one in experiments.items():
        wanted = [as_stored(point) for point in one.points]
        kept = [row for row in recorded.get(name, []) if row["point"] in wanted]
        recorded[name] = kept
        known = [row["point"] for row in kept]
        missing += [
            (name, point)
            for point in wanted
            if point not in known
            and (options.only in (None, name))
            and (options.seeds is None or point.get("seed") in options.seeds)
        ]
    recorded = {name: recorded[name] for name in experiments}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context) as pool:
        running = {
            pool.submit(run_point, lesson, name, point): (name, point) for name, point in missing
        }
        for done in as_completed(running):
            name, point = running[done]
            row = {"point": point, "result": done.result()}
            recorded[name].append(row)
            recorded[name] = _in_order(recorded[name], experiments[name])
            write(path, lesson, recorded)
            print(f"{lesson} · {name} · {point}: {row['result']}", flush=True)
    write(path, lesson, recorded)
    print(f"{lesson}: {len(missing)} points run, written to {path}")


def _in_order(rows: list[dict[str, Any]], experiment: Experiment) -> list[dict[str, Any]]:
    """Recorded rows in the order in which the experiment asks for their points."""
    order = [as_stored(point) for point in experiment.points]
    return sorted(rows, key=lambda row: order.index(row["point"]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Record; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lesson", nargs="*", help="name of a lesson's module; all if none")
    parser.add_argument("--only", metavar="NAME", help="one experiment")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--to", type=Path, help="another file, of one lesson")
    parser.add_argument("--jobs", type=int, default=1, help="points side by side")
    options = parser.parse_args(arguments)
    found = lessons()
    unknown = [name for name in options.lesson if name not in found]
    if unknown:
        there = ", ".join(found) or "none"
        print(f"no experiments for {', '.join(unknown)}; there are: {there}", file=sys.stderr)
        return 1
    for name in options.lesson or found:
        record(name, getattr(found[name], "EXPERIMENTS", {}), options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
