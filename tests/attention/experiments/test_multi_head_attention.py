"""The task of lesson 07."""

import torch
from torch import nn

from attention.experiments.multi_head_attention import D_MODEL, errors, train, two_pointers
from attention.multi_head_attention import MultiHeadAttention


def test_each_item_reports_the_contents_of_the_two_that_it_asks_for():
    x, y = two_pointers(3, torch.Generator().manual_seed(0))
    names, first, second = (x[..., 8 * i : 8 * i + 8].argmax(dim=2) for i in range(3))
    for b in range(3):
        for t in range(8):
            for asked, report in ((first, y[b, t, :4]), (second, y[b, t, 4:])):
                place = (names[b] == asked[b, t]).nonzero().item()
                assert torch.equal(report, x[b, place, 24:])


def test_one_head_stops_where_two_go_on_and_a_silent_one_is_missed():
    ends = {}
    for n_heads in (1, 2):
        torch.manual_seed(0)
        layer, read_out = MultiHeadAttention(D_MODEL, n_heads), nn.Linear(D_MODEL, 8)
        ends[n_heads] = train(layer, read_out, seed=0, steps=150)[-1]
    assert ends[1] > 0.3 > 0.1 > ends[2]
    assert max(errors(layer, read_out)) < 0.1
    assert max(errors(layer, read_out, torch.tensor([0.0, 1.0]))) > 0.8
