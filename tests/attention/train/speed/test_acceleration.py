"""Dropout from bytes, and the loss without its logits: the same as PyTorch's, only faster."""

import os
import weakref

import pytest
import torch
from torch.nn import functional as F

from attention import multi_head_attention
from attention.multi_head_attention import MultiHeadAttention
from attention.provided.data.tokens import PAD
from attention.train.core.model import keep_few_kernels
from attention.train.speed import acceleration
from attention.train.speed.acceleration import (
    ByteDropout,
    ByteDropoutOfReLU,
    FastLoss,
    LinearCrossEntropy,
    PackedAttention,
    attend_in_float32,
    prepare,
)
from attention.training import label_smoothed_loss
from attention.transformer import Transformer

CPU = torch.device("cpu")


def small(**options):
    torch.manual_seed(0)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 2, "dropout": 0.5} | options
    return Transformer(11, 13, **sizes)


def remembered(forward):
    """Bytes of all that autograd keeps of a forward pass for the backward pass, each once."""
    kept = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes(), tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        result = forward()
    assert result.requires_grad
    return sum(size for size, _ in kept.values())


class TestByteDropout:
    def test_drops_the_share_asked_for_and_keeps_the_mean(self):
        torch.manual_seed(0)
        x = torch.ones(400, 1000)
        dropped = ByteDropout(0.25)(x)
        assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.005)
        assert dropped.unique().tolist() == [0.0, pytest.approx(1 / 0.75)]
        assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)

    def test_the_gradient_passes_where_the_number_passed(self):
        torch.manual_seed(0)
        x = torch.ones(7, 9, requires_grad=True)
        y = ByteDropout(0.5)(x)
        y.sum().backward()
        torch.testing.assert_close(x.grad, y.detach())

    @pytest.mark.parametrize("p, training", [(0.5, False), (0.0, True)])
    def test_does_nothing_in_evaluation_or_for_p_0(self, p, training):
        x = torch.randn(3, 5)
        assert ByteDropout(p).train(training)(x) is x

    def test_remembers_a_byte_for_each_number(self):
        x = torch.ones(30, 40, requires_grad=True)
        assert 30 * 40 <= remembered(lambda: ByteDropout(0.5)(x)) <= 30 * 40 + 8


class TestByteDropoutOfReLU:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_is_byte_dropout_after_relu(self, dtype):
        found = []
        for module in (
            torch.nn.Sequential(torch.nn.ReLU(), ByteDropout(0.25)),
            ByteDropoutOfReLU(0.25),
        ):
            torch.manual_seed(0)
            x = torch.randn(30, 40).to(dtype).requires_grad_()
            y = module(x)
            found.append((y, *torch.autograd.grad((y * y).sum(), x)))
        (y, _), _ = found
        assert 0.3 < (y > 0).float().mean().item() < 0.45  # half are positive, a quarter is dropped
        torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)

    @pytest.mark.parametrize("p, training", [(0.5, False), (0.0, True)])
    def test_is_relu_in_evaluation_and_for_p_0(self, p, training):
        x = torch.randn(3, 5)
        assert torch.equal(ByteDropoutOfReLU(p).train(training)(x), x.relu())

    @pytest.mark.parametrize("p", [0.0, 0.5])
    def test_a_feed_forward_network_remembers_its_hidden_units_once(self, p):
        layer = prepare(small(dropout=p), CPU).encoder.layers[0].feed_forward
        x = torch.randn(30, 16)
        assert remembered(lambda: layer(x)) == 4 * 30 * (16 + 24) + 4 * 16 * 24


class TestLinearCrossEntropy:
    @pytest.mark.parametrize("n", [1, 5, 300])
    @pytest.mark.parametrize("smoothing", [0.0, 0.1])
    def test_is_pytorchs_loss_with_its_gradients(self, n, smoothing):
        torch.manual_seed(n)
        x = torch.randn(n, 6, dtype=torch.float64, requires_grad=True)
        table = torch.randn(17, 6, dtype=torch.float64, requires_grad=True)
        target = torch.randint(17, (n,))
        wanted = F.cross_entropy(x @ table.T, target, label_smoothing=smoothing)
        gradients = torch.autograd.grad(3 * wanted, [x, table])
        loss = LinearCrossEntropy.apply(x, table, target, smoothing)
        torch.testing.assert_close(loss, wanted)
        torch.testing.assert_close(torch.autograd.grad(3 * loss, [x, table]), gradients)

    def test_large_logits_do_not_overflow(self):
        x, table = torch.tensor([[1000.0]]), torch.tensor([[1.0], [-1.0]])
        loss = LinearCrossEntropy.apply(x, table, torch.tensor([1]), 0.0)
        assert loss.item() == 2000

    def test_going_back_twice_is_an_error_and_not_a_wrong_gradient(self):
        x, table = torch.ones(3, 2, requires_grad=True), torch.ones(5, 2)
        loss = 2 * LinearCrossEntropy.apply(x, table, torch.tensor([1, 2, 4]), 0.1)
        loss.backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="inplace"):
            loss.backward()

    def test_the_tables_gradient_is_summed_in_float32(self):
        n = 1000 * acceleration.ROWS  # a sum of so many equal parts stands still in bfloat16
        table = torch.tensor([[1.0], [-1.0]], requires_grad=True)
        x, target = torch.ones(n, 1), torch.zeros(n, dtype=torch.int64)
        found = [
            torch.autograd.grad(LinearCrossEntropy.apply(x, table, target, 0.0, dtype), table)
            for dtype in (None, torch.bfloat16)
        ]
        torch.testing.assert_close(*found, rtol=0.01, atol=0)


class TestFastLoss:
    @pytest.mark.parametrize("by_rows", [True, False])
    @pytest.mark.parametrize("tied", ["none", "target"])
    def test_is_the_lessons_loss_of_the_models_logits(self, tied, by_rows):
        model = small(tied=tied, dropout=0.0).double()
        source, target = torch.randint(3, 11, (4, 5)), torch.randint(3, 13, (4, 7))
        source[2, 3:] = target[1, 4:] = PAD
        wanted = label_smoothed_loss(model(source, target), target, 0.1)
        gradients = torch.autograd.grad(wanted, list(model.parameters()))
        loss = FastLoss(model, 0.1, by_rows=by_rows)(source, target)
        torch.testing.assert_close(loss, wanted)
        torch.testing.assert_close(
            torch.autograd.grad(loss, list(model.parameters())), gradients, atol=1e-9, rtol=1e-6
        )

    @pytest.mark.parametrize("by_rows", [True, False])
    def test_without_a_real_token_it_is_0_and_so_are_its_gradients(self, by_rows):
        model, source = small(dropout=0.0), torch.randint(3, 11, (4, 5))
        loss = FastLoss(model, 0.1, by_rows=by_rows)(source, torch.full((4, 7), PAD))
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        assert loss == 0 and all((gradient == 0).all() for gradient in gradients)


class TestPackedAttention:
    def test_in_bfloat16_only_the_projections_are(self, monkeypatch):
        seen = []

        def attend(q, k, v, *others, **options):
            seen.extend([q.dtype, k.dtype, v.dtype, torch.is_autocast_enabled("cpu")])
            return multi_head_attention.attend(q, k, v, *others, **options)

        monkeypatch.setattr(acceleration, "attend", attend)
        torch.manual_seed(0)
        attention, x = MultiHeadAttention(12, 3, fused=True), torch.randn(2, 5, 12)
        attention.__class__ = PackedAttention
        exact = attention(x, x, x)
        seen.clear()
        with torch.autocast("cpu", torch.bfloat16):
            rounded = attention(x, x, x)
        assert seen == [torch.float32] * 3 + [False] and rounded.dtype == torch.bfloat16
        torch.testing.assert_close(rounded.float(), exact, atol=0.02, rtol=0)


class TestAttendInFloat32:
    def test_is_attention_to_what_was_made_longer(self):
        torch.manual_seed(0)
        inputs = [torch.randn(2, 3, 5, 4).bfloat16().requires_grad_() for _ in range(3)]
        mask = torch.rand(2, 1, 5, 5) < 0.7
        found = []
        for context in (
            acceleration.attend(*(x.float() for x in inputs), mask, 0.0, fused=True)[0],
            attend_in_float32(*inputs, mask, 0.0),
        ):
            found.append((context, *torch.autograd.grad(context.square().sum(), inputs)))
        assert found[1][0].dtype == torch.float32
        torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)

    def test_what_was_made_longer_is_not_remembered(self, monkeypatch):
        longer = []

        def attend(*inputs, **options):
            longer.extend(weakref.ref(x) for x in inputs[:3])
            return multi_head_attention.attend(*inputs, **options)

        monkeypatch.setattr(acceleration, "attend", attend)
        inputs = [torch.randn(2, 3, 5, 4).bfloat16().requires_grad_() for _ in range(3)]
        context = attend_in_float32(*inputs, None, 0.0)
        assert context.requires_grad
        assert [x() for x in longer] == [None] * 3


class TestPrepare:
    def test_only_weights_of_the_attention_are_never_dropped(self):
        model = prepare(small(), CPU)
        kinds = {type(module).__name__ for module in model.modules()}
        assert "ByteDropout" in kinds and "Dropout" not in kinds
        assert model.encoder.layers[0].attention.dropout == 0.0
        assert model.encoder.layers[0].dropout.threshold == 128

    @pytest.mark.parametrize("dtype", [torch.bfloat16, None])
    def test_without_dropout_a_compiled_stack_is_one_graph(self, dtype):
        model = prepare(small(n_layers=1, fused=True, dropout=0.0), CPU)
        x, mask = torch.randn(4, 5, 16), torch.ones(4, 1, 5, dtype=torch.bool)
        whole = torch.compile(model.encoder, fullgraph=True, backend="eager")  # else it raises
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            found, wanted = whole(x, mask), model.encoder(x, mask)
        torch.compiler.reset()
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("n", [1, 7, 64 * acceleration.ROWS + 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_are_added_in_the_totals_own_type(n, dtype):
    torch.manual_seed(0)
    total, left, right = torch.randn(n, 4), torch.randn(n, 3).to(dtype), torch.randn(3, 4).to(dtype)
    wanted = total + left.float() @ right.float()
    acceleration.add_product(total, left, right)
    torch.testing.assert_close(total, wanted, rtol=0.02, atol=0.05)
    many = torch.full((1, 1), 1000.0)  # to which bfloat16 would add nothing
    acceleration.add_product(many, torch.ones(1, 1, dtype=dtype), torch.ones(1, 1, dtype=dtype))
    assert many.item() == 1001


def test_kernels_of_few_shapes_are_kept_unless_told_otherwise(monkeypatch):
    monkeypatch.setattr(os, "environ", {"LRU_CACHE_CAPACITY": "7"})
    keep_few_kernels()
    wanted = {"LRU_CACHE_CAPACITY": "7", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16"}
    assert os.environ == wanted
