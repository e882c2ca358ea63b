"""Commands that are stopped when their time is over, and what came of them, kept in a folder."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from attention.provided.files import ROOT
from autograder.files import write_aside

GRACE = 5.0  # seconds between asking a process to end and ending it


class StepFailed(RuntimeError):
    """A step cannot be done; str() is one sentence that says why."""


@dataclass
class Outcome:
    """What came of a step.

    commands  lists of words
    status    "done", "cut" when its time was over, or "failed"
    why       one sentence, if it is not done
    seconds   of the clock; ``limit`` is how many it had
    notes     what the step found out before it began, for the rows
    """

    commands: list[list[str]]
    status: str
    why: str
    seconds: float
    limit: float
    date: str
    notes: dict


class Results:
    """The outcomes and logs in a folder: NAME.json and NAME.log."""

    def __init__(self, folder):
        self.folder = folder

    def log(self, name):
        """The path of a step's log."""
        return self.folder / f"{name}.log"

    def text(self, name):
        """What a step printed so far; empty if nothing."""
        try:
            return self.log(name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def of(self, name):
        """The Outcome of a step, or None."""
        try:
            return Outcome(**json.loads((self.folder / f"{name}.json").read_text("utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def keep(self, name, outcome):
        """Write down the outcome of a step."""
        text = json.dumps(asdict(outcome), indent=1, ensure_ascii=False) + "\n"
        write_aside(self.folder / f"{name}.json", text.encode())


def run(name, commands, notes, results, limit):
    """Run a step's commands, one after the other, for at most ``limit`` seconds; its Outcome."""
    begin, status, why = time.monotonic(), "done", ""
    where, today = shown(results.log(name)), date.today().isoformat()
    stopped = f"{name} was interrupted: see {where}"  # what holds if this program is killed
    results.keep(name, Outcome(commands, "cut", stopped, 0.0, limit, today, notes))
    with open(results.log(name), "wb") as log:
        for command in commands:
            left = limit - (time.monotonic() - begin)
            code = call(command, log, left)
            if code is None:
                status = "cut"
                why = f"{name} was stopped after {limit:.0f} s, when its time was over: see {where}"
            elif code:
                status = "failed"
                why = f"{name} ended with exit status {code}: {last_line(results.text(name))}"
                why += f" (the whole is in {where})"
            if status != "done":
                break
    seconds = round(time.monotonic() - begin, 1)
    outcome = Outcome(commands, status, why, seconds, limit, today, notes)
    results.keep(name, outcome)
    return outcome


def call(command, log, limit):
    """Run one command in the repository; its exit status, or None if its time was over.

    It leads a group of processes, so that those which it started end with it.
    """
    if limit <= 0:
        return None
    try:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        log.write(f"{command[0]} cannot be started: {error.strerror}\n".encode())
        log.flush()
        return 127
    try:
        return process.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end(process)


def end(process):
    """End a process and its group, if anything of it is left."""
    for kind, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, kind)
        try:
            process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            continue
        if kind == signal.SIGTERM and not alive(process.pid):
            return


def alive(group):
    """Whether a group of processes has a member."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # on a Mac: what is left waits to be collected
        return False
    return True


def last_line(text):
    """The last line with something on it: what a command says before it gives up."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def shown(path):
    """A path for people: from the repository on, if it is in there."""
    path = Path(path)
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def as_typed(command):
    """A command as one would type it in the repository, with an active environment."""
    words = [shown(word) if word.startswith(str(ROOT)) else word for word in command]
    if command[0] == sys.executable:
        words[0] = "python"
    if words[:3] == ["python", "-m", "autograder"]:
        words[:3] = ["autograder"]
    return shlex.join(words)
