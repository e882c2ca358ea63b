"""Texts are put into batches with little padding."""

from attention.search import model


def test_texts_of_like_lengths_share_a_batch():
    lengths = [100, 10, 11, 104, 50, 10, 101, 12]
    found = list(model.batches(lengths, tokens=320))
    assert [sorted(batch) for batch in found] == [[1, 2, 5, 7], [4], [0, 3, 6]]
    for batch in found:
        assert len(batch) * max(lengths[place] for place in batch) <= 320
