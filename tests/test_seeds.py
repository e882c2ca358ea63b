"""The command that judges every answer on many seeds."""

from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import reference
from tests import seeds
from tests.locked import of_exercise


def test_an_answer_that_the_draw_decides_about_is_divided():
    item = registry.find("distances")
    right = reference(item)

    def at_times(x, x_train):
        return right(x, x_train) + 9 * (x[0] < 0 and x.shape == (5,))

    found, done = seeds.judge(item, {"right": right, "lucky": at_times}, 6, 600)
    assert done == 6
    assert found["right"] == {"loses nothing": [*range(6)]}
    assert sorted(found["lucky"]) == ["loses 1", "loses nothing"]


def test_no_seed_is_begun_after_the_time():
    assert seeds.judge(registry.find("distances"), {}, 64, 0) == ({}, 0)


def test_stages_and_care_are_parts_of_a_verdict():
    item = registry.find("nadaraya_watson")
    lost = {seeds.verdict(item, one.target, 0) for one in registry.mistakes(item)}
    assert "loses 0.33, far from all examples" in lost
    careless, mistake = registry.careless_answers(item)[0], registry.mistakes(item)[0]
    assert seeds.verdict(item, careless.target, 0) == "loses 0.25"
    assert seeds.verdict(item, mistake.target, 0, fails=True) == "fails"
    assert seeds.verdict(item, reference(item), 0, fails=True) == "passes"


def test_locked_answers_are_told_by_their_numbers(monkeypatch, capsys):
    monkeypatch.setattr(seeds, "verdict", lambda item, target, seed, fails: f"loses {seed}")
    assert seeds.main(["01", "--count", "2", "--only", "distances", "--wrong"]) == 1
    out = capsys.readouterr().out
    stored = registry.mistakes(registry.find("distances"))
    wrong = [one for one in of_exercise("distances") if not one.is_right]
    assert f"{len(stored)} stored, {len(wrong)} others, 2 seeds: " in out
    assert all(f"distances, {one.name}: 1x loses 0 (0)" in out for one in stored)
    assert out.count("tests.locked:") == len(wrong) > 0
    assert not any(one.name in out for one in wrong)


def test_other_answers_may_be_named(capsys):
    assert seeds.main(["01", "--count", "1", "--only", "distances", "--answers"]) == 0
    assert ", 0 others, 1 seeds: 0 divided" in capsys.readouterr().out
