"""The board of digits: budgets hold, held-out images are of no training and of no lesson."""

import pytest
import torch

from attention.provided.data import digits
from autograder.leaderboard import entries, vision
from tests.autograder.leaderboard.sources import in_source, ranked

SLUG = "16_encoders_and_vision"
TINY = {"d_model": 8, "n_heads": 2, "d_ff": 8, "n_layers": 1, "steps": 3, "images": 16}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"steps": 219}, "219 steps of 64 images are 14016 images, and the budget is 14000"),
        ({"d_ff": 140}, "has 72290 parameters, and the budget is 70000"),
        ({"n_heads": 5}, "n_heads=5 does not divide d_model=64"),
        ({"patch_size": 3}, "patch_size=3 does not divide an image of 8 × 8"),
    ],
)
def test_over_the_budget_is_refused_with_both_numbers(changed, words):
    with pytest.raises(entries.Refused, match=words):
        vision.refuse(vision.USUAL | changed)


def test_the_lesson_asks_for_the_settings_of_the_board_and_they_keep_to_the_budget():
    found = in_source(SLUG, vision)
    assert found == vision.USUAL
    assert vision.refuse(found) == 69194


def test_held_out_images_are_in_no_training_and_not_those_that_the_lesson_tests_on():
    def rows(images):
        return {tuple(row) for row in images.flatten(1).tolist()}

    lesson, parts = digits.load(), [vision.split(seed, secret=5) for seed in (0, 1, 2)]
    out = [rows(part.test_images) for part in parts]
    assert [len(one) for one in out] == [400, 400, 400]
    assert len(out[0] | out[1] | out[2]) == 1200
    for part, held_out in zip(parts, out, strict=True):
        assert not held_out & rows(part.train_images)
        assert not held_out & rows(lesson.test_images)
        assert len(part.train_images) + 400 == 1797
    assert rows(vision.split(0, secret=6).test_images) != out[0]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_short_training_is_repeatable_and_every_setting_counts(pooling):
    settings = vision.USUAL | TINY | {"pooling": pooling, "shift": 1, "rise": 0.0}
    data = digits.load()[:2]

    def trained(**changed):
        return vision._trained(settings | changed, 1, *data)(data[0][:9])

    first = trained()
    assert first.shape == (9, 10)
    assert torch.equal(first, trained())
    other = {"dropout": 0.3, "rate": 0.01, "rise": 0.9, "weight_decay": 0.9, "smoothing": 0.5}
    other |= {"shift": 0, "patch_size": 4, "steps": 2, "images": 17}
    other["pooling"] = "mean" if pooling == "cls" else "cls"
    same = [name for name, value in other.items() if torch.equal(first, trained(**{name: value}))]
    assert same == []


def test_an_epoch_has_every_image_once(monkeypatch):
    seen = []

    def kept(images, shift, draw):
        seen.extend(images[:, 0, 0, 0].tolist())
        return images

    monkeypatch.setattr(vision, "_moved", kept)
    images = torch.arange(40.0).view(-1, 1, 1, 1).expand(-1, 1, 8, 8)
    settings = vision.USUAL | TINY | {"steps": 5}
    vision._trained(settings, 0, images, torch.zeros(40, dtype=torch.int64))
    assert sorted(seen[:40]) == sorted(seen[40:]) == list(range(40))


def test_moved_images_keep_their_ink_inside_the_frame():
    image = torch.zeros(50, 1, 8, 8)
    image[:, :, 3, 4] = 1
    moved = vision._moved(image, 2, torch.Generator().manual_seed(0))
    places = {divmod(place, 8) for place in moved.flatten(1).argmax(dim=1).tolist()}
    assert moved.sum() == 50
    assert {row for row, _ in places} == {1, 2, 3, 4, 5}
    assert {column for _, column in places} == {2, 3, 4, 5, 6}


def test_the_rate_rises_to_its_peak_and_falls_to_nearly_nothing():
    rates = [vision._rate(step, 100, 0.01, 0.2) for step in range(1, 101)]
    assert max(rates) == rates[19] == 0.01
    assert rates[0] == pytest.approx(0.0005)
    assert rates[19:] == sorted(rates[19:], reverse=True)
    assert 0 < rates[-1] < 1e-4
    assert vision._rate(1, 1, 0.01, 0.0) > 0
    assert vision._rate(1, 1, 0.01, 1.0) == 0.01


def test_the_command_trains_and_ranks_an_entry(tmp_path, monkeypatch):
    monkeypatch.setattr(vision, "USUAL", vision.USUAL | TINY)
    entry = 'leaderboard = {"name": "larger", "patch_size": 4}'
    rows, page = ranked(tmp_path, SLUG, entry)
    assert rows.keys() == {"larger", "as in the lesson"}
    assert all(0 <= float(row["mean"]) <= 0.6 for row in rows.values())
    assert "the share of digits read right" in page
    assert "patch_size 4" in page
