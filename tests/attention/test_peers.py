"""The races against other libraries: fair, complete, and without those that are not installed."""

import re

import pytest
import torch

from benchmarks import training as ladder
from benchmarks.peers import __main__ as peers
from benchmarks.peers import modern, training

SIZE = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 2, "vocab_size": 40}
MINI = modern.SIZES["mini"]
INSTALLED = peers.present(training.PEERS)


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
    assert peers.present(["course", *training.PEERS]) == ["course", "nn.Transformer"]
    assert "so x-transformers is left out: pip install -c " in capsys.readouterr().out


@pytest.mark.parametrize("name", INSTALLED)
def test_a_peer_with_the_courses_weights_gives_its_logits(name):
    batches = training.make_batches(SIZE, 64, 1)
    assert training.difference(name, SIZE, batches[0]) < 1e-4


@pytest.mark.parametrize("name", peers.present(modern.PEERS))
def test_a_decoder_of_a_peer_gives_the_courses_logits(name):
    batches = modern.batches_of("mini")
    assert modern.difference(name, MINI, batches[0]) < peers.CLOSE
    counts = {
        sum(parameter.numel() for parameter in kind.parameters())
        for kind in (modern.course(MINI), modern.PEERS[name](**MINI))
    }
    assert len(counts) == 1


def test_a_peer_with_other_weights_is_noticed(capsys, monkeypatch):
    monkeypatch.setattr(training.NNTransformer, "take", lambda self, model: None)
    monkeypatch.setattr(peers, "present", lambda names: names[:2])
    assert peers.main(["training", "--sizes", "mini", "--rounds", "1"]) == 1
    shown = capsys.readouterr().out
    assert re.search("nn.Transformer: largest difference .*, which is too much", shown)


def test_the_courses_step_learns_as_the_peers_step_does(monkeypatch):
    """Without dropout, and from the same weights, the losses of several steps are the same."""
    for module in (training, ladder):
        monkeypatch.setattr(module, "DROPOUT", 0.0)
    batches = training.make_batches(SIZE, 64, 3)
    model, run = training.step_of_course(SIZE, batches)
    peer, run_peer = training.step_of_peer(training.NNTransformer, SIZE, batches)
    peer.take(training.course(SIZE, dropout=0.0))
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in peer.parameters())
    ours = run()
    assert ours == pytest.approx(run_peer(), rel=1e-4)
    assert len(set(ours)) == 3


@pytest.mark.parametrize("name", ["course", *INSTALLED])
def test_steps_in_bfloat16_learn_as_those_in_float32(name, monkeypatch):
    for module in (training, ladder):
        monkeypatch.setattr(module, "DROPOUT", 0.0)
    batches = training.make_batches(SIZE, 64, 2)
    exact, found = (
        training.make(name, SIZE, batches, dtype=dtype)[1]() for dtype in ("auto", "bfloat16")
    )
    assert found == pytest.approx(exact, rel=0.01)
    assert found != exact


@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_the_decoders_fast_step_learns_as_the_lessons_parts_do(dtype):
    batches = modern.batches_of("mini")
    found = modern.make("course", MINI, batches, dtype=dtype)[1]()
    usual = modern.make("the lesson's parts", MINI, batches, dtype=dtype)[1]()
    assert len(set(found)) == len(batches)
    assert found == pytest.approx(usual, rel=1e-4 if dtype == "auto" else 0.01)


def test_a_race_has_a_row_for_each_and_the_tokens_that_are_asked_for(capsys, monkeypatch):
    monkeypatch.setattr(peers, "present", lambda names: names[:2])
    counts = []
    for tokens in ("64", "640"):
        words = ["--sizes", "mini", "--rounds", "1", "--tokens", tokens]
        assert peers.main(["training", *words]) == 0
        shown = capsys.readouterr().out
        assert re.search(r"^  course .* 1\.00 \(1\.00–1\.00\) .* 1\.00$", shown, re.MULTILINE)
        assert re.search(r"^  nn.Transformer +\S+ +\S+ .*\)", shown, re.MULTILINE)
        counts.append(int(re.search(r"; ([0-9,]+) tokens a step", shown)[1].replace(",", "")))
    assert 5 < counts[1] / counts[0] < 14  # short batches are fuller


def test_an_unknown_race_is_refused(capsys):
    with pytest.raises(SystemExit):
        peers.main(["swimming"])
    assert "there is no race swimming; there are: training" in capsys.readouterr().err


# On a GPU, as far as that can be tested without one


def test_on_cuda_the_clock_waits_for_the_gpu(monkeypatch):
    done = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: done.append("wait"))
    peers.turns([lambda: done.append("work")], 1, "cuda")
    assert done == ["work", "wait", "work", "wait"]


def test_on_cuda_all_races_are_run_there(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A card")
    told = []
    for module, large in ((training, (64, 3)), (modern, (3, 8, 4))):
        monkeypatch.setitem(module.ON_CUDA, "mini", large)
        monkeypatch.setattr(module, "difference", lambda *words: told.append(words[-1]) or 0.0)
        monkeypatch.setattr(module, "make", lambda name, size, batches, *_: (None, len(batches)))
    monkeypatch.setattr(peers, "present", lambda names: names[:2])
    monkeypatch.setattr(peers, "turns", lambda runs, rounds, device: told.append((device, *runs)))
    monkeypatch.setattr(peers, "show", lambda *_: None)
    assert peers.main(["--sizes", "mini", "--device", "cuda"]) == 0
    assert told == ["cuda", ("cuda", 3, 3), "cuda", ("cuda", 4, 4)]  # compared, then raced
    assert "A card, 1 thread" in capsys.readouterr().out


def test_without_a_gpu_cuda_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        peers.main(["training", "--device", "cuda"])
    assert "--device cuda: this machine, or this PyTorch, has none" in capsys.readouterr().err
