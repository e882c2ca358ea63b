"""Failures that no stored mistake explains: gathered by what came back, shown without a name."""

from autograder.checking.toolbox import registry
from autograder.reporting import student_answers, unexplained

SLUG = "00_getting_started"
WRONG = "softmax: the values are wrong.\n  got       [{}, 1] = {}\n  expected  0.5"
RELATION = "\n  likely    Every number is {} times the expected one."


def row(student, reason, problem=""):
    part = {"name": "softmax", "score": 0.0 if reason else 2.0, "max": 2.0, "reason": reason}
    return {"student": student, "lesson": SLUG, "exercises": [part], "problem": problem}


def test_the_same_failure_with_other_numbers_is_one_cluster():
    rows = [
        row("ada", WRONG.format(0, 0.25)),
        row("ben", WRONG.format(3, -1e-5)),
        row("cleo", WRONG.format(0, 0.25) + RELATION.format(2)),
        row("dan", WRONG.format(0, "nan")),
        row("eve", ""),
    ]
    texts = {"ben": {"softmax": "def softmax(x, dim):\n    return x"}}
    found = unexplained.clusters(rows, texts, {})
    assert [one.students for one in found] == [("ada", "ben"), ("cleo",), ("dan",)]
    assert found[0].student == "ben", "whose text is there"
    assert found[0].told == "the values are wrong. Got [3, 1] = -1e-05."
    assert found[1].example == "", "no text is left of the others"
    assert "Every number is 2 times" in found[1].told


def test_what_a_stored_mistake_explains_is_left_out_however_it_was_wrapped():
    item = registry.of_lesson("getting_started")["softmax"]
    hint = registry.mistakes(item)[0].hint
    first, _, rest = hint.partition(" ")
    named = row("ada", WRONG.format(0, 1) + f"\n  likely    {first}\n            {rest}")
    known = unexplained.hints(SLUG)
    assert unexplained.clusters([named], {}, known) == []
    assert len(unexplained.clusters([named], {}, {"softmax": frozenset()})) == 1
    assert unexplained.clusters([named], {}, None) == []
    assert unexplained.hints("99_no_such_lesson") is None


def test_what_is_no_answer_is_left_out():
    reasons = [
        "softmax: nothing here yet: write about 3 lines.",
        "softmax: it is not defined.\n  got       its cell stops with SyntaxError",
        "softmax: your code had to be stopped.\n  got       it took more than 10 s",
    ]
    rows = [row(str(number), reason) for number, reason in enumerate(reasons)]
    rows.append(row("x", "softmax: there is no notebook.", problem="there is no notebook"))
    careless = row("y", "softmax: right. One thing to mend: on a GPU this fails.")
    careless["exercises"][0]["is_careless"] = True
    rows.append(careless)
    assert unexplained.clusters(rows, {}, {}) == []


LONG = '''# By Zoe Miller
def softmax(scores, dim):
    """Return shares.

    Their sum is 1.
    """
    # zoe thinks so
    zoe_sum = "# no comment"
    return zoe_sum  # done
'''


def test_an_example_names_nobody_and_is_short():
    shown = student_answers.example(LONG, "zoe")
    assert shown.splitlines() == [
        "def softmax(scores, dim):",
        "    …_sum = '# no comment'",
        "    return …_sum",
    ]
    many = student_answers.example("\n".join(f"x{n} = {n}" for n in range(99)), "zoe")
    assert len(many.splitlines()) == 15
    assert many.endswith("…")
    assert student_answers.example("def broken(:\x1b[2J", "zoe") == "def broken(:[2J"
