"""The docstring corpus of lesson 15, its rules, and the record of a model that learns from it."""

import gzip
import json
from itertools import combinations

import pytest
import torch

from attention.provided.data import docstrings
from attention.provided.files import ROOT
from benchmarks import docstrings as benchmark

ROWS = docstrings.load()
STORED = json.loads((ROOT / "data" / "docstrings.json").read_text(encoding="utf-8"))
CARD = (ROOT / "data" / "README.md").read_text(encoding="utf-8")


def test_the_card_describes_the_file():
    size = docstrings.PATH.stat().st_size
    assert size < 1_000_000
    for number in (len(ROWS), size):
        assert f"{number:,}".replace(",", " ") in CARD
    assert docstrings.SHA256 in CARD
    for package in ("python", "numpy", "torch"):
        count = sum(row.module.startswith(package + "/") for row in ROWS)
        assert f"({count:,})".replace(",", " ") in CARD
    assert set("".join(" ".join(map(str, row)) for row in ROWS)) <= set(map(chr, range(32, 127)))


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "docstrings.json.gz"
    path.write_bytes(gzip.compress(b"[]"))
    with pytest.raises(ValueError, match="another version"):
        docstrings.load(path)


def test_near_twins_are_those_of_a_comparison_of_all_with_all():
    some = [row for row in ROWS if "optim" in row.module][:150] + list(ROWS[:150])
    sets = [docstrings.grams(row) for row in some]
    expected = [
        (i, j)
        for i, j in combinations(range(len(some)), 2)
        if len(sets[i] & sets[j]) >= 0.5 * len(sets[i] | sets[j])
    ]
    assert expected and docstrings.twins(some) == expected


def test_the_stored_components_hold_near_twins_together():
    pairs = docstrings.twins(ROWS)
    assert all(ROWS[i].component == ROWS[j].component for i, j in pairs)
    assert len({row.component for row in ROWS}) >= len(ROWS) - len(pairs)
    for how, key in docstrings.SPLITS.items():
        tested = [docstrings.is_test(key(row)) for row in ROWS]
        train, test = docstrings.split(ROWS, how)
        assert len(test) == sum(tested) and len(train) + len(test) == len(ROWS)
        assert 0.05 < len(test) / len(ROWS) < 0.15
        assert not {key(row) for row in train} & {key(row) for row in test}
        crossed = sum(tested[i] != tested[j] for i, j in pairs)
        assert (crossed == 0) == (how == "by component")


def test_the_tokens_of_a_text_give_the_text_again():
    tokens = benchmark.Tokens(ROWS[:200])
    assert tokens.size < benchmark.SPECIAL + 256 + benchmark.MERGES + 1
    for some in ROWS[:3]:
        text, summary = tokens.pair(some)
        assert tokens.decode(summary) == some.summary
        assert tokens.text(some).startswith(tokens.decode(text)[:-1])
        assert min(text) >= benchmark.SPECIAL and len(text) <= benchmark.READ


@pytest.mark.every
@pytest.mark.long
def test_the_recorded_experiment_is_reproduced(tmp_path, monkeypatch):
    """The first point of one seed: 20 steps."""
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    monkeypatch.setattr(benchmark, "best_constant", lambda rows: "Return the given.")
    to = tmp_path / "again.json"
    benchmark.main(["--to", str(to), "--seeds", "0", "--steps", "20"])
    again = json.loads(to.read_text(encoding="utf-8"))["points"][0]
    assert again["loss"] == pytest.approx(STORED["points"][0]["loss"], abs=0.05)
    assert again["rouge_l"] == pytest.approx(STORED["points"][0]["rouge_l"], abs=0.03)
