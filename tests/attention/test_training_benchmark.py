"""The speed ladder: every rung is printed, and the last line compares with nn.Transformer."""

import re

import pytest
import torch

from attention.transformer import Transformer
from benchmarks import training

SIZE = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1, "vocab_size": 40}


@pytest.mark.long
def test_all_rungs_of_a_cpu_are_printed(capsys, monkeypatch):
    monkeypatch.setitem(training.SIZES, "tiny", SIZE)
    monkeypatch.setattr(training, "peak_flops", lambda device, dtype, n: 1e9)
    training.main(["--size", "tiny", "--device", "cpu", "--tokens", "64", "--quick"])
    lines = capsys.readouterr().out.splitlines()
    wanted = [name for name, _ in training.rungs(torch.device("cpu"), compiled=False)]
    shown = [name for name in wanted if any(line.startswith(f"  {name} ") for line in lines)]
    assert shown == wanted and len(wanted) == 5
    assert sum("nn.Transformer" in line for line in lines) == 3
    assert float(re.search(r"what helped: ([\d.]+)$", lines[-1])[1]) > 0


def test_the_peer_computes_what_the_library_computes():
    """The same sizes give as many parameters, up to the norms at the end of the peer's stacks."""
    peer = training.PyTorchTransformer(**SIZE)
    sizes = {name: value for name, value in SIZE.items() if name != "vocab_size"}
    ours = Transformer(40, 40, **sizes, tied="all")
    counted = [sum(p.numel() for p in model.parameters()) for model in (peer, ours)]
    assert counted[0] == counted[1]
    ids = torch.randint(3, 40, (2, 5))
    assert peer(ids, ids).shape == ours(ids, ids).shape == (2, 5, 40)
