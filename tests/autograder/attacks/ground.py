"""Where attacks are played: a course of its own in a temporary folder, and traps around it."""

import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook

from autograder import ROOT
from autograder.building.lesson import find, read

from .paper import BASIC, DECODING, KERNELS, Traps

LESSONS = (BASIC, KERNELS, DECODING)
SECRET = "attack-secret-7319"
WATCH = Path(__file__).with_name("watch.py")
PROGRAMS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/etc/cron.d", "/usr/local/bin")


@dataclass
class Outcome:
    """What an attack came to. ``points`` is None where there is no score at all."""

    points: float | None = None
    reason: str = ""
    traces: list[str] = field(default_factory=list)

    @property
    def left(self):
        """The kinds of what it left."""
        return sorted({trace.partition(":")[0] for trace in self.traces})


def make_course(folder):
    """A course at ``folder``/course, with a home and a secret beside it; return its path."""
    course = folder / "course"
    for kind in ("solutions", "lessons"):
        for lesson in LESSONS:
            shutil.copytree(ROOT / kind / lesson, course / kind / lesson)
    for kind in ("attention", "autograder/checks", "autograder/mistakes"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / kind, course / kind, ignore=skip)
    shutil.copy(ROOT / "nbgrader_config.py", course)
    (course / "class").mkdir()
    (folder / "home").mkdir()
    (folder / "home" / ".pgpass").write_text(f"localhost:5432:*:grader:{SECRET}\n")
    return course


def make_traps(course):
    """Traps for attacks on ``course``, on ports that are free now."""
    base = random.SystemRandom().randrange(20_000, 30_000)
    return Traps(
        port=base,
        knock=base + 1,
        socket=f"attack-trap-{base}",
        course=str(course),
        namespace=os.readlink("/proc/self/ns/pid"),
        secret=SECRET,
    )


def settings(folder, command, traps, seconds):
    """What watch.py is told: run ``command`` on the course in ``folder``."""
    folder = Path(folder)
    course, home = folder / "course", folder / "home"
    environment = {
        "HOME": str(home),
        "PATH": PROGRAMS,
        "PGPASSWORD": SECRET,
        "PYTHONDONTWRITEBYTECODE": "1",  # what the grader compiles would look like a trace
    }
    return {
        "command": [str(part) for part in command],
        "cwd": str(course),
        "environment": environment,
        "seconds": seconds,
        "most_mib": 4000,
        "traps": asdict(traps),
        "folders": [*TEMPORARY, str(folder), *(path for path in sys.path if "site-" in path)],
        "unchanged": [
            str(course / name)
            for name in ("solutions", "lessons", "attention", "autograder/checks")
        ]
        + [str(course / "class" / "submitted" / "honest")],
        "output": str(folder / "output.txt"),
        "report": str(folder / "report.json"),
    }


def watched(folder, wanted):
    """Run watch.py on ``wanted``; return its report."""
    path = folder / "settings.json"
    path.write_text(json.dumps(wanted))
    command = [sys.executable, "-I", str(WATCH), str(path)]
    try:
        subprocess.run(command, cwd="/", timeout=wanted["seconds"] + 60, check=False)
        return json.loads((folder / "report.json").read_text())
    except (OSError, ValueError, subprocess.TimeoutExpired):
        lost = "report: none came back"
        return {"status": "nothing came back", "seconds": 0.0, "peak_mib": 0, "traces": [lost]}


def scores(course, lesson):
    """Points by student, from the gradebook of ``course``."""
    with Gradebook(f"sqlite:///{course}/class/gradebook.db", "attention") as book:
        return {one.student.id: one.score for one in book.assignment_submissions(lesson)}


def nbgrader(course, *arguments):
    """Run an ``nbgrader`` command in the folder of a course."""
    program = Path(sys.executable).with_name("nbgrader")
    found = {**os.environ, "PATH": PROGRAMS, "PYTHONPATH": str(ROOT)}  # it looks for helpers there
    subprocess.run([program, *arguments], cwd=course, env=found, check=True, capture_output=True)


def most(lesson):
    """The points of all exercises of a lesson."""
    (path,) = find([lesson])
    return sum(read(path).exercises.values())
