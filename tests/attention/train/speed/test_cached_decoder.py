"""Lesson 20's decoder that reads on faster: transformers' logits, and the lesson's texts."""

import pytest
import torch

from attention.modern_decoder import ModernDecoder, generate_with_cache, pair_up
from attention.provided.data.tokens import PAD
from attention.provided.models.decoders import llama
from attention.train.speed.cached_decoder import ROOM, CachedDecoder

KINDS = pytest.mark.parametrize("kind", llama.KINDS)
CLOSE = 1.5e-5


def loaded(kind):
    stored = llama.stored(kind)
    return llama.load_llama(ModernDecoder(**stored.sizes), stored.weights, pair_up), stored


@KINDS
@pytest.mark.parametrize("side", llama.PADDING)
@pytest.mark.parametrize("pieces", [[11], [1] * 11, [5, 1, 3, 1, 1], [4, 4, 3]], ids=str)
def test_the_logits_are_those_of_transformers(kind, side, pieces):
    model, stored = loaded(kind)
    read, past, real = CachedDecoder(model), None, stored.ids[side] != PAD
    done = 0
    for piece in stored.ids[side].split(pieces, dim=1):
        done += piece.shape[1]
        scores, past = read(piece, past, real[:, :done])
        far = scores[:, 0] - stored.logits[side][:, done - 1]
        assert not far[real[:, done - 1]].abs().gt(CLOSE).any()


def best_word(scores):
    """The best token of each row, no PAD and no EOS."""
    return scores[:, 3:].argmax(dim=1) + 3


@KINDS
def test_it_writes_what_lesson_20_writes_also_when_its_buffer_grows(kind):
    model, _ = loaded(kind)
    ids = torch.randint(3, 50, (3, 9), generator=torch.Generator().manual_seed(0))
    ids[1, :4] = PAD
    many = ROOM + 10
    usual = generate_with_cache(model, ids, best_word, many)
    assert usual.shape == (3, many)
    assert torch.equal(generate_with_cache(CachedDecoder(model), ids, best_word, many), usual)


def test_with_a_window_the_buffer_does_not_grow():
    model, _ = loaded("mistral")
    read, ids, past = CachedDecoder(model), torch.full((1, 1), 7), None
    for _ in range(2 * ROOM):
        _, past = read(ids, past)
    assert past.buffer.shape[4] == ROOM and past.dropped + past.held == 2 * ROOM
    model, _ = loaded("llama")
    _, past = CachedDecoder(model)(torch.full((1, ROOM + 1), 7))
    assert past.buffer.shape[4] > ROOM and past.dropped == 0
