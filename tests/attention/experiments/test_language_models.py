"""Lesson 15's writer of English: its text, its file, and the record of it and of its control."""

import pytest
import torch

from attention.experiments import language_models as experiments
from attention.experiments import recorded
from attention.language_models import DecoderOnly, generate
from attention.provided.data import novels
from attention.provided.models import model_file
from attention.tokens_and_positions import bpe_decode, bpe_encode
from benchmarks import novelist

TEXT = novels.split()[2][50_000:53_000]


def test_a_text_comes_back_from_its_tokens():
    ids = experiments.tokens_of(TEXT)
    assert ids.tolist() == bpe_encode(TEXT, experiments.merges())
    assert bpe_decode(ids.tolist(), experiments.merges()) == TEXT
    assert ids.min() > 3 and ids.max() < 256 + experiments.MERGES  # no PAD, no EOS


def test_bits_of_a_model_that_knows_nothing_are_those_of_its_vocabulary():
    ids = experiments.tokens_of(TEXT)
    bits = experiments.bits_a_character(lambda passages: torch.zeros(*passages.shape, 1024), TEXT)
    assert bits == pytest.approx(10 * len(ids) / len(TEXT))


def test_the_stored_writer_is_better_than_an_untrained_one_and_goes_on_alike():
    model = experiments.novelist(DecoderOnly)
    assert experiments.bits_a_character(model, TEXT) < 2.6
    once, again = (experiments.go_on(model, generate, "It is", 0.8, seed=4) for _ in range(2))
    assert once == again and once.startswith("It is")


def test_a_stored_writer_fits_the_class(tmp_path):
    path = tmp_path / "novelist.safetensors"
    model = DecoderOnly(1024, **experiments.SIZES)
    novelist.store(path, model_file.weights_of(model), 7)
    weights, about = model_file.load(path)
    assert about == {"steps": 7}
    model_file.put(weights, DecoderOnly(1024, **experiments.SIZES), path)
    assert path.stat().st_size < 2_000_000


def test_the_record_says_what_the_lesson_says():
    steps = experiments.LEARNED
    trained = [row for row in recorded.read("language_models", "English") if row["steps"] == steps]
    counts = recorded.read("language_models", "counts")
    assert [row["seed"] for row in trained] == [0, 1, 2]
    assert {row["parameters"] for row in trained} == {experiments.PARAMETERS}
    same = [row for row in counts if row["kept"] == experiments.PARAMETERS]
    best = min(same, key=lambda row: row["to choose by"])
    assert best["stored"] <= experiments.PARAMETERS and best["unit"] == "tokens"
    assert all(row["test"] > best["test"] for row in trained)
