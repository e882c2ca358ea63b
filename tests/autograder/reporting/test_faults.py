"""What went wrong: gathered by what came back, and what no stored mistake explains with a text."""

import pytest

from autograder.checking.toolbox import registry
from autograder.reporting import faults
from autograder.reporting.results import Row

SLUG = "00_getting_started"
WRONG = "softmax: the values are wrong.\n  got       [{}, 1] = {}\n  expected  0.5"
RELATION = "\n  likely    Every number is {} times the expected one."


def row(student, reason, problem="", **more):
    part = {"name": "softmax", "score": 0.0 if reason else 2.0, "max": 2.0, "reason": reason}
    return Row(student, SLUG, [part | more], problem)


def test_the_same_failure_with_other_numbers_is_one():
    rows = [
        row("ada", WRONG.format(0, 0.25)),
        row("ben", WRONG.format(3, -1e-5)),
        row("cleo", WRONG.format(0, 0.25) + RELATION.format(2)),
        row("dan", WRONG.format(0, "nan")),
        row("eve", ""),
    ]
    texts = {"ben": {"softmax": "def softmax(x, dim):\n    return x"}}
    found = faults.faults(rows, texts, {})
    assert [one.students for one in found] == [("ada", "ben"), ("cleo",), ("dan",)]
    assert found[0].of == "ben", "whose text is there"
    assert found[0].told == "the values are wrong. Got [3, 1] = -1e-05."
    assert found[0].example == texts["ben"]["softmax"]
    assert found[1].example == "", "no text is left of the others"
    assert "Every number is 2 times" in found[1].told


def test_a_hint_counts_however_it_was_wrapped_and_has_no_example():
    hint = registry.mistakes(registry.of_lesson("getting_started")["softmax"])[0].hint
    first, _, rest = hint.partition(" ")
    ends = (f"{first}\n            {rest}", hint)
    rows = [row(f"s{n}", WRONG.format(n, n) + f"\n  likely    {end}") for n, end in enumerate(ends)]
    texts = {one.student: {"softmax": "x = 1"} for one in rows}
    (one,) = faults.faults(rows, texts, faults.hints(SLUG))
    assert (one.told, one.has_hint, one.example) == (hint, True, "")
    (other, *_) = faults.faults(rows, texts, {})
    assert not other.has_hint and other.example == "x = 1"
    assert faults.hints("99_no_such_lesson") == {}


@pytest.mark.parametrize(
    "lost",
    [
        row("ada", "softmax: nothing here yet: write about 3 lines."),
        row("ada", "softmax: it is not defined.\n  got       its cell stops with SyntaxError"),
        row("ada", "softmax: your code had to be stopped.\n  got       it took more than 10 s"),
        row("ada", "softmax: there is no notebook.", problem="there is no notebook"),
        row("ada", "softmax: right. One thing to mend: on a GPU this fails.", is_careless=True),
    ],
)
def test_what_is_no_wrong_answer_is_not_offered_as_one(lost):
    (one,) = faults.faults([lost], {"ada": {"softmax": "x = 1"}}, {})
    assert one.example == ""


def test_what_was_not_attempted_is_no_fault():
    rows = [row("ada", "softmax: nothing here yet.", is_open=True), row("ben", WRONG.format(0, 1))]
    assert [one.students for one in faults.faults(rows, {}, {})] == [("ben",)]


LONG = '''# By Zoe Miller
def softmax(scores, dim):
    """Return shares.

    Their sum is 1.
    """
    # zoe thinks so
    total = "# no comment"
    return total  # done
'''


def test_an_example_is_short_and_holds_no_comment():
    lines = faults.example(LONG).splitlines()
    assert lines == ["def softmax(scores, dim):", "    total = '# no comment'", "    return total"]
    many = faults.example("\n".join(f"x{n} = {n}" for n in range(99))).splitlines()
    assert len(many) == 15 and many[-1] == "…"
    assert faults.example("def broken(:\x1b[2J") == "def broken(:[2J"
