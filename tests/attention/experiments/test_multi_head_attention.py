"""The task of lesson 07, and what its figures return."""

import torch

from attention.experiments import multi_head_attention as experiments
from attention.experiments.multi_head_attention import errors, two_pointers
from attention.masked_attention import causal_mask
from attention.multi_head_attention import (
    MultiHeadAttention,
    collaborative_heads,
    share_heads,
)


def test_each_item_reports_the_contents_of_the_two_that_it_asks_for():
    x, y = two_pointers(3, torch.Generator().manual_seed(0))
    names, first, second = (x[..., 8 * i : 8 * i + 8].argmax(dim=2) for i in range(3))
    for b in range(3):
        for t in range(8):
            for asked, report in ((first, y[b, t, :4]), (second, y[b, t, 4:])):
                place = (names[b] == asked[b, t]).nonzero().item()
                assert torch.equal(report, x[b, place, 24:])


def test_the_contexts_of_single_heads_make_up_the_layer():
    layer, x, contexts = experiments.loop_over_heads(MultiHeadAttention)
    merged = contexts.transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer.W_o(merged), layer(x, x, x, causal_mask(5)))


def test_two_heads_go_on_where_one_stops_look_at_one_item_each_and_are_missed(monkeypatch):
    monkeypatch.setattr(experiments, "fewer", lambda count, most: 150)
    trained, ends = experiments.one_two_or_four_heads(MultiHeadAttention)
    assert ends[1] > 0.3 > 0.1 > ends[2]
    assert max(errors(*trained[2])) < 0.1
    assert max(errors(*trained[2], torch.tensor([0.0, 1.0]))) > 0.8
    first, second = experiments.where_two_heads_look(trained[2][0])
    assert sorted([first.index(max(first)), second.index(max(second))]) == [0, 1]
    assert min(max(first), max(second)) > 0.7
    experiments.silence(*trained[2])


def test_figures_of_cost_and_of_sharing():
    assert len(experiments.how_many_heads().lines) == 6  # three seeds, two numbers of steps
    assert experiments.memory_of_heads(MultiHeadAttention) > 8
    sizes = experiments.cache_sizes(share_heads)
    assert sizes["multi-head"] == 4 * sizes["grouped-query"] == 32 * sizes["multi-query"] == 4096
    assert experiments.collaborate(collaborative_heads)
