"""What a preview prints: who would gain and lose which points, and why."""

from collections import Counter
from collections.abc import Iterator

from autograder.cell_metadata import exercise_called
from autograder.grading.classroom import item_analysis
from autograder.grading.notebook.result import Exercise, Result, clean
from autograder.grading.running.preview import SAME, Change, Part, Preview
from autograder.settings import count


def lines(preview: Preview) -> Iterator[str]:
    """What is to be told of a Preview that has compared: its students one by one, then counts."""
    several = len({change.why for change in preview.changes}) > 1
    for change in sorted(preview.changes, key=_sign):
        yield from _student(change, several)
    yield from _counts(preview)


def reason(result: Result, one: Exercise) -> str:
    """Why an exercise has the points that its check gives now, in one line; 'right' where all."""
    if one.score >= one.max:
        return "right"
    said = result.problem or item_analysis.said(one.reason).what
    return clean(said.partition("\n")[0]).removeprefix(f"{one.name}: ").rstrip(".")


def total(change: Change) -> str:
    """'3 → 5 of 5', or where there were other points, '3 of 5 → 5 of 7'."""
    before, after = change.before, change.after
    was = f" of {before.most:g}" if change.has_other_maximum else ""
    return f"{before.score:g}{was} → {after.score:g} of {after.most:g}"


def _sign(change: Change) -> int:
    """First those who gain, then those who lose, then those with the same points in all."""
    return 0 if change.gain > 0 else 1 if change.gain < 0 else 2


def _student(change: Change, several: bool) -> Iterator[str]:
    what = ("gains", "loses", "keeps the total")[_sign(change)]
    yield f"{what}: {change.one.student}, {change.one.lesson}: {total(change)}"
    for part in change.parts:
        yield f"    {part.result.name}: {_part(part, reason(change.result, part.result))}"
    yield from _came_or_went(change)
    before, after = change.before.penalty, change.after.penalty
    if abs(after - before) > SAME:
        yield f"    late penalty: {before:g} → {after:g}"
    if several or not change.parts:
        yield f"    why it is graded again: {change.why}"


def _came_or_went(change: Change) -> Iterator[str]:
    """The exercises that only one of the two versions of a lesson has."""
    old, new = change.before.scores, change.after.scores
    for cell in sorted(old.keys() - new.keys()):
        yield f"    {exercise_called(cell)}: {old[cell][0]:g} → no longer asked for"
    for cell in sorted(new.keys() - old.keys()):
        score, most, _ = new[cell]
        yield f"    {exercise_called(cell)}: was not asked for → {score:g} of {most:g}"


def _part(part: Part, why: str) -> str:
    (before, _, was), (after, most, automatic) = part.before, part.after
    if part.stays:
        check = f"the check gave {was or 0:g}, and would give {automatic or 0:g}"
        return f"{count(after)} by hand stay; {check}: {why}"
    extra = "" if automatic == after else f" (the check: {automatic or 0:g})"
    return f"{before:g} → {after:g} of {most:g}{extra}: {why}"


def _counts(preview: Preview) -> Iterator[str]:
    signs = Counter(map(_sign, preview.changes))
    told = len(preview.handed) - len(preview.unsaid) - len(preview.first)
    gain, lose = signs[0], signs[1]
    if told and not gain and not lose:
        yield f"Nobody's points would change: {told} would keep theirs."
    elif told:
        keep = told - gain - lose
        yield (
            f"Of {told} graded before, {gain} would gain points, {lose} would lose some, and "
            f"{keep} would keep theirs."
        )
    if preview.first:
        yield f"{len(preview.first)} would be graded for the first time."
    by_hand = sum(part.stays for change in preview.changes for part in change.parts)
    if by_hand:
        yield (
            f"Scores by hand stay, {by_hand} of them although the check would give other points: "
            "they would be marked “needs manual grade”."
        )
