"""The figures of lesson 19, and what its published model gives where it was fetched."""

import os

import pytest
import torch

from attention.experiments import hidden_tokens
from attention.experiments import published_model as experiments
from attention.interpretability import HiddenTokenAttribution
from attention.provided.data import sentences
from attention.provided.models import model_file
from attention.provided.models.bert import minilm
from attention.provided.models.bert.files import PUBLISHED, SMALL, build
from attention.published_model import (
    PublishedEncoder,
    gelu,
    rename_weights,
    sentence_vectors,
    wordpiece,
)

LESSON = PublishedEncoder, rename_weights, wordpiece
SAMPLE = torch.tensor([[2, 40, 50, 60, 3], [2, 70, 3, 0, 0]])


@pytest.fixture
def real():
    """The published model; CI fetches it, and there its tests may not be left out."""
    if not minilm.available() and not os.environ.get("REQUIRE_ALL"):
        pytest.skip(f"the published model is not here: {minilm.COMMAND}")
    return build(PUBLISHED, 0, *LESSON)


@pytest.fixture
def without(monkeypatch):
    monkeypatch.setattr(minilm, "available", lambda: False)


def test_the_published_weights_give_what_they_give_in_transformers(real):
    largest = experiments.difference(PUBLISHED, *LESSON)["largest"]
    assert len(largest) == 7 and max(largest) < 1e-5


def test_the_published_model_brings_the_pairs_together(real):
    cosines = torch.tensor(experiments.similar(PUBLISHED, *LESSON, sentence_vectors)["cosines"])
    pairs = cosines.diagonal(1)[::2]
    cosines.fill_diagonal_(0)
    assert (cosines.amax(dim=1)[::2] == pairs).all() and pairs.min() > 0.39


def test_the_small_weights_give_what_they_give_in_transformers():
    largest = experiments.difference(SMALL, *LESSON)["largest"]
    assert len(largest) == 4 and max(largest) < 1e-5


def test_another_layer_than_the_library_s_shows_in_the_difference():
    def without_scale(**sizes):
        model = PublishedEncoder(**sizes)
        for layer in model.encoder.layers:
            layer.norm_1.eps = 0.1
        return model

    largest = experiments.difference(SMALL, without_scale, rename_weights, wordpiece)["largest"]
    assert max(largest) > 1e-3


@pytest.mark.parametrize("change", experiments.CHANGES)
def test_each_change_changes_the_vectors(change):
    right, wrong = (build(SMALL, 0, *LESSON) for _ in range(2))
    experiments.changed(wrong, change)
    moved = (right.model(SAMPLE) - wrong.model(SAMPLE))[SAMPLE != 0].abs().max()
    assert (moved == 0) == (change == "capitals stay")  # that one is changed in the texts


def test_the_figures_return_what_is_recorded():
    assert experiments.show_similar().shape == (8, 8)
    experiments.draw_gelu(gelu)
    experiments.show_pieces(wordpiece)
    assert 0.85 < experiments.show_broken() < 0.95
    assert 0.4 < experiments.draw_found() < 0.5
    assert experiments.draw_meaning() >= 12
    assert 0.4 < hidden_tokens.draw_identifiability() < 0.7
    hidden_tokens.draw_effective()
    hidden_tokens.draw_attribution()


def test_one_of_two_equal_passages_is_found_half_the_time_however_it_is_rounded():
    queries = torch.eye(2)[[0, 0, 1]]
    for rounded in (-1e-7, 0, 1e-7):
        passages = queries.clone()
        passages[0, 0] += rounded
        assert sentences.found(queries, passages).tolist() == [0.5, 0.5, 1]


def test_without_the_published_model_its_record_is_shown(without, capsys):
    experiments.compare_layers(*LESSON)
    out = capsys.readouterr().out
    assert "stand-in, your layers" in out and "all-MiniLM-L6-v2, recorded" in out
    assert minilm.COMMAND in out


def test_a_stored_output_is_not_taken_from_an_altered_file(tmp_path, monkeypatch):
    path = tmp_path / "outputs.safetensors"
    path.write_bytes(experiments.TRANSFORMERS.read_bytes()[:-8] + b"altered!")
    monkeypatch.setattr(experiments, "TRANSFORMERS", path)
    with pytest.raises(model_file.ModelFileError, match="altered"):
        experiments.difference(SMALL, *LESSON)


def test_attribution_along_random_directions_is_near_that_along_all():
    bert = build(SMALL, 0, *LESSON)
    x = bert.model.embeddings(SAMPLE[:1])

    class Layers(torch.nn.Module):
        def forward(self, hidden):
            for layer in bert.model.encoder.layers:
                hidden = layer(hidden)
            return hidden

    exact = HiddenTokenAttribution(Layers())(x)
    estimated = hidden_tokens.attributed(bert.model.encoder.layers, x, seed=0)
    torch.testing.assert_close(estimated, exact, atol=0.03, rtol=0)
    assert (estimated - exact).abs().max() > 0
