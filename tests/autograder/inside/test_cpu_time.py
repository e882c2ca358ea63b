"""Which of a student's processes want to run, and which only look as if they did."""

import ctypes
import os
import platform
import signal
import time
from pathlib import Path

import pytest

from autograder.inside import cpu_time
from autograder.inside.cpu_time import Meter

VFORKING = 0x4000 | signal.SIGCHLD
CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine())
DISK, CHILD = "folio_wait_bit_common", "kernel_clone"  # what is waited for


def shown(place, state, channel, threads=1):
    """Make the folder of /proc about a process or a thread."""
    place.mkdir(parents=True)
    (place / "stat").write_text(f"1 (a) name) {' '.join([state, *['0'] * 16, str(threads)])}")
    (place / "wchan").write_text(channel)
    return place


@pytest.mark.parametrize(
    ("state", "channel", "disk", "wants"),
    [
        ("R", "0", False, True),
        ("S", "do_wait", True, False),
        ("D", DISK, True, True),
        ("D", DISK, False, False),  # so it does not wait for a disk, whatever it waits for
        ("D", CHILD, True, False),  # the disk is another's trouble
        ("D", "0", False, False),  # it has hidden where it waits
        ("T", "0", True, False),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_who_waits_for_the_disk_wants_to_run_and_who_waits_for_a_child_sleeps(
    tmp_path, monkeypatch, state, channel, disk, wants, threads
):
    monkeypatch.setattr(cpu_time, "_disk_is_waited_for", lambda: disk)
    if threads == 1:
        process = shown(tmp_path / "7", state, channel)
    else:  # the first one sleeps
        process = shown(tmp_path / "7", "S", "do_wait", threads)
        shown(process / "task" / "7", "S", "do_wait", threads)
        shown(process / "task" / "8", state, channel, threads)
    assert Meter().look([process]) == wants


@pytest.mark.busy
@pytest.mark.skipif(not CLONE or not os.path.isdir("/proc/self"), reason="it knows Linux's numbers")
def test_who_waits_for_the_child_of_a_vfork_sleeps(monkeypatch):
    """Whatever this machine's kernel calls it, and while its disk is busy."""
    monkeypatch.setattr(cpu_time, "_disk_is_waited_for", lambda: True)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        if ctypes.CDLL(None).syscall(CLONE, VFORKING, 0, 0, 0, 0) == 0:
            signal.pause()
        os._exit(0)
    process = Path(f"/proc/{child}")
    try:
        # On its way into the sleep it is in state D already, but waits nowhere yet.
        while " D " not in (process / "stat").read_text() or (process / "wchan").read_text() == "0":
            time.sleep(0.001)
        assert not Meter().look([process])
    finally:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
