"""What lesson 00 opens with."""

import torch

from attention.experiments import getting_started


def test_a_number_is_translated_and_its_map_drawn(capsys):
    ax = getting_started.translation(231)
    said = capsys.readouterr().out
    assert "English: two hundred thirty one" in said
    assert "zweihunderteinunddreißig (right)" in said
    assert "kept out" not in said
    assert [label.get_text() for label in ax.get_yticklabels()] == list("zweihunderteinunddreißig")
    assert not ax.patches
    assert len(getting_started.scales(torch.softmax)) == 3


def test_a_wrong_translation_and_a_held_out_number_are_said_to_be_that(capsys):
    ax = getting_started.translation(700_610)  # siebenhundert, and then tausend is missing
    assert "(wrong)" in capsys.readouterr().out
    frame = ax.patches[0].get_bbox()
    assert (frame.y0, frame.y1) == (12.5, 13.5)
    getting_started.translation(next(n for n in range(100, 200) if getting_started.is_test(n)))
    assert "kept out of the training" in capsys.readouterr().out
