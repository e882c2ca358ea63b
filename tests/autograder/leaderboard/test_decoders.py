"""The board of ways to write: budgets hold, every setting counts, what is drawn is repeatable."""

from types import SimpleNamespace

import pytest
import torch

from attention.decoding import beam_search, greedy, length_normalised
from attention.experiments import training
from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import EOS, PAD
from autograder.leaderboard import decoders, entries
from tests.autograder.leaderboard.sources import in_source, ranked

SLUG = "13_decoding"


@pytest.fixture
def translator(monkeypatch):
    """A translator in doubt that cost no training, and four numbers."""
    corpus = numbers()
    model = training.fresh(corpus, 0, d_model=16, n_heads=2, d_ff=16, n_layers=1).eval()
    with torch.no_grad():
        model.generator.weight *= 3
    monkeypatch.setattr(decoders, "_translator", lambda seed: model)
    pairs = corpus.test[500:504]
    monkeypatch.setattr(decoders.numbers, "held_out", lambda secret: pairs)
    source = corpus.batch(pairs).source
    return SimpleNamespace(model=model, corpus=corpus, pairs=pairs, source=source)


def write(translator, seed=0, **changed):
    settings = decoders.USUAL | {"max_length": 12} | changed
    return decoders.written(translator.model, translator.source, settings, seed)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"beam": 6}, "6 beams of at most 80 tokens are 480 tokens, and the budget is 400"),
        (
            {"how": "sample", "samples": 7},
            "7 samples of at most 80 tokens are 560 tokens, and the budget is 400",
        ),
    ],
)
def test_over_the_budget_is_refused_with_both_numbers(changed, words):
    with pytest.raises(entries.Refused, match=words):
        decoders.refuse(decoders.USUAL | changed)


def test_only_what_a_way_of_writing_uses_counts():
    assert decoders.refuse(decoders.USUAL | {"samples": 400}) == 400
    assert decoders.refuse(decoders.USUAL | {"how": "sample", "beam": 400}) == 400
    assert decoders.refuse(decoders.USUAL | {"how": "greedy", "beam": 400, "samples": 400}) == 80


def test_the_lesson_asks_for_the_settings_of_the_board_and_they_keep_to_the_budget():
    found = in_source(SLUG, decoders)
    assert found == decoders.USUAL
    assert decoders.refuse(found) == 400
    assert len(numbers().target_vocabulary) == decoders.VOCABULARY


def test_greedy_and_beam_are_those_of_the_lesson(translator):
    model, source = translator.model, translator.source
    assert torch.equal(write(translator, how="greedy"), greedy(model, source, 12))
    wide = write(translator, how="beam", beam=3, alpha=0.5)
    assert torch.equal(wide, beam_search(model, source, 3, 0.5, 12))


def test_samples_are_repeatable_and_every_setting_counts(translator):
    hot = {"how": "sample", "samples": 3, "temperature": 3.0}
    first = write(translator, **hot)
    assert torch.equal(first, write(translator, **hot))
    other = {"temperature": 0.2, "top_k": 2, "top_p": 0.3, "samples": 20, "max_length": 6}
    found = {name: write(translator, **hot | {name: value}) for name, value in other.items()}
    found["seed"] = write(translator, seed=1, **hot)
    assert [name for name, ids in found.items() if torch.equal(ids, first)] == []
    assert torch.equal(
        write(translator, **hot | {"top_k": 1}), padded(write(translator, how="greedy"))
    )


def padded(ids):
    return torch.nn.functional.pad(ids, (0, 12 - ids.shape[1]))


def test_the_best_sample_by_the_models_own_score_is_kept(translator, monkeypatch):
    short, long = [5, EOS, PAD, PAD], [6, 7, 8, EOS]
    unfinished = [9, 9, 9, 9]
    drawn = iter(torch.tensor([one] * 4) for one in (unfinished, short, long, unfinished))
    monkeypatch.setattr(decoders, "sample", lambda *given: next(drawn))
    with torch.no_grad():
        scores = translator.model(translator.source, torch.tensor([long] * 4))
    scores[:, :, :2] = -torch.inf
    steps = scores.log_softmax(-1)[:, range(4), long].sum(1)
    wanted = length_normalised(steps, torch.full((4,), 4), 2.0)
    value = decoders._value(translator.model, translator.source, torch.tensor([long] * 4), 2.0)
    torch.testing.assert_close(value, wanted)
    other = decoders._value(translator.model, translator.source, torch.tensor([short] * 4), 2.0)
    best = [long if one > two else short for one, two in zip(value, other, strict=True)]
    settings = {"how": "sample", "samples": 4, "max_length": 4, "alpha": 2.0}
    assert write(translator, **settings).tolist() == best


def test_without_any_end_the_first_sample_counts(translator, monkeypatch):
    drawn = iter([torch.full((4, 2), 5), torch.full((4, 2), 6)])
    monkeypatch.setattr(decoders, "sample", lambda *given: next(drawn))
    assert (write(translator, how="sample", samples=2, max_length=2) == 5).all()


def test_the_score_is_the_share_of_right_texts(translator, monkeypatch):
    right = translator.corpus.batch(translator.pairs).target
    monkeypatch.setattr(decoders, "written", lambda *given: right)
    assert decoders.score(decoders.USUAL, 0, secret=1) == 1.0
    half = right.clone()
    half[::2] = PAD
    monkeypatch.setattr(decoders, "written", lambda *given: half)
    assert decoders.score(decoders.USUAL, 0, secret=1) == 0.5


def test_the_command_writes_and_ranks_an_entry(translator, tmp_path):
    entry = 'leaderboard = {"name": "dice", "how": "sample", "samples": 2, "max_length": 9}'
    rows, page = ranked(tmp_path, SLUG, entry)
    assert {name: row["tokens"] for name, row in rows.items()} == {
        "as in the lesson": "400",
        "dice": "18",
    }
    assert "how sample, max_length 9, samples 2" in page
