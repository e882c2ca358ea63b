"""Lesson 18's figures return what their captions say."""

import pytest
import torch

from attention.experiments import efficient_attention as experiments
from attention.scaled_dot_product_attention import attention_multiplications


def test_the_record_says_which_block_is_quickest_and_which_ways_are_quadratic():
    assert experiments.block_sizes() == 256
    assert experiments.five_ways() == 3
    assert experiments.recall_by_width_pairs_and_distance() == pytest.approx(0.546, abs=0.001)


def test_larger_tiles_move_fewer_numbers_and_multiply_as_often():
    counted = experiments.counted_costs()
    lengths = [2**n for n in range(8, 18)]
    assert counted["multiplications, both"] == [
        attention_multiplications(T, T, 32, 32) for T in lengths
    ]
    moved = [experiments.numbers_moved(4096, block=block) for block in (64, 256, 1024, None)]
    assert moved[0] > moved[1] > moved[2] < moved[3]


def test_features_of_a_lookup_give_a_low_rank(capsys):
    experiments.lookup(torch.exp)
    softmax, linear, *_ = capsys.readouterr().out.splitlines()
    assert softmax.endswith("rank 24") and linear.endswith("rank 8")
