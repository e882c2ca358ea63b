"""Whether there is a sandbox, and how bubblewrap is called: what is visible inside."""

import functools
import os
import re
import shutil
import site
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from autograder import ROOT, CourseError
from autograder.inside.limits import NONE, OWN
from autograder.settings import COURSE

NOTHING = ["--ro-bind", "/dev/null"]  # in the place of a file
INSIDE, SCRATCH = "/course", "/scratch"
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
# Of the environment only what Python needs: its folder may hold a repository, or a class, as well.
PYTHON = ("bin", "lib", "lib32", "lib64", "libexec", "include", "share", "ssl", "pyvenv.cfg")
ETC = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/etc/fonts")
FORBIDDEN = re.compile("(bwrap|mount):.*(namespace|permi)", re.IGNORECASE)
ALLOW = "allow user namespaces (docs/what-goes-wrong.md says how)"
POLICIES = ("required", "auto", "off")


def available() -> str | None:
    """Path of the bubblewrap program, or None."""
    return shutil.which("bwrap") if sys.platform == "linux" else None


def lacking() -> tuple[str, str] | None:
    """Why this machine has no sandbox, and what to do about it; None where it has one."""
    program = available()
    if not program:
        return "bubblewrap is not installed", "install the package bubblewrap"
    if said := _forbidden(program):
        return f"bubblewrap may not start here ({said})", ALLOW
    return None


@functools.cache
def _forbidden(program: str) -> str:
    """What bubblewrap says where it is not allowed any namespaces, as in many a container, or ''.

    Root's own program mounts /proc. Any other trouble is left to whoever starts it in earnest.
    """
    tried = ["true"] if os.getuid() else ["mount", "-t", "proc", "proc", "/proc"]
    asked = [program, *command("/usr", tried)[1:]]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stderr
    return next(filter(FORBIDDEN.match, said.splitlines()), "")


def command(view: Path | str, program: list[str], secrets: Iterable[str] = ()) -> list[str]:
    """The command line that runs ``program`` in a sandbox that sees the folder ``view``.

    The repository and the ``secrets``, paths of files and folders, are covered where they lie in a
    folder that is visible.

    No network, no home, no repository; own pid, ipc and uts namespaces; everything read-only but
    an empty folder. An ordinary user gets a user namespace; for root, bubblewrap uses root's rights
    and the program gives them up itself.
    """
    arguments = [available() or "bwrap", "--die-with-parent", "--new-session", "--clearenv"]
    arguments += ["--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    arguments += ["--unshare-pid"]
    if os.getuid() != 0:
        arguments += ["--unshare-user", "--proc", "/proc"]
    else:
        arguments += ["--dir", "/proc"]  # mounted inside, where nothing will cover parts of it
    shown, hidden = visible(), _hidden(secrets)
    links = _links(shown, hidden)
    above = _folders_above({*shown, *links})
    for folder in above:
        arguments += ["--perms", "0755", "--dir", folder]  # inside, the reader may be another user
    for path in sorted({*_outside(shown, shown, hidden), *hidden}, key=len):  # outer folders first
        if path in hidden:
            arguments += ["--tmpfs", path] if os.path.isdir(path) else NOTHING + [path]
        else:
            arguments += ["--ro-bind-try", path, path]
    for link, target in links.items():
        arguments += ["--symlink", target, link]
    arguments += ["--ro-bind", str(view), INSIDE]
    if "/tmp" not in {*above, *links}:
        arguments += ["--symlink", SCRATCH, "/tmp"]
    # What of /dev/zero is mapped and shared is memory that no limit counts.
    arguments += ["--dev", "/dev", *NOTHING, "/dev/zero"]
    arguments += ["--perms", "1777", "--tmpfs", SCRATCH, "--chdir", SCRATCH]
    for name, value in environment(INSIDE, f"{SCRATCH}/home").items():
        arguments += ["--setenv", name, value]
    for path in [*filter(os.path.isdir, hidden), "/dev", "/"]:
        arguments += ["--remount-ro", path]
    return [*arguments, "--", *program]


def environment(view: Path | str, home: Path | str) -> dict[str, str]:
    """The whole environment of the sandbox: nothing of the grader's own is handed on."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "HOME": str(home),
        "USER": "student",
        "TMPDIR": str(Path(home).parent),
        "IPYTHONDIR": f"{home}/ipython",
        "MPLCONFIGDIR": f"{home}/matplotlib",
        "MPLBACKEND": "Agg",
        "PYTHONPATH": str(view),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONHASHSEED": "0",
        "LANG": "C.UTF-8",
        "NBGRADER_EXECUTION": "autograde",
        # What torch.compile is given runs as it is: to compile it takes longer than a check may.
        "TORCHDYNAMO_DISABLE": "1",
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    }


def _needed() -> Iterator[str]:
    """The system's programs and libraries, and of the Python environment what it needs to run."""
    yield from (*SYSTEM, *ETC)
    started = sys.executable, getattr(sys, "_base_executable", sys.executable)
    yield from started
    roots = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    roots |= {str(Path(program).resolve().parent.parent) for program in started}
    yield from (os.path.join(root, part) for root in roots - {"/"} for part in PYTHON)
    for place in site.getsitepackages():
        yield place
        for listed in Path(place).glob("*.pth"):
            for line in listed.read_text(errors="replace").splitlines():
                # Any other folder may hold more than packages: see isolation_check.
                if os.path.basename(line) in ("site-packages", "dist-packages"):
                    yield os.path.join(place, line)


def visible() -> set[str]:
    """What is needed, where it really is: links lead there inside as they do outside."""
    return {os.path.realpath(path) for path in _needed() if os.path.exists(path)}


def _links(shown: set[str], hidden: set[str]) -> dict[str, str]:
    """The links on the way to what is needed, with their targets, that are in no visible folder."""
    found = {}
    for path in filter(os.path.exists, _needed()):
        place, rest = "/", list(Path(path).parts[1:])
        while rest:
            place = os.path.normpath(os.path.join(place, rest.pop(0)))
            if os.path.islink(place):
                found[place] = target = os.path.join(os.path.dirname(place), os.readlink(place))
                place, rest = "/", [*Path(target).parts[1:], *rest]
    return {link: found[link] for link in _outside(found, shown, hidden)}


def _outside(paths: Iterable[str], shown: set[str], hidden: set[str]) -> set[str]:
    """Those of the paths that are not there already, in a folder that is shown and not covered."""
    around = {
        path: [one for one in shown | hidden if one != path and lies_in(path, one)]
        for path in paths
    }
    return {
        path for path, places in around.items() if max(places, key=len, default="") not in shown
    }


def lies_in(path: str, folder: str) -> bool:
    """Whether a path is a folder's or leads into it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _folders_above(paths: set[str]) -> list[str]:
    """The folders, outer ones first, that must be made to hold ``paths``."""
    above = {str(parent) for path in paths for parent in Path(path).parents}
    return sorted(above - {"/"} - paths, key=len)


def _hidden(secrets: Iterable[str] = ()) -> set[str]:
    """Where the course and the ``secrets`` are in sight, and so must be covered."""
    places = [Path(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())]
    course = {str(place / name) for place in places for name in (COURSE.library, "autograder")}
    shown = visible()
    inside = {os.path.realpath(path) for path in (*course, str(ROOT), *secrets)} - shown
    return {
        place
        for place in inside
        if os.path.exists(place) and any(lies_in(place, one) for one in shown)
    }


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
    found = lacking()
    if not found:
        return OWN
    why, remedy = found
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
