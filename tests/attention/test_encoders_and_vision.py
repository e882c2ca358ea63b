"""Lesson 16's library against PyTorch and loops, its tasks, and the experiment that it shows."""

import json

import pytest
import torch
from torch.nn import functional as F

from attention.encoders_and_vision import (
    VisionTransformer,
    blank_each_patch,
)
from attention.experiments import encoders_and_vision as experiments
from attention.provided.data import digits, documents
from attention.provided.files import ROOT
from attention.provided.measuring.occlusion import occlusion_map
from attention.provided.training_steps import fewer
from benchmarks import digits as benchmark

STORED = json.loads((ROOT / "data" / "digits.json").read_text(encoding="utf-8"))
SMALL = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2}


def test_a_vision_transformer_takes_colours_and_images_that_are_not_square():
    model = VisionTransformer((4, 6), 2, 3, 5, **SMALL).eval()
    images = torch.randn(2, 3, 4, 6)
    assert model(images).shape == (2, 5)
    assert model.embedding.weight.shape == (12, 12)
    assert len(model.classifier.positions.table) == 7
    tokens = F.conv2d(
        images, model.embedding.weight.view(12, 3, 2, 2), model.embedding.bias, stride=2
    )
    torch.testing.assert_close(model(images), model.classifier(tokens.flatten(2).mT))


def test_without_positions_the_order_of_the_patches_is_nothing():
    model = benchmark.without_positions().eval()
    images = digits.load().test_images[:20]
    shuffled = digits.shuffle_patches(images, 2)
    assert not torch.equal(images, shuffled)
    torch.testing.assert_close(model(images), model(shuffled), rtol=1e-4, atol=1e-5)
    model.classifier.positions.table.data.normal_()
    assert not torch.allclose(model(images), model(shuffled), atol=1e-2)


def test_the_occlusion_map_is_the_loss_of_probability():
    images, labels = torch.rand(2, 1, 4, 6), torch.tensor([3, 0])
    model = VisionTransformer((4, 6), 2, 1, 5, **SMALL).eval()
    drops = occlusion_map(model, images, labels, blank_each_patch(images, 2))
    assert drops.shape == (2, 6)
    for b in range(2):
        for n in range(6):
            blank, (row, column) = images[b : b + 1].clone(), divmod(n, 3)
            blank[:, :, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = 0
            torch.testing.assert_close(blank, blank_each_patch(images[b : b + 1], 2)[:, n])
            lost = model(images[b : b + 1]).softmax(1) - model(blank).softmax(1)
            torch.testing.assert_close(drops[b, n], lost[0, labels[b]], rtol=1e-3, atol=1e-6)


def test_the_split_of_the_digits_is_a_fifth_and_nothing_is_in_both():
    data = digits.load()
    assert len(data.train_images) == 1438 and len(data.test_images) == 359
    assert data.test_images.min() == 0 and data.test_images.max() == 1
    both = torch.cat([data.train_images, data.test_images]).flatten(1)
    assert len(both.unique(dim=0)) == 1797
    assert torch.equal(digits.load().test_labels, data.test_labels)


def test_documents_have_one_answer_that_their_words_alone_do_not_tell():
    made = documents.make(200, seed=5)
    assert torch.equal(made.words, documents.make(200, seed=5).words)
    for words, city, row in zip(made.words, made.cities.tolist(), made.sentence, strict=True):
        texts = [documents.text(sentence) for sentence in words if sentence.any()]
        found = [text for text in texts if "Ada" in text]
        assert len(found) == 1 and documents.CITIES[city] in found[0]
        assert documents.text(words[row]) == found[0]
        assert 4 <= len(texts) <= 8
        cities = [word for text in texts for word in text if word in documents.CITIES]
        assert len(set(cities)) == len(texts)
    assert made.cities.bincount(minlength=10).min() > 5


def test_while_nbgrader_runs_training_is_short(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    data = digits.load()
    assert fewer(300) == 5
    assert len(experiments.train(experiments.cnn(), data.train_images, data.train_labels)) == 1


@pytest.mark.every
@pytest.mark.long
def test_the_recorded_experiment_is_reproduced(tmp_path, monkeypatch):
    """Logistic regression, and one seed of one network."""
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    name, to = "ViT, patches of 4 × 4", tmp_path / "again.json"
    benchmark.main(["--to", str(to), "--seeds", "0", "--only", benchmark.LOGISTIC, name])
    again = json.loads(to.read_text(encoding="utf-8"))["models"]
    for one in (benchmark.LOGISTIC, name):
        row, recorded = again[one], STORED["models"][one]
        assert row["parameters"] == recorded["parameters"]
        assert row["right"][0] == pytest.approx(recorded["right"][0], abs=0.012)  # four images
