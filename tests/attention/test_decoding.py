"""Lesson 13's library: search against exhaustive search, and cache against none."""

import itertools
import math
import re

import pytest
import torch

from attention.decoding import (
    beam_search,
    greedy,
    plain_beam_search,
    sample,
    write,
)
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.models.key_value_cache import CachedDecoder, RepeatingDecoder
from attention.provided.training_steps import evaluation
from attention.train import shipped
from attention.transformer import Transformer

SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 3, "dropout": 0.1}


def small(seed=0, **options):
    """A model with an opinion: large weights, so that its choices differ by more than rounding."""
    torch.manual_seed(seed)
    model = Transformer(9, 11, **SIZES | options).double()
    with torch.no_grad():
        model.target_embedding.weight.mul_(4)
        model.generator.weight.mul_(1.0 if model.generator.weight.std() > 0.5 else 4.0)
    return model


def sources(B=7, T=8, size=9):
    ids = torch.randint(3, size, (B, T), generator=torch.Generator().manual_seed(1))
    lengths = torch.tensor([(3 * row) % T + 1 for row in range(B)])
    ids[torch.arange(B), lengths - 1] = EOS
    return ids.masked_fill(torch.arange(T) >= lengths[:, None], PAD)


class Markov:
    """A decoder whose scores depend on the last token only: for comparing searches."""

    def __init__(self, table):
        self.table = table

    def step(self, tokens):
        logits = self.table[tokens].float()
        logits[:, [PAD, BOS]] = -math.inf
        return logits

    def select(self, rows, stays):
        pass


def all_sentences(table, most):
    """Every sentence of at most ``most`` tokens that ends, with its log-probability."""
    logits = table.clone()
    logits[:, [PAD, BOS]] = -math.inf
    log_p = logits.log_softmax(1)
    words = range(3, len(table))
    found = {}
    for length in range(most):
        for middle in itertools.product(words, repeat=length):
            ids = (*middle, EOS)
            steps = zip((BOS, *ids), ids, strict=False)
            found[ids] = sum(log_p[a, b].item() for a, b in steps)
    return found


class MarkovModel(torch.nn.Module):
    """A model whose scores depend on the last token only, for the searches that run a model.

    Its rows of scores are the embeddings of its tokens; all sources are the same to it.
    """

    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table.float())

    def encode(self, source, mask):
        return source.unsqueeze(2).float()  # (B, T_k, 1)

    def decode(self, tokens, memory, target_mask, source_mask):
        return self.table[tokens].clone()  # (B · K, T, V)


def found_by_all(table, most, beam, alpha, monkeypatch):
    """The translation and its value that each of the three searches finds in the same language."""
    monkeypatch.setattr("attention.decoding.CachedDecoder", lambda m, *_: Markov(m.table))
    model, source = MarkovModel(table), torch.tensor([[3, EOS], [4, EOS]])
    log_p = table.clone()
    log_p[:, [PAD, BOS]] = -math.inf
    log_p = log_p.log_softmax(1)
    plain = plain_beam_search(lambda ids: log_p[ids[-1]], beam, most)
    ended = [one for one in plain if one[1][-1] == EOS]
    values = [
        (total / ((5 + len(ids)) / 6) ** alpha, total, ids) for total, ids in ended or plain[:1]
    ]
    (_, total, ids), *_ = sorted(values, key=lambda one: -one[0])
    found = {"plain": (ids, total)}
    for name, cache in (("cached", True), ("not cached", False)):
        rows, totals = beam_search(
            model, source, beam, alpha, most, cache, batch=1, return_scores=True
        )
        assert torch.equal(rows[0], rows[1])
        found[name] = rows[0][rows[0] != PAD].tolist(), totals[0].item()
    return found


@pytest.mark.parametrize("most", [1, 3, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("seed", range(6))
def test_wide_searches_equal_exhaustive_search(seed, alpha, most, monkeypatch):
    torch.manual_seed(seed)
    table = 2 * torch.randn(6, 6, dtype=torch.float64)
    table[:, EOS] -= 1
    every = all_sentences(table, most)
    values = {ids: total / ((5 + len(ids)) / 6) ** alpha for ids, total in every.items()}
    for name, (ids, total) in found_by_all(table, most, 300, alpha, monkeypatch).items():
        best = max(values.values())  # two may have it
        assert values[tuple(ids)] == pytest.approx(best, rel=1e-5), name
        assert total == pytest.approx(every[tuple(ids)], rel=1e-5), name


def forgetful():
    """A language in which [EOS] falls out of a beam of 2, and all else is worse in the end."""
    table = torch.full((6, 6), -math.inf, dtype=torch.float64)
    for token, nexts in {
        BOS: {EOS: 0.25, 3: 0.75},
        3: {EOS: 0.3, 3: 0.352, 4: 0.348},
        4: {3: 1 / 3, 4: 1 / 3, 5: 1 / 3},
        5: {3: 1 / 3, 4: 1 / 3, 5: 1 / 3},
    }.items():
        table[token, list(nexts)] = torch.tensor(list(nexts.values()), dtype=torch.float64).log()
    table[[PAD, EOS], EOS] = 0.0
    return table


def test_what_falls_out_of_the_beam_is_not_forgotten(monkeypatch):
    for name, (ids, total) in found_by_all(forgetful(), 4, 2, 0.0, monkeypatch).items():
        assert ids == [EOS], name
        assert total == pytest.approx(math.log(0.25), rel=1e-5), name
    found = plain_beam_search(lambda ids: forgetful()[ids[-1]], 2, 4)
    assert [ids for _, ids in found] == [[EOS], [3, 3, 3, 3]]  # then the best that was cut off
    assert found[1][0] == pytest.approx(-3.42, abs=0.005)


def test_what_nothing_ends_is_cut_off(monkeypatch):
    table = forgetful()
    table[:, EOS] = -math.inf
    table[[PAD, EOS], 3] = 0.0
    for name, (ids, _) in found_by_all(table, 3, 2, 0.6, monkeypatch).items():
        assert len(ids) == 3 and EOS not in ids, name


@pytest.mark.parametrize("tied", ["none", "target"])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_cache_and_no_cache_write_the_same(pre_norm, fused, tied):
    model, source = small(pre_norm=pre_norm, fused=fused, tied=tied), sources()
    assert torch.equal(greedy(model, source, 12), greedy(model, source, 12, cache=False))
    for alpha in (0.0, 1.0):
        both = [
            beam_search(model, source, 4, alpha, 12, cache, batch=3, return_scores=True)
            for cache in (True, False)
        ]
        assert torch.equal(both[0][0], both[1][0])
        torch.testing.assert_close(both[0][1], both[1][1])


@pytest.mark.parametrize("pre_norm", [False, True])
def test_scores_with_a_cache_equal_those_of_the_whole_sequence(pre_norm):
    model, source = small(pre_norm=pre_norm), sources()
    target = torch.randint(3, 11, (7, 20))
    with evaluation(model):
        decoders = CachedDecoder(model, source), RepeatingDecoder(model, source)
        expected = model(source, target)
        read = torch.cat([torch.full((7, 1), BOS), target[:, :-1]], 1)
        for t in range(20):  # more than the cache holds at first
            for decoder in decoders:
                scores = decoder.step(read[:, t])
                torch.testing.assert_close(scores[:, 2:], expected[:, t, 2:].float())
                assert (scores[:, :2] == -math.inf).all()


def test_rows_and_sources_can_leave_in_another_order():
    model, source = small(), sources()
    with evaluation(model):
        decoders = CachedDecoder(model, source, 2), RepeatingDecoder(model, source, 2)
        stays = torch.tensor([True, False, True, True, False, False, True])
        rows = torch.tensor([1, 0, 5, 5, 6, 7, 12, 13])
        for decoder in decoders:
            for tokens in (torch.arange(14) % 8 + 3, torch.arange(14) % 5 + 3):
                decoder.step(tokens)
            decoder.select(rows, stays)
        scores = [decoder.step(torch.arange(8) + 3) for decoder in decoders]
    torch.testing.assert_close(*scores)


def test_a_row_is_translated_as_if_it_were_alone():
    model, source = small(), sources()
    together = beam_search(model, source, beam=3, max_length=(1.5, 4))
    for row in range(7):
        length = int((source[row] != PAD).sum())
        alone = beam_search(model, source[row : row + 1, :length], beam=3, max_length=(1.5, 4))[0]
        assert torch.equal(alone[alone != PAD], together[row][together[row] != PAD])
        assert (together[row] != PAD).sum() <= 1.5 * length + 4
    assert not (together == BOS).any()


@pytest.mark.parametrize("method", [greedy, beam_search, sample])
def test_the_model_stays_in_the_mode_it_was_in(method):
    model, source = small(), sources()
    model.train()
    model.encoder.eval()
    before = [module.training for module in model.modules()]
    first = method(model, source, max_length=6)
    assert [module.training for module in model.modules()] == before
    assert torch.equal(method(model, source, max_length=6), first)  # without dropout
    model.embed = None
    with pytest.raises(TypeError):
        method(model, source)
    assert [module.training for module in model.modules()] == before
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_trained_model_writes_what_lesson_10_wrote():
    model, corpus = shipped.trained("transformer")
    pairs = [pair for some in corpus.test_by_digits(5).values() for pair in some]
    source = corpus.batch(pairs).source
    ids = greedy(model, source)
    assert torch.equal(ids, model.translate(source))
    assert torch.equal(beam_search(model, source, beam=1, alpha=0.0), ids)
    texts = ["".join(corpus.target_vocabulary.decode(row)) for row in beam_search(model, source)]
    right = sum(text == pair[2] for text, pair in zip(texts, pairs, strict=True))
    assert right >= 0.9 * len(pairs)


def test_write_stops_each_row_at_its_limit():
    model, source = small(), sources()

    def never_ends(logits):
        return torch.full((7,), 5)

    ids = write(model, source, never_ends, max_length=(1, 2))
    assert (ids != PAD).sum(1).tolist() == ((source != PAD).sum(1) + 2).tolist()


def test_the_plain_search_keeps_no_impossible_beam():
    table = torch.full((5, 5), -math.inf)
    table[BOS, 3] = table[3, EOS] = 0.0
    assert plain_beam_search(lambda ids: table[ids[-1]], 4, 6) == [(0.0, [3, EOS])]


def plainly(model, source, beam=2, max_length=5):
    return plain_beam_search(lambda ids: torch.zeros(5), beam, max_length)


@pytest.mark.parametrize(
    ("method", "options", "told"),
    [
        (greedy, {"max_length": 0}, "max_length=0 leaves no room"),
        (greedy, {"max_length": (0.1, -3)}, "leaves no room"),
        (sample, {"temperature": 0}, "temperature=0 is no finite number above 0"),
        (sample, {"temperature": math.nan}, "temperature=nan is no finite number above 0"),
        (sample, {"top_k": 0}, "top_k=0 is no whole number from 1 on"),
        (sample, {"top_k": 2.5}, "top_k=2.5 is no whole number"),
        (sample, {"top_p": 0.0}, "top_p=0.0 is no finite number above 0"),
        (sample, {"top_p": 1.5}, "top_p=1.5 is no finite number from 0 to 1"),
        (sample, {"seed": -1}, "seed=-1 is no whole number from 0 on"),
        (beam_search, {"beam": 0}, "beam=0 is no whole number from 1 on"),
        (beam_search, {"batch": 0}, "batch=0 is no whole number from 1 on"),
        (beam_search, {"alpha": -0.1}, "alpha=-0.1 is no finite number from 0 on"),
        (beam_search, {"alpha": math.inf}, "alpha=inf is no finite number"),
        (beam_search, {"max_length": 0}, "max_length=0 leaves no room"),
        (plainly, {"beam": 0}, "beam=0 is no"),
        (plainly, {"max_length": 0}, "max_length=0 is no"),
        (RepeatingDecoder, {"beams": 0}, "beams=0 is no whole number from 1 on"),
        (CachedDecoder, {"beams": 0}, "beams=0 is no whole number from 1 on"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(method, options, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        method(small(), sources(), **options)


@pytest.mark.parametrize("method", [greedy, sample, beam_search])
def test_a_batch_of_nothing_is_refused(method):
    with pytest.raises(ValueError, match="sources=0 is no whole number from 1 on"):
        method(small(), sources()[:0])
