"""A gate for the cards of an exercise: what gate 3, which is for all mistakes, does not see."""

import itertools
from collections.abc import Iterator

from autograder.building.gates.leaks import normal, solutions
from autograder.building.lesson import Lesson
from autograder.checking.diagnosis.stored_replies import Comparison, of_answer
from autograder.checking.toolbox import registry


def gate(lesson: Lesson, item: registry.Check, seed: int) -> Iterator[str]:
    """The hints that show a line of the solution, and the cards that reply alike.

    One hint may stand on several cards, but each of them replies in its own way: one that replies
    as another does recognises nothing that the other does not.
    """
    known = [one for one in registry.mistakes(item) if one.text and not one.name.endswith(")")]
    lines = [line for name, line in solutions(lesson) if name == item.name]
    for one in known:
        shown = [line for line in lines if line in normal(one.hint or "")]
        for line in shown[:1]:
            yield f"{item.name}: the hint of {one.name} shows a line of the solution: {line}"
    asked = Comparison(item, seed, care=True)
    for one, other in itertools.combinations(known, 2):
        pairs = zip(of_answer(one, asked), of_answer(other, asked), strict=False)
        if all(first.agrees(second, exactly=True) for first, second in pairs):
            yield f"{item.name}: {one.name} and {other.name} reply alike; one of them is enough"
