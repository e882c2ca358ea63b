"""The race against other libraries: fair, complete, and without those that are not installed."""

import re

import pytest
import torch

from benchmarks import decoders, peers

MINI = decoders.SIZES["mini"]
INSTALLED = peers.present(decoders.PEERS)


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)


def test_contestants_take_turns():
    done = []
    spent = peers.turns([lambda: done.append("a"), lambda: done.append("b")], 2, "cpu")
    assert "".join(done) == "ab" + "ab" + "ba"
    assert [len(one) for one in spent] == [2, 2]


def test_a_ratio_is_of_the_same_round_and_memory_counts_what_a_step_holds(capsys):
    def rows(mib):
        model = torch.nn.Linear(2**9, 2**9, bias=False)  # 1 MiB, as are gradients and two moments
        return model, lambda: torch.ones(mib * 2**18)

    made = [("course", *rows(4)), ("other", *rows(12))]
    peers.show(made, [[1.0, 2.0, 1.0], [2.0, 2.0, 4.0]], 10, "cpu")
    _, first, second = capsys.readouterr().out.splitlines()
    assert re.search(r"course +262,144 +10 +1,000\.0 +1\.00 \(1\.00–1\.00\) +8 +1\.00$", first)
    assert re.search(r"other +262,144 +5 +2,000\.0 +2\.00 \(1\.00–4\.00\) +16 +2\.00$", second)


def test_a_missing_package_is_left_out_with_the_way_to_install_it(capsys, monkeypatch):
    monkeypatch.setitem(peers.NEEDS, "x-transformers", "no_such_module")
    assert peers.present(["course", "x-transformers"]) == ["course"]
    assert "so x-transformers is left out: pip install -c " in capsys.readouterr().out


@pytest.mark.parametrize("name", INSTALLED)
def test_a_decoder_of_a_peer_gives_the_courses_logits(name):
    batches = decoders.batches_of("mini")
    assert decoders.difference(name, MINI, batches[0]) < peers.CLOSE
    counts = {
        sum(parameter.numel() for parameter in kind.parameters())
        for kind in (decoders.course(MINI), decoders.PEERS[name](**MINI))
    }
    assert len(counts) == 1


def test_a_peer_with_other_weights_is_noticed(capsys, monkeypatch):
    monkeypatch.setattr(decoders.Lesson, "give", lambda self, model: None)
    monkeypatch.setattr(peers, "present", lambda names: names[:2])
    assert peers.main(["--sizes", "mini", "--rounds", "1"]) == 1
    assert re.search("parts: largest difference .*, which is too much", capsys.readouterr().out)


@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_the_fast_step_learns_as_the_lessons_parts_do(dtype):
    batches = decoders.batches_of("mini")
    found = decoders.make("course", MINI, batches, dtype=dtype)[1]()
    usual = decoders.make("the lesson's parts", MINI, batches, dtype=dtype)[1]()
    assert len(set(found)) == len(batches)
    assert found == pytest.approx(usual, rel=1e-4 if dtype == "auto" else 0.01)


def test_a_race_has_a_row_for_each(capsys, monkeypatch):
    monkeypatch.setattr(peers, "present", lambda names: names[:2])
    assert peers.main(["--sizes", "mini", "--rounds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "16 tokens a step, 2 steps a turn" in shown
    assert re.search(r"^  course .* 1\.00 \(1\.00–1\.00\) .* 1\.00$", shown, re.MULTILINE)
    assert re.search(r"^  the lesson's parts +\S+ +\S+ .*\)", shown, re.MULTILINE)


# On a GPU, as far as that can be tested without one
