"""The races against other libraries: fair, complete, and without those that are not installed."""

import importlib.util
import re

import pytest
import torch

from attention.provided.data.tokens import PAD
from attention.train.core.devices import dtype_of_products
from benchmarks.peers import __main__ as peers
from benchmarks.peers import modern, racing, training

SIZE = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 2, "vocab_size": 40}
INSTALLED = [
    one.name
    for one in training.CONTESTANTS[1:]
    if one.package is None or importlib.util.find_spec(racing.PACKAGES[one.package])
]


def made(name):
    """A function that counts its calls, as contestants are made in their processes."""
    calls = []
    return lambda: calls.append(name) or len(calls)


@pytest.mark.long
def test_contestants_take_turns_and_tell_what_they_made():
    contestants = [racing.Contestant(name, made) for name in ("a", "b")]
    results = racing.race(contestants, {}, rounds=2)
    assert [one.name for one in results] == ["a", "b"]
    assert [one.value for one in results] == [1 + 2] * 2  # one call to warm up
    assert all(len(one.cpu) == len(one.wall) == 2 for one in results)


def fails(name, *arguments):
    raise RuntimeError("no kernel\nfor this")


@pytest.mark.long
def test_a_contestant_that_fails_ends_the_race_with_its_name():
    contestants = [racing.Contestant("a", made), racing.Contestant("b", fails)]
    with pytest.raises(SystemExit, match="b ended before its turn; see above"):
        racing.race(contestants, {}, rounds=1)


def test_a_ratio_is_of_the_same_round_and_shown_with_its_spread():
    results = [racing.Result("a", cpu=[1.0, 2.0, 1.0]), racing.Result("b", cpu=[2.0, 2.0, 4.0])]
    assert racing.ratios(results) == [(1, 1, 1), (2, 1, 4)]


def test_memory_counts_from_the_imports_on():
    def fill(name):
        kept = torch.ones(64 * 2**18)  # 64 MiB
        return lambda: float(kept[0])

    before = racing.resident_mib()
    run = fill("a")
    run()
    assert racing.peak_mib() - before > 50


def test_a_missing_package_is_left_out_with_the_way_to_install_it(capsys, monkeypatch):
    monkeypatch.setitem(racing.PACKAGES, "x-transformers", "no_such_module")
    found = racing.present(training.CONTESTANTS[:3])
    assert [one.name for one in found] == ["course", "nn.Transformer"]
    assert capsys.readouterr().out == (
        "x-transformers is not installed, so x-transformers is left out: "
        "pip install -c constraints.txt -e '.[peers]'\n"
    )


@pytest.mark.parametrize("name", INSTALLED)
def test_a_peer_with_the_courses_weights_gives_its_logits(name):
    batches = training.make_batches(SIZE, 64, 1)
    assert training.difference(name, SIZE, batches[0]) < 1e-4


def test_a_peer_with_other_weights_is_noticed(monkeypatch):
    batches = training.make_batches(SIZE, 64, 1)
    monkeypatch.setattr(training.NNTransformer, "take", lambda self, model: None)
    assert training.difference("nn.Transformer", SIZE, batches[0]) > peers.CLOSE


def test_the_courses_step_learns_as_the_peers_step_does(monkeypatch):
    """Without dropout, and from the same weights, the losses of several steps are the same."""
    monkeypatch.setattr(training, "DROPOUT", 0.0)
    monkeypatch.setattr("benchmarks.training.DROPOUT", 0.0)
    batches = training.make_batches(SIZE, 64, 3)
    model, run = training.step_of_course(SIZE, batches)
    peer, run_peer = training.step_of_peer(training.NNTransformer, SIZE, batches)
    peer.take(training.course(SIZE, dropout=0.0))
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in peer.parameters())
    ours = run()
    assert ours == pytest.approx(run_peer(), rel=1e-4)
    assert len(set(ours)) == 3


def test_batches_are_cut_as_in_training():
    batches = training.make_batches(SIZE, 64, 3)
    assert len(batches) == 3
    for source, target in batches:
        assert len(source) == len(target)
        assert len(source) * max(source.shape[1], target.shape[1]) <= 64
    assert training.real_tokens(batches) == sum((ids != PAD).sum() for b in batches for ids in b)


@pytest.mark.long
def test_the_table_of_a_race_has_a_row_for_each(capsys, monkeypatch):
    monkeypatch.setitem(training.SIZES, "tiny", SIZE)
    monkeypatch.setitem(training.TOKENS, "tiny", (64, 1))
    monkeypatch.setattr(training, "CONTESTANTS", training.CONTESTANTS[:1])
    assert peers.main(["training", "--sizes", "tiny", "--rounds", "2", "--dtype", "bfloat16"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^  course .* 1\.00 \(1\.00–1\.00\) .* 1\.00$", shown, re.MULTILINE)
    assert "parameters" in shown


def test_a_step_has_the_tokens_that_are_asked_for(capsys, monkeypatch):
    monkeypatch.setitem(training.SIZES, "tiny", SIZE)
    monkeypatch.setattr(training, "CONTESTANTS", training.CONTESTANTS[:0])
    monkeypatch.setattr(peers, "race", lambda *_, **__: [])
    monkeypatch.setattr(peers, "show", lambda *_: None)
    counts = []
    for tokens in (64, 640):
        peers.main(["training", "--sizes", "tiny", "--tokens", str(tokens)])
        shown = capsys.readouterr().out
        counts.append(int(re.search(r"; ([0-9,]+) tokens a step", shown)[1].replace(",", "")))
    assert 8 < counts[1] / counts[0] < 14


def test_an_unknown_race_is_refused(capsys):
    with pytest.raises(SystemExit):
        peers.main(["swimming"])
    assert "there is no race swimming; there are: training" in capsys.readouterr().err


# On a GPU, as far as that can be tested without one


class Pipe:
    """One end of a pipe, with all that will be asked."""

    def __init__(self, *asked):
        self.asked, self.sent = list(asked), []

    def recv(self):
        if not self.asked:
            raise EOFError
        return self.asked.pop(0)

    def send(self, what):
        self.sent.append(what)


def test_on_cuda_the_clock_waits_for_the_gpu_and_its_allocator_counts(monkeypatch):
    done = []
    for name, value in {
        "synchronize": lambda: done.append("wait"),
        "reset_peak_memory_stats": lambda: done.append("forget"),
        "memory_allocated": lambda: 2**20,
        "max_memory_allocated": lambda: 5 * 2**20,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    pipe = Pipe("work", "memory")
    contestant = racing.Contestant("a", lambda name: lambda: done.append("work") or 7)
    racing._serve(pipe, contestant, {}, "cuda")
    assert done == ["forget", "wait", "work", "wait"]
    (_, _, value), mib = pipe.sent
    assert (value, mib) == (7, 4.0)


def test_on_cuda_all_races_are_run_there(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A card")
    monkeypatch.setitem(training.ON_CUDA, "mini", (64, 3))
    monkeypatch.setitem(modern.ON_CUDA, "mini", (3, 8, 4))
    monkeypatch.setattr(peers, "present", lambda contestants: contestants[:2])
    told = []

    def race(contestants, settings, rounds, device="cpu"):
        told.append((device, settings["device"], len(settings["batches"])))
        return [racing.Result("course", [1.0], [2.0], 8.0, (1234, []))]

    for module in (training, modern):
        monkeypatch.setattr(module, "difference", lambda *_: told.append(_[-1]) or 0.0)
    monkeypatch.setattr(peers, "race", race)
    assert peers.main(["--sizes", "mini", "--rounds", "1", "--device", "cuda"]) == 0
    shown = capsys.readouterr().out
    # First compared, then raced.
    assert told == ["cuda", ("cuda", "cuda", 3), "cuda", ("cuda", "cuda", 4)]
    assert "A card, 1 thread" in shown and "3 steps a turn" in shown
    # 96 tokens in two seconds of the clock, though the processor worked for one.
    assert re.search(r"^  course +48 +1,000\.0 +2,000\.0 +1\.00 \(", shown, re.MULTILINE)


def test_another_result_is_told_in_the_exit_status(capsys, monkeypatch):
    monkeypatch.setattr(peers, "present", lambda contestants: contestants[:2])
    monkeypatch.setattr(peers, "race", lambda *_: [])
    monkeypatch.setattr(peers, "show", lambda *_: None)
    monkeypatch.setattr(training, "difference", lambda *_: 0.5)
    assert peers.main(["training", "--sizes", "mini"]) == 1
    assert "nn.Transformer: largest difference 5e-01, which is too much" in capsys.readouterr().out


def test_on_cuda_a_ratio_is_of_the_clock(capsys):
    results = [racing.Result("a", [1.0], [2.0], 8.0), racing.Result("b", [1.0], [5.0], 4.0)]
    peers.show(results, "cuda", 8)
    assert "2.50 (2.50–2.50)" in capsys.readouterr().out
    peers.show(results, "cpu", 8)
    assert "2.50 (2.50–2.50)" not in capsys.readouterr().out


def test_without_a_gpu_cuda_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        peers.main(["training", "--device", "cuda"])
    assert "--device cuda: this machine, or this PyTorch, has none" in capsys.readouterr().err
    assert dtype_of_products("auto", torch.device("cpu")) is None


@pytest.mark.parametrize("name", ["course", *INSTALLED])
def test_steps_in_bfloat16_learn_as_those_in_float32(name, monkeypatch):
    monkeypatch.setattr(training, "DROPOUT", 0.0)
    monkeypatch.setattr("benchmarks.training.DROPOUT", 0.0)
    batches = training.make_batches(SIZE, 64, 2)
    (_, exact), (_, found) = (
        training.make(name, SIZE, batches, dtype=dtype)() for dtype in ("auto", "bfloat16")
    )
    assert found == pytest.approx(exact, rel=0.01)
    assert found != exact


# Lesson 20's decoder

MINI = modern.SIZES["mini"]
PEERS = [
    one.name
    for one in modern.CONTESTANTS[1:]
    if one.package is None or importlib.util.find_spec(racing.PACKAGES[one.package])
]


@pytest.mark.parametrize("name", PEERS)
def test_a_decoder_of_a_peer_gives_the_courses_logits(name):
    batches = modern.batches_of("mini")
    assert modern.difference(name, MINI, batches[0]) < peers.CLOSE
    counts = {
        sum(parameter.numel() for parameter in kind.parameters())
        for kind in (modern.course(MINI), modern.PEERS[name](**MINI))
    }
    assert len(counts) == 1


@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_the_decoders_fast_step_learns_as_the_lessons_parts_do(dtype):
    batches = modern.batches_of("mini")
    found = modern.make("course", MINI, batches, dtype=dtype)()
    usual = modern.make("the lesson's parts", MINI, batches, dtype=dtype)()
    assert found[0] == usual[0] and len(set(found[1])) == len(batches)
    assert found[1] == pytest.approx(usual[1], rel=1e-4 if dtype == "auto" else 0.01)
    assert modern.real_tokens(batches) == 2 * 2 * 8
