"""How much processor time a student's processes have had, and whether they want more."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

STATE, GROUP, USER, CHILDRENS_SYSTEM, THREADS = 0, 2, 11, 14, 17  # fields behind the name
# Where the kernel keeps the one who vforks until its child ends, by version and compiler.
VFORK = {"kernel_clone", "_do_fork", "do_fork", "wait_for_vfork_done"}


class Meter:
    """Adds up the processor time of processes that come and go."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._before = 0

    def look(self, processes: Iterable[Path]) -> bool:
        """Bring ``seconds`` up to date; returns whether one of the processes wants to run.

        Where a process ended, its time is that of the one that waited for it. What nobody waited
        for is lost from then on: only the grader's patience bounds it.
        """
        found = [fields for fields in map(_fields, processes) if fields]
        ticks = sum(sum(map(int, one[USER : CHILDRENS_SYSTEM + 1])) for one in found)
        self.seconds += max(0, ticks - self._before) / os.sysconf("SC_CLK_TCK")
        self._before = ticks
        return any(one[STATE] == "R" for one in found)


def of_group(leader: int) -> list[Path]:
    """The processes of the group that ``leader`` leads, as far as this one may see them."""
    return [one for one in running() if _group(one) == leader]


def _group(process: Path) -> int | None:
    with contextlib.suppress(OSError):  # it has ended
        return int(_stat(process)[GROUP])
    return None


def running() -> list[Path]:
    """All processes that this one may see; none where the system does not show them."""
    if not os.path.isdir("/proc/self"):
        return []
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _fields(process: Path) -> list[str]:
    """What the kernel says of a process, from its state on; [] if it has ended.

    The state is that of its first thread: here it is R if any thread wants to run.
    """
    with contextlib.suppress(OSError):
        fields = _stat(process)
        threads = (process / "task").iterdir() if int(fields[THREADS]) > 1 else [process]
        if any(_wants(thread) for thread in threads):
            fields[STATE] = "R"
        return fields
    return []


def _wants(thread: Path) -> bool:
    """Whether a thread runs or would, or waits for the disk, as where memory is short.

    Uninterruptible sleep alone does not say so: a thread can bring it upon itself.
    """
    state = _stat(thread)[STATE]
    if state == "D":
        return (thread / "wchan").read_text() not in VFORK and _disk_is_waited_for()
    return state == "R"


def _disk_is_waited_for() -> bool:
    """Whether anything on this machine waits for a disk just now."""
    return "\nprocs_blocked 0\n" not in Path("/proc/stat").read_text()


def _stat(process: Path) -> list[str]:
    return (process / "stat").read_text().rpartition(")")[2].split()
