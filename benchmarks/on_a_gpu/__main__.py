"""Measure on a GPU what docs/training.md has rows for: ``benchmarks/on_a_gpu.sh``.

    python -m benchmarks.on_a_gpu [--minutes 10] [--corpus FOLDER] [--only STEP …] [--write]
    python -m benchmarks.on_a_gpu --device cpu --small      # a rehearsal

Multi30k is fetched, trained with as many steps as the time allows, and judged; then come the speed
ladder, the other libraries and the decoding. Each step has a share of the time that is left, and is
stopped when it is over. What a step printed is in a log of its own. A step that fails is said to,
and the others go on; the exit status is 1 then. A second call skips what is done and goes on with
the rest. The rows, in Markdown, are in rows.md beside the logs.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch

from attention.provided.files import ROOT
from autograder.files import write_aside
from benchmarks.on_a_gpu import machine, rows
from benchmarks.on_a_gpu.running import GRACE, Results, StepFailed, run, shown
from benchmarks.on_a_gpu.steps import STEPS, Plan

PROGRAM = "on_a_gpu"
NAMES = [step.name for step in STEPS]
DOCS = ROOT / "docs" / "training.md"


def parser():
    """The argument parser of the command."""
    made = argparse.ArgumentParser(prog=PROGRAM, description=__doc__.splitlines()[0])
    made.add_argument("--minutes", type=float, default=10, help="for all steps (default: 10)")
    made.add_argument(
        "--corpus", type=Path, metavar="FOLDER", help="that has Multi30k (default: download it)"
    )
    made.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    made.add_argument("--small", action="store_true", help="rehearse: seconds for each step")
    made.add_argument("--again", action="store_true", help="do what is done once more")
    made.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="STEP")
    made.add_argument("--out", type=Path, default=ROOT / "runs" / "on_a_gpu", metavar="FOLDER")
    made.add_argument(
        "--write",
        type=Path,
        nargs="?",
        const=DOCS,
        metavar="FILE",
        help=f"put the rows in {DOCS.name}",
    )
    made.add_argument("--since", type=float, help="when the time began, in seconds since 1970")
    return made


def main(arguments=None):
    """Take the steps and write the rows; returns the exit status."""
    options = parser().parse_args(arguments)
    begin = time.time() if options.since is None else options.since
    try:
        plan, facts = begin_with(options)
        why = take(plan, options.only, begin + 60 * options.minutes - GRACE)
        text = rows.rows(plan, facts, why)
        write_aside(plan.out / "rows.md", text.encode())
        print(f"the rows are in {shown(plan.out / 'rows.md')}", flush=True)
        if options.write:
            put(options.write, text)
    except (ValueError, OSError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return int(not all_done(plan.results, options.only))


def begin_with(options):
    """The plan and the facts of this machine; ValueError if they cannot be had."""
    if options.device == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            "this machine, or this PyTorch, has no CUDA device; --device cpu --small rehearses "
            "without one"
        )
    if not options.minutes > 0:
        raise ValueError(f"--minutes must be above 0, not {options.minutes:g}")
    if options.small and options.write and options.write.resolve() == DOCS:
        raise ValueError(
            f"--small is a rehearsal, its rows do not belong in {shown(DOCS)}: name another file "
            "with --write FILE"
        )
    plan = Plan(options.device, options.small, options.corpus, options.out.resolve(), options.again)
    plan.out.mkdir(parents=True, exist_ok=True)
    facts, path = machine.facts(options.device, options.small), plan.out / "machine.json"
    if path.exists() and not options.again:
        other = json.loads(path.read_text(encoding="utf-8"))
        if changed := [name for name in facts if facts[name] != other.get(name)]:
            raise ValueError(
                f"{shown(plan.out)} has results of another machine or kind ({', '.join(changed)}): "
                "do all of it --again, or choose another --out"
            )
    write_aside(path, json.dumps(facts, indent=1).encode() + b"\n")
    return plan, facts


def take(plan, names, end):
    """Take the steps that are asked for until a time, `end`; {step: why it could not begin}."""
    left = [step for step in STEPS if step.name in names]
    if not plan.again:
        left = [step for step in left if not skipped(step, plan.results)]
    why = {}
    while left:
        step, total = left[0], sum(step.share for step in left)
        limit = max(0.0, (end - time.time()) * step.share / total)
        left = left[1:]
        print(one(plan, step, limit, why), flush=True)
    return why


def one(plan, step, limit, why):
    """Take a step; returns what is said of it, and puts into `why` that it could not begin."""
    if limit < 1:
        why[step.name] = f"{step.name} was not begun: the time was over before"
        return why[step.name]
    try:
        commands, notes = step.commands(plan, limit)
    except StepFailed as error:
        why[step.name] = str(error)
        return str(error)
    print(f"{step.name}: at most {limit:.0f} s; {shown(plan.results.log(step.name))}", flush=True)
    outcome = run(step.name, commands, notes, plan.results, limit)
    return outcome.why or f"{step.name}: done in {outcome.seconds:.0f} s"


def skipped(step, results: Results):
    """Whether a step is done from an earlier call; says so."""
    outcome = results.of(step.name)
    done = outcome is not None and outcome.status == "done"
    if done:
        print(f"{step.name}: done before ({outcome.date}); --again does it once more", flush=True)
    return done


def all_done(results, names):
    """Whether each of the steps is done."""
    found = [results.of(name) for name in names]
    return all(one is not None and one.status == "done" for one in found)


def put(path, text):
    """Put the rows into a file; ValueError, in one sentence, if they have no place there."""
    try:
        made = rows.put(path.read_text(encoding="utf-8"), text)
    except ValueError as error:
        raise ValueError(f"{shown(path)} {error}") from None
    write_aside(path, made.encode())
    print(f"and in {shown(path)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
