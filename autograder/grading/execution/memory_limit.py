"""A bound on the memory that a check takes on the grader's own side."""

import contextlib
from collections.abc import Iterator

from autograder.inside.isolation import data_held
from autograder.inside.limits import out_of_memory


class MachineShort(Exception):
    """This process may take less memory than a check may; str() says what to do."""


@contextlib.contextmanager
def own_memory(most: int) -> Iterator[None]:
    """Let this process take at most ``most`` bytes more than it holds now.

    What asks for more gets MemoryError or, from PyTorch, RuntimeError: an ordinary exception of the
    check, and not the end of the process. Raises MachineShort in its place where the machine allows
    this process less than that: whoever is graded is not to blame. Without Linux nothing is bounded
    here: what remains is that the replies are small.
    """
    held = data_held()
    if held is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = held + most
    allowed = min((one for one in (soft, hard) if one != resource.RLIM_INFINITY), default=wanted)
    resource.setrlimit(resource.RLIMIT_DATA, (min(wanted, allowed), hard))
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if allowed < wanted and out_of_memory(error):
            raise MachineShort(
                f"a limit of {allowed >> 20} MiB is set for the data of this process (ulimit -d), "
                f"and a check may take {most >> 20} MiB: raise the limit and grade again"
            ) from error
        raise
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
