"""The figures in the answers to open questions are those that commands find, or have recorded.

A function of a lesson finds them, demands what holds of them, and yields what the answers say.
"""

import json
import math

import pytest
import torch

from attention.experiments.score_functions import crossing
from attention.experiments.tokens_and_positions import KINDS
from attention.score_functions import learn_crossing
from attention.tokens_and_positions import sinusoidal_positions
from autograder import ROOT
from benchmarks.answers import (
    bahdanau_attention,
    efficient_attention,
    interpretability,
    kernel_regression,
    language_models,
    sequence_to_sequence,
    tokens_and_positions,
)
from benchmarks.answers.__main__ import ANSWERS, main
from tests.answers import listed, printed, recorded, said, span


def by_seed(*of, digits=2, **setting):
    """The values of the seeds, rounded as a text does."""
    return [f"{value:.{digits}f}" for value in recorded(*of, **setting)]


def lesson_01_far_away():
    levels = kernel_regression.far_away().values()
    at_8, at_20, at_1000, last = (f"{level:.2f}".replace("-", "−") for level in levels)
    assert at_20 == at_1000 == last
    yield f"it is {at_8} at 8 h and {at_20} at 20 h and 1000 h"


def lesson_01_a_third_feature():
    found = kernel_regression.third_feature().values()
    text = "{} (standard deviation) with a spread of 0.1, {} with 0.3, and {} with 1."
    told = text.format(*(f"{mean:.1f} ± {spread:.1f} m" for mean, spread in found))
    draws = f"{kernel_regression.DRAWS:,}".replace(",", " ")
    yield f"Over {draws} draws, the answer is {told}"


def lesson_02_what_rounding_costs():
    found = sequence_to_sequence.rounded()
    three, four = found["as it is"]
    yield f"{three:.2f} of the three-digit and {four:.2f} of the four-digit numbers"
    told = [f"{three:.2f} and {four:.2f}" for three, four in found.values()][1:]
    text = "multiples of 0.1 it is {}, of 0.25 {}, of 0.5 (five possible values for each number) {}"
    yield text.format(*told)


def lesson_02_how_probable_true_letters_are():
    median, low = sequence_to_sequence.letters().values()
    assert median > 0.99
    yield f"half of the letters have more than 0.99, and {100 * low:.0f} % less than 0.5"


def lesson_03_what_a_single_look_costs():
    soft, hard = bahdanau_attention.one_word().values()
    assert list(soft) == list(hard) == [2, 3, 4, 5, 6]
    told, broken = (", ".join(f"{share:.2f}" for share in one.values()) for one in (soft, hard))
    yield f"falls from {told} (2 to 6 digits) to {broken}."
    found = bahdanau_attention.one_word_once()
    told = listed((found[digits] for digits in (4, 5, 6)), 2)
    yield f"{told} of the letters of four, five and six digits are right"


def lesson_03_what_exchanged_annotations_and_words_do():
    found = bahdanau_attention.exchanged()
    assert found["annotations"] == found["as it is"]
    yield f"*{found['annotations']}*, as before."
    yield f"With the *words* exchanged it writes *{found['words']}*"
    yield f'"four seventy" gives *{found["not needed"]}*'


def lesson_04_how_many_pairs_a_rank_holds():
    of = "questions", "04 pairs that a rank holds", "found"
    for pairs in (3, 4):
        assert recorded(*of, r=1, pairs=pairs) == [2, 2, 2]
    for pairs in (4, 8):
        assert recorded(*of, r=2, pairs=pairs) == [pairs] * 3
    text = "4 of 4 and 8 of 8 with every seed, and {} of 12"
    yield text.format(listed(recorded(*of, r=2, pairs=12), 0))


def lesson_04_what_learned_queries_and_keys_do():
    of = "questions", "04 learned queries and keys"
    least = []
    for kind in ("dot", "scaled_dot"):
        assert recorded(*of, "found", kind=kind) == [6, 6, 6]
        least.append(math.floor(1000 * min(recorded(*of, "weight", kind=kind))) / 1000)
    yield f"wanted key at least {least[0]} and {least[1]})"


def lesson_05_what_is_fetched_without_a_matrix():
    of = "questions", "05 fetch without a matrix", "loss"
    assert set(by_seed(*of, digits=3, roles="q k")) == {"0.000"}
    yield "It learns as well: 0.000 for seeds 0 to 2."
    assert set(by_seed(*of, roles="k v", steps=1200)) == {"0.02"}
    yield "after 1200 steps the loss is 0.02 for seeds 0 to 2"


def lesson_05_what_dividing_by_d_does():
    def losses(**setting):
        return recorded("questions", "05 divided by d", "loss", **setting)

    slow = [loss for d in (512, 64) for loss in losses(power=1, d=d, times=1)]
    yield f"Hardly: {span(slow, 2)} after 120 steps, at 512 and at 64"
    yield f"0.002 at 512, {span(losses(power=0.5, d=64), 2)} at 64)"
    yield f"it learns: 0.002 at 512, {span(losses(power=1, d=64, times=64), 2)} at 64"
    quick = losses(power=0.5, d=512) + losses(power=1, d=512, times=512)
    assert {f"{loss:.3f}" for loss in quick} == {"0.002"}


def lesson_07_what_time_and_the_identity_change():
    module = "multi_head_attention", "how many heads", "loss"
    assert set(by_seed("questions", "07 one head for longer", "loss")) == {"0.44"}
    yield "after 960 steps its loss is 0.44 for seeds 0 to 2"
    yield f"after 240 it was {span(recorded(*module, n_heads=1), 2)}."
    two = recorded(*module, n_heads=2)
    assert max(two + recorded("questions", "07 without W_o", "loss")) < 0.002
    yield "a loss below 0.002 for seeds 0 to 2, without it and with it"


def lesson_08_which_rows_are_alike():
    usual, ten, one = tokens_and_positions.alike().values()
    yield f"rows {listed(usual, 0)}, with {usual[15]:.1f} of 32"
    assert 5.5 < max(ten.values()) < 5.6
    yield "no row so far away gets more than 5.6"
    assert len(one) > 1
    yield f"row 84 gets {one[84]:.2f}"


def lesson_08_how_long_each_kind_takes():
    of = "questions", "08 farther back"
    steps = {kind: span(recorded(*of, "steps", kind=kind)) for kind in KINDS if kind != "none"}
    yield f"With sinusoidal positions it takes {steps['sinusoidal']} steps"
    yield f"rotary ones {steps['rotary']}, with learned ones {steps['learned']} "
    least = f"{min(recorded(*of, 'right')):.3f}".removeprefix("0")
    yield f"at least {least} right at 24 tokens"


def lesson_09_what_bolder_rates_do_and_that_fewer_layers_learn():
    of = "questions", "09 bolder rates", "last"
    told = [listed(recorded(*of, rate=rate), 2) for rate in (0.024, 0.048, 0.096)]
    yield "is {} at 0.024, {} at 0.048, and {} at 0.096.".format(*told)
    losses = recorded("questions", "09 fewer layers", "last")
    assert len(losses) == 6 and max(losses) < 0.01
    yield "No: below 0.01 in all runs, with 6 layers and with 3."


def scored(key, seed=0):
    (found,) = recorded("questions", "14 other scores", key, seed=seed, each=20)
    return found


def lesson_14_what_the_arithmetic_mean_changes():
    plain, other = (listed(scored(key), 1) for key in ("bleu", "arithmetic"))
    yield f"4 and 32 without a penalty {plain} become {other}."
    for seed in (0, 1, 2):
        plain, other = (scored(key, seed) for key in ("bleu", "arithmetic"))
        assert sorted(range(3), key=plain.__getitem__) == sorted(range(3), key=other.__getitem__)


def lesson_14_how_wide_the_range_is():
    yield f"the middle 95 % are {listed(scored('widths'), 1)} wide"
    for seed in (0, 1, 2):
        wide, _, narrow = scored("widths", seed)
        assert wide / narrow == pytest.approx(2, abs=0.2)


def lesson_14_what_letters_change():
    greedy, beam = scored("by letters")
    yield f"the greedy translations get {greedy:.1f} and those of the beam of 4 get {beam:.1f};"
    greedy, beam = scored("by parts")
    yield f"by parts it was {greedy:.1f} against {beam:.1f}"
    for seed in (0, 1, 2):
        assert scored("by letters", seed)[0] > scored("by letters", seed)[1]
        assert scored("by parts", seed)[0] < scored("by parts", seed)[1]
    letters, parts = scored("brevity by letters")[1], scored("brevity by parts")[1]
    yield f"Its brevity is {letters:.2f} by letters and {parts:.2f} by parts:"
    ours, beam, wanted = scored("letters")
    yield f"{beam:.1f} letters per number, greedy search {ours:.1f}, the references {wanted:.1f}"


def lesson_15_what_was_written():
    def spelled(key):
        return recorded("language_models", "seven hundred", key, steps=None)

    yield f"({span(spelled('right'))} of the 400 were numbers)"
    assert spelled("kept back") == [1, 1, 1]
    yield "a single one, with each of the seeds"
    yield f"wrote a number in {span(spelled('seven hundred'))} cases of 200"
    yield f"given “two thousand seven hundred” in {span(spelled('two thousand seven hundred'))}"


def lesson_15_which_layers_connect_what():
    pairs = language_models.reached()
    yield f"Of the {pairs['all pairs']} pairs"
    yield f"two local layers connect {pairs['local, then local']}:"
    yield f"Two compressed layers connect {pairs['compressed, then compressed']}:"
    yield f"One of each connects all {pairs['local, then compressed']}, in either order"
    assert pairs["local, then compressed"] == pairs["compressed, then local"]


def lesson_16_what_narrow_readers_learn():
    def right(place, d_model):
        setting = {"reader": "tanh between", "d_model": d_model, "steps": 3000}
        found = recorded("encoders_and_vision", "narrow readers", "right", place, **setting)
        assert len(found) == 3
        return found

    yield f"after 300 steps {span(right(0, 8), 2)} of the documents are right"
    yield f"after 1 000 steps {span(right(1, 8), 2)}, "
    yield f"With 4 it gets {span(right(2, 4), 2)} right after 3 000 steps"
    yield f"after 3 000 steps {min(right(2, 8)):.3f} or more"
    of = "encoders_and_vision", "narrow readers", "right", 0
    assert recorded(*of, reader="two levels") == [1.0, 1.0, 1.0]
    yield "Two levels of attention, with 8 numbers, get all right after 300 steps"


def lesson_16_how_the_maps_go_with_the_drop():
    of = "encoders_and_vision", "map of the first layer", "map and drop"
    first, last = (listed(recorded(*of, layer, epochs=None), 2) for layer in (0, 1))
    yield f"with the drop is {first}; that of the last layer {last}."


def lesson_16_what_moved_images_are_worth():
    module = "encoders_and_vision"
    still = listed(recorded(module, "map of the first layer", "right", epochs=None), 3)
    vit, cnn, cnn_still = (
        listed(
            recorded(module, "moved images", "right", model=model, pixels=pixels, epochs=None), 3
        )
        for model, pixels in (("ViT", 1), ("CNN", 1), ("CNN", 0))
    )
    yield f"{vit} of the test images are right, in place of {still}."
    yield f"The CNN gets {cnn}, in place of {cnn_still}"


def lesson_17_how_far_first_letters_agree():
    path = ROOT / "data" / "interpretability.json"
    whole = json.loads(path.read_text("utf-8"))["explanation"]
    mean, low, high = whole["attention, all layers"]
    yield f"in place of {mean:.3f} ({low:.3f} to {high:.3f})"
    for name in ("gradient · input", "length of the gradient"):
        yield f"in place of {whole[name][0]:.3f}"
    found = interpretability.agreement(2)
    for name in ("attention", "gradient · input", "length of the gradient"):
        every, first = (found[f"{name}, {which}"] for which in ("all letters", "first letters"))
        assert 0 < every[1] <= every[0] <= every[2] < 1
        assert every != first


def lesson_17_that_equal_weights_can_be_moved():
    found = interpretability.moved(1)
    assert found["rows"] == 8
    assert found["equal weights"] > 4 * found["the model's weights"] > 0
    assert found["equal weights"] == pytest.approx(0.23, abs=0.03)
    yield "moves 0.23 of the weight"


def lesson_18_how_many_tiles_are_left():
    found = efficient_attention.skipped(T=64, block=8, rounds=1)
    yield f"{found['left']} of {found['tiles']} tiles are left"


def lesson_18_what_features_recall():
    said_of = {
        "elu(x) + 1": "elu(x) + 1 ",
        "its square": "its square ",
        "its fourth power": "its fourth power ",
        "exp(x)": "exp(x) ",
        "softmax of x": "the softmax of x ",
        "exp(x), exp(−x)": "exp(x) and exp(−x) side by side, 32 features, ",
    }
    of = "efficient_attention", "features", "right"
    for features, start in said_of.items():
        yield start + listed(recorded(*of, features=features, steps=None), 2, ", ")


def lesson_18_where_the_window_overtakes_the_kernel():
    before, after = efficient_attention.overtaken().values()
    yield f"between T = {before['T']}, where the window takes {before['window']} ms"
    longer = f"{after['T']:,d}".replace(",", " ")
    yield f"and the fused kernel {before['fused kernel']}, and T = {longer}, "
    yield f"where it is {after['window']} against {after['fused kernel']}."


TOLD = [tell for name, tell in list(globals().items()) if name.startswith("lesson_")]


@pytest.mark.parametrize("tell", TOLD, ids=lambda tell: tell.__name__)
def test_the_answers_say_what_was_found(tell):
    text = said(tell.__name__.split("_")[1])
    assert [sentence for sentence in tell() if sentence not in text] == []


# That the commands compute what the lessons do


def test_the_crossing_is_that_of_the_lesson():
    weight = crossing("reduced_rank", 6, seed=4, learn_crossing=learn_crossing, r=2)["weight"]
    shown = "reduced rank 2  mean weight on the wanted key, seeds 4, 5, 6:"
    assert f"{shown}  {weight:.2f}" in printed("04")


def test_other_wavelengths_are_positions():
    places = torch.arange(tokens_and_positions.ROWS, dtype=torch.float64)
    expected = sinusoidal_positions(places, tokens_and_positions.D_MODEL)
    torch.testing.assert_close(tokens_and_positions.positions(10000), expected)


def test_tiles_that_are_skipped_change_nothing():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 11, 4) for _ in range(3))
    context, tiles = efficient_attention.skipping(q, k, v, 4)
    whole = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(context, whole)
    assert tiles == 6


def test_the_command_prints_each_figure_and_refuses_an_unknown_lesson(capsys):
    assert main(["15", "08"]) == 0
    out = capsys.readouterr().out
    assert "lesson 15, 2 · two layers\n    local, then local: 84\n" in out
    assert "lesson 08, 2 · rows alike\n" in out
    assert main(["99"]) == 1
    there = ", ".join(ANSWERS)
    assert capsys.readouterr().err == f"nothing to measure for 99; there are: {there}\n"
