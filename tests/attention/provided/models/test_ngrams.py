"""Counts as a language model: probabilities add up, and agree with a direct computation."""

from collections import Counter

import pytest
import torch

from attention.provided.models.ngrams import NGrams

IDS = torch.randint(5, (400,), generator=torch.Generator().manual_seed(0))


def ngrams(n):
    return [tuple(IDS[i : i + n].tolist()) for i in range(len(IDS) - n + 1)]


@pytest.mark.parametrize("kept", [None, 60])
@pytest.mark.parametrize("continued", [True, False])
def test_probabilities_add_up_to_one(kept, continued):
    model = NGrams(IDS, 3, 5, kept, continued)
    for context in ([1, 2], [4, 4], [0, 3]):
        ends = [model.probabilities(torch.tensor([*context, w]))[-1][2] for w in range(5)]
        assert sum(ends).item() == pytest.approx(1)
    assert model.stored == (kept or len({*ngrams(1), *ngrams(2), *ngrams(3)}))


def test_pairs_are_those_of_kneser_and_ney():
    """The part of a pair, and of its end by the contexts in which that occurs; discount 1/2."""
    model, pairs = NGrams(IDS, 2, 5), Counter(ngrams(2))
    p = model.probabilities(torch.tensor([1, 2]))
    assert not {1, 2, 3} <= {*pairs.values()}  # so few tokens: no counts to take discounts from
    contexts = Counter(end for _, end in pairs)
    single = (contexts[2] - 0.5 + 0.5 * 5 / 5) / len(pairs)
    assert p[0][1].item() == pytest.approx(single)
    total = sum(count for (one, _), count in pairs.items() if one == 1)
    rest = 0.5 * sum(one == 1 for one, _ in pairs) / total
    assert p[1][1].item() == pytest.approx((pairs[1, 2] - 0.5) / total + rest * single)


def test_more_counts_fit_the_text_better():
    few, many = NGrams(IDS, 4, 5, kept=50), NGrams(IDS, 4, 5)
    assert many.bits(IDS) < few.bits(IDS) < len(IDS) * torch.tensor(5.0).log2().item()


def test_a_token_that_was_never_seen_has_a_probability():
    model = NGrams(torch.tensor([0, 1, 0, 1, 0]), 2, 9)
    assert model.probabilities(torch.tensor([0, 7]))[-1][1] > 0
