"""Before anything of a student's runs: is what must be hidden really out of sight?"""

import contextlib
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from autograder import ROOT
from autograder.sandbox import bubblewrap
from autograder.sandbox.bubblewrap import SandboxRefused
from autograder.settings import COURSE

SECONDS = 600  # also on a machine that has no time: bubblewrap itself ends at once
OURS = ("solutions", "source", COURSE.library, "autograder/checks", "autograder/mistakes")
MODULE, PROGRAM = (
    re.compile(r"No module named '([\w.]+)'"),
    re.compile(r"execvp (.*): No such file"),
)
# Run inside, with pairs (path, [device, number]) of files: prints the paths at which they are seen.
LOOK = """
import json, os, sys
for path, identity in json.loads(sys.stdin.read()):
    try:
        found = os.stat(path)
    except OSError:
        continue
    if [found.st_dev, found.st_ino] == identity:
        print(path)
"""


@functools.cache
def prove(secrets: tuple[str, ...]) -> None:
    """Start the sandbox once and look for the repository and the ``secrets`` from inside.

    Raises SandboxRefused, with what is in sight, or why the sandbox does not start.
    """
    program = [sys.executable, "-I", "-S", "-c", LOOK]
    try:
        done = subprocess.run(
            bubblewrap.command("/usr", program, secrets),
            input=json.dumps(list(_wanted(secrets))),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise SandboxRefused(does_not_start("")) from None
    if done.returncode != 0:
        raise SandboxRefused(does_not_start(done.stderr))
    if done.stdout:
        seen = done.stdout.splitlines()[0]
        raise SandboxRefused(
            f"students' code would see {seen} inside the sandbox, where it must be hidden: move it "
            f"out of the folders of Python ({sys.prefix}, {sys.base_prefix}) and of the system"
        )


def does_not_start(said: str) -> str:
    """The sentence on a sandbox that does not start; ``said`` is what was written there."""
    if not said.strip():
        return "the sandbox does not start, and says nothing: is the machine too busy? Try again"
    if (lacking := MODULE.search(said)) and (place := _place_of(lacking[1])):
        return (
            f"the sandbox does not start: it does not see {place}, where {lacking[1]} lies. "
            f"Install {lacking[1]} into {sys.prefix} itself, or make an environment with it by "
            "python -m venv"
        )
    if lacking := PROGRAM.search(said):
        return (
            f"the sandbox does not start: it does not see {lacking[1]}, or what that needs to run. "
            "Make an environment by python -m venv, with a Python whose files lie in one folder"
        )
    return f"the sandbox does not start: {said.strip().splitlines()[-1]}"


def _place_of(module: str) -> str | None:
    """The folder in which this process finds a module that the sandbox did not."""
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(module.partition(".")[0])
        if spec and spec.origin:
            path = Path(spec.origin)
            return str(path.parents[1] if path.name == "__init__.py" else path.parent)
    return None


def _wanted(secrets: Iterable[str]) -> Iterator[tuple[str, list[int]]]:
    """Pairs (path inside, identity) for all places at which a secret might be seen."""
    shown = bubblewrap.visible()
    for secret in (*(str(ROOT / name) for name in OURS), *secrets):
        for path in _entries(secret):
            real = os.path.realpath(path)
            if any(bubblewrap.lies_in(one, real) for one in shown):
                continue  # it is, or it holds, what Python needs
            try:
                found = os.stat(path)
            except OSError:
                continue
            for place in {path, real}:
                yield place, [found.st_dev, found.st_ino]


def _entries(secret: str) -> list[str]:
    """A file, or a folder with all that lies in it."""
    path = Path(secret)
    try:
        return [secret, *map(str, path.iterdir())] if path.is_dir() else [secret]
    except OSError:  # whoever may not look outside may not look inside
        return [secret]
