"""The benchmark of training: its table is complete."""

import re

import pytest
import torch

from benchmarks import training


@pytest.mark.long
def test_all_rungs_of_the_ladder_are_printed_and_the_last_is_compared(capsys, monkeypatch):
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1, "vocab_size": 40}
    monkeypatch.setitem(training.SIZES, "tiny", sizes)
    monkeypatch.setattr(training, "peak_flops", lambda device, dtype: 1e9)
    training.main(["--size", "tiny", "--device", "cpu", "--tokens", "64", "--quick"])
    lines = capsys.readouterr().out.splitlines()
    wanted = [name for name, _ in training.rungs(torch.device("cpu"), compiled=False)]
    shown = [name for name in wanted if any(line.startswith(f"  {name} ") for line in lines)]
    assert shown == wanted and len(wanted) == 5
    assert float(re.search(r"what helped: ([\d.]+)$", lines[-1])[1]) > 0
