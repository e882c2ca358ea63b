"""What lesson 12 measures, and what it shows of several processes and of a GPU."""

import os
import re
import subprocess
import sys

import pytest
import torch

from attention.provided.measuring.saved_for_backward import kept_bytes, kept_tensors
from attention.provided.rehearsal import rehearse
from tests.waiting import LONG


def test_what_is_kept_twice_counts_once():
    x = torch.ones(4, 3, requires_grad=True)
    assert kept_tensors(lambda: x * x) == [((4, 3), 48)]
    assert kept_bytes(lambda: x.sum() + 1) == 0
    assert kept_bytes(lambda: x * x, [x]) == 0


@pytest.mark.long
def test_two_real_processes_agree_with_one():
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    done = subprocess.run(
        [*command, "2", "-m", "attention.experiments.training_on_gpu"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    weighted = re.search(r"weighted with its tokens: (\S+)", done.stdout)
    plain = re.search(r"plain mean of the processes: +(\S+)", done.stdout)
    assert weighted, done.stderr
    lines = re.findall(r"^process ([01]) of 2: \d+ of \d+ tokens$", done.stdout, re.MULTILINE)
    assert sorted(lines) == ["0", "1"], done.stdout
    assert float(weighted[1]) < 1e-5 < 0.1 < float(plain[1])


def test_what_a_gpu_refuses_is_printed(capsys):
    def mixed(x):
        return x + torch.arange(x.shape[0])

    assert rehearse(mixed, torch.ones(3)) is None
    assert "mixed: RuntimeError: Expected all tensors" in capsys.readouterr().out
    assert rehearse(lambda x: x.numpy(), torch.ones(3)) is None
    assert "use .cpu() first" in capsys.readouterr().out

    def made_there(x):
        return x + torch.arange(3, device=x.device)

    torch.testing.assert_close(rehearse(made_there, torch.ones(3)), torch.tensor([1.0, 2, 3]))
    assert capsys.readouterr().out == ""
