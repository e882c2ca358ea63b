"""The task of lesson 09: its switches are what they say, and a stack learns."""

import pytest
import torch

from attention.experiments import transformer_blocks
from attention.experiments.transformer_blocks import (
    SIZES,
    Switched,
    train,
)
from attention.transformer_blocks import (
    DecoderLayer,
    EncoderLayer,
    LayerNorm,
    gradient_norms,
)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_with_everything_on_it_is_the_lessons_layer(norm):
    torch.manual_seed(0)
    switched, layer = Switched(*SIZES, norm=norm), EncoderLayer(*SIZES, norm == "pre")
    layer.load_state_dict(switched.state_dict())
    x = torch.randn(2, 5, SIZES[0])
    torch.testing.assert_close(switched(x), layer(x))


def test_with_everything_off_the_updates_follow_each_other():
    torch.manual_seed(0)
    layer, x = Switched(*SIZES, norm="none", skip=False), torch.randn(2, 5, SIZES[0])
    torch.testing.assert_close(layer(x), layer.feed_forward(layer.attention(x, x, x)))


def test_taking_layers_out_leaves_the_model_whole():
    model, _ = train(lambda: Switched(*SIZES, norm="pre"), True, steps=2, n_layers=2)
    before = [*model.layers]
    shares = transformer_blocks.without_layers(model, choices=2)
    assert len(shares) == 3
    assert [*model.layers] == before


def test_the_gradient_fades_without_skip_connections():
    assert transformer_blocks.fading(gradient_norms) > 1e10


def test_a_norm_over_the_batch_mixes_sentences():
    assert transformer_blocks.another_neighbour(LayerNorm(8)) < 1e-6
    assert transformer_blocks.another_neighbour(transformer_blocks.norm_over_the_batch) > 1


def test_the_figures_can_be_drawn():
    transformer_blocks.growing()
    transformer_blocks.masks_at_work(DecoderLayer)
    assert 0 < transformer_blocks.rates() < 1
    transformer_blocks.add_and_norm()
    transformer_blocks.layers_taken_out()
