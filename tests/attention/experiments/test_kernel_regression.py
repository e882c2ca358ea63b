"""What lesson 01 draws: the river, the path of a training, and the numbers that are compared."""

import pytest

from attention.experiments import kernel_regression as experiments
from attention.kernel_regression import kernel_regression, learn_bandwidth, soft_lookup

AT = experiments.Shelf(
    [(0.9, 0.2), (0.8, 0.3), (0.6, 0.7), (0.1, 0.9)], [2.0, 4.0, 10.0, 18.0], (0.7, 0.6)
)


def test_the_river_is_read_forty_times_and_never_in_the_gap():
    hours, level = experiments.river(3)
    assert len(hours) == len(level) == 40
    assert (hours.diff() > 0).all()
    assert not ((hours > 3.7) & (hours < 4.7)).any()
    errors = level - experiments.true_level(hours)
    assert 0.2 < errors.std().item() < 0.4


def test_the_shelf_returns_the_metre_that_is_answered():
    assert experiments.shelf(soft_lookup, AT, 0.001) == pytest.approx(10, abs=1e-3)
    assert experiments.temperatures(soft_lookup, AT) == pytest.approx(8.49, abs=0.01)


def test_training_goes_downhill_from_a_wide_start_and_stays_stuck_from_a_narrow_one():
    examples = experiments.river(0)
    _, path = learn_bandwidth(1.5, *examples)
    assert path[0][0] == pytest.approx(1.5)
    assert path[-1][1] < path[0][1]
    assert path[-1][0] == pytest.approx(0.154, abs=0.01)
    _, narrow = learn_bandwidth(0.01, *examples)
    assert narrow[-1][0] < 0.05


def test_a_gaussian_three_times_too_wide_costs_more_than_a_boxcar():
    assert experiments.kernels(kernel_regression) == "bandwidth"
