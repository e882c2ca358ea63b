"""The N best of a beam search: the first is the search's own, and every score is the model's."""

import copy

import pytest
import torch

from attention.decoding import beam_search
from attention.provided.data.tokens import EOS, pad
from attention.transformer import Transformer
from attention.translate.n_best import n_best

LIMIT = (1, 6)


@pytest.fixture(scope="module")
def model():
    """Untrained, with weights large enough that it is sure of what it writes, and ends at times."""
    torch.manual_seed(4)
    made = Transformer(9, 8, d_model=12, n_heads=2, d_ff=16, n_layers=1, fused=True)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    return made.eval()


@pytest.fixture(scope="module")
def source():
    draw = torch.Generator().manual_seed(1)
    lengths = (5, 1, 3, 6)
    return pad([[*torch.randint(3, 9, (n,), generator=draw).tolist(), EOS] for n in lengths])


@pytest.mark.parametrize(("beam", "alpha"), [(1, 1.0), (3, 0.0), (4, 0.6), (6, 1.5)])
def test_the_first_is_that_of_the_beam_search(model, source, beam, alpha):
    best = [one[0][1] for one in n_best(model, source, 1, beam, alpha, LIMIT)]
    wanted = beam_search(model, source, beam, alpha, LIMIT).tolist()
    assert [[i for i in ids if i] for ids in best] == [[i for i in ids if i] for ids in wanted]


def test_all_are_different_ranked_and_scored_by_the_model(model, source):
    alpha, found = 0.6, n_best(model, source, 4, 6, 0.6, LIMIT)
    assert max(map(len, found)) == 4
    for read, hypotheses in zip(source, found, strict=True):
        scores = [score for score, _ in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(ids) for _, ids in hypotheses}) == len(hypotheses)
        for score, ids in hypotheses:
            written = torch.tensor([ids])
            with torch.no_grad():
                logits = model(read[read != 0][None], written)
            logits[:, :, :2] = -torch.inf  # the search writes neither PAD nor BOS
            log_p = torch.log_softmax(logits, dim=2)[0, range(len(ids)), ids].sum().item()
            assert score == pytest.approx(log_p / ((5 + len(ids)) / 6) ** alpha, rel=1e-4)


def test_a_smaller_n_is_the_beginning_of_a_larger(model, source):
    two, four = (n_best(model, source, n, 6, 0.6, LIMIT) for n in (2, 4))
    for few, many in zip(two, four, strict=True):
        assert [ids for _, ids in few] == [ids for _, ids in many][: len(few)]


def test_what_is_never_finished_is_the_best_that_was_cut_off(model, source):
    model = copy.deepcopy(model)
    with torch.no_grad():
        model.generator.weight[EOS] = 0.0
    found = n_best(model, source, 1, 1, 0.6, 2)
    wanted = beam_search(model, source, 1, 0.6, 2).tolist()
    cut = [i for i, ids in enumerate(wanted) if EOS not in ids]
    assert cut
    for i in cut:
        assert [ids for _, ids in found[i]] == [wanted[i]]
