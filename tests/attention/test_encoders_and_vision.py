"""Lesson 16's library against PyTorch and loops, its tasks, and the experiment that it shows."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from attention.encoders_and_vision import (
    IGNORED,
    EncoderClassifier,
    HierarchicalAttention,
    VisionTransformer,
    attention_pooling,
    blank_each_patch,
    mask_tokens,
    mean_pooling,
    patchify,
)
from attention.experiments import encoders_and_vision as experiments
from attention.provided.data import digits, documents
from attention.provided.files import ROOT
from attention.provided.measuring.occlusion import occlusion_map
from attention.provided.training_steps import fewer
from benchmarks import digits as benchmark

STORED = json.loads((ROOT / "data" / "digits.json").read_text(encoding="utf-8"))
SMALL = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2}


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.integers(0, 99))
def test_mean_pooling_is_the_mean_of_what_is_real(B, T, d_model, seed):
    torch.manual_seed(seed)
    x, mask = torch.randn(B, T, d_model).double(), torch.rand(B, T) < 0.5
    for row, vectors, kept in zip(mean_pooling(x, mask), x, mask, strict=True):
        expected = vectors[kept].mean(0) if kept.any() else torch.zeros(d_model).double()
        torch.testing.assert_close(row, expected)
    torch.testing.assert_close(mean_pooling(x), x.mean(1))


def test_attention_pooling_is_pytorchs_attention_with_one_query():
    attention = nn.MultiheadAttention(7, 1, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        attention.in_proj_weight.copy_(torch.eye(7).repeat(3, 1))
        attention.out_proj.weight.copy_(torch.eye(7))
    x, query = torch.randn(3, 5, 7).double(), torch.randn(7).double()
    mask = torch.tensor([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]]).bool()
    expected, weights = attention(query.expand(3, 1, 7), x, x, key_padding_mask=~mask)
    got = attention_pooling(x, query, mask)
    torch.testing.assert_close(got[0], expected[:, 0])
    torch.testing.assert_close(got[1], weights[:, 0])


def test_attention_pooling_does_not_mind_the_order_and_begins_as_the_mean():
    x, query, order = torch.randn(2, 6, 5), torch.randn(5), torch.randperm(6)
    one, _ = attention_pooling(x, query)
    other, _ = attention_pooling(x[:, order], query)
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(attention_pooling(x, torch.zeros(5))[0], mean_pooling(x))


def test_nothing_to_attend_to_gives_zeros_and_finite_gradients():
    x, query = torch.randn(2, 3, 4, requires_grad=True), torch.randn(4, requires_grad=True)
    mask = torch.tensor([[False] * 3, [True] * 3])
    context, weights = attention_pooling(x, query, mask)
    assert not context[0].any() and not weights[0].any()
    context.sum().backward()
    assert x.grad.isfinite().all() and query.grad.isfinite().all()


def test_hierarchical_attention_is_attention_pooling_twice():
    module, x = HierarchicalAttention(6), torch.randn(2, 4, 5, 6)
    nn.init.normal_(module.word_query)
    nn.init.normal_(module.sentence_query)
    mask = torch.rand(2, 4, 5) < 0.6
    mask[0, 3] = False
    mask[0, 0, 0] = mask[1, :, 0] = True
    document, of_sentences, of_words = module(x, mask)
    sentences, words = attention_pooling(x, module.word_query, mask)
    expected, weights = attention_pooling(sentences, module.sentence_query, mask.any(-1))
    torch.testing.assert_close(document, expected)
    torch.testing.assert_close(of_sentences, weights)
    torch.testing.assert_close(of_words, words)
    assert of_sentences[0, 3] == 0


def test_what_stands_in_the_padding_changes_nothing():
    model = EncoderClassifier(5, 8, **SMALL).eval()
    x, mask = torch.randn(2, 6, 12), torch.tensor([[1, 1, 1, 0, 0, 0], [1] * 6]).bool()
    scores = model(x, mask)
    x[0, 3:] = 9.0
    torch.testing.assert_close(model(x, mask), scores)
    torch.testing.assert_close(model(x[:1, :3]), scores[:1])
    assert not torch.allclose(model(x), scores)


def test_an_encoder_classifier_is_pytorchs_encoder_behind_an_extra_token():
    ours = EncoderClassifier(5, 8, **SMALL).eval()
    layer = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, norm_first=True)
    theirs = nn.TransformerEncoder(layer, 2, nn.LayerNorm(12), enable_nested_tensor=False).eval()
    with torch.no_grad():
        theirs.norm.load_state_dict(ours.encoder.norm.state_dict())
        for mine, other in zip(ours.encoder.layers, theirs.layers, strict=True):
            for ending in ("weight", "bias"):
                three = [getattr(getattr(mine.attention, n), ending) for n in ("W_q", "W_k", "W_v")]
                getattr(other.self_attn, f"in_proj_{ending}").copy_(torch.cat(three))
            other.self_attn.out_proj.load_state_dict(mine.attention.W_o.state_dict())
            for n in (1, 2):
                linear = getattr(mine.feed_forward, f"linear_{n}").state_dict()
                getattr(other, f"linear{n}").load_state_dict(linear)
                norm = getattr(mine, f"norm_{n}").state_dict()
                getattr(other, f"norm{n}").load_state_dict(norm)
    x = torch.randn(3, 7, 12)
    longer = torch.cat([ours.cls.expand(3, 1, 12), x], 1) + ours.positions.table[:8]
    torch.testing.assert_close(ours(x), ours.head(theirs(longer)[:, 0]))


def test_a_sequence_that_is_too_long_is_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"T=9 .*max_length=8"):
        EncoderClassifier(5, 7, **SMALL)(torch.zeros(1, 8, 12))


def test_what_is_hidden_is_what_the_loss_counts():
    torch.manual_seed(0)
    tokens = torch.randint(2, 9, (50, 40)) * (torch.rand(50, 40) < 0.8)
    read, wanted = mask_tokens(tokens, torch.rand(50, 40), 0.15, mask_id=1)
    hidden = read == 1
    assert torch.equal(torch.where(hidden, wanted, read), tokens)
    assert (wanted[~hidden] == IGNORED).all() and not hidden[tokens == 0].any()
    assert 0.12 < hidden.sum() / (tokens != 0).sum() < 0.18
    loss = F.cross_entropy(torch.zeros(50 * 40, 9), wanted.flatten())
    torch.testing.assert_close(loss, torch.tensor(9.0).log())


@settings(max_examples=40)
@given(*[st.integers(1, 3)] * 5)
def test_patchify_is_unfold_and_folds_back(B, C, rows, columns, size):
    images = torch.randn(B, C, rows * size, columns * size)
    patches = patchify(images, size)
    torch.testing.assert_close(patches, F.unfold(images, size, stride=size).mT)
    back = F.fold(patches.mT, images.shape[2:], size, stride=size)
    torch.testing.assert_close(back, images)


def test_a_patch_that_does_not_fit_is_refused_with_the_numbers():
    with pytest.raises(ValueError, match=r"size=3 does not divide an image of 6 × 8"):
        patchify(torch.zeros(1, 1, 6, 8), 3)


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


def test_the_stored_parameters_are_those_of_the_models():
    for name, (make, _) in benchmark.NETWORKS.items():
        count = sum(p.numel() for p in make().parameters() if p.requires_grad)
        assert STORED["models"][name]["parameters"] == count
        assert len(STORED["models"][name]["right"]) == len(STORED["settings"]["seeds"]) == 3
    assert STORED["settings"]["epochs"] == experiments.EPOCHS
    assert {**STORED["settings"], **benchmark.SIZES} == STORED["settings"]


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


def test_the_record_supports_what_the_lesson_says():
    mean = {name: sum(row["right"]) / len(row["right"]) for name, row in STORED["models"].items()}
    assert min(STORED["models"]["ViT"]["right"]) > 0.97
    assert mean["CNN"] > mean["ViT"] > mean[benchmark.LOGISTIC]
    assert abs(mean["ViT"] - mean["ViT, patches shuffled"]) < 0.006
    assert mean["ViT, no positions"] < 0.82
    pairs = STORED["correlation"]
    for ink, attention in zip(pairs["ink and drop"], pairs["attention and drop"], strict=True):
        assert ink > attention


@pytest.mark.long
def test_the_benchmark_measures_what_is_blanked(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    to = tmp_path / "short.json"
    benchmark.main(["--to", str(to), "--seeds", "0", "--only", "ViT", "--epochs", "1"])
    found = json.loads(to.read_text(encoding="utf-8"))
    assert found["right with one patch blank"].keys() == STORED["right with one patch blank"].keys()
    assert found["correlation"].keys() == STORED["correlation"].keys()
