"""The translators that lessons 02 to 04 compare, and what is measured of them."""

import pytest
import torch

from attention.bahdanau_attention import additive_scores, masked_softmax, right_without
from attention.experiments import bahdanau_attention
from attention.experiments.bahdanau_attention import Additive, Compared
from attention.experiments.score_functions import Scored
from attention.provided.data.tokens import EOS
from attention.provided.models.additive_attention import attend
from attention.score_functions import KINDS, score
from attention.train import shipped


def test_attend_is_the_scores_and_the_masked_softmax_of_lesson_03():
    torch.manual_seed(0)
    q, k, values = torch.randn(2, 5, 3), torch.randn(2, 7, 4), torch.randn(2, 7, 6)
    W_q, W_k, v, lengths = (
        torch.randn(8, 3),
        torch.randn(8, 4),
        torch.randn(8),
        torch.tensor([4, 7]),
    )
    context, weights = attend(q @ W_q.T, k @ W_k.T, v, values, lengths)
    expected = masked_softmax(additive_scores(q, k, W_q, W_k, v), lengths)
    torch.testing.assert_close(weights, expected)
    torch.testing.assert_close(context, expected @ values)


def layers():
    yield None, {}
    yield Additive(64, 128), {}
    yield Additive(64, 128), {"bidirectional": False}
    yield Additive(64, 128), {"asks_after": True}
    for kind in KINDS:
        yield Scored(kind, score, 64), {"d_source": 64}


@pytest.mark.parametrize(("layer", "options"), list(layers()))
def test_teacher_forcing_scores_what_greedy_decoding_writes(layer, options):
    torch.manual_seed(1)
    model = Compared((9, 8), layer, **options)
    source, lengths = torch.randint(3, 9, (4, 6)), torch.tensor([6, 2, 5, 1])
    written = model.translate(source, lengths, max_length=7)
    logits, weights = model.align(source, lengths, written)
    before_end = (written == EOS).int().cumsum(1) - (written == EOS).int() == 0
    assert torch.equal(logits.argmax(2)[before_end], written[before_end])
    if layer is not None:
        torch.testing.assert_close(weights.sum(2), torch.ones_like(weights[:, :, 0]))
        assert (weights[1, :, 2:] == 0).all()


def test_frames_hold_the_letters_of_tens_and_ones():
    pairs = [[231, "two hundred thirty one", "zweihunderteinunddreißig"]]
    (parts,) = bahdanau_attention.frames(bahdanau_attention.turned_around(pairs))
    german, words = pairs[0][2], pairs[0][1].split()
    shown = {part: (german[first:end], words[word]) for part, first, end, word in parts}
    assert shown == {"ones": ("einund", "one"), "tens": ("dreißig", "thirty")}


def test_a_first_letter_needs_its_word_more_than_a_later_one():
    model, corpus = shipped.trained("bahdanau_attention")
    found = bahdanau_attention.needed_words(right_without, model, corpus, count=60)
    first, later = found["first letters"], found["later letters"]
    assert first["without"] < 0.5 < later["without"]
    assert min(first["with"], later["with"]) > 0.95
    assert later["look"] < 0.7 < first["look"]
    assert min(first["other"], later["other"]) > 0.95  # it is their own word that counts


def test_without_a_mask_the_loss_grows_with_the_padding():
    losses = bahdanau_attention.without_a_mask(*shipped.trained("bahdanau_attention"))
    assert losses[2] < losses[4] < losses[6]


def test_words_in_any_order_are_translated_and_unknown_ones_left_out():
    model, corpus = shipped.trained("bahdanau_attention")
    written = bahdanau_attention.alignment_of("seventy banana four", model, corpus)
    assert written == "vierundsiebzig"
