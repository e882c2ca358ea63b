"""What does not go together in a class's choices, each said in one sentence."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from autograder import CourseError
from autograder.term.adapt import Exercise, exercises, needed_later
from autograder.term.course_file import Choices, LessonChoice


def refuse(choices: Choices, cells: Mapping[str, list[dict[str, Any]]]) -> None:
    """Raise CourseError for the first thing that does not fit.

    cells  {slug: cells of the solved notebook} of the lessons whose exercises were changed
    """
    for slug, choice in choices.lessons.items():
        if choice.changes:
            for sentence in _faults(choice, cells[slug]):
                raise CourseError(f"{choices.path}: lesson {slug}: {sentence}")


def _faults(choice: LessonChoice, cells: list[dict[str, Any]]) -> Iterator[str]:
    there = exercises(cells)
    places = {"points": choice.points, "optional": choice.optional, "without": choice.without}
    seen: dict[str, str] = {}
    for setting, names in places.items():
        for name in names:
            if name not in there:
                near = get_close_matches(name, there, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(there)}"
                yield f"{setting} names {name}, which is no exercise of it; {hint}"
            elif name in seen:
                yield f"{name} stands in {seen[name]} and in {setting}; one of them is to go"
            seen[name] = setting
    for name, points in choice.points.items():
        yield from _too_few(there[name], points)
    for name in choice.without:
        if needed_later(cells, name):
            yield (
                f"{name} is called further down in the notebook, so it cannot be left out; as one "
                "of optional it stays and earns nothing"
            )
    left = [name for name in there if name not in choice.without]
    if not any(choice.points.get(name, 1) for name in left if name not in choice.optional):
        yield "no exercise is left that earns points; leave the whole lesson out"


def _too_few(one: Exercise, points: float) -> Iterator[str]:
    """Fewer points than stages: what one of them earns could hardly be seen."""
    if points < len(one.stages):
        yield (
            f"{one.name} has {len(one.stages)} stages, each earned by itself, so it needs at least "
            f"{len(one.stages)} points, not {points:g}"
        )


def unmet(choices: Choices, needs: Mapping[str, tuple[str, ...]]) -> None:
    """Raise CourseError where a lesson builds on one that the class neither has nor assumes.

    needs  {slug: slugs of the lessons that it builds on}
    """
    for slug in choices.lessons:
        had = {*choices.assumed, *(one for one in choices.lessons if one < slug)}
        missing = [one for one in needs[slug] if one not in had]
        if missing:
            numbers = ", ".join(f'"{one[:2]}"' for one in missing)
            raise CourseError(
                f"{choices.path}: lesson {slug} builds on {', '.join(missing)}, which the class "
                f"does not have: take it in, or write assumed = [{numbers}] if your students know "
                "it; its library is given to them in any case"
            )
