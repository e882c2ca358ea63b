"""The grader's own memory for one check: what asks for more gets an exception, and no more."""

import resource
import sys
import threading

import pytest
import torch

from autograder.grading.execution.check_limits import own_memory
from autograder.inside.limits import MIB, out_of_memory

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the memory of a process is bounded on Linux only"
)


@pytest.mark.parametrize("take", [bytearray, lambda size: torch.empty(size, dtype=torch.uint8)])
def test_more_than_the_bound_is_an_exception(take):
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with own_memory(256 * MIB):
        assert len(take(64 * MIB)) == 64 * MIB
        with pytest.raises((MemoryError, RuntimeError)) as caught:
            take(512 * MIB)
    assert out_of_memory(caught.value)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert len(take(512 * MIB)) == 512 * MIB


def test_on_another_thread_as_well():
    found = []

    def work():
        with own_memory(256 * MIB):
            try:
                bytearray(512 * MIB)
            except MemoryError as error:
                found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(found) == 1
