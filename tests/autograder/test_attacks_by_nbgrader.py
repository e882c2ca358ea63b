"""The attacks on a notebook's own cells once more, where nbgrader's own command grades them."""

import pytest

from tests.autograder.attacks import ATTACKS, ours
from tests.autograder.attacks.ground import most as total
from tests.autograder.attacks.paper import BASIC
from tests.needs import needs

pytestmark = [pytest.mark.serial, pytest.mark.long, needs("bubblewrap")]


@pytest.mark.parametrize("one_in", [4, pytest.param(1, marks=pytest.mark.every)])
def test_the_same_attacks_earn_nothing_through_nbgrader_autograde(tmp_path, one_in):
    chosen = [attack for attack in ATTACKS.values() if attack.group in ("edited", "interpreter")]
    chosen = [attack for attack in chosen if attack.lesson == BASIC][::one_in]
    points, report = ours.play_with_nbgrader(chosen, tmp_path / "ours")
    assert {name: points.get(name) for name in ATTACKS if name in points} == {
        attack.name: 0 for attack in chosen
    }
    assert points["honest"] == total(BASIC)
    assert report["traces"] == []
