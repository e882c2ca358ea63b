"""Lesson 20's decoder trained faster: the numbers are those of the library."""

import pytest
import torch
from torch.nn import functional as F

from attention.modern_decoder import ModernDecoder
from attention.provided.data.tokens import PAD
from attention.provided.models.decoders import llama
from attention.train.speed.decoder import DecoderLoss, FastDecoder, prepare_decoder

SIZES = {"d_model": 24, "n_heads": 4, "n_kv_heads": 2, "d_ff": 20, "n_layers": 2}
KINDS = pytest.mark.parametrize("kind", llama.KINDS)
CLOSE = 1e-5


def made(kind="llama", vocab_size=40):
    """A model with weights that are all of them felt."""
    torch.manual_seed(0)
    model = ModernDecoder(vocab_size, **SIZES, **llama.KINDS[kind])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(float("norm" in name), 0.3)
    return model


def batch():
    """Ids that are read, with padding behind one text, and those that follow."""
    ids = torch.randint(3, 40, (3, 12), generator=torch.Generator().manual_seed(0))
    ids[1, 7:] = PAD
    return ids[:, :-1], ids[:, 1:]


def of_the_library(model, smoothing, dtype=None):
    """Loss and gradients by the library's parts."""
    read, target = batch()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        logits = model(read)[0].float()
    options = {"ignore_index": PAD, "label_smoothing": smoothing}
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), **options)
    loss.backward()
    return loss.item(), gradients(model)


def gradients(model):
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    return found


@KINDS
@pytest.mark.parametrize("by_rows", [True, False])
def test_so_are_the_loss_and_all_gradients(kind, by_rows):
    model = made(kind)
    loss, wanted = of_the_library(model, 0.1)
    fast = DecoderLoss(prepare_decoder(model, torch.device("cpu")), 0.1, by_rows=by_rows)
    found = fast(*batch())
    found.backward()
    assert found.item() == pytest.approx(loss, rel=1e-6)
    for name, gradient in gradients(model).items():
        assert (gradient - wanted[name]).norm() < CLOSE * wanted[name].norm(), name


@KINDS
@pytest.mark.filterwarnings("ignore:Mismatch dtype")  # the library's norm of queries in bfloat16
def test_in_bfloat16_they_differ_no_more_than_those_of_the_library_do(kind):
    model = made(kind)
    exact, _ = of_the_library(model, 0.0)
    usual, wanted = of_the_library(model, 0.0, torch.bfloat16)
    fast = DecoderLoss(prepare_decoder(model, torch.device("cpu")), dtype=torch.bfloat16)
    found = fast(*batch())
    found.backward()
    assert exact != found.item() == pytest.approx(usual, rel=0.02)
    for name, gradient in gradients(model).items():
        assert gradient.dtype == torch.float32
        assert (gradient - wanted[name]).norm() < 0.2 * wanted[name].norm(), name


def test_nothing_real_means_no_loss_and_no_gradient():
    fast = DecoderLoss(prepare_decoder(made(), torch.device("cpu")))
    nothing = torch.full((2, 5), PAD)
    loss = fast(nothing, nothing)
    loss.backward()
    assert loss.item() == 0
    assert all(not gradient.any() for gradient in gradients(fast).values())


def test_parameters_keep_their_names_and_the_library_still_reads_in_pieces():
    model, (read, _) = made(), batch()
    names, (scores, _) = list(model.state_dict()), model(read)
    fast = prepare_decoder(model, torch.device("cpu"))
    assert isinstance(fast, FastDecoder) and list(fast.state_dict()) == names
    first, past = fast(read[:, :4])
    last, _ = fast(read[:, 4:], past)
    assert torch.allclose(torch.cat([first, last], dim=1), scores, atol=CLOSE)


def test_less_is_kept_for_backward_than_by_the_library():
    def kept(run):
        sizes = {}

        def see(x):
            sizes[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        with torch.autograd.graph.saved_tensors_hooks(see, lambda x: x):
            run()
        return sum(sizes.values())

    model, (read, target) = made(vocab_size=500), batch()
    usual = kept(lambda: F.cross_entropy(model(read)[0].flatten(0, 1), target.flatten()))
    fast = DecoderLoss(prepare_decoder(model, torch.device("cpu")))
    assert kept(lambda: fast(read, target)) < 0.6 * usual
