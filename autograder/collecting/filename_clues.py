"""What the name of a file that came back says: whose it is, which lesson, which attempt."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from autograder import CourseError, lessons
from autograder.collecting.roster import Roster, plain
from autograder.grading.notebook.filenames import NOTEBOOK, original

# Canvas: name of the student, who is late, number of the student, number of the file, its name.
CANVAS = re.compile(
    r"(?P<name>.+?)(?P<late>_LATE)?_(?P<user>\d{1,20})_(?P<file>\d{3,20})_(?P<rest>.+)"
)
# Moodle: full name of the student, number of the participant; the file's name or a folder of it.
MOODLE = re.compile(r"(?P<name>.+?)_\d+_assignsubmission_(?:file|onlinetext)(?:_(?P<rest>.*))?")
STUDENT, NAME, FIRST, LAST, EMAIL = "student_id", "name", "first_name", "last_name", "email"


@dataclass
class Clues:
    """What a path says."""

    stem: str  # the file's name without what was added to it
    attempt: tuple[int, ...]  # what was added
    who: list[str] = field(default_factory=list)  # what may name the student, best first
    number: str = ""  # the LMS's for the student
    late: bool | None = None  # the LMS's word on the time; None: it says none
    upload: int = 0  # the LMS's number for the file
    lesson: str = ""  # the lesson that the path names
    moodle: bool = False  # whether the first of ``who`` is as Moodle writes it


@dataclass(frozen=True)
class Owner:
    """The id of the student whose file it is, or '' and why that is not known."""

    id: str
    why: str = ""
    group: str = ""  # the group in whose name it came


def pattern(text: str | None) -> re.Pattern[str] | None:
    """The regular expression of ``--pattern``. Raises CourseError where it cannot serve."""
    if text is None:
        return None
    try:
        made = re.compile(text)
    except re.error as error:
        raise CourseError(f"--pattern {text!r} is no regular expression: {error}") from None
    if not {STUDENT, NAME, FIRST, LAST, EMAIL} & made.groupindex.keys():
        raise CourseError(
            f"--pattern {text!r} has no group that says who: write (?P<student_id>…), "
            "(?P<name>…), (?P<email>…), or (?P<first_name>…) and (?P<last_name>…)"
        )
    return made


def read(
    parts: tuple[str, ...], slugs: Collection[str], named: re.Pattern[str] | None = None
) -> Clues:
    """What a path says; ``named`` has named groups, as for nbgrader's zip_collect."""
    parts = (*(re.sub(r"(?i)\.zip$", "", part) for part in parts[:-1]), parts[-1])
    folders, last = list(parts[:-1]), parts[-1]
    for place, part in enumerate(parts):
        if found := MOODLE.fullmatch(part) or CANVAS.fullmatch(part):
            groups = found.groupdict()
            rest = (groups["rest"] or "") if part is last else ""
            clues = _of_name(rest or last, slugs)
            # The folders around it count too: one may be another student's, who made up the name.
            clues.who = [groups["name"].replace("_", " "), *folders[:place]]
            clues.number, clues.upload = groups.get("user") or "", int(groups.get("file") or 0)
            clues.late = bool(groups["late"]) if "late" in groups else None
            clues.moodle = "late" not in groups
            folders = list(parts[place + 1 : -1])
            break
    else:
        clues = _of_name(last, slugs)
        remainder = _without_lesson(clues.stem, slugs)
        clues.who = [text for part in folders if (text := _without_lesson(part, slugs))]
        clues.who += [remainder] if remainder else []
    for folder in reversed(folders):
        clues.lesson = clues.lesson or _lesson_in(folder, slugs)
    if named and (match := named.search("/".join(parts))):
        groups = {name: text for name, text in match.groupdict().items() if text}
        joined = " ".join(groups[name] for name in (FIRST, LAST) if name in groups)
        told = [*(groups.get(name) for name in (STUDENT, EMAIL, NAME)), joined]
        clues.who, clues.number = [text for text in told if text][:1], ""
        clues.moodle = False
        if "file_id" in groups:
            clues.lesson = _lesson_in(groups["file_id"], slugs) or clues.lesson
    elif named:
        clues.who, clues.number = [], ""
    return clues


def owner(
    clues: Clues, roster: Roster, groups: Mapping[str, Collection[str]] | None = None
) -> Owner:
    """Whose a file is, as its clues say; of a group's, its first member's.

    groups  {name: members' ids} of those who hand in the lesson together
    """
    if not (clues.who or clues.number):
        return Owner("", "its name does not say whose it is")
    if not roster.students:
        return _from_names(clues.who)
    found = [roster.numbered(clues.number), *(roster.who(text) for text in clues.who)]
    if not any(found):
        if theirs := _of_group(clues.who, roster, groups or {}):
            return theirs
        found = [_behind_group(clues.who[0], roster)] if clues.moodle else found
    certain = {next(iter(ids)) for ids in found if len(ids) == 1}
    doubtful = set().union(*(ids for ids in found if len(ids) > 1))
    if len(certain) == 1 and (not doubtful or certain <= doubtful):
        return Owner(certain.pop())
    if certain or doubtful:
        several = [f"{one}'s" for one in sorted(certain | doubtful)]
        return Owner("", f"it may be {' or '.join(several)}")
    near = roster.nearest(clues.who)
    guess = f"; nearest: {', '.join(near)}" if near else ""
    return Owner("", f"no student of the roster is called {' or '.join(clues.who[:2])}{guess}")


def _of_group(
    texts: Collection[str], roster: Roster, groups: Mapping[str, Collection[str]]
) -> Owner | None:
    """The first enrolled member of the group that a text names.

    Always the same one, so that a later hand-in of the group's replaces its earlier one.
    """
    for name, members in groups.items():
        if plain(name) in map(plain, texts):
            for one in members:
                if one in roster.students:
                    return Owner(one, group=name)
    return None


def _behind_group(text: str, roster: Roster) -> set[str]:
    """Ids of those who may be meant if a group's name and "-" stand before a student's full name.

    Of one word alone, as Jones in Ann Smith-Jones, nobody is meant: it could be another's id.
    """
    while "-" in text:
        text = text.partition("-")[2].strip()
        if " " in text and (found := roster.who(text)):
            return found
    return set()


def _from_names(texts: Sequence[str]) -> Owner:
    """Without a roster: the only name, with no blanks, as nbgrader's exchange needs ids."""
    if len(texts) > 1:
        several = " or ".join(f"{text}'s" for text in texts)
        return Owner("", f"it may be {several}: enrol the class (autograder roster)")
    made = re.sub(r"[/\\*?\[\]+]", "", "-".join(texts[0].split())).lstrip(".")[:128]
    return Owner(made) if made else Owner("", "its name does not say whose it is")


def _of_name(name: str, slugs: Collection[str]) -> Clues:
    stem, attempt = original(name)
    return Clues(stem, attempt, lesson=_lesson_in(NOTEBOOK.sub("", name), slugs))


def _lesson_in(text: str, slugs: Collection[str]) -> str:
    """The lesson that a text names, by its slug or, if only one fits, its name."""
    text = plain(text)
    for called in (plain, lambda slug: plain(lessons.name_of(slug))):
        # The longest: 'transformer' is in 'transformer_blocks'.
        found = sorted((slug for slug in slugs if called(slug) in text), key=len)
        if found:
            return found[-1]
    return ""


def _without_lesson(text: str, slugs: Collection[str]) -> str:
    """What is left of a text when the lesson's name is taken out of it."""
    slug = _lesson_in(text, slugs)
    for name in (slug, lessons.name_of(slug)) if slug else ():
        words = r"[\W_]*".join(re.escape(word) for word in name.split("_"))
        text = re.sub(words, "\0", text, count=1, flags=re.IGNORECASE)
    return " ".join(part for part in (one.strip(" _-.()") for one in text.split("\0")) if part)
