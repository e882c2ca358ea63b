"""How bubblewrap is called: what of the machine is visible inside, and what is not."""

import functools
import os
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from autograder import ROOT

NOTHING = ["--ro-bind", "/dev/null"]  # in the place of a file
COURSE, SCRATCH = "/course", "/scratch"
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
# Of the environment only what Python needs: its folder may hold a repository, or a class, as well.
PYTHON = ("bin", "lib", "lib32", "lib64", "libexec", "include", "share", "ssl", "pyvenv.cfg")
ETC = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/etc/fonts")
FORBIDDEN = re.compile("(bwrap|mount):.*(namespace|permi)", re.IGNORECASE)
ALLOW = "allow user namespaces (docs/what-goes-wrong.md says how)"


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
    hidden, visible = _hidden(secrets), _visible()
    for folder in _folders_above(visible):
        arguments += ["--perms", "0755", "--dir", folder]  # inside, the reader may be another user
    for path in sorted({*visible, *hidden}, key=len):  # outer folders first
        if path in hidden:
            arguments += ["--tmpfs", path] if os.path.isdir(path) else NOTHING + [path]
        else:
            arguments += ["--ro-bind-try", path, path]
    arguments += ["--ro-bind", str(view), COURSE]
    if "/tmp" not in _folders_above(visible):
        arguments += ["--symlink", SCRATCH, "/tmp"]
    # What of /dev/zero is mapped and shared is memory that no limit counts.
    arguments += ["--dev", "/dev", *NOTHING, "/dev/zero"]
    arguments += ["--perms", "1777", "--tmpfs", SCRATCH, "--chdir", SCRATCH]
    for name, value in environment(COURSE, f"{SCRATCH}/home").items():
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
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    }


def _visible() -> set[str]:
    """The system's programs and libraries, and of the Python environment what it needs to run."""
    roots = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    roots.add(str(Path(sys.executable).resolve().parent.parent))
    python = {os.path.join(root, part) for root in roots - {"/"} for part in PYTHON}
    return {*SYSTEM, *ETC, *filter(os.path.exists, python)}


def needed() -> set[str]:
    """The visible places, by their names and by those that links lead to."""
    return {name for path in _visible() for name in (path, os.path.realpath(path))}


def _folders_above(paths: set[str]) -> list[str]:
    """The folders, outer ones first, that must be made to hold ``paths``."""
    above = {str(parent) for path in paths for parent in Path(path).parents}
    return sorted(above - {"/"} - paths, key=len)


def _hidden(secrets: Iterable[str] = ()) -> set[str]:
    """Where the course and the ``secrets`` are in sight, and so must be covered."""
    places = [Path(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())]
    course = {str(place / name) for place in places for name in ("attention", "autograder")}
    visible = _visible()
    inside = {place for path in (*course, str(ROOT), *secrets) for place in seen_at(path)}
    return {place for place in inside if place not in visible and os.path.exists(place)}


def seen_at(path: str) -> set[str]:
    """The places at which what lies at ``path`` is inside, were it not covered.

    A visible folder may be a link, or be reached through one: then its name inside is another.
    """
    real, found = os.path.realpath(path), set()
    for shown in _visible():
        root = os.path.realpath(shown)
        if real == root or real.startswith(root.rstrip("/") + "/"):
            found.add(os.path.normpath(os.path.join(shown, os.path.relpath(real, root))))
    return found
