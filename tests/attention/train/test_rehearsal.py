"""The whole training, on a device that refuses what CUDA refuses and says that it is CUDA."""

import dataclasses

import pytest
import torch
from torch import nn

from attention.train.core import devices, step
from attention.train.core.trainer import Trainer
from attention.train.corpora import token_ids
from attention.train.runs.run_folder import RunFolder
from attention.train.runs.settings import Settings
from autograder.inside.device.rehearsal import Rehearsed, landed
from tests.cuda import NAME, cuda

CPU = torch.device("cpu")
TINY = Settings(
    d_model=16, n_heads=2, d_ff=16, n_layers=1, dropout=0.0, steps=4, max_tokens=600, warmup=2,
    accumulate=2, every=2, average=2, dtype="float32",
)  # fmt: skip


@pytest.fixture(scope="module")
def pairs():
    """A few of the numbers."""
    made = token_ids.numbers(40)
    for split in ("val", "test"):
        made.texts[split], made.ids[split] = made.texts[split][:12], made.ids[split][:12]
    return made


@pytest.fixture
def device(monkeypatch):
    with cuda(monkeypatch) as there:
        yield there


def trainer(pairs, path, device, resume=False, **changes):
    chosen = dataclasses.replace(TINY, **changes)
    return Trainer(chosen, pairs, RunFolder(path), device, resume)


def train(pairs, path, device, **changes):
    RunFolder(path).begin({})
    made = trainer(pairs, path, device, **changes)
    made.run()
    return made


def losses(made):
    return [float(row["loss"]) for row in made.rows]


def validation(made):
    return [float(row["val_loss"]) for row in made.rows if row["val_loss"] != ""]


def is_there(tensors):
    return all(isinstance(x, Rehearsed) for x in tensors)


def moments(made):
    return [x for state in made.step.optimizer.state.values() for x in state.values()]


@pytest.mark.parametrize("changes", [{}, {"pre_norm": False, "tied": "target", "accumulate": 1}])
def test_it_has_the_losses_of_the_cpu(pairs, tmp_path, device, changes):
    there = train(pairs, tmp_path / "there", device, **changes)
    here = train(pairs, tmp_path / "here", CPU, **changes)
    assert losses(there) == pytest.approx(losses(here), rel=1e-4)
    assert validation(there) == pytest.approx(validation(here), rel=1e-4)
    assert losses(there)[-1] < losses(there)[0]
    assert is_there(there.model.parameters())
    assert there.step.optimizer.param_groups[0]["fused"] is True
    final, other = landed(dict(there.finish().state_dict())), dict(here.finish().state_dict())
    for name in other:  # the gradient of W_k.bias is 0 but for rounding, which AdamW makes a step
        if not name.endswith("W_k.bias"):
            torch.testing.assert_close(final[name], other[name], rtol=1e-3, atol=1e-4)


def test_a_resumed_training_has_the_losses_of_an_unbroken_one(pairs, tmp_path, device):
    changes = {"dropout": 0.2, "dtype": "auto"}
    whole = train(pairs, tmp_path / "whole", device, **changes)
    RunFolder(tmp_path / "broken").begin({})
    broken = trainer(pairs, tmp_path / "broken", device, **changes)
    for _ in range(3):  # a step more than was saved
        broken.rows.append(broken._advance())
        if broken.done == 2:
            broken._evaluate(broken.rows[-1])
            broken._save()
    torch.manual_seed(99)  # nothing of the first process is left in the second
    resumed = trainer(pairs, tmp_path / "broken", device, resume=True, **changes)
    assert resumed.done == 2
    assert is_there(moments(resumed)) and is_there(resumed.model.parameters())
    resumed.run()
    assert losses(resumed) == losses(whole)
    final, other = (landed(dict(made.finish().state_dict())) for made in (whole, resumed))
    torch.testing.assert_close(final, other, rtol=0, atol=0)


class TestPrecision:
    def test_bfloat16_is_taken_where_the_gpu_has_it(self, pairs, tmp_path, device, monkeypatch):
        made = trainer(pairs, tmp_path, device, dtype="auto")
        assert made.step.dtype == made.evaluation.dtype == torch.bfloat16
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
        assert trainer(pairs, tmp_path, device, dtype="auto").step.dtype is None
        assert trainer(pairs, tmp_path, CPU, dtype="auto").step.dtype is None

    def test_only_products_are_short(self, pairs, tmp_path, device):
        made = trainer(pairs, tmp_path, device, dtype="bfloat16")
        kinds = {}

        def see(module, _, result):
            kinds.setdefault(type(module).__name__, set()).add(result.dtype)

        for module in made.model.modules():
            module.register_forward_hook(see)
        made.rows.append(made._advance())
        made._evaluate(made.rows[-1])
        assert kinds["PackedAttention"] == kinds["Linear"] == {torch.bfloat16}
        assert kinds["LayerNorm"] == kinds["Embedding"] == kinds["Decoder"] == {torch.float32}
        kept = [*made.model.parameters(), *moments(made)]
        assert {x.dtype for x in kept} == {x.grad.dtype for x in made.model.parameters()}
        assert {x.dtype for x in kept} == {torch.float32}
        assert made.rows[-1]["loss"] > 0  # a number, of float32


def test_batches_are_copied_from_pinned_memory_without_waiting(
    pairs, tmp_path, device, monkeypatch
):
    made, seen, known = trainer(pairs, tmp_path, device), {}, torch.Tensor.to

    def to(self, *args, **kwargs):
        seen[self] = getattr(self, "pinned", False), kwargs.get("non_blocking", False)
        return known(self, *args, **kwargs)

    with monkeypatch.context() as within:
        within.setattr(torch.Tensor, "to", to)
        batch = made._tensors(pairs.ids["train"][:3])
    assert list(seen.values()) == [(True, True), (True, True)]
    assert is_there(batch)
    for there, here in zip(batch, seen, strict=True):
        assert landed(there).equal(here)
    monkeypatch.delattr(torch.Tensor, "pin_memory")  # on a CPU it is never asked for
    trainer(pairs, tmp_path, CPU)._tensors(pairs.ids["train"][:3])


@pytest.mark.parametrize("rows", [1, 5])
def test_the_shares_of_several_gpus_add_up(pairs, tmp_path, device, monkeypatch, rows):
    made = trainer(pairs, tmp_path, device)
    batch = made._tensors(pairs.ids["train"][:rows])
    whole = made.step.loss(*batch).item()
    monkeypatch.setattr(step, "world_size", lambda: 2)
    shares = []
    for rank in range(2):
        monkeypatch.setattr(step, "rank", lambda rank=rank: rank)
        shares.append(made.step.loss(*batch).item())
    assert sum(shares) / 2 == pytest.approx(whole, rel=1e-5)
    assert (shares[1] == 0) == (rows == 1)  # who gets no row takes part all the same
    assert made.step.loss(batch[0], batch[1] * 0).item() == 0  # as a batch of PAD alone


def test_a_device_is_chosen_by_the_rank_and_described(monkeypatch):
    taken = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"{NAME}, {device}")
    before = torch.get_float32_matmul_precision()
    try:
        monkeypatch.setenv("LOCAL_RANK", "3")
        assert devices.choose_device(None) == torch.device("cuda", 3) == taken[0]
        assert torch.get_float32_matmul_precision() == "high"
        assert devices.describe(taken[0]) == f"{NAME}, cuda:3"
        monkeypatch.delenv("LOCAL_RANK")
        assert devices.choose_device("cuda") == torch.device("cuda", 0)
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.long
def test_compiled_layers_are_whole_graphs_for_batches_of_every_size(pairs, tmp_path, monkeypatch):
    """On the CPU, for Inductor's kernels need a machine to run on: what Dynamo makes of them."""
    graphs, known = [], nn.Module.compile

    def keep(graph, _):
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(
        nn.Module, "compile", lambda self, **how: known(self, backend=keep, fullgraph=True, **how)
    )
    compiled = train(pairs, tmp_path / "compiled", CPU, compile=True)
    plain = train(pairs, tmp_path / "plain", CPU)
    assert losses(compiled) == pytest.approx(losses(plain), rel=1e-5)
    assert validation(compiled) == pytest.approx(validation(plain), rel=1e-5)
    sizes = {tuple(map(len, made)) for made in _sizes(compiled)}
    assert len(sizes) > 2 and len(graphs) == 4  # encoder and decoder, in training and evaluation
    torch.compiler.reset()


def _sizes(made):
    for batches, ids in ((made.batches, "train"), (made.held_out, "val")):
        for batch in batches:
            yield made._tensors([made.corpus.ids[ids][index] for index in batch])[0].T, batch
