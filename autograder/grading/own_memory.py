"""A bound on the memory that a check takes on the grader's own side."""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HELD = re.compile(r"^VmData:\s+(\d+) kB", re.MULTILINE)


@contextlib.contextmanager
def own_memory(most: int) -> Iterator[None]:
    """Let this process take at most ``most`` bytes more than it holds now.

    What asks for more gets MemoryError or, from PyTorch, RuntimeError: an ordinary exception of the
    check, and not the end of the process. Without Linux nothing is bounded here: what remains is
    that the replies are small.
    """
    found = HELD.search(Path("/proc/self/status").read_text()) if sys.platform == "linux" else None
    if found is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    bounds = (1024 * int(found[1]) + most, soft, hard)
    least = min(bound for bound in bounds if bound != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_DATA, (least, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
