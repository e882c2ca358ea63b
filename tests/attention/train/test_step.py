"""A step of several processes, each with its share of every batch, is that of one."""

import os
import traceback
from datetime import timedelta

import pytest
import torch
from torch import distributed

from attention.provided.data.tokens import EOS, PAD
from attention.train.core.step import Step
from attention.train.runs.settings import Settings
from attention.transformer import Transformer
from tests.waiting import LONG

SETTINGS = Settings(d_model=8, n_heads=2, d_ff=8, n_layers=1, dropout=0.0)
STEPS = 3


def losses():
    """The losses of three steps, each from a batch that shares out unevenly and one too small."""
    torch.manual_seed(0)
    model = Transformer(12, 12, d_model=8, n_heads=2, d_ff=8, n_layers=1, dropout=0.0, fused=True)
    step = Step(model, SETTINGS, torch.device("cpu"), None)
    for group in step.optimizer.param_groups:
        group["lr"] = 0.1
    five, one = torch.randint(EOS + 1, 12, (5, 6)), torch.randint(EOS + 1, 12, (1, 4))
    for row in range(5):
        five[row, row + 1 :] = PAD
    return [step([(five, five), (one, one)]).item() for _ in range(STEPS)]


def process(number, folder):
    """A copy of this process, as one of two: what it finds, it writes down."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        meeting, patience = f"file://{folder / 'meeting'}", timedelta(seconds=LONG)
        distributed.init_process_group("gloo", meeting, patience, rank=number, world_size=2)
        (folder / str(number)).write_text(" ".join(map(repr, losses())))
        distributed.barrier()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def test_two_processes_learn_as_one_does(tmp_path):
    children = [process(number, tmp_path) for number in range(2)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    found = [list(map(float, (tmp_path / str(n)).read_text().split())) for n in range(2)]
    assert found[0] == found[1]
    alone = losses()
    assert found[0] == pytest.approx(alone, rel=1e-4)
    assert len(set(alone)) == STEPS
