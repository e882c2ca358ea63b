"""Answers of lessons 01, 02, 03 and 08: what the command finds is what the text says."""

import torch

from attention.tokens_and_positions import sinusoidal_positions
from benchmarks.answers import (
    bahdanau_attention,
    kernel_regression,
    sequence_to_sequence,
    tokens_and_positions,
)
from tests.answers import listed, said


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


def test_lesson_02_says_how_many_letters_are_right():
    right, count, chance = sequence_to_sequence.letters().values()
    text = said("02")
    assert f"letters of six-digit numbers {right:.0%} are right".replace("%", " %") in text
    assert f"has about {count:.0f} of them" in text
    assert f"{right:.3f} to the power of {count:.0f}, or {chance:.0%}".replace("%", " %") in text


def test_lesson_03_says_what_a_single_look_costs():
    soft, hard = bahdanau_attention.one_word().values()
    assert list(soft) == list(hard) == [2, 3, 4, 5, 6]
    told = ", ".join(f"{share:.2f}" for share in soft.values())
    broken = ", ".join(f"{share:.2f}" for share in hard.values())
    assert f"falls from {told} (2 to 6 digits) to {broken}." in said("03")


def test_lesson_03_says_what_exchanged_annotations_do():
    found = bahdanau_attention.exchanged(at_most=60)  # of 732
    assert found["as before"] == found["numbers"] == 60
    assert f"*{found['74']}*, as before, and so with all 732 test numbers" in said("03")


def test_exchanged_annotations_are_exchanged():
    model = torch.nn.Module()
    model.encode = lambda source, lengths: (source[..., None].float(), None)
    annotations, _ = bahdanau_attention.swapped(model.encode)(
        torch.tensor([[5, 6, 7, 2], [8, 9, 2, 0]]), torch.tensor([4, 3])
    )
    assert annotations[..., 0].tolist() == [[5, 7, 6, 2], [9, 8, 2, 0]]


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
