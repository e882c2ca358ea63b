"""Languages drawn at random, small enough to know their most probable sentence."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attention.provided.data import BOS, EOS, PAD
from attention.provided.descent import fewer

TOKENS, LONGEST = 8, 5  # PAD, BOS, EOS and five words; the longest sentence

Search = Callable[[Callable[[list[int]], Tensor], int, int], list[tuple[float, list[int]]]]


def random_language(sureness: float, draw: torch.Generator) -> Tensor:
    """Return log-probabilities (V, V): row i says what follows token i; never PAD nor BOS.

    sureness  how far the scores are apart: 0 makes all tokens equally probable
    """
    scores = sureness * torch.randn(TOKENS, TOKENS, generator=draw)
    scores[:, [PAD, BOS]] = -math.inf
    return scores.log_softmax(dim=1)


def best_log_probability(table: Tensor) -> float:
    """Return the log-probability of the best sentence, which no beam can exceed.

    Of all beginnings that end in the same token only the best can lead to it: so a step needs V · V
    sums, and no search.
    """
    beginnings = table[BOS]  # (V,) the best that ends in each token
    best = beginnings[EOS]
    for _ in range(LONGEST - 1):
        goes_on = beginnings.index_fill(0, torch.tensor([EOS]), -math.inf)
        beginnings = (goes_on.unsqueeze(1) + table).amax(dim=0)
        best = torch.maximum(best, beginnings[EOS])
    return torch.maximum(best, beginnings.amax()).item()


def share_found(
    search: Search, sureness: float, seed: int, widths: Sequence[int], count: int = 200
) -> list[float]:
    """Return in what share of random languages the most probable sentence is found, by beam.

    search  a function like `plain_beam_search`: (next_log_probs, beam, max_length) -> beams

    After `LONGEST` tokens a sentence is over: EOS comes next, at no cost.
    While nbgrader runs the notebook, 2 languages are searched.
    """
    draw, found = torch.Generator().manual_seed(seed), torch.zeros(len(widths))
    over = torch.full((TOKENS,), -math.inf).index_fill(0, torch.tensor([EOS]), 0.0)  # (V,)
    for _ in range(fewer(count, 2)):
        table = random_language(sureness, draw)

        def after(ids: list[int], table: Tensor = table) -> Tensor:
            return table[ids[-1]] if len(ids) <= LONGEST else over  # ids begin with BOS

        scores = [search(after, beam, LONGEST + 1)[0][0] for beam in widths]
        found += torch.tensor(scores) > best_log_probability(table) - 1e-5  # float32 rounds
    return (found / fewer(count, 2)).tolist()
