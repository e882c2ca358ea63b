"""The quick form of the encoder gives the numbers of the lesson's parts, whatever is in a batch."""

import pytest
import torch

from attention.provided.data.tokens import PAD, pad
from attention.provided.models.bert import files
from attention.published_model import PublishedEncoder, sentence_vectors
from attention.search import fast, model
from attention.search.fast import FastEncoder

LENGTHS = [[7], [9, 9, 9], [3, 12, 5, 9], [1, 12], [12, 12, 11]]


def random_ids(lengths):
    draw = torch.Generator().manual_seed(sum(lengths))
    return pad([torch.randint(1, 40, (n,), generator=draw).tolist() for n in lengths])


def random_model():
    torch.manual_seed(0)
    made = PublishedEncoder(40, 16, d_model=12, n_heads=3, d_ff=20, n_layers=3).eval()
    for parameter in made.parameters():  # norms and biases as well, which begin as ones and zeros
        torch.nn.init.normal_(parameter, std=0.5)
    return made


@pytest.fixture(params=["plain", "packed"])
def way(request, monkeypatch):
    """Both ways to multiply; the second only where this PyTorch has it."""
    packed = request.param == "packed"
    if packed and fast.onednn() is None:
        return
    monkeypatch.setattr(fast, "_packing_pays", lambda layer: packed)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_the_numbers_are_those_of_the_lesson(lengths, way):
    made, ids = random_model(), random_ids(lengths)
    with torch.no_grad():
        expected = sentence_vectors(made(ids), ids != PAD)
    torch.testing.assert_close(FastEncoder(made)(ids), expected, rtol=0, atol=1e-5)


def test_a_text_has_the_same_vector_in_every_batch(way):
    encode, ids = FastEncoder(random_model()), random_ids([3, 12, 5, 9])
    together = encode(ids)
    for row, one in zip(ids, together, strict=True):
        torch.testing.assert_close(encode(row[row != PAD][None])[0], one, rtol=0, atol=1e-5)


def test_texts_of_like_lengths_share_a_batch():
    lengths = [100, 10, 11, 104, 50, 10, 101, 12]
    found = list(model.batches(lengths, tokens=320))
    assert sorted(place for batch in found for place in batch) == list(range(8))
    for batch in found:
        longest = max(lengths[place] for place in batch)
        assert len(batch) * longest <= 320
        assert all(lengths[place] >= longest / 1.2 - 1 for place in batch)
    assert [sorted(batch) for batch in found] == [[1, 2, 5, 7], [4], [0, 3, 6]]


def test_vectors_come_in_the_order_of_the_texts():
    made = model.make("small", files.small())
    texts = ["Sort a list.", "Open a file, read all of its lines, and close it again.", "Sort", ""]
    found = made.vectors(texts)
    for text, one in zip(texts, found, strict=True):
        torch.testing.assert_close(made.vectors([text])[0], one, rtol=0, atol=1e-5)
    assert not torch.allclose(found[0], found[1], atol=0.1)
