"""What the moving figures show of models is what the command records."""

import json

from attention.experiments import moving_figures
from attention.provided.figures import moving

RECORDED = json.loads(moving.RECORDED.read_text(encoding="utf-8"))


def test_what_needs_no_training_is_recorded_as_it_is():
    assert RECORDED["bandwidth"] == moving_figures.bandwidth()
    assert RECORDED["masks"] == moving_figures.masks()


def test_the_alignments_are_those_of_the_shipped_model():
    for stored, made in zip(RECORDED["crossing"], moving_figures.crossing(), strict=True):
        assert (stored["words"], stored["letters"]) == (made["words"], made["letters"])
        pairs = zip(stored["weights"], made["weights"], strict=True)
        gaps = [abs(a - b) for rows in pairs for a, b in zip(*rows, strict=True)]
        assert max(gaps) <= 1  # thousandths, and another processor may round differently


def test_probabilities_are_those_of_classes_and_patches():
    for image in RECORDED["patches"]:
        assert len(image["ink"]) == 8 and len(image["shares"]) == 17
        assert all(abs(sum(row) - 10_000) < 10 for row in image["shares"])
    sampling = RECORDED["sampling"]
    assert len(sampling["tokens"]) == len(sampling["scores"])
