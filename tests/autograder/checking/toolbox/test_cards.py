"""Cards: mistakes as edits of a right answer."""

import textwrap

import pytest

from autograder.checking.toolbox import cards, registry

RIGHT = '''
def scaled(values, by=2):
    """A docstring that says values, by and return, which no edit finds."""
    # exercise: about 3 lines
    if by == 0:
        return values
    total = values * by  # a comment
    return total


class Scale:
    """Twice."""

    def __init__(self, by):
        """Keep by."""
        self.by = by

    def forward(self, x):
        """Scale x."""
        by = self.by
        return x * by
'''
NAMESPACE = {"__name__": "tests.autograder.checking.toolbox.test_cards"}
exec(RIGHT, NAMESPACE)
FUNCTION, CLASS = RIGHT.split("\n\n\n")
FUNCTION = FUNCTION.strip() + "\n"


def written(tmp_path, text):
    """The cards of a file with this text below the heading of an exercise."""
    path = tmp_path / "lesson.md"
    path.write_text("# Mistakes\n\n## scaled\n\n" + textwrap.dedent(text), encoding="utf-8")
    cards.read.cache_clear()
    return cards.read(path)


def made(card, right="scaled"):
    source = FUNCTION if right == "scaled" else CLASS
    return cards.made(card, cards.applied(card, source), NAMESPACE[right], "elsewhere")


def test_a_card_has_a_hint_stages_and_edits(tmp_path):
    first, second = written(
        tmp_path,
        """\
        - It adds. What should
          it do?
          Earns: zero; the
          rest
          - `values * by` → `values + by`
        - (the same)
          - `* by` →
        """,
    )
    assert first.hint == second.hint == "It adds. What should it do?"
    assert first.earns == ("zero", "the rest")
    assert (first.exercise, first.name) == ("scaled", "lesson.md:5")
    assert (made(first)(3), made(second)(3)) == (5, 3)
    assert made(first).__module__ == "elsewhere"


@pytest.mark.parametrize(
    ("edit", "result"),
    [
        ("- `by=2` → `by=3`", 9),
        ("- returns `(result, 1)`", (6, 1)),
        ("- `return total` → `return total, by`\n  - returns `result[1]`", 2),
        ("```diff\n  - total = values * by\n  + total = values\n  + total += 1\n  ```", 4),
        ("```diff\n  - if by == 0:\n  -     return values\n    total = values * by\n  ```", 6),
    ],
)
def test_an_edit_changes_a_part_whole_lines_or_what_is_returned(tmp_path, edit, result):
    (card,) = written(tmp_path, f"- A hint.\n  {edit}\n")
    assert made(card)(3) == result


def test_an_edit_may_name_its_method(tmp_path):
    (card,) = written(
        tmp_path,
        "- A hint.\n  - in `forward`: `by = self.by` → `by = 1`\n  - in `__init__`: `= by` → `= 5`",
    )
    broken = made(card, "Scale")(2)
    assert (broken.by, broken.forward(3)) == (5, 3)


@pytest.mark.parametrize(
    ("card", "why"),
    [
        ("- A hint.", "changes nothing"),
        ("- \n  - `by=2` → `by=3`", "no hint"),
        ("- A hint.\n  - `by=2` -> `by=3`", "no edit"),
        ("- A hint.\n  - `by=4` → `by=3`", "does not stand"),
        ("- A hint.\n  - `values` → `value`", "3 times"),
        ("- A hint.\n  - `A docstring` → `b`", "does not stand"),
        ("- A hint.\n  - `* by` → `* by `", "nothing that counts"),
        ("- A hint.\n  - `* by` → `* (`", "no Python"),
        ("- A hint.\n  - in `other`: `* by` →", "no method"),
    ],
)
def test_what_is_no_card_is_refused_with_its_place(tmp_path, card, why):
    with pytest.raises(cards.CardError, match=rf"lesson\.md:5: .*{why}"):
        made(written(tmp_path, card)[0])


def test_the_cards_of_a_lesson_are_registered_as_mistakes():
    known = registry.mistakes(registry.find("uniform_average"))
    assert known[0].name.startswith("getting_started.md:")
    assert "values.sum(" in known[0].text


def test_the_cards_of_an_exercise_may_be_made_again_with_another_edit(tmp_path):
    path = tmp_path / "lesson.md"
    again = "Each again with `return total` → `return [total]`."
    text = f"## scaled\n\n{again}\n\n- A hint.\n  - `* by` → `+ by`\n"
    path.write_text(text, encoding="utf-8")
    (card,) = cards.read(path)
    ways = [
        cards.made(card, made, NAMESPACE["scaled"], "elsewhere")
        for _, made in cards.ways(card, FUNCTION)
    ]
    assert [way(3) for way in ways] == [5, [5]]
