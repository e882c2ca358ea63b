"""The command that times the checks."""

from autograder.checking.toolbox import registry
from benchmarks import checks


def test_every_exercise_is_timed_with_a_right_and_with_wrong_answers(capsys):
    checks.main(["00", "--slowest", "100"])
    said = capsys.readouterr().out
    for item in registry.of_lesson("getting_started").values():
        kinds = [known.hint is None for known in checks.some_answers(item)]
        assert kinds == [True, False, False, False]
        assert said.count(f" {item.name} ") == len(kinds)
