"""The two tasks of lesson 05, and what its sentences say about them."""

import pytest
import torch

from attention.experiments import scaled_dot_product_attention as experiments
from attention.experiments.scaled_dot_product_attention import (
    ROOT_D,
    influence,
    pointing_items,
    turn_back,
)
from attention.scaled_dot_product_attention import (
    SelfAttentionHead,
    attention_multiplications,
    rnn_multiplications,
    scaled_dot_product_attention,
    softmax_gradient_norm,
)


def test_each_item_reports_the_content_of_the_one_it_asks_for():
    x, y = pointing_items(3, torch.Generator().manual_seed(0))
    names, asked = x[..., :8].argmax(dim=2), x[..., 8:16].argmax(dim=2)
    for b in range(3):
        for t in range(8):
            place = (names[b] == asked[b, t]).nonzero().item()
            assert torch.equal(y[b, t], x[b, place, 16:])


def test_large_scores_fail_through_the_context_only():
    setting = {"factor": ROOT_D, "steps": 20, "d": 512}
    failed = turn_back(scaled_dot_product_attention, **setting)
    learned = turn_back(scaled_dot_product_attention, **setting, log_loss=True)
    assert failed[-1] > 1 > 0.01 > learned[-1]


def test_the_influence_is_flat_for_attention_and_fades_for_the_others():
    found = influence(SelfAttentionHead, seed=3)
    assert found["self-attention"][1:].max() < 1.5 * found["self-attention"][1:].min()
    assert found["recurrent"][-1] < 1e-7
    assert (found["convolution of width 5"] > 0).sum() == 5


def test_one_of_many_random_keys_takes_all_the_weight_of_a_long_query():
    largest = experiments.weights_of_random_keys()
    assert largest[4] < 0.6 < 0.9 < largest[1024]
    divided = experiments.weights_of_random_keys(divided=True).values()
    assert 0.3 < min(divided) < max(divided) < 0.4


def test_scores_are_mutual_with_one_projection_only_and_order_does_not_matter():
    torch.manual_seed(6)
    head, x = SelfAttentionHead(d_model=16, d_head=8), torch.randn(1, 3, 16)
    there, back = experiments.scores_both_ways(head, x)
    assert abs(there - back) > 0.1
    assert experiments.in_another_order(head, x, scaled_dot_product_attention) == "same"
    head.W_k = head.W_q
    there, back = experiments.scores_both_ways(head, x)
    assert there == pytest.approx(back)


def test_matrices_make_the_translator_s_scores_smaller_still():
    without, with_them = (experiments.spread_in_the_translator(0, of) for of in ("", "qk"))
    assert with_them["spread"] < 0.5 * without["spread"] < 0.5


def test_the_other_figures_can_be_drawn(capsys):
    assert experiments.sizes_of_the_jacobian(softmax_gradient_norm).get_ylim() == (1e-12, 1)
    assert experiments.weight_on_itself(scaled_dot_product_attention)[256][0] > 0.99
    experiments.multiplications(attention_multiplications, rnn_multiplications)
    assert "146,800,640" in capsys.readouterr().out
