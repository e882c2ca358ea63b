"""What lesson 14 shows of real sentences: the record, and how it is made."""

import pytest

from attention.experiments import recorded
from benchmarks import multi30k


def test_a_search_that_is_compared_with_itself_gains_nothing():
    greedy, wider = recorded.read("multi30k", "beam")
    assert (greedy["beam"], greedy["gain"]) == (1, [0.0, 0.0])
    assert wider["gain"][0] < wider["bleu"] - greedy["bleu"] < wider["gain"][1]


def test_words_are_found_whole():
    texts = ["i was not there .", "islands because of it ?", "he doesn &apos;t"]
    found = {row["point"]["pattern"]: row["result"] for row in multi30k.occurrences(texts)}
    assert {name: row["sentences"] for name, row in found.items()} == {
        "a man": 0,
        "is or are": 0,
        "was or were": 1,
        "not": 2,
        "i": 1,
        "you": 0,
        "because": 1,
        "a question mark": 1,
    }


def test_what_needs_no_translator_gets_a_score():
    texts = [f"{word} a b c" for word in "stuvwxyz"]
    scores = [row["result"]["bleu"] for row in multi30k.baselines(texts, texts)]
    assert scores[0] == pytest.approx(100)
    assert 0 < scores[1] < 100
