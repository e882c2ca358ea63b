"""Lesson 20's models with one switch each, how rates and times were chosen, and the figures."""

from dataclasses import replace

import pytest
import torch

from attention.experiments import decoder_changes as changes
from attention.experiments import modern_decoder as experiments
from attention.language_models import generate
from attention.modern_decoder import (
    ModernAttention,
    ModernDecoder,
    SwiGLU,
    generate_with_cache,
    pair_up,
    rms_norm,
)

IDS = torch.randint(3, 1024, (2, 40), generator=torch.Generator().manual_seed(0))


def ours(decoder):
    """A Decoder's weights for a ModernDecoder, which turns pairs of neighbours."""
    weights = decoder.state_dict()
    for name in weights:
        if name.endswith(("W_q.weight", "W_k.weight")):
            weights[name] = pair_up(weights[name], len(weights[name]) // 32)
        if name.endswith(("norm_q.weight", "norm_k.weight")):
            weights[name] = pair_up(weights[name], 1)
    return weights


@pytest.mark.parametrize("window", [None, 5])
def test_with_all_changes_it_is_the_modern_decoder(window):
    torch.manual_seed(0)
    decoder = changes.Decoder(replace(changes.MODERN, window=window))
    for weight in decoder.parameters():  # also the norms' weights differ from 1
        torch.nn.init.normal_(weight, std=0.3)
    sizes = experiments.SIZES | {"window": window}
    model = ModernDecoder(changes.VOCABULARY, **sizes)
    model.load_state_dict(ours(decoder))
    torch.testing.assert_close(model(IDS)[0], decoder(IDS), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", changes.CHANGES)
def test_nobody_sees_what_comes_later(name):
    model = changes.Decoder(changes.CHANGES[name])
    other = IDS.clone()
    other[:, 20:] = 5
    same = (model(IDS) - model(other)).abs().amax(dim=(0, 2))
    assert same[:20].max() < 1e-4 < same[20:].min()


def test_a_few_steps_lower_the_loss_and_come_out_again():
    def losses():
        torch.manual_seed(0)
        model = changes.Decoder(changes.MODERN)
        optimizer = changes.adamw(model.parameters(), 3e-3)
        return changes.learn(model, optimizer, 3e-3, 0, 6)[0]

    found = losses()
    assert found[-1] < found[0] - 0.2
    assert found == losses()


def test_the_figures_return_what_is_recorded():
    experiments.draw_norms(rms_norm)
    experiments.draw_gate(SwiGLU)
    assert 0.8 < experiments.show_loud(ModernAttention) <= 1
    assert 0 <= experiments.draw_changes() <= 8
    assert experiments.draw_long() > 0.2


def test_the_comparison_with_transformers_needs_the_pairs():
    found = experiments.compare_with_transformers(ModernDecoder, pair_up)
    for name, far in found.items():
        assert far < 1e-5 if name.endswith("paired") else far > 1


def test_with_the_cache_the_same_is_written(capsys):
    experiments.time_writing(ModernDecoder, generate, generate_with_cache, n=12)
    assert "the same tokens: True" in capsys.readouterr().out


def test_the_shipped_decoder_goes_on(capsys):
    experiments.write_on("She was", ModernDecoder, generate_with_cache)
    assert capsys.readouterr().out.startswith("She was")
