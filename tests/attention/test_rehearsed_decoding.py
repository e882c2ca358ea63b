"""Decoding on a device that refuses what CUDA refuses: each search finds what it finds on a CPU."""

import copy

import pytest
import torch

from attention.decoding import beam_search, greedy, sample
from attention.provided.data.tokens import PAD
from attention.transformer import Transformer
from autograder.inside.device.rehearsal import Rehearsed, landed, rehearsal

SOURCE = torch.tensor([[7, 8, 9, 4, 2], [5, 2, PAD, PAD, PAD], [3, 6, 2, PAD, PAD]])
LIMITS = (1.5, 2.0)


def model(**options):
    torch.manual_seed(3)
    made = Transformer(11, 12, d_model=12, n_heads=3, d_ff=16, n_layers=2, **options)
    with torch.no_grad():  # so that tokens differ clearly in their scores, and some rows end early
        made.generator.weight.mul_(4)
    return made


def there_and_here(work, **options):
    """What ``work`` makes of a model and sources on the device, and on the CPU."""
    made = model(**options)
    here = work(copy.deepcopy(made), SOURCE)
    with rehearsal() as device:
        there = work(made.to(device), SOURCE.to(device))
    return there, here


WAYS = {
    "greedy": lambda m, s: greedy(m, s, LIMITS),
    "greedy without a cache": lambda m, s: greedy(m, s, 6, cache=False),
    "sampled": lambda m, s: sample(m, s, 1.3, seed=4, max_length=6),
    "sampled from few": lambda m, s: sample(m, s, top_k=4, top_p=0.8, seed=5, max_length=6),
    "beam": lambda m, s: beam_search(m, s, 3, 1.0, LIMITS),
    "beam without a cache": lambda m, s: beam_search(m, s, 2, 0.6, 6, cache=False),
    "beam, two at once": lambda m, s: beam_search(m, s, 2, 0.6, LIMITS, batch=2),
    "the lesson's own": lambda m, s: m.eval().translate(s, 6),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_search_finds_what_it_finds_on_the_cpu(way):
    there, here = there_and_here(WAYS[way], fused="cache" not in way)
    assert isinstance(there, Rehearsed)
    assert landed(there).equal(here)
    assert len(here.unique()) > 1


def test_scores_are_those_of_the_cpu():
    (ids, scores), (_, expected) = there_and_here(
        lambda m, s: beam_search(m, s, 3, 1.0, LIMITS, return_scores=True)
    )
    assert isinstance(ids, Rehearsed)
    torch.testing.assert_close(landed(scores), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_of_short_weights_decodes_with_and_without_a_cache(dtype):
    with rehearsal() as device:
        made, source = model(fused=True).to(device, dtype), SOURCE.to(device)
        assert {x.dtype for x in made.parameters()} == {dtype}
        _, cached = beam_search(made, source, 2, 0.6, 5, return_scores=True)
        _, plain = beam_search(made, source, 2, 0.6, 5, cache=False, return_scores=True)
    assert cached.dtype == torch.float32
    torch.testing.assert_close(landed(cached), landed(plain), rtol=0.05, atol=0.05)
