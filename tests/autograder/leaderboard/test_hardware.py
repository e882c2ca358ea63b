"""The board of a counted training: budgets hold, and the notebook counts as the board does."""

import pytest
import torch

from attention.experiments.training_on_gpu import cost
from attention.provided.measuring.saved_for_backward import kept_bytes
from attention.training_on_gpu import training_flops, training_memory
from attention.transformer_blocks import EncoderLayer
from autograder.leaderboard import entries, hardware, numbers
from tests.autograder.leaderboard.sources import in_source

SLUG = "12_training_on_gpu"
TINY = {"d_model": 8, "n_heads": 2, "d_ff": 8, "n_layers": 1, "steps": 3, "sentences": 4}
CHANGES = (
    {},
    {"d_model": 96, "n_layers": 3},
    {"sentences": 9, "steps": 7},
    {"precision": "bfloat16"},
    {"checkpointing": True, "n_layers": 3},
    {"checkpointing": True, "precision": "bfloat16", "accumulation": 2},
)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"steps": 86}, "86 steps of 4 × 14 sentences take 201 GFLOPs, and the budget is 200"),
        ({"sentences": 17, "accumulation": 1}, "17 sentences at a time take 8312 kB, .* is 8000"),
        ({"steps": 126}, "126 steps of 4 passes are 504 passes, and the budget is 500"),
        ({"n_heads": 5}, "n_heads=5 does not divide d_model=64"),
    ],
)
def test_over_the_budget_is_refused_with_both_numbers(changed, words):
    with pytest.raises(entries.Refused, match=words):
        hardware.refuse(hardware.USUAL | changed)


def test_the_lesson_asks_for_the_settings_of_the_board_and_they_keep_to_the_budget():
    found = in_source(SLUG, hardware)
    assert found == hardware.USUAL
    assert hardware.refuse(found) == 187
    assert hardware.kilobytes(found) == 7223


def test_checkpointing_and_bfloat16_make_room_and_only_the_first_costs_operations():
    usual = hardware.USUAL
    short, forgetful = usual | {"precision": "bfloat16"}, usual | {"checkpointing": True}
    assert hardware.gflops(short) == hardware.gflops(usual) == 187
    assert hardware.gflops(forgetful) == 249
    assert hardware.kilobytes(forgetful) < hardware.kilobytes(short) < hardware.kilobytes(usual)


def test_the_notebook_counts_as_the_board_does(capsys):
    pieces = training_flops, training_memory
    for changed in CHANGES:
        settings = hardware.USUAL | changed
        counted = hardware.gflops(settings), hardware.kilobytes(settings)
        assert cost(settings | {"name": "a"}, *pieces) == cost(changed, *pieces) == counted
    budget = f"of {hardware.GFLOPS} GFLOPs, {counted[1]} of {hardware.KILOBYTES} kB"
    assert budget in capsys.readouterr().out


def test_in_bfloat16_a_layer_keeps_about_three_quarters():
    layer, x = EncoderLayer(64, 4, 128, 0.0, True, True), torch.randn(4, 60, 64, requires_grad=True)

    def short():
        with torch.autocast("cpu", torch.bfloat16):
            return layer(x)

    share = kept_bytes(short, layer.parameters()) / kept_bytes(lambda: layer(x), layer.parameters())
    assert 0.65 < share < 0.85


def test_a_short_training_is_repeatable_and_every_setting_counts():
    settings = hardware.USUAL | TINY | {"accumulation": 2, "warmup": 2, "rate": 0.01}

    def trained(**changed):
        return torch.cat([x.flatten() for x in _weights(settings | changed)])

    first = trained()
    assert torch.equal(first, trained())
    other = {"steps": 4, "sentences": 5, "accumulation": 3, "precision": "bfloat16"}
    other |= {"schedule": "rise", "rate": 0.02, "warmup": 1}
    same = [name for name, value in other.items() if torch.equal(first, trained(**{name: value}))]
    assert same == []
    assert trained(n_layers=2).shape != first.shape


def test_checkpointing_computes_each_layer_again_and_changes_no_weight(monkeypatch):
    calls = []

    def counted(self, *given, plain=EncoderLayer.forward):
        calls.append(torch.is_grad_enabled())
        return plain(self, *given)

    monkeypatch.setattr(EncoderLayer, "forward", counted)
    settings = hardware.USUAL | TINY | {"accumulation": 1}
    plain, once = _weights(settings), len(calls)
    again = _weights(settings | {"checkpointing": True})
    assert once == TINY["steps"]
    assert len(calls) == once + 2 * TINY["steps"]
    assert all(torch.equal(one, two) for one, two in zip(plain, again, strict=True))


def test_the_score_is_the_share_of_held_out_numbers_without_any_error(monkeypatch):
    monkeypatch.setattr(numbers, "EACH", 2)
    monkeypatch.setattr(hardware, "_trained", lambda settings, seed: (settings["rate"], seed))
    pairs = numbers.held_out(3)
    seen = []

    def translations(model, corpus, given):
        seen.append((model, given))
        return [pair[2] if row < 4 else "acht" for row, pair in enumerate(given)]

    monkeypatch.setattr(numbers.translators, "translations", translations)
    assert hardware.score(hardware.USUAL, 1, secret=3) == pytest.approx(4 / 6)
    assert seen == [((hardware.USUAL["rate"], 1), pairs)]


def _weights(settings):
    return list(hardware._trained(settings, 1).state_dict().values())
