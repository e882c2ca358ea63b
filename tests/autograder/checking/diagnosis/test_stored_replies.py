"""What mutants may take of the machine."""

import sys

import pytest
import torch

from autograder.checking.diagnosis.stored_replies import ROOM, little_memory

resource = pytest.importorskip("resource", reason="Unix alone has it")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the data of a process")
def test_a_mutant_gets_little_memory_and_what_follows_as_much_as_before():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with little_memory():
        assert len(torch.zeros(ROOM // 4, dtype=torch.uint8)) == ROOM // 4
        with pytest.raises((RuntimeError, MemoryError)):
            torch.empty(2 * ROOM, dtype=torch.uint8)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
