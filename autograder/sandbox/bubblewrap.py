"""How bubblewrap is called: what of the machine is visible inside, and what is not."""

import importlib.util
import os
import shutil
import site
import sys
from pathlib import Path

COURSE = "/course"
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
ETC = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/etc/fonts")


def available():
    """Path of the bubblewrap program, or None."""
    return shutil.which("bwrap") if sys.platform == "linux" else None


def command(view, program):
    """The command line that runs ``program`` in a sandbox that sees the folder ``view``.

    No network, no home, no repository; own pid, ipc and uts namespaces; everything read-only but
    an empty /tmp. An ordinary user gets a user namespace; for root, bubblewrap uses root's rights
    and the program gives them up itself.
    """
    arguments = [available(), "--die-with-parent", "--new-session", "--clearenv"]
    arguments += ["--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    arguments += ["--unshare-pid"]
    if os.getuid() != 0:
        arguments += ["--unshare-user", "--proc", "/proc"]
    else:
        arguments += ["--dir", "/proc"]  # mounted inside, where nothing will cover parts of it
    for path in _visible():
        arguments += ["--ro-bind-try", path, path]
    for path in _installed_course():
        arguments += ["--tmpfs", path, "--remount-ro", path]
    arguments += ["--ro-bind", str(view), COURSE]
    arguments += ["--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    for name, value in environment(COURSE, "/tmp/home").items():
        arguments += ["--setenv", name, value]
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [*arguments, "--", *program]


def environment(view, home):
    """The whole environment of the sandbox: nothing of the grader's own is handed on."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "HOME": str(home),
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


def _visible():
    """The system's programs and libraries and the Python environment, outer folders first."""
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, *_resolved(sys.executable)}
    return sorted({*SYSTEM, *ETC, *map(str, python)}, key=len)


def _resolved(executable):
    """The folders of the interpreter's real installation, through all links."""
    return {str(Path(executable).resolve().parent.parent)}


def _installed_course():
    """Where the course is installed as a plain package: an empty folder will lie over each."""
    places = [Path(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())]
    found = {place / name for place in places for name in ("attention", "autograder")}
    for name in ("attention", "autograder"):
        found.add(Path(importlib.util.find_spec(name).origin).parent)
    visible = [Path(path) for path in _visible()]
    return sorted(
        str(path)
        for path in found
        if path.is_dir() and any(path.is_relative_to(root) for root in visible)
    )
