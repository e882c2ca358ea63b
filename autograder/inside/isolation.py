"""Fork a student's process into namespaces of its own, under limits. Runs inside the sandbox.

The process is the first of its own pid namespace: when it ends or is killed, the kernel ends
everything it started, and the temporary files go with its mount namespace.
"""

import contextlib
import ctypes
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.inside import cpu_time, system_calls
from autograder.inside.limits import NONE, OWN, Limits

NOBODY = 65534
NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PID = 0x20000, 0x8000000, 0x10000000, 0x20000000
NOSUID, NODEV, NOEXEC = 2, 4, 8
SET_DUMPABLE, DROP_BOUND, NO_NEW_PRIVILEGES = 4, 24, 38
SET_CHILD_SUBREAPER = 36
PARENT_DEATH_SIGNAL = 1
SCRATCH = "/scratch"
ENTER = b"0"  # the process that writes it to a control group moves in
USED = re.compile(rb"^Vm(?:RSS|Swap):\s+(\d+) kB", re.MULTILINE)
SHARE = re.compile(rb"^(?:Pss|SwapPss):\s+(\d+) kB", re.MULTILINE)
HELD = re.compile(r"^VmData:\s+(\d+) kB", re.MULTILINE)

Action = Callable[[int], None]


def drop_root() -> None:
    """Become nobody where the grader is the machine's root: student code never is."""
    if os.getuid() != 0:
        return
    _mount("proc", "/proc", NOSUID | NODEV | NOEXEC)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    _libc("prctl", SET_DUMPABLE, 1, 0, 0, 0)  # lets it write its own uid_map later


def end_with_parent(signalled: int = signal.SIGKILL) -> None:
    """Be killed when this process's parent ends, even if it is killed; ``signalled`` 0: no more."""
    if sys.platform == "linux":
        _libc("prctl", PARENT_DEATH_SIGNAL, signalled, 0, 0, 0)


def hide_editable_installs() -> None:
    """Forget the import hooks that would find the repository this course is installed from."""
    for finder in list(sys.meta_path):
        if getattr(finder, "__module__", "").startswith("__editable__"):
            sys.meta_path.remove(finder)


def fork(action: Action, keep: int, group: int | None, limits: Limits, walls: str) -> int:
    """Run ``action(descriptor)`` in a new student's process; return the pid to wait for.

    Its only open descriptors are the standard ones, on /dev/null, and a copy of ``keep``. ``group``
    is the entrance of its control group, if it has one. Raises OSError where ``walls`` is OWN and
    the kernel refuses the namespaces.
    """
    if walls != OWN:
        child = os.fork()
        if child == 0:
            _become_student(action, keep, group, limits, walls)
        return child
    reading, writing = os.pipe()
    broker = os.fork()
    if broker == 0:
        _broker(action, keep, group, limits, writing)
    os.close(writing)
    with open(reading) as report:
        answer = json.loads(report.read() or "{}")
    os.waitpid(broker, 0)
    if "pid" not in answer:
        raise OSError(answer.get("error", "the process that makes namespaces died"))
    return int(answer["pid"])


def adopt_orphans() -> None:
    """Become the parent of the students' processes when their broker ends."""
    _libc("prctl", SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill(pid: int) -> None:
    """Kill a student's process and with it its namespace, or at least its process group."""
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # ended, or made no group
        os.killpg(pid, signal.SIGKILL)


def usage(zygote: int, enough: int) -> tuple[int, int]:
    """Pair (bytes of memory, number) of the students' processes.

    The memory is an upper bound, made exact where it exceeds ``enough``.
    """
    processes = students(zygote)
    memory = sum(map(_resident, processes))
    if memory > enough:
        memory = sum(map(_proportional, processes))
    return memory, len(processes)


def students(zygote: int) -> list[Path]:
    """All processes that the zygote can see except itself and its parents."""
    spared = {"1", str(zygote), str(os.getppid())}
    return [one for one in cpu_time.running() if one.name not in spared]


def data_held() -> int | None:
    """Bytes of data that this process holds, as RLIMIT_DATA counts them; None if not on Linux.

    PyTorch built for CUDA takes about 550 MiB more of them than the CPU build, and touches few.
    """
    if sys.platform != "linux":
        return None
    found = HELD.search(Path("/proc/self/status").read_text())
    return 1024 * int(found[1]) if found else None


def in_use() -> int:
    """Bytes that this process has in memory, shared ones included; 0 if not on Linux."""
    return _resident(Path("/proc/self"))


def _resident(process: Path) -> int:
    """Memory in use, also on the swap, counting what a fork shares with the zygote as its own."""
    return _counted(process / "status", USED)


def _proportional(process: Path) -> int:
    """The same, but each shared page divided among those that share it."""
    return _counted(process / "smaps_rollup", SHARE) or _resident(process)


def _counted(path: Path, lines: re.Pattern[bytes]) -> int:
    """The sum of a file's lines, in bytes."""
    with contextlib.suppress(OSError):  # it ended, or does not let itself be looked at
        return 1024 * sum(map(int, lines.findall(path.read_bytes())))
    return 0


def _broker(action: Action, keep: int, group: int | None, limits: Limits, writing: int) -> None:
    """Make the namespaces, fork the student's process as their first, report its pid, and end."""
    try:
        uid, gid = os.getuid(), os.getgid()
        _libc("unshare", NEW_USER | NEW_PID | NEW_MOUNTS | NEW_IPC)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        child = os.fork()
        if child == 0:
            size = f"mode=1777,size={limits.file_bytes},nr_inodes=10000"
            _mount("proc", "/proc", NOSUID | NODEV | NOEXEC)
            _mount("tmpfs", SCRATCH, NOSUID | NODEV, size)
            _mount("tmpfs", "/dev/shm", NOSUID | NODEV, size)
            _become_student(action, keep, group, limits, OWN)
        answer: dict[str, object] = {"pid": child}
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    os.write(writing, json.dumps(answer).encode())
    os._exit(0)


def _become_student(
    action: Action, keep: int, group: int | None, limits: Limits, walls: str
) -> None:
    """Close what the zygote had open, apply the limits, run ``action`` and end."""
    status = 1
    try:
        if group is not None:
            os.write(group, ENTER)
        os.setpgid(0, 0)
        if walls == NONE:  # elsewhere its namespace ends it
            end_with_parent()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(keep, 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        _silence()
        os.makedirs(os.environ["HOME"], exist_ok=True)
        os.chdir(os.environ["HOME"])
        _limit(limits, walls)
        if walls != NONE:
            _drop_privileges()
        action(3)
        status = 0
    finally:
        os._exit(status)


def _silence() -> None:
    """Standard streams that lead nowhere: what cells print is caught above them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _limit(limits: Limits, walls: str) -> None:
    import resource

    for name, value in {
        "RLIMIT_DATA": limits.memory_bytes + (data_held() or 0),
        "RLIMIT_AS": 4 * limits.memory_bytes,
        "RLIMIT_CPU": limits.cpu_seconds,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_CORE": 0,
    }.items():
        if hasattr(resource, name):
            resource.setrlimit(getattr(resource, name), (value, value))
    if walls == OWN:  # elsewhere all processes of the user would count
        resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes, limits.processes))


def _drop_privileges() -> None:
    """Give up the rights over the new namespaces, and the system calls nobody needs here."""
    for capability in range(64):
        with contextlib.suppress(OSError):  # this kernel has fewer
            _libc("prctl", DROP_BOUND, capability, 0, 0, 0)
    header, empty = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _libc("capset", header, empty)
    _libc("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _libc("prctl", SET_DUMPABLE, 1, 0, 0, 0)  # the zygote may see how much memory it uses
    system_calls.forbid()


def _mount(kind: str, target: str, flags: int, options: str | None = None) -> None:
    data = options.encode() if options else None
    _libc("mount", kind.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data)


def _libc(name: str, *arguments: Any) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
