"""The benchmark of lesson 12: its table is complete, and a checkpoint's sizes are found."""

import pytest
import torch
from safetensors.torch import save_file

from attention.transformer import Transformer
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


@pytest.mark.parametrize("tied", ["none", "target", "all"])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_the_sizes_of_a_checkpoint_are_found(tmp_path, tied, pre_norm):
    made = Transformer(9, 9, 12, 4, 20, 3, pre_norm=pre_norm, tied=tied)
    path = tmp_path / "made.safetensors"
    save_file({name: tensor.clone() for name, tensor in made.state_dict().items()}, path)
    found, _ = decoding.model_and_ends(path, "cpu")
    ids = torch.tensor([[3, 4, 2]])
    torch.testing.assert_close(found.eval()(ids, ids), made.eval()(ids, ids))
    shared = found.generator.weight is found.target_embedding.weight
    assert shared == (tied != "none")
