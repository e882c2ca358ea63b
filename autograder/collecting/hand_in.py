"""One file that came back: whose it is and of which lesson, by its name and by what is in it."""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from autograder import CourseError, lessons
from autograder.collecting.roster import Owner, Roster, plain
from autograder.collecting.search import File, Refused
from autograder.grading.notebook.filenames import NOTEBOOK, is_notebook, original
from autograder.grading.notebook.submission import Submission, is_of, parse
from autograder.term.course_file import Choices

# What each LMS calls a file, or a folder of files, of a student. Another LMS is an entry here, with
# these groups, all but one of which may be missing:
#   id or name  of the student
#   user        what else the LMS calls the student: a number; of Moodle's, which is another one in
#               each assignment, with the word behind it
#   late        what is there only where the work is late: the times of files then say less
#   upload      the LMS's number for the file, later ones higher
LMS = {
    "Moodle": r"(?P<name>.+?)_(?P<user>\d+_assignsubmission)_(?:file|onlinetext)(?:_.*)?",
    "Canvas": r"(?P<name>.+?)(?P<late>_LATE)?_(?P<user>\d{1,20})_(?P<upload>\d{3,20})_.+",
}
SECOND = timedelta(seconds=1)
NOTHING = "it has none of the lesson's cells or functions"


@dataclass(frozen=True)
class Clues:
    """What a path says.

    who     what may name the student; all that names somebody has to name the same one
    attempt the numbers that were added to the name of a copy
    number  the LMS's for the student
    late    the LMS's word on the time; None: it says none
    upload  the LMS's number for the file
    """

    who: tuple[str, ...]
    lesson: str
    attempt: tuple[int, ...]
    number: str = ""
    late: bool | None = None
    upload: int = 0


def pattern(text: str | None) -> re.Pattern[str] | None:
    """The regular expression of ``--pattern``. Raises CourseError where it cannot serve."""
    if text is None:
        return None
    try:
        made = re.compile(text)
    except re.error as error:
        raise CourseError(f"--pattern {text!r} is no regular expression: {error}") from None
    if "student_id" not in made.groupindex:
        raise CourseError(f"--pattern {text!r} has no group that says who: write (?P<student_id>…)")
    return made


def read(
    parts: tuple[str, ...], slugs: Collection[str], named: re.Pattern[str] | None = None
) -> Clues:
    """What a path says; ``named``, if given, says in its group ``student_id`` whose it is."""
    parts = (*(re.sub(r"(?i)\.zip$", "", part) for part in parts[:-1]), parts[-1])
    lesson = next((one for part in reversed(parts) if (one := _lesson_in(part, slugs))), "")
    _, attempt = original(parts[-1])
    if named:
        match = named.search("/".join(parts))
        return Clues((match["student_id"],) if match else (), lesson, attempt)
    for place, part in enumerate(parts):
        if found := next(filter(None, (re.fullmatch(one, part) for one in LMS.values())), None):
            said = found.groupdict()
            name = said.get("id") or said["name"].replace("_", " ")
            # The folders around it count too: one may be another student's, who made up the name.
            who = (name, *parts[:place])
            late = bool(said["late"]) if "late" in said else None
            upload = int(said.get("upload", 0))
            return Clues(who, lesson, attempt, said.get("user", ""), late, upload)
    stem, attempt = original(parts[-1])
    who = tuple(filter(None, (_without_lesson(part, slugs) for part in (*parts[:-1], stem))))
    return Clues(who, lesson, attempt)


def _lesson_in(text: str, slugs: Collection[str]) -> str:
    """The lesson that a text names, by its slug or its name."""
    text = plain(NOTEBOOK.sub("", text))
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


@dataclass(frozen=True)
class HandIn:
    """A notebook whose student and lesson are known. ``damage`` says why nothing is in it."""

    file: File
    clues: Clues
    student: str
    lesson: str
    digest: bytes
    damage: str = ""
    group: str = ""  # the group in whose name it came

    def when(
        self, usual: datetime | None, due: datetime | None, at: datetime | None = None
    ) -> datetime:
        """When it was handed in: at the time ``at``, else the file's, as far as the LMS agrees.

        In Canvas' zips all files have the time of the download, and a name says who is late, but
        not by how much: the least is counted. Canvas need not know of more time than is ``usual``.
        """
        if at or usual is None or due is None or self.clues.late is None:
            return at or self.file.moment
        return usual + SECOND if self.clues.late else min(self.file.moment, due)


@dataclass(frozen=True)
class Judge:
    """Says of each file whose hand-in it is."""

    slugs: Collection[str]  # the lessons of the course
    chosen: Collection[str]  # those that are asked for
    solved: Callable[[str], Mapping[str, Any]]  # gives a lesson's solved notebook
    roster: Roster
    pattern: re.Pattern[str] | None  # what says whose a file is, if not its name alone
    choices: Choices

    def hand_in(self, file: File) -> HandIn:
        """The HandIn that a file is; raises Refused, in words, if it is none."""
        if not is_notebook(file.parts[-1]):
            raise Refused("it is not a notebook (.ipynb)")
        data = file.read()
        clues = read(file.parts, self.slugs, self.pattern)
        submission = parse(data)
        lesson, damage = self._lesson(submission, clues), submission.problem
        if lesson not in self.chosen:
            raise Refused(f"it is of another lesson, {lesson}")
        owner, group = self._owner(clues, lesson)
        if not owner.id:
            raise Refused(owner.why)
        digest = hashlib.sha256(data).digest()
        return HandIn(file, clues, owner.id, lesson, digest, damage, group)

    def _owner(self, clues: Clues, lesson: str) -> tuple[Owner, str]:
        """Whose it is, and the group in whose name it came: then its first member's.

        Always the same one's, so that a later hand-in of the group's replaces its earlier one.
        """
        if not (clues.who or clues.number):
            return Owner("", "its name does not say whose it is"), ""
        found = self.roster.owner(clues.who, clues.number)
        if found.id or found.why.startswith("it may be"):
            return found, ""
        for name, members in self.choices.together(lesson).items():
            enrolled = [one for one in members if one in self.roster.students]
            if enrolled and plain(name) in map(plain, clues.who):
                return Owner(enrolled[0]), name
        # Moodle's name of a group and "-" may stand before the student's full name. Of one word
        # alone, as Jones in Ann Smith-Jones, nobody is meant: it could be another's id.
        behind = clues.who[0]
        while (behind := behind.partition("-")[2].strip()) and " " in behind:
            if self.roster.who(behind):
                return self.roster.owner([behind]), ""
        return found, ""

    def _lesson(self, submission: Submission, clues: Clues) -> str:
        """The lesson whose cells or functions it has; of what cannot be read, what it is called."""
        if submission.problem:
            if not clues.lesson:
                why = "its name does not say which lesson it is of"
                raise Refused(f"{submission.problem}, and {why}")
            return clues.lesson
        for named in (submission.lesson, clues.lesson):
            if named in self.slugs and is_of(submission, self.solved(named)):
                return named
        if submission.lesson in self.slugs:
            submission.problem = f"it says that it is of {submission.lesson}, but {NOTHING}"
            return submission.lesson
        if clues.lesson:
            raise Refused(f"it is called like {clues.lesson}, but {NOTHING}")
        raise Refused("neither its name nor what is in it says which lesson it is of")
