"""Attempts to have students' code graded behind less than `--sandbox required` promises.

Each is a function of an empty folder. It returns what became of the attempt, or raises GotThrough.
``python -m tests.autograder.attacks`` prints them, tests/autograder/sandbox plays them one by one.
"""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import ROOT
from autograder.inside.limits import SHARED
from autograder.sandbox import bubblewrap, isolation_check
from autograder.sandbox.bubblewrap import SandboxRefused
from autograder.sandbox.sandbox import Sandbox
from tests.autograder.sandbox.boxes import LESSON, LIMITS, as_an_ordinary_user, printed

from .paper import BASIC

READ = """
import json, sys
def read(path):
    try:
        return open(path).read()
    except OSError:
        return None
print(json.dumps([read(path) for path in sys.argv[1:]]))
"""
START = f"""
from autograder.sandbox.sandbox import Sandbox
from autograder.sandbox.bubblewrap import SandboxRefused
try:
    with Sandbox({LESSON!r}, "required") as box:
        process = box.start()
        print(box.kind, process.run("import os; os.getuid()")["shown"],
              process.run("import os; os.path.exists({str(ROOT / "source")!r})")["shown"])
except SandboxRefused as error:
    print("refused:", error)
"""
GRADE = f"""
from autograder.grading.notebook import records, submission
from autograder.sandbox.sandbox import Sandbox
from tests.autograder.one import grade_submission
path = {str(ROOT / "solutions" / BASIC / f"{BASIC}.ipynb")!r}
with Sandbox({BASIC!r}, "required") as box:
    result = grade_submission(records.read_notebook(path), submission.read(path), box)[1]
print(result.score, result.max)
"""
# Where a class lies, seen from the folder of the Python environment.
PLACES = {
    "made with python -m venv . in the repository": ".",
    "around the class": "class",
    "whose libraries hold the class": "lib/class",
    "whose packages hold the class": "lib/python3/site-packages/course/class",
    "whose shared files hold the class": "share/class",
    "inside the repository": "..",
}
ATTEMPTS = {}


class GotThrough(AssertionError):
    """The attempt succeeded; str() says at what."""


def attempt(title):
    """Register a function as an attempt of this name."""

    def keep(function):
        ATTEMPTS[title] = function
        return function

    return keep


def play(title, folder):
    """Play an attempt in a new ``folder``; return (whether the sandbox held, what became of it)."""
    folder.mkdir(parents=True)
    try:
        return True, ATTEMPTS[title](folder)
    except GotThrough as error:
        return False, str(error)
    except Exception as error:  # nothing is proved by an attempt that broke
        return False, f"{type(error).__name__}: {error}"


def demand(held, told):
    """Raise GotThrough unless the sandbox ``held``."""
    if not held:
        raise GotThrough(told)


def refused(policy="required", secrets=()):
    """Why a sandbox of this policy is refused; GotThrough if it is not."""
    try:
        Sandbox(LESSON, policy, secrets=secrets).close()
    except SandboxRefused as error:
        return str(error)
    raise GotThrough(f"with {policy}, students' code would run")


@contextlib.contextmanager
def installed_in(prefix):
    """Let Python say that it is installed in ``prefix``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", os.path.realpath(sys.executable))
        patch.setattr(sys, "prefix", str(prefix))
        patch.setattr(sys, "exec_prefix", str(prefix))
        yield patch


@contextlib.contextmanager
def environment(folder):
    """A Python environment in ``folder``, beside the one that Python really runs from."""
    prefix = folder / "home" / "environment"
    for name in ("bin", "lib/python3/site-packages", "share"):
        (prefix / name).mkdir(parents=True)
    (prefix / "lib" / "needed").write_text("needed")
    with installed_in(prefix) as patch:
        yield prefix, patch


def class_in(folder):
    """The secrets of a class in ``folder``: the files that nobody may read."""
    files = [folder / "gradebook.db", folder / "solutions" / "one.ipynb"]
    files.append(folder / "submitted" / "ben" / "one.ipynb")
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
    return files


def hidden(files, secrets, needed):
    """Demand that nothing but ``needed`` of these files is read inside; returns what was done."""
    isolation_check.prove(secrets)
    program = [sys.executable, "-I", "-S", "-c", READ, *map(str, files), str(needed)]
    command = bubblewrap.command("/usr", program, secrets)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    *found, seen = json.loads(done.stdout)
    demand("secret" not in found, "the class was read inside")
    if seen != "needed":
        raise RuntimeError("what Python needs is not in sight")
    return "the class is out of sight, what Python needs is not"


def _environment_at(place):
    def play(folder):
        with environment(folder) as (prefix, _):
            around = Path(os.path.normpath(prefix / place))
            return hidden(class_in(around), (str(around),), prefix / "lib" / "needed")

    return play


for words, place in PLACES.items():
    attempt(f"an environment {words}")(_environment_at(place))


@attempt("an environment behind a link, with the class among its libraries")
def behind_links(folder):
    """By the link's name and by its own."""
    link = folder / "link"
    with environment(folder) as (prefix, _), installed_in(link):
        link.symlink_to(prefix)
        class_in(prefix / "lib" / "class")
        files = [link / "lib" / "class" / "gradebook.db"]
        for inside in (link, prefix):
            told = hidden(files, (str(inside / "lib" / "class"),), link / "lib" / "needed")
        return told


@attempt("a gradebook that is elsewhere, among the libraries")
def gradebook_elsewhere(folder):
    """A single file is covered, too."""
    with environment(folder) as (prefix, _):
        book = prefix / "lib" / "grades.db"
        book.write_text("secret")
        return hidden([book], (str(book),), prefix / "lib" / "needed")


@attempt("an environment that is the root of the disk")
def root_as_environment(folder):
    """Then its folders are the system's."""
    files = class_in(folder / "class")
    (folder / "needed").write_text("needed")
    with installed_in("/") as patch:
        seen = bubblewrap.visible() | {str(folder / "needed")}
        patch.setattr(bubblewrap, "visible", lambda: seen)
        return hidden(files, (str(folder / "class"),), folder / "needed")


@attempt("a visible root: the class in a folder that Python itself needs")
def cannot_be_hidden(folder):
    """It cannot be covered."""
    with environment(folder) as (prefix, _):
        class_in(prefix / "lib")
        told = refused(secrets=(str(prefix / "lib"),))
        demand("/environment/lib/" in told and "move it" in told, told)
        return f"refused: {told}"


@attempt("a visible root: nothing is covered")
def nothing_covered(folder):
    """Whatever the reason: what is in sight is found before anything runs."""
    with environment(folder) as (prefix, patch):
        class_in(prefix / "share" / "class")
        patch.setattr(bubblewrap, "_hidden", lambda secrets=(): set())
        for one in ("required", "auto"):
            told = refused(one, (str(prefix / "share" / "class"), f"/nowhere/at/all/{one}"))
            demand("students' code would see" in told, told)
        return f"refused: {told}"


def _in_a_machine_without_namespaces(number):
    def play(_):
        known = subprocess.run([bubblewrap.available(), "--help"], capture_output=True, text=True)
        if "--disable-userns" not in known.stdout + known.stderr:
            return "not tried: this bubblewrap cannot make such a machine"
        machine = [bubblewrap.available(), "--unshare-user", "--disable-userns"]
        machine += ["--uid", number, "--gid", number, "--bind", "/", "/", "--dev", "/dev", "--"]
        done = subprocess.run(
            [*machine, sys.executable, "-c", START], capture_output=True, text=True, cwd=ROOT
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        held = done.stdout.startswith("refused: the sandbox")
        demand(held and "allow user namespaces" in done.stdout, done.stdout)
        return done.stdout.strip()

    return play


# The root of a container, too, is nobody outside.
for words, number in {"an ordinary user": "1234", "a root without rights": "0"}.items():
    attempt(f"missing namespaces: a machine that forbids them, for {words}")(
        _in_a_machine_without_namespaces(number)
    )


@attempt("missing namespaces: none within the sandbox, so that one student's files might stay")
def no_nested_namespaces(_):
    """Each student gets a sandbox."""
    with Sandbox(LESSON, "required", LIMITS) as box:
        box._walls = SHARED
        for _ in range(2):
            told = printed(box.start(), "import os\nprint(os.path.exists('/scratch/x'))")
            demand(told == "False", "a student's file was there for the next one")
            printed(box.start(), "open('/scratch/x', 'x')")
        return f"a sandbox for each student: {box.kind}"


@attempt("an ordinary user grades: are the walls the same?")
def ordinary_user(_):
    """Who gets a user namespace in place of root's rights."""
    words = as_an_ordinary_user(START)
    demand(words[0] == "bubblewrap" and words[1] != "0" and words[2] == "False", " ".join(words))
    return f"{words[0]}, as user {words[1]} inside, the repository out of sight"


@attempt("an ordinary user grades: does an honest answer keep its points?")
def ordinary_user_grades(_):
    """In the sandbox as well."""
    words = as_an_ordinary_user(GRADE)
    demand(words == ["5.0", "5.0"], " ".join(words))
    return f"{words[0]} of {words[1]} points"
