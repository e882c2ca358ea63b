"""Files of GGUF: the numbers are those of the format's own package."""

import gguf as package
import numpy as np
import pytest
import torch

from attention.answers import unpack_q4
from attention.provided.models import gguf
from attention.provided.models.model_file import ModelFileError

KINDS = package.GGMLQuantizationType


def written(path, *kinds):
    """A file with a tensor of each kind; returns them, as the package reads them."""
    draw = np.random.default_rng(0)
    file = package.GGUFWriter(str(path), "llama")
    file.add_block_count(7)
    file.add_rope_freq_base(500.0)
    file.add_array("of.texts", ["a", "ß", ""])
    file.add_array("of.numbers", [1, -2])
    file.add_bool("yes", True)
    found = {}
    for kind in kinds:
        numbers = draw.normal(3, 2, (6, 96)).astype(np.float32)
        packed = package.quants.quantize(numbers, kind)
        file.add_tensor(kind.name, packed, raw_dtype=kind)
        found[kind.name] = torch.tensor(package.quants.dequantize(packed, kind))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return found


def test_settings_and_numbers_are_those_that_were_written(tmp_path):
    expected = written(tmp_path / "some.gguf", KINDS.F32, KINDS.Q4_1, KINDS.F16, KINDS.Q8_0)
    file = gguf.GGUF(tmp_path / "some.gguf")
    assert file.settings["llama.block_count"] == 7
    assert file.settings["llama.rope.freq_base"] == 500.0
    assert file.settings["of.texts"] == ["a", "ß", ""] and file.settings["of.numbers"] == [1, -2]
    assert file.settings["yes"] is True
    assert {*file.tensors} == {*expected}
    for name, stored in file.tensors.items():
        assert torch.equal(gguf.numbers(stored), expected[name])
        assert torch.equal(gguf.numbers(stored, unpack_q4), expected[name])


def test_a_learners_way_to_unpack_is_used_where_it_fits(tmp_path):
    expected = written(tmp_path / "some.gguf", KINDS.Q4_1, KINDS.Q8_0)
    tensors = gguf.GGUF(tmp_path / "some.gguf").tensors
    double = {n: gguf.numbers(x, lambda rows: 2 * unpack_q4(rows)) for n, x in tensors.items()}
    assert torch.equal(double["Q4_1"], 2 * expected["Q4_1"])
    assert torch.equal(double["Q8_0"], expected["Q8_0"])


@pytest.mark.parametrize("damage", ["missing", "empty", "other", "cut off", "other type"])
def test_what_cannot_be_read_is_said(tmp_path, damage):
    path = tmp_path / "some.gguf"
    written(path, KINDS.Q5_0 if damage == "other type" else KINDS.Q8_0)
    content = path.read_bytes()
    match damage:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "other":
            path.write_bytes(b"PK" + content)
        case "cut off":
            path.write_bytes(content[:-2000])
    with pytest.raises(ModelFileError, match=r"some\.gguf (cannot be read|is no GGUF)"):
        gguf.GGUF(path)
