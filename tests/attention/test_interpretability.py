"""What is measured beside lesson 17's library, and a point of the record that the lesson draws."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.experiments import interpretability as measured
from attention.interpretability import (
    ActivationPatching,
    null_space_dimension,
    perturb_attention,
)
from attention.provided.data.number_words import alignment
from attention.provided.figures.explorer import Sentence, explorer
from attention.provided.files import ROOT
from attention.provided.measuring.other_weights import (
    effective_attention,
    largest_change,
    null_space,
)
from attention.provided.measuring.rank_agreement import tau
from attention.provided.models.rearranged_attention import rearranged
from attention.train import shipped
from benchmarks import interpretability as benchmark
from benchmarks.explained import right_letters

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
def test_effective_weights_have_the_same_output_and_are_the_smallest(T, d, seed):
    torch.manual_seed(seed)
    values, weights = torch.randn(T, d).double(), torch.rand(T).double().softmax(0)
    basis = null_space(values)
    assert basis.shape == (T, null_space_dimension(values)) == (T, max(0, T - d - 1))
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


def test_rearranged_weights_reach_the_other_values(numbers, few):
    model, batch = numbers[0], few[1]
    whole = right_letters(model, batch)
    for how in ("shuffled", "uniform"):
        with rearranged(model, batch.source, how):
            changed = right_letters(model, batch)
        assert changed.double().mean() < whole.double().mean()
    assert torch.equal(right_letters(model, batch), whole)


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
