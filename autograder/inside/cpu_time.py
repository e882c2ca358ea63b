"""How much processor time a student's processes have had, and whether they want more."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

WANTS = "RD"  # it runs or would, or waits for the disk, as where memory is short
STATE, GROUP, USER, CHILDRENS_SYSTEM, THREADS = 0, 2, 11, 14, 17  # fields behind the name


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
        return any(one[STATE] in WANTS for one in found)


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

    The state of a process is that of its first thread: here it is R if any of them wants to run.
    """
    with contextlib.suppress(OSError):
        fields = _stat(process)
        if fields[STATE] not in WANTS and int(fields[THREADS]) > 1:
            threads = (process / "task").iterdir()
            if any(_stat(thread)[STATE] in WANTS for thread in threads):
                fields[STATE] = "R"
        return fields
    return []


def _stat(process: Path) -> list[str]:
    return (process / "stat").read_text().rpartition(")")[2].split()
