"""Answers of lessons 15 to 18: their figures are those that commands find, or have recorded."""

import json

import pytest
import torch

from autograder import ROOT
from benchmarks.answers import efficient_attention, interpretability, language_models
from benchmarks.answers.__main__ import ANSWERS, main
from tests.answers import listed, recorded, said, span


def spelled(key):
    return recorded("language_models", "seven hundred", key, steps=None)


def test_lesson_15_says_what_was_written():
    assert f"({span(spelled('right'))} of the 400 were numbers)" in said("15")
    assert spelled("kept back") == [1, 1, 1]
    assert "a single one, with each of the seeds" in said("15")
    assert f"wrote a number in {span(spelled('seven hundred'))} cases of 200" in said("15")
    given = span(spelled("two thousand seven hundred"))
    assert f"given “two thousand seven hundred” in {given}" in said("15")


def test_lesson_15_says_which_layers_connect_what():
    pairs, text = language_models.reached(), said("15")
    assert f"Of the {pairs['all pairs']} pairs" in text
    assert f"two local layers connect {pairs['local, then local']}:" in text
    assert f"Two compressed layers connect {pairs['compressed, then compressed']}:" in text
    assert f"One of each connects all {pairs['local, then compressed']}, in either order" in text
    assert pairs["local, then compressed"] == pairs["compressed, then local"]


@pytest.mark.parametrize(
    ("d_model", "place", "sentence"),
    [
        (8, 0, "after 300 steps {} of the documents are right"),
        (8, 1, "after 1 000 steps {}, "),
        (4, 2, "With 4 it gets {} right after 3 000 steps"),
    ],
)
def test_lesson_16_says_what_narrow_readers_learn(d_model, place, sentence):
    setting = {"reader": "tanh between", "d_model": d_model, "steps": 3000}
    found = recorded("encoders_and_vision", "narrow readers", "right", place, **setting)
    assert len(found) == 3
    assert sentence.format(span(found, 2)) in said("16")


def test_lesson_16_says_what_narrow_readers_know_in_the_end():
    of = "encoders_and_vision", "narrow readers", "right"
    late = recorded(*of, 2, reader="tanh between", d_model=8, steps=3000)
    assert f"after 3 000 steps {min(late):.3f} or more" in said("16")
    assert recorded(*of, 0, reader="two levels") == [1.0, 1.0, 1.0]
    assert "Two levels of attention, with 8 numbers, get all right after 300 steps" in said("16")


def test_lesson_16_says_how_the_maps_go_with_the_drop():
    of = "encoders_and_vision", "map of the first layer", "map and drop"
    first, last = (listed(recorded(*of, layer, epochs=None), 2) for layer in (0, 1))
    assert f"with the drop is {first}; that of the last layer {last}." in (said("16"))


def test_lesson_16_says_what_moved_images_are_worth():
    module = "encoders_and_vision"
    still = recorded(module, "map of the first layer", "right", epochs=None)
    vit, cnn, cnn_still = (
        recorded(module, "moved images", "right", model=model, pixels=pixels, epochs=None)
        for model, pixels in (("ViT", 1), ("CNN", 1), ("CNN", 0))
    )
    assert f"{listed(vit, 3)} of the test images are right, in place of {listed(still, 3)}." in (
        said("16")
    )
    assert f"The CNN gets {listed(cnn, 3)}, in place of {listed(cnn_still, 3)}" in said("16")


def test_lesson_17_says_how_far_first_letters_agree():
    text = said("17")
    path = ROOT / "data" / "interpretability.json"
    whole = json.loads(path.read_text("utf-8"))["explanation"]
    mean, low, high = whole["attention, all layers"]
    assert f"in place of {mean:.3f} ({low:.3f} to {high:.3f})" in text
    for name in ("gradient · input", "length of the gradient"):
        assert f"in place of {whole[name][0]:.3f}" in text
    found = interpretability.agreement(2)
    for name in ("attention", "gradient · input", "length of the gradient"):
        every, first = (found[f"{name}, {which}"] for which in ("all letters", "first letters"))
        assert 0 < every[1] <= every[0] <= every[2] < 1
        assert every != first


def test_lesson_17_says_that_equal_weights_can_be_moved():
    found = interpretability.moved(1)
    assert found["rows"] == 8
    assert found["equal weights"] > 4 * found["the model's weights"] > 0
    assert found["equal weights"] == pytest.approx(0.23, abs=0.03)
    assert "moves 0.23 of the weight" in said("17")


def test_lesson_18_says_how_many_tiles_are_left():
    found = efficient_attention.skipped(T=64, block=8, rounds=1)
    assert f"{found['left']} of {found['tiles']} tiles are left" in said("18")


def test_tiles_that_are_skipped_change_nothing():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 11, 4) for _ in range(3))
    context, tiles = efficient_attention.skipping(q, k, v, 4)
    whole = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(context, whole)
    assert tiles == 6


@pytest.mark.parametrize(
    ("features", "start"),
    [
        ("elu(x) + 1", "elu(x) + 1 "),
        ("its square", "its square "),
        ("its fourth power", "its fourth power "),
        ("exp(x)", "exp(x) "),
        ("softmax of x", "the softmax of x "),
        ("exp(x), exp(−x)", "exp(x) and exp(−x) side by side, 32 features, "),
    ],
)
def test_lesson_18_says_what_features_recall(features, start):
    found = recorded("efficient_attention", "features", "right", features=features, steps=None)
    assert start + listed(found, 2, ", ") in said("18")


def test_lesson_18_says_where_the_window_overtakes_the_kernel():
    before, after = efficient_attention.overtaken().values()
    text, longer = said("18"), f"{after['T']:,d}".replace(",", " ")
    assert f"between T = {before['T']}, where the window takes {before['window']} ms" in text
    assert f"and the fused kernel {before['fused kernel']}, and T = {longer}, " in text
    assert f"where it is {after['window']} against {after['fused kernel']}." in text


def test_an_unknown_lesson_is_refused(capsys):
    assert main(["99"]) == 1
    there = ", ".join(ANSWERS)
    assert capsys.readouterr().err == f"nothing to measure for 99; there are: {there}\n"


def test_the_command_prints_each_figure(capsys):
    assert main(["15", "08"]) == 0
    out = capsys.readouterr().out
    assert "lesson 15, 2 · two layers\n    local, then local: 84\n" in out
    assert "lesson 08, 2 · rows alike\n" in out
