"""Lesson 15's writer of English: its text, its file, and the record of it and of its control."""

import pytest
import torch

from attention.experiments import language_models as experiments
from attention.language_models import (
    DecoderOnly,
    compress,
    generate,
    language_model_loss,
    memory_compressed_attention,
)
from attention.masked_attention import masked_attention
from attention.provided.data import docstrings, novels
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


def test_a_leaky_mask_shows_in_what_is_printed(capsys):
    def leaky(q, k, v, stride):
        t, j = torch.arange(len(q))[:, None], torch.arange(len(k))
        return masked_attention(q, k, v, j * stride <= t)

    attentions = {"whole": memory_compressed_attention, "leaky": leaky}
    experiments.changed_by_token_7(attentions, compress)
    whole, leaks = capsys.readouterr().out.splitlines()
    assert whole.endswith("[8, 9, 10, 11]")  # its stretch ends at 8
    assert leaks.endswith("[6, 7, 8, 9, 10, 11]")


@pytest.mark.long
def test_twins_and_rules_are_counted(capsys):
    rows = docstrings.load()
    assert experiments.near_twins(rows) == pytest.approx(0.091, abs=0.001)
    assert "by component" in capsys.readouterr().out
    reached = experiments.rules(rows)
    assert max(reached, key=reached.get).startswith("“Return the”")


def test_a_text_of_ones_own_is_learned():
    torch.manual_seed(0)
    model = DecoderOnly(256 + experiments.MERGES, **experiments.SIZES)
    losses = experiments.learn_novels(model, language_model_loss, 8, text=120 * "one, two, three. ")
    assert losses[-1] < losses[0] - 1
