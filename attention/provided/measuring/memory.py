"""How much memory a computation asks for in all, and its peak: on CUDA, or a CPU under Linux."""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
M_MMAP_THRESHOLD = -3  # of mallopt: memory of this size and more goes back as soon as it is free
PAUSE_SOFT = 1  # of OpenMP: its threads end, its settings stay


def megabytes(action: Callable[[], object]) -> float:
    """Return how much memory ``action()`` asks for in all, in megabytes (10⁶ bytes).

    Every tensor that is made counts once; views of it are free.

    >>> x = torch.zeros(500, 500)
    >>> megabytes(lambda: (x.T + 1).exp())  # two tensors of 250 000 numbers, 4 bytes each
    2.0
    """
    with _Count() as count, torch.no_grad():
        action()
    return count.bytes / 1e6


class _Count(TorchDispatchMode):
    """Adds up the sizes of the storages that operations make."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        old = {item.untyped_storage().data_ptr() for item in args if torch.is_tensor(item)}
        result = function(*args, **(kwargs or {}))
        for item in result if isinstance(result, tuple | list) else [result]:
            if torch.is_tensor(item) and item.untyped_storage().data_ptr() not in old:
                self.bytes += item.untyped_storage().nbytes()
        return result


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
