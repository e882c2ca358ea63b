"""Answers of lessons 01 to 14: their figures are those that commands find, or have recorded."""

import math

import pytest
import torch

from attention.experiments.score_functions import crossing
from attention.experiments.tokens_and_positions import KINDS
from attention.score_functions import score
from attention.tokens_and_positions import sinusoidal_positions
from benchmarks.answers import (
    bahdanau_attention,
    kernel_regression,
    sequence_to_sequence,
    tokens_and_positions,
)
from tests.answers import listed, printed, recorded, said, span


def by_seed(*of, digits=2, **setting):
    """The values of the seeds, rounded as a text does."""
    return [f"{value:.{digits}f}" for value in recorded(*of, **setting)]


def test_lesson_01_says_what_is_predicted_far_away():
    levels = kernel_regression.far_away().values()
    at_8, at_20, at_1000, last = (f"{level:.2f}".replace("-", "−") for level in levels)
    assert f"it is {at_8} at 8 h and {at_20} at 20 h and 1000 h" in said("01")
    assert at_20 == at_1000 == last


def test_lesson_01_says_what_a_third_feature_does():
    found = kernel_regression.third_feature().values()
    told = [f"{mean:.1f} ± {spread:.1f} m" for mean, spread in found]
    text = "{} (standard deviation) with a spread of 0.1, {} with 0.3, and {} with 1."
    assert f"Over {kernel_regression.DRAWS} draws, the answer is {text.format(*told)}" in said("01")


def test_lesson_02_says_what_rounding_costs():
    found = sequence_to_sequence.rounded()
    told = [f"{three:.2f} and {four:.2f}" for three, four in found.values()]
    three, four = found["as it is"]
    assert f"{three:.2f} of the three-digit and {four:.2f} of the four-digit numbers" in said("02")
    text = "multiples of 0.1 it is {}, of 0.25 {}, of 0.5 (five possible values for each number) {}"
    assert text.format(*told[1:]) in said("02")


def test_lesson_02_says_how_probable_true_letters_are():
    median, low = sequence_to_sequence.letters().values()
    assert median > 0.99
    text = f"half of the letters have more than 0.99, and {low:.0%} less than 0.5"
    assert text.replace("%", " %") in said("02")


def test_lesson_03_says_what_a_single_look_costs():
    soft, hard = bahdanau_attention.one_word().values()
    assert list(soft) == list(hard) == [2, 3, 4, 5, 6]
    told = ", ".join(f"{share:.2f}" for share in soft.values())
    broken = ", ".join(f"{share:.2f}" for share in hard.values())
    assert f"falls from {told} (2 to 6 digits) to {broken}." in said("03")


def test_lesson_03_says_what_a_single_look_at_one_letter_costs():
    found = bahdanau_attention.one_word_once()
    told = listed((found[digits] for digits in (4, 5, 6)), 2)
    assert f"{told} of the letters of four, five and six digits are right" in said("03")


def test_lesson_03_says_what_exchanged_annotations_and_words_do():
    found, text = bahdanau_attention.exchanged(), said("03")
    assert found["annotations"] == found["as it is"]
    assert f"*{found['annotations']}*, as before." in text
    assert f"With the *words* exchanged it writes *{found['words']}*" in text
    assert f'"four seventy" gives *{found["not needed"]}*' in text


def test_lesson_04_says_how_many_pairs_a_rank_holds():
    of = "answers", "04 pairs that a rank holds", "found"
    for pairs in (3, 4):
        assert recorded(*of, r=1, pairs=pairs) == [2, 2, 2]
    for pairs in (4, 8):
        assert recorded(*of, r=2, pairs=pairs) == [pairs] * 3
    text = "4 of 4 and 8 of 8 with every seed, and {} of 12"
    assert text.format(listed(recorded(*of, r=2, pairs=12), 0)) in said("04")


def test_lesson_04_says_what_learned_queries_and_keys_do():
    of = "answers", "04 learned queries and keys"
    least = []
    for kind in ("dot", "scaled_dot"):
        assert recorded(*of, "found", kind=kind) == [6, 6, 6]
        least.append(math.floor(1000 * min(recorded(*of, "weight", kind=kind))) / 1000)
    assert f"wanted key at least {least[0]} and {least[1]})" in said("04")


def test_the_crossing_is_that_of_the_lesson():
    weight = crossing("reduced_rank", 6, seed=4, score=score, r=2)["weight"]
    shown = "reduced rank 2  mean weight on the wanted key, seeds 4, 5, 6:"
    assert f"{shown}  {weight:.2f}" in printed("04")


def test_lesson_05_says_what_is_fetched_without_a_matrix():
    of, text = ("answers", "05 fetch without a matrix", "loss"), said("05")
    assert set(by_seed(*of, digits=3, roles="q k")) == {"0.000"}
    assert "It learns as well: 0.000 for seeds 0 to 2." in text
    assert set(by_seed(*of, roles="k v", steps=1200)) == {"0.02"}
    assert "after 1200 steps the loss is 0.02 for seeds 0 to 2" in text


def test_lesson_05_says_what_dividing_by_d_does():
    def losses(**setting):
        return recorded("answers", "05 divided by d", "loss", **setting)

    text = said("05")
    slow = [loss for d in (512, 64) for loss in losses(power=1, d=d, times=1)]
    assert f"Hardly: {span(slow, 2)} after 120 steps, at 512 and at 64" in text
    root = span(losses(power=0.5, d=64), 2)
    assert f"0.002 at 512, {root} at 64)" in text
    assert f"it learns: 0.002 at 512, {span(losses(power=1, d=64, times=64), 2)} at 64" in text
    quick = losses(power=0.5, d=512) + losses(power=1, d=512, times=512)
    assert {f"{loss:.3f}" for loss in quick} == {"0.002"}


def test_lesson_07_says_what_time_and_the_identity_change():
    module, text = "multi_head_attention", said("07")
    assert set(by_seed("answers", "07 one head for longer", "loss")) == {"0.44"}
    usual = recorded(module, "how many heads", "loss", n_heads=1)
    assert "after 960 steps its loss is 0.44 for seeds 0 to 2" in text
    assert f"after 240 it was {span(usual, 2)}." in text
    two = recorded(module, "how many heads", "loss", n_heads=2)
    assert max(two + recorded("answers", "07 without W_o", "loss")) < 0.002
    assert "a loss below 0.002 for seeds 0 to 2, without it and with it" in text


def test_lesson_08_says_which_rows_are_alike():
    usual, ten, one = tokens_and_positions.alike().values()
    text = said("08")
    assert f"rows {listed(usual, 0)}, with {usual[15]:.1f} of 32" in text
    assert 5.5 < max(ten.values()) < 5.6
    assert "no row so far away gets more than 5.6" in text
    assert len(one) > 1
    assert f"row 84 gets {one[84]:.2f}" in text


def test_other_wavelengths_are_positions():
    places = torch.arange(tokens_and_positions.ROWS, dtype=torch.float64)
    expected = sinusoidal_positions(places, tokens_and_positions.D_MODEL)
    torch.testing.assert_close(tokens_and_positions.positions(10000), expected)


def test_lesson_08_says_how_long_each_kind_takes():
    of, text = ("answers", "08 farther back"), said("08")
    steps = {kind: recorded(*of, "steps", kind=kind) for kind in KINDS if kind != "none"}
    assert f"With sinusoidal positions it takes {span(steps['sinusoidal'])} steps" in text
    told = f"rotary ones {span(steps['rotary'])}, with learned ones {span(steps['learned'])} "
    assert told in text
    least = f"{min(recorded(*of, 'right')):.3f}".removeprefix("0")
    assert f"at least {least} right at 24 tokens" in text


def test_lesson_09_says_what_bolder_rates_do():
    of = "answers", "09 bolder rates", "last"
    told = [listed(recorded(*of, rate=rate), 2) for rate in (0.024, 0.048, 0.096)]
    text = "is {} at 0.024, {} at 0.048, and {} at 0.096."
    assert text.format(*told) in said("09")


def test_lesson_09_says_that_fewer_layers_learn():
    losses = recorded("answers", "09 fewer layers", "last")
    assert len(losses) == 6
    assert max(losses) < 0.01
    assert "No: below 0.01 in all runs, with 6 layers and with 3." in said("09")


def scored(key, seed=0):
    (found,) = recorded("answers", "14 other scores", key, seed=seed, each=20)
    return found


def test_lesson_14_says_what_the_arithmetic_mean_changes():
    plain, other = (listed(scored(key), 1) for key in ("bleu", "arithmetic"))
    assert f"4 and 32 without a penalty {plain} become {other}." in said("14")
    for seed in (0, 1, 2):
        plain, other = (scored(key, seed) for key in ("bleu", "arithmetic"))
        assert sorted(range(3), key=plain.__getitem__) == sorted(range(3), key=other.__getitem__)


def test_lesson_14_says_how_wide_the_range_is():
    assert f"the middle 95 % are {listed(scored('widths'), 1)} wide" in said("14")
    for seed in (0, 1, 2):
        wide, _, narrow = scored("widths", seed)
        assert wide / narrow == pytest.approx(2, abs=0.2)


def test_lesson_14_says_what_letters_change():
    greedy, beam = scored("by letters")
    text = said("14")
    assert (
        f"the greedy translations get {greedy:.1f} and those of the beam of 4 get {beam:.1f};"
        in text
    )
    greedy, beam = scored("by parts")
    assert f"by parts it was {greedy:.1f} against {beam:.1f}" in text
    for seed in (0, 1, 2):
        assert scored("by letters", seed)[0] > scored("by letters", seed)[1]
        assert scored("by parts", seed)[0] < scored("by parts", seed)[1]
    letters, parts = scored("brevity by letters")[1], scored("brevity by parts")[1]
    assert f"Its brevity is {letters:.2f} by letters and {parts:.2f} by parts:" in text
    ours, beam, wanted = scored("letters")
    told = f"{beam:.1f} letters a number, greedy search {ours:.1f}, the references {wanted:.1f}"
    assert told in text
