"""The sandboxes of these tests: for which lesson, under which limits, and what is printed there."""

import os
import subprocess
import sys
from pathlib import Path

from autograder import ROOT
from autograder.inside.limits import Limits
from autograder.sandbox import bubblewrap

LESSON = "01_kernel_regression"
LIMITS = Limits(cell_seconds=10, check_seconds=5)


def printed(process, source):
    outputs = process.run(source)
    assert "error" not in outputs, outputs["error"]
    return outputs["stdout"].strip()


def as_an_ordinary_user(script):
    """The words that a script prints which is run by nobody in particular."""
    drop = "import os\nos.setgroups([]); os.setresgid(1234, 1234, 1234)\n"
    drop += "os.setresuid(1234, 1234, 1234)\n"
    command = [sys.executable, "-c", script]
    if os.getuid() == 0:
        command = [*_opened_up(), sys.executable, "-c", drop + script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout.split()


def _opened_up():
    """The start of a command line that lets everyone in where only root may go."""
    needed = {str(ROOT), sys.prefix, sys.base_prefix}
    arguments = [bubblewrap.available(), "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]
    shut = {
        str(parent)
        for path in needed
        for parent in Path(path).parents
        if not parent.stat().st_mode & 0o001
    }
    for path in sorted(shut, key=len):
        arguments += ["--perms", "0755", "--tmpfs", path]
    for path in sorted(needed, key=len):
        for parent in reversed(Path(path).parents):
            arguments += ["--perms", "0755", "--dir", str(parent)]
        arguments += ["--bind", path, path]
    return arguments
