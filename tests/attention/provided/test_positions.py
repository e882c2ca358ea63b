"""Translators with other positions: what they add, what they turn, and what is left alone."""

import pytest
import torch

from attention.provided.data import in_words
from attention.provided.positions import number_of, positioned, same_words
from attention.transformer import Transformer

SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2, "dropout": 0.0}


def build(source, target):
    torch.manual_seed(0)
    return positioned(Transformer, source, target)(9, 11, **SIZES).double().eval()


def batch():
    draw = torch.Generator().manual_seed(1)
    return torch.randint(3, 9, (2, 5), generator=draw), torch.randint(3, 11, (2, 4), generator=draw)


def test_sinusoidal_positions_are_those_of_the_library():
    torch.manual_seed(0)
    library = Transformer(9, 11, **SIZES).double().eval()
    torch.testing.assert_close(build("sinusoidal", "sinusoidal")(*batch()), library(*batch()))


def test_without_positions_the_order_of_the_source_does_not_matter():
    source, target = batch()
    model = build("none", "sinusoidal")
    torch.testing.assert_close(model(source.flip(1), target), model(source, target))


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "rotary"])
def test_with_positions_the_order_of_the_source_matters(kind):
    source, target = batch()
    model = build(kind, "sinusoidal")
    assert (model(source.flip(1), target) - model(source, target)).abs().max() > 1e-4


def test_rotary_scores_depend_on_the_difference_of_positions_only():
    model = build("rotary", "none")
    x = torch.randn(1, 5, 12, dtype=torch.float64)
    attention = model.encoder.layers[0].attention
    _, near = attention(x, x, x, return_weights=True)
    wider = torch.cat([torch.zeros_like(x[:, :1]), x], dim=1)  # all of it one position later
    mask = torch.arange(6) > 0
    _, far = attention(wider, wider, wider, mask[None, None], return_weights=True)
    torch.testing.assert_close(far[:, :, 1:, 1:], near)


def test_the_random_start_is_that_of_the_class():
    one, other = build("sinusoidal", "sinusoidal"), build("rotary", "rotary")
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def test_learned_tables_are_trained():
    model = build("learned", "learned")
    model(*batch()).sum().backward()
    assert all(table.table.grad.abs().sum() > 0 for table in model.positions.values())


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'absolute' is none of sinusoidal"):
        positioned(Transformer, "absolute")


@pytest.mark.parametrize("number", [0, 1, 21, 100, 731, 1000, 20005, 100_000, 931_231, 999_999])
def test_a_number_is_read_again(number):
    assert number_of(in_words(number, "de")) == number


@pytest.mark.parametrize("text", ["", "zweiund", "tausend", "eintausendnull", "hundertzwei"])
def test_what_is_no_number_is_none(text):
    assert number_of(text) is None


def test_the_same_words():
    assert same_words(896, "sechshundertachtundneunzig")
    assert not same_words(896, "achthundertsechsundachtzig")
    assert not same_words(896, "achthundert")
