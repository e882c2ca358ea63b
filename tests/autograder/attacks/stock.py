"""The same attacks against stock nbgrader, each in a container of its own.

Stock nbgrader runs students' code with the rights of whoever grades. So that this harms nobody, the
whole grading machine is one made for the purpose: bubblewrap without network, with an own process
table, everything read-only but a copy of the course. Inside it, nbgrader is as it always is.
"""

import concurrent.futures
import json
import shutil
import sys
import tempfile
from pathlib import Path

from . import ground
from .paper import ATTACKS, BASIC, Attack, Paper

RECORD = Path(__file__).with_name("stock.json")
INSIDE = "/tmp/stock"
SECONDS = 300
CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "attention"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "lessons"
c.CourseDirectory.submitted_directory = "class/submitted"
c.CourseDirectory.autograded_directory = "class/autograded"
c.CourseDirectory.feedback_directory = "class/feedback"
c.CourseDirectory.db_url = "sqlite:///class/gradebook.db"
c.ExecutePreprocessor.timeout = 60
c.Exchange.root = "/tmp"
"""


def play(attacks, folder, workers=2):
    """Grade every attack with ``nbgrader autograde``; return {attack: Outcome}.

    The outcome of an attack that is never run here is None.
    """
    template = Path(folder) / "template"
    course = ground.make_course(template, CONFIG)
    for lesson in dict.fromkeys(attack.lesson for attack in attacks if attack.stock):
        ground.nbgrader(course, "generate_assignment", lesson, "--force")
    shutil.rmtree(course / "lessons")
    shutil.copytree(ground.ROOT / "lessons", course / "lessons")
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        runs = {one.name: pool.submit(_one, one, template) for one in attacks if one.stock}
        return {one.name: runs[one.name].result() if one.stock else None for one in attacks}


def record(attacks, folder, workers):
    """Play the attacks, and keep in stock.json what came of each: a line each."""
    found = {
        name: outcome and {"points": outcome.points, "left": outcome.left}
        for name, outcome in play(attacks, folder, workers).items()
    }
    known = {name: one for name, one in recorded().items() if name in ATTACKS} | found
    lines = (f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def honest():
    """The solved notebook of lesson 00, as an attack without a trick."""

    def solved(paper):
        paper.notebook = paper.solved

    return Attack("solved", "canary", solved, BASIC)


def recorded():
    """What came of each attack when it was last played: {attack: {"points", "left"} or None}."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def _one(attack, template):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shutil.copytree(template, folder, dirs_exist_ok=True)
        course = folder / "course"
        traps = ground.make_traps(f"{INSIDE}/course")
        paper = Paper(attack.name, attack.lesson, traps)
        attack.build(paper)
        submitted = course / "class" / "submitted"
        paper.write(submitted / attack.name / attack.lesson)
        other = Paper("honest", attack.lesson, traps)
        other.notebook = other.solved
        other.write(submitted / "honest" / attack.lesson)
        program = Path(sys.executable).with_name("nbgrader")
        command = [program, "autograde", attack.lesson, "--student", attack.name]
        wanted = ground.settings(INSIDE, command, traps, SECONDS)
        report = ground.watched(folder, wanted, _container(folder), INSIDE)
        points = ground.scores(course, attack.lesson).get(attack.name)
        kept = ("process: ", "connection: ", "listener: ", "file: ", "changed: ", "report: ")
        traces = [trace for trace in report["traces"] if trace.startswith(kept)]
        return ground.Outcome(points, str(report["status"]), traces)


def _container(folder):
    """The command line of a machine in which anything may be broken."""
    needed = {sys.prefix, sys.base_prefix, str(ground.ROOT)}
    covered = [path for path in needed if path.startswith(("/tmp/", "/var/tmp/"))]
    return [
        *("bwrap", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *("--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--bind", str(folder), INSIDE),
        *(word for path in covered for word in ("--ro-bind", path, path)),
        *("--setenv", "HOME", f"{INSIDE}/home", "--chdir", "/", "--"),
    ]
