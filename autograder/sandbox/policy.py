"""Whether students' code runs in a sandbox, and what to say where it cannot."""

import sys
import warnings

from autograder import CourseError
from autograder.inside.limits import NONE, OWN
from autograder.sandbox import bubblewrap

POLICIES = ("required", "auto", "off")


class SandboxRefused(CourseError):
    """The sandbox that was asked for cannot be had here; str() says why."""


class UnprotectedWarning(UserWarning):
    """Students' code runs with the rights of the grader."""


def walls(policy: str) -> str:
    """What will stand around students' code: OWN or NONE.

    ``policy``  'required': bubblewrap or SandboxRefused; 'auto': a plain process with resource
                limits where there is no bubblewrap, with a warning; 'off': always a plain process
    """
    if policy not in POLICIES:
        raise ValueError(f"sandbox={policy!r} is none of {', '.join(POLICIES)}")
    if sys.platform == "win32":
        raise SandboxRefused("grading runs on Linux or macOS; on Windows, use WSL")
    if policy != "off" and bubblewrap.available():
        return OWN
    if policy == "required":
        raise SandboxRefused(
            "the sandbox is required, but bubblewrap is not installed: install the package "
            "bubblewrap, or choose --sandbox auto to run students' code without it"
        )
    if policy == "auto":
        warnings.warn(
            "bubblewrap is not installed: students' code runs WITHOUT A SANDBOX, with your "
            "rights and only resource limits. Install the package bubblewrap.",
            UnprotectedWarning,
            stacklevel=3,
        )
    return NONE
