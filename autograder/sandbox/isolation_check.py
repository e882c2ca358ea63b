"""Before anything of a student's runs: is what must be hidden really out of sight?"""

import functools
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
MISSING = re.compile(r"No module named|execvp .*: No such file")
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
    told = f"the sandbox does not start: {said.strip().splitlines()[-1]}"
    if not MISSING.search(said):
        return told
    return (
        f"{told}. It sees the system and the folders of this Python alone: install all of it into "
        f"{sys.prefix} itself, or make an environment by python -m venv"
    )


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
