"""The stored writer of lesson 20: it loads into the library's decoder, and says how it is made."""

import pytest
import torch

from attention.experiments import language_models as experiments
from attention.language_models import DecoderOnly
from attention.modern_decoder import ModernDecoder
from attention.provided.data import novels
from attention.provided.models import model_file
from attention.provided.models.decoders import small_writer
from attention.provided.models.model_file import ModelFileError
from benchmarks import small_writer as benchmark

TEXT = novels.split()[2][50_000:53_000]


def test_it_is_better_than_the_novelist_and_knows_its_merges():
    model = small_writer.load(ModernDecoder)
    bits = experiments.bits_a_character(small_writer.Scores(model), TEXT)
    assert bits < experiments.bits_a_character(experiments.novelist(DecoderOnly), TEXT)
    assert not model.training
    _, about = small_writer.read()
    assert [tuple(pair) for pair in about["merges"]] == experiments.merges()
    assert about["steps"] == experiments.LEARNED and about["rate"] == benchmark.RATE


def test_what_the_benchmark_stores_is_read_again(tmp_path, monkeypatch):
    path = tmp_path / "modern_decoder.safetensors"
    model = ModernDecoder(small_writer.VOCABULARY, **small_writer.SIZES)
    benchmark.store(path, model, 7, 0.1)
    assert path.stat().st_size < 1_400_000
    monkeypatch.setattr(small_writer, "PATH", path)
    tokens = torch.tensor([[5, 300, 7]])
    again = small_writer.load(ModernDecoder)
    torch.testing.assert_close(again(tokens)[0], model(tokens)[0], rtol=0, atol=1e-2)


@pytest.mark.parametrize("use", [small_writer.read, lambda: small_writer.load(ModernDecoder)])
def test_a_file_that_is_missing_or_of_another_model_says_how_it_is_made(tmp_path, monkeypatch, use):
    monkeypatch.setattr(small_writer, "PATH", tmp_path / "modern_decoder.safetensors")
    with pytest.raises(ModelFileError, match="is missing; `python -m benchmarks.small_w"):
        use()


def test_weights_of_another_model_say_how_they_are_made(tmp_path, monkeypatch):
    path = tmp_path / "modern_decoder.safetensors"
    model_file.save(path, {"embedding.weight": torch.zeros(2, 2)}, {"steps": 0})
    monkeypatch.setattr(small_writer, "PATH", path)
    with pytest.raises(ModelFileError, match="of another model: .* makes it again"):
        small_writer.load(ModernDecoder)
