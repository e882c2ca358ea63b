"""The command that judges every answer on many seeds."""

from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import reference
from tests import seeds


def test_an_answer_that_the_draw_decides_about_is_divided():
    item = registry.find("distances")
    right = reference(item)

    def at_times(x, x_train):
        return right(x, x_train) + 9 * (x[0] < 0 and x.shape == (5,))

    found = seeds.judge(item, {"right": right, "lucky": at_times}, 6)
    assert found["right"] == {"loses nothing": [*range(6)]}
    assert sorted(found["lucky"]) == ["loses 1", "loses nothing"]


def test_stages_and_care_are_parts_of_a_verdict():
    item = registry.find("nadaraya_watson")
    lost = {seeds.verdict(item, one.target, 0) for one in registry.mistakes(item)}
    assert "loses 0.33, far from all examples" in lost
    assert seeds.verdict(item, registry.careless_answers(item)[0].target, 0) == "loses 0.25"


def test_divided_answers_are_told_and_locked_ones_by_number_only(monkeypatch, capsys):
    answers = seeds.answers(registry.find("distances"), wrong=True)
    names = [name for name in answers if name.startswith("tests.locked")]
    assert names and all(name.rpartition(":")[2].isdigit() for name in names)
    monkeypatch.setattr(seeds, "verdict", lambda item, target, seed: f"loses {seed}")
    assert seeds.main(["00", "--count", "2", "--wrong"]) == 1
    assert ": 1x loses 0 (0) · 1x loses 1 (1)" in capsys.readouterr().out
