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

    ``policy``  'required': bubblewrap or SandboxRefused; 'auto': where bubblewrap is missing or may
                not start, a plain process with resource limits, and a warning; 'off': always that
    """
    if policy not in POLICIES:
        raise ValueError(f"sandbox={policy!r} is none of {', '.join(POLICIES)}")
    if sys.platform == "win32":
        raise SandboxRefused("grading runs on Linux or macOS; on Windows, use WSL")
    if policy == "off":
        return NONE
    lacking = bubblewrap.lacking()
    if not lacking:
        return OWN
    why, remedy = lacking
    if policy == "required":
        raise SandboxRefused(
            f"the sandbox is required, but {why}: {remedy}, or choose --sandbox auto to run "
            "students' code without it"
        )
    warnings.warn(
        f"{why}: students' code runs WITHOUT A SANDBOX, with your rights and only resource "
        f"limits. For a sandbox, {remedy}.",
        UnprotectedWarning,
        stacklevel=3,
    )
    return NONE
