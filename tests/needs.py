"""What tests need beyond Python's own, and how those that lack it are skipped: with its remedy."""

import glob
import importlib.util
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from autograder.sandbox import bubblewrap

# By Debian package: the names under which its program may be found.
PROGRAMS = {
    "bubblewrap": ("bwrap",),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "make": ("make",),
    "node-configurable-http-proxy": ("configurable-http-proxy",),
    "postgresql": ("initdb",),
}
OFF_THE_PATH = {"postgresql": "/usr/lib/postgresql/[0-9]*/bin/initdb"}
# Packages that the tests are to do without, as on a machine that lacks them: HIDE_PACKAGES="make"
HIDDEN = os.environ.get("HIDE_PACKAGES", "").split()
NO_SANDBOX = re.compile(r"^WARNING: bubblewrap .* WITHOUT A SANDBOX.*\n", re.MULTILINE)
LINKS = []  # folders that are removed when this process ends


def program(package):
    """Path of a package's program, the newest one, or None."""
    if package in HIDDEN:
        return None
    places = glob.glob(OFF_THE_PATH.get(package, ""))
    found = (path for name in PROGRAMS[package] if (path := shutil.which(name)))
    return max(places, key=_version, default=next(found, None))


def _version(path):
    return int(Path(path).parts[-3])


def missing(name):
    """Why there is no such Debian package or Python module here, and how to get it; or None."""
    if name == "bubblewrap" and program(name) and (lacking := bubblewrap.lacking()):
        return ": ".join(lacking)
    if name in PROGRAMS:
        remedy = None if program(name) else f"apt-get install {name}"
    else:
        remedy = None if importlib.util.find_spec(name) else "pip install -e '.[dev]'"
    return remedy and f"{name} is not installed: {remedy}"


def needs(name):
    """Mark of a test that is skipped where a Debian package or a Python module is missing."""
    return pytest.mark.skipif(bool(missing(name)), reason=missing(name) or "")


def skip_without(name):
    """The same as ``needs`` for a fixture: skips the tests that use it."""
    if reason := missing(name):
        pytest.skip(reason)


def besides(said):
    """What a command says on stderr, besides that there is no bubblewrap on this machine."""
    return NO_SANDBOX.sub("", said) if missing("bubblewrap") else said


def hide():
    """Take the programs of HIDDEN off the PATH of this process and of those that it starts.

    A folder that holds one of them gives way to a folder of links to all its other programs.
    """
    names = {name for package in HIDDEN for name in PROGRAMS[package]}
    places = [Path(place) for place in os.get_exec_path()]
    for number, place in enumerate(places):
        if any((place / name).exists() for name in names):
            LINKS.append(tempfile.TemporaryDirectory(prefix="without-"))
            places[number] = Path(LINKS[-1].name)
            for path in place.iterdir():
                if path.name not in names:
                    (places[number] / path.name).symlink_to(path)
    os.environ["PATH"] = os.pathsep.join(map(str, places))
