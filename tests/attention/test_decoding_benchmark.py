"""The benchmark of lesson 13: its table is complete, and a checkpoint is used."""

import torch

from attention.provided.models import translators
from benchmarks import decoding


def test_the_table_ends_with_a_ratio(capsys, monkeypatch):
    monkeypatch.setattr(decoding, "VOCABULARY", 50)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    decoding.main(["--sentences", "20", "--beam", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6 and "parameters, 20 sentences" in lines[0]
    assert sum("with a cache" in line for line in lines) == 2
    assert sum("scaled up" in line for line in lines) == 2
    assert float(lines[-1].removeprefix("ratio: ")) > 0


def test_a_checkpoint_of_the_training_command_is_used(capsys, monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    checkpoint = str(translators.CHECKPOINTS / "numbers.safetensors")
    decoding.main(["--sentences", "10", "--beam", "2", "--checkpoint", checkpoint])
    assert "673,408 parameters" in capsys.readouterr().out
