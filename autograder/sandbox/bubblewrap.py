"""How bubblewrap is called: what of the machine is visible inside, and what is not."""

import os
import shutil
import site
import sys
from pathlib import Path

from autograder import ROOT

COURSE, SCRATCH = "/course", "/scratch"
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
ETC = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/etc/fonts")


def available() -> str | None:
    """Path of the bubblewrap program, or None."""
    return shutil.which("bwrap") if sys.platform == "linux" else None


def command(view: Path | str, program: list[str]) -> list[str]:
    """The command line that runs ``program`` in a sandbox that sees the folder ``view``.

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
    hidden = _hidden()
    for folder in _folders_above(_visible()):
        arguments += ["--perms", "0755", "--dir", folder]  # inside, the reader may be another user
    for path in sorted({*_visible(), *hidden}, key=len):  # outer folders first
        arguments += ["--tmpfs", path] if path in hidden else ["--ro-bind-try", path, path]
    arguments += ["--ro-bind", str(view), COURSE]
    if "/tmp" not in _folders_above(_visible()):
        arguments += ["--symlink", SCRATCH, "/tmp"]
    arguments += ["--dev", "/dev", "--perms", "1777", "--tmpfs", SCRATCH, "--chdir", SCRATCH]
    for name, value in environment(COURSE, f"{SCRATCH}/home").items():
        arguments += ["--setenv", name, value]
    for path in [*hidden, "/dev", "/"]:
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
    """The system's programs and libraries, and the folders of the Python environment."""
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    python.add(str(Path(sys.executable).resolve().parent.parent))
    return {*SYSTEM, *ETC, *python}


def _folders_above(paths: set[str]) -> list[str]:
    """The folders, outer ones first, that must be made to hold ``paths``."""
    above = {str(parent) for path in paths for parent in Path(path).parents}
    return sorted(above - {"/"} - paths, key=len)


def _hidden() -> set[str]:
    """The course wherever it is in sight: installed as a plain package, or in a visible folder."""
    places = [Path(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())]
    course = {place / name for place in places for name in ("attention", "autograder")}
    visible = _visible()
    return {
        str(path)
        for path in {*course, ROOT}
        if os.path.isdir(path)  # False, too, where one may not look
        and str(path) not in visible
        and any(path.is_relative_to(root) for root in visible)
    }
