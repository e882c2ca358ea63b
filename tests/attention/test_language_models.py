"""Lesson 15's library, the task on which its readers are compared, and the record of that."""

import json

import pytest
import torch

from attention.language_models import (
    DecoderOnly,
    MixtureOfExperts,
    generate,
    local_block_attention,
    top_k_gate,
)
from attention.provided.data import keywords
from attention.provided.data.tokens import EOS, PAD
from attention.provided.files import ROOT
from attention.provided.measuring import memory
from benchmarks import language_models as benchmark
from benchmarks import summarisers
from benchmarks.summarisers import CompressedAttention, LocalAttention

STORED = json.loads((ROOT / "data" / "language_models.json").read_text(encoding="utf-8"))


def model():
    torch.manual_seed(0)
    return DecoderOnly(11, d_model=12, n_heads=3, d_ff=20, n_layers=2).eval()


@pytest.mark.parametrize("kind", ["dense", "local", "compressed", "experts"])
def test_no_model_sees_the_future(kind):
    torch.manual_seed(0)
    kinds = (kind, kind) if kind != "experts" else ("local", "compressed")
    reader = summarisers.decoder_only(*kinds, experts=kind == "experts", positions=True).eval()
    tokens = torch.randint(4, 30, (2, 80))
    other = tokens.clone()
    other[:, 41:] = 5
    with torch.no_grad():
        before, after = reader(tokens), reader(other)
    torch.testing.assert_close(before[:, :41], after[:, :41])
    assert not torch.allclose(before[:, 41:], after[:, 41:], atol=1e-3)


def test_what_is_generated_is_what_the_model_holds_for_best():
    tokens = torch.randint(4, 11, (3, 5))
    written = generate(model(), tokens, lambda logits: logits.argmax(dim=1), 4)
    read = tokens
    for t in range(written.shape[1]):
        best = model()(read)[:, -1].argmax(dim=1)
        going_on = (read[:, 5:] != EOS).all(dim=1)
        assert torch.equal(written[going_on, t], best[going_on])
        assert (written[~going_on, t] == PAD).all()
        read = torch.cat([read, written[:, t : t + 1]], dim=1)


def test_blocks_never_make_a_square_of_scores():
    def megabytes(T):
        x = torch.randn(1, T, 8)
        return memory.megabytes(lambda: local_block_attention(x, x, x, 16))

    assert megabytes(1024) < 2.2 * megabytes(512)


@pytest.mark.parametrize("attention", [LocalAttention(12, 3, 4), CompressedAttention(12, 3, 4)])
def test_every_weight_of_an_attention_learns(attention):
    x = torch.randn(2, 9, 12)
    attention(x, x, x).square().sum().backward()
    for name, parameter in attention.named_parameters():
        assert parameter.grad is not None and (name == "W_k.bias" or parameter.grad.any()), name


def test_a_mixture_is_the_weighted_sum_of_the_chosen_experts():
    torch.manual_seed(0)
    mixture, x = MixtureOfExperts(6, 5, n_experts=4, k=2), torch.randn(2, 7, 6)
    gates = top_k_gate(mixture.router(x.flatten(0, 1)), 2)
    dense = torch.stack([expert(x.flatten(0, 1)) for expert in mixture.experts], dim=1)
    expected = (gates[:, :, None] * dense).sum(dim=1).view(2, 7, 6)
    torch.testing.assert_close(mixture(x), expected)
    torch.testing.assert_close(mixture.shares.sum(), torch.tensor(1.0))
    mixture.balance.backward()
    assert mixture.router.weight.grad.any()


def test_a_text_holds_the_words_of_its_summary_once_and_no_other_topic():
    texts, summaries = keywords.make(50, 20, torch.Generator().manual_seed(1))
    last = keywords.FIRST_TOPIC + len(keywords.TOPICS)
    for text, summary in zip(texts.tolist(), summaries.tolist(), strict=True):
        topics = [i for i in text if keywords.FIRST_TOPIC <= i < last]
        assert [*sorted(topics), EOS] == summary
        assert len(set(topics)) == keywords.KEYS
    assert keywords.scores(summaries, summaries) == (1.0, 1.0)
    assert keywords.scores(summaries[:, :2], summaries) == (0.5, 0.0)


@pytest.mark.every
@pytest.mark.long
def test_the_recorded_experiment_is_reproduced(tmp_path, monkeypatch):
    """One seed of the quickest model."""
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    name, to = "encoder-decoder, short", tmp_path / "again.json"
    benchmark.main(["--to", str(to), "--seeds", "0", "--only", name])
    again, recorded = json.loads(to.read_text(encoding="utf-8"))["models"][name], STORED["models"]
    assert again["found"][0] == pytest.approx(recorded[name]["found"][0], abs=0.03)
