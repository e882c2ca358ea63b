"""The attacks against this course's grading: all attackers are one class, graded in one run."""

import re
import sys
from pathlib import Path

from autograder.grading.notebook import records
from autograder.inside.limits import Limits

from . import ground
from .paper import BASIC, Paper
from .relay import accomplice

# Only times are shorter than in a real grading: there are many endless loops among the attacks.
QUICK = Limits(cell_seconds=4.0, check_seconds=2.5, notebook_seconds=12.0, cpu_seconds=30)
SECONDS = 1800
WORKERS = 4  # many attacks wait for a limit, and keep no core busy
# What has no name that may be printed cannot be graded, and is told of.
NAMELESS = "unprintable_names"


def play(attacks, folder, sandbox="required", workers=WORKERS):
    """Grade every attack once; return ({attack: Outcome}, report of the watch).

    The honest student of each lesson is in the outcomes too, under the lesson's name.
    """
    folder = Path(folder)
    course = ground.make_course(folder)
    traps = ground.make_traps(course)
    _hand_in(attacks, course, traps)
    report = grade(folder, traps, sandbox, workers)
    earned = {lesson: ground.scores(course, lesson) for lesson in ground.LESSONS}
    outcomes = {}
    for attack in attacks:
        outcomes[attack.name] = _outcome(course, earned, attack.name, attack.lesson)
        outcomes[attack.name].traces = _mine(attack.name, report["traces"])
    for lesson in ground.LESSONS:
        outcomes[lesson] = _outcome(course, earned, "honest", lesson)
    return outcomes, report


def faults(folder, report):
    """What the grading of ``folder`` told or did that it should not have, a line each."""
    output = (Path(folder) / "output.txt").read_text(errors="replace")
    told = re.findall(r"^not graded: .*", output, re.MULTILINE)
    place = f"class/submitted/{NAMELESS}/{BASIC}/"
    found = [line for line in told if not line.split()[2].startswith(place)]
    if report["status"] != int(bool(told)):
        found.append(f"exit status {report['status']}")
    return found


def grade(folder, traps, *options):
    """Grade the class in ``folder``/course with ``main(course, *options)``; report of the watch."""
    command = [sys.executable, "-m", "tests.autograder.attacks.ours", folder / "course", *options]
    wanted = ground.settings(folder, command, traps, SECONDS)
    wanted["cwd"] = wanted["environment"]["PYTHONPATH"] = str(ground.ROOT)
    return ground.watched(folder, wanted)


def play_with_nbgrader(attacks, folder):
    """The same with ``nbgrader autograde`` in lesson 00; ({student: points}, report)."""
    folder = Path(folder)
    course = ground.make_course(folder)
    traps = ground.make_traps(course)
    _hand_in(attacks, course, traps)
    ground.nbgrader(course, "generate_assignment", BASIC, "--force")
    program = Path(sys.executable).with_name("nbgrader")
    command = [program, "autograde", BASIC, "--RunInSandbox.sandbox=required"]
    wanted = ground.settings(folder, command, traps, SECONDS)
    wanted["environment"]["PYTHONPATH"] = str(ground.ROOT)
    report = ground.watched(folder, wanted)
    return ground.scores(course, BASIC), report


def _hand_in(attacks, course, traps):
    submitted = course / "class" / "submitted"
    for attack in attacks:
        paper = Paper(attack.name, attack.lesson, traps)
        attack.build(paper)
        paper.write(submitted / attack.name / attack.lesson)
    for lesson in ground.LESSONS:
        paper = Paper("honest", lesson, traps)
        paper.notebook = paper.solved
        paper.write(submitted / "honest" / lesson)
    needed = any(attack.group == "relay" for attack in attacks)
    for number in range(WORKERS if needed else 0):  # one for each worker
        paper = Paper(f"accomplice_{number}", BASIC, traps)
        accomplice(paper)
        paper.write(submitted / paper.name / BASIC)


def _outcome(course, earned, student, lesson):
    kept = records.load(course / "class" / "autograded" / student / lesson)
    outcome = ground.Outcome(earned[lesson].get(student))
    if kept is not None:
        reasons = [one.reason for one in kept.exercises if one.score < one.max]
        outcome.reason = "\n".join(reasons)
    return outcome


def _mine(name, traces):
    """Traces of this attack: its mark stands in them, in a process's name cut to 15 letters."""
    mark = f"attack-{name}"
    return [
        trace for trace in traces if mark in trace or trace.startswith(f"process: {mark[:15]} ")
    ]


def main(course, sandbox, workers):
    """``autograder grade`` with shorter times; the exit status."""
    from autograder.commands import cli
    from autograder.grading.running import batch

    class Quick(batch.Batch):
        """A batch whose tasks have these limits."""

        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **{**named, "limits": QUICK})

    batch.Batch = Quick
    arguments = ["grade", "--course", course, "--sandbox", sandbox, "--workers", str(workers)]
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
