"""Notes to students whose points a new grading changes: plain text, ready to be sent."""

from collections.abc import Iterable
from pathlib import Path

from attention.provided.files import write_aside
from autograder import CourseError
from autograder.grading.classroom import item_analysis
from autograder.grading.notebook.result import Result, clean
from autograder.grading.running.preview import SAME, UNLIKE, Change, Part
from autograder.grading.running.preview_lines import reason

# What a student calls the parts of result_dependencies.PARTS: several may be one.
WORDS = {
    "notebook": "the lesson's notebook",
    "checks": "the checks",
    "mistakes": "the checks",
    "checking": "the checks",
    "sandbox": "the program that grades",
    "grading": "the program that grades",
    "library": "the course's library",
    "data": "the course's data",
}
SEVERAL = "checks", "exercises", "memory", "data"  # how words end that are more than one thing


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
        why(change),
        "",
        *(_part(change, part) for part in change.parts),
    ]
    off = before.penalty, after.penalty
    if max(off) > SAME:
        told.append(f"- For handing in late, {off[0]:g} were taken off before, and {off[1]:g} now.")
    return "\n".join(told).rstrip() + "\n"


def why(change: Change) -> str:
    """Why the work was graded again, in a sentence, and whether it is the same."""
    kept, now = change.kept, change.result
    if change.why == UNLIKE:
        return "The gradebook did not hold the points that the checks had given; now it does."
    if kept is None or not kept.parts:
        failed = kept is not None and kept.ungraded
        cause = "had failed" if failed else "left no complete record"
        return f"Your work was graded again, because the grading before {cause}."
    same = kept.parts.get("submission") == now.parts.get("submission")
    words = _changed(change, kept) if same else ["what you handed in", *_changed(change, kept)]
    if not words:
        return "Your work was graded again, although neither it nor the checks have changed."
    joined = ", ".join(words[:-1]) + " and " * (len(words) > 1) + words[-1]
    verb = "have" if len(words) > 1 or words[0].endswith(SEVERAL) else "has"
    told = f"Your work was graded again, because {joined} {verb} changed."
    return f"{told} What you handed in is the same." if same else told


def _changed(change: Change, kept: Result) -> list[str]:
    """What has changed besides the work, in a student's words."""
    now = change.result
    words = [WORDS[part] for part in WORDS if kept.parts.get(part) != now.parts.get(part)]
    if change.has_other_maximum:
        words = ["the points of the exercises", *words]
    if kept.care_share != now.care_share:
        words.append("the share of points that a lack of care costs")
    if kept.limits != now.limits:
        words.append("the limits on time and memory")
    if not change.parts and not change.has_other_maximum:  # only the penalty is another one
        words.append("the due date or the rule for late work")
    return list(dict.fromkeys(words))


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
