"""Lesson 21's experiments: drafts, cut caches, few bits, prompts, and the figures."""

import math

import pytest
import torch

from attention.answers import accept, keep_sinks, quantize, stretched_base
from attention.experiments import answers as experiments
from attention.experiments import long_texts
from attention.experiments import speculative_decoding as drafts
from attention.experiments.modern_decoder import causal_weights
from attention.modern_decoder import ModernAttention, ModernDecoder
from attention.multi_head_attention import merge_heads, share_heads, split_heads
from benchmarks import prompts

V = 6


@pytest.fixture(scope="module")
def model():
    """A small decoder that is sure of something: its scores are multiplied."""
    torch.manual_seed(5)
    sizes = {"d_model": 16, "n_heads": 4, "n_kv_heads": 2, "d_ff": 12, "n_layers": 2}
    found = ModernDecoder(V, **sizes, tied=False).eval()
    with torch.no_grad():
        found.norm.weight *= 4
    return found


def knowing(model):
    """A draft that is always right at temperature 0."""

    def propose(text, k):
        ids = text
        for _ in range(k):
            ids = torch.cat([ids, model(ids[None])[0][0, -1:].argmax(dim=1)])
        return ids[-k:], torch.nn.functional.one_hot(ids[-k:], V).float()

    return propose


def stubborn(text, k):
    """A draft that proposes token 5, whatever stands there, and takes itself for unsure."""
    return torch.full((k,), 5), torch.full((k, V), 1 / V)


@pytest.mark.parametrize("k", [1, 3])
def test_at_temperature_0_the_text_is_that_of_the_model(model, k):
    ids, n = torch.tensor([4, 5, 3]), 10
    text = ids
    for _ in range(n):
        text = torch.cat([text, model(text[None])[0][0, -1:].argmax(dim=1)])
    for propose, least, most in ((knowing(model), 0, math.ceil(n / (k + 1))), (stubborn, 3, n)):
        noise = torch.Generator().manual_seed(0)
        new, calls = drafts.speculate(model, propose, accept, ids, n, k, 0, noise)
        assert torch.equal(new, text[3:])
        assert least < calls <= most


def test_drafts_leave_the_distribution_as_it_is_and_a_wrong_rule_does_not(model):
    ids, runs = torch.tensor([4, 5, 3]), 500
    classes = drafts.Classes(drafts.pairs(model, ids), runs)
    noise, q = torch.Generator().manual_seed(0), torch.tensor([0.0, 0.0, 0.1, 0.6, 0.2, 0.1])

    def propose(text, k):
        return q.multinomial(k, replacement=True, generator=noise), q.expand(k, V)

    def far(rule):
        found = [drafts.speculate(model, propose, rule, ids, 2, 2, 1.0, noise) for _ in range(runs)]
        return classes.far(classes.shares(torch.stack([new for new, _ in found])))

    assert far(accept) < 1.5 * classes.by_chance() < far(drafts.drawn_from_p(accept))


def test_what_is_expected_is_not_far_and_chance_is_a_little(model):
    classes = drafts.Classes(drafts.pairs(model, torch.tensor([4])), 1000)
    assert classes.p.sum().item() == pytest.approx(1)
    assert classes.far(classes.p) == 0
    assert 0 < classes.by_chance() < 0.2
    few = drafts.Classes(drafts.pairs(model, torch.tensor([4])), 100)
    assert few.by_chance() > classes.by_chance()
    first = torch.stack([classes.pairs[0] // V, classes.pairs[0] % V])
    assert classes.shares(first.expand(7, 2)).tolist() == [1, *[0] * len(classes.pairs)]


def test_counts_predict_what_followed():
    counts = drafts.Counts(torch.tensor([1, 2, 3, 1, 2, 4, 1, 2, 3]), order=3, vocab_size=5)
    for text in ([2], [1, 2], [3], [0, 0], [4, 1]):
        assert counts.after(torch.tensor(text)).sum().item() == pytest.approx(1)
    after_2 = (torch.tensor([0, 0, 0, 2, 1]) + 2 * counts.single) / 5
    torch.testing.assert_close(counts.after(torch.tensor([2])), after_2)
    after_12 = (torch.tensor([0, 0, 0, 2, 1]) + 2 * after_2) / 5
    torch.testing.assert_close(counts.after(torch.tensor([4, 1, 2])), after_12)
    drafted, q = counts.draft(torch.tensor([1]), 2, 0, torch.Generator())
    assert drafted.tolist() == [2, 3]
    assert q[[0, 1], drafted].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ([5, 4, 3, 5, 4], [3, 5, 4]),
        ([5, 4, 3, 1, 4, 2, 5, 4], [3, 1, 4]),  # two tokens that are the same beat a later one
        ([5, 4, 4], [4, 4, 4]),
        ([5, 4, 3], [3, 3, 3]),
        ([5], [5, 5, 5]),
    ],
)
def test_a_draft_is_copied_from_where_the_last_tokens_stood_before(text, copied):
    drafted, q = drafts.looked_up(torch.tensor(text), 3, 6)
    assert drafted.tolist() == copied
    assert q[range(3), drafted].tolist() == [1, 1, 1]


def test_the_weights_are_those_with_which_attention_mixes():
    torch.manual_seed(0)
    attention, x = ModernAttention(24, 4, 2, qk_norm=True, base=50.0), torch.randn(2, 7, 24)
    weights = causal_weights(attention, x)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 4, 7))
    v = share_heads(split_heads(attention.W_v(x), 2), 4)
    torch.testing.assert_close(attention.W_o(merge_heads(weights @ v)), attention(x)[0])


def test_a_text_in_pieces_has_the_losses_of_the_whole(model):
    ids = torch.randint(3, V, (50,), generator=torch.Generator().manual_seed(0))
    whole = torch.nn.functional.cross_entropy(
        model(ids[None, :-1])[0][0], ids[1:], reduction="none"
    )
    kept = long_texts.losses(model, ids, long_texts.cutter("all", 20, 0, keep_sinks))
    torch.testing.assert_close(kept, whole)
    cut = long_texts.losses(model, ids, long_texts.cutter("the last", 20, 0, keep_sinks))
    first = 20 // long_texts.CHUNK * long_texts.CHUNK + long_texts.CHUNK
    torch.testing.assert_close(cut[:first], whole[:first])
    assert (cut[first:] - whole[first:]).abs().max() > 1e-3


@pytest.mark.parametrize("kept", long_texts.KEPT)
def test_a_cache_is_cut_to_what_is_kept(kept):
    keys = torch.arange(36.0).view(1, 1, 36, 1)
    cut = long_texts.cutter(kept, 20, 0, keep_sinks)
    found = cut([(keys, -keys)])[0][0].flatten().tolist()
    if kept == "all":
        assert found == list(range(36))
        return
    n_first = long_texts.KEPT[kept]
    assert len(found) == 20 and found[n_first:] == list(range(16 + n_first, 36))
    others = "others" in kept
    assert {*found[:n_first]} <= {*(range(4, 20) if others else range(n_first))}
    later = torch.tensor([*found, *range(36, 52)]).view(1, 1, 36, 1)
    assert cut([(later, later)])[0][0].flatten().tolist()[:n_first] == found[:n_first]


def test_noise_is_as_large_as_the_error_of_rounding(model):
    before = [weight.clone() for weight in model.parameters()]
    errors = {}
    for seed in (None, 0, 1):
        new = experiments.rounded(model, "layers", 3, "a whole matrix", quantize, seed)
        both = (experiments.matrices(one, "layers") for one in (new, model))
        far = [(a - b).square().mean().sqrt() for a, b in zip(*both, strict=True)]
        errors[seed] = torch.stack(far)
        assert torch.equal(new.embedding.weight, model.embedding.weight)
    assert (errors[None] > 0).all()
    for seed in (0, 1):
        torch.testing.assert_close(errors[seed], errors[None], rtol=0.4, atol=0)
    assert not torch.equal(errors[0], errors[1])
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("task", prompts.TASKS)
def test_exchanged_answers_are_the_same_answers_and_none_is_right(task):
    for seed in prompts.SEEDS:
        (own, rest), (moved, same) = (prompts.pairs_of(task, seed, by) for by in (0, 1))
        own, moved = ([line.split(": ") for line in text.splitlines()] for text in (own, moved))
        assert sorted(answer for _, answer in own) == sorted(answer for _, answer in moved)
        assert [word for word, _ in own] == [word for word, _ in moved]
        assert all(a != b for (_, a), (_, b) in zip(own, moved, strict=True))
        assert rest == same


def test_the_figures_return_what_is_recorded(capsys):
    assert experiments.draw_quantized(quantize) in experiments.BITS
    experiments.show_rounded_again()
    for found in experiments.draw_prompts().values():
        assert len(found) == 3 and 0 <= min(found) <= max(found) <= 30
    assert drafts.show_same_text(accept)
    assert drafts.draw_tokens_per_call() > 1
    found = drafts.draw_frequencies(accept, runs=50)
    assert 0 < min(found.values()) < 1
    assert 0 < long_texts.draw_first_token() < 1
    assert long_texts.draw_streams().keys() == long_texts.KEPT.keys()
    assert "perplexity" in capsys.readouterr().out


def test_the_writer_reads_with_a_cut_cache_and_with_another_base(monkeypatch):
    monkeypatch.setattr(long_texts, "READ", 400)
    monkeypatch.setattr(long_texts, "BRIEFLY", 4000)
    found = long_texts.show_stream(keep_sinks)
    assert found["the last"] < found["all"]  # it was trained on passages of 128 tokens
    found = long_texts.draw_stretched(stretched_base)
    assert found["as in training, window"] < found["stretched by 1/4"]
