"""The board of searches: budgets hold, every setting counts, and the score is the lesson's BLEU."""

from types import SimpleNamespace

import pytest
import torch

from attention.decoding import beam_search
from attention.experiments import training
from attention.experiments.translation import pieces_of
from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import PAD
from attention.translation import corpus_bleu
from autograder.grading.notebook.submission import Cell
from autograder.leaderboard import entries, searches
from tests.autograder.leaderboard.sources import in_source, ranked

SLUG = "14_translation"


@pytest.fixture
def translator(monkeypatch):
    """A translator in doubt that cost no training, and eight numbers."""
    corpus = numbers()
    model = training.fresh(corpus, 0, d_model=16, n_heads=2, d_ff=16, n_layers=1).eval()
    with torch.no_grad():
        model.generator.weight *= 3
    monkeypatch.setattr(searches, "_translator", lambda seed: model)
    monkeypatch.setattr(searches, "held_out", lambda secret: corpus.test[500:508])
    return SimpleNamespace(model=model, corpus=corpus, pairs=corpus.test[500:508])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"beam": 5}, "5 beams of at most 80 tokens are 400 tokens, and the budget is 320"),
        ({"max_length": 81}, "4 beams of at most 81 tokens are 324 tokens, and the budget is 320"),
    ],
)
def test_over_the_budget_is_refused_with_both_numbers(changed, words):
    with pytest.raises(entries.Refused, match=words):
        searches.refuse(searches.USUAL | changed)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("'beam': 0", "beam=0 is not between 1 and 320"),
        ("'beam': 2.0", "beam=2.0 is not a whole number"),
        ("'temperature': 0", "temperature=0 is not between 0.05 and 20"),
        ("'alpha': -1", "alpha=-1 is not between 0 and 10"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(text, words):
    cell = Cell("code", f"leaderboard = {{'name': 'a', {text}}}")
    with pytest.raises(entries.Refused, match=words):
        entries.find([cell], searches.KINDS, searches.USUAL)


def test_the_lesson_asks_for_the_settings_of_the_board_and_they_keep_to_the_budget():
    found = in_source(SLUG, searches)
    assert found == searches.USUAL
    assert searches.refuse(found) == 320


def test_the_score_is_the_bleu_of_what_the_search_writes(translator, monkeypatch):
    wanted = [pair[2] for pair in translator.pairs]
    right = translator.corpus.batch(translator.pairs).target
    monkeypatch.setattr(searches, "beam_search", lambda *given: right)
    assert searches.score(searches.USUAL, 0, secret=1) == pytest.approx(1.0)
    half = right.clone()
    half[::2] = PAD
    monkeypatch.setattr(searches, "beam_search", lambda *given: half)
    texts = ["" if row % 2 == 0 else text for row, text in enumerate(wanted)]
    expected = corpus_bleu([pieces_of(text) for text in texts], [*map(pieces_of, wanted)])
    assert 0 < expected < 60
    assert searches.score(searches.USUAL, 0, secret=1) == pytest.approx(expected / 100)


def test_every_setting_reaches_the_search_and_the_translator_stays_as_it_is(
    translator, monkeypatch
):
    seen = []

    def kept(model, source, *how):
        seen.append((model.generator.weight.clone(), how))
        return beam_search(model, source, *how)

    monkeypatch.setattr(searches, "beam_search", kept)
    before = translator.model.generator.weight.clone()
    for temperature in (4.0, 1.0):
        settings = {"beam": 2, "alpha": 0.5, "max_length": 7, "temperature": temperature}
        searches.score(settings, 0, secret=1)
    (hot, how), (usual, _) = seen
    assert how == (2, 0.5, 7)
    assert torch.equal(hot, before / 4)
    assert torch.equal(usual, before)
    assert torch.equal(translator.model.generator.weight, before)


def test_the_command_searches_and_ranks_an_entry(translator, tmp_path):
    entry = 'leaderboard = {"name": "short", "max_length": 9}'
    rows, page = ranked(tmp_path, SLUG, entry)
    assert {name: row["tokens"] for name, row in rows.items()} == {
        "as in the lesson": "320",
        "short": "36",
    }
    assert "Ranked by the BLEU of translations" in page
    assert "%</td>" not in page
