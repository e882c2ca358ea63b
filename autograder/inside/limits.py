"""How much of the grading machine one submission may use, and what keeps it from the rest."""

from dataclasses import asdict, dataclass
from typing import Any

MIB = 2**20

# What stands between a student's process and the machine:
OWN = "own"  # bubblewrap, and inside it namespaces of the student's own
SHARED = "shared"  # bubblewrap, started anew for each student
NONE = "none"  # nothing but the limits

OUT_OF_MEMORY = 77  # a student's process ends so if not even a request or a reply has room
NO_MEMORY = "can't allocate memory"  # PyTorch's words, in a RuntimeError


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception, Python's or PyTorch's, says that there is no more memory."""
    return isinstance(error, MemoryError) or NO_MEMORY in str(error)


@dataclass(frozen=True)
class Limits:
    """Bounds on one student's processes.

    Seconds are those in which they work or sleep, not those in which they wait for a processor:
    see ``sandbox/clock.py``.
    """

    memory_bytes: int = 2048 * MIB  # of the process and all it starts, beside the imports
    processes: int = 32  # threads included
    open_files: int = 64  # of each process: the kernel holds memory for each, which nobody counts
    cpu_seconds: int = 120  # of one process, by the kernel, whatever the grader is doing
    cell_seconds: float = 10.0
    check_seconds: float = 10.0  # everything that one check asks
    own_seconds: float = 20.0  # of the grader's CPU, on one check's own work; right answers need 2
    notebook_seconds: float = 180.0
    patience: float = 10.0  # the grader waits so many times as long for a machine without time
    file_bytes: int = 64 * MIB  # one file, and all files together
    output_chars: int = 20_000  # of one cell
    notebook_chars: int = 500_000  # of all cells together
    frame_bytes: int = 64 * MIB  # one message from the student's process
    replies_bytes: int = 128 * MIB  # all that one check is told; right answers need 8 MiB
    own_bytes: int = 1024 * MIB  # of the grader's memory, for one check's own work

    def exceeded(self, name: str) -> str:
        """What a student is told whose code met the limit of this name; see SENTENCES.

        >>> DEFAULT.exceeded("processes")
        'it started more than 32 processes'
        """
        most = getattr(self, name)
        return SENTENCES[name].format(most >> 20 if name.endswith("_bytes") else f"{most:g}")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, to be handed to the process that applies them."""
        return asdict(self)


# Of those limits that end a process or a check; bytes in MiB. The others are an exception inside,
# as of a file that is too large, or cut an output. Of time, ``sandbox/clock.py`` says how it went.
SENTENCES = {
    "memory_bytes": "it used more than {} MiB of memory",
    "processes": "it started more than {} processes",
    "frame_bytes": "it sent a result of more than {} MiB",
    "replies_bytes": "its results took more than {} MiB in one check",
    "own_seconds": "more than {} s of work with them",
    "own_bytes": "more than {} MiB",
}
DEFAULT = Limits()
