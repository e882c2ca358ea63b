"""Lesson 17's library, what is measured beside it, and the record that the lesson draws."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.experiments import interpretability as measured
from attention.interpretability import (
    ActivationPatching,
    HeadImportance,
    HiddenTokenAttribution,
    LeaveOneOut,
    null_space_dimension,
    perturb_attention,
    token_identifiability,
)
from attention.provided.data.number_words import alignment
from attention.provided.data.tokens import PAD
from attention.provided.figures.explorer import Sentence, explorer
from attention.provided.files import ROOT
from attention.provided.measuring.other_weights import (
    effective_attention,
    largest_change,
    null_space,
)
from attention.provided.measuring.rank_agreement import tau
from attention.provided.models import translators
from attention.provided.models.attention_weights import watch_attention
from attention.provided.models.rearranged_attention import rearranged
from attention.train import shipped
from benchmarks import interpretability as benchmark
from benchmarks.explained import exact_without, right_letters

STORED = json.loads((ROOT / "data" / "interpretability.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def numbers():
    model, corpus = shipped.trained("numbers")
    return model.double(), corpus


@pytest.fixture(scope="module")
def few(numbers):
    return numbers[1].test[-6:], numbers[1].batch(numbers[1].test[-6:])


def test_role_scores_of_equal_weights_are_shares():
    mask = torch.ones(2, 5, 5).bool().tril()
    scores = measured.role_scores(measured.uniform(mask), measured.offset_role(mask, -1))
    torch.testing.assert_close(scores, torch.tensor([(1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4]))


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(1, 8), st.integers(0, 99))
def test_other_weights_have_the_same_output(T, d, seed):
    torch.manual_seed(seed)
    values, weights = torch.randn(T, d).double(), torch.rand(T).double().softmax(0)
    basis = null_space(values)
    assert basis.shape == (T, null_space_dimension(values)) == (T, max(0, T - d - 1))
    other = perturb_attention(weights, values, torch.randn(T).double())
    torch.testing.assert_close(other @ values, weights @ values)
    assert other.min() > -1e-12 and abs(other.sum() - 1) < 1e-12
    reached_zero, may_move = bool(other.min() < 1e-12), d + 1 < T
    assert reached_zero is may_move
    effective = effective_attention(weights[None], values)
    torch.testing.assert_close(effective @ values, (weights @ values)[None])
    assert effective.norm() <= weights.norm() + 1e-9
    unchanged, few_tokens = torch.allclose(effective[0], weights), d >= T
    assert unchanged is few_tokens


def test_the_search_gets_farther_than_random_directions():
    torch.manual_seed(0)
    values, weights = torch.randn(30, 12).double(), torch.randn(30).double().softmax(0)
    found = largest_change(weights, values)
    torch.testing.assert_close(found @ values, weights @ values)
    assert found.min() >= 0 and abs(found.sum() - 1) < 1e-9
    for _ in range(10):
        other = perturb_attention(weights, values, torch.randn(30).double())
        assert (found - weights).abs().sum() > (other - weights).abs().sum()


def test_tau_is_scipys():
    from scipy.stats import kendalltau  # slow to import

    torch.manual_seed(0)
    for _ in range(20):
        x, y = torch.randint(0, 5, (2, 7)).double()
        assert tau(x, y) == pytest.approx(kendalltau(x, y).statistic)


def test_letters_belong_to_the_words_of_their_numbers(numbers):
    for _, source, target in numbers[1].test:
        words = alignment(source, target)
        assert len(words) == len(target)
        assert {*words} - {None} == {*range(len(source.split()))}


def test_leaving_out_is_zero_for_padding_and_large_where_it_matters(numbers, few):
    pairs, batch = few
    effects = LeaveOneOut(numbers[0])(batch.source, batch.target)
    assert not effects.transpose(1, 2)[batch.source == PAD].any()
    role = measured.aligned_role(pairs, batch, first=True)
    inside = measured.aligned_role(pairs, batch, first=False)
    assert effects[role].mean() > 2 * effects[inside].mean() > 0


def test_attributions_are_rows_of_shares(numbers):
    x = torch.randn(2, 3, 128).double()
    shares = HiddenTokenAttribution(numbers[0].encoder)(x)
    torch.testing.assert_close(shares.sum(-1), torch.ones(2, 3).double())
    assert token_identifiability(x, x, torch.ones(2, 3).bool()).all()


def test_importance_is_the_slope_of_the_loss(numbers, few):
    model, batch = numbers[0], few[1]
    found = HeadImportance(model)(batch.source[:1], batch.target[:1])
    ask, step = HeadImportance(model), 1e-5
    for name, head in (("decoder.layers.0.attention", 2), ("decoder.layers.1.cross_attention", 0)):
        losses = []
        for sign in (1, -1):
            gates = torch.ones(4).double()
            gates[head] += sign * step
            with watch_attention(model, {name: gates}), torch.no_grad():
                log_p = ask.log_p(batch.source[:1], batch.target[:1])
            losses.append(-log_p[batch.target[:1] != PAD].sum().item())
        slope = abs(losses[0] - losses[1]) / (2 * step)
        assert found[name][head].item() == pytest.approx(slope, rel=1e-3)


def test_rearranged_weights_reach_the_other_values(numbers, few):
    model, batch = numbers[0], few[1]
    whole = right_letters(model, batch)
    for how in ("shuffled", "uniform"):
        with rearranged(model, batch.source, how):
            changed = right_letters(model, batch)
        assert changed.double().mean() < whole.double().mean()
    assert torch.equal(right_letters(model, batch), whole)


def test_greedy_translation_is_right_where_every_letter_is(numbers):
    model, corpus = numbers
    model.float()
    batch = corpus.batch(corpus.test[-30:])
    off = [("decoder.layers.0.attention", head) for head in range(2)]
    share = exact_without(model, batch, off)
    gates = {"decoder.layers.0.attention": torch.tensor([0.0, 0, 1, 1])}
    with watch_attention(model, gates):
        texts = translators.translations(model, corpus, corpus.test[-30:])
    right = [text == pair[2] for text, pair in zip(texts, corpus.test[-30:], strict=True)]
    assert share == pytest.approx(sum(right) / 30)
    model.double()


def test_the_explorer_holds_every_map_and_its_mean():
    maps = {"one": torch.tensor([[[0.25, 0.75]], [[1.0, 0.0]]])}
    page = explorer([Sentence("a </script> b", maps, {"one": (["q"], ["k", "l"])})]).data
    assert "</script> b" not in page
    assert '"weights": [[[25, 75]], [[100, 0]], [[62, 38]]]' in page


def test_a_vector_of_another_number_brings_its_word(numbers):
    model, corpus = numbers
    patching = ActivationPatching(model)
    assert measured.written(patching, corpus, 931, 139, [3]) == "neunhundertneununddreißig"
    assert measured.written(patching, corpus, 931, 139, [1, 2]) == "neunhunderteinunddreißig"
    found = measured.patch_many(patching, corpus, 2)
    assert {tuple(both) for both in found["another word"]} == {(False, True)}
    assert {tuple(both) for both in found["EOS"]} == {(True, True)}


@pytest.mark.long
def test_a_point_of_the_record_is_reproduced(tmp_path):
    to = tmp_path / "again.json"
    parts = ["rearranged", "identifiability"]
    threads = torch.get_num_threads()
    benchmark.main(["--to", str(to), "--only", *parts])
    torch.set_num_threads(threads)
    again = json.loads(to.read_text(encoding="utf-8"))
    for name, rows in STORED["rearranged"].items():
        for one, other in zip(again["rearranged"][name], rows, strict=True):
            assert one == pytest.approx(other, abs=0.01)
    for one, other in zip(
        again["identifiability"]["trained"], STORED["identifiability"]["trained"], strict=True
    ):
        assert one == pytest.approx(other, abs=0.01)
