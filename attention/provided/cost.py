"""Time and peak memory of a computation on the device at hand: CUDA, MPS or CPU."""

import ctypes
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
M_MMAP_THRESHOLD = -3  # of mallopt: memory of this size and more goes back as soon as it is free
PAUSE_SOFT = 1  # of OpenMP: its threads end, its settings stay


def device_at_hand() -> str:
    """Return "cuda" or "mps" where PyTorch can use one, else "cpu"."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def shortest(
    action: Callable[[], object], device: str = "cpu", seconds: float = 0.0, least: int = 3
) -> float:
    """Return the shortest of several runs of ``action()``, in milliseconds, after one to warm up.

    seconds  run at least so long
    least    and at least so often

    On a CPU it is the time that this process computes, which other programs hardly disturb; it
    is the time on the clock if PyTorch computes on one thread. A GPU is waited for.
    """
    clock = time.process_time if device == "cpu" else time.perf_counter
    spent: list[float] = []
    begin = clock()
    while len(spent) < least + 1 or clock() - begin < seconds:
        start = clock()
        action()
        if device == "cuda":
            torch.cuda.synchronize()
        elif device == "mps":
            torch.mps.synchronize()
        spent.append(clock() - start)
    return 1000 * min(spent[1:])


def peak_mib(action: Callable[[], object], device: str = "cpu") -> float | None:
    """Return the peak of what ``action()`` holds beyond what was there before, in MiB (2²⁰ bytes).

    On CUDA it is that of PyTorch's allocator. For a CPU under Linux the action runs in a child
    process, twice, and PyTorch computes on one thread there, however many it has here: what the
    kernel counts in the second run is exact to some 100 KiB.

    Returns None where neither is available: MPS, or a CPU under macOS or Windows.
    Raises RuntimeError if the child does not come to its end: the action fails there, or it needs
    so much memory that the system stops it.
    """
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        action()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    if device != "cpu" or sys.platform != "linux":
        return None
    return _in_a_child(action)


def _in_a_child(action: Callable[[], object]) -> float:
    """Fork, set the child's peak back, run, and read how high the peak is then."""
    libc = ctypes.CDLL(None)
    # A child has none of its parent's threads, and would wait for ever for those of OpenMP.
    if stop_threads := getattr(libc, "omp_pause_resource_all", None):
        stop_threads(PAUSE_SOFT)  # the next who needs them here starts them again
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, _peak_kib(action, libc).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, errors="replace") as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    if not found.isdecimal():
        why = found or "it was stopped, as for want of memory"
        raise RuntimeError(f"the process that measured the memory did not come to its end: {why}")
    return int(found) / 1024


def _peak_kib(action: Callable[[], object], libc: ctypes.CDLL) -> str:
    """The peak of the action's second run in this process, in KiB, or the error that it raised."""
    try:
        torch.set_num_threads(1)
        libc.mallopt(M_MMAP_THRESHOLD, 2**16)
        action()  # what is loaded on the first call belongs to none
        libc.malloc_trim(0)  # nor does what is free and not given back
        CLEAR.write_text("5")  # the peak begins anew
        before = _kib("VmRSS")
        action()
        return str(max(0, _kib("VmHWM") - before))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _kib(field: str) -> int:
    """A number of KiB that the kernel keeps of this process."""
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))
