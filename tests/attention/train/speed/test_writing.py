"""A text is written faster: the scores are those of the model, whatever was read before."""

import pytest
import torch

from attention.modern_decoder import ModernDecoder, generate_with_cache
from attention.train.speed import writing
from attention.train.speed.writing import QuickDecoder

SIZES = {"d_model": 24, "n_heads": 6, "n_kv_heads": 2, "d_ff": 20, "n_layers": 2}


def both_ways(model, prompt, length):
    """Scores of each new token by the model, then by what is faster; the same tokens are read."""
    draw = torch.Generator().manual_seed(1)
    chosen = torch.randint(3, 50, (length,), generator=draw)
    found = []
    for reader in (model, QuickDecoder(model)):
        scores = []

        def choose(some, scores=scores):
            scores.append(some)
            return chosen[len(scores) - 1, None]

        generate_with_cache(reader, prompt, choose, length)
        found.append(torch.cat(scores))
    return found


@pytest.mark.parametrize(("growth", "threads"), [(1, 1), (5, 4), (256, 7)])
@pytest.mark.parametrize("asked", [1, 7])
@pytest.mark.parametrize(
    "options", [{}, {"qk_norm": True, "d_head": 8, "base": 50.0}, {"tied": False, "eps": 1e-2}]
)
def test_scores_are_the_models(options, asked, growth, threads, monkeypatch):
    monkeypatch.setattr(writing, "GROWTH", growth)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    torch.manual_seed(0)
    model = ModernDecoder(50, **SIZES, **options).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    prompt = torch.randint(3, 50, (1, asked))
    before = model(prompt)[0]
    scores, quick = both_ways(model, prompt, 12)
    assert scores.shape == (12, 50) and scores.std() > 0.3
    torch.testing.assert_close(quick, scores, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(model(prompt)[0], before)  # it is still the same model
