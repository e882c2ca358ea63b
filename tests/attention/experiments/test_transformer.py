"""Translators with other positions: what they add, what they turn, and what is left alone."""

import pytest
import torch

from attention.experiments import transformer as experiments
from attention.experiments.transformer import number_of, positioned, same_words
from attention.language_models import DecoderOnly
from attention.provided.data.numbers import in_words
from attention.provided.models.key_value_cache import CachedDecoder
from attention.train import shipped
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


def embedded(kind, dtype):
    """What the first layer of a model reads of 300 times the same token, (300, 12)."""
    ids, seen = torch.full((1, 300), 4), []
    torch.manual_seed(0)
    model = DecoderOnly(11, 12, 3, 20, 1, 0.0) if kind == "language model" else None
    model = model or (positioned(Transformer) if kind == "positioned" else Transformer)(
        9, 11, **SIZES
    )
    model = model.to(dtype).eval()
    if kind == "cached":
        decoder = CachedDecoder(model, torch.full((1, 3), 4))
        layer = decoder.decoder.layers[0]
        layer.register_forward_pre_hook(lambda _, given: seen.append(given[0][0, 0]))
        for _ in range(300):
            decoder.step(ids[0, :1])
        return torch.stack(seen)
    stack = model.stack if kind == "language model" else model.decoder
    stack.layers[0].register_forward_pre_hook(lambda _, given: seen.append(given[0][0]))
    model(ids) if kind == "language model" else model(ids[:, :3], ids)
    return seen[0]


@pytest.mark.parametrize("kind", ["library", "positioned", "cached", "language model"])
def test_models_with_weights_in_bfloat16_count_beyond_256(kind):
    rough, exact = (embedded(kind, dtype) for dtype in (torch.bfloat16, torch.float64))
    assert rough.dtype == torch.bfloat16
    assert (rough.double() - exact).abs().max() < 0.05


def test_without_positions_the_order_of_the_source_does_not_matter():
    source, target = batch()
    model = build("none", "sinusoidal")
    torch.testing.assert_close(model(source.flip(1), target), model(source, target))


def test_rotary_scores_depend_on_the_difference_of_positions_only():
    model = build("rotary", "none")
    x = torch.randn(1, 5, 12, dtype=torch.float64)
    attention = model.encoder.layers[0].attention
    _, near = attention(x, x, x, return_weights=True)
    wider = torch.cat([torch.zeros_like(x[:, :1]), x], dim=1)  # all of it one position later
    mask = torch.arange(6) > 0
    _, far = attention(wider, wider, wider, mask[None, None], return_weights=True)
    torch.testing.assert_close(far[:, :, 1:, 1:], near)


@pytest.mark.parametrize("number", [0, 1, 21, 100, 731, 1000, 20005, 100_000, 931_231, 999_999])
def test_a_number_is_read_again(number):
    assert number_of(in_words(number, "de")) == number


def test_the_same_words():
    assert same_words(896, "sechshundertachtundneunzig")
    assert not same_words(896, "achthundertsechsundachtzig")
    assert not same_words(896, "achthundert")


def test_the_weights_of_a_number_are_those_of_all_its_attentions():
    model, _ = shipped.trained("transformer")
    weights, words, letters = experiments.weights_for(931, model)
    assert words == ["nine", "hundred", "thirty", "one", "EOS"]
    assert "".join(letters) == "neunhunderteinunddreißigEOS"
    assert weights["decoder.layers.1.cross_attention"].shape == (1, 4, len(letters), len(words))
    experiments.three_uses(weights, words, letters)
    experiments.every_head(weights, words, letters)
