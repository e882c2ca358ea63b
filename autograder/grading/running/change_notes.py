"""Notes to students whose points a new grading changes: plain text, ready to be sent."""

from collections.abc import Iterable
from pathlib import Path

from attention.provided.files import write_aside
from autograder import CourseError
from autograder.grading.classroom import item_analysis
from autograder.grading.notebook.result import clean
from autograder.grading.running.preview import SAME, Change, Part
from autograder.grading.running.preview_lines import reason


def refuse(folder: Path) -> None:
    """Raise CourseError where notes of another preview might lie among the new ones."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CourseError(
            f"{folder} is there and not empty: notes of another preview would be sent with the new "
            "ones. Name a new folder with --notes"
        )


def write(folder: Path, changes: Iterable[Change]) -> int:
    """Write STUDENT.txt where points, or how many there are, change; return for how many."""
    texts: dict[str, list[str]] = {}
    for change in changes:
        if change.gain or change.has_other_maximum or any(part.changed for part in change.parts):
            texts.setdefault(change.one.student, []).append(text(change))
    for student, told in texts.items():
        folder.mkdir(parents=True, exist_ok=True)
        write_aside(folder / f"{student}.txt", "\n\n".join(told).encode())
    return len(texts)


def text(change: Change) -> str:
    """The note on one lesson."""
    number, _, name = change.one.lesson.partition("_")
    before, after = change.before, change.after
    was = f", of {before.most:g}" if change.has_other_maximum else ""
    told = [
        f"Your points in lesson {number} ({name.replace('_', ' ')}): {before.score:g} before{was}, "
        f"{after.score:g} now, of {after.most:g}.",
        "",
        f"Why it was graded again: {change.why}.",
        "",
        *(_part(change, part) for part in change.parts),
    ]
    off = before.penalty, after.penalty
    if max(off) > SAME:
        told.append(f"- For handing in late, {off[0]:g} were taken off before, and {off[1]:g} now.")
    return "\n".join(told).rstrip() + "\n"


def _part(change: Change, part: Part) -> str:
    (before, _, _), (after, most, _) = part.before, part.after
    if part.stays:
        return f"- {part.result.name}: {after:g} of {most:g}, as your instructor decided."
    told = "Your answer is right."
    if (why := reason(change.result, part.result)) != "right":
        said = item_analysis.said(part.result.reason)
        costs = f" It costs {said.costs}." if said.costs else ""
        told = clean(f"The check says: {why}.{costs} {said.likely}".rstrip())
    return f"- {part.result.name}: {before:g} before, {after:g} now, of {most:g}. {told}"
