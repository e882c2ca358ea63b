"""A control group (cgroup v2) around each student's processes, where this machine gives one.

It counts what ``/proc`` does not show: the time of children that nobody waited for, and memory that
the kernel holds for a process. Ordinary users may make one where systemd delegates it to them.
"""

import contextlib
import functools
import os
import subprocess
import tempfile
from pathlib import Path

from autograder.inside.isolation import ENTER, NOBODY
from autograder.inside.limits import Limits

MOUNTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
PREFIX = "autograder-"


class ControlGroup:
    """The group of one student's processes; ``folder`` is where the kernel shows it.

    Sets those of the limits whose controllers it has.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        for name, most in {
            "memory.swap.max": 0,
            "memory.max": limits.memory_bytes + limits.file_bytes,  # files lie in memory, too
            "pids.max": limits.processes,
        }.items():
            if (folder / name).exists():
                (folder / name).write_text(str(most))

    def entrance(self) -> int:
        """A descriptor, to be closed: the process that writes ENTER to it moves in."""
        return _entrance(self._folder)

    def seconds(self) -> float:
        """The processor time of all that were ever in it."""
        return _numbered(self._folder / "cpu.stat")["usage_usec"] / 1e6

    def ran_out_of_memory(self) -> bool:
        """Whether it was its own limit, not the machine's memory, that did not suffice."""
        events = self._folder / "memory.events"
        return events.exists() and _numbered(events)["oom"] > 0

    def close(self) -> None:
        """Remove it; what still ends in it leaves that to a later grading."""
        _remove(self._folder)


def make(limits: Limits) -> ControlGroup | None:
    """An empty group with these limits, or None where none is to be had."""
    place = _place()
    return ControlGroup(_made_in(place), limits) if place else None


def kept() -> str:
    """Which limits such groups keep on this machine, as in 'cpu, memory, pids', or ''."""
    place = _place()
    return ", ".join(_kept_in(place)) if place else ""


@functools.cache
def _place() -> Path | None:
    """Where this process can make the groups that keep the most limits; None if nowhere."""
    mount = next((one for one in MOUNTS if (one / "cgroup.controllers").exists()), None)
    if mount is None:
        return None
    places = _above(mount, Path("/proc/self/cgroup").read_text())
    best = max(places, key=lambda place: len(_kept_in(place)), default=None)
    return best if best and _kept_in(best) else None


def _above(mount: Path, said: str) -> list[Path]:
    """The group that ``/proc/self/cgroup`` names, and those around it, the inner ones first.

    A group that holds processes lends no controllers to those in it, so a neighbour may keep more.
    """
    own = next((line[4:] for line in said.splitlines() if line.startswith("0::/")), "..")
    if ".." in own:  # it lies outside of what is mounted here
        return []
    return [mount / folder for folder in (Path(own), *Path(own).parents)]


@functools.cache
def _kept_in(place: Path) -> list[str]:
    """Which limits a group in ``place`` keeps: none where this user may make none, or move none."""
    _sweep(place)
    try:
        made = _made_in(place)
    except OSError:
        return []
    files = {"cpu": "cpu.stat", "memory": "memory.max", "pids": "pids.max"}
    found = [name for name, file in files.items() if (made / file).exists()]
    may_enter = _may_enter(made)
    _remove(made)
    return found if may_enter else []


def _may_enter(folder: Path) -> bool:
    """Whether a process that is nobody, as root's students are, moves in by a descriptor."""
    try:
        entrance = _entrance(folder)
    except OSError:
        return False
    user = None if os.getuid() else NOBODY
    told = subprocess.DEVNULL
    write = ["/bin/sh", "-c", 'printf "$0"', ENTER.decode()]  # whatever PATH holds
    done = subprocess.run(write, stdout=entrance, stderr=told, user=user, check=False)
    os.close(entrance)
    return done.returncode == 0


def _sweep(place: Path) -> None:
    """Remove the groups of graders that were killed."""
    for old in place.glob(f"{PREFIX}*-*"):
        if not Path("/proc", old.name.split("-")[1]).exists():
            _remove(old)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):  # another user's, or a process has not quite left it
        folder.rmdir()


def _made_in(place: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))


def _entrance(folder: Path) -> int:
    return os.open(folder / "cgroup.procs", os.O_WRONLY)


def _numbered(path: Path) -> dict[str, int]:
    """A file of the kernel's whose lines are a name and a number."""
    return {name: int(number) for name, number in map(str.split, path.read_text().splitlines())}
