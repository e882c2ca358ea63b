"""What lesson 04 says of its figures, on functions of the library."""

from attention.experiments import score_functions as experiments
from attention.score_functions import (
    gaussian_scores,
    learn_crossing,
    reinforce_gradient,
    score,
)


def test_a_crossing_needs_more_than_rank_1():
    narrow, wide = (experiments.crossing("reduced_rank", 6, 4, learn_crossing, r=r) for r in (1, 2))
    assert narrow["found"] == 2
    assert wide["found"] == 6


def test_a_dot_product_learns_the_crossing_only_through_its_queries_and_keys():
    fixed, learned = (
        experiments.crossing("dot", 6, 4, learn_crossing, learned=learned)
        for learned in (False, True)
    )
    assert fixed["weight"] < 0.5
    assert learned["found"] == 6


def test_with_a_baseline_all_runs_come_close_to_the_exact_gradient():
    ends = experiments.rewards_with_a_baseline(reinforce_gradient)
    assert min(ends["baseline 11.5"]) > 12.9 > min(ends["no baseline"]) + 1


def test_twice_the_rate_makes_up_for_small_scores(capsys):
    assert experiments.translators_of_all_kinds() == "scaled_dot"
    said = capsys.readouterr().out.splitlines()
    (scaled,) = (line for line in said if line.startswith("scaled dot, twice"))
    assert min(float(share) for share in scaled.split()[-3:]) > 0.9


def test_the_other_figures_can_be_drawn():
    assert experiments.a_longer_key(gaussian_scores, score).shape == (2, 2)
    assert experiments.crossings(learn_crossing) == 2
